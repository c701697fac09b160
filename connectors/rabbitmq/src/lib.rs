//! RabbitMQ over AMQP 0-9-1, with the management API where it can be asked.
//!
//! Looking at a RabbitMQ queue borrows its messages, and what that does depends on the queue's type and the broker's version:
//!
//! - classic queues keep their order whatever is done;
//! - quorum queues before 4.3 count every return against a delivery limit, and keep their order only when the channel is closed;
//! - quorum queues since 4.3 count no `nack`, but a lost connection, and carry counts from one queue into the next, so that
//!   the first look at a dead-letter queue can destroy it;
//! - streams are read at an offset.
//!
//! [`Rabbit`] is the way in. The crate knows nothing of windows, payloads, or what frameworks write into headers.

mod config;
mod connect;
mod cost;
mod error;
mod facts;
mod list;
mod look;
mod management;
mod publish;
mod rescue;
mod routing;
mod session;
mod settle;
mod stream;
mod take;
mod values;
mod version;

use std::sync::Arc;

use async_trait::async_trait;
use dlo_core::{Connector, ConnectorInfo, Endpoint, Result, Secrets, Session};

use crate::{config::Config, session::RabbitSession};

/// The connector for `amqp://` and `amqps://`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rabbit;

#[async_trait]
impl Connector for Rabbit {
    fn info(&self) -> ConnectorInfo {
        ConnectorInfo {
            name: "rabbitmq",
            label: "RabbitMQ",
            schemes: &["amqp", "amqps"],
            example: "amqp://user@host:5672/vhost?management=http://host:15672",
        }
    }

    async fn connect(&self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Arc<dyn Session>> {
        let config = Config::read(endpoint, secrets)?;
        Ok(Arc::new(RabbitSession::connect(config).await?))
    }
}
