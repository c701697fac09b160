//! Publishing a list of messages and settling their originals: the heart of replay, restore and import.
//!
//! Four stages work on different batches at the same time, each handing on only what the one before has made safe:
//! 1. *write*: the intent and a copy of each message go to the journal, at the asked rate;
//! 2. *publish*: the batch is published, and the broker's answers are awaited;
//! 3. *confirm*: what the broker answered is recorded;
//! 4. *settle*: only what is recorded as confirmed is removed from where it was, and that is recorded too.
//!
//! Killed anywhere, a message is at the old place, at the new one, or at both; never at neither.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    iter::Peekable,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use dlo_core::{
    Atomicity, Delivery, Disposition, Error, ErrorKind, Look, Millis, Outgoing, Receipt, Result,
    Session,
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::{Intent, Outcome, Reach, RunId, RunState, Step},
    capture, dead_letter,
    event::{News, RunPhase, RunProgress},
    records::{journal_error, position_text},
    shared::{Reporter, Shared, lock},
    store::RowState,
};

/// Messages journalled, published and settled together when no rate is asked for.
const BATCH: usize = 1000;
/// A batch of large messages ends earlier: several of them are in memory and on the wire at a time.
const BATCH_BYTES: usize = 16 << 20;
/// Batches that may wait between two stages.
const AHEAD: usize = 2;
const PROGRESS: Duration = Duration::from_millis(200);
/// The rate shown is that of so much time.
const RATE_WINDOW: Duration = Duration::from_secs(5);

/// One message on its way.
#[derive(Clone, Debug)]
pub struct Item {
    pub sequence: u64,
    /// The row of the look it comes from, if it does.
    pub row: Option<u32>,
    /// The message as it lies there now, for its lock and its position.
    pub original: Option<Delivery>,
    pub sha256: String,
    pub position: String,
    pub target: String,
    pub outgoing: Arc<Outgoing>,
    /// What was edited, in words for the audit trail; `None` when the message goes out as it was.
    pub edited: Option<String>,
    /// What is to be kept in order: a record key or group. Once one of a key failed, later ones of it do not go.
    pub order_key: Option<Vec<u8>>,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Pace {
    pub rate: Option<u32>,
    pub atomicity: Atomicity,
}

/// What becomes of the original of a confirmed message.
#[derive(Clone, Debug)]
pub enum Originals {
    /// Removed by its lock.
    Remove(Arc<dyn Look>),
    /// Marked as resolved in the journal, because the broker cannot remove it.
    Resolve { place: String, destination: String },
    /// There is none, or it stays as it is.
    Leave,
}

/// Pause, resume and progress of a running run.
#[derive(Debug, Default)]
pub struct RunControl {
    paused: AtomicBool,
    resumed: Notify,
    counts: Mutex<Counts>,
    total: AtomicU64,
    phase: Mutex<RunPhase>,
}

#[derive(Debug, Default)]
struct Counts {
    by_sequence: BTreeMap<u64, Outcome>,
    by_outcome: BTreeMap<Outcome, u64>,
    /// Moments at which messages came to an end, for the rate.
    ended: VecDeque<(Instant, u64)>,
}

impl RunControl {
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicU64::new(total),
            ..Self::default()
        })
    }

    pub fn pause(&self) {
        self.paused.store(true, Ordering::Release);
        *lock(&self.phase) = RunPhase::Paused;
    }

    pub fn resume(&self) {
        self.paused.store(false, Ordering::Release);
        *lock(&self.phase) = RunPhase::Running;
        self.resumed.notify_waiters();
    }

    pub fn set_phase(&self, phase: RunPhase) {
        *lock(&self.phase) = phase;
    }

    /// Waits while the run is paused.
    async fn may_go_on(&self, cancel: &CancellationToken) {
        loop {
            let resumed = self.resumed.notified();
            if !self.paused.load(Ordering::Acquire) {
                return;
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = resumed => {}
            }
        }
    }

    fn note(&self, steps: &[Step]) {
        let mut counts = lock(&self.counts);
        let mut ended = 0;
        for step in steps {
            if let Some(before) = counts.by_sequence.insert(step.seq, step.outcome)
                && let Some(count) = counts.by_outcome.get_mut(&before)
            {
                *count -= 1;
            }
            *counts.by_outcome.entry(step.outcome).or_default() += 1;
            ended += u64::from(step.outcome.is_final());
        }
        if ended > 0 {
            counts.ended.push_back((Instant::now(), ended));
        }
    }

    /// The outcome of each message so far.
    pub fn outcomes(&self) -> BTreeMap<u64, Outcome> {
        lock(&self.counts).by_sequence.clone()
    }

    pub fn progress(&self, run: &RunId) -> RunProgress {
        let mut counts = lock(&self.counts);
        let now = Instant::now();
        while counts
            .ended
            .front()
            .is_some_and(|(at, _)| now - *at > RATE_WINDOW)
        {
            counts.ended.pop_front();
        }
        let recent: u64 = counts.ended.iter().map(|(_, count)| count).sum();
        let span = counts
            .ended
            .front()
            .map_or(1.0, |(at, _)| (now - *at).as_secs_f64().max(0.2));
        let rate = recent as f64 / span;
        let total = self.total.load(Ordering::Relaxed);
        let is_done =
            |(outcome, _): &(&Outcome, &u64)| outcome.is_final() || **outcome == Outcome::Unknown;
        let done: u64 = counts
            .by_outcome
            .iter()
            .filter(is_done)
            .map(|(_, count)| count)
            .sum();
        let left =
            (rate > 0.0).then(|| Duration::from_secs_f64(total.saturating_sub(done) as f64 / rate));
        RunProgress {
            run: run.to_string(),
            total,
            done,
            outcomes: counts
                .by_outcome
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(outcome, count)| (outcome.to_string(), *count))
                .collect(),
            rate,
            left,
            phase: lock(&self.phase).clone(),
        }
    }
}

/// What a saved copy says beside the message.
#[derive(Clone, Debug)]
pub struct Copies {
    pub broker: &'static str,
    pub destination: String,
    pub headers: dead_letter::Mapping,
}

impl Copies {
    /// The message as one line of a capture file.
    pub fn line(&self, original: &Delivery) -> String {
        let death = dead_letter::read(original, &self.headers);
        capture::to_line(original, self.broker, &self.destination, death.as_ref())
    }
}

/// Everything a run needs, shared by its stages.
#[derive(Debug)]
pub struct Run {
    pub shared: Arc<Shared>,
    pub id: RunId,
    pub control: Arc<RunControl>,
    pub to: Arc<dyn Session>,
    pub originals: Originals,
    pub pace: Pace,
    /// Rows of this view follow the outcomes.
    pub view: Option<Arc<crate::store::LookView>>,
    pub reporter: Reporter,
    /// How originals are saved; `None` when the copies are saved already.
    pub copies: Option<Copies>,
    /// Recorded instead of `settled` when a message arrived and nothing had to be removed.
    pub done: Outcome,
}

type Batch = Vec<Item>;

/// A batch with the broker's answers.
struct Answered {
    goes: Vec<(Item, Result<Receipt>)>,
    /// Not sent, because an earlier message of their key failed.
    held_back: Batch,
}

impl Run {
    /// Carries out the items in order and returns when each has an outcome or the run was stopped.
    ///
    /// # Errors
    /// Of the journal: then nothing further is published or removed. Of single messages: never, they are outcomes.
    pub async fn carry_out(
        self: &Arc<Self>,
        items: Vec<Item>,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let (written, to_publish) = mpsc::channel::<Batch>(AHEAD);
        let (answered, to_record) = mpsc::channel::<Answered>(AHEAD);
        let (confirmed, to_settle) = mpsc::channel::<Batch>(AHEAD);
        // Set by a failing stage; the stages before it then stop, those after it finish what they have.
        let stop = cancel.child_token();
        let ticker = tokio::spawn(report(self.clone(), stop.clone()));
        // Each stage is a task of its own, so that composing copies does not hold up the broker's answers.
        let (writer, writing) = (self.clone(), stop.clone());
        let writer = tokio::spawn(async move {
            stopping(&writing, writer.write(items, written, &writing)).await
        });
        let (publisher, publishing) = (self.clone(), stop.clone());
        let publisher =
            tokio::spawn(async move { publisher.publish(to_publish, answered, &publishing).await });
        let (confirmer, confirming) = (self.clone(), stop.clone());
        let confirmer = tokio::spawn(async move {
            stopping(&confirming, confirmer.confirm(to_record, confirmed)).await
        });
        let settle = stopping(&stop, self.settle(to_settle)).await;
        let (write, publish, confirm) = (writer.await, publisher.await, confirmer.await);
        stop.cancel();
        let _ = ticker.await;
        self.reporter
            .tell(News::RunProgress(self.control.progress(&self.id)))
            .await;
        publish.map_err(ended_early)?;
        write
            .map_err(ended_early)?
            .and(confirm.map_err(ended_early)?)
            .and(settle)
    }

    /// Closes the run in the journal, as cancelled when it was stopped before its end.
    pub async fn finish(&self, state: RunState) -> Result<()> {
        self.shared
            .audit()?
            .finish(&self.id, state)
            .await
            .map_err(journal_error)
    }

    async fn write(
        &self,
        items: Vec<Item>,
        written: mpsc::Sender<Batch>,
        stop: &CancellationToken,
    ) -> Result<()> {
        let size = self
            .pace
            .rate
            .map_or(BATCH, |rate| (rate as usize / 5).clamp(1, BATCH));
        let started = Instant::now();
        let mut sent = 0usize;
        let mut items = items.into_iter().peekable();
        loop {
            let batch = next_batch(&mut items, size);
            if batch.is_empty() {
                return Ok(());
            }
            self.control.may_go_on(stop).await;
            if let Some(rate) = self.pace.rate.filter(|rate| *rate > 0) {
                let due = started + Duration::from_secs_f64(sent as f64 / f64::from(rate));
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep_until(due) => {}
                }
            }
            if stop.is_cancelled() {
                return Ok(());
            }
            sent += batch.len();
            self.intend(&batch).await?;
            if written.send(batch).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn intend(&self, batch: &[Item]) -> Result<()> {
        let copies = self.copies.as_ref();
        let intents = batch
            .iter()
            .map(|item| Intent {
                seq: item.sequence,
                position: item.position.clone(),
                sha256: item.sha256.clone(),
                target: Some(item.target.clone()),
                capture: copies
                    .zip(item.original.as_ref())
                    .map(|(copies, original)| copies.line(original)),
            })
            .collect();
        self.shared
            .audit()?
            .intend(&self.id, Reach::Started, intents)
            .await
            .map_err(journal_error)
    }

    /// Publishes batch by batch. A batch that was journalled when the run was stopped still goes out, unless the journal failed.
    async fn publish(
        &self,
        mut written: mpsc::Receiver<Batch>,
        answered: mpsc::Sender<Answered>,
        stop: &CancellationToken,
    ) {
        let mut broken_keys = HashSet::new();
        while let Some(batch) = written.recv().await {
            let is_broken = |item: &Item| {
                item.order_key
                    .as_ref()
                    .is_some_and(|key| broken_keys.contains(key))
            };
            let (held_back, goes): (Batch, Batch) = batch.into_iter().partition(is_broken);
            if answered.is_closed() && stop.is_cancelled() {
                return;
            }
            let outgoing = goes
                .iter()
                .map(|item| item.outgoing.as_ref().clone())
                .collect();
            let answers = self.to.publish(outgoing, self.pace.atomicity).await;
            for (item, answer) in goes.iter().zip(&answers) {
                if answer.is_err() {
                    broken_keys.extend(item.order_key.clone());
                }
            }
            let batch = Answered {
                goes: goes.into_iter().zip(answers).collect(),
                held_back,
            };
            if answered.send(batch).await.is_err() {
                return;
            }
        }
    }

    async fn confirm(
        &self,
        mut answered: mpsc::Receiver<Answered>,
        confirmed: mpsc::Sender<Batch>,
    ) -> Result<()> {
        while let Some(batch) = answered.recv().await {
            let mut steps: Vec<Step> = batch.held_back.iter().map(out_of_order).collect();
            let mut arrived = Batch::with_capacity(batch.goes.len());
            for (item, answer) in batch.goes {
                steps.push(published_step(&item, &answer));
                match answer {
                    Ok(_) => arrived.push(item),
                    Err(error) => {
                        let unknown = error.kind() == ErrorKind::OutcomeUnknown;
                        self.mark_row(&item, unknown, RowState::Unknown);
                    }
                }
            }
            self.record(steps).await?;
            if !arrived.is_empty() && confirmed.send(arrived).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn settle(&self, mut confirmed: mpsc::Receiver<Batch>) -> Result<()> {
        while let Some(batch) = confirmed.recv().await {
            let steps = match &self.originals {
                Originals::Remove(look) => self.remove(look, &batch).await,
                Originals::Resolve { place, destination } => {
                    let positions = batch.iter().map(|item| item.position.clone()).collect();
                    let audit = self.shared.audit()?;
                    audit
                        .resolve(place, destination, positions, &self.id)
                        .await
                        .map_err(journal_error)?;
                    self.end_all(&batch, RowState::Resolved)
                }
                Originals::Leave => self.end_all(&batch, RowState::Here),
            };
            self.record(steps).await?;
        }
        Ok(())
    }

    async fn remove(&self, look: &Arc<dyn Look>, batch: &[Item]) -> Vec<Step> {
        let locks: Vec<_> = batch
            .iter()
            .filter_map(|item| {
                item.original
                    .as_ref()
                    .and_then(|original| original.lock.clone())
            })
            .collect();
        if locks.len() != batch.len() {
            let why = "it was not held, so it was not removed";
            return batch
                .iter()
                .map(|item| Step::new(item.sequence, Outcome::Confirmed).detail(why))
                .collect();
        }
        let answers = look.settle(&locks, Disposition::Ack).await;
        batch
            .iter()
            .zip(answers)
            .map(|(item, answer)| {
                self.mark_row(item, answer.is_ok(), RowState::Replayed);
                self.mark_row(item, answer.is_err(), RowState::Stale);
                removed_step(item, answer, self.done)
            })
            .collect()
    }

    fn end_all(&self, batch: &[Item], state: RowState) -> Vec<Step> {
        batch
            .iter()
            .map(|item| {
                self.mark_row(item, state != RowState::Here, state);
                Step::new(item.sequence, self.done)
            })
            .collect()
    }

    fn mark_row(&self, item: &Item, when: bool, state: RowState) {
        if let (true, Some(view), Some(row)) = (when, &self.view, item.row) {
            view.set_state([row], state);
        }
    }

    async fn record(&self, steps: Vec<Step>) -> Result<()> {
        self.control.note(&steps);
        self.shared
            .audit()?
            .record(&self.id, steps)
            .await
            .map_err(journal_error)
    }
}

/// The next messages, up to a number and to a size; at least one while there is one.
fn next_batch(items: &mut Peekable<impl Iterator<Item = Item>>, most: usize) -> Batch {
    let (mut batch, mut bytes) = (Batch::new(), 0);
    while batch.len() < most {
        let fits = |item: &Item| batch.is_empty() || bytes + body_size(item) <= BATCH_BYTES;
        let Some(item) = items.next_if(fits) else {
            break;
        };
        bytes += body_size(&item);
        batch.push(item);
    }
    batch
}

fn body_size(item: &Item) -> usize {
    item.outgoing
        .message
        .body
        .as_ref()
        .map_or(0, |body| body.len())
}

fn ended_early(error: tokio::task::JoinError) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        "carry out the run",
        format!("a stage ended early: {error}"),
    )
    .advise("`dlo runs` shows what became of each message.")
}

/// Cancels `stop` when a stage fails, so that nothing new is begun.
async fn stopping(stop: &CancellationToken, stage: impl Future<Output = Result<()>>) -> Result<()> {
    let outcome = stage.await;
    if outcome.is_err() {
        stop.cancel();
    }
    outcome
}

async fn report(run: Arc<Run>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PROGRESS) => {}
        }
        run.reporter
            .tell(News::RunProgress(run.control.progress(&run.id)))
            .await;
    }
}

fn out_of_order(item: &Item) -> Step {
    Step::new(item.sequence, Outcome::Skipped)
        .detail("an earlier message with the same key failed, and this one must not overtake it")
}

fn published_step(item: &Item, answer: &Result<Receipt>) -> Step {
    match answer {
        Ok(receipt) => {
            let edited = item
                .edited
                .iter()
                .map(|edited| format!("; {edited}"))
                .collect::<String>();
            let step = Step::new(item.sequence, Outcome::Confirmed)
                .detail(format!("{}{edited}", receipt.answer));
            match &receipt.position {
                Some(position) => step.landed(position_text(position)),
                None => step,
            }
        }
        Err(error) => {
            Step::new(item.sequence, publish_outcome(error.kind())).detail(error.to_string())
        }
    }
}

/// What a refused publish means for the message.
fn publish_outcome(kind: ErrorKind) -> Outcome {
    match kind {
        ErrorKind::Unroutable => Outcome::Unroutable,
        ErrorKind::OutcomeUnknown => Outcome::Unknown,
        _ => Outcome::Failed,
    }
}

/// The copy has arrived by now, so a failing removal can only mean that the message exists twice.
fn removed_step(item: &Item, answer: Result<(), Error>, done: Outcome) -> Step {
    match answer {
        Ok(()) => Step::new(item.sequence, done),
        Err(error) => Step::new(item.sequence, Outcome::Unknown).detail(format!(
            "it arrived, but whether the original was removed is not known: {error}"
        )),
    }
}

/// A moment some time from now, for [`RunPhase::Watching`].
pub fn after(wait: Duration) -> Millis {
    Millis::now().plus(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
