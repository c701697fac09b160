//! The threads that own the SQLite connections, and the way work gets to them.
//!
//! One thread writes: it takes every job that waits, runs them in one transaction with one `fsync`,
//! and answers each only after the commit. Another thread reads on a connection of its own, so that
//! a long query never delays a journal write (WAL: readers do not block the writer, see
//! <https://sqlite.org/wal.html>). Nothing here knows what is read or written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{mpsc, oneshot};

use super::{AuditError, Fault, schema};

/// How long a write waits for another process to finish its own before it gives up.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Jobs that may wait; a sender beyond that waits itself, which slows the replay and not the disk.
const QUEUE: usize = 256;

/// The most jobs that share one transaction.
const GROUP: usize = 64;

const ROLLED_BACK: &str = "another entry failed and took this one with it; try again";

/// Runs with the open transaction, or with the reason why there is none; gives back whether the
/// transaction may stay, and what to do with its end.
type WriteJob = Box<dyn FnOnce(Result<(&Connection, Alone), AuditError>) -> Written + Send>;

struct Written {
    failed: bool,
    answer: Box<dyn FnOnce(Result<(), AuditError>)>,
}

/// Whether a job has a transaction to itself.
#[derive(Clone, Copy)]
enum Alone {
    /// If it fails, the whole transaction is rolled back.
    Yes,
    /// If it fails, only its own changes are, which a savepoint costs something for.
    No,
}
type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

/// What the writer is asked for.
enum Request {
    Write(WriteJob),
    Fault(Option<Fault>, oneshot::Sender<Result<(), AuditError>>),
}

/// Sends work to the two threads.
#[derive(Debug)]
pub(super) struct Workers {
    path: PathBuf,
    write: mpsc::Sender<Request>,
    read: mpsc::Sender<ReadJob>,
}

impl Workers {
    /// Opens the database, migrates it and starts both threads.
    pub(super) fn start(path: &Path) -> Result<Self, AuditError> {
        let writer = open_writer(path)?;
        let reader = open_reader(path)?;
        let (write, jobs) = mpsc::channel(QUEUE);
        spawn("dlo-journal", path, move || write_loop(writer, jobs))?;
        let (read, jobs) = mpsc::channel(QUEUE);
        spawn("dlo-journal-read", path, move || read_loop(&reader, jobs))?;
        Ok(Self {
            path: path.to_owned(),
            write,
            read,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on the writer thread inside a transaction. `Ok` means that it is on the disk.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let job: WriteJob = Box::new(move |connection| {
            let result = connection.and_then(|(connection, alone)| match alone {
                Alone::Yes => work(connection),
                Alone::No => in_savepoint(connection, work),
            });
            Written {
                failed: result.is_err(),
                // A receiver that is gone has been cancelled; what was written stays written.
                answer: Box::new(move |end| {
                    let _ = answer.send(result.and_then(|value| end.map(|()| value)));
                }),
            }
        });
        self.ask(Request::Write(job)).await?;
        wait.await.map_err(|_| AuditError::Closed)?
    }

    /// Makes writes fail, or work again.
    pub(super) async fn inject(&self, fault: Option<Fault>) -> Result<(), AuditError> {
        let (answer, wait) = oneshot::channel();
        self.ask(Request::Fault(fault, answer)).await?;
        wait.await.map_err(|_| AuditError::Closed)?
    }

    async fn ask(&self, request: Request) -> Result<(), AuditError> {
        self.write
            .send(request)
            .await
            .map_err(|_| AuditError::Closed)
    }

    /// Runs `work` on the reader thread.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let job: ReadJob = Box::new(move |connection| {
            let _ = answer.send(work(connection));
        });
        self.read.send(job).await.map_err(|_| AuditError::Closed)?;
        wait.await.map_err(|_| AuditError::Closed)?
    }

    /// Runs `work` on a thread and a connection of its own, for what takes seconds: an export of
    /// everything, or checking the whole chain.
    pub(super) async fn read_apart<T, F>(&self, work: F) -> Result<T, AuditError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, AuditError> + Send + 'static,
    {
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || work(&open_reader(&path)?))
            .await
            .map_err(|_| AuditError::Closed)?
    }
}

fn spawn(name: &str, path: &Path, work: impl FnOnce() + Send + 'static) -> Result<(), AuditError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(|_| ())
        .map_err(|error| AuditError::Io {
            doing: format!("starting a thread for the journal {}", path.display()),
            reason: error.to_string(),
        })
}

fn open_writer(path: &Path) -> Result<Connection, AuditError> {
    let opening = |error| AuditError::opening(path, error);
    let mut connection = Connection::open(path).map_err(opening)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(opening)?;
    use_wal(&connection).map_err(opening)?;
    connection
        .execute_batch(
            // FULL: a commit is on the disk before the act that it announces begins. A checkpoint
            // each 64 MB instead of each 4 MB, because a replay writes a copy of every message.
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 8000;
             PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY;
             PRAGMA journal_size_limit = 67108864;",
        )
        .map_err(opening)?;
    connection.set_prepared_statement_cache_capacity(64);
    schema::migrate(path, &mut connection)?;
    Ok(connection)
}

/// Switching an empty file to WAL needs it alone for a moment, and SQLite does not use the busy
/// timeout there when two processes try at once.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", 8192)?;
    let mut tries = 0;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if tries < 50
                    && error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
            {
                tries += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

fn open_reader(path: &Path) -> Result<Connection, AuditError> {
    let opening = |error| AuditError::opening(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(opening)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(opening)?;
    connection
        .execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000;")
        .map_err(opening)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn read_loop(connection: &Connection, mut jobs: mpsc::Receiver<ReadJob>) {
    while let Some(job) = jobs.blocking_recv() {
        job(connection);
    }
}

fn write_loop(connection: Connection, mut jobs: mpsc::Receiver<Request>) {
    let mut group = Vec::new();
    while let Some(first) = jobs.blocking_recv() {
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Write(job) => group.push(job),
                Request::Fault(fault, answer) => {
                    write_group(&connection, std::mem::take(&mut group));
                    let _ = answer.send(set_fault(&connection, fault));
                }
            }
            next = match group.len() < GROUP {
                true => jobs.try_recv().ok(),
                false => None,
            };
        }
        write_group(&connection, std::mem::take(&mut group));
    }
}

/// Both faults are SQLite's own, so that the errors are those of a real disk.
fn set_fault(connection: &Connection, fault: Option<Fault>) -> Result<(), AuditError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = match fault {
        Some(Fault::DiskFull) => number("page_count")?,
        _ => i64::from(u32::MAX - 1),
    };
    connection.pragma_update(None, "query_only", fault == Some(Fault::ReadOnly))?;
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    Ok(())
}

/// One transaction for all of them; a job that fails takes back only its own changes.
fn write_group(connection: &Connection, group: Vec<WriteJob>) {
    if group.is_empty() {
        return;
    }
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        let error = AuditError::from(error);
        for job in group {
            (job(Err(error.clone())).answer)(Ok(()));
        }
        return;
    }
    let alone = match group.len() {
        1 => Alone::Yes,
        _ => Alone::No,
    };
    let written: Vec<Written> = group
        .into_iter()
        .map(|job| job(Ok((connection, alone))))
        .collect();
    let end = match (alone, written.iter().any(|job| job.failed)) {
        (Alone::Yes, true) => roll_back(connection),
        _ => commit(connection),
    };
    for job in written {
        (job.answer)(end.clone());
    }
}

fn roll_back(connection: &Connection) -> Result<(), AuditError> {
    // SQLite itself may have done so already, for example when the disk is full.
    match connection.is_autocommit() {
        true => Ok(()),
        false => Ok(connection.execute_batch("ROLLBACK")?),
    }
}

fn commit(connection: &Connection) -> Result<(), AuditError> {
    // SQLite itself may have rolled the transaction back, for example when the disk is full.
    if connection.is_autocommit() {
        return Err(AuditError::Sqlite(ROLLED_BACK.to_owned()));
    }
    connection.execute_batch("COMMIT").map_err(|error| {
        // The error of the commit is the one to tell.
        let _ = roll_back(connection);
        AuditError::from(error)
    })
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, AuditError>,
) -> Result<T, AuditError> {
    if connection.is_autocommit() {
        return Err(AuditError::Sqlite(ROLLED_BACK.to_owned()));
    }
    connection.execute_batch("SAVEPOINT job")?;
    let result = work(connection);
    if !connection.is_autocommit() {
        let end = match &result {
            Ok(_) => "RELEASE job",
            Err(_) => "ROLLBACK TO job; RELEASE job",
        };
        connection.execute_batch(end)?;
    }
    result
}
