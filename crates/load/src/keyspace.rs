//! Which keys exist by now: what the clients of a driver share.
//!
//! The keys that a driver knows have places from 0 on: the loaded ones first, then those it inserted
//! itself, in the order in which it handed them out. Reads may choose only from the acknowledged window
//! `[0, limit)` of places, in which every insert is known to have ended well; an insert that is still
//! under way, or failed, holds the limit at its place.
//!
//! A key's number is its place where one driver is alone. Of several, each inserts numbers that no
//! other does; what the others insert it does not choose, since it cannot know when it is there.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// No insert of this client is under way.
const NONE: u64 = u64::MAX;

/// A driver among those that share one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its number, from 0 and below `of`.
    pub number: u64,
    /// How many there are, at least 1.
    pub of: u64,
}

impl Driver {
    /// The only one.
    pub const ALONE: Self = Self { number: 0, of: 1 };
}

/// The keys of a data set that grows while it is used.
#[derive(Debug)]
pub struct KeySpace {
    records: u64,
    driver: Driver,
    next: AtomicU64,
    limit: AtomicU64,
    /// Where [`Self::step`] has got to.
    cursor: AtomicU64,
    /// For each client a place at or below that of its insert under way, else [`NONE`].
    pending: Vec<AtomicU64>,
}

impl KeySpace {
    /// A data set of `records` loaded rows, and the clients of one driver.
    #[must_use]
    pub fn new(records: u64, clients: usize, driver: Driver) -> Self {
        Self {
            records,
            driver,
            next: AtomicU64::new(records),
            limit: AtomicU64::new(records),
            // Drivers that start together should not follow each other.
            cursor: AtomicU64::new(records / driver.of * driver.number),
            pending: (0..clients).map(|_| AtomicU64::new(NONE)).collect(),
        }
    }

    /// Every place below this holds a key that exists.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(SeqCst)
    }

    /// The number of the key at a place.
    #[inline]
    #[must_use]
    pub const fn number(&self, place: u64) -> u64 {
        if place < self.records {
            return place;
        }
        self.records + (place - self.records) * self.driver.of + self.driver.number
    }

    /// The place after that of the last step, whoever made it, and the first one after the last that
    /// exists.
    #[inline]
    pub(crate) fn step(&self) -> u64 {
        let limit = self.limit();
        let wrap = |place: u64| if place < limit { place } else { 0 };
        let mut place = self.cursor.load(SeqCst);
        while let Err(moved) =
            self.cursor
                .compare_exchange_weak(place, wrap(place) + 1, SeqCst, SeqCst)
        {
            place = moved;
        }
        wrap(place)
    }

    /// The place from which one client inserts; each client has one of its own.
    #[must_use]
    pub fn slot(&self, client: usize) -> InsertSlot<'_> {
        InsertSlot {
            space: self,
            pending: &self.pending[client],
            place: None,
        }
    }

    fn advance(&self) {
        // `next` is read before the pending numbers. A place below it that is still pending was
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
    place: Option<u64>,
}

impl InsertSlot<'_> {
    /// The number of the key to insert next: a new one, or that of the insert before if it was not
    /// acknowledged.
    pub fn take(&mut self) -> u64 {
        let place = *self.place.get_or_insert_with(|| {
            self.pending.store(self.space.next.load(SeqCst), SeqCst);
            let place = self.space.next.fetch_add(1, SeqCst);
            self.pending.store(place, SeqCst);
            place
        });
        self.space.number(place)
    }

    /// The key taken last exists from now on.
    pub fn acknowledge(&mut self) {
        if self.place.take().is_some() {
            self.pending.store(NONE, SeqCst);
            self.space.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_late_insert_holds_the_window_until_it_is_acknowledged() {
        let space = KeySpace::new(10, 2, Driver::ALONE);
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
        let space = KeySpace::new(5, 1, Driver::ALONE);
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
        let space = KeySpace::new(0, 3, Driver::ALONE);
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

    #[test]
    fn steps_of_all_clients_together_take_each_key_once_a_round_also_those_that_appear() {
        let space = KeySpace::new(4, 1, Driver::ALONE);
        let mut slot = space.slot(0);
        let steps = |count| (0..count).map(|_| space.step()).collect::<Vec<_>>();
        assert_eq!(steps(6), [0, 1, 2, 3, 0, 1]);
        slot.take();
        slot.acknowledge();
        assert_eq!(steps(5), [2, 3, 4, 0, 1]);

        let space = KeySpace::new(1000, 0, Driver::ALONE);
        let taken = std::thread::scope(|scope| {
            let step = || (0..2500).map(|_| space.step()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(step)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        for key in 0..1000 {
            assert_eq!(taken.iter().filter(|&&taken| taken == key).count(), 5);
        }
    }

    proptest! {
        #[test]
        fn inserts_of_several_drivers_never_meet_and_each_chooses_among_its_own(
            records in 0u64..1000, inserts in prop::collection::vec(0usize..20, 1..8),
        ) {
            let of = inserts.len() as u64;
            let mut all = BTreeSet::new();
            for (number, &count) in (0..).zip(&inserts) {
                let space = KeySpace::new(records, 1, Driver { number, of });
                let mut slot = space.slot(0);
                let mut own = BTreeSet::new();
                for _ in 0..count {
                    let taken = slot.take();
                    prop_assert!(taken >= records);
                    prop_assert!(all.insert(taken), "{} was inserted twice", taken);
                    own.insert(taken);
                    slot.acknowledge();
                }
                own.extend(0..records);
                let known: BTreeSet<u64> = (0..space.limit()).map(|place| space.number(place)).collect();
                prop_assert_eq!(known, own);
                prop_assert_eq!(space.limit(), records + count as u64);
            }
            // Where all insert as many, no number is left out.
            if inserts.iter().all(|count| count == &inserts[0]) {
                let end = records + all.len() as u64;
                prop_assert_eq!(all, (records..end).collect::<BTreeSet<_>>());
            }
        }
    }
}
