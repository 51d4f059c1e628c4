//! One client: a closed loop around its work, and what it tells the coordinator.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use crate::backend::Status;
use crate::failure::{Failure, OperationError};
use crate::record::Recording;
use crate::work::Work;

/// What clients tell the coordinator. A coordinator that has gone is no longer interested.
#[derive(Debug)]
pub enum Message {
    /// What a client recorded within one interval of a part.
    Interval {
        /// Who.
        client: u32,
        /// The interval's number, from 0.
        index: u64,
        /// Nothing more will come for intervals below this.
        complete_below: u64,
        /// What.
        recording: Box<Recording>,
    },
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
    /// Why it was the last.
    pub cause: Result<Cause, Failure>,
}

/// How a client ended.
#[derive(Debug)]
pub struct Ending {
    /// Of the measured part.
    pub part: PartEnd,
    /// Growth of its connection's counters.
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

/// When a part of a run ends for one client.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Both of so many operations and so many ns are reached: a warm-up.
    Both(u64, u64),
    /// Either of them is: a measured part.
    Either(u64, u64),
}

impl Until {
    /// When a measured part's time is over.
    const fn window_ns(self) -> u64 {
        match self {
            Self::Both(..) => u64::MAX,
            Self::Either(_, end) => end,
        }
    }

    #[inline]
    const fn reached(self, operations: u64, elapsed_ns: u64) -> Option<Cause> {
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
    /// Length of an interval.
    pub interval_ns: u64,
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
    /// neither as done nor as an error.
    pub fn work_through<W: Work>(&self, work: &mut W, origin: Instant, until: Until) -> PartEnd {
        let mut recording = Box::new(Recording::new(self.operations.len()));
        let (mut interval, mut interval_end_ns) = (0, self.interval_ns);
        let (mut operations, mut end_ns) = (0, 0);
        self.progress.0.store(0, Ordering::Relaxed);
        let cause = loop {
            if let Some(cause) = until.reached(operations, end_ns) {
                break Ok(cause);
            }
            if self.halt.load(Ordering::Relaxed) {
                break Ok(Cause::Halt);
            }
            let Some(index) = work.prepare() else {
                break Ok(Cause::Operations);
            };
            let start = Instant::now();
            let answer = work.perform();
            let end = Instant::now();
            if answer.is_err() && self.halt.load(Ordering::Relaxed) {
                break Ok(Cause::Halt);
            }
            end_ns = nanoseconds(origin, end);
            if end_ns >= interval_end_ns {
                let next = end_ns / self.interval_ns;
                self.hand_over(interval, next, &mut recording);
                (interval, interval_end_ns) = (next, (next + 1) * self.interval_ns);
            }
            if end_ns > until.window_ns()
                && let Ok(count) = answer
            {
                recording.late(index, count);
            }
            match answer {
                Ok(1) => {
                    recording.success(index, nanoseconds(start, end), 1);
                    operations += 1;
                }
                Ok(count) => {
                    // A batch's operations share its time.
                    recording.success(index, nanoseconds(start, end) / count.max(1), count);
                    operations += count;
                }
                Err(error) => {
                    recording.error(index, error.kind);
                    operations += 1;
                    if let Some(failure) = self.judge(index, &error) {
                        break Err(failure);
                    }
                }
            }
            self.progress.0.store(operations, Ordering::Relaxed);
        };
        self.hand_over(interval, interval, &mut recording);
        PartEnd { end_ns, cause }
    }

    /// Whether an error ends the run.
    #[cold]
    fn judge(&self, index: usize, error: &OperationError) -> Option<Failure> {
        (error.kind.is_fatal() || self.errors_are_fatal)
            .then(|| Failure::of_operation(self.operations[index], error))
    }

    /// Once an interval: sends what was recorded in it and begins anew.
    #[cold]
    fn hand_over(&self, index: u64, complete_below: u64, recording: &mut Box<Recording>) {
        let fresh = Box::new(Recording::new(self.operations.len()));
        let finished = std::mem::replace(recording, fresh);
        let _ = self.messages.send(Message::Interval {
            client: self.number,
            index,
            complete_below,
            recording: finished,
        });
    }
}

#[inline]
fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}
