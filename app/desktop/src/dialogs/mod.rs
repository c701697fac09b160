//! Dialogs: each asks for what an act needs, shows what it would do, and sends it off as an intent.

pub mod connect;
pub mod editor;
pub mod export;
pub mod export_audit;
pub mod go_to;
pub mod import;
pub mod keys;
pub mod notes;
pub mod palette;
pub mod plan;
pub mod profile;
pub mod replay_options;
pub mod resolve;
pub mod restore;
pub mod secrets;

use std::path::PathBuf;

use egui::{Align, Id, Key, Layout, Modal, Modifiers, RichText, Ui};

use crate::{intent::Cx, theme, widgets::parts::quiet_button};

/// An open dialog.
#[derive(Debug)]
pub enum Dialog {
    Connect(connect::ConnectDialog),
    Profile(profile::ProfileDialog),
    Secrets(secrets::SecretsDialog),
    Notes(notes::NotesDialog),
    Plan(Box<plan::PlanDialog>),
    Editor(Box<editor::EditorDialog>),
    Export(export::ExportDialog),
    ExportAudit(export_audit::ExportAuditDialog),
    Import(import::ImportDialog),
    Restore(restore::RestoreDialog),
    Resolve(resolve::ResolveDialog),
    Palette(palette::PaletteDialog),
    GoTo(go_to::GoToDialog),
    Keys,
}

/// What becomes of a dialog after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Stay,
    Close,
}

impl Dialog {
    fn title(&self) -> String {
        match self {
            Self::Connect(_) => "Connect".to_owned(),
            Self::Profile(dialog) => dialog.title(),
            Self::Secrets(_) => "Password".to_owned(),
            Self::Notes(dialog) => format!("Owner, notes and alerts of {}", dialog.name()),
            Self::Plan(dialog) => dialog.title(),
            Self::Editor(dialog) => dialog.title(),
            Self::Export(dialog) => dialog.title(),
            Self::ExportAudit(_) => "Export audit entries".to_owned(),
            Self::Import(_) => "Import a capture file".to_owned(),
            Self::Restore(dialog) => dialog.title(),
            Self::Resolve(_) => "An unknown outcome".to_owned(),
            Self::Palette(_) => "Find anything".to_owned(),
            Self::GoTo(_) => "Go to row".to_owned(),
            Self::Keys => "Keys".to_owned(),
        }
    }

    fn width(&self) -> f32 {
        match self {
            Self::Plan(_) => 880.0,
            Self::Editor(_) => 920.0,
            Self::Keys => 620.0,
            Self::Palette(_) => 560.0,
            Self::GoTo(_) => 320.0,
            _ => 540.0,
        }
    }

    /// Draws the dialog over everything else.
    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx<'_>, depth: usize) -> Then {
        let title = self.title();
        let screen = ctx.content_rect();
        let width = self.width().min(screen.width() - 48.0);
        let frame = egui::Frame::popup(&ctx.global_style()).inner_margin(egui::Margin::same(16));
        let modal = Modal::new(Id::unique(("dialog", depth))).frame(frame);
        let response = modal.show(ctx, |ui| {
            ui.set_width(width);
            ui.set_max_height(screen.height() - 90.0);
            let mut then = Then::Stay;
            if !matches!(self, Self::Palette(_)) && title_ui(ui, &title) {
                then = Then::Close;
            }
            if self.body(ui, cx) == Then::Close {
                then = Then::Close;
            }
            then
        });
        let escape = response.is_top_modal
            && !response.any_popup_open
            && ctx.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape));
        let outside =
            matches!(self, Self::Palette(_) | Self::Keys) && response.backdrop_response.clicked();
        if escape || outside {
            Then::Close
        } else {
            response.inner
        }
    }

    fn body(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        match self {
            Self::Connect(dialog) => dialog.ui(ui, cx),
            Self::Profile(dialog) => dialog.ui(ui, cx),
            Self::Secrets(dialog) => dialog.ui(ui, cx),
            Self::Notes(dialog) => dialog.ui(ui, cx),
            Self::Plan(dialog) => dialog.ui(ui, cx),
            Self::Editor(dialog) => dialog.ui(ui, cx),
            Self::Export(dialog) => dialog.ui(ui, cx),
            Self::ExportAudit(dialog) => dialog.ui(ui, cx),
            Self::Import(dialog) => dialog.ui(ui, cx),
            Self::Restore(dialog) => dialog.ui(ui, cx),
            Self::Resolve(dialog) => dialog.ui(ui, cx),
            Self::Palette(dialog) => dialog.ui(ui, cx),
            Self::GoTo(dialog) => dialog.ui(ui, cx),
            Self::Keys => keys::keys_ui(ui),
        }
    }

    /// A file was chosen in the platform's dialog.
    pub fn set_path(&mut self, path: PathBuf) {
        let text = path.display().to_string();
        match self {
            Self::Export(dialog) => dialog.path = text,
            Self::ExportAudit(dialog) => dialog.path = text,
            Self::Import(dialog) => dialog.path = text,
            _ => {}
        }
    }
}

/// The title with a way to close. True when that was clicked.
fn title_ui(ui: &mut Ui, title: &str) -> bool {
    let closed = ui
        .horizontal(|ui| {
            let text = RichText::new(title)
                .size(16.0)
                .family(theme::bold())
                .color(theme::colours(ui).strong);
            ui.add(egui::Label::new(text).truncate());
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                quiet_button(ui, "×", None)
                    .accessible_name("Close dialog")
                    .on_hover_text("Close (Escape)")
                    .clicked()
            })
            .inner
        })
        .inner;
    ui.add_space(6.0);
    closed
}

/// The row of buttons at the end of a dialog: the act on the left of Cancel. True when the act was clicked.
pub fn finish_ui(ui: &mut Ui, add: impl FnOnce(&mut Ui) -> bool) -> (bool, Then) {
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        let acted = add(ui);
        let cancelled = quiet_button(ui, "Cancel", None).clicked();
        (acted, if cancelled { Then::Close } else { Then::Stay })
    })
    .inner
}
