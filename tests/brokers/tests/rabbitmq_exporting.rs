//! A capture file holds what a real RabbitMQ had: a thousand dead letters exported from it and imported into the memory broker
//! are the same messages there.

use anyhow::{Result, ensure};
use dlo_brokers::{
    engine::Bench,
    rabbit::{Stage, VERSIONS},
};
use dlo_core::{Address, LookRequest, Message};
use dlo_engine::{
    Ask,
    command::{Answers, ExportFormat, Selection},
};
use dlo_memory::{Broker, QueueSettings};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldArray, FieldTable},
};
use tokio_util::sync::CancellationToken;

const COUNT: u32 = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dead_letters_are_the_same_in_another_broker() -> Result<()> {
    for version in VERSIONS {
        let stage = Stage::on(version).await?;
        let queue = format!("export {}.dlq", uuid::Uuid::new_v4().simple());
        stage.queue(&queue, "classic", &[]).await?;
        let messages = (0..COUNT).map(|number| (body(number), properties(number)));
        stage.fill(&queue, messages).await?;
        stage.await_count(&queue, u64::from(COUNT)).await?;
        let before = looked_at(&stage, &queue).await?;

        let broker = Broker::named(&queue);
        broker.declare_queue("copy", QueueSettings::classic());
        let home = tempfile::tempdir()?;
        let mut bench = Bench::new(&home)?;
        let file = home.path().join("dead.ndjson");
        let rabbit = bench.connect(&stage.url).await?;
        let look = bench.look(rabbit, &queue).await?;
        bench
            .ask(Ask::Export {
                look,
                selection: Selection::All,
                file: file.clone(),
                format: ExportFormat::Capture,
                why: String::new(),
            })
            .await?;
        bench.ask(Ask::CloseLook { look }).await?;
        let memory = bench.connect(&format!("memory:{queue}")).await?;
        bench
            .ask(Ask::Import {
                file,
                connection: memory,
                to: Some("copy".to_owned()),
                why: String::new(),
                answers: Answers::default(),
            })
            .await?;
        let copies = broker.content("copy");
        ensure!(
            copies.len() == COUNT as usize,
            "{version}: {}",
            copies.len()
        );
        for (number, (before, copy)) in before.iter().zip(&copies).enumerate() {
            ensure!(
                before == copy,
                "{version}, message {number}: {before:?} became {copy:?}"
            );
        }
        stage.await_count(&queue, u64::from(COUNT)).await?;
        stage.delete(&queue).await?;
    }
    Ok(())
}

/// What the connector alone reads, without engine and capture file.
async fn looked_at(stage: &Stage, queue: &str) -> Result<Vec<Message>> {
    let session = stage.session().await?;
    let request = LookRequest::new(u64::from(COUNT));
    let look = session.look(&Address::queue(queue), request).await?;
    let mut messages = Vec::new();
    loop {
        let page = look.next(500, &CancellationToken::new()).await?;
        messages.extend(page.deliveries.into_iter().map(|delivery| delivery.message));
        if page.end {
            break;
        }
    }
    look.close().await?;
    session.close().await?;
    Ok(messages)
}

/// Text, binary, and none.
fn body(number: u32) -> Vec<u8> {
    match number % 3 {
        0 => format!("{{\"order\": {number}, \"what\": \"é\"}}").into_bytes(),
        1 => (0..=255).chain(number.to_be_bytes()).collect(),
        _ => Vec::new(),
    }
}

/// Every type of header, and deaths as a broker writes them.
fn properties(number: u32) -> BasicProperties {
    let mut death = FieldTable::default();
    death.insert("count".into(), AMQPValue::LongLongInt(1));
    death.insert("exchange".into(), AMQPValue::LongString("".into()));
    death.insert("queue".into(), AMQPValue::LongString("orders".into()));
    death.insert("reason".into(), AMQPValue::LongString("rejected".into()));
    death.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    let deaths = FieldArray::from(vec![AMQPValue::FieldTable(death)]);
    let mut headers = FieldTable::default();
    headers.insert("bool".into(), AMQPValue::Boolean(number.is_multiple_of(2)));
    headers.insert("bytes".into(), AMQPValue::ByteArray(vec![0, 255].into()));
    headers.insert("double".into(), AMQPValue::Double(0.1));
    headers.insert("empty".into(), AMQPValue::LongString("".into()));
    headers.insert("float".into(), AMQPValue::Float(0.5));
    headers.insert("int16".into(), AMQPValue::ShortInt(-2));
    headers.insert("int64".into(), AMQPValue::LongLongInt(i64::MIN));
    headers.insert("int8".into(), AMQPValue::ShortShortInt(-1));
    headers.insert("longstr".into(), AMQPValue::LongString("é\0".into()));
    headers.insert("number".into(), AMQPValue::LongInt(number.cast_signed()));
    headers.insert("void".into(), AMQPValue::Void);
    headers.insert("x-death".into(), AMQPValue::FieldArray(deaths));
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(2)
        .with_message_id(format!("m{number}").into())
        .with_headers(headers)
}
