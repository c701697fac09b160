//! What headers and properties say about a payload before a byte of it is read.

use crate::input::Input;
use crate::recipe::{Step, charset};
use crate::report::{CloudEvent, Note};

/// Hints, to be confirmed by decoding.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Layers that a content encoding names, outermost first.
    pub layers: Vec<Step>,
    pub format: Option<Step>,
    pub charset: Option<&'static str>,
    /// The content type itself.
    pub content_type: Option<String>,
    pub cloud_event: Option<CloudEvent>,
}

/// Reads the hints. The broker's property goes before a header of the same meaning.
pub(super) fn read(input: &Input<'_>, notes: &mut Vec<Note>) -> Hints {
    let content_type = input
        .content_type
        .or_else(|| input.header_text("content-type"))
        .or_else(|| input.header_text("contentType"))
        .or_else(|| input.header_text("content_type"));
    // Spring Cloud Stream quotes header values as JSON strings.
    let content_type = content_type
        .map(|value| value.trim().trim_matches('"').to_owned())
        .filter(|value| !value.is_empty());
    let encoding = input
        .content_encoding
        .or_else(|| input.header_text("content-encoding"))
        .or_else(|| input.header_text("contentEncoding"))
        .or_else(|| input.header_text("content_encoding"));
    let mut hints = Hints {
        cloud_event: binary_cloud_event(input),
        ..Hints::default()
    };
    if let Some(value) = &content_type {
        read_content_type(value, &mut hints);
    }
    if let Some(value) = encoding {
        read_encoding(value, &mut hints, notes);
    }
    hints.content_type = content_type;
    hints
}

/// A list as HTTP has it: the last named was applied last and comes off first.
fn read_encoding(value: &str, hints: &mut Hints, notes: &mut Vec<Note>) {
    for name in value.split(',').rev() {
        let name = name.trim().trim_matches('"').to_ascii_lowercase();
        let step = match name.as_str() {
            "" | "identity" | "utf-8" | "utf8" | "binary" | "8bit" | "7bit" | "us-ascii"
            | "none" => continue,
            "gzip" | "x-gzip" | "gz" => Step::Gzip,
            "deflate" | "zlib" => Step::Zlib,
            "br" | "brotli" => Step::Brotli,
            "zstd" | "zst" => Step::Zstd,
            "lz4" => Step::Lz4,
            "snappy" | "x-snappy" => Step::Snappy,
            "x-snappy-framed" => Step::SnappyFramed,
            "base64" => Step::Base64,
            other => match charset(other) {
                Some(name) => {
                    hints.charset = Some(name);
                    continue;
                }
                None => {
                    notes.push(Note::info(format!(
                        "the content encoding \"{other}\" is not known here; the bytes decide"
                    )));
                    continue;
                }
            },
        };
        hints.layers.push(step);
    }
}

fn read_content_type(value: &str, hints: &mut Hints) {
    let mut parts = value.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    for parameter in parts {
        if let Some((name, label)) = parameter.split_once('=')
            && name.trim().eq_ignore_ascii_case("charset")
        {
            hints.charset = charset(label.trim().trim_matches('"'));
        }
    }
    match kind.as_str() {
        "application/gzip" | "application/x-gzip" => hints.layers.push(Step::Gzip),
        "application/zstd" => hints.layers.push(Step::Zstd),
        _ => hints.format = format(&kind),
    }
}

fn format(kind: &str) -> Option<Step> {
    let ends = |end: &str| kind.ends_with(end);
    match kind {
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/jsonlines"
        | "application/json-lines" => Some(Step::JsonLines),
        "application/msgpack" | "application/x-msgpack" | "application/vnd.msgpack" => {
            Some(Step::MessagePack)
        }
        "application/cbor" => Some(Step::Cbor),
        "application/protobuf"
        | "application/x-protobuf"
        | "application/vnd.google.protobuf"
        | "application/x-google-protobuf" => Some(Step::Protobuf),
        "avro/binary" | "application/avro" | "application/x-avro" | "avro/bytes" => {
            Some(Step::Avro)
        }
        "application/x-java-serialized-object" => Some(Step::JavaSerialized),
        "application/xml" | "text/xml" => Some(Step::Xml),
        "application/json" | "text/json" => Some(Step::Json),
        _ if ends("+json") => Some(Step::Json),
        _ if ends("+xml") => Some(Step::Xml),
        _ if ends("+cbor") => Some(Step::Cbor),
        _ if ends("+msgpack") => Some(Step::MessagePack),
        _ if kind.starts_with("application/vnd.apache.avro")
            || kind.starts_with("application/vnd.kafka.avro")
            || ends("+avro") =>
        {
            Some(Step::Avro)
        }
        _ if kind.starts_with("text/") => Some(Step::Text),
        _ => None,
    }
}

/// CloudEvents in binary mode: Kafka's `ce_`, AMQP's `cloudEvents:` and `cloudEvents_`, HTTP's `ce-`.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md>
fn binary_cloud_event(input: &Input<'_>) -> Option<CloudEvent> {
    let attribute = |name: &str| {
        ["ce_", "cloudEvents:", "cloudEvents_", "ce-"]
            .into_iter()
            .find_map(|prefix| input.header_text(&format!("{prefix}{name}")))
            .map(str::to_owned)
    };
    attribute("specversion")?;
    Some(CloudEvent {
        mode: "binary",
        id: attribute("id").unwrap_or_default(),
        event_type: attribute("type").unwrap_or_default(),
        source: attribute("source").unwrap_or_default(),
        subject: attribute("subject"),
        data_schema: attribute("dataschema"),
    })
}

/// CloudEvents in structured mode: the document is the event.
pub(super) fn structured_cloud_event(document: &crate::document::Document) -> Option<CloudEvent> {
    let text = |name: &str| {
        document
            .get(name)
            .and_then(|value| value.as_text())
            .map(str::to_owned)
    };
    text("specversion")?;
    Some(CloudEvent {
        mode: "structured",
        id: text("id")?,
        event_type: text("type")?,
        source: text("source")?,
        subject: text("subject"),
        data_schema: text("dataschema"),
    })
}
