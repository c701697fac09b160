//! JSON Pointers (RFC 6901): how a place in a document is named, copied and found.

use super::Document;

/// One step into a document.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A place in a document, from its root.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// The path of an entry of an object at this path.
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Step::Key(key.into()))
    }

    /// The path of an item of a list at this path.
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

/// A JSON Pointer: `""` for the root, else `/` before each step.
impl std::fmt::Display for Path {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for step in &self.0 {
            match step {
                Step::Key(key) => write!(out, "/{}", escape(key))?,
                Step::Index(index) => write!(out, "/{index}")?,
            }
        }
        Ok(())
    }
}

/// The parts of a JSON Pointer, unescaped. An error says what is wrong with the pointer.
pub fn parse(pointer: &str) -> Result<Vec<String>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(format!(
            "\"{pointer}\" is not a JSON Pointer: it must be empty or begin with /"
        ));
    };
    Ok(rest.split('/').map(unescape).collect())
}

/// Finds the value at a JSON Pointer.
pub fn find<'a>(document: &'a Document, pointer: &str) -> Option<&'a Document> {
    let parts = parse(pointer).ok()?;
    parts.iter().try_fold(document, |at, part| match at {
        Document::List(_) => at.at(index(part)?),
        _ => at.get(part),
    })
}

/// A list index as RFC 6901 writes it: digits without a leading zero.
pub fn index(part: &str) -> Option<usize> {
    let plain =
        part == "0" || (!part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit()));
    plain.then(|| part.parse().ok()).flatten()
}

/// A key as a part of a pointer.
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_by_pointer() {
        let document = Document::Map(vec![(
            "a/b".into(),
            Document::List(vec![Document::Null, Document::int(7)]),
        )]);
        assert_eq!(find(&document, "/a~1b/1"), Some(&Document::int(7)));
        assert_eq!(find(&document, "/a~1b/01"), None);
        assert_eq!(find(&document, ""), Some(&document));
        assert_eq!(Path::default().key("a/b").index(1).to_string(), "/a~1b/1");
        assert!(parse("a").unwrap_err().contains("begin with /"));
    }
}
