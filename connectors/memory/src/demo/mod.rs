//! The demo's broker: the story of an alarm at 03:10, with live traffic.

use std::fmt::Debug;

use dlo_core::Millis;

use crate::{Broker, state::State};

/// Somebody who uses the broker as time passes: a producer, a consumer. Acts whenever the broker is accessed, for all the
/// time that has passed since.
pub(crate) trait Actor: Debug + Send {
    /// When it wants to act next.
    fn due(&self) -> Millis;

    /// Does everything that is due by now.
    fn act(&mut self, state: &mut State, now: Millis);
}

/// Whether the demo's producer and consumer run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    #[default]
    On,
    Off,
}

/// A fresh broker with the demo's story.
pub fn broker(traffic: Traffic) -> Broker {
    let broker = Broker::new();
    let _ = traffic;
    broker
}
