//! Profiles, connections, and the destinations behind them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use dlo_core::{
    Address, Certainty, Destination, Endpoint, Error, ErrorKind, Figure, Millis, Result, Secrets,
};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{
    age,
    audit::{Choice, Note, Sample},
    command::{ConnectionId, KeepSecrets, Notes, Thresholds},
    dead_letter::Mapping,
    event::{Connected, Listed, News},
    look,
    profile::Profile,
    records::{file_error, journal_error},
    shared::{Connection, Reporter, Shared, blocking},
};

/// Longest time to connect: the connectors answer within 5 seconds, this is the net below them.
const CONNECT: Duration = Duration::from_secs(15);
/// Samples that the growth figure is computed from.
const GROWTH_WINDOW: Duration = Duration::from_secs(6 * 3600);

pub async fn profiles(shared: &Arc<Shared>, reporter: &Reporter) -> Result<()> {
    let home = shared.settings.home.clone();
    let list = blocking("read the profiles", move || crate::profile::load(&home)).await?;
    reporter.tell(News::Profiles(list.into())).await;
    Ok(())
}

pub async fn save_profile(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    profile: Profile,
    secrets: Secrets,
    keep: KeepSecrets,
) -> Result<()> {
    let home = shared.settings.home.clone();
    blocking("save the profile", move || {
        crate::profile::save(&home, profile, secrets, keep)
    })
    .await?;
    profiles(shared, reporter).await
}

/// Saves a profile whose URL and secrets stand in a configuration file of a broker's own clients.
pub async fn import_profile(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    mut profile: Profile,
    file: PathBuf,
    keep: KeepSecrets,
) -> Result<()> {
    let read = move || {
        std::fs::read_to_string(&file)
            .map_err(|error| file_error("read the configuration file", &file, &error))
    };
    let text = blocking("read the configuration file", read).await?;
    let (endpoint, secrets) = shared.settings.registry.import(&text)?;
    profile.url = endpoint.to_string();
    save_profile(shared, reporter, profile, secrets, keep).await
}

pub async fn remove_profile(shared: &Arc<Shared>, reporter: &Reporter, name: String) -> Result<()> {
    let home = shared.settings.home.clone();
    blocking("remove the profile", move || {
        crate::profile::remove(&home, &name)
    })
    .await?;
    profiles(shared, reporter).await
}

/// What is to be connected to.
#[derive(Debug)]
pub struct Wanted {
    /// A profile's name or a URL. A name is taken first.
    pub place: String,
    /// Secrets typed for this time.
    pub secrets: Secrets,
    /// A schema registry's URL in place of the profile's.
    pub registry: Option<String>,
}

/// Connects to a profile or a URL.
pub async fn connect(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    wanted: Wanted,
    cancel: &CancellationToken,
) -> Result<()> {
    let Wanted {
        place,
        secrets: typed,
        registry,
    } = wanted;
    let (home, name, also_typed) = (shared.settings.home.clone(), place.clone(), typed.clone());
    let find = move || crate::profile::find_with(&home, &name, &also_typed);
    let (profile, mut secrets) = match blocking("read the profiles", find).await? {
        Some(found) => found,
        None if !place.contains(':') => return Err(no_such_profile(&place)),
        None => (
            Profile {
                url: place,
                ..Profile::default()
            },
            Secrets::default(),
        ),
    };
    let (mut endpoint, in_url) = Endpoint::parse(&profile.url)?;
    for (name, secret) in in_url.iter().chain(typed.iter()) {
        secrets.insert(name, secret.clone());
    }
    let of_url = endpoint.options.remove("registry");
    let label = if profile.name.is_empty() {
        endpoint.to_string()
    } else {
        profile.name
    };
    let registry = registry.or(of_url).or(profile.registry);
    let connector = shared.settings.registry.find(&endpoint)?;
    let session = tokio::select! {
        () = cancel.cancelled() => return Err(Error::cancelled("connect")),
        opened = tokio::time::timeout(CONNECT, connector.connect(&endpoint, &secrets)) => opened
            .map_err(|_| Error::new(ErrorKind::Unreachable, "connect", "nothing answered within 15 s").with("place", label.clone()))??,
    };
    let connection = Arc::new(Connection {
        id: ConnectionId(shared.next_id()),
        label,
        broker: connector.info().name,
        mode: profile.mode,
        headers: Mapping(profile.headers),
        registry,
        secrets,
        session,
        oldest_seen: Mutex::default(),
        cancel: CancellationToken::new(),
    });
    shared.add_connection(connection.clone());
    let connected = Connected {
        connection: connection.id,
        label: connection.label.clone(),
        broker: connection.broker.to_owned(),
        mode: connection.mode,
        server: connection.session.server(),
    };
    reporter.tell(News::Connected(Arc::new(connected))).await;
    Ok(())
}

fn no_such_profile(place: &str) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "connect", format!("there is no profile named {place}")).advise(
        "See the profiles with `dlo profile list`, or write a URL such as amqp://user@host/vhost, kafka://host:9092, sqs://eu-west-1 or demo:.",
    )
}

/// Closes looks and the connection.
pub async fn disconnect(shared: &Arc<Shared>, reporter: &Reporter, id: ConnectionId) -> Result<()> {
    let connection = shared.connection(id)?;
    for open in shared
        .looks()
        .into_iter()
        .filter(|look| look.connection.id == id)
    {
        look::close(shared, reporter, open.id).await?;
    }
    shared.remove_connection(id);
    connection.cancel.cancel();
    connection.session.close().await?;
    reporter.tell(News::Disconnected { connection: id }).await;
    Ok(())
}

/// Gives everything back and closes all connections; for the end of the program.
pub async fn close_all(shared: &Arc<Shared>) {
    let looks = shared.looks();
    futures::future::join_all(looks.iter().map(|open| look::give_back(shared, open))).await;
    for connection in shared.connections() {
        connection.cancel.cancel();
        if let Err(error) = connection.session.close().await {
            tracing::warn!(connection = connection.label, "closing failed: {error}");
        }
    }
}

pub async fn list(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: ConnectionId,
    cancel: &CancellationToken,
) -> Result<()> {
    let connection = shared.connection(id)?;
    let mut destinations = tokio::select! {
        () = cancel.cancelled() => return Err(Error::cancelled("list the destinations")),
        list = connection.session.destinations() => list?,
    };
    destinations.sort_by(|a, b| {
        (b.holds_dead_letters(), &a.address.name).cmp(&(a.holds_dead_letters(), &b.address.name))
    });
    let unaged = destinations
        .iter_mut()
        .filter(|destination| destination.holds_dead_letters());
    futures::future::join_all(unaged.map(|destination| age::find_oldest(&connection, destination)))
        .await;
    keep_samples(shared, &connection, &destinations).await;
    let mut notes = all_notes(shared, &connection).await;
    let mut list = Vec::with_capacity(destinations.len());
    for destination in destinations {
        let note = notes.remove(&destination.address.name).unwrap_or_default();
        list.push(listed(shared, &connection, destination, note).await);
    }
    reporter
        .tell(News::Destinations {
            connection: id,
            list: list.into(),
        })
        .await;
    Ok(())
}

pub async fn describe(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: ConnectionId,
    address: Address,
) -> Result<()> {
    let connection = shared.connection(id)?;
    let mut destination = connection.session.describe(&address).await?;
    age::find_oldest(&connection, &mut destination).await;
    keep_samples(shared, &connection, std::slice::from_ref(&destination)).await;
    let note = all_notes(shared, &connection)
        .await
        .remove(&address.name)
        .unwrap_or_default();
    let listed = listed(shared, &connection, destination, note).await;
    reporter
        .tell(News::Destination {
            connection: id,
            listed: Arc::new(listed),
        })
        .await;
    Ok(())
}

/// Finds a destination by name: as a queue, then as a topic, an exchange, a subscription.
pub async fn find(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: ConnectionId,
    name: &str,
) -> Result<()> {
    let connection = shared.connection(id)?;
    let address = resolve_name(&connection, name).await?;
    describe(shared, reporter, id, address).await
}

/// The address behind a name. `queue:NAME`, `topic:NAME` and `exchange:NAME` say which kind.
pub async fn resolve_name(connection: &Connection, name: &str) -> Result<Address> {
    let candidates = match name.split_once(':') {
        Some(("queue", name)) => vec![Address::queue(name)],
        Some(("topic", name)) => vec![Address::topic(name)],
        Some(("exchange", name)) => vec![Address::exchange(name)],
        _ => vec![
            Address::queue(name),
            Address::topic(name),
            Address::exchange(name),
        ],
    };
    let mut first_error = None;
    for address in candidates {
        match connection.session.describe(&address).await {
            Ok(destination) => return Ok(destination.address),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    let error = first_error.unwrap_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "find the destination",
            "there is none of that name",
        )
    });
    let near = nearest(connection, name).await;
    Err(match near {
        Some(near) => error.advise(format!("Did you mean {near}? `dlo list` shows all.")),
        None => error,
    })
}

/// A destination whose name is much like the one that was written.
async fn nearest(connection: &Connection, name: &str) -> Option<String> {
    let wanted = name.to_lowercase();
    let all = connection.session.destinations().await.ok()?;
    let names = all.into_iter().map(|destination| destination.address.name);
    names
        .filter(|other| is_near(&other.to_lowercase(), &wanted))
        .min_by_key(String::len)
}

fn is_near(a: &str, b: &str) -> bool {
    a.contains(b) || b.contains(a) || {
        let differing = a.chars().zip(b.chars()).filter(|(x, y)| x != y).count();
        a.chars().count().abs_diff(b.chars().count()) + differing <= 2
    }
}

pub async fn save_notes(
    shared: &Arc<Shared>,
    id: ConnectionId,
    address: &Address,
    notes: Notes,
) -> Result<()> {
    let connection = shared.connection(id)?;
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let note = Note {
        owner: filled(notes.owner),
        runbook: filled(notes.runbook),
        notes: filled(Some(notes.text)),
    };
    let audit = shared.audit()?;
    audit
        .set_note(&connection.label, &address.name, note, &shared.settings.who)
        .await
        .map_err(journal_error)?;
    let thresholds = (!notes.alert.is_empty())
        .then(|| serde_json::to_string(&notes.alert).ok())
        .flatten();
    audit
        .set_choice(
            Choice::Thresholds,
            &connection.label,
            &address.name,
            thresholds,
        )
        .await
        .map_err(journal_error)
}

pub async fn redrives(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: ConnectionId,
    address: Address,
) -> Result<()> {
    let connection = shared.connection(id)?;
    let tasks = connection.session.redrives(&address).await?;
    reporter
        .tell(News::Redrives {
            address,
            tasks: tasks.into(),
        })
        .await;
    Ok(())
}

pub async fn cancel_redrive(
    shared: &Arc<Shared>,
    id: ConnectionId,
    address: &Address,
    task: &str,
) -> Result<()> {
    let connection = shared.connection(id)?;
    crate::act::may_change(&connection, "cancel the move")?;
    let tasks = connection.session.redrives(address).await?;
    match tasks.iter().find(|known| known.id == task) {
        Some(task) => connection.session.cancel_redrive(task).await,
        None => Err(Error::new(
            ErrorKind::NotFound,
            "cancel the move",
            "the broker knows no such task",
        )),
    }
}

async fn all_notes(shared: &Shared, connection: &Connection) -> BTreeMap<String, Notes> {
    let Ok(audit) = shared.audit() else {
        return BTreeMap::new();
    };
    let notes = audit.notes(&connection.label).await.unwrap_or_default();
    let to_notes = |note: Note| Notes {
        owner: note.owner,
        runbook: note.runbook,
        text: note.notes.unwrap_or_default(),
        alert: Thresholds::default(),
    };
    let mut all: BTreeMap<String, Notes> = notes
        .into_iter()
        .map(|(destination, note)| (destination, to_notes(note)))
        .collect();
    let thresholds = audit.choices(Choice::Thresholds, &connection.label).await;
    for (destination, text) in thresholds.unwrap_or_default() {
        if let Ok(alert) = serde_json::from_str(&text) {
            all.entry(destination).or_default().alert = alert;
        }
    }
    all
}

/// Keeps the depth of dead-letter destinations. A failure costs only the growth figure, so it is logged and no more.
async fn keep_samples(shared: &Shared, connection: &Connection, destinations: &[Destination]) {
    let Ok(audit) = shared.audit() else { return };
    let samples = destinations
        .iter()
        .filter(|destination| destination.holds_dead_letters() && destination.depth.value.is_some())
        .map(|destination| (destination.address.name.clone(), sample(destination)))
        .collect::<Vec<_>>();
    if samples.is_empty() {
        return;
    }
    if let Err(error) = audit.add_samples(&connection.label, samples).await {
        tracing::warn!("samples were not kept: {error}");
    }
}

fn sample(destination: &Destination) -> Sample {
    let time = |figure: &Figure<Millis>| {
        figure
            .value
            .and_then(|time| Timestamp::from_millisecond(time.0).ok())
    };
    Sample {
        time: Timestamp::now(),
        depth: destination.depth.value,
        depth_certainty: Some(certainty_word(destination.depth.certainty).to_owned()),
        oldest: time(&destination.oldest),
        oldest_certainty: Some(certainty_word(destination.oldest.certainty).to_owned()),
    }
}

/// The word of design §9 for how sure a figure is.
pub fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::About => "about",
        Certainty::AtLeast => "at least",
        Certainty::AtMost => "at most",
        Certainty::Unknown => "unknown",
    }
}

async fn listed(
    shared: &Shared,
    connection: &Connection,
    destination: Destination,
    notes: Notes,
) -> Listed {
    let (mut samples, mut resolved) = (Vec::new(), 0);
    if let Ok(audit) = shared.audit()
        && destination.holds_dead_letters()
    {
        let since =
            Timestamp::now() - jiff::SignedDuration::try_from(GROWTH_WINDOW).unwrap_or_default();
        let kept = audit
            .samples(&connection.label, &destination.address.name, since)
            .await
            .unwrap_or_default();
        samples = kept
            .iter()
            .filter_map(|sample| Some((Millis(sample.time.as_millisecond()), sample.depth?)))
            .collect();
        if !destination.capability.settle_ack {
            let positions = audit
                .resolved_positions(&connection.label, &destination.address.name)
                .await;
            resolved = positions.map_or(0, |positions| positions.len() as u64);
        }
    }
    Listed {
        growth_per_hour: growth(&samples),
        destination,
        notes,
        resolved,
        samples,
    }
}

/// Messages an hour between the first and the last sample; `None` while they lie less than a minute apart.
fn growth(samples: &[(Millis, u64)]) -> Option<f64> {
    let ((first, from), (last, to)) = (samples.first()?, samples.last()?);
    let hours = last.since(*first) as f64 / 3_600_000.0;
    (hours >= 1.0 / 60.0).then(|| (*to as f64 - *from as f64) / hours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_a_minute_and_has_a_sign() {
        let at = |minutes: i64| Millis(minutes * 60_000);
        assert_eq!(growth(&[(at(0), 10)]), None);
        assert_eq!(growth(&[(at(0), 10), (at(30), 30)]), Some(40.0));
        assert_eq!(growth(&[(at(0), 30), (at(60), 10)]), Some(-20.0));
    }

    #[test]
    fn near_names_are_offered() {
        assert!(is_near("orders.dlq", "order.dlq") || is_near("orders.dlq", "orders.dql"));
        assert!(!is_near("orders.dlq", "payments"));
    }
}
