//! The file of profiles: read with exact complaints, changed without touching what did not change.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dlo_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Table, Value};

use super::{Mode, Profile, SecretsKept};
use crate::home::Home;
use crate::secrets::{Kept, write_private};

const HEAD: &str = "# Connections of Dead Letter Office. No secrets in here: they are in the keychain, in an\n\
    # encrypted file or in the environment (DLO_SECRET_<PROFILE>_<NAME>).\n\n";

const PROFILES: &str = "profiles";

/// What stands under a profile's name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    url: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    registry: Option<String>,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) secrets: SecretsKept,
}

impl Entry {
    pub(super) fn new(profile: &Profile, secrets: SecretsKept) -> Self {
        Self {
            url: profile.url.clone(),
            mode: profile.mode,
            registry: profile.registry.clone(),
            notes: profile.notes.clone(),
            headers: profile.headers.clone(),
            secrets,
        }
    }

    pub(super) fn into_profile(self, name: &str) -> Profile {
        Profile {
            name: name.to_owned(),
            url: self.url,
            mode: self.mode,
            headers: self.headers,
            registry: self.registry,
            notes: self.notes,
        }
    }
}

/// The file as it was read.
#[derive(Debug)]
pub(super) struct ProfileFile {
    path: PathBuf,
    document: DocumentMut,
}

impl ProfileFile {
    /// The file, or an empty one if there is none yet.
    pub(super) fn read(home: &Home) -> Result<Self> {
        let path = home.profiles();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => HEAD.to_owned(),
            Err(error) => return Err(wrong(&path, error.to_string())),
        };
        let document: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| wrong(&path, one_line(&error.to_string())))?;
        let file = Self { path, document };
        if let Some((other, _)) = file.document.iter().find(|(name, _)| *name != PROFILES) {
            let what = format!("there is {other:?} beside the profiles");
            return Err(wrong(&file.path, what));
        }
        Ok(file)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|(name, _)| name)
    }

    pub(super) fn profiles(&self) -> Result<Vec<Profile>> {
        self.entries()
            .map(|(name, item)| Ok(self.parse(name, item)?.into_profile(name)))
            .collect()
    }

    pub(super) fn entry(&self, name: &str) -> Result<Option<Entry>> {
        let item = self.entries().find(|(other, _)| *other == name);
        item.map(|(name, item)| self.parse(name, item)).transpose()
    }

    /// Changes the fields of a profile that are different; adds the profile if it is new.
    pub(super) fn set(&mut self, name: &str, entry: &Entry) -> Result<()> {
        let profiles = self
            .document
            .entry(PROFILES)
            .or_insert_with(|| {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            })
            .as_table_like_mut();
        let table = profiles
            .map(|profiles| profiles.entry(name).or_insert(Item::Table(Table::new())))
            .and_then(Item::as_table_like_mut);
        let Some(table) = table else {
            return Err(wrong(&self.path, format!("{PROFILES} is not a table")));
        };
        for (key, value) in fields(entry) {
            let same = match (table.get(key), &value) {
                (Some(old), Some(new)) => plain(old) == plain(&Item::Value(new.clone())),
                (None, None) => true,
                _ => false,
            };
            match value {
                _ if same => {}
                Some(value) => replace(table, key, value),
                None => {
                    table.remove(key);
                }
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(profiles) = self
            .document
            .get_mut(PROFILES)
            .and_then(Item::as_table_like_mut)
        {
            profiles.remove(name);
        }
    }

    pub(super) fn write(&self, home: &Home) -> Result<()> {
        write_private(&home.profiles(), &self.document.to_string())
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &Item)> {
        let profiles = self.document.get(PROFILES).and_then(Item::as_table_like);
        profiles.into_iter().flat_map(|profiles| profiles.iter())
    }

    fn parse(&self, name: &str, item: &Item) -> Result<Entry> {
        let mut document = DocumentMut::new();
        for (key, value) in item
            .as_table_like()
            .into_iter()
            .flat_map(|table| table.iter())
        {
            document.insert(key, value.clone());
        }
        toml_edit::de::from_document(document)
            .map_err(|error| wrong(&self.path, one_line(error.message())).with("profile", name))
    }
}

/// The fields in the order in which they are written; `None` for those that say nothing.
fn fields(entry: &Entry) -> [(&'static str, Option<Value>); 6] {
    let mode = match entry.mode {
        Mode::Normal => None,
        Mode::Production => Some("production"),
        Mode::ReadOnly => Some("read-only"),
    };
    let headers = entry
        .headers
        .iter()
        .map(|(name, field)| (name.as_str(), field.as_str()));
    let notes = Some(entry.notes.as_str()).filter(|notes| !notes.is_empty());
    [
        ("url", Some(entry.url.as_str().into())),
        ("mode", mode.map(Value::from)),
        ("registry", entry.registry.as_deref().map(Value::from)),
        ("notes", notes.map(Value::from)),
        (
            "headers",
            (!entry.headers.is_empty()).then(|| Value::InlineTable(headers.collect())),
        ),
        ("secrets", secrets(&entry.secrets)),
    ]
}

fn secrets(secrets: &SecretsKept) -> Option<Value> {
    let kept = match secrets.kept {
        Kept::Nowhere => return None,
        Kept::Keychain => "keychain",
        Kept::EncryptedFile => "encrypted-file",
        Kept::PlainText => "plain-text",
    };
    let names: toml_edit::Array = secrets.names.iter().map(String::as_str).collect();
    let pairs = [("kept", Value::from(kept)), ("names", Value::Array(names))];
    Some(Value::InlineTable(pairs.into_iter().collect()))
}

/// The comment at the end of a line belongs to the person, so it outlives the value.
fn replace(table: &mut dyn toml_edit::TableLike, key: &str, mut value: Value) {
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

/// A value without the spaces and comments around it, for comparison.
fn plain(item: &Item) -> String {
    let mut document = DocumentMut::new();
    document.insert("value", item.clone());
    let value: std::result::Result<serde_json::Value, _> = toml_edit::de::from_document(document);
    value.map_or_else(|_| item.to_string(), |value| value.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wrong(path: &Path, what: String) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the profiles", what)
        .with("file", path.display().to_string())
        .advise("Mend the file in an editor, or move it away to begin anew.")
}
