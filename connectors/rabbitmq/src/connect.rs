//! Opening a connection, within 5 seconds and with an error that says what is wrong.
//!
//! Separate because lapin hangs where a port accepts and never answers, and tells a wrong name, a closed port and a
//! filtered one apart only by chance: so a plain TCP connect goes first, and everything has a deadline.

use std::{future::Future, io, time::Duration};

use dlo_core::{Error, ErrorKind, Result};
use futures::{AsyncReadExt, AsyncWriteExt};
use lapin::{
    Connect, Connection, ConnectionProperties, runtime::default_runtime, tcp::AMQPUriTcpExt,
};
use tokio::{net::TcpStream, time::timeout};

use crate::{config::Config, error};

const PROBE: Duration = Duration::from_secs(2);
const HANDSHAKE: Duration = Duration::from_millis(2500);
/// How long one answer of the broker may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Whether something listens there at all.
pub(crate) async fn probe(config: &Config) -> Result<()> {
    let place = config.place();
    match timeout(
        PROBE,
        TcpStream::connect((config.host.as_str(), config.port)),
    )
    .await
    {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error::probing(&error, &place)),
        Err(_) => Err(error::probing(&io::ErrorKind::TimedOut.into(), &place)),
    }
}

/// Opens a connection that the broker's administrator sees under `name`. It does not recover by itself:
/// what was held on it is back in the queue, and that must be said.
pub(crate) async fn open(config: &Config, name: &str) -> Result<Connection> {
    let place = config.place();
    let runtime = default_runtime().map_err(|error| error::connecting(&error, &place))?;
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let connecting =
        config
            .uri()
            .connect_with_config(properties, config.certificates.clone(), runtime);
    match timeout(HANDSHAKE, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(error::connecting(&error, &place)),
        Err(_) => Err(error::silent(&place)),
    }
}

/// The broker's version from its greeting, for where the management API cannot be asked.
/// `None` when it does not say, or says it in a way this code does not know.
pub(crate) async fn greeting_version(config: &Config) -> Option<String> {
    timeout(HANDSHAKE, greeting(config))
        .await
        .ok()?
        .ok()
        .and_then(|frame| version_in(&frame))
}

/// Reads the one `connection.start` frame that a broker sends to whoever says hello.
async fn greeting(config: &Config) -> io::Result<Vec<u8>> {
    let runtime = default_runtime().map_err(io::Error::other)?;
    let mut stream = config
        .uri()
        .connect_with_config_async(config.certificates.as_ref(), &runtime)
        .await?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
    stream.flush().await?;
    let mut header = [0; 7];
    stream.read_exact(&mut header).await?;
    let size = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    let mut frame = vec![0; size.min(131_072) as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

/// The `version` entry of the server's properties: a name, the letter `S`, a length, the text.
fn version_in(frame: &[u8]) -> Option<String> {
    const ENTRY: &[u8] = b"\x07versionS";
    let at = frame
        .windows(ENTRY.len())
        .position(|window| window == ENTRY)?
        + ENTRY.len();
    let length = u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?) as usize;
    let text = frame.get(at + 4..at + 4 + length)?;
    String::from_utf8(text.to_vec()).ok()
}

/// The answer of one operation on an open connection, or an error when it does not come in time.
pub(crate) async fn answer<T>(
    operation: &str,
    future: impl Future<Output = lapin::Result<T>>,
) -> Result<T> {
    answer_within(ANSWER, operation, future).await
}

/// As [`answer`], with another patience.
pub(crate) async fn answer_within<T>(
    patience: Duration,
    operation: &str,
    future: impl Future<Output = lapin::Result<T>>,
) -> Result<T> {
    match timeout(patience, future).await {
        Ok(answer) => answer.map_err(|error| error::of(operation, &error)),
        Err(_) => Err(Error::new(
            ErrorKind::Unreachable,
            operation,
            format!("the broker did not answer within {} s", patience.as_secs()),
        )
        .advise("Check whether it is overloaded or blocked, then try again.")),
    }
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn the_version_is_read_from_the_greeting() {
        let frame = b"\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x30\x07productS\x00\x00\x00\x08RabbitMQ\x07versionS\x00\x00\x00\x054.3.6";
        assert_eq!(version_in(frame).as_deref(), Some("4.3.6"));
        assert_eq!(version_in(b"HTTP/1.1 400"), None);
        assert_eq!(version_in(b"\x07versionS\xff\xff\xff\xff"), None);
    }
}
