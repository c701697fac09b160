//! Messages without what differs from case to case: numbers, ids, addresses, hosts, times. Two failures of one kind then have
//! the same text.

/// How much of a message is read. What tells failures apart stands at the beginning.
const LONGEST: usize = 400;

/// The first line of a message with `#` for numbers and `<uuid>`, `<id>`, `<hex>`, `<host>`, `<url>`, `<email>`, `<time>` for
/// the rest.
pub fn normalise(message: &str) -> String {
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = cut(line);
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(|c| !is_separator(c)) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(is_separator).unwrap_or(rest.len());
        push_word(&mut out, &rest[..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn cut(line: &str) -> &str {
    if line.len() <= LONGEST {
        return line;
    }
    let mut end = LONGEST;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | ','
                | ';'
                | '='
                | '|'
        )
}

fn push_word(out: &mut String, word: &str) {
    let core = word.trim_end_matches(['.', ':', '!', '?']);
    match stand_in(core) {
        Some(text) => out.push_str(text),
        None => push_numbers(out, core),
    }
    out.push_str(&word[core.len()..]);
}

/// What stands for a word that is different each time.
fn stand_in(word: &str) -> Option<&'static str> {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    if word.contains("://") {
        Some("<url>")
    } else if word.contains('@') && word.contains('.') {
        Some("<email>")
    } else if is_uuid(word) {
        Some("<uuid>")
    } else if has_digit && is_time(word) {
        Some("<time>")
    } else if is_host(word, has_digit) {
        Some("<host>")
    } else if has_digit && is_hex(word) {
        Some("<hex>")
    } else if has_digit && is_token(word) {
        Some("<id>")
    } else {
        None
    }
}

fn is_uuid(word: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    word.len() == 36
        && word.bytes().enumerate().all(|(index, byte)| {
            if dashes.contains(&index) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// `2026-11-30…` or `03:10:00…`.
fn is_time(word: &str) -> bool {
    let shape: Vec<u8> = word
        .bytes()
        .take(10)
        .map(|byte| if byte.is_ascii_digit() { b'0' } else { byte })
        .collect();
    shape == *b"0000-00-00" || shape == *b"0000/00/00" || shape.starts_with(b"00:00:00")
}

/// An address with a port, an IPv4 address, or a name with dots that looks like a host's.
fn is_host(word: &str, has_digit: bool) -> bool {
    let (name, port) = match word.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (name, true)
        }
        _ => (word, false),
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.is_empty()
        || !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    {
        return false;
    }
    if port && name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !name.contains("..") {
        return true;
    }
    is_ipv4(name) || (name.contains('.') && has_host_ending(name, has_digit))
}

fn is_ipv4(name: &str) -> bool {
    let mut parts = 0;
    name.split('.').all(|part| {
        parts += 1;
        part.parse::<u8>().is_ok()
    }) && parts == 4
}

/// Package and class names have dots too, so only endings that names of hosts have count.
fn has_host_ending(name: &str, has_digit: bool) -> bool {
    const ENDINGS: [&str; 10] = [
        ".internal",
        ".local",
        ".localdomain",
        ".svc",
        ".com",
        ".net",
        ".org",
        ".io",
        ".dev",
        ".cloud",
    ];
    let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    lower
        && (has_digit || name.contains('-') || name.matches('.').count() > 1)
        && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_hex(word: &str) -> bool {
    let digits = word.strip_prefix("0x");
    let enough = if digits.is_some() { 2 } else { 8 };
    let digits = digits.unwrap_or(word);
    digits.len() >= enough
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (enough == 2 || digits.bytes().any(|byte| byte.is_ascii_alphabetic()))
}

/// Long words of letters and digits that nobody wrote by hand.
fn is_token(word: &str) -> bool {
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    let digits = count(u8::is_ascii_digit);
    let mixed = count(u8::is_ascii_uppercase) >= 2 && count(u8::is_ascii_lowercase) >= 2;
    word.len() >= 20
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte))
        && (digits >= 4 || (mixed && digits >= 2))
}

/// Each run of digits becomes one `#`, with the points and commas inside it.
fn push_numbers(out: &mut String, word: &str) {
    let mut copied = 0;
    let bytes = word.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        // Digits and points are ASCII, so every cut lies between characters.
        out.push_str(&word[copied..at]);
        out.push('#');
        while at < bytes.len()
            && (bytes[at].is_ascii_digit()
                || (bytes[at] == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)))
        {
            at += 1;
        }
        copied = at;
    }
    out.push_str(&word[copied..]);
}

#[cfg(test)]
mod tests {
    use super::normalise;

    fn check(message: &str, expected: &str) {
        assert_eq!(normalise(message), expected);
    }

    #[test]
    fn what_differs_is_replaced_and_what_tells_stays() {
        check("timeout: db-3", "timeout: db-#");
        check(
            "schema orders v7, field \"currency\" missing",
            "schema orders v#, field \"currency\" missing",
        );
        check(
            "order 6f1c2b9e-8f3a-4c5d-9e1f-0a1b2c3d4e5f not found",
            "order <uuid> not found",
        );
        check("card declined: 4111", "card declined: #");
        check("smtp refused a@example.org", "smtp refused <email>");
        check(
            "stock service says no for {\"id\":\"o-1\",\"qty\":2.50}",
            "stock service says no for {\"id\":\"o-#\",\"qty\":#}",
        );
        check(
            "connect to 10.0.0.7:5432 failed",
            "connect to <host> failed",
        );
        check(
            "connect to db-3.prod.internal failed.",
            "connect to <host> failed.",
        );
        check("/10.0.0.7:5432 refused", "<host> refused");
        check("GET https://api.example.org/x?y=1: 503", "GET <url>=#: #");
        check(
            "at 2026-11-30T03:10:00.123Z (03:10:00)",
            "at <time> (<time>)",
        );
        check("object 0x7f3a at deadbeef01", "object <hex> at <hex>");
        check(
            "token eyJhbGciOiJIUzI1NiJ9abcd expired",
            "token <id> expired",
        );
        check("größe 12 überschritten\nmore", "größe # überschritten");
    }

    #[test]
    fn names_of_classes_are_not_hosts() {
        check(
            "java.lang.String cannot be cast to com.acme.Order",
            "java.lang.String cannot be cast to com.acme.Order",
        );
        check("no bean named orderService", "no bean named orderService");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert!(normalise(&"é".repeat(1000)).len() <= 400);
    }
}
