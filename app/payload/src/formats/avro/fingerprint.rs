//! The canonical form of a schema and its CRC-64-AVRO fingerprint.
//! <https://avro.apache.org/docs/1.12.0/specification/#parsing-canonical-form-for-schemas>

use std::collections::HashSet;

use super::schema::{AvroSchema, Type, TypeId};

pub(super) fn fingerprint(schema: &AvroSchema) -> u64 {
    let mut text = String::new();
    canonical(schema, schema.root, &mut HashSet::new(), &mut text);
    crc64(text.as_bytes())
}

/// A named type is written out where it first appears, and by name after that.
fn canonical(schema: &AvroSchema, id: TypeId, seen: &mut HashSet<TypeId>, out: &mut String) {
    let kind = schema.get(id);
    if let Some(name) = kind.name()
        && !seen.insert(id)
    {
        return quoted(name, out);
    }
    match kind {
        Type::Null => quoted("null", out),
        Type::Boolean => quoted("boolean", out),
        Type::Int(_) => quoted("int", out),
        Type::Long(_) => quoted("long", out),
        Type::Float => quoted("float", out),
        Type::Double => quoted("double", out),
        Type::Bytes(_) => quoted("bytes", out),
        Type::String(_) => quoted("string", out),
        Type::Array(items) => {
            out.push_str("{\"type\":\"array\",\"items\":");
            canonical(schema, *items, seen, out);
            out.push('}');
        }
        Type::Map(values) => {
            out.push_str("{\"type\":\"map\",\"values\":");
            canonical(schema, *values, seen, out);
            out.push('}');
        }
        Type::Union(branches) => listed(branches, out, |branch, out| {
            canonical(schema, *branch, seen, out)
        }),
        Type::Enum { name, symbols } => {
            head(name, "enum", out);
            out.push_str(",\"symbols\":");
            listed(symbols, out, |symbol, out| quoted(symbol, out));
            out.push('}');
        }
        Type::Fixed { name, size, .. } => {
            head(name, "fixed", out);
            out.push_str(&format!(",\"size\":{size}}}"));
        }
        Type::Record { name, fields } => {
            head(name, "record", out);
            out.push_str(",\"fields\":");
            listed(fields, out, |field, out| {
                out.push_str("{\"name\":");
                quoted(&field.name, out);
                out.push_str(",\"type\":");
                canonical(schema, field.kind, seen, out);
                out.push('}');
            });
            out.push('}');
        }
    }
}

fn head(name: &str, kind: &str, out: &mut String) {
    out.push_str("{\"name\":");
    quoted(name, out);
    out.push_str(&format!(",\"type\":\"{kind}\""));
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn listed<T>(items: &[T], out: &mut String, mut write: impl FnMut(&T, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

fn crc64(bytes: &[u8]) -> u64 {
    const EMPTY: u64 = 0xc15d_213a_a4d7_a795;
    bytes.iter().fold(EMPTY, |print, byte| {
        let mut entry = (print ^ u64::from(*byte)) & 0xff;
        for _ in 0..8 {
            entry = (entry >> 1) ^ (EMPTY & (entry & 1).wrapping_neg());
        }
        (print >> 8) ^ entry
    })
}
