//! Carrying out: the only place where the engine changes something at a broker.
//!
//! Every act begins with [`may_change`], writes its intent to the journal first, and answers with a report. If the journal
//! cannot write, nothing is done.

mod discard;
mod redrive;
mod replay;
mod returns;
pub mod run;
mod transfer;

use std::sync::Arc;

use dlo_core::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::{self, Act, NewRun, RunId},
    command::{Answers, RunAsk},
    event::{News, RunReport},
    look::OpenLook,
    profile::Mode,
    records::{journal_error, whole_run},
    replay::plan::{Plan, PlannedAct, Severity},
    shared::{Connection, Reporter, Shared},
};

pub use transfer::{export, import, restore};

/// Whether anything may be changed on this connection.
///
/// # Errors
/// [`ErrorKind::Refused`] on a read-only profile.
pub fn may_change(connection: &Connection, operation: &str) -> Result<()> {
    if connection.mode != Mode::ReadOnly {
        return Ok(());
    }
    Err(
        Error::new(ErrorKind::Refused, operation, "the profile is read-only")
            .with("profile", connection.label.clone())
            .advise("Change the profile's mode if you may, or use another profile."),
    )
}

/// Whether the person has said what is needed for a change on this connection.
///
/// # Errors
/// [`ErrorKind::Refused`] with what is missing.
pub fn consented(connection: &Connection, name: &str, why: &str, answers: &Answers) -> Result<()> {
    if connection.mode != Mode::Production {
        return Ok(());
    }
    let refuse = |what: &str, advice: String| {
        Error::new(ErrorKind::Refused, "change production", what)
            .with("profile", connection.label.clone())
            .advise(advice)
    };
    if why.trim().is_empty() {
        return Err(refuse(
            "a reason is needed",
            "Say why (`--reason` on the command line).".to_owned(),
        ));
    }
    if !answers.all && answers.typed.as_deref() != Some(name) {
        return Err(refuse(
            "it was not confirmed",
            format!("Type the name {name}, or use `--yes` on the command line."),
        ));
    }
    Ok(())
}

/// Runs a plan that was made before.
pub async fn run(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    ask: RunAsk,
    cancel: &CancellationToken,
) -> Result<()> {
    let plan = shared.take_plan(ask.plan)?;
    let ready = prepare(shared, &plan, &ask);
    let (look, to) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            // Nothing was done, so the same plan can be run once the person has answered.
            shared.add_plan(plan);
            return Err(error);
        }
    };
    let job = Job {
        shared: shared.clone(),
        reporter: reporter.clone(),
        plan,
        look,
        to,
        why: ask.why,
    };
    match &job.plan.act {
        PlannedAct::Replay | PlannedAct::Tombstone => replay::run(&job, cancel).await,
        PlannedAct::Discard | PlannedAct::Purge | PlannedAct::Resolve => {
            discard::run(&job, cancel).await
        }
        PlannedAct::Unresolve => discard::unresolve(&job).await,
        PlannedAct::Truncate { before } => discard::truncate(&job, before).await,
        PlannedAct::Redrive { to, rate } => redrive::run(&job, to.clone(), *rate, cancel).await,
    }
}

/// A plan that is being carried out.
#[derive(Debug)]
pub struct Job {
    pub shared: Arc<Shared>,
    pub reporter: Reporter,
    pub plan: Arc<Plan>,
    pub look: Arc<OpenLook>,
    /// The connection that is published to.
    pub to: Arc<Connection>,
    pub why: String,
}

fn prepare(shared: &Shared, plan: &Plan, ask: &RunAsk) -> Result<(Arc<OpenLook>, Arc<Connection>)> {
    let look = shared.look(plan.look)?;
    let to = shared.connection(plan.to_connection)?;
    for connection in [&look.connection, &to] {
        may_change(connection, plan.act.word())?;
        consented(connection, &plan.from.name, &ask.why, &ask.answers)?;
    }
    for finding in &plan.findings {
        let accepted =
            ask.answers.all || ask.answers.accepted.iter().any(|code| code == finding.code);
        match finding.severity {
            Severity::Blocks => {
                return Err(Error::new(
                    ErrorKind::Refused,
                    plan.act.word(),
                    finding.text.clone(),
                ));
            }
            Severity::MustAnswer if !accepted => {
                return Err(
                    Error::new(ErrorKind::Refused, plan.act.word(), finding.text.clone())
                        .with("to be answered", finding.code)
                        .advise(format!(
                            "Accept it if you mean it (`--accept {}` or `--yes`).",
                            finding.code
                        )),
                );
            }
            _ => {}
        }
    }
    Ok((look, to))
}

impl Job {
    /// Begins the run in the journal and tells its name.
    pub async fn begin(&self, act: Act) -> Result<RunId> {
        let plan = &self.plan;
        let target = match plan.targets.keys().collect::<Vec<_>>().as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        };
        let new = NewRun {
            act,
            profile: self.look.connection.label.clone(),
            destination: plan.from.name.clone(),
            target,
            who: self.shared.settings.who.clone(),
            why: (!self.why.trim().is_empty()).then(|| self.why.clone()),
            plan: plan_json(plan),
            total: plan.messages.len() as u64,
        };
        let run = self
            .shared
            .audit()?
            .begin(new)
            .await
            .map_err(journal_error)?;
        let total = plan.messages.len() as u64;
        self.reporter
            .tell(News::RunStarted {
                run: run.to_string(),
                total,
            })
            .await;
        Ok(run)
    }

    /// Tells how the run ended.
    pub async fn report(&self, run: &RunId, notes: Vec<String>) -> Result<()> {
        report(&self.shared, &self.reporter, run, notes).await
    }

    /// The depth of the source now and when the look began, in a sentence.
    pub async fn depth_note(&self) -> Option<String> {
        let now = self
            .look
            .connection
            .session
            .describe(&self.plan.from)
            .await
            .ok()?;
        let held = self.look.look.hold().map_or(0, |hold| hold.messages);
        let depth = now.depth.value?;
        let certainty = crate::connection::certainty_word(now.depth.certainty);
        Some(format!(
            "{} now has {depth} waiting ({certainty}), and {held} are held by this look.",
            self.plan.from
        ))
    }
}

/// Tells the report of a run from what the journal holds.
pub async fn report(
    shared: &Shared,
    reporter: &Reporter,
    run: &RunId,
    notes: Vec<String>,
) -> Result<()> {
    let (summary, messages) = whole_run(shared, run).await?;
    let report = RunReport {
        run: summary,
        messages: messages.into(),
        notes,
    };
    reporter.tell(News::RunFinished(Arc::new(report))).await;
    Ok(())
}

/// The plan as the journal keeps it: what was decided, without the messages, which have entries of their own.
fn plan_json(plan: &Plan) -> String {
    let findings: Vec<_> = plan
        .findings
        .iter()
        .map(|finding| serde_json::json!({"code": finding.code, "text": finding.text, "messages": finding.messages}))
        .collect();
    serde_json::json!({
        "act": plan.act.word(),
        "from": plan.from.name,
        "targets": plan.targets,
        "rate": plan.rate,
        "canary": plan.canary.map(|canary| canary.messages),
        "findings": findings,
        "steps": plan.steps,
    })
    .to_string()
}

/// The state in which a run ends.
fn end_state(cancel: &CancellationToken) -> audit::RunState {
    if cancel.is_cancelled() {
        audit::RunState::Cancelled
    } else {
        audit::RunState::Done
    }
}
