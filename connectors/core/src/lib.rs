//! What every broker connector speaks: messages, destinations, looks, and errors.
//!
//! A [`Connector`] opens a [`Session`]; a session lists [`Destination`]s, opens a [`Look`] on one of them,
//! and publishes [`Outgoing`] messages with one answer each. Nothing in here knows a window, a payload
//! format, or the headers of any framework: a connector hands over exactly what the broker holds.
//!
//! Three kinds of brokers shaped these traits, so that the next ones need not bend them:
//! *lock* brokers (RabbitMQ, SQS) borrow a message while it is looked at, *offset* brokers (Kafka) just read,
//! and both differ again by destination (a RabbitMQ stream is read by offset). See [`Capability`].

mod capability;
mod connector;
mod destination;
mod endpoint;
mod error;
mod figure;
mod look;
mod message;
mod publish;
mod secret;
mod session;
mod time;
mod value;

pub use capability::{Browse, Capability};
pub use connector::{Connector, ConnectorInfo};
pub use destination::{
    Address, AddressKind, ConsumerGroup, DeadLetters, Destination, Evidence, GroupLag, Partition,
    name_looks_dead,
};
pub use endpoint::{Endpoint, SECRET_OPTIONS};
pub use error::{Error, ErrorKind, Result, Retry};
pub use figure::{Certainty, Figure};
pub use look::{
    Consent, Disposition, Follow, Hold, Isolation, Keeper, Lock, Look, LookCost, LookRequest,
    NoKeeper, Page, Returned, Scan, Start, Verdict,
};
pub use message::{Delivery, Message, Position};
pub use publish::{Atomicity, Outgoing, Partitioning, Receipt, Routes, Target};
pub use secret::{Secret, Secrets};
pub use session::{RedriveRequest, RedriveState, RedriveTask, ServerInfo, Session};
pub use time::Millis;
pub use value::{Header, Typed, Value};
