//! The driver on Berkeley DB, in each of its products.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Folder, Ran, drive, drive_command, wait_until, with};

fn job(folder: &Folder, backend: Value) -> Value {
    let backend = with(
        json!({"kind": "berkeleydb", "folder": folder.text("db"), "cache_bytes": 32 << 20}),
        backend,
    );
    json!({
        "format": 1, "phase": "run", "backend": backend,
        "workload": {"kind": "tpcc", "warehouses": 2, "items": 200, "customers_per_district": 30, "rollbacks": 0.0},
        "clients": 1, "operations": 200, "seed": 7, "interval_ms": 100,
    })
}

/// Loads, runs, and looks at what is stored. Gives what the run said.
fn carry_out(folder: &Folder, job: &Value) -> Value {
    let load = json!({"phase": "load", "operations": null, "max_share_failed": null});
    drive(folder, &with(job.clone(), load)).ok();
    let result = drive(folder, job).ok();
    let check =
        json!({"phase": "check", "operations": null, "max_share_failed": null, "clients": 1});
    let found = drive(folder, &with(job.clone(), check)).ok();
    let checks = found["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 4, "{checks:?}");
    assert!(checks.iter().all(|check| check["holds"] == json!(true)));
    result
}

#[test]
fn tpcc_keeps_every_product_consistent_and_shows_how_it_was_set() {
    for backend in [
        json!({"product": "data-store", "mutexes": false}),
        json!({"product": "data-store", "mutexes": true, "checksums": true}),
        json!({"product": "concurrent", "page_size_bytes": 4096}),
        json!({"product": "transactional", "log": "memory", "locks": false}),
        json!({"product": "transactional", "log": "memory", "locks": true}),
        json!({"product": "transactional", "log": "written", "mutexes": false}),
        json!({"product": "transactional", "log": "synced", "checksums": true}),
    ] {
        let folder = Folder::new();
        let asked = with(backend, json!({"preload": true}));
        let mut job = job(&folder, asked.clone());
        if asked["product"] == json!("transactional") {
            job["workload"]["rollbacks"] = json!(0.05);
        }
        let result = carry_out(&folder, &job);
        let (effective, status) = (
            &result["backend"]["effective"],
            &result["backend"]["status"],
        );
        for (key, value) in asked.as_object().unwrap() {
            assert_eq!(&effective[key], value, "{key}: {effective}");
        }
        assert_eq!(status["pages_read_bytes"], json!(0.0), "{asked}");
        assert_eq!(status["pages_written_bytes"], json!(0.0), "{asked}");
        let syncs = status["log_syncs"].as_f64().unwrap();
        if asked["log"] == json!("synced") {
            assert!(syncs >= 150.0, "{syncs}"); // four of five kinds of 200 write
        } else {
            assert!(syncs < 1.0, "{syncs}");
        }
    }
}

#[test]
fn clients_at_the_same_time_keep_transactions_consistent() {
    let folder = Folder::new();
    let job = with(
        job(
            &folder,
            json!({"product": "transactional", "log": "memory"}),
        ),
        json!({"clients": 3, "operations": 600, "max_share_failed": 0.5, "workload": {"rollbacks": 0.01}}),
    );
    carry_out(&folder, &job);
}

#[test]
fn a_second_run_goes_on_where_the_first_ended() {
    let folder = Folder::new();
    let job = job(
        &folder,
        json!({"product": "transactional", "log": "memory"}),
    );
    carry_out(&folder, &job);
    drive(&folder, &job).ok();
    let check = json!({"phase": "check", "operations": null});
    drive(&folder, &with(job, check)).ok();
}

#[test]
fn ycsb_finds_what_it_wrote_in_every_product() {
    for product in ["data-store", "concurrent", "transactional"] {
        let folder = Folder::new();
        let job = with(
            job(&folder, json!({"product": product})),
            json!({"workload": null, "operations": 300}),
        );
        let mut job = job;
        job["workload"] = json!({
            "kind": "ycsb", "records": 100, "data_integrity": true,
            "proportions": {"read": 0.4, "update": 0.3, "insert": 0.1, "scan": 0.1, "read_modify_write": 0.1},
        });
        let load = json!({"phase": "load", "operations": null});
        drive(&folder, &with(job.clone(), load)).ok();
        drive(&folder, &job).ok();
    }
}

#[test]
fn pages_of_another_size_than_asked_for_are_told() {
    let folder = Folder::new();
    let job = job(
        &folder,
        json!({"product": "data-store", "page_size_bytes": 4096}),
    );
    let load = json!({"phase": "load", "operations": null});
    drive(&folder, &with(job.clone(), load)).ok();
    let other = with(job, json!({"backend": {"page_size_bytes": 8192}}));
    let failed = drive(&folder, &other).failure();
    assert_eq!(failed["error"]["kind"], json!("setting_not_effective"));
    let said = failed["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("backend.page_size_bytes was set to 8192 but is 4096"),
        "{said}"
    );
}

/// Drives with another library in place of Berkeley DB: one whose source is given, or no library at all.
fn drive_with_library(source: Option<&str>) -> Value {
    let folder = Folder::new();
    let library = folder.path("libdb-5.3.so");
    match source {
        None => std::fs::write(&library, "no library").unwrap(),
        Some(source) => {
            std::fs::write(folder.path("library.c"), source).unwrap();
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
            assert!(
                compiler
                    .arg(folder.path("library.c"))
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
    let job = with(
        job(&folder, json!({})),
        json!({"phase": "load", "operations": null}),
    );
    let mut command = drive_command(&folder, &job);
    command
        .env("LD_LIBRARY_PATH", folder.path(""))
        .stdin(Stdio::null());
    let failed = Ran::new(command.output().unwrap(), folder.path("out")).failure();
    assert_eq!(failed["error"]["kind"], json!("cannot_open"), "{failed}");
    failed["error"]["message"].clone()
}

#[test]
fn a_library_that_is_missing_or_another_is_told_in_one_line() {
    let of_version = |patch| {
        format!(
            "const char *db_version(int *major, int *minor, int *patch) \
             {{ *major = 5; *minor = 3; *patch = {patch}; return 0; }}"
        )
    };
    for (source, why) in [
        (None, "is not there (apt-get install libdb5.3): /"),
        (None, "libdb-5.3.so: file too short"),
        (
            Some(of_version(29)),
            "libdb-5.3.so is version 5.3.29, and dyno knows how 5.3.28 is laid out",
        ),
        (Some(of_version(28)), "undefined symbol: db_env_create"),
    ] {
        let message = drive_with_library(source.as_deref());
        let said = message.as_str().unwrap();
        assert!(said.contains(why), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_run_that_was_killed_is_gone_on_with_by_its_log_and_opened_by_no_other_product() {
    let folder = Folder::new();
    let job = job(
        &folder,
        json!({"product": "transactional", "log": "synced"}),
    );
    let load = json!({"phase": "load", "operations": null});
    drive(&folder, &with(job.clone(), load)).ok();
    let endless = with(job.clone(), json!({"operations": 1_000_000}));
    let mut killed = drive_command(&folder, &endless)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = folder.path("db/log.0000000001");
    wait_until("the log has transactions", || {
        std::fs::metadata(&log).is_ok_and(|file| file.len() > 200_000)
    });
    // Meanwhile nobody else comes in.
    let aside = Folder::new();
    let second = drive(&aside, &job).failure();
    assert_eq!(second["error"]["kind"], json!("busy"), "{second}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut other = with(
        job.clone(),
        json!({"backend": {"product": "concurrent", "log": null}}),
    );
    other["workload"]["mix"] = json!("looking-glass");
    let refused = drive(&aside, &other).failure();
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("has a log (log.0000000001)"), "{said}");
    // A check of the conditions, a run that goes on, and a check of that.
    let check = json!({"phase": "check", "operations": null, "max_share_failed": null});
    for part in [check.clone(), json!({}), check] {
        let result = drive(&folder, &with(job.clone(), part)).ok();
        let held = |checks: &Vec<Value>| checks.iter().all(|check| check["holds"] == json!(true));
        assert!(result["checks"].as_array().is_none_or(held), "{result}");
    }
}
