//! An ordinary RabbitMQ client for the tests, and brokers of a test's own that it may kill.
//!
//! Separate from the connector on purpose: what the connector says is checked against lapin and the management API alone.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use dlo_core::{Connector, Endpoint, Session};
use dlo_rabbitmq::Rabbit;
use futures::StreamExt;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    message::BasicGetMessage,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions,
        BasicQosOptions, BasicRejectOptions, ConfirmSelectOptions, QueueDeclareOptions,
        QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable},
};
use serde_json::Value;

/// The versions that the tests run on, as `versions.toml` names them.
pub const VERSIONS: [&str; 3] = ["3.10", "4.0", "4.3"];

/// The variable with a version's address; `suffix` is empty, `_TLS` or `_EXTERNAL`.
pub fn variable(version: &str, suffix: &str) -> String {
    format!("DLO_TEST_RABBITMQ_{}{suffix}", version.replace('.', "_"))
}

/// A session of the connector under test.
pub async fn session(url: &str) -> Result<Arc<dyn Session>> {
    let (endpoint, secrets) = Endpoint::parse(url)?;
    Ok(Rabbit.connect(&endpoint, &secrets).await?)
}

/// A broker and an ordinary client of it.
#[derive(Debug)]
pub struct Stage {
    pub url: String,
    pub version: String,
    management: String,
    http: reqwest::Client,
    connection: Connection,
}

impl Stage {
    /// The stage on the shared broker of that version.
    pub async fn on(version: &str) -> Result<Self> {
        Self::at(&crate::required(&variable(version, ""))?, version).await
    }

    /// The stage on the broker at that address.
    pub async fn at(url: &str, version: &str) -> Result<Self> {
        let (amqp, management) = url
            .split_once("?management=")
            .context("the test's URL names no management API")?;
        Ok(Self {
            url: url.to_owned(),
            version: version.to_owned(),
            management: management.to_owned(),
            http: reqwest::Client::builder()
                .no_proxy()
                // The API closes idle connections; a request on one that is just closing would fail.
                .pool_max_idle_per_host(0)
                .build()?,
            connection: Connection::connect(amqp, ConnectionProperties::default()).await?,
        })
    }

    /// The address without its management API, so that the connector has AMQP alone.
    pub fn amqp_alone(&self) -> String {
        let amqp = self.url.split('?').next().unwrap_or_default();
        format!("{amqp}?management=none")
    }

    /// The address for another user.
    pub fn url_for(&self, user: &str, password: &str) -> String {
        self.url
            .replace("guest:guest@", &format!("{user}:{password}@"))
    }

    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self
            .version
            .split('.')
            .filter_map(|part| part.parse::<u32>().ok());
        (parts.next(), parts.next()) >= (Some(major), Some(minor))
    }

    pub async fn session(&self) -> Result<Arc<dyn Session>> {
        session(&self.url).await
    }

    pub async fn channel(&self) -> Result<Channel> {
        Ok(self.connection.create_channel().await?)
    }

    /// Makes an empty durable queue; an older one of that name is deleted.
    pub async fn queue(
        &self,
        name: &str,
        kind: &str,
        arguments: &[(&str, AMQPValue)],
    ) -> Result<()> {
        self.delete(name).await?;
        let mut table = table(arguments);
        table.insert("x-queue-type".into(), AMQPValue::LongString(kind.into()));
        let channel = self.channel().await?;
        channel
            .queue_declare(name.into(), QueueDeclareOptions::durable(), table)
            .await?;
        channel.close(200, "OK".into()).await?;
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        let channel = self.channel().await?;
        channel
            .queue_delete(name.into(), QueueDeleteOptions::default())
            .await?;
        channel.close(200, "OK".into()).await?;
        Ok(())
    }

    /// Publishes to a queue and waits for every confirmation.
    pub async fn fill(
        &self,
        queue: &str,
        messages: impl IntoIterator<Item = (Vec<u8>, BasicProperties)>,
    ) -> Result<()> {
        let channel = self.channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        let mut confirms = Vec::new();
        for (body, properties) in messages {
            let options = BasicPublishOptions::default();
            confirms.push(
                channel
                    .basic_publish("".into(), queue.into(), options, &body, properties)
                    .await?,
            );
        }
        for confirm in confirms {
            ensure!(confirm.await?.is_ack(), "a message was not confirmed");
        }
        channel.close(200, "OK".into()).await?;
        Ok(())
    }

    /// Fills a queue with the numbers from 0 on.
    pub async fn number(&self, queue: &str, count: usize) -> Result<()> {
        let persistent = BasicProperties::default().with_delivery_mode(2);
        self.fill(
            queue,
            (0..count).map(|number| (number.to_string().into_bytes(), persistent.clone())),
        )
        .await
    }

    /// Ready messages.
    pub async fn count(&self, queue: &str) -> Result<u64> {
        let channel = self.channel().await?;
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let counted = channel
            .queue_declare(queue.into(), options, FieldTable::default())
            .await?;
        channel.close(200, "OK".into()).await?;
        Ok(counted.message_count().into())
    }

    /// Waits until that many messages are ready.
    pub async fn await_count(&self, queue: &str, expected: u64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let count = self.count(queue).await?;
            if count == expected {
                return Ok(());
            }
            if Instant::now() > end {
                let info = self
                    .api(
                        reqwest::Method::GET,
                        &format!("queues/%2F/{queue}"),
                        Value::Null,
                    )
                    .await?;
                bail!("{queue} has {count} ready messages, not {expected}: {info}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Takes everything, as an ordinary consumer would.
    pub async fn drain(&self, queue: &str) -> Result<Vec<BasicGetMessage>> {
        let channel = self.channel().await?;
        let (mut taken, options) = (Vec::new(), BasicGetOptions { no_ack: true });
        while let Some(message) = channel.basic_get(queue.into(), options).await? {
            taken.push(message);
        }
        channel.close(200, "OK".into()).await?;
        Ok(taken)
    }

    /// Takes everything and gives the numbers that [`Stage::number`] wrote.
    pub async fn drain_numbers(&self, queue: &str) -> Result<Vec<usize>> {
        let messages = self.drain(queue).await?;
        messages
            .iter()
            .map(|message| Ok(std::str::from_utf8(&message.data)?.parse()?))
            .collect()
    }

    /// Lets every message of a quorum queue fail until its delivery limit sends it to the dead-letter queue.
    pub async fn let_die_of_the_limit(&self, source: &str, dead: &str, count: u64) -> Result<()> {
        let channel = self.channel().await?;
        channel.basic_qos(500, BasicQosOptions::default()).await?;
        let mut consumer = channel
            .basic_consume(
                source.into(),
                "failing".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await?;
        let end = Instant::now() + Duration::from_secs(240);
        loop {
            match tokio::time::timeout(Duration::from_millis(500), consumer.next()).await {
                Ok(Some(message)) => {
                    let options = BasicRejectOptions { requeue: true };
                    message?.reject(options).await?;
                }
                _ if self.count(dead).await? >= count => break,
                _ => ensure!(Instant::now() < end, "the messages did not die in time"),
            }
        }
        channel.close(200, "OK".into()).await?;
        Ok(())
    }

    /// Sends every message of a queue to its dead-letter exchange.
    pub async fn reject_all(&self, source: &str) -> Result<()> {
        let channel = self.channel().await?;
        while let Some(message) = channel
            .basic_get(source.into(), BasicGetOptions::default())
            .await?
        {
            message
                .reject(BasicRejectOptions { requeue: false })
                .await?;
        }
        channel.close(200, "OK".into()).await?;
        Ok(())
    }

    /// Holds one message without settling it; the channel must be kept.
    pub async fn hold_one(&self, queue: &str) -> Result<(Channel, Option<BasicGetMessage>)> {
        let channel = self.channel().await?;
        let message = channel
            .basic_get(queue.into(), BasicGetOptions::default())
            .await?;
        Ok((channel, message))
    }

    /// Acknowledges everything that a channel holds.
    pub async fn ack_all(&self, channel: &Channel) -> Result<()> {
        Ok(channel
            .basic_ack(0, BasicAckOptions { multiple: true })
            .await?)
    }

    /// Asks the management API; the path begins after `/api/`.
    pub async fn api(&self, method: reqwest::Method, path: &str, body: Value) -> Result<Value> {
        let request = self
            .http
            .request(method, format!("{}/api/{path}", self.management))
            .basic_auth("guest", Some("guest"))
            .json(&body);
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{path}: {status} {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Makes a user with these rights in the default virtual host.
    pub async fn user(&self, name: &str, configure: &str, write: &str, read: &str) -> Result<()> {
        let put = reqwest::Method::PUT;
        let user = serde_json::json!({"password": name, "tags": ""});
        self.api(put.clone(), &format!("users/{name}"), user)
            .await?;
        let rights = serde_json::json!({"configure": configure, "write": write, "read": read});
        self.api(put, &format!("permissions/%2F/{name}"), rights)
            .await?;
        Ok(())
    }
}

/// Queue arguments.
pub fn table(arguments: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert((*name).into(), value.clone());
    }
    table
}

pub fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

pub fn number(value: i64) -> AMQPValue {
    AMQPValue::LongLongInt(value)
}

/// Arguments that send a queue's dead letters to another queue.
pub fn dying_into(dead: &str) -> Vec<(&'static str, AMQPValue)> {
    vec![
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(dead)),
    ]
}

/// A broker of a test's own, which it may kill. Stopped and removed when dropped.
#[derive(Debug)]
pub struct Broker {
    version: String,
    folder: tempfile::TempDir,
}

impl Broker {
    pub fn start(version: &str) -> Result<Self> {
        let broker = Self {
            version: version.to_owned(),
            folder: tempfile::tempdir()?,
        };
        broker.start_again()?;
        Ok(broker)
    }

    /// Starts the same node again after [`Broker::kill`].
    pub fn start_again(&self) -> Result<()> {
        run("start", &[self.version.as_ref(), self.folder.path()])
    }

    /// Stops and starts it in peace. A queue made a moment ago is not known on disk for some minutes otherwise (4.0), and a
    /// SIGKILL would leave it without its messages.
    pub fn restart(&self) -> Result<()> {
        run("stop", &[self.folder.path()])?;
        self.start_again()
    }

    /// SIGKILL to all its processes.
    pub fn kill(&self) -> Result<()> {
        run("kill", &[self.folder.path()])
    }

    /// Sends a signal to all its processes, for example STOP to freeze it.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let pid = std::fs::read_to_string(self.folder.path().join("pid"))?;
        let status = Command::new("kill")
            .args([
                format!("-{signal}").as_str(),
                "--",
                &format!("-{}", pid.trim()),
            ])
            .status()?;
        ensure!(status.success(), "kill -{signal} failed");
        Ok(())
    }

    /// The address under that variable's suffix.
    pub fn url(&self, suffix: &str) -> Result<String> {
        let name = variable(&self.version, suffix);
        let lines = std::fs::read_to_string(self.folder.path().join("env"))?;
        let line = lines
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        Ok(line
            .with_context(|| format!("{name} is not in the broker's env file"))?
            .to_owned())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The folder goes next, so a node that cannot be stopped is said and not hidden.
        if let Err(error) = self
            .signal("CONT")
            .and_then(|()| run("stop", &[self.folder.path()]))
        {
            eprintln!(
                "the broker in {} was not stopped: {error}",
                self.folder.path().display()
            );
        }
    }
}

fn run(script: &str, arguments: &[&Path]) -> Result<()> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("rabbitmq")
        .join(script);
    let output = Command::new(&path).args(arguments).output()?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// One test function for each version: `on_every_version! { name, … }` calls `name(&Stage)`.
#[macro_export]
macro_rules! on_every_version {
    ($($name:ident),+ $(,)?) => {
        mod v3_10 { $($crate::on_version!("3.10", $name);)+ }
        mod v4_0 { $($crate::on_version!("4.0", $name);)+ }
        mod v4_3 { $($crate::on_version!("4.3", $name);)+ }
    };
}

/// One test function on one version.
#[macro_export]
macro_rules! on_version {
    ($version:literal, $name:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> anyhow::Result<()> {
            super::$name(&$crate::rabbit::Stage::on($version).await?).await
        }
    };
}
