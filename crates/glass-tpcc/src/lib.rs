//! TPC-C on glass: the tables of [`dyno_tpcc`] on the engine in each of its assemblies, and on the kernel; and with the
//! engine's records and keys on any ordered maps.
//!
//! It knows both, so that neither the engine nor the benchmark knows the other. There is no SQL: rows come straight from
//! [`dyno_tpcc::population`], transactions call the engine, and the consistency conditions are verified over scans.

mod columns;
pub mod engine;
mod error;
pub mod kernel;
pub mod ordered;
pub mod record;

pub use error::told;
