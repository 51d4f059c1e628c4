//! `merge`: what makes one result, and what does not.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Folder, PROGRAM, Ran, with};

fn job() -> Value {
    json!({
        "format": 1, "phase": "run", "backend": {"kind": "null"},
        "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 1.0}},
        "clients": 2, "operations": 1000, "seed": 1, "interval_ms": 1000,
    })
}

/// Runs drivers that begin together, each with changes of its own; gives their folders.
fn together(folder: &Folder, changes: &[Value]) -> Vec<PathBuf> {
    let start = SystemTime::now() + Duration::from_secs(1);
    let start_ns = u64::try_from(start.duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
    let children: Vec<_> = (0..)
        .zip(changes)
        .map(|(number, change)| {
            let shared = json!({
                "driver": {"number": number, "of": changes.len()}, "start_at_ns": start_ns,
            });
            let job = with(with(job(), shared), change.clone());
            let out = folder.path(&format!("run-{number}"));
            let child = Command::new(PROGRAM)
                .args(["drive", "--job"])
                .arg(folder.write(&format!("job-{number}.json"), &job))
                .arg("--out")
                .arg(&out)
                .spawn()
                .unwrap();
            (child, out)
        })
        .collect();
    children
        .into_iter()
        .map(|(mut child, out)| {
            assert!(child.wait().unwrap().success());
            out
        })
        .collect()
}

fn merge(folder: &Folder, parts: &[PathBuf]) -> Output {
    Command::new(PROGRAM)
        .args(["merge", "--out"])
        .arg(folder.path("merged"))
        .args(parts)
        .output()
        .unwrap()
}

/// Both folders are named, and nothing is written.
#[track_caller]
fn assert_refused(folder: &Folder, parts: &[PathBuf], said: &str) {
    let output = merge(folder, parts);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(said), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in parts {
        assert!(stderr.contains(part.to_str().unwrap()), "{stderr}");
    }
    assert!(!folder.path("merged/result.json").exists());
}

#[test]
fn all_drivers_of_a_job_make_one_result_and_one_twice_or_one_too_few_do_not() {
    let folder = Folder::new();
    let parts = together(&folder, &[json!({}), json!({})]);
    let merged = Ran::new(merge(&folder, &parts), folder.path("merged")).ok();
    assert_eq!(merged["total"]["count"], json!(2000));
    assert_eq!(
        (&merged["drivers"], &merged["driver"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(merged["workload"], job()["workload"]);
    assert_eq!(merged["seed"], json!(1));
    std::fs::rename(folder.path("merged"), folder.path("whole")).unwrap();
    let [zero, one] = [&parts[0], &parts[1]].map(Clone::clone);
    assert_refused(
        &folder,
        &[zero.clone(), zero.clone()],
        "both results of driver 0 of 2",
    );
    assert_refused(&folder, &[one], "number 0 is missing");
    assert_refused(&folder, &[zero], "number 1 is missing");
    assert_refused(
        &folder,
        &[folder.path("whole")],
        "not the result of one driver",
    );
}

#[test]
fn drivers_that_were_asked_for_different_things_make_no_result() {
    let zero = json!({"driver": {"number": 0, "of": 2}});
    let cases = [
        (
            json!({"workload": {"records": 2000}}),
            "differ in their workload",
        ),
        (
            json!({"workload": {"theta": 0.5}}),
            "differ in their workload",
        ),
        (json!({"seed": 2}), "differ in their seed"),
        (zero, "both results of driver 0 of 2"),
        (json!({"driver": {"of": 3}}), "one of 2 drivers"),
    ];
    for (change, said) in cases {
        let folder = Folder::new();
        let parts = together(&folder, &[json!({}), change]);
        assert_refused(&folder, &parts, said);
    }
}

#[test]
fn drivers_that_measured_at_different_times_make_no_result() {
    let folder = Folder::new();
    let parts: Vec<PathBuf> = (0..2)
        .map(|number| {
            let out = folder.path(&format!("run-{number}"));
            let job = with(
                job(),
                json!({"driver": {"number": number, "of": 2}, "interval_ms": 50}),
            );
            std::thread::sleep(Duration::from_millis(100));
            let status = Command::new(PROGRAM)
                .args(["drive", "--job"])
                .arg(folder.write("job.json", &job))
                .arg("--out")
                .arg(&out)
                .status();
            assert!(status.unwrap().success());
            out
        })
        .collect();
    let output = merge(&folder, &parts);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("began to measure") && stderr.contains("s apart"),
        "{stderr}"
    );
}
