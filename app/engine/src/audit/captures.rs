//! Saved copies of messages: found again, read, marked as restored, and thrown away when old.
//!
//! A copy is written with the intent of its message ([`AuditLog::intend`]), so that there is none
//! without an entry in the audit trail. Lists give facts only; the lines themselves are read by
//! number, because one may be 20 MB long.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::filter::Conditions;
use super::{Act, AuditError, AuditLog, RunId, entry};

/// A saved copy, without the message itself.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Capture {
    /// Its number.
    pub id: i64,
    /// The run that saved it.
    pub run: RunId,
    /// What that run did.
    pub act: Act,
    /// The message's number in that run.
    pub seq: u64,
    /// The profile that it came from.
    pub profile: String,
    /// The destination that it came from.
    pub destination: String,
    /// Where it lay there, as JSON text.
    pub position: String,
    /// SHA-256 of its body in hex.
    pub sha256: String,
    /// When it was saved.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub time: Timestamp,
    /// The length of the capture line in bytes.
    pub bytes: u64,
    /// The run that put it back, if any did.
    pub restored_by: Option<RunId>,
    /// When it was put back.
    #[serde(serialize_with = "super::entry::time_or_null")]
    pub restored_at: Option<Timestamp>,
}

/// Whether copies that have been put back are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restored {
    /// Both kinds.
    #[default]
    Any,
    /// Only those that have been put back.
    Yes,
    /// Only those that have not.
    No,
}

/// Which saved copies; everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct CaptureFilter {
    /// Saved by this run.
    pub run: Option<RunId>,
    /// Saved by runs that do one of these, for example [`Act::Discard`]; empty for all.
    pub acts: Vec<Act>,
    /// From this profile.
    pub profile: Option<String>,
    /// From this destination.
    pub destination: Option<String>,
    /// With a body of this hash.
    pub sha256: Option<String>,
    /// With this text somewhere in the capture line; slow, because every line is read.
    pub text: Option<String>,
    /// Put back or not.
    pub restored: Restored,
    /// Saved at or after.
    pub since: Option<Timestamp>,
    /// Saved before.
    pub until: Option<Timestamp>,
    /// At most so many; `None` for all.
    pub limit: Option<u32>,
    /// Without the first so many.
    pub offset: u64,
}

impl AuditLog {
    /// Saved copies, newest run first, and within a run in the order of its messages.
    pub async fn captures(&self, filter: CaptureFilter) -> Result<Vec<Capture>, AuditError> {
        self.read(move |connection| {
            let conditions = conditions(&filter);
            let sql = format!(
                "SELECT capture.id, run.run, run.act, entry.seq, run.profile, run.destination,
                   entry.position, entry.sha256, entry.time, octet_length(capture.line),
                   capture.restored_by, capture.restored_at
                 {FROM} {} ORDER BY run.id DESC, entry.seq {}",
                conditions.clause(),
                page(filter.limit, filter.offset)
            );
            let mut rows = connection.prepare_cached(&sql)?;
            let rows = rows.query_map(conditions.values(), read_capture)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// How many saved copies there are of this kind.
    pub async fn count_captures(&self, filter: CaptureFilter) -> Result<u64, AuditError> {
        self.read(move |connection| {
            let conditions = conditions(&filter);
            let sql = format!("SELECT count(*) {FROM} {}", conditions.clause());
            let mut count = connection.prepare_cached(&sql)?;
            Ok(count.query_row(conditions.values(), |row| entry::unsigned(row, 0))?)
        })
        .await
    }

    /// One saved copy as the line of a capture file.
    pub async fn capture(&self, id: i64) -> Result<String, AuditError> {
        self.read(move |connection| line(connection, id)).await
    }

    /// Several saved copies in the order asked for. All must exist.
    pub async fn capture_lines(&self, ids: Vec<i64>) -> Result<Vec<String>, AuditError> {
        self.read(move |connection| ids.into_iter().map(|id| line(connection, id)).collect())
            .await
    }

    /// Marks saved copies as put back by `run`. The audit entries of that run say the same; the mark
    /// is what hides a copy from the list of those that can still be restored.
    pub async fn mark_restored(&self, ids: Vec<i64>, run: &RunId) -> Result<(), AuditError> {
        let run = run.clone();
        self.write(move |connection| {
            let now = entry::now();
            let mut mark = connection.prepare_cached(
                "UPDATE capture SET restored_by = ?2, restored_at = ?3 WHERE id = ?1",
            )?;
            for id in ids {
                if mark.execute(params![id, run, now])? == 0 {
                    return Err(no_capture(id));
                }
            }
            Ok(())
        })
        .await
    }

    /// Throws away the copies of this kind that were saved by runs which have ended, and gives their
    /// number. The audit entries stay, with the hash of what was thrown away.
    ///
    /// `limit` and `offset` of the filter are not used.
    pub async fn prune_captures(&self, filter: CaptureFilter) -> Result<u64, AuditError> {
        self.write(move |connection| {
            let conditions = conditions(&filter).and("run.state <> 'open'");
            let sql = format!(
                "DELETE FROM capture WHERE id IN (SELECT capture.id {FROM} {})",
                conditions.clause()
            );
            Ok(connection.execute(&sql, conditions.values())? as u64)
        })
        .await
    }
}

const FROM: &str = "FROM capture JOIN entry ON entry.id = capture.id \
                    JOIN run ON run.id = entry.run_id";

fn conditions(filter: &CaptureFilter) -> Conditions {
    let micros = |time: &Timestamp| time.as_microsecond();
    let conditions = Conditions::default()
        .equal("run.run", filter.run.clone())
        .one_of("run.act", &filter.acts)
        .equal("run.profile", filter.profile.clone())
        .equal("run.destination", filter.destination.clone())
        .equal("entry.sha256", filter.sha256.clone())
        .compare("entry.time >=", filter.since.as_ref().map(micros))
        .compare("entry.time <", filter.until.as_ref().map(micros))
        .contains(&["capture.line"], filter.text.as_deref());
    match filter.restored {
        Restored::Any => conditions,
        Restored::Yes => conditions.and("capture.restored_by IS NOT NULL"),
        Restored::No => conditions.and("capture.restored_by IS NULL"),
    }
}

/// The part of a query that cuts out one page.
pub(super) fn page(limit: Option<u32>, offset: u64) -> String {
    let limit = limit.map_or(-1, i64::from);
    format!("LIMIT {limit} OFFSET {offset}")
}

fn read_capture(row: &Row<'_>) -> rusqlite::Result<Capture> {
    Ok(Capture {
        id: row.get(0)?,
        run: row.get(1)?,
        act: row.get(2)?,
        seq: entry::unsigned(row, 3)?,
        profile: row.get(4)?,
        destination: row.get(5)?,
        position: row.get(6)?,
        sha256: row.get(7)?,
        time: entry::timestamp(row.get(8)?),
        bytes: entry::unsigned(row, 9)?,
        restored_by: row.get(10)?,
        restored_at: row.get::<_, Option<i64>>(11)?.map(entry::timestamp),
    })
}

fn line(connection: &Connection, id: i64) -> Result<String, AuditError> {
    connection
        .prepare_cached("SELECT line FROM capture WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?
        .ok_or_else(|| no_capture(id))
}

fn no_capture(id: i64) -> AuditError {
    AuditError::NotFound {
        what: format!("saved copy {id}"),
    }
}
