//! Deaths: why, where, how often and when a message failed, read from the marks of brokers and frameworks.
//!
//! Separate, because a connector hands over exactly what the broker holds and must not know a framework's headers.
//! Everything here is pure: a delivery goes in, a [`Death`] comes out, and each field says which header it came from.
//! [`wrapped`] finds the original message inside a wrapper, [`strip`] says which marks a replay leaves behind.

mod aws;
mod death;
mod dotnet;
mod dramatiq;
mod field;
mod kafka_connect;
mod kafka_streams;
mod mapping;
mod marks;
mod others;
mod pointer;
mod rabbitmq;
pub(crate) mod rfc3339;
mod share_group;
mod smallrye;
mod spring_amqp;
mod spring_kafka;
mod sqs;
pub mod strip;
#[cfg(test)]
mod tests;
mod watermill;
pub mod wrapped;

use dlo_core::Delivery;

pub use death::{Confidence, Death, Origin, Reason};
pub use field::Field;
pub use mapping::Mapping;
pub use pointer::Pointer;

use marks::Marks;

/// The deaths of a message, the newest first and the others in [`Death::earlier`]; `None` when nothing marks it as a dead
/// letter. `own` is the profile's mapping of header names, whose answer counts as the newest.
pub fn read(delivery: &Delivery, own: &Mapping) -> Option<Death> {
    let marks = Marks::new(delivery);
    let mut deaths = Vec::new();
    // In the order of how surely a dialect is the latest to have touched the message: an application's framework sets a message
    // aside after the broker did, or instead of it.
    for family in [
        spring_kafka::read,
        spring_amqp::read,
        smallrye::read,
        dotnet::read,
        kafka_connect::read,
        kafka_streams::read,
        share_group::read,
        watermill::read,
        aws::read,
        others::read,
        read_broker,
    ] {
        for death in family(&marks) {
            insert(&mut deaths, death);
        }
    }
    if let Some(death) = mapping::read(&marks, own) {
        deaths.insert(0, death);
    }
    if let Some(newest) = deaths.first_mut() {
        newest.pointer = newest.pointer.take().or_else(|| pointer(delivery));
    }
    Death::join(deaths)
}

/// What the message points to when it does not hold its body, whether or not it is a dead letter.
pub fn pointer(delivery: &Delivery) -> Option<Pointer> {
    sqs::s3_pointer(delivery)
}

fn read_broker(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths: Vec<Death> = dramatiq::read(marks).into_iter().collect();
    let mut broker = rabbitmq::read(marks);
    rabbitmq::add_celery(marks, &mut broker);
    deaths.append(&mut broker);
    deaths.extend(sqs::read(marks));
    deaths
}

/// Puts a death before the first one that is surely older; without times the order of the dialects stays.
fn insert(deaths: &mut Vec<Death>, death: Death) {
    let older = |other: &Death| match (other.failed_at(), death.failed_at()) {
        (Some(other_time), Some(time)) => other.dialect != death.dialect && other_time < time,
        _ => false,
    };
    let at = deaths.iter().position(older).unwrap_or(deaths.len());
    deaths.insert(at, death);
}
