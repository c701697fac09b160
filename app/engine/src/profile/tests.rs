//! Profiles kept, found and removed, and the secrets that never reach their file.

use dlo_core::{ErrorKind, Secret};

use super::*;
use crate::secrets::tests::{TestKeychain, secrets, vault};

/// A home of its own, without the computer's keychain and environment.
struct Desk {
    home: Home,
    keychain: TestKeychain,
    _folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            home: Home::at(folder.path()),
            keychain: TestKeychain::default(),
            _folder: folder,
        }
    }

    fn with(text: &str) -> Self {
        let desk = Self::new();
        std::fs::write(desk.home.profiles(), text).unwrap();
        desk
    }

    fn save(&self, profile: &Profile, secrets: Secrets, keep: KeepSecrets) -> Result<()> {
        let vault = vault(&self.home, &self.keychain, &[]);
        save_in(&vault, &self.home, profile.clone(), secrets, &keep)
    }

    fn find(&self, name: &str) -> Option<(Profile, Secrets)> {
        self.find_with(name, &Secrets::default()).unwrap()
    }

    fn find_with(&self, name: &str, typed: &Secrets) -> Result<Option<(Profile, Secrets)>> {
        let vault = vault(&self.home, &self.keychain, &[]);
        find_in(&vault, &self.home, name, typed)
    }

    fn remove(&self, name: &str) -> Result<()> {
        remove_in(&vault(&self.home, &self.keychain, &[]), &self.home, name)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.home.profiles()).unwrap()
    }

    fn everything(&self) -> String {
        let files = std::fs::read_dir(&self.home.config).unwrap().flatten();
        files
            .map(|file| std::fs::read_to_string(file.path()).unwrap())
            .collect()
    }
}

fn profile() -> Profile {
    Profile {
        name: "orders-prod".to_owned(),
        url: "amqps://app@mq.example:5671/orders".to_owned(),
        mode: Mode::Production,
        headers: [("x-error".to_owned(), "reason.message".to_owned())].into(),
        registry: Some("https://registry.example".to_owned()),
        notes: "Orders team\nsecond line".to_owned(),
    }
}

#[test]
fn a_profile_comes_back_as_it_was_saved_and_is_gone_once_removed() {
    let desk = Desk::new();
    assert_eq!(load(&desk.home).unwrap(), []);
    let password = secrets(&[("password", "hunter2")]);
    desk.save(&profile(), password.clone(), KeepSecrets::Keychain)
        .unwrap();
    let plain = Profile {
        name: "local".to_owned(),
        url: "kafka://localhost:9092,localhost:9093".to_owned(),
        ..Profile::default()
    };
    desk.save(&plain, Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    assert_eq!(load(&desk.home).unwrap(), [profile(), plain.clone()]);
    assert_eq!(desk.find("orders-prod"), Some((profile(), password)));
    assert_eq!(desk.find("local"), Some((plain, Secrets::default())));
    assert_eq!(desk.find("other"), None);
    assert!(!desk.everything().contains("hunter2"));

    desk.remove("orders-prod").unwrap();
    assert_eq!(desk.find("orders-prod"), None);
    assert!(desk.keychain.0.lock().unwrap().is_empty());
    let again = desk.remove("orders-prod").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
}

#[test]
fn secrets_in_urls_are_moved_to_where_secrets_are_kept() {
    let desk = Desk::new();
    let with_secrets = Profile {
        url: "amqps://app:hunter2@mq.example:5671/orders".to_owned(),
        registry: Some("https://me:hunter3@registry.example".to_owned()),
        ..profile()
    };
    let keep = KeepSecrets::Encrypted(Secret::new("correct horse"));
    desk.save(&with_secrets, Secrets::default(), keep).unwrap();
    let (found, kept) = desk.find("orders-prod").unwrap();
    assert_eq!(found.url, profile().url);
    assert_eq!(
        found.registry.as_deref(),
        Some("https://me@registry.example")
    );
    let expected = [("password", "hunter2"), ("registry.password", "hunter3")];
    assert_eq!(kept, secrets(&expected));
    assert!(!desk.everything().contains("hunter"));
}

#[test]
fn editing_without_typing_the_password_keeps_it_and_moving_it_leaves_none_behind() {
    let desk = Desk::new();
    let two = secrets(&[("password", "hunter2"), ("session_token", "t")]);
    desk.save(&profile(), two.clone(), KeepSecrets::Keychain)
        .unwrap();
    let edited = Profile {
        notes: String::new(),
        ..profile()
    };
    desk.save(&edited, Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    assert_eq!(desk.find("orders-prod"), Some((edited, two)));

    let one = secrets(&[("password", "new")]);
    desk.save(&profile(), one.clone(), KeepSecrets::Keychain)
        .unwrap();
    assert_eq!(desk.keychain.0.lock().unwrap().len(), 1);
    desk.save(&profile(), one.clone(), KeepSecrets::PlainText)
        .unwrap();
    assert!(desk.keychain.0.lock().unwrap().is_empty());
    assert_eq!(desk.find("orders-prod").unwrap().1, one);
    desk.save(&profile(), one.clone(), KeepSecrets::Nowhere)
        .unwrap();
    assert!(desk.find("orders-prod").unwrap().1.is_empty());
    desk.save(&profile(), one, KeepSecrets::PlainText).unwrap();
    let vault = vault(&desk.home, &desk.keychain, &[]);
    forget_secrets_in(&vault, &desk.home, "orders-prod").unwrap();
    assert_eq!(
        desk.find("orders-prod"),
        Some((profile(), Secrets::default()))
    );
    assert!(!desk.everything().contains("new"));
}

#[test]
fn what_is_typed_counts_more_than_what_is_kept_and_opens_nothing() {
    let text = "[profiles.a]\nurl = \"demo:\"\n\
                secrets = { kept = \"encrypted-file\", names = [\"password\"] }\n";
    let desk = Desk::with(text);
    let locked = desk.find_with("a", &Secrets::default()).unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Unauthenticated);
    let typed = secrets(&[("password", "typed"), (PASSPHRASE, "correct horse")]);
    let (_, found) = desk.find_with("a", &typed).unwrap().unwrap();
    assert_eq!(found, secrets(&[("password", "typed")]));
}

#[test]
fn a_change_touches_nothing_else_in_the_file() {
    let text = "# mine\n\n[profiles.b]  # second\nurl = 'demo:'   # the demo\n\n\
                # first, but last\n[profiles.a]\nmode = \"production\"\nurl = \"memory:\"\n";
    let desk = Desk::with(text);
    let [b, a] = &load(&desk.home).unwrap()[..] else {
        panic!("two profiles");
    };
    desk.save(b, Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    assert_eq!(desk.text(), text, "saving the same changes nothing");
    let careful = Profile {
        mode: Mode::ReadOnly,
        ..a.clone()
    };
    desk.save(&careful, Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    assert_eq!(desk.text(), text.replace("production", "read-only"));
    let moved = Profile {
        url: "memory:x".to_owned(),
        ..b.clone()
    };
    desk.save(&moved, Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    assert!(
        desk.text().contains("url = \"memory:x\"   # the demo"),
        "{}",
        desk.text()
    );
}

#[test]
fn a_mistake_in_the_file_is_named_and_never_ignored() {
    for (text, word) in [
        (
            "[profiles.a]\nurl = \"demo:\"\nmod = \"production\"\n",
            "mod",
        ),
        (
            "[profiles.a]\nurl = \"demo:\"\nmode = \"prod\"\n",
            "production",
        ),
        ("[profiles.a]\nmode = \"production\"\n", "url"),
        ("[profile.a]\nurl = \"demo:\"\n", "profile"),
        ("[profiles.a\n", "line 1"),
    ] {
        let error = load(&Desk::with(text).home).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConfigInvalid);
        assert!(error.to_string().contains(word), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn names_and_urls_that_cannot_work_are_refused() {
    let desk = Desk::new();
    desk.save(&profile(), Secrets::default(), KeepSecrets::Nowhere)
        .unwrap();
    let long = "x".repeat(65);
    for name in [
        "",
        " a",
        "-a",
        "amqp://h",
        "a/b",
        "a\nb",
        &long,
        "Orders_Prod",
    ] {
        let wrong = Profile {
            name: name.to_owned(),
            ..profile()
        };
        let error = desk
            .save(&wrong, Secrets::default(), KeepSecrets::Nowhere)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConfigInvalid, "{name:?}: {error}");
    }
    for wrong in [
        Profile {
            url: "no scheme".to_owned(),
            ..profile()
        },
        Profile {
            headers: [("x".to_owned(), String::new())].into(),
            ..profile()
        },
    ] {
        let error = desk
            .save(&wrong, Secrets::default(), KeepSecrets::Nowhere)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConfigInvalid, "{error}");
    }
    assert_eq!(load(&desk.home).unwrap(), [profile()]);
}

#[test]
fn two_who_save_at_once_both_find_their_profile() {
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                let profile = Profile {
                    name: format!("p{number}"),
                    ..profile()
                };
                desk.save(&profile, Secrets::default(), KeepSecrets::Nowhere)
                    .unwrap();
            });
        }
    });
    assert_eq!(load(&desk.home).unwrap().len(), 8);
}
