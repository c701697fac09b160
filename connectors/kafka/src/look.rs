//! An open look: a thread of its own reads, a bounded channel carries batches, and a person's pace is the reader's pace.

use std::{
    collections::VecDeque,
    fmt,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use async_trait::async_trait;
use dlo_core::{
    Delivery, Disposition, Error, ErrorKind, Figure, Hold, Lock, Look, Page, Result, Returned, Scan,
};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// Batches that wait at most; with the bounds of a batch this bounds memory to about 8 MB (or a few very large records).
const BATCHES: usize = 8;
const BATCH_RECORDS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// What the reading thread sends.
enum Parcel {
    Batch {
        deliveries: Vec<Delivery>,
        gaps: u64,
    },
    Failed(Error),
    End,
}

/// The reading thread's side of a look.
pub(crate) struct Sink {
    sender: mpsc::Sender<Parcel>,
    stopped: Arc<AtomicBool>,
    batch: Vec<Delivery>,
    bytes: usize,
    gaps: u64,
    left: u64,
}

impl Sink {
    /// Hands on one record. Breaks when the limit is reached or nobody wants more.
    pub(crate) fn put(&mut self, delivery: Delivery) -> ControlFlow<()> {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        self.bytes += delivery.message.size();
        self.batch.push(delivery);
        if self.left == 0 || self.batch.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        if self.left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Counts offsets without a record.
    pub(crate) fn gap(&mut self, offsets: i64) {
        self.gaps += u64::try_from(offsets).unwrap_or_default();
    }

    /// How many records may still come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Breaks when nobody wants more.
    pub(crate) fn wanted(&self) -> ControlFlow<()> {
        if self.sender.is_closed() || self.stopped.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Sends what has gathered; waits while the reader of the look is slower.
    pub(crate) fn flush(&mut self) -> ControlFlow<()> {
        self.wanted()?;
        if self.batch.is_empty() && self.gaps == 0 {
            return ControlFlow::Continue(());
        }
        let parcel = Parcel::Batch {
            deliveries: std::mem::take(&mut self.batch),
            gaps: std::mem::take(&mut self.gaps),
        };
        self.bytes = 0;
        match self.sender.blocking_send(parcel) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// A look at offsets. It holds nothing, so closing only ends the thread.
pub(crate) struct KafkaLook {
    stopped: Arc<AtomicBool>,
    total: Figure<u64>,
    state: Mutex<State>,
}

impl fmt::Debug for KafkaLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaLook")
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

struct State {
    receiver: mpsc::Receiver<Parcel>,
    pending: VecDeque<Delivery>,
    gaps: u64,
    left: u64,
    notes: Vec<String>,
    failure: Option<Error>,
    ended: bool,
}

/// What is known when a look is opened.
pub(crate) struct Opening {
    pub limit: u64,
    pub total: Figure<u64>,
    pub notes: Vec<String>,
    /// Set when the session ends.
    pub stopped: Arc<AtomicBool>,
}

impl KafkaLook {
    /// Starts the thread that reads. `read` ends when its sink breaks, or with the records.
    pub(crate) fn start(
        opening: Opening,
        read: impl FnOnce(&mut Sink) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(BATCHES);
        let mut sink = Sink {
            sender,
            stopped: opening.stopped.clone(),
            batch: Vec::new(),
            bytes: 0,
            gaps: 0,
            left: opening.limit,
        };
        thread::Builder::new()
            .name("kafka look".to_owned())
            .spawn(move || {
                let answer = read(&mut sink);
                let _ = sink.flush();
                let last = match answer {
                    Ok(()) => Parcel::End,
                    Err(error) => Parcel::Failed(error),
                };
                let _ = sink.sender.blocking_send(last);
            })
            .map_err(|error| {
                Error::new(ErrorKind::Unexpected, "look", "no thread could be started")
                    .caused_by(error)
            })?;
        Ok(Self {
            stopped: opening.stopped,
            total: opening.total,
            state: Mutex::new(State {
                receiver,
                pending: VecDeque::new(),
                gaps: 0,
                left: opening.limit,
                notes: opening.notes,
                failure: None,
                ended: false,
            }),
        })
    }
}

impl State {
    fn take(&mut self, parcel: Option<Parcel>) {
        match parcel {
            Some(Parcel::Batch { deliveries, gaps }) => {
                self.pending.extend(deliveries);
                self.gaps += gaps;
            }
            Some(Parcel::Failed(error)) => {
                self.failure = Some(error);
                self.ended = true;
            }
            Some(Parcel::End) => self.ended = true,
            None if self.ended => {}
            None => {
                let error = Error::new(
                    ErrorKind::Unexpected,
                    "look",
                    "the reading thread broke off",
                );
                self.failure = Some(error);
                self.ended = true;
            }
        }
    }

    /// Takes what has come already, up to `max`.
    fn gather(&mut self, max: usize) {
        while !self.ended && self.pending.len() < max {
            match self.receiver.try_recv() {
                Ok(parcel) => self.take(Some(parcel)),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => self.take(None),
            }
        }
    }

    fn page(&mut self, max: usize, total: Figure<u64>) -> Page {
        let count = self.pending.len().min(max);
        let deliveries: Vec<_> = self.pending.drain(..count).collect();
        self.left = self.left.saturating_sub(count as u64);
        let gaps = std::mem::take(&mut self.gaps);
        let finished = self.ended && self.failure.is_none();
        Page {
            scan: Scan {
                scanned: count as u64 + gaps,
                total,
                gaps,
                errors: 0,
                notes: std::mem::take(&mut self.notes),
            },
            end: self.pending.is_empty() && (finished || self.left == 0),
            deliveries,
        }
    }
}

#[async_trait]
impl Look for KafkaLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        let mut state = self.state.lock().await;
        let max = max.max(1);
        state.gather(max);
        while state.pending.is_empty() && !state.ended && state.left > 0 {
            let parcel = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Error::cancelled("look")),
                parcel = state.receiver.recv() => parcel,
            };
            state.take(parcel);
            state.gather(max);
        }
        match &state.failure {
            Some(failure) if state.pending.is_empty() => Err(failure.clone()),
            _ => Ok(state.page(max, self.total)),
        }
    }

    async fn settle(&self, locks: &[Lock], _: Disposition) -> Vec<Result<()>> {
        locks.iter().map(|_| Err(holds_nothing())).collect()
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        Ok(None)
    }

    fn hold(&self) -> Option<Hold> {
        None
    }

    async fn close(&self) -> Result<Returned> {
        self.stopped.store(true, Ordering::Relaxed);
        let mut state = self.state.lock().await;
        state.receiver.close();
        // A thread that waits for room in the channel sees the end only when the channel is emptied.
        while state.receiver.try_recv().is_ok() {}
        state.pending.clear();
        state.ended = true;
        Ok(Returned::default())
    }
}

impl Drop for KafkaLook {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn holds_nothing() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "settle the record",
        "Kafka keeps a record until its retention ends; nothing is held",
    )
    .advise("Mark it as resolved instead.")
}
