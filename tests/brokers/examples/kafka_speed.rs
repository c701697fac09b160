//! Looking at a million records of 1 KiB beside kcat and beside a bare consumer, replaying 100,000 beside `kcat -C | kcat -P`, and
//! the memory of a look at ten million small records; on one real Kafka, in one run. `kafka_speed PATH-OF-DLO [PART…]`, where a
//! part is `look`, `replay` or `memory`; `tests/brokers/bench-kafka` builds and starts what it needs.
//!
//! A look reads deaths, groups failures and keeps every record in its store; kcat prints payloads to a file that keeps nothing;
//! the bare consumer only counts. A replay looks, plans, keeps a copy of each record in its journal and waits for all replicas.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::{
    engine::Bench,
    kafka::{Plain, keyed, send, unique},
};
use dlo_core::{Address, Header, Message, Start, Value};
use dlo_engine::{
    Ask,
    command::{ConnectionId, LookAsk},
    event::LookOpened,
};
use rdkafka::producer::Producer;

const LOOKED_AT: usize = 1_000_000;
const REPLAYED: usize = 100_000;
const SMALL: usize = 10_000_000;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dlo = PathBuf::from(arguments.next().context("usage: kafka_speed PATH-OF-DLO")?);
    let parts: Vec<String> = arguments.collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    if wanted("look") {
        looks(&plain).await?;
    }
    if wanted("replay") {
        replays(&plain, &dlo).await?;
    }
    if wanted("memory") {
        memory(&plain).await?;
    }
    Ok(())
}

/// A topic of dead letters as Spring's recoverer writes them.
async fn fill(plain: &Plain, topic: &str, source: &str, count: usize, bytes: usize) -> Result<()> {
    plain.create(topic, 12, &[]).await?;
    let settings = [
        ("compression.type", "lz4"),
        ("linger.ms", "50"),
        ("queue.buffering.max.kbytes", "131072"),
    ];
    let producer = plain.producer(&settings)?;
    let text = |name: &str, value: &str| Header::new(name, "bytes", Value::text(value));
    let headers = vec![
        text("kafka_dlt-original-topic", source),
        text(
            "kafka_dlt-exception-fqcn",
            "java.lang.IllegalStateException",
        ),
        text("kafka_dlt-exception-message", "db-3 is away"),
    ];
    for number in 0..count {
        let mut body = format!("{{\"id\":{number},\"text\":\"").into_bytes();
        body.resize(bytes.max(body.len()), b'x');
        let message = Message {
            headers: headers.clone(),
            ..keyed(&number.to_string(), body)
        };
        send(&producer, topic, None, &message)?;
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(())
}

async fn looks(plain: &Plain) -> Result<()> {
    let topic = unique("speed-dlt");
    fill(plain, &topic, "speed", LOOKED_AT, 1024).await?;
    let (mut kcat, mut bare, mut oldest, mut newest) = (vec![], vec![], vec![], vec![]);
    // The first round fills the page cache, and is not counted.
    for round in 0..=ROUNDS {
        let times = [
            time_kcat(plain, &topic)?,
            time_bare(plain, &topic)?,
            time_look(plain, &topic, Start::Oldest).await?,
            time_look(plain, &topic, Start::Newest).await?,
        ];
        if round > 0 {
            for (of, took) in [&mut kcat, &mut bare, &mut oldest, &mut newest]
                .into_iter()
                .zip(times)
            {
                of.push(took);
            }
        }
    }
    let (kcat, bare) = (median(kcat), median(bare));
    println!("look at {LOOKED_AT} x 1 KiB: kcat {kcat:.2?}, bare consumer {bare:.2?}");
    for (name, took) in [
        ("oldest first", median(oldest)),
        ("newest first", median(newest)),
    ] {
        println!(
            "  dlo, {name}: {took:.2?}; {:.2} of kcat's time (aim 0.8), {:.2} of the bare consumer's rate (aim 0.5)",
            took.as_secs_f64() / kcat.as_secs_f64(),
            bare.as_secs_f64() / took.as_secs_f64()
        );
    }
    plain.delete(&topic).await
}

fn kcat(plain: &Plain, arguments: &[&str]) -> Command {
    let mut command = Command::new("kcat");
    command.args(["-b", &plain.url().replace("kafka://", ""), "-q"]);
    command.args(arguments).stderr(Stdio::inherit());
    command
}

fn time_kcat(plain: &Plain, topic: &str) -> Result<Duration> {
    let begun = Instant::now();
    let read = ["-C", "-t", topic, "-o", "beginning", "-e", "-f", "%s\n"];
    let status = kcat(plain, &read).stdout(Stdio::null()).status();
    ensure!(status.context("kcat did not start")?.success());
    Ok(begun.elapsed())
}

fn time_bare(plain: &Plain, topic: &str) -> Result<Duration> {
    let begun = Instant::now();
    let count = plain.count_quickly(topic)?;
    ensure!(count == LOOKED_AT, "the bare consumer saw {count}");
    Ok(begun.elapsed())
}

async fn time_look(plain: &Plain, topic: &str, start: Start) -> Result<Duration> {
    let begun = Instant::now();
    let mut engine = Engine::start(plain).await?;
    let look = engine.look(topic, start, u64::MAX).await?;
    let took = begun.elapsed();
    // The budget of one look is 1 GiB, which is less than a million of these: kcat and the bare consumer are then ahead.
    let share = f64::from(look.view.len()) / LOOKED_AT as f64;
    engine.close(&look).await?;
    Ok(took.div_f64(share))
}

async fn replays(plain: &Plain, dlo: &PathBuf) -> Result<()> {
    let (mut pipes, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (dead, to) = (unique("speed-dlt"), unique("speed"));
        plain.create(&to, 12, &[]).await?;
        fill(plain, &dead, &to, REPLAYED, 1024).await?;
        pipes.push(time_pipe(plain, &dead, &to)?);
        ours.push(time_replay(plain, dlo, &dead)?);
        let arrived: i64 = plain.ends(&to)?.into_iter().sum();
        ensure!(arrived == 2 * REPLAYED as i64, "{arrived} arrived");
        plain.delete(&dead).await?;
        plain.delete(&to).await?;
    }
    let (pipe, ours) = (median(pipes), median(ours));
    println!(
        "replay of {REPLAYED} x 1 KiB with the journal: kcat -C | kcat -P {pipe:.2?}, dlo {ours:.2?}; {:.2} of its rate (aim 1.0)",
        pipe.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}

/// Key and value only: kcat cannot pass headers on.
fn time_pipe(plain: &Plain, from: &str, to: &str) -> Result<Duration> {
    let begun = Instant::now();
    let read = ["-C", "-t", from, "-o", "beginning", "-e", "-K", "\t"];
    let mut reader = kcat(plain, &read).stdout(Stdio::piped()).spawn()?;
    let pipe = reader.stdout.take().context("no pipe")?;
    let write = [
        "-P",
        "-t",
        to,
        "-K",
        "\t",
        "-X",
        "acks=all",
        "-X",
        "enable.idempotence=true",
    ];
    let status = kcat(plain, &write).stdin(pipe).status()?;
    ensure!(status.success() && reader.wait()?.success());
    Ok(begun.elapsed())
}

fn time_replay(plain: &Plain, dlo: &PathBuf, dead: &str) -> Result<Duration> {
    let home = tempfile::tempdir()?;
    let begun = Instant::now();
    let status = Command::new(dlo)
        .args(["replay", &plain.url(), dead, "--all", "--yes"])
        .args(["--reason", "benchmark", "--json"])
        .env("DLO_HOME", home.path())
        .env_remove("DISPLAY")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.success(), "dlo ended with {status}");
    Ok(begun.elapsed())
}

async fn memory(plain: &Plain) -> Result<()> {
    let topic = unique("small-dlt");
    fill(plain, &topic, "small", SMALL, 20).await?;
    let before = resident()?;
    let peak = Peak::watch();
    let begun = Instant::now();
    let mut engine = Engine::start(plain).await?;
    let look = engine
        .look(&topic, Start::Oldest, u64::from(u32::MAX))
        .await?;
    let took = begun.elapsed();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "scan of {SMALL} small records: {} loaded in {took:.1?}, the store holds {:.0} MiB (its budget is 1024); the process grew by {:.0} MiB at its peak",
        look.view.len(),
        mib(look.view.bytes()),
        mib(peak.end().saturating_sub(before))
    );
    engine.close(&look).await?;
    plain.delete(&topic).await
}

/// The most memory that this process had, asked for often.
struct Peak {
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Peak {
    fn watch() -> Self {
        let peak = Self {
            most: Arc::default(),
            stop: Arc::default(),
        };
        let (most, stop) = (peak.most.clone(), peak.stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                most.fetch_max(resident().unwrap_or_default(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        peak
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}

/// Bytes of memory that this process has in use.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.context("no VmRSS")?.parse::<u64>()? * 1024)
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
    async fn start(plain: &Plain) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut bench = Bench::new(&home)?;
        let connection = bench.connect(&plain.url()).await?;
        Ok(Self {
            bench,
            connection,
            _home: home,
        })
    }

    /// Loads up to the limit, or until the store is full.
    async fn look(&mut self, topic: &str, start: Start, limit: u64) -> Result<LookOpened> {
        let look = LookAsk {
            start,
            limit,
            ..LookAsk::default()
        };
        let address = Address::topic(topic);
        self.bench.open_with(self.connection, address, look).await
    }

    async fn close(mut self, look: &LookOpened) -> Result<()> {
        self.bench.ask(Ask::CloseLook { look: look.look }).await?;
        self.bench.end().await
    }
}
