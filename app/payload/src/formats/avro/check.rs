//! Whether a document can be written with a schema, and what is wrong where if not.

use serde_json::Value;

use crate::document::path::Path;
use crate::document::{Document, Number};
use crate::validate::Problem;

use super::schema::{AvroSchema, Field, Type, TypeId};
use super::write::{bytes, float, integer};

/// Stops after this many problems: more help nobody.
const ENOUGH: usize = 100;

pub(super) fn document(schema: &AvroSchema, document: &Document) -> Vec<Problem> {
    let mut checker = Checker {
        schema,
        problems: Vec::new(),
    };
    checker.value(schema.root, document, &Path::default());
    checker.problems
}

/// Whether a document can be written as a type.
pub(super) fn fits(schema: &AvroSchema, id: TypeId, document: &Document) -> bool {
    let mut checker = Checker {
        schema,
        problems: Vec::new(),
    };
    checker.value(id, document, &Path::default());
    checker.problems.is_empty()
}

/// A default of the schema, which is JSON with its own rules: bytes are text of code points up to
/// 255, and that of a union belongs to its first branch.
pub(super) fn default_document(schema: &AvroSchema, id: TypeId, default: &Value) -> Document {
    match (schema.get(id), default) {
        (Type::Bytes(_) | Type::Fixed { .. }, Value::String(text)) => {
            Document::Bytes(text.chars().map(|letter| letter as u8).collect())
        }
        (Type::Union(branches), _) => {
            let fitting = branches.iter().find(|branch| {
                fits(
                    schema,
                    **branch,
                    &default_document(schema, **branch, default),
                )
            });
            default_document(schema, *fitting.unwrap_or(&branches[0]), default)
        }
        (Type::Record { fields, .. }, Value::Object(object)) => {
            let entries = fields.iter().filter_map(|field| {
                Some((
                    field.name.clone(),
                    default_document(
                        schema,
                        field.kind,
                        object.get(&field.name).or(field.default.as_ref())?,
                    ),
                ))
            });
            Document::Map(entries.collect())
        }
        (Type::Array(items), Value::Array(list)) => Document::List(
            list.iter()
                .map(|item| default_document(schema, *items, item))
                .collect(),
        ),
        (Type::Map(values), Value::Object(object)) => Document::Map(
            object
                .iter()
                .map(|(key, value)| (key.clone(), default_document(schema, *values, value)))
                .collect(),
        ),
        (_, Value::Number(number)) => Document::Number(Number::from_checked(number.as_str())),
        (_, other) => Document::from_json(other),
    }
}

struct Checker<'a> {
    schema: &'a AvroSchema,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn value(&mut self, id: TypeId, document: &Document, path: &Path) {
        if self.problems.len() >= ENOUGH {
            return;
        }
        let kind = self.schema.get(id);
        let good = match (kind, document) {
            (Type::Record { fields, .. }, Document::Map(_) | Document::Pairs(_)) => {
                return self.record(fields, document, path);
            }
            (Type::Array(items), Document::List(list)) => {
                return list
                    .iter()
                    .enumerate()
                    .for_each(|(at, item)| self.value(*items, item, &path.index(at)));
            }
            (Type::Map(values), Document::Map(entries)) => {
                return entries
                    .iter()
                    .for_each(|(key, item)| self.value(*values, item, &path.key(key)));
            }
            (Type::Union(branches), _) => return self.union(branches, document, path),
            (Type::Enum { symbols, .. }, Document::Text(text)) if !symbols.contains(text) => {
                return self.problem(path, format!("\"{text}\" is not {}", kind.describe()));
            }
            (Type::Null, Document::Null)
            | (Type::Boolean, Document::Bool(_))
            | (Type::String(_) | Type::Enum { .. }, Document::Text(_)) => true,
            (Type::Int(logical), _) => {
                integer(document, *logical).is_some_and(|value| i32::try_from(value).is_ok())
            }
            (Type::Long(logical), _) => integer(document, *logical).is_some(),
            (Type::Float | Type::Double, _) => float(document).is_some(),
            (Type::Bytes(logical), _) => bytes(document, *logical, None).is_some(),
            (Type::Fixed { size, logical, .. }, _) => {
                bytes(document, *logical, Some(*size)).is_some_and(|bytes| bytes.len() == *size)
            }
            _ => false,
        };
        if !good {
            self.problem(
                path,
                format!("expected {}, found {}", kind.describe(), shown(document)),
            );
        }
    }

    fn record(&mut self, fields: &[Field], document: &Document, path: &Path) {
        for field in fields {
            match (document.get(&field.name), &field.default) {
                (Some(value), _) => self.value(field.kind, value, &path.key(&field.name)),
                (None, None) => self.problem(
                    &path.key(&field.name),
                    format!(
                        "the field \"{}\" is missing and has no default ({})",
                        field.name,
                        self.schema.get(field.kind).describe()
                    ),
                ),
                (None, Some(_)) => {}
            }
        }
        if let Document::Map(entries) = document {
            for (key, _) in entries
                .iter()
                .filter(|(key, _)| fields.iter().all(|field| field.name != *key))
            {
                self.problem(&path.key(key), format!("the schema has no field \"{key}\""));
            }
        }
    }

    /// In a union of null and one type the problem is that type's own.
    fn union(&mut self, branches: &[TypeId], document: &Document, path: &Path) {
        if branches
            .iter()
            .any(|branch| fits(self.schema, *branch, document))
        {
            return;
        }
        let others: Vec<TypeId> = branches
            .iter()
            .copied()
            .filter(|branch| !matches!(self.schema.get(*branch), Type::Null))
            .collect();
        match others[..] {
            [only] if *document != Document::Null => self.value(only, document, path),
            _ => {
                let names: Vec<String> = branches
                    .iter()
                    .map(|branch| self.schema.get(*branch).describe())
                    .collect();
                self.problem(
                    path,
                    format!("{} fits none of: {}", shown(document), names.join("; ")),
                );
            }
        }
    }

    fn problem(&mut self, path: &Path, text: String) {
        self.problems.push(Problem {
            path: path.to_string(),
            text,
        });
    }
}

fn shown(document: &Document) -> String {
    match document {
        Document::Null => "null".to_owned(),
        Document::List(_) | Document::Map(_) | Document::Pairs(_) => document.kind().to_owned(),
        other => format!("{} {}", other.kind(), other.preview(60)),
    }
}
