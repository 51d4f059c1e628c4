//! Figures of a run, as they are written.

use std::collections::BTreeMap;
use std::ops::{Add, Sub};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::output::Span;
use crate::record::Series;

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
    /// Those of a histogram in ns; none where it is empty.
    #[must_use]
    pub fn of(latency: &Histogram<u64>) -> Option<Self> {
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
