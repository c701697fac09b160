//! The demo tells the story of the design, and its traffic behaves as the story says.

#![expect(
    clippy::expect_used,
    reason = "a test may fail loudly, also in its helpers"
)]

use std::time::Duration;

use dlo_core::{Address, Connector as _, Endpoint, Message, Secrets, Target, Value};
use dlo_memory::{
    Broker, MemoryConnector,
    demo::{self, Traffic},
};

const DEAD: &str = "orders.dlq";

fn error_of(message: &Message) -> String {
    let error = message
        .header("x-exception-message")
        .and_then(Value::as_text);
    error.unwrap_or_default().to_owned()
}

fn with_error(broker: &Broker, part: &str) -> Vec<Message> {
    let content = broker.content(DEAD);
    content
        .into_iter()
        .filter(|m| error_of(m).contains(part))
        .collect()
}

/// Publishes messages to the exchange that they came from, at 50 a second, as a replay does.
async fn replay(broker: &Broker, messages: &[Message]) {
    let mut target = Target::new(Address::exchange("orders"));
    target.routing_key = Some("order.created".to_owned());
    for message in messages {
        let mut message = message.clone();
        message
            .headers
            .retain(|header| !header.name.starts_with("x-"));
        broker
            .publish(&target, message)
            .expect("the exchange has bindings");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn the_three_groups_of_the_story_are_there() {
    let broker = demo::broker(Traffic::Off);
    assert_eq!(broker.depth(DEAD), 1_243);
    let counts = ["price", "timeout: db-3", "currency"].map(|part| with_error(&broker, part).len());
    assert_eq!(counts, [812, 401, 30]);
    assert_eq!(broker.depth("pay.dlq"), 2);
    assert_eq!(broker.depth("orders"), 17);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_dead_letter_is_three_days_old_and_expires_in_eleven_hours() {
    let broker = demo::broker(Traffic::Off);
    let session = broker.connect();
    let described = session
        .describe(&Address::queue(DEAD))
        .await
        .expect("it is there");
    let hours = |time: dlo_core::Figure<dlo_core::Millis>| {
        let time = time.value.expect("known");
        (time.since(broker.now()) as f64 / 3_600_000.0).round() as i64
    };
    assert_eq!(hours(described.oldest), -72);
    assert_eq!(hours(described.expires), 11);
    assert_eq!(described.sources, ["orders"]);
    assert!(
        described.look.line.contains("counts one delivery of 20"),
        "{}",
        described.look.line
    );
}

#[tokio::test(start_paused = true)]
async fn replayed_timeouts_succeed_but_for_three_that_come_back_with_the_same_error() {
    let broker = demo::broker(Traffic::On);
    let timeouts = with_error(&broker, "timeout: db-3");
    replay(&broker, &timeouts[..10]).await;
    assert_eq!(
        with_error(&broker, "timeout: db-3").len(),
        401,
        "none of the first ten returns"
    );
    replay(&broker, &timeouts[10..]).await;
    assert_eq!(with_error(&broker, "timeout: db-3").len(), 401 + 3);
}

#[tokio::test(start_paused = true)]
async fn orders_without_a_currency_come_back_unless_it_is_set() {
    let broker = demo::broker(Traffic::On);
    let broken = with_error(&broker, "currency");
    let plain: Vec<_> = broken
        .into_iter()
        .filter(|message| !message.properties.contains_key("content_encoding"))
        .collect();
    assert_eq!(plain.len(), 28);
    replay(&broker, &plain).await;
    assert_eq!(with_error(&broker, "currency").len(), 30 + 28);
    let mended: Vec<_> = plain.into_iter().map(with_currency).collect();
    replay(&broker, &mended).await;
    assert_eq!(with_error(&broker, "currency").len(), 30 + 28);
}

fn with_currency(mut message: Message) -> Message {
    let body = message.body.take().expect("a body");
    let mut json: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    json["currency"] = "EUR".into();
    message.body = Some(json.to_string().into());
    message
}

#[tokio::test(start_paused = true)]
async fn the_live_traffic_grows_by_forty_an_hour_and_keeps_the_backlog_small() {
    let broker = demo::broker(Traffic::On);
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let backlog = broker.depth("orders");
        assert!((1..60).contains(&backlog), "{backlog} orders wait");
    }
    let grown = broker.depth(DEAD) - 1_243;
    assert!((38..=42).contains(&grown), "it grew by {grown} in an hour");
    assert!(broker.depth("audit.copy") < 200);
    assert!(broker.depth("billing-invoices-dlq") > 25);
    assert!(broker.depth("orders.events-dlt") > 120);
}

#[tokio::test(start_paused = true)]
async fn every_demo_is_the_same() {
    let [one, two] = [Traffic::Off; 2].map(demo::broker);
    let bodies = |broker: &Broker| -> Vec<_> {
        broker
            .content(DEAD)
            .iter()
            .map(|m| m.properties.get("message_id").cloned())
            .collect()
    };
    assert_eq!(bodies(&one), bodies(&two));
}

#[tokio::test]
async fn demo_urls_share_one_broker_and_names_tell_them_apart() {
    let session = |url: &'static str| async move {
        let (endpoint, secrets) = Endpoint::parse(url).expect("a good URL");
        MemoryConnector
            .connect(&endpoint, &secrets)
            .await
            .expect("a demo")
    };
    let depth = |session: std::sync::Arc<dyn dlo_core::Session>| async move {
        let at = Address::queue("pay.dlq");
        session
            .describe(&at)
            .await
            .expect("it is there")
            .depth
            .value
    };
    let one = session("demo:shared?traffic=off").await;
    one.purge(&Address::queue("pay.dlq")).await.expect("purged");
    assert_eq!(
        depth(session("demo:shared?traffic=off").await).await,
        Some(0)
    );
    assert_eq!(
        depth(session("demo:other?traffic=off").await).await,
        Some(2)
    );
    let (endpoint, _) = Endpoint::parse("demo:?traffic=maybe").expect("a good URL");
    assert!(
        MemoryConnector
            .connect(&endpoint, &Secrets::default())
            .await
            .is_err()
    );
}
