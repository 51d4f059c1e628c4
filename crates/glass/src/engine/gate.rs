//! Locks as indexes ask for them.

use crate::assembly::Assembly;
use crate::btree::{At, Gate};
use crate::locks::{Lockable, Locks, Mode, Until};
use crate::{Result, TxId};

pub(super) type Held<A> = <<A as Assembly>::Locks as Locks<<A as Assembly>::Latch>>::Held;

/// What a transaction has to lock at a place of an index, for what it is going to do there.
pub(super) struct Locking<'a, A: Assembly> {
    pub locks: &'a A::Locks,
    pub tx: TxId,
    pub held: &'a mut Held<A>,
    /// The entry that is there.
    pub entry: (Mode, Until),
    /// The entry next to the gap.
    pub next: (Mode, Until),
}

impl<A: Assembly> Locking<'_, A> {
    const fn wanted(&self, at: At) -> (Mode, Until) {
        match at {
            At::Entry => self.entry,
            At::Next => self.next,
        }
    }
}

impl<A: Assembly> Gate for Locking<'_, A> {
    const REAL: bool = A::Locks::REAL;

    #[inline]
    fn try_pass(&mut self, what: Lockable, at: At) -> bool {
        let (mode, until) = self.wanted(at);
        self.locks.try_lock(self.tx, self.held, what, mode, until)
    }

    fn wait(&mut self, what: Lockable, at: At) -> Result<()> {
        let (mode, until) = self.wanted(at);
        self.locks.lock(self.tx, self.held, what, mode, until)
    }
}
