//! The job of `drive`, checked at the door: what passes here can be carried out.

use std::time::Duration;

use dyno_job::{JobError, check_range, parse, read, split_kind};
use dyno_load::{Chooser, InsertOrder, Mix, Operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a driver is asked to do, once.
#[derive(Clone, Debug)]
pub struct Job {
    /// Loading the records, or applying the mix.
    pub phase: Phase,
    /// The store.
    pub backend: BackendJob,
    /// What is asked of it.
    pub workload: WorkloadJob,
    /// Threads, each with a connection of its own.
    pub clients: u32,
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
}

/// Loading the records, or applying the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Inserts the records.
    Load,
    /// Applies the mix.
    Run,
}

/// The store that is driven.
#[derive(Clone, Debug)]
pub enum BackendJob {
    /// A database file of `SQLite`, within this process.
    Sqlite(SqliteJob),
    /// Answers at once, stores nothing.
    Null,
}

/// Where the database lies and how it is set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteJob {
    /// The database file.
    pub path: String,
    /// Its settings.
    #[serde(default)]
    pub config: SqliteConfig,
}

/// `SQLite`'s settings, as asked for and as read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteConfig {
    /// How a transaction survives a crash.
    pub journal_mode: Option<JournalMode>,
    /// When the disk is waited for.
    pub synchronous: Option<Synchronous>,
    /// Page cache of each connection.
    pub cache_size_bytes: Option<u64>,
    /// How much of the file is mapped instead of read.
    pub mmap_size_bytes: Option<u64>,
    /// Whether locks are kept between transactions.
    pub locking_mode: Option<LockingMode>,
    /// Size of a page; takes effect when the file is created.
    pub page_size_bytes: Option<u64>,
    /// For how long an operation waits for another's lock.
    pub busy_timeout_ms: Option<u64>,
}

/// The pragma `journal_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum JournalMode {
    Delete,
    Truncate,
    Persist,
    Memory,
    Wal,
    Off,
}

/// The pragma `synchronous`, in the order of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Synchronous {
    Off,
    Normal,
    Full,
    Extra,
}

/// The pragma `locking_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LockingMode {
    Normal,
    Exclusive,
}

/// What is asked of the store.
#[derive(Clone, Debug)]
pub enum WorkloadJob {
    /// YCSB's core workloads.
    Ycsb(YcsbJob),
    /// Nothing: shows the driver's own cost.
    Null,
}

/// A workload of YCSB's core kind.
#[derive(Clone, Debug)]
pub struct YcsbJob {
    /// Rows that the load phase inserts.
    pub records: u64,
    /// The operations and their proportions.
    pub mix: Mix,
    /// The law of the keys.
    pub chooser: Chooser,
    /// The shape of a row.
    pub table: Table,
    /// Whether reads and scans take all fields, or one chosen at random.
    pub read_all_fields: bool,
    /// Whether updates write all fields, or one chosen at random.
    pub write_all_fields: bool,
    /// The longest scan, in rows.
    pub max_scan_length: u32,
    /// Where new keys fall among the others.
    pub insert_order: InsertOrder,
}

/// The shape of a row: a key and fields of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Fields beside the key, at least 1.
    pub field_count: u32,
    /// Bytes of each, at least 1.
    pub field_length: u32,
}

impl Table {
    /// Bytes of all the fields of a row.
    #[must_use]
    pub fn row_length(self) -> usize {
        self.field_count as usize * self.field_length as usize
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    phase: Phase,
    backend: Value,
    workload: Value,
    clients: u32,
    operations: Option<u64>,
    duration_s: Option<f64>,
    #[serde(default)]
    warmup_operations: u64,
    #[serde(default)]
    warmup_s: f64,
    seed: u64,
    #[serde(default = "default_interval_ms")]
    interval_ms: u64,
}

const fn default_interval_ms() -> u64 {
    1000
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawChooser {
    Zipfian,
    Uniform,
    Latest,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawInsertOrder {
    Hashed,
    Ordered,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProportions {
    read: f64,
    update: f64,
    insert: f64,
    scan: f64,
    read_modify_write: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawYcsb {
    records: u64,
    proportions: RawProportions,
    #[serde(default = "RawYcsb::key_chooser")]
    key_chooser: RawChooser,
    #[serde(default = "RawYcsb::theta")]
    theta: f64,
    #[serde(default = "RawYcsb::field_count")]
    field_count: u32,
    #[serde(default = "RawYcsb::field_length_bytes")]
    field_length_bytes: u32,
    #[serde(default = "RawYcsb::read_all_fields")]
    read_all_fields: bool,
    #[serde(default)]
    write_all_fields: bool,
    #[serde(default = "RawYcsb::max_scan_length")]
    max_scan_length: u32,
    #[serde(default = "RawYcsb::insert_order")]
    insert_order: RawInsertOrder,
}

impl RawYcsb {
    const fn key_chooser() -> RawChooser {
        RawChooser::Zipfian
    }
    const fn theta() -> f64 {
        0.99
    }
    const fn field_count() -> u32 {
        10
    }
    const fn field_length_bytes() -> u32 {
        100
    }
    const fn read_all_fields() -> bool {
        true
    }
    const fn max_scan_length() -> u32 {
        100
    }
    const fn insert_order() -> RawInsertOrder {
        RawInsertOrder::Hashed
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Longer than any study; keeps sums of times within their types.
const LONGEST_S: f64 = 1e8;

/// `SQLite` counts cache in KiB within a signed 32-bit number.
const CACHE_UNIT: u64 = 1024;
const MOST_I32: u64 = i32::MAX as u64;

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
            check_range("duration_s", duration, f64::MIN_POSITIVE, LONGEST_S)?;
        }
        check_phase(&raw)?;
        let backend = read_backend(raw.backend, raw.clients)?;
        let workload = read_workload(raw.workload)?;
        Ok(Self {
            phase: raw.phase,
            backend,
            workload,
            clients: raw.clients,
            operations: raw.operations,
            duration: raw.duration_s.map(Duration::from_secs_f64),
            warmup_operations: raw.warmup_operations,
            warmup: Duration::from_secs_f64(raw.warmup_s),
            seed: raw.seed,
            interval: Duration::from_millis(raw.interval_ms),
        })
    }
}

fn check_phase(raw: &RawJob) -> Result<(), JobError> {
    if raw.phase == Phase::Run {
        if raw.operations.is_none() && raw.duration_s.is_none() {
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
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(JobError::new(
            key,
            "belongs to the run phase; the load phase inserts workload.records rows, leave it out",
        )),
        None => Ok(()),
    }
}

fn read_backend(part: Value, clients: u32) -> Result<BackendJob, JobError> {
    let (kind, rest) = split_kind(part, "backend", &["sqlite", "null"])?;
    if kind == 1 {
        read::<Nothing>(rest, "backend")?;
        return Ok(BackendJob::Null);
    }
    let job: SqliteJob = read(rest, "backend")?;
    if job.path.is_empty() || job.path.contains('\0') {
        return Err(JobError::new(
            "backend.path",
            "is not a file name, expected the database file's path",
        ));
    }
    let config = &job.config;
    if config.locking_mode == Some(LockingMode::Exclusive) && clients > 1 {
        return Err(JobError::new(
            "backend.config.locking_mode",
            format!(
                "exclusive lets one connection in, but clients is {clients}: \
                 set clients to 1 or locking_mode to normal"
            ),
        ));
    }
    if let Some(bytes) = config.cache_size_bytes {
        let path = "backend.config.cache_size_bytes";
        check_range(path, bytes, 0, MOST_I32 * CACHE_UNIT)?;
        if bytes % CACHE_UNIT != 0 {
            return Err(JobError::new(
                path,
                format!(
                    "{bytes} is not a multiple of {CACHE_UNIT}, in which SQLite counts; expected {}",
                    bytes.div_ceil(CACHE_UNIT) * CACHE_UNIT
                ),
            ));
        }
    }
    if let Some(bytes) = config.mmap_size_bytes {
        check_range("backend.config.mmap_size_bytes", bytes, 0, i64::MAX as u64)?;
    }
    if let Some(ms) = config.busy_timeout_ms {
        check_range("backend.config.busy_timeout_ms", ms, 0, MOST_I32)?;
    }
    if let Some(bytes) = config.page_size_bytes
        && !(bytes.is_power_of_two() && (512..=65_536).contains(&bytes))
    {
        return Err(JobError::new(
            "backend.config.page_size_bytes",
            format!("{bytes} is not a page size, expected a power of two from 512 to 65536"),
        ));
    }
    Ok(BackendJob::Sqlite(job))
}

fn read_workload(part: Value) -> Result<WorkloadJob, JobError> {
    let (kind, rest) = split_kind(part, "workload", &["ycsb", "null"])?;
    if kind == 1 {
        read::<Nothing>(rest, "workload")?;
        return Ok(WorkloadJob::Null);
    }
    let raw: RawYcsb = read(rest, "workload")?;
    check_range("workload.records", raw.records, 1, 1_000_000_000_000)?;
    check_range("workload.theta", raw.theta, f64::MIN_POSITIVE, 10.0)?;
    check_range("workload.field_count", raw.field_count, 1, 1000)?;
    check_range(
        "workload.field_length_bytes",
        raw.field_length_bytes,
        1,
        1 << 20,
    )?;
    check_range("workload.max_scan_length", raw.max_scan_length, 1, 100_000)?;
    let table = Table {
        field_count: raw.field_count,
        field_length: raw.field_length_bytes,
    };
    if table.row_length() > LONGEST_ROW {
        return Err(JobError::new(
            "workload.field_length_bytes",
            format!(
                "rows of {} bytes are too long, expected field_count times field_length_bytes to be \
                 at most {LONGEST_ROW}",
                table.row_length()
            ),
        ));
    }
    Ok(WorkloadJob::Ycsb(YcsbJob {
        records: raw.records,
        mix: read_mix(&raw.proportions)?,
        chooser: match raw.key_chooser {
            RawChooser::Zipfian => Chooser::Zipfian(raw.theta),
            RawChooser::Uniform => Chooser::Uniform,
            RawChooser::Latest => Chooser::Latest(raw.theta),
        },
        table,
        read_all_fields: raw.read_all_fields,
        write_all_fields: raw.write_all_fields,
        max_scan_length: raw.max_scan_length,
        insert_order: match raw.insert_order {
            RawInsertOrder::Hashed => InsertOrder::Hashed,
            RawInsertOrder::Ordered => InsertOrder::Ordered,
        },
    }))
}

/// `SQLite` refuses rows above 10^9 bytes; a little less leaves room for the key and the lengths.
const LONGEST_ROW: usize = 999_000_000;

fn read_mix(raw: &RawProportions) -> Result<Mix, JobError> {
    let path = "workload.proportions";
    let shares = [
        raw.read,
        raw.update,
        raw.insert,
        raw.scan,
        raw.read_modify_write,
    ];
    for (operation, share) in Operation::ALL.iter().zip(shares) {
        check_range(&format!("{path}.{}", operation.name()), share, 0.0, 1.0)?;
    }
    let sum: f64 = shares.iter().sum();
    if (sum - 1.0).abs() > 1e-9 {
        return Err(JobError::new(
            path,
            format!("sum to {sum}, expected a sum of 1"),
        ));
    }
    Mix::new(shares).ok_or_else(|| JobError::new(path, "are all 0, expected a sum of 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
