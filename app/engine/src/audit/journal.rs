//! Writing a run: begin, intend, record, finish.
//!
//! Each call is one transaction and returns when it is on the disk. The order is the caller's to
//! keep: intend before the act, record after each step, and the original is removed only after
//! `confirmed` has been recorded. So a crash can duplicate a message and never lose one.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::entry::{self, Chain, Fields, Lines, RUN};
use super::{
    AuditError, AuditLog, Decision, Intent, NewRun, Outcome, Owner, Reach, Run, RunId, RunState,
    Stage, Step, owner, redacted, runs,
};

impl AuditLog {
    /// Writes that a run begins, and with what plan.
    pub async fn begin(&self, new: NewRun) -> Result<RunId, AuditError> {
        let owner = self.owner().clone();
        self.write(move |connection| begin(connection, new, owner))
            .await
    }

    /// Writes what the run is about to do, with a copy of each message, before it does it.
    ///
    /// One transaction and one `fsync` for the whole batch: a batch of a few hundred costs little
    /// more than one message. Fails with [`AuditError::Invalid`] if a number was used before or a
    /// position is not JSON; then nothing of the batch is written, and the act must not happen.
    pub async fn intend(
        &self,
        run: &RunId,
        reach: Reach,
        intents: Vec<Intent>,
    ) -> Result<(), AuditError> {
        let (run, owner) = (run.clone(), self.owner().id.clone());
        self.write(move |connection| intend(connection, &run, &owner, reach, &intents))
            .await
    }

    /// Writes what has happened to messages of the run, again in one transaction.
    ///
    /// [`Outcome::Returned`] may also be recorded after the run has ended, by any process.
    pub async fn record(&self, run: &RunId, steps: Vec<Step>) -> Result<(), AuditError> {
        let (run, owner) = (run.clone(), self.owner().id.clone());
        self.write(move |connection| record(connection, &run, &owner, &steps))
            .await
    }

    /// Closes a run of this process.
    pub async fn finish(&self, run: &RunId, state: RunState) -> Result<(), AuditError> {
        let (run, owner) = (run.clone(), self.owner().id.clone());
        self.write(move |connection| finish(connection, &run, &owner, state))
            .await
    }

    /// Takes over a run whose process has died, to go on with it or to close it.
    ///
    /// Fails with [`AuditError::RunClosed`] if its process is alive or the run has ended.
    pub async fn adopt(&self, run: &RunId, who: &str) -> Result<(), AuditError> {
        let (run, who) = (run.clone(), who.to_owned());
        let (owner, owners) = (self.owner().clone(), self.owners_folder().to_owned());
        self.write(move |connection| {
            let (id, mut old) = open_run(connection, &run)?;
            refuse_living(&old, &owner.id, &owners)?;
            set_owner(connection, id, &owner)?;
            old.owner = owner;
            append_one(
                connection,
                (id, &old),
                Outcome::Adopted,
                &by(&who, RUN, None),
            )
        })
        .await
    }

    /// Writes what a person decided, and why, about a message of which nobody knows whether it was
    /// acted on.
    ///
    /// The message's newest outcome must be of [`Stage::Unknown`], and its run must have ended, or
    /// be this process's, or of a dead one.
    pub async fn resolve_unknown(
        &self,
        run: &RunId,
        seq: u64,
        decision: Decision,
        who: &str,
        why: &str,
    ) -> Result<(), AuditError> {
        let (run, who) = (run.clone(), who.to_owned());
        let detail = format!("decided by a person, because the outcome was unknown: {why}");
        let (owner, owners) = (self.owner().id.clone(), self.owners_folder().to_owned());
        self.write(move |connection| {
            let (id, facts) = find_run(connection, &run)?;
            if facts.state == RunState::Open {
                refuse_living(&facts, &owner, &owners)?;
            }
            let seq = number(seq)?;
            refuse_known(connection, id, seq)?;
            forget_counts(connection, id)?;
            let fields = by(&who, seq, Some(&detail));
            append_one(connection, (id, &facts), decision.outcome(), &fields)
        })
        .await
    }
}

/// A run with its number in the database.
pub(super) type Known = (i64, Run);

/// The columns that [`read_run`] needs, in its order.
pub(super) const RUN_COLUMNS: &str = "run.id, run.run, run.act, run.profile, run.destination, \
    run.target, run.who, run.why, run.total, run.started, run.finished, run.state, run.owner, \
    run.pid, run.process_started, run.host";

pub(super) fn read_run(row: &Row<'_>) -> rusqlite::Result<Known> {
    let run = Run {
        run: row.get(1)?,
        act: row.get(2)?,
        profile: row.get(3)?,
        destination: row.get(4)?,
        target: row.get(5)?,
        who: row.get(6)?,
        why: row.get(7)?,
        total: entry::unsigned(row, 8)?,
        started: entry::timestamp(row.get(9)?),
        finished: row.get::<_, Option<i64>>(10)?.map(entry::timestamp),
        state: row.get(11)?,
        owner: Owner {
            id: row.get(12)?,
            pid: row.get(13)?,
            process_started: row.get(14)?,
            host: row.get(15)?,
        },
    };
    Ok((row.get(0)?, run))
}

pub(super) fn find_run(connection: &Connection, run: &RunId) -> Result<Known, AuditError> {
    connection
        .prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM run WHERE run = ?1"))?
        .query_row([run], read_run)
        .optional()?
        .ok_or_else(|| AuditError::no_run(run))
}

/// A message's number as SQLite keeps it.
pub(super) fn number(seq: u64) -> Result<i64, AuditError> {
    i64::try_from(seq).map_err(|_| AuditError::Invalid(format!("{seq} is too large a number")))
}

fn begin(connection: &Connection, new: NewRun, owner: Owner) -> Result<RunId, AuditError> {
    check_json("plan", &new.plan)?;
    let now = entry::now();
    let run = Run {
        run: RunId::new(),
        act: new.act,
        profile: redacted(&new.profile),
        destination: new.destination,
        target: new.target,
        who: new.who,
        why: new.why,
        total: new.total,
        started: entry::timestamp(now),
        finished: None,
        state: RunState::Open,
        owner,
    };
    let id = insert_run(connection, &run, &new.plan, now)?;
    let detail = entry::run_detail(run.total, &new.plan);
    let fields = Fields {
        seq: RUN,
        target: run.target.as_deref(),
        detail: Some(&detail),
        ..Fields::default()
    };
    append_at(connection, (id, &run), now, Outcome::Open, &fields)?;
    Ok(run.run)
}

fn insert_run(connection: &Connection, run: &Run, plan: &str, now: i64) -> Result<i64, AuditError> {
    connection
        .prepare_cached(
            "INSERT INTO run (run, act, profile, destination, target, who, why, plan, total,
             started, state, owner, pid, process_started, host)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            run.run,
            run.act,
            run.profile,
            run.destination,
            run.target,
            run.who,
            run.why,
            plan,
            number(run.total)?,
            now,
            run.state,
            run.owner.id,
            run.owner.pid,
            run.owner.process_started,
            run.owner.host,
        ])?;
    Ok(connection.last_insert_rowid())
}

fn intend(
    connection: &Connection,
    run: &RunId,
    owner: &str,
    reach: Reach,
    intents: &[Intent],
) -> Result<(), AuditError> {
    let (id, facts) = own_run(connection, run, owner)?;
    refuse_repeated(connection, id, intents)?;
    let outcome = match reach {
        Reach::Planned => Outcome::Planned,
        Reach::Started => Outcome::Started,
    };
    let now = entry::now();
    let mut lines = Lines::new(&facts, now);
    let mut chain = Chain::open(connection)?;
    let mut save = connection.prepare_cached("INSERT INTO capture (id, line) VALUES (?1, ?2)")?;
    for intent in intents {
        check_json("position", &intent.position)?;
        let capture = intent.capture.as_deref();
        let hash = capture.map(|line| entry::hex(&entry::sha256(line.as_bytes())));
        let fields = Fields {
            seq: number(intent.seq)?,
            position: Some(&intent.position),
            sha256: Some(&intent.sha256),
            target: intent.target.as_deref(),
            capture: hash.as_deref(),
            ..Fields::default()
        };
        let entry = chain.append(&mut lines, (id, now), outcome, &fields)?;
        if let Some(line) = capture {
            save.execute(params![entry, line])?;
        }
    }
    chain.close()
}

fn record(
    connection: &Connection,
    run: &RunId,
    owner: &str,
    steps: &[Step],
) -> Result<(), AuditError> {
    let late = steps.iter().all(|step| step.outcome == Outcome::Returned);
    let (id, facts) = match late {
        true => find_run(connection, run)?,
        false => own_run(connection, run, owner)?,
    };
    let now = entry::now();
    let mut lines = Lines::new(&facts, now);
    let mut chain = Chain::open(connection)?;
    for step in steps {
        if let Some(position) = &step.position {
            check_json("position", position)?;
        }
        let fields = Fields {
            seq: number(step.seq)?,
            position: step.position.as_deref(),
            detail: step.detail.as_deref(),
            ..Fields::default()
        };
        chain.append(&mut lines, (id, now), step.outcome.for_message()?, &fields)?;
    }
    if facts.state != RunState::Open {
        forget_counts(connection, id)?;
    }
    chain.close()
}

fn finish(
    connection: &Connection,
    run: &RunId,
    owner: &str,
    state: RunState,
) -> Result<(), AuditError> {
    if state == RunState::Open {
        return Err(AuditError::Invalid("a run is not finished as open".into()));
    }
    let (id, facts) = own_run(connection, run, owner)?;
    let now = entry::now();
    let fields = Fields {
        seq: RUN,
        ..Fields::default()
    };
    append_at(connection, (id, &facts), now, state.outcome(), &fields)?;
    let outcomes = runs::count(connection, id)?;
    connection
        .prepare_cached("UPDATE run SET state = ?2, finished = ?3, outcomes = ?4 WHERE id = ?1")?
        .execute(params![id, state, now, runs::to_text(&outcomes)])?;
    Ok(())
}

/// The run, if it is open.
fn open_run(connection: &Connection, run: &RunId) -> Result<Known, AuditError> {
    let known = find_run(connection, run)?;
    match known.1.state {
        RunState::Open => Ok(known),
        state => Err(closed(run, &format!("has ended ({state})"))),
    }
}

/// The run, if it is open and this process's.
fn own_run(connection: &Connection, run: &RunId, owner: &str) -> Result<Known, AuditError> {
    let known = open_run(connection, run)?;
    match known.1.owner.id == owner {
        true => Ok(known),
        false => Err(closed(
            run,
            "belongs to another dlo; adopt it first if that one has died",
        )),
    }
}

fn closed(run: &RunId, reason: &str) -> AuditError {
    AuditError::RunClosed {
        run: run.to_string(),
        reason: reason.to_owned(),
    }
}

fn refuse_living(run: &Run, owner: &str, owners: &std::path::Path) -> Result<(), AuditError> {
    if run.owner.id == owner || !owner::is_alive(owners, &run.owner.id) {
        return Ok(());
    }
    let (pid, host) = (run.owner.pid, &run.owner.host);
    Err(closed(
        &run.run,
        &format!("is being worked on by another dlo (process {pid} on {host})"),
    ))
}

fn refuse_known(connection: &Connection, id: i64, seq: i64) -> Result<(), AuditError> {
    let newest: Option<Outcome> = connection
        .prepare_cached(
            "SELECT outcome FROM entry WHERE run_id = ?1 AND seq = ?2 ORDER BY id DESC LIMIT 1",
        )?
        .query_row([id, seq], |row| row.get(0))
        .optional()?;
    match newest {
        None => Err(AuditError::NotFound {
            what: format!("message {seq} of this run"),
        }),
        Some(outcome) if outcome.stage() == Stage::Unknown => Ok(()),
        Some(outcome) => Err(AuditError::Invalid(format!(
            "the outcome of message {seq} is known: {outcome}"
        ))),
    }
}

/// A number used twice would make two messages one, so it is refused: inside the batch, and against
/// what the run already has. Batches mostly continue where the last one ended, and then one look
/// into the index is enough.
fn refuse_repeated(connection: &Connection, id: i64, intents: &[Intent]) -> Result<(), AuditError> {
    let mut numbers: Vec<u64> = intents.iter().map(|intent| intent.seq).collect();
    numbers.sort_unstable();
    let twice = numbers.windows(2).find(|pair| pair[0] == pair[1]);
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        return Ok(());
    };
    let mut seen = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM entry WHERE run_id = ?1 AND seq BETWEEN ?2 AND ?3)",
    )?;
    let mut is_used = |from: u64, to: u64| -> Result<bool, AuditError> {
        Ok(seen.query_row([id, number(from)?, number(to)?], |row| row.get(0))?)
    };
    let mut used = twice.map(|pair| pair[0]);
    if used.is_none() && is_used(*first, *last)? {
        for seq in &numbers {
            if is_used(*seq, *seq)? {
                used = Some(*seq);
                break;
            }
        }
    }
    match used {
        None => Ok(()),
        Some(seq) => Err(AuditError::Invalid(format!(
            "message number {seq} is used twice in one run"
        ))),
    }
}

/// Positions and plans go into lines of JSON as they are, so they must be JSON on one line.
fn check_json(what: &str, text: &str) -> Result<(), AuditError> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match is_json && (what == "plan" || !text.contains(['\n', '\r'])) {
        true => Ok(()),
        false => Err(AuditError::Invalid(format!(
            "the {what} is not JSON on one line: {text}"
        ))),
    }
}

fn set_owner(connection: &Connection, id: i64, owner: &Owner) -> Result<(), AuditError> {
    connection
        .prepare_cached(
            "UPDATE run SET owner = ?2, pid = ?3, process_started = ?4, host = ?5 WHERE id = ?1",
        )?
        .execute(params![
            id,
            owner.id,
            owner.pid,
            owner.process_started,
            owner.host
        ])?;
    Ok(())
}

fn forget_counts(connection: &Connection, id: i64) -> Result<(), AuditError> {
    connection
        .prepare_cached("UPDATE run SET outcomes = NULL WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

fn by<'a>(who: &'a str, seq: i64, detail: Option<&'a str>) -> Fields<'a> {
    Fields {
        seq,
        detail,
        who: Some(who),
        ..Fields::default()
    }
}

fn append_one(
    connection: &Connection,
    run: (i64, &Run),
    outcome: Outcome,
    fields: &Fields<'_>,
) -> Result<(), AuditError> {
    append_at(connection, run, entry::now(), outcome, fields)
}

fn append_at(
    connection: &Connection,
    (id, run): (i64, &Run),
    now: i64,
    outcome: Outcome,
    fields: &Fields<'_>,
) -> Result<(), AuditError> {
    let mut chain = Chain::open(connection)?;
    chain.append(&mut Lines::new(run, now), (id, now), outcome, fields)?;
    chain.close()
}
