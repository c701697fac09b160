//! Opening a session: probe first, then let librdkafka connect, and say within 5 s what is wrong.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use dlo_core::{
    Connector, ConnectorInfo, Endpoint, Error, ErrorKind, Isolation, Result, Secrets, Session,
};
use rdkafka::{consumer::BaseConsumer, consumer::Consumer, metadata::Metadata};
use tokio::task::spawn_blocking;

use crate::{
    broker::Broker,
    certificate::why_not_trusted,
    client::Voice,
    config::{Settings, join},
    error::{cause, from_kafka},
    probe::{mismatch, reach, what_speaks},
    properties,
    session::KafkaSession,
};

/// How long the library may try. What is found out after it costs at most 1.5 s more.
const PATIENCE: Duration = Duration::from_millis(2_800);

/// Apache Kafka and what speaks its protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct KafkaConnector;

#[async_trait]
impl Connector for KafkaConnector {
    fn info(&self) -> ConnectorInfo {
        ConnectorInfo {
            name: "kafka",
            label: "Apache Kafka",
            schemes: &["kafka"],
            example: "kafka://user@host:9092?security=sasl_ssl&mechanism=SCRAM-SHA-512",
        }
    }

    fn import(&self, text: &str) -> Result<(Endpoint, Secrets)> {
        properties::import(text)
    }

    async fn connect(&self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Arc<dyn Session>> {
        let settings = Settings::read(endpoint, secrets)?;
        let broker = spawn_blocking(move || open(settings))
            .await
            .map_err(|_| Error::new(ErrorKind::Unexpected, "connect", "the task ended early"))??;
        Ok(Arc::new(KafkaSession::new(Arc::new(broker))))
    }
}

fn open(settings: Settings) -> Result<Broker> {
    let reachable = first_reachable(&settings.hosts)?;
    let client: BaseConsumer<Voice> = settings
        .metadata(Isolation::ReadUncommitted)
        .create_with_context(settings.voice())
        .map_err(|error| from_kafka(&error, "connect"))?;
    let metadata = first_metadata(&client, &settings, &reachable)?;
    let notes = advertised(&metadata)?;
    Broker::new(settings, client, &metadata, notes)
}

/// Tries all hosts at once; one that answers is enough, as the library tries them all too.
fn first_reachable(hosts: &[(String, u16)]) -> Result<(String, u16)> {
    let mut failure = None;
    for (host, answer) in reach_all(hosts) {
        match answer {
            Ok(()) => return Ok(host),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or_else(|| {
        Error::new(
            ErrorKind::ConfigInvalid,
            "connect",
            "the profile names no host",
        )
        .advise("Write kafka://host:9092.")
    }))
}

type Reached = ((String, u16), Result<()>);

fn reach_all(hosts: &[(String, u16)]) -> Vec<Reached> {
    thread::scope(|scope| {
        let tries: Vec<_> = hosts
            .iter()
            .map(|host| (host, scope.spawn(|| reach(&host.0, host.1).map(drop))))
            .collect();
        tries
            .into_iter()
            .filter_map(|(host, task)| Some((host.clone(), task.join().ok()?)))
            .collect()
    })
}

/// Short metadata calls with a poll between them, because only a poll delivers the reason of a failure.
fn first_metadata(
    client: &BaseConsumer<Voice>,
    settings: &Settings,
    reachable: &(String, u16),
) -> Result<Metadata> {
    let until = Instant::now() + PATIENCE;
    loop {
        let failure = match client.fetch_metadata(None, Duration::from_millis(300)) {
            Ok(metadata) => return Ok(metadata),
            Err(failure) => failure,
        };
        let _ = client.poll(Duration::from_millis(50));
        let heard = client.context().heard();
        let found = cause(&heard, "connect");
        // What a restart could cure is worth waiting for; a wrong password is not.
        let fatal = found
            .as_ref()
            .is_some_and(|error| error.kind() != ErrorKind::Unreachable);
        if fatal || Instant::now() >= until {
            let found = found.unwrap_or_else(|| from_kafka(&failure, "connect"));
            return Err(explained(found, settings, reachable));
        }
        // Hung up on without a word: the port speaks something else.
        if heard.iter().any(|said| said.text.contains("Disconnected")) {
            let speaks = what_speaks(&reachable.0, reachable.1);
            if let Some(error) = mismatch(speaks, settings.security) {
                return Err(at(error, reachable));
            }
        }
    }
}

fn explained(found: Error, settings: &Settings, reachable: &(String, u16)) -> Error {
    if found.what().contains("not trusted") {
        let better = why_not_trusted(settings, Duration::from_millis(1_200));
        return at(better.unwrap_or(found), reachable);
    }
    if found.kind() == ErrorKind::Unreachable {
        let speaks = what_speaks(&reachable.0, reachable.1);
        return at(
            mismatch(speaks, settings.security).unwrap_or(found),
            reachable,
        );
    }
    at(found, reachable)
}

fn at(error: Error, host: &(String, u16)) -> Error {
    error.with("broker", join(&host.0, host.1))
}

/// Brokers tell their own addresses, which may be wrong from here (a container's name, an inner address).
///
/// # Errors
/// `Unreachable` when none of them can be reached. Where some can, the others are notes.
fn advertised(metadata: &Metadata) -> Result<Vec<String>> {
    let hosts: Vec<(String, u16)> = metadata
        .brokers()
        .iter()
        .filter_map(|broker| Some((broker.host().to_owned(), u16::try_from(broker.port()).ok()?)))
        .collect();
    let failures: Vec<Error> = reach_all(&hosts)
        .into_iter()
        .filter_map(|(_, answer)| answer.err())
        .collect();
    if !hosts.is_empty() && failures.len() == hosts.len() {
        let names: Vec<_> = hosts.iter().map(|(host, port)| join(host, *port)).collect();
        return Err(Error::new(
            ErrorKind::Unreachable,
            "connect",
            format!(
                "the broker answers, but it gives addresses that cannot be reached from here: {}",
                names.join(", ")
            ),
        )
        .advise(
            "Mend advertised.listeners of the broker, or make these names known to this machine.",
        ));
    }
    Ok(failures.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_imported_can_be_connected_with() {
        let file = "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n\
            sasl.jaas.config=x.PlainLoginModule required username=\"me\" password=\"hunter2\";";
        let (endpoint, secrets) = KafkaConnector.import(file).expect("a good file");
        let again = Endpoint::parse(&endpoint.to_string()).expect("its URL").0;
        let base = Settings::read(&again, &secrets)
            .expect("good settings")
            .base();
        assert_eq!(base.get("sasl.username"), Some("me"));
        assert_eq!(base.get("sasl.password"), Some("hunter2"));
        assert_eq!(base.get("security.protocol"), Some("sasl_ssl"));
        assert!(!endpoint.to_string().contains("hunter2"));
    }
}
