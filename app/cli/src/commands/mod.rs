//! The subcommands, one file each.

mod audit;
mod change;
mod export;
mod json;
mod list;
mod look;
mod pointed;
mod profile;
mod redrive;
mod replay;
mod restore;
mod rounds;
mod runs;
mod selection;

use dlo_core::{Error, ErrorKind, Result};
use dlo_engine::Settings;

use crate::{
    args::{Arguments, Command, Topic},
    client::Client,
    exit,
};

/// Carries out a subcommand and gives its exit code.
pub fn run(arguments: Arguments, settings: Settings) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(ErrorKind::Unexpected, "start", error.to_string()))?;
    let Some(command) = arguments.command else {
        return Ok(exit::DONE);
    };
    if let Command::Explain { topic } = command {
        explain(topic, &settings);
        return Ok(exit::DONE);
    }
    runtime.block_on(async {
        let mut client = Client::start(settings)?;
        carry_out(&mut client, command).await
    })
}

/// Prints a help text. The one on classes is a rules file itself, so that it can be kept and changed.
fn explain(topic: Topic, settings: &Settings) {
    match topic {
        Topic::Query => println!("{}", dlo_engine::query::help()),
        Topic::Classes => {
            let file = settings.home.class_rules();
            println!(
                "# Your own rules go to {} and replace these.",
                file.display()
            );
            print!("{}", dlo_engine::group::Rules::default_text());
        }
    }
}

async fn carry_out(client: &mut Client, command: Command) -> Result<u8> {
    match command {
        Command::List(args) => list::run(client, args).await,
        Command::Look(args) => look::run(client, args).await,
        Command::Replay(args) => replay::run(client, *args).await,
        Command::Discard(args) => change::run(client, args, change::Kind::Discard).await,
        Command::Purge(args) => change::run(client, args, change::Kind::Purge).await,
        Command::Unresolve(args) => change::run(client, args, change::Kind::Unresolve).await,
        Command::Tombstone(args) => change::run(client, args, change::Kind::Tombstone).await,
        Command::Truncate(args) => change::run(client, args, change::Kind::Truncate).await,
        Command::Export(args) => export::run(client, args).await,
        Command::Import(args) => restore::import(client, args).await,
        Command::Restore(args) => restore::run(client, args).await,
        Command::Redrive(args) => redrive::run(client, args).await,
        Command::Audit(args) => audit::run(client, args).await,
        Command::Runs(args) => runs::run(client, args).await,
        Command::Profile { command } => profile::run(client, command).await,
        Command::Explain { .. } => Ok(exit::DONE),
    }
}

/// A time as a person writes it: RFC 3339, or an age such as 90s, 15m, 2h, 7d.
fn time(text: &str) -> Result<dlo_core::Millis> {
    let unit = |unit: char| match unit {
        's' => Some(1_000),
        'm' => Some(60_000),
        'h' => Some(3_600_000),
        'd' => Some(86_400_000),
        _ => None,
    };
    let age = text.chars().last().and_then(unit).and_then(|factor| {
        let number: i64 = text[..text.len() - 1].parse().ok()?;
        number.checked_mul(factor)
    });
    match age {
        Some(age) => Ok(dlo_core::Millis::now().plus(-age)),
        None => dlo_core::Millis::parse(text).ok_or_else(|| {
            Error::new(
                ErrorKind::ConfigInvalid,
                "read the time",
                format!("{text} is no time"),
            )
            .advise("Write 2026-11-30T03:00:00Z, or an age such as 90s, 15m, 2h, 7d.")
        }),
    }
}

fn usage(what: impl Into<String>, advice: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the arguments", what).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_or_ages() {
        assert_eq!(
            time("2026-11-30T03:00:00Z").map(|time| time.0),
            Ok(1_796_007_600_000)
        );
        let age = dlo_core::Millis::now().since(time("2h").expect("an age"));
        assert!((age - 7_200_000).abs() < 5_000, "{age}");
        assert!(time("yesterday").is_err() && time("é").is_err() && time("").is_err());
    }
}
