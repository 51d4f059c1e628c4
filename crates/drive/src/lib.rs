//! The load driver: brings a workload to a backend and measures it.
//!
//! The way through: a [`Job`] is read at the door; its backend is opened, set up and attested; each
//! client is a thread with a connection of its own that asks one request after the other (a closed
//! loop) and records into histograms of its own; the coordinator collects these once an interval,
//! writes them down, and in the end writes the result.
//!
//! Adding a backend means one module in `backend` that implements its traits. The kind is chosen
//! once, before the clients start: the loop is compiled for each pair of backend and workload.

mod attempts;
mod backend;
mod client;
mod coordinator;
mod counting;
mod gate;
mod job;
mod merge;
mod probe;
mod result;
mod schedule;
mod timeline;
mod work;

use dyno_result::{clock, failure, output, record};

pub use backend::{BackendReport, glass_assemblies, sqlite_version};
pub use coordinator::{Options, drive};
pub use failure::{ErrorKind, Failure};
pub use job::Job;
pub use merge::{MergeError, cut, merge};
pub use probe::{Probe, probe};
pub use result::{DriveResult, Outcome};
