//! Changes made to every selected message: headers here, bodies through the payload engine.

use dlo_core::{Error, ErrorKind, Header, Message, Result, Value};
use dlo_payload::{bulk::BulkEdit, registry::Resolver};

use crate::{command::Edit, schemas};

/// A change that was read once, to be made to many messages.
#[derive(Clone, Debug)]
pub enum Prepared {
    Header(Edit),
    Body(BulkEdit),
}

/// Reads the changes: pointers, JSON, patches and jq programs.
///
/// # Errors
/// [`ErrorKind::ConfigInvalid`] with what is wrong in which one.
pub fn prepare(edits: &[Edit]) -> Result<Vec<Prepared>> {
    edits.iter().map(prepare_one).collect()
}

fn prepare_one(edit: &Edit) -> Result<Prepared> {
    let body = match edit {
        Edit::Set { pointer, json } => BulkEdit::set(pointer, json),
        Edit::Remove { pointer } => BulkEdit::remove(pointer),
        Edit::Patch { json } => BulkEdit::patch(json),
        Edit::Replace { find, with } => BulkEdit::replace(find, with),
        Edit::Jq { program } => BulkEdit::jq(program),
        Edit::SetHeader { .. } | Edit::RenameHeader { .. } | Edit::RemoveHeader { .. } => {
            return Ok(Prepared::Header(edit.clone()));
        }
    };
    body.map(Prepared::Body)
        .map_err(|why| Error::new(ErrorKind::ConfigInvalid, "read the edit", why))
}

/// Makes one change and says what is not byte for byte the same although nobody edited it.
///
/// # Errors
/// A sentence that says why it does not apply to this message; the message must then not go out.
pub fn apply(
    edit: &Prepared,
    message: &mut Message,
    resolver: &Resolver,
) -> Result<Vec<String>, String> {
    match edit {
        Prepared::Body(change) => {
            let edited = schemas::edit_body(resolver, message, change)?;
            message.body = Some(edited.bytes.into());
            return Ok(edited.remarks);
        }
        Prepared::Header(Edit::SetHeader { name, text }) => set_header(message, name, text),
        Prepared::Header(Edit::RenameHeader { from, to }) => rename_header(message, from, to)?,
        Prepared::Header(Edit::RemoveHeader { name }) => {
            message.headers.retain(|header| header.name != *name)
        }
        Prepared::Header(_) => {}
    }
    Ok(Vec::new())
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
        let resolver = Resolver::offline();
        for edit in prepare(&edits).expect("good edits") {
            assert_eq!(apply(&edit, &mut message, &resolver), Ok(Vec::new()));
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
        assert!(apply(&Prepared::Header(missing), &mut message, &resolver).is_err());
    }

    #[test]
    fn bodies_change_inside_their_format_and_bad_edits_are_found_at_once() {
        let mut message = Message {
            body: Some("{\"id\":9007199254740993}".into()),
            ..Message::default()
        };
        let set = Edit::Set {
            pointer: "/currency".to_owned(),
            json: "\"EUR\"".to_owned(),
        };
        let edits = prepare(&[set]).expect("a good edit");
        let applied = apply(&edits[0], &mut message, &Resolver::offline());
        assert!(applied.is_ok(), "{applied:?}");
        let body = message.body.as_deref().map(String::from_utf8_lossy);
        assert_eq!(
            body.as_deref(),
            Some("{\"id\":9007199254740993,\"currency\":\"EUR\"}")
        );
        assert!(
            prepare(&[Edit::Jq {
                program: "(".to_owned()
            }])
            .is_err()
        );
    }
}
