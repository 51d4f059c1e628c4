//! Transactions: what is done whole or not at all.
//!
//! Each keeps how to undo what it did, in memory, newest last; the log has the same for who comes after a crash. So
//! assemblies without a log roll back too. Without this component there is no rolling back, and whoever calls must know
//! before the first change that all will go well.
//!
//! Which records a transaction has in the log is the log's to know, for checkpoints, since it has to be known exactly
//! at a place in the log; here is only who is under way.

mod absent;
mod contract;
mod real;
mod undo;

pub use absent::NoTransactions;
pub(crate) use contract::Transactions;
pub use real::Real;
