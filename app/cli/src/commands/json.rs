//! The forms of `--json`, as scripts rely on them. Fields may be added; these stay.

use dlo_core::{Certainty, Figure, Millis, Position};
use dlo_engine::event::{AuditLine, Listed, RunMessage, RunSummary, SavedCopy};
use serde_json::{Map, Value, json};

/// A destination.
pub fn listed(listed: &Listed) -> Value {
    let destination = &listed.destination;
    json!({
        "destination": destination.address.name,
        "kind": destination.address.kind,
        "label": destination.label,
        "dead_letters": destination.holds_dead_letters(),
        "sources": destination.sources,
        "dead_letters_to": destination.dead_letters_to,
        "depth": figure(destination.depth, |depth| json!(depth)),
        "in_flight": figure(destination.in_flight, |count| json!(count)),
        "delayed": figure(destination.delayed, |count| json!(count)),
        "consumers": figure(destination.consumers, |count| json!(count)),
        "oldest": figure(destination.oldest, time),
        "expires": figure(destination.expires, time),
        "retention_seconds": destination.retention.map(|retention| retention.as_secs()),
        "growth_per_hour": listed.growth_per_hour,
        "resolved": listed.resolved,
        "owner": listed.notes.owner,
        "runbook": listed.notes.runbook,
        "facts": destination.facts.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>(),
        "partitions": destination.partitions.iter().map(|partition| json!({
            "partition": partition.id,
            "log_start": partition.log_start,
            "high_watermark": partition.high_watermark,
            "last_stable": partition.last_stable,
        })).collect::<Vec<_>>(),
        "groups": destination.groups.iter().map(|group| json!({
            "group": group.name,
            "state": group.state,
            "lag": group.lags.iter().filter_map(|lag| lag.lag).sum::<i64>(),
            "partitions": group.lags.iter().map(|lag| json!({
                "partition": lag.partition, "committed": lag.committed, "lag": lag.lag,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "look": destination.look.line,
    })
}

fn figure<T: Copy>(figure: Figure<T>, show: impl Fn(T) -> Value) -> Value {
    json!({"value": figure.value.map(show), "certainty": certainty(figure.certainty)})
}

pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::About => "about",
        Certainty::AtLeast => "at least",
        Certainty::AtMost => "at most",
        Certainty::Unknown => "unknown",
    }
}

fn time(time: Millis) -> Value {
    json!(time.to_string())
}

fn position(position: Option<&Position>) -> Value {
    position
        .and_then(|position| serde_json::to_value(position).ok())
        .unwrap_or_default()
}

/// One message of a run.
pub fn run_message(run: &str, message: &RunMessage) -> Value {
    json!({
        "position": position(message.position.as_ref()),
        "sha256": message.sha256,
        "target": message.target,
        "outcome": message.outcome,
        "detail": message.detail,
        "sequence": message.sequence,
        "run": run,
    })
}

/// One run.
pub fn run(run: &RunSummary) -> Value {
    json!({
        "run": run.run,
        "act": run.act,
        "place": run.place,
        "destination": run.destination,
        "state": run.state,
        "crashed": run.crashed,
        "who": run.who,
        "why": run.why,
        "started": run.started.to_string(),
        "ended": run.ended.map(|time| time.to_string()),
        "total": run.total,
        "outcomes": run.outcomes,
    })
}

/// One entry of the audit trail.
pub fn audit(line: &AuditLine) -> Value {
    json!({
        "time": line.time.to_string(),
        "who": line.who,
        "why": line.why,
        "act": line.act,
        "place": line.place,
        "destination": line.destination,
        "position": position(line.position.as_ref()),
        "sha256": line.sha256,
        "target": line.target,
        "outcome": line.outcome,
        "detail": line.detail,
        "run": line.run,
    })
}

/// One saved copy, without its body.
pub fn saved(copy: &SavedCopy) -> Value {
    json!({
        "id": copy.id,
        "run": copy.run,
        "act": copy.act,
        "destination": copy.destination,
        "sha256": copy.sha256,
        "saved": copy.saved.to_string(),
        "restored_by": copy.restored_by,
    })
}
