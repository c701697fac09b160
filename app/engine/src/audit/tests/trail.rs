//! The audit trail: its views, filters and exports, and what tampering leaves visible.

use sha2::{Digest as _, Sha256};

use super::*;

/// Two runs of two people: a replay of three messages, one of which failed, and a purge.
async fn example(log: &AuditLog) -> (RunId, RunId) {
    let replay = started(log, Act::Replay, 1..4).await;
    record(
        log,
        &replay,
        1,
        &[Outcome::Published, Outcome::Confirmed, Outcome::Settled],
    )
    .await;
    record(
        log,
        &replay,
        2,
        &[Outcome::Published, Outcome::Confirmed, Outcome::Settled],
    )
    .await;
    let failed = Step::new(3, Outcome::Failed).detail("channel closed: 406 \"no\"");
    log.record(&replay, vec![failed]).await.unwrap();
    log.finish(&replay, RunState::Done).await.unwrap();
    let purge = NewRun {
        destination: "pay.dlq".to_owned(),
        target: None,
        who: "bob@host".to_owned(),
        why: None,
        ..new_run(Act::Purge)
    };
    let purge = log.begin(purge).await.unwrap();
    log.finish(&purge, RunState::Done).await.unwrap();
    (replay, purge)
}

#[tokio::test]
async fn the_plain_view_has_one_line_a_message_and_one_for_a_run_without_messages() {
    let bench = bench();
    let (replay, purge) = example(&bench.log).await;
    let entries = bench.log.query(AuditFilter::default()).await.unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.run.clone(), entry.seq, entry.outcome))
        .collect();
    assert_eq!(
        seen,
        [
            (purge, None, Outcome::Done),
            (replay.clone(), Some(3), Outcome::Failed),
            (replay.clone(), Some(2), Outcome::Settled),
            (replay, Some(1), Outcome::Settled),
        ]
    );
    let settled = &entries[3];
    assert_eq!(settled.who, "ada@host");
    assert_eq!(settled.position.as_deref(), Some(r#"{"tag":1}"#));
    assert_eq!(settled.sha256, Some(intent(1).sha256));
    assert_eq!(settled.target.as_deref(), Some("orders"));
}

#[tokio::test]
async fn each_filter_chooses_and_pages_follow_each_other() {
    let bench = bench();
    let log = &bench.log;
    let (replay, _) = example(log).await;
    let count = async |filter: AuditFilter| {
        let counted = log.count(filter.clone()).await.unwrap();
        assert_eq!(log.query(filter).await.unwrap().len() as u64, counted);
        counted
    };
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(count(any()).await, 4);
    assert_eq!(
        count(AuditFilter {
            who: text("bob@host"),
            ..any()
        })
        .await,
        1
    );
    assert_eq!(
        count(AuditFilter {
            act: Some(Act::Replay),
            ..any()
        })
        .await,
        3
    );
    assert_eq!(
        count(AuditFilter {
            destination: text("pay.dlq"),
            ..any()
        })
        .await,
        1
    );
    assert_eq!(
        count(AuditFilter {
            destination: text("orders"),
            ..any()
        })
        .await,
        3
    );
    assert_eq!(
        count(AuditFilter {
            run: Some(replay),
            ..any()
        })
        .await,
        3
    );
    assert_eq!(
        count(AuditFilter {
            outcome: Some(Outcome::Settled),
            ..any()
        })
        .await,
        2
    );
    assert_eq!(
        count(AuditFilter {
            sha256: Some(intent(2).sha256),
            ..any()
        })
        .await,
        1
    );
    assert_eq!(
        count(AuditFilter {
            text: text("406"),
            ..any()
        })
        .await,
        1
    );
    assert_eq!(
        count(AuditFilter {
            text: text("DB-3 IS"),
            ..any()
        })
        .await,
        3
    );
    assert_eq!(
        count(AuditFilter {
            text: text("100%"),
            ..any()
        })
        .await,
        0
    );
    assert_eq!(
        count(AuditFilter {
            until: Some(jiff::Timestamp::UNIX_EPOCH),
            ..any()
        })
        .await,
        0
    );
    assert_eq!(
        count(AuditFilter {
            since: Some(jiff::Timestamp::UNIX_EPOCH),
            ..any()
        })
        .await,
        4
    );
    let steps = AuditFilter {
        view: View::Steps,
        ..any()
    };
    assert_eq!(count(steps.clone()).await, 4 + 3 + 7);

    let page = async |offset| {
        let filter = AuditFilter {
            limit: Some(2),
            offset,
            ..any()
        };
        log.query(filter).await.unwrap()
    };
    let all = log.query(any()).await.unwrap();
    assert_eq!([page(0).await, page(2).await].concat(), all);
}

/// Where an export goes in these tests.
#[derive(Clone, Default)]
struct Sink(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn exported(log: &AuditLog, view: View) -> String {
    let sink = Sink::default();
    let filter = AuditFilter {
        view,
        ..AuditFilter::default()
    };
    log.export(filter, sink.clone()).await.unwrap();
    String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn an_exported_line_has_the_promised_fields() {
    let bench = bench();
    let (replay, _) = example(&bench.log).await;
    let text = exported(&bench.log, View::Messages).await;
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    let failed = &lines[2];
    assert_eq!(failed["who"], "ada@host");
    assert_eq!(failed["why"], "db-3 is back, says \"Eve\"");
    assert_eq!(failed["act"], "replay");
    assert_eq!(failed["destination"], "orders.dlq");
    assert_eq!(failed["position"]["tag"].to_string(), "3");
    assert_eq!(failed["sha256"], intent(3).sha256.as_str());
    assert_eq!(failed["target"], "orders");
    assert_eq!(failed["outcome"], "failed");
    assert_eq!(failed["run"], replay.as_str());
    assert_eq!(failed["detail"], "channel closed: 406 \"no\"");
    assert!(failed["time"].as_str().unwrap().ends_with('Z'));
    assert!(lines[3]["position"].is_null(), "a purge names no message");
}

#[tokio::test]
async fn a_full_export_proves_itself_without_the_database() {
    let bench = bench();
    example(&bench.log).await;
    let text = exported(&bench.log, View::Steps).await;
    let mut previous = [0_u8; 32];
    for line in text.lines() {
        let (covered, rest) = line.split_once(",\"hash\":\"").unwrap();
        let mut hasher = Sha256::new();
        hasher.update(previous);
        hasher.update(format!("{covered}}}"));
        previous = hasher.finalize().into();
        assert_eq!(entry::hex(&previous), rest[..64]);
    }
    let head = entry::hex(&previous);
    let entries = text.lines().count() as u64;
    let expected = Verified::Intact { entries, head };
    assert_eq!(bench.log.verify().await.unwrap(), expected);
}

#[tokio::test]
async fn entries_and_runs_cannot_be_changed_by_accident() {
    let bench = bench();
    example(&bench.log).await;
    for sql in [
        "UPDATE entry SET outcome = 'settled'",
        "DELETE FROM entry",
        "UPDATE run SET who = 'nobody'",
        "DELETE FROM run",
    ] {
        let error = bench.raw().execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
}

/// Changes the file behind the triggers' back and gives the first entry that shows it.
async fn tampered(sql: &str) -> u64 {
    let bench = bench();
    example(&bench.log).await;
    let raw = bench.raw();
    let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema WHERE type = 'trigger'";
    let drop: String = raw.query_row(triggers, [], |row| row.get(0)).unwrap();
    raw.execute_batch(&format!("PRAGMA foreign_keys = OFF; {drop}; {sql}"))
        .unwrap();
    match bench.log.verify().await.unwrap() {
        Verified::Broken { at, .. } => at,
        intact => panic!("{sql} was not found: {intact:?}"),
    }
}

#[tokio::test]
async fn every_kind_of_tampering_is_found_at_its_entry() {
    for (sql, at) in [
        (
            "UPDATE entry SET outcome = 'settled' WHERE outcome = 'failed'",
            11,
        ),
        ("UPDATE entry SET sha256 = 'other' WHERE id = 3", 3),
        ("UPDATE entry SET time = time + 1000 WHERE id = 5", 5),
        ("UPDATE run SET who = 'nobody' WHERE id = 1", 1),
        ("UPDATE run SET why = 'routine' WHERE id = 1", 1),
        ("UPDATE run SET plan = '{\"rate\": 51}' WHERE id = 1", 1),
        ("UPDATE run SET total = 2 WHERE id = 1", 1),
        ("DELETE FROM run WHERE id = 2", 13),
        ("DELETE FROM entry WHERE id = 6", 6),
        ("DELETE FROM entry WHERE id >= 13", 13),
        (
            "UPDATE capture SET line = replace(line, 'order', 'Order') WHERE id = 4",
            4,
        ),
        (
            "UPDATE entry SET id = id + 1000 WHERE id >= 8;
             INSERT INTO entry SELECT 8, run_id, seq, time, outcome, position, sha256, sha256_key, target,
               capture, detail, who, hash FROM entry WHERE id = 7;
             UPDATE entry SET id = id - 999 WHERE id > 1000",
            8,
        ),
    ] {
        assert_eq!(tampered(sql).await, at, "{sql}");
    }
}
