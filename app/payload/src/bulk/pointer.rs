//! Setting and removing by JSON Pointer (RFC 6901).

use crate::document::Document;
use crate::document::path;

/// Sets a value: an object's key is set or added, a list's item replaced, `-` appends.
pub(super) fn set(document: &mut Document, pointer: &str, value: Document) -> Result<(), String> {
    let parts = path::parse(pointer)?;
    let Some((last, above)) = parts.split_last() else {
        *document = value;
        return Ok(());
    };
    match parent(document, above, pointer)? {
        Document::List(items) if last == "-" => items.push(value),
        Document::List(items) => {
            let count = items.len();
            let item = path::index(last).and_then(|at| items.get_mut(at));
            *item.ok_or_else(|| format!("{pointer}: the list has {count} items"))? = value;
        }
        object => set_key(object, last, value, pointer)?,
    }
    Ok(())
}

/// Adds a value as JSON Patch means it: in a list it is put in before the item at its index.
pub(super) fn add(document: &mut Document, pointer: &str, value: Document) -> Result<(), String> {
    let parts = path::parse(pointer)?;
    let Some((last, above)) = parts.split_last() else {
        *document = value;
        return Ok(());
    };
    match parent(document, above, pointer)? {
        Document::List(items) if last == "-" => items.push(value),
        Document::List(items) => {
            let at = path::index(last)
                .filter(|at| *at <= items.len())
                .ok_or_else(|| format!("{pointer}: the list has {} items", items.len()))?;
            items.insert(at, value);
        }
        object => set_key(object, last, value, pointer)?,
    }
    Ok(())
}

/// Removes a value and gives it. Of a repeated key all entries go.
pub(super) fn remove(document: &mut Document, pointer: &str) -> Result<Document, String> {
    let parts = path::parse(pointer)?;
    let absent = || format!("{pointer} is not there");
    let (last, above) = parts
        .split_last()
        .ok_or("the whole value cannot be removed")?;
    match parent(document, above, pointer)? {
        Document::List(items) => {
            let at = path::index(last)
                .filter(|at| *at < items.len())
                .ok_or_else(absent)?;
            Ok(items.remove(at))
        }
        Document::Map(entries) => {
            let at = entries
                .iter()
                .position(|(key, _)| key == last)
                .ok_or_else(absent)?;
            Ok(entries.remove(at).1)
        }
        object @ Document::Pairs(_) => {
            let removed = object.get(last).cloned().ok_or_else(absent)?;
            if let Document::Pairs(entries) = std::mem::replace(object, Document::Null) {
                *object = Document::pairs(
                    entries
                        .into_iter()
                        .filter(|(key, _)| key.as_text() != Some(last))
                        .collect(),
                );
            }
            Ok(removed)
        }
        _ => Err(absent()),
    }
}

fn parent<'a>(
    document: &'a mut Document,
    above: &[String],
    pointer: &str,
) -> Result<&'a mut Document, String> {
    let mut at = document;
    for part in above {
        let next = match at {
            Document::List(items) => path::index(part).and_then(|index| items.get_mut(index)),
            Document::Map(entries) => entries
                .iter_mut()
                .find(|(key, _)| key == part)
                .map(|(_, value)| value),
            Document::Pairs(entries) => entries
                .iter_mut()
                .rev()
                .find(|(key, _)| key.as_text() == Some(part))
                .map(|(_, value)| value),
            _ => None,
        };
        at = next.ok_or_else(|| format!("{pointer}: there is no \"{part}\" on the way"))?;
    }
    Ok(at)
}

fn set_key(object: &mut Document, key: &str, value: Document, pointer: &str) -> Result<(), String> {
    match object {
        Document::Map(entries) => match entries.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => entries.push((key.to_owned(), value)),
        },
        // Readers of JSON take the last of a repeated key, so that is the one to set.
        Document::Pairs(entries) => match entries
            .iter_mut()
            .rev()
            .find(|(name, _)| name.as_text() == Some(key))
        {
            Some((_, old)) => *old = value,
            None => entries.push((Document::text(key), value)),
        },
        other => {
            return Err(format!(
                "{pointer}: above it is {}, not an object or a list",
                other.kind()
            ));
        }
    }
    Ok(())
}
