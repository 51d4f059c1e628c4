//! Workloads in filebench's language, run by the program on a real folder.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use dyno_servers::{in_mounts, may_mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Folder, PROGRAM, complaints, read_json, schema, schema_folder};

pub fn files(folder: &Folder, words: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("files")
        .args(words)
        .current_dir(folder.path(""))
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Writes a workload whose `DIR` is the folder's; gives its path.
pub fn workload(folder: &Folder, name: &str, content: &str) -> String {
    let path = folder.path(name);
    fs::write(&path, content.replace("DIR", &folder.text("data"))).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a workload to its end; gives its result, which must be as the schema says.
pub fn result(folder: &Folder, words: &[&str]) -> Value {
    let out = folder.text("out");
    let ran = files(folder, &[words, &["--out", &out]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let result = read_json(&folder.path("out/result.json"));
    let wrong = complaints(&schema("files-result"), &result);
    assert!(wrong.is_empty(), "{wrong:?}");
    result
}

pub fn refused(folder: &Folder, words: &[&str], status: i32, expected: &str) {
    let ran = files(folder, words);
    let message = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(status), "{message}");
    assert!(message.contains(expected), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn every_built_in_workload_runs_small_and_its_result_is_as_the_schema_says() {
    let folder = Folder::new();
    let data = format!("dir={}", folder.text("data"));
    let tiny = [
        ("fileserver", "files=60 homesize=20k nthreads=4"),
        (
            "oltp",
            "tablesize=256k logsize=512k nshadows=5 readerwork=1000 logevery=20 logahead=20 writeevery=20 writeahead=20",
        ),
        (
            "oltp-study",
            "tablesize=256k logsize=512k nshadows=5 readerwork=1000 logevery=20 logahead=20 writeevery=20 writeahead=20",
        ),
        ("varmail", "files=60 nthreads=4"),
        (
            "videoserver",
            "videosize=512k nactive=3 npassive=4 nthreads=4 pause=0",
        ),
        ("videoserver-study", "videosize=512k nthreads=4 pause=0"),
        ("webproxy", "files=60 nthreads=4"),
        ("webserver", "files=60 nthreads=4"),
        (
            "webserver-study",
            "files=6 meansize=200000 minsize=50000 maxsize=400000",
        ),
    ];
    let listed = text(&files(&folder, &["--list"]).stdout);
    assert_eq!(listed.lines().count(), tiny.len(), "{listed}");
    let interval = schema("interval");
    for (name, values) in tiny {
        let mut words = vec![
            name,
            "--seconds",
            "0.2",
            "--interval-ms",
            "50",
            "--set",
            &data,
        ];
        words.extend(values.split(' ').flat_map(|value| ["--set", value]));
        let result = result(&folder, &words);
        assert_eq!(result["ended_by"], json!("duration"), "{name}");
        let total = result["total"]["count"].as_u64().unwrap();
        assert!(total > 0, "{name} did nothing");
        let by_operation: u64 = result["operations"]
            .as_object()
            .unwrap()
            .values()
            .map(|each| each["count"].as_u64().unwrap())
            .sum();
        assert_eq!(by_operation, total, "{name}");
        let mut of_intervals = 0;
        for line in fs::read_to_string(folder.path("out/intervals.jsonl"))
            .unwrap()
            .lines()
        {
            let line: Value = serde_json::from_str(line).unwrap();
            let wrong = complaints(&interval, &line);
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            of_intervals += line["count"].as_u64().unwrap();
        }
        assert_eq!(
            of_intervals, total,
            "{name}: every operation is in an interval"
        );
    }
}

#[test]
fn only_reads_that_gave_data_are_counted_and_no_implicit_open_is() {
    let folder = Folder::new();
    // 10,000 bytes are three reads of 4096, 4096 and 1808; the fourth finds the end and begins anew.
    let path = workload(
        &folder,
        "read.f",
        "set mode quit firstdone
         define fileset name=one,path=DIR,entries=1,size=10000,prealloc
         define process name=p { thread name=t {
           flowop read name=r,filesetname=one,iosize=4k,fd=1
           flowop finishoncount name=f,value=300,target=r } }
         run",
    );
    let result = result(&folder, &[&path]);
    assert_eq!(result["operations"]["r"]["count"], json!(300));
    assert_eq!(result["io"]["bytes_read"], json!(1_000_000));
    assert_eq!(result["io"]["reads"], json!(300));
    assert_eq!(result["total"]["count"], json!(300));
    assert_eq!(result["ended_by"], json!("operations"));
    assert!(
        result["elapsed_s"].as_f64().unwrap() < 0.5,
        "not rounded up to whole seconds"
    );
}

#[test]
fn a_rate_of_events_is_exact_and_blocked_threads_end_with_the_time() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "rate.f",
        "eventgen rate=200
         define fileset name=one,path=DIR,entries=4,size=4k,prealloc
         define process name=p { thread name=t,instances=5 {
           flowop eventlimit name=limit
           flowop read name=r,filesetname=one,iosize=4k,random,fd=1 }
         thread name=sleeper { flowop delay name=d,value=3600 }
         thread name=blocked { flowop block name=b }
         thread name=starved { flowop semblock name=s,value=5 } }
         run",
    );
    let begun = Instant::now();
    let result = result(&folder, &[&path, "--seconds", "1"]);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let reads = result["operations"]["r"]["count"].as_u64().unwrap();
    assert!((190..=201).contains(&reads), "{reads}");
    assert_eq!(result["elapsed_s"], json!(1.0));
}

#[test]
fn alldone_ends_when_every_thread_has_found_no_file_and_each_file_was_made_once() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "make.f",
        "set mode quit alldone
         define fileset name=new,path=DIR,entries=500,size=3000,dirwidth=20
         define process name=p { thread name=t,instances=4 {
           flowop createfile name=c,filesetname=new,fd=1
           flowop writewholefile name=w,fd=1,iosize=1k
           flowop closefile name=x,fd=1 } }
         run",
    );
    let result = result(&folder, &[&path]);
    assert_eq!(result["operations"]["c"]["count"], json!(500));
    // Exactly the planned sizes: the last piece is 928 bytes, not 1024.
    assert_eq!(result["io"]["bytes_written"], json!(1_500_000));
    assert_eq!(result["ended_by"], json!("operations"));
    // In the other mode it is a failure that says so.
    refused(
        &folder,
        &[&timeout_of(&folder, &path)],
        1,
        "found no file of fileset new",
    );
}

fn timeout_of(folder: &Folder, path: &str) -> String {
    let text = fs::read_to_string(path).unwrap();
    workload(
        folder,
        "timeout.f",
        &text.replace("set mode quit alldone", ""),
    )
}

#[test]
fn filesets_made_in_a_phase_of_their_own_are_found_by_the_next_and_only_with_the_same_seed() {
    let folder = Folder::new();
    let data = format!("dir={}", folder.text("data"));
    let words = [
        "webserver",
        "--set",
        &data,
        "--set",
        "files=50",
        "--set",
        "nthreads=2",
        "--seconds",
        "0.1",
    ];
    let with = |more: &[&'static str]| [&words[..], more].concat();
    let created = result(&folder, &with(&["--phase", "create", "--seed", "7"]));
    assert_eq!(created["creation"]["files"], json!(51));
    assert_eq!(created["total"]["count"], json!(0));
    let ran = result(&folder, &with(&["--phase", "run", "--seed", "7"]));
    assert_eq!(ran["creation"], json!(null));
    assert!(ran["total"]["count"].as_u64().unwrap() > 0);
    refused(
        &folder,
        &with(&["--phase", "run", "--seed", "8"]),
        1,
        "--phase create",
    );
}

#[test]
fn data_that_are_not_what_was_written_fail_the_run() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "verify.f",
        "define fileset name=set,path=DIR,entries=20,size=10000,dirwidth=100,prealloc=50
         define process name=p { thread name=t,instances=3 {
           flowop openfile name=o,filesetname=set,fd=1
           flowop appendfilerand name=a,fd=1,iosize=3000
           flowop write name=w,fd=1,iosize=700,random
           flowop readwholefile name=r,fd=1,iosize=4k
           flowop closefile name=c,fd=1 } }
         run",
    );
    let good = result(&folder, &[&path, "--verify", "--seconds", "0.3"]);
    assert!(good["verified"]["reads"].as_u64().unwrap() > 10);
    assert_eq!(
        good["verified"]["wrong"],
        json!({"misplaced": 0, "stale": 0, "zeros": 0, "damaged": 0})
    );
    let words = [path.as_str(), "--verify", "--seconds", "1"];
    result(&folder, &[&words[..], &["--phase", "create"]].concat());
    for directory in fs::read_dir(folder.path("data/set")).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let mut bytes = fs::read(&file).unwrap();
            bytes[5000] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
    }
    refused(
        &folder,
        &[&words[..], &["--phase", "run"]].concat(),
        1,
        "is damaged at",
    );
}

#[test]
fn a_disk_that_fills_up_ends_a_run_with_what_was_done_before() {
    if !may_mount() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    let path = workload(
        &folder,
        "full.f",
        "define fileset name=set,path=DIR,entries=10,size=4k,dirwidth=20,prealloc
         define process name=p { thread name=t,instances=2 {
           flowop openfile name=o,filesetname=set,fd=1
           flowop appendfile name=a,fd=1,iosize=64k
           flowop closefile name=c,fd=1 } }
         run",
    );
    let mount = format!("mount -t tmpfs -o size=1m none {}", folder.text("data"));
    let ran = in_mounts(&mount)
        .args([PROGRAM, "files", &path, "--seconds", "60", "--out"])
        .arg(folder.path("out"))
        .output()
        .unwrap();
    let message = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{message}");
    assert!(
        message.contains("flowop a: writing 65536 bytes"),
        "{message}"
    );
    assert!(message.contains("No space left on device"), "{message}");
    let result = read_json(&folder.path("out/result.json"));
    assert_eq!(result["outcome"], json!("failed"));
    assert_eq!(result["error"]["kind"], json!("disk_full"));
    let done = result["operations"]["a"]["count"].as_u64().unwrap();
    assert!(
        (10..16).contains(&done),
        "{done} appends of 64 KiB to 1 MiB"
    );
}

#[test]
fn thousands_of_threads_start_and_end_in_seconds() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "many.f",
        "define fileset name=set,path=DIR,entries=10,size=4k,dirwidth=20,prealloc
         define process name=p,instances=100 { thread name=t,instances=20 {
           flowop openfile name=o,filesetname=set,fd=1
           flowop read name=r,fd=1,iosize=4k
           flowop closefile name=c,fd=1
           flowop delay name=d,value=1 } }
         run",
    );
    let begun = Instant::now();
    let result = result(&folder, &[&path, "--seconds", "0.5"]);
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert_eq!(result["clients"], json!(2000));
    assert_eq!(result["operations"]["r"]["count"], json!(2000));
}

#[test]
fn what_is_printed_is_as_filebenchs_users_parse_it() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "two.f",
        "enable lathist
         define fileset name=set,path=DIR,entries=10,size=4k,dirwidth=20,prealloc
         define process name=p { thread name=t {
           flowop openfile name=first,filesetname=set,fd=1
           flowop closefile name=second,fd=1 } }
         run",
    );
    let printed = text(&files(&folder, &[&path, "--seconds", "0.2"]).stdout);
    let lines: Vec<&str> = printed.lines().collect();
    let from = lines
        .iter()
        .position(|line| line.ends_with(": Per-Operation Breakdown"))
        .unwrap();
    assert!(
        lines[from + 1].starts_with("second               "),
        "the last defined comes first: {printed}"
    );
    assert!(lines[from + 2].starts_with("first                "));
    let words: Vec<&str> = lines[from + 2].split_whitespace().collect();
    assert!(words[1].ends_with("ops") && words[2].ends_with("ops/s") && words[3].ends_with("mb/s"));
    assert!(words[4].ends_with("ms/op") && words[5].starts_with('[') && words[6] == "-");
    assert_eq!(words.len(), 8 + 64, "with 64 counts of latencies");
    let summary = lines[from + 3].split_once(": ").unwrap().1;
    let words: Vec<&str> = summary.split_whitespace().collect();
    assert_eq!(
        (words[0], words[1], words[3], words[5], words[7]),
        ("IO", "Summary:", "ops", "ops/s", "rd/wr")
    );
    assert!(
        words[8].ends_with("mb/s") && words[9].ends_with("ms/op"),
        "{summary}"
    );
}

#[test]
fn what_is_wrong_is_told_in_a_line_before_anything_is_made() {
    let folder = Folder::new();
    let run = "define fileset name=set,path=DIR,entries=10,size=4k,dirwidth=20,prealloc
         define process name=p { thread name=t { flowop openfile name=o,filesetname=set,fd=1
           flowop closefile name=c,fd=1 } }\n";
    let shell = workload(
        &folder,
        "shell.f",
        &format!("{run}system \"touch DIR-touched\"\nrun 1"),
    );
    refused(&folder, &[&shell], 2, "--allow-system");
    assert!(!folder.path("data").exists() && !folder.path("data-touched").exists());
    result(&folder, &[&shell, "--allow-system", "--seconds", "0.1"]);
    assert!(folder.path("data-touched").exists());
    let failing = workload(
        &folder,
        "failing.f",
        &format!("{run}system \"exit 3\"\nrun 1"),
    );
    refused(&folder, &[&failing, "--allow-system"], 1, "exit 3");
    let unknown = workload(
        &folder,
        "unknown.f",
        &run.replace("filesetname=set", "filesetname=sets"),
    );
    refused(&folder, &[&unknown], 2, "unknown.f:2:");
    refused(&folder, &[&shell, "--set", "nosuch=1"], 2, "nosuch");
    refused(&folder, &["nosuch"], 2, "expected one of fileserver");
    refused(&folder, &["no/such.f"], 2, "cannot be read");
    let home = run
        .replace("path=DIR", "path=/")
        .replace("name=set", "name=etc");
    refused(
        &folder,
        &[&workload(&folder, "home.f", &home)],
        1,
        "no fileset is made in place of it",
    );
    let huge = run
        .replace("size=4k", "size=900t")
        .replace("entries=10", "entries=1");
    refused(
        &folder,
        &[&workload(&folder, "huge.f", &huge)],
        1,
        "the filesets take",
    );
    let kept = huge.replace("prealloc", "prealloc,reuse");
    refused(
        &folder,
        &[&workload(&folder, "kept.f", &kept)],
        1,
        "the filesets take",
    );
    let greedy = run.replace("thread name=t", "thread name=t,memsize=900t");
    refused(
        &folder,
        &[&workload(&folder, "greedy.f", &greedy)],
        1,
        "memsize",
    );
}

#[test]
fn a_signal_ends_it_at_once_with_what_was_measured() {
    let folder = Folder::new();
    let data = format!("dir={}", folder.text("data"));
    let mut child = Command::new(PROGRAM)
        .args([
            "files",
            "oltp",
            "--set",
            &data,
            "--set",
            "tablesize=256k",
            "--set",
            "logsize=512k",
        ])
        .args([
            "--set",
            "nshadows=20",
            "--progress",
            "--interval-ms",
            "100",
            "--out",
            &folder.text("out"),
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let measured = || {
        fs::metadata(folder.path("out/latency.hlog")).is_ok() && folder.path("data/redo").exists()
    };
    let begun = Instant::now();
    while !measured() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let asked = Instant::now();
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(asked.elapsed() < Duration::from_secs(3));
    let result = read_json(&folder.path("out/result.json"));
    assert_eq!(result["outcome"], json!("partial"));
    assert!(result["total"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn committed_results_are_as_the_schema_says() {
    let schema = schema("files-result");
    let mut seen = 0;
    for entry in fs::read_dir(schema_folder().join("golden")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("files-result-") {
            let wrong = complaints(&schema, &read_json(&path));
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen}");
}
