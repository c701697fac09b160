//! Replay of 10,000 messages of 1 KB with the journal on, beside a bare SDK loop of the same concurrency, on one ElasticMQ in
//! memory, turn by turn in one run. `tests/brokers/bench-sqs` builds and starts it.
//!
//! Both sides do the same at the broker: receive, send on, delete. `dlo` also reads, plans, writes its journal and reports.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use dlo_brokers::sqs::{Server, Stage, Store, unique};

const MESSAGES: usize = 10_000;
const BYTES: usize = 1024;
const TASKS: usize = 8;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let dlo = PathBuf::from(
        std::env::args()
            .nth(1)
            .context("usage: sqs_replay PATH-OF-DLO")?,
    );
    let server = Server::start(Store::Memory)?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    // The first round warms up the server's compiler, and is not counted.
    for round in 0..=ROUNDS {
        let (loop_took, dlo_took) = (
            time_loop(&server.stage).await?,
            time_dlo(&server.stage, &dlo).await?,
        );
        println!(
            "round {round}: bare loop {}, dlo {}",
            rate(loop_took),
            rate(dlo_took)
        );
        if round > 0 {
            bare.push(loop_took);
            ours.push(dlo_took);
        }
    }
    let (bare, ours) = (median(bare), median(ours));
    println!(
        "median: bare loop {}, dlo {}, ratio {:.2}",
        rate(bare),
        rate(ours),
        bare.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}

fn rate(took: Duration) -> String {
    format!("{:.0}/s", MESSAGES as f64 / took.as_secs_f64())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn staged(stage: &Stage) -> Result<(String, String)> {
    let (source, dead) = stage.create_pair(&unique("bench"), 5).await?;
    stage
        .fill_with(&dead, MESSAGES, |number| {
            format!("{number:0width$}", width = BYTES)
        })
        .await?;
    stage.wait_visible(&dead, MESSAGES as u64).await?;
    Ok((source, dead))
}

async fn time_loop(stage: &Stage) -> Result<Duration> {
    let (source, dead) = staged(stage).await?;
    let (from, to) = (
        stage.queue_url(&dead).await?,
        stage.queue_url(&source).await?,
    );
    let begun = Instant::now();
    let tasks = (0..TASKS).map(|_| tokio::spawn(move_all(stage.clone(), from.clone(), to.clone())));
    for moved in futures::future::try_join_all(tasks).await? {
        moved?;
    }
    let took = begun.elapsed();
    ensure!(
        stage.visible(&source).await? == MESSAGES as u64,
        "the loop did not move all"
    );
    Ok(took)
}

async fn move_all(stage: Stage, from: String, to: String) -> Result<()> {
    loop {
        let messages = stage.receive(&from, 0).await?;
        if messages.is_empty() {
            return Ok(());
        }
        let entries = messages
            .iter()
            .enumerate()
            .map(|(number, message)| {
                let entry = SendMessageBatchRequestEntry::builder().id(number.to_string());
                entry
                    .message_body(message.body().unwrap_or_default())
                    .build()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let sent = stage
            .client
            .send_message_batch()
            .queue_url(&to)
            .set_entries(Some(entries))
            .send()
            .await?;
        ensure!(sent.failed.is_empty());
        stage.delete(&from, &messages).await?;
    }
}

async fn time_dlo(stage: &Stage, dlo: &PathBuf) -> Result<Duration> {
    let (source, dead) = staged(stage).await?;
    let home = tempfile::tempdir()?;
    let begun = Instant::now();
    let status = Command::new(dlo)
        .args([
            "replay",
            &stage.url,
            &dead,
            "--to",
            &source,
            "--reason",
            "benchmark",
            "--yes",
            "--json",
            "--no-mark",
        ])
        .args(["--first", &MESSAGES.to_string()])
        .env("DLO_HOME", home.path())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let took = begun.elapsed();
    ensure!(status.success(), "dlo ended with {status}");
    ensure!(
        stage.visible(&source).await? == MESSAGES as u64,
        "dlo did not move all"
    );
    Ok(took)
}
