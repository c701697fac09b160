//! Long work with progress: runs, exports, imports.

use dlo_core::Millis;
use dlo_engine::{TaskId, event::RunProgress};

/// One piece of long work.
#[derive(Clone, Debug)]
pub struct Job {
    pub task: TaskId,
    pub kind: JobKind,
    /// What is done to what, for example `Replay 401 messages of orders.dlq`.
    pub title: String,
    /// The run, once it has a name.
    pub run: Option<String>,
    pub progress: RunProgress,
    pub state: JobState,
    pub started: Millis,
    pub ended: Option<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// It can be paused, resumed and cancelled between messages.
    Run,
    Export,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JobState {
    Running,
    /// It was asked to stop and finishes the message it is at.
    Stopping,
    Done,
    Cancelled,
    Failed(String),
}

impl Job {
    pub fn new(task: TaskId, kind: JobKind, title: String, total: u64, now: Millis) -> Self {
        Self {
            task,
            kind,
            title,
            run: None,
            progress: RunProgress {
                total,
                ..RunProgress::default()
            },
            state: JobState::Running,
            started: now,
            ended: None,
        }
    }

    pub fn is_active(&self) -> bool {
        matches!(self.state, JobState::Running | JobState::Stopping)
    }

    /// How much of it is done, from 0 to 1; `None` when that is not known.
    pub fn share(&self) -> Option<f32> {
        match self.state {
            JobState::Done => Some(1.0),
            _ if self.progress.total > 0 => {
                Some((self.progress.done as f64 / self.progress.total as f64).min(1.0) as f32)
            }
            _ => None,
        }
    }

    /// Counts that are not plain success, for example `2 unroutable, 1 unknown`.
    pub fn troubles(&self) -> String {
        let good = [
            "settled",
            "confirmed",
            "published",
            "planned",
            "resolved",
            "discarded",
            "restored",
        ];
        let parts: Vec<_> = self
            .progress
            .outcomes
            .iter()
            .filter(|(outcome, count)| **count > 0 && !good.contains(&outcome.as_str()))
            .map(|(outcome, count)| format!("{} {outcome}", crate::words::count(*count)))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_name_only_what_went_wrong() {
        let mut job = Job::new(TaskId(1), JobKind::Run, "Replay".to_owned(), 10, Millis(0));
        job.progress.outcomes = [("settled".to_owned(), 8), ("unroutable".to_owned(), 2)].into();
        job.progress.done = 10;
        assert_eq!(job.troubles(), "2 unroutable");
        assert_eq!(job.share(), Some(1.0));
    }
}
