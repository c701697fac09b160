//! Requests to a registry: authentication, TLS, size and time limits, and errors in words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, Identity, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use url::Url;

use super::RegistryError;

/// No schema is larger than this.
const MOST_BYTES: usize = 16 << 20;

/// How to prove who we are.
#[derive(Clone, Default, PartialEq)]
pub enum Auth {
    #[default]
    None,
    Basic {
        user: String,
        password: String,
    },
    Bearer(String),
}

/// Secrets are never shown.
impl fmt::Debug for Auth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("None"),
            Self::Basic { user, .. } => write!(out, "Basic {{ user: {user:?}, password: *** }}"),
            Self::Bearer(_) => out.write_str("Bearer(***)"),
        }
    }
}

/// Where a registry is and how to get in.
#[derive(Clone)]
pub struct RegistryConfig {
    /// Its address: Confluent's API, or Apicurio's root, or one of its APIs (`/apis/ccompat/v7`,
    /// `/apis/registry/v3`), or `glue:REGION` for AWS Glue.
    pub url: String,
    pub auth: Auth,
    /// Certificates to trust besides those of the system, in PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// Our certificate with its key, in PEM, for mutual TLS.
    pub identity_pem: Option<Vec<u8>>,
    pub timeout: Duration,
}

impl RegistryConfig {
    /// A registry at an address. A user and password in it become basic authentication.
    pub fn new(url: impl Into<String>) -> Self {
        let url: String = url.into();
        let (url, auth) = take_user(&url);
        Self {
            url,
            auth,
            ca_pem: None,
            identity_pem: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for RegistryConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RegistryConfig")
            .field("url", &self.url)
            .field("auth", &self.auth)
            .field("mutual_tls", &self.identity_pem.is_some())
            .finish_non_exhaustive()
    }
}

fn take_user(text: &str) -> (String, Auth) {
    let Ok(mut url) = text.parse::<Url>() else {
        return (text.to_owned(), Auth::None);
    };
    if url.username().is_empty() {
        return (text.to_owned(), Auth::None);
    }
    let plain = |part: &str| percent_decode(part);
    let auth = Auth::Basic {
        user: plain(url.username()),
        password: plain(url.password().unwrap_or_default()),
    };
    // Both can only fail for addresses without a host, which have no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    (url.to_string(), auth)
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = tail
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match pair.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A client for one registry.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: Client,
    root: Url,
    auth: Auth,
    /// Where Confluent's API is, once found.
    confluent: Arc<OnceCell<String>>,
}

impl Http {
    pub fn new(config: &RegistryConfig) -> Result<Self, RegistryError> {
        let root = config.url.trim_end_matches('/').parse::<Url>().map_err(|error| RegistryError::Failed(format!("the registry's address \"{}\" cannot be read: {error}; write it as http://host:port", config.url)))?;
        let wrong = |what: &str, error: reqwest::Error| {
            RegistryError::Failed(format!("{what} cannot be used: {error}"))
        };
        let mut builder = Client::builder()
            .timeout(config.timeout)
            .connect_timeout(config.timeout.min(Duration::from_secs(5)));
        if let Some(pem) = &config.ca_pem {
            builder = builder.tls_certs_merge(
                Certificate::from_pem_bundle(pem)
                    .map_err(|error| wrong("the registry's CA certificate", error))?,
            );
        }
        if let Some(pem) = &config.identity_pem {
            builder =
                builder
                    .identity(Identity::from_pem(pem).map_err(|error| {
                        wrong("the client certificate for the registry", error)
                    })?);
        }
        let client = builder
            .build()
            .map_err(|error| wrong("these settings for the registry", error))?;
        Ok(Self {
            client,
            root,
            auth: config.auth.clone(),
            confluent: Arc::default(),
        })
    }

    /// The address without secrets.
    pub fn name(&self) -> String {
        self.root.to_string().trim_end_matches('/').to_owned()
    }

    /// The address as it was given.
    pub fn root(&self) -> &Url {
        &self.root
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The base of Confluent's API: the address itself, or below it where Apicurio has it.
    pub async fn confluent(&self) -> Result<&str, RegistryError> {
        let base = self
            .confluent
            .get_or_try_init(|| self.find_confluent())
            .await?;
        Ok(base)
    }

    async fn find_confluent(&self) -> Result<String, RegistryError> {
        let name = self.name();
        if name.contains("/apis/ccompat") {
            return Ok(name);
        }
        if let Some((root, _)) = name.split_once("/apis/registry") {
            return Ok(format!("{root}/apis/ccompat/v7"));
        }
        match self.get_json(&format!("{name}/subjects")).await {
            Ok(Value::Array(_)) => return Ok(name),
            Err(error @ RegistryError::Failed(_)) if self.is_final(&error) => return Err(error),
            _ => {}
        }
        let apicurio = format!("{name}/apis/ccompat/v7");
        match self.get_json(&format!("{apicurio}/subjects")).await {
            Ok(Value::Array(_)) => Ok(apicurio),
            Err(error @ RegistryError::Failed(_)) => Err(error),
            _ => Err(RegistryError::Failed(format!(
                "{name} does not answer as a schema registry; is the address right?"
            ))),
        }
    }

    /// Not being reached or not being let in will not get better below another path.
    fn is_final(&self, error: &RegistryError) -> bool {
        let text = error.to_string();
        text.starts_with("cannot reach") || text.contains("refused us")
    }

    /// The base of Apicurio's own API of a version.
    pub fn apicurio(&self, version: u8) -> String {
        let name = self.name();
        let root = name
            .split_once("/apis/")
            .map_or(name.as_str(), |(root, _)| root);
        format!("{root}/apis/registry/v{version}")
    }

    pub async fn get_json(&self, url: &str) -> Result<Value, RegistryError> {
        let (text, _) = self.get(url).await?;
        serde_json::from_str(&text).map_err(|_| {
            RegistryError::Failed(format!(
                "{url} does not answer with JSON; is the registry's address right?"
            ))
        })
    }

    /// The body of an answer, and a header that names the type of the schema.
    pub async fn get(&self, url: &str) -> Result<(String, Option<String>), RegistryError> {
        let request = self.client.get(url).header(
            "Accept",
            "application/vnd.schemaregistry.v1+json, application/json, */*;q=0.5",
        );
        let request = match &self.auth {
            Auth::None => request,
            Auth::Basic { user, password } => request.basic_auth(user, Some(password)),
            Auth::Bearer(token) => request.bearer_auth(token),
        };
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let kind = header("x-registry-artifacttype")
            .or_else(|| header("content-type").filter(|value| value.contains("serialization=")));
        let status = response.status();
        let text = body(response)
            .await
            .map_err(|error| self.unreachable(&error))?;
        if status.is_success() {
            Ok((text, kind))
        } else {
            Err(self.refused(status, url, &text))
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RegistryError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let reason = if error.is_timeout() {
            "it did not answer in time".to_owned()
        } else {
            cause.to_string()
        };
        RegistryError::Failed(format!(
            "cannot reach the schema registry at {}: {reason}",
            self.name()
        ))
    }

    fn refused(&self, status: StatusCode, url: &str, text: &str) -> RegistryError {
        let said = message(text);
        match status {
            StatusCode::NOT_FOUND => {
                RegistryError::Absent(said.unwrap_or_else(|| format!("{url} is not there")))
            }
            StatusCode::UNAUTHORIZED => RegistryError::Failed(format!(
                "the schema registry at {} refused us: give a user and password or a token for it",
                self.name()
            )),
            StatusCode::FORBIDDEN => RegistryError::Failed(format!(
                "the schema registry at {} refused us: this user may not read schemas",
                self.name()
            )),
            _ => RegistryError::Failed(format!(
                "the schema registry at {} answered {status}{}",
                self.name(),
                said.map_or_else(String::new, |said| format!(": {said}"))
            )),
        }
    }
}

/// What an error answer says, in Confluent's or Apicurio's form.
fn message(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let said = ["message", "detail", "title"]
        .into_iter()
        .find_map(|name| value.get(name).and_then(Value::as_str))?;
    Some(said.chars().take(300).collect())
}

async fn body(mut response: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_BYTES {
            bytes.truncate(MOST_BYTES);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path segment of a URL.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte))
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_an_address_are_taken_out_and_never_shown() {
        let config = RegistryConfig::new("https://alice:p%40ss@registry.test:8081/");
        assert_eq!(config.url, "https://registry.test:8081/");
        assert_eq!(
            config.auth,
            Auth::Basic {
                user: "alice".into(),
                password: "p@ss".into()
            }
        );
        assert!(!format!("{config:?}").contains("p@ss"));
        assert_eq!(segment("a/b c"), "a%2Fb%20c");
    }

    #[tokio::test]
    async fn a_registry_that_is_not_there_is_named() {
        let http = Http::new(&RegistryConfig::new("http://127.0.0.1:9")).unwrap();
        let error = http.confluent().await.unwrap_err().to_string();
        assert!(
            error.starts_with("cannot reach the schema registry at http://127.0.0.1:9: "),
            "{error}"
        );
    }
}
