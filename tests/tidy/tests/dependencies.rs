//! Who may know whom: the invariants of the architecture, read from what cargo links.

use anyhow::Result;
use dlo_tidy::{File, Linked, Member, files, linked_into, members, none};

const CONNECTORS: [&str; 4] = ["dlo-kafka", "dlo-memory", "dlo-rabbitmq", "dlo-sqs"];

#[test]
fn the_engine_knows_no_broker_and_no_window() -> Result<()> {
    let linked = linked_into("dlo-engine")?;
    none(
        "The engine knows brokers as Arc<dyn Session> and the screen as Wake",
        &names(&linked, is_broker_or_window),
    )
}

#[test]
fn the_command_line_knows_no_broker_and_no_window() -> Result<()> {
    let linked = linked_into("dlo-cli")?;
    none(
        "The command line runs without a display, on whatever main.rs registers",
        &names(&linked, is_broker_or_window),
    )
}

fn is_broker_or_window(name: &str) -> bool {
    let clients = ["rdkafka", "rdkafka-sys", "lapin", "amq-protocol"];
    let windows = ["egui", "eframe", "winit", "rfd"];
    let aws = name.starts_with("aws-") && !name.starts_with("aws-lc-");
    aws || clients.contains(&name) || windows.contains(&name) || CONNECTORS.contains(&name)
}

#[test]
fn a_connector_knows_the_contract_and_nothing_else_of_ours() -> Result<()> {
    let mut offenders = Vec::new();
    for connector in CONNECTORS {
        let linked = linked_into(connector)?;
        let ours = |name: &str| {
            (name.starts_with("dlo-") || name == "dead-letter-office")
                && name != connector
                && name != "dlo-core"
        };
        offenders.extend(
            names(&linked, ours)
                .iter()
                .map(|name| format!("{connector} links {name}")),
        );
    }
    none(
        "A connector never knows a window, a decoder or another connector",
        &offenders,
    )
}

#[test]
fn only_the_program_knows_connectors() -> Result<()> {
    let offenders = app_crates_that_need(&members()?, &CONNECTORS, "dead-letter-office");
    none(
        "Only app/desktop depends on concrete connectors",
        &offenders,
    )
}

#[test]
fn only_main_names_connectors() -> Result<()> {
    let offenders = files()?
        .iter()
        .filter(|file| file.path.starts_with("app/desktop/") && file.is_rust())
        .filter(|file| file.path != "app/desktop/src/main.rs")
        .flat_map(|file| {
            mentions(
                file,
                &["dlo_kafka", "dlo_memory", "dlo_rabbitmq", "dlo_sqs"],
            )
        })
        .collect::<Vec<_>>();
    none(
        "Only app/desktop/src/main.rs names concrete connectors",
        &offenders,
    )
}

#[test]
fn only_the_window_knows_egui() -> Result<()> {
    let windows = ["egui", "eframe", "egui_extras", "rfd"];
    let offenders = app_crates_that_need(&members()?, &windows, "dead-letter-office");
    none("Only app/desktop knows egui", &offenders)
}

#[test]
fn only_the_audit_knows_sqlite() -> Result<()> {
    let mut offenders = app_crates_that_need(&members()?, &["rusqlite"], "dlo-engine");
    offenders.extend(
        files()?
            .iter()
            .filter(|file| file.is_rust() && !file.path.starts_with("app/engine/src/audit/"))
            .filter(|file| !file.path.starts_with("tests/tidy/"))
            .flat_map(|file| mentions(file, &["rusqlite"])),
    );
    none("Only audit/ knows SQLite", &offenders)
}

/// The crates outside tests/ that ask for one of these and are not `allowed`.
fn app_crates_that_need(members: &[Member], wanted: &[&str], allowed: &str) -> Vec<String> {
    let mut offenders = Vec::new();
    for member in members {
        if member.folder.starts_with("tests/") || member.name == allowed {
            continue;
        }
        for dependency in &member.dependencies {
            if !dependency.for_tests && wanted.contains(&dependency.name.as_str()) {
                offenders.push(format!("{} needs {}", member.name, dependency.name));
            }
        }
    }
    offenders
}

fn names(linked: &[Linked], matches: impl Fn(&str) -> bool) -> Vec<String> {
    let names = linked.iter().map(|one| &one.name);
    names.filter(|name| matches(name)).cloned().collect()
}

fn mentions(file: &File, words: &[&str]) -> Vec<String> {
    file.lines()
        .filter(|(_, line)| words.iter().any(|word| line.contains(word)))
        .map(|(number, line)| format!("{}:{number}: {}", file.path, line.trim()))
        .collect()
}
