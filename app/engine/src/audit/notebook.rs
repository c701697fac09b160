//! What is remembered about destinations and is no part of the audit trail: depth over time, owner
//! and runbook, how to decode, and schemas that were fetched before.

use jiff::{Timestamp, ToSpan as _};
use rusqlite::{OptionalExtension as _, Row, params};

use super::{AuditError, AuditLog, entry};

/// Depth and oldest age of a destination at one moment.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sample {
    /// When it was taken.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub time: Timestamp,
    /// How many messages, if known.
    pub depth: Option<u64>,
    /// How sure the depth is, in the engine's own word.
    pub depth_certainty: Option<String>,
    /// The time of the oldest message, if known.
    #[serde(serialize_with = "super::entry::time_or_null")]
    pub oldest: Option<Timestamp>,
    /// How sure that is.
    pub oldest_certainty: Option<String>,
}

/// How long samples are kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// All samples are kept for so many hours.
    pub fine_hours: i64,
    /// After that one an hour, for so many days.
    pub coarse_days: i64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            fine_hours: 48,
            coarse_days: 90,
        }
    }
}

/// What people have written down about a destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// Who looks after it.
    pub owner: Option<String>,
    /// The address of the page that says what to do.
    pub runbook: Option<String>,
    /// Anything else.
    pub notes: Option<String>,
}

/// What a stored choice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// How the messages of a destination are decoded.
    Decoding,
    /// Which headers say where a message died and why.
    HeaderMapping,
    /// From when on a destination raises an alert.
    Thresholds,
}

impl Choice {
    fn word(self) -> &'static str {
        match self {
            Self::Decoding => "decoding",
            Self::HeaderMapping => "header mapping",
            Self::Thresholds => "thresholds",
        }
    }
}

impl AuditLog {
    /// Keeps samples of one destination each. A second one of the same moment replaces the first.
    pub async fn add_samples(
        &self,
        profile: &str,
        samples: Vec<(String, Sample)>,
    ) -> Result<(), AuditError> {
        let profile = profile.to_owned();
        self.write(move |connection| {
            let mut insert = connection.prepare_cached(
                "INSERT OR REPLACE INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for (destination, sample) in samples {
                insert.execute(params![
                    profile,
                    destination,
                    sample.time.as_microsecond(),
                    sample.depth.and_then(|depth| i64::try_from(depth).ok()),
                    sample.depth_certainty,
                    sample.oldest.map(|oldest| oldest.as_microsecond()),
                    sample.oldest_certainty,
                ])?;
            }
            Ok(())
        })
        .await
    }

    /// The samples of a destination from `since` on, oldest first.
    pub async fn samples(
        &self,
        profile: &str,
        destination: &str,
        since: Timestamp,
    ) -> Result<Vec<Sample>, AuditError> {
        let (profile, destination) = (profile.to_owned(), destination.to_owned());
        self.read(move |connection| {
            let mut find = connection.prepare_cached(
                "SELECT time, depth, depth_certainty, oldest, oldest_certainty FROM sample
                 WHERE profile = ?1 AND destination = ?2 AND time >= ?3 ORDER BY time",
            )?;
            let key = params![profile, destination, since.as_microsecond()];
            let rows = find.query_map(key, read_sample)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Throws away what `retention` does not keep, and gives how many samples that were.
    pub async fn prune_samples(
        &self,
        now: Timestamp,
        retention: Retention,
    ) -> Result<u64, AuditError> {
        let before = |hours: i64| {
            now.checked_sub(hours.hours())
                .map_or(i64::MIN, |time| time.as_microsecond())
        };
        let fine = before(retention.fine_hours);
        let coarse = before(retention.coarse_days.saturating_mul(24));
        self.write(move |connection| {
            let old = connection.execute("DELETE FROM sample WHERE time < ?1", [coarse])?;
            // Of each hour the first sample stays.
            let thinned = connection.execute(
                "DELETE FROM sample WHERE time < ?1 AND EXISTS (
                   SELECT 1 FROM sample AS first WHERE first.profile = sample.profile
                   AND first.destination = sample.destination
                   AND first.time >= sample.time - sample.time % 3600000000
                   AND first.time < sample.time)",
                [fine],
            )?;
            Ok((old + thinned) as u64)
        })
        .await
    }

    /// What is written down about a destination; all empty if nothing is.
    pub async fn note(&self, profile: &str, destination: &str) -> Result<Note, AuditError> {
        let key = [profile.to_owned(), destination.to_owned()];
        self.read(move |connection| {
            let note = connection
                .prepare_cached(
                    "SELECT owner, runbook, notes FROM note WHERE profile = ?1 AND destination = ?2",
                )?
                .query_row(key, |row| read_note(row, 0))
                .optional()?;
            Ok(note.unwrap_or_default())
        })
        .await
    }

    /// All notes of a profile, by destination.
    pub async fn notes(&self, profile: &str) -> Result<Vec<(String, Note)>, AuditError> {
        let profile = profile.to_owned();
        self.read(move |connection| {
            let mut find = connection.prepare_cached(
                "SELECT destination, owner, runbook, notes FROM note WHERE profile = ?1
                 ORDER BY destination",
            )?;
            let rows = find.query_map([profile], |row| Ok((row.get(0)?, read_note(row, 1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Writes down who looks after a destination, in place of what was there.
    pub async fn set_note(
        &self,
        profile: &str,
        destination: &str,
        note: Note,
        who: &str,
    ) -> Result<(), AuditError> {
        let key = [profile.to_owned(), destination.to_owned()];
        let who = who.to_owned();
        self.write(move |connection| {
            let [profile, destination] = key;
            connection
                .prepare_cached("INSERT OR REPLACE INTO note VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
                .execute(params![
                    profile,
                    destination,
                    note.owner,
                    note.runbook,
                    note.notes,
                    entry::now(),
                    who
                ])?;
            Ok(())
        })
        .await
    }

    /// A choice that was stored, as JSON text. `key` is mostly a destination.
    pub async fn choice(
        &self,
        kind: Choice,
        profile: &str,
        key: &str,
    ) -> Result<Option<String>, AuditError> {
        let key = [kind.word().to_owned(), profile.to_owned(), key.to_owned()];
        self.read(move |connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT value FROM choice WHERE kind = ?1 AND profile = ?2 AND key = ?3",
                )?
                .query_row(key, |row| row.get(0))
                .optional()?)
        })
        .await
    }

    /// All stored choices of a kind on a profile, by key.
    pub async fn choices(
        &self,
        kind: Choice,
        profile: &str,
    ) -> Result<Vec<(String, String)>, AuditError> {
        let key = [kind.word().to_owned(), profile.to_owned()];
        self.read(move |connection| {
            let mut find = connection.prepare_cached(
                "SELECT key, value FROM choice WHERE kind = ?1 AND profile = ?2 ORDER BY key",
            )?;
            let rows = find.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Stores a choice in place of the one before; `None` forgets it.
    pub async fn set_choice(
        &self,
        kind: Choice,
        profile: &str,
        key: &str,
        value: Option<String>,
    ) -> Result<(), AuditError> {
        let (profile, key) = (profile.to_owned(), key.to_owned());
        self.write(move |connection| {
            let sql = match value {
                Some(_) => "INSERT OR REPLACE INTO choice VALUES (?1, ?2, ?3, ?4)",
                None => {
                    "DELETE FROM choice WHERE kind = ?1 AND profile = ?2 AND key = ?3 AND ?4 IS NULL"
                }
            };
            connection
                .prepare_cached(sql)?
                .execute(params![kind.word(), profile, key, value])?;
            Ok(())
        })
        .await
    }

    /// A schema that was stored under this key, for example a registry's address and an id.
    pub async fn cached_schema(&self, key: &str) -> Result<Option<Vec<u8>>, AuditError> {
        let key = key.to_owned();
        self.read(move |connection| {
            Ok(connection
                .prepare_cached("SELECT value FROM schema_cache WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
                .optional()?)
        })
        .await
    }

    /// Stores a schema under a key without secrets, in place of the one before.
    pub async fn cache_schema(&self, key: &str, schema: Vec<u8>) -> Result<(), AuditError> {
        let key = key.to_owned();
        self.write(move |connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO schema_cache VALUES (?1, ?2, ?3)")?
                .execute(params![key, schema, entry::now()])?;
            Ok(())
        })
        .await
    }

    /// Forgets schemas stored before this moment, and gives how many.
    pub async fn prune_schemas(&self, before: Timestamp) -> Result<u64, AuditError> {
        self.write(move |connection| {
            let gone = connection.execute(
                "DELETE FROM schema_cache WHERE time < ?1",
                [before.as_microsecond()],
            )?;
            Ok(gone as u64)
        })
        .await
    }
}

fn read_sample(row: &Row<'_>) -> rusqlite::Result<Sample> {
    Ok(Sample {
        time: entry::timestamp(row.get(0)?),
        depth: row
            .get::<_, Option<i64>>(1)?
            .and_then(|depth| depth.try_into().ok()),
        depth_certainty: row.get(2)?,
        oldest: row.get::<_, Option<i64>>(3)?.map(entry::timestamp),
        oldest_certainty: row.get(4)?,
    })
}

fn read_note(row: &Row<'_>, first: usize) -> rusqlite::Result<Note> {
    Ok(Note {
        owner: row.get(first)?,
        runbook: row.get(first + 1)?,
        notes: row.get(first + 2)?,
    })
}
