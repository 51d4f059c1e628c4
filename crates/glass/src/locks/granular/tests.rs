//! Single stories, and threads that do what comes to their minds.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::latch::{NoLatch, RwLatch};
use crate::{IndexId, PageId, Rid, TableId};

const A: Lockable = Lockable::Record(Rid::new(PageId(1), 0));
const B: Lockable = Lockable::Record(Rid::new(PageId(1), 1));

/// Transactions that are played by one thread.
struct Play<L> {
    locks: Granular<L>,
    held: HashMap<TxId, Held>,
}

impl<L: Latch> Play<L> {
    fn new() -> Self {
        Self {
            locks: Granular::new(PATIENCE),
            held: HashMap::new(),
        }
    }

    /// Whether it was had at once.
    fn tries(&mut self, tx: u64, what: Lockable, mode: Mode) -> bool {
        let held = self.held.entry(TxId(tx)).or_default();
        self.locks.try_lock(TxId(tx), held, what, mode, Until::End)
    }

    fn waits(&mut self, tx: u64, what: Lockable, mode: Mode) -> Result<Begun> {
        let held = self.held.entry(TxId(tx)).or_default();
        self.locks
            .begin_to_wait(TxId(tx), held, Place::of(what), mode, Until::End)
    }

    fn ends(&mut self, tx: u64) {
        let mut held = self.held.remove(&TxId(tx)).unwrap();
        self.locks.release(TxId(tx), &mut held);
    }

    /// Who holds a thing, in order.
    fn holders(&self, what: Lockable) -> Vec<u64> {
        let held = self.locks.partition(Place::of(what)).held(what);
        let mut holders: Vec<_> = held.into_iter().map(|(tx, _)| tx.0).collect();
        holders.sort_unstable();
        holders
    }

    /// What a transaction was granted while it waited is its own to give back.
    fn goes_on(&mut self, tx: u64, what: Lockable) {
        assert!(
            self.locks
                .partition(Place::of(what))
                .waiting(TxId(tx))
                .is_none()
        );
        self.held
            .get_mut(&TxId(tx))
            .unwrap()
            .locks
            .push(Place::of(what));
    }
}

#[test]
fn readers_who_come_later_do_not_keep_a_writer_out() {
    let mut play = Play::<NoLatch>::new();
    assert!(play.tries(1, A, Mode::Shared));
    assert!(!play.tries(2, A, Mode::Exclusive));
    assert_eq!(
        play.waits(2, A, Mode::Exclusive).unwrap(),
        Begun::Waits { new: true }
    );
    assert!(!play.tries(3, A, Mode::Shared), "it came after the writer");
    assert_eq!(
        play.waits(3, A, Mode::Shared).unwrap(),
        Begun::Waits { new: true }
    );
    play.ends(1);
    assert_eq!(play.holders(A), [2]);
    play.goes_on(2, A);
    play.ends(2);
    assert_eq!(play.holders(A), [3]);
}

#[test]
fn a_conversion_goes_before_those_who_came_earlier() {
    let mut play = Play::<NoLatch>::new();
    assert!(play.tries(1, A, Mode::Shared) && play.tries(2, A, Mode::Shared));
    assert_eq!(
        play.waits(3, A, Mode::Exclusive).unwrap(),
        Begun::Waits { new: true }
    );
    assert_eq!(
        play.waits(2, A, Mode::Exclusive).unwrap(),
        Begun::Waits { new: false }
    );
    play.ends(1);
    assert_eq!(play.holders(A), [2]);
    play.ends(2);
    assert_eq!(play.holders(A), [3]);
}

#[test]
fn of_two_readers_who_want_to_write_the_second_gives_way() {
    let mut play = Play::<NoLatch>::new();
    assert!(play.tries(1, A, Mode::Shared) && play.tries(2, A, Mode::Shared));
    assert_eq!(
        play.waits(1, A, Mode::Exclusive).unwrap(),
        Begun::Waits { new: false }
    );
    assert!(matches!(
        play.waits(2, A, Mode::Exclusive),
        Err(Error::Deadlock)
    ));
    play.ends(2);
    assert_eq!(
        play.locks.partition(Place::of(A)).held(A),
        [(TxId(1), Mode::Exclusive)]
    );
}

#[test]
fn who_would_close_several_circles_gives_way_and_the_others_go_on() {
    let mut play = Play::<NoLatch>::new();
    assert!(
        play.tries(1, A, Mode::Shared)
            && play.tries(2, A, Mode::Shared)
            && play.tries(3, B, Mode::Exclusive)
    );
    assert_eq!(
        play.waits(1, B, Mode::Shared).unwrap(),
        Begun::Waits { new: true }
    );
    assert_eq!(
        play.waits(2, B, Mode::Shared).unwrap(),
        Begun::Waits { new: true }
    );
    assert!(matches!(
        play.waits(3, A, Mode::Exclusive),
        Err(Error::Deadlock)
    ));
    play.ends(3);
    assert_eq!(play.holders(B), [1, 2]);
    assert_eq!(
        play.locks.statistics(),
        Statistics {
            had: 5,
            waits: 3,
            deadlocks: 1,
            timeouts: 0
        }
    );
}

#[test]
fn who_only_has_to_be_let_past_a_queue_is_in_its_circle() {
    // 2 could hold A together with 1, but stands behind 3, which waits for 1, which waits for 2.
    let mut play = Play::<NoLatch>::new();
    assert!(play.tries(1, A, Mode::Shared) && play.tries(2, B, Mode::Exclusive));
    assert_eq!(
        play.waits(3, A, Mode::Exclusive).unwrap(),
        Begun::Waits { new: true }
    );
    assert_eq!(
        play.waits(1, B, Mode::Shared).unwrap(),
        Begun::Waits { new: true }
    );
    assert!(matches!(
        play.waits(2, A, Mode::Shared),
        Err(Error::Deadlock)
    ));
}

#[test]
fn who_runs_out_of_patience_lets_those_behind_go_on() {
    let locks = Granular::<RwLatch>::new(Duration::from_millis(20));
    let [mut first, mut second, mut third] = [const {
        Held {
            locks: Vec::new(),
            woken: Vec::new(),
        }
    }; 3];
    locks
        .lock(TxId(1), &mut first, A, Mode::Shared, Until::End)
        .unwrap();
    thread::scope(|scope| {
        let writer =
            scope.spawn(|| locks.lock(TxId(2), &mut second, A, Mode::Exclusive, Until::End));
        while locks.statistics().waits == 0 {
            thread::yield_now();
        }
        // Whether it stands behind the writer now or that has gone already.
        locks
            .begin_to_wait(TxId(3), &mut third, Place::of(A), Mode::Shared, Until::End)
            .unwrap();
        assert!(matches!(writer.join().unwrap(), Err(Error::LockTimeout)));
    });
    assert_eq!(locks.partition(Place::of(A)).held(A).len(), 2);
    assert_eq!(locks.statistics().timeouts, 1);
}

#[test]
fn what_differs_has_another_place() {
    let ids = || 0..u16::try_from(crate::catalogue::MOST).unwrap();
    // Numbers of pages, and addresses where there is no pool.
    let pages = (1..200).chain((1..200).map(|page| 0x7f12_3400_0000 + page * 0x8000));
    let records = pages.flat_map(|page| (0..50).map(move |slot| Rid::new(PageId(page), slot)));
    let things: Vec<_> = (ids().map(|id| Lockable::Table(TableId(id))))
        .chain(ids().map(|id| Lockable::End(IndexId(id))))
        .chain(records.map(Lockable::Record))
        .collect();
    let mut places: Vec<_> = things
        .iter()
        .map(|what| Place::of(*what).number())
        .collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), things.len());
}

#[test]
fn what_is_asked_for_but_not_kept_is_free_at_once() {
    let locks = Granular::<NoLatch>::default();
    let (mut first, mut second) = (Held::default(), Held::default());
    assert!(locks.try_lock(TxId(1), &mut first, A, Mode::Exclusive, Until::Had));
    assert!(locks.try_lock(TxId(2), &mut second, A, Mode::Shared, Until::End));
    assert!(!locks.try_lock(TxId(1), &mut first, A, Mode::Exclusive, Until::Had));
    assert!(locks.try_lock(TxId(1), &mut first, A, Mode::Shared, Until::Had));
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn many_locks_are_kept_and_their_places_used_again() {
    let locks = Granular::<NoLatch>::default();
    let mut held = Held::default();
    // Pages by number, and by address.
    let rids = (0..10_000u64)
        .map(|n| Rid::new(PageId(if n % 2 == 0 { n } else { n << 15 }), (n % 7) as u16));
    let mut places = 0;
    for tx in 1..=3 {
        for rid in rids.clone() {
            assert!(locks.try_lock(
                TxId(tx),
                &mut held,
                Lockable::Record(rid),
                Mode::Exclusive,
                Until::End
            ));
        }
        assert_eq!(held.count(), 10_000);
        for rid in rids.clone() {
            assert!(locks.try_lock(
                TxId(tx),
                &mut held,
                Lockable::Record(rid),
                Mode::Shared,
                Until::End
            ));
            assert!(!locks.try_lock(
                TxId(99),
                &mut Held::default(),
                Lockable::Record(rid),
                Mode::Shared,
                Until::Had
            ));
        }
        let sizes: Vec<_> = locks
            .all()
            .iter()
            .map(|partition| partition.size())
            .collect();
        assert_eq!(sizes.iter().map(|size| size.0).sum::<usize>(), 10_000);
        // Within 4 standard deviations of what chance would do.
        let fair = 10_000 / PARTITIONS;
        assert!(
            sizes.iter().all(|size| size.0.abs_diff(fair) < fair / 4),
            "{sizes:?}"
        );
        let all = sizes.iter().map(|size| size.1).sum();
        assert!(places == 0 || places == all);
        places = all;
        locks.release(TxId(tx), &mut held);
        assert_eq!(
            locks
                .all()
                .iter()
                .map(|partition| partition.size().0)
                .sum::<usize>(),
            0
        );
    }
}

/// A sequence of numbers that depends on its seed alone (Steele, Lea, Flood 2014: `SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u16) -> u16 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        u16::try_from((z ^ z >> 31) % u64::from(end)).unwrap()
    }
}

/// Who holds what, as those see it who hold it.
#[derive(Default)]
struct Oracle(Mutex<HashMap<Lockable, HashMap<TxId, Mode>>>);

impl Oracle {
    /// Said after it was had.
    fn has(&self, tx: TxId, what: Lockable, mode: Mode) {
        let mut all = self.0.lock().unwrap();
        let holders = all.entry(what).or_default();
        let both = holders.get(&tx).map_or(mode, |held| held.supremum(mode));
        holders.insert(tx, both);
        for (other, held) in &*holders {
            assert!(
                *other == tx || both.compatible(*held),
                "{tx:?} {both:?} beside {other:?} {held:?} of {what:?}"
            );
        }
    }

    /// Said before it is given back.
    fn ends(&self, tx: TxId) {
        for holders in self.0.lock().unwrap().values_mut() {
            holders.remove(&tx);
        }
    }
}

/// What holds at every moment.
fn check(locks: &Granular<RwLatch>) {
    let all = locks.all();
    for partition in &all {
        for (at, waiter) in partition.waiters().iter().enumerate() {
            let mut blockers = 0;
            partition.blockers(at, |_| blockers += 1);
            assert!(blockers > 0, "{:?} waits for nobody", waiter.tx);
            assert!(
                !waits_for_itself(&all, waiter.tx),
                "{:?} waits for itself",
                waiter.tx
            );
        }
    }
}

#[test]
fn threads_never_hold_what_is_not_compatible_and_none_waits_for_ever() {
    const THREADS: usize = 8;
    const TRANSACTIONS: usize = 2_000;
    let locks = Granular::<RwLatch>::default();
    let oracle = Oracle::default();
    let ids = AtomicU64::new(0);
    let ended = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let users: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (locks, oracle, ids, ended) = (&locks, &oracle, &ids, &ended);
                scope.spawn(move || {
                    let mut numbers = Numbers(thread as u64);
                    let mut held = Held::default();
                    for _ in 0..TRANSACTIONS {
                        let tx = TxId(1 + ids.fetch_add(1, Ordering::Relaxed));
                        for _ in 0..numbers.below(7) {
                            let what = match numbers.below(8) {
                                0 => Lockable::Table(TableId(1)),
                                slot => Lockable::Record(Rid::new(PageId(1), slot)),
                            };
                            let mode = Mode::ALL[usize::from(numbers.below(5))];
                            let until = if numbers.below(5) == 0 {
                                Until::Had
                            } else {
                                Until::End
                            };
                            match locks.lock(tx, &mut held, what, mode, until) {
                                Ok(()) if until == Until::End => oracle.has(tx, what, mode),
                                Ok(()) => {}
                                Err(Error::Deadlock) => break,
                                Err(other) => panic!("{other}"),
                            }
                            // Others have a chance to come in between.
                            if numbers.below(3) == 0 {
                                thread::yield_now();
                            }
                        }
                        oracle.ends(tx);
                        locks.release(tx, &mut held);
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let watcher = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                check(&locks);
                thread::yield_now();
            }
        });
        let results: Vec<_> = users
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        over.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        assert!(results.iter().all(thread::Result::is_ok));
    });
    let statistics = locks.statistics();
    assert_eq!(ended.into_inner(), (THREADS * TRANSACTIONS) as u64);
    assert_eq!(
        locks
            .all()
            .iter()
            .map(|partition| partition.size().0)
            .sum::<usize>(),
        0
    );
    assert!(
        statistics.deadlocks > 0 && statistics.waits > statistics.deadlocks,
        "{statistics:?}"
    );
    assert_eq!(statistics.timeouts, 0);
}

#[test]
fn a_writer_comes_through_a_stream_of_readers() {
    let locks = Granular::<RwLatch>::default();
    let ids = AtomicU64::new(1);
    let written = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // Each takes it before it gives back what it took before, so that there is always a reader, until
                // the writer has come.
                let mut before = (TxId(0), Held::default());
                while !written.load(Ordering::Relaxed) {
                    let tx = TxId(ids.fetch_add(1, Ordering::Relaxed));
                    let mut held = Held::default();
                    if locks.try_lock(tx, &mut held, A, Mode::Shared, Until::End) {
                        locks.release(before.0, &mut before.1);
                        before = (tx, held);
                    } else {
                        // The writer waits.
                        locks.release(before.0, &mut before.1);
                        thread::yield_now();
                    }
                }
                locks.release(before.0, &mut before.1);
            });
        }
        while locks.statistics().had < 1_000 {
            thread::yield_now();
        }
        let mut held = Held::default();
        let tx = TxId(ids.fetch_add(1, Ordering::Relaxed));
        let result = locks.lock(tx, &mut held, A, Mode::Exclusive, Until::End);
        written.store(true, Ordering::Relaxed);
        locks.release(tx, &mut held);
        result.unwrap();
    });
}
