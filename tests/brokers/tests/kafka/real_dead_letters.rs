//! Dead letters as the real producers write them: the connector hands over their headers as they are.

use anyhow::{Context, Result, ensure};
use dlo_brokers::{
    kafka::{Plain, script, session},
    required,
};
use dlo_core::{Address, DeadLetters, Delivery, Evidence, LookRequest, Value};
use tokio_util::sync::CancellationToken;

fn text<'a>(delivery: &'a Delivery, name: &str) -> Option<&'a str> {
    delivery.message.header(name).and_then(Value::as_text)
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_every_real_producer_arrive_exactly() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    script(
        "producers/make-dead-letters",
        &[&required("DLO_TEST_KAFKA_DIR")?],
    )?;
    let session = session(&plain.url()).await?;
    let newest = async |topic: &str| -> Result<Vec<Delivery>> {
        let look = session
            .look(&Address::topic(topic), LookRequest::new(3))
            .await?;
        let mut deliveries = Vec::new();
        loop {
            let page = look.next(10, &CancellationToken::new()).await?;
            deliveries.extend(page.deliveries);
            if page.end {
                return Ok(deliveries);
            }
        }
    };

    let copies = newest("dlq.share.copy").await?;
    ensure!(
        copies.len() == 3 && copies.iter().all(|d| d.message.key.is_some()),
        "{copies:?}"
    );
    ensure!(
        copies
            .iter()
            .all(|d| text(d, "__dlq.errors.group") == Some("share-copy")),
        "{copies:?}"
    );
    let pointers = newest("dlq.share.pointer").await?;
    ensure!(
        pointers.len() == 3 && pointers.iter().all(|d| d.message.body.is_none()),
        "{pointers:?}"
    );
    let described = session
        .describe(&Address::topic("dlq.share.pointer"))
        .await?;
    let by_configuration = matches!(
        described.dead_letters,
        DeadLetters::Yes(Evidence::Configuration(_))
    );
    ensure!(by_configuration, "{:?}", described.dead_letters);

    let connect = newest("connect.dlq").await?;
    let stages: std::collections::BTreeSet<_> = connect
        .iter()
        .filter_map(|d| text(d, "__connect.errors.stage"))
        .collect();
    ensure!(
        stages
            .into_iter()
            .eq(["TASK_PUT", "TRANSFORMATION", "VALUE_CONVERTER"]),
        "{connect:?}"
    );

    let streams = newest("streams.dlq").await?;
    ensure!(
        streams
            .iter()
            .all(|d| text(d, "__streams.errors.topic") == Some("streams.in")),
        "{streams:?}"
    );

    let spring = newest("spring.orders-dlt").await?;
    let partition = spring[0].message.header("kafka_dlt-original-partition");
    let bytes = partition
        .and_then(Value::as_bytes)
        .context("the partition")?;
    ensure!(bytes.as_ref() == [0, 0, 0, 1], "{bytes:?}");

    let retried = newest("spring.pay-dlt").await?;
    let attempts = retried[0]
        .message
        .headers
        .iter()
        .filter(|h| h.name == "retry_topic-attempts");
    let attempts: Vec<_> = attempts
        .filter_map(|h| h.value().as_bytes()?.last().copied())
        .collect();
    ensure!(
        attempts == [2, 3, 4],
        "all three in their order, not {attempts:?}"
    );
    session.close().await?;
    Ok(())
}
