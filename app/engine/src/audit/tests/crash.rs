//! A writer that is killed in the middle, and another process that holds the lock.

use std::process::{Command, Stdio};

use super::*;

/// The variable that turns a test into the child process of another.
const CHILD: &str = "DLO_JOURNAL_TEST_CHILD";

/// Runs one test of this binary again, as a process of its own, on this journal.
fn child(test: &str, bench: &Bench) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, bench.log.path())
        .stdout(Stdio::piped());
    command
}

fn as_child() -> Option<AuditLog> {
    let path = std::env::var_os(CHILD)?;
    Some(AuditLog::open(std::path::PathBuf::from(path)).unwrap())
}

/// Waits until the child has said this.
fn wait_for(child: &mut std::process::Child, word: &str) -> String {
    use std::io::BufRead as _;
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .find(|line| line.contains(word))
        .unwrap()
}

#[tokio::test]
async fn killed_half_way() {
    if let Some(log) = as_child() {
        return die_half_way(&log).await;
    }
    let bench = bench();
    let mut child = child("audit::tests::crash::killed_half_way", &bench)
        .spawn()
        .unwrap();
    let said = wait_for(&mut child, "ready");
    let run: RunId = said.rsplit(' ').next().unwrap().parse().unwrap();

    // While it lives nobody else may touch its run.
    assert_eq!(bench.log.open_runs().await.unwrap(), []);
    let answer = bench.log.adopt(&run, "eve@host").await;
    assert!(
        matches!(answer, Err(AuditError::RunClosed { .. })),
        "{answer:?}"
    );

    child.kill().unwrap();
    child.wait().unwrap();
    let open = bench.log.open_runs().await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].run.run, run);
    assert_eq!(open[0].run.owner.pid, child.id());
    assert!(bench.log.run_summary(&run).await.unwrap().crashed);
    assert_eq!(
        (open[0].not_started, open[0].done, open[0].unknown),
        (2, 2, 3)
    );
    close_by_hand(&bench.log, &run).await;
}

async fn die_half_way(log: &AuditLog) {
    let run = started(log, Act::Replay, 0..5).await;
    let later = vec![intent(5), intent(6)];
    log.intend(&run, Reach::Planned, later).await.unwrap();
    record(
        log,
        &run,
        0,
        &[Outcome::Published, Outcome::Confirmed, Outcome::Settled],
    )
    .await;
    record(log, &run, 1, &[Outcome::Unroutable]).await;
    record(log, &run, 2, &[Outcome::Published]).await;
    record(log, &run, 3, &[Outcome::Published, Outcome::Confirmed]).await;
    println!("ready {run}");
    std::future::pending::<()>().await;
}

async fn close_by_hand(log: &AuditLog, run: &RunId) {
    let decided = log
        .resolve_unknown(run, 0, Decision::Happened, "eve@host", "")
        .await;
    assert!(
        matches!(decided, Err(AuditError::Invalid(_))),
        "{decided:?}"
    );
    for (seq, decision) in [
        (2, Decision::Happened),
        (3, Decision::DidNotHappen),
        (4, Decision::LeaveIt),
    ] {
        log.resolve_unknown(run, seq, decision, "eve@host", "looked at orders")
            .await
            .unwrap();
    }
    let early = log.finish(run, RunState::Crashed).await;
    assert!(
        matches!(early, Err(AuditError::RunClosed { .. })),
        "not adopted yet"
    );
    log.adopt(run, "eve@host").await.unwrap();
    log.finish(run, RunState::Crashed).await.unwrap();
    let outcomes = log.run_summary(run).await.unwrap().outcomes;
    let expected = [
        (Outcome::Planned, 2),
        (Outcome::Settled, 2),
        (Outcome::Failed, 1),
        (Outcome::Unroutable, 1),
        (Outcome::Skipped, 1),
    ];
    assert_eq!(outcomes, Outcomes::from(expected));
    assert_eq!(log.open_runs().await.unwrap(), []);
    let by_eve = AuditFilter {
        who: Some("eve@host".to_owned()),
        view: View::Steps,
        ..AuditFilter::default()
    };
    assert_eq!(
        log.count(by_eve).await.unwrap(),
        4,
        "three decisions, one adoption"
    );
    assert!(matches!(
        log.verify().await.unwrap(),
        Verified::Intact { .. }
    ));
}

#[tokio::test]
async fn killed_in_the_middle_of_writing() {
    if let Some(log) = as_child() {
        let run = log.begin(new_run(Act::Replay)).await.unwrap();
        println!("ready");
        for first in (0..).step_by(50) {
            write_batch(&log, &run, first).await;
        }
    }
    let bench = bench();
    let mut child = child(
        "audit::tests::crash::killed_in_the_middle_of_writing",
        &bench,
    )
    .spawn()
    .unwrap();
    wait_for(&mut child, "ready");
    while bench.log.count(AuditFilter::default()).await.unwrap() < 3_000 {
        tokio::task::yield_now().await;
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let verified = bench.log.verify().await.unwrap();
    assert!(matches!(verified, Verified::Intact { .. }), "{verified:?}");
    let open = bench.log.open_runs().await.unwrap();
    assert_eq!(open.len(), 1);
    let whole = (open[0].done + open[0].unknown) % 50;
    assert_eq!(whole, 0, "batches are there as a whole or not at all");
    // The journal goes on after the crash of another process.
    write_much(&bench.log).await;
}

#[tokio::test]
async fn a_write_waits_for_the_transaction_of_another_process() {
    let bench = bench();
    let other = bench.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut begin = tokio::spawn({
        let log = bench.log.clone();
        async move { log.begin(new_run(Act::Replay)).await }
    });
    let waits = tokio::time::timeout(std::time::Duration::from_millis(50), &mut begin).await;
    assert!(waits.is_err(), "nobody else may write meanwhile");
    assert_eq!(bench.log.runs(1, 0).await.unwrap(), [], "reading goes on");
    other.execute_batch("COMMIT").unwrap();
    begin.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_journal_that_was_closed_without_finishing_leaves_its_run_open_for_others() {
    let bench = bench();
    let second = bench.again();
    let run = started(&second, Act::Discard, 0..2).await;
    assert_eq!(bench.log.open_runs().await.unwrap(), []);
    drop(second);
    let open = bench.log.open_runs().await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].run.run.clone(), open[0].unknown), (run, 2));
}

const WRITERS_MESSAGES: u64 = 2_000;

#[tokio::test]
async fn two_processes_write_at_once() {
    if let Some(log) = as_child() {
        return write_much(&log).await;
    }
    let bench = bench();
    let mut child = child("audit::tests::crash::two_processes_write_at_once", &bench)
        .spawn()
        .unwrap();
    write_much(&bench.log).await;
    let output = child.wait().unwrap();
    assert!(output.success());
    let runs = bench.log.runs(10, 0).await.unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(
            run.outcomes,
            Outcomes::from([(Outcome::Settled, WRITERS_MESSAGES)])
        );
    }
    let verified = bench.log.verify().await.unwrap();
    let expected = 2 * (2 + 2 * WRITERS_MESSAGES);
    assert!(
        matches!(verified, Verified::Intact { entries, .. } if entries == expected),
        "{verified:?}"
    );
}

async fn write_much(log: &AuditLog) {
    let run = log.begin(new_run(Act::Replay)).await.unwrap();
    for first in (0..WRITERS_MESSAGES).step_by(50) {
        write_batch(log, &run, first).await;
    }
    log.finish(&run, RunState::Done).await.unwrap();
}

async fn write_batch(log: &AuditLog, run: &RunId, first: u64) {
    let batch = first..first + 50;
    let intents = batch.clone().map(intent).collect();
    log.intend(run, Reach::Started, intents).await.unwrap();
    let steps = batch.map(|seq| Step::new(seq, Outcome::Settled)).collect();
    log.record(run, steps).await.unwrap();
}

#[test]
fn many_openings_of_an_empty_file_meet_no_half_made_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/dlo.db");
    let open = || AuditLog::open(&path).map(|log| log.owner().id.clone());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        let owners: std::collections::HashSet<String> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap().unwrap())
            .collect();
        assert_eq!(owners.len(), 8);
    });
}
