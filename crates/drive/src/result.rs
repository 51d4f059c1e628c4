//! The result of a run, as it is written.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::BackendReport;
use crate::failure::Failure;
pub use dyno_result::figures::{Cpu, EndedBy, Figures, Latency, Outcome, Times, Warmup};

use crate::job::{Arrivals, Job, Phase};
use crate::work::{Check, Findings, LedgerCount, ReadCount};

/// The version of the result's format.
const FORMAT: u32 = 1;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<ReadCount>,
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
            reads: measured.findings.reads,
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
