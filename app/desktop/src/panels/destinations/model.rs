//! What the list of destinations shows, in order. Pure.

use std::collections::HashSet;

use dlo_core::{Address, Browse, Millis};
use dlo_engine::{command::ConnectionId, event::Listed, profile::Mode};

use crate::{
    panels::destination::oldest_unknown,
    state::{AppState, Attempt, Connection},
    widgets::figure,
    words,
};

/// One line of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Connection {
        id: ConnectionId,
        label: String,
        broker: String,
        mode: Mode,
        loading: bool,
    },
    /// The list of a connection could not be had.
    ListFailed(ConnectionId, String),
    Section {
        id: ConnectionId,
        title: &'static str,
        count: usize,
        open: bool,
    },
    Destination(Box<DestinationItem>),
    Connecting(String),
    /// A place, why it failed, and whether secrets could help.
    ConnectFailed(String, String, bool),
    Profile(String, String),
}

/// A destination as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct DestinationItem {
    pub connection: ConnectionId,
    pub address: Address,
    pub name: String,
    pub kind: String,
    pub dead: bool,
    pub depth: String,
    pub empty: bool,
    /// Oldest, growth, expiry, owner; urgent parts are marked.
    pub facts: Vec<(String, Urgency)>,
    pub cost: String,
    /// Why it is not said how old the first message is.
    pub oldest_unknown: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Calm,
    Notice,
    Urgent,
}

/// What a person narrowed the list to.
#[derive(Clone, Debug, Default)]
pub struct Narrowing {
    pub text: String,
    /// Sections that are folded away, by connection.
    pub folded: HashSet<(ConnectionId, &'static str)>,
}

pub const DEAD: &str = "Dead letters";
pub const OTHERS: &str = "Other destinations";

/// All lines, in order.
pub fn items(state: &AppState, narrowing: &Narrowing) -> Vec<Item> {
    let mut items = Vec::new();
    for connection in &state.connections {
        connection_items(&mut items, state, connection, narrowing);
    }
    for (place, attempt) in &state.attempts {
        items.push(match attempt {
            Attempt::Running(_) => Item::Connecting(place.clone()),
            Attempt::Failed(error) => Item::ConnectFailed(
                place.clone(),
                words::error(error),
                error.kind() == dlo_core::ErrorKind::Unauthenticated,
            ),
        });
    }
    for profile in state
        .profiles
        .value()
        .into_iter()
        .flat_map(|profiles| profiles.iter())
    {
        let known = state
            .connections
            .iter()
            .any(|connection| connection.label == profile.name)
            || state.attempts.contains_key(&profile.name);
        if !known {
            items.push(Item::Profile(profile.name.clone(), profile.url.clone()));
        }
    }
    items
}

fn connection_items(
    items: &mut Vec<Item>,
    state: &AppState,
    connection: &Connection,
    narrowing: &Narrowing,
) {
    items.push(Item::Connection {
        id: connection.id,
        label: connection.label.clone(),
        broker: connection.server.product.clone(),
        mode: connection.mode,
        loading: connection.list.is_loading(),
    });
    if let Some(error) = connection.list.error() {
        items.push(Item::ListFailed(connection.id, words::error(error)));
    }
    let wanted = narrowing.text.trim().to_lowercase();
    let fits = |listed: &&Listed| {
        let name = &listed.destination.address.name;
        wanted.is_empty() || name.to_lowercase().contains(&wanted)
    };
    let list = connection
        .list
        .value()
        .into_iter()
        .flat_map(|list| list.iter());
    let shown = list
        .filter(fits)
        .filter_map(|listed| state.shown(connection, &listed.destination.address));
    let (mut dead, mut others): (Vec<Listed>, Vec<Listed>) =
        shown.partition(|listed| listed.destination.holds_dead_letters());
    dead.sort_by_key(|listed| {
        let name = listed.destination.address.name.clone();
        (is_empty(listed), !is_urgent(listed, state.now), name)
    });
    others.sort_by_key(|listed| listed.destination.address.name.clone());
    for (title, list) in [(DEAD, dead), (OTHERS, others)] {
        if list.is_empty() {
            continue;
        }
        let open = !narrowing.folded.contains(&(connection.id, title)) || !wanted.is_empty();
        items.push(Item::Section {
            id: connection.id,
            title,
            count: list.len(),
            open,
        });
        if open {
            items.extend(list.into_iter().map(|listed| {
                Item::Destination(Box::new(destination(connection.id, &listed, state.now)))
            }));
        }
    }
}

/// Whether it cannot wait: the first message expires within a day.
fn is_urgent(listed: &Listed, now: Millis) -> bool {
    let expires = listed.destination.expires.value;
    !is_empty(listed) && expires.is_some_and(|time| time.since(now) < DAY)
}

fn is_empty(listed: &Listed) -> bool {
    listed.destination.depth.value == Some(0)
}

fn destination(connection: ConnectionId, listed: &Listed, now: Millis) -> DestinationItem {
    let destination = &listed.destination;
    let dead = destination.holds_dead_letters();
    let empty = is_empty(listed);
    let holds = destination.capability.browse != Browse::None || destination.depth.value.is_some();
    DestinationItem {
        connection,
        address: destination.address.clone(),
        name: destination.address.name.clone(),
        kind: destination.label.clone(),
        dead,
        // An exchange holds nothing, so there is nothing to count.
        depth: if holds {
            words::figure(destination.depth)
        } else {
            destination.label.clone()
        },
        empty: empty || !holds,
        facts: if dead { facts(listed, now) } else { Vec::new() },
        cost: destination.look.line.clone(),
        oldest_unknown: (dead && !empty && destination.oldest.value.is_none())
            .then(|| oldest_unknown(destination)),
    }
}

const DAY: i64 = 86_400_000;

/// What a person needs to know without a click.
pub fn facts(listed: &Listed, now: Millis) -> Vec<(String, Urgency)> {
    let destination = &listed.destination;
    let mut facts = Vec::new();
    if !is_empty(listed) {
        if destination.oldest.value.is_some() {
            facts.push((
                format!("oldest {}", figure::age(destination.oldest, now)),
                Urgency::Calm,
            ));
        }
        if let Some(growth) = listed.growth_per_hour {
            let urgency = if growth >= 1.0 {
                Urgency::Notice
            } else {
                Urgency::Calm
            };
            facts.push((words::growth(growth), urgency));
        }
        if let Some(expires) = destination.expires.value {
            let urgency = if expires.since(now) < DAY {
                Urgency::Urgent
            } else {
                Urgency::Calm
            };
            facts.push((
                format!("expires in {}", figure::until(destination.expires, now)),
                urgency,
            ));
        }
    }
    if listed.resolved > 0 {
        facts.push((
            format!("{} resolved", words::count(listed.resolved)),
            Urgency::Calm,
        ));
    }
    match listed
        .notes
        .owner
        .as_deref()
        .filter(|owner| !owner.is_empty())
    {
        Some(owner) => facts.push((owner.to_owned(), Urgency::Calm)),
        None => facts.push(("no owner".to_owned(), Urgency::Calm)),
    }
    facts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dlo_core::{DeadLetters, Destination, Evidence, Figure, ServerInfo};
    use dlo_engine::command::Notes;

    use super::*;
    use crate::remote::Remote;

    fn listed(name: &str, depth: u64, dead: bool) -> Listed {
        let mut destination = Destination::new(Address::queue(name), "queue");
        destination.depth = Figure::exact(depth);
        if dead {
            destination.dead_letters = DeadLetters::Yes(Evidence::Name);
        }
        Listed {
            destination,
            notes: Notes::default(),
            growth_per_hour: None,
            resolved: 0,
            samples: Vec::new(),
        }
    }

    fn state(list: Vec<Listed>) -> AppState {
        AppState {
            connections: vec![Connection {
                id: ConnectionId(1),
                label: "orders-prod".to_owned(),
                broker: "rabbitmq".to_owned(),
                mode: Mode::Normal,
                server: ServerInfo::default(),
                list: Remote::Ready(Arc::from(list)),
                costs: std::collections::BTreeMap::new(),
                listed_at: Millis(0),
            }],
            ..AppState::default()
        }
    }

    fn names(items: &[Item]) -> Vec<String> {
        items
            .iter()
            .map(|item| match item {
                Item::Connection { label, .. } => label.clone(),
                Item::Section { title, count, .. } => format!("{title} {count}"),
                Item::Destination(item) => format!("{} {}", item.name, item.depth),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn dead_letters_come_first_and_empty_ones_last_among_them() {
        let state = state(vec![
            listed("orders", 17, false),
            listed("a.dlq", 0, true),
            listed("orders.dlq", 1243, true),
        ]);
        assert_eq!(
            names(&items(&state, &Narrowing::default())),
            [
                "orders-prod",
                "Dead letters 2",
                "orders.dlq 1,243",
                "a.dlq 0",
                "Other destinations 1",
                "orders 17"
            ]
        );
    }

    #[test]
    fn narrowing_looks_at_names_and_opens_folded_sections() {
        let state = state(vec![
            listed("orders", 17, false),
            listed("pay.dlq", 2, true),
        ]);
        let mut narrowing = Narrowing::default();
        narrowing.folded.insert((ConnectionId(1), OTHERS));
        assert_eq!(items(&state, &narrowing).len(), 4);
        narrowing.text = "ORD".to_owned();
        assert_eq!(
            names(&items(&state, &narrowing)),
            ["orders-prod", "Other destinations 1", "orders 17"]
        );
    }

    #[test]
    fn facts_say_what_is_urgent_and_that_nobody_owns_it() {
        let mut listed = listed("orders.dlq", 5, true);
        let now = Millis(10 * DAY);
        listed.destination.oldest = Figure::at_most(Millis(7 * DAY));
        listed.destination.expires = Figure::about(now.plus(11 * 3_600_000));
        listed.growth_per_hour = Some(40.0);
        let facts = facts(&listed, now);
        let texts: Vec<_> = facts.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(
            texts,
            ["oldest ≥ 3 d", "+40/h", "expires in ≈ 11 h", "no owner"]
        );
        assert_eq!(facts[2].1, Urgency::Urgent);
    }
}
