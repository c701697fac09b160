//! The tables, as numbered migrations.
//!
//! A migration is never changed once it has been released; a new one is added at the end. All
//! missing ones run in one transaction, so that two processes opening an empty file cannot meet
//! half-way.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::AuditError;

/// Marks the file as ours in SQLite's header ("DLOj"), see <https://sqlite.org/pragma.html#pragma_application_id>.
const APPLICATION_ID: i64 = 0x444C_4F6A;

const MIGRATIONS: &[&str] = &[V1];

/// Brings the database up to the newest version this program knows.
pub(super) fn migrate(path: &Path, connection: &mut Connection) -> Result<(), AuditError> {
    if check(path, connection)? == newest() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the lock.
    let version = check(path, &transaction)?;
    for migration in MIGRATIONS
        .iter()
        .skip(usize::try_from(version).unwrap_or(0))
    {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest())?;
    Ok(transaction.commit()?)
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The version of the file, or why it is not ours.
fn check(path: &Path, connection: &Connection) -> Result<i64, AuditError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = pragma("user_version")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && pragma("application_id")? != APPLICATION_ID {
        return Err(AuditError::NotAJournal {
            path: path.to_owned(),
            reason: "it is the database of another program".to_owned(),
        });
    }
    if version > newest() {
        return Err(AuditError::Newer {
            found: version,
            known: newest(),
        });
    }
    Ok(version)
}

/// Version 1.
///
/// - `entry` is the audit trail: one row when a run begins, ends or is taken over (`seq` is -1),
///   one when a message is intended (it carries the position, hash and target), and one for each
///   step of it. `hash` chains each row to the one before it.
/// - `chain` holds the newest entry's number and hash, so that cutting off the end is found too.
/// - `sha256_key` is the first 32 bits of the hash. An index over them is a seventh of one over the
///   hashes; since hashes come in no order, each batch touches nearly all of it.
/// - `run.state`, its counted `outcomes` and the owner change; everything else in `run` is fixed and
///   covered by the hash of the entry that began it.
/// - `capture` holds the saved copy of a message under the number of the entry that intended it, so
///   that it needs no index of its own. It may be deleted; the entry keeps its hash.
const V1: &str = "
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL UNIQUE,
  act TEXT NOT NULL,
  profile TEXT NOT NULL,
  destination TEXT NOT NULL,
  target TEXT,
  who TEXT NOT NULL,
  why TEXT,
  plan TEXT NOT NULL,
  total INTEGER NOT NULL,
  started INTEGER NOT NULL,
  finished INTEGER,
  state TEXT NOT NULL,
  outcomes TEXT,
  owner TEXT NOT NULL,
  pid INTEGER NOT NULL,
  process_started TEXT NOT NULL,
  host TEXT NOT NULL
);
CREATE INDEX run_state ON run(state) WHERE state = 'open';

CREATE TABLE entry (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  seq INTEGER NOT NULL,
  time INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  position TEXT,
  sha256 TEXT,
  sha256_key INTEGER,
  target TEXT,
  capture TEXT,
  detail TEXT,
  who TEXT,
  hash BLOB NOT NULL
);
CREATE INDEX entry_message ON entry(run_id, seq);
CREATE INDEX entry_sha256 ON entry(sha256_key) WHERE sha256_key IS NOT NULL;
CREATE TABLE chain (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  entries INTEGER NOT NULL,
  hash BLOB NOT NULL
);
INSERT INTO chain VALUES (1, 0, zeroblob(32));

CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER run_facts_are_never_changed
BEFORE UPDATE OF id, run, act, profile, destination, target, who, why, plan, total, started ON run
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER run_is_never_deleted BEFORE DELETE ON run
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;

CREATE TABLE capture (
  id INTEGER PRIMARY KEY REFERENCES entry(id),
  line TEXT NOT NULL,
  restored_by TEXT,
  restored_at INTEGER
);

CREATE TABLE resolved (
  profile TEXT NOT NULL,
  destination TEXT NOT NULL,
  position TEXT NOT NULL,
  run TEXT NOT NULL,
  time INTEGER NOT NULL,
  PRIMARY KEY (profile, destination, position)
) WITHOUT ROWID;

CREATE TABLE sample (
  profile TEXT NOT NULL,
  destination TEXT NOT NULL,
  time INTEGER NOT NULL,
  depth INTEGER,
  depth_certainty TEXT,
  oldest INTEGER,
  oldest_certainty TEXT,
  PRIMARY KEY (profile, destination, time)
) WITHOUT ROWID;

CREATE TABLE note (
  profile TEXT NOT NULL,
  destination TEXT NOT NULL,
  owner TEXT,
  runbook TEXT,
  notes TEXT,
  changed INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (profile, destination)
) WITHOUT ROWID;

CREATE TABLE choice (
  kind TEXT NOT NULL,
  profile TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, profile, key)
) WITHOUT ROWID;

CREATE TABLE schema_cache (
  key TEXT PRIMARY KEY,
  value BLOB NOT NULL,
  time INTEGER NOT NULL
) WITHOUT ROWID;
";

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn an_empty_file_gets_every_table_and_a_second_run_changes_nothing() {
        let mut connection = open();
        migrate(Path::new("x"), &mut connection).unwrap();
        migrate(Path::new("x"), &mut connection).unwrap();
        let tables: i64 = connection
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN
                 ('run','entry','chain','capture','resolved','sample','note','choice','schema_cache')",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(tables, 9);
    }

    #[test]
    fn a_newer_file_is_refused_with_both_versions() {
        let mut connection = open();
        migrate(Path::new("x"), &mut connection).unwrap();
        connection
            .pragma_update(None, "user_version", newest() + 3)
            .unwrap();
        let error = migrate(Path::new("x"), &mut connection).unwrap_err();
        assert!(matches!(error, AuditError::Newer { found, known } if found == known + 3));
    }

    #[test]
    fn the_database_of_another_program_is_left_alone() {
        let mut connection = open();
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        let error = migrate(Path::new("x"), &mut connection).unwrap_err();
        assert!(matches!(error, AuditError::NotAJournal { .. }));
    }
}
