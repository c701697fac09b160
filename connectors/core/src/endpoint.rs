//! Where a broker is: the URL of a profile or of the command line, without its secrets.
//!
//! A general URL library does not fit: `kafka://a:9092,b:9092` has two ports, and `demo:` has nothing.

use std::{collections::BTreeMap, fmt};

use crate::{Error, ErrorKind, Result, Secret, Secrets};

/// The parts of a broker's URL: `scheme://user@hosts/path?option=value`. Parts are percent-decoded.
///
/// Prints as that URL again. Secrets are never part of it: [`Endpoint::parse`] hands them out separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// In lower case: `amqp`, `amqps`, `kafka`, `sqs`, `demo`, `memory`, `file`.
    pub scheme: String,
    pub user: Option<String>,
    /// Everything between the user and the path, as written: one `host:port` or several with commas, or a region.
    pub hosts: String,
    /// What follows the first `/` after the hosts, without it; `None` when there is no `/`. For `file:` the file's path.
    pub path: Option<String>,
    pub options: BTreeMap<String, String>,
}

/// Options whose value is a secret, in the spellings of our own URLs, librdkafka and Java's `client.properties`.
pub const SECRET_OPTIONS: [&str; 12] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "secret_key",
    "session_token",
    "secret_access_key",
    "sasl.password",
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
];

impl Endpoint {
    /// Splits a URL into the endpoint and the secrets that stood in it (`password` for the one after `user:`).
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when there is no scheme or a part is not percent-encoded UTF-8. The text is not quoted
    /// in the error, as it may hold a password.
    pub fn parse(text: &str) -> Result<(Self, Secrets)> {
        let text = text.trim();
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| invalid("the URL has no scheme"))?;
        if scheme.is_empty()
            || !scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        {
            return Err(invalid("the URL's scheme is not a word"));
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut secrets = Secrets::default();
        let (rest, query) = rest
            .split_once('?')
            .map_or((rest, ""), |(rest, query)| (rest, query));
        let options = parse_options(query, &mut secrets)?;
        let Some(rest) = rest.strip_prefix("//").filter(|_| scheme != "file") else {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            let path = (!path.is_empty()).then(|| path.to_owned());
            return Ok((
                Self {
                    scheme,
                    path,
                    options,
                    ..Self::default()
                },
                secrets,
            ));
        };
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(decode(path)?)),
            None => (rest, None),
        };
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(parse_user(userinfo, &mut secrets)?), hosts),
            None => (None, authority),
        };
        Ok((
            Self {
                scheme,
                user,
                hosts: hosts.to_owned(),
                path,
                options,
            },
            secrets,
        ))
    }

    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// The hosts as `(host, port)`, with `default_port` where none is written. IPv6 addresses stand in brackets.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when a host is empty or a port is no number from 1 to 65535.
    pub fn host_list(&self, default_port: u16) -> Result<Vec<(String, u16)>> {
        self.hosts
            .split(',')
            .map(|host| parse_host(host.trim(), default_port))
            .collect()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        if !self.hosts.is_empty() {
            f.write_str("//")?;
            if let Some(user) = &self.user {
                write!(f, "{}@", encode(user, ""))?;
            }
            f.write_str(&self.hosts)?;
            if let Some(path) = &self.path {
                write!(f, "/{}", encode(path, ""))?;
            }
        } else if let Some(path) = &self.path {
            f.write_str(path)?;
        }
        for (index, (name, value)) in self.options.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            write!(
                f,
                "{separator}{}={}",
                encode(name, ""),
                encode(value, "/:,")
            )?;
        }
        Ok(())
    }
}

fn parse_options(query: &str, secrets: &mut Secrets) -> Result<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        if SECRET_OPTIONS.contains(&name.to_ascii_lowercase().as_str()) {
            secrets.insert(name, Secret::new(value));
        } else {
            options.insert(name, value);
        }
    }
    Ok(options)
}

fn parse_user(userinfo: &str, secrets: &mut Secrets) -> Result<String> {
    let (user, password) = match userinfo.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (userinfo, None),
    };
    if let Some(password) = password {
        secrets.insert("password", Secret::new(decode(password)?));
    }
    decode(user)
}

fn parse_host(host: &str, default_port: u16) -> Result<(String, u16)> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        None => host
            .split_once(':')
            .map_or((host, None), |(name, port)| (name, Some(port))),
    };
    if name.is_empty() {
        return Err(invalid("a host name is empty; write host or host:port"));
    }
    let port = match port {
        None => default_port,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            invalid(format!(
                "the port of {name} is not a number from 1 to 65535"
            ))
        })?,
    };
    Ok((name.to_owned(), port))
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the URL", what)
}

fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = (byte == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten();
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            (b'%', None) => {
                return Err(invalid(
                    "a % in the URL is not followed by two hexadecimal digits (write %25)",
                ));
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| invalid("a part of the URL is not UTF-8"))
}

fn encode(text: &str, keep: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ if keep.as_bytes().contains(&byte) => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, printed: &str, password: Option<&str>) {
        let (endpoint, secrets) = Endpoint::parse(text).expect(text);
        assert_eq!(endpoint.to_string(), printed);
        assert_eq!(secrets.get("password").map(Secret::expose), password);
    }

    #[test]
    fn every_form_of_the_design_parses_and_prints_without_its_secret() {
        check(
            "amqp://user:p%40ss@host:5672/%2Forders",
            "amqp://user@host:5672/%2Forders",
            Some("p@ss"),
        );
        check("kafka://a:9092,b:9093", "kafka://a:9092,b:9093", None);
        check(
            "sqs://eu-west-1?endpoint=http://[::1]:4566",
            "sqs://eu-west-1?endpoint=http://%5B::1%5D:4566",
            None,
        );
        check("demo:", "demo:", None);
        check("memory:", "memory:", None);
        check("file:capture.ndjson", "file:capture.ndjson", None);
        check("amqp://h?password=x1y2", "amqp://h", Some("x1y2"));
    }

    #[test]
    fn no_path_and_an_empty_path_differ() {
        assert_eq!(Endpoint::parse("amqp://h").map(|(e, _)| e.path), Ok(None));
        assert_eq!(
            Endpoint::parse("amqp://h/").map(|(e, _)| e.path),
            Ok(Some(String::new()))
        );
    }

    #[test]
    fn hosts_have_ports() {
        let (endpoint, _) = Endpoint::parse("kafka://a,b:1,[::1]:2").expect("a good URL");
        let hosts = endpoint.host_list(9092).expect("good hosts");
        assert_eq!(
            hosts,
            [
                ("a".to_owned(), 9092),
                ("b".to_owned(), 1),
                ("::1".to_owned(), 2)
            ]
        );
        let (endpoint, _) = Endpoint::parse("kafka://a:port").expect("a good URL");
        assert!(endpoint.host_list(9092).is_err());
    }

    #[test]
    fn an_error_does_not_quote_the_password() {
        let error = Endpoint::parse("amqp://u:hunter2%zz@h").expect_err("a bad escape");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
