//! The files of a result folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde::Serialize;

use crate::clock::{nanoseconds, now_ns};
use crate::error::ErrorKind;
use crate::figures::{Cpu, FailedLine, IntervalLine};
use crate::record::{Recording, Series};

/// Failed operations that are written down one by one; all are counted.
const MOST_FAILED: u64 = 10_000;

/// A line for each kind of operation and interval.
pub const INTERVALS: &str = "intervals.jsonl";
/// The histograms of each interval.
pub const LATENCIES: &str = "latency.hlog";
/// Operations that failed, one by one.
pub const ERRORS: &str = "errors.jsonl";
/// The result itself.
pub const RESULT: &str = "result.json";

/// The result folder, in which `result.json` appears last and at once: where it is, the rest is
/// complete.
pub struct Output {
    folder: PathBuf,
    intervals: BufWriter<File>,
    failed: BufWriter<File>,
    failed_count: u64,
    latencies: BufWriter<File>,
    serializer: V2DeflateSerializer,
    operations: Vec<String>,
    started_ns: u64,
}

/// An operation that did not succeed.
#[derive(Debug)]
pub struct FailedOperation {
    /// Whose.
    pub client: u32,
    /// The place of its kind among the workload's operations.
    pub index: usize,
    /// When it ended.
    pub at: Instant,
    /// How long it took; in an open loop from its intended start.
    pub took: Duration,
    /// As what it is counted.
    pub kind: ErrorKind,
    /// What the store said.
    pub message: String,
}

/// One interval: where it lies, and what it took.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its begin, in ns since the epoch.
    pub start_ns: u64,
    /// Its end, in ns since the epoch.
    pub end_ns: u64,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// CPU time of the driver's process; records of an earlier dyno lack it.
    pub cpu: Option<Cpu>,
}

impl Output {
    /// Begins a folder, which is created if need be; a result of an earlier run goes.
    pub fn create(folder: &Path, operations: Vec<String>, started_ns: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        match fs::remove_file(folder.join(RESULT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut latencies = BufWriter::new(File::create(folder.join(LATENCIES))?);
        let started_s = Duration::from_nanos(started_ns).as_secs_f64();
        writeln!(latencies, "#[Histogram log format version 1.3]")?;
        writeln!(
            latencies,
            "#[StartTime: {started_s:.3} (seconds since epoch)]"
        )?;
        writeln!(
            latencies,
            "#[Values and Interval_Max are in nanoseconds; tags: an operation, with .service from the actual start, .failed, .warmup]"
        )?;
        writeln!(
            latencies,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(Self {
            intervals: BufWriter::new(File::create(folder.join(INTERVALS))?),
            failed: BufWriter::new(File::create(folder.join(ERRORS))?),
            failed_count: 0,
            latencies,
            serializer: V2DeflateSerializer::new(),
            folder: folder.to_owned(),
            operations,
            started_ns,
        })
    }

    /// Writes down one interval.
    pub fn interval(&mut self, span: Span, recording: &Recording) -> io::Result<()> {
        self.interval_of(span, &recording.series)?;
        self.histogram(span, "schedule", ".lag", recording.lag.as_ref())
    }

    /// Writes down one interval of a closed loop: what was recorded of each operation.
    pub fn interval_of<'a>(
        &mut self,
        span: Span,
        all: impl IntoIterator<Item = &'a Series>,
    ) -> io::Result<()> {
        let names = self.operations.clone();
        for (operation, series) in names.iter().zip(all) {
            let line = IntervalLine::new(span, operation, series);
            serde_json::to_writer(&mut self.intervals, &line)?;
            self.intervals.write_all(b"\n")?;
            self.histogram(span, operation, "", Some(&series.latency))?;
            self.histogram(span, operation, ".service", series.service.as_ref())?;
            self.histogram(span, operation, ".failed", Some(&series.failed))?;
        }
        Ok(())
    }

    /// Adds a histogram to the log, if there is anything in it.
    fn histogram(
        &mut self,
        span: Span,
        name: &str,
        what: &str,
        histogram: Option<&Histogram<u64>>,
    ) -> io::Result<()> {
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
            return Ok(());
        };
        let warmup = if span.warmup { ".warmup" } else { "" };
        let tag = format!("{}{what}{warmup}", as_tag(name));
        let tag = Tag::new(&tag).ok_or_else(|| io::Error::other(format!("{tag:?} is no tag")))?;
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.latencies, &mut self.serializer)?
            .write_histogram(
                histogram,
                Duration::from_nanos(span.start_ns.saturating_sub(self.started_ns)),
                Duration::from_nanos(span.end_ns.saturating_sub(span.start_ns)),
                Some(tag),
            )
            .map_err(|error| io::Error::other(format!("{error:?}")))
    }

    /// Writes down an operation that failed.
    pub fn failed(&mut self, failed: &FailedOperation) -> io::Result<()> {
        self.failed_count += 1;
        if self.failed_count > MOST_FAILED {
            return Ok(());
        }
        let line = FailedLine {
            at_ns: now_ns().saturating_sub(nanoseconds(failed.at.elapsed())),
            client: failed.client,
            operation: &self.operations[failed.index],
            kind: failed.kind.name(),
            took_us: failed.took.as_secs_f64() * 1e6,
            message: &failed.message,
        };
        serde_json::to_writer(&mut self.failed, &line)?;
        self.failed.write_all(b"\n")
    }

    /// Adds lines of failed operations that another driver wrote.
    pub fn append_failed(&mut self, lines: &[u8]) -> io::Result<()> {
        self.failed.write_all(lines)
    }

    /// Completes the folder.
    pub fn finish(mut self, result: &impl Serialize) -> io::Result<()> {
        self.intervals.flush()?;
        self.intervals.get_ref().sync_all()?;
        self.failed.flush()?;
        self.failed.get_ref().sync_all()?;
        self.latencies.flush()?;
        self.latencies.get_ref().sync_all()?;
        let unfinished = self.folder.join("result.json.tmp");
        let mut file = File::create(&unfinished)?;
        serde_json::to_writer_pretty(&mut file, result)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&unfinished, self.folder.join(RESULT))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// A name as a tag may have it: what would end one as `%` and its bytes, and so `%` itself, as in addresses.
fn as_tag(name: &str) -> String {
    let mut tag = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter == '%' || letter == ',' || letter.is_whitespace() || letter.is_control() {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(tag, "%{byte:02X}");
            }
        } else {
            tag.push(letter);
        }
    }
    tag
}
