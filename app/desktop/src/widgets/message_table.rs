//! The message table: loaded rows, plain or under their failure groups, with a selection.
//!
//! Which group a row is in is read a few hundred thousand rows a frame, so that a look of ten million rows never makes a frame
//! wait. A selection is a bit a row.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use dlo_engine::store::{GroupRow, LookView, Row};

/// Some rows, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet {
    words: Vec<u64>,
    count: u64,
}

impl RowSet {
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn contains(&self, row: u32) -> bool {
        self.words
            .get(row as usize / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    pub fn insert(&mut self, row: u32) {
        let (word, bit) = (row as usize / 64, 1u64 << (row % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit == 0 {
            self.words[word] |= bit;
            self.count += 1;
        }
    }

    pub fn remove(&mut self, row: u32) {
        if self.contains(row) {
            self.words[row as usize / 64] &= !(1u64 << (row % 64));
            self.count -= 1;
        }
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| index as u32 * 64 + bit)
        })
    }
}

impl Extend<u32> for RowSet {
    fn extend<T: IntoIterator<Item = u32>>(&mut self, rows: T) {
        for row in rows {
            self.insert(row);
        }
    }
}

/// Whether rows stand under their failure groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    ByFailure,
    None,
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Group(u32),
    Message(u32),
}

/// Which lines there are, in order.
#[derive(Debug, Default)]
pub struct Lines {
    pub grouping: Grouping,
    pub open: HashSet<u32>,
    /// The filter's rows; `None` is all.
    rows: Option<Arc<[u32]>>,
    /// How many rows (of the filter or of the view) are sorted into groups already.
    sorted: usize,
    by_group: HashMap<u32, Vec<u32>>,
    /// Groups in the order of the screen with the line they begin at.
    starts: Vec<(u64, u32)>,
    total: u64,
    first: u32,
    /// Rows of the filter that can still be acted on, and how many rows of the view that are gone were counted for it.
    actable: u64,
    seen_gone: usize,
    /// Cached lines of the screen.
    cache: HashMap<u32, Arc<Row>>,
}

/// Rows sorted into groups in one frame, at most; about two milliseconds.
const STEP: usize = 60_000;
/// Rows kept in the form they are drawn in.
const CACHE: usize = 600;

impl Lines {
    /// Takes in what has arrived. Call it once a frame. Returns true while there is more to sort.
    pub fn update(
        &mut self,
        view: &LookView,
        filter: Option<&Arc<[u32]>>,
        groups: &[GroupRow],
    ) -> bool {
        self.first = view.first();
        let same = match (&self.rows, filter) {
            (None, None) => true,
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        };
        if !same {
            self.rows = filter.cloned();
            self.sorted = 0;
            self.by_group.clear();
            if let Some(rows) = &self.rows {
                (self.actable, self.seen_gone) = view.actable_of(rows);
            }
        }
        self.count_gone(view);
        let available = self
            .rows
            .as_ref()
            .map_or(view.len() as usize, |rows| rows.len());
        if self.grouping == Grouping::None {
            self.total = match &self.rows {
                Some(rows) => rows.len() as u64,
                None => u64::from(view.len() - self.first),
            };
            return false;
        }
        let end = available.min(self.sorted + STEP);
        for index in self.sorted..end {
            let row = self.rows.as_ref().map_or(index as u32, |rows| rows[index]);
            if let Some(group) = view.group_of(row) {
                self.by_group.entry(group).or_default().push(row);
            }
        }
        self.sorted = end;
        self.order(groups);
        end < available
    }

    /// Lines of the table.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What stands in a line.
    pub fn at(&self, line: u64) -> Option<Line> {
        if line >= self.total {
            return None;
        }
        if self.grouping == Grouping::None {
            return match &self.rows {
                Some(rows) => rows.get(line as usize).copied().map(Line::Message),
                None => Some(Line::Message(self.first + line as u32)),
            };
        }
        let index = self
            .starts
            .partition_point(|(start, _)| *start <= line)
            .checked_sub(1)?;
        let (start, group) = self.starts[index];
        if line == start {
            return Some(Line::Group(group));
        }
        let rows = self.by_group.get(&group)?;
        rows.get((line - start - 1) as usize)
            .copied()
            .map(Line::Message)
    }

    /// The line in which a message stands, when it is not folded away.
    pub fn line_of(&self, row: u32, view: &LookView) -> Option<u64> {
        if self.grouping == Grouping::None {
            return match &self.rows {
                Some(rows) => rows.binary_search(&row).ok().map(|index| index as u64),
                None => row.checked_sub(self.first).map(u64::from),
            };
        }
        let group = view
            .group_of(row)
            .filter(|group| self.open.contains(group))?;
        let (start, _) = self.starts.iter().find(|(_, id)| *id == group)?;
        let index = self.by_group.get(&group)?.binary_search(&row).ok()?;
        Some(start + 1 + index as u64)
    }

    /// Rows of a group that are shown by the filter.
    pub fn group(&self, group: u32) -> &[u32] {
        self.by_group.get(&group).map_or(&[], Vec::as_slice)
    }

    /// All rows that the filter shows, in order.
    pub fn rows<'a>(&'a self, view: &'a LookView) -> Box<dyn Iterator<Item = u32> + 'a> {
        match &self.rows {
            Some(rows) => Box::new(rows.iter().copied()),
            None => Box::new(view.first()..view.len()),
        }
    }

    /// How many rows the filter shows.
    pub fn shown(&self, view: &LookView) -> u64 {
        match &self.rows {
            Some(rows) => rows.len() as u64,
            None => u64::from(view.len() - view.first()),
        }
    }

    /// How many rows that the filter shows can still be acted on.
    pub fn actable(&self, view: &LookView) -> u64 {
        match &self.rows {
            Some(_) => self.actable,
            None => view.actable(),
        }
    }

    /// Takes rows that are gone off the count; each is looked at once.
    fn count_gone(&mut self, view: &LookView) {
        let Some(rows) = &self.rows else {
            return;
        };
        let gone = view.gone_from(self.seen_gone);
        self.seen_gone += gone.len();
        let counted = gone.iter().filter(|row| rows.binary_search(row).is_ok());
        self.actable = self.actable.saturating_sub(counted.count() as u64);
    }

    pub fn fold(&mut self, group: u32) {
        if !self.open.remove(&group) {
            self.open.insert(group);
        }
    }

    /// A row as it is drawn, kept while it is near the screen. Its state is read fresh.
    pub fn row(&mut self, view: &LookView, row: u32) -> Option<Arc<Row>> {
        if let Some(cached) = self.cache.get(&row)
            && Some(cached.state) == view.state(row)
        {
            return Some(cached.clone());
        }
        if self.cache.len() >= CACHE {
            self.cache.clear();
        }
        let fresh = Arc::new(view.row(row)?);
        self.cache.insert(row, fresh.clone());
        Some(fresh)
    }

    /// Largest group first; equal ones by their number, so that nothing jumps.
    fn order(&mut self, groups: &[GroupRow]) {
        let mut shown: Vec<_> = groups
            .iter()
            .map(|group| (group.id, self.group(group.id).len()))
            .filter(|(_, count)| *count > 0)
            .collect();
        shown.sort_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
        self.starts.clear();
        let mut line = 0;
        for (id, count) in shown {
            self.starts.push((line, id));
            line += 1;
            if self.open.contains(&id) {
                line += count as u64;
            }
        }
        self.total = line;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use dlo_core::{Delivery, Message, Position};
    use dlo_engine::store::{Budget, NewRow};

    use super::*;

    fn view(groups: &[u32]) -> (Arc<LookView>, Vec<GroupRow>) {
        let view = LookView::new(Budget::default());
        for (index, group) in groups.iter().enumerate() {
            let delivery = Delivery {
                message: Message {
                    body: Some(Bytes::from_static(b"x")),
                    ..Message::default()
                },
                position: Position::Index {
                    index: index as u64,
                },
                lock: None,
                time: None,
                delivery_count: None,
                facts: BTreeMap::new(),
            };
            let row = NewRow {
                group: *group,
                ..NewRow::default()
            };
            view.append([(&delivery, row)]);
        }
        let rows = |id: u32| GroupRow {
            id,
            label: format!("group {id}"),
            class: String::new(),
            open: 0,
            count: 0,
            first: 0,
        };
        (view, vec![rows(0), rows(1)])
    }

    fn lines(lines: &Lines) -> Vec<Line> {
        (0..lines.total())
            .filter_map(|line| lines.at(line))
            .collect()
    }

    #[test]
    fn groups_come_largest_first_and_unfold() {
        let (view, groups) = view(&[0, 1, 1]);
        let mut table = Lines::default();
        assert!(!table.update(&view, None, &groups));
        assert_eq!(lines(&table), [Line::Group(1), Line::Group(0)]);
        table.fold(1);
        table.update(&view, None, &groups);
        assert_eq!(
            lines(&table),
            [
                Line::Group(1),
                Line::Message(1),
                Line::Message(2),
                Line::Group(0)
            ]
        );
        assert_eq!(table.line_of(2, &view), Some(2));
        assert_eq!(table.line_of(0, &view), None);
    }

    #[test]
    fn a_filter_shows_only_its_rows_with_and_without_groups() {
        let (view, groups) = view(&[0, 1, 1]);
        let filter: Arc<[u32]> = Arc::from([0, 2]);
        let mut table = Lines::default();
        table.update(&view, Some(&filter), &groups);
        assert_eq!((table.group(1), table.shown(&view)), (&[2][..], 2));
        table.grouping = Grouping::None;
        table.update(&view, Some(&filter), &groups);
        assert_eq!(lines(&table), [Line::Message(0), Line::Message(2)]);
    }

    #[test]
    fn rows_that_arrive_later_join_their_group() {
        let (view, groups) = view(&[0]);
        let mut table = Lines::default();
        table.open.insert(0);
        table.update(&view, None, &groups);
        assert_eq!(table.total(), 2);
        let delivery = view.delivery(0).expect("a row");
        view.append([(&delivery, NewRow::default())]);
        table.update(&view, None, &groups);
        assert_eq!(table.total(), 3);
    }

    #[test]
    fn a_row_set_counts_what_it_holds() {
        let mut set = RowSet::default();
        set.extend([3, 64, 64, 1_000_000]);
        set.remove(3);
        set.remove(4);
        assert_eq!(set.len(), 2);
        assert_eq!(set.iter().collect::<Vec<_>>(), [64, 1_000_000]);
    }
}
