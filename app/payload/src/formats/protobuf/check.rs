//! Whether a document can be written as a message, and what is wrong where if not.

use prost_reflect::{Kind, MessageDescriptor};

use crate::document::Document;
use crate::document::path::Path;
use crate::validate::Problem;

use super::write::{check_single, describe};

/// What keeps a document from being written as a message; none if nothing.
pub fn check(descriptor: &MessageDescriptor, document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    message(descriptor, document, &Path::default(), &mut problems);
    problems
}

fn message(
    descriptor: &MessageDescriptor,
    document: &Document,
    path: &Path,
    problems: &mut Vec<Problem>,
) {
    let Document::Map(entries) = document else {
        if let Err(text) = check_single(&Kind::Message(descriptor.clone()), document) {
            problems.push(Problem {
                path: path.to_string(),
                text,
            });
        }
        return;
    };
    for required in descriptor.fields().filter(|field| field.is_required()) {
        if document.get(required.name()).is_none() {
            problems.push(Problem {
                path: path.key(required.name()).to_string(),
                text: format!("the required field \"{}\" is missing", required.name()),
            });
        }
    }
    if descriptor.full_name().starts_with("google.protobuf.") {
        return;
    }
    for (name, value) in entries {
        let at = path.key(name);
        let field = descriptor
            .get_field_by_name(name)
            .or_else(|| descriptor.get_field_by_json_name(name));
        match (field, value) {
            (None, _) => problems.push(Problem {
                path: at.to_string(),
                text: format!("{} has no field \"{name}\"", descriptor.full_name()),
            }),
            (Some(field), Document::List(items)) if field.is_list() => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| single(&field.kind(), item, &at.index(index), problems)),
            (Some(field), _) if field.is_list() => problems.push(Problem {
                path: at.to_string(),
                text: format!("expected a list, found {}", value.kind()),
            }),
            (Some(field), Document::Map(entries)) if field.is_map() => {
                if let Kind::Message(entry) = field.kind() {
                    let kind = entry.map_entry_value_field().kind();
                    entries
                        .iter()
                        .for_each(|(key, value)| single(&kind, value, &at.key(key), problems));
                }
            }
            (Some(field), _) if field.is_map() => {}
            (Some(_), Document::Null) => {}
            (Some(field), _) => single(&field.kind(), value, &at, problems),
        }
    }
}

fn single(kind: &Kind, value: &Document, path: &Path, problems: &mut Vec<Problem>) {
    match (kind, value) {
        (Kind::Message(descriptor), Document::Map(_)) => message(descriptor, value, path, problems),
        _ => {
            if check_single(kind, value).is_err() {
                problems.push(Problem {
                    path: path.to_string(),
                    text: format!(
                        "expected {}, found {} {}",
                        describe(kind),
                        value.kind(),
                        value.preview(40)
                    ),
                });
            }
        }
    }
}
