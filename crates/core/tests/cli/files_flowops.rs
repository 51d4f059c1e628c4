//! What each flowop and attribute does, as results and the files that it leaves say.

use std::time::Duration;
use std::time::Instant;

use serde_json::{Value, json};

use crate::files::{refused, result, workload};
use crate::support::{Folder, read_json};

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
