//! Decoding with schemas: bytes go to `dlo_payload`, and what schemas it asks for is fetched once and kept.

use std::sync::Arc;

use dlo_core::{Delivery, Error, ErrorKind, Header as CoreHeader, Message, Result, Value};
use dlo_payload::{Decoded, Header, Input, Part, Schemas, Settings};

use crate::{
    audit::AuditLog,
    command::Edit,
    replay::edits::BodyEditor,
    shared::{Connection, blocking},
};

/// Schemas known to this process.
#[derive(Debug)]
pub struct SchemaStore {
    schemas: Arc<Schemas>,
    #[expect(
        dead_code,
        reason = "the disk cache of schemas comes with the registry client"
    )]
    cache: Option<AuditLog>,
}

type BodyAndKey = (Arc<Decoded>, Option<Arc<Decoded>>);

impl SchemaStore {
    pub fn new(cache: Option<AuditLog>) -> Self {
        Self {
            schemas: Arc::default(),
            cache,
        }
    }

    /// Decodes a message's body and key, by a recipe such as `gzip+json` or as detected. Never fails for the bytes' sake.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when the recipe cannot be read.
    pub async fn decode(
        &self,
        _connection: &Connection,
        delivery: &Delivery,
        recipe: Option<&str>,
    ) -> Result<BodyAndKey> {
        let recipe =
            recipe
                .map(str::parse)
                .transpose()
                .map_err(|error: dlo_payload::RecipeError| {
                    Error::new(
                        ErrorKind::ConfigInvalid,
                        "read the decoding recipe",
                        error.to_string(),
                    )
                })?;
        let settings = Settings {
            recipe,
            ..Settings::default()
        };
        let (schemas, message) = (self.schemas.clone(), delivery.message.clone());
        blocking("decode the message", move || {
            Ok(decode_message(&message, &settings, &schemas))
        })
        .await
    }
}

impl SchemaStore {
    /// What changes bodies inside their layers.
    pub fn editor(&self, _connection: &Connection) -> Editor {
        Editor {
            schemas: self.schemas.clone(),
        }
    }
}

/// Changes bodies inside their layers, with the schemas that are known by now.
#[derive(Debug)]
pub struct Editor {
    schemas: Arc<Schemas>,
}

impl BodyEditor for Editor {
    fn edit(&self, message: &Message, edit: &Edit) -> Result<Option<Vec<u8>>, String> {
        let (decoded, _) = decode_message(message, &Settings::default(), &self.schemas);
        let _ = (decoded, edit);
        Err("bodies cannot be changed in bulk yet".to_owned())
    }
}

fn decode_message(message: &Message, settings: &Settings, schemas: &Schemas) -> BodyAndKey {
    let headers = payload_headers(&message.headers);
    let decode = |part, bytes: Option<&[u8]>| {
        let input = Input {
            part,
            bytes,
            headers: &headers,
            content_type: property(message, "content_type"),
            content_encoding: property(message, "content_encoding"),
        };
        Arc::new(dlo_payload::decode(&input, settings, schemas))
    };
    let key = message
        .key
        .as_deref()
        .map(|key| decode(Part::Key, Some(key)));
    (decode(Part::Value, message.body.as_deref()), key)
}

fn payload_headers(headers: &[CoreHeader]) -> Vec<Header<'_>> {
    headers
        .iter()
        .map(|header| Header {
            name: &header.name,
            value: header.value().as_bytes().map(AsRef::as_ref),
        })
        .collect()
}

/// A content property: AMQP has it beside the headers, other brokers as a header.
fn property<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let header = || {
        let dashed = name.replace('_', "-");
        message
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(&dashed))
            .map(CoreHeader::value)
    };
    message
        .properties
        .get(name)
        .or_else(header)
        .and_then(Value::as_text)
}
