//! Where things are: the top level, the crates' folders, and scripts that stop at their first error.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context, Result};
use dlo_tidy::{File, files, members, none, root};
use regex::Regex;

#[test]
fn the_top_level_is_as_it_was_agreed() -> Result<()> {
    let agreed = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "app",
        "connectors",
        "tests",
        "assets",
        // Made by building, and ignored by git.
        "target",
    ];
    let mut offenders = Vec::new();
    for entry in fs::read_dir(root())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !agreed.contains(&name.as_str()) {
            offenders.push(name);
        }
    }
    none(
        "The top level holds only what the README's map shows",
        &offenders,
    )
}

#[test]
fn every_crate_is_in_its_place_and_under_the_lints() -> Result<()> {
    let mut offenders = Vec::new();
    let place = Regex::new("^(app|connectors|tests)/[a-z]+$")?;
    for member in members()? {
        let manifest = fs::read_to_string(root().join(&member.folder).join("Cargo.toml"))?;
        if !place.is_match(&member.folder) {
            offenders.push(format!("{} lies in {}", member.name, member.folder));
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            offenders.push(format!("{} has lints of its own", member.name));
        }
    }
    none(
        "A crate is a folder of app/, connectors/ or tests/",
        &offenders,
    )
}

#[test]
fn every_connector_has_a_line_in_main_and_a_conformance_test() -> Result<()> {
    let main = fs::read_to_string(root().join("app/desktop/src/main.rs"))?;
    let files = files()?;
    let mut offenders = Vec::new();
    for member in members()? {
        let Some(kind) = member.folder.strip_prefix("connectors/") else {
            continue;
        };
        if kind == "core" {
            continue;
        }
        if !main.contains(&member.name.replace('-', "_")) {
            offenders.push(format!("main.rs does not register {}", member.name));
        }
        let is_held_to_it = |file: &File| {
            file.path.starts_with("tests/")
                && file.path.contains(kind)
                && file
                    .text
                    .as_deref()
                    .is_some_and(|text| text.contains("dlo_conformance"))
        };
        if !files.iter().any(is_held_to_it) {
            offenders.push(format!("no conformance test runs {}", member.name));
        }
    }
    none(
        "A connector is registered and held to the suite",
        &offenders,
    )
}

#[test]
fn scripts_stop_at_their_first_error() -> Result<()> {
    let mut offenders = Vec::new();
    for file in files()? {
        let Some(text) = file.text.as_deref().filter(|text| text.starts_with("#!")) else {
            continue;
        };
        let mode = fs::metadata(root().join(&file.path))?.permissions().mode();
        if mode & 0o111 == 0 {
            offenders.push(format!("{} cannot be run", file.path));
        }
        let is_bash = text
            .lines()
            .next()
            .is_some_and(|line| line.ends_with("bash"));
        let guards = ["set -euo pipefail", "servers.bash\"", "exec \""];
        if is_bash && !guards.iter().any(|guard| text.contains(guard)) {
            offenders.push(format!("{} goes on after an error", file.path));
        }
    }
    none(
        "A script is executable and stops at its first error",
        &offenders,
    )
}

#[test]
fn the_readme_names_only_files_that_exist() -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let link = Regex::new(r"\]\(([^)#:]+)\)|`((?:app|connectors|tests|assets|\.ci)/[\w./-]+)`")?;
    let named: BTreeSet<_> = link
        .captures_iter(&readme)
        .filter_map(|found| found.get(1).or(found.get(2)))
        .map(|found| found.as_str().to_owned())
        .collect();
    let offenders = named
        .into_iter()
        .filter(|path| !root().join(path).exists())
        .collect::<Vec<_>>();
    none("The README names a file that is not there", &offenders)
}
