//! Which connector answers to which URL scheme. Filled by `main.rs` or by a test; the engine names no broker.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Connector, ConnectorInfo, Endpoint, Error, ErrorKind, Result, Secrets};

/// The connectors this program was built with.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    by_scheme: BTreeMap<&'static str, Arc<dyn Connector>>,
}

impl Registry {
    /// Adds a connector under all its schemes.
    pub fn with(mut self, connector: impl Connector + 'static) -> Self {
        let connector: Arc<dyn Connector> = Arc::new(connector);
        for scheme in connector.info().schemes {
            self.by_scheme.insert(scheme, connector.clone());
        }
        self
    }

    /// The connector for an endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] for an unknown scheme, naming the known ones.
    pub fn find(&self, endpoint: &Endpoint) -> Result<Arc<dyn Connector>> {
        self.by_scheme
            .get(endpoint.scheme.as_str())
            .cloned()
            .ok_or_else(|| {
                let known: Vec<_> = self
                    .by_scheme
                    .keys()
                    .map(|scheme| format!("{scheme}:"))
                    .collect();
                Error::new(
                    ErrorKind::ConfigInvalid,
                    "connect",
                    format!("nothing here speaks {}:", endpoint.scheme),
                )
                .advise(format!("Use one of {}.", known.join(", ")))
            })
    }

    /// Reads a configuration file of a broker's own clients, whichever broker that is.
    ///
    /// # Errors
    /// That of the connector that knows such files; [`ErrorKind::Unsupported`] when none does.
    pub fn import(&self, text: &str) -> Result<(Endpoint, Secrets)> {
        let mut refused = None;
        for connector in self.by_scheme.values() {
            match connector.import(text) {
                Err(error) if error.kind() == ErrorKind::Unsupported => refused = Some(error),
                read => return read,
            }
        }
        Err(refused.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                "read the configuration file",
                "no connector is built in",
            )
        }))
    }

    /// Each connector once, in the order of its first scheme.
    pub fn infos(&self) -> Vec<ConnectorInfo> {
        let mut infos: Vec<_> = self
            .by_scheme
            .values()
            .map(|connector| connector.info())
            .collect();
        infos.sort_by_key(|info| info.name);
        infos.dedup();
        infos
    }
}
