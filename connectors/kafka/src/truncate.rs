//! Deleting everything before an offset, which is the only way in which Kafka deletes records.

use dlo_core::{Error, ErrorKind, Figure, Isolation, Result};
use rdkafka::{Offset, TopicPartitionList, admin::AdminOptions};

use crate::{
    broker::{Broker, PATIENCE},
    capability::is_internal,
    error::from_kafka,
    metadata,
};

const OPERATION: &str = "delete the records";

/// Deletes what lies before these offsets.
///
/// # Errors
/// `Unsupported` where the topic's `cleanup.policy` has no `delete`: the broker would refuse it as a policy violation.
/// `NotFound` for a partition that is not there or an offset beyond its end.
pub(crate) fn truncate(broker: &Broker, topic: &str, before: &[(i32, i64)]) -> Result<()> {
    let known = check(broker, topic)?;
    let wanted: Vec<i32> = before.iter().map(|(partition, _)| *partition).collect();
    if let Some(missing) = wanted.iter().find(|id| !known.contains(id)) {
        return Err(Error::new(
            ErrorKind::NotFound,
            OPERATION,
            format!("the topic has no partition {missing}"),
        )
        .with("topic", topic));
    }
    let bounds = metadata::bounds(broker, topic, &wanted, Isolation::ReadUncommitted)?;
    for (partition, offset) in before {
        let end = bounds.get(partition).map_or(0, |bounds| bounds.1);
        if *offset > end {
            return Err(Error::new(
                ErrorKind::NotFound,
                OPERATION,
                format!("partition {partition} ends at {end}, before the offset {offset}"),
            )
            .with("topic", topic)
            .advise("Give an offset up to the end."));
        }
    }
    delete(broker, topic, before)
}

/// Deletes everything that is there now, and says how many offsets that was.
pub(crate) fn purge(broker: &Broker, topic: &str) -> Result<Figure<u64>> {
    let partitions = check(broker, topic)?;
    let bounds = metadata::bounds(broker, topic, &partitions, Isolation::ReadUncommitted)?;
    let before: Vec<_> = bounds.iter().map(|(id, (_, end))| (*id, *end)).collect();
    delete(broker, topic, &before)?;
    let offsets: i64 = bounds
        .values()
        .map(|(start, end)| (end - start).max(0))
        .sum();
    let offsets = u64::try_from(offsets).unwrap_or_default();
    Ok(if offsets == 0 {
        Figure::exact(0)
    } else {
        Figure::at_most(offsets)
    })
}

/// The partitions of a topic whose records may be deleted.
fn check(broker: &Broker, topic: &str) -> Result<Vec<i32>> {
    let known = metadata::topic(broker, topic, OPERATION)?;
    if is_internal(topic) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            OPERATION,
            "the brokers keep their own state in this topic",
        )
        .with("topic", topic));
    }
    let config = metadata::configs(broker, &[topic.to_owned()]).remove(topic);
    let Some(config) = config else {
        return Err(Error::new(
            ErrorKind::Unsupported,
            OPERATION,
            "the topic's configuration cannot be read, so its cleanup policy is not known",
        )
        .with("topic", topic)
        .advise("Ask for the ACL DescribeConfigs on the topic."));
    };
    if !config.deletes() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            OPERATION,
            format!("its cleanup policy is {}", config.cleanup),
        )
        .with("topic", topic)
        .advise("Write a tombstone for each key, or add delete to cleanup.policy."));
    }
    Ok(known.partitions.iter().map(|(id, _)| *id).collect())
}

fn delete(broker: &Broker, topic: &str, before: &[(i32, i64)]) -> Result<()> {
    if before.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::with_capacity(before.len());
    for (partition, offset) in before {
        list.add_partition_offset(topic, *partition, Offset::Offset(*offset))
            .map_err(|error| from_kafka(&error, OPERATION))?;
    }
    let options = AdminOptions::new()
        .request_timeout(Some(PATIENCE))
        .operation_timeout(Some(PATIENCE));
    let answer = futures::executor::block_on(broker.admin().delete_records(&list, &options))
        .map_err(|error| from_kafka(&error, OPERATION).with("topic", topic))?;
    for element in answer.elements() {
        if let Err(error) = element.error() {
            return Err(from_kafka(&error, OPERATION)
                .with("topic", topic)
                .with("partition", element.partition().to_string()));
        }
    }
    Ok(())
}
