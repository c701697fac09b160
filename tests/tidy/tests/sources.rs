//! Rules for every file: what it begins with, how long it gets, and what must not stand in it.

use anyhow::Result;
use dlo_tidy::{File, files, none};
use regex::Regex;

const MOST_LINES: usize = 800;

#[test]
fn every_module_says_what_it_is_for() -> Result<()> {
    let offenders = rust_files()?
        .into_iter()
        .filter(|file| {
            !file
                .text
                .as_deref()
                .is_some_and(|text| text.starts_with("//! "))
        })
        .map(|file| file.path)
        .collect::<Vec<_>>();
    none(
        "A file begins with `//!`: what it is for, and why it is separate",
        &offenders,
    )
}

#[test]
fn no_file_is_too_long() -> Result<()> {
    let offenders = rust_files()?
        .into_iter()
        .filter(|file| file.lines().count() > MOST_LINES)
        .map(|file| format!("{}: {} lines", file.path, file.lines().count()))
        .collect::<Vec<_>>();
    none("A file this long holds more than one thing", &offenders)
}

#[test]
fn nothing_is_left_to_do() -> Result<()> {
    // Put together here, so that this file does not break its own rules.
    let unfinished = [concat!("to", "do!("), concat!("unimple", "mented!(")];
    let offenders = lines_with(&rust_files()?, |line| {
        unfinished.iter().any(|word| line.contains(word))
    });
    none("Unfinished code is not landed", &offenders)
}

#[test]
fn what_is_to_be_done_has_an_owner() -> Result<()> {
    let marks = Regex::new(concat!(r"\b(TO", r"DO|FIX", r"ME|X", r"XX|HA", r"CK)\b"))?;
    let owned = Regex::new(concat!(r"\bTO", r"DO\([a-z#0-9][^)]*\)"))?;
    let offenders = lines_with(&text_files()?, |line| {
        marks.is_match(line) && !owned.is_match(line)
    });
    none("A mark for later names who does it", &offenders)
}

#[test]
fn an_ignored_test_says_why() -> Result<()> {
    let without_reason = concat!("#[ign", "ore]");
    let offenders = lines_with(&rust_files()?, |line| line.trim() == without_reason);
    none("An ignored test has a reason", &offenders)
}

#[test]
fn no_test_skips_itself() -> Result<()> {
    let excuse = Regex::new(concat!(r#"print(ln)?!\("skip"#, "ped"))?;
    // A person's own keychain may ask for a password: tests/run gives that test one of its own.
    let files = rust_files()?
        .into_iter()
        .filter(|file| file.path != "app/engine/src/secrets/keychain.rs")
        .collect::<Vec<_>>();
    let offenders = lines_with(&files, |line| excuse.is_match(line));
    none("A test that cannot run fails", &offenders)
}

#[test]
fn no_path_of_a_machine() -> Result<()> {
    let paths = Regex::new(concat!(
        r#"(^|[\s"'`=(:])/(ro"#,
        r"ot|wo",
        r"rk|ho",
        r#"me/[a-z]+|Us"#,
        r#"ers/[A-Za-z]+)/"#
    ))?;
    let offenders = lines_with(&text_files()?, |line| paths.is_match(line));
    none("A path of one machine means nothing on another", &offenders)
}

#[test]
fn no_host_of_a_package_registry() -> Result<()> {
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted.org"),
        concat!("maven", ".org"),
        concat!("maven.apache", ".org/maven2"),
        concat!("npmjs", ".org"),
        concat!("debian", ".org"),
        concat!("docker", ".io"),
        concat!("ghcr", ".io"),
        concat!("quay", ".io"),
        concat!("proxy.go", "lang.org"),
    ];
    // Cargo itself writes the name of its registry into its lock file.
    let files = text_files()?
        .into_iter()
        .filter(|file| file.path != "Cargo.lock")
        .collect::<Vec<_>>();
    let offenders = lines_with(&files, |line| hosts.iter().any(|host| line.contains(host)));
    none(
        "Packages come through the ordinary clients, from the mirror that the machine has",
        &offenders,
    )
}

fn rust_files() -> Result<Vec<File>> {
    Ok(files()?.into_iter().filter(File::is_rust).collect())
}

fn text_files() -> Result<Vec<File>> {
    // Captures and dumps hold what brokers wrote, not what we did.
    let is_ours = |file: &File| file.text.is_some() && !file.path.starts_with("assets/");
    Ok(files()?.into_iter().filter(is_ours).collect())
}

fn lines_with(files: &[File], breaks: impl Fn(&str) -> bool) -> Vec<String> {
    let mut offenders = Vec::new();
    for file in files {
        for (number, line) in file.lines().filter(|(_, line)| breaks(line)) {
            offenders.push(format!("{}:{number}: {}", file.path, line.trim()));
        }
    }
    offenders
}
