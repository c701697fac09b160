//! Schema framings: how a payload, or a header beside it, says which schema it has.
//!
//! Finding a frame is cheap and proves nothing: a first byte of zero may be the start of a number.
//! The detector believes a frame only when its schema is known and decodes the rest to the end.

use uuid::Uuid;

use crate::input::{Input, Part, PrefixIds};
use crate::recipe::Step;
use crate::report::Refusal;
use crate::schemas::SchemaKey;

/// A frame that the bytes or headers could have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub step: Step,
    pub key: SchemaKey,
    /// How many bytes of the payload it takes, message indexes not counted.
    pub length: usize,
    /// Message indexes that stand in a header instead of the payload.
    pub indexes: Option<Vec<u8>>,
    /// Whether the payload after it is zlib (AWS Glue's compression byte).
    pub zlib: bool,
    /// Whether the framing itself is beyond doubt, as a header or two magic bytes make it.
    pub certain: bool,
}

impl Frame {
    fn new(step: Step, key: SchemaKey, length: usize) -> Self {
        Self {
            step,
            key,
            length,
            indexes: None,
            zlib: false,
            certain: false,
        }
    }

    fn certain(self) -> Self {
        Self {
            certain: true,
            ..self
        }
    }
}

/// The frames that headers or the content type name, most specific first.
pub(crate) fn in_headers(input: &Input<'_>, content_type: Option<&str>) -> Vec<Frame> {
    [
        confluent_header(input),
        apicurio_headers(input),
        azure(input, content_type),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The frames that the payload's first bytes could be, in the order to try them.
pub(crate) fn in_bytes(bytes: &[u8], ids: PrefixIds) -> Vec<Frame> {
    match bytes {
        [0xc3, 0x01, rest @ ..] => eight(rest)
            .map(|print| {
                Frame::new(
                    Step::AvroSingleObject,
                    SchemaKey::Fingerprint(u64::from_le_bytes(print)),
                    10,
                )
                .certain()
            })
            .into_iter()
            .collect(),
        [0x03, compression @ (0x00 | 0x05), rest @ ..] => uuid(rest)
            .map(|id| Frame {
                zlib: *compression == 5,
                ..Frame::new(Step::Glue, SchemaKey::Glue(id), 18).certain()
            })
            .into_iter()
            .collect(),
        [0x01, rest @ ..] => uuid(rest)
            .map(|id| Frame::new(Step::ConfluentGuid, SchemaKey::ConfluentGuid(id), 17))
            .into_iter()
            .collect(),
        [0x00, rest @ ..] => zero_prefix(rest, ids),
        _ => Vec::new(),
    }
}

/// After a zero byte: four zero bytes more mean that the id has eight bytes, because ids are
/// greater than zero and less than 2^31. That is Apicurio's own rule for old payloads.
fn zero_prefix(rest: &[u8], ids: PrefixIds) -> Vec<Frame> {
    let four = rest
        .first_chunk::<4>()
        .map(|id| u32::from_be_bytes(*id))
        .unwrap_or(0);
    if four != 0 {
        let key = match ids {
            PrefixIds::Confluent => SchemaKey::Confluent(four),
            PrefixIds::ApicurioContent => SchemaKey::ApicurioContent(i64::from(four)),
            PrefixIds::ApicurioGlobal => SchemaKey::ApicurioGlobal(i64::from(four)),
        };
        let frame = Frame::new(Step::Confluent, key, 5);
        return if four < 1 << 31 {
            vec![frame]
        } else {
            Vec::new()
        };
    }
    let long = eight(rest)
        .map(i64::from_be_bytes)
        .filter(|id| *id > 0 && rest.len() > 8);
    let key = |id| {
        if ids == PrefixIds::ApicurioContent {
            SchemaKey::ApicurioContent(id)
        } else {
            SchemaKey::ApicurioGlobal(id)
        }
    };
    long.map(|id| Frame::new(Step::Apicurio, key(id), 9))
        .into_iter()
        .collect()
}

/// Confluent's header: `01`, the GUID, and for Protobuf the message indexes.
fn confluent_header(input: &Input<'_>) -> Option<Frame> {
    let name = match input.part {
        Part::Key => "__key_schema_id",
        Part::Value => "__value_schema_id",
    };
    match input.header(name)? {
        [0x01, rest @ ..] => {
            let key = SchemaKey::ConfluentGuid(uuid(rest)?);
            Some(Frame {
                indexes: Some(rest[16..].to_vec()),
                ..Frame::new(Step::ConfluentGuid, key, 0).certain()
            })
        }
        [0x00, rest @ ..] => {
            let key = SchemaKey::Confluent(u32::from_be_bytes(*rest.first_chunk()?));
            Some(Frame {
                indexes: Some(rest[4..].to_vec()),
                ..Frame::new(Step::ConfluentGuid, key, 0).certain()
            })
        }
        _ => None,
    }
}

/// Apicurio's headers: ids as eight bytes, or the artifact's coordinates as text.
fn apicurio_headers(input: &Input<'_>) -> Option<Frame> {
    let part = if input.part == Part::Key {
        "key"
    } else {
        "value"
    };
    let header = |name: &str| input.header(&format!("apicurio.{part}.{name}"));
    let text = |name: &str| {
        header(name)
            .and_then(|value| std::str::from_utf8(value).ok())
            .map(str::to_owned)
    };
    let id = |name: &str| header(name).and_then(eight).map(i64::from_be_bytes);
    let key = id("globalId")
        .map(SchemaKey::ApicurioGlobal)
        .or_else(|| id("contentId").map(SchemaKey::ApicurioContent))
        .or_else(|| {
            let artifact = text("artifactId")?;
            Some(SchemaKey::ApicurioArtifact {
                group: text("groupId"),
                artifact,
                version: text("version"),
            })
        })?;
    Some(Frame::new(Step::ApicurioHeaders, key, 0).certain())
}

/// Azure's content type `avro/binary+ID`, or a header `schemaId` beside JSON.
fn azure(input: &Input<'_>, content_type: Option<&str>) -> Option<Frame> {
    let id = content_type
        .and_then(|value| value.trim().strip_prefix("avro/binary+"))
        .or_else(|| input.header_text("schemaId"))?;
    let id = id.trim();
    let plausible = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    plausible
        .then(|| Frame::new(Step::Azure, SchemaKey::Azure(id.to_ascii_lowercase()), 0).certain())
}

/// Reads Confluent's Protobuf message indexes: the path to the message in its file and how many
/// bytes it takes. The single byte `00` is short for `[0]`.
pub(crate) fn message_indexes(bytes: &[u8]) -> Result<(Vec<usize>, usize), Refusal> {
    let wrong = || Refusal::new("the message indexes are cut or negative");
    let (count, mut at) = zigzag(bytes).ok_or_else(wrong)?;
    if count == 0 {
        return Ok((vec![0], at));
    }
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count <= 32)
        .ok_or_else(wrong)?;
    let mut path = Vec::with_capacity(count);
    for _ in 0..count {
        let (index, length) = zigzag(&bytes[at..]).ok_or_else(wrong)?;
        path.push(usize::try_from(index).map_err(|_| wrong())?);
        at += length;
    }
    Ok((path, at))
}

fn zigzag(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some(((value >> 1) as i64 ^ -((value & 1) as i64), at + 1));
        }
    }
    None
}

fn eight(bytes: &[u8]) -> Option<[u8; 8]> {
    bytes.first_chunk().copied()
}

fn uuid(bytes: &[u8]) -> Option<Uuid> {
    bytes.first_chunk().map(|id| Uuid::from_bytes(*id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Header;

    fn keys(bytes: &[u8]) -> Vec<(Step, SchemaKey)> {
        in_bytes(bytes, PrefixIds::Confluent)
            .into_iter()
            .map(|frame| (frame.step, frame.key))
            .collect()
    }

    #[test]
    fn prefixes() {
        assert_eq!(
            keys(b"\0\0\0\0\x0cabc"),
            [(Step::Confluent, SchemaKey::Confluent(12))]
        );
        assert_eq!(
            keys(b"\0\0\0\0\0\0\0\0\x07abc"),
            [(Step::Apicurio, SchemaKey::ApicurioGlobal(7))]
        );
        assert_eq!(
            keys(b"\0\0\0\0\0\0\0\x30\x39"),
            [],
            "nothing is left for the payload"
        );
        assert_eq!(keys(b"\0\0\0\0\0\0\x30\x39"), [], "a long");
        assert_eq!(keys(b"\0\xff\xff\xff\xffab"), [], "ids are positive");
        assert_eq!(
            keys(b"\xc3\x01\x01\0\0\0\0\0\0\0x"),
            [(Step::AvroSingleObject, SchemaKey::Fingerprint(1))]
        );
        let glue = [&[3u8, 5][..], &[7; 16], b"x"].concat();
        let frames = in_bytes(&glue, PrefixIds::Confluent);
        assert!(frames[0].zlib && frames[0].length == 18 && frames[0].step == Step::Glue);
        let apicurio = in_bytes(b"\0\0\0\0\x0cabc", PrefixIds::ApicurioContent);
        assert_eq!(apicurio[0].key, SchemaKey::ApicurioContent(12));
    }

    #[test]
    fn headers() {
        let guid = [&[1u8][..], &[9; 16], &[2, 2]].concat();
        let headers = [Header {
            name: "__value_schema_id",
            value: Some(&guid),
        }];
        let input = Input {
            headers: &headers,
            ..Input::value(b"x")
        };
        let frames = in_headers(&input, None);
        assert_eq!(
            frames[0].key,
            SchemaKey::ConfluentGuid(Uuid::from_bytes([9; 16]))
        );
        assert_eq!(frames[0].indexes.as_deref(), Some(&[2u8, 2][..]));
        assert_eq!(
            in_headers(
                &Input {
                    part: Part::Key,
                    ..input
                },
                None
            ),
            [],
            "the key has its own header"
        );

        let headers = [Header {
            name: "apicurio.value.globalId",
            value: Some(&[0, 0, 0, 0, 0, 0, 0, 5]),
        }];
        let input = Input {
            headers: &headers,
            ..Input::value(b"x")
        };
        assert_eq!(
            in_headers(&input, None)[0].key,
            SchemaKey::ApicurioGlobal(5)
        );

        let azure = format!("avro/binary+{}", "AB".repeat(16));
        assert_eq!(
            in_headers(&Input::value(b"x"), Some(&azure))[0].key,
            SchemaKey::Azure("ab".repeat(16))
        );
    }

    #[test]
    fn indexes() {
        assert_eq!(message_indexes(&[0, 9]).unwrap(), (vec![0], 1));
        assert_eq!(message_indexes(&[4, 2, 0, 9]).unwrap(), (vec![1, 0], 3));
        assert!(
            message_indexes(&[1]).is_err()
                && message_indexes(&[0xff; 12]).is_err()
                && message_indexes(&[200, 1]).is_err()
        );
    }
}
