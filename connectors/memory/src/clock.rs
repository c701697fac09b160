//! The broker's clock. It follows tokio's, so that a test with paused time can let a lock run out without waiting.

use std::time::Duration;

use dlo_core::Millis;
use tokio::time::Instant;

/// Wall-clock milliseconds that pass as tokio's time passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Millis,
    start: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            base: Millis::now(),
            start: Instant::now(),
        }
    }

    pub fn now(&self) -> Millis {
        let passed = Instant::now().saturating_duration_since(self.start);
        self.base.plus(millis(passed))
    }

    /// How long until that time; nothing when it has passed.
    pub fn until(&self, time: Millis) -> Duration {
        let left = time.since(self.now()).max(0);
        Duration::from_millis(u64::try_from(left).unwrap_or_default())
    }
}

/// A duration in milliseconds, at most the largest number there is.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
