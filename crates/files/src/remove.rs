//! Removal of a fileset's tree, by handles: no path is looked up twice, no link is followed, and nothing is
//! removed unless all of it looks like a fileset.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes the tree `name` in the open directory `parent`, if it is there; `shown` is its path for messages.
pub fn remove_tree(
    parent: impl AsFd,
    name: &CStr,
    shown: &Path,
    halt: &AtomicBool,
) -> Result<(), String> {
    let parent = parent.as_fd();
    let refused = |why: String| {
        format!(
            "{}: {why}, so it is not removed; move it away or choose another path",
            shown.display()
        )
    };
    let root = match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(refused("is not a directory".to_owned()));
        }
        Err(error) => return Err(format!("opening {}: {error}", shown.display())),
    };
    let device = rustix::fs::fstat(&root)
        .map_err(|error| format!("looking at {}: {error}", shown.display()))?
        .st_dev;
    let outside = rustix::fs::fstat(parent)
        .map_err(|error| format!("looking at {}: {error}", shown.display()))?;
    if outside.st_dev != device {
        return Err(refused("is where a file system is mounted".to_owned()));
    }
    walk(root.as_fd(), device, halt, false, &[]).map_err(|stop| match stop {
        Stop::Foreign(what) => refused(format!("has {what} in it, which is no fileset's")),
        Stop::Failed(what) => format!("looking at {}: {what}", shown.display()),
        Stop::Halted => "interrupted".to_owned(),
    })?;
    walk(root.as_fd(), device, halt, true, &[]).map_err(|stop| match stop {
        Stop::Foreign(what) | Stop::Failed(what) => {
            format!("removing {}: {what}", shown.display())
        }
        Stop::Halted => "interrupted".to_owned(),
    })?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
        .map_err(|error| format!("removing {}: {error}", shown.display()))
}

enum Stop {
    Foreign(String),
    Failed(String),
    Halted,
}

fn is_name(name: &CStr) -> bool {
    let name = name.to_bytes();
    (8..=10).contains(&name.len()) && name.iter().all(u8::is_ascii_digit)
}

/// Looks at all that is below a directory, or removes it.
fn walk(
    dir: BorrowedFd,
    device: u64,
    halt: &AtomicBool,
    remove: bool,
    path: &[String],
) -> Result<(), Stop> {
    let at = |path: &[String], name: &CStr| {
        let mut path = path.to_vec();
        path.push(name.to_string_lossy().into_owned());
        path.join("/")
    };
    let mut buffer = vec![const { MaybeUninit::<u8>::uninit() }; 32 * 1024];
    // What is removed while a directory is read may hide what comes after it: read again until it is empty.
    loop {
        let mut removed = false;
        let own = rustix::fs::openat(dir, c".", DIRECTORY, Mode::empty())
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.join("/"))))?;
        let mut entries = RawDir::new(&own, &mut buffer);
        while let Some(entry) = entries.next() {
            if halt.load(Ordering::Relaxed) {
                return Err(Stop::Halted);
            }
            let entry =
                entry.map_err(|error| Stop::Failed(format!("{}: {error}", path.join("/"))))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let failed = |error: Errno| Stop::Failed(format!("{}: {error}", at(path, name)));
            if !is_name(name) {
                return Err(Stop::Foreign(at(path, name)));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let status = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                    FileType::from_raw_mode(status.map_err(failed)?.st_mode)
                }
                kind => kind,
            };
            match kind {
                FileType::Directory => {
                    let below =
                        rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()).map_err(failed)?;
                    if rustix::fs::fstat(&below).map_err(failed)?.st_dev != device {
                        return Err(Stop::Foreign(format!(
                            "{} (another file system)",
                            at(path, name)
                        )));
                    }
                    let mut deeper = path.to_vec();
                    deeper.push(name.to_string_lossy().into_owned());
                    walk(below.as_fd(), device, halt, remove, &deeper)?;
                    if remove {
                        rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR).map_err(failed)?;
                        removed = true;
                    }
                }
                FileType::RegularFile if remove => {
                    rustix::fs::unlinkat(dir, name, AtFlags::empty()).map_err(failed)?;
                    removed = true;
                }
                FileType::RegularFile => {}
                _ => return Err(Stop::Foreign(at(path, name))),
            }
        }
        if !removed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Folder;

    fn remove(folder: &Folder) -> Result<(), String> {
        let parent = fs::File::open(folder.path()).unwrap();
        let halt = AtomicBool::new(false);
        remove_tree(&parent, c"set", &folder.path().join("set"), &halt)
    }

    fn tree(folder: &Folder) -> std::path::PathBuf {
        let inner = folder.path().join("set/00000001/00000002");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("00000001"), "x").unwrap();
        inner
    }

    #[test]
    fn a_filesets_tree_is_removed_and_none_is_no_error() {
        let folder = Folder::new("removed");
        for number in 1..2000 {
            tree(&folder);
            fs::write(folder.path().join(format!("set/00000001/{number:08}0")), "").unwrap();
        }
        remove(&folder).unwrap();
        assert!(!folder.path().join("set").exists());
        remove(&folder).unwrap();
    }

    #[test]
    fn a_link_is_not_followed_and_nothing_is_removed_beside_it() {
        let folder = Folder::new("link");
        let inner = tree(&folder);
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("00000001"), "precious").unwrap();
        symlink(&outside, inner.join("00000009")).unwrap();
        let message = remove(&folder).unwrap_err();
        assert!(message.contains("00000001/00000002/00000009"), "{message}");
        assert!(
            inner.join("00000001").exists(),
            "removed although it is refused"
        );
        assert!(outside.join("00000001").exists());
        fs::remove_dir_all(folder.path().join("set")).unwrap();
        symlink(&outside, folder.path().join("set")).unwrap();
        assert!(remove(&folder).unwrap_err().contains("is not a directory"));
        assert!(outside.join("00000001").exists());
    }

    #[test]
    fn what_is_no_filesets_is_left_alone() {
        let folder = Folder::new("foreign");
        let inner = tree(&folder);
        fs::write(inner.join("thesis.tex"), "years").unwrap();
        let message = remove(&folder).unwrap_err();
        assert!(message.contains("thesis.tex"), "{message}");
        assert!(inner.join("00000001").exists());
    }
}
