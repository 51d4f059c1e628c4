//! The files of a result folder.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::record::Recording;
use crate::result::{DriveResult, IntervalLine};

const RESULT: &str = "result.json";

/// The result folder, in which `result.json` appears last and at once: where it is, the rest is
/// complete.
pub struct Output {
    folder: PathBuf,
    intervals: BufWriter<File>,
    latencies: BufWriter<File>,
    serializer: V2DeflateSerializer,
    operations: Vec<&'static str>,
    started_ns: u64,
}

/// One interval: where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its begin, in ns since the epoch.
    pub start_ns: u64,
    /// Its end, in ns since the epoch.
    pub end_ns: u64,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
}

impl Output {
    /// Begins a folder, which is created if need be; a result of an earlier run goes.
    pub fn create(
        folder: &Path,
        operations: Vec<&'static str>,
        started_ns: u64,
    ) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        match fs::remove_file(folder.join(RESULT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut latencies = BufWriter::new(File::create(folder.join("latency.hlog"))?);
        let started_s = Duration::from_nanos(started_ns).as_secs_f64();
        writeln!(latencies, "#[Histogram log format version 1.3]")?;
        writeln!(
            latencies,
            "#[StartTime: {started_s:.3} (seconds since epoch)]"
        )?;
        writeln!(
            latencies,
            "#[Values and Interval_Max are in nanoseconds, one tag an operation]"
        )?;
        writeln!(
            latencies,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(Self {
            intervals: BufWriter::new(File::create(folder.join("intervals.jsonl"))?),
            latencies,
            serializer: V2DeflateSerializer::new(),
            folder: folder.to_owned(),
            operations,
            started_ns,
        })
    }

    /// Writes down one interval. Histograms of the warm-up are not kept.
    pub fn interval(&mut self, span: Span, recording: &Recording) -> io::Result<()> {
        let times = (span.start_ns, span.end_ns);
        for (operation, series) in self.operations.iter().zip(&recording.series) {
            let line = IntervalLine::new(times, span.warmup, operation, series);
            serde_json::to_writer(&mut self.intervals, &line)?;
            self.intervals.write_all(b"\n")?;
            if span.warmup || series.latency.is_empty() {
                continue;
            }
            IntervalLogWriterBuilder::new()
                .begin_log_with(&mut self.latencies, &mut self.serializer)?
                .write_histogram(
                    &series.latency,
                    Duration::from_nanos(span.start_ns.saturating_sub(self.started_ns)),
                    Duration::from_nanos(span.end_ns.saturating_sub(span.start_ns)),
                    Tag::new(operation),
                )
                .map_err(|error| io::Error::other(format!("{error:?}")))?;
        }
        Ok(())
    }

    /// Completes the folder.
    pub fn finish(mut self, result: &DriveResult) -> io::Result<()> {
        self.intervals.flush()?;
        self.intervals.get_ref().sync_all()?;
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
