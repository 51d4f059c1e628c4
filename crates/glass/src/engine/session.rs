//! Who calls the engine.
#![expect(
    clippy::inline_always,
    reason = "where calls are nothing to anybody they cost nothing"
)]

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::Engine;
use super::boundary::call;
use super::chains::{Forwards, Tx};
use super::gate::{Held, Locking};
use crate::assembly::Assembly;
use crate::btree::Gate;
use crate::calls::Call;
use crate::catalogue::{
    CATALOGUE, Catalogue, Definition, Index, IndexHandle, MOST, Table, TableHandle,
};
use crate::heap::{self, Below};
use crate::latch::Latch;
use crate::locks::{Lockable, Locks, Mode, Until};
use crate::log::{Log, Undoer};
use crate::pages::Pages;
use crate::transactions::Transactions;
use crate::{Error, Result, Rid, TableId};

/// What is going to be done with what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It may be changed or deleted.
    Change,
}

impl Access {
    /// How a record is locked for it.
    const fn mode(self) -> Mode {
        match self {
            Self::Read => Mode::Shared,
            Self::Change => Mode::Exclusive,
        }
    }

    /// How its table is.
    const fn intent(self) -> Mode {
        match self {
            Self::Read => Mode::IntentShared,
            Self::Change => Mode::IntentExclusive,
        }
    }
}

/// Which way a range is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key to the greatest.
    Forwards,
    /// From the greatest key to the least.
    Backwards,
}

/// Who calls. A transaction that is under way when this is dropped is rolled back.
///
/// It stays on its thread, and so does what it pins: where latches are absent, that is what keeps who reads a pinned record from who
/// changes it.
///
/// ```compile_fail,E0277
/// # use dyno_glass::assembly::Built;
/// # use dyno_glass::calls::NoCalls;
/// # use dyno_glass::catalogue::Resolved;
/// # use dyno_glass::keys::Words;
/// # use dyno_glass::latch::NoLatch;
/// # use dyno_glass::locks::NoLocks;
/// # use dyno_glass::log::NoLog;
/// # use dyno_glass::pages::Direct;
/// # use dyno_glass::transactions::NoTransactions;
/// # type None = Built<32768, false, NoLatch, Direct<NoLatch, 32768>, NoLog, NoLocks, NoTransactions, Words, Resolved, NoCalls>;
/// use dyno_glass::engine::Session;
///
/// fn elsewhere(session: Session<'_, None>) {
///     std::thread::scope(|scope| {
///         scope.spawn(move || drop(session));
///     });
/// }
/// ```
pub struct Session<'e, A: Assembly> {
    engine: &'e Engine<A>,
    tx: Option<Tx<A>>,
    held: Held<A>,
    intents: Intents,
    calls: A::Calls,
    here: PhantomData<*const ()>,
}

/// Which tables a transaction has locked with intent, so that it asks once.
struct Intents {
    of: Box<[Option<Mode>]>,
    tables: Vec<TableId>,
}

impl Intents {
    fn new(tables: usize) -> Self {
        Self {
            of: vec![None; tables].into(),
            tables: Vec::new(),
        }
    }

    fn clear(&mut self) {
        for table in self.tables.drain(..) {
            self.of[usize::from(table.0)] = None;
        }
    }
}

fn no_transaction() -> Error {
    Error::Refused("no transaction is under way".into())
}

impl<'e, A: Assembly> Session<'e, A> {
    pub(super) fn new(engine: &'e Engine<A>) -> Self {
        Self {
            engine,
            tx: None,
            held: Held::<A>::default(),
            intents: Intents::new(if A::Locks::REAL { MOST } else { 0 }),
            calls: A::Calls::default(),
            here: PhantomData,
        }
    }

    /// Who is told of calls.
    pub fn calls(&mut self) -> &mut A::Calls {
        &mut self.calls
    }

    #[inline(always)]
    fn call<R>(&mut self, call: Call, work: impl FnOnce(&mut Self) -> R) -> R {
        self::call::<A, _, _>(call, self, Self::calls, work)
    }

    /// Begins a transaction. All else, but [`Self::table`] and [`Self::index`], is done within one. An error may be that of a
    /// checkpoint that failed after somebody's commit, told once: who tries again goes on, with what was committed there to stay.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        self.call(Call::Begin, |this| {
            this.engine.ready()?;
            if this.tx.is_some() {
                return Err(Error::Refused("a transaction is under way already".into()));
            }
            this.tx = Some(this.engine.transactions.begin());
            Ok(())
        })
    }

    /// Ends the transaction well: when this returns it lasts as the log's policy says. After an error nobody knows whether it
    /// does before the engine is opened anew. A checkpoint that is taken afterwards and fails is no error of this.
    #[inline]
    pub fn commit(&mut self) -> Result<()> {
        self.call(Call::Commit, |this| {
            let tx = this.tx.take().ok_or_else(no_transaction)?;
            let committed = this.engine.sound().and_then(|()| {
                this.engine
                    .log
                    .commit(A::Transactions::id(&tx), A::Transactions::last(&tx))
            });
            if committed.is_err() {
                this.engine.break_off();
            }
            this.end(tx);
            committed?;
            this.engine.checkpoint_when_due();
            Ok(())
        })
    }

    /// Undoes the transaction. [`Error::Absent`] where there are none: what was changed is there to stay.
    pub fn rollback(&mut self) -> Result<()> {
        self.call(Call::Rollback, |this| {
            let mut tx = this.tx.take().ok_or_else(no_transaction)?;
            if !A::Transactions::REAL {
                return Err(Error::Absent("transactions, so nothing can be undone"));
            }
            let undone = this.undo_all(&mut tx);
            if undone.is_err() {
                this.engine.break_off();
            }
            this.end(tx);
            undone
        })
    }

    fn undo_all(&self, tx: &mut Tx<A>) -> Result<()> {
        let id = A::Transactions::id(tx);
        loop {
            let last = A::Transactions::last(tx);
            match A::Transactions::undo_next(tx, |next, undo| {
                self.engine.undo(id, last, next, undo)
            }) {
                Some(lsn) => A::Transactions::logged(tx, lsn?),
                None => return self.engine.log.end(id, last),
            }
        }
    }

    /// The transaction holds nothing any more.
    #[inline]
    fn end(&mut self, mut tx: Tx<A>) {
        self.engine
            .locks
            .release(A::Transactions::id(&tx), &mut self.held);
        self.intents.clear();
        self.engine.transactions.ended(&mut tx);
    }

    /// Finds a table: the catalogue's call.
    #[inline]
    pub fn table(&mut self, handle: &TableHandle) -> Result<&'e Table<A::Latch>> {
        let engine = self.engine;
        if !A::Catalogue::REAL {
            return A::Catalogue::table(&engine.directory, handle);
        }
        self.call(Call::Catalogue, |_| {
            A::Catalogue::table(&engine.directory, handle)
        })
    }

    /// Finds an index: the catalogue's call.
    #[inline]
    pub fn index(&mut self, handle: &IndexHandle) -> Result<&'e Index> {
        let engine = self.engine;
        if !A::Catalogue::REAL {
            return A::Catalogue::index(&engine.directory, handle);
        }
        self.call(Call::Catalogue, |_| {
            A::Catalogue::index(&engine.directory, handle)
        })
    }

    /// Locks a table with intent, unless that is done.
    #[inline]
    fn intend(&mut self, table: TableId, mode: Mode) -> Result<()> {
        if !A::Locks::REAL {
            return Ok(());
        }
        let at = usize::from(table.0);
        let has = self.intents.of[at];
        if has == Some(Mode::IntentExclusive) || has == Some(mode) {
            return Ok(());
        }
        let tx = self.tx.as_ref().ok_or_else(no_transaction)?;
        let tx = A::Transactions::id(tx);
        self.engine
            .locks
            .lock(tx, &mut self.held, Lockable::Table(table), mode, Until::End)?;
        if has.is_none() {
            self.intents.tables.push(table);
        }
        self.intents.of[at] = Some(mode);
        Ok(())
    }

    /// The gate of an index for what is going to be done, and the transaction's chain.
    #[inline]
    fn gate(
        &mut self,
        entry: (Mode, Until),
        next: (Mode, Until),
    ) -> Result<(impl Gate + '_, Forwards<'_, A>)> {
        let tx = self.tx.as_mut().ok_or_else(no_transaction)?;
        let gate = Locking::<A> {
            locks: &self.engine.locks,
            tx: A::Transactions::id(tx),
            held: &mut self.held,
            entry,
            next,
        };
        Ok((
            gate,
            Forwards {
                log: &self.engine.log,
                tx,
            },
        ))
    }

    /// The record with that key, locked for what is going to be done with it.
    #[inline]
    pub fn lookup(&mut self, index: &'e Index, key: &[u8], access: Access) -> Result<Option<Rid>> {
        self.call(Call::Lookup, |this| {
            this.intend(index.table, access.intent())?;
            let tree = this.engine.tree(index);
            let lock = (access.mode(), Until::End);
            tree.lookup(key, &mut this.gate(lock, lock)?.0)
        })
    }

    /// Pins a record, which a lookup, a scan or its creation has locked. [`Error::Missing`] where a page is asked for that no
    /// record can be in.
    #[inline]
    pub fn pin(&mut self, _table: &'e Table<A::Latch>, rid: Rid) -> Result<Pinned<'e, A>> {
        self.call(Call::Pin, |this| {
            let engine = this.engine;
            Ok(Pinned {
                page: engine.pages.pin_of_record(rid.page())?,
                counted: Counted::new(engine),
                rid,
                here: PhantomData,
            })
        })
    }

    /// Shows a pinned record's bytes while its page is latched: `with` must not call the engine. That it cannot by this session
    /// is what makes it sound where there are no latches.
    #[inline]
    pub fn read<R>(&self, pinned: &Pinned<'e, A>, with: impl FnOnce(&[u8]) -> R) -> Result<R> {
        heap::read(&pinned.counted.0.pages, &pinned.page, pinned.rid, with)
    }

    /// Replaces bytes of a record from `offset` on; its length stays.
    #[inline]
    pub fn update(&mut self, pinned: &Pinned<'e, A>, offset: usize, bytes: &[u8]) -> Result<()> {
        self.call(Call::Update, |this| {
            let (engine, tx) = (this.engine, this.tx.as_mut().ok_or_else(no_transaction)?);
            let mut chain = Forwards::<A> {
                log: &engine.log,
                tx,
            };
            heap::update(
                &engine.pages,
                &mut chain,
                &pinned.page,
                pinned.rid,
                offset,
                bytes,
            )
        })
    }

    /// Replaces a whole record of that table by one of any length.
    pub fn replace(
        &mut self,
        table: &'e Table<A::Latch>,
        pinned: &Pinned<'e, A>,
        record: &[u8],
    ) -> Result<()> {
        self.call(Call::Update, |this| {
            let (engine, tx) = (this.engine, this.tx.as_mut().ok_or_else(no_transaction)?);
            let mut chain = Forwards::<A> {
                log: &engine.log,
                tx,
            };
            let oldest = || engine.transactions.oldest();
            (table.heap).replace(
                engine.below(),
                &mut chain,
                oldest,
                &pinned.page,
                pinned.rid,
                record,
            )
        })
    }

    /// Makes a record, which no index has yet.
    #[inline]
    pub fn create(&mut self, table: &'e Table<A::Latch>, record: &[u8]) -> Result<Rid> {
        self.call(Call::Create, |this| {
            this.intend(table.id, Mode::IntentExclusive)?;
            let (engine, tx) = (this.engine, this.tx.as_mut().ok_or_else(no_transaction)?);
            let (id, held) = (A::Transactions::id(tx), &mut this.held);
            let mut chain = Forwards::<A> {
                log: &engine.log,
                tx,
            };
            let oldest = || engine.transactions.oldest();
            let grant = |rid| {
                engine
                    .locks
                    .try_lock(id, held, Lockable::Record(rid), Mode::Exclusive, Until::End)
            };
            table
                .heap
                .create(engine.below(), &mut chain, oldest, record, grant)
        })
    }

    /// Deletes a record, which no index has any more. Who has it pinned finds nothing there afterwards.
    #[inline]
    pub fn delete(&mut self, table: &'e Table<A::Latch>, rid: Rid) -> Result<()> {
        self.call(Call::Delete, |this| {
            let (engine, tx) = (this.engine, this.tx.as_mut().ok_or_else(no_transaction)?);
            let mut chain = Forwards::<A> {
                log: &engine.log,
                tx,
            };
            table.heap.delete(engine.below(), &mut chain, rid)
        })
    }

    /// Gives an index an entry. [`Error::Duplicate`] where it has one of that key; the transaction may go on.
    #[inline]
    pub fn insert(&mut self, index: &'e Index, key: &[u8], rid: Rid) -> Result<()> {
        self.call(Call::Insert, |this| {
            this.intend(index.table, Mode::IntentExclusive)?;
            let tree = this.engine.tree(index);
            let (mut gate, mut chain) =
                this.gate((Mode::Shared, Until::End), (Mode::Exclusive, Until::Had))?;
            tree.insert(key, rid, &mut gate, &mut chain)
        })
    }

    /// Takes an entry out of an index. [`Error::Missing`] where it is not there.
    #[inline]
    pub fn remove(&mut self, index: &'e Index, key: &[u8], rid: Rid) -> Result<()> {
        self.call(Call::Remove, |this| {
            this.intend(index.table, Mode::IntentExclusive)?;
            let tree = this.engine.tree(index);
            let lock = (Mode::Exclusive, Until::End);
            let (mut gate, mut chain) = this.gate(lock, lock)?;
            tree.remove(key, rid, &mut gate, &mut chain)
        })
    }

    /// Visits the entries with keys from `from` to `to`, both included, until the visitor breaks off; it must not call the
    /// engine. Nothing appears among what was visited, nor in the whole range if all was, until the transaction ends.
    #[inline]
    pub fn scan(
        &mut self,
        index: &'e Index,
        from: &[u8],
        to: &[u8],
        access: Access,
        direction: Direction,
        visit: impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<()> {
        self.call(Call::Scan, |this| {
            this.intend(index.table, access.intent())?;
            let tree = this.engine.tree(index);
            let lock = (access.mode(), Until::End);
            let mut gate = this.gate(lock, lock)?.0;
            match direction {
                Direction::Forwards => tree.scan_forwards(from, to, &mut gate, visit),
                Direction::Backwards => tree.scan_backwards(from, to, &mut gate, visit),
            }
        })
    }

    /// Makes something and writes into the catalogue what it is, in a transaction.
    pub(super) fn define<R>(
        &mut self,
        make: impl FnOnce(Below<'_, A::Pages, A::Log>, &mut Forwards<'_, A>) -> Result<(R, Definition)>,
    ) -> Result<R> {
        self.begin()?;
        match self.define_within(make) {
            Ok(made) => {
                self.commit()?;
                Ok(made)
            }
            Err(error) => {
                if A::Transactions::REAL {
                    self.rollback()?;
                } else {
                    self.commit()?;
                }
                Err(error)
            }
        }
    }

    fn define_within<R>(
        &mut self,
        make: impl FnOnce(Below<'_, A::Pages, A::Log>, &mut Forwards<'_, A>) -> Result<(R, Definition)>,
    ) -> Result<R> {
        let engine = self.engine;
        let tx = self.tx.as_mut().ok_or_else(no_transaction)?;
        let mut chain = Forwards::<A> {
            log: &engine.log,
            tx,
        };
        let (made, definition) = make(engine.below(), &mut chain)?;
        let record = definition.encode()?;
        let own = engine
            .directory
            .table(CATALOGUE)
            .ok_or(Error::Missing("the catalogue"))?;
        self.create(own, &record)?;
        Ok(made)
    }
}

impl<A: Assembly> Drop for Session<'_, A> {
    fn drop(&mut self) {
        if self.tx.is_some() {
            // Where it cannot be undone the engine knows that it is broken.
            let _ = self.rollback();
        }
        self.engine.sessions.fetch_sub(1, Ordering::Release);
    }
}

/// A record whose page is pinned until this is dropped. It stays on its session's thread, and where latches are absent nobody gets
/// another session before it is dropped, also when its own is: that is what keeps others from the page then.
///
/// ```compile_fail,E0277
/// # use dyno_glass::assembly::Built;
/// # use dyno_glass::calls::NoCalls;
/// # use dyno_glass::catalogue::Resolved;
/// # use dyno_glass::keys::Words;
/// # use dyno_glass::latch::NoLatch;
/// # use dyno_glass::locks::NoLocks;
/// # use dyno_glass::log::NoLog;
/// # use dyno_glass::pages::Direct;
/// # use dyno_glass::transactions::NoTransactions;
/// # type None = Built<32768, false, NoLatch, Direct<NoLatch, 32768>, NoLog, NoLocks, NoTransactions, Words, Resolved, NoCalls>;
/// use dyno_glass::engine::Pinned;
///
/// fn elsewhere(pinned: Pinned<'_, None>) {
///     std::thread::scope(|scope| {
///         scope.spawn(move || drop(pinned));
///     });
/// }
/// ```
pub struct Pinned<'e, A: Assembly> {
    page: <A::Pages as Pages<A::Latch>>::Pin<'e>,
    // After the page's, so that nobody is let in before it is given back.
    counted: Counted<'e, A>,
    rid: Rid,
    here: PhantomData<*const ()>,
}

/// One of the engine's pins, where these are counted.
struct Counted<'e, A: Assembly>(&'e Engine<A>);

impl<'e, A: Assembly> Counted<'e, A> {
    #[inline]
    fn new(engine: &'e Engine<A>) -> Self {
        if !A::Latch::REAL {
            let pins = engine.pins.load(Ordering::Relaxed) + 1;
            engine.pins.store(pins, Ordering::Relaxed);
        }
        Self(engine)
    }
}

impl<A: Assembly> Drop for Counted<'_, A> {
    #[inline]
    fn drop(&mut self) {
        if !A::Latch::REAL {
            let pins = self.0.pins.load(Ordering::Relaxed) - 1;
            self.0.pins.store(pins, Ordering::Release);
        }
    }
}

impl<A: Assembly> Pinned<'_, A> {
    /// Which record it is.
    pub const fn rid(&self) -> Rid {
        self.rid
    }
}
