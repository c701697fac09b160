//! The difference in meaning: each place whose value changed, with its JSON Pointer.

use std::fmt;

use crate::document::Document;
use crate::document::path::Path;

/// One place that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// A JSON Pointer; empty for the whole value.
    pub path: String,
    /// Not there before: none.
    pub before: Option<Document>,
    /// Not there any more: none.
    pub after: Option<Document>,
}

impl Change {
    /// Whether both values are the same number or moment, only written differently (1 and 1.0).
    pub fn is_spelling(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(Document::Number(before)), Some(Document::Number(after))) => {
                before.as_f64() == after.as_f64() && before.is_int() != after.is_int()
            }
            (Some(Document::Number(before)), Some(Document::Time(after))) => *before == after.raw,
            (Some(Document::Text(before)), Some(Document::Time(after))) => *before == after.text,
            (Some(Document::Time(before)), Some(Document::Time(after))) => {
                before.raw == after.raw || before.text == after.text
            }
            (Some(Document::Number(before)), Some(Document::Decimal(after))) => {
                before.to_string() == *after
            }
            (Some(Document::Decimal(before)), Some(Document::Decimal(after))) => {
                before.trim_end_matches('0') == after.trim_end_matches('0')
            }
            _ => false,
        }
    }
}

/// `/currency: added "EUR"`, `/n: 1 → 2`, `/old: removed "x"`.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "(whole value)"
        } else {
            &self.path
        };
        match (&self.before, &self.after) {
            (None, Some(after)) => write!(out, "{path}: added {}", after.preview(200)),
            (Some(before), None) => write!(out, "{path}: removed {}", before.preview(200)),
            (Some(before), Some(after)) => write!(
                out,
                "{path}: {} → {}",
                before.preview(200),
                after.preview(200)
            ),
            (None, None) => write!(out, "{path}: unchanged"),
        }
    }
}

/// All places that differ, in the order of the second document; removed ones after those around.
pub fn documents(before: &Document, after: &Document) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(before, after, &Path::default(), &mut changes);
    changes
}

fn compare(before: &Document, after: &Document, path: &Path, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Document::Map(old), Document::Map(new)) => objects(old, new, path, changes),
        (Document::List(old), Document::List(new)) => lists(old, new, path, changes),
        (Document::Pairs(old), Document::Pairs(new))
            if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.0 == new.0) =>
        {
            for ((key, old), (_, new)) in old.iter().zip(new) {
                let name = key.as_text().map_or_else(|| key.preview(60), str::to_owned);
                compare(old, new, &path.key(name), changes);
            }
        }
        _ => changes.push(Change {
            path: path.to_string(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn objects(
    old: &[(String, Document)],
    new: &[(String, Document)],
    path: &Path,
    changes: &mut Vec<Change>,
) {
    for (key, after) in new {
        match old.iter().find(|(name, _)| name == key) {
            Some((_, before)) => compare(before, after, &path.key(key), changes),
            None => changes.push(Change {
                path: path.key(key).to_string(),
                before: None,
                after: Some(after.clone()),
            }),
        }
    }
    for (key, before) in old
        .iter()
        .filter(|(key, _)| !new.iter().any(|(name, _)| name == key))
    {
        changes.push(Change {
            path: path.key(key).to_string(),
            before: Some(before.clone()),
            after: None,
        });
    }
}

/// Lists are matched from both ends, so that one item put in or taken out is one change.
fn lists(old: &[Document], new: &[Document], path: &Path, changes: &mut Vec<Change>) {
    let front = old
        .iter()
        .zip(new)
        .take_while(|(before, after)| before == after)
        .count();
    let most = old.len().min(new.len()) - front;
    let back = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(before, after)| before == after)
        .count();
    let (old, new) = (&old[front..old.len() - back], &new[front..new.len() - back]);
    for at in 0..old.len().max(new.len()) {
        let here = path.index(front + at);
        match (old.get(at), new.get(at)) {
            (Some(before), Some(after)) => compare(before, after, &here, changes),
            (before, after) => changes.push(Change {
                path: here.to_string(),
                before: before.cloned(),
                after: after.cloned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_have_paths() {
        let before =
            Document::from_json(&json!({"id": 1, "old": "x", "list": [1, 2, 3], "same": {"a": 1}}));
        let after = Document::from_json(
            &json!({"id": 2, "list": [1, 3], "same": {"a": 1}, "currency": "EUR"}),
        );
        let changes: Vec<String> = documents(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            changes,
            [
                "/id: 1 → 2",
                "/list/1: removed 2",
                "/currency: added \"EUR\"",
                "/old: removed \"x\""
            ]
        );
        assert!(documents(&before, &before).is_empty());
        assert!(documents(&Document::Float(f64::NAN), &Document::Float(f64::NAN)).is_empty());
    }
}
