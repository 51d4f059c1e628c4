//! Several drivers' results as one, and a result without its begin.
//!
//! Counts and errors add up, and so do histograms, bucket by bucket: the quantiles are those that one
//! driver would have shown that had done all of it. Intervals meet by their number, since the drivers
//! began together and on the same grid.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::clock::nanoseconds;
use crate::failure::{ErrorCounts, ErrorKind};
use crate::output::{ERRORS, INTERVALS, LATENCIES, Output, RESULT, Span};
use crate::record::{Recording, add};
use crate::result::{Cpu, DriverNumber, Figures, OpenLoop};

/// Drivers that began further apart than this, as a share of an interval, did not measure together.
const TOGETHER: f64 = 0.5;

/// Why results cannot be merged: in one line, with the folder.
#[derive(Debug)]
pub struct MergeError(String);

impl std::fmt::Display for MergeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MergeError {}

/// What a driver left in its folder.
struct Part {
    folder: PathBuf,
    result: Value,
    intervals: Vec<Interval>,
    /// The lines of its failed operations.
    failed: Vec<u8>,
    /// By tag and begin, in ns since the epoch.
    histograms: BTreeMap<(String, u64), Histogram<u64>>,
}

/// A line of `intervals.jsonl`, as far as histograms do not have it.
#[derive(Deserialize)]
struct Interval {
    start_ns: u64,
    end_ns: u64,
    warmup: bool,
    operation: String,
    count: u64,
    error_kinds: BTreeMap<String, u64>,
    // Records of an earlier dyno lack these.
    #[serde(default)]
    reconnects: u64,
    cpu: Option<Cpu>,
}

/// Merges the results in `folders` into the folder `out`; gives the one result.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<Value, MergeError> {
    let parts: Vec<Part> = folders
        .iter()
        .map(|folder| Part::read(folder))
        .collect::<Result<_, _>>()?;
    let Some(first) = parts.first() else {
        return Err(MergeError("no folder is given".to_owned()));
    };
    for other in &parts[1..] {
        first.check_same_job(other)?;
    }
    check_numbers(&parts)?;
    let complete = parts.iter().all(|part| part.result["outcome"] == "ok");
    if complete {
        check_together(&parts)?;
    }
    write(&Merged::new(&parts), &parts, out)
}

/// Makes a result of what a driver did from one of its measured intervals on; those before it, counted from 0, count
/// as warm-up, and `out` keeps them as such.
///
/// # Errors
///
/// Where the folder holds no result, or one that cannot be cut there, and where `out` cannot be written.
pub fn cut(folder: &Path, from_interval: u64, out: &Path) -> Result<Value, MergeError> {
    let parts = [Part::read(folder)?];
    let mut merged = Merged::new(&parts);
    if from_interval > 0 {
        merged
            .leave_out(from_interval, &parts[0])
            .map_err(|why| MergeError(format!("{}: {why}", folder.display())))?;
    }
    write(&merged, &parts, out)
}

fn write(merged: &Merged, parts: &[Part], out: &Path) -> Result<Value, MergeError> {
    let fail = |error: io::Error| MergeError(format!("writing {}: {error}", out.display()));
    let operations = parts.first().map(Part::operations).unwrap_or_default();
    let mut output =
        Output::create(out, operations.clone(), least(parts, "started_ns")).map_err(fail)?;
    for (span, recording) in merged.intervals.values() {
        output.interval(*span, recording).map_err(fail)?;
    }
    for part in parts {
        output.append_failed(&part.failed).map_err(fail)?;
    }
    let result = merged.result(parts, &operations);
    output.finish(&result).map_err(fail)?;
    Ok(result)
}

impl Part {
    fn read(folder: &Path) -> Result<Self, MergeError> {
        let fail = |name: &str, error: &dyn std::fmt::Display| {
            MergeError(format!("reading {}: {error}", folder.join(name).display()))
        };
        let text =
            |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| fail(name, &error));
        let result: Value =
            serde_json::from_str(&text(RESULT)?).map_err(|error| fail(RESULT, &error))?;
        let intervals = text(INTERVALS)?
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| fail(INTERVALS, &error))?;
        let mut part = Self {
            folder: folder.to_owned(),
            result,
            intervals,
            failed: text(ERRORS)?.into_bytes(),
            histograms: BTreeMap::new(),
        };
        let log = fs::read(folder.join(LATENCIES)).map_err(|error| fail(LATENCIES, &error))?;
        part.read_histograms(&log)
            .map_err(|error| fail(LATENCIES, &error))?;
        Ok(part)
    }

    fn read_histograms(&mut self, log: &[u8]) -> Result<(), String> {
        let mut deserializer = Deserializer::new();
        // The log's own times are in ms; the intervals' begins are exact. Those of one part are far enough apart, but the
        // measured part may begin within the same ms as the last interval of the warm-up.
        let begins = |warmup| -> BTreeSet<u64> {
            let lines = self.intervals.iter();
            lines
                .filter(|line| line.warmup == warmup)
                .map(|line| line.start_ns)
                .collect()
        };
        let (warmup, measured) = (begins(true), begins(false));
        let mut started_ns = 0;
        for entry in IntervalLogIterator::new(log) {
            let interval = match entry.map_err(|error| format!("{error:?}"))? {
                LogEntry::Interval(interval) => interval,
                LogEntry::StartTime(since_epoch) => {
                    started_ns = nanoseconds(since_epoch);
                    continue;
                }
                LogEntry::BaseTime(_) => continue,
            };
            let tag = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
            let about_ns = started_ns.saturating_add(nanoseconds(interval.start_timestamp()));
            let begins = if tag.ends_with(".warmup") {
                &warmup
            } else {
                &measured
            };
            let begin_ns = nearest(begins, about_ns)
                .ok_or_else(|| format!("a histogram of {tag} belongs to no interval"))?;
            let bytes = BASE64
                .decode(interval.encoded_histogram())
                .map_err(|error| error.to_string())?;
            let histogram: Histogram<u64> = deserializer
                .deserialize(&mut &bytes[..])
                .map_err(|error| format!("{error:?}"))?;
            self.histograms.insert((tag, begin_ns), histogram);
        }
        self.check_none_is_missing()
    }

    /// Whether each measured interval has the operations that it says it has; an earlier dyno logged no warm-up.
    fn check_none_is_missing(&self) -> Result<(), String> {
        for line in self.intervals.iter().filter(|line| !line.warmup) {
            let found = self
                .histograms
                .get(&(line.operation.clone(), line.start_ns))
                .map_or(0, Histogram::len);
            if found != line.count {
                return Err(format!(
                    "it has {found} latencies of {} in the interval from {} on, which had {} operations",
                    line.operation, line.start_ns, line.count
                ));
            }
        }
        Ok(())
    }

    fn number(&self, key: &str) -> u64 {
        self.result[key].as_u64().unwrap_or(0)
    }

    fn elapsed_s(&self) -> f64 {
        self.result["elapsed_s"].as_f64().unwrap_or(0.0)
    }

    fn operations(&self) -> Vec<String> {
        self.result["operations"]
            .as_object()
            .map(|operations| operations.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn check_same_job(&self, other: &Self) -> Result<(), MergeError> {
        let backend = |part: &Self| part.result["backend"]["kind"].clone();
        let differing = [
            ("phase", self.result["phase"] != other.result["phase"]),
            ("loop", self.result["loop"] != other.result["loop"]),
            ("backend", backend(self) != backend(other)),
            ("operations", self.operations() != other.operations()),
            ("format", self.result["format"] != other.result["format"]),
            (
                "workload",
                self.result["workload"] != other.result["workload"],
            ),
            ("seed", self.result["seed"] != other.result["seed"]),
        ];
        match differing.into_iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((what, _)) => Err(MergeError(format!(
                "{} and {} differ in their {what}: they are not results of one job",
                self.folder.display(),
                other.folder.display()
            ))),
        }
    }
}

/// Each driver of those that shared the workload is there, once.
fn check_numbers(parts: &[Part]) -> Result<(), MergeError> {
    let mut drivers: BTreeMap<u64, &Part> = BTreeMap::new();
    let mut known: Option<(u64, &Part)> = None;
    for part in parts {
        let folder = part.folder.display();
        let driver: DriverNumber = serde_json::from_value(part.result["driver"].clone())
            .map_err(|_| MergeError(format!("{folder} is not the result of one driver")))?;
        let (of, first) = *known.get_or_insert((driver.of, part));
        if of != driver.of {
            return Err(MergeError(format!(
                "{} is of one of {of} drivers and {folder} of one of {}: they are not results of one job",
                first.folder.display(),
                driver.of
            )));
        }
        if let Some(same) = drivers.insert(driver.number, part) {
            return Err(MergeError(format!(
                "{} and {folder} are both results of driver {} of {of}, which counts once",
                same.folder.display(),
                driver.number
            )));
        }
    }
    let Some((of, first)) = known else {
        return Ok(());
    };
    match (0..of).find(|number| !drivers.contains_key(number)) {
        None => Ok(()),
        Some(missing) => Err(MergeError(format!(
            "{} is of one of {of} drivers, and of these only {} are given: number {missing} is missing",
            first.folder.display(),
            drivers.len()
        ))),
    }
}

/// Drivers must have begun to measure at the same time.
fn check_together(parts: &[Part]) -> Result<(), MergeError> {
    let interval_ns = parts
        .iter()
        .flat_map(|part| &part.intervals)
        .map(|line| line.end_ns - line.start_ns)
        .max()
        .unwrap_or(0);
    let begins: Vec<u64> = parts
        .iter()
        .map(|part| part.number("measured_from_ns"))
        .collect();
    let apart_ns = begins
        .iter()
        .max()
        .zip(begins.iter().min())
        .map_or(0, |(last, first)| last - first);
    if apart_ns as f64 > TOGETHER * interval_ns as f64 {
        return Err(MergeError(format!(
            "the drivers began to measure {:.3} s apart: give them the same start_at_ns",
            apart_ns as f64 / 1e9
        )));
    }
    Ok(())
}

/// All parts' recordings.
struct Merged {
    /// By whether they belong to the measured part as it was asked for, and by their begin in ns since the epoch.
    intervals: BTreeMap<(bool, u64), (Span, Recording)>,
    interval_ns: u64,
    /// Of the measured part.
    total: Recording,
    left_out: Option<LeftOut>,
}

/// The begin of the measured part, where it was left out.
struct LeftOut {
    recording: Recording,
    duration_ns: u64,
    cpu: Cpu,
}

impl Merged {
    fn new(parts: &[Part]) -> Self {
        let open = parts.iter().any(|part| !part.result["open"].is_null());
        let operations = parts.first().map(Part::operations).unwrap_or_default();
        let interval_ns = parts
            .iter()
            .flat_map(|part| &part.intervals)
            .map(|line| line.end_ns - line.start_ns)
            .max()
            .unwrap_or(1)
            .max(1);
        let mut intervals: BTreeMap<(bool, u64), (Span, Recording)> = BTreeMap::new();
        for part in parts {
            for line in &part.intervals {
                let begin = if line.warmup {
                    "started_ns"
                } else {
                    "measured_from_ns"
                };
                let since_ns = line.start_ns.saturating_sub(part.number(begin));
                // Several drivers' intervals get one grid, that of the first to begin: else each would be as much
                // longer as the drivers began apart.
                let start_ns = match parts {
                    [_] => line.start_ns,
                    _ => least(parts, begin) + since_ns / interval_ns * interval_ns,
                };
                // The warm-up comes first.
                let (span, recording) =
                    intervals
                        .entry((!line.warmup, start_ns))
                        .or_insert_with(|| {
                            let span = Span {
                                start_ns,
                                end_ns: start_ns,
                                warmup: line.warmup,
                                cpu: line.cpu.map(|_| Cpu::default()),
                            };
                            (span, Recording::new(operations.len(), open))
                        });
                span.end_ns = span.end_ns.max(start_ns + (line.end_ns - line.start_ns));
                // One CPU time stands in all lines of an interval.
                if operations.first() == Some(&line.operation) {
                    span.cpu = span.cpu.zip(line.cpu).map(|(sum, cpu)| sum + cpu);
                }
                part.add_interval(line, &operations, recording);
            }
        }
        let mut total = Recording::new(operations.len(), open);
        for (span, recording) in intervals.values() {
            if !span.warmup {
                total.add(recording);
            }
        }
        Self {
            intervals,
            interval_ns,
            total,
            left_out: None,
        }
    }

    /// Makes the measured part begin `before` intervals later; what comes before that is warm-up.
    fn leave_out(&mut self, before: u64, part: &Part) -> Result<(), String> {
        let elapsed_s = part.elapsed_s();
        let duration_ns = before.saturating_mul(self.interval_ns);
        let from_ns = part.number("measured_from_ns").saturating_add(duration_ns);
        if Duration::from_nanos(duration_ns).as_secs_f64() >= elapsed_s {
            return Err(format!(
                "nothing is left from interval {before} on: the measured part lasted {elapsed_s} s"
            ));
        }
        let mut left_out = LeftOut {
            recording: self.total.empty(),
            duration_ns,
            cpu: Cpu::default(),
        };
        self.total = self.total.empty();
        for (span, recording) in self.intervals.values_mut() {
            if span.warmup {
                continue;
            }
            if span.start_ns >= from_ns {
                self.total.add(recording);
                continue;
            }
            span.warmup = true;
            left_out.recording.add(recording);
            left_out.cpu = left_out.cpu
                + span
                    .cpu
                    .ok_or("its intervals have no CPU time: an earlier dyno-core wrote them")?;
        }
        self.left_out = Some(left_out);
        Ok(())
    }

    /// The result of all as one.
    fn result(&self, parts: &[Part], operations: &[String]) -> Value {
        let Some(first) = parts.first() else {
            return Value::Null;
        };
        let mut result = first.result.clone();
        let left_out = self.left_out.as_ref();
        let left_out_ns = left_out.map_or(0, |left| left.duration_ns);
        let elapsed_s = parts.iter().map(Part::elapsed_s).fold(0.0, f64::max)
            - Duration::from_nanos(left_out_ns).as_secs_f64();
        // What ended after its time is in the end of a part, never in its begin.
        let figures = |path: &[&str], series, left_out: u64| {
            let mut figures = json!(Figures::new(series, elapsed_s, false));
            let in_time = ended_in_time(parts, path) - left_out as f64;
            figures["throughput_per_s"] = json!(in_time / elapsed_s.max(1e-9));
            figures
        };
        for (index, name) in operations.iter().enumerate() {
            let before = left_out.map_or(0, |left| left.recording.series[index].latency.len());
            let series = &self.total.series[index];
            result["operations"][name] = figures(&["operations", name], series, before);
        }
        let left_out_total = left_out.map(|left| left.recording.total());
        let before = left_out_total
            .as_ref()
            .map_or(0, |total| total.latency.len());
        result["total"] = figures(&["total"], &self.total.total(), before);
        for key in ["clients", "drivers", "reconnects"] {
            result[key] = json!(parts.iter().map(|part| part.number(key)).sum::<u64>());
        }
        if parts.len() > 1 {
            result["driver"] = Value::Null;
        }
        let (started_ns, measured_from_ns) =
            (least(parts, "started_ns"), least(parts, "measured_from_ns"));
        result["started_ns"] = json!(started_ns);
        result["measured_from_ns"] = json!(measured_from_ns + left_out_ns);
        let ended_ns = parts.iter().map(|part| part.number("ended_ns")).max();
        result["ended_ns"] = json!(ended_ns);
        result["elapsed_s"] = json!(elapsed_s);
        for key in ["user_s", "system_s"] {
            result["cpu"][key] = json!(sum(parts, &["cpu", key]));
        }
        result["warmup"] = json!({
            "operations": parts
                .iter()
                .filter_map(|part| part.result["warmup"]["operations"].as_u64())
                .sum::<u64>()
                + before,
            "errors": sum_members(parts, &["warmup", "errors"]),
            "elapsed_s": parts
                .iter()
                .filter_map(|part| part.result["warmup"]["elapsed_s"].as_f64())
                .fold(0.0, f64::max),
        });
        if let (Some(left), Some(total)) = (left_out, left_out_total) {
            let cpu = Cpu {
                user_s: sum(parts, &["cpu", "user_s"]),
                system_s: sum(parts, &["cpu", "system_s"]),
            };
            result["cpu"] = json!(cpu - left.cpu);
            result["reconnects"] = json!(self.total.total().reconnects);
            for (kind, count) in total.errors.by_name() {
                let errors = &mut result["warmup"]["errors"][kind];
                *errors = json!(errors.as_u64().unwrap_or(0) + count);
            }
            let until_ns = measured_from_ns + left_out_ns - started_ns;
            result["warmup"]["elapsed_s"] = json!(Duration::from_nanos(until_ns).as_secs_f64());
        }
        if parts.iter().any(|part| part.result["reads"].is_object()) {
            result["reads"] = reads(parts);
        }
        result["backend"]["status"] = json!(sum_members(parts, &["backend", "status"]));
        result["open"] = self.open_loop(parts);
        // The worst is what all of it came to.
        let rank = |part: &Part| match part.result["outcome"].as_str() {
            Some("ok") => 0,
            Some("partial") => 1,
            _ => 2,
        };
        if let Some(worst) = parts.iter().rev().max_by_key(|part| rank(part)) {
            for key in ["outcome", "ended_by", "error"] {
                result[key] = worst.result[key].clone();
            }
        }
        result
    }

    fn open_loop(&self, parts: &[Part]) -> Value {
        let of = |key: &str| -> Vec<&Value> {
            parts.iter().map(|part| &part.result["open"][key]).collect()
        };
        let Some(arrivals) = of("arrivals")
            .first()
            .and_then(|law| serde_json::from_value((*law).clone()).ok())
        else {
            return Value::Null;
        };
        let count = |key| of(key).into_iter().filter_map(Value::as_u64).sum::<u64>();
        let rate_per_s = of("rate_per_s").into_iter().filter_map(Value::as_f64).sum();
        // Requests are sent in their order, so that those that never were are the last.
        let sent_before = self
            .left_out
            .as_ref()
            .and_then(|left| left.recording.lag.as_ref())
            .map_or(0, Histogram::len);
        json!(OpenLoop::new(
            rate_per_s,
            arrivals,
            (
                count("due").saturating_sub(sent_before),
                count("sent_late"),
                count("unsent"),
            ),
            self.total.lag.as_ref(),
        ))
    }
}

impl Part {
    fn add_interval(&self, line: &Interval, operations: &[String], recording: &mut Recording) {
        let Some(index) = operations.iter().position(|name| *name == line.operation) else {
            return;
        };
        let warmup = if line.warmup { ".warmup" } else { "" };
        let logged = |name: &str, what: &str| {
            self.histograms
                .get(&(format!("{name}{what}{warmup}"), line.start_ns))
        };
        let series = &mut recording.series[index];
        if let Some(latency) = logged(&line.operation, "") {
            add(&mut series.latency, latency);
        }
        if let (Some(mine), Some(service)) =
            (&mut series.service, logged(&line.operation, ".service"))
        {
            add(mine, service);
        }
        if let Some(failed) = logged(&line.operation, ".failed") {
            add(&mut series.failed, failed);
        }
        series.errors.add(&errors(&line.error_kinds));
        series.reconnects += line.reconnects;
        // One lag is logged for all operations of an interval.
        if index == 0
            && let (Some(mine), Some(lag)) = (&mut recording.lag, logged("schedule", ".lag"))
        {
            add(mine, lag);
        }
    }
}

fn errors(kinds: &BTreeMap<String, u64>) -> ErrorCounts {
    let mut counts = ErrorCounts::default();
    for kind in ErrorKind::ALL {
        counts.count_many(kind, kinds.get(kind.name()).copied().unwrap_or(0));
    }
    counts
}

fn least(parts: &[Part], key: &str) -> u64 {
    parts.iter().map(|part| part.number(key)).min().unwrap_or(0)
}

fn at<'p>(part: &'p Part, path: &[&str]) -> &'p Value {
    path.iter().fold(&part.result, |value, key| &value[*key])
}

fn sum(parts: &[Part], path: &[&str]) -> f64 {
    parts
        .iter()
        .filter_map(|part| at(part, path).as_f64())
        .sum()
}

/// Operations that ended in time: a rate times its time.
fn ended_in_time(parts: &[Part], path: &[&str]) -> f64 {
    parts
        .iter()
        .map(|part| {
            let rate_per_s = at(part, path)["throughput_per_s"].as_f64().unwrap_or(0.0);
            (rate_per_s * part.elapsed_s()).round()
        })
        .sum()
}

/// What the readers of all drivers found.
fn reads(parts: &[Part]) -> Value {
    let mut sums = sum_members(parts, &["reads"]);
    let longest_ns = parts
        .iter()
        .filter_map(|part| part.result["reads"]["longest_ns"].as_u64())
        .max();
    sums.insert("longest_ns".to_owned(), json!(longest_ns));
    sums.into()
}

/// Numbers by name, added up; whole numbers stay whole.
fn sum_members(parts: &[Part], path: &[&str]) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    for members in parts.iter().filter_map(|part| at(part, path).as_object()) {
        for (name, value) in members {
            let sum = sums.entry(name.clone()).or_insert(json!(0));
            *sum = match (sum.as_u64(), value.as_u64()) {
                (Some(a), Some(b)) => json!(a + b),
                _ => json!(sum.as_f64().unwrap_or(0.0) + value.as_f64().unwrap_or(0.0)),
            };
        }
    }
    sums
}

/// The begin that is nearest to a time, but not further away than a log's rounding.
fn nearest(begins: &BTreeSet<u64>, about_ns: u64) -> Option<u64> {
    const ROUNDING_NS: u64 = 2_000_000;
    let before = begins.range(..=about_ns).next_back();
    let after = begins.range(about_ns..).next();
    before
        .into_iter()
        .chain(after)
        .copied()
        .min_by_key(|begin| begin.abs_diff(about_ns))
        .filter(|begin| begin.abs_diff(about_ns) <= ROUNDING_NS)
}
