//! What a look holds: the newest receipt handle of each message, and until when it is good. Pure, without the network.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::time::Instant;

/// A message stays held for 12 hours at most, counted from its receive.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>
pub(crate) const MAX_HOLD: Duration = Duration::from_secs(12 * 3600);

/// One held message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub id: String,
    /// Of the latest receive; an older one no longer removes anything.
    pub receipt: String,
    pub received: Instant,
    /// Reckoned from before the request was sent, so that SQS's own time is surely later.
    pub until: Instant,
    pub group: Option<String>,
}

/// All held messages of one look in the order of their receive.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    by_order: BTreeMap<u64, Held>,
    order_of: HashMap<String, u64>,
    next: u64,
}

/// Whether a received message was new to the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    First,
    /// SQS delivers at least once; the handle was renewed.
    Again,
}

impl Holding {
    pub fn insert(&mut self, held: Held) -> Seen {
        if let Some(order) = self.order_of.get(&held.id) {
            self.by_order.insert(*order, held);
            return Seen::Again;
        }
        self.order_of.insert(held.id.clone(), self.next);
        self.by_order.insert(self.next, held);
        self.next += 1;
        Seen::First
    }

    /// The message while its lock is good.
    pub fn good(&self, id: &str, now: Instant) -> Option<&Held> {
        let held = self.by_order.get(self.order_of.get(id)?)?;
        (held.until > now).then_some(held)
    }

    pub fn remove(&mut self, id: &str) {
        if let Some(order) = self.order_of.remove(id) {
            self.by_order.remove(&order);
        }
    }

    pub fn renew(&mut self, id: &str, until: Instant) {
        if let Some(held) = self
            .order_of
            .get(id)
            .and_then(|order| self.by_order.get_mut(order))
        {
            held.until = until;
        }
    }

    pub fn all(&self) -> Vec<Held> {
        self.by_order.values().cloned().collect()
    }

    /// Those that have less than `left` to go.
    pub fn due(&self, now: Instant, left: Duration) -> Vec<Held> {
        let due = |held: &&Held| held.until.saturating_duration_since(now) < left;
        self.by_order.values().filter(due).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.by_order.len()
    }

    /// The earliest time at which a lock runs out, and at which one cannot be extended any more.
    pub fn ends(&self) -> Option<(Instant, Instant)> {
        let until = self.by_order.values().map(|held| held.until).min()?;
        let received = self.by_order.values().map(|held| held.received).min()?;
        Some((until, received + MAX_HOLD))
    }

    /// How many messages of each group are held.
    pub fn groups(&self) -> BTreeMap<String, usize> {
        let mut groups = BTreeMap::new();
        for group in self.by_order.values().filter_map(|held| held.group.clone()) {
            *groups.entry(group).or_default() += 1;
        }
        groups
    }
}

/// The visibility timeout that lets a message be held for `hold` more from now, within the 12 hours of its receive.
/// `None` when these are over.
pub(crate) fn extension(held: &Held, hold: Duration, now: Instant) -> Option<Duration> {
    let left = (held.received + MAX_HOLD).checked_duration_since(now)?;
    let seconds = hold.min(left).as_secs();
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: &str, receipt: &str, now: Instant) -> Held {
        Held {
            id: id.to_owned(),
            receipt: receipt.to_owned(),
            received: now,
            until: now + Duration::from_secs(30),
            group: Some(id[..1].to_owned()),
        }
    }

    #[test]
    fn the_newest_handle_counts_and_the_order_stays() {
        let now = Instant::now();
        let mut holding = Holding::default();
        assert_eq!(holding.insert(held("a1", "r1", now)), Seen::First);
        assert_eq!(holding.insert(held("b1", "r2", now)), Seen::First);
        assert_eq!(holding.insert(held("a1", "r3", now)), Seen::Again);
        let all: Vec<_> = holding.all().into_iter().map(|held| held.receipt).collect();
        assert_eq!(all, ["r3", "r2"]);
        assert_eq!(holding.groups().len(), 2);
    }

    #[test]
    fn a_lock_that_ran_out_is_not_good() {
        let now = Instant::now();
        let mut holding = Holding::default();
        holding.insert(held("a1", "r1", now));
        assert!(holding.good("a1", now).is_some());
        assert!(holding.good("a1", now + Duration::from_secs(30)).is_none());
        holding.renew("a1", now + Duration::from_secs(60));
        assert!(holding.good("a1", now + Duration::from_secs(30)).is_some());
        holding.remove("a1");
        assert_eq!((holding.len(), holding.ends()), (0, None));
    }

    #[test]
    fn twelve_hours_is_the_end() {
        let now = Instant::now();
        let held = held("a1", "r1", now);
        let late = now + MAX_HOLD - Duration::from_secs(10);
        assert_eq!(
            extension(&held, Duration::from_secs(300), now),
            Some(Duration::from_secs(300))
        );
        assert_eq!(
            extension(&held, Duration::from_secs(300), late),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            extension(&held, Duration::from_secs(300), now + MAX_HOLD),
            None
        );
    }
}
