//! A connection to SQS in one region: who answers, where queues are, and every call by its name.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use dlo_core::{
    Address, AddressKind, Atomicity, Delivery, Destination, Endpoint, Error, ErrorKind, Figure,
    Isolation, Look, LookCost, LookRequest, Outgoing, Position, Receipt, RedriveRequest,
    RedriveTask, Result, Routes, Secrets, ServerInfo, Session, Target,
};

use crate::{
    age, check,
    config::{self, Settings},
    cost::{self, cost, grouped},
    error::Doing,
    list,
    look::{self, Core},
    memory::{Memory, lock},
    publish::{self, Entry},
    queue::{Queue, account_in_arn, name_in_arn, name_in_url},
    redrive,
    s3::{self, S3},
};

/// A person learns within this time what is wrong.
const CONNECT: Duration = Duration::from_secs(5);

/// CloudWatch is only a help, so it is not waited for longer.
const METRIC: Duration = Duration::from_secs(3);

/// What all calls of a session share.
pub(crate) struct Shared {
    pub client: Client,
    pub memory: Memory,
    s3: S3,
    cloudwatch: Option<aws_sdk_cloudwatch::Client>,
    metrics_refused: AtomicBool,
}

/// Without the clients, which hold credentials.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct SqsSession {
    shared: Arc<Shared>,
    server: ServerInfo,
    looks: Mutex<Vec<Weak<Core>>>,
}

pub(crate) async fn connect(endpoint: &Endpoint, secrets: &Secrets) -> Result<SqsSession> {
    let settings = Settings::parse(endpoint, secrets)?;
    match tokio::time::timeout(CONNECT, open(&settings)).await {
        Ok(session) => session,
        Err(_) => Err(Error::new(ErrorKind::Unreachable, "connect to SQS", "there was no answer within 5 seconds")
            .advise("Check the network, and whether the profile's credentials can be had: aws sts get-caller-identity says more.")),
    }
}

async fn open(settings: &Settings) -> Result<SqsSession> {
    let config = settings.load().await?;
    let mut sqs = aws_sdk_sqs::config::Builder::from(&config);
    if let Some(endpoint) = &settings.endpoint {
        sqs = sqs.endpoint_url(endpoint);
    }
    let cloudwatch = has_cloudwatch(settings).then(|| aws_sdk_cloudwatch::Client::new(&config));
    let client = Client::from_conf(sqs.build());
    let listing = test(&client).await?;
    let mut server = ServerInfo {
        product: match &settings.endpoint {
            None => "Amazon SQS".to_owned(),
            Some(endpoint) => format!("SQS server at {endpoint}"),
        },
        version: None,
        facts: Vec::new(),
    };
    let region = config
        .region()
        .map(|region| region.as_ref().to_owned())
        .unwrap_or_default();
    server.facts.push(("region".to_owned(), region));
    server.facts.extend(
        settings
            .profile
            .clone()
            .map(|profile| ("profile".to_owned(), profile)),
    );
    server.facts.extend(
        listing.map(|error| ("listing queues".to_owned(), format!("not allowed: {error}"))),
    );
    let shared = Shared {
        client,
        memory: Memory::default(),
        s3: S3::new(settings, &config),
        cloudwatch,
        metrics_refused: AtomicBool::new(false),
    };
    Ok(SqsSession {
        shared: Arc::new(shared),
        server,
        looks: Mutex::default(),
    })
}

/// Whether CloudWatch knows the queues. An endpoint of somebody's own has none unless one is named as the SDK wants it, and its
/// queues must not be asked of AWS; an endpoint of AWS in somebody's own network has.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>
fn has_cloudwatch(settings: &Settings) -> bool {
    settings.endpoint.as_deref().is_none_or(s3::is_aws)
        || std::env::var_os("AWS_ENDPOINT_URL_CLOUDWATCH").is_some()
}

/// Lists one queue. Who may not list queues is known to AWS all the same, and may work with a queue by its name.
async fn test(client: &Client) -> Result<Option<Error>> {
    let doing = Doing::new("connect to SQS", "sqs:ListQueues");
    let request = client
        .list_queues()
        .max_results(1)
        .customize()
        .config_override(config::test_config());
    match request.send().await.map_err(|error| doing.failed(error)) {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

impl Shared {
    /// The queue with its settings and figures of this moment.
    pub async fn queue(&self, name: &str) -> Result<Queue> {
        let url = self.url(name).await?;
        let queue = self.queue_at(&url).await;
        if queue
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            self.memory.forget_url(name);
        }
        queue
    }

    pub async fn queue_at(&self, url: &str) -> Result<Queue> {
        let name = name_in_url(url);
        let doing = Doing::new("read the queue's settings", "sqs:GetQueueAttributes").at(name);
        let request = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(list::ATTRIBUTES);
        let answer = request.send().await.map_err(|error| doing.failed(error))?;
        let queue = Queue::parse(url, &answer.attributes.unwrap_or_default());
        self.memory.learn_settings(&queue);
        Ok(queue)
    }

    /// The queue with settings that may be some seconds old. Who may not read them can still send and receive, so they are
    /// then taken from the name and SQS's defaults.
    pub async fn usable_queue(&self, name: &str) -> Result<Queue> {
        if let Some(queue) = self.memory.fresh_settings(name) {
            return Ok(queue);
        }
        match self.queue(name).await {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let url = self.url(name).await.map_err(|_| error)?;
                Ok(Queue::parse(&url, &HashMap::new()))
            }
            queue => queue,
        }
    }

    /// The URL of a queue given by its name, its URL or its ARN (for a queue of another account).
    async fn url(&self, name: &str) -> Result<String> {
        if name.starts_with("http://") || name.starts_with("https://") {
            return Ok(name.to_owned());
        }
        if let Some(url) = self.memory.url(name) {
            return Ok(url);
        }
        let doing = Doing::new("find the queue", "sqs:GetQueueUrl").at(name);
        let mut request = self.client.get_queue_url().queue_name(name_in_arn(name));
        if name.starts_with("arn:") {
            request =
                request.set_queue_owner_aws_account_id(account_in_arn(name).map(str::to_owned));
        }
        let answer = request.send().await.map_err(|error| doing.failed(error))?;
        let url = answer
            .queue_url
            .ok_or_else(|| doing.error(ErrorKind::Unexpected, "SQS gave no URL"))?;
        self.memory.learn_url(name, &url);
        Ok(url)
    }

    /// The age of the oldest message where CloudWatch may be asked and knows it.
    pub async fn oldest(&self, queue: &str) -> Option<Duration> {
        let client = self.cloudwatch.as_ref()?;
        if self.metrics_refused.load(Ordering::Relaxed) {
            return None;
        }
        match tokio::time::timeout(METRIC, age::oldest(client, queue)).await {
            Ok(Ok(age)) => age,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the age is not known");
                self.metrics_refused.store(
                    error.kind() == ErrorKind::PermissionDenied,
                    Ordering::Relaxed,
                );
                None
            }
            Err(_) => None,
        }
    }
}

/// The queue's name in an address.
fn queue_name(at: &Address) -> Result<&str> {
    match at.kind {
        AddressKind::Queue => Ok(&at.name),
        _ => Err(Error::new(
            ErrorKind::NotFound,
            "find the queue",
            "SQS has queues and nothing else",
        )
        .with("destination", at.name.clone())),
    }
}

fn unsupported<T>(operation: &'static str, what: &'static str) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, operation, what))
}

#[async_trait]
impl Session for SqsSession {
    fn server(&self) -> ServerInfo {
        self.server.clone()
    }

    async fn destinations(&self) -> Result<Vec<Destination>> {
        list::destinations(&self.shared).await
    }

    async fn describe(&self, at: &Address) -> Result<Destination> {
        list::describe(&self.shared, queue_name(at)?).await
    }

    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost> {
        match self.shared.queue(queue_name(at)?).await {
            Ok(queue) => {
                let highest = self.shared.memory.highest_receives(&queue.name);
                Ok(cost(&queue, request, highest))
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(cost::unknown(request)),
            Err(error) => Err(error),
        }
    }

    async fn look(&self, at: &Address, request: LookRequest) -> Result<Arc<dyn Look>> {
        let look = look::open(&self.shared, queue_name(at)?, request).await?;
        let mut looks = lock(&self.looks);
        looks.retain(|look| look.strong_count() > 0);
        looks.push(look.core());
        Ok(Arc::new(look))
    }

    /// SQS cannot find a message by its id. A bucket `s3://NAME` is readable by object key, for the bodies that lie there.
    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        _: Isolation,
    ) -> Result<Vec<Option<Delivery>>> {
        let Some(bucket) = at.name.strip_prefix("s3://") else {
            return unsupported(
                "read single messages again",
                "SQS cannot find a message by its id; look at the queue instead",
            );
        };
        let mut found = Vec::with_capacity(positions.len());
        for position in positions {
            found.push(self.shared.s3.get(bucket, &position.to_string()).await?);
        }
        Ok(found)
    }

    async fn routes(&self, to: &Target) -> Result<Routes> {
        let name = queue_name(&to.address)?;
        match self.shared.queue(name).await {
            Ok(queue) => Ok(Routes {
                exists: true,
                reaches: vec![queue.name.clone()],
                complete: true,
                notes: notes(&queue),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Routes {
                exists: false,
                reaches: Vec::new(),
                complete: true,
                notes: vec![error.to_string()],
            }),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Routes {
                exists: true,
                reaches: vec![name.to_owned()],
                complete: false,
                notes: vec![error.to_string()],
            }),
            Err(error) => Err(error),
        }
    }

    async fn publish(&self, batch: Vec<Outgoing>, atomicity: Atomicity) -> Vec<Result<Receipt>> {
        if atomicity == Atomicity::All {
            let refusal = || {
                unsupported(
                    "send the batch as a whole",
                    "SQS answers for each message by itself",
                )
            };
            return batch.iter().map(|_| refusal()).collect();
        }
        let mut answers: Vec<Option<Result<Receipt>>> = batch.iter().map(|_| None).collect();
        for (address, members) in by_target(&batch) {
            for (index, answer) in self.publish_to(&address, &batch, members).await {
                answers[index] = Some(answer);
            }
        }
        let missing = || {
            Err(Error::new(
                ErrorKind::OutcomeUnknown,
                "send messages",
                "the message got no answer",
            ))
        };
        answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(missing))
            .collect()
    }

    async fn redrive(&self, request: &RedriveRequest) -> Result<RedriveTask> {
        let from = self.shared.queue(queue_name(&request.from)?).await?;
        let to = match &request.to {
            Some(to) => Some(self.shared.queue(queue_name(to)?).await?),
            None => None,
        };
        if list::sources(&self.shared, &from).await.is_empty() {
            let doing = Doing::new("start the move", "sqs:StartMessageMoveTask").at(&from.name);
            return Err(doing
                .error(
                    ErrorKind::Unsupported,
                    "SQS moves messages only out of the dead-letter queue of another SQS queue",
                )
                .advise("Replay the messages instead."));
        }
        redrive::start(
            &self.shared.client,
            &self.shared.memory,
            &from,
            to.as_ref(),
            request.rate,
        )
        .await
    }

    async fn redrives(&self, from: &Address) -> Result<Vec<RedriveTask>> {
        let from = self.shared.queue(queue_name(from)?).await?;
        redrive::list(&self.shared.client, &self.shared.memory, &from).await
    }

    async fn cancel_redrive(&self, task: &RedriveTask) -> Result<()> {
        redrive::cancel(&self.shared.client, task).await
    }

    async fn purge(&self, at: &Address) -> Result<Figure<u64>> {
        let queue = self.shared.queue(queue_name(at)?).await?;
        redrive::purge(&self.shared.client, &queue).await
    }

    async fn truncate(&self, _: &Address, _: &[(i32, i64)]) -> Result<()> {
        unsupported(
            "delete everything before a position",
            "SQS has no positions; discard or purge instead",
        )
    }

    async fn close(&self) -> Result<()> {
        let looks = std::mem::take(&mut *lock(&self.looks));
        let open = looks.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        let closed = futures::future::join_all(open.iter().map(|look| look.give_back())).await;
        closed.into_iter().try_for_each(|closed| closed.map(|_| ()))
    }
}

impl SqsSession {
    async fn publish_to(
        &self,
        at: &Address,
        batch: &[Outgoing],
        members: Vec<usize>,
    ) -> Vec<(usize, Result<Receipt>)> {
        let queue = match queue_name(at) {
            Ok(name) => self.shared.usable_queue(name).await,
            Err(error) => Err(error),
        };
        let queue = match queue {
            Ok(queue) => queue,
            Err(error) => {
                return members
                    .into_iter()
                    .map(|index| (index, Err(error.clone())))
                    .collect();
            }
        };
        let mut answers = Vec::with_capacity(members.len());
        let mut entries = Vec::with_capacity(members.len());
        for index in members {
            match check::check(&batch[index].message, &queue) {
                Ok(ready) => entries.push(Entry { index, ready }),
                Err(error) => answers.push((index, Err(error))),
            }
        }
        answers.extend(publish::send(&self.shared.client, &queue, entries).await);
        if answers.iter().any(|(_, answer)| {
            answer
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        }) {
            self.shared.memory.forget_url(&at.name);
        }
        answers
    }
}

/// The places in the batch by target, targets in the order of their first message.
fn by_target(batch: &[Outgoing]) -> Vec<(Address, Vec<usize>)> {
    let mut targets: Vec<(Address, Vec<usize>)> = Vec::new();
    for (index, outgoing) in batch.iter().enumerate() {
        let address = &outgoing.target.address;
        match targets.iter_mut().find(|(known, _)| known == address) {
            Some((_, members)) => members.push(index),
            None => targets.push((address.clone(), vec![index])),
        }
    }
    targets
}

/// What a person should know before sending there.
fn notes(queue: &Queue) -> Vec<String> {
    let mut notes = vec![format!(
        "The queue takes messages of up to {} bytes, attributes included.",
        grouped(queue.max_bytes)
    )];
    if queue.is_fifo() {
        notes.push(
            "Each message gets a fresh deduplication id, so that SQS takes it even when the same one was sent within 5 minutes."
                .to_owned(),
        );
    }
    if let Some(policy) = &queue.redrive {
        notes.push(format!(
            "It moves messages to {} after {} receives.",
            policy.target(),
            policy.max_receives
        ));
    }
    notes
}
