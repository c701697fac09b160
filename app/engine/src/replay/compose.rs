//! What goes out for one dead letter: the message without the marks of its death, with the edits, and a list of what differs.

use std::sync::Arc;

use dlo_core::{AddressKind, Delivery, Header, Message, Outgoing, Value};
use dlo_payload::registry::Resolver;

use super::{
    convert,
    edits::{self, Prepared},
    plan::{Change, ChangeKind, PlannedMessage},
    target::{self, Resolved},
};
use crate::{
    capture::value_text,
    command::{Mark, ReplayAsk, ReplayTime, Unwrap},
    dead_letter::{self, Death, strip, wrapped},
    look::OpenLook,
    shared::Connection,
    store::preview,
};

/// Headers that a replayed message carries, so that its return is recognised and a consumer can deduplicate.
pub const REPLAY_ID: &str = "x-dlo-replay-id";
pub const RUN_ID: &str = "x-dlo-run-id";
/// Characters of a value in a change.
const SHOWN: usize = 200;

/// Composes the messages of one plan.
#[derive(Debug)]
pub struct Composer<'a> {
    pub look: &'a OpenLook,
    /// Where they are published.
    pub to: &'a Connection,
    pub ask: &'a ReplayAsk,
    /// The target that was chosen by name for all of them.
    pub chosen: Option<Resolved>,
    pub edits: Vec<Prepared>,
    pub resolver: Resolver,
}

impl Composer<'_> {
    /// What would go out for the message of a row, or why nothing can.
    pub fn plan(&self, row: u32, delivery: Delivery) -> PlannedMessage {
        let death = dead_letter::read(&delivery, &self.look.connection.headers);
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
        match self.target(death.as_ref()) {
            Err(why) => planned.refused = Some(why),
            Ok(resolved) => {
                planned.target = Some(target::words(&resolved.target));
                planned.evidence = resolved.evidence;
                let kind = resolved.target.address.kind;
                match self.message(row, &delivery, death.as_ref(), kind, &mut planned.changes) {
                    Ok(message) => {
                        let kept = self.ask.time == ReplayTime::Kept;
                        let time = kept.then_some(delivery.time).flatten();
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

    fn target(&self, death: Option<&Death>) -> Result<Resolved, String> {
        let from = &self.look.destination;
        let Some(chosen) = &self.chosen else {
            return target::resolve(&self.ask.route, self.ask.partitioning, death, from);
        };
        if chosen.target.address == from.address && self.to.id == self.look.connection.id {
            return Err(format!(
                "{} is the dead-letter destination itself; choose another target",
                from.address
            ));
        }
        let origin = death.and_then(|death| death.all().find_map(|death| death.origin.partition));
        let mut resolved = chosen.clone();
        resolved.target.partitioning = self.ask.partitioning.resolve(origin);
        Ok(resolved)
    }

    fn message(
        &self,
        row: u32,
        delivery: &Delivery,
        death: Option<&Death>,
        kind: AddressKind,
        changes: &mut Vec<Change>,
    ) -> Result<Message, String> {
        let ask = self.ask;
        let draft = ask.drafts.get(&row);
        if draft.is_none() && ask.unwrap == Unwrap::No && is_only_a_pointer(delivery, death) {
            return Err("it holds no message, only a pointer to one; follow it and replay the record itself".to_owned());
        }
        let original = &delivery.message;
        let mut message = draft.unwrap_or(original).clone();
        if ask.unwrap == Unwrap::Yes {
            message = wrapped::unwrap(delivery)
                .ok_or("it is no wrapper around another message")?
                .message;
        }
        let mut remarks = Vec::new();
        for edit in &self.edits {
            remarks.extend(edits::apply(edit, &mut message, &self.resolver)?);
        }
        compare_edited(original, &message, &remarks, changes);
        let mut stripped = strip::strip(&message, death, &ask.keep_headers);
        changes.append(&mut stripped.changes);
        let mut message = stripped.message;
        strip_old_marks(&mut message, changes);
        convert::to_broker(
            &mut message,
            self.look.connection.broker,
            self.to.broker,
            kind,
            changes,
        );
        if ask.mark == Mark::WhereAllowed {
            mark_change(self.to, &message, changes);
        }
        Ok(message)
    }
}

fn is_only_a_pointer(delivery: &Delivery, death: Option<&Death>) -> bool {
    let points = death.is_some_and(|death| death.all().any(|death| death.pointer.is_some()));
    points
        && delivery
            .message
            .body
            .as_ref()
            .is_none_or(bytes::Bytes::is_empty)
}

/// Lists what a draft, an unwrapping or an edit changed.
fn compare_edited(
    before: &Message,
    after: &Message,
    remarks: &[String],
    changes: &mut Vec<Change>,
) {
    let mut edited = |what: String, before: Option<String>, after: Option<String>| {
        let remarks = if what == "body" { remarks } else { &[] };
        let why = std::iter::once("edited")
            .chain(remarks.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("; ");
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
