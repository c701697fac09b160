//! Makes plans. Reads messages of a look and facts of the broker; changes nothing.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use dlo_core::{
    Browse, Delivery, Error, ErrorKind, Header, Message, Millis, Outgoing, Position, Result,
    Target, Value,
};
use tokio_util::sync::CancellationToken;

use super::{
    edits, findings,
    plan::{Change, ChangeKind, Finding, Plan, PlannedAct, PlannedMessage, Severity},
    target::{self, Resolved},
};
use crate::{
    capture::value_text,
    command::{Act, Mark, PlanAsk, PlanId, ReplayAsk, ReplayTime, Unwrap},
    connection::resolve_name,
    dead_letter::{self, Death, strip, wrapped},
    event::News,
    look::{self, OpenLook},
    profile::Mode,
    shared::{Connection, Reporter, Shared},
    store::{RowState, preview},
};

/// Headers that a replayed message carries, so that its return is recognised and a consumer can deduplicate.
pub const REPLAY_ID: &str = "x-dlo-replay-id";
pub const RUN_ID: &str = "x-dlo-run-id";
/// Characters of a value in a change.
const SHOWN: usize = 200;
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
        Act::Unresolve => resolved_rows(&look),
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
    let mut messages = Vec::with_capacity(rows.len());
    for stride in rows.chunks(STRIDE) {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("plan the replay"));
        }
        for row in stride {
            if let Some(delivery) = look.view.delivery(*row) {
                if !ask.edits.is_empty() {
                    let schemas = &shared.schemas;
                    schemas.prepare(&look.connection, &delivery.message).await?;
                }
                messages.push(plan_message(
                    shared,
                    look,
                    &to,
                    &ask,
                    chosen.as_ref(),
                    *row,
                    delivery,
                ));
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

fn plan_message(
    shared: &Shared,
    look: &OpenLook,
    to: &Connection,
    ask: &ReplayAsk,
    chosen: Option<&Resolved>,
    row: u32,
    delivery: Delivery,
) -> PlannedMessage {
    let death = dead_letter::read(&delivery, &look.connection.headers);
    let resolved = match chosen {
        Some(resolved)
            if resolved.target.address == look.destination.address
                && to.id == look.connection.id =>
        {
            Err(format!(
                "{} is the dead-letter destination itself; choose another target",
                look.address()
            ))
        }
        Some(resolved) => Ok(with_partition(resolved, ask, death.as_ref())),
        None => target::resolve(
            &ask.route,
            ask.partitioning,
            death.as_ref(),
            &look.destination,
        ),
    };
    let mut planned = PlannedMessage {
        row,
        position: delivery.position.clone(),
        sha256: delivery.message.sha256(),
        target: None,
        evidence: String::new(),
        outgoing: None,
        changes: Vec::new(),
        refused: None,
    };
    match resolved {
        Err(why) => planned.refused = Some(why),
        Ok(resolved) => {
            planned.target = Some(target::words(&resolved.target));
            planned.evidence = resolved.evidence;
            match compose(
                shared,
                look,
                to,
                ask,
                row,
                &delivery,
                death.as_ref(),
                &mut planned.changes,
            ) {
                Ok(message) => {
                    let time = (ask.time == ReplayTime::Kept)
                        .then_some(delivery.time)
                        .flatten();
                    planned.outgoing = Some(Arc::new(Outgoing {
                        target: resolved.target,
                        message,
                        time,
                    }));
                }
                Err(why) => planned.refused = Some(why),
            }
        }
    }
    planned
}

fn with_partition(resolved: &Resolved, ask: &ReplayAsk, death: Option<&Death>) -> Resolved {
    let origin = death.and_then(|death| death.all().find_map(|death| death.origin.partition));
    let mut resolved = resolved.clone();
    resolved.target.partitioning = ask.partitioning.resolve(origin);
    resolved
}

/// What goes out: the message without the marks of its death, with the edits, and a list of what differs.
#[expect(
    clippy::too_many_arguments,
    reason = "each is a different part of the plan"
)]
fn compose(
    shared: &Shared,
    look: &OpenLook,
    to: &Connection,
    ask: &ReplayAsk,
    row: u32,
    delivery: &Delivery,
    death: Option<&Death>,
    changes: &mut Vec<Change>,
) -> Result<Message, String> {
    if death.is_some_and(|death| death.all().any(|death| death.pointer.is_some()))
        && ask.unwrap == Unwrap::No
    {
        let holds_nothing = delivery
            .message
            .body
            .as_ref()
            .is_none_or(bytes::Bytes::is_empty);
        if holds_nothing && !ask.drafts.contains_key(&row) {
            return Err("it holds no message, only a pointer to one; follow it and replay the record itself".to_owned());
        }
    }
    let original = &delivery.message;
    let mut message = ask
        .drafts
        .get(&row)
        .cloned()
        .unwrap_or_else(|| original.clone());
    if ask.unwrap == Unwrap::Yes {
        let inner = wrapped::unwrap(delivery).ok_or("it is no wrapper around another message")?;
        message = inner.message;
    }
    let editor = shared
        .schemas
        .editor(&look.connection)
        .map_err(|error| error.to_string())?;
    for edit in &ask.edits {
        edits::apply(edit, &mut message, &editor)?;
    }
    compare_edited(original, &message, changes);
    let mut stripped = strip::strip(&message, death, &ask.keep_headers);
    changes.append(&mut stripped.changes);
    let mut message = stripped.message;
    strip_old_marks(&mut message, changes);
    if ask.mark == Mark::WhereAllowed {
        mark_change(to, &message, changes);
    }
    Ok(message)
}

/// Lists what a draft, an unwrapping or an edit changed.
fn compare_edited(before: &Message, after: &Message, changes: &mut Vec<Change>) {
    let mut edited = |what: String, before: Option<String>, after: Option<String>| {
        let why = "edited".to_owned();
        changes.push(Change {
            kind: ChangeKind::Edited,
            what,
            before,
            after,
            why,
        });
    };
    let shown = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map(|bytes| preview(bytes, SHOWN));
    if before.body != after.body {
        edited("body".to_owned(), shown(&before.body), shown(&after.body));
    }
    if before.key != after.key {
        edited("key".to_owned(), shown(&before.key), shown(&after.key));
    }
    for name in names(before, after) {
        let (old, new) = (values(before, name), values(after, name));
        if old != new {
            edited(format!("header {name}"), old, new);
        }
    }
    for (name, value) in &before.properties {
        if after.properties.get(name) != Some(value) {
            let new = after.properties.get(name).map(value_text);
            edited(format!("property {name}"), Some(value_text(value)), new);
        }
    }
    for (name, value) in after
        .properties
        .iter()
        .filter(|(name, _)| !before.properties.contains_key(*name))
    {
        edited(format!("property {name}"), None, Some(value_text(value)));
    }
}

fn names<'a>(before: &'a Message, after: &'a Message) -> Vec<&'a str> {
    let mut names: Vec<&str> = before
        .headers
        .iter()
        .chain(&after.headers)
        .map(|header| header.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn values(message: &Message, name: &str) -> Option<String> {
    let shown: Vec<_> = message
        .headers
        .iter()
        .filter(|header| header.name == name)
        .map(|header| format!("{} ({})", value_text(header.value()), header.typed.kind))
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// Our own marks of an earlier replay would name the wrong run.
fn strip_old_marks(message: &mut Message, changes: &mut Vec<Change>) {
    message.headers.retain(|header| {
        let old = header.name == REPLAY_ID || header.name == RUN_ID;
        if old {
            changes.push(Change {
                kind: ChangeKind::Stripped,
                what: format!("header {}", header.name),
                before: Some(value_text(header.value())),
                after: None,
                why: "names an earlier replay".to_owned(),
            });
        }
        !old
    });
}

/// Whether the target takes two more headers.
pub fn can_mark(to: &Connection, message: &Message) -> bool {
    // SQS takes ten message attributes, and 1 MiB with them included (SQS developer guide, message metadata).
    const ROOM: usize = 1_048_576 - 256;
    to.broker != "sqs" || (message.headers.len() <= 8 && message.size() <= ROOM)
}

fn mark_change(to: &Connection, message: &Message, changes: &mut Vec<Change>) {
    if !can_mark(to, message) {
        return;
    }
    for name in [REPLAY_ID, RUN_ID] {
        changes.push(Change {
            kind: ChangeKind::Added,
            what: format!("header {name}"),
            before: None,
            after: Some("set when the run begins".to_owned()),
            why: "recognises a return and lets consumers deduplicate".to_owned(),
        });
    }
}

/// The header that marks a message, in the type of text headers on that broker.
pub fn mark_header(broker: &str, name: &str, value: String) -> Header {
    let kind = match broker {
        "kafka" => "bytes",
        "sqs" => "String",
        _ => "longstr",
    };
    Header::new(name, kind, Value::text(value))
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
        "Write {going} messages with a copy of each to the journal, before anything is sent."
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
    plan.steps = vec![format!("Save a copy of {count} messages in the journal.")];
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

fn resolved_rows(look: &OpenLook) -> Vec<u32> {
    look.view.rows_where(|state| state == RowState::Resolved)
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
