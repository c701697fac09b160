//! Find anything: actions, destinations and profiles by some letters of their name.

use dlo_core::{Address, Secrets};
use dlo_engine::command::ConnectionId;
use egui::{Key, RichText, ScrollArea, Ui};

use super::Then;
use crate::{
    action::{Action, Scene},
    intent::{Cx, Intent},
    theme::colours,
    widgets::parts::text_field,
};

/// What was typed and which line is chosen.
#[derive(Debug, Default)]
pub struct PaletteDialog {
    text: String,
    chosen: usize,
    started: bool,
    /// Messages that are selected, so that actions know whether they can be done.
    selected: u64,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Action(Action),
    Destination(ConnectionId, Address, String),
    Profile(String),
}

const MOST: usize = 60;

impl PaletteDialog {
    pub fn new(selected: u64) -> Self {
        Self {
            selected,
            ..Self::default()
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let (down, up) = ui.input_mut(|input| {
            let mut take = |key| input.consume_key(egui::Modifiers::NONE, key);
            (take(Key::ArrowDown), take(Key::ArrowUp))
        });
        let enter = ui.input(|input| input.key_pressed(Key::Enter));
        let width = ui.available_width();
        let field = text_field(
            ui,
            "Find anything",
            &mut self.text,
            "Action, destination or profile",
            width,
        );
        if !self.started {
            self.started = true;
            field.request_focus();
        }
        if field.changed() {
            self.chosen = 0;
        }
        let entries = self.entries(cx);
        let last = entries.len().saturating_sub(1);
        if down {
            self.chosen = (self.chosen + 1).min(last);
        }
        if up {
            self.chosen = self.chosen.saturating_sub(1);
        }
        ui.add_space(4.0);
        let mut then = Then::Stay;
        ScrollArea::vertical()
            .max_height(360.0)
            .auto_shrink([false, true])
            .show(ui, |ui| {
                for (index, entry) in entries.iter().enumerate() {
                    if self.line(
                        ui,
                        cx,
                        entry,
                        index,
                        enter && index == self.chosen,
                        down || up,
                    ) {
                        then = Then::Close;
                    }
                }
                if entries.is_empty() {
                    ui.weak("Nothing has such a name");
                }
            });
        then
    }

    fn entries(&self, cx: &Cx<'_>) -> Vec<Entry> {
        let actions = Action::ALL
            .into_iter()
            .filter(|action| *action != Action::Palette)
            .map(Entry::Action);
        let destinations = cx.state.connections.iter().flat_map(|connection| {
            let list = connection
                .list
                .value()
                .into_iter()
                .flat_map(|list| list.iter());
            list.map(|listed| {
                Entry::Destination(
                    connection.id,
                    listed.destination.address.clone(),
                    connection.label.clone(),
                )
            })
        });
        let profiles = cx
            .state
            .profiles
            .value()
            .into_iter()
            .flat_map(|profiles| profiles.iter());
        let profiles = profiles.map(|profile| Entry::Profile(profile.name.clone()));
        let mut found: Vec<_> = destinations
            .chain(profiles)
            .chain(actions)
            .filter_map(|entry| score(&name(&entry), &self.text).map(|score| (score, entry)))
            .collect();
        found.sort_by_key(|(score, _)| *score);
        found
            .into_iter()
            .take(MOST)
            .map(|(_, entry)| entry)
            .collect()
    }

    fn line(
        &self,
        ui: &mut Ui,
        cx: &mut Cx<'_>,
        entry: &Entry,
        index: usize,
        entered: bool,
        moved: bool,
    ) -> bool {
        let chosen = index == self.chosen;
        let (blocked, mut right) = match entry {
            Entry::Action(action) => {
                let scene = Scene {
                    state: cx.state,
                    selected: self.selected,
                };
                let key = action
                    .shortcut()
                    .map(|shortcut| ui.ctx().format_shortcut(&shortcut));
                (action.blocked(&scene), key.unwrap_or_default())
            }
            Entry::Destination(_, _, label) => (None, label.clone()),
            Entry::Profile(_) => (None, "profile".to_owned()),
        };
        if let Some(why) = &blocked {
            right = crate::widgets::json_tree::cut(why, 60);
        }
        let button = egui::Button::selectable(chosen, name(entry))
            .right_text(RichText::new(right).color(colours(ui).weak))
            .min_size(egui::vec2(ui.available_width(), 0.0));
        let response = ui.add_enabled(blocked.is_none(), button);
        let response = match (&blocked, entry) {
            (Some(why), _) => response.on_disabled_hover_text(why),
            (None, Entry::Action(action)) => response.on_hover_text(action.tooltip()),
            _ => response,
        };
        if chosen && moved {
            response.scroll_to_me(None);
        }
        let act = blocked.is_none() && (response.clicked() || entered);
        if act {
            cx.want(match entry {
                Entry::Action(action) => Intent::Perform(*action),
                Entry::Destination(connection, address, _) => {
                    Intent::Visit(*connection, address.clone())
                }
                Entry::Profile(name) => Intent::Connect(name.clone(), Secrets::default()),
            });
        }
        act
    }
}

fn name(entry: &Entry) -> String {
    match entry {
        Entry::Action(action) => action.text().to_owned(),
        Entry::Destination(_, address, _) => address.name.clone(),
        Entry::Profile(name) => format!("Connect to {name}"),
    }
}

/// How well a name fits what was typed: lower is better, `None` when its letters do not occur in this order.
fn score(name: &str, typed: &str) -> Option<usize> {
    let typed = typed.trim().to_lowercase();
    if typed.is_empty() {
        return Some(0);
    }
    let name = name.to_lowercase();
    if let Some(at) = name.find(&typed) {
        return Some(at);
    }
    let mut letters = name.char_indices();
    let mut last = 0;
    for wanted in typed.chars().filter(|c| !c.is_whitespace()) {
        last = letters.find(|(_, letter)| *letter == wanted)?.0;
    }
    Some(100 + last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_beat_scattered_letters() {
        assert_eq!(score("orders.dlq", "dlq"), Some(7));
        assert!(score("orders.dlq", "odq").is_some_and(|score| score > 100));
        assert_eq!(score("orders", "xyz"), None);
        assert_eq!(score("anything", ""), Some(0));
    }
}
