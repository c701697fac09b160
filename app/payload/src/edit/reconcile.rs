//! A time is shown as text beside its raw number, and a person may edit either: the one that
//! changed counts.

use crate::document::Document;

/// Replaces edited times by the half that was edited.
pub(super) fn times(old: &Document, new: &Document) -> Result<Document, String> {
    if old == new {
        return Ok(new.clone());
    }
    Ok(match (old, new) {
        (Document::Time(before), Document::Time(after)) => {
            match (before.text == after.text, before.raw == after.raw) {
                (true, false) => Document::Number(after.raw.clone()),
                (false, true) => Document::text(after.text.as_str()),
                _ => new.clone(),
            }
        }
        (Document::List(old), Document::List(items)) => {
            let items = items.iter().enumerate().map(|(at, item)| {
                old.get(at)
                    .map_or_else(|| Ok(item.clone()), |old| times(old, item))
            });
            Document::List(items.collect::<Result<_, _>>()?)
        }
        (_, Document::Map(entries)) => {
            let entries = entries.iter().map(|(key, value)| {
                Ok((
                    key.clone(),
                    old.get(key)
                        .map_or_else(|| Ok(value.clone()), |old| times(old, value))?,
                ))
            });
            Document::Map(entries.collect::<Result<_, String>>()?)
        }
        _ => new.clone(),
    })
}
