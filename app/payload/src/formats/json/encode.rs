//! Writing an edited document so that everything not edited keeps its bytes: white space, escapes,
//! the spelling of numbers.

use crate::document::Document;
use crate::limits::{Budget, Limits};
use crate::report::Refusal;

use super::Reader;

/// Writes `new` over the text that `old` was read from.
pub fn encode(text: &str, old: &Document, new: &Document) -> Result<String, Refusal> {
    let mut out = String::with_capacity(text.len() + 64);
    let start = text.len() - text.trim_ascii_start().len();
    let end = text.trim_ascii_end().len();
    out.push_str(&text[..start]);
    merge(&text[start..end.max(start)], old, new, &mut out)?;
    out.push_str(&text[end.max(start)..]);
    Ok(out)
}

/// Writes an edited list over lines of JSON; lines that are the same keep their bytes.
pub fn encode_lines(text: &str, old: &Document, new: &Document) -> Result<String, Refusal> {
    let (Document::List(old), Document::List(new)) = (old, new) else {
        return Err(Refusal::new("JSON lines are a list; this is none"));
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let mut out = String::with_capacity(text.len() + 64);
    for (at, item) in new.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        match (lines.get(at), old.get(at)) {
            (Some(line), Some(old)) => out.push_str(&encode(line, old, item)?),
            _ => write(item, &mut out)?,
        }
    }
    if text.ends_with('\n') {
        out.push('\n');
    }
    Ok(out)
}

/// Writes a document as compact JSON text, the way JSON itself has it: no marks for bytes.
pub fn write(document: &Document, out: &mut String) -> Result<(), Refusal> {
    match document {
        Document::Null => out.push_str("null"),
        Document::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Document::Number(number) => number.write(out),
        Document::Text(text) => write_text(text, out),
        Document::Utf16(units) => write_units(units, out),
        Document::List(items) => write_list(items, out)?,
        Document::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (Key::Text(key), value));
            write_object(entries, out)?;
        }
        Document::Pairs(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| Ok((Key::of(key)?, value)))
                .collect::<Result<_, Refusal>>()?;
            write_object(entries.into_iter(), out)?;
        }
        Document::Decimal(text) => write_text(text, out),
        Document::Time(time) => write_text(&time.text, out),
        Document::Bytes(_) | Document::Float(_) | Document::Tagged(_) => {
            return Err(Refusal::new(format!(
                "JSON has no word for {}",
                document.kind()
            )));
        }
    }
    Ok(())
}

enum Key<'a> {
    Text(&'a str),
    Units(&'a [u16]),
}

impl<'a> Key<'a> {
    fn of(key: &'a Document) -> Result<Self, Refusal> {
        match key {
            Document::Text(text) => Ok(Self::Text(text)),
            Document::Utf16(units) => Ok(Self::Units(units)),
            other => Err(Refusal::new(format!(
                "a key of JSON must be text, not {}",
                other.kind()
            ))),
        }
    }
}

/// Old and new side by side: what is equal is copied, containers of the same shape go deeper, the
/// rest is written anew.
fn merge(text: &str, old: &Document, new: &Document, out: &mut String) -> Result<(), Refusal> {
    if old == new {
        out.push_str(text);
        return Ok(());
    }
    let pairs = same_shape(old, new);
    let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else {
        return reshape(text, old, new, out);
    };
    let spans = Reader::new(text).children(&mut Budget::new(&Limits {
        nodes: usize::MAX,
        ..Limits::default()
    }))?;
    if spans.len() != pairs.len() {
        return write(new, out);
    }
    let mut copied = 0;
    for (span, (old, new)) in spans.into_iter().zip(pairs) {
        out.push_str(&text[copied..span.start]);
        copied = span.end;
        merge(&text[span], old, new, out)?;
    }
    out.push_str(&text[copied..]);
    Ok(())
}

/// The children side by side, if both are containers with the same keys or the same length.
fn same_shape<'a>(
    old: &'a Document,
    new: &'a Document,
) -> Option<Vec<(&'a Document, &'a Document)>> {
    match (old, new) {
        (Document::List(old), Document::List(new)) if old.len() == new.len() => {
            Some(old.iter().zip(new).collect())
        }
        (Document::Map(old), Document::Map(new))
            if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.0 == new.0) =>
        {
            Some(
                old.iter()
                    .map(|(_, value)| value)
                    .zip(new.iter().map(|(_, value)| value))
                    .collect(),
            )
        }
        (Document::Pairs(old), Document::Pairs(new))
            if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.0 == new.0) =>
        {
            Some(
                old.iter()
                    .map(|(_, value)| value)
                    .zip(new.iter().map(|(_, value)| value))
                    .collect(),
            )
        }
        _ => None,
    }
}

/// A list or an object that gained or lost children: those that stay keep their bytes, in the
/// layout of the first child.
fn reshape(text: &str, old: &Document, new: &Document, out: &mut String) -> Result<(), Refusal> {
    let kept = match (old, new) {
        (Document::List(old), Document::List(new)) if !old.is_empty() && !new.is_empty() => {
            List { old, new }.children()
        }
        (Document::Map(old), Document::Map(new)) if !old.is_empty() && !new.is_empty() => {
            object_children(old, new)
        }
        _ => return write(new, out),
    };
    let spans = Reader::new(text).children(&mut Budget::new(&Limits {
        nodes: usize::MAX,
        ..Limits::default()
    }))?;
    let style = Style::of(text, old, &spans);
    out.push_str(style.open);
    for (at, child) in kept.into_iter().enumerate() {
        if at > 0 {
            out.push_str(&style.between);
        }
        if let Some(key) = child.key {
            write_text(key, out);
            out.push_str(style.colon);
        }
        match child
            .old
            .and_then(|(at, old)| spans.get(at).map(|span| (span, old)))
        {
            Some((span, old)) => merge(&text[span.clone()], old, child.new, out)?,
            None => write(child.new, out)?,
        }
    }
    out.push_str(style.close);
    Ok(())
}

struct Child<'a> {
    key: Option<&'a str>,
    old: Option<(usize, &'a Document)>,
    new: &'a Document,
}

struct List<'a> {
    old: &'a [Document],
    new: &'a [Document],
}

impl<'a> List<'a> {
    /// Items are matched from both ends, which is right for one insertion or one removal.
    fn children(&self) -> Vec<Child<'a>> {
        let front = self
            .old
            .iter()
            .zip(self.new)
            .take_while(|(old, new)| old == new)
            .count();
        let back_limit = self.old.len().min(self.new.len()) - front;
        let back = self
            .old
            .iter()
            .rev()
            .zip(self.new.iter().rev())
            .take(back_limit)
            .take_while(|(old, new)| old == new)
            .count();
        let old_at = |at: usize| {
            if at < front {
                Some(at)
            } else if at + back >= self.new.len() {
                Some(at + self.old.len() - self.new.len())
            } else {
                None
            }
        };
        let children = self.new.iter().enumerate().map(|(at, new)| Child {
            key: None,
            old: old_at(at).and_then(|at| Some((at, self.old.get(at)?))),
            new,
        });
        children.collect()
    }
}

fn object_children<'a>(
    old: &'a [(String, Document)],
    new: &'a [(String, Document)],
) -> Vec<Child<'a>> {
    let children = new.iter().map(|(key, new)| {
        let old = old
            .iter()
            .enumerate()
            .find(|(_, (name, _))| name == key)
            .map(|(at, (_, value))| (at, value));
        Child {
            key: Some(key),
            old,
            new,
        }
    });
    children.collect()
}

/// How a container is laid out, learnt from its first children.
struct Style<'a> {
    open: &'a str,
    between: String,
    colon: &'a str,
    close: &'a str,
}

impl<'a> Style<'a> {
    fn of(text: &'a str, old: &Document, spans: &[std::ops::Range<usize>]) -> Self {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return Self {
                open: "",
                between: ",".to_owned(),
                colon: ":",
                close: "",
            };
        };
        let before = &text[..first.start];
        let is_object = matches!(old, Document::Map(_));
        let key_start = if is_object {
            before.find('"').unwrap_or(before.len())
        } else {
            before.len()
        };
        let colon_start = if is_object {
            before.rfind('"').map_or(before.len(), |at| at + 1)
        } else {
            before.len()
        };
        let open = &before[..key_start];
        Self {
            open,
            between: between(text, is_object, spans)
                .unwrap_or_else(|| format!(",{}", open.get(1..).unwrap_or(""))),
            colon: &before[colon_start..],
            close: &text[last.end..],
        }
    }
}

/// What stands between the first two children, up to the key of the second.
fn between(text: &str, is_object: bool, spans: &[std::ops::Range<usize>]) -> Option<String> {
    let gap = &text[spans.first()?.end..spans.get(1)?.start];
    let end = if is_object { gap.find('"')? } else { gap.len() };
    Some(gap[..end].to_owned())
}

fn write_list(items: &[Document], out: &mut String) -> Result<(), Refusal> {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_object<'a>(
    entries: impl Iterator<Item = (Key<'a>, &'a Document)>,
    out: &mut String,
) -> Result<(), Refusal> {
    out.push('{');
    for (at, (key, value)) in entries.enumerate() {
        if at > 0 {
            out.push(',');
        }
        match key {
            Key::Text(text) => write_text(text, out),
            Key::Units(units) => write_units(units, out),
        }
        out.push(':');
        write(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::String(text.to_owned()).to_string());
}

fn write_units(units: &[u16], out: &mut String) {
    out.push('"');
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(letter) => {
                let quoted = serde_json::Value::String(letter.to_string()).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
            Err(lone) => out.push_str(&format!("\\u{:04x}", lone.unpaired_surrogate())),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn check(text: &str, edit: impl FnOnce(&mut serde_json::Value), expected: &str) {
        let old = parse(text).unwrap();
        let mut json = old.to_json();
        edit(&mut json);
        let new = Document::from_json(&json);
        assert_eq!(encode(text, &old, &new).unwrap(), expected);
        assert_eq!(
            parse(expected).unwrap(),
            new,
            "the text says what was meant"
        );
    }

    #[test]
    fn only_the_edited_value_changes() {
        let text = "{ \"a\" : 1.0,\n  \"b\":\"\\u00e4\", \"c\": [1, 2,  3] }\n";
        check(
            text,
            |json| json["a"] = 2.into(),
            "{ \"a\" : 2,\n  \"b\":\"\\u00e4\", \"c\": [1, 2,  3] }\n",
        );
        check(
            text,
            |json| json["c"][1] = "x".into(),
            "{ \"a\" : 1.0,\n  \"b\":\"\\u00e4\", \"c\": [1, \"x\",  3] }\n",
        );
        check(text, |_| {}, text);
    }

    #[test]
    fn added_and_removed_children_follow_the_layout() {
        let text = "{\n  \"a\": 1.50,\n  \"b\": [1.0, 2.0]\n}";
        check(
            text,
            |json| json["currency"] = "EUR".into(),
            "{\n  \"a\": 1.50,\n  \"b\": [1.0, 2.0],\n  \"currency\": \"EUR\"\n}",
        );
        check(
            text,
            |json| drop(json.as_object_mut().unwrap().shift_remove("a")),
            "{\n  \"b\": [1.0, 2.0]\n}",
        );
        check(
            text,
            |json| drop(json["b"].as_array_mut().unwrap().remove(0)),
            "{\n  \"a\": 1.50,\n  \"b\": [2.0]\n}",
        );
        check(
            text,
            |json| json["b"].as_array_mut().unwrap().clear(),
            "{\n  \"a\": 1.50,\n  \"b\": []\n}",
        );
    }

    #[test]
    fn repeated_keys_and_lone_surrogates_survive_an_edit_beside_them() {
        let text = r#"{"a": 1, "a": 2, "s": "\ud800"}"#;
        let old = parse(text).unwrap();
        let Document::Pairs(mut pairs) = old.clone() else {
            panic!("pairs")
        };
        pairs[0].1 = Document::int(9);
        assert_eq!(
            encode(text, &old, &Document::Pairs(pairs)).unwrap(),
            r#"{"a": 9, "a": 2, "s": "\ud800"}"#
        );
    }

    #[test]
    fn lines_keep_theirs() {
        let text = "{\"a\": 1}\n[ 2 ]\n";
        let old = super::super::decode_lines(text, &mut Budget::new(&Limits::default())).unwrap();
        let Document::List(mut items) = old.clone() else {
            panic!("list")
        };
        items[0] = Document::int(7);
        assert_eq!(
            encode_lines(text, &old, &Document::List(items)).unwrap(),
            "7\n[ 2 ]\n"
        );
    }

    #[test]
    fn what_json_lacks_is_refused() {
        assert!(write(&Document::Bytes(vec![1]), &mut String::new()).is_err());
        assert!(write(&Document::Float(f64::NAN), &mut String::new()).is_err());
    }
}
