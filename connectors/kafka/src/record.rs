//! A record as librdkafka lends it, copied into a delivery: exact, also where it is unusual.
//!
//! Headers are read through the C interface: the Rust one panics on a name that is not UTF-8, and anybody may write one.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_void},
    ptr, slice,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use dlo_core::{Delivery, Header, Message as Body, Millis, Position, Value};
use rdkafka::{
    Message, Timestamp, bindings as c,
    message::{BorrowedHeaders, BorrowedMessage, OwnedHeaders},
};

/// The type of every header: Kafka has only bytes.
const BYTES: &str = "bytes";
/// The type of a header whose name is not UTF-8 begins so; what follows is the name's bytes in base64, so that it can be
/// published as it was. The name itself is then only good for reading.
const BYTES_NAMED: &str = "bytes named ";

/// Copies a record.
///
/// The fact `timestamp_type` is there only where the broker wrote the time (`LogAppendTime`), as a map for each of millions
/// of records would cost more than the records.
pub(crate) fn delivery(message: &BorrowedMessage<'_>) -> Delivery {
    let (time, facts) = match message.timestamp() {
        Timestamp::NotAvailable => (None, BTreeMap::new()),
        Timestamp::CreateTime(time) => (Some(Millis(time)), BTreeMap::new()),
        Timestamp::LogAppendTime(time) => (
            Some(Millis(time)),
            BTreeMap::from([("timestamp_type".to_owned(), Value::text("LogAppendTime"))]),
        ),
    };
    Delivery {
        message: Body {
            key: message.key().map(Bytes::copy_from_slice),
            headers: message.headers().map(headers).unwrap_or_default(),
            properties: BTreeMap::new(),
            body: message.payload().map(Bytes::copy_from_slice),
        },
        position: Position::Offset {
            partition: message.partition(),
            offset: message.offset(),
        },
        lock: None,
        time,
        delivery_count: None,
        facts,
    }
}

fn headers(borrowed: &BorrowedHeaders) -> Vec<Header> {
    let native = ptr::from_ref(borrowed).cast::<c::rd_kafka_headers_t>();
    // SAFETY: a reference to BorrowedHeaders is by construction the address of the library's headers, which live as long as
    // the record; name and value are copied before it ends.
    let count = unsafe { c::rd_kafka_header_cnt(native) };
    (0..count)
        .filter_map(|index| unsafe { header(native, index) })
        .collect()
}

unsafe fn header(native: *const c::rd_kafka_headers_t, index: usize) -> Option<Header> {
    let (mut name, mut value, mut size) = (ptr::null(), ptr::null::<c_void>(), 0);
    // SAFETY: the caller's headers are alive, and the three targets are ours.
    let answer =
        unsafe { c::rd_kafka_header_get_all(native, index, &mut name, &mut value, &mut size) };
    if answer != c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return None;
    }
    // SAFETY: the library ends names with NUL, and a value that is not null has `size` bytes.
    let (name, value) = unsafe {
        let name = CStr::from_ptr(name).to_bytes();
        let value = (!value.is_null()).then(|| slice::from_raw_parts(value.cast::<u8>(), size));
        (name, value)
    };
    let value = value.map_or(Value::Null, |bytes| {
        Value::Bytes(Bytes::copy_from_slice(bytes))
    });
    Some(match std::str::from_utf8(name) {
        Ok(name) => Header::new(name, BYTES, value),
        Err(_) => Header::new(
            String::from_utf8_lossy(name),
            format!("{BYTES_NAMED}{}", BASE64_STANDARD.encode(name)),
            value,
        ),
    })
}

/// Headers to publish.
///
/// # Errors
/// The name of a header whose value is not bytes (an AMQP table, for example) and has no form in Kafka.
pub(crate) fn to_native(headers: &[Header]) -> Result<OwnedHeaders, String> {
    let native = OwnedHeaders::new_with_capacity(headers.len());
    let target = ptr::from_ref(native.as_borrowed())
        .cast_mut()
        .cast::<c::rd_kafka_headers_t>();
    for header in headers {
        let name = name_bytes(header);
        let value = value_bytes(header.value()).ok_or_else(|| header.name.clone())?;
        let (pointer, size) = value.as_ref().map_or((ptr::null(), 0), |bytes| {
            (bytes.as_ptr().cast(), bytes.len())
        });
        // SAFETY: `target` belongs to `native`, which is ours alone and writable; the library copies name and value.
        unsafe {
            c::rd_kafka_header_add(
                target,
                name.as_ptr().cast(),
                name.len() as isize,
                pointer,
                size as isize,
            );
        }
    }
    Ok(native)
}

fn name_bytes(header: &Header) -> Vec<u8> {
    header
        .typed
        .kind
        .strip_prefix(BYTES_NAMED)
        .and_then(|name| BASE64_STANDARD.decode(name).ok())
        .unwrap_or_else(|| header.name.clone().into_bytes())
}

/// Scalars of other brokers become text, as Kafka's own tools write them; `None` outside for what has no such form.
fn value_bytes(value: &Value) -> Option<Option<Bytes>> {
    Some(Some(match value {
        Value::Null => return Some(None),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Bool(bool) => Bytes::from(bool.to_string()),
        Value::Int(int) | Value::Time(int) => Bytes::from(int.to_string()),
        Value::Float(float) => Bytes::from(float.to_string()),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: Vec<Header>) {
        let native = to_native(&written).expect("bytes");
        assert_eq!(headers(native.as_borrowed()), written);
    }

    #[test]
    fn headers_come_back_the_same() {
        let bytes = |name: &str, value| Header::new(name, BYTES, value);
        check(vec![
            bytes("twice", Value::text("b")),
            bytes("null", Value::Null),
            bytes("twice", Value::text("a")),
            bytes("empty", Value::text("")),
            bytes("", Value::text("no name")),
            bytes("ünï", Value::Bytes(Bytes::from_static(&[0, 255, 0]))),
        ]);
    }

    #[test]
    fn a_name_that_is_no_text_is_kept() {
        let kind = format!("{BYTES_NAMED}{}", BASE64_STANDARD.encode([0xff, b'a']));
        check(vec![Header::new("\u{fffd}a", kind, Value::text("v"))]);
    }

    #[test]
    fn scalars_of_other_brokers_become_text_and_tables_do_not() {
        let native = to_native(&[Header::new("n", "long", Value::Int(7))]).expect("a scalar");
        assert_eq!(
            headers(native.as_borrowed()),
            [Header::new("n", BYTES, Value::text("7"))]
        );
        let table = Header::new("t", "table", Value::Table(Vec::new()));
        assert_eq!(to_native(&[table]).err(), Some("t".to_owned()));
    }
}
