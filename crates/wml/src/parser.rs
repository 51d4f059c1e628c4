//! Commands from words: recursive descent, one token ahead, no deeper than [`DEEPEST`].

use std::collections::BTreeSet;

use crate::ast::{
    Assigned, Assignment, Attribute, Attributes, Command, CommandKind, Composite, CustomVariable,
    Entity, Fileset, FilesetAttribute, Flowop, FlowopKind, FlowopType, Key, Listed, Local, Note,
    Operator, ParameterValue, Part, Piece, Position, Process, QuitMode, RandomLaw, RandomSource,
    RandomVariable, RandvarAttribute, Script, StatsCommand, TableRow, Text, Thread,
    ThreadAttribute, Value, ValueKind, Variable, Wanted,
};
use crate::error::Error;
use crate::lexer::{self, Kind, Token, quote};

/// How deep `foreach` may be nested.
pub(crate) const DEEPEST: u32 = 16;

/// The commands, for messages.
const COMMANDS: &str = "create, debug, define, domultisync, echo, enable, eventgen, list, psrun, \
     quit, run, set, sleep, system, version; of older form: exit, foreach, fscheck, fsflush, help, load, log, \
     shutdown, stats, usage, vars, warmup";

/// The attributes that a single file does not have.
const NOT_OF_FILES: [FilesetAttribute; 5] = [
    FilesetAttribute::Entries,
    FilesetAttribute::DirWidth,
    FilesetAttribute::DirDepthRv,
    FilesetAttribute::DirGamma,
    FilesetAttribute::LeafDirs,
];

/// Reads a workload file's text; `name` is what the file is called in messages.
pub fn parse(text: &str, name: &str) -> Result<Script, Error> {
    let (mut parser, mut notes) = Parser::new(text, name);
    let variables = parser.variables();
    let mut commands = Vec::new();
    while !matches!(parser.peek().kind, Kind::End) {
        commands.push(parser.command(0)?);
    }
    notes.append(&mut parser.notes);
    let older = parser.older;
    run_while_it_sleeps(&mut commands, &mut notes);
    if older {
        mark_older(&mut commands, &mut notes);
    }
    notes.sort_by_key(|note| note.at);
    Ok(Script {
        name: name.to_owned(),
        commands,
        notes,
        older,
        variables,
    })
}

/// As [`parse`], of bytes that may be of another encoding than UTF-8: what is not UTF-8 is allowed in
/// comments and texts, where it is replaced.
pub fn parse_bytes(bytes: &[u8], name: &str) -> Result<Script, Error> {
    parse(&String::from_utf8_lossy(bytes), name)
}

/// Reads what a variable is set to from outside the file, such as `16k`, `/mnt` or `cvar(...)`: what
/// may stand after `set $name =`, or any text.
pub fn parse_value(text: &str, name: &str) -> Result<Assigned, Error> {
    let at = Position { line: 1, column: 1 };
    let plain = |text: &str| {
        Assigned::Value(Value {
            at,
            kind: ValueKind::Text(Text {
                pieces: vec![Piece::Literal(text.to_owned())],
            }),
        })
    };
    let (mut parser, notes) = Parser::new(text, name);
    let special = matches!(parser.peek().kind, Kind::Word("cvar" | "randvar"))
        && matches!(parser.peek_second(), Some(Kind::Mark('(')));
    let parsed = parser.assigned();
    if special {
        let value = parsed?;
        return match parser.peek().kind {
            Kind::End => Ok(value),
            _ => Err(parser.unexpected("the end")),
        };
    }
    Ok(match parsed {
        Ok(Assigned::Value(value))
            if matches!(parser.peek().kind, Kind::End)
                && notes.is_empty()
                && !matches!(value.kind, ValueKind::Variable(_) | ValueKind::Text(_)) =>
        {
            Assigned::Value(value)
        }
        _ => plain(text),
    })
}

/// In older files that have no `run`, processes work from `create processes` on, while the file sleeps: that is put in
/// the form of a `run` of the same time. What is slept before the first `stats clear` is its warm-up.
///
/// Where something changes between, or where it happens again and again, each time is a round.
fn run_while_it_sleeps(commands: &mut Vec<Command>, notes: &mut Vec<Note>) {
    if has_run(commands) {
        return;
    }
    let mut rounds = Rounds::default();
    let in_rounds = rounds.of(commands.clone());
    if rounds.count > 1 || rounds.repeats {
        *commands = in_rounds;
        notes.extend(rounds.first.map(|at| Note {
            at,
            message: "there is no `run`: the processes run whenever the file sleeps after this, each time a round"
                .to_owned(),
        }));
        return;
    }
    let Some(created) = commands
        .iter()
        .position(|command| command.kind == CommandKind::CreateProcesses)
    else {
        return;
    };
    let (mut before, mut counted) = (Vec::new(), Vec::new());
    let mut first = None;
    let mut cleared = false;
    for (place, command) in commands.iter().enumerate().skip(created) {
        match &command.kind {
            CommandKind::Sleep(seconds) => {
                first.get_or_insert(place);
                counted.push(seconds.clone());
            }
            CommandKind::Stats(StatsCommand::Clear) if !cleared => {
                cleared = true;
                before = std::mem::take(&mut counted);
            }
            CommandKind::Shutdown(Entity::Processes) | CommandKind::Quit => break,
            _ => {}
        }
    }
    if counted.is_empty() {
        counted = std::mem::take(&mut before);
    }
    let (Some(first), Some(seconds)) = (first, counted.first().cloned()) else {
        return;
    };
    let at = commands[first].at;
    let mut put = Vec::new();
    if !before.is_empty() {
        let total = total(&before, "time slept before", at, &mut put);
        put.push(Command {
            at,
            kind: CommandKind::Warmup(total),
        });
    }
    let total = total(&counted, "time slept", at, &mut put);
    put.push(Command {
        at: seconds.at,
        kind: CommandKind::Run {
            seconds: Some(total),
        },
    });
    commands.splice(first..=first, put);
    notes.push(Note {
        at: commands[created].at,
        message: "there is no `run`: the processes run for as long as the file sleeps after this"
            .to_owned(),
    });
}

/// Puts rounds in place of the sleeping.
#[derive(Default)]
struct Rounds {
    /// The processes exist.
    working: bool,
    /// Where they were first created.
    first: Option<Position>,
    /// How many rounds there are, those of a `foreach` once.
    count: usize,
    /// One of them is within a `foreach`.
    repeats: bool,
}

/// Sleeping without a change between.
struct Slept {
    /// Where it begins among the commands.
    place: usize,
    at: Position,
    /// What is slept before statistics are cleared.
    before: Vec<Value>,
    counted: Vec<Value>,
}

impl Rounds {
    fn of(&mut self, commands: Vec<Command>) -> Vec<Command> {
        let mut put = Vec::with_capacity(commands.len());
        let mut slept: Option<Slept> = None;
        let mut cleared = false;
        for mut command in commands {
            match &mut command.kind {
                CommandKind::CreateProcesses => {
                    self.working = true;
                    self.first.get_or_insert(command.at);
                    cleared = false;
                }
                CommandKind::Sleep(seconds) if self.working => {
                    let slept = slept.get_or_insert_with(|| Slept {
                        place: put.len(),
                        at: command.at,
                        before: Vec::new(),
                        counted: Vec::new(),
                    });
                    slept.counted.push(seconds.clone());
                    continue;
                }
                CommandKind::Stats(StatsCommand::Clear) => {
                    if let (Some(slept), false) = (&mut slept, cleared) {
                        slept.before = std::mem::take(&mut slept.counted);
                    }
                    cleared = true;
                }
                CommandKind::Eventgen { .. }
                | CommandKind::Set(_)
                | CommandKind::SetParameter { .. }
                | CommandKind::System(_)
                | CommandKind::Quit => self.close(slept.take(), &mut put),
                CommandKind::Shutdown(Entity::Processes) => {
                    self.close(slept.take(), &mut put);
                    self.working = false;
                }
                CommandKind::Foreach { commands, .. } => {
                    self.close(slept.take(), &mut put);
                    let before = self.count;
                    *commands = self.of(std::mem::take(commands));
                    self.repeats |= self.count > before;
                }
                _ => {}
            }
            put.push(command);
        }
        self.close(slept, &mut put);
        put
    }

    fn close(&mut self, slept: Option<Slept>, commands: &mut Vec<Command>) {
        let Some(slept) = slept else { return };
        let at = slept.at;
        let mut put = Vec::new();
        let mut sum =
            |times: &[Value], name| (!times.is_empty()).then(|| total(times, name, at, &mut put));
        let kind = CommandKind::Round {
            warmup: sum(&slept.before, "time slept before"),
            seconds: sum(&slept.counted, "time slept"),
        };
        put.push(Command { at, kind });
        commands.splice(slept.place..slept.place, put);
        self.count += 1;
    }
}

fn has_run(commands: &[Command]) -> bool {
    commands.iter().any(|command| match &command.kind {
        CommandKind::Run { .. } | CommandKind::PsRun { .. } => true,
        CommandKind::Foreach { commands, .. } => has_run(commands),
        _ => false,
    })
}

/// The sum of some times; of several by a command that is put before, into a variable that no file can name.
fn total(times: &[Value], name: &str, at: Position, commands: &mut Vec<Command>) -> Value {
    let [first, rest @ ..] = times else {
        return Value {
            at,
            kind: ValueKind::Integer(0),
        };
    };
    if rest.is_empty() {
        return first.clone();
    }
    let variable = Variable {
        at,
        name: name.to_owned(),
        part: None,
        written: name.to_owned(),
    };
    commands.push(Command {
        at,
        kind: CommandKind::Set(Assignment {
            variable: variable.clone(),
            value: Assigned::Arithmetic {
                first: first.clone(),
                rest: rest
                    .iter()
                    .map(|time| (Operator::Add, time.clone()))
                    .collect(),
            },
        }),
    });
    Value {
        at,
        kind: ValueKind::Variable(variable),
    }
}

/// Files that only filebench before 1.5 accepts have its sizes.
fn mark_older(commands: &mut [Command], notes: &mut Vec<Note>) {
    for command in commands {
        match &mut command.kind {
            CommandKind::DefineFileset(fileset) => {
                fileset.older = true;
                let attributes = &fileset.attributes;
                if let (false, Some(size), None) = (
                    fileset.single,
                    attributes.find(FilesetAttribute::Size),
                    attributes.find(FilesetAttribute::FileSizeGamma),
                ) {
                    notes.push(Note {
                        at: size.at,
                        message: "sizes that are no random variable are gamma-distributed with shape 1.5, as \
                                  filebench before 1.5 made them; `filesizegamma=0` makes them all alike"
                            .to_owned(),
                    });
                }
            }
            CommandKind::Foreach { commands, .. } => mark_older(commands, notes),
            _ => {}
        }
    }
}

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// The next token's place; the last token is never passed.
    next: usize,
    notes: Vec<Note>,
    older: bool,
}

type Parsed<T> = Result<T, Error>;

impl<'a> Parser<'a> {
    fn new(text: &'a str, name: &'a str) -> (Self, Vec<Note>) {
        let (tokens, notes) = lexer::tokens(text);
        let parser = Self {
            name,
            text,
            tokens,
            next: 0,
            notes: Vec::new(),
            older: false,
        };
        (parser, notes)
    }

    /// The names of all variables in the text.
    fn variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for token in &self.tokens {
            match &token.kind {
                Kind::Variable(variable) => {
                    names.insert(variable.name.clone());
                }
                Kind::Quoted(text) => {
                    for piece in &text.pieces {
                        if let Piece::Variable(variable) = piece {
                            names.insert(variable.name.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        names
    }

    fn peek(&self) -> &Token<'a> {
        &self.tokens[self.next]
    }

    fn peek_second(&self) -> Option<&Kind<'a>> {
        self.tokens.get(self.next + 1).map(|token| &token.kind)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.tokens[self.next].clone();
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
        token
    }

    fn at(&self) -> Position {
        self.peek().at
    }

    fn word(&self) -> Option<&'a str> {
        match self.peek().kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_mark(&self, mark: char) -> bool {
        matches!(self.peek().kind, Kind::Mark(found) if found == mark)
    }

    /// Takes the mark, if it is the next token.
    fn taken(&mut self, mark: char) -> bool {
        let there = self.is_mark(mark);
        if there {
            self.take();
        }
        there
    }

    fn expect(&mut self, mark: char, expected: &str) -> Parsed<()> {
        if self.taken(mark) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error::new(self.name, at, message)
    }

    /// What stands here is not what was expected.
    fn unexpected(&self, expected: &str) -> Error {
        let token = self.peek();
        let found = match &token.kind {
            Kind::Wrong(message) => return self.error(token.at, message.clone()),
            Kind::End => "the end of the file".to_owned(),
            Kind::Quoted(_) => format!("the text {}", quote(self.source(token))),
            _ => quote(self.source(token)),
        };
        self.error(token.at, format!("found {found}, expected {expected}"))
    }

    fn source(&self, token: &Token<'a>) -> &'a str {
        &self.text[token.start..token.end]
    }

    fn note(&mut self, at: Position, message: impl Into<String>) {
        self.notes.push(Note {
            at,
            message: message.into(),
        });
    }

    /// A form that filebench 1.5 refuses and earlier versions had.
    fn older(&mut self, at: Position, message: impl Into<String>) {
        self.older = true;
        self.note(at, message);
    }

    fn command(&mut self, depth: u32) -> Parsed<Command> {
        let at = self.at();
        let Some(word) = self.word() else {
            return Err(self.unexpected(&format!("a command ({COMMANDS})")));
        };
        let kind = match word {
            "define" => self.define(at)?,
            "set" => self.set()?,
            "create" => self.create(at)?,
            "run" => {
                self.take();
                CommandKind::Run {
                    seconds: self.optional_number(),
                }
            }
            "psrun" => self.psrun()?,
            "eventgen" => self.eventgen()?,
            "echo" => {
                self.take();
                CommandKind::Echo(self.quoted()?)
            }
            "system" => {
                self.take();
                CommandKind::System(self.quoted()?)
            }
            "sleep" => {
                self.take();
                CommandKind::Sleep(self.seconds()?)
            }
            "list" => self.list(at),
            "version" => self.bare(CommandKind::Version),
            "quit" => self.bare(CommandKind::Quit),
            "debug" => self.debug()?,
            "enable" => self.enable()?,
            "domultisync" => {
                self.take();
                CommandKind::MultiSync(self.named_value("value")?)
            }
            _ => self.older_command(at, word, depth)?,
        };
        Ok(Command { at, kind })
    }

    fn bare(&mut self, kind: CommandKind) -> CommandKind {
        self.take();
        kind
    }

    /// The commands of filebench before 1.5.
    fn older_command(&mut self, at: Position, word: &str, depth: u32) -> Parsed<CommandKind> {
        let older = "is an older form";
        Ok(match word {
            "exit" => {
                self.older(at, format!("`exit` {older} of `quit`"));
                self.bare(CommandKind::Quit)
            }
            "vars" => {
                self.older(at, format!("`vars` {older}: prints all variables"));
                self.bare(CommandKind::Vars)
            }
            "help" => {
                self.older(at, format!("`help` {older}: does nothing"));
                self.bare(CommandKind::Help)
            }
            "usage" => {
                self.older(at, format!("`usage` {older} of `echo`: a line of help"));
                self.take();
                CommandKind::Usage(self.quoted()?)
            }
            "log" => {
                self.older(at, format!("`log` {older} of `echo`"));
                self.take();
                CommandKind::Log(self.quoted()?)
            }
            "warmup" => {
                self.older(
                    at,
                    format!("`warmup` {older}: seconds of work that are not counted"),
                );
                self.take();
                CommandKind::Warmup(self.seconds()?)
            }
            "load" => {
                self.older(
                    at,
                    format!("`load` {older}: the workload of this name is carried out here"),
                );
                self.take();
                CommandKind::Load(self.name_or_text("a workload's name")?)
            }
            "shutdown" => {
                self.older(
                    at,
                    format!("`shutdown` {older}: accepted; a run ends by itself"),
                );
                self.take();
                CommandKind::Shutdown(self.entity())
            }
            "stats" => self.stats(at)?,
            "foreach" => self.foreach(at, depth)?,
            "fscheck" | "fsflush" => {
                let word = if word == "fscheck" {
                    "fscheck"
                } else {
                    "fsflush"
                };
                self.older(
                    at,
                    format!("`{word}` {older} that started a script: accepted, not done"),
                );
                self.take();
                loop {
                    if !matches!(self.word(), Some("path" | "fstype")) {
                        break;
                    }
                    self.take();
                    self.expect('=', "`=` and a text")?;
                    self.value()?;
                }
                CommandKind::Ignored(word)
            }
            _ => return Err(self.unexpected(&format!("a command ({COMMANDS})"))),
        })
    }

    // ---- define -------------------------------------------------------------------------------

    fn define(&mut self, at: Position) -> Parsed<CommandKind> {
        self.take();
        let word = self.word().unwrap_or_default();
        let what_at = self.at();
        match word {
            "fileset" | "filesets" | "file" | "files" => {
                self.take();
                let single = matches!(word, "file" | "files");
                Ok(CommandKind::DefineFileset(self.fileset(at, single)?))
            }
            "process" | "processes" | "processs" => {
                self.take();
                Ok(CommandKind::DefineProcess(self.process(at)?))
            }
            "flowop" => {
                self.take();
                Ok(CommandKind::DefineComposite(self.composite(at)?))
            }
            "randvar" => {
                self.take();
                self.older(
                    what_at,
                    "`define randvar name=$x, ...` is an older form of `set $x = randvar(...)`",
                );
                self.define_randvar(at)
            }
            _ => Err(self.unexpected("file, fileset, process, flowop or (an older form) randvar")),
        }
    }

    fn fileset(&mut self, at: Position, single: bool) -> Parsed<Fileset> {
        let what = if single { "a file" } else { "a fileset" };
        let attributes = self.attributes(what, &mut None)?;
        for attribute in &attributes {
            self.about_fileset(attribute, single);
        }
        Ok(Fileset {
            at,
            single,
            attributes,
            older: false,
        })
    }

    fn about_fileset(&mut self, attribute: &Attribute<FilesetAttribute>, single: bool) {
        let name = attribute.key.name();
        match attribute.key {
            FilesetAttribute::Cached => self.older(
                attribute.at,
                "`cached` is an older form: accepted, nothing is done with it",
            ),
            FilesetAttribute::DataSource | FilesetAttribute::Entropy => self.older(
                attribute.at,
                format!("`{name}` is an older form, of a filebench that wrote data of a given entropy"),
            ),
            FilesetAttribute::FileSizeGamma => self.older(
                attribute.at,
                "`filesizegamma` is an older form: sizes are gamma-distributed with this shape / 1000",
            ),
            key if single && NOT_OF_FILES.contains(&key) => self.older(
                attribute.at,
                format!("a single file has no `{name}`: accepted, nothing is done with it"),
            ),
            _ => {}
        }
    }

    fn process(&mut self, at: Position) -> Parsed<Process> {
        let attributes = self.attributes("a process", &mut None)?;
        self.expect('{', "`,` and an attribute, or `{` and threads")?;
        let mut threads = vec![self.thread()?];
        while !self.taken('}') {
            if self.word() != Some("thread") {
                return Err(self.unexpected("`thread`, or `}` at the process's end"));
            }
            threads.push(self.thread()?);
        }
        Ok(Process {
            at,
            attributes,
            threads,
        })
    }

    fn thread(&mut self) -> Parsed<Thread> {
        let at = self.at();
        if self.word() != Some("thread") {
            return Err(self.unexpected("`thread`"));
        }
        self.take();
        let attributes: Attributes<ThreadAttribute> = self.attributes("a thread", &mut None)?;
        for attribute in &attributes {
            if attribute.key.about().older {
                self.older(
                    attribute.at,
                    "`procname` is an older form: a thread belongs to the process around it",
                );
            }
        }
        self.expect('{', "`,` and an attribute, or `{` and flowops")?;
        let flowops = self.flowops()?;
        Ok(Thread {
            at,
            attributes,
            flowops,
        })
    }

    /// At least one flowop, and the closing bracket.
    fn flowops(&mut self) -> Parsed<Vec<Flowop>> {
        let mut flowops = Vec::new();
        loop {
            if self.word() == Some("flowop") {
                flowops.push(self.flowop()?);
            } else if flowops.is_empty() {
                return Err(self.unexpected("`flowop`"));
            } else if self.taken('}') {
                return Ok(flowops);
            } else {
                return Err(
                    self.unexpected("`,` and an attribute, `flowop`, or `}` at the list's end")
                );
            }
        }
    }

    fn flowop(&mut self) -> Parsed<Flowop> {
        let at = self.at();
        self.take();
        let kind_at = self.at();
        let Some(word) = self.word() else {
            return Err(self.unexpected(&format!("a type of flowop ({})", flowop_types())));
        };
        self.take();
        let kind = FlowopType::find(word)
            .map_or_else(|| FlowopKind::Composite(word.to_owned()), FlowopKind::Known);
        let mut locals = Some(Vec::new());
        let mut attributes = Attributes::default();
        while self.begins_attribute() {
            let more = self.attributes("a flowop", &mut locals)?;
            self.lists_joined(&mut attributes, more);
        }
        Ok(Flowop {
            at,
            kind,
            kind_at,
            attributes,
            locals: locals.unwrap_or_default(),
        })
    }

    /// Whether another attribute follows; filebench takes lists of them without a comma between.
    fn begins_attribute(&self) -> bool {
        match self.peek().kind {
            Kind::Word(word) => !matches!(word, "flowop" | "thread"),
            Kind::Variable(_) => true,
            _ => false,
        }
    }

    fn lists_joined<K: Key>(&mut self, list: &mut Attributes<K>, more: Attributes<K>) {
        if let (Some(_), Some(first)) = (list.iter().next(), more.iter().next()) {
            self.note(
                first.at,
                "a `,` is missing before it; filebench forgets the attributes before it, here all of them hold",
            );
        }
        for attribute in &more {
            list.push(attribute.clone());
        }
    }

    fn composite(&mut self, at: Position) -> Parsed<Composite> {
        let mut locals = Some(Vec::new());
        let mut attributes = self.attributes("a composite flowop", &mut locals)?;
        self.expect('{', "`,` and an attribute or variable, or `{` and flowops")?;
        let flowops = self.flowops()?;
        while matches!(self.word(), Some("name" | "iters")) {
            let more = self.attributes("a composite flowop", &mut locals)?;
            self.lists_joined(&mut attributes, more);
        }
        Ok(Composite {
            at,
            attributes,
            locals: locals.unwrap_or_default(),
            flowops,
        })
    }

    // ---- attributes ---------------------------------------------------------------------------

    /// One list of attributes, and of local variables where they may stand.
    fn attributes<K: Key>(
        &mut self,
        what: &str,
        locals: &mut Option<Vec<Local>>,
    ) -> Parsed<Attributes<K>> {
        let mut attributes = Attributes::default();
        loop {
            if let (Some(locals), Kind::Variable(_)) = (locals.as_mut(), &self.peek().kind) {
                let variable = self.variable("a variable")?;
                let value = if self.taken('=') {
                    Some(self.value()?)
                } else {
                    None
                };
                locals.push(Local { variable, value });
            } else {
                attributes.push(self.attribute(what)?);
            }
            if !self.taken(',') {
                return Ok(attributes);
            }
        }
    }

    fn attribute<K: Key>(&mut self, what: &str) -> Parsed<Attribute<K>> {
        let at = self.at();
        let Some(key) = self.word().and_then(K::find) else {
            return Err(self.unexpected(&format!("an attribute of {what} ({})", names::<K>())));
        };
        self.take();
        let value = if self.taken('=') {
            let before = self.next;
            let value = self.value()?;
            self.typed(key, value, before)?
        } else {
            let kind = ValueKind::Boolean(true);
            if !matches!(
                key.about().wanted,
                Wanted::Boolean | Wanted::Percentage | Wanted::Any
            ) {
                return Err(self.unexpected(&format!(
                    "`=` and {} after `{}`",
                    wanted(key.about().wanted),
                    key.name()
                )));
            }
            Value { at, kind }
        };
        Ok(Attribute { at, key, value })
    }

    /// The value as the attribute wants it; `first` is its first token.
    fn typed<K: Key>(&self, key: K, value: Value, first: usize) -> Parsed<Value> {
        let at = value.at;
        let want = key.about().wanted;
        let kind = match (want, value.kind) {
            (_, kind @ ValueKind::Variable(_)) | (Wanted::Any, kind) => Some(kind),
            (Wanted::Name | Wanted::Text, kind) => {
                let token = &self.tokens[first];
                match kind {
                    ValueKind::Text(_) => Some(kind),
                    // As it is written.
                    _ => Some(ValueKind::Text(Text {
                        pieces: vec![Piece::Literal(self.source(token).to_owned())],
                    })),
                }
            }
            (_, ValueKind::Text(text)) => match text.literal() {
                None => Some(ValueKind::Text(text)),
                Some(literal) => from_literal(want, literal),
            },
            (Wanted::Number, ValueKind::Boolean(_)) => None,
            (Wanted::Boolean | Wanted::Percentage | Wanted::Number, kind) => Some(kind),
        };
        match kind {
            Some(kind) => Ok(Value { at, kind }),
            None => Err(self.error(
                at,
                format!(
                    "found {}, expected {} for `{}`",
                    quote(self.source(&self.tokens[first])),
                    wanted(want),
                    key.name()
                ),
            )),
        }
    }

    // ---- values -------------------------------------------------------------------------------

    fn value(&mut self) -> Parsed<Value> {
        let at = self.at();
        let kind = match &self.peek().kind {
            Kind::Integer(value) => ValueKind::Integer(*value),
            Kind::Float(value) => ValueKind::Float(*value),
            Kind::Quoted(text) => ValueKind::Text(text.clone()),
            Kind::Word("true") => ValueKind::Boolean(true),
            Kind::Word("false") => ValueKind::Boolean(false),
            Kind::Word(word) => {
                if let Some(value) = negative(word) {
                    ValueKind::Float(value)
                } else {
                    return Ok(self.joined(at));
                }
            }
            Kind::Variable(_) => return Ok(self.joined(at)),
            _ => return Err(self.unexpected("a number, a text, true, false or a variable")),
        };
        self.take();
        Ok(Value { at, kind })
    }

    /// Variables and words without a blank between, such as `$dir/name`.
    fn joined(&mut self, at: Position) -> Value {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut end = None;
        while end.is_none_or(|end| end == self.peek().start) {
            let piece = match &self.peek().kind {
                Kind::Variable(variable) => Piece::Variable(variable.clone()),
                Kind::Word(word) => Piece::Literal((*word).to_owned()),
                Kind::Integer(_) | Kind::Float(_) if end.is_some() => {
                    Piece::Literal(self.source(self.peek()).to_owned())
                }
                _ => break,
            };
            pieces.push(piece);
            end = Some(self.take().end);
        }
        let kind = match pieces.as_slice() {
            [Piece::Variable(variable)] => ValueKind::Variable(variable.clone()),
            _ => ValueKind::Text(Text { pieces }),
        };
        Value { at, kind }
    }

    fn variable(&mut self, expected: &str) -> Parsed<Variable> {
        match &self.peek().kind {
            Kind::Variable(variable) => {
                let variable = variable.clone();
                self.take();
                Ok(variable)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// One or more quoted texts.
    fn quoted(&mut self) -> Parsed<Text> {
        let mut text = Text::default();
        let mut found = false;
        while let Kind::Quoted(part) = &self.peek().kind {
            text.pieces.extend(part.pieces.iter().cloned());
            found = true;
            self.take();
        }
        if found {
            Ok(text)
        } else {
            Err(self.unexpected("a text in quotes"))
        }
    }

    fn name_or_text(&mut self, expected: &str) -> Parsed<Text> {
        match &self.peek().kind {
            Kind::Quoted(_) => self.quoted(),
            Kind::Word(_) | Kind::Variable(_) => {
                let at = self.at();
                Ok(match self.joined(at).kind {
                    ValueKind::Text(text) => text,
                    ValueKind::Variable(variable) => Text {
                        pieces: vec![Piece::Variable(variable)],
                    },
                    _ => Text::default(),
                })
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn seconds(&mut self) -> Parsed<Value> {
        self.optional_number()
            .ok_or_else(|| self.unexpected("a number of seconds or a variable"))
    }

    fn optional_number(&mut self) -> Option<Value> {
        let at = self.at();
        let kind = match &self.peek().kind {
            Kind::Integer(value) => ValueKind::Integer(*value),
            Kind::Float(value) => ValueKind::Float(*value),
            Kind::Variable(variable) => ValueKind::Variable(variable.clone()),
            _ => return None,
        };
        self.take();
        Some(Value { at, kind })
    }

    // ---- set ----------------------------------------------------------------------------------

    fn set(&mut self) -> Parsed<CommandKind> {
        self.take();
        if self.word() == Some("mode") {
            return self.set_mode();
        }
        let variable = self.variable("a variable such as `$name`, or `mode`")?;
        self.expect('=', "`=`")?;
        if let Some(part) = variable.part {
            self.older(
                variable.at,
                "setting one parameter of a random variable is an older form",
            );
            let value = self.parameter(part)?;
            return Ok(CommandKind::SetParameter {
                variable,
                part,
                value,
            });
        }
        let value = self.assigned()?;
        Ok(CommandKind::Set(Assignment { variable, value }))
    }

    fn set_mode(&mut self) -> Parsed<CommandKind> {
        self.take();
        match self.word() {
            Some("nousestats") => Ok(self.bare(CommandKind::NoUsage)),
            Some("quit") => {
                self.take();
                let mode = match self.word() {
                    Some("timeout") => QuitMode::Timeout,
                    Some("alldone") => QuitMode::AllDone,
                    Some("firstdone") => QuitMode::FirstDone,
                    _ => return Err(self.unexpected("timeout, alldone or firstdone")),
                };
                Ok(self.bare(CommandKind::SetMode(mode)))
            }
            _ => Err(self.unexpected("quit or nousestats")),
        }
    }

    fn parameter(&mut self, part: Part) -> Parsed<ParameterValue> {
        Ok(match part {
            Part::Type => ParameterValue::Law(self.law()?),
            Part::Source => ParameterValue::Source(self.source_of_numbers()?),
            _ => ParameterValue::Value(self.value()?),
        })
    }

    fn assigned(&mut self) -> Parsed<Assigned> {
        let at = self.at();
        match self.word() {
            Some("randvar") if matches!(self.peek_second(), Some(Kind::Mark('('))) => {
                self.take();
                self.take();
                let variable = self.randvar(at)?;
                self.expect(')', "`,` and an attribute, or `)`")?;
                return Ok(Assigned::Random(variable));
            }
            Some("cvar") if matches!(self.peek_second(), Some(Kind::Mark('('))) => {
                self.take();
                self.take();
                let attributes = self.attributes("a custom variable", &mut None)?;
                self.expect(')', "`,` and an attribute, or `)`")?;
                return Ok(Assigned::Custom(CustomVariable { at, attributes }));
            }
            _ => {}
        }
        let first = self.operand()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator() {
            rest.push((operator, self.operand()?));
        }
        let copied = matches!(first.kind, ValueKind::Variable(_));
        if !rest.is_empty() {
            self.older(
                at,
                "arithmetic is an older form, carried out from left to right on integers",
            );
            return Ok(Assigned::Arithmetic { first, rest });
        }
        if copied {
            self.older(
                at,
                "setting a variable from another is an older form, carried out at once",
            );
        }
        Ok(Assigned::Value(first))
    }

    /// A value; of what stands together, `$a/2` is a division and `$dir/name` a text.
    fn operand(&mut self) -> Parsed<Value> {
        if let Kind::Variable(variable) = &self.peek().kind {
            let kind = ValueKind::Variable(variable.clone());
            let at = self.at();
            let end = self.peek().end;
            let (joined, divides) = match self.tokens.get(self.next + 1) {
                Some(token) if token.start == end => match token.kind {
                    Kind::Word(word) => {
                        (true, matches!(word, "/" | "-") || divisor(word).is_some())
                    }
                    _ => (false, false),
                },
                _ => (false, false),
            };
            if joined && !divides {
                return Ok(self.joined(at));
            }
            self.take();
            return Ok(Value { at, kind });
        }
        self.value()
    }

    /// An operator of arithmetic; one that stands with its operand, such as `/2` or `-5`, is split from it.
    fn operator(&mut self) -> Option<Operator> {
        let operator = match self.peek().kind {
            Kind::Mark('+') => Operator::Add,
            Kind::Mark('*') => Operator::Multiply,
            Kind::Word("/") => Operator::Divide,
            Kind::Word("-") => Operator::Subtract,
            Kind::Word(word) => {
                let (operator, rest) = if let Some(rest) = divisor(word) {
                    (Operator::Divide, rest)
                } else if let Some(rest) = word.strip_prefix('-')
                    && let Some(number) = lexer::number(rest)
                {
                    (Operator::Subtract, number)
                } else {
                    return None;
                };
                let token = &mut self.tokens[self.next];
                token.kind = match rest {
                    lexer::Number::Integer(value) => Kind::Integer(value),
                    lexer::Number::Float(value) => Kind::Float(value),
                    lexer::Number::TooLarge => {
                        Kind::Wrong("expected a number below 2^64".to_owned())
                    }
                };
                token.at.column += 1;
                token.start += 1;
                return Some(operator);
            }
            _ => return None,
        };
        self.take();
        Some(operator)
    }

    fn define_randvar(&mut self, at: Position) -> Parsed<CommandKind> {
        let random = self.randvar(at)?;
        match random.attributes.find(RandvarAttribute::Name) {
            Some(Attribute {
                value:
                    Value {
                        kind: ValueKind::Variable(variable),
                        ..
                    },
                ..
            }) => Ok(CommandKind::Set(Assignment {
                variable: variable.clone(),
                value: Assigned::Random(random),
            })),
            Some(other) => Err(self.error(
                other.value.at,
                "a random variable's name is a variable, expected `name=$name`",
            )),
            None => Err(self.error(at, "the random variable has no name, expected `name=$name`")),
        }
    }

    fn randvar(&mut self, at: Position) -> Parsed<RandomVariable> {
        let mut variable = RandomVariable {
            at,
            law: None,
            source: None,
            attributes: Attributes::default(),
            table: None,
        };
        loop {
            match self.word() {
                Some("type") => {
                    self.take();
                    self.expect('=', "`=` and uniform, gamma or tabular")?;
                    variable.law = Some(self.law()?);
                }
                Some("randsrc") => {
                    self.take();
                    self.expect('=', "`=` and urandom or rand48")?;
                    variable.source = Some(self.source_of_numbers()?);
                }
                Some("randtable") => {
                    self.take();
                    self.expect('=', "`=` and a table `{{percent, min, max}, ...}`")?;
                    variable.table = Some(self.table()?);
                }
                Some(word) if RandvarAttribute::find(word).is_none() => {
                    return Err(self.unexpected(&format!(
                        "an attribute of a random variable (type, randsrc, randtable, {})",
                        names::<RandvarAttribute>()
                    )));
                }
                _ => variable
                    .attributes
                    .push(self.attribute("a random variable")?),
            }
            if !self.taken(',') {
                return Ok(variable);
            }
        }
    }

    fn law(&mut self) -> Parsed<RandomLaw> {
        let law = match self.word() {
            Some("uniform") => RandomLaw::Uniform,
            Some("gamma") => RandomLaw::Gamma,
            Some("tabular") => RandomLaw::Tabular,
            _ => return Err(self.unexpected("uniform, gamma or tabular")),
        };
        self.take();
        Ok(law)
    }

    fn source_of_numbers(&mut self) -> Parsed<RandomSource> {
        let source = match self.word() {
            Some("urandom") => RandomSource::Urandom,
            Some("rand48") => RandomSource::Rand48,
            _ => return Err(self.unexpected("urandom or rand48")),
        };
        self.take();
        Ok(source)
    }

    fn table(&mut self) -> Parsed<Vec<TableRow>> {
        self.expect('{', "`{` and rows `{percent, min, max}`")?;
        let mut rows = Vec::new();
        loop {
            let at = self.at();
            self.expect('{', "a row `{percent, min, max}`")?;
            let percent = self.cell()?;
            self.expect(',', "`,` and the row's least value")?;
            let min = self.cell()?;
            self.expect(',', "`,` and the row's greatest value")?;
            let max = self.cell()?;
            self.expect('}', "`}` at the row's end")?;
            rows.push(TableRow {
                at,
                percent,
                min,
                max,
            });
            if self.taken('}') {
                return Ok(rows);
            }
            self.expect(',', "`,` and another row, or `}` at the table's end")?;
        }
    }

    fn cell(&mut self) -> Parsed<Value> {
        self.optional_number()
            .ok_or_else(|| self.unexpected("a number or a variable"))
    }

    // ---- the other commands -------------------------------------------------------------------

    fn create(&mut self, at: Position) -> Parsed<CommandKind> {
        self.take();
        let kind = match self.word() {
            Some("files") => return Ok(self.bare(CommandKind::CreateFiles)),
            Some("file" | "fileset" | "filesets") => CommandKind::CreateFiles,
            Some("process" | "processes" | "processs" | "thread") => CommandKind::CreateProcesses,
            _ => return Err(self.unexpected("files (of older form: filesets, processes)")),
        };
        let word = self.word().unwrap_or_default();
        let meaning = match kind {
            CommandKind::CreateFiles => "is `create files`",
            _ => "the processes work from here on, while the file sleeps, where it has no `run`",
        };
        self.older(at, format!("`create {word}` is an older form: {meaning}"));
        Ok(self.bare(kind))
    }

    fn psrun(&mut self) -> Parsed<CommandKind> {
        self.take();
        let mut period = None;
        match self.peek().kind {
            Kind::Integer(value) => {
                period = Some(i64::try_from(value).unwrap_or(i64::MAX));
                self.take();
            }
            Kind::Word(word) if word.starts_with('-') => {
                let Ok(value) = word.parse::<i64>() else {
                    return Err(self.unexpected("a number of seconds"));
                };
                period = Some(value);
                self.take();
            }
            _ => {}
        }
        let seconds = if period.is_some() {
            self.optional_number()
        } else {
            None
        };
        Ok(CommandKind::PsRun { period, seconds })
    }

    fn eventgen(&mut self) -> Parsed<CommandKind> {
        self.take();
        let mut rate = None;
        loop {
            if self.word() == Some("rate") {
                self.take();
                self.expect('=', "`=` and events a second")?;
                let value = self.value()?;
                if matches!(value.kind, ValueKind::Boolean(_) | ValueKind::Text(_)) {
                    return Err(self.error(value.at, "expected a number or a variable for `rate`"));
                }
                rate = Some(value);
                if self.taken(',') && self.word() != Some("rate") {
                    return Err(self.unexpected("`rate`"));
                }
            } else {
                return Ok(CommandKind::Eventgen { rate });
            }
        }
    }

    fn list(&mut self, at: Position) -> CommandKind {
        self.take();
        let listed = match self.word() {
            Some("fileset" | "filesets") => Listed::Filesets,
            Some("flowop") => Listed::Flowops,
            _ => {
                self.older(at, "`list` alone is an older form: lists everything");
                return CommandKind::List(Listed::All);
            }
        };
        self.bare(CommandKind::List(listed))
    }

    fn debug(&mut self) -> Parsed<CommandKind> {
        self.take();
        match self.peek().kind {
            Kind::Integer(level) => Ok(self.bare(CommandKind::Debug(level))),
            _ => Err(self.unexpected("a level, 0 to 10")),
        }
    }

    fn enable(&mut self) -> Parsed<CommandKind> {
        self.take();
        match self.word() {
            Some("lathist") => Ok(self.bare(CommandKind::EnableLatencyHistogram)),
            Some("multi") => {
                let at = self.at();
                self.take();
                let (mut master, mut client) = (None, None);
                loop {
                    match self.word() {
                        Some("master") => master = Some(self.named_value("master")?),
                        Some("client") => client = Some(self.named_value("client")?),
                        _ => return Err(self.unexpected("master or client")),
                    }
                    if !self.taken(',') {
                        break;
                    }
                }
                match (master, client) {
                    (Some(master), Some(client)) => Ok(CommandKind::EnableMulti { master, client }),
                    _ => Err(self.error(
                        at,
                        "`enable multi` wants both, expected `master=... , client=...`",
                    )),
                }
            }
            _ => Err(self.unexpected("lathist or multi")),
        }
    }

    /// `name=value`, of this one name.
    fn named_value(&mut self, name: &str) -> Parsed<Value> {
        if self.word() != Some(name) {
            return Err(self.unexpected(&format!("`{name}=`")));
        }
        self.take();
        self.expect('=', "`=` and a value")?;
        self.value()
    }

    /// What `shutdown` ends; alone, the processes.
    fn entity(&mut self) -> Entity {
        let entity = match self.word() {
            Some("file" | "files" | "fileset" | "filesets") => Entity::Filesets,
            Some("process" | "processes" | "processs" | "thread") => Entity::Processes,
            _ => return Entity::Processes,
        };
        self.take();
        entity
    }

    fn stats(&mut self, at: Position) -> Parsed<CommandKind> {
        self.take();
        let word = self.word().unwrap_or_default();
        let (command, meaning) = match word {
            "clear" => {
                self.take();
                (
                    StatsCommand::Clear,
                    "without a `run`, what is slept before the first is warm-up",
                )
            }
            "snap" => {
                self.take();
                (
                    StatsCommand::Snap,
                    "accepted; figures are printed at the run's end",
                )
            }
            "directory" => {
                self.take();
                let text = self.name_or_text("a folder")?;
                (
                    StatsCommand::Directory(text),
                    "accepted; results go where the command line says",
                )
            }
            "command" => {
                self.take();
                (
                    StatsCommand::Command(self.quoted()?),
                    "accepted; the command is never started",
                )
            }
            "dump" | "xmldump" | "multidump" => {
                self.take();
                (
                    StatsCommand::Dump(self.quoted()?),
                    "accepted; results go where the command line says",
                )
            }
            _ => {
                return Err(
                    self.unexpected("clear, snap, directory, command, dump, xmldump or multidump")
                );
            }
        };
        self.older(at, format!("`stats {word}` is an older form: {meaning}"));
        Ok(CommandKind::Stats(command))
    }

    fn foreach(&mut self, at: Position, depth: u32) -> Parsed<CommandKind> {
        if depth == DEEPEST {
            return Err(self.error(
                at,
                format!("`foreach` within more than {DEEPEST} others, expected fewer"),
            ));
        }
        self.older(
            at,
            "`foreach` is an older form: the commands are carried out for each value",
        );
        self.take();
        let variable = self.variable("a variable")?;
        if self.word() != Some("in") {
            return Err(self.unexpected("`in`"));
        }
        self.take();
        let mut values = vec![self.value()?];
        while self.taken(',') {
            values.push(self.value()?);
        }
        self.expect('{', "`,` and a value, or `{` and commands")?;
        let mut commands = Vec::new();
        while !self.taken('}') {
            if matches!(self.peek().kind, Kind::End) {
                return Err(self.unexpected("a command, or `}` at the end of `foreach`"));
            }
            commands.push(self.command(depth + 1)?);
        }
        Ok(CommandKind::Foreach {
            variable,
            values,
            commands,
        })
    }
}

/// What a word such as `/2` divides by.
fn divisor(word: &str) -> Option<lexer::Number> {
    lexer::number(word.strip_prefix('/')?)
}

fn negative(word: &str) -> Option<f64> {
    match lexer::number(word.strip_prefix('-')?)? {
        lexer::Number::Integer(value) => Some(-(value as f64)),
        lexer::Number::Float(value) => Some(-value),
        lexer::Number::TooLarge => None,
    }
}

/// A number or a truth that stands in quotes.
fn from_literal(want: Wanted, literal: &str) -> Option<ValueKind> {
    if want != Wanted::Number {
        match literal {
            "true" => return Some(ValueKind::Boolean(true)),
            "false" => return Some(ValueKind::Boolean(false)),
            _ => {}
        }
    }
    match lexer::number(literal)? {
        lexer::Number::Integer(value) => Some(ValueKind::Integer(value)),
        lexer::Number::Float(value) => Some(ValueKind::Float(value)),
        lexer::Number::TooLarge => None,
    }
}

const fn wanted(want: Wanted) -> &'static str {
    match want {
        Wanted::Name => "a name or a variable",
        Wanted::Text => "a text or a variable",
        Wanted::Number => "a number or a variable",
        Wanted::Boolean => "true, false, a number or a variable",
        Wanted::Percentage => "a percentage, true, false or a variable",
        Wanted::Any => "a value",
    }
}

fn names<K: Key>() -> String {
    let names: Vec<&str> = K::ALL
        .iter()
        .flat_map(|key| key.about().names.iter().copied())
        .collect();
    names.join(", ")
}

/// The types of flowops, for messages.
pub(crate) fn flowop_types() -> String {
    let names: Vec<&str> = FlowopType::ALL.iter().map(|kind| kind.name()).collect();
    names.join(", ")
}
