//! Publishing and deleting: where records go, and true answers when the broker fails half-way.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use dlo_brokers::kafka::{Own, Plain, keyed, script, session, unique};
use dlo_core::{
    Address, Atomicity, ErrorKind, Isolation, LookRequest, Message, Millis, Outgoing, Position,
    Start, Target,
};
use tokio_util::sync::CancellationToken;

fn outgoing(topic: &str, message: Message) -> Outgoing {
    Outgoing {
        target: Target::new(Address::topic(topic)),
        message,
        time: None,
    }
}

/// Java's murmur2 (`org.apache.kafka.common.utils.Utils`), written down here once more as an independent word.
fn partition_in_java(key: &[u8], partitions: u32) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c_u32 ^ key.len() as u32;
    let mut chunks = key.chunks_exact(4);
    for chunk in chunks.by_ref() {
        let mut k = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    ((hash & 0x7fff_ffff) % partitions) as i32
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_where_java_sends_them() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("java");
    plain.create(&topic, 7, &[]).await?;
    let session = session(&plain.url()).await?;
    let batch: Vec<_> = (0..200)
        .map(|n| outgoing(&topic, keyed(&format!("key-{n}"), "v")))
        .collect();
    for (number, answer) in session
        .publish(batch, Atomicity::Each)
        .await
        .into_iter()
        .enumerate()
    {
        let expected = partition_in_java(format!("key-{number}").as_bytes(), 7);
        let position = answer?.position;
        ensure!(
            matches!(position, Some(Position::Offset { partition, .. }) if partition == expected),
            "key-{number} is at {position:?}, Java sends it to {expected}"
        );
    }
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_follows_the_policy() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let (plain_topic, compacted) = (unique("delete"), unique("compact"));
    plain.create(&plain_topic, 1, &[]).await?;
    plain
        .create(&compacted, 1, &[("cleanup.policy", "compact")])
        .await?;
    let ten: Vec<Message> = (0..10).map(|n| keyed("k", n.to_string())).collect();
    plain.fill(&plain_topic, Some(0), &ten)?;
    plain.fill(&compacted, Some(0), &ten)?;
    let session = session(&plain.url()).await?;
    let at = Address::topic(&plain_topic);
    session.truncate(&at, &[(0, 6)]).await?;
    let left = plain.read(&plain_topic, "read_committed")?;
    ensure!(
        left.first().map(|stored| stored.1) == Some(6) && left.len() == 4,
        "{left:?}"
    );
    let beyond = session
        .truncate(&at, &[(0, 11)])
        .await
        .err()
        .context("beyond the end")?;
    ensure!(beyond.kind() == ErrorKind::NotFound, "{beyond}");
    let refused = session
        .truncate(&Address::topic(&compacted), &[(0, 5)])
        .await;
    let refused = refused.err().context("a compacted topic was cut")?;
    ensure!(
        refused.kind() == ErrorKind::Unsupported && refused.advice().is_some(),
        "{refused}"
    );
    ensure!(
        plain.read(&compacted, "read_committed")?.len() == 10,
        "records are gone"
    );
    // Without a key a compacted topic takes nothing, and says so.
    let keyless = Message {
        key: None,
        ..keyed("", "v")
    };
    let answers = session
        .publish(vec![outgoing(&compacted, keyless)], Atomicity::Each)
        .await;
    ensure!(
        answers
            .iter()
            .all(|a| a.as_ref().is_err_and(|e| e.kind() == ErrorKind::Rejected)),
        "{answers:?}"
    );
    session.close().await?;
    plain.delete(&plain_topic).await?;
    plain.delete(&compacted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_limit_of_a_topic_does_not_fail_whole_batches() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("small");
    plain
        .create(&topic, 1, &[("max.message.bytes", "5000")])
        .await?;
    let session = session(&plain.url()).await?;
    let mut batch: Vec<_> = (0..500)
        .map(|_| outgoing(&topic, keyed("k", vec![b'x'; 400])))
        .collect();
    batch[250].message.body = Some(vec![b'x'; 6000].into());
    let answers = session.publish(batch, Atomicity::Each).await;
    let failed: Vec<_> = answers
        .iter()
        .enumerate()
        .filter(|(_, a)| a.is_err())
        .map(|(n, _)| n)
        .collect();
    ensure!(
        failed == [250],
        "{failed:?} failed: {:?}",
        answers[failed[0]]
    );
    ensure!(
        answers[250]
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::TooLarge),
        "{:?}",
        answers[250]
    );
    session.close().await?;
    plain.delete(&topic).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timestamp_that_the_topic_refuses_is_said() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let topic = unique("times");
    plain
        .create(&topic, 1, &[("message.timestamp.before.max.ms", "3600000")])
        .await?;
    let session = session(&plain.url()).await?;
    let old = Outgoing {
        time: Some(Millis(1_700_000_000_000)),
        ..outgoing(&topic, keyed("k", "v"))
    };
    for answer in session.publish(vec![old], Atomicity::Each).await {
        let error = answer.err().context("an old timestamp was taken")?;
        ensure!(
            error.kind() == ErrorKind::Rejected && error.advice().is_some(),
            "{error}"
        );
    }
    session.close().await?;
    plain.delete(&topic).await
}

/// Publishes numbered records in batches while `harm` happens, and checks every answer against what is stored.
async fn answers_are_true(
    plain: &Plain,
    harm: impl FnOnce() -> Result<()> + Send + 'static,
) -> Result<()> {
    let topic = unique("orders");
    plain.create(&topic, 3, &[]).await?;
    let session = session(&plain.url()).await?;
    let harm = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(400));
        harm()
    });
    let (mut sure, mut surely_not, mut unknown) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for start in (0..10_000u32).step_by(500) {
        let numbers: Vec<u32> = (start..start + 500).collect();
        let batch = numbers
            .iter()
            .map(|n| outgoing(&topic, keyed(&n.to_string(), n.to_string())));
        let answers = session.publish(batch.collect(), Atomicity::Each).await;
        for (number, answer) in numbers.into_iter().zip(answers) {
            match answer {
                Ok(_) => sure.insert(number),
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => unknown.insert(number),
                Err(_) => surely_not.insert(number),
            };
        }
    }
    harm.await??;
    let stored: Vec<u32> = plain
        .read(&topic, "read_committed")?
        .iter()
        .filter_map(|(_, _, message)| {
            std::str::from_utf8(message.body.as_deref()?)
                .ok()?
                .parse()
                .ok()
        })
        .collect();
    let distinct: BTreeSet<u32> = stored.iter().copied().collect();
    println!(
        "{} sure, {} surely not, {} unknown, {} stored",
        sure.len(),
        surely_not.len(),
        unknown.len(),
        stored.len()
    );
    ensure!(sure.is_subset(&distinct), "confirmed records are missing");
    ensure!(
        surely_not.is_disjoint(&distinct),
        "records that were said not to be stored are there"
    );
    ensure!(
        stored.len() == distinct.len(),
        "{} duplicates",
        stored.len() - distinct.len()
    );
    ensure!(
        sure.len() + surely_not.len() + unknown.len() == 10_000,
        "an answer is missing"
    );
    ensure!(sure.len() > 5_000, "only {} were published", sure.len());
    session.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_broker_is_killed_and_comes_back() -> Result<()> {
    let own = Own::start("start")?;
    let path = own.path()?.to_owned();
    answers_are_true(&own.plain("DLO_TEST_KAFKA")?, move || {
        script("stop", &[&path, "--kill"])?;
        script("start", &[&path])
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_one_of_three_brokers_is_killed() -> Result<()> {
    let own = Own::start("start-cluster")?;
    let path = own.path()?.to_owned();
    answers_are_true(&own.plain("DLO_TEST_KAFKA_CLUSTER")?, move || {
        script("stop", &[&path, "--kill", "2"])
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_goes_on_when_the_broker_comes_back() -> Result<()> {
    let own = Own::start("start")?;
    let plain = own.plain("DLO_TEST_KAFKA")?;
    let topic = unique("interrupted");
    plain.create(&topic, 2, &[]).await?;
    let many: Vec<Message> = (0..3_000)
        .map(|n| keyed(&n.to_string(), vec![b'x'; 50_000]))
        .collect();
    plain.fill(&topic, None, &many)?;
    let session = session(&plain.url()).await?;
    let request = LookRequest {
        start: Start::Oldest,
        isolation: Isolation::ReadCommitted,
        ..LookRequest::new(100_000)
    };
    let look = session.look(&Address::topic(&topic), request).await?;
    let mut shown = look
        .next(10, &CancellationToken::new())
        .await?
        .deliveries
        .len();
    script("stop", &[own.path()?, "--kill"])?;
    script("start", &[own.path()?])?;
    loop {
        let page = look.next(500, &CancellationToken::new()).await?;
        shown += page.deliveries.len();
        if page.end {
            break;
        }
    }
    ensure!(shown == 3_000, "{shown} of 3000 records");
    session.close().await?;
    Ok(())
}
