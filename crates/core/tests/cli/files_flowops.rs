//! What each flowop and attribute does, as results and the files that it leaves say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::getpriority_process;
use serde_json::{Value, json};

use crate::files::{refused, result, workload};
use crate::support::{Folder, PROGRAM, read_json};

/// A run of some flowops on a fileset, and what is to be seen in its result.
struct Case {
    /// The flowop or attribute that it is about.
    of: &'static str,
    /// Lines before the fileset's.
    before: &'static str,
    /// Beside the fileset's name, path, number and size of files.
    fileset: &'static str,
    thread: &'static str,
    flowops: &'static str,
    /// Where in the result, and what stands there.
    seen: &'static [(&'static str, u64)],
}

const PLAIN: Case = Case {
    of: "",
    before: "",
    fileset: ",prealloc",
    thread: "",
    flowops: "",
    seen: &[],
};

const CASES: &[Case] = &[
    Case {
        of: "finishoncount",
        flowops: "flowop read name=x,filesetname=set,iosize=1k,fd=1
                  flowop finishoncount name=f,target=x,value=7",
        seen: &[("/operations/x/count", 7), ("/io/bytes_read", 7168)],
        ..PLAIN
    },
    Case {
        of: "finishonbytes",
        flowops: "flowop read name=x,filesetname=set,iosize=1k,fd=1
                  flowop finishonbytes name=f,target=x,value=4k",
        // More than that: the fifth is the first.
        seen: &[("/operations/x/count", 5)],
        ..PLAIN
    },
    Case {
        of: "listdir",
        flowops: "flowop listdir name=x,filesetname=set
                  flowop finishoncount name=f,target=x,value=3",
        seen: &[("/operations/x/count", 3)],
        ..PLAIN
    },
    Case {
        of: "makedir and removedir",
        fileset: ",prealloc=50,leafdirs=4",
        flowops: "flowop makedir name=x,filesetname=set
                  flowop removedir name=y,filesetname=set,iters=2
                  flowop finishoncount name=f,target=x,value=1",
        seen: &[("/operations/x/count", 1), ("/operations/y/count", 2)],
        ..PLAIN
    },
    Case {
        of: "fsyncset",
        flowops: "flowop openfile name=a,filesetname=set,fd=1
                  flowop openfile name=b,filesetname=set,fd=2
                  flowop fsyncset name=x,filesetname=set
                  flowop finishoncount name=f,target=x,value=1",
        seen: &[("/operations/x/count", 2), ("/io/syncs", 2)],
        ..PLAIN
    },
    Case {
        of: "aiowrite and aiowait",
        flowops: "flowop aiowrite name=x,filesetname=set,fd=1,iosize=1k,random,iters=4
                  flowop aiowait name=y,iters=2
                  flowop closefile name=c,fd=1
                  flowop finishoncount name=f,target=c,value=1",
        seen: &[
            ("/operations/x/count", 4),
            ("/io/bytes_written", 4096),
            ("/operations/y/count", 2),
        ],
        ..PLAIN
    },
    Case {
        of: "srcfd",
        flowops: "flowop openfile name=a,filesetname=set,fd=1
                  flowop openfile name=b,filesetname=set,fd=2
                  flowop writewholefile name=x,fd=1,srcfd=2,iosize=1k
                  flowop finishoncount name=f,target=x,value=1",
        seen: &[("/io/bytes_written", 4096)],
        ..PLAIN
    },
    Case {
        of: "opennext",
        flowops: "flowop openfile name=x,filesetname=set,opennext
                  flowop fsyncset name=y,filesetname=set
                  flowop finishoncount name=f,target=x,value=3",
        // One more is open each time.
        seen: &[("/operations/x/count", 3), ("/operations/y/count", 6)],
        ..PLAIN
    },
    Case {
        of: "testrandvar",
        before: "set $v=randvar(type=uniform,mean=5,min=5)",
        flowops: "flowop testrandvar name=x,value=$v
                  flowop statfile name=y,filesetname=set
                  flowop finishoncount name=f,target=y,value=10",
        seen: &[("/random_variables/x/count", 10)],
        ..PLAIN
    },
];

fn ran(case: &Case, words: &[&str]) -> Value {
    let folder = Folder::new();
    let Case {
        before,
        fileset,
        thread,
        flowops,
        ..
    } = case;
    let content = format!(
        "set mode quit firstdone
         {before}
         define fileset name=set,path=DIR,entries=8,size=4k,dirwidth=4{fileset}
         define process name=p {{ thread name=t{thread} {{ {flowops} }} }}
         run 5"
    );
    let path = workload(&folder, "case.f", &content);
    result(&folder, &[&[path.as_str()], words].concat())
}

#[test]
fn each_flowop_does_what_it_says_as_often_as_it_says() {
    for case in CASES {
        let result = ran(case, &[]);
        for (place, expected) in case.seen {
            assert_eq!(
                result.pointer(place),
                Some(&json!(expected)),
                "{}: {place}",
                case.of
            );
        }
    }
}

#[test]
fn a_limit_without_a_target_holds_its_process_to_the_rate_whatever_its_threads() {
    for (limit, rate) in [("opslimit", 400), ("iopslimit", 400), ("bwlimit", 2)] {
        for threads in [",instances=1", ",instances=8"] {
            let before = format!("eventgen rate={rate}");
            let flowops = format!(
                "flowop read name=x,filesetname=set,iosize=4k,random,fd=1
                 flowop {limit} name=l
                 flowop finishoncount name=f,value=160"
            );
            let case = Case {
                before: before.leak(),
                thread: threads,
                flowops: flowops.leak(),
                ..PLAIN
            };
            let begun = Instant::now();
            let result = ran(&case, &[]);
            // 160 at 400 a second, or 640 KiB at 2 MiB a second; a busy machine takes longer, but not eight times.
            let seconds = result["elapsed_s"].as_f64().unwrap();
            assert!(
                (0.28..1.5).contains(&seconds),
                "{limit}{threads}: {seconds}"
            );
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
    }
}

#[test]
fn files_that_are_to_be_read_only_or_written_only_are_opened_so() {
    for (attribute, flowop) in [("readonly", "write"), ("writeonly", "read")] {
        let folder = Folder::new();
        let content = format!(
            "define fileset name=set,path=DIR,entries=8,size=4k,prealloc,{attribute}
             define process name=p {{ thread name=t {{
               flowop {flowop} name=x,filesetname=set,iosize=1k,fd=1 }} }}
             run 1"
        );
        let path = workload(&folder, "only.f", &content);
        refused(&folder, &[&path], 1, "Bad file descriptor");
    }
}

#[test]
fn an_asynchronous_write_that_fails_is_an_error_and_not_done_as_well() {
    let folder = Folder::new();
    let content = "define fileset name=set,path=DIR,entries=8,size=4k,prealloc,readonly
         define process name=p { thread name=t {
           flowop aiowrite name=x,filesetname=set,iosize=1k,random,fd=1
           flowop aiowait name=w } }
         run 1";
    let path = workload(&folder, "failing.f", content);
    let out = folder.text("out");
    refused(&folder, &[&path, "--out", &out], 1, "Bad file descriptor");
    let result = read_json(&folder.path("out/result.json"));
    assert_eq!(result["operations"]["x"]["count"], json!(0));
    assert!(result["operations"]["x"]["errors"]["refused"].as_u64() > Some(0));
}

#[test]
fn who_is_blocked_goes_on_as_often_as_others_let_it() {
    for (waiting, letting, least) in [
        (
            "semblock name=turn,value=10,highwater=10",
            "sempost name=p,target=turn,value=1,blocking",
            30,
        ),
        ("block name=turn", "wakeup name=w,target=turn", 3),
    ] {
        let folder = Folder::new();
        let content = format!(
            "set mode quit firstdone
             define fileset name=set,path=DIR,entries=8,size=4k,dirwidth=4,prealloc
             define process name=p {{
               thread name=a {{ flowop read name=x,filesetname=set,iosize=1k,fd=1
                                flowop {letting} }}
               thread name=b {{ flowop {waiting}
                                flowop statfile name=y,filesetname=set
                                flowop finishoncount name=f,target=y,value=3 }} }}
             run 5"
        );
        let path = workload(&folder, "blocked.f", &content);
        let ran = result(&folder, &[&path]);
        assert_eq!(ran["operations"]["y"]["count"], json!(3), "{waiting}");
        let reads = ran["operations"]["x"]["count"].as_u64().unwrap();
        assert!(reads >= least, "{waiting}: {reads} reads");
        if waiting.starts_with("sem") {
            // The poster waits where it is ahead: by ten posts, and those of a turn.
            assert!(reads <= 60, "{reads} reads");
        }
    }
}

#[test]
fn random_places_are_within_the_working_set() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "set.f",
        "set mode quit firstdone
         define fileset name=set,path=DIR,entries=1,size=64k,dirwidth=4
         define process name=p { thread name=t {
           flowop createfile name=c,filesetname=set,fd=1
           flowop write name=x,filesetname=set,fd=1,iosize=1k,random,workingset=8k,iters=200
           flowop closefile name=d,fd=1
           flowop finishoncount name=f,target=d,value=1 } }
         run 5",
    );
    result(&folder, &[&path]);
    assert_eq!(sizes(&folder), [8192]);
}

#[test]
fn random_places_are_each_threads_own_and_every_processs_the_same_with_compat() {
    let folder = Folder::new();
    let path = workload(
        &folder,
        "alike.f",
        // Each makes one, once.
        "define fileset name=set,path=DIR,entries=2,size=1m,dirwidth=4
         define process name=p,instances=2 { thread name=t {
           flowop createfile name=c,filesetname=set,fd=1
           flowop write name=x,filesetname=set,fd=1,iosize=1k,random,iters=3
           flowop closefile name=d,fd=1
           flowop block name=b } }
         run 60",
    );
    let lengths = |words: &[&str]| {
        result(
            &folder,
            &[&[path.as_str(), "--seconds", "0.5"], words].concat(),
        );
        sizes(&folder)
    };
    let alike = lengths(&["--compat"]);
    assert_eq!(alike[0], alike[1]);
    let own = lengths(&[]);
    assert_ne!(own[0], own[1]);
}

#[test]
fn an_indexed_flowop_takes_the_file_of_that_number() {
    let gone = |number: u32, seed: &str| {
        let folder = Folder::new();
        let content = format!(
            "set mode quit firstdone
             define fileset name=set,path=DIR,entries=8,size=4k,dirwidth=20,dirgamma=0,prealloc
             define process name=p {{ thread name=t {{
               flowop deletefile name=x,filesetname=set,indexed={number}
               flowop finishoncount name=f,target=x,value=1 }} }}
             run 5"
        );
        let path = workload(&folder, "indexed.f", &content);
        result(&folder, &[&path, "--seed", seed]);
        let there = names(&folder);
        (1..=8)
            .filter(|file| !there.contains(&format!("{file:08}")))
            .collect::<Vec<_>>()
    };
    let (first, second) = (gone(2, "1"), gone(5, "1"));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first, gone(2, "9"), "whatever the seed");
    assert_eq!(second[0] - first[0], 3);
}

/// A file that a thread of a run has open.
#[derive(Debug)]
struct Open {
    name: String,
    flags: u32,
    nice: i32,
}

/// What threads have open below the folder's data while they wait; as many as are `expected`.
fn opened(folder: &Folder, content: &str, words: &[&str], expected: usize) -> Vec<Open> {
    let path = workload(folder, "waiting.f", content);
    let mut child = Command::new(PROGRAM)
        .args([&["files", path.as_str()], words].concat())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let data = folder.path("data");
    let mut found = Vec::new();
    for _ in 0..500 {
        std::thread::sleep(Duration::from_millis(10));
        found = tasks(child.id())
            .iter()
            .flat_map(|task| open_below(task, &data))
            .collect();
        if found.len() >= expected {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.len(), expected, "{found:?}");
    found
}

fn tasks(pid: u32) -> Vec<PathBuf> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Each thread has a table of open files of its own; it may end while it is looked at.
fn open_below(task: &Path, data: &Path) -> Vec<Open> {
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    let nice = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(16)?.parse().ok())
        .unwrap_or(0);
    let Ok(handles) = fs::read_dir(task.join("fd")) else {
        return Vec::new();
    };
    handles
        .flatten()
        .filter_map(|handle| {
            let file = fs::read_link(handle.path()).ok()?;
            if !file.starts_with(data) || !file.is_file() {
                return None;
            }
            let told = fs::read_to_string(task.join("fdinfo").join(handle.file_name())).ok()?;
            let flags = told.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            // A file that is made before the run is only written.
            if flags & OFlags::RWMODE.bits() == OFlags::WRONLY.bits() {
                return None;
            }
            let name = file.file_name()?.to_str()?.to_owned();
            Some(Open { name, flags, nice })
        })
        .collect()
}

fn waiting(instances: &str, nice: &str, attributes: &str) -> String {
    format!(
        "define fileset name=set,path=DIR,entries=50,size=4k,dirwidth=100,dirgamma=0,prealloc
         define process name=p{nice} {{ thread name=t{instances} {{
           flowop openfile name=o,filesetname=set,fd=1{attributes}
           flowop delay name=d,value=60 }} }}
         run 60"
    )
}

#[test]
fn files_are_opened_and_threads_are_scheduled_as_attributes_say() {
    let folder = Folder::new();
    let nice = getpriority_process(None).unwrap();
    for (attribute, flag) in [
        (",dsync", OFlags::SYNC.bits()),
        (",directio", OFlags::DIRECT.bits()),
    ] {
        let open = &opened(&folder, &waiting("", ",nice=3", attribute), &[], 1)[0];
        assert_eq!(open.flags & flag, flag, "{attribute}: {open:?}");
        assert_eq!(open.nice, nice + 3);
    }
    let open = &opened(&folder, &waiting("", "", ""), &[], 1)[0];
    assert_eq!(
        open.flags & (OFlags::SYNC.bits() | OFlags::DIRECT.bits()),
        0,
        "{open:?}"
    );
    assert_eq!(open.nice, nice);
}

#[test]
fn threads_draw_files_of_their_own_and_take_them_in_turn_where_filebench_does() {
    let folder = Folder::new();
    let names = |words: &[&str]| {
        let text = waiting(",instances=4", "", "");
        let mut names: Vec<String> = opened(&folder, &text, words, 4)
            .into_iter()
            .map(|open| open.name)
            .collect();
        names.sort();
        names
    };
    let in_turn = names(&["--compat"]);
    let numbers: Vec<u32> = in_turn.iter().map(|name| name.parse().unwrap()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
    let drawn = names(&["--seed", "1"]);
    assert_ne!(drawn, in_turn);
    assert_ne!(drawn, names(&["--seed", "2"]));
    assert_ne!(drawn[0], drawn[3], "not all the same one");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn sizes(folder: &Folder) -> Vec<u64> {
    files_below(&folder.path("data"))
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .collect()
}

fn names(folder: &Folder) -> Vec<String> {
    files_below(&folder.path("data"))
        .iter()
        .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}
