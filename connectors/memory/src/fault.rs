//! Faults on demand: everything that goes wrong with real brokers and cannot be waited for in a test.

use std::time::Duration;

use dlo_core::ErrorKind;

/// The calls of a session at which something can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Listing and describing destinations, costs and routes.
    List,
    /// Opening a look, and each page of it.
    Look,
    Fetch,
    Publish,
    Settle,
    Purge,
    /// Every one of these.
    Any,
}

impl Step {
    fn covers(self, step: Self) -> bool {
        self == Self::Any || self == step
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message is stored at once, but confirmed only after this time.
    ConfirmedLate(Duration),
    /// A message is not stored and no answer comes: the outcome is unknown.
    PublishLost,
    /// A message is stored, but the answer is lost: the outcome is unknown.
    ConfirmLost,
    /// A message is refused and surely not stored.
    PublishFails(ErrorKind),
    /// A message that is being settled has just gone back to its queue.
    LockLost,
    /// A message is settled, but the answer is lost.
    SettleUnknown,
    /// The connection breaks in the middle of this call; what was held is back in its queue.
    ConnectionLost(Step),
    /// A message is stored and confirmed, and before the next call the connection is gone: the original cannot be settled.
    CrashAfterConfirm,
    /// The call takes this much longer.
    Slow(Step, Duration),
    PermissionDenied(Step),
    /// The broker asks to slow down.
    Throttled(Step),
}

impl Fault {
    fn concerns(self, step: Step) -> bool {
        match self {
            Self::ConfirmedLate(_)
            | Self::PublishLost
            | Self::ConfirmLost
            | Self::PublishFails(_)
            | Self::CrashAfterConfirm => step == Step::Publish,
            Self::LockLost | Self::SettleUnknown => step == Step::Settle,
            Self::ConnectionLost(at)
            | Self::Slow(at, _)
            | Self::PermissionDenied(at)
            | Self::Throttled(at) => at.covers(step),
        }
    }
}

/// A fault with its place: where, when first, and how often. Publishing and settling count single messages, all other
/// steps count calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    pub fault: Fault,
    /// Only for this destination.
    pub on: Option<String>,
    /// Lets so many pass before the first.
    pub skip: u64,
    /// Strikes so often, then never again.
    pub times: u64,
}

impl Injection {
    /// Strikes once, at the first opportunity.
    pub fn once(fault: Fault) -> Self {
        Self {
            fault,
            on: None,
            skip: 0,
            times: 1,
        }
    }

    /// Strikes every time.
    pub fn always(fault: Fault) -> Self {
        Self {
            times: u64::MAX,
            ..Self::once(fault)
        }
    }

    pub fn on(mut self, destination: impl Into<String>) -> Self {
        self.on = Some(destination.into());
        self
    }

    pub fn after(mut self, passes: u64) -> Self {
        self.skip = passes;
        self
    }

    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
}

/// The faults that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Injection>);

impl Faults {
    pub fn add(&mut self, injection: Injection) {
        self.0.push(injection);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The faults that strike this call, in the order in which they were injected. Each is counted.
    pub fn strike(&mut self, step: Step, destination: &str) -> Vec<Fault> {
        let mut struck = Vec::new();
        for injection in &mut self.0 {
            let here = injection.on.as_deref().is_none_or(|on| on == destination);
            if !here || !injection.fault.concerns(step) {
                continue;
            }
            if injection.skip > 0 {
                injection.skip -= 1;
            } else if injection.times > 0 {
                injection.times -= 1;
                struck.push(injection.fault);
            }
        }
        self.0.retain(|injection| injection.times > 0);
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_injection_skips_strikes_and_ends() {
        let mut faults = Faults::default();
        faults.add(
            Injection::once(Fault::PublishLost)
                .on("orders")
                .after(1)
                .times(2),
        );
        let struck: Vec<_> = (0..5)
            .map(|_| faults.strike(Step::Publish, "orders").len())
            .collect();
        assert_eq!(struck, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_fault_strikes_only_its_destination_and_step() {
        let mut faults = Faults::default();
        faults.add(Injection::always(Fault::PermissionDenied(Step::Purge)).on("orders"));
        assert!(faults.strike(Step::Purge, "other").is_empty());
        assert!(faults.strike(Step::Publish, "orders").is_empty());
        assert_eq!(faults.strike(Step::Purge, "orders").len(), 1);
    }
}
