//! Topics, partitions, offsets and configurations, as blocking questions (call them off the async threads).

use std::{collections::BTreeMap, thread, time::Duration};

use dlo_core::{Error, ErrorKind, Isolation, Result};
use rdkafka::{
    Offset, TopicPartitionList,
    admin::{AdminOptions, OwnedResourceSpecifier, ResourceSpecifier},
    consumer::Consumer,
    error::RDKafkaErrorCode,
    metadata::MetadataTopic,
};

use crate::{
    broker::{Broker, PATIENCE},
    capability::TopicConfig,
    error::{cause, from_code, from_kafka},
};

/// How often offsets are asked for again, and after which pause.
const RETRIES: usize = 6;
const PAUSE: Duration = Duration::from_millis(150);
/// How many topics one question about configurations names.
const CONFIGS_AT_ONCE: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub name: String,
    /// Partitions with their leader, where they have one at the moment.
    pub partitions: Vec<(i32, Option<i32>)>,
}

impl Topic {
    fn read(topic: &MetadataTopic) -> Self {
        let mut partitions: Vec<_> = topic
            .partitions()
            .iter()
            .map(|partition| {
                (
                    partition.id(),
                    Some(partition.leader()).filter(|id| *id >= 0),
                )
            })
            .collect();
        partitions.sort_unstable();
        Self {
            name: topic.name().to_owned(),
            partitions,
        }
    }

    /// Partitions that can be asked now.
    pub(crate) fn led(&self) -> Vec<i32> {
        self.partitions
            .iter()
            .filter(|(_, leader)| leader.is_some())
            .map(|(id, _)| *id)
            .collect()
    }

    pub(crate) fn without_leader(&self) -> Vec<i32> {
        self.partitions
            .iter()
            .filter(|(_, leader)| leader.is_none())
            .map(|(id, _)| *id)
            .collect()
    }
}

/// All topics that the credentials may see.
pub(crate) fn topics(broker: &Broker) -> Result<Vec<Topic>> {
    let metadata = metadata(broker, None, "list the topics")?;
    Ok(metadata.topics().iter().map(Topic::read).collect())
}

/// One topic.
///
/// # Errors
/// `NotFound`, or `PermissionDenied`, which without the right to describe means either.
pub(crate) fn topic(broker: &Broker, name: &str, operation: &str) -> Result<Topic> {
    let missing = || from_code(RDKafkaErrorCode::UnknownTopicOrPartition, operation, "");
    if !is_name(name) {
        return Err(from_code(RDKafkaErrorCode::InvalidTopic, operation, "").with("topic", name));
    }
    let metadata = metadata(broker, Some(name), operation)?;
    let topic = metadata
        .topics()
        .iter()
        .find(|topic| topic.name() == name)
        .ok_or_else(|| missing().with("topic", name))?;
    match topic.error().map(RDKafkaErrorCode::from) {
        None | Some(RDKafkaErrorCode::LeaderNotAvailable) => Ok(Topic::read(topic)),
        Some(code) => Err(from_code(code, operation, "").with("topic", name)),
    }
}

/// Kafka's rule (`org.apache.kafka.common.internals.Topic`): at most 249 of these characters.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 249
        && name != "."
        && name != ".."
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn metadata(
    broker: &Broker,
    topic: Option<&str>,
    operation: &str,
) -> Result<rdkafka::metadata::Metadata> {
    let client = broker.client(Isolation::ReadUncommitted)?;
    // Serves the callbacks and forgets what was heard, so that an old trouble is not taken for the cause of a new one.
    let _ = client.poll(Duration::ZERO);
    client.context().forget();
    client.fetch_metadata(topic, PATIENCE).map_err(|error| {
        let _ = client.poll(Duration::ZERO);
        cause(&client.context().heard(), operation).unwrap_or_else(|| from_kafka(&error, operation))
    })
}

/// Which offset of a partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    LogStart,
    /// The high watermark, or the last stable offset, by isolation.
    End(Isolation),
    /// The first record at or after this many milliseconds since 1970; the end where there is none.
    Time(i64),
}

/// A topic's name with one of its partitions.
pub(crate) type Part = (String, i32);

/// Offsets of partitions; those that could not be had are missing.
pub(crate) fn offsets(
    broker: &Broker,
    parts: &[Part],
    which: Which,
) -> Result<BTreeMap<Part, i64>> {
    if parts.is_empty() {
        return Ok(BTreeMap::new());
    }
    for _ in 0..RETRIES {
        if let Ok(found) = ask_offsets(broker, parts, which)
            && found.len() == parts.len()
        {
            return Ok(found);
        }
        // A leader moves, or a topic is so new that its leader does not know of it yet.
        thread::sleep(PAUSE);
    }
    let (mut found, mut failure) = (BTreeMap::new(), None);
    for topic in parts.chunk_by(|a, b| a.0 == b.0) {
        match ask_offsets(broker, topic, which) {
            Ok(some) => found.extend(some),
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn ask_offsets(broker: &Broker, parts: &[Part], which: Which) -> Result<BTreeMap<Part, i64>> {
    let operation = "read the offsets";
    let (isolation, offset) = match which {
        Which::LogStart => (Isolation::ReadUncommitted, Offset::Beginning),
        Which::End(isolation) => (isolation, Offset::End),
        Which::Time(time) => (Isolation::ReadUncommitted, Offset::Offset(time)),
    };
    let mut list = TopicPartitionList::with_capacity(parts.len());
    for (topic, partition) in parts {
        list.add_partition_offset(topic, *partition, offset)
            .map_err(|error| from_kafka(&error, operation))?;
    }
    let answer = broker
        .client(isolation)?
        .offsets_for_times(list, PATIENCE)
        .map_err(|error| from_kafka(&error, operation))?;
    let found = answer.elements().into_iter().filter_map(|element| {
        element.error().ok()?;
        let part = (element.topic().to_owned(), element.partition());
        match element.offset() {
            Offset::Offset(offset) => Some((part, offset)),
            _ => None,
        }
    });
    Ok(found.collect())
}

/// Configurations by topic; those that the credentials may not read are missing.
pub(crate) fn configs(broker: &Broker, topics: &[String]) -> BTreeMap<String, TopicConfig> {
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let mut found = BTreeMap::new();
    for topics in topics.chunks(CONFIGS_AT_ONCE) {
        let asked: Vec<_> = topics
            .iter()
            .map(|topic| ResourceSpecifier::Topic(topic))
            .collect();
        let answer = futures::executor::block_on(broker.admin().describe_configs(&asked, &options));
        match answer {
            Ok(resources) => found.extend(resources.into_iter().flatten().filter_map(|resource| {
                match &resource.specifier {
                    OwnedResourceSpecifier::Topic(name) => {
                        Some((name.clone(), TopicConfig::read(&resource)))
                    }
                    _ => None,
                }
            })),
            Err(error) => tracing::debug!(%error, "the configurations could not be read"),
        }
    }
    found
}

/// The offsets between which a topic can be read.
pub(crate) fn bounds(
    broker: &Broker,
    topic: &str,
    partitions: &[i32],
    isolation: Isolation,
) -> Result<BTreeMap<i32, (i64, i64)>> {
    let parts: Vec<Part> = partitions
        .iter()
        .map(|id| (topic.to_owned(), *id))
        .collect();
    let starts = offsets(broker, &parts, Which::LogStart)?;
    let ends = offsets(broker, &parts, Which::End(isolation))?;
    let found: BTreeMap<_, _> = parts
        .iter()
        .filter_map(|part| Some((part.1, (*starts.get(part)?, *ends.get(part)?))))
        .collect();
    if found.len() < partitions.len() {
        let missing = partitions.iter().filter(|id| !found.contains_key(id));
        let missing: Vec<_> = missing.map(i32::to_string).collect();
        return Err(Error::new(
            ErrorKind::Unreachable,
            "read the offsets",
            format!("the brokers did not tell those of partition {}", missing.join(", ")),
        )
        .with("topic", topic)
        .advise("Try again; if it stays so, check the broker that leads it, and the ACL Describe on the topic."));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_follow_kafkas_rule() {
        for name in ["orders", "a.b_c-1", "__consumer_offsets"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a b", "é", &"x".repeat(250)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
