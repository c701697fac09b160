//! Apache Kafka, over librdkafka: topics, groups, looking at offsets, and publishing.
//!
//! Looking never joins a group and never commits: it assigns partitions to a consumer of its own. Publishing waits for all
//! replicas and is idempotent. Nothing in here creates a topic. What Kafka 4.4 and librdkafka 2.12 were measured to do
//! beyond their documentation is said where the code depends on it.

mod broker;
mod capability;
mod certificate;
mod client;
mod config;
mod connect;
mod destination;
mod error;
mod fetch;
mod forward;
mod groups;
mod look;
mod metadata;
mod newest;
mod oldest;
mod plan;
mod probe;
mod properties;
mod publish;
mod reader;
mod record;
mod session;
mod transaction;
mod truncate;

pub use connect::KafkaConnector;
