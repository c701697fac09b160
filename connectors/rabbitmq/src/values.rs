//! AMQP field values to the project's values and back, type for type.
//!
//! Separate because it is the one place that must lose nothing: what comes out of [`to_message`] and goes
//! through [`to_properties`] unedited is the same bytes on the wire. The names of the types are RabbitMQ's
//! own short ones (`longstr`, `int64`, …; see <https://www.rabbitmq.com/amqp-0-9-1-errata.html#section_3>).

use bytes::Bytes;
use dlo_core::{Error, ErrorKind, Header, Message, Result, Typed, Value};
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString, ShortString},
};

/// The message of a delivery: headers in the broker's order, the basic properties by their AMQP names, the body.
pub(crate) fn to_message(properties: &BasicProperties, body: Vec<u8>) -> Message {
    Message {
        key: None,
        headers: properties.headers().as_ref().map_or_else(Vec::new, headers),
        properties: basic_properties(properties).into_iter().collect(),
        body: Some(Bytes::from(body)),
    }
}

/// What to publish for a message: its properties with the header table in them.
///
/// # Errors
/// [`ErrorKind::Rejected`] for what AMQP 0-9-1 cannot say, with the name of the header or property.
pub(crate) fn to_properties(message: &Message) -> Result<BasicProperties> {
    if message.key.is_some() {
        return Err(rejected("it has a record key, and AMQP messages have none"));
    }
    if message.body.is_none() {
        return Err(rejected(
            "its body is null, and an AMQP body can only be empty",
        ));
    }
    let mut properties = BasicProperties::default();
    for (name, value) in &message.properties {
        properties = with_property(properties, name, value)?;
    }
    if !message.headers.is_empty() {
        properties = properties.with_headers(table(&message.headers)?);
    }
    Ok(properties)
}

/// One field value with RabbitMQ's name of its type.
pub(crate) fn typed(value: &AMQPValue) -> Typed {
    let int = |kind, int: i128| Typed::new(kind, Value::Int(int));
    match value {
        AMQPValue::Boolean(flag) => Typed::new("boolean", Value::Bool(*flag)),
        AMQPValue::ShortShortInt(n) => int("int8", (*n).into()),
        AMQPValue::ShortShortUInt(n) => int("uint8", (*n).into()),
        AMQPValue::ShortInt(n) => int("int16", (*n).into()),
        AMQPValue::ShortUInt(n) => int("uint16", (*n).into()),
        AMQPValue::LongInt(n) => int("int32", (*n).into()),
        AMQPValue::LongUInt(n) => int("uint32", (*n).into()),
        AMQPValue::LongLongInt(n) => int("int64", (*n).into()),
        AMQPValue::Float(n) => Typed::new("float", Value::Float((*n).into())),
        AMQPValue::Double(n) => Typed::new("double", Value::Float(*n)),
        AMQPValue::DecimalValue(n) => Typed::new(
            "decimal",
            Value::Decimal {
                unscaled: n.value.into(),
                scale: n.scale,
            },
        ),
        AMQPValue::ShortString(text) => Typed::new("shortstr", Value::text(text.as_str())),
        AMQPValue::LongString(text) => Typed::new("longstr", bytes(text.as_bytes())),
        AMQPValue::FieldArray(items) => Typed::new(
            "array",
            Value::List(items.as_slice().iter().map(typed).collect()),
        ),
        AMQPValue::Timestamp(seconds) => Typed::new("timestamp", seconds_to_time(*seconds)),
        AMQPValue::FieldTable(entries) => Typed::new("table", Value::Table(headers(entries))),
        AMQPValue::ByteArray(data) => Typed::new("bytes", bytes(data.as_slice())),
        AMQPValue::Void => Typed::new("void", Value::Null),
    }
}

/// The field value that `typed` came from, or that a person made of it.
pub(crate) fn amqp_value(name: &str, typed: &Typed) -> Result<AMQPValue> {
    let wrong = || {
        rejected(format!(
            "the value of {name} is no AMQP {}; change the value or the type",
            typed.kind
        ))
    };
    let value = match (typed.kind.as_ref(), &typed.value) {
        ("boolean", Value::Bool(flag)) => AMQPValue::Boolean(*flag),
        ("int8", Value::Int(n)) => AMQPValue::ShortShortInt(narrow(*n).ok_or_else(wrong)?),
        ("uint8", Value::Int(n)) => AMQPValue::ShortShortUInt(narrow(*n).ok_or_else(wrong)?),
        ("int16", Value::Int(n)) => AMQPValue::ShortInt(narrow(*n).ok_or_else(wrong)?),
        ("uint16", Value::Int(n)) => AMQPValue::ShortUInt(narrow(*n).ok_or_else(wrong)?),
        ("int32", Value::Int(n)) => AMQPValue::LongInt(narrow(*n).ok_or_else(wrong)?),
        ("uint32", Value::Int(n)) => AMQPValue::LongUInt(narrow(*n).ok_or_else(wrong)?),
        ("int64", Value::Int(n)) => AMQPValue::LongLongInt(narrow(*n).ok_or_else(wrong)?),
        ("float", Value::Float(n)) => float(name, *n)?,
        ("double", Value::Float(n)) => double(name, *n)?,
        ("decimal", Value::Decimal { unscaled, scale }) => AMQPValue::DecimalValue(DecimalValue {
            scale: *scale,
            value: narrow(*unscaled).ok_or_else(wrong)?,
        }),
        ("shortstr", Value::Bytes(_)) => {
            AMQPValue::ShortString(short(typed.value.as_text().ok_or_else(wrong)?, name)?)
        }
        ("longstr", Value::Bytes(data)) => AMQPValue::LongString(LongString::from(data.to_vec())),
        ("bytes", Value::Bytes(data)) => AMQPValue::ByteArray(ByteArray::from(data.to_vec())),
        ("array", Value::List(items)) => AMQPValue::FieldArray(array(name, items)?),
        ("timestamp", Value::Time(millis)) => {
            AMQPValue::Timestamp(time_to_seconds(*millis).ok_or_else(wrong)?)
        }
        ("table", Value::Table(entries)) => AMQPValue::FieldTable(table(entries)?),
        ("void", Value::Null) => AMQPValue::Void,
        _ => foreign(typed).ok_or_else(wrong)?,
    };
    Ok(value)
}

/// A header of another broker, or one a person typed without a type: the nearest AMQP type, if nothing is lost.
fn foreign(typed: &Typed) -> Option<AMQPValue> {
    const OURS: [&str; 18] = [
        "boolean",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "float",
        "double",
        "decimal",
        "shortstr",
        "longstr",
        "bytes",
        "array",
        "timestamp",
        "table",
        "void",
    ];
    if OURS.contains(&typed.kind.as_ref()) {
        return None;
    }
    match &typed.value {
        Value::Null => Some(AMQPValue::Void),
        Value::Bool(flag) => Some(AMQPValue::Boolean(*flag)),
        Value::Int(n) => narrow(*n).map(AMQPValue::LongLongInt),
        Value::Float(n) if n.is_finite() => Some(AMQPValue::Double(*n)),
        Value::Bytes(data) if std::str::from_utf8(data).is_ok() => {
            Some(AMQPValue::LongString(LongString::from(data.to_vec())))
        }
        Value::Bytes(data) => Some(AMQPValue::ByteArray(ByteArray::from(data.to_vec()))),
        Value::Time(millis) => time_to_seconds(*millis).map(AMQPValue::Timestamp),
        Value::Float(_) | Value::Decimal { .. } | Value::Table(_) | Value::List(_) => None,
    }
}

/// The header table of these headers.
///
/// # Errors
/// A name that occurs twice: an AMQP table has one value for a name.
pub(crate) fn table(entries: &[Header]) -> Result<FieldTable> {
    let mut table = FieldTable::default();
    for entry in entries {
        let name = short(&entry.name, &entry.name)?;
        if table.contains_key(name.as_str()) {
            return Err(rejected(format!(
                "the header {} occurs twice, and an AMQP table has one value for a name",
                entry.name
            )));
        }
        table.insert(name, amqp_value(&entry.name, &entry.typed)?);
    }
    Ok(table)
}

fn headers(table: &FieldTable) -> Vec<Header> {
    table
        .inner()
        .iter()
        .map(|(name, value)| Header {
            name: name.to_string(),
            typed: typed(value),
        })
        .collect()
}

fn array(name: &str, items: &[Typed]) -> Result<FieldArray> {
    let values: Result<Vec<_>> = items.iter().map(|item| amqp_value(name, item)).collect();
    values.map(FieldArray::from)
}

fn basic_properties(p: &BasicProperties) -> Vec<(String, Value)> {
    let text = |value: &Option<ShortString>| value.as_ref().map(|v| Value::text(v.as_str()));
    let int = |value: Option<u8>| value.map(|v| Value::Int(v.into()));
    [
        ("content_type", text(p.content_type())),
        ("content_encoding", text(p.content_encoding())),
        ("delivery_mode", int(*p.delivery_mode())),
        ("priority", int(*p.priority())),
        ("correlation_id", text(p.correlation_id())),
        ("reply_to", text(p.reply_to())),
        ("expiration", text(p.expiration())),
        ("message_id", text(p.message_id())),
        ("timestamp", p.timestamp().map(seconds_to_time)),
        ("type", text(p.kind())),
        ("user_id", text(p.user_id())),
        ("app_id", text(p.app_id())),
        ("cluster_id", text(p.cluster_id())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

fn with_property(p: BasicProperties, name: &str, value: &Value) -> Result<BasicProperties> {
    let wrong = || rejected(format!("the property {name} has a value AMQP cannot carry"));
    let text = || short(value.as_text().ok_or_else(wrong)?, name);
    let octet = || value.as_int().and_then(narrow).ok_or_else(wrong);
    Ok(match name {
        "content_type" => p.with_content_type(text()?),
        "content_encoding" => p.with_content_encoding(text()?),
        "delivery_mode" => p.with_delivery_mode(octet()?),
        "priority" => p.with_priority(octet()?),
        "correlation_id" => p.with_correlation_id(text()?),
        "reply_to" => p.with_reply_to(text()?),
        "expiration" => p.with_expiration(text()?),
        "message_id" => p.with_message_id(text()?),
        "timestamp" => match value {
            Value::Time(millis) => p.with_timestamp(time_to_seconds(*millis).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        },
        "type" => p.with_type(text()?),
        "user_id" => p.with_user_id(text()?),
        "app_id" => p.with_app_id(text()?),
        "cluster_id" => p.with_cluster_id(text()?),
        _ => {
            return Err(rejected(format!(
                "AMQP has no property {name}; use a header"
            )));
        }
    })
}

fn bytes(data: &[u8]) -> Value {
    Value::Bytes(Bytes::copy_from_slice(data))
}

/// AMQP counts whole seconds.
fn seconds_to_time(seconds: u64) -> Value {
    Value::Time(i128::from(seconds) * 1000)
}

fn time_to_seconds(millis: i128) -> Option<u64> {
    (millis % 1000 == 0)
        .then(|| narrow(millis / 1000))
        .flatten()
}

/// RabbitMQ closes the whole connection on a float that is not finite, so it is stopped here.
fn float(name: &str, n: f64) -> Result<AMQPValue> {
    #[allow(clippy::cast_possible_truncation, reason = "compared right after")]
    let narrow = n as f32;
    if n.is_finite() && f64::from(narrow).to_bits() == n.to_bits() {
        return Ok(AMQPValue::Float(narrow));
    }
    Err(rejected(format!(
        "the value of {name} does not fit a 32-bit float; use the type double"
    )))
}

fn double(name: &str, n: f64) -> Result<AMQPValue> {
    if n.is_finite() {
        return Ok(AMQPValue::Double(n));
    }
    Err(rejected(format!(
        "the value of {name} is not a finite number, and RabbitMQ closes the connection on such a header"
    )))
}

fn short(text: &str, name: &str) -> Result<ShortString> {
    ShortString::try_new(text).map_err(|_| {
        rejected(format!(
            "{} is longer than the 255 bytes AMQP allows there",
            if text == name {
                "a header's name".to_owned()
            } else {
                format!("the value of {name}")
            }
        ))
    })
}

fn narrow<T: TryFrom<i128>>(n: i128) -> Option<T> {
    T::try_from(n).ok()
}

fn rejected(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Rejected, "publish the message", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_type() -> FieldTable {
        let mut inner = FieldTable::default();
        inner.insert("deep".into(), AMQPValue::Void);
        let mut table = FieldTable::default();
        for (name, value) in [
            ("a", AMQPValue::Boolean(true)),
            ("b", AMQPValue::ShortShortInt(-128)),
            ("c", AMQPValue::ShortShortUInt(255)),
            ("d", AMQPValue::ShortInt(-32768)),
            ("e", AMQPValue::ShortUInt(65535)),
            ("f", AMQPValue::LongInt(i32::MIN)),
            ("g", AMQPValue::LongUInt(u32::MAX)),
            ("h", AMQPValue::LongLongInt(i64::MIN)),
            ("i", AMQPValue::Float(1.5)),
            ("j", AMQPValue::Double(-0.1)),
            (
                "k",
                AMQPValue::DecimalValue(DecimalValue {
                    scale: 2,
                    value: 1230,
                }),
            ),
            ("l", AMQPValue::LongString(vec![0xff, 0].into())),
            ("m", AMQPValue::Timestamp(u64::MAX)),
            ("n", AMQPValue::ByteArray(vec![0, 255].into())),
            ("o", AMQPValue::Void),
            ("p", AMQPValue::FieldTable(inner.clone())),
            (
                "q",
                AMQPValue::FieldArray(vec![AMQPValue::Void, AMQPValue::FieldTable(inner)].into()),
            ),
        ] {
            table.insert(name.into(), value);
        }
        table
    }

    #[test]
    fn every_type_comes_back_as_it_was() {
        let properties = BasicProperties::default()
            .with_headers(every_type())
            .with_content_type("a/b".into())
            .with_delivery_mode(2)
            .with_priority(0)
            .with_timestamp(1_700_000_000)
            .with_type("".into());
        let body: Vec<u8> = (0..=255).collect();
        let message = to_message(&properties, body.clone());
        assert_eq!(to_properties(&message), Ok(properties));
        assert_eq!(message.body.as_deref(), Some(body.as_slice()));
    }

    #[test]
    fn what_amqp_cannot_say_is_named() {
        let check = |header: Header, expected: &str| {
            let error = table(&[header]).expect_err(expected);
            assert_eq!(error.kind(), ErrorKind::Rejected);
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(
            Header::new("n", "int8", Value::Int(128)),
            "the value of n is no AMQP int8",
        );
        check(
            Header::new("n", "double", Value::Float(f64::INFINITY)),
            "not a finite number",
        );
        check(
            Header::new("t", "timestamp", Value::Time(1)),
            "no AMQP timestamp",
        );
        let twice = [
            Header::new("a", "void", Value::Null),
            Header::new("a", "void", Value::Null),
        ];
        assert!(table(&twice).is_err());
        let keyed = Message {
            key: Some(Bytes::new()),
            ..to_message(&BasicProperties::default(), Vec::new())
        };
        assert!(to_properties(&keyed).is_err());
    }

    #[test]
    fn a_header_of_another_broker_takes_the_nearest_type() {
        let typed = Typed::new("Number.int", Value::Int(7));
        assert_eq!(amqp_value("n", &typed), Ok(AMQPValue::LongLongInt(7)));
    }
}
