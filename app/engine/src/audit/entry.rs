//! One entry of the audit trail: its canonical line, and the chain of hashes.
//!
//! The canonical line is what an export shows up to its `"hash"` field. An entry's hash is SHA-256
//! over the bytes of the hash before it followed by that line, so a whole export can be checked with
//! a few lines of any language and without the database: for each line, take the text before
//! `,"hash":`, add `}`, put the 32 bytes of the previous hash in front (zeros for the first entry),
//! hash, compare. What follows the hash (`"position"`, `"sha256"` and `"target"` of a later step) is
//! repeated from the entry that intended the message, for the reader's convenience.
//!
//! The writer builds these lines by hand, because 100,000 messages make 400,000 of them.

use std::fmt::Write as _;

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params};
use serde::Serializer;
use sha2::{Digest as _, Sha256};

use super::{AuditError, Outcome, Run};

/// The number that stands for "the run itself" where a message's number is kept.
pub(super) const RUN: i64 = -1;

/// The hash before the first entry.
pub(super) const GENESIS: [u8; 32] = [0; 32];

/// The columns of an entry that differ from one to the next.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) seq: i64,
    pub(super) position: Option<&'a str>,
    pub(super) sha256: Option<&'a str>,
    pub(super) target: Option<&'a str>,
    /// SHA-256 in hex of the capture line that was saved with the intent.
    pub(super) capture: Option<&'a str>,
    pub(super) detail: Option<&'a str>,
    /// Who, if it is not the person who began the run.
    pub(super) who: Option<&'a str>,
}

/// Builds the canonical lines of one run's entries at one moment.
#[derive(Debug)]
pub(super) struct Lines {
    head: String,
    who: String,
    facts: String,
    line: String,
}

impl Lines {
    pub(super) fn new(run: &Run, micros: i64) -> Self {
        let facts = format!(
            ",\"why\":{},\"act\":{},\"profile\":{},\"destination\":{},\"run\":{}",
            run.why.as_deref().map_or_else(|| "null".to_owned(), quoted),
            quoted(run.act.word()),
            quoted(&run.profile),
            quoted(&run.destination),
            quoted(run.run.as_str()),
        );
        let mut lines = Self {
            head: String::new(),
            who: quoted(&run.who),
            facts,
            line: String::with_capacity(512),
        };
        lines.at(micros);
        lines
    }

    /// Changes the time of the lines that follow.
    pub(super) fn at(&mut self, micros: i64) {
        self.head = format!("{{\"time\":\"{}\",\"who\":", time_text(micros));
    }

    /// The line of one entry, valid until the next call.
    pub(super) fn build(&mut self, outcome: Outcome, fields: &Fields<'_>) -> &str {
        let line = &mut self.line;
        line.clear();
        line.push_str(&self.head);
        match fields.who {
            Some(who) => push_quoted(line, who),
            None => line.push_str(&self.who),
        }
        line.push_str(&self.facts);
        if fields.seq != RUN {
            line.push_str(",\"seq\":");
            push_number(line, fields.seq);
        }
        line.push_str(",\"outcome\":\"");
        line.push_str(outcome.word());
        line.push('"');
        let is_intent = fields.sha256.is_some();
        if let Some(position) = fields.position {
            line.push_str(if is_intent {
                ",\"position\":"
            } else {
                ",\"landed\":"
            });
            line.push_str(position);
        }
        push_field(line, ",\"sha256\":", fields.sha256);
        push_field(line, ",\"target\":", fields.target);
        push_field(line, ",\"capture\":", fields.capture);
        push_field(line, ",\"detail\":", fields.detail);
        line.push('}');
        line
    }
}

/// What the entry that begins a run is about: the facts of the run that no other entry repeats.
pub(super) fn run_detail(total: u64, plan: &str) -> String {
    format!("{total} messages, plan {}", hex(&sha256(plan.as_bytes())))
}

/// Appends entries to the chain inside one transaction.
pub(super) struct Chain<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    entries: i64,
    hash: [u8; 32],
}

impl<'c> Chain<'c> {
    /// Continues from the newest entry, which another process may have written.
    pub(super) fn open(connection: &'c Connection) -> Result<Self, AuditError> {
        let (entries, hash) = head(connection)?;
        let insert = connection.prepare_cached(
            "INSERT INTO entry (id, run_id, seq, time, outcome, position, sha256, target, capture,
             detail, who, hash, sha256_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        Ok(Self {
            connection,
            insert,
            entries,
            hash,
        })
    }

    /// Appends one entry and gives its number.
    pub(super) fn append(
        &mut self,
        lines: &mut Lines,
        (run_id, micros): (i64, i64),
        outcome: Outcome,
        fields: &Fields<'_>,
    ) -> Result<i64, AuditError> {
        self.hash = link(&self.hash, lines.build(outcome, fields));
        self.entries += 1;
        self.insert.execute(params![
            self.entries,
            run_id,
            fields.seq,
            micros,
            outcome,
            fields.position,
            fields.sha256,
            fields.target,
            fields.capture,
            fields.detail,
            fields.who,
            self.hash,
            fields.sha256.map(sha256_key),
        ])?;
        Ok(self.entries)
    }

    /// Writes the new head; without it the next reader reports the chain as broken.
    pub(super) fn close(self) -> Result<(), AuditError> {
        self.connection
            .prepare_cached("UPDATE chain SET entries = ?1, hash = ?2")?
            .execute(params![self.entries, self.hash])?;
        Ok(())
    }
}

/// The number of entries and the newest hash, as the chain's own table has them.
pub(super) fn head(connection: &Connection) -> Result<(i64, [u8; 32]), AuditError> {
    let row = connection
        .prepare_cached("SELECT entries, hash FROM chain")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    row.ok_or_else(|| AuditError::Invalid("the head of the audit chain is gone".to_owned()))
}

/// The next hash of the chain.
pub(super) fn link(previous: &[u8; 32], line: &str) -> [u8; 32] {
    let mut hasher = Sha256::new_with_prefix(previous);
    hasher.update(line);
    hasher.finalize().into()
}

/// What the index over hashes has in place of a hash in hex.
pub(super) fn sha256_key(sha256: &str) -> i64 {
    let start = sha256.get(..8).unwrap_or_default();
    u32::from_str_radix(start, 16).map_or(-1, i64::from)
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(digits[usize::from(byte >> 4)]));
        text.push(char::from(digits[usize::from(byte & 15)]));
    }
    text
}

/// Now, in microseconds since 1970.
pub(super) fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// A point in time from the database.
pub(super) fn timestamp(micros: i64) -> Timestamp {
    // Out of range only in a file that was tampered with, which the chain shows.
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Serialises a time as the lines do.
pub(super) fn time_as_text<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{time:.6}"))
}

/// The same, for a time that may be missing.
pub(super) fn time_or_null<S: Serializer>(
    time: &Option<Timestamp>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => time_as_text(time, to),
        None => to.serialize_none(),
    }
}

/// A count from the database, where numbers are signed.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn time_text(micros: i64) -> String {
    format!("{:.6}", timestamp(micros))
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 2);
    push_quoted(&mut line, text);
    line
}

fn push_quoted(line: &mut String, text: &str) {
    let plain = text
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        line.push('"');
        line.push_str(text);
        line.push('"');
    } else {
        // Writing a string into JSON cannot fail; the fallback keeps the line well formed anyway.
        line.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "null".to_owned()));
    }
}

fn push_field(line: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        line.push_str(name);
        push_quoted(line, value);
    }
}

fn push_number(line: &mut String, number: i64) {
    // Writing to a string cannot fail.
    let _ = write!(line, "{number}");
}
