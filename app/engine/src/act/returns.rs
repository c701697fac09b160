//! Recognising replayed messages that come back as dead letters.

use std::{collections::BTreeSet, time::Duration};

use dlo_core::{Browse, Certainty, Consent, Delivery, Error, LookRequest, Result, Start};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Job, run::Run};
use crate::{
    audit::{Outcome, RunId, Step},
    dead_letter,
    records::journal_error,
    replay::compose::REPLAY_ID,
    shared::Connection,
};

/// Messages looked at in one check.
const LOOKED_AT: u64 = 10_000;
/// How often is checked while watching.
const EVERY: Duration = Duration::from_secs(2);

/// A watch over the dead-letter destination of a run.
#[derive(Debug)]
pub struct Watch {
    connection: std::sync::Arc<Connection>,
    from: dlo_core::Address,
    /// Where new records begin, for brokers that read by offset.
    ends: Option<Vec<(i32, i64)>>,
    counted: BTreeSet<u64>,
    notes: Vec<String>,
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
            connection,
            from: job.plan.from.clone(),
            ends,
            counted: BTreeSet::new(),
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
        let end = Instant::now() + time;
        loop {
            let wait = EVERY.min(end.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = cancel.cancelled() => return Ok(self.counted.len() as u64),
                () = tokio::time::sleep(wait) => {}
            }
            self.check(run, cancel).await?;
            if Instant::now() >= end {
                return Ok(self.counted.len() as u64);
            }
        }
    }

    /// What a person should know about the watch.
    pub fn notes(self) -> Vec<String> {
        self.notes
    }

    async fn check(&mut self, run: &Run, cancel: &CancellationToken) -> Result<()> {
        let seen = match self.look(cancel).await {
            Ok(seen) => seen,
            Err(error) => {
                let note = format!("Whether messages came back could not be watched: {error}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
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

    /// What lies in the destination and is not held by our own look.
    async fn look(&self, cancel: &CancellationToken) -> Result<Vec<Delivery>> {
        let depth = self.connection.session.describe(&self.from).await?.depth;
        // An estimate of nothing may be late, so only an exact one spares the look.
        if self.ends.is_none() && depth.value == Some(0) && depth.certainty == Certainty::Exact {
            return Ok(Vec::new());
        }
        let start = self.ends.clone().map_or(Start::Oldest, Start::Offsets);
        let request = LookRequest {
            start,
            consent: Consent::Given,
            hold: Duration::from_secs(30),
            ..LookRequest::new(LOOKED_AT)
        };
        let look = self.connection.session.look(&self.from, request).await?;
        let mut seen = Vec::new();
        let outcome = loop {
            match look.next(1000, cancel).await {
                Ok(page) => {
                    seen.extend(page.deliveries);
                    if page.end {
                        break Ok(());
                    }
                }
                Err(error) => break Err::<(), Error>(error),
            }
        };
        look.close().await?;
        outcome.map(|()| seen)
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
