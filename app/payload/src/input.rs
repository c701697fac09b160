//! What goes into a decoding: bytes with the headers that came along, and a person's settings.

use crate::limits::Limits;
use crate::recipe::Recipe;
use crate::schemas::SchemaKey;

/// A header as the broker delivered it. No value is different from an empty one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header<'a> {
    pub name: &'a str,
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// A header whose value is text.
    pub fn text(name: &'a str, value: &'a str) -> Self {
        Self {
            name,
            value: Some(value.as_bytes()),
        }
    }
}

/// Which half of a message: both decode alike but look at different headers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Part {
    Key,
    #[default]
    Value,
}

/// One payload to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    pub part: Part,
    /// `None` is null (a tombstone, an absent key); an empty slice is an empty payload.
    pub bytes: Option<&'a [u8]>,
    /// All headers, in order, repeats included.
    pub headers: &'a [Header<'a>],
    /// The broker's own content type property, if it has one; headers of that name are read too.
    pub content_type: Option<&'a str>,
    /// The broker's own content encoding property, if it has one.
    pub content_encoding: Option<&'a str>,
}

impl<'a> Input<'a> {
    /// A message's value without headers.
    pub fn value(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Some(bytes),
            ..Self::default()
        }
    }

    /// A message's key.
    pub fn key(bytes: &'a [u8]) -> Self {
        Self {
            part: Part::Key,
            ..Self::value(bytes)
        }
    }

    /// The last header of a name, as later ones win for readers; case does not matter.
    pub(crate) fn header(&self, name: &str) -> Option<&'a [u8]> {
        let found = self
            .headers
            .iter()
            .rev()
            .find(|header| header.name.eq_ignore_ascii_case(name))?;
        found.value
    }

    /// The last header of a name, if it is text.
    pub(crate) fn header_text(&self, name: &str) -> Option<&'a str> {
        self.header(name)
            .and_then(|value| std::str::from_utf8(value).ok())
    }
}

/// Which ids a four byte prefix after a zero byte holds: the bytes do not say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefixIds {
    /// Ids of Confluent's API, which Apicurio's compatible API answers too (its content ids).
    #[default]
    Confluent,
    ApicurioContent,
    ApicurioGlobal,
}

/// How a person wants payloads of a destination to be decoded. Serialisable, to be remembered.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Settings {
    pub limits: Limits,
    /// Layers and format chosen by hand, for example `gzip+confluent+avro`; none: detect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    pub prefix_ids: PrefixIds,
    /// The schema bound to this destination, for payloads that carry no id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<SchemaKey>,
    /// The Protobuf message inside the bound schema, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
}
