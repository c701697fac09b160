//! The journal and the audit trail: what was intended and what happened, written before and after
//! each step, and never changed afterwards.
//!
//! It is separate because everything that changes a broker depends on it and it depends on nothing
//! of ours: messages are kept as lines of the capture format, positions and plans as JSON text. Only
//! this folder knows SQLite.
//!
//! How a run is written, with the promise that each call gives:
//! 1. [`begin`](AuditLog::begin): who wants what, why, with what plan.
//! 2. [`intend`](AuditLog::intend), in batches: which messages, with a copy of each. On the disk
//!    *before* the act; if it fails, the act is refused.
//! 3. [`record`](AuditLog::record), in batches: `published`, `confirmed`, `settled` and the outcomes
//!    that are no success. The original is removed only after `confirmed` is on the disk.
//! 4. [`finish`](AuditLog::finish).
//!
//! After a crash [`open_runs`](AuditLog::open_runs) tells for each message whether it was certainly
//! not begun, has an end, or is unknown; see [`Reach`] for what makes the difference.
//!
//! One thread writes and another reads, each with its own connection (`worker.rs`). Several
//! processes may use one journal at once.

mod captures;
mod entry;
mod error;
mod filter;
mod journal;
mod ledger;
mod notebook;
mod owner;
mod redact;
mod run;
mod runs;
mod schema;
mod trail;
mod worker;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

pub use captures::{Capture, CaptureFilter, Restored};
pub use error::AuditError;
pub use ledger::{EarlierReplay, Fingerprint, Origin, canonical_position};
pub use notebook::{Choice, Note, Retention, Sample};
pub use owner::current_person;
pub use redact::{looks_secret, redacted};
pub use run::{
    Act, Decision, Intent, NewRun, OpenRun, Outcome, Owner, Reach, Run, RunId, RunMessage,
    RunState, Stage, Step,
};
pub use runs::{MessageFilter, Outcomes, RunSummary};
pub use trail::{AuditEntry, AuditFilter, Verified, View};
pub use worker::BUSY_TIMEOUT;

use owner::Presence;
use worker::Workers;

/// The open journal. Clones share one connection; the last one to go closes it.
#[derive(Debug, Clone)]
pub struct AuditLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workers: Workers,
    presence: Presence,
}

/// A failure to inject, so that the rule "if the audit cannot write, the act is refused" can be
/// tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every write is refused as on a disk that became read-only.
    ReadOnly,
    /// The file cannot grow, as on a full disk.
    DiskFull,
}

impl AuditLog {
    /// Opens the journal at `path`, and creates the file and its folder if they are missing.
    ///
    /// Blocks for as long as SQLite needs to open or migrate the file; call it before the window is
    /// shown or from a thread that may wait.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AuditError> {
        let path = path.as_ref();
        let unwritable = |error: std::io::Error| AuditError::Unwritable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(unwritable)?;
        }
        let presence = Presence::announce(path)?;
        let workers = Workers::start(path)?;
        owner::sweep(presence.folder());
        Ok(Self {
            shared: Arc::new(Shared { workers, presence }),
        })
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        self.shared.workers.path()
    }

    /// This process as its runs name it.
    pub fn owner(&self) -> &Owner {
        self.shared.presence.owner()
    }

    /// Makes writes fail from now on, for tests; `None` makes them work again.
    pub async fn inject(&self, fault: Option<Fault>) -> Result<(), AuditError> {
        self.shared.workers.inject(fault).await
    }

    fn owners_folder(&self) -> &Path {
        self.shared.presence.folder()
    }

    async fn write<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        self.shared.workers.write(work).await
    }

    async fn read<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        self.shared.workers.read(work).await
    }

    async fn read_apart<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        self.shared.workers.read_apart(work).await
    }
}
