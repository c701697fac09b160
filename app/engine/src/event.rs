//! Everything the engine can answer: plain data, small, bodies by reference.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use dlo_core::{
    Address, Delivery, Destination, Error, Figure, Hold, LookCost, Millis, Position, RedriveTask,
    Returned, ServerInfo,
};

use crate::{
    command::{ConnectionId, LookId, Notes, TaskId},
    dead_letter::Death,
    profile::{Mode, Profile},
    replay::plan::Plan,
    store::LookView,
};

/// One answer.
#[derive(Clone, Debug)]
pub struct Event {
    pub task: TaskId,
    pub news: News,
}

/// What is new.
#[derive(Clone, Debug)]
pub enum News {
    Profiles(Arc<[Profile]>),
    Connected(Arc<Connected>),
    Disconnected {
        connection: ConnectionId,
    },
    Destinations {
        connection: ConnectionId,
        list: Arc<[Listed]>,
    },
    Destination {
        connection: ConnectionId,
        listed: Arc<Listed>,
    },
    Cost {
        connection: ConnectionId,
        address: Address,
        cost: LookCost,
    },
    LookOpened(LookOpened),
    LookProgress {
        look: LookId,
        progress: LookProgress,
    },
    /// A budget is reached; [`crate::Ask::LookFurther`] goes on.
    LookPaused {
        look: LookId,
        progress: LookProgress,
        why: String,
    },
    /// The end of the destination is reached; held messages stay held.
    LookEnded {
        look: LookId,
        progress: LookProgress,
    },
    /// What was held is lost (connection lost, hold ran out): the rows are stale.
    HoldLost {
        look: LookId,
        why: String,
    },
    LookClosed {
        look: LookId,
        returned: Returned,
    },
    Filtered {
        look: LookId,
        query: String,
        rows: Arc<[u32]>,
    },
    Opened(Arc<Opened>),
    Pointed {
        look: LookId,
        row: u32,
        target: Option<Arc<Delivery>>,
        note: String,
    },
    Planned(Arc<Plan>),
    RunStarted {
        run: String,
        total: u64,
    },
    RunProgress(RunProgress),
    RunFinished(Arc<RunReport>),
    Exported {
        file: PathBuf,
        messages: u64,
        bytes: u64,
    },
    Audit {
        entries: Arc<[AuditLine]>,
        total: u64,
    },
    Verified {
        entries: u64,
        broken_at: Option<u64>,
    },
    Runs(Arc<[RunSummary]>),
    RunMessages {
        run: Arc<RunSummary>,
        messages: Arc<[RunMessage]>,
    },
    Captures(Arc<[SavedCopy]>),
    Redrives {
        address: Address,
        tasks: Arc<[RedriveTask]>,
    },
    /// Something a person should know although nothing failed.
    Notice(String),
    /// The task is over and did what was asked.
    Done,
    Failed(Error),
    Cancelled,
}

impl News {
    /// True for the last answer of a task.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_) | Self::Cancelled)
    }
}

/// An open connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    pub connection: ConnectionId,
    /// The profile's name, or the URL without secrets.
    pub label: String,
    /// The connector's word: `rabbitmq`, `kafka`, `sqs`, `memory`.
    pub broker: String,
    pub mode: Mode,
    pub server: ServerInfo,
}

/// A destination with what the engine adds to the broker's facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub destination: Destination,
    pub notes: Notes,
    /// Messages an hour, from samples; positive when it grows. `None` until there are two samples.
    pub growth_per_hour: Option<f64>,
    /// Messages that are resolved in the journal (brokers that cannot delete).
    pub resolved: u64,
    /// Recent samples of depth, oldest first, for a small graph.
    pub samples: Vec<(Millis, u64)>,
}

/// A look has begun.
#[derive(Clone, Debug)]
pub struct LookOpened {
    pub look: LookId,
    pub connection: ConnectionId,
    pub address: Address,
    pub cost: LookCost,
    /// The messages as they arrive; reading it never waits.
    pub view: Arc<LookView>,
}

/// How far a look has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookProgress {
    pub shown: u64,
    pub scanned: u64,
    pub total: Figure<u64>,
    pub gaps: u64,
    pub errors: u64,
    /// Messages that a live tail dropped to stay within its budget.
    pub dropped: u64,
    pub notes: Vec<String>,
    pub hold: Option<Hold>,
    /// True while messages keep coming.
    pub running: bool,
}

/// One message, whole.
#[derive(Clone, Debug)]
pub struct Opened {
    pub look: LookId,
    pub row: u32,
    pub delivery: Delivery,
    /// Why it died, as far as its marks tell; earlier deaths are inside.
    pub death: Option<Death>,
    pub body: Arc<dlo_payload::Decoded>,
    pub key: Option<Arc<dlo_payload::Decoded>>,
    /// Earlier acts on a message with this position and hash, newest first.
    pub history: Vec<AuditLine>,
}

/// Counts of a run by outcome, as design §2 names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    pub run: String,
    pub total: u64,
    pub done: u64,
    pub outcomes: BTreeMap<String, u64>,
    /// Messages a second over the last seconds.
    pub rate: f64,
    pub left: Option<Duration>,
    pub phase: RunPhase,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    #[default]
    Running,
    /// Waiting for returns of the first messages until this time.
    Watching {
        until: Millis,
    },
    Paused,
    /// Why the engine stopped by itself.
    Stopped(String),
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    pub run: RunSummary,
    pub messages: Arc<[RunMessage]>,
    /// Counts reconciled with the broker, in sentences.
    pub notes: Vec<String>,
}

/// One run of the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    pub run: String,
    pub act: String,
    pub place: String,
    pub destination: String,
    pub who: String,
    pub why: String,
    pub started: Millis,
    pub ended: Option<Millis>,
    /// `done`, `open` or `cancelled`; an open run of a process that is gone says so in `crashed`.
    pub state: String,
    pub crashed: bool,
    pub total: u64,
    pub outcomes: BTreeMap<String, u64>,
}

/// One message of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMessage {
    pub sequence: u64,
    pub position: Option<Position>,
    pub sha256: String,
    pub target: Option<String>,
    /// As design §2: planned, published, confirmed, settled, failed, unroutable, unknown, returned.
    pub outcome: String,
    /// The broker's answer or the reason.
    pub detail: Option<String>,
}

/// One line of the audit trail.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditLine {
    pub id: u64,
    pub time: Millis,
    pub who: String,
    pub why: String,
    pub act: String,
    pub place: String,
    pub destination: String,
    pub position: Option<Position>,
    pub sha256: Option<String>,
    pub target: Option<String>,
    pub outcome: String,
    pub detail: Option<String>,
    pub run: Option<String>,
    /// How many messages the run has, when the line stands for the run itself.
    pub messages: Option<u64>,
}

/// A saved copy of a message that was removed or rescued.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCopy {
    pub id: i64,
    pub run: String,
    /// What the run did: `discard`, `purge`, `resolve`, `replay`; a rescue is a `look`.
    pub act: String,
    pub destination: String,
    pub sha256: String,
    pub saved: Millis,
    pub restored_by: Option<String>,
    /// The beginning of its body in one line; bounded. Hexadecimal when it is not text.
    pub preview: String,
    /// Bytes of its body; `None` is a null body.
    pub size: Option<u64>,
    /// The capture line.
    pub line: Arc<str>,
}
