//! The write-ahead log.
//!
//! Records are laid out in a buffer under its latch. Who needs them on disk becomes the leader if nobody is: it takes the
//! buffer away, leaves an empty one, writes and syncs what it took with no latch held, and wakes who waits. Whoever came
//! meanwhile finds its record on disk with what the leader took, or becomes the next leader, of all that came meanwhile
//! (group commit: `DeWitt` et al., "Implementation techniques for main memory database systems", SIGMOD 1984).
//!
//! Invariants:
//! - `synced <= written <= start of the buffer <= its end`; what is in between the last two is in the buffer alone, and what a leader
//!   took and has not yet written is in its hands alone.
//! - There is one leader at a time: it has taken the files out of `turn`.
//! - Of a failed write or sync nobody knows what reached the disk, and the next sync would not tell. So the log is broken from then on: nothing
//!   is appended, written or synced again, and all who ask, also later, are told. What was synced before stays.
//! - All records of a transaction but the first point to the one before, and those that are under way at the end of the buffer are
//!   exactly those of its list.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::active::{Active, Actives};
use super::master::{Master, MasterFile};
use super::record::{self, Entry, Head, LISTED};
use super::recovery::{self, Recovery};
use super::segments::Segments;
use super::{Log, LogFiles, Record};
use crate::latch::{Guarded, Latch};
use crate::pages::disk::Folder;
use crate::{Error, Lsn, PageId, Result, TxId};

/// When the log reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Never: it is written into memory and forgotten.
    Memory,
    /// Given to the system when a transaction commits, and synced by the first commit after that time has passed since the last
    /// sync. A loss of power takes what was not synced, all transactions after some one; the end of the process takes nothing.
    Written(Duration),
    /// Synced before a commit returns.
    Synced,
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// When the log reaches the disk.
    pub policy: Policy,
    /// Of each of its two buffers, in bytes: no record is longer.
    pub buffer: usize,
    /// Of a file, in bytes. Of a log that exists it stays what it was.
    pub segment: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::Synced,
            buffer: 4 << 20,
            segment: 64 << 20,
        }
    }
}

/// What a log has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes appended.
    pub appended: u64,
    /// Bytes written into files.
    pub written: u64,
    /// How often they were synced.
    pub syncs: u64,
}

/// The log. An engine makes it.
pub struct Wal<L> {
    policy: Policy,
    buffer: Guarded<L, Buffer>,
    /// Up to where the system has it.
    written: AtomicU64,
    /// Up to where the disk has it.
    synced: AtomicU64,
    broken: AtomicBool,
    turn: Mutex<Turn>,
    turned: Condvar,
    opened_at: Instant,
    /// When it was synced last, in milliseconds since it was opened.
    synced_at: AtomicU64,
    /// Where the last checkpoint began.
    checkpoint: AtomicU64,
    master: Mutex<Option<MasterFile>>,
    syncs: AtomicU64,
    bytes_written: AtomicU64,
    /// Of what was put into the buffer, for whoever asks without the latch.
    appended: AtomicU64,
}

struct Buffer {
    bytes: Box<[u8]>,
    used: usize,
    /// Where its first byte is in the log.
    start: Lsn,
    epoch: u32,
    /// Whether it is emptied when it is full, since nobody is going to write it.
    forgets: bool,
    broken: bool,
    active: Actives,
    highest: TxId,
}

struct Turn {
    /// Absent while a leader has them.
    files: Option<Files>,
    broken: Option<(io::ErrorKind, String)>,
}

/// What the leader works with.
struct Files {
    segments: Segments,
    /// The empty buffer.
    spare: Box<[u8]>,
}

impl<L: Latch> Wal<L> {
    /// One that never reaches a disk.
    #[must_use]
    pub(crate) fn in_memory(options: &Options) -> Self {
        let buffer = Buffer {
            forgets: true,
            ..Buffer::new(options, Lsn::NONE, 1)
        };
        Self::new(Policy::Memory, buffer, None, None)
    }

    /// That of a folder. Where it holds a store, what is to be recovered comes with it, and is to be redone and undone before anything
    /// else is logged; otherwise the first checkpoint makes it one. A store that was not finished is none.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        options: &Options,
    ) -> Result<(Self, Option<Recovery>)> {
        let mut file = MasterFile::open(&*folder)?;
        let found = file.now();
        let segment = found.map_or(options.segment.max(4096), |master| master.segment);
        let recovery = match found {
            Some(master) if master.checkpoint != Lsn::NONE => {
                let mut segments = Segments::new(Arc::clone(&folder), segment)?;
                // Its process may have ended before it synced what is read here, and the power may still fail.
                segments.sync_all()?;
                Some(recovery::analyse(segments, &master)?)
            }
            _ => None,
        };
        // Before anything is appended: what is appended must not be taken for what is left behind the log's end.
        let epoch = found.map_or(0, |master| master.epoch) + 1;
        let master = Master {
            epoch,
            segment,
            checkpoint: found.map_or(Lsn::NONE, |master| master.checkpoint),
            closed: false,
        };
        file.set(master)?;
        let end = recovery.as_ref().map_or(Lsn::NONE, Recovery::end);
        let mut buffer = Buffer::new(options, end, epoch);
        if let Some(recovery) = &recovery {
            buffer.highest = recovery.highest();
            for loser in recovery.losers() {
                buffer.active.logged(loser.tx, loser.first, loser.last);
            }
        }
        let files = Files {
            segments: Segments::new(folder, segment)?,
            spare: vec![0; buffer.bytes.len()].into(),
        };
        let wal = Self::new(options.policy, buffer, Some(files), Some(file));
        wal.checkpoint.store(master.checkpoint.0, Ordering::Relaxed);
        Ok((wal, recovery))
    }

    fn new(
        policy: Policy,
        buffer: Buffer,
        files: Option<Files>,
        master: Option<MasterFile>,
    ) -> Self {
        let end = buffer.start;
        Self {
            policy,
            buffer: Guarded::new(buffer),
            written: AtomicU64::new(end.0),
            synced: AtomicU64::new(end.0),
            broken: AtomicBool::new(false),
            turn: Mutex::new(Turn {
                files,
                broken: None,
            }),
            turned: Condvar::new(),
            opened_at: Instant::now(),
            synced_at: AtomicU64::new(0),
            checkpoint: AtomicU64::new(end.0),
            master: Mutex::new(master),
            syncs: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            appended: AtomicU64::new(0),
        }
    }

    /// Where it ends; all of it may be in memory.
    pub fn end_of_log(&self) -> Lsn {
        self.buffer.shared().end()
    }

    /// Up to where it is on disk.
    pub fn synced(&self) -> Lsn {
        Lsn(self.synced.load(Ordering::Acquire))
    }

    #[inline]
    fn put(&self, tx: TxId, previous: Lsn, entry: &Entry<'_>) -> Result<Lsn> {
        let length = record::length(entry);
        self.with_room(length, |buffer| buffer.put(length, tx, previous, entry))
    }

    /// Does something with the buffer as soon as it has room for a record of that length.
    #[inline]
    fn with_room<R>(&self, length: usize, put: impl FnOnce(&mut Buffer) -> R) -> Result<R> {
        loop {
            let mut buffer = self.buffer.exclusive();
            if buffer.has_room(length) {
                let done = put(&mut buffer);
                // Nobody else stores it while the buffer is latched.
                let appended = self.appended.load(Ordering::Relaxed) + length as u64;
                self.appended.store(appended, Ordering::Relaxed);
                return Ok(done);
            }
            let (end, longest) = (buffer.end(), buffer.longest());
            drop(buffer);
            self.make_room(length, end, longest)?;
        }
    }

    #[cold]
    fn make_room(&self, length: usize, end: Lsn, longest: usize) -> Result<()> {
        if self.broken.load(Ordering::Acquire) {
            return Err(self.failure());
        }
        if length > longest {
            let message = format!("a record of {length} bytes is longer than the log's buffer");
            return Err(Error::Refused(message));
        }
        self.reach(end, Depth::Written)
    }

    /// Waits until the log is there up to `lsn`, or brings it there.
    fn reach(&self, lsn: Lsn, depth: Depth) -> Result<()> {
        let mark = match depth {
            Depth::Written => &self.written,
            Depth::Synced => &self.synced,
        };
        if mark.load(Ordering::Acquire) >= lsn.0 {
            return Ok(());
        }
        let mut turn = self.turn.lock();
        while mark.load(Ordering::Acquire) < lsn.0 {
            self.lead_or_wait(&mut turn, |files| self.write_out(files, depth))?;
        }
        Ok(())
    }

    /// Does something with the files if nobody has them, otherwise waits until they may be had.
    fn lead_or_wait<R>(
        &self,
        turn: &mut MutexGuard<'_, Turn>,
        lead: impl FnOnce(&mut Files) -> Result<R>,
    ) -> Result<Option<R>> {
        if turn.broken.is_some() {
            return Err(turn.failure());
        }
        let Some(mut files) = turn.files.take() else {
            self.turned.wait(turn);
            return Ok(None);
        };
        let led = MutexGuard::unlocked(turn, || lead(&mut files));
        turn.files = Some(files);
        if let Err(error) = &led {
            turn.broken = Some(match error {
                Error::Io(_, error) => (error.kind(), error.to_string()),
                other => (io::ErrorKind::Other, other.to_string()),
            });
            self.broken.store(true, Ordering::Release);
            self.buffer.exclusive().broken = true;
        }
        self.turned.notify_all();
        led.map(Some)
    }

    /// The leader's work.
    fn write_out(&self, files: &mut Files, depth: Depth) -> Result<()> {
        let (start, used) = self.buffer.exclusive().exchange(&mut files.spare);
        let end = start.0 + used as u64;
        if used > 0 {
            files.segments.write(start.0, &files.spare[..used])?;
            self.bytes_written.fetch_add(used as u64, Ordering::Relaxed);
            self.written.store(end, Ordering::Release);
        }
        if depth == Depth::Synced {
            files.segments.sync()?;
            self.syncs.fetch_add(1, Ordering::Relaxed);
            self.synced_at.store(self.now(), Ordering::Relaxed);
            self.synced.store(end, Ordering::Release);
        }
        Ok(())
    }

    /// In milliseconds since it was opened.
    fn now(&self) -> u64 {
        u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[cold]
    fn failure(&self) -> Error {
        self.turn.lock().failure()
    }

    fn with_files<R>(&self, mut work: impl FnMut(&mut Files) -> Result<R>) -> Result<R> {
        let mut turn = self.turn.lock();
        loop {
            if let Some(done) = self.lead_or_wait(&mut turn, &mut work)? {
                return Ok(done);
            }
        }
    }

    /// Writes a list down in records of at most so many elements.
    fn put_list(
        &self,
        begin: Lsn,
        list: &[record::Listed],
        entry: impl for<'a> Fn(&'a [u8]) -> Entry<'a>,
    ) -> Result<()> {
        const MOST: usize = 1024;
        let mut part = Vec::with_capacity(MOST.min(list.len()) * LISTED);
        for elements in list.chunks(MOST) {
            part.clear();
            for number in elements.iter().flatten() {
                part.extend_from_slice(&number.to_le_bytes());
            }
            self.put(TxId(0), begin, &entry(&part))?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Written,
    Synced,
}

impl<L: Latch> Log<L> for Wal<L> {
    const REAL: bool = true;

    #[inline]
    fn append(&self, tx: TxId, previous: Lsn, record: &Record<'_>) -> Result<Lsn> {
        self.put(tx, previous, &Entry::Record(*record))
    }

    fn commit(&self, tx: TxId, previous: Lsn) -> Result<()> {
        if previous == Lsn::NONE {
            // It changed nothing. But what it read may be of a transaction whose commit failed.
            return if self.broken.load(Ordering::Acquire) {
                Err(self.failure())
            } else {
                Ok(())
            };
        }
        let lsn = self.put(tx, previous, &Entry::Commit)?;
        match self.policy {
            Policy::Memory => Ok(()),
            Policy::Synced => self.reach(lsn, Depth::Synced),
            Policy::Written(interval) => {
                let last = self.synced_at.load(Ordering::Relaxed);
                let now = self.now();
                let is_due = u128::from(now.saturating_sub(last)) >= interval.as_millis();
                // One of those who find that it is due does it.
                let exchange = |at: &AtomicU64| {
                    at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                };
                if is_due && exchange(&self.synced_at).is_ok() {
                    self.reach(lsn, Depth::Synced)
                } else {
                    self.reach(lsn, Depth::Written)
                }
            }
        }
    }

    fn end(&self, tx: TxId, previous: Lsn) -> Result<()> {
        if previous == Lsn::NONE {
            return Ok(());
        }
        self.put(tx, previous, &Entry::End).map(drop)
    }

    fn flush(&self, lsn: Lsn) -> Result<()> {
        if self.policy == Policy::Memory {
            return Ok(());
        }
        if self.synced() < lsn && self.end_of_log() < lsn {
            let message = format!("the log ends before {}, which a page has", lsn.0);
            return Err(Error::Corrupt(None, message));
        }
        self.reach(lsn, Depth::Synced)
    }
}

impl<L: Latch> LogFiles<L> for Wal<L> {
    fn open(
        folder: Option<Arc<dyn Folder>>,
        options: &Options,
    ) -> Result<(Self, Option<Recovery>)> {
        match folder {
            Some(folder) if options.policy != Policy::Memory => Self::open(folder, options),
            _ => Ok((Self::in_memory(options), None)),
        }
    }

    fn checkpoint(&self, dirty: impl FnOnce() -> Result<Vec<(PageId, Lsn)>>) -> Result<()> {
        if self.policy == Policy::Memory {
            return Ok(());
        }
        let mut master = self.master.lock();
        let Some(file) = master.as_mut() else {
            return Ok(());
        };
        let Some(now) = file.now() else {
            return Ok(());
        };
        let entry = Entry::CheckpointBegin;
        let length = record::length(&entry);
        let (begin, active) = self.with_room(length, |buffer| {
            let begin = buffer.put(length, buffer.highest, Lsn::NONE, &entry);
            (begin, buffer.active.iter().copied().collect::<Vec<_>>())
        })?;
        // Asked only now: pages whose changes are in the log before the checkpoint must be among them.
        let mut dirty = dirty()?;
        // Of a change that was not logged nothing can be redone.
        dirty.retain(|(_, lsn)| *lsn != Lsn::NONE);
        let oldest = active.iter().map(|active| active.first).min();
        let list: Vec<_> = active.iter().map(Active::listed).collect();
        self.put_list(begin, &list, |part| Entry::Active(part))?;
        let list: Vec<_> = dirty.iter().map(|(page, lsn)| [page.0, lsn.0, 0]).collect();
        self.put_list(begin, &list, |part| Entry::Dirty(part))?;
        let end = self.put(TxId(0), begin, &Entry::CheckpointEnd)?;
        self.reach(end, Depth::Synced)?;
        file.set(Master {
            checkpoint: begin,
            ..now
        })?;
        self.checkpoint.store(begin.0, Ordering::Relaxed);
        let first_change = dirty.iter().map(|(_, lsn)| *lsn).min();
        // That a file stays is no harm to the log: it is told, and the log goes on.
        self.with_files(|files| Ok(files.remove_before(begin, first_change, oldest)))?
    }

    fn close(&self) -> Result<()> {
        let mut master = self.master.lock();
        match master.as_mut().map(|file| (file.now(), file)) {
            Some((Some(now), file)) => file.set(Master {
                closed: true,
                ..now
            }),
            _ => Ok(()),
        }
    }

    fn grown(&self) -> u64 {
        self.end_of_log().0 - self.checkpoint.load(Ordering::Relaxed)
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            appended: self.appended.load(Ordering::Relaxed),
            written: self.bytes_written.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }
}

impl Files {
    /// Removes what is before the checkpoint, the first change that is not in its page's place, and the oldest transaction.
    fn remove_before(
        &mut self,
        checkpoint: Lsn,
        first_change: Option<Lsn>,
        oldest: Option<Lsn>,
    ) -> Result<()> {
        let mut needed = self.segments.start_of(checkpoint)?;
        if let Some(lsn) = first_change {
            needed = needed.min(self.segments.start_of(lsn)?);
        }
        if let Some(lsn) = oldest {
            needed = needed.min(lsn);
        }
        self.segments.remove_before(needed)
    }
}

impl Buffer {
    fn new(options: &Options, start: Lsn, epoch: u32) -> Self {
        Self {
            bytes: vec![0; options.buffer].into(),
            used: 0,
            start,
            epoch,
            forgets: false,
            broken: false,
            active: Actives::new(),
            highest: TxId(0),
        }
    }

    const fn end(&self) -> Lsn {
        Lsn(self.start.0 + self.used as u64)
    }

    fn longest(&self) -> usize {
        self.bytes.len().min(recovery::LONGEST)
    }

    /// Whether a record of that length can be put into it now.
    #[inline]
    fn has_room(&mut self, length: usize) -> bool {
        if length > self.longest() || self.broken {
            return false;
        }
        if self.forgets && self.bytes.len() - self.used < length {
            self.start = self.end();
            self.used = 0;
        }
        self.bytes.len() - self.used >= length
    }

    /// Lays a record out. Gives where it ends.
    #[inline]
    fn put(&mut self, length: usize, tx: TxId, previous: Lsn, entry: &Entry<'_>) -> Lsn {
        let start = self.end();
        let head = Head {
            epoch: self.epoch,
            tx,
            previous,
        };
        let bytes = &mut self.bytes[self.used..self.used + length];
        record::encode(bytes, start, &head, entry);
        self.used += length;
        let end = self.end();
        match entry {
            Entry::Record(_) if tx.0 != 0 => {
                debug_assert_eq!(
                    self.active.last(tx),
                    previous,
                    "each record of a transaction points to the one before"
                );
                self.highest = self.highest.max(tx);
                self.active.logged(tx, start, end);
            }
            Entry::Commit | Entry::End => {
                debug_assert_eq!(self.active.last(tx), previous);
                self.active.ended(tx);
            }
            _ => {}
        }
        end
    }

    /// Takes what is in it and leaves an empty one. Gives where that began and how much it is.
    fn exchange(&mut self, spare: &mut Box<[u8]>) -> (Lsn, usize) {
        std::mem::swap(&mut self.bytes, spare);
        let taken = (self.start, self.used);
        self.start = self.end();
        self.used = 0;
        taken
    }
}

impl Turn {
    fn failure(&self) -> Error {
        let (kind, message) = self.broken.as_ref().map_or_else(
            || (io::ErrorKind::Other, String::new()),
            |(kind, message)| (*kind, message.clone()),
        );
        let message = format!("it has been broken since a write or a sync failed: {message}");
        Error::Io("the log", io::Error::new(kind, message))
    }
}
