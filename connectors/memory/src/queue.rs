//! A queue: messages in order, those that are held, and the end of each hold. What happens to a message that leaves it
//! (dead-lettering, dropping) is decided in `state`, which knows the other queues.

use std::collections::{BTreeMap, BTreeSet};

use dlo_core::{Message, Millis, Value};

use crate::{QueueKind, QueueSettings, clock::millis};

/// A message in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its place in the order of the broker; a message that is given back keeps it.
    pub place: u64,
    /// SQS `MessageId`.
    pub id: String,
    pub message: Message,
    pub exchange: String,
    pub routing_key: String,
    pub sent: Millis,
    /// Returns (quorum) or receives (SQS) so far.
    pub count: u64,
    pub redelivered: bool,
    pub first_received: Option<Millis>,
    pub expires: Option<Millis>,
    /// The SQS queue that it was dead-lettered from.
    pub source: Option<String>,
    /// Facts of a loaded capture, which stand for what this broker would say itself.
    pub facts: BTreeMap<String, Value>,
}

impl Stored {
    /// The message group; without one a message forms a group of its own.
    pub fn group(&self) -> &str {
        let group = self.message.properties.get("MessageGroupId");
        group.and_then(Value::as_text).unwrap_or(&self.id)
    }
}

/// Who holds a message: a look of a session, or an ordinary client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub session: u64,
    pub look: u64,
}

impl Owner {
    /// An ordinary consumer, which is no session of ours.
    pub const CLIENT: Self = Self {
        session: 0,
        look: 0,
    };
}

#[derive(Debug)]
pub(crate) struct Held {
    pub stored: Stored,
    pub until: Millis,
    pub owner: Owner,
}

/// SQS gives at most ten messages of a group in one receive, and no more while one of them is in flight.
const GROUP_IN_FLIGHT: usize = 10;

#[derive(Debug)]
pub(crate) struct Queue {
    pub name: String,
    pub settings: QueueSettings,
    ready: BTreeMap<u64, Stored>,
    held: BTreeMap<u64, Held>,
    leases: BTreeSet<(Millis, u64)>,
    expiries: BTreeSet<(Millis, u64)>,
    /// FIFO: the messages of each group that are in flight, by who holds them.
    groups: BTreeMap<String, BTreeMap<Owner, usize>>,
    /// FIFO: the deduplication ids of the last five minutes.
    deduplication: BTreeMap<String, Millis>,
}

impl Queue {
    pub fn new(name: &str, settings: QueueSettings) -> Self {
        Self {
            name: name.to_owned(),
            settings,
            ready: BTreeMap::new(),
            held: BTreeMap::new(),
            leases: BTreeSet::new(),
            expiries: BTreeSet::new(),
            groups: BTreeMap::new(),
            deduplication: BTreeMap::new(),
        }
    }

    pub fn kind(&self) -> QueueKind {
        self.settings.kind
    }

    /// Puts a message at its place.
    pub fn put(&mut self, stored: Stored) {
        if let Some(expires) = stored.expires {
            self.expiries.insert((expires, stored.place));
        }
        self.ready.insert(stored.place, stored);
    }

    /// When a message that arrives now will expire: the sooner of the queue's time and its own `expiration`.
    pub fn expiry_of(&self, message: &Message, sent: Millis) -> Option<Millis> {
        let own = message.properties.get("expiration");
        let own = own
            .filter(|_| !self.kind().is_sqs())
            .and_then(Value::as_text)
            .and_then(|text| text.parse::<i64>().ok());
        let queue = self.settings.time_to_live.map(millis);
        own.into_iter()
            .chain(queue)
            .min()
            .map(|time| sent.plus(time))
    }

    /// Removes and gives the first ready message after `after` that this owner may have.
    pub fn first_for(&mut self, owner: Owner, after: Option<u64>) -> Option<Stored> {
        let from = after.map_or(0, |place| place.saturating_add(1));
        let place = if self.kind() == QueueKind::Fifo {
            self.ready
                .range(from..)
                .find(|(_, stored)| self.group_has_room(stored.group(), owner))
                .map(|(place, _)| *place)?
        } else {
            *self.ready.range(from..).next()?.0
        };
        self.remove_ready(place)
    }

    fn group_has_room(&self, group: &str, owner: Owner) -> bool {
        let Some(in_flight) = self.groups.get(group) else {
            return true;
        };
        let own = in_flight.get(&owner).copied().unwrap_or_default();
        let is_alone = in_flight.len() == usize::from(own > 0);
        let room = if owner == Owner::CLIENT {
            1
        } else {
            GROUP_IN_FLIGHT
        };
        is_alone && own < room
    }

    fn count_in_flight(&mut self, stored: &Stored, owner: Owner) {
        if self.kind() == QueueKind::Fifo {
            let group = self.groups.entry(stored.group().to_owned()).or_default();
            *group.entry(owner).or_default() += 1;
        }
    }

    fn end_flight(&mut self, held: &Held) {
        let Some(group) = self.groups.get_mut(held.stored.group()) else {
            return;
        };
        if let Some(count) = group.get_mut(&held.owner) {
            *count = count.saturating_sub(1);
        }
        group.retain(|_, count| *count > 0);
        if group.is_empty() {
            self.groups.remove(held.stored.group());
        }
    }

    /// Groups with messages that cannot be had at the moment because others of them are in flight.
    pub fn stalled_groups(&self) -> Vec<String> {
        if self.kind() != QueueKind::Fifo {
            return Vec::new();
        }
        let waiting: BTreeSet<_> = self.ready.values().map(Stored::group).collect();
        let in_flight = self.groups.keys();
        in_flight
            .filter(|group| waiting.contains(group.as_str()))
            .cloned()
            .collect()
    }

    pub fn hold(&mut self, token: u64, held: Held) {
        self.leases.insert((held.until, token));
        self.count_in_flight(&held.stored, held.owner);
        self.held.insert(token, held);
    }

    /// Takes a held message out, if that owner still holds it.
    pub fn take_held(&mut self, token: u64, owner: Owner) -> Option<Stored> {
        let held = self.held.get(&token).filter(|held| held.owner == owner)?;
        self.leases.remove(&(held.until, token));
        self.release(token)
    }

    /// Moves the end of all holds of that owner, to no more than `longest` after a message's first receive.
    pub fn extend(&mut self, owner: Owner, until: Millis, longest: i64) {
        for (token, held) in &mut self.held {
            if held.owner != owner {
                continue;
            }
            let end = held.stored.first_received.map(|at| at.plus(longest));
            let end = end.map_or(until, |end| end.min(until));
            self.leases.remove(&(held.until, *token));
            held.until = end;
            self.leases.insert((end, *token));
        }
    }

    /// What that owner holds: the tokens with the end of each, in the queue's order.
    pub fn held_by(&self, owner: Owner) -> Vec<(u64, Millis)> {
        let mut held: Vec<_> = self
            .held
            .iter()
            .filter(|(_, held)| held.owner == owner)
            .map(|(token, held)| (held.stored.place, *token, held.until))
            .collect();
        held.sort_unstable();
        held.into_iter()
            .map(|(_, token, until)| (token, until))
            .collect()
    }

    /// The holds of all looks of a session.
    pub fn held_by_session(&self, session: u64) -> Vec<(u64, Owner)> {
        self.held
            .iter()
            .filter(|(_, held)| held.owner.session == session)
            .map(|(token, held)| (*token, held.owner))
            .collect()
    }

    /// Holds that have run out.
    pub fn run_out(&mut self, now: Millis) -> Vec<Stored> {
        let mut out = Vec::new();
        while let Some((_, token)) = self.leases.first().copied().filter(|(end, _)| *end <= now) {
            self.leases.pop_first();
            out.extend(self.release(token));
        }
        out
    }

    fn release(&mut self, token: u64) -> Option<Stored> {
        let held = self.held.remove(&token)?;
        self.end_flight(&held);
        Some(held.stored)
    }

    /// Ready messages whose time to live has ended. A held message expires when it comes back.
    pub fn expired(&mut self, now: Millis) -> Vec<Stored> {
        let mut out = Vec::new();
        while let Some((_, place)) = self
            .expiries
            .first()
            .copied()
            .filter(|(end, _)| *end <= now)
        {
            self.expiries.pop_first();
            out.extend(self.ready.remove(&place));
        }
        out
    }

    /// The oldest ready message, when there are more than the queue may have.
    pub fn overflow(&mut self) -> Option<Stored> {
        let most = self.settings.max_length?;
        let first = *self.ready.first_key_value()?.0;
        (self.ready.len() > most)
            .then(|| self.remove_ready(first))
            .flatten()
    }

    fn remove_ready(&mut self, place: u64) -> Option<Stored> {
        let stored = self.ready.remove(&place)?;
        if let Some(expires) = stored.expires {
            self.expiries.remove(&(expires, place));
        }
        Some(stored)
    }

    /// The highest count of all messages, ready or held.
    pub fn highest_count(&self) -> u64 {
        let held = self.held.values().map(|held| &held.stored);
        let all = self.ready.values().chain(held);
        all.map(|stored| stored.count).max().unwrap_or_default()
    }

    pub fn ready(&self) -> impl Iterator<Item = &Stored> {
        self.ready.values()
    }

    /// Ready and held messages in order.
    pub fn content(&self) -> Vec<&Stored> {
        let held = self.held.values().map(|held| &held.stored);
        let mut all: Vec<_> = self.ready.values().chain(held).collect();
        all.sort_by_key(|stored| stored.place);
        all
    }

    pub fn get_held(&self, token: u64) -> Option<&Held> {
        self.held.get(&token)
    }

    /// Changes a message while an ordinary client holds it, as a client library does before it rejects.
    pub fn change_held(&mut self, token: u64, change: impl FnOnce(&mut Message)) {
        if let Some(held) = self.held.get_mut(&token) {
            change(&mut held.stored.message);
        }
    }

    /// Changes the newest message, as if it had a history.
    pub fn mark_last(&mut self, change: impl FnOnce(&mut Stored)) {
        if let Some(mut last) = self.ready.last_entry() {
            change(last.get_mut());
        }
    }

    pub fn ready_count(&self) -> u64 {
        self.ready.len() as u64
    }

    pub fn held_count(&self) -> u64 {
        self.held.len() as u64
    }

    /// Removes all ready messages and says how many there were.
    pub fn purge(&mut self) -> u64 {
        let count = self.ready_count();
        self.ready.clear();
        self.expiries.clear();
        count
    }

    /// The next moment at which something happens here by itself.
    pub fn next_event(&self) -> Option<Millis> {
        let lease = self.leases.first().map(|(end, _)| *end);
        let expiry = self.expiries.first().map(|(end, _)| *end);
        lease.into_iter().chain(expiry).min()
    }

    /// Whether a message with that deduplication id was sent in the last five minutes; remembers it if not.
    pub fn is_duplicate(&mut self, id: &str, now: Millis) -> bool {
        const WINDOW: i64 = 5 * 60_000;
        self.deduplication
            .retain(|_, sent| now.since(*sent) < WINDOW);
        if self.deduplication.contains_key(id) {
            return true;
        }
        self.deduplication.insert(id.to_owned(), now);
        false
    }
}
