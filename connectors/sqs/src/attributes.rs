//! Message attributes, both ways and exact: the data type with its custom label, and the value's very bytes.
//!
//! SQS keeps attributes without an order, so they are sorted by name to look the same each time.

use std::collections::HashMap;

use aws_sdk_sqs::{primitives::Blob, types::MessageAttributeValue};
use bytes::Bytes;
use dlo_core::{Header, Value};

/// The attributes of a received message as headers.
pub(crate) fn to_headers(attributes: &HashMap<String, MessageAttributeValue>) -> Vec<Header> {
    let mut headers: Vec<Header> = attributes
        .iter()
        .map(|(name, value)| {
            Header::new(name.clone(), value.data_type().to_owned(), to_value(value))
        })
        .collect();
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    headers
}

fn to_value(value: &MessageAttributeValue) -> Value {
    match (value.binary_value(), value.string_value()) {
        (Some(blob), _) => Value::Bytes(Bytes::copy_from_slice(blob.as_ref())),
        (None, Some(text)) => Value::text(text),
        (None, None) => Value::Null,
    }
}

/// The three logical data types. Anything after a dot is a label of the sender's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logical {
    String,
    Number,
    Binary,
}

/// An attribute ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub name: String,
    pub data_type: String,
    pub logical: Logical,
    pub value: Bytes,
}

impl Attribute {
    /// The header as an attribute, or why it cannot be one. A header of another broker gets the data type that holds its value.
    pub fn of(header: &Header) -> Result<Self, String> {
        let (data_type, value) = match logical(&header.typed.kind) {
            Some(_) => (header.typed.kind.clone().into_owned(), own(header)?),
            None => foreign(header)?,
        };
        let logical = logical(&data_type)
            .ok_or_else(|| format!("the attribute {} has no data type of SQS", header.name))?;
        Ok(Self {
            name: header.name.clone(),
            data_type,
            logical,
            value,
        })
    }

    /// Bytes as SQS counts them: name, data type and value.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>
    pub fn size(&self) -> u64 {
        (self.name.len() + self.data_type.len() + self.value.len()) as u64
    }

    /// The value as text, for the types that are text.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }

    pub fn to_sdk(&self) -> Result<MessageAttributeValue, String> {
        let builder = MessageAttributeValue::builder().data_type(&self.data_type);
        let builder = match (self.logical, self.text()) {
            (Logical::Binary, _) => builder.binary_value(Blob::new(self.value.to_vec())),
            (_, Some(text)) => builder.string_value(text),
            (_, None) => return Err(format!("the attribute {} is not UTF-8 text", self.name)),
        };
        builder.build().map_err(|error| error.to_string())
    }
}

/// The logical type that a data type begins with, as `Number` in `Number.int`.
pub(crate) fn logical(data_type: &str) -> Option<Logical> {
    match data_type.split('.').next() {
        Some("String") => Some(Logical::String),
        Some("Number") => Some(Logical::Number),
        Some("Binary") => Some(Logical::Binary),
        _ => None,
    }
}

/// The value of a header that has a data type of SQS. Editors may have made a number of a number's text.
fn own(header: &Header) -> Result<Bytes, String> {
    match header.value() {
        Value::Bytes(bytes) => Ok(bytes.clone()),
        Value::Int(int) => Ok(Bytes::from(int.to_string())),
        Value::Float(float) if float.is_finite() => Ok(Bytes::from(float.to_string())),
        Value::Bool(bool) => Ok(Bytes::from(bool.to_string())),
        _ => Err(format!(
            "the attribute {} has a value that SQS cannot carry",
            header.name
        )),
    }
}

fn foreign(header: &Header) -> Result<(String, Bytes), String> {
    match header.value() {
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => {
            Ok(("String".to_owned(), bytes.clone()))
        }
        Value::Bytes(bytes) => Ok(("Binary".to_owned(), bytes.clone())),
        Value::Int(int) => Ok(("Number".to_owned(), Bytes::from(int.to_string()))),
        Value::Float(float) if float.is_finite() => {
            Ok(("Number".to_owned(), Bytes::from(float.to_string())))
        }
        Value::Bool(bool) => Ok(("String".to_owned(), Bytes::from(bool.to_string()))),
        _ => Err(format!(
            "the header {} of type {} has no counterpart in SQS; remove it in an edit",
            header.name, header.typed.kind
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(kind: &'static str, value: Value) {
        let header = Header::new("n", kind, value);
        let attribute = Attribute::of(&header).expect(kind);
        let sdk = attribute.to_sdk().expect(kind);
        assert_eq!(
            to_headers(&HashMap::from([("n".to_owned(), sdk)])),
            [header]
        );
    }

    #[test]
    fn data_types_labels_and_bytes_go_out_as_they_came() {
        round("String", Value::text("grün"));
        round("String.json", Value::text("{}"));
        round("Number", Value::text("007.50"));
        round("Number.int", Value::text("9007199254740993"));
        round(
            "Binary",
            Value::Bytes(Bytes::from((0..=255).collect::<Vec<u8>>())),
        );
        round(
            "Binary.png",
            Value::Bytes(Bytes::from_static(b"text all the same")),
        );
    }

    #[test]
    fn headers_of_other_brokers_get_the_type_that_holds_them() {
        for (kind, value, data_type) in [
            ("longstr", Value::text("a"), "String"),
            (
                "longstr",
                Value::Bytes(Bytes::from_static(&[255])),
                "Binary",
            ),
            ("long", Value::Int(7), "Number"),
            ("bool", Value::Bool(true), "String"),
        ] {
            let attribute = Attribute::of(&Header::new("n", kind, value)).expect(kind);
            assert_eq!(attribute.data_type, data_type);
        }
        assert!(Attribute::of(&Header::new("n", "table", Value::Table(Vec::new()))).is_err());
    }
}
