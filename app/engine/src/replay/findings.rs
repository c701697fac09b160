//! Pre-flight: what a person has to know before a replay, each finding fine, warning, or to be answered.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use dlo_core::{AddressKind, Destination, ErrorKind, LookRequest, Position, Result, Start, Target};
use tokio_util::sync::CancellationToken;

use super::{
    plan::{Finding, Plan, PlannedAct, PlannedMessage, Severity},
    target,
};
use crate::{
    audit::Fingerprint,
    command::{Mark, ReplayAsk, ReplayTime},
    dead_letter,
    look::OpenLook,
    profile::Mode,
    records::position_text,
    shared::{Connection, Shared},
    store::RowState,
};

/// Records that are scanned at most for newer ones with the same key, and for how long.
const STALE_SCAN: u64 = 200_000;
const STALE_TIME: Duration = Duration::from_secs(10);
/// A target with more messages waiting than this is worth a word.
const BACKLOG: u64 = 10_000;

/// Everything worth knowing about a replay.
pub async fn of_replay(
    shared: &Arc<Shared>,
    look: &OpenLook,
    to: &Connection,
    messages: &[PlannedMessage],
    ask: &ReplayAsk,
    cancel: &CancellationToken,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    refused(messages, &mut findings);
    for (target, going) in by_target(messages) {
        of_target(to, &target, &going, ask, &mut findings).await;
    }
    of_messages(look, to, messages, ask, &mut findings);
    replayed_before(shared, look, messages, &mut findings).await;
    stale_updates(look, to, messages, cancel, &mut findings).await;
    if !messages.iter().any(|message| message.outgoing.is_some()) {
        let text = "No message can go; see the reason beside each.".to_owned();
        findings.push(Finding {
            severity: Severity::Blocks,
            code: "nothing",
            text,
            messages: messages.len() as u64,
        });
    }
    Ok(findings)
}

fn add(
    findings: &mut Vec<Finding>,
    severity: Severity,
    code: &'static str,
    messages: usize,
    text: impl Into<String>,
) {
    findings.push(Finding {
        severity,
        code,
        text: text.into(),
        messages: messages as u64,
    });
}

/// How grave it is that something other than the failed consumer could be touched: on production a person must accept it,
/// elsewhere it is said and goes on.
fn harm(connection: &Connection) -> Severity {
    if connection.mode == Mode::Production {
        Severity::MustAnswer
    } else {
        Severity::Warning
    }
}

/// Messages that cannot go, by reason.
fn refused(messages: &[PlannedMessage], findings: &mut Vec<Finding>) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for why in messages
        .iter()
        .filter_map(|message| message.refused.as_deref())
    {
        *reasons.entry(why).or_default() += 1;
    }
    for (why, count) in reasons {
        add(
            findings,
            Severity::Warning,
            "left-out",
            count,
            format!("{count} messages stay where they are: {why}."),
        );
    }
}

type Going<'a> = Vec<&'a PlannedMessage>;

fn by_target(messages: &[PlannedMessage]) -> Vec<(Target, Going<'_>)> {
    let mut targets: HashMap<Target, Going<'_>> = HashMap::new();
    for message in messages {
        if let Some(outgoing) = &message.outgoing {
            let mut target = outgoing.target.clone();
            target.partitioning = dlo_core::Partitioning::ByKey;
            targets.entry(target).or_default().push(message);
        }
    }
    let mut targets: Vec<_> = targets.into_iter().collect();
    targets.sort_by_key(|(target, _)| target::words(target));
    targets
}

async fn of_target(
    to: &Connection,
    target: &Target,
    going: &Going<'_>,
    ask: &ReplayAsk,
    findings: &mut Vec<Finding>,
) {
    let (name, count) = (target::words(target), going.len());
    match to.session.routes(target).await {
        Ok(routes) if !routes.exists => {
            let text = format!(
                "{name} does not exist: nothing would be delivered, every message stays where it is."
            );
            add(findings, Severity::Warning, "target-gone", count, text);
        }
        Ok(routes) => {
            if routes.complete
                && routes.reaches.is_empty()
                && target.address.kind == AddressKind::Exchange
            {
                let text = format!(
                    "No queue is bound to {name} with that key: nothing would be delivered."
                );
                add(findings, Severity::Warning, "unroutable", count, text);
            } else if routes.reaches.len() > 1 {
                let text = format!(
                    "{name} reaches {} consumers or queues, not only the one that failed: {}.",
                    routes.reaches.len(),
                    routes.reaches.join(", ")
                );
                add(findings, harm(to), "fan-out", count, text);
            }
            for note in routes.notes {
                add(findings, Severity::Warning, "target", count, note);
            }
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        Err(error) => {
            let text =
                format!("Who would get messages sent to {name} could not be found out: {error}");
            add(findings, Severity::Warning, "target-unknown", count, text);
        }
    }
    if target.address.kind != AddressKind::Exchange
        && let Ok(destination) = to.session.describe(&target.address).await
    {
        of_destination(&destination, going, ask, findings);
    }
}

fn of_destination(
    target: &Destination,
    going: &Going<'_>,
    ask: &ReplayAsk,
    findings: &mut Vec<Finding>,
) {
    let (name, count) = (&target.address.name, going.len());
    if target.consumers.value == Some(0) {
        let text =
            format!("Nobody consumes from {name} at the moment; the messages will wait there.");
        add(findings, Severity::Warning, "no-consumer", count, text);
    }
    if let Some(depth) = target
        .depth
        .value
        .filter(|depth| *depth > BACKLOG && target.address.kind == AddressKind::Queue)
    {
        let text = format!("{name} has a backlog of {depth} messages; these come after them.");
        add(findings, Severity::Warning, "backlog", count, text);
    }
    let capability = &target.capability;
    if let Some(most) = capability.publish_max_bytes {
        let larger = going.iter().filter(|message| size(message) > most).count();
        if larger > 0 {
            let text = format!(
                "{larger} messages are larger than the {most} bytes that {name} takes; they will stay."
            );
            add(findings, Severity::Warning, "too-large", larger, text);
        }
    }
    if let Some(most) = capability.publish_max_headers {
        let over = going
            .iter()
            .filter(|message| headers(message) > most as usize)
            .count();
        if over > 0 {
            let text = format!(
                "{over} messages have more than the {most} headers that {name} takes; they will stay."
            );
            add(findings, Severity::Warning, "headers", over, text);
        }
    }
    if capability.order_per_group {
        let text = format!(
            "{name} keeps order per group: each group is sent one message after the other, with fresh deduplication ids."
        );
        add(findings, Severity::Fine, "group-order", count, text);
    }
    if ask.time == ReplayTime::Kept && !capability.publish_with_time {
        let text = format!("{name} sets the time itself, so the kept timestamp has no effect.");
        add(findings, Severity::Warning, "timestamp", count, text);
    }
    if ask.time == ReplayTime::Kept && target.retention.is_some() {
        let text =
            format!("{name} deletes by time: a kept timestamp may be too old and expire at once.");
        add(findings, Severity::Warning, "timestamp", count, text);
    }
}

fn size(message: &PlannedMessage) -> u64 {
    message
        .outgoing
        .as_ref()
        .and_then(|outgoing| outgoing.message.body.as_ref())
        .map_or(0, |body| body.len() as u64)
}

fn headers(message: &PlannedMessage) -> usize {
    message
        .outgoing
        .as_ref()
        .map_or(0, |outgoing| outgoing.message.headers.len())
}

/// What the messages themselves tell: a time to live, a reply address, no place for our marks.
fn of_messages(
    look: &OpenLook,
    to: &Connection,
    messages: &[PlannedMessage],
    ask: &ReplayAsk,
    findings: &mut Vec<Finding>,
) {
    let count = |wanted: &dyn Fn(&dlo_core::Message) -> bool| {
        messages
            .iter()
            .filter_map(|message| message.outgoing.as_ref())
            .filter(|outgoing| wanted(&outgoing.message))
            .count()
    };
    let expiring = count(&|message| message.properties.contains_key("expiration"));
    if expiring > 0 {
        let text = format!(
            "{expiring} messages carry a time to live and may expire again before they are consumed."
        );
        add(findings, Severity::Warning, "expiration", expiring, text);
    }
    let replies = count(&|message| message.properties.contains_key("reply_to"));
    if replies > 0 {
        let text = format!("{replies} messages ask for a reply; whoever asked has probably gone.");
        add(findings, Severity::Warning, "reply-to", replies, text);
    }
    if ask.mark == Mark::WhereAllowed {
        let unmarked = count(&|message| !super::compose::can_mark(to, message));
        if unmarked > 0 {
            let text = format!(
                "{unmarked} messages have no room for our replay id, so their return is not recognised."
            );
            add(findings, Severity::Warning, "no-mark", unmarked, text);
        }
    }
    if to.broker != look.connection.broker {
        let text = format!(
            "The messages go from {} to {}: header types become what the target has.",
            look.connection.broker, to.broker
        );
        add(findings, harm(to), "other-broker", messages.len(), text);
    }
}

async fn replayed_before(
    shared: &Shared,
    look: &OpenLook,
    messages: &[PlannedMessage],
    findings: &mut Vec<Finding>,
) {
    let Ok(audit) = shared.audit() else { return };
    let prints = messages
        .iter()
        .map(|message| Fingerprint {
            sha256: message.sha256.clone(),
            profile: look.connection.label.clone(),
            destination: look.address().name.clone(),
            position: position_text(&message.position),
        })
        .collect();
    let earlier = audit.earlier_replays(prints).await.unwrap_or_default();
    let again = earlier.iter().filter(|replays| !replays.is_empty()).count();
    if again == 0 {
        return;
    }
    let newest = earlier.iter().flatten().max_by_key(|replay| replay.time);
    let when = newest.map_or(String::new(), |replay| {
        format!(
            ", last at {} by {} ({})",
            replay.time, replay.who, replay.outcome
        )
    });
    let text = format!(
        "{again} messages with the same body were replayed from here before{when}. They may be processed twice."
    );
    add(
        findings,
        harm(&look.connection),
        "replayed-before",
        again,
        text,
    );
}

/// Newer records with the same key: replaying an older one would undo them.
async fn stale_updates(
    look: &OpenLook,
    to: &Connection,
    messages: &[PlannedMessage],
    cancel: &CancellationToken,
    findings: &mut Vec<Finding>,
) {
    let mut wanted: HashMap<(String, i32), BTreeMap<Bytes, i64>> = HashMap::new();
    for message in messages {
        let Some((target, partition, offset, key)) = origin_of(look, message) else {
            continue;
        };
        let newest = wanted
            .entry((target, partition))
            .or_default()
            .entry(key)
            .or_insert(offset);
        *newest = (*newest).max(offset);
    }
    let (mut stale, mut complete) = (0, true);
    for ((topic, partition), keys) in wanted {
        let scanned =
            tokio::time::timeout(STALE_TIME, newer_keys(to, &topic, partition, &keys, cancel))
                .await;
        match scanned {
            Ok(Ok((found, all))) => {
                stale += found.len();
                complete &= all;
            }
            _ => complete = false,
        }
    }
    if stale > 0 {
        let least = if complete { "" } else { "at least " };
        let text = format!(
            "For {least}{stale} keys there are newer records in the target already: replaying the old one may undo them."
        );
        add(findings, harm(to), "stale", stale, text);
    } else if !complete {
        let text = "Whether newer records with the same key exist was not fully checked: the target is too large to scan here.";
        add(
            findings,
            Severity::Warning,
            "stale-unknown",
            messages.len(),
            text,
        );
    }
}

/// Topic, partition, offset and key of the record that died, when the replay goes back to that topic.
fn origin_of(look: &OpenLook, message: &PlannedMessage) -> Option<(String, i32, i64, Bytes)> {
    let outgoing = message.outgoing.as_ref()?;
    let key = outgoing.message.key.clone().filter(|key| !key.is_empty())?;
    let delivery = look.view.delivery(message.row)?;
    let death = dead_letter::read(&delivery, &look.connection.headers)?;
    let origin = death
        .all()
        .map(|death| &death.origin)
        .find(|origin| origin.offset.is_some())?;
    let (topic, partition, offset) = (origin.topic.clone()?, origin.partition?, origin.offset?);
    (topic == outgoing.target.address.name).then_some((topic, partition, offset, key))
}

/// Which of the keys have a record after their offset, and whether all was scanned.
async fn newer_keys(
    to: &Connection,
    topic: &str,
    partition: i32,
    keys: &BTreeMap<Bytes, i64>,
    cancel: &CancellationToken,
) -> Result<(BTreeSet<Bytes>, bool)> {
    let first = keys.values().min().copied().unwrap_or_default() + 1;
    let request = LookRequest {
        start: Start::Offsets(vec![(partition, first)]),
        ..LookRequest::new(STALE_SCAN)
    };
    let scan = to
        .session
        .look(&dlo_core::Address::topic(topic), request)
        .await?;
    let (mut found, mut seen) = (BTreeSet::new(), 0);
    let all = loop {
        let page = scan.next(2000, cancel).await?;
        seen += page.deliveries.len() as u64;
        for delivery in &page.deliveries {
            if let (Some(key), Position::Offset { offset, .. }) =
                (&delivery.message.key, &delivery.position)
                && keys.get(key).is_some_and(|died| offset > died)
            {
                found.insert(key.clone());
            }
        }
        if page.end || seen >= STALE_SCAN {
            break page.end && seen < STALE_SCAN;
        }
    };
    scan.close().await?;
    Ok((found, all))
}

/// Plans to delete the prefix of each partition in which everything is resolved.
pub fn plan_truncate(look: &OpenLook, plan: &mut Plan) -> Result<()> {
    if !look.destination.capability.truncate {
        let why = "the topic does not allow to delete records (its cleanup policy lacks delete, or a permission is missing)";
        return Err(
            dlo_core::Error::new(ErrorKind::Unsupported, "plan to delete records", why)
                .with("destination", look.address().name.clone())
                .advise("Leave the records: resolved ones are hidden, and retention removes them."),
        );
    }
    let before = resolved_prefixes(look);
    if before.is_empty() {
        let why = "no partition begins with resolved messages only";
        return Err(dlo_core::Error::new(ErrorKind::Refused, "plan to delete records", why)
            .advise("Look from the oldest message, and resolve or replay everything up to where you want to delete."));
    }
    let records: i64 = before
        .iter()
        .map(|(partition, offset)| offset - log_start(look, *partition))
        .sum();
    let places: Vec<_> = before
        .iter()
        .map(|(partition, offset)| format!("{partition}:{offset}"))
        .collect();
    let text = format!(
        "Kafka deletes every record before {} for all readers, at most {records}. It cannot be undone; unlike a discard no copy is kept.",
        places.join(", ")
    );
    add(
        &mut plan.findings,
        Severity::MustAnswer,
        "truncate",
        usize::try_from(records).unwrap_or(0),
        text,
    );
    plan.steps = vec![format!(
        "Ask Kafka to delete the records of {} before {}.",
        look.address(),
        places.join(", ")
    )];
    plan.engine = "Kafka's DeleteRecords, which moves the start of a partition.".to_owned();
    plan.act = PlannedAct::Truncate { before };
    Ok(())
}

fn log_start(look: &OpenLook, partition: i32) -> i64 {
    let known = look
        .destination
        .partitions
        .iter()
        .find(|known| known.id == partition);
    known.map_or(0, |partition| partition.log_start)
}

/// For each partition the first offset that is not resolved, where the loaded messages reach back to the start of the log.
fn resolved_prefixes(look: &OpenLook) -> Vec<(i32, i64)> {
    let mut offsets: BTreeMap<i32, Vec<(i64, bool)>> = BTreeMap::new();
    for row in look.view.rows_where(|_| true) {
        if let Some(row) = look.view.row(row)
            && let Position::Offset { partition, offset } = row.position
        {
            offsets
                .entry(partition)
                .or_default()
                .push((offset, row.state == RowState::Resolved));
        }
    }
    let from_start = |partition: i32| match &look.ask.start {
        Start::Oldest => true,
        Start::Offsets(from) => from
            .iter()
            .any(|(id, offset)| *id == partition && *offset <= log_start(look, partition)),
        // The newest ones are all there is when they are fewer than the limit.
        Start::Newest => u64::from(look.view.len()) < look.ask.limit,
        _ => false,
    };
    let mut prefixes = Vec::new();
    for (partition, mut rows) in offsets {
        rows.sort_unstable();
        let resolved = rows.iter().take_while(|(_, resolved)| *resolved).count();
        if from_start(partition)
            && let Some((last, _)) = resolved.checked_sub(1).and_then(|last| rows.get(last))
        {
            prefixes.push((partition, last + 1));
        }
    }
    prefixes
}
