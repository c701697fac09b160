//! The age of the oldest dead letter where the broker does not tell it: read from the head of a log, or from what was seen.
//!
//! Separate from listing, because it may read a record. That is free on brokers that read by offset; on the others nothing
//! is borrowed for it, and only what a look has seen counts.

use std::time::Duration;

use dlo_core::{AddressKind, Destination, Figure, Isolation, Millis, Position};

use crate::{
    look::OpenLook,
    shared::{Connection, lock},
};

/// The list does not wait longer for the ages.
const PATIENCE: Duration = Duration::from_secs(2);

/// Fills in the oldest message's time, and when it expires, as far as they can be had without harm.
pub async fn find_oldest(connection: &Connection, destination: &mut Destination) {
    if destination.oldest.value.is_none() {
        destination.oldest =
            match destination.capability.fetch && destination.address.kind == AddressKind::Topic {
                true => at_log_start(connection, destination).await,
                false => {
                    let seen = lock(&connection.oldest_seen)
                        .get(&destination.address.name)
                        .copied();
                    seen.map_or(Figure::unknown(), Figure::at_least)
                }
            };
    }
    if destination.expires.value.is_none()
        && let (Some(oldest), Some(retention)) = (destination.oldest.value, destination.retention)
    {
        let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        destination.expires = Figure::about(oldest.plus(retention));
    }
}

/// The earliest timestamp among the first records of the partitions.
async fn at_log_start(connection: &Connection, destination: &Destination) -> Figure<Millis> {
    let filled = destination
        .partitions
        .iter()
        .filter(|partition| partition.high_watermark > partition.log_start);
    let first = |partition: &dlo_core::Partition| Position::Offset {
        partition: partition.id,
        offset: partition.log_start,
    };
    let positions: Vec<_> = filled.map(first).collect();
    if positions.is_empty() {
        return Figure::unknown();
    }
    let fetch =
        connection
            .session
            .fetch(&destination.address, &positions, Isolation::ReadUncommitted);
    let Ok(Ok(found)) = tokio::time::timeout(PATIENCE, fetch).await else {
        return Figure::unknown();
    };
    // A compacted or aborted first record is a gap; what was found is then only a bound.
    let complete = found.iter().all(Option::is_some);
    let oldest = found
        .into_iter()
        .flatten()
        .filter_map(|delivery| delivery.time)
        .min();
    match oldest {
        Some(oldest) if complete => Figure::exact(oldest),
        Some(oldest) => Figure::at_least(oldest),
        None => Figure::unknown(),
    }
}

/// Remembers the oldest message of a look, for the list.
pub fn remember(look: &OpenLook) {
    let rows = look.view.first()..look.view.len();
    if let Some(oldest) = rows.filter_map(|row| look.view.time_of(row)).min() {
        lock(&look.connection.oldest_seen).insert(look.address().name.clone(), oldest);
    }
}
