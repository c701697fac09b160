//! The ordinary client beside the session under test. See the crate's documentation for how to write one.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use dlo_core::{Address, Message, Session, Target};

/// What a fixture gives; any error of the broker's own client fits.
pub type Staged<T> = Result<T, Box<dyn StdError + Send + Sync>>;

/// A destination and the one that gets its dead letters.
#[derive(Clone, Debug)]
pub struct Linked {
    pub origin: Address,
    pub dead_letters: Address,
}

/// A log that has offsets without a record.
#[derive(Clone, Debug)]
pub struct Gaps {
    pub at: Address,
    /// Records that a look with read-committed isolation shows.
    pub records: u64,
    /// Offsets between the first and the last that it passes over. `None` where the fixture cannot know the number.
    pub gaps: Option<u64>,
}

/// Sets the stage and consumes as an ordinary client, never through the session under test.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// Who is tested, for the report: `RabbitMQ 4.3.6`.
    fn name(&self) -> String;

    /// The kinds of destinations to test.
    fn flavours(&self) -> Vec<&'static str>;

    /// A new session of the connector under test. The suite closes it.
    async fn connect(&self) -> Staged<Arc<dyn Session>>;

    /// Makes an empty destination of exactly that name.
    async fn create(&self, flavour: &str, name: &str) -> Staged<Address>;

    /// Puts messages into a destination in order, as a producer would, and waits until they are stored.
    async fn fill(&self, at: &Address, messages: &[Message]) -> Staged<()>;

    /// Messages that an ordinary consumer could get now; what is held does not count.
    async fn count(&self, at: &Address) -> Staged<u64>;

    /// Takes everything as an ordinary consumer would, in order (Kafka: reads it from the beginning).
    async fn drain(&self, at: &Address) -> Staged<Vec<Message>>;

    /// Deletes a destination after a check.
    async fn delete(&self, at: &Address) -> Staged<()>;

    /// Messages that use every header type and property that the flavour can carry.
    fn rich(&self, flavour: &str) -> Vec<Message>;

    /// A plain message with that number. Override it where a flavour needs more, such as a message group.
    fn message(&self, flavour: &str, number: usize) -> Message {
        let _ = flavour;
        Message {
            body: Some(Bytes::from(format!("message {number:04}"))),
            ..Message::default()
        }
    }

    /// Whether a body may hold any bytes. SQS takes only characters that XML allows.
    fn takes_any_bytes(&self, flavour: &str) -> bool {
        let _ = flavour;
        true
    }

    /// A name with everything the broker allows; `None` where it allows nothing unusual.
    fn awkward_name(&self, flavour: &str, name: &str) -> Option<String> {
        let _ = flavour;
        Some(format!("{name} with spaces, ünïcödé/✓"))
    }

    /// Makes an origin with a dead-letter target, both empty; `None` where the flavour has no dead-lettering.
    async fn create_linked(&self, flavour: &str, name: &str) -> Staged<Option<Linked>> {
        let _ = (flavour, name);
        Ok(None)
    }

    /// Makes a destination with a few messages which one more look would destroy or move, or at which it would harm
    /// a consumer, so that the connector must refuse or ask.
    async fn create_harmful(&self, flavour: &str, name: &str) -> Staged<Option<Address>> {
        let _ = (flavour, name);
        Ok(None)
    }

    /// An address that exists, but no queue would get a message that is published to it.
    async fn create_unroutable(&self, name: &str) -> Staged<Option<Target>> {
        let _ = name;
        Ok(None)
    }

    /// Makes a log with gaps, by transactions or compaction.
    async fn create_with_gaps(&self, flavour: &str, name: &str) -> Staged<Option<Gaps>> {
        let _ = (flavour, name);
        Ok(None)
    }
}
