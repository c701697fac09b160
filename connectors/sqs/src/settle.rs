//! Removing held messages, giving them back, and holding them longer: batches of ten with an answer per entry.

use std::time::Duration;

use aws_sdk_sqs::{
    Client,
    types::{
        BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
        DeleteMessageBatchRequestEntry,
    },
};
use dlo_core::{Error, ErrorKind, Result};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};

use crate::{error::Doing, held::Held, queue::Queue};

/// Entries of a batch. <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub(crate) const BATCH: usize = 10;

/// Batches under way at a time.
const TASKS: usize = 8;

/// Deletes the messages. Deleting twice does no harm, so the SDK may try again.
pub(crate) async fn delete(client: &Client, queue: &Queue, held: &[Held]) -> Vec<Result<()>> {
    let doing = Doing::new("delete messages", "sqs:DeleteMessage").at(&queue.name);
    in_batches(held, TASKS, |batch| async move {
        let entries = entries(batch, |id, held| {
            DeleteMessageBatchRequestEntry::builder()
                .id(id)
                .receipt_handle(&held.receipt)
                .build()
        });
        let entries = match entries {
            Ok(entries) => entries,
            Err(what) => return all(batch, doing.error(ErrorKind::Unexpected, what)),
        };
        let answer = client
            .delete_message_batch()
            .queue_url(&queue.url)
            .set_entries(Some(entries))
            .send()
            .await;
        match answer {
            Ok(answer) => {
                let done: Vec<_> = answer
                    .successful
                    .iter()
                    .map(|entry| entry.id.as_str())
                    .collect();
                answers(batch.len(), &done, &answer.failed, doing)
            }
            Err(error) => all(batch, unsettled(doing.failed_write(error))),
        }
    })
    .await
}

/// In which order batches go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each batch after the one before it was answered.
    InOrder,
    Together,
}

/// Sets the visibility timeouts: zero gives a message back now.
pub(crate) async fn set_visibility(
    client: &Client,
    queue: &Queue,
    held: &[(Held, Duration)],
    pace: Pace,
) -> Vec<Result<()>> {
    let doing = Doing::new(
        "change how long messages are held",
        "sqs:ChangeMessageVisibility",
    )
    .at(&queue.name);
    let tasks = match pace {
        Pace::InOrder => 1,
        Pace::Together => TASKS,
    };
    in_batches(held, tasks, |batch| async move {
        let entries = entries(batch, |id, (held, timeout)| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(id)
                .receipt_handle(&held.receipt)
                .visibility_timeout(i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX))
                .build()
        });
        let entries = match entries {
            Ok(entries) => entries,
            Err(what) => return all(batch, doing.error(ErrorKind::Unexpected, what)),
        };
        let answer = client
            .change_message_visibility_batch()
            .queue_url(&queue.url)
            .set_entries(Some(entries))
            .send()
            .await;
        match answer {
            Ok(answer) => {
                let done: Vec<_> = answer
                    .successful
                    .iter()
                    .map(|entry| entry.id.as_str())
                    .collect();
                answers(batch.len(), &done, &answer.failed, doing)
            }
            Err(error) => all(batch, unsettled(doing.failed_write(error))),
        }
    })
    .await
}

/// One answer per entry, in order. An entry that is in neither list may or may not have been carried out.
pub(crate) fn answers(
    count: usize,
    done: &[&str],
    failed: &[BatchResultErrorEntry],
    doing: Doing<'_>,
) -> Vec<Result<()>> {
    (0..count)
        .map(|index| {
            let id = index.to_string();
            if done.contains(&id.as_str()) {
                return Ok(());
            }
            Err(match failed.iter().find(|entry| entry.id == id) {
                Some(entry) => doing.failed_entry(entry),
                None => doing.error(
                    ErrorKind::OutcomeUnknown,
                    "SQS's answer does not mention the message",
                ),
            })
        })
        .collect()
}

/// Several attempts lie behind the error, and an earlier one may have arrived even where the last one never left.
fn unsettled(error: Error) -> Error {
    if error.kind() != ErrorKind::Unreachable {
        return error;
    }
    Error::new(
        ErrorKind::OutcomeUnknown,
        error.operation().to_owned(),
        error.what().to_owned(),
    )
    .caused_by(error)
}

/// Entries named by their place in the batch.
fn entries<T, E>(
    batch: &[T],
    build: impl Fn(String, &T) -> Result<E, aws_sdk_sqs::error::BuildError>,
) -> Result<Vec<E>, String> {
    batch
        .iter()
        .enumerate()
        .map(|(index, item)| build(index.to_string(), item).map_err(|error| error.to_string()))
        .collect()
}

fn all<T>(batch: &[T], error: Error) -> Vec<Result<()>> {
    vec![Err(error); batch.len()]
}

async fn in_batches<'a, T, F>(
    items: &'a [T],
    tasks: usize,
    one: impl Fn(&'a [T]) -> F,
) -> Vec<Result<()>>
where
    F: Future<Output = Vec<Result<()>>> + Send + 'a,
{
    together(items.chunks(BATCH).map(one), tasks)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// Runs the futures, so many at a time, and gives their answers in order.
pub(crate) async fn together<'a, T, F>(futures: impl IntoIterator<Item = F>, tasks: usize) -> Vec<T>
where
    F: Future<Output = T> + Send + 'a,
    T: Send + 'a,
{
    // Boxed one by one, because a stream that maps borrowed items to futures is not known to be `Send`.
    let futures: Vec<BoxFuture<'a, T>> = futures.into_iter().map(FutureExt::boxed).collect();
    stream::iter(futures).buffered(tasks).collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_gets_its_own_answer() {
        let failed = [BatchResultErrorEntry::builder()
            .id("1")
            .code("ReceiptHandleIsInvalid")
            .sender_fault(true)
            .build()
            .expect("complete")];
        let doing = Doing::new("delete messages", "sqs:DeleteMessage");
        let kinds: Vec<_> = answers(3, &["0"], &failed, doing)
            .into_iter()
            .map(|answer| answer.map_err(|error| error.kind()))
            .collect();
        assert_eq!(
            kinds,
            [
                Ok(()),
                Err(ErrorKind::LockLost),
                Err(ErrorKind::OutcomeUnknown)
            ]
        );
    }
}
