//! Carries out intents after a frame was drawn: asks the engine, changes what is shown.

use std::collections::VecDeque;

use dlo_core::{Consent, Verdict};
use dlo_engine::{
    Ask, Busy, Event, TaskId,
    command::{LookAsk, LookId},
};

use crate::{
    action::{Action, Scene},
    app::App,
    dialogs::{
        Dialog,
        connect::ConnectDialog,
        editor::EditorDialog,
        export::ExportDialog,
        go_to::GoToDialog,
        import::ImportDialog,
        notes::NotesDialog,
        palette::PaletteDialog,
        plan::{Kind, PlanDialog},
        profile::ProfileDialog,
    },
    intent::Intent,
    state::{Attempt, Center, JobState, Purpose},
};

/// The engine as the window sees it. Tests put a script in its place.
pub trait Link: std::fmt::Debug {
    /// # Errors
    /// [`Busy`] when nothing more is taken at the moment.
    fn ask(&mut self, ask: Ask) -> Result<TaskId, Busy>;
    fn try_next(&mut self) -> Option<Event>;
}

impl Link for dlo_engine::EngineHandle {
    fn ask(&mut self, ask: Ask) -> Result<TaskId, Busy> {
        Self::ask(self, ask)
    }

    fn try_next(&mut self) -> Option<Event> {
        Self::try_next(self)
    }
}

/// Questions that wait because the engine was busy.
pub type Waiting = VecDeque<(Ask, Purpose)>;

impl App {
    /// Carries out everything that was wanted in this frame.
    pub fn dispatch(&mut self, ctx: &egui::Context) {
        self.send_waiting(ctx);
        // Carrying out an intent may want something further.
        let mut rounds = 0;
        while !self.intents.is_empty() && rounds < 8 {
            for intent in std::mem::take(&mut self.intents) {
                self.carry_out(ctx, intent);
            }
            rounds += 1;
        }
    }

    /// Asks the engine, now or as soon as it takes something again.
    pub fn ask(&mut self, ask: Ask) {
        let purpose = Purpose::of(&ask);
        self.ask_as(ask, purpose);
    }

    pub fn ask_as(&mut self, ask: Ask, purpose: Purpose) {
        if !self.waiting.is_empty() {
            self.waiting.push_back((ask, purpose));
            return;
        }
        match self.link.ask(ask.clone()) {
            Ok(task) => self.state.asked(task, purpose),
            Err(Busy) => self.waiting.push_back((ask, purpose)),
        }
    }

    fn send_waiting(&mut self, ctx: &egui::Context) {
        while let Some((ask, purpose)) = self.waiting.pop_front() {
            match self.link.ask(ask.clone()) {
                Ok(task) => self.state.asked(task, purpose),
                Err(Busy) => {
                    self.waiting.push_front((ask, purpose));
                    ctx.request_repaint_after(std::time::Duration::from_millis(50));
                    return;
                }
            }
        }
    }

    fn carry_out(&mut self, ctx: &egui::Context, intent: Intent) {
        match intent {
            Intent::Ask(ask) => self.ask(ask),
            Intent::AskAs(ask, purpose) => self.ask_as(ask, purpose),
            Intent::Connect(place, secrets) => {
                if !matches!(self.state.attempts.get(&place), Some(Attempt::Running(_))) {
                    let shown = shown_place(&place);
                    let ask = Ask::Connect {
                        place,
                        secrets,
                        registry: None,
                    };
                    self.ask_as(ask, Purpose::Connect(shown));
                }
            }
            Intent::ForgetAttempt(place) => {
                self.state.attempts.remove(&place);
            }
            Intent::Show(center) => self.show(center),
            Intent::Visit(connection, address) => {
                let open = self.state.look_on(connection, &address).map(|look| look.id);
                match open {
                    Some(look) => self.state.center = Center::Look(look),
                    None => {
                        self.state.center = Center::Destination(connection, address.clone());
                        let look = LookAsk::default();
                        self.ask(Ask::Describe {
                            connection,
                            address: address.clone(),
                        });
                        self.ask(Ask::Cost {
                            connection,
                            address,
                            look,
                        });
                    }
                }
            }
            Intent::Look(connection, address, consent) => self.look(connection, address, consent),
            Intent::Filter(look, query, resolved) => self.filter(look, query, resolved),
            Intent::OpenMessage(id, row, decode) => {
                if let Some(look) = self.state.look_mut(id) {
                    look.decode = decode.clone();
                }
                self.ask(Ask::Open {
                    look: id,
                    row,
                    decode,
                });
            }
            Intent::CloseMessage(look) => {
                if let Some(look) = self.state.look_mut(look) {
                    look.wanted = None;
                }
            }
            Intent::GoToRow(id, row) => {
                if let Some(look) = self.state.look(id) {
                    self.messages.look(id).go_to(row, look);
                }
            }
            Intent::Draft(look, row, message) => {
                if let Some(look) = self.state.look_mut(look) {
                    match message {
                        Some(message) => look.drafts.insert(row, *message),
                        None => look.drafts.remove(&row),
                    };
                }
            }
            Intent::OpenDialog(dialog) => self.dialogs.push(*dialog),
            Intent::Perform(action) => self.perform(ctx, action),
            Intent::Act(kind, look, selection, count) => {
                let dialog = PlanDialog::new(kind, look, selection, count);
                self.dialogs.push(Dialog::Plan(Box::new(dialog)));
            }
            Intent::Export(id, selection, count) => {
                let name = self
                    .state
                    .look(id)
                    .map(|look| look.address.name.clone())
                    .unwrap_or_default();
                self.dialogs.push(Dialog::Export(ExportDialog::new(
                    id, selection, count, &name,
                )));
            }
            Intent::CancelTask(task) => self.cancel(task),
            Intent::ClearJobs => self.state.jobs.retain(crate::state::Job::is_active),
            Intent::Dismiss(index) => {
                if index < self.state.notices.len() {
                    self.state.notices.remove(index);
                }
            }
            Intent::PickFile(wanted) => self.pick_file(ctx, wanted),
            Intent::Copy(text) => ctx.copy_text(text),
            Intent::OpenUrl(url) => ctx.open_url(egui::OpenUrl::new_tab(url)),
        }
    }

    /// Looks with the usual settings, unless the cost has to be read first.
    fn look(
        &mut self,
        connection: dlo_engine::command::ConnectionId,
        address: dlo_core::Address,
        consent: Consent,
    ) {
        let cost = self.state.connection(connection).and_then(|connection| {
            let asked = connection.costs.get(&address).and_then(|cost| cost.value());
            asked.or_else(|| {
                connection
                    .listed(&address)
                    .map(|listed| &listed.destination.look)
            })
        });
        let verdict = cost.map_or(Verdict::Fine, |cost| cost.verdict);
        let open = self
            .state
            .look_on(connection, &address)
            .filter(|look| look.phase.is_open())
            .map(|look| look.id);
        if let Some(look) = open {
            self.state.center = Center::Look(look);
        } else if verdict >= Verdict::Ask && consent == Consent::Unasked {
            self.state.center = Center::Destination(connection, address);
        } else {
            let look = LookAsk {
                consent,
                ..LookAsk::default()
            };
            self.ask(Ask::Look {
                connection,
                address,
                look,
            });
        }
    }

    fn filter(&mut self, id: LookId, query: String, resolved: dlo_engine::command::ShowResolved) {
        if let Some(look) = self.state.look_mut(id) {
            look.filter.query = query.clone();
            look.filter.resolved = resolved;
        }
        self.ask(Ask::Filter {
            look: id,
            query,
            resolved,
        });
    }

    fn cancel(&mut self, task: TaskId) {
        for job in &mut self.state.jobs {
            if job.task == task && job.is_active() {
                job.state = JobState::Stopping;
            }
        }
        self.ask(Ask::Cancel { task });
    }

    /// Carries out an action from the menu, the palette or a key.
    pub fn perform(&mut self, ctx: &egui::Context, action: Action) {
        let selected = self.selected();
        let scene = Scene {
            state: &self.state,
            selected,
        };
        if let Some(why) = action.blocked(&scene) {
            if action != Action::CloseMessage {
                self.state.notify(crate::state::Weight::Information, why);
            }
            return;
        }
        match action {
            Action::Palette => {
                self.dialogs
                    .push(Dialog::Palette(PaletteDialog::new(selected)));
            }
            Action::Connect => self.dialogs.push(Dialog::Connect(ConnectDialog::default())),
            Action::NewProfile => self.dialogs.push(Dialog::Profile(ProfileDialog::default())),
            Action::Refresh => self.refresh(),
            Action::Import => {
                if let Some(connection) = self.state.active_connection() {
                    self.dialogs
                        .push(Dialog::Import(ImportDialog::new(connection.id)));
                }
            }
            Action::Notes => self.notes(),
            Action::Audit => self.toggle_center(Center::Audit),
            Action::Runs => self.toggle_center(Center::Runs),
            Action::Captures => self.toggle_center(Center::Captures),
            Action::ToggleDestinations => self.show_destinations = !self.show_destinations,
            Action::ToggleTheme => {
                let dark = ctx.theme() == egui::Theme::Dark;
                ctx.set_theme(if dark {
                    egui::Theme::Light
                } else {
                    egui::Theme::Dark
                });
            }
            Action::ZoomIn => egui::gui_zoom::zoom_in(ctx),
            Action::ZoomOut => egui::gui_zoom::zoom_out(ctx),
            Action::Keys => self.dialogs.push(Dialog::Keys),
            Action::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
            _ => self.perform_on_look(action),
        }
    }

    fn perform_on_look(&mut self, action: Action) {
        if action == Action::Look {
            let at = match &self.state.center {
                Center::Destination(connection, address) => Some((*connection, address.clone())),
                _ => self
                    .state
                    .active_look()
                    .map(|look| (look.connection, look.address.clone())),
            };
            if let Some((connection, address)) = at {
                self.look(connection, address, Consent::Unasked);
            }
            return;
        }
        if action == Action::GiveBack {
            if let Ok(look) = crate::action::look_to_give_back(&self.state) {
                let look = look.id;
                self.ask(Ask::CloseLook { look });
            }
            return;
        }
        if action == Action::CloseMessage && self.state.center.is_page() {
            self.state.center = self.back.pop().unwrap_or_default();
            return;
        }
        let Some(look) = self.state.active_look() else {
            return;
        };
        let id = look.id;
        let panel = self.messages.look(id);
        match action {
            Action::LookFurther => self.ask(Ask::LookFurther { look: id }),
            Action::ExtendHold => self.ask(Ask::ExtendHold { look: id }),
            Action::Filter => self.messages.focus_filter(),
            Action::GoToRow => self.dialogs.push(Dialog::GoTo(GoToDialog::new(id))),
            Action::ToggleGrouping => panel.toggle_grouping(),
            Action::UnfoldGroups => panel.unfold(look),
            Action::SelectAll => panel.select_all(look),
            Action::SelectNone => panel.select_none(),
            Action::Edit => {
                if let Some(opened) = look.message() {
                    let draft = look.drafts.get(&opened.row).cloned();
                    let dialog = EditorDialog::new(opened, draft);
                    self.dialogs.push(Dialog::Editor(Box::new(dialog)));
                }
            }
            Action::CloseMessage => self.intents.push(Intent::CloseMessage(id)),
            Action::Export => {
                let (selection, count) = panel.selection(look);
                self.intents.push(Intent::Export(id, selection, count));
            }
            Action::Replay | Action::Discard | Action::Tombstone | Action::Unresolve => {
                let (selection, count) = panel.selection(look);
                let kind = match action {
                    Action::Replay => Kind::Replay,
                    Action::Discard => Kind::Discard,
                    Action::Tombstone => Kind::Tombstone,
                    _ => Kind::Unresolve,
                };
                self.intents.push(Intent::Act(kind, id, selection, count));
            }
            _ => {}
        }
    }

    /// Shows a view, or goes back to what was shown before it.
    fn toggle_center(&mut self, center: Center) {
        if self.state.center != center {
            self.show(center);
            return;
        }
        while self.state.center.is_page() {
            self.state.center = self.back.pop().unwrap_or_default();
        }
    }

    /// Shows a view; from a page, Escape leads back to what was shown before.
    fn show(&mut self, center: Center) {
        if !center.is_page() {
            self.back.clear();
        } else if self.back.last() == Some(&center) {
            self.back.pop();
        } else if self.state.center != center {
            if !self.state.center.is_page() {
                self.back.clear();
            }
            self.back.push(self.state.center.clone());
        }
        self.state.center = center;
    }

    fn refresh(&mut self) {
        let ids: Vec<_> = self
            .state
            .connections
            .iter()
            .map(|connection| connection.id)
            .collect();
        for connection in ids {
            self.ask(Ask::List { connection });
        }
        self.audit.outdate();
    }

    fn notes(&mut self) {
        let at = match &self.state.center {
            Center::Destination(connection, address) => Some((*connection, address.clone())),
            _ => self
                .state
                .active_look()
                .map(|look| (look.connection, look.address.clone())),
        };
        let listed = at.and_then(|(id, address)| {
            let listed = self.state.connection(id)?.listed(&address)?;
            Some((id, listed.clone()))
        });
        if let Some((id, listed)) = listed {
            self.dialogs
                .push(Dialog::Notes(NotesDialog::new(id, &listed)));
        }
    }
}

/// A place as it may be shown: a URL without its secrets.
fn shown_place(place: &str) -> String {
    match dlo_core::Endpoint::parse(place) {
        Ok((endpoint, _)) if place.contains(':') => endpoint.to_string(),
        _ => place.to_owned(),
    }
}
