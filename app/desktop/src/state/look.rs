//! One open look: its rows live in the engine's view; here is what the window knows about it.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Address, Delivery, Error, LookCost, Message, Millis, Returned};
use dlo_engine::{
    Ask, TaskId,
    command::{ConnectionId, DecodeAs, LookId, ShowResolved},
    event::{Listed, LookOpened, LookProgress, Opened, RunMessage},
    store::{LookView, RowState},
};

use crate::remote::Remote;

/// One open look.
#[derive(Debug)]
pub struct LookState {
    pub id: LookId,
    pub connection: ConnectionId,
    pub address: Address,
    pub cost: LookCost,
    pub view: Arc<LookView>,
    pub progress: LookProgress,
    pub phase: LookPhase,
    /// The task that brings messages, while one does.
    pub task: Option<TaskId>,
    pub filter: Filter,
    pub opened: Remote<Arc<Opened>>,
    /// The row that was asked for last; answers about others are ignored.
    pub wanted: Option<u32>,
    /// How the message on screen is decoded.
    pub decode: DecodeAs,
    /// Messages that were edited by hand and not sent yet, by row.
    pub drafts: BTreeMap<u32, Message>,
    /// The message a pointer-like dead letter points to.
    pub pointed: Option<Pointed>,
    pub opened_at: Millis,
    /// The destination as it was listed before messages were held, when the broker could still see them.
    pub before: Option<Listed>,
}

/// Where a look stands.
#[derive(Clone, Debug, PartialEq)]
pub enum LookPhase {
    Running,
    /// A budget was reached, with the reason.
    Paused(String),
    /// Everything was seen; what is held stays held.
    Ended,
    /// The hold was lost, with the reason: rows are stale.
    Lost(String),
    Closing,
    Closed(Returned),
    Failed(Error),
}

impl LookPhase {
    /// True while messages may still be acted on.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Running | Self::Paused(_) | Self::Ended)
    }
}

/// Which rows are shown.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub query: String,
    pub resolved: ShowResolved,
    /// The rows that match; `None` when nothing is filtered.
    pub rows: Option<Arc<[u32]>>,
    /// Rows that were loaded when the filter was asked.
    pub of: u32,
    pub asked: Option<TaskId>,
    pub error: Option<Error>,
}

impl Filter {
    /// True when some rows may be hidden.
    pub fn is_active(&self) -> bool {
        !self.query.trim().is_empty()
    }
}

/// The source of a dead letter that is only a pointer.
#[derive(Clone, Debug)]
pub struct Pointed {
    pub row: u32,
    pub target: Option<Arc<Delivery>>,
    pub note: String,
}

impl LookState {
    pub fn new(opened: &LookOpened, task: TaskId, now: Millis) -> Self {
        Self {
            id: opened.look,
            connection: opened.connection,
            address: opened.address.clone(),
            cost: opened.cost.clone(),
            view: opened.view.clone(),
            progress: LookProgress {
                running: true,
                ..LookProgress::default()
            },
            phase: LookPhase::Running,
            task: Some(task),
            filter: Filter::default(),
            opened: Remote::NotAsked,
            wanted: None,
            decode: DecodeAs::Detected,
            drafts: BTreeMap::new(),
            pointed: None,
            opened_at: now,
            before: None,
        }
    }

    /// The message on screen, when it is the one that was asked for last.
    pub fn message(&self) -> Option<&Arc<Opened>> {
        self.opened
            .value()
            .filter(|opened| Some(opened.row) == self.wanted)
    }

    /// Edits of messages that a run has sent or removed are over.
    pub fn drop_settled_drafts(&mut self, messages: &[RunMessage]) {
        let view = &self.view;
        self.drafts.retain(|row, _| match view.state(*row) {
            Some(RowState::Here) => true,
            // A record that cannot be removed stays resolved; it may be edited again after the run that resolved it.
            Some(RowState::Resolved) => {
                let at = view.delivery(*row).map(|delivery| delivery.position);
                !messages.iter().any(|message| message.position == at)
            }
            _ => false,
        });
    }

    /// Asks again for the rows to show, and for the open message with its history.
    pub fn ask_again(&self) -> Vec<Ask> {
        let mut asks = vec![Ask::Filter {
            look: self.id,
            query: self.filter.query.clone(),
            resolved: self.filter.resolved,
        }];
        asks.extend(self.wanted.map(|row| Ask::Open {
            look: self.id,
            row,
            decode: self.decode.clone(),
        }));
        asks
    }

    /// Rows that need nobody any more but are shown, although that was not asked for.
    pub fn shows_settled(&self) -> bool {
        let open: u64 = self.view.groups().iter().map(|group| group.open).sum();
        self.filter.rows.is_none()
            && self.filter.resolved == ShowResolved::Hide
            && open < u64::from(self.view.len() - self.view.first())
    }

    /// Why nothing can be done with its messages, if that is so.
    pub fn blocked(&self) -> Option<String> {
        match &self.phase {
            LookPhase::Running | LookPhase::Paused(_) | LookPhase::Ended => None,
            LookPhase::Lost(why) => Some(format!(
                "The messages are no longer held: {why}. Look again."
            )),
            LookPhase::Closing => Some("The messages are being given back.".to_owned()),
            LookPhase::Closed(_) => Some("The messages were given back. Look again.".to_owned()),
            LookPhase::Failed(_) => Some("The look failed. Look again.".to_owned()),
        }
    }
}
