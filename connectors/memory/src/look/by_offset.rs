//! A look at a log: reads along the offsets of each partition, merged by time, and counts the gaps.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use dlo_core::{
    Address, Delivery, Disposition, Error, ErrorKind, Figure, Follow, Hold, Isolation, Lock, Look,
    LookRequest, Page, Position, Result, Returned, Scan, Start,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Step,
    broker::Broker,
    delivery,
    log::{Log, PartitionLog, Record},
    session::Guard,
    state::State,
};

#[derive(Debug)]
pub(crate) struct OffsetLook {
    broker: Broker,
    guard: Arc<Guard>,
    log: String,
    request: LookRequest,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    way: Way,
    shown: u64,
    closed: bool,
}

/// The way through the offsets.
#[derive(Debug)]
enum Way {
    /// From the oldest on; a tail goes on where the end was.
    Forward(Vec<Cursor>),
    /// From the newest back.
    Backward(Vec<Cursor>),
    Positions(VecDeque<Position>),
}

/// Where the reading of one partition is: the next offset to look at, and the one to stop at (forward: not included,
/// backward: included).
#[derive(Clone, Copy, Debug)]
struct Cursor {
    partition: i32,
    next: i64,
    stop: i64,
}

impl OffsetLook {
    pub fn open(
        broker: Broker,
        guard: Arc<Guard>,
        at: &Address,
        request: LookRequest,
    ) -> Result<Self> {
        let way = broker.with(|state| state.log(&at.name).map(|log| way_of(log, &request)))?;
        Ok(Self {
            broker,
            guard,
            log: at.name.clone(),
            request,
            progress: Mutex::new(Progress {
                way,
                shown: 0,
                closed: false,
            }),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is there now, without waiting.
    fn read(&self, state: &mut State, max: usize) -> Result<Page> {
        let log = state.log(&self.log)?;
        let mut progress = self.progress();
        if self.request.follow == Follow::Tail {
            progress.go_on(log, self.request.isolation);
        }
        let mut page = Page::default();
        let left = self.request.limit - progress.shown.min(self.request.limit);
        let max = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        while page.deliveries.len() < max {
            let step = progress
                .way
                .step(log, self.request.isolation, &mut page.scan);
            let Some(delivery) = step else { break };
            page.deliveries.push(delivery);
        }
        progress.shown += page.deliveries.len() as u64;
        let is_at_end = progress.way.is_at_end(log, self.request.isolation);
        page.end = progress.closed
            || progress.shown >= self.request.limit
            || (is_at_end && self.request.follow == Follow::Stop);
        page.scan.total = Figure::at_most(log.span());
        Ok(page)
    }
}

impl Progress {
    /// Moves the stops of a tail to the present ends.
    fn go_on(&mut self, log: &Log, isolation: Isolation) {
        let Way::Forward(cursors) = &mut self.way else {
            return;
        };
        for cursor in cursors {
            if let Some(partition) = log.partition(cursor.partition) {
                cursor.stop = partition.end(isolation);
            }
        }
    }
}

impl Way {
    /// The next record, with everything that was passed on the way to it.
    fn step(&mut self, log: &Log, isolation: Isolation, scan: &mut Scan) -> Option<Delivery> {
        match self {
            Self::Positions(positions) => step_positions(positions, log, isolation, scan),
            Self::Forward(cursors) => {
                let found = cursors.iter_mut().filter_map(|cursor| {
                    let (offset, record) = cursor.peek_forward(log, isolation)?;
                    Some((record.time, offset, cursor, record))
                });
                let (_, offset, cursor, record) =
                    found.min_by_key(|found| (found.0, found.2.partition))?;
                let passed = offset - cursor.next;
                cursor.next = offset + 1;
                count(scan, passed);
                Some(delivery::of_record(record, cursor.partition, offset))
            }
            Self::Backward(cursors) => {
                let found = cursors.iter_mut().filter_map(|cursor| {
                    let (offset, record) = cursor.peek_backward(log, isolation)?;
                    Some((record.time, offset, cursor, record))
                });
                let (_, offset, cursor, record) =
                    found.max_by_key(|found| (found.0, found.2.partition))?;
                let passed = cursor.next - offset;
                cursor.next = offset - 1;
                count(scan, passed);
                Some(delivery::of_record(record, cursor.partition, offset))
            }
        }
    }

    fn is_at_end(&self, log: &Log, isolation: Isolation) -> bool {
        match self {
            Self::Positions(positions) => positions.is_empty(),
            Self::Forward(cursors) => cursors
                .iter()
                .all(|cursor| cursor.peek_forward(log, isolation).is_none()),
            Self::Backward(cursors) => cursors
                .iter()
                .all(|cursor| cursor.peek_backward(log, isolation).is_none()),
        }
    }

    /// Counts the gaps between the last record and the end, once.
    fn finish(&mut self, scan: &mut Scan) {
        match self {
            Self::Forward(cursors) => {
                for cursor in cursors {
                    count_rest(scan, cursor.stop - cursor.next);
                    cursor.next = cursor.next.max(cursor.stop);
                }
            }
            Self::Backward(cursors) => {
                for cursor in cursors {
                    count_rest(scan, cursor.next - cursor.stop + 1);
                    cursor.next = cursor.next.min(cursor.stop - 1);
                }
            }
            Self::Positions(_) => {}
        }
    }
}

impl Cursor {
    fn peek_forward<'a>(&self, log: &'a Log, isolation: Isolation) -> Option<(i64, &'a Record)> {
        if self.next >= self.stop {
            return None;
        }
        let records = &log.partition(self.partition)?.records;
        records
            .range(self.next..self.stop)
            .find(|(_, record)| record.is_shown(isolation))
            .map(|(offset, record)| (*offset, record))
    }

    fn peek_backward<'a>(&self, log: &'a Log, isolation: Isolation) -> Option<(i64, &'a Record)> {
        if self.next < self.stop {
            return None;
        }
        let records = &log.partition(self.partition)?.records;
        records
            .range(self.stop..=self.next)
            .rev()
            .find(|(_, record)| record.is_shown(isolation))
            .map(|(offset, record)| (*offset, record))
    }
}

/// One record was found after passing that many offsets.
fn count(scan: &mut Scan, passed: i64) {
    scan.scanned += 1;
    count_rest(scan, passed);
}

fn count_rest(scan: &mut Scan, passed: i64) {
    let passed = u64::try_from(passed).unwrap_or_default();
    scan.scanned += passed;
    scan.gaps += passed;
}

fn step_positions(
    positions: &mut VecDeque<Position>,
    log: &Log,
    isolation: Isolation,
    scan: &mut Scan,
) -> Option<Delivery> {
    while let Some(position) = positions.pop_front() {
        scan.scanned += 1;
        match read_at(log, &position, isolation) {
            Some(delivery) => return Some(delivery),
            None => scan.gaps += 1,
        }
    }
    None
}

/// The record at a position; `None` when it is not there, or not shown at that isolation.
pub(crate) fn read_at(log: &Log, position: &Position, isolation: Isolation) -> Option<Delivery> {
    let Position::Offset { partition, offset } = *position else {
        return None;
    };
    let records = &log.partition(partition)?.records;
    let record = records.get(&offset)?;
    record
        .is_shown(isolation)
        .then(|| delivery::of_record(record, partition, offset))
}

fn way_of(log: &Log, request: &LookRequest) -> Way {
    let isolation = request.isolation;
    let chosen = |id: &i32| {
        request
            .partitions
            .as_ref()
            .is_none_or(|chosen| chosen.contains(id))
    };
    let partitions = log.numbered().filter(|(id, _)| chosen(id));
    let forward = |partition: i32, from: i64, log: &PartitionLog| Cursor {
        partition,
        next: from.max(log.start),
        stop: log.end(isolation),
    };
    match &request.start {
        Start::Positions(positions) => Way::Positions(positions.iter().cloned().collect()),
        Start::Newest if request.follow == Follow::Tail => Way::Forward(
            partitions
                .map(|(id, log)| forward(id, log.end(isolation), log))
                .collect(),
        ),
        Start::Newest => Way::Backward(
            partitions
                .map(|(partition, log)| Cursor {
                    partition,
                    next: log.end(isolation) - 1,
                    stop: log.start,
                })
                .collect(),
        ),
        Start::Oldest => Way::Forward(
            partitions
                .map(|(id, log)| forward(id, log.start, log))
                .collect(),
        ),
        Start::Offsets(from) => Way::Forward(
            partitions
                .filter_map(|(id, log)| {
                    let (_, offset) = from.iter().find(|(partition, _)| *partition == id)?;
                    Some(forward(id, *offset, log))
                })
                .collect(),
        ),
        Start::Time(time) => Way::Forward(
            partitions
                .map(|(id, log)| {
                    let first = log.records.iter().find(|(_, record)| record.time >= *time);
                    let from = first.map_or(log.next, |(offset, _)| *offset);
                    forward(id, from, log)
                })
                .collect(),
        ),
    }
}

#[async_trait]
impl Look for OffsetLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("read the next messages"));
        }
        self.guard.enter(Step::Look, &self.log).await?;
        let mut changes = self.broker.changes();
        loop {
            changes.mark_unchanged();
            let mut page = self.broker.with(|state| self.read(state, max))?;
            if page.end && self.progress().shown < self.request.limit {
                self.progress().way.finish(&mut page.scan);
            }
            if page.end || !page.deliveries.is_empty() || max == 0 {
                return Ok(page);
            }
            self.guard.check()?;
            self.broker.wait(&mut changes, cancel).await?;
        }
    }

    async fn settle(&self, locks: &[Lock], _: Disposition) -> Vec<Result<()>> {
        let error = Error::new(
            ErrorKind::Unsupported,
            "settle the message",
            "a log holds no locks; its records stay until they are too old",
        );
        locks.iter().map(|_| Err(error.clone())).collect()
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        Ok(None)
    }

    fn hold(&self) -> Option<Hold> {
        None
    }

    async fn close(&self) -> Result<Returned> {
        self.progress().closed = true;
        Ok(Returned::default())
    }
}
