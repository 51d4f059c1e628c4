//! The result of a run, as it is written.

use std::collections::BTreeMap;
use std::ops::{Add, Sub};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::BackendReport;
use crate::failure::Failure;
use crate::job::{Arrivals, Job, Phase};
use crate::output::Span;
use crate::record::Series;
use crate::work::{Check, Findings, LedgerCount};

/// The version of the result's format.
const FORMAT: u32 = 1;

/// How a run went as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All that was asked was done.
    Ok,
    /// A signal, or the parent's end, cut it short.
    Partial,
    /// It could not be done.
    Failed,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// All operations were done.
    Operations,
    /// The time was over.
    Duration,
    /// A signal, or the parent's end.
    Signal,
    /// A failure.
    Error,
}

/// What is written to `result.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DriveResult {
    format: u32,
    /// How it went.
    pub outcome: Outcome,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Why it failed.
    pub error: Option<Failure>,
    /// As in the job.
    pub phase: Phase,
    #[serde(rename = "loop")]
    kind_of_loop: &'static str,
    /// How an open loop kept to its schedule.
    open: Option<OpenLoop>,
    /// As in the job.
    pub clients: u32,
    /// Whose results these are.
    drivers: u32,
    /// As in the job.
    driver: DriverNumber,
    seed: u64,
    workload: Value,
    reconnects: u64,
    checks: Vec<Check>,
    ledger: Option<LedgerCount>,
    /// The times at which it began and ended.
    #[serde(flatten)]
    pub times: Times,
    /// What came before the measured part.
    pub warmup: Warmup,
    /// By kind of operation, those asked for.
    pub operations: BTreeMap<&'static str, Figures>,
    /// All kinds together.
    pub total: Figures,
    /// CPU time of this process over the measured part.
    pub cpu: Cpu,
    /// The store.
    pub backend: BackendReport,
    /// Of the programs and libraries involved.
    pub versions: BTreeMap<String, String>,
}

/// A driver among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DriverNumber {
    /// From 0.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl DriveResult {
    /// The result; the outcome follows from what ended it, and whether anything went wrong.
    #[must_use]
    pub fn new(
        ended_by: EndedBy,
        error: Option<Failure>,
        job: &Job,
        times: Times,
        measured: Measured,
        backend: BackendReport,
        versions: BTreeMap<String, String>,
    ) -> Self {
        Self {
            format: FORMAT,
            outcome: match (&error, ended_by) {
                (None, EndedBy::Operations | EndedBy::Duration) => Outcome::Ok,
                (None, EndedBy::Signal) => Outcome::Partial,
                (Some(_), _) | (None, EndedBy::Error) => Outcome::Failed,
            },
            ended_by,
            error,
            phase: job.phase,
            kind_of_loop: if measured.open.is_some() {
                "open"
            } else {
                "closed"
            },
            open: measured.open,
            clients: job.clients,
            drivers: 1,
            driver: DriverNumber {
                number: job.driver.number,
                of: job.driver.of,
            },
            seed: job.seed,
            workload: job.workload_as_asked.clone(),
            reconnects: measured.reconnects,
            checks: measured.findings.checks,
            ledger: measured.findings.ledger,
            times,
            warmup: measured.warmup,
            operations: measured.operations,
            total: measured.total,
            cpu: measured.cpu,
            backend,
            versions,
        }
    }
}

/// Times of day in ns since the epoch, `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// When the first client was started.
    pub started_ns: u64,
    /// When the measured part began.
    pub measured_from_ns: u64,
    /// When its last operation ended.
    pub ended_ns: u64,
    /// Length of the measured part by a monotonic clock, in seconds.
    pub elapsed_s: f64,
}

/// What clients did and what it cost.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Before the measured part.
    pub warmup: Warmup,
    /// By kind of operation.
    pub operations: BTreeMap<&'static str, Figures>,
    /// All kinds together.
    pub total: Figures,
    /// How an open loop kept to its schedule.
    pub open: Option<OpenLoop>,
    /// Connections made anew.
    pub reconnects: u64,
    /// What a look at the stored data gave.
    pub findings: Findings,
    /// CPU time over the measured part.
    pub cpu: Cpu,
}

/// How an open loop kept to its schedule.
#[derive(Clone, Debug, Serialize)]
pub struct OpenLoop {
    rate_per_s: f64,
    arrivals: Arrivals,
    due: u64,
    /// Those that were sent after the measured part was over.
    sent_late: u64,
    unsent: u64,
    /// Of the requests that were due.
    pub share_sent: f64,
    lag_us: Option<Latency>,
}

impl OpenLoop {
    /// Of `due` requests `unsent` were never sent and `sent_late` after the part; all that were sent have a lag.
    #[must_use]
    pub fn new(
        rate_per_s: f64,
        arrivals: Arrivals,
        (due, sent_late, unsent): (u64, u64, u64),
        lag: Option<&Histogram<u64>>,
    ) -> Self {
        Self {
            rate_per_s,
            arrivals,
            due,
            sent_late,
            unsent,
            share_sent: share(due - unsent, due),
            lag_us: lag.and_then(Latency::of),
        }
    }

    /// Of the requests that were due, those that were sent before the measured part was over: a store that is too
    /// slow for the rate sends the others later, as long as it is waited for.
    #[must_use]
    pub fn share_in_time(&self) -> f64 {
        share(
            self.due.saturating_sub(self.unsent + self.sent_late),
            self.due,
        )
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// What came before the measured part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Warmup {
    /// Operations that succeeded.
    pub operations: u64,
    /// Errors by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// From the start of the first client to the end of the last warm-up operation, in seconds.
    pub elapsed_s: f64,
}

/// CPU time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
}

impl Add for Cpu {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
        }
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            user_s: self.user_s - other.user_s,
            system_s: self.system_s - other.system_s,
        }
    }
}

/// Figures of one kind of operation.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Operations that succeeded.
    pub count: u64,
    /// The others, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Count per second of the measured part.
    pub throughput_per_s: f64,
    /// Latencies of those that succeeded, in microseconds.
    pub latency_us: Option<Latency>,
    /// In an open loop: their times from the actual start.
    pub service_us: Option<Latency>,
    /// How long those took that did not, in an open loop from the intended start.
    pub failed_us: Option<Latency>,
}

impl Figures {
    /// The figures of what was recorded within `elapsed_s` seconds. Where the time ended the part, operations
    /// that ended after it are in no rate.
    #[must_use]
    pub fn new(series: &Series, elapsed_s: f64, timed_out: bool) -> Self {
        let count = series.latency.len();
        let in_time = count - if timed_out { series.late } else { 0 };
        Self {
            count,
            errors: series.errors.by_name(),
            throughput_per_s: if elapsed_s > 0.0 {
                in_time as f64 / elapsed_s
            } else {
                0.0
            },
            latency_us: Latency::of(&series.latency),
            service_us: series.service.as_ref().and_then(Latency::of),
            failed_us: Latency::of(&series.failed),
        }
    }
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Latency {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    fn of(latency: &Histogram<u64>) -> Option<Self> {
        let us = |quantile| quantile_us(latency, quantile);
        (!latency.is_empty()).then(|| Self {
            min: latency.min() as f64 / 1000.0,
            mean: latency.mean() / 1000.0,
            p50: us(0.5),
            p90: us(0.9),
            p95: us(0.95),
            p99: us(0.99),
            p999: us(0.999),
            max: us(1.0),
        })
    }
}

/// A quantile in microseconds; as exact as the histogram's three digits.
fn quantile_us(latency: &Histogram<u64>, quantile: f64) -> f64 {
    latency.value_at_quantile(quantile) as f64 / 1000.0
}

/// An operation that failed, as a line of `errors.jsonl`.
#[derive(Debug, Serialize)]
pub struct FailedLine<'a> {
    /// When it ended, in ns since the epoch.
    pub at_ns: u64,
    /// Whose it was.
    pub client: u32,
    /// What it was.
    pub operation: &'a str,
    /// As what it is counted.
    pub kind: &'a str,
    /// How long it took, in microseconds; in an open loop from its intended start.
    pub took_us: f64,
    /// What the store said.
    pub message: &'a str,
}

/// One kind of operation within one interval, as a line of `intervals.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalLine<'a> {
    start_ns: u64,
    end_ns: u64,
    warmup: bool,
    operation: &'a str,
    count: u64,
    errors: u64,
    error_kinds: BTreeMap<&'static str, u64>,
    reconnects: u64,
    latency_us: Option<IntervalLatency>,
    service_us: Option<IntervalLatency>,
    /// Of the whole interval, so the same for each kind of operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Cpu>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct IntervalLatency {
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl IntervalLatency {
    fn of(latency: &Histogram<u64>) -> Option<Self> {
        (!latency.is_empty()).then(|| Self {
            mean: latency.mean() / 1000.0,
            p50: quantile_us(latency, 0.5),
            p95: quantile_us(latency, 0.95),
            p99: quantile_us(latency, 0.99),
            max: quantile_us(latency, 1.0),
        })
    }
}

impl<'a> IntervalLine<'a> {
    /// The line of an interval.
    #[must_use]
    pub fn new(span: Span, operation: &'a str, series: &Series) -> Self {
        Self {
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            warmup: span.warmup,
            operation,
            count: series.latency.len(),
            errors: series.errors.total(),
            error_kinds: series.errors.by_name(),
            reconnects: series.reconnects,
            latency_us: IntervalLatency::of(&series.latency),
            service_us: series.service.as_ref().and_then(IntervalLatency::of),
            cpu: span.cpu,
        }
    }
}
