//! Where a replayed message goes, with the evidence it was read from. Pure.

use dlo_core::{Address, AddressKind, Destination, Target};

use crate::{
    command::{ReplayPartition, Route},
    dead_letter::Death,
};

/// A target and where we know it from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub target: Target,
    pub evidence: String,
}

impl Resolved {
    fn new(address: Address, evidence: impl Into<String>) -> Self {
        Self {
            target: Target::new(address),
            evidence: evidence.into(),
        }
    }
}

/// The target of one message, or a sentence that says why there is none and what to do.
pub fn resolve(
    route: &Route,
    partition: ReplayPartition,
    death: Option<&Death>,
    from: &Destination,
) -> Result<Resolved, String> {
    let mut resolved = match route {
        Route::To(name) => named(name, from),
        Route::Queue => queue(death, from).ok_or_else(|| missing("queue"))?,
        Route::Exchange => exchange(death).ok_or_else(|| missing("exchange"))?,
        Route::Topic => topic(death, from).ok_or_else(|| missing("topic"))?,
        Route::Auto => automatic(death, from).ok_or_else(|| missing("queue, topic or exchange"))?,
    };
    if resolved.target.address == from.address {
        return Err(format!(
            "{} is the dead-letter destination itself; choose another target",
            from.address
        ));
    }
    let origin = death.and_then(|death| death.all().find_map(|death| death.origin.partition));
    resolved.target.partitioning = partition.resolve(origin);
    Ok(resolved)
}

/// What a target is called on the screen and in the journal.
pub fn words(target: &Target) -> String {
    match (&target.address.kind, &target.routing_key) {
        (AddressKind::Exchange, Some(key)) if target.address.name.is_empty() => {
            format!("default exchange, key {key}")
        }
        (AddressKind::Exchange, Some(key)) => {
            format!("exchange {}, key {key}", target.address.name)
        }
        (AddressKind::Exchange, None) => format!("exchange {}", target.address.name),
        _ => target.address.name.clone(),
    }
}

fn missing(what: &str) -> String {
    format!("nothing in it says which {what} it came from; choose a target with --to")
}

/// A topic where messages come from a log; else the failed queue alone, else the origin exchange.
fn automatic(death: Option<&Death>, from: &Destination) -> Option<Resolved> {
    if from.address.kind == AddressKind::Topic {
        return topic(death, from);
    }
    queue(death, from)
        .or_else(|| exchange(death))
        .or_else(|| topic(death, from))
}

fn queue(death: Option<&Death>, from: &Destination) -> Option<Resolved> {
    let told = death.and_then(|death| {
        // In retry loops over delay queues the queue whose consumer rejected it is the one that failed; the others only waited.
        let with_queue = || death.all().filter(|death| death.origin.queue.is_some());
        let rejected = with_queue().find(|death| death.reason.class.as_deref() == Some("rejected"));
        rejected.or_else(|| with_queue().next())
    });
    if let Some(death) = told
        && let Some(name) = &death.origin.queue
    {
        return Some(Resolved::new(
            Address::queue(name),
            evidence(death, "origin.queue"),
        ));
    }
    only_source(from, AddressKind::Queue)
}

fn topic(death: Option<&Death>, from: &Destination) -> Option<Resolved> {
    let told = death.and_then(|death| death.all().find(|death| death.origin.topic.is_some()));
    if let Some(death) = told
        && let Some(name) = &death.origin.topic
    {
        return Some(Resolved::new(
            Address::topic(name),
            evidence(death, "origin.topic"),
        ));
    }
    only_source(from, AddressKind::Topic)
}

fn exchange(death: Option<&Death>) -> Option<Resolved> {
    let death = death?.all().find(|death| death.origin.exchange.is_some())?;
    let name = death.origin.exchange.clone()?;
    let key = death.origin.routing_keys.first().cloned();
    let mut resolved = Resolved::new(Address::exchange(name), evidence(death, "origin.exchange"));
    resolved.target.routing_key = Some(key.unwrap_or_default());
    Some(resolved)
}

/// The one destination whose dead letters come here, when there is just one.
fn only_source(from: &Destination, kind: AddressKind) -> Option<Resolved> {
    let [only] = from.sources.as_slice() else {
        return None;
    };
    let address = Address {
        kind,
        name: only.clone(),
    };
    Some(Resolved::new(
        address,
        format!("the only source of {}", from.address),
    ))
}

fn evidence(death: &Death, field: &str) -> String {
    death
        .from
        .get(field)
        .cloned()
        .unwrap_or_else(|| death.dialect.to_string())
}

/// A target as a person writes it: `exchange:NAME/KEY`, `queue:NAME`, `topic:NAME`, or a plain name of the given kind.
pub fn named_target(text: &str, plain: AddressKind) -> Target {
    match text.split_once(':') {
        Some(("queue", name)) => Target::new(Address::queue(name)),
        Some(("topic", name)) => Target::new(Address::topic(name)),
        Some(("exchange", rest)) => {
            let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
            Target {
                routing_key: Some(key.to_owned()),
                ..Target::new(Address::exchange(name))
            }
        }
        _ => Target::new(Address {
            kind: plain,
            name: text.to_owned(),
        }),
    }
}

fn named(text: &str, from: &Destination) -> Resolved {
    let kind = if from.address.kind == AddressKind::Topic {
        AddressKind::Topic
    } else {
        AddressKind::Queue
    };
    Resolved {
        target: named_target(text, kind),
        evidence: "chosen by the operator".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::{Confidence, Origin, Reason};

    fn death(class: &str, queue: &str) -> Death {
        let mut death = Death::new("RabbitMQ", Confidence::Sure);
        death.reason = Reason {
            class: Some(class.to_owned()),
            ..Reason::default()
        };
        death.origin = Origin {
            queue: Some(queue.to_owned()),
            exchange: Some("shop".to_owned()),
            routing_keys: vec!["order.new".to_owned()],
            ..Origin::default()
        };
        death
            .from
            .insert("origin.queue".to_owned(), "x-death[0].queue".to_owned());
        death
    }

    fn dlq() -> Destination {
        Destination::new(Address::queue("orders.dlq"), "quorum queue")
    }

    fn check(route: Route, death: Option<&Death>, expected: Result<&str, &str>) {
        let resolved = resolve(&route, ReplayPartition::ByKey, death, &dlq());
        let shown = resolved
            .as_ref()
            .map(|resolved| words(&resolved.target))
            .map_err(Clone::clone);
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected),
            (Err(shown), Err(expected)) => assert!(shown.contains(expected), "{shown}"),
            (shown, expected) => panic!("{shown:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn the_failed_queue_comes_first_and_the_exchange_on_request() {
        let death = death("rejected", "orders");
        check(Route::Auto, Some(&death), Ok("orders"));
        check(
            Route::Exchange,
            Some(&death),
            Ok("exchange shop, key order.new"),
        );
        check(
            Route::To("exchange:shop/a.b".to_owned()),
            Some(&death),
            Ok("exchange shop, key a.b"),
        );
    }

    #[test]
    fn in_a_retry_loop_the_queue_that_rejected_is_the_one_that_failed() {
        let mut newest = death("expired", "orders.wait");
        newest.earlier = vec![death("rejected", "orders")];
        check(Route::Auto, Some(&newest), Ok("orders"));
    }

    #[test]
    fn without_evidence_nothing_is_guessed() {
        check(Route::Auto, None, Err("choose a target"));
        let mut from = dlq();
        from.sources = vec!["orders".to_owned()];
        let resolved = resolve(&Route::Auto, ReplayPartition::ByKey, None, &from);
        assert_eq!(
            resolved.map(|resolved| resolved.evidence),
            Ok("the only source of orders.dlq".to_owned())
        );
        from.sources.push("pay".to_owned());
        assert!(resolve(&Route::Auto, ReplayPartition::ByKey, None, &from).is_err());
    }

    #[test]
    fn a_replay_into_itself_is_refused() {
        check(Route::To("orders.dlq".to_owned()), None, Err("itself"));
    }
}
