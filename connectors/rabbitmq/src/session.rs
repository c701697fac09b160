//! A live connection to one virtual host.
//!
//! The session asks and publishes on one connection; each look has one of its own (see [`crate::look`]). What earlier looks of
//! this session did to a queue's delivery counts is remembered here, because no broker tells it before a message is taken.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use dlo_core::{
    Address, AddressKind, Atomicity, Consent, DeadLetters, Delivery, Destination, Error, ErrorKind,
    Figure, Isolation, Look, LookCost, LookRequest, Millis, Outgoing, Position, Receipt,
    RedriveRequest, RedriveTask, Result, Routes, ServerInfo, Session, Start, Target, Verdict,
};
use lapin::{
    Connection,
    options::{QueueDeclareOptions, QueuePurgeOptions},
    types::FieldTable,
};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use crate::{
    config::{Config, Management},
    connect::{self, answer, answer_within},
    cost,
    facts::{self, QueueFacts, QueueKind},
    list::{self, DeadLetterMap},
    look::{Inner, LockLook, Rules, State, lock},
    management::{Api, QueueInfo},
    publish::{Identity, Publisher, exchange_exists},
    rescue::may_publish,
    routing::Topology,
    stream::{self, StreamLook},
    take::{QUORUM_COUNTS, WINDOW},
    version::{GiveBack, Version},
};

/// The links of dead-letter queues are asked for again after this time.
const MAP_LASTS: Duration = Duration::from_secs(5);
/// A broker closes a channel that holds messages for 30 minutes unless it is set otherwise
/// (<https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout>).
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The window while deadly messages are possible, once the counts seen were harmless.
const CAREFUL_WINDOW: usize = 256;
const NAME: &str = "Dead Letter Office";

/// See the module.
pub(crate) struct RabbitSession {
    config: Config,
    version: Option<Version>,
    server: ServerInfo,
    identity: Identity,
    api: Option<Api>,
    connection: AsyncMutex<Arc<Connection>>,
    publisher: AsyncMutex<Publisher>,
    map: AsyncMutex<Option<(Instant, Arc<DeadLetterMap>)>>,
    returns: Arc<Mutex<HashMap<String, Returns>>>,
    may_publish: OnceCell<bool>,
    looks: Mutex<Vec<std::sync::Weak<Inner>>>,
}

/// How often a queue's messages were returned when a look was last closed, and how many there were.
#[derive(Clone, Copy, Debug)]
struct Returns {
    count: u64,
    messages: u64,
}

impl RabbitSession {
    /// Connects; see [`dlo_core::Connector::connect`].
    pub async fn connect(config: Config) -> Result<Self> {
        connect::probe(&config).await?;
        let api = Api::new(&config);
        let (connection, management) =
            tokio::join!(connect::open(&config, NAME), ask_management(api.as_ref()));
        let connection = connection?;
        let (said, tags, problem) = match management {
            Ok((version, tags)) => (Some(version), tags, None),
            Err(error) => (
                connect::greeting_version(&config).await,
                Vec::new(),
                Some(error),
            ),
        };
        if let (Some(error), Management::Named(_)) = (&problem, &config.management) {
            // The person named the address, so that it does not work is worth failing for; a guess may be wrong.
            if error.kind() == ErrorKind::Unreachable {
                return Err(error.clone());
            }
        }
        let api = api.filter(|_| problem.is_none());
        let server = server_info(&config, said.clone(), api.as_ref(), problem.as_ref());
        Ok(Self {
            identity: Identity {
                user: config.user.clone(),
                may_impersonate: tags.iter().any(|tag| tag == "impersonator"),
            },
            version: said.as_deref().and_then(Version::parse),
            server,
            api,
            config,
            connection: AsyncMutex::new(Arc::new(connection)),
            publisher: AsyncMutex::default(),
            map: AsyncMutex::default(),
            returns: Arc::default(),
            may_publish: OnceCell::new(),
            looks: Mutex::default(),
        })
    }

    /// The connection for asking and publishing, opened again when it was lost.
    async fn connection(&self) -> Result<Arc<Connection>> {
        let mut connection = self.connection.lock().await;
        if !connection.status().connected() {
            connect::probe(&self.config).await?;
            *connection = Arc::new(connect::open(&self.config, NAME).await?);
        }
        Ok(Arc::clone(&connection))
    }

    /// The dead-letter links, not older than a few seconds; `None` where the management API cannot be asked.
    async fn map(&self) -> Result<Option<Arc<DeadLetterMap>>> {
        let Some(api) = &self.api else {
            return Ok(None);
        };
        let mut map = self.map.lock().await;
        match map.as_ref() {
            Some((asked, map)) if asked.elapsed() < MAP_LASTS => Ok(Some(Arc::clone(map))),
            _ => {
                let fresh = Arc::new(DeadLetterMap::ask(api, &self.config.vhost).await?);
                *map = Some((Instant::now(), Arc::clone(&fresh)));
                Ok(Some(fresh))
            }
        }
    }

    async fn facts(&self, at: &Address) -> Result<QueueFacts> {
        let name = queue_name(at)?;
        let (ready, mut consumers) = count(&*self.connection().await?, name).await?;
        let info = match &self.api {
            Some(api) => api.queue(&self.config.vhost, name).await.ok(),
            None => None,
        };
        // A classic queue's own count leaves out consumers that have all they can take.
        let said = info
            .as_ref()
            .and_then(|info: &QueueInfo| info.other_consumers);
        consumers = consumers.max(said.unwrap_or_default());
        let map = self.map().await.ok().flatten();
        let mut facts = self.join(name, (ready, consumers), info, map.as_deref());
        if facts.limit.value().is_some() {
            facts.can_rescue = self.can_rescue().await?;
        }
        Ok(facts)
    }

    /// Whether the user may publish to queues; asked once, where it matters.
    async fn can_rescue(&self) -> Result<bool> {
        let asking = || async { may_publish(&*self.connection().await?).await };
        self.may_publish.get_or_try_init(asking).await.copied()
    }

    fn join(
        &self,
        name: &str,
        (ready, consumers): (u64, u64),
        info: Option<QueueInfo>,
        map: Option<&DeadLetterMap>,
    ) -> QueueFacts {
        let kind = facts::kind_of(info.as_ref());
        let evidence = map.map_or_else(|| list::by_name(name), |map| map.evidence(name));
        QueueFacts {
            name: name.to_owned(),
            kind,
            version: self.version,
            ready,
            consumers,
            limit: facts::limit_of(kind, info.as_ref(), self.version),
            sources_known: map.is_some(),
            source_limits: map
                .map(|map| map.source_limits(name, self.version))
                .unwrap_or_default(),
            is_dead: evidence != DeadLetters::No,
            can_rescue: true,
            returns_seen: self.returns_of(name, ready),
            info,
        }
    }

    /// What earlier looks did to the counts; forgotten once messages left the queue, as those that stay may be others.
    fn returns_of(&self, queue: &str, ready: u64) -> Option<u64> {
        let mut returns = lock(&self.returns);
        match returns.get(queue) {
            Some(seen) if ready >= seen.messages => Some(seen.count),
            Some(_) => {
                returns.remove(queue);
                None
            }
            None => None,
        }
    }

    fn destination(&self, facts: &QueueFacts, map: Option<&DeadLetterMap>) -> Destination {
        let exchange = facts.dead_letter_exchange();
        let mut destination = Destination::new(Address::queue(&facts.name), facts.label());
        destination.depth = Figure::exact(facts.ready);
        destination.consumers = Figure::exact(facts.consumers);
        destination.capability = facts::capability(facts.kind, self.version, exchange.is_some());
        destination.dead_letters = map.map_or_else(
            || list::by_name(&facts.name),
            |map| map.evidence(&facts.name),
        );
        destination.sources = map.map(|map| map.sources(&facts.name)).unwrap_or_default();
        destination.dead_letters_to = map.and_then(|map| map.target(&facts.name)).or(exchange);
        destination.look = cost::cost(facts, u64::MAX);
        if let Some(info) = &facts.info {
            add_info(&mut destination, info);
        }
        destination.facts = self.described(facts);
        destination
    }

    fn described(&self, facts: &QueueFacts) -> Vec<(String, String)> {
        let mut lines = vec![("type".to_owned(), facts.label().to_owned())];
        if matches!(facts.kind, QueueKind::Quorum | QueueKind::Unknown) {
            let limit = match facts.limit {
                facts::Limit::Unlimited => "none".to_owned(),
                facts::Limit::At(limit) => limit.to_string(),
                facts::Limit::Assumed(limit) => format!("{limit} (assumed)"),
            };
            lines.push(("delivery limit".to_owned(), limit));
        }
        let Some(info) = &facts.info else {
            return lines;
        };
        for (name, setting) in [
            ("dead-letter exchange", "dead-letter-exchange"),
            ("dead-letter routing key", "dead-letter-routing-key"),
            ("overflow", "overflow"),
        ] {
            lines.extend(
                info.text_setting(setting)
                    .map(|value| (name.to_owned(), value)),
            );
        }
        for (name, setting) in [
            ("message TTL (ms)", "message-ttl"),
            ("length limit", "max-length"),
        ] {
            lines.extend(
                info.number_setting(setting)
                    .map(|value| (name.to_owned(), value.to_string())),
            );
        }
        if facts.single_active_consumer() {
            lines.push(("single active consumer".to_owned(), "yes".to_owned()));
        }
        let waiting = info.dead_lettering.filter(|count| *count > 0);
        lines.extend(waiting.map(|count| {
            (
                "dead letters waiting to leave".to_owned(),
                count.to_string(),
            )
        }));
        for (name, value) in [
            ("policy", &info.policy),
            ("operator policy", &info.operator_policy),
            ("state", &info.state),
        ] {
            lines.extend(value.clone().map(|value| (name.to_owned(), value)));
        }
        lines
    }

    async fn look_at_queue(
        &self,
        facts: &QueueFacts,
        request: LookRequest,
    ) -> Result<Arc<dyn Look>> {
        let connection =
            connect::open(&self.config, &format!("{NAME}: look at {}", facts.name)).await?;
        let operation = "look at the queue";
        let channel = answer(operation, connection.create_channel()).await?;
        let rules = self.rules(facts, request)?;
        let state = State {
            ramp: facts.limit.value().map(|_| 1),
            ..State::default()
        };
        let look = LockLook::new(Inner {
            rules,
            connection,
            channel,
            state: AsyncMutex::new(state),
            summary: Mutex::default(),
            after_return: self.remember(&facts.name),
        });
        lock(&self.looks).push(Arc::downgrade(&look.inner));
        Ok(Arc::new(look))
    }

    fn rules(&self, facts: &QueueFacts, request: LookRequest) -> Result<Rules> {
        let careful =
            facts.carries_counts() && (facts.known_deadly_source() || !facts.sources_known);
        let timeout = facts
            .info
            .as_ref()
            .and_then(|info| info.number_setting("consumer-timeout"));
        let timeout = timeout
            .map_or(CONSUMER_TIMEOUT, Duration::from_millis)
            .min(CONSUMER_TIMEOUT);
        Ok(Rules {
            queue: facts.name.clone(),
            give_back: self
                .version
                .map_or(GiveBack::CloseChannel, Version::give_back),
            limit: facts.limit.value(),
            brokers_own: match facts.kind {
                QueueKind::Classic => &[],
                _ => QUORUM_COUNTS,
            },
            careful_window: if careful { CAREFUL_WINDOW } else { WINDOW },
            can_rescue: facts.can_rescue,
            has_dead_letter_exchange: facts.dead_letter_exchange().is_some(),
            hold_for: timeout.mul_f64(0.9),
            most: most(&request),
            returned_before: self.returned_before(facts),
            follow: request.follow,
            wanted: wanted(&request.start)?,
            keeper: request.keeper,
            average_bytes: facts.average_bytes(),
        })
    }

    /// How many messages wait in a quorum queue's list of returned ones, from this session's looks or from what the
    /// management API counts.
    fn returned_before(&self, facts: &QueueFacts) -> u64 {
        if facts.kind != QueueKind::Quorum {
            return 0;
        }
        let seen = lock(&self.returns)
            .get(&facts.name)
            .map_or(0, |seen| seen.messages);
        let said = facts.info.as_ref().and_then(|info| info.ready_returned);
        seen.max(said.unwrap_or_default()).min(facts.ready)
    }

    /// Before 4.3 every return counts; what a look did is told to the looks after it.
    fn remember(&self, queue: &str) -> Box<dyn Fn(u64, u64) + Send + Sync> {
        let (returns, queue) = (Arc::clone(&self.returns), queue.to_owned());
        Box::new(move |count, messages| {
            lock(&returns).insert(queue.clone(), Returns { count, messages });
        })
    }

    async fn exchange(&self, name: &str) -> Result<Destination> {
        exchange_exists(&*self.connection().await?, name).await?;
        let mut destination = Destination::new(Address::exchange(name), "exchange");
        destination.capability = facts::exchange_capability(self.version);
        destination.look.verdict = Verdict::Refuse;
        destination.look.line = "an exchange keeps no messages".to_owned();
        if let Some(api) = &self.api
            && let Ok(kind) = api.exchange_type(&self.config.vhost, name).await
        {
            destination.label = format!("{kind} exchange");
        }
        Ok(destination)
    }

    /// The queues named in the URL, for brokers that cannot be asked for a list.
    async fn named_queues(&self) -> Result<Vec<Destination>> {
        if self.config.queues.is_empty() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "list the queues",
                "AMQP has no list of queues, and the management API cannot be asked",
            )
            .advise("Name the API's address with ?management=http://host:15672, or the queues with ?queues=a,b, or open a queue by its name."));
        }
        let mut destinations = Vec::new();
        for name in &self.config.queues {
            destinations.push(self.describe(&Address::queue(name)).await?);
        }
        Ok(destinations)
    }
}

#[async_trait]
impl Session for RabbitSession {
    fn server(&self) -> ServerInfo {
        self.server.clone()
    }

    async fn destinations(&self) -> Result<Vec<Destination>> {
        let Some(map) = self.map().await? else {
            return self.named_queues().await;
        };
        let connection = self.connection().await?;
        let quorum = |info: &QueueInfo| facts::kind_of(Some(info)) == QueueKind::Quorum;
        let can_rescue = map.queues.values().any(quorum) && self.can_rescue().await?;
        let mut destinations = Vec::with_capacity(map.queues.len());
        for (name, info) in &map.queues {
            let told = (
                info.ready.unwrap_or_default(),
                info.consumers.unwrap_or_default(),
            );
            let is_dead = map.evidence(name) != DeadLetters::No;
            // Management's counts are seconds old; where a person will look, the queue itself is asked.
            let counted = match is_dead || info.ready.is_none() {
                true => count(&connection, name).await.ok(),
                false => None,
            };
            let mut facts = self.join(
                name,
                counted.unwrap_or(told),
                Some(info.clone()),
                Some(&map),
            );
            facts.can_rescue = can_rescue;
            let mut destination = self.destination(&facts, Some(&map));
            if counted.is_none() {
                destination.depth = info.ready.map_or_else(Figure::unknown, Figure::about);
                destination.consumers = info.consumers.map_or_else(Figure::unknown, Figure::about);
            }
            destinations.push(destination);
        }
        Ok(destinations)
    }

    async fn describe(&self, at: &Address) -> Result<Destination> {
        if at.kind == AddressKind::Exchange {
            return self.exchange(&at.name).await;
        }
        let facts = self.facts(at).await?;
        let map = self.map().await.ok().flatten();
        Ok(self.destination(&facts, map.as_deref()))
    }

    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost> {
        let facts = self.facts(at).await?;
        Ok(cost::cost(&facts, most(request)))
    }

    async fn look(&self, at: &Address, request: LookRequest) -> Result<Arc<dyn Look>> {
        let facts = self.facts(at).await?;
        let cost = cost::cost(&facts, most(&request));
        let allowed = match cost.verdict {
            Verdict::Fine | Verdict::Warn => true,
            Verdict::Ask => request.consent == Consent::Given,
            Verdict::Refuse => false,
        };
        if !allowed {
            return Err(Error::new(
                ErrorKind::Refused,
                "look at the queue",
                cost.reasons.join(" "),
            )
            .with("queue", facts.name.clone()));
        }
        if facts.kind != QueueKind::Stream {
            return self.look_at_queue(&facts, request).await;
        }
        let connection =
            connect::open(&self.config, &format!("{NAME}: look at {}", facts.name)).await?;
        let look = StreamLook::open(
            &facts.name,
            connection,
            &request.start,
            most(&request),
            request.follow,
            facts.ready,
        )
        .await?;
        Ok(Arc::new(look))
    }

    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        _: Isolation,
    ) -> Result<Vec<Option<Delivery>>> {
        let facts = self.facts(at).await?;
        if facts.kind != QueueKind::Stream {
            return Err(unsupported(
                "read single messages again",
                "a queue has no positions to read at; look instead",
            ));
        }
        stream::fetch(&*self.connection().await?, &facts.name, positions).await
    }

    async fn routes(&self, to: &Target) -> Result<Routes> {
        let connection = self.connection().await?;
        match to.address.kind {
            AddressKind::Queue => queue_routes(&connection, &to.address.name).await,
            AddressKind::Exchange => self.exchange_routes(&connection, to).await,
            AddressKind::Topic | AddressKind::Subscription => Err(no_topics()),
        }
    }

    async fn publish(&self, batch: Vec<Outgoing>, atomicity: Atomicity) -> Vec<Result<Receipt>> {
        if atomicity == Atomicity::All {
            let error = unsupported(
                "publish all or none",
                "RabbitMQ confirms each message by itself",
            );
            return batch.iter().map(|_| Err(error.clone())).collect();
        }
        match self.connection().await {
            Ok(connection) => {
                let mut publisher = self.publisher.lock().await;
                publisher.publish(&connection, &self.identity, batch).await
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn redrive(&self, _: &RedriveRequest) -> Result<RedriveTask> {
        Err(no_redrive())
    }

    async fn redrives(&self, _: &Address) -> Result<Vec<RedriveTask>> {
        Err(no_redrive())
    }

    async fn cancel_redrive(&self, _: &RedriveTask) -> Result<()> {
        Err(no_redrive())
    }

    async fn purge(&self, at: &Address) -> Result<Figure<u64>> {
        let facts = self.facts(at).await?;
        if facts.kind == QueueKind::Stream {
            return Err(unsupported(
                "purge the stream",
                "a stream keeps its messages until its retention removes them",
            ));
        }
        let operation = "purge the queue";
        let channel = answer(operation, self.connection().await?.create_channel()).await?;
        let purging = channel.queue_purge(facts.name.as_str().into(), QueuePurgeOptions::default());
        let removed = answer_within(Duration::from_secs(60), operation, purging).await?;
        let _ = channel.close(200, "OK".into()).await;
        lock(&self.returns).remove(&facts.name);
        Ok(Figure::exact(u64::from(removed)))
    }

    async fn truncate(&self, _: &Address, _: &[(i32, i64)]) -> Result<()> {
        Err(unsupported(
            "delete everything before a position",
            "RabbitMQ cannot",
        ))
    }

    async fn close(&self) -> Result<()> {
        let looks: Vec<_> = lock(&self.looks).drain(..).collect();
        for look in looks.iter().filter_map(std::sync::Weak::upgrade) {
            look.close().await;
        }
        let connection = self.connection.lock().await;
        if connection.status().connected() {
            answer("close the connection", connection.close(200, "OK".into())).await?;
        }
        Ok(())
    }
}

impl RabbitSession {
    async fn exchange_routes(&self, connection: &Connection, to: &Target) -> Result<Routes> {
        let (exchange, key) = (
            &to.address.name,
            to.routing_key.as_deref().unwrap_or_default(),
        );
        if exchange.is_empty() {
            return queue_routes(connection, key).await;
        }
        if let Err(error) = exchange_exists(connection, exchange).await {
            return missing(error);
        }
        let mut routes = Routes {
            exists: true,
            ..Routes::default()
        };
        let Some(api) = &self.api else {
            routes.notes.push("Who gets it is not known without the management API; a message that nobody gets comes back.".to_owned());
            return Ok(routes);
        };
        let topology = Topology::ask(api, &self.config.vhost, [exchange.as_str()]).await?;
        let reach = topology.reach(exchange, Some(key));
        routes.complete = reach.certain && topology.knows(exchange);
        routes.reaches = reach.queues.into_iter().collect();
        if routes.complete && routes.reaches.is_empty() {
            routes
                .notes
                .push("No queue is bound to the exchange with that routing key.".to_owned());
        }
        Ok(routes)
    }
}

impl fmt::Debug for RabbitSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitSession")
            .field("config", &self.config)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

async fn ask_management(api: Option<&Api>) -> Result<(String, Vec<String>)> {
    let Some(api) = api else {
        return Err(unsupported("ask the management API", "it is switched off"));
    };
    let asking = async { Ok((api.version().await?, api.tags().await.unwrap_or_default())) };
    match tokio::time::timeout(Duration::from_millis(2500), asking).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::new(
            ErrorKind::Unreachable,
            "ask the management API",
            "it did not answer in time",
        )
        .with("address", api.address())),
    }
}

fn server_info(
    config: &Config,
    version: Option<String>,
    api: Option<&Api>,
    problem: Option<&Error>,
) -> ServerInfo {
    let management = match (api, problem) {
        (Some(api), _) => api.address().to_owned(),
        (None, Some(error)) => format!("not used: {}", error.what()),
        (None, None) => "not used".to_owned(),
    };
    ServerInfo {
        product: "RabbitMQ".to_owned(),
        version,
        facts: vec![
            ("address".to_owned(), config.place()),
            ("virtual host".to_owned(), config.vhost.clone()),
            ("user".to_owned(), config.user.clone()),
            ("management API".to_owned(), management),
        ],
    }
}

/// Ready messages and consumers, from the queue itself.
async fn count(connection: &Connection, queue: &str) -> Result<(u64, u64)> {
    let operation = "find the queue";
    let channel = answer(operation, connection.create_channel()).await?;
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(queue.into(), options, FieldTable::default());
    let counted = answer(operation, declared)
        .await
        .map_err(|error| error.with("queue", queue))?;
    let _ = channel.close(200, "OK".into()).await;
    Ok((
        counted.message_count().into(),
        counted.consumer_count().into(),
    ))
}

async fn queue_routes(connection: &Connection, queue: &str) -> Result<Routes> {
    match count(connection, queue).await {
        Ok(_) => Ok(Routes {
            exists: true,
            reaches: vec![queue.to_owned()],
            complete: true,
            notes: Vec::new(),
        }),
        Err(error) => missing(error),
    }
}

/// A target that is not there is an answer, not a failure.
fn missing(error: Error) -> Result<Routes> {
    match error.kind() {
        ErrorKind::NotFound => Ok(Routes {
            complete: true,
            notes: vec![format!("{}.", error.what())],
            ..Routes::default()
        }),
        ErrorKind::PermissionDenied => Ok(Routes {
            exists: true,
            notes: vec![format!("{}.", error.what())],
            ..Routes::default()
        }),
        _ => Err(error),
    }
}

fn add_info(destination: &mut Destination, info: &QueueInfo) {
    destination.in_flight = info
        .unacknowledged
        .map_or_else(Figure::unknown, Figure::about);
    destination.oldest = info.head_timestamp.map_or_else(Figure::unknown, |seconds| {
        Figure::about(Millis(seconds.saturating_mul(1000)))
    });
    destination.retention = info
        .number_setting("message-ttl")
        .map(Duration::from_millis);
}

fn queue_name(at: &Address) -> Result<&str> {
    match at.kind {
        AddressKind::Queue => Ok(&at.name),
        AddressKind::Exchange => Err(unsupported(
            "look at the exchange",
            "an exchange keeps no messages",
        )),
        AddressKind::Topic | AddressKind::Subscription => Err(no_topics()),
    }
}

/// The most messages to take. Places are counted from the head, so all up to the last wanted one are taken.
fn most(request: &LookRequest) -> u64 {
    let last = match &request.start {
        Start::Positions(positions) => positions
            .iter()
            .filter_map(|position| match position {
                Position::Index { index } => Some(index + 1),
                _ => None,
            })
            .max(),
        _ => None,
    };
    last.map_or(request.limit, |last| last.min(request.limit.max(last)))
}

fn wanted(start: &Start) -> Result<Option<std::collections::BTreeSet<u64>>> {
    match start {
        Start::Newest | Start::Oldest => Ok(None),
        Start::Positions(positions) => Ok(Some(
            positions
                .iter()
                .filter_map(|position| match position {
                    Position::Index { index } => Some(*index),
                    _ => None,
                })
                .collect(),
        )),
        Start::Offsets(_) | Start::Time(_) => Err(unsupported(
            "begin the look there",
            "a queue is looked at from its head; only streams have offsets and times",
        )),
    }
}

fn unsupported(operation: &str, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, operation, what)
}

fn no_topics() -> Error {
    unsupported(
        "find the destination",
        "RabbitMQ has queues and exchanges, no topics",
    )
}

fn no_redrive() -> Error {
    unsupported(
        "let the broker move the messages",
        "RabbitMQ's shovel has no sure end; replay them instead",
    )
}
