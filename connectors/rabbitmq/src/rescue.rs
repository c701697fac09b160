//! Messages that giving back would destroy.
//!
//! Separate because it is the one place where looking changes a queue, and it must lose nothing at any moment. Since 4.3
//! dead-lettering carries `x-delivery-count` into the next quorum queue, which compares it with its own limit on any return:
//! a message that died of the default limit 20 arrives with 21, and the first look by any tool destroys it. Such a message
//! is saved, published again to the same queue without that count, confirmed, and only then acknowledged.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use dlo_core::{Error, ErrorKind, Lock, Message, Position, Result};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection,
    message::Delivery as Raw,
    options::{BasicAckOptions, BasicPublishOptions, ConfirmSelectOptions},
    types::FieldTable,
};

use crate::{
    connect::answer,
    look::{Inner, State},
    take::to_delivery,
    values,
    version::GiveBack,
};

/// Headers that a copy must not have: the counts would kill it again, and `CC` and `BCC` would send it to other queues.
const STRIPPED: [&str; 4] = ["x-delivery-count", "x-acquired-count", "CC", "BCC"];

/// What was rescued in one look.
#[derive(Debug, Default)]
pub(crate) struct Rescued {
    pub count: u64,
    /// Copies at the end of the queue that this look has not met yet: content → the locks of their rows, in order.
    waiting: HashMap<u64, VecDeque<Lock>>,
}

impl Rescued {
    /// How many copies were not met yet.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// The lock of the row whose copy this message is, if it is one.
    pub fn meet(&mut self, message: &Message) -> Option<Lock> {
        if self.waiting.is_empty() {
            return None;
        }
        let content = content_of(message);
        let locks = self.waiting.get_mut(&content)?;
        let lock = locks.pop_front();
        if locks.is_empty() {
            self.waiting.remove(&content);
        }
        lock
    }

    fn expect(&mut self, message: &Message, lock: Lock) {
        self.count += 1;
        self.waiting
            .entry(content_of(message))
            .or_default()
            .push_back(lock);
    }
}

impl Inner {
    /// Saves the message, puts a copy at the end of the queue, and removes the original once the copy is confirmed.
    ///
    /// # Errors
    /// `Refused` before 4.3 when already the first message of the look is at its limit (it was rescued; nothing else was
    /// touched), and when the copy cannot be made.
    pub async fn rescue(&self, state: &mut State, raw: Raw) -> Result<()> {
        let tag = raw.delivery_tag;
        let properties = copy_properties(&raw.properties);
        let lock = Lock::new(format!("rescued {tag}"));
        let position = Position::Index {
            index: state.next_index,
        };
        let body = raw.data.clone();
        let delivery = to_delivery(raw, position, Some(lock.clone()), self.rules.brokers_own);
        let saved = self.rules.keeper.keep(&delivery).await;
        if let Err(error) = self.put_back(state, &body, properties).await {
            state.notes.push(match saved {
                Ok(()) => "A message at its delivery limit could not be put back; it is among the saved messages.".to_owned(),
                Err(_) => "A message at its delivery limit could be neither saved nor put back.".to_owned(),
            });
            return Err(error);
        }
        let acking = self.channel.basic_ack(tag, BasicAckOptions::default());
        answer("remove the rescued original", acking).await?;
        self.set_prefetch(1).await?;
        state.rescued.expect(&delivery.message, lock.clone());
        state.locks.insert(lock, None);
        let first = state.next_index == 0;
        self.push_row(state, delivery);
        // The copy is in hand again, so not being able to save is told only now that nothing can be lost any more.
        saved?;
        if first && self.rules.give_back == GiveBack::CloseChannel {
            state.rows.clear();
            return Err(self.at_the_edge());
        }
        Ok(())
    }

    async fn put_back(
        &self,
        state: &mut State,
        body: &[u8],
        properties: Result<BasicProperties>,
    ) -> Result<()> {
        if !self.rules.can_rescue {
            return Err(not_put_back(
                "you may not publish to the queue (write on amq.default)",
            ));
        }
        let channel = match state.copies.take() {
            Some(channel) => channel,
            None => confirming_channel(&self.connection).await?,
        };
        let answered = publish_copy(&channel, &self.rules.queue, body, properties?).await?;
        state.copies = Some(channel);
        match answered {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) => Err(not_put_back("the queue is gone")),
            _ => Err(not_put_back(
                "the queue takes no more messages (it is full)",
            )),
        }
    }

    fn at_the_edge(&self) -> Error {
        let limit = self.rules.limit.unwrap_or_default();
        Error::new(
            ErrorKind::Refused,
            "look at the queue",
            format!(
                "its messages have reached the delivery limit of {limit}: another look would destroy them. The first one showed it; it was saved and put back at the end of the queue"
            ),
        )
        .advise(format!(
            "An administrator can raise the limit: rabbitmqctl set_policy look '^{}$' '{{\"delivery-limit\":{}}}' --apply-to queues --priority 100",
            self.rules.queue,
            limit + 20
        ))
        .with("queue", self.rules.queue.clone())
    }
}

/// Whether the user may publish to a queue through the default exchange. A message to a queue that cannot exist is refused
/// or comes back; either way it is stored nowhere.
pub(crate) async fn may_publish(connection: &Connection) -> Result<bool> {
    let channel = confirming_channel(connection).await?;
    let nowhere = format!("dlo.nowhere.{}", uuid::Uuid::new_v4());
    match publish_copy(&channel, &nowhere, &[], BasicProperties::default()).await {
        Ok(_) => {
            let _ = channel.close(200, "OK".into()).await;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

async fn confirming_channel(connection: &Connection) -> Result<Channel> {
    let operation = "open a channel";
    let channel = answer(operation, connection.create_channel()).await?;
    answer(
        operation,
        channel.confirm_select(ConfirmSelectOptions::default()),
    )
    .await?;
    Ok(channel)
}

async fn publish_copy(
    channel: &Channel,
    queue: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Result<Confirmation> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let operation = "put the message back";
    let publishing = async {
        let confirm = channel
            .basic_publish("".into(), queue.into(), options, body, properties)
            .await?;
        confirm.await
    };
    answer(operation, publishing).await
}

/// The properties of the copy. `user_id` must be the publisher's own or the broker closes the channel.
fn copy_properties(original: &BasicProperties) -> Result<BasicProperties> {
    let mut headers = FieldTable::default();
    for (name, value) in original.headers().iter().flat_map(FieldTable::inner) {
        if !STRIPPED.contains(&name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    let mut message = values::to_message(&original.clone().with_headers(headers), Vec::new());
    message.properties.remove("user_id");
    values::to_properties(&message)
}

/// What a message and its copy have in common.
fn content_of(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.body.hash(&mut hasher);
    for header in &message.headers {
        if !STRIPPED.contains(&header.name.as_str()) {
            format!("{header:?}").hash(&mut hasher);
        }
    }
    for (name, value) in &message.properties {
        if name != "user_id" {
            format!("{name} {value:?}").hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn not_put_back(why: &str) -> Error {
    Error::new(ErrorKind::Refused, "put the message back", why)
}

#[cfg(test)]
mod tests {
    use lapin::types::AMQPValue;

    use super::*;

    fn original() -> BasicProperties {
        let mut headers = FieldTable::default();
        headers.insert("x-delivery-count".into(), AMQPValue::LongLongInt(21));
        headers.insert("CC".into(), AMQPValue::FieldArray(Vec::new().into()));
        headers.insert("own".into(), AMQPValue::Void);
        BasicProperties::default()
            .with_headers(headers)
            .with_user_id("somebody".into())
            .with_message_id("1".into())
    }

    #[test]
    fn the_copy_has_all_but_what_would_kill_or_multiply_it() {
        let copy = copy_properties(&original()).expect("a copy");
        let headers = copy.headers().clone().unwrap_or_default();
        assert_eq!(headers.inner().len(), 1);
        assert!(headers.contains_key("own"));
        assert_eq!(copy.user_id(), &None);
        assert_eq!(copy.message_id(), original().message_id());
    }

    #[test]
    fn a_copy_is_met_once() {
        let message = values::to_message(&original(), b"body".to_vec());
        let copy = values::to_message(
            &copy_properties(&original()).expect("a copy"),
            b"body".to_vec(),
        );
        let other = values::to_message(
            &copy_properties(&original()).expect("a copy"),
            b"other".to_vec(),
        );
        let mut rescued = Rescued::default();
        rescued.expect(&message, Lock::new("a"));
        assert_eq!(rescued.meet(&other), None);
        assert_eq!(rescued.meet(&copy), Some(Lock::new("a")));
        assert_eq!(rescued.meet(&copy), None);
        assert_eq!(rescued.waiting(), 0);
    }
}
