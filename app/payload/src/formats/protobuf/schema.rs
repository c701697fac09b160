//! Protobuf schemas: source text or a descriptor set, with what they import.

use base64::Engine as _;
use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use protox::file::{File, FileResolver, GoogleFileResolver};

use crate::formats::patch::Cursor;
use crate::framing::{self, Frame};
use crate::recipe::Step;
use crate::report::Refusal;
use crate::schemas::Reference;

use super::wire;

/// The name under which the schema itself is compiled; imports have their own.
const MAIN: &str = "schema.proto";

/// A compiled schema.
#[derive(Debug)]
pub struct ProtoSchema {
    pool: DescriptorPool,
    file: FileDescriptor,
}

impl ProtoSchema {
    /// Reads a schema: source text, or a descriptor or descriptor set in base64.
    pub fn parse(text: &str, references: &[Reference]) -> Result<Self, String> {
        if let Some(bytes) = descriptor_bytes(text) {
            return Self::from_descriptors(&bytes);
        }
        let sources = Sources {
            main: text.to_owned(),
            references: references.to_vec(),
        };
        let mut compiler = protox::Compiler::with_file_resolver(sources);
        compiler.include_imports(true);
        compiler
            .open_file(MAIN)
            .map_err(|error| error.to_string())?;
        let pool = compiler.descriptor_pool();
        let file = pool
            .get_file_by_name(MAIN)
            .ok_or("the compiled file is missing")?;
        Ok(Self { pool, file })
    }

    /// Reads a descriptor set, as `protoc --descriptor_set_out` writes it, or a single file's
    /// descriptor. The last file is the one whose messages are meant.
    pub fn from_descriptors(bytes: &[u8]) -> Result<Self, String> {
        let pool = DescriptorPool::decode(bytes)
            .ok()
            .filter(|pool| pool.all_messages().len() > 0);
        let pool = match pool {
            Some(pool) => pool,
            None => single(bytes)?,
        };
        let file = pool.files().last().ok_or("the descriptor set is empty")?;
        Ok(Self { pool, file })
    }

    /// The names of all messages a payload could be, those of the file itself first.
    pub fn message_names(&self) -> Vec<String> {
        let own = self
            .file
            .messages()
            .map(|message| message.full_name().to_owned());
        let mut names: Vec<String> = own.collect();
        let others = self.pool.all_messages().filter(|message| {
            !message.is_map_entry() && !message.full_name().starts_with("google.protobuf.")
        });
        names.extend(
            others
                .map(|message| message.full_name().to_owned())
                .filter(|name| !names.contains(name))
                .collect::<Vec<_>>(),
        );
        names
    }

    /// A message by its full or short name; the file's first one if none is named.
    pub fn message(&self, name: Option<&str>) -> Result<MessageDescriptor, Refusal> {
        let Some(name) = name else {
            return self
                .file
                .messages()
                .next()
                .ok_or_else(|| Refusal::new("the schema has no message"));
        };
        let by_full_name = self.pool.get_message_by_name(name);
        let found = by_full_name.or_else(|| {
            self.pool
                .all_messages()
                .find(|message| message.full_name().rsplit('.').next() == Some(name))
        });
        found.ok_or_else(|| Refusal::new(format!("the schema has no message {name}")))
    }

    /// The message that a framed payload says it has, and how many bytes the saying takes.
    pub(crate) fn message_in_frame(
        &self,
        payload: &[u8],
        frame: &Frame,
    ) -> Result<(MessageDescriptor, usize), Refusal> {
        match (&frame.indexes, &frame.step) {
            (Some(indexes), _) if !indexes.is_empty() => {
                Ok((self.at(&framing::message_indexes(indexes)?.0)?, 0))
            }
            (_, Step::Confluent | Step::ConfluentGuid) => self.in_confluent(payload),
            (_, Step::Glue) => self.in_glue(payload),
            (_, Step::Apicurio | Step::ApicurioHeaders) => self.in_apicurio(payload),
            _ => Ok((self.message(None)?, 0)),
        }
    }

    fn in_confluent(&self, payload: &[u8]) -> Result<(MessageDescriptor, usize), Refusal> {
        let (path, length) = framing::message_indexes(payload)?;
        match self.at(&path) {
            Ok(message) => Ok((message, length)),
            // Apicurio's serialiser writes the same prefix but names the message instead.
            Err(refusal) => self.named(payload).ok_or(refusal),
        }
    }

    /// Glue writes one number: the message's place among all of the file.
    fn in_glue(&self, payload: &[u8]) -> Result<(MessageDescriptor, usize), Refusal> {
        let mut from = Cursor::new(payload);
        let index = wire::varint(&mut from)?;
        let message = usize::try_from(index)
            .ok()
            .and_then(|index| self.file.messages().nth(index));
        let message = message
            .ok_or_else(|| Refusal::new(format!("the schema has no message number {index}")))?;
        Ok((message, from.at))
    }

    fn in_apicurio(&self, payload: &[u8]) -> Result<(MessageDescriptor, usize), Refusal> {
        match self.named(payload) {
            Some(found) => Ok(found),
            None => Ok((self.message(None)?, 0)),
        }
    }

    /// Apicurio writes a small message before the payload whose first field is the message's name.
    fn named(&self, payload: &[u8]) -> Option<(MessageDescriptor, usize)> {
        let mut from = Cursor::new(payload);
        let length = usize::try_from(wire::varint(&mut from).ok()?).ok()?;
        let inside = from.take(length).ok()?;
        let records = wire::records(inside).ok()?;
        let [
            wire::Record {
                number: 1,
                value: wire::Value::Bytes(name),
                ..
            },
        ] = &records[..]
        else {
            return None;
        };
        let name = std::str::from_utf8(&inside[name.clone()]).ok()?;
        Some((self.message(Some(name)).ok()?, from.at))
    }

    /// A message by Confluent's indexes: the place at each level of nesting. The entries of maps,
    /// which the compiler adds, do not count.
    fn at(&self, path: &[usize]) -> Result<MessageDescriptor, Refusal> {
        let wrong = || Refusal::new(format!("the schema has no message at {path:?}"));
        let (first, rest) = path.split_first().ok_or_else(wrong)?;
        let outermost = self.file.messages().nth(*first).ok_or_else(wrong)?;
        rest.iter().try_fold(outermost, |message, index| {
            message
                .child_messages()
                .filter(|message| !message.is_map_entry())
                .nth(*index)
                .ok_or_else(wrong)
        })
    }
}

fn descriptor_bytes(text: &str) -> Option<Vec<u8>> {
    if text.contains(['{', ';']) {
        return None;
    }
    base64::engine::general_purpose::STANDARD
        .decode(text.trim())
        .ok()
}

fn single(bytes: &[u8]) -> Result<DescriptorPool, String> {
    let file = File::decode_file_descriptor_proto(bytes)
        .map_err(|error| format!("it is no descriptor: {error}"))?;
    let mut pool = DescriptorPool::global();
    pool.add_file_descriptor_proto(file.file_descriptor_proto().clone())
        .map_err(|error| error.to_string())?;
    Ok(pool)
}

/// Finds imports among the references, then among the files that every compiler brings along.
struct Sources {
    main: String,
    references: Vec<Reference>,
}

impl FileResolver for Sources {
    fn resolve_path(&self, path: &std::path::Path) -> Option<String> {
        path.to_str().map(str::to_owned)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == MAIN {
            return File::from_source(MAIN, &self.main);
        }
        if let Some(reference) = self
            .references
            .iter()
            .find(|reference| reference.name == name)
        {
            return File::from_source(name, &reference.text);
        }
        match name {
            "confluent/meta.proto" => File::from_source(name, CONFLUENT_META),
            "confluent/type/decimal.proto" => File::from_source(name, CONFLUENT_DECIMAL),
            _ => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// What schemas in Confluent's registry import without a reference.
/// <https://github.com/confluentinc/schema-registry/tree/master/protobuf-types>
const CONFLUENT_META: &str = r#"syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }"#;
const CONFLUENT_DECIMAL: &str = r#"syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"#;
