//! The memory broker keeps every promise.

mod memory;

use memory::MemoryFixture;

#[tokio::test(start_paused = true)]
async fn the_memory_broker_keeps_every_promise() {
    let fixture = MemoryFixture::new(Box::new(|session, _| session));
    let report = dlo_conformance::run_all(&fixture).await;
    println!("{report}");
    assert!(report.is_clean(), "{report}");
    // Every check must have run on some flavour: one that never applies proves nothing.
    for check in dlo_conformance::checks::all() {
        let held = report
            .runs
            .iter()
            .any(|run| run.check == check.name && run.outcome == dlo_conformance::Outcome::Held);
        assert!(held, "{check:?} never applied");
    }
}
