//! YCSB's core workloads.
//!
//! The data set is one table, `usertable(ycsb_key, field0, ...)`, with the names that YCSB gives them. On
//! `SQLite` it keeps its rowid: a row of 1 KB is larger than what `WITHOUT ROWID` holds within a page of
//! 4 KiB, where each row would spill to an overflow page of its own
//! (<https://sqlite.org/withoutrowid.html>). Keys compare byte by byte on every store, so that scans
//! meet the same rows everywhere.
//!
//! Each write of the run phase is a transaction of its own (autocommit). A read-modify-write is a
//! read and then an update, as in YCSB: two transactions, so that another client may write between.

mod berkeley;
mod glass;
mod load;
mod null;
mod run;
mod statements;

use crate::backend::{Backend, Status};
use crate::failure::Failure;
use crate::job::YcsbJob;
use dyno_sql::Error as OperationError;

pub use glass::{UserRows, UserTable};
pub use load::YcsbLoad;
pub use run::YcsbRun;

/// Which fields of a row are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All of them.
    All,
    /// One, by its number from 0.
    One(u32),
}

impl Fields {
    /// How many of a row's `count` fields these are.
    const fn of(self, count: u32) -> u32 {
        match self {
            Self::All => count,
            Self::One(_) => 1,
        }
    }
}

/// What a session of a job needs to know.
#[derive(Clone, Debug)]
pub struct Shape {
    job: YcsbJob,
}

impl Shape {
    /// What is asked.
    pub const fn job(&self) -> &YcsbJob {
        &self.job
    }
}

/// What values that are checked name as theirs beside row and field. Always the same: whoever runs on a store has
/// another seed than whoever loaded it.
const DATA_SET: u64 = 0;

/// A store that YCSB can be run on.
pub trait YcsbBackend: Backend {
    /// A client's operations.
    type Rows<'c>: Rows
    where
        Self: 'c;

    /// Whether only one client can write at a time, and the others would poll for their turn.
    const ONE_LOADER: bool;

    /// Creates the table; an error where it is there already.
    fn create_table(&self, connection: &mut Self::Connection, shape: &Shape)
    -> Result<(), Failure>;

    /// Finds that the table is there and has the job's fields.
    fn check_table(&self, connection: &mut Self::Connection, shape: &Shape) -> Result<(), Failure>;

    /// Makes a connection ready for the job's operations.
    fn rows<'c>(
        &'c self,
        connection: &'c mut Self::Connection,
        shape: &Shape,
    ) -> Result<Self::Rows<'c>, Failure>;
}

/// The answer to an operation.
pub type Answer = Result<(), OperationError>;

/// One client's operations. Each returns when the store has answered and the answer has been looked
/// at: a row that is not there is an error, and so is a value that was never written there.
pub trait Rows {
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

    /// Makes the connection anew.
    fn reconnect(&mut self) -> Answer {
        Ok(())
    }

    /// Counters that only ever grow.
    fn counters(&self) -> Status {
        Status::new()
    }
}
