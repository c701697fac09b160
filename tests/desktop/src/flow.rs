//! The whole window on the memory broker and the real engine, driven as a person would: by accessible names and keys.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use dead_letter_office::{
    app::{App, Start},
    files::{FilePicker, Wanted},
    notify::Notifier,
    theme,
};
use dlo_core::{Header, Message, Target, Value};
use dlo_engine::{EngineHandle, Settings, home::Home, registry::Registry};
use dlo_memory::{Broker, MemoryConnector, QueueSettings};
use egui::{Key, Modifiers};
use egui_kittest::{Harness, kittest::Queryable as _};

/// A running window.
pub struct Flow {
    pub harness: Harness<'static, App>,
    pub broker: Broker,
    /// The URL of the broker.
    pub url: String,
    home: tempfile::TempDir,
    woken: Arc<Woken>,
    notified: Arc<Notified>,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Flow({})", self.url)
    }
}

/// Set by the engine after each event, so that a test waits for news and not for the clock.
#[derive(Debug, Default)]
struct Woken {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Woken {
    fn wake(&self) {
        if let Ok(mut flag) = self.flag.lock() {
            *flag = true;
            self.changed.notify_all();
        }
    }

    /// Waits for the next event, but not for long: some things change by time.
    fn wait(&self) {
        if let Ok(flag) = self.flag.lock()
            && let Ok((mut flag, _)) =
                self.changed
                    .wait_timeout_while(flag, Duration::from_millis(30), |flag| !*flag)
        {
            *flag = false;
        }
    }
}

/// Chooses always the same file, as a person in the platform's dialog would.
#[derive(Debug)]
struct Chosen(PathBuf);

impl FilePicker for Chosen {
    fn unavailable(&self) -> Option<&str> {
        None
    }

    fn pick(&self, _: &Wanted) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

/// Keeps what a person would have been told on the desktop.
#[derive(Debug, Default)]
struct Notified(Mutex<Vec<String>>);

impl Notifier for Notified {
    fn notify(&self, _: &str, text: &str) {
        if let Ok(mut texts) = self.0.lock() {
            texts.push(text.to_owned());
        }
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// How long a test waits for something before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

impl Flow {
    /// A window without a connection, beside a broker with `orders` and its dead letters in `orders.dlq`.
    ///
    /// # Panics
    /// When the engine cannot start.
    pub fn new() -> Self {
        Self::at(tempfile::tempdir().expect("a folder"))
    }

    /// The same with a folder that has something in it already.
    ///
    /// # Panics
    /// When the engine cannot start.
    pub fn at(home: tempfile::TempDir) -> Self {
        let name = format!("flow{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let broker = Broker::named(&name);
        broker.declare_queue("orders.dlq", QueueSettings::classic());
        broker.declare_queue(
            "orders",
            QueueSettings::classic().with_dead_letter_exchange("", Some("orders.dlq")),
        );
        let notified: Arc<Notified> = Arc::default();
        let woken: Arc<Woken> = Arc::default();
        let waker = woken.clone();
        let registry = Registry::default().with(MemoryConnector);
        let brokers = registry.infos();
        let engine = EngineHandle::start(Settings {
            registry,
            home: Home::at(home.path()),
            who: "tester".to_owned(),
            wake: Arc::new(move || waker.wake()),
        })
        .expect("an engine");
        let app = App::new(Start {
            link: Box::new(engine),
            brokers,
            picker: Arc::new(Chosen(home.path().join("chosen.ndjson"))),
            notifier: notified.clone(),
            open: None,
            clock: dlo_core::Millis::now,
        });
        let harness = Harness::builder()
            .with_size([1500.0, 900.0])
            .with_context_setup(theme::install)
            .allow_missing_glyphs()
            .build_ui_state(
                |ui, app: &mut App| {
                    app.logic(&ui.ctx().clone());
                    app.ui(ui);
                },
                app,
            );
        Self {
            harness,
            broker,
            url: format!("memory:{name}"),
            home,
            woken,
            notified,
        }
    }

    /// The same with some dead letters in `orders.dlq`, connected and looked at, every group unfolded.
    pub fn looking(bodies: &[&str]) -> Self {
        let mut flow = Self::new();
        flow.kill(bodies);
        flow.connect();
        flow.look();
        flow
    }

    /// Publishes messages to `orders` and rejects them, so that they die.
    ///
    /// # Panics
    /// When the broker takes no message.
    pub fn kill(&self, bodies: &[&str]) {
        let orders = Target::new(dlo_core::Address::queue("orders"));
        for body in bodies {
            let message = Message {
                body: Some(Bytes::copy_from_slice(body.as_bytes())),
                headers: vec![Header::new("trace", "longstr", Value::text("t-1"))],
                ..Message::default()
            };
            self.broker.publish(&orders, message).expect("published");
            let taken = self.broker.take("orders").expect("a message");
            self.broker.reject(&taken);
        }
    }

    /// Connects by URL, through the dialog.
    pub fn connect(&mut self) {
        self.press(Modifiers::COMMAND, Key::O);
        let url = self.url.clone();
        self.type_into("Broker URL", &url);
        self.click("Connect");
        self.wait_for("orders.dlq");
    }

    /// Opens `orders.dlq` and looks at it.
    pub fn look(&mut self) {
        self.look_at("orders.dlq");
    }

    /// Opens a destination and looks at it, every group unfolded.
    pub fn look_at(&mut self, name: &str) {
        self.click(name);
        self.wait_for("Look at messages");
        self.click("Look at messages");
        self.until("messages are loaded", |flow| {
            flow.harness.query_by_label("Messages").is_some()
                && flow
                    .harness
                    .state()
                    .state
                    .active_look()
                    .is_some_and(|look| !look.progress.running)
        });
        self.press(Modifiers::COMMAND, Key::U);
    }

    /// Steps frames until the condition holds.
    ///
    /// # Panics
    /// When it does not within a minute.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        loop {
            self.harness.step();
            if holds(self) {
                return;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "waited for {what}; notices: {:?}",
                self.harness.state().state.notices
            );
            self.woken.wait();
        }
    }

    /// Waits until something with this name is on screen.
    pub fn wait_for(&mut self, label: &str) {
        self.until(label, |flow| {
            flow.harness.query_all_by_label(label).next().is_some()
        });
    }

    /// Waits until something that contains this text is on screen.
    pub fn wait_for_text(&mut self, text: &str) {
        self.until(text, |flow| {
            flow.harness
                .query_all_by_label_contains(text)
                .next()
                .is_some()
        });
    }

    /// Clicks the first thing with this name.
    ///
    /// # Panics
    /// When there is none.
    pub fn click(&mut self, label: &str) {
        self.wait_for(label);
        let node = self
            .harness
            .query_all_by_label(label)
            .last()
            .expect("found before");
        node.click();
        self.harness.run_steps(3);
    }

    /// Clicks something that contains this text.
    ///
    /// # Panics
    /// When there is none.
    pub fn click_text(&mut self, text: &str) {
        self.wait_for_text(text);
        let node = self
            .harness
            .query_all_by_label_contains(text)
            .last()
            .expect("found before");
        node.click();
        self.harness.run_steps(3);
    }

    /// Puts text into a field, in place of what is there.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn type_into(&mut self, field: &str, text: &str) {
        self.wait_for(field);
        self.harness
            .query_all_by_label(field)
            .last()
            .expect("found before")
            .focus();
        self.harness.run_steps(2);
        self.harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
        self.harness.step();
        self.harness
            .query_all_by_label(field)
            .last()
            .expect("found before")
            .type_text(text);
        self.harness.run_steps(2);
    }

    pub fn press(&mut self, modifiers: Modifiers, key: Key) {
        self.harness.key_press_modifiers(modifiers, key);
        self.harness.run_steps(3);
    }

    /// Gives the reason and starts what a dialog prepared.
    pub fn confirm(&mut self, button: &str) {
        self.type_into("Reason", "a test says so");
        self.until("the button is enabled", |flow| flow.is_enabled(button));
        self.click(button);
    }

    /// Whether the last control with this name can be used.
    pub fn is_enabled(&self, label: &str) -> bool {
        use egui_kittest::kittest::NodeT as _;
        self.harness
            .query_all_by_label(label)
            .last()
            .is_some_and(|node| !node.accesskit_node().is_disabled())
    }

    /// Waits until the newest job is over.
    pub fn job_done(&mut self) {
        self.until("the job is done", |flow| {
            let jobs = &flow.harness.state().state.jobs;
            jobs.last().is_some_and(|job| !job.is_active())
        });
    }

    /// The file that the platform's dialog gives.
    pub fn chosen_file(&self) -> PathBuf {
        self.home.path().join("chosen.ndjson")
    }

    /// What the desktop was asked to show.
    pub fn notified(&self) -> Vec<String> {
        self.notified
            .0
            .lock()
            .map_or(Vec::new(), |texts| texts.clone())
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Bodies in a queue, as text.
    pub fn bodies(&self, queue: &str) -> Vec<String> {
        let content = self.broker.content(queue);
        content
            .iter()
            .map(|message| {
                String::from_utf8_lossy(message.body.as_deref().unwrap_or_default()).into_owned()
            })
            .collect()
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new()
    }
}
