//! The main job through the whole engine on the memory broker: look, replay, discard, restore, export, import, and what the
//! journal says of it; and what happens when the broker or the journal fails in the middle.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

use std::sync::Arc;

use dlo_core::{Address, Header, Message, Result, Secrets, Target, Typed, Value};
use dlo_engine::{
    Ask, EngineHandle, News, Settings,
    command::{
        Act, Answers, AuditAsk, Canary, ConnectionId, Edit, ExportFormat, LookAsk, PlanAsk,
        ReplayAsk, RestoreWhich, Route, RunAsk, Selection,
    },
    event::{LookOpened, RunReport},
    home::Home,
    registry::Registry,
    replay::plan::{ChangeKind, Plan},
};
use dlo_memory::{
    Broker, Cleanup, Fault, Injection, LogSettings, MemoryConnector, QueueSettings, Step,
};

/// A running engine with its own home and its own broker.
struct Bench {
    engine: EngineHandle,
    broker: Broker,
    place: String,
    home: tempfile::TempDir,
}

impl Bench {
    fn new(name: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        let broker = Broker::named(name);
        Self {
            engine: start(&home),
            broker,
            place: format!("memory:{name}"),
            home,
        }
    }

    /// Ends the engine and starts another one in the same home.
    fn restart(&mut self) {
        self.engine = start(&self.home);
    }

    /// All answers to one question, and how it ended.
    async fn ask(&mut self, ask: Ask) -> (Vec<News>, Result<()>) {
        let task = self.engine.ask(ask).expect("room for a command");
        let mut news = Vec::new();
        while let Some(event) = self.engine.next().await {
            if event.task != task {
                continue;
            }
            match event.news {
                News::Done => return (news, Ok(())),
                News::Failed(error) => return (news, Err(error)),
                News::Cancelled => return (news, Err(dlo_core::Error::cancelled("finish"))),
                other => news.push(other),
            }
        }
        panic!("the engine ended");
    }

    async fn ask_ok(&mut self, ask: Ask) -> Vec<News> {
        let (news, outcome) = self.ask(ask).await;
        outcome.expect("the task succeeds");
        news
    }

    async fn connect(&mut self) -> ConnectionId {
        let place = self.place.clone();
        let ask = Ask::Connect {
            place,
            secrets: Secrets::default(),
            registry: None,
        };
        let news = self.ask_ok(ask).await;
        let connected = news.iter().find_map(|news| match news {
            News::Connected(connected) => Some(connected.connection),
            _ => None,
        });
        connected.expect("connected")
    }

    async fn look(&mut self, at: Address) -> LookOpened {
        let connection = self.connect().await;
        let look = LookAsk {
            start: dlo_core::Start::Oldest,
            ..LookAsk::default()
        };
        let news = self
            .ask_ok(Ask::Look {
                connection,
                address: at,
                look,
            })
            .await;
        let opened = news.into_iter().find_map(|news| match news {
            News::LookOpened(opened) => Some(opened),
            _ => None,
        });
        opened.expect("a look")
    }

    async fn plan(&mut self, look: &LookOpened, selection: Selection, act: Act) -> Arc<Plan> {
        let news = self
            .ask_ok(Ask::Plan(PlanAsk {
                look: look.look,
                selection,
                act,
            }))
            .await;
        let plan = news.into_iter().find_map(|news| match news {
            News::Planned(plan) => Some(plan),
            _ => None,
        });
        plan.expect("a plan")
    }

    async fn run(&mut self, plan: &Plan) -> (Arc<RunReport>, Result<()>) {
        let answers = Answers {
            all: true,
            ..Answers::default()
        };
        let (news, outcome) = self
            .ask(Ask::Run(RunAsk {
                plan: plan.id,
                why: "a test".to_owned(),
                answers,
            }))
            .await;
        (report(news).expect("a report"), outcome)
    }

    async fn close(&mut self, look: &LookOpened) {
        self.ask_ok(Ask::CloseLook { look: look.look }).await;
    }
}

fn start(home: &tempfile::TempDir) -> EngineHandle {
    let settings = Settings {
        registry: Registry::default().with(MemoryConnector),
        home: Home::at(home.path()),
        who: "tester".to_owned(),
        wake: Arc::new(|| ()),
    };
    EngineHandle::start(settings).expect("an engine")
}

fn report(news: Vec<News>) -> Option<Arc<RunReport>> {
    news.into_iter().find_map(|news| match news {
        News::RunFinished(report) => Some(report),
        _ => None,
    })
}

fn outcomes(report: &RunReport) -> Vec<(&str, u64)> {
    report
        .run
        .outcomes
        .iter()
        .map(|(outcome, count)| (outcome.as_str(), *count))
        .collect()
}

/// A message with every kind of value that an AMQP header can have.
fn message(number: usize) -> Message {
    let table = vec![Header::new(
        "inner",
        "int64",
        Value::Int(i128::from(i64::MIN)),
    )];
    let list = vec![
        Typed::new("longstr", Value::text("x")),
        Typed::new("void", Value::Null),
    ];
    Message {
        key: None,
        headers: vec![
            Header::new("text", "longstr", Value::text("é")),
            Header::new("raw", "longstr", Value::Bytes(vec![0, 255, 128].into())),
            Header::new("yes", "boolean", Value::Bool(true)),
            Header::new("double", "double", Value::Float(f64::NAN)),
            Header::new("table", "table", Value::Table(table)),
            Header::new("list", "array", Value::List(list)),
            Header::new("nothing", "void", Value::Null),
        ],
        properties: [("message_id".to_owned(), Value::text(format!("m{number}")))].into(),
        body: Some(
            (0..=255u8)
                .chain(number.to_string().into_bytes())
                .collect::<Vec<u8>>()
                .into(),
        ),
    }
}

/// A record of a log: without properties.
fn record(number: usize) -> Message {
    Message {
        headers: Vec::new(),
        properties: Default::default(),
        ..message(number)
    }
}

/// Messages that died in `orders` by rejection and lie in `orders.dlq`.
fn fill(broker: &Broker, count: usize) -> Vec<Message> {
    broker.declare_queue("orders.dlq", QueueSettings::classic());
    let settings = QueueSettings::classic().with_dead_letter_exchange("", Some("orders.dlq"));
    let orders = broker.declare_queue("orders", settings);
    let messages: Vec<_> = (0..count).map(message).collect();
    for message in &messages {
        broker
            .publish(&Target::new(orders.clone()), message.clone())
            .expect("published");
        let taken = broker.take("orders").expect("a message");
        broker.reject(&taken);
    }
    messages
}

/// The messages without what a replay adds.
fn unmarked(messages: Vec<Message>) -> Vec<Message> {
    let strip = |mut message: Message| {
        message
            .headers
            .retain(|header| !header.name.starts_with("x-dlo-"));
        message
    };
    messages.into_iter().map(strip).collect()
}

fn dlq() -> Address {
    Address::queue("orders.dlq")
}

fn replay(ask: ReplayAsk) -> Act {
    Act::Replay(Box::new(ask))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_message_is_the_one_that_was_published_first() {
    let mut bench = Bench::new("replay");
    let sent = fill(&bench.broker, 1200);
    let look = bench.look(dlq()).await;
    assert_eq!(look.view.len(), 1200);
    let plan = bench
        .plan(&look, Selection::All, replay(ReplayAsk::default()))
        .await;
    assert_eq!(
        plan.targets.iter().collect::<Vec<_>>(),
        [(&"orders".to_owned(), &1200)]
    );
    let stripped = plan.messages[0]
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Stripped);
    assert!(
        stripped
            .clone()
            .any(|change| change.what == "header x-death"),
        "{:?}",
        plan.messages[0].changes
    );
    let (report, outcome) = bench.run(&plan).await;
    assert_eq!(
        (outcome, outcomes(&report)),
        (Ok(()), vec![("settled", 1200)])
    );
    assert_eq!(unmarked(bench.broker.content("orders")), sent);
    assert_eq!(bench.broker.content("orders.dlq").len(), 0);
    bench.close(&look).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_routed_stays_where_it_is() {
    let mut bench = Bench::new("unroutable");
    let sent = fill(&bench.broker, 20);
    let look = bench.look(dlq()).await;
    let nowhere = ReplayAsk {
        route: Route::To("queue:nowhere".to_owned()),
        ..ReplayAsk::default()
    };
    let plan = bench.plan(&look, Selection::All, replay(nowhere)).await;
    assert!(
        plan.findings
            .iter()
            .any(|finding| finding.code == "target-gone"),
        "{:?}",
        plan.findings
    );
    let (report, _) = bench.run(&plan).await;
    assert_eq!(outcomes(&report), [("unroutable", 20)]);
    bench.close(&look).await;
    assert_eq!(bench.broker.depth("orders.dlq"), sent.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_confirmation_is_unknown_and_the_original_stays() {
    let mut bench = Bench::new("unknown");
    fill(&bench.broker, 10);
    let look = bench.look(dlq()).await;
    bench
        .broker
        .inject(Injection::once(Fault::ConfirmLost).on("orders").after(4));
    let plan = bench
        .plan(&look, Selection::All, replay(ReplayAsk::default()))
        .await;
    let (report, _) = bench.run(&plan).await;
    let counts = report.run.outcomes.clone();
    assert!(counts["unknown"] >= 1, "{counts:?}");
    assert_eq!(counts.values().sum::<u64>(), 10);
    bench.close(&look).await;
    let kept =
        bench.broker.depth("orders.dlq") + counts.get("settled").copied().unwrap_or_default();
    assert_eq!(kept, 10, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn discarded_messages_come_back_whole() {
    let mut bench = Bench::new("discard");
    fill(&bench.broker, 12);
    let before = bench.broker.content("orders.dlq");
    let look = bench.look(dlq()).await;
    let plan = bench.plan(&look, Selection::First(10), Act::Discard).await;
    let (report, outcome) = bench.run(&plan).await;
    assert_eq!(
        (outcome, outcomes(&report)),
        (Ok(()), vec![("settled", 10)])
    );
    bench.close(&look).await;
    assert_eq!(bench.broker.depth("orders.dlq"), 2);
    let connection = bench.connect().await;
    let restore = |run: &str| Ask::Restore {
        connection,
        captures: RestoreWhich::Run(run.to_owned()),
        to: None,
        why: "a mistake".to_owned(),
        answers: Answers::default(),
    };
    bench.ask_ok(restore(&report.run.run)).await;
    let mut after = bench.broker.content("orders.dlq");
    after.rotate_right(10);
    assert_eq!(after, before);
    let (_, again) = bench.ask(restore(&report.run.run)).await;
    assert!(again.is_err_and(|error| error.what().contains("not restored yet")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_file_gives_back_what_was_exported() {
    let mut bench = Bench::new("export");
    fill(&bench.broker, 1000);
    bench.broker.declare_queue("copy", QueueSettings::classic());
    let before = bench.broker.content("orders.dlq");
    let look = bench.look(dlq()).await;
    let file = bench.home.path().join("orders.ndjson");
    let export = Ask::Export {
        look: look.look,
        selection: Selection::All,
        file: file.clone(),
        format: ExportFormat::Capture,
        why: String::new(),
    };
    bench.ask_ok(export).await;
    bench.close(&look).await;
    let connection = bench.connect().await;
    let import = Ask::Import {
        file,
        connection,
        to: Some("copy".to_owned()),
        why: String::new(),
        answers: Answers::default(),
    };
    bench.ask_ok(import).await;
    assert_eq!(bench.broker.content("copy"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_journal_cannot_write_nothing_is_changed() {
    let mut bench = Bench::new("journal");
    fill(&bench.broker, 5);
    // A folder where the journal's file should be: it cannot be opened.
    let folder = bench.home.path().join("broken");
    std::fs::create_dir_all(folder.join("dlo.sqlite")).expect("a folder");
    let settings = Settings {
        registry: Registry::default().with(MemoryConnector),
        home: Home::at(folder),
        who: "tester".to_owned(),
        wake: Arc::new(|| ()),
    };
    bench.engine = EngineHandle::start(settings).expect("an engine");
    let look = bench.look(dlq()).await;
    assert_eq!(look.view.len(), 5, "looking works without a journal");
    let plan = bench.plan(&look, Selection::All, Act::Discard).await;
    let answers = Answers {
        all: true,
        ..Answers::default()
    };
    let (_, outcome) = bench
        .ask(Ask::Run(RunAsk {
            plan: plan.id,
            why: String::new(),
            answers,
        }))
        .await;
    assert!(outcome.is_err(), "{outcome:?}");
    bench.close(&look).await;
    assert_eq!(bench.broker.depth("orders.dlq"), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_half_way_loses_nothing() {
    let mut bench = Bench::new("broken");
    let sent = fill(&bench.broker, 1500);
    let look = bench.look(dlq()).await;
    bench.broker.inject(
        Injection::once(Fault::ConnectionLost(Step::Publish))
            .on("orders")
            .after(700),
    );
    let plan = bench
        .plan(&look, Selection::All, replay(ReplayAsk::default()))
        .await;
    let (report, _) = bench.run(&plan).await;
    let arrived = bench.broker.content("orders").len();
    let left = bench.broker.content("orders.dlq").len();
    assert!(arrived + left >= sent.len(), "{arrived} + {left}");
    let unknown = report
        .run
        .outcomes
        .get("unknown")
        .copied()
        .unwrap_or_default();
    let doubled = arrived + left - sent.len();
    assert!(
        doubled as u64 <= unknown,
        "{doubled} exist twice, {unknown} are reported as unknown"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_keeps_its_records_and_the_journal_resolves_them() {
    let mut bench = Bench::new("log");
    let origin = bench.broker.declare_log("orders", LogSettings::topic(3));
    let dead = bench.broker.declare_log(
        "orders-dlt",
        LogSettings::topic(3).with_dead_letters_of("orders"),
    );
    for number in 0..30 {
        let text = |text: &str| Value::text(text);
        let record = Message {
            key: Some(format!("k{}", number % 5).into()),
            headers: vec![
                Header::new("own", "bytes", text("1")),
                Header::new("own", "bytes", Value::Null),
                Header::new("kafka_dlt-original-topic", "bytes", text("orders")),
                Header::new(
                    "kafka_dlt-exception-fqcn",
                    "bytes",
                    text("java.lang.NullPointerException"),
                ),
            ],
            ..record(number)
        };
        bench
            .broker
            .publish(&Target::new(dead.clone()), record)
            .expect("published");
    }
    let look = bench.look(dead.clone()).await;
    let plan = bench
        .plan(&look, Selection::All, replay(ReplayAsk::default()))
        .await;
    let (report, outcome) = bench.run(&plan).await;
    assert_eq!(
        (outcome, outcomes(&report)),
        (Ok(()), vec![("settled", 30)])
    );
    let arrived = bench.broker.records(&origin.name);
    assert_eq!(arrived.len(), 30);
    bench.close(&look).await;
    let again = bench.look(dead).await;
    assert_eq!(
        (again.view.len(), again.view.open_rows().len()),
        (30, 0),
        "resolved ones are known"
    );
    let chosen = Selection::Rows(vec![3, 5]);
    let plan = bench.plan(&again, chosen, Act::Unresolve).await;
    bench.run(&plan).await.1.expect("unresolved");
    assert_eq!(
        again.view.open_rows(),
        [3, 5],
        "only those that were chosen"
    );
    let plan = bench.plan(&again, Selection::All, Act::Unresolve).await;
    bench.run(&plan).await.1.expect("unresolved");
    assert_eq!(again.view.open_rows().len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_comes_back_stops_the_rest() {
    let mut bench = Bench::new("canary");
    fill(&bench.broker, 40);
    let look = bench.look(dlq()).await;
    let canary = Canary {
        messages: 10,
        watch: std::time::Duration::from_millis(500),
        stop_percent: 5.0,
    };
    let ask = ReplayAsk {
        canary: Some(canary),
        ..ReplayAsk::default()
    };
    let plan = bench.plan(&look, Selection::All, replay(ask)).await;
    // A consumer that fails again, as soon as something arrives.
    let broker = bench.broker.clone();
    let consumer = tokio::spawn(async move {
        loop {
            match broker.take("orders") {
                Some(taken) => drop(broker.reject(&taken)),
                None => tokio::task::yield_now().await,
            }
        }
    });
    let (report, _) = bench.run(&plan).await;
    consumer.abort();
    assert_eq!(
        report.run.outcomes.get("returned"),
        Some(&10),
        "{:?}",
        report.run.outcomes
    );
    assert!(
        report.notes.iter().any(|note| note.starts_with("Stopped")),
        "{:?}",
        report.notes
    );
    bench.close(&look).await;
    assert_eq!(bench.broker.depth("orders.dlq"), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_told_without_an_act() {
    let mut bench = Bench::new("lost");
    fill(&bench.broker, 3);
    let look = bench.look(dlq()).await;
    bench.broker.break_connections();
    let wait = std::time::Duration::from_secs(20);
    let told = tokio::time::timeout(wait, async {
        loop {
            let event = bench.engine.next().await.expect("the engine goes on");
            if let News::HoldLost { look, .. } = event.news {
                return look;
            }
        }
    });
    assert_eq!(told.await.expect("it is told"), look.look);
    assert_eq!(look.view.open_rows().len(), 0, "the rows are stale");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_for_returns_uses_up_no_delivery_limit() {
    let mut bench = Bench::new("watched");
    let limited = QueueSettings::quorum().with_delivery_limit(4);
    bench.broker.declare_queue("orders.dlq", limited);
    let settings = QueueSettings::classic().with_dead_letter_exchange("", Some("orders.dlq"));
    let orders = Target::new(bench.broker.declare_queue("orders", settings));
    let reject_all = |broker: &Broker| {
        while let Some(taken) = broker.take("orders") {
            broker.reject(&taken);
        }
    };
    for number in 0..20 {
        bench
            .broker
            .publish(&orders, message(number))
            .expect("published");
    }
    reject_all(&bench.broker);
    let look = bench.look(dlq()).await;
    let canary = Canary {
        messages: 10,
        watch: std::time::Duration::from_millis(500),
        stop_percent: 100.0,
    };
    let ask = ReplayAsk {
        canary: Some(canary),
        ..ReplayAsk::default()
    };
    let plan = bench.plan(&look, Selection::All, replay(ask)).await;
    let broker = bench.broker.clone();
    let consumer = tokio::spawn(async move {
        loop {
            reject_all(&broker);
            tokio::task::yield_now().await;
        }
    });
    let (report, _) = bench.run(&plan).await;
    consumer.abort();
    assert_eq!(report.run.outcomes.get("returned"), Some(&20));
    let watched = |note: &String| note.contains("could not be watched");
    assert!(!report.notes.iter().any(watched), "{:?}", report.notes);
    bench.close(&look).await;
    let again = bench.look(dlq()).await;
    let counts: Vec<_> = (0..again.view.len())
        .filter_map(|row| again.view.delivery(row)?.delivery_count)
        .collect();
    assert_eq!(counts.len(), 20);
    // One for each of the two watches, at most.
    assert!(counts.iter().all(|count| *count <= 3), "{counts:?}");
    bench.close(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_an_engine_that_is_gone_is_listed_and_nothing_is_lost() {
    let mut bench = Bench::new("restart");
    fill(&bench.broker, 30);
    let look = bench.look(dlq()).await;
    let plan = bench.plan(&look, Selection::All, Act::Discard).await;
    bench.run(&plan).await.1.expect("discarded");
    bench.restart();
    let news = bench.ask_ok(Ask::Runs).await;
    let runs = news.iter().find_map(|news| match news {
        News::Runs(runs) => Some(runs.clone()),
        _ => None,
    });
    let runs = runs.expect("runs");
    assert_eq!(
        (runs[0].act.as_str(), runs[0].state.as_str(), runs[0].total),
        ("discard", "done", 30)
    );
    let query = AuditAsk {
        limit: 100,
        ..AuditAsk::default()
    };
    let news = bench.ask_ok(Ask::Audit { query }).await;
    let lines = news.iter().find_map(|news| match news {
        News::Audit { entries, .. } => Some(entries.clone()),
        _ => None,
    });
    let lines = lines.expect("audit lines");
    assert_eq!(lines.len(), 30);
    let whole = lines.iter().all(|line| {
        line.who == "tester"
            && line.why == "a test"
            && line.sha256.is_some()
            && line.position.is_some()
    });
    assert!(whole, "{:?}", lines[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_replay_stops_between_messages_and_the_rest_stays() {
    let mut bench = Bench::new("cancel");
    fill(&bench.broker, 300);
    let look = bench.look(dlq()).await;
    let ask = ReplayAsk {
        rate: Some(50),
        ..ReplayAsk::default()
    };
    let plan = bench.plan(&look, Selection::All, replay(ask)).await;
    let answers = Answers {
        all: true,
        ..Answers::default()
    };
    let run = RunAsk {
        plan: plan.id,
        why: String::new(),
        answers,
    };
    let task = bench.engine.ask(Ask::Run(run)).expect("room for a command");
    while bench.broker.content("orders").len() < 20 {
        tokio::task::yield_now().await;
    }
    bench
        .engine
        .ask(Ask::Cancel { task })
        .expect("room for a command");
    let mut finished = None;
    let cancelled = loop {
        let event = bench.engine.next().await.expect("an event");
        match event.news {
            News::RunFinished(report) => finished = Some(report),
            News::Cancelled if event.task == task => break true,
            News::Done | News::Failed(_) if event.task == task => break false,
            _ => {}
        }
    };
    let report = finished.expect("a report");
    assert!(cancelled);
    assert_eq!(report.run.state, "cancelled");
    bench.close(&look).await;
    let arrived = bench.broker.content("orders").len();
    assert!((20..300).contains(&arrived), "{arrived}");
    assert_eq!(report.run.outcomes.get("settled"), Some(&(arrived as u64)));
    assert_eq!(bench.broker.content("orders.dlq").len(), 300 - arrived);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_reach_every_selected_message_and_are_shown() {
    let mut bench = Bench::new("edits");
    fill(&bench.broker, 3);
    let look = bench.look(dlq()).await;
    let ask = ReplayAsk {
        edits: vec![
            Edit::SetHeader {
                name: "text".to_owned(),
                text: "new".to_owned(),
            },
            Edit::RemoveHeader {
                name: "yes".to_owned(),
            },
        ],
        ..ReplayAsk::default()
    };
    let plan = bench.plan(&look, Selection::All, replay(ask)).await;
    let edited: Vec<_> = plan.messages[0]
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Edited)
        .map(|change| change.what.as_str())
        .collect();
    assert_eq!(edited, ["header text", "header yes"]);
    let (report, outcome) = bench.run(&plan).await;
    outcome.expect("replayed");
    let detail = report.messages[0].detail.as_deref().unwrap_or_default();
    assert!(
        detail.contains("edited: header text, header yes"),
        "{detail}"
    );
    let arrived = bench.broker.content("orders");
    assert!(
        arrived
            .iter()
            .all(|message| message.header("text") == Some(&Value::text("new")))
    );
    assert!(
        arrived
            .iter()
            .all(|message| message.header("yes").is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_topic_takes_tombstones() {
    let mut bench = Bench::new("tombstone");
    let log = LogSettings {
        cleanup: Cleanup::Compact,
        ..LogSettings::topic(1)
    };
    let dead = bench.broker.declare_log("state-dlt", log);
    for number in 0..4 {
        let record = Message {
            key: Some("k".into()),
            ..record(number)
        };
        bench
            .broker
            .publish(&Target::new(dead.clone()), record)
            .expect("published");
    }
    let look = bench.look(dead).await;
    let plan = bench.plan(&look, Selection::All, Act::Tombstone).await;
    assert_eq!(plan.messages.len(), 1, "one tombstone a key");
    bench.run(&plan).await.1.expect("published");
    bench.broker.compact("state-dlt");
    let left = bench.broker.records("state-dlt");
    assert!(
        left.iter().all(|record| record.message.body.is_none()),
        "{left:?}"
    );
}
