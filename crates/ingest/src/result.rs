//! The result of a load, as it is written: with the keys that a driver's has, and what became of rows besides.

use std::collections::BTreeMap;

use dyno_result::failure::Failure;
use dyno_result::figures::{Cpu, EndedBy, Figures, Latency, Outcome, Times, Warmup};
use serde::Serialize;
use serde_json::Value;

use crate::batch::Counts;
use crate::job::Job;
use crate::manifest::Manifest;
use crate::reader::WasRead;
use crate::recording::{Did, Rows};
use crate::run::Moments;

/// The version of the result's format.
const FORMAT: u32 = 1;
/// The one kind of operation: a batch, from when it was due (or sent) until it was taken.
pub const BATCH: &str = "batch";

/// What is written to `result.json`.
#[derive(Clone, Debug, Serialize)]
pub struct IngestResult {
    format: u32,
    /// How it went.
    pub outcome: Outcome,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Why it failed.
    pub error: Option<Failure>,
    phase: &'static str,
    #[serde(rename = "loop")]
    kind_of_loop: &'static str,
    open: Option<OpenLoop>,
    clients: u32,
    drivers: u32,
    driver: BTreeMap<&'static str, u64>,
    seed: u64,
    workload: Value,
    reconnects: u64,
    checks: Vec<()>,
    ledger: Option<()>,
    #[serde(flatten)]
    times: Times,
    warmup: Warmup,
    operations: BTreeMap<&'static str, Figures>,
    total: Figures,
    /// What became of rows.
    pub ingest: Ingest,
    cpu: Cpu,
    backend: Store,
    versions: BTreeMap<String, String>,
}

/// How an open loop kept to its schedule: of batches, which are due once their last row was made.
#[derive(Clone, Debug, Serialize)]
struct OpenLoop {
    rate_per_s: f64,
    arrivals: &'static str,
    due: u64,
    sent_late: u64,
    unsent: u64,
    share_sent: f64,
    lag_us: Option<Latency>,
}

/// What became of rows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ingest {
    transport: &'static str,
    split: Value,
    /// Whether the store says of rows that it has them.
    acknowledges: bool,
    /// All that were to be sent.
    rows: u64,
    /// As [`Rows`] has them.
    pub sent: u64,
    /// Likewise.
    pub acknowledged: u64,
    /// Likewise.
    pub in_doubt: u64,
    /// Likewise.
    pub resent: u64,
    /// Rows that came later than they were made, of those that were read.
    pub delayed: u64,
    /// Rows that came a second time.
    pub duplicated: u64,
    /// Values of the rows that were sent.
    metrics: f64,
    bytes: u64,
    /// When the last batch was sent and answered, since the first could be; in seconds.
    sent_s: f64,
    /// How long it took, without what was waited for after it was told to end where rows come at a rate; in seconds.
    came_s: f64,
    /// Of those that were sent, within that time.
    rows_per_s: f64,
    cpu_us_per_row: f64,
    tables: BTreeMap<String, OfTable>,
}

/// What became of a table's rows.
#[derive(Clone, Debug, Serialize)]
pub struct OfTable {
    /// In the data, each once.
    rows: u64,
    sent: u64,
    acknowledged: u64,
    in_doubt: u64,
    resent: u64,
    /// Sent, each row once.
    different: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Store {
    kind: &'static str,
    version: String,
    effective: BTreeMap<String, Value>,
    status: BTreeMap<String, f64>,
}

/// What a result is made of.
pub struct Parts<'a> {
    /// What was asked.
    pub job: &'a Job,
    /// What was to be loaded.
    pub manifest: &'a Manifest,
    /// What was read.
    pub read: WasRead,
    /// What was done.
    pub did: &'a Did,
    /// When.
    pub moments: Moments,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Why it failed.
    pub error: Option<Failure>,
    /// The store's version.
    pub version: String,
    /// Of the programs involved.
    pub versions: BTreeMap<String, String>,
}

impl IngestResult {
    /// The result; the outcome follows from what ended it, and whether anything went wrong.
    #[must_use]
    pub fn new(ended: Parts<'_>) -> Self {
        let Parts {
            job,
            manifest,
            read,
            did,
            moments,
            ended_by,
            error,
            version,
            versions,
        } = ended;
        let series = did.recording.total();
        let figures = Figures::new(&series, moments.times.elapsed_s, false);
        let open = job.rate_per_s.map(|rate_per_s| {
            let sent = series.latency.len() + series.errors.total();
            let due = sent + moments.unsent;
            OpenLoop {
                rate_per_s,
                arrivals: "constant",
                due,
                sent_late: 0,
                unsent: moments.unsent,
                share_sent: if due == 0 {
                    1.0
                } else {
                    sent as f64 / due as f64
                },
                lag_us: did.recording.lag.as_ref().and_then(Latency::of),
            }
        });
        let error = error.or_else(|| {
            let open = open.as_ref().filter(|_| ended_by != EndedBy::Signal)?;
            (open.share_sent < job.min_share_sent).then(|| {
                Failure::new(
                    "rate_not_reached",
                    format!(
                        "{} of {} batches that were due were sent ({:.2} rows a second were asked for)",
                        open.due - open.unsent,
                        open.due,
                        open.rate_per_s
                    ),
                )
            })
        });
        Self {
            format: FORMAT,
            outcome: match (&error, ended_by) {
                (Some(_), _) | (None, EndedBy::Error) => Outcome::Failed,
                (None, EndedBy::Signal) => Outcome::Partial,
                (None, _) => Outcome::Ok,
            },
            ended_by,
            error,
            phase: "run",
            kind_of_loop: if open.is_some() { "open" } else { "closed" },
            open,
            clients: job.workers,
            drivers: 1,
            driver: BTreeMap::from([("number", 0), ("of", 1)]),
            seed: job.seed,
            workload: job.as_asked.clone(),
            reconnects: series.reconnects,
            checks: Vec::new(),
            ledger: None,
            times: moments.times,
            warmup: Warmup::default(),
            operations: BTreeMap::from([(BATCH, figures.clone())]),
            total: figures,
            ingest: ingest(job, manifest, read, did, moments),
            cpu: moments.cpu,
            backend: Store {
                kind: job.backend.name(),
                version,
                effective: BTreeMap::new(),
                status: BTreeMap::new(),
            },
            versions,
        }
    }
}

fn ingest(job: &Job, manifest: &Manifest, read: WasRead, did: &Did, moments: Moments) -> Ingest {
    let Rows {
        sent,
        acknowledged,
        in_doubt,
        resent,
        different,
    } = &did.rows;
    let of = |counts: &Counts, place: usize| counts.of(place);
    let tables = manifest
        .tables
        .iter()
        .enumerate()
        .map(|(place, (name, table))| {
            let of_table = OfTable {
                rows: table.rows,
                sent: of(sent, place),
                acknowledged: of(acknowledged, place),
                in_doubt: of(in_doubt, place),
                resent: of(resent, place),
                different: of(different, place),
            };
            (name.clone(), of_table)
        })
        .collect();
    let metrics = manifest
        .tables
        .values()
        .enumerate()
        .map(|(place, table)| {
            sent.of(place) as f64 * table.metrics as f64 / table.rows.max(1) as f64
        })
        .sum();
    let cpu_s = moments.cpu.user_s + moments.cpu.system_s;
    let seconds = moments.came_s;
    Ingest {
        transport: job.backend.transport(),
        split: serde_json::json!(job.split),
        acknowledges: job.backend.acknowledges(),
        rows: read.rows,
        sent: sent.total(),
        acknowledged: acknowledged.total(),
        in_doubt: in_doubt.total(),
        resent: resent.total(),
        delayed: read.delayed,
        duplicated: read.duplicated,
        metrics,
        bytes: did.bytes,
        sent_s: moments.sent_s,
        came_s: moments.came_s,
        rows_per_s: if seconds > 0.0 {
            sent.total() as f64 / seconds
        } else {
            0.0
        },
        cpu_us_per_row: if sent.total() > 0 {
            cpu_s * 1e6 / sent.total() as f64
        } else {
            0.0
        },
        tables,
    }
}
