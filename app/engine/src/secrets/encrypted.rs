//! The encrypted file: all secrets under one passphrase.
//!
//! The key is made of the passphrase by Argon2id with the parameters that RFC 9106 recommends where
//! memory is limited (64 MiB, 3 passes, 4 lanes); the contents are sealed with XChaCha20-Poly1305.
//! Parameters, salt and nonce stand beside the contents in JSON; the parameters are sealed with it,
//! so that nobody can make them weaker unseen. Each write takes a new salt and nonce.

use std::path::Path;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use dlo_core::{Error, ErrorKind, Result, Secret};
use serde::{Deserialize, Serialize};

use super::{Shelf, write_private};

/// Shorter passphrases are refused: the file may be copied and tried at leisure.
const SHORTEST: usize = 8;

/// What a file may ask for at most; more would be a way to make the program eat all memory.
const MOST_MEMORY_KIB: u32 = 1 << 20;
const MOST_PASSES: u32 = 20;
const MOST_LANES: u32 = 16;

#[derive(Serialize, Deserialize)]
struct Sealed {
    /// The version of this form.
    dlo_secrets: u32,
    #[serde(flatten)]
    stretch: Stretch,
    salt: String,
    nonce: String,
    sealed: String,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
struct Stretch {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

const RFC_9106: Stretch = Stretch {
    memory_kib: 65_536,
    passes: 3,
    lanes: 4,
};

/// Opens the file.
pub(super) fn read(file: &Path, passphrase: &Secret) -> Result<Shelf> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| damaged(file, &format!("it cannot be read: {error}")))?;
    let sealed: Sealed = serde_json::from_str(&text)
        .map_err(|error| damaged(file, &format!("it is not such a file: {error}")))?;
    if sealed.dlo_secrets != 1 {
        return Err(damaged(file, "it was written by a newer version of dlo"));
    }
    let plain = open(file, &sealed, passphrase)?;
    serde_json::from_slice(&plain).map_err(|_| damaged(file, "what is in it is no list of secrets"))
}

/// Seals the secrets and replaces the file with them.
pub(super) fn write(file: &Path, passphrase: &Secret, shelf: &Shelf) -> Result<()> {
    if passphrase.expose().chars().count() < SHORTEST {
        return Err(Error::new(
            ErrorKind::ConfigInvalid,
            "encrypt the secrets",
            format!("the passphrase has fewer than {SHORTEST} characters"),
        )
        .advise("Choose a longer one, for example four words."));
    }
    let plain = serde_json::to_vec(shelf).map_err(|error| cannot("encrypt the secrets", error))?;
    let sealed = seal(&plain, passphrase)?;
    let mut text = serde_json::to_string_pretty(&sealed)
        .map_err(|error| cannot("encrypt the secrets", error))?;
    text.push('\n');
    write_private(file, &text)
}

fn seal(plain: &[u8], passphrase: &Secret) -> Result<Sealed> {
    let (mut salt, mut nonce) = ([0_u8; 16], [0_u8; 24]);
    getrandom::fill(&mut salt).map_err(|error| cannot("make a key", error))?;
    getrandom::fill(&mut nonce).map_err(|error| cannot("make a key", error))?;
    let cipher = cipher(passphrase, &salt, RFC_9106)?;
    let payload = Payload {
        msg: plain,
        aad: &bound(RFC_9106),
    };
    let sealed = cipher
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|error| cannot("encrypt the secrets", error))?;
    Ok(Sealed {
        dlo_secrets: 1,
        stretch: RFC_9106,
        salt: STANDARD.encode(salt),
        nonce: STANDARD.encode(nonce),
        sealed: STANDARD.encode(sealed),
    })
}

fn open(file: &Path, sealed: &Sealed, passphrase: &Secret) -> Result<Vec<u8>> {
    let stretch = sealed.stretch;
    if stretch.memory_kib > MOST_MEMORY_KIB
        || stretch.passes > MOST_PASSES
        || stretch.lanes > MOST_LANES
    {
        return Err(damaged(file, "it asks for more work than any dlo would"));
    }
    let decode = |text: &str| {
        STANDARD
            .decode(text)
            .map_err(|_| damaged(file, "a part of it is not base64"))
    };
    let nonce: [u8; 24] = decode(&sealed.nonce)?
        .try_into()
        .map_err(|_| damaged(file, "its nonce has the wrong length"))?;
    let cipher = cipher(passphrase, &decode(&sealed.salt)?, stretch)?;
    let contents = decode(&sealed.sealed)?;
    let payload = Payload {
        msg: &contents,
        aad: &bound(stretch),
    };
    // A wrong passphrase and a changed file look the same, as they must.
    cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| {
        Error::new(
            ErrorKind::Unauthenticated,
            "open the encrypted secrets",
            "the passphrase is wrong, or the file was changed",
        )
        .with("file", file.display().to_string())
        .advise("All profiles share one encrypted file and one passphrase; try the one it was made with.")
    })
}

fn cipher(passphrase: &Secret, salt: &[u8], stretch: Stretch) -> Result<XChaCha20Poly1305> {
    let params = Params::new(stretch.memory_kib, stretch.passes, stretch.lanes, Some(32))
        .map_err(|error| cannot("make a key", error))?;
    let mut key = [0_u8; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose().as_bytes(), salt, &mut key)
        .map_err(|error| cannot("make a key", error))?;
    Ok(XChaCha20Poly1305::new(&Key::from(key)))
}

fn bound(stretch: Stretch) -> Vec<u8> {
    let (memory, passes, lanes) = (stretch.memory_kib, stretch.passes, stretch.lanes);
    format!("dlo-secrets 1 argon2id {memory} {passes} {lanes}").into_bytes()
}

fn cannot(operation: &str, error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unexpected, operation, error.to_string())
}

fn damaged(file: &Path, what: &str) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "open the encrypted secrets", what)
        .with("file", file.display().to_string())
        .advise("Restore the file from a copy, or move it away and type the secrets again.")
}
