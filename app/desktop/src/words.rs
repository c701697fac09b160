//! The sentences on screen: errors that say what to do next, counts, ages and sizes.

use dlo_core::{Certainty, Error, ErrorKind, Figure, Millis};

/// An error as a person reads it: what could not be done, why, and what to do next.
pub fn error(error: &Error) -> String {
    let mut text = format!("Could not {}: {}", error.operation(), error.what());
    if !error.context().is_empty() {
        let facts: Vec<_> = error
            .context()
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        text.push_str(&format!(" ({})", facts.join(", ")));
    }
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text.push(' ');
    text.push_str(error.advice().unwrap_or_else(|| next_step(error.kind())));
    text
}

/// What to do about a kind of error when the connector knows nothing better.
pub fn next_step(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ConfigInvalid => "Mend the profile or the URL.",
        ErrorKind::Unreachable => "Check address, port, TLS and network, then connect again.",
        ErrorKind::Unauthenticated => "Check the user and password, certificate or token.",
        ErrorKind::PermissionDenied => "Ask the broker's owner for this permission.",
        ErrorKind::NotFound => "Refresh the list; it may have been deleted or renamed.",
        ErrorKind::Unsupported => "This broker cannot do it; choose another way.",
        ErrorKind::Refused => "Nothing was done.",
        ErrorKind::Throttled => "Wait a little, then try again.",
        ErrorKind::TooLarge => "Make the message smaller, or raise the broker's limit.",
        ErrorKind::Rejected => "Edit what the broker does not take, then try again.",
        ErrorKind::Unroutable => "Nothing was stored; choose another target.",
        ErrorKind::LockLost => "The message is back in its queue; look again.",
        ErrorKind::OutcomeUnknown => {
            "It may have arrived. Look at the target before you try again."
        }
        ErrorKind::Cancelled => "Nothing further was done.",
        _ => "Try again; if it stays, the log of the broker may say more.",
    }
}

/// A whole number with thousands separated: `1,243`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 message`, `12 messages`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A figure with the mark of its certainty: `1,243`, `≈ 1,200`, `≥ 12`, `≤ 40`, `?`.
pub fn figure(figure: Figure<u64>) -> String {
    marked(figure, |value| count(*value))
}

/// A figure of any kind, written by `write`, with the mark of its certainty.
pub fn marked<T>(figure: Figure<T>, write: impl Fn(&T) -> String) -> String {
    let Some(value) = &figure.value else {
        return "?".to_owned();
    };
    match figure.certainty {
        Certainty::Exact => write(value),
        Certainty::About => format!("≈ {}", write(value)),
        Certainty::AtLeast => format!("≥ {}", write(value)),
        Certainty::AtMost => format!("≤ {}", write(value)),
        Certainty::Unknown => "?".to_owned(),
    }
}

/// What the mark of a figure means, for a tooltip.
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "Counted by the broker",
        Certainty::About => "About: the broker only estimates it",
        Certainty::AtLeast => "At least: there may be more",
        Certainty::AtMost => "At most: an upper bound, some of it may be gone",
        Certainty::Unknown => "Not known",
    }
}

/// How long ago or ahead, coarse and short: `3 d`, `11 h`, `12 min`, `40 s`.
pub fn span(millis: i64) -> String {
    let seconds = millis.unsigned_abs() / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => {
            let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
            if hours < 10 && minutes > 0 {
                format!("{hours} h {minutes} min")
            } else {
                format!("{hours} h")
            }
        }
        _ => {
            let (days, hours) = (seconds / 86_400, seconds % 86_400 / 3600);
            if days < 3 && hours > 0 {
                format!("{days} d {hours} h")
            } else {
                format!("{days} d")
            }
        }
    }
}

/// A countdown to the second: `29:12`, `1:02:03`.
pub fn countdown(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Bytes in units a person reads: `812 B`, `1.4 KiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// The time of day and the date in UTC: `11-30 03:10:00.123`.
pub fn moment(time: Millis) -> String {
    let text = time.to_string();
    match text.get(5..23) {
        Some(short) if text.ends_with('Z') => short.replace('T', " "),
        _ => text,
    }
}

/// The time of day alone, in UTC: `03:10:00`.
pub fn clock(time: Millis) -> String {
    let text = time.to_string();
    match text.get(11..19) {
        Some(short) if text.ends_with('Z') => short.to_owned(),
        _ => text,
    }
}

/// Growth per hour: `+40/h`, `−3/h`, `steady`.
pub fn growth(per_hour: f64) -> String {
    if per_hour.abs() < 0.5 {
        return "steady".to_owned();
    }
    let number = count(per_hour.abs().round() as u64);
    if per_hour > 0.0 {
        format!("+{number}/h")
    } else {
        format!("−{number}/h")
    }
}

/// What became of a message by an act: `exported` for `export`.
pub fn past(act: &str) -> &str {
    match act {
        "replay" => "replayed",
        "discard" => "discarded",
        "restore" => "restored",
        "import" => "imported",
        "export" => "exported",
        "purge" => "purged",
        "redrive" => "redriven",
        "resolve" => "resolved",
        "unresolve" => "mark taken back",
        "tombstone" => "tombstone written",
        other => other,
    }
}

/// An outcome as a person reads it. *Settled* is the journal's word for a message with which all is done, and misleads where
/// nothing was taken away.
pub fn outcome<'a>(act: &'a str, outcome: &'a str) -> &'a str {
    match (act, outcome) {
        ("export", "settled" | "done") => past(act),
        _ => outcome,
    }
}

/// The first letter in upper case.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + chars.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_marks() {
        assert_eq!(count(1), "1");
        assert_eq!(count(1_243), "1,243");
        assert_eq!(count(10_000_000), "10,000,000");
        assert_eq!(figure(Figure::about(1200)), "≈ 1,200");
        assert_eq!(figure(Figure::at_most(40)), "≤ 40");
        assert_eq!(figure(Figure::unknown()), "?");
    }

    #[test]
    fn spans_are_short_and_countdowns_exact() {
        assert_eq!(span(3 * 86_400_000), "3 d");
        assert_eq!(span(11 * 3_600_000), "11 h");
        assert_eq!(span(90 * 60_000), "1 h 30 min");
        assert_eq!(countdown(1_752_000), "29:12");
        assert_eq!(countdown(3_723_000), "1:02:03");
        assert_eq!(countdown(-5), "0:00");
    }

    #[test]
    fn every_error_says_what_to_do_next() {
        let bare = Error::new(
            ErrorKind::Unroutable,
            "publish to orders",
            "no queue would get it",
        );
        assert_eq!(
            error(&bare),
            "Could not publish to orders: no queue would get it. Nothing was stored; choose another target."
        );
        let advised = bare.advise("Bind a queue to the exchange.");
        assert!(error(&advised).ends_with("Bind a queue to the exchange."));
    }

    #[test]
    fn sizes_and_moments_are_short() {
        assert_eq!(size(812), "812 B");
        assert_eq!(size(1434), "1.4 KiB");
        assert_eq!(size(20 * 1024 * 1024), "20 MiB");
        let time = Millis::parse("2026-11-30T03:10:00.123Z").expect("a time");
        assert_eq!(moment(time), "11-30 03:10:00.123");
        assert_eq!(growth(40.2), "+40/h");
    }
}
