//! One thread: carries out its flowops from the first to the last, over and over, until the run ends.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dyno_load::Random;
use dyno_result::error::ErrorKind;
use dyno_result::failure::Failure;
use dyno_result::output::FailedOperation;
use dyno_wml::ast::{Direction, FlowopClass, FlowopType};
use rustix::fs::{Advice, AtFlags, OFlags, RawDir};
use rustix::io::{Errno, ReadWriteFlags};

use crate::aio::{self, Aio, Ended, Pending};
use crate::fileset::{Fileset, Store, fill_random};
use crate::number::{count, index};
use crate::paths::PathBuffer;
use crate::pool::{self, Pick, Want};
use crate::program::{Operation, Step, ThreadPlan};
use crate::recording::Shard;
use crate::shared::{ProcessCounts, QuitMode, Shared, Waiting};
use crate::sys::{self, Memory};
use crate::verify::{self, Identity, Wrong};

/// Slots for open files that a thread has, as the language says.
pub const SLOTS: usize = 128;
/// Buffers begin at multiples of that many bytes where the page cache is passed by.
const ALIGNED: usize = 4096;
/// The position of a file after something was written at its end, wherever that is.
const AT_END: u64 = u64::MAX;
/// What filebench counts for an entry of a directory beside its name.
const ENTRY_BYTES: u64 = 279;
/// So often a file is tried that is just being made or removed, before the thread lets others go first.
const TRIES: u32 = 16;
/// A read that met a write is repeated up to that often.
const READ_AGAIN: u32 = 50;

/// Why a thread does not go on.
#[derive(Debug)]
enum End {
    /// The run ends, or the thread is done.
    Now,
}

/// What became of a flowop.
enum Flow {
    /// It was done, with so many bytes.
    Did(u64),
    /// It was begun, with so many bytes: it is recorded as done or failed when it has ended.
    Begun(u64),
    /// There was nothing to do.
    Nothing,
    /// It failed.
    Failed(ErrorKind, String),
    /// The thread ends.
    End,
}

type Attempt<T> = Result<T, Flow>;

#[derive(Debug, Default)]
struct Slot {
    open: Option<OwnedFd>,
    /// Which file it is, or was: the fileset and the index. Kept when it is closed.
    entry: Option<(usize, usize)>,
    position: u64,
    /// Who its blocks say they are: the file may begin another life when this one, deleted, is still open.
    identity: Option<Identity>,
    /// It was deleted since it was opened.
    deleted: bool,
}

/// What a thread remembers of one of its flowops.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    operations: u64,
    bytes: u64,
    /// For limits: what was already paid for.
    paid: u64,
    begun: bool,
    /// The next file in filebench's order.
    rotor: usize,
}

/// A thread that is to run.
pub struct Worker<'a> {
    shared: &'a Shared<'a>,
    plan: &'a ThreadPlan,
    /// Among all threads.
    number: usize,
    /// Among those of the plan.
    instance: usize,
    shard: &'a [Shard],
    process: &'a ProcessCounts,
    random: Random,
    slots: Vec<Slot>,
    next_slot: usize,
    own: Vec<Own>,
    memory: Memory,
    has_memory: bool,
    paths: PathBuffer,
    aio: Option<Aio>,
    /// When the flowop that is carried out began, and what is counted as its end if it is not now.
    begun: u64,
    ended: Option<u64>,
    last_ns: u64,
    drawn: BTreeMap<usize, (u64, f64, f64)>,
}

/// Which thread it is, each counted from 0.
#[derive(Clone, Copy)]
pub struct Place {
    /// Of all.
    pub number: usize,
    /// Of its process's.
    pub seat: usize,
    /// Of those of its kind.
    pub instance: usize,
    /// Its process, of all.
    pub process: usize,
}

impl<'a> Worker<'a> {
    /// Gets everything ready that a thread needs; the calling thread is the one that will run.
    pub fn new(
        shared: &'a Shared<'a>,
        plan: &'a ThreadPlan,
        place: Place,
    ) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            Failure::new("threads", format!("thread {}: {what}: {error}", plan.name))
        };
        let Place {
            number,
            seat,
            instance,
            process,
        } = place;
        sys::sleep_precisely();
        sys::own_files().map_err(|error| failed("a table of open files of its own", error))?;
        if plan.nice != 0 {
            let now = rustix::process::getpriority_process(None).unwrap_or(0);
            rustix::process::setpriority_process(None, now.saturating_add(plan.nice))
                .map_err(|error| failed("its niceness", error.into()))?;
        }
        if let Some(level) = plan.io_priority {
            sys::set_io_priority(level)
                .map_err(|error| failed("its priority of input and output", error))?;
        }
        // Each of filebench's processes begins with the same numbers, so that their offsets are the same.
        let stream = if shared.compat { seat } else { number };
        let mut random = Random::new(shared.seed, stream as u64);
        let mut memory = Memory::new(plan.memory, plan.shared_memory)
            .map_err(|error| failed("its memory", error))?;
        if !shared.compat && plan.memory > 0 {
            fill_random(memory.all(), &mut random);
        }
        let aio = if plan.asynchronous {
            let aio = Aio::new(shared.no_ring)
                .map_err(|error| failed("asynchronous input and output", error))?;
            shared.asynchronous.lock().get_or_insert(aio.name());
            Some(aio)
        } else {
            None
        };
        Ok(Self {
            shared,
            plan,
            number,
            instance,
            shard: shared.recorder.shard(number),
            process: &shared.processes[process],
            random,
            slots: (0..plan.slots).map(|_| Slot::default()).collect(),
            next_slot: 0,
            own: vec![Own::default(); plan.flowops],
            memory,
            has_memory: plan.memory > 0,
            paths: PathBuffer::default(),
            aio,
            begun: 0,
            ended: None,
            last_ns: 0,
            drawn: BTreeMap::new(),
        })
    }

    /// Runs until the run ends.
    pub fn run(mut self) {
        self.begun = self.shared.clock.raw();
        let plan = self.plan;
        while self.steps(&plan.steps).is_ok() {}
        self.end_writes();
        self.shared
            .last_ns
            .fetch_max(self.last_ns, Ordering::Relaxed);
        if !self.drawn.is_empty() {
            let mut all = self.shared.drawn.lock();
            for (flowop, (count, sum, squares)) in &self.drawn {
                let of = all.entry(*flowop).or_default();
                *of = (of.0 + count, of.1 + sum, of.2 + squares);
            }
        }
        for slot in &mut self.slots {
            if let (Some(open), Some((fileset, file))) = (slot.open.take(), slot.entry) {
                drop(open);
                self.shared.filesets[fileset].files.close(file);
            }
        }
    }

    fn steps(&mut self, steps: &'a [Step]) -> Result<(), End> {
        for step in steps {
            match step {
                Step::Once(operation) => {
                    for _ in 0..operation.iterations.sample_count(&mut self.random) {
                        self.once(operation)?;
                    }
                }
                Step::Repeat(times, steps) => {
                    for _ in 0..times.sample_count(&mut self.random) {
                        self.steps(steps)?;
                    }
                }
            }
        }
        // A thread whose flowops are all done no times at all must end nevertheless.
        if self.shared.stop.is_set() {
            return Err(End::Now);
        }
        Ok(())
    }

    #[inline]
    fn once(&mut self, operation: &'a Operation) -> Result<(), End> {
        if self.shared.stop.is_set() {
            return Err(End::Now);
        }
        let flow = self.perform(operation);
        let now = self.shared.clock.raw();
        let end = self.ended.take().unwrap_or(now);
        let begun = std::mem::replace(&mut self.begun, now);
        let ns = self.shared.clock.delta_as_nanos(begun, end);
        match flow {
            Flow::Did(bytes) => self.did(operation, ns, end, bytes),
            Flow::Begun(bytes) => self.count(operation, end, bytes),
            Flow::Nothing => self.over(now),
            Flow::Failed(kind, message) => self.failed(operation, ns, kind, message),
            Flow::End => Err(End::Now),
        }
    }

    /// Notes an operation that was done.
    #[inline]
    fn did(&mut self, operation: &Operation, ns: u64, end: u64, bytes: u64) -> Result<(), End> {
        let shard = self.shard;
        shard[operation.index].note(ns, bytes);
        let counted = self.count(operation, end, bytes);
        if counted.is_err() {
            shard[operation.index].note_late(bytes);
        }
        counted
    }

    /// Counts an operation for whoever asks how many there were; whether it ended in time.
    #[inline]
    fn count(&mut self, operation: &Operation, end: u64, bytes: u64) -> Result<(), End> {
        let own = &mut self.own[operation.local];
        own.operations += 1;
        own.bytes += bytes;
        if self.shared.program.counts_processes {
            self.count_for_process(operation, bytes);
        }
        let since = self.shared.since_start(end);
        if matches!(operation.kind.class(), FlowopClass::Io | FlowopClass::Aio) {
            self.last_ns = since;
        }
        if since > self.shared.limit_ns {
            return Err(End::Now);
        }
        Ok(())
    }

    fn count_for_process(&self, operation: &Operation, bytes: u64) {
        let counts = self.process;
        if matches!(operation.kind.class(), FlowopClass::Io | FlowopClass::Aio) {
            counts.operations.fetch_add(1, Ordering::Relaxed);
        }
        if operation.kind.direction() != Direction::Neither {
            counts.transfers.fetch_add(1, Ordering::Relaxed);
            counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether the time is over.
    fn over(&self, now: u64) -> Result<(), End> {
        if self.shared.since_start(now) > self.shared.limit_ns {
            return Err(End::Now);
        }
        Ok(())
    }

    #[cold]
    fn failed(
        &mut self,
        operation: &Operation,
        ns: u64,
        kind: ErrorKind,
        message: String,
    ) -> Result<(), End> {
        if is_fatal(kind) {
            let name = self.shared.name(operation);
            let failure = Failure::new(kind.name(), format!("flowop {name}: {message}"));
            self.shared.fail(failure);
        }
        self.shared.recorder.failed(
            FailedOperation {
                client: u32::try_from(self.number).unwrap_or(u32::MAX),
                index: operation.index,
                at: Instant::now(),
                took: Duration::from_nanos(ns),
                kind,
                message,
            },
            ns,
        );
        let now = self.begun;
        self.over(now)
    }

    fn perform(&mut self, operation: &'a Operation) -> Flow {
        let attempt = match operation.kind {
            FlowopType::OpenFile => self.open_file(operation),
            FlowopType::CreateFile => self.create_file(operation),
            FlowopType::CloseFile => self.close_file(operation),
            FlowopType::DeleteFile => self.delete_file(operation),
            FlowopType::StatFile => self.stat_file(operation),
            FlowopType::Read => self.read(operation),
            FlowopType::Write => self.write(operation),
            FlowopType::ReadWholeFile => self.read_whole(operation),
            FlowopType::WriteWholeFile => self.write_whole(operation),
            FlowopType::AppendFile => {
                let size = operation.io_size.sample_count(&mut self.random);
                self.append(operation, size)
            }
            FlowopType::AppendFileRand => {
                let most = operation.io_size.sample_count(&mut self.random);
                // As filebench: 0 to two less than the size.
                let size = self.random.below(most.saturating_sub(1).max(1));
                self.append(operation, size)
            }
            FlowopType::Fsync => self.fsync(operation),
            FlowopType::FsyncSet => self.fsync_set(operation),
            FlowopType::MakeDir => self.change_dir(operation, Want::Make),
            FlowopType::RemoveDir => self.change_dir(operation, Want::Remove),
            FlowopType::ListDir => self.list_dir(operation),
            FlowopType::AioWrite => self.begin_write(operation),
            FlowopType::AioWait => self.await_writes(operation),
            FlowopType::Block => self.block(operation),
            FlowopType::Wakeup => Ok(self.wake(operation)),
            FlowopType::SemBlock => self.take_posts(operation),
            FlowopType::SemPost => self.post(operation),
            FlowopType::Hog => Ok(self.hog(operation)),
            FlowopType::Delay => self.delay(operation),
            FlowopType::EventLimit => self.take_events(operation, 1.0),
            FlowopType::IopsLimit | FlowopType::OpsLimit | FlowopType::BwLimit => {
                self.limit(operation)
            }
            FlowopType::FinishOnCount | FlowopType::FinishOnBytes => self.finish_on(operation),
            FlowopType::Print => Ok(self.print(operation)),
            FlowopType::TestRandVar => Ok(self.draw(operation)),
        };
        attempt.unwrap_or_else(|flow| flow)
    }

    fn fileset(&self, operation: &Operation) -> Attempt<(usize, &'a Fileset)> {
        let filesets = self.shared.filesets;
        operation
            .fileset
            .and_then(|index| Some((index, filesets.get(index)?)))
            .ok_or_else(|| refused("has no fileset to take a file from"))
    }

    /// The slot that the flowop uses this time.
    #[inline]
    fn slot(&mut self, operation: &Operation) -> usize {
        if operation.fd > 0 || !operation.open_next {
            return operation.fd;
        }
        // 127, 126, ..., 0, 127, ...
        self.next_slot = if self.next_slot == 0 {
            SLOTS - 1
        } else {
            self.next_slot - 1
        };
        self.next_slot
    }

    /// Picks a file, or a leaf directory, as the language or filebench's order says.
    fn pick(
        &mut self,
        operation: &Operation,
        pool: &pool::Pool,
        want: Want,
        leaf_dirs: bool,
    ) -> Attempt<usize> {
        let place = operation.indexed.as_ref().map(|number| {
            let value = number.sample(&mut self.random);
            let length = pool.len().max(1) as u64;
            let scaled = if leaf_dirs {
                value * length as f64 / 2.0
            } else {
                value
            };
            index(count(scaled) % length)
        });
        let mut tries = 0;
        loop {
            let pick = match place {
                Some(place) => Pick::From(place),
                None if !self.shared.compat => Pick::Random(&mut self.random),
                None if operation.open_next => Pick::Own(&mut self.own[operation.local].rotor),
                None => Pick::Rotor,
            };
            match pool.take(want, pick) {
                Ok(index) => return Ok(index),
                Err(pool::None::InUse) if self.shared.stop.is_set() => return Err(Flow::End),
                // All of them are open: there is none that may be removed now.
                Err(pool::None::InUse) if want == Want::Remove && tries > TRIES => {
                    return Err(Flow::Nothing);
                }
                // Others are just making or removing it: a matter of microseconds.
                Err(pool::None::InUse) => {
                    tries += 1;
                    if tries < TRIES {
                        std::thread::yield_now();
                    } else {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
                Err(pool::None::Empty) => return Err(self.no_file(operation, want, leaf_dirs)),
            }
        }
    }

    /// No file is left to work on: how the run ends then is the workload's choice.
    #[cold]
    fn no_file(&self, operation: &Operation, want: Want, leaf_dirs: bool) -> Flow {
        match self.shared.mode {
            QuitMode::AllDone => {}
            QuitMode::FirstDone => self.shared.finish(),
            QuitMode::Timeout => {
                let what = if leaf_dirs { "directory" } else { "file" };
                let which = if want == Want::Make {
                    "all of them exist already"
                } else {
                    "none exists"
                };
                let fileset = operation
                    .fileset
                    .and_then(|index| self.shared.filesets.get(index))
                    .map_or("", |fileset| fileset.plan.name.as_str());
                self.shared.fail(Failure::new(
                    ErrorKind::NoFile.name(),
                    format!(
                        "flowop {} found no {what} of fileset {fileset} ({which}) before the time was over; with \
                         `set mode quit firstdone` or `alldone` that is an end, else more of them are needed",
                        self.shared.name(operation)
                    ),
                ));
            }
        }
        Flow::End
    }

    fn open_flags(operation: &Operation, fileset: &Fileset) -> OFlags {
        let mut flags = OFlags::CLOEXEC
            | match (fileset.plan.read_only, fileset.plan.write_only) {
                (true, _) => OFlags::RDONLY,
                (false, true) => OFlags::WRONLY,
                (false, false) => OFlags::RDWR,
            };
        if operation.synchronous {
            flags |= OFlags::SYNC;
        }
        if operation.direct {
            flags |= OFlags::DIRECT;
        }
        flags
    }

    /// Opens an existing file of the flowop's fileset in a slot.
    fn open_in(&mut self, operation: &Operation, slot: usize) -> Attempt<()> {
        let (set, fileset) = self.fileset(operation)?;
        let file = self.pick(operation, &fileset.files, Want::Use, false)?;
        let flags = Self::open_flags(operation, fileset);
        let open = fileset
            .open(file, flags, &mut self.paths)
            .map_err(|error| {
                fileset.files.close(file);
                failure(error, &format!("opening {}", fileset.describe(file)))
            })?;
        if operation.no_read_ahead {
            // Advice that is not taken changes nothing.
            let _ = rustix::fs::fadvise(&open, 0, None, Advice::Random);
        }
        self.put_in(slot, open, (set, file));
        Ok(())
    }

    fn put_in(&mut self, slot: usize, open: OwnedFd, (set, file): (usize, usize)) {
        let verified = self.shared.verified.is_some();
        self.slots[slot] = Slot {
            open: Some(open),
            entry: Some((set, file)),
            position: 0,
            identity: verified.then(|| self.shared.filesets[set].identity(file)),
            deleted: false,
        };
    }

    /// Sees to it that the slot has an open file, which is no operation of its own: its time is not counted either.
    #[inline]
    fn ensure_open(&mut self, operation: &Operation, slot: usize) -> Attempt<()> {
        if self.slots[slot].open.is_none() {
            self.open_in(operation, slot)?;
            self.begun = self.shared.clock.raw();
        } else if operation.fd > 0
            && operation.fileset.is_some()
            && self.slots[slot].entry.map(|(set, _)| set) != operation.fileset
        {
            return Err(refused(&format!(
                "slot {slot} has a file of another fileset open"
            )));
        }
        Ok(())
    }

    /// The open file in a slot.
    #[inline]
    fn in_slot(&self, slot: usize) -> Attempt<(BorrowedFd<'_>, &'a Fileset, usize)> {
        match &self.slots[slot] {
            Slot {
                open: Some(open),
                entry: Some((set, file)),
                ..
            } => Ok((open.as_fd(), &self.shared.filesets[*set], *file)),
            _ => Err(refused(&format!("slot {slot} has no open file"))),
        }
    }

    fn open_file(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.refuse_open(slot)?;
        self.open_in(operation, slot)?;
        Ok(Flow::Did(0))
    }

    fn refuse_open(&self, slot: usize) -> Attempt<()> {
        if self.slots[slot].open.is_some() {
            return Err(refused(&format!(
                "slot {slot} has an open file already, expected a closefile before"
            )));
        }
        Ok(())
    }

    fn create_file(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.refuse_open(slot)?;
        let (set, fileset) = self.fileset(operation)?;
        if matches!(fileset.store, Store::Device { .. }) {
            return Err(refused("a block device cannot be created"));
        }
        let file = self.pick(operation, &fileset.files, Want::Make, false)?;
        let flags = Self::open_flags(operation, fileset) | OFlags::CREATE;
        fileset.reborn(file);
        let open = fileset
            .open(file, flags, &mut self.paths)
            .map_err(|error| {
                fileset.files.left(file);
                failure(error, &format!("creating {}", fileset.describe(file)))
            })?;
        self.put_in(slot, open, (set, file));
        fileset.files.made(file, true);
        Ok(Flow::Did(0))
    }

    fn close_file(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        if self.aio.as_ref().is_some_and(|aio| aio.outstanding() > 0) {
            self.end_writes();
        }
        let at = &mut self.slots[slot];
        match (at.open.take(), at.entry) {
            (Some(open), Some((set, file))) => {
                drop(open);
                self.shared.filesets[set].files.close(file);
                Ok(Flow::Did(0))
            }
            _ => Err(refused(&format!("slot {slot} has no open file"))),
        }
    }

    fn delete_file(&mut self, operation: &Operation) -> Attempt<Flow> {
        let known = (operation.fd > 0).then(|| self.slots[operation.fd].entry);
        let (set, file) = if let Some(Some((set, file))) = known {
            let own = self
                .slots
                .iter()
                .filter(|slot| slot.open.is_some() && slot.entry == Some((set, file)))
                .count();
            self.slots[operation.fd].entry = self.slots[operation.fd]
                .open
                .as_ref()
                .and(self.slots[operation.fd].entry);
            let fileset = &self.shared.filesets[set];
            // Others have it open, or it was deleted meanwhile: nothing is done, as in filebench.
            if !fileset
                .files
                .try_remove(file, u32::try_from(own).unwrap_or(u32::MAX))
            {
                return Ok(Flow::Nothing);
            }
            if self.shared.verified.is_some() {
                // What a write reaches is this life's, not the next one's.
                self.end_writes();
            }
            for slot in &mut self.slots {
                slot.deleted |= slot.open.is_some() && slot.entry == Some((set, file));
            }
            (set, file)
        } else {
            let (set, fileset) = self.fileset(operation)?;
            (
                set,
                self.pick(operation, &fileset.files, Want::Remove, false)?,
            )
        };
        let fileset = &self.shared.filesets[set];
        let Store::Tree(places) = &fileset.store else {
            fileset.files.left(file);
            return Err(refused("a block device cannot be deleted"));
        };
        let entry = &fileset.tree.files[file];
        places
            .remove((entry.dir, entry.number), AtFlags::empty(), &mut self.paths)
            .map_err(|error| {
                fileset.files.left(file);
                failure(error, &format!("deleting {}", fileset.describe(file)))
            })?;
        fileset.files.removed(file);
        Ok(Flow::Did(0))
    }

    fn stat_file(&mut self, operation: &Operation) -> Attempt<Flow> {
        if operation.fd > 0 && self.slots[operation.fd].open.is_some() {
            self.length(operation.fd)?;
            return Ok(Flow::Did(0));
        }
        let (_, fileset) = self.fileset(operation)?;
        let file = self.pick(operation, &fileset.files, Want::Use, false)?;
        let least = fileset.least(file);
        let status = match &fileset.store {
            Store::Tree(places) => {
                let entry = &fileset.tree.files[file];
                places.status((entry.dir, entry.number), &mut self.paths)
            }
            Store::Device { path, .. } => rustix::fs::stat(path.as_c_str()),
        };
        fileset.files.close(file);
        let status = status
            .map_err(|error| failure(error, &format!("looking at {}", fileset.describe(file))))?;
        self.refuse_short(fileset, file, status.st_size, least)?;
        Ok(Flow::Did(0))
    }

    /// The length of the open file in a slot, which is not less than what was written.
    fn length(&self, slot: usize) -> Attempt<u64> {
        let (open, fileset, file) = self.in_slot(slot)?;
        let least = self.least(slot);
        let status =
            rustix::fs::fstat(open).map_err(|error| failure(error, "looking at an open file"))?;
        self.refuse_short(fileset, file, status.st_size, least)
    }

    /// Bytes that the file in a slot has at the least, as far as is known: 0 where nothing is kept of it.
    #[inline]
    fn least(&self, slot: usize) -> u64 {
        match &self.slots[slot] {
            Slot {
                entry: Some((set, file)),
                deleted: false,
                ..
            } => self.shared.filesets[*set].least(*file),
            _ => 0,
        }
    }

    /// `least` was known before the length was asked for.
    fn refuse_short(
        &self,
        fileset: &Fileset,
        file: usize,
        length: i64,
        least: u64,
    ) -> Attempt<u64> {
        let length = u64::try_from(length).unwrap_or(0);
        if length >= least {
            return Ok(length);
        }
        let message = format!(
            "{} is short: {length} bytes, of at least {least} that were written",
            fileset.describe(file)
        );
        Err(self.wrong(Wrong::Short, message))
    }

    /// Counts what is not as it was written.
    #[cold]
    fn wrong(&self, wrong: Wrong, message: String) -> Flow {
        if let Some(verified) = &self.shared.verified {
            verified.count(wrong);
            verified.first.lock().get_or_insert(message.clone());
        }
        Flow::Failed(ErrorKind::WrongValue, message)
    }

    /// The bytes of a file that are worked on.
    fn working_set(operation: &Operation, fileset: &Fileset, file: usize) -> u64 {
        if operation.working_set > 0 {
            operation.working_set
        } else {
            fileset.size(file)
        }
    }

    /// A multiple of `size` at random, so that all of it lies in the working set.
    fn offset(&mut self, working_set: u64, size: u64) -> Attempt<u64> {
        if size == 0 || size > working_set {
            return Err(refused(&format!(
                "an iosize of {size} bytes at random places of {working_set} bytes, expected at most that"
            )));
        }
        // filebench never takes the last place, which it means to take.
        let places = if self.shared.compat {
            ((working_set - size) / size).max(1)
        } else {
            working_set / size
        };
        Ok(self.random.below(places) * size)
    }

    fn io_size(&mut self, operation: &Operation) -> Attempt<u64> {
        match operation.io_size.sample_count(&mut self.random) {
            0 => Err(refused("an iosize of 0, expected at least 1")),
            size => Ok(size),
        }
    }

    /// Where in the thread's memory data come from or go to: its begin.
    #[inline]
    fn place(&mut self, length: usize, direct: bool) -> Attempt<usize> {
        if !self.has_memory {
            // Memory of its own is as large as was ever needed.
            if self.memory.len() < length {
                let mut memory = Memory::new(length, false).map_err(|error| {
                    Flow::Failed(
                        ErrorKind::OutOfMemory,
                        format!("{length} bytes of memory: {error}"),
                    )
                })?;
                if !self.shared.compat {
                    fill_random(memory.all(), &mut self.random);
                }
                // Writes under way still read from the old one.
                self.end_writes();
                self.memory = memory;
            }
            return Ok(0);
        }
        let size = self.memory.len();
        if length > size {
            return Err(refused(&format!(
                "an iosize of {length} bytes, more than the thread's memsize of {size}"
            )));
        }
        let places = (size - length) / length.max(1);
        if places < 2 {
            return Ok(0);
        }
        let begin = index(self.random.below(places as u64)) * length;
        Ok(if direct {
            begin / ALIGNED * ALIGNED
        } else {
            begin
        })
    }

    fn read(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        let size = self.io_size(operation)?;
        let (_, fileset, file) = self.in_slot(slot)?;
        let place = self.place(index(size), operation.direct)?;
        let position = if operation.random {
            let working_set = Self::working_set(operation, fileset, file);
            self.offset(working_set, size)?
        } else {
            self.slots[slot].position
        };
        let mut begin = position;
        let mut got = match position {
            AT_END => 0,
            _ => self.read_on(slot, place, index(size), position)?,
        };
        if got == 0 && !operation.random && position > 0 {
            begin = 0;
            got = self.read_on(slot, place, index(size), 0)?;
        }
        if got == 0 {
            return Err(Flow::Failed(
                ErrorKind::NoData,
                format!("{}: nothing to read at {begin}", fileset.describe(file)),
            ));
        }
        if !operation.random {
            self.slots[slot].position = begin + got as u64;
        }
        self.verify(slot, place, got, begin)?;
        Ok(Flow::Did(got as u64))
    }

    /// One read, which ends early only where the file does.
    #[inline]
    fn read_on(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<usize> {
        let least = self.least(slot);
        let got = self.read_at(slot, place, length, offset)?;
        if got < length && offset + (got as u64) < least {
            // Or it was more than the system reads at once.
            self.length(slot)?;
        }
        Ok(got)
    }

    /// One read; however often the system interrupts it.
    #[inline]
    fn read_at(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<usize> {
        let Some(open) = &self.slots[slot].open else {
            return Err(refused("has no open file"));
        };
        let buffer = &mut self.memory.all()[place..place + length];
        loop {
            match rustix::io::pread(open, &mut *buffer, offset) {
                Ok(got) => return Ok(got),
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(self.failed_at(slot, error, "reading", offset, length));
                }
            }
        }
    }

    #[cold]
    fn failed_at(
        &self,
        slot: usize,
        error: Errno,
        doing: &str,
        offset: u64,
        length: usize,
    ) -> Flow {
        let which = self.slots[slot]
            .entry
            .map_or_else(String::new, |(set, file)| {
                self.shared.filesets[set].describe(file)
            });
        let at = if offset == AT_END {
            "its end".to_owned()
        } else {
            offset.to_string()
        };
        failure(error, &format!("{doing} {length} bytes of {which} at {at}"))
    }

    fn read_whole(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        let (_, fileset, file) = self.in_slot(slot)?;
        let size = match operation.io_size.sample_count(&mut self.random) {
            0 => Self::working_set(operation, fileset, file).max(1),
            size => size,
        };
        let place = self.place(index(size), operation.direct)?;
        let mut offset = 0;
        loop {
            let got = self.read_on(slot, place, index(size), offset)?;
            if got == 0 {
                break;
            }
            self.verify(slot, place, got, offset)?;
            offset += got as u64;
            // Behind an odd length is the end, which cannot be asked for past the page cache.
            if operation.direct && !got.is_multiple_of(verify::BLOCK) {
                break;
            }
        }
        self.slots[slot].position = offset;
        Ok(Flow::Did(offset))
    }

    /// One write of all of it: what the system leaves over is written too.
    fn write_at(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<()> {
        self.sign(slot, place, length, offset)?;
        let Some(open) = &self.slots[slot].open else {
            return Err(refused("has no open file"));
        };
        let data = &self.memory.all()[place..place + length];
        let mut done = 0;
        while done < length {
            match rustix::io::pwrite(open, &data[done..], offset + done as u64) {
                Ok(0) => return Err(self.failed_at(slot, Errno::IO, "writing", offset, length)),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(self.failed_at(slot, error, "writing", offset, length));
                }
            }
        }
        if let Some((set, file)) = self.kept_in(slot) {
            self.shared.filesets[set].reaches(file, offset + length as u64);
        }
        Ok(())
    }

    /// The file in a slot, if its length is kept track of: with `--verify`, and until it is deleted.
    #[inline]
    fn kept_in(&self, slot: usize) -> Option<(usize, usize)> {
        let slot = &self.slots[slot];
        slot.entry
            .filter(|_| slot.identity.is_some() && !slot.deleted)
    }

    fn write(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        let size = self.io_size(operation)?;
        let place = self.place(index(size), operation.direct)?;
        let (_, fileset, file) = self.in_slot(slot)?;
        if operation.random {
            let working_set = Self::working_set(operation, fileset, file);
            let offset = self.offset(working_set, size)?;
            self.write_at(slot, place, index(size), offset)?;
        } else if self.slots[slot].position == AT_END {
            self.append_at_end(slot, place, index(size))?;
        } else {
            let position = self.slots[slot].position;
            self.write_at(slot, place, index(size), position)?;
            self.slots[slot].position = position + size;
        }
        Ok(Flow::Did(size))
    }

    fn write_whole(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        let (_, fileset, file) = self.in_slot(slot)?;
        let source = self.slots[operation.source].entry;
        let total = match source {
            Some((set, file)) => self.shared.filesets[set].size(file),
            None => Self::working_set(operation, fileset, file),
        };
        let size = match operation.io_size.sample_count(&mut self.random) {
            0 => total,
            size => size,
        };
        let length = index(size.min(total));
        let place = self.place(length, operation.direct)?;
        let mut done = 0;
        while done < total {
            let now = index(size.min(total - done));
            let position = self.slots[slot].position;
            if position == AT_END {
                self.append_at_end(slot, place, now)?;
            } else {
                self.write_at(slot, place, now, position)?;
                self.slots[slot].position = position + now as u64;
            }
            done += now as u64;
        }
        Ok(Flow::Did(total))
    }

    fn append(&mut self, operation: &Operation, size: u64) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        if size == 0 {
            // Nothing is written, so nothing is counted; filebench counts it.
            return Ok(Flow::Nothing);
        }
        let place = self.place(index(size), operation.direct)?;
        self.append_at_end(slot, place, index(size))?;
        Ok(Flow::Did(size))
    }

    /// One write at the end, wherever it is by now: two threads that append never write over each other.
    fn append_at_end(&mut self, slot: usize, place: usize, length: usize) -> Attempt<()> {
        self.slots[slot].position = AT_END;
        if self.shared.verified.is_some() {
            return self.append_signed(slot, place, length);
        }
        self.fill(slot, place, length)?;
        let Some(open) = &self.slots[slot].open else {
            return Err(refused("has no open file"));
        };
        let data = &self.memory.all()[place..place + length];
        let mut done = 0;
        while done < length {
            let rest = [std::io::IoSlice::new(&data[done..])];
            match rustix::io::pwritev2(open, &rest, 0, ReadWriteFlags::APPEND) {
                Ok(0) => return Err(self.failed_at(slot, Errno::IO, "writing", AT_END, length)),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(self.failed_at(slot, error, "writing", AT_END, length));
                }
            }
        }
        Ok(())
    }

    /// The same with data that say where they belong, for which it must be known where the end is.
    fn append_signed(&mut self, slot: usize, place: usize, length: usize) -> Attempt<()> {
        let shared = self.shared;
        let (_, _, file) = self.in_slot(slot)?;
        let _held = shared
            .verified
            .as_ref()
            .map(|verified| verified.growing[file % verified.growing.len()].lock());
        let end = self.length(slot)?;
        self.write_at(slot, place, length, end)
    }

    /// Puts what is to be written where it is written from, if the fileset asks for data of its own.
    #[inline]
    fn fill(&mut self, slot: usize, place: usize, length: usize) -> Attempt<()> {
        let (_, fileset, _) = self.in_slot(slot)?;
        let data = &mut self.memory.all()[place..place + length];
        if fileset.fill(data, &mut self.random) {
            // As in `sign`.
            self.begun = self.shared.clock.raw();
        }
        Ok(())
    }

    /// Has the data that are to be written say where they belong.
    #[inline]
    fn sign(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<()> {
        let Some(verified) = &self.shared.verified else {
            return self.fill(slot, place, length);
        };
        let identity = self.identity(slot)?;
        let write = verified.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let data = &mut self.memory.all()[place..place + length];
        #[allow(clippy::cast_possible_truncation)] // it only tells writes apart
        verify::fill(identity, write as u32, offset, data);
        // Time spent on it is not the store's; of several writes of one operation only that of the last is told.
        self.begun = self.shared.clock.raw();
        Ok(())
    }

    /// Looks whether what was read is what belongs there.
    #[inline]
    fn verify(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<()> {
        if self.shared.verified.is_none() {
            return Ok(());
        }
        self.ended = Some(self.shared.clock.raw());
        self.look(slot, place, length, offset)
    }

    #[cold]
    fn look(&mut self, slot: usize, place: usize, length: usize, offset: u64) -> Attempt<()> {
        let Some(verified) = &self.shared.verified else {
            return Ok(());
        };
        verified.reads.fetch_add(1, Ordering::Relaxed);
        let (_, fileset, file) = self.in_slot(slot)?;
        let identity = self.identity(slot)?;
        for attempt in 0.. {
            let data = &self.memory.all()[place..place + length];
            let Err((at, wrong)) = verify::check(identity, offset, data, fileset.holes) else {
                if attempt > 0 {
                    verified.read_again.fetch_add(1, Ordering::Relaxed);
                }
                return Ok(());
            };
            // A read that meets a write may see a part of either; what is on its way is there soon.
            if attempt < READ_AGAIN {
                std::thread::sleep(Duration::from_micros(100));
                let again = self.read_at(slot, place, length, offset)?;
                if again == length {
                    continue;
                }
            }
            let message = format!(
                "{} is {} at {at}: not what was written there",
                fileset.describe(file),
                wrong.name()
            );
            return Err(self.wrong(wrong, message));
        }
        Ok(())
    }

    fn identity(&self, slot: usize) -> Attempt<Identity> {
        let identity = self.slots[slot].identity;
        identity.ok_or_else(|| refused(&format!("slot {slot} has no open file")))
    }

    fn fsync(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        let (open, fileset, file) = self.in_slot(slot)?;
        rustix::fs::fsync(open)
            .map_err(|error| failure(error, &format!("syncing {}", fileset.describe(file))))?;
        Ok(Flow::Did(0))
    }

    /// Syncs each open file of a fileset; each is an operation.
    fn fsync_set(&mut self, operation: &Operation) -> Attempt<Flow> {
        let (set, fileset) = self.fileset(operation)?;
        let mut before = false;
        for slot in 0..self.slots.len() {
            let Slot {
                open: Some(open),
                entry: Some((of, file)),
                ..
            } = &self.slots[slot]
            else {
                continue;
            };
            if *of != set {
                continue;
            }
            let file = *file;
            if before {
                // The one before is told now, the last one as any flowop.
                let now = self.shared.clock.raw();
                let ns = self.shared.clock.delta_as_nanos(self.begun, now);
                self.begun = now;
                let shard = &self.shard[operation.index];
                shard.note(ns, 0);
                self.own[operation.local].operations += 1;
                if self.shared.since_start(now) > self.shared.limit_ns {
                    shard.note_late(0);
                    return Err(Flow::End);
                }
            }
            before = true;
            rustix::fs::fsync(open)
                .map_err(|error| failure(error, &format!("syncing {}", fileset.describe(file))))?;
        }
        Ok(if before { Flow::Did(0) } else { Flow::Nothing })
    }

    fn change_dir(&mut self, operation: &Operation, want: Want) -> Attempt<Flow> {
        let (_, fileset) = self.fileset(operation)?;
        let Store::Tree(places) = &fileset.store else {
            return Err(refused("a block device has no directories"));
        };
        let dir = self.pick(operation, &fileset.leaf_dirs, want, true)?;
        let entry = fileset.tree.leaf_dirs[dir];
        let at = (entry.parent, entry.number);
        let done = match want {
            Want::Make => places.make_dir(at, &mut self.paths),
            _ => places.remove(at, AtFlags::REMOVEDIR, &mut self.paths),
        };
        match (done, want) {
            (Ok(()), Want::Make) => fileset.leaf_dirs.made(dir, false),
            (Ok(()), _) => fileset.leaf_dirs.removed(dir),
            (Err(error), _) => {
                fileset.leaf_dirs.left(dir);
                let path = fileset.plan.path.join(places.describe(at));
                return Err(failure(error, &format!("directory {}", path.display())));
            }
        }
        Ok(Flow::Did(0))
    }

    fn list_dir(&mut self, operation: &Operation) -> Attempt<Flow> {
        let (_, fileset) = self.fileset(operation)?;
        let Store::Tree(places) = &fileset.store else {
            return Err(refused("a block device has no directories"));
        };
        let dir = if self.shared.compat {
            fileset.next_dir.fetch_add(1, Ordering::Relaxed) % places.len()
        } else {
            index(self.random.below(places.len() as u64))
        };
        let failed = |error| failure(error, &format!("listing {}", fileset.plan.path.display()));
        let open = places
            .open_dir(u32::try_from(dir).unwrap_or(u32::MAX))
            .map_err(failed)?;
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 16 * 1024];
        let mut entries = RawDir::new(&open, &mut buffer);
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            bytes += entry.map_err(failed)?.file_name().count_bytes() as u64 + ENTRY_BYTES;
        }
        Ok(Flow::Did(bytes))
    }

    fn begin_write(&mut self, operation: &Operation) -> Attempt<Flow> {
        let slot = self.slot(operation);
        self.ensure_open(operation, slot)?;
        let size = self.io_size(operation)?;
        let length = index(size);
        let place = self.place(length, operation.direct)?;
        let (_, fileset, file) = self.in_slot(slot)?;
        let working_set = Self::working_set(operation, fileset, file);
        let offset = self.offset(working_set, size)?;
        if self
            .aio
            .as_ref()
            .is_some_and(|aio| aio.outstanding() >= aio::MOST)
        {
            self.take_ended(1)?;
            self.begun = self.shared.clock.raw();
        }
        self.sign(slot, place, length, offset)?;
        let kept = self.kept_in(slot);
        let (Some(open), Some(aio)) = (&self.slots[slot].open, &mut self.aio) else {
            return Err(refused("asynchronous writes are not ready"));
        };
        let data = &self.memory.all()[place..place + length];
        let pending = Pending {
            flowop: operation.index,
            begun: self.begun,
            took: (0, false),
            length,
            // What says where it belongs must not be written over by the next before it is written.
            data: self.shared.verified.as_ref().map(|_| data.into()),
            reaches: kept.map(|(set, file)| (set, file, offset + size)),
        };
        let key = aio
            .write(open.as_fd(), data, offset, pending)
            .map_err(|error| of_system(&error, "beginning a write"))?;
        let now = self.shared.clock.raw();
        let late = self.shared.since_start(now) > self.shared.limit_ns;
        aio.took(key, self.shared.clock.delta_as_nanos(self.begun, now), late);
        self.ended = Some(now);
        Ok(Flow::Begun(size))
    }

    fn await_writes(&mut self, _: &Operation) -> Attempt<Flow> {
        let Some(aio) = &self.aio else {
            return Ok(Flow::Nothing);
        };
        let outstanding = aio.outstanding();
        if outstanding == 0 {
            return Ok(Flow::Nothing);
        }
        let half = (outstanding / 2).max(1);
        // On Linux filebench looks once and waits for nothing.
        let at_least = if self.shared.compat { 0 } else { half };
        self.take_ended_of(at_least, half)?;
        Ok(Flow::Did(0))
    }

    fn take_ended(&mut self, at_least: usize) -> Attempt<()> {
        self.take_ended_of(at_least, usize::MAX)
    }

    fn take_ended_of(&mut self, at_least: usize, most: usize) -> Attempt<()> {
        let Some(mut aio) = self.aio.take() else {
            return Ok(());
        };
        let taken = aio.take(at_least, most, |ended| self.note_ended(ended));
        self.aio = Some(aio);
        taken.map_err(|error| of_system(&error, "waiting for writes"))
    }

    /// Waits for all writes that are under way.
    #[cold]
    fn end_writes(&mut self) {
        if let Some(mut aio) = self.aio.take()
            && aio.drain(|ended| self.note_ended(ended)).is_ok()
        {
            self.aio = Some(aio);
        }
    }

    /// A write that failed, or that the system did not finish, is an error of the flowop that began it.
    fn note_ended(&self, ended: Ended) {
        let Pending {
            flowop,
            begun,
            took,
            length,
            reaches,
            ..
        } = ended.pending;
        let (kind, message) = match ended.written {
            Ok(written) if written == length => {
                let (ns, late) = took;
                let shard = &self.shard[flowop];
                shard.note(ns, length as u64);
                if late {
                    shard.note_late(length as u64);
                }
                if let Some((set, file, end)) = reaches {
                    self.shared.filesets[set].reaches(file, end);
                }
                return;
            }
            Ok(written) => (
                ErrorKind::Io,
                format!("{written} of {length} bytes were written"),
            ),
            Err(error) => match of_system(&error, "an asynchronous write") {
                Flow::Failed(kind, message) => (kind, message),
                _ => return,
            },
        };
        if is_fatal(kind) {
            let name = &self.shared.program.flowops[flowop].name;
            let failure = Failure::new(kind.name(), format!("flowop {name}: {message}"));
            self.shared.fail(failure);
        }
        let now = self.shared.clock.raw();
        let ns = self.shared.clock.delta_as_nanos(begun, now);
        self.shared.recorder.failed(
            FailedOperation {
                client: u32::try_from(self.number).unwrap_or(u32::MAX),
                index: flowop,
                at: Instant::now(),
                took: Duration::from_nanos(ns),
                kind,
                message,
            },
            ns,
        );
    }

    fn waiting(&self, operation: &Operation) -> Option<&'a Waiting> {
        let shared = self.shared;
        shared.waiting.get(operation.waits?)?.get(self.instance)
    }

    fn block(&mut self, operation: &Operation) -> Attempt<Flow> {
        match self.waiting(operation) {
            Some(Waiting::Sleeper(sleeper)) if sleeper.wait() => Ok(Flow::Did(0)),
            _ => Err(Flow::End),
        }
    }

    fn wake(&mut self, operation: &Operation) -> Flow {
        for waiting in operation
            .wakes
            .iter()
            .flat_map(|&of| &self.shared.waiting[of])
        {
            if let Waiting::Sleeper(sleeper) = waiting {
                sleeper.wake();
            }
        }
        Flow::Did(0)
    }

    fn take_posts(&mut self, operation: &Operation) -> Attempt<Flow> {
        let value = operation.value.sample_count(&mut self.random);
        match self.waiting(operation) {
            Some(Waiting::Semaphore(semaphore)) if semaphore.take(value) => Ok(Flow::Did(0)),
            _ => Err(Flow::End),
        }
    }

    fn post(&mut self, operation: &Operation) -> Attempt<Flow> {
        let value = operation.value.sample_count(&mut self.random);
        for waiting in operation
            .wakes
            .iter()
            .flat_map(|&of| &self.shared.waiting[of])
        {
            if let Waiting::Semaphore(semaphore) = waiting
                && !semaphore.post(value, operation.blocking)
            {
                return Err(Flow::End);
            }
        }
        Ok(Flow::Did(0))
    }

    /// Stores a byte into the thread's memory, so many times.
    fn hog(&mut self, operation: &Operation) -> Flow {
        let times = operation.value.sample_count(&mut self.random);
        sys::store_bytes(self.memory.all(), times);
        Flow::Did(0)
    }

    fn delay(&mut self, operation: &Operation) -> Attempt<Flow> {
        let seconds = operation.value.sample(&mut self.random);
        let ns = count(seconds * 1e9);
        let now = self.shared.since_start(self.shared.clock.raw());
        self.sleep_until(now.saturating_add(ns))?;
        Ok(Flow::Did(0))
    }

    /// Sleeps until then, in ns since the start; ends with the run.
    fn sleep_until(&self, due_ns: u64) -> Attempt<()> {
        let until_ns = due_ns.min(self.shared.limit_ns.saturating_add(1));
        loop {
            let now_ns = self.shared.since_start(self.shared.clock.raw());
            if now_ns >= until_ns {
                return if due_ns > until_ns {
                    Err(Flow::End)
                } else {
                    Ok(())
                };
            }
            if self
                .shared
                .stop
                .wait_for(Duration::from_nanos(until_ns - now_ns))
            {
                return Err(Flow::End);
            }
        }
    }

    /// Takes events, once they are due.
    fn take_events(&mut self, _: &Operation, events: f64) -> Attempt<Flow> {
        let Some(source) = &self.shared.source else {
            return Ok(Flow::Nothing);
        };
        let now_ns = self.shared.since_start(self.shared.clock.raw());
        let due_ns = source.take(events, now_ns);
        if due_ns > now_ns {
            self.sleep_until(due_ns)?;
        }
        Ok(Flow::Did(0))
    }

    /// Takes as many events as were used since the flowop was last here.
    fn limit(&mut self, operation: &Operation) -> Attempt<Flow> {
        if self.shared.source.is_none() {
            return Ok(Flow::Nothing);
        }
        let process = self.process;
        let [paid_operations, paid_transfers, paid_bytes] = &process.paid;
        let (of_process, paid) = match operation.kind {
            FlowopType::BwLimit => (&process.bytes, paid_bytes),
            FlowopType::IopsLimit => (&process.transfers, paid_transfers),
            _ => (&process.operations, paid_operations),
        };
        let used = match operation.target.map(|target| &self.own[target]) {
            Some(target) if operation.kind == FlowopType::BwLimit => target.bytes,
            Some(target) => target.operations,
            None => of_process.load(Ordering::Relaxed),
        };
        let own = &mut self.own[operation.local];
        let before = if operation.target.is_none() && !self.shared.compat {
            // What the process did is paid for once, whatever its threads.
            paid.fetch_max(used, Ordering::Relaxed)
        } else {
            std::mem::replace(&mut own.paid, used)
        };
        let since = used.saturating_sub(before);
        // In filebench the first look only notes how far it is.
        let first = !own.begun;
        own.begun |= used > 0;
        if since == 0 || first && self.shared.compat {
            return Ok(Flow::Nothing);
        }
        let events = if operation.kind == FlowopType::BwLimit {
            since as f64 / f64::from(1 << 20)
        } else {
            since as f64
        };
        self.take_events(operation, events)
    }

    fn finish_on(&mut self, operation: &Operation) -> Attempt<Flow> {
        let limit = operation.value.sample_count(&mut self.random);
        let bytes = operation.kind == FlowopType::FinishOnBytes;
        let reached = match operation.target.map(|target| &self.own[target]) {
            Some(own) if bytes => own.bytes > limit,
            Some(own) => own.operations >= limit,
            None if bytes => self.process.bytes.load(Ordering::Relaxed) > limit,
            None => self.process.operations.load(Ordering::Relaxed) >= limit,
        };
        if !reached {
            return Ok(Flow::Did(0));
        }
        if self.shared.mode != QuitMode::AllDone {
            self.shared.finish();
        }
        Err(Flow::End)
    }

    fn print(&mut self, operation: &Operation) -> Flow {
        (self.shared.print)(&format!(
            "{} {} {}: {}",
            self.plan.process, self.plan.name, self.instance, operation.text
        ));
        Flow::Did(0)
    }

    fn draw(&mut self, operation: &Operation) -> Flow {
        let value = operation.value.sample(&mut self.random);
        let (count, sum, squares) = self.drawn.entry(operation.index).or_default();
        *count += 1;
        *sum += value;
        *squares += value * value;
        Flow::Did(0)
    }
}

/// Whether the run cannot go on after it: what comes after would meet the same.
const fn is_fatal(kind: ErrorKind) -> bool {
    kind.is_fatal() || matches!(kind, ErrorKind::ReadOnly | ErrorKind::OutOfMemory)
}

/// The workload asks for what cannot be.
#[cold]
fn refused(message: &str) -> Flow {
    Flow::Failed(ErrorKind::Refused, message.to_owned())
}

#[cold]
fn of_system(error: &std::io::Error, doing: &str) -> Flow {
    let number = error.raw_os_error().unwrap_or(libc::EIO);
    failure(Errno::from_raw_os_error(number), doing)
}

/// A system call that failed.
#[cold]
fn failure(error: Errno, doing: &str) -> Flow {
    let kind = match error {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ErrorKind::DiskFull,
        Errno::NOMEM => ErrorKind::OutOfMemory,
        Errno::ACCESS | Errno::PERM => ErrorKind::AccessDenied,
        Errno::ROFS => ErrorKind::ReadOnly,
        Errno::NOENT | Errno::NOTDIR | Errno::MFILE | Errno::NFILE | Errno::LOOP | Errno::NXIO => {
            ErrorKind::CannotOpen
        }
        Errno::INVAL | Errno::BADF | Errno::OPNOTSUPP | Errno::EXIST => ErrorKind::Refused,
        Errno::BUSY | Errno::TXTBSY => ErrorKind::Busy,
        Errno::TIMEDOUT => ErrorKind::Timeout,
        _ => ErrorKind::Io,
    };
    let hint = match error {
        Errno::INVAL => {
            " (with directio, sizes and places must be multiples of the device's blocks)"
        }
        Errno::MFILE | Errno::NFILE => " (the limit of open files)",
        _ => "",
    };
    Flow::Failed(kind, format!("{doing}: {error}{hint}"))
}
