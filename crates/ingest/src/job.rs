//! The job of `ingest`, checked at the door: what passes here can be carried out.

use std::path::PathBuf;
use std::time::Duration;

use dyno_job::{JobError, check_above_0, check_range, parse, read, split_kind};
use dyno_sql::{Address, Limits, Server};
use serde::Deserialize;
use serde_json::Value;

use crate::order::{Delayed, Order};
use crate::split::Split;

/// A row of the line protocol is a few hundred bytes, and a batch has to stay far below 4 GiB.
const MOST_ROWS: u32 = 1_000_000;

/// What a loader is asked to do, once.
#[derive(Clone, Debug)]
pub struct Job {
    /// The packed data.
    pub data: PathBuf,
    /// The store.
    pub backend: Backend,
    /// Threads, each with a connection of its own.
    pub workers: u32,
    /// Rows that are sent together.
    pub batch_rows: u32,
    /// Who carries which rows.
    pub split: Split,
    /// Rows a second over all workers, that arrive whether or not those before were taken; without it a worker sends
    /// as soon as it may.
    pub rate_per_s: Option<f64>,
    /// Of batches that are due within an open loop; with fewer sent in time, the run has failed.
    pub min_share_sent: f64,
    /// In which order rows are sent.
    pub order: Order,
    /// How long a batch whose connection broke is tried again; not at all where it is 0.
    pub retry: Duration,
    /// Ends it before the data do.
    pub duration: Option<Duration>,
    /// From which rows that are delayed or come twice follow.
    pub seed: u64,
    /// The grid on which figures over time are given.
    pub interval: Duration,
    /// All of it, word for word, but for passwords.
    pub as_asked: Value,
}

/// Where rows go.
#[derive(Clone, Debug)]
pub enum Backend {
    /// The line protocol over a socket, which acknowledges nothing.
    QuestdbTcp(Places),
    /// The same by HTTP, where each request is acknowledged.
    QuestdbHttp(Places),
    /// HTTP, `bulk_args`.
    Cratedb(Places, Columns),
    /// `COPY`.
    Postgresql(Box<Server>, Columns),
    /// Files in a folder, for a store that copies them in by itself.
    Csv(PathBuf, Columns),
    /// Nowhere: what the loader costs by itself.
    Null,
}

impl Backend {
    /// As a job names it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::QuestdbTcp(_) | Self::QuestdbHttp(_) => "questdb",
            Self::Cratedb(..) => "cratedb",
            Self::Postgresql(..) => "postgresql",
            Self::Csv(..) => "csv",
            Self::Null => "null",
        }
    }

    /// How rows go there.
    #[must_use]
    pub const fn transport(&self) -> &'static str {
        match self {
            Self::QuestdbTcp(_) => "ilp-tcp",
            Self::QuestdbHttp(_) => "ilp-http",
            Self::Cratedb(..) => "http-bulk",
            Self::Postgresql(..) => "copy",
            Self::Csv(..) => "files",
            Self::Null => "none",
        }
    }

    /// Whether the store says of rows that it has them.
    #[must_use]
    pub const fn acknowledges(&self) -> bool {
        !matches!(self, Self::QuestdbTcp(_))
    }
}

/// Servers that rows may go to.
#[derive(Clone, Debug)]
pub struct Places {
    /// At least one. Workers begin with one each in turn, and go on to the next where a connection broke.
    pub addresses: Vec<Address>,
    /// How long to wait.
    pub limits: Limits,
}

/// How tables have what is no field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Columns {
    /// The column of the time.
    pub time: String,
    /// One column with an object of all tags, where tags are no columns themselves.
    pub tags: Option<String>,
    /// What stands before a table's name, such as a schema.
    pub schema: Option<String>,
    /// Whether tables have a key, so that a row that is there already stays as it is.
    pub keyed: bool,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            time: "timestamp".to_owned(),
            tags: None,
            schema: None,
            keyed: false,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    data: PathBuf,
    backend: Value,
    #[serde(default = "one")]
    workers: u32,
    #[serde(default = "ten_thousand")]
    batch_rows: u32,
    #[serde(default)]
    split: Split,
    rate_per_s: Option<f64>,
    min_share_sent: Option<f64>,
    delayed: Option<RawDelayed>,
    #[serde(default)]
    duplicates: f64,
    #[serde(default)]
    retry_s: f64,
    duration_s: Option<f64>,
    seed: u64,
    #[serde(default = "one_thousand")]
    interval_ms: u64,
}

const fn one() -> u32 {
    1
}

const fn ten_thousand() -> u32 {
    10_000
}

const fn one_thousand() -> u64 {
    1000
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDelayed {
    share: f64,
    by_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlace {
    host: String,
    port: u16,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
// Keys of the job.
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
            read_s: 60.0,
            write_s: 60.0,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuestdb {
    transport: String,
    addresses: Vec<RawPlace>,
    #[serde(default)]
    limits: RawLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCratedb {
    addresses: Vec<RawPlace>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    columns: Columns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPostgresql {
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    user: String,
    password: Option<String>,
    database: String,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    columns: Columns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCsv {
    folder: PathBuf,
    #[serde(default)]
    columns: Columns,
}

impl Job {
    /// Reads a job's text.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let value = parse(text)?;
        let mut as_asked = value.clone();
        if let Some(backend) = as_asked.get_mut("backend").and_then(Value::as_object_mut) {
            backend.remove("password");
        }
        let raw: RawJob = read(value, "")?;
        check_range("workers", raw.workers, 1, 1024)?;
        check_range("batch_rows", raw.batch_rows, 1, MOST_ROWS)?;
        check_range("duplicates", raw.duplicates, 0.0, 1.0)?;
        check_range("retry_s", raw.retry_s, 0.0, 86_400.0)?;
        check_range("interval_ms", raw.interval_ms, 10, 3_600_000)?;
        if let Some(rate) = raw.rate_per_s {
            check_above_0("rate_per_s", rate, 1e9)?;
        } else if raw.min_share_sent.is_some() {
            return Err(JobError::new(
                "min_share_sent",
                "is of an open loop alone: give rate_per_s, or leave it out",
            ));
        }
        check_range(
            "min_share_sent",
            raw.min_share_sent.unwrap_or(0.0),
            0.0,
            1.0,
        )?;
        if let Some(seconds) = raw.duration_s {
            check_above_0("duration_s", seconds, 1e7)?;
        }
        Ok(Self {
            data: raw.data,
            backend: backend(raw.backend)?,
            workers: raw.workers,
            batch_rows: raw.batch_rows,
            split: raw.split,
            rate_per_s: raw.rate_per_s,
            min_share_sent: raw.min_share_sent.unwrap_or(0.0),
            order: Order {
                delayed: raw.delayed.map(delayed).transpose()?,
                duplicates: raw.duplicates,
            },
            retry: Duration::from_secs_f64(raw.retry_s),
            duration: raw.duration_s.map(Duration::from_secs_f64),
            seed: raw.seed,
            interval: Duration::from_millis(raw.interval_ms),
            as_asked,
        })
    }
}

fn delayed(raw: RawDelayed) -> Result<Delayed, JobError> {
    check_above_0("delayed.share", raw.share, 1.0)?;
    check_above_0("delayed.by_s", raw.by_s, 1e8)?;
    #[allow(clippy::cast_possible_truncation)] // of at most 1e17
    let by_ns = (raw.by_s * 1e9) as i64;
    Ok(Delayed {
        share: raw.share,
        by_ns,
    })
}

fn backend(value: Value) -> Result<Backend, JobError> {
    let (kind, rest) = split_kind(
        value,
        "backend",
        &["questdb", "cratedb", "postgresql", "null", "csv"],
    )?;
    match kind {
        0 => {
            let raw: RawQuestdb = read(rest, "backend")?;
            let places = places(raw.addresses, raw.limits)?;
            match raw.transport.as_str() {
                "ilp-tcp" => Ok(Backend::QuestdbTcp(places)),
                "ilp-http" => Ok(Backend::QuestdbHttp(places)),
                other => Err(JobError::new(
                    "backend.transport",
                    format!("{other:?} is not known, expected ilp-tcp or ilp-http"),
                )),
            }
        }
        1 => {
            let raw: RawCratedb = read(rest, "backend")?;
            Ok(Backend::Cratedb(
                places(raw.addresses, raw.limits)?,
                raw.columns,
            ))
        }
        2 => {
            let raw: RawPostgresql = read(rest, "backend")?;
            let address = match (raw.socket, raw.host, raw.port) {
                (Some(socket), None, None) => Address::Unix(socket),
                (None, Some(host), Some(port)) => Address::Tcp(host, port),
                _ => {
                    return Err(JobError::new(
                        "backend",
                        "expected a host and a port, or a socket",
                    ));
                }
            };
            let server = Server {
                address,
                user: raw.user,
                password: raw.password.filter(|password| !password.is_empty()),
                database: raw.database,
                limits: limits(raw.limits)?,
            };
            Ok(Backend::Postgresql(Box::new(server), raw.columns))
        }
        3 => Ok(Backend::Null),
        _ => {
            let raw: RawCsv = read(rest, "backend")?;
            Ok(Backend::Csv(raw.folder, raw.columns))
        }
    }
}

fn places(raw: Vec<RawPlace>, given: RawLimits) -> Result<Places, JobError> {
    if raw.is_empty() {
        return Err(JobError::new("backend.addresses", "expected at least one"));
    }
    Ok(Places {
        addresses: raw
            .into_iter()
            .map(|place| Address::Tcp(place.host, place.port))
            .collect(),
        limits: limits(given)?,
    })
}

fn limits(raw: RawLimits) -> Result<Limits, JobError> {
    for (name, seconds) in [
        ("backend.limits.connect_s", raw.connect_s),
        ("backend.limits.read_s", raw.read_s),
        ("backend.limits.write_s", raw.write_s),
    ] {
        check_above_0(name, seconds, 3600.0)?;
    }
    Ok(Limits {
        connect: Duration::from_secs_f64(raw.connect_s),
        read: Duration::from_secs_f64(raw.read_s),
        write: Duration::from_secs_f64(raw.write_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(changes: &Value) -> Result<Job, String> {
        let mut job = json!({
            "format": 1,
            "data": "packed",
            "backend": {"kind": "questdb", "transport": "ilp-http", "addresses": [{"host": "127.0.0.1", "port": 9000}]},
            "seed": 1,
        });
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        Job::from_json(&job.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_has_a_value() {
        let job = job(&json!({})).unwrap();
        assert_eq!(
            (job.workers, job.batch_rows, job.split),
            (1, 10_000, Split::Host)
        );
        assert_eq!(job.order, Order::default());
        assert_eq!(
            (job.backend.name(), job.backend.transport()),
            ("questdb", "ilp-http")
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        for (changes, told) in [
            (json!({"workers": 0}), "workers: 0 is out of range"),
            (
                json!({"batch_rows": 2_000_000}),
                "batch_rows: 2000000 is out of range",
            ),
            (
                json!({"duplicates": 1.5}),
                "duplicates: 1.5 is out of range",
            ),
            (
                json!({"delayed": {"share": 0, "by_s": 1}}),
                "delayed.share: 0 is out of range",
            ),
            (
                json!({"delayed": {"share": 0.1}}),
                "delayed.by_s: is missing",
            ),
            (
                json!({"min_share_sent": 0.9}),
                "min_share_sent: is of an open loop",
            ),
            (json!({"bacth_rows": 1}), "bacth_rows: unknown field"),
            (
                json!({"backend": {"kind": "influx"}}),
                "backend.kind: \"influx\" is not known",
            ),
            (
                json!({"backend": {"kind": "questdb", "transport": "udp", "addresses": [{"host": "a", "port": 1}]}}),
                "backend.transport: \"udp\" is not known",
            ),
            (
                json!({"backend": {"kind": "cratedb", "addresses": []}}),
                "backend.addresses: expected at least one",
            ),
            (
                json!({"backend": {"kind": "postgresql", "user": "u", "database": "d", "host": "h"}}),
                "backend: expected a host and a port, or a socket",
            ),
        ] {
            let wrong = job(&changes).unwrap_err();
            assert!(wrong.starts_with(told), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_in_no_result() {
        let backend = json!({"kind": "postgresql", "host": "h", "port": 1, "user": "u", "password": "secret", "database": "d"});
        let job = job(&json!({"backend": backend})).unwrap();
        assert!(!job.as_asked.to_string().contains("secret"));
    }
}
