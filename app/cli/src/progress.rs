//! Progress on standard error: a bar on a terminal, nothing in a script's log.

use std::time::Duration;

use dlo_engine::event::{LookProgress, RunPhase, RunProgress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::out::has_terminal;

/// A bar that may be hidden.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn new() -> Self {
        let bar = if has_terminal() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }

    pub fn look(&self, progress: &LookProgress) {
        self.bar.set_length(
            progress
                .total
                .value
                .unwrap_or(progress.shown)
                .max(progress.shown),
        );
        self.bar.set_position(progress.shown);
        self.bar.set_message("messages");
    }

    pub fn run(&self, progress: &RunProgress) {
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        let phase = match &progress.phase {
            RunPhase::Running => String::new(),
            RunPhase::Watching { .. } => ", watching for returns".to_owned(),
            RunPhase::Paused => ", paused".to_owned(),
            RunPhase::Stopped(why) => format!(", {why}"),
        };
        let left = progress
            .left
            .map_or(String::new(), |left| format!(", {} left", seconds(left)));
        self.bar
            .set_message(format!("{:.0}/s{left}{phase}", progress.rate));
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}
