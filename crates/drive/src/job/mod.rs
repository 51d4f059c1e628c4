//! The job of `drive`, checked at the door: what passes here can be carried out.

pub(crate) mod backend;
mod workload;

use std::time::Duration;

use dyno_job::{JobError, check_above_0, check_range, parse, read, split_kind};
use dyno_load::Driver;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use backend::{
    BackendJob, BerkeleyJob, GlassJob, JournalMode, LockingMode, Parts, SqliteConfig, StallJob,
    Synchronous, ThreadingMode,
};
pub use workload::{LedgerJob, TpccJob, WorkloadJob, YcsbJob};

/// What a driver is asked to do, once.
#[derive(Clone, Debug)]
pub struct Job {
    /// Loading the records, or applying the mix.
    pub phase: Phase,
    /// The store.
    pub backend: BackendJob,
    /// What is asked of it.
    pub workload: WorkloadJob,
    /// The same, word for word.
    pub workload_as_asked: Value,
    /// Threads, each with a connection of its own.
    pub clients: u32,
    /// When a request is made.
    pub pace: Pace,
    /// Of all operations of the measured part; with more that failed, the run has failed.
    pub max_share_failed: f64,
    /// Pauses between attempts to connect anew.
    pub reconnect: Backoff,
    /// This driver among those that share the workload.
    pub driver: Driver,
    /// Time of day at which the clients start, in ns since the epoch.
    pub start_at_ns: Option<u64>,
    /// End of the measured part, over all clients.
    pub operations: Option<u64>,
    /// End of the measured part; whichever of the two comes first.
    pub duration: Option<Duration>,
    /// The warm-up lasts until it has done these operations, over all clients ...
    pub warmup_operations: u64,
    /// ... and has taken this long.
    pub warmup: Duration,
    /// From which all random choices follow.
    pub seed: u64,
    /// The grid on which figures over time are given.
    pub interval: Duration,
    /// Whether a fault is struck meanwhile: every attempt is written down, and none ends the run.
    pub faults: bool,
    /// Who looks for what was acknowledged, on another way in.
    pub readers: Option<ReadersJob>,
}

/// Clients beside the others: each looks for a row as soon as its write was acknowledged, elsewhere.
#[derive(Clone, Debug)]
pub struct ReadersJob {
    /// Threads, each with a connection of its own.
    pub clients: u32,
    /// Rows looked for, over all of them.
    pub rate_per_s: f64,
    /// How long a row that was not there is looked for again.
    pub give_up: Duration,
    /// Where they look.
    pub server: BackendJob,
}

/// How many transactions are counted, by one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountJob {
    /// Of each kind that the mix has.
    pub transactions: u64,
    /// Of the mix, before that.
    #[serde(default)]
    pub settling: u64,
}

/// What part of a workload's life is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Fills an empty store.
    Load,
    /// Applies the workload.
    Run,
    /// Reads the store and says whether it is right.
    Check,
}

/// When a request is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A closed loop: each client asks again so long after its answer.
    Closed {
        /// Between an answer and the next request.
        think: Duration,
    },
    /// An open loop: requests arrive whether or not those before were answered.
    Open {
        /// Over all clients.
        rate_per_s: f64,
        /// By which law.
        arrivals: Arrivals,
        /// Of the requests that are due; with fewer sent, the run has failed.
        min_share_sent: f64,
        /// How long after the measured part what was due within it is still sent.
        drain: Duration,
    },
}

/// The law of the times between two arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// All the same.
    Constant,
    /// Exponential, independent of one another.
    Poisson,
}

/// Pauses that grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    phase: Phase,
    backend: Value,
    workload: Value,
    clients: u32,
    #[serde(rename = "loop")]
    pace: Option<Value>,
    max_share_failed: Option<f64>,
    #[serde(default)]
    reconnect: RawBackoff,
    #[serde(default = "alone")]
    driver: RawDriver,
    start_at_ns: Option<u64>,
    operations: Option<u64>,
    duration_s: Option<f64>,
    #[serde(default)]
    warmup_operations: u64,
    #[serde(default)]
    warmup_s: f64,
    seed: u64,
    #[serde(default = "default_interval_ms")]
    interval_ms: u64,
    count: Option<CountJob>,
    #[serde(default)]
    faults: bool,
    readers: Option<RawReaders>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReaders {
    #[serde(default = "RawReaders::clients")]
    clients: u32,
    #[serde(default = "RawReaders::rate_per_s")]
    rate_per_s: f64,
    #[serde(default = "RawReaders::give_up_s")]
    give_up_s: f64,
    server: Value,
}

impl RawReaders {
    const fn clients() -> u32 {
        1
    }
    const fn rate_per_s() -> f64 {
        100.0
    }
    const fn give_up_s() -> f64 {
        1.0
    }
}

const fn default_interval_ms() -> u64 {
    1000
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDriver {
    number: u64,
    of: u64,
}

const fn alone() -> RawDriver {
    RawDriver { number: 0, of: 1 }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawBackoff {
    first_ms: u64,
    most_ms: u64,
}

impl Default for RawBackoff {
    fn default() -> Self {
        Self {
            first_ms: 10,
            most_ms: 500,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawClosed {
    think_time_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOpen {
    rate_per_s: f64,
    #[serde(default = "constant")]
    arrivals: Arrivals,
    #[serde(default = "nearly_all")]
    min_share_sent: f64,
    #[serde(default = "default_drain_s")]
    drain_s: f64,
}

const fn constant() -> Arrivals {
    Arrivals::Constant
}

const fn nearly_all() -> f64 {
    0.99
}

const fn default_drain_s() -> f64 {
    10.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A figure is of what was asked for, but for stray errors.
const MAX_SHARE_FAILED: f64 = 0.01;

/// Longer than any study; keeps sums of times within their types.
const LONGEST_S: f64 = 1e8;

impl Job {
    /// Reads a job's text; never panics, whatever the text.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let raw: RawJob = read(parse(text)?, "")?;
        check_range("clients", raw.clients, 1, 4096)?;
        check_range("interval_ms", raw.interval_ms, 10, 60_000)?;
        check_range("warmup_s", raw.warmup_s, 0.0, LONGEST_S)?;
        if let Some(operations) = raw.operations {
            check_range("operations", operations, 1, u64::MAX)?;
        }
        if let Some(duration) = raw.duration_s {
            check_above_0("duration_s", duration, LONGEST_S)?;
        }
        if let Some(share) = raw.max_share_failed {
            check_range("max_share_failed", share, 0.0, 1.0)?;
        }
        check_phase(&raw)?;
        check_count(&raw)?;
        check_drivers(&raw)?;
        let backend = backend::read_backend(raw.backend, raw.clients)?;
        let workload_as_asked = raw.workload.clone();
        let mut workload = workload::read_workload(raw.workload, raw.phase, raw.seed)?;
        check_pair(&backend, &workload, raw.phase, raw.clients)?;
        let pace = read_pace(raw.pace)?;
        check_pace(pace, &workload)?;
        let readers = read_readers(raw.readers, &backend, &workload)?;
        if raw.count.is_some() {
            let WorkloadJob::Tpcc(tpcc) = &mut workload else {
                return Err(JobError::new("count", "is of the workload tpcc"));
            };
            tpcc.count = raw.count;
            check_counted(&backend)?;
        }
        Ok(Self {
            phase: raw.phase,
            backend,
            workload,
            workload_as_asked,
            clients: raw.clients,
            pace,
            max_share_failed: raw.max_share_failed.unwrap_or(MAX_SHARE_FAILED),
            reconnect: read_backoff(&raw.reconnect)?,
            driver: Driver {
                number: raw.driver.number,
                of: raw.driver.of,
            },
            start_at_ns: raw.start_at_ns,
            operations: raw.operations,
            duration: raw.duration_s.map(Duration::from_secs_f64),
            warmup_operations: raw.warmup_operations,
            warmup: Duration::from_secs_f64(raw.warmup_s),
            seed: raw.seed,
            interval: Duration::from_millis(raw.interval_ms),
            faults: raw.faults,
            readers,
        })
    }
}

fn check_phase(raw: &RawJob) -> Result<(), JobError> {
    if raw.phase == Phase::Run {
        if raw.operations.is_none() && raw.duration_s.is_none() && raw.count.is_none() {
            return Err(JobError::new(
                "operations",
                "is missing, and so is duration_s: the run phase needs at least one of them",
            ));
        }
        return Ok(());
    }
    let given = [
        ("operations", raw.operations.is_some()),
        ("duration_s", raw.duration_s.is_some()),
        ("warmup_operations", raw.warmup_operations > 0),
        ("warmup_s", raw.warmup_s > 0.0),
        ("loop", raw.pace.is_some()),
        ("max_share_failed", raw.max_share_failed.is_some()),
        ("count", raw.count.is_some()),
        ("faults", raw.faults),
        ("readers", raw.readers.is_some()),
    ];
    match (given.into_iter().find(|(_, given)| *given), raw.phase) {
        (None, _) => Ok(()),
        (Some((key, _)), Phase::Check) => Err(JobError::new(
            key,
            "belongs to the run phase; the check phase reads what is there, leave it out",
        )),
        (Some((key, _)), _) => Err(JobError::new(
            key,
            "belongs to the run phase; the load phase inserts workload.records rows, leave it out",
        )),
    }
}

/// Refuses what would have other transactions counted than those that are asked for.
fn check_count(raw: &RawJob) -> Result<(), JobError> {
    let Some(count) = raw.count else {
        return Ok(());
    };
    check_range("count.transactions", count.transactions, 1, 1_000_000_000)?;
    check_range("count.settling", count.settling, 0, 1_000_000_000)?;
    let given = [
        ("operations", raw.operations.is_some()),
        ("duration_s", raw.duration_s.is_some()),
        ("warmup_operations", raw.warmup_operations > 0),
        ("warmup_s", raw.warmup_s > 0.0),
        ("loop", raw.pace.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
        let message =
            "is of a run that is timed, and one with count ends when all is counted: leave it out";
        return Err(JobError::new(key, message));
    }
    if raw.clients != 1 || raw.driver.of != 1 {
        return Err(JobError::new(
            "clients",
            "is 1 where transactions are counted, of one driver",
        ));
    }
    Ok(())
}

fn check_counted(backend: &BackendJob) -> Result<(), JobError> {
    if matches!(backend, BackendJob::Mysql(_) | BackendJob::Postgresql(_)) {
        let message = "is of a store that lives in the driver: a server's work is not done here";
        return Err(JobError::new("count", message));
    }
    Ok(())
}

fn check_drivers(raw: &RawJob) -> Result<(), JobError> {
    check_range("driver.of", raw.driver.of, 1, 1000)?;
    check_range("driver.number", raw.driver.number, 0, raw.driver.of - 1)?;
    if raw.start_at_ns.is_some() && raw.warmup_operations > 0 {
        return Err(JobError::new(
            "warmup_operations",
            "ends when it is done, but drivers that start together measure together: give warmup_s",
        ));
    }
    Ok(())
}

/// Refuses what no backend of that kind could do.
fn check_pair(
    backend: &BackendJob,
    workload: &WorkloadJob,
    phase: Phase,
    clients: u32,
) -> Result<(), JobError> {
    let stores = !matches!(backend, BackendJob::Null(_));
    if let BackendJob::Glass(glass) = backend {
        check_glass(glass.parts, workload, phase)?;
    }
    if let BackendJob::Berkeley(berkeley) = backend {
        check_berkeley(berkeley, workload, phase, clients)?;
    }
    let stalls = matches!(backend, BackendJob::Null(null) if null.stall.is_some());
    match workload {
        WorkloadJob::Tpcc(_) | WorkloadJob::Ledger(_) if !stores => Err(JobError::new(
            "workload.kind",
            "needs a store that keeps what is written, and backend null keeps nothing",
        )),
        WorkloadJob::Ycsb(ycsb) if ycsb.data_integrity && !stores => Err(JobError::new(
            "workload.data_integrity",
            "needs a store that keeps what is written, and backend null keeps nothing",
        )),
        WorkloadJob::Null if stalls => Err(JobError::new(
            "workload.kind",
            "null asks nothing of the backend, and would not meet backend.stall: take ycsb",
        )),
        WorkloadJob::Ycsb(_) | WorkloadJob::Null if phase == Phase::Check => Err(JobError::new(
            "phase",
            "check is of the workloads tpcc and ledger",
        )),
        _ => Ok(()),
    }
}

/// Refuses what an engine without some component cannot do.
fn check_glass(parts: Parts, workload: &WorkloadJob, phase: Phase) -> Result<(), JobError> {
    let error = |path: &str, message: String| Err(JobError::new(path, message));
    let name = parts.name();
    if parts.is_volatile() && phase != Phase::Run {
        return error(
            "phase",
            format!(
                "assembly {name} keeps nothing: its run phase loads what it needs first, and checks it in the end"
            ),
        );
    }
    match workload {
        WorkloadJob::Ledger(_) => error(
            "workload.kind",
            "ledger is for stores that take SQL".to_owned(),
        ),
        WorkloadJob::Ycsb(_) if parts == Parts::Kernel => error(
            "workload.kind",
            "the kernel has TPC-C's tables and no others, expected tpcc".to_owned(),
        ),
        WorkloadJob::Tpcc(tpcc) if tpcc.config.rolls_back() && !parts.rolls_back() => error(
            "workload.rollbacks",
            format!(
                "is {}, but assembly {name} undoes nothing, expected 0 or the mix looking-glass",
                tpcc.config.rollbacks
            ),
        ),
        _ => Ok(()),
    }
}

/// Refuses what a product of Berkeley DB cannot do.
fn check_berkeley(
    berkeley: &BerkeleyJob,
    workload: &WorkloadJob,
    phase: Phase,
    clients: u32,
) -> Result<(), JobError> {
    let product = BerkeleyJob::product_name(berkeley.product);
    if phase == Phase::Run && clients > 1 && !berkeley.keeps_clients_apart() {
        return Err(JobError::new(
            "clients",
            format!(
                "is {clients}, but what one reads and then writes is kept from the others by product transactional \
                 with locks and mutexes alone, and this is {product}"
            ),
        ));
    }
    match workload {
        WorkloadJob::Ledger(_) => Err(JobError::new(
            "workload.kind",
            "ledger is for stores that take SQL",
        )),
        WorkloadJob::Tpcc(tpcc) if tpcc.config.rolls_back() && !berkeley.rolls_back() => {
            Err(JobError::new(
                "workload.rollbacks",
                format!(
                    "is {}, but product {product} undoes nothing, expected 0 or the mix looking-glass",
                    tpcc.config.rollbacks
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn read_pace(part: Option<Value>) -> Result<Pace, JobError> {
    let Some(part) = part else {
        return Ok(Pace::Closed {
            think: Duration::ZERO,
        });
    };
    let (kind, rest) = split_kind(part, "loop", &["closed", "open"])?;
    if kind == 0 {
        let raw: RawClosed = read(rest, "loop")?;
        check_range("loop.think_time_s", raw.think_time_s, 0.0, 3600.0)?;
        return Ok(Pace::Closed {
            think: Duration::from_secs_f64(raw.think_time_s),
        });
    }
    let raw: RawOpen = read(rest, "loop")?;
    check_above_0("loop.rate_per_s", raw.rate_per_s, 1e9)?;
    check_range("loop.min_share_sent", raw.min_share_sent, 0.0, 1.0)?;
    check_range("loop.drain_s", raw.drain_s, 0.0, 3600.0)?;
    Ok(Pace::Open {
        rate_per_s: raw.rate_per_s,
        arrivals: raw.arrivals,
        min_share_sent: raw.min_share_sent,
        drain: Duration::from_secs_f64(raw.drain_s),
    })
}

/// Refuses to have somebody wait who is told when to begin.
fn check_pace(pace: Pace, workload: &WorkloadJob) -> Result<(), JobError> {
    match (pace, workload) {
        (Pace::Open { .. }, WorkloadJob::Tpcc(tpcc)) if tpcc.keying_time || tpcc.think_time => {
            Err(JobError::new(
                "loop.kind",
                "is open, where requests are due whatever anybody types or thinks: leave out keying_time \
                 and think_time",
            ))
        }
        _ => Ok(()),
    }
}

fn read_readers(
    raw: Option<RawReaders>,
    backend: &BackendJob,
    workload: &WorkloadJob,
) -> Result<Option<ReadersJob>, JobError> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    check_range("readers.clients", raw.clients, 1, 64)?;
    check_above_0("readers.rate_per_s", raw.rate_per_s, 1e6)?;
    check_above_0("readers.give_up_s", raw.give_up_s, 3600.0)?;
    if !matches!(workload, WorkloadJob::Ledger(_)) {
        let message = "look for rows of a ledger, expected workload.kind ledger";
        return Err(JobError::new("readers", message));
    }
    let server = backend::read_backend(raw.server, raw.clients).map_err(|error| {
        JobError::new(
            error.path.replacen("backend", "readers.server", 1),
            error.message,
        )
    })?;
    if !matches!(
        (backend, &server),
        (BackendJob::Mysql(_), BackendJob::Mysql(_))
            | (BackendJob::Postgresql(_), BackendJob::Postgresql(_))
    ) {
        let message =
            "is not of the backend's own kind, expected another way in to that server or its like";
        return Err(JobError::new("readers.server", message));
    }
    Ok(Some(ReadersJob {
        clients: raw.clients,
        rate_per_s: raw.rate_per_s,
        give_up: Duration::from_secs_f64(raw.give_up_s),
        server,
    }))
}

fn read_backoff(raw: &RawBackoff) -> Result<Backoff, JobError> {
    check_range("reconnect.first_ms", raw.first_ms, 1, 60_000)?;
    check_range("reconnect.most_ms", raw.most_ms, raw.first_ms, 600_000)?;
    Ok(Backoff {
        first: Duration::from_millis(raw.first_ms),
        most: Duration::from_millis(raw.most_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::workload::Table;
    use super::*;
    use dyno_load::{Chooser, InsertOrder};
    use proptest::prelude::*;
    use serde_json::json;

    /// A valid job to spoil.
    fn job() -> Value {
        json!({
            "format": 1,
            "phase": "run",
            "backend": {"kind": "sqlite", "path": "a.db", "config": {"journal_mode": "wal"}},
            "workload": {"kind": "ycsb", "records": 10, "proportions": {"read": 1.0}},
            "clients": 1,
            "operations": 5,
            "seed": 1,
        })
    }

    #[test]
    fn what_a_job_leaves_out_has_the_defaults_of_the_schema() {
        let job = Job::from_json(&job().to_string()).unwrap();
        let WorkloadJob::Ycsb(ycsb) = job.workload else {
            panic!("{:?}", job.workload);
        };
        assert_eq!(ycsb.chooser, Chooser::Zipfian(0.99));
        assert_eq!(
            ycsb.table,
            Table {
                field_count: 10,
                field_length: 100
            }
        );
        assert!(ycsb.read_all_fields && !ycsb.write_all_fields);
        assert_eq!(
            (ycsb.max_scan_length, ycsb.insert_order),
            (100, InsertOrder::Hashed)
        );
        assert_eq!((job.warmup_operations, job.warmup), (0, Duration::ZERO));
        assert_eq!(job.interval, Duration::from_secs(1));
    }

    #[test]
    fn shares_that_sum_to_one_but_for_rounding_are_accepted() {
        let mut job = job();
        job["workload"]["proportions"] = json!({"read": 0.1, "update": 0.2, "insert": 0.3, "scan": 0.3, "read_modify_write": 0.1});
        assert!(Job::from_json(&job.to_string()).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            Just(json!([])),
            Just(json!({})),
            Just(json!({"kind": "null"})),
            Just(json!({"kind": "null", "stall": {"at_s": 1, "for_s": 0.5}})),
            Just(json!({"kind": "ycsb"})),
        ]
    }

    const PLACES: [&str; 24] = [
        "/format",
        "/phase",
        "/backend",
        "/backend/kind",
        "/backend/path",
        "/backend/config",
        "/backend/config/journal_mode",
        "/backend/config/cache_size_bytes",
        "/backend/config/mmap_size_bytes",
        "/backend/config/page_size_bytes",
        "/backend/config/busy_timeout_ms",
        "/workload",
        "/workload/records",
        "/workload/theta",
        "/workload/proportions",
        "/workload/proportions/read",
        "/workload/field_count",
        "/workload/field_length_bytes",
        "/workload/max_scan_length",
        "/clients",
        "/operations",
        "/duration_s",
        "/warmup_s",
        "/interval_ms",
    ];

    /// Puts a value where the path leads, as far as there are objects on the way.
    fn put(job: &mut Value, path: &str, value: Value) {
        let Some((parent, key)) = path.rsplit_once('/') else {
            return;
        };
        if let Some(Value::Object(members)) = job.pointer_mut(parent) {
            members.insert(key.to_owned(), value);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            prop_assert!(Job::from_json(&text).is_err());
        }

        #[test]
        fn a_spoilt_job_is_refused_in_one_line_or_lies_within_its_bounds(
            spoilt in prop::collection::vec((prop::sample::select(&PLACES[..]), values()), 1..4),
        ) {
            let mut job = job();
            for (place, value) in spoilt {
                put(&mut job, place, value);
            }
            match Job::from_json(&job.to_string()) {
                Err(error) => {
                    let line = error.to_string();
                    prop_assert!(!line.contains('\n') && line.contains(": "), "{}", line);
                }
                Ok(job) => {
                    prop_assert!((1..=4096).contains(&job.clients));
                    prop_assert!(job.interval >= Duration::from_millis(10));
                    prop_assert!(job.phase == Phase::Load || job.operations.is_some() || job.duration.is_some());
                    if let WorkloadJob::Ycsb(ycsb) = job.workload {
                        prop_assert!(ycsb.records >= 1 && ycsb.table.row_length() >= 1);
                    }
                }
            }
        }
    }
}
