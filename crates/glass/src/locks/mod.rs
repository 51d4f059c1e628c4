//! Locks: what keeps transactions apart until they end.
//!
//! Two-phase and of several granularities (Gray et al. 1976): a table is locked for what is meant to be done in it
//! before a record of it is locked. Records are locked by where they are, for index and heap at once (data-only
//! locking, ARIES/IM: Mohan and Levine 1992); who reads a range, or finds nothing, locks the record of the next key too,
//! and who inserts or deletes asks for that one, so that nothing appears in between (serialisable).

use crate::latch::Latch;
use crate::{IndexId, Result, Rid, TableId, TxId};

/// Who may do what at the same time.
pub trait Locks<L: Latch>: Sized + Send + Sync + 'static {
    /// Whether anybody is kept apart.
    const REAL: bool;

    /// What a transaction holds.
    type Held: Default + Send;

    /// Waits for a lock. [`crate::Error::Deadlock`] where others wait for this transaction, directly or not, and
    /// [`crate::Error::LockTimeout`] where it takes longer than it may. No latch of a page is held by the caller.
    fn lock(
        &self,
        tx: TxId,
        held: &mut Self::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> Result<()>;

    /// Takes the lock if nobody has to be waited for: asked under a page's latch, which must be given back before waiting.
    fn try_lock(
        &self,
        tx: TxId,
        held: &mut Self::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> bool;

    /// Gives back all that a transaction holds.
    fn release(&self, tx: TxId, held: &mut Self::Held);
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lockable {
    /// A table.
    Table(TableId),
    /// A record, and the gap before it in each index that has it.
    Record(Rid),
    /// The gap after the last key of an index.
    End(IndexId),
}

/// For what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// Records below are going to be locked shared.
    IntentShared,
    /// Records below are going to be locked exclusively.
    IntentExclusive,
    /// All is read.
    Shared,
    /// All is read and some of it changed.
    SharedIntentExclusive,
    /// It is changed.
    Exclusive,
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As soon as it is had, it is given back: that it could be had is what was asked.
    Had,
    /// The end of the transaction.
    End,
}
