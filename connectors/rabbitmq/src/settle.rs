//! Settling held messages, and giving the rest back.
//!
//! Separate because AMQP confirms no ack: what can be promised is only that the broker has read it (a round trip after it), and
//! on a lost connection the last ones are unknown. On quorum queues a channel keeps at most 32 settlements on the way and drops
//! the others when it is closed, so single ones go in small batches and a close waits until they have arrived.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use dlo_core::{Disposition, Error, ErrorKind, Lock, Result, Returned};
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio_util::sync::CancellationToken;

use crate::{
    connect::{answer, answer_within},
    look::{Finished, Inner, State},
    take::Step,
    version::GiveBack,
};

/// Single settlements between two round trips: half of what a channel keeps on the way to a quorum queue.
const BATCH: usize = 16;
/// A queue needs a moment to apply what its channel has read; closing earlier can lose a settlement.
const CALM: Duration = Duration::from_millis(150);
/// Giving back a hundred thousand messages takes the broker a while.
const RETURN: Duration = Duration::from_secs(30);

impl Inner {
    /// Settles these locks, with one answer each.
    pub async fn settle(
        &self,
        state: &mut State,
        locks: &[Lock],
        how: Disposition,
    ) -> Vec<Result<()>> {
        if how == Disposition::DeadLetter && !self.rules.has_dead_letter_exchange {
            return all(locks, &no_dead_letter_exchange(&self.rules.queue));
        }
        match &state.finished {
            Some(Finished::Lost(error)) => return all(locks, &lost(error)),
            Some(Finished::Closed) => return all(locks, &not_held("the look is closed")),
            None => {}
        }
        // With a live consumer, every settled message would make the broker push another one.
        if let Err(error) = self.pause(state).await {
            let error = self.note_failure(state, error);
            return all(locks, &lost(&error));
        }
        let found: Vec<Result<u64>> = locks.iter().map(|lock| state.tag_of(lock)).collect();
        let tags: BTreeSet<u64> = found
            .iter()
            .filter_map(|tag| tag.as_ref().ok().copied())
            .collect();
        let sent = self.send(state, &tags, how).await;
        state.settled_at = Some(Instant::now());
        if let Err(error) = sent {
            let error = unknown(&self.note_failure(state, error));
            return found
                .into_iter()
                .map(|tag| tag.and(Err(error.clone())))
                .collect();
        }
        state.forget(locks, &tags);
        found.into_iter().map(|tag| tag.map(|_| ())).collect()
    }

    /// Gives everything back that is still held, once.
    pub async fn close(&self) -> Returned {
        let mut state = self.state.lock().await;
        match &state.finished {
            Some(Finished::Closed) => return Returned::default(),
            Some(Finished::Lost(_)) => {
                let returned = self.after_loss(&mut state);
                state.finished = Some(Finished::Closed);
                return returned;
            }
            None => {}
        }
        // What was on its way may hold a message that must be rescued first.
        let paused = match self.pause(&mut state).await {
            Ok(()) => self.top_up(&mut state).await,
            Err(error) => Err(error),
        };
        if let Err(error) = paused {
            state.notes.push(format!("{error}."));
        }
        let outcome = self.give_back(&mut state).await;
        let returned = match outcome {
            Ok(()) => self.returned(&mut state),
            Err(error) => {
                let _ = self.note_failure(&mut state, error);
                self.after_loss(&mut state)
            }
        };
        state.finished = Some(Finished::Closed);
        self.summarise(&state);
        let _ = answer(
            "close the connection",
            self.connection.close(200, "OK".into()),
        )
        .await;
        returned
    }

    async fn pause(&self, state: &mut State) -> Result<()> {
        self.close_window(state).await?;
        self.examine(state).await
    }

    /// Sends the settlements and makes the round trip that proves that the broker has read them.
    async fn send(&self, state: &State, tags: &BTreeSet<u64>, how: Disposition) -> Result<()> {
        let (through, singles) = state.split(tags);
        if let Some(through) = through {
            self.send_one(through, how, Reach::Through).await?;
        }
        for batch in singles.chunks(BATCH) {
            for tag in batch {
                self.send_one(*tag, how, Reach::Only).await?;
            }
            self.round_trip().await?;
        }
        self.round_trip().await
    }

    async fn send_one(&self, tag: u64, how: Disposition, reach: Reach) -> Result<()> {
        let multiple = reach == Reach::Through;
        match how {
            Disposition::Ack => {
                let options = BasicAckOptions { multiple };
                answer("settle the message", self.channel.basic_ack(tag, options)).await
            }
            Disposition::Release | Disposition::DeadLetter => {
                let requeue = how == Disposition::Release;
                let options = BasicNackOptions { multiple, requeue };
                answer("settle the message", self.channel.basic_nack(tag, options)).await
            }
        }
    }

    /// One answer from the channel and one from the queue behind it.
    async fn round_trip(&self) -> Result<()> {
        self.set_prefetch(1).await?;
        self.count_ready().await.map(|_| ())
    }

    /// A quorum queue keeps returned messages in a list of their own, which the next look takes from first and
    /// returns to the end of. A look that took fewer than are in it would turn the queue around, so it takes the others as well,
    /// for the moment of giving back.
    async fn top_up(&self, state: &mut State) -> Result<()> {
        let cancel = CancellationToken::new();
        state.reach = self.rules.returned_before;
        while state.taken < state.reach {
            if self.step(state, &cancel).await? != Step::Took {
                break;
            }
        }
        self.pause(state).await
    }

    async fn give_back(&self, state: &mut State) -> Result<()> {
        if let Some(settled_at) = state.settled_at {
            tokio::time::sleep(CALM.saturating_sub(settled_at.elapsed())).await;
        }
        let operation = "give the messages back";
        if self.rules.give_back == GiveBack::Nack && !state.held.is_empty() {
            let before = self.count_ready().await?;
            // Tag 0 is everything this channel holds, also what a cancelled consumer got too late for us to see.
            let options = BasicNackOptions {
                multiple: true,
                requeue: true,
            };
            answer_within(RETURN, operation, self.channel.basic_nack(0, options)).await?;
            self.set_prefetch(1).await?;
            self.await_return(before + state.held.len() as u64).await?;
        }
        answer_within(RETURN, operation, self.channel.close(200, "OK".into())).await
    }

    /// Waits until the queue counts what was given back: closing the channel earlier would count as a failed delivery. When
    /// somebody else takes messages meanwhile the count never comes, so the wait has an end.
    async fn await_return(&self, expected: u64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(2);
        let mut pause = Duration::from_millis(5);
        while self.count_ready().await? < expected && Instant::now() < end {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CALM);
        }
        Ok(())
    }

    fn returned(&self, state: &mut State) -> Returned {
        let given_back = state.held.len() as u64;
        if given_back > 0 {
            let counted = u64::from(self.rules.give_back == GiveBack::CloseChannel);
            (self.after_return)(state.highest_count + counted, given_back);
        }
        state.held.clear();
        Returned {
            given_back,
            lost_hold: 0,
            rescued: state.rescued.count,
            notes: notes(state),
        }
    }

    fn after_loss(&self, state: &mut State) -> Returned {
        let lost_hold = std::mem::take(&mut state.held).len() as u64;
        if lost_hold > 0 {
            (self.after_return)(state.highest_count + 1, lost_hold);
        }
        Returned {
            given_back: 0,
            lost_hold,
            rescued: state.rescued.count,
            notes: notes(state),
        }
    }
}

/// Whether a settlement is for one message or for all up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Only,
    Through,
}

impl State {
    fn tag_of(&self, lock: &Lock) -> Result<u64> {
        match self.locks.get(lock) {
            Some(Some(tag)) if self.held.contains(tag) => Ok(*tag),
            Some(None) => Err(not_held(
                "the message was at its delivery limit, so it was put back as a copy at the end of the queue",
            )),
            _ => Err(not_held("it was settled before")),
        }
    }

    /// The held messages from the first on that are all to be settled (one settlement does), and the others.
    fn split(&self, tags: &BTreeSet<u64>) -> (Option<u64>, Vec<u64>) {
        let through = self
            .held
            .iter()
            .take_while(|tag| tags.contains(tag) && **tag <= self.seen_through)
            .last()
            .copied();
        let after = through.unwrap_or_default();
        (
            through,
            tags.iter().copied().filter(|tag| *tag > after).collect(),
        )
    }

    /// Touches only what was settled: a replay settles a large look in many batches.
    fn forget(&mut self, locks: &[Lock], tags: &BTreeSet<u64>) {
        for tag in tags {
            self.held.remove(tag);
        }
        for lock in locks {
            if self
                .locks
                .get(lock)
                .is_some_and(|tag| tag.is_some_and(|tag| tags.contains(&tag)))
            {
                self.locks.remove(lock);
            }
        }
    }
}

fn notes(state: &mut State) -> Vec<String> {
    let mut notes = std::mem::take(&mut state.notes);
    if state.rescued.count > 0 {
        notes.push(format!(
            "{} messages were at their delivery limit: each was saved and put back at the end of the queue as a confirmed copy without the count.",
            state.rescued.count
        ));
    }
    notes
}

fn all(locks: &[Lock], error: &Error) -> Vec<Result<()>> {
    locks.iter().map(|_| Err(error.clone())).collect()
}

fn not_held(why: &str) -> Error {
    Error::new(ErrorKind::LockLost, "settle the message", why).advise("Look again, then settle it.")
}

fn lost(error: &Error) -> Error {
    not_held("the connection of the look was lost, and the message is back in the queue")
        .caused_by(error.clone())
}

fn unknown(error: &Error) -> Error {
    Error::new(
        ErrorKind::OutcomeUnknown,
        "settle the message",
        "the connection was lost before the broker answered, and AMQP confirms no settlement",
    )
    .advise("Look again to see whether it is still there.")
    .caused_by(error.clone())
}

fn no_dead_letter_exchange(queue: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "dead-letter the message",
        "the queue has no dead-letter exchange, so the message would be destroyed",
    )
    .with("queue", queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(held: &[u64], seen_through: u64) -> State {
        State {
            held: held.iter().copied().collect(),
            seen_through,
            ..State::default()
        }
    }

    #[test]
    fn one_settlement_does_for_everything_from_the_first_on() {
        let check = |held: &[u64], seen, tags: &[u64], expected: (Option<u64>, Vec<u64>)| {
            let tags = tags.iter().copied().collect();
            assert_eq!(
                state(held, seen).split(&tags),
                expected,
                "{held:?} {tags:?}"
            );
        };
        check(&[1, 2, 3], 3, &[1, 2, 3], (Some(3), vec![]));
        check(&[1, 2, 3], 3, &[2, 3], (None, vec![2, 3]));
        check(&[1, 2, 3, 4], 4, &[1, 2, 4], (Some(2), vec![4]));
        check(&[3, 5], 5, &[3, 5], (Some(5), vec![]));
        // A gap in the tags seen means that the channel holds a message we do not know: never settle "all up to".
        check(&[1, 3], 1, &[1, 3], (Some(1), vec![3]));
    }
}
