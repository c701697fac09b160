//! Dramatiq (Python) keeps what went wrong in its JSON body: `options.traceback`
//! (<https://dramatiq.io/reference.html#message>).

use dlo_core::Millis;

use super::{Confidence, Death, field::Field, marks::Marks};
use crate::group::stack;

pub(super) fn read(marks: &Marks<'_>) -> Option<Death> {
    let json = marks.object_with(&["\"actor_name\"", "\"queue_name\"", "\"options\""])?;
    let options = json.get("options")?;
    let traceback = options.get("traceback").and_then(serde_json::Value::as_str);
    let retries = options.get("retries").and_then(serde_json::Value::as_u64);
    if traceback.is_none() && retries.is_none() {
        return None;
    }
    let mut death = Death::new("Dramatiq", Confidence::Sure);
    set(&mut death, json, options);
    death.attempts = retries;
    if retries.is_some() {
        death.scope = Some("retries by Dramatiq".into());
        death.notes.push(
            "The body itself counts the retries (/options/retries): replayed as it is, Dramatiq gives up as soon as it fails again."
                .to_owned(),
        );
        death.note_source(Field::Attempts.path(), "body /options/retries");
    }
    if let Some(traceback) = traceback {
        set_traceback(&mut death, traceback);
    }
    Some(death)
}

fn set(death: &mut Death, json: &serde_json::Value, options: &serde_json::Value) {
    let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
    death.origin.queue = text("queue_name");
    death.note_source(Field::Queue.path(), "body /queue_name");
    // A delayed message waits in a queue of its own, whose name is the real one's with .DQ.
    if let Some(name) = death
        .origin
        .queue
        .as_deref()
        .and_then(|name| name.strip_suffix(".DQ"))
    {
        death.origin.queue = Some(name.to_owned());
    }
    death.origin.handler = text("actor_name");
    death.note_source(Field::Handler.path(), "body /actor_name");
    let millis = |at: &serde_json::Value| at.as_i64().map(Millis);
    death.last = options.get("requeue_timestamp").and_then(millis);
    if death.last.is_some() {
        death.note_source(Field::Last.path(), "body /options/requeue_timestamp");
    }
    death.sent = json.get("message_timestamp").and_then(millis);
    if death.sent.is_some() {
        death.note_source(Field::Sent.path(), "body /message_timestamp");
    }
    if let Some(eta) = options.get("eta").and_then(millis) {
        death.notes.push(format!(
            "It waits for its next try at {eta}: it is not dead yet."
        ));
    }
}

fn set_traceback(death: &mut Death, traceback: &str) {
    const SOURCE: &str = "body /options/traceback";
    death.reason.stack = Some(traceback.to_owned());
    death.note_source(Field::Stack.path(), SOURCE);
    if let Some((class, message)) = stack::python_error(traceback) {
        death.reason.class = Some(class.to_owned());
        death.reason.message = Some(message.to_owned());
        death.note_source(Field::Class.path(), SOURCE);
        death.note_source(Field::Message.path(), SOURCE);
    }
}
