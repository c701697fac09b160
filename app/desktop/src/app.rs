//! The window: `logic` takes in what the engine says, `ui` draws and then carries out what was wanted.

use std::{sync::Arc, time::Duration};

use dlo_core::{ConnectorInfo, Millis, Secrets};
use dlo_engine::{Ask, News};
use egui::{CentralPanel, Frame, Margin, Panel, Ui};

use crate::{
    action::Action,
    dialogs::{Dialog, Then},
    dispatch::{Link, Waiting},
    files::{self, FilePicker, Picking, Wanted},
    intent::{Cx, Intent},
    notify::{Notifier, Told},
    panels::{
        audit::AuditPanel, captures::CapturesPanel, destination::DestinationPage,
        destinations::DestinationsPanel, detail::DetailPanel, jobs, messages::MessagesPanel,
        notices, runs::RunsPanel, top, welcome,
    },
    state::{AppState, Center},
    theme::{self, colours},
};

/// The whole window without a window around it, so that tests can drive it.
#[derive(Debug)]
pub struct App {
    pub state: AppState,
    pub(crate) link: Box<dyn Link>,
    pub(crate) waiting: Waiting,
    pub(crate) intents: Vec<Intent>,
    pub(crate) dialogs: Vec<Dialog>,
    pub(crate) messages: MessagesPanel,
    pub(crate) audit: AuditPanel,
    pub(crate) show_destinations: bool,
    /// What was shown before audit, runs or saved copies, newest last.
    pub(crate) back: Vec<Center>,
    destinations: DestinationsPanel,
    destination: DestinationPage,
    detail: DetailPanel,
    runs: RunsPanel,
    captures: CapturesPanel,
    brokers: Vec<ConnectorInfo>,
    picker: Arc<dyn FilePicker>,
    notifier: Arc<dyn Notifier>,
    told: Told,
    picking: Option<Picking>,
    started: bool,
    open: Option<String>,
    clock: fn() -> Millis,
}

/// What the window begins with.
#[derive(Debug)]
pub struct Start {
    pub link: Box<dyn Link>,
    pub brokers: Vec<ConnectorInfo>,
    pub picker: Arc<dyn FilePicker>,
    pub notifier: Arc<dyn Notifier>,
    /// A profile or URL to connect to at once.
    pub open: Option<String>,
    pub clock: fn() -> Millis,
}

/// Answers of the engine that one frame takes in.
const EVENTS: usize = 64;
/// How often destinations are listed again while the window is open.
const LIST_EVERY: i64 = 10_000;

impl App {
    pub fn new(start: Start) -> Self {
        Self {
            state: AppState::default(),
            link: start.link,
            waiting: Waiting::default(),
            intents: Vec::new(),
            dialogs: Vec::new(),
            messages: MessagesPanel::default(),
            audit: AuditPanel::default(),
            show_destinations: true,
            back: Vec::new(),
            destinations: DestinationsPanel::default(),
            destination: DestinationPage::default(),
            detail: DetailPanel::default(),
            runs: RunsPanel::default(),
            captures: CapturesPanel::default(),
            brokers: start.brokers,
            picker: start.picker,
            notifier: start.notifier,
            told: Told::default(),
            picking: None,
            started: false,
            open: start.open,
            clock: start.clock,
        }
    }

    /// Takes in what the engine said. Runs before each frame, also while the window is hidden.
    pub fn logic(&mut self, ctx: &egui::Context) {
        self.state.now = (self.clock)();
        if !std::mem::replace(&mut self.started, true) {
            self.begin();
        }
        let (mut more, mut listed) = (true, false);
        for _ in 0..EVENTS {
            let Some(event) = self.link.try_next() else {
                more = false;
                break;
            };
            listed |= matches!(
                event.news,
                News::Destinations { .. } | News::Destination { .. }
            );
            for ask in self.state.apply(event) {
                if matches!(ask, Ask::Runs) {
                    self.audit.outdate();
                }
                self.ask(ask);
            }
        }
        if listed && let Some(text) = self.told.news(&self.state) {
            self.notifier.notify("Dead letters need somebody", &text);
        }
        if more {
            ctx.request_repaint();
        }
        self.list_again(ctx);
        self.take_file();
        self.state.age_notices();
        self.state.age_jobs();
        self.messages.keep(&self.state.looks);
    }

    /// Draws a frame, then carries out what was wanted.
    pub fn ui(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.keys(&ctx);
        self.panels(ui);
        self.show_dialogs(&ctx);
        self.dispatch(&ctx);
    }

    /// Messages that are selected in the look on screen.
    pub fn selected(&self) -> u64 {
        self.state
            .active_look()
            .map_or(0, |look| self.messages.selected(look.id))
    }

    /// What is shown of a look, for tests and measurements.
    pub fn look_panel(
        &mut self,
        look: dlo_engine::command::LookId,
    ) -> &mut crate::panels::messages::LookPanel {
        self.messages.look(look)
    }

    fn begin(&mut self) {
        self.ask(Ask::Profiles);
        self.ask(Ask::Runs);
        if let Some(place) = self.open.take() {
            self.intents
                .push(Intent::Connect(place, Secrets::default()));
        }
    }

    /// Depth, age and growth are kept fresh without a click.
    fn list_again(&mut self, ctx: &egui::Context) {
        let now = self.state.now;
        let due: Vec<_> = self
            .state
            .connections
            .iter()
            .filter(|connection| {
                !connection.list.is_loading() && now.since(connection.listed_at) >= LIST_EVERY
            })
            .map(|connection| connection.id)
            .collect();
        for connection in due {
            self.ask(Ask::List { connection });
        }
        if !self.state.connections.is_empty() {
            ctx.request_repaint_after(Duration::from_secs(1));
        }
        if !self.state.notices.is_empty()
            || self.state.jobs.iter().any(crate::state::Job::is_active)
        {
            ctx.request_repaint_after(Duration::from_millis(250));
        }
    }

    /// Keys of actions, unless a dialog is open or a text field wants them.
    fn keys(&mut self, ctx: &egui::Context) {
        if !self.dialogs.is_empty() {
            return;
        }
        let typing = ctx.text_edit_focused();
        for action in Action::ALL {
            let Some(shortcut) = action.shortcut() else {
                continue;
            };
            // A text field selects its own text, and Escape leaves it.
            let of_text = matches!(
                action,
                Action::SelectAll | Action::CloseMessage | Action::Discard
            );
            if typing && of_text || egui::Popup::is_any_open(ctx) {
                continue;
            }
            if ctx.input_mut(|input| input.consume_shortcut(&shortcut)) {
                self.intents.push(Intent::Perform(action));
            }
        }
    }

    fn panels(&mut self, ui: &mut Ui) {
        let mut intents = std::mem::take(&mut self.intents);
        let mut cx = Cx {
            state: &self.state,
            intents: &mut intents,
            brokers: &self.brokers,
            no_dialog: self.picker.unavailable(),
        };
        let bar = |ui: &Ui| {
            Frame::new()
                .fill(colours(ui).panel)
                .inner_margin(Margin::symmetric(8, 4))
        };
        let frame = bar(ui);
        Panel::top("top")
            .exact_size(theme::BAR + 4.0)
            .frame(frame)
            .show(ui, |ui| top::top_ui(ui, &mut cx));
        let mut strip = 0.0;
        if !self.state.jobs.is_empty() {
            let frame = bar(ui);
            let response = Panel::bottom("jobs")
                .frame(frame)
                .show(ui, |ui| jobs::jobs_ui(ui, &mut cx));
            strip = response.response.rect.height();
        }
        let width = ui.available_width();
        if self.show_destinations {
            let side = Frame::new()
                .fill(colours(ui).panel)
                .inner_margin(Margin::symmetric(6, 8));
            Panel::left("destinations")
                .resizable(true)
                .default_size((width * 0.24).clamp(200.0, 320.0))
                .size_range(160.0..=(width * 0.28).max(200.0))
                .frame(side)
                .show(ui, |ui| self.destinations.ui(ui, &mut cx));
        }
        if let Some(look) = self
            .state
            .active_look()
            .filter(|look| look.wanted.is_some())
        {
            // The table keeps room to be read, however small the window is.
            let room = ui.available_width();
            let side = Frame::new()
                .fill(colours(ui).panel)
                .inner_margin(Margin::symmetric(10, 8));
            Panel::right("message")
                .resizable(true)
                .default_size((width * 0.33).clamp(260.0, 520.0))
                .size_range(220.0..=(room - 380.0).max(260.0))
                .frame(side)
                .show(ui, |ui| self.detail.ui(ui, &mut cx, look));
        }
        let middle = Frame::new().fill(colours(ui).panel);
        CentralPanel::default()
            .frame(middle)
            .show(ui, |ui| match &self.state.center {
                Center::Welcome => welcome::welcome_ui(ui, &mut cx),
                Center::Destination(connection, address) => {
                    self.destination.ui(ui, &mut cx, *connection, address)
                }
                Center::Look(id) => {
                    if let Some(look) = self.state.look(*id) {
                        self.messages.ui(ui, &mut cx, look);
                    }
                }
                Center::Audit => self.audit.ui(ui, &mut cx),
                Center::Runs => self.runs.list_ui(ui, &mut cx),
                Center::Run(run) => self.runs.run_ui(ui, &mut cx, run),
                Center::Captures => self.captures.ui(ui, &mut cx),
            });
        notices::notices_ui(ui, &mut cx, strip);
        if !matches!(self.state.center, Center::Runs | Center::Run(_)) {
            self.runs.left();
        }
        if self.state.center != Center::Captures {
            self.captures.left();
        }
        self.intents = intents;
    }

    fn show_dialogs(&mut self, ctx: &egui::Context) {
        let mut intents = std::mem::take(&mut self.intents);
        let mut cx = Cx {
            state: &self.state,
            intents: &mut intents,
            brokers: &self.brokers,
            no_dialog: self.picker.unavailable(),
        };
        let mut depth = 0;
        self.dialogs.retain_mut(|dialog| {
            let then = dialog.show(ctx, &mut cx, depth);
            depth += 1;
            then == Then::Stay
        });
        self.intents = intents;
    }

    pub(crate) fn pick_file(&mut self, ctx: &egui::Context, wanted: Wanted) {
        if self.picking.is_none() {
            let ctx = ctx.clone();
            self.picking = files::pick(self.picker.clone(), wanted, move || ctx.request_repaint());
        }
    }

    fn take_file(&mut self) {
        let Some(answer) = self.picking.as_ref().and_then(Picking::poll) else {
            return;
        };
        self.picking = None;
        if let (Some(path), Some(dialog)) = (answer, self.dialogs.last_mut()) {
            dialog.set_path(path);
        }
    }
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        Self::logic(self, ctx);
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        Self::ui(self, ui);
    }
}
