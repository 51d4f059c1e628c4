//! Components whose boundaries are kept as calls, so that a profile tells what is spent in each by the names of these functions
//! and of what is below them.
#![expect(
    clippy::inline_always,
    reason = "what is not the boundary of a component is not to look like one"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::{Catalogue, Directory, Index, IndexHandle, Table, TableHandle};
use crate::keys::{Keys, Shape};
use crate::latch::Latch;
use crate::locks::{self, Lockable, Locks, Mode, Until};
use crate::log::{self, Log, LogFiles, Record, Recovery, Undo};
use crate::pages::disk::Folder;
use crate::pages::{self, Census, PageKind, Pages, Pin, Setup};
use crate::transactions::Transactions;
use crate::{Lsn, PageId, Result, TxId};

/// The component, out of line.
#[derive(Default)]
pub struct Outlined<T>(T);

impl<K: Keys> Keys for Outlined<K> {
    const REAL: bool = K::REAL;

    #[inline(never)]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        K::compare(shape, a, b)
    }
}

#[allow(unsafe_code)]
impl<L: Latch> Latch for Outlined<L> {
    const REAL: bool = L::REAL;

    #[inline(never)]
    fn lock_shared(&self) {
        self.0.lock_shared();
    }

    #[inline(never)]
    fn lock_exclusive(&self) {
        self.0.lock_exclusive();
    }

    #[inline(never)]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    #[inline(never)]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_shared() };
    }

    #[inline(never)]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_exclusive() };
    }
}

/// A pin that is given back out of line.
pub struct OutlinedPin<P: Pin>(Option<P>);

/// Gives a pin back.
#[inline(never)]
fn unpin<P: Pin>(pin: Option<P>) {
    drop(pin);
}

impl<P: Pin> Drop for OutlinedPin<P> {
    #[inline(always)]
    fn drop(&mut self) {
        unpin(self.0.take());
    }
}

impl<P: Pin> OutlinedPin<P> {
    #[inline(always)]
    fn pin(&self) -> &P {
        match &self.0 {
            Some(pin) => pin,
            None => unreachable!("it is taken out by drop alone"),
        }
    }
}

// SAFETY: as the pin within says.
#[allow(unsafe_code)]
unsafe impl<P: Pin> Pin for OutlinedPin<P> {
    type Latch = P::Latch;

    #[inline(always)]
    fn id(&self) -> PageId {
        self.pin().id()
    }

    #[inline(always)]
    fn latch(&self) -> &P::Latch {
        self.pin().latch()
    }

    #[inline(always)]
    fn bytes(&self) -> NonNull<[u8]> {
        self.pin().bytes()
    }

    #[inline(never)]
    fn touched(&self, lsn: Lsn) {
        self.pin().touched(lsn);
    }
}

impl<L: Latch, P: Pages<L>> Pages<L> for Outlined<P> {
    const REAL: bool = P::REAL;

    type Pin<'a>
        = OutlinedPin<P::Pin<'a>>
    where
        Self: 'a;

    fn open(setup: Setup<'_>) -> Result<Self> {
        P::open(setup).map(Self)
    }

    #[inline(never)]
    fn pin(&self, page: PageId) -> Result<Self::Pin<'_>> {
        Ok(OutlinedPin(Some(self.0.pin(page)?)))
    }

    #[inline(never)]
    fn pin_of_record(&self, page: PageId) -> Result<Self::Pin<'_>> {
        Ok(OutlinedPin(Some(self.0.pin_of_record(page)?)))
    }

    #[inline(never)]
    fn allocate<G: Log<L>>(&self, kind: PageKind, log: &G) -> Result<Self::Pin<'_>> {
        Ok(OutlinedPin(Some(self.0.allocate(kind, log)?)))
    }

    #[inline(never)]
    fn free<G: Log<L>>(&self, page: PageId, log: &G) -> Result<()> {
        self.0.free(page, log)
    }

    fn root(&self) -> Result<PageId> {
        self.0.root()
    }

    fn set_root<G: Log<L>>(&self, root: PageId, log: &G) -> Result<()> {
        self.0.set_root(root, log)
    }

    fn census(&self) -> Result<Census> {
        self.0.census()
    }

    #[inline(never)]
    fn dirty_pages(&self) -> Vec<(PageId, Lsn)> {
        self.0.dirty_pages()
    }

    #[inline(never)]
    fn flush_some(&self, at_most: usize) -> Result<usize> {
        self.0.flush_some(at_most)
    }

    #[inline(never)]
    fn flush_all(&self) -> Result<()> {
        self.0.flush_all()
    }

    fn statistics(&self) -> pages::Statistics {
        self.0.statistics()
    }
}

impl<L: Latch, G: Log<L>> Log<L> for Outlined<G> {
    const REAL: bool = G::REAL;

    #[inline(never)]
    fn append(&self, tx: TxId, previous: Lsn, record: &Record<'_>) -> Result<Lsn> {
        self.0.append(tx, previous, record)
    }

    #[inline(never)]
    fn commit(&self, tx: TxId, previous: Lsn) -> Result<()> {
        self.0.commit(tx, previous)
    }

    #[inline(never)]
    fn end(&self, tx: TxId, previous: Lsn) -> Result<()> {
        self.0.end(tx, previous)
    }

    #[inline(never)]
    fn flush(&self, lsn: Lsn) -> Result<()> {
        self.0.flush(lsn)
    }
}

impl<L: Latch, G: LogFiles<L>> LogFiles<L> for Outlined<G> {
    fn open(
        folder: Option<Arc<dyn Folder>>,
        options: &log::Options,
    ) -> Result<(Self, Option<Recovery>)> {
        let (log, recovery) = G::open(folder, options)?;
        Ok((Self(log), recovery))
    }

    #[inline(never)]
    fn checkpoint(&self, dirty: impl FnOnce() -> Result<Vec<(PageId, Lsn)>>) -> Result<()> {
        self.0.checkpoint(dirty)
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }

    #[inline(never)]
    fn grown(&self) -> u64 {
        self.0.grown()
    }

    fn statistics(&self) -> log::Statistics {
        self.0.statistics()
    }
}

impl<L: Latch, X: Locks<L>> Locks<L> for Outlined<X> {
    const REAL: bool = X::REAL;

    type Held = X::Held;

    fn new(patience: Duration) -> Self {
        Self(X::new(patience))
    }

    #[inline(never)]
    fn lock(
        &self,
        tx: TxId,
        held: &mut X::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> Result<()> {
        self.0.lock(tx, held, what, mode, until)
    }

    #[inline(never)]
    fn try_lock(
        &self,
        tx: TxId,
        held: &mut X::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> bool {
        self.0.try_lock(tx, held, what, mode, until)
    }

    #[inline(never)]
    fn release(&self, tx: TxId, held: &mut X::Held) {
        self.0.release(tx, held);
    }

    fn statistics(&self) -> locks::Statistics {
        self.0.statistics()
    }
}

impl<L: Latch, T: Transactions<L>> Transactions<L> for Outlined<T> {
    const REAL: bool = T::REAL;

    type Tx = T::Tx;

    #[inline(never)]
    fn begin(&self) -> T::Tx {
        self.0.begin()
    }

    #[inline(never)]
    fn ended(&self, tx: &mut T::Tx) {
        self.0.ended(tx);
    }

    #[inline(never)]
    fn oldest(&self) -> TxId {
        self.0.oldest()
    }

    fn continue_after(&self, tx: TxId) {
        self.0.continue_after(tx);
    }

    #[inline(always)]
    fn id(tx: &T::Tx) -> TxId {
        T::id(tx)
    }

    #[inline(always)]
    fn last(tx: &T::Tx) -> Lsn {
        T::last(tx)
    }

    #[inline(always)]
    fn logged(tx: &mut T::Tx, lsn: Lsn) {
        T::logged(tx, lsn);
    }

    #[inline(never)]
    fn remember(tx: &mut T::Tx, lsn: Lsn, undo: Undo<'_>) {
        T::remember(tx, lsn, undo);
    }

    #[inline(never)]
    fn undo_next<R>(tx: &mut T::Tx, with: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R> {
        T::undo_next(tx, with)
    }
}

impl<C: Catalogue> Catalogue for Outlined<C> {
    const REAL: bool = C::REAL;

    #[inline(never)]
    fn table<'d, L: Latch>(
        directory: &'d Directory<L>,
        handle: &TableHandle,
    ) -> Result<&'d Table<L>> {
        C::table(directory, handle)
    }

    #[inline(never)]
    fn index<'d, L: Latch>(directory: &'d Directory<L>, handle: &IndexHandle) -> Result<&'d Index> {
        C::index(directory, handle)
    }
}
