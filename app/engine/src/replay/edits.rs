//! Changes made to every selected message: headers here, bodies through the payload engine.

use dlo_core::{Header, Message, Value};

use crate::command::Edit;

/// Applies one change.
///
/// # Errors
/// A sentence that says why it does not apply to this message; the message must then not go out.
pub fn apply(edit: &Edit, message: &mut Message, decode: &dyn BodyEditor) -> Result<(), String> {
    match edit {
        Edit::SetHeader { name, text } => set_header(message, name, text),
        Edit::RenameHeader { from, to } => rename_header(message, from, to)?,
        Edit::RemoveHeader { name } => message.headers.retain(|header| header.name != *name),
        body => message.body = decode.edit(message, body)?.map(Into::into),
    }
    Ok(())
}

/// Changes a body inside its layers (compression, schema framing, format).
pub trait BodyEditor {
    /// The new bytes of the body.
    fn edit(&self, message: &Message, edit: &Edit) -> Result<Option<Vec<u8>>, String>;
}

fn set_header(message: &mut Message, name: &str, text: &str) {
    let value = Value::text(text);
    let mut found = message
        .headers
        .iter_mut()
        .filter(|header| header.name == name);
    match found.next() {
        // The broker's type stays when it is one for text or bytes.
        Some(header) if matches!(header.typed.value, Value::Bytes(_)) => header.typed.value = value,
        Some(header) => *header = Header::new(name, text_kind(&header.typed.kind), value),
        None => {
            let kind = message
                .headers
                .first()
                .map_or("longstr", |header| text_kind(&header.typed.kind));
            message.headers.push(Header::new(name, kind, value));
        }
    }
}

/// The type of a text header on the broker that the given type is from.
fn text_kind(kind: &str) -> &'static str {
    match kind.split('.').next() {
        Some("String" | "Number" | "Binary") => "String",
        Some("bytes") => "bytes",
        _ => "longstr",
    }
}

fn rename_header(message: &mut Message, from: &str, to: &str) -> Result<(), String> {
    let mut renamed = false;
    for header in message
        .headers
        .iter_mut()
        .filter(|header| header.name == from)
    {
        to.clone_into(&mut header.name);
        renamed = true;
    }
    renamed
        .then_some(())
        .ok_or_else(|| format!("it has no header {from}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoBody;

    impl BodyEditor for NoBody {
        fn edit(&self, _: &Message, _: &Edit) -> Result<Option<Vec<u8>>, String> {
            Err("no body".to_owned())
        }
    }

    #[test]
    fn header_edits_keep_order_and_types() {
        let mut message = Message {
            headers: vec![
                Header::new("a", "String", Value::text("1")),
                Header::new("b", "Number.int", Value::text("2")),
            ],
            ..Message::default()
        };
        let edits = [
            Edit::SetHeader {
                name: "b".to_owned(),
                text: "3".to_owned(),
            },
            Edit::SetHeader {
                name: "c".to_owned(),
                text: "4".to_owned(),
            },
            Edit::RenameHeader {
                from: "a".to_owned(),
                to: "z".to_owned(),
            },
        ];
        for edit in &edits {
            assert_eq!(apply(edit, &mut message, &NoBody), Ok(()));
        }
        let expected = [
            Header::new("z", "String", Value::text("1")),
            Header::new("b", "Number.int", Value::text("3")),
            Header::new("c", "String", Value::text("4")),
        ];
        assert_eq!(message.headers, expected);
        let missing = Edit::RenameHeader {
            from: "nope".to_owned(),
            to: "x".to_owned(),
        };
        assert!(apply(&missing, &mut message, &NoBody).is_err());
    }
}
