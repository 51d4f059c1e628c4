//! `drive` where all goes well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::{Value, json};

use crate::support::{
    Folder, PROGRAM, Ran, count_and_errors, drive, drive_command, drive_with, json_lines, load_job,
    read_json, run_job, schema_folder, with,
};

/// YCSB's core workloads: proportions, and the law of the keys.
fn core_workloads() -> Vec<(&'static str, Value)> {
    vec![
        ("a", json!({"proportions": {"read": 0.5, "update": 0.5}})),
        ("b", json!({"proportions": {"read": 0.95, "update": 0.05}})),
        ("c", json!({"proportions": {"read": 1.0}})),
        (
            "d",
            json!({"proportions": {"read": 0.95, "insert": 0.05}, "key_chooser": "latest"}),
        ),
        (
            "e",
            json!({"proportions": {"read": null, "scan": 0.95, "insert": 0.05}}),
        ),
        (
            "f",
            json!({"proportions": {"read": 0.5, "read_modify_write": 0.5}}),
        ),
    ]
}

/// The histogram log, by tag.
pub fn logged(ran: &Ran) -> BTreeMap<String, Histogram<u64>> {
    use base64_lite::decode;
    let log = ran.histogram_log();
    let mut histograms = BTreeMap::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = decode(interval.encoded_histogram());
            let histogram: Histogram<u64> =
                Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            let tag = interval.tag().unwrap().as_str().to_owned();
            let sum: &mut Histogram<u64> = histograms
                .entry(tag)
                .or_insert_with(|| Histogram::new(3).unwrap());
            sum.add(histogram).unwrap();
        }
    }
    histograms
}

/// Enough of base 64 to read a log: the histogram crate leaves it to its user.
mod base64_lite {
    pub fn decode(text: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other} is not of base 64"),
        };
        let mut bytes = Vec::new();
        let (mut bits, mut count) = (0u32, 0);
        for c in text.bytes().filter(|&c| c != b'=') {
            bits = bits << 6 | u32::from(value(c));
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count & 0xff) as u8);
            }
        }
        bytes
    }
}

/// All figures of a result tell of the same operations.
fn assert_consistent(ran: &Ran, result: &Value, operations: u64) {
    let (count, errors) = count_and_errors(&result["total"]);
    assert_eq!(count + errors, operations);
    let kinds = result["operations"].as_object().unwrap();
    let by_kind: u64 = kinds
        .values()
        .map(|figures| count_and_errors(figures).0)
        .sum();
    assert_eq!(by_kind, count);
    let logged = logged(ran);
    let mut from_intervals: BTreeMap<String, u64> = BTreeMap::new();
    for line in ran.intervals() {
        assert!(line["start_ns"].as_u64() <= line["end_ns"].as_u64());
        if line["warmup"] == json!(false) {
            let name = line["operation"].as_str().unwrap().to_owned();
            *from_intervals.entry(name).or_default() += line["count"].as_u64().unwrap();
        }
    }
    for (name, figures) in kinds {
        let count = figures["count"].as_u64().unwrap();
        let histogram = logged.get(name);
        assert_eq!(
            histogram.map_or(0, Histogram::len),
            count,
            "{name} in the log"
        );
        if let Some(histogram) = histogram {
            let logged_us = histogram.max() as f64 / 1000.0;
            let told_us = figures["latency_us"]["max"].as_f64().unwrap();
            assert!(
                (logged_us / told_us - 1.0).abs() < 1e-3,
                "{name}: {logged_us}, {told_us}"
            );
        }
        assert_eq!(
            from_intervals.get(name).copied().unwrap_or(0),
            count,
            "{name} in the intervals"
        );
    }
}

fn assert_proportions(result: &Value, workload: &Value, operations: f64) {
    let proportions = workload["proportions"].as_object().unwrap();
    for (name, share) in proportions.iter().filter(|(_, share)| share.is_number()) {
        let share = share.as_f64().unwrap();
        let count = result["operations"][name]["count"].as_f64().unwrap();
        let deviation = (operations * share * (1.0 - share)).sqrt();
        assert!(
            (count - operations * share).abs() <= 5.0 * deviation,
            "{name}: {count}"
        );
    }
}

/// Loads with a journal mode and runs workloads A to F with 1 and 4 clients, each on a copy of the
/// database's one file.
fn all_core_workloads(journal_mode: &str) {
    for clients in [1, 4] {
        let folder = Folder::new();
        fs::create_dir(folder.path("data")).unwrap();
        let loaded = folder.path("data/ycsb.db");
        let mode = json!({
            "clients": clients,
            "backend": {"path": loaded.to_str(), "config": {"journal_mode": journal_mode}},
        });
        let result = drive(&folder, &with(load_job(&folder), mode)).ok();
        assert_eq!(result["operations"]["insert"]["count"], json!(500));
        assert_eq!(
            folder.names("data"),
            ["ycsb.db"],
            "the file alone is the data set"
        );
        for (name, workload) in core_workloads() {
            fs::copy(&loaded, folder.path("ycsb.db")).unwrap();
            let job = with(
                run_job(&folder),
                json!({
                    "clients": clients,
                    "operations": 401,
                    "backend": {"config": {"journal_mode": journal_mode}},
                    "workload": workload,
                }),
            );
            let ran = drive(&folder, &job);
            let result = ran.ok();
            assert_eq!(result["total"]["errors"], json!({}), "{name}");
            assert_eq!(result["total"]["count"], json!(401), "{name}");
            assert_eq!(result["ended_by"], json!("operations"));
            assert_eq!(
                result["backend"]["effective"]["journal_mode"],
                json!(journal_mode)
            );
            assert_consistent(&ran, &result, 401);
            assert_proportions(&result, &workload, 401.0);
            if name == "e" {
                let scans = result["operations"]["scan"]["count"].as_f64().unwrap();
                let rows = result["backend"]["status"]["rows_scanned"]
                    .as_f64()
                    .unwrap();
                // Lengths are even over 1 to 20; a few scans meet the end of the table.
                assert!(
                    (8.5..11.5).contains(&(rows / scans)),
                    "{rows} rows of {scans} scans"
                );
            }
        }
    }
}

#[test]
fn all_core_workloads_are_exact_with_the_delete_journal() {
    all_core_workloads("delete");
}

#[test]
fn all_core_workloads_are_exact_with_the_truncated_journal() {
    all_core_workloads("truncate");
}

#[test]
fn all_core_workloads_are_exact_with_the_persistent_journal() {
    all_core_workloads("persist");
}

#[test]
fn all_core_workloads_are_exact_with_the_journal_in_memory() {
    all_core_workloads("memory");
}

#[test]
fn all_core_workloads_are_exact_with_the_write_ahead_log() {
    all_core_workloads("wal");
}

#[test]
fn all_core_workloads_are_exact_without_a_journal() {
    all_core_workloads("off");
}

/// All rows in the order of their keys.
fn rows(folder: &Folder) -> Vec<Vec<String>> {
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    let mut statement = database
        .prepare("SELECT * FROM usertable ORDER BY ycsb_key")
        .unwrap();
    let columns = statement.column_count();
    statement
        .query_map([], |row| {
            (0..columns).map(|column| row.get(column)).collect()
        })
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn a_seed_gives_the_same_data_set_whatever_the_number_of_clients() {
    let load = |changes| {
        let folder = Folder::new();
        drive(&folder, &with(load_job(&folder), changes)).ok();
        rows(&folder)
    };
    let many = json!({"workload": {"records": 5000}});
    let one = load(many.clone());
    assert_eq!(one.len(), 5000);
    let values: BTreeSet<&String> = one.iter().flat_map(|row| &row[1..]).collect();
    assert_eq!(values.len(), 4 * 5000, "no value comes twice");
    assert!(
        one.iter()
            .all(|row| row[1..].iter().all(|field| field.len() == 20))
    );
    assert!(one == load(with(many.clone(), json!({"clients": 4}))));
    assert!(one != load(with(many, json!({"seed": 43}))));
}

#[test]
fn a_seed_gives_the_same_operations_and_another_gives_others() {
    let outcome = |seed| {
        let folder = Folder::new();
        drive(&folder, &load_job(&folder)).ok();
        let mix = json!({"read": 0.2, "update": 0.4, "insert": 0.2, "scan": 0.1, "read_modify_write": 0.1});
        let job = with(
            run_job(&folder),
            json!({"seed": seed, "workload": {"proportions": mix}}),
        );
        let result = drive(&folder, &job).ok();
        let counts: Vec<Value> = result["operations"]
            .as_object()
            .unwrap()
            .values()
            .map(|figures| figures["count"].clone())
            .collect();
        (
            counts,
            result["backend"]["status"]["rows_scanned"].clone(),
            rows(&folder),
        )
    };
    let one = outcome(42);
    assert!(one == outcome(42));
    assert!(one != outcome(43));
}

#[test]
fn ordered_keys_are_inserted_behind_all_others() {
    let folder = Folder::new();
    let ordered = json!({"workload": {"insert_order": "ordered"}});
    drive(&folder, &with(load_job(&folder), ordered.clone())).ok();
    let inserts = json!({"workload": {"proportions": {"read": null, "insert": 1.0}}});
    drive(&folder, &with(with(run_job(&folder), ordered), inserts)).ok();
    let keys: Vec<String> = rows(&folder)
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect();
    let expected: Vec<String> = (0..900).map(|number| format!("user{number:020}")).collect();
    assert_eq!(keys, expected);
}

#[test]
fn one_field_is_written_or_all_are_as_the_job_says() {
    for (all, changed) in [(false, 1), (true, 4)] {
        let folder = Folder::new();
        drive(&folder, &load_job(&folder)).ok();
        let before = rows(&folder);
        let job = with(
            run_job(&folder),
            json!({
                "operations": 1,
                "workload": {
                    "proportions": {"read": null, "read_modify_write": 1.0},
                    "write_all_fields": all, "read_all_fields": !all,
                },
            }),
        );
        drive(&folder, &job).ok();
        let differing = before
            .iter()
            .flatten()
            .zip(rows(&folder).iter().flatten())
            .filter(|(old, new)| old != new)
            .count();
        assert_eq!(differing, changed);
    }
}

#[test]
fn the_settings_of_a_job_are_effective_and_all_are_reported() {
    let folder = Folder::new();
    let config = json!({
        "journal_mode": "wal", "synchronous": "extra", "cache_size_bytes": 65536,
        "mmap_size_bytes": 1_048_576, "locking_mode": "exclusive", "page_size_bytes": 8192,
        "busy_timeout_ms": 7, "threading_mode": "serialized", "memory_statistics": false,
        "in_memory": false, "secure_delete": true, "preload": false,
    });
    let asked = json!({"backend": {"config": config}});
    let loaded = drive(&folder, &with(load_job(&folder), asked.clone())).ok();
    assert_eq!(loaded["backend"]["effective"], config);
    let ran = drive(&folder, &with(run_job(&folder), asked)).ok();
    assert_eq!(ran["backend"]["effective"], config);
    let job = with(run_job(&folder), json!({"backend": {"config": null}}));
    let defaults = drive(&folder, &job).ok();
    assert_eq!(
        defaults["backend"]["effective"],
        json!({
            // The file remembers these two.
            "journal_mode": "wal", "page_size_bytes": 8192,
            "synchronous": "full", "cache_size_bytes": 2_048_000, "mmap_size_bytes": 0,
            "locking_mode": "normal", "busy_timeout_ms": 10_000,
            "threading_mode": "multi-thread", "memory_statistics": true, "in_memory": false, "secure_delete": false,
            "preload": false,
        })
    );
}

#[test]
fn without_mutexes_and_in_memory_the_same_is_done_and_kept() {
    let folder = Folder::new();
    let mut job = run_job(&folder);
    job["workload"] = json!({
        "kind": "tpcc", "warehouses": 1, "items": 200, "customers_per_district": 30,
    });
    drive(
        &folder,
        &with(job.clone(), json!({"phase": "load", "operations": null})),
    )
    .ok();
    let new_orders = || {
        let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
        let sql = "SELECT SUM(d_next_o_id) FROM district";
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    for config in [
        json!({"threading_mode": "single-thread", "memory_statistics": false}),
        json!({"threading_mode": "single-thread", "in_memory": true, "journal_mode": "memory"}),
        json!({"threading_mode": "multi-thread", "in_memory": true, "cache_size_bytes": 1_048_576}),
    ] {
        let before = new_orders();
        let job = with(job.clone(), json!({"backend": {"config": config.clone()}}));
        let result = drive(&folder, &job).ok();
        for (key, value) in config.as_object().unwrap() {
            assert_eq!(&result["backend"]["effective"][key], value, "{key}");
        }
        assert!(new_orders() > before, "what was done is in the file");
        let check = json!({"phase": "check", "operations": null});
        let found = drive(&folder, &with(job, check)).ok();
        assert_eq!(found["checks"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn a_run_that_was_preloaded_reads_no_page_unless_the_cache_is_too_small() {
    let folder = Folder::new();
    let mut job = run_job(&folder);
    job["workload"] = json!({
        "kind": "tpcc", "warehouses": 1, "items": 200, "customers_per_district": 30,
        "rollbacks": 0.0, // without a journal nothing can be undone
    });
    let load = json!({"phase": "load", "operations": null});
    drive(&folder, &with(job.clone(), load)).ok();
    let read = |config: Value| {
        let job = with(job.clone(), json!({"backend": {"config": config.clone()}}));
        let result = drive(&folder, &job).ok();
        for (key, value) in config.as_object().unwrap() {
            assert_eq!(&result["backend"]["effective"][key], value, "{key}");
        }
        let read = &result["backend"]["status"]["pages_read_bytes"];
        read.as_f64().unwrap()
    };
    for config in [
        json!({"preload": true}),
        json!({"preload": true, "locking_mode": "exclusive", "journal_mode": "off"}),
        json!({"preload": true, "in_memory": true, "threading_mode": "single-thread"}),
    ] {
        assert!(read(config) < 1.0);
    }
    assert!(read(json!({"preload": false})) > 0.0);
    assert!(read(json!({"preload": true, "cache_size_bytes": 16_384})) > 0.0);
}

#[test]
fn a_larger_cache_is_seen_in_the_counters() {
    let folder = Folder::new();
    drive(
        &folder,
        &with(load_job(&folder), json!({"workload": {"records": 5000}})),
    )
    .ok();
    let misses = |bytes| {
        let job = with(
            run_job(&folder),
            json!({
                "operations": 5000,
                "warmup_operations": 5000,
                "workload": {"records": 5000, "key_chooser": "uniform"},
                "backend": {"config": {"cache_size_bytes": bytes}},
            }),
        );
        let result = drive(&folder, &job).ok();
        result["backend"]["status"]["cache_misses"]
            .as_f64()
            .unwrap()
    };
    assert!(misses(0) > 5000.0);
    assert!(misses(64 << 20) < 100.0);
}

#[test]
fn the_warm_up_stands_apart_from_the_measured_part() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let job = with(
        run_job(&folder),
        json!({
            "clients": 3, "warmup_operations": 250, "warmup_s": 0.25, "operations": 1000,
        }),
    );
    let ran = drive(&folder, &job);
    let result = ran.ok();
    assert_consistent(&ran, &result, 1000);
    assert!(result["warmup"]["operations"].as_u64().unwrap() >= 250);
    assert!(result["warmup"]["elapsed_s"].as_f64().unwrap() >= 0.25);
    let warm: Vec<Value> = ran
        .intervals()
        .into_iter()
        .filter(|line| line["warmup"] == json!(true))
        .collect();
    let counted: u64 = warm
        .iter()
        .map(|line| line["count"].as_u64().unwrap())
        .sum();
    assert_eq!(json!(counted), result["warmup"]["operations"]);
    assert!(warm.len() >= 5, "0.25 s of 50 ms each");
    let measured_from = result["measured_from_ns"].as_u64().unwrap();
    assert!(
        warm.iter()
            .all(|line| line["end_ns"].as_u64().unwrap() <= measured_from)
    );
}

#[test]
fn a_duration_ends_a_run_on_time_and_so_does_a_smaller_number_of_operations() {
    let folder = Folder::new();
    let null = read_json(&schema_folder().join("golden/job-null.json"));
    let job = with(
        null,
        json!({"duration_s": 0.3, "interval_ms": 50, "clients": 2}),
    );
    let ran = drive(&folder, &job);
    let result = ran.ok();
    assert_eq!(result["ended_by"], json!("duration"));
    let elapsed = result["elapsed_s"].as_f64().unwrap();
    assert!((elapsed - 0.3).abs() < 1e-9, "{elapsed}");
    assert!(
        (6..=8).contains(&ran.intervals().len()),
        "{}",
        ran.intervals().len()
    );
    let figures = &result["operations"]["null"];
    // Each client's last operation may have ended after the time was over.
    let late = figures["count"].as_f64().unwrap()
        - figures["throughput_per_s"].as_f64().unwrap() * elapsed;
    assert!((-1e-3..2.001).contains(&late), "{late}");
    let both = with(job, json!({"operations": 7, "duration_s": 30}));
    let result = drive(&folder, &both).ok();
    assert_eq!(result["ended_by"], json!("operations"));
    assert_eq!(result["total"]["count"], json!(7));
}

/// Three clients waited out another's lock in SQLite's pauses of 100 ms while the fourth had long stopped, and the
/// nearly idle time counted: throughput came out up to a third too low.
#[test]
fn what_ends_after_the_time_is_over_is_in_no_rate() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let mut job = with(
        run_job(&folder),
        json!({"clients": 4, "duration_s": 0.25, "interval_ms": 50}),
    );
    job["workload"]["proportions"] = json!({"update": 1.0});
    job.as_object_mut().unwrap().remove("operations");
    let ran = drive(&folder, &job);
    let result = ran.ok();
    assert!((result["elapsed_s"].as_f64().unwrap() - 0.25).abs() < 1e-9);
    let from = result["measured_from_ns"].as_u64().unwrap();
    let measured = |line: &&serde_json::Value| !line["warmup"].as_bool().unwrap();
    let lines = ran.intervals();
    let in_time: u64 = lines
        .iter()
        .filter(measured)
        .filter(|line| line["start_ns"].as_u64().unwrap() < from + 250_000_000)
        .map(|line| line["count"].as_u64().unwrap())
        .sum();
    let rate = result["total"]["throughput_per_s"].as_f64().unwrap();
    assert!(
        (rate * 0.25 - in_time as f64).abs() < 1e-3,
        "{rate} {in_time}"
    );
}

#[test]
fn more_clients_than_operations_still_do_exactly_those() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let result = drive(
        &folder,
        &with(run_job(&folder), json!({"clients": 8, "operations": 5})),
    )
    .ok();
    assert_eq!(result["total"]["count"], json!(5));
}

#[test]
fn a_client_of_a_closed_loop_thinks_before_it_asks_again() {
    let folder = Folder::new();
    let null = read_json(&schema_folder().join("golden/job-null.json"));
    let thinking = json!({
        "duration_s": null, "operations": 20, "clients": 2,
        "loop": {"kind": "closed", "think_time_s": 0.03},
    });
    let result = drive(&folder, &with(null, thinking)).ok();
    // Each client pauses between its ten operations, and no latency has the pauses.
    let elapsed = result["elapsed_s"].as_f64().unwrap();
    assert!((0.27..5.0).contains(&elapsed), "{elapsed}");
    let median_us = result["total"]["latency_us"]["p50"].as_f64().unwrap();
    assert!(median_us < 10_000.0, "{median_us}");
}

/// Drivers once could all have asked for the keys of the first.
#[test]
fn drivers_that_share_a_workload_ask_for_keys_of_their_own() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let loaded = rows(&folder);
    fs::copy(folder.path("ycsb.db"), folder.path("loaded.db")).unwrap();
    let updated = |number: u64| {
        fs::copy(folder.path("loaded.db"), folder.path("ycsb.db")).unwrap();
        let job = with(
            run_job(&folder),
            json!({
                "operations": 50, "driver": {"number": number, "of": 2},
                "workload": {"key_chooser": "uniform", "proportions": {"read": null, "update": 1.0}},
            }),
        );
        drive(&folder, &job).ok();
        let changed = loaded.iter().zip(rows(&folder));
        changed
            .filter(|(old, new)| *old != new)
            .map(|(old, _)| old[0].clone())
            .collect::<BTreeSet<String>>()
    };
    let (zero, one) = (updated(0), updated(1));
    // Of 500 keys each meets about 48, and 4 or 5 of the other's by chance.
    assert!(zero.len() > 40 && one.len() > 40);
    let both = zero.intersection(&one).count();
    assert!(both < 20, "{both}");
}

#[test]
fn the_null_workload_runs_on_either_backend_and_needs_no_table() {
    let folder = Folder::new();
    let work = json!({"workload": null, "operations": 1000});
    let job = with(
        with(run_job(&folder), work),
        json!({"workload": {"kind": "null"}}),
    );
    let load = with(job.clone(), json!({"phase": "load", "operations": null}));
    let loaded = drive(&folder, &load).ok();
    assert_eq!(loaded["total"]["count"], json!(0));
    assert_eq!(loaded["total"]["latency_us"], Value::Null);
    for backend in [job["backend"].clone(), json!({"kind": "null"})] {
        let mut job = job.clone();
        job["backend"] = backend;
        let result = drive(&folder, &job).ok();
        assert_eq!(result["operations"]["null"]["count"], json!(1000));
    }
}

#[test]
fn ycsb_on_the_null_backend_costs_less_than_20_us_an_operation() {
    let folder = Folder::new();
    let mut job = with(
        run_job(&folder),
        json!({
            "operations": 50_000,
            "workload": {"proportions": {"read": 0.5, "update": 0.3, "insert": 0.1, "scan": 0.1}},
        }),
    );
    job["backend"] = json!({"kind": "null"});
    let result = drive(&folder, &job).ok();
    let cpu =
        result["cpu"]["user_s"].as_f64().unwrap() + result["cpu"]["system_s"].as_f64().unwrap();
    // Generous: a debug build on a busy machine; a release build takes well below 1 us.
    assert!(cpu / 50_000.0 < 20e-6, "{cpu} s");
}

#[test]
fn latencies_and_cpu_time_add_up_to_the_time_that_one_client_took() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let scans =
        json!({"operations": 20_000, "workload": {"proportions": {"read": null, "scan": 1.0}}});
    let result = drive(&folder, &with(run_job(&folder), scans)).ok();
    let elapsed = result["elapsed_s"].as_f64().unwrap();
    let total = &result["total"];
    let mean_us = total["latency_us"]["mean"].as_f64().unwrap();
    let within = mean_us / 1e6 * total["count"].as_f64().unwrap();
    // One client is within an operation most of the time, and never in two.
    assert!(
        (0.4 * elapsed..=1.001 * elapsed).contains(&within),
        "{within} of {elapsed} s"
    );
    let wall = result["ended_ns"].as_f64().unwrap() - result["measured_from_ns"].as_f64().unwrap();
    assert!(
        (wall / 1e9 - elapsed).abs() < 1e-3,
        "{wall} ns, {elapsed} s"
    );
    let user = result["cpu"]["user_s"].as_f64().unwrap();
    let cpu = user + result["cpu"]["system_s"].as_f64().unwrap();
    // It is computing all the time, though others may share the CPUs; the coordinator adds little.
    assert!(
        user > 0.0 && (0.2 * elapsed..1.3 * elapsed).contains(&cpu),
        "{cpu} of {elapsed} s"
    );
}

#[test]
fn progress_is_told_an_interval_at_a_time_and_grows() {
    let folder = Folder::new();
    let null = read_json(&schema_folder().join("golden/job-null.json"));
    let job = with(
        null,
        json!({"duration_s": 0.5, "warmup_s": 0.3, "interval_ms": 100}),
    );
    let ran = drive_with(&folder, &job, &["--progress"]);
    ran.ok();
    let lines = json_lines(&ran.stdout);
    let phases: Vec<&str> = lines
        .iter()
        .map(|line| line["phase"].as_str().unwrap())
        .collect();
    assert!(
        phases.iter().filter(|&&phase| phase == "warmup").count() >= 2,
        "{phases:?}"
    );
    assert!(
        phases.iter().filter(|&&phase| phase == "measured").count() >= 3,
        "{phases:?}"
    );
    let last = lines.last().unwrap();
    assert!(last["operations"].as_u64() > lines[lines.len() - 2]["operations"].as_u64());
    assert!(last["throughput_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_probe_shows_the_settings_and_leaves_nothing_behind() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    let place =
        json!({"backend": {"path": folder.text("data/new.db"), "config": {"journal_mode": "wal"}}});
    let probe = |job: &Value| {
        Command::new(PROGRAM)
            .args(["drive", "--probe", "--job"])
            .arg(folder.write("job.json", job))
            .output()
            .unwrap()
    };
    let output = probe(&with(load_job(&folder), place.clone()));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["kind"], json!("sqlite"));
    assert_eq!(shown["effective"]["journal_mode"], json!("wal"));
    assert_eq!(folder.names("data"), Vec::<String>::new());
    drive(&folder, &load_job(&folder)).ok();
    assert!(probe(&run_job(&folder)).status.success());
    assert_eq!(rows(&folder).len(), 500);
    let missing = probe(&with(run_job(&folder), place));
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(missing.stderr).unwrap().lines().count(),
        1
    );
    let null = probe(&read_json(&schema_folder().join("golden/job-null.json")));
    let shown: Value = serde_json::from_slice(&null.stdout).unwrap();
    assert_eq!(
        (&shown["kind"], &shown["effective"]),
        (&json!("null"), &json!({}))
    );
}

#[test]
fn versions_are_told_as_json() {
    let output = Command::new(PROGRAM)
        .args(["version", "--json"])
        .output()
        .unwrap();
    let versions: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(versions["dyno-core"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!(versions["sqlite"], json!(rusqlite::version()));
}

#[test]
fn a_result_of_an_earlier_run_does_not_outlive_the_start_of_the_next() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let before = fs::read(folder.path("out/result.json")).unwrap();
    drive_command(&folder, &run_job(&folder)).status().unwrap();
    assert_ne!(fs::read(folder.path("out/result.json")).unwrap(), before);
    assert_eq!(
        folder.names("out"),
        [
            "errors.jsonl",
            "intervals.jsonl",
            "latency.hlog",
            "result.json"
        ]
    );
}

/// `dyno run` gives each run a seed of its own, on one data set.
#[test]
fn values_that_were_loaded_with_another_seed_pass_the_check_of_values() {
    let folder = Folder::new();
    let checked = json!({"workload": {"data_integrity": true}});
    drive(&folder, &with(load_job(&folder), checked.clone())).ok();
    let mix = json!({"seed": 4711, "workload": {"proportions": {"read": 0.5, "update": 0.5}}});
    let result = drive(&folder, &with(with(run_job(&folder), checked), mix)).ok();
    assert_eq!(result["total"]["errors"], json!({}));
    assert!(result["operations"]["read"]["count"].as_u64() > Some(100));
}
