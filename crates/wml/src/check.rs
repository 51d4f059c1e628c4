//! What can be said of a workload before it runs: what filebench would refuse or break down on is an
//! error, what it accepts in silence and cannot mean is a warning.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{
    Assigned, Attributes, Command, CommandKind, Composite, Direction, Fileset, FilesetAttribute,
    Flowop, FlowopAttribute, FlowopKind, FlowopType, Key, Position, Process, ProcessAttribute,
    QuitMode, Script, ThreadAttribute, Value,
};
use crate::error::Error;
use crate::lexer::quote;
use crate::parser::flowop_types;
use crate::values::{Held, Variables};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot run.
    Error,
    /// It runs, but hardly as it is meant.
    Warning,
    /// An older form, or the like.
    Note,
}

/// Something that a reader should know of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What and where.
    pub error: Error,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let Error {
            name,
            line,
            column,
            message,
        } = &self.error;
        write!(f, "{name}:{line}:{column}: {severity}: {message}")
    }
}

/// A flowop as a thread does it, composites put in place of their uses.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Its name: of a composite's flowops `outer.inner`.
    pub name: String,
    /// What it does.
    pub kind: FlowopType,
    /// As it is written.
    pub flowop: &'a Flowop,
    /// What its attributes' variables are.
    pub variables: Variables,
}

/// More flowops than this come of no workload that anybody wrote; composites within composites could give
/// any number.
pub const MOST_STEPS: usize = 100_000;

/// How deep composite flowops may use each other.
pub const DEEPEST_COMPOSITE: u32 = 64;

/// Nobody reads more findings than this.
const MOST_FINDINGS: usize = 1_000;

/// How often the processes are looked over before the end: new ones may be defined after a run.
const MOST_LOOKS: u32 = 4;

/// As many workloads may be loaded in all, and as deep.
const MOST_LOADS: u32 = 64;
const DEEPEST_LOAD: u32 = 8;

/// Looks a workload over: as [`parse`](crate::parse) left it, with `variables` as they are before its first command
/// (none, or with replacements). `load` gives the script that the older command `load` names.
pub fn check(
    script: &Script,
    variables: Variables,
    load: &dyn Fn(&str) -> Option<Result<Script, Error>>,
) -> Vec<Finding> {
    let mut checker = Checker {
        name: script.name.clone(),
        findings: Vec::new(),
        variables,
        filesets: BTreeMap::new(),
        composites: BTreeMap::new(),
        processes: Vec::new(),
        checked: 0,
        looks: 0,
        complete: true,
        mode: QuitMode::default(),
        rate: Rate::Missing,
        created: false,
        runs: 0,
        loads: 0,
        load,
    };
    checker.script(script, 0);
    checker.end();
    let mut findings = checker.findings;
    // Loaded files' notes stand among them; a file's own findings are in the order of its text.
    let place = |error: &Error| (error.name != script.name, error.name.clone(), error.at());
    findings.sort_by_cached_key(|finding| place(&finding.error));
    findings.dedup();
    findings
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    Missing,
    Zero,
    Given,
}

struct Checker<'a> {
    name: String,
    findings: Vec<Finding>,
    variables: Variables,
    /// By name: the file that it is in, and what it is.
    filesets: BTreeMap<String, Fileset>,
    composites: BTreeMap<String, Composite>,
    processes: Vec<(String, Process)>,
    /// How many of the processes were looked at, and how often.
    checked: usize,
    looks: u32,
    /// All their flowops are known: what is missing as a target is missing.
    complete: bool,
    mode: QuitMode,
    rate: Rate,
    created: bool,
    runs: u32,
    loads: u32,
    load: &'a dyn Fn(&str) -> Option<Result<Script, Error>>,
}

impl Checker<'_> {
    fn add(&mut self, severity: Severity, at: Position, message: impl Into<String>) {
        let error = Error::new(&self.name, at, message);
        self.push(severity, error);
    }

    fn push(&mut self, severity: Severity, error: Error) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Finding { severity, error });
        }
    }

    fn error(&mut self, at: Position, message: impl Into<String>) {
        self.add(Severity::Error, at, message);
    }

    fn warning(&mut self, at: Position, message: impl Into<String>) {
        self.add(Severity::Warning, at, message);
    }

    /// The result, if it is one; else its error is a finding.
    fn result<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(mut error) => {
                error.name.clone_from(&self.name);
                self.push(Severity::Error, error);
                None
            }
        }
    }

    fn script(&mut self, script: &Script, depth: u32) {
        for note in &script.notes {
            self.add(Severity::Note, note.at, note.message.clone());
        }
        self.commands(&script.commands, depth);
    }

    fn commands(&mut self, commands: &[Command], depth: u32) {
        for command in commands {
            self.command(command, depth);
        }
    }

    fn command(&mut self, command: &Command, depth: u32) {
        let at = command.at;
        match &command.kind {
            CommandKind::Set(assignment) => {
                let assigned = self.variables.assign(assignment);
                if self.result(assigned).is_some() {
                    let name = assignment.variable.name.clone();
                    let written =
                        matches!(assignment.value, Assigned::Random(_) | Assigned::Custom(_));
                    self.distribution(&name, written);
                }
            }
            CommandKind::SetParameter {
                variable,
                part,
                value,
            } => {
                let set = self.variables.set_parameter(variable, *part, value);
                if self.result(set).is_some() {
                    self.distribution(&variable.name, true);
                }
            }
            CommandKind::SetMode(mode) => self.mode = *mode,
            CommandKind::DefineFileset(fileset) => self.define_fileset(fileset),
            CommandKind::DefineComposite(composite) => self.define_composite(composite),
            CommandKind::DefineProcess(process) => {
                let name = process.attributes.get(ProcessAttribute::Name);
                if self.name_of(process.at, name, "the process").is_some() {
                    self.processes.push((self.name.clone(), process.clone()));
                }
            }
            CommandKind::CreateFiles => {
                if self.created {
                    self.warning(
                        at,
                        "the files are made already; filebench passes over a second `create files`",
                    );
                }
                self.created = true;
            }
            CommandKind::CreateProcesses => self.look(),
            CommandKind::Run { seconds } | CommandKind::PsRun { seconds, .. } => {
                if let Some(seconds) = seconds {
                    self.seconds(seconds);
                }
                // Of a loaded workload the run counts only where nothing else runs it: then the end looks it over.
                if depth == 0 {
                    self.run(at);
                } else {
                    self.runs += 1;
                }
            }
            CommandKind::Round { warmup, seconds } => {
                for value in [warmup, seconds].into_iter().flatten() {
                    self.seconds(value);
                }
                self.run(at);
            }
            CommandKind::Sleep(seconds) | CommandKind::Warmup(seconds) => self.seconds(seconds),
            CommandKind::Eventgen { rate } => self.eventgen(rate.as_ref()),
            CommandKind::Foreach {
                variable,
                values,
                commands,
            } => {
                // The commands are looked over once, with the first of the values.
                if let Some(value) = values.first() {
                    let bound = self.variables.bind(&variable.name, value);
                    self.result(bound);
                }
                self.commands(commands, depth);
            }
            CommandKind::Load(text) => {
                let name = self.variables.text(text);
                self.load(at, &name, depth);
            }
            _ => {}
        }
    }

    fn load(&mut self, at: Position, name: &str, depth: u32) {
        if depth == DEEPEST_LOAD || self.loads == MOST_LOADS {
            self.error(
                at,
                "workloads load each other without an end, expected fewer `load`",
            );
            return;
        }
        self.loads += 1;
        match (self.load)(name) {
            None => self.error(at, format!("the workload {} is not there, expected a file of this name and `.f`, or a built-in one", quote(name))),
            Some(Err(error)) => self.push(Severity::Error, error),
            Some(Ok(script)) => {
                let outer = std::mem::replace(&mut self.name, script.name.clone());
                let provided = self.variables.provide(&script);
                self.result(provided);
                self.script(&script, depth + 1);
                self.name = outer;
            }
        }
    }

    /// What is wrong with the law that a variable has now.
    fn distribution(&mut self, name: &str, written: bool) {
        let Some(held @ (Held::Random(_) | Held::Custom(_))) = self.variables.get(name) else {
            return;
        };
        let at = match held {
            Held::Random(random) => random.at,
            Held::Custom(custom) => custom.at,
            _ => return,
        };
        let built = self.variables.distribution(held);
        if let (Some((_, warnings)), true) = (self.result(built), written) {
            for warning in warnings {
                self.warning(at, format!("${name}: {warning}"));
            }
        }
    }

    fn seconds(&mut self, value: &Value) {
        let seconds = self.variables.fixed(value);
        if let Some(seconds) = self.result(seconds)
            && seconds < 0.0
        {
            self.error(value.at, "the time is below 0, expected seconds");
        }
    }

    fn eventgen(&mut self, rate: Option<&Value>) {
        let Some(value) = rate else { return };
        self.rate = Rate::Given;
        let refused = self.variables.refuse_negative("rate", value);
        self.result(refused);
        let number = self.variables.number(value);
        if let Some(number) = self.result(number)
            && number.fixed() == Some(0.0)
        {
            self.rate = Rate::Zero;
            self.warning(
                value.at,
                "a rate of 0 is no limit: the flowops that take events go on at once",
            );
        }
    }

    fn name_of(&mut self, at: Position, value: Option<&Value>, what: &str) -> Option<String> {
        let Some(value) = value else {
            self.error(at, format!("{what} has no name, expected `name=...`"));
            return None;
        };
        let name = self.variables.name(value);
        self.result(name)
    }

    // ---- filesets -----------------------------------------------------------------------------

    fn define_fileset(&mut self, fileset: &Fileset) {
        let what = if fileset.single {
            "the file"
        } else {
            "the fileset"
        };
        let attributes = &fileset.attributes;
        let name = self.name_of(fileset.at, attributes.get(FilesetAttribute::Name), what);
        if attributes.get(FilesetAttribute::Path).is_none() {
            self.error(
                fileset.at,
                format!("{what} has no path, expected `path=...`"),
            );
        }
        if self.created {
            self.warning(
                fileset.at,
                format!("{what} is defined after `create files`; filebench never makes it"),
            );
        }
        let Some(name) = name else { return };
        if name.is_empty() || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            self.error(
                attributes
                    .get(FilesetAttribute::Name)
                    .map_or(fileset.at, |value| value.at),
                format!(
                    "{} cannot be a folder's name, expected one without `..` and empty parts",
                    quote(&name)
                ),
            );
        }
        if self
            .filesets
            .insert(name.clone(), fileset.clone())
            .is_some()
        {
            self.warning(
                fileset.at,
                format!(
                    "there is a fileset {} already; it is hidden by this one",
                    quote(&name)
                ),
            );
        }
    }

    /// What can be said of a fileset when it is made.
    fn fileset(&mut self, fileset: &Fileset) {
        use FilesetAttribute as A;
        let attributes = &fileset.attributes;
        let what = if fileset.single {
            "the file"
        } else {
            "the fileset"
        };
        let refused = self.variables.refuse_senseless(attributes);
        self.result(refused);
        for key in [A::Path, A::Name] {
            if let Some(value) = attributes.get(key) {
                let text = self.variables.name(value);
                self.result(text);
            }
        }
        for key in [A::Paralloc, A::Reuse, A::TrustTree, A::Cached] {
            if let Some(value) = attributes.get(key) {
                let flag = self.variables.boolean(value);
                self.result(flag);
            }
        }
        let flag = |checker: &mut Self, key| match attributes.get(key) {
            Some(value) => {
                let flag = checker.variables.boolean(value);
                checker.result(flag).unwrap_or(false)
            }
            None => false,
        };
        if flag(self, A::ReadOnly) && flag(self, A::WriteOnly) {
            self.warning(
                fileset.at,
                format!("{what} is read-only and write-only; it is taken for read-only"),
            );
        }
        if let Some(value) = attributes.get(A::Prealloc) {
            let percentage = self.variables.percentage(value);
            self.result(percentage);
        }
        let size = self.variables.file_size(fileset);
        self.result(size);
        let entropy = self.variables.entropy(fileset);
        self.result(entropy);
        if fileset.single {
            return;
        }
        let entries = self.count(attributes, A::Entries);
        let leaves = self.count(attributes, A::LeafDirs);
        if entries == Some(0.0) && leaves == Some(0.0) {
            self.warning(fileset.at, format!("{what} has neither files nor leaf directories, expected `entries=...` or `leafdirs=...`"));
        }
        match attributes.get(A::DirWidth) {
            None => self.warning(
                fileset.at,
                format!("{what} has no `dirwidth`: filebench makes a directory for each file"),
            ),
            Some(value) => {
                let width = self.variables.number(value);
                if let Some(width) = self.result(width)
                    && width.fixed() == Some(0.0)
                {
                    self.warning(value.at, "a width of 0 makes a directory for each file");
                }
            }
        }
        if let Some(value) = attributes.get(A::DirDepthRv) {
            let depth = self.variables.number(value);
            if let Some(depth) = self.result(depth)
                && depth.fixed().is_some()
            {
                self.warning(
                    value.at,
                    "`dirdepthrv` is always the same, expected a random variable",
                );
            }
        }
        if let Some(value) = attributes.get(A::DirGamma) {
            let gamma = self.variables.fixed(value);
            self.result(gamma);
        }
    }

    /// A count that is read once; a random one is fine and not known.
    fn count<K: Key>(&mut self, attributes: &Attributes<K>, key: K) -> Option<f64> {
        let Some(value) = attributes.get(key) else {
            return Some(0.0);
        };
        let number = self.variables.number(value);
        self.result(number)?.fixed()
    }

    // ---- composites and processes -------------------------------------------------------------

    fn define_composite(&mut self, composite: &Composite) {
        use crate::ast::CompositeAttribute;
        let name = self.name_of(
            composite.at,
            composite.attributes.get(CompositeAttribute::Name),
            "the composite flowop",
        );
        self.kinds(&composite.flowops);
        let Some(name) = name else { return };
        if FlowopType::find(&name).is_some() {
            self.error(
                composite.at,
                format!(
                    "{} is a type of flowop, expected another name",
                    quote(&name)
                ),
            );
            return;
        }
        self.composites.insert(name, composite.clone());
    }

    /// Whether the types of flowops exist; a composite must be defined before it is used.
    fn kinds(&mut self, flowops: &[Flowop]) -> bool {
        let mut all = true;
        for flowop in flowops {
            let FlowopKind::Composite(name) = &flowop.kind else {
                if let Some(local) = flowop.locals.first() {
                    self.warning(
                        local.variable.at,
                        format!(
                            "${} is for no composite flowop: it is not used",
                            local.variable.name
                        ),
                    );
                }
                continue;
            };
            if let Some(composite) = self.composites.get(name) {
                let declared: BTreeSet<&str> = composite
                    .locals
                    .iter()
                    .map(|local| local.variable.name.as_str())
                    .collect();
                let unknown: Vec<(Position, String)> = flowop
                    .locals
                    .iter()
                    .filter(|local| !declared.contains(local.variable.name.as_str()))
                    .map(|local| {
                        let message = format!(
                            "the composite flowop {} has no variable ${}",
                            quote(name),
                            local.variable.name
                        );
                        (local.variable.at, message)
                    })
                    .collect();
                for (at, message) in unknown {
                    self.warning(at, message);
                }
                continue;
            }
            all = false;
            let known: Vec<&str> = self
                .composites
                .keys()
                .map(String::as_str)
                .take(20)
                .collect();
            let composites = if known.is_empty() {
                "no composite flowop is defined before it".to_owned()
            } else {
                format!(
                    "or a composite flowop defined before it: {}",
                    known.join(", ")
                )
            };
            self.error(
                flowop.kind_at,
                format!(
                    "there is no flowop {}, expected one of {}; {composites}",
                    quote(name),
                    flowop_types()
                ),
            );
        }
        all
    }

    fn run(&mut self, at: Position) {
        self.runs += 1;
        if self.processes.is_empty() {
            self.error(
                at,
                "there is nothing to run, expected a `define process` before it",
            );
        }
        self.look();
    }

    fn look(&mut self) {
        if self.looks < MOST_LOOKS {
            self.processes();
        }
    }

    /// Looks over the processes, if there are new ones.
    fn processes(&mut self) {
        if self.checked == self.processes.len() {
            return;
        }
        self.looks += 1;
        let filesets: Vec<Fileset> = self.filesets.values().cloned().collect();
        for fileset in &filesets {
            self.fileset(fileset);
        }
        let processes = self.processes.clone();
        // Targets may be in any process.
        let mut targets: BTreeMap<String, FlowopType> = BTreeMap::new();
        let mut threads = Vec::new();
        let composites = self.composites.clone();
        self.complete = true;
        for (name, process) in &processes {
            let outer = std::mem::replace(&mut self.name, name.clone());
            let runs = self.process(process);
            for (thread, runs) in process.threads.iter().zip(runs) {
                // What has no instance is never looked at by filebench either.
                if !runs {
                    continue;
                }
                if !self.kinds(&thread.flowops) {
                    self.complete = false;
                    continue;
                }
                let steps = expand(&thread.flowops, &composites, &self.variables);
                if let Some(steps) = self.result(steps) {
                    for step in &steps {
                        targets.insert(step.name.clone(), step.kind);
                    }
                    threads.push((name.clone(), thread, steps));
                } else {
                    self.complete = false;
                }
            }
            self.name = outer;
        }
        for (name, thread, steps) in threads {
            let outer = std::mem::replace(&mut self.name, name);
            self.thread(&thread.attributes, &steps, &targets);
            self.name = outer;
        }
        self.checked = self.processes.len();
    }

    /// Says of each thread whether there is any of it.
    fn process(&mut self, process: &Process) -> Vec<bool> {
        let refused = self.variables.refuse_senseless(&process.attributes);
        self.result(refused);
        let none = self.instances(&process.attributes, ProcessAttribute::Instances) == Some(0.0);
        if none {
            self.warning(
                process.at,
                "the process has no instance: nothing of it runs",
            );
        }
        if let Some(value) = process.attributes.get(ProcessAttribute::Nice) {
            let nice = self.variables.fixed(value);
            self.result(nice);
        }
        let mut runs = Vec::with_capacity(process.threads.len());
        for thread in &process.threads {
            let refused = self.variables.refuse_senseless(&thread.attributes);
            self.result(refused);
            self.name_of(
                thread.at,
                thread.attributes.get(ThreadAttribute::Name),
                "the thread",
            );
            let empty = self.instances(&thread.attributes, ThreadAttribute::Instances) == Some(0.0);
            if empty && !none {
                self.warning(thread.at, "the thread has no instance: nothing of it runs");
            }
            runs.push(!none && !empty);
        }
        runs
    }

    fn instances<K: Key>(&mut self, attributes: &Attributes<K>, key: K) -> Option<f64> {
        if attributes.get(key).is_none() {
            return Some(1.0);
        }
        self.count(attributes, key).map(f64::trunc)
    }

    fn thread(
        &mut self,
        attributes: &Attributes<ThreadAttribute>,
        steps: &[Step<'_>],
        targets: &BTreeMap<String, FlowopType>,
    ) {
        let memory = match attributes.get(ThreadAttribute::MemSize) {
            Some(value) => {
                let size = self.variables.fixed(value);
                self.result(size).unwrap_or_default()
            }
            None => 0.0,
        };
        if let Some(value) = attributes.get(ThreadAttribute::IoPrio) {
            let priority = self.variables.fixed(value);
            self.result(priority);
        }
        let own: BTreeMap<&str, FlowopType> = steps
            .iter()
            .map(|step| (step.name.as_str(), step.kind))
            .collect();
        let mut read = Vec::with_capacity(steps.len());
        for step in steps {
            let facts = self.facts(step);
            self.step(step, &facts, memory, &own, targets);
            read.push(facts);
        }
        self.slots(steps, &read);
    }

    /// What is known of a flowop's attributes.
    fn facts(&mut self, step: &Step<'_>) -> Facts {
        use FlowopAttribute as A;
        let attributes = &step.flowop.attributes;
        let refused = step.variables.refuse_senseless(attributes);
        self.result(refused);
        let number = |checker: &mut Self, key: A| match attributes.get(key) {
            Some(value) => {
                let number = step.variables.number(value);
                checker.result(number).and_then(|number| number.fixed())
            }
            None => Some(0.0),
        };
        let flag = |checker: &mut Self, key: A| match attributes.get(key) {
            Some(value) => {
                let flag = step.variables.boolean(value);
                checker.result(flag).unwrap_or(false)
            }
            None => false,
        };
        let name = |checker: &mut Self, key: A| {
            let value = attributes.get(key)?;
            let name = step.variables.name(value);
            Some((value.at, checker.result(name)?))
        };
        let facts = Facts {
            fileset: name(self, A::FilesetName),
            target: name(self, A::Target),
            fd: number(self, A::Fd),
            source: number(self, A::SrcFd),
            size: number(self, A::IoSize),
            working_set: number(self, A::WorkingSet),
            random: flag(self, A::Random),
            direct: flag(self, A::DirectIo),
            rotates: flag(self, A::OpenNext),
        };
        for key in [A::DSync, A::Blocking, A::NoReadAhead] {
            flag(self, key);
        }
        for key in [A::Indexed, A::Iters, A::HighWater] {
            number(self, key);
        }
        if let Some(value) = attributes.get(A::Value) {
            if step.kind == FlowopType::Print {
                let text = step.variables.name(value);
                self.result(text);
            } else {
                let number = step.variables.number(value);
                self.result(number);
            }
        }
        facts
    }

    fn step(
        &mut self,
        step: &Step<'_>,
        facts: &Facts,
        memory: f64,
        own: &BTreeMap<&str, FlowopType>,
        targets: &BTreeMap<String, FlowopType>,
    ) {
        let at = step.flowop.at;
        let what = format!("{} {}", step.kind.name(), quote(&step.name));
        for (key, slot) in [("fd", facts.fd), ("srcfd", facts.source)] {
            if let Some(slot) = slot
                && slot > 127.0
            {
                self.error(at, format!("{what}: {key} is {slot}, expected 0 to 127"));
            }
        }
        self.step_fileset(step, facts, &what);
        self.step_size(step, facts, memory, &what);
        self.step_value(step, &what);
        self.step_target(step, facts, &what, own, targets);
    }

    fn step_fileset(&mut self, step: &Step<'_>, facts: &Facts, what: &str) {
        use FlowopType as T;
        let at = step.flowop.at;
        let Some((name_at, name)) = &facts.fileset else {
            let by_slot = facts.fd.is_none_or(|fd| fd > 0.0);
            let needed = match step.kind {
                T::OpenFile
                | T::CreateFile
                | T::MakeDir
                | T::RemoveDir
                | T::ListDir
                | T::FsyncSet => true,
                T::DeleteFile | T::StatFile => !by_slot,
                _ => false,
            };
            let written = step.flowop.attributes.get(FlowopAttribute::FilesetName);
            if needed && written.is_none() {
                self.error(
                    at,
                    format!("{what} has no fileset, expected `filesetname=...`"),
                );
            }
            return;
        };
        let Some(fileset) = self.filesets.get(name) else {
            let known: Vec<&str> = self.filesets.keys().map(String::as_str).take(20).collect();
            let known = if known.is_empty() {
                "a fileset; none is defined".to_owned()
            } else {
                known.join(", ")
            };
            self.error(
                *name_at,
                format!(
                    "{what}: there is no fileset {}, expected {known}",
                    quote(name)
                ),
            );
            return;
        };
        let set = |key| {
            fileset
                .attributes
                .get(key)
                .and_then(|value| self.variables.boolean(value).ok())
                .unwrap_or(false)
        };
        let (read_only, write_only) = (
            set(FilesetAttribute::ReadOnly),
            set(FilesetAttribute::WriteOnly),
        );
        let leaves = fileset.attributes.get(FilesetAttribute::LeafDirs).is_some();
        let planned = self
            .variables
            .file_size(fileset)
            .ok()
            .and_then(|size| size.fixed());
        if matches!(step.kind, T::MakeDir | T::RemoveDir) && !leaves {
            self.error(
                *name_at,
                format!(
                    "{what}: the fileset {} has no leaf directories, expected `leafdirs=...` in it",
                    quote(name)
                ),
            );
        }
        if read_only && step.kind.direction() == Direction::Write {
            self.warning(
                *name_at,
                format!(
                    "{what} writes to the fileset {}, which is read-only",
                    quote(name)
                ),
            );
        }
        if write_only && !read_only && step.kind.direction() == Direction::Read {
            self.warning(
                *name_at,
                format!(
                    "{what} reads from the fileset {}, which is write-only",
                    quote(name)
                ),
            );
        }
        let random_place = facts.random && matches!(step.kind, T::Read | T::Write | T::AioWrite);
        if let (true, Some(size), Some(0.0), Some(planned)) =
            (random_place, facts.size, facts.working_set, planned)
            && size > planned
        {
            self.error(
                step.flowop.at,
                format!("{what} is of {size} bytes at a random place in files of {planned}, expected files at least as large"),
            );
        }
    }

    fn step_size(&mut self, step: &Step<'_>, facts: &Facts, memory: f64, what: &str) {
        use FlowopType as T;
        let at = step.flowop.at;
        let Some(size) = facts.size else { return };
        let sized = matches!(
            step.kind,
            T::Read | T::Write | T::AioWrite | T::AppendFile | T::AppendFileRand
        );
        if sized && (0.0..1.0).contains(&size) {
            let written = step
                .flowop
                .attributes
                .get(FlowopAttribute::IoSize)
                .is_some();
            let has = if written {
                "an iosize of 0"
            } else {
                "no iosize"
            };
            self.error(at, format!("{what} has {has}, expected `iosize=...`"));
            return;
        }
        if step.kind == T::AioWrite && !facts.random {
            self.error(
                at,
                format!("{what} is not random, expected `random`: filebench has no other"),
            );
        }
        let moves = sized || matches!(step.kind, T::ReadWholeFile | T::WriteWholeFile);
        if !moves || size < 1.0 {
            return;
        }
        if memory > 0.0 && size > memory {
            self.error(at, format!("{what} has an iosize of {size}, expected at most its thread's memsize of {memory}"));
        }
        if facts.direct && size % 512.0 != 0.0 {
            self.warning(at, format!("{what} has directio and an iosize of {size}; most file systems want multiples of 512"));
        }
        if let Some(set) = facts.working_set
            && facts.random
            && set >= 1.0
            && size > set
        {
            self.error(
                at,
                format!("{what} has an iosize of {size}, expected at most its workingset of {set}"),
            );
        }
    }

    fn step_value(&mut self, step: &Step<'_>, what: &str) {
        use FlowopType as T;
        let at = step.flowop.at;
        let wants = match step.kind {
            T::FinishOnCount | T::FinishOnBytes => "the thread ends at once",
            T::Hog | T::Delay | T::SemBlock | T::SemPost => "it does nothing",
            T::Print | T::TestRandVar => "there is nothing to show",
            _ => return,
        };
        if step.flowop.attributes.get(FlowopAttribute::Value).is_none() {
            self.warning(
                at,
                format!("{what} has no value, expected `value=...`: {wants}"),
            );
        }
        if matches!(step.kind, T::FinishOnCount | T::FinishOnBytes)
            && self.mode == QuitMode::Timeout
        {
            self.warning(
                at,
                format!("{what} ends the run as a failure where the run ends by time, expected `set mode quit firstdone` or `alldone` before it"),
            );
        }
    }

    fn step_target(
        &mut self,
        step: &Step<'_>,
        facts: &Facts,
        what: &str,
        own: &BTreeMap<&str, FlowopType>,
        targets: &BTreeMap<String, FlowopType>,
    ) {
        use FlowopType as T;
        let at = step.flowop.at;
        let limit = matches!(
            step.kind,
            T::EventLimit | T::IopsLimit | T::OpsLimit | T::BwLimit
        );
        if limit && self.rate != Rate::Given {
            let why = if self.rate == Rate::Zero {
                "the rate is 0"
            } else {
                "there is no `eventgen rate=...`"
            };
            self.warning(at, format!("{what} limits nothing: {why}"));
        }
        let partner = match step.kind {
            T::SemPost => Some(T::SemBlock),
            T::Wakeup => Some(T::Block),
            _ => None,
        };
        let Some((target_at, target)) = &facts.target else {
            if let Some(partner) = partner {
                self.error(
                    at,
                    format!(
                        "{what} has no target, expected `target=` and the name of a {}",
                        partner.name()
                    ),
                );
            }
            return;
        };
        if let Some(partner) = partner {
            match targets.get(target) {
                None if !self.complete => {}
                None => self.error(
                    *target_at,
                    format!(
                        "{what}: there is no flowop {}, expected the name of a {}",
                        quote(target),
                        partner.name()
                    ),
                ),
                Some(found) if *found != partner => self.warning(
                    *target_at,
                    format!(
                        "{what}: {} is a {}, expected a {}",
                        quote(target),
                        found.name(),
                        partner.name()
                    ),
                ),
                Some(_) => {}
            }
        } else if matches!(
            step.kind,
            T::IopsLimit | T::OpsLimit | T::BwLimit | T::FinishOnCount | T::FinishOnBytes
        ) {
            match own.get(target.as_str()) {
                None => self.error(
                    *target_at,
                    format!(
                        "{what}: its thread has no flowop {}, expected the name of one",
                        quote(target)
                    ),
                ),
                Some(found)
                    if matches!(step.kind, T::IopsLimit | T::BwLimit)
                        && found.direction() == Direction::Neither =>
                {
                    self.error(
                        *target_at,
                        format!(
                            "{what}: {} is a {}, expected one that reads or writes",
                            quote(target),
                            found.name()
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }

    /// Follows a thread's open files through its list, twice: what is open at the end is open at the start.
    fn slots(&mut self, steps: &[Step<'_>], facts: &[Facts]) {
        use FlowopType as T;
        // Slots that change from call to call, or that a variable names, cannot be followed.
        if facts
            .iter()
            .any(|facts| facts.rotates || facts.fd.is_none())
        {
            return;
        }
        let ends = steps
            .iter()
            .any(|step| matches!(step.kind, T::FinishOnCount | T::FinishOnBytes));
        let mut open: BTreeMap<u64, bool> = BTreeMap::new();
        for pass in 0..2 {
            if pass == 1 && ends {
                return;
            }
            // Whether a thread comes to its list's end within the run's time is not known.
            let (severity, when) = if pass == 0 {
                (Severity::Error, "")
            } else {
                (Severity::Warning, " when the thread comes to it again")
            };
            for (step, facts) in steps.iter().zip(facts) {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 127
                let slot = facts.fd.unwrap_or_default() as u64;
                let at = step.flowop.at;
                let what = format!("{} {}", step.kind.name(), quote(&step.name));
                let is_open = open.get(&slot).copied().unwrap_or(false);
                match step.kind {
                    T::OpenFile | T::CreateFile => {
                        if is_open {
                            self.add(severity, at, format!("{what} finds its slot {slot} open{when}, expected a closefile before it"));
                            return;
                        }
                        open.insert(slot, true);
                    }
                    T::CloseFile => {
                        if !is_open {
                            self.add(severity, at, format!("{what} finds its slot {slot} closed{when}, expected a flowop before it that opens a file with fd={slot}"));
                            return;
                        }
                        open.insert(slot, false);
                    }
                    T::Fsync if !is_open => {
                        self.add(severity, at, format!("{what} finds its slot {slot} closed{when}, expected a flowop before it that opens a file with fd={slot}"));
                        return;
                    }
                    T::Read
                    | T::Write
                    | T::AioWrite
                    | T::ReadWholeFile
                    | T::WriteWholeFile
                    | T::AppendFile
                    | T::AppendFileRand => {
                        if !is_open && facts.fileset.is_none() {
                            self.add(severity, at, format!("{what} finds its slot {slot} closed{when}, expected `filesetname=...` or a flowop before it that opens a file with fd={slot}"));
                            return;
                        }
                        open.insert(slot, true);
                    }
                    _ => {}
                }
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 127
                let source = facts.source.unwrap_or_default() as u64;
                if step.kind == T::WriteWholeFile && source != 0 && !open.contains_key(&source) {
                    self.error(at, format!("{what} has the size of the file in slot {source}, expected a flowop before it that opens one with fd={source}"));
                    return;
                }
            }
        }
    }

    fn end(&mut self) {
        self.processes();
        if self.runs == 0 {
            self.warning(
                Position { line: 1, column: 1 },
                "there is no `run`: filebench would do nothing",
            );
        }
    }
}

/// What is known of a flowop's attributes: nothing where a random variable says.
struct Facts {
    fileset: Option<(Position, String)>,
    target: Option<(Position, String)>,
    fd: Option<f64>,
    source: Option<f64>,
    size: Option<f64>,
    working_set: Option<f64>,
    random: bool,
    direct: bool,
    rotates: bool,
}

/// A thread's flowops in order, with composites' in place of their uses; a composite is done `iters` times, which is not
/// written out here. Refuses more than [`MOST_STEPS`].
pub fn expand<'a>(
    flowops: &'a [Flowop],
    composites: &'a BTreeMap<String, Composite>,
    variables: &Variables,
) -> Result<Vec<Step<'a>>, Error> {
    let mut steps = Vec::new();
    add_steps(flowops, composites, variables, ("", 0), &mut 0, &mut steps)?;
    Ok(steps)
}

fn add_steps<'a>(
    flowops: &'a [Flowop],
    composites: &'a BTreeMap<String, Composite>,
    variables: &Variables,
    (prefix, depth): (&str, u32),
    visited: &mut usize,
    steps: &mut Vec<Step<'a>>,
) -> Result<(), Error> {
    if depth > DEEPEST_COMPOSITE {
        let at = flowops
            .first()
            .map_or(Position { line: 1, column: 1 }, |flowop| flowop.at);
        return Err(variables.error(
            at,
            format!(
                "composite flowops use each other more than {DEEPEST_COMPOSITE} deep, expected less"
            ),
        ));
    }
    for flowop in flowops {
        *visited += 1;
        if *visited > MOST_STEPS {
            return Err(variables.error(
                flowop.at,
                format!("more than {MOST_STEPS} flowops come of one thread, expected fewer"),
            ));
        }
        let Some(name) = flowop.attributes.get(FlowopAttribute::Name) else {
            return Err(variables.error(flowop.at, "the flowop has no name, expected `name=...`"));
        };
        let name = format!("{prefix}{}", variables.name(name)?);
        match &flowop.kind {
            FlowopKind::Known(kind) => steps.push(Step {
                name,
                kind: *kind,
                flowop,
                variables: variables.clone(),
            }),
            FlowopKind::Composite(composite) => {
                let Some(inner) = composites.get(composite) else {
                    return Err(variables.error(
                        flowop.kind_at,
                        format!("there is no flowop {}", quote(composite)),
                    ));
                };
                let within = variables.within(inner, flowop)?;
                add_steps(
                    &inner.flowops,
                    composites,
                    &within,
                    (&format!("{name}."), depth + 1),
                    visited,
                    steps,
                )?;
            }
        }
    }
    Ok(())
}
