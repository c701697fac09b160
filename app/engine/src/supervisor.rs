//! One loop, one task per command, one cancellation token per task.
//!
//! It is a plain async function, so that tests run it directly; [`crate::EngineHandle`] only adds threads.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use dlo_core::{Error, ErrorKind, Result};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    act, audit,
    command::{Ask, Command, TaskId},
    connection,
    event::{Event, News},
    handle::Settings,
    look, records, replay,
    shared::{Reporter, Shared, lock},
};

/// How long tasks get to give back what they hold when the program ends.
const GRACE: Duration = Duration::from_secs(10);

type Tokens = Arc<Mutex<BTreeMap<TaskId, CancellationToken>>>;

/// Runs until the handle is dropped or `cancel` is cancelled, then gives back what is held.
pub async fn run(
    settings: Settings,
    mut commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
    cancel: CancellationToken,
) {
    let database = settings.home.database();
    let audit = tokio::task::spawn_blocking(move || audit::AuditLog::open(database)).await;
    let audit = match audit {
        Ok(opened) => opened.map_err(records::journal_error),
        Err(panic) => Err(Error::new(
            ErrorKind::Unexpected,
            "open the journal",
            panic.to_string(),
        )),
    };
    let wake = settings.wake.clone();
    let shared = Arc::new(Shared::new(settings, audit));
    let (tracker, tokens) = (TaskTracker::new(), Tokens::default());
    loop {
        let command = tokio::select! {
            () = cancel.cancelled() => break,
            command = commands.recv() => command,
        };
        let Some(Command { task, ask }) = command else {
            break;
        };
        let reporter = Reporter::new(task, events.clone(), wake.clone());
        let token = cancel.child_token();
        lock(&tokens).insert(task, token.clone());
        tracker.spawn(carry_out(
            shared.clone(),
            ask,
            reporter,
            token,
            tokens.clone(),
        ));
    }
    cancel.cancel();
    tracker.close();
    let _ = tokio::time::timeout(GRACE, tracker.wait()).await;
    let _ = tokio::time::timeout(GRACE, connection::close_all(&shared)).await;
}

async fn carry_out(
    shared: Arc<Shared>,
    ask: Ask,
    reporter: Reporter,
    cancel: CancellationToken,
    tokens: Tokens,
) {
    let outcome = match ask {
        Ask::Cancel { task } => {
            if let Some(token) = lock(&tokens).get(&task) {
                token.cancel();
            }
            Ok(())
        }
        ask => answer(&shared, ask, &reporter, &cancel).await,
    };
    lock(&tokens).remove(&reporter.task);
    let last = match outcome {
        Ok(()) => News::Done,
        Err(error) if error.kind() == ErrorKind::Cancelled => News::Cancelled,
        Err(error) => News::Failed(error),
    };
    reporter.tell(last).await;
}

async fn answer(
    shared: &Arc<Shared>,
    ask: Ask,
    reporter: &Reporter,
    cancel: &CancellationToken,
) -> Result<()> {
    match ask {
        Ask::Profiles => connection::profiles(shared, reporter).await,
        Ask::SaveProfile {
            profile,
            secrets,
            keep,
        } => connection::save_profile(shared, reporter, profile, secrets, keep).await,
        Ask::ImportProfile {
            profile,
            file,
            keep,
        } => connection::import_profile(shared, reporter, profile, file, keep).await,
        Ask::RemoveProfile { name } => connection::remove_profile(shared, reporter, name).await,
        Ask::Connect {
            place,
            secrets,
            registry,
        } => {
            let wanted = connection::Wanted {
                place,
                secrets,
                registry,
            };
            connection::connect(shared, reporter, wanted, cancel).await
        }
        Ask::Disconnect { connection } => {
            connection::disconnect(shared, reporter, connection).await
        }
        Ask::List { connection } => connection::list(shared, reporter, connection, cancel).await,
        Ask::Describe {
            connection,
            address,
        } => connection::describe(shared, reporter, connection, address).await,
        Ask::Find { connection, name } => {
            connection::find(shared, reporter, connection, &name).await
        }
        Ask::SaveNotes {
            connection,
            address,
            notes,
        } => connection::save_notes(shared, connection, &address, notes).await,
        Ask::Cost {
            connection,
            address,
            look,
        } => look::cost(shared, reporter, connection, address, look).await,
        Ask::Look {
            connection,
            address,
            look,
        } => look::open(shared, reporter, connection, address, look, cancel).await,
        Ask::LookFurther { look } => look::further(shared, reporter, look, cancel).await,
        Ask::ExtendHold { look } => look::extend(shared, reporter, look).await,
        Ask::CloseLook { look } => look::close(shared, reporter, look).await,
        Ask::Filter {
            look,
            query,
            resolved,
        } => look::filter(shared, reporter, look, query, resolved, cancel).await,
        Ask::Open { look, row, decode } => {
            look::open_message(shared, reporter, look, row, decode).await
        }
        Ask::Follow { look, row } => look::follow(shared, reporter, look, row).await,
        Ask::Plan(ask) => replay::planner::plan(shared, reporter, ask, cancel).await,
        Ask::Run(ask) => act::run(shared, reporter, ask, cancel).await,
        Ask::PauseRun { run } => shared.run(&run).map(|control| control.pause()),
        Ask::ResumeRun { run } => shared.run(&run).map(|control| control.resume()),
        Ask::Cancel { .. } => Ok(()),
        Ask::Export {
            look,
            selection,
            file,
            format,
            why,
        } => act::export(shared, reporter, look, selection, file, format, why, cancel).await,
        Ask::Import {
            file,
            connection,
            to,
            why,
            answers,
        } => act::import(shared, reporter, file, connection, to, why, answers, cancel).await,
        Ask::Restore {
            connection,
            captures,
            to,
            why,
            answers,
        } => {
            act::restore(
                shared, reporter, connection, captures, to, why, answers, cancel,
            )
            .await
        }
        Ask::Audit { query } => records::audit(shared, reporter, query).await,
        Ask::ExportAudit { query, file } => {
            records::export_audit(shared, reporter, query, file).await
        }
        Ask::VerifyAudit => records::verify(shared, reporter).await,
        Ask::Runs => records::runs(shared, reporter).await,
        Ask::RunMessages { run } => records::run_messages(shared, reporter, &run).await,
        Ask::ResolveUnknown {
            run,
            sequence,
            decision,
            why,
        } => records::resolve_unknown(shared, &run, sequence, decision, &why).await,
        Ask::Captures { destination, of } => {
            records::captures(shared, reporter, destination, of).await
        }
        Ask::Redrives {
            connection,
            address,
        } => connection::redrives(shared, reporter, connection, address).await,
        Ask::CancelRedrive {
            connection,
            address,
            id,
        } => connection::cancel_redrive(shared, connection, &address, &id).await,
    }
}
