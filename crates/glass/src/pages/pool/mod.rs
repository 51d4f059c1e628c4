//! The buffer pool: pages of a file in frames of memory.
//!
//! A page is found by its number in the [directory](directory), or else read into a frame that Corbato's clock gives up
//! (a frame that was used since the hand came by last gets another round). A frame has a count of pins, and the page in
//! it stays while that is not zero. Changed pages are [written](writer) in batches, when a frame is wanted that has one,
//! or when a cleaner asks; never before the log's records of their changes.
//!
//! Invariants:
//! - A page is in one frame at most, and in the directory exactly while it is in one.
//! - Nobody waits for a disk with a latch of the directory. Who reads a page has it in the directory already, pinned,
//!   with the frame's latch held; others who want it pin it too and wait for that latch.
//! - A frame is emptied by the one who has its only pin, under the directory's latch, when all of it is on disk.
//! - Who writes pages has the writer's latch and never waits for a page's with it: threads with latches of pages wait for
//!   the writer. A page is written for want of its frame only if nobody has it pinned: where latches are absent, somebody
//!   might be in the middle of changing it.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use directory::Directory;
use frame::{Frame, State};
use meta::{META, Meta};
use writer::{BATCH, Writer};

use super::disk::Disk;
use super::layout::{Page, PageKind};
use super::memory::Memory;
use super::{Ahead, Census, Pages, Pin, Setup, Statistics, Writable};
use crate::latch::{Guarded, Latch};
use crate::log::{Change, Log, Patch, Record};
use crate::{Error, Lsn, PageId, Result, TxId};

mod directory;
mod frame;
mod meta;
#[cfg(test)]
mod tests;
mod writer;

/// The file that the pages are in.
pub const DATA_FILE: &str = "data";

/// The file of the double-write area.
pub const AREA_FILE: &str = "doublewrite";

/// Fewer would not do for the pages that one thread has pinned at a time.
const LEAST_FRAMES: usize = 16;

/// How often the clock goes round frames that are all pinned before it gives up. Where there are other threads, they may
/// be about to unpin theirs.
const fn rounds<L: Latch>() -> usize {
    if L::REAL { 1000 } else { 1 }
}

/// Frames of memory for pages of `PAGE` bytes.
pub struct Pool<L: Latch, const PAGE: usize> {
    frames: Box<[Frame<L>]>,
    /// Where the frames' pages are.
    _memory: Memory,
    directory: Directory<L>,
    /// Where the clock is: frames passed.
    hand: AtomicUsize,
    /// Where the cleaner is: frames passed.
    broom: AtomicUsize,
    writer: Guarded<L, Writer<PAGE>>,
    data: Arc<dyn Disk>,
    ahead: Ahead,
    counts: Counts,
}

/// Of pages; see [`Statistics`].
#[derive(Default)]
struct Counts {
    misses: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    evicted: AtomicU64,
}

fn count(counter: &AtomicU64, pages: usize) {
    counter.fetch_add(pages as u64, Ordering::Relaxed);
}

impl<L: Latch, const PAGE: usize> Pool<L, PAGE> {
    fn index_of(&self, passed: usize) -> usize {
        passed % self.frames.len()
    }

    /// A pin of what is in the frame, which has been counted.
    fn pinned(&self, index: usize) -> PoolPin<'_, L, PAGE> {
        PoolPin {
            frame: &self.frames[index],
        }
    }

    /// Pins a page that was not found.
    #[cold]
    fn pin_absent(&self, page: PageId, source: Source) -> Result<PoolPin<'_, L, PAGE>> {
        loop {
            let index = self.empty_frame()?;
            if let Some(pin) = self.fill(index, page, source)? {
                count(&self.counts.misses, 1);
                return Ok(pin);
            }
            // Somebody else was faster.
            if let Some(pin) = self.pin_present(page) {
                return Ok(pin);
            }
        }
    }

    /// Pins a page that is in memory, when its bytes are.
    #[inline]
    fn pin_present(&self, page: PageId) -> Option<PoolPin<'_, L, PAGE>> {
        let frame = self.directory.pin(page, &self.frames)?;
        let pin = PoolPin { frame };
        frame.refer();
        if frame.state() != State::Ready && !Self::wait(&pin) {
            return None;
        }
        Some(pin)
    }

    /// Waits for who reads the page, and says whether it could be read.
    #[cold]
    fn wait(pin: &PoolPin<'_, L, PAGE>) -> bool {
        drop(pin.shared());
        pin.frame.state() == State::Ready
    }

    /// Brings the page into an empty frame that is pinned; `None` if it is in another by now.
    fn fill(
        &self,
        index: usize,
        page: PageId,
        source: Source,
    ) -> Result<Option<PoolPin<'_, L, PAGE>>> {
        let frame = &self.frames[index];
        let pin = self.pinned(index);
        // Had at once, but for those who have waited in vain for the page that was read into it before.
        let mut latched = pin.exclusive();
        let mut chain = self.directory.chain(page);
        if chain.has(page, &self.frames) {
            return Ok(None);
        }
        frame.set_state(State::Reading);
        frame.refer();
        chain.insert(page, index, &self.frames);
        drop(chain);
        match self.read(page, source, &mut latched) {
            Ok(()) => {
                frame.set_state(State::Ready);
                drop(latched);
                Ok(Some(pin))
            }
            Err(error) => {
                self.directory.chain(page).remove(index, &self.frames);
                frame.set_state(State::Failed);
                Err(error)
            }
        }
    }

    fn read(&self, page: PageId, source: Source, into: &mut Page) -> Result<()> {
        match source {
            Source::Nothing => into.bytes_mut().fill(0),
            Source::File => {
                self.data
                    .read(page.0 * PAGE as u64, into.bytes_mut())
                    .map_err(|error| Error::Io("read of a page", error))?;
                count(&self.counts.read, 1);
                if !into.is_of(page) {
                    return Err(Error::Corrupt(
                        Some(page),
                        "its checksum or its number is wrong".to_owned(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// A frame that is in nobody's reach, pinned once: the clock.
    fn empty_frame(&self) -> Result<usize> {
        let mut pinned = 0;
        loop {
            let index = self.index_of(advance::<L>(&self.hand, 1));
            let mut outcome = self.take(index);
            while let Taken::Changed = outcome {
                self.clean(index)?;
                outcome = self.take(index);
            }
            match outcome {
                Taken::Empty => return Ok(index),
                Taken::Pinned => pinned += 1,
                Taken::Used | Taken::Changed => pinned = 0,
            }
            if pinned > 0 && pinned % self.frames.len() == 0 {
                if pinned == rounds::<L>() * self.frames.len() {
                    return Err(Error::OutOfMemory(
                        "a page: all frames of the buffer pool are pinned",
                    ));
                }
                // They are pinned by who writes them, perhaps.
                drop(self.writer.exclusive());
                thread::yield_now();
            }
        }
    }

    /// Tries to empty a frame.
    fn take(&self, index: usize) -> Taken {
        let frame = &self.frames[index];
        if !frame.claim() {
            return Taken::Pinned;
        }
        let outcome = match frame.page() {
            None => Taken::Empty,
            Some(_) if frame.was_referred() => Taken::Used,
            Some(page) => {
                let mut chain = self.directory.chain(page);
                if frame.pins() > 1 {
                    Taken::Pinned
                } else if frame.oldest_change().is_some() {
                    Taken::Changed
                } else {
                    chain.remove(index, &self.frames);
                    count(&self.counts.evicted, 1);
                    Taken::Empty
                }
            }
        };
        if !matches!(outcome, Taken::Empty) {
            frame.unpin();
        }
        outcome
    }

    /// Writes changed pages that nobody has pinned, from that frame on.
    fn clean(&self, from: usize) -> Result<()> {
        let mut writer = self.writer.exclusive();
        self.gather(&mut writer, from, self.frames.len(), BATCH, true)?;
        self.write(&mut writer)
    }

    /// Begins a batch, and adds to it at most so many changed pages of so many frames from one on, pinned, but those that
    /// somebody has latched. Says how many frames were looked at.
    fn gather(
        &self,
        writer: &mut Writer<PAGE>,
        from: usize,
        frames: usize,
        at_most: usize,
        unpinned: bool,
    ) -> Result<usize> {
        writer.begin()?;
        let mut wanted = [(META, 0); BATCH];
        let mut count = 0;
        let mut looked = 0;
        while looked < frames && count < at_most.min(BATCH) {
            let index = self.index_of(from + looked);
            looked += 1;
            let frame = &self.frames[index];
            if frame.is_changed()
                && let Some(page) = frame.page()
                && self.directory.pin_in(page, index, unpinned, &self.frames)
            {
                wanted[count] = (page, index);
                count += 1;
            }
        }
        wanted[..count].sort_unstable();
        for (page, index) in &wanted[..count] {
            let frame = &self.frames[*index];
            if frame.latch.try_lock_exclusive() {
                self.add(writer, *page, *index);
                // SAFETY: taken just now.
                #[allow(unsafe_code)]
                unsafe {
                    frame.latch.unlock_exclusive();
                }
            } else {
                frame.unpin();
            }
        }
        Ok(looked)
    }

    /// Adds a page to the batch, which is pinned and latched.
    #[allow(unsafe_code)]
    fn add(&self, writer: &mut Writer<PAGE>, page: PageId, index: usize) {
        // SAFETY: it is latched, or there is one session, which has not latched it (see the invariants).
        let bytes =
            unsafe { NonNull::slice_from_raw_parts(self.frames[index].start, PAGE).as_ref() };
        self.frames[index].begin_write();
        writer.add(page, index, Page::of(bytes));
    }

    /// Writes the batch, and unpins its pages.
    fn write(&self, writer: &mut Writer<PAGE>) -> Result<()> {
        if writer.batch().is_empty() {
            return Ok(());
        }
        let result = writer.write(&*self.data, &self.ahead);
        for (_, index) in writer.batch() {
            let frame = &self.frames[*index];
            // After an error it stays changed for ever, and so does what the log has to keep for it.
            if result.is_ok() {
                frame.end_write();
            }
            frame.unpin();
        }
        if result.is_ok() {
            count(&self.counts.written, writer.batch().len());
        }
        result
    }

    /// Writes the page of a frame, however long somebody has it latched.
    fn write_one(&self, index: usize) -> Result<()> {
        let frame = &self.frames[index];
        let Some(page) = frame
            .page()
            .filter(|page| self.directory.pin_in(*page, index, false, &self.frames))
        else {
            return Ok(());
        };
        let pin = self.pinned(index);
        // First the page's latch and then the writer's, as everybody else. No one changes a page that is latched shared.
        let latched = pin.shared();
        let mut writer = self.writer.exclusive();
        writer.begin()?;
        if !frame.is_changed() {
            return Ok(());
        }
        frame.pin();
        self.add(&mut writer, page, index);
        drop(latched);
        self.write(&mut writer)
    }

    /// What the log's record says about pages, if there is a log.
    fn log<G: Log<L>>(log: &G, patches: &[Patch<'_>]) -> Result<Lsn> {
        if !G::REAL {
            return Ok(Lsn::NONE);
        }
        log.append(
            TxId(0),
            Lsn::NONE,
            &Record::Structure(Change::Write(patches)),
        )
    }
}

/// Moves on, and says where that was.
fn advance<L: Latch>(hand: &AtomicUsize, by: usize) -> usize {
    if L::REAL {
        hand.fetch_add(by, Ordering::Relaxed)
    } else {
        let at = hand.load(Ordering::Relaxed);
        hand.store(at.wrapping_add(by), Ordering::Relaxed);
        at
    }
}

/// Where a page's bytes come from.
#[derive(Clone, Copy)]
enum Source {
    /// The file.
    File,
    /// They are zero.
    Nothing,
}

/// What came of taking a frame.
enum Taken {
    /// It is empty.
    Empty,
    /// Somebody has its page pinned.
    Pinned,
    /// Its page was used since it was tried last.
    Used,
    /// Its page has to be written first.
    Changed,
}

impl<L: Latch, const PAGE: usize> Pages<L> for Pool<L, PAGE> {
    const REAL: bool = true;

    type Pin<'a> = PoolPin<'a, L, PAGE>;

    fn open(setup: Setup<'_>) -> Result<Self> {
        // A page's bytes are counted by 16 bits in the log, and torn by whole sectors.
        const { assert!(PAGE.is_multiple_of(512) && PAGE <= 1 << 16) };
        let frames = setup.memory / PAGE;
        if frames < LEAST_FRAMES || frames >= frame::END as usize {
            let least = LEAST_FRAMES * PAGE;
            return Err(Error::Refused(format!(
                "a buffer pool needs {least} bytes at least, not {}",
                setup.memory
            )));
        }
        let Some(folder) = setup.folder else {
            return Err(Error::Refused(
                "a buffer pool needs a folder for its files".to_owned(),
            ));
        };
        let open = |name| {
            folder
                .open(name)
                .map_err(|error| Error::Io("opening of a file of pages", error))
        };
        let data = open(DATA_FILE)?;
        let mut writer = Writer::new(open(AREA_FILE)?);
        writer.repair(&*data)?;
        // A process may have ended before it synced what it wrote to its place. What is read from there is taken to be on disk, and
        // the area, which has it too until then, may be written next.
        data.sync()
            .map_err(|error| Error::Io("sync of pages", error))?;
        let mut start = [0; meta::START];
        data.read(0, &mut start)
            .map_err(|error| Error::Io("read of the first page", error))?;
        let is_new = start.iter().all(|byte| *byte == 0);
        if !is_new {
            meta::check(&start, PAGE)?;
        }
        let memory = Memory::new(frames, PAGE)?;
        let pool = Self {
            frames: memory.pages().map(Frame::new).collect(),
            _memory: memory,
            directory: Directory::new(frames),
            hand: AtomicUsize::new(0),
            broom: AtomicUsize::new(0),
            writer: Guarded::new(writer),
            data,
            ahead: setup.ahead,
            counts: Counts::default(),
        };
        let first = pool.pin(META)?;
        if is_new {
            let mut latched = first.exclusive();
            meta::format(&mut latched);
            latched.changed(Lsn::NONE);
            drop(latched);
            pool.flush_all()?;
        }
        drop(first);
        Ok(pool)
    }

    #[inline]
    fn pin(&self, page: PageId) -> Result<PoolPin<'_, L, PAGE>> {
        match self.pin_present(page) {
            Some(pin) => Ok(pin),
            None => self.pin_absent(page, Source::File),
        }
    }

    #[inline]
    fn pin_of_record(&self, page: PageId) -> Result<PoolPin<'_, L, PAGE>> {
        self.pin(page)
    }

    fn allocate<G: Log<L>>(&self, kind: PageKind, log: &G) -> Result<PoolPin<'_, L, PAGE>> {
        let first = self.pin(META)?;
        let mut meta = first.exclusive();
        let free = Meta(&meta).first_free();
        let (page, source) = if free == PageId::NONE {
            (Meta(&meta).next(), Source::Nothing)
        } else {
            (free, Source::File)
        };
        let pin = match self.pin_present(page) {
            Some(pin) => pin,
            None => self.pin_absent(page, source)?,
        };
        let mut taken = pin.exclusive();
        let after = match source {
            Source::File => meta::next_free(&taken, page)?.0.to_le_bytes(),
            Source::Nothing => (page.0 + 1).to_le_bytes(),
        };
        let at = match source {
            Source::File => meta::set_first_free(&after),
            Source::Nothing => meta::set_next(&after),
        };
        let identity = meta::kind_of(kind, page);
        let link = [0; 8];
        let lsn = Self::log(
            log,
            &[
                at,
                meta::set_kind(page, &identity),
                meta::set_link(page, &link),
            ],
        )?;
        meta.write(at.offset, at.bytes);
        meta.changed(lsn);
        taken.clear(kind, page);
        taken.changed(lsn);
        drop(taken);
        Ok(pin)
    }

    fn free<G: Log<L>>(&self, page: PageId, log: &G) -> Result<()> {
        let first = self.pin(META)?;
        let mut meta = first.exclusive();
        let pin = self.pin(page)?;
        let mut freed = pin.exclusive();
        let next = Meta(&meta).first_free().0.to_le_bytes();
        let to_it = page.0.to_le_bytes();
        let identity = meta::kind_of(PageKind::Free, page);
        let at = meta::set_first_free(&to_it);
        // Whole, so that whoever takes it later need not log that it is zero; that is seldom, taking is not.
        let patches = [
            at,
            meta::set_kind(page, &identity),
            meta::set_link(page, &next),
            meta::set_rest(page, const { &[0; PAGE] }),
        ];
        let lsn = Self::log(log, &patches)?;
        meta.write(at.offset, at.bytes);
        meta.changed(lsn);
        for patch in &patches[1..] {
            freed.write(patch.offset, patch.bytes);
        }
        freed.changed(lsn);
        Ok(())
    }

    fn root(&self) -> Result<PageId> {
        let first = self.pin(META)?;
        let root = Meta(&first.shared()).root();
        Ok(root)
    }

    fn set_root<G: Log<L>>(&self, root: PageId, log: &G) -> Result<()> {
        let first = self.pin(META)?;
        let mut meta = first.exclusive();
        let root = root.0.to_le_bytes();
        let patch = meta::set_root(&root);
        let lsn = Self::log(log, &[patch])?;
        meta.write(patch.offset, patch.bytes);
        meta.changed(lsn);
        Ok(())
    }

    fn census(&self) -> Result<Census> {
        let first = self.pin(META)?;
        let meta = first.shared();
        let all: Vec<_> = (1..Meta(&meta).next().0).map(PageId).collect();
        let mut free = Vec::new();
        let mut at = Meta(&meta).first_free();
        while at != PageId::NONE {
            if free.len() == all.len() {
                return Err(Error::Corrupt(
                    Some(at),
                    "the chain of free pages has no end".to_owned(),
                ));
            }
            free.push(at);
            at = meta::next_free(&self.pin(at)?.shared(), at)?;
        }
        Ok(Census { all, free })
    }

    fn dirty_pages(&self) -> Vec<(PageId, Lsn)> {
        let mut dirty = Vec::new();
        for frame in &self.frames {
            if frame.page().is_none() {
                continue;
            }
            // Somebody may have logged a change and be about to say so: wait. The frame may have another page by then, which
            // does no harm: it was changed, or is said to have been.
            frame.latch.lock_shared();
            if let (Some(lsn), Some(page)) = (frame.oldest_change(), frame.page()) {
                dirty.push((page, lsn));
            }
            // SAFETY: taken just now.
            #[allow(unsafe_code)]
            unsafe {
                frame.latch.unlock_shared();
            }
        }
        dirty
    }

    fn flush_some(&self, at_most: usize) -> Result<usize> {
        let mut writer = self.writer.exclusive();
        let mut written = 0;
        let mut left = self.frames.len();
        while written < at_most && left > 0 {
            // Changed with the writer's latch held alone.
            let from = self.broom.load(Ordering::Relaxed);
            let looked = self.gather(&mut writer, from, left, at_most - written, false)?;
            self.broom
                .store(self.index_of(from + looked), Ordering::Relaxed);
            left -= looked;
            self.write(&mut writer)?;
            written += writer.batch().len();
        }
        Ok(written)
    }

    fn flush_all(&self) -> Result<()> {
        let count = self.frames.len();
        for from in 0..count {
            if !self.frames[from].is_changed() {
                continue;
            }
            let mut writer = self.writer.exclusive();
            self.gather(&mut writer, from, count - from, BATCH, false)?;
            self.write(&mut writer)?;
            drop(writer);
            if self.frames[from].is_changed() {
                self.write_one(from)?;
            }
        }
        // What seemed unchanged may have been on its way: wait for who writes it.
        self.writer.exclusive().begin()
    }

    fn statistics(&self) -> Statistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            hits: self.directory.hits(),
            misses: of(&self.counts.misses),
            read: of(&self.counts.read),
            written: of(&self.counts.written),
            evicted: of(&self.counts.evicted),
        }
    }
}

/// A page pinned in its frame.
pub struct PoolPin<'a, L: Latch, const PAGE: usize> {
    frame: &'a Frame<L>,
}

// SAFETY: the frame's memory is the page's while it is pinned, and the frame's latch its own.
#[allow(unsafe_code)]
unsafe impl<L: Latch, const PAGE: usize> Pin for PoolPin<'_, L, PAGE> {
    type Latch = L;

    #[inline]
    fn id(&self) -> PageId {
        self.frame.page().unwrap_or_default()
    }

    #[inline]
    fn latch(&self) -> &L {
        &self.frame.latch
    }

    #[inline]
    fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.frame.start, PAGE)
    }

    #[inline]
    fn touched(&self, lsn: Lsn) {
        self.frame.touch(lsn);
    }
}

impl<L: Latch, const PAGE: usize> Drop for PoolPin<'_, L, PAGE> {
    #[inline]
    fn drop(&mut self) {
        self.frame.unpin();
    }
}
