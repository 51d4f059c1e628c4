//! What a store must offer to be driven. One module a kind.

mod berkeley;
mod glass;
mod null;
mod server;
mod sqlite;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dyno_sql::Connection;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::job::{BackendJob, Job};

pub use berkeley::{Berkeley, Client, told as berkeley_told};
pub use glass::{Glass, assemblies as glass_assemblies};
pub use null::{Null, Stall};
pub use server::{Mysql, Postgresql};
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

    /// Opens the store, applies the job's settings and reads them back, and connects `clients` times.
    /// Waiting within an operation must end soon after `halt` becomes true.
    fn open(
        job: &Job,
        clients: u32,
        halt: &Arc<AtomicBool>,
    ) -> Result<(Self, Vec<Self::Connection>), Failure>;

    /// The backend before it is opened.
    fn unopened() -> BackendReport;

    /// The version of the store, where it is known only once it is open.
    fn version(&self) -> Option<String> {
        None
    }

    /// The settings as read back.
    fn effective(&self) -> Map<String, Value>;

    /// The measured part begins at `origin`; told before the first client is let in.
    fn begin(&self, _origin: Instant) {}

    /// Ends what clients wait for: the run is to end, and some of them still wait for an answer.
    fn interrupt(&self) {}

    /// Closes the store, so that what was written is complete and durable, unless the job was cut
    /// short: then at once. Gives sizes at the end.
    fn close(self, connections: Vec<Self::Connection>, cut: bool) -> Result<Status, Failure>;

    /// Closes a store that was opened only to be looked at, and removes what opening it created.
    fn discard(self, connections: Vec<Self::Connection>) -> Result<Status, Failure>;
}

/// A store that takes SQL.
pub trait SqlBackend: Backend {
    /// A connection in use: it holds the statements that were prepared on it.
    type Session<'c>: Connection
    where
        Self: 'c;

    /// Whether only one client can write at a time, and the others would poll for their turn.
    const ONE_WRITER: bool;

    /// Connects to another server of this kind, which is not the job's own.
    fn connect(_: &BackendJob) -> Result<Self::Connection, Failure> {
        Err(Failure::new(
            "internal",
            "a store within this process has one way in",
        ))
    }

    /// Takes a connection into use.
    fn session<'c>(&'c self, connection: &'c mut Self::Connection) -> Self::Session<'c>;
}
