//! What the tasks of the engine share: connections, looks, plans, the journal, and a way to answer.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use dlo_core::{Error, ErrorKind, Millis, Result, Session};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    act::run::RunControl,
    audit::AuditLog,
    command::{ConnectionId, LookId, PlanId, TaskId},
    dead_letter,
    event::{Event, News},
    handle::{Settings, Wake},
    look::OpenLook,
    profile::Mode,
    replay::plan::Plan,
};

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    pub id: ConnectionId,
    /// The profile's name, or the URL without secrets. It also names the connection in the journal.
    pub label: String,
    /// The connector's word, for example `rabbitmq`.
    pub broker: &'static str,
    pub mode: Mode,
    /// Header mappings of the person's own, from the profile.
    pub headers: dead_letter::Mapping,
    /// The schema registry's URL, from the profile or the URL's `registry` option.
    pub registry: Option<String>,
    pub secrets: dlo_core::Secrets,
    pub session: Arc<dyn Session>,
    /// The oldest message that a look saw, by destination: the only way to know it where the broker does not tell.
    pub oldest_seen: Mutex<BTreeMap<String, Millis>>,
    /// Cancelled when the connection is closed; looks on it end.
    pub cancel: CancellationToken,
}

/// State of the engine. Locks are held for map operations only, never over an `await`.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    /// The journal, or why there is none: then looking works and every act is refused.
    audit: Result<AuditLog>,
    connections: Mutex<BTreeMap<ConnectionId, Arc<Connection>>>,
    looks: Mutex<BTreeMap<LookId, Arc<OpenLook>>>,
    plans: Mutex<BTreeMap<PlanId, Arc<Plan>>>,
    runs: Mutex<BTreeMap<String, Arc<RunControl>>>,
    pub schemas: crate::schemas::SchemaStore,
    next: AtomicU64,
}

impl Shared {
    pub fn new(settings: Settings, audit: Result<AuditLog>) -> Self {
        Self {
            schemas: crate::schemas::SchemaStore::new(audit.as_ref().ok().cloned()),
            settings,
            audit,
            connections: Mutex::default(),
            looks: Mutex::default(),
            plans: Mutex::default(),
            runs: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// The journal.
    ///
    /// # Errors
    /// Why it cannot be opened: then nothing may be changed anywhere.
    pub fn audit(&self) -> Result<&AuditLog> {
        self.audit.as_ref().map_err(Clone::clone)
    }

    /// A number that was not used before in this process.
    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn connection(&self, id: ConnectionId) -> Result<Arc<Connection>> {
        lock(&self.connections)
            .get(&id)
            .cloned()
            .ok_or_else(|| closed("use the connection"))
    }

    pub fn add_connection(&self, connection: Arc<Connection>) {
        lock(&self.connections).insert(connection.id, connection);
    }

    pub fn remove_connection(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        lock(&self.connections).remove(&id)
    }

    pub fn connections(&self) -> Vec<Arc<Connection>> {
        lock(&self.connections).values().cloned().collect()
    }

    pub fn look(&self, id: LookId) -> Result<Arc<OpenLook>> {
        lock(&self.looks)
            .get(&id)
            .cloned()
            .ok_or_else(|| closed("use the look"))
    }

    pub fn add_look(&self, look: Arc<OpenLook>) {
        lock(&self.looks).insert(look.id, look);
    }

    pub fn remove_look(&self, id: LookId) -> Option<Arc<OpenLook>> {
        lock(&self.looks).remove(&id)
    }

    pub fn looks(&self) -> Vec<Arc<OpenLook>> {
        lock(&self.looks).values().cloned().collect()
    }

    pub fn add_plan(&self, plan: Arc<Plan>) {
        lock(&self.plans).insert(plan.id, plan);
    }

    /// Takes a plan out: it can be run once.
    pub fn take_plan(&self, id: PlanId) -> Result<Arc<Plan>> {
        lock(&self.plans).remove(&id).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "run the plan",
                "it was run already or its look was closed",
            )
            .advise("Make the plan again.")
        })
    }

    pub fn drop_plans_of(&self, look: LookId) {
        lock(&self.plans).retain(|_, plan| plan.look != look);
    }

    pub fn add_run(&self, run: String, control: Arc<RunControl>) {
        lock(&self.runs).insert(run, control);
    }

    pub fn remove_run(&self, run: &str) {
        lock(&self.runs).remove(run);
    }

    pub fn run(&self, run: &str) -> Result<Arc<RunControl>> {
        lock(&self.runs)
            .get(run)
            .cloned()
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "reach the run", "it is not running"))
    }
}

fn closed(operation: &str) -> Error {
    Error::new(ErrorKind::NotFound, operation, "it is closed")
}

/// The content of a mutex; a panic elsewhere is no reason to stop giving messages back.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The way back to the one who asked.
#[derive(Clone)]
pub struct Reporter {
    pub task: TaskId,
    events: mpsc::Sender<Event>,
    wake: Wake,
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reporter({:?})", self.task)
    }
}

impl Reporter {
    pub fn new(task: TaskId, events: mpsc::Sender<Event>, wake: Wake) -> Self {
        Self { task, events, wake }
    }

    /// Sends an answer, waiting while the screen is slow. Nobody may be listening any more: that stops no work.
    pub async fn tell(&self, news: News) {
        if self
            .events
            .send(Event {
                task: self.task,
                news,
            })
            .await
            .is_ok()
        {
            (self.wake)();
        }
    }
}

/// Runs something that waits for the disk or the keychain away from the tasks.
pub async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => Err(Error::new(
            ErrorKind::Unexpected,
            operation,
            panic.to_string(),
        )),
    }
}
