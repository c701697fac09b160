//! What a look costs here, computed from the settings and the messages that are there.

use dlo_core::{LookCost, Verdict};

use crate::{DeadLetterTo, QueueKind, queue::Queue};

/// The cost of a look at up to `limit` messages of a queue.
pub(crate) fn of_queue(queue: &Queue, limit: u64, is_dead_letter_queue: bool) -> LookCost {
    let holds = holds(limit.min(queue.ready_count().max(1)));
    let mut cost = match queue.kind() {
        QueueKind::Classic => LookCost {
            line: format!("{holds}; marks them as redelivered"),
            ..LookCost::default()
        },
        QueueKind::Quorum => of_quorum(queue, &holds),
        QueueKind::Standard | QueueKind::Fifo => of_sqs(queue, &holds, is_dead_letter_queue),
    };
    warn_of_consumers(queue, &mut cost);
    if queue.kind() == QueueKind::Fifo {
        warn(
            &mut cost,
            Verdict::Warn,
            "A message group stalls for its consumers while one of its messages is held.",
        );
    }
    cost
}

/// The cost of reading a log: nothing.
pub(crate) fn of_log() -> LookCost {
    LookCost {
        line: "reads by offset; holds nothing and commits nothing".to_owned(),
        ..LookCost::default()
    }
}

fn holds(limit: u64) -> String {
    let limit = grouped(limit);
    format!("holds up to {limit} messages for this session and returns them")
}

fn of_quorum(queue: &Queue, holds: &str) -> LookCost {
    let Some(limit) = queue.settings.delivery_limit.map(u64::from) else {
        return LookCost {
            line: format!("{holds}; counts one delivery, without a limit"),
            ..LookCost::default()
        };
    };
    let left = limit.saturating_sub(queue.highest_count());
    let mut cost = LookCost {
        line: format!("{holds}; counts one delivery of {limit}"),
        looks_left: Some(left),
        ..LookCost::default()
    };
    let fate = match queue.settings.dead_letter {
        Some(_) => "dead-letter it",
        None => "delete it",
    };
    match left {
        0 => warn(
            &mut cost,
            Verdict::Refuse,
            format!(
                "A message was delivered {limit} times, so one more look would {fate}. Raise the queue's delivery limit first."
            ),
        ),
        1..=3 => warn(
            &mut cost,
            Verdict::Warn,
            format!(
                "After {left} more looks the broker would {fate}. Export the messages with this look."
            ),
        ),
        _ => {}
    }
    cost
}

fn of_sqs(queue: &Queue, holds: &str, is_dead_letter_queue: bool) -> LookCost {
    let mut cost = LookCost {
        line: format!("{holds}; counts one receive each"),
        ..LookCost::default()
    };
    let Some(DeadLetterTo::Queue {
        queue: target,
        max_receive_count,
    }) = &queue.settings.dead_letter
    else {
        return cost;
    };
    let limit = u64::from(*max_receive_count);
    let left = limit.saturating_sub(queue.highest_count());
    cost.line = format!("{holds}; counts one receive of {limit}");
    cost.looks_left = Some(left);
    if left == 0 {
        warn(
            &mut cost,
            Verdict::Refuse,
            format!(
                "A message was received {limit} times, so one more look would move it to {target}. Look there instead."
            ),
        );
    } else if !is_dead_letter_queue {
        warn(
            &mut cost,
            Verdict::Ask,
            format!(
                "This is a source queue: each look takes one of {left} receives that its consumers still have."
            ),
        );
    }
    cost
}

fn warn_of_consumers(queue: &Queue, cost: &mut LookCost) {
    let consumers = queue.settings.consumers;
    if consumers > 0 {
        warn(
            cost,
            Verdict::Ask,
            format!("{consumers} consumers read this queue; they get nothing of what is held."),
        );
    }
}

fn warn(cost: &mut LookCost, verdict: Verdict, reason: impl Into<String>) {
    cost.verdict = cost.verdict.max(verdict);
    cost.reasons.push(reason.into());
}

/// A number with a comma after every third digit.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
