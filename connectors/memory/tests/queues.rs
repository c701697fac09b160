//! Queues follow the rules of the brokers that they are shaped like: when locks end, what counts, where dead letters go.

#![expect(
    clippy::expect_used,
    reason = "a test may fail loudly, also in its helpers"
)]

use std::{sync::Arc, time::Duration};

use dlo_core::{
    Address, Disposition, ErrorKind, Look, LookRequest, Message, RedriveRequest, RedriveState,
    Session, Target, Value, Verdict,
};
use dlo_memory::{Broker, ExchangeKind, QueueSettings};
use tokio_util::sync::CancellationToken;

fn message(text: &str) -> Message {
    Message {
        body: Some(text.to_owned().into()),
        ..Message::default()
    }
}

fn fill(broker: &Broker, at: &Address, count: usize) {
    for number in 0..count {
        let target = Target::new(at.clone());
        broker
            .publish(&target, message(&number.to_string()))
            .expect("the queue takes it");
    }
}

async fn look(session: &Arc<dyn Session>, at: &Address, request: LookRequest) -> Arc<dyn Look> {
    let look = session.look(at, request).await.expect("a look");
    look.next(100, &CancellationToken::new())
        .await
        .expect("a page");
    look
}

fn deaths(message: &Message) -> Vec<(String, i128)> {
    let Some(Value::List(deaths)) = message.header("x-death") else {
        return Vec::new();
    };
    let of = |death: &dlo_core::Typed| {
        let text = |name| death.value.get(name).and_then(Value::as_text);
        let count = death.value.get("count").and_then(Value::as_int);
        let (queue, reason) = (text("queue"), text("reason"));
        let words = format!("{} {}", queue.unwrap_or("?"), reason.unwrap_or("?"));
        (words, count.unwrap_or_default())
    };
    deaths.iter().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn an_sqs_lock_ends_by_itself_unless_it_is_extended() {
    let broker = Broker::new();
    let at = broker.declare_queue("q", QueueSettings::standard());
    fill(&broker, &at, 2);
    let session = broker.connect();
    let request = LookRequest {
        hold: Duration::from_secs(60),
        ..LookRequest::new(10)
    };
    let look = look(&session, &at, request).await;
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(look.hold().map(|hold| hold.messages), Some(2));
    look.extend().await.expect("extended");
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(broker.depth("q"), 0);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(broker.depth("q"), 2);
    assert_eq!(look.hold(), None);
    assert_eq!(look.close().await.map(|r| r.lost_hold), Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_rabbitmq_hold_ends_after_half_an_hour_and_cannot_be_extended() {
    let broker = Broker::new();
    let at = broker.declare_queue("q", QueueSettings::classic());
    fill(&broker, &at, 1);
    let session = broker.connect();
    let look = look(&session, &at, LookRequest::new(10)).await;
    let hold = look.hold().expect("held");
    assert_eq!(hold.at_most_until, Some(hold.until));
    tokio::time::advance(Duration::from_secs(20 * 60)).await;
    assert_eq!(look.extend().await, Ok(Some(hold)));
    tokio::time::advance(Duration::from_secs(11 * 60)).await;
    assert_eq!(broker.depth("q"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_queue_of_sqs_gives_up_after_its_receives() {
    let broker = Broker::new();
    broker.declare_queue("dead", QueueSettings::standard());
    let at = broker.declare_queue("q", QueueSettings::standard().with_redrive("dead", 2));
    fill(&broker, &at, 1);
    for _ in 0..2 {
        assert!(broker.take("q").is_some());
        assert!(broker.take("q").is_none(), "it is in flight");
        tokio::time::advance(Duration::from_secs(31)).await;
    }
    assert!(broker.take("q").is_none());
    assert_eq!((broker.depth("q"), broker.depth("dead")), (0, 1));
    let session = broker.connect();
    let look = session
        .look(&Address::queue("dead"), LookRequest::new(5))
        .await;
    let look = look.expect("a look at a dead-letter queue is harmless");
    let page = look
        .next(5, &CancellationToken::new())
        .await
        .expect("a page");
    let source = page.deliveries[0].fact("DeadLetterQueueSourceArn");
    assert!(source.is_some_and(|arn| arn.ends_with(":q")), "{source:?}");
    assert_eq!(page.deliveries[0].delivery_count, Some(2));
    let received = page.deliveries[0].fact("ApproximateReceiveCount");
    assert_eq!(received, Some("3"));
}

#[tokio::test(start_paused = true)]
async fn looking_at_an_sqs_source_queue_needs_consent() {
    let broker = Broker::new();
    broker.declare_queue("dead", QueueSettings::standard());
    let at = broker.declare_queue("q", QueueSettings::standard().with_redrive("dead", 5));
    fill(&broker, &at, 1);
    let session = broker.connect();
    let cost = session
        .cost(&at, &LookRequest::new(5))
        .await
        .expect("a cost");
    assert_eq!((cost.verdict, cost.looks_left), (Verdict::Ask, Some(5)));
    let refused = session.look(&at, LookRequest::new(5)).await;
    assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::Refused));
}

#[tokio::test(start_paused = true)]
async fn a_fifo_queue_keeps_groups_in_order_and_forgets_duplicates() {
    let broker = Broker::new();
    let at = broker.declare_queue("q.fifo", QueueSettings::fifo());
    let send = |group: &str, text: &str, id: &str| {
        let mut message = message(text);
        for (name, value) in [("MessageGroupId", group), ("MessageDeduplicationId", id)] {
            message
                .properties
                .insert(name.to_owned(), Value::text(value));
        }
        broker
            .publish(&Target::new(at.clone()), message)
            .expect("taken")
    };
    send("a", "a1", "1");
    send("a", "a2", "2");
    send("b", "b1", "3");
    assert!(send("a", "again", "1").answer.contains("deduplication"));
    let first = broker.take("q.fifo").expect("a1");
    let second = broker.take("q.fifo").expect("b1, as group a is blocked");
    assert_eq!(second.message.body.as_deref(), Some(&b"b1"[..]));
    assert!(broker.take("q.fifo").is_none());
    broker.ack(&first);
    let third = broker.take("q.fifo").expect("a2");
    assert_eq!(third.message.body.as_deref(), Some(&b"a2"[..]));
    tokio::time::advance(Duration::from_secs(301)).await;
    assert!(!send("a", "again", "1").answer.contains("deduplication"));
}

#[tokio::test(start_paused = true)]
async fn a_long_fifo_group_is_cut_and_the_look_says_so() {
    let broker = Broker::new();
    let at = broker.declare_queue("q.fifo", QueueSettings::fifo());
    for number in 0..25 {
        let mut message = message(&number.to_string());
        let group = ("MessageGroupId".to_owned(), Value::text("a"));
        message.properties.extend([group]);
        broker
            .publish(&Target::new(at.clone()), message)
            .expect("taken");
    }
    let session = broker.connect();
    let look = session
        .look(&at, LookRequest::new(100))
        .await
        .expect("a look");
    let page = look
        .next(100, &CancellationToken::new())
        .await
        .expect("a page");
    assert_eq!(page.deliveries.len(), 10);
    assert!(
        page.end && page.scan.notes[0].contains("group a is cut"),
        "{:?}",
        page.scan
    );
}

#[tokio::test(start_paused = true)]
async fn a_quorum_queue_counts_each_look_and_dead_letters_at_its_limit() {
    let broker = Broker::new();
    broker.declare_queue("dead", QueueSettings::classic());
    let settings = QueueSettings::quorum()
        .with_delivery_limit(2)
        .with_dead_letter_exchange("", Some("dead"));
    let at = broker.declare_queue("q", settings);
    fill(&broker, &at, 1);
    let session = broker.connect();
    for left in [2, 1] {
        let cost = session
            .cost(&at, &LookRequest::new(5))
            .await
            .expect("a cost");
        assert_eq!(cost.looks_left, Some(left));
        let look = look(&session, &at, LookRequest::new(5)).await;
        look.close().await.expect("closed");
    }
    let refused = session.look(&at, LookRequest::new(5)).await;
    assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::Refused));
    // An ordinary consumer is not asked.
    let taken = broker.take("q").expect("it is there");
    broker.requeue(&taken);
    let dead = broker.content("dead");
    assert_eq!(deaths(&dead[0]), [("q delivery_limit".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn expired_and_superfluous_messages_are_dead_lettered_with_their_reason() {
    let broker = Broker::new();
    broker.declare_queue("dead", QueueSettings::classic());
    let settings = QueueSettings::classic()
        .with_time_to_live(Duration::from_secs(60))
        .with_max_length(2)
        .with_dead_letter_exchange("", Some("dead"));
    let at = broker.declare_queue("q", settings);
    fill(&broker, &at, 3);
    assert_eq!(
        deaths(&broker.content("dead")[0]),
        [("q maxlen".to_owned(), 1)]
    );
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(broker.depth("q"), 0);
    assert_eq!(
        deaths(&broker.content("dead")[2]),
        [("q expired".to_owned(), 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_loop_counts_in_one_entry_per_queue_and_reason() {
    let broker = Broker::new();
    let retry = QueueSettings::classic()
        .with_time_to_live(Duration::from_secs(10))
        .with_dead_letter_exchange("", Some("work"));
    broker.declare_queue("retry", retry);
    let work = QueueSettings::classic().with_dead_letter_exchange("", Some("retry"));
    let at = broker.declare_queue("work", work);
    fill(&broker, &at, 1);
    for _ in 0..3 {
        let taken = broker.take("work").expect("it is back");
        broker.reject(&taken);
        tokio::time::advance(Duration::from_secs(11)).await;
    }
    let found = deaths(&broker.content("work")[0]);
    let expected = [
        ("retry expired".to_owned(), 3),
        ("work rejected".to_owned(), 3),
    ];
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn a_copied_message_reaches_every_key_and_dead_lettering_ends_that() {
    let broker = Broker::new();
    broker.declare_exchange("x", ExchangeKind::Direct);
    broker.declare_queue("dead", QueueSettings::classic());
    let settings = QueueSettings::classic().with_dead_letter_exchange("", Some("dead"));
    broker.declare_queue("a", settings);
    broker.declare_queue("b", QueueSettings::classic());
    for queue in ["a", "b"] {
        broker.bind("x", queue, queue).expect("bound");
    }
    let mut copied = message("1");
    let list = Value::List(vec![dlo_core::Typed::new("longstr", Value::text("b"))]);
    copied
        .headers
        .push(dlo_core::Header::new("CC", "array", list));
    let mut target = Target::new(Address::exchange("x"));
    target.routing_key = Some("a".to_owned());
    broker.publish(&target, copied).expect("routed");
    assert_eq!((broker.depth("a"), broker.depth("b")), (1, 1));
    let taken = broker.take("a").expect("it is there");
    broker.reject(&taken);
    let dead = &broker.content("dead")[0];
    assert_eq!(dead.header("CC"), None);
    assert_eq!(broker.depth("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_brokers_own_move_keeps_to_its_rate_and_can_be_stopped() {
    let broker = Broker::new();
    let dead = broker.declare_queue("dead", QueueSettings::standard());
    broker.declare_queue("q", QueueSettings::standard().with_redrive("dead", 2));
    fill(&broker, &dead, 100);
    let session = broker.connect();
    let request = RedriveRequest {
        from: dead.clone(),
        to: None,
        rate: Some(10),
    };
    let task = session.redrive(&request).await.expect("started");
    let again = session.redrive(&request).await;
    assert_eq!(again.err().map(|e| e.kind()), Some(ErrorKind::Refused));
    tokio::time::advance(Duration::from_secs(5)).await;
    let moved = broker.depth("q");
    assert!((50..=51).contains(&moved), "{moved} were moved in 5 s");
    session.cancel_redrive(&task).await.expect("stopped");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(broker.depth("q"), moved);
    let tasks = session.redrives(&dead).await.expect("a list");
    assert_eq!(tasks[0].state, RedriveState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn dead_lettering_a_held_message_marks_it() {
    let broker = Broker::new();
    broker.declare_queue("dead", QueueSettings::classic());
    let settings = QueueSettings::classic().with_dead_letter_exchange("", Some("dead"));
    let at = broker.declare_queue("q", settings);
    fill(&broker, &at, 1);
    let session = broker.connect();
    let look = session
        .look(&at, LookRequest::new(5))
        .await
        .expect("a look");
    let page = look
        .next(5, &CancellationToken::new())
        .await
        .expect("a page");
    let locks: Vec<_> = page.deliveries.into_iter().filter_map(|d| d.lock).collect();
    look.settle(&locks, Disposition::DeadLetter).await;
    let found = deaths(&broker.content("dead")[0]);
    assert_eq!(found, [("q rejected".to_owned(), 1)]);
}
