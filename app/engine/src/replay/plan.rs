//! A plan: what an act would do to each message, before anything is done. Pure data; [`super::planner`] makes it.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Address, Outgoing, Position};

use crate::command::{Canary, ConnectionId, LookId, PlanId};

/// What an act would do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub id: PlanId,
    /// `replay`, `discard`, `resolve`, `unresolve`, `tombstone`, `truncate`, `purge`, `redrive`.
    pub act: String,
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
