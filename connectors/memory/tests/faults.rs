//! Faults on demand do what they are named after, and nothing else.

#![expect(
    clippy::expect_used,
    reason = "a test may fail loudly, also in its helpers"
)]

use std::{sync::Arc, time::Duration};

use dlo_core::{
    Address, Atomicity, Disposition, ErrorKind, Lock, Look, LookRequest, Message, Outgoing,
    Receipt, Result, Session, Target,
};
use dlo_memory::{Broker, Fault, Injection, QueueSettings, Step};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const QUEUE: &str = "orders.dlq";

fn broker(messages: usize) -> Broker {
    let broker = Broker::new();
    let at = broker.declare_queue(QUEUE, QueueSettings::classic());
    for number in 0..messages {
        broker
            .publish(&Target::new(at.clone()), message(number))
            .expect("the queue is there");
    }
    broker
}

fn message(number: usize) -> Message {
    Message {
        body: Some(format!("message {number}").into()),
        ..Message::default()
    }
}

async fn publish(session: &Arc<dyn Session>) -> Result<Receipt> {
    let out = Outgoing {
        target: Target::new(Address::queue(QUEUE)),
        message: message(99),
        time: None,
    };
    let mut answers = session.publish(vec![out], Atomicity::Each).await;
    answers.pop().expect("one answer")
}

async fn hold_all(session: &Arc<dyn Session>) -> (Arc<dyn Look>, Vec<Lock>) {
    let look = session
        .look(&Address::queue(QUEUE), LookRequest::new(100))
        .await
        .expect("a look");
    let page = look.next(100, &CancellationToken::new()).await;
    let page = page.expect("a page");
    let locks = page.deliveries.into_iter().filter_map(|d| d.lock);
    (look, locks.collect())
}

fn kind<T>(answer: &Result<T>) -> Option<ErrorKind> {
    answer.as_ref().err().map(dlo_core::Error::kind)
}

#[tokio::test(start_paused = true)]
async fn a_lost_publish_is_unknown_and_not_stored() {
    let broker = broker(0);
    broker.inject(Injection::once(Fault::PublishLost));
    let answer = publish(&broker.connect()).await;
    assert_eq!(kind(&answer), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(broker.depth(QUEUE), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_confirmation_is_unknown_and_stored() {
    let broker = broker(0);
    broker.inject(Injection::once(Fault::ConfirmLost));
    let answer = publish(&broker.connect()).await;
    assert_eq!(kind(&answer), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(broker.depth(QUEUE), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_confirmation_takes_its_time() {
    let broker = broker(0);
    broker.inject(Injection::once(Fault::ConfirmedLate(Duration::from_secs(
        7,
    ))));
    let start = Instant::now();
    let session = broker.connect();
    assert!(publish(&session).await.is_ok());
    assert_eq!(start.elapsed().as_secs(), 7);
    let start = Instant::now();
    assert!(publish(&session).await.is_ok());
    assert_eq!(start.elapsed().as_secs(), 0, "it strikes only once");
}

#[tokio::test(start_paused = true)]
async fn a_refused_publish_is_not_stored() {
    let broker = broker(0);
    broker.inject(Injection::once(Fault::PublishFails(ErrorKind::Unroutable)).after(1));
    let session = broker.connect();
    assert!(publish(&session).await.is_ok());
    let answer = publish(&session).await;
    assert_eq!(kind(&answer), Some(ErrorKind::Unroutable));
    assert_eq!(broker.depth(QUEUE), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_leaves_the_message_in_the_queue() {
    let broker = broker(3);
    let session = broker.connect();
    let (look, locks) = hold_all(&session).await;
    broker.inject(Injection::once(Fault::LockLost).after(1));
    let answers = look.settle(&locks, Disposition::Ack).await;
    let kinds: Vec<_> = answers.iter().map(kind).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::LockLost), None]);
    assert_eq!(broker.content(QUEUE), [message(1)]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_settle_has_happened() {
    let broker = broker(1);
    let session = broker.connect();
    let (look, locks) = hold_all(&session).await;
    broker.inject(Injection::once(Fault::SettleUnknown));
    let answers = look.settle(&locks, Disposition::Ack).await;
    assert_eq!(kind(&answers[0]), Some(ErrorKind::OutcomeUnknown));
    assert!(broker.content(QUEUE).is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_between_confirm_and_settle_both_copies_are_there() {
    let broker = broker(1);
    let session = broker.connect();
    let (look, locks) = hold_all(&session).await;
    broker.inject(Injection::once(Fault::CrashAfterConfirm));
    assert!(publish(&session).await.is_ok());
    let answers = look.settle(&locks, Disposition::Ack).await;
    assert_eq!(kind(&answers[0]), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(broker.content(QUEUE), [message(0), message(99)]);
    let returned = look.close().await.expect("closing is always possible");
    assert_eq!((returned.given_back, returned.lost_hold), (0, 1));
    assert_eq!(
        kind(&session.destinations().await),
        Some(ErrorKind::Unreachable)
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_during_a_publish_leaves_it_unknown() {
    let broker = broker(0);
    let session = broker.connect();
    broker.inject(Injection::once(Fault::ConnectionLost(Step::Publish)));
    assert_eq!(
        kind(&publish(&session).await),
        Some(ErrorKind::OutcomeUnknown)
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_during_a_look_gives_everything_back() {
    let broker = broker(5);
    let session = broker.connect();
    let (look, _) = hold_all(&session).await;
    assert_eq!((broker.depth(QUEUE), broker.held(QUEUE)), (0, 5));
    broker.break_connections();
    assert_eq!((broker.depth(QUEUE), broker.held(QUEUE)), (5, 0));
    let next = look.next(1, &CancellationToken::new()).await;
    assert_eq!(kind(&next), Some(ErrorKind::Unreachable));
    let expected: Vec<_> = (0..5).map(message).collect();
    assert_eq!(broker.content(QUEUE), expected);
}

#[tokio::test(start_paused = true)]
async fn permission_throttling_and_slowness_concern_their_step_only() {
    let broker = broker(2);
    let session = broker.connect();
    let at = Address::queue(QUEUE);
    broker.inject(Injection::always(Fault::PermissionDenied(Step::Purge)));
    broker.inject(Injection::once(Fault::Throttled(Step::List)));
    broker.inject(Injection::once(Fault::Slow(
        Step::Publish,
        Duration::from_secs(3),
    )));
    assert_eq!(
        kind(&session.purge(&at).await),
        Some(ErrorKind::PermissionDenied)
    );
    assert_eq!(
        kind(&session.describe(&at).await),
        Some(ErrorKind::Throttled)
    );
    assert!(session.describe(&at).await.is_ok());
    let start = Instant::now();
    assert!(publish(&session).await.is_ok());
    assert_eq!(start.elapsed().as_secs(), 3);
    broker.clear_faults();
    assert!(session.purge(&at).await.is_ok());
}
