//! Where secrets are kept, on a keychain made for the tests.

use super::*;

/// A keychain in memory; a missing map is a computer without one.
#[derive(Default)]
pub(crate) struct TestKeychain(pub(crate) Mutex<BTreeMap<String, Secret>>);

impl Keychain for TestKeychain {
    fn status(&self) -> Result<()> {
        Ok(())
    }

    fn get(&self, account: &str) -> Result<Option<Secret>> {
        Ok(self.0.lock().unwrap().get(account).cloned())
    }

    fn set(&self, account: &str, secret: &Secret) -> Result<()> {
        let mut entries = self.0.lock().unwrap();
        entries.insert(account.to_owned(), secret.clone());
        Ok(())
    }

    fn delete(&self, account: &str) -> Result<()> {
        self.0.lock().unwrap().remove(account);
        Ok(())
    }
}

/// A vault of this home without the process's own environment.
pub(crate) fn vault<'a>(
    home: &'a Home,
    keychain: &'a dyn Keychain,
    environment: &[(&str, &str)],
) -> Vault<'a> {
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Vault {
        home,
        keychain,
        environment: environment.collect(),
    }
}

pub(crate) fn secrets(pairs: &[(&str, &str)]) -> Secrets {
    let mut secrets = Secrets::default();
    for (name, secret) in pairs {
        secrets.insert(*name, Secret::new(*secret));
    }
    secrets
}

fn names() -> Vec<String> {
    ["password", "session_token"].map(str::to_owned).to_vec()
}

fn both() -> Secrets {
    secrets(&[("password", "hunter2 ü\"\n"), ("session_token", "t")])
}

#[test]
fn each_place_gives_back_what_it_was_given_until_it_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    let vault = vault(&home, &keychain, &[]);
    let passphrase = Secret::new("correct horse");
    for keep in [
        KeepSecrets::Keychain,
        KeepSecrets::Encrypted(passphrase),
        KeepSecrets::PlainText,
    ] {
        let kept = Kept::from(&keep);
        vault.store("orders", &both(), &keep).unwrap();
        let other = secrets(&[("password", "other")]);
        vault.store("billing", &other, &keep).unwrap();
        assert_eq!(vault.load("orders", kept, &names()).unwrap(), both());
        vault.forget("orders", kept, &names()).unwrap();
        assert!(vault.load("orders", kept, &names()).unwrap().is_empty());
        let left = vault.load("billing", kept, &["password".to_owned()]);
        assert_eq!(left.unwrap(), other, "{kept:?}");
    }
}

#[test]
fn the_environment_comes_first_and_needs_no_other_place() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    assert_eq!(
        variable("orders-prod", "sasl.password"),
        "DLO_SECRET_ORDERS_PROD_SASL_PASSWORD"
    );
    let vault = vault(
        &home,
        &keychain,
        &[
            ("DLO_SECRET_ORDERS_PROD_PASSWORD", "from the environment"),
            ("DLO_SECRET_ORDERS_PROD_SESSION_TOKEN", "this too"),
        ],
    );
    let found = vault
        .load("orders-prod", Kept::EncryptedFile, &names())
        .unwrap();
    let expected = [
        ("password", "from the environment"),
        ("session_token", "this too"),
    ];
    assert_eq!(found, secrets(&expected));
    let unnamed = vault.load("orders-prod", Kept::Nowhere, &[]).unwrap();
    assert_eq!(
        unnamed,
        secrets(&expected),
        "well-known names need no entry"
    );
    let of_another = vault.load("orders", Kept::Nowhere, &[]).unwrap();
    assert!(of_another.is_empty());
}

#[test]
fn the_encrypted_file_hides_its_secrets_and_opens_with_its_passphrase_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    let right = Secret::new("correct horse");
    let keep = KeepSecrets::Encrypted(right.clone());
    vault(&home, &keychain, &[])
        .store("orders", &both(), &keep)
        .unwrap();
    let text = std::fs::read_to_string(encrypted_file(&home)).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("orders"));

    let wrong = KeepSecrets::Encrypted(Secret::new("battery staple"));
    let refused = vault(&home, &keychain, &[]).store("billing", &both(), &wrong);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unauthenticated);
    assert_eq!(
        unlock(&home, &Secret::new("battery staple"))
            .unwrap_err()
            .kind(),
        ErrorKind::Unauthenticated
    );

    let new = Secret::new("another passphrase");
    change_passphrase(&home, &right, &new).unwrap();
    assert!(encrypted::read(&encrypted_file(&home), &right).is_err());
    assert!(encrypted::read(&encrypted_file(&home), &new).is_ok());
}

#[test]
fn a_changed_encrypted_file_is_refused_and_so_are_weaker_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secrets.encrypted.json");
    let passphrase = Secret::new("correct horse");
    let mut shelf = Shelf::new();
    put(&mut shelf, "orders", &both());
    encrypted::write(&file, &passphrase, &shelf).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [
        ("\"passes\": 3", "\"passes\": 1"),
        ("\"memory_kib\": 65536", "\"memory_kib\": 4000000000"),
        ("\"dlo_secrets\": 1", "\"dlo_secrets\": 2"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        std::fs::write(&file, changed).unwrap();
        encrypted::read(&file, &passphrase).unwrap_err();
    }
    let short = encrypted::write(&file, &Secret::new("short"), &shelf);
    assert_eq!(short.unwrap_err().kind(), ErrorKind::ConfigInvalid);
}

#[test]
fn a_locked_file_says_how_to_open_it_and_a_passphrase_in_the_environment_does() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    let mut shelf = Shelf::new();
    put(&mut shelf, "orders", &both());
    let passphrase = Secret::new("correct horse");
    encrypted::write(&encrypted_file(&home), &passphrase, &shelf).unwrap();
    assert!(is_locked(&home));
    let error = vault(&home, &keychain, &[])
        .load("orders", Kept::EncryptedFile, &names())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert!(error.to_string().contains("DLO_PASSPHRASE"), "{error}");
    assert!(
        error.to_string().contains("DLO_SECRET_ORDERS_PASSWORD"),
        "{error}"
    );
    let environment = [("DLO_PASSPHRASE", "correct horse")];
    let opened = vault(&home, &keychain, &environment);
    assert_eq!(
        opened
            .load("orders", Kept::EncryptedFile, &names())
            .unwrap(),
        both()
    );
    unlock(&home, &passphrase).unwrap();
    assert!(!is_locked(&home));
}

#[cfg(unix)]
#[test]
fn files_with_secrets_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    let vault = vault(&home, &keychain, &[]);
    vault
        .store("orders", &both(), &KeepSecrets::PlainText)
        .unwrap();
    let mode = std::fs::metadata(vault.plain_file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_plain_file_is_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let keychain = TestKeychain::default();
    let vault = vault(&home, &keychain, &[]);
    std::fs::write(vault.plain_file(), "[orders]\npassword = hunter2\n").unwrap();
    let error = vault.load("orders", Kept::PlainText, &names()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
