//! Which queues hold dead letters, whose, and by what evidence.
//!
//! Separate and pure but for [`DeadLetterMap::ask`]: it joins the dead-letter settings of all queues (arguments and policies)
//! with the bindings of the exchanges they name. See <https://www.rabbitmq.com/docs/dlx>.

use std::collections::BTreeMap;

use dlo_core::{DeadLetters, Evidence, Result, name_looks_dead};

use crate::{
    facts::{QueueKind, kind_of, limit_of},
    management::{Api, QueueInfo},
    routing::Topology,
    version::Version,
};

/// The dead-letter links of a virtual host at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadLetterMap {
    pub queues: BTreeMap<String, QueueInfo>,
    links: Vec<Link>,
}

/// One queue's dead letters go to another queue.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    source: String,
    target: String,
    evidence: String,
}

impl DeadLetterMap {
    /// Asks the management API for all queues and for the bindings of every dead-letter exchange.
    pub async fn ask(api: &Api, vhost: &str) -> Result<Self> {
        let queues = api.queues(vhost).await?;
        let exchanges: Vec<String> = queues.iter().filter_map(exchange_of).collect();
        let topology = Topology::ask(api, vhost, exchanges.iter().map(String::as_str)).await?;
        Ok(Self::new(queues, &topology))
    }

    fn new(queues: Vec<QueueInfo>, topology: &Topology) -> Self {
        let queues: BTreeMap<String, QueueInfo> = queues
            .into_iter()
            .map(|queue| (queue.name.clone(), queue))
            .collect();
        let mut links: Vec<Link> = queues
            .values()
            .flat_map(|queue| links_of(queue, topology))
            .collect();
        let waiting_rooms: Vec<bool> = links
            .iter()
            .map(|link| is_waiting_room(link, &links, &queues))
            .collect();
        let mut keep = waiting_rooms.into_iter().map(|waiting| !waiting);
        links.retain(|_| keep.next().unwrap_or(true));
        Self { queues, links }
    }

    /// Whether the queue holds dead letters: by configuration first, by its name as a hint.
    pub fn evidence(&self, queue: &str) -> DeadLetters {
        match self.links.iter().find(|link| link.target == queue) {
            Some(link) => DeadLetters::Yes(Evidence::Configuration(link.evidence.clone())),
            None => by_name(queue),
        }
    }

    /// The queues whose dead letters come here.
    pub fn sources(&self, queue: &str) -> Vec<String> {
        let sources = self.links.iter().filter(|link| link.target == queue);
        sources.map(|link| link.source.clone()).collect()
    }

    /// The delivery limits of the quorum queues among the sources.
    pub fn source_limits(&self, queue: &str, version: Option<Version>) -> Vec<Option<u64>> {
        self.sources(queue)
            .iter()
            .filter_map(|source| self.queues.get(source))
            .filter(|source| kind_of(Some(source)) == QueueKind::Quorum)
            .map(|source| limit_of(QueueKind::Quorum, Some(source), version).value())
            .collect()
    }

    /// Where the queue's own dead letters go, in words.
    pub fn target(&self, queue: &str) -> Option<String> {
        let targets: Vec<&str> = self
            .links
            .iter()
            .filter(|link| link.source == queue)
            .map(|link| link.target.as_str())
            .collect();
        (!targets.is_empty()).then(|| targets.join(", "))
    }
}

/// The hint of a name, where nothing else is known.
pub(crate) fn by_name(queue: &str) -> DeadLetters {
    if name_looks_dead(queue) {
        DeadLetters::Yes(Evidence::Name)
    } else {
        DeadLetters::No
    }
}

fn exchange_of(queue: &QueueInfo) -> Option<String> {
    queue.text_setting("dead-letter-exchange")
}

fn links_of(queue: &QueueInfo, topology: &Topology) -> Vec<Link> {
    let Some(exchange) = exchange_of(queue) else {
        return Vec::new();
    };
    let key = queue.text_setting("dead-letter-routing-key");
    let evidence = format!("x-dead-letter-exchange of {}", queue.name);
    let targets = if exchange.is_empty() {
        // The default exchange sends to the queue that the key names; without a key each message keeps its own, and a message
        // that came through the default exchange would return to this very queue.
        key.into_iter().collect()
    } else {
        topology.reach(&exchange, key.as_deref()).queues
    };
    targets
        .into_iter()
        .filter(|target| *target != queue.name)
        .map(|target| Link {
            source: queue.name.clone(),
            target,
            evidence: evidence.clone(),
        })
        .collect()
}

/// A queue whose messages wait for their time to run out and then go back to work: its target holds work, not dead letters.
/// It is known by its message TTL and by being itself the dead-letter target of that work queue.
fn is_waiting_room(link: &Link, links: &[Link], queues: &BTreeMap<String, QueueInfo>) -> bool {
    let has_ttl = queues
        .get(&link.source)
        .is_some_and(|source| source.setting("message-ttl").is_some());
    has_ttl
        && links
            .iter()
            .any(|back| back.source == link.target && back.target == link.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, arguments: serde_json::Value) -> QueueInfo {
        QueueInfo::read(
            &serde_json::json!({"name": name, "type": "quorum", "arguments": arguments}),
        )
    }

    fn map(queues: Vec<QueueInfo>) -> DeadLetterMap {
        DeadLetterMap::new(queues, &Topology::default())
    }

    #[test]
    fn the_default_exchange_and_a_key_name_the_queue() {
        let map = map(vec![
            queue(
                "orders",
                serde_json::json!({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed", "x-delivery-limit": 3}),
            ),
            queue("failed", serde_json::json!({})),
        ]);
        assert_eq!(map.sources("failed"), ["orders"]);
        assert_eq!(map.target("orders").as_deref(), Some("failed"));
        assert_eq!(map.source_limits("failed", None), [Some(3)]);
        assert!(matches!(
            map.evidence("failed"),
            DeadLetters::Yes(Evidence::Configuration(_))
        ));
        assert_eq!(map.evidence("orders"), DeadLetters::No);
    }

    #[test]
    fn a_retry_loop_makes_no_dead_letter_queue_of_the_work_queue() {
        let map = map(vec![
            queue(
                "work",
                serde_json::json!({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"}),
            ),
            queue(
                "wait",
                serde_json::json!({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work", "x-message-ttl": 1000}),
            ),
        ]);
        assert_eq!(map.evidence("work"), DeadLetters::No);
        assert_eq!(map.sources("wait"), ["work"]);
    }

    #[test]
    fn a_name_is_a_hint() {
        assert_eq!(
            map(Vec::new()).evidence("a.dlq"),
            DeadLetters::Yes(Evidence::Name)
        );
    }
}
