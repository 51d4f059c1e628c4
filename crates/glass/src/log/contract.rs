//! What the rest of the engine knows of the log, and what it writes down there.

use std::sync::Arc;

use super::{Options, Recovery, Statistics};
use crate::latch::Latch;
use crate::pages::disk::Folder;
use crate::{IndexId, Lsn, PageId, Result, Rid, TxId};

/// Where changes are written down.
pub trait Log<L: Latch>: Sized + Send + Sync + 'static {
    /// Whether anything is written down.
    const REAL: bool;

    /// Adds a record of transaction `tx`, whose last one before was at `previous`. Gives where it ends, which is the number
    /// that the pages it changes are to have, and where the transaction's next record points to. It is not yet on disk.
    fn append(&self, tx: TxId, previous: Lsn, record: &Record<'_>) -> Result<Lsn>;

    /// Ends a transaction well: adds its commit and, as the policy says, waits until the log is on disk up to there,
    /// together with whoever waits at the same time.
    fn commit(&self, tx: TxId, previous: Lsn) -> Result<()>;

    /// Ends a transaction that has been undone.
    fn end(&self, tx: TxId, previous: Lsn) -> Result<()>;

    /// Waits until the log is on disk up to `lsn`. Asked before a page is written.
    fn flush(&self, lsn: Lsn) -> Result<()>;
}

/// A log as its engine keeps it.
pub trait LogFiles<L: Latch>: Log<L> {
    /// That of a folder, with what is to be recovered first where it holds a store: [`super::Wal::open`]. The folder is not touched where the
    /// log is absent or stays in memory.
    fn open(folder: Option<Arc<dyn Folder>>, options: &Options)
    -> Result<(Self, Option<Recovery>)>;

    /// Writes down which transactions are under way and which pages are dirty, so that recovery begins there, and removes
    /// what is not needed any more; transactions go on meanwhile (fuzzy). `dirty` gives for each page that was changed and
    /// is not in its place on disk where the first such change ends. Whoever has a page latched exclusively meanwhile may be about to
    /// change it, so it must be waited for.
    ///
    /// After a log is made, the first checkpoint says that there is a store.
    fn checkpoint(&self, dirty: impl FnOnce() -> Result<Vec<(PageId, Lsn)>>) -> Result<()>;

    /// Says that nothing is to be recovered: all pages are in their places, a checkpoint has been taken since, and nothing is logged
    /// afterwards.
    fn close(&self) -> Result<()>;

    /// Bytes logged since the last checkpoint.
    fn grown(&self) -> u64;

    /// What it has done since it was opened.
    fn statistics(&self) -> Statistics;
}

/// What is written down. Bytes are those of pages, as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A change, and how it is undone.
    Change(Change<'a>, Undo<'a>),
    /// What undid a change while rolling back; `next` is the record to be undone after it. Never undone itself.
    Compensation(Change<'a>, Lsn),
    /// A change that stays whatever becomes of the transaction: nodes split, pages taken and given back.
    Structure(Change<'a>),
}

impl<'a> Record<'a> {
    /// What is done.
    #[must_use]
    pub const fn change(&self) -> &Change<'a> {
        match self {
            Self::Change(change, _) | Self::Compensation(change, _) | Self::Structure(change) => {
                change
            }
        }
    }
}

/// What is done to pages; redone where a page's number is lower than the record's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Each of these pages has these bytes written into it at an offset: a general change, of one page or of several.
    Write(&'a [Patch<'a>]),
    /// A record is put into a slot of a heap page.
    HeapInsert {
        /// Where.
        rid: Rid,
        /// What it is.
        kind: Kind,
        /// What.
        record: &'a [u8],
    },
    /// A record becomes a ghost: its slot and its space stay its own until its transaction has ended.
    HeapDelete {
        /// Which.
        rid: Rid,
    },
    /// A ghost is the record again that it was.
    HeapRestore {
        /// Which.
        rid: Rid,
    },
    /// All ghosts of a page give up their slots and their space. Changes nothing that could be seen, so it is
    /// always a [`Record::Structure`].
    HeapReclaim {
        /// Which page.
        page: PageId,
    },
    /// Bytes of a record are replaced.
    HeapUpdate {
        /// Which.
        rid: Rid,
        /// From where on in the record.
        offset: u16,
        /// What is there afterwards.
        after: &'a [u8],
    },
    /// What is in a slot is replaced by something of another length or kind.
    HeapReplace {
        /// Which.
        rid: Rid,
        /// What it is afterwards.
        kind: Kind,
        /// What is there afterwards.
        after: &'a [u8],
    },
    /// An entry is put into a leaf.
    LeafInsert {
        /// Which leaf.
        page: PageId,
        /// Before which of its entries.
        place: u16,
        /// The entry: key and record.
        entry: &'a [u8],
    },
    /// An entry is taken out of a leaf.
    LeafDelete {
        /// Which leaf.
        page: PageId,
        /// Which of its entries.
        place: u16,
    },
}

/// What a slot of a heap page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A record, where it was created.
    Record = 1,
    /// The address of a record that outgrew its page.
    Stub = 2,
    /// A record that outgrew its page; the stub that was left there leads here.
    Moved = 3,
}

/// Bytes written into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch<'a> {
    /// Which.
    pub page: PageId,
    /// From where on.
    pub offset: u16,
    /// What.
    pub bytes: &'a [u8],
}

/// How a change is undone, by whoever finds the page as it is then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo<'a> {
    /// The record is deleted.
    HeapDelete(Rid),
    /// The record that was deleted is there again, as its slot still has it.
    HeapRestore(Rid),
    /// Bytes of the record are as they were.
    HeapUpdate {
        /// Which.
        rid: Rid,
        /// From where on in the record.
        offset: u16,
        /// What was there.
        before: &'a [u8],
    },
    /// The slot holds what it held, of another length or kind.
    HeapReplace {
        /// Which.
        rid: Rid,
        /// What it was.
        kind: Kind,
        /// What was there.
        before: &'a [u8],
    },
    /// The index has no such entry any more, wherever it is now.
    IndexDelete {
        /// Which index.
        index: IndexId,
        /// The entry: key and record.
        entry: &'a [u8],
    },
    /// The index has that entry again.
    IndexInsert {
        /// Which index.
        index: IndexId,
        /// The entry: key and record.
        entry: &'a [u8],
    },
}
