//! What the rest of the engine knows of transactions.

use crate::latch::Latch;
use crate::log::Undo;
use crate::{Lsn, TxId};

/// Who is under way, among threads that such latches keep apart.
pub trait Transactions<L: Latch>: Sized + Send + Sync + Default + 'static {
    /// Whether a transaction is anything at all.
    const REAL: bool;

    /// A transaction under way.
    type Tx: Send;

    /// A new one.
    fn begin(&self) -> Self::Tx;

    /// It has ended, well or not, and holds nothing any more: said after its locks are given back, since it is what lets
    /// others take the space of what it deleted.
    fn ended(&self, tx: &mut Self::Tx);

    /// All that began before this one have ended: what they deleted can be reclaimed. It may be said of an older one than
    /// could be. May be asked under any latch.
    fn oldest(&self) -> TxId;

    /// Those that begin from now on are called by larger numbers than this one: said after a restart, before the first
    /// begins, with the largest that is in the log.
    fn continue_after(&self, tx: TxId);

    /// What it is called. Never 0 where there are transactions, and always where there are none.
    fn id(tx: &Self::Tx) -> TxId;

    /// Where its last record in the log is.
    fn last(tx: &Self::Tx) -> Lsn;

    /// Its last record in the log is at `lsn` now.
    fn logged(tx: &mut Self::Tx, lsn: Lsn);

    /// Keeps how a change is undone. `lsn` is given back with it: where the transaction's last record before that change
    /// is, [`Self::last`] before the change is logged, since that is what a compensation says is to be undone after it.
    fn remember(tx: &mut Self::Tx, lsn: Lsn, undo: Undo<'_>);

    /// Takes out what is to be undone next, with what was kept with it; `None` when nothing is left.
    fn undo_next<R>(tx: &mut Self::Tx, with: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R>;
}
