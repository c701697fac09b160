//! The broker's version, and the rules of looking that follow from it.
//!
//! Separate because three rules of three versions differ (3.10, 4.0 and 4.3), and each was measured on the real
//! broker; see <https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling>.

use std::fmt;

/// A version as far as the rules need it. Ordered as versions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// Reads `4.3.6`, `3.10.8-rc.1`, `4.0.5+debian`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(['.', '-', '+']);
        Some(Self {
            major: parts.next()?.parse().ok()?,
            minor: parts.next()?.parse().ok()?,
        })
    }

    /// How messages go back without changing their order.
    pub fn give_back(self) -> GiveBack {
        if self >= (Self { major: 4, minor: 3 }) {
            GiveBack::Nack
        } else {
            GiveBack::CloseChannel
        }
    }

    /// The delivery limit of a quorum queue that sets none: 20 since 4.0.
    pub fn default_delivery_limit(self) -> Option<u64> {
        (self.major >= 4).then_some(20)
    }

    /// Whether dead-lettering carries the delivery count into the next queue (4.3: yes; 4.0: no).
    pub fn carries_delivery_count(self) -> bool {
        self.give_back() == GiveBack::Nack
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// How held messages go back to a queue in their old order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveBack {
    /// 4.3 and later: cancel the consumer, then nack all in order. Not counted as a failed delivery.
    Nack,
    /// Before 4.3: close the channel. Counted as a delivery on quorum queues; a nack would be counted too, and
    /// would move or scramble the messages.
    CloseChannel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_change_at_four_and_at_four_three() {
        let check = |text: &str, give_back, limit| {
            let version = Version::parse(text).expect(text);
            assert_eq!(version.give_back(), give_back, "{text}");
            assert_eq!(version.default_delivery_limit(), limit, "{text}");
        };
        check("3.10.8", GiveBack::CloseChannel, None);
        check("3.13.7", GiveBack::CloseChannel, None);
        check("4.0.5", GiveBack::CloseChannel, Some(20));
        check("4.2.9+1", GiveBack::CloseChannel, Some(20));
        check("4.3.0-rc.1", GiveBack::Nack, Some(20));
        check("5.0.0", GiveBack::Nack, Some(20));
        assert_eq!(Version::parse("four"), None);
    }
}
