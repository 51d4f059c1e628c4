//! The transactions that have records in the log and have not ended: what a checkpoint writes down, and how far back
//! the log is needed to undo.
//!
//! The log keeps them itself, under the latch of its buffer, so that the list is exactly that of a place in the log. Were it
//! taken from elsewhere, a transaction whose commit is in the log before the checkpoint and which is still in the list
//! would be undone after a crash.
//!
//! Ids are given in order, so `id mod slots` puts those under way next to each other and hardly ever two into one slot:
//! open addressing with linear probing, at most half full, and deletion that moves back what follows (Knuth, The Art of Computer
//! Programming 3, 6.4, algorithm R).

use super::record::Listed;
use crate::{Lsn, TxId};

/// A transaction under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Active {
    /// Which; 0 in an empty slot.
    pub tx: TxId,
    /// Where its first record begins.
    pub first: Lsn,
    /// Where its last record ends.
    pub last: Lsn,
}

impl Active {
    /// As a checkpoint lists it.
    pub const fn listed(&self) -> Listed {
        [self.tx.0, self.first.0, self.last.0]
    }

    /// As it was listed.
    pub const fn from_listed([tx, first, last]: Listed) -> Self {
        Self {
            tx: TxId(tx),
            first: Lsn(first),
            last: Lsn(last),
        }
    }
}

/// All of them.
pub(super) struct Actives {
    slots: Box<[Active]>,
    count: usize,
}

const EMPTY: TxId = TxId(0);

impl Actives {
    pub fn new() -> Self {
        Self::with_slots(64)
    }

    /// `slots` is a power of two.
    fn with_slots(slots: usize) -> Self {
        Self {
            slots: vec![Active::default(); slots].into(),
            count: 0,
        }
    }

    /// A record of `tx`, which is not 0, has been written from `start` to `end`.
    #[inline]
    pub fn logged(&mut self, tx: TxId, start: Lsn, end: Lsn) {
        let at = self.slot(tx);
        let slot = &mut self.slots[at];
        if slot.tx == tx {
            slot.last = end;
        } else {
            *slot = Active {
                tx,
                first: start,
                last: end,
            };
            self.count += 1;
            if self.count * 2 > self.slots.len() {
                self.grow();
            }
        }
    }

    /// It has ended.
    #[inline]
    pub fn ended(&mut self, tx: TxId) {
        let mut hole = self.slot(tx);
        if self.slots[hole].tx != tx {
            return;
        }
        self.count -= 1;
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.slots[at];
            if next.tx == EMPTY {
                break;
            }
            // It may move back only as far as where its search begins.
            let home = self.home(next.tx);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = next;
                hole = at;
            }
        }
        self.slots[hole] = Active::default();
    }

    /// Where the last record of `tx` ends, if it has any.
    pub fn last(&self, tx: TxId) -> Lsn {
        self.slots[self.slot(tx)].last
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Active> {
        self.slots.iter().filter(|slot| slot.tx != EMPTY)
    }

    fn home(&self, tx: TxId) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "its lowest bits are what counts"
        )]
        let low = tx.0 as usize;
        low & (self.slots.len() - 1)
    }

    /// The slot that holds it, or else the empty one where it would be.
    #[inline]
    fn slot(&self, tx: TxId) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(tx);
        while self.slots[at].tx != tx && self.slots[at].tx != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let mut larger = Self::with_slots(self.slots.len() * 2);
        for active in self.iter() {
            let at = larger.slot(active.tx);
            larger.slots[at] = *active;
        }
        larger.count = self.count;
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_agrees_with_a_map(steps in prop::collection::vec((1u64..200, any::<bool>()), 0..600)) {
            let mut table = Actives::with_slots(4);
            let mut map = BTreeMap::new();
            for (at, (tx, ends)) in steps.into_iter().enumerate() {
                // Multiples of 64 collide while the table is small.
                let tx = TxId(if tx % 3 == 0 { tx * 64 } else { tx });
                if ends {
                    table.ended(tx);
                    map.remove(&tx);
                } else {
                    let (start, end) = (Lsn(at as u64 * 10), Lsn(at as u64 * 10 + 9));
                    table.logged(tx, start, end);
                    map.entry(tx).or_insert(Active { tx, first: start, last: end }).last = end;
                }
                prop_assert_eq!(table.last(tx), map.get(&tx).map_or(Lsn::NONE, |active| active.last));
            }
            let mut all: Vec<_> = table.iter().copied().collect();
            all.sort_by_key(|active| active.tx);
            prop_assert_eq!(all, map.into_values().collect::<Vec<_>>());
        }
    }
}
