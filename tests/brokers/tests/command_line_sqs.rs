//! The main job through the program `dlo` on real SQS servers: look, refuse, replay, kill, discard, restore, redrive, purge.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::sqs::{ELASTICMQ, LOCALSTACK, Stage, grouped, plain, received, unique};
use dlo_core::Value;
use serde_json::Value as Json;

/// One server, and a home for the program.
struct Desk {
    stage: Stage,
    url: String,
    home: tempfile::TempDir,
}

impl Desk {
    fn on(variable: &str) -> Result<Self> {
        let stage = Stage::on(variable)?;
        Ok(Self {
            url: stage.url.replace("sqs://", "sqs://test:test@"),
            stage,
            home: tempfile::tempdir()?,
        })
    }

    fn command(&self, act: &str, rest: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command
            .args([act, &self.url])
            .args(rest)
            .arg("--json")
            .env("DLO_HOME", self.home.path())
            .env_remove("DISPLAY")
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the program at the server and gives its exit code and lines.
    async fn dlo(&self, act: &str, rest: &[&str]) -> Result<(i32, Vec<Json>)> {
        self.finish(self.command(act, rest)?).await
    }

    /// Runs a subcommand that names no server.
    async fn ask(&self, arguments: &[&str]) -> Result<(i32, Vec<Json>)> {
        let mut command = Command::new(program()?);
        command
            .args(arguments)
            .arg("--json")
            .env("DLO_HOME", self.home.path());
        self.finish(command).await
    }

    async fn finish(&self, mut command: Command) -> Result<(i32, Vec<Json>)> {
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = String::from_utf8(output.stdout)?;
        let lines = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        Ok((output.status.code().context("no exit code")?, lines))
    }

    async fn bodies(&self, queue: &str) -> Result<BTreeSet<String>> {
        let messages = self.stage.drain(queue).await?;
        Ok(messages
            .iter()
            .filter_map(|message| message.body().map(str::to_owned))
            .collect())
    }
}

/// The program beside this test, which `cargo build` made.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here
        .parent()
        .and_then(|deps| deps.parent())
        .context("no target folder")?;
    let program = folder.join("dlo");
    ensure!(
        program.exists(),
        "{} is missing; run tests/run, or cargo build first",
        program.display()
    );
    Ok(program)
}

fn outcomes(lines: &[Json], outcome: &str) -> usize {
    lines
        .iter()
        .filter(|line| line["outcome"] == outcome)
        .count()
}

fn letters(count: usize) -> BTreeSet<String> {
    (0..count)
        .map(|number| format!("letter {number:04}"))
        .collect()
}

async fn fill(stage: &Stage, queue: &str, count: usize) -> Result<()> {
    stage
        .fill_with(queue, count, |number| format!("letter {number:04}"))
        .await?;
    stage.wait_visible(queue, count as u64).await
}

/// Killed in the middle, the program leaves every letter at its target, in the dead-letter queue, or in both.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replay_loses_nothing_and_is_listed() -> Result<()> {
    let desk = Desk::on(ELASTICMQ)?;
    let (source, dead) = desk.stage.create_pair(&unique("killed"), 50).await?;
    fill(&desk.stage, &dead, 600).await?;
    let rest = [
        &dead, "--all", "--to", &source, "--reason", "mended", "--hold", "5", "--rate", "100",
        "--yes",
    ];
    let mut child = desk
        .command("replay", &rest)?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + Duration::from_secs(60);
    while desk.stage.visible(&source).await? < 60 {
        ensure!(Instant::now() < end, "the replay does not begin");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill()?;
    child.wait()?;
    let arrived = desk.stage.visible(&source).await?;
    ensure!(arrived < 600, "the kill came too late to show anything");
    let (_, runs) = desk.ask(&["runs"]).await?;
    ensure!(
        runs[0]["act"] == "replay" && runs[0]["crashed"] == true,
        "{runs:?}"
    );
    // What the killed program held comes back when its hold is over.
    let left = 600 - arrived;
    let end = Instant::now() + Duration::from_secs(30);
    while desk.stage.visible(&dead).await? < left {
        ensure!(Instant::now() < end, "what was held does not come back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (code, lines) = desk
        .dlo(
            "replay",
            &[
                &dead, "--all", "--to", &source, "--reason", "again", "--yes",
            ],
        )
        .await?;
    ensure!(
        code == 0 && outcomes(&lines, "settled") as u64 >= left,
        "{code}"
    );
    ensure!(
        desk.bodies(&source).await? == letters(600),
        "letters are lost"
    );
    ensure!(desk.bodies(&dead).await?.is_empty());
    Ok(())
}

/// A look holds only the head of each group, so one command goes on in rounds. The second time the same bodies come within the
/// five minutes in which SQS drops what it knows, and each must arrive all the same.
#[tokio::test(flavor = "multi_thread")]
async fn one_command_replays_whole_fifo_groups_in_order_and_again() -> Result<()> {
    let desk = Desk::on(LOCALSTACK)?;
    let (source, dead) = desk
        .stage
        .create_pair(&format!("{}.fifo", unique("order")), 5)
        .await?;
    let sent: Vec<_> = (0..150)
        .map(|number| grouped(["a", "b", "c"][number % 3], &format!("{number:03}")))
        .collect();
    for _ in 0..2 {
        desk.stage.send(&dead, &sent).await?;
        let (code, lines) = desk
            .dlo(
                "replay",
                &[
                    &dead, "--all", "--to", &source, "--reason", "mended", "--yes",
                ],
            )
            .await?;
        ensure!(
            (code, outcomes(&lines, "settled")) == (0, 150),
            "{code}: {:?}",
            lines.last()
        );
        let summary = &lines.last().context("no summary")?["summary"];
        ensure!(
            summary["total"] == 150
                && summary["runs"]
                    .as_array()
                    .is_some_and(|runs| runs.len() >= 5),
            "{summary}"
        );
        ensure!(desk.stage.visible(&dead).await? == 0);
        let groups = groups(&desk.stage.drain(&source).await?);
        ensure!(
            groups.len() == 3
                && groups
                    .values()
                    .all(|bodies| bodies.len() == 50 && bodies.is_sorted()),
            "{groups:?}"
        );
    }
    Ok(())
}

/// The bodies of each group in the order of their arrival.
fn groups(messages: &[aws_sdk_sqs::types::Message]) -> BTreeMap<Option<String>, Vec<String>> {
    let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for message in messages {
        let properties = received(message).properties;
        let group = properties
            .get("MessageGroupId")
            .and_then(Value::as_text)
            .map(str::to_owned);
        let body = message.body().unwrap_or_default().to_owned();
        groups.entry(group).or_default().push(body);
    }
    groups
}

/// `--first` counts over the rounds, and a discard goes on in rounds too.
#[tokio::test(flavor = "multi_thread")]
async fn a_discard_of_a_fifo_queue_counts_over_its_rounds() -> Result<()> {
    let desk = Desk::on(LOCALSTACK)?;
    let (_, dead) = desk
        .stage
        .create_pair(&format!("{}.fifo", unique("count")), 5)
        .await?;
    let sent: Vec<_> = (0..30)
        .map(|number| grouped("one", &format!("{number:03}")))
        .collect();
    desk.stage.send(&dead, &sent).await?;
    let rest = [&dead, "--first", "25", "--reason", "test data", "--yes"];
    let (code, lines) = desk.dlo("discard", &rest).await?;
    ensure!(
        (code, outcomes(&lines, "settled")) == (0, 25),
        "{code}: {:?}",
        lines.last()
    );
    ensure!(desk.bodies(&dead).await? == (25..30).map(|number| format!("{number:03}")).collect());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn discarded_letters_are_restored() -> Result<()> {
    let desk = Desk::on(ELASTICMQ)?;
    let (_, dead) = desk.stage.create_pair(&unique("discard"), 5).await?;
    fill(&desk.stage, &dead, 30).await?;
    let (code, lines) = desk
        .dlo(
            "discard",
            &[&dead, "--first", "10", "--reason", "test data", "--yes"],
        )
        .await?;
    ensure!(
        (code, outcomes(&lines, "settled")) == (0, 10),
        "{code}: {lines:?}"
    );
    desk.stage.wait_visible(&dead, 20).await?;
    let run = lines
        .last()
        .and_then(|line| line["summary"]["run"].as_str())
        .context("no run")?
        .to_owned();
    let (code, lines) = desk
        .dlo(
            "restore",
            &["--run", &run, "--reason", "a mistake", "--yes"],
        )
        .await?;
    ensure!(
        (code, outcomes(&lines, "settled")) == (0, 10),
        "{code}: {lines:?}"
    );
    ensure!(desk.bodies(&dead).await? == letters(30));
    let (code, _) = desk.ask(&["audit", "--verify"]).await?;
    ensure!(code == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_would_dead_letter_is_refused_with_4() -> Result<()> {
    let desk = Desk::on(ELASTICMQ)?;
    let (source, dead) = desk.stage.create_pair(&unique("refused"), 1).await?;
    desk.stage.send(&source, &[plain("x")]).await?;
    for rest in [
        vec![source.as_str()],
        vec![source.as_str(), "--accept-cost"],
    ] {
        let (code, _) = desk.dlo("look", &rest).await?;
        ensure!(code == 4, "{code}");
    }
    ensure!(desk.stage.visible(&source).await? == 1 && desk.stage.visible(&dead).await? == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_is_saved_first_and_a_redrive_goes_home() -> Result<()> {
    let desk = Desk::on(LOCALSTACK)?;
    let (source, dead) = desk.stage.create_pair(&unique("whole"), 2).await?;
    fill(&desk.stage, &source, 5).await?;
    desk.stage.wear(&source, 3).await?;
    desk.stage.wait_visible(&dead, 5).await?;
    let (code, lines) = desk
        .dlo("redrive", &[&dead, "--reason", "mended", "--yes"])
        .await?;
    ensure!(code == 0, "{code}: {lines:?}");
    desk.stage.wait_visible(&source, 5).await?;
    fill(&desk.stage, &dead, 40).await?;
    let (code, lines) = desk
        .dlo("purge", &[&dead, "--all", "--reason", "test data", "--yes"])
        .await?;
    ensure!(code == 0, "{code}: {lines:?}");
    desk.stage.wait_visible(&dead, 0).await?;
    let run = lines
        .last()
        .and_then(|line| line["summary"]["run"].as_str())
        .context("no run")?
        .to_owned();
    let (code, lines) = desk
        .dlo(
            "restore",
            &["--run", &run, "--reason", "a mistake", "--yes"],
        )
        .await?;
    ensure!(
        (code, outcomes(&lines, "settled")) == (0, 40),
        "{code}: {lines:?}"
    );
    ensure!(desk.bodies(&dead).await? == letters(40));
    Ok(())
}

/// The body that lies in S3 is fetched on demand and shown through; a bucket that is gone is said, and is no failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_s3_is_shown_through() -> Result<()> {
    let desk = Desk::on(LOCALSTACK)?;
    let (_, dead) = desk.stage.create_pair(&unique("pointer"), 5).await?;
    let bucket = unique("bucket");
    let key = "bodies/order 7+ü.json";
    let body = format!(r#"{{"order":7,"fill":"{}"}}"#, "x".repeat(300_000));
    desk.stage.put_object(&bucket, None).await?;
    desk.stage
        .put_object(&bucket, Some((key, body.as_bytes())))
        .await?;
    let pointer = |key: &str| {
        plain(&format!(
            r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{{"s3BucketName":"{bucket}","s3Key":"{key}"}}]"#
        ))
    };
    let letters = [pointer(key), pointer("gone"), plain("no pointer")];
    desk.stage.send(&dead, &letters).await?;
    let (code, lines) = desk.dlo("look", &[&dead, "--pointed"]).await?;
    ensure!(code == 0, "{code}: {lines:?}");
    let pointed: Vec<_> = lines
        .iter()
        .filter(|line| line["pointed"].is_object())
        .collect();
    ensure!(pointed.len() == 2, "{pointed:?}");
    ensure!(
        pointed.iter().any(|line| line["pointed"]["text"] == body),
        "the body is not shown"
    );
    ensure!(
        pointed.iter().any(|line| line["pointed"]["note"]
            .as_str()
            .is_some_and(|note| note.contains("no longer there"))),
        "the missing object is not said"
    );
    ensure!(desk.stage.visible(&dead).await? == 3);
    Ok(())
}
