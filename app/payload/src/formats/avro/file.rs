//! Avro container files, which some producers send as one message: they carry their own schema.
//! <https://avro.apache.org/docs/1.12.0/specification/#object-container-files>

use crate::document::Document;
use crate::formats::patch::Cursor;
use crate::layers;
use crate::limits::Budget;
use crate::recipe::Step;
use crate::report::Refusal;

use super::read;
use super::schema::AvroSchema;

/// Reads all objects of a file as a list.
pub fn decode_file(bytes: &[u8], budget: &mut Budget) -> Result<Document, Refusal> {
    let mut from = Cursor::new(bytes);
    if from.take(4)? != b"Obj\x01" {
        return Err(Refusal::new("it does not begin as a container file"));
    }
    let (schema, codec) = header(&mut from)?;
    let sync: [u8; 16] = from.array()?;
    budget.node()?;
    budget.enter()?;
    let mut all = Vec::new();
    while from.left() > 0 {
        let count = read::length(&mut from)?;
        let size = read::length(&mut from)?;
        let data = unpack(&codec, from.take(size)?, budget)?;
        budget.can_hold(count as u64)?;
        let mut block = Cursor::new(&data);
        for _ in 0..count {
            all.push(read::value(&schema, schema.root, &mut block, budget)?);
        }
        block.end()?;
        if from.array::<16>()? != sync {
            return Err(Refusal::new(
                "a block does not end with the file's sync marker",
            ));
        }
    }
    budget.leave();
    Ok(Document::List(all))
}

fn header(from: &mut Cursor<'_>) -> Result<(AvroSchema, String), Refusal> {
    let (mut schema, mut codec) = (None, "null".to_owned());
    loop {
        let count = read::block(from)?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let key = read::text(from)?;
            let length = read::length(from)?;
            let value = from.take(length)?;
            match key {
                "avro.schema" => {
                    schema = Some(
                        std::str::from_utf8(value)
                            .map_err(|_| Refusal::new("its schema is not UTF-8"))?,
                    )
                }
                "avro.codec" => codec = String::from_utf8_lossy(value).into_owned(),
                _ => {}
            }
        }
    }
    let text = schema.ok_or_else(|| Refusal::new("the file has no schema"))?;
    let schema = AvroSchema::parse(text, &[])
        .map_err(|error| Refusal::new(format!("its schema cannot be read: {error}")))?;
    Ok((schema, codec))
}

fn unpack(codec: &str, data: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    match codec {
        "null" => Ok(data.to_vec()),
        "deflate" => layers::inflate_start(data, budget),
        "zstandard" => layers::unpack(&Step::Zstd, data, budget),
        // Four bytes of a checksum follow each block.
        "snappy" => layers::unpack(
            &Step::Snappy,
            data.get(..data.len().saturating_sub(4)).unwrap_or_default(),
            budget,
        ),
        other => Err(Refusal::new(format!("its codec {other} is not known here"))),
    }
}
