//! Looking at topics that other tools stumble over.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dlo_brokers::kafka::{Plain, Stored, keyed, send, session, unique};
use dlo_core::{
    Address, Delivery, Isolation, Look, LookRequest, Message, Millis, Position, Scan, Session,
    Start,
};
use rdkafka::producer::Producer;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(20);

struct Seen {
    deliveries: Vec<Delivery>,
    scan: Scan,
}

async fn read(look: &dyn Look) -> Result<Seen> {
    let mut seen = Seen {
        deliveries: Vec::new(),
        scan: Scan::default(),
    };
    loop {
        let page = look.next(1000, &CancellationToken::new()).await?;
        seen.deliveries.extend(page.deliveries);
        seen.scan.scanned += page.scan.scanned;
        seen.scan.gaps += page.scan.gaps;
        seen.scan.notes.extend(page.scan.notes);
        if page.end {
            look.close().await?;
            return Ok(seen);
        }
    }
}

async fn look(session: &dyn Session, topic: &str, request: LookRequest) -> Result<Seen> {
    read(
        session
            .look(&Address::topic(topic), request)
            .await?
            .as_ref(),
    )
    .await
}

fn request(start: Start, isolation: Isolation) -> LookRequest {
    LookRequest {
        start,
        isolation,
        ..LookRequest::new(1_000_000)
    }
}

fn places(deliveries: &[Delivery]) -> Vec<(i32, i64)> {
    let place = |delivery: &Delivery| match delivery.position {
        Position::Offset { partition, offset } => (partition, offset),
        _ => (-1, -1),
    };
    deliveries.iter().map(place).collect()
}

/// A look in every mode shows what a plain consumer reads, with the same bytes.
async fn shows_all(
    session: &dyn Session,
    topic: &str,
    isolation: Isolation,
    stored: &[Stored],
) -> Result<()> {
    let expected: BTreeMap<_, _> = stored.iter().map(|(p, o, m)| ((*p, *o), m)).collect();
    let partitions: std::collections::BTreeSet<i32> = session
        .describe(&Address::topic(topic))
        .await?
        .partitions
        .iter()
        .map(|p| p.id)
        .collect();
    let from_zero = partitions.iter().map(|id| (*id, 0)).collect();
    let positions = stored
        .iter()
        .map(|(partition, offset, _)| Position::Offset {
            partition: *partition,
            offset: *offset,
        })
        .collect();
    for start in [
        Start::Oldest,
        Start::Newest,
        Start::Offsets(from_zero),
        Start::Time(Millis(0)),
        Start::Positions(positions),
    ] {
        let name = format!("{start:?}").chars().take(12).collect::<String>();
        let seen = look(session, topic, request(start, isolation)).await?;
        let found: BTreeMap<_, _> = places(&seen.deliveries)
            .into_iter()
            .zip(seen.deliveries.iter().map(|d| &d.message))
            .collect();
        ensure!(
            seen.deliveries.len() == found.len(),
            "{name}: a record was shown twice"
        );
        ensure!(
            found == expected,
            "{name} {isolation:?}: {} records, not {}",
            found.len(),
            expected.len()
        );
        ensure!(
            seen.scan.scanned == seen.deliveries.len() as u64 + seen.scan.gaps,
            "{name}: {:?}",
            seen.scan
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_committed_aborted_and_open() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("tx");
    plain.create(&topic, 2, &[]).await?;
    let id = unique("tx");
    let producer = plain.producer(&[("transactional.id", id.as_str())])?;
    producer.init_transactions(PATIENCE)?;
    for round in 0..30 {
        producer.begin_transaction()?;
        for number in 0..20 {
            send(
                &producer,
                &topic,
                Some(number % 2),
                &keyed("k", format!("{round}-{number}")),
            )?;
        }
        producer.flush(PATIENCE)?;
        match round % 3 {
            0 => producer.commit_transaction(PATIENCE)?,
            _ => producer.abort_transaction(PATIENCE)?,
        }
    }
    let hanging = plain.producer(&[("transactional.id", unique("tx").as_str())])?;
    hanging.init_transactions(PATIENCE)?;
    hanging.begin_transaction()?;
    send(&hanging, &topic, Some(0), &keyed("k", "open"))?;
    hanging.flush(PATIENCE)?;
    plain.fill(&topic, Some(0), &[keyed("k", "after the open one")])?;

    let session = session(&plain.url()).await?;
    let committed = plain.read(&topic, "read_committed")?;
    ensure!(
        committed.len() == 200,
        "{} committed records",
        committed.len()
    );
    shows_all(
        session.as_ref(),
        &topic,
        Isolation::ReadCommitted,
        &committed,
    )
    .await?;
    let all = plain.read(&topic, "read_uncommitted")?;
    ensure!(all.len() == 602, "{} records in all", all.len());
    shows_all(session.as_ref(), &topic, Isolation::ReadUncommitted, &all).await?;

    let seen = look(
        session.as_ref(),
        &topic,
        request(Start::Newest, Isolation::ReadCommitted),
    )
    .await?;
    ensure!(
        seen.scan
            .notes
            .iter()
            .any(|note| note.contains("open transaction")),
        "{:?}",
        seen.scan.notes
    );
    let described = session.describe(&Address::topic(&topic)).await?;
    let first = &described.partitions[0];
    ensure!(
        first
            .last_stable
            .is_some_and(|stable| stable < first.high_watermark),
        "{first:?}"
    );
    // The newest three are three records, although the last offsets are markers.
    let three = LookRequest {
        limit: 3,
        ..request(Start::Newest, Isolation::ReadCommitted)
    };
    ensure!(
        look(session.as_ref(), &topic, three)
            .await?
            .deliveries
            .len()
            == 3,
        "not the newest 3"
    );
    session.close().await?;
    hanging.abort_transaction(PATIENCE)?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_leaves_wide_gaps() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("compacted");
    let settings = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "200"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("max.compaction.lag.ms", "300"),
        ("delete.retention.ms", "100"),
    ];
    plain.create(&topic, 1, &settings).await?;
    for _ in 0..4 {
        let many: Vec<Message> = (0..5000)
            .map(|n| keyed(&format!("k{}", n % 3), n.to_string()))
            .collect();
        plain.fill(&topic, Some(0), &many)?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // The active segment rolls only on a write, and the cleaner comes by from time to time.
    let until = Instant::now() + Duration::from_secs(60);
    let stored = loop {
        plain.fill(&topic, Some(0), &[keyed("roll", "x")])?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let stored = plain.read(&topic, "read_committed")?;
        if stored.len() < 100 {
            break stored;
        }
        ensure!(
            Instant::now() < until,
            "nothing was compacted: {} records",
            stored.len()
        );
    };
    let session = session(&plain.url()).await?;
    shows_all(session.as_ref(), &topic, Isolation::ReadCommitted, &stored).await?;
    let seen = look(
        session.as_ref(),
        &topic,
        request(Start::Newest, Isolation::ReadCommitted),
    )
    .await?;
    ensure!(seen.scan.gaps > 19_000, "{} gaps", seen.scan.gaps);
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_partitions_are_passed_at_once() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("mostly-empty");
    plain.create(&topic, 24, &[]).await?;
    let session = session(&plain.url()).await?;
    for stored in [0, 3] {
        let messages: Vec<Message> = (0..stored).map(|n| keyed("k", n.to_string())).collect();
        plain.fill(&topic, Some(7), &messages)?;
        for start in [Start::Oldest, Start::Newest] {
            let begun = Instant::now();
            let seen = look(
                session.as_ref(),
                &topic,
                request(start, Isolation::ReadCommitted),
            )
            .await?;
            ensure!(
                seen.deliveries.len() == stored,
                "{} records",
                seen.deliveries.len()
            );
            ensure!(
                begun.elapsed() < Duration::from_secs(2),
                "it took {:?}",
                begun.elapsed()
            );
        }
    }
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_20_mb() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("large");
    plain
        .create(&topic, 2, &[("max.message.bytes", "31457280")])
        .await?;
    let large: Vec<Message> = (0..6u8).map(|n| keyed("k", vec![n; 20_000_000])).collect();
    let session = session(&plain.url()).await?;
    // Written by us, so that publishing large ones is seen too.
    for (number, message) in large.iter().enumerate() {
        let mut target = dlo_core::Target::new(Address::topic(&topic));
        target.partitioning = dlo_core::Partitioning::Exact((number % 2) as i32);
        let out = dlo_core::Outgoing {
            target,
            message: message.clone(),
            time: None,
        };
        for answer in session.publish(vec![out], dlo_core::Atomicity::Each).await {
            answer?;
        }
    }
    for start in [Start::Oldest, Start::Newest] {
        let seen = look(
            session.as_ref(),
            &topic,
            request(start.clone(), Isolation::ReadCommitted),
        )
        .await?;
        let mut firsts: Vec<u8> = seen
            .deliveries
            .iter()
            .filter_map(|d| d.message.body.as_ref().filter(|b| b.len() == 20_000_000))
            .map(|body| body[0])
            .collect();
        firsts.sort_unstable();
        ensure!(firsts == [0, 1, 2, 3, 4, 5], "{start:?}: {firsts:?}");
    }
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_come_in_the_order_of_time_from_both_ends() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("many");
    plain.create(&topic, 4, &[]).await?;
    let many: Vec<Message> = (0..50_000)
        .map(|n| keyed(&n.to_string(), vec![b'x'; 200]))
        .collect();
    plain.fill(&topic, None, &many)?;
    let session = session(&plain.url()).await?;
    let limited = LookRequest {
        limit: 30_000,
        ..request(Start::Newest, Isolation::ReadCommitted)
    };
    let seen = look(session.as_ref(), &topic, limited).await?;
    ensure!(seen.deliveries.len() == 30_000, "{}", seen.deliveries.len());
    ensure!(seen.scan.gaps == 0, "{} gaps", seen.scan.gaps);
    ensure!(
        seen.deliveries.is_sorted_by(|a, b| a.time >= b.time),
        "not by time"
    );
    let whole = look(
        session.as_ref(),
        &topic,
        request(Start::Newest, Isolation::ReadCommitted),
    )
    .await?;
    let distinct: std::collections::BTreeSet<_> = places(&whole.deliveries).into_iter().collect();
    ensure!(
        whole.deliveries.len() == 50_000 && distinct.len() == 50_000,
        "{}",
        distinct.len()
    );
    // The first of the oldest are those of the whole topic, and not of the partition that answers first.
    for limit in [100, 50_000] {
        let first = LookRequest {
            limit,
            ..request(Start::Oldest, Isolation::ReadCommitted)
        };
        let seen = look(session.as_ref(), &topic, first).await?;
        let times: Vec<_> = seen.deliveries.iter().map(|d| d.time).collect();
        let mut expected: Vec<_> = whole.deliveries.iter().map(|d| d.time).collect();
        expected.sort_unstable();
        expected.truncate(usize::try_from(limit)?);
        ensure!(times == expected, "the oldest {limit} are not by time");
    }
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_leaves_no_group_no_commit_and_no_topic() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("traces");
    plain.create(&topic, 3, &[]).await?;
    plain.fill(&topic, None, &[keyed("a", "1"), keyed("b", "2")])?;
    let session = session(&plain.url()).await?;
    let at = Address::topic(&topic);
    for start in [Start::Oldest, Start::Newest] {
        look(
            session.as_ref(),
            &topic,
            request(start, Isolation::ReadCommitted),
        )
        .await?;
    }
    session.describe(&at).await?;
    session
        .fetch(
            &at,
            &[Position::Offset {
                partition: 0,
                offset: 0,
            }],
            Isolation::ReadCommitted,
        )
        .await?;
    ensure!(
        session
            .describe(&Address::topic(unique("none")))
            .await
            .is_err(),
        "a missing topic"
    );
    // Other tests make topics and groups at the same time; ours have names to be told by.
    let (topics, groups) = plain.traces()?;
    session.close().await?;
    ensure!(
        groups.iter().all(|group| !group.starts_with("dlo-")),
        "{groups:?}"
    );
    ensure!(
        topics.iter().all(|name| !name.starts_with("none-")),
        "{topics:?}"
    );
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_their_lag() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let (topic, group) = (unique("lag"), unique("group"));
    plain.create(&topic, 2, &[]).await?;
    let ten: Vec<Message> = (0..10).map(|n| keyed("k", n.to_string())).collect();
    plain.fill(&topic, Some(1), &ten)?;
    plain.commit(&group, &topic, 1, 4)?;
    let session = session(&plain.url()).await?;
    let described = session.describe(&Address::topic(&topic)).await?;
    let found = described
        .groups
        .iter()
        .find(|g| g.name == group)
        .context("the group is not there")?;
    ensure!(
        found.state == "Empty" && found.members == Some(0),
        "{found:?}"
    );
    let lags: Vec<_> = found
        .lags
        .iter()
        .map(|lag| (lag.partition, lag.committed, lag.lag))
        .collect();
    ensure!(lags == [(0, None, None), (1, Some(4), Some(6))], "{lags:?}");
    let routes = session
        .routes(&dlo_core::Target::new(Address::topic(&topic)))
        .await?;
    ensure!(
        routes.exists && routes.reaches == [group.clone()],
        "{routes:?}"
    );
    ensure!(
        described.oldest.value.is_some() && described.expires.value.is_some(),
        "{described:?}"
    );
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_is_left_alone_takes_little_memory() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("slow-reader");
    plain.create(&topic, 3, &[]).await?;
    let body = Bytes::from(vec![b'x'; 100_000]);
    let many: Vec<Message> = (0..4_000)
        .map(|n| keyed(&n.to_string(), body.clone()))
        .collect();
    plain.fill(&topic, None, &many)?;
    let session = session(&plain.url()).await?;
    for start in [Start::Oldest, Start::Newest] {
        let before = resident()?;
        let look = session
            .look(
                &Address::topic(&topic),
                request(start, Isolation::ReadCommitted),
            )
            .await?;
        look.next(1, &CancellationToken::new()).await?;
        // Nothing to wait for: what must not happen is that it grows on.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let grown = resident()?.saturating_sub(before) >> 20;
        ensure!(
            grown < 260,
            "400 MB are there, and {grown} MB of them are in memory"
        );
        look.close().await?;
    }
    session.close().await?;
    plain.delete(&topic).await
}

/// Bytes of this process in memory.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .context("no resident size")?
        .parse()?;
    Ok(pages * 4096)
}
