//! Tells a person on the desktop that a threshold was crossed, while the window may be hidden.
//!
//! Asking the desktop's notification service may take a while and may find nobody there, so it is done on a thread of its own.
//! Where no service answers nothing fails: the badge in the window stands all the same.

use std::collections::BTreeMap;

use dlo_core::Millis;

use crate::state::{AlertKind, AppState, alerts::Origin};

/// Shows something outside of the window. Must not wait.
pub trait Notifier: std::fmt::Debug + Send + Sync {
    fn notify(&self, title: &str, text: &str);
}

/// The platform's notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeNotifier;

impl Notifier for NativeNotifier {
    fn notify(&self, title: &str, text: &str) {
        let (title, text) = (title.to_owned(), text.to_owned());
        let spawned = std::thread::Builder::new()
            .name("notification".to_owned())
            .spawn(move || {
                let shown = notify_rust::Notification::new()
                    .appname("Dead Letter Office")
                    .summary(&title)
                    .body(&text)
                    .show();
                if let Err(error) = shown {
                    eprintln!("dlo: no desktop notification: {error}");
                }
            });
        drop(spawned);
    }
}

/// What a person was told already, and when.
#[derive(Debug, Default)]
pub struct Told(BTreeMap<(String, String, AlertKind), Millis>);

/// Milliseconds before a person is told again of a figure that goes up and down around its threshold.
const AGAIN: i64 = 15 * 60_000;
/// Alerts named in one notification.
const MOST: usize = 5;

impl Told {
    /// Alerts of a person's own thresholds that they were not told of yet, as one text.
    pub fn news(&mut self, state: &AppState) -> Option<String> {
        let now = state.now;
        let mut current = BTreeMap::new();
        let mut news = Vec::new();
        for alert in state.alerts() {
            let connection = state.connection(alert.connection);
            let (Some(connection), Origin::Person) = (connection, alert.origin) else {
                continue;
            };
            let key = (
                connection.label.clone(),
                alert.address.to_string(),
                alert.kind,
            );
            if !self.0.contains_key(&key) {
                news.push(alert.text);
            }
            current.insert(key, now);
        }
        self.0.retain(|_, told| now.since(*told) < AGAIN);
        self.0.extend(current);
        if news.is_empty() {
            return None;
        }
        let more = news.len().saturating_sub(MOST);
        news.truncate(MOST);
        if more > 0 {
            news.push(format!("and {more} more"));
        }
        Some(news.join("\n"))
    }
}
