//! Discards: saved first, then removed; or marked as resolved where the broker cannot remove.

use dlo_core::{Disposition, Error, Result};
use tokio_util::sync::CancellationToken;

use super::{Job, end_state};
use crate::{
    audit::{Act, Intent, Outcome, Reach, RunId, RunState, Step},
    capture, dead_letter,
    event::{News, RunProgress},
    records::{journal_error, position_text},
    replay::plan::{PlannedAct, PlannedMessage},
    store::RowState,
};

/// Messages saved and removed together.
const BATCH: usize = 500;

pub async fn run(job: &Job, cancel: &CancellationToken) -> Result<()> {
    let act = match job.plan.act {
        PlannedAct::Purge => Act::Purge,
        PlannedAct::Resolve => Act::Resolve,
        _ => Act::Discard,
    };
    let id = job.begin(act).await?;
    let mut progress = RunProgress {
        run: id.to_string(),
        total: job.plan.messages.len() as u64,
        ..Default::default()
    };
    let mut sequence = 0;
    for batch in job.plan.messages.chunks(BATCH) {
        if cancel.is_cancelled() {
            break;
        }
        let numbered: Vec<_> = (sequence..).zip(batch).collect();
        sequence += batch.len() as u64;
        let steps = discard(job, &id, &numbered).await?;
        for step in &steps {
            *progress
                .outcomes
                .entry(step.outcome.to_string())
                .or_default() += 1;
        }
        progress.done += steps.len() as u64;
        job.shared
            .audit()?
            .record(&id, steps)
            .await
            .map_err(journal_error)?;
        job.reporter.tell(News::RunProgress(progress.clone())).await;
    }
    job.shared
        .audit()?
        .finish(&id, end_state(cancel))
        .await
        .map_err(journal_error)?;
    let mut notes = Vec::from_iter(job.depth_note().await);
    notes.push(format!("`dlo restore WHERE --run {id}` puts them back."));
    job.report(&id, notes).await?;
    if cancel.is_cancelled() {
        Err(Error::cancelled("finish the discard"))
    } else {
        Ok(())
    }
}

type Numbered<'a> = (u64, &'a PlannedMessage);

async fn discard(job: &Job, run: &RunId, batch: &[Numbered<'_>]) -> Result<Vec<Step>> {
    let audit = job.shared.audit()?;
    let intents = batch
        .iter()
        .filter_map(|(sequence, message)| intent(job, *sequence, message))
        .collect();
    audit
        .intend(run, Reach::Started, intents)
        .await
        .map_err(journal_error)?;
    if job.plan.act == PlannedAct::Resolve {
        let positions = batch
            .iter()
            .map(|(_, message)| position_text(&message.position))
            .collect();
        audit
            .resolve(
                &job.look.connection.label,
                &job.plan.from.name,
                positions,
                run,
            )
            .await
            .map_err(journal_error)?;
        job.look.view.set_state(
            batch.iter().map(|(_, message)| message.row),
            RowState::Resolved,
        );
        let why = "resolved in the journal: the broker keeps the record";
        return Ok(batch
            .iter()
            .map(|(sequence, _)| Step::new(*sequence, Outcome::Settled).detail(why))
            .collect());
    }
    Ok(remove(job, batch).await)
}

fn intent(job: &Job, sequence: u64, message: &PlannedMessage) -> Option<Intent> {
    let delivery = job.look.view.delivery(message.row)?;
    let connection = &job.look.connection;
    let death = dead_letter::read(&delivery, &connection.headers);
    Some(Intent {
        seq: sequence,
        position: position_text(&message.position),
        sha256: message.sha256.clone(),
        target: None,
        capture: Some(capture::to_line(
            &delivery,
            connection.broker,
            &job.plan.from.name,
            death.as_ref(),
        )),
    })
}

async fn remove(job: &Job, batch: &[Numbered<'_>]) -> Vec<Step> {
    let view = &job.look.view;
    let (mut held, mut steps) = (
        Vec::with_capacity(batch.len()),
        Vec::with_capacity(batch.len()),
    );
    for (sequence, message) in batch {
        match view
            .delivery(message.row)
            .and_then(|delivery| delivery.lock)
        {
            Some(lock) => held.push((*sequence, message.row, lock)),
            None => steps
                .push(Step::new(*sequence, Outcome::Failed).detail("it is not held; look again")),
        }
    }
    let locks: Vec<_> = held.iter().map(|(.., lock)| lock.clone()).collect();
    let answers = job.look.look.settle(&locks, Disposition::Ack).await;
    for ((sequence, row, _), answer) in held.iter().zip(answers) {
        let (state, step) = match answer {
            Ok(()) => (RowState::Discarded, Step::new(*sequence, Outcome::Settled)),
            Err(error) if error.kind() == dlo_core::ErrorKind::LockLost => (
                RowState::Stale,
                Step::new(*sequence, Outcome::Failed).detail(error.to_string()),
            ),
            Err(error) => (
                RowState::Unknown,
                Step::new(*sequence, Outcome::Unknown).detail(error.to_string()),
            ),
        };
        view.set_state([*row], state);
        steps.push(step);
    }
    steps
}

/// Takes resolved marks away again.
pub async fn unresolve(job: &Job) -> Result<()> {
    let id = job.begin(Act::Unresolve).await?;
    let audit = job.shared.audit()?;
    let intents = (0u64..)
        .zip(job.plan.messages.iter())
        .map(|(sequence, message)| Intent {
            seq: sequence,
            position: position_text(&message.position),
            sha256: message.sha256.clone(),
            target: None,
            capture: None,
        });
    audit
        .intend(&id, Reach::Started, intents.collect())
        .await
        .map_err(journal_error)?;
    let positions = job
        .plan
        .messages
        .iter()
        .map(|message| position_text(&message.position))
        .collect();
    audit
        .unresolve(&job.look.connection.label, &job.plan.from.name, positions)
        .await
        .map_err(journal_error)?;
    job.look.view.set_state(
        job.plan.messages.iter().map(|message| message.row),
        RowState::Here,
    );
    let steps =
        (0..job.plan.messages.len() as u64).map(|sequence| Step::new(sequence, Outcome::Settled));
    audit
        .record(&id, steps.collect())
        .await
        .map_err(journal_error)?;
    audit
        .finish(&id, RunState::Done)
        .await
        .map_err(journal_error)?;
    job.report(&id, Vec::new()).await
}

/// Deletes a resolved prefix of each partition.
pub async fn truncate(job: &Job, before: &[(i32, i64)]) -> Result<()> {
    let id = job.begin(Act::DeleteRecords).await?;
    let audit = job.shared.audit()?;
    let intents = (0u64..)
        .zip(before)
        .map(|(sequence, (partition, offset))| Intent {
            seq: sequence,
            position: position_text(&dlo_core::Position::Offset {
                partition: *partition,
                offset: *offset,
            }),
            sha256: String::new(),
            target: None,
            capture: None,
        });
    audit
        .intend(&id, Reach::Started, intents.collect())
        .await
        .map_err(journal_error)?;
    let answer = job
        .look
        .connection
        .session
        .truncate(&job.plan.from, before)
        .await;
    let step = |sequence| match &answer {
        Ok(()) => Step::new(sequence, Outcome::Settled)
            .detail("everything before this position is deleted"),
        Err(error) => Step::new(sequence, Outcome::Failed).detail(error.to_string()),
    };
    let steps = (0..before.len() as u64).map(step).collect();
    audit.record(&id, steps).await.map_err(journal_error)?;
    audit
        .finish(&id, RunState::Done)
        .await
        .map_err(journal_error)?;
    job.report(&id, Vec::from_iter(job.depth_note().await))
        .await?;
    answer
}
