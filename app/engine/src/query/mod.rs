//! The filter language of `--match QUERY` and of the window's filter field.
//!
//! Separate from the store and from the connectors, because a query is parsed once, where a mistake can be shown at its place,
//! and then evaluated millions of times on whatever is at hand. Evaluation is pure and bounded: regular expressions run in
//! linear time, and walks through JSON stop after [`json::BUDGET`] values.
//!
//! ```text
//! query    = and { "OR" and }
//! and      = not { ["AND"] not }             words side by side must all match
//! not      = ["NOT" | "!" | "-"] primary
//! primary  = "(" query ")" | test
//! test     = word | "quoted words"           anywhere: body, key, headers, reason
//!          | "~" regex                       anywhere
//!          | field ":" value                 contains; upper and lower case are the same
//!          | field ("=" | "!=") value        is exactly; null (without quotes) is a null key or body
//!          | field ("~" | "!~") regex        case counts; (?i) makes it not count
//!          | number compare value            compare: = != > >= < <=, or ":" with a range a..b
//!          | time compare (time | age)       time > 2h is older than two hours
//!          | pointer [compare value]         a JSON Pointer into the decoded body; alone: it is there; "*" is any
//!          | "header." name [test]           alone: it is there; also property.NAME and fact.NAME
//! ```
//!
//! An empty query matches everything.

mod eval;
mod field;
mod json;
mod number;
mod parse;
mod time;

use dlo_core::{Delivery, Millis};

use crate::{dead_letter::Death, group::Class};

pub use field::FIELDS;

/// A query that was understood.
#[derive(Clone, Debug)]
pub struct Query {
    node: Node,
    needs_json: bool,
}

/// What a query is asked of.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub delivery: &'a Delivery,
    pub death: Option<&'a Death>,
    /// The decoded body. Without it a body that is JSON itself is parsed when a test needs it.
    pub json: Option<&'a serde_json::Value>,
    /// The label of the failure group.
    pub group: Option<&'a str>,
    pub class: Option<Class>,
    /// The time from which ages are counted.
    pub now: Millis,
}

impl<'a> Subject<'a> {
    /// A delivery of which nothing else is known.
    pub fn new(delivery: &'a Delivery, death: Option<&'a Death>, now: Millis) -> Self {
        Self {
            delivery,
            death,
            json: None,
            group: None,
            class: None,
            now,
        }
    }
}

/// Why a query was not understood, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct QueryError {
    /// Characters from the beginning, from 1.
    pub column: usize,
    /// What is wrong and what is expected.
    pub problem: String,
}

impl QueryError {
    /// The query with a mark under the column, and the problem below: three lines for a terminal.
    pub fn pointing_into(&self, query: &str) -> String {
        let line = query.replace(['\n', '\t'], " ");
        format!(
            "{line}\n{}^\n{}",
            " ".repeat(self.column.saturating_sub(1)),
            self.problem
        )
    }
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// Points at the column and says what is expected there.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let node = parse::parse(text)?;
        Ok(Self {
            needs_json: node.needs_json(),
            node,
        })
    }

    /// True when it asks for a field of the body, so that a body which is not JSON has to be decoded first.
    pub fn needs_json(&self) -> bool {
        self.needs_json
    }

    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        eval::Evaluation::new(subject).node(&self.node)
    }
}

/// The filter language in a few lines, for `dlo explain query` and the window.
pub fn help() -> &'static str {
    HELP
}

const HELP: &str = "\
timeout db-3                   both words anywhere: body, key, headers, reason
\"connection refused\"           these words together
timeout OR refused             either; also AND, NOT, ( )
-timeout                       not; also !timeout and NOT timeout
key:A-1   key = \"A-1\"          the key contains this; is exactly this
header.tenant = eu             a header; header.tenant alone: it is there
reason:NullPointer             exception, message or stack
class:bug   class:KeyError     the class of the failure, or the exception
origin:orders                  queue, topic, exchange or routing key it came from
group:price   consumer:billing the failure group; the consumer group or handler
/order/total >= 100            a field of the decoded body, by JSON Pointer
/items/*/sku:AB                any element
/currency                      the field is there; NOT /currency: it is not
time > 2h                      died more than two hours ago; also s, m, d, w
time > 2026-11-30T02:40        later than; in UTC unless it says +01:00
time:2026-11-30..2026-12-01    from … to …; one day: time:2026-11-30
attempts >= 3   size > 10kB    also partition, offset, deliveries
body = null                    a null body; body = \"\": an empty one
is:pointer                     also is:null, is:empty, is:dead
reason ~ \"db-[0-9]+\"           a regular expression; case counts, (?i) makes it not count
";

/// A query as a tree.
#[derive(Clone, Debug)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Box<field::Test>),
}

impl Node {
    fn needs_json(&self) -> bool {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().any(Self::needs_json),
            Self::Not(node) => node.needs_json(),
            Self::Test(test) => matches!(**test, field::Test::Json { .. }),
        }
    }
}

#[cfg(test)]
mod tests;
