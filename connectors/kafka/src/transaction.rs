//! A batch that is published wholly or not at all, in a transaction of its own.
//!
//! Each batch has a new transactional id, so that two programs never fence each other. The brokers forget it after
//! `transactional.id.expiration.ms` (a week by default).

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use dlo_core::{Error, ErrorKind, Outgoing, Receipt, Result};
use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, Producer},
};

use crate::{
    broker::Broker,
    error::from_kafka,
    publish::{self, Deliveries, Record, Sends, Ticket, batch_bytes, unknown},
};

const OPERATION: &str = "publish the batch in a transaction";
const PATIENCE: Duration = Duration::from_secs(30);

impl Sends for BaseProducer<Deliveries> {
    fn send_record<'a>(&self, record: Record<'a>) -> Result<(), Box<(KafkaError, Record<'a>)>> {
        self.send(record).map_err(Box::new)
    }

    fn serve(&self) {
        self.poll(Duration::from_millis(5));
    }

    fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.client().fatal_error()
    }
}

/// Publishes all or nothing and answers for each record.
pub(crate) fn publish(broker: &Broker, batch: &[Outgoing]) -> Vec<Result<Receipt>> {
    if batch.is_empty() {
        return Vec::new();
    }
    let checked: Vec<Result<_>> = batch
        .iter()
        .map(|outgoing| publish::check(broker, outgoing))
        .collect();
    if checked.iter().any(Result::is_err) {
        let answers = checked
            .into_iter()
            .map(|check| Err(check.err().unwrap_or_else(rolled_back)));
        return answers.collect();
    }
    let bytes = checked
        .iter()
        .flatten()
        .map(|facts| batch_bytes(facts))
        .min()
        .unwrap_or(1024);
    match begin(broker, bytes) {
        Ok(producer) => run(&producer, batch),
        Err(error) => vec![Err(error); batch.len()],
    }
}

fn begin(broker: &Broker, bytes: u64) -> Result<BaseProducer<Deliveries>> {
    let mut config = broker.settings.publishing(bytes);
    config
        .set("transactional.id", format!("dlo-{}", uuid::Uuid::new_v4()))
        .set("transaction.timeout.ms", "60000");
    let producer: BaseProducer<Deliveries> = config
        .create_with_context(Deliveries(broker.settings.voice()))
        .map_err(|error| from_kafka(&error, OPERATION))?;
    producer
        .init_transactions(PATIENCE)
        .and_then(|()| producer.begin_transaction())
        .map_err(|error| from_kafka(&error, OPERATION))?;
    Ok(producer)
}

fn run(producer: &BaseProducer<Deliveries>, batch: &[Outgoing]) -> Vec<Result<Receipt>> {
    let (sender, receiver) = mpsc::channel();
    let mut answers: Vec<Option<Result<Receipt>>> = Vec::new();
    for (index, outgoing) in batch.iter().enumerate() {
        let ticket = Ticket {
            index,
            answers: sender.clone(),
        };
        answers.push(publish::send(producer, outgoing, ticket).err().map(Err));
        producer.poll(Duration::ZERO);
    }
    drop(sender);
    let until = Instant::now() + PATIENCE;
    while answers.iter().any(Option::is_none) && Instant::now() < until {
        producer.poll(Duration::from_millis(20));
        for (index, answer) in receiver.try_iter() {
            answers[index] = Some(answer);
        }
    }
    let all_stored = answers.iter().all(|answer| matches!(answer, Some(Ok(_))));
    if all_stored {
        commit(producer, answers)
    } else {
        abort(producer, answers)
    }
}

type Answers = Vec<Option<Result<Receipt>>>;

fn commit(producer: &BaseProducer<Deliveries>, answers: Answers) -> Vec<Result<Receipt>> {
    match producer.commit_transaction(PATIENCE) {
        Ok(()) => answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Err(unknown("no answer came"))))
            .collect(),
        Err(KafkaError::Transaction(error)) if error.txn_requires_abort() => {
            abort(producer, answers)
        }
        Err(error) => {
            let error = unknown(&format!("the transaction's end was not confirmed: {error}"));
            vec![Err(error); answers.len()]
        }
    }
}

/// Nothing of an aborted transaction is ever seen by a reader of committed records. Should even the abort fail, the broker
/// aborts when the transaction's time is over, so the answer is the same.
fn abort(producer: &BaseProducer<Deliveries>, answers: Answers) -> Vec<Result<Receipt>> {
    if let Err(error) = producer.abort_transaction(PATIENCE) {
        tracing::warn!(%error, "the transaction could not be aborted; the broker will do it within a minute");
    }
    let failed = |answer: Option<Result<Receipt>>| match answer {
        Some(Err(error)) if error.kind() != ErrorKind::OutcomeUnknown => Err(error),
        _ => Err(rolled_back()),
    };
    answers.into_iter().map(failed).collect()
}

fn rolled_back() -> Error {
    Error::new(
        ErrorKind::Rejected,
        OPERATION,
        "another record of the batch failed, so this one was not stored either",
    )
    .advise("Mend or leave out the record that failed, and publish again.")
}
