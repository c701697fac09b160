//! What readers read from: a delivery's headers by name, and dialects that are nothing but a list of names.

use std::{borrow::Cow, cell::OnceCell};

use dlo_core::{Delivery, Value};

use super::{
    Confidence, Death,
    field::{Field, fill},
};

/// Bodies up to this size are read for marks inside them (Dramatiq, Lambda, EasyNetQ).
const LARGEST_BODY: usize = 4 << 20;

/// A delivery, with its body parsed at most once.
pub(super) struct Marks<'a> {
    pub(super) delivery: &'a Delivery,
    names: Names,
    object_text: OnceCell<Option<&'a str>>,
    json: OnceCell<Option<serde_json::Value>>,
}

/// Which names there may be, as one bit each. A message has few headers and all dialects together ask for about a hundred, nearly
/// all of which are absent, so most questions end here.
#[derive(Default)]
struct Names([u64; 4]);

impl Names {
    fn place(name: &str) -> (usize, u64) {
        let bytes = name.as_bytes();
        let (first, last) = (bytes.first(), bytes.last());
        let mix = |byte: Option<&u8>, by: usize| usize::from(byte.copied().unwrap_or(0)) * by;
        let hash =
            bytes.len() * 31 + mix(first, 7) + mix(last, 13) + mix(bytes.get(bytes.len() / 2), 3);
        ((hash >> 6) & 3, 1 << (hash & 63))
    }

    fn add(&mut self, name: &str) {
        let (word, bit) = Self::place(name);
        self.0[word] |= bit;
    }

    fn may_have(&self, name: &str) -> bool {
        let (word, bit) = Self::place(name);
        self.0[word] & bit != 0
    }
}

impl<'a> Marks<'a> {
    pub(super) fn new(delivery: &'a Delivery) -> Self {
        let mut names = Names::default();
        for header in &delivery.message.headers {
            names.add(&header.name);
        }
        Self {
            delivery,
            names,
            object_text: OnceCell::new(),
            json: OnceCell::new(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    pub(super) fn first(&self, name: &str) -> Option<&'a Value> {
        let known = self.names.may_have(name);
        known.then(|| self.delivery.message.header(name)).flatten()
    }

    /// The last of that name: where frameworks append, it is the newest.
    pub(super) fn last(&self, name: &str) -> Option<&'a Value> {
        self.all(name).last()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        let headers = self.delivery.message.headers.iter();
        headers
            .filter(move |header| header.name == name)
            .map(dlo_core::Header::value)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.first(name).and_then(Value::as_text)
    }

    pub(super) fn body(&self) -> Option<&'a [u8]> {
        self.delivery.message.body.as_deref()
    }

    /// The body as a JSON object, when it is one and holds all these names.
    ///
    /// The names are searched as plain bytes first, because most bodies hold none of them and need not be parsed.
    pub(super) fn object_with(&self, names: &[&str]) -> Option<&serde_json::Value> {
        let text = (*self.object_text.get_or_init(|| self.read_object_text()))?;
        if !names.iter().all(|name| text.contains(name)) {
            return None;
        }
        let json = self.json.get_or_init(|| serde_json::from_str(text).ok());
        json.as_ref().filter(|json| {
            names
                .iter()
                .all(|name| json.get(name.trim_matches('"')).is_some())
        })
    }

    fn read_object_text(&self) -> Option<&'a str> {
        let body = self.body().filter(|body| body.len() <= LARGEST_BODY)?;
        let start = body.iter().position(|byte| !byte.is_ascii_whitespace())?;
        (body[start] == b'{').then(|| std::str::from_utf8(body).ok())?
    }
}

/// Which of several headers of one name is the newest.
#[derive(Clone, Copy)]
pub(super) enum Newest {
    First,
    Last,
}

/// A dialect that writes each field as one header.
pub(super) struct Plain {
    pub(super) dialect: &'static str,
    /// Each of these headers marks the dialect; the first one also counts the deaths when headers repeat.
    pub(super) marks: &'static [&'static str],
    pub(super) confidence: Confidence,
    pub(super) newest: Newest,
    /// Which header fills which field; of several for one field the first that is there.
    pub(super) fields: &'static [(Field, &'static str)],
    pub(super) scope: &'static str,
}

impl Plain {
    /// The deaths in this dialect, newest first.
    pub(super) fn read(&self, marks: &Marks<'_>) -> Vec<Death> {
        if !self.marks.iter().any(|name| marks.has(name)) {
            return Vec::new();
        }
        let count = marks.all(self.marks[0]).count().max(1);
        (0..count).map(|age| self.read_one(marks, age)).collect()
    }

    /// The death that is `age` deaths old. A field with fewer headers than deaths belongs to the newest ones.
    fn read_one(&self, marks: &Marks<'_>, age: usize) -> Death {
        let mut death = Death::new(self.dialect, self.confidence);
        for (field, name) in self.fields {
            if death.from.contains_key(field.path()) {
                continue;
            }
            let values: Vec<&Value> = marks.all(name).collect();
            let index = match self.newest {
                Newest::First => Some(age),
                Newest::Last => values.len().checked_sub(age + 1),
            };
            if let Some(value) = index.and_then(|index| values.get(index)) {
                fill(&mut death, *field, value, name);
            }
        }
        if death.attempts.is_some() {
            death.scope = Some(Cow::Borrowed(self.scope));
        }
        death
    }
}
