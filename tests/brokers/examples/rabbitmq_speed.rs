//! Looking at and replaying messages of 1 KiB on a classic and a quorum queue of RabbitMQ 4.3, beside a bare lapin consumer and beside a shovel on the same
//! queue, in one run. `rabbitmq_speed [MESSAGES]`, with the broker of `tests/brokers/with rabbitmq-4.3 -- …`.
//!
//! Each look holds everything and gives it back; `dlo` also reads deaths, groups, and keeps the messages in its store. A replay
//! plans, writes its journal with a copy of each message, publishes with confirmations and removes the originals; the shovel
//! moves on confirm.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dlo_brokers::{engine::Bench, rabbit::Stage};
use dlo_core::Address;
use dlo_engine::{
    Ask,
    command::{Act, ConnectionId, LookAsk, ReplayAsk, Route},
    event::LookOpened,
};
use futures::StreamExt;
use lapin::{
    BasicProperties,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    types::FieldTable,
};
use serde_json::json;

const BYTES: usize = 1024;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let count: usize = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |text| text.parse())?;
    let stage = Stage::on("4.3").await?;
    let (dead, target) = ("speed.dlq", "speed");
    for kind in ["classic", "quorum"] {
        stage.queue(dead, kind, &[]).await?;
        stage.queue(target, kind, &[]).await?;
        fill(&stage, dead, count).await?;
        looks(&stage, kind, dead, count).await?;
        replays(&stage, kind, dead, target, count).await?;
        stage.delete(dead).await?;
        stage.delete(target).await?;
    }
    Ok(())
}

async fn fill(stage: &Stage, queue: &str, count: usize) -> Result<()> {
    for start in (0..count).step_by(5000) {
        let messages = (start..count.min(start + 5000)).map(|number| {
            let mut body = format!("{{\"id\":{number},\"text\":\"").into_bytes();
            body.resize(BYTES - 2, b'x');
            body.extend(b"\"}");
            (body, BasicProperties::default().with_delivery_mode(2))
        });
        stage.fill(queue, messages).await?;
    }
    stage.await_count(queue, count as u64).await
}

async fn looks(stage: &Stage, kind: &str, dead: &str, count: usize) -> Result<()> {
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(bare_look(stage, dead, count).await?);
        stage.await_count(dead, count as u64).await?;
        let mut engine = Engine::start(stage).await?;
        let started = Instant::now();
        let look = engine.look(dead, count).await?;
        ours.push(started.elapsed());
        per_message(&look, count);
        engine.close(&look).await?;
        stage.await_count(dead, count as u64).await?;
    }
    say(
        kind,
        "look",
        "bare lapin consumer",
        median(bare),
        median(ours),
        count,
    );
    Ok(())
}

/// What a message costs in memory beside its own bytes.
fn per_message(look: &LookOpened, count: usize) {
    let each = look.view.bytes() as f64 / count as f64;
    println!(
        "  memory: {each:.0} bytes a message of {BYTES} ({:.3} times)",
        each / BYTES as f64
    );
}

/// Consumes everything with one consumer, holds it, and gives it back.
async fn bare_look(stage: &Stage, queue: &str, count: usize) -> Result<Duration> {
    let channel = stage.channel().await?;
    channel.basic_qos(5000, BasicQosOptions::default()).await?;
    let started = Instant::now();
    let mut held = Vec::with_capacity(count);
    while held.len() < count {
        // A window, cancel, the next: what a look must do to keep the order. To a quorum queue a consumer with the tag of a
        // cancelled one is the same consumer, whose prefetch is used up.
        let tag = format!("bare {}", held.len());
        let mut consumer = channel
            .basic_consume(
                queue.into(),
                tag.as_str().into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await?;
        let room = 5000.min(count - held.len());
        for _ in 0..room {
            held.push(consumer.next().await.context("the consumer ended")??);
        }
        channel
            .basic_cancel(tag.as_str().into(), BasicCancelOptions::default())
            .await?;
    }
    let took = started.elapsed();
    let last = held.last().context("nothing was held")?.delivery_tag;
    channel
        .basic_nack(
            last,
            BasicNackOptions {
                multiple: true,
                requeue: true,
            },
        )
        .await?;
    channel.close(200, "OK".into()).await?;
    Ok(took)
}

async fn replays(stage: &Stage, kind: &str, dead: &str, target: &str, count: usize) -> Result<()> {
    let (mut shovel, mut ours, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut engine = Engine::start(stage).await?;
        let started = Instant::now();
        let look = engine.look(dead, count).await?;
        alone.push(engine.replay(&look, target).await?);
        ours.push(started.elapsed());
        engine.close(&look).await?;
        stage.await_count(target, count as u64).await?;
        shovel.push(time_shovel(stage, target, dead, count).await?);
    }
    let shovel = median(shovel);
    say(
        kind,
        "replay, with look and plan",
        "shovel",
        shovel,
        median(ours),
        count,
    );
    say(
        kind,
        "replay, the run alone",
        "shovel",
        shovel,
        median(alone),
        count,
    );
    Ok(())
}

async fn time_shovel(stage: &Stage, from: &str, to: &str, count: usize) -> Result<Duration> {
    let amqp = stage.url.split('?').next().unwrap_or_default();
    let shovel = json!({"value": {
        "src-protocol": "amqp091", "src-uri": amqp, "src-queue": from, "src-prefetch-count": 1000,
        "src-delete-after": "queue-length", "dest-protocol": "amqp091", "dest-uri": amqp, "dest-queue": to,
        "dest-add-forward-headers": false, "ack-mode": "on-confirm",
    }});
    let started = Instant::now();
    stage
        .api(reqwest::Method::PUT, "parameters/shovel/%2F/speed", shovel)
        .await?;
    while stage.count(to).await? < count as u64 {
        if started.elapsed() > Duration::from_secs(300) {
            bail!("the shovel did not finish");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = started.elapsed();
    // It deletes itself when it is done.
    let _ = stage
        .api(
            reqwest::Method::DELETE,
            "parameters/shovel/%2F/speed",
            json!({}),
        )
        .await;
    stage.await_count(from, 0).await?;
    Ok(took)
}

fn say(kind: &str, what: &str, other: &str, theirs: Duration, ours: Duration, count: usize) {
    let rate = |took: Duration| count as f64 / took.as_secs_f64();
    println!(
        "{kind} {what}: {other} {:.0}/s, dlo {:.0}/s, ratio {:.2}",
        rate(theirs),
        rate(ours),
        rate(ours) / rate(theirs)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// An engine that is connected.
struct Engine {
    bench: Bench,
    connection: ConnectionId,
    _home: tempfile::TempDir,
}

impl Engine {
    async fn start(stage: &Stage) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut bench = Bench::new(&home)?;
        let connection = bench.connect(&stage.url).await?;
        Ok(Self {
            bench,
            connection,
            _home: home,
        })
    }

    async fn look(&mut self, queue: &str, count: usize) -> Result<LookOpened> {
        let look = LookAsk {
            limit: count as u64,
            consent: dlo_core::Consent::Given,
            ..LookAsk::default()
        };
        let address = Address::queue(queue);
        let opened = self.bench.open_with(self.connection, address, look).await?;
        let seen = opened.view.len();
        ensure!(seen as usize == count, "{seen} of {count} were seen");
        Ok(opened)
    }

    /// Plans and runs, and gives the time that the run took.
    async fn replay(&mut self, look: &LookOpened, target: &str) -> Result<Duration> {
        let replay = ReplayAsk {
            route: Route::To(format!("queue:{target}")),
            ..ReplayAsk::default()
        };
        let act = Act::Replay(Box::new(replay));
        let plan = self.bench.plan(look.look, act).await?;
        let started = Instant::now();
        self.bench.run(plan).await?;
        Ok(started.elapsed())
    }

    async fn close(mut self, look: &LookOpened) -> Result<()> {
        self.bench.ask(Ask::CloseLook { look: look.look }).await?;
        self.bench.end().await
    }
}
