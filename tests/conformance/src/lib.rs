//! The conformance suite: what every connector promises, as functions that fail when the promise is broken.
//!
//! Each promise in the docs of `dlo-core` is one function in [`checks`], chosen by the [`dlo_core::Capability`] that the
//! destination itself reports. A connector's tests implement a [`Fixture`], call [`run_all`], print the [`Report`] and
//! fail unless [`Report::is_clean`]. The report also says which promises were not applicable and which capability is
//! missing for them, so that nothing passes silently.
//!
//! # How to write a fixture
//! A fixture is the *ordinary client* beside the session under test: it makes destinations, fills them and consumes from
//! them with the broker's plain client, never through [`dlo_core::Session`]; otherwise a bug would be checked against
//! itself.
//!
//! - [`Fixture::flavours`] names the kinds of destinations, for example `classic`, `quorum`, `stream`. The whole suite
//!   runs once for each.
//! - [`Fixture::create`] makes an empty destination of that flavour under exactly the name that is given. Give it room: no
//!   delivery limit under 20, no live consumer, no time-to-live. It need not be deleted afterwards unless
//!   [`Fixture::delete`] does so.
//! - [`Fixture::count`] and [`Fixture::drain`] may wait until the broker's numbers have settled. `count` counts what an
//!   ordinary consumer could get at this moment: messages that a look holds do not count. `drain` takes everything as
//!   that consumer would (Kafka: reads from the beginning to the end) and gives it in order.
//! - [`Fixture::rich`] gives messages that use all the broker can carry: every header type, each property. They are
//!   published and looked at, and must come back the same. Properties that the broker adds are ignored.
//! - The optional functions set up a situation: a look that would do harm, an address nobody is bound to, a log with gaps.
//!   Where they give `None` the promise is reported as not applicable.
//!
//! ```no_run
//! # async fn doc(fixture: &dyn dlo_conformance::Fixture) {
//! let report = dlo_conformance::run_all(fixture).await;
//! println!("{report}");
//! assert!(report.is_clean(), "{report}");
//! # }
//! ```
//!
//! To run some checks only, use [`run_matching`] with a part of a check's name.

pub mod checks;
mod fixture;
mod report;
mod scene;
mod verdict;

pub use fixture::{Fixture, Gaps, Linked, Staged};
pub use report::{Outcome, Report, Run};
pub use scene::Scene;
pub use verdict::{Miss, Verdict};

use std::time::Duration;

use checks::Check;

/// How long one check may take; a hang is a failure like any other.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs every check on every flavour.
pub async fn run_all(fixture: &dyn Fixture) -> Report {
    run_matching(fixture, "").await
}

/// Runs the checks whose name contains `part` on every flavour.
pub async fn run_matching(fixture: &dyn Fixture, part: &str) -> Report {
    let mut report = Report::new(fixture.name());
    for flavour in fixture.flavours() {
        for check in checks::all()
            .iter()
            .filter(|check| check.name.contains(part))
        {
            let outcome = run_one(fixture, flavour, check).await;
            report.add(flavour, check.name, outcome);
        }
    }
    report
}

/// Runs one check in a scene of its own: a fresh session and fresh destinations.
async fn run_one(fixture: &dyn Fixture, flavour: &'static str, check: &Check) -> Outcome {
    let scene = match Scene::open(fixture, flavour).await {
        Ok(scene) => scene,
        Err(miss) => return Outcome::from(Err(miss)),
    };
    let verdict = tokio::time::timeout(PATIENCE, (check.run)(&scene)).await;
    let ended = tokio::time::timeout(PATIENCE, scene.close()).await;
    match (verdict, ended) {
        (Err(_), _) => Outcome::Broken(format!("took longer than {} s", PATIENCE.as_secs())),
        (Ok(Ok(())), Err(_)) => Outcome::Broken("closing the session hung".to_owned()),
        (Ok(verdict), _) => Outcome::from(verdict),
    }
}
