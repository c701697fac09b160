//! What the engineer finds at 03:10: `orders.dlq` with 1,243 dead letters in three groups, `pay.dlq` with two.

use bytes::Bytes;
use dlo_core::{Header, Message, Millis, Value};

use crate::{
    Reason,
    death::{Death, mark},
    state::State,
};

use super::{
    ORDER_KEY, ORDERS, encode, hours, minutes,
    orders::{Failure, Kind, Packing, order},
    random::Random,
};

/// One dead letter of the story before it is written.
struct Plot {
    kind: Kind,
    failure: Failure,
    packing: Packing,
    died: Millis,
}

pub(super) fn tell(state: &mut State, random: &mut Random) {
    let now = state.now();
    let mut plots = Vec::with_capacity(1_243);
    add_null_prices(&mut plots, now, random);
    add_timeouts(&mut plots, now, random);
    add_missing_currencies(&mut plots, now, random);
    plots.sort_by_key(|plot| plot.died);
    for (number, plot) in (410_000..).zip(&plots) {
        bury(state, number, plot, random);
    }
    fill_orders(state, now, random);
    fill_payments(state, now, random);
}

/// 812 since a release three days ago, two of them forgotten tests.
fn add_null_prices(plots: &mut Vec<Plot>, now: Millis, random: &mut Random) {
    for number in 0..812 {
        let age = match number {
            0 => hours(72),
            _ => random.between(minutes(2), hours(72)),
        };
        plots.push(Plot {
            kind: if number % 500 == 100 {
                Kind::Test
            } else {
                Kind::NullPrice
            },
            failure: Failure::NullPrice,
            packing: Packing::Plain,
            died: now.plus(-age),
        });
    }
}

/// 401 in one burst that ended half an hour ago. Three, none of them among the first ten, are of a region that is down still.
fn add_timeouts(plots: &mut Vec<Plot>, now: Millis, random: &mut Random) {
    let (start, end) = (now.plus(-minutes(95)), now.plus(-minutes(30)));
    let step = end.since(start) / 401;
    for number in 0..401 {
        let still_down = [120, 251, 388].contains(&number);
        plots.push(Plot {
            kind: if still_down {
                Kind::StillDown
            } else {
                Kind::TimedOut
            },
            failure: Failure::Timeout,
            packing: if number % 10 == 7 {
                Packing::Gzip
            } else {
                Packing::Plain
            },
            died: start.plus(step * number + random.between(0, step)),
        });
    }
}

/// 30 of one importer over the last day.
fn add_missing_currencies(plots: &mut Vec<Plot>, now: Millis, random: &mut Random) {
    for number in 0..30 {
        plots.push(Plot {
            kind: Kind::NoCurrency,
            failure: Failure::NoCurrency,
            packing: if number % 15 == 4 {
                Packing::Gzip
            } else {
                Packing::Plain
            },
            died: now.plus(-random.between(minutes(10), hours(26))),
        });
    }
}

/// Writes it as the broker does for a message that a consumer rejected after its library had put the exception into headers.
fn bury(state: &mut State, number: u64, plot: &Plot, random: &mut Random) {
    let sent = plot.died.plus(-random.between(5_000, 40_000));
    let mut message = order(number, plot.kind, plot.packing, sent, random);
    plot.failure.mark(&mut message);
    let death = Death {
        queue: ORDERS,
        reason: Reason::Rejected,
        exchange: ORDERS,
        routing_keys: vec![ORDER_KEY.to_owned()],
        at: plot.died,
    };
    mark(&mut message, &death);
    state.arrive("orders.dlq", message, "orders.dlx", "orders.dlq", plot.died);
}

/// A normal backlog.
fn fill_orders(state: &mut State, now: Millis, random: &mut Random) {
    for number in 0..17 {
        let sent = now.plus(-random.between(100, 5_000));
        let message = order(420_000 + number, Kind::Good, Packing::Plain, sent, random);
        state.arrive(ORDERS, message, ORDERS, ORDER_KEY, sent);
    }
}

/// Two payments in Protobuf: one declined, one whose body was cut on the way.
fn fill_payments(state: &mut State, now: Millis, random: &mut Random) {
    for (number, age) in [(0, minutes(190)), (1, minutes(42))] {
        let died = now.plus(-age);
        let mut body = payment(number, died, random);
        if number == 1 {
            body.truncate(body.len() - 5);
        }
        let mut message = Message {
            body: Some(body),
            ..Message::default()
        };
        let properties = [
            ("content_type", Value::text("application/x-protobuf")),
            ("delivery_mode", Value::Int(2)),
            ("type", Value::text("shop.pay.Payment")),
        ];
        let properties = properties.map(|(name, value)| (name.to_owned(), value));
        message.properties.extend(properties);
        let stack = include_str!("../../../../assets/demo/card-declined.txt");
        for (name, text) in [
            ("x-exception-message", "card declined by issuer"),
            ("x-exception-stacktrace", stack),
            ("x-original-exchange", ""),
            ("x-original-routingKey", "payments"),
        ] {
            let value = Value::Bytes(Bytes::from_static(text.as_bytes()));
            message.headers.push(Header::new(name, "longstr", value));
        }
        let death = Death {
            queue: "payments",
            reason: Reason::Rejected,
            exchange: "",
            routing_keys: vec!["payments".to_owned()],
            at: died,
        };
        mark(&mut message, &death);
        state.arrive("pay.dlq", message, "", "pay.dlq", died);
    }
}

/// See `assets/demo/payment.proto`.
fn payment(number: u64, at: Millis, random: &mut Random) -> Bytes {
    encode::Protobuf::default()
        .string(1, &format!("p-{}", 7_000 + number))
        .string(2, &format!("o-{}", 410_100 + number))
        .int(3, random.between(1_000, 90_000))
        .string(4, "EUR")
        .int(5, at.0)
        .finish()
}
