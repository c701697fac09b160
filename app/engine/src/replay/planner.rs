//! Makes plans. Reads messages of a look and facts of the broker; changes nothing.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use dlo_core::{Browse, Error, ErrorKind, Message, Millis, Outgoing, Position, Result, Target};
use tokio_util::sync::CancellationToken;

use super::{
    compose::Composer,
    edits, findings,
    plan::{Finding, Plan, PlannedAct, PlannedMessage, Severity},
    target::{self, Resolved},
};
use crate::{
    command::{Act, Mark, PlanAsk, PlanId, ReplayAsk},
    connection::resolve_name,
    event::News,
    look::{self, OpenLook},
    profile::Mode,
    shared::{Connection, Reporter, Shared},
};

/// Messages planned between two chances for others to run.
const STRIDE: usize = 256;

pub async fn plan(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    ask: PlanAsk,
    cancel: &CancellationToken,
) -> Result<()> {
    let look = shared.look(ask.look)?;
    crate::act::may_change(&look.connection, "plan a change")?;
    let rows = match &ask.act {
        Act::Unresolve => look::select_resolved(shared, &look, &ask.selection, cancel).await?,
        Act::Redrive { .. } | Act::Truncate => Vec::new(),
        _ => look::select(shared, &look, &ask.selection, cancel).await?,
    };
    let mut plan = empty(shared, &look, PlannedAct::Replay);
    match ask.act {
        Act::Replay(replay) => plan_replay(shared, &look, rows, *replay, &mut plan, cancel).await?,
        Act::Discard => plan_discard(&look, &rows, &mut plan),
        Act::Purge => plan_purge(&look, &rows, &mut plan)?,
        Act::Unresolve => plan_unresolve(&look, &rows, &mut plan),
        Act::Tombstone => plan_tombstone(&look, &rows, &mut plan)?,
        Act::Truncate => findings::plan_truncate(&look, &mut plan)?,
        Act::Redrive { to, rate } => plan_redrive(&look, to, rate, &mut plan).await?,
    }
    plan.findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let plan = Arc::new(plan);
    shared.add_plan(plan.clone());
    reporter.tell(News::Planned(plan)).await;
    Ok(())
}

fn empty(shared: &Shared, look: &OpenLook, act: PlannedAct) -> Plan {
    Plan {
        id: PlanId(shared.next_id()),
        act,
        look: look.id,
        connection: look.connection.id,
        to_connection: look.connection.id,
        from: look.address().clone(),
        messages: Arc::default(),
        targets: BTreeMap::new(),
        findings: Vec::new(),
        rate: None,
        canary: None,
        atomicity: dlo_core::Atomicity::Each,
        mark: Mark::Never,
        engine: String::new(),
        steps: Vec::new(),
        must_type: look.connection.mode == Mode::Production,
    }
}

async fn plan_replay(
    shared: &Arc<Shared>,
    look: &Arc<OpenLook>,
    rows: Vec<u32>,
    ask: ReplayAsk,
    plan: &mut Plan,
    cancel: &CancellationToken,
) -> Result<()> {
    let to = shared.connection(ask.to_connection.unwrap_or(look.connection.id))?;
    crate::act::may_change(&to, "plan a replay")?;
    let chosen = chosen_target(&to, &ask).await?;
    let edits = edits::prepare(&ask.edits)?;
    let has_edits = !edits.is_empty();
    let resolver = shared.schemas.resolver(&look.connection)?;
    let composer = Composer {
        look,
        to: &to,
        ask: &ask,
        chosen,
        edits,
        resolver,
    };
    let mut messages = Vec::with_capacity(rows.len());
    for stride in rows.chunks(STRIDE) {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("plan the replay"));
        }
        for row in stride {
            if let Some(delivery) = look.view.delivery(*row) {
                if has_edits {
                    shared
                        .schemas
                        .prepare(&look.connection, &delivery.message)
                        .await?;
                }
                messages.push(composer.plan(*row, delivery));
            }
        }
        tokio::task::yield_now().await;
    }
    in_order(&mut messages);
    for message in &messages {
        if let Some(target) = &message.target {
            *plan.targets.entry(target.clone()).or_default() += 1;
        }
    }
    plan.to_connection = to.id;
    plan.findings = findings::of_replay(shared, look, &to, &messages, &ask, cancel).await?;
    plan.steps = replay_steps(look, &messages, &ask);
    plan.messages = messages.into();
    plan.rate = ask.rate;
    plan.canary = ask.canary;
    plan.atomicity = ask.atomicity;
    plan.mark = ask.mark;
    plan.engine = "Dead Letter Office publishes each message and removes the original after the broker's confirmation: \
                   only that keeps a copy, an outcome per message, and a way back."
        .to_owned();
    Ok(())
}

/// A target chosen by name is checked once: its kind comes from the broker.
async fn chosen_target(to: &Connection, ask: &ReplayAsk) -> Result<Option<Resolved>> {
    let crate::command::Route::To(name) = &ask.route else {
        return Ok(None);
    };
    if name.starts_with("exchange:") {
        return Ok(None);
    }
    let evidence = "chosen by the operator".to_owned();
    match resolve_name(to, name).await {
        Ok(address) => Ok(Some(Resolved {
            target: Target::new(address),
            evidence,
        })),
        // It may be there and only not to be described; publishing will tell, and the plan warns.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::NotFound
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Order of sending: oldest first in each partition; lock brokers deliver in order already.
fn in_order(messages: &mut [PlannedMessage]) {
    messages.sort_by(|a, b| match (&a.position, &b.position) {
        (
            Position::Offset {
                partition: p,
                offset: o,
            },
            Position::Offset {
                partition: q,
                offset: r,
            },
        ) => (o, p).cmp(&(r, q)).then_with(|| p.cmp(q)),
        _ => a.row.cmp(&b.row),
    });
}

fn replay_steps(look: &OpenLook, messages: &[PlannedMessage], ask: &ReplayAsk) -> Vec<String> {
    let going = messages
        .iter()
        .filter(|message| message.outgoing.is_some())
        .count();
    let mut steps = vec![format!(
        "Write {} with a copy to the journal, before anything is sent.",
        counted(going)
    )];
    if let Some(canary) = &ask.canary {
        steps.push(format!(
            "Send {} first and watch for {} s; stop if more than {} % come back.",
            canary.messages,
            canary.watch.as_secs(),
            canary.stop_percent
        ));
    }
    let rate = ask
        .rate
        .map_or("as fast as the broker confirms".to_owned(), |rate| {
            format!("{rate} a second at most")
        });
    steps.push(format!(
        "Publish in order, {rate}, and wait for each confirmation."
    ));
    steps.push(if look.destination.capability.settle_ack {
        format!("Remove each confirmed message from {}.", look.address())
    } else {
        format!(
            "Mark each confirmed message of {} as resolved; the broker keeps it.",
            look.address()
        )
    });
    steps
}

/// `1 message`, `12 messages`.
fn counted(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} message{plural}")
}

fn bare(look: &OpenLook, row: u32) -> Option<PlannedMessage> {
    let delivery = look.view.delivery(row)?;
    Some(PlannedMessage {
        row,
        sha256: delivery.message.sha256(),
        position: delivery.position,
        target: None,
        evidence: String::new(),
        outgoing: None,
        changes: Vec::new(),
        refused: None,
    })
}

fn plan_discard(look: &OpenLook, rows: &[u32], plan: &mut Plan) {
    let can_remove = look.destination.capability.settle_ack;
    plan.act = if can_remove {
        PlannedAct::Discard
    } else {
        PlannedAct::Resolve
    };
    plan.messages = rows.iter().filter_map(|row| bare(look, *row)).collect();
    let count = plan.messages.len();
    plan.steps = vec![format!("Save a copy of {} in the journal.", counted(count))];
    plan.steps.push(if can_remove {
        format!("Remove them from {}. They can be restored.", look.address())
    } else {
        format!(
            "Mark them as resolved: {} keeps its records, they are hidden here.",
            look.address()
        )
    });
    plan.engine = if can_remove {
        "Saved first, then acknowledged one by one.".to_owned()
    } else {
        "This broker cannot remove a single record.".to_owned()
    };
}

fn plan_purge(look: &OpenLook, rows: &[u32], plan: &mut Plan) -> Result<()> {
    if look.destination.capability.browse != Browse::ByLock {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "plan the purge",
            "this destination cannot be emptied message by message",
        )
        .advise("Resolve its messages, then delete the resolved prefix (truncate)."));
    }
    plan_discard(look, rows, plan);
    plan.act = PlannedAct::Purge;
    let progress = look.progress();
    let total = progress.total.value.unwrap_or(progress.shown);
    plan.findings.push(Finding {
        severity: Severity::MustAnswer,
        code: "purge",
        text: format!(
            "Everything that was looked at in {} is removed: {} of {total} messages. What was not loaded stays.",
            look.address(),
            rows.len()
        ),
        messages: rows.len() as u64,
    });
    plan.steps
        .push("Check afterwards that the count went down by as many.".to_owned());
    Ok(())
}

fn plan_unresolve(look: &OpenLook, rows: &[u32], plan: &mut Plan) {
    plan.act = PlannedAct::Unresolve;
    plan.messages = rows.iter().filter_map(|row| bare(look, *row)).collect();
    plan.steps = vec![format!(
        "Show {} messages again that were marked as resolved.",
        rows.len()
    )];
    plan.engine = "Only the journal changes.".to_owned();
}

fn plan_tombstone(look: &OpenLook, rows: &[u32], plan: &mut Plan) -> Result<()> {
    if !look.destination.capability.tombstone {
        let why = "the topic is not compacted, so a tombstone would only be one more record";
        return Err(Error::new(ErrorKind::Unsupported, "plan tombstones", why)
            .with("destination", look.address().name.clone())
            .advise("Discard the messages instead: they are marked as resolved."));
    }
    plan.act = PlannedAct::Tombstone;
    let mut newest: HashMap<bytes::Bytes, PlannedMessage> = HashMap::new();
    let mut without_key = 0;
    for row in rows {
        let Some(delivery) = look.view.delivery(*row) else {
            continue;
        };
        let (Some(key), Some(mut planned)) = (delivery.message.key.clone(), bare(look, *row))
        else {
            without_key += 1;
            continue;
        };
        let message = Message {
            key: Some(key.clone()),
            ..Message::default()
        };
        let mut target = Target::new(look.address().clone());
        if let Position::Offset { partition, .. } = delivery.position {
            target.partitioning = dlo_core::Partitioning::Exact(partition);
        }
        planned.target = Some(target::words(&target));
        planned.outgoing = Some(Arc::new(Outgoing {
            target,
            message,
            time: None::<Millis>,
        }));
        newest.insert(key, planned);
    }
    let mut messages: Vec<_> = newest.into_values().collect();
    messages.sort_by_key(|message| message.row);
    if without_key > 0 {
        plan.findings.push(Finding {
            severity: Severity::Warning,
            code: "no-key",
            text: format!(
                "{without_key} messages have no key, and a tombstone needs one; they are left out."
            ),
            messages: without_key,
        });
    }
    plan.findings.push(Finding {
        severity: Severity::MustAnswer,
        code: "tombstone",
        text: "Every older record of these keys goes with them at the next compaction, not only the selected ones.".to_owned(),
        messages: messages.len() as u64,
    });
    plan.steps = vec![format!(
        "Publish {} records with a null value to {}.",
        messages.len(),
        look.address()
    )];
    plan.messages = messages.into();
    plan.engine =
        "Kafka's compaction removes the older records of a key some time after its tombstone."
            .to_owned();
    Ok(())
}

async fn plan_redrive(
    look: &OpenLook,
    to: Option<String>,
    rate: Option<u32>,
    plan: &mut Plan,
) -> Result<()> {
    if !look.destination.capability.redrive {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "plan the move",
            "the broker has no mover for this destination",
        )
        .with("destination", look.address().name.clone())
        .advise("Replay the messages instead."));
    }
    let to = match to {
        Some(name) => Some(resolve_name(&look.connection, &name).await?),
        None => None,
    };
    let target = to.as_ref().map_or(
        "where each message came from".to_owned(),
        ToString::to_string,
    );
    plan.findings.push(Finding {
        severity: Severity::MustAnswer,
        code: "redrive",
        text: "The broker moves every message by itself: no selection, no edit, new message ids and times, and no copy here."
            .to_owned(),
        messages: look.destination.depth.value.unwrap_or_default(),
    });
    plan.steps = vec![
        "Give back what this look holds, so that the move can see it.".to_owned(),
        format!(
            "Ask the broker to move all messages of {} to {target}.",
            look.address()
        ),
        "Follow its progress; cancelling leaves what was moved.".to_owned(),
    ];
    plan.targets
        .insert(target, look.destination.depth.value.unwrap_or_default());
    plan.act = PlannedAct::Redrive { to, rate };
    plan.engine = "The broker's own mover: fastest for a whole untouched queue.".to_owned();
    Ok(())
}
