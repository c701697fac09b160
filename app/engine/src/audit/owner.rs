//! Which process a run belongs to, and whether that process is alive.
//!
//! A process id alone would not do: it is used again after a restart, and says nothing inside a
//! container. So each opened journal holds an operating-system lock on a file of its own beside the
//! database. The system drops the lock when the process ends in any way, including a kill; whoever
//! can take the lock knows that the owner is dead. Process id, start and host are for people.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::{AuditError, Owner};

/// Keeps this process known as alive until it is dropped.
#[derive(Debug)]
pub(super) struct Presence {
    owner: Owner,
    folder: PathBuf,
    // Held for its lock alone.
    _lock: File,
}

impl Presence {
    /// Announces this process beside the database at `path`.
    pub(super) fn announce(path: &Path) -> Result<Self, AuditError> {
        let folder = folder(path);
        let owner = this_process();
        let lock = create_locked(&folder, &owner.id).map_err(|error| AuditError::Unwritable {
            path: folder.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            owner,
            folder,
            _lock: lock,
        })
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The folder that [`is_alive`] needs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // A file that stays behind does no harm: nobody holds its lock.
        let _ = fs::remove_file(lock_file(&self.folder, &self.owner.id));
    }
}

/// Whether the owner with this id still holds its lock. It is asked with a shared lock, so that two
/// who ask at once do not take each other for the owner. In doubt it does, since taking over the run
/// of a living process would do harm and waiting would not.
pub(super) fn is_alive(folder: &Path, owner: &str) -> bool {
    match File::open(lock_file(folder, owner)) {
        Ok(file) => matches!(
            file.try_lock_shared(),
            Err(TryLockError::WouldBlock | TryLockError::Error(_))
        ),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes the lock files that dead processes left behind.
pub(super) fn sweep(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    for path in files.flatten().map(|file| file.path()) {
        let dead = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if dead {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The person at this computer as `name@host`, for the `who` of a run.
pub fn current_person() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.is_empty())
        .or_else(name_of_user_id);
    format!("{}@{}", name.as_deref().unwrap_or("unknown"), host())
}

/// The name of the process's user by the system's list of users, for services and containers without `USER`.
#[cfg(unix)]
fn name_of_user_id() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let id = fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let user = fields.find(|fields| fields.get(2) == Some(&id.as_str()))?;
    user.first().map(|name| (*name).to_owned())
}

#[cfg(not(unix))]
fn name_of_user_id() -> Option<String> {
    None
}

fn folder(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".owners");
    path.with_file_name(name)
}

fn lock_file(folder: &Path, owner: &str) -> PathBuf {
    folder.join(format!("{owner}.lock"))
}

/// The file is locked under another name first: a process that sweeps could otherwise remove it
/// between its creation and the lock.
fn create_locked(folder: &Path, owner: &str) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let hidden = folder.with_extension(format!("{owner}.new"));
    let file = File::create_new(&hidden)?;
    file.try_lock()?;
    fs::rename(&hidden, lock_file(folder, owner))?;
    Ok(file)
}

fn this_process() -> Owner {
    let pid = std::process::id();
    Owner {
        id: uuid::Uuid::now_v7().to_string(),
        pid,
        process_started: start_of(pid).unwrap_or_else(|| jiff::Timestamp::now().to_string()),
        host: host(),
    }
}

fn host() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// Clock ticks between the start of Linux and of the process, see proc_pid_stat(5), field 22.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may hold spaces itself.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_exactly_as_long_as_its_presence() {
        let folder = tempfile::tempdir().unwrap();
        let presence = Presence::announce(&folder.path().join("dlo.db")).unwrap();
        let owners = presence.folder().to_owned();
        let id = presence.owner().id.clone();
        assert!(is_alive(&owners, &id));
        sweep(&owners);
        assert!(is_alive(&owners, &id), "a sweep leaves the living alone");
        drop(presence);
        assert!(!is_alive(&owners, &id));
        assert!(!is_alive(&owners, "somebody-else"));
    }

    #[test]
    fn a_lock_file_that_was_left_behind_means_dead_and_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(lock_file(folder.path(), "dead"), "").unwrap();
        assert!(!is_alive(folder.path(), "dead"));
        let asking = File::open(lock_file(folder.path(), "dead")).unwrap();
        asking.lock_shared().unwrap();
        assert!(!is_alive(folder.path(), "dead"), "somebody else asks too");
        drop(asking);
        sweep(folder.path());
        assert!(!lock_file(folder.path(), "dead").exists());
    }
}
