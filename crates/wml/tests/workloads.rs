//! The workloads that dyno comes with.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

use std::path::Path;

use dyno_wml::{Severity, Variables, check, parse, parse_value};

fn workloads() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../files/workloads");
    let mut workloads: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "f"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    workloads.sort();
    workloads
}

#[test]
fn every_workload_is_without_any_finding() {
    let workloads = workloads();
    let names: Vec<&str> = workloads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "fileserver.f",
            "oltp-study.f",
            "oltp.f",
            "varmail.f",
            "videoserver-study.f",
            "videoserver.f",
            "webproxy.f",
            "webserver-study.f",
            "webserver.f",
        ]
    );
    for (name, text) in &workloads {
        let script = parse(text, name).unwrap();
        let findings = check(&script, Variables::new(name, false), &|_| None);
        assert!(findings.is_empty(), "{findings:?}");
        assert!(!script.older);
    }
}

/// So that `--set` makes any of them small.
#[test]
fn every_size_and_count_of_a_workload_is_a_variable_with_a_set_at_the_top() {
    for (name, text) in workloads() {
        let definitions = text.split_once("\ndefine").unwrap().1;
        for number in definitions.split(|c: char| !c.is_ascii_alphanumeric() && !"=$-".contains(c))
        {
            let Some((key, value)) = number.split_once('=') else {
                continue;
            };
            let fixed = ["fd", "srcfd", "prealloc", "entries", "instances", "value"];
            if value.starts_with(|c: char| c.is_ascii_digit()) {
                // A slot, all of a fileset, the one log file, the one process, one post.
                assert!(
                    fixed.contains(&key) && (value.len() == 1 || value == "100"),
                    "{name}: {number}"
                );
            }
        }
        let script = parse(&text, &name).unwrap();
        let sets = script.sets();
        for variable in &script.variables {
            assert!(sets.contains(variable.as_str()), "{name}: ${variable}");
        }
        assert!(sets.contains("dir") && sets.contains("seconds"), "{name}");
        assert!(text.ends_with("\nrun $seconds\n"), "{name}");
    }
}

#[test]
fn the_studys_workloads_have_the_studys_figures() {
    let value = |file: &str, variable: &str| {
        let (name, text) = workloads()
            .into_iter()
            .find(|(name, _)| name == file)
            .unwrap();
        let assignment = format!("set ${variable}=");
        let found = text.lines().find_map(|line| line.strip_prefix(&assignment));
        found
            .unwrap_or_else(|| panic!("{name} {variable}"))
            .to_owned()
    };
    for (file, variable, expected) in [
        ("webserver-study.f", "files", "2400"),
        ("webserver-study.f", "dirwidth", "20"),
        ("webserver-study.f", "meansize", "2170552"),
        ("webserver-study.f", "minsize", "524288"),
        ("webserver-study.f", "maxsize", "31457280"),
        ("webserver-study.f", "iosize", "1m"),
        ("webserver-study.f", "appendsize", "16k"),
        ("webserver-study.f", "nreaders", "1"),
        ("webserver-study.f", "nthreads", "1"),
        ("oltp-study.f", "files", "20"),
        ("oltp-study.f", "tablesize", "200m"),
        ("oltp-study.f", "nshadows", "200"),
        ("oltp-study.f", "nwriters", "10"),
        ("oltp-study.f", "iosize", "2k"),
        ("oltp-study.f", "instances", "1"),
        ("videoserver-study.f", "videosize", "200m"),
        ("videoserver-study.f", "nactive", "10"),
        ("videoserver-study.f", "npassive", "10"),
        ("videoserver-study.f", "nthreads", "48"),
        ("videoserver-study.f", "megabytes", "96"),
        ("webserver-study.f", "seconds", "30"),
        ("oltp-study.f", "seconds", "30"),
        ("videoserver-study.f", "seconds", "30"),
    ] {
        assert_eq!(value(file, variable), expected, "{file} {variable}");
    }
}

#[test]
fn a_workload_made_small_is_without_errors() {
    let small = [
        (
            "webserver-study.f",
            "files=10 meansize=64k minsize=4k maxsize=1m nreaders=100 iosize=4k",
        ),
        (
            "oltp-study.f",
            "files=2 tablesize=1m logsize=1m instances=100 nshadows=2 memory=16k",
        ),
        (
            "videoserver-study.f",
            "videosize=1m nactive=2 npassive=2 megabytes=4",
        ),
        ("fileserver.f", "files=20 homesize=4k nthreads=2"),
    ];
    let workloads = workloads();
    for (name, values) in small {
        let (_, text) = workloads.iter().find(|(found, _)| found == name).unwrap();
        let script = parse(text, name).unwrap();
        let mut variables = Variables::new(name, false);
        for value in values.split(' ') {
            let (variable, value) = value.split_once('=').unwrap();
            variables
                .replace(&script, variable, parse_value(value, "--set").unwrap())
                .unwrap();
        }
        let findings = check(&script, variables, &|_| None);
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity != Severity::Error),
            "{findings:?}"
        );
    }
}
