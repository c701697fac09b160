//! What is known of one queue, and the capability that follows.
//!
//! Separate because it joins three sources of different certainty: AMQP's passive declare (exact, but only two counts),
//! the management API (much, but late), and what earlier looks of this session saw.

use dlo_core::{Browse, Capability};

use crate::{management::QueueInfo, version::Version};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QueueKind {
    Classic,
    Quorum,
    Stream,
    /// Without the management API nobody says. Treated as a quorum queue, which is the strictest.
    #[default]
    Unknown,
}

/// How often a message may come back before the broker acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Unlimited,
    At(u64),
    /// Nobody says; the version's default is assumed.
    Assumed(u64),
}

impl Limit {
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::At(limit) | Self::Assumed(limit) => Some(limit),
        }
    }
}

/// One queue's facts at one moment.
#[derive(Clone, Debug)]
pub(crate) struct QueueFacts {
    pub name: String,
    pub kind: QueueKind,
    pub version: Option<Version>,
    /// From the passive declare: exact at that moment.
    pub ready: u64,
    pub consumers: u64,
    pub limit: Limit,
    /// What the management API said, if it could be asked.
    pub info: Option<QueueInfo>,
    /// Whether the management API could be asked for the sources of dead letters.
    pub sources_known: bool,
    /// Delivery limits of the quorum queues whose dead letters come here; `None` is unlimited.
    pub source_limits: Vec<Option<u64>>,
    /// Whether the queue holds dead letters by configuration or name.
    pub is_dead: bool,
    /// Whether the user may publish to a queue, which a rescue needs; asked only where one may be needed.
    pub can_rescue: bool,
    /// How often its messages have been returned already, as far as this session saw.
    pub returns_seen: Option<u64>,
}

impl QueueFacts {
    pub fn dead_letter_exchange(&self) -> Option<String> {
        self.info.as_ref()?.text_setting("dead-letter-exchange")
    }

    pub fn single_active_consumer(&self) -> bool {
        self.info
            .as_ref()
            .and_then(|info| info.setting("single-active-consumer"))
            .and_then(serde_json::Value::as_bool)
            .unwrap_or_default()
    }

    /// Whether a message may be in the queue that dies on any return, because it died of a limit elsewhere.
    pub fn carries_counts(&self) -> bool {
        matches!(self.kind, QueueKind::Quorum | QueueKind::Unknown)
            && self.limit.value().is_some()
            && self.version.is_none_or(Version::carries_delivery_count)
    }

    /// Whether a known source makes such messages: it lets them live at least as long as this queue does.
    pub fn known_deadly_source(&self) -> bool {
        let Some(limit) = self.limit.value() else {
            return false;
        };
        self.carries_counts()
            && self
                .source_limits
                .iter()
                .any(|source| source.is_some_and(|source| source + 1 >= limit))
    }

    /// Bytes of one message on average; `None` when nobody knows.
    pub fn average_bytes(&self) -> Option<u64> {
        let info = self.info.as_ref()?;
        let messages = info.messages.filter(|messages| *messages > 0)?;
        info.bytes.map(|bytes| bytes / messages)
    }

    pub fn label(&self) -> &'static str {
        match self.kind {
            QueueKind::Classic => "classic queue",
            QueueKind::Quorum => "quorum queue",
            QueueKind::Stream => "stream",
            QueueKind::Unknown => "queue",
        }
    }
}

/// The kind that the management API names.
pub(crate) fn kind_of(info: Option<&QueueInfo>) -> QueueKind {
    match info.and_then(|info| info.kind.as_deref()) {
        Some("classic") => QueueKind::Classic,
        Some("quorum") => QueueKind::Quorum,
        Some("stream") => QueueKind::Stream,
        _ => QueueKind::Unknown,
    }
}

/// The delivery limit in force. Where both an argument and a policy set one, the lower wins; what the broker itself says
/// lags by seconds, so it can only lower it further.
pub(crate) fn limit_of(
    kind: QueueKind,
    info: Option<&QueueInfo>,
    version: Option<Version>,
) -> Limit {
    let default = version.map_or(Some(20), Version::default_delivery_limit);
    match (kind, info) {
        (QueueKind::Classic | QueueKind::Stream, _) => Limit::Unlimited,
        (QueueKind::Quorum, Some(info)) => quorum_limit(info, default),
        _ => default.map_or(Limit::Unlimited, Limit::Assumed),
    }
}

fn quorum_limit(info: &QueueInfo, default: Option<u64>) -> Limit {
    let (set, said) = (info.lowest_limit(), info.delivery_limit);
    match (set, said) {
        (Some(Some(set)), Some(Some(said))) => Limit::At(set.min(said)),
        (Some(Some(set)), _) => Limit::At(set),
        (_, Some(Some(said))) => Limit::At(said),
        // An operator policy is merged away from what is shown, and a lower limit in it wins over "unlimited".
        (Some(None), _) if info.operator_policy.is_some() => {
            default.map_or(Limit::Unlimited, Limit::Assumed)
        }
        (Some(None), _) | (None, Some(None)) => Limit::Unlimited,
        (None, None) => default.map_or(Limit::Unlimited, Limit::At),
    }
}

/// What can be done with a queue of that kind.
pub(crate) fn capability(
    kind: QueueKind,
    version: Option<Version>,
    has_dead_letter_exchange: bool,
) -> Capability {
    let common = Capability {
        browse_is_complete: true,
        browse_tail: true,
        publish: true,
        publish_is_confirmed: true,
        publish_with_headers: true,
        publish_with_empty_body: true,
        // 16 MiB since 4.0, 128 MiB before; a broker may be set otherwise, and then says so itself.
        publish_max_bytes: Some(if version.is_some_and(|version| version.major < 4) {
            128 << 20
        } else {
            16 << 20
        }),
        ..Capability::default()
    };
    if kind == QueueKind::Stream {
        return Capability {
            browse: Browse::ByOffset,
            browse_from_offset: true,
            fetch: true,
            ..common
        };
    }
    Capability {
        browse: Browse::ByLock,
        browse_counts_as_delivery: kind != QueueKind::Classic
            && version.is_none_or(|version| !version.carries_delivery_count()),
        settle_ack: true,
        settle_release: true,
        settle_dead_letter: has_dead_letter_exchange,
        purge: true,
        ..common
    }
}

/// What an exchange can: take messages.
pub(crate) fn exchange_capability(version: Option<Version>) -> Capability {
    Capability {
        browse: Browse::None,
        browse_is_complete: false,
        browse_tail: false,
        settle_ack: false,
        settle_release: false,
        purge: false,
        ..capability(QueueKind::Classic, version, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_says_the_limit_so_the_versions_default_is_assumed() {
        let check = |version: &str, limit| {
            assert_eq!(
                limit_of(QueueKind::Unknown, None, Version::parse(version)),
                limit,
                "{version}"
            );
        };
        check("3.10", Limit::Unlimited);
        check("4.0", Limit::Assumed(20));
        check("4.3", Limit::Assumed(20));
        check("unknown", Limit::Assumed(20));
    }

    #[test]
    fn an_exchange_only_takes_messages() {
        let capability = exchange_capability(None);
        assert_eq!(capability.browse, Browse::None);
        assert!(capability.publish && !capability.settle_ack && !capability.purge);
    }
}
