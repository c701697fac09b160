//! What lapin and the broker say, as the project's errors: one table, and what to do next.
//!
//! Separate because the broker's texts are its only interface here (AMQP has few codes), so they are matched
//! in one place. Reply codes: <https://www.rabbitmq.com/amqp-0-9-1-reference.html#constants>.

use std::io;

use dlo_core::{Error, ErrorKind};
use lapin::ErrorKind as Lapin;

/// The error of an operation on an open connection.
pub(crate) fn of(operation: &str, error: &lapin::Error) -> Error {
    let text = error.to_string();
    match error.kind() {
        Lapin::ProtocolError(amqp) => reply(operation, amqp.get_id(), amqp.get_message().as_str()),
        Lapin::MissingHeartbeatError => Error::new(
            ErrorKind::Unreachable,
            operation,
            "the broker has stopped answering (no heartbeat)",
        )
        .advise("Check the network and the broker, then connect again."),
        Lapin::IOError(_)
        | Lapin::InvalidConnectionState(_)
        | Lapin::InvalidChannelState(..)
        | Lapin::InvalidChannel(_)
        | Lapin::RuntimeShutdownError(_) => Error::new(
            ErrorKind::Unreachable,
            operation,
            format!("the connection was lost ({})", plain(&text)),
        )
        .advise("Connect again."),
        _ => Error::new(ErrorKind::Unexpected, operation, plain(&text)),
    }
    .caused_by(error.clone())
}

/// The error of the broker's reply code and text.
pub(crate) fn reply(operation: &str, code: u16, text: &str) -> Error {
    let text = plain(text);
    match code {
        403 if text.contains("exclusive use") => Error::new(ErrorKind::Refused, operation, text)
            .advise(
                "Another consumer has the queue for itself; stop it, or look when it has ended.",
            ),
        403 => Error::new(ErrorKind::PermissionDenied, operation, text).advise(
            "Ask an administrator for the right that is named (rabbitmqctl set_permissions).",
        ),
        404 => Error::new(ErrorKind::NotFound, operation, text)
            .advise("Check the name and the virtual host."),
        405 => Error::new(ErrorKind::Refused, operation, text)
            .advise("The queue belongs to another connection alone."),
        311 => Error::new(ErrorKind::TooLarge, operation, text),
        406 if text.contains("larger than configured max size")
            || text.contains("max message size") =>
        {
            Error::new(ErrorKind::TooLarge, operation, text)
                .advise("The broker's max_message_size is the limit.")
        }
        406 => Error::new(ErrorKind::Rejected, operation, text),
        320 => Error::new(
            ErrorKind::Unreachable,
            operation,
            format!("the broker closed the connection: {text}"),
        )
        .advise("An administrator closed it or the broker is stopping; connect again later."),
        530 => Error::new(ErrorKind::NotFound, operation, text)
            .advise("Check the virtual host and the rights of the user in it."),
        540 => Error::new(ErrorKind::Unsupported, operation, text),
        _ => Error::new(ErrorKind::Unexpected, operation, format!("{code} {text}")),
    }
}

/// The error of opening a connection; `place` is the host and port without secrets.
pub(crate) fn connecting(error: &lapin::Error, place: &str) -> Error {
    let operation = "connect to RabbitMQ";
    let text = error.to_string();
    let made = match error.kind() {
        Lapin::ProtocolError(amqp) if amqp.get_id() == 530 => {
            let text = plain(amqp.get_message().as_str());
            if text.contains("not found") {
                Error::new(ErrorKind::NotFound, operation, text).advise(
                    "Check the virtual host, the part after the / of the URL; the default one, /, is written %2f.",
                )
            } else {
                Error::new(ErrorKind::PermissionDenied, operation, text).advise(
                    "Ask an administrator for rights in this virtual host (rabbitmqctl set_permissions).",
                )
            }
        }
        Lapin::ProtocolError(amqp) if amqp.get_id() == 403 => {
            refused_login(operation, amqp.get_message().as_str())
        }
        Lapin::ProtocolError(amqp) => reply(operation, amqp.get_id(), amqp.get_message().as_str()),
        Lapin::ParsingError(_) => not_amqp(operation),
        Lapin::IOError(io) => io_error(operation, io, &text),
        Lapin::InvalidProtocolVersion(_) => not_amqp(operation),
        _ if text.contains("aborted") => not_amqp(operation),
        _ => Error::new(ErrorKind::Unreachable, operation, plain(&text)),
    };
    made.with("address", place).caused_by(error.clone())
}

/// The error of a plain TCP connect, which tells a wrong name, a closed port and a filtered one apart.
pub(crate) fn probing(error: &io::Error, place: &str) -> Error {
    let operation = "connect to RabbitMQ";
    let made = match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::new(
            ErrorKind::Unreachable,
            operation,
            "nothing listens on that port",
        )
        .advise("Check host and port, and that the broker runs."),
        io::ErrorKind::TimedOut => Error::new(
            ErrorKind::Unreachable,
            operation,
            "the host does not answer within 2 seconds",
        )
        .advise("Check the address, and whether a firewall is in the way."),
        _ if error.to_string().contains("lookup") => Error::new(
            ErrorKind::Unreachable,
            operation,
            "there is no host of that name",
        )
        .advise("Check the host name."),
        _ => Error::new(ErrorKind::Unreachable, operation, error.to_string()),
    };
    made.with("address", place)
}

/// The port takes connections but says nothing.
pub(crate) fn silent(place: &str) -> Error {
    Error::new(
        ErrorKind::Unreachable,
        "connect to RabbitMQ",
        "the port takes connections but nothing there speaks AMQP within 2 seconds",
    )
    .advise("Check the port (5672, or 5671 with TLS), and whether the broker is overloaded or a proxy is in the way.")
    .with("address", place)
}

fn refused_login(operation: &str, text: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, operation, plain(text)).advise(
        if text.contains("EXTERNAL") {
            "Check the client certificate, and that a user of its name is known to the broker."
        } else {
            "Check user and password; guest may log in from the broker's own machine only."
        },
    )
}

fn not_amqp(operation: &str) -> Error {
    Error::new(
        ErrorKind::Unreachable,
        operation,
        "this port speaks TLS, or something that is not AMQP 0-9-1",
    )
    .advise("Use amqps:// for a TLS port (usually 5671), or check the port.")
}

fn io_error(operation: &str, error: &io::Error, text: &str) -> Error {
    let inner = format!("{text} {error} {error:?}");
    if inner.contains("InvalidContentType") || inner.contains("corrupt message") {
        return Error::new(ErrorKind::Unreachable, operation, "this port has no TLS")
            .advise("Use amqp:// for a plain port (usually 5672), or check the port.");
    }
    if inner.contains("UnknownIssuer") {
        return Error::new(
            ErrorKind::Unauthenticated,
            operation,
            "the broker's certificate comes from an authority that is not known here",
        )
        .advise("Name the authority's file with ?cacertfile=… in the URL.");
    }
    if inner.contains("NotValidForName") {
        return Error::new(
            ErrorKind::Unauthenticated,
            operation,
            "the broker's certificate is for another host name",
        )
        .advise("Connect by the name that is in the certificate.");
    }
    if inner.contains("invalid peer certificate") {
        return Error::new(ErrorKind::Unauthenticated, operation, plain(text))
            .advise("The broker's certificate is not good; ask its administrator.");
    }
    if inner.contains("CertificateRequired")
        || inner.contains("BadCertificate")
        || inner.contains("HandshakeFailure")
        || inner.contains("UnknownCA")
    {
        return Error::new(
            ErrorKind::Unauthenticated,
            operation,
            "the broker does not accept the client certificate",
        )
        .advise("Name a certificate and its key with ?certfile=…&keyfile=… in the URL.");
    }
    match error.kind() {
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof => not_amqp(operation),
        _ => Error::new(ErrorKind::Unreachable, operation, plain(text))
            .advise("Check host, port and network."),
    }
}

/// The broker's words without what lapin puts before them.
fn plain(text: &str) -> String {
    let text = text
        .trim_start_matches("protocol error: ")
        .trim_start_matches("IO error: ");
    text.split_once(" - ")
        .filter(|(code, _)| code.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .map_or(text, |(_, rest)| rest)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_codes_say_what_to_do() {
        let check = |code, text, kind| {
            let error = reply("open the queue", code, text);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(!error.to_string().contains("ACCESS_REFUSED"), "{error}");
        };
        check(
            403,
            "ACCESS_REFUSED - access to queue 'a' in vhost '/' refused for user 'x'",
            ErrorKind::PermissionDenied,
        );
        check(
            403,
            "ACCESS_REFUSED - queue 'a' in vhost '/' in exclusive use",
            ErrorKind::Refused,
        );
        check(
            404,
            "NOT_FOUND - no queue 'a' in vhost '/'",
            ErrorKind::NotFound,
        );
        check(
            406,
            "PRECONDITION_FAILED - message size 2 is larger than configured max size 1",
            ErrorKind::TooLarge,
        );
        check(
            540,
            "NOT_IMPLEMENTED - basic.get not supported by stream queues",
            ErrorKind::Unsupported,
        );
    }

    #[test]
    fn a_failed_probe_tells_name_port_and_filter_apart() {
        let check = |error: io::Error, expected: &str| {
            let error = probing(&error, "h:1");
            assert!(error.what().contains(expected), "{error}");
            assert!(error.advice().is_some());
        };
        check(io::ErrorKind::ConnectionRefused.into(), "nothing listens");
        check(io::ErrorKind::TimedOut.into(), "does not answer");
        check(
            io::Error::other("failed to lookup address information: Name or service not known"),
            "no host of that name",
        );
    }
}
