//! JSON Pointers into a decoded body, with `*` for any element, and what is asked of the values there.

use std::cmp::Ordering;

use dlo_core::Millis;
use regex::bytes::Regex;
use serde_json::Value as Json;

use super::{field::Compare, number::Number};

/// The most values that one test visits in one message.
pub(super) const BUDGET: usize = 200_000;

/// One step of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Name(String),
    Any,
}

/// The steps of a pointer such as `/items/*/sku`; `~1` is a slash and `~0` a tilde (RFC 6901).
pub(super) fn steps(pointer: &str) -> Vec<Step> {
    let names = pointer.split('/').skip(1);
    names
        .map(|name| match name {
            "*" => Step::Any,
            _ => Step::Name(name.replace("~1", "/").replace("~0", "~")),
        })
        .collect()
}

/// What is asked of the value at a pointer.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Exists,
    Compare(Compare, Literal),
    /// Some text or number at or below it matches.
    Matches(Regex),
}

/// A value as it stands in a query.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    pub(super) text: String,
    /// Without quotes it may also be a number, a boolean or null.
    pub(super) bare: Option<Bare>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Null,
    Bool(bool),
    Number(Number),
}

impl Literal {
    pub(super) fn quoted(text: String) -> Self {
        Self { text, bare: None }
    }

    pub(super) fn bare(text: String) -> Self {
        let bare = match text.as_str() {
            "null" => Some(Bare::Null),
            "true" => Some(Bare::Bool(true)),
            "false" => Some(Bare::Bool(false)),
            _ => Number::parse(&text).map(Bare::Number),
        };
        Self { text, bare }
    }
}

/// True when some value at the pointer answers the question with yes.
pub(super) fn any(json: &Json, steps: &[Step], ask: &Ask) -> bool {
    let mut budget = BUDGET;
    let mut open = vec![(json, 0)];
    while let Some((value, depth)) = open.pop() {
        if budget == 0 {
            return false;
        }
        budget -= 1;
        match steps.get(depth) {
            None if answers(value, ask, &mut budget) => return true,
            None => {}
            Some(Step::Name(name)) => {
                open.extend(child(value, name).map(|child| (child, depth + 1)))
            }
            Some(Step::Any) => push_children(value, |child| open.push((child, depth + 1))),
        }
    }
    false
}

fn child<'a>(value: &'a Json, name: &str) -> Option<&'a Json> {
    match value {
        Json::Object(entries) => entries.get(name),
        Json::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn push_children<'a>(value: &'a Json, mut push: impl FnMut(&'a Json)) {
    match value {
        Json::Object(entries) => entries.values().for_each(push),
        Json::Array(items) => items.iter().for_each(&mut push),
        _ => {}
    }
}

fn answers(value: &Json, ask: &Ask, budget: &mut usize) -> bool {
    match ask {
        Ask::Exists => true,
        Ask::Compare(compare, literal) => compare_value(value, *compare, literal),
        Ask::Matches(pattern) => any_leaf(value, pattern, budget),
    }
}

/// True when some text, number, boolean or name at or below the value matches.
pub(super) fn any_leaf(value: &Json, pattern: &Regex, budget: &mut usize) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        let found = match value {
            Json::String(text) => pattern.is_match(text.as_bytes()),
            Json::Number(number) => pattern.is_match(number.to_string().as_bytes()),
            Json::Bool(true) => pattern.is_match(b"true"),
            Json::Bool(false) => pattern.is_match(b"false"),
            Json::Object(entries) => entries.keys().any(|name| pattern.is_match(name.as_bytes())),
            _ => false,
        };
        if found {
            return true;
        }
        push_children(value, |child| open.push(child));
    }
    false
}

fn compare_value(value: &Json, compare: Compare, literal: &Literal) -> bool {
    match order(value, literal) {
        Some(order) => compare.accepts(order),
        // Values that cannot be compared are at least different.
        None => compare == Compare::Unequal,
    }
}

fn order(value: &Json, literal: &Literal) -> Option<Ordering> {
    match (value, &literal.bare) {
        (Json::Null, Some(Bare::Null)) => Some(Ordering::Equal),
        (Json::Bool(value), Some(Bare::Bool(wanted))) => Some(value.cmp(wanted)),
        (Json::Number(number), Some(Bare::Number(wanted))) => {
            Number::parse(&number.to_string()).map(|number| number.cmp(wanted))
        }
        (Json::String(text), bare) => Some(text_order(text, literal, bare.as_ref())),
        _ => None,
    }
}

/// Numbers in strings and times are compared as what they mean, if both sides are.
fn text_order(text: &str, literal: &Literal, bare: Option<&Bare>) -> Ordering {
    if let (Some(Bare::Number(wanted)), Some(number)) = (bare, Number::parse(text)) {
        return number.cmp(wanted);
    }
    match (Millis::parse(text), Millis::parse(&literal.text)) {
        (Some(time), Some(wanted)) => time.cmp(&wanted),
        _ => text.cmp(&literal.text),
    }
}
