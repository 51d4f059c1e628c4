//! Latches: short locks on memory that threads share, never held while waiting for a lock. Those of pages are held while
//! another page is read, or written because its frame is wanted, and so are those of who writes pages and of a heap's list of
//! pages with ghosts. Under all of these, and under that of plain memory's lists, one waits for the log where its buffer is full.
//!
//! Whoever holds several takes them in this order: a heap's list, pages from the root down and from left to right, the pool's
//! first page after them and then only a page that nobody else knows, then the pool's writer, then a partition of its
//! directory, then the log's buffer. A partition of the lock table and the table of transactions may be asked under any of
//! these, since nothing else is taken under them; who begins to wait for a lock holds none of these, and takes all
//! partitions of the lock table from the first to the last.

mod absent;
mod contract;
mod guarded;
mod real;

pub use absent::NoLatch;
pub(crate) use contract::Latch;
pub(crate) use guarded::{Exclusive, Guarded};
pub use real::RwLatch;
