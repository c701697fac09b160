//! Replays that end half-way on a real broker: it is killed and started again, or the person cancels.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::{
    engine::Bench,
    rabbit::{Broker, Stage, VERSIONS},
};
use dlo_core::Message;
use dlo_engine::{
    Ask,
    command::{Act, ReplayAsk, Route},
    event::{LookOpened, RunReport},
    store::RowState,
};

const COUNT: usize = 2000;
const KINDS: [&str; 2] = ["classic", "quorum"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_half_way_loses_nothing() -> Result<()> {
    // Each start of a node takes seconds, so this is done on the newest alone.
    let version = "4.3";
    let broker = Broker::start(version)?;
    let stage = Stage::at(&broker.url("")?, version).await?;
    for kind in KINDS {
        stage.queue(&dead(kind), kind, &[]).await?;
        stage.queue(&target(kind), kind, &[]).await?;
        stage.number(&dead(kind), COUNT).await?;
    }
    broker.restart()?;
    for kind in KINDS {
        let stage = Stage::at(&broker.url("")?, version).await?;
        stage.await_count(&dead(kind), COUNT as u64).await?;
        kill_half_way(&broker, stage, kind)
            .await
            .with_context(|| format!("{version}, {kind}"))?;
    }
    Ok(())
}

async fn kill_half_way(broker: &Broker, stage: Stage, kind: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut bench = Bench::new(&home)?;
    let connection = bench.connect(&stage.url).await?;
    let look = bench.open(connection, &dead(kind)).await?;
    let (report, killed) = tokio::join!(
        bench.act(look.look, slowly_to(&target(kind))),
        kill_when_half_is_settled(broker, &stage, &look, kind)
    );
    killed?;
    let first = Outcomes::of(&*report?)?;
    println!("{} {kind}: {}", stage.version, first.summary());
    let settled = first.numbers("settled");
    ensure!(settled.len() >= COUNT / 2, "killed before half was settled");
    ensure!(settled.len() < COUNT, "killed when all was settled");
    // Whatever it held went back when the broker died; the close only says so.
    bench.ask(Ask::CloseLook { look: look.look }).await?;

    broker.start_again()?;
    let stage = Stage::at(&broker.url("")?, &stage.version).await?;
    await_election(&stage, kind).await?;
    let arrived = stage.drain_numbers(&target(kind)).await?;
    // The session opens its connection again by itself.
    let look = bench.open(connection, &dead(kind)).await?;
    let left = numbers_of(&look)?;
    first.agree_with(&arrived, &left, may_come_back(kind))?;

    let second = bench.act(look.look, to(&target(kind))).await?;
    let second = Outcomes::of(&second)?;
    ensure!(
        second.numbers("settled") == left.iter().copied().collect(),
        "the second replay: {}",
        second.summary()
    );
    bench.ask(Ask::CloseLook { look: look.look }).await?;
    stage.await_count(&dead(kind), 0).await?;
    ensure!(stage.drain_numbers(&target(kind)).await? == left);
    Ok(())
}

/// Waits until half is settled and the next batch has begun to arrive, so that the broker dies with messages on their way.
async fn kill_when_half_is_settled(
    broker: &Broker,
    stage: &Stage,
    look: &LookOpened,
    kind: &str,
) -> Result<()> {
    loop {
        let replayed = |state| state == RowState::Replayed;
        let settled = look.view.rows_where(replayed).len();
        let arrived = stage.count(&target(kind)).await?;
        if settled >= COUNT / 2 && arrived > settled as u64 {
            break;
        }
    }
    tokio::task::block_in_place(|| broker.kill())
}

/// Outcomes with which a message may be at both places after a SIGKILL. AMQP confirms no ack, and a classic queue writes acks
/// to its disk in its own time: what it had removed a second before may lie there again. A quorum queue keeps what it applied.
fn may_come_back(kind: &str) -> &'static [&'static str] {
    match kind {
        "classic" => &["unknown", "settled"],
        _ => &["unknown"],
    }
}

/// Until a quorum queue has elected its leader again, it counts nothing. What is lost for good, the caller will find.
async fn await_election(stage: &Stage, kind: &str) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    while stage.count(&dead(kind)).await? + stage.count(&target(kind)).await? < COUNT as u64 {
        if Instant::now() > end {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_cancelled_half_way_leaves_the_rest() -> Result<()> {
    for version in VERSIONS {
        for kind in KINDS {
            cancel_half_way(&Stage::on(version).await?, kind)
                .await
                .with_context(|| format!("{version}, {kind}"))?;
        }
    }
    Ok(())
}

async fn cancel_half_way(stage: &Stage, kind: &str) -> Result<()> {
    let (dead, target) = (dead(kind), target(kind));
    stage.queue(&dead, kind, &[]).await?;
    stage.queue(&target, kind, &[]).await?;
    stage.number(&dead, COUNT).await?;
    stage.await_count(&dead, COUNT as u64).await?;

    let home = tempfile::tempdir()?;
    let mut bench = Bench::new(&home)?;
    let connection = bench.connect(&stage.url).await?;
    let look = bench.look(connection, &dead).await?;
    let report = bench
        .act_until(look, slowly_to(&target), |progress| {
            progress.done >= COUNT as u64 / 2
        })
        .await?;
    let outcomes = Outcomes::of(&report)?;
    println!("{} {kind}: {}", stage.version, outcomes.summary());
    let settled = outcomes.numbers("settled").len();
    ensure!(report.run.state == "cancelled", "{}", report.run.state);
    ensure!((COUNT / 2..COUNT).contains(&settled), "{settled} went");
    // What was not sent has no outcome, or none but `planned`.
    let planned = outcomes.numbers("planned").len();
    ensure!(
        outcomes.0.len() == settled + planned,
        "{}",
        outcomes.summary()
    );

    bench.ask(Ask::CloseLook { look }).await?;
    stage.await_count(&dead, (COUNT - settled) as u64).await?;
    let (arrived, left) = (
        stage.drain_numbers(&target).await?,
        stage.drain_numbers(&dead).await?,
    );
    ensure!(arrived == (0..settled).collect::<Vec<_>>());
    ensure!(left == (settled..COUNT).collect::<Vec<_>>());
    stage.delete(&dead).await?;
    stage.delete(&target).await
}

/// What a report says of each number.
struct Outcomes(BTreeMap<usize, String>);

impl Outcomes {
    fn of(report: &RunReport) -> Result<Self> {
        let hash = |number: usize| {
            let message = Message {
                body: Some(number.to_string().into()),
                ..Message::default()
            };
            (message.sha256(), number)
        };
        let numbers: BTreeMap<_, _> = (0..COUNT).map(hash).collect();
        let outcomes = report.messages.iter().map(|message| {
            let number = numbers.get(&message.sha256).context("a foreign message")?;
            Ok((*number, message.outcome.clone()))
        });
        Ok(Self(outcomes.collect::<Result<_>>()?))
    }

    fn numbers(&self, outcome: &str) -> BTreeSet<usize> {
        let with = self.0.iter().filter(|(_, with)| *with == outcome);
        with.map(|(number, _)| *number).collect()
    }

    fn summary(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for outcome in self.0.values() {
            *counts.entry(outcome).or_default() += 1;
        }
        format!("{counts:?}")
    }

    /// Every message is where its outcome says, and at both places only with these outcomes.
    fn agree_with(&self, arrived: &[usize], left: &[usize], both_ways: &[&str]) -> Result<()> {
        let once: BTreeSet<_> = arrived.iter().copied().collect();
        let still: BTreeSet<_> = left.iter().copied().collect();
        ensure!(once.len() == arrived.len(), "the target has one twice");
        ensure!(
            still.len() == left.len(),
            "the dead-letter queue has one twice"
        );
        let lost: Vec<_> = (0..COUNT)
            .filter(|number| !once.contains(number) && !still.contains(number))
            .collect();
        ensure!(lost.is_empty(), "lost: {lost:?}");
        let unknown = self.numbers("unknown");
        let both: BTreeSet<_> = once.intersection(&still).copied().collect();
        println!("{} at both places, {} unknown", both.len(), unknown.len());
        let said_otherwise = both
            .iter()
            .filter_map(|number| self.0.get(number))
            .find(|outcome| !both_ways.contains(&outcome.as_str()));
        ensure!(
            said_otherwise.is_none(),
            "at both places although {said_otherwise:?}"
        );
        ensure!(self.numbers("settled").is_subset(&once));
        Ok(())
    }
}

fn numbers_of(look: &LookOpened) -> Result<Vec<usize>> {
    (0..look.view.len())
        .map(|row| {
            let body = look.view.delivery(row).and_then(|row| row.message.body);
            Ok(std::str::from_utf8(&body.context("no body")?)?.parse()?)
        })
        .collect()
}

fn dead(kind: &str) -> String {
    format!("replaying {kind}.dlq")
}

fn target(kind: &str) -> String {
    format!("replaying {kind}")
}

fn to(queue: &str) -> Act {
    Act::Replay(Box::new(ReplayAsk {
        route: Route::To(format!("queue:{queue}")),
        ..ReplayAsk::default()
    }))
}

/// In ten batches of 200, so that half-way is a moment that can be met.
fn slowly_to(queue: &str) -> Act {
    Act::Replay(Box::new(ReplayAsk {
        route: Route::To(format!("queue:{queue}")),
        rate: Some(1000),
        ..ReplayAsk::default()
    }))
}
