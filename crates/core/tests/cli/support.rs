//! Running the program, and reading what it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_dyno-core");

/// A folder of its own for a test, empty at first and removed at the end of a test that passes.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path as text, for jobs.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, job: &Value) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, job.to_string()).unwrap();
        path
    }

    /// The names of the files in it, sorted.
    pub fn names(&self, inner: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(inner))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

pub fn schema_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema")
}

pub fn read_json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

pub fn schema(name: &str) -> jsonschema::Validator {
    let schema = read_json(&schema_folder().join(format!("{name}.schema.json")));
    jsonschema::validator_for(&schema).unwrap()
}

/// What is wrong with a value by a schema.
pub fn complaints(schema: &jsonschema::Validator, value: &Value) -> Vec<String> {
    schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Merges `changes` into `job`: objects key by key, null removes, all else replaces.
pub fn with(mut job: Value, changes: Value) -> Value {
    fn merge(into: &mut Value, changes: Value) {
        match (into, changes) {
            (Value::Object(into), Value::Object(changes)) => {
                for (key, change) in changes {
                    if change.is_null() {
                        into.remove(&key);
                    } else {
                        merge(into.entry(key).or_insert(Value::Null), change);
                    }
                }
            }
            (into, changes) => *into = changes,
        }
    }
    merge(&mut job, changes);
    job
}

/// A small job of the run phase on a database in the folder: reads only, one client.
pub fn run_job(folder: &Folder) -> Value {
    json!({
        "format": 1,
        "phase": "run",
        "backend": {"kind": "sqlite", "path": folder.text("ycsb.db"), "config": {"synchronous": "off"}},
        "workload": {
            "kind": "ycsb", "records": 500, "proportions": {"read": 1.0},
            "field_count": 4, "field_length_bytes": 20, "max_scan_length": 20,
        },
        "clients": 1,
        "operations": 400,
        "seed": 42,
        "interval_ms": 50,
    })
}

/// The job that loads what `run_job` works on.
pub fn load_job(folder: &Folder) -> Value {
    with(
        run_job(folder),
        json!({"phase": "load", "operations": null}),
    )
}

/// What the program left and said.
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    out: PathBuf,
}

impl Ran {
    pub fn new(output: Output, out: PathBuf) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            out,
        }
    }

    /// The result, checked against its schema along with the intervals.
    pub fn result(&self) -> Value {
        assert!(
            self.out.join("result.json").exists(),
            "no result: {}",
            self.stderr
        );
        let result = read_json(&self.out.join("result.json"));
        let wrong = complaints(&schema("result"), &result);
        assert!(wrong.is_empty(), "{wrong:?}\n{result:#}");
        let interval = schema("interval");
        for line in self.intervals() {
            let wrong = complaints(&interval, &line);
            assert!(wrong.is_empty(), "{wrong:?}\n{line}");
        }
        result
    }

    /// The result of a run that must have gone well.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert_eq!(self.stderr, "");
        let result = self.result();
        assert_eq!(
            (&result["outcome"], &result["error"]),
            (&json!("ok"), &Value::Null)
        );
        result
    }

    /// The error of a run that must have failed with a result, and one line on standard error.
    pub fn failure(&self) -> Value {
        assert_eq!(self.status, Some(1), "{}", self.stderr);
        let result = self.result();
        assert_eq!(
            (&result["outcome"], &result["ended_by"]),
            (&json!("failed"), &json!("error"))
        );
        let message = result["error"]["message"].as_str().unwrap();
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(
            self.stderr.contains(message),
            "{} does not say {message}",
            self.stderr
        );
        result
    }

    /// The result of a run that came to its end as asked and has failed for what it came to.
    pub fn spoilt(&self, kind: &str) -> Value {
        assert_eq!(self.status, Some(1), "{}", self.stderr);
        let result = self.result();
        assert_eq!(result["outcome"], json!("failed"));
        assert_eq!(result["error"]["kind"], json!(kind), "{}", result["error"]);
        let message = result["error"]["message"].as_str().unwrap();
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.contains(message), "{}", self.stderr);
        result
    }

    pub fn intervals(&self) -> Vec<Value> {
        json_lines(&fs::read_to_string(self.out.join("intervals.jsonl")).unwrap())
    }

    pub fn histogram_log(&self) -> Vec<u8> {
        fs::read(self.out.join("latency.hlog")).unwrap()
    }
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs `drive` to its end.
pub fn drive(folder: &Folder, job: &Value) -> Ran {
    drive_with(folder, job, &[])
}

pub fn drive_with(folder: &Folder, job: &Value, more: &[&str]) -> Ran {
    let mut command = drive_command(folder, job);
    command
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What it says fits into the pipes, so nobody needs to read meanwhile.
    wait_at_most(&mut child, Duration::from_secs(60));
    Ran::new(child.wait_with_output().unwrap(), folder.path("out"))
}

pub fn drive_command(folder: &Folder, job: &Value) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg("drive")
        .arg("--job")
        .arg(folder.write("job.json", job));
    command
        .arg("--out")
        .arg(folder.path("out"))
        .stdin(Stdio::null());
    command
}

/// Waits for a child to end, but not for ever; gives how long it took.
pub fn wait_at_most(child: &mut Child, limit: Duration) -> Duration {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still running after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    since.elapsed()
}

/// Waits until something is so, but not for ever.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "not so after 20 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Operations that succeeded and that did not, by the total of a result.
pub fn count_and_errors(figures: &Value) -> (u64, u64) {
    let errors = figures["errors"].as_object().unwrap();
    (
        figures["count"].as_u64().unwrap(),
        errors.values().map(|count| count.as_u64().unwrap()).sum(),
    )
}
