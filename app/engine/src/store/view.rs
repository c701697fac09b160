//! The messages of one look.

use std::{
    fmt,
    sync::{Arc, RwLock, RwLockReadGuard},
};

use bytes::Bytes;
use dlo_core::{Delivery, Millis, Position};

use super::pack::{pack, unpack};

/// How much a look may keep in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 1 << 30 }
    }
}

/// What has become of a row since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RowState {
    /// As the broker holds it.
    #[default]
    Here,
    /// Marked as resolved in the journal; it is still at the broker.
    Resolved,
    /// Replayed and removed.
    Replayed,
    /// Saved and removed.
    Discarded,
    /// The hold on it was lost: it is in its queue again, perhaps with somebody else.
    Stale,
    /// An act on it ended with an unknown outcome.
    Unknown,
}

impl RowState {
    /// True when it still waits for somebody.
    pub fn is_open(self) -> bool {
        self == Self::Here
    }

    /// True when nobody has to do anything about it any more.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Resolved | Self::Replayed | Self::Discarded)
    }

    /// True when an act can still be done on it.
    pub fn can_act(self) -> bool {
        matches!(self, Self::Here | Self::Resolved)
    }
}

/// What the engine found out about a message when it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRow {
    /// Index into the look's groups.
    pub group: u32,
    pub attempts: Option<u32>,
    /// When it died, else its own time.
    pub time: Option<Millis>,
    pub state: RowState,
}

/// One line of the message table, made from the packed message when it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub row: u32,
    pub position: Position,
    pub time: Option<Millis>,
    /// The key, or what stands for it, as far as it is text; bounded.
    pub key: Option<String>,
    /// What the key is.
    pub key_kind: KeyKind,
    pub attempts: Option<u32>,
    pub group: u32,
    pub state: RowState,
    /// Bytes of the body; `None` is a null body.
    pub size: Option<u64>,
    /// The beginning of the body in one line; bounded. Hexadecimal when it is not text.
    pub preview: String,
}

/// What stands in a row's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// The record's own key.
    #[default]
    Key,
    /// The group that order is kept in (SQS FIFO).
    Group,
    MessageId,
    CorrelationId,
    /// A record without a key, on a broker whose records have one.
    Null,
    /// The broker knows no keys, and the message has nothing that identifies it.
    None,
}

/// One failure group of a look.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRow {
    pub id: u32,
    /// For example `NullPointerException  OrderHandler.price`.
    pub label: String,
    /// `transient`, `throttled`, `contract`, `business`, `bug`, or empty: a hint.
    pub class: String,
    /// Rows in it that can still be acted on, and all rows.
    pub open: u64,
    pub count: u64,
    /// The first row in it, as an example.
    pub first: u32,
}

/// The messages of one look. Rows are numbered from 0 in the order of delivery and keep their numbers.
pub struct LookView {
    inner: RwLock<Inner>,
    budget: Budget,
}

#[derive(Default)]
struct Inner {
    chunks: Vec<Chunk>,
    rows: u32,
    /// The first row that is still kept; a live tail drops whole chunks.
    first: u32,
    bytes: u64,
    /// Label and class of each group.
    groups: Vec<(String, String)>,
    tally: Vec<Tally>,
    /// Rows on which no act can be done any more, in the order in which that happened.
    gone: Vec<u32>,
    /// How many of them were dropped since.
    gone_dropped: u64,
    /// Counts every change, so that the window knows when to look again.
    version: u64,
}

/// Rows of one group.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    open: u64,
    first: u32,
}

/// Some rows that arrived together.
struct Chunk {
    first: u32,
    bytes: Bytes,
    entries: Box<[Entry]>,
}

struct Entry {
    end: u32,
    group: u32,
    time: i64,
    attempts: u16,
    state: RowState,
}

const NO_TIME: i64 = i64::MIN;
const NO_ATTEMPTS: u16 = u16::MAX;
/// Characters of a body's beginning in the table.
const PREVIEW: usize = 160;

impl fmt::Debug for LookView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.read();
        write!(f, "LookView({} rows, {} bytes)", inner.rows, inner.bytes)
    }
}

impl LookView {
    pub fn new(budget: Budget) -> Arc<Self> {
        Arc::new(Self {
            inner: RwLock::default(),
            budget,
        })
    }

    /// Rows that were ever loaded; the next one gets this number.
    pub fn len(&self) -> u32 {
        self.read().rows
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first row that is still kept (0 except in a live tail).
    pub fn first(&self) -> u32 {
        self.read().first
    }

    /// Bytes kept in memory.
    pub fn bytes(&self) -> u64 {
        self.read().bytes
    }

    /// Rises with every change of rows, states or groups.
    pub fn version(&self) -> u64 {
        self.read().version
    }

    /// True when the budget is used up.
    pub fn is_full(&self) -> bool {
        self.bytes() >= self.budget.bytes
    }

    /// Appends messages that arrived together and returns the number of the first.
    pub fn append<'a>(&self, deliveries: impl IntoIterator<Item = (&'a Delivery, NewRow)>) -> u32 {
        // Packed before the lock is taken: readers wait for two pushes at most.
        let (mut bytes, mut entries) = (Vec::new(), Vec::new());
        for (delivery, new) in deliveries {
            pack(delivery, &mut bytes);
            entries.push(Entry {
                end: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                group: new.group,
                time: new.time.map_or(NO_TIME, |time| time.0),
                attempts: new.attempts.map_or(NO_ATTEMPTS, |count| {
                    u16::try_from(count).unwrap_or(NO_ATTEMPTS - 1)
                }),
                state: new.state,
            });
        }
        bytes.shrink_to_fit();
        let mut inner = self.write();
        let first = inner.rows;
        if entries.is_empty() {
            return first;
        }
        for (row, entry) in (first..).zip(&entries) {
            inner.count(entry.group, entry.state, row);
            if !entry.state.can_act() {
                inner.gone.push(row);
            }
        }
        inner.rows += u32::try_from(entries.len()).unwrap_or(0);
        inner.bytes += bytes.len() as u64 + (entries.len() * size_of::<Entry>()) as u64;
        inner.chunks.push(Chunk {
            first,
            bytes: bytes.into(),
            entries: entries.into(),
        });
        inner.version += 1;
        first
    }

    /// Drops the oldest rows until the budget holds again, and says how many. For live tails only.
    pub fn drop_oldest(&self) -> u32 {
        let mut inner = self.write();
        let before = inner.first;
        while inner.bytes > self.budget.bytes && inner.chunks.len() > 1 {
            let chunk = inner.chunks.remove(0);
            inner.bytes -=
                chunk.bytes.len() as u64 + (chunk.entries.len() * size_of::<Entry>()) as u64;
            inner.first = chunk.first + chunk.entries.len() as u32;
            let gone = chunk.entries.iter().filter(|entry| !entry.state.can_act());
            inner.gone_dropped += gone.count() as u64;
        }
        inner.version += 1;
        inner.first - before
    }

    /// Replaces label and class of the groups, by their number.
    pub fn set_groups(&self, groups: Vec<(String, String)>) {
        let mut inner = self.write();
        inner.groups = groups;
        inner.version += 1;
    }

    /// The groups by their number.
    pub fn groups(&self) -> Vec<GroupRow> {
        let inner = self.read();
        let tally = inner
            .tally
            .iter()
            .copied()
            .chain(std::iter::repeat(Tally::default()));
        let rows = (0..).zip(&inner.groups).zip(tally);
        rows.map(|((id, (label, class)), tally)| GroupRow {
            id,
            label: label.clone(),
            class: class.clone(),
            open: tally.open,
            count: tally.count,
            first: tally.first,
        })
        .collect()
    }

    /// Sets the state of some rows.
    pub fn set_state(&self, rows: impl IntoIterator<Item = u32>, state: RowState) {
        let mut inner = self.write();
        for row in rows {
            if let Some((chunk, index)) = inner.find(row) {
                let entry = &mut inner.chunks[chunk].entries[index];
                let (group, before) = (entry.group as usize, entry.state);
                entry.state = state;
                if before.can_act() && !state.can_act() {
                    inner.gone.push(row);
                }
                if let Some(tally) = inner.tally.get_mut(group) {
                    tally.open += u64::from(state.is_open());
                    tally.open -= u64::from(before.is_open());
                }
            }
        }
        inner.version += 1;
    }

    /// The state of a row; `None` when it is not kept.
    pub fn state(&self, row: u32) -> Option<RowState> {
        self.read().entry(row).map(|entry| entry.state)
    }

    /// The group of a row.
    pub fn group_of(&self, row: u32) -> Option<u32> {
        self.read().entry(row).map(|entry| entry.group)
    }

    /// The time of a row: when it died, else its own.
    pub fn time_of(&self, row: u32) -> Option<Millis> {
        self.read().entry(row).and_then(time)
    }

    /// The message of a row, whole. Bodies are shared, not copied.
    pub fn delivery(&self, row: u32) -> Option<Delivery> {
        let packed = self.read().packed(row)?;
        unpack(&packed)
    }

    /// One line of the table.
    pub fn row(&self, row: u32) -> Option<Row> {
        let (packed, time, attempts, group, state) = {
            let inner = self.read();
            let entry = inner.entry(row)?;
            (
                inner.packed(row)?,
                time(entry),
                entry.attempts,
                entry.group,
                entry.state,
            )
        };
        let delivery = unpack(&packed)?;
        let (key, key_kind) = key_text(&delivery);
        Some(Row {
            row,
            key,
            key_kind,
            time,
            attempts: (attempts != NO_ATTEMPTS).then_some(u32::from(attempts)),
            group,
            state,
            size: delivery.message.body.as_ref().map(|body| body.len() as u64),
            preview: delivery
                .message
                .body
                .as_deref()
                .map(|body| preview(body, PREVIEW))
                .unwrap_or_default(),
            position: delivery.position,
        })
    }

    /// How many of the rows that are kept can still be acted on.
    pub fn actable(&self) -> u64 {
        let inner = self.read();
        let gone = inner.gone.len() as u64 - inner.gone_dropped;
        u64::from(inner.rows - inner.first).saturating_sub(gone)
    }

    /// How many of these rows can still be acted on, and how many rows of the whole look cannot: where [`Self::gone_from`] goes
    /// on counting.
    pub fn actable_of(&self, rows: &[u32]) -> (u64, usize) {
        let inner = self.read();
        let actable = rows.iter().filter(|row| {
            let entry = inner.entry(**row);
            entry.is_some_and(|entry| entry.state.can_act())
        });
        (actable.count() as u64, inner.gone.len())
    }

    /// Those of these rows that can still be acted on.
    pub fn actable_among(&self, mut rows: Vec<u32>) -> Vec<u32> {
        let inner = self.read();
        rows.retain(|row| {
            let entry = inner.entry(*row);
            entry.is_some_and(|entry| entry.state.can_act())
        });
        rows
    }

    /// Rows on which no act can be done any more, in the order in which that happened, without the first `seen`: so that a
    /// selection follows what happens without reading every row again.
    pub fn gone_from(&self, seen: usize) -> Vec<u32> {
        self.read().gone.get(seen..).unwrap_or_default().to_vec()
    }

    /// Rows that still wait for somebody, in order.
    pub fn open_rows(&self) -> Vec<u32> {
        self.rows_where(RowState::is_open)
    }

    /// Rows whose state is wanted, in order.
    pub fn rows_where(&self, wanted: impl Fn(RowState) -> bool) -> Vec<u32> {
        let inner = self.read();
        let mut rows = Vec::with_capacity((inner.rows - inner.first) as usize);
        for chunk in &inner.chunks {
            let numbered = (chunk.first..).zip(&chunk.entries);
            rows.extend(
                numbered
                    .filter(|(_, entry)| wanted(entry.state))
                    .map(|(row, _)| row),
            );
        }
        rows
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn count(&mut self, group: u32, state: RowState, row: u32) {
        let group = group as usize;
        if group >= self.tally.len() {
            self.tally.resize(group + 1, Tally::default());
        }
        let tally = &mut self.tally[group];
        if tally.count == 0 {
            tally.first = row;
        }
        tally.count += 1;
        tally.open += u64::from(state.is_open());
    }

    fn find(&self, row: u32) -> Option<(usize, usize)> {
        let chunk = self
            .chunks
            .partition_point(|chunk| chunk.first <= row)
            .checked_sub(1)?;
        let index = (row - self.chunks[chunk].first) as usize;
        (index < self.chunks[chunk].entries.len()).then_some((chunk, index))
    }

    fn entry(&self, row: u32) -> Option<&Entry> {
        let (chunk, index) = self.find(row)?;
        self.chunks[chunk].entries.get(index)
    }

    fn packed(&self, row: u32) -> Option<Bytes> {
        let (chunk, index) = self.find(row)?;
        let chunk = &self.chunks[chunk];
        let start = index
            .checked_sub(1)
            .map_or(0, |before| chunk.entries[before].end) as usize;
        Some(chunk.bytes.slice(start..chunk.entries[index].end as usize))
    }
}

fn time(entry: &Entry) -> Option<Millis> {
    (entry.time != NO_TIME).then_some(Millis(entry.time))
}

/// The record key; without one what other brokers order or identify by.
fn key_text(delivery: &Delivery) -> (Option<String>, KeyKind) {
    if let Some(key) = &delivery.message.key {
        return (Some(preview(key, 60)), KeyKind::Key);
    }
    let stand_ins = [
        ("MessageGroupId", KeyKind::Group),
        ("message_id", KeyKind::MessageId),
        ("correlation_id", KeyKind::CorrelationId),
    ];
    for (name, kind) in stand_ins {
        let value = delivery.message.properties.get(name);
        if let Some(bytes) = value.and_then(|value| value.as_bytes()) {
            return (Some(preview(bytes, 60)), kind);
        }
    }
    match delivery.position {
        Position::Offset { .. } => (None, KeyKind::Null),
        _ => (None, KeyKind::None),
    }
}

/// The beginning of some bytes in one line of at most `limit` characters; hexadecimal when they are not text.
pub fn preview(bytes: &[u8], limit: usize) -> String {
    let head = &bytes[..bytes.len().min(limit * 4)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character cut in two at the end of the head is no reason to show hexadecimal.
        Err(error) if error.error_len().is_none() && head.len() < bytes.len() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return hex(head, limit),
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return hex(head, limit);
    }
    text.chars()
        .take(limit)
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect()
}

fn hex(bytes: &[u8], limit: usize) -> String {
    bytes
        .iter()
        .take(limit / 3)
        .map(|byte| format!("{byte:02x} "))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dlo_core::Message;

    use super::*;

    fn delivery(index: u64, body: &[u8]) -> Delivery {
        Delivery {
            message: Message {
                body: Some(Bytes::copy_from_slice(body)),
                ..Message::default()
            },
            position: Position::Index { index },
            lock: None,
            time: None,
            delivery_count: None,
            facts: BTreeMap::new(),
        }
    }

    #[test]
    fn rows_keep_their_numbers_over_chunks() {
        let view = LookView::new(Budget::default());
        for page in 0..4u64 {
            let page: Vec<_> = (0..3)
                .map(|i| delivery(page * 3 + i, format!("body {}", page * 3 + i).as_bytes()))
                .collect();
            view.append(page.iter().map(|delivery| (delivery, NewRow::default())));
        }
        assert_eq!(view.len(), 12);
        for row in 0..12 {
            assert_eq!(
                view.row(row).map(|row| row.preview),
                Some(format!("body {row}"))
            );
            assert_eq!(
                view.delivery(row),
                Some(delivery(u64::from(row), format!("body {row}").as_bytes()))
            );
        }
        assert_eq!(view.row(12), None);
    }

    #[test]
    fn a_message_costs_little_more_than_its_own_bytes() {
        let view = LookView::new(Budget::default());
        let page: Vec<_> = (0..1000)
            .map(|index| delivery(index, &[b'x'; 1024]))
            .collect();
        view.append(page.iter().map(|delivery| (delivery, NewRow::default())));
        let per_message = view.bytes() as f64 / 1000.0;
        assert!(per_message < 1024.0 * 1.15 + 64.0, "{per_message}");
    }

    #[test]
    fn a_tail_drops_the_oldest_and_says_how_many() {
        let view = LookView::new(Budget { bytes: 3000 });
        for index in 0..10 {
            view.append([(&delivery(index, &[b'x'; 1000]), NewRow::default())]);
        }
        assert_eq!(view.drop_oldest(), 8);
        assert_eq!(
            (view.first(), view.row(7), view.row(8).is_some()),
            (8, None, true)
        );
    }

    #[test]
    fn states_decide_what_can_be_acted_on() {
        let view = LookView::new(Budget::default());
        let page: Vec<_> = (0..4).map(|index| delivery(index, b"x")).collect();
        view.append(page.iter().map(|delivery| (delivery, NewRow::default())));
        view.set_state([1], RowState::Replayed);
        view.set_state([2], RowState::Resolved);
        assert_eq!(view.open_rows(), [0, 3]);
        assert_eq!((view.actable(), view.gone_from(0)), (3, vec![1]));
        assert_eq!(view.actable_of(&[1, 2]), (1, 1));
        view.set_state([1, 3], RowState::Stale);
        assert_eq!(
            (view.actable(), view.gone_from(1)),
            (2, vec![3]),
            "each row goes once"
        );
    }

    #[test]
    fn a_preview_is_one_line_and_never_cuts_a_character() {
        assert_eq!(preview("a\nb".as_bytes(), 10), "a b");
        assert_eq!(preview(&[0, 255], 30), "00 ff ");
        let long = "é".repeat(1000);
        assert_eq!(preview(long.as_bytes(), 10), "é".repeat(10));
    }
}
