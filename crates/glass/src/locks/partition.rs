//! A partition of the lock table: who holds what of the things that fall into it, and who waits for them.
//!
//! Invariants, whenever nobody has the partition's latch:
//! - What two transactions hold of one thing is compatible, and a transaction has one grant of a thing at most.
//! - A transaction waits for one thing at most. One that waits has a blocker (see [`Partition::blockers`]), and one that
//!   has none does not wait: whoever takes a blocker away grants what can be granted then.
//! - Those that wait for one thing stand in the order in which they came. Conversions, which hold the thing already, go
//!   before all others, and wait for holders alone; all others wait for those before them too, so that a stream of
//!   readers does not keep a writer out.

use std::thread::Thread;

use super::{Lockable, Mode, Statistics, Until};
use crate::TxId;
use crate::catalogue::MOST;

/// No grant.
const NONE: u32 = u32::MAX;

/// Of a partition, at first.
const BUCKETS: usize = 64;

/// Where a thing is in the lock table: its hash, whose first bits say which partition. It is another for every other thing, so
/// it stands for the thing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    /// Bits for the partition.
    pub(super) const PARTITION_BITS: u32 = 5;

    /// Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4): the first bits are the good ones.
    #[inline]
    pub(super) const fn of(what: Lockable) -> Self {
        // Not two that would be one.
        const { assert!(MOST <= 1 << 15) };
        let number = match what {
            Lockable::Record(rid) => rid.bits(),
            // There are no records in page 0.
            Lockable::Table(table) => table.0 as u64,
            Lockable::End(index) => index.0 as u64 | 1 << 15,
        };
        // Nor do these steps make one of two: each can be undone.
        // Where a page's number is its address, the low half of a record's is mostly zeros.
        Self((number ^ number >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    #[inline]
    pub(super) const fn partition(self) -> usize {
        (self.0 >> (u64::BITS - Self::PARTITION_BITS)) as usize
    }

    /// In a table of `buckets`, a power of two.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than `buckets`")]
    const fn bucket(self, buckets: usize) -> usize {
        (self.0 << Self::PARTITION_BITS >> (u64::BITS - buckets.trailing_zeros())) as usize
    }
}

/// What is held: by whom, and for what. Grants of a bucket are chained.
struct Grant {
    place: Place,
    tx: TxId,
    next: u32,
    mode: Mode,
}

/// Who waits, and for what.
pub(super) struct Waiter {
    pub(super) tx: TxId,
    pub(super) place: Place,
    /// What it is to hold then, where it holds something now together with that.
    pub(super) mode: Mode,
    /// Whether it holds something now.
    pub(super) conversion: bool,
    until: Until,
    thread: Thread,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is a grant that was not there before, to be given back later.
    New,
    /// Granted; there is nothing more to be given back than before.
    Had,
    /// Others have to end first.
    Refused,
}

/// A partition.
pub(super) struct Partition {
    /// The first grant of each.
    buckets: Vec<u32>,
    grants: Vec<Grant>,
    /// The first of those that are not used.
    free: u32,
    used: usize,
    waiters: Vec<Waiter>,
    pub(super) statistics: Statistics,
}

impl Default for Partition {
    fn default() -> Self {
        Self {
            buckets: vec![NONE; BUCKETS],
            grants: Vec::with_capacity(BUCKETS),
            free: NONE,
            used: 0,
            waiters: Vec::new(),
            statistics: Statistics::default(),
        }
    }
}

impl Partition {
    /// Grants what can be granted now.
    #[inline]
    pub(super) fn attempt(&mut self, place: Place, tx: TxId, mode: Mode, until: Until) -> Answer {
        let (mine, others) = self.holders(place, tx);
        let answer = if let Some(mine) = mine {
            let grant = &mut self.grants[mine as usize];
            let both = grant.mode.supremum(mode);
            if both != grant.mode && both.conflicts() & others != 0 {
                return Answer::Refused;
            }
            if until == Until::End {
                grant.mode = both;
            }
            Answer::Had
        } else if mode.conflicts() & others != 0
            || self.waiters.iter().any(|waiter| waiter.place == place)
        {
            return Answer::Refused;
        } else if until == Until::End {
            self.put(place, tx, mode);
            Answer::New
        } else {
            Answer::Had
        };
        self.statistics.had += 1;
        answer
    }

    /// Makes a transaction wait whose attempt was refused. `true` where it holds something of that already.
    pub(super) fn wait(
        &mut self,
        place: Place,
        tx: TxId,
        mode: Mode,
        until: Until,
        thread: Thread,
    ) -> bool {
        let (mine, _) = self.holders(place, tx);
        let held = mine.map(|mine| self.grants[mine as usize].mode);
        self.waiters.push(Waiter {
            tx,
            place,
            mode: held.map_or(mode, |held| held.supremum(mode)),
            conversion: held.is_some(),
            until,
            thread,
        });
        self.statistics.waits += 1;
        held.is_some()
    }

    /// Whether it waits, and if so, which of those who do it is.
    pub(super) fn waiting(&self, tx: TxId) -> Option<usize> {
        self.waiters.iter().position(|waiter| waiter.tx == tx)
    }

    /// It waits no longer. Whoever waits behind it is not granted anything yet.
    pub(super) fn give_up(&mut self, tx: TxId) {
        self.waiters.retain(|waiter| waiter.tx != tx);
    }

    /// Tells whom one that waits cannot go on before: holders of what is not compatible, whom only their end (or that
    /// they do not exist) takes away, and unless it converts, those who go before it. Of these the last is enough,
    /// since it waits for the others itself.
    pub(super) fn blockers(&self, waiter: usize, mut tell: impl FnMut(TxId)) {
        let Waiter {
            tx,
            place,
            mode,
            conversion,
            ..
        } = self.waiters[waiter];
        for grant in self.grants_of(place) {
            if grant.tx != tx && !mode.compatible(grant.mode) {
                tell(grant.tx);
            }
        }
        if !conversion {
            let same = |other: &&Waiter| other.place == place;
            let before = self.waiters[..waiter]
                .iter()
                .rev()
                .filter(same)
                .find(|other| !other.conversion);
            let conversions = self
                .waiters
                .iter()
                .filter(same)
                .filter(|other| other.conversion);
            conversions.chain(before).for_each(|other| tell(other.tx));
        }
    }

    /// Takes back what a transaction holds of that; it holds something.
    #[inline]
    pub(super) fn take_back(&mut self, place: Place, tx: TxId) {
        let bucket = place.bucket(self.buckets.len());
        let mut before = NONE;
        let mut at = self.buckets[bucket];
        while at != NONE {
            let Grant {
                place: held,
                tx: holder,
                next,
                ..
            } = self.grants[at as usize];
            if holder == tx && held == place {
                if before == NONE {
                    self.buckets[bucket] = next;
                } else {
                    self.grants[before as usize].next = next;
                }
                self.grants[at as usize].next = self.free;
                self.free = at;
                self.used -= 1;
                return;
            }
            before = at;
            at = next;
        }
        debug_assert!(false, "{tx:?} does not hold {place:?}");
    }

    /// Grants what those can have now who wait for that, and gives the threads to be woken.
    #[inline]
    pub(super) fn grant_waiters(&mut self, place: Place, woken: &mut Vec<Thread>) {
        if !self.waiters.is_empty() {
            self.grant_some(place, woken);
        }
    }

    #[cold]
    fn grant_some(&mut self, place: Place, woken: &mut Vec<Thread>) {
        let mut at = 0;
        let mut conversions = false;
        while at < self.waiters.len() {
            let waiter = &self.waiters[at];
            if waiter.place == place && waiter.conversion {
                if self.grant_waiter(at, woken) {
                    continue;
                }
                conversions = true;
            }
            at += 1;
        }
        if conversions {
            return;
        }
        while let Some(first) = self.waiters.iter().position(|waiter| waiter.place == place) {
            if !self.grant_waiter(first, woken) {
                return;
            }
        }
    }

    /// Grants one that waits what it waits for, unless others hold what is not compatible.
    fn grant_waiter(&mut self, waiter: usize, woken: &mut Vec<Thread>) -> bool {
        let Waiter {
            tx,
            place,
            mode,
            until,
            ..
        } = self.waiters[waiter];
        let (mine, others) = self.holders(place, tx);
        if mode.conflicts() & others != 0 {
            return false;
        }
        match mine {
            _ if until == Until::Had => {}
            Some(mine) => self.grants[mine as usize].mode = mode,
            None => self.put(place, tx, mode),
        }
        self.statistics.had += 1;
        woken.push(self.waiters.remove(waiter).thread);
        true
    }

    /// A transaction's own grant of that, and the bits of the modes that others hold.
    #[inline]
    fn holders(&self, place: Place, tx: TxId) -> (Option<u32>, u8) {
        let mut mine = None;
        let mut others = 0;
        let mut at = self.buckets[place.bucket(self.buckets.len())];
        while at != NONE {
            let grant = &self.grants[at as usize];
            if grant.place == place {
                if grant.tx == tx {
                    mine = Some(at);
                } else {
                    others |= grant.mode.bit();
                }
            }
            at = grant.next;
        }
        (mine, others)
    }

    /// All grants of that.
    fn grants_of(&self, place: Place) -> impl Iterator<Item = &Grant> {
        let first = self.buckets[place.bucket(self.buckets.len())];
        let grant = |at: u32| self.grants.get(at as usize);
        std::iter::successors(grant(first), move |before| grant(before.next))
            .filter(move |grant| grant.place == place)
    }

    /// A new grant.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "so many do not fit into memory"
    )]
    fn put(&mut self, place: Place, tx: TxId, mode: Mode) {
        if self.used == self.buckets.len() {
            self.grow();
        }
        let bucket = place.bucket(self.buckets.len());
        let grant = Grant {
            place,
            tx,
            next: self.buckets[bucket],
            mode,
        };
        let at = self.free;
        if let Some(unused) = self.grants.get_mut(at as usize) {
            self.free = unused.next;
            *unused = grant;
            self.buckets[bucket] = at;
        } else {
            self.buckets[bucket] = self.grants.len() as u32;
            self.grants.push(grant);
        }
        self.used += 1;
    }

    /// Twice as many buckets.
    #[cold]
    fn grow(&mut self) {
        let double = self.buckets.len() * 2;
        for mut at in std::mem::replace(&mut self.buckets, vec![NONE; double]) {
            while at != NONE {
                let grant = &mut self.grants[at as usize];
                let first = &mut self.buckets[grant.place.bucket(double)];
                let next = std::mem::replace(&mut grant.next, *first);
                *first = at;
                at = next;
            }
        }
    }
}

#[cfg(test)]
impl Place {
    /// All of it.
    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
impl Partition {
    /// Who holds what of a thing.
    pub(super) fn held(&self, what: Lockable) -> Vec<(TxId, Mode)> {
        self.grants_of(Place::of(what))
            .map(|grant| (grant.tx, grant.mode))
            .collect()
    }

    /// Grants, and places for grants.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.used, self.grants.len())
    }

    pub(super) fn waiters(&self) -> &[Waiter] {
        &self.waiters
    }
}
