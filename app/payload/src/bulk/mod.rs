//! One change made to many payloads, previewed on each: pointers, patches, text, programs.
//!
//! The operations are pure over documents; [`edit`] takes one through the layers of a payload. A
//! change that does not apply to a payload says why, so that a preview can list those apart.

mod jq;
mod patch;
mod pointer;

use crate::diff::{self, Change};
use crate::document::Document;
use crate::edit::{self, Edited};
use crate::formats::json;
use crate::report::Decoded;

pub use jq::Program;
pub use patch::Patch;

/// A change to a document.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkEdit {
    /// Sets the value at a JSON Pointer: of an object's key, of a list's item, `-` to append. What
    /// is above it must be there.
    Set { pointer: String, value: Document },
    /// Removes the value at a JSON Pointer.
    Remove { pointer: String },
    /// An RFC 6902 JSON Patch: all of it or nothing.
    Patch(Patch),
    /// Replaces a text wherever it stands in text values; keys stay.
    Replace { find: String, with: String },
    /// A jq program that gives exactly one value.
    Jq(Program),
}

impl BulkEdit {
    /// Sets the value at a pointer to one written as JSON, in the form that documents are shown in
    /// (`{"decimal": "12.30"}`, `{"bytes": "AP8="}`). The error says what is wrong.
    pub fn set(pointer: &str, json: &str) -> Result<Self, String> {
        crate::document::path::parse(pointer)?;
        Ok(Self::Set {
            pointer: pointer.to_owned(),
            value: value(json)?,
        })
    }

    /// Removes the value at a pointer.
    pub fn remove(pointer: &str) -> Result<Self, String> {
        if crate::document::path::parse(pointer)?.is_empty() {
            return Err("the whole value cannot be removed; set it instead".into());
        }
        Ok(Self::Remove {
            pointer: pointer.to_owned(),
        })
    }

    /// A JSON Patch from its text.
    pub fn patch(json: &str) -> Result<Self, String> {
        Patch::parse(json).map(Self::Patch)
    }

    /// Replaces text; an empty text to find is an error.
    pub fn replace(find: &str, with: &str) -> Result<Self, String> {
        if find.is_empty() {
            return Err("there is nothing to find".into());
        }
        Ok(Self::Replace {
            find: find.to_owned(),
            with: with.to_owned(),
        })
    }

    /// A jq program from its text.
    pub fn jq(program: &str) -> Result<Self, String> {
        Program::parse(program).map(Self::Jq)
    }

    /// The changed document. It may equal the old one, where there is nothing to change; the error
    /// says why the change does not apply.
    pub fn apply(&self, document: &Document) -> Result<Document, String> {
        let mut changed = document.clone();
        match self {
            Self::Set { pointer, value } => pointer::set(&mut changed, pointer, value.clone())?,
            Self::Remove { pointer } => drop(pointer::remove(&mut changed, pointer)?),
            Self::Patch(patch) => patch.apply(&mut changed)?,
            Self::Replace { find, with } => replace(&mut changed, find, with),
            Self::Jq(program) => return program.run(document),
        }
        Ok(changed)
    }
}

/// What a change does to one payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    pub edited: Edited,
    /// What changed in meaning; empty when the payload stays as it is.
    pub changes: Vec<Change>,
}

/// Makes a change inside the layers of a payload. The error says why it does not apply.
pub fn edit(decoded: &Decoded, change: &BulkEdit) -> Result<Preview, String> {
    if !decoded.needs.is_empty() {
        return Err(format!("its schema is missing: needs {}", decoded.needs[0]));
    }
    let changed = change.apply(&decoded.document)?;
    let edited = edit::encode(decoded, &changed).map_err(|error| error.to_string())?;
    Ok(Preview {
        edited,
        changes: diff::documents(&decoded.document, &changed),
    })
}

/// A value as a person types it: JSON in the form that documents are shown in.
fn value(text: &str) -> Result<Document, String> {
    let json = json::parse(text).map_err(|refusal| {
        format!("\"{text}\" is no JSON value: {refusal}; text needs double quotes")
    })?;
    Ok(Document::from_json(&json.to_json()))
}

fn replace(document: &mut Document, find: &str, with: &str) {
    match document {
        Document::Text(text) if text.contains(find) => *text = text.replace(find, with),
        Document::List(items) => items.iter_mut().for_each(|item| replace(item, find, with)),
        Document::Map(entries) => entries
            .iter_mut()
            .for_each(|(_, value)| replace(value, find, with)),
        Document::Pairs(entries) => entries
            .iter_mut()
            .for_each(|(_, value)| replace(value, find, with)),
        Document::Tagged(tagged) => replace(&mut tagged.value, find, with),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
