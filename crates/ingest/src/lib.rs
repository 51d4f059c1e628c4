//! Loads rows of time series into stores, each in its own protocol, and counts what was acknowledged.
//!
//! The data are lines of the `InfluxDB` line protocol, packed once ([`pack`]) and read as often as they are loaded.
//! [`feed`] gives them to a loader of others; [`ingest`] is dyno's own.

mod batch;
mod feed;
mod job;
pub mod line;
mod manifest;
mod order;
mod pack;
mod reader;
mod recording;
mod result;
mod run;
mod sink;
mod split;

pub use feed::{Fed, feed};
pub use job::Job;
pub use manifest::{Format, Manifest, Table};
pub use order::{Delayed, Order, Shuffled};
pub use pack::pack;
pub use result::IngestResult;
pub use run::{Options, ingest};
pub use split::Split;

/// The packed text in its folder.
pub const DATA: &str = "data.zst";
/// What is known of it.
pub const MANIFEST: &str = "manifest.json";
