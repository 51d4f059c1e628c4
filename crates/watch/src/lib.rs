//! The sampler: reads the kernel's counters at a steady pace and writes what they say.
//!
//! It shares the machine with what it watches, so it must cost next to nothing: files of `/proc` stay
//! open and are read again, one buffer serves all, their text is parsed without allocating, and a tick is
//! written with one call. What it costs is a metric of its own. Metrics and their units are listed in
//! `schema/metrics.json`.

mod cgroup;
mod job;
mod machine;
mod proc_file;
mod process;
mod sample;
mod text;
mod watcher;

pub use job::{Cgroup, Command, Group, Process, WatchJob};
pub use watcher::{WatchError, watch};
