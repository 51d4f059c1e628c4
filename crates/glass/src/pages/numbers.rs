//! Which numbers are those of pages of records, where a page's number is its address: so that one that comes from outside is never
//! followed before it is known.
//!
//! A table of open addressing with linear probing, at most half full (Knuth, The Art of Computer Programming 3, 6.4). Pages do
//! not overlap, so each has an address of its own when it is divided by a page's length, and those that memory gives one
//! after the other lie next to each other: hardly ever is more than one place looked at. A number, of 48 bits, is there as it is
//! while its page is one of records, and with its highest bit set while it is another or free; it is never taken out.
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits, and of a place its lowest count"
)]

use crate::PageId;

const EMPTY: u64 = u64::MAX;
/// Of a number whose page is not one of records.
const OTHER: u64 = 1 << 63;

/// Those of one store's pages, of `PAGE` bytes each.
pub(super) struct Numbers<const PAGE: usize> {
    /// A power of two.
    places: Vec<u64>,
    count: usize,
}

impl<const PAGE: usize> Numbers<PAGE> {
    /// None yet.
    pub fn new() -> Self {
        Self::with_places(1024)
    }

    fn with_places(places: usize) -> Self {
        Self {
            places: vec![EMPTY; places],
            count: 0,
        }
    }

    /// Whether a page of records has it.
    #[inline]
    pub fn is_of_records(&self, page: PageId) -> bool {
        let home = (page.0 as usize / PAGE) & (self.places.len() - 1);
        self.places[home] == page.0 || self.is_elsewhere(page)
    }

    #[cold]
    fn is_elsewhere(&self, page: PageId) -> bool {
        self.places[self.place(page.0)] == page.0
    }

    /// A page, which may be a new one, is one of records now, or is not.
    pub fn set(&mut self, page: PageId, is_of_records: bool) {
        let place = self.place(page.0);
        self.count += usize::from(self.places[place] == EMPTY);
        self.places[place] = page.0 | if is_of_records { 0 } else { OTHER };
        if self.count * 2 > self.places.len() {
            let mut larger = Self::with_places(self.places.len() * 2);
            for number in self.places.iter().filter(|number| **number != EMPTY) {
                larger.set(PageId(number & !OTHER), number & OTHER == 0);
            }
            *self = larger;
        }
    }

    /// The place that has a number, or else the empty one where it would be.
    fn place(&self, number: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (number as usize / PAGE) & mask;
        while self.places[at] != EMPTY && self.places[at] & !OTHER != number {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn pages_of_records_are_known_and_no_others() {
        let mut numbers = Numbers::<PAGE>::new();
        assert!(!numbers.is_of_records(PageId(64)));
        let mut all = Vec::new();
        for at in 1..5000 {
            // Some next to each other, some that collide in all tables.
            let page = PageId(if at % 3 == 0 {
                at << 32
            } else {
                at * (PAGE as u64 + 64)
            });
            assert!(!numbers.is_of_records(page));
            all.push(page);
            numbers.set(page, at % 5 != 0);
        }
        for (page, at) in all.iter().zip(1..) {
            assert_eq!(numbers.is_of_records(*page), at % 5 != 0);
            for other in [page.0 + 64, page.0 - 64] {
                assert!(!numbers.is_of_records(PageId(other)));
            }
        }
        for (page, at) in all.iter().zip(1..) {
            numbers.set(*page, at % 2 == 0);
        }
        for (page, at) in all.iter().zip(1..) {
            assert_eq!(numbers.is_of_records(*page), at % 2 == 0);
        }
        for none in [0, 1, (1 << 48) - 1] {
            assert!(!numbers.is_of_records(PageId(none)));
        }
    }
}
