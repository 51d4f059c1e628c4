//! Berkeley DB 5.3 in its three products: data store, concurrent data store, transactional data store.
//!
//! The library is looked for when the first store is opened, and nothing of it is needed to build or to start a program.
//! Its interface is structures of function pointers: [`layout`] says where each one is, as the header of 5.3.28 has it,
//! which a test compares with that header, and the library itself says that it is of that version.
//!
//! Product, log, locks, checksums and mutexes are chosen by the library's own switches when a store is opened, and what is
//! told of them is what the library says then.

pub mod layout;
mod options;
mod store;

pub use options::{Effective, Log, Options, Product};
pub use store::{
    Access, Direction, LIBRARY, Map, Moved, PACKAGE, Session, Store, VERSION, version,
};

/// What went wrong, as a caller has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The library is not there, or another one.
    Absent,
    /// What is asked for cannot be had in this product, or the library refused it.
    Refused,
    /// The transaction was chosen to end a deadlock: it is to be undone.
    Deadlock,
    /// A lock could not be had within the limit.
    Busy,
    /// A key that must not be there is.
    Duplicate,
    /// A file could not be read or written.
    Io,
    /// No memory, or a table of the library is full.
    OutOfMemory,
    /// No space on the device.
    DiskFull,
    /// The data are damaged, or the store has to be recovered.
    Corrupt,
}

/// An error with the library's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// As what it counts.
    pub kind: Kind,
    /// What was attempted, and what the library said.
    pub message: String,
}

impl Error {
    /// An error of that kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// What calls give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
