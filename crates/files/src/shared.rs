//! What the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use dyno_result::failure::Failure;
use parking_lot::Mutex;
use quanta::Clock;

use crate::fileset::Fileset;
use crate::program::{Operation, Program};
use crate::rate::Source;
use crate::recording::Recorder;
use crate::sync::{Event, Semaphore, Sleeper};
use crate::verify::Wrong;

/// How a run ends.
pub use dyno_wml::ast::QuitMode;

/// One of the places where threads wait for others.
#[derive(Debug)]
pub enum Waiting {
    /// Of `semblock`.
    Semaphore(Semaphore),
    /// Of `block`.
    Sleeper(Sleeper),
}

/// What a process has done, where a flowop asks.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ProcessCounts {
    /// Operations that count in the summary.
    pub operations: AtomicU64,
    /// Reads and writes.
    pub transfers: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// How much of each was paid for with events, by whichever thread.
    pub paid: [AtomicU64; 3],
}

/// What was found by looking at what was read.
#[derive(Debug)]
pub struct Verified {
    /// Reads that were looked at.
    pub reads: AtomicU64,
    /// Writes of blocks with an identity; the number that each carries.
    pub writes: AtomicU64,
    /// Reads that met a write and were right when read again.
    pub read_again: AtomicU64,
    /// What was wrong, in [`Wrong::ALL`]'s order.
    pub wrong: [AtomicU64; Wrong::ALL.len()],
    /// The first that was wrong, in words.
    pub first: Mutex<Option<String>>,
    /// Held while a file grows at its end, so that where data will lie is known; by file.
    pub growing: [Mutex<()>; 64],
}

impl Verified {
    /// Nothing was looked at yet.
    pub fn new() -> Box<Self> {
        Box::new(Self {
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            read_again: AtomicU64::new(0),
            wrong: std::array::from_fn(|_| AtomicU64::new(0)),
            first: Mutex::new(None),
            growing: std::array::from_fn(|_| Mutex::new(())),
        })
    }

    /// Whether anything was wrong.
    pub fn any_wrong(&self) -> u64 {
        self.wrong
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// What it has come to by now.
    pub fn copy(&self) -> Box<Self> {
        let of = |count: &AtomicU64| AtomicU64::new(count.load(Ordering::Relaxed));
        let copy = Self::new();
        Box::new(Self {
            reads: of(&self.reads),
            writes: of(&self.writes),
            read_again: of(&self.read_again),
            wrong: std::array::from_fn(|index| of(&self.wrong[index])),
            first: Mutex::new(self.first.lock().clone()),
            ..*copy
        })
    }

    /// Adds what was found in a later round.
    pub fn add(&self, round: &Self) {
        let add = |sum: &AtomicU64, count: &AtomicU64| {
            sum.fetch_add(count.load(Ordering::Relaxed), Ordering::Relaxed);
        };
        add(&self.reads, &round.reads);
        add(&self.writes, &round.writes);
        add(&self.read_again, &round.read_again);
        for (sum, count) in self.wrong.iter().zip(&round.wrong) {
            add(sum, count);
        }
        let mut first = self.first.lock();
        if first.is_none() {
            first.clone_from(&round.first.lock());
        }
    }

    /// Counts one.
    pub fn count(&self, wrong: Wrong) {
        self.wrong[wrong as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// All of it.
pub struct Shared<'a> {
    /// What runs.
    pub program: &'a Program,
    /// The filesets.
    pub filesets: &'a [Fileset],
    /// Where figures go.
    pub recorder: &'a Recorder,
    /// Events, where there is a limit.
    pub source: Option<Source>,
    /// The clock.
    pub clock: Clock,
    /// The seed.
    pub seed: u64,
    /// filebench's order of files.
    pub compat: bool,
    /// How it ends.
    pub mode: QuitMode,
    /// All threads may go.
    pub start: Event,
    /// All threads shall end.
    pub stop: Event,
    /// When they went, as the clock counts.
    pub started: AtomicU64,
    /// From then on nothing is done any more, in ns since the start.
    pub limit_ns: u64,
    /// The latest end of an operation, in ns since the start.
    pub last_ns: AtomicU64,
    /// Threads that are not ready yet.
    pub unready: AtomicUsize,
    /// All of them are.
    pub all_ready: Event,
    /// Threads that have not ended.
    pub running: AtomicUsize,
    /// The last of them has ended, or the run is to end: the coordinator waits for it.
    pub news: Event,
    /// Where threads wait for others, by flowop and instance.
    pub waiting: Vec<Vec<Waiting>>,
    /// What processes have done, by process.
    pub processes: Vec<ProcessCounts>,
    /// What was wrong.
    pub failure: Mutex<Option<Failure>>,
    /// Whether all that was asked was done before the time was over.
    pub done: AtomicBool,
    /// What was found by looking at what was read; with `--verify`.
    pub verified: Option<Box<Verified>>,
    /// What carries asynchronous writes out, once some thread knows.
    pub asynchronous: Mutex<Option<&'static str>>,
    /// Helper threads are wanted for them.
    pub no_ring: bool,
    /// What `testrandvar` drew: by flowop, how many, their sum and the sum of their squares.
    pub drawn: Mutex<std::collections::BTreeMap<usize, (u64, f64, f64)>>,
    /// Takes what `print` says.
    pub print: &'a (dyn Fn(&str) + Sync),
}

impl Shared<'_> {
    /// Ns since the threads were let go.
    #[inline]
    pub fn since_start(&self, raw: u64) -> u64 {
        self.clock
            .delta_as_nanos(self.started.load(Ordering::Relaxed), raw)
    }

    /// A thread is ready, or never will be.
    pub fn one_ready(&self) {
        if self.unready.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_ready.set();
        }
    }

    /// A thread has ended.
    pub fn one_ended(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.news.set();
        }
    }

    /// The run ends, for all.
    pub fn end(&self) {
        self.stop.set();
        for waiting in self.waiting.iter().flatten() {
            match waiting {
                Waiting::Semaphore(semaphore) => semaphore.end(),
                Waiting::Sleeper(sleeper) => sleeper.end(),
            }
        }
        self.news.set();
    }

    /// The run ends because it cannot go on.
    #[cold]
    pub fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
        self.end();
    }

    /// The run ends because what was asked is done.
    pub fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
        self.end();
    }

    /// A flowop's name.
    pub fn name(&self, operation: &Operation) -> &str {
        &self.program.flowops[operation.index].name
    }
}
