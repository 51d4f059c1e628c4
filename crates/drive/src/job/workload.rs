//! What a job asks of a store.

use std::path::PathBuf;

use dyno_job::{JobError, check_above_0, check_range, read, split_kind};
use dyno_load::{CERTIFIED_LENGTH, Chooser, InsertOrder, Mix, Operation};
use serde::Deserialize;
use serde_json::Value;

use super::{Nothing, Phase};

/// What is asked of the store.
#[derive(Clone, Debug)]
pub enum WorkloadJob {
    /// YCSB's core workloads.
    Ycsb(YcsbJob),
    /// TPC-C.
    Tpcc(TpccJob),
    /// Uniquely numbered rows, counted afterwards.
    Ledger(LedgerJob),
    /// Nothing: shows the driver's own cost.
    Null,
}

/// TPC-C, and whether terminals wait as people do.
#[derive(Clone, Debug)]
pub struct TpccJob {
    /// Sizes and mix.
    pub config: dyno_tpcc::Config,
    /// Whether a terminal is typed at before each transaction.
    pub keying_time: bool,
    /// Whether its answer is thought about.
    pub think_time: bool,
    /// What is counted, where nothing is timed.
    pub count: Option<super::CountJob>,
}

/// Rows that are numbered, so that each can be accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerJob {
    /// Bytes of each row beside its number.
    pub payload_length: usize,
    /// Whether a row can be found by its name without reading all of them.
    pub indexed: bool,
    /// The folders that hold the acknowledged numbers: for the check.
    pub acknowledged: Vec<PathBuf>,
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
    /// Whether each value names its row, field and version, and is checked when it is read.
    pub data_integrity: bool,
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
#[serde(rename_all = "kebab-case")]
enum RawChooser {
    Zipfian,
    ClusteredZipfian,
    YcsbZipfian,
    Uniform,
    Latest,
    Hotspot,
    Exponential,
    Sequential,
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
    #[serde(default = "RawYcsb::hotspot_keys")]
    hotspot_keys: f64,
    #[serde(default = "RawYcsb::hotspot_operations")]
    hotspot_operations: f64,
    #[serde(default = "RawYcsb::exponential_percentile")]
    exponential_percentile: f64,
    #[serde(default = "RawYcsb::exponential_keys")]
    exponential_keys: f64,
    #[serde(default)]
    data_integrity: bool,
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
    const fn hotspot_keys() -> f64 {
        0.2
    }
    const fn hotspot_operations() -> f64 {
        0.8
    }
    const fn exponential_percentile() -> f64 {
        95.0
    }
    const fn exponential_keys() -> f64 {
        0.857_142_857_1
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
struct RawTpcc {
    warehouses: u32,
    #[serde(default = "RawTpcc::mix")]
    mix: RawTpccMix,
    #[serde(default = "RawTpcc::rollbacks")]
    rollbacks: f64,
    #[serde(default)]
    keying_time: bool,
    #[serde(default)]
    think_time: bool,
    #[serde(default = "RawTpcc::items")]
    items: u32,
    #[serde(default = "RawTpcc::customers_per_district")]
    customers_per_district: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawTpccMix {
    Standard,
    LookingGlass,
}

impl RawTpcc {
    const fn mix() -> RawTpccMix {
        RawTpccMix::Standard
    }
    const fn rollbacks() -> f64 {
        dyno_tpcc::ROLLBACKS
    }
    const fn items() -> u32 {
        100_000
    }
    const fn customers_per_district() -> u32 {
        3000
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLedger {
    #[serde(default = "RawLedger::payload_bytes")]
    payload_bytes: usize,
    #[serde(default)]
    indexed: bool,
    #[serde(default)]
    acknowledged: Vec<PathBuf>,
}

impl RawLedger {
    const fn payload_bytes() -> usize {
        100
    }
}

pub(super) fn read_workload(part: Value, phase: Phase, seed: u64) -> Result<WorkloadJob, JobError> {
    let (kind, rest) = split_kind(part, "workload", &["ycsb", "tpcc", "ledger", "null"])?;
    match kind {
        0 => read_ycsb(rest).map(WorkloadJob::Ycsb),
        1 => read_tpcc(rest, seed).map(WorkloadJob::Tpcc),
        2 => read_ledger(rest, phase).map(WorkloadJob::Ledger),
        _ => read::<Nothing>(rest, "workload").map(|_| WorkloadJob::Null),
    }
}

fn read_tpcc(part: Value, seed: u64) -> Result<TpccJob, JobError> {
    let raw: RawTpcc = read(part, "workload")?;
    check_range("workload.warehouses", raw.warehouses, 1, 100_000)?;
    check_range("workload.rollbacks", raw.rollbacks, 0.0, 1.0)?;
    check_range("workload.items", raw.items, 100, 100_000)?;
    check_range(
        "workload.customers_per_district",
        raw.customers_per_district,
        30,
        3000,
    )?;
    Ok(TpccJob {
        config: dyno_tpcc::Config {
            warehouses: raw.warehouses,
            items: raw.items,
            customers_per_district: raw.customers_per_district,
            mix: match raw.mix {
                RawTpccMix::Standard => dyno_tpcc::Mix::Standard,
                RawTpccMix::LookingGlass => dyno_tpcc::Mix::LookingGlass,
            },
            rollbacks: raw.rollbacks,
            seed,
        },
        count: None,
        keying_time: raw.keying_time,
        think_time: raw.think_time,
    })
}

fn read_ledger(part: Value, phase: Phase) -> Result<LedgerJob, JobError> {
    let raw: RawLedger = read(part, "workload")?;
    check_range("workload.payload_bytes", raw.payload_bytes, 0, 65_535)?;
    if (phase == Phase::Check) == raw.acknowledged.is_empty() {
        return Err(JobError::new(
            "workload.acknowledged",
            "are the folders that hold the acknowledged numbers: the check phase needs them, and no other",
        ));
    }
    Ok(LedgerJob {
        payload_length: raw.payload_bytes,
        indexed: raw.indexed,
        acknowledged: raw.acknowledged,
    })
}

fn read_ycsb(part: Value) -> Result<YcsbJob, JobError> {
    let raw: RawYcsb = read(part, "workload")?;
    check_range("workload.records", raw.records, 1, 1_000_000_000_000)?;
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
    if raw.data_integrity && (raw.field_length_bytes as usize) < CERTIFIED_LENGTH {
        return Err(JobError::new(
            "workload.field_length_bytes",
            format!(
                "{} is too short for data_integrity, expected at least {CERTIFIED_LENGTH}",
                raw.field_length_bytes
            ),
        ));
    }
    Ok(YcsbJob {
        records: raw.records,
        mix: read_mix(&raw.proportions)?,
        chooser: read_chooser(&raw)?,
        table,
        read_all_fields: raw.read_all_fields,
        write_all_fields: raw.write_all_fields,
        max_scan_length: raw.max_scan_length,
        insert_order: match raw.insert_order {
            RawInsertOrder::Hashed => InsertOrder::Hashed,
            RawInsertOrder::Ordered => InsertOrder::Ordered,
        },
        data_integrity: raw.data_integrity,
    })
}

fn read_chooser(raw: &RawYcsb) -> Result<Chooser, JobError> {
    check_above_0("workload.theta", raw.theta, 10.0)?;
    check_range("workload.hotspot_keys", raw.hotspot_keys, 0.0, 1.0)?;
    check_range(
        "workload.hotspot_operations",
        raw.hotspot_operations,
        0.0,
        1.0,
    )?;
    check_range(
        "workload.exponential_percentile",
        raw.exponential_percentile,
        1e-9,
        100.0 - 1e-9,
    )?;
    check_range(
        "workload.exponential_keys",
        raw.exponential_keys,
        1e-12,
        1.0,
    )?;
    Ok(match raw.key_chooser {
        RawChooser::Zipfian => Chooser::Zipfian(raw.theta),
        RawChooser::ClusteredZipfian => Chooser::ClusteredZipfian(raw.theta),
        RawChooser::YcsbZipfian => Chooser::YcsbZipfian,
        RawChooser::Uniform => Chooser::Uniform,
        RawChooser::Latest => Chooser::Latest(raw.theta),
        RawChooser::Hotspot => Chooser::Hotspot {
            keys: raw.hotspot_keys,
            operations: raw.hotspot_operations,
        },
        RawChooser::Exponential => Chooser::Exponential {
            percentile: raw.exponential_percentile,
            keys: raw.exponential_keys,
        },
        RawChooser::Sequential => Chooser::Sequential,
    })
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
