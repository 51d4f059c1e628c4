//! Nodes: pages of sorted entries.
//!
//! After the page's header: how many entries there are (2 bytes), the level, 0 for leaves (2), the index (2), the length of its
//! keys (2), the next leaf to the right, 0 where there is none (8), the place of the last insertion (2), how many before it were
//! each right behind the other (2), how many entries there may be (2), unused (2). Then the entries: the key, and 8 bytes, little endian:
//! of a leaf the record ([`Rid::bits`]), else the child ([`PageId`]), below which no key is smaller than the entry's. The key of an inner
//! node's first entry is any: what is smaller than the second's belongs there.
//!
//! All that a node says of itself is in the page, so that changes are redone without knowing what the index is.

use crate::keys::LONGEST;
use crate::pages::{HEADER, Page, PageKind};
use crate::{IndexId, PageId, Rid};

/// Where what a node begins with is.
pub(super) const HEAD: usize = HEADER;

/// Where its entries begin.
pub(super) const ENTRIES: usize = HEADER + 24;

const COUNT: usize = HEAD;
const LEVEL: usize = HEAD + 2;
const INDEX: usize = HEAD + 4;
const LENGTH: usize = HEAD + 6;
const NEXT: usize = HEAD + 8;
const LAST: usize = HEAD + 16;
const RUN: usize = HEAD + 18;
const MOST: usize = HEAD + 20;

/// More levels no tree of such pages has, in bytes, when its nodes were filled by half before they were split: one of more would
/// have had more nodes than there are numbers of pages.
pub(crate) const fn most_levels(page: usize) -> usize {
    let entries = (page - ENTRIES) / (LONGEST + VALUE);
    let half = if entries < 4 { 2 } else { entries / 2 };
    let (mut nodes, mut levels) = (1_u64, 1);
    while nodes < 1 << 48 {
        nodes *= half as u64;
        levels += 1;
    }
    levels
}

/// Of the record or the child of an entry, in bytes.
pub(super) const VALUE: usize = 8;

/// Where nothing was inserted yet.
const NOWHERE: u16 = u16::MAX;

/// So many insertions, each right behind the last, are a run that will go on.
const RUNS: usize = 3;

/// An entry of a leaf or an inner node: a key, and what it leads to.
pub(super) struct Entry {
    bytes: [u8; LONGEST + VALUE],
    length: usize,
}

impl Entry {
    pub(super) fn new(key: &[u8], value: u64) -> Self {
        let mut bytes = [0; LONGEST + VALUE];
        let length = key.len() + VALUE;
        bytes[..key.len()].copy_from_slice(key);
        bytes[key.len()..length].copy_from_slice(&value.to_le_bytes());
        Self { bytes, length }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A page as a node.
pub(super) trait Node {
    fn count(&self) -> usize;
    fn level(&self) -> u16;
    fn index(&self) -> IndexId;
    fn key_length(&self) -> usize;
    fn next(&self) -> PageId;
    /// How many entries there may be.
    fn most(&self) -> usize;
    /// How many entries with keys of that length a page has room for.
    fn room_for(&self, key_length: usize) -> usize;
    fn is_full(&self) -> bool {
        self.count() == self.most()
    }
    fn is_node_of(&self, index: IndexId) -> bool;
    /// Up to where of the page it has entries.
    fn end(&self) -> usize;

    /// All entries, given the length of the keys, and the length of each.
    fn entries(&self, key_length: usize) -> (&[u8], usize);
    fn entry(&self, place: usize) -> &[u8];
    fn key(&self, place: usize) -> &[u8];
    fn value(&self, place: usize) -> u64;
    fn rid(&self, place: usize) -> Rid {
        Rid::from_bits(self.value(place))
    }
    fn child(&self, place: usize) -> PageId {
        PageId(self.value(place))
    }

    /// How many entries stay if it is split for one that belongs at `place`: at least one, and at least one does not.
    ///
    /// A half; but where keys come in ascending order the left node is left (nearly) full, as nothing will come into it again. They
    /// do at the right end of the last leaf, and where the last ones came so.
    fn cut(&self, place: usize) -> usize;

    /// Makes it a node without entries. Its kind stays: it is a leaf's where the level is 0, else an inner node's.
    fn format(&mut self, index: IndexId, key_length: usize, most: usize, level: u16);
    fn set_next(&mut self, next: PageId);
    fn set_child(&mut self, place: usize, child: PageId);
    /// Puts an entry before the one at `place`.
    fn insert(&mut self, place: usize, entry: &[u8]);
    fn remove(&mut self, place: usize);
    /// Moves the entries from `cut` on, and what is to the right, to a node that is empty.
    fn move_to(&mut self, cut: usize, right: &mut Page);
    /// Makes it a leaf without entries, whatever it was.
    fn empty(&mut self);
    /// Makes it an inner node, one level higher, with these children, whose least keys stand for them.
    fn adopt(&mut self, children: [&Page; 2]);
    /// Makes it what another node is.
    fn copy_from(&mut self, other: &Page);
}

impl Node for Page {
    #[inline]
    fn count(&self) -> usize {
        usize::from(get(self, COUNT))
    }

    #[inline]
    fn level(&self) -> u16 {
        get(self, LEVEL)
    }

    #[inline]
    fn index(&self) -> IndexId {
        IndexId(get(self, INDEX))
    }

    #[inline]
    fn key_length(&self) -> usize {
        usize::from(get(self, LENGTH))
    }

    #[inline]
    fn next(&self) -> PageId {
        PageId(get_long(self, NEXT))
    }

    #[inline]
    fn most(&self) -> usize {
        usize::from(get(self, MOST))
    }

    fn room_for(&self, key_length: usize) -> usize {
        (self.bytes().len() - ENTRIES) / (key_length + VALUE)
    }

    fn is_node_of(&self, index: IndexId) -> bool {
        let kind = if self.level() == 0 {
            PageKind::Leaf
        } else {
            PageKind::Inner
        };
        self.kind() == kind && self.index() == index
    }

    #[inline]
    fn end(&self) -> usize {
        start(self, self.count())
    }

    #[inline]
    fn entries(&self, key_length: usize) -> (&[u8], usize) {
        let stride = key_length + VALUE;
        (&self.bytes()[ENTRIES..][..self.count() * stride], stride)
    }

    #[inline]
    fn entry(&self, place: usize) -> &[u8] {
        &self.bytes()[start(self, place)..start(self, place + 1)]
    }

    #[inline]
    fn key(&self, place: usize) -> &[u8] {
        &self.bytes()[start(self, place)..][..self.key_length()]
    }

    #[inline]
    fn value(&self, place: usize) -> u64 {
        get_long(self, start(self, place) + self.key_length())
    }

    fn cut(&self, place: usize) -> usize {
        let count = self.count();
        let ascending =
            usize::from(get(self, RUN)) >= RUNS && place == usize::from(get(self, LAST)) + 1;
        let last_leaf = self.level() == 0 && self.next() == PageId::NONE;
        if place == count && (ascending || last_leaf) {
            count - 1
        } else if ascending {
            place
        } else {
            count / 2
        }
    }

    fn format(&mut self, index: IndexId, key_length: usize, most: usize, level: u16) {
        self.bytes_mut()[HEAD..ENTRIES].fill(0);
        set(self, LEVEL, usize::from(level));
        set(self, INDEX, usize::from(index.0));
        set(self, LENGTH, key_length);
        set(self, LAST, usize::from(NOWHERE));
        set(self, MOST, most);
    }

    fn set_next(&mut self, next: PageId) {
        self.bytes_mut()[NEXT..NEXT + 8].copy_from_slice(&next.0.to_le_bytes());
    }

    fn set_child(&mut self, place: usize, child: PageId) {
        let end = start(self, place + 1);
        self.bytes_mut()[end - VALUE..end].copy_from_slice(&child.0.to_le_bytes());
    }

    #[inline]
    fn insert(&mut self, place: usize, entry: &[u8]) {
        let (at, end) = (start(self, place), self.end());
        let bytes = self.bytes_mut();
        bytes.copy_within(at..end, at + entry.len());
        bytes[at..at + entry.len()].copy_from_slice(entry);
        let behind = place == usize::from(get(self, LAST)) + 1;
        let run = if behind {
            get(self, RUN).saturating_add(1)
        } else {
            0
        };
        set(self, RUN, usize::from(run));
        set(self, LAST, place);
        set(self, COUNT, self.count() + 1);
    }

    #[inline]
    fn remove(&mut self, place: usize) {
        let (at, behind, end) = (start(self, place), start(self, place + 1), self.end());
        self.bytes_mut().copy_within(behind..end, at);
        let last = usize::from(get(self, LAST));
        if last != usize::from(NOWHERE) && 0 < last && place <= last {
            set(self, LAST, last - 1);
        }
        set(self, COUNT, self.count() - 1);
    }

    fn move_to(&mut self, cut: usize, right: &mut Page) {
        let count = self.count();
        let (at, end) = (start(self, cut), self.end());
        right.format(self.index(), self.key_length(), self.most(), self.level());
        right.bytes_mut()[ENTRIES..ENTRIES + end - at].copy_from_slice(&self.bytes()[at..end]);
        set(right, COUNT, count - cut);
        right.set_next(self.next());
        set(self, COUNT, cut);
        let last = usize::from(get(self, LAST));
        if last != usize::from(NOWHERE) && last >= cut {
            // The run, if it is one, goes on where its last entry is.
            set(right, LAST, last - cut);
            set(right, RUN, usize::from(get(self, RUN)));
            set(self, LAST, usize::from(NOWHERE));
            set(self, RUN, 0);
        }
    }

    fn empty(&mut self) {
        let (index, length, most) = (self.index(), self.key_length(), self.most());
        self.clear(PageKind::Leaf, self.id());
        self.format(index, length, most, 0);
    }

    fn adopt(&mut self, children: [&Page; 2]) {
        let (index, length, most) = (self.index(), self.key_length(), self.most());
        let level = self.level() + 1;
        self.clear(PageKind::Inner, self.id());
        self.format(index, length, most, level);
        for (place, child) in children.into_iter().enumerate() {
            let at = start(self, place);
            self.bytes_mut()[at..at + length].copy_from_slice(child.key(0));
            self.set_child(place, child.id());
        }
        set(self, COUNT, children.len());
    }

    fn copy_from(&mut self, other: &Page) {
        let end = other.end();
        self.bytes_mut()[HEAD..end].copy_from_slice(&other.bytes()[HEAD..end]);
    }
}

/// Where an entry begins.
#[inline]
fn start(page: &Page, place: usize) -> usize {
    ENTRIES + place * (page.key_length() + VALUE)
}

#[inline]
fn get(page: &Page, at: usize) -> u16 {
    let mut bytes = [0; 2];
    bytes.copy_from_slice(&page.bytes()[at..at + 2]);
    u16::from_le_bytes(bytes)
}

#[inline]
fn get_long(page: &Page, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page.bytes()[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[inline]
fn set(page: &mut Page, at: usize, value: usize) {
    page.bytes_mut()[at..at + 2].copy_from_slice(&number(value).to_le_bytes());
}

/// A place, a length or an offset within a page.
#[expect(
    clippy::cast_possible_truncation,
    reason = "pages have less than 64 KiB"
)]
#[inline]
pub(super) const fn number(value: usize) -> u16 {
    debug_assert!(value < 1 << 16);
    value as u16
}
