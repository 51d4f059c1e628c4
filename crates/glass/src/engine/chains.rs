//! How a transaction's changes are written down, forwards and back.

use crate::assembly::Assembly;
use crate::chain::Chain;
use crate::log::{Change, Log, Record, Undo};
use crate::transactions::Transactions;
use crate::{Lsn, Result, TxId};

pub(super) type Tx<A> = <<A as Assembly>::Transactions as Transactions<<A as Assembly>::Latch>>::Tx;

/// A transaction does something, and keeps how to undo it.
pub(super) struct Forwards<'a, A: Assembly> {
    pub log: &'a A::Log,
    pub tx: &'a mut Tx<A>,
}

impl<A: Assembly> Forwards<'_, A> {
    #[inline]
    fn append(&mut self, record: &Record<'_>) -> Result<Lsn> {
        let last = A::Transactions::last(self.tx);
        let lsn = self.log.append(self.id(), last, record)?;
        A::Transactions::logged(self.tx, lsn);
        Ok(lsn)
    }
}

impl<A: Assembly> Chain for Forwards<'_, A> {
    #[inline]
    fn id(&self) -> TxId {
        A::Transactions::id(self.tx)
    }

    #[inline]
    fn change(&mut self, change: Change<'_>, undo: Undo<'_>) -> Result<Lsn> {
        let last = A::Transactions::last(self.tx);
        let lsn = self.append(&Record::Change(change, undo))?;
        A::Transactions::remember(self.tx, last, undo);
        Ok(lsn)
    }

    #[inline]
    fn structure(&mut self, change: Change<'_>) -> Result<Lsn> {
        self.append(&Record::Structure(change))
    }
}

/// Something a transaction did is undone.
pub(super) struct Back<'a, A: Assembly> {
    pub log: &'a A::Log,
    pub tx: TxId,
    /// Its last record in the log.
    pub last: Lsn,
    /// The record to be undone afterwards.
    pub next: Lsn,
}

impl<A: Assembly> Chain for Back<'_, A> {
    fn id(&self) -> TxId {
        self.tx
    }

    fn change(&mut self, change: Change<'_>, _: Undo<'_>) -> Result<Lsn> {
        self.last =
            self.log
                .append(self.tx, self.last, &Record::Compensation(change, self.next))?;
        Ok(self.last)
    }

    fn structure(&mut self, change: Change<'_>) -> Result<Lsn> {
        self.last = self
            .log
            .append(self.tx, self.last, &Record::Structure(change))?;
        Ok(self.last)
    }
}
