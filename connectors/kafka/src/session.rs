//! The session: each question goes to a blocking thread, as librdkafka's calls block.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use dlo_core::{
    Address, AddressKind, Atomicity, Delivery, Destination, Error, ErrorKind, Figure, Isolation,
    Look, LookCost, LookRequest, Outgoing, Position, Receipt, RedriveRequest, RedriveTask, Result,
    Routes, ServerInfo, Session, Target,
};
use tokio::task::spawn_blocking;

use crate::{
    broker::Broker,
    destination, fetch, groups,
    metadata::{self},
    plan, publish, transaction, truncate,
};

#[derive(Debug)]
pub(crate) struct KafkaSession {
    broker: Arc<Broker>,
    /// The stop flags of the looks that may be open.
    looks: Mutex<Vec<Weak<AtomicBool>>>,
}

impl KafkaSession {
    pub(crate) fn new(broker: Arc<Broker>) -> Self {
        Self {
            broker,
            looks: Mutex::default(),
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Broker) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let broker = self.broker.clone();
        spawn_blocking(move || question(&broker))
            .await
            .map_err(|_| {
                Error::new(
                    ErrorKind::Unexpected,
                    "ask the broker",
                    "the task ended early",
                )
            })?
    }

    fn new_look(&self) -> Arc<AtomicBool> {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.retain(|look| look.strong_count() > 0);
        looks.push(Arc::downgrade(&stopped));
        stopped
    }
}

/// The topic's name.
///
/// # Errors
/// `NotFound` for an address that is no topic.
fn topic_of(address: &Address, operation: &str) -> Result<String> {
    if address.kind == AddressKind::Topic {
        return Ok(address.name.clone());
    }
    Err(
        Error::new(ErrorKind::NotFound, operation, "Kafka has only topics")
            .with("address", address.name.clone())
            .advise("Give the name of a topic."),
    )
}

fn no_redrive() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "start the broker's own move",
        "Kafka has none",
    )
    .advise("Replay the records instead.")
}

#[async_trait]
impl Session for KafkaSession {
    fn server(&self) -> ServerInfo {
        self.broker.info.clone()
    }

    async fn destinations(&self) -> Result<Vec<Destination>> {
        self.ask(destination::all).await
    }

    async fn describe(&self, at: &Address) -> Result<Destination> {
        let topic = topic_of(at, "describe the topic")?;
        self.ask(move |broker| destination::one(broker, &topic))
            .await
    }

    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost> {
        let topic = topic_of(at, "tell what a look costs")?;
        let isolation = request.isolation;
        self.ask(move |broker| {
            let known = metadata::topic(broker, &topic, "tell what a look costs")?;
            let led = known.led();
            let ends = metadata::bounds(broker, &topic, &led, Isolation::ReadUncommitted)?;
            let stable = metadata::bounds(broker, &topic, &led, Isolation::ReadCommitted)?;
            let partitions: Vec<_> = ends
                .iter()
                .map(|(id, (log_start, high_watermark))| dlo_core::Partition {
                    id: *id,
                    log_start: *log_start,
                    high_watermark: *high_watermark,
                    last_stable: stable.get(id).map(|bounds| bounds.1),
                    leader: None,
                })
                .collect();
            Ok(destination::cost(&partitions, isolation))
        })
        .await
    }

    async fn look(&self, at: &Address, request: LookRequest) -> Result<Arc<dyn Look>> {
        let topic = topic_of(at, "look")?;
        let stopped = self.new_look();
        self.ask(move |broker| plan::open(broker, &topic, &request, stopped))
            .await
    }

    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        isolation: Isolation,
    ) -> Result<Vec<Option<Delivery>>> {
        let topic = topic_of(at, "read the records again")?;
        let places: Vec<_> = positions.iter().map(plan::place).collect();
        self.ask(move |broker| {
            let known = metadata::topic(broker, &topic, "read the records again")?;
            let led: BTreeSet<i32> = known.led().into_iter().collect();
            let wanted: Vec<_> = places.iter().flatten().copied().collect();
            let partitions: BTreeSet<i32> = wanted.iter().map(|place| place.0).collect();
            let partitions: Vec<i32> = partitions.intersection(&led).copied().collect();
            let bounds = metadata::bounds(broker, &topic, &partitions, isolation)?;
            let reader = broker.reader(isolation)?;
            let is_there = |place| plan::is_within(place, &bounds);
            let found = fetch::read(&reader, &topic, &wanted, is_there)?;
            broker.keep(isolation, reader);
            Ok(places
                .iter()
                .map(|place| found.get(place.as_ref()?).cloned())
                .collect())
        })
        .await
    }

    async fn routes(&self, to: &Target) -> Result<Routes> {
        let topic = topic_of(&to.address, "tell who would get the record")?;
        self.ask(move |broker| routes(broker, &topic)).await
    }

    async fn publish(&self, batch: Vec<Outgoing>, atomicity: Atomicity) -> Vec<Result<Receipt>> {
        let count = batch.len();
        let broker = self.broker.clone();
        let answers = spawn_blocking(move || match atomicity {
            Atomicity::Each => publish::publish(&broker, &batch),
            Atomicity::All => transaction::publish(&broker, &batch),
        });
        answers
            .await
            .unwrap_or_else(|_| vec![Err(publish::unknown("the task ended early")); count])
    }

    async fn redrive(&self, _: &RedriveRequest) -> Result<RedriveTask> {
        Err(no_redrive())
    }

    async fn redrives(&self, _: &Address) -> Result<Vec<RedriveTask>> {
        Err(no_redrive())
    }

    async fn cancel_redrive(&self, _: &RedriveTask) -> Result<()> {
        Err(no_redrive())
    }

    async fn purge(&self, at: &Address) -> Result<Figure<u64>> {
        let topic = topic_of(at, "delete the records")?;
        self.ask(move |broker| truncate::purge(broker, &topic))
            .await
    }

    async fn truncate(&self, at: &Address, before: &[(i32, i64)]) -> Result<()> {
        let topic = topic_of(at, "delete the records")?;
        let before = before.to_vec();
        self.ask(move |broker| truncate::truncate(broker, &topic, &before))
            .await
    }

    async fn close(&self) -> Result<()> {
        let looks = std::mem::take(&mut *self.looks.lock().unwrap_or_else(PoisonError::into_inner));
        for stopped in looks.iter().filter_map(Weak::upgrade) {
            stopped.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A record reaches every group that reads the topic; groups that have committed nothing cannot be known.
fn routes(broker: &Broker, topic: &str) -> Result<Routes> {
    let known = match metadata::topic(broker, topic, "tell who would get the record") {
        Ok(known) => known,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Routes::default()),
        Err(error) => return Err(error),
    };
    let ends: BTreeMap<i32, i64> = known.partitions.iter().map(|(id, _)| (*id, 0)).collect();
    let mut notes = Vec::new();
    let reaches = match groups::of_topic(broker, topic, &ends) {
        Ok(found) => {
            if !found.complete {
                notes.push("Not all consumer groups could be asked.".to_owned());
            }
            found.groups.into_iter().map(|group| group.name).collect()
        }
        Err(error) => {
            notes.push(format!(
                "The consumer groups are not known: {}.",
                error.what()
            ));
            Vec::new()
        }
    };
    notes.push("Consumers without committed offsets, and share groups, get it too.".to_owned());
    Ok(Routes {
        exists: true,
        reaches,
        complete: false,
        notes,
    })
}
