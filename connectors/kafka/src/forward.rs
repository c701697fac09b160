//! Reading forward as records come: what a range of offsets is, and the live tail.

use std::{collections::BTreeMap, time::Duration};

use dlo_core::Result;
use rdkafka::Message;

use crate::{
    look::Sink,
    reader::{Event, Reader, Silence},
    record,
};

/// A part of a partition: `next` is the first offset to read, `end` the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub partition: i32,
    pub next: i64,
    pub end: i64,
}

impl Range {
    pub(crate) fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.next)).unwrap_or_default()
    }
}

/// What a record at an offset means for a range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It belongs to the range; so many offsets before it have no record.
    Inside { gaps: i64 },
    /// It lies behind the range, whose rest of so many offsets has no record.
    Behind { gaps: i64 },
    /// It was passed before.
    Before,
}

impl Range {
    /// Moves past a record.
    pub(crate) fn pass(&mut self, offset: i64) -> Step {
        if offset < self.next {
            return Step::Before;
        }
        if offset >= self.end {
            return Step::Behind {
                gaps: self.finish(),
            };
        }
        let gaps = offset - self.next;
        self.next = offset + 1;
        Step::Inside { gaps }
    }

    /// Moves to the end and gives how many offsets were left.
    pub(crate) fn finish(&mut self) -> i64 {
        let rest = (self.end - self.next).max(0);
        self.next = self.end;
        rest
    }
}

/// Follows partitions from these offsets on, until nobody wants more.
pub(crate) fn tail(
    reader: &Reader,
    topic: &str,
    mut ranges: Vec<Range>,
    sink: &mut Sink,
) -> Result<()> {
    let starts: Vec<_> = ranges
        .iter()
        .map(|range| (range.partition, range.next))
        .collect();
    reader.assign(topic, &starts)?;
    for range in &mut ranges {
        range.end = i64::MAX;
    }
    let mut open: BTreeMap<i32, Range> = ranges
        .into_iter()
        .map(|range| (range.partition, range))
        .collect();
    while sink.wanted().is_continue() {
        let wait = if sink.is_empty() { 100 } else { 2 };
        let flow = match reader.next(Duration::from_millis(wait), Silence::Normal)? {
            Event::Record(message) => {
                let Some(range) = open.get_mut(&message.partition()) else {
                    continue;
                };
                match range.pass(message.offset()) {
                    Step::Inside { gaps } => {
                        sink.gap(gaps);
                        sink.put(record::delivery(&message))
                    }
                    Step::Before | Step::Behind { .. } => continue,
                }
            }
            Event::End(_) | Event::Quiet => sink.flush(),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_lies_between() {
        let mut range = Range {
            partition: 0,
            next: 10,
            end: 20,
        };
        assert_eq!(range.pass(12), Step::Inside { gaps: 2 });
        assert_eq!(range.pass(12), Step::Before);
        assert_eq!(range.pass(13), Step::Inside { gaps: 0 });
        assert_eq!(range.pass(25), Step::Behind { gaps: 6 });
        assert!(range.is_empty());
    }

    #[test]
    fn an_end_that_is_a_marker_counts_as_gap() {
        let mut range = Range {
            partition: 0,
            next: 5,
            end: 7,
        };
        assert_eq!(range.pass(5), Step::Inside { gaps: 0 });
        assert_eq!(range.finish(), 1);
        assert_eq!(range.finish(), 0);
    }
}
