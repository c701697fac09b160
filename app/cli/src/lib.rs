//! The command line of Dead Letter Office: the same engine as the window, without a display.
//!
//! Results go to standard output (tables for people, one JSON object a line with `--json`), progress and warnings to standard
//! error. The exit code says what happened, see [`exit`].

mod args;
mod client;
mod commands;
pub mod exit;
mod out;
mod progress;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, FromArgMatches};
use dlo_engine::{Settings, audit, home::Home, registry::Registry};

pub use args::Arguments;

/// Reads the arguments; without a subcommand ([`Arguments::command`]) the window is wanted.
///
/// # Errors
/// The exit code after a usage error or `--help`, which were printed.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    registry: &Registry,
) -> Result<Arguments, ExitCode> {
    let examples: Vec<_> = registry
        .infos()
        .iter()
        .map(|info| format!("  {:<10} {}", info.label, info.example))
        .collect();
    let command = Arguments::command().after_help(format!(
        "WHERE is a profile's name or a URL:\n{}",
        examples.join("\n")
    ));
    let matches = command.try_get_matches_from(arguments).map_err(|error| {
        let _ = error.print();
        ExitCode::from(if error.use_stderr() {
            exit::WRONG_USE
        } else {
            exit::DONE
        })
    })?;
    Arguments::from_arg_matches(&matches).map_err(|error| {
        let _ = error.print();
        ExitCode::from(exit::WRONG_USE)
    })
}

/// Carries out a subcommand.
pub fn run(arguments: Arguments, registry: Registry) -> ExitCode {
    let outcome = settings(registry).and_then(|settings| commands::run(arguments, settings));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            out::complain(&error);
            ExitCode::from(exit::of_error(&error))
        }
    }
}

fn settings(registry: Registry) -> dlo_core::Result<Settings> {
    Ok(Settings {
        registry,
        home: Home::from_environment()?,
        who: audit::current_person(),
        wake: std::sync::Arc::new(|| ()),
    })
}
