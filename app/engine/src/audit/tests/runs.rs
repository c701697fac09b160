//! Runs and their messages: read back, paged, refused as a whole.

use super::*;

#[tokio::test]
async fn a_run_is_read_back_with_every_fact_and_the_newest_outcome_of_each_message() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Replay, 1..4).await;
    record(log, &run, 1, &[Outcome::Published]).await;
    let confirmed = Step::new(1, Outcome::Confirmed)
        .detail("ack")
        .landed(r#"{"offset":7}"#);
    log.record(&run, vec![confirmed]).await.unwrap();
    record(log, &run, 1, &[Outcome::Settled]).await;
    let refused = Step::new(2, Outcome::Unroutable).detail("312 NO_ROUTE");
    log.record(&run, vec![refused]).await.unwrap();
    record(log, &run, 3, &[Outcome::Skipped]).await;
    log.finish(&run, RunState::Done).await.unwrap();

    let messages = log.messages(&run, MessageFilter::default()).await.unwrap();
    let outcomes: Vec<_> = messages.iter().map(|m| (m.seq, m.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            (1, Outcome::Settled),
            (2, Outcome::Unroutable),
            (3, Outcome::Skipped)
        ]
    );
    assert_eq!(messages[0].detail.as_deref(), Some("ack"));
    assert_eq!(messages[0].landed.as_deref(), Some(r#"{"offset":7}"#));
    assert_eq!(messages[1].detail.as_deref(), Some("312 NO_ROUTE"));
    assert_eq!(messages[1].landed, None);
    assert_eq!(messages[2].position, r#"{"tag":3}"#);

    let summary = &log.runs(10, 0).await.unwrap()[0];
    assert_eq!(summary.run, log.run(&run).await.unwrap());
    assert_eq!(summary.run.state, RunState::Done);
    assert_eq!(summary.run.why, new_run(Act::Replay).why);
    assert_eq!(summary.outcomes[&Outcome::Settled], 1);
    assert_eq!(summary.outcomes.values().sum::<u64>(), 3);
    assert_eq!(log.run_summary(&run).await.unwrap(), *summary);
    assert_eq!(log.plan(&run).await.unwrap(), r#"{"rate": 50}"#);
}

#[tokio::test]
async fn messages_are_paged_and_chosen_by_how_far_they_got() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Discard, 0..10).await;
    for seq in 0..5 {
        record(log, &run, seq, &[Outcome::Settled]).await;
    }
    let numbers = async |filter| -> Vec<u64> {
        let messages = log.messages(&run, filter).await.unwrap();
        messages.iter().map(|message| message.seq).collect()
    };
    let unknown = MessageFilter {
        stage: Some(Stage::Unknown),
        limit: Some(2),
        ..MessageFilter::default()
    };
    assert_eq!(numbers(unknown.clone()).await, [5, 6]);
    let next = MessageFilter {
        after: Some(6),
        ..unknown
    };
    assert_eq!(numbers(next).await, [7, 8]);
    let settled = MessageFilter {
        outcome: Some(Outcome::Settled),
        ..MessageFilter::default()
    };
    assert_eq!(numbers(settled).await, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_return_is_recorded_after_the_run_has_ended_and_nothing_else_is() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Replay, 0..1).await;
    record(log, &run, 0, &[Outcome::Settled]).await;
    log.finish(&run, RunState::Done).await.unwrap();
    let late = log.record(&run, vec![Step::new(0, Outcome::Failed)]).await;
    assert!(
        matches!(late, Err(AuditError::RunClosed { .. })),
        "{late:?}"
    );
    record(&bench.again(), &run, 0, &[Outcome::Returned]).await;
    let outcomes = &log.runs(1, 0).await.unwrap()[0].outcomes;
    assert_eq!(outcomes.get(&Outcome::Returned), Some(&1));
}

#[tokio::test]
async fn a_batch_with_a_wrong_message_is_refused_as_a_whole() {
    let bench = bench();
    let log = &bench.log;
    let run = started(log, Act::Replay, 0..2).await;
    let wrong = [
        vec![intent(5), intent(5)],
        vec![intent(3), intent(1)],
        vec![
            intent(6),
            Intent {
                position: "{\n}".to_owned(),
                ..intent(7)
            },
        ],
        vec![
            intent(8),
            Intent {
                position: "tag 9".to_owned(),
                ..intent(9)
            },
        ],
    ];
    for intents in wrong {
        let answer = log.intend(&run, Reach::Planned, intents).await;
        assert!(matches!(answer, Err(AuditError::Invalid(_))), "{answer:?}");
    }
    assert_eq!(
        log.messages(&run, MessageFilter::default())
            .await
            .unwrap()
            .len(),
        2
    );
    assert!(matches!(
        log.verify().await.unwrap(),
        Verified::Intact { entries: 3, .. }
    ));
    let state = log.record(&run, vec![Step::new(0, Outcome::Done)]).await;
    assert!(matches!(state, Err(AuditError::Invalid(_))));
}

#[tokio::test]
async fn a_secret_in_the_profiles_address_is_never_stored() {
    let bench = bench();
    let new = NewRun {
        profile: "amqp://guest:geheim@h:5672/v?token=geheim".to_owned(),
        ..new_run(Act::Look)
    };
    let run = bench.log.begin(new).await.unwrap();
    let stored = bench.log.run(&run).await.unwrap().profile;
    assert_eq!(stored, "amqp://guest:***@h:5672/v?token=***");
}
