//! librdkafka's errors as ours: a table from its codes, and the search for the cause of a failed connection.

use dlo_core::{Error, ErrorKind};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use crate::client::Heard;

/// What a code means for a person: kind, what happened, and what to do next.
type Row = (ErrorKind, &'static str, Option<&'static str>);

fn row(code: Code) -> Option<Row> {
    let row = match code {
        Code::Authentication => (
            ErrorKind::Unauthenticated,
            "the broker does not accept the login",
            Some("Check user, password and mechanism."),
        ),
        Code::SaslAuthenticationFailed => (
            ErrorKind::Unauthenticated,
            "the broker does not accept the login",
            Some("Check user, password and mechanism."),
        ),
        Code::UnsupportedSASLMechanism => (
            ErrorKind::Unauthenticated,
            "the broker does not offer this SASL mechanism",
            Some("Set mechanism= to one that it offers."),
        ),
        Code::Resolve => (
            ErrorKind::Unreachable,
            "the host name is not known",
            Some("Check the name, the network and the VPN."),
        ),
        Code::BrokerTransportFailure | Code::AllBrokersDown | Code::NetworkException => (
            ErrorKind::Unreachable,
            "no broker answers",
            Some("Check host, port and network."),
        ),
        Code::OperationTimedOut | Code::RequestTimedOut | Code::TimedOutQueue => (
            ErrorKind::Unreachable,
            "the broker did not answer in time",
            Some("Try again; if it stays so, check the broker and the network."),
        ),
        Code::LeaderNotAvailable | Code::NotLeaderForPartition | Code::BrokerNotAvailable => (
            ErrorKind::Unreachable,
            "the partition has no leader at the moment",
            Some("Wait until the broker that leads it is back."),
        ),
        Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => (
            ErrorKind::Unreachable,
            "too few replicas are in sync",
            Some("Wait until the other brokers are back (min.insync.replicas)."),
        ),
        Code::TopicAuthorizationFailed => (
            ErrorKind::PermissionDenied,
            "the topic does not exist, or these credentials may not do this with it",
            Some(
                "Check the name, or ask for an ACL on the topic (Describe and Read to look, Write to publish).",
            ),
        ),
        Code::GroupAuthorizationFailed => (
            ErrorKind::PermissionDenied,
            "these credentials may not see the group",
            Some("Ask for the ACL Describe on the group."),
        ),
        Code::ClusterAuthorizationFailed => (
            ErrorKind::PermissionDenied,
            "these credentials may not do this on the cluster",
            Some(
                "Ask for the ACL IdempotentWrite (or Write on the topics) and Describe on the cluster.",
            ),
        ),
        Code::TransactionalIdAuthorizationFailed => (
            ErrorKind::PermissionDenied,
            "these credentials may not use transactions",
            Some(
                "Ask for the ACL Write on the transactional ids dlo-*, or publish without a transaction.",
            ),
        ),
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => (
            ErrorKind::NotFound,
            "there is no such topic or partition",
            Some("Check the name; topics are never created by looking or replaying."),
        ),
        Code::InvalidTopic => (
            ErrorKind::NotFound,
            "this cannot be the name of a topic",
            Some("Topic names have letters, digits, dots, dashes and underscores."),
        ),
        Code::MessageSizeTooLarge => (
            ErrorKind::TooLarge,
            "the record is larger than the topic takes",
            Some("Raise max.message.bytes of the topic, or make the record smaller."),
        ),
        Code::InvalidTimestamp => (
            ErrorKind::Rejected,
            "the broker does not take a record with this timestamp",
            Some(
                "Publish with the present time, or see message.timestamp.before.max.ms of the topic.",
            ),
        ),
        Code::InvalidRecord => (
            ErrorKind::Rejected,
            "the broker refuses the record",
            Some("A compacted topic takes only records with a key."),
        ),
        Code::PolicyViolation => (
            ErrorKind::Refused,
            "a policy of the broker forbids it",
            Some("Records can be deleted only where cleanup.policy has delete."),
        ),
        Code::OffsetOutOfRange => (
            ErrorKind::NotFound,
            "the offset is not there any more",
            None,
        ),
        Code::ThrottlingQuotaExceeded => (
            ErrorKind::Throttled,
            "a quota of the broker is used up",
            Some("Try again later or more slowly."),
        ),
        Code::UnsupportedVersion | Code::UnsupportedFeature => (
            ErrorKind::Unsupported,
            "the broker is too old for this",
            None,
        ),
        _ => return None,
    };
    Some(row)
}

/// The error for a code; `detail` is what the library added, if anything.
pub(crate) fn from_code(code: Code, operation: &str, detail: &str) -> Error {
    let Some((kind, what, advice)) = row(code) else {
        let what = if detail.is_empty() {
            code.to_string()
        } else {
            detail.to_owned()
        };
        return Error::new(ErrorKind::Unexpected, operation, what)
            .with("code", format!("{code:?}"));
    };
    let what = if detail.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {detail}")
    };
    let error = Error::new(kind, operation, what);
    match advice {
        Some(advice) => error.advise(advice),
        None => error,
    }
}

/// The error of a call of the library.
pub(crate) fn from_kafka(error: &KafkaError, operation: &str) -> Error {
    match (error, error.rdkafka_error_code()) {
        (KafkaError::ClientConfig(_, what, name, _), _) => {
            Error::new(ErrorKind::ConfigInvalid, operation, what.clone())
                .with("option", name.clone())
                .advise("Mend or remove the option.")
        }
        (KafkaError::ClientCreation(what), _) => creation(what, operation),
        (_, Some(code)) => from_code(code, operation, ""),
        (other, None) => Error::new(ErrorKind::Unexpected, operation, other.to_string()),
    }
}

/// A client that could not even be made: a file is missing or unreadable, or two options contradict each other.
fn creation(what: &str, operation: &str) -> Error {
    let advice = if what.contains("ssl.ca.location") {
        "Check the file that ca= names: it must exist and hold PEM."
    } else if what.contains("ssl.key")
        || what.contains("ssl.certificate")
        || what.contains("keystore")
    {
        "Check the files that cert= and key= name, and the key's password."
    } else {
        "Check the options of the profile."
    };
    Error::new(ErrorKind::ConfigInvalid, operation, what.to_owned()).advise(advice)
}

/// What went wrong with a connection, from what the library said meanwhile; `None` when it said nothing that tells.
///
/// The texts were measured with librdkafka 2.12: a wrong login and a bad certificate come as errors with their own codes,
/// a missing client certificate only as a TLS alert in the text of a transport failure.
pub(crate) fn cause(heard: &[Heard], operation: &str) -> Option<Error> {
    let telling = heard
        .iter()
        .rev()
        .filter_map(|said| telling(said, operation));
    telling.into_iter().next()
}

fn telling(said: &Heard, operation: &str) -> Option<Error> {
    let text = without_prefix(&said.text);
    let has = |part: &str| said.text.contains(part);
    if has("Unsupported SASL mechanism") {
        return Some(
            Error::new(ErrorKind::Unauthenticated, operation, text)
                .advise("Set mechanism= to one of those that the broker names."),
        );
    }
    if has("broker's supported mechanisms: (empty)") || has("not valid in current SASL state") {
        return Some(
            Error::new(
                ErrorKind::ConfigInvalid,
                operation,
                "this port takes no login",
            )
            .advise("Use security=plaintext (or ssl), or the port of a SASL listener."),
        );
    }
    if has("connecting to a PLAINTEXT broker listener") || has("wrong version number") {
        return Some(
            Error::new(
                ErrorKind::ConfigInvalid,
                operation,
                "this port does not speak TLS",
            )
            .advise("Use security=plaintext or sasl_plaintext, or the port of a TLS listener."),
        );
    }
    if has("alert bad certificate")
        || has("alert certificate required")
        || has("alert unknown ca")
        || has("alert handshake failure")
        || has("alert certificate unknown")
    {
        return Some(
            Error::new(
                ErrorKind::Unauthenticated,
                operation,
                "the broker does not accept the client certificate, or misses one",
            )
            .advise(
                "Give cert= and key= of a client certificate that the broker's authority signed.",
            ),
        );
    }
    match said.code {
        Some(Code::Authentication | Code::SaslAuthenticationFailed) => {
            Some(from_code(Code::Authentication, operation, &text))
        }
        Some(Code::SSL) => Some(
            Error::new(ErrorKind::Unauthenticated, operation, "the certificate of the broker is not trusted")
                .with("detail", text)
                .advise("Give the authority that signed it with ca=, and use the host name that stands in it."),
        ),
        Some(Code::Resolve) => Some(from_code(Code::Resolve, operation, &text)),
        Some(Code::BrokerTransportFailure) if has("Connection refused") => Some(
            Error::new(ErrorKind::Unreachable, operation, "nothing listens there")
                .with("detail", text)
                .advise("Check host and port, and whether the broker runs."),
        ),
        _ => None,
    }
}

/// librdkafka begins with its own names: `sasl_ssl://localhost:9093/bootstrap: reason (after 3ms in state …)`.
fn without_prefix(text: &str) -> String {
    let text = match text.split_once("://") {
        Some((_, rest)) => rest.split_once(": ").map_or(rest, |(_, reason)| reason),
        None => text,
    };
    let text = text.split(" (after ").next().unwrap_or(text);
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: Option<Code>, text: &str, kind: ErrorKind, part: &str) {
        let heard = [Heard {
            code,
            text: text.to_owned(),
        }];
        let error = cause(&heard, "connect").expect(text);
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.advice().is_some(), "{text}");
    }

    #[test]
    fn what_librdkafka_was_heard_to_say() {
        check(
            Some(Code::Authentication),
            "sasl_plaintext://127.0.0.1:1/bootstrap: SASL authentication error: Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256 (after 5ms in state AUTH_REQ)",
            ErrorKind::Unauthenticated,
            "invalid credentials",
        );
        check(
            Some(Code::Authentication),
            "sasl_plaintext://h:1/bootstrap: SASL handshake: Unsupported SASL mechanism: broker's supported mechanisms: SCRAM-SHA-512,PLAIN",
            ErrorKind::Unauthenticated,
            "SCRAM-SHA-512,PLAIN",
        );
        check(
            Some(Code::Authentication),
            "Request not valid in current SASL state: broker's supported mechanisms: (empty)",
            ErrorKind::ConfigInvalid,
            "takes no login",
        );
        check(
            Some(Code::BrokerTransportFailure),
            "ssl://h:1/bootstrap: SSL handshake failed: ssl/record: wrong version number: connecting to a PLAINTEXT broker listener?",
            ErrorKind::ConfigInvalid,
            "does not speak TLS",
        );
        check(
            Some(Code::SSL),
            "ssl://h:1/bootstrap: SSL handshake failed: certificate verify failed: verify that ssl.ca.location is correctly configured",
            ErrorKind::Unauthenticated,
            "not trusted",
        );
        check(
            Some(Code::BrokerTransportFailure),
            "ssl://h:1/bootstrap: Receive failed: sslv3 alert bad certificate: SSL alert number 42",
            ErrorKind::Unauthenticated,
            "client certificate",
        );
        check(
            Some(Code::BrokerTransportFailure),
            "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
            ErrorKind::Unreachable,
            "nothing listens",
        );
    }

    #[test]
    fn kinds_of_codes() {
        for (code, kind) in [
            (Code::TopicAuthorizationFailed, ErrorKind::PermissionDenied),
            (Code::UnknownTopicOrPartition, ErrorKind::NotFound),
            (Code::MessageSizeTooLarge, ErrorKind::TooLarge),
            (Code::PolicyViolation, ErrorKind::Refused),
            (Code::AllBrokersDown, ErrorKind::Unreachable),
            (Code::InvalidTimestamp, ErrorKind::Rejected),
            (Code::BadMessage, ErrorKind::Unexpected),
        ] {
            assert_eq!(from_code(code, "do it", "").kind(), kind, "{code:?}");
        }
    }
}
