//! From a profile's URL and secrets to librdkafka's settings.
//!
//! `kafka://user@a:9092,b:9092?security=sasl_ssl&mechanism=SCRAM-SHA-512&ca=/etc/ca.pem`. Short names are ours; an option
//! with a dot in its name is librdkafka's own and is handed on, except for those that would break what this connector
//! promises, or would run a program or load code.

use std::{collections::BTreeMap, fmt};

use dlo_core::{Endpoint, Error, ErrorKind, Isolation, Result, Secrets};
use rdkafka::{ClientConfig, config::RDKafkaLogLevel};

use crate::client::{Token, Voice};

/// Options of librdkafka that are ours to set, because promises depend on them.
const OURS: [&str; 12] = [
    "bootstrap.servers",
    "metadata.broker.list",
    "group.id",
    "group.instance.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "allow.auto.create.topics",
    "transactional.id",
    "enable.idempotence",
    "isolation.level",
    "acks",
    "request.required.acks",
];

/// Options that run a program or load code: a URL must not be able to do that.
const DANGEROUS: [&str; 4] = [
    "plugin.library.paths",
    "ssl.engine.location",
    "ssl.providers",
    "sasl.kerberos.kinit.cmd",
];

/// How the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl Security {
    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().replace('-', "_").as_str() {
            "plaintext" => Some(Self::Plaintext),
            "ssl" | "tls" | "mtls" => Some(Self::Ssl),
            "sasl_plaintext" => Some(Self::SaslPlaintext),
            "sasl_ssl" | "sasl_tls" => Some(Self::SaslSsl),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Ssl => "ssl",
            Self::SaslPlaintext => "sasl_plaintext",
            Self::SaslSsl => "sasl_ssl",
        }
    }

    pub(crate) fn has_login(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }
}

/// Everything that is needed to make a client.
#[derive(Clone)]
pub(crate) struct Settings {
    pub hosts: Vec<(String, u16)>,
    pub security: Security,
    pub mechanism: Option<String>,
    properties: BTreeMap<String, String>,
    secrets: Secrets,
    token: Option<Token>,
}

/// Without properties, as passwords are among them.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("hosts", &self.hosts)
            .field("security", &self.security)
            .field("mechanism", &self.mechanism)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads a profile's endpoint and secrets.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] for unknown or forbidden options; `Unsupported` for what this build cannot do.
    pub(crate) fn read(endpoint: &Endpoint, secrets: &Secrets) -> Result<Self> {
        let mut draft = Draft::new(endpoint, secrets);
        for (name, value) in &endpoint.options {
            draft.option(name, value)?;
        }
        draft.secrets();
        draft.finish(endpoint, secrets)
    }

    pub(crate) fn voice(&self) -> Voice {
        Voice::new(self.secrets.clone(), self.token.clone())
    }

    /// The properties of every client, secrets included.
    pub(crate) fn base(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        let servers: Vec<_> = self.hosts.iter().map(|(h, p)| join(h, *p)).collect();
        config
            .set("bootstrap.servers", servers.join(","))
            .set("security.protocol", self.security.name())
            .set("client.id", "dead-letter-office")
            // A person learns within 5 s what is wrong (measured: the reason comes at 0.3 s).
            .set("socket.connection.setup.timeout.ms", "2500")
            .set("api.version.request.timeout.ms", "2500")
            .set("socket.timeout.ms", "10000")
            .set("reconnect.backoff.ms", "250")
            .set("reconnect.backoff.max.ms", "1000")
            .set("socket.nagle.disable", "true")
            .set("allow.auto.create.topics", "false");
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        // "Disconnected" is only an information for librdkafka, but for some failures it is all there is.
        config.set_log_level(RDKafkaLogLevel::Info);
        config
    }

    /// A client that only asks for metadata and offsets: it has no group.
    pub(crate) fn metadata(&self, isolation: Isolation) -> ClientConfig {
        let mut config = self.base();
        config.set("isolation.level", level(isolation));
        config
    }

    /// A client that reads assigned partitions.
    pub(crate) fn reading(&self, isolation: Isolation, queues: usize) -> ClientConfig {
        let mut config = self.base();
        // The bound is one of each queue.
        let kbytes = (65_536 / queues.max(1)).max(2048);
        config
            .set("isolation.level", level(isolation))
            // librdkafka asks for a group name; without subscription and commits the broker makes no group of it.
            .set("group.id", format!("dlo-look-{}", uuid::Uuid::new_v4()))
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "earliest")
            .set("max.poll.interval.ms", "86400000")
            .set("queued.max.messages.kbytes", kbytes.to_string())
            .set("fetch.wait.max.ms", "100")
            .set("fetch.error.backoff.ms", "100")
            .set("receive.message.max.bytes", "1000000000");
        config
    }

    /// A client that publishes; `batch_bytes` bounds a batch, which the topic's `max.message.bytes` must not be below.
    pub(crate) fn publishing(&self, batch_bytes: u64) -> ClientConfig {
        let mut config = self.base();
        config
            .set("acks", "all")
            .set("enable.idempotence", "true")
            // Java's partitioner, so that a replayed key goes where its producer sent it.
            .set("partitioner", "murmur2_random")
            .set("linger.ms", "5")
            .set("batch.size", batch_bytes.to_string())
            // Larger messages are refused before, by what the topic takes.
            .set("message.max.bytes", "1000000000")
            .set("queue.buffering.max.kbytes", "262144")
            .set("message.timeout.ms", "30000")
            .set("topic.metadata.propagation.max.ms", "4000");
        config
    }
}

fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read_committed",
        Isolation::ReadUncommitted => "read_uncommitted",
    }
}

/// `host:port`, with the brackets that an IPv6 address needs.
pub(crate) fn join(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Settings while the options are read.
struct Draft {
    security: Option<Security>,
    mechanism: Option<String>,
    user: Option<String>,
    properties: BTreeMap<String, String>,
    given: Secrets,
}

impl Draft {
    fn new(endpoint: &Endpoint, secrets: &Secrets) -> Self {
        Self {
            security: None,
            mechanism: None,
            user: endpoint.user.clone(),
            properties: BTreeMap::new(),
            given: secrets.clone(),
        }
    }

    fn option(&mut self, name: &str, value: &str) -> Result<()> {
        let property = match name {
            "security" | "security.protocol" => {
                self.security = Some(Security::parse(value).ok_or_else(|| {
                    invalid(format!("there is no security protocol {value}"))
                        .advise("Write plaintext, ssl, sasl_plaintext or sasl_ssl.")
                })?);
                return Ok(());
            }
            "mechanism" | "sasl.mechanism" | "sasl.mechanisms" => {
                self.mechanism = Some(value.to_ascii_uppercase());
                return Ok(());
            }
            "sasl.username" => {
                self.user = Some(value.to_owned());
                return Ok(());
            }
            "ca" => "ssl.ca.location",
            "cert" => "ssl.certificate.location",
            "key" => "ssl.key.location",
            "client_id" => "client.id",
            // What belongs to other parts of the program may stand in the same URL.
            "registry" | "isolation" => return Ok(()),
            _ if OURS.contains(&name) => {
                return Err(invalid(format!("the option {name} is set by this program"))
                    .advise("Leave it out."));
            }
            _ if DANGEROUS.contains(&name) => {
                return Err(invalid(format!("the option {name} would run foreign code"))
                    .advise("Leave it out."));
            }
            _ if name.contains('.') => name,
            _ => {
                return Err(invalid(format!("there is no option {name}")).advise(
                    "Known are security, mechanism, ca, cert, key, client_id, and librdkafka's own names, which have a dot.",
                ));
            }
        };
        self.properties
            .insert(property.to_owned(), value.to_owned());
        Ok(())
    }

    /// Secrets with a dot in their name are librdkafka's.
    fn secrets(&mut self) {
        let given = self.given.clone();
        for (name, secret) in given.iter() {
            let property = match name {
                "password" | "sasl.password" => "sasl.password",
                "passphrase" | "ssl.key.password" => "ssl.key.password",
                "ssl.keystore.password" | "ssl.key.pem" | "sasl.oauthbearer.client.secret" => name,
                _ => continue,
            };
            self.properties
                .insert(property.to_owned(), secret.expose().to_owned());
        }
    }

    fn finish(mut self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Settings> {
        let token = secrets.get("token").map(|value| Token {
            value: value.clone(),
            principal: self.user.clone().unwrap_or_default(),
        });
        let has_login = self.user.is_some() || token.is_some() || self.mechanism.is_some();
        let security = self.security.unwrap_or_else(|| self.guess(has_login));
        if has_login && !security.has_login() {
            return Err(invalid(format!(
                "a user or token is given, but the security protocol is {}",
                security.name()
            ))
            .advise("Write security=sasl_ssl (or sasl_plaintext), or leave the user out."));
        }
        if security.has_login() {
            self.login(security, token.is_some())?;
        }
        Ok(Settings {
            hosts: endpoint.host_list(9092)?,
            security,
            mechanism: self.mechanism,
            properties: self.properties,
            secrets: secrets.clone(),
            token,
        })
    }

    /// Without a word about security a login is not sent unencrypted.
    fn guess(&self, has_login: bool) -> Security {
        match (
            has_login,
            self.properties.keys().any(|name| name.starts_with("ssl.")),
        ) {
            (true, _) => Security::SaslSsl,
            (false, true) => Security::Ssl,
            (false, false) => Security::Plaintext,
        }
    }

    fn login(&mut self, security: Security, has_token: bool) -> Result<()> {
        let usual = match security {
            _ if has_token => "OAUTHBEARER",
            Security::SaslSsl => "PLAIN",
            _ => "SCRAM-SHA-512",
        };
        let mechanism = self
            .mechanism
            .get_or_insert_with(|| usual.to_owned())
            .clone();
        match mechanism.as_str() {
            "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" => self.user_and_password()?,
            "OAUTHBEARER" => {}
            "GSSAPI" if cfg!(feature = "kerberos") => {}
            "GSSAPI" => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "connect",
                    "this program was built without Kerberos",
                )
                .advise("Build it with --features kerberos, or use another mechanism."));
            }
            other => {
                return Err(invalid(format!("there is no mechanism {other}"))
                    .advise("Write PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI."));
            }
        }
        self.properties
            .insert("sasl.mechanism".to_owned(), mechanism);
        Ok(())
    }

    fn user_and_password(&mut self) -> Result<()> {
        let user = self.user.clone().ok_or_else(|| {
            invalid("a login is asked for, but no user is named").advise(
                "Write kafka://user@host, or add security=ssl for a connection without login.",
            )
        })?;
        self.properties.insert("sasl.username".to_owned(), user);
        if self.properties.contains_key("sasl.password") {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unauthenticated,
            "connect",
            "the profile has a user but no password",
        )
        .advise("Store the password with the profile, or write kafka://user:password@host."))
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the Kafka profile", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Settings> {
        let (endpoint, secrets) = Endpoint::parse(url).expect(url);
        Settings::read(&endpoint, &secrets)
    }

    fn check(url: &str, expected: &[(&str, &str)]) {
        let base = read(url).expect(url).base();
        for (name, value) in expected {
            assert_eq!(base.get(name), Some(*value), "{name} of {url}");
        }
    }

    #[test]
    fn urls_become_properties() {
        check(
            "kafka://a,b:1",
            &[
                ("bootstrap.servers", "a:9092,b:1"),
                ("security.protocol", "plaintext"),
            ],
        );
        check(
            "kafka://u:p@[::1]:2?ca=/ca.pem",
            &[
                ("bootstrap.servers", "[::1]:2"),
                ("security.protocol", "sasl_ssl"),
                ("sasl.mechanism", "PLAIN"),
                ("sasl.password", "p"),
                ("ssl.ca.location", "/ca.pem"),
            ],
        );
        check(
            "kafka://u:p@a?security=SASL_PLAINTEXT",
            &[
                ("sasl.mechanism", "SCRAM-SHA-512"),
                ("allow.auto.create.topics", "false"),
            ],
        );
        check(
            "kafka://a?cert=/c&key=/k&passphrase=s",
            &[("security.protocol", "ssl"), ("ssl.key.password", "s")],
        );
        check("kafka://a?token=t", &[("sasl.mechanism", "OAUTHBEARER")]);
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for url in [
            "kafka://a?security=tsl",
            "kafka://a?mechanism=MD5",
            "kafka://u:p@a?security=plaintext",
            "kafka://a?secruity=ssl",
            "kafka://a?group.id=x",
            "kafka://a?plugin.library.paths=/x.so",
            "kafka://u@a",
        ] {
            let error = read(url).expect_err(url);
            assert!(error.advice().is_some(), "{url}: {error}");
        }
    }

    #[test]
    fn the_password_is_not_in_debug() {
        let settings = read("kafka://u:hunter2@a").expect("a good URL");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
