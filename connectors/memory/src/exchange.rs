//! Exchanges and their bindings, as AMQP 0-9-1 defines them (<https://www.rabbitmq.com/tutorials/amqp-concepts>).

use crate::ExchangeKind;

#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub kind: ExchangeKind,
    bindings: Vec<(String, String)>,
}

impl Exchange {
    pub fn new(kind: ExchangeKind) -> Self {
        Self {
            kind,
            bindings: Vec::new(),
        }
    }

    pub fn bind(&mut self, queue: &str, key: &str) {
        let binding = (queue.to_owned(), key.to_owned());
        if !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
    }

    pub fn unbind(&mut self, queue: &str) {
        self.bindings.retain(|(bound, _)| bound != queue);
    }

    /// The queues that are bound, with the key of each binding.
    pub fn bindings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.bindings
            .iter()
            .map(|(queue, key)| (queue.as_str(), key.as_str()))
    }

    /// The queues that get a message with that key, each once.
    pub fn route(&self, key: &str) -> Vec<String> {
        let mut queues: Vec<String> = Vec::new();
        for (queue, bound) in &self.bindings {
            if self.matches(bound, key) && !queues.contains(queue) {
                queues.push(queue.clone());
            }
        }
        queues
    }

    fn matches(&self, bound: &str, key: &str) -> bool {
        match self.kind {
            ExchangeKind::Fanout => true,
            ExchangeKind::Direct => bound == key,
            ExchangeKind::Topic => {
                let (bound, key): (Vec<_>, Vec<_>) =
                    (bound.split('.').collect(), key.split('.').collect());
                pattern_matches(&bound, &key)
            }
        }
    }
}

/// `*` stands for one word, `#` for any number of words, none included.
fn pattern_matches(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => {
            pattern_matches(rest, words)
                || words
                    .split_first()
                    .is_some_and(|(_, words)| pattern_matches(pattern, words))
        }
        (Some((&head, rest)), Some((&word, words))) => {
            (head == "*" || head == word) && pattern_matches(rest, words)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, key: &str, expected: bool) {
        let mut exchange = Exchange::new(ExchangeKind::Topic);
        exchange.bind("q", pattern);
        assert_eq!(!exchange.route(key).is_empty(), expected, "{pattern} {key}");
    }

    #[test]
    fn topic_patterns_match_as_amqp_says() {
        check("orders.*", "orders.created", true);
        check("orders.*", "orders", false);
        check("orders.#", "orders", true);
        check("orders.#", "orders.eu.created", true);
        check("#.created", "orders.eu.created", true);
        check("*.eu.#", "orders.us.created", false);
        check("#", "", true);
    }

    #[test]
    fn a_queue_bound_twice_gets_one_copy() {
        let mut exchange = Exchange::new(ExchangeKind::Topic);
        exchange.bind("q", "orders.*");
        exchange.bind("q", "#");
        assert_eq!(exchange.route("orders.created"), ["q"]);
    }
}
