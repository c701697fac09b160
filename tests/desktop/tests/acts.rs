//! What is done less often: runs that were cut off, pointers, secrets, holds, audit lines.

use bytes::Bytes;
use dlo_core::{Header, Message, Target, Value};
use dlo_desktop_tests::flow::Flow;
use dlo_engine::audit::{Act, AuditLog, Intent, NewRun, Reach};
use dlo_memory::LogSettings;
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable as _;

/// A journal with a replay of one message that nobody finished.
fn cut_off(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let log = AuditLog::open(dlo_engine::home::Home::at(folder).database())?;
        let new = NewRun {
            act: Act::Replay,
            profile: "orders-prod".to_owned(),
            destination: "orders.dlq".to_owned(),
            target: Some("orders".to_owned()),
            who: "ada@host".to_owned(),
            why: Some("db-3 is back".to_owned()),
            plan: "{}".to_owned(),
            total: 1,
        };
        let run = log.begin(new).await?;
        let intent = Intent {
            seq: 0,
            position: r#"{"index":4}"#.to_owned(),
            sha256: "0".repeat(64),
            target: Some("orders".to_owned()),
            capture: None,
        };
        log.intend(&run, Reach::Started, vec![intent]).await?;
        Ok(())
    })
}

#[test]
fn a_run_that_was_cut_off_is_shown_at_the_start_and_resolved_by_a_person() {
    let home = tempfile::tempdir().expect("a folder");
    cut_off(home.path()).expect("a journal");
    let mut flow = Flow::at(home);
    flow.wait_for_text("A replay of orders.dlq was cut off");
    flow.click("Show the run");
    flow.wait_for("Message 1: unknown");
    assert!(!flow.is_enabled("It arrived…"), "a message is chosen first");
    flow.click("Message 1: unknown");
    flow.click("It arrived…");
    flow.confirm("It arrived");
    flow.until("nothing is unknown any more", |flow| {
        let unknown = flow.harness.query_by_label("Message 1: unknown");
        unknown.is_none() && flow.harness.query_by_label_contains("Message 1:").is_some()
    });
    // Escape leaves the report.
    flow.press(Modifiers::NONE, Key::Escape);
    flow.until("the report is left", |flow| {
        !flow.harness.state().state.center.is_page()
    });
}

fn text(body: &str) -> Message {
    Message {
        body: Some(Bytes::copy_from_slice(body.as_bytes())),
        ..Message::default()
    }
}

#[test]
fn a_pointer_is_followed_to_the_record_it_names() {
    let mut flow = Flow::new();
    let events = flow
        .broker
        .declare_log("orders.events", LogSettings::topic(1));
    let dead = LogSettings::topic(1).with_dead_letters_of("orders.events");
    let dead = flow.broker.declare_log("events-dlt", dead);
    flow.broker
        .publish(&Target::new(events), text("the order itself"))
        .expect("published");
    let marks = [
        ("__dlq.errors.topic", "orders.events"),
        ("__dlq.errors.group", "orders"),
        ("__dlq.errors.partition", "0"),
        ("__dlq.errors.offset", "0"),
    ];
    let pointer = Message {
        headers: marks
            .iter()
            .map(|(name, text)| Header::new(*name, "bytes", Value::text(*text)))
            .collect(),
        ..Message::default()
    };
    flow.broker
        .publish(&Target::new(dead), pointer)
        .expect("published");
    flow.connect();
    flow.look_at("events-dlt");
    flow.click("Message 1");
    flow.click("Fetch the message it points to");
    flow.wait_for_text("the order itself");
}

#[test]
fn a_password_is_kept_where_the_person_chose() {
    let mut flow = Flow::new();
    flow.press(Modifiers::COMMAND, Key::N);
    flow.type_into("Profile name", "shop");
    let url = flow.url.clone();
    flow.type_into("Profile URL", &url);
    flow.type_into("Password", "s3cret-word");
    flow.click("in plain text");
    flow.wait_for_text("Anybody who can read your files can read this password.");
    flow.click("in an encrypted file");
    flow.type_into("Passphrase", "a long passphrase");
    flow.until("the profile can be saved", |flow| flow.is_enabled("Save"));
    flow.click("Save");
    flow.wait_for("Connect to shop");
    let files = std::fs::read_dir(flow.home()).expect("the folder");
    let mut names = Vec::new();
    for file in files.flatten() {
        names.push(file.file_name().to_string_lossy().into_owned());
        let content = std::fs::read(file.path()).unwrap_or_default();
        let open = content.windows(11).any(|part| part == b"s3cret-word");
        assert!(!open, "{:?} has the password in it", file.path());
    }
    assert!(
        names.iter().any(|name| name == "secrets.encrypted.json"),
        "{names:?}"
    );
}

#[test]
fn what_is_held_can_be_given_back_from_any_page() {
    let mut flow = Flow::looking(&["one"]);
    flow.press(Modifiers::COMMAND, Key::Num2);
    flow.wait_for("No runs");
    flow.press(Modifiers::COMMAND, Key::B);
    flow.until("it is given back", |flow| {
        flow.broker.held("orders.dlq") == 0
    });
    flow.press(Modifiers::COMMAND, Key::B);
    flow.wait_for("Nothing is held: no look is open.");
}

#[test]
fn an_export_is_one_line_of_the_audit_trail_that_unfolds() {
    let mut flow = Flow::looking(&["one", "two", "three"]);
    flow.press(Modifiers::COMMAND, Key::A);
    flow.click("Export 3…");
    flow.click("Browse…");
    flow.until("a file is chosen", |flow| {
        flow.is_enabled("Export 3 messages")
    });
    flow.click("Export 3 messages");
    flow.wait_for_text("3 messages written to");
    flow.press(Modifiers::COMMAND, Key::Num1);
    flow.wait_for_text("export orders.dlq exported, 3 messages");
    assert_eq!(
        flow.harness.query_all_by_label_contains("Entry ").count(),
        1
    );
    flow.click_text("export orders.dlq exported, 3 messages");
    flow.until("its messages are there", |flow| {
        flow.harness.query_all_by_label_contains("Entry ").count() == 4
    });
}

#[test]
fn a_threshold_raises_a_badge_and_one_notification() {
    let mut flow = Flow::new();
    flow.kill(&["one", "two"]);
    flow.connect();
    flow.click("orders.dlq");
    // What looking costs comes a moment later and can move the button away under the pointer.
    let field = "Alert from so many messages";
    flow.until("the notes are open", |flow| {
        let is_open = flow.harness.query_all_by_label(field).next().is_some();
        if !is_open {
            flow.click("Owner, notes and alerts…");
        }
        is_open
    });
    flow.type_into(field, "two");
    flow.wait_for_text("two is no count");
    assert!(!flow.is_enabled("Save"));
    flow.type_into(field, "2");
    flow.until("it can be saved", |flow| flow.is_enabled("Save"));
    flow.click("Save");
    flow.wait_for("alerts 1");
    flow.click("alerts 1");
    flow.wait_for("orders.dlq: 2 messages (threshold 2)");
    flow.press(Modifiers::NONE, Key::F5);
    flow.harness.run_steps(5);
    assert_eq!(flow.notified(), ["orders.dlq: 2 messages (threshold 2)"]);
}
