//! A number that looks as sure as it is: exact, about (≈), at least (≥), at most (≤), unknown (?).

use dlo_core::{Figure, Millis};
use egui::{Response, RichText, Ui};

use crate::{theme::colours, words};

/// A count with the mark of its certainty, explained under the pointer.
pub fn figure_ui(ui: &mut Ui, figure: Figure<u64>, noun: &str) -> Response {
    let text = words::figure(figure);
    let colour = match figure.value {
        None | Some(0) => colours(ui).weak,
        Some(_) => colours(ui).strong,
    };
    ui.label(RichText::new(text).color(colour))
        .on_hover_text(format!(
            "{} {noun}. {}.",
            words::figure(figure),
            words::certainty(figure.certainty)
        ))
}

/// How old a moment is: `3 d`, or `≥ 3 d` when it was at the latest then.
pub fn age(figure: Figure<Millis>, now: Millis) -> String {
    // "At least this time" for a moment means that it may be later, so the age is at most this.
    let flipped = match figure.certainty {
        dlo_core::Certainty::AtLeast => dlo_core::Certainty::AtMost,
        dlo_core::Certainty::AtMost => dlo_core::Certainty::AtLeast,
        other => other,
    };
    let figure = Figure {
        value: figure.value,
        certainty: flipped,
    };
    words::marked(figure, |time| words::span(now.since(*time).max(0)))
}

/// How long until a moment.
pub fn until(figure: Figure<Millis>, now: Millis) -> String {
    words::marked(figure, |time| {
        let left = time.since(now);
        if left <= 0 {
            "now".to_owned()
        } else {
            words::span(left)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_moment_turns_its_bound_around() {
        let now = Millis(10 * 86_400_000);
        let then = Millis(7 * 86_400_000);
        assert_eq!(age(Figure::exact(then), now), "3 d");
        assert_eq!(age(Figure::at_most(then), now), "≥ 3 d");
        assert_eq!(age(Figure::unknown(), now), "?");
        assert_eq!(until(Figure::exact(then), now), "now");
        assert_eq!(until(Figure::about(now), then), "≈ 3 d");
    }
}
