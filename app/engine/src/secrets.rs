//! Where the secrets of saved profiles are kept, and how they are found again.
//!
//! Four places, and none of them is the file of profiles: the platform's keychain, a file encrypted
//! with a passphrase, the environment, and, for those who insist, a file in plain text. It is
//! separate from the profiles so that those can be read, shared and committed without a thought.
//!
//! **Environment.** `DLO_SECRET_<PROFILE>_<NAME>` holds one secret and is looked at first, wherever
//! the others are kept. Both parts are in capitals, with `_` for everything that is no letter or
//! digit: the `password` of `orders-prod` is `DLO_SECRET_ORDERS_PROD_PASSWORD`, and `sasl.password`
//! ends in `_SASL_PASSWORD`. `DLO_PASSPHRASE` opens the encrypted file.

mod encrypted;
mod files;
mod keychain;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use dlo_core::{Error, ErrorKind, Result, SECRET_OPTIONS, Secret, Secrets};
use serde::{Deserialize, Serialize};

use crate::command::KeepSecrets;
use crate::home::Home;

pub(crate) use files::{lock, write_private};
pub use keychain::Keychain;
use keychain::PlatformKeychain;

/// The variable with the passphrase of the encrypted file.
pub const PASSPHRASE_VARIABLE: &str = "DLO_PASSPHRASE";

/// The name under which a passphrase may be handed over among typed secrets.
pub const PASSPHRASE: &str = "dlo.passphrase";

/// Where the secrets of a profile are, as its entry in the file of profiles says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Nowhere: they are typed each time, or come from the environment.
    #[default]
    Nowhere,
    /// In the platform's keychain.
    Keychain,
    /// In the encrypted file.
    EncryptedFile,
    /// In the plain file.
    PlainText,
}

impl From<&KeepSecrets> for Kept {
    fn from(keep: &KeepSecrets) -> Self {
        match keep {
            KeepSecrets::Nowhere => Self::Nowhere,
            KeepSecrets::Keychain => Self::Keychain,
            KeepSecrets::Encrypted(_) => Self::EncryptedFile,
            KeepSecrets::PlainText => Self::PlainText,
        }
    }
}

/// Remembers the passphrase of this home's encrypted file until the program ends, if it opens it.
///
/// # Errors
/// [`ErrorKind::Unauthenticated`] when it is the wrong one.
pub fn unlock(home: &Home, passphrase: &Secret) -> Result<()> {
    let file = encrypted_file(home);
    if file.exists() {
        encrypted::read(&file, passphrase)?;
    }
    remember(file, passphrase.clone());
    Ok(())
}

/// Whether this home has an encrypted file whose passphrase is not known yet.
pub fn is_locked(home: &Home) -> bool {
    let file = encrypted_file(home);
    file.exists() && Vault::of(home).passphrase().is_none()
}

/// Whether the platform's keychain can be used, or why not, in a sentence. Asked once: the answer
/// stays the same until the program ends. May wait for the keychain.
pub fn keychain_status() -> Result<()> {
    PlatformKeychain.status()
}

/// Encrypts the file anew with another passphrase.
///
/// # Errors
/// [`ErrorKind::Unauthenticated`] when the old one is wrong, [`ErrorKind::ConfigInvalid`] when the
/// new one is too short.
pub fn change_passphrase(home: &Home, old: &Secret, new: &Secret) -> Result<()> {
    let file = encrypted_file(home);
    let _lock = lock(&file)?;
    let secrets = encrypted::read(&file, old)?;
    encrypted::write(&file, new, &secrets)?;
    remember(file, new.clone());
    Ok(())
}

/// Secrets of all profiles: profile → name → secret.
type Shelf = BTreeMap<String, BTreeMap<String, String>>;

/// The places of one home. Everything from outside is a part of it, so that tests can replace it.
pub(crate) struct Vault<'a> {
    home: &'a Home,
    keychain: &'a dyn Keychain,
    environment: BTreeMap<String, String>,
}

impl<'a> Vault<'a> {
    /// With the platform's keychain and the process's environment.
    pub(crate) fn of(home: &'a Home) -> Self {
        let ours = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok()?;
            let is_ours = name.starts_with(VARIABLE) || name == PASSPHRASE_VARIABLE;
            Some((name, value.into_string().ok()?)).filter(|_| is_ours)
        };
        Self {
            home,
            keychain: &PlatformKeychain,
            environment: std::env::vars_os().filter_map(ours).collect(),
        }
    }

    /// The secrets with these names that a profile has, wherever they are; the environment first.
    /// Opens no keychain and no file when the environment has them all.
    pub(crate) fn load(&self, profile: &str, kept: Kept, names: &[String]) -> Result<Secrets> {
        let mut found = self.in_environment(profile, names);
        let missing: Vec<&String> = names
            .iter()
            .filter(|name| found.get(name).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let shelf = match kept {
            Kept::Nowhere => return Ok(found),
            Kept::Keychain => {
                for name in missing {
                    if let Some(secret) = self.keychain.get(&self.account(profile, name))? {
                        found.insert(name.as_str(), secret);
                    }
                }
                return Ok(found);
            }
            Kept::EncryptedFile => self.open_encrypted(profile)?,
            Kept::PlainText => files::read_plain(&self.plain_file())?,
        };
        let of_profile = shelf.get(profile);
        for name in missing {
            if let Some(secret) = of_profile.and_then(|secrets| secrets.get(name)) {
                found.insert(name.as_str(), Secret::new(secret));
            }
        }
        Ok(found)
    }

    /// Keeps secrets of a profile in place of those it had there.
    pub(crate) fn store(&self, profile: &str, secrets: &Secrets, keep: &KeepSecrets) -> Result<()> {
        match keep {
            KeepSecrets::Nowhere => Ok(()),
            KeepSecrets::Keychain => secrets.iter().try_for_each(|(name, secret)| {
                self.keychain.set(&self.account(profile, name), secret)
            }),
            KeepSecrets::Encrypted(passphrase) => {
                let file = encrypted_file(self.home);
                let _lock = lock(&file)?;
                let mut shelf = match file.exists() {
                    true => encrypted::read(&file, passphrase)?,
                    false => Shelf::new(),
                };
                put(&mut shelf, profile, secrets);
                encrypted::write(&file, passphrase, &shelf)?;
                remember(file, passphrase.clone());
                Ok(())
            }
            KeepSecrets::PlainText => {
                let file = self.plain_file();
                let _lock = lock(&file)?;
                let mut shelf = files::read_plain(&file)?;
                put(&mut shelf, profile, secrets);
                files::write_plain(&file, &shelf)
            }
        }
    }

    /// Removes the secrets of a profile from one place.
    pub(crate) fn forget(&self, profile: &str, kept: Kept, names: &[String]) -> Result<()> {
        match kept {
            Kept::Nowhere => Ok(()),
            Kept::Keychain => names
                .iter()
                .try_for_each(|name| self.keychain.delete(&self.account(profile, name))),
            Kept::EncryptedFile => {
                let file = encrypted_file(self.home);
                if !file.exists() {
                    return Ok(());
                }
                let _lock = lock(&file)?;
                let mut shelf = self.open_encrypted(profile)?;
                shelf.remove(profile);
                match self.passphrase() {
                    Some(passphrase) => encrypted::write(&file, &passphrase, &shelf),
                    None => Err(locked(profile)),
                }
            }
            Kept::PlainText => {
                let file = self.plain_file();
                let _lock = lock(&file)?;
                let mut shelf = files::read_plain(&file)?;
                match shelf.remove(profile) {
                    Some(_) => files::write_plain(&file, &shelf),
                    None => Ok(()),
                }
            }
        }
    }

    fn in_environment(&self, profile: &str, names: &[String]) -> Secrets {
        let mut found = Secrets::default();
        let known = names.iter().map(String::as_str).chain(SECRET_OPTIONS);
        for name in known {
            if let Some(secret) = self.environment.get(&variable(profile, name)) {
                found.insert(name, Secret::new(secret));
            }
        }
        found
    }

    fn open_encrypted(&self, profile: &str) -> Result<Shelf> {
        let passphrase = self.passphrase().ok_or_else(|| locked(profile))?;
        encrypted::read(&encrypted_file(self.home), &passphrase)
    }

    fn passphrase(&self) -> Option<Secret> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&encrypted_file(self.home)).cloned();
        known.or_else(|| self.environment.get(PASSPHRASE_VARIABLE).map(Secret::new))
    }

    /// Two homes may have a profile of the same name, so the keychain's entries name the home too.
    fn account(&self, profile: &str, name: &str) -> String {
        format!("{profile}/{name} ({})", self.home.config.display())
    }

    fn plain_file(&self) -> PathBuf {
        self.home.config.join("secrets.plain.toml")
    }
}

/// The variable that holds a secret of a profile.
pub fn variable(profile: &str, name: &str) -> String {
    let capitals = |text: &str| -> String {
        let capital = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_uppercase(),
            false => '_',
        };
        text.chars().map(capital).collect()
    };
    format!("{VARIABLE}{}_{}", capitals(profile), capitals(name))
}

const VARIABLE: &str = "DLO_SECRET_";

/// Passphrases that were given since the program started, by file.
static KNOWN: Mutex<BTreeMap<PathBuf, Secret>> = Mutex::new(BTreeMap::new());

fn remember(file: PathBuf, passphrase: Secret) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.insert(file, passphrase);
}

fn encrypted_file(home: &Home) -> PathBuf {
    home.config.join("secrets.encrypted.json")
}

fn put(shelf: &mut Shelf, profile: &str, secrets: &Secrets) {
    let secrets = secrets
        .iter()
        .map(|(name, secret)| (name.to_owned(), secret.expose().to_owned()));
    shelf.insert(profile.to_owned(), secrets.collect());
}

fn locked(profile: &str) -> Error {
    Error::new(
        ErrorKind::Unauthenticated,
        "read the secrets",
        "they are in an encrypted file, and its passphrase is not known",
    )
    .with("profile", profile)
    .advise(format!(
        "Give the passphrase, or set {PASSPHRASE_VARIABLE}, or give the secret itself in {}.",
        variable(profile, "password")
    ))
}

#[cfg(test)]
pub(crate) mod tests;
