//! What is done after a crash (ARIES: Mohan, Haderle, Lindsay, Pirahesh, Schwarz, TODS 17(1), 1992).
//!
//! Analysis reads the log from the last checkpoint to its end: which pages may lack changes, from where on, and which transactions had
//! not ended. Redo repeats history: each change, also of those transactions, is done again in each page whose number is
//! lower than the record's. Undo then takes back what those transactions did, newest change first among all of them,
//! logically and with compensation records, by the engine, which is whole again by then.
//!
//! All of it may be broken off by another crash at any time, and begun anew: redo writes no records and looks at each page's number;
//! a compensation record is redone and never undone, and names what is to be undone after it.

use std::collections::{BinaryHeap, HashMap};

use super::active::Active;
use super::master::Master;
use super::record::{self, Entry, Head};
use super::segments::Segments;
use super::{Change, Log, Patch, Record, Undo};
use crate::latch::Latch;
use crate::pages::{Pages, Pin, Writable};
use crate::{Error, Lsn, PageId, Result, TxId, btree, heap};

/// The bytes that no record has more of. What says to be longer is none.
pub(super) const LONGEST: usize = 1 << 26;

/// Whoever can undo a change in the engine as it is then.
pub trait Undoer {
    /// Undoes a change of `tx`, whose last record ends at `last`, and logs it as compensation whose next is `next`. What it
    /// logs besides, if anything, is the transaction's too. Gives where the transaction's last record ends afterwards.
    fn undo(&self, tx: TxId, last: Lsn, next: Lsn, undo: Undo<'_>) -> Result<Lsn>;
}

/// What is to be done, as analysis found.
pub struct Recovery {
    reader: Reader,
    redo_from: Lsn,
    end: Lsn,
    /// Where the first change ends that each page may lack.
    dirty: HashMap<PageId, Lsn>,
    losers: Vec<Active>,
    highest: TxId,
    recovered: Recovered,
}

/// How much redo did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redone {
    /// Records read.
    pub records: u64,
    /// Changes done again; a record may have several, in as many pages.
    pub changes: u64,
}

/// What recovery found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// What was done again.
    pub redone: Redone,
    /// Transactions that had not ended, and were undone.
    pub undone: u64,
    /// Those of them of which a part had been undone already: a rollback, or a recovery, was broken off.
    pub halfway: u64,
    /// Whether a checkpoint had begun after the one that recovery began at.
    pub within_checkpoint: bool,
}

/// Reads the log as far as it is whole.
pub(super) fn analyse(segments: Segments, master: &Master) -> Result<Recovery> {
    let mut reader = Reader::new(segments);
    let begin = master.checkpoint;
    let start = reader.segments.start_of(begin)?;
    let mut analysis = Analysis::default();
    let mut at = start;
    let mut epoch = 0;
    let mut is_whole = false;
    while let Some(end) = reader.record_from(at, |end, head, entry| {
        if head.epoch < epoch || head.epoch > master.epoch {
            return Ok(None);
        }
        epoch = head.epoch;
        is_whole |= entry == Entry::CheckpointEnd && head.previous == begin;
        analysis.see(begin, at, end, &head, &entry);
        Ok(Some(end))
    })? {
        at = end;
    }
    if !is_whole {
        let message = format!("the log ends at {}, within its last checkpoint", at.0);
        return Err(Error::Corrupt(None, message));
    }
    let redo_from = match analysis.dirty.values().min() {
        Some(first) => reader.segments.start_of(*first)?,
        None => at,
    };
    let losers = analysis.transactions.into_values().flatten().collect();
    Ok(Recovery {
        reader,
        redo_from,
        end: at,
        dirty: analysis.dirty,
        losers,
        highest: analysis.highest,
        recovered: Recovered {
            within_checkpoint: analysis.within_checkpoint,
            ..Recovered::default()
        },
    })
}

#[derive(Default)]
struct Analysis {
    /// Those seen since the checkpoint or listed there; `None` are those that ended.
    transactions: HashMap<TxId, Option<Active>>,
    dirty: HashMap<PageId, Lsn>,
    highest: TxId,
    within_checkpoint: bool,
}

impl Analysis {
    fn see(&mut self, begin: Lsn, start: Lsn, end: Lsn, head: &Head, entry: &Entry<'_>) {
        self.highest = self.highest.max(head.tx);
        let is_part = head.previous == begin;
        match *entry {
            Entry::Record(record) => {
                if head.tx.0 != 0 {
                    let new = Active {
                        tx: head.tx,
                        first: start,
                        last: end,
                    };
                    let known = self.transactions.entry(head.tx).or_insert(Some(new));
                    if let Some(active) = known {
                        active.last = end;
                    }
                }
                each_page(record.change(), |page| {
                    self.dirty.entry(page).or_insert(end);
                });
            }
            Entry::Commit | Entry::End => {
                self.transactions.insert(head.tx, None);
            }
            Entry::Active(part) if is_part => {
                for listed in record::listed(part).map(Active::from_listed) {
                    // As it was when the checkpoint began; what was seen since is newer.
                    let known = self.transactions.entry(listed.tx).or_insert(Some(listed));
                    if let Some(active) = known {
                        active.first = active.first.min(listed.first);
                    }
                }
            }
            Entry::Dirty(part) if is_part => {
                for [page, lsn, _] in record::listed(part) {
                    let first = self.dirty.entry(PageId(page)).or_insert(Lsn(lsn));
                    *first = Lsn(lsn).min(*first);
                }
            }
            // Those of a checkpoint that was not finished, or whose master record was lost.
            Entry::CheckpointBegin => self.within_checkpoint |= end != begin,
            Entry::Active(_) | Entry::Dirty(_) | Entry::CheckpointEnd => {}
        }
    }
}

impl Recovery {
    /// Where the log ends.
    #[must_use]
    pub const fn end(&self) -> Lsn {
        self.end
    }

    /// The largest id that a transaction had which logged anything: new ones must be larger.
    #[must_use]
    pub const fn highest(&self) -> TxId {
        self.highest
    }

    /// From where on changes are redone.
    #[must_use]
    pub const fn redo_from(&self) -> Lsn {
        self.redo_from
    }

    pub(super) fn losers(&self) -> &[Active] {
        &self.losers
    }

    /// Does again what pages lack. Nothing else may be done with them before.
    pub fn redo<L: Latch, P: Pages<L>>(&mut self, pages: &P) -> Result<()> {
        let mut redone = Redone::default();
        let (dirty, end_of_log) = (&self.dirty, self.end);
        let mut at = self.redo_from;
        while at < end_of_log {
            let end = self.reader.record_from(at, |end, _, entry| {
                if let Entry::Record(record) = entry {
                    let mut result = Ok(());
                    each_page(record.change(), |page| {
                        if result.is_ok() && dirty.get(&page).is_some_and(|first| *first <= end) {
                            result = redo_in(pages, page, record.change(), end, end_of_log)
                                .map(|done| redone.changes += u64::from(done));
                        }
                    });
                    result?;
                }
                redone.records += 1;
                Ok(Some(end))
            })?;
            at = end.ok_or_else(|| damaged(at))?;
        }
        self.recovered.redone = redone;
        Ok(())
    }

    /// Takes back what transactions did that had not ended.
    pub fn undo<L: Latch>(mut self, log: &impl Log<L>, undoer: &impl Undoer) -> Result<Recovered> {
        self.recovered.undone = self.losers.len() as u64;
        // What is to be looked at next, the newest of all first, and the last record of its transaction.
        let mut rest: BinaryHeap<(Lsn, TxId, Lsn)> = (self.losers.iter())
            .map(|loser| (loser.last, loser.tx, loser.last))
            .collect();
        while let Some((at, tx, last)) = rest.pop() {
            let start = self.reader.segments.start_of(at)?;
            let step = self.reader.record_from(start, |end, head, entry| {
                if end != at || head.tx != tx {
                    return Ok(None);
                }
                let step = match entry {
                    Entry::Record(Record::Change(_, undo)) => {
                        let last = undoer.undo(tx, last, head.previous, undo)?;
                        (head.previous, last)
                    }
                    Entry::Record(Record::Compensation(_, next)) => {
                        // After the first there is none: it says what is next.
                        self.recovered.halfway += 1;
                        (next, last)
                    }
                    Entry::Record(Record::Structure(_)) => (head.previous, last),
                    _ => return Ok(None),
                };
                Ok(Some(step))
            })?;
            let (next, last) = step.ok_or_else(|| damaged(start))?;
            if next == Lsn::NONE {
                log.end(tx, last)?;
            } else {
                rest.push((next, tx, last));
            }
        }
        Ok(self.recovered)
    }
}

/// Does a change again in one of its pages, if it lacks it. Says whether it did.
fn redo_in<L: Latch, P: Pages<L>>(
    pages: &P,
    page: PageId,
    change: &Change<'_>,
    end: Lsn,
    end_of_log: Lsn,
) -> Result<bool> {
    let pin = pages.pin(page)?;
    let mut exclusive = pin.exclusive();
    let lsn = exclusive.lsn();
    if lsn > end_of_log {
        let message = format!(
            "it has changes up to {}, and the log ends at {}",
            lsn.0, end_of_log.0
        );
        return Err(Error::Corrupt(Some(page), message));
    }
    if lsn >= end {
        return Ok(false);
    }
    match change {
        Change::Write(patches) => {
            for patch in patches.iter().filter(|patch| patch.page == page) {
                let at = usize::from(patch.offset);
                let place = exclusive.bytes_mut().get_mut(at..at + patch.bytes.len());
                place
                    .ok_or_else(|| Error::Corrupt(Some(page), "a change lies past its end".into()))?
                    .copy_from_slice(patch.bytes);
            }
        }
        Change::HeapInsert { .. }
        | Change::HeapDelete { .. }
        | Change::HeapRestore { .. }
        | Change::HeapReclaim { .. }
        | Change::HeapUpdate { .. }
        | Change::HeapReplace { .. } => heap::redo(&mut exclusive, change)?,
        Change::LeafInsert { .. } | Change::LeafDelete { .. } => {
            btree::redo(&mut exclusive, change)?;
        }
    }
    exclusive.changed(end);
    Ok(true)
}

/// The pages that a change changes, each once.
fn each_page(change: &Change<'_>, mut with: impl FnMut(PageId)) {
    match *change {
        Change::Write(patches) => {
            for (at, patch) in patches.iter().enumerate() {
                if patches[..at].iter().all(|before| before.page != patch.page) {
                    with(patch.page);
                }
            }
        }
        Change::HeapInsert { rid, .. }
        | Change::HeapDelete { rid }
        | Change::HeapRestore { rid }
        | Change::HeapUpdate { rid, .. }
        | Change::HeapReplace { rid, .. } => with(rid.page()),
        Change::HeapReclaim { page }
        | Change::LeafInsert { page, .. }
        | Change::LeafDelete { page, .. } => with(page),
    }
}

fn damaged(at: Lsn) -> Error {
    Error::Corrupt(None, format!("the log is damaged at {}", at.0))
}

/// Reads records, a window of the log at a time.
pub(super) struct Reader {
    segments: Segments,
    window: Vec<u8>,
    window_at: u64,
}

const WINDOW: usize = 1 << 18;

impl Reader {
    pub const fn new(segments: Segments) -> Self {
        Self {
            segments,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// Shows the record that begins at `start`: where it ends, whose it is, what it is. `None` where there is none.
    pub fn record_from<R>(
        &mut self,
        start: Lsn,
        show: impl FnOnce(Lsn, Head, Entry<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let most = (self.segments.end().saturating_sub(start.0)).min(LONGEST as u64);
        let Some(length) = record::length_at(self.bytes(start, record::LEAST)?) else {
            return Ok(None);
        };
        if length as u64 > most {
            return Ok(None);
        }
        let mut patches: Vec<Patch<'_>> = Vec::new();
        match record::decode(self.bytes(start, length)?, start, &mut patches) {
            Some((head, entry)) => show(Lsn(start.0 + length as u64), head, entry),
            None => Ok(None),
        }
    }

    /// So many bytes of the log.
    fn bytes(&mut self, at: Lsn, length: usize) -> Result<&[u8]> {
        let window_end = self.window_at + self.window.len() as u64;
        if at.0 < self.window_at || at.0 + length as u64 > window_end {
            // Half of it lies before, since records are read backwards too.
            self.window_at = at.0.saturating_sub(WINDOW as u64 / 2);
            let ahead = at.0 - self.window_at;
            let ahead = usize::try_from(ahead).unwrap_or(WINDOW);
            self.window.resize(ahead + length.max(WINDOW / 2), 0);
            self.segments.read(self.window_at, &mut self.window)?;
        }
        let from = usize::try_from(at.0 - self.window_at).unwrap_or(usize::MAX);
        Ok(&self.window[from..from + length])
    }
}
