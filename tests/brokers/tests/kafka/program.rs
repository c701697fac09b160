//! The main job through the program `dlo` on a real Kafka: dead letters of two topics go home while the program is killed,
//! or the broker, in the middle.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::kafka::{Own, Plain, keyed, script, unique};
use dlo_core::{Header, Message, Value};
use serde_json::Value as Json;

const LETTERS: u32 = 10_000;

/// A topic of dead letters, the two topics they came from, and a home for the program.
struct Desk {
    plain: Plain,
    sources: [String; 2],
    dead: String,
    home: tempfile::TempDir,
}

impl Desk {
    async fn new(plain: Plain) -> Result<Self> {
        let name = unique("orders");
        let desk = Self {
            plain,
            sources: [format!("{name}-a"), format!("{name}-b")],
            dead: format!("{name}-dlt"),
            home: tempfile::tempdir()?,
        };
        for topic in desk.sources.iter().chain([&desk.dead]) {
            desk.plain.create(topic, 3, &[]).await?;
        }
        let letters: Vec<Message> = (0..LETTERS).map(|number| desk.letter(number)).collect();
        desk.plain.fill(&desk.dead, None, &letters)?;
        Ok(desk)
    }

    /// As Spring's recoverer writes it: numbers big-endian, text plain.
    fn letter(&self, number: u32) -> Message {
        let source = &self.sources[number as usize % 2];
        let bytes = |name: &str, value: &[u8]| {
            Header::new(name, "bytes", Value::Bytes(value.to_vec().into()))
        };
        Message {
            headers: vec![
                bytes("trace", format!("t-{number}").as_bytes()),
                bytes("kafka_dlt-original-topic", source.as_bytes()),
                bytes("kafka_dlt-original-partition", &0_i32.to_be_bytes()),
                bytes(
                    "kafka_dlt-original-offset",
                    &i64::from(number).to_be_bytes(),
                ),
                bytes(
                    "kafka_dlt-exception-fqcn",
                    b"java.lang.IllegalStateException",
                ),
                bytes("kafka_dlt-exception-message", b"db-3 is away"),
            ],
            ..keyed(&format!("order-{number}"), number.to_string())
        }
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command
            .args(arguments)
            .arg("--json")
            .env("DLO_HOME", self.home.path())
            .env_remove("DISPLAY")
            .stdin(Stdio::null());
        Ok(command)
    }

    fn replay(&self, more: &[&str]) -> Result<Command> {
        let url = self.plain.url();
        let place = ["replay", &url, &self.dead, "--all", "--yes"];
        let looking = ["--from", "oldest", "--limit", "20000", "--reason", "mended"];
        self.command(&[&place[..], &looking, more].concat())
    }

    /// How many copies of each letter are in the topics they belong to; a letter in the wrong one fails.
    fn arrived(&self) -> Result<BTreeMap<u32, u32>> {
        let mut copies = BTreeMap::new();
        for (index, source) in self.sources.iter().enumerate() {
            for (_, _, message) in self.plain.read(source, "read_committed")? {
                let body = message.body.context("a letter lost its body")?;
                let number: u32 = std::str::from_utf8(&body)?.parse()?;
                ensure!(
                    number as usize % 2 == index,
                    "{number} is in the wrong topic"
                );
                *copies.entry(number).or_default() += 1;
            }
        }
        Ok(copies)
    }

    /// Waits until so many letters have arrived, while the replay goes on.
    async fn await_arrivals(&self, wanted: i64) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let mut arrived = 0;
            for source in &self.sources {
                arrived += self.plain.ends(source)?.into_iter().sum::<i64>();
            }
            if arrived >= wanted {
                return Ok(());
            }
            ensure!(Instant::now() < until, "the replay stands at {arrived}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn only_run(&self) -> Result<Json> {
        let runs = lines(&self.command(&["runs"])?.output()?)?;
        ensure!(runs.len() == 1, "{runs:?}");
        runs.into_iter().next().context("no run is listed")
    }

    /// The letters of a run, by their outcome.
    fn outcomes(&self, run: &Json) -> Result<BTreeMap<String, BTreeSet<u32>>> {
        let run = run["run"].as_str().context("a run without a name")?;
        let mut letters = BTreeMap::<String, BTreeSet<u32>>::new();
        let numbers = self.numbers()?;
        for line in lines(&self.command(&["runs", run])?.output()?)? {
            let position = line["position"].to_string();
            let number = numbers.get(&position).with_context(|| position.clone())?;
            let outcome = line["outcome"].as_str().context("no outcome")?;
            letters
                .entry(outcome.to_owned())
                .or_default()
                .insert(*number);
        }
        Ok(letters)
    }

    /// The letter at each position of the dead-letter topic, which never changes.
    fn numbers(&self) -> Result<BTreeMap<String, u32>> {
        let stored = self.plain.read(&self.dead, "read_committed")?;
        let number = |(partition, offset, message): (i32, i64, Message)| {
            let body = message.body.context("a letter without a body")?;
            let position = serde_json::json!({"partition": partition, "offset": offset});
            Ok((position.to_string(), std::str::from_utf8(&body)?.parse()?))
        };
        stored.into_iter().map(number).collect()
    }

    /// The second replay does the rest; then every letter is home, and only unknown ones are there twice.
    fn finish(&self, first: &BTreeMap<String, BTreeSet<u32>>) -> Result<()> {
        let before = self.arrived()?;
        let unknown = first.get("unknown").cloned().unwrap_or_default();
        let settled = first.get("settled").map_or(0, BTreeSet::len);
        if settled == LETTERS as usize {
            // The replay outlived the trouble, so there is no rest.
            println!("all settled; {} arrived", before.len());
            ensure!(before.len() == settled && before.values().all(|copies| *copies == 1));
            return Ok(());
        }
        let output = self.replay(&[])?.output()?;
        let lines = lines(&output)?;
        let settled = lines
            .iter()
            .filter(|line| line["outcome"] == "settled")
            .count();
        ensure!(
            output.status.code() == Some(0),
            "{:?}: {:?}",
            output.status,
            lines.last()
        );
        let after = self.arrived()?;
        ensure!(
            after.len() == LETTERS as usize,
            "{} of {LETTERS} arrived",
            after.len()
        );
        let twice: BTreeSet<u32> = after
            .iter()
            .filter(|(_, copies)| **copies > 1)
            .map(|(number, _)| *number)
            .collect();
        println!(
            "{} arrived before, {:?}; the second replay settled {settled}; {} are there twice",
            before.len(),
            first
                .iter()
                .map(|(outcome, letters)| (outcome, letters.len()))
                .collect::<Vec<_>>(),
            twice.len()
        );
        ensure!(
            twice.is_subset(&unknown),
            "there twice and not said to be unknown: {:?}",
            twice.difference(&unknown)
        );
        Ok(())
    }
}

/// The program beside this test, which `cargo build` made.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(|deps| deps.parent());
    let program = folder.context("no target folder")?.join("dlo");
    ensure!(
        program.exists(),
        "{} is missing; run tests/run, or cargo build first",
        program.display()
    );
    Ok(program)
}

fn lines(output: &Output) -> Result<Vec<Json>> {
    let text = std::str::from_utf8(&output.stdout)?;
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replay_of_10_000_loses_nothing_and_is_listed_as_crashed() -> Result<()> {
    let desk = Desk::new(Plain::of("DLO_TEST_KAFKA")?).await?;
    let mut child = desk
        .replay(&[])?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    desk.await_arrivals(i64::from(LETTERS) / 2).await?;
    child.kill()?;
    child.wait()?;
    let run = desk.only_run()?;
    ensure!(run["act"] == "replay" && run["crashed"] == true, "{run}");
    let first = desk.outcomes(&run)?;
    let arrived: BTreeSet<u32> = desk.arrived()?.into_keys().collect();
    ensure!(
        arrived.len() < LETTERS as usize,
        "the kill came too late to show anything"
    );
    let empty = BTreeSet::new();
    let settled = first.get("settled").unwrap_or(&empty);
    let unknown = first.get("unknown").unwrap_or(&empty);
    ensure!(
        settled.is_subset(&arrived),
        "settled letters are not at their topics"
    );
    let told: BTreeSet<u32> = settled.union(unknown).copied().collect();
    ensure!(
        arrived.is_subset(&told),
        "arrived, but told neither settled nor unknown: {:?}",
        arrived.difference(&told)
    );
    desk.finish(&first)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_killed_under_a_replay_of_10_000_loses_nothing() -> Result<()> {
    let own = Own::start("start")?;
    let desk = Desk::new(own.plain("DLO_TEST_KAFKA")?).await?;
    let child = desk
        .replay(&[])?
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    desk.await_arrivals(i64::from(LETTERS) / 2).await?;
    script("stop", &[own.path()?, "--kill"])?;
    script("start", &[own.path()?])?;
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
    println!("the first replay ended with {}", output.status);
    ensure!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}",
        output.status
    );
    let run = desk.only_run()?;
    ensure!(run["crashed"] != true, "{run}");
    let first = desk.outcomes(&run)?;
    desk.finish(&first)
}
