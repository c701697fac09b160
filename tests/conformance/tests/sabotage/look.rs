//! The look of a broken session.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use dlo_core::{
    Address, Disposition, Hold, Lock, Look, LookRequest, Page, Result, Returned, Session, Target,
};
use dlo_memory::Broker;
use tokio_util::sync::CancellationToken;

use super::Sabotage;

#[derive(Debug)]
pub struct BrokenLook {
    pub inner: Arc<dyn Look>,
    pub session: Arc<dyn Session>,
    pub broker: Broker,
    pub at: Address,
    pub again: LookRequest,
    pub sabotage: Sabotage,
    pub ended: AtomicBool,
}

impl BrokenLook {
    fn spoil_page(&self, page: &mut Page) {
        let first = page.deliveries.first().cloned();
        match self.sabotage {
            Sabotage::DropsOne if page.deliveries.len() > 1 => {
                page.deliveries.remove(0);
            }
            Sabotage::Reverses => page.deliveries.reverse(),
            Sabotage::HidesGaps => page.scan.gaps = 0,
            Sabotage::DropsHeaders => {
                for delivery in &mut page.deliveries {
                    delivery.message.headers.clear();
                }
            }
            Sabotage::OneLockForAll => {
                for delivery in &mut page.deliveries {
                    delivery.lock = Some(Lock::new("all"));
                }
            }
            Sabotage::OnePlaceForAll => {
                for (delivery, first) in page.deliveries.iter_mut().zip(first.iter().cycle()) {
                    delivery.position = first.position.clone();
                }
            }
            Sabotage::ForgetsItsEnd if page.end => {
                page.end = !self.ended.swap(true, Ordering::SeqCst);
            }
            _ => {}
        }
    }

    fn other_disposition(&self, how: Disposition) -> Disposition {
        match (self.sabotage, how) {
            (Sabotage::ReleaseAcks, Disposition::Release)
            | (Sabotage::DeadLetterAcks, Disposition::DeadLetter) => Disposition::Ack,
            _ => how,
        }
    }

    async fn look_again(&self) -> Result<()> {
        let look = self.session.look(&self.at, self.again.clone()).await?;
        look.next(100, &CancellationToken::new()).await?;
        look.close().await?;
        Ok(())
    }
}

#[async_trait]
impl Look for BrokenLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        if cancel.is_cancelled() && self.sabotage == Sabotage::CancelGivesBack {
            self.inner.close().await?;
        }
        let mut page = self.inner.next(max, cancel).await?;
        if page.deliveries.is_empty() && self.sabotage == Sabotage::HangsWhenEmpty {
            std::future::pending::<()>().await;
        }
        self.spoil_page(&mut page);
        Ok(page)
    }

    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>> {
        if self.sabotage == Sabotage::AckDoesNothing {
            return locks.iter().map(|_| Ok(())).collect();
        }
        let how = self.other_disposition(how);
        let mut answers = self.inner.settle(locks, how).await;
        match self.sabotage {
            Sabotage::AnswersTooFew => drop(answers.pop()),
            Sabotage::SettlesAnything => answers = locks.iter().map(|_| Ok(())).collect(),
            _ => {}
        }
        answers
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        self.inner.extend().await
    }

    fn hold(&self) -> Option<Hold> {
        match self.sabotage {
            Sabotage::HidesItsHold => None,
            _ => self.inner.hold(),
        }
    }

    async fn close(&self) -> Result<Returned> {
        let mut returned = self.inner.close().await?;
        match self.sabotage {
            Sabotage::LosesOneOnClose => {
                if let Some(taken) = self.broker.take(&self.at.name) {
                    self.broker.ack(&taken);
                }
            }
            Sabotage::GivesBackTwice => {
                let first = self.broker.content(&self.at.name).into_iter().next();
                if let Some(message) = first {
                    self.broker
                        .publish(&Target::new(self.at.clone()), message)?;
                }
            }
            Sabotage::ReportsTooFewReturned => {
                returned.given_back = returned.given_back.saturating_sub(1);
            }
            Sabotage::LooksTwice if returned.given_back > 0 => self.look_again().await?,
            _ => {}
        }
        Ok(returned)
    }
}

impl Drop for BrokenLook {
    fn drop(&mut self) {
        if self.sabotage == Sabotage::LeaksWhenDropped {
            std::mem::forget(self.inner.clone());
        }
    }
}
