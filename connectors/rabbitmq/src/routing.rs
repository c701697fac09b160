//! Where an exchange sends a routing key, computed from its bindings.
//!
//! Separate and pure but for the asking, because both finding dead-letter queues and planning a replay need it. The rules
//! are AMQP's: <https://www.rabbitmq.com/docs/exchanges>.

use std::collections::{BTreeMap, BTreeSet};

use dlo_core::Result;

use crate::management::{Api, Binding};

/// Exchanges may be bound to exchanges, even in a circle; nobody builds more than a few levels.
const MOST_EXCHANGES: usize = 64;

/// The exchanges reachable from one, with their types and bindings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    exchanges: BTreeMap<String, (String, Vec<Binding>)>,
}

/// Which queues a message reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub queues: BTreeSet<String>,
    /// False when a headers exchange or a plug-in's decides, or when the routing key is not known.
    pub certain: bool,
}

impl Topology {
    /// Asks for everything that is reachable from these exchanges.
    pub async fn ask<'a>(
        api: &Api,
        vhost: &str,
        from: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let mut topology = Self::default();
        let mut open: Vec<String> = from.into_iter().map(str::to_owned).collect();
        while let Some(exchange) = open.pop() {
            if exchange.is_empty()
                || topology.exchanges.contains_key(&exchange)
                || topology.exchanges.len() >= MOST_EXCHANGES
            {
                continue;
            }
            // A dead-letter exchange that was never declared is a common mistake, and no reason to fail.
            let Ok(kind) = api.exchange_type(vhost, &exchange).await else {
                continue;
            };
            let bindings = api.bindings_from(vhost, &exchange).await?;
            open.extend(
                bindings
                    .iter()
                    .filter(|binding| !binding.to_queue)
                    .map(|binding| binding.destination.clone()),
            );
            topology.exchanges.insert(exchange, (kind, bindings));
        }
        Ok(topology)
    }

    /// The queues that get a message published to `exchange` with `key`; with `None` as the key, those that could.
    pub fn reach(&self, exchange: &str, key: Option<&str>) -> Reach {
        let mut reach = Reach {
            certain: true,
            ..Reach::default()
        };
        self.walk(exchange, key, &mut BTreeSet::new(), &mut reach);
        reach
    }

    pub fn knows(&self, exchange: &str) -> bool {
        self.exchanges.contains_key(exchange)
    }

    fn walk<'a>(
        &'a self,
        exchange: &'a str,
        key: Option<&str>,
        seen: &mut BTreeSet<&'a str>,
        reach: &mut Reach,
    ) {
        let Some((kind, bindings)) = self
            .exchanges
            .get(exchange)
            .filter(|_| seen.insert(exchange))
        else {
            return;
        };
        for binding in bindings {
            match matches(kind, &binding.routing_key, key) {
                Some(false) => continue,
                Some(true) => {}
                None => reach.certain = false,
            }
            if binding.to_queue {
                reach.queues.insert(binding.destination.clone());
            } else {
                self.walk(&binding.destination, key, seen, reach);
            }
        }
    }
}

/// Whether a binding takes the key; `None` when that cannot be told from here.
fn matches(kind: &str, binding: &str, key: Option<&str>) -> Option<bool> {
    match (kind, key) {
        ("fanout", _) => Some(true),
        ("direct", Some(key)) => Some(binding == key),
        ("topic", Some(key)) => {
            let (pattern, words): (Vec<_>, Vec<_>) =
                (binding.split('.').collect(), key.split('.').collect());
            Some(topic_matches(&pattern, &words))
        }
        _ => None,
    }
}

/// `*` is one word, `#` any number of them.
fn topic_matches(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => {
            topic_matches(rest, words)
                || words
                    .split_first()
                    .is_some_and(|(_, tail)| topic_matches(pattern, tail))
        }
        (Some((word, rest)), Some((first, tail))) => {
            (*word == "*" || word == first) && topic_matches(rest, tail)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(kind: &str, bindings: &[(&str, bool, &str)]) -> Topology {
        let bindings = bindings
            .iter()
            .map(|(destination, to_queue, key)| Binding {
                destination: (*destination).to_owned(),
                to_queue: *to_queue,
                routing_key: (*key).to_owned(),
            })
            .collect();
        Topology {
            exchanges: BTreeMap::from([("x".to_owned(), (kind.to_owned(), bindings))]),
        }
    }

    #[test]
    fn topic_patterns() {
        let check = |pattern: &str, key: &str, expected| {
            assert_eq!(
                matches("topic", pattern, Some(key)),
                Some(expected),
                "{pattern} {key}"
            );
        };
        check("a.*.c", "a.b.c", true);
        check("a.*.c", "a.c", false);
        check("#", "", true);
        check("a.#", "a", true);
        check("a.#", "a.b.c", true);
        check("#.c", "a.b.c", true);
        check("*", "a.b", false);
        check("a.#.c", "a.c", true);
    }

    #[test]
    fn a_circle_of_exchanges_ends_and_an_unknown_key_is_uncertain() {
        let topology = topology(
            "direct",
            &[("q", true, "k"), ("x", false, "k"), ("other", true, "z")],
        );
        let reach = topology.reach("x", Some("k"));
        assert_eq!(reach.queues, BTreeSet::from(["q".to_owned()]));
        assert!(reach.certain);
        let reach = topology.reach("x", None);
        assert!(reach.queues.len() == 2 && !reach.certain);
    }
}
