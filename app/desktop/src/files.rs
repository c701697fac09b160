//! Choosing a file with the platform's dialog, on a thread of its own, because the dialog waits for a person.
//!
//! Where there is no dialog (no portal, no zenity) the call would come back at once as if it had been cancelled, so that is
//! found out before, and the path is typed instead.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, sync_channel},
    },
};

/// What a file is wanted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A new file, with a name to begin with.
    Save { name: String },
    /// A file that is there.
    Open,
}

/// Chooses files. Tests put their own in place.
pub trait FilePicker: std::fmt::Debug + Send + Sync {
    /// Why there is no dialog; `None` when there is one.
    fn unavailable(&self) -> Option<&str>;
    /// Asks the person and waits; `None` when the person chose nothing.
    fn pick(&self, wanted: &Wanted) -> Option<PathBuf>;
}

/// A choice that is being made.
#[derive(Debug)]
pub struct Picking {
    answer: Receiver<Option<PathBuf>>,
}

/// Opens the dialog on its own thread. `wake` is called when the person has chosen.
pub fn pick(
    picker: Arc<dyn FilePicker>,
    wanted: Wanted,
    wake: impl FnOnce() + Send + 'static,
) -> Option<Picking> {
    let (sender, answer) = sync_channel(1);
    std::thread::Builder::new()
        .name("file dialog".to_owned())
        .spawn(move || {
            // Nobody listens any more when the dialog's owner was closed meanwhile.
            let _ = sender.send(picker.pick(&wanted));
            wake();
        })
        .ok()?;
    Some(Picking { answer })
}

impl Picking {
    /// The choice, once it is made: `Some(None)` when it was cancelled.
    pub fn poll(&self) -> Option<Option<PathBuf>> {
        match self.answer.try_recv() {
            Ok(path) => Some(path),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(None),
        }
    }
}

/// The platform's dialog.
#[derive(Debug)]
pub struct NativePicker {
    unavailable: Option<String>,
}

impl NativePicker {
    pub fn new() -> Self {
        Self {
            unavailable: (!has_dialog()).then(|| {
                "This desktop offers no file dialog (neither a portal nor zenity). Type the path.".to_owned()
            }),
        }
    }
}

impl Default for NativePicker {
    fn default() -> Self {
        Self::new()
    }
}

impl FilePicker for NativePicker {
    fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    fn pick(&self, wanted: &Wanted) -> Option<PathBuf> {
        let dialog = rfd::FileDialog::new();
        match wanted {
            Wanted::Save { name } => dialog.set_file_name(name).save_file(),
            Wanted::Open => dialog.pick_file(),
        }
    }
}

/// Linux needs a desktop portal on the session bus, or the program zenity; other platforms have a dialog.
fn has_dialog() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let portal = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() && portal_installed();
    portal || on_path("zenity")
}

/// A portal is started by the bus from a service file in one of the data folders.
fn portal_installed() -> bool {
    let folders = std::env::var("XDG_DATA_DIRS").unwrap_or_default();
    let folders = if folders.is_empty() {
        "/usr/local/share:/usr/share".to_owned()
    } else {
        folders
    };
    std::env::split_paths(&folders).any(|folder| {
        folder
            .join("dbus-1/services/org.freedesktop.portal.Desktop.service")
            .exists()
    })
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
