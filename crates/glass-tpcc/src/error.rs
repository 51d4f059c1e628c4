//! The engine's errors as those by which operations are counted.

use dyno_glass::Error as Glass;
use dyno_sql::{Error, ErrorKind};

/// As whatever asks the engine tells it.
#[must_use]
pub fn told(error: Glass) -> Error {
    let kind = match &error {
        Glass::Deadlock => ErrorKind::Conflict,
        Glass::LockTimeout => ErrorKind::Busy,
        Glass::Duplicate => ErrorKind::DuplicateKey,
        Glass::Missing(_) => ErrorKind::MissingKey,
        Glass::OutOfMemory(_) => ErrorKind::OutOfMemory,
        Glass::Io(_, error) if error.kind() == std::io::ErrorKind::StorageFull => {
            ErrorKind::DiskFull
        }
        Glass::Io(..) => ErrorKind::Io,
        Glass::Corrupt(..) => ErrorKind::Corrupt,
        Glass::Absent(_) | Glass::Refused(_) => ErrorKind::Refused,
    };
    Error::new(kind, error.to_string())
}

/// A row that must be there is not.
#[cold]
pub fn missing(what: &str) -> Error {
    Error::new(ErrorKind::MissingKey, format!("{what} does not exist"))
}
