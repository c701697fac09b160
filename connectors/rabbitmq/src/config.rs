//! What a URL says about a RabbitMQ broker.
//!
//! Separate because it is pure: it reads an [`Endpoint`] and its secrets, and touches only the certificate files.
//! The query options are those of RabbitMQ's own URIs
//! (<https://www.rabbitmq.com/docs/uri-query-parameters>), and `management`.

use std::fmt;

use dlo_core::{Endpoint, Error, ErrorKind, Result, Secret, Secrets};
use lapin::{
    tcp::{OwnedIdentity, OwnedTLSConfig},
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism},
};

/// The connection's settings. `Debug` prints no secret.
#[derive(Clone)]
pub(crate) struct Config {
    pub host: String,
    pub port: u16,
    pub tls: bool,
    pub user: String,
    pub password: Secret,
    pub mechanism: SASLMechanism,
    pub vhost: String,
    /// The management API's address without a slash at its end, and whether the URL named it.
    pub management: Management,
    pub certificates: OwnedTLSConfig,
    /// Queue names to list where the broker cannot be asked for them (`?queues=a,b`).
    pub queues: Vec<String>,
}

/// Where the management API is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Management {
    /// The URL says where.
    Named(String),
    /// Tried at the usual place: the AMQP port + 10000.
    Guessed(String),
    /// `?management=none`.
    Off,
}

impl Config {
    /// Reads the endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] with the part that is wrong.
    pub fn read(endpoint: &Endpoint, secrets: &Secrets) -> Result<Self> {
        let tls = endpoint.scheme == "amqps";
        let hosts = endpoint.host_list(if tls { 5671 } else { 5672 })?;
        let [(host, port)] = hosts.as_slice() else {
            return Err(invalid(
                "a RabbitMQ URL names one host; write amqp://user@host:5672/vhost",
            ));
        };
        let mechanism = mechanism(endpoint.option("auth_mechanism"))?;
        let user = endpoint.user.clone().unwrap_or_else(|| "guest".to_owned());
        let password = match secrets.get("password") {
            Some(password) => password.clone(),
            None if user == "guest" => Secret::new("guest"),
            None => Secret::new(""),
        };
        Ok(Self {
            host: host.clone(),
            port: *port,
            tls,
            user,
            password,
            mechanism,
            // `amqp://host` means the default virtual host, `amqp://host/` the one with an empty name.
            vhost: endpoint.path.clone().unwrap_or_else(|| "/".to_owned()),
            management: management(endpoint, host, *port),
            certificates: certificates(endpoint)?,
            queues: endpoint
                .option("queues")
                .map(|names| names.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        })
    }

    /// Host and port for a person.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The same as lapin takes it, with the heartbeat that notices a frozen broker within seconds.
    pub fn uri(&self) -> AMQPUri {
        AMQPUri {
            scheme: if self.tls {
                AMQPScheme::AMQPS
            } else {
                AMQPScheme::AMQP
            },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: self.user.clone(),
                    password: self.password.expose().to_owned(),
                },
                host: self.host.clone(),
                port: self.port,
            },
            vhost: self.vhost.clone(),
            query: AMQPQueryString {
                heartbeat: Some(5),
                auth_mechanism: Some(self.mechanism),
                ..AMQPQueryString::default()
            },
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("tls", &self.tls)
            .field("user", &self.user)
            .field("mechanism", &self.mechanism)
            .field("vhost", &self.vhost)
            .field("management", &self.management)
            .finish_non_exhaustive()
    }
}

fn mechanism(name: Option<&str>) -> Result<SASLMechanism> {
    match name.map(str::to_ascii_lowercase).as_deref() {
        None | Some("plain") => Ok(SASLMechanism::Plain),
        Some("external") => Ok(SASLMechanism::External),
        Some("amqplain") => Ok(SASLMechanism::AMQPlain),
        Some("anonymous") => Ok(SASLMechanism::Anonymous),
        Some(other) => Err(invalid(format!(
            "auth_mechanism={other} is not known; use plain, external, amqplain or anonymous"
        ))),
    }
}

fn management(endpoint: &Endpoint, host: &str, port: u16) -> Management {
    match endpoint.option("management") {
        Some("none" | "off" | "no") => Management::Off,
        Some(url) => Management::Named(url.trim_end_matches('/').to_owned()),
        None => port
            .checked_add(10_000)
            .map_or(Management::Off, |port| guess(endpoint, host, port)),
    }
}

/// With TLS the management API listens on 15671, one below the plain one, as AMQP itself does.
fn guess(endpoint: &Endpoint, host: &str, port: u16) -> Management {
    let scheme = if endpoint.scheme == "amqps" {
        "https"
    } else {
        "http"
    };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    Management::Guessed(format!("{scheme}://{host}:{port}"))
}

fn certificates(endpoint: &Endpoint) -> Result<OwnedTLSConfig> {
    let read = |option: &'static str| match endpoint.option(option) {
        Some(path) => std::fs::read(path).map(Some).map_err(|error| {
            invalid(format!("the file of {option} cannot be read: {error}")).with("file", path)
        }),
        None => Ok(None),
    };
    let cert_chain = read("cacertfile")?
        .map(|pem| {
            String::from_utf8(pem).map_err(|_| invalid("the file of cacertfile is not PEM text"))
        })
        .transpose()?;
    let identity = match (read("certfile")?, read("keyfile")?) {
        (Some(pem), Some(key)) => Some(OwnedIdentity::PKCS8 { pem, key }),
        (None, None) => None,
        _ => return Err(invalid("certfile and keyfile belong together; name both")),
    };
    Ok(OwnedTLSConfig {
        identity,
        cert_chain,
    })
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the RabbitMQ URL", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        let (endpoint, secrets) = Endpoint::parse(text)?;
        Config::read(&endpoint, &secrets)
    }

    #[test]
    fn defaults_are_those_of_rabbitmq() {
        let config = read("amqp://localhost").expect("a good URL");
        assert_eq!((config.port, config.vhost.as_str()), (5672, "/"));
        assert_eq!(
            (config.user.as_str(), config.password.expose()),
            ("guest", "guest")
        );
        assert_eq!(
            config.management,
            Management::Guessed("http://localhost:15672".to_owned())
        );
        let config = read("amqps://u:p@[::1]/a%2fb?management=http://m:1/").expect("a good URL");
        assert_eq!(
            (config.port, config.vhost.as_str(), config.tls),
            (5671, "a/b", true)
        );
        assert_eq!(
            config.management,
            Management::Named("http://m:1".to_owned())
        );
        assert_eq!(read("amqp://h/").expect("a good URL").vhost, "");
    }

    #[test]
    fn what_cannot_work_is_said() {
        let check = |text: &str, expected: &str| {
            let error = read(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::ConfigInvalid);
            assert!(error.to_string().contains(expected), "{error}");
        };
        check("amqp://a,b", "one host");
        check("amqp://a?auth_mechanism=magic", "magic");
        check("amqps://a?certfile=/nowhere.pem", "certfile");
        check("amqps://a?cacertfile=/nowhere.pem", "cannot be read");
    }

    #[test]
    fn debug_prints_no_password() {
        let config = read("amqp://u:hunter2@h").expect("a good URL");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
