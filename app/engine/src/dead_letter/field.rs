//! The fields of a death by name, and how their text is read. Readers and a person's own mapping fill a death through here,
//! so that each field always knows where it came from.

use dlo_core::{Millis, Value};

use super::Death;

/// One field of a [`Death`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    Class,
    Message,
    Cause,
    Stack,
    Queue,
    Topic,
    Partition,
    Offset,
    Exchange,
    RoutingKey,
    Group,
    Handler,
    Attempts,
    First,
    Last,
    Sent,
}

impl Field {
    pub const ALL: [Field; 16] = [
        Self::Class,
        Self::Message,
        Self::Cause,
        Self::Stack,
        Self::Queue,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Exchange,
        Self::RoutingKey,
        Self::Group,
        Self::Handler,
        Self::Attempts,
        Self::First,
        Self::Last,
        Self::Sent,
    ];

    /// The field's path in the capture format's `death` object, which is also its name in a profile's mapping.
    pub fn path(self) -> &'static str {
        match self {
            Self::Class => "reason.class",
            Self::Message => "reason.message",
            Self::Cause => "reason.cause",
            Self::Stack => "reason.stack",
            Self::Queue => "origin.queue",
            Self::Topic => "origin.topic",
            Self::Partition => "origin.partition",
            Self::Offset => "origin.offset",
            Self::Exchange => "origin.exchange",
            Self::RoutingKey => "origin.routing_keys",
            Self::Group => "origin.group",
            Self::Handler => "origin.handler",
            Self::Attempts => "attempts",
            Self::First => "first",
            Self::Last => "last",
            Self::Sent => "sent",
        }
    }

    /// The field with that path.
    pub fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.path() == path)
    }
}

/// Sets a field from a header's value; false when the value does not fit it, so that nothing wrong is shown.
pub(super) fn fill(death: &mut Death, field: Field, value: &Value, source: &str) -> bool {
    let set = match field {
        Field::Partition => int(value, 4)
            .and_then(|int| i32::try_from(int).ok())
            .map(|partition| death.origin.partition = Some(partition)),
        Field::Offset => int(value, 8)
            .and_then(|int| i64::try_from(int).ok())
            .map(|offset| death.origin.offset = Some(offset)),
        Field::Attempts => int(value, 4)
            .and_then(|int| u64::try_from(int).ok())
            .map(|attempts| death.attempts = Some(attempts)),
        Field::First => time(value).map(|time| death.first = Some(time)),
        Field::Last => time(value).map(|time| death.last = Some(time)),
        Field::Sent => time(value).map(|time| death.sent = Some(time)),
        Field::RoutingKey => text(value).map(|key| death.origin.routing_keys.push(key)),
        _ => text(value).map(|text| *text_slot(death, field) = Some(text)),
    };
    if set.is_some() {
        death.note_source(field.path(), source);
    }
    set.is_some()
}

fn text_slot(death: &mut Death, field: Field) -> &mut Option<String> {
    match field {
        Field::Message => &mut death.reason.message,
        Field::Cause => &mut death.reason.cause,
        Field::Stack => &mut death.reason.stack,
        Field::Queue => &mut death.origin.queue,
        Field::Topic => &mut death.origin.topic,
        Field::Exchange => &mut death.origin.exchange,
        Field::Group => &mut death.origin.group,
        Field::Handler => &mut death.origin.handler,
        _ => &mut death.reason.class,
    }
}

/// A value as text. Bytes that are not UTF-8 are shown with replacement characters: the header itself stays as it is.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(int) => Some(int.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Float(float) => Some(float.to_string()),
        Value::Time(time) => i64::try_from(*time)
            .ok()
            .map(|time| Millis(time).to_string()),
        _ => None,
    }
}

/// An integer: typed, or big-endian bytes of exactly that width, or decimal text.
///
/// Spring writes binary and Kafka itself writes text for the same idea. Bytes that are all printable are text: as a binary
/// partition, offset or count they would be larger than half a billion.
pub(super) fn int(value: &Value, width: usize) -> Option<i128> {
    match value {
        Value::Bytes(bytes) if bytes.len() == width && !bytes.iter().all(u8::is_ascii_graphic) => {
            big_endian(bytes)
        }
        _ => text_int(value),
    }
}

/// A typed integer or one in decimal text.
pub(super) fn text_int(value: &Value) -> Option<i128> {
    match value {
        Value::Int(int) => Some(*int),
        value => value.as_text()?.trim().parse().ok(),
    }
}

/// A big-endian two's complement number of 1 to 16 bytes: Java's `int`, `long` and `BigInteger.toByteArray()`.
pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    if bytes.len() > 16 {
        return None;
    }
    let start = if first & 0x80 == 0 { 0 } else { -1 };
    Some(
        bytes
            .iter()
            .fold(start, |number, byte| (number << 8) | i128::from(*byte)),
    )
}

/// A time: typed, eight big-endian bytes of milliseconds (Spring), or text.
pub(super) fn time(value: &Value) -> Option<Millis> {
    match value {
        Value::Time(time) => i64::try_from(*time).ok().map(Millis),
        Value::Int(int) => epoch(*int),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.bytes().any(|byte| byte < 0x20) => text_time(text),
            _ if matches!(bytes.len(), 5..=8) => big_endian(bytes)
                .and_then(|time| i64::try_from(time).ok())
                .map(Millis),
            _ => None,
        },
        _ => None,
    }
}

/// RFC 3339, .NET's round-trip format with or without a zone, NServiceBus's format, or a number since the epoch.
pub(super) fn text_time(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i128>() {
        return epoch(number);
    }
    Millis::parse(text)
        .or_else(|| Millis::parse(&format!("{text}Z")))
        .or_else(|| nservicebus_time(text))
}

/// Seconds or milliseconds since the epoch. As seconds the boundary would be the year 5138, as milliseconds 1973.
fn epoch(number: i128) -> Option<Millis> {
    const BOUNDARY: i128 = 100_000_000_000;
    let millis = if number.abs() < BOUNDARY {
        number * 1000
    } else {
        number
    };
    i64::try_from(millis).ok().map(Millis)
}

/// `yyyy-MM-dd HH:mm:ss:ffffff Z`, always UTC
/// (<https://github.com/Particular/NServiceBus>, `DateTimeOffsetHelper`).
fn nservicebus_time(text: &str) -> Option<Millis> {
    let text = text.strip_suffix(" Z")?;
    let (seconds, fraction) = text.rsplit_once(':')?;
    let (date, clock) = seconds.split_once(' ')?;
    Millis::parse(&format!("{date}T{clock}.{fraction}Z"))
}

/// The last part of an address such as `rabbitmq://host/vhost/orders?durable=true` or `queue:orders`.
pub(super) fn name_in_address(address: &str) -> &str {
    let address = address.split(['?', '#']).next().unwrap_or(address);
    let address = address.trim_end_matches('/');
    address.rsplit(['/', ':']).next().unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_fields_belong_together() {
        for field in Field::ALL {
            assert_eq!(Field::from_path(field.path()), Some(field));
        }
        assert_eq!(Field::from_path("reason"), None);
    }

    #[test]
    fn integers_are_binary_by_width_or_text() {
        let bytes = |bytes: &'static [u8]| Value::Bytes(bytes.into());
        assert_eq!(int(&bytes(&[0, 0, 0, 1]), 4), Some(1));
        assert_eq!(int(&bytes(&[255, 255, 255, 255]), 4), Some(-1));
        assert_eq!(int(&bytes(b"12"), 4), Some(12));
        assert_eq!(int(&bytes(b"1234"), 4), Some(1234));
        assert_eq!(int(&bytes(&[1, 2]), 4), None);
        assert_eq!(int(&bytes(b"many"), 4), None);
        assert_eq!(
            big_endian(&[0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00]),
            Some(1_700_000_000_000)
        );
        assert_eq!(big_endian(&[]), None);
    }

    #[test]
    fn times_of_all_makers_are_read() {
        let expected = Some(Millis(1_796_065_906_123));
        for text in [
            "2026-11-30T19:11:46.123Z",
            "2026-11-30T19:11:46.1230000Z",
            "2026-11-30T20:11:46.123+01:00",
            "2026-11-30T19:11:46.123",
            "2026-11-30 19:11:46:123000 Z",
            "1796065906123",
        ] {
            assert_eq!(text_time(text), expected, "{text}");
        }
        assert_eq!(text_time("1796065906"), Some(Millis(1_796_065_906_000)));
        assert_eq!(text_time("soon"), None);
        let spring = Value::Bytes(vec![0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0].into());
        assert_eq!(time(&spring), Some(Millis(1_700_000_000_000)));
    }

    #[test]
    fn the_queue_is_the_last_part_of_an_address() {
        for address in [
            "rabbitmq://host/vhost/orders?durable=true",
            "queue:orders",
            "orders",
            "amazonsqs://eu-west-1/orders/",
            "arn:aws:sqs:eu-west-1:000000000000:orders",
        ] {
            assert_eq!(name_in_address(address), "orders");
        }
    }
}
