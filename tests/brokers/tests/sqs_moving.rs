//! What SQS does with a whole queue by itself: moving it back, and purging it. On LocalStack: ElasticMQ forgets a move as soon
//! as it is stopped and hangs on a queue that is no dead-letter queue.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dlo_brokers::sqs::{LOCALSTACK, Stage, unique};
use dlo_core::{Address, ErrorKind, RedriveRequest, RedriveState, RedriveTask, Session};

const MANY: u64 = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_move_shows_its_progress_and_can_be_stopped() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = stage.create_pair(&unique("move"), 5).await?;
    stage
        .fill_with(&dead, MANY as usize, |number| format!("m{number}"))
        .await?;
    stage.wait_visible(&dead, MANY).await?;
    let session = stage.session().await?;
    let from = Address::queue(&dead);
    let mut request = RedriveRequest {
        from: from.clone(),
        // Messages that were never moved by SQS have no origin of their own, so it must be named.
        to: Some(Address::queue(&source)),
        rate: Some(500),
    };
    let task = session.redrive(&request).await?;
    let running = wait(session.as_ref(), &from, &task.id, |task| {
        task.moved.value > Some(0)
    })
    .await?;
    ensure!(
        running.state == RedriveState::Running && running.to_move.value == Some(MANY),
        "{running:?}"
    );
    session.cancel_redrive(&running).await?;
    let stopped = wait(session.as_ref(), &from, &task.id, |task| {
        task.state == RedriveState::Cancelled
    })
    .await?;
    let moved = stopped.moved.value.context("no number")?;
    ensure!(moved > 0 && moved < MANY, "{stopped:?}");
    let (left, arrived) = (stage.visible(&dead).await?, stage.visible(&source).await?);
    ensure!(
        left + arrived == MANY && left > 0,
        "{left} left and {arrived} arrived"
    );
    request.rate = None;
    let task = session.redrive(&request).await?;
    wait(session.as_ref(), &from, &task.id, |task| {
        task.state == RedriveState::Completed
    })
    .await?;
    stage.wait_visible(&source, MANY).await?;
    stage.wait_visible(&dead, 0).await?;
    let newest = session.redrives(&from).await?;
    ensure!(
        newest.first().is_some_and(|newest| newest.id == task.id),
        "{newest:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_dead_letter_queue_can_be_moved() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let queue = unique("plain");
    stage.create(&queue, &[]).await?;
    let session = stage.session().await?;
    let request = RedriveRequest {
        from: Address::queue(&queue),
        to: None,
        rate: None,
    };
    let error = session
        .redrive(&request)
        .await
        .err()
        .context("the move began")?;
    ensure!(error.kind() == ErrorKind::Unsupported, "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_names_its_number_and_the_minute_between_two() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let queue = unique("purge");
    stage.create(&queue, &[]).await?;
    stage
        .fill_with(&queue, 312, |number| format!("m{number}"))
        .await?;
    stage.wait_visible(&queue, 312).await?;
    let session = stage.session().await?;
    let at = Address::queue(&queue);
    ensure!(session.purge(&at).await?.value == Some(312));
    stage.wait_visible(&queue, 0).await?;
    let error = session
        .purge(&at)
        .await
        .err()
        .context("a second purge was taken")?;
    ensure!(
        error.kind() == ErrorKind::Throttled && error.to_string().contains("60 seconds"),
        "{error}"
    );
    Ok(())
}

/// Asks until the move is so far.
async fn wait(
    session: &dyn Session,
    from: &Address,
    id: &str,
    so_far: impl Fn(&RedriveTask) -> bool,
) -> Result<RedriveTask> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = session.redrives(from).await?;
        let task = tasks.iter().find(|task| task.id == id);
        if let Some(task) = task.filter(|task| so_far(task)) {
            return Ok(task.clone());
        }
        ensure!(
            Instant::now() < end,
            "the move did not get so far: {tasks:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
