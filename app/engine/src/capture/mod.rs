//! Capture files: messages on disk, without loss, as newline-delimited JSON (design §11).
//!
//! Export, import, restore and offline work all use this one format, so it stands apart from all of them. One message
//! a line; importing gives back exactly what was exported:
//!
//! | field | value |
//! |---|---|
//! | `dlo` | the format's version, 1 |
//! | `broker`, `destination` | where it was read: `rabbitmq`, `orders.dlq` |
//! | `position` | `{"partition", "offset"}`, `{"index"}` or `{"id"}`, as the broker counts |
//! | `time` | the message's own time in RFC 3339, or null |
//! | `key`, `body` | `null`, `{"text": …}` when the bytes are UTF-8, else `{"base64": …}`; `{"text": ""}` is empty, not null |
//! | `headers` | in order, duplicates kept: `{"name", "type", "value"}`, `type` is the broker's own |
//! | `properties` | by name; a text stands as it is, every other value as in a header |
//! | `sha256` | of the body's bytes; checked when read |
//! | `death` | what was known about the failure, see [`crate::dead_letter::Death`] |
//! | `facts`, `delivery_count` | what the broker said beside the message; never published again |
//! | `captured` | when this line was written, if that was asked for |
//!
//! A value is `null`, `{"bool": true}`, `{"int": "9007199254740993"}`, `{"float": 1.5}` (or `"NaN"`, `"Infinity"`,
//! `"-Infinity"`; a NaN with unusual bits adds `"bits"`), `{"decimal": "12.30"}`, `{"time": "…Z"}` (or its milliseconds in
//! digits where no calendar holds it), `{"text": …}`, `{"base64": …}`, a table as an array of `{"name", "type", "value"}`, or
//! a list as an array of `{"type", "value"}`. An empty array is a table when its type is `table` or `map`, else a list; where
//! that would be wrong it is written `{"table": []}` or `{"list": []}`. Values nested deeper than JSON readers allow are
//! written flat, as `{"flat": […]}` (the module `flat` says how).
//!
//! Fields that this version does not know are kept and written again.

mod csv;
mod file;
mod flat;
mod read;
#[cfg(test)]
mod tests;
mod value;
mod write;

use dlo_core::{Delivery, Millis};
use serde_json::value::RawValue;

use crate::dead_letter::Death;

pub(crate) use csv::value_text;
pub use csv::{CSV_HEADER, csv_row};
pub use file::{CaptureReader, CaptureWriter, DEFAULT_LINE_LIMIT};
pub use read::parse_line;
pub use write::to_line;

/// The version this program writes, and the newest it reads.
pub const VERSION: u64 = 1;

/// One message of a capture file.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The broker's kind, for example `rabbitmq`.
    pub broker: String,
    pub destination: String,
    /// What was delivered. The lock is never captured.
    pub delivery: Delivery,
    pub death: Option<Death>,
    /// When the line was written, where the writer said so.
    pub captured: Option<Millis>,
    /// Fields that this version does not know, in their order.
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl Captured {
    /// A capture of that delivery, made now.
    pub fn now(
        broker: impl Into<String>,
        destination: impl Into<String>,
        delivery: Delivery,
        death: Option<Death>,
    ) -> Self {
        Self {
            broker: broker.into(),
            destination: destination.into(),
            delivery,
            death,
            captured: Some(Millis::now()),
            extra: Vec::new(),
        }
    }

    /// The line of this message, without a line break.
    pub fn to_line(&self) -> String {
        write::line(self)
    }
}

impl PartialEq for Captured {
    fn eq(&self, other: &Self) -> bool {
        let raw = |captured: &Self| -> Vec<(String, String)> {
            let pairs = captured.extra.iter();
            pairs
                .map(|(name, raw)| (name.clone(), raw.get().to_owned()))
                .collect()
        };
        (
            &self.broker,
            &self.destination,
            &self.delivery,
            &self.death,
            self.captured,
        ) == (
            &other.broker,
            &other.destination,
            &other.delivery,
            &other.death,
            other.captured,
        ) && raw(self) == raw(other)
    }
}

/// What is wrong with a capture file, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// Counted from 1; `None` when the text did not come from a file.
    pub line: Option<u64>,
    pub problem: Problem,
}

impl CaptureError {
    pub(crate) fn new(problem: Problem) -> Self {
        Self {
            line: None,
            problem,
        }
    }

    /// The same error, in that line of a file.
    pub fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for CaptureError {}

/// What is wrong with one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("this is not a line of a capture file: {0}")]
    Malformed(String),
    #[error(
        "this line was written by a newer version (format {0}, this program reads up to {VERSION}); update dlo to read it"
    )]
    Newer(u64),
    #[error("this line is the summary at the end of an export, not a message")]
    Summary,
    #[error(
        "the body does not match its sha256 ({written} is written, the bytes have {found}); the line was changed or damaged"
    )]
    Hash { written: String, found: String },
    #[error("the line is longer than {0} bytes; raise the limit if such messages are expected")]
    TooLong(u64),
    #[error("the file is not UTF-8 from byte {0} of this line on")]
    NotUtf8(usize),
    #[error("the file could not be read or written: {0}")]
    Io(String),
}
