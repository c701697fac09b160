//! The broker's own move of a whole queue, started, followed and cancelled from here.

use std::time::Duration;

use dlo_core::{Address, Error, ErrorKind, RedriveRequest, RedriveState, RedriveTask, Result};
use tokio_util::sync::CancellationToken;

use super::Job;
use crate::{
    audit::{Act, Intent, Outcome, Reach, RunState, Step},
    event::{News, RunPhase, RunProgress},
    look,
    records::journal_error,
};

/// How often the broker is asked for progress.
const EVERY: Duration = Duration::from_millis(500);

pub async fn run(
    job: &Job,
    to: Option<Address>,
    rate: Option<u32>,
    cancel: &CancellationToken,
) -> Result<()> {
    let id = job.begin(Act::Redrive).await?;
    let audit = job.shared.audit()?;
    let target = job.plan.targets.keys().next().cloned();
    // The move has no single messages; its one entry stands for the queue.
    let whole = Intent {
        seq: 0,
        position: "null".to_owned(),
        sha256: String::new(),
        target,
        capture: None,
    };
    audit
        .intend(&id, Reach::Started, vec![whole])
        .await
        .map_err(journal_error)?;
    look::give_back(&job.shared, &job.look).await?;
    let request = RedriveRequest {
        from: job.plan.from.clone(),
        to,
        rate,
    };
    let outcome = follow(job, id.as_str(), &request, cancel).await;
    let (step, state) = match &outcome {
        Ok(task) => (
            step(task),
            if cancel.is_cancelled() {
                RunState::Cancelled
            } else {
                RunState::Done
            },
        ),
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => (
            Step::new(0, Outcome::Unknown).detail(error.to_string()),
            RunState::Done,
        ),
        Err(error) => (
            Step::new(0, Outcome::Failed).detail(error.to_string()),
            RunState::Done,
        ),
    };
    audit.record(&id, vec![step]).await.map_err(journal_error)?;
    audit.finish(&id, state).await.map_err(journal_error)?;
    job.report(
        &id,
        vec![
            "Message ids and times are new; the journal has no copies of moved messages."
                .to_owned(),
        ],
    )
    .await?;
    outcome.map(drop)
}

fn step(task: &RedriveTask) -> Step {
    let moved = task
        .moved
        .value
        .map_or("an unknown number of".to_owned(), |count| count.to_string());
    let outcome = match task.state {
        RedriveState::Failed => Outcome::Failed,
        _ => Outcome::Settled,
    };
    let words = match task.state {
        RedriveState::Completed => "moved by the broker",
        RedriveState::Cancelled | RedriveState::Cancelling => {
            "moved by the broker before it was cancelled"
        }
        _ => "moved by the broker so far",
    };
    let failure = task
        .failure
        .as_ref()
        .map_or(String::new(), |why| format!("; {why}"));
    Step::new(0, outcome).detail(format!("{moved} messages {words}{failure}"))
}

async fn follow(
    job: &Job,
    run: &str,
    request: &RedriveRequest,
    cancel: &CancellationToken,
) -> Result<RedriveTask> {
    let session = &job.look.connection.session;
    let mut task = session.redrive(request).await?;
    let mut asked_to_stop = false;
    loop {
        tell(job, run, &task).await;
        if !matches!(task.state, RedriveState::Running | RedriveState::Cancelling) {
            return Ok(task);
        }
        if cancel.is_cancelled() && !asked_to_stop {
            asked_to_stop = true;
            session.cancel_redrive(&task).await?;
        }
        tokio::time::sleep(EVERY).await;
        let known = session.redrives(&request.from).await?;
        task = match known.into_iter().find(|known| known.id == task.id) {
            Some(known) => known,
            // A broker that forgets ended tasks: what it moved last is all that is known.
            None if asked_to_stop => RedriveTask {
                state: RedriveState::Cancelled,
                ..task
            },
            None => {
                return Err(Error::new(
                    ErrorKind::OutcomeUnknown,
                    "follow the move",
                    "the broker no longer knows the task",
                )
                .advise("Look at the depth of source and target."));
            }
        };
    }
}

async fn tell(job: &Job, run: &str, task: &RedriveTask) {
    let done = task.moved.value.unwrap_or_default();
    let progress = RunProgress {
        run: run.to_owned(),
        total: task.to_move.value.unwrap_or(done),
        done,
        phase: RunPhase::Running,
        ..RunProgress::default()
    };
    job.reporter.tell(News::RunProgress(progress)).await;
}
