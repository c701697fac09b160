//! Why a task was started, so that its answers and its failure find their place.

use dlo_core::Address;
use dlo_engine::{
    Ask,
    command::{Act, ConnectionId, CopiesOf, LookId},
};

/// Why a task was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    Profiles,
    SaveProfile(String),
    RemoveProfile,
    Connect(String),
    /// Connects only to see whether that works.
    Test,
    Disconnect(ConnectionId),
    List(ConnectionId),
    Describe(ConnectionId, Address),
    SaveNotes(ConnectionId, Address),
    Cost(ConnectionId, Address),
    Look(ConnectionId, Address),
    Further(LookId),
    Extend(LookId),
    Close(LookId),
    Filter(LookId),
    Open(LookId, u32),
    Follow(LookId, u32),
    Plan,
    /// A replay, discard or the like; the text titles its job.
    Run(String),
    Export(String),
    Audit,
    /// The messages of one run, for the audit view.
    AuditRun(String),
    ExportAudit,
    Verify,
    Runs,
    RunMessages(String),
    Resolve(String),
    Captures(CopiesOf),
    Redrives,
    /// Pause, resume, cancel.
    Control,
}

impl Purpose {
    /// The plain purpose of a question.
    pub fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Profiles => Self::Profiles,
            Ask::SaveProfile { profile, .. } => Self::SaveProfile(profile.name.clone()),
            Ask::RemoveProfile { .. } => Self::RemoveProfile,
            Ask::Connect { place, .. } => Self::Connect(place.clone()),
            Ask::Disconnect { connection } => Self::Disconnect(*connection),
            Ask::List { connection } => Self::List(*connection),
            Ask::Describe {
                connection,
                address,
            } => Self::Describe(*connection, address.clone()),
            Ask::Find { connection, name } => Self::Describe(*connection, Address::queue(name)),
            Ask::SaveNotes {
                connection,
                address,
                ..
            } => Self::SaveNotes(*connection, address.clone()),
            Ask::Cost {
                connection,
                address,
                ..
            } => Self::Cost(*connection, address.clone()),
            Ask::Look {
                connection,
                address,
                ..
            } => Self::Look(*connection, address.clone()),
            Ask::LookFurther { look } => Self::Further(*look),
            Ask::ExtendHold { look } => Self::Extend(*look),
            Ask::CloseLook { look } => Self::Close(*look),
            Ask::Filter { look, .. } => Self::Filter(*look),
            Ask::Open { look, row, .. } => Self::Open(*look, *row),
            Ask::Follow { look, row } => Self::Follow(*look, *row),
            Ask::Plan(_) => Self::Plan,
            Ask::Run(_) => Self::Run("Run".to_owned()),
            Ask::Import { file, .. } => Self::Run(format!("Import {}", file.display())),
            Ask::Restore { .. } => Self::Run("Restore saved messages".to_owned()),
            Ask::Export { file, .. } => Self::Export(format!("Export to {}", file.display())),
            Ask::Audit { .. } => Self::Audit,
            Ask::ExportAudit { .. } => Self::ExportAudit,
            Ask::VerifyAudit => Self::Verify,
            Ask::Runs => Self::Runs,
            Ask::RunMessages { run } => Self::RunMessages(run.clone()),
            Ask::ResolveUnknown { run, .. } => Self::Resolve(run.clone()),
            Ask::Captures { of, .. } => Self::Captures(*of),
            Ask::Redrives { .. } => Self::Redrives,
            _ => Self::Control,
        }
    }
}

/// The word for an act on a button or in a title.
pub fn act_word(act: &Act) -> &'static str {
    match act {
        Act::Replay(_) => "Replay",
        Act::Discard => "Discard",
        Act::Unresolve => "Take back the mark of",
        Act::Tombstone => "Write tombstones for",
        Act::Truncate => "Delete resolved prefix of",
        Act::Purge => "Purge",
        Act::Redrive { .. } => "Redrive",
    }
}
