//! What is linked into the program may be given away, and nothing is in it twice: `.deny.toml`, without a tool.

use std::fs;

use anyhow::{Context, Result};
use dlo_tidy::{linked_into, none, root};
use regex::Regex;

const PROGRAM: &str = "dead-letter-office";

#[test]
fn every_licence_is_allowed() -> Result<()> {
    let allowed = strings_of("allow")?;
    let offenders = linked_into(PROGRAM)?
        .into_iter()
        .filter(|linked| !Expression::new(&linked.licence, &allowed).holds())
        .map(|linked| format!("{}: {}", linked.name, linked.licence))
        .collect::<Vec<_>>();
    none("A licence is not in .deny.toml", &offenders)
}

#[test]
fn nothing_banned_is_linked() -> Result<()> {
    let banned = strings_of("deny")?;
    let offenders = linked_into(PROGRAM)?
        .into_iter()
        .map(|linked| linked.name)
        .filter(|name| banned.contains(name))
        .collect::<Vec<_>>();
    none("A crate is banned in .deny.toml", &offenders)
}

#[test]
fn openssl_is_inside_librdkafka_only() -> Result<()> {
    for package in ["dlo-engine", "dlo-rabbitmq", "dlo-sqs"] {
        let linked = linked_into(package)?;
        assert!(
            linked.iter().all(|linked| linked.name != "openssl-sys"),
            "{package} links OpenSSL"
        );
    }
    Ok(())
}

#[test]
fn both_licences_are_here() -> Result<()> {
    for (name, words) in [
        ("LICENSE-MIT", "Permission is hereby granted"),
        ("LICENSE-APACHE", "Version 2.0, January 2004"),
    ] {
        let text = fs::read_to_string(root().join(name)).context(name)?;
        assert!(text.contains(words), "{name} is another text");
    }
    Ok(())
}

/// The quoted strings of a list in `.deny.toml`.
fn strings_of(key: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(".deny.toml"))?;
    let list = Regex::new(&format!(r"(?ms)^{key} = \[$(.*?)^\]"))?;
    let list = list.captures(&text).context("no such list")?;
    let strings = Regex::new("\"([^\"]+)\"")?;
    Ok(strings
        .captures_iter(&list[1])
        .map(|found| found[1].to_owned())
        .collect())
}

/// An SPDX expression, read from left to right. `AND` binds closer than `OR`; the old `/` means `OR`.
struct Expression<'a> {
    tokens: Vec<String>,
    at: usize,
    allowed: &'a [String],
}

impl<'a> Expression<'a> {
    fn new(licence: &str, allowed: &'a [String]) -> Self {
        let spaced = licence
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ")
            .replace(" WITH ", "\u{a0}WITH\u{a0}");
        let tokens = spaced.split([' ']).filter(|token| !token.is_empty());
        Self {
            tokens: tokens.map(|token| token.replace('\u{a0}', " ")).collect(),
            at: 0,
            allowed,
        }
    }

    fn holds(mut self) -> bool {
        let holds = self.any();
        holds && self.at == self.tokens.len()
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.takes("OR") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.one();
        while self.takes("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let holds = self.any();
            return self.takes(")") && holds;
        }
        let Some(name) = self.tokens.get(self.at) else {
            return false;
        };
        self.at += 1;
        self.allowed.contains(name)
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.tokens.get(self.at).is_some_and(|next| next == token);
        self.at += usize::from(is_next);
        is_next
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (licence, holds) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("MIT AND GPL-3.0 OR ISC", true),
        ("MIT AND (GPL-3.0 OR ISC)", true),
        ("(GPL-3.0 OR MIT) AND GPL-2.0", false),
        ("Apache-2.0 WITH LLVM-exception AND MIT", true),
        ("MIT ISC", false),
    ] {
        assert_eq!(
            Expression::new(licence, &allowed).holds(),
            holds,
            "{licence}"
        );
    }
}
