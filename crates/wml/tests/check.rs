//! What is said of a workload before it runs.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

use dyno_wml::{Finding, Severity, Variables, check, parse};

const FILESET: &str = "define fileset name=set,path=/tmp,entries=10,dirwidth=5,size=16k\n";

const PROCESS: &str =
    "define process name=p { thread name=t { flowop statfile name=s,filesetname=set } }\n";

fn findings_of(text: &str) -> Vec<Finding> {
    let script = parse(text, "test.f").unwrap();
    check(
        &script,
        Variables::new("test.f", false),
        &|name| match name {
            "other" => Some(parse(&format!("{FILESET}set $loaded=1"), "other.f")),
            "self" => Some(parse("load self", "self.f")),
            "broken" => Some(parse("set", "broken.f")),
            _ => None,
        },
    )
}

/// The findings on a thread's flowops, in a workload that is fine without them.
fn findings(flowops: &str) -> Vec<String> {
    let text = format!(
        "eventgen rate=10\n{FILESET}define process name=p {{ thread name=t,memsize=1m {{\n{flowops}\n}} }}\nrun 5\n"
    );
    findings_of(&text).iter().map(ToString::to_string).collect()
}

fn one(found: Vec<String>, expected: &str) {
    assert_eq!(found.len(), 1, "{expected}: {found:#?}");
    assert!(
        found[0].contains(expected),
        "{}\nis not\n{expected}",
        found[0]
    );
}

fn of_text(text: &str, expected: &str) {
    one(
        findings_of(text).iter().map(ToString::to_string).collect(),
        expected,
    );
}

#[test]
fn a_workload_that_is_fine_has_no_findings() {
    let fine = "flowop openfile name=o,filesetname=set,fd=1
        flowop read name=r,fd=1,iosize=4k,random
        flowop iopslimit name=l,target=r
        flowop closefile name=c,fd=1
        flowop appendfilerand name=a,filesetname=set,iosize=4k,fd=2
        flowop statfile name=s,filesetname=set";
    assert_eq!(findings(fine), Vec::<String>::new());
}

#[test]
fn a_name_that_nobody_defines_is_an_error() {
    for (flowops, expected) in [
        (
            "flowop statfile name=a,filesetname=sett",
            "test.f:4:36: error: statfile `a`: there is no fileset `sett`, expected set",
        ),
        (
            "flowop rread name=a",
            "test.f:4:8: error: there is no flowop `rread`, expected one of openfile, createfile",
        ),
        (
            "flowop sempost name=a,target=b,value=1",
            "test.f:4:30: error: sempost `a`: there is no flowop `b`, expected the name of a semblock",
        ),
        (
            "flowop wakeup name=a,target=b",
            "there is no flowop `b`, expected the name of a block",
        ),
        (
            "flowop opslimit name=a,target=b",
            "error: opslimit `a`: its thread has no flowop `b`",
        ),
        (
            "flowop delay name=a,value=$b",
            "error: $b is not set, expected `set $b = ...` before it is used",
        ),
        (
            "flowop sempost name=a,value=1",
            "error: sempost `a` has no target, expected `target=` and the name of a semblock",
        ),
    ] {
        one(findings(flowops), expected);
    }
}

#[test]
fn a_number_below_0_is_refused_by_its_key_and_never_taken_for_0() {
    // `rate=-1` was no limit, and `instances=-2` no thread.
    let of_fileset = |attribute: &str| {
        format!("define fileset name=set,path=/tmp,{attribute}\n{PROCESS}run 5\n")
    };
    for (text, expected) in [
        (
            format!("eventgen rate=-1\n{FILESET}{PROCESS}run 5\n"),
            "test.f:1:15: error: rate is `-1`, expected a number that is not below 0",
        ),
        (
            format!("set $slow=-0.5\neventgen rate=$slow\n{FILESET}{PROCESS}run 5\n"),
            "test.f:2:15: error: rate is $slow (`-0.5`), expected",
        ),
        (
            of_fileset("entries=10,dirwidth=5,size=-4k"),
            "error: size is `-4096`",
        ),
        (
            of_fileset("entries=-10,dirwidth=5"),
            "error: entries is `-10`",
        ),
        (
            of_fileset("entries=10,dirwidth=-5"),
            "error: dirwidth is `-5`",
        ),
        (
            of_fileset("entries=10,dirwidth=5,prealloc=-80"),
            "error: prealloc is `-80`",
        ),
        (
            of_fileset("entries=10,dirwidth=5,prealloc=180"),
            "test.f:1:66: error: prealloc is `180`, expected a percentage from 0 to 100",
        ),
        (
            format!(
                "{FILESET}define process name=p,instances=-2 {{ thread name=t {{ flowop hog name=h,value=1 }} }}\nrun 5\n"
            ),
            "error: instances is `-2`",
        ),
    ] {
        of_text(&text, expected);
    }
    for (flowops, expected) in [
        (
            "flowop read name=a,filesetname=set,iosize=-4k",
            "test.f:4:43: error: iosize is `-4096`, expected",
        ),
        (
            "flowop statfile name=a,filesetname=set,fd=-1",
            "error: fd is `-1`, expected",
        ),
        ("flowop delay name=a,value=-1", "error: value is `-1`"),
    ] {
        one(findings(flowops), expected);
    }
}

#[test]
fn a_niceness_may_be_below_0_and_filebench_takes_any_large_percentage() {
    let text = format!(
        "define fileset name=set,path=/tmp,entries=10,dirwidth=5,prealloc=180\n{}run 5\n",
        PROCESS.replace("name=p", "name=p,nice=-5")
    );
    let script = parse(&text, "test.f").unwrap();
    let findings = check(&script, Variables::new("test.f", true), &|_| None);
    assert_eq!(findings, []);
}

#[test]
fn an_attribute_that_must_be_there_is_missed() {
    for (flowops, expected) in [
        (
            "flowop read name=a,filesetname=set",
            "error: read `a` has no iosize, expected `iosize=...`",
        ),
        (
            "flowop appendfile name=a,filesetname=set,iosize=0",
            "error: appendfile `a` has an iosize of 0",
        ),
        (
            "flowop statfile filesetname=set",
            "error: the flowop has no name, expected `name=...`",
        ),
        (
            "flowop listdir name=a",
            "error: listdir `a` has no fileset, expected `filesetname=...`",
        ),
        (
            "flowop deletefile name=a",
            "error: deletefile `a` has no fileset",
        ),
        (
            "flowop aiowrite name=a,filesetname=set,iosize=2k",
            "error: aiowrite `a` is not random",
        ),
        ("flowop delay name=a", "warning: delay `a` has no value"),
        (
            "flowop makedir name=a,filesetname=set",
            "error: makedir `a`: the fileset `set` has no leaf directories",
        ),
    ] {
        one(findings(flowops), expected);
    }
    of_text(
        "define fileset path=/tmp,entries=1,dirwidth=1 define process name=p { thread name=t { flowop delay name=d,value=1 } } run",
        "error: the fileset has no name",
    );
    let text = "define fileset name=a,entries=1,dirwidth=1";
    let found: Vec<String> = findings_of(text).iter().map(ToString::to_string).collect();
    assert!(
        found[0].contains("error: the fileset has no path"),
        "{found:?}"
    );
}

#[test]
fn sizes_that_cannot_be_are_errors() {
    for (flowops, expected) in [
        (
            "flowop read name=a,filesetname=set,iosize=2m",
            "error: read `a` has an iosize of 2097152, expected at most its thread's memsize of 1048576",
        ),
        (
            "flowop read name=a,filesetname=set,iosize=32k,random",
            "error: read `a` is of 32768 bytes at a random place in files of 16384",
        ),
        (
            "flowop read name=a,filesetname=set,iosize=8k,random,workingset=4k",
            "error: read `a` has an iosize of 8192, expected at most its workingset of 4096",
        ),
        (
            "flowop read name=a,filesetname=set,iosize=1000,directio",
            "warning: read `a` has directio and an iosize of 1000",
        ),
        (
            "flowop read name=a,filesetname=set,iosize=1k,fd=128",
            "error: read `a`: fd is 128, expected 0 to 127",
        ),
    ] {
        one(findings(flowops), expected);
    }
}

#[test]
fn open_files_are_followed_through_a_threads_list() {
    for (flowops, expected) in [
        (
            "flowop openfile name=a,filesetname=set,fd=1",
            "openfile `a` finds its slot 1 open when the thread comes to it again",
        ),
        (
            "flowop openfile name=a,filesetname=set flowop openfile name=b,filesetname=set",
            "openfile `b` finds its slot 0 open, expected a closefile",
        ),
        (
            "flowop closefile name=a,fd=3",
            "closefile `a` finds its slot 3 closed, expected a flowop before it that opens a file with fd=3",
        ),
        (
            "flowop read name=a,fd=1,iosize=1k",
            "read `a` finds its slot 1 closed, expected `filesetname=...`",
        ),
        (
            "flowop fsync name=a,fd=1",
            "fsync `a` finds its slot 1 closed",
        ),
        (
            "flowop writewholefile name=a,filesetname=set,srcfd=2",
            "writewholefile `a` has the size of the file in slot 2",
        ),
    ] {
        one(findings(flowops), expected);
    }
    // A thread that ends before it comes to it again, and slots that change from call to call.
    for flowops in [
        "flowop openfile name=a,filesetname=set,opennext",
        "flowop read name=a,filesetname=set,iosize=1k flowop closefile name=b",
    ] {
        assert_eq!(findings(flowops), Vec::<String>::new());
    }
}

#[test]
fn a_limit_without_events_is_a_warning() {
    let text = |rate: &str| {
        format!(
            "{rate}{FILESET}define process name=p {{ thread name=t {{ flowop eventlimit name=l }} }} run"
        )
    };
    of_text(
        &text(""),
        "warning: eventlimit `l` limits nothing: there is no `eventgen rate=...`",
    );
    let found: Vec<String> = findings_of(&text("set $r=0 eventgen rate=$r\n"))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("1:24: warning: a rate of 0 is no limit"),
        "{found:?}"
    );
    assert!(
        found[1].contains("limits nothing: the rate is 0"),
        "{found:?}"
    );
    one(
        findings("flowop statfile name=s,filesetname=set flowop iopslimit name=l,target=s"),
        "error: iopslimit `l`: `s` is a statfile, expected one that reads or writes",
    );
}

#[test]
fn a_run_that_ends_by_work_needs_a_mode_that_says_so() {
    let flowops = "flowop statfile name=s,filesetname=set flowop finishoncount name=f,value=5";
    one(
        findings(flowops),
        "warning: finishoncount `f` ends the run as a failure where the run ends by time",
    );
    let text = format!(
        "set mode quit firstdone {FILESET} define process name=p {{ thread name=t {{ {flowops} }} }} run"
    );
    assert_eq!(findings_of(&text), []);
}

#[test]
fn a_run_with_nothing_to_do_is_an_error_and_no_run_a_warning() {
    of_text(
        "run 5",
        "test.f:1:1: error: there is nothing to run, expected a `define process` before it",
    );
    of_text(FILESET, "warning: there is no `run`");
}

#[test]
fn a_process_or_thread_without_instances_is_a_warning() {
    let text = |process: &str, thread: &str| {
        format!(
            "{FILESET}define process name=p{process} {{ thread name=t{thread} {{ flowop statfile name=s,filesetname=set }} }} run"
        )
    };
    of_text(
        &text(",instances=0", ""),
        "2:1: warning: the process has no instance",
    );
    // As filebench, which looks at none of it.
    let unknown = "define process name=p,instances=0 { thread name=t { flowop statfile name=s,filesetname=none } } run";
    of_text(unknown, "warning: the process has no instance");
    of_text(
        &text("", ",instances=0"),
        "warning: the thread has no instance",
    );
}

#[test]
fn filesets_that_are_hardly_meant_are_warnings() {
    let run = " define process name=p { thread name=t { flowop delay name=d,value=1 } } run";
    for (text, expected) in [
        (
            "define fileset name=a,path=/tmp,dirwidth=5",
            "warning: the fileset has neither files nor leaf directories",
        ),
        (
            "define fileset name=a,path=/tmp,entries=5",
            "warning: the fileset has no `dirwidth`: filebench makes a directory for each file",
        ),
        (
            "define fileset name=a,path=/tmp,entries=5,dirwidth=2,readonly,writeonly",
            "warning: the fileset is read-only and write-only",
        ),
        (
            "define fileset name=a/../b,path=/tmp,entries=5,dirwidth=2",
            "1:21: error: `a/../b` cannot be a folder's name",
        ),
        (
            "create files define file name=a,path=/tmp",
            "warning: the file is defined after `create files`",
        ),
        (
            "create files create files",
            "warning: the files are made already",
        ),
        (
            "set $r=randvar(type=uniform) define file name=a,path=/tmp,size=$r",
            "warning: $r: a uniform random variable without `mean` has the mean 0",
        ),
        (
            "set $r=cvar(type=gamma)",
            "1:8: error: found the type `gamma` of a custom variable, expected one of cvar-uniform",
        ),
        (
            "define fileset name=a,path=$nowhere,entries=5,dirwidth=2",
            "error: $nowhere is not set",
        ),
    ] {
        of_text(&format!("{text}{run}"), expected);
    }
}

#[test]
fn what_a_readonly_fileset_gets_written_is_a_warning() {
    let text = "define fileset name=a,path=/tmp,entries=5,dirwidth=2,readonly define process name=p { thread name=t { flowop appendfile name=w,filesetname=a,iosize=1k } } run";
    of_text(
        text,
        "warning: appendfile `w` writes to the fileset `a`, which is read-only",
    );
}

#[test]
fn composites_are_looked_into_where_they_are_used() {
    let text = |value: &str| {
        format!(
            "{FILESET}define flowop name=c,$which {{ flowop statfile name=s,filesetname=$which }}
             define process name=p {{ thread name=t {{ flowop c name=u,{value} }} }} run"
        )
    };
    assert_eq!(findings_of(&text("$which=set")), []);
    of_text(
        &text("$which=none"),
        "error: statfile `u.s`: there is no fileset `none`",
    );
    of_text(
        &text("$which=set,$what=1"),
        "warning: the composite flowop `c` has no variable $what",
    );
    of_text(&text("iters=2"), "error: $which is not set");
    of_text(
        &format!(
            "{FILESET}define process name=p {{ thread name=t {{ flowop c name=u }} }} define flowop name=d {{ flowop statfile name=s,filesetname=set }} run"
        ),
        "or a composite flowop defined before it: d",
    );
}

#[test]
fn composites_that_grow_without_an_end_are_refused_in_time() {
    use std::fmt::Write;
    let mut text = String::from("define flowop name=c0 { flowop delay name=d,value=1 }\n");
    for i in 1..40 {
        let inner = i - 1;
        writeln!(
            text,
            "define flowop name=c{i} {{ flowop c{inner} name=a flowop c{inner} name=b }}"
        )
        .unwrap();
    }
    text.push_str("define process name=p { thread name=t { flowop c39 name=x } } run");
    of_text(&text, "error: more than 100000 flowops come of one thread");
    let mut text = String::from("define flowop name=c0 { flowop delay name=d,value=1 }\n");
    for i in 1..5_000 {
        writeln!(
            text,
            "define flowop name=c{i} {{ flowop c{} name=a }}",
            i - 1
        )
        .unwrap();
    }
    text.push_str("define process name=p { thread name=t { flowop c4999 name=x } } run");
    of_text(&text, "use each other more than 64 deep");
}

#[test]
fn what_a_workload_loads_is_looked_at_with_it() {
    let run = "define process name=p { thread name=t { flowop delay name=d,value=$loaded flowop statfile name=s,filesetname=set } } run";
    of_text(
        &format!("load other {run}"),
        "test.f:1:1: note: `load` is an older form",
    );
    let found = findings_of("load self");
    assert!(found.iter().any(|finding| {
        finding
            .error
            .message
            .contains("load each other without an end")
    }));
    let found = findings_of("load missing");
    assert!(found.iter().any(|finding| {
        finding
            .error
            .message
            .contains("the workload `missing` is not there")
    }));
    let found = findings_of("load broken");
    assert!(
        found
            .iter()
            .any(|finding| finding.error.name == "broken.f" && finding.severity == Severity::Error)
    );
}

/// Found by a wrong input whose quote ended some lines later.
#[test]
fn a_message_is_one_line_whatever_a_name_is() {
    let text = "define fileset name=\"a\nb\",path=/tmp,entries=1,dirwidth=1
        define process name=p { thread name=t { flowop statfile name=s,filesetname=none } } run";
    of_text(text, "there is no fileset `none`, expected a\u{fffd}b");
}

/// Found by a wrong input, which had the parser's stack overflow.
#[test]
fn laws_that_ask_each_other_for_their_parameters_are_refused() {
    let run = " define process name=p { thread name=t { flowop delay name=d,value=1 } } run";
    for (text, expected) in [
        (
            "set $a=randvar(type=gamma,mean=5) set $a.mean=$a.mean",
            "found `$a.mean`, a parameter of a law, expected a number",
        ),
        (
            "set $a=randvar(type=gamma,mean=$a)",
            "expected a number that is not random",
        ),
        (
            "set $a=cvar(type=cvar-gamma,min=$a)",
            "expected a number that is not random",
        ),
        (
            "set $b=randvar(type=gamma,mean=2) set $a=randvar(type=gamma,mean=$b)",
            "expected a number that is not random",
        ),
    ] {
        let found = findings_of(&format!("{text}{run}"));
        assert!(
            found
                .iter()
                .any(|finding| finding.error.message.contains(expected)),
            "{found:?}"
        );
    }
}

#[test]
fn what_only_a_second_turn_of_a_thread_would_meet_is_no_error() {
    let found = findings_of(
        "define fileset name=s,path=/tmp,entries=4,dirwidth=10
         define process name=p { thread name=t { flowop openfile name=o,filesetname=s,fd=1
           flowop delay name=d,value=100 } } run",
    );
    let again: Vec<_> = found
        .iter()
        .filter(|finding| finding.error.message.contains("comes to it again"))
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(again, [Severity::Warning]);
}
