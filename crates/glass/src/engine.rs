//! The engine: what users call.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::assembly::Assembly;
use crate::catalogue::{Index, IndexHandle, Table, TableHandle};
use crate::keys::Shape;
use crate::{Result, Rid};

/// What can be chosen without another assembly.
#[derive(Clone, Debug)]
pub struct Options {
    /// The buffer pool's memory, in bytes.
    pub pool_bytes: usize,
    /// When the log reaches the disk.
    pub log: LogPolicy,
    /// How long a lock is waited for.
    pub lock_timeout: Duration,
}

/// When the log reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPolicy {
    /// Never: it is written into memory and forgotten.
    Memory,
    /// Written when a transaction commits, and synced at that interval.
    Written(Duration),
    /// Synced before a commit returns.
    Synced,
}

/// What is going to be done with what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It may be changed or deleted.
    Change,
}

/// Which way a range is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key to the greatest.
    Forwards,
    /// From the greatest key to the least.
    Backwards,
}

/// An engine, open.
pub struct Engine<A: Assembly> {
    assembly: PhantomData<A>,
}

impl<A: Assembly> Engine<A> {
    /// Opens what is at that place, after recovering it, or makes it where nothing is.
    pub fn open(_place: &A::Place, _options: &Options) -> Result<Self> {
        todo!()
    }

    /// Makes a table. No session may be open where only one may be at a time.
    pub fn create_table(&self, _name: &str) -> Result<TableHandle> {
        todo!()
    }

    /// Makes an index of a table that has no records yet.
    pub fn create_index(
        &self,
        _name: &str,
        _table: &TableHandle,
        _shape: &Shape,
    ) -> Result<IndexHandle> {
        todo!()
    }

    /// The table of that name.
    pub fn table_handle(&self, _name: &str) -> Result<TableHandle> {
        todo!()
    }

    /// The index of that name.
    pub fn index_handle(&self, _name: &str) -> Result<IndexHandle> {
        todo!()
    }

    /// A session, which has one transaction at a time. One session at a time where latches or locks are absent:
    /// [`crate::Error::Refused`].
    pub fn session(&self) -> Result<Session<'_, A>> {
        todo!()
    }

    /// Looks at every invariant: trees are sorted and whole, each entry has a record, each record has an entry in each
    /// index of its table, no page is used twice. Nobody else may use the engine meanwhile.
    pub fn verify(&self) -> Result<()> {
        todo!()
    }

    /// Writes everything to its place and closes. An engine that is dropped without leaves its place as a crash would.
    pub fn close(self) -> Result<()> {
        todo!()
    }
}

/// Who calls.
pub struct Session<'e, A: Assembly> {
    engine: &'e Engine<A>,
}

impl<'e, A: Assembly> Session<'e, A> {
    /// Begins a transaction. All else, but [`Self::table`] and [`Self::index`], is done within one.
    pub fn begin(&mut self) -> Result<()> {
        todo!()
    }

    /// Ends the transaction well: when this returns it lasts as the log's policy says.
    pub fn commit(&mut self) -> Result<()> {
        todo!()
    }

    /// Undoes the transaction. [`crate::Error::Absent`] where there are none.
    pub fn rollback(&mut self) -> Result<()> {
        todo!()
    }

    /// Finds a table: the catalogue's call.
    pub fn table(&mut self, _handle: &TableHandle) -> Result<&'e Table<A::Latch>> {
        let _ = self.engine;
        todo!()
    }

    /// Finds an index: the catalogue's call.
    pub fn index(&mut self, _handle: &IndexHandle) -> Result<&'e Index> {
        todo!()
    }

    /// The record with that key, locked for what is going to be done with it.
    pub fn lookup(
        &mut self,
        _index: &'e Index,
        _key: &[u8],
        _access: Access,
    ) -> Result<Option<Rid>> {
        todo!()
    }

    /// Pins a record, which has been locked by a lookup, a scan or its creation.
    pub fn pin(&mut self, _table: &'e Table<A::Latch>, _rid: Rid) -> Result<Pinned<'e, A>> {
        todo!()
    }

    /// Replaces bytes of a record from `offset` on; its length stays.
    pub fn update(&mut self, _pinned: &Pinned<'e, A>, _offset: usize, _bytes: &[u8]) -> Result<()> {
        todo!()
    }

    /// Replaces a whole record by one of any length. Other pins of it are void afterwards.
    pub fn replace(&mut self, _pinned: &mut Pinned<'e, A>, _record: &[u8]) -> Result<()> {
        todo!()
    }

    /// Makes a record, which no index has yet.
    pub fn create(&mut self, _table: &'e Table<A::Latch>, _record: &[u8]) -> Result<Rid> {
        todo!()
    }

    /// Deletes a record, which no index has any more. Pins of it are void afterwards.
    pub fn delete(&mut self, _table: &'e Table<A::Latch>, _rid: Rid) -> Result<()> {
        todo!()
    }

    /// Gives an index an entry. [`crate::Error::Duplicate`] where it has one of that key; the transaction may go on.
    pub fn insert(&mut self, _index: &'e Index, _key: &[u8], _rid: Rid) -> Result<()> {
        todo!()
    }

    /// Takes an entry out of an index.
    pub fn remove(&mut self, _index: &'e Index, _key: &[u8], _rid: Rid) -> Result<()> {
        todo!()
    }

    /// Visits the entries from `from` to `to`, both included, until the visitor breaks off. Nothing appears in the range
    /// up to where it came, until the transaction ends.
    pub fn scan(
        &mut self,
        _index: &'e Index,
        _from: &[u8],
        _to: &[u8],
        _access: Access,
        _direction: Direction,
        _visit: impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<()> {
        todo!()
    }

    /// Who is told of calls.
    pub fn calls(&mut self) -> &mut A::Calls {
        todo!()
    }
}

/// A record whose page is pinned until this is dropped.
pub struct Pinned<'e, A: Assembly> {
    engine: &'e Engine<A>,
}

impl<A: Assembly> Pinned<'_, A> {
    /// Shows the record's bytes, while its page is latched: `with` must not call the engine.
    pub fn read<R>(&self, _with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let _ = self.engine;
        todo!()
    }
}
