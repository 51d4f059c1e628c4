//! The committed examples that both languages read.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, PROGRAM, complaints, read_json, schema, schema_folder};

fn examples(folder: &str) -> Vec<(String, Value)> {
    let mut examples: Vec<(String, Value)> = fs::read_dir(schema_folder().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                read_json(&path),
            )
        })
        .collect();
    examples.sort_by(|a, b| a.0.cmp(&b.0));
    examples
}

fn schema_of(name: &str) -> &'static str {
    [
        ("watch-job", "watch-job"),
        ("flame-job", "flame-job"),
        ("job-", "job"),
        ("result-", "result"),
    ]
    .into_iter()
    .find(|(prefix, _)| name.starts_with(prefix))
    .map_or_else(
        || panic!("{name}: no schema is known for this name"),
        |(_, schema)| schema,
    )
}

#[test]
fn every_valid_example_is_valid_by_its_schema() {
    let examples: Vec<_> = examples("golden")
        .into_iter()
        .filter(|(name, _)| {
            ["watch-job", "flame-job", "job-", "result-"]
                .iter()
                .any(|kind| name.starts_with(kind))
        })
        .collect();
    assert!(examples.len() >= 5);
    for (name, value) in examples {
        let wrong = complaints(&schema(schema_of(&name)), &value);
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn every_valid_job_is_understood() {
    for (name, value) in examples("golden") {
        match schema_of_job(&name) {
            Some("job") => drop(dyno_drive::Job::from_json(&value.to_string()).unwrap()),
            Some(_) => drop(dyno_watch::WatchJob::from_json(&value.to_string()).unwrap()),
            None => {}
        }
    }
}

fn schema_of_job(name: &str) -> Option<&'static str> {
    (name.starts_with("job-") || name.starts_with("watch-job")).then(|| schema_of(name))
}

#[test]
fn every_invalid_job_is_refused_with_status_2_and_one_line_that_names_file_key_and_remedy() {
    let folder = Folder::new();
    let examples = examples("golden/invalid");
    assert!(examples.len() >= 15);
    for (name, example) in examples {
        let job = folder.write("job.json", &example["job"]);
        let command = if schema_of(&name) == "job" {
            "drive"
        } else {
            "watch"
        };
        let output = Command::new(PROGRAM)
            .args([command, "--job"])
            .arg(&job)
            .arg("--out")
            .arg(folder.path("out"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let expected = format!(
            "dyno-core: {}: {}",
            job.display(),
            example["message"].as_str().unwrap()
        );
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(
            stderr.starts_with(&expected),
            "{name}: expected {expected}, got {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{name}: {stderr}");
        assert!(!folder.path("out").exists(), "{name}");
    }
}

#[test]
fn the_schemas_refuse_what_they_can_say() {
    for (name, example) in examples("golden/invalid") {
        let refused = !complaints(&schema(schema_of(&name)), &example["job"]).is_empty();
        assert_eq!(Some(refused), example["schema_rejects"].as_bool(), "{name}");
    }
}
