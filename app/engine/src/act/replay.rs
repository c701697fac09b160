//! Replays (and tombstones): a plan's messages become items of a run, the first of them as a canary.

use std::sync::Arc;

use dlo_core::{Error, Outgoing, Result};
use tokio_util::sync::CancellationToken;

use super::{
    Job, end_state,
    returns::Watch,
    run::{Copies, Item, Originals, Pace, Run, RunControl, after},
};
use crate::{
    audit::{Act, Intent, Outcome, Reach, RunId, RunState, Step},
    command::{Canary, Mark},
    event::{News, RunPhase},
    records::{journal_error, position_text},
    replay::{
        compose::{REPLAY_ID, RUN_ID, can_mark, mark_header},
        plan::{ChangeKind, PlannedAct, PlannedMessage},
    },
};

pub async fn run(job: &Job, cancel: &CancellationToken) -> Result<()> {
    let act = if job.plan.act == PlannedAct::Tombstone {
        Act::Tombstone
    } else {
        Act::Replay
    };
    let watch = Watch::begin(job).await?;
    let id = job.begin(act).await?;
    let control = RunControl::new(job.plan.messages.len() as u64);
    job.shared.add_run(id.to_string(), control.clone());
    let outcome = carry_out(job, &id, control, watch, cancel).await;
    job.shared.remove_run(id.as_str());
    outcome
}

async fn carry_out(
    job: &Job,
    id: &RunId,
    control: Arc<RunControl>,
    mut watch: Watch,
    cancel: &CancellationToken,
) -> Result<()> {
    let run = Arc::new(Run {
        shared: job.shared.clone(),
        id: id.clone(),
        control,
        to: job.to.session.clone(),
        originals: originals(job),
        pace: Pace {
            rate: job.plan.rate,
            atomicity: job.plan.atomicity,
        },
        view: Some(job.look.view.clone()),
        reporter: job.reporter.clone(),
        copies: Some(Copies {
            broker: job.look.connection.broker,
            destination: job.plan.from.name.clone(),
            headers: job.look.connection.headers.clone(),
        }),
        done: Outcome::Settled,
    });
    let mut notes = Vec::new();
    leave_out(job, &run).await?;
    let mut items = items(job, id);
    let mut stopped = None;
    if let Some(canary) = job
        .plan
        .canary
        .filter(|canary| (canary.messages as usize) < items.len())
    {
        let rest = items.split_off(canary.messages as usize);
        run.carry_out(items, cancel).await?;
        stopped = watch_over(&run, &mut watch, &canary, canary.messages, cancel).await?;
        items = rest;
    }
    if stopped.is_none() && !cancel.is_cancelled() {
        run.carry_out(items, cancel).await?;
        if let Some(canary) = &job.plan.canary {
            let total = job.plan.messages.len() as u64;
            watch_over(&run, &mut watch, canary, total, cancel).await?;
        }
    }
    notes.extend(watch.notes());
    notes.extend(job.depth_note().await);
    let state = if stopped.is_some() {
        RunState::Cancelled
    } else {
        end_state(cancel)
    };
    if let Some(why) = stopped {
        notes.insert(0, why);
    }
    run.finish(state).await?;
    job.report(id, notes).await?;
    if cancel.is_cancelled() {
        Err(Error::cancelled("finish the replay"))
    } else {
        Ok(())
    }
}

/// Watches for returns; says why the run must stop when too many came back.
async fn watch_over(
    run: &Run,
    watch: &mut Watch,
    canary: &Canary,
    sent: u64,
    cancel: &CancellationToken,
) -> Result<Option<String>> {
    run.control.set_phase(RunPhase::Watching {
        until: after(canary.watch),
    });
    tell_progress(run).await;
    let returned = watch.returned(run, canary.watch, cancel).await?;
    let percent = returned as f64 * 100.0 / sent.max(1) as f64;
    let stop = percent > canary.stop_percent;
    let why = format!(
        "Stopped: {returned} of {sent} messages came back within {} s ({percent:.0} %, the limit is {} %).",
        canary.watch.as_secs(),
        canary.stop_percent
    );
    run.control.set_phase(if stop {
        RunPhase::Stopped(why.clone())
    } else {
        RunPhase::Running
    });
    tell_progress(run).await;
    Ok(stop.then_some(why))
}

async fn tell_progress(run: &Run) {
    run.reporter
        .tell(News::RunProgress(run.control.progress(&run.id)))
        .await;
}

fn originals(job: &Job) -> Originals {
    if job.plan.act == PlannedAct::Tombstone || !job.look.destination.capability.settle_ack {
        return Originals::Resolve {
            place: job.look.connection.label.clone(),
            destination: job.plan.from.name.clone(),
        };
    }
    Originals::Remove(job.look.look.clone())
}

/// Messages that the plan left out are part of the record too.
async fn leave_out(job: &Job, run: &Run) -> Result<()> {
    let left_out: Vec<_> = (0u64..)
        .zip(job.plan.messages.iter())
        .filter(|(_, message)| message.outgoing.is_none())
        .collect();
    if left_out.is_empty() {
        return Ok(());
    }
    let intents = left_out
        .iter()
        .map(|(sequence, message)| intent(*sequence, message))
        .collect();
    let steps = left_out.iter().map(|(sequence, message)| {
        Step::new(*sequence, Outcome::Skipped).detail(message.refused.clone().unwrap_or_default())
    });
    let audit = job.shared.audit()?;
    audit
        .intend(&run.id, Reach::Planned, intents)
        .await
        .map_err(journal_error)?;
    audit
        .record(&run.id, steps.collect())
        .await
        .map_err(journal_error)
}

fn intent(sequence: u64, message: &PlannedMessage) -> Intent {
    Intent {
        seq: sequence,
        position: position_text(&message.position),
        sha256: message.sha256.clone(),
        target: message.target.clone(),
        capture: None,
    }
}

fn items(job: &Job, run: &RunId) -> Vec<Item> {
    let planned = (0u64..).zip(job.plan.messages.iter());
    planned
        .filter_map(|(sequence, message)| item(job, run, sequence, message))
        .collect()
}

fn item(job: &Job, run: &RunId, sequence: u64, message: &PlannedMessage) -> Option<Item> {
    let original = job.look.view.delivery(message.row)?;
    let mut outgoing = message.outgoing.clone()?;
    if job.plan.mark == Mark::WhereAllowed && can_mark(&job.to, &outgoing.message) {
        let headers = &mut Arc::make_mut(&mut outgoing).message.headers;
        headers.push(mark_header(
            job.to.broker,
            REPLAY_ID,
            run.replay_id(sequence),
        ));
        headers.push(mark_header(job.to.broker, RUN_ID, run.to_string()));
    }
    Some(Item {
        sequence,
        row: Some(message.row),
        sha256: message.sha256.clone(),
        position: position_text(&message.position),
        target: message.target.clone().unwrap_or_default(),
        order_key: order_key(&original.message),
        edited: edited(message, &outgoing),
        original: Some(original),
        outgoing,
    })
}

/// What a person changed, and the hash of the body that goes out when it is another one.
fn edited(message: &PlannedMessage, outgoing: &Outgoing) -> Option<String> {
    let changes = message
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Edited);
    let what: Vec<_> = changes.map(|change| change.what.as_str()).collect();
    if what.is_empty() {
        return None;
    }
    let sha256 = outgoing.message.sha256();
    let hash = if sha256 == message.sha256 {
        String::new()
    } else {
        format!(", body's sha256 {sha256}")
    };
    Some(format!("edited: {}{hash}", what.join(", ")))
}

/// What a broker keeps in order: the record key, or the FIFO message group.
pub fn order_key(message: &dlo_core::Message) -> Option<Vec<u8>> {
    let group = || {
        message
            .properties
            .get("MessageGroupId")
            .and_then(|value| value.as_bytes())
    };
    message
        .key
        .as_ref()
        .or_else(group)
        .map(|key| key.to_vec())
        .filter(|key| !key.is_empty())
}
