//! `drive` where something goes wrong.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_servers::{in_mounts, may_mount};
use serde_json::{Value, json};

use crate::support::{
    Folder, PROGRAM, Ran, count_and_errors, drive, drive_command, load_job, run_job, with,
};

fn loaded() -> Folder {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    folder
}

#[track_caller]
fn assert_fails(folder: &Folder, job: &Value, kind: &str, said: &str) -> Value {
    let result = drive(folder, job).failure();
    assert_eq!(result["error"]["kind"], json!(kind), "{}", result["error"]);
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains(said), "{message}");
    result
}

#[test]
fn a_row_deleted_behind_its_back_is_counted_as_missing_and_never_as_a_fast_read() {
    let folder = loaded();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    let deleted = database
        .execute(
            "DELETE FROM usertable WHERE ycsb_key IN (SELECT ycsb_key FROM usertable LIMIT 250)",
            [],
        )
        .unwrap();
    assert_eq!(deleted, 250);
    drop(database);
    let job = with(
        run_job(&folder),
        json!({
            "operations": 1000,
            "workload": {
                "key_chooser": "uniform",
                "proportions": {"read": 0.5, "update": 0.25, "read_modify_write": 0.25},
            },
        }),
    );
    drive(&folder, &job).spoilt("operations_failed");
    let result = drive(&folder, &with(job, json!({"max_share_failed": 0.6}))).ok();
    let (count, errors) = count_and_errors(&result["total"]);
    assert_eq!(count + errors, 1000);
    assert!(
        (400..600).contains(&errors),
        "half of the rows are gone: {errors}"
    );
    for name in ["read", "update", "read_modify_write"] {
        assert!(
            result["operations"][name]["errors"]["missing_key"].as_u64() > Some(50),
            "{name}"
        );
    }
}

#[test]
fn a_row_of_another_length_is_counted_as_wrong() {
    let folder = loaded();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    database
        .execute("UPDATE usertable SET field1 = 'short'", [])
        .unwrap();
    drop(database);
    let result = drive(&folder, &run_job(&folder)).spoilt("operations_failed");
    assert_eq!(result["total"]["errors"], json!({"wrong_value": 400}));
    assert_eq!(result["total"]["latency_us"], Value::Null);
}

#[test]
fn a_run_of_which_too_much_failed_has_failed_and_says_how_for_the_most_part() {
    let folder = loaded();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    let all: Vec<String> = database
        .prepare("SELECT ycsb_key FROM usertable ORDER BY ycsb_key")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let delete = "DELETE FROM usertable WHERE ycsb_key = ?";
    for key in all.iter().step_by(5) {
        database.execute(delete, [key]).unwrap();
    }
    let spoil = "UPDATE usertable SET field1 = 'short' WHERE ycsb_key = ?";
    database.execute(spoil, [&all[1]]).unwrap();
    drop(database);
    // Each key once: a hundred of the five hundred are gone, one is too short.
    let job = with(
        run_job(&folder),
        json!({"operations": 500, "workload": {"key_chooser": "sequential"}}),
    );
    let result = drive(&folder, &job).spoilt("operations_failed");
    assert_eq!(result["ended_by"], json!("operations"));
    let said = result["error"]["message"].as_str().unwrap();
    assert!(
        said.starts_with(
            "101 of 500 operations failed (20.20 %, at most 1.00 % allowed), most of them as missing_key; \
             the first of these, read: "
        ),
        "{said}"
    );
    let allow = |share| with(job.clone(), json!({"max_share_failed": share}));
    drive(&folder, &allow(0.202)).ok();
    drive(&folder, &allow(0.2)).spoilt("operations_failed");
}

#[test]
fn a_run_in_which_nothing_succeeded_has_failed_whatever_it_allows() {
    let folder = loaded();
    rusqlite::Connection::open(folder.path("ycsb.db"))
        .unwrap()
        .execute("DELETE FROM usertable", [])
        .unwrap();
    let job = with(run_job(&folder), json!({"max_share_failed": 1.0}));
    let result = drive(&folder, &job).spoilt("operations_failed");
    let said = result["error"]["message"].as_str().unwrap();
    assert!(
        said.starts_with(
            "400 of 400 operations failed (none succeeded), most of them as missing_key"
        ),
        "{said}"
    );
}

#[test]
fn a_read_modify_write_reads_what_it_writes_over() {
    let folder = loaded();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    database
        .execute("UPDATE usertable SET field1 = 'short'", [])
        .unwrap();
    drop(database);
    let proportions = json!({"read": null, "read_modify_write": 1.0});
    let job = with(
        run_job(&folder),
        json!({"workload": {"proportions": proportions}}),
    );
    let result = drive(&folder, &job).spoilt("operations_failed");
    assert_eq!(result["total"]["errors"], json!({"wrong_value": 400}));
}

/// The loaded rows in a table without any constraint, changed by that.
fn unbound(changes: &str) -> Folder {
    let folder = loaded();
    rusqlite::Connection::open(folder.path("ycsb.db"))
        .unwrap()
        .execute_batch(&format!(
            "ALTER TABLE usertable RENAME TO bound; \
             CREATE TABLE usertable AS SELECT * FROM bound; DROP TABLE bound; {changes}"
        ))
        .unwrap();
    folder
}

#[test]
fn two_rows_with_one_key_are_no_answer_to_a_read_and_none_to_an_update() {
    let folder = unbound("INSERT INTO usertable SELECT * FROM usertable");
    for operation in ["read", "update"] {
        let mut job = with(run_job(&folder), json!({"operations": 20}));
        job["workload"]["proportions"] = json!({operation: 1.0});
        let result = drive(&folder, &job).spoilt("operations_failed");
        assert_eq!(result["total"]["errors"], json!({"wrong_value": 20}));
        let said = result["error"]["message"].as_str().unwrap();
        assert!(said.contains("there are 2 rows with key user"), "{said}");
    }
}

#[test]
fn a_scan_that_shows_keys_out_of_order_or_before_its_start_is_wrong() {
    // SQLite puts every BLOB behind every text, whatever they hold.
    let half = "WHERE ycsb_key IN (SELECT ycsb_key FROM usertable ORDER BY ycsb_key LIMIT 250)";
    // The first half of the keys comes behind the second; or each scan shows all keys from the first on.
    for blobs in [half, ""] {
        let folder = unbound(&format!(
            "UPDATE usertable SET ycsb_key = CAST(ycsb_key AS BLOB) {blobs}"
        ));
        let mut job = with(
            run_job(&folder),
            json!({"workload": {"max_scan_length": 500, "key_chooser": "uniform"}}),
        );
        job["workload"]["proportions"] = json!({"scan": 1.0});
        let result = drive(&folder, &job).spoilt("operations_failed");
        let wrong = result["total"]["errors"]["wrong_value"].as_u64().unwrap();
        assert!(wrong > if blobs.is_empty() { 390 } else { 100 }, "{wrong}");
        let said = result["error"]["message"].as_str().unwrap();
        assert!(said.contains("where only those behind user"), "{said}");
    }
}

#[test]
fn keys_that_an_earlier_run_inserted_are_counted_as_duplicates() {
    let folder = loaded();
    let job = with(
        run_job(&folder),
        json!({
            "operations": 50, "workload": {"proportions": {"read": null, "insert": 1.0}},
        }),
    );
    assert_eq!(drive(&folder, &job).ok()["total"]["count"], json!(50));
    let again = drive(&folder, &job).spoilt("operations_failed");
    assert_eq!(again["total"]["errors"], json!({"duplicate_key": 50}));
}

#[test]
fn a_lock_held_for_longer_than_the_timeout_is_counted_as_busy() {
    let folder = loaded();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let job = with(
        run_job(&folder),
        json!({
            "operations": 10,
            "workload": {"proportions": {"read": null, "update": 1.0}},
            "backend": {"config": {"busy_timeout_ms": 20}},
        }),
    );
    let result = drive(&folder, &job).spoilt("operations_failed");
    assert_eq!(result["total"]["errors"], json!({"busy": 10}));
    let elapsed = result["elapsed_s"].as_f64().unwrap();
    assert!((0.2..5.0).contains(&elapsed), "ten times 20 ms: {elapsed}");
    let took_us = result["total"]["failed_us"]["min"].as_f64().unwrap();
    assert!((19_000.0..5e6).contains(&took_us), "{took_us}");
}

#[test]
fn a_driver_that_is_not_ready_when_the_others_begin_has_failed() {
    let folder = loaded();
    let job = with(run_job(&folder), json!({"start_at_ns": 1_000_000_000}));
    let result = assert_fails(&folder, &job, "late_start", "after start_at_ns");
    assert_eq!(result["total"]["count"], json!(0));
    // In time for the warm-up, whose one operation outlasts the second that the others wait.
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = SystemTime::now() + Duration::from_secs(1);
    let start_ns = start.duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let job = with(
        run_job(&folder),
        json!({
            "start_at_ns": u64::try_from(start_ns).unwrap(), "warmup_s": 0.1,
            "workload": {"proportions": {"read": null, "update": 1.0}},
            "backend": {"config": {"busy_timeout_ms": 1500}},
        }),
    );
    assert_fails(&folder, &job, "late_start", "ready to measure");
}

#[test]
fn a_missing_table_fails_the_run_and_says_what_to_do() {
    let folder = Folder::new();
    rusqlite::Connection::open(folder.path("ycsb.db"))
        .unwrap()
        .execute_batch("CREATE TABLE other(a)")
        .unwrap();
    assert_fails(
        &folder,
        &run_job(&folder),
        "refused",
        "there is no usertable; run a job of phase load",
    );
}

#[test]
fn a_table_of_another_shape_fails_the_run() {
    let folder = loaded();
    let job = with(run_job(&folder), json!({"workload": {"field_count": 5}}));
    assert_fails(
        &folder,
        &job,
        "refused",
        "has 4 fields and the job's field_count is 5",
    );
}

#[test]
fn loading_twice_into_one_file_fails() {
    let folder = loaded();
    assert_fails(
        &folder,
        &load_job(&folder),
        "refused",
        "there is a usertable already",
    );
}

#[test]
fn a_missing_file_is_not_created_by_the_run_phase() {
    let folder = Folder::new();
    assert_fails(&folder, &run_job(&folder), "cannot_open", "ycsb.db");
    assert!(!folder.path("ycsb.db").exists());
}

#[test]
fn a_file_that_is_no_database_fails_as_corrupt() {
    let folder = Folder::new();
    fs::write(
        folder.path("ycsb.db"),
        "not a database, but longer than a header ".repeat(200),
    )
    .unwrap();
    assert_fails(&folder, &run_job(&folder), "corrupt", "ycsb.db");
}

#[test]
fn a_damaged_page_ends_the_run_as_corrupt() {
    let folder = loaded();
    let mut bytes = fs::read(folder.path("ycsb.db")).unwrap();
    bytes[8192..].fill(0xff);
    fs::write(folder.path("ycsb.db"), bytes).unwrap();
    let result = assert_fails(&folder, &run_job(&folder), "corrupt", "operation read");
    assert_eq!(result["total"]["errors"], json!({"corrupt": 1}));
}

#[test]
fn a_setting_that_does_not_take_effect_fails_the_run() {
    let folder = loaded();
    for (key, value) in [("page_size_bytes", 512u64), ("mmap_size_bytes", 1 << 50)] {
        let job = with(
            run_job(&folder),
            json!({"backend": {"config": {key: value}}}),
        );
        let said = format!("backend.config.{key} was set to {value} but is ");
        assert_fails(&folder, &job, "setting_not_effective", &said);
    }
}

#[test]
fn a_journal_mode_that_another_program_prevents_fails_the_run() {
    let folder = Folder::new();
    let wal = json!({"backend": {"config": {"journal_mode": "wal"}}});
    drive(&folder, &with(load_job(&folder), wal)).ok();
    let other = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    let _: i64 = other
        .query_row("SELECT count(*) FROM usertable", [], |row| row.get(0))
        .unwrap();
    let config = json!({"journal_mode": "delete", "busy_timeout_ms": 10});
    let job = with(run_job(&folder), json!({"backend": {"config": config}}));
    assert_fails(&folder, &job, "busy", "locked");
}

/// Runs `drive` in mounts of its own, made by `prepare`; `None` where the kernel does not let us.
fn drive_in_mounts(folder: &Folder, job: &Value, prepare: &str) -> Option<Ran> {
    if !may_mount() {
        return None;
    }
    let inner = drive_command(folder, job);
    let output = in_mounts(prepare)
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(Ran::new(output, folder.path("out")))
}

#[test]
fn a_full_disk_ends_loading_as_failed() {
    let folder = Folder::new();
    fs::create_dir(folder.path("small")).unwrap();
    let job = with(
        load_job(&folder),
        json!({
            "workload": {"records": 20_000},
            "backend": {"path": folder.text("small/ycsb.db")},
        }),
    );
    let mount = format!("mount -t tmpfs -o size=1m none {}", folder.text("small"));
    if let Some(ran) = drive_in_mounts(&folder, &job, &mount) {
        let result = ran.failure();
        assert_eq!(
            result["error"]["kind"],
            json!("disk_full"),
            "{}",
            result["error"]
        );
        assert_eq!(result["total"]["errors"], json!({"disk_full": 1}));
    }
}

#[test]
fn a_disk_that_fills_up_ends_a_run_at_the_first_operation_that_meets_it() {
    let folder = loaded();
    fs::create_dir(folder.path("small")).unwrap();
    let job = with(
        run_job(&folder),
        json!({
            "operations": 1_000_000,
            "workload": {"proportions": {"read": 0.5, "insert": 0.5}},
            "backend": {"path": folder.text("small/ycsb.db")},
        }),
    );
    let (small, loaded) = (folder.text("small"), folder.text("ycsb.db"));
    let mount = format!("mount -t tmpfs -o size=1m none {small} && cp {loaded} {small}");
    if let Some(ran) = drive_in_mounts(&folder, &job, &mount) {
        let result = ran.failure();
        assert_eq!(
            result["error"]["kind"],
            json!("disk_full"),
            "{}",
            result["error"]
        );
        assert_eq!(result["total"]["errors"], json!({"disk_full": 1}));
        assert!(
            result["total"]["count"].as_u64() > Some(100),
            "what was done before is kept"
        );
    }
}

#[test]
fn a_read_only_folder_fails_the_run() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    let place = json!({
        "backend": {"path": folder.text("data/ycsb.db")},
        "workload": {"proportions": {"read": null, "update": 1.0}},
    });
    drive(&folder, &with(load_job(&folder), place.clone())).ok();
    let data = folder.text("data");
    let mount = format!("mount --bind {data} {data} && mount -o remount,ro,bind {data}");
    if let Some(ran) = drive_in_mounts(&folder, &with(run_job(&folder), place), &mount) {
        let result = ran.failure();
        assert_eq!(
            result["error"]["kind"],
            json!("read_only"),
            "{}",
            result["error"]
        );
    }
}

#[test]
fn a_result_folder_that_cannot_be_written_is_one_line_and_status_1() {
    let folder = loaded();
    let output = Command::new(PROGRAM)
        .args(["drive", "--out", "/dev/null/out", "--job"])
        .arg(folder.write("job.json", &run_job(&folder)))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("/dev/null/out"), "{stderr}");
}

#[test]
fn a_job_that_is_missing_or_is_no_json_is_refused_with_status_2() {
    let folder = Folder::new();
    let run = |path: &std::path::Path| {
        let mut command = Command::new(PROGRAM);
        command
            .arg("drive")
            .arg("--job")
            .arg(path)
            .arg("--out")
            .arg(folder.path("out"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run(&folder.path("none.json")).contains("none.json: cannot be read"));
    fs::write(folder.path("broken.json"), "{\"format\": 1,\n oops}").unwrap();
    assert!(run(&folder.path("broken.json")).contains("broken.json: line 2 column 2: is not JSON"));
}

#[test]
fn the_audit_of_a_ledger_goes_on_whatever_rows_are_called() {
    let folder = Folder::new();
    let mut job = with(run_job(&folder), json!({"operations": 100, "clients": 2}));
    job["workload"] = json!({"kind": "ledger"});
    drive(
        &folder,
        &with(job.clone(), json!({"phase": "load", "operations": null})),
    )
    .ok();
    drive(&folder, &job).ok();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    let insert = |values: &str| {
        let sql = format!(
            "INSERT INTO ledger(run_seed, driver, client, number, payload) \
             SELECT {values}, payload FROM ledger LIMIT 1"
        );
        database.execute(&sql, []).unwrap();
    };
    insert("42, 0, 0, -4");
    insert("42, 0, 9, 0");
    insert("43, 0, 0, 1");
    fs::rename(folder.path("out"), folder.path("noted")).unwrap();
    let check = with(
        job,
        json!({
            "phase": "check", "operations": null, "clients": 1,
            "workload": {"acknowledged": [folder.text("noted")]},
        }),
    );
    let ledger = drive(&folder, &check).ok()["ledger"].clone();
    let figures = ["acknowledged", "present", "lost", "phantom", "foreign"].map(|key| &ledger[key]);
    assert_eq!(
        figures,
        [100, 100, 0, 0, 3].map(|count| json!(count)).each_ref()
    );
    // Present, of this run's client, and not what was ever written there.
    insert("42, 0, 0, 4294967290");
    let ledger = drive(&folder, &check).failure()["ledger"].clone();
    let figures = ["present", "phantom", "altered"].map(|key| &ledger[key]);
    assert_eq!(figures, [101, 1, 1].map(|count| json!(count)).each_ref());
}
