//! Finding queues and telling their facts: paged, with the redrive policies read both ways.

use std::collections::HashMap;

use aws_sdk_sqs::types::QueueAttributeName;
use dlo_core::{
    Address, DeadLetters, Destination, Error, ErrorKind, Evidence, Figure, LookRequest, Millis,
    Result, name_looks_dead,
};

use crate::{
    age::{self, Ages, DeadLetterQueue},
    capability::{self, Movable},
    cost::{self, cost, grouped},
    error::Doing,
    memory::Source,
    queue::{Encryption, Queue, account_in_arn, name_in_arn, name_in_url},
    session::Shared,
    settle,
};

/// Queues asked for their attributes at a time.
const TASKS: usize = 32;

/// Queues whose age is asked of CloudWatch in one listing: each costs a request that AWS bills.
const AGES: usize = 100;

/// The look that a queue's cost line speaks of.
const USUAL_LOOK: u64 = 10_000;

/// A queue, or only its URL where its attributes may not be read.
enum Found {
    Readable(Box<Queue>),
    Hidden { url: String, error: Error },
}

pub(crate) async fn destinations(shared: &Shared) -> Result<Vec<Destination>> {
    let urls = urls(shared).await?;
    let found = settle::together(urls.into_iter().map(|url| find(shared, url)), TASKS).await;
    let found = present(found)?;
    learn_sources(shared, &found);
    let ages = ages(shared, &found).await;
    Ok(found
        .iter()
        .map(|found| match found {
            Found::Readable(queue) => destination(shared, queue, ages.get(&queue.name).copied()),
            Found::Hidden { url, error } => hidden(url, error),
        })
        .collect())
}

/// Who may not read a queue's settings can still look and send, so a queue that hides them is described without.
pub(crate) async fn describe(shared: &Shared, name: &str) -> Result<Destination> {
    let queue = match shared.queue(name).await {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let url = shared.usable_queue(name).await?.url;
            return Ok(hidden(&url, &error));
        }
        queue => queue?,
    };
    sources(shared, &queue).await;
    let metric = shared.oldest(&queue.name).await;
    Ok(destination(shared, &queue, metric))
}

/// All queue URLs; a page holds up to 1,000.
async fn urls(shared: &Shared) -> Result<Vec<String>> {
    let doing = Doing::new("list the queues", "sqs:ListQueues");
    let mut pages = shared
        .client
        .list_queues()
        .max_results(1000)
        .into_paginator()
        .send();
    let mut urls = Vec::new();
    while let Some(page) = pages.next().await {
        urls.extend(
            page.map_err(|error| doing.failed(error))?
                .queue_urls
                .unwrap_or_default(),
        );
    }
    Ok(urls)
}

async fn find(shared: &Shared, url: String) -> Result<Found> {
    match shared.queue_at(&url).await {
        Ok(queue) => Ok(Found::Readable(Box::new(queue))),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Ok(Found::Hidden { url, error })
        }
        Err(error) => Err(error),
    }
}

/// Without the queues that were deleted since they were listed.
fn present(found: Vec<Result<Found>>) -> Result<Vec<Found>> {
    found
        .into_iter()
        .filter(|found| !matches!(found, Err(error) if error.kind() == ErrorKind::NotFound))
        .collect()
}

/// The redrive policies of all queues, read backwards.
fn learn_sources(shared: &Shared, found: &[Found]) {
    shared.memory.forget_sources();
    let mut by_target: HashMap<String, Vec<Source>> = HashMap::new();
    for found in found {
        if let Found::Readable(queue) = found
            && let Some(policy) = &queue.redrive
        {
            by_target
                .entry(policy.target_arn.clone())
                .or_default()
                .push(source(queue, policy.max_receives));
        }
    }
    for found in found {
        if let Found::Readable(queue) = found {
            shared.memory.learn_sources(
                &queue.name,
                by_target.remove(&queue.arn).unwrap_or_default(),
            );
        }
    }
}

fn source(queue: &Queue, max_receives: u64) -> Source {
    Source {
        name: queue.name.clone(),
        arn: queue.arn.clone(),
        max_receives,
    }
}

/// Asks SQS whose dead-letter queue this is, and those queues for their limits. What cannot be read stays unknown.
pub(crate) async fn sources(shared: &Shared, queue: &Queue) -> Vec<Source> {
    let mut pages = shared
        .client
        .list_dead_letter_source_queues()
        .queue_url(&queue.url)
        .max_results(1000)
        .into_paginator()
        .send();
    let mut urls = Vec::new();
    while let Some(Ok(page)) = pages.next().await {
        urls.extend(page.queue_urls);
    }
    let read = urls.iter().map(|url| shared.queue_at(url));
    let found = settle::together(read, TASKS).await;
    let sources = found.into_iter().flatten().filter_map(|source_queue| {
        let policy = source_queue
            .redrive
            .as_ref()
            .filter(|policy| policy.target_arn == queue.arn)?;
        Some(source(&source_queue, policy.max_receives))
    });
    shared.memory.learn_sources(&queue.name, sources.collect());
    shared.memory.sources(&queue.name).unwrap_or_default()
}

/// Ages of dead-letter queues that hold something. One refusal ends the asking.
async fn ages(shared: &Shared, found: &[Found]) -> HashMap<String, std::time::Duration> {
    let names = found.iter().filter_map(|found| match found {
        Found::Readable(queue)
            if queue.messages() != Some(0) && is_dead_letter_queue(shared, queue) =>
        {
            Some(queue.name.clone())
        }
        _ => None,
    });
    let asked = names.take(AGES).map(|name| async move {
        let age = shared.oldest(&name).await?;
        Some((name, age))
    });
    settle::together(asked, TASKS)
        .await
        .into_iter()
        .flatten()
        .collect()
}

fn is_dead_letter_queue(shared: &Shared, queue: &Queue) -> bool {
    dead_letters(
        queue,
        &shared.memory.sources(&queue.name).unwrap_or_default(),
    ) != DeadLetters::No
}

fn destination(shared: &Shared, queue: &Queue, metric: Option<std::time::Duration>) -> Destination {
    let sources = shared.memory.sources(&queue.name).unwrap_or_default();
    let label = if queue.is_fifo() {
        "FIFO queue"
    } else {
        "standard queue"
    };
    let now = Millis::now();
    let ages = Ages {
        metric,
        seen: shared
            .memory
            .oldest_sent(&queue.name)
            .filter(|_| queue.messages() != Some(0)),
    };
    let (movable, moved_into) = if sources.is_empty() {
        (Movable::No, DeadLetterQueue::No)
    } else {
        (Movable::Yes, DeadLetterQueue::Yes)
    };
    let about = |count: Option<u64>| count.map_or_else(Figure::unknown, Figure::about);
    Destination {
        dead_letters: dead_letters(queue, &sources),
        dead_letters_to: queue
            .redrive
            .as_ref()
            .map(|policy| policy.target().to_owned()),
        depth: about(queue.visible),
        in_flight: about(queue.in_flight),
        delayed: about(queue.delayed),
        oldest: age::oldest_figure(ages, now),
        expires: age::expires_figure(queue, ages, moved_into, now),
        retention: Some(queue.retention),
        capability: capability::of(queue, movable),
        facts: facts(queue),
        look: cost(
            queue,
            &LookRequest::new(USUAL_LOOK),
            shared.memory.highest_receives(&queue.name),
        ),
        sources: sources.into_iter().map(|source| source.name).collect(),
        ..Destination::new(Address::queue(&queue.name), label)
    }
}

fn hidden(url: &str, error: &Error) -> Destination {
    let queue = Queue::parse(url, &HashMap::new());
    let looks_dead = name_looks_dead(&queue.name);
    Destination {
        dead_letters: if looks_dead {
            DeadLetters::Yes(Evidence::Name)
        } else {
            DeadLetters::No
        },
        capability: capability::of(&queue, Movable::No),
        facts: vec![("settings".to_owned(), format!("not readable: {error}"))],
        look: cost::unknown(&LookRequest::new(USUAL_LOOK)),
        ..Destination::new(Address::queue(name_in_url(url)), "queue")
    }
}

fn dead_letters(queue: &Queue, sources: &[Source]) -> DeadLetters {
    if !sources.is_empty() {
        let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
        return DeadLetters::Yes(Evidence::Configuration(format!(
            "redrive policy of {}",
            names.join(", ")
        )));
    }
    match &queue.redrive_allow {
        Some(allow) if allow.permission == "byQueue" => DeadLetters::Yes(Evidence::Configuration(
            "redrive allow policy names its sources".to_owned(),
        )),
        _ if name_looks_dead(&queue.name) => DeadLetters::Yes(Evidence::Name),
        _ => DeadLetters::No,
    }
}

fn facts(queue: &Queue) -> Vec<(String, String)> {
    let mut facts: Vec<(&str, String)> = vec![("ARN", queue.arn.clone())];
    if let Some(policy) = &queue.redrive {
        facts.push((
            "dead letters after",
            format!("{} receives, to {}", policy.max_receives, policy.target()),
        ));
    }
    if let Some(allow) = &queue.redrive_allow {
        facts.push((
            "may be dead-letter queue of",
            allowed(&allow.permission, &allow.source_arns),
        ));
    }
    facts.push(("retention", span(queue.retention)));
    facts.push(("visibility timeout", span(queue.visibility_timeout)));
    if !queue.delay.is_zero() {
        facts.push(("delivery delay", span(queue.delay)));
    }
    facts.push((
        "maximum message size",
        format!("{} bytes", grouped(queue.max_bytes)),
    ));
    facts.push(("encryption", encryption(&queue.encryption)));
    if queue.is_fifo() {
        let by_content = if queue.deduplicates_by_content {
            "by content or id"
        } else {
            "by id"
        };
        let scope = queue.deduplication_scope.as_deref().unwrap_or("queue");
        facts.push((
            "deduplication",
            format!("{by_content}, within 5 minutes, per {scope}"),
        ));
        let limit = queue.throughput_limit.as_deref().unwrap_or("perQueue");
        facts.push(("throughput limit", limit.to_owned()));
    }
    if queue.has_policy {
        facts.push(("access policy", "set".to_owned()));
    }
    if let Some(account) = account_in_arn(&queue.arn) {
        facts.push(("account", account.to_owned()));
    }
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn allowed(permission: &str, sources: &[String]) -> String {
    match permission {
        "allowAll" => "every queue".to_owned(),
        "denyAll" => "no queue".to_owned(),
        _ => sources
            .iter()
            .map(|arn| name_in_arn(arn))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn encryption(encryption: &Encryption) -> String {
    match encryption {
        Encryption::None => "none".to_owned(),
        Encryption::Sqs => "SSE-SQS".to_owned(),
        Encryption::Kms(key) => format!("SSE-KMS with {key}"),
    }
}

/// In the largest units that say it exactly: `4 d`, `1 h 30 min`, `90 s`.
fn span(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let words: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if words.is_empty() {
        "0 s".to_owned()
    } else {
        words.join(" ")
    }
}

/// The attributes that a queue is described by.
pub(crate) const ATTRIBUTES: QueueAttributeName = QueueAttributeName::All;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::queue::tests::queue;

    #[test]
    fn a_policy_is_better_evidence_than_a_name() {
        let orders = Source {
            name: "orders".to_owned(),
            arn: "a".to_owned(),
            max_receives: 3,
        };
        let evidence = |name: &str, sources: &[Source]| dead_letters(&queue(name, &[]), sources);
        assert_eq!(
            evidence("parking", &[orders]),
            DeadLetters::Yes(Evidence::Configuration(
                "redrive policy of orders".to_owned()
            ))
        );
        assert_eq!(
            evidence("orders-dlq", &[]),
            DeadLetters::Yes(Evidence::Name)
        );
        assert_eq!(evidence("orders", &[]), DeadLetters::No);
    }

    #[test]
    fn spans_are_exact() {
        assert_eq!(span(Duration::from_secs(345_600)), "4 d");
        assert_eq!(span(Duration::from_secs(5_430)), "1 h 30 min 30 s");
        assert_eq!(span(Duration::ZERO), "0 s");
    }
}
