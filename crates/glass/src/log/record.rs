//! How records are laid out in the log.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of all of it |
//! | 4 | checksum: CRC-32C of where in the log the record begins (8 bytes) and of all that follows |
//! | 4 | epoch: how often the log had been opened when it was written |
//! | 1 | kind |
//! | 8 | transaction |
//! | 8 | where the transaction's record before it ends |
//! | .. | body |
//! | 4 | length again, to find its beginning from its end |
//!
//! Numbers are little endian. A record is known by where it ends, so that one number says both which pages have it and how far
//! the log must be on disk. The log ends where no record fits: its checksum holds its place, so what is left of other
//! places is none, and its epoch is at least that of the record before, so what is left behind an end that was found once is
//! none either, however well the records after that end are aligned with it.

use super::{Change, Kind, Patch, Record, Undo};
use crate::{IndexId, Lsn, PageId, Rid, TxId};

/// The bytes before the body.
const HEADER: usize = 29;
/// The bytes after it.
pub(super) const TRAILER: usize = 4;
/// The fewest that a record has.
pub(super) const LEAST: usize = HEADER + TRAILER;

/// What is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// What a transaction did.
    Record(Record<'a>),
    /// It ended well.
    Commit,
    /// It has been undone.
    End,
    /// A checkpoint begins. Its transaction is the largest that the log has had so far.
    CheckpointBegin,
    /// A part of the list of transactions that were under way when the checkpoint began: [`Listed`] each.
    Active(&'a [u8]),
    /// A part of the list of pages that were changed in memory at some time since the checkpoint began.
    Dirty(&'a [u8]),
    /// A checkpoint ends, which began at its `previous`.
    CheckpointEnd,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// How often the log had been opened.
    pub epoch: u32,
    /// Whose it is; 0 is nobody's.
    pub tx: TxId,
    /// Where the record before it of the same transaction ends.
    pub previous: Lsn,
}

/// An element of a checkpoint's lists: three numbers.
pub(super) type Listed = [u64; 3];

/// The bytes of an element.
pub(super) const LISTED: usize = 24;

/// The elements of a part of a list.
pub(super) fn listed(part: &[u8]) -> impl Iterator<Item = Listed> {
    part.chunks_exact(LISTED).map(|element| {
        let mut input = Input(element);
        [(); 3].map(|()| input.u64().unwrap_or_default())
    })
}

/// Bytes of the record that holds `entry`.
#[inline]
pub(super) fn length(entry: &Entry<'_>) -> usize {
    let mut count = Count(0);
    body(entry, &mut count);
    LEAST + count.0
}

/// Lays a record out in `bytes`, which are as many as [`length`] said, fewer than 2^32. It begins at `start` in the log.
#[inline]
pub(super) fn encode(bytes: &mut [u8], start: Lsn, head: &Head, entry: &Entry<'_>) {
    #[expect(clippy::cast_possible_truncation, reason = "said above")]
    let length = (bytes.len() as u32).to_le_bytes();
    let mut fill = Fill { bytes, at: 0 };
    // Where it begins stands for length and checksum until that is made of it and all that follows, in one piece.
    fill.put(&start.0.to_le_bytes());
    fill.put(&head.epoch.to_le_bytes());
    fill.put(&[kind(entry)]);
    fill.put(&head.tx.0.to_le_bytes());
    fill.put(&head.previous.0.to_le_bytes());
    body(entry, &mut fill);
    fill.put(&length);
    debug_assert_eq!(fill.at, fill.bytes.len());
    let checksum = crc32c::crc32c(bytes);
    bytes[..4].copy_from_slice(&length);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// The length of the record that these bytes begin with, if one could.
pub(super) fn length_at(bytes: &[u8]) -> Option<usize> {
    let length = Input(bytes).u32()? as usize;
    (length >= LEAST).then_some(length)
}

/// The record in `bytes`, all of them, which begins at `start`; `None` where there is none. `patches` holds those of a
/// general change.
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    start: Lsn,
    patches: &'a mut Vec<Patch<'a>>,
) -> Option<(Head, Entry<'a>)> {
    if length_at(bytes)? != bytes.len() || bytes[bytes.len() - TRAILER..] != bytes[..4] {
        return None;
    }
    let mut input = Input(&bytes[4..bytes.len() - TRAILER]);
    if input.u32()? != checksum(&bytes[8..], start) {
        return None;
    }
    let epoch = input.u32()?;
    let kind = input.u8()?;
    let head = Head {
        epoch,
        tx: TxId(input.u64()?),
        previous: Lsn(input.u64()?),
    };
    let entry = match kind {
        1 => {
            let change = input.change(patches)?;
            let undo = input.undo()?;
            Entry::Record(Record::Change(change.with(patches), undo))
        }
        2 => {
            let change = input.change(patches)?;
            let next = Lsn(input.u64()?);
            Entry::Record(Record::Compensation(change.with(patches), next))
        }
        3 => {
            let change = input.change(patches)?;
            Entry::Record(Record::Structure(change.with(patches)))
        }
        4 => Entry::Commit,
        5 => Entry::End,
        6 => Entry::CheckpointBegin,
        7 => Entry::Active(input.rest()),
        8 => Entry::Dirty(input.rest()),
        9 => Entry::CheckpointEnd,
        _ => return None,
    };
    input.0.is_empty().then_some((head, entry))
}

/// Of what follows it, for a record that begins there.
fn checksum(bytes: &[u8], start: Lsn) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&start.0.to_le_bytes()), bytes)
}

const fn kind(entry: &Entry<'_>) -> u8 {
    match entry {
        Entry::Record(Record::Change(..)) => 1,
        Entry::Record(Record::Compensation(..)) => 2,
        Entry::Record(Record::Structure(_)) => 3,
        Entry::Commit => 4,
        Entry::End => 5,
        Entry::CheckpointBegin => 6,
        Entry::Active(_) => 7,
        Entry::Dirty(_) => 8,
        Entry::CheckpointEnd => 9,
    }
}

/// The body goes to whatever takes bytes, so that its length is counted by what writes it.
#[inline]
fn body(entry: &Entry<'_>, out: &mut impl Output) {
    match entry {
        Entry::Record(Record::Change(of, by)) => {
            change(of, out);
            undo(by, out);
        }
        Entry::Record(Record::Compensation(of, next)) => {
            change(of, out);
            out.u64(next.0);
        }
        Entry::Record(Record::Structure(of)) => change(of, out),
        Entry::Active(part) | Entry::Dirty(part) => out.put(part),
        Entry::Commit | Entry::End | Entry::CheckpointBegin | Entry::CheckpointEnd => {}
    }
}

#[inline]
fn change(change: &Change<'_>, out: &mut impl Output) {
    match *change {
        Change::Write(patches) => {
            out.u8(1);
            out.count(patches.len());
            for patch in patches {
                out.u64(patch.page.0);
                out.u16(patch.offset);
                out.bytes(patch.bytes);
            }
        }
        Change::HeapInsert { rid, kind, record } => {
            out.u8(2);
            out.u64(rid.bits());
            out.u8(kind as u8);
            out.bytes(record);
        }
        Change::HeapDelete { rid } => {
            out.u8(3);
            out.u64(rid.bits());
        }
        Change::HeapRestore { rid } => {
            out.u8(4);
            out.u64(rid.bits());
        }
        Change::HeapReclaim { page } => {
            out.u8(5);
            out.u64(page.0);
        }
        Change::HeapUpdate { rid, offset, after } => {
            out.u8(6);
            out.u64(rid.bits());
            out.u16(offset);
            out.bytes(after);
        }
        Change::HeapReplace { rid, kind, after } => {
            out.u8(7);
            out.u64(rid.bits());
            out.u8(kind as u8);
            out.bytes(after);
        }
        Change::LeafInsert { page, place, entry } => {
            out.u8(8);
            out.u64(page.0);
            out.u16(place);
            out.bytes(entry);
        }
        Change::LeafDelete { page, place } => {
            out.u8(9);
            out.u64(page.0);
            out.u16(place);
        }
    }
}

#[inline]
fn undo(undo: &Undo<'_>, out: &mut impl Output) {
    match *undo {
        Undo::HeapDelete(rid) => {
            out.u8(1);
            out.u64(rid.bits());
        }
        Undo::HeapRestore(rid) => {
            out.u8(2);
            out.u64(rid.bits());
        }
        Undo::HeapUpdate {
            rid,
            offset,
            before,
        } => {
            out.u8(3);
            out.u64(rid.bits());
            out.u16(offset);
            out.bytes(before);
        }
        Undo::HeapReplace { rid, kind, before } => {
            out.u8(4);
            out.u64(rid.bits());
            out.u8(kind as u8);
            out.bytes(before);
        }
        Undo::IndexDelete { index, entry } => {
            out.u8(5);
            out.u16(index.0);
            out.bytes(entry);
        }
        Undo::IndexInsert { index, entry } => {
            out.u8(6);
            out.u16(index.0);
            out.bytes(entry);
        }
    }
}

/// What takes bytes.
trait Output {
    fn put(&mut self, bytes: &[u8]);

    #[inline]
    fn u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    #[inline]
    fn u16(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }

    #[inline]
    fn u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a record that is laid out has fewer than 2^32 bytes"
    )]
    fn count(&mut self, number: usize) {
        self.put(&(number as u32).to_le_bytes());
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.put(bytes);
    }
}

struct Count(usize);

impl Output for Count {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

struct Fill<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Output for Fill<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// What is still to be read; each call takes off what it gives.
struct Input<'a>(&'a [u8]);

/// A change, but for the patches of a general one, which are elsewhere.
enum Unpatched<'a> {
    Write,
    Other(Change<'a>),
}

impl<'a> Unpatched<'a> {
    fn with(self, patches: &'a [Patch<'a>]) -> Change<'a> {
        match self {
            Self::Write => Change::Write(patches),
            Self::Other(change) => change,
        }
    }
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        Some(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    fn rid(&mut self) -> Option<Rid> {
        Some(Rid::from_bits(self.u64()?))
    }

    fn kind(&mut self) -> Option<Kind> {
        match self.u8()? {
            1 => Some(Kind::Record),
            2 => Some(Kind::Stub),
            3 => Some(Kind::Moved),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn change(&mut self, patches: &mut Vec<Patch<'a>>) -> Option<Unpatched<'a>> {
        Some(Unpatched::Other(match self.u8()? {
            1 => {
                for _ in 0..self.u32()? {
                    patches.push(Patch {
                        page: PageId(self.u64()?),
                        offset: self.u16()?,
                        bytes: self.bytes()?,
                    });
                }
                return Some(Unpatched::Write);
            }
            2 => Change::HeapInsert {
                rid: self.rid()?,
                kind: self.kind()?,
                record: self.bytes()?,
            },
            3 => Change::HeapDelete { rid: self.rid()? },
            4 => Change::HeapRestore { rid: self.rid()? },
            5 => Change::HeapReclaim {
                page: PageId(self.u64()?),
            },
            6 => Change::HeapUpdate {
                rid: self.rid()?,
                offset: self.u16()?,
                after: self.bytes()?,
            },
            7 => Change::HeapReplace {
                rid: self.rid()?,
                kind: self.kind()?,
                after: self.bytes()?,
            },
            8 => Change::LeafInsert {
                page: PageId(self.u64()?),
                place: self.u16()?,
                entry: self.bytes()?,
            },
            9 => Change::LeafDelete {
                page: PageId(self.u64()?),
                place: self.u16()?,
            },
            _ => return None,
        }))
    }

    fn undo(&mut self) -> Option<Undo<'a>> {
        Some(match self.u8()? {
            1 => Undo::HeapDelete(self.rid()?),
            2 => Undo::HeapRestore(self.rid()?),
            3 => Undo::HeapUpdate {
                rid: self.rid()?,
                offset: self.u16()?,
                before: self.bytes()?,
            },
            4 => Undo::HeapReplace {
                rid: self.rid()?,
                kind: self.kind()?,
                before: self.bytes()?,
            },
            5 => Undo::IndexDelete {
                index: IndexId(self.u16()?),
                entry: self.bytes()?,
            },
            6 => Undo::IndexInsert {
                index: IndexId(self.u16()?),
                entry: self.bytes()?,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes of pages to make records of.
    const BYTES: &[u8] =
        b"what was there, what is there, and keys and records of all kinds and lengths";

    fn bytes() -> impl Strategy<Value = &'static [u8]> {
        (0..BYTES.len(), 0..BYTES.len()).prop_map(|(a, b)| &BYTES[a.min(b)..a.max(b)])
    }

    fn rid() -> impl Strategy<Value = Rid> {
        any::<u64>().prop_map(Rid::from_bits)
    }

    fn page() -> impl Strategy<Value = PageId> {
        (0u64..1 << 48).prop_map(PageId)
    }

    fn slot_kind() -> impl Strategy<Value = Kind> {
        prop::sample::select(vec![Kind::Record, Kind::Stub, Kind::Moved])
    }

    fn patch() -> impl Strategy<Value = Patch<'static>> {
        (page(), any::<u16>(), bytes()).prop_map(|(page, offset, bytes)| Patch {
            page,
            offset,
            bytes,
        })
    }

    fn change() -> impl Strategy<Value = Change<'static>> {
        prop_oneof![
            prop::collection::vec(patch(), 0..5)
                .prop_map(|patches| Change::Write(Vec::leak(patches))),
            (rid(), slot_kind(), bytes()).prop_map(|(rid, kind, record)| Change::HeapInsert {
                rid,
                kind,
                record
            }),
            rid().prop_map(|rid| Change::HeapDelete { rid }),
            rid().prop_map(|rid| Change::HeapRestore { rid }),
            page().prop_map(|page| Change::HeapReclaim { page }),
            (rid(), any::<u16>(), bytes()).prop_map(|(rid, offset, after)| Change::HeapUpdate {
                rid,
                offset,
                after
            }),
            (rid(), slot_kind(), bytes()).prop_map(|(rid, kind, after)| Change::HeapReplace {
                rid,
                kind,
                after
            }),
            (page(), any::<u16>(), bytes()).prop_map(|(page, place, entry)| Change::LeafInsert {
                page,
                place,
                entry
            }),
            (page(), any::<u16>()).prop_map(|(page, place)| Change::LeafDelete { page, place }),
        ]
    }

    fn undo() -> impl Strategy<Value = Undo<'static>> {
        let index = any::<u16>().prop_map(IndexId);
        prop_oneof![
            rid().prop_map(Undo::HeapDelete),
            rid().prop_map(Undo::HeapRestore),
            (rid(), any::<u16>(), bytes()).prop_map(|(rid, offset, before)| Undo::HeapUpdate {
                rid,
                offset,
                before
            }),
            (rid(), slot_kind(), bytes()).prop_map(|(rid, kind, before)| Undo::HeapReplace {
                rid,
                kind,
                before
            }),
            (index.clone(), bytes()).prop_map(|(index, entry)| Undo::IndexDelete { index, entry }),
            (index, bytes()).prop_map(|(index, entry)| Undo::IndexInsert { index, entry }),
        ]
    }

    fn entry() -> impl Strategy<Value = Entry<'static>> {
        let part = (0usize..3).prop_map(|count| &BYTES[..count * LISTED]);
        prop_oneof![
            (change(), undo())
                .prop_map(|(change, undo)| Entry::Record(Record::Change(change, undo))),
            (change(), any::<u64>())
                .prop_map(|(change, next)| Entry::Record(Record::Compensation(change, Lsn(next)))),
            change().prop_map(|change| Entry::Record(Record::Structure(change))),
            Just(Entry::Commit),
            Just(Entry::End),
            Just(Entry::CheckpointBegin),
            part.clone().prop_map(Entry::Active),
            part.prop_map(Entry::Dirty),
            Just(Entry::CheckpointEnd),
        ]
    }

    fn head() -> impl Strategy<Value = Head> {
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(epoch, tx, previous)| Head {
            epoch,
            tx: TxId(tx),
            previous: Lsn(previous),
        })
    }

    fn laid_out(start: Lsn, head: &Head, entry: &Entry<'_>) -> Vec<u8> {
        let mut bytes = vec![0xee; length(entry)];
        encode(&mut bytes, start, head, entry);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_laid_out_is_read_again(start in any::<u64>(), head in head(), entry in entry()) {
            let bytes = laid_out(Lsn(start), &head, &entry);
            prop_assert_eq!(length_at(&bytes), Some(bytes.len()));
            let mut patches = Vec::new();
            prop_assert_eq!(decode(&bytes, Lsn(start), &mut patches), Some((head, entry)));
        }

        #[test]
        fn damage_of_any_byte_is_found(head in head(), entry in entry(), start in any::<u64>(), with in 1..=255u8) {
            let mut bytes = laid_out(Lsn(start), &head, &entry);
            for at in 0..bytes.len() {
                bytes[at] ^= with;
                let mut patches = Vec::new();
                prop_assert_eq!(decode(&bytes, Lsn(start), &mut patches), None, "byte {}", at);
                bytes[at] ^= with;
            }
        }

        #[test]
        fn a_record_is_none_elsewhere_and_no_part_of_it_is_one(head in head(), entry in entry(), start in any::<u64>(), off in 1..=u64::MAX) {
            let bytes = laid_out(Lsn(start), &head, &entry);
            let mut patches = Vec::new();
            prop_assert_eq!(decode(&bytes, Lsn(start.wrapping_add(off)), &mut patches), None);
            let mut patches = Vec::new();
            prop_assert_eq!(decode(&bytes[..bytes.len() - 1], Lsn(start), &mut patches), None);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut patches = Vec::new();
            prop_assert_eq!(decode(&bytes, Lsn(0), &mut patches), None);
        }
    }

    #[test]
    fn zeros_are_no_record() {
        let mut patches = Vec::new();
        assert_eq!(decode(&[0; 64], Lsn(0), &mut patches), None);
        assert_eq!(length_at(&[0; 64]), None);
    }
}
