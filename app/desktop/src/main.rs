//! The program `dlo`: fills the registry of connectors; a subcommand runs the command line, none opens the window.
//!
//! This is the only place that names concrete connectors.

use std::process::ExitCode;

use dlo_core::{Error, ErrorKind, Result};
use dlo_engine::{capture::CaptureReader, home::Home, registry::Registry};
use dlo_memory::{FileConnector, Loaded, MemoryConnector};

fn main() -> ExitCode {
    let registry = registry();
    match dlo_cli::parse(std::env::args_os(), &registry) {
        Err(code) => code,
        Ok(arguments) if arguments.command.is_some() => dlo_cli::run(arguments, registry),
        Ok(arguments) => {
            let place = arguments
                .demo
                .then(|| "demo:".to_owned())
                .or(arguments.open);
            open_window(registry, place)
        }
    }
}

fn open_window(registry: Registry, place: Option<String>) -> ExitCode {
    let opened = Home::from_environment()
        .map_err(anyhow::Error::from)
        .and_then(|home| {
            dead_letter_office::window::open(
                registry,
                home,
                dlo_engine::audit::current_person(),
                place,
            )
        });
    match opened {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dlo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn registry() -> Registry {
    Registry::default()
        .with(dlo_rabbitmq::Rabbit)
        .with(dlo_kafka::KafkaConnector)
        .with(dlo_sqs::Sqs)
        .with(MemoryConnector)
        .with(FileConnector::new(std::sync::Arc::new(read_capture)))
}

/// The messages of a capture file, for `file:`.
fn read_capture(path: &std::path::Path) -> Result<Vec<Loaded>> {
    let invalid = |error: dlo_engine::capture::CaptureError| {
        Error::new(
            ErrorKind::ConfigInvalid,
            "read the capture file",
            error.to_string(),
        )
    };
    let reader = CaptureReader::open(path).map_err(invalid)?;
    reader
        .map(|captured| {
            let captured = captured.map_err(invalid)?;
            Ok(Loaded {
                destination: captured.destination,
                delivery: captured.delivery,
            })
        })
        .collect()
}
