//! What a session remembers of the queues it dealt with, because SQS itself cannot be asked: the highest receive count and
//! the oldest send time among the messages seen, and whose dead letters come to which queue.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use dlo_core::Millis;

use crate::queue::Queue;

/// How long a queue's settings may be used again for publishing.
const FRESH: Duration = Duration::from_secs(30);

/// A queue whose dead letters go to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub name: String,
    pub arn: String,
    pub max_receives: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    queues: Mutex<HashMap<String, Remembered>>,
    urls: Mutex<HashMap<String, String>>,
    /// Handles of moves, by the source's ARN and the time of their start.
    moves: Mutex<HashMap<(String, i64), String>>,
}

#[derive(Debug, Default)]
struct Remembered {
    highest_receives: Option<u64>,
    oldest_sent: Option<Millis>,
    sources: Option<Vec<Source>>,
    settings: Option<(Instant, Queue)>,
}

impl Memory {
    /// A message was received.
    pub fn saw(&self, queue: &str, receives: Option<u64>, sent: Option<Millis>) {
        let mut queues = lock(&self.queues);
        let remembered = queues.entry(queue.to_owned()).or_default();
        remembered.highest_receives = remembered.highest_receives.max(receives);
        remembered.oldest_sent = match (remembered.oldest_sent, sent) {
            (Some(known), Some(sent)) => Some(known.min(sent)),
            (known, sent) => known.or(sent),
        };
    }

    /// A look came to the end of the queue: what earlier looks saw and this one did not is gone.
    pub fn saw_all(&self, queue: &str, highest: Option<u64>, oldest: Option<Millis>) {
        let mut queues = lock(&self.queues);
        let remembered = queues.entry(queue.to_owned()).or_default();
        remembered.highest_receives = highest;
        remembered.oldest_sent = oldest;
    }

    pub fn highest_receives(&self, queue: &str) -> Option<u64> {
        lock(&self.queues).get(queue)?.highest_receives
    }

    pub fn oldest_sent(&self, queue: &str) -> Option<Millis> {
        lock(&self.queues).get(queue)?.oldest_sent
    }

    /// Sources are only ever added to: servers list them incompletely.
    pub fn learn_sources(&self, queue: &str, sources: Vec<Source>) {
        let mut queues = lock(&self.queues);
        let known = queues
            .entry(queue.to_owned())
            .or_default()
            .sources
            .get_or_insert_default();
        for source in sources {
            known.retain(|known| known.arn != source.arn);
            known.push(source);
        }
        known.sort_by(|a, b| a.name.cmp(&b.name));
    }

    pub fn forget_sources(&self) {
        for remembered in lock(&self.queues).values_mut() {
            remembered.sources = None;
        }
    }

    /// `None` when nobody has asked yet.
    pub fn sources(&self, queue: &str) -> Option<Vec<Source>> {
        lock(&self.queues).get(queue)?.sources.clone()
    }

    pub fn limits(&self, queue: &str) -> BTreeMap<String, u64> {
        let sources = self.sources(queue).unwrap_or_default();
        sources
            .into_iter()
            .map(|source| (source.arn, source.max_receives))
            .collect()
    }

    pub fn learn_settings(&self, queue: &Queue) {
        let settings = Some((Instant::now(), queue.clone()));
        lock(&self.queues)
            .entry(queue.name.clone())
            .or_default()
            .settings = settings;
        self.learn_url(&queue.name, &queue.url);
    }

    /// The queue's settings, when they were read a moment ago.
    pub fn fresh_settings(&self, queue: &str) -> Option<Queue> {
        let queues = lock(&self.queues);
        let (read, queue) = queues.get(queue)?.settings.as_ref()?;
        (read.elapsed() < FRESH).then(|| queue.clone())
    }

    pub fn learn_url(&self, name: &str, url: &str) {
        lock(&self.urls).insert(name.to_owned(), url.to_owned());
    }

    pub fn forget_url(&self, name: &str) {
        lock(&self.urls).remove(name);
        if let Some(remembered) = lock(&self.queues).get_mut(name) {
            remembered.settings = None;
        }
    }

    pub fn learn_move(&self, from: &str, started: i64, handle: &str) {
        lock(&self.moves).insert((from.to_owned(), started), handle.to_owned());
    }

    pub fn moved(&self, from: &str, started: i64) -> Option<String> {
        lock(&self.moves).get(&(from.to_owned(), started)).cloned()
    }

    pub fn url(&self, name: &str) -> Option<String> {
        lock(&self.urls).get(name).cloned()
    }
}

/// The lock also after a panic elsewhere: what is in it are single values, each whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_are_kept_until_a_whole_look_says_otherwise() {
        let memory = Memory::default();
        memory.saw("q", Some(2), Some(Millis(20)));
        memory.saw("q", Some(1), Some(Millis(10)));
        memory.saw("q", None, None);
        assert_eq!(
            (memory.highest_receives("q"), memory.oldest_sent("q")),
            (Some(2), Some(Millis(10)))
        );
        memory.saw_all("q", None, None);
        assert_eq!(
            (memory.highest_receives("q"), memory.oldest_sent("q")),
            (None, None)
        );
    }

    #[test]
    fn a_source_is_known_once_with_its_latest_limit() {
        let memory = Memory::default();
        let source = |max_receives| Source {
            name: "s".to_owned(),
            arn: "arn".to_owned(),
            max_receives,
        };
        memory.learn_sources("q", vec![source(3)]);
        memory.learn_sources("q", vec![source(5)]);
        assert_eq!(memory.sources("q"), Some(vec![source(5)]));
        assert_eq!(memory.limits("q"), BTreeMap::from([("arn".to_owned(), 5)]));
    }
}
