//! Writing an edited document over the bytes it was read from, so that values not edited keep
//! theirs. Shared by MessagePack and CBOR, which only differ in how heads and values are written.

use std::ops::Range;

use crate::document::Document;
use crate::limits::{Budget, Limits};
use crate::report::Refusal;

/// What a format must know for that.
pub(crate) trait Codec {
    /// Reads one value that begins at `at`; gives it with the place after it.
    fn value(bytes: &[u8], at: usize, budget: &mut Budget) -> Result<(Document, usize), Refusal>;
    /// Reads the head of a list or an object: the place of the first child, and the count of items
    /// or entries if the head tells it. `None` when there is no container.
    fn head(bytes: &[u8]) -> Option<(usize, Option<usize>)>;
    fn write_list_head(count: usize, out: &mut Vec<u8>);
    fn write_map_head(count: usize, out: &mut Vec<u8>);
    /// Writes a value anew.
    fn write(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal>;
}

/// Writes `new` over the bytes that `old` was read from.
pub(crate) fn encode<C: Codec>(
    bytes: &[u8],
    old: &Document,
    new: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    if old == new {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    match (entries(old), entries(new)) {
        (Some(old), Some(new)) => merge::<C>(bytes, &old, &new, out),
        _ => C::write(new, out),
    }
}

/// The children of a container: with keys for an object, without for a list.
enum Entries<'a> {
    List(&'a [Document]),
    Object(Vec<(Document, &'a Document)>),
}

fn entries(document: &Document) -> Option<Entries<'_>> {
    match document {
        Document::List(items) => Some(Entries::List(items)),
        Document::Map(entries) => Some(Entries::Object(
            entries
                .iter()
                .map(|(key, value)| (Document::text(key), value))
                .collect(),
        )),
        Document::Pairs(entries) => Some(Entries::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), value))
                .collect(),
        )),
        _ => None,
    }
}

fn merge<C: Codec>(
    bytes: &[u8],
    old: &Entries<'_>,
    new: &Entries<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match (old, new) {
        (Entries::List(old), Entries::List(new)) => {
            let spans = spans::<C>(bytes, old.len())?;
            C::write_list_head(new.len(), out);
            for (at, item) in new.iter().enumerate() {
                match (old.get(at), spans.get(at)) {
                    (Some(old), Some(span)) => encode::<C>(&bytes[span.clone()], old, item, out)?,
                    _ => C::write(item, out)?,
                }
            }
            Ok(())
        }
        (Entries::Object(old), Entries::Object(new)) => {
            let spans = spans::<C>(bytes, old.len() * 2)?;
            C::write_map_head(new.len(), out);
            merge_object::<C>(bytes, &spans, old, new, out)
        }
        (_, Entries::List(new)) => {
            C::write_list_head(new.len(), out);
            new.iter().try_for_each(|item| C::write(item, out))
        }
        (_, Entries::Object(new)) => {
            C::write_map_head(new.len(), out);
            new.iter()
                .try_for_each(|(key, value)| C::write(key, out).and_then(|()| C::write(value, out)))
        }
    }
}

fn merge_object<C: Codec>(
    bytes: &[u8],
    spans: &[Range<usize>],
    old: &[(Document, &Document)],
    new: &[(Document, &Document)],
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let mut used = vec![false; old.len()];
    for (key, value) in new {
        let place = (0..old.len()).find(|at| !used[*at] && old[*at].0 == *key);
        match place.and_then(|at| Some((at, spans.get(2 * at)?, spans.get(2 * at + 1)?))) {
            Some((at, key_span, value_span)) => {
                used[at] = true;
                out.extend_from_slice(&bytes[key_span.clone()]);
                encode::<C>(&bytes[value_span.clone()], old[at].1, value, out)?;
            }
            None => {
                C::write(key, out)?;
                C::write(value, out)?;
            }
        }
    }
    Ok(())
}

/// The places of the first `count` values inside a container.
fn spans<C: Codec>(bytes: &[u8], count: usize) -> Result<Vec<Range<usize>>, Refusal> {
    let mut budget = Budget::new(&Limits {
        nodes: usize::MAX,
        ..Limits::default()
    });
    let Some((mut at, _)) = C::head(bytes) else {
        return Ok(Vec::new());
    };
    let mut spans = Vec::with_capacity(count);
    for _ in 0..count {
        let (_, after) = C::value(bytes, at, &mut budget)?;
        spans.push(at..after);
        at = after;
    }
    Ok(spans)
}

/// A place in bytes from which a decoder reads; every read is checked.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Refusal> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.cut())?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let end = self
            .at
            .checked_add(count)
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| {
            Refusal::new(format!(
                "{count} bytes are claimed at byte {}, but {} are left",
                self.at,
                self.bytes.len() - self.at
            ))
        })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let chunk = self.bytes[self.at..]
            .first_chunk::<N>()
            .copied()
            .ok_or_else(|| self.cut())?;
        self.at += N;
        Ok(chunk)
    }

    pub fn text(&mut self, count: usize) -> Result<&'a str, Refusal> {
        let start = self.at;
        let bytes = self.take(count)?;
        std::str::from_utf8(bytes)
            .map_err(|_| Refusal::new(format!("the text at byte {start} is not UTF-8")))
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn cut(&self) -> Refusal {
        Refusal::new(format!(
            "it ends at byte {} in the middle of a value",
            self.bytes.len()
        ))
    }

    /// Checks that nothing is left.
    pub fn end(&self) -> Result<(), Refusal> {
        match self.left() {
            0 => Ok(()),
            left => Err(Refusal::new(format!(
                "{left} bytes are left over after byte {}",
                self.at
            ))),
        }
    }
}
