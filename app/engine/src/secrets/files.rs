//! Files of the config folder: written whole or not at all, readable by their owner alone, and by
//! one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use dlo_core::{Error, ErrorKind, Result};

use super::Shelf;

const PLAIN_HEAD: &str = "# Secrets of Dead Letter Office in plain text, because somebody asked for it.\n\
    # Whoever can read this file can use them.\n\n";

/// Keeps other processes from changing a file until the answer is dropped.
pub(crate) fn lock(file: &Path) -> Result<File> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let path = file.with_file_name(name);
    create_folder(file)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
        .and_then(|lock| lock.lock().map(|()| lock))
        .map_err(|error| cannot_write(&path, &error))
}

/// Replaces a file in one step; on Unix only its owner may read it.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = file.with_file_name(name);
    let written = create_folder(file)
        .and_then(|()| write_new(&new, text))
        .and_then(|()| fs::rename(&new, file));
    written.map_err(|error| {
        // What was begun is of no use to anybody.
        let _ = fs::remove_file(&new);
        cannot_write(file, &error)
    })
}

/// The secrets in the plain file; none if there is no such file.
pub(super) fn read_plain(file: &Path) -> Result<Shelf> {
    let unreadable = |what: String| {
        Error::new(ErrorKind::ConfigInvalid, "read the secrets", what)
            .with("file", file.display().to_string())
            .advise("Mend the file, or remove it and type the secrets again.")
    };
    match fs::read_to_string(file) {
        // The parser's own message quotes the line, which may hold a secret.
        Ok(text) => toml_edit::de::from_str(&text).map_err(|_| {
            unreadable("it is not TOML of the form [profile] name = \"secret\"".into())
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Shelf::new()),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

pub(super) fn write_plain(file: &Path, shelf: &Shelf) -> Result<()> {
    let text = toml_edit::ser::to_string_pretty(shelf).map_err(|error| {
        Error::new(
            ErrorKind::Unexpected,
            "write the secrets",
            error.to_string(),
        )
    })?;
    write_private(file, &format!("{PLAIN_HEAD}{text}"))
}

fn create_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::ConfigInvalid,
        "write the file",
        error.to_string(),
    )
    .with("file", path.display().to_string())
    .advise("Make the folder writable, or choose another with DLO_HOME.")
}
