//! Values nested deeper than JSON readers allow, written as one flat list of tokens.
//!
//! AMQP sets no limit to how deep tables may lie in each other, and JSON readers do (128 is common), so a message made to
//! annoy could be exported and never imported again. Such a value becomes `{"flat": […]}` in prefix order: `["table", 2]` is
//! followed by two times name, type and value; `["list", 2]` by two times type and value; `["value", v]` holds one that is
//! neither, in its usual form. Writing and reading use no recursion.

use dlo_core::{Header, Typed, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    value::Form,
    write::{push_string, push_value},
};

/// Tables and lists down to this depth are written as nested arrays. Each level takes two of the 128 that serde_json allows.
pub(super) const DEEPEST: usize = 48;

enum Step<'a> {
    Name(&'a str),
    Value(&'a Value),
}

pub(super) fn push(out: &mut String, value: &Value) {
    out.push_str(r#"{"flat":["#);
    let mut steps = vec![Step::Value(value)];
    let mut separator = "";
    while let Some(step) = steps.pop() {
        out.push_str(separator);
        separator = ",";
        match step {
            Step::Name(name) => push_string(out, name),
            Step::Value(Value::Table(entries)) => {
                push_count(out, "table", entries.len());
                for entry in entries.iter().rev() {
                    steps.push(Step::Value(&entry.typed.value));
                    steps.push(Step::Name(&entry.typed.kind));
                    steps.push(Step::Name(&entry.name));
                }
            }
            Step::Value(Value::List(items)) => {
                push_count(out, "list", items.len());
                for item in items.iter().rev() {
                    steps.push(Step::Value(&item.value));
                    steps.push(Step::Name(&item.kind));
                }
            }
            Step::Value(scalar) => {
                out.push_str(r#""value","#);
                push_value(out, scalar, "", 0);
            }
        }
    }
    out.push_str("]}");
}

fn push_count(out: &mut String, word: &str, count: usize) {
    push_string(out, word);
    out.push(',');
    out.push_str(&count.to_string());
}

/// The deepest value that is read. Memory of deep values is freed level by level on the stack, so a file made to annoy could end
/// the program.
const DEEPEST_READ: usize = 2000;

/// A table or list whose entries are still being read.
struct Open {
    left: usize,
    value: Value,
    /// Where the table or list itself belongs: its name and type in the one around it.
    name: String,
    kind: String,
}

/// Reads the tokens of a flat value again.
pub(super) fn read(tokens: &[&RawValue]) -> Result<Value, String> {
    let mut tokens = tokens.iter();
    let mut open: Vec<Open> = Vec::new();
    loop {
        if open.len() > DEEPEST_READ {
            return Err(format!("a flat value is deeper than {DEEPEST_READ} levels"));
        }
        let (name, kind) = read_place(open.last(), &mut tokens)?;
        let word = text(tokens.next())?;
        let mut done = match word.as_str() {
            "table" | "list" => {
                let left = number(tokens.next())?;
                let value = if word == "table" {
                    Value::Table(Vec::new())
                } else {
                    Value::List(Vec::new())
                };
                open.push(Open {
                    left,
                    value,
                    name,
                    kind,
                });
                None
            }
            "value" => Some((name, kind, scalar(tokens.next())?)),
            other => return Err(format!("\"{other}\" does not begin a flat value")),
        };
        loop {
            if let Some((name, kind, value)) = done.take() {
                let Some(around) = open.last_mut() else {
                    return finished(value, tokens.len());
                };
                add(around, name, kind, value);
            }
            match open.pop_if(|open| open.left == 0) {
                Some(full) => done = Some((full.name, full.kind, full.value)),
                None => break,
            }
        }
    }
}

fn finished(value: Value, left_over: usize) -> Result<Value, String> {
    if left_over == 0 {
        Ok(value)
    } else {
        Err(format!("a flat value has {left_over} tokens too many"))
    }
}

fn read_place(
    around: Option<&Open>,
    tokens: &mut std::slice::Iter<'_, &RawValue>,
) -> Result<(String, String), String> {
    match around.map(|open| &open.value) {
        None => Ok((String::new(), String::new())),
        Some(Value::Table(_)) => Ok((text(tokens.next())?, text(tokens.next())?)),
        Some(_) => Ok((String::new(), text(tokens.next())?)),
    }
}

fn add(around: &mut Open, name: String, kind: String, value: Value) {
    around.left -= 1;
    match &mut around.value {
        Value::Table(entries) => entries.push(Header::new(name, kind, value)),
        Value::List(items) => items.push(Typed::new(kind, value)),
        _ => {}
    }
}

fn text(token: Option<&&RawValue>) -> Result<String, String> {
    let token = token.ok_or("a flat value ends too early")?;
    String::deserialize(&mut serde_json::Deserializer::from_str(token.get()))
        .map_err(|_| format!("{} should be a name in a flat value", token.get()))
}

fn number(token: Option<&&RawValue>) -> Result<usize, String> {
    let token = token.ok_or("a flat value ends too early")?;
    let number = token.get().parse();
    number.map_err(|_| format!("{} should be a count in a flat value", token.get()))
}

fn scalar(token: Option<&&RawValue>) -> Result<Value, String> {
    let token = token.ok_or("a flat value ends too early")?;
    let form: Form = serde_json::from_str(token.get()).map_err(|error| error.to_string())?;
    Ok(form.into_value(""))
}
