//! Secrets that cannot be printed by accident.

use std::{collections::BTreeMap, fmt};

/// A password, token or key. `Debug` prints `***`; there is no `Display` and no serialisation.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself. Use it only to hand it to a client library.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The secrets of one connection by name, for example `password`. Names are those of the URL or profile option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    pub fn insert(&mut self, name: impl Into<String>, secret: Secret) {
        self.0.insert(name.into(), secret);
    }

    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The given text with every secret in it replaced by `***`; for error texts of client libraries, which may quote a URL.
    pub fn redact(&self, text: &str) -> String {
        self.0
            .values()
            .filter(|secret| secret.0.len() >= 3)
            .fold(text.to_owned(), |text, secret| {
                text.replace(secret.expose(), "***")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_secret() {
        let mut secrets = Secrets::default();
        secrets.insert("password", Secret::new("hunter2"));
        assert!(!format!("{secrets:?}").contains("hunter2"));
        assert_eq!(secrets.redact("amqp://u:hunter2@h"), "amqp://u:***@h");
    }
}
