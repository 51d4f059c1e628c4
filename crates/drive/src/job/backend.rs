//! The stores of a job.

use std::path::PathBuf;
use std::time::Duration;

use dyno_berkeley::{Log, Product};
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
    /// Berkeley DB, within this process.
    Berkeley(BerkeleyJob),
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

/// Where its B-trees are, and which of the library's parts they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BerkeleyJob {
    /// Its folder.
    pub folder: PathBuf,
    /// Which product it is.
    pub product: Product,
    /// Of the page cache, at least.
    pub cache_bytes: u64,
    /// Of B-trees; takes effect when they are made.
    pub page_size_bytes: Option<u32>,
    /// Whether pages have checksums; takes effect when they are made.
    pub checksums: Option<bool>,
    /// Of the transactional product.
    pub log: Log,
    /// Of the transactional product: whether transactions lock what they read and write.
    pub locks: bool,
    /// Whether what clients share is guarded.
    pub mutexes: bool,
    /// Whether all pages are read before the clients begin.
    pub preload: bool,
}

impl BerkeleyJob {
    /// Its product's name, as in a job.
    pub const fn product_name(product: Product) -> &'static str {
        match product {
            Product::DataStore => "data-store",
            Product::Concurrent => "concurrent",
            Product::Transactional => "transactional",
        }
    }

    /// Where its log goes, as in a job.
    pub const fn log_name(log: Log) -> &'static str {
        match log {
            Log::Memory => "memory",
            Log::Written => "written",
            Log::Synced => "synced",
        }
    }

    /// Whether several clients can change what they have read.
    pub const fn keeps_clients_apart(&self) -> bool {
        matches!(self.product, Product::Transactional) && self.locks && self.mutexes
    }

    /// Whether a transaction can be undone.
    pub const fn rolls_back(&self) -> bool {
        matches!(self.product, Product::Transactional)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBerkeley {
    folder: PathBuf,
    #[serde(default = "RawBerkeley::product")]
    product: RawProduct,
    #[serde(default = "RawGlass::pool_bytes")]
    cache_bytes: u64,
    page_size_bytes: Option<u32>,
    checksums: Option<bool>,
    log: Option<RawPolicy>,
    locks: Option<bool>,
    #[serde(default = "RawBerkeley::yes")]
    mutexes: bool,
    #[serde(default)]
    preload: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawProduct {
    DataStore,
    Concurrent,
    Transactional,
}

impl RawBerkeley {
    const fn product() -> RawProduct {
        RawProduct::Transactional
    }
    const fn yes() -> bool {
        true
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
    /// What the library guards by mutexes.
    pub threading_mode: Option<ThreadingMode>,
    /// Whether the library counts the memory that it takes.
    pub memory_statistics: Option<bool>,
    /// Whether the run phase works on a copy in memory, which it writes back in the end.
    pub in_memory: Option<bool>,
    /// Whether what is deleted is overwritten.
    pub secure_delete: Option<bool>,
    /// Whether the run phase reads all pages into the cache before its clients begin.
    pub preload: Option<bool>,
}

/// `SQLite`'s threading mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadingMode {
    /// Nothing: one thread at a time uses the library.
    SingleThread,
    /// What connections share.
    MultiThread,
    /// That, and each connection.
    Serialized,
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
    let kinds = [
        "sqlite",
        "null",
        "mysql",
        "postgresql",
        "glass",
        "berkeleydb",
    ];
    let (kind, rest) = split_kind(part, "backend", &kinds)?;
    match kind {
        0 => read_sqlite(rest, clients).map(BackendJob::Sqlite),
        1 => read_null(rest).map(BackendJob::Null),
        4 => read_glass(rest, clients).map(BackendJob::Glass),
        5 => read_berkeley(rest).map(BackendJob::Berkeley),
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

fn read_berkeley(part: Value) -> Result<BerkeleyJob, JobError> {
    let raw: RawBerkeley = read(part, "backend")?;
    if raw.folder.as_os_str().is_empty() {
        return Err(JobError::new(
            "backend.folder",
            "is empty, expected a folder's path",
        ));
    }
    // The library counts what is beyond whole GB in 32 bits, and GB in as many.
    let path = "backend.cache_bytes";
    check_range(path, raw.cache_bytes, LEAST_POOL, 1 << 50)?;
    check_page_size(
        "backend.page_size_bytes",
        raw.page_size_bytes.map(u64::from),
    )?;
    let product = match raw.product {
        RawProduct::DataStore => Product::DataStore,
        RawProduct::Concurrent => Product::Concurrent,
        RawProduct::Transactional => Product::Transactional,
    };
    if product != Product::Transactional {
        for (key, given) in [("log", raw.log.is_some()), ("locks", raw.locks.is_some())] {
            if given {
                let name = BerkeleyJob::product_name(product);
                let message =
                    format!("is of product transactional, and this is {name}: leave it out");
                return Err(JobError::new(format!("backend.{key}"), message));
            }
        }
    }
    Ok(BerkeleyJob {
        folder: raw.folder,
        product,
        cache_bytes: raw.cache_bytes,
        page_size_bytes: raw.page_size_bytes,
        checksums: raw.checksums,
        log: match raw.log {
            Some(RawPolicy::Memory) => Log::Memory,
            Some(RawPolicy::Written) => Log::Written,
            Some(RawPolicy::Synced) | None => Log::Synced,
        },
        locks: raw.locks.unwrap_or(true),
        mutexes: raw.mutexes,
        preload: raw.preload,
    })
}

/// The sizes that pages may have are the same in `SQLite` and Berkeley DB.
fn check_page_size(path: &str, bytes: Option<u64>) -> Result<(), JobError> {
    match bytes {
        Some(bytes) if !(bytes.is_power_of_two() && (512..=65_536).contains(&bytes)) => {
            Err(JobError::new(
                path,
                format!("{bytes} is not a page size, expected a power of two from 512 to 65536"),
            ))
        }
        _ => Ok(()),
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

/// Refuses what a database in memory cannot have.
fn check_in_memory(config: &SqliteConfig, clients: u32) -> Result<(), JobError> {
    if config.in_memory != Some(true) {
        return Ok(());
    }
    let refuse =
        |key: &str, message: String| Err(JobError::new(format!("backend.config.{key}"), message));
    if clients > 1 {
        let message = format!("is one connection's own, but clients is {clients}");
        return refuse("in_memory", message);
    }
    if !matches!(
        config.journal_mode,
        None | Some(JournalMode::Memory | JournalMode::Off)
    ) {
        let message = "is of a file, and in_memory has none: memory or off";
        return refuse("journal_mode", message.to_owned());
    }
    if config.mmap_size_bytes.is_some() {
        let message = "is of a file, and in_memory has none: leave it out";
        return refuse("mmap_size_bytes", message.to_owned());
    }
    Ok(())
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
    if config.threading_mode == Some(ThreadingMode::SingleThread) && clients > 1 {
        return Err(JobError::new(
            "backend.config.threading_mode",
            format!(
                "single-thread has no mutexes, but clients is {clients}: set clients to 1 or multi-thread"
            ),
        ));
    }
    check_in_memory(config, clients)?;
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
    check_page_size("backend.config.page_size_bytes", config.page_size_bytes)?;
    Ok(job)
}
