//! A named connection. Its secrets are kept elsewhere (see [`crate::command::KeepSecrets`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How careful the program is on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    #[default]
    Normal,
    /// Changes need a reason and the destination's name typed (`--yes` on the command line).
    Production,
    /// Changes are refused.
    ReadOnly,
}

/// A saved connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub name: String,
    /// The broker's URL without secrets, for example `amqps://app@mq.example:5671/orders`.
    pub url: String,
    #[serde(default)]
    pub mode: Mode,
    /// Header mappings of the person's own: header name → field of the death, for example `x-error` → `reason.message`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A schema registry's URL without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}
