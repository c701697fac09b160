//! A value that comes from the engine: not asked for, on its way, there, or failed. The last good value stays on screen.

use dlo_core::Error;

use crate::{theme::colours, words};

/// A value that has to be asked for.
#[derive(Clone, Debug, Default)]
pub enum Remote<T> {
    #[default]
    NotAsked,
    Loading {
        previous: Option<T>,
    },
    Ready(T),
    Failed {
        error: Error,
        previous: Option<T>,
    },
}

impl<T> Remote<T> {
    /// The newest value there is, even while a newer one is on its way.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::NotAsked => None,
            Self::Loading { previous } | Self::Failed { previous, .. } => previous.as_ref(),
            Self::Ready(value) => Some(value),
        }
    }

    pub fn is_loading(&self) -> bool {
        matches!(self, Self::Loading { .. })
    }

    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    /// It was asked for.
    pub fn load(&mut self) {
        *self = Self::Loading {
            previous: self.take(),
        };
    }

    /// It came.
    pub fn ready(&mut self, value: T) {
        *self = Self::Ready(value);
    }

    /// It did not come.
    pub fn fail(&mut self, error: Error) {
        *self = Self::Failed {
            error,
            previous: self.take(),
        };
    }

    /// The task ended without an answer.
    pub fn settle(&mut self) {
        if self.is_loading() {
            *self = self.take().map_or(Self::NotAsked, Self::Ready);
        }
    }

    fn take(&mut self) -> Option<T> {
        match std::mem::take(self) {
            Self::NotAsked => None,
            Self::Loading { previous } | Self::Failed { previous, .. } => previous,
            Self::Ready(value) => Some(value),
        }
    }

    /// Draws what is to be said about it: that it is on its way, or why it failed.
    pub fn status_ui(&self, ui: &mut egui::Ui) {
        match self {
            Self::Loading { .. } => {
                ui.horizontal(|ui| {
                    ui.add(egui::Spinner::new().size(13.0));
                    ui.weak("Loading");
                });
            }
            Self::Failed { error, .. } => {
                let text = words::error(error);
                ui.add(egui::Label::new(
                    egui::RichText::new(text).color(colours(ui).danger),
                ));
            }
            Self::NotAsked | Self::Ready(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use dlo_core::ErrorKind;

    use super::*;

    #[test]
    fn the_last_value_stays_while_loading_and_after_a_failure() {
        let mut remote = Remote::Ready(1);
        remote.load();
        assert_eq!((remote.value(), remote.is_loading()), (Some(&1), true));
        remote.fail(Error::new(ErrorKind::Unreachable, "list", "no answer"));
        assert_eq!(remote.value(), Some(&1));
        assert!(remote.error().is_some());
        remote.load();
        remote.settle();
        assert!(matches!(remote, Remote::Ready(1)));
    }
}
