//! What a workload would do, in words and figures.

use std::collections::BTreeMap;
use std::fmt::Write;

use dyno_wml::ast::QuitMode;
use serde::Serialize;

use crate::fileset::{Plan, plan_tree, share_of};
use crate::number::Number;
use crate::program::{Operation, Program, Step, ThreadPlan};

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// How long it runs; none where it ends when its work is done.
    pub seconds: Option<f64>,
    /// What ends it.
    pub ends: &'static str,
    /// Its filesets.
    pub filesets: Vec<OfFileset>,
    /// Its threads.
    pub threads: Vec<OfThread>,
    /// Processes in all.
    pub processes: usize,
    /// Threads in all.
    pub thread_count: usize,
    /// Bytes on disk once the filesets are made.
    pub bytes_at_start: u64,
    /// Bytes once all files exist.
    pub bytes_at_most: u64,
    /// Bytes of memory of the threads.
    pub memory: u64,
    /// Events a second that limit it.
    pub rate: Option<String>,
    /// What it has the shell do.
    pub system: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A fileset.
#[derive(Clone, Debug, Serialize)]
pub struct OfFileset {
    name: String,
    path: String,
    files: usize,
    files_at_start: usize,
    directories: usize,
    leaf_directories: usize,
    depth: u32,
    bytes: u64,
    bytes_at_start: u64,
}

/// A kind of threads.
#[derive(Clone, Debug, Serialize)]
pub struct OfThread {
    process: String,
    processes: usize,
    name: String,
    threads_of_each: usize,
    memory_of_each: usize,
    flowops: Vec<String>,
}

impl Explanation {
    /// Of a program and its filesets.
    pub fn new(
        program: &Program,
        plans: &[Plan],
        seed: u64,
        seconds: Option<f64>,
        mode: QuitMode,
    ) -> Result<Self, String> {
        let filesets = plans
            .iter()
            .map(|plan| OfFileset::new(plan, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let mut processes = BTreeMap::new();
        for plan in &program.threads {
            processes.insert(plan.process_index, plan.process_instances);
        }
        Ok(Self {
            seconds,
            ends: match mode {
                QuitMode::Timeout => "when its time is over",
                QuitMode::FirstDone => "when the first thread finds nothing more to do",
                QuitMode::AllDone => "when all threads find nothing more to do",
            },
            bytes_at_start: total(filesets.iter().map(|fileset| fileset.bytes_at_start)),
            bytes_at_most: total(filesets.iter().map(|fileset| fileset.bytes)),
            filesets,
            processes: processes.values().sum(),
            thread_count: program.threads.iter().map(ThreadPlan::count).sum(),
            memory: total(
                program
                    .threads
                    .iter()
                    .map(|plan| (plan.memory as u64).saturating_mul(plan.count() as u64)),
            ),
            rate: program.rate.as_ref().and_then(|rate| match rate {
                Number::Fixed(rate) if *rate <= 0.0 => None,
                rate => Some(number(rate)),
            }),
            threads: program
                .threads
                .iter()
                .map(|plan| OfThread {
                    process: plan.process.clone(),
                    processes: plan.process_instances,
                    name: plan.name.clone(),
                    threads_of_each: plan.instances,
                    memory_of_each: plan.memory,
                    flowops: flowops(program, plans, &plan.steps),
                })
                .collect(),
            system: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for each in &self.filesets {
            let _ = writeln!(
                text,
                "fileset {}: {} files ({} at the start) of {} in {} directories below {}, {} deep; {} leaf directories",
                each.name,
                each.files,
                each.files_at_start,
                size(each.bytes),
                each.directories,
                each.path,
                each.depth,
                each.leaf_directories
            );
        }
        for each in &self.threads {
            let _ = writeln!(
                text,
                "process {} ({}), thread {} ({} in each{}):",
                each.process,
                each.processes,
                each.name,
                each.threads_of_each,
                if each.memory_of_each > 0 {
                    format!(", {} of memory each", size(each.memory_of_each as u64))
                } else {
                    String::new()
                }
            );
            for flowop in &each.flowops {
                let _ = writeln!(text, "  {flowop}");
            }
        }
        let _ = writeln!(
            text,
            "in all: {} processes, {} threads; {} on disk at the start, {} when all files exist, and what flowops add; {} of memory",
            self.processes,
            self.thread_count,
            size(self.bytes_at_start),
            size(self.bytes_at_most),
            size(self.memory)
        );
        let time = self.seconds.map_or_else(String::new, |seconds| {
            format!(", after {seconds} s at most")
        });
        let _ = writeln!(text, "ends {}{time}", self.ends);
        if let Some(rate) = &self.rate {
            let _ = writeln!(text, "events a second: {rate}");
        }
        for command in &self.system {
            let _ = writeln!(text, "with --allow-system the shell does: {command}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }
}

impl OfFileset {
    fn new(plan: &Plan, seed: u64) -> Result<Self, String> {
        let tree = plan_tree(plan, seed)?;
        let at_start = share_of(tree.files.len(), plan.prealloc);
        let bytes = tree.bytes();
        // Which of them exist is drawn when they are made; on average it is this.
        let share = at_start as f64 / tree.files.len().max(1) as f64;
        Ok(Self {
            name: plan.name.clone(),
            path: plan.path.display().to_string(),
            files: tree.files.len(),
            files_at_start: at_start,
            directories: tree.dirs.len(),
            leaf_directories: tree.leaf_dirs.len(),
            depth: tree.depth,
            bytes,
            bytes_at_start: crate::number::count(bytes as f64 * share),
        })
    }
}

fn flowops(program: &Program, plans: &[Plan], steps: &[Step]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in steps {
        match step {
            Step::Once(operation) => lines.push(describe(program, plans, operation)),
            Step::Repeat(times, steps) => {
                let times = number(times);
                let within = flowops(program, plans, steps);
                if times == "1" {
                    lines.extend(within);
                } else {
                    lines.push(format!("{times} times:"));
                    lines.extend(within.into_iter().map(|line| format!("  {line}")));
                }
            }
        }
    }
    lines
}

fn describe(program: &Program, plans: &[Plan], operation: &Operation) -> String {
    let mut line = format!(
        "{}: {}",
        program.flowops[operation.index].name,
        operation.kind.name()
    );
    let mut add = |word: &str, value: String| {
        let _ = write!(line, ", {word}{value}");
    };
    if let Some(fileset) = operation.fileset {
        add("of ", plans[fileset].name.clone());
    }
    match &operation.io_size {
        Number::Fixed(0.0) => {}
        Number::Fixed(bytes) => add("", size(crate::number::count(*bytes))),
        bytes @ Number::Random(_) => add("bytes ", number(bytes)),
    }
    for (is, word) in [
        (operation.random, "at random places"),
        (operation.synchronous, "synchronous"),
        (operation.direct, "past the page cache"),
        (operation.open_next, "slots in turn"),
        (operation.blocking, "waiting for the one that takes"),
    ] {
        if is {
            add(word, String::new());
        }
    }
    if operation.working_set > 0 {
        add("within ", size(operation.working_set));
    }
    if operation.fd > 0 {
        add("slot ", operation.fd.to_string());
    }
    if operation.value != Number::Fixed(0.0) {
        add("value ", number(&operation.value));
    }
    if operation.iterations != Number::Fixed(1.0) {
        add("", format!("{} times", number(&operation.iterations)));
    }
    line
}

fn number(number: &Number) -> String {
    match number {
        Number::Fixed(value) => value.to_string(),
        Number::Random(law) => format!("at random, {:.3} on average", law.mean()),
    }
}

/// A sum; what is too large for one is the largest.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} bytes")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}
