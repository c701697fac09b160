//! What the window knows. Plain data, changed by [`AppState::asked`] (a question went out) and [`AppState::apply`]
//! (an answer came in); nothing in here draws, and nothing waits.

pub mod alerts;
mod apply;
pub mod job;
pub mod look;
pub mod purpose;

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Address, Error, LookCost, Millis, ServerInfo};
use dlo_engine::{
    TaskId,
    command::{ConnectionId, CopiesOf, LookId},
    event::{AuditLine, Listed, RunMessage, RunReport, RunSummary, SavedCopy},
    profile::{Mode, Profile},
    replay::plan::Plan,
};

use crate::remote::Remote;

pub use alerts::{Alert, AlertKind};
pub use apply::FollowUp;
pub use job::{Job, JobKind, JobState};
pub use look::{LookPhase, LookState};
pub use purpose::Purpose;

/// Everything the window shows that came from the engine.
#[derive(Debug)]
pub struct AppState {
    pub profiles: Remote<Arc<[Profile]>>,
    pub connections: Vec<Connection>,
    /// Places that are being connected to, and those that could not be.
    pub attempts: BTreeMap<String, Attempt>,
    pub looks: Vec<LookState>,
    pub center: Center,
    pub jobs: Vec<Job>,
    pub notices: Vec<Notice>,
    pub plan: Remote<Arc<Plan>>,
    pub audit: Remote<AuditPage>,
    /// Messages of runs that are unfolded in the audit view.
    pub audit_runs: BTreeMap<String, Remote<AuditPage>>,
    pub verified: Remote<Verified>,
    pub runs: Remote<Arc<[RunSummary]>>,
    pub run: Remote<RunDetail>,
    pub captures: Remote<Arc<[SavedCopy]>>,
    /// Which copies were asked for last.
    pub copies_of: CopiesOf,
    pub reports: Vec<Arc<RunReport>>,
    /// The answer to the connection test of the profile editor.
    pub test: Remote<ServerInfo>,
    pub tasks: BTreeMap<TaskId, Purpose>,
    /// The time of this frame.
    pub now: Millis,
}

/// What fills the middle of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Center {
    #[default]
    Welcome,
    Destination(ConnectionId, Address),
    Look(LookId),
    Audit,
    Runs,
    Run(String),
    Captures,
}

impl Center {
    /// True for what is opened over a destination and left again.
    pub fn is_page(&self) -> bool {
        matches!(
            self,
            Self::Audit | Self::Runs | Self::Run(_) | Self::Captures
        )
    }
}

/// An open connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub id: ConnectionId,
    /// What was asked for: a profile's name or a URL without secrets.
    pub label: String,
    pub broker: String,
    pub mode: Mode,
    pub server: ServerInfo,
    pub list: Remote<Arc<[Listed]>>,
    /// What looking costs, as last asked, by destination.
    pub costs: BTreeMap<Address, Remote<LookCost>>,
    /// When the list was last asked for.
    pub listed_at: Millis,
}

/// Milliseconds for which a job that ended well stays in the strip.
const JOB_STAYS: i64 = 20_000;
/// Milliseconds by which a broker's figures may be late (RabbitMQ's management API counts every 5 s).
const STATISTICS_ARE_LATE: i64 = 10_000;

impl Connection {
    /// A destination of the last list.
    pub fn listed(&self, address: &Address) -> Option<&Listed> {
        self.list
            .value()?
            .iter()
            .find(|listed| &listed.destination.address == address)
    }

    /// Why nothing may be changed here, if that is so.
    pub fn read_only(&self) -> Option<&'static str> {
        (self.mode == Mode::ReadOnly)
            .then_some("This profile is read-only: nothing can be changed.")
    }
}

/// An attempt to connect.
#[derive(Clone, Debug)]
pub enum Attempt {
    Running(TaskId),
    Failed(Error),
}

/// A line that a person should see, and that goes away by itself unless it tells of a failure.
#[derive(Clone, Debug)]
pub struct Notice {
    pub text: String,
    pub weight: Weight,
    pub at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Information,
    Success,
    Failure,
}

/// One page of the audit trail.
#[derive(Clone, Debug)]
pub struct AuditPage {
    pub entries: Arc<[AuditLine]>,
    pub total: u64,
}

/// The result of recomputing the audit trail's hash chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    pub entries: u64,
    pub broken_at: Option<u64>,
}

/// A run with its messages.
#[derive(Clone, Debug)]
pub struct RunDetail {
    pub run: Arc<RunSummary>,
    pub messages: Arc<[RunMessage]>,
    /// Counts reconciled with the broker, when it was run in this session.
    pub notes: Vec<String>,
}

impl Default for AppState {
    fn default() -> Self {
        Self {
            profiles: Remote::NotAsked,
            connections: Vec::new(),
            attempts: BTreeMap::new(),
            looks: Vec::new(),
            center: Center::Welcome,
            jobs: Vec::new(),
            notices: Vec::new(),
            plan: Remote::NotAsked,
            audit: Remote::NotAsked,
            audit_runs: BTreeMap::new(),
            verified: Remote::NotAsked,
            runs: Remote::NotAsked,
            run: Remote::NotAsked,
            captures: Remote::NotAsked,
            copies_of: CopiesOf::Removed,
            reports: Vec::new(),
            test: Remote::NotAsked,
            tasks: BTreeMap::new(),
            now: Millis(0),
        }
    }
}

impl AppState {
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections
            .iter()
            .find(|connection| connection.id == id)
    }

    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections
            .iter_mut()
            .find(|connection| connection.id == id)
    }

    pub fn look(&self, id: LookId) -> Option<&LookState> {
        self.looks.iter().find(|look| look.id == id)
    }

    pub fn look_mut(&mut self, id: LookId) -> Option<&mut LookState> {
        self.looks.iter_mut().find(|look| look.id == id)
    }

    /// The look that fills the middle.
    pub fn active_look(&self) -> Option<&LookState> {
        match self.center {
            Center::Look(id) => self.look(id),
            _ => None,
        }
    }

    /// The look that is open on a destination.
    pub fn look_on(&self, connection: ConnectionId, address: &Address) -> Option<&LookState> {
        self.looks
            .iter()
            .find(|look| look.connection == connection && &look.address == address)
    }

    /// A destination as a person should see it: messages that our own look holds are still there, although the broker counts
    /// them as held and no longer tells how old the first one is.
    pub fn shown(&self, connection: &Connection, address: &Address) -> Option<Listed> {
        let mut listed = connection.listed(address)?.clone();
        let Some(look) = self.look_on(connection.id, address) else {
            return Some(listed);
        };
        // What was settled meanwhile is not held any more, although the broker was not asked again.
        let open: u64 = look.view.groups().iter().map(|group| group.open).sum();
        let held = look.progress.hold.map_or(0, |hold| hold.messages.min(open));
        if held == 0 {
            return Some(listed);
        }
        // A list from about the time of the look, or statistics that are late, may still count what is held as waiting.
        let is_fresh = connection.listed_at.since(look.opened_at) > STATISTICS_ARE_LATE;
        let destination = &mut listed.destination;
        destination.depth = destination.depth.map(|depth| match is_fresh {
            true => depth + held,
            false => depth.max(held),
        });
        if let Some(before) = &look.before {
            destination.oldest = before.destination.oldest;
            destination.expires = before.destination.expires;
            listed.growth_per_hour = before.growth_per_hour;
        }
        Some(listed)
    }

    /// The connection that what fills the middle belongs to, else the only one.
    pub fn active_connection(&self) -> Option<&Connection> {
        match &self.center {
            Center::Destination(id, _) => self.connection(*id),
            Center::Look(id) => self
                .look(*id)
                .and_then(|look| self.connection(look.connection)),
            _ if self.connections.len() == 1 => self.connections.first(),
            _ => None,
        }
    }

    /// Runs of a process that is gone, which still wait for a person.
    pub fn crashed_runs(&self) -> impl Iterator<Item = &RunSummary> {
        self.runs
            .value()
            .into_iter()
            .flat_map(|runs| runs.iter())
            .filter(|run| run.crashed)
    }

    /// Looks for which a task is running with this purpose.
    pub fn is_running(&self, wanted: impl Fn(&Purpose) -> bool) -> bool {
        self.tasks.values().any(wanted)
    }

    pub fn notify(&mut self, weight: Weight, text: impl Into<String>) {
        let text = text.into();
        self.notices.retain(|notice| notice.text != text);
        self.notices.push(Notice {
            text,
            weight,
            at: self.now,
        });
        let surplus = self.notices.len().saturating_sub(6);
        self.notices.drain(..surplus);
    }

    /// Lets old notices go; failures stay until they are dismissed.
    pub fn age_notices(&mut self) {
        let now = self.now;
        self.notices
            .retain(|notice| notice.weight == Weight::Failure || now.since(notice.at) < 9_000);
    }

    /// Lets jobs go that ended well a while ago; the list of runs keeps them. What went wrong stays until it is cleared.
    pub fn age_jobs(&mut self) {
        let now = self.now;
        self.jobs.retain(|job| {
            let is_fresh = job.ended.is_none_or(|ended| now.since(ended) < JOB_STAYS);
            is_fresh || job.state != JobState::Done || !job.troubles().is_empty()
        });
    }
}
