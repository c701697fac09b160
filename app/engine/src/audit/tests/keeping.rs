//! What is kept beside the trail: saved copies, resolved positions, samples, notes and schemas.

use jiff::{Timestamp, ToSpan as _};

use super::*;

#[tokio::test]
async fn a_saved_copy_comes_back_exactly_and_is_marked_once_restored() {
    let bench = bench();
    let log = &bench.log;
    let discard = started(log, Act::Discard, 0..3).await;
    started(log, Act::Replay, 0..2).await;
    let discarded = CaptureFilter {
        acts: vec![Act::Discard],
        ..CaptureFilter::default()
    };
    let saved = log.captures(discarded.clone()).await.unwrap();
    assert_eq!(
        saved.iter().map(|one| one.seq).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(saved[1].run, discard);
    assert_eq!(saved[1].bytes, capture_line(1).len() as u64);
    assert_eq!(log.capture(saved[1].id).await.unwrap(), capture_line(1));
    let lines = log
        .capture_lines(vec![saved[2].id, saved[0].id])
        .await
        .unwrap();
    assert_eq!(lines, [capture_line(2), capture_line(0)]);

    let restore = log.begin(new_run(Act::Restore)).await.unwrap();
    log.mark_restored(vec![saved[0].id], &restore)
        .await
        .unwrap();
    let left = CaptureFilter {
        restored: Restored::No,
        ..discarded.clone()
    };
    assert_eq!(log.count_captures(left).await.unwrap(), 2);
    let restored = CaptureFilter {
        restored: Restored::Yes,
        ..discarded
    };
    let restored = log.captures(restored).await.unwrap();
    assert_eq!(restored[0].restored_by, Some(restore.clone()));
    assert!(restored[0].restored_at.is_some());

    let missing = log.mark_restored(vec![saved[1].id, 999], &restore).await;
    assert!(matches!(missing, Err(AuditError::NotFound { .. })));
    let text = CaptureFilter {
        text: Some("order 2".to_owned()),
        ..CaptureFilter::default()
    };
    assert_eq!(log.count_captures(text).await.unwrap(), 1);
}

#[tokio::test]
async fn old_copies_are_thrown_away_and_the_trail_stays_whole() {
    let bench = bench();
    let log = &bench.log;
    let ended = started(log, Act::Replay, 0..3).await;
    log.finish(&ended, RunState::Done).await.unwrap();
    let open = started(log, Act::Replay, 0..2).await;
    let all = CaptureFilter::default;
    assert_eq!(log.prune_captures(all()).await.unwrap(), 3);
    let left = log.captures(all()).await.unwrap();
    assert!(left.iter().all(|one| one.run == open));
    assert_eq!(left.len(), 2);
    assert!(matches!(
        log.verify().await.unwrap(),
        Verified::Intact { .. }
    ));
    let messages = log
        .messages(&ended, MessageFilter::default())
        .await
        .unwrap();
    assert_eq!(messages[0].capture, None);
}

#[tokio::test]
async fn resolved_positions_are_known_per_cluster_and_destination() {
    let bench = bench();
    let log = &bench.log;
    let run = log.begin(new_run(Act::Resolve)).await.unwrap();
    let at = |offset: u64| format!(r#"{{"partition": 0, "offset": {offset}}}"#);
    let new = log
        .resolve("k", "t", vec![at(1), at(2)], &run)
        .await
        .unwrap();
    assert_eq!(new, 2);
    let again = log
        .resolve("k", "t", vec![at(2), at(3)], &run)
        .await
        .unwrap();
    assert_eq!(again, 1);
    let other_spelling = r#"{"offset":2,"partition":0}"#.to_owned();
    let by = log
        .resolved_by("k", "t", vec![other_spelling, at(9)])
        .await
        .unwrap();
    assert_eq!(by, [Some(run), None]);
    assert_eq!(
        log.resolved_by("k", "u", vec![at(1)]).await.unwrap(),
        [None]
    );
    assert_eq!(
        log.unresolve("k", "t", vec![at(1), at(9)]).await.unwrap(),
        1
    );
    let counts = log.resolved_counts("k").await.unwrap();
    assert_eq!(counts, [("t".to_owned(), 2)].into());
    let left = log.resolved_positions("k", "t").await.unwrap();
    assert_eq!(left.len(), 2);
    assert!(left.contains(&canonical_position(&at(3)).unwrap()));
}

#[tokio::test]
async fn a_replay_is_found_by_its_message_and_by_the_id_it_carries() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Replay, 1..3).await;
    record(log, &run, 1, &[Outcome::Confirmed, Outcome::Settled]).await;
    let of = |seq: u64, position: &str| Fingerprint {
        sha256: intent(seq).sha256,
        profile: "orders-prod".to_owned(),
        destination: "orders.dlq".to_owned(),
        position: position.to_owned(),
    };
    let asked = vec![of(1, r#"{ "tag": 1 }"#), of(1, r#"{"tag":8}"#), of(7, "{}")];
    let found = log.earlier_replays(asked).await.unwrap();
    assert_eq!(found[0].len(), 1);
    assert_eq!(found[0][0].outcome, Outcome::Settled);
    assert!(found[0][0].same_position);
    assert!(!found[1][0].same_position);
    assert_eq!(found[2], []);

    let ids = vec![run.replay_id(2), "theirs-1".to_owned(), run.replay_id(99)];
    let origins = log.replay_origins(ids).await.unwrap();
    assert_eq!(origins.len(), 1);
    assert_eq!((origins[0].run.clone(), origins[0].seq), (run, 2));
    assert_eq!(origins[0].sha256, intent(2).sha256);
}

#[tokio::test]
async fn samples_are_thinned_with_age() {
    let bench = bench();
    let log = &bench.log;
    let now: Timestamp = "2026-11-30T03:10:00Z".parse().unwrap();
    let at = |minutes_ago: i64| Sample {
        time: now - minutes_ago.minutes(),
        depth: Some(7),
        depth_certainty: Some("exact".to_owned()),
        oldest: None,
        oldest_certainty: None,
    };
    let day = 24 * 60;
    let ages = [1, 2, 3 * day, 3 * day + 1, 3 * day + 2, 100 * day];
    let samples = ages.map(|age| ("q".to_owned(), at(age))).to_vec();
    log.add_samples("p", samples).await.unwrap();
    let gone = log.prune_samples(now, Retention::default()).await.unwrap();
    assert_eq!(gone, 3, "one too old, two of the same hour");
    let left = log.samples("p", "q", Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(left, [at(3 * day + 2), at(2), at(1)]);
    assert_eq!(
        log.samples("p", "q", now - 5.minutes())
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn notes_choices_and_schemas_are_kept_replaced_and_forgotten() {
    let bench = bench();
    let log = &bench.log;
    let note = Note {
        owner: Some("Orders team".to_owned()),
        runbook: Some("https://runbook.example/orders".to_owned()),
        notes: None,
    };
    assert_eq!(log.note("p", "q").await.unwrap(), Note::default());
    log.set_note("p", "q", note.clone(), "ada").await.unwrap();
    assert_eq!(log.note("p", "q").await.unwrap(), note);
    assert_eq!(log.notes("p").await.unwrap(), [("q".to_owned(), note)]);

    let kind = Choice::Decoding;
    for value in [Some("1".to_owned()), Some("2".to_owned()), None] {
        log.set_choice(kind, "p", "q", value.clone()).await.unwrap();
        assert_eq!(log.choice(kind, "p", "q").await.unwrap(), value);
        let mapping = log.choice(Choice::HeaderMapping, "p", "q").await.unwrap();
        assert_eq!(mapping, None);
    }
    assert_eq!(log.choices(kind, "p").await.unwrap(), []);

    log.cache_schema("r/1", vec![0, 255]).await.unwrap();
    assert_eq!(log.cached_schema("r/1").await.unwrap(), Some(vec![0, 255]));
    let later = Timestamp::now() + 1.hour();
    assert_eq!(log.prune_schemas(later).await.unwrap(), 1);
    assert_eq!(log.cached_schema("r/1").await.unwrap(), None);
}

#[tokio::test]
async fn a_journal_that_cannot_write_says_so_and_recovers() {
    let bench = bench();
    let log = &bench.log;
    let run = log.begin(new_run(Act::Replay)).await.unwrap();
    let try_to_write = async || {
        // More than the free pages that the file may still have.
        let intents = (0..200).map(intent).collect();
        log.intend(&run, Reach::Started, intents).await
    };
    log.inject(Some(Fault::ReadOnly)).await.unwrap();
    let refused = try_to_write().await;
    assert!(
        matches!(refused, Err(AuditError::WriteFailed { .. })),
        "{refused:?}"
    );
    log.inject(Some(Fault::DiskFull)).await.unwrap();
    let refused = try_to_write().await;
    assert!(matches!(refused, Err(AuditError::DiskFull)), "{refused:?}");
    log.inject(None).await.unwrap();
    try_to_write().await.unwrap();
    assert!(matches!(
        log.verify().await.unwrap(),
        Verified::Intact { entries: 201, .. }
    ));
}

#[tokio::test]
async fn one_refused_entry_leaves_the_others_of_its_transaction_alone() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Replay, 0..1).await;
    let good = (1..40).map(|seq| log.intend(&run, Reach::Started, vec![intent(seq)]));
    let bad = log.intend(&run, Reach::Started, vec![intent(0)]);
    let (good, bad) = tokio::join!(futures::future::join_all(good), bad);
    assert!(good.iter().all(Result::is_ok));
    assert!(bad.is_err());
    assert!(matches!(
        log.verify().await.unwrap(),
        Verified::Intact { entries: 41, .. }
    ));
}

#[test]
fn a_place_that_cannot_hold_a_journal_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(
        &file,
        "no database, and quite long enough for one: ".repeat(100),
    )
    .unwrap();
    let error = AuditLog::open(file.join("dlo.db")).unwrap_err();
    assert!(matches!(error, AuditError::Unwritable { .. }), "{error}");
    assert!(error.to_string().contains("DLO_HOME"));
    let error = AuditLog::open(&file).unwrap_err();
    assert!(matches!(error, AuditError::NotAJournal { .. }), "{error}");
    let error = AuditLog::open(folder.path()).unwrap_err();
    assert!(matches!(error, AuditError::Unwritable { .. }), "{error}");
}
