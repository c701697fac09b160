//! Publishing: mandatory, confirmed, pipelined, with one answer per message.
//!
//! Separate because the broker's answers need care: without `mandatory` a message to a missing queue is confirmed and lost, a
//! missing exchange or a wrong `user_id` closes the channel with everything on its way, and silence is not failure but
//! [`ErrorKind::OutcomeUnknown`]. See <https://www.rabbitmq.com/docs/confirms>.

use std::{collections::HashSet, time::Duration};

use dlo_core::{AddressKind, Error, ErrorKind, Outgoing, Receipt, Result, Retry};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, PublisherConfirm,
    options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions},
    types::FieldTable,
};
use tokio::time::timeout;

use crate::{connect::answer, error, values};

/// How long the confirmations of a batch may take.
const CONFIRM: Duration = Duration::from_secs(30);
/// Messages from this size on go alone, so that the broker's refusal of one names exactly that one.
const LARGE: usize = 4 << 20;
const OPERATION: &str = "publish the message";

/// Publishes over one channel that stays open between batches.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    channel: Option<Channel>,
    /// Exchanges that were there when asked; a publish to a missing one would close the channel.
    exchanges: HashSet<String>,
}

/// Who publishes, for the rule about `user_id`.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub user: String,
    /// With the tag `impersonator` any `user_id` is allowed; see <https://www.rabbitmq.com/docs/validated-user-id>.
    pub may_impersonate: bool,
}

/// A message on its way.
struct Sent {
    index: usize,
    confirm: PublisherConfirm,
}

/// A message that AMQP can carry.
struct Prepared {
    index: usize,
    exchange: String,
    routing_key: String,
    properties: BasicProperties,
    body: bytes::Bytes,
}

impl Publisher {
    /// Publishes the batch in order and answers for each message.
    pub async fn publish(
        &mut self,
        connection: &Connection,
        identity: &Identity,
        batch: Vec<Outgoing>,
    ) -> Vec<Result<Receipt>> {
        let mut answers: Vec<Option<Result<Receipt>>> = batch.iter().map(|_| None).collect();
        if connection.status().blocked() {
            return batch.iter().map(|_| Err(blocked())).collect();
        }
        let mut prepared = Vec::with_capacity(batch.len());
        for (index, outgoing) in batch.into_iter().enumerate() {
            match prepare(index, outgoing, identity) {
                Ok(message) => prepared.push(message),
                Err(error) => answers[index] = Some(Err(error)),
            }
        }
        for run in runs(prepared) {
            self.publish_run(connection, run, &mut answers).await;
        }
        answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Err(unanswered())))
            .collect()
    }

    /// A run goes to one exchange, so that a refusal of the exchange concerns all of it and nothing else.
    async fn publish_run(
        &mut self,
        connection: &Connection,
        run: Vec<Prepared>,
        answers: &mut [Option<Result<Receipt>>],
    ) {
        let indexes: Vec<usize> = run.iter().map(|message| message.index).collect();
        let exchange = run
            .first()
            .map(|message| message.exchange.clone())
            .unwrap_or_default();
        let channel = match self.ready(connection, &exchange).await {
            Ok(channel) => channel,
            Err(error) => {
                for index in indexes {
                    answers[index] = Some(Err(error.clone()));
                }
                return;
            }
        };
        let mut sent = Vec::with_capacity(run.len());
        let failed = match timeout(CONFIRM, send(&channel, run, &mut sent)).await {
            Ok(outcome) => outcome.err(),
            Err(_) => Some(unanswered()),
        };
        let confirmed = timeout(CONFIRM, collect(sent, answers)).await;
        if failed.is_some() || confirmed.is_err() || !channel.status().connected() {
            self.channel = None;
            self.exchanges.remove(&exchange);
            settle_the_rest(&indexes, answers, failed.as_ref());
        }
    }

    async fn ready(&mut self, connection: &Connection, exchange: &str) -> Result<Channel> {
        if !exchange.is_empty() && !self.exchanges.contains(exchange) {
            exchange_exists(connection, exchange).await?;
            self.exchanges.insert(exchange.to_owned());
        }
        if let Some(channel) = self
            .channel
            .as_ref()
            .filter(|channel| channel.status().connected())
        {
            return Ok(channel.clone());
        }
        let channel = answer(OPERATION, connection.create_channel()).await?;
        answer(
            OPERATION,
            channel.confirm_select(ConfirmSelectOptions::default()),
        )
        .await?;
        self.channel = Some(channel.clone());
        Ok(channel)
    }
}

/// Whether the exchange is there.
///
/// # Errors
/// `NotFound`, `PermissionDenied`.
pub(crate) async fn exchange_exists(connection: &Connection, exchange: &str) -> Result<()> {
    let operation = "find the exchange";
    let channel = answer(operation, connection.create_channel()).await?;
    let options = ExchangeDeclareOptions {
        passive: true,
        ..ExchangeDeclareOptions::default()
    };
    // The type is not looked at in a passive declare, but must be one that the broker knows.
    let declared = channel.exchange_declare(
        exchange.into(),
        lapin::ExchangeKind::Direct,
        options,
        FieldTable::default(),
    );
    answer(operation, declared)
        .await
        .map_err(|error| error.with("exchange", exchange))?;
    let _ = channel.close(200, "OK".into()).await;
    Ok(())
}

fn prepare(index: usize, outgoing: Outgoing, identity: &Identity) -> Result<Prepared> {
    let (exchange, routing_key) = match outgoing.target.address.kind {
        AddressKind::Exchange => (
            outgoing.target.address.name,
            outgoing.target.routing_key.unwrap_or_default(),
        ),
        AddressKind::Queue => (String::new(), outgoing.target.address.name),
        AddressKind::Topic | AddressKind::Subscription => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                OPERATION,
                "RabbitMQ has queues and exchanges, no topics",
            ));
        }
    };
    if exchange.len() > 255 || routing_key.len() > 255 {
        return Err(Error::new(
            ErrorKind::Rejected,
            OPERATION,
            "an exchange's name or routing key is longer than 255 bytes",
        ));
    }
    let properties = values::to_properties(&outgoing.message)?;
    check_user(&properties, identity)?;
    Ok(Prepared {
        index,
        exchange,
        routing_key,
        properties,
        body: outgoing.message.body.unwrap_or_default(),
    })
}

/// The broker closes the channel on somebody else's `user_id`, with everything that is on its way.
fn check_user(properties: &BasicProperties, identity: &Identity) -> Result<()> {
    match properties.user_id() {
        Some(user) if user.as_str() != identity.user && !identity.may_impersonate => Err(Error::new(
            ErrorKind::Rejected,
            OPERATION,
            format!(
                "its property user_id is {user}, and RabbitMQ takes only the name of the user who publishes ({})",
                identity.user
            ),
        )
        .advise("Remove the property user_id.")),
        _ => Ok(()),
    }
}

/// Neighbours with the same exchange go together; a large message goes alone.
fn runs(messages: Vec<Prepared>) -> Vec<Vec<Prepared>> {
    let mut runs: Vec<Vec<Prepared>> = Vec::new();
    for message in messages {
        let large = message.body.len() >= LARGE;
        match runs.last_mut() {
            Some(run)
                if !large
                    && run.last().is_some_and(|last| {
                        last.exchange == message.exchange && last.body.len() < LARGE
                    }) =>
            {
                run.push(message);
            }
            _ => runs.push(vec![message]),
        }
    }
    runs
}

/// Sends without waiting for confirmations; stops at the first failure. What was sent by then is in `sent`.
async fn send(channel: &Channel, run: Vec<Prepared>, sent: &mut Vec<Sent>) -> Result<()> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    for message in run {
        let publishing = channel.basic_publish(
            message.exchange.as_str().into(),
            message.routing_key.as_str().into(),
            options,
            &message.body,
            message.properties,
        );
        let confirm = publishing
            .await
            .map_err(|error| error::of(OPERATION, &error))?;
        sent.push(Sent {
            index: message.index,
            confirm,
        });
    }
    Ok(())
}

async fn collect(sent: Vec<Sent>, answers: &mut [Option<Result<Receipt>>]) {
    let mut refused = None;
    for Sent { index, confirm } in sent {
        match confirm.await {
            Ok(confirmation) => answers[index] = Some(confirmed(&confirmation)),
            Err(error) => {
                let error = error::of(OPERATION, &error);
                // The first of the channel's errors says why it closed; those after it only that it did.
                let said = refused.get_or_insert(error).clone();
                answers[index] = Some(Err(said));
            }
        }
    }
}

fn confirmed(confirmation: &Confirmation) -> Result<Receipt> {
    match confirmation {
        Confirmation::Ack(None) => Ok(Receipt {
            position: None,
            answer: "confirmed".to_owned(),
        }),
        Confirmation::Ack(Some(returned)) => Err(Error::new(
            ErrorKind::Unroutable,
            OPERATION,
            format!(
                "no queue would get it, and the broker gave it back ({} {})",
                returned.reply_code, returned.reply_text
            ),
        )
        .advise("Check the queue's name, or the exchange's bindings and the routing key.")),
        Confirmation::Nack(_) => Err(Error::new(
            ErrorKind::Throttled,
            OPERATION,
            "the broker did not store it: the queue is full, or could not write",
        )
        .retry(Retry::Later)
        .advise("Let the queue drain or raise its length limit, then try again.")),
        Confirmation::NotRequested => Err(unanswered()),
    }
}

/// What a closed channel means for the messages of a run. A refusal of the exchange or the user's rights holds for all of
/// them, as none can have been stored; any other end leaves those on their way unknown.
fn settle_the_rest(
    indexes: &[usize],
    answers: &mut [Option<Result<Receipt>>],
    failed: Option<&Error>,
) {
    let some_confirmed = indexes
        .iter()
        .any(|index| matches!(&answers[*index], Some(Ok(_))));
    let refusal = indexes
        .iter()
        .filter_map(|index| answers[*index].as_ref()?.as_ref().err())
        .chain(failed)
        .find(|error| refuses(error.kind()))
        .cloned();
    let certain = refusal.filter(|_| !some_confirmed || indexes.len() == 1);
    for index in indexes {
        let answered = match &answers[*index] {
            None => None,
            Some(Ok(_)) => continue,
            Some(Err(error)) => Some(error.clone()),
        };
        let is_final = answered.as_ref().is_some_and(|error| {
            matches!(error.kind(), ErrorKind::Unroutable | ErrorKind::Throttled)
        });
        if is_final {
            continue;
        }
        answers[*index] = Some(Err(match &certain {
            Some(refusal) => refusal.clone(),
            None => answered
                .as_ref()
                .or(failed)
                .map_or_else(unanswered, unknown),
        }));
    }
}

/// Errors by which the broker says that it takes nothing of this kind from us.
fn refuses(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::NotFound | ErrorKind::TooLarge
    )
}

fn unknown(error: &Error) -> Error {
    Error::new(
        ErrorKind::OutcomeUnknown,
        OPERATION,
        format!(
            "the connection ended before the broker confirmed it ({})",
            error.what()
        ),
    )
    .advise("Look at the target before publishing it again.")
    .caused_by(error.clone())
}

fn unanswered() -> Error {
    Error::new(
        ErrorKind::OutcomeUnknown,
        OPERATION,
        format!(
            "the broker did not confirm it within {} s",
            CONFIRM.as_secs()
        ),
    )
    .advise("Look at the target before publishing it again.")
}

fn blocked() -> Error {
    Error::new(
        ErrorKind::Throttled,
        OPERATION,
        "the broker takes no messages at the moment: it is short of memory or disk space",
    )
    .advise("Wait until its alarm is over, then try again.")
}

#[cfg(test)]
mod tests {
    use dlo_core::{Address, Message, Target};

    use super::*;

    fn outgoing(message: Message) -> Outgoing {
        Outgoing {
            target: Target::new(Address::queue("q")),
            message,
            time: None,
        }
    }

    fn identity(may_impersonate: bool) -> Identity {
        Identity {
            user: "me".to_owned(),
            may_impersonate,
        }
    }

    #[test]
    fn somebody_elses_user_id_is_stopped_before_it_closes_the_channel() {
        let mut message = Message {
            body: Some(bytes::Bytes::new()),
            ..Message::default()
        };
        message
            .properties
            .insert("user_id".to_owned(), dlo_core::Value::text("other"));
        let error = prepare(0, outgoing(message.clone()), &identity(false))
            .err()
            .map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::Rejected));
        assert!(prepare(0, outgoing(message), &identity(true)).is_ok());
    }

    #[test]
    fn neighbours_with_one_exchange_go_together_and_large_ones_alone() {
        let message = |exchange: &str, size: usize| Prepared {
            index: 0,
            exchange: exchange.to_owned(),
            routing_key: String::new(),
            properties: BasicProperties::default(),
            body: bytes::Bytes::from(vec![0; size]),
        };
        let runs = runs(vec![
            message("a", 1),
            message("a", 1),
            message("b", 1),
            message("b", LARGE),
            message("b", 1),
        ]);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 1]);
    }

    #[test]
    fn a_refused_exchange_is_certain_and_a_lost_connection_is_not() {
        let check = |kind, expected| {
            let failure = Error::new(kind, OPERATION, "x");
            let mut answers = vec![None, None];
            settle_the_rest(&[0, 1], &mut answers, Some(&failure));
            for answer in answers {
                assert_eq!(
                    answer.and_then(Result::err).map(|error| error.kind()),
                    Some(expected)
                );
            }
        };
        check(ErrorKind::PermissionDenied, ErrorKind::PermissionDenied);
        check(ErrorKind::Unreachable, ErrorKind::OutcomeUnknown);
        check(ErrorKind::Rejected, ErrorKind::OutcomeUnknown);
    }
}
