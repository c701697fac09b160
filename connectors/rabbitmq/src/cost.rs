//! What a look costs, computed from the queue's settings before anything is touched.
//!
//! Separate and pure, because the line on screen and the refusal must come from the same place. The rules were measured on
//! 3.10, 4.0 and 4.3; see <https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling>.

use dlo_core::{LookCost, Verdict};

use crate::{
    facts::{Limit, QueueFacts, QueueKind},
    version::{GiveBack, Version},
};

/// From this many returns left, a look warns.
const WARN_AT: u64 = 3;

/// The cost of looking at up to `limit` messages.
pub(crate) fn cost(facts: &QueueFacts, limit: u64) -> LookCost {
    let mut cost = match facts.kind {
        QueueKind::Stream => LookCost {
            line: "reads at an offset; costs nothing".to_owned(),
            ..LookCost::default()
        },
        QueueKind::Classic => LookCost {
            line: format!(
                "{}; marks them redelivered and keeps their order",
                holds(facts, limit)
            ),
            ..LookCost::default()
        },
        QueueKind::Quorum | QueueKind::Unknown => quorum(facts, limit),
    };
    if facts.kind != QueueKind::Stream {
        add_consumers(&mut cost, facts);
    }
    cost
}

fn quorum(facts: &QueueFacts, limit: u64) -> LookCost {
    let give_back = facts
        .version
        .map_or(GiveBack::CloseChannel, Version::give_back);
    let mut cost = match give_back {
        GiveBack::Nack => uncounted(facts, limit),
        GiveBack::CloseChannel => counted(facts, limit),
    };
    if let Limit::Assumed(limit) = facts.limit {
        raise(
            &mut cost,
            Verdict::Warn,
            format!(
                "The queue's type and delivery limit are not known without the management API; a limit of {limit} is assumed."
            ),
        );
    }
    cost
}

/// 4.3 and later: giving back by nack is free, but a lost connection counts.
fn uncounted(facts: &QueueFacts, limit: u64) -> LookCost {
    let held = holds(facts, limit);
    let Some(delivery_limit) = facts.limit.value() else {
        return LookCost {
            line: format!("{held}; counts no delivery, and the queue has no delivery limit"),
            ..LookCost::default()
        };
    };
    let mut cost = LookCost {
        line: format!(
            "{held}; counts no delivery unless the connection is lost (limit {delivery_limit})"
        ),
        ..LookCost::default()
    };
    let deadly = "Messages that died of a delivery limit elsewhere would be destroyed by giving them back; each is saved, put back as a copy at the end of the queue, and only then removed. They are taken one at a time; if this program is killed just then, the broker destroys the message on the wire: at most 1, or up to 256 where such messages come after others.";
    let sources = if facts.known_deadly_source() {
        cost.line += "; messages at their limit are saved and moved to the end of the queue";
        ""
    } else if facts.sources_known {
        return cost;
    } else {
        "Where the messages come from is not known. "
    };
    match (facts.can_rescue, facts.known_deadly_source()) {
        (true, _) => raise(&mut cost, Verdict::Warn, format!("{sources}{deadly}")),
        (false, true) => raise(&mut cost, Verdict::Refuse, no_rescue(facts)),
        (false, false) => raise(
            &mut cost,
            Verdict::Ask,
            format!("{sources}{}", no_rescue(facts)),
        ),
    }
    cost
}

/// Why messages that died of a limit could not be saved, and what an administrator can do.
fn no_rescue(facts: &QueueFacts) -> String {
    format!(
        "Messages that died of a delivery limit elsewhere may be in it; giving them back would destroy them, and you may not publish the copies that would save them. Ask an administrator for the right to write to amq.default (rabbitmqctl set_permissions), or to lift the queue's limit: rabbitmqctl set_policy look '^{}$' '{{\"delivery-limit\":-1}}' --apply-to queues --priority 100 (not where the limit is a queue argument or an operator policy).",
        facts.name
    )
}

/// Before 4.3: every return counts, and past the limit the broker drops or dead-letters the message.
fn counted(facts: &QueueFacts, limit: u64) -> LookCost {
    let held = holds(facts, limit);
    let Some(delivery_limit) = facts.limit.value() else {
        return LookCost {
            line: format!("{held}; counts one delivery, and the queue has no delivery limit"),
            ..LookCost::default()
        };
    };
    let returns = facts.returns_seen.unwrap_or_default();
    let left = delivery_limit.saturating_sub(returns);
    let mut cost = LookCost {
        line: format!("{held}; counts one delivery of {delivery_limit}"),
        looks_left: Some(left),
        ..LookCost::default()
    };
    if returns > 0 {
        cost.line += &format!(" ({left} left)");
    }
    let fate = match facts.dead_letter_exchange() {
        Some(_) => "dead-letter",
        None => "destroy",
    };
    if left == 0 {
        raise(
            &mut cost,
            Verdict::Refuse,
            format!(
                "The messages have been returned {returns} times and the delivery limit is {delivery_limit}: another look would make the broker {fate} them. An administrator can raise the limit: rabbitmqctl set_policy look '^{}$' '{{\"delivery-limit\":{}}}' --apply-to queues --priority 100",
                facts.name,
                delivery_limit + 20
            ),
        );
    } else if left <= WARN_AT {
        raise(
            &mut cost,
            Verdict::Warn,
            format!("After {left} more returns the broker will {fate} the messages."),
        );
    }
    cost
}

fn add_consumers(cost: &mut LookCost, facts: &QueueFacts) {
    if facts.consumers == 0 {
        if facts.single_active_consumer() {
            raise(
                cost,
                Verdict::Warn,
                "The queue has a single active consumer: one that starts meanwhile waits until the look is closed.".to_owned(),
            );
        }
        return;
    }
    let consumers = facts.consumers;
    if facts.single_active_consumer() {
        raise(
            cost,
            Verdict::Refuse,
            format!(
                "The queue serves one active consumer and has {consumers}: a look would wait in line and see nothing. Stop the consumer first."
            ),
        );
        return;
    }
    let verdict = if facts.is_dead {
        Verdict::Warn
    } else {
        Verdict::Ask
    };
    raise(
        cost,
        verdict,
        format!(
            "The queue has {consumers} live consumer(s): what is held does not reach them until the look is closed, and what they take does not show."
        ),
    );
}

fn holds(facts: &QueueFacts, limit: u64) -> String {
    format!(
        "holds up to {} messages for this session and returns them",
        thousands(limit.min(facts.ready.max(1)))
    )
}

fn raise(cost: &mut LookCost, verdict: Verdict, reason: String) {
    cost.verdict = cost.verdict.max(verdict);
    cost.reasons.push(reason);
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(version: &str, limit: Limit) -> QueueFacts {
        QueueFacts {
            name: "q".to_owned(),
            kind: QueueKind::Quorum,
            version: Version::parse(version),
            ready: 10_000,
            consumers: 0,
            limit,
            info: None,
            sources_known: true,
            can_rescue: true,
            source_limits: Vec::new(),
            is_dead: true,
            returns_seen: None,
        }
    }

    #[test]
    fn before_four_three_the_budget_runs_out() {
        let check = |returns, verdict, left| {
            let facts = QueueFacts {
                returns_seen: Some(returns),
                ..facts("4.0.5", Limit::At(5))
            };
            let cost = cost(&facts, 100_000);
            assert_eq!(
                (cost.verdict, cost.looks_left),
                (verdict, Some(left)),
                "{cost:?}"
            );
        };
        check(0, Verdict::Fine, 5);
        check(2, Verdict::Warn, 3);
        check(4, Verdict::Warn, 1);
        check(5, Verdict::Refuse, 0);
        let cost = cost(&facts("4.0.5", Limit::At(20)), 100_000);
        assert_eq!(
            cost.line,
            "holds up to 10,000 messages for this session and returns them; counts one delivery of 20"
        );
    }

    #[test]
    fn on_four_three_a_source_with_the_same_limit_warns() {
        let check = |source: Option<u64>, limit, verdict| {
            let facts = QueueFacts {
                source_limits: vec![source],
                ..facts("4.3.6", limit)
            };
            assert_eq!(cost(&facts, 1).verdict, verdict, "{source:?} {limit:?}");
        };
        check(Some(20), Limit::At(20), Verdict::Warn);
        check(Some(25), Limit::At(20), Verdict::Warn);
        check(Some(3), Limit::At(20), Verdict::Fine);
        check(Some(20), Limit::Unlimited, Verdict::Fine);
        check(None, Limit::At(20), Verdict::Fine);
    }

    #[test]
    fn without_the_right_to_rescue_it_asks_or_refuses() {
        let check = |source_limits, sources_known, verdict| {
            let facts = QueueFacts {
                can_rescue: false,
                source_limits,
                sources_known,
                ..facts("4.3.6", Limit::At(20))
            };
            assert_eq!(cost(&facts, 1).verdict, verdict);
        };
        check(vec![Some(20)], true, Verdict::Refuse);
        check(vec![], false, Verdict::Ask);
        check(vec![Some(3)], true, Verdict::Fine);
    }

    #[test]
    fn live_consumers_are_asked_about_or_warned_of() {
        let work = QueueFacts {
            consumers: 2,
            is_dead: false,
            kind: QueueKind::Classic,
            ..facts("3.10", Limit::Unlimited)
        };
        assert_eq!(cost(&work, 1).verdict, Verdict::Ask);
        let dead = QueueFacts {
            is_dead: true,
            ..work
        };
        assert_eq!(cost(&dead, 1).verdict, Verdict::Warn);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            [1, 999, 1000, 1_234_567].map(thousands),
            ["1", "999", "1,000", "1,234,567"]
        );
    }
}
