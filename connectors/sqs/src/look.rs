//! A look: long polls in parallel until several come back empty, everything held until it is given back.
//!
//! A poll under way is never dropped: SQS may have handed out messages in it already, and nobody would give those back. Polls
//! are therefore tasks of their own, and closing a look waits for them.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use async_trait::async_trait;
use aws_sdk_sqs::types::{Message as SdkMessage, MessageSystemAttributeName};
use dlo_core::{
    Consent, Delivery, Disposition, Error, ErrorKind, Figure, Follow, Hold, Lock, Look,
    LookRequest, Millis, Page, Position, Result, Returned, Scan, Start, Verdict,
};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    cost::cost,
    delivery::{self, Context, GROUP},
    error::Doing,
    held::{Held, Holding, MAX_HOLD, Seen, extension},
    list,
    memory::lock,
    queue::{MAX_IN_FLIGHT, Queue},
    session::Shared,
    settle::{self, Pace},
};

/// How long a poll waits for messages. Any wait makes SQS ask all its servers, so that a small queue does not seem empty.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html>
pub(crate) const WAIT: Duration = Duration::from_secs(2);

/// Polls under way at a time.
const POLLS: usize = 4;

/// So many empty polls in a row are taken for the end.
const EMPTY_POLLS: usize = 3;

/// A page is handed over after this time even when it is not full.
const PATIENCE: Duration = Duration::from_millis(250);

/// Messages that one receive can bring.
const RECEIVE: u64 = 10;

#[derive(Debug)]
pub(crate) struct SqsLook(Arc<Core>);

/// The look itself, which lives on while a dropped look still gives back.
#[derive(Debug)]
pub(crate) struct Core {
    shared: Arc<Shared>,
    queue: Queue,
    limits: BTreeMap<String, u64>,
    hold: Duration,
    limit: u64,
    wanted: Option<HashSet<String>>,
    held: Mutex<Holding>,
    taking: tokio::sync::Mutex<Taking>,
    closing: CancellationToken,
}

/// The state of receiving.
#[derive(Debug, Default)]
struct Taking {
    polls: JoinSet<Poll>,
    /// Messages that the polls under way may bring.
    asked: u64,
    taken: u64,
    found: usize,
    empty: usize,
    ready: VecDeque<Delivery>,
    scanned: u64,
    errors: u64,
    notes: Vec<String>,
    /// A message came near the queue's receive limit, so nothing more is taken.
    stopped: bool,
    ended: bool,
    closed: bool,
    highest_receives: Option<u64>,
    oldest_sent: Option<Millis>,
}

#[derive(Debug)]
struct Poll {
    asked: u64,
    sent: Instant,
    result: Result<Vec<SdkMessage>>,
}

/// Opens a look after its cost is accepted. Receives nothing yet.
pub(crate) async fn open(
    shared: &Arc<Shared>,
    name: &str,
    request: LookRequest,
) -> Result<SqsLook> {
    let doing = Doing::new("look at the queue", "sqs:ReceiveMessage").at(name);
    let wanted = wanted(&request, doing)?;
    let queue = match shared.queue(name).await {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            consent_without_settings(&request, doing, error)?;
            shared.usable_queue(name).await?
        }
        queue => queue?,
    };
    accept(shared, &queue, &request, doing)?;
    if shared.memory.sources(&queue.name).is_none() {
        list::sources(shared, &queue).await;
    }
    let limit = if wanted.is_some() {
        MAX_IN_FLIGHT
    } else {
        request.limit.min(MAX_IN_FLIGHT)
    };
    Ok(SqsLook(Arc::new(Core {
        limits: shared.memory.limits(&queue.name),
        shared: Arc::clone(shared),
        queue,
        hold: Duration::from_secs(request.hold.min(MAX_HOLD).as_secs().max(1)),
        limit,
        wanted,
        held: Mutex::default(),
        taking: tokio::sync::Mutex::default(),
        closing: CancellationToken::new(),
    })))
}

/// The message ids to be found, where only single ones are wanted.
fn wanted(request: &LookRequest, doing: Doing<'_>) -> Result<Option<HashSet<String>>> {
    let unsupported = |what: &str| Err(doing.error(ErrorKind::Unsupported, what));
    if request.follow == Follow::Tail {
        return unsupported(
            "SQS has no end to follow: every message that arrives would be taken away from its consumers",
        );
    }
    if request.partitions.is_some() {
        return unsupported("SQS has no partitions");
    }
    match &request.start {
        Start::Newest | Start::Oldest => Ok(None),
        Start::Offsets(_) | Start::Time(_) => {
            unsupported("SQS has no cursor: a look begins where SQS likes")
        }
        Start::Positions(positions) => positions
            .iter()
            .map(|position| match position {
                Position::Id { id } => Ok(id.clone()),
                other => Err(doing.error(
                    ErrorKind::Unsupported,
                    format!("{other} is not the id of an SQS message"),
                )),
            })
            .collect::<Result<_>>()
            .map(Some),
    }
}

fn accept(shared: &Shared, queue: &Queue, request: &LookRequest, doing: Doing<'_>) -> Result<()> {
    let cost = cost(queue, request, shared.memory.highest_receives(&queue.name));
    match (cost.verdict, request.consent) {
        (Verdict::Refuse, _) | (Verdict::Ask, Consent::Unasked) => {
            Err(doing.error(ErrorKind::Refused, cost.reasons.join(" ")))
        }
        _ => Ok(()),
    }
}

/// Without its settings nobody knows whether a look can dead-letter messages.
fn consent_without_settings(request: &LookRequest, doing: Doing<'_>, denied: Error) -> Result<()> {
    match request.consent {
        Consent::Given => Ok(()),
        Consent::Unasked => Err(doing
            .error(ErrorKind::Refused, "its settings cannot be read, so it is not known whether a look would dead-letter messages")
            .advise("Ask for the permission sqs:GetQueueAttributes.")
            .caused_by(denied)),
    }
}

impl SqsLook {
    pub fn core(&self) -> Weak<Core> {
        Arc::downgrade(&self.0)
    }
}

/// Gives back what nobody closed, where there is still a runtime to do it on.
impl Drop for SqsLook {
    fn drop(&mut self) {
        let core = Arc::clone(&self.0);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = core.give_back().await {
                    tracing::warn!(%error, "a dropped look could not be given back");
                }
            });
        }
    }
}

#[async_trait]
impl Look for SqsLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        let core = &self.0;
        let mut taking = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::cancelled("receive messages")),
            taking = core.taking.lock() => taking,
        };
        core.extend_in_time().await?;
        core.fill(&mut taking, max.max(1), cancel).await?;
        if taking.is_over(core) && !taking.ended {
            taking.ended = true;
            core.conclude(&mut taking).await;
        }
        Ok(core.page(&mut taking, max.max(1)))
    }

    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>> {
        self.0.settle(locks, how).await
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        self.0.extend(Duration::MAX).await?;
        Ok(self.0.hold())
    }

    fn hold(&self) -> Option<Hold> {
        self.0.hold()
    }

    async fn close(&self) -> Result<Returned> {
        self.0.give_back().await
    }
}

impl Taking {
    /// Whether no poll should be sent any more.
    fn has_enough(&self, core: &Core) -> bool {
        self.stopped
            || self.empty >= EMPTY_POLLS
            || self.taken >= core.limit
            || core.closing.is_cancelled()
            || core
                .wanted
                .as_ref()
                .is_some_and(|wanted| self.found >= wanted.len())
    }

    fn is_over(&self, core: &Core) -> bool {
        self.has_enough(core) && self.polls.is_empty()
    }
}

impl Core {
    /// Receives until `max` messages are ready, or some are and no more come at once.
    async fn fill(
        &self,
        taking: &mut Taking,
        max: usize,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            let some = !taking.ready.is_empty();
            let full = taking.ready.len() >= max;
            if full
                || taking.is_over(self)
                || (some && (taking.empty > 0 || begun.elapsed() > PATIENCE))
            {
                return Ok(());
            }
            self.launch(taking);
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return if some { Ok(()) } else { Err(Error::cancelled("receive messages")) };
                }
                () = self.closing.cancelled() => return Ok(()),
                Some(poll) = taking.polls.join_next() => {
                    let poll = poll.map_err(|error| {
                        Error::new(ErrorKind::Unexpected, "receive messages", error.to_string())
                    })?;
                    self.take_in(taking, poll)?;
                }
            }
        }
    }

    /// Sends polls up to their number, asking for no more messages than the limit leaves.
    fn launch(&self, taking: &mut Taking) {
        while taking.polls.len() < POLLS && !taking.has_enough(self) {
            let left = self.limit.saturating_sub(taking.taken + taking.asked);
            let share = if self.queue.is_fifo() {
                // A group stays locked after its first batch, so each batch should be as large as it can.
                left
            } else {
                left.div_ceil(POLLS as u64)
            };
            let ask = share.min(RECEIVE);
            if ask == 0 {
                return;
            }
            taking.asked += ask;
            taking.polls.spawn(poll(
                Arc::clone(&self.shared),
                self.queue.clone(),
                ask,
                self.hold,
            ));
        }
    }

    fn take_in(&self, taking: &mut Taking, poll: Poll) -> Result<()> {
        taking.asked = taking.asked.saturating_sub(poll.asked);
        let messages = poll.result?;
        taking.empty = if messages.is_empty() {
            taking.empty + 1
        } else {
            0
        };
        for message in &messages {
            self.take_message(taking, message, poll.sent);
        }
        Ok(())
    }

    fn take_message(&self, taking: &mut Taking, message: &SdkMessage, sent: Instant) {
        let context = Context {
            queue: &self.queue,
            limits: &self.limits,
        };
        let (Some(delivery), Some(receipt)) = (
            delivery::delivery(&context, message),
            message.receipt_handle(),
        ) else {
            taking.errors += 1;
            taking
                .notes
                .push("SQS sent a message without an id; it comes back by itself.".to_owned());
            return;
        };
        let id = delivery.position.to_string();
        let held = Held {
            id: id.clone(),
            receipt: receipt.to_owned(),
            received: sent,
            until: sent + self.hold,
            group: delivery.fact(GROUP).map(str::to_owned),
        };
        if lock(&self.held).insert(held) == Seen::Again {
            return;
        }
        taking.scanned += 1;
        taking.taken += 1;
        self.note_counts(taking, delivery::receives(message), delivery.time);
        if self
            .wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&id))
        {
            taking.found += 1;
            taking.ready.push_back(delivery);
        }
    }

    fn note_counts(&self, taking: &mut Taking, receives: Option<u64>, sent: Option<Millis>) {
        self.shared.memory.saw(&self.queue.name, receives, sent);
        taking.highest_receives = taking.highest_receives.max(receives);
        taking.oldest_sent = match (taking.oldest_sent, sent) {
            (Some(known), Some(sent)) => Some(known.min(sent)),
            (known, sent) => known.or(sent),
        };
        if let (Some(policy), Some(receives)) = (&self.queue.redrive, receives)
            && receives >= policy.max_receives
            && !taking.stopped
        {
            taking.stopped = true;
            taking.notes.push(format!(
                "The look stopped: a message was now received {receives} times of {}, and its next receive moves it to {}.",
                policy.max_receives,
                policy.target()
            ));
        }
    }

    /// What the end of the look tells: to the memory of the session, and to the person.
    async fn conclude(&self, taking: &mut Taking) {
        let name = &self.queue.name;
        if taking.empty >= EMPTY_POLLS {
            self.shared
                .memory
                .saw_all(name, taking.highest_receives, taking.oldest_sent);
        }
        if self.queue.is_fifo()
            && let Ok(queue) = self.shared.queue_at(&self.queue.url).await
        {
            taking
                .notes
                .extend(cut_groups(&lock(&self.held).groups(), queue.visible));
        }
    }

    fn page(&self, taking: &mut Taking, max: usize) -> Page {
        let count = taking.ready.len().min(max);
        let deliveries: Vec<_> = taking.ready.drain(..count).collect();
        let total = self.queue.visible.map(|visible| visible.max(taking.taken));
        Page {
            deliveries,
            scan: Scan {
                scanned: std::mem::take(&mut taking.scanned),
                total: total.map_or_else(Figure::unknown, Figure::about),
                gaps: 0,
                errors: std::mem::take(&mut taking.errors),
                notes: std::mem::take(&mut taking.notes),
            },
            end: taking.ended && taking.ready.is_empty(),
        }
    }

    fn hold(&self) -> Option<Hold> {
        let held = lock(&self.held);
        let (until, at_most_until) = held.ends()?;
        Some(Hold {
            messages: held.len() as u64,
            until: on_the_clock(until),
            at_most_until: Some(on_the_clock(at_most_until)),
        })
    }

    /// Extends what has less than half its time left, so that a long look loses nothing on its way.
    async fn extend_in_time(&self) -> Result<()> {
        self.extend(self.hold / 2).await
    }

    /// Extends the locks that have less than `left` to go. Those that SQS says are lost are let go.
    async fn extend(&self, left: Duration) -> Result<()> {
        let now = Instant::now();
        let due: Vec<_> = lock(&self.held)
            .due(now, left)
            .into_iter()
            .filter_map(|held| extension(&held, self.hold, now).map(|timeout| (held, timeout)))
            .collect();
        let answers =
            settle::set_visibility(&self.shared.client, &self.queue, &due, Pace::Together).await;
        let mut failure = None;
        for ((held, timeout), answer) in due.iter().zip(answers) {
            match answer {
                Ok(()) => lock(&self.held).renew(&held.id, now + *timeout),
                Err(error) if error.kind() == ErrorKind::LockLost => {
                    lock(&self.held).remove(&held.id)
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>> {
        let doing = Doing::new("settle the message", "sqs:DeleteMessage").at(&self.queue.name);
        if how == Disposition::DeadLetter {
            let what = "SQS moves a message to the dead-letter queue only by itself, after too many receives";
            return locks
                .iter()
                .map(|_| Err(doing.error(ErrorKind::Unsupported, what)))
                .collect();
        }
        let now = Instant::now();
        let found: Vec<Option<Held>> = {
            let held = lock(&self.held);
            locks
                .iter()
                .map(|token| held.good(&token.0, now).cloned())
                .collect()
        };
        let held: Vec<Held> = found.iter().flatten().cloned().collect();
        let mut answers = self.settle_held(&held, how).await.into_iter();
        let mut let_go = lock(&self.held);
        found
            .into_iter()
            .zip(locks)
            .map(|(found, token)| {
                let lost = || doing.error(ErrorKind::LockLost, "it is no longer held by this look");
                let answer = match found {
                    Some(_) => answers.next().unwrap_or_else(|| Err(lost())),
                    None => Err(lost().advise("Look again to get hold of it.")),
                };
                if answer
                    .as_ref()
                    .map_or_else(|error| error.kind() == ErrorKind::LockLost, |()| true)
                {
                    let_go.remove(&token.0);
                }
                answer
            })
            .collect()
    }

    async fn settle_held(&self, held: &[Held], how: Disposition) -> Vec<Result<()>> {
        match how {
            Disposition::Ack => settle::delete(&self.shared.client, &self.queue, held).await,
            Disposition::Release | Disposition::DeadLetter => self.release(held).await,
        }
    }

    /// Visibility zero, in the order of the receives. Where order matters to SQS, batches wait for each other.
    async fn release(&self, held: &[Held]) -> Vec<Result<()>> {
        let pace = if self.queue.is_fifo() {
            Pace::InOrder
        } else {
            Pace::Together
        };
        let now: Vec<_> = held
            .iter()
            .map(|held| (held.clone(), Duration::ZERO))
            .collect();
        settle::set_visibility(&self.shared.client, &self.queue, &now, pace).await
    }

    /// Waits for the polls under way, then gives everything back. Does so once.
    pub(crate) async fn give_back(&self) -> Result<Returned> {
        self.closing.cancel();
        let mut taking = self.taking.lock().await;
        if std::mem::replace(&mut taking.closed, true) {
            return Ok(Returned::default());
        }
        while let Some(poll) = taking.polls.join_next().await {
            if let Ok(poll) = poll
                && let Err(error) = self.take_in(&mut taking, poll)
            {
                tracing::debug!(%error, "a poll failed while the look was closed");
            }
        }
        taking.ready.clear();
        let held = lock(&self.held).all();
        let mut returned = Returned::default();
        let failed = self.give_back_some(&held, &mut returned).await;
        // What failed for a passing reason gets one more try before it is left to its timeout.
        let failed = self.give_back_some(&failed, &mut returned).await;
        returned.lost_hold += failed.len() as u64;
        if let Some(last) = failed.iter().map(|held| held.until).max() {
            returned.notes.push(format!(
                "{} messages could not be given back; they come back by themselves by {}.",
                failed.len(),
                on_the_clock(last)
            ));
        }
        *lock(&self.held) = Holding::default();
        Ok(returned)
    }

    /// Gives back these, counts them, and hands over those that may be tried again.
    async fn give_back_some(&self, held: &[Held], returned: &mut Returned) -> Vec<Held> {
        let now = Instant::now();
        let (good, gone): (Vec<_>, Vec<_>) =
            held.iter().cloned().partition(|held| held.until > now);
        returned.lost_hold += gone.len() as u64;
        let answers = self.release(&good).await;
        let mut failed = Vec::new();
        for (held, answer) in good.into_iter().zip(answers) {
            match answer {
                Ok(()) => returned.given_back += 1,
                Err(error) if error.kind() == ErrorKind::LockLost => returned.lost_hold += 1,
                Err(_) => failed.push(held),
            }
        }
        failed
    }
}

async fn poll(shared: Arc<Shared>, queue: Queue, asked: u64, hold: Duration) -> Poll {
    let doing = Doing::new("receive messages", "sqs:ReceiveMessage").at(&queue.name);
    let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    let sent = Instant::now();
    let answer = shared
        .client
        .receive_message()
        .queue_url(&queue.url)
        .max_number_of_messages(i32::try_from(asked).unwrap_or(1))
        .visibility_timeout(seconds(hold))
        .wait_time_seconds(seconds(WAIT))
        .message_attribute_names("All")
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .send()
        .await;
    Poll {
        asked,
        sent,
        result: answer
            .map(|answer| answer.messages.unwrap_or_default())
            .map_err(|error| doing.failed(error)),
    }
}

/// The note that names the groups of which more may wait behind what is held.
fn cut_groups(groups: &BTreeMap<String, usize>, behind: Option<u64>) -> Option<String> {
    let behind = behind.filter(|count| *count > 0)?;
    if groups.is_empty() {
        return None;
    }
    let mut names: Vec<_> = groups
        .iter()
        .take(20)
        .map(|(name, held)| format!("{name} (after {held})"))
        .collect();
    if groups.len() > names.len() {
        names.push(format!("{} more", groups.len() - names.len()));
    }
    Some(format!(
        "About {behind} messages wait behind the ones held. SQS hands out no more of a group while its first ones are held, so \
         these groups may be cut: {}. Replay or discard these and look again for the next; `dlo replay --all` and \
         `dlo discard --all` go on by themselves.",
        names.join(", ")
    ))
}

fn on_the_clock(at: Instant) -> Millis {
    let now = Instant::now();
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match at.checked_duration_since(now) {
        Some(ahead) => Millis::now().plus(millis(ahead)),
        None => Millis::now().plus(-millis(now.duration_since(at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_groups_are_named_only_when_something_waits_behind() {
        let groups = BTreeMap::from([("a".to_owned(), 10), ("b".to_owned(), 1)]);
        let note = cut_groups(&groups, Some(5)).expect("a note");
        assert!(
            note.starts_with("About 5 messages") && note.contains("a (after 10), b (after 1)"),
            "{note}"
        );
        assert_eq!(cut_groups(&groups, Some(0)), None);
        assert_eq!(cut_groups(&BTreeMap::new(), Some(5)), None);
    }

    #[test]
    fn what_sqs_cannot_do_is_refused_before_the_network() {
        let doing = Doing::new("look at the queue", "sqs:ReceiveMessage");
        let mut request = LookRequest::new(10);
        request.start = Start::Time(Millis(0));
        assert_eq!(
            wanted(&request, doing).map_err(|error| error.kind()),
            Err(ErrorKind::Unsupported)
        );
        request.start = Start::Positions(vec![Position::Id { id: "m".to_owned() }]);
        assert_eq!(
            wanted(&request, doing),
            Ok(Some(HashSet::from(["m".to_owned()])))
        );
        request.follow = Follow::Tail;
        assert_eq!(
            wanted(&request, doing).map_err(|error| error.kind()),
            Err(ErrorKind::Unsupported)
        );
    }
}
