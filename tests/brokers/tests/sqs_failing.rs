//! When SQS does not answer as it should: connections that fail, permissions that are missing, answers that never come.
//!
//! No server here checks credentials or permissions, so those answers are made by hand after AWS's API reference and
//! are given by a little HTTP server; they say nothing about any real server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::sqs::{Server, Stage, Store, plain, unique};
use dlo_core::{
    Address, Atomicity, Connector, Disposition, Endpoint, Error, ErrorKind, LookRequest, Outgoing,
    Receipt, Session, Target, Verdict,
};
use dlo_sqs::Sqs;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread")]
async fn within_five_seconds_a_person_learns_what_is_wrong() -> Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let closed = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let plain = by_hand(|_, _| Some((200, "{}".to_owned()))).await?;
    let endpoint = |address: String| format!("sqs://test:test@eu-west-1?endpoint={address}");
    let cases = [
        (
            endpoint(format!("http://{closed}")),
            ErrorKind::Unreachable,
            "nothing listens",
        ),
        (
            endpoint("http://no-such-host.invalid:1".to_owned()),
            ErrorKind::Unreachable,
            "host name is not known",
        ),
        (
            endpoint(format!("http://{}", silent.local_addr()?)),
            ErrorKind::Unreachable,
            "did not answer",
        ),
        (
            endpoint(format!("https://{plain}")),
            ErrorKind::Unreachable,
            "plain HTTP",
        ),
        (
            "sqs://eu-west-1?profile=no-such-profile-here".to_owned(),
            ErrorKind::Unauthenticated,
            "profile",
        ),
    ];
    for (url, kind, words) in cases {
        let begun = Instant::now();
        let error = connect(&url)
            .await
            .err()
            .with_context(|| format!("{url} connected"))?;
        ensure!(
            error.kind() == kind && error.to_string().contains(words),
            "{url}: {error}"
        );
        ensure!(
            begun.elapsed() < Duration::from_millis(5_500),
            "{url} took {:?}",
            begun.elapsed()
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_refusals_are_told_in_a_persons_words() -> Result<()> {
    let cases = [
        (
            "ExpiredToken",
            "The security token included in the request is expired",
            ErrorKind::Unauthenticated,
            "Log in again",
        ),
        (
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
            ErrorKind::Unauthenticated,
            "does not accept the access key",
        ),
        (
            "SignatureDoesNotMatch",
            "Credential should be scoped to a valid region.",
            ErrorKind::ConfigInvalid,
            "another region",
        ),
        (
            "ThrottlingException",
            "Rate exceeded",
            ErrorKind::Throttled,
            "slow down",
        ),
    ];
    for (code, message, kind, words) in cases {
        let address = by_hand(move |_, _| Some((400, failure(code, message)))).await?;
        let url = format!("sqs://test:test@eu-west-1?endpoint=http://{address}");
        let error = connect(&url)
            .await
            .err()
            .with_context(|| format!("{code} connected"))?;
        ensure!(
            error.kind() == kind && error.to_string().contains(words),
            "{code}: {error}"
        );
    }
    Ok(())
}

/// Who may not list queues can still work with one by its name, and a missing permission is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named() -> Result<()> {
    let denied = |action: &str| {
        let message = format!(
            "User: arn:aws:iam::123456789012:user/eve is not authorized to perform: {action} on resource: arn:aws:sqs:eu-west-1:123456789012:orders"
        );
        Some((400, failure("AccessDeniedException", &message)))
    };
    let address = by_hand(move |action, _| match action {
        "GetQueueUrl" => Some((
            200,
            r#"{"QueueUrl":"http://localhost/123456789012/orders"}"#.to_owned(),
        )),
        "ReceiveMessage" => denied("sqs:receivemessage"),
        other => denied(&format!("sqs:{other}")),
    })
    .await?;
    let session = connect(&format!(
        "sqs://test:test@eu-west-1?endpoint=http://{address}"
    ))
    .await?;
    ensure!(
        session
            .server()
            .facts
            .iter()
            .any(|(name, value)| name == "listing queues" && value.contains("sqs:ListQueues"))
    );
    let orders = Address::queue("orders");
    let told = session.describe(&orders).await?;
    ensure!(
        told.facts
            .iter()
            .any(|(_, fact)| fact.contains("sqs:GetQueueAttributes")),
        "{:?}",
        told.facts
    );
    let cost = session.cost(&orders, &LookRequest::new(5)).await?;
    ensure!(
        cost.verdict == Verdict::Ask && told.look.verdict == Verdict::Ask,
        "{cost:?}"
    );
    let error = session
        .look(&Address::queue("orders"), LookRequest::new(5))
        .await
        .err()
        .context("it was looked at")?;
    ensure!(
        error.kind() == ErrorKind::Refused,
        "without its settings a look needs consent: {error}"
    );
    let mut request = LookRequest::new(5);
    request.consent = dlo_core::Consent::Given;
    let look = session.look(&Address::queue("orders"), request).await?;
    let error = look
        .next(5, &CancellationToken::new())
        .await
        .err()
        .context("messages were received")?;
    ensure!(
        error.kind() == ErrorKind::PermissionDenied
            && error.to_string().contains("sqs:receivemessage"),
        "{error}"
    );
    Ok(())
}

/// A send whose answer never comes may have been stored: that is said, and it is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_send_is_unknown_and_not_repeated() -> Result<()> {
    let sends = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sends);
    let address = by_hand(move |action, _| match action {
        "SendMessageBatch" => {
            counter.fetch_add(1, Ordering::SeqCst);
            None
        }
        other => ordinary(other),
    })
    .await?;
    let session = connect(&format!(
        "sqs://test:test@eu-west-1?endpoint=http://{address}"
    ))
    .await?;
    let answers = send(session.as_ref(), "orders", 3).await;
    let unknown = |answer: &dlo_core::Result<Receipt>| {
        answer
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::OutcomeUnknown)
    };
    ensure!(answers.iter().all(unknown), "{answers:?}");
    ensure!(
        sends.load(Ordering::SeqCst) == 1,
        "it was sent {} times",
        sends.load(Ordering::SeqCst)
    );
    Ok(())
}

/// AWS answers a batch with 200 although parts of it failed, and an entry may be missing altogether.
#[tokio::test(flavor = "multi_thread")]
async fn each_entry_of_a_batch_has_its_own_outcome() -> Result<()> {
    let answer = r#"{"Successful":[{"Id":"0","MessageId":"m-0","MD5OfMessageBody":"x"}],
        "Failed":[{"Id":"1","Code":"InvalidMessageContents","Message":"bad","SenderFault":true}]}"#;
    let address = by_hand(move |action, _| match action {
        "SendMessageBatch" => Some((200, answer.to_owned())),
        other => ordinary(other),
    })
    .await?;
    let session = connect(&format!(
        "sqs://test:test@eu-west-1?endpoint=http://{address}"
    ))
    .await?;
    let answers = send(session.as_ref(), "orders", 3).await;
    let kinds: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().err().map(|error| error.kind()))
        .collect();
    ensure!(
        kinds
            == [
                None,
                Some(ErrorKind::Rejected),
                Some(ErrorKind::OutcomeUnknown)
            ],
        "{answers:?}"
    );
    Ok(())
}

/// A throttled batch was surely not stored, so it is sent again after a pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_send_is_tried_again() -> Result<()> {
    let sends = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sends);
    let address = by_hand(move |action, _| match action {
        "SendMessageBatch" if counter.fetch_add(1, Ordering::SeqCst) < 2 => {
            Some((400, failure("RequestThrottled", "slow")))
        }
        "SendMessageBatch" => Some((
            200,
            r#"{"Successful":[{"Id":"0","MessageId":"m-0","MD5OfMessageBody":"x"}]}"#.to_owned(),
        )),
        other => ordinary(other),
    })
    .await?;
    let session = connect(&format!(
        "sqs://test:test@eu-west-1?endpoint=http://{address}"
    ))
    .await?;
    let answers = send(session.as_ref(), "orders", 1).await;
    ensure!(
        answers[0].is_ok() && sends.load(Ordering::SeqCst) == 3,
        "{answers:?}"
    );
    Ok(())
}

/// The server is killed in the middle of a replay and comes back: every letter is at its target or still dead, none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_over_a_killed_server_loses_nothing() -> Result<()> {
    let server = Server::start(Store::File)?;
    let (source, dead) = server.stage.create_pair(&unique("killed"), 50).await?;
    server
        .stage
        .fill_with(&dead, 400, |number| format!("letter {number:03}"))
        .await?;
    let before = replay_some(&server.stage, &dead, &source, Some(&server)).await?;
    println!(
        "settled before the kill {}, of unknown outcome {}",
        before.settled, before.unknown
    );
    ensure!(
        before.settled < 400,
        "the kill came too late to show anything"
    );
    server.restart()?;
    // What was held when the server died comes back when its hold of 5 seconds is over.
    let end = Instant::now() + Duration::from_secs(60);
    let mut after = 0;
    while after + before.settled < 400 && Instant::now() < end {
        let again = replay_some(&server.stage, &dead, &source, None).await?;
        after += again.settled;
        if server.stage.visible(&dead).await? == 0 && again.settled == 0 {
            break;
        }
    }
    let mut arrived: Vec<String> = server
        .stage
        .drain(&source)
        .await?
        .iter()
        .filter_map(|message| message.body().map(str::to_owned))
        .collect();
    let copies = arrived.len();
    arrived.sort();
    arrived.dedup();
    println!(
        "settled after it {after}, {copies} copies of {} letters arrived",
        arrived.len()
    );
    ensure!(
        arrived.len() == 400,
        "{} of 400 letters arrived",
        arrived.len()
    );
    ensure!(server.stage.drain(&dead).await?.is_empty());
    Ok(())
}

#[derive(Default)]
struct Replayed {
    settled: usize,
    unknown: usize,
}

/// Looks, sends by tens and removes what was stored; kills the server after a third where one is given.
async fn replay_some(
    stage: &Stage,
    from: &str,
    to: &str,
    kill: Option<&Server>,
) -> Result<Replayed> {
    let session = stage.session().await?;
    let mut request = LookRequest::new(400);
    request.hold = Duration::from_secs(5);
    let look = session.look(&Address::queue(from), request).await?;
    let cancel = CancellationToken::new();
    let mut replayed = Replayed::default();
    loop {
        let Ok(page) = look.next(10, &cancel).await else {
            break;
        };
        let batch = page
            .deliveries
            .iter()
            .map(|delivery| Outgoing {
                target: Target::new(Address::queue(to)),
                message: delivery.message.clone(),
                time: None,
            })
            .collect();
        if let Some(server) = kill.filter(|_| replayed.settled > 130) {
            server.kill()?;
        }
        let sent = session.publish(batch, Atomicity::Each).await;
        replayed.unknown += sent
            .iter()
            .filter(|answer| {
                answer
                    .as_ref()
                    .is_err_and(|error| error.kind() == ErrorKind::OutcomeUnknown)
            })
            .count();
        let locks: Vec<_> = page
            .deliveries
            .iter()
            .zip(&sent)
            .filter(|(_, answer)| answer.is_ok())
            .filter_map(|(delivery, _)| delivery.lock.clone())
            .collect();
        let settled = look.settle(&locks, Disposition::Ack).await;
        replayed.settled += settled.iter().filter(|answer| answer.is_ok()).count();
        if page.end || sent.iter().any(Result::is_err) {
            break;
        }
    }
    look.close().await?;
    Ok(replayed)
}

async fn connect(url: &str) -> Result<Arc<dyn Session>, Error> {
    let (endpoint, secrets) = Endpoint::parse(url)?;
    Sqs.connect(&endpoint, &secrets).await
}

async fn send(session: &dyn Session, queue: &str, count: usize) -> Vec<dlo_core::Result<Receipt>> {
    let one = |number: usize| Outgoing {
        target: Target::new(Address::queue(queue)),
        message: plain(&format!("m{number}")),
        time: None,
    };
    session
        .publish((0..count).map(one).collect(), Atomicity::Each)
        .await
}

fn failure(code: &str, message: &str) -> String {
    serde_json::json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": message })
        .to_string()
}

/// The answers of a queue where nothing is wrong.
fn ordinary(action: &str) -> Option<(u16, String)> {
    let body = match action {
        "GetQueueUrl" => r#"{"QueueUrl":"http://localhost/123456789012/orders"}"#,
        "GetQueueAttributes" => {
            r#"{"Attributes":{"QueueArn":"arn:aws:sqs:eu-west-1:123456789012:orders"}}"#
        }
        _ => "{}",
    };
    Some((200, body.to_owned()))
}

/// A server that gives the answers of `answer`, by the action and the request's body; `None` closes the connection without one.
async fn by_hand(
    answer: impl Fn(&str, &str) -> Option<(u16, String)> + Send + Sync + 'static,
) -> Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move { serve(stream, answer.as_ref()).await });
        }
    });
    Ok(address)
}

/// One request at a time on a connection, until it is closed.
async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&str, &str) -> Option<(u16, String)> + Send + Sync),
) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
            if !buffer.starts_with(b"POST") {
                // Somebody speaks TLS; a plain server says so in plain text.
                stream
                    .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    .await
                    .ok()?;
                return None;
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).to_lowercase();
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
                .map(str::to_owned)
        };
        let length: usize = header("content-length:")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        while buffer.len() < head_end + length {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
        // The head was put into lower case; the action is read from it as it was written.
        let written = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
        let action = written
            .split("AmazonSQS.")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_default()
            .to_owned();
        let body = String::from_utf8_lossy(&buffer[head_end..head_end + length]).into_owned();
        buffer.drain(..head_end + length);
        let (status, text) = answer(&action, &body)?;
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(reply.as_bytes()).await.ok()?;
    }
}
