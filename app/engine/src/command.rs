//! Everything a person can ask of the engine. The window and the command line speak nothing else.
//!
//! Each [`Command`] has a [`TaskId`]; every answer carries it, and the last one is [`crate::News::Done`],
//! [`crate::News::Failed`] or [`crate::News::Cancelled`]. A look, a connection and a run live on after the task that opened them.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use dlo_core::{Address, Follow, Isolation, Message, Partitioning, Position, Secrets, Start};

use crate::profile::Profile;

/// One task, numbered by the [`crate::EngineHandle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// An open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// An open look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookId(pub u64);

/// A plan that was made and can be run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanId(pub u64);

/// A task with its number.
#[derive(Clone, Debug)]
pub struct Command {
    pub task: TaskId,
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The saved profiles → [`crate::News::Profiles`].
    Profiles,
    /// Saves or replaces a profile, with secrets to keep where the person chose → `Profiles`.
    SaveProfile {
        profile: Profile,
        secrets: Secrets,
        keep: KeepSecrets,
    },
    /// Saves a profile from a configuration file of a broker's own clients → `Profiles`. The file gives URL and secrets.
    ImportProfile {
        profile: Profile,
        file: PathBuf,
        keep: KeepSecrets,
    },
    RemoveProfile {
        name: String,
    },
    /// Connects to a profile's name or a URL → `Connected`. `secrets` are those typed for this time only; `registry` is a schema
    /// registry's URL in place of the profile's.
    Connect {
        place: String,
        secrets: Secrets,
        registry: Option<String>,
    },
    /// Closes its looks (everything is given back) and the connection.
    Disconnect {
        connection: ConnectionId,
    },
    /// → `Destinations`.
    List {
        connection: ConnectionId,
    },
    /// → `Destination`, with all facts.
    Describe {
        connection: ConnectionId,
        address: Address,
    },
    /// Finds a destination by its name alone → `Destination`.
    Find {
        connection: ConnectionId,
        name: String,
    },
    /// Owner, runbook and notes of a destination, kept on this machine.
    SaveNotes {
        connection: ConnectionId,
        address: Address,
        notes: Notes,
    },
    /// What the look would cost → `Cost`. Harmless.
    Cost {
        connection: ConnectionId,
        address: Address,
        look: LookAsk,
    },
    /// Opens a look → `LookOpened`, then `LookProgress` as messages arrive, then `LookPaused` or `LookEnded`.
    Look {
        connection: ConnectionId,
        address: Address,
        look: LookAsk,
    },
    /// Goes on after a budget was reached, with another one of the same size.
    LookFurther {
        look: LookId,
    },
    /// Extends what a look holds → `LookProgress`.
    ExtendHold {
        look: LookId,
    },
    /// Gives everything back and ends the look → `LookClosed`.
    CloseLook {
        look: LookId,
    },
    /// Rows of a look that match → `Filtered`. An empty query is all rows.
    Filter {
        look: LookId,
        query: String,
        resolved: ShowResolved,
    },
    /// One message with its deaths, decoded body and history → `Opened`.
    Open {
        look: LookId,
        row: u32,
        decode: DecodeAs,
    },
    /// The message that a pointer-like dead letter points to → `Pointed`.
    Follow {
        look: LookId,
        row: u32,
    },
    /// Makes a plan and checks it; changes nothing → `Planned`.
    Plan(PlanAsk),
    /// Carries out a plan → `RunStarted`, `RunProgress`, `RunFinished`.
    Run(RunAsk),
    /// Stops a run between two messages until it is resumed.
    PauseRun {
        run: String,
    },
    ResumeRun {
        run: String,
    },
    /// Ends another task, after it has given back what it holds. For a run: between two messages.
    Cancel {
        task: TaskId,
    },
    /// Writes messages of a look to a file → `Exported`.
    Export {
        look: LookId,
        selection: Selection,
        file: PathBuf,
        format: ExportFormat,
        why: String,
    },
    /// Publishes the messages of a capture file → as `Run`.
    Import {
        file: PathBuf,
        connection: ConnectionId,
        to: Option<String>,
        why: String,
        answers: Answers,
    },
    /// Puts discarded or rescued messages back → as `Run`. `to` overrides where they were.
    Restore {
        connection: ConnectionId,
        captures: RestoreWhich,
        to: Option<String>,
        why: String,
        answers: Answers,
    },
    /// → `Audit`.
    Audit {
        query: AuditAsk,
    },
    /// Writes the audit entries that match to a file → `Exported`.
    ExportAudit {
        query: AuditAsk,
        file: PathBuf,
    },
    /// Recomputes the hash chain → `Verified`.
    VerifyAudit,
    /// All runs, newest first → `Runs`.
    Runs,
    /// One run with its messages → `RunMessages`.
    RunMessages {
        run: String,
    },
    /// A person's word on a message whose outcome is unknown.
    ResolveUnknown {
        run: String,
        sequence: u64,
        decision: Decision,
        why: String,
    },
    /// Saved copies → `Captures`.
    Captures {
        destination: Option<String>,
        of: CopiesOf,
    },
    /// The broker's own moves from there → `Redrives`.
    Redrives {
        connection: ConnectionId,
        address: Address,
    },
    CancelRedrive {
        connection: ConnectionId,
        address: Address,
        id: String,
    },
}

/// Where secrets of a profile are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeepSecrets {
    /// Nowhere; they are asked for at each start or come from the environment.
    #[default]
    Nowhere,
    /// In the platform's keychain.
    Keychain,
    /// In a file encrypted with this passphrase.
    Encrypted(dlo_core::Secret),
    /// In plain text, because the person insists.
    PlainText,
}

/// What a person wrote down about a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Notes {
    pub owner: Option<String>,
    pub runbook: Option<String>,
    pub text: String,
    pub alert: Thresholds,
}

/// From when on a destination needs somebody. What is `None` raises no alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Thresholds {
    /// Messages in it, at least.
    pub depth: Option<u64>,
    /// Seconds since its oldest message, at least.
    pub age: Option<u64>,
    /// Messages that come in an hour, at least.
    pub growth: Option<u64>,
    /// Seconds until its first message expires, at most.
    pub expiry: Option<u64>,
}

impl Thresholds {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is asked of a look.
#[derive(Clone, Debug, PartialEq)]
pub struct LookAsk {
    pub start: Start,
    /// Messages at most, in this step; [`Ask::LookFurther`] goes on.
    pub limit: u64,
    pub partitions: Option<Vec<i32>>,
    pub isolation: Isolation,
    pub follow: Follow,
    pub hold: Duration,
    /// The person has read the cost and accepts it.
    pub consent: dlo_core::Consent,
}

impl Default for LookAsk {
    fn default() -> Self {
        Self {
            start: Start::default(),
            limit: 10_000,
            partitions: None,
            isolation: Isolation::default(),
            follow: Follow::default(),
            hold: Duration::from_secs(300),
            consent: dlo_core::Consent::Unasked,
        }
    }
}

/// Whether messages that need nobody any more are shown: resolved in the journal (brokers that cannot delete), or replayed or
/// discarded since they were loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShowResolved {
    #[default]
    Hide,
    Show,
}

/// How a body is decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DecodeAs {
    /// As remembered for the destination, else as detected.
    #[default]
    Detected,
    /// By a recipe such as `gzip+json`, for this message.
    Recipe(String),
    /// By a recipe that is remembered for the destination.
    Remember(String),
}

/// Which messages of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All that are shown: unresolved ones of the whole look.
    All,
    /// The first so many in the look's order.
    First(u64),
    Rows(Vec<u32>),
    /// Those that match a query.
    Match(String),
    Positions(Vec<Position>),
}

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct PlanAsk {
    pub look: LookId,
    pub selection: Selection,
    pub act: Act,
}

/// What is to be done with the messages.
#[derive(Clone, Debug)]
pub enum Act {
    Replay(Box<ReplayAsk>),
    /// Save, then remove; where the broker cannot remove, resolve in the journal.
    Discard,
    /// Take a resolved mark away again.
    Unresolve,
    /// Publish a null value for each key (compacted topics).
    Tombstone,
    /// Delete a prefix of the partitions, up to the last resolved message.
    Truncate,
    /// Remove everything in the destination, saved first.
    Purge,
    /// The broker's own move of the whole queue.
    Redrive {
        to: Option<String>,
        rate: Option<u32>,
    },
}

/// How messages are replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayAsk {
    pub route: Route,
    /// Another connection to publish to; `None` is the one of the look.
    pub to_connection: Option<ConnectionId>,
    /// Messages changed by hand, by row.
    pub drafts: BTreeMap<u32, Message>,
    /// Changes made to every selected message, in this order.
    pub edits: Vec<Edit>,
    /// Header names to keep although a replay would strip them.
    pub keep_headers: Vec<String>,
    /// Messages a second; `None` is as fast as the broker confirms.
    pub rate: Option<u32>,
    pub canary: Option<Canary>,
    pub mark: Mark,
    pub time: ReplayTime,
    pub partitioning: ReplayPartition,
    pub atomicity: dlo_core::Atomicity,
    /// Publish the original message inside a wrapper (Lambda destination, EasyNetQ, SNS envelope) instead of the wrapper.
    pub unwrap: Unwrap,
}

/// Where replayed messages go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// To the place that failed, alone, where the broker can do that; else to its origin.
    #[default]
    Auto,
    /// To the queue that failed, past any exchange.
    Queue,
    /// To the exchange it was first published to, with its first routing key.
    Exchange,
    /// To the topic it came from.
    Topic,
    /// To a destination by name; `exchange:NAME/KEY`, `queue:NAME` and `topic:NAME` say which kind.
    To(String),
}

/// A few messages first, and a watch over what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canary {
    pub messages: u64,
    /// How long to watch for returns before the rest goes.
    pub watch: Duration,
    /// Stops when more than this share comes back, in percent.
    pub stop_percent: f64,
}

/// Whether replayed messages carry our replay-id and run-id headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    WhereAllowed,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayTime {
    #[default]
    Now,
    /// Keep the record's timestamp; it may be too old for the topic.
    Kept,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayPartition {
    #[default]
    ByKey,
    /// The partition the dead letter says it came from.
    Original,
    Exact(i32),
}

impl ReplayPartition {
    /// The connector's word for it, given the origin's partition where it is known.
    pub fn resolve(self, origin: Option<i32>) -> Partitioning {
        match (self, origin) {
            (Self::Exact(partition), _) => Partitioning::Exact(partition),
            (Self::Original, Some(partition)) => Partitioning::Exact(partition),
            _ => Partitioning::ByKey,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unwrap {
    #[default]
    No,
    Yes,
}

/// One change that is made to every selected message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// JSON Pointer = JSON text.
    Set {
        pointer: String,
        json: String,
    },
    Remove {
        pointer: String,
    },
    /// An RFC 6902 JSON Patch as JSON text.
    Patch {
        json: String,
    },
    Replace {
        find: String,
        with: String,
    },
    /// A jq program over the decoded body.
    Jq {
        program: String,
    },
    SetHeader {
        name: String,
        text: String,
    },
    RenameHeader {
        from: String,
        to: String,
    },
    RemoveHeader {
        name: String,
    },
}

/// Runs a plan.
#[derive(Clone, Debug)]
pub struct RunAsk {
    pub plan: PlanId,
    /// Why, in the person's words; part of the audit trail.
    pub why: String,
    pub answers: Answers,
}

/// A person's consent: to findings that must be answered, and to acting on production.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Codes of findings that were read and accepted.
    pub accepted: Vec<String>,
    /// Accepts all findings (`--yes`).
    pub all: bool,
    /// The destination's name, typed; needed on production profiles unless `all`.
    pub typed: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lossless capture format.
    Capture,
    /// For people; loses types and bytes.
    Csv,
}

/// Which saved copies to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreWhich {
    /// All of a run that were not restored yet.
    Run(String),
    Ids(Vec<i64>),
    /// All of a destination that were not restored yet.
    Destination(String),
}

/// Which saved copies are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopiesOf {
    /// Of messages that were taken away: discarded, purged, resolved, or rescued by a look.
    #[default]
    Removed,
    /// Also of messages that a replay has sent: they are for the record.
    Everything,
}

/// What one line of the audit trail stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditView {
    /// A message, or a run that had none.
    #[default]
    Messages,
    /// A run, with the number of its messages.
    Runs,
}

/// Which audit entries; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditAsk {
    pub view: AuditView,
    pub act: Option<String>,
    pub who: Option<String>,
    pub destination: Option<String>,
    pub outcome: Option<String>,
    pub run: Option<String>,
    pub sha256: Option<String>,
    pub text: Option<String>,
    pub from: Option<dlo_core::Millis>,
    pub until: Option<dlo_core::Millis>,
    pub limit: u64,
    pub offset: u64,
}

/// What a person found out about a message with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It arrived at the target.
    Arrived,
    /// It did not arrive.
    Missing,
}
