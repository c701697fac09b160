//! Single records by partition and offset.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use dlo_core::{Delivery, Millis, Result};
use rdkafka::Message;

use crate::{
    reader::{Event, Reader, Silence},
    record,
};

/// Wanted offsets that are no further apart than this are read in one go; beyond it a jump is cheaper.
const NEAR: i64 = 500;

/// A partition and an offset.
pub(crate) type Place = (i32, i64);

/// Reads these places; those without a record are missing in the answer.
///
/// `is_there` tells whether a place lies within its partition, as the broker would answer others from the beginning.
pub(crate) fn read(
    reader: &Reader,
    topic: &str,
    places: &[Place],
    is_there: impl Fn(Place) -> bool,
) -> Result<BTreeMap<Place, Delivery>> {
    let mut wanted: BTreeMap<i32, BTreeSet<i64>> = BTreeMap::new();
    for place in places.iter().filter(|place| is_there(**place)) {
        wanted.entry(place.0).or_default().insert(place.1);
    }
    let mut found = BTreeMap::new();
    while !wanted.is_empty() {
        read_from_first(reader, topic, &mut wanted, &mut found)?;
    }
    reader.release();
    Ok(found)
}

/// Starts each partition at its first wanted offset and reads on while the next one is near.
fn read_from_first(
    reader: &Reader,
    topic: &str,
    wanted: &mut BTreeMap<i32, BTreeSet<i64>>,
    found: &mut BTreeMap<Place, Delivery>,
) -> Result<()> {
    let starts: Vec<Place> = wanted
        .iter()
        .filter_map(|(partition, offsets)| Some((*partition, *offsets.first()?)))
        .collect();
    reader.assign(topic, &starts)?;
    let mut open: BTreeSet<i32> = starts.iter().map(|(partition, _)| *partition).collect();
    while !open.is_empty() {
        match reader.next(Duration::from_millis(100), Silence::Suspicious)? {
            Event::Record(message) => {
                let (partition, offset) = (message.partition(), message.offset());
                let Some(offsets) = wanted
                    .get_mut(&partition)
                    .filter(|_| open.contains(&partition))
                else {
                    continue;
                };
                if offsets.contains(&offset) {
                    found.insert((partition, offset), record::delivery(&message));
                }
                // What lies before a record that came has no record.
                *offsets = offsets.split_off(&(offset + 1));
                match offsets.first() {
                    Some(next) if *next - offset <= NEAR => {}
                    Some(_) => {
                        open.remove(&partition);
                    }
                    None => {
                        open.remove(&partition);
                        wanted.remove(&partition);
                    }
                }
            }
            Event::End(partition) => {
                open.remove(&partition);
                wanted.remove(&partition);
            }
            Event::Quiet => {}
        }
    }
    Ok(())
}

/// The time of the first record at or after each place, where there is one.
pub(crate) fn first(reader: &Reader, topic: &str, places: &[Place]) -> Result<Vec<Millis>> {
    let mut times = Vec::new();
    if places.is_empty() {
        return Ok(times);
    }
    reader.assign(topic, places)?;
    let mut open: BTreeSet<i32> = places.iter().map(|(partition, _)| *partition).collect();
    while !open.is_empty() {
        match reader.next(Duration::from_millis(100), Silence::Suspicious)? {
            Event::Record(message) => {
                if open.remove(&message.partition()) {
                    times.extend(message.timestamp().to_millis().map(Millis));
                }
            }
            Event::End(partition) => {
                open.remove(&partition);
            }
            Event::Quiet => {}
        }
    }
    reader.release();
    Ok(times)
}
