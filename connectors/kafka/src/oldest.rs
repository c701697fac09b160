//! The oldest records first, over all partitions: from the beginning, from offsets, from a time.
//!
//! Separate from the tail, because here a person reads history: ten records from the beginning of a topic are its ten oldest,
//! and not ten of the partition that answered first. Each partition has a queue of its own in librdkafka, and the queues are
//! merged by time; within a partition the order of the offsets stays.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use dlo_core::{Delivery, Result};
use rdkafka::Message;

use crate::{
    forward::{Range, Step},
    look::Sink,
    reader::{Event, Partition, Reader, Silence},
    record,
};

/// How often the client's own queue is asked for errors.
const ERRORS_EVERY: Duration = Duration::from_millis(200);

/// Delivers the records of the ranges, the oldest first.
pub(crate) fn read(
    reader: &Reader,
    topic: &str,
    ranges: Vec<Range>,
    sink: &mut Sink,
) -> Result<()> {
    let ranges: Vec<_> = ranges
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect();
    // The queues are split off before anything is fetched, so that no record goes to the common one.
    let mut streams = Vec::with_capacity(ranges.len());
    for range in &ranges {
        streams.push(Stream {
            partition: reader.split(topic, range.partition)?,
            range: *range,
            head: None,
        });
    }
    let starts: Vec<_> = ranges.iter().map(|r| (r.partition, r.next)).collect();
    reader.assign(topic, &starts)?;
    let mut merge = Merge {
        reader,
        topic,
        heads: BinaryHeap::with_capacity(streams.len()),
        asked: Instant::now(),
    };
    for (index, stream) in streams.iter_mut().enumerate() {
        if merge.advance(index, stream, sink)?.is_break() {
            return Ok(());
        }
    }
    while let Some(Reverse((_, index))) = merge.heads.pop() {
        let stream = &mut streams[index];
        let put = stream.head.take().map(|delivery| sink.put(delivery));
        if put.is_some_and(|flow| flow.is_break()) || merge.advance(index, stream, sink)?.is_break()
        {
            break;
        }
    }
    Ok(())
}

/// What is left of one partition, and its next record.
struct Stream {
    partition: Partition,
    range: Range,
    head: Option<Delivery>,
}

struct Merge<'a> {
    reader: &'a Reader,
    topic: &'a str,
    /// The time of each stream's next record, with the stream's index.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    asked: Instant,
}

impl Merge<'_> {
    /// Waits for the next record of a partition: only when it is known can it be compared with the others.
    /// Breaks when nobody wants more.
    fn advance(
        &mut self,
        index: usize,
        stream: &mut Stream,
        sink: &mut Sink,
    ) -> Result<ControlFlow<()>> {
        while !stream.range.is_empty() {
            let wait = Duration::from_millis(if sink.is_empty() { 100 } else { 2 });
            self.hear_errors()?;
            let event = self
                .reader
                .next_of(&stream.partition, wait, Silence::Suspicious)?;
            match event {
                Event::Record(message) => match stream.range.pass(message.offset()) {
                    Step::Before => continue,
                    Step::Behind { gaps } => sink.gap(gaps),
                    Step::Inside { gaps } => {
                        sink.gap(gaps);
                        let delivery = record::delivery(&message);
                        let time = delivery.time.map_or(i64::MIN, |time| time.0);
                        stream.head = Some(delivery);
                        self.heads.push(Reverse((time, index)));
                        break;
                    }
                },
                Event::End(_) => sink.gap(stream.range.finish()),
                Event::Quiet if sink.flush().is_break() => return Ok(ControlFlow::Break(())),
                Event::Quiet => {}
            }
        }
        if stream.range.is_empty() {
            self.reader.pause(self.topic, stream.range.partition);
        }
        Ok(sink.wanted())
    }

    /// Errors that belong to no partition come on the client's own queue.
    fn hear_errors(&mut self) -> Result<()> {
        if self.asked.elapsed() >= ERRORS_EVERY {
            self.asked = Instant::now();
            self.reader.next(Duration::ZERO, Silence::Normal)?;
        }
        Ok(())
    }
}
