//! A kind of broker.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::{Endpoint, Error, ErrorKind, Result, Secrets, Session};

/// How a connector presents itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectorInfo {
    /// The word used in captures and on the command line: `rabbitmq`, `kafka`, `sqs`, `memory`.
    pub name: &'static str,
    /// The broker's proper name: `RabbitMQ`.
    pub label: &'static str,
    /// URL schemes it answers to: `["amqp", "amqps"]`.
    pub schemes: &'static [&'static str],
    /// An example URL for a person who makes a profile.
    pub example: &'static str,
}

/// A kind of broker. Stateless; one per crate.
#[async_trait]
pub trait Connector: Debug + Send + Sync {
    fn info(&self) -> ConnectorInfo;

    /// Connects and makes sure that the broker answers and accepts the credentials.
    ///
    /// - Returns within 5 seconds when that fails, with an error that says what is wrong and what to do.
    /// - Leaves no trace at the broker.
    async fn connect(&self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Arc<dyn Session>>;

    /// Reads a configuration file of the broker's own clients (Kafka's `client.properties`) into an endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the broker's clients have no such file, which is the default;
    /// [`ErrorKind::ConfigInvalid`] when it cannot be read.
    fn import(&self, _text: &str) -> Result<(Endpoint, Secrets)> {
        let label = self.info().label;
        Err(Error::new(
            ErrorKind::Unsupported,
            "read the configuration file",
            format!("{label} has no such file"),
        ))
    }
}
