//! RabbitMQ 4.3: the first look that would delete a dead-letter queue, and what this project does instead.
//!
//! A message that died of the default delivery limit arrives in the next quorum queue with a count above that queue's own
//! limit, so that giving it back destroys it: by nack, by a lost connection, and by the broker's own management page.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use dlo_brokers::rabbit::{Stage, dying_into, session};
use dlo_core::{
    Address, Delivery, Disposition, ErrorKind, Keeper, Look, LookRequest, Session, Verdict,
};
use tokio_util::sync::CancellationToken;

const VERSION: &str = "4.3";
const MANY: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_looks_lose_none_of_a_thousand() -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, "deadly.three", MANY).await?;
    let folder = tempfile::tempdir()?;
    for round in 0..3 {
        let session = stage.session().await?;
        let cost = session
            .cost(&Address::queue(&dead), &LookRequest::new(10_000))
            .await?;
        println!("{}: {}", cost.line, cost.reasons.join(" "));
        ensure!(cost.verdict == Verdict::Warn, "{cost:?}");
        let look = open(session.as_ref(), &dead, 10_000, folder.path()).await?;
        let seen = read(look.as_ref()).await?;
        ensure!(
            numbers(&seen) == (0..MANY).collect::<Vec<_>>(),
            "look {round} showed {}",
            seen.len()
        );
        let returned = look.close().await?;
        let rescued = if round == 0 { MANY as u64 } else { 0 };
        ensure!(returned.rescued == rescued, "look {round}: {returned:?}");
        stage.await_count(&dead, MANY as u64).await?;
        session.close().await?;
    }
    // All were saved before anything was done to them, all are there, and even their order is the old one.
    ensure!(saved(folder.path())?.len() == MANY);
    ensure!(stage.drain_numbers(&dead).await? == (0..MANY).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_they_are_rescued_loses_at_most_the_one_on_the_wire() -> Result<()> {
    kill_at("deadly.killed", "rescued", MANY / 2).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_all_are_held_loses_none() -> Result<()> {
    kill_at("deadly.held", "held", MANY).await
}

/// The reason for all this, on the same queue with the same settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_management_pages_own_look_deletes_them() -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, "deadly.management", 100).await?;
    let request =
        serde_json::json!({"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"});
    let shown = stage
        .api(
            reqwest::Method::POST,
            &format!("queues/%2F/{dead}/get"),
            request,
        )
        .await?;
    ensure!(
        shown.as_array().map(Vec::len) == Some(100),
        "the page showed {shown}"
    );
    stage.await_count(&dead, 0).await?;
    Ok(())
}

/// Rows of rescued messages are shown at once; once the copies are all that is left, they can be settled like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rescued_messages_can_be_settled_in_the_same_look() -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, "deadly.settled", 20).await?;
    let (session, folder) = (stage.session().await?, tempfile::tempdir()?);
    let look = open(session.as_ref(), &dead, 20, folder.path()).await?;
    let seen = read(look.as_ref()).await?;
    let locks: Vec<_> = seen
        .iter()
        .take(5)
        .filter_map(|delivery| delivery.lock.clone())
        .collect();
    for answer in look.settle(&locks, Disposition::Ack).await {
        answer?;
    }
    let returned = look.close().await?;
    ensure!(returned.given_back == 15, "{returned:?}");
    stage.await_count(&dead, 15).await?;
    ensure!(stage.drain_numbers(&dead).await? == (5..20).collect::<Vec<_>>());
    Ok(())
}

/// A limit on what is shown is kept even while messages are rescued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_look_rescues_only_what_it_shows() -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, "deadly.small", 30).await?;
    let (session, folder) = (stage.session().await?, tempfile::tempdir()?);
    let look = open(session.as_ref(), &dead, 10, folder.path()).await?;
    ensure!(read(look.as_ref()).await?.len() == 10);
    let returned = look.close().await?;
    ensure!(returned.rescued == 10, "{returned:?}");
    stage.await_count(&dead, 30).await?;
    ensure!(saved(folder.path())?.len() == 10);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_tags_rescues_too_and_one_who_may_not_write_is_refused() -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, "deadly.rights", 20).await?;
    stage.user("deadly-reader", "^$", "^$", ".*").await?;
    stage.user("deadly-writer", "^$", ".*", ".*").await?;
    let folder = tempfile::tempdir()?;

    let reader = session(&stage.url_for("deadly-reader", "deadly-reader")).await?;
    let refused = open(reader.as_ref(), &dead, 100, folder.path())
        .await
        .err()
        .context("the look was opened")?;
    let refused = refused.downcast::<dlo_core::Error>()?;
    println!("{refused}");
    ensure!(refused.kind() == ErrorKind::Refused && refused.to_string().contains("rabbitmqctl"));
    stage.await_count(&dead, 20).await?;

    let writer = session(&stage.url_for("deadly-writer", "deadly-writer")).await?;
    let look = open(writer.as_ref(), &dead, 100, folder.path()).await?;
    ensure!(numbers(&read(look.as_ref()).await?) == (0..20).collect::<Vec<_>>());
    ensure!(look.close().await?.rescued == 20);
    stage.await_count(&dead, 20).await?;
    Ok(())
}

/// Runs in a process of its own, which the tests above kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of the tests that kill it"]
async fn the_process_that_is_killed() -> Result<()> {
    let (dead, folder) = (
        dlo_brokers::required("DLO_TEST_QUEUE")?,
        dlo_brokers::required("DLO_TEST_FOLDER")?,
    );
    let session = Stage::on(VERSION).await?.session().await?;
    let look = open(session.as_ref(), &dead, 10_000, Path::new(&folder)).await?;
    let seen = read(look.as_ref()).await?;
    println!("held {}", seen.len());
    std::io::stdout().flush()?;
    std::future::pending::<()>().await;
    drop(look);
    Ok(())
}

/// Lets another process look, kills it when it says so, and counts what is left.
async fn kill_at(name: &str, word: &str, count: usize) -> Result<()> {
    let stage = Stage::on(VERSION).await?;
    let dead = deadly_queue(&stage, name, MANY).await?;
    let folder = tempfile::tempdir()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "the_process_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env("DLO_TEST_QUEUE", &dead)
        .env("DLO_TEST_FOLDER", folder.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    for line in lines {
        let line = line?;
        let said = line.split_once(' ').filter(|(said, _)| *said == word);
        if said.is_some_and(|(_, number)| number.parse() == Ok(count)) {
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    let left = settled(&stage, &dead).await?;
    let in_queue: BTreeSet<usize> = stage.drain_numbers(&dead).await?.into_iter().collect();
    ensure!(in_queue.len() as u64 == left, "a message is there twice");
    let missing: Vec<usize> = (0..MANY)
        .filter(|number| !in_queue.contains(number))
        .collect();
    println!(
        "{left} are left, missing: {missing:?}, of them saved: {:?}",
        saved(folder.path())?
            .intersection(&missing.iter().copied().collect())
            .collect::<Vec<_>>()
    );
    let allowed = usize::from(word == "rescued");
    ensure!(
        missing.len() <= allowed,
        "{} messages are gone: {missing:?}",
        missing.len()
    );
    Ok(())
}

/// The count once the broker has noticed that the process is gone.
async fn settled(stage: &Stage, queue: &str) -> Result<u64> {
    let (mut last, mut same) = (u64::MAX, 0);
    for _ in 0..200 {
        let path = format!("queues/%2F/{queue}");
        let info = stage
            .api(reqwest::Method::GET, &path, serde_json::Value::Null)
            .await?;
        let held = info
            .get("messages_unacknowledged")
            .and_then(serde_json::Value::as_u64);
        let count = stage.count(queue).await?;
        same = if count == last && held == Some(0) {
            same + 1
        } else {
            0
        };
        if same == 5 {
            return Ok(count);
        }
        last = count;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    anyhow::bail!("the queue does not settle")
}

/// A quorum queue with default settings, full of messages that died of the default limit in another one.
async fn deadly_queue(stage: &Stage, name: &str, count: usize) -> Result<String> {
    let (source, dead) = (format!("{name}.work"), format!("{name}.dlq"));
    stage.queue(&dead, "quorum", &[]).await?;
    stage.queue(&source, "quorum", &dying_into(&dead)).await?;
    stage.number(&source, count).await?;
    stage
        .let_die_of_the_limit(&source, &dead, count as u64)
        .await?;
    Ok(dead)
}

async fn open(
    session: &dyn Session,
    queue: &str,
    limit: u64,
    folder: &Path,
) -> Result<Arc<dyn Look>> {
    let request = LookRequest {
        keeper: Arc::new(FileKeeper::new(folder)?),
        ..LookRequest::new(limit)
    };
    Ok(session.look(&Address::queue(queue), request).await?)
}

async fn read(look: &dyn Look) -> Result<Vec<Delivery>> {
    let (mut seen, cancel) = (Vec::new(), CancellationToken::new());
    loop {
        let page = look.next(500, &cancel).await?;
        seen.extend(page.deliveries);
        if page.end {
            return Ok(seen);
        }
    }
}

fn numbers(seen: &[Delivery]) -> Vec<usize> {
    seen.iter()
        .filter_map(|delivery| {
            std::str::from_utf8(delivery.message.body.as_deref()?)
                .ok()?
                .parse()
                .ok()
        })
        .collect()
}

/// Saves the numbers in a file, and syncs it each time as the engine does.
#[derive(Debug)]
struct FileKeeper {
    file: Mutex<(std::fs::File, usize)>,
}

impl FileKeeper {
    fn new(folder: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(saved_file(folder))?;
        Ok(Self {
            file: Mutex::new((file, 0)),
        })
    }
}

#[async_trait]
impl Keeper for FileKeeper {
    async fn keep(&self, delivery: &Delivery) -> dlo_core::Result<()> {
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, count) = &mut *guard;
        let body = delivery.message.body.clone().unwrap_or_default();
        let written = file
            .write_all(&body)
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.sync_data());
        *count += 1;
        println!("rescued {count}");
        written.map_err(|error| {
            dlo_core::Error::new(ErrorKind::Unexpected, "save the message", error.to_string())
        })
    }
}

fn saved_file(folder: &Path) -> PathBuf {
    folder.join("saved")
}

fn saved(folder: &Path) -> Result<BTreeSet<usize>> {
    let text = std::fs::read_to_string(saved_file(folder)).unwrap_or_default();
    text.lines().map(|line| Ok(line.parse()?)).collect()
}
