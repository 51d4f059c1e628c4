//! Starts the threads, lets them go together, collects what they record, and ends the run when it is time.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dyno_load::Random;
use dyno_result::clock::{cpu_so_far, nanoseconds, now_ns};
use dyno_result::failure::Failure;
use dyno_result::figures::{Cpu, EndedBy, Times};
use dyno_result::output::{FailedOperation, Span};
use parking_lot::Mutex;
use quanta::Clock;

use crate::fileset::Fileset;
use crate::number::Number;
use crate::program::{Program, ThreadPlan};
use crate::rate::Source;
use crate::recording::{Collector, Did, Recorder};
use crate::shared::{ProcessCounts, QuitMode, Shared, Verified, Waiting};
use crate::sync::{Event, Semaphore, Sleeper};
use crate::worker::{Place, Worker};

/// Enough for the deepest of calls, and little enough for thousands of threads.
const STACK: usize = 160 * 1024;
/// So often it is looked whether somebody wants the run to end.
const LOOK: Duration = Duration::from_millis(20);
/// The stream of the seed that events are drawn from, where their rate varies.
const RATE_STREAM: u64 = 1 << 41;

/// How a run is carried out.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// The seed.
    pub seed: u64,
    /// filebench's order of files.
    pub compat: bool,
    /// Data say where they belong, and are looked at.
    pub verify: bool,
    /// No `io_uring`.
    pub no_ring: bool,
    /// How it ends.
    pub mode: QuitMode,
    /// How long it lasts; for ever where something else ends it.
    pub limit: Option<Duration>,
    /// Work before that which is not measured.
    pub warmup: Duration,
    /// The length of an interval.
    pub interval: Duration,
    /// Ends it early.
    pub halt: &'a AtomicBool,
}

/// What was recorded within an interval.
#[derive(Debug)]
pub struct Interval {
    /// Where it lies.
    pub span: Span,
    /// What each flowop did.
    pub did: Vec<Did>,
    /// Those that failed.
    pub failed: Vec<FailedOperation>,
}

/// How a run went.
#[derive(Debug)]
pub struct Ran {
    /// When.
    pub times: Times,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Why it could not go on.
    pub failure: Option<Failure>,
    /// What each flowop did in the measured part.
    pub did: Vec<Did>,
    /// Before it.
    pub warmup: Vec<Did>,
    /// How long that took.
    pub warmup_s: f64,
    /// CPU time of the measured part.
    pub cpu: Cpu,
    /// What was found by looking at what was read.
    pub verified: Option<Box<Verified>>,
    /// What carried asynchronous writes out.
    pub asynchronous: Option<&'static str>,
    /// What `testrandvar` drew, by flowop: how many, their mean, their standard deviation.
    pub drawn: Vec<(usize, u64, f64, f64)>,
}

impl Ran {
    /// Adds a later round, whose flowops are these and others behind them.
    pub fn add(&mut self, round: Self) {
        self.times.ended_ns = round.times.ended_ns;
        self.times.elapsed_s += round.times.elapsed_s;
        self.ended_by = round.ended_by;
        self.failure = round.failure;
        self.cpu = self.cpu + round.cpu;
        self.asynchronous = self.asynchronous.or(round.asynchronous);
        for (sums, dids) in [
            (&mut self.did, &round.did),
            (&mut self.warmup, &round.warmup),
        ] {
            sums.resize_with(dids.len(), Did::nothing);
            for (sum, did) in sums.iter_mut().zip(dids) {
                sum.add(did);
            }
        }
        match (&self.verified, round.verified) {
            (Some(all), Some(of_round)) => all.add(&of_round),
            (_, of_round) => self.verified = of_round,
        }
        for drawn in round.drawn {
            match self.drawn.iter_mut().find(|known| known.0 == drawn.0) {
                Some(known) => *known = pooled(*known, drawn),
                None => self.drawn.push(drawn),
            }
        }
    }
}

/// Two counts, means and standard deviations of one flowop as one.
fn pooled(first: (usize, u64, f64, f64), second: (usize, u64, f64, f64)) -> (usize, u64, f64, f64) {
    let count = first.1 + second.1;
    let share = |of: (usize, u64, f64, f64)| of.1 as f64 / count as f64;
    let mean = share(first) * first.2 + share(second) * second.2;
    let variance = |of: (usize, u64, f64, f64)| share(of) * (of.3.powi(2) + (of.2 - mean).powi(2));
    (
        first.0,
        count,
        mean,
        (variance(first) + variance(second)).sqrt(),
    )
}

/// Carries out a program; `each` is given every interval.
pub fn run<E>(
    program: &Program,
    filesets: &[Fileset],
    manner: Manner,
    print: &(dyn Fn(&str) + Sync),
    mut each: impl FnMut(Interval) -> Result<(), E>,
) -> Result<Ran, E> {
    let threads: usize = program.threads.iter().map(ThreadPlan::count).sum();
    let recorder = Recorder::new(program.flowops.len(), threads);
    let rate = program.rate.clone().unwrap_or(Number::Fixed(0.0));
    let shared = Shared {
        program,
        filesets,
        recorder: &recorder,
        source: Source::new(rate, Random::new(manner.seed, RATE_STREAM)),
        clock: Clock::new(),
        seed: manner.seed,
        compat: manner.compat,
        mode: manner.mode,
        start: Event::default(),
        stop: Event::default(),
        started: AtomicU64::new(0),
        limit_ns: manner
            .limit
            .map_or(u64::MAX >> 1, |limit| nanoseconds(limit + manner.warmup)),
        last_ns: AtomicU64::new(0),
        unready: AtomicUsize::new(threads),
        all_ready: Event::default(),
        running: AtomicUsize::new(threads),
        news: Event::default(),
        waiting: program
            .waits
            .iter()
            .map(|wait| {
                (0..wait.count)
                    .map(|_| match wait.high_water {
                        Some(room) => Waiting::Semaphore(Semaphore::new(room)),
                        None => Waiting::Sleeper(Sleeper::default()),
                    })
                    .collect()
            })
            .collect(),
        processes: processes(program),
        failure: Mutex::new(None),
        done: AtomicBool::new(false),
        verified: manner.verify.then(Verified::new),
        asynchronous: Mutex::new(None),
        no_ring: manner.no_ring,
        drawn: Mutex::default(),
        print,
    };
    let mut part = Part {
        shared: &shared,
        manner,
        collector: Collector::new(&recorder),
        started_ns: now_ns(),
        measured_from_ns: 0,
        shown_ns: 0,
        cpu: Cpu::default(),
        measured_cpu: Cpu::default(),
        warmup: nothing(program),
        did: nothing(program),
        halted: false,
    };
    std::thread::scope(|scope| {
        start(scope, &shared, threads);
        shared.all_ready.wait();
        let carried = part.carry_out(&mut each);
        shared.end();
        carried
    })?;
    part.last(&mut each)?;
    Ok(part.ran())
}

fn nothing(program: &Program) -> Vec<Did> {
    program.flowops.iter().map(|_| Did::nothing()).collect()
}

fn processes(program: &Program) -> Vec<ProcessCounts> {
    let count: usize = first_processes(program).1;
    (0..count).map(|_| ProcessCounts::default()).collect()
}

/// The number of the first process of each kind of threads, and how many there are in all.
fn first_processes(program: &Program) -> (Vec<usize>, usize) {
    let (mut firsts, mut next, mut last) = (Vec::new(), 0, None);
    for plan in &program.threads {
        if last.is_some_and(|(index, _)| index != plan.process_index) {
            next += last.map_or(0, |(_, count)| count);
        }
        firsts.push(next);
        last = Some((plan.process_index, plan.process_instances));
    }
    (firsts, next + last.map_or(0, |(_, count)| count))
}

/// Maps of memory that a thread takes: its stack, that of its signals, a guard before each, and what it works with.
const MAPS_OF_THREAD: usize = 5;

/// Why a process may not have so many threads; a thread that cannot have all its maps panics before it is ours.
fn too_many_maps(threads: usize) -> Option<String> {
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    let most: usize = most.trim().parse().ok()?;
    let taken = threads.saturating_mul(MAPS_OF_THREAD);
    (taken > most).then(|| {
        format!(
            "{threads} threads take some {taken} maps of memory, and a process may have {most}: fewer instances are \
             needed, or `sysctl vm.max_map_count={}`",
            taken.saturating_mul(2)
        )
    })
}

/// Starts all threads, each of which says when it is ready and waits until it may go.
fn start<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    shared: &'scope Shared<'scope>,
    threads: usize,
) {
    if threads == 0 {
        // Nobody is left to say so.
        shared.all_ready.set();
        shared.news.set();
    }
    if let Some(message) = too_many_maps(threads) {
        shared.fail(Failure::new("threads", message));
    }
    let (firsts, _) = first_processes(shared.program);
    let mut number = 0;
    let mut seated: BTreeMap<usize, usize> = BTreeMap::new();
    for (plan, first) in shared.program.threads.iter().zip(firsts) {
        let of_each = plan.instances.max(1);
        let seats = seated.entry(first).or_default();
        for instance in 0..plan.count() {
            let place = Place {
                number,
                seat: *seats + instance % of_each,
                instance,
                process: first + instance / of_each,
            };
            let body = move || {
                let ran = catch_unwind(AssertUnwindSafe(|| {
                    let worker = Worker::new(shared, plan, place);
                    shared.one_ready();
                    match worker {
                        Ok(worker) => {
                            shared.start.wait();
                            worker.run();
                        }
                        Err(failure) => shared.fail(failure),
                    }
                }));
                if ran.is_err() {
                    let message = "a thread panicked; its message stands above";
                    shared.fail(Failure::new("internal", message));
                }
                shared.one_ended();
            };
            let spawned = if shared.stop.is_set() {
                Err(std::io::Error::other("ended"))
            } else {
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, body)
            };
            if let Err(error) = spawned {
                let message = format!(
                    "starting thread {} of {threads}: {error}; fewer instances are needed, or higher limits of \
                     processes (ulimit -u, kernel.threads-max, vm.max_map_count, a cgroup's pids.max)",
                    number + 1
                );
                shared.fail(Failure::new("threads", message));
                shared.one_ready();
                shared.one_ended();
            }
            number += 1;
        }
        *seats += of_each;
    }
}

struct Part<'a> {
    shared: &'a Shared<'a>,
    manner: Manner<'a>,
    collector: Collector<'a>,
    started_ns: u64,
    measured_from_ns: u64,
    /// Up to where intervals were given out, in ns since the threads were let go.
    shown_ns: u64,
    /// CPU time at that moment.
    cpu: Cpu,
    measured_cpu: Cpu,
    warmup: Vec<Did>,
    did: Vec<Did>,
    halted: bool,
}

impl Part<'_> {
    /// Lets the threads go, and collects until the run is over.
    fn carry_out<E>(&mut self, each: &mut impl FnMut(Interval) -> Result<(), E>) -> Result<(), E> {
        self.cpu = cpu_so_far();
        self.measured_from_ns = now_ns();
        let begun = Instant::now();
        self.shared
            .started
            .store(self.shared.clock.raw(), Ordering::Relaxed);
        self.shared.start.set();
        let warmup_ns = nanoseconds(self.manner.warmup);
        let interval_ns = nanoseconds(self.manner.interval).max(1_000_000);
        loop {
            let next_ns = if self.shown_ns < warmup_ns {
                (self.shown_ns + interval_ns).min(warmup_ns)
            } else {
                (self.shown_ns + interval_ns).min(self.shared.limit_ns)
            };
            let is_over = self.wait_until(begun + Duration::from_nanos(next_ns));
            if is_over {
                let now_ns = self.shared.since_start(self.shared.clock.raw());
                let done = self.shared.done.load(Ordering::Relaxed);
                if now_ns >= self.shared.limit_ns && !self.halted && !done {
                    // All threads waited, and ended with the time before it was looked at.
                    return self.give(self.shared.limit_ns, each);
                }
                // What is still under way is given out with the last interval.
                return Ok(());
            }
            self.give(next_ns, each)?;
            if next_ns >= self.shared.limit_ns {
                return Ok(());
            }
        }
    }

    /// Waits until then; whether the run is over before.
    fn wait_until(&mut self, then: Instant) -> bool {
        loop {
            if self.manner.halt.load(Ordering::Relaxed) {
                self.halted = true;
                return true;
            }
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.shared.news.is_set();
            }
            if self.shared.news.wait_for(left.min(LOOK)) {
                return true;
            }
        }
    }

    /// Gives out what was recorded up to now as the interval that ends at `end_ns`.
    fn give<E>(
        &mut self,
        end_ns: u64,
        each: &mut impl FnMut(Interval) -> Result<(), E>,
    ) -> Result<(), E> {
        let (did, failed) = self.collector.take();
        let warmup_ns = nanoseconds(self.manner.warmup);
        let warmup = self.shown_ns < warmup_ns;
        let cpu = cpu_so_far();
        let spent = cpu - self.cpu;
        self.cpu = cpu;
        let into = if warmup {
            &mut self.warmup
        } else {
            &mut self.did
        };
        for (sum, did) in into.iter_mut().zip(&did) {
            sum.add(did);
        }
        if !warmup {
            self.measured_cpu = self.measured_cpu + spent;
        }
        let span = Span {
            start_ns: self.measured_from_ns + self.shown_ns,
            end_ns: self.measured_from_ns + end_ns,
            warmup,
            cpu: Some(spent),
        };
        self.shown_ns = end_ns;
        each(Interval { span, did, failed })
    }

    /// Gives out what came after the last interval, once all threads have ended.
    fn last<E>(&mut self, each: &mut impl FnMut(Interval) -> Result<(), E>) -> Result<(), E> {
        let now = self.shared.since_start(self.shared.clock.raw());
        let last = self.shared.last_ns.load(Ordering::Relaxed);
        let end = if self.shown_ns < self.shared.limit_ns && !self.halted {
            last
        } else {
            now
        };
        self.give(end.max(self.shown_ns + 1), each)
    }

    fn ran(self) -> Ran {
        let shared = self.shared;
        let failure = shared.failure.lock().take();
        let warmup_ns = nanoseconds(self.manner.warmup);
        let last_ns = shared.last_ns.load(Ordering::Relaxed);
        let done = shared.done.load(Ordering::Relaxed);
        let timed_out = self.manner.limit.is_some() && self.shown_ns >= shared.limit_ns;
        let ended_by = if failure.is_some() {
            EndedBy::Error
        } else if self.halted {
            EndedBy::Signal
        } else if timed_out && !done {
            EndedBy::Duration
        } else {
            EndedBy::Operations
        };
        let whole_ns = match ended_by {
            EndedBy::Duration => shared.limit_ns,
            EndedBy::Operations => last_ns,
            EndedBy::Signal | EndedBy::Error => last_ns.min(shared.limit_ns),
        };
        let elapsed_ns = whole_ns.saturating_sub(warmup_ns);
        let names = shared.program.flowops.iter().enumerate();
        let drawn = std::mem::take(&mut *shared.drawn.lock());
        Ran {
            times: Times {
                started_ns: self.started_ns,
                measured_from_ns: self.measured_from_ns + warmup_ns,
                ended_ns: self.measured_from_ns + warmup_ns + elapsed_ns,
                elapsed_s: Duration::from_nanos(elapsed_ns).as_secs_f64(),
            },
            ended_by,
            failure,
            did: self.did,
            warmup: self.warmup,
            warmup_s: Duration::from_nanos(whole_ns.min(warmup_ns)).as_secs_f64(),
            cpu: self.measured_cpu,
            // The threads have ended: what they counted is all there is.
            verified: shared.verified.as_ref().map(|verified| verified.copy()),
            asynchronous: *shared.asynchronous.lock(),
            drawn: names
                .filter_map(|(index, _)| {
                    let (count, sum, squares) = drawn.get(&index)?;
                    let mean = sum / *count as f64;
                    let variance = (squares / *count as f64 - mean * mean).max(0.0);
                    Some((index, *count, mean, variance.sqrt()))
                })
                .collect(),
        }
    }
}
