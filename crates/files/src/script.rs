//! Carries out a workload file's commands, in order, up to its run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_result::clock::now_ns;
use dyno_result::failure::Failure;
use dyno_result::figures::EndedBy;
use dyno_result::output::Output;
use dyno_wml::ast::{
    Assigned, Command, CommandKind, FlowopType, Listed, Position, QuitMode, Script, Text, Value,
};
use dyno_wml::{Error, Finding, Severity, Variables};
use parking_lot::Mutex;
use serde_json::json;

use crate::built_in;
use crate::compile::Defined;
use crate::device::devices;
use crate::explain::Explanation;
use crate::fileset::{Fileset, Made, Making, Plan};
use crate::multi;
use crate::program::Program;
use crate::recording::{Did, total};
use crate::result::{About, Creation, FilesResult, duration, is_counted, table};
use crate::run::{Interval, Manner, Ran, run};
use crate::space;

/// How long a run is that says nothing of it.
const DEFAULT_SECONDS: f64 = 60.0;
/// How long it is between prints of `psrun` that says nothing of it.
const DEFAULT_PERIOD: i64 = 10;
/// Workloads that load each other, so deep at most.
const DEEPEST: usize = 8;

/// What of a workload is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The filesets are made, and it runs.
    #[default]
    All,
    /// The filesets are made.
    Create,
    /// It runs on filesets that were made before.
    Run,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Create => "create",
            Self::Run => "run",
        }
    }
}

/// What is printed at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// filebench's log, with its table and its summary.
    #[default]
    Filebench,
    /// The result's text.
    Json,
}

/// What is wanted of a workload.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // switches of a command line
pub struct Request<'a> {
    /// The workload.
    pub script: &'a Script,
    /// Where other workloads lie that it loads.
    pub beside: Option<&'a Path>,
    /// Values in place of its variables' first ones.
    pub values: Vec<(String, Assigned)>,
    /// The values as they were given.
    pub values_given: BTreeMap<String, String>,
    /// How long it runs, in place of what it says.
    pub seconds: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// The length of an interval.
    pub interval: Duration,
    /// As filebench does it, where that differs and is not plainly wrong.
    pub compat: bool,
    /// Its commands of the shell may run.
    pub allow_system: bool,
    /// Block devices may be written over.
    pub allow_device: bool,
    /// Data say where they belong, and are looked at.
    pub verify: bool,
    /// No `io_uring`.
    pub no_ring: bool,
    /// What is carried out.
    pub phase: Phase,
    /// The result folder.
    pub out: Option<&'a Path>,
    /// What is printed.
    pub format: Format,
    /// A line an interval is printed.
    pub progress: bool,
    /// Ends it early.
    pub halt: Arc<AtomicBool>,
    /// Of the programs involved.
    pub versions: BTreeMap<String, String>,
}

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The workload or the command line is wrong.
    Usage(String),
    /// It could not be done.
    Failed(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Usage(error.to_string())
    }
}

/// What is wrong with a workload, and what a reader should know of it.
pub fn check(request: &Request) -> Result<Vec<Finding>, Stop> {
    let variables = variables(request)?;
    let load = |name: &str| find(request.beside, name);
    let mut findings = dyno_wml::check(request.script, variables, &load);
    // What is wrong beyond that is said by whoever goes on with it.
    if let Ok(looked) = look(request) {
        for device in devices(&looked.program, &looked.plans).map_err(Stop::Usage)? {
            let at = looked.defined_at[device.number];
            findings.push(Finding {
                severity: if device.written {
                    Severity::Warning
                } else {
                    Severity::Note
                },
                error: Error::new(&request.script.name, at, device.told()),
            });
        }
    }
    Ok(findings)
}

/// What would be done.
pub fn explain(request: &Request) -> Result<Explanation, Stop> {
    // Without errors it is no larger than it may be.
    let findings = without_errors(request)?;
    let looked = look(request)?;
    let mut explanation = Explanation::new(
        &looked.program,
        &looked.plans,
        request.seed,
        looked.seconds,
        looked.mode,
    )
    .map_err(Stop::Usage)?;
    explanation.system = looked
        .systems
        .into_iter()
        .map(|(_, command)| command)
        .collect();
    if looked.rounds > 0 {
        explanation.notes.push(format!(
            "{} rounds, one after another; the threads are those of the last",
            looked.rounds
        ));
    }
    explanation
        .notes
        .extend(findings.iter().map(ToString::to_string));
    Ok(explanation)
}

fn without_errors(request: &Request) -> Result<Vec<Finding>, Stop> {
    let findings = check(request)?;
    let error = findings
        .iter()
        .find(|finding| finding.severity == Severity::Error);
    match error {
        Some(finding) => Err(Stop::Usage(finding.error.to_string())),
        None => Ok(findings),
    }
}

/// Carries it out.
pub fn carry_out(request: &Request) -> Result<FilesResult, Stop> {
    // What is wrong is found before anything is made.
    without_errors(request)?;
    let looked = look(request)?;
    if let (Some((at, command)), false) = (looked.systems.first(), request.allow_system) {
        return Err(Stop::Usage(format!(
            "{}:{at}: would run `{command}` by the shell, which is done only with --allow-system",
            request.script.name
        )));
    }
    let devices = devices(&looked.program, &looked.plans).map_err(Stop::Usage)?;
    // The first phase leaves what is on a device alone.
    let is_written = |written: bool| written && request.phase != Phase::Create;
    if let Some(device) = devices.iter().find(|device| is_written(device.written))
        && !request.allow_device
    {
        return Err(Stop::Usage(format!(
            "{}:{}: {}",
            request.script.name,
            looked.defined_at[device.number],
            device.told()
        )));
    }
    let output = Mutex::new(None);
    if let Some(out) = request.out {
        let names = looked
            .program
            .flowops
            .iter()
            .filter(|named| is_counted(named.kind));
        let names = names.map(|named| named.name.clone()).collect();
        let created =
            Output::create(out, names, now_ns()).map_err(|error| unwritten(out, &error))?;
        *output.lock() = Some(created);
    }
    let mut walk = Walk::new(request, Some(&output))?;
    walk.only_read = devices
        .iter()
        .filter(|device| !is_written(device.written))
        .map(|device| device.number)
        .collect();
    let ended = walk.whole();
    let creation = walk.creation;
    let about = |creation| About {
        phase: request.phase.name(),
        seed: request.seed,
        workload: json!({
            "name": request.script.name,
            "values": request.values_given,
            "seconds": request.seconds,
            "compat": request.compat,
            "verify": request.verify,
        }),
        creation,
        versions: request.versions.clone(),
    };
    let result = match ended {
        Ok(Ended::Ran(result)) => *result,
        Ok(Ended::NotRun) => FilesResult::nothing(about(creation), EndedBy::Operations, None),
        Err(Trouble::Halted) => FilesResult::nothing(about(creation), EndedBy::Signal, None),
        Err(Trouble::Failed(failure)) => {
            FilesResult::nothing(about(creation), EndedBy::Error, Some(failure))
        }
        Err(Trouble::Stop(stop)) => return Err(stop),
    };
    if let (Some(output), Some(out)) = (output.into_inner(), request.out) {
        output
            .finish(&result)
            .map_err(|error| unwritten(out, &error))?;
    }
    if request.format == Format::Json
        && let Ok(text) = serde_json::to_string_pretty(&result)
    {
        // Whoever reads it may have gone.
        let _ = writeln!(std::io::stdout(), "{text}");
    }
    Ok(result)
}

fn unwritten(out: &Path, error: &std::io::Error) -> Stop {
    Stop::Failed(format!("writing the result to {}: {error}", out.display()))
}

fn variables(request: &Request) -> Result<Variables, Stop> {
    let mut variables = Variables::new(&request.script.name, request.compat);
    for (name, value) in &request.values {
        variables
            .replace(request.script, name, value.clone())
            .map_err(Stop::Usage)?;
    }
    Ok(variables)
}

/// The workload that another loads: one beside it, or one that is built in.
fn find(beside: Option<&Path>, name: &str) -> Option<Result<Script, Error>> {
    let plain = name.strip_suffix(".f").unwrap_or(name);
    if name.contains('/') {
        return None;
    }
    let file = beside.and_then(|folder| std::fs::read(folder.join(format!("{plain}.f"))).ok());
    let text = match file {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => built_in::text(plain)?.to_owned(),
    };
    Some(dyno_wml::parse(&text, name))
}

/// What a workload comes to, nothing done.
struct Looked {
    program: Program,
    plans: Vec<Plan>,
    /// Where each of them is defined.
    defined_at: Vec<Position>,
    systems: Vec<(Position, String)>,
    seconds: Option<f64>,
    mode: QuitMode,
    /// How many rounds there are; 0 where there is a run.
    rounds: usize,
}

fn look(request: &Request) -> Result<Looked, Stop> {
    let mut walk = Walk::new(request, None)?;
    let asked = match walk.commands(&request.script.commands, 0) {
        Ok(Next::Run(asked)) => asked,
        Ok(Next::Quit | Next::On) => walk.loaded_run.take().unwrap_or_default(),
        Err(Trouble::Stop(stop)) => return Err(stop),
        Err(Trouble::Failed(failure)) => return Err(Stop::Failed(failure.to_string())),
        Err(Trouble::Halted) => return Err(Stop::Failed("interrupted".to_owned())),
    };
    walk.refuse_unused()?;
    walk.plan_filesets()?;
    let defined_at = walk.defined.filesets.iter().map(|of| of.at).collect();
    if let Some(program) = walk.last_program {
        return Ok(Looked {
            program,
            seconds: Some(walk.rounds_s),
            mode: walk.mode,
            rounds: walk.rounds,
            defined_at,
            plans: walk.plans,
            systems: walk.systems,
        });
    }
    let program = if request.phase == Phase::Create && walk.defined.processes.is_empty() {
        Program::default()
    } else {
        walk.defined.program(&walk.plans)?
    };
    Ok(Looked {
        program,
        seconds: walk.seconds(&asked)?,
        mode: walk.mode,
        rounds: 0,
        defined_at,
        plans: walk.plans,
        systems: walk.systems,
    })
}

/// Why a walk ends.
enum Trouble {
    Stop(Stop),
    Failed(Failure),
    Halted,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Stop(error.into())
    }
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// How it went.
enum Ended {
    Ran(Box<FilesResult>),
    NotRun,
}

/// What comes after a command.
enum Next {
    On,
    Run(Asked),
    Quit,
}

/// The run that a workload asks for.
#[derive(Clone, Debug, Default)]
struct Asked {
    seconds: Option<Value>,
    /// Seconds between prints; below 0 each is of the time since the last.
    period: Option<i64>,
}

struct Walk<'a> {
    request: &'a Request<'a>,
    /// Where the result goes; none where nothing is done.
    output: Option<&'a Mutex<Option<Output>>>,
    defined: Defined,
    plans: Vec<Plan>,
    /// The block devices among them that nothing is written to.
    only_read: Vec<usize>,
    filesets: Vec<Fileset>,
    creation: Option<Creation>,
    mode: QuitMode,
    histograms: bool,
    warmup: f64,
    systems: Vec<(Position, String)>,
    master: Option<(String, String)>,
    /// What is run where the workload says nothing of it: what one says that it loads.
    loaded_run: Option<Asked>,
    /// The variables of the workloads that were loaded.
    loaded_variables: BTreeSet<String>,
    /// How many rounds there were, how many seconds they take that are counted, and what ran in the last.
    rounds: usize,
    rounds_s: f64,
    last_program: Option<Program>,
    /// What they did, all together.
    ran: Option<Ran>,
    begun: Instant,
}

impl<'a> Walk<'a> {
    fn new(
        request: &'a Request<'a>,
        output: Option<&'a Mutex<Option<Output>>>,
    ) -> Result<Self, Stop> {
        Ok(Self {
            request,
            output,
            defined: Defined {
                name: request.script.name.clone(),
                variables: variables(request)?,
                filesets: Vec::new(),
                processes: Vec::new(),
                composites: Vec::new(),
                rate: None,
                flowops: Vec::new(),
            },
            plans: Vec::new(),
            only_read: Vec::new(),
            filesets: Vec::new(),
            creation: None,
            mode: QuitMode::default(),
            histograms: false,
            warmup: 0.0,
            systems: Vec::new(),
            master: None,
            loaded_run: None,
            loaded_variables: BTreeSet::new(),
            rounds: 0,
            rounds_s: 0.0,
            last_program: None,
            ran: None,
            begun: Instant::now(),
        })
    }

    const fn acts(&self) -> bool {
        self.output.is_some()
    }

    /// A line of the log, as filebench writes it.
    fn say(&self, text: &str) {
        if self.acts() {
            say(self.request.format, self.begun, text);
        }
    }

    fn whole(&mut self) -> Result<Ended, Trouble> {
        let script = self.request.script;
        let next = self.commands(&script.commands, 0)?;
        if let (Some(ran), Some(program)) = (self.ran.take(), self.last_program.take()) {
            self.say(&format!("All {} rounds:", self.rounds));
            self.print(&program, &ran);
            return Ok(self.ended(&program, &ran, Some(self.rounds_s)));
        }
        match next {
            Next::Run(asked) => self.run(&asked),
            Next::Quit => Ok(Ended::NotRun),
            // Most workloads have no run of their own: filebench's users append one.
            Next::On => {
                let asked = self.loaded_run.take().unwrap_or_default();
                self.run(&asked)
            }
        }
    }

    fn commands(&mut self, commands: &[Command], depth: usize) -> Result<Next, Trouble> {
        for command in commands {
            if self.acts() && self.request.halt.load(Ordering::Relaxed) {
                return Err(Trouble::Halted);
            }
            match self.command(command, depth)? {
                Next::On => {}
                next => return Ok(next),
            }
        }
        Ok(Next::On)
    }

    fn command(&mut self, command: &Command, depth: usize) -> Result<Next, Trouble> {
        match &command.kind {
            CommandKind::DefineFileset(fileset) => self.defined.filesets.push(fileset.clone()),
            CommandKind::DefineProcess(process) => self.defined.processes.push(process.clone()),
            CommandKind::DefineComposite(composite) => {
                self.defined.composites.push(composite.clone());
            }
            CommandKind::Set(assignment) => self.defined.variables.assign(assignment)?,
            CommandKind::SetParameter {
                variable,
                part,
                value,
            } => self
                .defined
                .variables
                .set_parameter(variable, *part, value)?,
            CommandKind::SetMode(mode) => self.mode = *mode,
            CommandKind::CreateFiles => self.make_filesets()?,
            CommandKind::Run { seconds } => {
                return Ok(Next::Run(Asked {
                    seconds: seconds.clone(),
                    period: None,
                }));
            }
            CommandKind::PsRun { period, seconds } => {
                return Ok(Next::Run(Asked {
                    seconds: seconds.clone(),
                    period: Some(period.unwrap_or(DEFAULT_PERIOD)),
                }));
            }
            CommandKind::Round { warmup, seconds } => {
                return self.round(warmup.as_ref(), seconds.as_ref());
            }
            CommandKind::Eventgen { rate } => {
                if rate.is_some() {
                    self.defined.rate.clone_from(rate);
                }
            }
            CommandKind::Echo(text) | CommandKind::Log(text) | CommandKind::Usage(text) => {
                self.say(&self.defined.variables.text(text));
            }
            CommandKind::System(text) => self.system(command.at, text)?,
            CommandKind::Sleep(value) => {
                let seconds = self.defined.variables.fixed(value)?;
                if self.acts() {
                    self.sleep(duration(seconds))?;
                }
            }
            CommandKind::Warmup(value) => self.warmup = self.defined.variables.fixed(value)?,
            CommandKind::EnableLatencyHistogram => self.histograms = true,
            CommandKind::List(listed) => self.list(*listed)?,
            CommandKind::Vars => {
                for (name, held) in self.defined.variables.iter() {
                    self.say(&format!("${name} = {held:?}"));
                }
            }
            CommandKind::Version => self.say(&format!("dyno {}", env!("CARGO_PKG_VERSION"))),
            CommandKind::EnableMulti { master, client } => {
                let variables = &self.defined.variables;
                self.master = Some((variables.name(master)?, variables.name(client)?));
            }
            CommandKind::MultiSync(value) => {
                let sample = self.defined.variables.name(value)?;
                if let (Some((master, client)), true) = (&self.master, self.acts()) {
                    multi::sync(master, client, &sample)
                        .map_err(|message| Trouble::Failed(Failure::new("connect", message)))?;
                }
            }
            CommandKind::Foreach {
                variable,
                values,
                commands,
            } => {
                for value in values {
                    self.defined.variables.bind(&variable.name, value)?;
                    match self.commands(commands, depth)? {
                        Next::On => {}
                        next => return Ok(next),
                    }
                }
            }
            CommandKind::Load(text) => return self.load(command.at, text, depth),
            CommandKind::Quit => return Ok(Next::Quit),
            // Accepted, and of no effect here.
            CommandKind::NoUsage
            | CommandKind::CreateProcesses
            | CommandKind::Help
            | CommandKind::Debug(_)
            | CommandKind::Stats(_)
            | CommandKind::Shutdown(_)
            | CommandKind::Ignored(_) => {}
        }
        Ok(Next::On)
    }

    fn load(&mut self, at: Position, text: &Text, depth: usize) -> Result<Next, Trouble> {
        let name = self.defined.variables.text(text);
        if depth >= DEEPEST {
            let message = format!("workloads load each other more than {DEEPEST} deep");
            return Err(self.defined.error(at, message).into());
        }
        let Some(script) = find(self.request.beside, &name) else {
            let known = built_in::names().collect::<Vec<_>>().join(", ");
            let message = format!(
                "there is no workload {name}, expected a file {name}.f beside this one, or one of {known}"
            );
            return Err(self.defined.error(at, message).into());
        };
        let script = script?;
        self.defined.variables.provide(&script)?;
        self.loaded_variables
            .extend(script.variables.iter().cloned());
        // What comes after it here may set its variables, and run it: its own run is for where nothing else does.
        match self.commands(&script.commands, depth + 1)? {
            Next::Run(asked) => {
                self.loaded_run = Some(asked);
                Ok(Next::On)
            }
            next => Ok(next),
        }
    }

    /// Refuses values from outside for variables that neither the workload nor one that it loads has.
    fn refuse_unused(&self) -> Result<(), Stop> {
        let script = self.request.script;
        let known: BTreeSet<&str> = script
            .variables
            .union(&self.loaded_variables)
            .map(String::as_str)
            .collect();
        let unknown = self
            .defined
            .variables
            .unused_replacements()
            .find(|name| !known.contains(name));
        match unknown {
            Some(name) => Err(Stop::Usage(format!(
                "{} and what it loads have no variable ${name}, expected one of: {}",
                script.name,
                known.into_iter().collect::<Vec<_>>().join(", ")
            ))),
            None => Ok(()),
        }
    }

    fn list(&self, listed: Listed) -> Result<(), Trouble> {
        if listed != Listed::Flowops {
            for number in 0..self.defined.filesets.len() {
                let plan = self.defined.fileset(number)?;
                self.say(&format!(
                    "fileset {}: {} files, {} leaf directories in {}",
                    plan.name,
                    plan.shape.entries,
                    plan.shape.leaf_dirs,
                    plan.path.display()
                ));
            }
        }
        if listed != Listed::Filesets {
            for kind in FlowopType::ALL {
                self.say(&format!("flowop {}", kind.name()));
            }
        }
        Ok(())
    }

    fn system(&mut self, at: Position, text: &Text) -> Result<(), Trouble> {
        let command = self.defined.variables.text(text);
        if !self.acts() {
            self.systems.push((at, command));
            return Ok(());
        }
        let status = std::process::Command::new("sh")
            .arg("-c")
            .arg(&command)
            .stdin(std::process::Stdio::null())
            .status();
        let what = match status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Trouble::Failed(Failure::new(
            "system",
            format!("{}:{at}: `{command}`: {what}", self.defined.name),
        )))
    }

    fn sleep(&self, duration: Duration) -> Result<(), Trouble> {
        let begun = Instant::now();
        while begun.elapsed() < duration {
            if self.request.halt.load(Ordering::Relaxed) {
                return Err(Trouble::Halted);
            }
            let left = duration.saturating_sub(begun.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    /// Reads the filesets that were defined since they were last read.
    fn plan_filesets(&mut self) -> Result<(), Error> {
        for number in self.plans.len()..self.defined.filesets.len() {
            self.plans.push(self.defined.fileset(number)?);
        }
        Ok(())
    }

    /// Makes those that were not made yet, or finds them.
    fn make_filesets(&mut self) -> Result<(), Trouble> {
        self.plan_filesets()?;
        if !self.acts() || self.filesets.len() == self.plans.len() {
            return Ok(());
        }
        let request = self.request;
        let making = Making {
            seed: request.seed,
            verify: request.verify,
            zeros: request.compat,
            find: request.phase == Phase::Run,
            allow_device: request.allow_device,
            handles: handles(self.defined.processes.len()),
            halt: &request.halt,
        };
        if !making.find {
            space::refuse_too_large(&self.plans[self.filesets.len()..], request.seed)
                .map_err(|message| Trouble::Failed(Failure::new("disk_full", message)))?;
        }
        self.say("Populating and pre-allocating filesets");
        let mut creation = self.creation.unwrap_or(Creation {
            started_ns: now_ns(),
            ended_ns: 0,
            made: Made::default(),
        });
        for number in self.filesets.len()..self.plans.len() {
            let mut plan = self.plans[number].clone();
            plan.read_only |= self.only_read.contains(&number);
            let (begun, name) = (Instant::now(), plan.name.clone());
            let (fileset, made) = Fileset::make(plan, making).map_err(|message| {
                if request.halt.load(Ordering::Relaxed) {
                    Trouble::Halted
                } else {
                    Trouble::Failed(Failure::new("fileset", message))
                }
            })?;
            self.say(&format!(
                "{name} populated: {} files, {:.3}MB; {} files written in {:.1} seconds",
                fileset.tree.files.len(),
                fileset.bytes as f64 / 1_048_576.0,
                made.files,
                begun.elapsed().as_secs_f64()
            ));
            creation.made.add(made);
            self.filesets.push(fileset);
        }
        creation.ended_ns = now_ns();
        if !making.find {
            self.creation = Some(creation);
        }
        Ok(())
    }

    /// How long it runs; for ever where something else ends it.
    fn seconds(&self, asked: &Asked) -> Result<Option<f64>, Error> {
        if let Some(seconds) = self.request.seconds {
            return Ok(Some(seconds));
        }
        let seconds = match &asked.seconds {
            Some(value) => self.defined.variables.fixed(value)?,
            None => 0.0,
        };
        Ok(match self.mode {
            _ if seconds > 0.0 => Some(seconds),
            QuitMode::Timeout => Some(DEFAULT_SECONDS),
            QuitMode::AllDone | QuitMode::FirstDone => None,
        })
    }

    fn run(&mut self, asked: &Asked) -> Result<Ended, Trouble> {
        self.make_filesets()?;
        if self.request.phase == Phase::Create {
            return Ok(Ended::NotRun);
        }
        let program = self.defined.program(&self.plans)?;
        let seconds = self.seconds(asked)?;
        let ran = self.work(&program, asked, seconds, self.warmup)?;
        Ok(self.ended(&program, &ran, seconds))
    }

    /// Has the processes work for as long as the workload sleeps.
    fn round(&mut self, warmup: Option<&Value>, seconds: Option<&Value>) -> Result<Next, Trouble> {
        let variables = &self.defined.variables;
        let read = |value: Option<&Value>| value.map_or(Ok(0.0), |value| variables.fixed(value));
        let warmup = read(warmup)?;
        let counted = match (seconds, self.request.seconds) {
            (Some(_), Some(seconds)) => seconds,
            _ => read(seconds)?,
        };
        self.make_filesets()?;
        if self.acts() && self.request.phase == Phase::Create {
            return Ok(Next::Quit);
        }
        let program = self.defined.program(&self.plans)?;
        self.defined.flowops.clone_from(&program.flowops);
        self.rounds += 1;
        self.rounds_s += counted;
        let mut next = Next::On;
        if self.acts() {
            self.say(&format!("Round {}", self.rounds));
            let ran = self.work(&program, &Asked::default(), Some(counted), warmup)?;
            if ran.failure.is_some() || ran.ended_by == EndedBy::Signal {
                next = Next::Quit;
            }
            match &mut self.ran {
                Some(all) => all.add(ran),
                None => self.ran = Some(ran),
            }
        }
        self.last_program = Some(program);
        Ok(next)
    }

    /// Lets the threads work for that time.
    fn work(
        &mut self,
        program: &Program,
        asked: &Asked,
        seconds: Option<f64>,
        warmup: f64,
    ) -> Result<Ran, Trouble> {
        space::refuse_too_much_memory(program)
            .map_err(|message| Trouble::Failed(Failure::new("out_of_memory", message)))?;
        self.settle_filesets(program);
        let request = self.request;
        let manner = Manner {
            seed: request.seed,
            compat: request.compat,
            verify: request.verify,
            no_ring: request.no_ring,
            mode: self.mode,
            limit: seconds.map(duration),
            warmup: duration(warmup),
            interval: request.interval,
            halt: &request.halt,
        };
        let (format, begun) = (request.format, self.begun);
        let print = move |text: &str| say(format, begun, text);
        let mut writing = Writing {
            walk: self,
            program,
            asked,
            operations: 0,
            period: Vec::new(),
            period_s: 0.0,
            printed_s: 0.0,
        };
        self.say("Running...");
        let ran = run(program, &self.filesets, manner, &print, |interval| {
            writing.write(interval)
        })
        .map_err(|error: std::io::Error| {
            let out = request.out.unwrap_or(Path::new("the result folder"));
            unwritten(out, &error)
        })?;
        self.say(&format!("Run took {:.0} seconds...", ran.times.elapsed_s));
        self.print(program, &ran);
        Ok(ran)
    }

    fn print(&self, program: &Program, ran: &Ran) {
        if ran.failure.is_some() {
            return;
        }
        for line in table(
            &program.flowops,
            &ran.did,
            ran.times.elapsed_s,
            self.histograms,
        ) {
            self.say(&line);
        }
    }

    fn ended(&self, program: &Program, ran: &Ran, seconds: Option<f64>) -> Ended {
        let request = self.request;
        let about = About {
            phase: request.phase.name(),
            seed: request.seed,
            workload: json!({
                "name": request.script.name,
                "values": request.values_given,
                "seconds": seconds,
                "compat": request.compat,
                "verify": request.verify,
            }),
            creation: self.creation,
            versions: request.versions.clone(),
        };
        Ended::Ran(Box::new(FilesResult::of_run(about, program, ran)))
    }

    /// What flowops do to filesets decides what is to be kept track of.
    fn settle_filesets(&mut self, program: &Program) {
        let mut made = vec![[false; 3]; self.filesets.len()];
        // Up to where files are written at random places, if they are.
        let mut random: Vec<Option<u64>> = vec![None; self.filesets.len()];
        let mut deletes_by_slot = false;
        let operations = program.threads.iter().flat_map(|plan| {
            let operations = plan.operations().into_iter();
            operations.map(move |operation| (plan, operation))
        });
        for (plan, operation) in operations {
            deletes_by_slot |= operation.kind == FlowopType::DeleteFile;
            if matches!(operation.kind, FlowopType::Write | FlowopType::AioWrite)
                && operation.random
            {
                for fileset in plan.filesets_of(operation) {
                    random[fileset] = random[fileset].max(Some(operation.working_set));
                }
            }
            let Some(fileset) = operation.fileset else {
                continue;
            };
            let [files, dirs, creates] = &mut made[fileset];
            *files |= matches!(
                operation.kind,
                FlowopType::CreateFile | FlowopType::DeleteFile
            );
            *dirs |= matches!(operation.kind, FlowopType::MakeDir | FlowopType::RemoveDir);
            *creates |= operation.kind == FlowopType::CreateFile;
        }
        for ((fileset, [files, dirs, creates]), random) in
            self.filesets.iter_mut().zip(made).zip(random)
        {
            fileset.files.fix(!files && !deletes_by_slot);
            fileset.leaf_dirs.fix(!dirs);
            // Only a random place can lie behind the end: of a file that was created empty, or that is too small for it.
            fileset.holes = random.is_some_and(|working_set| {
                let sizes = fileset.tree.files.iter().map(|file| file.size);
                creates
                    || fileset.plan.trust
                    || sizes.min().is_some_and(|least| working_set > least)
            });
        }
    }
}

/// Writes down what is recorded, and prints what is asked for meanwhile.
struct Writing<'a> {
    walk: &'a Walk<'a>,
    program: &'a Program,
    asked: &'a Asked,
    operations: u64,
    /// What each flowop did since statistics were last printed and cleared.
    period: Vec<Did>,
    period_s: f64,
    printed_s: f64,
}

impl Writing<'_> {
    fn write(&mut self, interval: Interval) -> std::io::Result<()> {
        let Interval { span, did, failed } = interval;
        let counted: Vec<usize> = (0..did.len())
            .filter(|&index| is_counted(self.program.flowops[index].kind))
            .collect();
        let length_s = span.end_ns.saturating_sub(span.start_ns) as f64 / 1e9;
        let all = total(counted.iter().map(|&index| &did[index]));
        self.operations += all.series.latency.len();
        // After the end there is only what was still under way, if there is anything.
        let is_empty = all.series.latency.is_empty() && failed.is_empty();
        if let Some(output) = self.walk.output
            && let Some(output) = &mut *output.lock()
            && (!is_empty || length_s > 1e-6)
        {
            output.interval_of(span, counted.iter().map(|&index| &did[index].series))?;
            for mut failed in failed {
                // Among those that the folder names; of others the first error says enough.
                if let Some(place) = counted.iter().position(|&index| index == failed.index) {
                    failed.index = place;
                    output.failed(&failed)?;
                }
            }
        }
        if self.walk.request.progress {
            let line = json!({
                "elapsed_s": self.period_s + length_s,
                "operations": self.operations,
                "throughput_per_s": all.series.latency.len() as f64 / length_s.max(1e-9),
                "phase": if span.warmup { "warmup" } else { "measured" },
            });
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        self.period_s += length_s;
        if !span.warmup {
            self.print_period(&did);
        }
        Ok(())
    }

    /// The statistics that `psrun` prints.
    fn print_period(&mut self, did: &[Did]) {
        let Some(period) = self.asked.period else {
            return;
        };
        if self.period.is_empty() {
            self.period = did.iter().map(|_| Did::nothing()).collect();
        }
        for (sum, did) in self.period.iter_mut().zip(did) {
            sum.add(did);
        }
        if self.period_s - self.printed_s + 1e-6 < period.unsigned_abs() as f64 {
            return;
        }
        let since = if period < 0 { self.printed_s } else { 0.0 };
        let seconds = self.period_s - since;
        for line in table(
            &self.program.flowops,
            &self.period,
            seconds,
            self.walk.histograms,
        ) {
            self.walk.say(&line);
        }
        self.printed_s = self.period_s;
        if period < 0 {
            self.period.clear();
        }
    }
}

/// A line of the log: to standard output as filebench has it, or beside it where that is a result's.
fn say(format: Format, begun: Instant, text: &str) {
    let seconds = begun.elapsed().as_secs_f64();
    // Whoever reads it may have gone.
    let _ = match format {
        Format::Filebench => writeln!(std::io::stdout(), "{seconds:4.3}: {text}"),
        Format::Json => writeln!(std::io::stderr(), "{seconds:4.3}: {text}"),
    };
}

/// How many directories may be kept open: each thread's table of open files has all of them.
fn handles(processes: usize) -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .current
        .unwrap_or(u64::MAX);
    usize::try_from(most / 4).unwrap_or(usize::MAX) / processes.max(1)
}
