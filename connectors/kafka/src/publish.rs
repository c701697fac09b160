//! Publishing: all replicas, idempotent, one true answer per record.
//!
//! librdkafka knows of each failed record whether it surely was not stored or may have been; that word, not the error code,
//! decides between a failure and [`ErrorKind::OutcomeUnknown`].

use std::{
    collections::{BTreeMap, HashMap},
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use dlo_core::{AddressKind, Error, ErrorKind, Outgoing, Partitioning, Position, Receipt, Result};
use rdkafka::{
    ClientContext, Message, bindings as c,
    client::OAuthToken,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer},
    statistics::Statistics,
};

use crate::{
    broker::Broker,
    capability::{TopicConfig, is_internal},
    client::Voice,
    error::{cause, from_code, from_kafka},
    metadata, record,
};

const OPERATION: &str = "publish the record";
/// Bytes of a batch where the topic takes more.
const USUAL_BATCH: u64 = 1_000_000;
/// How long facts of a target are believed.
const FRESH: Duration = Duration::from_secs(30);
/// Longer than librdkafka's own `message.timeout.ms`, so that it has the word.
const PATIENCE: Duration = Duration::from_secs(45);

/// What is known of a target topic.
#[derive(Clone, Debug)]
pub(crate) struct TargetFacts {
    pub partitions: Vec<i32>,
    pub config: Option<TopicConfig>,
}

/// The producers of a session, and what is known of their targets.
#[derive(Default)]
pub(crate) struct Publishers {
    /// By the bytes of a batch: a batch larger than `max.message.bytes` of its topic would be refused as a whole.
    producers: Mutex<BTreeMap<u64, Arc<ThreadedProducer<Deliveries>>>>,
    targets: Mutex<HashMap<String, (Instant, Arc<TargetFacts>)>>,
}

/// Publishes records in order and answers for each, in the same order. Blocks until all are answered.
pub(crate) fn publish(broker: &Broker, batch: &[Outgoing]) -> Vec<Result<Receipt>> {
    let mut answers: Vec<Option<Result<Receipt>>> = Vec::new();
    let (sender, receiver) = mpsc::channel();
    for (index, outgoing) in batch.iter().enumerate() {
        let sent = check(broker, outgoing).and_then(|facts| {
            let producer = broker.publishers.producer(broker, &facts)?;
            let ticket = Ticket {
                index,
                answers: sender.clone(),
            };
            send(&*producer, outgoing, ticket)
                .inspect_err(|_| broker.publishers.forget_if_fatal(&producer))
        });
        answers.push(sent.err().map(Err));
    }
    drop(sender);
    let until = Instant::now() + PATIENCE;
    while answers.iter().any(Option::is_none) {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((index, answer)) = receiver.recv_timeout(left) else {
            break;
        };
        if let Some(place) = answers.get_mut(index) {
            *place = Some(answer);
        }
    }
    answers
        .into_iter()
        .map(|answer| answer.unwrap_or_else(|| Err(unknown("no answer came"))))
        .collect()
}

/// Refuses what the broker would refuse, and what it would do wrong, before anything is sent.
pub(crate) fn check(broker: &Broker, outgoing: &Outgoing) -> Result<Arc<TargetFacts>> {
    let (target, message) = (&outgoing.target, &outgoing.message);
    let name = &target.address.name;
    if target.address.kind != AddressKind::Topic {
        return Err(
            from_code(RDKafkaErrorCode::UnknownTopicOrPartition, OPERATION, "")
                .with("target", name.clone()),
        );
    }
    if is_internal(name) {
        return Err(Error::new(
            ErrorKind::Refused,
            OPERATION,
            "the brokers keep their own state in this topic",
        )
        .with("topic", name.clone())
        .advise("Choose another topic."));
    }
    let facts = broker.publishers.facts(broker, name)?;
    if let Partitioning::Exact(partition) = target.partitioning
        && !facts.partitions.contains(&partition)
    {
        return Err(Error::new(
            ErrorKind::NotFound,
            OPERATION,
            format!("the topic has no partition {partition}"),
        )
        .with("topic", name.clone())
        .advise("Publish by key, or choose one of its partitions."));
    }
    let Some(config) = &facts.config else {
        return Ok(facts);
    };
    let size = message.size() as u64;
    if let Some(most) = config.max_payload().filter(|most| size > *most) {
        let what = format!("it has {size} bytes, the topic takes {most}");
        return Err(Error::new(ErrorKind::TooLarge, OPERATION, what)
            .with("topic", name.clone())
            .advise("Raise max.message.bytes of the topic, or make the record smaller."));
    }
    if message.key.is_none() && config.compacts() {
        return Err(Error::new(
            ErrorKind::Rejected,
            OPERATION,
            "the topic is compacted and takes only records with a key",
        )
        .with("topic", name.clone())
        .advise("Give the record a key."));
    }
    Ok(facts)
}

impl Publishers {
    fn facts(&self, broker: &Broker, name: &str) -> Result<Arc<TargetFacts>> {
        let known = self
            .targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        if let Some((_, facts)) = known.filter(|(since, _)| since.elapsed() < FRESH) {
            return Ok(facts);
        }
        let topic = metadata::topic(broker, name, OPERATION)?;
        let facts = Arc::new(TargetFacts {
            partitions: topic.partitions.iter().map(|(id, _)| *id).collect(),
            config: metadata::configs(broker, &[name.to_owned()]).remove(name),
        });
        let entry = (Instant::now(), facts.clone());
        self.targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), entry);
        Ok(facts)
    }

    fn producer(
        &self,
        broker: &Broker,
        facts: &TargetFacts,
    ) -> Result<Arc<ThreadedProducer<Deliveries>>> {
        let bytes = batch_bytes(facts);
        let mut producers = self
            .producers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = producers.get(&bytes) {
            return Ok(producer.clone());
        }
        let producer: ThreadedProducer<Deliveries> = broker
            .settings
            .publishing(bytes)
            .create_with_context(Deliveries(broker.settings.voice()))
            .map_err(|error| from_kafka(&error, OPERATION))?;
        let producer = Arc::new(producer);
        producers.insert(bytes, producer.clone());
        Ok(producer)
    }

    /// An idempotent producer that met a fatal error never works again; the next batch gets a new one.
    fn forget_if_fatal(&self, producer: &Arc<ThreadedProducer<Deliveries>>) {
        if producer.client().fatal_error().is_some() {
            self.producers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|_, known| !Arc::ptr_eq(known, producer));
        }
    }
}

pub(crate) fn batch_bytes(facts: &TargetFacts) -> u64 {
    let most = facts.config.as_ref().and_then(|config| config.max_bytes);
    most.unwrap_or(USUAL_BATCH).clamp(1024, USUAL_BATCH)
}

/// Something records can be sent with.
pub(crate) trait Sends {
    fn send_record<'a>(&self, record: Record<'a>) -> Result<(), Box<(KafkaError, Record<'a>)>>;
    /// Serves answers, so that room comes free in a full queue.
    fn serve(&self);
    fn fatal(&self) -> Option<(RDKafkaErrorCode, String)>;
}

pub(crate) type Record<'a> = BaseRecord<'a, [u8], [u8], Box<Ticket>>;

impl Sends for ThreadedProducer<Deliveries> {
    fn send_record<'a>(&self, record: Record<'a>) -> Result<(), Box<(KafkaError, Record<'a>)>> {
        self.send(record).map_err(Box::new)
    }

    fn serve(&self) {
        std::thread::sleep(Duration::from_millis(2));
    }

    fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.client().fatal_error()
    }
}

/// Hands a record to the library; its answer comes through the ticket.
pub(crate) fn send(producer: &impl Sends, outgoing: &Outgoing, ticket: Ticket) -> Result<()> {
    let message = &outgoing.message;
    let headers = record::to_native(&message.headers).map_err(|name| {
        Error::new(
            ErrorKind::Rejected,
            OPERATION,
            format!("the header {name} is a table or a list, which Kafka does not have"),
        )
        .advise("Remove the header or make it text.")
    })?;
    let mut record: Record<'_> =
        BaseRecord::with_opaque_to(&outgoing.target.address.name, Box::new(ticket));
    if !message.headers.is_empty() {
        record = record.headers(headers);
    }
    if let Some(key) = &message.key {
        record = record.key(key);
    }
    if let Some(body) = &message.body {
        record = record.payload(body);
    }
    if let Some(time) = outgoing.time {
        record = record.timestamp(time.0);
    }
    if let Partitioning::Exact(partition) = outgoing.target.partitioning {
        record = record.partition(partition);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let (error, again) = match producer.send_record(record) {
            Ok(()) => return Ok(()),
            Err(refused) => *refused,
        };
        let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
        if !is_full || Instant::now() > until {
            return Err(not_sent(producer, &error));
        }
        record = again;
        producer.serve();
    }
}

fn not_sent(producer: &impl Sends, error: &KafkaError) -> Error {
    match producer.fatal() {
        Some((code, text)) => from_code(code, OPERATION, &text),
        None => from_kafka(error, OPERATION),
    }
}

/// Where the answer for one record goes.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub index: usize,
    pub answers: mpsc::Sender<(usize, Result<Receipt>)>,
}

/// The context of producers: what it hears, and the answers of the brokers.
#[derive(Debug)]
pub(crate) struct Deliveries(pub Voice);

impl ClientContext for Deliveries {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(error, reason);
    }

    fn stats(&self, _: Statistics) {}

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn StdError>> {
        self.0.generate_oauth_token(config)
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Ticket>) {
        let answer = match result {
            Ok(message) => Ok(Receipt {
                position: Some(Position::Offset {
                    partition: message.partition(),
                    offset: message.offset(),
                }),
                answer: format!("stored at {}:{}", message.partition(), message.offset()),
            }),
            Err((error, message)) => {
                // SAFETY: the record is alive during this call.
                let status = unsafe { c::rd_kafka_message_status(message.ptr()) };
                Err(self.failure(error, status))
            }
        };
        // Nobody waits any more when the patience of `publish` is over; the answer was "unknown" then.
        let _ = ticket.answers.send((ticket.index, answer));
    }
}

impl Deliveries {
    fn failure(&self, error: &KafkaError, status: c::rd_kafka_msg_status_t) -> Error {
        let heard = self.0.heard();
        if status != c::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_NOT_PERSISTED {
            let why = cause(&heard, OPERATION)
                .map_or_else(|| error.to_string(), |cause| cause.what().to_owned());
            return unknown(&why);
        }
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageTimedOut) => {
                cause(&heard, OPERATION).unwrap_or_else(|| {
                    Error::new(
                        ErrorKind::Unreachable,
                        OPERATION,
                        "no broker took it within 30 s; it was not stored",
                    )
                    .advise("Check the brokers; it can be published again.")
                })
            }
            Some(code) => from_code(code, OPERATION, ""),
            None => from_kafka(error, OPERATION),
        }
    }
}

/// The record was on its way when the answer failed to come.
pub(crate) fn unknown(why: &str) -> Error {
    Error::new(
        ErrorKind::OutcomeUnknown,
        OPERATION,
        format!("it may have been stored: {why}"),
    )
    .advise("Look at the target topic before publishing it again.")
}

impl fmt::Debug for Publishers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publishers").finish_non_exhaustive()
    }
}
