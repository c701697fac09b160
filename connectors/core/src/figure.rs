//! A number that says how sure it is.

use serde::{Deserialize, Serialize};

/// How far a [`Figure`] can be trusted. Brokers differ: RabbitMQ counts, SQS estimates, Kafka's offsets only bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    Exact,
    About,
    #[serde(rename = "at least")]
    AtLeast,
    #[serde(rename = "at most")]
    AtMost,
    #[default]
    Unknown,
}

/// A value with its certainty. `unknown` has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure<T> {
    pub value: Option<T>,
    pub certainty: Certainty,
}

impl<T> Default for Figure<T> {
    fn default() -> Self {
        Self::unknown()
    }
}

impl<T> Figure<T> {
    pub fn exact(value: T) -> Self {
        Self {
            value: Some(value),
            certainty: Certainty::Exact,
        }
    }

    pub fn about(value: T) -> Self {
        Self {
            value: Some(value),
            certainty: Certainty::About,
        }
    }

    pub fn at_least(value: T) -> Self {
        Self {
            value: Some(value),
            certainty: Certainty::AtLeast,
        }
    }

    pub fn at_most(value: T) -> Self {
        Self {
            value: Some(value),
            certainty: Certainty::AtMost,
        }
    }

    pub fn unknown() -> Self {
        Self {
            value: None,
            certainty: Certainty::Unknown,
        }
    }

    /// The same certainty about another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Figure<U> {
        Figure {
            value: self.value.map(f),
            certainty: self.certainty,
        }
    }
}
