//! Brokers that die or freeze while they are looked at or published to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dlo_brokers::rabbit::{Broker, Stage, VERSIONS};
use dlo_core::{
    Address, Atomicity, Disposition, ErrorKind, LookRequest, Message, Outgoing, Session, Target,
};
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_under_a_look_and_a_publish_loses_nothing() -> Result<()> {
    for version in VERSIONS {
        let broker = Broker::start(version)?;
        let stage = Stage::at(&broker.url("")?, version).await?;
        let queue = "crash.dlq";
        stage.queue(queue, "quorum", &[]).await?;
        stage.number(queue, 2000).await?;
        broker.restart()?;
        let stage = Stage::at(&broker.url("")?, version).await?;
        stage.await_count(queue, 2000).await?;
        let session = stage.session().await?;
        let look = session
            .look(&Address::queue(queue), LookRequest::new(5000))
            .await?;
        let page = look.next(500, &CancellationToken::new()).await?;
        let locks: Vec<_> = page
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.lock.clone())
            .collect();
        ensure!(!locks.is_empty());

        broker.kill()?;
        // Nobody has to act on the look to learn that it holds nothing any more.
        let end = Instant::now() + Duration::from_secs(10);
        while look.hold().is_some() {
            ensure!(Instant::now() < end, "{version}: a dead broker holds");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let kind = look.extend().await.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::LockLost), "{version}: {kind:?}");
        let answers = look.settle(&locks[..3], Disposition::Ack).await;
        for answer in answers {
            let kind = answer.err().context("a dead broker settled")?.kind();
            ensure!(
                matches!(kind, ErrorKind::OutcomeUnknown | ErrorKind::LockLost),
                "{version}: {kind:?}"
            );
        }
        let returned = look.close().await?;
        ensure!(
            returned.given_back == 0 && returned.lost_hold >= locks.len() as u64,
            "{version}: {returned:?}"
        );
        let answers = publish(session.as_ref(), queue, 1).await;
        ensure!(
            answers.iter().all(Result::is_err),
            "{version}: a dead broker confirmed"
        );

        broker.start_again()?;
        let stage = Stage::at(&broker.url("")?, version).await?;
        // Until a quorum queue has elected its leader again it confirms nothing.
        stage.await_count(queue, 2000).await?;
        // The session opens its connection again by itself.
        for answer in publish(session.as_ref(), queue, 1).await {
            answer?;
        }
        stage.await_count(queue, 2001).await?;
        let left: Vec<Vec<u8>> = stage
            .drain(queue)
            .await?
            .into_iter()
            .map(|message| message.delivery.data)
            .collect();
        let expected: Vec<Vec<u8>> = (0..2000)
            .map(|number| number.to_string().into_bytes())
            .collect();
        ensure!(left[..2000] == expected, "{version}: not in order");
        println!("{version}: {returned:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_a_batch_leaves_the_unconfirmed_unknown() -> Result<()> {
    let broker = Broker::start("4.3")?;
    let stage = Stage::at(&broker.url("")?, "4.3").await?;
    let queue = "crash.batch";
    stage.queue(queue, "quorum", &[]).await?;
    broker.restart()?;
    let stage = Stage::at(&broker.url("")?, "4.3").await?;
    stage.await_count(queue, 0).await?;
    let session = stage.session().await?;
    let (answers, killed) = tokio::join!(publish(session.as_ref(), queue, 50_000), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| broker.kill())
    });
    killed?;
    let confirmed = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        ensure!(error.kind() == ErrorKind::OutcomeUnknown, "{error}");
    }
    broker.start_again()?;
    let stage = Stage::at(&broker.url("")?, "4.3").await?;
    let stored = stage.count(queue).await?;
    println!("{confirmed} were confirmed, {stored} are stored");
    ensure!(
        confirmed < 50_000,
        "the broker was killed too late for this test"
    );
    ensure!(
        stored >= confirmed,
        "{confirmed} were confirmed, but only {stored} are stored"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_broker_is_noticed() -> Result<()> {
    let broker = Broker::start("4.3")?;
    let url = broker.url("")?;
    let session = dlo_brokers::rabbit::session(&url).await?;
    broker.signal("STOP")?;
    let started = Instant::now();
    let error = session
        .describe(&Address::queue("any"))
        .await
        .err()
        .context("a frozen broker answered")?;
    println!("{:?}: {error}", started.elapsed());
    ensure!(
        error.kind() == ErrorKind::Unreachable && error.advice().is_some(),
        "{error}"
    );
    ensure!(started.elapsed() < Duration::from_secs(5));
    let started = Instant::now();
    let error = dlo_brokers::rabbit::session(&url)
        .await
        .err()
        .context("a frozen broker took a connection")?;
    println!("{:?}: {error}", started.elapsed());
    ensure!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    Ok(())
}

async fn publish(
    session: &dyn Session,
    queue: &str,
    count: usize,
) -> Vec<dlo_core::Result<dlo_core::Receipt>> {
    let batch = (0..count)
        .map(|_| Outgoing {
            target: Target::new(Address::queue(queue)),
            message: Message {
                body: Some("again".into()),
                ..Message::default()
            },
            time: None,
        })
        .collect();
    session.publish(batch, Atomicity::Each).await
}
