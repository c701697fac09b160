//! The platform's keychain: Keychain Services, Credential Manager or the Secret Service.
//!
//! The library asks once whether there is one and remembers the answer until the program ends, so a
//! keychain that is started or unlocked later is seen only after a restart; the errors say so. Calls
//! wait for another process, and perhaps for a person: never make them from a frame.

use dlo_core::{Error, ErrorKind, Result, Secret};
use keyring::v1::{Entry, Error as KeyringError};

/// Names our entries in the keychain.
const SERVICE: &str = "dead-letter-office";

/// A place for secrets by account. A trait so that tests need no keychain.
pub trait Keychain: Send + Sync {
    /// Whether it can be used.
    fn status(&self) -> Result<()>;
    /// The secret of an account, if there is one.
    fn get(&self, account: &str) -> Result<Option<Secret>>;
    /// Keeps a secret in place of the one before.
    fn set(&self, account: &str, secret: &Secret) -> Result<()>;
    /// Removes a secret, whether or not there is one.
    fn delete(&self, account: &str) -> Result<()>;
}

/// The real one.
#[derive(Debug)]
pub(super) struct PlatformKeychain;

impl Keychain for PlatformKeychain {
    fn status(&self) -> Result<()> {
        match Entry::store_status() {
            Ok(()) => Ok(()),
            Err(error) => Err(unavailable(&error.to_string())),
        }
    }

    fn get(&self, account: &str) -> Result<Option<Secret>> {
        match self.entry(account)?.get_password() {
            Ok(secret) => Ok(Some(Secret::new(secret))),
            Err(KeyringError::NoEntry) => Ok(None),
            Err(error) => Err(refused("read from the keychain", &error)),
        }
    }

    fn set(&self, account: &str, secret: &Secret) -> Result<()> {
        self.entry(account)?
            .set_password(secret.expose())
            .map_err(|error| refused("write to the keychain", &error))
    }

    fn delete(&self, account: &str) -> Result<()> {
        match self.entry(account)?.delete_credential() {
            Ok(()) | Err(KeyringError::NoEntry) => Ok(()),
            Err(error) => Err(refused("remove from the keychain", &error)),
        }
    }
}

impl PlatformKeychain {
    fn entry(&self, account: &str) -> Result<Entry> {
        self.status()?;
        Entry::new(SERVICE, account).map_err(|error| refused("open the keychain", &error))
    }
}

fn unavailable(reason: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "open the keychain",
        format!("this computer offers none ({reason})"),
    )
    .advise(
        "Start or unlock it and start dlo again, or keep the secrets in an encrypted file or in the environment.",
    )
}

/// The library's errors may carry the bytes of a secret in their `Debug` form, never in `Display`.
fn refused(operation: &str, error: &KeyringError) -> Error {
    Error::new(ErrorKind::PermissionDenied, operation, error.to_string()).advise(
        "Unlock the keychain and start dlo again, or keep the secrets in an encrypted file.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `DLO_TEST_KEYCHAIN=1` asks for it, since a keychain may ask a person to unlock it:
    /// `dbus-run-session -- sh -c 'echo -n pw | gnome-keyring-daemon --unlock --components=secrets && DLO_TEST_KEYCHAIN=1 cargo test -p dlo-engine keychain'`
    #[tokio::test]
    async fn the_platforms_keychain_keeps_and_forgets() {
        if std::env::var_os("DLO_TEST_KEYCHAIN").is_none() {
            println!("skipped: DLO_TEST_KEYCHAIN is not set");
            return;
        }
        // As the engine calls it: from a thread of tokio that may wait.
        tokio::task::spawn_blocking(keeps_and_forgets)
            .await
            .unwrap();
    }

    fn keeps_and_forgets() {
        let account = format!("test/password ({})", std::process::id());
        PlatformKeychain.status().unwrap();
        assert_eq!(PlatformKeychain.get(&account).unwrap(), None);
        for secret in ["hunter2 ü\n", "another"].map(Secret::new) {
            PlatformKeychain.set(&account, &secret).unwrap();
            assert_eq!(PlatformKeychain.get(&account).unwrap(), Some(secret));
        }
        PlatformKeychain.delete(&account).unwrap();
        PlatformKeychain.delete(&account).unwrap();
        assert_eq!(PlatformKeychain.get(&account).unwrap(), None);
    }
}
