//! The fingerprint of a failure: what two dead letters must share to be of one kind.

use super::{normalise, stack};
use crate::dead_letter::Death;

/// What groups a dead letter, and how a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Equal for dead letters of one group; the same in every session.
    pub key: String,
    /// The label in this dead letter's own words.
    pub label: String,
    /// The label with what differs from case to case replaced.
    pub general: String,
}

/// The fingerprint of a death: exception and first frame of the application; without a stack the reason, its message
/// with ids and numbers replaced, and the origin.
pub fn fingerprint(death: Option<&Death>) -> Fingerprint {
    let Some(death) = death else {
        return plain("", "no failure recorded");
    };
    let reason = &death.telling().reason;
    let class = death.class().unwrap_or_default();
    let frame = reason
        .stack
        .as_deref()
        .and_then(stack::first_application_frame);
    if let Some(frame) = frame {
        let class = if class.is_empty() { "exception" } else { class };
        return plain(
            &format!("{class}\u{1f}{}", frame.symbol),
            &format!("{}  {}", short(class), frame.label()),
        );
    }
    let place = death.place().unwrap_or_default();
    match reason
        .message
        .as_deref()
        .filter(|message| !message.trim().is_empty())
    {
        Some(message) => by_message(class, message, place),
        None => by_reason(class, place),
    }
}

fn plain(key: &str, label: &str) -> Fingerprint {
    Fingerprint {
        key: key.to_owned(),
        label: label.to_owned(),
        general: label.to_owned(),
    }
}

fn by_message(class: &str, message: &str, place: &str) -> Fingerprint {
    let general = normalise(message);
    let first_line = message.trim_start().lines().next().unwrap_or_default();
    let before = if class.is_empty() {
        String::new()
    } else {
        format!("{}: ", short(class))
    };
    Fingerprint {
        key: format!("{class}\u{1f}{general}\u{1f}{place}"),
        label: shorten(&format!("{before}{first_line}")),
        general: shorten(&format!("{before}{general}")),
    }
}

fn by_reason(class: &str, place: &str) -> Fingerprint {
    let reason = if class.is_empty() {
        "no reason recorded"
    } else {
        class
    };
    let label = if place.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}, from {place}")
    };
    plain(&format!("{class}\u{1f}\u{1f}{place}"), &label)
}

/// The class without its package or namespace.
fn short(class: &str) -> &str {
    class
        .rsplit(['.', '\\'])
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(class)
}

fn shorten(label: &str) -> String {
    const LONGEST: usize = 160;
    match label.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}
