//! What a profile may be called and made of, and getting secrets out of its URLs.

use std::collections::BTreeMap;

use dlo_core::{Endpoint, Error, ErrorKind, Result, Secrets};

use super::Profile;
use crate::secrets::variable;

/// Longest name of a profile in characters; it has to fit into a tab and a command line.
const LONGEST_NAME: usize = 64;

/// Whether a profile may be called so. A name must not look like a URL or an option, because
/// wherever a name is taken, a URL is taken too.
pub(super) fn name(name: &str) -> Result<()> {
    let wrong = if name.trim() != name || name.is_empty() {
        Some("it is empty, or begins or ends with a space".to_owned())
    } else if name.chars().count() > LONGEST_NAME {
        Some(format!("it has more than {LONGEST_NAME} characters"))
    } else if name.starts_with('-') {
        Some("it begins with -, like an option".to_owned())
    } else {
        let bad = name
            .chars()
            .find(|c| c.is_control() || matches!(c, ':' | '/' | '\\'));
        bad.map(|c| format!("it has {c:?} in it, like a URL or a path"))
    };
    match wrong {
        None => Ok(()),
        Some(what) => Err(invalid("the name cannot be used, because ", &what)
            .with("name", name)
            .advise("Choose a name such as orders-prod.")),
    }
}

/// Refuses a second name that the environment or a person would take for the first.
pub(super) fn no_lookalike<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> Result<()> {
    let alike = |other: &&str| *other != name && variable(other, "") == variable(name, "");
    match others.into_iter().find(alike) {
        None => Ok(()),
        Some(other) => Err(invalid("there is a profile with nearly this name: ", other)
            .with("name", name)
            .advise("Names must differ in more than capitals and signs, because DLO_SECRET_… variables name them in capitals.")),
    }
}

/// Moves secrets from the URLs to where secrets belong, and writes the URLs without them.
pub(super) fn take_secrets_out(profile: &mut Profile, secrets: &mut Secrets) -> Result<()> {
    let (endpoint, found) = Endpoint::parse(&profile.url)?;
    add(secrets, "", &found);
    if !found.is_empty() {
        profile.url = endpoint.to_string();
    }
    if let Some(registry) = &profile.registry {
        let (endpoint, found) = Endpoint::parse(registry)?;
        add(secrets, "registry.", &found);
        if !found.is_empty() {
            profile.registry = Some(endpoint.to_string());
        }
    }
    Ok(())
}

/// A secret that was typed counts more than one that stood in the URL.
fn add(secrets: &mut Secrets, prefix: &str, found: &Secrets) {
    for (name, secret) in found.iter() {
        let name = format!("{prefix}{name}");
        if secrets.get(&name).is_none() {
            secrets.insert(name, secret.clone());
        }
    }
}

/// A mapping leads from a header to a field, and both have a name.
pub(super) fn headers(headers: &BTreeMap<String, String>) -> Result<()> {
    let empty = headers
        .iter()
        .find(|(header, field)| header.trim().is_empty() || field.trim().is_empty());
    match empty {
        None => Ok(()),
        Some((header, field)) => Err(invalid(
            "a header mapping lacks one side: ",
            &format!("{header:?} = {field:?}"),
        )
        .advise("Write header = \"field\", for example x-error = \"reason.message\".")),
    }
}

pub(super) fn no_such_profile(name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "find the profile",
        "there is none of that name",
    )
    .with("name", name)
    .advise("See the profiles with `dlo profile list`.")
}

fn invalid(what: &str, more: &str) -> Error {
    Error::new(
        ErrorKind::ConfigInvalid,
        "save the profile",
        format!("{what}{more}"),
    )
}
