//! `cut`: a result of the part of another from one of its intervals on.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::drive::logged;
use crate::support::{
    Folder, PROGRAM, Ran, drive, load_job, read_json, run_job, schema_folder, with,
};

const INTERVAL_NS: u64 = 20_000_000;

/// A run of 0.4 s in intervals of 20 ms after a warm-up, in which some operations fail.
fn driven(folder: &Folder, changes: Value) -> (Ran, Value) {
    drive(folder, &load_job(folder)).ok();
    let job = with(
        run_job(folder),
        json!({
            "clients": 3, "operations": null, "duration_s": 0.4, "warmup_s": 0.05, "interval_ms": 20,
            "max_share_failed": 1.0,
            "backend": {"config": {"busy_timeout_ms": 0}},
            "workload": {"proportions": {"read": 0.5, "update": 0.5}},
        }),
    );
    let ran = drive(folder, &with(job, changes));
    let result = ran.ok();
    (ran, result)
}

fn cut(folder: &Folder, from_interval: u64) -> Ran {
    let output = Command::new(PROGRAM)
        .args([
            "cut",
            "--from-interval",
            &from_interval.to_string(),
            "--out",
        ])
        .arg(folder.path("cut"))
        .arg(folder.path("out"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::new(output, folder.path("cut"))
}

fn count(figures: &Value) -> u64 {
    figures["count"].as_u64().unwrap()
}

fn errors(figures: &Value) -> u64 {
    let kinds = figures["errors"].as_object().unwrap();
    kinds.values().map(|count| count.as_u64().unwrap()).sum()
}

fn cpu_s(holder: &Value) -> f64 {
    holder["cpu"]["user_s"].as_f64().unwrap() + holder["cpu"]["system_s"].as_f64().unwrap()
}

#[test]
fn cutting_at_the_begin_gives_the_same_result() {
    let folder = Folder::new();
    let (ran, whole) = driven(&folder, json!({}));
    let part = cut(&folder, 0);
    assert_eq!(part.ok(), whole);
    assert_eq!(part.intervals(), ran.intervals());
    assert_eq!(logged(&part), logged(&ran));
}

#[test]
fn a_part_and_what_was_left_out_add_up_to_the_whole() {
    let folder = Folder::new();
    let (ran, whole) = driven(&folder, json!({}));
    assert!(errors(&whole["total"]) > 0, "nothing failed");
    let from = 7;
    let cut = cut(&folder, from);
    let part = cut.ok();

    let warm = |result: &Value| result["warmup"]["operations"].as_u64().unwrap();
    assert_eq!(
        count(&part["total"]) + warm(&part) - warm(&whole),
        count(&whole["total"])
    );
    assert_eq!(
        errors(&part["total"]) + errors(&part["warmup"]) - errors(&whole["warmup"]),
        errors(&whole["total"])
    );
    // Every histogram is there, those of the begin by another tag.
    let (before, after) = (logged(&ran), logged(&cut));
    for name in ["read", "update", "update.failed"] {
        let sums = [&before, &after].map(|log| {
            // On a busy machine nothing may have failed yet when the warm-up was over.
            let parts = [name.to_owned(), format!("{name}.warmup")];
            let mut there = parts.iter().filter_map(|part| log.get(part));
            let mut sum = there.next().unwrap().clone();
            there.for_each(|part| sum.add(part).unwrap());
            sum
        });
        assert_eq!(sums[0], sums[1], "{name}");
    }
    for name in ["read", "update"] {
        assert!(after[name].len() < before[name].len(), "{name}");
    }
    let lines = ran.intervals();
    let starts = |line: &&Value| {
        let from_ns = whole["measured_from_ns"].as_u64().unwrap() + from * INTERVAL_NS;
        line["start_ns"].as_u64().unwrap() >= from_ns
    };
    let kept: u64 = lines.iter().filter(starts).map(count).sum();
    assert_eq!(count(&part["total"]), kept);
    let spent: f64 = lines
        .iter()
        .filter(starts)
        .filter(|line| line["operation"] == "read")
        .map(cpu_s)
        .sum();
    assert!((cpu_s(&part) - spent).abs() < 1e-9, "{spent}");
}

#[test]
fn the_figures_of_a_part_are_those_of_its_own_time() {
    let folder = Folder::new();
    let (_, whole) = driven(&folder, json!({}));
    let ran = cut(&folder, 10);
    let part = ran.ok();
    let elapsed_s = part["elapsed_s"].as_f64().unwrap();
    assert!((elapsed_s - 0.2).abs() < 1e-9, "{elapsed_s}");
    assert_eq!(
        part["measured_from_ns"].as_u64().unwrap(),
        whole["measured_from_ns"].as_u64().unwrap() + 10 * INTERVAL_NS
    );
    assert_eq!(part["ended_ns"], whole["ended_ns"]);
    // What ended after its time is in the latencies and in no rate, as of the whole.
    let late = |result: &Value| {
        let rate = result["total"]["throughput_per_s"].as_f64().unwrap();
        count(&result["total"]) as f64 - rate * result["elapsed_s"].as_f64().unwrap()
    };
    assert!((late(&part) - late(&whole)).abs() < 1e-3);
    let logged = logged(&ran);
    for name in ["read", "update"] {
        let figures = &part["operations"][name];
        assert_eq!(logged[name].len(), count(figures));
        for (quantile, key) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
            let us = logged[name].value_at_quantile(quantile) as f64 / 1000.0;
            assert!((us / figures["latency_us"][key].as_f64().unwrap() - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn cpu_time_of_the_intervals_adds_up_to_that_of_the_measured_part() {
    let folder = Folder::new();
    let (ran, whole) = driven(&folder, json!({}));
    let spent: Vec<f64> = ran
        .intervals()
        .iter()
        .filter(|line| line["warmup"] == json!(false) && line["operation"] == "read")
        .map(cpu_s)
        .collect();
    assert!((spent.iter().sum::<f64>() - cpu_s(&whole)).abs() < 1e-6);
    // One that works all the time has some in almost every interval, and in none more than there are CPUs.
    assert!(spent.iter().filter(|&&each| each > 0.0).count() >= spent.len() / 2);
}

#[test]
fn an_open_loop_keeps_the_requests_that_were_due_in_the_part() {
    let folder = Folder::new();
    let null = read_json(&schema_folder().join("golden/job-null.json"));
    let changes = json!({
        "duration_s": 0.4, "interval_ms": 20, "operations": null,
        "loop": {"kind": "open", "rate_per_s": 1000.0, "min_share_sent": 0.0},
    });
    let whole = drive(&folder, &with(null, changes)).ok();
    let part = cut(&folder, 10).ok();
    assert_eq!(whole["open"]["due"], json!(400));
    // On a busy machine some are answered intervals later, and the last ones never sent.
    let due = part["open"]["due"].as_u64().unwrap();
    assert!((200..=400).contains(&due), "{due}");
    assert_eq!(part["open"]["unsent"], whole["open"]["unsent"]);
    let unsent = part["open"]["unsent"].as_u64().unwrap();
    assert_eq!(due, count(&part["total"]) + unsent);
    let rate = part["total"]["throughput_per_s"].as_f64().unwrap();
    let in_time = rate * part["elapsed_s"].as_f64().unwrap();
    assert!(in_time <= count(&part["total"]) as f64 + 1e-6, "{in_time}");
}

#[test]
fn connections_made_anew_count_where_they_were_made() {
    let folder = Folder::new();
    let (ran, whole) = driven(&folder, json!({}));
    let from_ns = whole["measured_from_ns"].as_u64().unwrap();
    let mut expected = 0;
    let mut planted = String::new();
    for line in ran.intervals() {
        assert_eq!(line["reconnects"], json!(0));
        let number = line["start_ns"].as_u64().unwrap().saturating_sub(from_ns) / INTERVAL_NS;
        if number >= 17 {
            expected += number;
        }
        writeln!(planted, "{}", with(line, json!({"reconnects": number}))).unwrap();
    }
    fs::write(folder.path("out/intervals.jsonl"), planted).unwrap();
    assert!(expected >= 2 * (17 + 18 + 19), "{expected}");
    assert_eq!(cut(&folder, 17).ok()["reconnects"], json!(expected));
    assert_eq!(cut(&folder, 0).ok()["reconnects"], whole["reconnects"]);
}

fn refused(ran: &Ran, why: &str) {
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn what_cannot_be_cut_is_refused_with_the_reason() {
    let folder = Folder::new();
    let (ran, _) = driven(&folder, json!({}));
    refused(&cut(&folder, 20), "nothing is left from interval 20 on");
    refused(&cut(&folder, u64::MAX), "nothing is left");
    let old: String = ran
        .intervals()
        .into_iter()
        .map(|line| format!("{}\n", with(line, json!({"cpu": null}))))
        .collect();
    fs::write(folder.path("out/intervals.jsonl"), old).unwrap();
    refused(&cut(&folder, 3), "an earlier dyno-core");
    fs::remove_file(folder.path("out/result.json")).unwrap();
    refused(&cut(&folder, 3), "result.json");
}

/// The measured part of this record begins within the ms in which the warm-up's last interval does, and the log's times
/// are in ms: its first latencies were taken for the warm-up's and were lost.
#[test]
fn a_measured_part_that_begins_in_the_last_ms_of_the_warm_up_loses_nothing() {
    let folder = Folder::new();
    fs::create_dir(folder.path("out")).unwrap();
    for (golden, name) in [
        ("result-ycsb-a-sqlite.json", "result.json"),
        ("intervals-ycsb-a-sqlite.jsonl", "intervals.jsonl"),
        ("latency-ycsb-a-sqlite.hlog", "latency.hlog"),
    ] {
        let golden = schema_folder().join("golden").join(golden);
        fs::copy(golden, folder.path("out").join(name)).unwrap();
    }
    fs::write(folder.path("out/errors.jsonl"), "").unwrap();
    let whole = read_json(&folder.path("out/result.json"));
    let part = cut(&folder, 0).ok();
    for name in ["read", "update"] {
        let counted = |result: &Value| count(&result["operations"][name]);
        assert_eq!(counted(&part), counted(&whole), "{name}");
    }
}
