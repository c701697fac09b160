//! The program itself, without a display and in a home of its own: a subcommand never opens a window.
//!
//! Separate from the command line's tests, because only here cargo builds `dlo` first.

use std::{
    io::Result,
    process::{Command, Output},
};

fn dlo(arguments: &[&str]) -> Result<Output> {
    let home = std::env::temp_dir().join(format!("dlo-program-{}", std::process::id()));
    Command::new(env!("CARGO_BIN_EXE_dlo"))
        .args(arguments)
        .env("DLO_HOME", home)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
}

#[test]
fn it_says_its_version() {
    let output = dlo(&["--version"]).unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), concat!("dlo ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_demo_is_listed_without_a_display() {
    let output = dlo(&["list", "demo:", "--dead"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("orders.dlq"));
}

#[test]
fn every_kind_of_broker_is_registered() {
    // Nothing listens on the discard port: each answers that it cannot reach it, not that it knows no such broker.
    for (place, code) in [
        ("amqp://127.0.0.1:9", 1),
        ("kafka://127.0.0.1:9", 1),
        ("sqs://eu-west-1?endpoint=http://127.0.0.1:9", 1),
        ("carrier-pigeon://127.0.0.1:9", 2),
    ] {
        let output = dlo(&["list", place]).unwrap();
        assert_eq!(output.status.code(), Some(code), "{place}: {output:?}");
    }
}
