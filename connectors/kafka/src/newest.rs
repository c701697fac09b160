//! The newest records first, over all partitions.
//!
//! Kafka reads only forward, so each partition is read in windows from its end back to its start, and the windows are merged
//! by time. A window may hold few records or none (transaction markers, aborted data, compaction), so it is the number of
//! records found that decides whether to go back further, not arithmetic on offsets.

use std::{cmp::Reverse, collections::BTreeMap, collections::VecDeque, time::Duration};

use dlo_core::{Delivery, Result};
use rdkafka::Message;

use crate::{
    forward::{Range, Step},
    look::Sink,
    reader::{Event, Reader, Silence},
    record,
};

/// Bytes that all partitions together may keep while they are merged.
const BUDGET: usize = 32 << 20;
/// Offsets of the first window: small, because nothing is known yet of the size of a record.
const FIRST_WINDOW: i64 = 16;
const LARGEST_WINDOW: i64 = 1 << 22;

/// Delivers the newest records of the ranges, newest first.
pub(crate) fn read(
    reader: &Reader,
    topic: &str,
    ranges: Vec<Range>,
    sink: &mut Sink,
) -> Result<()> {
    let mut stacks: Vec<Stack> = ranges
        .into_iter()
        .filter(|r| !r.is_empty())
        .map(Stack::new)
        .collect();
    let share = BUDGET / stacks.len().max(1);
    while sink.left() > 0 && sink.wanted().is_continue() {
        if stacks.iter().any(Stack::needs_more) {
            refill(reader, topic, &mut stacks, share, sink)?;
            continue;
        }
        let newest = stacks
            .iter_mut()
            .filter(|stack| !stack.held.is_empty())
            .max_by_key(|stack| stack.rank());
        let Some(delivery) = newest.and_then(Stack::pop) else {
            break;
        };
        if sink.put(delivery).is_break() {
            break;
        }
    }
    Ok(())
}

/// What was read of one partition and not yet delivered.
struct Stack {
    partition: i32,
    start: i64,
    /// Everything from here on was read.
    read_from: i64,
    window: i64,
    /// The last window was mostly gaps.
    is_sparse: bool,
    /// By offset, the newest last.
    held: VecDeque<Delivery>,
    bytes: usize,
}

impl Stack {
    fn new(range: Range) -> Self {
        Self {
            partition: range.partition,
            start: range.next,
            read_from: range.end,
            window: FIRST_WINDOW,
            is_sparse: false,
            held: VecDeque::new(),
            bytes: 0,
        }
    }

    fn has_more(&self) -> bool {
        self.read_from > self.start
    }

    /// Only when its newest record is known can it be compared with the others.
    fn needs_more(&self) -> bool {
        self.held.is_empty() && self.has_more()
    }

    fn rank(&self) -> (Option<i64>, Reverse<i32>) {
        let time = self.held.back().and_then(|delivery| delivery.time);
        (time.map(|time| time.0), Reverse(self.partition))
    }

    fn pop(&mut self) -> Option<Delivery> {
        let delivery = self.held.pop_back()?;
        self.bytes -= delivery.message.size();
        Some(delivery)
    }

    fn next_window(&self, left: u64) -> Range {
        // More than what is still wanted is not needed, unless windows turned out to be mostly gaps.
        let wanted = i64::try_from(left).unwrap_or(i64::MAX).max(FIRST_WINDOW);
        let size = if self.is_sparse {
            self.window
        } else {
            self.window.min(wanted)
        };
        Range {
            partition: self.partition,
            next: (self.read_from - size).max(self.start),
            end: self.read_from,
        }
    }

    /// Puts a window under what is held, and chooses the size of the next.
    fn add(&mut self, window: Window, share: usize) -> i64 {
        let records = window.records.len() as i64;
        let gaps = self.read_from - window.from - records;
        self.read_from = window.from;
        let spent = window.bytes.max(1);
        self.is_sparse = !window.is_cut && records * 4 < records + gaps;
        self.window = if window.is_cut {
            records.max(1)
        } else if self.is_sparse {
            (self.window * 4).min(LARGEST_WINDOW)
        } else {
            let fits = (share / 2) as i64 * records / spent as i64;
            fits.clamp(1, (self.window * 8).min(8192))
        };
        for delivery in window.records.into_iter().rev() {
            self.bytes += delivery.message.size();
            self.held.push_front(delivery);
        }
        gaps.max(0)
    }
}

/// The records of one window.
struct Window {
    range: Range,
    from: i64,
    records: VecDeque<Delivery>,
    bytes: usize,
    /// The oldest were dropped again to stay within the budget; they will be read once more.
    is_cut: bool,
}

impl Window {
    fn push(&mut self, delivery: Delivery, offset: i64, share: usize) {
        self.bytes += delivery.message.size();
        self.records.push_back(delivery);
        while self.bytes > share && self.records.len() > 1 {
            if let Some(dropped) = self.records.pop_front() {
                self.bytes -= dropped.message.size();
            }
            self.is_cut = true;
            self.from = self.records.front().map_or(offset, offset_of);
        }
    }
}

fn offset_of(delivery: &Delivery) -> i64 {
    match delivery.position {
        dlo_core::Position::Offset { offset, .. } => offset,
        _ => 0,
    }
}

/// Reads the next window of every partition that has little left, all at once: a round trip costs more than some records.
fn refill(
    reader: &Reader,
    topic: &str,
    stacks: &mut [Stack],
    share: usize,
    sink: &mut Sink,
) -> Result<()> {
    let left = sink.left();
    let windows: Vec<Range> = stacks
        .iter()
        .filter(|stack| stack.has_more() && (stack.held.is_empty() || stack.bytes < share / 4))
        .filter(|stack| (stack.held.len() as u64) < left)
        .map(|stack| stack.next_window(left))
        .collect();
    let read = read_windows(reader, topic, windows, share, sink)?;
    for window in read {
        let stack = stacks
            .iter_mut()
            .find(|stack| stack.partition == window.range.partition);
        if let Some(stack) = stack {
            let gaps = stack.add(window, share);
            sink.gap(gaps);
        }
    }
    Ok(())
}

fn read_windows(
    reader: &Reader,
    topic: &str,
    ranges: Vec<Range>,
    share: usize,
    sink: &Sink,
) -> Result<Vec<Window>> {
    let starts: Vec<_> = ranges
        .iter()
        .map(|range| (range.partition, range.next))
        .collect();
    reader.assign(topic, &starts)?;
    let mut open: BTreeMap<i32, Window> = ranges
        .into_iter()
        .map(|range| {
            let window = Window {
                range,
                from: range.next,
                records: VecDeque::new(),
                bytes: 0,
                is_cut: false,
            };
            (range.partition, window)
        })
        .collect();
    let mut done = Vec::new();
    while !open.is_empty() && sink.wanted().is_continue() {
        let finished = match reader.next(Duration::from_millis(100), Silence::Suspicious)? {
            Event::Record(message) => {
                let partition = message.partition();
                let Some(window) = open.get_mut(&partition) else {
                    continue;
                };
                if let Step::Inside { .. } = window.range.pass(message.offset()) {
                    window.push(record::delivery(&message), message.offset(), share);
                }
                window.range.is_empty().then_some(partition)
            }
            Event::End(partition) => Some(partition),
            Event::Quiet => None,
        };
        if let Some(window) = finished.and_then(|partition| open.remove(&partition)) {
            done.push(window);
        }
    }
    Ok(done)
}
