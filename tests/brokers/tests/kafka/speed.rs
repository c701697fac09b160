//! Benchmarks that print ratios, side by side in one run. Ignored, as they take a while and mean something only in a release
//! build: `cargo test --release -p dlo-brokers --test kafka speed -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dlo_brokers::kafka::{Plain, keyed, send, session, unique};
use dlo_core::{Address, Atomicity, LookRequest, Message, Outgoing, Session, Start, Target};
use rdkafka::producer::Producer;
use tokio_util::sync::CancellationToken;

/// How many records of 1 KiB, from `DLO_TEST_RECORDS`.
fn many() -> usize {
    std::env::var("DLO_TEST_RECORDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000)
}

fn timed(what: &str, since: Instant, records: usize) -> f64 {
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{what}: {seconds:.2} s, {:.0} records/s",
        records as f64 / seconds
    );
    seconds
}

async fn look_through(session: &dyn Session, topic: &str, start: Start) -> Result<usize> {
    let request = LookRequest {
        start,
        ..LookRequest::new(u64::MAX)
    };
    let look = session.look(&Address::topic(topic), request).await?;
    let mut seen = 0;
    loop {
        let page = look.next(1000, &CancellationToken::new()).await?;
        seen += page.deliveries.len();
        if page.end {
            look.close().await?;
            return Ok(seen);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a benchmark"]
async fn looking_beside_a_bare_consumer() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let (topic, records) = (unique("speed"), many());
    plain.create(&topic, 12, &[]).await?;
    let producer = plain.producer(&[("compression.type", "lz4"), ("linger.ms", "50")])?;
    let body = "Lorem ipsum dolor sit amet. ".repeat(37);
    for number in 0..records {
        send(
            &producer,
            &topic,
            None,
            &keyed(&number.to_string(), body.clone()),
        )?;
    }
    producer.flush(Duration::from_secs(60))?;
    // Once to warm the page cache.
    plain.count_quickly(&topic)?;
    let begun = Instant::now();
    ensure!(
        plain.count_quickly(&topic)? == records,
        "the bare consumer missed some"
    );
    let bare = timed("bare consumer", begun, records);
    let begun = Instant::now();
    let session = session(&plain.url()).await?;
    timed("connect", begun, 1);
    for (name, start) in [
        ("oldest first", Start::Oldest),
        ("newest first", Start::Newest),
    ] {
        let begun = Instant::now();
        let seen = look_through(session.as_ref(), &topic, start).await?;
        let seconds = timed(name, begun, records);
        println!("{name}: {:.2} of the bare consumer's rate", bare / seconds);
        ensure!(seen == records, "{seen} of {records}");
    }
    for (name, limit) in [("the newest 50", 50), ("the newest 1000", 1000)] {
        let begun = Instant::now();
        let look = session
            .look(&Address::topic(&topic), LookRequest::new(limit))
            .await?;
        while !look.next(1000, &CancellationToken::new()).await?.end {}
        look.close().await?;
        timed(name, begun, usize::try_from(limit)?);
    }
    let begun = Instant::now();
    session.describe(&Address::topic(&topic)).await?;
    timed("describe", begun, 1);
    let begun = Instant::now();
    session.destinations().await?;
    timed("destinations", begun, 1);
    let begun = Instant::now();
    session.close().await?;
    drop(session);
    timed("close", begun, 1);
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a benchmark"]
async fn publishing_beside_a_bare_producer() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let (topic, records) = (unique("speed"), many() / 10);
    plain.create(&topic, 12, &[]).await?;
    let messages: Vec<Message> = (0..records)
        .map(|n| keyed(&n.to_string(), vec![b'x'; 1024]))
        .collect();
    let begun = Instant::now();
    plain.fill(&topic, None, &messages)?;
    let bare = timed("bare producer", begun, records);
    let session = session(&plain.url()).await?;
    let begun = Instant::now();
    for messages in messages.chunks(1000) {
        let batch = messages.iter().map(|message| Outgoing {
            target: Target::new(Address::topic(&topic)),
            message: message.clone(),
            time: None,
        });
        for answer in session.publish(batch.collect(), Atomicity::Each).await {
            answer?;
        }
    }
    let seconds = timed("publish in batches of 1000", begun, records);
    println!("publish: {:.2} of the bare producer's rate", bare / seconds);
    session.close().await?;
    plain.delete(&topic).await
}
