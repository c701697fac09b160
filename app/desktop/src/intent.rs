//! What a click means. Views only collect intents; [`crate::dispatch`] carries them out after the frame is drawn.

use dlo_core::{Address, Message, Secrets};
use dlo_engine::{
    Ask, TaskId,
    command::{ConnectionId, DecodeAs, LookId, Selection, ShowResolved},
};

use crate::{
    action::Action,
    dialogs::{Dialog, plan::Kind},
    files::Wanted,
    state::{Center, Purpose},
};

/// What a person wants.
#[derive(Debug)]
pub enum Intent {
    Ask(Ask),
    AskAs(Ask, Purpose),
    /// Connect to a profile's name or a URL, with secrets typed for this time.
    Connect(String, Secrets),
    /// Forget an attempt to connect that failed.
    ForgetAttempt(String),
    Show(Center),
    /// Show a destination: the look that is open on it, or its facts.
    Visit(ConnectionId, Address),
    /// Look at a destination with the usual settings.
    Look(ConnectionId, Address, dlo_core::Consent),
    Filter(LookId, String, ShowResolved),
    OpenMessage(LookId, u32, DecodeAs),
    CloseMessage(LookId),
    GoToRow(LookId, u32),
    /// An edited message takes the place of a row until it is sent; `None` takes the edit back.
    Draft(LookId, u32, Option<Box<Message>>),
    OpenDialog(Box<Dialog>),
    Perform(Action),
    /// Prepare an act on some messages of a look.
    Act(Kind, LookId, Selection, u64),
    Export(LookId, Selection, u64),
    CancelTask(TaskId),
    ClearJobs,
    Dismiss(usize),
    PickFile(Wanted),
    Copy(String),
    OpenUrl(String),
}

/// What a panel is given: what is known, and a place for what is wanted.
#[derive(Debug)]
pub struct Cx<'a> {
    pub state: &'a crate::state::AppState,
    pub intents: &'a mut Vec<Intent>,
    /// Kinds of brokers this program was built with.
    pub brokers: &'a [dlo_core::ConnectorInfo],
    /// Why there is no native file dialog, if that is so.
    pub no_dialog: Option<&'a str>,
}

impl Cx<'_> {
    pub fn want(&mut self, intent: Intent) {
        self.intents.push(intent);
    }

    pub fn ask(&mut self, ask: Ask) {
        self.intents.push(Intent::Ask(ask));
    }

    pub fn dialog(&mut self, dialog: Dialog) {
        self.intents.push(Intent::OpenDialog(Box::new(dialog)));
    }
}
