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
    /// What of the machine; all but `per_cpu` if left out.
    pub groups: Option<Vec<Group>>,
    /// Block devices, by name; all whole disks that were ever used and are not empty if left out.
    pub disks: Option<Vec<String>>,
    /// Network interfaces, by name; all that ever carried a packet if left out.
    pub interfaces: Option<Vec<String>>,
    /// Processes to watch from the start.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Control groups to watch from the start.
    #[serde(default)]
    pub cgroups: Vec<Cgroup>,
}

const fn yes() -> bool {
    true
}

/// Metrics of the machine that are watched together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The time of all CPUs together.
    Cpu,
    /// The time of each.
    PerCpu,
    /// What memory is used for.
    Memory,
    /// Paging and swapping.
    Paging,
    /// Block devices.
    Disk,
    /// Interfaces and TCP.
    Network,
    /// Pressure stall information.
    Pressure,
    /// Runnable processes, switches, interrupts, run-queue delay.
    Scheduler,
}

/// A process and the name under which its samples stand; processes of one name are summed up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The name.
    pub subject: String,
    /// Whether its children are watched with it, and theirs.
    #[serde(default)]
    pub tree: bool,
}

impl Process {
    fn check(&self, path: &str) -> Result<(), JobError> {
        check_pid(&format!("{path}.pid"), self.pid)?;
        check_name(&format!("{path}.subject"), &self.subject)
    }
}

/// A control group and the name under which its samples stand.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// The name.
    pub subject: String,
    /// Its path, as in `/proc/PID/cgroup`.
    pub path: Option<String>,
    /// Or a process: the group that it is in, by each controller.
    pub pid: Option<u32>,
}

impl Cgroup {
    fn check(&self, path: &str) -> Result<(), JobError> {
        check_name(&format!("{path}.subject"), &self.subject)?;
        match (&self.path, self.pid) {
            (None, Some(pid)) => check_pid(&format!("{path}.pid"), pid),
            (Some(group), None) => {
                let inside = group.split('/').all(|part| part != "..");
                if group.starts_with('/') && inside && !group.contains('\0') {
                    return Ok(());
                }
                Err(JobError::new(
                    format!("{path}.path"),
                    format!(
                        "{group:?} is not the path of a control group, expected one such as /system.slice"
                    ),
                ))
            }
            _ => Err(JobError::new(path, "expected one of path and pid")),
        }
    }
}

fn check_pid(path: &str, pid: u32) -> Result<(), JobError> {
    check_range(path, pid, 1, i32::MAX.unsigned_abs())
}

fn check_name(path: &str, name: &str) -> Result<(), JobError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.:/-".contains(c);
    if (1..=100).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(JobError::new(
        path,
        format!("{name:?} is not a name, expected 1 to 100 letters, digits and _.:/-"),
    ))
}

/// Refuses devices where nothing looks at them, and a selection of none.
fn check_devices(
    path: &str,
    devices: Option<&Vec<String>>,
    group: &str,
    watched: bool,
) -> Result<(), JobError> {
    match devices {
        Some(_) if !watched => Err(JobError::new(
            path,
            format!("the group {group} is not watched, expected it among groups, or no {path}"),
        )),
        Some(devices) if devices.is_empty() => Err(JobError::new(
            path,
            "is empty, expected at least one name, or no such key for all",
        )),
        _ => Ok(()),
    }
}

impl WatchJob {
    /// Reads a job's text; never panics, whatever the text.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let job: Self = read(parse(text)?, "")?;
        check_range("hz", job.hz, 1.0, 100.0)?;
        if job.groups.is_some() && !job.machine {
            return Err(JobError::new(
                "groups",
                "are of the machine, which is not watched, expected machine true, or no groups",
            ));
        }
        check_devices(
            "disks",
            job.disks.as_ref(),
            "disk",
            job.machine && job.wants(Group::Disk),
        )?;
        check_devices(
            "interfaces",
            job.interfaces.as_ref(),
            "network",
            job.machine && job.wants(Group::Network),
        )?;
        for (index, process) in job.processes.iter().enumerate() {
            process.check(&format!("processes[{index}]"))?;
        }
        for (index, group) in job.cgroups.iter().enumerate() {
            let path = format!("cgroups[{index}]");
            group.check(&path)?;
            let is_known = |known: &Cgroup| known.subject == group.subject;
            if job.cgroups[..index].iter().any(is_known) {
                return Err(JobError::new(
                    format!("{path}.subject"),
                    format!("{:?} is taken, expected a name for each", group.subject),
                ));
            }
        }
        Ok(job)
    }

    /// Whether a group of metrics is chosen.
    #[must_use]
    pub fn wants(&self, group: Group) -> bool {
        match &self.groups {
            Some(groups) => groups.contains(&group),
            None => group != Group::PerCpu,
        }
    }
}

/// A change while watching goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Watch this process too.
    Add(Process),
    /// Watch the process with this id no longer.
    Remove(u32),
    /// Watch this control group too.
    AddCgroup(Cgroup),
    /// Watch the control groups of this subject no longer.
    RemoveCgroup(String),
    /// Take a last sample and end.
    Stop,
}

/// A line as it is written: one of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum RawCommand {
    Add(Process),
    Remove(RawRemove),
    AddCgroup(Cgroup),
    RemoveCgroup(RawRemoveCgroup),
    Stop(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRemove {
    pid: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRemoveCgroup {
    subject: String,
}

impl Command {
    /// Reads a line such as `{"add": {"pid": 1, "subject": "server"}}`, `{"remove": {"pid": 1}}`,
    /// `{"add_cgroup": {"pid": 1, "subject": "server"}}`, `{"remove_cgroup": {"subject": "server"}}` or
    /// `{"stop": true}`.
    pub fn from_line(line: &str) -> Result<Self, JobError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| JobError::new("line", format!("is not JSON ({error})")))?;
        if value.as_object().is_none_or(|members| members.len() != 1) {
            return Err(JobError::new(
                "line",
                "expected one of add, remove, add_cgroup, remove_cgroup and stop (which is true)",
            ));
        }
        match read(value, "")? {
            RawCommand::Add(process) => {
                process.check("add")?;
                Ok(Self::Add(process))
            }
            RawCommand::Remove(RawRemove { pid }) => Ok(Self::Remove(pid)),
            RawCommand::AddCgroup(group) => {
                group.check("add_cgroup")?;
                Ok(Self::AddCgroup(group))
            }
            RawCommand::RemoveCgroup(RawRemoveCgroup { subject }) => {
                Ok(Self::RemoveCgroup(subject))
            }
            RawCommand::Stop(true) => Ok(Self::Stop),
            RawCommand::Stop(false) => Err(JobError::new("stop", "is false, expected true")),
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
                subject: "server".to_owned(),
                tree: false,
            }))
        );
        assert_eq!(
            Command::from_line(r#"{"add_cgroup": {"path": "/a", "subject": "server"}}"#),
            Ok(Command::AddCgroup(Cgroup {
                subject: "server".to_owned(),
                path: Some("/a".to_owned()),
                pid: None,
            }))
        );
        assert_eq!(
            Command::from_line(r#"{"remove_cgroup": {"subject": "server"}}"#),
            Ok(Command::RemoveCgroup("server".to_owned()))
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
            r#"{"add_cgroup": {"subject": "a"}}"#,
            r#"{"add_cgroup": {"subject": "a", "pid": 1, "path": "/a"}}"#,
            r#"{"add_cgroup": {"subject": "a", "path": "/../../etc"}}"#,
        ] {
            assert!(Command::from_line(wrong).is_err(), "{wrong}");
        }
    }

    fn complaint(changes: serde_json::Value) -> String {
        let mut job = serde_json::json!({"format": 1, "hz": 1});
        job.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        WatchJob::from_json(&job.to_string())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_selection_that_selects_nothing_is_refused() {
        use serde_json::json;
        let wrong = complaint(json!({"groups": ["cpu"], "disks": ["vda"]}));
        assert!(
            wrong.starts_with("disks: the group disk is not watched"),
            "{wrong}"
        );
        let wrong = complaint(json!({"machine": false, "interfaces": ["lo"]}));
        assert!(
            wrong.starts_with("interfaces: the group network"),
            "{wrong}"
        );
        let wrong = complaint(json!({"machine": false, "groups": ["cpu"]}));
        assert!(wrong.starts_with("groups: are of the machine"), "{wrong}");
        let wrong = complaint(json!({"disks": []}));
        assert!(wrong.starts_with("disks: is empty"), "{wrong}");
        let wrong = complaint(json!({"groups": ["cpu", "gpu"]}));
        assert!(
            wrong.starts_with("groups[1]: unknown variant `gpu`, expected one of `cpu`"),
            "{wrong}"
        );
    }

    #[test]
    fn without_groups_all_are_watched_but_each_cpu_alone() {
        let job = WatchJob::from_json(r#"{"format": 1, "hz": 1}"#).unwrap();
        assert!(job.wants(Group::Disk) && !job.wants(Group::PerCpu));
        let job = WatchJob::from_json(r#"{"format": 1, "hz": 1, "groups": ["per_cpu"]}"#).unwrap();
        assert!(!job.wants(Group::Disk) && job.wants(Group::PerCpu));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*", hz in any::<f64>(), pid: i64, subject in "\\PC*") {
            let _ = WatchJob::from_json(&text);
            let _ = Command::from_line(&text);
            let process = serde_json::json!({"pid": pid, "subject": subject});
            let job = serde_json::json!({"format": 1, "hz": hz, "processes": [process]});
            if let Ok(job) = WatchJob::from_json(&job.to_string()) {
                prop_assert!((1.0..=100.0).contains(&job.hz) && pid > 0);
            }
        }
    }
}
