//! What has been dealt with before: messages resolved on brokers that cannot delete, and replays
//! already made of a message.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::{AuditError, AuditLog, Outcome, RunId, entry, journal::number};

/// A message, as far as it can be recognised again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of its body in hex.
    pub sha256: String,
    /// The profile it lies on.
    pub profile: String,
    /// The destination it lies in.
    pub destination: String,
    /// Where it lies there, as JSON text.
    pub position: String,
}

/// A replay that was made before of a message that has the same body and lay in the same destination.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct EarlierReplay {
    /// The run.
    pub run: RunId,
    /// The message's number in it.
    pub seq: u64,
    /// Who made it.
    pub who: String,
    /// When it was intended.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub time: Timestamp,
    /// Where it was sent.
    pub target: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether the position is the same too. On a broker where a position names one message for ever
    /// (Kafka's partition and offset) it is then surely the same message; on one that borrows
    /// (RabbitMQ, SQS) positions change with each look and say nothing.
    pub same_position: bool,
}

/// What a replay id that came back says.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Origin {
    /// The id that was asked for.
    pub replay_id: String,
    /// The run.
    pub run: RunId,
    /// The message's number in it.
    pub seq: u64,
    /// Who made the replay.
    pub who: String,
    /// When.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub time: Timestamp,
    /// SHA-256 in hex of the original's body.
    pub sha256: String,
    /// Where the original lay.
    pub destination: String,
    /// Its position there, as JSON text.
    pub position: String,
    /// Where the replay went.
    pub target: Option<String>,
    /// The newest outcome.
    pub outcome: Outcome,
}

impl AuditLog {
    /// Marks messages as dealt with, and gives how many were not marked before.
    ///
    /// `profile` is what identifies the cluster, so that two profiles of one cluster share marks.
    /// Positions are JSON text; the order of their fields and spaces do not matter.
    pub async fn resolve(
        &self,
        profile: &str,
        destination: &str,
        positions: Vec<String>,
        run: &RunId,
    ) -> Result<u64, AuditError> {
        let (profile, destination) = (profile.to_owned(), destination.to_owned());
        let run = run.clone();
        self.write(move |connection| {
            let now = entry::now();
            let mut insert = connection
                .prepare_cached("INSERT OR IGNORE INTO resolved VALUES (?1, ?2, ?3, ?4, ?5)")?;
            let mut new = 0;
            for position in &positions {
                let position = canonical(position)?;
                new += insert.execute(params![profile, destination, position, run, now])?;
            }
            Ok(new as u64)
        })
        .await
    }

    /// Takes marks back, and gives how many there were.
    pub async fn unresolve(
        &self,
        profile: &str,
        destination: &str,
        positions: Vec<String>,
    ) -> Result<u64, AuditError> {
        let (profile, destination) = (profile.to_owned(), destination.to_owned());
        self.write(move |connection| {
            let mut delete = connection.prepare_cached(
                "DELETE FROM resolved WHERE profile = ?1 AND destination = ?2 AND position = ?3",
            )?;
            let mut gone = 0;
            for position in &positions {
                gone += delete.execute(params![profile, destination, canonical(position)?])?;
            }
            Ok(gone as u64)
        })
        .await
    }

    /// Which of these positions are marked: for each the run that did it, in the order asked for.
    pub async fn resolved_by(
        &self,
        profile: &str,
        destination: &str,
        positions: Vec<String>,
    ) -> Result<Vec<Option<RunId>>, AuditError> {
        let (profile, destination) = (profile.to_owned(), destination.to_owned());
        self.read(move |connection| {
            let mut find = connection.prepare_cached(
                "SELECT run FROM resolved
                 WHERE profile = ?1 AND destination = ?2 AND position = ?3",
            )?;
            let by = positions.iter().map(|position| {
                let key = params![profile, destination, canonical(position)?];
                Ok(find.query_row(key, |row| row.get(0)).optional()?)
            });
            by.collect()
        })
        .await
    }

    /// All marked positions of a destination, as canonical JSON text: see [`canonical_position`].
    pub async fn resolved_positions(
        &self,
        profile: &str,
        destination: &str,
    ) -> Result<HashSet<String>, AuditError> {
        let (profile, destination) = (profile.to_owned(), destination.to_owned());
        self.read(move |connection| {
            let mut find = connection.prepare_cached(
                "SELECT position FROM resolved WHERE profile = ?1 AND destination = ?2",
            )?;
            let rows = find.query_map([profile, destination], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// How many positions are marked, by destination.
    pub async fn resolved_counts(
        &self,
        profile: &str,
    ) -> Result<BTreeMap<String, u64>, AuditError> {
        let profile = profile.to_owned();
        self.read(move |connection| {
            let mut count = connection.prepare_cached(
                "SELECT destination, count(*) FROM resolved WHERE profile = ?1
                 GROUP BY destination",
            )?;
            let rows =
                count.query_map([profile], |row| Ok((row.get(0)?, entry::unsigned(row, 1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Replays made before of each of these messages, newest first, in the order asked for.
    pub async fn earlier_replays(
        &self,
        of: Vec<Fingerprint>,
    ) -> Result<Vec<Vec<EarlierReplay>>, AuditError> {
        self.read(move |connection| {
            // One transaction, or else SQLite locks and unlocks the file for each message.
            let snapshot = connection.unchecked_transaction()?;
            let known = known_hashes(&snapshot, &of)?;
            let of = of.iter().map(|one| match known.contains(&one.sha256) {
                true => earlier(&snapshot, one),
                false => Ok(Vec::new()),
            });
            of.collect()
        })
        .await
    }

    /// What these replay ids, found in headers, stand for. Ids of another journal, and text that is
    /// no replay id, are left out.
    pub async fn replay_origins(&self, ids: Vec<String>) -> Result<Vec<Origin>, AuditError> {
        self.read(move |connection| {
            let found = ids
                .into_iter()
                .filter_map(|id| origin(connection, id).transpose());
            found.collect()
        })
        .await
    }
}

/// A position in the form that the ledger compares: JSON without spaces, fields in order of name.
pub fn canonical_position(position: &str) -> Result<String, AuditError> {
    canonical(position)
}

fn canonical(position: &str) -> Result<String, AuditError> {
    match serde_json::from_str::<Value>(position) {
        Ok(value) => Ok(sorted(value).to_string()),
        Err(error) => Err(AuditError::Invalid(format!(
            "the position {position} is not JSON ({error})"
        ))),
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let names: BTreeSet<String> = fields.keys().cloned().collect();
            let mut fields = fields;
            let field = |name: String| {
                let value = fields.remove(&name).unwrap_or_default();
                (name, sorted(value))
            };
            Value::Object(names.into_iter().map(field).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// An intent of this hash, its run and its newest entry.
const REPLAYS: &str =
    "SELECT run.run, intent.seq, run.who, intent.time, intent.target, newest.outcome,
      intent.position, intent.sha256, run.destination
    FROM entry AS intent JOIN run ON run.id = intent.run_id
    JOIN entry AS newest ON newest.id =
      (SELECT max(id) FROM entry WHERE run_id = intent.run_id AND seq = intent.seq)";

/// Those of the hashes that the journal may have seen. Mostly there are none, and one statement finds that out for all.
fn known_hashes(
    connection: &Connection,
    of: &[Fingerprint],
) -> Result<HashSet<String>, AuditError> {
    let asked: HashSet<i64> = of
        .iter()
        .map(|one| entry::sha256_key(&one.sha256))
        .collect();
    let asked = serde_json::to_string(&asked).unwrap_or_default();
    let mut find = connection.prepare_cached(
        "SELECT value FROM json_each(?1) WHERE EXISTS
           (SELECT 1 FROM entry WHERE sha256_key IS NOT NULL AND sha256_key = value)",
    )?;
    let found = find.query_map([asked], |row| row.get::<_, i64>(0))?;
    let found: HashSet<i64> = found.collect::<rusqlite::Result<_>>()?;
    let is_known = |one: &&Fingerprint| found.contains(&entry::sha256_key(&one.sha256));
    Ok(of
        .iter()
        .filter(is_known)
        .map(|one| one.sha256.clone())
        .collect())
}

/// `IS NOT NULL` tells SQLite that the partial index serves; else it looks at the bound value and prepares the statement anew
/// for each message.
fn earlier(connection: &Connection, of: &Fingerprint) -> Result<Vec<EarlierReplay>, AuditError> {
    let mut find = connection.prepare_cached(&format!(
        "{REPLAYS} WHERE intent.sha256_key IS NOT NULL AND intent.sha256_key = ?4 AND intent.sha256 = ?1 AND run.destination = ?2 AND run.profile = ?3
         AND run.act = 'replay' AND newest.outcome NOT IN ('planned', 'skipped')
         ORDER BY intent.id DESC LIMIT 20"
    ))?;
    let here = canonical(&of.position)?;
    let key = entry::sha256_key(&of.sha256);
    let of = params![of.sha256, of.destination, of.profile, key];
    let rows = find.query_map(of, |row| read_earlier(row, &here))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read_earlier(row: &Row<'_>, here: &str) -> rusqlite::Result<EarlierReplay> {
    let position: String = row.get(6)?;
    Ok(EarlierReplay {
        run: row.get(0)?,
        seq: entry::unsigned(row, 1)?,
        who: row.get(2)?,
        time: entry::timestamp(row.get(3)?),
        target: row.get(4)?,
        outcome: row.get(5)?,
        same_position: canonical(&position).is_ok_and(|there| there == here),
    })
}

fn origin(connection: &Connection, replay_id: String) -> Result<Option<Origin>, AuditError> {
    let Some((run, seq)) = RunId::from_replay_id(&replay_id) else {
        return Ok(None);
    };
    let mut find = connection.prepare_cached(&format!(
        "{REPLAYS} WHERE run.run = ?1 AND intent.seq = ?2 AND intent.sha256 IS NOT NULL"
    ))?;
    let found = find.query_row(params![run, number(seq)?], |row| {
        Ok(Origin {
            replay_id,
            run: row.get(0)?,
            seq: entry::unsigned(row, 1)?,
            who: row.get(2)?,
            time: entry::timestamp(row.get(3)?),
            target: row.get(4)?,
            outcome: row.get(5)?,
            position: row.get(6)?,
            sha256: row.get(7)?,
            destination: row.get(8)?,
        })
    });
    Ok(found.optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_compared_by_meaning_and_keeps_large_numbers() {
        let one = canonical(r#"{"partition": 3, "offset": 18446744073709551615}"#).unwrap();
        let other = canonical(r#"{"offset":18446744073709551615,"partition":3}"#).unwrap();
        assert_eq!(one, other);
        assert!(one.contains("18446744073709551615"));
        assert!(canonical("not json").is_err());
    }
}
