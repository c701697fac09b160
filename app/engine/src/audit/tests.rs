//! The journal as its users see it: round trips, crashes, several processes, tampering, faults.

mod crash;
mod keeping;
mod runs;
mod trail;

use super::*;

/// A journal in a folder that goes with it.
pub(super) struct Bench {
    pub(super) log: AuditLog,
    // Removed when this goes.
    _folder: tempfile::TempDir,
}

pub(super) fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(folder.path().join("dlo.db")).unwrap();
    Bench {
        log,
        _folder: folder,
    }
}

impl Bench {
    /// Another opening of the same file, as a second process would have it.
    pub(super) fn again(&self) -> AuditLog {
        AuditLog::open(self.log.path()).unwrap()
    }

    /// A connection past all of our code, for looking and for tampering.
    pub(super) fn raw(&self) -> Connection {
        Connection::open(self.log.path()).unwrap()
    }
}

pub(super) fn new_run(act: Act) -> NewRun {
    NewRun {
        act,
        profile: "orders-prod".to_owned(),
        destination: "orders.dlq".to_owned(),
        target: Some("orders".to_owned()),
        who: "ada@host".to_owned(),
        why: Some("db-3 is back, says \"Eve\"".to_owned()),
        plan: r#"{"rate": 50}"#.to_owned(),
        total: 3,
    }
}

pub(super) fn intent(seq: u64) -> Intent {
    Intent {
        seq,
        position: format!(r#"{{"tag":{seq}}}"#),
        sha256: format!("{seq:064x}"),
        target: Some("orders".to_owned()),
        capture: Some(capture_line(seq)),
    }
}

pub(super) fn capture_line(seq: u64) -> String {
    format!(r#"{{"dlo":1,"destination":"orders.dlq","body":{{"text":"order {seq}\né"}}}}"#)
}

/// A run with these messages intended and begun.
pub(super) async fn started(log: &AuditLog, act: Act, numbers: std::ops::Range<u64>) -> RunId {
    let run = log.begin(new_run(act)).await.unwrap();
    let intents = numbers.map(intent).collect();
    log.intend(&run, Reach::Started, intents).await.unwrap();
    run
}

pub(super) async fn record(log: &AuditLog, run: &RunId, seq: u64, outcomes: &[Outcome]) {
    let steps = outcomes.iter().map(|outcome| Step::new(seq, *outcome));
    log.record(run, steps.collect()).await.unwrap();
}
