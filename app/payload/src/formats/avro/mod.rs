//! Avro, read and written with its schema. <https://avro.apache.org/docs/1.12.0/specification/>
//!
//! The schema and both directions are our own: a library's reader trusts the counts that a message
//! claims (an array of 2^41 nulls costs no bytes), and writing must keep the bytes of values that
//! nobody edited.

mod check;
mod file;
mod fingerprint;
mod read;
mod schema;
mod write;

pub use file::decode_file;
pub use schema::AvroSchema;

use crate::document::Document;
use crate::formats::patch::Cursor;
use crate::limits::Budget;
use crate::report::Refusal;
use crate::validate::Problem;

impl AvroSchema {
    /// Reads one value, to the end of the bytes.
    pub fn decode(&self, bytes: &[u8], budget: &mut Budget) -> Result<Document, Refusal> {
        let mut cursor = Cursor::new(bytes);
        let document = read::value(self, self.root, &mut cursor, budget)?;
        cursor.end()?;
        Ok(document)
    }

    /// Writes an edited document over the bytes it was read from.
    pub fn encode(&self, bytes: &[u8], old: &Document, new: &Document) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::with_capacity(bytes.len() + 64);
        write::merge(self, bytes, old, new, &mut out)?;
        Ok(out)
    }

    /// Writes a document anew.
    pub fn write(&self, document: &Document) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        write::value(self, self.root, document, &mut out)?;
        Ok(out)
    }

    /// What keeps a document from being written with this schema, with paths; none if nothing.
    pub fn check(&self, document: &Document) -> Vec<Problem> {
        check::document(self, document)
    }

    /// The CRC-64-AVRO fingerprint of the canonical form, by which single objects name it.
    pub fn fingerprint(&self) -> u64 {
        fingerprint::fingerprint(self)
    }
}

#[cfg(test)]
mod tests;
