//! Letters that are more than a plain message, made by LocalStack: what an SNS subscription could not deliver, with and without
//! raw delivery, and a message whose body lies in S3. They are recognised, unwrapped where that is possible, and sent on.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dlo_brokers::sqs::{LOCALSTACK, Stage, plain, received, unique};
use dlo_core::{
    Address, Atomicity, Delivery, Header, LookRequest, Message, Outgoing, Session, Target, Value,
};
use dlo_engine::dead_letter::{self, Pointer, wrapped};
use tokio_util::sync::CancellationToken;

const REGION: &str = "eu-west-1";
const ACCOUNT: &str = "000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn an_sns_envelope_is_taken_off_with_its_attributes() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = undelivered(&stage, "false").await?;
    let session = stage.session().await?;
    let letter = only_letter(session.as_ref(), &dead).await?;
    let body: serde_json::Value =
        serde_json::from_slice(letter.message.body.as_deref().unwrap_or_default())?;
    ensure!(
        body["Type"] == "Notification" && letter.message.headers.is_empty(),
        "{body}"
    );
    let unwrapped = wrapped::unwrap(&letter).context("the envelope was not recognised")?;
    ensure!(unwrapped.wrapper.contains("SNS"), "{}", unwrapped.wrapper);
    arrives(
        &stage,
        session.as_ref(),
        &source,
        &unwrapped.message,
        &inner(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_raw_delivery_the_letter_is_the_message_itself() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = undelivered(&stage, "true").await?;
    let session = stage.session().await?;
    let letter = only_letter(session.as_ref(), &dead).await?;
    ensure!(wrapped::unwrap(&letter).is_none());
    arrives(&stage, session.as_ref(), &source, &letter.message, &inner()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_pointer_and_its_size_stay_together() -> Result<()> {
    let stage = Stage::on(LOCALSTACK)?;
    let (source, dead) = stage.create_pair(&unique("pointer"), 5).await?;
    let bucket = unique("bucket");
    stage.put_object(&bucket, None).await?;
    stage
        .put_object(&bucket, Some(("body", &vec![b'x'; 3_000_000])))
        .await?;
    let mut message = plain(&format!(
        r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{{"s3BucketName":"{bucket}","s3Key":"body"}}]"#
    ));
    message.headers = vec![Header::new(
        "ExtendedPayloadSize",
        "Number",
        Value::text("3000000"),
    )];
    stage.send(&dead, std::slice::from_ref(&message)).await?;
    let session = stage.session().await?;
    let letter = only_letter(session.as_ref(), &dead).await?;
    let pointer = dead_letter::pointer(&letter);
    let expected = Pointer::S3 {
        bucket: Some(bucket),
        key: "body".to_owned(),
        size: Some(3_000_000),
    };
    ensure!(pointer == Some(expected), "{pointer:?}");
    arrives(&stage, session.as_ref(), &source, &letter.message, &message).await
}

/// What was published to the topic.
fn inner() -> Message {
    let mut message = plain(r#"{"order":7}"#);
    message.headers = vec![Header::new("kind", "String", Value::text("refund"))];
    message
}

/// A queue pair whose dead-letter queue holds what a subscription to a missing queue could not deliver.
async fn undelivered(stage: &Stage, raw: &str) -> Result<(String, String)> {
    let (source, dead) = stage.create_pair(&unique("sns"), 5).await?;
    let topic = stage
        .query("sns", &[("Action", "CreateTopic"), ("Name", &source)])
        .await?;
    let topic = between(&topic, "<TopicArn>", "</TopicArn>")?;
    let arn = |queue: &str| format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}");
    let policy = format!(r#"{{"deadLetterTargetArn":"{}"}}"#, arn(&dead));
    stage
        .query(
            "sns",
            &[
                ("Action", "Subscribe"),
                ("TopicArn", topic),
                ("Protocol", "sqs"),
                ("Endpoint", &arn(&unique("gone"))),
                ("Attributes.entry.1.key", "RedrivePolicy"),
                ("Attributes.entry.1.value", &policy),
                ("Attributes.entry.2.key", "RawMessageDelivery"),
                ("Attributes.entry.2.value", raw),
            ],
        )
        .await?;
    stage
        .query(
            "sns",
            &[
                ("Action", "Publish"),
                ("TopicArn", topic),
                ("Message", r#"{"order":7}"#),
                ("Subject", "orders"),
                ("MessageAttributes.entry.1.Name", "kind"),
                ("MessageAttributes.entry.1.Value.DataType", "String"),
                ("MessageAttributes.entry.1.Value.StringValue", "refund"),
            ],
        )
        .await?;
    stage.wait_visible(&dead, 1).await?;
    Ok((source, dead))
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Result<&'a str> {
    let rest = text
        .split_once(from)
        .with_context(|| format!("no {from} in {text}"))?
        .1;
    Ok(rest
        .split_once(to)
        .with_context(|| format!("no {to} in {text}"))?
        .0)
}

async fn only_letter(session: &dyn Session, dead: &str) -> Result<Delivery> {
    let look = session
        .look(&Address::queue(dead), LookRequest::new(1))
        .await?;
    let mut page = look.next(1, &CancellationToken::new()).await?;
    look.close().await?;
    page.deliveries.pop().context("there is no letter")
}

/// Sends it to the queue, and compares what an ordinary consumer gets.
async fn arrives(
    stage: &Stage,
    session: &dyn Session,
    to: &str,
    message: &Message,
    expected: &Message,
) -> Result<()> {
    let outgoing = Outgoing {
        target: Target::new(Address::queue(to)),
        message: message.clone(),
        time: None,
    };
    session
        .publish(vec![outgoing], Atomicity::Each)
        .await
        .remove(0)?;
    let arrived = stage.drain(to).await?;
    let found = received(arrived.first().context("nothing arrived")?);
    ensure!(
        found.body == expected.body && found.headers == expected.headers,
        "{found:?}"
    );
    ensure!(found.body != Some(Bytes::new()));
    Ok(())
}
