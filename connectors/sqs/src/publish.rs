//! Sending messages: checked first, in batches by count and bytes, with an answer per message.
//!
//! A standard queue has no order, so its batches travel together. A FIFO queue keeps order per group, and a batch may fail in
//! part; so a batch carries at most one message of a group, goes out after the one before was answered, and what follows a
//! failed message in its group is held back.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use aws_sdk_sqs::{
    Client,
    error::BuildError,
    operation::send_message_batch::SendMessageBatchOutput,
    types::{
        MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
        SendMessageBatchRequestEntry,
    },
};
use dlo_core::{Error, ErrorKind, Position, Receipt, Result};
use uuid::Uuid;

use crate::{
    check::Ready,
    config,
    error::Doing,
    queue::{MAX_BYTES, Queue},
    settle::{self, BATCH},
};

/// Batches under way at a time to a standard queue.
const TASKS: usize = 8;

/// A throttled batch was surely not stored, so it is tried again this often.
const THROTTLED_TRIES: u32 = 5;

/// A checked message with its place in the caller's batch.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub index: usize,
    pub ready: Ready,
}

type Answer = (usize, Result<Receipt>);

/// Sends all of them to one queue and answers for each.
pub(crate) async fn send(client: &Client, queue: &Queue, entries: Vec<Entry>) -> Vec<Answer> {
    if queue.is_fifo() {
        send_in_order(client, queue, entries).await
    } else {
        send_together(client, queue, entries).await
    }
}

async fn send_together(client: &Client, queue: &Queue, entries: Vec<Entry>) -> Vec<Answer> {
    let batches = pack(entries)
        .into_iter()
        .map(|batch| send_batch(client, queue, batch));
    settle::together(batches, TASKS)
        .await
        .into_iter()
        .flatten()
        .collect()
}

async fn send_in_order(client: &Client, queue: &Queue, entries: Vec<Entry>) -> Vec<Answer> {
    let doing = doing(queue);
    let mut answers = Vec::with_capacity(entries.len());
    let mut failed: HashSet<String> = HashSet::new();
    for batch in pack_by_group(entries) {
        let (held_back, batch): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|entry| failed.contains(group(entry)));
        answers.extend(held_back.into_iter().map(|entry| {
            let error = doing
                .error(
                    ErrorKind::Refused,
                    format!(
                        "an earlier message of the group {} was not stored",
                        group(&entry)
                    ),
                )
                .advise(
                    "Send the group again from the message that failed, so that its order is kept.",
                );
            (entry.index, Err(error))
        }));
        if batch.is_empty() {
            continue;
        }
        let groups: HashMap<usize, String> = batch
            .iter()
            .map(|entry| (entry.index, group(entry).to_owned()))
            .collect();
        for (index, answer) in send_batch(client, queue, batch).await {
            if answer.is_err() {
                failed.extend(groups.get(&index).cloned());
            }
            answers.push((index, answer));
        }
    }
    answers
}

fn group(entry: &Entry) -> &str {
    entry.ready.group.as_deref().unwrap_or_default()
}

fn doing(queue: &Queue) -> Doing<'_> {
    Doing::new("send messages", "sqs:SendMessage").at(&queue.name)
}

/// Batches of ten and of 1 MiB at most, in order.
fn pack(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut batches: Vec<Vec<Entry>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH && bytes + entry.ready.size <= MAX_BYTES => {
                bytes += entry.ready.size;
                batch.push(entry);
            }
            _ => {
                bytes = entry.ready.size;
                batches.push(vec![entry]);
            }
        }
    }
    batches
}

/// As [`pack`], with each batch taking the next message of every group in turn, so that none has two of a group.
fn pack_by_group(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut names: Vec<String> = Vec::new();
    let mut groups: HashMap<String, VecDeque<Entry>> = HashMap::new();
    for entry in entries {
        let name = group(&entry).to_owned();
        groups
            .entry(name.clone())
            .or_insert_with(|| {
                names.push(name);
                VecDeque::new()
            })
            .push_back(entry);
    }
    let mut batches = Vec::new();
    while !groups.is_empty() {
        let round: Vec<Entry> = names
            .iter()
            .filter_map(|name| groups.get_mut(name).and_then(VecDeque::pop_front))
            .collect();
        batches.extend(pack(round));
        groups.retain(|_, rest| !rest.is_empty());
        names.retain(|name| groups.contains_key(name));
    }
    batches
}

async fn send_batch(client: &Client, queue: &Queue, batch: Vec<Entry>) -> Vec<Answer> {
    let mut pause = Duration::from_millis(100);
    for _ in 1..THROTTLED_TRIES {
        match try_batch(client, queue, &batch).await {
            Err(error) if error.kind() == ErrorKind::Throttled => tokio::time::sleep(pause).await,
            Err(error) => return all(&batch, error),
            Ok(answer) => return answers(&batch, &answer, queue),
        }
        pause *= 2;
    }
    match Doing::exhausted(try_batch(client, queue, &batch).await) {
        Err(error) => all(&batch, error),
        Ok(answer) => answers(&batch, &answer, queue),
    }
}

async fn try_batch(
    client: &Client,
    queue: &Queue,
    batch: &[Entry],
) -> Result<SendMessageBatchOutput> {
    let doing = doing(queue);
    let entries = batch
        .iter()
        .enumerate()
        .map(|(place, entry)| to_sdk(place, &entry.ready, queue))
        .collect::<Result<Vec<_>, String>>()
        .map_err(|what| doing.error(ErrorKind::Rejected, what))?;
    let request = client
        .send_message_batch()
        .queue_url(&queue.url)
        .set_entries(Some(entries));
    request
        .customize()
        .config_override(config::once())
        .send()
        .await
        .map_err(|error| doing.failed_write(error))
}

fn to_sdk(
    place: usize,
    ready: &Ready,
    queue: &Queue,
) -> Result<SendMessageBatchRequestEntry, String> {
    let mut builder = SendMessageBatchRequestEntry::builder()
        .id(place.to_string())
        .message_body(&ready.body)
        .set_message_group_id(ready.group.clone())
        .set_delay_seconds(ready.delay);
    for attribute in &ready.attributes {
        builder = builder.message_attributes(&attribute.name, attribute.to_sdk()?);
    }
    if let Some(trace) = &ready.trace {
        let name = MessageSystemAttributeNameForSends::AwsTraceHeader;
        builder = builder.message_system_attributes(
            name,
            trace_value(trace).map_err(|error| error.to_string())?,
        );
    }
    if queue.is_fifo() {
        // A fresh id each time, also where the queue would hash the body: a replay is meant to arrive even when the
        // same body was sent less than five minutes ago.
        let id = ready
            .deduplication
            .clone()
            .unwrap_or_else(|| Uuid::new_v4().to_string());
        builder = builder.message_deduplication_id(id);
    }
    builder.build().map_err(|error| error.to_string())
}

fn trace_value(trace: &str) -> Result<MessageSystemAttributeValue, BuildError> {
    MessageSystemAttributeValue::builder()
        .data_type("String")
        .string_value(trace)
        .build()
}

fn all(batch: &[Entry], error: Error) -> Vec<Answer> {
    batch
        .iter()
        .map(|entry| (entry.index, Err(error.clone())))
        .collect()
}

fn answers(batch: &[Entry], answer: &SendMessageBatchOutput, queue: &Queue) -> Vec<Answer> {
    let doing = doing(queue);
    let one = |place: usize, entry: &Entry| {
        let id = place.to_string();
        if let Some(stored) = answer.successful.iter().find(|stored| stored.id == id) {
            return Ok(Receipt {
                position: Some(Position::Id {
                    id: stored.message_id.clone(),
                }),
                answer: words(stored.sequence_number(), &entry.ready.left_out),
            });
        }
        Err(match answer.failed.iter().find(|failed| failed.id == id) {
            Some(failed) => doing.failed_entry(failed),
            None => doing.error(
                ErrorKind::OutcomeUnknown,
                "SQS's answer does not mention the message",
            ),
        })
    };
    batch
        .iter()
        .enumerate()
        .map(|(place, entry)| (entry.index, one(place, entry)))
        .collect()
}

fn words(sequence: Option<&str>, left_out: &[String]) -> String {
    let mut words = match sequence {
        Some(sequence) => format!("stored, sequence number {sequence}"),
        None => "stored".to_owned(),
    };
    if !left_out.is_empty() {
        words.push_str(", without ");
        words.push_str(&left_out.join(", "));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::queue;

    fn entry(index: usize, size: u64, group: Option<&str>) -> Entry {
        let ready = Ready {
            body: "x".to_owned(),
            attributes: Vec::new(),
            group: group.map(str::to_owned),
            deduplication: None,
            trace: None,
            delay: None,
            size,
            left_out: Vec::new(),
        };
        Entry { index, ready }
    }

    fn indexes(batches: Vec<Vec<Entry>>) -> Vec<Vec<usize>> {
        batches
            .into_iter()
            .map(|batch| batch.into_iter().map(|entry| entry.index).collect())
            .collect()
    }

    #[test]
    fn batches_end_at_ten_and_at_one_mebibyte() {
        let small = (0..23).map(|index| entry(index, 10, None)).collect();
        assert_eq!(
            pack(small).iter().map(Vec::len).collect::<Vec<_>>(),
            [10, 10, 3]
        );
        let large = vec![
            entry(0, 600_000, None),
            entry(1, 448_576, None),
            entry(2, 1, None),
        ];
        assert_eq!(indexes(pack(large)), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_batch_never_holds_two_of_a_group_and_keeps_their_order() {
        let groups = ["a", "b", "a", "c", "a", "b"];
        let entries = groups
            .iter()
            .enumerate()
            .map(|(index, group)| entry(index, 1, Some(group)))
            .collect();
        assert_eq!(
            indexes(pack_by_group(entries)),
            [vec![0, 1, 3], vec![2, 5], vec![4]]
        );
    }

    #[test]
    fn fifo_messages_get_a_fresh_deduplication_id_each_time() {
        let fifo = queue("q.fifo", &[]);
        let ready = entry(0, 1, Some("g")).ready;
        let first = to_sdk(0, &ready, &fifo).expect("an entry");
        let second = to_sdk(0, &ready, &fifo).expect("an entry");
        assert_ne!(
            first.message_deduplication_id(),
            second.message_deduplication_id()
        );
        assert_eq!(first.message_group_id(), Some("g"));
        let standard = to_sdk(0, &ready, &queue("q", &[])).expect("an entry");
        assert_eq!(standard.message_deduplication_id(), None);
    }
}
