//! A live connection to a broker.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::{
    Address, Atomicity, Delivery, Destination, Figure, Isolation, Look, LookCost, LookRequest,
    Outgoing, Position, Receipt, Result, Routes, Target,
};

/// Who answers at the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// `RabbitMQ`, `Apache Kafka`, `Amazon SQS`.
    pub product: String,
    /// As the server says it; `None` when it does not.
    pub version: Option<String>,
    /// Further facts for a person, for example `("management API", "not reachable: …")`.
    pub facts: Vec<(String, String)>,
}

/// What is asked of the broker's own mover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveRequest {
    pub from: Address,
    /// `None` sends each message to where it came from.
    pub to: Option<Address>,
    /// Messages a second at most; `None` is the broker's choice.
    pub rate: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedriveState {
    Running,
    Completed,
    Cancelling,
    Cancelled,
    Failed,
}

/// A move that the broker itself carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveTask {
    /// The broker's handle of the task, for cancelling.
    pub id: String,
    pub state: RedriveState,
    pub moved: Figure<u64>,
    pub to_move: Figure<u64>,
    /// Why it failed, in the broker's words.
    pub failure: Option<String>,
}

/// A live connection. Cheap to share; all methods may be called at once.
///
/// There are no default bodies: a layer around a session that forgets to forward must not compile. What a destination
/// cannot do (see [`crate::Capability`]) is answered with [`crate::ErrorKind::Unsupported`].
#[async_trait]
pub trait Session: Debug + Send + Sync {
    fn server(&self) -> ServerInfo;

    /// All destinations that the credentials may see, dead-letter ones included, in no particular order.
    async fn destinations(&self) -> Result<Vec<Destination>>;

    /// One destination with every fact that can be had.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied`.
    async fn describe(&self, at: &Address) -> Result<Destination>;

    /// What this look would cost, from the destination's real settings at this moment. Harmless.
    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost>;

    /// Opens a look.
    ///
    /// - Refuses with [`crate::ErrorKind::Refused`] when the cost says so or consent is missing.
    /// - Destroys nothing, reorders nothing, and takes no more than `request.limit` messages at a time.
    async fn look(&self, at: &Address, request: LookRequest) -> Result<Arc<dyn Look>>;

    /// Reads single positions again, with `None` for one that is no longer there. Needs `fetch`.
    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        isolation: Isolation,
    ) -> Result<Vec<Option<Delivery>>>;

    /// Who would get a message published there. Harmless: publishes nothing.
    async fn routes(&self, to: &Target) -> Result<Routes>;

    /// Publishes messages in order and answers for each when the broker has confirmed it.
    ///
    /// - `Ok` means stored. `Unroutable`, `TooLarge`, `Rejected` mean surely not stored.
    /// - [`crate::ErrorKind::OutcomeUnknown`] means that it may have been stored; it is never tried again here.
    /// - Pipelines as the broker likes it; the caller bounds the batch.
    /// - Never creates a destination.
    async fn publish(&self, batch: Vec<Outgoing>, atomicity: Atomicity) -> Vec<Result<Receipt>>;

    /// Starts the broker's own move. Needs `redrive`.
    async fn redrive(&self, request: &RedriveRequest) -> Result<RedriveTask>;

    /// The moves the broker knows of for this source, newest first.
    async fn redrives(&self, from: &Address) -> Result<Vec<RedriveTask>>;

    /// Asks to stop a move; what was moved stays moved.
    async fn cancel_redrive(&self, task: &RedriveTask) -> Result<()>;

    /// Removes every message and says how many, where the broker tells. Needs `purge`.
    async fn purge(&self, at: &Address) -> Result<Figure<u64>>;

    /// Deletes everything before these offsets, given as `(partition, first offset to stay)`. Needs `truncate`.
    async fn truncate(&self, at: &Address, before: &[(i32, i64)]) -> Result<()>;

    /// Ends the connection; looks that are still open are closed first.
    async fn close(&self) -> Result<()>;
}
