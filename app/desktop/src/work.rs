//! Computing that would make a frame wait (diffs, encoding an edited body), done on a thread of its own.
//!
//! One answer at a time: a newer question replaces the older one, whose answer is thrown away.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// A computation with the last answer.
#[derive(Debug)]
pub struct Work<T> {
    running: Option<Receiver<T>>,
    pub answer: Option<T>,
}

impl<T> Default for Work<T> {
    fn default() -> Self {
        Self {
            running: None,
            answer: None,
        }
    }
}

impl<T: Send + 'static> Work<T> {
    /// Begins; the last answer stays until the new one is there.
    pub fn start(&mut self, wake: &egui::Context, compute: impl FnOnce() -> T + Send + 'static) {
        let (sender, receiver) = sync_channel(1);
        let wake = wake.clone();
        let spawned = std::thread::Builder::new()
            .name("work".to_owned())
            .spawn(move || {
                // A replaced question has no listener any more.
                let _ = sender.send(compute());
                wake.request_repaint();
            });
        self.running = spawned.is_ok().then_some(receiver);
    }

    /// Takes the answer in when it is there. True when it has just come.
    pub fn poll(&mut self) -> bool {
        let Some(receiver) = &self.running else {
            return false;
        };
        match receiver.try_recv() {
            Ok(answer) => {
                self.answer = Some(answer);
                self.running = None;
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => {
                self.running = None;
                false
            }
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }
}
