//! Schemas as decoders need them: an id that asks, a text that answers, and a place where fetched
//! ones wait.
//!
//! It is separate from `registry`, which does the asking over the network: a decoder only looks
//! here and says which key it misses.

mod compare;
mod key;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};

use serde_json::{Value, json};

pub use compare::{Comparison, compare};
pub use key::SchemaKey;

use crate::formats::avro::AvroSchema;
use crate::formats::protobuf::ProtoSchema;
use crate::validate::JsonSchema;

/// The language of a schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaKind {
    Avro,
    Protobuf,
    Json,
}

impl fmt::Display for SchemaKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Avro => "Avro",
            Self::Protobuf => "Protobuf",
            Self::Json => "JSON Schema",
        })
    }
}

/// A schema that another one refers to: an Avro name, a Protobuf import, a JSON Schema `$ref`.
#[derive(Clone, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Reference {
    pub name: String,
    pub text: String,
}

/// A schema with where it came from. It is parsed once, when first used.
#[derive(serde::Deserialize, serde::Serialize)]
pub struct Schema {
    pub kind: SchemaKind,
    pub text: String,
    /// All schemas it refers to, directly or not, each before those that refer to it.
    #[serde(default)]
    pub references: Vec<Reference>,
    #[serde(default)]
    pub subject: Option<String>,
    #[serde(default)]
    pub version: Option<i64>,
    /// The key that was asked.
    pub key: SchemaKey,
    /// Where it came from: a registry's address without its secrets, a file's name.
    pub origin: String,
    #[serde(skip)]
    parsed: OnceLock<Result<Parsed, String>>,
}

/// A schema that was understood.
#[derive(Debug)]
pub(crate) enum Parsed {
    Avro(AvroSchema),
    Protobuf(ProtoSchema),
    Json(Box<JsonSchema>),
}

impl Schema {
    /// A schema from its text.
    pub fn new(kind: SchemaKind, text: impl Into<String>, key: SchemaKey) -> Self {
        Self {
            kind,
            text: text.into(),
            references: Vec::new(),
            subject: None,
            version: None,
            key,
            origin: String::new(),
            parsed: OnceLock::new(),
        }
    }

    /// The same with the schemas it refers to.
    pub fn with_references(mut self, references: Vec<Reference>) -> Self {
        self.references = references;
        self
    }

    /// The same with its place in a registry.
    pub fn in_subject(mut self, subject: impl Into<String>, version: i64) -> Self {
        self.subject = Some(subject.into());
        self.version = Some(version);
        self
    }

    /// The same with the name of the place it came from.
    pub fn from_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    /// A short name for a person: "orders-value v7".
    pub fn label(&self) -> String {
        match (&self.subject, self.version) {
            (Some(subject), Some(version)) => format!("{subject} v{version}"),
            (Some(subject), None) => subject.clone(),
            _ => self.key.to_string(),
        }
    }

    /// Whether the text can be understood; the error says why not.
    pub fn check(&self) -> Result<(), String> {
        self.parsed().map(|_| ())
    }

    /// The CRC-64-AVRO fingerprint, for Avro schemas that can be understood.
    pub fn fingerprint(&self) -> Option<u64> {
        match self.parsed() {
            Ok(Parsed::Avro(schema)) => Some(schema.fingerprint()),
            _ => None,
        }
    }

    /// The full names of the Protobuf messages a payload could be; none for other kinds.
    pub fn message_names(&self) -> Vec<String> {
        match self.parsed() {
            Ok(Parsed::Protobuf(schema)) => schema.message_names(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn parsed(&self) -> Result<&Parsed, String> {
        self.parsed
            .get_or_init(|| self.parse())
            .as_ref()
            .map_err(Clone::clone)
    }

    fn parse(&self) -> Result<Parsed, String> {
        let parsed = match self.kind {
            SchemaKind::Avro => AvroSchema::parse(&self.text, &self.references).map(Parsed::Avro),
            SchemaKind::Protobuf => {
                ProtoSchema::parse(&self.text, &self.references).map(Parsed::Protobuf)
            }
            SchemaKind::Json => JsonSchema::parse(&self.text, &self.references)
                .map(|schema| Parsed::Json(Box::new(schema))),
        };
        parsed.map_err(|error| {
            format!(
                "the {} schema {} cannot be read: {error}",
                self.kind,
                self.label()
            )
        })
    }

    pub(crate) fn to_json(&self, message_type: Option<&str>) -> Value {
        let mut object = json!({
            "subject": self.subject,
            "version": self.version,
            "id": self.key.to_json(),
            "kind": self.kind,
            "origin": self.origin,
        });
        if let Some(name) = message_type {
            object["message"] = name.into();
        }
        object
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Schema")
            .field("kind", &self.kind)
            .field("key", &self.key)
            .field("label", &self.label())
            .finish_non_exhaustive()
    }
}

/// The answer to a decoder that asks for a schema.
#[derive(Clone, Debug)]
pub enum Lookup {
    Found(Arc<Schema>),
    /// The registry was asked and has none; the text says who.
    Absent(String),
    /// It could not be asked or did not answer; the text says why and what to do.
    Failed(String),
    /// Nobody asked yet: the caller may fetch it and decode again.
    NotAsked,
    /// There is nobody to ask: no registry and no file is set up.
    NoRegistry,
}

/// Where a decoder looks schemas up. An answer must come at once: no I/O.
pub trait SchemaSource: Sync {
    fn find(&self, key: &SchemaKey) -> Lookup;
}

/// No registry and no schemas.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSchemas;

impl SchemaSource for NoSchemas {
    fn find(&self, _key: &SchemaKey) -> Lookup {
        Lookup::NoRegistry
    }
}

/// The schemas that were fetched, failed answers included. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    known: Arc<RwLock<HashMap<SchemaKey, Lookup>>>,
}

impl Schemas {
    /// Keeps a schema under its own key.
    pub fn insert(&self, schema: Schema) -> Arc<Schema> {
        let schema = Arc::new(schema);
        self.answer(schema.key.clone(), Lookup::Found(Arc::clone(&schema)));
        schema
    }

    /// Keeps any answer, so that it is not asked for again.
    pub fn answer(&self, key: SchemaKey, answer: Lookup) {
        let mut known = self
            .known
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.insert(key, answer);
    }

    /// Forgets answers that were not a schema, so that they are asked for again.
    pub fn forget_failures(&self) {
        let mut known = self
            .known
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.retain(|_, answer| matches!(answer, Lookup::Found(_)));
    }

    /// All schemas, in no particular order.
    pub fn all_unsorted(&self) -> Vec<Arc<Schema>> {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let found = known.values().filter_map(|answer| match answer {
            Lookup::Found(schema) => Some(Arc::clone(schema)),
            _ => None,
        });
        found.collect()
    }
}

impl SchemaSource for Schemas {
    fn find(&self, key: &SchemaKey) -> Lookup {
        let known = self
            .known
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get(key).cloned().unwrap_or(Lookup::NotAsked)
    }
}

/// Who uses what: "412 with orders-value v7", most used first.
pub fn usage<'a>(schemas: impl Iterator<Item = Option<&'a Schema>>) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for schema in schemas {
        let label = schema.map_or_else(|| "no schema".to_owned(), Schema::label);
        *counts.entry(label).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    counts
}
