//! The one model of a death, whatever dialect it was read from.
//!
//! Separate from the readers, because grouping, filtering, replay, the window and the capture file all speak
//! of deaths and none of them should know a header's name.

use std::{borrow::Cow, collections::BTreeMap};

use dlo_core::Millis;
use serde::{Deserialize, Serialize};

use super::pointer::Pointer;

/// How far a death can be trusted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The marks have such common names that something else may have written them.
    Weak,
    /// The marks are those of one framework, but not all that it always writes are there.
    Likely,
    /// The marks are unmistakable.
    #[default]
    Sure,
}

/// Why a message was set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The exception's type or the broker's own reason (`rejected`, `delivery_limit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The type of the exception underneath, when `class` is only a wrapper around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// Where a message was when it failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// The exchange it was published to; an empty name is AMQP's default exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routing_keys: Vec<String>,
    /// The consumer group that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What failed where that is not a group: a connector, a handler, a function, a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

impl Origin {
    /// The queue or topic it came from, or else the exchange.
    pub fn place(&self) -> Option<&str> {
        self.queue
            .as_deref()
            .or(self.topic.as_deref())
            .or(self.exchange.as_deref().filter(|name| !name.is_empty()))
    }
}

/// One death of a message, as one dialect tells it.
///
/// Serialises to the `death` object of the capture format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    #[serde(default)]
    pub reason: Reason,
    #[serde(default)]
    pub origin: Origin,
    /// How often it was tried, counted as [`Death::scope`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// What `attempts` counts, in words that continue "attempts:", for example `deaths from this queue for this reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Cow<'static, str>>,
    /// When it failed for the first time.
    #[serde(
        default,
        with = "super::rfc3339",
        skip_serializing_if = "Option::is_none"
    )]
    pub first: Option<Millis>,
    /// When it failed for the last time.
    #[serde(
        default,
        with = "super::rfc3339",
        skip_serializing_if = "Option::is_none"
    )]
    pub last: Option<Millis>,
    /// When the message was sent at first, where the dialect keeps that.
    #[serde(
        default,
        with = "super::rfc3339",
        skip_serializing_if = "Option::is_none"
    )]
    pub sent: Option<Millis>,
    /// For each field above the header (or fact, or JSON pointer into the body) it was read from, by the field's path:
    /// `reason.class` → `kafka_dlt-exception-fqcn`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<String, String>,
    /// Who wrote the marks, for example `Spring Kafka`.
    #[serde(default)]
    pub dialect: Cow<'static, str>,
    #[serde(default)]
    pub confidence: Confidence,
    /// Set when the dead letter does not hold the message but only says where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Pointer>,
    /// What a person should know. Sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Further deaths of the same message, newer ones first: told by other dialects, or from earlier failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Death>,
}

impl Death {
    /// A death of that dialect, of which nothing is known yet.
    pub fn new(dialect: &'static str, confidence: Confidence) -> Self {
        Self {
            dialect: Cow::Borrowed(dialect),
            confidence,
            ..Self::default()
        }
    }

    /// This death and the earlier ones, newest first.
    pub fn all(&self) -> impl Iterator<Item = &Death> {
        std::iter::once(self).chain(&self.earlier)
    }

    /// Puts deaths of one message together; the first is the newest.
    pub fn join(deaths: Vec<Death>) -> Option<Death> {
        let mut deaths = deaths.into_iter();
        let mut newest = deaths.next()?;
        newest.earlier.extend(deaths);
        Some(newest)
    }

    /// This death and the earlier ones as a list, newest first.
    pub fn split(mut self) -> Vec<Death> {
        let earlier = std::mem::take(&mut self.earlier);
        std::iter::once(self).chain(earlier).collect()
    }

    /// The newest death that names an exception or has a stack, or else this one: it says most about what to mend.
    ///
    /// A broker's own mark (`rejected`) often lies over a framework's, which knows the exception.
    pub fn telling(&self) -> &Death {
        self.all()
            .find(|death| {
                death.reason.stack.is_some()
                    || death.reason.cause.is_some()
                    || (death.reason.class.is_some() && death.reason.message.is_some())
            })
            .or_else(|| self.all().find(|death| death.reason.message.is_some()))
            .unwrap_or(self)
    }

    /// The exception that matters: the cause when there is one, or else the class.
    pub fn class(&self) -> Option<&str> {
        let reason = &self.telling().reason;
        reason.cause.as_deref().or(reason.class.as_deref())
    }

    /// The message of the most telling reason.
    pub fn message(&self) -> Option<&str> {
        self.telling().reason.message.as_deref()
    }

    /// The newest known place of origin.
    pub fn place(&self) -> Option<&str> {
        self.all().find_map(|death| death.origin.place())
    }

    /// Attempts of the newest death that counts them.
    pub fn attempt_count(&self) -> Option<u64> {
        self.all().find_map(|death| death.attempts)
    }

    /// The last failure, or the first when only that is known.
    pub fn failed_at(&self) -> Option<Millis> {
        self.last.or(self.first)
    }

    /// Notes that `field` was read from `source`.
    pub fn note_source(&mut self, field: &str, source: impl Into<String>) {
        self.from.insert(field.to_owned(), source.into());
    }
}
