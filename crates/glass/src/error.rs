//! What can go wrong.

use std::fmt;
use std::io;

use crate::PageId;

/// As every call of the engine ends.
pub type Result<T> = std::result::Result<T, Error>;

/// After any of these but [`Error::Duplicate`] the caller rolls back.
#[derive(Debug)]
pub enum Error {
    /// The transaction would wait for others that wait for it.
    Deadlock,
    /// It waited for a lock as long as it may.
    LockTimeout,
    /// There is such a key.
    Duplicate,
    /// A record that must be there is not.
    Missing(&'static str),
    /// All frames of the buffer pool are pinned, or its memory could not be had.
    OutOfMemory(&'static str),
    /// A file could not be read, written or synced.
    Io(&'static str, io::Error),
    /// A page, a log record or a header is not what was written.
    Corrupt(Option<PageId>, String),
    /// What this assembly has no component for.
    Absent(&'static str),
    /// What no assembly does.
    Refused(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("deadlock: the transaction was chosen to give way"),
            Self::LockTimeout => f.write_str("a lock was not had in time"),
            Self::Duplicate => f.write_str("the key exists"),
            Self::Missing(what) => write!(f, "{what} does not exist"),
            Self::OutOfMemory(what) => write!(f, "no memory for {what}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Corrupt(Some(page), what) => write!(f, "page {}: {what}", page.0),
            Self::Absent(what) => write!(f, "this assembly has no {what}"),
            Self::Corrupt(None, what) | Self::Refused(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
