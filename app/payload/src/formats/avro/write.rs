//! Documents into Avro's binary encoding, anew or over the bytes they were read from.

use crate::decimal;
use crate::document::{Document, Number};
use crate::formats::patch::Cursor;
use crate::limits::{Budget, Limits};
use crate::report::Refusal;
use crate::time;

use super::check::{default_document, fits};
use super::read;
use super::schema::{AvroSchema, Field, Logical, Type, TypeId};

/// Writes a document anew. A field that is missing gets its default.
pub(super) fn value(
    schema: &AvroSchema,
    id: TypeId,
    document: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let kind = schema.get(id);
    let wrong = || {
        Refusal::new(format!(
            "expected {}, found {}",
            kind.describe(),
            document.kind()
        ))
    };
    match (kind, document) {
        (Type::Null, Document::Null) => Ok(()),
        (Type::Boolean, Document::Bool(value)) => {
            out.push(u8::from(*value));
            Ok(())
        }
        (Type::Int(logical), _) => {
            let value = integer(document, *logical)
                .and_then(|value| i32::try_from(value).ok())
                .ok_or_else(wrong)?;
            long(i64::from(value), out);
            Ok(())
        }
        (Type::Long(logical), _) => {
            long(integer(document, *logical).ok_or_else(wrong)?, out);
            Ok(())
        }
        (Type::Float, _) => {
            out.extend((float(document).ok_or_else(wrong)? as f32).to_le_bytes());
            Ok(())
        }
        (Type::Double, _) => {
            out.extend(float(document).ok_or_else(wrong)?.to_le_bytes());
            Ok(())
        }
        (Type::Bytes(logical), _) => {
            let bytes = bytes(document, *logical, None).ok_or_else(wrong)?;
            string(&bytes, out);
            Ok(())
        }
        (Type::Fixed { size, logical, .. }, _) => {
            let bytes = bytes(document, *logical, Some(*size))
                .filter(|bytes| bytes.len() == *size)
                .ok_or_else(wrong)?;
            out.extend(bytes);
            Ok(())
        }
        (Type::String(_), Document::Text(text)) => {
            string(text.as_bytes(), out);
            Ok(())
        }
        (Type::Enum { symbols, .. }, Document::Text(text)) => {
            let index = symbols
                .iter()
                .position(|symbol| symbol == text)
                .ok_or_else(|| Refusal::new(format!("\"{text}\" is not {}", kind.describe())))?;
            long(index as i64, out);
            Ok(())
        }
        (Type::Record { fields, .. }, Document::Map(_) | Document::Pairs(_)) => fields
            .iter()
            .try_for_each(|field| self::field(schema, field, document, out)),
        (Type::Array(items), Document::List(list)) => blocks(list.len(), out, |out| {
            list.iter().enumerate().try_for_each(|(at, item)| {
                value(schema, *items, item, out)
                    .map_err(|refusal| inside(&at.to_string(), &refusal))
            })
        }),
        (Type::Map(values), Document::Map(entries)) => blocks(entries.len(), out, |out| {
            entries.iter().try_for_each(|(key, item)| {
                string(key.as_bytes(), out);
                value(schema, *values, item, out).map_err(|refusal| inside(key, &refusal))
            })
        }),
        (Type::Union(branches), _) => {
            let index = branches
                .iter()
                .position(|branch| fits(schema, *branch, document))
                .ok_or_else(|| no_branch(schema, branches, document))?;
            long(index as i64, out);
            value(schema, branches[index], document, out)
        }
        _ => Err(wrong()),
    }
}

fn field(
    schema: &AvroSchema,
    field: &Field,
    record: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let result = match (record.get(&field.name), &field.default) {
        (Some(document), _) => value(schema, field.kind, document, out),
        (None, Some(default)) => value(
            schema,
            field.kind,
            &default_document(schema, field.kind, default),
            out,
        ),
        (None, None) => Err(Refusal::new("it is missing and has no default")),
    };
    result.map_err(|refusal| inside(&field.name, &refusal))
}

fn inside(step: &str, refusal: &Refusal) -> Refusal {
    let text = refusal.to_string();
    let step = crate::document::path::escape(step);
    Refusal::new(if text.starts_with('/') {
        format!("/{step}{text}")
    } else {
        format!("/{step}: {text}")
    })
}

fn no_branch(schema: &AvroSchema, branches: &[TypeId], document: &Document) -> Refusal {
    let branches: Vec<String> = branches
        .iter()
        .map(|branch| schema.get(*branch).describe())
        .collect();
    Refusal::new(format!(
        "{} fits none of: {}",
        document.kind(),
        branches.join("; ")
    ))
}

/// Writes `new` over the bytes of `old`: equal values are copied, containers go deeper.
pub(super) fn merge(
    schema: &AvroSchema,
    bytes: &[u8],
    old: &Document,
    new: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let budget = Budget::new(&Limits {
        nodes: usize::MAX,
        ..Limits::default()
    });
    let mut merger = Merger {
        schema,
        from: Cursor::new(bytes),
        budget,
    };
    merger.value(schema.root, old, new, out)
}

struct Merger<'a> {
    schema: &'a AvroSchema,
    from: Cursor<'a>,
    budget: Budget,
}

impl Merger<'_> {
    fn value(
        &mut self,
        id: TypeId,
        old: &Document,
        new: &Document,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if old == new {
            let start = self.from.at;
            self.skip(id)?;
            out.extend_from_slice(&self.from.bytes[start..self.from.at]);
            return Ok(());
        }
        match self.schema.get(id) {
            Type::Record { fields, .. } => fields
                .iter()
                .try_for_each(|field| self.field(field, old, new, out)),
            Type::Union(branches) => self.union(branches, old, new, out),
            Type::Array(items) => match (old, new) {
                (Document::List(old), Document::List(new)) => self.list(id, *items, old, new, out),
                _ => self.anew(id, new, out),
            },
            _ => self.anew(id, new, out),
        }
    }

    fn anew(&mut self, id: TypeId, new: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.skip(id)?;
        value(self.schema, id, new, out)
    }

    fn skip(&mut self, id: TypeId) -> Result<(), Refusal> {
        read::value(self.schema, id, &mut self.from, &mut self.budget).map(drop)
    }

    fn field(
        &mut self,
        field: &Field,
        old: &Document,
        new: &Document,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let old = old
            .get(&field.name)
            .ok_or_else(|| Refusal::new("the document does not belong to these bytes"))?;
        let result = match (new.get(&field.name), &field.default) {
            (Some(new), _) => self.value(field.kind, old, new, out),
            (None, Some(default)) => self.anew(
                field.kind,
                &default_document(self.schema, field.kind, default),
                out,
            ),
            (None, None) => Err(Refusal::new(
                "it was removed, but the schema has no default for it",
            )),
        };
        result.map_err(|refusal| inside(&field.name, &refusal))
    }

    /// The branch of the message is kept as long as the new value fits it.
    fn union(
        &mut self,
        branches: &[TypeId],
        old: &Document,
        new: &Document,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let branch = read::branch(&mut self.from, branches)?;
        if !fits(self.schema, branch, new) {
            self.skip(branch)?;
            let index = branches
                .iter()
                .position(|branch| fits(self.schema, *branch, new))
                .ok_or_else(|| no_branch(self.schema, branches, new))?;
            long(index as i64, out);
            return value(self.schema, branches[index], new, out);
        }
        let index = branches
            .iter()
            .position(|other| *other == branch)
            .unwrap_or(0);
        long(index as i64, out);
        self.value(branch, old, new, out)
    }

    /// Items at the same place keep their bytes; the blocks around them become one.
    fn list(
        &mut self,
        _id: TypeId,
        items: TypeId,
        old: &[Document],
        new: &[Document],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut written = Vec::new();
        let mut at = 0;
        loop {
            let count = read::block(&mut self.from)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                match (old.get(at), new.get(at)) {
                    (Some(old), Some(new)) => self
                        .value(items, old, new, &mut written)
                        .map_err(|refusal| inside(&at.to_string(), &refusal))?,
                    _ => self.skip(items)?,
                }
                at += 1;
            }
        }
        for (at, item) in new.iter().enumerate().skip(at) {
            value(self.schema, items, item, &mut written)
                .map_err(|refusal| inside(&at.to_string(), &refusal))?;
        }
        blocks(new.len(), out, |out| {
            out.extend(written);
            Ok(())
        })
    }
}

fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

fn blocks(
    count: usize,
    out: &mut Vec<u8>,
    items: impl FnOnce(&mut Vec<u8>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    if count > 0 {
        long(count as i64, out);
        items(out)?;
    }
    out.push(0);
    Ok(())
}

/// A number, or a time in whichever form it has: what a person edited was reconciled before.
pub(super) fn integer(document: &Document, logical: Logical) -> Option<i64> {
    match (document, logical) {
        (Document::Number(number), _) if number.is_int() => number.as_i64(),
        (
            Document::Time(time),
            Logical::Date | Logical::TimeOfDay(_) | Logical::Moment(_) | Logical::Local(_),
        ) => integer(&Document::text(&time.text), logical).or_else(|| time.raw.as_i64()),
        (Document::Text(text), Logical::Date) => time::parse_day(text),
        (Document::Text(text), Logical::TimeOfDay(unit)) => time::parse_of_day(text, unit),
        (Document::Text(text), Logical::Moment(unit) | Logical::Local(unit)) => {
            time::parse_moment(text, unit).and_then(|count| i64::try_from(count).ok())
        }
        _ => None,
    }
}

pub(super) fn float(document: &Document) -> Option<f64> {
    match document {
        Document::Number(number) => Some(number.as_f64()),
        Document::Float(value) => Some(*value),
        _ => None,
    }
}

pub(super) fn bytes(document: &Document, logical: Logical, size: Option<usize>) -> Option<Vec<u8>> {
    match (document, logical) {
        (Document::Bytes(bytes), _) => Some(bytes.clone()),
        (Document::Decimal(text) | Document::Text(text), Logical::Decimal { scale }) => {
            unscaled(text, scale, size)
        }
        (Document::Number(number), Logical::Decimal { scale }) => {
            unscaled(&number.to_string(), scale, size)
        }
        (Document::Text(text), Logical::Uuid) => uuid::Uuid::parse_str(text)
            .ok()
            .map(|id| id.as_bytes().to_vec()),
        (Document::Map(_), Logical::Duration) => {
            let part = |name: &str| match document.get(name) {
                Some(Document::Number(number)) => {
                    number.as_u64().and_then(|part| u32::try_from(part).ok())
                }
                _ => None,
            };
            Some(
                [part("months")?, part("days")?, part("milliseconds")?]
                    .into_iter()
                    .flat_map(u32::to_le_bytes)
                    .collect(),
            )
        }
        _ => None,
    }
}

/// The unscaled bytes of a decimal, filled up with its sign to the size of a fixed.
fn unscaled(text: &str, scale: usize, size: Option<usize>) -> Option<Vec<u8>> {
    let digits = decimal::at_scale(text, scale)?;
    Number::parse(&digits)?;
    let bytes = decimal::integer_bytes(&digits);
    let Some(size) = size else { return Some(bytes) };
    let fill = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        0xff
    } else {
        0
    };
    let missing = size.checked_sub(bytes.len())?;
    Some([vec![fill; missing], bytes].concat())
}
