//! Import of configuration files that people already have: Java's `client.properties` and librdkafka's, which looks alike.
//!
//! Separate from `config.rs`, which reads our own URLs: here the two worlds' names and files are brought into that form.

use std::collections::BTreeMap;

use dlo_core::{Endpoint, Error, ErrorKind, Result, Secret, Secrets};

/// Settings that only make sense to a program that consumes or produces all day; an import leaves them out silently.
const OF_NO_USE: [&str; 7] = [
    "group.",
    "auto.",
    "enable.",
    "key.",
    "value.",
    "max.poll.",
    "session.",
];

/// Reads the text of a `client.properties` (Java) or of a librdkafka configuration file.
///
/// Gives the endpoint for a profile and the secrets to keep apart from it.
///
/// # Errors
/// [`ErrorKind::ConfigInvalid`] when `bootstrap.servers` is missing, or a key store has a form that librdkafka cannot read
/// (JKS); the advice has the command that converts it.
pub fn import(text: &str) -> Result<(Endpoint, Secrets)> {
    let mut properties = parse(text);
    let hosts = properties
        .remove("bootstrap.servers")
        .or_else(|| properties.remove("metadata.broker.list"))
        .ok_or_else(|| {
            invalid("it names no bootstrap.servers")
                .advise("Add a line bootstrap.servers=host:9092.")
        })?;
    let mut import = Import {
        endpoint: Endpoint {
            scheme: "kafka".to_owned(),
            hosts: hosts.replace(' ', ""),
            ..Endpoint::default()
        },
        secrets: Secrets::default(),
    };
    import.login(&mut properties)?;
    import.stores(&mut properties)?;
    import.rest(properties);
    Ok((import.endpoint, import.secrets))
}

struct Import {
    endpoint: Endpoint,
    secrets: Secrets,
}

impl Import {
    fn option(&mut self, name: &str, value: impl Into<String>) {
        self.endpoint.options.insert(name.to_owned(), value.into());
    }

    fn secret(&mut self, name: &str, value: impl Into<String>) {
        self.secrets.insert(name, Secret::new(value));
    }

    /// Mechanism, user and password, which Java writes into one line of JAAS.
    fn login(&mut self, properties: &mut BTreeMap<String, String>) -> Result<()> {
        if let Some(security) = properties.remove("security.protocol") {
            self.option("security", security.to_ascii_lowercase());
        }
        let mechanism = properties
            .remove("sasl.mechanism")
            .or_else(|| properties.remove("sasl.mechanisms"));
        if let Some(mechanism) = mechanism {
            if mechanism == "AWS_MSK_IAM" {
                return Err(invalid("its mechanism AWS_MSK_IAM exists only in Java").advise(
                    "Use the mechanism OAUTHBEARER with a token of aws-msk-iam-sasl-signer as the secret named token.",
                ));
            }
            self.option("mechanism", mechanism);
        }
        let jaas = properties
            .remove("sasl.jaas.config")
            .map(|line| jaas_options(&line))
            .unwrap_or_default();
        self.endpoint.user = properties
            .remove("sasl.username")
            .or_else(|| jaas.get("username").cloned());
        let password = properties
            .remove("sasl.password")
            .or_else(|| jaas.get("password").cloned());
        if let Some(password) = password {
            self.secret("password", password);
        }
        properties.retain(|name, _| {
            name != "sasl.client.callback.handler.class"
                && name != "sasl.login.callback.handler.class"
        });
        Ok(())
    }

    /// Trust and key stores: PEM and PKCS#12 can be used, Java's own format cannot.
    fn stores(&mut self, properties: &mut BTreeMap<String, String>) -> Result<()> {
        let trust = properties.remove("ssl.truststore.location");
        let trust_type = store_type(properties.remove("ssl.truststore.type"), trust.as_deref());
        properties.remove("ssl.truststore.password");
        match (trust, trust_type.as_str()) {
            (None, _) => {}
            (Some(path), "PEM") => self.option("ca", path),
            (Some(path), kind) => {
                return Err(invalid(format!("its trust store is in the form {kind}"))
                    .with("file", path)
                    .advise("Write the authorities as PEM (keytool -exportcert -rfc -alias … -keystore …) and set ssl.truststore.type=PEM, or ca= in the URL."));
            }
        }
        let key = properties.remove("ssl.keystore.location");
        let key_type = store_type(properties.remove("ssl.keystore.type"), key.as_deref());
        match (key, key_type.as_str()) {
            (None, _) => {}
            (Some(path), "PEM") => {
                self.option("cert", path.clone());
                self.option("key", path);
            }
            (Some(path), "PKCS12") => self.option("ssl.keystore.location", path),
            (Some(path), kind) => {
                return Err(invalid(format!("its key store is in the form {kind}"))
                    .with("file", path)
                    .advise("Convert it: keytool -importkeystore -srckeystore … -destkeystore client.p12 -deststoretype PKCS12; then name that file and set ssl.keystore.type=PKCS12."));
            }
        }
        for name in ["ssl.keystore.password", "ssl.key.password"] {
            if let Some(password) = properties.remove(name) {
                self.secret(name, password);
            }
        }
        Ok(())
    }

    fn rest(&mut self, properties: BTreeMap<String, String>) {
        for (name, value) in properties {
            match name.as_str() {
                "client.id" => self.option("client.id", value),
                // An empty algorithm is how Java says that the host name is not checked.
                "ssl.endpoint.identification.algorithm" if value.is_empty() => {
                    self.option(&name, "none");
                }
                "ssl.key.pem" | "ssl.keystore.key" => self.secret(&name, value),
                _ if OF_NO_USE.iter().any(|prefix| name.starts_with(prefix)) => {}
                _ if name.starts_with("ssl.") || name.starts_with("sasl.") => {
                    self.option(&name, value);
                }
                _ => {}
            }
        }
    }
}

fn store_type(written: Option<String>, path: Option<&str>) -> String {
    if let Some(written) = written {
        return written.to_ascii_uppercase();
    }
    let path = path.unwrap_or_default().to_ascii_lowercase();
    let of_name = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if of_name(&[".pem", ".crt", ".cer", ".key"]) {
        "PEM".to_owned()
    } else if of_name(&[".p12", ".pfx"]) {
        "PKCS12".to_owned()
    } else {
        "JKS".to_owned()
    }
}

/// The `name="value"` pairs of a JAAS line.
fn jaas_options(line: &str) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before
            .rsplit(char::is_whitespace)
            .next()
            .unwrap_or_default();
        let after = after.trim_start();
        let (value, tail) = match after.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = after
                    .find(|c: char| c.is_whitespace() || c == ';')
                    .unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        options.insert(name.to_owned(), value);
        rest = tail;
    }
    options
}

/// A value up to its closing quote, and what follows it.
fn quoted_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return (value, &text[index + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => value.push(c),
        }
    }
    (value, "")
}

/// Java's properties format (`java.util.Properties.load`): comments, continued lines, three separators, escapes.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while ends_continued(&line) {
            line.pop();
            line.push_str(lines.next().unwrap_or_default().trim_start());
        }
        let (name, value) = split_property(&line);
        properties.insert(unescape(name), unescape(value).trim_end().to_owned());
    }
    properties
}

fn ends_continued(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

fn split_property(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let is_end = !escaped && (*c == '=' || *c == ':' || c.is_whitespace());
        escaped = *c == '\\' && !escaped;
        is_end
    });
    let Some((end, _)) = end else {
        return (line, "");
    };
    let value = line[end..].trim_start();
    let value = value.strip_prefix(['=', ':']).unwrap_or(value);
    (&line[..end], value.trim_start())
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let code: String = chars.by_ref().take(4).collect();
                let unit = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                plain.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "import the file", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, url: &str, secrets: &[(&str, &str)]) {
        let (endpoint, found) = import(text).expect(text);
        assert_eq!(endpoint.to_string(), url);
        let found: Vec<_> = found.iter().map(|(n, s)| (n, s.expose())).collect();
        assert_eq!(found, secrets);
    }

    #[test]
    fn a_java_file_with_scram_and_tls() {
        let text = r#"
# our cluster
bootstrap.servers = a:9092, \
                    b:9092
security.protocol=SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="p\\"1 = x";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
ssl.endpoint.identification.algorithm=
group.id=mine
"#;
        check(
            text,
            "kafka://me@a:9092,b:9092?ca=/etc/ca.pem&mechanism=SCRAM-SHA-512&security=sasl_ssl&ssl.endpoint.identification.algorithm=none",
            &[("password", "p\"1 = x")],
        );
    }

    #[test]
    fn a_librdkafka_file() {
        check(
            "metadata.broker.list=a:1\nsecurity.protocol=ssl\nssl.ca.location=/ca\nssl.key.password=k",
            "kafka://a:1?security=ssl&ssl.ca.location=/ca",
            &[("ssl.key.password", "k")],
        );
    }

    #[test]
    fn a_java_key_store_is_refused_with_the_command_that_converts_it() {
        let error =
            import("bootstrap.servers=a:1\nssl.keystore.location=/k.jks\nssl.keystore.password=x")
                .expect_err("JKS");
        assert_eq!(error.kind(), ErrorKind::ConfigInvalid);
        assert!(
            error
                .advice()
                .is_some_and(|advice| advice.contains("keytool"))
        );
    }

    #[test]
    fn escapes_of_the_format() {
        let parsed = parse("a\\=b = c\\u00e9\\n\n! no\nd e");
        assert_eq!(parsed.get("a=b").map(String::as_str), Some("cé"));
        assert_eq!(parsed.get("d").map(String::as_str), Some("e"));
    }
}
