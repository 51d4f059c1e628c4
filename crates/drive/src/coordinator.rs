//! Starts the clients, lets them go together, collects what they record and writes it down.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use dyno_load::share;
use dyno_sql::Interrupter;

use crate::attempts::Attempts;
use crate::backend::{
    Backend, BackendReport, Berkeley, Glass, Mysql, Null, Postgresql, SqlBackend, Sqlite, Status,
};
use crate::client::{Cause, Client, Ending, Message, Progress, Turn, Until};
use crate::clock::{cpu_so_far, instant_at, nanoseconds, now_ns};
use crate::failure::{ErrorKind, Failure};
use crate::gate::Gate;
use crate::job::{BackendJob, Job, Pace, Phase, WorkloadJob};
use crate::output::{Output, Span};
use crate::record::Recording;
use crate::result::{Cpu, DriveResult, EndedBy, Figures, Measured, OpenLoop, Times, Warmup};
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::work::{
    BerkeleyLoad, Companion, Findings, GlassLoad, Inspection, LedgerCheck, LedgerCreate, LedgerRun,
    NullRun, Plan, TpccCheck, TpccLoad, TpccRun, Work, YcsbBackend, YcsbLoad, YcsbRun,
};

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

/// How long drivers that measure together wait for the last operations of each other's warm-up.
const SETTLING: Duration = Duration::from_secs(1);

/// How long a run that is to end waits for answers that are under way.
const PATIENCE: Duration = Duration::from_secs(1);

/// Carries out a job. Fails only where the result folder cannot be written: what goes wrong with the
/// backend stands in the result.
pub fn drive(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match &job.backend {
        BackendJob::Sqlite(_) => drive_on_sql::<Sqlite>(job, options),
        BackendJob::Mysql(_) => drive_on_sql::<Mysql>(job, options),
        BackendJob::Postgresql(_) => drive_on_sql::<Postgresql>(job, options),
        BackendJob::Glass(_) => drive_on_glass(job, options),
        BackendJob::Berkeley(_) => drive_on_berkeley(job, options),
        BackendJob::Null(_) => drive_on_any::<Null>(job, options),
    }
}

fn drive_on_sql<B: SqlBackend>(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match (&job.workload, job.phase) {
        (WorkloadJob::Tpcc(tpcc), Phase::Load) => {
            carry_out::<B, _>(job, options, &TpccLoad::new(tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Run) => {
            carry_out::<B, _>(job, options, &TpccRun::new(job, tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Check) => {
            inspect::<B, _>(job, options, &TpccCheck::new(tpcc))
        }
        (WorkloadJob::Ledger(ledger), Phase::Load) => {
            carry_out::<B, _>(job, options, &LedgerCreate::new(ledger))
        }
        (WorkloadJob::Ledger(ledger), Phase::Run) => {
            carry_out::<B, _>(job, options, &LedgerRun::new(job, ledger, options.out))
        }
        (WorkloadJob::Ledger(ledger), Phase::Check) => {
            inspect::<B, _>(job, options, &LedgerCheck::new(job, ledger))
        }
        (WorkloadJob::Ycsb(_) | WorkloadJob::Null, _) => drive_on_any::<B>(job, options),
    }
}

fn drive_on_glass(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match (&job.workload, job.phase) {
        (WorkloadJob::Tpcc(tpcc), Phase::Load) => {
            carry_out::<Glass, _>(job, options, &GlassLoad::new(tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Run) => {
            carry_out::<Glass, _>(job, options, &TpccRun::new(job, tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Check) => {
            inspect::<Glass, _>(job, options, &TpccCheck::new(tpcc))
        }
        _ => drive_on_any::<Glass>(job, options),
    }
}

fn drive_on_berkeley(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match (&job.workload, job.phase) {
        (WorkloadJob::Tpcc(tpcc), Phase::Load) => {
            carry_out::<Berkeley, _>(job, options, &BerkeleyLoad::new(tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Run) => {
            carry_out::<Berkeley, _>(job, options, &TpccRun::new(job, tpcc))
        }
        (WorkloadJob::Tpcc(tpcc), Phase::Check) => {
            inspect::<Berkeley, _>(job, options, &TpccCheck::new(tpcc))
        }
        _ => drive_on_any::<Berkeley>(job, options),
    }
}

fn drive_on_any<B: YcsbBackend>(job: &Job, options: &Options) -> io::Result<DriveResult> {
    match (&job.workload, job.phase) {
        (WorkloadJob::Ycsb(ycsb), Phase::Load) => {
            carry_out::<B, _>(job, options, &YcsbLoad::new(ycsb, job.seed))
        }
        (WorkloadJob::Ycsb(ycsb), _) => carry_out::<B, _>(job, options, &YcsbRun::new(job, ycsb)),
        // The door lets no other workload in to a backend that takes no SQL.
        _ => carry_out::<B, _>(job, options, &NullRun::new(job)),
    }
}

fn carry_out<B: Backend, P: Plan<B>>(
    job: &Job,
    options: &Options,
    plan: &P,
) -> io::Result<DriveResult> {
    let run = Run::new(job, plan.operations());
    let mut collector = Collector::new(&run, options)?;
    let mut report = B::unopened();
    let mut findings = Findings::default();
    match open::<B, P>(job, &options.halt, plan) {
        Ok((backend, connections)) => {
            describe(&mut report, &backend);
            let mut connections =
                run_clients(&run, options, plan, &backend, connections, &mut collector)?;
            report.status.append(&mut collector.ends.counters);
            if collector.is_complete()
                && let Some(first) = connections.first_mut()
                && let Err(failure) = plan.complete(&backend, first)
            {
                collector.fail(failure);
            }
            if collector.is_complete()
                && let Some(first) = connections.first_mut()
            {
                match plan.look(&backend, first) {
                    Ok(found) => findings = found,
                    Err(failure) => collector.fail(failure),
                }
                if let Some(failure) = findings.failure() {
                    collector.fail(failure);
                }
            }
            match backend.close(connections, !collector.is_complete()) {
                Ok(mut status) => report.status.append(&mut status),
                Err(failure) => collector.fail(failure),
            }
        }
        // Waiting for somebody else's lock may have ended because the run was to end.
        Err(_) if options.halt.load(Ordering::Relaxed) => collector.ends.halted = true,
        Err(failure) => collector.fail(failure),
    }
    collector.finish(report, findings)
}

fn open<B: Backend, P: Plan<B>>(
    job: &Job,
    halt: &Arc<AtomicBool>,
    plan: &P,
) -> Result<(B, Vec<B::Connection>), Failure> {
    let (backend, mut connections) = B::open(job, job.clients, halt)?;
    if let Some(first) = connections.first_mut() {
        plan.set_up(&backend, first)?;
    }
    Ok((backend, connections))
}

fn describe<B: Backend>(report: &mut BackendReport, backend: &B) {
    report.effective = backend.effective();
    if let Some(version) = backend.version() {
        report.version = version;
    }
}

/// Looks at the stored data. What does not hold fails the job; the findings stand in the result.
fn inspect<B: Backend, I: Inspection<B>>(
    job: &Job,
    options: &Options,
    inspection: &I,
) -> io::Result<DriveResult> {
    let run = Run::new(job, Vec::new());
    let mut collector = Collector::new(&run, options)?;
    let mut report = B::unopened();
    let mut look = || {
        let (backend, mut connections) = B::open(job, 1, &options.halt)?;
        describe(&mut report, &backend);
        let findings = match connections.first_mut() {
            Some(first) => inspection.inspect(&backend, first)?,
            None => Findings::default(),
        };
        report.status.append(&mut backend.close(connections, true)?);
        Ok(findings)
    };
    match look() {
        Ok(findings) => {
            if let Some(failure) = findings.failure() {
                collector.fail(failure);
            }
            collector.finish(report, findings)
        }
        Err(failure) => {
            collector.fail(failure);
            collector.finish(report, Findings::default())
        }
    }
}

/// What a job's clients and their coordinator share.
struct Run<'a> {
    job: &'a Job,
    operations: Vec<&'static str>,
    /// Of the warm-up and of the measured part; in an open loop.
    schedules: Option<[Schedule; 2]>,
    /// Of the part that goes on.
    timeline: Mutex<Timeline>,
}

impl<'a> Run<'a> {
    fn new(job: &'a Job, operations: Vec<&'static str>) -> Self {
        let schedules = match job.pace {
            Pace::Closed { .. } => None,
            Pace::Open {
                rate_per_s,
                arrivals,
                ..
            } => Some(
                [0, 1].map(|part| Schedule::new(rate_per_s, arrivals, job.driver, job.seed, part)),
            ),
        };
        let empty = Recording::new(operations.len(), schedules.is_some());
        let interval_ns = nanoseconds(job.interval);
        let timeline = Timeline::new(job.clients as usize, empty, interval_ns, u64::MAX);
        Self {
            job,
            operations,
            schedules,
            timeline: Mutex::new(timeline),
        }
    }

    fn timeline(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_warmup(&self) -> bool {
        self.job.warmup_operations > 0 || !self.job.warmup.is_zero()
    }

    /// When the warm-up ends, over all clients.
    fn warmup_end(&self) -> Until {
        Until::Both(self.job.warmup_operations, nanoseconds(self.job.warmup))
    }

    /// When the measured part ends, over all clients.
    fn measured_end(&self) -> Until {
        match self.job.phase {
            Phase::Run => Until::Either(
                self.job.operations.unwrap_or(u64::MAX),
                self.job.duration.map_or(u64::MAX, nanoseconds),
            ),
            // Its own end is that everything is there.
            Phase::Load | Phase::Check => Until::Either(u64::MAX, u64::MAX),
        }
    }

    /// How one client takes its turns in a part that all together end with `until`.
    fn turn(&self, client: u32, part: usize, until: Until) -> Turn<'_> {
        if let Some(schedules) = &self.schedules {
            return Turn::Open {
                schedule: &schedules[part],
                until,
                drain_ns: match (self.job.pace, until) {
                    (Pace::Open { drain, .. }, Until::Either(..)) => nanoseconds(drain),
                    // What comes after a warm-up is not to wait for it.
                    _ => 0,
                },
            };
        }
        let own = |operations| match operations {
            u64::MAX => u64::MAX,
            _ => share(operations, u64::from(self.job.clients), u64::from(client)),
        };
        Turn::Closed {
            think: match self.job.pace {
                Pace::Closed { think } => think,
                Pace::Open { .. } => Duration::ZERO,
            },
            until: match until {
                Until::Both(operations, end) => Until::Both(own(operations), end),
                Until::Either(operations, end) => Until::Either(own(operations), end),
            },
        }
    }
}

/// Runs all clients to their ends, and gives their connections back.
fn run_clients<B: Backend, P: Plan<B>>(
    run: &Run,
    options: &Options,
    plan: &P,
    backend: &B,
    connections: Vec<B::Connection>,
    collector: &mut Collector,
) -> io::Result<Vec<B::Connection>> {
    let (gate, halt) = (&Gate::default(), &*options.halt);
    let (job, over) = (run.job, &AtomicBool::new(false));
    let companions = match plan.companions(backend, over) {
        Ok(companions) => companions,
        Err(failure) => {
            collector.fail(failure);
            return Ok(connections);
        }
    };
    let progress: Vec<Progress> = connections.iter().map(|_| Progress::default()).collect();
    let (sender, receiver) = channel();
    let started = collector.start();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((number, mut connection), progress) in (0..).zip(connections).zip(&progress) {
            let client = Client {
                number,
                operations: &run.operations,
                halt,
                errors_are_fatal: job.phase == Phase::Load,
                progress,
                messages: sender.clone(),
                timeline: &run.timeline,
                interval_ns: nanoseconds(job.interval),
                backoff: job.reconnect,
                seed: job.seed,
                faults: job.faults.then_some(options.out),
            };
            let sender = sender.clone();
            let body = move || {
                let ending = catch_unwind(AssertUnwindSafe(|| {
                    run_client(run, &client, plan, backend, &mut connection, started, gate)
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
        let beside = Beside::start(scope, companions, collector);
        let collected = collector.collect(&receiver, gate, &progress, backend);
        if collected.is_err() {
            halt.store(true, Ordering::Relaxed);
            gate.open(Instant::now());
            backend.interrupt();
        }
        over.store(true, Ordering::Relaxed);
        beside.end(collector);
        // A thread catches its own panics, so that each gives its connection back.
        let connections = threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect();
        collected.map(|()| connections)
    })
}

/// The threads of a plan's companions.
struct Beside<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Result<(), Failure>>>,
    interrupters: Vec<Interrupter>,
}

impl<'scope> Beside<'scope> {
    fn start<'s: 'scope>(
        scope: &'scope Scope<'scope, '_>,
        companions: Vec<Companion<'s>>,
        collector: &mut Collector,
    ) -> Self {
        let mut beside = Self {
            threads: Vec::new(),
            interrupters: Vec::new(),
        };
        for companion in companions {
            match thread::Builder::new().spawn_scoped(scope, companion.body) {
                Ok(thread) => beside.threads.push(thread),
                Err(error) => {
                    let message = format!("starting a thread beside the clients: {error}");
                    collector.fail(Failure::new("threads", message));
                }
            }
            beside.interrupters.push(companion.interrupter);
        }
        beside
    }

    /// They were told that it is over: waits for them, and interrupts those that wait for an answer.
    fn end(self, collector: &mut Collector) {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.threads.iter().all(ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK_EVERY);
        }
        self.interrupters.iter().for_each(Interrupter::interrupt);
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => collector.fail(failure),
                Err(_) => collector.fail(Failure::new(
                    "internal",
                    "a thread beside the clients panicked; its message stands above",
                )),
            }
        }
    }
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
    run: &Run,
    client: &Client,
    plan: &P,
    backend: &B,
    connection: &mut B::Connection,
    started: Instant,
    gate: &Gate,
) -> Result<Ending, Failure> {
    Client::sleep_precisely();
    let mut work = plan.work(client.number, backend, connection)?;
    let mut warm_ns = 0;
    if run.has_warmup() {
        client.sleep_until(started);
        let turn = run.turn(client.number, 0, run.warmup_end());
        let warmup = client.work_through(&mut work, started, turn, None);
        warmup.cause?;
        warm_ns = warmup.end_ns;
    }
    let before = work.counters();
    client.tell_warm(warm_ns);
    let origin = gate.wait();
    client.sleep_until(origin);
    let turn = run.turn(client.number, 1, run.measured_end());
    let mut attempts = client
        .faults
        .map(|folder| {
            Attempts::create(
                folder,
                run.job.driver.number,
                client.number,
                client.operations,
            )
        })
        .transpose()?;
    let part = client.work_through(&mut work, origin, turn, attempts.as_mut());
    if let Some(attempts) = attempts {
        attempts.finish()?;
    }
    let counters = growth(work.counters(), &before);
    Ok(Ending { part, counters })
}

fn growth(after: Status, before: &Status) -> Status {
    after
        .into_iter()
        .map(|(name, after)| (name, after - before.get(name).unwrap_or(&0.0)))
        .collect()
}

/// Collects what clients record, from their start to the result.
struct Collector<'a> {
    run: &'a Run<'a>,
    options: &'a Options<'a>,
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
    /// The latest end of a client's last operation, in ns since the origin.
    end_ns: u64,
    /// What progress was last shown: when, and how many operations.
    shown: (Duration, u64),
    cpu: CpuTime,
}

/// CPU time of this process over a part, shared out to its intervals, which are written down later than they end.
struct CpuTime {
    began: Cpu,
    /// By the time since the part began.
    readings: VecDeque<(u64, Cpu)>,
    /// What the intervals that were written down so far have.
    given: Cpu,
}

impl CpuTime {
    fn begin() -> Self {
        let began = cpu_so_far();
        Self {
            began,
            readings: VecDeque::from([(0, Cpu::default())]),
            given: Cpu::default(),
        }
    }

    fn read(&mut self, at_ns: u64) {
        self.readings.push_back((at_ns, cpu_so_far() - self.began));
    }

    /// All of it up to the last reading.
    fn total(&self) -> Cpu {
        self.readings
            .back()
            .map_or_else(Cpu::default, |last| last.1)
    }

    /// Of an interval that ends at a time: on a straight line between the readings around it. The last one has all
    /// that is left.
    fn of_interval(&mut self, end_ns: u64, is_last: bool) -> Cpu {
        let so_far = if is_last {
            self.total()
        } else {
            self.at(end_ns)
        };
        let spent = so_far - self.given;
        self.given = so_far;
        spent
    }

    fn at(&mut self, at_ns: u64) -> Cpu {
        while self.readings.get(1).is_some_and(|next| next.0 <= at_ns) {
            self.readings.pop_front();
        }
        let (Some(&(from_ns, before)), Some(&(to_ns, after))) =
            (self.readings.front(), self.readings.get(1))
        else {
            return self.total();
        };
        let share = at_ns.saturating_sub(from_ns) as f64 / (to_ns - from_ns) as f64;
        let between = |before: f64, after: f64| before + share * (after - before);
        Cpu {
            user_s: between(before.user_s, after.user_s),
            system_s: between(before.system_s, after.system_s),
        }
    }
}

/// How the clients ended.
#[derive(Default)]
struct Ends {
    failure: Option<Failure>,
    halted: bool,
    timed_out: bool,
    /// Of the part that goes on: the first of each kind, and what it was.
    errors: BTreeMap<ErrorKind, String>,
    reconnects: u64,
    counters: Status,
}

impl Part {
    fn begin(warmup: bool, origin: Instant) -> Self {
        let ahead = origin.saturating_duration_since(Instant::now());
        Self {
            warmup,
            origin,
            origin_ns: now_ns() + nanoseconds(ahead),
            end_ns: 0,
            shown: (Duration::ZERO, 0),
            cpu: CpuTime::begin(),
        }
    }
}

impl<'a> Collector<'a> {
    fn new(run: &'a Run<'a>, options: &'a Options<'a>) -> io::Result<Self> {
        Ok(Self {
            part: Part::begin(true, Instant::now()),
            run,
            options,
            output: Output::create(
                options.out,
                run.operations
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect(),
                now_ns(),
            )?,
            times: Times::default(),
            warmup: Warmup::default(),
            ends: Ends::default(),
            cpu: Cpu::default(),
        })
    }

    /// Clients are about to be started; gives the time at which they begin.
    fn start(&mut self) -> Instant {
        let now = Instant::now();
        let origin = self.run.job.start_at_ns.map_or(now, instant_at);
        if origin < now {
            self.fail(Failure::new(
                "late_start",
                format!(
                    "the driver was ready {:?} after start_at_ns: give it more time to connect",
                    now - origin
                ),
            ));
            self.options.halt.store(true, Ordering::Relaxed);
        }
        self.part = Part::begin(true, origin.max(now));
        self.times.started_ns = self.part.origin_ns;
        self.part.origin
    }

    /// Whether nothing went wrong so far and nothing was cut short.
    fn is_complete(&self) -> bool {
        self.ends.failure.is_none() && !self.ends.halted
    }

    /// The first failure is the one that is reported, as those after it may follow from it; unless it
    /// follows from a later one, of a client that was slower to say it.
    fn fail(&mut self, failure: Failure) {
        match &self.ends.failure {
            Some(first) if !first.follows_from(&failure) => {}
            _ => self.ends.failure = Some(failure),
        }
    }

    /// Takes messages until all clients have ended, and opens the gate once all of them are warm.
    fn collect<B: Backend>(
        &mut self,
        messages: &Receiver<Message>,
        gate: &Gate,
        progress: &[Progress],
        backend: &B,
    ) -> io::Result<()> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let clients = self.run.job.clients;
        let (mut warm, mut done) = (0, 0);
        let mut halted_at = None;
        while done < clients {
            let due = self.part.shown.0 + self.run.job.interval;
            let wait = due.saturating_sub(self.part.origin.elapsed());
            match messages.recv_timeout(wait.min(LOOK_EVERY)) {
                Ok(Message::Failed(failed)) => {
                    self.output.failed(&failed)?;
                    let operation = self.run.operations[failed.index];
                    self.ends
                        .errors
                        .entry(failed.kind)
                        .or_insert_with(|| format!("{operation}: {}", failed.message));
                }
                Ok(Message::Warm { client, end_ns }) => {
                    warm += 1;
                    self.part.end_ns = self.part.end_ns.max(end_ns);
                    self.run.timeline().end_client(client);
                }
                Ok(Message::Done { client, ending }) => {
                    done += 1;
                    self.run.timeline().end_client(client);
                    if self.part.warmup {
                        warm += 1;
                    }
                    self.take_ending(ending);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.part.origin.elapsed() >= due {
                self.write_complete()?;
                self.show(progress);
            }
            if self.options.halt.load(Ordering::Relaxed) {
                let since: &mut Instant = halted_at.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    backend.interrupt();
                }
            }
            if self.part.warmup && warm == clients {
                self.end_warmup()?;
                backend.begin(self.part.origin);
                gate.open(self.part.origin);
            }
        }
        self.write_complete()?;
        self.cpu = self.part.cpu.total();
        Ok(())
    }

    fn take_ending(&mut self, ending: Result<Ending, Failure>) {
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.fail(failure),
        };
        self.part.end_ns = self.part.end_ns.max(ending.part.end_ns);
        self.ends.reconnects += ending.part.reconnects;
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
        let mut origin = Instant::now();
        if self.run.has_warmup() {
            self.write_complete()?;
            let total = self.run.timeline().total.total();
            self.warmup = Warmup {
                operations: total.latency.len(),
                errors: total.errors.by_name(),
                elapsed_s: Duration::from_nanos(self.part.end_ns).as_secs_f64(),
            };
        }
        if self.run.job.start_at_ns.is_some() {
            let settling = if self.run.has_warmup() {
                SETTLING
            } else {
                Duration::ZERO
            };
            let together = self.part.origin + self.run.job.warmup + settling;
            if together < origin {
                self.fail(Failure::new(
                    "late_start",
                    format!(
                        "the driver was ready to measure {:?} after the others should have begun",
                        origin - together
                    ),
                ));
                self.options.halt.store(true, Ordering::Relaxed);
            }
            origin = together.max(origin);
        }
        self.part = Part::begin(false, origin);
        self.ends.errors.clear();
        self.times.measured_from_ns = self.part.origin_ns;
        self.run
            .timeline()
            .restart(self.run.measured_end().window_ns());
        Ok(())
    }

    /// Writes down the intervals that all clients have left behind.
    fn write_complete(&mut self) -> io::Result<()> {
        let part = &mut self.part;
        part.cpu.read(nanoseconds(part.origin.elapsed()));
        let interval_ns = nanoseconds(self.run.job.interval);
        loop {
            let mut timeline = self.run.timeline();
            let Some((index, recording)) = timeline.next_complete() else {
                return Ok(());
            };
            let drained = timeline.is_drained();
            // Clients need the lock more than the disk does.
            drop(timeline);
            let start_ns = index * interval_ns;
            // Only the last interval of a part ends with the part.
            let end_ns = if drained {
                part.end_ns.clamp(start_ns, start_ns + interval_ns)
            } else {
                start_ns + interval_ns
            };
            let span = Span {
                start_ns: part.origin_ns + start_ns,
                end_ns: part.origin_ns + end_ns,
                warmup: part.warmup,
                cpu: Some(part.cpu.of_interval(end_ns, drained)),
            };
            self.output.interval(span, &recording)?;
        }
    }

    /// Prints how far the run is. Where nobody reads, the run goes on.
    fn show(&mut self, progress: &[Progress]) {
        let elapsed = self.part.origin.elapsed();
        let operations: u64 = progress.iter().map(Progress::get).sum();
        let (last_shown, last_operations) = self.part.shown;
        // Back onto the grid: one that was missed is not made up.
        let missed_ns = elapsed.as_nanos() % self.run.job.interval.as_nanos();
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
            "phase": match (self.run.job.phase, self.part.warmup) {
                (Phase::Load, _) => "load",
                (Phase::Check, _) => "check",
                (Phase::Run, true) => "warmup",
                (Phase::Run, false) => "measured",
            },
        });
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// Whether so much failed that what succeeded does not tell of what was asked for.
    fn too_many_failed(&self) -> Option<Failure> {
        let total = self.run.timeline().total.total();
        let (failed, most) = (total.errors.total(), self.run.job.max_share_failed);
        let all = failed + total.latency.len();
        let kind = total.errors.commonest()?;
        if failed < all && failed as f64 <= most * all as f64 {
            return None;
        }
        let allowed = if failed == all {
            "none succeeded".to_owned()
        } else {
            let share = failed as f64 / all as f64 * 100.0;
            format!("{share:.2} %, at most {:.2} % allowed", most * 100.0)
        };
        Some(Failure::new(
            "operations_failed",
            format!(
                "{failed} of {all} operations failed ({allowed}), most of them as {}; the first of these, {}",
                kind.name(),
                self.ends.errors.get(&kind).map_or("", String::as_str)
            ),
        ))
    }

    /// How far an open loop kept to its schedule, and whether that was too little.
    fn open_loop(&self, end_ns: u64) -> Option<(OpenLoop, Option<Failure>)> {
        let Pace::Open {
            rate_per_s,
            arrivals,
            min_share_sent,
            ..
        } = self.run.job.pace
        else {
            return None;
        };
        let schedule = &self.run.schedules.as_ref()?[1];
        let until = match self.run.measured_end() {
            Until::Either(operations, most_ns) if !self.is_complete() => {
                Until::Either(operations, end_ns.min(most_ns))
            }
            until => until,
        };
        let (taken, left) = schedule.taken_and_left(until);
        let open = OpenLoop::new(
            rate_per_s,
            arrivals,
            (taken + left, schedule.late(), left),
            self.run.timeline().total.lag.as_ref(),
        );
        let in_time = open.share_in_time();
        let not_reached = (in_time < min_share_sent).then(|| {
            Failure::new(
                "rate_not_reached",
                format!(
                    "{} of {} requests that were due were not sent in time ({:.2} % sent, at least {:.2} % \
                     asked for): the store or the driver cannot keep up with {rate_per_s} requests per second",
                    left + schedule.late(),
                    taken + left,
                    in_time * 100.0,
                    min_share_sent * 100.0
                ),
            )
        });
        Some((open, not_reached))
    }

    /// Writes the result.
    fn finish(mut self, backend: BackendReport, findings: Findings) -> io::Result<DriveResult> {
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
        let (open, not_reached) = self.open_loop(end_ns).unzip();
        if self.is_complete() {
            // A rate may not be reached because of what failed.
            if let Some(failure) = self.too_many_failed().or(not_reached.flatten()) {
                self.fail(failure);
            }
        }
        // What was cut short after its time was over has a rate of that time all the same.
        let timed_out = ended_by == EndedBy::Duration
            || ended_by != EndedBy::Operations && end_ns > self.run.measured_end().window_ns();
        self.times.elapsed_s = match self.run.job.duration {
            Some(duration) if timed_out => duration,
            _ => Duration::from_nanos(end_ns),
        }
        .as_secs_f64();
        let elapsed_s = self.times.elapsed_s;
        let timeline = self.run.timeline();
        let measured = &timeline.total;
        let result = DriveResult::new(
            ended_by,
            self.ends.failure,
            self.run.job,
            self.times,
            Measured {
                warmup: self.warmup,
                operations: self
                    .run
                    .operations
                    .iter()
                    .zip(&measured.series)
                    .map(|(name, series)| (*name, Figures::new(series, elapsed_s, timed_out)))
                    .collect(),
                total: Figures::new(&measured.total(), elapsed_s, timed_out),
                open,
                reconnects: self.ends.reconnects,
                findings,
                cpu: self.cpu,
            },
            backend,
            self.options.versions.clone(),
        );
        self.output.finish(&result)?;
        Ok(result)
    }
}
