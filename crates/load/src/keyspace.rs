//! Which keys exist by now: what the clients of a run share.
//!
//! Keys are numbered from 0 in the order in which they were handed out. Reads may choose only from
//! the acknowledged window `[0, limit)`, in which every insert is known to have ended well; an
//! insert that is still under way, or failed, holds the limit at its number.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// No insert of this client is under way.
const NONE: u64 = u64::MAX;

/// The keys of a data set that grows while it is used.
#[derive(Debug)]
pub struct KeySpace {
    next: AtomicU64,
    limit: AtomicU64,
    /// For each client a number at or below that of its insert under way, else [`NONE`].
    pending: Vec<AtomicU64>,
}

impl KeySpace {
    /// A data set of `records` loaded rows, and that many clients.
    #[must_use]
    pub fn new(records: u64, clients: usize) -> Self {
        Self {
            next: AtomicU64::new(records),
            limit: AtomicU64::new(records),
            pending: (0..clients).map(|_| AtomicU64::new(NONE)).collect(),
        }
    }

    /// Every key with a number below this exists.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(SeqCst)
    }

    /// The place from which one client inserts; each client has one of its own.
    #[must_use]
    pub fn slot(&self, client: usize) -> InsertSlot<'_> {
        InsertSlot {
            space: self,
            pending: &self.pending[client],
            number: None,
        }
    }

    fn advance(&self) {
        // `next` is read before the pending numbers. A number below it that is still pending was
        // published (as a lower bound) before it was taken, so the minimum cannot pass it.
        let mut limit = self.next.load(SeqCst);
        for pending in &self.pending {
            limit = limit.min(pending.load(SeqCst));
        }
        self.limit.fetch_max(limit, SeqCst);
    }
}

/// One client's inserts, one at a time.
#[derive(Debug)]
pub struct InsertSlot<'a> {
    space: &'a KeySpace,
    pending: &'a AtomicU64,
    number: Option<u64>,
}

impl InsertSlot<'_> {
    /// The number of the key to insert next: a new one, or that of the insert before if it was not
    /// acknowledged.
    pub fn take(&mut self) -> u64 {
        *self.number.get_or_insert_with(|| {
            self.pending.store(self.space.next.load(SeqCst), SeqCst);
            let number = self.space.next.fetch_add(1, SeqCst);
            self.pending.store(number, SeqCst);
            number
        })
    }

    /// The key taken last exists from now on.
    pub fn acknowledge(&mut self) {
        if self.number.take().is_some() {
            self.pending.store(NONE, SeqCst);
            self.space.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_late_insert_holds_the_window_until_it_is_acknowledged() {
        let space = KeySpace::new(10, 2);
        let (mut slow, mut fast) = (space.slot(0), space.slot(1));
        assert_eq!(slow.take(), 10);
        for expected in 11..20 {
            assert_eq!(fast.take(), expected);
            fast.acknowledge();
            assert_eq!(space.limit(), 10);
        }
        slow.acknowledge();
        assert_eq!(space.limit(), 20);
    }

    #[test]
    fn an_insert_that_failed_is_tried_again_with_its_number() {
        let space = KeySpace::new(5, 1);
        let mut slot = space.slot(0);
        assert_eq!(slot.take(), 5);
        assert_eq!(slot.take(), 5);
        slot.acknowledge();
        assert_eq!(slot.take(), 6);
        assert_eq!(space.limit(), 6);
    }

    /// Each inserter marks its key before it acknowledges it; no reader may see a key unmarked.
    #[test]
    fn readers_never_see_a_key_that_is_not_there_yet() {
        const EACH: usize = 20_000;
        let space = KeySpace::new(0, 3);
        let there: Vec<AtomicBool> = (0..3 * EACH).map(|_| AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for client in 0..3 {
                let (space, there) = (&space, &there);
                scope.spawn(move || {
                    let mut slot = space.slot(client);
                    for _ in 0..EACH {
                        let number = usize::try_from(slot.take()).unwrap();
                        there[number].store(true, SeqCst);
                        slot.acknowledge();
                        let limit = usize::try_from(space.limit()).unwrap();
                        assert!(
                            there[..limit]
                                .iter()
                                .rev()
                                .take(8)
                                .all(|key| key.load(SeqCst))
                        );
                    }
                });
            }
        });
        assert_eq!(space.limit(), 3 * EACH as u64);
    }
}
