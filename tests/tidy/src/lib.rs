//! What the tests of the repository's own rules share: its files, and what cargo says of its crates.
//!
//! Rules are tests here, not steps of a CI service, so that everybody meets them at the desk.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A file of the repository: its path below the root, and its text if it is text.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: Option<String>,
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Numbered lines, empty for a binary file.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let text = self.text.as_deref().unwrap_or_default();
        text.lines().enumerate().map(|(at, line)| (at + 1, line))
    }
}

/// The folder with the workspace's manifest.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Every file, except what building makes and what git keeps for itself.
///
/// # Errors
/// A file that cannot be read.
pub fn files() -> Result<Vec<File>> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            if name == "target" || name == ".git" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = String::from_utf8(fs::read(&path)?).ok();
                found.push(File { path: name, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// What a cargo subcommand prints.
///
/// # Errors
/// Its own words, when it fails.
pub fn cargo(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(arguments)
        .arg("--locked")
        .current_dir(root())
        .output()?;
    ensure!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// A crate of the workspace, with the crates it asks for itself.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    /// Its folder below the root.
    pub folder: String,
    pub dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug)]
pub struct Dependency {
    /// As the manifest names the crate, and as the source does.
    pub name: String,
    /// Whether it is for tests only.
    pub for_tests: bool,
}

/// The crates of the workspace.
///
/// # Errors
/// What cargo says.
pub fn members() -> Result<Vec<Member>> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version=1", "--no-deps"])?)?;
    let root = root();
    list(&metadata["packages"])
        .map(|package| {
            let manifest = Path::new(text(&package["manifest_path"])?);
            let folder = manifest.parent().unwrap_or(manifest).strip_prefix(&root)?;
            Ok(Member {
                name: text(&package["name"])?.to_owned(),
                folder: folder.to_string_lossy().into_owned(),
                dependencies: list(&package["dependencies"])
                    .map(dependency)
                    .collect::<Result<_>>()?,
            })
        })
        .collect()
}

fn dependency(value: &Value) -> Result<Dependency> {
    let name = value["rename"].as_str().or(value["name"].as_str());
    Ok(Dependency {
        name: name.context("a dependency without a name")?.to_owned(),
        for_tests: value["kind"] == "dev",
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata has another form")
}

/// One crate that is linked in, with its licence.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Linked {
    pub name: String,
    pub licence: String,
}

/// All that is linked into a crate, itself included. Asks `cargo tree`, which knows the features as they
/// are built; `cargo metadata` lists also what no feature switches on.
///
/// # Errors
/// What cargo says.
pub fn linked_into(package: &str) -> Result<Vec<Linked>> {
    let tree = cargo(&[
        "tree",
        "--package",
        package,
        "--edges=normal",
        "--prefix=none",
        "--format={p}|{l}",
    ])?;
    let mut linked: Vec<Linked> = tree.lines().filter_map(linked).collect();
    linked.sort();
    linked.dedup();
    Ok(linked)
}

fn linked(line: &str) -> Option<Linked> {
    let (package, licence) = line.split_once('|')?;
    Some(Linked {
        name: package.split(' ').next()?.to_owned(),
        licence: licence.trim_end_matches(" (*)").to_owned(),
    })
}

/// Fails with the list, one a line, unless it is empty.
///
/// # Errors
/// The rule and what breaks it.
pub fn none(rule: &str, offenders: &[String]) -> Result<()> {
    ensure!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
    Ok(())
}
