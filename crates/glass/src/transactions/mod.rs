//! Transactions: what is done whole or not at all.
//!
//! Each keeps how to undo what it did, in memory, newest last; the log has the same for who comes after a crash. So
//! assemblies without a log roll back too. Without this component there is no rolling back, and whoever calls must know
//! before the first change that all will go well.

use crate::log::Undo;
use crate::{Lsn, TxId};

/// Who is under way.
pub trait Transactions: Sized + Send + Sync + Default + 'static {
    /// Whether a transaction is anything at all.
    const REAL: bool;

    /// A transaction under way.
    type Tx: Send;

    /// A new one.
    fn begin(&self) -> Self::Tx;

    /// It has ended, well or not, and holds nothing any more.
    fn ended(&self, tx: &mut Self::Tx);

    /// What it is called.
    fn id(tx: &Self::Tx) -> TxId;

    /// Where its last record in the log is.
    fn last(tx: &Self::Tx) -> Lsn;

    /// Its last record in the log is at `lsn` now.
    fn logged(tx: &mut Self::Tx, lsn: Lsn);

    /// Keeps how its next change is undone.
    fn remember(tx: &mut Self::Tx, lsn: Lsn, undo: Undo<'_>);

    /// Takes out what is to be undone next, and where its record is; `None` when nothing is left.
    fn undo_next<R>(tx: &mut Self::Tx, with: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R>;
}
