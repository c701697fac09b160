//! The connector: which broker a `memory:` or `demo:` URL means.

use std::sync::Arc;

use async_trait::async_trait;
use dlo_core::{Connector, ConnectorInfo, Endpoint, Error, ErrorKind, Result, Secrets, Session};

use crate::{Broker, LogSettings, QueueSettings, broker::shared, demo};

/// Answers `memory:` and `demo:`.
///
/// - `memory:` is a fresh broker for each connection, `memory:NAME` the one of that name within this process (so does
///   [`Broker::named`]).
/// - Options declare destinations, each a list with commas: `classic`, `quorum`, `standard`, `fifo`, `stream`, and
///   `topic` with the number of partitions behind a colon: `memory:test?quorum=orders,orders.dlq&topic=events:3`.
/// - `demo:` is the demo's broker, one per process; `demo:NAME` another one. `demo:?traffic=off` keeps it still.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryConnector;

impl Broker {
    /// The broker that `memory:NAME` means in this process; it is made at the first call.
    pub fn named(name: &str) -> Self {
        shared(&format!("memory:{name}"), Self::new)
    }
}

#[async_trait]
impl Connector for MemoryConnector {
    fn info(&self) -> ConnectorInfo {
        ConnectorInfo {
            name: "memory",
            label: "Memory broker",
            schemes: &["memory", "demo"],
            example: "demo:",
        }
    }

    async fn connect(&self, endpoint: &Endpoint, _: &Secrets) -> Result<Arc<dyn Session>> {
        let name = endpoint.path.clone().unwrap_or_default();
        let broker = match endpoint.scheme.as_str() {
            "demo" => demo_broker(endpoint, &name)?,
            _ if name.is_empty() => Broker::new(),
            _ => Broker::named(&name),
        };
        if endpoint.scheme != "demo" {
            declare(&broker, endpoint)?;
        }
        Ok(broker.connect())
    }
}

fn demo_broker(endpoint: &Endpoint, name: &str) -> Result<Broker> {
    let traffic = match endpoint.option("traffic") {
        None | Some("on") => demo::Traffic::On,
        Some("off") => demo::Traffic::Off,
        Some(_) => return Err(invalid("traffic is on or off")),
    };
    let key = format!("demo:{name}:{traffic:?}");
    Ok(shared(&key, || demo::broker(traffic)))
}

fn declare(broker: &Broker, endpoint: &Endpoint) -> Result<()> {
    for (option, names) in &endpoint.options {
        for name in names.split(',').filter(|name| !name.is_empty()) {
            declare_one(broker, option, name)?;
        }
    }
    Ok(())
}

fn declare_one(broker: &Broker, option: &str, name: &str) -> Result<()> {
    let settings = match option {
        "classic" => QueueSettings::classic(),
        "quorum" => QueueSettings::quorum(),
        "standard" => QueueSettings::standard(),
        "fifo" => QueueSettings::fifo(),
        "stream" => {
            broker.declare_log(name, LogSettings::stream());
            return Ok(());
        }
        "topic" => {
            let (name, count) = name.rsplit_once(':').unwrap_or((name, "1"));
            let count = count
                .parse()
                .map_err(|_| invalid("write topic=NAME:PARTITIONS"))?;
            broker.declare_log(name, LogSettings::topic(count));
            return Ok(());
        }
        _ => {
            return Err(invalid(
                "options are classic, quorum, standard, fifo, stream and topic",
            ));
        }
    };
    // A second connection must not change what a test has set up.
    if !broker.with(|state| state.queues.contains_key(name)) {
        broker.declare_queue(name, settings);
    }
    Ok(())
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the URL", what)
}
