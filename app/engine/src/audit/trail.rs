//! Reading the audit trail: filters, pages, export, and the check of its chain.

use std::collections::HashMap;
use std::io::Write;

use jiff::Timestamp;
use rusqlite::{Connection, Row};

use super::captures::page;
use super::entry::{self, Fields, GENESIS, Lines, RUN};
use super::filter::Conditions;
use super::journal::{RUN_COLUMNS, read_run};
use super::{Act, AuditError, AuditLog, Outcome, Run, RunId};

/// Which entries stand for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// One for each message, its newest; and one for each run that had no messages, such as a purge.
    #[default]
    Messages,
    /// Every entry: each run's begin and end, each intent, each step.
    Steps,
    /// One for each run, whatever became of its messages.
    Runs,
}

/// Which entries; everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// One entry a message, or all of them.
    pub view: View,
    /// By this person, exactly as recorded.
    pub who: Option<String>,
    /// Of runs that do this.
    pub act: Option<Act>,
    /// On this profile.
    pub profile: Option<String>,
    /// About messages of this destination, or sent to it.
    pub destination: Option<String>,
    /// With this text in who, why, profile, destination, target, position, hash or answer.
    pub text: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
    /// Of this run.
    pub run: Option<RunId>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// About a message with a body of this hash.
    pub sha256: Option<String>,
    /// At most so many; `None` for all.
    pub limit: Option<u32>,
    /// Without the first so many.
    pub offset: u64,
}

/// One entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Its number in the chain, from 1 on.
    pub id: i64,
    /// When.
    pub time: Timestamp,
    /// Who.
    pub who: String,
    /// The reason given.
    pub why: Option<String>,
    /// What the run does.
    pub act: Act,
    /// On which profile.
    pub profile: String,
    /// About which destination's messages.
    pub destination: String,
    /// Which run.
    pub run: RunId,
    /// Which message of it; `None` for the run itself.
    pub seq: Option<u64>,
    /// How many messages the run has, when this is about the run itself.
    pub total: Option<u64>,
    /// Where the message lay, as JSON text.
    pub position: Option<String>,
    /// SHA-256 of its body in hex.
    pub sha256: Option<String>,
    /// Where it went or was to go.
    pub target: Option<String>,
    /// What happened.
    pub outcome: Outcome,
    /// What the broker answered.
    pub detail: Option<String>,
    /// Where the copy landed, as JSON text.
    pub landed: Option<String>,
    /// The entry's hash in hex.
    pub hash: String,
    /// The entry as one line of JSON, in the form of an export.
    pub line: String,
}

/// What the check of the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// Every entry is as it was written.
    Intact {
        /// How many there are.
        entries: u64,
        /// The newest hash in hex. Noted somewhere else, it proves later that nothing up to here
        /// was rewritten.
        head: String,
    },
    /// From this entry on the trail is not as it was written.
    Broken {
        /// The entry's number.
        at: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl AuditLog {
    /// A page of entries, newest first.
    pub async fn query(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, AuditError> {
        self.read(move |connection| {
            let mut entries = Vec::new();
            each(connection, &filter, Order::NewestFirst, |entry| {
                entries.push(entry);
                Ok(())
            })?;
            Ok(entries)
        })
        .await
    }

    /// How many entries the filter lets through, whatever its page.
    pub async fn count(&self, filter: AuditFilter) -> Result<u64, AuditError> {
        self.read_apart(move |connection| {
            let conditions = conditions(&filter);
            let sql = format!("SELECT count(*) {FROM} {}", conditions.clause());
            let mut count = connection.prepare(&sql)?;
            Ok(count.query_row(conditions.values(), |row| entry::unsigned(row, 0))?)
        })
        .await
    }

    /// Writes entries as one JSON object a line, oldest first, and gives their number.
    ///
    /// With [`View::Steps`] and no other filter the export is the whole chain and can be checked
    /// without this program; the form of a line is described in the source of `audit/entry.rs`.
    pub async fn export<W>(&self, filter: AuditFilter, mut out: W) -> Result<u64, AuditError>
    where
        W: Write + Send + 'static,
    {
        self.read_apart(move |connection| {
            let mut count = 0;
            each(connection, &filter, Order::OldestFirst, |entry| {
                count += 1;
                out.write_all(entry.line.as_bytes())
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(writing)
            })?;
            out.flush().map_err(writing)?;
            Ok(count)
        })
        .await
    }

    /// Checks every entry against the chain of hashes, every run against the entry that began it,
    /// and every saved copy against the hash in its entry.
    pub async fn verify(&self) -> Result<Verified, AuditError> {
        self.read_apart(|connection| {
            // One view of the database throughout, although others go on writing.
            let snapshot = connection.unchecked_transaction()?;
            verify(&snapshot)
        })
        .await
    }
}

fn writing(error: std::io::Error) -> AuditError {
    AuditError::Io {
        doing: "writing the export".to_owned(),
        reason: error.to_string(),
    }
}

enum Order {
    NewestFirst,
    OldestFirst,
}

/// An entry, its run, and the entry that began the message (or the run): the first of its number.
const FROM: &str = "FROM entry JOIN run ON run.id = entry.run_id
    JOIN entry AS intent ON intent.id =
      (SELECT min(id) FROM entry AS i WHERE i.run_id = entry.run_id AND i.seq = entry.seq)";

const NEWEST: &str = "entry.id =
    (SELECT max(id) FROM entry AS n WHERE n.run_id = entry.run_id AND n.seq = entry.seq)
    AND (entry.seq >= 0 OR NOT EXISTS
      (SELECT 1 FROM entry AS m WHERE m.run_id = entry.run_id AND m.seq >= 0))";

const LAST_OF_RUN: &str = "entry.seq < 0 AND entry.id =
    (SELECT max(id) FROM entry AS n WHERE n.run_id = entry.run_id AND n.seq = entry.seq)";

fn conditions(filter: &AuditFilter) -> Conditions {
    let micros = |time: &Timestamp| time.as_microsecond();
    let conditions = Conditions::default()
        .equal("coalesce(entry.who, run.who)", filter.who.clone())
        .equal("run.act", filter.act)
        .equal("run.profile", filter.profile.clone())
        .either(
            ["run.destination", "intent.target"],
            filter.destination.clone(),
        )
        .contains(TEXT, filter.text.as_deref())
        .compare("entry.time >=", filter.since.as_ref().map(micros))
        .compare("entry.time <", filter.until.as_ref().map(micros))
        .equal("run.run", filter.run.clone())
        .equal("entry.outcome", filter.outcome)
        .within(
            "(entry.run_id, entry.seq) IN (SELECT run_id, seq FROM entry WHERE sha256_key =",
            filter.sha256.as_deref().map(entry::sha256_key),
        )
        .equal("intent.sha256", filter.sha256.clone());
    match filter.view {
        View::Messages => conditions.and(NEWEST),
        View::Steps => conditions,
        View::Runs => conditions.and(LAST_OF_RUN),
    }
}

const TEXT: &[&str] = &[
    "entry.who",
    "run.who",
    "run.why",
    "run.profile",
    "run.destination",
    "intent.target",
    "intent.position",
    "intent.sha256",
    "entry.detail",
    "entry.position",
];

/// The columns of an entry, after those of its run.
const ENTRY_COLUMNS: &str = "entry.id, entry.seq, entry.time, entry.outcome, entry.position, \
    entry.sha256, entry.target, entry.capture, entry.detail, entry.who, entry.hash";

fn each(
    connection: &Connection,
    filter: &AuditFilter,
    order: Order,
    mut take: impl FnMut(AuditEntry) -> Result<(), AuditError>,
) -> Result<(), AuditError> {
    let conditions = conditions(filter);
    let order = match order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    };
    let sql = format!(
        "SELECT {RUN_COLUMNS}, {ENTRY_COLUMNS}, intent.position, intent.sha256, intent.target
         {FROM} {} ORDER BY entry.id {order} {}",
        conditions.clause(),
        page(filter.limit, filter.offset)
    );
    let mut rows = connection.prepare_cached(&sql)?;
    let mut rows = rows.query(conditions.values())?;
    let mut lines = LineCache::default();
    while let Some(row) = rows.next()? {
        let (run_id, run) = read_run(row)?;
        let stored = Stored::read(row)?;
        let canonical = lines.canonical(run_id, &run, &stored);
        let intent = [row.get(27)?, row.get(28)?, row.get(29)?];
        take(shown(run, stored, intent, canonical))?;
    }
    Ok(())
}

/// An entry as the database has it.
struct Stored {
    id: i64,
    seq: i64,
    micros: i64,
    outcome: Outcome,
    position: Option<String>,
    sha256: Option<String>,
    target: Option<String>,
    capture: Option<String>,
    detail: Option<String>,
    who: Option<String>,
    hash: Vec<u8>,
}

impl Stored {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(16)?,
            seq: row.get(17)?,
            micros: row.get(18)?,
            outcome: row.get(19)?,
            position: row.get(20)?,
            sha256: row.get(21)?,
            target: row.get(22)?,
            capture: row.get(23)?,
            detail: row.get(24)?,
            who: row.get(25)?,
            hash: row.get(26)?,
        })
    }

    fn fields(&self) -> Fields<'_> {
        Fields {
            seq: self.seq,
            position: self.position.as_deref(),
            sha256: self.sha256.as_deref(),
            target: self.target.as_deref(),
            capture: self.capture.as_deref(),
            detail: self.detail.as_deref(),
            who: self.who.as_deref(),
        }
    }
}

/// Remembers what the lines of one run have in common; entries of a run mostly follow each other.
#[derive(Default)]
struct LineCache(HashMap<i64, Lines>);

impl LineCache {
    fn canonical(&mut self, run_id: i64, run: &Run, entry: &Stored) -> String {
        if self.0.len() > 100 {
            self.0.clear();
        }
        let lines = self
            .0
            .entry(run_id)
            .or_insert_with(|| Lines::new(run, entry.micros));
        lines.at(entry.micros);
        lines.build(entry.outcome, &entry.fields()).to_owned()
    }
}

fn shown(
    run: Run,
    stored: Stored,
    [position, sha256, target]: [Option<String>; 3],
    canonical: String,
) -> AuditEntry {
    let is_first = stored.sha256.is_some() || stored.seq == RUN;
    let hash = entry::hex(&stored.hash);
    let target = target.or(run.target);
    let mut line = canonical;
    line.pop();
    line.push_str(&format!(",\"hash\":\"{hash}\""));
    let json = |text: &String| entry::quoted(text);
    let rest = [
        ("position", stored.sha256.is_none(), position.clone()),
        ("sha256", stored.sha256.is_none(), sha256.as_ref().map(json)),
        ("target", stored.target.is_none(), target.as_ref().map(json)),
    ];
    for (name, _, value) in rest.into_iter().filter(|(_, is_missing, _)| *is_missing) {
        line.push_str(&format!(
            ",\"{name}\":{}",
            value.as_deref().unwrap_or("null")
        ));
    }
    line.push('}');
    AuditEntry {
        id: stored.id,
        time: entry::timestamp(stored.micros),
        who: stored.who.unwrap_or(run.who),
        why: run.why,
        act: run.act,
        profile: run.profile,
        destination: run.destination,
        run: run.run,
        seq: u64::try_from(stored.seq).ok(),
        total: (stored.seq == RUN).then_some(run.total),
        position,
        sha256,
        target,
        outcome: stored.outcome,
        detail: stored.detail,
        landed: stored.position.filter(|_| !is_first),
        hash,
        line,
    }
}

fn verify(connection: &Connection) -> Result<Verified, AuditError> {
    let sql = format!(
        "SELECT {RUN_COLUMNS}, {ENTRY_COLUMNS}, run.plan, capture.line
         FROM entry LEFT JOIN run ON run.id = entry.run_id
         LEFT JOIN capture ON capture.id = entry.id ORDER BY entry.id"
    );
    let mut rows = connection.prepare(&sql)?;
    let mut rows = rows.query([])?;
    let mut lines = LineCache::default();
    let (mut entries, mut hash) = (0, GENESIS);
    while let Some(row) = rows.next()? {
        entries += 1;
        match check(row, &mut lines, (entries, &hash)) {
            Ok(next) => hash = next,
            Err(reason) => return Ok(broken(entries, &reason)),
        }
    }
    let (noted, head) = entry::head(connection)?;
    if noted != entries || head != hash {
        let reason = format!("{noted} entries were written, {entries} are here");
        return Ok(broken(entries + 1, &reason));
    }
    Ok(Verified::Intact {
        entries: entries.unsigned_abs(),
        head: entry::hex(&hash),
    })
}

fn broken(at: i64, reason: &str) -> Verified {
    Verified::Broken {
        at: at.unsigned_abs(),
        reason: reason.to_owned(),
    }
}

/// The hash of one entry, or what is wrong with it.
fn check(
    row: &Row<'_>,
    lines: &mut LineCache,
    (number, previous): (i64, &[u8; 32]),
) -> Result<[u8; 32], String> {
    let damaged = |error: rusqlite::Error| format!("it cannot be read: {error}");
    let (run_id, run) = read_run(row).map_err(damaged)?;
    let stored = Stored::read(row).map_err(damaged)?;
    if stored.id != number {
        return Err(format!("entry {number} is missing"));
    }
    let hash = entry::link(previous, &lines.canonical(run_id, &run, &stored));
    if hash[..] != stored.hash[..] {
        return Err("it is not as it was written".to_owned());
    }
    if stored.outcome == Outcome::Open {
        let plan: String = row.get(27).map_err(damaged)?;
        check_run(&run, &stored, &plan)?;
    }
    let capture: Option<String> = row.get(28).map_err(damaged)?;
    check_capture(&stored, capture.as_deref())?;
    Ok(hash)
}

/// Facts of a run that are not part of every line, but only of the one that began it.
fn check_run(run: &Run, stored: &Stored, plan: &str) -> Result<(), String> {
    let same = stored.detail.as_deref() == Some(&*entry::run_detail(run.total, plan))
        && stored.target == run.target
        && entry::timestamp(stored.micros) == run.started;
    match same {
        true => Ok(()),
        false => Err("its run's plan, target, total or start was changed".to_owned()),
    }
}

/// A copy that was thrown away is no damage; one that differs from its hash is.
fn check_capture(stored: &Stored, capture: Option<&str>) -> Result<(), String> {
    let hash = capture.map(|line| entry::hex(&entry::sha256(line.as_bytes())));
    match hash.is_none() || hash == stored.capture {
        true => Ok(()),
        false => Err("its saved copy was changed".to_owned()),
    }
}
