//! AWS's own mover, and purge: what SQS does with a whole queue by itself.
//!
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html>

use aws_sdk_sqs::{Client, types::ListMessageMoveTasksResultEntry};
use dlo_core::{ErrorKind, Figure, RedriveState, RedriveTask, Result};

use crate::{error::Doing, memory::Memory, queue::Queue};

/// Messages a second that SQS moves at most.
const MAX_RATE: u32 = 500;

pub(crate) async fn start(
    client: &Client,
    memory: &Memory,
    from: &Queue,
    to: Option<&Queue>,
    rate: Option<u32>,
) -> Result<RedriveTask> {
    let doing = Doing::new("start the move", "sqs:StartMessageMoveTask").at(&from.name);
    if rate.is_some_and(|rate| !(1..=MAX_RATE).contains(&rate)) {
        return Err(doing.error(
            ErrorKind::Rejected,
            format!("SQS moves from 1 to {MAX_RATE} messages a second"),
        ));
    }
    let answer = client
        .start_message_move_task()
        .source_arn(&from.arn)
        .set_destination_arn(to.map(|to| to.arn.clone()))
        .set_max_number_of_messages_per_second(rate.and_then(|rate| i32::try_from(rate).ok()))
        .customize()
        .config_override(crate::config::once())
        .send()
        .await
        .map_err(|error| doing.failed_write(error))?;
    let handle = answer.task_handle.unwrap_or_default();
    // The newest move is this one; when SQS cannot say so, the move runs all the same.
    if let Ok(entries) = entries(client, from).await
        && let Some(newest) = entries.first()
    {
        memory.learn_move(&from.arn, newest.started_timestamp, &handle);
    }
    Ok(RedriveTask {
        id: handle,
        state: RedriveState::Running,
        moved: Figure::about(0),
        to_move: from.visible.map_or_else(Figure::unknown, Figure::about),
        failure: None,
    })
}

/// The latest ten moves from that queue, newest first.
///
/// SQS gives a handle only while a move is running, so the session remembers it by the time of its start: a move keeps its id
/// when it is over.
pub(crate) async fn list(
    client: &Client,
    memory: &Memory,
    from: &Queue,
) -> Result<Vec<RedriveTask>> {
    let entries = entries(client, from).await?;
    for entry in &entries {
        if let Some(handle) = entry.task_handle() {
            memory.learn_move(&from.arn, entry.started_timestamp, handle);
        }
    }
    Ok(entries
        .iter()
        .map(|entry| task(entry, memory.moved(&from.arn, entry.started_timestamp)))
        .collect())
}

async fn entries(client: &Client, from: &Queue) -> Result<Vec<ListMessageMoveTasksResultEntry>> {
    let doing = Doing::new("list the moves", "sqs:ListMessageMoveTasks").at(&from.name);
    let answer = client
        .list_message_move_tasks()
        .source_arn(&from.arn)
        .max_results(10)
        .send()
        .await
        .map_err(|error| doing.failed(error))?;
    let mut entries = answer.results.unwrap_or_default();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.started_timestamp));
    Ok(entries)
}

/// `handle`: what the session remembers of it.
fn task(entry: &ListMessageMoveTasksResultEntry, handle: Option<String>) -> RedriveTask {
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    RedriveTask {
        id: entry
            .task_handle
            .clone()
            .or(handle)
            .unwrap_or_else(|| format!("started-{}", entry.started_timestamp)),
        state: state(entry.status().unwrap_or_default()),
        moved: Figure::about(count(entry.approximate_number_of_messages_moved)),
        to_move: entry
            .approximate_number_of_messages_to_move
            .map_or_else(Figure::unknown, |to| Figure::about(count(to))),
        failure: entry
            .failure_reason
            .clone()
            .filter(|reason| !reason.is_empty()),
    }
}

fn state(status: &str) -> RedriveState {
    match status {
        "RUNNING" => RedriveState::Running,
        "COMPLETED" => RedriveState::Completed,
        "CANCELLING" => RedriveState::Cancelling,
        "CANCELLED" => RedriveState::Cancelled,
        _ => RedriveState::Failed,
    }
}

pub(crate) async fn cancel(client: &Client, task: &RedriveTask) -> Result<()> {
    let doing = Doing::new("stop the move", "sqs:CancelMessageMoveTask");
    client
        .cancel_message_move_task()
        .task_handle(&task.id)
        .send()
        .await
        .map_err(|error| doing.failed(error))?;
    Ok(())
}

/// Deletes every message; the number is SQS's estimate from before. It takes up to 60 seconds, and messages sent in that time
/// may be deleted too. <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html>
pub(crate) async fn purge(client: &Client, queue: &Queue) -> Result<Figure<u64>> {
    let doing = Doing::new("purge the queue", "sqs:PurgeQueue").at(&queue.name);
    client
        .purge_queue()
        .queue_url(&queue.url)
        .customize()
        .config_override(crate::config::once())
        .send()
        .await
        .map_err(|error| doing.failed_write(error))?;
    Ok(queue.messages().map_or_else(Figure::unknown, Figure::about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_move_has_no_handle_and_a_failed_one_its_reason() {
        let entry = ListMessageMoveTasksResultEntry::builder()
            .status("FAILED")
            .failure_reason("CouldNotDetermineMessageSource")
            .approximate_number_of_messages_moved(7)
            .approximate_number_of_messages_to_move(9)
            .started_timestamp(5)
            .build();
        let task = task(&entry, None);
        assert_eq!(
            (task.id.as_str(), task.state),
            ("started-5", RedriveState::Failed)
        );
        assert_eq!(
            (task.moved, task.to_move),
            (Figure::about(7), Figure::about(9))
        );
        assert_eq!(
            task.failure.as_deref(),
            Some("CouldNotDetermineMessageSource")
        );
    }
}
