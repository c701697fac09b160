//! What can go wrong with the journal, named by what a person should do about it.
//!
//! It is separate because every other file here returns it, and because the engine's rule "if the
//! audit cannot write, the act is refused" shows these sentences to a person.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the journal could not do what was asked. Nothing of the request was written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The folder or the file cannot be created or written.
    #[error(
        "the journal {path} cannot be written ({reason}); make the folder writable, or choose another with DLO_HOME"
    )]
    Unwritable {
        /// The database file.
        path: PathBuf,
        /// What the operating system or SQLite said.
        reason: String,
    },
    /// A journal that was open can no longer be written, for example because the disk was mounted
    /// read-only or failed.
    #[error(
        "the journal can no longer be written ({reason}); check the disk and the folder's permissions"
    )]
    WriteFailed {
        /// What SQLite said.
        reason: String,
    },
    /// The disk is full, or a quota is reached.
    #[error("the journal cannot grow, because the disk is full; free some space and try again")]
    DiskFull,
    /// The file was written by a newer version of this program.
    #[error(
        "the journal has schema version {found}, and this version of dlo knows up to {known}; use the newer dlo"
    )]
    Newer {
        /// The version in the file.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The file is an SQLite database of another program, or no database at all, or damaged.
    #[error(
        "{path} is not a journal of dlo, or it is damaged ({reason}); move it away, or choose another folder with DLO_HOME"
    )]
    NotAJournal {
        /// The database file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// Another process held the write lock for longer than [`BUSY_TIMEOUT`](super::BUSY_TIMEOUT).
    #[error(
        "the journal is locked by another process; wait until the other dlo has finished, and try again"
    )]
    Busy,
    /// Asked about something that is not in the journal.
    #[error("the journal has no {what}")]
    NotFound {
        /// For example `run 0198…`.
        what: String,
    },
    /// The run belongs to another dlo that is alive, or it has ended.
    #[error("run {run} {reason}")]
    RunClosed {
        /// The run asked for.
        run: String,
        /// Why it takes no more entries.
        reason: String,
    },
    /// The request itself is wrong, for example a message number used twice in one run.
    #[error("the journal refuses this: {0}")]
    Invalid(String),
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
    /// Reading or writing outside the database failed, for example an export's file.
    #[error("{doing}: {reason}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the operating system said.
        reason: String,
    },
    /// Anything else that SQLite says.
    #[error("the journal failed: {0}")]
    Sqlite(String),
}

impl AuditError {
    /// Whether the same request may succeed a little later without anybody doing something.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Names the file in errors that SQLite reports while opening it.
    pub(super) fn opening(path: &Path, error: rusqlite::Error) -> Self {
        let reason = error.to_string();
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => Self::Unwritable { path, reason },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::NotAJournal { path, reason }
            }
            _ => error.into(),
        }
    }

    pub(super) fn no_run(run: &super::RunId) -> Self {
        Self::NotFound {
            what: format!("run {run}"),
        }
    }
}

impl From<rusqlite::Error> for AuditError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(
                ErrorCode::ReadOnly | ErrorCode::SystemIoFailure | ErrorCode::PermissionDenied,
            ) => Self::WriteFailed {
                reason: error.to_string(),
            },
            Some(ErrorCode::ConstraintViolation) => Self::Invalid(error.to_string()),
            _ => Self::Sqlite(error.to_string()),
        }
    }
}
