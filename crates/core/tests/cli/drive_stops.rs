//! `drive` that is told to stop.

use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{
    Folder, Ran, drive, drive_command, load_job, run_job, wait_at_most, wait_until, with,
};

/// How long a run may take to end once it is told to.
const PROMPT: Duration = Duration::from_millis(1500);

fn endless(folder: &Folder) -> Value {
    with(
        run_job(folder),
        json!({"operations": null, "duration_s": 3600, "clients": 2}),
    )
}

fn start(folder: &Folder, job: &Value, more: &[&str]) -> Child {
    let mut command = drive_command(folder, job);
    command
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Waits for a prompt end with status 3 and gives the partial result.
fn partial(folder: &Folder, mut child: Child) -> Value {
    wait_at_most(&mut child, PROMPT);
    let ran = Ran::new(child.wait_with_output().unwrap(), folder.path("out"));
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let result = ran.result();
    assert_eq!(result["outcome"], json!("partial"));
    assert_eq!(result["ended_by"], json!("signal"));
    result
}

fn wait_for_intervals(folder: &Folder) {
    wait_until("the run has begun", || {
        folder.path("out/intervals.jsonl").exists()
    });
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn signals_and_the_end_of_standard_input_end_a_run_promptly_with_what_was_measured() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    for how in ["TERM", "INT", "EOF"] {
        let _ = std::fs::remove_dir_all(folder.path("out"));
        let mut child = start(&folder, &endless(&folder), &["--stop-on-stdin-eof"]);
        wait_for_intervals(&folder);
        match how {
            "TERM" => send(&child, Signal::SIGTERM),
            "INT" => send(&child, Signal::SIGINT),
            _ => drop(child.stdin.take()),
        }
        let result = partial(&folder, child);
        assert!(
            result["total"]["count"].as_u64() > Some(100),
            "{how}: {}",
            result["total"]
        );
        assert_eq!(result["total"]["errors"], json!({}), "{how}");
    }
}

#[test]
fn the_end_of_standard_input_is_ignored_unless_it_was_asked_for() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    drive(
        &folder,
        &with(
            run_job(&folder),
            json!({"operations": null, "duration_s": 0.3}),
        ),
    )
    .ok();
}

#[test]
fn a_run_that_waits_for_a_lock_ends_promptly_and_the_cut_operation_is_no_error() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let database = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let job = with(
        endless(&folder),
        json!({
            "workload": {"proportions": {"read": null, "update": 1.0}},
            "backend": {"config": {"busy_timeout_ms": 600_000}},
        }),
    );
    let child = start(&folder, &job, &[]);
    wait_for_intervals(&folder);
    send(&child, Signal::SIGTERM);
    let result = partial(&folder, child);
    assert_eq!(result["total"]["count"], json!(0));
    assert_eq!(result["total"]["errors"], json!({}));
}

#[test]
fn a_run_that_is_stopped_while_it_warms_up_has_measured_nothing() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let child = start(
        &folder,
        &with(endless(&folder), json!({"warmup_s": 3600})),
        &[],
    );
    wait_for_intervals(&folder);
    send(&child, Signal::SIGTERM);
    let result = partial(&folder, child);
    assert_eq!(result["total"]["count"], json!(0));
    assert!(result["warmup"]["operations"].as_u64() > Some(100));
}

#[test]
fn loading_that_is_stopped_is_partial() {
    let folder = Folder::new();
    let job = with(
        load_job(&folder),
        json!({
            "workload": {"records": 1_000_000_000},
            "backend": {"config": {"journal_mode": "wal"}},
        }),
    );
    let child = start(&folder, &job, &[]);
    wait_for_intervals(&folder);
    send(&child, Signal::SIGTERM);
    let result = partial(&folder, child);
    assert!(result["total"]["count"].as_u64() >= Some(1000));
}

#[test]
fn a_run_that_waits_for_a_lock_while_it_opens_ends_promptly_too() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let other = rusqlite::Connection::open(folder.path("ycsb.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let config = json!({"busy_timeout_ms": 600_000});
    let job = with(endless(&folder), json!({"backend": {"config": config}}));
    let child = start(&folder, &job, &[]);
    wait_for_intervals(&folder);
    send(&child, Signal::SIGTERM);
    let result = partial(&folder, child);
    assert_eq!(result["total"]["count"], json!(0));
}

#[test]
fn many_clients_each_have_a_connection() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    let job = json!({"clients": 600, "operations": 6000});
    let result = drive(&folder, &with(run_job(&folder), job)).ok();
    assert_eq!(result["total"]["count"], json!(6000));
}

#[test]
fn a_run_that_is_killed_leaves_no_result_not_even_an_earlier_one() {
    let folder = Folder::new();
    drive(&folder, &load_job(&folder)).ok();
    assert!(folder.path("out/result.json").exists());
    let mut child = start(&folder, &endless(&folder), &[]);
    std::thread::sleep(Duration::from_millis(500));
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    assert!(!folder.path("out/result.json").exists());
}
