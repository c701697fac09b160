//! Watching for returns on real quorum queues: what comes back is seen, and being watched uses up no delivery limit.

use std::time::Duration;

use anyhow::{Result, ensure};
use dlo_brokers::{
    engine::Bench,
    rabbit::{Stage, VERSIONS, dying_into, number},
};
use dlo_core::{Address, LookRequest};
use dlo_engine::command::{Act, Canary, ReplayAsk};
use tokio_util::sync::CancellationToken;

const COUNT: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn returned_messages_are_seen_and_counted_once() -> Result<()> {
    for version in VERSIONS {
        let stage = Stage::on(version).await?;
        let id = uuid::Uuid::new_v4().simple();
        let (source, dead) = (format!("watch {id}"), format!("watch {id}.dlq"));
        // With a limit of 8, twenty checks that each counted one would reach it.
        let limit = ("x-delivery-limit", number(8));
        stage.queue(&dead, "quorum", &[limit]).await?;
        stage.queue(&source, "classic", &dying_into(&dead)).await?;
        stage.number(&source, COUNT as usize).await?;
        stage.reject_all(&source).await?;
        stage.await_count(&dead, COUNT).await?;

        let home = tempfile::tempdir()?;
        let mut bench = Bench::new(&home)?;
        let connection = bench.connect(&stage.url).await?;
        let look = bench.look(connection, &dead).await?;
        let canary = Canary {
            messages: 10,
            watch: Duration::from_secs(3),
            stop_percent: 100.0,
        };
        let ask = ReplayAsk {
            canary: Some(canary),
            ..ReplayAsk::default()
        };
        let failing = reject_for_ever(Stage::on(version).await?, source.clone());
        let report = bench.act(look, Act::Replay(Box::new(ask))).await;
        failing.abort();
        let report = report?;
        let returned = report.run.outcomes.get("returned");
        ensure!(
            returned == Some(&COUNT),
            "{version}: {:?}, {:?}",
            report.run.outcomes,
            report.notes
        );
        bench.ask(dlo_engine::Ask::CloseLook { look }).await?;
        stage.await_count(&dead, COUNT).await?;
        let counts = delivery_counts(&stage, &dead).await?;
        ensure!(counts.len() as u64 == COUNT, "{version}: {counts:?}");
        // One for each of the two watches, at most.
        ensure!(
            counts.iter().all(|count| *count <= 2),
            "{version}: {counts:?}"
        );
        stage.delete(&source).await?;
        stage.delete(&dead).await?;
    }
    Ok(())
}

/// A consumer that cannot do its work.
fn reject_for_ever(stage: Stage, source: String) -> tokio::task::JoinHandle<Result<()>> {
    tokio::spawn(async move {
        loop {
            stage.reject_all(&source).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

async fn delivery_counts(stage: &Stage, queue: &str) -> Result<Vec<u64>> {
    let session = stage.session().await?;
    let look = session
        .look(&Address::queue(queue), LookRequest::new(COUNT))
        .await?;
    let mut counts = Vec::new();
    while (counts.len() as u64) < COUNT {
        let page = look.next(100, &CancellationToken::new()).await?;
        let count = |delivery: &dlo_core::Delivery| delivery.delivery_count.unwrap_or_default();
        counts.extend(page.deliveries.iter().map(count));
        if page.end {
            break;
        }
    }
    look.close().await?;
    Ok(counts)
}
