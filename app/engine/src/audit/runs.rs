//! Reading runs: the list, one run's messages, and what a crash left open.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::journal::{RUN_COLUMNS, find_run, number, read_run};
use super::{
    AuditError, AuditLog, OpenRun, Outcome, Run, RunId, RunMessage, RunState, Stage, entry, owner,
};

/// How many messages of a run have which newest outcome.
pub type Outcomes = BTreeMap<Outcome, u64>;

/// A run with its messages counted.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RunSummary {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Its messages by their newest outcome.
    pub outcomes: Outcomes,
    /// It is open, and the process that ran it is dead: see [`AuditLog::open_runs`].
    pub crashed: bool,
}

/// Which messages of a run, and how many at once.
#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    /// Only those that got this far.
    pub stage: Option<Stage>,
    /// Only those with this as their newest outcome.
    pub outcome: Option<Outcome>,
    /// Only those with a number above this one: the last of the page before.
    pub after: Option<u64>,
    /// At most so many; `None` for all.
    pub limit: Option<u32>,
}

impl AuditLog {
    /// One run.
    pub async fn run(&self, run: &RunId) -> Result<Run, AuditError> {
        let run = run.clone();
        self.read(move |connection| Ok(find_run(connection, &run)?.1))
            .await
    }

    /// The plan that the run began with, as JSON text.
    pub async fn plan(&self, run: &RunId) -> Result<String, AuditError> {
        let run = run.clone();
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT plan FROM run WHERE run = ?1")?
                .query_row([&run], |row| row.get(0))
                .optional()?
                .ok_or_else(|| AuditError::no_run(&run))
        })
        .await
    }

    /// Runs, newest first, with their messages counted.
    pub async fn runs(&self, limit: u32, offset: u64) -> Result<Vec<RunSummary>, AuditError> {
        let offset = number(offset)?;
        let owners = self.owners_folder().to_owned();
        self.read(move |connection| {
            let sql = format!(
                "SELECT {RUN_COLUMNS}, outcomes FROM run ORDER BY id DESC LIMIT ?1 OFFSET ?2"
            );
            let mut rows = connection.prepare_cached(&sql)?;
            let rows = rows.query_map(params![limit, offset], |row| {
                Ok((read_run(row)?, row.get::<_, Option<String>>(16)?))
            })?;
            rows.map(|row| {
                let ((id, run), counted) = row?;
                let outcomes = outcomes(connection, id, counted.as_deref())?;
                Ok(summary(&owners, run, outcomes))
            })
            .collect()
        })
        .await
    }

    /// One run with its messages counted.
    pub async fn run_summary(&self, run: &RunId) -> Result<RunSummary, AuditError> {
        let run = run.clone();
        let owners = self.owners_folder().to_owned();
        self.read(move |connection| {
            let (id, run) = find_run(connection, &run)?;
            let outcomes = count(connection, id)?;
            Ok(summary(&owners, run, outcomes))
        })
        .await
    }

    /// Runs that have no end and whose process is dead, oldest first, with what is known of their
    /// messages. Runs of another living dlo (a second window, a command line) are not among them.
    pub async fn open_runs(&self) -> Result<Vec<OpenRun>, AuditError> {
        let owners = self.owners_folder().to_owned();
        self.read(move |connection| {
            let sql = format!("SELECT {RUN_COLUMNS} FROM run WHERE state = 'open' ORDER BY id");
            let mut open = connection.prepare_cached(&sql)?;
            let open = open.query_map([], read_run)?;
            let mut found = Vec::new();
            for known in open {
                let (id, run) = known?;
                if !owner::is_alive(&owners, &run.owner.id) {
                    found.push(interrupted(run, &count(connection, id)?));
                }
            }
            Ok(found)
        })
        .await
    }

    /// The messages of a run in the order of their numbers, each with its newest outcome.
    pub async fn messages(
        &self,
        run: &RunId,
        filter: MessageFilter,
    ) -> Result<Vec<RunMessage>, AuditError> {
        let run = run.clone();
        self.read(move |connection| messages(connection, &run, &filter))
            .await
    }
}

fn summary(owners: &Path, run: Run, outcomes: Outcomes) -> RunSummary {
    let crashed = run.state == RunState::Open && !owner::is_alive(owners, &run.owner.id);
    RunSummary {
        run,
        outcomes,
        crashed,
    }
}

fn interrupted(run: Run, outcomes: &Outcomes) -> OpenRun {
    let count = |stage| {
        let of_stage = outcomes
            .iter()
            .filter(|(outcome, _)| outcome.stage() == stage);
        of_stage.map(|(_, count)| count).sum()
    };
    OpenRun {
        not_started: count(Stage::NotStarted),
        done: count(Stage::Done),
        unknown: count(Stage::Unknown),
        run,
    }
}

/// Counts the messages of a run by their newest outcome.
pub(super) fn count(connection: &Connection, id: i64) -> Result<Outcomes, AuditError> {
    let mut counts = connection.prepare_cached(
        "SELECT newest.outcome, count(*)
         FROM (SELECT max(id) AS id FROM entry WHERE run_id = ?1 AND seq >= 0 GROUP BY seq) AS each
         CROSS JOIN entry AS newest ON newest.id = each.id GROUP BY newest.outcome",
    )?;
    let counts = counts.query_map([id], |row| Ok((row.get(0)?, entry::unsigned(row, 1)?)))?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

/// Counts as they are kept in a run that has ended.
pub(super) fn to_text(outcomes: &Outcomes) -> String {
    let words: Vec<String> = outcomes
        .iter()
        .map(|(outcome, count)| format!("{outcome} {count}"))
        .collect();
    words.join(",")
}

fn outcomes(
    connection: &Connection,
    id: i64,
    counted: Option<&str>,
) -> Result<Outcomes, AuditError> {
    match counted.and_then(from_text) {
        Some(outcomes) => Ok(outcomes),
        None => count(connection, id),
    }
}

fn from_text(text: &str) -> Option<Outcomes> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (outcome, count) = word.rsplit_once(' ')?;
            Some((outcome.parse().ok()?, count.parse().ok()?))
        })
        .collect()
}

/// Joins a message's intent with its newest entry. What the broker answered and where the copy
/// landed may have been said by an earlier step than the newest one, so the newest that says it
/// counts.
fn messages(
    connection: &Connection,
    run: &RunId,
    filter: &MessageFilter,
) -> Result<Vec<RunMessage>, AuditError> {
    let (id, _) = find_run(connection, run)?;
    let mut rows = connection.prepare_cached(
        "SELECT intent.seq, intent.position, intent.sha256, intent.target, newest.outcome,
           newest.time,
           (SELECT detail FROM entry WHERE run_id = intent.run_id AND seq = intent.seq
             AND detail IS NOT NULL ORDER BY id DESC LIMIT 1),
           (SELECT position FROM entry WHERE run_id = intent.run_id AND seq = intent.seq
             AND sha256 IS NULL AND position IS NOT NULL ORDER BY id DESC LIMIT 1),
           capture.id
         FROM entry AS intent
         CROSS JOIN entry AS newest ON newest.id =
           (SELECT max(id) FROM entry WHERE run_id = intent.run_id AND seq = intent.seq)
         LEFT JOIN capture ON capture.id = intent.id
         WHERE intent.run_id = ?1 AND intent.seq > ?2 AND intent.sha256 IS NOT NULL
         ORDER BY intent.seq",
    )?;
    let after = filter.after.map_or(Ok(-1), number)?;
    let rows = rows.query_map([id, after], read_message)?;
    let chosen = rows.filter(|message| message.as_ref().map_or(true, |m| filter.takes(m)));
    let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(chosen.take(limit).collect::<rusqlite::Result<_>>()?)
}

impl MessageFilter {
    fn takes(&self, message: &RunMessage) -> bool {
        let outcome = message.outcome;
        self.stage.is_none_or(|stage| outcome.stage() == stage)
            && self.outcome.is_none_or(|wanted| outcome == wanted)
    }
}

fn read_message(row: &Row<'_>) -> rusqlite::Result<RunMessage> {
    Ok(RunMessage {
        seq: entry::unsigned(row, 0)?,
        position: row.get(1)?,
        sha256: row.get(2)?,
        target: row.get(3)?,
        outcome: row.get(4)?,
        time: entry::timestamp(row.get(5)?),
        detail: row.get(6)?,
        landed: row.get(7)?,
        capture: row.get(8)?,
    })
}
