//! What ran, what did not apply, what failed.

use std::fmt;

use crate::{Miss, Verdict};

/// How one check ended on one flavour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Held,
    NotApplicable(String),
    Broken(String),
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Ok(()) => Self::Held,
            Err(Miss::NotApplicable(why)) => Self::NotApplicable(why),
            Err(Miss::Broken(how)) => Self::Broken(how),
        }
    }
}

/// One check on one flavour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub flavour: &'static str,
    pub check: &'static str,
    pub outcome: Outcome,
}

/// Everything that [`crate::run_all`] found. Prints as a list for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub fixture: String,
    pub runs: Vec<Run>,
}

impl Report {
    pub(crate) fn new(fixture: String) -> Self {
        Self {
            fixture,
            runs: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, flavour: &'static str, check: &'static str, outcome: Outcome) {
        self.runs.push(Run {
            flavour,
            check,
            outcome,
        });
    }

    /// True when nothing is broken and something held: an empty run is not a pass.
    pub fn is_clean(&self) -> bool {
        self.broken().next().is_none() && self.runs.iter().any(|run| run.outcome == Outcome::Held)
    }

    /// The promises that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(|run| matches!(run.outcome, Outcome::Broken(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            let (mark, words) = match &run.outcome {
                Outcome::Held => ("held  ", ""),
                Outcome::NotApplicable(why) => ("n/a   ", why.as_str()),
                Outcome::Broken(how) => ("BROKEN", how.as_str()),
            };
            writeln!(f, "{mark} {:<10} {:<45} {words}", run.flavour, run.check)?;
        }
        let held = self.runs.iter().filter(|run| run.outcome == Outcome::Held);
        let (held, broken) = (held.count(), self.broken().count());
        let rest = self.runs.len() - held - broken;
        write!(
            f,
            "{}: {held} held, {rest} not applicable, {broken} broken",
            self.fixture
        )
    }
}
