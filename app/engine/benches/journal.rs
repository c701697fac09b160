//! How many messages a second the journal takes: each is intended with a copy of 1.3 KB, then
//! recorded as published, confirmed and settled.
//!
//! `cargo run -p dlo-engine --example journal [MESSAGES [BATCH [FOLDER]]]`

use std::time::{Duration, Instant};

use dlo_engine::audit::{
    Act, AuditError, AuditFilter, AuditLog, Intent, NewRun, Outcome, Reach, RunState, Step, View,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let batch: u64 = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let folder = folder.join(format!("dlo-journal-bench-{}", std::process::id()));
    let log = AuditLog::open(folder.join("dlo.db"))?;
    let spent = journal(&log, messages, batch).await?;
    let all: Duration = spent.iter().map(|(_, time)| *time).sum();
    for (name, time) in &spent {
        println!("{name:<10} {:>7.2} s", time.as_secs_f64());
    }
    println!(
        "{messages} messages in batches of {batch}: {:.2} s, {:.0} messages/s",
        all.as_secs_f64(),
        messages as f64 / all.as_secs_f64()
    );
    read_back(&log).await?;
    drop(log);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

async fn journal(
    log: &AuditLog,
    messages: u64,
    batch: u64,
) -> Result<Vec<(&'static str, Duration)>, AuditError> {
    let run = log.begin(new_run(messages)).await?;
    let mut spent = vec![("intended", Duration::ZERO)];
    let steps = [Outcome::Published, Outcome::Confirmed, Outcome::Settled];
    spent.extend(steps.map(|outcome| (outcome.word(), Duration::ZERO)));
    let mut first = 0;
    while first < messages {
        let numbers = first..(first + batch).min(messages);
        let intents = numbers.clone().map(intent).collect();
        let start = Instant::now();
        log.intend(&run, Reach::Started, intents).await?;
        spent[0].1 += start.elapsed();
        for (index, outcome) in steps.into_iter().enumerate() {
            let steps = numbers.clone().map(|seq| step(seq, outcome)).collect();
            let start = Instant::now();
            log.record(&run, steps).await?;
            spent[index + 1].1 += start.elapsed();
        }
        first += batch;
    }
    let start = Instant::now();
    log.finish(&run, RunState::Done).await?;
    spent.push(("finish", start.elapsed()));
    Ok(spent)
}

fn new_run(total: u64) -> NewRun {
    NewRun {
        act: Act::Replay,
        profile: "bench".to_owned(),
        destination: "orders.dlq".to_owned(),
        target: Some("orders".to_owned()),
        who: "bench".to_owned(),
        why: None,
        plan: "{}".to_owned(),
        total,
    }
}

fn intent(seq: u64) -> Intent {
    // The hash is spread like a real one, so that its index costs what it costs in use.
    let spread = seq.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Intent {
        seq,
        position: format!("{{\"tag\":{seq}}}"),
        sha256: format!("{spread:016x}{:048x}", seq),
        target: Some("orders".to_owned()),
        capture: Some(format!("{{\"dlo\":1,\"body\":\"{}\"}}", "x".repeat(1_280))),
    }
}

fn step(seq: u64, outcome: Outcome) -> Step {
    match outcome {
        Outcome::Confirmed => Step::new(seq, outcome).detail("ack"),
        _ => Step::new(seq, outcome),
    }
}

async fn read_back(log: &AuditLog) -> Result<(), AuditError> {
    let steps = AuditFilter {
        view: View::Steps,
        ..AuditFilter::default()
    };
    let first_page = AuditFilter {
        limit: Some(100),
        ..AuditFilter::default()
    };
    let start = Instant::now();
    log.query(first_page).await?;
    println!("first page of the trail {:?}", start.elapsed());
    let start = Instant::now();
    let count = log.count(AuditFilter::default()).await?;
    println!("counted {count} messages in {:?}", start.elapsed());
    for (name, filter) in filters() {
        let start = Instant::now();
        let count = log.count(filter).await?;
        println!("{name:<12} {count:>7} of them in {:?}", start.elapsed());
    }
    let start = Instant::now();
    let lines = log.export(steps, std::io::sink()).await?;
    println!("exported {lines} lines in {:?}", start.elapsed());
    let start = Instant::now();
    println!("{:?} in {:?}", log.verify().await?, start.elapsed());
    Ok(())
}

fn filters() -> [(&'static str, AuditFilter); 4] {
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    [
        (
            "no such text",
            AuditFilter {
                text: text("nothing like this"),
                ..any()
            },
        ),
        (
            "no such act",
            AuditFilter {
                act: Some(Act::Purge),
                ..any()
            },
        ),
        (
            "one hash",
            AuditFilter {
                sha256: Some(intent(77).sha256),
                ..any()
            },
        ),
        (
            "settled",
            AuditFilter {
                outcome: Some(Outcome::Settled),
                ..any()
            },
        ),
    ]
}
