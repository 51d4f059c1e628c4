//! Connects the workers, lets them go together, collects what they note, and ends the load when it is time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_result::clock::{cpu_so_far, nanoseconds, now_ns};
use dyno_result::failure::Failure;
use dyno_result::figures::{Cpu, EndedBy, Times};
use dyno_result::output::{FailedOperation, Output, Span};
use dyno_result::record::Sample;
use dyno_sql::Error;

use crate::batch::{Batch, Counts};
use crate::job::Job;
use crate::line::{plain, table_and_owner, time_of};
use crate::manifest::{Format, Manifest};
use crate::reader::{Pool, Queue, Reader, WasRead, queues};
use crate::recording::{Did, Slate};
use crate::result::{BATCH, IngestResult, Parts};
use crate::sink::{Known, Sink, connect};

/// A row's times and counts over time, besides the latencies of batches.
const ROWS: &str = "rows.csv";
/// The rows that are in doubt, each as table, owner and time in ns: a few batches at most, since a worker ends with one.
const DOUBTFUL: &str = "in-doubt.jsonl";
/// So often it is looked whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(20);
/// Between two attempts to connect anew.
const PAUSE: Duration = Duration::from_millis(100);
/// What a worker that waits for a store is given to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// The places of tables are kept in 16 bits.
const MOST_TABLES: usize = 1 << 16;

/// How a load is carried out besides what is asked.
pub struct Options<'a> {
    /// The result folder.
    pub out: &'a Path,
    /// Print a JSON line an interval.
    pub progress: bool,
    /// Ends it early.
    pub halt: Arc<AtomicBool>,
    /// Of the programs involved.
    pub versions: BTreeMap<String, String>,
}

/// When it went on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    /// Times of day, and how long it took until all that was sent was taken.
    pub times: Times,
    /// Until the last batch was sent and answered.
    pub sent_s: f64,
    /// For how long rows came: at a rate until it was told to end, since no batch is begun after that.
    pub came_s: f64,
    /// Of the load.
    pub cpu: Cpu,
    /// Batches that were due and never sent.
    pub unsent: u64,
}

/// What all workers share.
struct Shared<'a> {
    job: &'a Job,
    halt: &'a AtomicBool,
    /// Nothing more is to be sent.
    over: AtomicBool,
    /// A batch was given up before it was sent.
    cut: AtomicBool,
    /// Workers that have not ended.
    running: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    pool: Pool,
    /// When the last batch was answered, in ns since the origin.
    sent_ns: AtomicU64,
    /// Batches that were given up before they were sent.
    unsent: AtomicU64,
    /// Of rows that are in doubt.
    doubtful: Mutex<Vec<Doubtful>>,
    /// When somebody saw first that it is to end: what becomes due later nobody has to send.
    told: OnceLock<Instant>,
    origin: Instant,
}

/// A row that is in doubt: its table's place, whose it is, and its time in ns.
type Doubtful = (usize, String, i64);

impl Shared<'_> {
    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // What ended the store says more than that connections broke.
        if first
            .as_ref()
            .is_none_or(|known| known.follows_from(&failure))
        {
            *first = Some(failure);
        }
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let over = self.over.load(Ordering::Relaxed) || self.halt.load(Ordering::Relaxed);
        if over {
            self.told.get_or_init(Instant::now);
        }
        over
    }

    /// When it was told to end; now where nobody saw that yet.
    fn told(&self) -> Instant {
        self.told.get().copied().unwrap_or_else(Instant::now)
    }

    /// Waits until then; false where it is over before.
    fn wait_until(&self, then: Instant) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
    }
}

/// Carries a job out. An error where the result cannot be written.
pub fn ingest(job: &Job, options: &Options<'_>) -> io::Result<IngestResult> {
    let started_ns = now_ns();
    let mut output = Output::create(options.out, vec![BATCH.to_owned()], started_ns)?;
    let mut rows = RowLog::create(options.out.join(ROWS))?;
    let open = job.rate_per_s.is_some();
    let mut load = Load {
        job,
        options,
        did: Did::nothing(open),
        doubtful: Vec::new(),
        manifest: Manifest::nothing(),
        read: WasRead::default(),
        moments: Moments::default(),
        version: String::new(),
    };
    load.moments.times.started_ns = started_ns;
    let ended = load.carry_out(&mut output, &mut rows)?;
    let (ended_by, error) = match ended {
        Ok(ended_by) => (ended_by, None),
        Err(failure) => (EndedBy::Error, Some(failure)),
    };
    let result = IngestResult::new(Parts {
        job,
        manifest: &load.manifest,
        read: load.read,
        did: &load.did,
        moments: load.moments,
        ended_by,
        error,
        version: load.version,
        versions: options.versions.clone(),
    });
    rows.0.flush()?;
    write_doubtful(&options.out.join(DOUBTFUL), &load.manifest, &load.doubtful)?;
    output.finish(&result)?;
    Ok(result)
}

struct Load<'a> {
    job: &'a Job,
    options: &'a Options<'a>,
    did: Did,
    doubtful: Vec<Doubtful>,
    manifest: Manifest,
    read: WasRead,
    moments: Moments,
    version: String,
}

type Sinks = Vec<Box<dyn Sink>>;

impl Load<'_> {
    fn carry_out(
        &mut self,
        output: &mut Output,
        rows: &mut RowLog,
    ) -> io::Result<Result<EndedBy, Failure>> {
        let sinks = match self.prepare() {
            Ok(sinks) => sinks,
            Err(failure) => return Ok(Err(failure)),
        };
        let open = self.job.rate_per_s.is_some();
        let slates: Vec<Slate> = sinks.iter().map(|_| Slate::new(open)).collect();
        let names: Vec<String> = self.manifest.tables.keys().cloned().collect();
        let (senders, queues) = queues(self.job.split, sinks.len());
        let interrupters: Vec<_> = sinks.iter().map(|sink| sink.interrupter()).collect();
        let before = cpu_so_far();
        self.moments.times.measured_from_ns = now_ns();
        let shared = Shared {
            job: self.job,
            halt: &self.options.halt,
            over: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            running: AtomicUsize::new(sinks.len()),
            failure: Mutex::new(None),
            pool: Pool::default(),
            sent_ns: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            doubtful: Mutex::default(),
            told: OnceLock::new(),
            origin: Instant::now(),
        };
        let collected = thread::scope(|scope| {
            let reading = scope.spawn(|| self.read(&names, &shared, senders));
            for (number, ((sink, queue), slate)) in
                sinks.into_iter().zip(queues).zip(&slates).enumerate()
            {
                let shared = &shared;
                scope.spawn(move || {
                    Worker {
                        number,
                        sink,
                        slate,
                        shared,
                    }
                    .work(&queue);
                    drop(queue);
                    shared.running.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let collected = self.collect(&shared, &slates, output, rows, &interrupters);
            // Whoever writes no more must not be waited for.
            if collected.is_err() {
                shared.over.store(true, Ordering::Relaxed);
            }
            let read = reading
                .join()
                .unwrap_or_else(|_| Err("the reader panicked".to_owned()));
            collected.map(|(did, shown_ns)| (did, shown_ns, read))
        });
        let (mut did, shown_ns, read) = collected?;
        let elapsed = shared.origin.elapsed();
        self.moments.cpu = cpu_so_far() - before;
        self.moments.times.ended_ns = self.moments.times.measured_from_ns + nanoseconds(elapsed);
        self.moments.times.elapsed_s = elapsed.as_secs_f64();
        self.moments.sent_s = shared.sent_ns.load(Ordering::Relaxed) as f64 / 1e9;
        // What was in hand when it was told to end may take long: what becomes due meanwhile nobody was to send.
        let told = shared.told().saturating_duration_since(shared.origin);
        let came = if open { told.min(elapsed) } else { elapsed };
        self.moments.came_s = came.as_secs_f64();
        let last = take(&slates, open);
        self.give(&last, (shown_ns, nanoseconds(elapsed)), output, rows)?;
        did.add(&last);
        self.moments.unsent = shared.unsent.load(Ordering::Relaxed);
        if shared.cut.load(Ordering::Relaxed) || self.options.halt.load(Ordering::Relaxed) {
            let due = self.due(came);
            let behind = due.saturating_sub(did.rows.sent.total()) / u64::from(self.job.batch_rows);
            self.moments.unsent = self.moments.unsent.max(behind);
        }
        self.did = did;
        let doubtful = shared.doubtful.lock();
        self.doubtful = std::mem::take(&mut *doubtful.unwrap_or_else(PoisonError::into_inner));
        match read {
            Ok(read) => self.read = read,
            Err(wrong) => shared.fail(Failure::new("data", wrong)),
        }
        let failure = shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Ok(match failure {
            Some(failure) => Err(failure),
            None if self.options.halt.load(Ordering::Relaxed) => Ok(EndedBy::Signal),
            None if self.read.whole && !shared.cut.load(Ordering::Relaxed) => {
                Ok(EndedBy::Operations)
            }
            None => Ok(EndedBy::Duration),
        })
    }

    /// How many rows of whole batches were due within that time, where they come at a rate; of each worker one may not be
    /// whole.
    fn due(&self, elapsed: Duration) -> u64 {
        let Some(rate) = self.job.rate_per_s else {
            return 0;
        };
        // As many whole seconds as rows: a float would have to be cast.
        let made = elapsed.mul_f64(rate).as_secs();
        let unfinished = u64::from(self.job.workers) * u64::from(self.job.batch_rows);
        made.min(self.manifest.rows).saturating_sub(unfinished)
    }

    fn prepare(&mut self) -> Result<Sinks, Failure> {
        let data = |wrong: String| Failure::new("data", wrong);
        self.manifest = Manifest::read(&self.job.data).map_err(data)?;
        if self.manifest.text != Format::Ilp {
            return Err(data(format!(
                "{}: holds rows of another format, expected those of the line protocol (ilp)",
                self.job.data.display()
            )));
        }
        if self.manifest.tables.len() > MOST_TABLES {
            return Err(data(format!(
                "{}: has too many tables",
                self.job.data.display()
            )));
        }
        let tables: Arc<[Known]> = self
            .manifest
            .tables
            .iter()
            .map(|(name, table)| (name.clone(), table.clone()))
            .collect();
        let mut sinks = Vec::new();
        for worker in 0..self.job.workers as usize {
            let sink = connect(&self.job.backend, &tables, worker).map_err(|error| {
                Failure::while_attempting(&format!("connecting worker {worker}"), &error)
            })?;
            self.version = sink.version();
            sinks.push(sink);
        }
        Ok(sinks)
    }

    fn read(
        &self,
        names: &[String],
        shared: &Shared<'_>,
        senders: Vec<SyncSender<Batch>>,
    ) -> Result<WasRead, String> {
        let reader = Reader {
            folder: &self.job.data,
            tables: names,
            batch_rows: u64::from(self.job.batch_rows),
            order: self.job.order,
            seed: self.job.seed,
            over: &shared.over,
            pool: &shared.pool,
        };
        let read = reader.read(senders);
        if read.is_err() {
            shared.over.store(true, Ordering::Relaxed);
        }
        read
    }

    /// Gives out what was noted, an interval at a time, until all workers have ended; what they noted, and up to when.
    fn collect(
        &self,
        shared: &Shared<'_>,
        slates: &[Slate],
        output: &mut Output,
        rows: &mut RowLog,
        interrupters: &[dyno_sql::Interrupter],
    ) -> io::Result<(Did, u64)> {
        let open = self.job.rate_per_s.is_some();
        let mut all = Did::nothing(open);
        let mut shown_ns = 0;
        loop {
            let next_ns = shown_ns + nanoseconds(self.job.interval);
            loop {
                if shared.running.load(Ordering::Relaxed) == 0 {
                    return Ok((all, shown_ns));
                }
                if self
                    .job
                    .duration
                    .is_some_and(|most| shared.origin.elapsed() >= most)
                {
                    shared.over.store(true, Ordering::Relaxed);
                }
                let over = shared.is_over();
                if over && shared.told().elapsed() > PATIENCE {
                    interrupters
                        .iter()
                        .for_each(dyno_sql::Interrupter::interrupt);
                }
                let left = Duration::from_nanos(next_ns).saturating_sub(shared.origin.elapsed());
                if left.is_zero() {
                    break;
                }
                thread::sleep(left.min(if over { Duration::from_millis(2) } else { LOOK }));
            }
            let did = take(slates, open);
            self.give(&did, (shown_ns, next_ns), output, rows)?;
            all.add(&did);
            if self.options.progress {
                let line = serde_json::json!({
                    "phase": "measured",
                    "elapsed_s": next_ns as f64 / 1e9,
                    "throughput_per_s": did.rows.sent.total() as f64 / self.job.interval.as_secs_f64(),
                    "rows": all.rows.sent.total(),
                });
                println!("{line}");
            }
            shown_ns = next_ns;
        }
    }

    fn give(
        &self,
        did: &Did,
        (from_ns, to_ns): (u64, u64),
        output: &mut Output,
        rows: &mut RowLog,
    ) -> io::Result<()> {
        let origin_ns = self.moments.times.measured_from_ns;
        let span = Span {
            start_ns: origin_ns + from_ns,
            end_ns: origin_ns + to_ns.max(from_ns),
            warmup: false,
            cpu: None,
        };
        output.interval(span, &did.recording)?;
        rows.add(span, did)?;
        did.failed
            .iter()
            .try_for_each(|failed| output.failed(failed))
    }
}

fn take(slates: &[Slate], open: bool) -> Did {
    let mut all = Did::nothing(open);
    for slate in slates {
        let mut did = slate.take();
        all.add(&did);
        all.failed.append(&mut did.failed);
    }
    all
}

fn write_doubtful(path: &Path, manifest: &Manifest, rows: &[Doubtful]) -> io::Result<()> {
    let names: Vec<&String> = manifest.tables.keys().collect();
    let mut file = BufWriter::new(File::create(path)?);
    for (table, owner, time_ns) in rows {
        let row = serde_json::json!([names[*table], owner, time_ns]);
        writeln!(file, "{row}")?;
    }
    file.flush()
}

/// Rows by interval, as a CSV file.
struct RowLog(BufWriter<File>);

impl RowLog {
    fn create(path: PathBuf) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "start_ns,end_ns,sent,acknowledged,in_doubt,bytes")?;
        Ok(Self(file))
    }

    fn add(&mut self, span: Span, did: &Did) -> io::Result<()> {
        let rows = &did.rows;
        writeln!(
            self.0,
            "{},{},{},{},{},{}",
            span.start_ns,
            span.end_ns,
            rows.sent.total(),
            rows.acknowledged.total(),
            rows.in_doubt.total(),
            did.bytes
        )
    }
}

struct Worker<'a> {
    number: usize,
    sink: Box<dyn Sink>,
    slate: &'a Slate,
    shared: &'a Shared<'a>,
}

impl Worker<'_> {
    fn work(mut self, queue: &Queue) {
        while let Some(batch) = queue.next() {
            if !self.one(&batch) {
                return;
            }
            self.shared.pool.give(batch);
        }
        if !self.shared.is_over()
            && let Err(error) = self.sink.finish()
        {
            self.shared
                .fail(Failure::while_attempting("ending the load", &error));
        }
    }

    /// Sends a batch, again where it may be; false where nothing more is to be sent.
    fn one(&mut self, batch: &Batch) -> bool {
        let origin = self.shared.origin;
        let due = self
            .shared
            .job
            .rate_per_s
            .map(|rate| origin + Duration::from_secs_f64(batch.made as f64 / rate));
        if !self.shared.wait_until(due.unwrap_or(origin)) {
            self.shared.cut.store(true, Ordering::Relaxed);
            // One that became due as it was told to end is no sign of being late.
            if due.is_some_and(|due| due + LOOK <= self.shared.told()) {
                self.shared.unsent.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        }
        let first = Instant::now();
        let lag_ns = due.map_or(0, |due| nanoseconds(first.saturating_duration_since(due)));
        let mut done = Counts::default();
        let mut attempts = 0_u64;
        let mut reconnected = false;
        let ended = loop {
            attempts += 1;
            if attempts > 1 {
                let again = batch.counts.without(&done);
                self.slate.note(|did| did.rows.resent.add_all(&again));
            }
            let began = Instant::now();
            let sent = self.sink.send(batch, &mut done);
            let sample = |error: Option<&Error>| Sample {
                end_ns: nanoseconds(origin.elapsed()),
                // Of a batch that was sent again, all of it: whoever waits for its rows waits as long.
                service_ns: nanoseconds(first.elapsed()),
                lag_ns,
                count: 1,
                index: 0,
                error: error.map(|error| error.kind),
                reconnected,
            };
            match sent {
                Ok(()) => {
                    let sample = sample(None);
                    self.slate.note(|did| did.note(&sample));
                    break Ok(());
                }
                Err(error) => {
                    let sample = sample(Some(&error));
                    let failed = FailedOperation {
                        client: u32::try_from(self.number).unwrap_or(u32::MAX),
                        index: 0,
                        at: Instant::now(),
                        took: began.elapsed(),
                        kind: error.kind,
                        message: error.message.clone(),
                    };
                    self.slate.note(|did| {
                        did.note(&sample);
                        did.failed.push(failed);
                    });
                    if !error.kind.breaks_connection() || !self.reconnects(first) {
                        break Err(error);
                    }
                    reconnected = true;
                }
            }
        };
        let sent_ns = nanoseconds(origin.elapsed());
        self.shared.sent_ns.fetch_max(sent_ns, Ordering::Relaxed);
        if self.shared.job.backend.acknowledges() && ended.is_err() {
            self.note_doubtful(batch, &done);
        }
        self.slate.note(|did| {
            did.rows.sent.add_all(&batch.counts);
            did.rows
                .different
                .add_all(&batch.counts.without(&batch.again));
            did.rows.acknowledged.add_all(&done);
            if self.shared.job.backend.acknowledges() {
                did.rows.in_doubt.add_all(&batch.counts.without(&done));
            }
            did.bytes += batch.text.len() as u64;
        });
        match ended {
            Ok(()) => true,
            // Told to end: what was still under way is in doubt, and nothing went wrong.
            Err(_) if self.shared.halt.load(Ordering::Relaxed) => false,
            Err(error) => {
                self.shared.fail(Failure::of_operation(BATCH, &error));
                false
            }
        }
    }

    fn note_doubtful(&self, batch: &Batch, done: &Counts) {
        let mut doubtful = self.shared.doubtful.lock();
        let doubtful = doubtful.as_mut().unwrap_or_else(|error| error.get_mut());
        for table in 0..batch.counts.tables() {
            let (taken, all) = (done.of(table), batch.counts.of(table));
            if taken == all {
                continue;
            }
            let behind: Vec<usize> = (taken..all)
                .filter_map(|place| usize::try_from(place).ok())
                .collect();
            let left = self.sink.left(table).unwrap_or(&behind);
            for line in batch.doubtful(table, left) {
                let (_, owner) = table_and_owner(line);
                // A line without a time is refused, and nowhere.
                if let Some(time_ns) = time_of(line) {
                    doubtful.push((table, plain(owner).into_owned(), time_ns));
                }
            }
        }
    }

    /// Connects anew, as long as a batch may be tried again that was first sent then.
    fn reconnects(&mut self, first: Instant) -> bool {
        let until = first + self.shared.job.retry;
        while Instant::now() < until && !self.shared.is_over() {
            match self.sink.reconnect() {
                Ok(()) => return true,
                Err(error) if error.kind.is_fatal() => return false,
                Err(_) => {
                    self.shared.wait_until(Instant::now() + PAUSE);
                }
            }
        }
        false
    }
}
