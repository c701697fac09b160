//! Every action of the window with its text, tooltip and key. Menus, the palette and the keyboard all read it here.

use egui::{Key, KeyboardShortcut, Modifiers};

use crate::state::{AppState, LookState};

/// Something a person can do from anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Palette,
    Connect,
    NewProfile,
    Refresh,
    Look,
    LookFurther,
    GiveBack,
    ExtendHold,
    Filter,
    GoToRow,
    ToggleGrouping,
    UnfoldGroups,
    SelectAll,
    SelectNone,
    Replay,
    Edit,
    Discard,
    Tombstone,
    Unresolve,
    Export,
    Import,
    Notes,
    CloseMessage,
    Audit,
    Runs,
    Captures,
    ToggleDestinations,
    ToggleTheme,
    ZoomIn,
    ZoomOut,
    Keys,
    Quit,
}

/// What decides whether an action can be done at the moment.
#[derive(Debug)]
pub struct Scene<'a> {
    pub state: &'a AppState,
    /// Messages that are selected in the active look.
    pub selected: u64,
}

const COMMAND: Modifiers = Modifiers::COMMAND;
const COMMAND_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

impl Action {
    /// All of them, in the order of the menu and the palette.
    pub const ALL: [Self; 32] = [
        Self::Palette,
        Self::Connect,
        Self::NewProfile,
        Self::Refresh,
        Self::Look,
        Self::LookFurther,
        Self::GiveBack,
        Self::ExtendHold,
        Self::Filter,
        Self::GoToRow,
        Self::ToggleGrouping,
        Self::UnfoldGroups,
        Self::SelectAll,
        Self::SelectNone,
        Self::Replay,
        Self::Edit,
        Self::Discard,
        Self::Tombstone,
        Self::Unresolve,
        Self::Export,
        Self::Import,
        Self::Notes,
        Self::CloseMessage,
        Self::Audit,
        Self::Runs,
        Self::Captures,
        Self::ToggleDestinations,
        Self::ToggleTheme,
        Self::ZoomIn,
        Self::ZoomOut,
        Self::Keys,
        Self::Quit,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Self::Palette => "Find anything…",
            Self::Connect => "Connect…",
            Self::NewProfile => "New profile…",
            Self::Refresh => "Refresh",
            Self::Look => "Look at messages",
            Self::LookFurther => "Look further",
            Self::GiveBack => "Give back",
            Self::ExtendHold => "Hold longer",
            Self::Filter => "Filter messages",
            Self::GoToRow => "Go to row…",
            Self::ToggleGrouping => "Group by failure",
            Self::UnfoldGroups => "Unfold all groups",
            Self::SelectAll => "Select all",
            Self::SelectNone => "Select none",
            Self::Replay => "Replay…",
            Self::Edit => "Edit message…",
            Self::Discard => "Discard…",
            Self::Tombstone => "Write tombstones…",
            Self::Unresolve => "Take back the mark…",
            Self::Export => "Export…",
            Self::Import => "Import…",
            Self::Notes => "Owner, notes and alerts…",
            Self::CloseMessage => "Close message or page",
            Self::Audit => "Audit trail",
            Self::Runs => "Runs",
            Self::Captures => "Saved copies",
            Self::ToggleDestinations => "Show or hide destinations",
            Self::ToggleTheme => "Dark or light",
            Self::ZoomIn => "Larger",
            Self::ZoomOut => "Smaller",
            Self::Keys => "Keys…",
            Self::Quit => "Quit",
        }
    }

    pub fn tooltip(self) -> &'static str {
        match self {
            Self::Palette => "Actions, destinations and profiles by name",
            Self::Connect => "Connect to a broker by its URL",
            Self::NewProfile => "Save a connection under a name",
            Self::Refresh => "Ask the broker again",
            Self::Look => "Read messages without removing them",
            Self::LookFurther => "Go on with the same budget again",
            Self::GiveBack => "Return everything that is held, in order, and end the look",
            Self::ExtendHold => "Ask the broker to hold the messages longer",
            Self::Filter => "Show only messages that match a query",
            Self::GoToRow => "Show a row by its number",
            Self::ToggleGrouping => "Put messages under their failure, or in one list",
            Self::UnfoldGroups => "Show the messages of every group",
            Self::SelectAll => "Select every message that is shown",
            Self::SelectNone => "Select nothing",
            Self::Replay => "Publish the selected messages again, after a plan you confirm",
            Self::Edit => "Change the open message before it is replayed",
            Self::Discard => "Remove the selected messages, after a copy is saved",
            Self::Tombstone => {
                "Write a record without a value for each selected key, so that compaction removes the key"
            }
            Self::Unresolve => {
                "Count the selected messages as unresolved again; tick Settled to see them"
            }
            Self::Export => "Write the selected messages to a file",
            Self::Import => "Publish the messages of a capture file",
            Self::Notes => {
                "Who owns this destination, where its runbook is, and when it needs somebody"
            }
            Self::CloseMessage => "Close the message panel, or leave this page",
            Self::Audit => "Every act with who, when, why and what became of it",
            Self::Runs => "Replays and discards with the outcome of each message",
            Self::Captures => "Copies of messages that were removed; they can be restored",
            Self::ToggleDestinations => "Make room for the messages",
            Self::ToggleTheme => "Switch between the dark and the light theme",
            Self::ZoomIn => "Make everything larger",
            Self::ZoomOut => "Make everything smaller",
            Self::Keys => "All keys",
            Self::Quit => "Give back what is held and close the window",
        }
    }

    /// The key for it.
    pub fn shortcut(self) -> Option<KeyboardShortcut> {
        let (modifiers, key) = match self {
            Self::Palette => (COMMAND, Key::K),
            Self::Connect => (COMMAND, Key::O),
            Self::NewProfile => (COMMAND, Key::N),
            Self::Refresh => (Modifiers::NONE, Key::F5),
            Self::Look => (COMMAND, Key::L),
            Self::LookFurther => (COMMAND_SHIFT, Key::L),
            Self::GiveBack => (COMMAND, Key::B),
            Self::ExtendHold => (COMMAND, Key::H),
            Self::Filter => (COMMAND, Key::F),
            Self::GoToRow => (COMMAND, Key::G),
            Self::ToggleGrouping => (COMMAND_SHIFT, Key::G),
            Self::UnfoldGroups => (COMMAND, Key::U),
            Self::SelectAll => (COMMAND, Key::A),
            Self::SelectNone => (COMMAND_SHIFT, Key::A),
            Self::Replay => (COMMAND, Key::R),
            Self::Edit => (COMMAND, Key::E),
            Self::Discard => (COMMAND, Key::D),
            Self::Tombstone => (COMMAND_SHIFT, Key::X),
            Self::Unresolve => (COMMAND_SHIFT, Key::Z),
            Self::Export => (COMMAND, Key::S),
            Self::Import => (COMMAND, Key::I),
            Self::Notes => (COMMAND, Key::M),
            Self::CloseMessage => (Modifiers::NONE, Key::Escape),
            Self::Audit => (COMMAND, Key::Num1),
            Self::Runs => (COMMAND, Key::Num2),
            Self::Captures => (COMMAND, Key::Num3),
            Self::ToggleDestinations => (COMMAND_SHIFT, Key::D),
            Self::ToggleTheme => (COMMAND_SHIFT, Key::T),
            Self::ZoomIn => (COMMAND, Key::Plus),
            Self::ZoomOut => (COMMAND, Key::Minus),
            Self::Keys => (Modifiers::NONE, Key::F1),
            Self::Quit => (COMMAND, Key::Q),
        };
        Some(KeyboardShortcut::new(modifiers, key))
    }

    /// Why it cannot be done at the moment; `None` when it can.
    pub fn blocked(self, scene: &Scene<'_>) -> Option<String> {
        match self {
            Self::Refresh if scene.state.connections.is_empty() => {
                Some("Connect to a broker first.".to_owned())
            }
            Self::Look | Self::Notes => match scene.state.center {
                crate::state::Center::Destination(..) | crate::state::Center::Look(_) => None,
                _ => Some("Choose a destination first.".to_owned()),
            },
            Self::LookFurther => further_blocked(scene),
            Self::GiveBack => look_to_give_back(scene.state).err(),
            Self::ExtendHold => with_look(scene, |look| {
                look.progress
                    .hold
                    .is_none()
                    .then(|| "This look holds nothing.".to_owned())
            }),
            Self::Filter
            | Self::GoToRow
            | Self::ToggleGrouping
            | Self::UnfoldGroups
            | Self::SelectAll => with_look(scene, |_| None),
            Self::SelectNone => with_look(scene, |_| {
                (scene.selected == 0).then(|| "Nothing is selected.".to_owned())
            }),
            Self::Replay | Self::Discard => act_blocked(scene),
            Self::Export => with_look(scene, |_| none_selected(scene)),
            Self::Tombstone => act_blocked(scene).or_else(|| {
                cannot(scene, |capability| capability.tombstone, "This destination takes no tombstones: only a compacted topic removes a key after a record without a value.")
            }),
            Self::Unresolve => act_blocked(scene).or_else(|| {
                cannot(scene, |capability| !capability.settle_ack, "Nothing is marked as resolved here: this broker removes what is discarded. Saved copies can be restored.")
            }),
            Self::Edit => with_look(scene, |look| {
                changing_blocked(scene.state, look).or_else(|| {
                    look.message()
                        .is_none()
                        .then(|| "Open a message first.".to_owned())
                })
            }),
            Self::CloseMessage if scene.state.center.is_page() => None,
            Self::CloseMessage => with_look(scene, |look| {
                look.wanted
                    .is_none()
                    .then(|| "No message is open.".to_owned())
            }),
            Self::Import => match scene.state.active_connection() {
                None => Some("Choose a connection first.".to_owned()),
                Some(connection) => connection.read_only().map(str::to_owned),
            },
            _ => None,
        }
    }
}

fn with_look(
    scene: &Scene<'_>,
    check: impl FnOnce(&LookState) -> Option<String>,
) -> Option<String> {
    match scene.state.active_look() {
        None if scene.state.center.is_page() && !scene.state.looks.is_empty() => {
            Some("Go back to the messages first (Escape).".to_owned())
        }
        None => Some("Look at a destination first.".to_owned()),
        Some(look) => check(look),
    }
}

/// The look that *Give back* ends: the one on screen, else the only one that is open.
///
/// # Errors
/// Why there is none, as a sentence.
pub fn look_to_give_back(state: &AppState) -> Result<&LookState, String> {
    if let Some(look) = state.active_look() {
        return if look.phase.is_open() {
            Ok(look)
        } else {
            Err("Nothing is held any more.".to_owned())
        };
    }
    let mut open = state.looks.iter().filter(|look| look.phase.is_open());
    match (open.next(), open.next()) {
        (None, _) => Err("Nothing is held: no look is open.".to_owned()),
        (Some(look), None) => Ok(look),
        (Some(_), Some(_)) => {
            Err("Several looks are open: show the one to give back first.".to_owned())
        }
    }
}

/// Why a destination cannot do something, unless it can.
fn cannot(
    scene: &Scene<'_>,
    can: impl FnOnce(&dlo_core::Capability) -> bool,
    why: &str,
) -> Option<String> {
    let look = scene.state.active_look()?;
    let connection = scene.state.connection(look.connection)?;
    let listed = connection.listed(&look.address)?;
    (!can(&listed.destination.capability)).then(|| why.to_owned())
}

fn further_blocked(scene: &Scene<'_>) -> Option<String> {
    with_look(scene, |look| match look.phase {
        crate::state::LookPhase::Paused(_) => None,
        crate::state::LookPhase::Running => Some("Messages are still coming.".to_owned()),
        crate::state::LookPhase::Ended => Some("Everything was seen.".to_owned()),
        _ => Some("The look is over. Look again.".to_owned()),
    })
}

fn none_selected(scene: &Scene<'_>) -> Option<String> {
    (scene.selected == 0).then(|| "Select messages first.".to_owned())
}

/// Why nothing may be changed in a look: a read-only profile, or messages that are gone.
pub fn changing_blocked(state: &AppState, look: &LookState) -> Option<String> {
    let connection = state.connection(look.connection);
    match connection {
        None => Some("The connection is gone.".to_owned()),
        Some(connection) => connection
            .read_only()
            .map(str::to_owned)
            .or_else(|| look.blocked()),
    }
}

fn act_blocked(scene: &Scene<'_>) -> Option<String> {
    with_look(scene, |look| {
        changing_blocked(scene.state, look).or_else(|| none_selected(scene))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_means_two_things_and_every_action_has_words() {
        let mut seen = HashSet::new();
        for action in Action::ALL {
            if let Some(shortcut) = action.shortcut() {
                assert!(
                    seen.insert(format!("{shortcut:?}")),
                    "{action:?} shares its key"
                );
            }
            assert!(!action.text().is_empty() && !action.tooltip().is_empty());
        }
    }

    #[test]
    fn a_blocked_action_says_what_is_missing() {
        let state = AppState::default();
        let scene = Scene {
            state: &state,
            selected: 0,
        };
        for action in [
            Action::Replay,
            Action::Look,
            Action::Import,
            Action::Refresh,
        ] {
            let why = action.blocked(&scene).expect("blocked");
            assert!(why.ends_with("first."), "{why}");
        }
        assert_eq!(Action::Audit.blocked(&scene), None);
    }
}
