//! What all servers need.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};

/// A server that several tests use at the same time; the last one to drop it stops it.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// None is started yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// The one that runs, or a new one.
    pub fn get(&self, start: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(start());
            *shared = Arc::downgrade(&server);
            server
        })
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The account that a server runs as; `None` is the one of the test.
pub(crate) fn account(name: &str) -> Option<User> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let user = User::from_name(name).unwrap();
    Some(user.unwrap_or_else(|| panic!("there is no account {name} on this machine")))
}

/// A folder that goes with its owner. Its path is short: a socket's may have 107 bytes at most.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(kind: &str, owner: Option<&User>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("dyno-{kind}-{}-{number}", std::process::id()));
        // One of an earlier process with the same number, which was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        let folder = Self(path);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(owner) = owner {
            chown(
                folder.path(),
                Some(owner.uid.as_raw()),
                Some(owner.gid.as_raw()),
            )
            .unwrap();
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// What ends it best.
    signal: Signal,
}

impl Process {
    pub(crate) fn new(child: Child, signal: Signal) -> Self {
        Self { child, signal }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it by a signal; kills it where that takes too long.
    pub(crate) fn end(&mut self, signal: Signal) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = kill(pid, signal);
        let since = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if since.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(self.signal);
    }
}
