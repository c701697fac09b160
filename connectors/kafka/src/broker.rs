//! The clients of one session: one for metadata, one that sees only committed ends, one for administration.
//!
//! Reading has clients of its own (`reader.rs`): on a fetching connection every other question waits behind the long poll.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use dlo_core::{Isolation, Result, ServerInfo};
use rdkafka::{
    admin::AdminClient, client::ClientContext, consumer::BaseConsumer, consumer::Consumer,
    metadata::Metadata,
};

use crate::{
    certificate::cluster_id, client::Voice, config::Settings, error::from_kafka,
    publish::Publishers, reader::Reader,
};

/// How long a question to a broker may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Broker {
    pub settings: Settings,
    pub info: ServerInfo,
    pub publishers: Publishers,
    uncommitted: BaseConsumer<Voice>,
    committed: OnceLock<BaseConsumer<Voice>>,
    admin: AdminClient<Voice>,
    /// Readers of single records that are idle, each with its isolation: connecting again for each would cost 50 ms.
    idle: Mutex<Vec<(Isolation, Reader)>>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("settings", &self.settings)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Broker {
    pub(crate) fn new(
        settings: Settings,
        client: BaseConsumer<Voice>,
        metadata: &Metadata,
        notes: Vec<String>,
    ) -> Result<Self> {
        let admin = settings
            .base()
            .create_with_context(settings.voice())
            .map_err(|error| from_kafka(&error, "connect"))?;
        let info = server_info(&settings, &client, metadata, notes);
        Ok(Self {
            publishers: Publishers::default(),
            settings,
            info,
            uncommitted: client,
            committed: OnceLock::new(),
            admin,
            idle: Mutex::default(),
        })
    }

    pub(crate) fn admin(&self) -> &AdminClient<Voice> {
        &self.admin
    }

    /// The client whose "end" is the end of that isolation: the high watermark, or the last stable offset.
    pub(crate) fn client(&self, isolation: Isolation) -> Result<&BaseConsumer<Voice>> {
        if isolation == Isolation::ReadUncommitted {
            return Ok(&self.uncommitted);
        }
        if let Some(client) = self.committed.get() {
            return Ok(client);
        }
        let client = self
            .settings
            .metadata(isolation)
            .create_with_context(self.settings.voice())
            .map_err(|error| from_kafka(&error, "connect"))?;
        Ok(self.committed.get_or_init(|| client))
    }

    /// Takes an idle reader or makes one.
    pub(crate) fn reader(&self, isolation: Isolation) -> Result<Reader> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.iter().position(|(of, _)| *of == isolation) {
            Some(index) => Ok(idle.swap_remove(index).1),
            None => Reader::new(&self.settings, isolation),
        }
    }

    /// Keeps a reader for the next time.
    pub(crate) fn keep(&self, isolation: Isolation, reader: Reader) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < 4 {
            idle.push((isolation, reader));
        }
    }
}

fn server_info<C: ClientContext + rdkafka::consumer::ConsumerContext>(
    settings: &Settings,
    client: &BaseConsumer<C>,
    metadata: &Metadata,
    notes: Vec<String>,
) -> ServerInfo {
    let brokers = metadata.brokers().len();
    let mut facts = vec![
        ("brokers".to_owned(), brokers.to_string()),
        ("security".to_owned(), settings.security.name().to_owned()),
    ];
    if let Some(mechanism) = &settings.mechanism {
        facts.push(("mechanism".to_owned(), mechanism.clone()));
    }
    if let Some(id) = cluster_id(client.client().native_ptr()) {
        facts.push(("cluster id".to_owned(), id));
    }
    facts.extend(
        notes
            .into_iter()
            .map(|note| ("not reachable".to_owned(), note)),
    );
    ServerInfo {
        product: "Apache Kafka".to_owned(),
        version: None,
        facts,
    }
}
