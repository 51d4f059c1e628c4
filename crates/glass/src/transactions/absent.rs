//! No transactions: every change is there to stay.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use super::Transactions;
use crate::latch::Latch;
use crate::log::Undo;
use crate::{Lsn, TxId};

/// Knows nobody, and takes no memory.
#[derive(Debug, Default)]
pub struct NoTransactions;

impl<L: Latch> Transactions<L> for NoTransactions {
    const REAL: bool = false;

    type Tx = ();

    #[inline(always)]
    fn begin(&self) {}

    #[inline(always)]
    fn ended(&self, (): &mut ()) {}

    #[inline(always)]
    fn oldest(&self) -> TxId {
        TxId(u64::MAX)
    }

    #[inline(always)]
    fn continue_after(&self, _: TxId) {}

    #[inline(always)]
    fn id((): &()) -> TxId {
        TxId(0)
    }

    #[inline(always)]
    fn last((): &()) -> Lsn {
        Lsn::NONE
    }

    #[inline(always)]
    fn logged((): &mut (), _: Lsn) {}

    #[inline(always)]
    fn remember((): &mut (), _: Lsn, _: Undo<'_>) {}

    #[inline(always)]
    fn undo_next<R>((): &mut (), _: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R> {
        None
    }
}
