//! The kernel: what is left when nothing but the work itself is done, as in the publication's last step.
//!
//! Main-memory trees written for one purpose, of whole numbers to places of rows; rows are structs in vectors. There are
//! no pages, no latches, no locks, no log, no transactions and no catalogue, so that whoever calls must know before the
//! first change that all will go well: nothing is rolled back. It shares nothing with the engine, so that no component of
//! the engine can be counted with it.

mod tree;

pub use tree::{Cursor, Tree};
