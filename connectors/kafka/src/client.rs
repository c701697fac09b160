//! What every librdkafka client of a session shares: a context that remembers what the library says.
//!
//! It is separate because librdkafka hides causes: a metadata call only ever answers "timed out", and the reason (wrong
//! password, wrong certificate) comes through the error callback, in one case only through the log.

use std::{
    collections::VecDeque,
    error::Error as StdError,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use dlo_core::{Millis, Secret, Secrets};
use rdkafka::{
    ClientContext,
    client::OAuthToken,
    config::RDKafkaLogLevel,
    consumer::ConsumerContext,
    error::{KafkaError, RDKafkaErrorCode},
    statistics::Statistics,
};

/// How many of the last messages are kept; the cause of a failure is always among the last few.
const REMEMBERED: usize = 64;

/// Something the library said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The code of an error; `None` for a line of its log.
    pub code: Option<RDKafkaErrorCode>,
    pub text: String,
}

/// The context of our clients.
#[derive(Debug)]
pub(crate) struct Voice {
    heard: Mutex<VecDeque<Heard>>,
    secrets: Secrets,
    token: Option<Token>,
}

/// A ready OAuth token, for example one that AWS made for MSK.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub value: Secret,
    pub principal: String,
}

impl Voice {
    pub(crate) fn new(secrets: Secrets, token: Option<Token>) -> Self {
        Self {
            heard: Mutex::default(),
            secrets,
            token,
        }
    }

    /// What was said since the last [`Voice::forget`], oldest first.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.lock().iter().cloned().collect()
    }

    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn remember(&self, code: Option<RDKafkaErrorCode>, text: &str) {
        let text = self.secrets.redact(text);
        tracing::debug!(?code, text, "librdkafka");
        let mut heard = self.lock();
        if heard.len() == REMEMBERED {
            heard.pop_front();
        }
        heard.push_back(Heard { code, text });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Voice {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        self.remember(None, &format!("{facility} {message}"));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.remember(error.rdkafka_error_code(), reason);
    }

    fn stats(&self, _: Statistics) {}

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn StdError>> {
        let token = self.token.as_ref().ok_or(
            "this profile has no token; store one as its secret named token, or give a password",
        )?;
        Ok(OAuthToken {
            token: token.value.expose().to_owned(),
            principal_name: token.principal.clone(),
            lifetime_ms: expiry(token.value.expose()).0,
        })
    }
}

impl ConsumerContext for Voice {}

/// When a token ends: as a JSON web token says it, else in a quarter of an hour, which is how long those of AWS live.
fn expiry(token: &str) -> Millis {
    let claims = token
        .split('.')
        .nth(1)
        .and_then(|part| {
            BASE64_URL_SAFE_NO_PAD
                .decode(part.trim_end_matches('='))
                .ok()
        })
        .and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok());
    let seconds = claims.and_then(|claims| claims.get("exp").and_then(serde_json::Value::as_i64));
    seconds.map_or_else(
        || Millis::now().plus(15 * 60 * 1000),
        |seconds| Millis(seconds.saturating_mul(1000)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_own_expiry_counts() {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(br#"{"sub":"u","exp":2000000000}"#);
        assert_eq!(expiry(&format!("e30.{claims}.")), Millis(2_000_000_000_000));
        assert!(expiry("opaque") > Millis::now());
    }

    #[test]
    fn secrets_are_not_remembered() {
        let mut secrets = Secrets::default();
        secrets.insert("password", Secret::new("hunter2"));
        let voice = Voice::new(secrets, None);
        voice.log(RDKafkaLogLevel::Error, "FAIL", "user with hunter2 refused");
        assert_eq!(voice.heard()[0].text, "FAIL user with *** refused");
    }
}
