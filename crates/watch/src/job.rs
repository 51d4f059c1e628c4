//! The job of `watch`, and the lines that change it while it goes on.

use dyno_job::{JobError, check_range, parse, read};
use serde::Deserialize;
use serde_json::Value;

/// What to watch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchJob {
    /// Samples per second.
    pub hz: f64,
    /// Whether to watch the machine as a whole.
    #[serde(default = "yes")]
    pub machine: bool,
    /// Processes to watch from the start.
    #[serde(default)]
    pub processes: Vec<Process>,
}

const fn yes() -> bool {
    true
}

/// A process and the name under which its samples stand; processes of one name are summed up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The name.
    pub subject: String,
}

impl Process {
    fn check(&self, path: &str) -> Result<(), JobError> {
        check_range(&format!("{path}.pid"), self.pid, 1, i32::MAX.unsigned_abs())?;
        let legal = |c: char| c.is_ascii_alphanumeric() || "_.:/-".contains(c);
        if (1..=100).contains(&self.subject.len()) && self.subject.chars().all(legal) {
            return Ok(());
        }
        Err(JobError::new(
            format!("{path}.subject"),
            format!(
                "{:?} is not a name, expected 1 to 100 letters, digits and _.:/-",
                self.subject
            ),
        ))
    }
}

impl WatchJob {
    /// Reads a job's text; never panics, whatever the text.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let job: Self = read(parse(text)?, "")?;
        check_range("hz", job.hz, 1.0, 10.0)?;
        for (index, process) in job.processes.iter().enumerate() {
            process.check(&format!("processes[{index}]"))?;
        }
        Ok(job)
    }
}

/// A change while watching goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Watch this process too.
    Add(Process),
    /// Watch the process with this id no longer.
    Remove(u32),
    /// Take a last sample and end.
    Stop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    add: Option<Process>,
    remove: Option<RawRemove>,
    stop: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRemove {
    pid: u32,
}

impl Command {
    /// Reads a line such as `{"add": {"pid": 1, "subject": "server"}}`, `{"remove": {"pid": 1}}` or
    /// `{"stop": true}`.
    pub fn from_line(line: &str) -> Result<Self, JobError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| JobError::new("line", format!("is not JSON ({error})")))?;
        match read(value, "")? {
            RawCommand {
                add: Some(process),
                remove: None,
                stop: None,
            } => {
                process.check("add")?;
                Ok(Self::Add(process))
            }
            RawCommand {
                add: None,
                remove: Some(RawRemove { pid }),
                stop: None,
            } => Ok(Self::Remove(pid)),
            RawCommand {
                add: None,
                remove: None,
                stop: Some(true),
            } => Ok(Self::Stop),
            _ => Err(JobError::new(
                "line",
                "expected one of add, remove and stop (which is true)",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_say_what_to_add_and_remove_and_when_to_stop() {
        assert_eq!(
            Command::from_line(r#"{"add": {"pid": 12, "subject": "server"}}"#),
            Ok(Command::Add(Process {
                pid: 12,
                subject: "server".to_owned()
            }))
        );
        assert_eq!(
            Command::from_line(r#"{"remove": {"pid": 12}}"#),
            Ok(Command::Remove(12))
        );
        assert_eq!(Command::from_line(r#"{"stop": true}"#), Ok(Command::Stop));
        for wrong in [
            "",
            "{}",
            "[]",
            r#"{"stop": false}"#,
            r#"{"stop": true, "remove": {"pid": 1}}"#,
            r#"{"add": {"pid": 0, "subject": "a"}}"#,
            r#"{"add": {"pid": 1, "subject": "a,b"}}"#,
        ] {
            assert!(Command::from_line(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*", hz in any::<f64>(), pid: i64, subject in "\\PC*") {
            let _ = WatchJob::from_json(&text);
            let _ = Command::from_line(&text);
            let process = serde_json::json!({"pid": pid, "subject": subject});
            let job = serde_json::json!({"format": 1, "hz": hz, "processes": [process]});
            if let Ok(job) = WatchJob::from_json(&job.to_string()) {
                prop_assert!((1.0..=10.0).contains(&job.hz) && pid > 0);
            }
        }
    }
}
