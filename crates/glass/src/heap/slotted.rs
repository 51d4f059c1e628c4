//! Slotted pages: a directory of slots grows from the page's end, the records from its beginning.
//!
//! All numbers are little endian. After the page's header: the next page of the heap (8), the newest transaction that
//! deleted something here (8; 0 where there is no ghost), the table (2), how many slots there are (2), how far records
//! reach (2), how much of that is held by slots (2), the least slot that may be vacant (2), and 6 unused. A slot: where
//! its bytes begin (2), how many it holds (2), how many are used (2), what they are (2).
//!
//! Invariants:
//! - What slots hold lies between the header and the directory and does not overlap.
//! - A slot that is not vacant holds [`LEAST`] bytes at least and never gives any back, so a record that is made shorter can
//!   be made as long again, and any record can become a stub.
//! - A ghost keeps its bytes until the page is told to reclaim.
//! - Whether a change fits depends on what slots hold, not on where: pages are compacted when it helps, and nothing is
//!   logged of it. So a change that fitted fits when it is done again.
#![expect(
    clippy::cast_possible_truncation,
    reason = "nothing in a page is further than 64 KiB from its beginning"
)]

use crate::heap::corrupt;
use crate::log::{Change, Kind};
use crate::pages::{HEADER, Page};
use crate::{PageId, Result, TableId, TxId};

pub(super) const NEXT: usize = HEADER;
const DELETER: usize = HEADER + 8;
pub(super) const TABLE: usize = HEADER + 16;
const SLOTS: usize = HEADER + 18;
const REACH: usize = HEADER + 20;
const HELD: usize = HEADER + 22;
const LOWEST: usize = HEADER + 24;
const RECORDS: usize = HEADER + 32;

/// Of a slot, in bytes.
const SLOT: usize = 8;

/// What a slot holds at least: room for a stub.
const LEAST: usize = 8;

/// Set in the state of a slot whose record is deleted.
const GHOST: u16 = 0x80;

/// A slot, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    at: u16,
    holds: u16,
    length: u16,
    state: u16,
}

impl Slot {
    const VACANT: Self = Self {
        at: 0,
        holds: 0,
        length: 0,
        state: 0,
    };

    const fn vacant(self) -> bool {
        self.state == 0
    }

    const fn kind(self) -> Option<Kind> {
        match self.state {
            1 => Some(Kind::Record),
            2 => Some(Kind::Stub),
            3 => Some(Kind::Moved),
            _ => None,
        }
    }
}

/// The longest record for which a page of that size has room.
pub(super) const fn longest(page: usize) -> usize {
    page - RECORDS - SLOT
}

/// What a record of that length makes its slot hold.
const fn need(length: usize) -> usize {
    if length < LEAST { LEAST } else { length }
}

fn u16_at(page: &Page, at: usize) -> u16 {
    let bytes = page.bytes();
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(page: &Page, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page.bytes()[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn set_u16(page: &mut Page, at: usize, value: usize) {
    debug_assert!(u16::try_from(value).is_ok());
    page.bytes_mut()[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

/// The next page of the heap.
pub(super) fn next(page: &Page) -> PageId {
    PageId(u64_at(page, NEXT))
}

pub(super) fn set_next(page: &mut Page, next: PageId) {
    page.bytes_mut()[NEXT..NEXT + 8].copy_from_slice(&next.0.to_le_bytes());
}

pub(super) fn set_table(page: &mut Page, table: TableId) {
    page.bytes_mut()[TABLE..TABLE + 2].copy_from_slice(&table.0.to_le_bytes());
}

/// Whose records these are.
pub(crate) fn table(page: &Page) -> TableId {
    TableId(u16_at(page, TABLE))
}

/// The newest transaction that deleted something whose space has not been reclaimed; 0 where there is none.
pub(super) fn deleter(page: &Page) -> TxId {
    TxId(u64_at(page, DELETER))
}

/// Makes that transaction the newest that deleted something, unless it is older than the newest.
pub(super) fn by(page: &mut Page, tx: TxId) {
    set_deleter(page, deleter(page).max(tx).max(TxId(1)));
}

fn set_deleter(page: &mut Page, tx: TxId) {
    page.bytes_mut()[DELETER..DELETER + 8].copy_from_slice(&tx.0.to_le_bytes());
}

/// How many slots there are, vacant ones and ghosts included.
pub(super) fn slots(page: &Page) -> u16 {
    u16_at(page, SLOTS)
}

fn slot(page: &Page, slot: u16) -> Slot {
    if slot >= slots(page) {
        return Slot::VACANT;
    }
    let at = page.bytes().len() - SLOT * (usize::from(slot) + 1);
    let bits = u64_at(page, at);
    Slot {
        at: bits as u16,
        holds: (bits >> 16) as u16,
        length: (bits >> 32) as u16,
        state: (bits >> 48) as u16,
    }
}

fn set_slot(page: &mut Page, slot: u16, value: Slot) {
    let bits = u64::from(value.at)
        | u64::from(value.holds) << 16
        | u64::from(value.length) << 32
        | u64::from(value.state) << 48;
    let at = page.bytes().len() - SLOT * (usize::from(slot) + 1);
    page.bytes_mut()[at..at + 8].copy_from_slice(&bits.to_le_bytes());
}

/// What is in a slot; `None` where it is vacant or a ghost.
#[inline]
pub(super) fn get(page: &Page, number: u16) -> Option<(Kind, &[u8])> {
    let slot = slot(page, number);
    let kind = slot.kind()?;
    let at = usize::from(slot.at);
    Some((kind, &page.bytes()[at..at + usize::from(slot.length)]))
}

/// How many bytes are free, wherever.
fn room(page: &Page) -> usize {
    page.bytes().len() - RECORDS - SLOT * usize::from(slots(page)) - usize::from(u16_at(page, HELD))
}

/// The vacant slots in which a record of that length fits, at last one that is not there yet.
pub(super) fn candidates(page: &Page, length: usize) -> impl Iterator<Item = u16> + '_ {
    let room = room(page);
    let there = slots(page);
    let vacant = if room >= need(length) {
        u16_at(page, LOWEST)
    } else {
        there
    };
    (vacant..there)
        .filter(|&number| slot(page, number).vacant())
        .chain((room >= need(length) + SLOT).then_some(there))
}

/// Whether what is in a slot can be replaced by as many bytes.
pub(super) fn can_hold(page: &Page, number: u16, length: usize) -> bool {
    let slot = slot(page, number);
    length <= usize::from(slot.holds) || need(length) <= room(page) + usize::from(slot.holds)
}

/// Does what the log says to the page it says it of, for the first time or again.
pub fn redo(page: &mut Page, change: &Change<'_>) -> Result<()> {
    match *change {
        Change::HeapInsert { rid, kind, record } => insert(page, rid.slot(), kind, record),
        Change::HeapDelete { rid } => delete(page, rid.slot(), TxId(1)),
        Change::HeapRestore { rid } => restore(page, rid.slot()),
        Change::HeapReclaim { .. } => {
            reclaim(page);
            Ok(())
        }
        Change::HeapUpdate { rid, offset, after } => {
            update(page, rid.slot(), usize::from(offset), after)
        }
        Change::HeapReplace { rid, kind, after } => replace(page, rid.slot(), kind, after),
        _ => Err(corrupt(page, "is changed as one of a heap")),
    }
}

/// Puts a record into a vacant slot.
#[inline]
pub(super) fn insert(page: &mut Page, number: u16, kind: Kind, record: &[u8]) -> Result<()> {
    let there = slots(page);
    let new = SLOT * (usize::from(number) + 1).saturating_sub(usize::from(there));
    let holds = need(record.len());
    if !slot(page, number).vacant() || holds + new > room(page) {
        return Err(corrupt(page, "has no room for a record that it must have"));
    }
    let at = if holds + new <= gap(page) {
        RECORDS + usize::from(u16_at(page, REACH))
    } else {
        compact(page, None)
    };
    if new > 0 {
        for between in there..number {
            set_slot(page, between, Slot::VACANT);
        }
        set_u16(page, SLOTS, usize::from(number) + 1);
    }
    put(page, number, at, holds, kind, record);
    if u16_at(page, LOWEST) == number {
        set_u16(page, LOWEST, usize::from(number) + 1);
    }
    Ok(())
}

/// Makes a record a ghost of that transaction, which is 1 where the log says so.
pub(super) fn delete(page: &mut Page, number: u16, tx: TxId) -> Result<()> {
    let mut slot = slot(page, number);
    if slot.kind().is_none() {
        return Err(corrupt(page, "has no record that is to be deleted"));
    }
    slot.state |= GHOST;
    set_slot(page, number, slot);
    by(page, tx);
    Ok(())
}

/// Makes a ghost the record that it was.
fn restore(page: &mut Page, number: u16) -> Result<()> {
    let mut slot = slot(page, number);
    if slot.state & GHOST == 0 {
        return Err(corrupt(page, "has no ghost that is to be a record again"));
    }
    slot.state &= !GHOST;
    set_slot(page, number, slot);
    Ok(())
}

/// Makes the slots of ghosts vacant.
pub(super) fn reclaim(page: &mut Page) {
    let mut held = usize::from(u16_at(page, HELD));
    let mut lowest = u16_at(page, LOWEST);
    for number in 0..slots(page) {
        let ghost = slot(page, number);
        if ghost.state & GHOST != 0 {
            held -= usize::from(ghost.holds);
            lowest = lowest.min(number);
            set_slot(page, number, Slot::VACANT);
        }
    }
    set_u16(page, HELD, held);
    set_u16(page, LOWEST, usize::from(lowest));
    set_deleter(page, TxId(0));
}

/// Replaces bytes of a record.
#[inline]
pub(super) fn update(page: &mut Page, number: u16, offset: usize, after: &[u8]) -> Result<()> {
    let slot = slot(page, number);
    if slot.kind().is_none() || offset + after.len() > usize::from(slot.length) {
        return Err(corrupt(page, "has no bytes that are to be changed"));
    }
    let at = usize::from(slot.at) + offset;
    page.bytes_mut()[at..at + after.len()].copy_from_slice(after);
    Ok(())
}

/// Replaces what is in a slot.
pub(super) fn replace(page: &mut Page, number: u16, kind: Kind, after: &[u8]) -> Result<()> {
    let slot = slot(page, number);
    if slot.kind().is_none() || !can_hold(page, number, after.len()) {
        return Err(corrupt(page, "has no room for what a record becomes"));
    }
    let held = usize::from(slot.holds);
    if after.len() <= held {
        put_in(page, number, slot, kind, after);
        return Ok(());
    }
    let holds = need(after.len());
    let at = if holds <= gap(page) {
        RECORDS + usize::from(u16_at(page, REACH))
    } else {
        compact(page, Some(number))
    };
    set_u16(page, HELD, usize::from(u16_at(page, HELD)) - held);
    put(page, number, at, holds, kind, after);
    Ok(())
}

/// Bytes between the records and the directory.
fn gap(page: &Page) -> usize {
    page.bytes().len()
        - SLOT * usize::from(slots(page))
        - RECORDS
        - usize::from(u16_at(page, REACH))
}

/// Writes a record at the end of the others, and its slot.
#[inline]
fn put(page: &mut Page, number: u16, at: usize, holds: usize, kind: Kind, record: &[u8]) {
    let slot = Slot {
        at: at as u16,
        holds: holds as u16,
        length: 0,
        state: 0,
    };
    put_in(page, number, slot, kind, record);
    set_u16(page, REACH, at + holds - RECORDS);
    set_u16(page, HELD, usize::from(u16_at(page, HELD)) + holds);
}

/// Writes a record where its slot is.
#[inline]
fn put_in(page: &mut Page, number: u16, slot: Slot, kind: Kind, record: &[u8]) {
    let at = usize::from(slot.at);
    page.bytes_mut()[at..at + record.len()].copy_from_slice(record);
    set_slot(
        page,
        number,
        Slot {
            length: record.len() as u16,
            state: kind as u16,
            ..slot
        },
    );
}

/// Moves all that slots hold to the front, without gaps, but for what slot `without` holds. Gives where they end.
#[cold]
pub(super) fn compact(page: &mut Page, without: Option<u16>) -> usize {
    let before = page.bytes().to_vec();
    let mut at = RECORDS;
    for number in 0..slots(page) {
        let slot = slot(page, number);
        if slot.vacant() || without == Some(number) {
            continue;
        }
        let from = usize::from(slot.at);
        let holds = usize::from(slot.holds);
        page.bytes_mut()[at..at + holds].copy_from_slice(&before[from..from + holds]);
        set_slot(
            page,
            number,
            Slot {
                at: at as u16,
                ..slot
            },
        );
        at += holds;
    }
    set_u16(page, REACH, at - RECORDS);
    at
}

/// Looks at every invariant of a page.
pub(super) fn verify(page: &Page) -> Result<()> {
    let end = page.bytes().len() - SLOT * usize::from(slots(page));
    let reach = RECORDS + usize::from(u16_at(page, REACH));
    if reach > end {
        return Err(corrupt(page, "has records in its directory"));
    }
    let mut spans = Vec::new();
    let mut ghosts = false;
    for number in 0..slots(page) {
        let slot = slot(page, number);
        if slot.vacant() {
            if number < u16_at(page, LOWEST) {
                return Err(corrupt(page, "has a vacant slot that nobody would find"));
            }
            continue;
        }
        ghosts |= slot.state & GHOST != 0;
        let state = Slot {
            state: slot.state & !GHOST,
            ..slot
        };
        if state.kind().is_none() || slot.length > slot.holds || usize::from(slot.holds) < LEAST {
            return Err(corrupt(page, "has a slot that is none"));
        }
        spans.push((usize::from(slot.at), usize::from(slot.holds)));
    }
    if ghosts && deleter(page) == TxId(0) {
        return Err(corrupt(page, "has ghosts of nobody"));
    }
    if spans.iter().map(|span| span.1).sum::<usize>() != usize::from(u16_at(page, HELD)) {
        return Err(corrupt(page, "counts wrongly what its slots hold"));
    }
    spans.sort_unstable();
    let mut free = RECORDS;
    for (at, holds) in spans {
        if at < free || at + holds > reach {
            return Err(corrupt(page, "has records that overlap"));
        }
        free = at + holds;
    }
    Ok(())
}
