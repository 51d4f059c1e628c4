//! The catalogue: which tables and indexes there are.
//!
//! The real form looks each up by its name whenever it is used, as an engine does whose tables come and go; without
//! it they are resolved once, when their handle is made.

use crate::heap::Heap;
use crate::keys::Shape;
use crate::latch::Latch;
use crate::{IndexId, PageId, TableId};

/// Who knows tables and indexes.
pub trait Catalogue: Send + Sync + 'static {
    /// Whether anything is looked up when it is used.
    const REAL: bool;
}

/// What a table is called, for the call that finds it.
#[derive(Clone, Debug)]
pub struct TableHandle {
    #[expect(dead_code, reason = "signatures come before what they do")]
    name: Box<str>,
}

/// What an index is called, for the call that finds it.
#[derive(Clone, Debug)]
pub struct IndexHandle {
    #[expect(dead_code, reason = "signatures come before what they do")]
    name: Box<str>,
}

/// A table.
pub struct Table<L: Latch> {
    /// What it is called in locks and pages.
    pub id: TableId,
    /// Its records.
    pub heap: Heap<L>,
}

/// An index.
pub struct Index {
    /// What it is called in the log.
    pub id: IndexId,
    /// Whose records its entries lead to.
    pub table: TableId,
    /// Its keys.
    pub shape: Shape,
    /// Its root, which never moves.
    pub root: PageId,
}
