//! What every check works with: the fixture, a session of its own, and helpers to look and to compare.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use dlo_core::{
    Address, Atomicity, Browse, Capability, Consent, Delivery, Look, LookRequest, Message,
    Outgoing, Receipt, Scan, Session, Start, Target,
};
use tokio_util::sync::CancellationToken;

use crate::{Fixture, Miss, Verdict, verdict::ensure, verdict::needs};

/// A fresh session and the destinations that one check made.
#[allow(missing_debug_implementations)]
pub struct Scene<'a> {
    pub fixture: &'a dyn Fixture,
    pub flavour: &'static str,
    pub session: Arc<dyn Session>,
    made: Mutex<Vec<Address>>,
}

/// All that one look showed.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub deliveries: Vec<Delivery>,
    pub scan: Scan,
    /// False when the helper gave up before the look's end.
    pub ended: bool,
}

impl Seen {
    pub fn bodies(&self) -> Vec<String> {
        self.deliveries
            .iter()
            .map(|delivery| body(&delivery.message))
            .collect()
    }
}

impl<'a> Scene<'a> {
    pub(crate) async fn open(
        fixture: &'a dyn Fixture,
        flavour: &'static str,
    ) -> Result<Self, Miss> {
        let session = fixture.connect().await?;
        Ok(Self {
            fixture,
            flavour,
            session,
            made: Mutex::default(),
        })
    }

    pub(crate) async fn close(self) {
        // A session that cannot close is found by the checks about closing; here it only ends the scene.
        let _ = self.session.close().await;
        let made = self.made.into_inner();
        for at in made.unwrap_or_else(PoisonError::into_inner) {
            let _ = self.fixture.delete(&at).await;
        }
    }

    /// A name nobody else uses.
    pub fn name(&self) -> String {
        format!("conf-{}", uuid::Uuid::new_v4().simple())
    }

    /// Remembers a destination that the fixture made, so that it is deleted afterwards.
    pub fn keep(&self, at: &Address) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(at.clone());
    }

    /// A new empty destination.
    pub async fn empty(&self) -> Result<Address, Miss> {
        let at = self.fixture.create(self.flavour, &self.name()).await?;
        self.keep(&at);
        Ok(at)
    }

    /// A new destination with `count` plain messages.
    pub async fn filled(&self, count: usize) -> Result<Address, Miss> {
        let at = self.empty().await?;
        self.fixture.fill(&at, &self.messages(count)).await?;
        Ok(at)
    }

    pub fn messages(&self, count: usize) -> Vec<Message> {
        (0..count)
            .map(|number| self.fixture.message(self.flavour, number))
            .collect()
    }

    /// What the destination says it can do.
    pub async fn capability(&self, at: &Address) -> Result<Capability, Miss> {
        Ok(self.session.describe(at).await?.capability)
    }

    /// A request for up to `limit` messages from the oldest on, with consent, as its cost is not the question.
    pub fn request(&self, limit: u64) -> LookRequest {
        LookRequest {
            start: Start::Oldest,
            consent: Consent::Given,
            hold: Duration::from_secs(60),
            ..LookRequest::new(limit)
        }
    }

    /// Opens a look at up to `limit` messages; not applicable where the destination cannot be looked at.
    pub async fn look(&self, at: &Address, limit: u64) -> Result<Arc<dyn Look>, Miss> {
        needs!(
            self.capability(at).await?.browse != Browse::None,
            "browse is None"
        );
        Ok(self.session.look(at, self.request(limit)).await?)
    }

    /// Looks at up to `limit` messages and closes the look.
    pub async fn look_and_close(&self, at: &Address, limit: u64) -> Result<Seen, Miss> {
        let look = self.look(at, limit).await?;
        let seen = read_to_end(look.as_ref()).await?;
        look.close().await?;
        Ok(seen)
    }

    /// The same with a request of the check's own.
    pub async fn look_as(&self, at: &Address, request: LookRequest) -> Result<Seen, Miss> {
        let look = self.session.look(at, request).await?;
        let seen = read_to_end(look.as_ref()).await?;
        look.close().await?;
        Ok(seen)
    }

    /// Publishes to one address, each message by itself.
    pub async fn publish(
        &self,
        at: &Address,
        messages: &[Message],
    ) -> Vec<dlo_core::Result<Receipt>> {
        let batch = messages
            .iter()
            .map(|message| outgoing(at, message.clone()))
            .collect();
        self.session.publish(batch, Atomicity::Each).await
    }

    /// Publishes and fails unless every answer is `Ok`.
    pub async fn publish_surely(&self, at: &Address, messages: &[Message]) -> Verdict {
        let answers = self.publish(at, messages).await;
        ensure!(
            answers.len() == messages.len(),
            "{} messages got {} answers",
            messages.len(),
            answers.len()
        );
        for answer in answers {
            answer?;
        }
        Ok(())
    }

    /// Waits until an ordinary consumer could get that many messages.
    pub async fn expect_count(&self, at: &Address, expected: u64) -> Verdict {
        let mut last = self.fixture.count(at).await?;
        for _ in 0..150 {
            if last == expected {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            last = self.fixture.count(at).await?;
        }
        Err(Miss::Broken(format!(
            "an ordinary consumer could get {last} messages, not {expected}"
        )))
    }

    /// Drains the destination and compares it with what should be there.
    pub async fn expect_content(&self, at: &Address, expected: &[Message]) -> Verdict {
        let capability = self.capability(at).await?;
        let found = self.fixture.drain(at).await?;
        same_messages(&found, expected, &capability)
    }
}

pub fn outgoing(at: &Address, message: Message) -> Outgoing {
    Outgoing {
        target: Target::new(at.clone()),
        message,
        time: None,
    }
}

/// Reads pages until the end, and checks on the way that no page is larger than was asked for.
pub async fn read_to_end(look: &dyn Look) -> Result<Seen, Miss> {
    let cancel = CancellationToken::new();
    let mut seen = Seen::default();
    for _ in 0..10_000 {
        let page = look.next(7, &cancel).await?;
        ensure!(
            page.deliveries.len() <= 7,
            "next(7) gave {} messages",
            page.deliveries.len()
        );
        ensure!(
            page.end || !page.deliveries.is_empty() || page.scan.scanned > 0,
            "a page is empty and made no progress, but is not the end"
        );
        add(&mut seen, page.deliveries, page.scan);
        if page.end {
            seen.ended = true;
            return Ok(seen);
        }
    }
    Ok(seen)
}

fn add(seen: &mut Seen, deliveries: Vec<Delivery>, scan: Scan) {
    seen.deliveries.extend(deliveries);
    seen.scan.scanned += scan.scanned;
    seen.scan.gaps += scan.gaps;
    seen.scan.errors += scan.errors;
    seen.scan.total = scan.total;
    seen.scan.notes.extend(scan.notes);
}

/// A body as text, for messages of the suite's own.
pub fn body(message: &Message) -> String {
    message.body.as_ref().map_or_else(
        || "(null)".to_owned(),
        |body| String::from_utf8_lossy(body).into_owned(),
    )
}

/// Fails unless both lists hold the same messages: in the same order where a look is complete, else in any.
pub fn same_messages(found: &[Message], expected: &[Message], capability: &Capability) -> Verdict {
    ensure!(
        found.len() == expected.len(),
        "{} messages are there, not {}",
        found.len(),
        expected.len()
    );
    let (mut found, mut expected) = (
        found.iter().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>(),
    );
    if !ordered(capability) {
        found.sort_by(|a, b| a.body.cmp(&b.body));
        expected.sort_by(|a, b| a.body.cmp(&b.body));
    }
    for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if let Some(difference) = difference(found, expected, capability) {
            return Err(Miss::Broken(format!("message {place}: {difference}")));
        }
    }
    Ok(())
}

/// Whether messages have one order that can be promised: not in SQS, nor over the partitions of a topic.
pub fn ordered(capability: &Capability) -> bool {
    capability.browse_is_complete && !capability.order_per_group && !capability.browse_by_partition
}

/// How two messages differ; properties that the broker added do not count.
fn difference(found: &Message, expected: &Message, capability: &Capability) -> Option<String> {
    if found.body != expected.body {
        return Some(format!("body {:?}, not {:?}", found.body, expected.body));
    }
    if found.key != expected.key {
        return Some(format!("key {:?}, not {:?}", found.key, expected.key));
    }
    let (mut have, mut want) = (found.headers.clone(), expected.headers.clone());
    have.retain(|header| !is_brokers_count(header) || want.contains(header));
    if !capability.publish_with_duplicate_headers {
        have.sort_by(|a, b| a.name.cmp(&b.name));
        want.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if have != want {
        return Some(format!("headers {have:?}, not {want:?}"));
    }
    expected
        .properties
        .iter()
        .find(|(name, value)| found.properties.get(*name) != Some(value))
        .map(|(name, value)| {
            format!(
                "property {name} is {:?}, not {value:?}",
                found.properties.get(name)
            )
        })
}

/// Headers in which RabbitMQ counts deliveries; they are its own and change with every look.
fn is_brokers_count(header: &dlo_core::Header) -> bool {
    ["x-delivery-count", "x-acquired-count"].contains(&header.name.as_str())
}
