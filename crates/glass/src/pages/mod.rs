//! Pages: pieces of memory of one size, pinned while somebody points into them and latched while somebody reads or
//! changes them.
//!
//! The real form is a buffer pool over a file: a page is found by its number in a directory, pinned in its frame, and
//! evicted by a clock when others need the frame. The absent form is plain memory: a page's number *is* its address,
//! nothing is looked up, pinned or written.

mod contract;
mod direct;
pub mod disk;
mod latched;
mod layout;
mod memory;
mod numbers;
mod pool;

pub(crate) use contract::{Ahead, Census, Pages, Pin, Setup, Writable};
pub use direct::Direct;
pub(crate) use latched::{Exclusive, Shared};
pub(crate) use layout::{HEADER, Page, PageKind};
pub use pool::{AREA_FILE, DATA_FILE, Pool};

/// What was done, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Pinned in memory. Exact with one thread; with several a few may be missed, for counting must not cost what it counts.
    pub hits: u64,
    /// Pinned when they were not in memory.
    pub misses: u64,
    /// Read from the file.
    pub read: u64,
    /// Written to their places in the file; each was written to the double-write area before.
    pub written: u64,
    /// Taken out of their frames for others.
    pub evicted: u64,
}
