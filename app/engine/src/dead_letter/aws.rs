//! Dead letters of AWS services that arrive in SQS, SNS or Kafka: Lambda's queue and destinations, stream mappings,
//! EventBridge rules and schedules.

use serde_json::Value as Json;

use super::{
    Confidence, Death, Pointer,
    field::{Field, name_in_address, text_time},
    marks::{Marks, Newest, Plain},
};

/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>
const LAMBDA_QUEUE: Plain = Plain {
    dialect: "AWS Lambda",
    marks: &["RequestID"],
    confidence: Confidence::Likely,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "ErrorCode"),
        (Field::Message, "ErrorMessage"),
    ],
    scope: "",
};

/// <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html>
const EVENT_RULE: Plain = Plain {
    dialect: "EventBridge",
    marks: &["RULE_ARN"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "ERROR_CODE"),
        (Field::Message, "ERROR_MESSAGE"),
        (Field::Handler, "RULE_ARN"),
        (Field::Attempts, "RETRY_ATTEMPTS"),
    ],
    scope: "retries by EventBridge",
};

/// <https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html>
const SCHEDULE: Plain = Plain {
    dialect: "EventBridge Scheduler",
    marks: &["SCHEDULE_ARN"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "ERROR_CODE"),
        (Field::Message, "ERROR_MESSAGE"),
        (Field::Handler, "SCHEDULE_ARN"),
        (Field::Attempts, "RETRY_ATTEMPTS"),
        (Field::Sent, "SCHEDULED_TIME"),
    ],
    scope: "retries by EventBridge Scheduler",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths: Vec<Death> = read_destination(marks).into_iter().collect();
    if marks.has("ErrorMessage") || marks.has("ErrorCode") {
        deaths.append(&mut LAMBDA_QUEUE.read(marks));
    }
    for dialect in [&EVENT_RULE, &SCHEDULE] {
        let mut found = dialect.read(marks);
        for death in &mut found {
            note_target(marks, death);
        }
        deaths.append(&mut found);
    }
    deaths
}

fn note_target(marks: &Marks<'_>, death: &mut Death) {
    if let Some(target) = marks.text("TARGET_ARN") {
        death.notes.push(format!("The target was {target}."));
    }
    if let Some(limit) = marks.text("EXHAUSTED_RETRY_CONDITION") {
        death
            .notes
            .push(format!("It was given up because {limit} was reached."));
    }
    if marks.text("IS_PAYLOAD_TRUNCATED") == Some("true") {
        death
            .notes
            .push("The payload was cut: this is not the whole message.".to_owned());
    }
}

/// Lambda's on-failure destination, whether of an asynchronous call or of a stream mapping
/// (<https://docs.aws.amazon.com/lambda/latest/dg/kafka-on-failure.html>).
fn read_destination(marks: &Marks<'_>) -> Option<Death> {
    let json = marks.object_with(&["\"requestContext\"", "\"responseContext\""])?;
    let context = json.get("requestContext")?;
    let function = text(context, "functionArn")?;
    let mut death = Death::new("AWS Lambda destination", Confidence::Sure);
    death.origin.handler = Some(function);
    death.note_source(Field::Handler.path(), "body /requestContext/functionArn");
    death.attempts = context.get("approximateInvokeCount").and_then(Json::as_u64);
    if death.attempts.is_some() {
        death.scope = Some("calls of the function, about".into());
        death.note_source(
            Field::Attempts.path(),
            "body /requestContext/approximateInvokeCount",
        );
    }
    death.last = text(json, "timestamp").as_deref().and_then(text_time);
    if death.last.is_some() {
        death.note_source(Field::Last.path(), "body /timestamp");
    }
    read_error(json, context, &mut death);
    read_batch(json, &mut death);
    Some(death)
}

/// The function's own error where it answered one, else Lambda's condition.
fn read_error(json: &Json, context: &Json, death: &mut Death) {
    let answer = json.get("responsePayload");
    let from_answer = |name: &str| answer.and_then(|answer| text(answer, name));
    if let Some(class) = from_answer("errorType") {
        death.reason.class = Some(class);
        death.note_source(Field::Class.path(), "body /responsePayload/errorType");
    } else if let Some(condition) = text(context, "condition") {
        death.reason.class = Some(condition);
        death.note_source(Field::Class.path(), "body /requestContext/condition");
    }
    if let Some(message) = from_answer("errorMessage") {
        death.reason.message = Some(message);
        death.note_source(Field::Message.path(), "body /responsePayload/errorMessage");
    }
    let stack = answer.and_then(|answer| answer.get("stackTrace").or_else(|| answer.get("trace")));
    if let Some(lines) = stack.and_then(Json::as_array) {
        let lines: Vec<&str> = lines.iter().filter_map(Json::as_str).collect();
        death.reason.stack = Some(lines.join("\n"));
        death.note_source(Field::Stack.path(), "body /responsePayload/stackTrace");
    }
}

fn read_batch(json: &Json, death: &mut Death) {
    for (name, service) in [
        ("KinesisBatchInfo", "kinesis"),
        ("DDBStreamBatchInfo", "dynamodb"),
        ("KafkaBatchInfo", "kafka"),
    ] {
        let Some(batch) = json.get(name) else {
            continue;
        };
        let stream = text(batch, "streamArn").or_else(|| text(batch, "eventSourceArn"));
        let stream = stream.unwrap_or_default();
        if service == "kafka" {
            death.origin.topic = kafka_topic(json);
        } else {
            death.origin.topic = Some(name_in_address(&stream).to_owned());
            death.note_source(Field::Topic.path(), format!("body /{name}/streamArn"));
        }
        if json.get("payload").is_some() {
            return;
        }
        death.pointer = Some(Pointer::Stream {
            service: service.to_owned(),
            stream,
            shard: text(batch, "shardId"),
            first: text(batch, "startSequenceNumber"),
            last: text(batch, "endSequenceNumber"),
            records: batch.get("batchSize").and_then(Json::as_u64),
        });
        death.notes.push(
            "Only the place of the records is here: fetch them from the stream before it forgets them.".to_owned(),
        );
        return;
    }
}

/// Records are keyed by `topic-partition`.
fn kafka_topic(json: &Json) -> Option<String> {
    let records = json.get("payload")?.get("records")?.as_object()?;
    let (name, _) = records.keys().next()?.rsplit_once('-')?;
    Some(name.to_owned())
}

/// A string, or a number in its own digits.
fn text(json: &Json, name: &str) -> Option<String> {
    match json.get(name)? {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
