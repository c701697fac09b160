//! The filter language of `--match` and of the filter field.

use dlo_core::Delivery;

use crate::dead_letter::Death;

/// A filter that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    words: Vec<String>,
}

impl Query {
    /// Reads a filter.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            words: text.split_whitespace().map(str::to_lowercase).collect(),
        })
    }

    /// Whether a message matches: every word is in its body, its key, a header, or the reason of its death.
    pub fn matches(&self, delivery: &Delivery, death: Option<&Death>) -> bool {
        let message = &delivery.message;
        let mut texts: Vec<String> = Vec::new();
        let bytes = message.body.iter().chain(message.key.iter());
        texts.extend(bytes.map(|bytes| String::from_utf8_lossy(bytes).to_lowercase()));
        texts.extend(
            message
                .headers
                .iter()
                .filter_map(|header| header.value().as_text())
                .map(str::to_lowercase),
        );
        let reason = death
            .into_iter()
            .flat_map(|death| [death.class(), death.message()]);
        texts.extend(reason.flatten().map(str::to_lowercase));
        self.words
            .iter()
            .all(|word| texts.iter().any(|text| text.contains(word)))
    }
}

/// The filter language, for people.
pub fn help() -> &'static str {
    "Words: every word must be in the body, the key, a header or the reason."
}
