//! What kind of failure it is, by rules that a person can read and change.

use std::{fmt, sync::LazyLock};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::{dead_letter::Death, home::Home};

/// The rules that are used unless the configuration has others.
const DEFAULT: &str = include_str!("rules.toml");

/// The kind of a failure. A hint: rules only look at words.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Something was out of reach and may be back: try again.
    Transient,
    /// The other side asks to slow down: try again slowly.
    Throttled,
    /// The message is not what the consumer expects: mend the message or the schema.
    Contract,
    /// The consumer understood it and refuses: a person decides.
    Business,
    /// The consumer's code is wrong: mend it first.
    Bug,
}

impl Class {
    /// The word for it, in lower case.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Throttled => "throttled",
            Self::Contract => "contract",
            Self::Business => "business",
            Self::Bug => "bug",
        }
    }
}

impl Class {
    /// The class with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Transient,
            Self::Throttled,
            Self::Contract,
            Self::Business,
            Self::Bug,
        ]
        .into_iter()
        .find(|class| class.word() == word)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A class with the sentence of the rule that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub class: Class,
    pub because: String,
}

/// Rules in their order; the first that matches counts.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    hint: Hint,
    exception: Option<Regex>,
    message: Option<Regex>,
}

/// What is wrong with a person's rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    #[error("the file cannot be read: {0}")]
    File(String),
    #[error("the rules are not TOML as expected: {0}")]
    Toml(String),
    #[error("the pattern {pattern} of the rule \"{because}\" cannot be used: {problem}")]
    Pattern {
        pattern: String,
        because: String,
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<FileRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRule {
    class: Class,
    because: String,
    #[serde(default)]
    exception: Vec<String>,
    #[serde(default)]
    message: Vec<String>,
}

impl Rules {
    /// The text of the default rules, as a start for a person's own.
    pub fn default_text() -> &'static str {
        DEFAULT
    }

    /// The person's own rules where there are some, else the default ones. They replace the default ones as a whole, so that
    /// what is in the file is all there is. Reads a file: not for a frame.
    ///
    /// # Errors
    /// A file that is there and cannot be used.
    pub fn of(home: &Home) -> Result<Self, RulesError> {
        match std::fs::read_to_string(home.class_rules()) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(RulesError::File(error.to_string())),
        }
    }

    /// Reads rules from TOML.
    ///
    /// # Errors
    /// Names the place in the text, or the pattern that is no regular expression.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let file: File =
            toml_edit::de::from_str(text).map_err(|error| RulesError::Toml(place(text, &error)))?;
        file.rule
            .into_iter()
            .map(compile)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The hint for a death; `None` when no rule matches.
    pub fn hint(&self, death: &Death) -> Option<&Hint> {
        let telling = &death.telling().reason;
        let classes = [telling.cause.as_deref(), telling.class.as_deref()];
        let rule = self.0.iter().find(|rule| {
            let named = classes
                .iter()
                .flatten()
                .any(|class| matches(rule.exception.as_ref(), class));
            named
                || telling
                    .message
                    .as_deref()
                    .is_some_and(|message| matches(rule.message.as_ref(), message))
        });
        rule.map(|rule| &rule.hint)
    }
}

impl Default for Rules {
    fn default() -> Self {
        // Compiled once; a test makes sure that the text is right.
        static RULES: LazyLock<Rules> =
            LazyLock::new(|| Rules::parse(DEFAULT).unwrap_or(Rules(Vec::new())));
        RULES.clone()
    }
}

/// What is wrong and on which line, without the picture of it that the parser draws.
fn place(text: &str, error: &toml_edit::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = 1 + text
        .bytes()
        .take(start)
        .filter(|byte| *byte == b'\n')
        .count();
    format!("line {line}: {}", error.message().replace('\n', "; "))
}

fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text.as_bytes()))
}

fn compile(rule: FileRule) -> Result<Rule, RulesError> {
    Ok(Rule {
        exception: any_of(&rule.exception, &rule.because)?,
        message: any_of(&rule.message, &rule.because)?,
        hint: Hint {
            class: rule.class,
            because: rule.because,
        },
    })
}

/// One expression for all patterns: a start of the app compiles ten of them instead of a hundred.
fn any_of(patterns: &[String], because: &str) -> Result<Option<Regex>, RulesError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let joined: Vec<String> = patterns
        .iter()
        .map(|pattern| format!("(?:{pattern})"))
        .collect();
    build(&joined.join("|")).map(Some).map_err(|error| {
        let alone = patterns
            .iter()
            .find_map(|pattern| build(pattern).err().map(|error| (pattern, error)));
        let (pattern, problem) = match alone {
            Some((pattern, error)) => (pattern.clone(), error.to_string()),
            None => (joined.join("|"), error.to_string()),
        };
        RulesError::Pattern {
            pattern,
            because: because.to_owned(),
            problem,
        }
    })
}

/// Without Unicode tables, which would take most of the time and matter for few names of exceptions.
fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .unicode(false)
        .size_limit(1 << 22)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::Confidence;

    fn class(exception: &str, message: &str) -> Option<Class> {
        let mut death = Death::new("test", Confidence::Sure);
        death.reason.class = Some(exception.to_owned());
        death.reason.message = Some(message.to_owned());
        let rules = Rules::parse(DEFAULT).expect("the default rules");
        rules.hint(&death).map(|hint| hint.class)
    }

    #[test]
    fn the_default_rules_class_what_is_usual() {
        for (exception, message, expected) in [
            ("java.lang.NullPointerException", "", Some(Class::Bug)),
            (
                "System.NullReferenceException",
                "Object reference not set",
                Some(Class::Bug),
            ),
            ("KeyError", "'price'", Some(Class::Bug)),
            (
                "java.net.SocketTimeoutException",
                "Read timed out",
                Some(Class::Transient),
            ),
            ("RuntimeError", "timeout: db-3", Some(Class::Transient)),
            (
                "java.net.ConnectException",
                "Connection refused",
                Some(Class::Transient),
            ),
            (
                "x.ApiException",
                "503 Service Unavailable",
                Some(Class::Transient),
            ),
            (
                "x.ApiException",
                "429 Too Many Requests",
                Some(Class::Throttled),
            ),
            (
                "ProvisionedThroughputExceededException",
                "slow",
                Some(Class::Throttled),
            ),
            (
                "org.springframework.kafka.support.serializer.DeserializationException",
                "failed to deserialize",
                Some(Class::Contract),
            ),
            (
                "org.apache.kafka.connect.errors.DataException",
                "Converting byte[] failed",
                Some(Class::Contract),
            ),
            (
                "x.E",
                "schema orders v7, field \"currency\" missing",
                Some(Class::Contract),
            ),
            (
                "x.PaymentException",
                "card declined: 4111",
                Some(Class::Business),
            ),
            (
                "org.apache.kafka.connect.errors.ConnectException",
                "Exiting WorkerSinkTask",
                None,
            ),
            ("rejected", "", None),
        ] {
            assert_eq!(
                class(exception, message),
                expected,
                "{exception}: {message}"
            );
        }
    }

    #[test]
    fn a_file_of_the_persons_own_is_used_and_a_broken_one_is_not_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let mut refused = Death::new("test", Confidence::Sure);
        refused.reason.message = Some("no credit".to_owned());
        let hint = |rules: &Rules| rules.hint(&refused).map(|hint| hint.class);
        let usual = Rules::of(&home).expect("no file is no error");
        assert_ne!(hint(&usual), Some(Class::Business));
        let own = "[[rule]]\nclass = \"business\"\nbecause = \"ours\"\nmessage = [\"^no credit\"]";
        std::fs::write(home.class_rules(), own).expect("written");
        assert_eq!(
            hint(&Rules::of(&home).expect("rules")),
            Some(Class::Business)
        );
        std::fs::write(home.class_rules(), "[[rule]]\nclass = 7").expect("written");
        let broken = Rules::of(&home).expect_err("a class is a word").to_string();
        assert!(broken.contains("line 2: "), "{broken}");
    }

    #[test]
    fn own_rules_replace_the_default_and_bad_ones_are_named() {
        let rules =
            Rules::parse("[[rule]]\nclass = \"business\"\nbecause = \"ours\"\nmessage = [\"^no\"]")
                .expect("rules");
        let mut death = Death::default();
        death.reason.message = Some("No stock".to_owned());
        assert_eq!(
            rules.hint(&death).map(|hint| hint.because.as_str()),
            Some("ours")
        );
        let error = Rules::parse("[[rule]]\nclass = \"bug\"\nbecause = \"b\"\nmessage = [\"(\"]")
            .expect_err("a bad pattern");
        assert!(
            error
                .to_string()
                .contains("the pattern ( of the rule \"b\""),
            "{error}"
        );
        assert!(Rules::parse("[[rule]]\nclass = \"odd\"\nbecause = \"b\"").is_err());
    }
}
