//! What threads record of flowops: without locks, without a histogram for each of thousands of threads.
//!
//! Threads share a few shards, each with a count for every bucket of a histogram; the coordinator takes what was
//! added since it last looked. Buckets are `HdrHistogram`'s with three digits, so that nothing is lost when they
//! become one; a stretch of them is only there once something falls into it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_result::failure::ErrorCounts;
use dyno_result::output::FailedOperation;
use dyno_result::record::{HIGHEST_NS, Series, add, histogram};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Buckets that have the same width.
const STRETCH: usize = 1024;
/// The longest time that is told apart needs that many stretches.
const STRETCHES: usize = 33;
/// Values below this have a bucket each.
const EXACT: u64 = 2048;

type Stretch = Box<[AtomicU64]>;

/// What some of the threads did with one flowop. A line of the cache is never shared with another shard's.
#[derive(Debug)]
#[repr(align(128))]
pub struct Shard {
    stretches: [OnceLock<Stretch>; STRETCHES],
    bytes: AtomicU64,
    late: AtomicU64,
    late_bytes: AtomicU64,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            stretches: std::array::from_fn(|_| OnceLock::new()),
            bytes: AtomicU64::new(0),
            late: AtomicU64::new(0),
            late_bytes: AtomicU64::new(0),
        }
    }
}

impl Shard {
    /// Notes one that took `ns`, with that many bytes.
    #[inline]
    pub fn note(&self, ns: u64, bytes: u64) {
        let (stretch, bucket) = place(ns.min(HIGHEST_NS));
        self.stretches[stretch].get_or_init(new_stretch)[bucket].fetch_add(1, Ordering::Relaxed);
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Notes that the one just noted ended after the time was over.
    pub fn note_late(&self, bytes: u64) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.late_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cold]
fn new_stretch() -> Stretch {
    (0..STRETCH).map(|_| AtomicU64::new(0)).collect()
}

/// The stretch and the bucket in it of a time.
#[inline]
#[allow(clippy::cast_possible_truncation)] // both are small
const fn place(ns: u64) -> (usize, usize) {
    if ns < EXACT {
        return ((ns as usize) / STRETCH, (ns as usize) % STRETCH);
    }
    let shift = 53 - ns.leading_zeros();
    (shift as usize + 1, (ns >> shift) as usize - STRETCH)
}

/// The least time of a bucket.
const fn least(stretch: usize, bucket: usize) -> u64 {
    if stretch == 0 {
        bucket as u64
    } else {
        ((STRETCH + bucket) as u64) << (stretch - 1)
    }
}

/// One flowop's figures as they were when the coordinator last looked.
#[derive(Debug)]
struct Seen {
    stretches: Vec<Option<Box<[u64]>>>,
    bytes: u64,
    late: u64,
    late_bytes: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            stretches: (0..STRETCHES).map(|_| None).collect(),
            bytes: 0,
            late: 0,
            late_bytes: 0,
        }
    }
}

/// What one flowop did in a span of time.
#[derive(Clone, Debug)]
pub struct Did {
    /// Times, errors, and those that ended too late.
    pub series: Series,
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Of them, bytes of those that ended too late.
    pub late_bytes: u64,
}

impl Did {
    /// Nothing yet.
    pub fn nothing() -> Self {
        Self {
            series: Series::new(false),
            bytes: 0,
            late_bytes: 0,
        }
    }

    /// Adds what `other` did.
    pub fn add(&mut self, other: &Self) {
        self.series.add(&other.series);
        self.bytes += other.bytes;
        self.late_bytes += other.late_bytes;
    }
}

/// Failures that are kept one by one; all are counted.
const MOST_KEPT: usize = 10_000;

/// Failures, which are rare.
#[derive(Debug)]
struct Failures {
    /// By flowop, since the coordinator last looked: how many of each kind, and how long they took.
    counts: Vec<(ErrorCounts, Histogram<u64>)>,
    /// Not yet written down.
    new: Vec<FailedOperation>,
    kept: usize,
}

/// All flowops of a run.
#[derive(Debug)]
pub struct Recorder {
    /// By shard, then by flowop.
    shards: Vec<Vec<Shard>>,
    failures: Mutex<Failures>,
}

impl Recorder {
    /// Of that many flowops; `threads` share as many shards as make sense.
    pub fn new(flowops: usize, threads: usize) -> Self {
        const MOST: usize = 16;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = threads.min(processors * 2).clamp(1, MOST);
        Self {
            shards: (0..shards)
                .map(|_| (0..flowops).map(|_| Shard::default()).collect())
                .collect(),
            failures: Mutex::new(Failures {
                counts: vec![(ErrorCounts::default(), histogram()); flowops],
                new: Vec::new(),
                kept: 0,
            }),
        }
    }

    /// Where a thread notes what it does, by flowop.
    pub fn shard(&self, thread: usize) -> &[Shard] {
        &self.shards[thread % self.shards.len()]
    }

    /// Notes a failure.
    #[cold]
    pub fn failed(&self, failed: FailedOperation, ns: u64) {
        let mut failures = self.failures.lock();
        let (counts, times) = &mut failures.counts[failed.index];
        counts.count(failed.kind);
        let noted = times.record(ns.min(HIGHEST_NS));
        debug_assert!(noted.is_ok());
        if failures.kept < MOST_KEPT {
            failures.kept += 1;
            failures.new.push(failed);
        }
    }
}

/// Takes what was recorded, span by span.
#[derive(Debug)]
pub struct Collector<'a> {
    recorder: &'a Recorder,
    seen: Vec<Seen>,
}

impl<'a> Collector<'a> {
    /// Nothing was looked at yet.
    pub fn new(recorder: &'a Recorder) -> Self {
        let flowops = recorder.shards.first().map_or(0, Vec::len);
        Self {
            recorder,
            seen: (0..flowops).map(|_| Seen::default()).collect(),
        }
    }

    /// What each flowop did since the last look, and those that failed, one by one.
    pub fn take(&mut self) -> (Vec<Did>, Vec<FailedOperation>) {
        let mut all: Vec<Did> = self
            .seen
            .iter_mut()
            .enumerate()
            .map(|(flowop, seen)| take(&self.recorder.shards, flowop, seen))
            .collect();
        let mut failures = self.recorder.failures.lock();
        for (did, (counts, times)) in all.iter_mut().zip(&mut failures.counts) {
            did.series.errors.add(counts);
            add(&mut did.series.failed, times);
            *counts = ErrorCounts::default();
            times.reset();
        }
        let failed = std::mem::take(&mut failures.new);
        (all, failed)
    }
}

fn take(shards: &[Vec<Shard>], flowop: usize, seen: &mut Seen) -> Did {
    let mut did = Did::nothing();
    let of = shards.iter().map(|shard| &shard[flowop]);
    for stretch in 0..STRETCHES {
        let mut now: Option<Box<[u64]>> = None;
        for counts in of
            .clone()
            .filter_map(|shard| shard.stretches[stretch].get())
        {
            let now = now.get_or_insert_with(|| vec![0; STRETCH].into_boxed_slice());
            for (sum, count) in now.iter_mut().zip(counts) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        let Some(now) = now else { continue };
        for (bucket, count) in now.iter().enumerate() {
            let before = seen.stretches[stretch]
                .as_ref()
                .map_or(0, |seen| seen[bucket]);
            if *count > before {
                let noted = did
                    .series
                    .latency
                    .record_n(least(stretch, bucket), count - before);
                debug_assert!(noted.is_ok());
            }
        }
        seen.stretches[stretch] = Some(now);
    }
    let sum = |what: fn(&Shard) -> &AtomicU64| -> u64 {
        of.clone()
            .map(|shard| what(shard).load(Ordering::Relaxed))
            .sum()
    };
    let since = |seen: &mut u64, now: u64| now - std::mem::replace(seen, now);
    did.bytes = since(&mut seen.bytes, sum(|shard| &shard.bytes));
    did.series.late = since(&mut seen.late, sum(|shard| &shard.late));
    did.late_bytes = since(&mut seen.late_bytes, sum(|shard| &shard.late_bytes));
    did
}

/// All of `did` together.
pub fn total<'a>(did: impl IntoIterator<Item = &'a Did>) -> Did {
    let mut total = Did::nothing();
    did.into_iter().for_each(|each| total.add(each));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_are_those_of_the_histogram(ns in prop_oneof![0_u64..5000, 0..HIGHEST_NS]) {
            let recorder = Recorder::new(1, 1);
            recorder.shard(0)[0].note(ns, 3);
            let (did, _) = Collector::new(&recorder).take();
            let mut expected = histogram();
            expected.record(ns).unwrap();
            prop_assert_eq!(&did[0].series.latency, &expected);
            prop_assert_eq!(did[0].bytes, 3);
        }
    }

    #[test]
    fn each_look_gives_what_was_added_since_the_last_and_none_is_lost() {
        let recorder = Recorder::new(2, 8);
        let mut collector = Collector::new(&recorder);
        let mut sum = Did::nothing();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let recorder = &recorder;
                    scope.spawn(move || {
                        for ns in 0..20_000 {
                            recorder.shard(thread)[1].note(ns, 1);
                        }
                    })
                })
                .collect();
            while !threads
                .iter()
                .all(std::thread::ScopedJoinHandle::is_finished)
            {
                sum.add(&collector.take().0[1]);
            }
        });
        sum.add(&collector.take().0[1]);
        assert_eq!((sum.series.latency.len(), sum.bytes), (160_000, 160_000));
        let mut none = histogram();
        add(&mut none, &collector.take().0[1].series.latency);
        assert!(none.is_empty());
    }
}
