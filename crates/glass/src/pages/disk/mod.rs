//! Files, as little of them as a store needs, so that a test can take their place and lose its power.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub mod crash;

/// A file. Threads may read, write and sync it at the same time, though nobody writes what another reads or writes.
pub trait Disk: Send + Sync {
    /// Reads from `offset` on, in bytes. There are zeros past the file's end.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes from `offset` on, in bytes; the file grows as it needs. It may be lost, or torn, until it is synced.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// What was written before this was called survives a loss of power when it has returned. After an error nobody knows
    /// what does, and asking again would not tell.
    fn sync(&self) -> io::Result<()>;

    /// In bytes.
    fn length(&self) -> io::Result<u64>;
}

/// A folder of such files. That a file is there, or is not any more, survives a loss of power when the call has returned.
pub trait Folder: Send + Sync {
    /// Opens a file; makes it, empty, where there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>>;

    /// Takes a file away. Who still has it open can go on.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// All files, sorted.
    fn names(&self) -> io::Result<Vec<String>>;
}

/// A folder of the system's, used by one process at a time.
pub struct Files {
    path: PathBuf,
    // For as long as it is open, it is locked.
    _lock: fs::File,
}

/// Says who has the folder; it is no file of the store's.
const LOCK: &str = "lock";

impl Files {
    /// Makes it where there is none. Which files are in it is on disk when this has returned. [`ErrorKind::WouldBlock`] where another process has it, or this one twice.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        make_folders(&path)?;
        let lock = fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let message = format!("{} is open already", path.display());
                return Err(io::Error::new(ErrorKind::WouldBlock, message));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // Whoever made or removed a file here may have ended before the folder was synced. Nobody else has it now.
        sync_folder(&path)?;
        Ok(Self { path, _lock: lock })
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }
}

/// Makes it, and all above it that are not there, each known to the one above also after a loss of power.
fn make_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    make_folders(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    sync_folder(above)
}

impl Folder for Files {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let path = self.path.join(name);
        let is_new = !path.try_exists()?;
        let file = fs::File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)?;
        if is_new {
            self.sync()?;
        }
        Ok(Arc::new(File(file)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))?;
        self.sync()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != LOCK {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// A folder's entries are on disk when the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// A file of the system's.
struct File(fs::File);

impl Disk for File {
    fn read(&self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            match self.0.read_at(into, offset) {
                Ok(0) => {
                    into.fill(0);
                    return Ok(());
                }
                Ok(length) => {
                    into = &mut into[length..];
                    offset += length as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    // fdatasync, which takes along what is needed to find the data again: the file's length too.
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_system_keeps_files_for_one_at_a_time() {
        let path =
            std::env::temp_dir().join(format!("dyno-glass-files-{}/deep", std::process::id()));
        let folder = Files::new(&path).unwrap();
        let twice = Files::new(&path).err().unwrap();
        assert_eq!(twice.kind(), ErrorKind::WouldBlock);

        let disk = folder.open("b").unwrap();
        assert_eq!(disk.length().unwrap(), 0);
        disk.write(5, b"12345").unwrap();
        disk.sync().unwrap();
        assert_eq!(disk.length().unwrap(), 10);
        let mut bytes = [9; 8];
        disk.read(7, &mut bytes).unwrap();
        assert_eq!(&bytes, b"345\0\0\0\0\0", "there are zeros past the end");
        folder.open("a").unwrap();
        assert_eq!(folder.names().unwrap(), ["a", "b"]);
        drop(folder);

        let folder = Files::new(&path).unwrap();
        let mut bytes = [9; 6];
        folder.open("b").unwrap().read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0\0\0\x001");
        folder.remove("b").unwrap();
        assert!(folder.remove("b").is_err());
        assert_eq!(folder.names().unwrap(), ["a"]);
        drop(folder);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
