//! What a store must offer to be driven. One module a kind.

mod null;
mod sqlite;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::{Failure, OperationError};
use crate::job::Job;

pub use null::Null;
pub use sqlite::{Sqlite, version as sqlite_version};

/// Counters and sizes by name.
pub type Status = BTreeMap<&'static str, f64>;

/// A backend as a result shows it.
#[derive(Clone, Debug, Serialize)]
pub struct BackendReport {
    /// The kind, as in the job.
    pub kind: &'static str,
    /// Of the store.
    pub version: String,
    /// The settings as read back, keyed and typed as in the job's config.
    pub effective: Map<String, Value>,
    /// The store's own counters over the measured part, or sizes at its end.
    pub status: Status,
}

/// A store, opened and set as a job asks; what its clients share.
pub trait Backend: Sync + Sized {
    /// One client's connection.
    type Connection: Send;
    /// A connection ready for a workload's operations.
    type Session<'c>: Session
    where
        Self: 'c;

    /// Opens the store, applies the job's settings and reads them back, and connects `clients` times.
    /// Waiting within an operation must end soon after `halt` becomes true.
    fn open(
        job: &Job,
        clients: u32,
        halt: &Arc<AtomicBool>,
    ) -> Result<(Self, Vec<Self::Connection>), Failure>;

    /// The backend before it is opened.
    fn unopened() -> BackendReport;

    /// Creates what the load phase fills.
    fn create(&self, connection: &Self::Connection) -> Result<(), Failure>;

    /// The settings as read back.
    fn effective(&self) -> Map<String, Value>;

    /// Makes a connection ready for the job's workload.
    fn session<'c>(
        &'c self,
        connection: &'c Self::Connection,
    ) -> Result<Self::Session<'c>, Failure>;

    /// Counters of one connection that only ever grow.
    fn counters(&self, connection: &Self::Connection) -> Status;

    /// Closes the store, so that what was written is complete and durable, unless the job was cut
    /// short: then at once. Gives sizes at the end.
    fn close(self, connections: Vec<Self::Connection>, cut: bool) -> Result<Status, Failure>;

    /// Closes a store that was opened only to be looked at, and removes what opening it created.
    fn discard(self, connections: Vec<Self::Connection>) -> Result<Status, Failure>;
}

/// Which fields of a row are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All of them.
    All,
    /// One, by its number from 0.
    One(u32),
}

/// A session's answer.
pub type Answer = Result<(), OperationError>;

/// One client's operations. Each returns when the store has answered and the answer has been looked
/// at: a row that is not there is an error.
pub trait Session {
    /// Reads one row.
    fn read(&mut self, key: &str, fields: Fields) -> Answer;

    /// Writes fields of one row; `values` are those fields, one behind the other.
    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer;

    /// Adds a row; `values` are all its fields, one behind the other.
    fn insert(&mut self, key: &str, values: &str) -> Answer;

    /// Reads up to `rows` rows in the order of their keys, from `start` on.
    fn scan(&mut self, start: &str, rows: u32, fields: Fields) -> Answer;

    /// Adds rows in bulk, all or none; `keys` and `values` stand one behind the other.
    fn load(&mut self, keys: &str, values: &str) -> Answer;
}
