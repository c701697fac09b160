//! The shop's invoices and images, shaped like SQS: a redriven queue, a FIFO pair, and what Lambda sets aside.

use bytes::Bytes;
use dlo_core::{Header, Message, Millis, Value};

use crate::{Broker, QueueSettings, state::State};

use super::{hours, minutes, random::Random};

pub(super) const INVOICES: &str = "billing-invoices";
const INVOICES_DEAD: &str = "billing-invoices-dlq";
const LEDGER: &str = "ledger.fifo";
const LEDGER_DEAD: &str = "ledger-dlq.fifo";
const IMAGES_FAILED: &str = "image-resize-failed-dlq";

pub(super) fn declare(broker: &Broker) {
    broker.declare_queue(INVOICES_DEAD, QueueSettings::standard());
    let invoices = QueueSettings::standard().with_redrive(INVOICES_DEAD, 3);
    broker.declare_queue(INVOICES, invoices);
    broker.declare_queue(LEDGER_DEAD, QueueSettings::fifo());
    broker.declare_queue(LEDGER, QueueSettings::fifo().with_redrive(LEDGER_DEAD, 3));
    broker.declare_queue(IMAGES_FAILED, QueueSettings::standard());
}

pub(super) fn fill(state: &mut State, random: &mut Random) {
    let now = state.now();
    for number in 0..25 {
        let sent = now.plus(-random.between(minutes(20), hours(70)));
        let message = invoice(number, random);
        redriven(state, INVOICES_DEAD, INVOICES, message, sent);
    }
    for number in 0..9 {
        let sent = now.plus(-minutes(200 - 20 * number));
        redriven(state, LEDGER_DEAD, LEDGER, entry(number), sent);
    }
    for number in 0..12 {
        let sent = now.plus(-minutes(15 + 45 * number));
        let message = match number {
            3 => lambda_dead_letter(random),
            7 => s3_pointer(random),
            _ => lambda_failure(number, sent, random),
        };
        state.arrive(IMAGES_FAILED, message, "", IMAGES_FAILED, sent);
    }
}

/// Puts a message into a dead-letter queue as SQS does after too many receives: it says nothing but that.
fn redriven(state: &mut State, dead: &str, source: &str, message: Message, sent: Millis) {
    state.arrive(dead, message, "", dead, sent);
    let Ok(queue) = state.queue(dead) else { return };
    queue.mark_last(|stored| {
        stored.source = Some(source.to_owned());
        stored.count = 3;
        stored.first_received = Some(sent.plus(1_500));
    });
}

/// An invoice with typed attributes.
pub(super) fn invoice(number: i64, random: &mut Random) -> Message {
    let total = format!("{}.{:02}", random.below(900), random.below(100));
    let body = format!(
        "{{\"invoice\":\"i-{}\",\"order\":\"o-{}\",\"total\":{total},\"vatId\":{}}}",
        88_000 + number,
        410_000 + random.below(400),
        if number % 4 == 1 {
            "null"
        } else {
            "\"DE136695976\""
        },
    );
    Message {
        body: Some(body.into()),
        headers: vec![
            Header::new("attempt", "Number.int", Value::text("3")),
            Header::new("channel", "String", Value::text("email")),
            Header::new(
                "signature",
                "Binary.hmac",
                Value::Bytes(Bytes::from_static(&[0x1f, 0x00, 0xff, 0x7e])),
            ),
        ],
        ..Message::default()
    }
}

fn entry(number: i64) -> Message {
    let account = number % 3;
    let body = format!(
        "{{\"account\":\"a-{account}\",\"seq\":{},\"amount\":\"-{}.00\"}}",
        9_007_199_254_740_992_i64 + number,
        10 + number
    );
    let mut message = Message {
        body: Some(body.into()),
        ..Message::default()
    };
    let properties = [
        ("MessageGroupId", format!("a-{account}")),
        ("MessageDeduplicationId", format!("entry-{number}")),
    ];
    let properties = properties.map(|(name, value)| (name.to_owned(), Value::text(value)));
    message.properties.extend(properties);
    message
}

/// Lambda's on-failure destination: the event is wrapped.
fn lambda_failure(number: i64, at: Millis, random: &mut Random) -> Message {
    let error = if number % 3 == 0 {
        r#"{"errorMessage":"Task timed out after 3.00 seconds"}"#
    } else {
        r#"{"errorType":"UnidentifiedImageError","errorMessage":"cannot identify image file","stackTrace":["  File \"/var/task/resize.py\", line 31, in handler\n    image = Image.open(data)\n"]}"#
    };
    let request = format!(
        "{}-{}-4{}-a{}-{}",
        random.hex(8),
        random.hex(4),
        random.hex(3),
        random.hex(3),
        random.hex(12)
    );
    let body = format!(
        r#"{{"version":"1.0","timestamp":"{at}","requestContext":{{"requestId":"{request}","functionArn":"arn:aws:lambda:eu-west-1:000000000000:function:image-resize:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":3}},"requestPayload":{{"bucket":"shop-images","key":"products/{}.jpg"}},"responseContext":{{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"}},"responsePayload":{error}}}"#,
        1_000 + random.below(9_000),
    );
    Message {
        body: Some(body.into()),
        ..Message::default()
    }
}

/// Lambda's own dead-letter queue: the event as it was, the error in attributes.
fn lambda_dead_letter(random: &mut Random) -> Message {
    let attribute =
        |name: &str, kind: &'static str, value: &str| Header::new(name, kind, Value::text(value));
    Message {
        body: Some(r#"{"bucket":"shop-images","key":"products/77.jpg"}"#.into()),
        headers: vec![
            attribute("ErrorCode", "Number", "200"),
            attribute("ErrorMessage", "String", "cannot identify image file"),
            attribute("RequestID", "String", &random.hex(32)),
        ],
        ..Message::default()
    }
}

/// A body that the extended client has put into S3: only a pointer is here.
fn s3_pointer(random: &mut Random) -> Message {
    let body = format!(
        r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{{"s3BucketName":"shop-large-messages","s3Key":"{}"}}]"#,
        random.hex(32)
    );
    Message {
        body: Some(body.into()),
        headers: vec![Header::new(
            "ExtendedPayloadSize",
            "Number",
            Value::text("1893744"),
        )],
        ..Message::default()
    }
}
