//! JSON Patch (RFC 6902): operations in order, all of them or none.

use serde_json::Value;

use crate::document::{Document, path};
use crate::formats::json;

use super::pointer;

/// A list of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch(Vec<Operation>);

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    Add { path: String, value: Document },
    Remove { path: String },
    Replace { path: String, value: Document },
    Move { from: String, path: String },
    Copy { from: String, path: String },
    Test { path: String, value: Document },
}

impl Patch {
    /// Reads a patch from its text. The error says which operation is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let json = json::parse(text)
            .map_err(|refusal| format!("the patch is no JSON: {refusal}"))?
            .to_json();
        let list = json
            .as_array()
            .ok_or("a JSON Patch is a list of operations")?;
        let operations = list.iter().enumerate().map(|(at, value)| {
            operation(value).map_err(|error| format!("operation {}: {error}", at + 1))
        });
        operations.collect::<Result<_, _>>().map(Self)
    }

    /// Carries out all operations on a document; the error says which one does not apply.
    pub(super) fn apply(&self, document: &mut Document) -> Result<(), String> {
        for (at, operation) in self.0.iter().enumerate() {
            operation
                .apply(document)
                .map_err(|error| format!("operation {}: {error}", at + 1))?;
        }
        Ok(())
    }
}

impl Operation {
    fn apply(&self, document: &mut Document) -> Result<(), String> {
        match self {
            Self::Add { path, value } => pointer::add(document, path, value.clone()),
            Self::Remove { path } => pointer::remove(document, path).map(drop),
            Self::Replace { path, value } => {
                at(document, path)?;
                pointer::set(document, path, value.clone())
            }
            Self::Move { from, path } => {
                if path.starts_with(&format!("{from}/")) {
                    return Err(format!("{from} cannot be moved into itself"));
                }
                let value = pointer::remove(document, from)?;
                pointer::add(document, path, value)
            }
            Self::Copy { from, path } => {
                let value = at(document, from)?.clone();
                pointer::add(document, path, value)
            }
            Self::Test { path, value } => match at(document, path)? {
                found if same(found, value) => Ok(()),
                found => Err(format!(
                    "the test failed: {path} is {}, not {}",
                    found.preview(60),
                    value.preview(60)
                )),
            },
        }
    }
}

fn at<'a>(document: &'a Document, pointer: &str) -> Result<&'a Document, String> {
    path::find(document, pointer).ok_or_else(|| format!("{pointer} is not there"))
}

/// Numbers are the same if their value is; order of keys does not matter (RFC 6902 §4.6).
fn same(one: &Document, two: &Document) -> bool {
    match (one, two) {
        (Document::Number(one), Document::Number(two)) => {
            one == two
                || (one.as_i128().is_some() && one.as_i128() == two.as_i128())
                || (!one.is_int() || !two.is_int()) && one.as_f64() == two.as_f64()
        }
        (Document::List(one), Document::List(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Document::Map(one), Document::Map(entries)) => {
            one.len() == entries.len()
                && one
                    .iter()
                    .all(|(key, value)| two.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == two,
    }
}

fn operation(value: &Value) -> Result<Operation, String> {
    let text = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| format!("\"{name}\" is missing"))
    };
    let pointer =
        |name: &str| text(name).and_then(|pointer| path::parse(&pointer).map(|_| pointer));
    let document = || {
        value
            .get("value")
            .map(Document::from_json)
            .ok_or_else(|| "\"value\" is missing".to_owned())
    };
    let path = pointer("path")?;
    Ok(match text("op")?.as_str() {
        "add" => Operation::Add {
            path,
            value: document()?,
        },
        "remove" => Operation::Remove { path },
        "replace" => Operation::Replace {
            path,
            value: document()?,
        },
        "move" => Operation::Move {
            from: pointer("from")?,
            path,
        },
        "copy" => Operation::Copy {
            from: pointer("from")?,
            path,
        },
        "test" => Operation::Test {
            path,
            value: document()?,
        },
        other => return Err(format!("there is no operation \"{other}\"")),
    })
}
