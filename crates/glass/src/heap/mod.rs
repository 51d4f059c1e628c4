//! Heaps: the records of tables, in slotted pages.
//!
//! A record stays where it was created for as long as it lives, so that indexes and locks can call it by that place.
//! One that outgrows its page leaves a stub there, which leads to where it is; nothing else leads there. All that the log
//! and undoing know of is slots: a record that moves is a slot filled elsewhere and a slot replaced by a stub.
//!
//! What a transaction deletes stays as a ghost, with its space, until the transaction has ended, so that undoing always
//! finds room. Then the page's ghosts are reclaimed, all at once, by whoever needs the space: a page knows the newest
//! transaction that deleted something of it, and when that is older than all under way, no ghost is needed any more.
//!
//! The pages of a heap are chained: its first, which never changes, then the newest, back to the oldest. Records are
//! put into one page, the hint, until it is full; then into one that has ghosts to reclaim, then into one that was there when the engine
//! was opened and has room, else into a new one. Which pages have ghosts is known in memory alone, so after the engine was opened
//! anew the chain is gone through once, a few pages whenever room is wanted: what it costs is spread, and no heap grows
//! by being opened.
//!
//! Latches: the list of pages with ghosts comes before pages; of pages, two are latched at once only when a new one, which
//! nobody else knows, is put behind the first.
#![expect(
    clippy::cast_possible_truncation,
    reason = "nothing in a page is further than 64 KiB from its beginning"
)]

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::chain::Chain;
use crate::latch::{Guarded, Latch};
use crate::log::{Change, Kind, Log, Patch, Undo};
use crate::pages::{Page, PageKind, Pages, Pin, Writable};
use crate::{Error, PageId, Result, Rid, TableId, TxId};

mod slotted;
#[cfg(test)]
mod tests;

pub use slotted::redo;

/// How many pages with ghosts are looked at before a new page is taken.
const LOOKS: usize = 4;

/// And how many of those that were there when the engine was opened.
const LOOKS_BACK: usize = 32;

/// The records of a table.
pub struct Heap<L: Latch> {
    table: TableId,
    first: PageId,
    /// The oldest transaction there can have been since the engine was opened: pages whose ghosts are older are not in
    /// the list.
    epoch: TxId,
    /// The page where the next record is put, unless it is full.
    hint: AtomicU64,
    room: Guarded<L, Room>,
}

/// Where there may be room.
struct Room {
    /// Pages with ghosts, each once, but for ghosts of before the engine was opened.
    ghosts: VecDeque<PageId>,
    /// Of the chain, the page that is to be looked at next; those before were looked at since the engine was opened.
    unseen: PageId,
}

/// Where a heap's pages come from and its changes go to.
pub(crate) struct Below<'a, P, G> {
    pub pages: &'a P,
    pub log: &'a G,
}

impl<P, G> Clone for Below<'_, P, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, G> Copy for Below<'_, P, G> {}

fn corrupt(page: &Page, what: &str) -> Error {
    Error::Corrupt(Some(page.id()), format!("{what} (as a page of a heap)"))
}

fn gone(page: &Page, slot: u16) -> Error {
    corrupt(
        page,
        &format!("has no record in slot {slot}, which is asked for"),
    )
}

impl<L: Latch> Heap<L> {
    /// That of a table, which begins with that page.
    pub(crate) fn new(table: TableId, first: PageId, epoch: TxId) -> Self {
        Self {
            table,
            first,
            epoch,
            hint: AtomicU64::new(PageId::NONE.0),
            room: Guarded::new(Room {
                ghosts: VecDeque::new(),
                unseen: first,
            }),
        }
    }

    /// The first page of a new heap.
    pub(crate) fn make<P: Pages<L>, G: Log<L>>(
        below: Below<'_, P, G>,
        table: TableId,
        chain: &mut impl Chain,
    ) -> Result<PageId> {
        let pin = below.pages.allocate(PageKind::Heap, below.log)?;
        let id = pin.id();
        let mut page = pin.exclusive();
        let patch = Patch {
            page: id,
            offset: slotted::TABLE as u16,
            bytes: &table.0.to_le_bytes(),
        };
        let lsn = chain.structure(Change::Write(&[patch]))?;
        slotted::set_table(&mut page, table);
        page.changed(lsn);
        Ok(id)
    }

    /// Puts a record somewhere. `oldest` is at most the oldest transaction under way, and `grant` says whether the place can
    /// be had: a record that was there may still be locked by who waited for it.
    pub(crate) fn create<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        oldest: impl Fn() -> TxId,
        record: &[u8],
        grant: impl FnMut(Rid) -> bool,
    ) -> Result<Rid> {
        self.put(below, chain, &oldest, Kind::Record, record, grant)
    }

    fn put<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        oldest: &impl Fn() -> TxId,
        kind: Kind,
        record: &[u8],
        mut grant: impl FnMut(Rid) -> bool,
    ) -> Result<Rid> {
        let mut full = PageId(self.hint.load(Ordering::Relaxed));
        if full == PageId::NONE {
            full = self.first_hint(below)?;
        }
        loop {
            let pin = below.pages.pin(full)?;
            let mut page = pin.exclusive();
            let longest = slotted::longest(page.bytes().len());
            if record.len() > longest {
                return Err(Error::Refused(format!(
                    "a record of {} bytes: pages have room for {longest}",
                    record.len()
                )));
            }
            let found =
                slotted::candidates(&page, record.len()).find(|&slot| grant(Rid::new(full, slot)));
            if let Some(slot) = found {
                let rid = Rid::new(full, slot);
                let lsn = chain.change(
                    Change::HeapInsert { rid, kind, record },
                    Undo::HeapDelete(rid),
                )?;
                slotted::insert(&mut page, slot, kind, record)?;
                page.changed(lsn);
                return Ok(rid);
            }
            drop(page);
            full = self.next_hint(below, chain, oldest, full, record.len())?;
        }
    }

    /// The newest page; the first where there is no other.
    fn first_hint<P: Pages<L>, G: Log<L>>(&self, below: Below<'_, P, G>) -> Result<PageId> {
        let pin = below.pages.pin(self.first)?;
        let next = slotted::next(&pin.shared());
        let hint = if next == PageId::NONE {
            self.first
        } else {
            next
        };
        self.hint.store(hint.0, Ordering::Relaxed);
        Ok(hint)
    }

    /// Another page than `full` to put records into, which is no use any more; the next is of that length.
    #[cold]
    fn next_hint<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        oldest: &impl Fn() -> TxId,
        full: PageId,
        length: usize,
    ) -> Result<PageId> {
        let mut room = self.room.exclusive();
        let hint = PageId(self.hint.load(Ordering::Relaxed));
        if hint != full {
            // Somebody else has found one meanwhile.
            return Ok(hint);
        }
        let oldest = oldest();
        for _ in 0..room.ghosts.len().min(LOOKS) {
            let Some(id) = room.ghosts.pop_front() else {
                break;
            };
            let pin = below.pages.pin(id)?;
            let mut page = pin.exclusive();
            if slotted::deleter(&page) < oldest {
                reclaim(&mut page, chain)?;
                self.hint.store(id.0, Ordering::Relaxed);
                return Ok(id);
            }
            room.ghosts.push_back(id);
        }
        for _ in 0..LOOKS_BACK {
            let id = room.unseen;
            if id == PageId::NONE {
                break;
            }
            let pin = below.pages.pin(id)?;
            let mut page = pin.exclusive();
            room.unseen = slotted::next(&page);
            let deleter = slotted::deleter(&page);
            let has_old_ghosts = deleter != TxId(0)
                && deleter < oldest
                && (deleter < self.epoch || !room.ghosts.contains(&id));
            if has_old_ghosts {
                reclaim(&mut page, chain)?;
            }
            if id != full && slotted::candidates(&page, length).next().is_some() {
                self.hint.store(id.0, Ordering::Relaxed);
                return Ok(id);
            }
        }
        let id = self.extend(below, chain)?;
        self.hint.store(id.0, Ordering::Relaxed);
        Ok(id)
    }

    /// Puts a new page behind the first.
    fn extend<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
    ) -> Result<PageId> {
        let new = below.pages.allocate(PageKind::Heap, below.log)?;
        let first = below.pages.pin(self.first)?;
        let mut first = first.exclusive();
        let mut page = new.exclusive();
        let next = slotted::next(&first);
        let lsn = chain.structure(Change::Write(&[
            Patch {
                page: new.id(),
                offset: slotted::NEXT as u16,
                bytes: &next.0.to_le_bytes(),
            },
            Patch {
                page: new.id(),
                offset: slotted::TABLE as u16,
                bytes: &self.table.0.to_le_bytes(),
            },
            Patch {
                page: self.first,
                offset: slotted::NEXT as u16,
                bytes: &new.id().0.to_le_bytes(),
            },
        ]))?;
        slotted::set_next(&mut page, next);
        slotted::set_table(&mut page, self.table);
        page.changed(lsn);
        slotted::set_next(&mut first, new.id());
        first.changed(lsn);
        Ok(new.id())
    }

    /// Deletes a record, which the caller has locked.
    pub(crate) fn delete<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        rid: Rid,
    ) -> Result<()> {
        let moved = {
            let pin = below.pages.pin_of_record(rid.page())?;
            let page = pin.shared();
            match slotted::get(&page, rid.slot()) {
                Some((Kind::Stub, target)) => Some(target_of(&page, target)?),
                _ => None,
            }
        };
        if let Some(target) = moved {
            self.vacate(below, chain, target)?;
        }
        self.vacate(below, chain, rid)
    }

    /// Makes what is in a slot a ghost.
    fn vacate<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        rid: Rid,
    ) -> Result<()> {
        let pin = below.pages.pin(rid.page())?;
        let mut page = pin.exclusive();
        if slotted::get(&page, rid.slot()).is_none() {
            return Err(gone(&page, rid.slot()));
        }
        let lsn = chain.change(Change::HeapDelete { rid }, Undo::HeapRestore(rid))?;
        let before = slotted::deleter(&page);
        slotted::delete(&mut page, rid.slot(), chain.id())?;
        page.changed(lsn);
        drop(page);
        self.note(rid.page(), before);
        Ok(())
    }

    /// A page has a ghost more; the newest before was of that transaction.
    pub(crate) fn note(&self, page: PageId, before: TxId) {
        if before < self.epoch {
            self.room.exclusive().ghosts.push_back(page);
        }
    }

    /// Replaces a whole record, which the caller has locked and pinned.
    pub(crate) fn replace<P: Pages<L>, G: Log<L>>(
        &self,
        below: Below<'_, P, G>,
        chain: &mut impl Chain,
        oldest: impl Fn() -> TxId,
        pin: &impl Pin,
        rid: Rid,
        record: &[u8],
    ) -> Result<()> {
        let target = {
            let mut page = pin.exclusive();
            let Some((kind, before)) = slotted::get(&page, rid.slot()) else {
                return Err(gone(&page, rid.slot()));
            };
            let target = match kind {
                Kind::Stub => Some(target_of(&page, before)?),
                _ => None,
            };
            if target.is_none() && slotted::can_hold(&page, rid.slot(), record.len()) {
                return refill(&mut page, chain, rid, Kind::Record, record);
            }
            target
        };
        if let Some(target) = target {
            let pin = below.pages.pin(target.page())?;
            let mut page = pin.exclusive();
            if slotted::can_hold(&page, target.slot(), record.len()) {
                return refill(&mut page, chain, target, Kind::Moved, record);
            }
        }
        // Nobody looks at the new place before the stub leads there, nor at the old one afterwards.
        let moved = self.put(below, chain, &oldest, Kind::Moved, record, |_| true)?;
        refill(
            &mut pin.exclusive(),
            chain,
            rid,
            Kind::Stub,
            &moved.bits().to_le_bytes(),
        )?;
        target.map_or(Ok(()), |target| self.vacate(below, chain, target))
    }
}

/// Makes room of a page's ghosts.
fn reclaim(page: &mut impl Writable, chain: &mut impl Chain) -> Result<()> {
    let lsn = chain.structure(Change::HeapReclaim { page: page.id() })?;
    slotted::reclaim(page);
    page.changed(lsn);
    Ok(())
}

/// Shows a record whose page is pinned.
#[inline]
pub(crate) fn read<L: Latch, P: Pages<L>, R>(
    pages: &P,
    pin: &impl Pin,
    rid: Rid,
    with: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let target = {
        let page = pin.shared();
        match slotted::get(&page, rid.slot()) {
            Some((Kind::Stub, target)) => target_of(&page, target)?,
            Some((_, record)) => return Ok(with(record)),
            None => return Err(gone(&page, rid.slot())),
        }
    };
    let pin = pages.pin(target.page())?;
    let page = pin.shared();
    match slotted::get(&page, target.slot()) {
        Some((Kind::Moved, record)) => Ok(with(record)),
        _ => Err(gone(&page, target.slot())),
    }
}

/// Replaces bytes of a record, which the caller has locked and pinned.
#[inline]
pub(crate) fn update<L: Latch, P: Pages<L>>(
    pages: &P,
    chain: &mut impl Chain,
    pin: &impl Pin,
    rid: Rid,
    offset: usize,
    after: &[u8],
) -> Result<()> {
    let target = {
        let mut page = pin.exclusive();
        match slotted::get(&page, rid.slot()) {
            Some((Kind::Stub, target)) => target_of(&page, target)?,
            _ => return overwrite(&mut page, chain, rid, offset, after),
        }
    };
    overwrite(
        &mut pages.pin(target.page())?.exclusive(),
        chain,
        target,
        offset,
        after,
    )
}

#[inline]
fn overwrite(
    page: &mut impl Writable,
    chain: &mut impl Chain,
    rid: Rid,
    offset: usize,
    after: &[u8],
) -> Result<()> {
    let Some((_, record)) = slotted::get(page, rid.slot()) else {
        return Err(gone(page, rid.slot()));
    };
    let Some(before) = record.get(offset..offset + after.len()) else {
        return Err(Error::Refused(format!(
            "bytes {offset} to {} of a record of {}",
            offset + after.len(),
            record.len()
        )));
    };
    let offset = offset as u16;
    let lsn = chain.change(
        Change::HeapUpdate { rid, offset, after },
        Undo::HeapUpdate {
            rid,
            offset,
            before,
        },
    )?;
    slotted::update(page, rid.slot(), usize::from(offset), after)?;
    page.changed(lsn);
    Ok(())
}

/// Replaces what is in a slot, for which there is room.
fn refill(
    page: &mut impl Writable,
    chain: &mut impl Chain,
    rid: Rid,
    kind: Kind,
    after: &[u8],
) -> Result<()> {
    let Some((was, before)) = slotted::get(page, rid.slot()) else {
        return Err(gone(page, rid.slot()));
    };
    let undo = Undo::HeapReplace {
        rid,
        kind: was,
        before,
    };
    let lsn = chain.change(Change::HeapReplace { rid, kind, after }, undo)?;
    slotted::replace(page, rid.slot(), kind, after)?;
    page.changed(lsn);
    Ok(())
}

/// What undoing left for the heap to know: a page of a table has a ghost more, and the newest before was of that transaction.
pub(crate) struct Ghost {
    pub table: TableId,
    pub page: PageId,
    pub before: TxId,
}

/// Undoes what a transaction did to a slot. All that has to be room for is still held by the slot.
pub(crate) fn undo<L: Latch, P: Pages<L>>(
    pages: &P,
    chain: &mut impl Chain,
    undo: Undo<'_>,
) -> Result<Option<Ghost>> {
    let (rid, change) = match undo {
        Undo::HeapDelete(rid) => (rid, Change::HeapDelete { rid }),
        Undo::HeapRestore(rid) => (rid, Change::HeapRestore { rid }),
        Undo::HeapUpdate {
            rid,
            offset,
            before,
        } => (
            rid,
            Change::HeapUpdate {
                rid,
                offset,
                after: before,
            },
        ),
        Undo::HeapReplace { rid, kind, before } => (
            rid,
            Change::HeapReplace {
                rid,
                kind,
                after: before,
            },
        ),
        Undo::IndexDelete { .. } | Undo::IndexInsert { .. } => {
            return Err(Error::Corrupt(
                None,
                "a change of an index is undone as one of a heap".into(),
            ));
        }
    };
    let pin = pages.pin(rid.page())?;
    let mut page = pin.exclusive();
    let before = slotted::deleter(&page);
    let lsn = chain.change(change, undo)?;
    slotted::redo(&mut page, &change)?;
    let mut ghost = None;
    if let Undo::HeapDelete(_) = undo {
        slotted::by(&mut page, chain.id());
        ghost = Some(Ghost {
            table: slotted::table(&page),
            page: rid.page(),
            before,
        });
    }
    page.changed(lsn);
    Ok(ghost)
}

/// Where a stub leads.
fn target_of(page: &Page, stub: &[u8]) -> Result<Rid> {
    let bytes = stub
        .try_into()
        .map_err(|_| corrupt(page, "has a stub that leads nowhere"))?;
    Ok(Rid::from_bits(u64::from_le_bytes(bytes)))
}

/// What a heap was found to have.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Its pages.
    pub pages: BTreeSet<PageId>,
    /// Its records, by where they were created, sorted by that.
    pub records: Vec<Rid>,
}

impl<L: Latch> Heap<L> {
    /// Visits all records, in no order. Nobody changes any meanwhile.
    pub(crate) fn each<P: Pages<L>>(
        &self,
        pages: &P,
        mut with: impl FnMut(Rid, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for rid in self.verify(pages)?.records {
            let pin = pages.pin(rid.page())?;
            read(pages, &pin, rid, |record| with(rid, record))??;
        }
        Ok(())
    }

    /// Looks at every invariant. Nobody changes anything meanwhile.
    pub(crate) fn verify<P: Pages<L>>(&self, pages: &P) -> Result<Found> {
        let mut found = Found::default();
        let mut stubs = Vec::new();
        let mut moved = Vec::new();
        let mut id = self.first;
        while id != PageId::NONE {
            let pin = pages.pin(id)?;
            let page = pin.shared();
            if page.kind() != PageKind::Heap
                || page.id() != id
                || slotted::table(&page) != self.table
            {
                return Err(corrupt(&page, "is not of this table"));
            }
            slotted::verify(&page)?;
            if !found.pages.insert(id) {
                return Err(corrupt(&page, "is one of a chain that does not end"));
            }
            for slot in 0..slotted::slots(&page) {
                let rid = Rid::new(id, slot);
                match slotted::get(&page, slot) {
                    Some((Kind::Record, _)) => found.records.push(rid),
                    Some((Kind::Moved, _)) => moved.push(rid),
                    Some((Kind::Stub, target)) => {
                        found.records.push(rid);
                        stubs.push(target_of(&page, target)?);
                    }
                    None => {}
                }
            }
            id = slotted::next(&page);
        }
        stubs.sort_unstable();
        moved.sort_unstable();
        if stubs != moved {
            return Err(Error::Corrupt(
                Some(self.first),
                format!(
                    "table {}: stubs and the records that they lead to differ",
                    self.table.0
                ),
            ));
        }
        found.records.sort_unstable();
        Ok(found)
    }
}
