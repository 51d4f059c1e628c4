//! Which form of each component makes an engine: the one place where it is chosen.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::calls::Calls;
use crate::catalogue::Catalogue;
use crate::keys::Keys;
use crate::latch::Latch;
use crate::locks::Locks;
use crate::log::Log;
use crate::pages::Pages;
use crate::transactions::Transactions;

/// An engine's components.
pub trait Assembly: Sized + Send + Sync + 'static {
    /// Of a page, in bytes.
    const PAGE: usize;

    /// Whether the boundaries of components are kept as calls, for profiles to see.
    const OUT_OF_LINE: bool;

    /// How keys are compared.
    type Keys: Keys;

    /// What guards what threads share.
    type Latch: Latch;

    /// Where pages are.
    type Pages: Pages<Self::Latch>;

    /// Where changes are written down.
    type Log: Log<Self::Latch>;

    /// What keeps transactions apart.
    type Locks: Locks<Self::Latch>;

    /// What a transaction is.
    type Transactions: Transactions;

    /// Who knows tables and indexes.
    type Catalogue: Catalogue;

    /// Who is told of calls.
    type Calls: Calls;

    /// Where the files are, if there are any.
    type Place;
}

/// Which components an assembly has. `keys+log+locks+latches+buffer+transactions+catalogue` where all are there (`full`),
/// `none` where none is. A buffer pool of 32 KiB pages, as those without a pool have, is `buffer32`, and an engine whose components are
/// kept out of line ends in `:outlined`; both are there for what is on [`path`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a set of components")]
pub struct Spec {
    /// Typed comparison of keys.
    pub keys: bool,
    /// The write-ahead log.
    pub log: bool,
    /// Two-phase locks.
    pub locks: bool,
    /// Latches.
    pub latches: bool,
    /// The buffer pool.
    pub buffer: bool,
    /// Rollback.
    pub transactions: bool,
    /// Lookup by name at each call.
    pub catalogue: bool,
    /// Whether the buffer pool's pages have 32 KiB instead of 8.
    pub large_pages: bool,
    /// Whether components are kept out of line.
    pub outlined: bool,
}

impl Spec {
    /// With everything.
    pub const FULL: Self = Self {
        keys: true,
        log: true,
        locks: true,
        latches: true,
        buffer: true,
        transactions: true,
        catalogue: true,
        large_pages: false,
        outlined: false,
    };

    /// With nothing.
    pub const NONE: Self = Self {
        keys: false,
        log: false,
        locks: false,
        latches: false,
        buffer: false,
        transactions: false,
        catalogue: false,
        large_pages: false,
        outlined: false,
    };
}

impl fmt::Display for Spec {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl FromStr for Spec {
    type Err = crate::Error;

    fn from_str(_text: &str) -> Result<Self, Self::Err> {
        todo!()
    }
}

/// The order of the publication: all, without comparison of keys by description, and without log, without locks, without latches,
/// with larger pages, without the pool. Then ours: without the catalogue, without transactions.
#[must_use]
pub fn path() -> Vec<Spec> {
    todo!()
}

/// Every assembly that there is, but for those that differ in pages or outlines alone.
#[must_use]
pub fn all() -> Vec<Spec> {
    todo!()
}

/// Whoever does something with an assembly that is known only when it runs.
pub trait Visitor {
    /// Who is told of calls.
    type Calls: Calls;

    /// What it gives.
    type Output;

    /// Does it.
    fn visit<A: Assembly<Calls = Self::Calls, Place = PathBuf>>(self, spec: Spec) -> Self::Output;
}

/// Calls the visitor with the assembly of that choice. [`crate::Error::Refused`] where there is none.
pub fn with<V: Visitor>(_spec: Spec, _visitor: V) -> crate::Result<V::Output> {
    todo!()
}
