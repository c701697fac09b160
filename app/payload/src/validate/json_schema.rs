//! JSON Schema, all drafts, by the jsonschema crate; references only among those given.

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::Value;

use crate::document::Document;
use crate::schemas::Reference;

use super::Problem;

/// Stops after this many problems: more help nobody.
const ENOUGH: usize = 100;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct JsonSchema {
    validator: Validator,
}

impl JsonSchema {
    /// Reads a schema; nothing is fetched from the network.
    pub fn parse(text: &str, references: &[Reference]) -> Result<Self, String> {
        let schema: Value =
            serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        let mut known = Vec::with_capacity(references.len());
        for reference in references {
            let value = serde_json::from_str(&reference.text)
                .map_err(|error| format!("the reference {} is no JSON: {error}", reference.name))?;
            known.push((reference.name.clone(), value));
        }
        let validator = jsonschema::options()
            .with_retriever(References(known))
            .build(&schema)
            .map_err(|error| error.to_string())?;
        Ok(Self { validator })
    }

    /// What is wrong with a document; none if it obeys.
    pub fn check(&self, document: &Document) -> Vec<Problem> {
        let value = plain(document);
        let errors = self.validator.iter_errors(&value).take(ENOUGH);
        errors
            .map(|error| Problem {
                path: error.instance_path().to_string(),
                text: error.to_string(),
            })
            .collect()
    }
}

/// The document as JSON itself has it: of a repeated key the last, and times and decimals as text.
fn plain(document: &Document) -> Value {
    match document {
        Document::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect(),
        ),
        Document::Pairs(entries) => {
            let texts = entries
                .iter()
                .filter_map(|(key, value)| Some((key.as_text()?.to_owned(), plain(value))));
            Value::Object(texts.collect())
        }
        Document::List(items) => Value::Array(items.iter().map(plain).collect()),
        Document::Time(time) => Value::String(time.text.clone()),
        Document::Decimal(text) => Value::String(text.clone()),
        Document::Tagged(tagged) => plain(&tagged.value),
        other => other.to_json(),
    }
}

/// References by the name or the end of the address that a `$ref` gives.
struct References(Vec<(String, Value)>);

impl Retrieve for References {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let wanted = uri.as_str();
        let found = self
            .0
            .iter()
            .find(|(name, _)| wanted == name || wanted.ends_with(&format!("/{name}")));
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            format!("the reference {wanted} is not among those of the schema").into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_paths_and_sentences() {
        let schema = JsonSchema::parse(
            r#"{"type":"object","required":["currency"],"properties":{"n":{"type":"integer"}}}"#,
            &[],
        )
        .unwrap();
        let problems = schema.check(&Document::from_json(&serde_json::json!({"n": "x"})));
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            texts
                .iter()
                .any(|text| text == "/n: \"x\" is not of type \"integer\""),
            "{texts:?}"
        );
        assert!(
            texts
                .iter()
                .any(|text| text == "(whole value): \"currency\" is a required property"),
            "{texts:?}"
        );
        assert!(
            schema
                .check(&Document::from_json(
                    &serde_json::json!({"currency": "EUR", "n": 1})
                ))
                .is_empty()
        );
    }

    #[test]
    fn references() {
        let money = Reference {
            name: "money.json".into(),
            text: r#"{"type":"object","required":["cents"]}"#.into(),
        };
        let text =
            r#"{"$id":"https://x.test/order.json","properties":{"m":{"$ref":"money.json"}}}"#;
        let schema = JsonSchema::parse(text, &[money]).unwrap();
        assert_eq!(
            schema
                .check(&Document::from_json(&serde_json::json!({"m": {}})))
                .len(),
            1
        );
        assert!(
            JsonSchema::parse(text, &[])
                .unwrap_err()
                .contains("money.json")
        );
    }
}
