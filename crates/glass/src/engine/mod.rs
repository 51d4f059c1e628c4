//! The engine: what users call.
//!
//! A session has one transaction at a time. Tables hold records, indexes find them; that each record has an entry in each
//! index of its table is up to who calls, and [`Engine::verify`] looks at it.
//!
//! **Locks** (where there are any) are held until the transaction ends. A table is locked with intent before a record of it is,
//! once for each transaction. [`Session::lookup`] and [`Session::scan`] lock what they find, shared or exclusively as is
//! said, and, where they find nothing, what is next; [`Session::create`] locks what it makes, [`Session::insert`] asks for what
//! comes next and [`Session::remove`] keeps it. So whoever has a [`Rid`] has it locked, and what takes one, [`Session::pin`],
//! [`Session::update`], [`Session::replace`] and [`Session::delete`], asks for no lock: records that are to be changed are looked up for
//! [`Access::Change`].
//!
//! **One session** is open at a time where latches or locks are absent: that nobody else is there is what makes an engine
//! without latches sound. So whatever reaches what they would guard takes the place of a session, if only for a while.
//!
//! **Checkpoints** are taken by who commits when the log has grown enough, not by a thread of their own: so an engine of one
//! session is one thread, and does the same work in the same order each time. By then the commit lasts, and is told so whatever
//! becomes of the checkpoint. That one failed is told once, to whoever begins a transaction next, which is not begun then; each
//! commit tries anew, and [`Engine::close`], which takes one of its own, tells of that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::assembly::Assembly;
use crate::btree::{self, Tree};
use crate::catalogue::{CATALOGUE, Definition, Directory, Index, IndexHandle, TableHandle};
use crate::heap::{self, Below, Heap};
use crate::keys::Shape;
use crate::latch::Latch;
use crate::locks::{Locks, PATIENCE};
use crate::log::{self, Log, LogFiles, Undo, Undoer};
use crate::pages::disk::Folder;
use crate::pages::{self, Pages, Setup};
use crate::transactions::Transactions;
use crate::{Error, IndexId, Lsn, PageId, Result, Rid, TxId, locks};

mod boundary;
mod chains;
mod gate;
mod session;
#[cfg(test)]
mod tests;
mod verify;

pub use session::{Access, Direction, Pinned, Session};
pub use verify::Verified;

use chains::{Back, Forwards};

/// What can be chosen without another assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// For the pages of the buffer pool, in bytes.
    pub memory: usize,
    /// The log's.
    pub log: log::Options,
    /// So many bytes are logged from one checkpoint to the next. At a checkpoint all pages that were changed are written.
    pub checkpoint: u64,
    /// So long a lock is waited for.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            log: log::Options::default(),
            checkpoint: 256 << 20,
            patience: PATIENCE,
        }
    }
}

/// There while an engine is open whose pages last and whose log does not.
const OPEN_FILE: &str = "open";

/// Has the largest id that a transaction had when the engine was closed, in 8 bytes, little endian.
const HIGHEST_FILE: &str = "highest";

/// An engine, open.
pub struct Engine<A: Assembly> {
    pages: A::Pages,
    log: Arc<A::Log>,
    locks: A::Locks,
    transactions: A::Transactions,
    directory: Directory<A::Latch>,
    options: Options,
    /// What recovery did when the engine was opened.
    recovered: Option<log::Recovered>,
    /// The first transaction there could be when the engine was opened.
    epoch: TxId,
    /// Where it is to be seen that the engine was not closed in peace, if nothing else tells.
    folder: Option<Arc<dyn Folder>>,
    /// How many sessions are open.
    sessions: AtomicUsize,
    /// Pins that are held; counted where latches are absent alone, by the one thread that has them.
    pins: AtomicUsize,
    /// Something was neither done nor undone: whoever opens the engine anew finds it recovered.
    broken: AtomicBool,
    /// Whether it is broken or a checkpoint failed that nobody has been told of: one thing to look at when a transaction begins.
    troubled: AtomicBool,
    /// Why the last checkpoint failed, until somebody is told. Held by who changes `troubled`.
    failed_checkpoint: Mutex<Option<Error>>,
    /// Held by who makes a table or an index.
    making: Mutex<()>,
    /// Held by who takes a checkpoint.
    checkpointing: Mutex<()>,
}

impl<A: Assembly> Engine<A> {
    /// Whether there is a buffer pool.
    pub const HAS_POOL: bool = A::Pages::REAL;

    /// Whether there are transactions, so that what was done can be undone.
    pub const HAS_TRANSACTIONS: bool = A::Transactions::REAL;

    /// Of the log's buffer, in bytes. The longest record is that of a branch of an index which takes over what is next to it: less than
    /// a page for each level, and for the node above. A split logs three pages' worth, a page that is given back one.
    const LEAST_BUFFER: usize = {
        let pages = btree::most_levels(A::PAGE) + 1;
        A::PAGE * if pages < 4 { 4 } else { pages }
    };

    /// Opens the store in that folder after recovering it, or makes one where nothing is. A folder is needed where there is a
    /// buffer pool, or a log that is written.
    ///
    /// What lasts is what has both of these: pages without a pool are gone when the engine is closed; without a log, or with one that stays
    /// in memory, a store lasts if it is closed in peace ([`Self::close`]), and is refused ([`Error::Refused`]) if it was not. So is
    /// one of which a log has something to recover; one that was closed is taken over, and its log removed.
    pub fn open(folder: Option<Arc<dyn Folder>>, options: &Options) -> Result<Self> {
        let left = match &folder {
            Some(folder) if A::Pages::REAL && !Self::log_lasts(options) => {
                Some(log::Left::find(Arc::clone(folder))?)
            }
            _ => None,
        };
        let least = Self::LEAST_BUFFER;
        if A::Log::REAL && options.log.buffer < least {
            return Err(Error::Refused(format!(
                "the log's buffer has {} bytes, and pages of {} need {least} at least",
                options.log.buffer,
                A::PAGE
            )));
        }
        let (log, recovery) = A::Log::open(folder.clone(), &options.log)?;
        let log = Arc::new(log);
        let ahead = Arc::clone(&log);
        let pages = A::Pages::open(Setup {
            folder: folder.as_deref(),
            memory: options.memory,
            ahead: Box::new(move |lsn| ahead.flush(lsn)),
        })?;
        let mut engine = Self {
            pages,
            log,
            locks: A::Locks::new(options.patience),
            transactions: A::Transactions::default(),
            directory: Directory::default(),
            options: options.clone(),
            recovered: None,
            epoch: epoch::<A>(TxId(0)),
            folder,
            sessions: AtomicUsize::new(0),
            pins: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            troubled: AtomicBool::new(false),
            failed_checkpoint: Mutex::new(None),
            making: Mutex::new(()),
            checkpointing: Mutex::new(()),
        };
        match recovery {
            Some(recovery) => engine.recover(recovery)?,
            None if engine.pages.root()? == PageId::NONE => engine.begin_store()?,
            None if engine.lasts() => {
                return Err(Error::Refused(
                    "there are pages, but not the log that they were changed by".into(),
                ));
            }
            None => {
                // Ghosts are of those who were there before.
                let highest = engine.earlier()?.max(TxId(1));
                engine.transactions.continue_after(highest);
                engine.epoch = epoch::<A>(highest);
                engine.load()?;
            }
        }
        if let Some(left) = left {
            engine.mark_open(left)?;
        }
        Ok(engine)
    }

    /// Whether there is a log that outlives the engine.
    fn lasts(&self) -> bool {
        Self::log_lasts(&self.options)
    }

    fn log_lasts(options: &Options) -> bool {
        A::Log::REAL && options.log.policy != log::Policy::Memory
    }

    /// Does again what was done, and undoes what was not done whole.
    fn recover(&mut self, mut recovery: log::Recovery) -> Result<()> {
        if !A::Pages::REAL {
            return Err(Error::Refused(
                "a log is left of pages that are not: there is nothing that it could recover"
                    .into(),
            ));
        }
        let highest = recovery.highest();
        recovery.redo(&self.pages)?;
        self.transactions.continue_after(highest);
        self.epoch = epoch::<A>(highest);
        // What is undone may be of tables and indexes whose making is undone.
        self.load()?;
        self.recovered = Some(recovery.undo(&*self.log, self)?);
        self.directory = Directory::default();
        self.load()?;
        self.take_checkpoint()
    }

    /// Makes the catalogue of a new store.
    fn begin_store(&self) -> Result<()> {
        let mut tx = self.transactions.begin();
        let mut chain = Forwards::<A> {
            log: &self.log,
            tx: &mut tx,
        };
        let first = Heap::make(self.below(), CATALOGUE, &mut chain)?;
        self.log
            .commit(A::Transactions::id(&tx), A::Transactions::last(&tx))?;
        self.transactions.ended(&mut tx);
        self.pages.set_root(first, &*self.log)?;
        self.directory
            .add_table(None, CATALOGUE, Heap::new(CATALOGUE, first, self.epoch))?;
        if self.lasts() {
            // That there is a store is said before a page that says so is written: a crash until then leaves none.
            self.log.checkpoint(|| Ok(self.pages.dirty_pages()))?;
        }
        Ok(())
    }

    /// Reads the catalogue.
    fn load(&self) -> Result<()> {
        let epoch = self.epoch;
        let own = Heap::new(CATALOGUE, self.pages.root()?, epoch);
        own.each(&self.pages, |_, record| match Definition::decode(record)? {
            Definition::Table { id, first, name } => {
                self.directory
                    .add_table(Some(&name), id, Heap::new(id, first, epoch))
            }
            Definition::Index {
                id,
                root,
                table,
                shape,
                name,
            } => self.directory.add_index(
                &name,
                Index {
                    id,
                    table,
                    shape,
                    root,
                },
            ),
        })?;
        self.directory.add_table(None, CATALOGUE, own)
    }

    /// Makes a table. No session may be open where only one may be at a time.
    pub fn create_table(&self, name: &str) -> Result<TableHandle> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = self.session()?;
        let id = self.directory.next_table(name)?;
        let first = session.define(|below, chain| {
            let first = Heap::make(below, id, chain)?;
            let definition = Definition::Table {
                id,
                first,
                name: name.into(),
            };
            Ok((first, definition))
        })?;
        let heap = Heap::new(id, first, self.epoch);
        self.directory.add_table(Some(name), id, heap)?;
        self.directory.table_handle(name)
    }

    /// Makes an index of a table that has no records yet. No session may be open where only one may be at a time, and nobody
    /// may use the table meanwhile.
    pub fn create_index(
        &self,
        name: &str,
        table: &TableHandle,
        shape: &Shape,
    ) -> Result<IndexHandle> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = self.session()?;
        let table = session.table(table)?;
        if !table.heap.verify(&self.pages)?.records.is_empty() {
            return Err(Error::Refused(format!(
                "index {name}: its table has records already"
            )));
        }
        let (id, table) = (self.directory.next_index(name)?, table.id);
        let root = session.define(|below, chain| {
            let root = Tree::<A::Keys, _, _, _>::create(below.pages, below.log, shape, id, chain)?;
            let definition = Definition::Index {
                id,
                root,
                table,
                shape: shape.clone(),
                name: name.into(),
            };
            Ok((root, definition))
        })?;
        let index = Index {
            id,
            table,
            shape: shape.clone(),
            root,
        };
        self.directory.add_index(name, index)?;
        self.directory.index_handle(name)
    }

    /// The table of that name. No session may be open where only one may be at a time.
    pub fn table_handle(&self, name: &str) -> Result<TableHandle> {
        let _session = self.session()?;
        self.directory.table_handle(name)
    }

    /// The index of that name. No session may be open where only one may be at a time.
    pub fn index_handle(&self, name: &str) -> Result<IndexHandle> {
        let _session = self.session()?;
        self.directory.index_handle(name)
    }

    /// Shows all records of a table, in no order that is promised. No session may be open where only one may be at a time, and
    /// no transaction under way elsewhere.
    pub fn each(
        &self,
        table: &TableHandle,
        visit: impl FnMut(Rid, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut session = self.session()?;
        session.table(table)?.heap.each(&self.pages, visit)
    }

    /// A session. One at a time where latches or locks are absent: [`Error::Refused`]. Without latches, none while anything
    /// is pinned that one had pinned which is gone.
    pub fn session(&self) -> Result<Session<'_, A>> {
        let before = self.sessions.fetch_add(1, Ordering::Acquire);
        // Made at once, so that it is not counted any more where it is refused.
        let session = Session::new(self);
        let is_alone = before == 0 && self.pins.load(Ordering::Acquire) == 0;
        if !(is_alone || A::Latch::REAL && A::Locks::REAL) {
            return Err(Error::Refused(
                "one session may be open at a time in this assembly".into(),
            ));
        }
        Ok(session)
    }

    /// What was read from the pages' file and written to it, and how the pool served, since the engine was opened.
    pub fn pages(&self) -> pages::Statistics {
        self.pages.statistics()
    }

    /// How often locks were had and waited for, since the engine was opened. No session may be open where only one may be
    /// at a time.
    pub fn locks(&self) -> Result<locks::Statistics> {
        let _session = self.session()?;
        Ok(self.locks.statistics())
    }

    /// What the log has done since it was opened.
    pub fn log(&self) -> log::Statistics {
        self.log.statistics()
    }

    /// What recovery did when the engine was opened; `None` where there was nothing to recover from.
    pub const fn recovered(&self) -> Option<log::Recovered> {
        self.recovered
    }

    /// Takes a checkpoint: what was changed before is written to its place, and the log that is not needed any more is
    /// removed. Others go on meanwhile. No session may be open where only one may be at a time.
    pub fn checkpoint(&self) -> Result<()> {
        let _session = self.session()?;
        self.take_checkpoint()
    }

    fn take_checkpoint(&self) -> Result<()> {
        if self.lasts() {
            self.pages.flush_all()?;
            self.log.checkpoint(|| Ok(self.pages.dirty_pages()))?;
        }
        Ok(())
    }

    /// Takes one if the log has grown enough since the last and nobody else is about to. If it fails, [`Self::ready`] tells.
    fn checkpoint_when_due(&self) {
        if !self.lasts() || self.log.grown() < self.options.checkpoint {
            return;
        }
        let Ok(_checkpointing) = self.checkpointing.try_lock() else {
            return;
        };
        if let Err(error) = self.take_checkpoint() {
            *self.trouble() = Some(error);
        }
    }

    /// There is trouble, of which more can be said in what this gives.
    fn trouble(&self) -> MutexGuard<'_, Option<Error>> {
        let failed = (self.failed_checkpoint.lock()).unwrap_or_else(PoisonError::into_inner);
        self.troubled.store(true, Ordering::Release);
        failed
    }

    /// Something was neither done nor undone.
    fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        drop(self.trouble());
    }

    /// Whether a transaction may begin: not in a broken engine, and not before somebody has been told that a checkpoint failed.
    #[inline]
    fn ready(&self) -> Result<()> {
        if self.troubled.load(Ordering::Acquire) {
            self.tell()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn tell(&self) -> Result<()> {
        self.sound()?;
        let mut failed = self.trouble();
        // Whoever breaks it off from now on says so when this is done.
        self.troubled
            .store(self.broken.load(Ordering::Acquire), Ordering::Release);
        failed.take().map_or(Ok(()), Err)
    }

    /// Writes everything to its place and closes. An engine that is dropped without this leaves its place as a crash would.
    pub fn close(self) -> Result<()> {
        self.sound()?;
        if self.lasts() {
            self.take_checkpoint()?;
            self.leave_highest()?;
            return self.log.close();
        }
        self.pages.flush_all()?;
        self.leave_highest()?;
        self.mark_closed()
    }

    /// Writes down the largest id of a transaction, for whoever opens the store without a log that would tell.
    fn leave_highest(&self) -> Result<()> {
        let (Some(folder), true) = (&self.folder, A::Pages::REAL && A::Transactions::REAL) else {
            return Ok(());
        };
        // Nobody is under way: the oldest is the next.
        let highest = self.transactions.oldest().0.saturating_sub(1).to_le_bytes();
        let failed = |error| Error::Io(HIGHEST_FILE, error);
        let file = folder.open(HIGHEST_FILE).map_err(failed)?;
        file.write(0, &highest).map_err(failed)?;
        file.sync().map_err(failed)
    }

    /// What was written down so; 0 where nothing was. Of a store that was closed it is whole.
    fn earlier(&self) -> Result<TxId> {
        let (Some(folder), true) = (&self.folder, A::Pages::REAL) else {
            return Ok(TxId(0));
        };
        let failed = |error| Error::Io(HIGHEST_FILE, error);
        let mut highest = [0; 8];
        let file = folder.open(HIGHEST_FILE).map_err(failed)?;
        file.read(0, &mut highest).map_err(failed)?;
        Ok(TxId(u64::from_le_bytes(highest)))
    }

    /// Where there is a pool and no log that lasts, leaves a mark that is there until the engine is closed; refuses where one is. A
    /// log that was left is removed before: it would not know of what is done now.
    fn mark_open(&self, left: log::Left) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let names = folder
            .names()
            .map_err(|error| Error::Io("the store's folder", error))?;
        if names.iter().any(|name| name == OPEN_FILE) {
            return Err(Error::Refused(
                "the store was not closed, and has no log that could tell what is missing".into(),
            ));
        }
        left.remove()?;
        folder
            .open(OPEN_FILE)
            .map_err(|error| Error::Io(OPEN_FILE, error))?;
        Ok(())
    }

    fn mark_closed(&self) -> Result<()> {
        match (&self.folder, A::Pages::REAL) {
            (Some(folder), true) => {
                (folder.remove(OPEN_FILE)).map_err(|error| Error::Io(OPEN_FILE, error))
            }
            _ => Ok(()),
        }
    }

    fn sound(&self) -> Result<()> {
        if self.broken.load(Ordering::Acquire) {
            Err(Error::Refused(
                "a change could neither be kept nor undone: the engine is to be opened anew".into(),
            ))
        } else {
            Ok(())
        }
    }

    fn below(&self) -> Below<'_, A::Pages, A::Log> {
        Below {
            pages: &self.pages,
            log: &self.log,
        }
    }

    #[inline]
    fn tree<'e>(&'e self, index: &'e Index) -> Tree<'e, A::Keys, A::Latch, A::Pages, A::Log> {
        Tree::new(&self.pages, &self.log, &index.shape, index.id, index.root)
    }
}

/// The first transaction there can be in an engine that is opened when none was called by a larger number than `highest`.
fn epoch<A: Assembly>(highest: TxId) -> TxId {
    // Ghosts are of transaction 1 at least, also where there are none.
    if A::Transactions::REAL {
        TxId(highest.0 + 1)
    } else {
        TxId(1)
    }
}

impl<A: Assembly> Undoer for Engine<A> {
    fn undo(&self, tx: TxId, last: Lsn, next: Lsn, undo: Undo<'_>) -> Result<Lsn> {
        let mut chain = Back::<A> {
            log: &self.log,
            tx,
            last,
            next,
        };
        match undo {
            Undo::IndexDelete { index, entry } => {
                let (index, key, rid) = self.entry(index, entry)?;
                self.tree(index)
                    .remove(key, rid, &mut btree::Open, &mut chain)?;
            }
            Undo::IndexInsert { index, entry } => {
                let (index, key, rid) = self.entry(index, entry)?;
                self.tree(index)
                    .insert(key, rid, &mut btree::Open, &mut chain)?;
            }
            _ => {
                let ghost = heap::undo(&self.pages, &mut chain, undo)?;
                if let Some(ghost) = ghost
                    && let Some(table) = self.directory.table(ghost.table)
                {
                    table.heap.note(ghost.page, ghost.before);
                }
            }
        }
        Ok(chain.last)
    }
}

impl<A: Assembly> Engine<A> {
    /// An entry of an index, taken apart as it is logged: its key, then its record in 8 bytes, little endian.
    fn entry<'b>(&self, index: IndexId, entry: &'b [u8]) -> Result<(&Index, &'b [u8], Rid)> {
        let index = self.directory.index(index);
        match (index, entry.split_last_chunk()) {
            (Some(index), Some((key, rid))) => {
                Ok((index, key, Rid::from_bits(u64::from_le_bytes(*rid))))
            }
            _ => Err(Error::Corrupt(
                None,
                "an entry of no index is to be undone".into(),
            )),
        }
    }
}
