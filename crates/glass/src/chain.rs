//! In whose name something is changed.

use crate::log::{Change, Undo};
use crate::{Lsn, Result, TxId};

/// A transaction's records, each of which knows the one before. Going forwards it keeps how each change is undone;
/// going back it says of each change what is to be undone after it.
pub trait Chain {
    /// The transaction.
    fn id(&self) -> TxId;

    /// Writes a change down, before it is made; what it gives is the number its page gets. [`Lsn::NONE`] where there is
    /// no log.
    fn change(&mut self, change: Change<'_>, undo: Undo<'_>) -> Result<Lsn>;

    /// Writes a change down that stays whatever becomes of the transaction.
    fn structure(&mut self, change: Change<'_>) -> Result<Lsn>;
}
