//! Saves messages that their broker would destroy when they are given back, before the connector rescues them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlo_core::{Address, Delivery, Keeper, Result, Returned};
use tokio::sync::OnceCell;

use crate::{
    audit::{Act, Intent, NewRun, Outcome, Reach, RunId, RunState, Step},
    capture, dead_letter,
    records::{journal_error, position_text},
    shared::{Connection, Shared},
};

/// Keeps copies in the journal, under a run that is begun with the first of them.
#[derive(Debug)]
pub struct JournalKeeper {
    shared: Arc<Shared>,
    place: String,
    broker: &'static str,
    destination: String,
    headers: dead_letter::Mapping,
    run: OnceCell<RunId>,
    kept: AtomicU64,
}

impl JournalKeeper {
    pub fn new(shared: Arc<Shared>, connection: &Connection, at: &Address) -> Self {
        Self {
            shared,
            place: connection.label.clone(),
            broker: connection.broker,
            destination: at.name.clone(),
            headers: connection.headers.clone(),
            run: OnceCell::new(),
            kept: AtomicU64::new(0),
        }
    }

    async fn run(&self) -> Result<&RunId> {
        let begin = async || {
            let new = NewRun {
                act: Act::Look,
                profile: self.place.clone(),
                destination: self.destination.clone(),
                target: Some(self.destination.clone()),
                who: self.shared.settings.who.clone(),
                why: Some(
                    "rescue: giving these messages back would have destroyed them".to_owned(),
                ),
                plan: "{}".to_owned(),
                total: 0,
            };
            self.shared.audit()?.begin(new).await.map_err(journal_error)
        };
        self.run.get_or_try_init(begin).await
    }

    /// Records what became of the rescued messages. When the look failed they stay open, to be restored.
    pub async fn finish(&self, returned: &Result<Returned>) {
        let (Some(run), Ok(audit), Ok(_)) = (self.run.get(), self.shared.audit(), returned) else {
            return;
        };
        let steps = (0..self.kept.load(Ordering::Acquire))
            .map(|seq| {
                Step::new(seq, Outcome::Settled)
                    .detail("put back as a confirmed copy at the end of the queue")
            })
            .collect();
        let recorded = match audit.record(run, steps).await {
            Ok(()) => audit.finish(run, RunState::Done).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tracing::error!(
                run = run.as_str(),
                "the rescue was not recorded as done: {error}"
            );
        }
    }
}

#[async_trait]
impl Keeper for JournalKeeper {
    async fn keep(&self, delivery: &Delivery) -> Result<()> {
        let run = self.run().await?;
        let death = dead_letter::read(delivery, &self.headers);
        let intent = Intent {
            seq: self.kept.fetch_add(1, Ordering::AcqRel),
            position: position_text(&delivery.position),
            sha256: delivery.message.sha256(),
            target: Some(self.destination.clone()),
            capture: Some(capture::to_line(
                delivery,
                self.broker,
                &self.destination,
                death.as_ref(),
            )),
        };
        self.shared
            .audit()?
            .intend(run, Reach::Started, vec![intent])
            .await
            .map_err(journal_error)
    }
}
