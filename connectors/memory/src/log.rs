//! A partitioned log: a Kafka topic or a RabbitMQ stream. Offsets have gaps where transactions ended, were aborted, or where
//! compaction removed a record, as in the real ones.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dlo_core::{
    ConsumerGroup, GroupLag, Isolation, Message, Millis, Partition, Partitioning, Position,
};

use crate::{Cleanup, LogSettings, clock::millis, murmur::murmur2};

/// What became of a record's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Written plainly, or its transaction was committed.
    Stands,
    Open(u64),
    Aborted,
}

/// One record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub message: Message,
    pub time: Millis,
    pub fate: Fate,
}

impl Record {
    pub fn is_shown(&self, isolation: Isolation) -> bool {
        isolation == Isolation::ReadUncommitted || self.fate == Fate::Stands
    }
}

#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    pub start: i64,
    /// The offset of the next record.
    pub next: i64,
    pub records: BTreeMap<i64, Record>,
    /// Open transactions with the offset of their first record.
    open: BTreeMap<u64, i64>,
}

impl PartitionLog {
    fn append(&mut self, record: Record) -> i64 {
        let offset = self.next;
        if let Fate::Open(transaction) = record.fate {
            self.open.entry(transaction).or_insert(offset);
        }
        self.records.insert(offset, record);
        self.next += 1;
        offset
    }

    /// The end of what is surely committed.
    pub fn last_stable(&self) -> i64 {
        self.open.values().min().copied().unwrap_or(self.next)
    }

    /// The offset after the last one that a reader of that isolation gets to.
    pub fn end(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadCommitted => self.last_stable(),
            Isolation::ReadUncommitted => self.next,
        }
    }

    fn truncate(&mut self, before: i64) {
        self.start = self.start.max(before.min(self.next));
        self.records = self.records.split_off(&self.start);
    }
}

/// A group of consumers with what it has committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub members: u32,
    pub committed: BTreeMap<i32, i64>,
}

#[derive(Debug)]
pub(crate) struct Log {
    pub name: String,
    pub settings: LogSettings,
    pub partitions: Vec<PartitionLog>,
    pub groups: BTreeMap<String, Group>,
    appended: usize,
    transactions: u64,
}

impl Log {
    pub fn new(name: &str, settings: LogSettings) -> Self {
        let count = usize::try_from(settings.partitions).unwrap_or(1).max(1);
        Self {
            name: name.to_owned(),
            settings,
            partitions: std::iter::repeat_with(PartitionLog::default)
                .take(count)
                .collect(),
            groups: BTreeMap::new(),
            appended: 0,
            transactions: 0,
        }
    }

    pub fn partition(&self, id: i32) -> Option<&PartitionLog> {
        self.partitions.get(usize::try_from(id).ok()?)
    }

    pub fn partition_mut(&mut self, id: i32) -> Option<&mut PartitionLog> {
        self.partitions.get_mut(usize::try_from(id).ok()?)
    }

    /// Partitions with their number.
    pub fn numbered(&self) -> impl Iterator<Item = (i32, &PartitionLog)> {
        (0..).zip(&self.partitions)
    }

    /// Appends a record and gives its place; `None` when there is no such partition.
    pub fn append(
        &mut self,
        message: Message,
        time: Millis,
        to: Partitioning,
        fate: Fate,
    ) -> Option<Position> {
        let partition = self.choose(to, message.key.as_ref())?;
        let record = Record {
            message,
            time,
            fate,
        };
        let offset = self.partition_mut(partition)?.append(record);
        self.appended += 1;
        Some(Position::Offset { partition, offset })
    }

    /// By key as Java's default partitioner does it; without a key in turn.
    pub fn choose(&self, to: Partitioning, key: Option<&Bytes>) -> Option<i32> {
        let count = self.partitions.len();
        let chosen = match (to, key) {
            (Partitioning::Exact(id), _) => usize::try_from(id).ok().filter(|id| *id < count)?,
            (Partitioning::ByKey, Some(key)) => (murmur2(key) & 0x7fff_ffff) as usize % count,
            (Partitioning::ByKey, None) => self.appended % count,
        };
        i32::try_from(chosen).ok()
    }

    /// Begins a transaction; its records are not stable until it ends.
    pub fn begin(&mut self) -> u64 {
        self.transactions += 1;
        self.transactions
    }

    /// Ends a transaction with a control record in each partition that it wrote to.
    pub fn end(&mut self, transaction: u64, fate: Fate) {
        for partition in &mut self.partitions {
            if partition.open.remove(&transaction).is_none() {
                continue;
            }
            for record in partition.records.values_mut() {
                if record.fate == Fate::Open(transaction) {
                    record.fate = fate;
                }
            }
            partition.next += 1;
        }
    }

    /// Keeps only the newest record of each key, and none whose newest is a tombstone; records without a key stay.
    pub fn compact(&mut self) {
        if self.settings.cleanup != Cleanup::Compact {
            return;
        }
        for partition in &mut self.partitions {
            let mut seen = BTreeSet::new();
            let mut keep = BTreeSet::new();
            for (offset, record) in partition.records.iter().rev() {
                let newest = match &record.message.key {
                    None => true,
                    Some(key) => seen.insert(key.clone()) && record.message.body.is_some(),
                };
                if newest {
                    keep.insert(*offset);
                }
            }
            partition.records.retain(|offset, _| keep.contains(offset));
        }
    }

    /// Deletes everything before these offsets.
    pub fn truncate(&mut self, before: &[(i32, i64)]) {
        for (id, offset) in before {
            if let Some(partition) = self.partition_mut(*id) {
                partition.truncate(*offset);
            }
        }
    }

    /// Forgets records that are older than the retention.
    pub fn forget(&mut self, now: Millis) {
        let Some(retention) = self.settings.retention.map(millis) else {
            return;
        };
        for partition in &mut self.partitions {
            while let Some((offset, record)) = partition.records.first_key_value() {
                if now.since(record.time) < retention {
                    break;
                }
                let after = *offset + 1;
                partition.truncate(after);
            }
        }
    }

    /// Offsets between start and end: an upper bound of the number of records.
    pub fn span(&self) -> u64 {
        let spans = self.partitions.iter().map(|p| p.next - p.start);
        u64::try_from(spans.sum::<i64>()).unwrap_or_default()
    }

    /// The time of the oldest record.
    pub fn oldest(&self) -> Option<Millis> {
        let firsts = self
            .partitions
            .iter()
            .filter_map(|partition| partition.records.values().next());
        firsts.map(|record| record.time).min()
    }

    pub fn partition_facts(&self) -> Vec<Partition> {
        self.numbered()
            .map(|(id, partition)| Partition {
                id,
                log_start: partition.start,
                high_watermark: partition.next,
                last_stable: Some(partition.last_stable()),
                leader: Some(1),
            })
            .collect()
    }

    pub fn group_facts(&self) -> Vec<ConsumerGroup> {
        self.groups
            .iter()
            .map(|(name, group)| ConsumerGroup {
                name: name.clone(),
                state: if group.members > 0 { "Stable" } else { "Empty" }.to_owned(),
                members: Some(group.members),
                lags: self.lags(group),
            })
            .collect()
    }

    fn lags(&self, group: &Group) -> Vec<GroupLag> {
        self.numbered()
            .map(|(partition, log)| {
                let committed = group.committed.get(&partition).copied();
                GroupLag {
                    partition,
                    committed,
                    lag: committed.map(|offset| (log.next - offset.max(log.start)).max(0)),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &'static str, body: Option<&'static str>) -> Message {
        Message {
            key: Some(Bytes::from_static(key.as_bytes())),
            body: body.map(|body| Bytes::from_static(body.as_bytes())),
            ..Message::default()
        }
    }

    fn offsets(log: &Log) -> Vec<i64> {
        log.partitions[0].records.keys().copied().collect()
    }

    fn add(log: &mut Log, message: Message, fate: Fate) {
        let place = log.append(message, Millis(0), Partitioning::ByKey, fate);
        assert!(place.is_some());
    }

    #[test]
    fn compaction_keeps_the_newest_of_each_key_and_no_tombstone() {
        let mut log = Log::new("t", LogSettings::topic(1).compacted());
        for (key, body) in [
            ("a", Some("1")),
            ("b", Some("1")),
            ("a", Some("2")),
            ("b", None),
        ] {
            add(&mut log, message(key, body), Fate::Stands);
        }
        log.compact();
        assert_eq!(offsets(&log), [2]);
    }

    #[test]
    fn a_transaction_takes_an_offset_for_its_end_and_holds_the_stable_end() {
        let mut log = Log::new("t", LogSettings::topic(1));
        add(&mut log, message("a", Some("1")), Fate::Stands);
        let transaction = log.begin();
        add(&mut log, message("a", Some("2")), Fate::Open(transaction));
        assert_eq!(log.partitions[0].last_stable(), 1);
        log.end(transaction, Fate::Aborted);
        let partition = &log.partitions[0];
        assert_eq!((partition.last_stable(), partition.next), (3, 3));
        assert!(!partition.records[&1].is_shown(Isolation::ReadCommitted));
    }

    #[test]
    fn truncating_beyond_the_end_stops_at_the_end() {
        let mut log = Log::new("t", LogSettings::topic(1));
        add(&mut log, message("a", Some("1")), Fate::Stands);
        log.truncate(&[(0, 100), (7, 1)]);
        assert_eq!((log.partitions[0].start, log.span()), (1, 0));
    }
}
