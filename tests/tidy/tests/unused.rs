//! Nothing is asked for that nobody uses.

use anyhow::Result;
use dlo_tidy::{File, Member, files, members, none};

#[test]
fn every_dependency_is_used() -> Result<()> {
    let files = files()?;
    let mut offenders = Vec::new();
    for member in members()? {
        for dependency in &member.dependencies {
            let name = dependency.name.replace('-', "_");
            if !files.iter().any(|file| uses(file, &member, &name)) {
                offenders.push(format!("{} never uses {}", member.name, dependency.name));
            }
        }
    }
    none("A dependency that nobody uses is taken out", &offenders)
}

fn uses(file: &File, member: &Member, name: &str) -> bool {
    file.is_rust()
        && file.path.starts_with(&format!("{}/", member.folder))
        && file.lines().any(|(_, line)| has_word(line, name))
}

fn has_word(line: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        !line[..at].ends_with(is_inside) && !line[at + name.len()..].starts_with(is_inside)
    })
}

#[test]
fn every_shared_version_is_used() -> Result<()> {
    let files = files()?;
    let manifests = files
        .iter()
        .filter(|file| file.path.ends_with("Cargo.toml"));
    let (root, members): (Vec<_>, Vec<_>) = manifests.partition(|file| file.path == "Cargo.toml");
    let mut shared = root
        .iter()
        .flat_map(|file| file.lines())
        .map(|(_, line)| line)
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('#'))
        .peekable();
    assert!(
        shared.peek().is_some(),
        "the root manifest has another form"
    );
    let offenders = shared
        .filter(|name| {
            let wanted = [
                format!("{name}.workspace"),
                format!("{name} = {{ workspace"),
            ];
            let has = |line: &str| wanted.iter().any(|wanted| line.starts_with(wanted));
            !members
                .iter()
                .any(|file| file.lines().any(|(_, line)| has(line)))
        })
        .map(str::to_owned)
        .collect::<Vec<_>>();
    none("A version that no crate asks for is taken out", &offenders)
}
