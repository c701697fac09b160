//! Filling a broker from deliveries, for working on a capture without its broker. Reading the capture is not done here: the
//! engine owns that format, and hands over what it read.

use std::{fmt, path::Path, sync::Arc};

use async_trait::async_trait;
use dlo_core::{
    Connector, ConnectorInfo, Delivery, Endpoint, Error, ErrorKind, Millis, Position, Result,
    Secrets, Session, Value,
};

use crate::{
    Broker, LogSettings, QueueSettings,
    log::{Fate, Record},
    queue::Stored,
    state::State,
};

/// A message of a capture with the destination that it was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub destination: String,
    pub delivery: Delivery,
}

/// Reads a capture file; the engine provides it.
pub type Loader = Arc<dyn Fn(&Path) -> Result<Vec<Loaded>> + Send + Sync>;

impl Broker {
    /// Puts messages where they were: positions by offset make a topic with the same offsets, ids a standard queue with the
    /// same ids, and indexes a classic queue in the same order. Destinations that are missing are made.
    pub fn load(&self, messages: Vec<Loaded>) {
        self.with(|state| {
            for loaded in messages {
                state.version += 1;
                match loaded.delivery.position {
                    Position::Offset { partition, offset } => {
                        load_record(state, loaded, partition, offset);
                    }
                    _ => load_message(state, loaded),
                }
            }
        });
    }
}

fn load_record(state: &mut State, loaded: Loaded, partition: i32, offset: i64) {
    let name = loaded.destination;
    let log = state.logs.entry(name.clone()).or_insert_with(|| {
        // What was captured must not age away in our hands.
        let settings = LogSettings {
            retention: None,
            ..LogSettings::topic(1)
        };
        crate::log::Log::new(&name, settings)
    });
    let index = usize::try_from(partition).unwrap_or_default();
    while log.partitions.len() <= index {
        log.partitions.push(crate::log::PartitionLog::default());
    }
    let partition = &mut log.partitions[index];
    if partition.records.is_empty() {
        partition.start = offset;
    }
    partition.start = partition.start.min(offset);
    partition.next = partition.next.max(offset.saturating_add(1));
    let record = Record {
        message: loaded.delivery.message,
        time: loaded.delivery.time.unwrap_or(Millis(0)),
        fate: Fate::Stands,
    };
    partition.records.insert(offset, record);
}

fn load_message(state: &mut State, loaded: Loaded) {
    let (name, delivery) = (loaded.destination, loaded.delivery);
    let by_id = matches!(delivery.position, Position::Id { .. });
    state.queues.entry(name.clone()).or_insert_with(|| {
        let settings = if by_id {
            QueueSettings {
                time_to_live: None,
                ..QueueSettings::standard()
            }
        } else {
            QueueSettings::classic()
        };
        crate::queue::Queue::new(&name, settings)
    });
    let place = state.number();
    let id = match &delivery.position {
        Position::Id { id } => id.clone(),
        _ => format!("loaded-{place}"),
    };
    let text = |fact: &str| {
        let value = delivery.facts.get(fact).and_then(Value::as_text);
        value.unwrap_or_default().to_owned()
    };
    let stored = Stored {
        place,
        id,
        exchange: text("exchange"),
        routing_key: text("routing_key"),
        sent: delivery.time.unwrap_or(state.now()),
        count: delivery.delivery_count.unwrap_or_default(),
        redelivered: false,
        first_received: None,
        expires: None,
        source: None,
        message: delivery.message,
        facts: delivery.facts,
    };
    state.store(&name, stored);
}

/// Answers `file:capture.ndjson`: a broker in memory with what the capture holds. Changes stay in memory.
#[derive(Clone)]
pub struct FileConnector {
    loader: Loader,
}

impl FileConnector {
    pub fn new(loader: Loader) -> Self {
        Self { loader }
    }
}

impl fmt::Debug for FileConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileConnector").finish_non_exhaustive()
    }
}

#[async_trait]
impl Connector for FileConnector {
    fn info(&self) -> ConnectorInfo {
        ConnectorInfo {
            name: "file",
            label: "Capture file",
            schemes: &["file"],
            example: "file:capture.ndjson",
        }
    }

    async fn connect(&self, endpoint: &Endpoint, _: &Secrets) -> Result<Arc<dyn Session>> {
        let path = endpoint.path.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::ConfigInvalid,
                "open the capture",
                "the URL names no file",
            )
            .advise("Write file: and the path, for example file:capture.ndjson.")
        })?;
        let loader = self.loader.clone();
        let reading = tokio::task::spawn_blocking(move || loader(Path::new(&path)));
        let messages = reading.await.map_err(|error| {
            Error::new(
                ErrorKind::Unexpected,
                "read the capture",
                "reading it ended early",
            )
            .caused_by(error)
        })??;
        let broker = Broker::new();
        broker.load(messages);
        Ok(broker.connect())
    }
}
