//! A session that breaks one promise, around one that keeps them all.

mod look;

use std::sync::Arc;

use async_trait::async_trait;
use dlo_core::{
    Address, Atomicity, Consent, DeadLetters, Delivery, Destination, Figure, Follow, Isolation,
    Look, LookCost, LookRequest, Message, Outgoing, Partitioning, Position, Receipt,
    RedriveRequest, RedriveState, RedriveTask, Result, Routes, ServerInfo, Session, Start, Target,
    Verdict,
};
use dlo_memory::{Broker, QueueSettings};

use look::BrokenLook;

/// What is broken; each is a bug that a connector could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    // The look.
    DropsOne,
    Reverses,
    LosesOneOnClose,
    GivesBackTwice,
    ReportsTooFewReturned,
    IgnoresLimit,
    ForgetsItsEnd,
    HangsWhenEmpty,
    DropsHeaders,
    LookCreates,
    OneLockForAll,
    OnePlaceForAll,
    CancelGivesBack,
    HidesItsHold,
    DeafTail,
    LeaksWhenDropped,
    SessionLeaksLooks,
    LooksTwice,
    HidesGaps,
    // The cost.
    CostTakesOne,
    CostHidesHarm,
    ConsentIsAssumed,
    ListIsSilentAboutCost,
    // Settling.
    AckDoesNothing,
    ReleaseAcks,
    DeadLetterAcks,
    AnswersTooFew,
    SettlesAnything,
    // Publishing.
    PublishLosesOne,
    PublishDropsHeaders,
    PublishesText,
    NullBecomesEmpty,
    EmptyBecomesNull,
    KeepsOneOfEachHeader,
    ReversesAnswers,
    PublishCreates,
    SwallowsErrors,
    WrongReceipts,
    IgnoresAtomicity,
    IgnoresPartition,
    IgnoresTime,
    // Offsets.
    FetchInvents,
    IgnoresStart,
    IgnoresPartitions,
    // Facts.
    WrongDepth,
    DescribesAnything,
    ListsNothing,
    HidesLinks,
    RoutesAnywhere,
    MangledNames,
    // Removing.
    PurgesNothing,
    TruncatesOneMore,
    RedrivesNothing,
}

#[derive(Debug)]
pub struct BrokenSession {
    pub inner: Arc<dyn Session>,
    pub broker: Broker,
    pub sabotage: Sabotage,
}

impl BrokenSession {
    fn is(&self, sabotage: Sabotage) -> bool {
        self.sabotage == sabotage
    }

    fn spoil_request(&self, request: &mut LookRequest) {
        match self.sabotage {
            Sabotage::IgnoresLimit => request.limit = u64::MAX,
            Sabotage::ConsentIsAssumed => request.consent = Consent::Given,
            Sabotage::IgnoresStart => request.start = Start::Oldest,
            Sabotage::IgnoresPartitions => request.partitions = None,
            Sabotage::DeafTail => request.follow = Follow::Stop,
            _ => {}
        }
    }

    fn spoil_outgoing(&self, out: &mut Outgoing) {
        match self.sabotage {
            Sabotage::IgnoresPartition => out.target.partitioning = Partitioning::ByKey,
            Sabotage::IgnoresTime => out.time = None,
            _ => self.spoil_message(&mut out.message),
        }
    }

    fn spoil_message(&self, message: &mut Message) {
        match self.sabotage {
            Sabotage::PublishDropsHeaders => message.headers.clear(),
            Sabotage::PublishesText => {
                let body = message.body.take().unwrap_or_default();
                message.body = Some(String::from_utf8_lossy(&body).into_owned().into());
            }
            Sabotage::NullBecomesEmpty => {
                message.body.get_or_insert_default();
                message.key.get_or_insert_default();
            }
            Sabotage::EmptyBecomesNull => {
                message.key = message.key.take().filter(|key| !key.is_empty());
                message.body = message.body.take().filter(|body| !body.is_empty());
            }
            Sabotage::KeepsOneOfEachHeader => {
                message.headers.sort_by(|a, b| a.name.cmp(&b.name));
                message.headers.dedup_by(|a, b| a.name == b.name);
            }
            _ => {}
        }
    }

    fn spoil_destination(&self, described: &mut Destination) {
        match self.sabotage {
            Sabotage::WrongDepth => described.depth = Figure::exact(1),
            Sabotage::ListIsSilentAboutCost => described.look.line.clear(),
            Sabotage::HidesLinks => {
                described.sources.clear();
                described.dead_letters_to = None;
                described.dead_letters = DeadLetters::No;
            }
            Sabotage::MangledNames => {
                described.address.name = described.address.name.replace(' ', "+");
            }
            _ => {}
        }
    }

    fn spoil_answers(&self, answers: &mut [Result<Receipt>]) {
        match self.sabotage {
            Sabotage::ReversesAnswers => answers.reverse(),
            Sabotage::SwallowsErrors => {
                for answer in answers {
                    *answer = Ok(Receipt::default());
                }
            }
            Sabotage::WrongReceipts => {
                for receipt in answers.iter_mut().flatten() {
                    if let Some(Position::Offset { offset, .. }) = &mut receipt.position {
                        *offset -= 1;
                    }
                }
            }
            _ => {}
        }
    }
}

#[async_trait]
impl Session for BrokenSession {
    fn server(&self) -> ServerInfo {
        self.inner.server()
    }

    async fn destinations(&self) -> Result<Vec<Destination>> {
        if self.is(Sabotage::ListsNothing) {
            return Ok(Vec::new());
        }
        self.inner.destinations().await
    }

    async fn describe(&self, at: &Address) -> Result<Destination> {
        match self.inner.describe(at).await {
            Ok(mut described) => {
                self.spoil_destination(&mut described);
                Ok(described)
            }
            Err(_) if self.is(Sabotage::DescribesAnything) => {
                Ok(Destination::new(at.clone(), "queue"))
            }
            Err(error) => Err(error),
        }
    }

    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost> {
        let mut cost = self.inner.cost(at, request).await?;
        if self.is(Sabotage::CostTakesOne)
            && let Some(taken) = self.broker.take(&at.name)
        {
            self.broker.ack(&taken);
        }
        if self.is(Sabotage::CostHidesHarm) {
            cost.verdict = Verdict::Fine;
        }
        Ok(cost)
    }

    async fn look(&self, at: &Address, mut request: LookRequest) -> Result<Arc<dyn Look>> {
        if self.is(Sabotage::LookCreates) && self.inner.describe(at).await.is_err() {
            self.broker
                .declare_queue(&at.name, QueueSettings::classic());
        }
        self.spoil_request(&mut request);
        let again = request.clone();
        let inner = self.inner.look(at, request).await?;
        Ok(Arc::new(BrokenLook {
            inner,
            session: self.inner.clone(),
            broker: self.broker.clone(),
            at: at.clone(),
            again,
            sabotage: self.sabotage,
            ended: false.into(),
        }))
    }

    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        isolation: Isolation,
    ) -> Result<Vec<Option<Delivery>>> {
        let mut found = self.inner.fetch(at, positions, isolation).await?;
        if self.is(Sabotage::FetchInvents) {
            let some = found.iter().flatten().next().cloned();
            for missing in found.iter_mut().filter(|found| found.is_none()) {
                missing.clone_from(&some);
            }
        }
        Ok(found)
    }

    async fn routes(&self, to: &Target) -> Result<Routes> {
        let mut routes = self.inner.routes(to).await?;
        routes.exists |= self.is(Sabotage::RoutesAnywhere);
        Ok(routes)
    }

    async fn publish(
        &self,
        mut batch: Vec<Outgoing>,
        mut atomicity: Atomicity,
    ) -> Vec<Result<Receipt>> {
        for out in &mut batch {
            self.spoil_outgoing(out);
            let name = &out.target.address.name;
            if self.is(Sabotage::PublishCreates)
                && self.inner.describe(&out.target.address).await.is_err()
            {
                self.broker.declare_queue(name, QueueSettings::classic());
            }
        }
        if self.is(Sabotage::IgnoresAtomicity) {
            atomicity = Atomicity::Each;
        }
        if self.is(Sabotage::PublishLosesOne) && batch.len() > 1 {
            batch.pop();
            let mut answers = self.inner.publish(batch, atomicity).await;
            answers.push(Ok(Receipt::default()));
            return answers;
        }
        let mut answers = self.inner.publish(batch, atomicity).await;
        self.spoil_answers(&mut answers);
        answers
    }

    async fn redrive(&self, request: &RedriveRequest) -> Result<RedriveTask> {
        if self.is(Sabotage::RedrivesNothing) {
            return Ok(RedriveTask {
                id: "nothing".to_owned(),
                state: RedriveState::Completed,
                moved: Figure::exact(0),
                to_move: Figure::exact(0),
                failure: None,
            });
        }
        self.inner.redrive(request).await
    }

    async fn redrives(&self, from: &Address) -> Result<Vec<RedriveTask>> {
        self.inner.redrives(from).await
    }

    async fn cancel_redrive(&self, task: &RedriveTask) -> Result<()> {
        self.inner.cancel_redrive(task).await
    }

    async fn purge(&self, at: &Address) -> Result<Figure<u64>> {
        if self.is(Sabotage::PurgesNothing) {
            return Ok(Figure::unknown());
        }
        self.inner.purge(at).await
    }

    async fn truncate(&self, at: &Address, before: &[(i32, i64)]) -> Result<()> {
        let more = i64::from(self.is(Sabotage::TruncatesOneMore));
        let before: Vec<_> = before
            .iter()
            .map(|(p, offset)| (*p, offset + more))
            .collect();
        self.inner.truncate(at, &before).await
    }

    async fn close(&self) -> Result<()> {
        if self.is(Sabotage::SessionLeaksLooks) {
            return Ok(());
        }
        self.inner.close().await
    }
}
