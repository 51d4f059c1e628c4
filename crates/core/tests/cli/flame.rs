//! `fold` and `flame`: from what `perf script` prints to drawings.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Folder, PROGRAM, read_json, schema_folder};

const SCRIPT: &str = "\
mariadbd   100/104   12.500000: cpu-clock: 
\tffffffff81a0 copy_user_generic ([kernel.kallsyms])
\t    7f00aa10 __write (/usr/lib/x86_64-linux-gnu/libc.so.6)

";

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn flame(folder: &Folder, job: &Value) -> Output {
    let path = folder.path("job.json");
    fs::write(&path, job.to_string()).unwrap();
    run(&[
        "flame",
        "--job",
        path.to_str().unwrap(),
        "--out",
        folder.path("out").to_str().unwrap(),
    ])
}

fn complaint(output: &Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    (output.status.code(), said)
}

#[test]
fn stacks_are_folded_and_drawn() {
    let folder = Folder::new();
    let (script, folded) = (folder.path("script"), folder.path("folded"));
    fs::write(&script, SCRIPT.repeat(3)).unwrap();
    let output = run(&[
        "fold",
        "--out",
        folded.to_str().unwrap(),
        script.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{output:?}");
    let folded = fs::read_to_string(folded).unwrap();
    assert_eq!(
        folded,
        "mariadbd;__write@libc.so.6;copy_user_generic_[k] 3\n"
    );

    let stacks: Vec<&str> = folded.lines().collect();
    let output = flame(
        &folder,
        &json!({"format": 1, "graphs": [
            {"name": "cell-1", "title": "native", "stacks": stacks},
            {"name": "change", "title": "changed", "stacks": stacks, "before": ["mariadbd;main 4"]},
        ]}),
    );
    assert!(output.status.success(), "{output:?}");
    for (name, told) in [
        ("cell-1.svg", "__write (3 samples, 100.00%)"),
        ("cell-1.page.svg", "__write (3 samples, 100.00%)"),
        (
            "change.svg",
            "copy_user_generic (3 samples, 100.00%; +100.00%)",
        ),
        (
            "change.page.svg",
            "copy_user_generic (3 samples, 100.00%; +100.00%)",
        ),
    ] {
        let svg = fs::read_to_string(folder.path("out").join(name)).unwrap();
        assert!(svg.contains(told), "{name}");
    }
}

#[test]
fn the_example_of_a_job_is_drawn() {
    let folder = Folder::new();
    let output = flame(
        &folder,
        &read_json(&schema_folder().join("golden/flame-job.json")),
    );
    assert!(output.status.success(), "{output:?}");
    let svg = fs::read_to_string(folder.path("out").join("flame-1-against-0.page.svg")).unwrap();
    assert!(svg.contains("ovl_write_iter (20 samples, 100.00%; +100.00%)"));
}

#[test]
fn a_mistake_is_one_line_that_says_what_is_wrong() {
    let folder = Folder::new();
    let graph = json!({"name": "../cell", "title": "native", "stacks": ["a;b 1"]});
    for (job, told) in [
        (json!({"format": 2}), "format: 2 is not known"),
        (json!({"format": 1}), "graphs"),
        (
            json!({"format": 1, "graphs": [{"name": "x", "title": "t"}]}),
            "graphs.[0].stacks: is missing",
        ),
        (
            json!({"format": 1, "graphs": [graph]}),
            "\"../cell\" cannot be the name of a file",
        ),
        (
            json!({"format": 1, "graphs": [{"name": "x", "title": "t", "stacks": []}]}),
            "graphs: x: No stack counts found",
        ),
    ] {
        let (status, said) = complaint(&flame(&folder, &job));
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(told), "{said}");
    }
    let (status, said) = complaint(&run(&["fold", "--out", "/dev/null", "/no/such/script"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("/no/such/script: "), "{said}");
}
