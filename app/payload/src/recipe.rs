//! The names of all layers and formats, and a chain of them as a person chooses it for a
//! destination: `gzip+confluent+avro`.

use std::fmt;
use std::str::FromStr;

use encoding_rs::Encoding;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One layer or the format inside them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    Base64,
    Base64Url,
    Gzip,
    Zlib,
    Deflate,
    Zstd,
    Lz4,
    Snappy,
    SnappyFramed,
    Brotli,
    /// Text in another charset than UTF-8, by its name in the Encoding standard or `utf-32le/be`.
    Charset(&'static str),
    /// `00` and a four byte schema id. <https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format>
    Confluent,
    /// The schema's GUID in a header, or `01` and the GUID before the payload.
    ConfluentGuid,
    /// `00` and an eight byte id (Apicurio 2 by default).
    Apicurio,
    /// Apicurio's ids in headers.
    ApicurioHeaders,
    Glue,
    /// `C3 01` and the schema's fingerprint. <https://avro.apache.org/docs/1.12.0/specification/#single-object-encoding>
    AvroSingleObject,
    /// The schema id in the content type, as Azure's schema registry writes it.
    Azure,
    /// JSON inside a JSON string.
    JsonString,
    Json,
    JsonLines,
    Avro,
    /// An Avro container file with its own schema.
    AvroFile,
    Protobuf,
    MessagePack,
    Cbor,
    Xml,
    /// Named, never deserialised.
    JavaSerialized,
    Text,
    /// A big-endian integer of exactly four bytes.
    Int32,
    /// A big-endian integer of exactly eight bytes.
    Int64,
    Hex,
    Empty,
    Null,
}

/// What a step does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Bytes in, bytes out, without meaning: compression, base64, a charset.
    Transport,
    /// Says which schema the payload has.
    Framing,
    /// The innermost reading.
    Format,
}

const NAMES: [(Step, &str); 32] = [
    (Step::Base64, "base64"),
    (Step::Base64Url, "base64url"),
    (Step::Gzip, "gzip"),
    (Step::Zlib, "zlib"),
    (Step::Deflate, "deflate"),
    (Step::Zstd, "zstd"),
    (Step::Lz4, "lz4"),
    (Step::Snappy, "snappy"),
    (Step::SnappyFramed, "snappy-framed"),
    (Step::Brotli, "brotli"),
    (Step::Confluent, "confluent"),
    (Step::ConfluentGuid, "confluent-guid"),
    (Step::Apicurio, "apicurio"),
    (Step::ApicurioHeaders, "apicurio-headers"),
    (Step::Glue, "glue"),
    (Step::AvroSingleObject, "avro-single-object"),
    (Step::Azure, "azure"),
    (Step::JsonString, "json-string"),
    (Step::Json, "json"),
    (Step::JsonLines, "json-lines"),
    (Step::Avro, "avro"),
    (Step::AvroFile, "avro-file"),
    (Step::Protobuf, "protobuf"),
    (Step::MessagePack, "msgpack"),
    (Step::Cbor, "cbor"),
    (Step::Xml, "xml"),
    (Step::JavaSerialized, "java-serialized"),
    (Step::Text, "text"),
    (Step::Int32, "int32"),
    (Step::Int64, "int64"),
    (Step::Hex, "hex"),
    (Step::Empty, "empty"),
];

impl Step {
    /// All steps that have a fixed name, for a menu; charsets come besides.
    pub fn all() -> impl Iterator<Item = Step> {
        NAMES.iter().map(|(step, _)| step.clone())
    }

    /// What the step does.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Base64
            | Self::Base64Url
            | Self::Gzip
            | Self::Zlib
            | Self::Deflate
            | Self::Zstd
            | Self::Lz4
            | Self::Snappy
            | Self::SnappyFramed
            | Self::Brotli
            | Self::Charset(_)
            | Self::JsonString => Kind::Transport,
            Self::Confluent
            | Self::ConfluentGuid
            | Self::Apicurio
            | Self::ApicurioHeaders
            | Self::Glue
            | Self::AvroSingleObject
            | Self::Azure => Kind::Framing,
            _ => Kind::Format,
        }
    }

    /// Its name, as chips and overrides write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Charset(name) => name,
            Self::Null => "null",
            other => NAMES
                .iter()
                .find(|(step, _)| step == other)
                .map_or("hex", |(_, name)| name),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why an override cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecipeError {
    #[error("\"{0}\" is no layer or format; there are {known}, and charsets by name", known = known())]
    Unknown(String),
    #[error("{0} must come last: it is a format")]
    FormatInside(Step),
    #[error("{0} must be the innermost layer before the format: it names the schema")]
    FramingInside(Step),
}

fn known() -> String {
    NAMES
        .iter()
        .map(|(_, name)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}

impl FromStr for Step {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let name = text.trim().to_ascii_lowercase();
        if let Some((step, _)) = NAMES.iter().find(|(_, known)| *known == name) {
            return Ok(step.clone());
        }
        match name.as_str() {
            "utf-32le" => Ok(Self::Charset("utf-32le")),
            "utf-32be" => Ok(Self::Charset("utf-32be")),
            "protobuf-raw" => Ok(Self::Protobuf),
            "messagepack" => Ok(Self::MessagePack),
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            "bytes" => Ok(Self::Hex),
            "br" => Ok(Self::Brotli),
            _ => charset(&name)
                .map(Self::Charset)
                .ok_or(RecipeError::Unknown(text.trim().to_owned())),
        }
    }
}

/// The standard's name of a charset, in lower case; none for UTF-8, which is no layer.
pub(crate) fn charset(label: &str) -> Option<&'static str> {
    let encoding = Encoding::for_label(label.as_bytes())?;
    CHARSETS
        .iter()
        .find(|name| encoding.name().eq_ignore_ascii_case(name))
        .copied()
}

/// The Encoding standard's charsets that have an encoder or are UTF-16.
const CHARSETS: [&str; 37] = [
    "utf-16le",
    "utf-16be",
    "windows-1252",
    "iso-8859-2",
    "iso-8859-3",
    "iso-8859-4",
    "iso-8859-5",
    "iso-8859-6",
    "iso-8859-7",
    "iso-8859-8",
    "iso-8859-10",
    "iso-8859-13",
    "iso-8859-14",
    "iso-8859-15",
    "iso-8859-16",
    "windows-874",
    "windows-1250",
    "windows-1251",
    "windows-1253",
    "windows-1254",
    "windows-1255",
    "windows-1256",
    "windows-1257",
    "windows-1258",
    "koi8-r",
    "koi8-u",
    "macintosh",
    "x-mac-cyrillic",
    "ibm866",
    "gbk",
    "gb18030",
    "big5",
    "euc-jp",
    "iso-2022-jp",
    "shift_jis",
    "euc-kr",
    "iso-8859-8-i",
];

/// Layers and format chosen by hand, outermost first. Its text form is `gzip+confluent+avro`. The
/// format may be left out: it is then detected.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Recipe(pub Vec<Step>);

impl Recipe {
    /// The layers and, if it is chosen too, the format.
    pub(crate) fn parts(&self) -> (&[Step], Option<&Step>) {
        match self.0.split_last() {
            Some((last, layers)) if last.kind() == Kind::Format => (layers, Some(last)),
            _ => (&self.0, None),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(Step::name).collect();
        out.write_str(&names.join("+"))
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let steps: Vec<Step> = text
            .split('+')
            .filter(|part| !part.trim().is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        check_order(&steps)?;
        Ok(Self(steps))
    }
}

fn check_order(steps: &[Step]) -> Result<(), RecipeError> {
    for (at, step) in steps.iter().enumerate() {
        let rest = &steps[at + 1..];
        match step.kind() {
            Kind::Format if !rest.is_empty() => {
                return Err(RecipeError::FormatInside(step.clone()));
            }
            Kind::Framing if rest.iter().any(|step| step.kind() == Kind::Framing) => {
                return Err(RecipeError::FramingInside(step.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_comes_back() {
        for text in [
            "gzip+confluent+avro",
            "base64",
            "utf-16le+json",
            "windows-1252+text",
            "glue+zlib+protobuf",
            "hex",
            "",
        ] {
            assert_eq!(text.parse::<Recipe>().unwrap().to_string(), text);
        }
        assert_eq!(
            "ISO-8859-1".parse::<Step>().unwrap(),
            Step::Charset("windows-1252")
        );
        assert_eq!(Step::all().count(), NAMES.len());
    }

    #[test]
    fn wrong_recipes_say_what_is_wrong() {
        assert_eq!(
            "avro+gzip".parse::<Recipe>(),
            Err(RecipeError::FormatInside(Step::Avro))
        );
        assert_eq!(
            "confluent+glue+avro".parse::<Recipe>(),
            Err(RecipeError::FramingInside(Step::Confluent))
        );
        assert!(
            "zip"
                .parse::<Recipe>()
                .unwrap_err()
                .to_string()
                .contains("there are base64, ")
        );
    }
}
