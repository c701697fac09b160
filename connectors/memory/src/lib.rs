//! A real broker in memory: queues shaped like those of RabbitMQ and Amazon SQS, logs shaped like Kafka's topics, with locks,
//! delivery limits, dead-lettering, confirmations, and faults on demand.
//!
//! The engine and the window are tested on it, and it carries the demo. It keeps the promises of `dlo-core` like every other
//! connector and is held to the same conformance suite. Everything happens when the broker is accessed, by tokio's clock, so
//! a test with paused time sees locks run out and messages expire without waiting.
//!
//! ```
//! use dlo_core::{Message, Target};
//! use dlo_memory::{Broker, Fault, Injection, QueueSettings};
//!
//! let broker = Broker::new();
//! broker.declare_queue("orders.dlq", QueueSettings::classic());
//! let orders = QueueSettings::quorum().with_dead_letter_exchange("", Some("orders.dlq"));
//! let orders = broker.declare_queue("orders", orders);
//! let message = Message { body: Some("{}".into()), ..Message::default() };
//! assert!(broker.publish(&Target::new(orders), message).is_ok());
//! if let Some(taken) = broker.take("orders") {
//!     broker.reject(&taken);
//! }
//! assert_eq!(broker.depth("orders.dlq"), 1);
//! // The next message that a session publishes there is stored, but its confirmation is lost.
//! broker.inject(Injection::once(Fault::ConfirmLost).on("orders"));
//! let session = broker.connect();
//! # drop(session);
//! ```

mod arrive;
mod broker;
mod capability;
mod clock;
mod connector;
mod cost;
mod death;
mod delivery;
pub mod demo;
mod exchange;
mod facts;
mod fault;
mod load;
mod log;
mod look;
mod mover;
mod murmur;
mod queue;
mod session;
mod settings;
mod state;

pub use broker::{Broker, LogRecord, Taken, TransactionEnd};
pub use connector::MemoryConnector;
pub use death::Reason;
pub use fault::{Fault, Injection, Step};
pub use load::{FileConnector, Loaded, Loader};
pub use settings::{Cleanup, DeadLetterTo, ExchangeKind, LogSettings, QueueKind, QueueSettings};
