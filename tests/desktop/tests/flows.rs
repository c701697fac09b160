//! The main job through the window: look, filter, open, edit, replay, discard, restore, export, audit; and the modes.

use dlo_desktop_tests::flow::Flow;
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable as _;

const ALL: (Modifiers, Key) = (Modifiers::COMMAND, Key::A);

#[test]
fn looking_is_harmless_and_shows_why_a_message_died() {
    let mut flow = Flow::looking(&[r#"{"id":1}"#, r#"{"id":2}"#]);
    flow.click("Message 2");
    flow.wait_for_text("rejected");
    flow.click("Payload");
    flow.wait_for_text("id 2");
    flow.click("Give back");
    flow.wait_for_text("given back");
    assert_eq!(flow.bodies("orders.dlq"), [r#"{"id":1}"#, r#"{"id":2}"#]);
}

#[test]
fn a_filter_narrows_the_rows_and_says_how_many_match() {
    let mut flow = Flow::looking(&["apple", "banana", "apple pie"]);
    flow.type_into("Filter messages", "apple");
    flow.wait_for("2 of 3 match");
    assert!(flow.harness.query_by_label("Message 2").is_none());
    flow.type_into("Filter messages", "attempts>");
    flow.until("the query is explained", |flow| {
        let look = flow.harness.state().state.active_look();
        look.is_some_and(|look| look.filter.error.is_some())
    });
}

#[test]
fn an_edited_message_is_replayed_as_edited_and_the_others_as_they_were() {
    let mut flow = Flow::looking(&[r#"{"price":null}"#, r#"{"price":2}"#]);
    flow.click("Message 1");
    flow.wait_for_text("rejected");
    // The group says so too, so the message itself may still be on its way.
    flow.until("the message can be edited", |flow| flow.is_enabled("Edit…"));
    flow.click("Edit…");
    flow.type_into("Body", r#"{"price":1}"#);
    flow.until("the edit can be kept", |flow| {
        flow.is_enabled("Keep the edit")
    });
    flow.click("Keep the edit");
    flow.press(Modifiers::NONE, Key::Tab);
    flow.click_text("Select all");
    flow.click("Replay 2…");
    flow.confirm("Replay 2 messages");
    flow.job_done();
    assert_eq!(flow.bodies("orders"), [r#"{"price":1}"#, r#"{"price":2}"#]);
    assert_eq!(flow.broker.depth("orders.dlq"), 0);
    flow.click("Report");
    flow.wait_for_text("2 settled");
}

#[test]
fn discarded_messages_are_saved_and_can_be_restored() {
    let mut flow = Flow::looking(&["one", "two"]);
    flow.click_text("Select all");
    flow.click("Discard 2…");
    flow.confirm("Discard 2 messages");
    flow.job_done();
    assert_eq!(flow.broker.depth("orders.dlq"), 0);
    flow.press(Modifiers::COMMAND, Key::Num3);
    flow.wait_for_text("Copy ");
    flow.click("Select all shown");
    flow.click("Restore 2…");
    flow.confirm("Restore 2 messages");
    flow.job_done();
    let mut bodies = flow.bodies("orders.dlq");
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
}

#[test]
fn an_export_holds_every_message_and_the_audit_trail_knows_of_it() {
    let mut flow = Flow::looking(&["one", "two", "three"]);
    flow.click_text("Select all");
    flow.click("Export 3…");
    flow.click("Browse…");
    flow.until("a file is chosen", |flow| {
        flow.is_enabled("Export 3 messages")
    });
    flow.click("Export 3 messages");
    flow.wait_for_text("3 messages written to");
    let text = std::fs::read_to_string(flow.chosen_file()).expect("the file");
    assert_eq!(text.lines().count(), 3);
    flow.press(Modifiers::COMMAND, Key::Num1);
    flow.wait_for_text("export orders.dlq");
}

#[test]
fn every_act_is_in_the_audit_trail_and_the_chain_is_intact() {
    let mut flow = Flow::looking(&["one"]);
    flow.click_text("Select all");
    flow.click("Discard 1…");
    flow.confirm("Discard 1 message");
    flow.job_done();
    flow.press(Modifiers::COMMAND, Key::Num1);
    flow.wait_for_text("discard orders.dlq");
    flow.type_into("Filter by act", "replay");
    flow.wait_for_text("No entries");
    flow.click("Clear");
    flow.wait_for_text("discard orders.dlq");
    flow.click("Verify");
    flow.wait_for_text("chain intact");
}

/// Saves a profile of that mode through the dialog, connects with it and looks.
fn with_mode(mode: &str) -> Flow {
    let mut flow = Flow::new();
    flow.kill(&["one"]);
    flow.press(Modifiers::COMMAND, Key::N);
    flow.type_into("Profile name", "shop");
    let url = flow.url.clone();
    flow.type_into("Profile URL", &url);
    flow.click(mode);
    flow.until("the profile can be saved", |flow| flow.is_enabled("Save"));
    flow.click("Save");
    flow.click("Connect to shop");
    flow.wait_for("orders.dlq");
    flow.look();
    flow
}

#[test]
fn a_read_only_profile_changes_nothing_and_says_so() {
    let mut flow = with_mode("Read-only");
    flow.click_text("Select all");
    flow.wait_for("Replay 1…");
    assert!(!flow.is_enabled("Replay 1…") && !flow.is_enabled("Discard 1…"));
    assert!(flow.is_enabled("Export 1…"), "exporting changes nothing");
    flow.wait_for("READ-ONLY");
}

#[test]
fn production_wants_the_name_typed() {
    let mut flow = with_mode("Production");
    flow.wait_for("PRODUCTION");
    flow.click_text("Select all");
    flow.click("Discard 1…");
    flow.type_into("Reason", "a test message");
    flow.wait_for("Name of the destination");
    flow.type_into("Name of the destination", "orders");
    flow.harness.run_steps(3);
    assert!(!flow.is_enabled("Discard 1 message"));
    flow.type_into("Name of the destination", "orders.dlq");
    flow.until("it can go", |flow| flow.is_enabled("Discard 1 message"));
    flow.click("Discard 1 message");
    flow.job_done();
    assert_eq!(flow.broker.depth("orders.dlq"), 0);
}

#[test]
fn a_connection_that_fails_says_what_to_do() {
    let mut flow = Flow::new();
    flow.press(Modifiers::COMMAND, Key::O);
    flow.type_into("Broker URL", "smtp://nowhere");
    flow.wait_for_text("Nothing here speaks smtp");
    flow.type_into("Broker URL", "memory:x?nonsense=1");
    flow.click("Connect");
    flow.wait_for("Try again");
    flow.click("Forget");
    flow.until("it is forgotten", |flow| {
        flow.harness.query_by_label("Try again").is_none()
    });
}

#[test]
fn the_palette_finds_destinations_and_actions() {
    let mut flow = Flow::new();
    flow.kill(&["one"]);
    flow.connect();
    flow.press(Modifiers::COMMAND, Key::K);
    flow.type_into("Find anything", "dlq");
    flow.press(Modifiers::NONE, Key::Enter);
    flow.wait_for("Look at messages");
    flow.press(Modifiers::COMMAND, Key::K);
    flow.type_into("Find anything", "audit");
    flow.press(Modifiers::NONE, Key::Enter);
    flow.wait_for("Verify");
}

#[test]
fn the_keyboard_alone_selects_and_opens() {
    let mut flow = Flow::looking(&["one", "two", "three"]);
    flow.click("Message 1");
    flow.press(Modifiers::NONE, Key::ArrowDown);
    flow.until("the second message is open", |flow| {
        let look = flow.harness.state().state.active_look();
        look.and_then(|look| look.message())
            .is_some_and(|opened| opened.row == 1)
    });
    flow.press(Modifiers::SHIFT, Key::End);
    assert_eq!(flow.harness.state().selected(), 2);
    flow.press(ALL.0, ALL.1);
    assert_eq!(flow.harness.state().selected(), 3);
    flow.press(Modifiers::NONE, Key::Escape);
    assert!(
        flow.harness
            .state()
            .state
            .active_look()
            .is_some_and(|look| look.wanted.is_none())
    );
}

#[test]
fn settled_messages_are_neither_selected_nor_counted_and_their_edits_are_over() {
    let mut flow = Flow::looking(&[r#"{"price":null}"#, r#"{"price":2}"#, r#"{"price":3}"#]);
    flow.click("Message 1");
    flow.until("the message can be edited", |flow| flow.is_enabled("Edit…"));
    flow.click("Edit…");
    flow.type_into("Body", r#"{"price":1}"#);
    flow.until("the edit can be kept", |flow| {
        flow.is_enabled("Keep the edit")
    });
    flow.click("Keep the edit");
    // The edit is not among what is replayed, so the dialog does not speak of it.
    flow.click("Message 2");
    flow.click("Replay 1…");
    flow.wait_for_text("Each message is published again");
    assert!(
        flow.harness
            .query_by_label_contains("edited by hand")
            .is_none()
    );
    flow.click("Cancel");
    flow.press(ALL.0, ALL.1);
    flow.click("Discard 3…");
    flow.confirm("Discard 3 messages");
    flow.job_done();
    flow.wait_for("Nothing is left");
    flow.wait_for_text("0 left of 3 loaded");
    flow.wait_for("Select all 0");
    let look = flow.harness.state().state.active_look().expect("a look");
    assert!(look.drafts.is_empty(), "what is gone has no edit to send");
    assert_eq!(flow.harness.state().selected(), 0);
    // The open message tells at once what was done with it.
    flow.wait_for("History 1");
    flow.click("Settled");
    flow.wait_for("Message 3");
    flow.wait_for("Select all 0");
}
