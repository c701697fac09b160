//! The words of the journal: a run, what it intends, the steps of each message, and what is left
//! of a run whose process died.
//!
//! Plain data, apart from the code that writes it, so that the engine, the command line and the
//! window can share it without knowing SQLite.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use super::AuditError;

/// Declares an enum whose values are kept in the database and in JSON by a fixed word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word that stands for it in the database, in JSON and on the command line.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = AuditError;

            fn from_str(word: &str) -> Result<Self, AuditError> {
                Self::ALL.iter().copied().find(|value| value.word() == word).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|value| value.word()).collect();
                    AuditError::Invalid(format!("{word:?} is none of {}", known.join(", ")))
                })
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.word().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
                value.as_str()?.parse().map_err(|_| rusqlite::types::FromSqlError::InvalidType)
            }
        }
    };
}

words! {
    /// What a run does.
    Act {
        /// Publish messages again, then settle the originals.
        Replay = "replay",
        /// Remove messages after saving a copy.
        Discard = "discard",
        /// Put saved messages back.
        Restore = "restore",
        /// Publish the messages of a capture file.
        Import = "import",
        /// Write messages to a file.
        Export = "export",
        /// Read without removing; journalled where looking itself can change something.
        Look = "look",
        /// Remove everything a destination holds.
        Purge = "purge",
        /// Let the broker move the messages itself.
        Redrive = "redrive",
        /// Mark messages as dealt with on a broker that cannot remove one.
        Resolve = "resolve",
        /// Take such a mark back.
        Unresolve = "unresolve",
        /// Write a null value for a key of a compacted topic.
        Tombstone = "tombstone",
        /// Delete a whole prefix of a partition.
        DeleteRecords = "delete records",
    }
}

words! {
    /// What has happened to one message of a run, or to the run itself.
    Outcome {
        /// Intended; nothing has been done yet.
        Planned = "planned",
        /// The next thing that happens is the act itself. Written before the broker is asked, so
        /// that a crash in between is recognised as "may have happened".
        Started = "started",
        /// Handed to the broker, which has not confirmed it.
        Published = "published",
        /// The broker has confirmed the copy; the original is still there.
        Confirmed = "confirmed",
        /// All is done: copied and removed, discarded, or whatever the act was.
        Settled = "settled",
        /// It did not happen; the original is where it was.
        Failed = "failed",
        /// The broker took it and could not route it; the original is where it was.
        Unroutable = "unroutable",
        /// It may or may not have happened.
        Unknown = "unknown",
        /// The replayed message came back as a dead letter.
        Returned = "returned",
        /// Marked as dealt with in the ledger, because the broker cannot remove it.
        Resolved = "resolved",
        /// Put back from a saved copy.
        Restored = "restored",
        /// Left alone on purpose.
        Skipped = "skipped",
        /// Of a run: it goes on.
        Open = "open",
        /// Of a run: it came to its end.
        Done = "done",
        /// Of a run: a person stopped it.
        Cancelled = "cancelled",
        /// Of a run: its process ended without finishing it.
        Crashed = "crashed",
        /// Of a run: another process has taken it over.
        Adopted = "adopted",
    }
}

impl Outcome {
    /// Whether nothing more is expected to happen to a message with this as its newest outcome.
    pub fn is_final(self) -> bool {
        self.stage() == Stage::Done
    }

    /// What this, as the newest outcome of a message, means for a run that was interrupted.
    pub fn stage(self) -> Stage {
        match self {
            Self::Planned => Stage::NotStarted,
            Self::Started | Self::Published | Self::Confirmed | Self::Unknown => Stage::Unknown,
            _ => Stage::Done,
        }
    }

    fn is_for_runs(self) -> bool {
        matches!(
            self,
            Self::Open | Self::Done | Self::Cancelled | Self::Crashed | Self::Adopted
        )
    }

    pub(super) fn for_message(self) -> Result<Self, AuditError> {
        match self.is_for_runs() {
            true => Err(AuditError::Invalid(format!(
                "{self} is the state of a run, not the outcome of a message"
            ))),
            false => Ok(self),
        }
    }
}

words! {
    /// The state of a run.
    RunState {
        /// It goes on, or its process has died: see [`AuditLog::open_runs`](super::AuditLog::open_runs).
        Open = "open",
        /// It came to its end.
        Done = "done",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// Its process died, and a person has closed it.
        Crashed = "crashed",
    }
}

impl RunState {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Open => Outcome::Open,
            Self::Done => Outcome::Done,
            Self::Cancelled => Outcome::Cancelled,
            Self::Crashed => Outcome::Crashed,
        }
    }
}

words! {
    /// How far one message of an interrupted run got.
    Stage {
        /// Intended and certainly not begun.
        NotStarted = "not started",
        /// It has an end, good or bad.
        Done = "done",
        /// Begun, without an end: it may have happened. Only a person can say.
        Unknown = "unknown",
    }
}

/// The name of a run: a UUID of version 7, so that names sort by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    pub(super) fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id that a replayed message carries in a header, so that its return is recognised and a
    /// consumer can drop duplicates. It names the run and the message in it, and nothing else.
    pub fn replay_id(&self, seq: u64) -> String {
        format!("{}-{seq}", self.0)
    }

    /// Reads what [`replay_id`](Self::replay_id) wrote; `None` for anything else.
    pub fn from_replay_id(id: &str) -> Option<(Self, u64)> {
        let (run, seq) = id.rsplit_once('-')?;
        Some((run.parse().ok()?, seq.parse().ok()?))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = AuditError;

    fn from_str(text: &str) -> Result<Self, AuditError> {
        match uuid::Uuid::try_parse(text) {
            Ok(id) => Ok(Self(id.hyphenated().to_string())),
            Err(_) => Err(AuditError::Invalid(format!("{text:?} is no run id"))),
        }
    }
}

impl rusqlite::ToSql for RunId {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl rusqlite::types::FromSql for RunId {
    fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        value.as_str().map(|text| Self(text.to_owned()))
    }
}

/// A run that is about to begin.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What it does.
    pub act: Act,
    /// The profile's name, or a broker's URL. Secrets in a URL are taken out before it is stored.
    pub profile: String,
    /// The destination whose messages it is about.
    pub destination: String,
    /// Where messages go, if all go to one place; each [`Intent`] has its own as well.
    pub target: Option<String>,
    /// Who asked for it, see [`current_person`](super::current_person).
    pub who: String,
    /// The reason that the person gave.
    pub why: Option<String>,
    /// The plan as JSON text; `{}` if there is none.
    pub plan: String,
    /// How many messages it is about, as far as known.
    pub total: u64,
}

/// One message that a run is about to act on.
#[derive(Debug, Clone)]
pub struct Intent {
    /// Its number in the run, from 0 or 1 on, each once.
    pub seq: u64,
    /// Where it lies, as the broker counts, as JSON text.
    pub position: String,
    /// SHA-256 of the body's bytes, in hex.
    pub sha256: String,
    /// Where it will go; `None` if nowhere.
    pub target: Option<String>,
    /// The whole message as one line of a capture file, so that nothing depends on the broker.
    pub capture: Option<String>,
}

/// How soon after [`AuditLog::intend`](super::AuditLog::intend) the act follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Later. Record [`Outcome::Started`] for a message before the broker is asked: a message
    /// without it counts as not started after a crash.
    Planned,
    /// As soon as this is written: it counts as unknown after a crash until an end is recorded.
    Started,
}

/// Something that has happened to a message.
#[derive(Debug, Clone)]
pub struct Step {
    /// The message's number in the run.
    pub seq: u64,
    /// What happened.
    pub outcome: Outcome,
    /// What the broker answered, or why it failed.
    pub detail: Option<String>,
    /// Where the copy landed, if the broker says so, as JSON text.
    pub position: Option<String>,
}

impl Step {
    /// A step of which nothing more is known.
    pub fn new(seq: u64, outcome: Outcome) -> Self {
        Self {
            seq,
            outcome,
            detail: None,
            position: None,
        }
    }

    /// Adds what the broker answered.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds where the copy landed, as JSON text.
    pub fn landed(mut self, position: impl Into<String>) -> Self {
        self.position = Some(position.into());
        self
    }
}

/// A run as it was recorded.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Run {
    /// Its name.
    pub run: RunId,
    /// What it does.
    pub act: Act,
    /// The profile, without secrets.
    pub profile: String,
    /// The destination whose messages it is about.
    pub destination: String,
    /// Where messages go, if all go to one place.
    pub target: Option<String>,
    /// Who asked for it.
    pub who: String,
    /// The reason given.
    pub why: Option<String>,
    /// How many messages it was to be about.
    pub total: u64,
    /// When it began.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub started: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "super::entry::time_or_null")]
    pub finished: Option<Timestamp>,
    /// Its state.
    pub state: RunState,
    /// The process that runs it.
    pub owner: Owner,
}

/// The process that a run belongs to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Owner {
    /// Names one opening of the journal; a lock file of this name is held while it is open.
    #[serde(skip)]
    pub id: String,
    /// The process id.
    pub pid: u32,
    /// When the process started, as the system counts; tells two processes of one id apart.
    pub process_started: String,
    /// The computer's name.
    pub host: String,
}

/// A run that has no end and no living process.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OpenRun {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Messages intended and certainly not begun.
    pub not_started: u64,
    /// Messages with an end, good or bad.
    pub done: u64,
    /// Messages that may or may not have been acted on.
    pub unknown: u64,
}

/// One message of a run with its newest outcome.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RunMessage {
    /// Its number in the run.
    pub seq: u64,
    /// Where it lay, as JSON text.
    pub position: String,
    /// SHA-256 of its body in hex.
    pub sha256: String,
    /// Where it was to go.
    pub target: Option<String>,
    /// The newest outcome.
    pub outcome: Outcome,
    /// When that was.
    #[serde(serialize_with = "super::entry::time_as_text")]
    pub time: Timestamp,
    /// What the broker answered.
    pub detail: Option<String>,
    /// Where the copy landed, as JSON text.
    pub landed: Option<String>,
    /// The saved copy, see [`AuditLog::capture`](super::AuditLog::capture).
    pub capture: Option<i64>,
}

/// What a person says about a message whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It happened: the copy has arrived and the original is gone or resolved.
    Happened,
    /// It did not happen: the message is where it was.
    DidNotHappen,
    /// Nobody can tell, and nobody will look again.
    LeaveIt,
}

impl Decision {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Happened => Outcome::Settled,
            Self::DidNotHappen => Outcome::Failed,
            Self::LeaveIt => Outcome::Skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_a_wrong_one_names_the_right_ones() {
        for act in Act::ALL {
            assert_eq!(act.word().parse::<Act>().unwrap(), *act);
        }
        for outcome in Outcome::ALL {
            assert_eq!(outcome.word().parse::<Outcome>().unwrap(), *outcome);
        }
        let error = "reply".parse::<Act>().unwrap_err().to_string();
        assert!(error.contains("replay"), "{error}");
    }

    #[test]
    fn a_replay_id_names_its_run_and_message_and_nothing_else_is_taken_for_one() {
        let run = RunId::new();
        assert_eq!(
            RunId::from_replay_id(&run.replay_id(17)),
            Some((run.clone(), 17))
        );
        assert_eq!(RunId::from_replay_id(run.as_str()), None);
        assert_eq!(RunId::from_replay_id("order-17"), None);
    }
}
