//! Sending to real queues: byte-exact, in order per group, refused before anything is touched, and answered one by one.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::types::QueueAttributeName;
use bytes::Bytes;
use dlo_brokers::sqs::{ELASTICMQ, LOCALSTACK, Stage, grouped, plain, received, rich, unique};
use dlo_core::{
    Address, Atomicity, Delivery, Disposition, ErrorKind, Header, LookRequest, Message, Outgoing,
    Receipt, Session, Target, Value,
};
use tokio_util::sync::CancellationToken;

/// Twice within five minutes: the same messages die again and are sent again, and SQS drops none as a repetition.
#[tokio::test(flavor = "multi_thread")]
async fn fifo_groups_are_replayed_in_order_twice() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let (source, dead) = stage
            .create_pair(&format!("{}.fifo", unique("twice")), 5)
            .await?;
        let letters: Vec<_> = (0..90)
            .map(|number| grouped(["a", "b", "c"][number % 3], &format!("{number:02}")))
            .collect();
        let session = stage.session().await?;
        for _ in 0..2 {
            stage.send(&dead, &letters).await?;
            while replay(session.as_ref(), &dead, &source).await? > 0 {}
            let mut groups: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
            for message in stage.drain(&source).await? {
                let message = received(&message);
                let group = message
                    .properties
                    .get("MessageGroupId")
                    .and_then(Value::as_text);
                let body = String::from_utf8_lossy(message.body.as_deref().unwrap_or_default())
                    .into_owned();
                groups
                    .entry(group.map(str::to_owned))
                    .or_default()
                    .push(body);
            }
            ensure!(groups.len() == 3, "{groups:?}");
            ensure!(
                groups
                    .values()
                    .all(|bodies| bodies.len() == 30 && bodies.is_sorted()),
                "{groups:?}"
            );
            ensure!(stage.visible(&dead).await? == 0);
        }
    }
    Ok(())
}

/// ElasticMQ counts only the body towards 1 MiB; LocalStack counts as AWS does.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_rich_messages_are_replayed_byte_exact() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let (source, dead) = stage.create_pair(&unique("exact"), 5).await?;
        let letters: Vec<_> = (0..2_000).map(letter).collect();
        stage.send(&dead, &letters).await?;
        stage.wait_visible(&dead, 2_000).await?;
        let session = stage.session().await?;
        while replay(session.as_ref(), &dead, &source).await? > 0 {}
        let arrived: HashMap<Option<Bytes>, Message> = stage
            .drain(&source)
            .await?
            .iter()
            .map(|message| {
                (
                    message.body().map(|body| Bytes::from(body.to_owned())),
                    received(message),
                )
            })
            .collect();
        ensure!(
            arrived.len() == letters.len(),
            "{} of {} arrived",
            arrived.len(),
            letters.len()
        );
        for letter in &letters {
            let found = arrived
                .get(&letter.body)
                .context("a body did not arrive as it was")?;
            ensure!(
                found.headers == letter.headers,
                "{:?}, not {:?}",
                found.headers,
                letter.headers
            );
            ensure!(
                found.properties == letter.properties,
                "{:?}, not {:?}",
                found.properties,
                letter.properties
            );
        }
        ensure!(stage.visible(&dead).await? == 0);
    }
    Ok(())
}

/// The rich messages with a number in the body; every 400th is as large as SQS takes.
fn letter(number: usize) -> Message {
    let mut message = rich().remove(number % 3);
    let body = String::from_utf8_lossy(message.body.as_deref().unwrap_or_default()).into_owned();
    let mut text = format!("{number} {body}");
    if number % 400 == 399 {
        let counted: usize = message.headers.iter().map(attribute_bytes).sum();
        text.extend(std::iter::repeat_n('x', 1_048_576 - counted - text.len()));
    }
    message.body = Some(Bytes::from(text));
    message.headers.sort_by(|a, b| a.name.cmp(&b.name));
    message
}

fn attribute_bytes(header: &Header) -> usize {
    header.name.len() + header.typed.kind.len() + header.value().as_bytes().map_or(0, Bytes::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sqs_would_refuse_is_refused_and_the_rest_is_sent() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let queue = unique("refuse");
        stage.create(&queue, &[]).await?;
        let attribute = |kind: &'static str, value: &str| {
            let mut message = plain("x");
            message.headers = vec![Header::new("n", kind, Value::text(value))];
            message
        };
        let batch = [
            (plain("good"), None),
            (plain(""), Some(ErrorKind::Rejected)),
            (plain("a\u{0}b"), Some(ErrorKind::Rejected)),
            (plain("a\u{ffff}b"), Some(ErrorKind::Rejected)),
            (Message::default(), Some(ErrorKind::Rejected)),
            (plain(&"x".repeat(1_048_577)), Some(ErrorKind::TooLarge)),
            (attribute("Number", "abc"), Some(ErrorKind::Rejected)),
            (attribute("String", ""), Some(ErrorKind::Rejected)),
            (plain("also good"), None),
        ];
        let session = stage.session().await?;
        let messages = batch.iter().map(|(message, _)| message.clone()).collect();
        let answers = send(session.as_ref(), &queue, messages).await;
        let kinds: Vec<_> = answers
            .iter()
            .map(|answer| answer.as_ref().err().map(|error| error.kind()))
            .collect();
        let expected: Vec<_> = batch.iter().map(|(_, kind)| *kind).collect();
        ensure!(kinds == expected, "{kinds:?}");
        stage.wait_visible(&queue, 2).await?;
    }
    Ok(())
}

/// The queue takes less than the session knows, so some entries of each batch fail at the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_partial_failure_leaves_exactly_the_failed_ones() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = stage.create_pair(&unique("partial"), 5).await?;
    let letters: Vec<_> = (0..40)
        .map(|number| {
            plain(&format!(
                "{number} {}",
                "x".repeat(if number % 4 == 0 { 2000 } else { 10 })
            ))
        })
        .collect();
    stage.send(&dead, &letters).await?;
    let session = stage.session().await?;
    send(
        session.as_ref(),
        &source,
        vec![plain("to learn the settings")],
    )
    .await
    .remove(0)?;
    let url = stage.queue_url(&source).await?;
    let request = stage.client.set_queue_attributes().queue_url(url);
    request
        .attributes(QueueAttributeName::MaximumMessageSize, "1024")
        .send()
        .await?;
    let replayed = replay(session.as_ref(), &dead, &source).await?;
    ensure!(replayed == 30, "{replayed} were replayed");
    stage.wait_visible(&dead, 10).await?;
    stage.wait_visible(&source, 31).await?;
    let left = stage.drain(&dead).await?;
    ensure!(
        left.iter()
            .all(|message| message.body().unwrap_or_default().len() > 1024)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_queue_is_not_found_and_not_made() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let session = stage.session().await?;
        let queue = unique("missing");
        let error = send(session.as_ref(), &queue, vec![plain("x")])
            .await
            .remove(0)
            .err()
            .context("it was sent")?;
        ensure!(error.kind() == ErrorKind::NotFound, "{error}");
        ensure!(stage.queue_url(&queue).await.is_err(), "the queue was made");
    }
    Ok(())
}

async fn send(
    session: &dyn Session,
    queue: &str,
    messages: Vec<Message>,
) -> Vec<dlo_core::Result<Receipt>> {
    let batch = messages
        .into_iter()
        .map(|message| Outgoing {
            target: Target::new(Address::queue(queue)),
            message,
            time: None,
        })
        .collect();
    session.publish(batch, Atomicity::Each).await
}

/// One look at everything that can be held: sends each on, then removes those that were stored. Gives their number.
async fn replay(session: &dyn Session, from: &str, to: &str) -> Result<usize> {
    let look = session
        .look(&Address::queue(from), LookRequest::new(5_000))
        .await?;
    let cancel = CancellationToken::new();
    let mut seen: Vec<Delivery> = Vec::new();
    loop {
        let page = look.next(1000, &cancel).await?;
        seen.extend(page.deliveries);
        if page.end {
            break;
        }
    }
    let mut ids = HashSet::new();
    ensure!(
        seen.iter()
            .all(|delivery| ids.insert(delivery.position.clone())),
        "a message was seen twice"
    );
    let answers = send(
        session,
        to,
        seen.iter()
            .map(|delivery| delivery.message.clone())
            .collect(),
    )
    .await;
    let stored: Vec<_> = seen
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_ok())
        .filter_map(|(delivery, _)| delivery.lock.clone())
        .collect();
    let settled = look.settle(&stored, Disposition::Ack).await;
    ensure!(
        settled.iter().all(Result::is_ok),
        "not settled: {settled:?}"
    );
    look.close().await?;
    Ok(stored.len())
}
