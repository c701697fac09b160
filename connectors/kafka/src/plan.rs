//! From what is asked of a look to what is read: which partitions, from where to where.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};

use dlo_core::{
    Error, ErrorKind, Figure, Follow, Isolation, Look, LookRequest, Position, Result, Start,
};

use crate::{
    broker::Broker,
    destination::hidden_note,
    fetch::{self, Place},
    forward::{self, Range},
    look::{KafkaLook, Opening, Sink},
    metadata::{self, Part, Which},
    newest, oldest,
    reader::Reader,
};

/// Places are read in groups of this many, so that the first come soon and memory stays bounded.
const PLACES_AT_ONCE: usize = 200;

/// What a look reads.
enum Reading {
    Forward(Vec<Range>),
    Tail(Vec<Range>),
    Newest(Vec<Range>),
    Places(Vec<Place>, BTreeMap<i32, (i64, i64)>),
}

impl Reading {
    /// How many partitions are read from a queue of their own.
    fn queues(&self) -> usize {
        match self {
            Self::Forward(ranges) => ranges.iter().filter(|range| !range.is_empty()).count(),
            _ => 1,
        }
    }
}

/// Opens a look; its bounds are those of this moment. Blocks for a few questions to the brokers.
pub(crate) fn open(
    broker: &Broker,
    topic: &str,
    request: &LookRequest,
    stopped: Arc<AtomicBool>,
) -> Result<Arc<dyn Look>> {
    let mut notes = Vec::new();
    let reading = plan(broker, topic, request, &mut notes)?;
    let reader = Reader::with_queues(&broker.settings, request.isolation, reading.queues())?;
    let opening = Opening {
        limit: request.limit,
        total: total(&reading),
        notes,
        stopped,
    };
    let topic = topic.to_owned();
    let look = KafkaLook::start(opening, move |sink| match reading {
        Reading::Forward(ranges) => oldest::read(&reader, &topic, ranges, sink),
        Reading::Tail(ranges) => forward::tail(&reader, &topic, ranges, sink),
        Reading::Newest(ranges) => newest::read(&reader, &topic, ranges, sink),
        Reading::Places(places, bounds) => read_places(&reader, &topic, &places, &bounds, sink),
    })?;
    Ok(Arc::new(look))
}

fn plan(
    broker: &Broker,
    name: &str,
    request: &LookRequest,
    notes: &mut Vec<String>,
) -> Result<Reading> {
    let topic = metadata::topic(broker, name, "look")?;
    let named = named_partitions(request);
    let all: Vec<i32> = topic.partitions.iter().map(|(id, _)| *id).collect();
    if let Some(missing) = named.iter().flatten().find(|id| !all.contains(id)) {
        return Err(Error::new(
            ErrorKind::NotFound,
            "look",
            format!("the topic has no partition {missing}"),
        )
        .with("topic", name)
        .advise(format!(
            "Its partitions are 0 to {}.",
            all.len().saturating_sub(1)
        )));
    }
    let wanted: Vec<i32> = topic
        .led()
        .into_iter()
        .filter(|id| named.as_ref().is_none_or(|named| named.contains(id)))
        .collect();
    for id in topic.without_leader() {
        notes.push(format!(
            "Partition {id} has no leader at the moment and is left out."
        ));
    }
    let bounds = metadata::bounds(broker, name, &wanted, request.isolation)?;
    note_hidden(broker, name, request.isolation, &bounds, notes)?;
    Ok(match (&request.start, request.follow) {
        (Start::Newest, Follow::Stop) => Reading::Newest(ranges(&bounds, |_, start, _| start)),
        (Start::Newest, Follow::Tail) => Reading::Tail(ranges(&bounds, |_, _, end| end)),
        (Start::Oldest, follow) => forwards(follow, ranges(&bounds, |_, start, _| start)),
        (Start::Offsets(offsets), follow) => {
            let offsets: BTreeMap<i32, i64> = offsets.iter().copied().collect();
            note_gone(&offsets, &bounds, notes);
            let from = |id: i32, start: i64, end: i64| {
                offsets.get(&id).map_or(end, |o| (*o).clamp(start, end))
            };
            forwards(follow, ranges(&bounds, from))
        }
        (Start::Time(time), follow) => {
            let parts: Vec<Part> = wanted.iter().map(|id| (name.to_owned(), *id)).collect();
            let found = metadata::offsets(broker, &parts, Which::Time(time.0))?;
            let from = |id: i32, start: i64, end: i64| {
                found
                    .get(&(name.to_owned(), id))
                    .map_or(end, |o| (*o).clamp(start, end))
            };
            forwards(follow, ranges(&bounds, from))
        }
        (Start::Positions(positions), _) => {
            let places = positions
                .iter()
                .filter_map(place)
                .filter(|place| wanted.contains(&place.0));
            Reading::Places(places.collect(), bounds)
        }
    })
}

fn forwards(follow: Follow, ranges: Vec<Range>) -> Reading {
    match follow {
        Follow::Stop => Reading::Forward(ranges),
        Follow::Tail => Reading::Tail(ranges),
    }
}

/// The partitions that the request confines itself to.
fn named_partitions(request: &LookRequest) -> Option<Vec<i32>> {
    match (&request.partitions, &request.start) {
        (Some(partitions), _) => Some(partitions.clone()),
        (None, Start::Offsets(offsets)) => Some(offsets.iter().map(|(id, _)| *id).collect()),
        _ => None,
    }
}

fn ranges(bounds: &BTreeMap<i32, (i64, i64)>, from: impl Fn(i32, i64, i64) -> i64) -> Vec<Range> {
    bounds
        .iter()
        .map(|(id, (start, end))| Range {
            partition: *id,
            next: from(*id, *start, *end),
            end: *end,
        })
        .collect()
}

pub(crate) fn place(position: &Position) -> Option<Place> {
    match position {
        Position::Offset { partition, offset } => Some((*partition, *offset)),
        _ => None,
    }
}

fn total(reading: &Reading) -> Figure<u64> {
    match reading {
        Reading::Forward(ranges) | Reading::Newest(ranges) => {
            let offsets = ranges.iter().map(Range::len).sum();
            if offsets == 0 {
                Figure::exact(0)
            } else {
                Figure::at_most(offsets)
            }
        }
        Reading::Tail(_) => Figure::unknown(),
        Reading::Places(places, _) => Figure::at_most(places.len() as u64),
    }
}

/// An open transaction ends what can be read; without a word a person would think that this is all.
fn note_hidden(
    broker: &Broker,
    topic: &str,
    isolation: Isolation,
    bounds: &BTreeMap<i32, (i64, i64)>,
    notes: &mut Vec<String>,
) -> Result<()> {
    if isolation == Isolation::ReadUncommitted {
        return Ok(());
    }
    let parts: Vec<Part> = bounds.keys().map(|id| (topic.to_owned(), *id)).collect();
    let ends = metadata::offsets(broker, &parts, Which::End(Isolation::ReadUncommitted))?;
    let hidden: i64 = ends
        .iter()
        .filter_map(|((_, id), end)| Some((end - bounds.get(id)?.1).max(0)))
        .sum();
    if hidden > 0 {
        notes.push(hidden_note(hidden));
    }
    Ok(())
}

fn note_gone(
    offsets: &BTreeMap<i32, i64>,
    bounds: &BTreeMap<i32, (i64, i64)>,
    notes: &mut Vec<String>,
) {
    for (id, offset) in offsets {
        let start = bounds.get(id).map_or(0, |bounds| bounds.0);
        if *offset < start {
            notes.push(format!(
                "Partition {id} begins at {start}: what was before is deleted."
            ));
        }
    }
}

fn read_places(
    reader: &Reader,
    topic: &str,
    places: &[Place],
    bounds: &BTreeMap<i32, (i64, i64)>,
    sink: &mut Sink,
) -> Result<()> {
    for places in places.chunks(PLACES_AT_ONCE) {
        let mut found = fetch::read(reader, topic, places, |place| is_within(place, bounds))?;
        for place in places {
            let flow = match found.remove(place) {
                Some(delivery) => sink.put(delivery),
                None => {
                    sink.gap(1);
                    sink.wanted()
                }
            };
            if flow.is_break() {
                return Ok(());
            }
        }
        if sink.flush().is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether an offset lies between the bounds of its partition.
pub(crate) fn is_within(place: Place, bounds: &BTreeMap<i32, (i64, i64)>) -> bool {
    bounds
        .get(&place.0)
        .is_some_and(|(start, end)| (*start..*end).contains(&place.1))
}
