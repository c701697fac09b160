//! Which destinations need somebody now: those past a threshold that a person set, else dead letters that grow or expire soon.

use dlo_core::{Address, Millis};
use dlo_engine::{
    command::{ConnectionId, Thresholds},
    event::Listed,
};

use super::{AppState, Connection};
use crate::{widgets::figure, words};

/// Why a destination needs somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub connection: ConnectionId,
    pub address: Address,
    pub kind: AlertKind,
    pub text: String,
    /// A person asked to be told.
    pub origin: Origin,
    /// Lower comes first.
    pub rank: i64,
}

/// What is past its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertKind {
    Expiry,
    Depth,
    Age,
    Growth,
}

/// Where a threshold comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Set by a person for this destination.
    Person,
    /// What anybody would want to know of dead letters.
    Usual,
}

const DAY: i64 = 86_400_000;

impl AppState {
    /// Destinations that need somebody, the most urgent first.
    pub fn alerts(&self) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for connection in &self.connections {
            let list = connection.list.value().into_iter();
            for listed in list.flat_map(|list| list.iter()) {
                if listed.notes.alert.is_empty() {
                    alerts.extend(usual(connection, listed, self.now));
                } else if let Some(shown) = self.shown(connection, &listed.destination.address) {
                    alerts.extend(crossed(connection, &shown, self.now));
                }
            }
        }
        alerts.sort_by_key(|alert| alert.rank);
        alerts
    }
}

/// Without thresholds: dead letters that expire within a day, or grow.
fn usual(connection: &Connection, listed: &Listed, now: Millis) -> Option<Alert> {
    let destination = &listed.destination;
    if !destination.holds_dead_letters() || destination.depth.value == Some(0) {
        return None;
    }
    let usual = Thresholds {
        expiry: Some(DAY.unsigned_abs() / 1000),
        growth: Some(1),
        ..Thresholds::default()
    };
    past(&usual, listed, now)
        .into_iter()
        .next()
        .map(|(kind, text, rank)| Alert {
            connection: connection.id,
            address: destination.address.clone(),
            kind,
            text: format!("{}: {text}", destination.address.name),
            origin: Origin::Usual,
            rank,
        })
}

/// Every threshold of a destination that is crossed.
fn crossed(connection: &Connection, listed: &Listed, now: Millis) -> Vec<Alert> {
    let address = &listed.destination.address;
    let past = past(&listed.notes.alert, listed, now);
    past.into_iter()
        .map(|(kind, text, rank)| Alert {
            connection: connection.id,
            address: address.clone(),
            kind,
            text: format!(
                "{}: {text} (threshold {})",
                address.name,
                threshold(&listed.notes.alert, kind)
            ),
            origin: Origin::Person,
            rank,
        })
        .collect()
}

/// What is past, in words, with its rank; the most urgent first. A figure that is not known crosses nothing.
fn past(thresholds: &Thresholds, listed: &Listed, now: Millis) -> Vec<(AlertKind, String, i64)> {
    let destination = &listed.destination;
    let seconds = |millis: i64| millis.max(0).unsigned_abs() / 1000;
    let mut past = Vec::new();
    let left = destination.expires.value.map(|time| time.since(now));
    if let (Some(most), Some(left)) = (thresholds.expiry, left)
        && seconds(left) <= most
        && destination.depth.value != Some(0)
    {
        let text = format!(
            "the first message expires in {}",
            figure::until(destination.expires, now)
        );
        past.push((AlertKind::Expiry, text, left));
    }
    if let (Some(least), Some(depth)) = (thresholds.depth, destination.depth.value)
        && depth >= least
    {
        let text = format!("{} messages", words::figure(destination.depth));
        past.push((AlertKind::Depth, text, DAY));
    }
    let age = destination.oldest.value.map(|time| now.since(time));
    if let (Some(least), Some(age)) = (thresholds.age, age)
        && seconds(age) >= least
        && destination.depth.value != Some(0)
    {
        let text = format!("oldest {}", figure::age(destination.oldest, now));
        past.push((AlertKind::Age, text, DAY + 1));
    }
    if let (Some(least), Some(growth)) = (thresholds.growth, listed.growth_per_hour)
        && growth >= least as f64
    {
        let text = format!("grows by {}", words::growth(growth));
        past.push((AlertKind::Growth, text, 2 * DAY - growth as i64));
    }
    past
}

/// A threshold in words.
fn threshold(thresholds: &Thresholds, kind: AlertKind) -> String {
    let span = |seconds: Option<u64>| {
        let millis = seconds.unwrap_or_default().saturating_mul(1000);
        words::span(i64::try_from(millis).unwrap_or(i64::MAX))
    };
    match kind {
        AlertKind::Expiry => span(thresholds.expiry),
        AlertKind::Depth => words::count(thresholds.depth.unwrap_or_default()),
        AlertKind::Age => span(thresholds.age),
        AlertKind::Growth => words::growth(thresholds.growth.unwrap_or_default() as f64),
    }
}

#[cfg(test)]
mod tests {
    use dlo_core::{Destination, Figure};
    use dlo_engine::command::Notes;

    use super::*;

    fn listed(alert: Thresholds) -> Listed {
        let mut destination = Destination::new(Address::queue("orders.dlq"), "queue");
        destination.depth = Figure::exact(1_243);
        destination.oldest = Figure::exact(Millis(0));
        destination.expires = Figure::about(Millis(4 * DAY));
        Listed {
            destination,
            notes: Notes {
                alert,
                ..Notes::default()
            },
            growth_per_hour: Some(40.0),
            resolved: 0,
            samples: Vec::new(),
        }
    }

    #[test]
    fn each_threshold_is_crossed_for_itself() {
        let all = Thresholds {
            depth: Some(1_000),
            age: Some(2 * 86_400),
            growth: Some(40),
            expiry: Some(86_400),
        };
        let past = past(&all, &listed(all.clone()), Millis(3 * DAY));
        let texts: Vec<_> = past.iter().map(|(_, text, _)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "the first message expires in ≈ 1 d",
                "1,243 messages",
                "oldest 3 d",
                "grows by +40/h"
            ]
        );
        assert_eq!(threshold(&all, AlertKind::Age), "2 d");
    }

    #[test]
    fn what_is_below_its_threshold_or_not_known_raises_nothing() {
        let high = Thresholds {
            depth: Some(2_000),
            age: Some(30 * 86_400),
            growth: Some(41),
            expiry: Some(3_600),
        };
        let mut listed = listed(high.clone());
        assert!(past(&high, &listed, Millis(3 * DAY)).is_empty());
        listed.destination.depth = Figure::unknown();
        listed.destination.oldest = Figure::unknown();
        let low = Thresholds {
            depth: Some(1),
            age: Some(1),
            ..Thresholds::default()
        };
        assert!(past(&low, &listed, Millis(3 * DAY)).is_empty());
    }
}
