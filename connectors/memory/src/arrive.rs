//! What comes in: a message is checked by the rules of the destination's broker, routed, and stored.

use dlo_core::{
    AddressKind, Error, ErrorKind, Message, Millis, Outgoing, Partitioning, Position, Receipt,
    Result, Value,
};

use crate::{
    LogSettings, QueueKind,
    death::carbon_copies,
    log::Fate,
    state::{State, not_found},
};

/// The default `max_message_size` of RabbitMQ 4.0.
pub(crate) const AMQP_MAX_BYTES: u64 = 16 << 20;
/// SQS: body with attributes.
pub(crate) const SQS_MAX_BYTES: u64 = 1 << 20;
pub(crate) const SQS_MAX_HEADERS: u32 = 10;

const OPERATION: &str = "publish the message";

impl State {
    /// Stores a message wherever its target sends it.
    pub fn publish(&mut self, out: &Outgoing) -> Result<Receipt> {
        self.check(out)?;
        let name = out.target.address.name.as_str();
        match out.target.address.kind {
            AddressKind::Exchange => self.publish_to_exchange(out),
            _ if self.logs.contains_key(name) => self.append(out),
            _ => self.publish_to_queue(name, &out.message),
        }
    }

    /// Everything that would be refused, without storing anything.
    pub fn check(&self, out: &Outgoing) -> Result<()> {
        let name = out.target.address.name.as_str();
        if out.target.address.kind == AddressKind::Exchange {
            return self.check_exchange(out);
        }
        if let Some(log) = self.logs.get(name) {
            check_record(&out.message, &log.settings)?;
            return log
                .choose(out.target.partitioning, out.message.key.as_ref())
                .map(drop)
                .ok_or_else(|| not_found(OPERATION, "partition", name));
        }
        match self.queues.get(name) {
            Some(queue) if queue.kind().is_sqs() => check_sqs(&out.message, queue.kind()),
            Some(_) => check_amqp(&out.message),
            None if out.target.address.kind == AddressKind::Topic => {
                Err(not_found(OPERATION, "topic", name))
            }
            None => Err(unroutable("there is no queue of that name").with("queue", name)),
        }
    }

    fn check_exchange(&self, out: &Outgoing) -> Result<()> {
        check_amqp(&out.message)?;
        let name = out.target.address.name.as_str();
        if !name.is_empty() && !self.exchanges.contains_key(name) {
            return Err(not_found(OPERATION, "exchange", name));
        }
        if self.route_all(name, &keys_of(out)).is_empty() {
            let key = out.target.routing_key.clone().unwrap_or_default();
            return Err(unroutable("no queue is bound with that routing key")
                .with("exchange", name)
                .with("routing key", key));
        }
        Ok(())
    }

    fn publish_to_exchange(&mut self, out: &Outgoing) -> Result<Receipt> {
        let now = self.now();
        let exchange = out.target.address.name.as_str();
        let key = out.target.routing_key.clone().unwrap_or_default();
        for queue in self.route_all(exchange, &keys_of(out)) {
            self.arrive(&queue, cleaned(&out.message), exchange, &key, now);
        }
        Ok(confirmed(None))
    }

    fn publish_to_queue(&mut self, name: &str, message: &Message) -> Result<Receipt> {
        let now = self.now();
        let queue = self.queue(name)?;
        if !queue.kind().is_sqs() {
            self.arrive(name, cleaned(message), "", name, now);
            return Ok(confirmed(None));
        }
        let duplicate =
            queue.kind() == QueueKind::Fifo && queue.is_duplicate(&deduplication_id(message), now);
        if duplicate {
            return Ok(Receipt {
                position: None,
                answer: "accepted, but not delivered again: its deduplication id was used in the last five minutes"
                    .to_owned(),
            });
        }
        let id = self.arrive(name, message.clone(), "", name, now);
        Ok(confirmed(id.map(|id| Position::Id { id })))
    }

    fn append(&mut self, out: &Outgoing) -> Result<Receipt> {
        let time = out.time.unwrap_or(self.now());
        let position = self.append_record(
            &out.target.address.name,
            out.message.clone(),
            time,
            out.target.partitioning,
            Fate::Stands,
        )?;
        Ok(confirmed(Some(position)))
    }

    pub fn append_record(
        &mut self,
        log: &str,
        message: Message,
        time: Millis,
        to: Partitioning,
        fate: Fate,
    ) -> Result<Position> {
        self.version += 1;
        let position = self.log(log)?.append(message, time, to, fate);
        position.ok_or_else(|| not_found(OPERATION, "partition", log))
    }
}

/// The routing key and those of the `CC` header.
pub(crate) fn keys_of(out: &Outgoing) -> Vec<String> {
    let key = out.target.routing_key.clone().unwrap_or_default();
    std::iter::once(key)
        .chain(carbon_copies(&out.message))
        .collect()
}

/// The message as RabbitMQ passes it on: without the `BCC` header.
fn cleaned(message: &Message) -> Message {
    let mut message = message.clone();
    message.headers.retain(|header| header.name != "BCC");
    message
}

fn confirmed(position: Option<Position>) -> Receipt {
    Receipt {
        position,
        answer: "confirmed".to_owned(),
    }
}

fn check_record(message: &Message, settings: &LogSettings) -> Result<()> {
    if settings.kind == AddressKind::Queue {
        // A stream takes AMQP messages.
        return check_amqp(message);
    }
    check_size(message, settings.max_bytes)?;
    if message.properties.is_empty() {
        return Ok(());
    }
    Err(rejected("a record of a topic has no properties")
        .advise("Remove them, or make headers of those that the consumer needs."))
}

fn check_amqp(message: &Message) -> Result<()> {
    check_size(message, AMQP_MAX_BYTES)?;
    if message.key.is_some() {
        return Err(rejected("an AMQP message has no key").advise("Put the key into a header."));
    }
    if message.body.is_none() {
        return Err(
            rejected("an AMQP message has no null body").advise("Send an empty body instead.")
        );
    }
    if has_duplicates(message) {
        return Err(rejected("an AMQP header table holds every name only once")
            .advise("Rename or remove the repeated header."));
    }
    Ok(())
}

fn check_sqs(message: &Message, kind: QueueKind) -> Result<()> {
    check_size(message, SQS_MAX_BYTES)?;
    if message.key.is_some() {
        return Err(rejected("an SQS message has no key").advise("Put the key into an attribute."));
    }
    let body = message.body.as_deref().unwrap_or_default();
    if body.is_empty() {
        return Err(rejected("SQS takes no empty body"));
    }
    if !std::str::from_utf8(body).is_ok_and(|text| text.chars().all(is_xml)) {
        return Err(
            rejected("SQS takes only the characters that XML 1.0 allows")
                .advise("Encode the body, for example as base64."),
        );
    }
    if message.headers.len() > SQS_MAX_HEADERS as usize {
        return Err(rejected("SQS takes at most 10 message attributes")
            .advise("Remove attributes that the consumer does not need."));
    }
    if has_duplicates(message) {
        return Err(rejected("SQS takes every attribute name only once"));
    }
    if kind == QueueKind::Fifo && !message.properties.contains_key("MessageGroupId") {
        return Err(rejected("a FIFO queue needs a MessageGroupId"));
    }
    Ok(())
}

/// <https://www.w3.org/TR/xml/#charsets>
fn is_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn has_duplicates(message: &Message) -> bool {
    let mut names: Vec<_> = message.headers.iter().map(|header| &header.name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn check_size(message: &Message, limit: u64) -> Result<()> {
    let size = message.body.as_ref().map_or(0, |body| body.len() as u64);
    if size <= limit {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        OPERATION,
        format!("its body has {size} bytes, and at most {limit} are taken"),
    ))
}

/// The given id, else the hash of the body, as with content-based deduplication.
fn deduplication_id(message: &Message) -> String {
    let given = message.properties.get("MessageDeduplicationId");
    given
        .and_then(Value::as_text)
        .map_or_else(|| message.sha256(), str::to_owned)
}

fn rejected(what: &str) -> Error {
    Error::new(ErrorKind::Rejected, OPERATION, what)
}

fn unroutable(what: &str) -> Error {
    Error::new(ErrorKind::Unroutable, OPERATION, what)
        .advise("Choose another target, or create the missing queue or binding first.")
}
