//! XML: checked to be well formed and then shown as the text it is.
//!
//! A tree would lose comments, prefixes and white space, and an edit of the text keeps every byte.
//! Entities are never expanded, so an entity bomb is only text.

use crate::limits::Budget;
use crate::report::Refusal;

/// Checks that text is one well formed XML document: tags match, attributes are quoted.
pub fn check(text: &str, budget: &mut Budget) -> Result<(), Refusal> {
    let mut reader = Reader {
        text,
        at: 0,
        open: Vec::new(),
        roots: 0,
    };
    while let Some(start) = reader.text[reader.at..].find('<') {
        reader.loose(&reader.text[reader.at..reader.at + start])?;
        reader.at += start;
        budget.node()?;
        reader.markup()?;
        if reader.open.len() > budget.limits().depth {
            return Err(Refusal::limit(format!(
                "it nests deeper than {} levels, the limit",
                budget.limits().depth
            )));
        }
    }
    reader.loose(&reader.text[reader.at..])?;
    match (reader.open.last(), reader.roots) {
        (Some(name), _) => Err(Refusal::new(format!("<{name}> is never closed"))),
        (None, 1) => Ok(()),
        (None, count) => Err(Refusal::new(format!(
            "it has {count} root elements, not one"
        ))),
    }
}

/// The charset that an XML declaration names, read from the bytes before they are text.
pub fn declared_charset(bytes: &[u8]) -> Option<&str> {
    let start = bytes.strip_prefix(b"<?xml")?;
    let end = start.windows(2).take(200).position(|pair| pair == b"?>")?;
    let declaration = std::str::from_utf8(&start[..end]).ok()?;
    let value = declaration
        .split_once("encoding")?
        .1
        .trim_start()
        .strip_prefix('=')?
        .trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(name, _)| name)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    open: Vec<&'a str>,
    roots: usize,
}

impl<'a> Reader<'a> {
    /// Text between tags: outside the root there may only be white space.
    fn loose(&self, text: &str) -> Result<(), Refusal> {
        if self.open.is_empty() && !text.trim().is_empty() {
            return Err(Refusal::new("there is text outside the root element"));
        }
        Ok(())
    }

    fn markup(&mut self) -> Result<(), Refusal> {
        let rest = &self.text[self.at..];
        match rest {
            _ if rest.starts_with("<!--") => self.skip_to("-->"),
            _ if rest.starts_with("<![CDATA[") && !self.open.is_empty() => self.skip_to("]]>"),
            _ if rest.starts_with("<?") => self.skip_to("?>"),
            _ if rest.starts_with("<!DOCTYPE") => self.doctype(),
            _ if rest.starts_with("</") => self.close(),
            _ => self.element(),
        }
    }

    fn skip_to(&mut self, end: &str) -> Result<(), Refusal> {
        let length = self.text[self.at..]
            .find(end)
            .ok_or_else(|| Refusal::new(format!("a \"{end}\" is missing")))?;
        self.at += length + end.len();
        Ok(())
    }

    /// A document type may hold declarations in brackets.
    fn doctype(&mut self) -> Result<(), Refusal> {
        let rest = &self.text[self.at..];
        let end = rest
            .find('>')
            .ok_or_else(|| Refusal::new("the document type is not closed"))?;
        match rest.find('[').filter(|bracket| *bracket < end) {
            Some(_) => {
                self.skip_to("]")?;
                self.skip_to(">")
            }
            None => self.skip_to(">"),
        }
    }

    fn close(&mut self) -> Result<(), Refusal> {
        let rest = &self.text[self.at + 2..];
        let end = rest
            .find('>')
            .ok_or_else(|| Refusal::new("a closing tag has no end"))?;
        let name = rest[..end].trim_end();
        match self.open.pop() {
            Some(open) if open == name => {}
            Some(open) => return Err(Refusal::new(format!("<{open}> is closed by </{name}>"))),
            None => return Err(Refusal::new(format!("</{name}> closes nothing"))),
        }
        self.at += 2 + end + 1;
        Ok(())
    }

    fn element(&mut self) -> Result<(), Refusal> {
        let text = self.text;
        let inside = &text[self.at + 1..];
        let name_end = inside
            .find(|letter: char| letter.is_whitespace() || matches!(letter, '>' | '/'))
            .ok_or_else(|| Refusal::new("a tag has no end"))?;
        let name = &inside[..name_end];
        if !name
            .chars()
            .next()
            .is_some_and(|letter| letter.is_alphabetic() || matches!(letter, '_' | ':'))
        {
            return Err(Refusal::new(format!("\"<{name}\" is no tag")));
        }
        let (length, empty) = attributes(&inside[name_end..])?;
        if self.open.is_empty() {
            self.roots += 1;
        }
        if !empty {
            self.open.push(name);
        }
        self.at += 1 + name_end + length;
        Ok(())
    }
}

/// Passes the attributes of a tag: how long they are with the closing bracket, and whether the
/// element is empty.
fn attributes(text: &str) -> Result<(usize, bool), Refusal> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        let spaces = rest.len() - trimmed.len();
        at += spaces;
        if trimmed.starts_with('>') {
            return Ok((at + 1, false));
        }
        if trimmed.starts_with("/>") {
            return Ok((at + 2, true));
        }
        if spaces == 0 {
            return Err(Refusal::new("attributes must be set apart by white space"));
        }
        at += attribute(trimmed)?;
    }
}

fn attribute(text: &str) -> Result<usize, Refusal> {
    let wrong = || Refusal::new("an attribute is not written as name=\"value\"");
    let equals = text.find('=').ok_or_else(wrong)?;
    let name = text[..equals].trim_end();
    if name.is_empty()
        || name.contains(|letter: char| {
            letter.is_whitespace() || matches!(letter, '<' | '>' | '"' | '\'' | '/')
        })
    {
        return Err(wrong());
    }
    let value = text[equals + 1..].trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))
        .ok_or_else(wrong)?;
    let end = value[1..].find(quote).ok_or_else(wrong)?;
    if value[1..1 + end].contains('<') {
        return Err(wrong());
    }
    Ok(text.len() - value.len() + 1 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn check(text: &str) -> Result<(), Refusal> {
        super::check(text, &mut Budget::new(&Limits::default()))
    }

    #[test]
    fn well_formed() {
        for text in [
            "<a/>",
            "<?xml version=\"1.0\"?>\n<a b='1' c=\"x>y\"><b>t</b><!-- < --><![CDATA[<]]></a>\n",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
            "<n:a xmlns:n='u'/>",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn not_well_formed() {
        for text in [
            "",
            "hello",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a b=1/>",
            "<a>x</a> tail",
            "<1/>",
            "a < b",
            "<a b='1'c='2'/>",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        assert!(
            check("<a></b>")
                .unwrap_err()
                .to_string()
                .contains("<a> is closed by </b>")
        );
    }

    #[test]
    fn deep_nests_stop() {
        assert!(check(&"<a>".repeat(100_000)).unwrap_err().is_limit());
    }

    #[test]
    fn charset() {
        assert_eq!(
            declared_charset(b"<?xml version='1.0' encoding=\"ISO-8859-1\"?><a/>"),
            Some("ISO-8859-1")
        );
        assert_eq!(declared_charset(b"<a/>"), None);
    }
}
