//! The engine from outside: commands in, events out, nothing waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    command::{Ask, Command, TaskId},
    event::Event,
    registry::Registry,
    supervisor,
};

/// Called after each event, from the engine's thread; the window makes it a request for a repaint.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What the engine needs to start.
#[derive(Clone)]
pub struct Settings {
    pub registry: Registry,
    /// Folders for configuration and data; see [`crate::home`].
    pub home: crate::home::Home,
    /// Who acts, for the audit trail.
    pub who: String,
    pub wake: Wake,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Settings({:?}, {:?}, {})",
            self.registry, self.home, self.who
        )
    }
}

/// Commands that may wait for the engine, and events that may wait for the screen. A slow screen slows the reader of a
/// broker, which is what we want.
const COMMANDS: usize = 64;
const EVENTS: usize = 256;

/// A running engine. Dropping it cancels every task, gives back what is held, and waits for that.
#[derive(Debug)]
pub struct EngineHandle {
    commands: Option<mpsc::Sender<Command>>,
    events: mpsc::Receiver<Event>,
    cancel: CancellationToken,
    next_task: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// The engine takes no further command at the moment; the same may be tried again in the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine is busy; try again in a moment")]
pub struct Busy;

impl EngineHandle {
    /// Starts the engine on its own threads.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(settings: Settings) -> std::io::Result<Self> {
        let (commands, command_queue) = mpsc::channel(COMMANDS);
        let (event_sender, events) = mpsc::channel(EVENTS);
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                runtime.block_on(supervisor::run(
                    settings,
                    command_queue,
                    event_sender,
                    token,
                ));
                // Client libraries keep threads of their own; they hold nothing of ours any more.
                runtime.shutdown_timeout(std::time::Duration::from_secs(2));
            })?;
        Ok(Self {
            commands: Some(commands),
            events,
            cancel,
            next_task: AtomicU64::new(1),
            thread: Some(thread),
        })
    }

    /// Asks for something and returns the number under which the answers come.
    ///
    /// # Errors
    /// [`Busy`] when too many commands wait; nothing was asked then.
    pub fn ask(&self, ask: Ask) -> Result<TaskId, Busy> {
        let task = TaskId(self.next_task.fetch_add(1, Ordering::Relaxed));
        let sender = self.commands.as_ref().ok_or(Busy)?;
        sender.try_send(Command { task, ask }).map_err(|_| Busy)?;
        Ok(task)
    }

    /// The next event, if there is one now.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// The next event; `None` when the engine has ended. For the command line and tests, never for a frame.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, waiting on a plain thread; `None` when the engine has ended. Never for a frame.
    pub fn next_blocking(&mut self) -> Option<Event> {
        self.events.blocking_recv()
    }

    /// Asks every task to stop. Events still come until the engine has given back what it holds.
    pub fn stop(&mut self) {
        self.commands = None;
        self.cancel.cancel();
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.stop();
        self.events.close();
        while self.events.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // A panic of the engine was already reported by its own thread.
            let _ = thread.join();
        }
    }
}
