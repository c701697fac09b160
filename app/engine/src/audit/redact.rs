//! Takes secrets out of addresses before they are stored or shown.

/// Words in the name of an option that make its value a secret.
const SECRET_WORDS: &[&str] = &[
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "jaas",
    "sasl",
    "signature",
];

/// Options with such a word whose value is no secret.
const PLAIN_OPTIONS: &[&str] = &[
    "auth_mechanism",
    "sasl_mechanism",
    "sasl.mechanism",
    "sasl.mechanisms",
    "key_format",
    "access_key_id",
];

/// A URL without the user's password and without the values of options that look secret.
///
/// The user name stays, because it says which account was used; so does everything else, letter for
/// letter. It works on the text and not on a parsed URL, because several hosts
/// (`kafka://user:password@one:9092,two:9092`) and passwords with odd characters are more than a URL
/// parser takes. The last `@` ends the password: too much is hidden rather than too little.
pub fn redacted(address: &str) -> String {
    let (base, query) = match address.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (address, None),
    };
    let mut text = match (base.find("://"), base.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => without_password(base, scheme + 3, at),
        _ => base.to_owned(),
    };
    if let Some(query) = query {
        let options: Vec<String> = query.split('&').map(redacted_option).collect();
        text.push('?');
        text.push_str(&options.join("&"));
    }
    text
}

fn redacted_option(option: &str) -> String {
    match option.split_once('=') {
        Some((name, _)) if looks_secret(name) => format!("{name}=***"),
        Some((name, value)) if value.contains("://") => format!("{name}={}", redacted(value)),
        _ => option.to_owned(),
    }
}

/// Whether the value of an option with this name should be treated as a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    !PLAIN_OPTIONS.contains(&name.as_str()) && SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn without_password(base: &str, start: usize, at: usize) -> String {
    match base[start..at].split_once(':') {
        Some((user, _)) => format!("{}{user}:***{}", &base[..start], &base[at..]),
        None => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(redacted(input), expected, "{input}");
    }

    #[test]
    fn passwords_and_secret_options_go_and_the_rest_stays() {
        check(
            "amqp://guest:gu%40est@host:5672/v",
            "amqp://guest:***@host:5672/v",
        );
        check(
            "kafka://me:p:w@a:9092,b:9093?sasl_password=x&acks=all",
            "kafka://me:***@a:9092,b:9093?sasl_password=***&acks=all",
        );
        check(
            "sqs://eu-west-1?endpoint=http://[::1]:4566&secret_access_key=abc",
            "sqs://eu-west-1?endpoint=http://[::1]:4566&secret_access_key=***",
        );
        check(
            "kafka://h:1?sasl.mechanism=PLAIN",
            "kafka://h:1?sasl.mechanism=PLAIN",
        );
        check("amqp://u:a@b/c@host/v", "amqp://u:***@host/v");
        check("orders-prod", "orders-prod");
        check("demo:", "demo:");
        check("file:capture.ndjson", "file:capture.ndjson");
    }

    #[test]
    fn a_nested_address_in_an_option_loses_its_password_too() {
        check(
            "amqp://h/?management=http://u:geheim@h:15672",
            "amqp://h/?management=http://u:***@h:15672",
        );
    }
}
