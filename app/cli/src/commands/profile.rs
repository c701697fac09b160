//! `dlo profile`.

use std::collections::BTreeMap;

use dlo_core::{Endpoint, Result, Secret, Secrets};
use dlo_engine::{
    Ask, News,
    command::KeepSecrets,
    profile::{Mode, Profile},
};
use serde_json::json;

use super::usage;
use crate::{
    args::{self, Keep, ProfileCommand},
    client::Client,
    exit,
    out::{Out, remark},
};

pub async fn run(client: &mut Client, command: ProfileCommand) -> Result<u8> {
    match command {
        ProfileCommand::List { format } => list(client, format.json).await?,
        ProfileCommand::Add {
            name,
            url,
            mode,
            registry,
            keep,
            header,
        } => {
            let (endpoint, secrets) = Endpoint::parse(&url)?;
            let profile = Profile {
                name,
                url: endpoint.to_string(),
                mode: to_mode(mode),
                registry,
                headers: headers(&header)?,
                ..Profile::default()
            };
            save(client, profile, secrets, keep).await?;
        }
        ProfileCommand::Import {
            name,
            file,
            mode,
            keep,
        } => {
            let profile = Profile {
                name: name.clone(),
                mode: to_mode(mode),
                ..Profile::default()
            };
            client
                .ask(
                    Ask::ImportProfile {
                        profile,
                        file,
                        keep: keep_secrets(keep)?,
                    },
                    |_| (),
                )
                .await?;
            remark(&format!("profile {name} saved"));
        }
        ProfileCommand::Remove { name } => client.ask(Ask::RemoveProfile { name }, |_| ()).await?,
        ProfileCommand::Test { name } => {
            let connected = client.connect(&name).await?;
            let server = &connected.server;
            println!(
                "{} {}",
                server.product,
                server.version.as_deref().unwrap_or("(version unknown)")
            );
            server
                .facts
                .iter()
                .for_each(|(name, value)| println!("{name}: {value}"));
        }
    }
    Ok(exit::DONE)
}

async fn list(client: &mut Client, json: bool) -> Result<()> {
    let pick = |news| {
        if let News::Profiles(profiles) = news {
            Some(profiles)
        } else {
            None
        }
    };
    let profiles = client.ask_for(Ask::Profiles, pick).await?;
    let mut out = Out::new(json);
    if json {
        for profile in profiles.iter() {
            out.object(&json!({"name": profile.name, "url": profile.url, "mode": profile.mode, "registry": profile.registry}));
        }
    } else {
        let rows: Vec<_> = profiles
            .iter()
            .map(|profile| {
                vec![
                    profile.name.clone(),
                    mode_word(profile.mode).to_owned(),
                    profile.url.clone(),
                ]
            })
            .collect();
        out.table(&["NAME", "MODE", "URL"], &rows);
    }
    out.flush();
    Ok(())
}

async fn save(client: &mut Client, profile: Profile, secrets: Secrets, keep: Keep) -> Result<()> {
    let keep = if secrets.is_empty() {
        KeepSecrets::Nowhere
    } else {
        keep_secrets(keep)?
    };
    let name = profile.name.clone();
    client
        .ask(
            Ask::SaveProfile {
                profile,
                secrets,
                keep,
            },
            |_| (),
        )
        .await?;
    remark(&format!("profile {name} saved"));
    Ok(())
}

fn keep_secrets(keep: Keep) -> Result<KeepSecrets> {
    Ok(match keep {
        Keep::Nowhere => KeepSecrets::Nowhere,
        Keep::Keychain => KeepSecrets::Keychain,
        Keep::PlainText => KeepSecrets::PlainText,
        Keep::Encrypted => KeepSecrets::Encrypted(passphrase()?),
    })
}

fn passphrase() -> Result<Secret> {
    std::env::var("DLO_PASSPHRASE")
        .ok()
        .filter(|passphrase| !passphrase.is_empty())
        .map(Secret::new)
        .ok_or_else(|| {
            usage(
                "there is no passphrase",
                "Set DLO_PASSPHRASE for this command.",
            )
        })
}

fn headers(pairs: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (header, field) = text.split_once('=')?;
        Some((header.to_owned(), field.to_owned()))
    };
    let wrong = |text: &String| {
        usage(
            format!("{text} has no ="),
            "Write --header x-error=reason.message.",
        )
    };
    pairs
        .iter()
        .map(|text| pair(text).ok_or_else(|| wrong(text)))
        .collect()
}

fn to_mode(mode: args::Mode) -> Mode {
    match mode {
        args::Mode::Normal => Mode::Normal,
        args::Mode::Production => Mode::Production,
        args::Mode::ReadOnly => Mode::ReadOnly,
    }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Normal => "normal",
        Mode::Production => "production",
        Mode::ReadOnly => "read-only",
    }
}
