//! Starts the clients, lets them go together, collects what they record and writes it down.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_load::share;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::backend::{Backend, BackendReport, Null, Sqlite, Status};
use crate::client::{Cause, Client, Ending, Message, Progress, Until};
use crate::failure::Failure;
use crate::gate::Gate;
use crate::job::{BackendJob, Job, Phase, WorkloadJob};
use crate::output::{Output, Span};
use crate::result::{Cpu, DriveResult, EndedBy, Figures, Measured, Times, Warmup};
use crate::timeline::Timeline;
use crate::work::{NullRun, Plan, YcsbLoad, YcsbRun};

/// How a job is carried out, apart from what it asks.
#[derive(Debug)]
pub struct Options<'a> {
    /// The result folder.
    pub out: &'a Path,
    /// Whether to print a line an interval to standard output.
    pub progress: bool,
    /// Ends the run when it becomes true.
    pub halt: Arc<AtomicBool>,
    /// Of the programs and libraries involved, for the result.
    pub versions: BTreeMap<String, String>,
}

/// Carries out a job. Fails only where the result folder cannot be written: what goes wrong with the
/// backend stands in the result.
pub fn drive(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match &job.backend {
        BackendJob::Sqlite(_) => drive_on::<Sqlite>(job, options),
        BackendJob::Null => drive_on::<Null>(job, options),
    }
}

fn drive_on<B: Backend>(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match (&job.workload, job.phase) {
        (WorkloadJob::Null, _) => carry_out::<B, _>(job, options, &NullRun),
        (WorkloadJob::Ycsb(ycsb), Phase::Load) => {
            carry_out::<B, _>(job, options, &YcsbLoad::new(ycsb, job.seed))
        }
        (WorkloadJob::Ycsb(ycsb), Phase::Run) => {
            carry_out::<B, _>(job, options, &YcsbRun::new(job, ycsb))
        }
    }
}

fn carry_out<B: Backend, P: Plan<B>>(
    job: &Job,
    options: &Options,
    plan: &P,
) -> io::Result<DriveResult> {
    let operations = plan.operations();
    let output = Output::create(options.out, operations.clone(), now_ns())?;
    let mut report = B::unopened();
    let mut collector = Collector::new(job, options, operations, output);
    match open::<B>(job, &options.halt) {
        Ok((backend, connections)) => {
            report.effective = backend.effective();
            let connections =
                run_clients(job, options, plan, &backend, connections, &mut collector)?;
            report.status.append(&mut collector.ends.counters);
            match backend.close(connections, !collector.complete()) {
                Ok(mut status) => report.status.append(&mut status),
                Err(failure) => collector.fail(failure),
            }
        }
        // Waiting for somebody else's lock may have ended because the run was to end.
        Err(_) if options.halt.load(Ordering::Relaxed) => collector.ends.halted = true,
        Err(failure) => collector.fail(failure),
    }
    collector.finish(report)
}

fn open<B: Backend>(job: &Job, halt: &Arc<AtomicBool>) -> Result<(B, Vec<B::Connection>), Failure> {
    let (backend, connections) = B::open(job, job.clients, halt)?;
    if job.phase == Phase::Load
        && let Some(first) = connections.first()
    {
        backend.create(first)?;
    }
    Ok((backend, connections))
}

/// Runs all clients to their ends, and gives their connections back.
fn run_clients<B: Backend, P: Plan<B>>(
    job: &Job,
    options: &Options,
    plan: &P,
    backend: &B,
    connections: Vec<B::Connection>,
    collector: &mut Collector,
) -> io::Result<Vec<B::Connection>> {
    let (gate, halt) = (&Gate::default(), &*options.halt);
    let progress: Vec<Progress> = connections.iter().map(|_| Progress::default()).collect();
    let operations = collector.operations.clone();
    let (sender, receiver) = channel();
    let started = collector.start();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((number, connection), progress) in (0..).zip(connections).zip(&progress) {
            let client = Client {
                number,
                operations: &operations,
                halt,
                errors_are_fatal: job.phase == Phase::Load,
                progress,
                messages: sender.clone(),
                interval_ns: nanoseconds(job.interval),
            };
            let sender = sender.clone();
            let body = move || {
                let ending = catch_unwind(AssertUnwindSafe(|| {
                    run_client(job, &client, plan, backend, &connection, started, gate)
                }))
                .unwrap_or_else(|_| {
                    Err(Failure::new(
                        "internal",
                        "a client panicked; its message stands above",
                    ))
                });
                tell_end(number, ending, halt, &client.messages);
                connection
            };
            match thread::Builder::new().spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let message = format!("starting the thread of client {number}: {error}");
                    tell_end(number, Err(Failure::new("threads", message)), halt, &sender);
                }
            }
        }
        drop(sender);
        let collected = collector.collect(&receiver, gate, &progress);
        if collected.is_err() {
            halt.store(true, Ordering::Relaxed);
            gate.open(Instant::now());
        }
        // A thread catches its own panics, so that each gives its connection back.
        let connections = threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect();
        collected.map(|()| connections)
    })
}

fn tell_end(
    client: u32,
    ending: Result<Ending, Failure>,
    halt: &AtomicBool,
    messages: &Sender<Message>,
) {
    if !matches!(&ending, Ok(ending) if ending.part.cause.is_ok()) {
        halt.store(true, Ordering::Relaxed);
    }
    // Nobody listens any more once the result folder cannot be written.
    let _ = messages.send(Message::Done { client, ending });
}

/// One client from its start to its end.
fn run_client<B: Backend, P: Plan<B>>(
    job: &Job,
    client: &Client,
    plan: &P,
    backend: &B,
    connection: &B::Connection,
    started: Instant,
    gate: &Gate,
) -> Result<Ending, Failure> {
    let share = |total| share(total, u64::from(job.clients), u64::from(client.number));
    let mut work = plan.work(client.number, backend, connection)?;
    let mut warm_ns = 0;
    if has_warmup(job) {
        let until = Until::Both(share(job.warmup_operations), nanoseconds(job.warmup));
        let warmup = client.work_through(&mut work, started, until);
        warmup.cause?;
        warm_ns = warmup.end_ns;
    }
    let before = backend.counters(connection);
    client.tell_warm(warm_ns);
    let origin = gate.wait();
    let until = match (job.phase, &job.workload) {
        // Its own end is that all records are there.
        (Phase::Load, WorkloadJob::Ycsb(_)) => Until::Either(u64::MAX, u64::MAX),
        // There is nothing to load.
        (Phase::Load, WorkloadJob::Null) => Until::Either(0, u64::MAX),
        (Phase::Run, _) => Until::Either(
            job.operations.map_or(u64::MAX, share),
            job.duration.map_or(u64::MAX, nanoseconds),
        ),
    };
    let part = client.work_through(&mut work, origin, until);
    let counters = backend
        .counters(connection)
        .into_iter()
        .map(|(name, after)| (name, after - before.get(name).unwrap_or(&0.0)))
        .collect();
    Ok(Ending { part, counters })
}

fn has_warmup(job: &Job) -> bool {
    job.warmup_operations > 0 || !job.warmup.is_zero()
}

/// Collects what clients record, from their start to the result.
struct Collector<'a> {
    job: &'a Job,
    options: &'a Options<'a>,
    operations: Vec<&'static str>,
    output: Output,
    /// The part that goes on: the warm-up, then the measured part.
    part: Part,
    times: Times,
    warmup: Warmup,
    ends: Ends,
    cpu: Cpu,
}

/// A warm-up or a measured part.
struct Part {
    warmup: bool,
    origin: Instant,
    origin_ns: u64,
    timeline: Timeline,
    /// The latest end of a client's last operation, in ns since the origin.
    end_ns: u64,
    /// What progress was last shown: when, and how many operations.
    shown: (Duration, u64),
}

/// How the clients ended.
#[derive(Default)]
struct Ends {
    failure: Option<Failure>,
    halted: bool,
    timed_out: bool,
    counters: Status,
}

impl Part {
    fn begin(warmup: bool, clients: u32, operations: usize) -> Self {
        Self {
            warmup,
            origin: Instant::now(),
            origin_ns: now_ns(),
            timeline: Timeline::new(clients as usize, operations),
            end_ns: 0,
            shown: (Duration::ZERO, 0),
        }
    }
}

impl<'a> Collector<'a> {
    fn new(
        job: &'a Job,
        options: &'a Options<'a>,
        operations: Vec<&'static str>,
        output: Output,
    ) -> Self {
        Self {
            part: Part::begin(true, job.clients, operations.len()),
            job,
            options,
            operations,
            output,
            times: Times::default(),
            warmup: Warmup::default(),
            ends: Ends::default(),
            cpu: Cpu::default(),
        }
    }

    /// Clients are about to be started.
    fn start(&mut self) -> Instant {
        self.part = Part::begin(true, self.job.clients, self.operations.len());
        self.times.started_ns = self.part.origin_ns;
        self.part.origin
    }

    /// Whether nothing went wrong so far and nothing was cut short.
    fn complete(&self) -> bool {
        self.ends.failure.is_none() && !self.ends.halted
    }

    /// The first failure is the one that is reported; those after it may follow from it.
    fn fail(&mut self, failure: Failure) {
        self.ends.failure.get_or_insert(failure);
    }

    /// Takes messages until all clients have ended, and opens the gate once all of them are warm.
    fn collect(
        &mut self,
        messages: &Receiver<Message>,
        gate: &Gate,
        progress: &[Progress],
    ) -> io::Result<()> {
        let (mut warm, mut done) = (0, 0);
        let mut before = Cpu::default();
        while done < self.job.clients {
            let due = self.part.shown.0 + self.job.interval;
            match messages.recv_timeout(due.saturating_sub(self.part.origin.elapsed())) {
                Ok(Message::Interval {
                    client,
                    index,
                    complete_below,
                    recording,
                }) => {
                    self.part
                        .timeline
                        .add(client, index, complete_below, *recording);
                    self.write_complete()?;
                }
                Ok(Message::Warm { client, end_ns }) => {
                    warm += 1;
                    self.part.end_ns = self.part.end_ns.max(end_ns);
                    self.part.timeline.end_client(client);
                }
                Ok(Message::Done { client, ending }) => {
                    done += 1;
                    self.part.timeline.end_client(client);
                    if self.part.warmup {
                        warm += 1;
                    }
                    self.take_ending(ending);
                    self.write_complete()?;
                }
                Err(RecvTimeoutError::Timeout) => self.show(progress),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.part.warmup && warm == self.job.clients {
                self.end_warmup()?;
                before = cpu_so_far();
                gate.open(self.part.origin);
            }
        }
        let after = cpu_so_far();
        self.cpu = Cpu {
            user_s: after.user_s - before.user_s,
            system_s: after.system_s - before.system_s,
        };
        self.write_complete()
    }

    fn take_ending(&mut self, ending: Result<Ending, Failure>) {
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.fail(failure),
        };
        self.part.end_ns = self.part.end_ns.max(ending.part.end_ns);
        for (name, value) in ending.counters {
            *self.ends.counters.entry(name).or_default() += value;
        }
        match ending.part.cause {
            Ok(Cause::Operations) => {}
            Ok(Cause::Duration) => self.ends.timed_out = true,
            Ok(Cause::Halt) => self.ends.halted = true,
            Err(failure) => self.fail(failure),
        }
    }

    /// All clients are warm: begins the measured part.
    fn end_warmup(&mut self) -> io::Result<()> {
        if has_warmup(self.job) {
            self.write_complete()?;
            let total = self.part.timeline.total.total();
            self.warmup = Warmup {
                operations: total.latency.len(),
                errors: total.errors.by_name(),
                elapsed_s: Duration::from_nanos(self.part.end_ns).as_secs_f64(),
            };
        }
        self.part = Part::begin(false, self.job.clients, self.operations.len());
        self.times.measured_from_ns = self.part.origin_ns;
        Ok(())
    }

    /// Writes down the intervals that all clients have left behind.
    fn write_complete(&mut self) -> io::Result<()> {
        let part = &mut self.part;
        let interval_ns = nanoseconds(self.job.interval);
        while let Some((index, recording)) = part.timeline.next_complete() {
            let start_ns = index * interval_ns;
            // Only the last interval of a part ends with the part.
            let end_ns = if part.timeline.is_drained() {
                part.end_ns.clamp(start_ns, start_ns + interval_ns)
            } else {
                start_ns + interval_ns
            };
            let span = Span {
                start_ns: part.origin_ns + start_ns,
                end_ns: part.origin_ns + end_ns,
                warmup: part.warmup,
            };
            self.output.interval(span, &recording)?;
        }
        Ok(())
    }

    /// Prints how far the run is. Where nobody reads, the run goes on.
    fn show(&mut self, progress: &[Progress]) {
        let elapsed = self.part.origin.elapsed();
        let operations: u64 = progress.iter().map(Progress::get).sum();
        let (last_shown, last_operations) = self.part.shown;
        // Back onto the grid: one that was missed is not made up.
        let missed_ns = elapsed.as_nanos() % self.job.interval.as_nanos();
        let on_grid =
            elapsed.saturating_sub(Duration::from_nanos(u64::try_from(missed_ns).unwrap_or(0)));
        self.part.shown = (on_grid, operations);
        if !self.options.progress {
            return;
        }
        let line = serde_json::json!({
            "elapsed_s": elapsed.as_secs_f64(),
            "operations": operations,
            "throughput_per_s": operations.saturating_sub(last_operations) as f64
                / elapsed.saturating_sub(last_shown).as_secs_f64().max(1e-9),
            "phase": match (self.job.phase, self.part.warmup) {
                (Phase::Load, _) => "load",
                (Phase::Run, true) => "warmup",
                (Phase::Run, false) => "measured",
            },
        });
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// Writes the result.
    fn finish(mut self, backend: BackendReport) -> io::Result<DriveResult> {
        // What never began ended when it should have begun.
        let now = now_ns();
        for time in [&mut self.times.started_ns, &mut self.times.measured_from_ns] {
            if *time == 0 {
                *time = now;
            }
        }
        let end_ns = if self.part.warmup {
            0
        } else {
            self.part.end_ns
        };
        self.times.ended_ns = self.times.measured_from_ns + end_ns;
        let ended_by = if self.ends.failure.is_some() {
            EndedBy::Error
        } else if self.ends.halted {
            EndedBy::Signal
        } else if self.ends.timed_out {
            EndedBy::Duration
        } else {
            EndedBy::Operations
        };
        let timed_out = ended_by == EndedBy::Duration;
        self.times.elapsed_s = match self.job.duration {
            Some(duration) if timed_out => duration,
            _ => Duration::from_nanos(end_ns),
        }
        .as_secs_f64();
        let elapsed_s = self.times.elapsed_s;
        let measured = &self.part.timeline.total;
        let result = DriveResult::new(
            ended_by,
            self.ends.failure,
            self.job,
            self.times,
            Measured {
                warmup: self.warmup,
                operations: self
                    .operations
                    .iter()
                    .zip(&measured.series)
                    .map(|(name, series)| (*name, Figures::new(series, elapsed_s, timed_out)))
                    .collect(),
                total: Figures::new(&measured.total(), elapsed_s, timed_out),
                cpu: self.cpu,
            },
            backend,
            self.options.versions.clone(),
        );
        self.output.finish(&result)?;
        Ok(result)
    }
}

/// CPU time of this process since it began; the kernel always knows it.
fn cpu_so_far() -> Cpu {
    getrusage(UsageWho::RUSAGE_SELF).map_or_else(
        |_| Cpu::default(),
        |usage| Cpu {
            user_s: usage.user_time().num_microseconds() as f64 / 1e6,
            system_s: usage.system_time().num_microseconds() as f64 / 1e6,
        },
    )
}

fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, nanoseconds)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
