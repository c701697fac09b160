//! Dead letters that do not hold the message, but only say where it is.
//!
//! Separate from the readers, because a pointer is followed (or refused) by the engine, whoever wrote it.

use serde::{Deserialize, Serialize};

/// What a dead letter without its message points to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pointer {
    /// A Kafka record, which can be read again until retention takes it.
    Record {
        topic: String,
        partition: i32,
        offset: i64,
    },
    /// An object in S3 that holds the body (SQS and SNS extended clients, NServiceBus).
    S3 {
        bucket: Option<String>,
        key: String,
        /// The body's bytes as the sender counted them.
        size: Option<u64>,
    },
    /// Some records of a stream (Lambda event source mappings): named by their sequence numbers or offsets.
    Stream {
        /// `kinesis`, `dynamodb` or `kafka`.
        service: String,
        /// The stream's ARN or the topic's name.
        stream: String,
        shard: Option<String>,
        first: Option<String>,
        last: Option<String>,
        records: Option<u64>,
    },
}

impl Pointer {
    /// One sentence about what it points to.
    pub fn describe(&self) -> String {
        match self {
            Self::Record {
                topic,
                partition,
                offset,
            } => format!("The record is at offset {offset} of partition {partition} of {topic}."),
            Self::S3 { bucket, key, size } => {
                let place = match bucket {
                    Some(bucket) => format!("s3://{bucket}/{key}"),
                    None => format!("the S3 key {key}"),
                };
                match size {
                    Some(size) => format!("The body ({size} bytes) is in {place}."),
                    None => format!("The body is in {place}."),
                }
            }
            Self::Stream {
                service,
                stream,
                shard,
                first,
                last,
                records,
            } => {
                let count =
                    records.map_or("Records".to_owned(), |records| format!("{records} records"));
                let shard = shard
                    .as_deref()
                    .map_or(String::new(), |shard| format!(" of {shard}"));
                let range = match (first, last) {
                    (Some(first), Some(last)) if first == last => format!(" at {first}"),
                    (Some(first), Some(last)) => format!(" from {first} to {last}"),
                    _ => String::new(),
                };
                format!("{count} of the {service} stream {stream}{shard}{range}.")
            }
        }
    }
}
