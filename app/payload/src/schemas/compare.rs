//! Two versions of a schema side by side: the lines that changed.

use similar::{ChangeTag, TextDiff};

use super::{Schema, SchemaKind};

/// The difference of two schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// All lines, each with ' ' (same), '-' (only the first) or '+' (only the second).
    pub lines: Vec<(char, String)>,
}

impl Comparison {
    /// Whether they say the same, white space aside.
    pub fn is_same(&self) -> bool {
        self.lines.iter().all(|(mark, _)| *mark == ' ')
    }
}

/// Compares two schemas line by line, after laying both out alike: registries strip white space.
pub fn compare(one: &Schema, two: &Schema) -> Comparison {
    let (one, two) = (laid_out(one), laid_out(two));
    let diff = TextDiff::from_lines(&one, &two);
    let lines = diff.iter_all_changes().map(|change| {
        let mark = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        (mark, change.value().trim_end_matches('\n').to_owned())
    });
    Comparison {
        lines: lines.collect(),
    }
}

/// The text of a schema for reading: JSON indented, Protobuf as it is.
fn laid_out(schema: &Schema) -> String {
    let pretty = match schema.kind {
        SchemaKind::Protobuf => None,
        SchemaKind::Avro | SchemaKind::Json => {
            serde_json::from_str::<serde_json::Value>(&schema.text)
                .ok()
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
        }
    };
    let mut text = pretty.unwrap_or_else(|| schema.text.clone());
    text.push('\n');
    text
}
