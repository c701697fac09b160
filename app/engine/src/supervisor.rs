//! One loop, one task per command, one cancellation token per task.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{command::Command, event::Event, handle::Settings};

/// Runs until the handle is dropped or cancels, then gives back what is held.
pub async fn run(
    _settings: Settings,
    mut commands: mpsc::Receiver<Command>,
    _events: mpsc::Sender<Event>,
    cancel: CancellationToken,
) {
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            command = commands.recv() => if command.is_none() { return },
        }
    }
}
