//! Messages to files and back: export, import, and restoring saved copies.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use dlo_core::{
    Address, AddressKind, Error, ErrorKind, Outgoing, Partitioning, Position, Result, Target,
};
use tokio_util::sync::CancellationToken;

use super::{
    consented, end_state, may_change,
    replay::order_key,
    report,
    run::{Item, Originals, Pace, Run, RunControl},
};
use crate::{
    audit::{Act, CaptureFilter, Intent, NewRun, Outcome, Reach, Restored, RunId, RunState, Step},
    capture::{CSV_HEADER, CaptureReader, Captured, csv_row, parse_line, to_line},
    command::{Answers, ConnectionId, ExportFormat, LookId, RestoreWhich, Selection},
    connection::resolve_name,
    dead_letter,
    event::News,
    look::{self, OpenLook},
    records::{file_error, journal_error, position_text},
    replay,
    shared::{Connection, Reporter, Shared, blocking},
};

/// Headers that a broker would misread on a restored message: delivery counts that get it deleted at once, and copies to
/// further queues. Everything else, `x-death` too, is put back as it was.
const MISREAD: [&str; 4] = ["x-delivery-count", "x-acquired-count", "CC", "BCC"];
/// Messages written between two chances to cancel.
const BATCH: usize = 500;

/// Writes messages of a look to a file, which appears whole or not at all.
#[expect(clippy::too_many_arguments, reason = "the parts of one request")]
pub async fn export(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: LookId,
    selection: Selection,
    file: PathBuf,
    format: ExportFormat,
    why: String,
    cancel: &CancellationToken,
) -> Result<()> {
    let look = shared.look(id)?;
    let rows = look::select(shared, &look, &selection, cancel).await?;
    let run = begin(
        shared,
        &look.connection,
        Act::Export,
        &look.address().name,
        Some(file_words(&file)),
        &why,
        rows.len(),
    )
    .await?;
    let written = write_file(shared, &look, &run, &rows, &file, format, cancel).await;
    let audit = shared.audit()?;
    audit
        .finish(&run, end_state(cancel))
        .await
        .map_err(journal_error)?;
    let bytes = written?;
    reporter
        .tell(News::Exported {
            file,
            messages: rows.len() as u64,
            bytes,
        })
        .await;
    Ok(())
}

fn file_words(file: &Path) -> String {
    format!("file {}", file.display())
}

async fn begin(
    shared: &Shared,
    connection: &Connection,
    act: Act,
    destination: &str,
    target: Option<String>,
    why: &str,
    total: usize,
) -> Result<RunId> {
    let new = NewRun {
        act,
        profile: connection.label.clone(),
        destination: destination.to_owned(),
        target,
        who: shared.settings.who.clone(),
        why: (!why.trim().is_empty()).then(|| why.to_owned()),
        plan: "{}".to_owned(),
        total: total as u64,
    };
    shared.audit()?.begin(new).await.map_err(journal_error)
}

async fn write_file(
    shared: &Arc<Shared>,
    look: &Arc<OpenLook>,
    run: &RunId,
    rows: &[u32],
    file: &Path,
    format: ExportFormat,
    cancel: &CancellationToken,
) -> Result<u64> {
    let partial = partial_name(file);
    let mut out = Some(create(partial.clone(), format).await?);
    let mut sequence = 0;
    for batch in rows.chunks(BATCH) {
        if cancel.is_cancelled() {
            let _ = tokio::fs::remove_file(&partial).await;
            return Err(Error::cancelled("export"));
        }
        let (look, batch) = (look.clone(), batch.to_vec());
        let mut writer = out.take().ok_or_else(|| Error::cancelled("export"))?;
        let (writer, intents) = blocking("write the file", move || {
            let intents = write_batch(&mut writer, &look, &batch, sequence, format)?;
            Ok((writer, intents))
        })
        .await?;
        out = Some(writer);
        sequence += intents.len() as u64;
        let steps = intents
            .iter()
            .map(|intent| Step::new(intent.seq, Outcome::Settled))
            .collect();
        let audit = shared.audit()?;
        audit
            .intend(run, Reach::Started, intents)
            .await
            .map_err(journal_error)?;
        audit.record(run, steps).await.map_err(journal_error)?;
    }
    let (file, writer) = (file.to_owned(), out);
    blocking("write the file", move || finish(writer, &partial, &file)).await
}

type Out = std::io::BufWriter<std::fs::File>;

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    file.with_file_name(name)
}

async fn create(path: PathBuf, format: ExportFormat) -> Result<Out> {
    blocking("write the file", move || {
        let opened = std::fs::File::create(&path)
            .map_err(|error| file_error("write the file", &path, &error))?;
        let mut out = std::io::BufWriter::new(opened);
        if format == ExportFormat::Csv {
            write(&mut out, CSV_HEADER)?;
        }
        Ok(out)
    })
    .await
}

fn write(out: &mut Out, line: &str) -> Result<()> {
    use std::io::Write as _;
    out.write_all(line.as_bytes())
        .and_then(|()| {
            if line.ends_with('\n') {
                Ok(())
            } else {
                out.write_all(b"\n")
            }
        })
        .map_err(|error| file_error("write the file", Path::new("the export"), &error))
}

fn write_batch(
    out: &mut Out,
    look: &OpenLook,
    rows: &[u32],
    first: u64,
    format: ExportFormat,
) -> Result<Vec<Intent>> {
    let connection = &look.connection;
    let destination = &look.address().name;
    let mut intents = Vec::with_capacity(rows.len());
    for (sequence, row) in (first..).zip(rows) {
        let Some(delivery) = look.view.delivery(*row) else {
            continue;
        };
        let death = dead_letter::read(&delivery, &connection.headers);
        match format {
            ExportFormat::Capture => write(
                out,
                &to_line(&delivery, connection.broker, destination, death.as_ref()),
            )?,
            ExportFormat::Csv => write(out, &csv_row(&delivery, destination, death.as_ref()))?,
        }
        intents.push(Intent {
            seq: sequence,
            position: position_text(&delivery.position),
            sha256: delivery.message.sha256(),
            target: None,
            capture: None,
        });
    }
    Ok(intents)
}

fn finish(out: Option<Out>, partial: &Path, file: &Path) -> Result<u64> {
    let failed = |error: std::io::Error| file_error("write the file", file, &error);
    if let Some(out) = out {
        out.into_inner()
            .map_err(|error| failed(error.into_error()))?
            .sync_all()
            .map_err(failed)?;
    }
    std::fs::rename(partial, file).map_err(failed)?;
    Ok(std::fs::metadata(file).map_err(failed)?.len())
}

/// Publishes the messages of a capture file, each to where it was or all to one destination.
#[expect(clippy::too_many_arguments, reason = "the parts of one request")]
pub async fn import(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    file: PathBuf,
    connection: ConnectionId,
    to: Option<String>,
    why: String,
    answers: Answers,
    cancel: &CancellationToken,
) -> Result<()> {
    let connection = shared.connection(connection)?;
    let path = file.clone();
    // The whole file is read and checked before the first message goes out.
    let captured = blocking("read the capture file", move || read_file(&path)).await?;
    let back = Back {
        act: Act::Import,
        source: file_words(&file),
        to,
        why,
        answers,
    };
    let copies = captured
        .into_iter()
        .map(|captured| (None, captured))
        .collect();
    put_back(shared, reporter, &connection, back, copies, cancel).await
}

fn read_file(path: &Path) -> Result<Vec<Captured>> {
    let reader = CaptureReader::open(path).map_err(capture_error)?;
    reader
        .collect::<std::result::Result<_, _>>()
        .map_err(capture_error)
}

fn capture_error(error: crate::capture::CaptureError) -> Error {
    Error::new(
        ErrorKind::ConfigInvalid,
        "read the capture file",
        error.to_string(),
    )
}

/// Puts saved copies back.
#[expect(clippy::too_many_arguments, reason = "the parts of one request")]
pub async fn restore(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    connection: ConnectionId,
    which: RestoreWhich,
    to: Option<String>,
    why: String,
    answers: Answers,
    cancel: &CancellationToken,
) -> Result<()> {
    let connection = shared.connection(connection)?;
    let copies = saved(shared, &which).await?;
    if copies.is_empty() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "restore",
            "there is no saved copy that was not restored yet",
        )
        .advise("`dlo runs` shows the runs; a copy is restored once."));
    }
    let (resolved, copies): (Vec<_>, Vec<_>) = copies
        .into_iter()
        .partition(|copy| copy.act == Act::Resolve);
    if !resolved.is_empty() {
        unresolve(shared, reporter, &connection, resolved, &why).await?;
    }
    if copies.is_empty() {
        return Ok(());
    }
    let copies = copies
        .into_iter()
        .map(|copy| (Some(copy.id), copy.captured))
        .collect();
    let source = match &which {
        RestoreWhich::Run(run) => format!("run {run}"),
        RestoreWhich::Ids(ids) => format!("{} saved copies", ids.len()),
        RestoreWhich::Destination(name) => name.clone(),
    };
    let back = Back {
        act: Act::Restore,
        source,
        to,
        why,
        answers,
    };
    put_back(shared, reporter, &connection, back, copies, cancel).await
}

/// A message to put back, with the number of its saved copy if it has one.
type Copy = (Option<i64>, Captured);

/// A saved copy and what saved it.
struct Saved {
    id: i64,
    act: Act,
    captured: Captured,
}

async fn saved(shared: &Shared, which: &RestoreWhich) -> Result<Vec<Saved>> {
    let mut filter = CaptureFilter {
        restored: Restored::No,
        ..CaptureFilter::default()
    };
    match which {
        RestoreWhich::Run(run) => filter.run = Some(run.parse().map_err(journal_error)?),
        RestoreWhich::Destination(name) => filter.destination = Some(name.clone()),
        RestoreWhich::Ids(_) => {}
    }
    let audit = shared.audit()?;
    let mut found = audit.captures(filter).await.map_err(journal_error)?;
    found.retain(|copy| match which {
        RestoreWhich::Ids(ids) => ids.contains(&copy.id),
        RestoreWhich::Run(_) => true,
        // Copies of replays are there for the record; only what was discarded is missing anywhere.
        RestoreWhich::Destination(_) => {
            matches!(copy.act, Act::Discard | Act::Purge | Act::Resolve)
        }
    });
    let ids = found.iter().map(|copy| copy.id).collect();
    let lines = audit.capture_lines(ids).await.map_err(journal_error)?;
    let copies = found.iter().zip(lines).map(|(copy, line)| {
        let captured = parse_line(&line).map_err(capture_error)?;
        Ok(Saved {
            id: copy.id,
            act: copy.act,
            captured,
        })
    });
    copies.collect()
}

/// Takes the marks of resolved messages away: their broker has kept them, so nothing is published.
async fn unresolve(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    connection: &Connection,
    copies: Vec<Saved>,
    why: &str,
) -> Result<()> {
    may_change(connection, "restore")?;
    let destination = copies
        .first()
        .map(|copy| copy.captured.destination.clone())
        .unwrap_or_default();
    let run = begin(
        shared,
        connection,
        Act::Unresolve,
        &destination,
        None,
        why,
        copies.len(),
    )
    .await?;
    reporter
        .tell(News::RunStarted {
            run: run.to_string(),
            total: copies.len() as u64,
        })
        .await;
    let audit = shared.audit()?;
    let position = |copy: &Saved| position_text(&copy.captured.delivery.position);
    let intents = (0u64..).zip(&copies).map(|(sequence, copy)| Intent {
        seq: sequence,
        position: position(copy),
        sha256: copy.captured.delivery.message.sha256(),
        target: Some(copy.captured.destination.clone()),
        capture: None,
    });
    audit
        .intend(&run, Reach::Started, intents.collect())
        .await
        .map_err(journal_error)?;
    let positions = copies.iter().map(position).collect();
    audit
        .unresolve(&connection.label, &destination, positions)
        .await
        .map_err(journal_error)?;
    let steps = (0..copies.len() as u64).map(|sequence| Step::new(sequence, Outcome::Settled));
    audit
        .record(&run, steps.collect())
        .await
        .map_err(journal_error)?;
    audit
        .mark_restored(copies.iter().map(|copy| copy.id).collect(), &run)
        .await
        .map_err(journal_error)?;
    audit
        .finish(&run, RunState::Done)
        .await
        .map_err(journal_error)?;
    report(
        shared,
        reporter,
        &run,
        vec!["They are shown again; the broker had kept them.".to_owned()],
    )
    .await
}

/// Where a list of captured messages goes back to.
struct Back {
    act: Act,
    source: String,
    to: Option<String>,
    why: String,
    answers: Answers,
}

async fn put_back(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    connection: &Arc<Connection>,
    back: Back,
    copies: Vec<Copy>,
    cancel: &CancellationToken,
) -> Result<()> {
    may_change(connection, back.act.word())?;
    let destination = back.to.clone().or_else(|| {
        copies
            .first()
            .map(|(_, captured)| captured.destination.clone())
    });
    let destination = destination.unwrap_or_default();
    consented(connection, &destination, &back.why, &back.answers)?;
    let (items, ids) = items(connection, &back, copies).await?;
    let run = begin(
        shared,
        connection,
        back.act,
        &destination,
        Some(back.source.clone()),
        &back.why,
        items.len(),
    )
    .await?;
    let control = RunControl::new(items.len() as u64);
    reporter
        .tell(News::RunStarted {
            run: run.to_string(),
            total: items.len() as u64,
        })
        .await;
    shared.add_run(run.to_string(), control.clone());
    let done = Outcome::Settled;
    let work = Arc::new(Run {
        shared: shared.clone(),
        id: run.clone(),
        control: control.clone(),
        to: connection.session.clone(),
        originals: Originals::Leave,
        pace: Pace {
            rate: None,
            atomicity: dlo_core::Atomicity::Each,
        },
        view: None,
        reporter: reporter.clone(),
        copies: None,
        done,
    });
    let outcome = work.carry_out(items, cancel).await;
    shared.remove_run(run.as_str());
    let restored: Vec<_> = control
        .outcomes()
        .into_iter()
        .filter(|(_, outcome)| *outcome == done)
        .filter_map(|(sequence, _)| ids.get(usize::try_from(sequence).ok()?).copied().flatten())
        .collect();
    if !restored.is_empty() {
        shared
            .audit()?
            .mark_restored(restored, &run)
            .await
            .map_err(journal_error)?;
    }
    outcome?;
    work.finish(end_state(cancel)).await?;
    report(shared, reporter, &run, Vec::new()).await?;
    if cancel.is_cancelled() {
        Err(Error::cancelled(back.act.word()))
    } else {
        Ok(())
    }
}

async fn items(
    connection: &Connection,
    back: &Back,
    copies: Vec<Copy>,
) -> Result<(Vec<Item>, Vec<Option<i64>>)> {
    let chosen = match &back.to {
        Some(name) if name.starts_with("exchange:") => {
            Some(replay::target::named_target(name, AddressKind::Queue))
        }
        Some(name) => Some(Target::new(resolve_name(connection, name).await?)),
        None => None,
    };
    let mut items = Vec::with_capacity(copies.len());
    let mut ids = Vec::with_capacity(copies.len());
    for (sequence, (id, captured)) in (0u64..).zip(copies) {
        let target = match &chosen {
            Some(target) => target.clone(),
            None => former_place(connection, &captured)?,
        };
        items.push(item(sequence, target, captured));
        ids.push(id);
    }
    Ok((items, ids))
}

/// Where a captured message was. Another kind of broker has no such place.
fn former_place(connection: &Connection, captured: &Captured) -> Result<Target> {
    if captured.broker != connection.broker {
        let what = format!(
            "these messages come from {}, and this is {}",
            captured.broker, connection.broker
        );
        return Err(
            Error::new(ErrorKind::Refused, "put the messages back", what)
                .advise("Name the destination with --to."),
        );
    }
    let address = match captured.delivery.position {
        Position::Offset { .. } => Address::topic(&captured.destination),
        _ => Address::queue(&captured.destination),
    };
    let mut target = Target::new(address);
    if let Position::Offset { partition, .. } = captured.delivery.position {
        target.partitioning = Partitioning::Exact(partition);
    }
    Ok(target)
}

fn item(sequence: u64, target: Target, captured: Captured) -> Item {
    let mut message = captured.delivery.message.clone();
    message
        .headers
        .retain(|header| !MISREAD.contains(&header.name.as_str()));
    Item {
        sequence,
        row: None,
        original: None,
        sha256: captured.delivery.message.sha256(),
        position: position_text(&captured.delivery.position),
        target: replay::target::words(&target),
        order_key: order_key(&message),
        edited: None,
        outgoing: Arc::new(Outgoing {
            target,
            message,
            time: None,
        }),
    }
}
