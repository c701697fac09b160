//! Topics as destinations with the facts a person decides by.

use std::collections::BTreeMap;

use dlo_core::{
    Address, DeadLetters, Destination, Error, Evidence, Figure, Isolation, LookCost, Millis,
    Partition, Result, Verdict, name_looks_dead,
};

use crate::{
    broker::Broker,
    capability::{TopicConfig, capability, is_internal},
    fetch, groups,
    metadata::{self, Part, Topic, Which},
};

/// One line about what looking costs: nothing.
const COST: &str = "reads at offsets: joins no group, commits nothing, takes nothing from anybody";

/// All topics, with offsets and configuration but without groups, which cost a request each.
pub(crate) fn all(broker: &Broker) -> Result<Vec<Destination>> {
    let topics = metadata::topics(broker)?;
    let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
    let configs = metadata::configs(broker, &names);
    let parts: Vec<Part> = topics
        .iter()
        .flat_map(|topic| topic.led().into_iter().map(|id| (topic.name.clone(), id)))
        .collect();
    let starts = metadata::offsets(broker, &parts, Which::LogStart).unwrap_or_default();
    let end = Which::End(Isolation::ReadUncommitted);
    let ends = metadata::offsets(broker, &parts, end).unwrap_or_default();
    let found = topics.iter().map(|topic| {
        let partitions = partitions(topic, &starts, &ends);
        destination(topic, configs.get(&topic.name), partitions)
    });
    Ok(found.collect())
}

/// One topic with all that can be had.
pub(crate) fn one(broker: &Broker, name: &str) -> Result<Destination> {
    let topic = metadata::topic(broker, name, "describe the topic")?;
    let config = metadata::configs(broker, &[name.to_owned()]).remove(name);
    let led = topic.led();
    let ends = metadata::bounds(broker, name, &led, Isolation::ReadUncommitted)?;
    let stable = metadata::bounds(broker, name, &led, Isolation::ReadCommitted)?;
    let partitions = topic.partitions.iter().map(|(id, leader)| {
        let (log_start, high_watermark) = ends.get(id).copied().unwrap_or_default();
        Partition {
            id: *id,
            log_start,
            high_watermark,
            last_stable: stable.get(id).map(|bounds| bounds.1),
            leader: *leader,
        }
    });
    let mut destination = destination(&topic, config.as_ref(), partitions.collect());
    destination.look = cost(&destination.partitions, Isolation::ReadCommitted);
    oldest(broker, &mut destination, config.as_ref());
    let marks = ends.iter().map(|(id, bounds)| (*id, bounds.1)).collect();
    match groups::of_topic(broker, name, &marks) {
        Ok(found) => {
            let consumers: u32 = found.groups.iter().filter_map(|group| group.members).sum();
            destination.consumers = if found.complete {
                Figure::exact(u64::from(consumers))
            } else {
                Figure::at_least(u64::from(consumers))
            };
            destination.groups = found.groups;
        }
        Err(error) => destination
            .facts
            .push(("consumer groups".to_owned(), unknown(&error))),
    }
    Ok(destination)
}

/// What a look costs: nothing, but an open transaction can hide records, and a person should know.
pub(crate) fn cost(partitions: &[Partition], isolation: Isolation) -> LookCost {
    let hidden: i64 = partitions
        .iter()
        .filter_map(|partition| Some(partition.high_watermark - partition.last_stable?))
        .filter(|hidden| *hidden > 0)
        .sum();
    let hides = isolation == Isolation::ReadCommitted && hidden > 0;
    LookCost {
        verdict: if hides { Verdict::Warn } else { Verdict::Fine },
        line: COST.to_owned(),
        reasons: if hides {
            vec![hidden_note(hidden)]
        } else {
            Vec::new()
        },
        looks_left: None,
    }
}

/// Says that an open transaction hides records.
pub(crate) fn hidden_note(offsets: i64) -> String {
    format!("An open transaction hides the last {offsets} offsets; read uncommitted shows them.")
}

fn unknown(error: &Error) -> String {
    format!("not known: {}", error.what())
}

fn partitions(
    topic: &Topic,
    starts: &BTreeMap<Part, i64>,
    ends: &BTreeMap<Part, i64>,
) -> Vec<Partition> {
    let of = |id: i32, offsets: &BTreeMap<Part, i64>| {
        offsets
            .get(&(topic.name.clone(), id))
            .copied()
            .unwrap_or_default()
    };
    topic
        .partitions
        .iter()
        .map(|(id, leader)| Partition {
            id: *id,
            log_start: of(*id, starts),
            high_watermark: of(*id, ends),
            last_stable: None,
            leader: *leader,
        })
        .collect()
}

fn destination(
    topic: &Topic,
    config: Option<&TopicConfig>,
    partitions: Vec<Partition>,
) -> Destination {
    let internal = is_internal(&topic.name);
    let label = if internal { "internal topic" } else { "topic" };
    let mut destination = Destination::new(Address::topic(&topic.name), label);
    destination.dead_letters = dead_letters(&topic.name, config);
    destination.depth = depth(topic, &partitions);
    // Nobody holds a record of a log, and none is delayed.
    destination.in_flight = Figure::exact(0);
    destination.delayed = Figure::exact(0);
    destination.retention = config
        .filter(|config| config.deletes())
        .and_then(|config| config.retention);
    destination.capability = capability(&topic.name, config);
    destination.look = cost(&partitions, Isolation::ReadCommitted);
    destination.facts = facts(topic, config);
    destination.partitions = partitions;
    destination
}

/// The configuration of the broker beats the name, which is only a hint. What the records say is the engine's to judge.
fn dead_letters(name: &str, config: Option<&TopicConfig>) -> DeadLetters {
    if config.is_some_and(|config| config.takes_dead_letters) {
        let setting = "errors.deadletterqueue.group.enable=true".to_owned();
        return DeadLetters::Yes(Evidence::Configuration(setting));
    }
    if !is_internal(name) && name_looks_dead(name) {
        return DeadLetters::Yes(Evidence::Name);
    }
    DeadLetters::No
}

/// Offsets only bound the number: markers, aborted records and compaction leave gaps.
fn depth(topic: &Topic, partitions: &[Partition]) -> Figure<u64> {
    let offsets: i64 = partitions
        .iter()
        .map(|p| (p.high_watermark - p.log_start).max(0))
        .sum();
    let offsets = u64::try_from(offsets).unwrap_or_default();
    if !topic.without_leader().is_empty() {
        return Figure::unknown();
    }
    if offsets == 0 {
        Figure::exact(0)
    } else {
        Figure::at_most(offsets)
    }
}

fn facts(topic: &Topic, config: Option<&TopicConfig>) -> Vec<(String, String)> {
    let mut facts = vec![("partitions".to_owned(), topic.partitions.len().to_string())];
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    match config {
        None => fact(
            "configuration",
            "not readable with these credentials".to_owned(),
        ),
        Some(config) => {
            fact("cleanup policy", config.cleanup.clone());
            if let Some(bytes) = config.max_bytes {
                fact("max.message.bytes", bytes.to_string());
            }
            fact("timestamps", config.timestamps.clone());
            if let Some(replicas) = &config.min_in_sync {
                fact("min.insync.replicas", replicas.clone());
            }
        }
    }
    let leaderless = topic.without_leader();
    if !leaderless.is_empty() {
        let ids: Vec<_> = leaderless.iter().map(i32::to_string).collect();
        fact("without leader", ids.join(", "));
    }
    facts
}

/// The time of the first record of each partition; the oldest of them is about the oldest of all.
fn oldest(broker: &Broker, destination: &mut Destination, config: Option<&TopicConfig>) {
    let name = destination.address.name.clone();
    let filled = |partition: &&Partition| {
        partition.leader.is_some() && partition.high_watermark > partition.log_start
    };
    let places: Vec<_> = destination
        .partitions
        .iter()
        .filter(filled)
        .take(64)
        .map(|partition| (partition.id, partition.log_start))
        .collect();
    let isolation = Isolation::ReadUncommitted;
    let Ok(reader) = broker.reader(isolation) else {
        return;
    };
    let Ok(first) = fetch::first(&reader, &name, &places) else {
        return;
    };
    broker.keep(isolation, reader);
    let Some(time) = first.into_iter().min() else {
        return;
    };
    destination.oldest = Figure::about(time);
    let retention = config
        .filter(|config| config.deletes())
        .and_then(|config| config.retention)
        .and_then(|retention| i64::try_from(retention.as_millis()).ok());
    if let Some(retention) = retention {
        // Whole segments are deleted, when their newest record is over the time.
        destination.expires = Figure::at_least(Millis(time.0.saturating_add(retention)));
    }
}
