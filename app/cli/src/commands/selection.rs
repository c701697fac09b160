//! Which messages, and how the look must be made to reach them.

use std::time::Duration;

use dlo_core::{AddressKind, Consent, Destination, Follow, Isolation, Position, Result, Start};
use dlo_engine::command::{LookAsk, Selection};

use super::{time, usage};
use crate::args::{self, Looking, Selecting};

/// Messages that `look` shows unless told otherwise.
const LOOK_LIMIT: u64 = 10_000;
/// Without bound: as many rows as one look can number.
const ALL: u64 = u32::MAX as u64;

/// What to do when nothing is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// Looking and exporting show all.
    All,
    /// A change must say which.
    MustSay,
}

/// The selection that the arguments mean.
pub fn selection(selecting: &Selecting, default: Default) -> Result<Selection> {
    if let Some(count) = selecting.first {
        return Ok(Selection::First(count));
    }
    if let Some(query) = &selecting.matching {
        return Ok(Selection::Match(query.clone()));
    }
    if !selecting.positions.is_empty() {
        return Ok(Selection::Positions(positions(&selecting.positions)?));
    }
    if selecting.all || default == Default::All {
        return Ok(Selection::All);
    }
    Err(usage(
        "it is not said which messages",
        "Say --all, --first N, --match QUERY or --position P.",
    ))
}

fn positions(texts: &[String]) -> Result<Vec<Position>> {
    texts
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|error: String| usage(error, "`dlo look` prints positions."))
        })
        .collect()
}

/// The look for a command that acts on a selection.
pub fn look_ask(
    looking: &Looking,
    selection: &Selection,
    at: &Destination,
    default: Default,
) -> Result<LookAsk> {
    let start = match (selection, &looking.from) {
        (Selection::Positions(positions), None) => Start::Positions(positions.clone()),
        (_, Some(from)) => start(from)?,
        // A change works on everything, oldest first; a look shows what is newest.
        (_, None) if default == Default::MustSay || at.address.kind != AddressKind::Topic => {
            Start::Oldest
        }
        (_, None) => Start::Newest,
    };
    let limit = looking.limit.unwrap_or(match (selection, default) {
        (Selection::First(count), _) => *count,
        (Selection::Positions(_), _) | (_, Default::MustSay) => ALL,
        _ => LOOK_LIMIT,
    });
    Ok(LookAsk {
        start,
        limit,
        partitions: looking.partitions.clone(),
        isolation: match looking.isolation {
            args::Isolation::ReadCommitted => Isolation::ReadCommitted,
            args::Isolation::ReadUncommitted => Isolation::ReadUncommitted,
        },
        follow: Follow::Stop,
        hold: Duration::from_secs(looking.hold.max(1)),
        consent: if looking.accept_cost {
            Consent::Given
        } else {
            Consent::Unasked
        },
    })
}

fn start(text: &str) -> Result<Start> {
    match text {
        "newest" => return Ok(Start::Newest),
        "oldest" => return Ok(Start::Oldest),
        _ => {}
    }
    let offset = |part: &str| match part.parse() {
        Ok(Position::Offset { partition, offset }) => Some((partition, offset)),
        _ => None,
    };
    match text.split(',').map(offset).collect::<Option<Vec<_>>>() {
        Some(offsets) => Ok(Start::Offsets(offsets)),
        None => time(text).map(Start::Time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_words_offsets_or_times() {
        assert_eq!(start("newest"), Ok(Start::Newest));
        assert_eq!(start("0:5,2:7"), Ok(Start::Offsets(vec![(0, 5), (2, 7)])));
        assert_eq!(
            start("2026-11-30T03:00:00Z"),
            Ok(Start::Time(dlo_core::Millis(1_796_007_600_000)))
        );
        assert!(start("soon").is_err());
    }
}
