//! A workload as it is carried out: every reference found, every attribute read as far as it can be beforehand.

use dyno_wml::ast::FlowopType;

use crate::number::Number;

/// All that runs.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// What figures are kept of, in the order of the workload: flowops of one name are one.
    pub flowops: Vec<Named>,
    /// The kinds of threads.
    pub threads: Vec<ThreadPlan>,
    /// Events a second, where there is a limit.
    pub rate: Option<Number>,
    /// How many semaphores or sleepers each `semblock` and `block` has: one for each thread that has it.
    pub waits: Vec<Wait>,
    /// Whether a flowop asks what its whole process has done.
    pub counts_processes: bool,
}

/// A name that figures are kept of.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// What it does.
    pub kind: FlowopType,
}

/// Where threads wait for others.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The flowop's name, by which others find it.
    pub name: String,
    /// For a semaphore, how far the poster may be ahead; none for a sleeper.
    pub high_water: Option<u64>,
    /// How many there are.
    pub count: usize,
}

/// A kind of threads.
#[derive(Clone, Debug)]
pub struct ThreadPlan {
    /// Its name.
    pub name: String,
    /// Its process's name.
    pub process: String,
    /// The process's place among the kinds of processes.
    pub process_index: usize,
    /// How many processes there are of the kind ...
    pub process_instances: usize,
    /// ... and in each how many threads.
    pub instances: usize,
    /// Bytes of memory of each.
    pub memory: usize,
    /// The memory is shared memory.
    pub shared_memory: bool,
    /// Added to the niceness.
    pub nice: i32,
    /// The priority of its input and output, if it is set.
    pub io_priority: Option<u32>,
    /// What it does, over and over.
    pub steps: Vec<Step>,
    /// How many flowops it has, composites' included.
    pub flowops: usize,
    /// How many slots for open files it needs.
    pub slots: usize,
    /// Whether it starts asynchronous writes.
    pub asynchronous: bool,
}

impl ThreadPlan {
    /// How many threads there are of it in all.
    pub const fn count(&self) -> usize {
        self.process_instances * self.instances
    }

    /// Each flowop that it has.
    pub fn operations(&self) -> Vec<&Operation> {
        let mut found = Vec::new();
        collect(&self.steps, &mut found);
        found
    }

    /// The filesets that one of its flowops may work on: its own, or that of whatever the thread has in the slot.
    pub fn filesets_of(&self, operation: &Operation) -> Vec<usize> {
        match operation.fileset {
            Some(fileset) if operation.fd > 0 => vec![fileset],
            _ => {
                let all = self.operations().into_iter();
                all.filter_map(|operation| operation.fileset).collect()
            }
        }
    }
}

fn collect<'a>(steps: &'a [Step], found: &mut Vec<&'a Operation>) {
    for step in steps {
        match step {
            Step::Once(operation) => found.push(operation),
            Step::Repeat(_, steps) => collect(steps, found),
        }
    }
}

/// What comes next.
#[derive(Clone, Debug)]
pub enum Step {
    /// A flowop.
    Once(Box<Operation>),
    /// A composite's flowops, so many times.
    Repeat(Number, Vec<Step>),
}

/// A flowop.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // the language's attributes
pub struct Operation {
    /// Its place among the names that figures are kept of.
    pub index: usize,
    /// Its place among the thread's flowops.
    pub local: usize,
    /// What it does.
    pub kind: FlowopType,
    /// The fileset that it works on.
    pub fileset: Option<usize>,
    /// The slot, 0 for none in particular.
    pub fd: usize,
    /// The slot of the file whose size is written.
    pub source: usize,
    /// Slots are taken in turn.
    pub open_next: bool,
    /// Bytes of one read or write.
    pub io_size: Number,
    /// Bytes of the file that are worked on; 0 for all.
    pub working_set: u64,
    /// At random offsets.
    pub random: bool,
    /// Flags for opening files.
    pub synchronous: bool,
    /// Without the page cache.
    pub direct: bool,
    /// The system is told not to read ahead.
    pub no_read_ahead: bool,
    /// The file of this number.
    pub indexed: Option<Number>,
    /// How often in a row.
    pub iterations: Number,
    /// What the type says.
    pub value: Number,
    /// For `print`.
    pub text: String,
    /// A poster waits for the one that takes.
    pub blocking: bool,
    /// The flowop of this thread whose operations are counted.
    pub target: Option<usize>,
    /// Those that are woken or posted to, among the program's.
    pub wakes: Vec<usize>,
    /// Where it waits itself, among the program's.
    pub waits: Option<usize>,
}
