//! What the rest of the engine knows of the catalogue.

use super::{Directory, Index, IndexHandle, Table, TableHandle};
use crate::Result;
use crate::latch::Latch;

/// How tables and indexes are found.
pub trait Catalogue: Send + Sync + 'static {
    /// Whether anything is looked up when it is used.
    const REAL: bool;

    /// The table of a handle.
    fn table<'d, L: Latch>(
        directory: &'d Directory<L>,
        handle: &TableHandle,
    ) -> Result<&'d Table<L>>;

    /// The index of a handle.
    fn index<'d, L: Latch>(directory: &'d Directory<L>, handle: &IndexHandle) -> Result<&'d Index>;
}
