//! A look at a port before and after librdkafka: is the name known, does something listen, and does it speak TLS or Kafka?
//!
//! librdkafka only says that it was disconnected when a plain client meets a TLS or SASL port; two short exchanges tell
//! these cases apart.

use std::{
    io::{ErrorKind as IoKind, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use dlo_core::{Error, ErrorKind};

use crate::config::{Security, join};

const PATIENCE: Duration = Duration::from_secs(2);

/// What a port was found to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// It answers a request of Kafka's protocol without encryption (a SASL listener does so too, before the login).
    Kafka,
    Tls,
    Nothing,
}

/// Opens a TCP connection to a host, to each of its addresses in turn.
///
/// # Errors
/// `Unreachable`, apart for an unknown name, a closed port and one that does not answer.
pub(crate) fn reach(host: &str, port: u16) -> Result<TcpStream, Error> {
    let at = join(host, port);
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| {
            unreachable("the host name is not known", &at)
                .advise("Check the name, the network and the VPN.")
                .caused_by(error)
        })?
        .collect();
    let mut last = unreachable("the host name has no address", &at);
    let until = Instant::now() + PATIENCE;
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = refused(&error, &at),
        }
    }
    Err(last)
}

fn refused(error: &std::io::Error, at: &str) -> Error {
    if error.kind() == IoKind::ConnectionRefused {
        return unreachable("nothing listens there", at)
            .advise("Check host and port, and whether the broker runs.");
    }
    if matches!(error.kind(), IoKind::TimedOut | IoKind::WouldBlock) {
        return unreachable("it does not answer within 2 s", at)
            .advise("A firewall may drop the packets: check the network and the VPN.");
    }
    unreachable(&error.to_string(), at).advise("Check the network.")
}

fn unreachable(what: &str, at: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "connect", what).with("broker", at)
}

/// Finds out what a port speaks, with one request of each kind.
pub(crate) fn what_speaks(host: &str, port: u16) -> Speaks {
    match exchange(host, port, &API_VERSIONS) {
        // A TLS listener answers anything that is no hello with an alert, or hangs up.
        Some(answer) if answer.first() == Some(&0x15) => return Speaks::Tls,
        Some(answer) if answer.len() >= 8 && answer[4..8] == [0, 0, 0, 7] => return Speaks::Kafka,
        _ => {}
    }
    match exchange(host, port, &client_hello()) {
        Some(answer) if matches!(answer.first(), Some(0x15 | 0x16)) => Speaks::Tls,
        _ => Speaks::Nothing,
    }
}

/// The explanation for a client that was just hung up on, from what the port speaks; `None` when it fits the settings.
pub(crate) fn mismatch(speaks: Speaks, security: Security) -> Option<Error> {
    let config = |what: &str, advice: &str| {
        Error::new(ErrorKind::ConfigInvalid, "connect", what).advise(advice)
    };
    match (speaks, security) {
        (Speaks::Tls, Security::Plaintext) => Some(config(
            "this port speaks TLS, and the profile does not",
            "Use security=ssl with ca= (and cert= and key= where clients need a certificate), or security=sasl_ssl with a user.",
        )),
        (Speaks::Tls, Security::SaslPlaintext) => Some(config(
            "this port speaks TLS, and the profile does not",
            "Use security=sasl_ssl, with ca= where the authority is not a public one.",
        )),
        (Speaks::Kafka, Security::Plaintext) => Some(
            Error::new(
                ErrorKind::Unauthenticated,
                "connect",
                "the broker hangs up on a client without a login",
            )
            .advise("Use security=sasl_plaintext with a user, a password and the mechanism."),
        ),
        (Speaks::Kafka, Security::Ssl | Security::SaslSsl) => Some(config(
            "this port does not speak TLS",
            "Use security=plaintext or sasl_plaintext, or the port of a TLS listener.",
        )),
        (Speaks::Nothing, _) => Some(config(
            "what listens there speaks neither Kafka's protocol nor TLS",
            "Check the port: it is perhaps one for controllers, or of another program.",
        )),
        _ => None,
    }
}

/// Sends bytes and gives the first ones of the answer, if any come within the time.
fn exchange(host: &str, port: u16, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = reach(host, port).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_millis(700)))
        .ok()?;
    stream
        .set_write_timeout(Some(Duration::from_millis(700)))
        .ok()?;
    stream.write_all(request).ok()?;
    let mut answer = vec![0; 16];
    let read = stream.read(&mut answer).ok()?;
    answer.truncate(read);
    Some(answer)
}

/// ApiVersions, version 0, correlation id 7, no client id: every broker answers it, even before a login.
const API_VERSIONS: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];

/// A TLS 1.2 hello with a few usual ciphers: enough for an answer, which is never read further than its first byte.
fn client_hello() -> Vec<u8> {
    let ciphers: [u8; 8] = [0xc0, 0x2f, 0xc0, 0x2b, 0xc0, 0x30, 0xc0, 0x2c];
    let extensions: [u8; 28] = [
        0x00, 0x0a, 0x00, 0x06, 0x00, 0x04, 0x00, 0x17, 0x00, 0x18, // groups: P-256, P-384
        0x00, 0x0b, 0x00, 0x02, 0x01, 0x00, // uncompressed points
        0x00, 0x0d, 0x00, 0x08, 0x00, 0x06, 0x04, 0x01, 0x04, 0x03, 0x08, 0x04, // signatures
    ];
    let mut body = vec![0x03, 0x03];
    body.extend([0x42; 32]);
    body.push(0);
    body.extend([0, ciphers.len() as u8]);
    body.extend(ciphers);
    body.extend([1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let mut handshake = vec![0x01, 0, 0, body.len() as u8];
    handshake.extend(body);
    let mut record = vec![0x16, 0x03, 0x01, 0, handshake.len() as u8];
    record.extend(handshake);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_closed_port_and_an_unknown_name_are_told_apart() {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let closed = reach("127.0.0.1", port).expect_err("nothing listens");
        assert!(closed.what().contains("nothing listens"), "{closed}");
        let unknown = reach("no-such-host.invalid", 9092).expect_err("no such host");
        assert!(unknown.what().contains("not known"), "{unknown}");
    }

    #[test]
    fn a_port_of_another_program_is_recognised() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.write_all(b"SSH-2.0-OpenSSH\r\n");
            }
        });
        assert_eq!(what_speaks("127.0.0.1", port), Speaks::Nothing);
    }
}
