//! Looking at real queues: nothing lost, order kept, counts as announced, and a refusal at the edge.

use std::sync::Arc;

use anyhow::{Result, ensure};
use dlo_brokers::{
    on_every_version,
    rabbit::{Stage, number},
};
use dlo_core::{Address, Delivery, Disposition, ErrorKind, Look, LookRequest, Session, Verdict};
use tokio_util::sync::CancellationToken;

on_every_version! {
    three_looks_in_one_session_at_a_classic_queue,
    three_looks_in_one_session_at_a_quorum_queue,
    a_look_in_each_of_three_sessions,
    pages_of_one_look_keep_the_order,
    at_the_edge_of_the_limit_a_look_is_refused,
    at_the_edge_a_fresh_session_refuses_and_loses_nothing,
    many_single_acks_all_arrive,
}

const MANY: usize = 10_000;

async fn three_looks_in_one_session_at_a_classic_queue(stage: &Stage) -> Result<()> {
    let queue = "look.classic.dlq";
    stage.queue(queue, "classic", &[]).await?;
    stage.number(queue, MANY).await?;
    let session = stage.session().await?;
    for _ in 0..3 {
        look_at_all(stage, session.as_ref(), queue, MANY).await?;
    }
    ensure!(stage.drain_numbers(queue).await? == (0..MANY).collect::<Vec<_>>());
    Ok(())
}

async fn three_looks_in_one_session_at_a_quorum_queue(stage: &Stage) -> Result<()> {
    let queue = "look.quorum.dlq";
    stage
        .queue(queue, "quorum", &[("x-delivery-limit", number(20))])
        .await?;
    stage.number(queue, MANY).await?;
    let session = stage.session().await?;
    let cost = session
        .cost(&Address::queue(queue), &LookRequest::new(100_000))
        .await?;
    println!("{}", cost.line);
    for _ in 0..3 {
        look_at_all(stage, session.as_ref(), queue, MANY).await?;
    }
    check_counts_and_order(stage, queue, 3, &cost.line).await
}

async fn a_look_in_each_of_three_sessions(stage: &Stage) -> Result<()> {
    let queue = "look.sessions.dlq";
    stage
        .queue(queue, "quorum", &[("x-delivery-limit", number(20))])
        .await?;
    stage.number(queue, MANY).await?;
    let mut line = String::new();
    for _ in 0..3 {
        let session = stage.session().await?;
        // A look that has just been closed must not be taken for a live consumer.
        let cost = session
            .cost(&Address::queue(queue), &LookRequest::new(10))
            .await?;
        ensure!(
            !cost
                .reasons
                .iter()
                .any(|reason| reason.contains("live consumer")),
            "{cost:?}"
        );
        line = session
            .cost(&Address::queue(queue), &LookRequest::new(100_000))
            .await?
            .line;
        look_at_all(stage, session.as_ref(), queue, MANY).await?;
        session.close().await?;
    }
    check_counts_and_order(stage, queue, 3, &line).await
}

/// Small pages, larger and then smaller looks: what was taken page by page goes back as one, to where it was.
async fn pages_of_one_look_keep_the_order(stage: &Stage) -> Result<()> {
    for (kind, limit) in [("classic", None), ("quorum", None), ("quorum", Some(100))] {
        let queue = "look.pages.dlq";
        let arguments: Vec<_> = limit
            .map(|limit| ("x-delivery-limit", number(limit)))
            .into_iter()
            .collect();
        stage.queue(queue, kind, &arguments).await?;
        stage.number(queue, 1500).await?;
        let session = stage.session().await?;
        for size in [8, 33, 100, 1000, 100, 8] {
            let look = open(session.as_ref(), queue, size).await?;
            let seen = read(look.as_ref(), 7).await?;
            ensure!(
                seen.len() as u64 == size,
                "{} of {size} were shown",
                seen.len()
            );
            look.close().await?;
            stage.await_count(queue, 1500).await?;
        }
        let left = stage.drain_numbers(queue).await?;
        ensure!(
            left == (0..1500).collect::<Vec<_>>(),
            "{kind} {limit:?}: {:?}…",
            &left[..20]
        );
    }
    Ok(())
}

async fn at_the_edge_of_the_limit_a_look_is_refused(stage: &Stage) -> Result<()> {
    let queue = "look.edge.dlq";
    stage
        .queue(queue, "quorum", &[("x-delivery-limit", number(3))])
        .await?;
    stage.number(queue, 50).await?;
    let session = stage.session().await?;
    let request = LookRequest::new(100);
    for round in 0..3 {
        let cost = session.cost(&Address::queue(queue), &request).await?;
        ensure!(cost.verdict < Verdict::Ask, "look {round}: {cost:?}");
        if !stage.is_at_least(4, 3) {
            ensure!(cost.looks_left == Some(3 - round), "look {round}: {cost:?}");
            ensure!(
                cost.verdict == Verdict::Warn,
                "a limit this near warns: {cost:?}"
            );
        }
        look_at_all(stage, session.as_ref(), queue, 50).await?;
    }
    let cost = session.cost(&Address::queue(queue), &request).await?;
    if stage.is_at_least(4, 3) {
        // Giving back by nack counts nothing there, so there is no edge to come to.
        ensure!(cost.looks_left.is_none(), "{cost:?}");
        look_at_all(stage, session.as_ref(), queue, 50).await?;
    } else {
        ensure!(
            cost.verdict == Verdict::Refuse && !cost.reasons.is_empty(),
            "{cost:?}"
        );
        println!("{}", cost.reasons.join(" "));
        let refused = session.look(&Address::queue(queue), request).await.err();
        ensure!(refused.map(|error| error.kind()) == Some(ErrorKind::Refused));
    }
    ensure!(stage.drain_numbers(queue).await? == (0..50).collect::<Vec<_>>());
    Ok(())
}

/// No broker tells the counts before a message is taken, so a session without a past learns it from the first one.
async fn at_the_edge_a_fresh_session_refuses_and_loses_nothing(stage: &Stage) -> Result<()> {
    let queue = "look.fresh.dlq";
    stage
        .queue(queue, "quorum", &[("x-delivery-limit", number(2))])
        .await?;
    stage.number(queue, 20).await?;
    for _ in 0..2 {
        let session = stage.session().await?;
        look_at_all(stage, session.as_ref(), queue, 20).await?;
        session.close().await?;
    }
    let session = stage.session().await?;
    let look = open(session.as_ref(), queue, 100).await?;
    let looked = read(look.as_ref(), 50).await;
    let returned = look.close().await?;
    if stage.is_at_least(4, 3) {
        ensure!(looked?.len() == 20);
    } else {
        let error = looked
            .err()
            .and_then(|error| error.downcast::<dlo_core::Error>().ok());
        ensure!(
            error.as_ref().map(dlo_core::Error::kind) == Some(ErrorKind::Refused),
            "{error:?}"
        );
        ensure!(returned.rescued == 1, "{returned:?}");
    }
    stage.await_count(queue, 20).await?;
    let mut left = stage.drain_numbers(queue).await?;
    left.sort_unstable();
    ensure!(left == (0..20).collect::<Vec<_>>());
    Ok(())
}

/// A quorum queue's channel keeps 32 settlements on the way; a close must not drop the others.
async fn many_single_acks_all_arrive(stage: &Stage) -> Result<()> {
    for kind in ["classic", "quorum"] {
        let queue = "look.acks.dlq";
        stage.queue(queue, kind, &[]).await?;
        stage.number(queue, 600).await?;
        let session = stage.session().await?;
        let look = open(session.as_ref(), queue, 600).await?;
        let seen = read(look.as_ref(), 600).await?;
        let every_second: Vec<_> = seen
            .iter()
            .skip(1)
            .step_by(2)
            .filter_map(|d| d.lock.clone())
            .collect();
        for answer in look.settle(&every_second, Disposition::Ack).await {
            answer?;
        }
        let returned = look.close().await?;
        ensure!(returned.given_back == 300, "{returned:?}");
        stage.await_count(queue, 300).await?;
        let left = stage.drain_numbers(queue).await?;
        ensure!(left == (0..600).step_by(2).collect::<Vec<_>>(), "{kind}");
    }
    Ok(())
}

async fn open(session: &dyn Session, queue: &str, limit: u64) -> Result<Arc<dyn Look>> {
    Ok(session
        .look(&Address::queue(queue), LookRequest::new(limit))
        .await?)
}

async fn read(look: &dyn Look, page: usize) -> Result<Vec<Delivery>> {
    let (mut seen, cancel) = (Vec::new(), CancellationToken::new());
    loop {
        let page = look.next(page, &cancel).await?;
        seen.extend(page.deliveries);
        if page.end {
            return Ok(seen);
        }
    }
}

async fn look_at_all(
    stage: &Stage,
    session: &dyn Session,
    queue: &str,
    count: usize,
) -> Result<()> {
    let look = open(session, queue, 100_000).await?;
    let seen = read(look.as_ref(), 1000).await?;
    let bodies: Vec<String> = seen
        .iter()
        .filter_map(|d| d.message.body.as_ref())
        .map(|b| String::from_utf8_lossy(b).into_owned())
        .collect();
    ensure!(
        bodies == (0..count).map(|n| n.to_string()).collect::<Vec<_>>(),
        "{} messages were shown, or not in order",
        bodies.len()
    );
    ensure!(
        stage.count(queue).await? == 0,
        "some messages were not held"
    );
    let returned = look.close().await?;
    ensure!(
        returned.given_back == count as u64 && returned.lost_hold == 0,
        "{returned:?}"
    );
    stage.await_count(queue, count as u64).await
}

/// All are there, in order, and the quorum queue's count rose by what the line had said.
async fn check_counts_and_order(stage: &Stage, queue: &str, looks: i64, line: &str) -> Result<()> {
    let said = if line.contains("counts no delivery") {
        0
    } else {
        looks
    };
    let left = stage.drain(queue).await?;
    ensure!(left.len() == MANY, "{} are left", left.len());
    for (place, message) in left.iter().enumerate() {
        ensure!(
            message.data == place.to_string().into_bytes(),
            "place {place} has {:?}",
            message.data
        );
        let headers = message.properties.headers().as_ref();
        let count = headers.and_then(|headers| headers.inner().get("x-delivery-count").cloned());
        let count = match count {
            Some(lapin::types::AMQPValue::LongLongInt(count)) => count,
            _ => 0,
        };
        ensure!(
            count <= said,
            "message {place} was counted {count} times, the line said: {line}"
        );
    }
    Ok(())
}
