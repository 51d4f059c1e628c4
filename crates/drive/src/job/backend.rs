//! The stores of a job.

use std::path::PathBuf;
use std::time::Duration;

use dyno_glass::assembly::Spec;
use dyno_glass::log::Policy;
use dyno_job::{JobError, check_above_0, check_range, read, split_kind};
use dyno_sql::{Address, Limits, Server};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LONGEST_S;

/// The store that is driven.
#[derive(Clone, Debug)]
pub enum BackendJob {
    /// A database file of `SQLite`, within this process.
    Sqlite(SqliteJob),
    /// dyno's own engine, within this process.
    Glass(GlassJob),
    /// Answers at once, stores nothing.
    Null(NullJob),
    /// A server of the `MySQL` protocol: `MariaDB` or `MySQL`.
    Mysql(Server),
    /// A `PostgreSQL` server.
    Postgresql(Server),
}

/// Nothing, but for a planted fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullJob {
    /// When it stands still.
    pub stall: Option<StallJob>,
}

/// A stop of known length: what a driver says of it can be held against arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StallJob {
    /// Since the measured part began, in [0, 1e8].
    pub at_s: f64,
    /// In (0, 3600].
    pub for_s: f64,
}

/// Which engine it is made of, and where it keeps what lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlassJob {
    /// Its components.
    pub parts: Parts,
    /// Its folder; `None` where nothing is kept.
    pub folder: Option<PathBuf>,
    /// The buffer pool's memory.
    pub pool_bytes: usize,
    /// Whether all pages are read before the clients begin.
    pub preload: bool,
    /// When the log reaches the disk.
    pub log: Policy,
}

/// What an engine is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// These components.
    Assembly(Spec),
    /// None, by another program.
    Kernel,
}

impl Parts {
    /// As in a job.
    pub fn name(self) -> String {
        match self {
            Self::Assembly(spec) => spec.to_string(),
            Self::Kernel => KERNEL.to_owned(),
        }
    }

    /// Whether all that it holds is gone when its process ends.
    #[must_use]
    pub const fn is_volatile(self) -> bool {
        match self {
            Self::Assembly(spec) => !spec.buffer,
            Self::Kernel => true,
        }
    }

    /// Whether several clients can use it at the same time.
    const fn takes_several(self) -> bool {
        matches!(self, Self::Assembly(spec) if spec.latches && spec.locks)
    }

    /// Whether a transaction can be undone.
    #[must_use]
    pub const fn rolls_back(self) -> bool {
        matches!(self, Self::Assembly(spec) if spec.transactions)
    }
}

const KERNEL: &str = "kernel";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGlass {
    #[serde(default = "RawGlass::assembly")]
    assembly: String,
    folder: Option<PathBuf>,
    #[serde(default = "RawGlass::pool_bytes")]
    pool_bytes: u64,
    #[serde(default)]
    preload: bool,
    #[serde(default = "RawGlass::log")]
    log: RawPolicy,
    #[serde(default = "RawGlass::log_interval_ms")]
    log_interval_ms: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawPolicy {
    Memory,
    Written,
    Synced,
}

impl RawGlass {
    fn assembly() -> String {
        "full".to_owned()
    }
    const fn pool_bytes() -> u64 {
        256 << 20
    }
    const fn log() -> RawPolicy {
        RawPolicy::Synced
    }
    const fn log_interval_ms() -> u64 {
        1000
    }
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    user: String,
    password: Option<String>,
    database: String,
    #[serde(default)]
    limits: RawLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
// The keys of a job name their unit.
#[allow(clippy::struct_field_names)]
struct RawLimits {
    connect_s: f64,
    read_s: f64,
    write_s: f64,
}

impl Default for RawLimits {
    fn default() -> Self {
        Self {
            connect_s: 5.0,
            read_s: 30.0,
            write_s: 30.0,
        }
    }
}

/// `SQLite` counts cache in KiB within a signed 32-bit number.
const CACHE_UNIT: u64 = 1024;
const MOST_I32: u64 = i32::MAX as u64;

/// The longest stop that is of any use.
const LONGEST_STALL_S: f64 = 3600.0;

/// The longest limit on a server's answers.
const LONGEST_LIMIT_S: f64 = 3600.0;

pub(super) fn read_backend(part: Value, clients: u32) -> Result<BackendJob, JobError> {
    let kinds = ["sqlite", "null", "mysql", "postgresql", "glass"];
    let (kind, rest) = split_kind(part, "backend", &kinds)?;
    match kind {
        0 => read_sqlite(rest, clients).map(BackendJob::Sqlite),
        1 => read_null(rest).map(BackendJob::Null),
        4 => read_glass(rest, clients).map(BackendJob::Glass),
        2 => read_server(rest).map(BackendJob::Mysql),
        _ => read_server(rest).map(BackendJob::Postgresql),
    }
}

fn read_glass(part: Value, clients: u32) -> Result<GlassJob, JobError> {
    let raw: RawGlass = read(part, "backend")?;
    let parts = if raw.assembly == KERNEL {
        Parts::Kernel
    } else {
        let spec = raw.assembly.parse().map_err(|error: dyno_glass::Error| {
            JobError::new("backend.assembly", format!("{error}; or {KERNEL}"))
        })?;
        Parts::Assembly(spec)
    };
    if clients > 1 && !parts.takes_several() {
        return Err(JobError::new(
            "clients",
            format!(
                "is {clients}, but assembly {} lets one in: it takes both latches and locks for more",
                parts.name()
            ),
        ));
    }
    check_range(
        "backend.pool_bytes",
        raw.pool_bytes,
        LEAST_POOL,
        i64::MAX as u64,
    )?;
    check_range("backend.log_interval_ms", raw.log_interval_ms, 1, 3_600_000)?;
    let log = match raw.log {
        RawPolicy::Memory => Policy::Memory,
        RawPolicy::Written => Policy::Written(Duration::from_millis(raw.log_interval_ms)),
        RawPolicy::Synced => Policy::Synced,
    };
    let logs = matches!(parts, Parts::Assembly(spec) if spec.log) && log != Policy::Memory;
    if logs && parts.is_volatile() {
        return Err(JobError::new(
            "backend.log",
            format!(
                "keeps what assembly {} does not: without buffer all pages are gone with the process, expected memory",
                parts.name()
            ),
        ));
    }
    match &raw.folder {
        None if !parts.is_volatile() => Err(JobError::new(
            "backend.folder",
            format!("is missing, and assembly {} has a file", parts.name()),
        )),
        Some(_) if parts.is_volatile() => Err(JobError::new(
            "backend.folder",
            format!(
                "is given, but assembly {} keeps nothing, leave it out",
                parts.name()
            ),
        )),
        Some(folder) if folder.as_os_str().is_empty() => Err(JobError::new(
            "backend.folder",
            "is empty, expected a folder's path",
        )),
        _ => Ok(GlassJob {
            parts,
            folder: raw.folder,
            pool_bytes: usize::try_from(raw.pool_bytes).unwrap_or(usize::MAX),
            preload: raw.preload,
            log,
        }),
    }
}

/// Enough pages for every client to pin some.
const LEAST_POOL: u64 = 1 << 20;

fn read_null(part: Value) -> Result<NullJob, JobError> {
    let job: NullJob = read(part, "backend")?;
    if let Some(stall) = job.stall {
        check_range("backend.stall.at_s", stall.at_s, 0.0, LONGEST_S)?;
        check_above_0("backend.stall.for_s", stall.for_s, LONGEST_STALL_S)?;
    }
    Ok(job)
}

fn read_server(part: Value) -> Result<Server, JobError> {
    let raw: RawServer = read(part, "backend")?;
    for (key, text) in [("user", &raw.user), ("database", &raw.database)] {
        if text.is_empty() || text.contains('\0') {
            return Err(JobError::new(
                format!("backend.{key}"),
                "is empty, expected a name",
            ));
        }
    }
    let address = match (raw.host, raw.port, raw.socket) {
        (Some(host), Some(port), None) if !host.is_empty() && port > 0 => Address::Tcp(host, port),
        (None, None, Some(socket)) if !socket.as_os_str().is_empty() => Address::Unix(socket),
        _ => {
            return Err(JobError::new(
                "backend",
                "does not say where the server listens, expected host and port, or else socket",
            ));
        }
    };
    let limit = |key: &str, seconds: f64| {
        check_range(
            &format!("backend.limits.{key}"),
            seconds,
            0.001,
            LONGEST_LIMIT_S,
        )
        .map(|()| Duration::from_secs_f64(seconds))
    };
    Ok(Server {
        address,
        user: raw.user,
        password: raw.password,
        database: raw.database,
        limits: Limits {
            connect: limit("connect_s", raw.limits.connect_s)?,
            read: limit("read_s", raw.limits.read_s)?,
            write: limit("write_s", raw.limits.write_s)?,
        },
    })
}

fn read_sqlite(part: Value, clients: u32) -> Result<SqliteJob, JobError> {
    let job: SqliteJob = read(part, "backend")?;
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
    Ok(job)
}
