//! One client: a loop around its work, and what it tells the coordinator.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_load::Random;

use crate::attempts::Attempts;
use crate::backend::Status;
use crate::clock::nanoseconds;
use crate::failure::{ErrorKind, Failure};
use crate::job::Backoff;
use crate::output::FailedOperation;
use crate::record::Sample;
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::work::Work;
use dyno_sql::Error as OperationError;

/// What clients tell the coordinator. A coordinator that has gone is no longer interested.
#[derive(Debug)]
pub enum Message {
    /// An operation failed.
    Failed(FailedOperation),
    /// The warm-up is over for this client; it waits at the gate.
    Warm {
        /// Who.
        client: u32,
        /// When its last operation ended, in ns since the warm-up began.
        end_ns: u64,
    },
    /// The client has ended; nothing more will come from it.
    Done {
        /// Who.
        client: u32,
        /// How.
        ending: Result<Ending, Failure>,
    },
}

/// How a part of a run ended for one client.
#[derive(Debug)]
pub struct PartEnd {
    /// When its last operation ended, in ns since the part began.
    pub end_ns: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Why it was the last.
    pub cause: Result<Cause, Failure>,
}

/// How a client ended.
#[derive(Debug)]
pub struct Ending {
    /// Of the measured part.
    pub part: PartEnd,
    /// Growth of its connection's counters, and its work's own.
    pub counters: Status,
}

/// Why a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// All its operations were done.
    Operations,
    /// Its time was over.
    Duration,
    /// It was told to stop.
    Halt,
}

/// When a part of a run ends: for one client, or for all together.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Both of so many operations and so many ns are reached: a warm-up.
    Both(u64, u64),
    /// Either of them is: a measured part.
    Either(u64, u64),
}

impl Until {
    /// When a measured part's time is over.
    #[must_use]
    pub const fn window_ns(self) -> u64 {
        match self {
            Self::Both(..) => u64::MAX,
            Self::Either(_, end) => end,
        }
    }

    /// Operations and ns.
    #[must_use]
    pub const fn bounds(self) -> (u64, u64) {
        match self {
            Self::Both(most, end) | Self::Either(most, end) => (most, end),
        }
    }

    /// Why it is over after so many operations and ns, if it is.
    #[inline]
    #[must_use]
    pub const fn reached(self, operations: u64, elapsed_ns: u64) -> Option<Cause> {
        match self {
            Self::Both(most, end) if operations >= most && elapsed_ns >= end => {
                Some(Cause::Operations)
            }
            Self::Either(most, _) if operations >= most => Some(Cause::Operations),
            Self::Either(_, end) if elapsed_ns >= end => Some(Cause::Duration),
            Self::Both(..) | Self::Either(..) => None,
        }
    }
}

/// When a client's next request is made.
#[derive(Clone, Copy, Debug)]
pub enum Turn<'a> {
    /// After its answer and a pause; until so many operations of its own.
    Closed {
        /// Between an answer and the next request.
        think: Duration,
        /// The end of its part.
        until: Until,
    },
    /// When the schedule says; until the end of the schedule.
    Open {
        /// Shared by all clients.
        schedule: &'a Schedule,
        /// The end of everybody's part.
        until: Until,
        /// How long after that what was due before it is still sent.
        drain_ns: u64,
    },
}

/// A counter that only its client writes, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress(AtomicU64);

impl Progress {
    /// Operations of the present part, failed ones included.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a client needs besides its work.
#[derive(Debug)]
pub struct Client<'a> {
    /// Its number, from 0.
    pub number: u32,
    /// The kinds of operations, by name.
    pub operations: &'a [&'static str],
    /// Ends the loop when it becomes true.
    pub halt: &'a AtomicBool,
    /// Whether any error at all ends the run: a data set must be complete.
    pub errors_are_fatal: bool,
    /// Shown while the run goes on.
    pub progress: &'a Progress,
    /// To the coordinator.
    pub messages: Sender<Message>,
    /// Where it records what it did.
    pub timeline: &'a Mutex<Timeline>,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Pauses between attempts to connect anew.
    pub backoff: Backoff,
    /// What jitter follows from.
    pub seed: u64,
    /// Where a fault is struck meanwhile: the folder that attempts are written to. No operation's error ends the run
    /// then.
    pub faults: Option<&'a Path>,
}

impl Client<'_> {
    /// Tells that the warm-up is over, and when its last operation ended.
    pub fn tell_warm(&self, end_ns: u64) {
        let _ = self.messages.send(Message::Warm {
            client: self.number,
            end_ns,
        });
    }

    /// Works from `origin` on until the part ends. An operation that is cut off by the end of the run counts
    /// neither as done nor as an error; what ends a run by itself was not cut off.
    ///
    /// Where there are `attempts` to be written down, all of the part are.
    pub fn work_through<W: Work>(
        &self,
        work: &mut W,
        origin: Instant,
        turn: Turn,
        mut attempts: Option<&mut Attempts>,
    ) -> PartEnd {
        let mut notes = Notes::new(self);
        let mut line = Line::new(self);
        let mut clock = PartClock::new(origin);
        let (mut operations, mut end_ns) = (0, 0);
        self.progress.0.store(0, Ordering::Relaxed);
        let cause = loop {
            if self.halt.load(Ordering::Relaxed) {
                break Ok(Cause::Halt);
            }
            if let Turn::Closed { until, .. } = turn
                && let Some(cause) = until.reached(operations, end_ns)
            {
                break Ok(cause);
            }
            let Some(index) = work.prepare() else {
                break Ok(Cause::Operations);
            };
            let mut start_ns = clock.now_ns();
            let mut due_ns = None;
            match turn {
                Turn::Closed { think, .. } => {
                    let pause = work.pause()
                        + if operations > 0 {
                            think
                        } else {
                            Duration::ZERO
                        };
                    if !pause.is_zero() {
                        self.sleep_until(Instant::now() + pause);
                        start_ns = clock.now_ns();
                    }
                }
                Turn::Open {
                    schedule,
                    until,
                    drain_ns,
                } => match schedule.take(until, drain_ns, end_ns) {
                    Ok(due) => {
                        if due > start_ns {
                            notes.fold(due);
                            self.sleep_until(origin + Duration::from_nanos(due));
                            start_ns = clock.now_ns();
                        }
                        due_ns = Some(due);
                    }
                    Err(cause) => break Ok(cause),
                },
            }
            if line.broken {
                self.sleep_until(line.retry_at);
                start_ns = clock.now_ns();
            }
            let reconnects = line.reconnects;
            let answer = line.perform(work);
            end_ns = clock.now_ns();
            if let Err(error) = &answer
                && !self.is_fatal(error.kind)
                && self.halt.load(Ordering::Relaxed)
            {
                break Ok(Cause::Halt);
            }
            let service_ns = end_ns - start_ns;
            // A sleep may end a hair early by another clock.
            let lag_ns = due_ns.map_or(0, |due_ns| start_ns.saturating_sub(due_ns));
            let mut sample = Sample {
                end_ns,
                service_ns,
                lag_ns,
                count: 1,
                index: u16::try_from(index).unwrap_or(u16::MAX),
                error: answer.as_ref().err().map(|error| error.kind),
                reconnected: line.reconnects > reconnects,
            };
            if let Some(attempts) = attempts.as_deref_mut()
                && let Err(failure) = attempts.note(origin, due_ns, &sample)
            {
                break Err(failure);
            }
            match answer {
                Ok(count) => {
                    sample.count = count;
                    notes.push(sample);
                    operations += u64::from(count);
                }
                Err(error) => {
                    notes.push(sample);
                    operations += 1;
                    let took = Duration::from_nanos(lag_ns + service_ns);
                    if let Some(failure) = self.judge(index, Instant::now(), took, error) {
                        break Err(failure);
                    }
                }
            }
            self.progress.0.store(operations, Ordering::Relaxed);
        };
        notes.fold(end_ns);
        PartEnd {
            end_ns,
            reconnects: line.reconnects,
            cause,
        }
    }

    /// Tells of an error, and whether it ends the run.
    #[cold]
    fn judge(
        &self,
        index: usize,
        at: Instant,
        took: Duration,
        error: OperationError,
    ) -> Option<Failure> {
        let failure = (self.is_fatal(error.kind) || self.errors_are_fatal)
            .then(|| Failure::of_operation(self.operations[index], &error));
        let _ = self.messages.send(Message::Failed(FailedOperation {
            client: self.number,
            index,
            at,
            took,
            kind: error.kind,
            message: error.message,
        }));
        failure
    }

    /// Whether it ends the run. While a fault is struck a store may say anything, and a client comes back to another
    /// one; a number that could not be noted is no store's doing.
    fn is_fatal(&self, kind: ErrorKind) -> bool {
        if self.faults.is_some() {
            kind == ErrorKind::CannotOpen
        } else {
            kind.is_fatal()
        }
    }

    /// Whether the connection is made anew after it: one that was left at a node which takes no writes any more would
    /// get the same answer for ever.
    fn breaks_connection(&self, kind: ErrorKind) -> bool {
        kind.breaks_connection()
            || self.faults.is_some() && !matches!(kind, ErrorKind::Conflict | ErrorKind::Busy)
    }

    /// Has sleeps of this thread end on time: the kernel otherwise lets them overrun by 50 us to save wake-ups.
    pub fn sleep_precisely() {
        let _ = nix::sys::prctl::set_timerslack(1);
    }

    /// Sleeps, but not longer than the run.
    pub fn sleep_until(&self, time: Instant) {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        loop {
            let now = Instant::now();
            let left = time.saturating_duration_since(now);
            if left.is_zero() || self.halt.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

/// A client's connection as its loop sees it: working, or lost and to be made anew.
struct Line<'a, 'c> {
    client: &'a Client<'c>,
    broken: bool,
    /// Not before this is the next attempt.
    retry_at: Instant,
    pause: Duration,
    reconnects: u64,
    rng: Random,
}

/// Jitter is drawn from streams of random numbers of its own.
const JITTER: u64 = 1 << 41;

impl<'a, 'c> Line<'a, 'c> {
    fn new(client: &'a Client<'c>) -> Self {
        Self {
            client,
            broken: false,
            retry_at: Instant::now(),
            pause: client.backoff.first,
            reconnects: 0,
            rng: Random::new(client.seed, JITTER + u64::from(client.number)),
        }
    }

    /// Performs the operation, on a new connection where the last one was lost.
    #[inline]
    fn perform<W: Work>(&mut self, work: &mut W) -> Result<u32, OperationError> {
        let answer = if self.broken {
            self.mend(work).and_then(|()| work.perform())
        } else {
            work.perform()
        };
        if let Err(error) = &answer
            && self.client.breaks_connection(error.kind)
        {
            self.lose();
        }
        answer
    }

    #[cold]
    fn mend<W: Work>(&mut self, work: &mut W) -> Result<(), OperationError> {
        work.reconnect().map_err(|error| {
            // A server that is starting may refuse anything; the attempts go on whatever it says, unless
            // it says that the account is wrong.
            if error.kind.is_fatal() && error.kind != ErrorKind::AccessDenied {
                OperationError::new(ErrorKind::Connect, error.message)
            } else {
                error
            }
        })?;
        self.broken = false;
        self.pause = self.client.backoff.first;
        self.reconnects += 1;
        Ok(())
    }

    #[cold]
    fn lose(&mut self) {
        self.broken = true;
        // Up to a quarter more, so that the clients do not all come back at once.
        let jitter = 1.0 + self.rng.next_f64() / 4.0;
        self.retry_at = Instant::now() + self.pause.mul_f64(jitter);
        self.pause = (self.pause * 2).min(self.client.backoff.most);
    }
}

/// What a client did lately and has not yet told.
struct Notes<'a, 'c> {
    client: &'a Client<'c>,
    samples: Vec<Sample>,
    interval_end_ns: u64,
}

/// Enough to make the lock cheap, and little enough for hundreds of clients to stay within a cache.
const MOST_NOTES: usize = 128;

impl<'a, 'c> Notes<'a, 'c> {
    fn new(client: &'a Client<'c>) -> Self {
        Self {
            client,
            samples: Vec::with_capacity(MOST_NOTES),
            interval_end_ns: client.interval_ns,
        }
    }

    #[inline]
    fn push(&mut self, sample: Sample) {
        let end_ns = sample.end_ns;
        self.samples.push(sample);
        if self.samples.len() == MOST_NOTES || end_ns >= self.interval_end_ns {
            self.fold(end_ns);
        }
    }

    /// Tells all of it; the next that is done ends at `now_ns` or later.
    fn fold(&mut self, now_ns: u64) {
        let client = self.client;
        client
            .timeline
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(client.number, &self.samples, now_ns);
        self.samples.clear();
        self.interval_end_ns = (now_ns / client.interval_ns + 1) * client.interval_ns;
    }
}

/// The time since a part began, read off the CPU's own counter: a read of the system's clock waits for all
/// that goes before it, which would cost more than an operation's whole preparation.
struct PartClock {
    clock: quanta::Clock,
    origin: Instant,
    /// The counter, and the time since the origin that the system's clock showed with it.
    anchor: (u64, u64),
    last_ns: u64,
}

/// The two clocks are compared anew so often; until then they drift apart by less than a microsecond.
const COMPARE_EVERY_NS: u64 = 10_000_000;

impl PartClock {
    fn new(origin: Instant) -> Self {
        let mut clock = Self {
            clock: quanta::Clock::new(),
            origin,
            anchor: (0, 0),
            last_ns: 0,
        };
        clock.compare();
        clock
    }

    fn compare(&mut self) {
        let since = Instant::now().saturating_duration_since(self.origin);
        self.anchor = (self.clock.raw(), nanoseconds(since));
    }

    /// Never before the time that it gave last.
    #[inline]
    fn now_ns(&mut self) -> u64 {
        let since_ns = self.clock.delta_as_nanos(self.anchor.0, self.clock.raw());
        if since_ns > COMPARE_EVERY_NS {
            self.compare();
            self.last_ns = self.last_ns.max(self.anchor.1);
        } else {
            self.last_ns = self.last_ns.max(self.anchor.1 + since_ns);
        }
        self.last_ns
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use dyno_load::Driver;

    use super::*;
    use crate::job::Arrivals;
    use crate::record::Recording;

    struct Nothing;

    impl Work for Nothing {
        fn prepare(&mut self) -> Option<usize> {
            Some(0)
        }

        fn perform(&mut self) -> Result<u32, OperationError> {
            Ok(1)
        }
    }

    #[test]
    fn a_client_that_waits_for_its_turn_does_not_hold_back_the_intervals_before_it() {
        const INTERVAL_NS: u64 = 10_000_000;
        let timeline = Timeline::new(1, Recording::new(1, true), INTERVAL_NS, u64::MAX);
        let (timeline, halt) = (&Mutex::new(timeline), &AtomicBool::new(false));
        let progress = Progress::default();
        let client = Client {
            number: 0,
            operations: &["nothing"],
            halt,
            errors_are_fatal: false,
            progress: &progress,
            messages: channel().0,
            timeline,
            interval_ns: INTERVAL_NS,
            backoff: Backoff {
                first: Duration::ZERO,
                most: Duration::ZERO,
            },
            seed: 1,
            faults: None,
        };
        // The first is due at once, the second in ten minutes.
        let schedule = Schedule::new(1.0 / 600.0, Arrivals::Constant, Driver::ALONE, 1, 0);
        let turn = Turn::Open {
            schedule: &schedule,
            until: Until::Either(2, u64::MAX),
            drain_ns: 0,
        };
        let complete = thread::scope(|scope| {
            scope.spawn(move || client.work_through(&mut Nothing, Instant::now(), turn, None));
            let since = Instant::now();
            let complete = loop {
                let complete = timeline.lock().unwrap().next_complete();
                if complete.is_some() || since.elapsed() > Duration::from_secs(5) {
                    break complete;
                }
                thread::sleep(Duration::from_millis(5));
            };
            halt.store(true, Ordering::Relaxed);
            complete
        });
        let (number, recording) = complete.unwrap();
        assert_eq!((number, recording.series[0].latency.len()), (0, 1));
    }
}
