//! The log: what was changed, written before what it changed (write-ahead), so that what was promised can be done
//! again and what was not can be undone.
//!
//! Records are physiological: each names its page and says what to do within it. One that changes several pages at
//! once (the split of a node) is one record, so that it is done whole or not at all. What undoes a change is
//! logical for indexes, whose entries move, and by slot for heaps, whose slots do not.

mod absent;
mod active;
mod contract;
mod left;
mod master;
mod record;
mod recovery;
mod segments;
#[cfg(test)]
mod tests;
mod wal;

pub use absent::NoLog;
pub(crate) use contract::{Change, Kind, Log, LogFiles, Patch, Record, Undo};
pub(crate) use left::Left;
pub use recovery::{Recovered, Redone};
pub(crate) use recovery::{Recovery, Undoer};
pub use wal::{Options, Policy, Statistics, Wal};
