//! Loaded messages are where they were, and URLs mean the broker that they say.

#![expect(
    clippy::expect_used,
    reason = "a test may fail loudly, also in its helpers"
)]

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{
    Address, Connector, Delivery, Endpoint, ErrorKind, LookRequest, Message, Millis, Position,
    Session, Start, Value,
};
use dlo_memory::{Broker, FileConnector, Loaded, MemoryConnector};
use tokio_util::sync::CancellationToken;

fn loaded(destination: &str, position: Position, number: u8) -> Loaded {
    let facts = BTreeMap::from([("routing_key".to_owned(), Value::text("order.created"))]);
    Loaded {
        destination: destination.to_owned(),
        delivery: Delivery {
            message: Message {
                body: Some(vec![number].into()),
                ..Message::default()
            },
            position,
            lock: None,
            time: Some(Millis(1_700_000_000_000 + i64::from(number))),
            delivery_count: None,
            facts,
        },
    }
}

fn some() -> Vec<Loaded> {
    let offset = |partition, offset| Position::Offset { partition, offset };
    let id = |id: &str| Position::Id { id: id.to_owned() };
    vec![
        loaded("events", offset(2, 41), 0),
        loaded("events", offset(2, 47), 1),
        loaded("events", offset(0, 5), 2),
        loaded("invoices", id("8f14e45f"), 3),
        loaded("orders.dlq", Position::Index { index: 0 }, 4),
        loaded("orders.dlq", Position::Index { index: 1 }, 5),
    ]
}

async fn all(session: &Arc<dyn Session>, at: &Address) -> Vec<Delivery> {
    let request = LookRequest {
        start: Start::Oldest,
        ..LookRequest::new(100)
    };
    let look = session.look(at, request).await.expect("a look");
    let page = look.next(100, &CancellationToken::new()).await;
    let deliveries = page.expect("a page").deliveries;
    look.close().await.expect("closed");
    deliveries
}

#[tokio::test]
async fn positions_and_facts_are_those_of_the_capture() {
    let broker = Broker::new();
    broker.load(some());
    let session = broker.connect();
    for at in [
        Address::topic("events"),
        Address::queue("invoices"),
        Address::queue("orders.dlq"),
    ] {
        let found = all(&session, &at).await;
        let expected: Vec<_> = some()
            .into_iter()
            .filter(|loaded| loaded.destination == at.name)
            .map(|loaded| (loaded.delivery.position, loaded.delivery.message))
            .collect();
        let found: Vec<_> = found.into_iter().map(|d| (d.position, d.message)).collect();
        assert_eq!(found, expected, "{at}");
    }
    let first = &all(&session, &Address::queue("orders.dlq")).await[0];
    assert_eq!(first.fact("routing_key"), Some("order.created"));
}

#[tokio::test]
async fn a_file_url_opens_what_the_loader_reads() {
    let connector = FileConnector::new(Arc::new(|path| {
        assert_eq!(path.to_str(), Some("some/capture.ndjson"));
        Ok(some())
    }));
    let (endpoint, secrets) = Endpoint::parse("file:some/capture.ndjson").expect("a URL");
    let session = connector.connect(&endpoint, &secrets).await;
    let list = session
        .expect("opened")
        .destinations()
        .await
        .expect("a list");
    assert_eq!(list.len(), 3);
    let (endpoint, secrets) = Endpoint::parse("file:").expect("a URL");
    let error = connector.connect(&endpoint, &secrets).await.err();
    assert_eq!(error.map(|e| e.kind()), Some(ErrorKind::ConfigInvalid));
}

#[tokio::test]
async fn memory_urls_declare_and_share() {
    let connect = |url: &'static str| async move {
        let (endpoint, secrets) = Endpoint::parse(url).expect("a URL");
        MemoryConnector.connect(&endpoint, &secrets).await
    };
    let url = "memory:load-test?quorum=orders,orders.dlq&topic=events:3";
    let session = connect(url).await.expect("connected");
    let labels: Vec<_> = session
        .destinations()
        .await
        .expect("a list")
        .into_iter()
        .map(|known| (known.address.name, known.label, known.partitions.len()))
        .collect();
    let expected = [
        ("orders", "quorum queue", 0),
        ("orders.dlq", "quorum queue", 0),
        ("events", "topic", 3),
    ]
    .map(|(name, label, partitions)| (name.to_owned(), label.to_owned(), partitions));
    assert_eq!(labels, expected);
    Broker::named("load-test").declare_queue("more", dlo_memory::QueueSettings::fifo());
    let again = connect("memory:load-test").await.expect("connected");
    assert_eq!(again.destinations().await.map(|list| list.len()), Ok(4));
    let fresh = connect("memory:").await.expect("connected");
    assert_eq!(fresh.destinations().await.map(|list| list.len()), Ok(0));
    for wrong in ["memory:?queue=a", "memory:?topic=a:b"] {
        let error = connect(wrong).await.err();
        assert_eq!(
            error.map(|e| e.kind()),
            Some(ErrorKind::ConfigInvalid),
            "{wrong}"
        );
    }
}
