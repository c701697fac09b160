//! The main job through the program `dlo` on real RabbitMQ, as a script would use it: look, replay, kill, discard, restore,
//! export, import, audit; with the exit codes and JSON forms that the design promises.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails loudly"
)]

use std::{
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind,
    options::{
        BasicGetOptions, BasicPublishOptions, BasicRejectOptions, ConfirmSelectOptions,
        ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
    },
    types::{AMQPValue, FieldArray, FieldTable},
};
use serde_json::Value;

const VERSIONS: [&str; 3] = ["3_10", "4_0", "4_3"];

/// One queue with its dead-letter queue on one broker, and a home for the program.
struct Stage {
    url: String,
    channel: Channel,
    _connection: Connection,
    queue: String,
    dead: String,
    exchange: String,
    home: tempfile::TempDir,
}

impl Stage {
    async fn new(version: &str, kind: &str, limit: Option<i64>) -> Self {
        let variable = format!("DLO_TEST_RABBITMQ_{version}");
        let url = std::env::var(&variable).unwrap_or_else(|_| {
            panic!("{variable} is not set; run tests/run, which starts the brokers")
        });
        let plain = url.split('?').next().expect("a URL").to_owned();
        let connection = Connection::connect(&plain, ConnectionProperties::default())
            .await
            .expect("connected");
        let channel = connection.create_channel().await.expect("a channel");
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .expect("confirms");
        let id = uuid::Uuid::new_v4().simple().to_string();
        let stage = Self {
            url,
            channel,
            _connection: connection,
            queue: format!("orders {id}"),
            dead: format!("orders {id}.dlq"),
            exchange: format!("shop {id}"),
            home: tempfile::tempdir().expect("a folder"),
        };
        stage.declare(kind, limit).await;
        stage
    }

    async fn declare(&self, kind: &str, limit: Option<i64>) {
        let durable = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString(kind.into()));
        let mut of_dead = arguments.clone();
        if let Some(limit) = limit {
            of_dead.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(limit));
        }
        self.channel
            .queue_declare(self.dead.as_str().into(), durable, of_dead)
            .await
            .expect("declared");
        arguments.insert(
            "x-dead-letter-exchange".into(),
            AMQPValue::LongString("".into()),
        );
        arguments.insert(
            "x-dead-letter-routing-key".into(),
            AMQPValue::LongString(self.dead.as_str().into()),
        );
        self.channel
            .queue_declare(self.queue.as_str().into(), durable, arguments)
            .await
            .expect("declared");
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        self.channel
            .exchange_declare(
                self.exchange.as_str().into(),
                ExchangeKind::Topic,
                options,
                FieldTable::default(),
            )
            .await
            .expect("declared");
        let bind = QueueBindOptions::default();
        self.channel
            .queue_bind(
                self.queue.as_str().into(),
                self.exchange.as_str().into(),
                "order.*".into(),
                bind,
                FieldTable::default(),
            )
            .await
            .expect("bound");
    }

    /// Publishes messages to the exchange and rejects them, so that they are dead letters.
    async fn fill(&self, count: usize) {
        let mut confirms = Vec::with_capacity(count);
        for number in 0..count {
            let (options, body) = (BasicPublishOptions::default(), body(number));
            let publish = self.channel.basic_publish(
                self.exchange.as_str().into(),
                "order.new".into(),
                options,
                &body,
                properties(number),
            );
            confirms.push(publish.await.expect("sent"));
        }
        for confirm in confirms {
            confirm.await.expect("confirmed");
        }
        for _ in 0..count {
            self.reject_one().await;
        }
        self.wait_for(&self.dead, count).await;
    }

    async fn reject_one(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let got = self
                .channel
                .basic_get(self.queue.as_str().into(), BasicGetOptions::default())
                .await
                .expect("an answer");
            if let Some(message) = got {
                message
                    .reject(BasicRejectOptions { requeue: false })
                    .await
                    .expect("rejected");
                return;
            }
            assert!(Instant::now() < deadline, "no message came");
        }
    }

    async fn depth(&self, queue: &str) -> usize {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare(queue.into(), options, FieldTable::default())
            .await
            .expect("declared");
        queue.message_count() as usize
    }

    /// Waits until a queue holds so many; what a lost connection gives back takes a moment.
    async fn wait_for(&self, queue: &str, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let depth = self.depth(queue).await;
            if depth == count {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{queue} has {depth} instead of {count}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env("DLO_HOME", self.home.path())
            .env_remove("DISPLAY")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with `--json` and gives its exit code and lines.
    async fn dlo(&self, arguments: &[&str]) -> (i32, Vec<Value>) {
        let mut command = self.command(arguments);
        command.arg("--json");
        let output = tokio::task::spawn_blocking(move || command.output())
            .await
            .expect("joined")
            .expect("started");
        (output.status.code().expect("a code"), lines(&output))
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .arg("--json")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started")
    }

    async fn clean(self) {
        for queue in [&self.queue, &self.dead] {
            let options = QueueDeleteOptions::default();
            self.channel
                .queue_delete(queue.as_str().into(), options)
                .await
                .expect("deleted");
        }
    }

    /// Takes everything from a queue, as a consumer gets it.
    async fn drain(&self, queue: &str) -> Vec<(Vec<u8>, BasicProperties)> {
        let mut got = Vec::new();
        while let Some(message) = self
            .channel
            .basic_get(queue.into(), BasicGetOptions { no_ack: true })
            .await
            .expect("an answer")
        {
            got.push((
                message.delivery.data.to_vec(),
                message.delivery.properties.clone(),
            ));
        }
        got
    }
}

/// The program beside this test, which `cargo build` made.
fn program() -> PathBuf {
    let here = std::env::current_exe().expect("a path");
    let program = here
        .parent()
        .and_then(|deps| deps.parent())
        .expect("a target folder")
        .join("dlo");
    assert!(
        program.exists(),
        "{} is missing; run tests/run, or cargo build first",
        program.display()
    );
    program
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let parsed = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")));
    let parsed: Vec<_> = parsed.collect();
    if parsed.is_empty() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    parsed
}

fn body(number: usize) -> Vec<u8> {
    (0..=255u8).chain(number.to_string().into_bytes()).collect()
}

/// Every type of header that AMQP 0-9-1 has and this broker takes.
fn properties(number: usize) -> BasicProperties {
    let mut table = FieldTable::default();
    table.insert("deep".into(), AMQPValue::LongLongInt(i64::MIN));
    let array = FieldArray::from(vec![
        AMQPValue::Boolean(true),
        AMQPValue::Void,
        AMQPValue::LongString("x".into()),
    ]);
    let mut headers = FieldTable::default();
    headers.insert("array".into(), AMQPValue::FieldArray(array));
    headers.insert("bool".into(), AMQPValue::Boolean(false));
    headers.insert("bytes".into(), AMQPValue::ByteArray(vec![0, 255].into()));
    headers.insert("double".into(), AMQPValue::Double(0.1));
    headers.insert("float".into(), AMQPValue::Float(0.5));
    headers.insert("int16".into(), AMQPValue::ShortInt(-2));
    headers.insert("int32".into(), AMQPValue::LongInt(i32::MIN));
    headers.insert(
        "int64".into(),
        AMQPValue::LongLongInt(9_007_199_254_740_993),
    );
    headers.insert("int8".into(), AMQPValue::ShortShortInt(-1));
    headers.insert("longstr".into(), AMQPValue::LongString("é\0".into()));
    headers.insert("number".into(), AMQPValue::LongInt(number as i32));
    headers.insert("table".into(), AMQPValue::FieldTable(table));
    headers.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    headers.insert("void".into(), AMQPValue::Void);
    BasicProperties::default()
        .with_content_type("application/octet-stream".into())
        .with_correlation_id("c".into())
        .with_delivery_mode(2)
        .with_message_id(format!("m{number}").into())
        .with_timestamp(1_700_000_000)
        .with_headers(headers)
}

/// The properties without what a replay adds.
fn unmarked(properties: &BasicProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in properties.headers().as_ref().expect("headers").inner() {
        // A quorum queue adds its own count to what it delivers.
        let own = ["x-delivery-count", "x-acquired-count"].contains(&name.as_str());
        if !own && !name.as_str().starts_with("x-dlo-") {
            headers.insert(name.clone(), value.clone());
        }
    }
    properties.clone().with_headers(headers)
}

fn summary(lines: &[Value]) -> &Value {
    &lines.last().expect("a summary")["summary"]
}

fn outcome_count(lines: &[Value], outcome: &str) -> usize {
    lines
        .iter()
        .filter(|line| line["outcome"] == outcome)
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unedited_replay_is_the_same_message_to_the_queue_and_to_the_exchange() {
    for version in VERSIONS {
        for (kind, via) in [("classic", "queue"), ("quorum", "exchange")] {
            let stage = Stage::new(version, kind, None).await;
            stage.fill(20).await;
            let arguments = [
                "replay",
                &stage.url,
                &stage.dead,
                "--all",
                "--via",
                via,
                "--reason",
                "mended",
            ];
            let (code, lines) = stage.dlo(&arguments).await;
            assert_eq!(
                (code, outcome_count(&lines, "settled")),
                (0, 20),
                "{version} {kind} {lines:?}"
            );
            let got = stage.drain(&stage.queue).await;
            assert_eq!(got.len(), 20);
            for (number, (bytes, got)) in got.iter().enumerate() {
                assert_eq!(
                    (bytes, &unmarked(got)),
                    (&body(number), &properties(number)),
                    "{version} {kind}"
                );
            }
            assert_eq!(stage.depth(&stage.dead).await, 0);
            stage.clean().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_keeps_everything_and_its_order() {
    for version in VERSIONS {
        let stage = Stage::new(version, "quorum", Some(50)).await;
        stage.fill(60).await;
        // Growing looks: how many were given back before is only known from the management API, which is seconds late, and a
        // smaller look right after a larger one of another process would begin behind what that one gave back.
        let mut first = None::<Vec<String>>;
        for count in ["7", "33", "60", "60"] {
            let (code, lines) = stage
                .dlo(&["look", &stage.url, &stage.dead, "--first", count])
                .await;
            assert_eq!(code, 0);
            let shas: Vec<_> = lines
                .iter()
                .filter_map(|line| line["sha256"].as_str().map(str::to_owned))
                .collect();
            assert_eq!(shas.len().to_string(), count);
            let before = first.replace(shas.clone()).unwrap_or_default();
            assert_eq!(
                shas[..before.len()],
                before,
                "{version}: after a look at {count} the order is another"
            );
        }
        stage.wait_for(&stage.dead, 60).await;
        stage.clean().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_routed_stays_and_exits_with_3() {
    let stage = Stage::new("4_3", "quorum", None).await;
    stage.fill(10).await;
    let (code, lines) = stage
        .dlo(&[
            "replay",
            &stage.url,
            &stage.dead,
            "--all",
            "--to",
            "queue:nowhere at all",
        ])
        .await;
    assert_eq!(
        (code, outcome_count(&lines, "unroutable")),
        (3, 10),
        "{lines:?}"
    );
    stage.wait_for(&stage.dead, 10).await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replay_loses_nothing_and_is_listed() {
    for version in VERSIONS {
        let stage = Stage::new(version, "classic", None).await;
        let count = 600;
        stage.fill(count).await;
        let mut child = stage.start(&[
            "replay",
            &stage.url,
            &stage.dead,
            "--all",
            "--rate",
            "100",
            "--reason",
            "mended",
        ]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while stage.depth(&stage.queue).await < 60 {
            assert!(Instant::now() < deadline, "the replay does not begin");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        // The broker notices the lost connection and puts back what was held.
        let deadline = Instant::now() + Duration::from_secs(60);
        let (arrived, left) = loop {
            let (arrived, left) = (
                stage.depth(&stage.queue).await,
                stage.depth(&stage.dead).await,
            );
            if arrived + left >= count {
                break (arrived, left);
            }
            assert!(
                Instant::now() < deadline,
                "{version}: {arrived} arrived and {left} are left of {count}"
            );
        };
        let (_, runs) = stage.dlo(&["runs"]).await;
        assert_eq!(
            (runs[0]["act"].as_str(), runs[0]["crashed"].as_bool()),
            (Some("replay"), Some(true)),
            "{runs:?}"
        );
        let run = runs[0]["run"].as_str().expect("a name");
        let (_, messages) = stage.dlo(&["runs", run]).await;
        let settled = outcome_count(&messages, "settled");
        // What exists twice is among those whose removal was not recorded.
        let open = messages.len() - settled;
        assert!(
            arrived + left - count <= open,
            "{version}: {} twice, {open} open",
            arrived + left - count
        );
        let (code, lines) = stage
            .dlo(&["replay", &stage.url, &stage.dead, "--all"])
            .await;
        assert_eq!(
            (code, outcome_count(&lines, "settled")),
            (0, left),
            "{version}"
        );
        stage.clean().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discard_restore_export_import_and_the_audit_trail() {
    let stage = Stage::new("4_0", "quorum", None).await;
    stage.fill(30).await;
    let (code, lines) = stage
        .dlo(&[
            "discard",
            &stage.url,
            &stage.dead,
            "--first",
            "10",
            "--reason",
            "test data",
        ])
        .await;
    assert_eq!(
        (code, outcome_count(&lines, "settled")),
        (0, 10),
        "{lines:?}"
    );
    stage.wait_for(&stage.dead, 20).await;
    let run = summary(&lines)["run"].as_str().expect("a run").to_owned();
    let (code, lines) = stage
        .dlo(&[
            "restore",
            &stage.url,
            "--run",
            &run,
            "--reason",
            "a mistake",
        ])
        .await;
    assert_eq!(
        (code, outcome_count(&lines, "settled")),
        (0, 10),
        "{lines:?}"
    );
    stage.wait_for(&stage.dead, 30).await;
    let file = stage.home.path().join("out.ndjson");
    let file = file.to_str().expect("a path");
    let (code, lines) = stage
        .dlo(&["export", &stage.url, &stage.dead, "--out", file])
        .await;
    assert_eq!(
        (code, summary(&lines)["exported"].as_u64()),
        (0, Some(30)),
        "{lines:?}"
    );
    let exported = std::fs::read_to_string(file).expect("a file");
    let (code, offline) = stage
        .dlo(&["look", &format!("file:{file}"), &stage.dead])
        .await;
    assert_eq!((code, offline.len()), (0, 31));
    let hashes = |lines: &[Value]| -> Vec<String> {
        lines
            .iter()
            .filter_map(|line| line["sha256"].as_str().map(str::to_owned))
            .collect()
    };
    let from_file: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(hashes(&offline), hashes(&from_file));
    let (code, lines) = stage.dlo(&["import", file, &stage.url, &stage.queue]).await;
    assert_eq!(
        (code, outcome_count(&lines, "settled")),
        (0, 30),
        "{lines:?}"
    );
    stage.wait_for(&stage.queue, 30).await;
    let (_, audit) = stage.dlo(&["audit", "--limit", "0"]).await;
    for (act, count) in [
        ("discard", 10),
        ("restore", 10),
        ("export", 30),
        ("import", 30),
    ] {
        let found: Vec<_> = audit.iter().filter(|line| line["act"] == act).collect();
        assert_eq!(found.len(), count, "{act}");
        let whole = found.iter().all(|line| {
            line["who"].is_string()
                && line["time"].is_string()
                && line["sha256"].is_string()
                && line["position"].is_object()
        });
        assert!(whole, "{:?}", found[0]);
    }
    let (code, _) = stage.dlo(&["audit", "--verify"]).await;
    assert_eq!(code, 0);
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_profile_changes_nothing_and_production_wants_yes() {
    let stage = Stage::new("4_3", "classic", None).await;
    stage.fill(3).await;
    for (mode, name) in [("read-only", "looker"), ("production", "live")] {
        let add = [
            "profile",
            "add",
            name,
            &stage.url,
            "--mode",
            mode,
            "--keep",
            "plain-text",
        ];
        let mut command = stage.command(&add);
        let added = tokio::task::spawn_blocking(move || command.status())
            .await
            .expect("joined")
            .expect("started");
        assert!(added.success());
    }
    let (code, _) = stage
        .dlo(&[
            "discard",
            "looker",
            &stage.dead,
            "--all",
            "--yes",
            "--reason",
            "x",
        ])
        .await;
    assert_eq!(code, 4);
    let (code, _) = stage
        .dlo(&["discard", "live", &stage.dead, "--all", "--reason", "x"])
        .await;
    assert_eq!(code, 4);
    stage.wait_for(&stage.dead, 3).await;
    let (code, _) = stage
        .dlo(&[
            "discard",
            "live",
            &stage.dead,
            "--all",
            "--yes",
            "--reason",
            "x",
        ])
        .await;
    assert_eq!(code, 0);
    stage.wait_for(&stage.dead, 0).await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_say_what_went_wrong() {
    let stage = Stage::new("4_3", "classic", None).await;
    for (arguments, expected) in [
        (vec!["list", "amqp://guest:guest@127.0.0.1:1"], 1),
        (vec!["look", stage.url.as_str(), "no such queue"], 1),
        (vec!["list", "no-such-profile"], 2),
        (vec!["replay", stage.url.as_str(), stage.dead.as_str()], 2),
        (
            vec![
                "look",
                stage.url.as_str(),
                stage.dead.as_str(),
                "--match",
                "(((",
            ],
            2,
        ),
        (vec!["frobnicate"], 2),
    ] {
        let (code, _) = stage.dlo(&arguments).await;
        assert_eq!(code, expected, "{arguments:?}");
    }
    let mut wrong = stage.command(&[
        "list",
        &stage.url.replace("guest:guest", "guest:hunter2wrong"),
    ]);
    let output = tokio::task::spawn_blocking(move || wrong.output())
        .await
        .expect("joined")
        .expect("started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("hunter2wrong"), "{text}");
    assert_eq!(output.status.code(), Some(1), "{text}");
    stage.clean().await;
}
