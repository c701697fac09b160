//! Recognising replayed messages that come back as dead letters.
//!
//! What a check takes stays held until the watch is over. If every check took and gave back the same messages, each would count
//! one delivery more, and within a minute a message would reach its limit only because it was watched.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use dlo_core::{
    Browse, Certainty, Consent, Delivery, Error, Look, LookRequest, Position, Result, Start,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Job, run::Run};
use crate::{
    audit::{Outcome, RunId, Step},
    dead_letter,
    look::JournalKeeper,
    records::journal_error,
    replay::compose::REPLAY_ID,
    shared::{Connection, Shared},
};

/// Messages looked at in one check.
const LOOKED_AT: u64 = 10_000;
/// How often is checked while watching, at least; a short watch is checked ten times.
const EVERY: Duration = Duration::from_secs(2);
/// How long locks are asked for at a time; each check extends them.
const HOLD: Duration = Duration::from_secs(60);

/// A watch over the dead-letter destination of a run.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    from: dlo_core::Address,
    /// Where new records begin, for brokers that read by offset.
    ends: Option<Vec<(i32, i64)>>,
    counted: BTreeSet<u64>,
    /// Looks with what the checks took, the oldest first.
    held: Vec<Taken>,
    notes: Vec<String>,
}

/// One check's look, and what saves the messages that giving back would destroy.
#[derive(Debug)]
struct Taken {
    look: Arc<dyn Look>,
    keeper: Arc<JournalKeeper>,
}

impl Taken {
    async fn give_back(self) -> Result<()> {
        let returned = self.look.close().await;
        self.keeper.finish(&returned).await;
        returned.map(drop)
    }
}

impl Watch {
    /// Notes where the destination ends now, before anything is sent.
    pub async fn begin(job: &Job) -> Result<Self> {
        let connection = job.look.connection.clone();
        let mut ends = None;
        if job.plan.canary.is_some() && job.look.destination.capability.browse == Browse::ByOffset {
            let now = connection.session.describe(&job.plan.from).await?;
            ends = Some(
                now.partitions
                    .iter()
                    .map(|partition| (partition.id, partition.high_watermark))
                    .collect(),
            );
        }
        Ok(Self {
            shared: job.shared.clone(),
            connection,
            from: job.plan.from.clone(),
            ends,
            counted: BTreeSet::new(),
            held: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Watches for that long and says how many messages of the run have come back so far. Each is recorded once.
    pub async fn returned(
        &mut self,
        run: &Run,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<u64> {
        let outcome = self.check_for(run, time, cancel).await;
        self.give_back().await;
        outcome.map(|()| self.counted.len() as u64)
    }

    async fn check_for(
        &mut self,
        run: &Run,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let (end, every) = (Instant::now() + time, EVERY.min(time / 10));
        loop {
            let wait = every.min(end.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            self.check(run, cancel).await?;
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// In the order in which the messages were taken, so that they lie in it again.
    async fn give_back(&mut self) {
        for taken in std::mem::take(&mut self.held) {
            if let Err(error) = taken.give_back().await {
                self.note(format!(
                    "What the watch for returns held could not be given back: {error}"
                ));
            }
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What a person should know about the watch.
    pub fn notes(self) -> Vec<String> {
        self.notes
    }

    async fn check(&mut self, run: &Run, cancel: &CancellationToken) -> Result<()> {
        let seen = match self.look(cancel).await {
            Ok(seen) => seen,
            Err(_) if cancel.is_cancelled() => return Ok(()),
            Err(error) => {
                self.note(format!(
                    "Whether messages came back could not be watched: {error}"
                ));
                return Ok(());
            }
        };
        let mut steps = Vec::new();
        for delivery in &seen {
            let Some(sequence) = sequence_in(&run.id, delivery) else {
                continue;
            };
            if self.counted.insert(sequence) {
                let death = dead_letter::read(delivery, &self.connection.headers);
                let why = death
                    .as_ref()
                    .map(reason)
                    .unwrap_or_else(|| "it came back as a dead letter".to_owned());
                steps.push(Step::new(sequence, Outcome::Returned).detail(why));
            }
        }
        if steps.is_empty() {
            return Ok(());
        }
        run.shared
            .audit()?
            .record(&run.id, steps)
            .await
            .map_err(journal_error)
    }

    /// What lies in the destination and is held by no look of ours.
    async fn look(&mut self, cancel: &CancellationToken) -> Result<Vec<Delivery>> {
        self.extend().await;
        let depth = self.connection.session.describe(&self.from).await?.depth;
        // An estimate of nothing may be late, so only an exact one spares the look.
        if self.ends.is_none() && depth.value == Some(0) && depth.certainty == Certainty::Exact {
            return Ok(Vec::new());
        }
        let taken = self.open().await?;
        let (seen, outcome) = read(taken.look.as_ref(), cancel).await;
        self.read_on(&seen);
        if seen.is_empty() || self.ends.is_some() {
            taken.give_back().await?;
        } else {
            self.held.push(taken);
        }
        outcome.map(|()| seen)
    }

    /// What can no longer be held is in the queue again, and the next check meets it.
    async fn extend(&mut self) {
        for taken in std::mem::take(&mut self.held) {
            match taken.look.extend().await {
                Ok(_) => self.held.push(taken),
                Err(error) => {
                    self.note(format!("The watch for returns lost what it held: {error}"));
                    let _ = taken.give_back().await;
                }
            }
        }
    }

    async fn open(&self) -> Result<Taken> {
        let keeper = JournalKeeper::new(self.shared.clone(), &self.connection, &self.from);
        let keeper = Arc::new(keeper);
        let request = LookRequest {
            start: self.ends.clone().map_or(Start::Oldest, Start::Offsets),
            consent: Consent::Given,
            hold: HOLD,
            keeper: keeper.clone(),
            ..LookRequest::new(LOOKED_AT)
        };
        let look = self.connection.session.look(&self.from, request).await?;
        Ok(Taken { look, keeper })
    }

    /// The next check begins behind what this one saw, where reading is by offset.
    fn read_on(&mut self, seen: &[Delivery]) {
        let Some(ends) = &mut self.ends else { return };
        for delivery in seen {
            let Position::Offset { partition, offset } = delivery.position else {
                continue;
            };
            if let Some((_, next)) = ends.iter_mut().find(|(id, _)| *id == partition) {
                *next = (*next).max(offset + 1);
            }
        }
    }
}

/// Everything until the end of a look, and what ended it early.
async fn read(look: &dyn Look, cancel: &CancellationToken) -> (Vec<Delivery>, Result<()>) {
    let mut seen = Vec::new();
    loop {
        match look.next(1000, cancel).await {
            Ok(page) => {
                seen.extend(page.deliveries);
                if page.end {
                    return (seen, Ok(()));
                }
            }
            Err(error) => return (seen, Err::<(), Error>(error)),
        }
    }
}

/// The message's number in that run, from the header that the replay gave it.
fn sequence_in(run: &RunId, delivery: &Delivery) -> Option<u64> {
    let headers = delivery
        .message
        .headers
        .iter()
        .filter(|header| header.name == REPLAY_ID);
    headers
        .filter_map(|header| RunId::from_replay_id(header.value().as_text()?))
        .find(|(of, _)| of == run)
        .map(|(_, sequence)| sequence)
}

fn reason(death: &dead_letter::Death) -> String {
    match (death.class(), death.message()) {
        (Some(class), Some(message)) => format!("it came back: {class}: {message}"),
        (Some(only), None) | (None, Some(only)) => format!("it came back: {only}"),
        (None, None) => "it came back as a dead letter".to_owned(),
    }
}
