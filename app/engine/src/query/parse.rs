//! The parser. It works on the text itself, because what ends a word depends on what stands before it: `a:b` is a word,
//! `key:b` is a test.

use regex::bytes::{Regex, RegexBuilder};

use super::{
    Node, QueryError,
    field::{Compare, FIELDS, Field, Is, NumberField, Test, TextAsk, TextField, TimeField},
    json::{self, Ask, Literal},
    number::Number,
    time::Moment,
};

/// The longest query in bytes, and how deep it may be nested.
const LONGEST: usize = 64 << 10;
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str) -> Result<Node, QueryError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    if text.len() > LONGEST {
        return Err(parser.wrong(format!("the query is longer than {LONGEST} bytes")));
    }
    parser.skip_space();
    if parser.rest().is_empty() {
        return Ok(Node::All(Vec::new()));
    }
    let node = parser.any()?;
    parser.skip_space();
    if parser.rest().is_empty() {
        Ok(node)
    } else {
        // Everything but this one is read as part of a word or a test.
        Err(parser.wrong("there is no ( for this ); take it away or put it in quotes"))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// An operator as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Contains,
    Compare(Compare),
    Matches,
    MatchesNot,
}

const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::Compare(Compare::Unequal)),
    ("!~", Operator::MatchesNot),
    (">=", Operator::Compare(Compare::GreaterEqual)),
    ("<=", Operator::Compare(Compare::LessEqual)),
    ("==", Operator::Compare(Compare::Equal)),
    ("=~", Operator::Matches),
    ("=", Operator::Compare(Compare::Equal)),
    (">", Operator::Compare(Compare::Greater)),
    ("<", Operator::Compare(Compare::Less)),
    ("~", Operator::Matches),
    (":", Operator::Contains),
];

/// A value with its place, for messages.
struct Written {
    text: String,
    quoted: bool,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&self, problem: impl Into<String>) -> QueryError {
        self.wrong_at(self.at, problem)
    }

    fn wrong_at(&self, at: usize, problem: impl Into<String>) -> QueryError {
        QueryError {
            column: self.text[..at].chars().count() + 1,
            problem: problem.into(),
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a word such as `OR` when it stands alone.
    fn take_word(&mut self, word: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(word) else {
            return false;
        };
        let alone = !word.ends_with(char::is_alphanumeric)
            || after.is_empty()
            || after.starts_with(|c: char| c.is_whitespace() || c == '(' || c == ')');
        if alone {
            self.at += word.len();
        }
        alone
    }

    fn any(&mut self) -> Result<Node, QueryError> {
        let mut nodes = vec![self.all()?];
        loop {
            self.skip_space();
            if !["OR", "||"].iter().any(|word| self.take_word(word)) {
                break;
            }
            nodes.push(self.all()?);
        }
        Ok(one_or(nodes, Node::Any))
    }

    fn all(&mut self) -> Result<Node, QueryError> {
        let mut nodes = vec![self.not()?];
        loop {
            self.skip_space();
            let explicit = ["AND", "&&"].iter().any(|word| self.take_word(word));
            if !explicit && self.ends_all() {
                break;
            }
            nodes.push(self.not()?);
        }
        Ok(one_or(nodes, Node::All))
    }

    fn ends_all(&self) -> bool {
        let rest = self.rest();
        let or = rest.strip_prefix("OR").is_some_and(|after| {
            after.is_empty()
                || after.starts_with(|c: char| c.is_whitespace() || c == '(' || c == ')')
        });
        rest.is_empty() || rest.starts_with(')') || rest.starts_with("||") || or
    }

    fn not(&mut self) -> Result<Node, QueryError> {
        self.skip_space();
        let minus = |rest: &str| {
            rest.starts_with('-') && rest[1..].starts_with(|c: char| !c.is_whitespace() && c != '-')
        };
        let negated = self.take_word("NOT")
            || (!self.rest().starts_with("!~") && self.take_word("!"))
            || (minus(self.rest()) && self.take_word("-"));
        if !negated {
            return self.primary();
        }
        self.deeper()?;
        let node = self.not()?;
        self.depth -= 1;
        Ok(Node::Not(Box::new(node)))
    }

    fn deeper(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("the query is nested deeper than {DEEPEST} levels")));
        }
        Ok(())
    }

    fn primary(&mut self) -> Result<Node, QueryError> {
        self.skip_space();
        let rest = self.rest();
        match rest.chars().next() {
            None => Err(self.wrong("something to look for is expected here: a word, a test such as key:A-1, or (")),
            Some('(') => self.parenthesis(),
            Some(')') => Err(self.wrong("something to look for is expected before this )")),
            Some('/') => self.pointer(),
            Some('~') => {
                self.at += 1;
                let value = self.value("~", "a regular expression")?;
                Ok(text(TextField::Anywhere, TextAsk::Matches(self.regex(&value)?)))
            }
            Some('"' | '\'') => {
                let value = self.value("", "a text")?;
                Ok(text(TextField::Anywhere, self.contains(&value)?))
            }
            Some(_) if ["OR", "AND", "||", "&&"].iter().any(|word| self.take_word(word)) => {
                Err(self.wrong_at(self.text.len() - rest.len(), "something to look for is expected before this word; put it in quotes to look for the word itself"))
            }
            Some(_) => self.word_or_test(),
        }
    }

    fn parenthesis(&mut self) -> Result<Node, QueryError> {
        let opened = self.at;
        self.deeper()?;
        self.at += 1;
        let node = self.any()?;
        self.depth -= 1;
        self.skip_space();
        if !self.rest().starts_with(')') {
            return Err(self.wrong_at(opened, "this ( has no )"));
        }
        self.at += 1;
        Ok(node)
    }

    fn word_or_test(&mut self) -> Result<Node, QueryError> {
        let start = self.at;
        if let Some(field) = self.named_field()? {
            return self.header_test(field);
        }
        let name_length = self
            .rest()
            .bytes()
            .take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            .count();
        let name = &self.rest()[..name_length];
        self.at += name_length;
        if let Some(field) = Field::named(name) {
            if let Some(operator) = self.operator() {
                return self.test(field, name, operator);
            }
        } else if name_length > 0 {
            self.refuse_unknown(name, start)?;
        }
        self.at = start;
        let word = self.bare_word();
        Ok(text(TextField::Anywhere, self.contains(&word)?))
    }

    /// A comparison with a word that is no field is a mistake; a colon may stand in any text.
    fn refuse_unknown(&mut self, name: &str, start: usize) -> Result<(), QueryError> {
        let after = self.at;
        let operator = self.operator();
        self.at = after;
        match operator {
            None | Some(Operator::Contains) => Ok(()),
            Some(_) => {
                let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
                Err(self.wrong_at(start, format!(
                    "{name} is no field; use /{name} for a field of the body, header.{name} for a header, quotes to look for this text, or one of {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// `header.NAME`, `property.NAME` or `fact.NAME`; the name may stand in quotes.
    fn named_field(&mut self) -> Result<Option<TextField>, QueryError> {
        for (prefix, field) in [
            ("header.", TextField::Header as fn(String) -> TextField),
            ("property.", TextField::Property),
            ("fact.", TextField::Fact),
        ] {
            if self.rest().starts_with(prefix) {
                self.at += prefix.len();
                if self.rest().starts_with(['"', '\'']) {
                    let name = self.value(prefix, "a name")?.text;
                    return Ok(Some(field(name)));
                }
                let name = self.until(|c| c.is_whitespace() || "()=<>~!:".contains(c));
                if name.is_empty() {
                    return Err(self.wrong(format!(
                        "a name is expected after {prefix}, for example {prefix}tenant"
                    )));
                }
                return Ok(Some(field(name)));
            }
        }
        Ok(None)
    }

    fn header_test(&mut self, field: TextField) -> Result<Node, QueryError> {
        match self.operator() {
            None => Ok(text(field, TextAsk::Exists)),
            Some(Operator::Compare(compare))
                if !matches!(compare, Compare::Equal | Compare::Unequal) =>
            {
                let value = self.value("the comparison", "a number or text, for example 3")?;
                Ok(text(field, TextAsk::Order(compare, literal(value))))
            }
            Some(operator) => self.text_test(field, operator),
        }
    }

    /// An operator with the spaces around it. A colon must follow at once, or else it is part of a text.
    fn operator(&mut self) -> Option<Operator> {
        let start = self.at;
        self.skip_space();
        let spaced = self.at > start;
        let found = OPERATORS
            .iter()
            .find(|(sign, _)| self.rest().starts_with(sign));
        match found {
            Some((_, Operator::Contains)) if spaced => {}
            Some((sign, operator)) => {
                self.at += sign.len();
                return Some(*operator);
            }
            None => {}
        }
        self.at = start;
        None
    }

    fn test(&mut self, field: Field, name: &str, operator: Operator) -> Result<Node, QueryError> {
        match field {
            Field::Text(field) => self.text_test(field, operator),
            Field::Number(field) => self.number_test(field, name, operator),
            Field::Time(field) => self.time_test(field, name, operator),
            Field::Is => self.is_test(),
        }
    }

    fn text_test(&mut self, field: TextField, operator: Operator) -> Result<Node, QueryError> {
        let at = self.at;
        match operator {
            Operator::Contains => {
                let value = self.value(":", "a text")?;
                Ok(text(field, self.contains(&value)?))
            }
            Operator::Matches | Operator::MatchesNot => {
                let value = self.value("~", "a regular expression")?;
                let node = text(field, TextAsk::Matches(self.regex(&value)?));
                Ok(negate_if(operator == Operator::MatchesNot, node))
            }
            Operator::Compare(compare @ (Compare::Equal | Compare::Unequal)) => {
                let value = self.value("=", "a text")?;
                let ask = if value.text == "null" && !value.quoted { TextAsk::Null } else { TextAsk::Is(value.text) };
                Ok(negate_if(compare == Compare::Unequal, text(field, ask)))
            }
            Operator::Compare(_) => Err(self.wrong_at(at, "this field holds text: use : for contains, = for is, or ~ for a regular expression")),
        }
    }

    fn number_test(
        &mut self,
        field: NumberField,
        name: &str,
        operator: Operator,
    ) -> Result<Node, QueryError> {
        let at = self.at;
        let example = if name == "size" {
            "a number such as 10kB"
        } else {
            "a number such as 3"
        };
        let compare = match operator {
            Operator::Contains => Compare::Equal,
            Operator::Compare(compare) => compare,
            Operator::Matches | Operator::MatchesNot => {
                return Err(self.wrong_at(
                    at,
                    format!("{name} is a number: compare it with = > >= < <="),
                ));
            }
        };
        let value = self.value(name, example)?;
        let bad = |parser: &Self| {
            parser.wrong_at(
                value.at,
                format!("\"{}\" is no number; {example} is expected", value.text),
            )
        };
        if let Some((from, until)) = value.text.split_once("..") {
            let (from, until) = (number(from), number(until));
            let (from, until) = from.zip(until).ok_or_else(|| bad(self))?;
            return self.range(compare, value.at, Test::NumberRange(field, from, until));
        }
        let wanted = number(&value.text).ok_or_else(|| bad(self))?;
        Ok(Node::Test(Box::new(Test::Number(field, compare, wanted))))
    }

    fn time_test(
        &mut self,
        field: TimeField,
        name: &str,
        operator: Operator,
    ) -> Result<Node, QueryError> {
        const EXAMPLE: &str = "a time such as 2026-11-30T02:40 or an age such as 2h";
        let at = self.at;
        let compare = match operator {
            Operator::Contains => Compare::Equal,
            Operator::Compare(compare) => compare,
            Operator::Matches | Operator::MatchesNot => {
                return Err(
                    self.wrong_at(at, format!("{name} is a time: compare it with = > >= < <="))
                );
            }
        };
        let value = self.value(name, EXAMPLE)?;
        let bad = |parser: &Self| {
            parser.wrong_at(
                value.at,
                format!("\"{}\" is no time; {EXAMPLE} is expected", value.text),
            )
        };
        if let Some((from, until)) = value.text.split_once("..") {
            let (from, until) = (Moment::parse(from), Moment::parse(until));
            let (from, until) = from.zip(until).ok_or_else(|| bad(self))?;
            return self.range(compare, value.at, Test::TimeRange(field, from, until));
        }
        let moment = Moment::parse(&value.text).ok_or_else(|| bad(self))?;
        if moment.is_age() && matches!(compare, Compare::Equal | Compare::Unequal) {
            return Err(self.wrong_at(value.at, "an age is compared with > (older) or < (younger)"));
        }
        Ok(Node::Test(Box::new(Test::Time(field, compare, moment))))
    }

    fn range(&self, compare: Compare, at: usize, test: Test) -> Result<Node, QueryError> {
        let node = Node::Test(Box::new(test));
        match compare {
            Compare::Equal => Ok(node),
            Compare::Unequal => Ok(Node::Not(Box::new(node))),
            _ => Err(self.wrong_at(at, "a range from..until is written after : or =")),
        }
    }

    fn is_test(&mut self) -> Result<Node, QueryError> {
        let value = self.value("is:", "pointer, null, empty or dead")?;
        let is =
            match value.text.as_str() {
                "pointer" => Is::Pointer,
                "null" | "tombstone" => Is::Null,
                "empty" => Is::Empty,
                "dead" => Is::Dead,
                other => return Err(self.wrong_at(
                    value.at,
                    format!(
                        "\"{other}\" is not known here; pointer, null, empty or dead is expected"
                    ),
                )),
            };
        Ok(Node::Test(Box::new(Test::Is(is))))
    }

    fn pointer(&mut self) -> Result<Node, QueryError> {
        let pointer = self.pointer_text();
        let steps = json::steps(&pointer);
        let (ask, negated) = match self.operator() {
            None => (Ask::Exists, false),
            Some(Operator::Contains) => {
                let value = self.value(":", "a text")?;
                (Ask::Matches(self.literal_pattern(&value)?), false)
            }
            Some(operator @ (Operator::Matches | Operator::MatchesNot)) => {
                let value = self.value("~", "a regular expression")?;
                (
                    Ask::Matches(self.regex(&value)?),
                    operator == Operator::MatchesNot,
                )
            }
            // Also true when the field is missing, so that `!=` is the opposite of `=`.
            Some(Operator::Compare(Compare::Unequal)) => {
                let value = self.value("!=", "a value")?;
                (Ask::Compare(Compare::Equal, literal(value)), true)
            }
            Some(Operator::Compare(compare)) => {
                let value = self.value("the comparison", "a value, for example 3 or \"text\"")?;
                (Ask::Compare(compare, literal(value)), false)
            }
        };
        Ok(negate_if(
            negated,
            Node::Test(Box::new(Test::Json { steps, ask })),
        ))
    }

    /// A pointer ends before a space or an operator; `~0` and `~1` are part of it, and a quoted part may hold anything.
    fn pointer_text(&mut self) -> String {
        let mut pointer = String::new();
        while let Some(c) = self.rest().chars().next() {
            let escape = c == '~' && self.rest()[1..].starts_with(['0', '1']);
            if c == '"'
                && let Some(end) = self.rest()[1..].find('"')
            {
                let part = &self.rest()[1..=end];
                pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
                self.at += end + 2;
                continue;
            }
            if !escape && (c.is_whitespace() || "()=<>~!:\"".contains(c)) {
                break;
            }
            pointer.push(c);
            self.at += c.len_utf8();
        }
        pointer
    }

    /// A value: quoted, or up to the next space or parenthesis.
    fn value(&mut self, after: &str, what: &str) -> Result<Written, QueryError> {
        self.skip_space();
        let at = self.at;
        let quote = self
            .rest()
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\''));
        if let Some(quote) = quote {
            let text = self.quoted(quote)?;
            return Ok(Written {
                text,
                quoted: true,
                at,
            });
        }
        let text = self.until(|c| c.is_whitespace() || c == '(' || c == ')');
        if text.is_empty() {
            let after = if after.is_empty() {
                String::new()
            } else {
                format!(" after {after}")
            };
            return Err(self.wrong(format!("{what} is expected{after}")));
        }
        Ok(Written {
            text,
            quoted: false,
            at,
        })
    }

    /// A backslash makes the next quote or backslash part of the text; before anything else it is itself, as in a regular expression.
    fn quoted(&mut self, quote: char) -> Result<String, QueryError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut escaped = false;
        for (offset, c) in self.rest().char_indices() {
            match c {
                _ if escaped => {
                    if c != quote && c != '\\' {
                        text.push('\\');
                    }
                    text.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                _ if c == quote => {
                    self.at += offset + c.len_utf8();
                    return Ok(text);
                }
                _ => text.push(c),
            }
        }
        Err(self.wrong_at(
            start,
            format!("this quote has no end; a {quote} is expected"),
        ))
    }

    fn bare_word(&mut self) -> Written {
        let at = self.at;
        Written {
            text: self.until(|c| c.is_whitespace() || c == '(' || c == ')'),
            quoted: false,
            at,
        }
    }

    fn contains(&self, value: &Written) -> Result<TextAsk, QueryError> {
        self.literal_pattern(value).map(TextAsk::Matches)
    }

    /// Text as a pattern that takes upper and lower case for the same. It can only be too long.
    fn literal_pattern(&self, value: &Written) -> Result<Regex, QueryError> {
        build(&format!("(?i){}", regex::escape(&value.text)))
            .map_err(|_| self.wrong_at(value.at, "this text is too long to look for"))
    }

    fn until(&mut self, ends: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let end = rest.find(ends).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn regex(&self, value: &Written) -> Result<Regex, QueryError> {
        build(&value.text).map_err(|error| {
            let text = error.to_string();
            let problem = text
                .lines()
                .last()
                .unwrap_or(&text)
                .trim_start_matches("error: ");
            self.wrong_at(
                value.at,
                format!("\"{}\" is no regular expression: {problem}", value.text),
            )
        })
    }
}

fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(4 << 20)
        .dfa_size_limit(8 << 20)
        .build()
}

fn text(field: TextField, ask: TextAsk) -> Node {
    Node::Test(Box::new(Test::Text(field, ask)))
}

fn literal(value: Written) -> Literal {
    if value.quoted {
        Literal::quoted(value.text)
    } else {
        Literal::bare(value.text)
    }
}

fn negate_if(negate: bool, node: Node) -> Node {
    if negate {
        Node::Not(Box::new(node))
    } else {
        node
    }
}

fn one_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(node) if nodes.is_empty() => node,
        Some(node) => {
            nodes.push(node);
            many(nodes)
        }
        None => many(nodes),
    }
}

/// A number, perhaps with a unit of size.
fn number(text: &str) -> Option<Number> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    for (unit, factor) in UNITS {
        let stripped = text
            .len()
            .checked_sub(unit.len())
            .filter(|at| text.is_char_boundary(*at))
            .map(|at| text.split_at(at));
        if let Some((digits, _)) = stripped.filter(|(_, end)| end.eq_ignore_ascii_case(unit)) {
            return Number::parse(digits)?.times(factor);
        }
    }
    Number::parse(text)
}
