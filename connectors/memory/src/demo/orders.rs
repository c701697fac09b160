//! Orders: the JSON bodies of the story, what is wrong with some of them, and what the shop's handler says about it. The
//! handler decides by the body alone, so an edit that mends an order lets it pass.

use std::io::Read as _;

use bytes::Bytes;
use dlo_core::{Header, Message, Millis, Value};
use flate2::read::GzDecoder;
use serde_json::Value as Json;

use super::{encode, random::Random};

/// Why the handler refuses an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A price is null: a bug that waits for a fix.
    NullPrice,
    /// Its database is still down for one region.
    Timeout,
    NoCurrency,
    /// The body is no order at all.
    Unreadable,
}

impl Failure {
    /// The root cause's message, as Spring AMQP's `RepublishMessageRecoverer` writes it.
    fn message(self) -> &'static str {
        match self {
            Self::NullPrice => {
                "Cannot invoke \"java.math.BigDecimal.multiply(java.math.BigDecimal)\" because \"price\" is null"
            }
            Self::Timeout => "timeout: db-3",
            Self::NoCurrency => "schema orders v7, field \"currency\" missing",
            Self::Unreadable => "order is no JSON",
        }
    }

    fn stack(self) -> &'static str {
        match self {
            Self::NullPrice => include_str!("../../../../assets/demo/null-pointer.txt"),
            Self::Timeout => include_str!("../../../../assets/demo/timeout.txt"),
            Self::NoCurrency => include_str!("../../../../assets/demo/schema.txt"),
            Self::Unreadable => "shop.orders.SchemaException: order is no JSON",
        }
    }

    /// Adds the recoverer's headers in place of older ones.
    pub fn mark(self, message: &mut Message) {
        let marks = [
            ("x-exception-message", self.message()),
            ("x-exception-stacktrace", self.stack()),
            ("x-original-exchange", super::ORDERS),
            ("x-original-routingKey", super::ORDER_KEY),
        ];
        for (name, text) in marks {
            message.headers.retain(|header| header.name != name);
            let value = Value::Bytes(Bytes::from_static(text.as_bytes()));
            message.headers.push(Header::new(name, "longstr", value));
        }
    }
}

/// What an order is like when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    NullPrice,
    /// Nothing is wrong with it; the database was down.
    TimedOut,
    /// The same, but its region's database is down still.
    StillDown,
    NoCurrency,
    /// A forgotten test of a developer, with a null price.
    Test,
}

/// Whether the body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
}

/// An order as the shop publishes it.
pub(super) fn order(
    number: u64,
    kind: Kind,
    packing: Packing,
    at: Millis,
    random: &mut Random,
) -> Message {
    let json = body(number, kind, at, random);
    let (body, encoding) = match packing {
        Packing::Plain => (Bytes::from(json), None),
        Packing::Gzip => (encode::gzip(json.as_bytes()), Some("gzip")),
    };
    let mut message = Message {
        body: Some(body),
        headers: headers(kind, random),
        ..Message::default()
    };
    let mut set = |name: &str, value: Value| {
        message.properties.insert(name.to_owned(), value);
    };
    set("content_type", Value::text("application/json"));
    set("delivery_mode", Value::Int(2));
    set("message_id", Value::text(format!("order-{number}")));
    set(
        "timestamp",
        Value::Time(i128::from(at.0.div_euclid(1_000)) * 1_000),
    );
    set("type", Value::text("order.created"));
    set("app_id", Value::text("shop"));
    if let Some(encoding) = encoding {
        set("content_encoding", Value::text(encoding));
    }
    message
}

fn headers(kind: Kind, random: &mut Random) -> Vec<Header> {
    let tenant = if kind == Kind::Test { "test" } else { "shop" };
    let trace = format!("00-{}-{}-01", random.hex(32), random.hex(16));
    vec![
        Header::new("tenant", "longstr", Value::text(tenant)),
        Header::new("traceparent", "longstr", Value::text(trace)),
        Header::new("attempt", "int32", Value::Int(3)),
    ]
}

fn body(number: u64, kind: Kind, at: Millis, random: &mut Random) -> String {
    let customer = match kind {
        Kind::Test => "test@example.org".to_owned(),
        _ => format!("c-{}", 1_000 + random.below(600)),
    };
    let region = match kind {
        Kind::StillDown => "ap-south",
        _ => random
            .one_of(&["eu-west", "eu-north", "us-east"])
            .unwrap_or("eu-west"),
    };
    let currency = match kind {
        Kind::NoCurrency => "",
        _ => "\"currency\":\"EUR\",",
    };
    let items = items(kind, random);
    format!(
        "{{\"orderId\":\"o-{number}\",\"customer\":\"{customer}\",\"region\":\"{region}\",{currency}\"items\":[{items}],\"createdAt\":\"{at}\"}}"
    )
}

fn items(kind: Kind, random: &mut Random) -> String {
    let count = 1 + random.below(3);
    let item = |place: u64, random: &mut Random| {
        let sku = random
            .one_of(&["A-17", "B-4", "C-90", "D-2"])
            .unwrap_or("A-17");
        let qty = 1 + random.below(5);
        let price = match kind {
            Kind::NullPrice | Kind::Test if place == 0 => "null".to_owned(),
            _ => format!("{}.{:02}", 1 + random.below(90), random.below(100)),
        };
        format!("{{\"sku\":\"{sku}\",\"qty\":{qty},\"price\":{price}}}")
    };
    let items: Vec<_> = (0..count).map(|place| item(place, random)).collect();
    items.join(",")
}

/// What the shop's handler does with an order: nothing when all is well.
pub(super) fn handle(message: &Message) -> Result<(), Failure> {
    let body = message.body.as_deref().unwrap_or_default();
    let order = read(body).ok_or(Failure::Unreadable)?;
    if order.get("currency").is_none_or(Json::is_null) {
        return Err(Failure::NoCurrency);
    }
    let items = order.get("items").and_then(Json::as_array);
    let has_prices = |item: &Json| item.get("price").is_some_and(|price| !price.is_null());
    if !items.is_some_and(|items| items.iter().all(has_prices)) {
        return Err(Failure::NullPrice);
    }
    match order.get("region").and_then(Json::as_str) {
        Some("ap-south") => Err(Failure::Timeout),
        _ => Ok(()),
    }
}

/// Orders are small; a body that unpacks to more is none.
const LARGEST: u64 = 1 << 20;

fn read(body: &[u8]) -> Option<Json> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return serde_json::from_slice(body).ok();
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(body)
        .take(LARGEST)
        .read_to_end(&mut unpacked)
        .ok()?;
    serde_json::from_slice(&unpacked).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: Kind, packing: Packing) -> Result<(), Failure> {
        let mut random = Random::new(7);
        handle(&order(1, kind, packing, Millis(0), &mut random))
    }

    #[test]
    fn the_handler_judges_by_the_body_alone() {
        for packing in [Packing::Plain, Packing::Gzip] {
            assert_eq!(outcome(Kind::Good, packing), Ok(()));
            assert_eq!(outcome(Kind::TimedOut, packing), Ok(()));
            assert_eq!(outcome(Kind::StillDown, packing), Err(Failure::Timeout));
            assert_eq!(outcome(Kind::NullPrice, packing), Err(Failure::NullPrice));
            assert_eq!(outcome(Kind::Test, packing), Err(Failure::NullPrice));
            assert_eq!(outcome(Kind::NoCurrency, packing), Err(Failure::NoCurrency));
        }
    }

    #[test]
    fn an_edit_mends_an_order() {
        let mut message = order(
            1,
            Kind::NoCurrency,
            Packing::Plain,
            Millis(0),
            &mut Random::new(7),
        );
        let body = message.body.take().unwrap_or_default();
        let text = String::from_utf8_lossy(&body).replacen('{', "{\"currency\":\"EUR\",", 1);
        message.body = Some(text.into());
        assert_eq!(handle(&message), Ok(()));
    }
}
