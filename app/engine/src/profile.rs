//! Named connections in a readable file. Their secrets are kept elsewhere, see [`crate::secrets`].
//!
//! The file is TOML, made to be read and edited by people: a change keeps their comments, their
//! order and everything that did not change. What is not understood is an error and never ignored,
//! since a mistyped `mode = "production"` must not turn into a connection without its guard.
//!
//! ```toml
//! [profiles.orders-prod]
//! url = "amqps://app@mq.example:5671/orders"
//! mode = "production"
//! notes = "Orders team"
//! headers = { x-error = "reason.message" }
//! secrets = { kept = "keychain", names = ["password"] }
//! ```

mod check;
mod file;

use std::collections::BTreeMap;

use dlo_core::{Result, Secrets};
use serde::{Deserialize, Serialize};

use crate::command::KeepSecrets;
use crate::home::Home;
use crate::secrets::{Kept, PASSPHRASE, Vault, lock, unlock};
use file::{Entry, ProfileFile};

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

/// Where a profile's secrets are, and what they are called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretsKept {
    #[serde(default)]
    pub kept: Kept,
    #[serde(default)]
    pub names: Vec<String>,
}

/// All saved profiles in the order of the file.
///
/// # Errors
/// [`dlo_core::ErrorKind::ConfigInvalid`], with the line, when the file is not as it should be.
pub fn load(home: &Home) -> Result<Vec<Profile>> {
    ProfileFile::read(home)?.profiles()
}

/// A profile by its name, with its secrets; `None` when there is no such profile. May wait for the
/// keychain.
///
/// # Errors
/// Besides those of [`load`]: [`dlo_core::ErrorKind::Unauthenticated`] when its secrets are in an
/// encrypted file that [`crate::secrets::unlock`] was not called for, and
/// [`dlo_core::ErrorKind::Unsupported`] when the keychain that holds them is not there.
pub fn find(home: &Home, name: &str) -> Result<Option<(Profile, Secrets)>> {
    find_with(home, name, &Secrets::default())
}

/// As [`find`], with secrets that were typed for this time: they count more than those that are
/// kept, and what they give is not looked for anywhere else. One named [`PASSPHRASE`] opens the
/// encrypted file, until the program ends, and is not among the secrets that come back.
pub fn find_with(home: &Home, name: &str, typed: &Secrets) -> Result<Option<(Profile, Secrets)>> {
    if let Some(passphrase) = typed.get(PASSPHRASE) {
        unlock(home, passphrase)?;
    }
    find_in(&Vault::of(home), home, name, typed)
}

/// Where a profile's secrets are kept, without reading them; `None` when there is no such profile.
pub fn secrets_of(home: &Home, name: &str) -> Result<Option<SecretsKept>> {
    let entry = ProfileFile::read(home)?.entry(name)?;
    Ok(entry.map(|entry| entry.secrets))
}

/// Saves a profile in place of the one with its name, and its secrets where `keep` says.
///
/// Secrets in the URL (also in the registry's) are taken out of it and kept with the others. With
/// no secrets at all, those that were kept before stay, so that a profile can be edited without
/// typing its password again; another place than before moves them there. New secrets with
/// [`KeepSecrets::Nowhere`] forget the old ones, and so does [`forget_secrets`].
///
/// # Errors
/// [`dlo_core::ErrorKind::ConfigInvalid`] when the name, the URL or a header mapping cannot be used,
/// and those of the place that keeps the secrets; then nothing is changed in the file of profiles.
pub fn save(home: &Home, profile: Profile, secrets: Secrets, keep: KeepSecrets) -> Result<()> {
    save_in(&Vault::of(home), home, profile, secrets, &keep)
}

/// Removes a profile and its secrets.
///
/// # Errors
/// [`dlo_core::ErrorKind::NotFound`] when there is no such profile. Secrets that cannot be removed
/// (a keychain that is gone, a passphrase that is not known) are an error as well, and the profile
/// stays, so that they are not left behind unseen.
pub fn remove(home: &Home, name: &str) -> Result<()> {
    remove_in(&Vault::of(home), home, name)
}

/// Removes the secrets of a profile from wherever they are kept; the profile stays.
///
/// # Errors
/// As [`remove`].
pub fn forget_secrets(home: &Home, name: &str) -> Result<()> {
    forget_secrets_in(&Vault::of(home), home, name)
}

fn find_in(
    vault: &Vault<'_>,
    home: &Home,
    name: &str,
    typed: &Secrets,
) -> Result<Option<(Profile, Secrets)>> {
    let Some(entry) = ProfileFile::read(home)?.entry(name)? else {
        return Ok(None);
    };
    let mut names = entry.secrets.names.clone();
    names.retain(|name| typed.get(name).is_none());
    let mut secrets = vault.load(name, entry.secrets.kept, &names)?;
    for (name, secret) in typed.iter().filter(|(name, _)| *name != PASSPHRASE) {
        secrets.insert(name, secret.clone());
    }
    Ok(Some((entry.into_profile(name), secrets)))
}

fn save_in(
    vault: &Vault<'_>,
    home: &Home,
    mut profile: Profile,
    mut secrets: Secrets,
    keep: &KeepSecrets,
) -> Result<()> {
    check::take_secrets_out(&mut profile, &mut secrets)?;
    check::name(&profile.name)?;
    check::headers(&profile.headers)?;
    let _lock = lock(&home.profiles())?;
    let mut file = ProfileFile::read(home)?;
    check::no_lookalike(&profile.name, file.names())?;
    let before = file.entry(&profile.name)?.unwrap_or_default().secrets;
    let is_moved =
        secrets.is_empty() && Kept::from(keep) != Kept::Nowhere && Kept::from(keep) != before.kept;
    if is_moved {
        secrets = vault.load(&profile.name, before.kept, &before.names)?;
    }
    let after = match secrets.is_empty() {
        true => before.clone(),
        false => {
            vault.store(&profile.name, &secrets, keep)?;
            now_kept(&secrets, keep)
        }
    };
    if before.kept != after.kept {
        vault.forget(&profile.name, before.kept, &before.names)?;
    } else if after.kept == Kept::Keychain {
        let gone: Vec<String> = difference(&before.names, &after.names);
        vault.forget(&profile.name, before.kept, &gone)?;
    }
    file.set(&profile.name, &Entry::new(&profile, after))?;
    file.write(home)
}

fn remove_in(vault: &Vault<'_>, home: &Home, name: &str) -> Result<()> {
    let _lock = lock(&home.profiles())?;
    let mut file = ProfileFile::read(home)?;
    let Some(entry) = file.entry(name)? else {
        return Err(check::no_such_profile(name));
    };
    vault.forget(name, entry.secrets.kept, &entry.secrets.names)?;
    file.remove(name);
    file.write(home)
}

fn forget_secrets_in(vault: &Vault<'_>, home: &Home, name: &str) -> Result<()> {
    let _lock = lock(&home.profiles())?;
    let mut file = ProfileFile::read(home)?;
    let Some(mut entry) = file.entry(name)? else {
        return Err(check::no_such_profile(name));
    };
    vault.forget(name, entry.secrets.kept, &entry.secrets.names)?;
    entry.secrets = SecretsKept::default();
    file.set(name, &entry)?;
    file.write(home)
}

fn now_kept(secrets: &Secrets, keep: &KeepSecrets) -> SecretsKept {
    match Kept::from(keep) {
        Kept::Nowhere => SecretsKept::default(),
        kept => SecretsKept {
            kept,
            names: secrets.iter().map(|(name, _)| name.to_owned()).collect(),
        },
    }
}

fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let is_gone = |name: &&String| !after.contains(name);
    before.iter().filter(is_gone).cloned().collect()
}

#[cfg(test)]
mod tests;
