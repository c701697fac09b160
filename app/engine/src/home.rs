//! Where things are kept on this machine.

use std::path::PathBuf;

use dlo_core::{Error, ErrorKind, Result};

/// The folders of configuration and data. `DLO_HOME` moves both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub config: PathBuf,
    pub data: PathBuf,
}

impl Home {
    /// From the environment: `DLO_HOME`, else the platform's folders
    /// (XDG base directories on Linux, Application Support on macOS, AppData on Windows).
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when neither `DLO_HOME` nor a home folder is known.
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        if let Some(home) = variable("DLO_HOME") {
            return Ok(Self::at(home));
        }
        let user = variable("HOME").or_else(|| variable("USERPROFILE"));
        let (config, data) = if cfg!(windows) {
            (
                variable("APPDATA"),
                variable("LOCALAPPDATA").or_else(|| variable("APPDATA")),
            )
        } else if cfg!(target_os = "macos") {
            let support = user.map(|user| user.join("Library/Application Support"));
            (support.clone(), support)
        } else {
            let config = variable("XDG_CONFIG_HOME")
                .or_else(|| user.as_ref().map(|user| user.join(".config")));
            let data = variable("XDG_DATA_HOME")
                .or_else(|| user.as_ref().map(|user| user.join(".local/share")));
            (config, data)
        };
        match (config, data) {
            (Some(config), Some(data)) => Ok(Self {
                config: config.join("dead-letter-office"),
                data: data.join("dead-letter-office"),
            }),
            _ => Err(Error::new(
                ErrorKind::ConfigInvalid,
                "find the home folder",
                "HOME is not set",
            )
            .advise("Set DLO_HOME to a folder for configuration and data.")),
        }
    }

    /// Configuration and data in one folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self {
            config: folder.clone(),
            data: folder,
        }
    }

    /// The SQLite database with journal, audit trail and saved copies.
    pub fn database(&self) -> PathBuf {
        self.data.join("dlo.sqlite")
    }

    /// A person's own rules for the classes of failures; see [`crate::group::Rules`].
    pub fn class_rules(&self) -> PathBuf {
        self.config.join("rules.toml")
    }

    /// The profiles.
    pub fn profiles(&self) -> PathBuf {
        self.config.join("profiles.toml")
    }
}
