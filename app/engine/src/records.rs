//! The journal as the window and the command line see it: audit lines, runs, saved copies.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use dlo_core::{Error, ErrorKind, Millis, Position, Result};
use jiff::Timestamp;

use crate::{
    audit::{self, AuditEntry, AuditError, AuditFilter, CaptureFilter, MessageFilter, RunId},
    capture,
    command::{AuditAsk, AuditView, CopiesOf, Decision},
    event::{AuditLine, News, RunMessage, RunSummary, SavedCopy},
    shared::{Reporter, Shared, blocking},
    store::preview,
};

/// The journal's error as one for a person.
pub fn journal_error(error: AuditError) -> Error {
    let kind = match &error {
        AuditError::NotFound { .. } => ErrorKind::NotFound,
        AuditError::Invalid(_) => ErrorKind::ConfigInvalid,
        AuditError::RunClosed { .. } => ErrorKind::Refused,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, "use the journal", error.to_string())
}

/// A position as the journal keeps it: canonical JSON text.
pub fn position_text(position: &Position) -> String {
    let json = serde_json::to_string(position).unwrap_or_else(|_| "null".to_owned());
    audit::canonical_position(&json).unwrap_or(json)
}

fn position(text: &str) -> Option<Position> {
    serde_json::from_str(text).ok()
}

fn millis(time: Timestamp) -> Millis {
    Millis(time.as_millisecond())
}

fn timestamp(time: Millis) -> Option<Timestamp> {
    Timestamp::from_millisecond(time.0).ok()
}

/// An entry of the trail as a line for people.
pub fn line(entry: AuditEntry) -> AuditLine {
    AuditLine {
        id: entry.id.unsigned_abs(),
        time: millis(entry.time),
        who: entry.who,
        why: entry.why.unwrap_or_default(),
        act: entry.act.to_string(),
        place: entry.profile,
        destination: entry.destination,
        position: entry.position.as_deref().and_then(position),
        sha256: entry.sha256,
        target: entry.target,
        outcome: entry.outcome.to_string(),
        detail: entry.detail,
        run: Some(entry.run.to_string()),
        messages: entry.total,
    }
}

pub fn run_summary(summary: audit::RunSummary) -> RunSummary {
    let run = summary.run;
    RunSummary {
        run: run.run.to_string(),
        act: run.act.to_string(),
        place: run.profile,
        destination: run.destination,
        who: run.who,
        why: run.why.unwrap_or_default(),
        started: millis(run.started),
        ended: run.finished.map(millis),
        state: run.state.to_string(),
        crashed: summary.crashed,
        total: run.total,
        outcomes: outcomes(summary.outcomes, summary.crashed),
    }
}

/// Counts by the words that a person reads.
fn outcomes(counts: audit::Outcomes, crashed: bool) -> BTreeMap<String, u64> {
    let mut words = BTreeMap::new();
    for (outcome, count) in counts {
        *words.entry(word(outcome, crashed)).or_default() += count;
    }
    words
}

/// What was under way when a process died may have happened or not, and is called so.
fn word(outcome: audit::Outcome, crashed: bool) -> String {
    if crashed && outcome.stage() == audit::Stage::Unknown {
        return audit::Outcome::Unknown.to_string();
    }
    outcome.to_string()
}

fn run_message(message: audit::RunMessage, crashed: bool) -> RunMessage {
    RunMessage {
        sequence: message.seq,
        position: position(&message.position),
        sha256: message.sha256,
        target: message.target,
        outcome: word(message.outcome, crashed),
        detail: message.detail,
    }
}

fn parse_run(run: &str) -> Result<RunId> {
    run.parse().map_err(journal_error)
}

fn filter(ask: &AuditAsk) -> Result<AuditFilter> {
    let parse = |text: &Option<String>| {
        text.as_deref()
            .map(str::parse)
            .transpose()
            .map_err(journal_error)
    };
    Ok(AuditFilter {
        view: match ask.view {
            AuditView::Messages => audit::View::Messages,
            AuditView::Runs => audit::View::Runs,
        },
        who: ask.who.clone(),
        act: ask
            .act
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(journal_error)?,
        destination: ask.destination.clone(),
        text: ask.text.clone(),
        since: ask.from.and_then(timestamp),
        until: ask.until.and_then(timestamp),
        run: parse(&ask.run)?,
        outcome: ask
            .outcome
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(journal_error)?,
        sha256: ask.sha256.clone(),
        limit: (ask.limit > 0).then(|| u32::try_from(ask.limit).unwrap_or(u32::MAX)),
        offset: ask.offset,
        ..AuditFilter::default()
    })
}

pub async fn audit(shared: &Arc<Shared>, reporter: &Reporter, ask: AuditAsk) -> Result<()> {
    let filter = filter(&ask)?;
    let audit = shared.audit()?;
    let total = audit.count(filter.clone()).await.map_err(journal_error)?;
    let entries = audit.query(filter).await.map_err(journal_error)?;
    let entries: Vec<_> = entries.into_iter().map(line).collect();
    reporter
        .tell(News::Audit {
            entries: entries.into(),
            total,
        })
        .await;
    Ok(())
}

pub async fn export_audit(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    ask: AuditAsk,
    file: PathBuf,
) -> Result<()> {
    let filter = filter(&ask)?;
    let path = file.clone();
    let create = move || {
        std::fs::File::create(&path).map_err(|error| file_error("write the file", &path, &error))
    };
    let out = blocking("write the file", create).await?;
    let messages = shared
        .audit()?
        .export(filter, std::io::BufWriter::new(out))
        .await
        .map_err(journal_error)?;
    let bytes = std::fs::metadata(&file).map_or(0, |facts| facts.len());
    reporter
        .tell(News::Exported {
            file,
            messages,
            bytes,
        })
        .await;
    Ok(())
}

/// An error about a file, with what to do about it.
pub fn file_error(
    operation: &'static str,
    path: &std::path::Path,
    error: &std::io::Error,
) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, operation, error.to_string())
        .with("file", path.display().to_string())
        .advise("Check that the folder exists, is writable and has space.")
}

pub async fn verify(shared: &Arc<Shared>, reporter: &Reporter) -> Result<()> {
    let news = match shared.audit()?.verify().await.map_err(journal_error)? {
        audit::Verified::Intact { entries, .. } => News::Verified {
            entries,
            broken_at: None,
        },
        audit::Verified::Broken { at, .. } => News::Verified {
            entries: at,
            broken_at: Some(at),
        },
    };
    reporter.tell(news).await;
    Ok(())
}

/// Runs listed at once.
const RUNS: u32 = 1000;

pub async fn runs(shared: &Arc<Shared>, reporter: &Reporter) -> Result<()> {
    let runs = shared.audit()?.runs(RUNS, 0).await.map_err(journal_error)?;
    let runs: Vec<_> = runs.into_iter().map(run_summary).collect();
    reporter.tell(News::Runs(runs.into())).await;
    Ok(())
}

pub async fn run_messages(shared: &Arc<Shared>, reporter: &Reporter, run: &str) -> Result<()> {
    let (summary, messages) = whole_run(shared, &parse_run(run)?).await?;
    reporter
        .tell(News::RunMessages {
            run: Arc::new(summary),
            messages: messages.into(),
        })
        .await;
    Ok(())
}

/// A run with all its messages.
pub async fn whole_run(shared: &Shared, run: &RunId) -> Result<(RunSummary, Vec<RunMessage>)> {
    let audit = shared.audit()?;
    let summary = audit.run_summary(run).await.map_err(journal_error)?;
    let messages = audit
        .messages(run, MessageFilter::default())
        .await
        .map_err(journal_error)?;
    let crashed = summary.crashed;
    let messages = messages
        .into_iter()
        .map(|message| run_message(message, crashed));
    Ok((run_summary(summary), messages.collect()))
}

pub async fn resolve_unknown(
    shared: &Arc<Shared>,
    run: &str,
    sequence: u64,
    decision: Decision,
    why: &str,
) -> Result<()> {
    let decision = match decision {
        Decision::Arrived => audit::Decision::Happened,
        Decision::Missing => audit::Decision::DidNotHappen,
    };
    let who = &shared.settings.who;
    let audit = shared.audit()?;
    audit
        .resolve_unknown(&parse_run(run)?, sequence, decision, who, why)
        .await
        .map_err(journal_error)
}

/// Acts that take a message away; a rescue is part of a look.
const REMOVALS: [audit::Act; 4] = [
    audit::Act::Discard,
    audit::Act::Purge,
    audit::Act::Resolve,
    audit::Act::Look,
];
/// Characters of a copy's beginning.
const PREVIEW: usize = 160;

pub async fn captures(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    destination: Option<String>,
    of: CopiesOf,
) -> Result<()> {
    let acts = match of {
        CopiesOf::Removed => REMOVALS.to_vec(),
        CopiesOf::Everything => Vec::new(),
    };
    let filter = CaptureFilter {
        acts,
        destination,
        limit: Some(RUNS),
        ..CaptureFilter::default()
    };
    let copies = saved_copies(shared, filter).await?;
    reporter.tell(News::Captures(copies.into())).await;
    Ok(())
}

/// Saved copies with their capture lines.
pub async fn saved_copies(shared: &Shared, filter: CaptureFilter) -> Result<Vec<SavedCopy>> {
    let audit = shared.audit()?;
    let found = audit.captures(filter).await.map_err(journal_error)?;
    let lines = audit
        .capture_lines(found.iter().map(|copy| copy.id).collect())
        .await
        .map_err(journal_error)?;
    blocking("read the saved copies", move || {
        let copies = found.into_iter().zip(lines);
        Ok(copies.map(|(copy, line)| saved_copy(copy, line)).collect())
    })
    .await
}

fn saved_copy(copy: audit::Capture, line: String) -> SavedCopy {
    let body = match capture::parse_line(&line) {
        Ok(captured) => Ok(captured.delivery.message.body),
        Err(error) => Err(format!("This copy cannot be read: {error}")),
    };
    let (size, preview) = match body {
        Ok(None) => (None, "null".to_owned()),
        Ok(Some(body)) if body.is_empty() => (Some(0), "empty".to_owned()),
        Ok(Some(body)) => (Some(body.len() as u64), preview(&body, PREVIEW)),
        Err(why) => (None, why),
    };
    SavedCopy {
        id: copy.id,
        run: copy.run.to_string(),
        act: copy.act.to_string(),
        destination: copy.destination,
        sha256: copy.sha256,
        saved: millis(copy.time),
        restored_by: copy.restored_by.map(|run| run.to_string()),
        preview,
        size,
        line: line.into(),
    }
}
