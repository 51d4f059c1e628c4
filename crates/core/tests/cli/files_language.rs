//! What the language of workload files allows, and what is refused of it, by the program.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::{Value, json};

use crate::files::{files, refused, result, text, workload};
use crate::support::{Folder, PROGRAM};

const SET: &str = "define fileset name=s,path=DIR,entries=4,size=4k,dirwidth=10,prealloc\n";
const PROCESS: &str =
    "define process name=p { thread name=t { flowop statfile name=x,filesetname=s } }\n";

#[test]
fn where_no_thread_has_an_instance_it_is_an_error_with_its_place_and_no_endless_wait() {
    let folder = Folder::new();
    let none = workload(
        &folder,
        "none.f",
        &format!(
            "set $n=1\n{SET}define process name=p,instances=$n {{ thread name=t {{ flowop statfile name=x,filesetname=s }} }}\nrun 1"
        ),
    );
    for words in [vec![], vec!["--check"], vec!["--explain"]] {
        let words = [&[none.as_str(), "--set", "n=0"], words.as_slice()].concat();
        refused(&folder, &words, 2, "none.f:3:1: no thread has an instance");
    }
    assert!(!folder.path("data").exists());
}

#[test]
fn a_relative_path_is_below_the_folder_that_it_is_started_in() {
    let folder = Folder::new();
    let relative = workload(
        &folder,
        "relative.f",
        &format!("{}{PROCESS}run", SET.replace("DIR", "below/here")),
    );
    let ran = result(&folder, &[&relative, "--seconds", "0.2"]);
    assert!(ran["operations"]["x"]["count"].as_u64() > Some(0));
    assert!(folder.path("below/here/s/00000001").is_dir());
}

#[test]
fn of_two_filesets_with_one_name_both_are_made_and_the_later_is_used() {
    let folder = Folder::new();
    let two = workload(
        &folder,
        "two.f",
        &format!(
            "{}{}{PROCESS}run",
            SET.replace("DIR", "first"),
            SET.replace("DIR", "second")
                .replace("entries=4", "entries=5")
        ),
    );
    let checked = files(&folder, &[&two, "--check"]);
    assert_eq!(checked.status.code(), Some(0));
    assert!(text(&checked.stdout).contains("it is hidden by this one"));
    let ran = result(&folder, &[&two, "--seconds", "0.2"]);
    assert_eq!(ran["creation"]["files"], json!(9));
    assert!(folder.path("first/s").is_dir() && folder.path("second/s").is_dir());
    let used =
        "define process name=p { thread name=t { flowop writewholefile name=x,filesetname=s,fd=1
        flowop fsync name=y,fd=1 flowop closefile name=z,fd=1 } }\n";
    let sizes = workload(
        &folder,
        "sizes.f",
        &format!(
            "{}{}{used}run",
            SET.replace("DIR", "first"),
            SET.replace("DIR", "second").replace("4k", "8k")
        ),
    );
    let ran = result(&folder, &[&sizes, "--seconds", "0.2"]);
    let of = &ran["operations"]["x"];
    assert_eq!(
        of["bytes"].as_u64(),
        of["count"].as_u64().map(|count| count * 8192)
    );
}

#[test]
fn a_filesets_name_may_have_a_slash_and_no_way_up() {
    let folder = Folder::new();
    let slash = SET.replace("name=s", "name=a/b");
    let process = PROCESS.replace("filesetname=s", "filesetname=a/b");
    let path = workload(&folder, "slash.f", &format!("{slash}{process}run"));
    result(&folder, &[&path, "--seconds", "0.2"]);
    assert!(folder.path("data/a/b/00000001").is_dir());
    let up = workload(
        &folder,
        "up.f",
        &format!("{}{process}run", SET.replace("name=s", "name=a/../b")),
    );
    refused(&folder, &[&up], 2, "up.f:1:21: ");
}

#[test]
fn what_only_a_second_turn_of_a_thread_would_meet_keeps_no_run_from_its_time() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "once.f",
        &format!(
            "{SET}define process name=p {{ thread name=t {{ flowop openfile name=o,filesetname=s,fd=1
             flowop read name=r,fd=1,iosize=4k,iters=100
             flowop delay name=w,value=100 }} }}
             run"
        ),
    );
    let ran = result(&folder, &[&path, "--seconds", "0.3"]);
    assert_eq!(ran["operations"]["r"]["count"], json!(100));
}

#[test]
fn a_flowops_name_may_be_any_text_and_stands_escaped_in_the_log_of_histograms() {
    let folder = Folder::new();
    let process = PROCESS.replace("name=x", "name=\"50% of my, stats\"");
    let path = workload(&folder, "blank.f", &format!("{SET}{process}run"));
    let ran = result(&folder, &[&path, "--seconds", "0.2"]);
    assert!(ran["operations"]["50% of my, stats"]["count"].as_u64() > Some(0));
    let log = fs::read(folder.path("out/latency.hlog")).unwrap();
    let tags: Vec<String> = IntervalLogIterator::new(&log)
        .filter_map(|entry| match entry {
            Ok(LogEntry::Interval(interval)) => interval.tag().map(|tag| tag.as_str().to_owned()),
            _ => None,
        })
        .collect();
    assert!(!tags.is_empty());
    assert!(
        tags.iter().all(|tag| tag == "50%25%20of%20my%2C%20stats"),
        "{tags:?}"
    );
}

#[test]
fn a_workload_beside_the_file_is_loaded_before_a_built_in_one_of_its_name() {
    let folder = Folder::new();
    workload(&folder, "webserver.f", &format!("{SET}{PROCESS}"));
    workload(
        &folder,
        "more.f",
        "define process name=q { thread name=t { flowop listdir name=more,filesetname=s } }\nrun 100",
    );
    let main = workload(&folder, "main.f", "load webserver\nload more\nrun 0.2");
    let ran = result(&folder, &[&main]);
    let names: Vec<&String> = ran["operations"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["more", "x"]);
    assert_eq!(ran["workload"]["seconds"], json!(0.2));
}

#[test]
fn what_is_set_after_a_built_in_workload_was_loaded_holds_for_it() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "classic.f",
        "load varmail\nset $dir=DIR\nset $nthreads=2\nset $files=30\nrun 0.3",
    );
    let ran = result(&folder, &[&path]);
    assert_eq!(ran["clients"], json!(2));
    assert_eq!(ran["workload"]["seconds"], json!(0.3));
    assert!(folder.path("data").is_dir());
    refused(
        &folder,
        &[&path, "--set", "nosuchvar=1"],
        2,
        "have no variable $nosuchvar, expected one of: appendsize, dir, ",
    );
    let more = workload(
        &folder,
        "more.f",
        "load varmail\nset $dir=DIR\nset $files=30",
    );
    let ran = result(&folder, &[&more, "--seconds", "0.2", "--set", "nthreads=3"]);
    assert_eq!(ran["clients"], json!(3));
}

#[test]
fn a_value_from_outside_reaches_a_variable_that_only_a_loaded_workload_uses() {
    let folder = Folder::new();
    workload(
        &folder,
        "part.f",
        &format!(
            "{SET}{}",
            PROCESS.replace("name=t", "name=t,instances=$many")
        ),
    );
    let main = workload(&folder, "main.f", "load part\nrun 0.2");
    let ran = result(&folder, &[&main, "--set", "many=3"]);
    assert_eq!(ran["clients"], json!(3));
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn each_round_of_an_older_file_runs_for_as_long_as_it_sleeps() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "rounds.f",
        &format!(
            "{SET}create filesets
             foreach $n in 1, 4 {{
             define process name=p$n, instances=$n {{ thread name=t {{ flowop statfile name=x$n,filesetname=s }} }}
             create processes
             stats clear
             sleep 0.5
             stats snap
             shutdown processes
             }}"
        ),
    );
    let out = folder.text("out");
    let begun = Instant::now();
    let ran = files(&folder, &[&path, "--out", &out]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert!(begun.elapsed() < Duration::from_secs(10));
    let printed = text(&ran.stdout);
    for line in [": Round 1\n", ": Round 2\n", ": All 2 rounds:\n"] {
        assert!(printed.contains(line), "{printed}");
    }
    assert_eq!(printed.matches("IO Summary").count(), 3, "{printed}");
    let result = result(&folder, &[&path]);
    assert!((seconds(&result["elapsed_s"]) - 1.0).abs() < 1e-6);
    assert_eq!(result["workload"]["seconds"], json!(1.0));
    let explained = text(&files(&folder, &[&path, "--explain"]).stdout);
    assert!(
        explained.contains("2 rounds, one after another"),
        "{explained}"
    );
}

#[test]
fn a_rate_that_is_changed_between_sleeps_holds_from_then_on() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "rates.f",
        &format!(
            "{SET}define process name=p {{ thread name=t {{ flowop statfile name=x,filesetname=s
               flowop eventlimit name=l }} }}
             create processes
             eventgen rate=100
             stats clear
             sleep 1
             stats snap
             eventgen rate=400
             sleep 1
             shutdown processes"
        ),
    );
    let ran = result(&folder, &[&path]);
    let count = seconds(&ran["operations"]["x"]["count"]);
    assert!((count - 500.0).abs() < 25.0, "{count}");
    assert!((seconds(&ran["elapsed_s"]) - 2.0).abs() < 1e-6);
}

#[test]
fn more_threads_than_the_kernel_gives_memory_maps_for_are_refused_in_a_line() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "crowd.f",
        &format!(
            "{SET}define process name=p,instances=400000 {{ thread name=t {{ flowop statfile name=x,filesetname=s }} }}\nrun 1"
        ),
    );
    refused(&folder, &[&path], 1, "vm.max_map_count");
}

#[test]
fn a_device_that_is_not_there_is_not_made_as_a_folder() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "slip.f",
        "define file name=dyno-no-device,path=/dev,size=4k
         define process name=p { thread name=t { flowop read name=x,filesetname=dyno-no-device,iosize=1k } }
         run 1",
    );
    refused(&folder, &[&path], 2, "there is no such device");
    assert!(!std::path::Path::new("/dev/dyno-no-device").exists());
}

#[test]
fn a_composite_may_be_as_deep_as_is_said() {
    let folder = Folder::new();
    let deep = |levels: usize| {
        let outer: String = (2..=levels)
            .map(|level| {
                format!(
                    "define flowop name=c{level} {{ flowop c{} name=y }}\n",
                    level - 1
                )
            })
            .collect();
        format!(
            "{SET}define flowop name=c1 {{ flowop statfile name=x,filesetname=s }}\n{outer}\
             define process name=p {{ thread name=t {{ flowop c{levels} name=z }} }}\nrun"
        )
    };
    let path = workload(&folder, "deep.f", &deep(64));
    result(&folder, &[&path, "--seconds", "0.2"]);
    let path = workload(&folder, "deeper.f", &deep(65));
    refused(&folder, &[&path], 2, "more than 64 deep");
}

#[test]
fn counts_for_which_there_is_no_memory_are_refused_in_a_line() {
    let folder = Folder::new();
    let many = SET.replace("entries=4", "entries=190m").replace("4k", "1");
    let path = workload(&folder, "many.f", &format!("{many}{PROCESS}run"));
    for what in ["--check", "--explain"] {
        let ran = Command::new("sh")
            .args([
                "-c",
                "ulimit -v 2000000; exec \"$0\" files \"$1\" \"$2\"",
                PROGRAM,
                &path,
                what,
            ])
            .output()
            .unwrap();
        let message = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("there is no memory"), "{message}");
    }
}

#[test]
fn a_number_below_0_ends_it_with_status_2_before_anything_is_made() {
    let folder = Folder::new();
    let slow = workload(
        &folder,
        "slow.f",
        &format!("{SET}{PROCESS}foreach $rate in 5, -1 {{ eventgen rate=$rate }}\nrun 1"),
    );
    let set = workload(
        &folder,
        "set.f",
        &format!(
            "set $n=4\n{}{PROCESS}run 1",
            SET.replace("path=DIR,entries=4", "entries=$n,path=DIR")
        ),
    );
    for words in [vec![], vec!["--check"], vec!["--explain"], vec!["--compat"]] {
        // Only the second of the values is wrong.
        let slow = [&[slow.as_str()], words.as_slice()].concat();
        refused(
            &folder,
            &slow,
            2,
            "slow.f:3:40: rate is $rate (`-1`), expected",
        );
        let set = [&[set.as_str(), "--set", "n=-4"], words.as_slice()].concat();
        refused(
            &folder,
            &set,
            2,
            "set.f:2:31: entries is $n (`-4`), expected",
        );
    }
    assert!(!folder.path("data").exists());
}
