//! A plan: what an act would do to each message, before anything is done. Pure data; [`super::planner`] makes it.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Address, Atomicity, Outgoing, Position};

use crate::command::{Canary, ConnectionId, LookId, Mark, PlanId};

/// What an act would do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub id: PlanId,
    pub act: PlannedAct,
    pub look: LookId,
    pub connection: ConnectionId,
    /// Where replayed messages are published; the same as `connection` unless the person chose another.
    pub to_connection: ConnectionId,
    pub from: Address,
    pub messages: Arc<[PlannedMessage]>,
    /// Messages per target, in words (`queue orders`).
    pub targets: BTreeMap<String, u64>,
    /// What a person has to know or answer, worst first.
    pub findings: Vec<Finding>,
    pub rate: Option<u32>,
    pub canary: Option<Canary>,
    pub atomicity: Atomicity,
    /// Whether published messages get our replay-id and run-id headers.
    pub mark: Mark,
    /// Which engine carries it out and why, in a sentence.
    pub engine: String,
    /// What will happen, step by step, in sentences.
    pub steps: Vec<String>,
    /// The destination's name must be typed (production profiles).
    pub must_type: bool,
}

impl Plan {
    /// Codes of the findings that must be answered.
    pub fn must_answer(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == Severity::MustAnswer)
    }
}

/// What a plan does, with what it needs beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedAct {
    Replay,
    /// Save, then remove.
    Discard,
    /// Mark as resolved in the journal, because the broker cannot remove.
    Resolve,
    /// Take that mark away again.
    Unresolve,
    /// Publish null bodies for the keys.
    Tombstone,
    /// Delete everything before these offsets, as `(partition, first offset to stay)`.
    Truncate {
        before: Vec<(i32, i64)>,
    },
    /// Discard everything that was seen, and check the count after.
    Purge,
    /// The broker's own move.
    Redrive {
        to: Option<Address>,
        rate: Option<u32>,
    },
}

impl PlannedAct {
    /// The word for it in sentences, in the journal and on the command line.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
            Self::Resolve => "resolve",
            Self::Unresolve => "unresolve",
            Self::Tombstone => "tombstone",
            Self::Truncate { .. } => "truncate",
            Self::Purge => "purge",
            Self::Redrive { .. } => "redrive",
        }
    }
}

/// One message of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedMessage {
    pub row: u32,
    pub position: Position,
    pub sha256: String,
    /// Where it goes, in words; `None` for acts that publish nothing.
    pub target: Option<String>,
    /// What the target was read from, for example `x-death[0].queue`.
    pub evidence: String,
    /// What goes out; `None` for acts that publish nothing, and for a message that cannot go (see `refused`).
    pub outgoing: Option<Arc<Outgoing>>,
    /// What differs from the dead letter, header by header.
    pub changes: Vec<Change>,
    /// Why this message cannot go; it stays where it is.
    pub refused: Option<String>,
}

/// One difference between the dead letter and what goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: ChangeKind,
    /// `header NAME`, `property NAME`, `body`, `key`.
    pub what: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Stripped,
    Added,
    Edited,
}

/// Something that was checked before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// A short fixed word to answer by, for example `fan-out`.
    pub code: &'static str,
    pub text: String,
    /// How many messages it is about.
    pub messages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Fine,
    Warning,
    /// The run does not start before the person accepts it.
    MustAnswer,
    /// The run cannot start at all.
    Blocks,
}
