//! What a workload file says: a list of commands, carried out in order.
//!
//! Nothing is read before it is used: an attribute written as `$name` is kept as a reference, so a
//! later `set` changes what was defined before it. [`crate::Variables`] holds the values and reads
//! the references.

use std::collections::BTreeSet;

/// A place in the text; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column within it.
    pub column: u32,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A whole workload file.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// What the file is called in messages.
    pub name: String,
    /// Its commands, in order.
    pub commands: Vec<Command>,
    /// What was accepted and is not as it seems: older forms, characters that mean nothing.
    pub notes: Vec<Note>,
    /// It has a form that filebench 1.5 refuses and earlier versions had.
    pub older: bool,
    /// The names of all variables that occur in it, in quoted texts too.
    pub variables: BTreeSet<String>,
}

impl Script {
    /// The names of the variables that it sets itself.
    #[must_use]
    pub fn sets(&self) -> BTreeSet<&str> {
        fn collect<'a>(commands: &'a [Command], names: &mut BTreeSet<&'a str>) {
            for command in commands {
                match &command.kind {
                    CommandKind::Set(assignment) => {
                        names.insert(&assignment.variable.name);
                    }
                    CommandKind::Foreach { commands, .. } => collect(commands, names),
                    _ => {}
                }
            }
        }
        let mut names = BTreeSet::new();
        collect(&self.commands, &mut names);
        names
    }

    /// Whether it brings in another workload, whose variables are not among its own.
    #[must_use]
    pub fn loads(&self) -> bool {
        fn any(commands: &[Command]) -> bool {
            commands.iter().any(|command| match &command.kind {
                CommandKind::Load(_) => true,
                CommandKind::Foreach { commands, .. } => any(commands),
                _ => false,
            })
        }
        any(&self.commands)
    }
}

/// What a reader should know of an accepted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub at: Position,
    /// What is done with it, in one line.
    pub message: String,
}

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Where its first word stands.
    pub at: Position,
    /// What it is.
    pub kind: CommandKind,
}

/// The commands.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandKind {
    /// `define fileset` and `define file`.
    DefineFileset(Fileset),
    /// `define process`.
    DefineProcess(Process),
    /// `define flowop`.
    DefineComposite(Composite),
    /// `set $name = ...`, and the older `define randvar name=$name, ...`.
    Set(Assignment),
    /// `set $name.mean = value`, an older form: one parameter of a random variable.
    SetParameter {
        /// The variable.
        variable: Variable,
        /// Which of its parameters.
        part: Part,
        /// Its new value.
        value: ParameterValue,
    },
    /// `set mode quit ...`.
    SetMode(QuitMode),
    /// `set mode nousestats`: no statistics of processors; dyno has them from its observers.
    NoUsage,
    /// `create files`, and the older `create filesets`: makes every fileset defined so far.
    CreateFiles,
    /// `create processes`, an older form. Nothing is to be done for it: where the file has no `run`, the parser put one, or
    /// rounds, in place of the sleeping after it.
    CreateProcesses,
    /// In an older file without a `run`: the processes work for as long as it sleeps, and the commands after it go on.
    Round {
        /// Seconds of it that are not counted, at its begin.
        warmup: Option<Value>,
        /// Seconds that are counted.
        seconds: Option<Value>,
    },
    /// `run`, `run 60`, `run $runtime`.
    Run {
        /// How long, in seconds; nothing and 0 are the default of the mode.
        seconds: Option<Value>,
    },
    /// `psrun`: as `run`, with statistics printed meanwhile.
    PsRun {
        /// Seconds between prints; below 0 the statistics start anew after each. 10 where it is left out.
        period: Option<i64>,
        /// As for `run`.
        seconds: Option<Value>,
    },
    /// `eventgen rate = value`, `eventgen`.
    Eventgen {
        /// Events a second.
        rate: Option<Value>,
    },
    /// `echo "text"`.
    Echo(Text),
    /// `log "text"`, an older form of `echo`.
    Log(Text),
    /// `usage "text"`, an older form: a line of help.
    Usage(Text),
    /// `system "command"`.
    System(Text),
    /// `sleep value`, in seconds.
    Sleep(Value),
    /// `warmup value`, an older form: seconds of work that are not counted.
    Warmup(Value),
    /// `list`, `list fileset`, `list flowop`.
    List(Listed),
    /// `vars`, an older form: prints all variables.
    Vars,
    /// `version`.
    Version,
    /// `help`, an older form.
    Help,
    /// `debug n`.
    Debug(u64),
    /// `enable lathist`.
    EnableLatencyHistogram,
    /// `enable multi master=.., client=..`.
    EnableMulti {
        /// The host that clients wait for.
        master: Value,
        /// What this client is called.
        client: Value,
    },
    /// `domultisync value=..`.
    MultiSync(Value),
    /// `stats ...`, an older form.
    Stats(StatsCommand),
    /// `shutdown ...`, an older form.
    Shutdown(Entity),
    /// `foreach $name in 1, 2, 3 { ... }`, an older form.
    Foreach {
        /// The variable that takes each value.
        variable: Variable,
        /// The values, in order.
        values: Vec<Value>,
        /// What is done with each.
        commands: Vec<Command>,
    },
    /// `load name`, an older form: the workload of this name is carried out here.
    Load(Text),
    /// `fscheck` and `fsflush`, older forms that start a script of their own: accepted, not done.
    Ignored(&'static str),
    /// `quit`, and the older `exit`.
    Quit,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuitMode {
    /// After its time; a thread that finds no work is an error.
    #[default]
    Timeout,
    /// When every thread has found no work.
    AllDone,
    /// When the first thread finds no work.
    FirstDone,
}

/// What `list` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Everything; an older form.
    All,
    /// The filesets.
    Filesets,
    /// The flowops.
    Flowops,
}

/// What `shutdown` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// Files and filesets: their removal.
    Filesets,
    /// Processes and threads.
    Processes,
}

/// What `stats` does.
#[derive(Clone, Debug, PartialEq)]
pub enum StatsCommand {
    /// Starts the statistics anew.
    Clear,
    /// Takes and prints them.
    Snap,
    /// Where files of statistics go.
    Directory(Text),
    /// A command of the shell that runs until the next `snap`; never started.
    Command(Text),
    /// Writes them to a file: `dump`, `xmldump` and `multidump`.
    Dump(Text),
}

/// A reference to a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Where its `$` stands.
    pub at: Position,
    /// Its name without `$` and without brackets: `$(dir)` and `${dir}` are `$dir`.
    pub name: String,
    /// As it is written, which is what a text keeps where nobody sets the variable.
    pub written: String,
    /// `$name.mean`, an older form: one parameter of a random variable.
    pub part: Option<Part>,
}

/// A parameter of a random variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `.type`
    Type,
    /// `.seed`
    Seed,
    /// `.gamma`
    Gamma,
    /// `.mean`
    Mean,
    /// `.min`
    Min,
    /// `.round`
    Round,
    /// `.randsrc`
    Source,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Where it begins.
    pub at: Position,
    /// What it is.
    pub kind: ValueKind,
}

/// The kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueKind {
    /// `true`, `false`, and an attribute without a value.
    Boolean(bool),
    /// `16`, `16k`.
    Integer(u64),
    /// `1.5`, an extension.
    Float(f64),
    /// A bare or quoted text, or an older form's `$dir/name`.
    Text(Text),
    /// `$name`, read when it is used.
    Variable(Variable),
}

/// A text with variables in it, the pieces to be joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// In order.
    pub pieces: Vec<Piece>,
}

impl Text {
    /// The text itself, where no variable is in it.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// As it stands.
    Literal(String),
    /// The variable's value.
    Variable(Variable),
}

/// `set $name = ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// What is set.
    pub variable: Variable,
    /// To what.
    pub value: Assigned,
}

/// What a variable is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Assigned {
    /// A value; another variable is read at once (an older form).
    Value(Value),
    /// `$a * 2`, an older form: carried out from left to right, at once.
    Arithmetic {
        /// The first operand.
        first: Value,
        /// The others.
        rest: Vec<(Operator, Value)>,
    },
    /// `randvar(...)`.
    Random(RandomVariable),
    /// `cvar(...)`.
    Custom(CustomVariable),
}

/// Arithmetic on integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded towards 0.
    Divide,
}

/// A random variable as it is written; [`crate::Distribution`] is what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomVariable {
    /// Where it begins.
    pub at: Position,
    /// `type=`; gamma where it is left out.
    pub law: Option<RandomLaw>,
    /// `randsrc=`; rand48 where it is left out.
    pub source: Option<RandomSource>,
    /// `seed`, `gamma`, `mean`, `min`, `round`.
    pub attributes: Attributes<RandvarAttribute>,
    /// `randtable=`.
    pub table: Option<Vec<TableRow>>,
}

/// The laws of random variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomLaw {
    /// `uniform`
    Uniform,
    /// `gamma`
    #[default]
    Gamma,
    /// `tabular`
    Tabular,
}

/// Where filebench takes its random numbers from; dyno's come from the run's seed either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomSource {
    /// `rand48`: the variable's own sequence, from its `seed`.
    #[default]
    Rand48,
    /// `urandom`: the process's sequence.
    Urandom,
}

/// A row of a table: `{percent, min, max}`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Where its `{` stands.
    pub at: Position,
    /// How many of a hundred draws fall into it.
    pub percent: Value,
    /// From here ...
    pub min: Value,
    /// ... to here.
    pub max: Value,
}

/// A custom variable as it is written; [`crate::Distribution`] is what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomVariable {
    /// Where it begins.
    pub at: Position,
    /// `type`, `parameters`, `min`, `max`, `round`.
    pub attributes: Attributes<CvarAttribute>,
}

/// `define fileset` and `define file`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fileset {
    /// Where its `define` stands.
    pub at: Position,
    /// `define file`: one entry, width 10, no randomness; a block device where `path/name` is one.
    pub single: bool,
    /// Its attributes.
    pub attributes: Attributes<FilesetAttribute>,
    /// It stands in a file of older form ([`Script::older`]), where the sizes of a fileset without
    /// `filesizegamma` are gamma-distributed.
    pub older: bool,
}

/// `define process`.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Where its `define` stands.
    pub at: Position,
    /// Its attributes.
    pub attributes: Attributes<ProcessAttribute>,
    /// Its threads, at least one.
    pub threads: Vec<Thread>,
}

/// `thread`.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Where its `thread` stands.
    pub at: Position,
    /// Its attributes.
    pub attributes: Attributes<ThreadAttribute>,
    /// Its flowops, at least one.
    pub flowops: Vec<Flowop>,
}

/// `define flowop`: a list of flowops under one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// Where its `define` stands.
    pub at: Position,
    /// Its attributes.
    pub attributes: Attributes<CompositeAttribute>,
    /// Its local variables and their defaults.
    pub locals: Vec<Local>,
    /// Its flowops, at least one.
    pub flowops: Vec<Flowop>,
}

/// A local variable of a composite flowop, or a value for one: `$name`, `$name = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// The variable.
    pub variable: Variable,
    /// Its value, read where the composite is used: `$inner = $outer` gives the outer's.
    pub value: Option<Value>,
}

/// `flowop`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flowop {
    /// Where its `flowop` stands.
    pub at: Position,
    /// What it does.
    pub kind: FlowopKind,
    /// Where the kind stands.
    pub kind_at: Position,
    /// Its attributes.
    pub attributes: Attributes<FlowopAttribute>,
    /// Values for a composite's local variables.
    pub locals: Vec<Local>,
}

/// What a flowop does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowopKind {
    /// One of the language's.
    Known(FlowopType),
    /// A composite's name.
    Composite(String),
}

/// An object's attributes, as written. One that occurs twice has its last value.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes<K> {
    list: Vec<Attribute<K>>,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute<K> {
    /// Where its name stands.
    pub at: Position,
    /// Which one.
    pub key: K,
    /// Its value; `true` where it has none.
    pub value: Value,
}

impl<K> Default for Attributes<K> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

impl<K: Copy + PartialEq> Attributes<K> {
    /// Adds one, in the text's order.
    pub fn push(&mut self, attribute: Attribute<K>) {
        self.list.push(attribute);
    }

    /// The value of `key`, if it is there.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&Value> {
        self.find(key).map(|attribute| &attribute.value)
    }

    /// The attribute `key`, if it is there.
    #[must_use]
    pub fn find(&self, key: K) -> Option<&Attribute<K>> {
        self.list
            .iter()
            .rev()
            .find(|attribute| attribute.key == key)
    }

    /// All, in the text's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Attribute<K>> {
        self.list.iter()
    }
}

impl<'a, K> IntoIterator for &'a Attributes<K> {
    type Item = &'a Attribute<K>;
    type IntoIter = std::slice::Iter<'a, Attribute<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// What an attribute's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A name.
    Name,
    /// A text: a path, a message, parameters.
    Text,
    /// A number; a random variable gives a new one each time it is read.
    Number,
    /// Yes or no.
    Boolean,
    /// A percentage; yes is 100.
    Percentage,
    /// A name or a number, as the flowop wants it.
    Any,
}

/// What is known of an attribute, a flowop type or the like; the pages of the documentation are held to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// As it is written; further ways to write it come after it.
    pub names: &'static [&'static str],
    /// What its value is.
    pub wanted: Wanted,
    /// What it is where it is left out.
    pub default: &'static str,
    /// It is filebench's of before 1.5.
    pub older: bool,
}

/// The attributes of a kind of object.
pub trait Key: Copy + PartialEq + std::fmt::Debug + 'static {
    /// All of them, in the order of the documentation.
    const ALL: &'static [Self];

    /// What is known of it.
    fn about(self) -> About;

    /// As it is written.
    fn name(self) -> &'static str {
        self.about().names[0]
    }

    /// The one written so.
    fn find(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|key| key.about().names.contains(&name))
    }
}

/// Declares the attributes of one kind of object.
macro_rules! keys {
    ($(#[$outer:meta])* $type:ident { $($(#[$inner:meta])* $variant:ident: $($name:literal)|+, $wanted:ident, $default:literal $(, $older:ident)?;)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$inner])* $variant,)+
        }

        impl Key for $type {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn about(self) -> About {
                match self {
                    $(Self::$variant => About {
                        names: &[$($name),+],
                        wanted: Wanted::$wanted,
                        default: $default,
                        older: keys!(@ $($older)?),
                    },)+
                }
            }
        }
    };
    (@) => { false };
    (@ older) => { true };
}

keys! {
    /// The attributes of filesets. A single file has no `entries`, `dirwidth`, `dirdepthrv`, `dirgamma`, `leafdirs`.
    FilesetAttribute {
        /// What it is called, and its folder within the path.
        Name: "name", Name, "must be given";
        /// Where its folder is made.
        Path: "path", Text, "must be given";
        /// How many files.
        Entries: "entries", Number, "0";
        /// Bytes of each file, read once for each.
        Size: "size" | "filesize", Number, "1k";
        /// How many of a hundred files exist at the start.
        Prealloc: "prealloc", Percentage, "0";
        /// Files are written by several threads.
        Paralloc: "paralloc", Boolean, "false";
        /// What is there already and has the size is kept.
        Reuse: "reuse", Boolean, "false";
        /// As `reuse`, without looking at sizes.
        TrustTree: "trusttree", Boolean, "false";
        /// Files are opened for reading only.
        ReadOnly: "readonly", Boolean, "false";
        /// Files are opened for writing only.
        WriteOnly: "writeonly", Boolean, "false";
        /// The mean number of entries in a directory.
        DirWidth: "dirwidth", Number, "0";
        /// A random variable that gives each directory's depth.
        DirDepthRv: "dirdepthrv", Number, "none";
        /// The shape of the gamma law of widths and depths, times 1000; 0 is no randomness.
        DirGamma: "dirgamma", Number, "1500";
        /// How many empty directories.
        LeafDirs: "leafdirs", Number, "0";
        /// The shape of the gamma law of sizes, times 1000; 0 is no randomness.
        FileSizeGamma: "filesizegamma", Number, "0; 1500 in a file of older form", older;
        /// Files need not be kept in the page cache; nothing was ever done with it but a hint.
        Cached: "cached", Boolean, "false", older;
        /// What its data are made by: `entro` alone is known, data of a given entropy.
        DataSource: "datasource", Name, "none", older;
        /// Bits of information in each byte of its data, 0 to 8.
        Entropy: "entropy", Number, "none", older;
    }
}

keys! {
    /// The attributes of processes.
    ProcessAttribute {
        /// What it is called.
        Name: "name", Name, "must be given";
        /// How many of it.
        Instances: "instances", Number, "1";
        /// What is added to its niceness.
        Nice: "nice", Number, "0";
    }
}

keys! {
    /// The attributes of threads.
    ThreadAttribute {
        /// What it is called.
        Name: "name", Name, "must be given";
        /// How many of it in each process.
        Instances: "instances", Number, "1";
        /// Bytes that its data come from and go to; with 0 each flowop has memory of its own.
        MemSize: "memsize", Number, "0";
        /// Its memory is shared memory.
        UseIsm: "useism", Boolean, "false";
        /// Its priority for input and output: 0 to 7, 8 is the system's own.
        IoPrio: "ioprio", Number, "8";
        /// The process that it belongs to.
        ProcName: "procname", Name, "its process", older;
    }
}

keys! {
    /// The attributes of flowops.
    FlowopAttribute {
        /// What it is called, in results and as a target.
        Name: "name", Name, "must be given";
        /// The fileset that it works on.
        FilesetName: "filesetname" | "filename", Name, "none";
        /// The slot of its open file, 1 to 127; 0 is none in particular.
        Fd: "fd", Number, "0";
        /// The slot of the file whose size is written.
        SrcFd: "srcfd", Number, "0";
        /// Slots are taken in turn, 127 to 0.
        OpenNext: "opennext", Boolean, "false";
        /// Bytes of one read or write.
        IoSize: "iosize", Number, "0";
        /// Bytes of the file that are worked on; 0 is all of it.
        WorkingSet: "workingset", Number, "0";
        /// At random offsets.
        Random: "random", Boolean, "false";
        /// Files are opened with `O_SYNC`.
        DSync: "dsync", Boolean, "false";
        /// Files are opened with `O_DIRECT`.
        DirectIo: "directio", Boolean, "false";
        /// The file of this number.
        Indexed: "indexed", Number, "none";
        /// The flowop, by its name, that is counted, woken or posted to.
        Target: "target", Name, "none";
        /// How often it is done in a row.
        Iters: "iters", Number, "1";
        /// What the type of flowop says: a count, seconds, bytes, a text.
        Value: "value", Any, "0";
        /// The poster waits for the one that takes.
        Blocking: "blocking", Boolean, "false";
        /// How far the poster may be ahead.
        HighWater: "highwater", Number, "1";
        /// The system is told not to read ahead.
        NoReadAhead: "noreadahead", Boolean, "false";
    }
}

keys! {
    /// The attributes of composite flowops.
    CompositeAttribute {
        /// What it is called as a type of flowop.
        Name: "name", Name, "must be given";
        /// How often it is done in a row, where its use does not say.
        Iters: "iters", Number, "1";
    }
}

keys! {
    /// The attributes of random variables that are values.
    RandvarAttribute {
        /// The variable, in `define randvar`.
        Name: "name", Name, "the variable that is set";
        /// Where its sequence starts.
        Seed: "seed", Number, "0";
        /// The shape of a gamma law, times 1000.
        Gamma: "gamma", Number, "1500";
        /// The mean.
        Mean: "mean", Number, "see the laws";
        /// The least value.
        Min: "min", Number, "0";
        /// Samples are multiples of it; 0 is as they come.
        Round: "round", Number, "0";
    }
}

keys! {
    /// The attributes of custom variables.
    CvarAttribute {
        /// Its law.
        Type: "type", Text, "must be given";
        /// The law's parameters, `key:value;key:value`.
        Parameters: "parameters", Text, "the law's own";
        /// The least value.
        Min: "min", Number, "0";
        /// The greatest value.
        Max: "max", Number, "none";
        /// Samples are multiples of it; 0 is as they come.
        Round: "round", Number, "0";
    }
}

/// How a flowop is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowopClass {
    /// Input and output: counted in the summary.
    Io,
    /// Asynchronous: counted in the summary.
    Aio,
    /// Flowops that wait for each other.
    Sync,
    /// Everything else.
    Other,
}

/// Which way a flowop's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It reads: counted as `rd`.
    Read,
    /// It writes: counted as `wr`.
    Write,
    /// Neither.
    Neither,
}

/// Declares the types of flowops.
macro_rules! flowops {
    ($($(#[$inner:meta])* $variant:ident: $name:literal, $class:ident, $direction:ident;)+) => {
        /// The types of flowops.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FlowopType {
            $($(#[$inner])* $variant,)+
        }

        impl FlowopType {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is written.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// How it is counted.
            #[must_use]
            pub const fn class(self) -> FlowopClass {
                match self {
                    $(Self::$variant => FlowopClass::$class,)+
                }
            }

            /// Which way its bytes go.
            #[must_use]
            pub const fn direction(self) -> Direction {
                match self {
                    $(Self::$variant => Direction::$direction,)+
                }
            }
        }
    };
}

flowops! {
    /// Opens an existing file.
    OpenFile: "openfile", Io, Neither;
    /// Makes and opens a file that does not exist.
    CreateFile: "createfile", Io, Neither;
    /// Closes a file.
    CloseFile: "closefile", Io, Neither;
    /// Deletes a file.
    DeleteFile: "deletefile", Io, Neither;
    /// Asks for a file's status.
    StatFile: "statfile", Io, Neither;
    /// One read.
    Read: "read", Io, Read;
    /// One write.
    Write: "write", Io, Write;
    /// Reads a file to its end.
    ReadWholeFile: "readwholefile", Io, Read;
    /// Writes a file of its planned size.
    WriteWholeFile: "writewholefile", Io, Write;
    /// One write at the end.
    AppendFile: "appendfile", Io, Write;
    /// One write of a random size at the end.
    AppendFileRand: "appendfilerand", Io, Write;
    /// Syncs a file.
    Fsync: "fsync", Io, Neither;
    /// Syncs every open file of a fileset.
    FsyncSet: "fsyncset", Io, Neither;
    /// Makes a leaf directory.
    MakeDir: "makedir", Io, Neither;
    /// Removes a leaf directory.
    RemoveDir: "removedir", Io, Neither;
    /// Reads a directory.
    ListDir: "listdir", Io, Neither;
    /// Starts a write.
    AioWrite: "aiowrite", Aio, Write;
    /// Waits for half of the writes under way.
    AioWait: "aiowait", Aio, Neither;
    /// Waits to be woken.
    Block: "block", Sync, Neither;
    /// Wakes whoever waits at the target.
    Wakeup: "wakeup", Sync, Neither;
    /// Waits for posts.
    SemBlock: "semblock", Sync, Neither;
    /// Posts to the target.
    SemPost: "sempost", Sync, Neither;
    /// Uses the processor.
    Hog: "hog", Other, Neither;
    /// Sleeps.
    Delay: "delay", Other, Neither;
    /// Takes one event.
    EventLimit: "eventlimit", Other, Neither;
    /// Takes an event for each read and write.
    IopsLimit: "iopslimit", Other, Neither;
    /// Takes an event for each operation.
    OpsLimit: "opslimit", Other, Neither;
    /// Takes an event for each mebibyte.
    BwLimit: "bwlimit", Other, Neither;
    /// Ends the thread after so many operations.
    FinishOnCount: "finishoncount", Other, Neither;
    /// Ends the thread after so many bytes.
    FinishOnBytes: "finishonbytes", Other, Neither;
    /// Prints a text.
    Print: "print", Other, Neither;
    /// Draws from a random variable.
    TestRandVar: "testrandvar", Other, Neither;
}

impl FlowopType {
    /// The one written so.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A value for a parameter of a random variable.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// For `.type`.
    Law(RandomLaw),
    /// For `.randsrc`.
    Source(RandomSource),
    /// For the others.
    Value(Value),
}

impl Part {
    /// All of them, as they are written after the dot.
    pub const ALL: [(&'static str, Self); 7] = [
        ("type", Self::Type),
        ("seed", Self::Seed),
        ("gamma", Self::Gamma),
        ("mean", Self::Mean),
        ("min", Self::Min),
        ("round", Self::Round),
        ("randsrc", Self::Source),
    ];

    /// The one written so.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find_map(|&(written, part)| (written == name).then_some(part))
    }
}
