//! The lock table, and how one waits for a lock.
//!
//! Whoever has to wait takes the latches of *all* partitions, from the first to the last, before it stands in the queue; so
//! it, and nobody else at that moment, sees and changes the whole graph of who waits for whom. Taking them costs less
//! than putting a thread to sleep does, and it makes the finding of deadlocks exact:
//!
//! *Every deadlock is found.* Claim: whenever somebody else than one who begins to wait has the latches, the graph of
//! those who wait, with an edge to each blocker ([`Partition::blockers`]), has no cycle. It has none at first. What may
//! add an edge is: (1) a transaction begins to wait, which adds edges that begin at it, and where it converts, edges that
//! end at it, from those who go behind it now; (2) a transaction that does not wait holds more than before, which adds
//! edges that end at it, and none begins there, so they are in no cycle; (3) one that waited is granted what it
//! waited for, and then is as in (2); (4) one that waited gives up, and who stood behind it has an edge to who stood
//! before it, but there was a path already. So a cycle can appear in (1) alone, and leads through the transaction that
//! begins to wait; it looks for one while it has all latches, and gives way where there is one. All its edges go with
//! its waiting, so however many cycles there were, there is none afterwards.
//!
//! *Nothing else is taken for one.* The graph is seen at one moment. Each edge says that one cannot go on before the other
//! has ended, was granted its own request (but that one waits too, being in the cycle), or gave up. So none in a cycle
//! goes on before one in it gives up: it is a deadlock. That one of them could give up because its patience ends soon
//! is not waited for.

use std::array;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::partition::{Answer, Partition, Place};
use super::{Lockable, Locks, Mode, PATIENCE, Statistics, Until};
use crate::latch::{Exclusive, Guarded, Latch};
use crate::{Error, Result, TxId};

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

const PARTITIONS: usize = 1 << Place::PARTITION_BITS;

/// Granular two-phase locks.
///
/// A partition's latch is taken last of all, under those of pages, and nothing is waited for under it, but for the
/// latches of the partitions after it where one begins to wait for a lock.
pub struct Granular<L> {
    partitions: [Padded<Guarded<L, Partition>>; PARTITIONS],
    patience: Duration,
}

/// Does not share a line of the cache with another.
#[derive(Default)]
#[repr(align(64))]
struct Padded<T>(T);

/// What a transaction holds.
#[derive(Debug, Default)]
pub struct Held {
    locks: Vec<Place>,
    /// To be woken when no latch is held any more; kept for its memory.
    woken: Vec<Thread>,
}

impl Held {
    /// How many locks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.locks.len()
    }

    fn wake(&mut self) {
        self.woken.drain(..).for_each(|thread| thread.unpark());
    }
}

impl<L: Latch> Default for Granular<L> {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl<L: Latch> Locks<L> for Granular<L> {
    const REAL: bool = true;

    type Held = Held;

    fn new(patience: Duration) -> Self {
        Self {
            partitions: array::from_fn(|_| Padded(Guarded::new(Partition::default()))),
            patience,
        }
    }

    #[inline]
    fn lock(
        &self,
        tx: TxId,
        held: &mut Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> Result<()> {
        if self.try_lock(tx, held, what, mode, until) {
            return Ok(());
        }
        self.wait(tx, held, what, mode, until)
    }

    #[inline]
    fn try_lock(
        &self,
        tx: TxId,
        held: &mut Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> bool {
        let place = Place::of(what);
        let answer = self.partition(place).attempt(place, tx, mode, until);
        if answer == Answer::New {
            held.locks.push(place);
        }
        answer != Answer::Refused
    }

    fn release(&self, tx: TxId, held: &mut Held) {
        for place in held.locks.drain(..) {
            let mut partition = self.partition(place);
            partition.take_back(place, tx);
            partition.grant_waiters(place, &mut held.woken);
        }
        held.wake();
    }

    fn statistics(&self) -> Statistics {
        self.partitions
            .iter()
            .fold(Statistics::default(), |sum, partition| {
                let one = partition.0.shared().statistics;
                Statistics {
                    had: sum.had + one.had,
                    waits: sum.waits + one.waits,
                    deadlocks: sum.deadlocks + one.deadlocks,
                    timeouts: sum.timeouts + one.timeouts,
                }
            })
    }
}

/// How a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// There was nothing to wait for any more.
    Had,
    /// It stands in the queue. When it is granted, there is a lock more to be given back, or not.
    Waits { new: bool },
}

impl<L: Latch> Granular<L> {
    #[inline]
    fn partition(&self, place: Place) -> Exclusive<'_, L, Partition> {
        self.partitions[place.partition()].0.exclusive()
    }

    /// Waits until it is granted.
    #[cold]
    fn wait(
        &self,
        tx: TxId,
        held: &mut Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> Result<()> {
        let place = Place::of(what);
        let since = Instant::now();
        let Begun::Waits { new } = self.begin_to_wait(tx, held, place, mode, until)? else {
            return Ok(());
        };
        loop {
            // Whoever grants it wakes this thread, perhaps already now; others may wake it for nothing.
            thread::park_timeout(self.patience.saturating_sub(since.elapsed()));
            let mut partition = self.partition(place);
            if partition.waiting(tx).is_none() {
                if new {
                    held.locks.push(place);
                }
                return Ok(());
            }
            if since.elapsed() >= self.patience {
                partition.statistics.timeouts += 1;
                partition.give_up(tx);
                partition.grant_waiters(place, &mut held.woken);
                drop(partition);
                held.wake();
                return Err(Error::LockTimeout);
            }
        }
    }

    /// Stands in the queue, unless it is granted at last, or would wait for itself.
    fn begin_to_wait(
        &self,
        tx: TxId,
        held: &mut Held,
        place: Place,
        mode: Mode,
        until: Until,
    ) -> Result<Begun> {
        let mut all = self.all();
        match all[place.partition()].attempt(place, tx, mode, until) {
            Answer::New => held.locks.push(place),
            Answer::Had => {}
            Answer::Refused => {
                let conversion =
                    all[place.partition()].wait(place, tx, mode, until, thread::current());
                if waits_for_itself(&all, tx) {
                    let partition = &mut all[place.partition()];
                    partition.statistics.deadlocks += 1;
                    partition.give_up(tx);
                    return Err(Error::Deadlock);
                }
                return Ok(Begun::Waits {
                    new: !conversion && until == Until::End,
                });
            }
        }
        Ok(Begun::Had)
    }

    /// The whole table.
    fn all(&self) -> [Exclusive<'_, L, Partition>; PARTITIONS] {
        array::from_fn(|partition| self.partitions[partition].0.exclusive())
    }
}

/// Whether a transaction waits for one that waits, directly or not, for it.
fn waits_for_itself<L: Latch>(all: &[Exclusive<'_, L, Partition>], tx: TxId) -> bool {
    // As many as there are threads at most, so they are gone through one by one.
    let mut reached = vec![tx];
    let mut next = 0;
    let mut found = false;
    while let Some(&one) = reached.get(next)
        && !found
    {
        next += 1;
        let waiting = all
            .iter()
            .find_map(|partition| Some((partition, partition.waiting(one)?)));
        if let Some((partition, waiter)) = waiting {
            partition.blockers(waiter, |blocker| {
                found |= blocker == tx;
                if !reached.contains(&blocker) {
                    reached.push(blocker);
                }
            });
        }
    }
    found
}
