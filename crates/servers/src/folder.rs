//! Temporary folders.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A temporary folder, removed with its owner.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// An empty one. Its path is short: that of a socket file has 107 characters at most.
    #[must_use]
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("dyno-{name}-{}-{number}", process::id()));
        // One of an earlier process with the same number, which was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of a folder, made in this one under another name.
    pub fn copy(&self, from: &Path, name: &str) {
        copy(from, &self.0.join(name));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is no reason to fail once more.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    let tried = |tried: std::io::Result<()>| {
        tried.unwrap_or_else(|error| {
            panic!("copying {} to {}: {error}", from.display(), to.display())
        });
    };
    if from.is_dir() {
        tried(fs::create_dir(to));
        for entry in fs::read_dir(from).expect("a folder that can be read") {
            let entry = entry.expect("a folder that can be read");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        tried(fs::copy(from, to).map(|_| ()));
    }
}
