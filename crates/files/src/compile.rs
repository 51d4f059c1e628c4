//! From what a workload file says to what is carried out: references are found, attributes are read.

use std::collections::BTreeMap;

use dyno_wml::ast::{
    self, Composite, Direction, FilesetAttribute, Flowop, FlowopAttribute, FlowopKind, FlowopType,
    Key, Position, ProcessAttribute, ThreadAttribute, Value,
};
use dyno_wml::{DEEPEST_COMPOSITE, Error, MOST_STEPS, Variables};

use crate::fileset::Plan;
use crate::number::{Number, count, index};
use crate::program::{Named, Operation, Program, Step, ThreadPlan, Wait};
use crate::tree::Shape;
use crate::worker::SLOTS;

/// More threads than any Linux allows.
const MOST_THREADS: u64 = 4_000_000;

type Compiled<T> = Result<T, Error>;

/// What a file has defined so far.
#[derive(Clone, Debug)]
pub struct Defined {
    /// The file's name.
    pub name: String,
    /// Its variables.
    pub variables: Variables,
    /// Its filesets.
    pub filesets: Vec<ast::Fileset>,
    /// Its processes.
    pub processes: Vec<ast::Process>,
    /// Its composite flowops.
    pub composites: Vec<Composite>,
    /// Events a second.
    pub rate: Option<Value>,
    /// What figures are kept of since earlier rounds; its flowops come after.
    pub flowops: Vec<Named>,
}

impl Defined {
    /// An error at a place of the file.
    pub fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error::new(&self.name, at, message)
    }

    /// What a fileset is to be, its attributes read now.
    pub fn fileset(&self, number: usize) -> Compiled<Plan> {
        let fileset = &self.filesets[number];
        let (attributes, variables) = (&fileset.attributes, &self.variables);
        variables.refuse_senseless(attributes)?;
        let whole = |key, default: u64| {
            attributes
                .get(key)
                .map_or(Ok(default), |value| variables.fixed(value).map(count))
        };
        let yes = |key| {
            attributes
                .get(key)
                .map_or(Ok(false), |value| variables.boolean(value))
        };
        let text = |key: FilesetAttribute| {
            let value = attributes.get(key).ok_or_else(|| {
                self.error(fileset.at, format!("the fileset has no {}", key.name()))
            })?;
            variables.name(value).map(|text| (text, value.at))
        };
        let (name, name_at) = text(FilesetAttribute::Name)?;
        let (path, path_at) = text(FilesetAttribute::Path)?;
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(self.error(
                name_at,
                format!(
                    "{name:?} is no name of a fileset, expected one without `..` and empty parts"
                ),
            ));
        }
        // A relative path is one below the folder that dyno was started in.
        let path = std::path::absolute(&path)
            .map_err(|error| self.error(path_at, format!("{path:?} is no path: {error}")))?;
        let entries = if fileset.single {
            1
        } else {
            whole(FilesetAttribute::Entries, 0)?
        };
        let leaf_dirs = if fileset.single {
            0
        } else {
            whole(FilesetAttribute::LeafDirs, 0)?
        };
        if entries == 0 && leaf_dirs == 0 {
            return Err(self.error(
                fileset.at,
                format!("fileset {name} has neither entries nor leafdirs, expected at least one"),
            ));
        }
        let width = match attributes.get(FilesetAttribute::DirWidth) {
            Some(value) if !fileset.single => variables.number(value)?,
            _ if fileset.single => Number::Fixed(10.0),
            _ => Number::Fixed(0.0),
        };
        let gamma = if fileset.single {
            0.0
        } else {
            whole(FilesetAttribute::DirGamma, 1500)? as f64 / 1000.0
        };
        Ok(Plan {
            path: path.join(&name),
            name,
            shape: Shape {
                entries,
                leaf_dirs,
                size: variables.file_size(fileset)?,
                width,
                depth: attributes
                    .get(FilesetAttribute::DirDepthRv)
                    .map(|value| variables.number(value))
                    .transpose()?,
                gamma,
            },
            single: fileset.single,
            prealloc: attributes
                .get(FilesetAttribute::Prealloc)
                .map_or(Ok(0.0), |value| variables.percentage(value))?,
            paralloc: yes(FilesetAttribute::Paralloc)?,
            reuse: yes(FilesetAttribute::Reuse)?,
            trust: yes(FilesetAttribute::TrustTree)?,
            read_only: yes(FilesetAttribute::ReadOnly)?,
            write_only: yes(FilesetAttribute::WriteOnly)?,
            entropy: variables.entropy(fileset)?,
            stream: (1 << 40) + number as u64 * 64,
        })
    }

    /// All that runs; `plans` are the filesets'.
    pub fn program(&self, plans: &[Plan]) -> Compiled<Program> {
        let mut compiler = Compiler {
            defined: self,
            plans,
            names: self
                .flowops
                .iter()
                .enumerate()
                .map(|(index, named)| (named.name.clone(), index))
                .collect(),
            program: Program {
                flowops: self.flowops.clone(),
                ..Program::default()
            },
            wakers: Vec::new(),
        };
        for (process_index, process) in self.processes.iter().enumerate() {
            compiler.process(process_index, process)?;
        }
        let Some(process) = self.processes.first() else {
            let at = Position { line: 1, column: 1 };
            return Err(self.error(
                at,
                "no process is defined, expected `define process` before the run",
            ));
        };
        if compiler
            .program
            .threads
            .iter()
            .all(|plan| plan.count() == 0)
        {
            return Err(self.error(
                process.at,
                "no thread has an instance: nothing would run, expected `instances` of at least 1",
            ));
        }
        compiler.find_targets()?;
        if let Some(value) = &self.rate {
            self.variables.refuse_negative("rate", value)?;
            compiler.program.rate = Some(self.variables.number(value)?);
        }
        Ok(compiler.program)
    }
}

struct Compiler<'a> {
    defined: &'a Defined,
    plans: &'a [Plan],
    program: Program,
    names: BTreeMap<String, usize>,
    /// `wakeup` and `sempost`, by their thread and their place in it, with the name and the place of their target.
    wakers: Vec<(usize, usize, String, Position)>,
}

/// The thread whose flowops are being compiled.
struct Inside {
    thread: usize,
    threads: usize,
    memory: u64,
    /// Flowops so far, composites' uses included.
    visited: usize,
    flowops: usize,
    slots: usize,
    asynchronous: bool,
    /// Names of its flowops, types, and the targets that are to be found among them.
    names: Vec<(String, FlowopType)>,
    targets: Vec<(usize, String, Position)>,
}

impl<'a> Compiler<'a> {
    fn error(&self, at: Position, message: impl Into<String>) -> Error {
        self.defined.error(at, message)
    }

    fn process(&mut self, process_index: usize, process: &ast::Process) -> Compiled<()> {
        let variables = &self.defined.variables;
        let attributes = &process.attributes;
        variables.refuse_senseless(attributes)?;
        let name = match attributes.get(ProcessAttribute::Name) {
            Some(value) => variables.name(value)?,
            None => return Err(self.error(process.at, "the process has no name")),
        };
        let process_instances = match attributes.get(ProcessAttribute::Instances) {
            Some(value) => count(variables.fixed(value)?),
            None => 1,
        };
        let nice = match attributes.get(ProcessAttribute::Nice) {
            Some(value) => variables.fixed(value)?,
            None => 0.0,
        };
        for thread in &process.threads {
            let attributes = &thread.attributes;
            variables.refuse_senseless(attributes)?;
            let number = |key, default: u64| {
                attributes
                    .get(key)
                    .map_or(Ok(default), |value| variables.fixed(value).map(count))
            };
            let thread_name = match attributes.get(ThreadAttribute::Name) {
                Some(value) => variables.name(value)?,
                None => return Err(self.error(thread.at, "the thread has no name")),
            };
            let instances = number(ThreadAttribute::Instances, 1)?;
            let threads = process_instances.saturating_mul(instances);
            if threads.max(process_instances) > MOST_THREADS {
                return Err(self.error(
                    thread.at,
                    format!(
                        "{threads} threads in {process_instances} processes, expected at most {MOST_THREADS}"
                    ),
                ));
            }
            let memory = number(ThreadAttribute::MemSize, 0)?;
            let io_priority = number(ThreadAttribute::IoPrio, 8)?;
            let mut inside = Inside {
                thread: self.program.threads.len(),
                threads: index(threads),
                memory,
                visited: 0,
                flowops: 0,
                slots: 1,
                asynchronous: false,
                names: Vec::new(),
                targets: Vec::new(),
            };
            let mut steps = self.steps(&thread.flowops, variables, "", &mut inside, 0)?;
            self.find_own_targets(&mut steps, &inside)?;
            self.program.threads.push(ThreadPlan {
                name: thread_name,
                process: name.clone(),
                process_index,
                process_instances: index(process_instances),
                instances: index(instances),
                memory: index(memory),
                shared_memory: match attributes.get(ThreadAttribute::UseIsm) {
                    Some(value) => variables.boolean(value)?,
                    None => false,
                },
                #[allow(clippy::cast_possible_truncation)] // a niceness is small
                nice: nice as i32,
                io_priority: u32::try_from(io_priority).ok().filter(|level| *level < 8),
                steps,
                flowops: inside.flowops,
                slots: inside.slots,
                asynchronous: inside.asynchronous,
            });
        }
        Ok(())
    }

    fn steps(
        &mut self,
        flowops: &[Flowop],
        variables: &Variables,
        prefix: &str,
        inside: &mut Inside,
        depth: u32,
    ) -> Compiled<Vec<Step>> {
        let mut steps = Vec::with_capacity(flowops.len());
        for flowop in flowops {
            inside.visited += 1;
            if inside.visited > MOST_STEPS {
                return Err(self.error(
                    flowop.at,
                    format!("more than {MOST_STEPS} flowops come of one thread, expected fewer"),
                ));
            }
            let name = match flowop.attributes.get(FlowopAttribute::Name) {
                Some(value) => format!("{prefix}{}", variables.name(value)?),
                None => return Err(self.error(flowop.at, "the flowop has no name")),
            };
            variables.refuse_senseless(&flowop.attributes)?;
            match &flowop.kind {
                FlowopKind::Known(kind) => {
                    let operation = self.operation(flowop, *kind, name, variables, inside)?;
                    steps.push(Step::Once(Box::new(operation)));
                }
                FlowopKind::Composite(of) => {
                    let defined = self.defined;
                    let composite = self.find_composite(of, flowop, variables)?;
                    if depth >= DEEPEST_COMPOSITE {
                        return Err(self.error(
                            flowop.at,
                            format!("flowop {of} is made of itself, or composites are more than {DEEPEST_COMPOSITE} deep"),
                        ));
                    }
                    defined.variables.refuse_senseless(&composite.attributes)?;
                    let inner = variables.within(composite, flowop)?;
                    let times = match flowop.attributes.get(FlowopAttribute::Iters) {
                        Some(value) => variables.number(value)?,
                        None => match composite.attributes.get(ast::CompositeAttribute::Iters) {
                            Some(value) => defined.variables.number(value)?,
                            None => Number::Fixed(1.0),
                        },
                    };
                    let prefix = format!("{name}.");
                    let within =
                        self.steps(&composite.flowops, &inner, &prefix, inside, depth + 1)?;
                    steps.push(Step::Repeat(times, within));
                }
            }
        }
        Ok(steps)
    }

    fn find_composite(
        &self,
        name: &str,
        flowop: &Flowop,
        variables: &Variables,
    ) -> Compiled<&'a Composite> {
        let defined = self.defined;
        for composite in defined.composites.iter().rev() {
            if let Some(value) = composite.attributes.get(ast::CompositeAttribute::Name)
                && variables.name(value)? == name
            {
                return Ok(composite);
            }
        }
        Err(self.error(
            flowop.kind_at,
            format!("there is no flowop {name}, expected a type of flowop or one that `define flowop` made"),
        ))
    }

    /// The place of a name among those that figures are kept of.
    fn named(&mut self, name: String, kind: FlowopType) -> usize {
        let name = match self.names.get(&name) {
            Some(&index) if self.program.flowops[index].kind == kind => return index,
            Some(_) => format!("{name}.{}", kind.name()),
            None => name,
        };
        if let Some(&index) = self.names.get(&name) {
            return index;
        }
        let index = self.program.flowops.len();
        self.names.insert(name.clone(), index);
        self.program.flowops.push(Named { name, kind });
        index
    }

    fn operation(
        &mut self,
        flowop: &Flowop,
        kind: FlowopType,
        name: String,
        variables: &Variables,
        inside: &mut Inside,
    ) -> Compiled<Operation> {
        let attributes = &flowop.attributes;
        let number = |key, default: f64| {
            attributes
                .get(key)
                .map_or(Ok(Number::Fixed(default)), |value| variables.number(value))
        };
        let fixed = |key| {
            attributes
                .get(key)
                .map_or(Ok(0.0), |value| variables.fixed(value))
        };
        let yes = |key| {
            attributes
                .get(key)
                .map_or(Ok(false), |value| variables.boolean(value))
        };
        let slot = |key: FlowopAttribute| {
            let slot = count(fixed(key)?);
            if slot >= SLOTS as u64 {
                let at = attributes
                    .find(key)
                    .map_or(flowop.at, |attribute| attribute.at);
                let message = format!("{} is {slot}, expected 0 to {}", key.name(), SLOTS - 1);
                return Err(self.error(at, message));
            }
            Ok(index(slot))
        };
        let (fd, source) = (slot(FlowopAttribute::Fd)?, slot(FlowopAttribute::SrcFd)?);
        let open_next = yes(FlowopAttribute::OpenNext)?;
        let random = yes(FlowopAttribute::Random)?;
        let fileset = attributes
            .get(FlowopAttribute::FilesetName)
            .map(|value| self.find_fileset(value, variables))
            .transpose()?;
        let io_size = number(FlowopAttribute::IoSize, 0.0)?;
        let value = match attributes.get(FlowopAttribute::Value) {
            Some(value) if kind != FlowopType::Print => variables.number(value)?,
            _ => Number::Fixed(0.0),
        };
        let text = match attributes.get(FlowopAttribute::Value) {
            Some(value) if kind == FlowopType::Print => variables.name(value)?,
            _ => String::new(),
        };
        self.check(flowop, kind, fd, fileset, &io_size, inside)?;
        if kind == FlowopType::AioWrite && !random {
            return Err(self.error(
                flowop.at,
                "aiowrite is for random places only, expected `random`",
            ));
        }
        let local = inside.flowops;
        inside.flowops += 1;
        inside.slots = inside.slots.max(fd + 1).max(source + 1);
        if open_next && fd == 0 {
            inside.slots = SLOTS;
        }
        inside.asynchronous |= kind == FlowopType::AioWrite;
        let waits = self.ties(flowop, kind, (&name, local), variables, inside)?;
        inside.names.push((name.clone(), kind));
        Ok(Operation {
            index: self.named(name, kind),
            local,
            kind,
            fileset,
            fd,
            source,
            open_next,
            io_size,
            working_set: count(fixed(FlowopAttribute::WorkingSet)?),
            random,
            synchronous: yes(FlowopAttribute::DSync)?,
            direct: yes(FlowopAttribute::DirectIo)?,
            no_read_ahead: yes(FlowopAttribute::NoReadAhead)?,
            indexed: attributes
                .get(FlowopAttribute::Indexed)
                .map(|value| variables.number(value))
                .transpose()?,
            iterations: number(FlowopAttribute::Iters, 1.0)?,
            value,
            text,
            blocking: yes(FlowopAttribute::Blocking)?,
            target: None,
            wakes: Vec::new(),
            waits,
        })
    }

    /// What ties a flowop to others: where it waits itself, and the names of those that it looks at, wakes or posts to.
    fn ties(
        &mut self,
        flowop: &Flowop,
        kind: FlowopType,
        (name, local): (&str, usize),
        variables: &Variables,
        inside: &mut Inside,
    ) -> Compiled<Option<usize>> {
        let attributes = &flowop.attributes;
        let waits = match kind {
            FlowopType::SemBlock => Some(match attributes.get(FlowopAttribute::HighWater) {
                Some(value) => Some(count(variables.fixed(value)?)),
                None => Some(1),
            }),
            FlowopType::Block => Some(None),
            _ => None,
        };
        let waits = waits.map(|high_water| {
            self.program.waits.push(Wait {
                name: name.to_owned(),
                high_water,
                count: inside.threads,
            });
            self.program.waits.len() - 1
        });
        if let Some(value) = attributes.get(FlowopAttribute::Target) {
            let target = variables.name(value)?;
            if matches!(kind, FlowopType::Wakeup | FlowopType::SemPost) {
                self.wakers.push((inside.thread, local, target, value.at));
            } else {
                inside.targets.push((local, target, value.at));
            }
        } else if matches!(kind, FlowopType::Wakeup | FlowopType::SemPost) {
            return Err(self.error(
                flowop.at,
                format!(
                    "{} has no target, expected the name of a flowop that waits",
                    kind.name()
                ),
            ));
        } else if is_counting(kind) {
            self.program.counts_processes = true;
        }
        Ok(waits)
    }

    /// What could only fail when it is carried out.
    fn check(
        &self,
        flowop: &Flowop,
        kind: FlowopType,
        fd: usize,
        fileset: Option<usize>,
        io_size: &Number,
        inside: &Inside,
    ) -> Compiled<()> {
        let needs_fileset = match kind {
            FlowopType::OpenFile
            | FlowopType::CreateFile
            | FlowopType::FsyncSet
            | FlowopType::MakeDir
            | FlowopType::RemoveDir
            | FlowopType::ListDir => true,
            FlowopType::DeleteFile | FlowopType::StatFile => fd == 0,
            _ => false,
        };
        if needs_fileset && fileset.is_none() {
            return Err(self.error(
                flowop.at,
                format!("{} has no filesetname, expected one", kind.name()),
            ));
        }
        let needs_size = matches!(
            kind,
            FlowopType::Read
                | FlowopType::Write
                | FlowopType::AppendFile
                | FlowopType::AppendFileRand
                | FlowopType::AioWrite
        );
        let size = io_size.fixed();
        if needs_size && size.is_some_and(|size| size < 1.0) {
            return Err(self.error(
                flowop.at,
                format!("{} has no iosize, expected at least 1", kind.name()),
            ));
        }
        if kind.direction() != Direction::Neither
            && inside.memory > 0
            && size.is_some_and(|size| size > inside.memory as f64)
        {
            return Err(self.error(
                flowop.at,
                format!(
                    "iosize is {}, more than the thread's memsize of {}",
                    size.unwrap_or_default(),
                    inside.memory
                ),
            ));
        }
        Ok(())
    }

    fn find_fileset(&self, value: &Value, variables: &Variables) -> Compiled<usize> {
        let name = variables.name(value)?;
        self.plans
            .iter()
            // Of two with one name the later hides the earlier.
            .rposition(|plan| plan.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = self.plans.iter().map(|plan| plan.name.as_str()).collect();
                let known = if known.is_empty() {
                    "none is defined".to_owned()
                } else {
                    format!("expected one of {}", known.join(", "))
                };
                self.error(value.at, format!("there is no fileset {name}, {known}"))
            })
    }

    /// The targets of limits and ends, among the thread's own flowops.
    fn find_own_targets(&self, steps: &mut [Step], inside: &Inside) -> Compiled<()> {
        let mut found = BTreeMap::new();
        for (local, target, at) in &inside.targets {
            let place = inside.names.iter().position(|(name, _)| name == target);
            let Some(place) = place else {
                // Where filebench looks for no target it does not miss it either.
                if !is_counting(inside.names[*local].1) {
                    continue;
                }
                let known: Vec<&str> = inside.names.iter().map(|(name, _)| name.as_str()).collect();
                return Err(self.error(
                    *at,
                    format!(
                        "the thread has no flowop {target}, expected one of {}",
                        known.join(", ")
                    ),
                ));
            };
            let (limit, of) = (inside.names[*local].1, inside.names[place].1);
            if matches!(limit, FlowopType::IopsLimit | FlowopType::BwLimit)
                && of.direction() == Direction::Neither
            {
                return Err(self.error(
                    *at,
                    format!("{target} neither reads nor writes, expected a flowop that does"),
                ));
            }
            found.insert(*local, place);
        }
        for_each(steps, &mut |operation| {
            operation.target = found.get(&operation.local).copied();
        });
        Ok(())
    }

    /// The flowops that are woken and posted to, wherever they are.
    fn find_targets(&mut self) -> Compiled<()> {
        for (thread, local, target, at) in std::mem::take(&mut self.wakers) {
            let mut kind = FlowopType::Wakeup;
            for_each(&mut self.program.threads[thread].steps, &mut |operation| {
                if operation.local == local {
                    kind = operation.kind;
                }
            });
            let semaphore = kind == FlowopType::SemPost;
            let wakes: Vec<usize> = self
                .program
                .waits
                .iter()
                .enumerate()
                .filter(|(_, wait)| wait.name == target && wait.high_water.is_some() == semaphore)
                .map(|(index, _)| index)
                .collect();
            if wakes.is_empty() {
                let wanted = if semaphore { "semblock" } else { "block" };
                return Err(self.error(
                    at,
                    format!(
                        "there is no flowop {target} that waits, expected the name of a {wanted}"
                    ),
                ));
            }
            for_each(&mut self.program.threads[thread].steps, &mut |operation| {
                if operation.local == local {
                    operation.wakes.clone_from(&wakes);
                }
            });
        }
        Ok(())
    }
}

/// Whether it looks at what others have done.
const fn is_counting(kind: FlowopType) -> bool {
    matches!(
        kind,
        FlowopType::IopsLimit
            | FlowopType::OpsLimit
            | FlowopType::BwLimit
            | FlowopType::FinishOnCount
            | FlowopType::FinishOnBytes
    )
}

fn for_each(steps: &mut [Step], each: &mut impl FnMut(&mut Operation)) {
    for step in steps {
        match step {
            Step::Once(operation) => each(operation),
            Step::Repeat(_, steps) => for_each(steps, each),
        }
    }
}
