//! The result of a run, as it is written, and as filebench prints it.

use std::collections::BTreeMap;
use std::fmt::Write;

use dyno_result::failure::Failure;
use dyno_result::figures::{Cpu, EndedBy, Figures, Outcome, Times, Warmup};
use dyno_wml::ast::{Direction, FlowopClass, FlowopType};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;

use crate::fileset::Made;
use crate::program::{Named, Program, ThreadPlan};
use crate::recording::{Did, total};
use crate::run::Ran;
use crate::verify::Wrong;

/// The version of the result's format.
const FORMAT: u32 = 1;

/// What is written to `result.json`.
#[derive(Clone, Debug, Serialize)]
pub struct FilesResult {
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
    open: Option<()>,
    /// Threads.
    clients: usize,
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
    /// Those that filebench's summary counts.
    pub operations: BTreeMap<String, OfFlowop>,
    /// The others.
    others: BTreeMap<String, OfFlowop>,
    total: OfTotal,
    io: Io,
    creation: Option<Creation>,
    asynchronous: Option<&'static str>,
    verified: Option<Looked>,
    random_variables: BTreeMap<String, Drawn>,
    cpu: Cpu,
    backend: Backend,
    versions: BTreeMap<String, String>,
}

/// One flowop's figures.
#[derive(Clone, Debug, Serialize)]
pub struct OfFlowop {
    #[serde(rename = "type")]
    kind: &'static str,
    bytes: u64,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Clone, Debug, Serialize)]
struct OfTotal {
    bytes: u64,
    #[serde(flatten)]
    figures: Figures,
}

/// What was asked of the file system.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Io {
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    syncs: u64,
}

/// How filesets were made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Creation {
    /// When it began, in ns since the epoch.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// What was made.
    #[serde(flatten)]
    pub made: Made,
}

#[derive(Clone, Debug, Serialize)]
struct Looked {
    reads: u64,
    writes: u64,
    read_again: u64,
    wrong: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Drawn {
    count: u64,
    mean: f64,
    standard_deviation: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Backend {
    kind: &'static str,
    version: String,
    effective: BTreeMap<String, Value>,
    status: BTreeMap<String, f64>,
}

/// What is known of a run beside what was measured.
#[derive(Clone, Debug)]
pub struct About {
    /// `all`, `create` or `run`.
    pub phase: &'static str,
    /// The seed.
    pub seed: u64,
    /// What was asked for.
    pub workload: Value,
    /// How filesets were made, if they were.
    pub creation: Option<Creation>,
    /// Of the programs involved.
    pub versions: BTreeMap<String, String>,
}

impl FilesResult {
    /// The result of a run.
    #[must_use]
    pub fn of_run(about: About, program: &Program, ran: &Ran) -> Self {
        let timed_out = ran.ended_by == EndedBy::Duration;
        let seconds = ran.times.elapsed_s;
        let figures = |did: &Did| Figures::new(&did.series, seconds, timed_out);
        let counted = |counted: bool| {
            program
                .flowops
                .iter()
                .zip(&ran.did)
                .filter(move |(named, _)| is_counted(named.kind) == counted)
        };
        let of = |counts: bool| {
            counted(counts)
                .map(|(named, did)| {
                    let of_flowop = OfFlowop {
                        kind: named.kind.name(),
                        bytes: did.bytes,
                        figures: figures(did),
                    };
                    (named.name.clone(), of_flowop)
                })
                .collect()
        };
        let all = total(counted(true).map(|(_, did)| did));
        let before: Vec<&Did> = program
            .flowops
            .iter()
            .zip(&ran.warmup)
            .filter(|(named, _)| is_counted(named.kind))
            .map(|(_, did)| did)
            .collect();
        let before = total(before);
        let verified = ran.verified.as_ref().map(|verified| {
            let load = |count: &std::sync::atomic::AtomicU64| {
                count.load(std::sync::atomic::Ordering::Relaxed)
            };
            Looked {
                reads: load(&verified.reads),
                writes: load(&verified.writes),
                read_again: load(&verified.read_again),
                wrong: Wrong::ALL
                    .into_iter()
                    .map(|wrong| (wrong.name(), load(&verified.wrong[wrong as usize])))
                    .collect(),
            }
        });
        let error = ran.failure.clone().or_else(|| {
            let verified = ran.verified.as_ref()?;
            let wrong = verified.any_wrong();
            let first = verified.first.lock().clone().unwrap_or_default();
            (wrong > 0).then(|| {
                let message =
                    format!("{wrong} reads did not give what was written; the first: {first}");
                Failure::new("wrong_value", message)
            })
        });
        let mut result = Self {
            times: ran.times,
            warmup: Warmup {
                operations: before.series.latency.len(),
                errors: before.series.errors.by_name(),
                elapsed_s: ran.warmup_s,
            },
            operations: of(true),
            others: of(false),
            total: OfTotal {
                bytes: all.bytes,
                figures: figures(&all),
            },
            io: Io::of(program, &ran.did),
            asynchronous: ran.asynchronous,
            verified,
            random_variables: ran
                .drawn
                .iter()
                .map(|&(index, count, mean, standard_deviation)| {
                    let drawn = Drawn {
                        count,
                        mean,
                        standard_deviation,
                    };
                    (program.flowops[index].name.clone(), drawn)
                })
                .collect(),
            cpu: ran.cpu,
            clients: program.threads.iter().map(ThreadPlan::count).sum(),
            ..Self::nothing(about, ran.ended_by, error)
        };
        if result.error.is_none() {
            result.outcome = if ran.ended_by == EndedBy::Signal {
                Outcome::Partial
            } else {
                Outcome::Ok
            };
        }
        result
    }

    /// The result where nothing ran: the filesets were made, or could not be.
    #[must_use]
    pub fn nothing(about: About, ended_by: EndedBy, error: Option<Failure>) -> Self {
        let mut times = Times::default();
        if let Some(creation) = &about.creation {
            times = Times {
                started_ns: creation.started_ns,
                measured_from_ns: creation.started_ns,
                ended_ns: creation.ended_ns,
                elapsed_s: creation.ended_ns.saturating_sub(creation.started_ns) as f64 / 1e9,
            };
        }
        let none = Did::nothing();
        Self {
            format: FORMAT,
            outcome: match (&error, ended_by) {
                (Some(_), _) | (None, EndedBy::Error) => Outcome::Failed,
                (None, EndedBy::Signal) => Outcome::Partial,
                (None, _) => Outcome::Ok,
            },
            ended_by: if error.is_some() {
                EndedBy::Error
            } else {
                ended_by
            },
            error,
            phase: about.phase,
            kind_of_loop: "closed",
            open: None,
            clients: 0,
            drivers: 1,
            driver: BTreeMap::from([("number", 0), ("of", 1)]),
            seed: about.seed,
            workload: about.workload,
            reconnects: 0,
            checks: Vec::new(),
            ledger: None,
            times,
            warmup: Warmup::default(),
            operations: BTreeMap::new(),
            others: BTreeMap::new(),
            total: OfTotal {
                bytes: 0,
                figures: Figures::new(&none.series, 0.0, false),
            },
            io: Io::default(),
            creation: about.creation,
            asynchronous: None,
            verified: None,
            random_variables: BTreeMap::new(),
            cpu: Cpu::default(),
            backend: Backend {
                kind: "files",
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..Backend::default()
            },
            versions: about.versions,
        }
    }
}

impl Io {
    fn of(program: &Program, did: &[Did]) -> Self {
        let mut io = Self::default();
        for (named, did) in program.flowops.iter().zip(did) {
            let count = did.series.latency.len();
            match named.kind.direction() {
                Direction::Read => {
                    io.reads += count;
                    io.bytes_read += did.bytes;
                }
                Direction::Write => {
                    io.writes += count;
                    io.bytes_written += did.bytes;
                }
                Direction::Neither => {}
            }
            if matches!(named.kind, FlowopType::Fsync | FlowopType::FsyncSet) {
                io.syncs += count;
            }
        }
        io
    }
}

/// Whether filebench's summary counts it.
pub const fn is_counted(kind: FlowopType) -> bool {
    matches!(kind.class(), FlowopClass::Io | FlowopClass::Aio)
}

/// What filebench prints of a span of time: its table and its summary, each a line of its log.
pub fn table(flowops: &[Named], did: &[Did], seconds: f64, histograms: bool) -> Vec<String> {
    const MEBIBYTE: f64 = 1_048_576.0;
    let seconds = seconds.max(1e-9);
    let mut breakdown = "Per-Operation Breakdown".to_owned();
    // In time: those that ended after it are in no rate.
    let counts = |did: &Did| {
        let count = did.series.latency.len().saturating_sub(did.series.late);
        (count, did.bytes.saturating_sub(did.late_bytes) as f64)
    };
    for (named, did) in flowops.iter().zip(did).rev() {
        let (count, bytes) = counts(did);
        let latency = &did.series.latency;
        let (least, mean, most) = times(latency);
        let rate = count as f64 / seconds;
        let throughput = bytes / MEBIBYTE / seconds;
        let _ = write!(
            breakdown,
            "\n{:<20} {count}ops {rate:8.0}ops/s {throughput:5.1}mb/s {mean:8.3}ms/op [{least:.3}ms - {most:5.3}ms]",
            named.name
        );
        if histograms {
            let _ = write!(breakdown, " [{}]", powers(latency).join(" "));
        }
    }
    let of = |wanted: fn(FlowopType) -> bool| {
        total(
            flowops
                .iter()
                .zip(did)
                .filter(|(named, _)| wanted(named.kind))
                .map(|(_, did)| did),
        )
    };
    let all = of(is_counted);
    let (count, bytes) = counts(&all);
    let (reads, _) = counts(&of(|kind| kind.direction() == Direction::Read));
    let (writes, _) = counts(&of(|kind| kind.direction() == Direction::Write));
    let (_, mean, _) = times(&all.series.latency);
    let per_second = |count: u64| count as f64 / seconds;
    let summary = format!(
        "IO Summary: {count:5} ops {:5.3} ops/s {:.0}/{:.0} rd/wr {:5.1}mb/s {mean:5.3}ms/op",
        per_second(count),
        per_second(reads),
        per_second(writes),
        bytes / MEBIBYTE / seconds,
    );
    vec![breakdown, summary]
}

/// The least, the mean and the greatest, in milliseconds.
fn times(latency: &Histogram<u64>) -> (f64, f64, f64) {
    if latency.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let ms = |ns: f64| ns / 1e6;
    (
        ms(latency.min() as f64),
        ms(latency.mean()),
        ms(latency.max() as f64),
    )
}

/// How many took less than 2^i ns and not less than half of that, for i from 0 to 63.
fn powers(latency: &Histogram<u64>) -> Vec<String> {
    let mut counts = [0_u64; 64];
    for value in latency.iter_recorded() {
        let ns = value.value_iterated_to();
        let power = (64 - ns.leading_zeros()).min(63) as usize;
        counts[power] += value.count_at_value();
    }
    counts.iter().map(ToString::to_string).collect()
}

/// `seconds` as a duration, so far as it is one.
pub fn duration(seconds: f64) -> std::time::Duration {
    std::time::Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(std::time::Duration::MAX)
}
