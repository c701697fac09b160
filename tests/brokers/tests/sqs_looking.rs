//! Looking at real queues: everything seen, given back and visible at once; counts as announced; refusals where a look would
//! dead-letter something; FIFO groups and lost holds told.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::types::QueueAttributeName;
use dlo_brokers::sqs::{ELASTICMQ, LOCALSTACK, Server, Stage, Store, grouped, plain, unique};
use dlo_core::{
    Address, Consent, Delivery, Disposition, ErrorKind, Look, LookRequest, Page, Session, Value,
    Verdict,
};
use tokio_util::sync::CancellationToken;

const MANY: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_in_three_sessions_on_elasticmq() -> Result<()> {
    let server = Server::start(Store::Memory)?;
    ten_thousand_in_three_sessions(&server.stage, Duration::ZERO).await
}

/// LocalStack makes a message visible up to a second late; AWS and ElasticMQ do so at once.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_in_three_sessions_on_localstack() -> Result<()> {
    ten_thousand_in_three_sessions(&Stage::on(LOCALSTACK)?, Duration::from_secs(2)).await
}

async fn ten_thousand_in_three_sessions(stage: &Stage, late: Duration) -> Result<()> {
    let (_, dead) = stage.create_pair(&unique("many"), 5).await?;
    stage
        .fill_with(&dead, MANY, |number| format!("letter {number}"))
        .await?;
    stage.wait_visible(&dead, MANY as u64).await?;
    for session_number in 1..=3 {
        let session = stage.session().await?;
        let at = Address::queue(&dead);
        let request = LookRequest::new(20_000);
        let cost = session.cost(&at, &request).await?;
        ensure!(cost.verdict == Verdict::Fine, "{cost:?}");
        ensure!(
            cost.line.contains("raises each receive count by 1"),
            "{}",
            cost.line
        );
        let look = session.look(&at, request).await?;
        let (seen, _) = read(look.as_ref()).await?;
        let ids: HashSet<_> = seen
            .iter()
            .map(|delivery| delivery.position.clone())
            .collect();
        ensure!(
            ids.len() == MANY && seen.len() == MANY,
            "{} seen, {} different",
            seen.len(),
            ids.len()
        );
        let counts: HashSet<_> = seen
            .iter()
            .map(|delivery| delivery.delivery_count)
            .collect();
        ensure!(
            counts == HashSet::from([Some(session_number - 1)]),
            "counts {counts:?}"
        );
        ensure!(
            stage.visible(&dead).await? == 0,
            "messages are visible although they are held"
        );
        let returned = look.close().await?;
        ensure!(
            returned.given_back == MANY as u64 && returned.lost_hold == 0,
            "{returned:?}"
        );
        if late.is_zero() {
            ensure!(
                stage.visible(&dead).await? == MANY as u64,
                "not all are visible at once"
            );
        }
        stage.wait_visible(&dead, MANY as u64).await?;
        session.close().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_edge_of_the_receive_limit_a_look_is_refused() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let (source, dead) = stage.create_pair(&unique("edge"), 3).await?;
        fill(&stage, &source, 5).await?;
        stage.wear(&source, 1).await?;
        let session = stage.session().await?;
        let at = Address::queue(&source);
        refused(session.as_ref(), &at, Consent::Unasked, "after 3 receives").await?;
        let look = session.look(&at, consented(100)).await?;
        let (seen, _) = read(look.as_ref()).await?;
        ensure!(seen.len() == 5);
        look.close().await?;
        // Each was now received twice of three times: one more look would leave nobody a try.
        refused(
            session.as_ref(),
            &at,
            Consent::Given,
            "received 2 times of 3",
        )
        .await?;
        stage.wait_visible(&source, 5).await?;
        ensure!(
            stage.visible(&dead).await? == 0,
            "a look moved something to the dead-letter queue"
        );
        session.close().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_gives_one_try_is_never_looked_at() -> Result<()> {
    let stage = Stage::on(ELASTICMQ)?;
    let (source, dead) = stage.create_pair(&unique("one"), 1).await?;
    fill(&stage, &source, 3).await?;
    let session = stage.session().await?;
    refused(
        session.as_ref(),
        &Address::queue(&source),
        Consent::Given,
        "only try",
    )
    .await?;
    ensure!(stage.visible(&source).await? == 3 && stage.visible(&dead).await? == 0);
    Ok(())
}

/// A session that knows nothing yet finds messages near the limit and stops, so that none of them is moved by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_stops_at_the_first_message_near_the_limit() -> Result<()> {
    let stage = Stage::on(ELASTICMQ)?;
    let (source, dead) = stage.create_pair(&unique("near"), 3).await?;
    fill(&stage, &source, 5).await?;
    stage.wear(&source, 2).await?;
    let session = stage.session().await?;
    let look = session.look(&Address::queue(&source), consented(1)).await?;
    let (seen, notes) = read(look.as_ref()).await?;
    ensure!(seen.len() == 1, "{} seen", seen.len());
    ensure!(
        notes
            .iter()
            .any(|note| note.contains("received 3 times of 3")),
        "{notes:?}"
    );
    look.close().await?;
    stage.wait_visible(&source, 5).await?;
    ensure!(stage.visible(&dead).await? == 0);
    refused(
        session.as_ref(),
        &Address::queue(&source),
        Consent::Given,
        "received 3 times",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn fifo_groups_that_are_cut_are_named_and_stay_in_order() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let queue = format!("{}.fifo", unique("groups"));
        stage.create(&queue, &[]).await?;
        let sent: Vec<_> = (0..75)
            .map(|number| grouped(["a", "b", "c"][number % 3], &format!("{number:02}")))
            .collect();
        stage.send(&queue, &sent).await?;
        let session = stage.session().await?;
        let at = Address::queue(&queue);
        let cost = session.cost(&at, &LookRequest::new(1000)).await?;
        ensure!(
            cost.verdict == Verdict::Warn
                && cost.reasons[0].contains("first messages of each group")
        );
        let look = session.look(&at, LookRequest::new(1000)).await?;
        let (seen, notes) = read(look.as_ref()).await?;
        ensure!((1..75).contains(&seen.len()), "{} seen", seen.len());
        let behind = 75 - seen.len();
        ensure!(
            notes.iter().any(
                |note| note.contains(&format!("About {behind} messages wait"))
                    && note.contains("c (after")
            ),
            "{notes:?}"
        );
        let returned = look.close().await?;
        ensure!(returned.given_back == seen.len() as u64, "{returned:?}");
        stage.wait_visible(&queue, 75).await?;
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for message in stage.drain(&queue).await? {
            let body = message.body().unwrap_or_default().to_owned();
            let number: usize = body.parse()?;
            groups
                .entry(["a", "b", "c"][number % 3].to_owned())
                .or_default()
                .push(body);
        }
        ensure!(
            groups
                .values()
                .all(|bodies| bodies.len() == 25 && bodies.is_sorted()),
            "{groups:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_ran_out_is_told_and_removes_nothing() -> Result<()> {
    let stage = Stage::on(ELASTICMQ)?;
    let queue = unique("lapse");
    let url = stage.create(&queue, &[]).await?;
    fill(&stage, &queue, 1).await?;
    let session = stage.session().await?;
    let mut request = LookRequest::new(1);
    request.hold = Duration::from_secs(1);
    let look = session.look(&Address::queue(&queue), request).await?;
    let (seen, _) = read(look.as_ref()).await?;
    let lock = seen[0].lock.clone().context("a lock")?;
    // An ordinary consumer gets it as soon as the hold is over.
    let consumed = stage.receive(&url, 5).await?;
    ensure!(consumed.len() == 1, "the hold did not run out");
    let answer = look.settle(&[lock], Disposition::Ack).await;
    ensure!(
        answer[0]
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::LockLost),
        "{answer:?}"
    );
    let returned = look.close().await?;
    ensure!(returned.given_back == 0, "{returned:?}");
    stage.delete(&url, &consumed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extended_hold_outlives_its_first_timeout() -> Result<()> {
    let stage = Stage::on(ELASTICMQ)?;
    let queue = unique("extend");
    let url = stage.create(&queue, &[]).await?;
    fill(&stage, &queue, 25).await?;
    let session = stage.session().await?;
    let mut request = LookRequest::new(25);
    request.hold = Duration::from_secs(3);
    let look = session.look(&Address::queue(&queue), request).await?;
    let (seen, _) = read(look.as_ref()).await?;
    let before = look.hold().context("a hold")?;
    for _ in 0..3 {
        let hold = look.extend().await?.context("a hold")?;
        ensure!(hold.messages == 25 && hold.until >= before.until);
        ensure!(
            hold.at_most_until
                .is_some_and(|end| end.since(hold.until) > 11 * 3_600_000)
        );
        ensure!(
            stage.receive(&url, 2).await?.is_empty(),
            "a held message was handed out"
        );
    }
    let locks: Vec<_> = seen
        .iter()
        .filter_map(|delivery| delivery.lock.clone())
        .collect();
    let answers = look.settle(&locks, Disposition::Ack).await;
    ensure!(answers.iter().all(Result::is_ok), "{answers:?}");
    ensure!(look.hold().is_none());
    stage.wait_visible(&queue, 0).await
}

/// What SQS says of a message that it moved itself: from where, how often, since when, and until when it stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_sqs_moved_tells_where_it_died() -> Result<()> {
    for variable in [LOCALSTACK, ELASTICMQ] {
        let stage = Stage::on(variable)?;
        let (source, dead) = stage.create_pair(&unique("died"), 2).await?;
        fill(&stage, &source, 1).await?;
        stage.wear(&source, 3).await?;
        stage.wait_visible(&dead, 1).await?;
        let session = stage.session().await?;
        let at = Address::queue(&dead);
        let destination = session.describe(&at).await?;
        ensure!(
            destination.sources == [source.clone()],
            "{:?}",
            destination.sources
        );
        let look = session.look(&at, LookRequest::new(10)).await?;
        let (seen, _) = read(look.as_ref()).await?;
        let letter = seen.first().context("no letter")?;
        let origin = letter
            .fact("DeadLetterQueueSourceArn")
            .context("no source ARN")?;
        ensure!(origin.ends_with(&format!(":{source}")), "{origin}");
        ensure!(
            letter.facts.get("SourceMaxReceiveCount") == Some(&Value::Int(2)),
            "{:?}",
            letter.facts
        );
        ensure!(
            letter.delivery_count == Some(2),
            "{:?}",
            letter.delivery_count
        );
        let sent = letter.time.context("no time")?;
        let four_days = 4 * 24 * 3_600_000;
        ensure!(letter.facts.get("Expires") == Some(&Value::Time(i128::from(sent.0) + four_days)));
        look.close().await?;
        let destination = session.describe(&at).await?;
        ensure!(
            destination.oldest.value == Some(sent),
            "the oldest that was seen is forgotten"
        );
    }
    Ok(())
}

/// A page of the listing holds a thousand.
#[tokio::test(flavor = "multi_thread")]
async fn more_queues_than_a_page_are_all_listed() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let stem = unique("page");
    let names: HashSet<String> = (0..1_050)
        .map(|number| format!("{stem}-{number:04}"))
        .collect();
    let some: Vec<_> = names.iter().collect();
    for part in some.chunks(16) {
        futures::future::try_join_all(part.iter().map(|name| stage.create(name, &[]))).await?;
    }
    let session = stage.session().await?;
    let listed: HashSet<String> = session
        .destinations()
        .await?
        .into_iter()
        .map(|destination| destination.address.name)
        .filter(|name| name.starts_with(&stem))
        .collect();
    ensure!(
        listed == names,
        "{} of {} were listed",
        listed.len(),
        names.len()
    );
    for name in &names {
        let url = stage.queue_url(name).await?;
        stage.client.delete_queue().queue_url(url).send().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_tells_its_settings() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = stage.create_pair(&unique("told"), 7).await?;
    let url = stage.queue_url(&dead).await?;
    let request = stage.client.set_queue_attributes().queue_url(url);
    request
        .attributes(QueueAttributeName::MessageRetentionPeriod, "1209600")
        .attributes(QueueAttributeName::VisibilityTimeout, "90")
        .attributes(QueueAttributeName::MaximumMessageSize, "2048")
        .attributes(
            QueueAttributeName::RedriveAllowPolicy,
            r#"{"redrivePermission":"allowAll"}"#,
        )
        .send()
        .await?;
    let session = stage.session().await?;
    let told = session.describe(&Address::queue(&dead)).await?;
    let fact = |name: &str| {
        told.facts
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    ensure!(told.capability.redrive && told.holds_dead_letters());
    ensure!(told.capability.publish_max_bytes == Some(2048));
    ensure!(
        fact("retention") == Some("14 d") && fact("visibility timeout") == Some("1 min 30 s"),
        "{:?}",
        told.facts
    );
    ensure!(
        fact("may be dead-letter queue of") == Some("every queue"),
        "{:?}",
        told.facts
    );
    let origin = session.describe(&Address::queue(&source)).await?;
    ensure!(origin.dead_letters_to.as_deref() == Some(dead.as_str()));
    ensure!(
        origin.look.verdict == Verdict::Ask && origin.look.looks_left == Some(6),
        "{:?}",
        origin.look
    );
    Ok(())
}

async fn fill(stage: &Stage, queue: &str, count: usize) -> Result<()> {
    let messages: Vec<_> = (0..count)
        .map(|number| plain(&format!("m{number}")))
        .collect();
    stage.send(queue, &messages).await?;
    stage.wait_visible(queue, count as u64).await
}

fn consented(limit: u64) -> LookRequest {
    LookRequest {
        consent: Consent::Given,
        ..LookRequest::new(limit)
    }
}

async fn refused(session: &dyn Session, at: &Address, consent: Consent, words: &str) -> Result<()> {
    let request = LookRequest {
        consent,
        ..LookRequest::new(10)
    };
    let error = session
        .look(at, request)
        .await
        .err()
        .context("the look was not refused")?;
    ensure!(
        error.kind() == ErrorKind::Refused && error.to_string().contains(words),
        "{error}"
    );
    Ok(())
}

/// Everything a look shows, with its notes.
async fn read(look: &dyn Look) -> Result<(Vec<Delivery>, Vec<String>)> {
    let cancel = CancellationToken::new();
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    loop {
        let Page {
            deliveries,
            scan,
            end,
        } = look.next(1000, &cancel).await?;
        seen.extend(deliveries);
        notes.extend(scan.notes);
        if end {
            return Ok((seen, notes));
        }
    }
}
