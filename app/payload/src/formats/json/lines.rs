//! JSON Lines: one object or list on each line. <https://jsonlines.org>

use crate::document::Document;
use crate::limits::Budget;
use crate::report::Refusal;

use super::decode;

/// Reads text of at least two lines that each hold one value.
pub fn decode_lines(text: &str, budget: &mut Budget) -> Result<Document, Refusal> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .collect();
    if lines.len() < 2 {
        return Err(Refusal::new("it has fewer than two lines"));
    }
    budget.node()?;
    budget.enter()?;
    let mut values = Vec::with_capacity(lines.len());
    for (at, line) in lines {
        values.push(decode(line, budget).map_err(|refusal| in_line(at, &refusal))?);
    }
    budget.leave();
    Ok(Document::List(values))
}

fn in_line(at: usize, refusal: &Refusal) -> Refusal {
    let text = format!("line {}: {refusal}", at + 1);
    if refusal.is_limit() {
        Refusal::limit(text)
    } else {
        Refusal::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn lines() {
        let mut budget = Budget::new(&Limits::default());
        let document = decode_lines("{\"a\":1}\r\n\n[2]\n", &mut budget).unwrap();
        assert_eq!(document.to_json().to_string(), r#"[{"a":1},[2]]"#);
        assert!(decode_lines("{\"a\":1}\n", &mut budget).is_err());
        assert!(
            decode_lines("{}\n{\n", &mut budget)
                .unwrap_err()
                .to_string()
                .starts_with("line 2: ")
        );
    }
}
