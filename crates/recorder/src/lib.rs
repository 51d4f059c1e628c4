//! What a file system keeps through a power failure.
//!
//! A [`fuse::Served`] disk is a file whose writes and flushes are logged; with a loop device upon it a file
//! system lives on it. [`cut`] makes what a power failure at some point of that log would have left.
//! Meanwhile [`write`] does to that file system what programs do, and keeps a [`history`] of what it was
//! promised at which point; [`judge`] looks at what is there after a cut and says which promises were broken.

pub mod cut;
pub mod disk;
pub mod fuse;
pub mod history;
pub mod judge;
pub mod log;
pub mod sector;
pub mod write;
