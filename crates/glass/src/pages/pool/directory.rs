//! Which page is in which frame.
//!
//! A hash table by Knuth's multiplicative hashing: a page's number times 2^64 divided by the golden ratio, of which the
//! highest bits say the bucket. Pages of one bucket are chained through their frames, so that it never grows and a hit
//! touches the bucket and the frame that is used anyway. Neighbouring buckets form a partition with a latch of its own.
//!
//! Invariant: a page is in the chain of its bucket, once, exactly while it is in a frame.
#![expect(
    clippy::cast_possible_truncation,
    reason = "less than the frames, of which there are less than 2^32"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::{END, Frame};
use crate::PageId;
use crate::latch::{Exclusive, Guarded, Latch};

/// As many as threads could be in it at the same time, and some.
const PARTITIONS: usize = 64;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Which page is in which frame.
pub(super) struct Directory<L: Latch> {
    partitions: Box<[Partition<L>]>,
    /// Of the hash, to be left away for its partition and bucket.
    shift: u32,
}

/// In cache lines of its own.
#[repr(align(64))]
struct Partition<L: Latch> {
    /// The first frame of each bucket's chain.
    heads: Guarded<L, Box<[u32]>>,
    hits: AtomicU64,
}

/// The chain that a page is in, if it is anywhere, latched to be changed.
pub(super) struct Chain<'a, L: Latch> {
    heads: Exclusive<'a, L, Box<[u32]>>,
    bucket: usize,
}

impl<L: Latch> Directory<L> {
    /// For so many frames.
    pub fn new(frames: usize) -> Self {
        let buckets = (frames / PARTITIONS).next_power_of_two();
        let partition = || Partition {
            heads: Guarded::new(vec![END; buckets].into_boxed_slice()),
            hits: AtomicU64::new(0),
        };
        Self {
            partitions: (0..PARTITIONS).map(|_| partition()).collect(),
            shift: u64::BITS - (PARTITIONS * buckets).trailing_zeros(),
        }
    }

    #[inline]
    fn place(&self, page: PageId) -> (&Partition<L>, usize) {
        let hash = (page.0.wrapping_mul(GOLDEN) >> self.shift) as usize;
        (&self.partitions[hash % PARTITIONS], hash / PARTITIONS)
    }

    /// The frame that the page is in, pinned.
    #[inline]
    pub fn pin<'f>(&self, page: PageId, frames: &'f [Frame<L>]) -> Option<&'f Frame<L>> {
        let (partition, bucket) = self.place(page);
        let heads = partition.heads.shared();
        let found = find(heads[bucket], page, frames)?;
        found.pin();
        // Not counted exactly among threads, which would cost as much as a latch.
        let hits = partition.hits.load(Ordering::Relaxed);
        partition.hits.store(hits + 1, Ordering::Relaxed);
        Some(found)
    }

    /// Pins the page if it is in that frame and, where that is asked for, nobody has it pinned.
    pub fn pin_in(&self, page: PageId, index: usize, unpinned: bool, frames: &[Frame<L>]) -> bool {
        let (partition, _) = self.place(page);
        let latched = partition.heads.shared();
        let frame = &frames[index];
        let is_so = frame.has(page) && (!unpinned || frame.pins() == 0);
        if is_so {
            frame.pin();
        }
        drop(latched);
        is_so
    }

    /// The chain that the page is in or is to be put into.
    pub fn chain(&self, page: PageId) -> Chain<'_, L> {
        let (partition, bucket) = self.place(page);
        Chain {
            heads: partition.heads.exclusive(),
            bucket,
        }
    }

    /// How often a page was found.
    pub fn hits(&self) -> u64 {
        let hits = |partition: &Partition<L>| partition.hits.load(Ordering::Relaxed);
        self.partitions.iter().map(hits).sum()
    }
}

impl<L: Latch> Chain<'_, L> {
    /// Whether the page is in it.
    pub fn has(&self, page: PageId, frames: &[Frame<L>]) -> bool {
        find(self.heads[self.bucket], page, frames).is_some()
    }

    /// Puts a page into it, which is in that frame from now on.
    pub fn insert(&mut self, page: PageId, index: usize, frames: &[Frame<L>]) {
        let frame = &frames[index];
        frame.set_page(Some(page));
        frame.set_next(self.heads[self.bucket]);
        self.heads[self.bucket] = index as u32;
    }

    /// Takes the page out of it that is in that frame, which is empty from now on.
    pub fn remove(&mut self, index: usize, frames: &[Frame<L>]) {
        let frame = &frames[index];
        let mut at = self.heads[self.bucket];
        if at == index as u32 {
            self.heads[self.bucket] = frame.next();
        } else {
            while frames[at as usize].next() != index as u32 {
                at = frames[at as usize].next();
            }
            frames[at as usize].set_next(frame.next());
        }
        frame.set_page(None);
    }
}

#[inline]
fn find<L: Latch>(mut at: u32, page: PageId, frames: &[Frame<L>]) -> Option<&Frame<L>> {
    while at != END {
        let frame = &frames[at as usize];
        if frame.has(page) {
            return Some(frame);
        }
        at = frame.next();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ptr::NonNull;

    use proptest::prelude::*;

    use super::*;
    use crate::latch::NoLatch;

    proptest! {
        #[test]
        fn pages_are_found_in_their_frames(steps in proptest::collection::vec((0..3_u64, 0..2000_u64), 1..2000)) {
            // Several frames for each bucket, so that chains are long.
            let frames: Vec<Frame<NoLatch>> = (0..400).map(|_| Frame::new(NonNull::dangling())).collect();
            let directory = Directory::new(64);
            let mut free: Vec<usize> = (0..frames.len()).collect();
            let mut model = BTreeMap::new();
            for (kind, page) in steps {
                let page = PageId(page);
                let mut chain = directory.chain(page);
                prop_assert_eq!(chain.has(page, &frames), model.contains_key(&page));
                if kind == 0 && let Some(index) = model.remove(&page) {
                    chain.remove(index, &frames);
                    free.push(index);
                } else if !model.contains_key(&page) && let Some(index) = free.pop() {
                    chain.insert(page, index, &frames);
                    model.insert(page, index);
                }
            }
            for page in (0..2000).map(PageId) {
                let found = directory.pin(page, &frames);
                let expected = model.get(&page).map(|index| &frames[*index]);
                prop_assert!(found.map(std::ptr::from_ref) == expected.map(std::ptr::from_ref), "{page:?}");
            }
            prop_assert_eq!(directory.hits(), model.len() as u64);
        }
    }
}
