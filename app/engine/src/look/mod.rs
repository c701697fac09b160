//! Looking: opening a look, loading what it delivers, keeping its locks alive, giving everything back.

mod filter;
mod keeper;
mod loading;
mod message;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use dlo_core::{
    Address, Browse, Destination, Error, ErrorKind, Look, LookCost, LookRequest, Millis, Result,
    Returned,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    command::{ConnectionId, LookAsk, LookId},
    event::{LookOpened, LookProgress, News},
    group::{Grouping, Rules},
    shared::{Connection, Reporter, Shared, lock},
    store::{Budget, LookView, RowState},
};

pub use filter::{filter, select, select_resolved};
pub use keeper::JournalKeeper;
pub use message::{follow, open as open_message};

/// An open look with everything the engine knows about it.
#[derive(Debug)]
pub struct OpenLook {
    pub id: LookId,
    pub connection: Arc<Connection>,
    pub destination: Destination,
    pub ask: LookAsk,
    pub look: Arc<dyn Look>,
    pub view: Arc<LookView>,
    grouping: Mutex<Grouping>,
    progress: Mutex<LookProgress>,
    keeper: Arc<JournalKeeper>,
    /// One loader at a time; also keeps an act from settling what is being loaded.
    loading: tokio::sync::Mutex<()>,
    closed: AtomicBool,
    /// Cancelled when the look is closed.
    cancel: CancellationToken,
}

impl OpenLook {
    pub fn address(&self) -> &Address {
        &self.destination.address
    }

    pub fn progress(&self) -> LookProgress {
        LookProgress {
            hold: self.look.hold(),
            ..lock(&self.progress).clone()
        }
    }
}

/// What a look would cost now.
pub async fn cost(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    connection: ConnectionId,
    address: Address,
    ask: LookAsk,
) -> Result<()> {
    let open = shared.connection(connection)?;
    let request = request(&ask, Arc::new(dlo_core::NoKeeper));
    let cost = open.session.cost(&address, &request).await?;
    reporter
        .tell(News::Cost {
            connection,
            address,
            cost,
        })
        .await;
    Ok(())
}

/// Opens a look and loads its first messages.
pub async fn open(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    connection: ConnectionId,
    address: Address,
    ask: LookAsk,
    cancel: &CancellationToken,
) -> Result<()> {
    let connection = shared.connection(connection)?;
    let destination = connection.session.describe(&address).await?;
    let keeper = Arc::new(JournalKeeper::new(
        shared.clone(),
        &connection,
        &destination.address,
    ));
    let request = request(&ask, keeper.clone());
    let cost = connection
        .session
        .cost(&destination.address, &request)
        .await?;
    let look = tokio::select! {
        () = cancel.cancelled() => return Err(Error::cancelled("look")),
        opened = connection.session.look(&destination.address, request) => opened?,
    };
    let opened = Arc::new(OpenLook {
        id: LookId(shared.next_id()),
        destination,
        look,
        view: LookView::new(Budget::default()),
        grouping: Mutex::new(Grouping::new(class_rules(shared, reporter).await)),
        progress: Mutex::default(),
        keeper,
        loading: tokio::sync::Mutex::default(),
        closed: AtomicBool::new(false),
        cancel: connection.cancel.child_token(),
        connection,
        ask,
    });
    shared.add_look(opened.clone());
    announce(reporter, &opened, cost).await;
    tokio::spawn(keep_alive(opened.clone(), reporter.clone()));
    loading::load(shared, reporter, &opened, cancel).await
}

/// The person's rules for classes. Broken ones do not stop a look at three in the morning: they are told, and the default ones
/// serve.
async fn class_rules(shared: &Shared, reporter: &Reporter) -> Rules {
    let home = shared.settings.home.clone();
    let read = tokio::task::spawn_blocking(move || Rules::of(&home)).await;
    match read {
        Ok(Ok(rules)) => rules,
        Ok(Err(error)) => {
            let file = shared.settings.home.class_rules();
            let text = format!(
                "The default rules class these failures, because {} cannot be used: {error}. Mend the file, or take it away.",
                file.display()
            );
            reporter.tell(News::Notice(text)).await;
            Rules::default()
        }
        Err(_) => Rules::default(),
    }
}

async fn announce(reporter: &Reporter, look: &OpenLook, cost: LookCost) {
    let opened = LookOpened {
        look: look.id,
        connection: look.connection.id,
        address: look.address().clone(),
        cost,
        view: look.view.clone(),
    };
    reporter.tell(News::LookOpened(opened)).await;
}

fn request(ask: &LookAsk, keeper: Arc<dyn dlo_core::Keeper>) -> LookRequest {
    LookRequest {
        start: ask.start.clone(),
        limit: ask.limit,
        partitions: ask.partitions.clone(),
        isolation: ask.isolation,
        follow: ask.follow,
        hold: ask.hold,
        consent: ask.consent,
        keeper,
    }
}

/// Loads as many again after a budget was reached.
pub async fn further(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: LookId,
    cancel: &CancellationToken,
) -> Result<()> {
    let look = shared.look(id)?;
    loading::load(shared, reporter, &look, cancel).await
}

/// Extends the locks now.
pub async fn extend(shared: &Arc<Shared>, reporter: &Reporter, id: LookId) -> Result<()> {
    let look = shared.look(id)?;
    look.look.extend().await?;
    reporter
        .tell(News::LookProgress {
            look: id,
            progress: look.progress(),
        })
        .await;
    Ok(())
}

/// Gives everything back and forgets the look.
pub async fn close(shared: &Arc<Shared>, reporter: &Reporter, id: LookId) -> Result<()> {
    let look = shared.look(id)?;
    shared.drop_plans_of(id);
    let returned = give_back(shared, &look).await?;
    reporter.tell(News::LookClosed { look: id, returned }).await;
    Ok(())
}

/// Closes a look once; a second call gives nothing back.
pub async fn give_back(shared: &Arc<Shared>, look: &OpenLook) -> Result<Returned> {
    if look.closed.swap(true, Ordering::AcqRel) {
        return Ok(Returned::default());
    }
    look.cancel.cancel();
    // The loader sees the cancellation and stops; only then everything that was delivered is known to the connector.
    let _loading = look.loading.lock().await;
    let returned = look.look.close().await;
    look.keeper.finish(&returned).await;
    shared.remove_look(look.id);
    returned
}

/// Extends locks at half of their time, and gives them back before the broker's own limit.
async fn keep_alive(look: Arc<OpenLook>, reporter: Reporter) {
    /// How soon a person learns that a connection was lost, and with it what was held.
    const CHECK: Duration = Duration::from_secs(3);
    let mut due = Instant::now() + until_extension(&look);
    loop {
        tokio::select! {
            () = look.cancel.cancelled() => return,
            () = tokio::time::sleep_until(due.min(Instant::now() + CHECK)) => {}
        }
        if Instant::now() < due && !seems_lost(&look) {
            continue;
        }
        if let Some(why) = extend_or_lose(&look).await {
            let rows = look.view.rows_where(RowState::can_act);
            look.view.set_state(rows, RowState::Stale);
            reporter.tell(News::HoldLost { look: look.id, why }).await;
            return;
        }
        due = Instant::now() + until_extension(&look);
    }
}

/// Rows that could be acted on are shown, and nothing is held.
fn seems_lost(look: &OpenLook) -> bool {
    look.destination.capability.browse == Browse::ByLock
        && look.look.hold().is_none()
        && !look.view.open_rows().is_empty()
}

/// Half of the time that the locks still have.
fn until_extension(look: &OpenLook) -> Duration {
    let wait = match look.look.hold() {
        Some(hold) => {
            Duration::from_millis(u64::try_from(hold.until.since(Millis::now()) / 2).unwrap_or(0))
        }
        None => look.ask.hold / 2,
    };
    wait.max(Duration::from_secs(1))
}

/// Why the hold ended, if it did.
async fn extend_or_lose(look: &OpenLook) -> Option<String> {
    /// Time that a polite return takes at most.
    const MARGIN: i64 = 60_000;
    let at_most_until = look.look.hold().and_then(|hold| hold.at_most_until);
    if at_most_until.is_some_and(|end| end.since(Millis::now()) < MARGIN) {
        return match look.look.close().await {
            Ok(returned) => Some(format!(
                "The broker's time limit for holding came near, so {} messages were given back. Look again to go on.",
                returned.given_back
            )),
            Err(error) => Some(error.to_string()),
        };
    }
    match look.look.extend().await {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::Cancelled => None,
        Err(error) => Some(error.to_string()),
    }
}
