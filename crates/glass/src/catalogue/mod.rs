//! The catalogue: which tables and indexes there are.
//!
//! The real form looks each up by its name whenever it is used, as an engine does whose tables come and go; without
//! it they are resolved once, when their handle is made. Either way they are kept as records of a heap of their own, the
//! first that a store has, and read from there when the engine is opened (`Definition`).
//!
//! Invariants: a table or an index is here when the transaction that made it has ended well, and stays for as long as
//! the engine is open. Its number is its place here, and those of tables and of indexes are given without gaps: one whose
//! making failed is given again. Number 0 of tables is the catalogue's own heap, which has no name.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use std::sync::OnceLock;

use crate::heap::Heap;
use crate::keys::Shape;
use crate::latch::{Guarded, Latch};
use crate::{Error, IndexId, PageId, Result, TableId};

mod contract;
mod definition;
mod names;
#[cfg(test)]
mod tests;

pub(crate) use contract::Catalogue;
pub(crate) use definition::Definition;
use names::{Names, hash};

/// So many tables there are at most, and as many indexes.
pub const MOST: usize = 1024;

/// The catalogue's own heap.
pub(crate) const CATALOGUE: TableId = TableId(0);

/// Looked up by name, under a latch, each time.
#[derive(Debug)]
pub struct ByName;

impl Catalogue for ByName {
    const REAL: bool = true;

    #[inline]
    fn table<'d, L: Latch>(
        directory: &'d Directory<L>,
        handle: &TableHandle,
    ) -> Result<&'d Table<L>> {
        directory.table_named(&handle.name)
    }

    #[inline]
    fn index<'d, L: Latch>(directory: &'d Directory<L>, handle: &IndexHandle) -> Result<&'d Index> {
        directory.index_named(&handle.name)
    }
}

/// Resolved when the handle was made.
#[derive(Debug)]
pub struct Resolved;

impl Catalogue for Resolved {
    const REAL: bool = false;

    #[inline(always)]
    fn table<'d, L: Latch>(
        directory: &'d Directory<L>,
        handle: &TableHandle,
    ) -> Result<&'d Table<L>> {
        directory.table(handle.id).ok_or(NO_TABLE)
    }

    #[inline(always)]
    fn index<'d, L: Latch>(directory: &'d Directory<L>, handle: &IndexHandle) -> Result<&'d Index> {
        directory.index(handle.id).ok_or(NO_INDEX)
    }
}

const NO_TABLE: Error = Error::Missing("a table of that name");
const NO_INDEX: Error = Error::Missing("an index of that name");

/// What a table is called, for the call that finds it in the engine that gave this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHandle {
    name: Box<str>,
    id: TableId,
}

/// What an index is called, for the call that finds it in the engine that gave this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHandle {
    name: Box<str>,
    id: IndexId,
}

/// A table.
pub struct Table<L: Latch> {
    pub(crate) id: TableId,
    pub(crate) heap: Heap<L>,
}

/// An index.
#[derive(Debug)]
pub struct Index {
    pub(crate) id: IndexId,
    /// Whose records its entries lead to.
    pub(crate) table: TableId,
    pub(crate) shape: Shape,
    /// It never moves.
    pub(crate) root: PageId,
}

impl Index {
    /// The fields of its keys.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// All tables and indexes.
pub struct Directory<L: Latch> {
    tables: Box<[OnceLock<Table<L>>]>,
    indexes: Box<[OnceLock<Index>]>,
    names: Guarded<L, Both>,
}

#[derive(Default)]
struct Both {
    tables: Names,
    indexes: Names,
}

impl<L: Latch> Default for Directory<L> {
    fn default() -> Self {
        Self {
            tables: (0..MOST).map(|_| OnceLock::new()).collect(),
            indexes: (0..MOST).map(|_| OnceLock::new()).collect(),
            names: Guarded::new(Both::default()),
        }
    }
}

impl<L: Latch> Directory<L> {
    /// The table of that number.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&Table<L>> {
        self.tables.get(usize::from(id.0))?.get()
    }

    /// The index of that number.
    #[inline]
    pub(crate) fn index(&self, id: IndexId) -> Option<&Index> {
        self.indexes.get(usize::from(id.0))?.get()
    }

    /// All tables but the catalogue's own.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table<L>> {
        self.tables.iter().skip(1).filter_map(OnceLock::get)
    }

    /// All indexes.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter_map(OnceLock::get)
    }

    fn table_named(&self, name: &str) -> Result<&Table<L>> {
        let hash = hash(name);
        let id = self.names.shared().tables.find(hash, name);
        id.and_then(|id| self.table(TableId(id))).ok_or(NO_TABLE)
    }

    fn index_named(&self, name: &str) -> Result<&Index> {
        let hash = hash(name);
        let id = self.names.shared().indexes.find(hash, name);
        id.and_then(|id| self.index(IndexId(id))).ok_or(NO_INDEX)
    }

    /// A handle of a table.
    pub(crate) fn table_handle(&self, name: &str) -> Result<TableHandle> {
        let id = self.table_named(name)?.id;
        Ok(TableHandle {
            name: name.into(),
            id,
        })
    }

    /// A handle of an index.
    pub(crate) fn index_handle(&self, name: &str) -> Result<IndexHandle> {
        let id = self.index_named(name)?.id;
        Ok(IndexHandle {
            name: name.into(),
            id,
        })
    }

    /// The number of the next table, which is to have that name.
    pub(crate) fn next_table(&self, name: &str) -> Result<TableId> {
        let taken = self.table_named(name).is_ok();
        let next = 1 + self
            .tables
            .iter()
            .skip(1)
            .take_while(|slot| slot.get().is_some())
            .count();
        next_number(name, taken, next).map(TableId)
    }

    /// The number of the next index, which is to have that name.
    pub(crate) fn next_index(&self, name: &str) -> Result<IndexId> {
        let taken = self.index_named(name).is_ok();
        let next = self
            .indexes
            .iter()
            .take_while(|slot| slot.get().is_some())
            .count();
        next_number(name, taken, next).map(IndexId)
    }

    /// Adds a table, which has no name if it is the catalogue's own.
    pub(crate) fn add_table(&self, name: Option<&str>, id: TableId, heap: Heap<L>) -> Result<()> {
        let slot = self.tables.get(usize::from(id.0)).ok_or_else(too_many)?;
        slot.set(Table { id, heap })
            .map_err(|_| twice("table", id.0))?;
        if let Some(name) = name {
            self.names.exclusive().tables.add(name, id.0);
        }
        Ok(())
    }

    /// Adds an index.
    pub(crate) fn add_index(&self, name: &str, index: Index) -> Result<()> {
        let id = index.id.0;
        let slot = self.indexes.get(usize::from(id)).ok_or_else(too_many)?;
        slot.set(index).map_err(|_| twice("index", id))?;
        self.names.exclusive().indexes.add(name, id);
        Ok(())
    }
}

fn next_number(name: &str, taken: bool, next: usize) -> Result<u16> {
    if taken {
        return Err(Error::Refused(format!("{name} is there already")));
    }
    if next == MOST {
        return Err(too_many());
    }
    u16::try_from(next).map_err(|_| too_many())
}

fn too_many() -> Error {
    Error::Refused(format!("more than {MOST} tables or indexes"))
}

fn twice(what: &str, id: u16) -> Error {
    Error::Corrupt(None, format!("the catalogue has {what} {id} twice"))
}
