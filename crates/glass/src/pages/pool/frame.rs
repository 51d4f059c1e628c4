//! What is known of a frame: which page is in it, who points into it, and what of it is not in the file.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::latch::Latch;
use crate::{Lsn, PageId};

/// No page: the frame is empty.
const EMPTY: u64 = u64::MAX;

/// No change.
const CLEAN: u64 = u64::MAX;

/// No frame, where a chain of the directory ends.
pub(super) const END: u32 = u32::MAX;

/// A line of the processor's cache for each, so that threads on different pages do not wait for each other.
///
/// Invariants: `page` and `next` are changed under the directory's latch for the page, and `page` becomes another only
/// while the one who changes it has the only pin and the frame's latch. A frame that is in the directory without
/// pins may be emptied by anybody who has that latch.
#[repr(align(64))]
pub(super) struct Frame<L> {
    /// The page's.
    pub latch: L,
    /// Where the page's bytes are.
    pub start: NonNull<u8>,
    page: AtomicU64,
    unwritten: AtomicU64,
    writing: AtomicU64,
    next: AtomicU32,
    pins: AtomicU32,
    referenced: AtomicBool,
    state: AtomicU8,
}

// SAFETY: what `start` points to is read and changed with the latch held.
#[allow(unsafe_code)]
unsafe impl<L: Latch> Send for Frame<L> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<L: Latch> Sync for Frame<L> {}

/// Whether the page's bytes are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// They are.
    Ready = 0,
    /// Who put the page into the directory is reading them, and has the latch.
    Reading = 1,
    /// They could not be read, and the page is no longer in the directory.
    Failed = 2,
}

impl<L: Latch> Frame<L> {
    /// An empty one, with the memory that begins there.
    pub fn new(start: NonNull<u8>) -> Self {
        Self {
            latch: L::default(),
            start,
            page: AtomicU64::new(EMPTY),
            unwritten: AtomicU64::new(CLEAN),
            writing: AtomicU64::new(CLEAN),
            next: AtomicU32::new(END),
            pins: AtomicU32::new(0),
            referenced: AtomicBool::new(false),
            state: AtomicU8::new(State::Ready as u8),
        }
    }

    /// Which page is in it. It stays while it is pinned.
    #[inline]
    pub fn page(&self) -> Option<PageId> {
        match self.page.load(Ordering::Relaxed) {
            EMPTY => None,
            page => Some(PageId(page)),
        }
    }

    /// Whether that page is in it.
    #[inline]
    pub fn has(&self, page: PageId) -> bool {
        self.page.load(Ordering::Relaxed) == page.0
    }

    /// Says which page is in it.
    pub fn set_page(&self, page: Option<PageId>) {
        self.page
            .store(page.map_or(EMPTY, |page| page.0), Ordering::Relaxed);
    }

    /// The frame after it in its chain of the directory.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Says which frame is after it.
    pub fn set_next(&self, next: u32) {
        self.next.store(next, Ordering::Relaxed);
    }

    /// One more points into it. Called under the directory's latch, or by who has a pin.
    #[inline]
    pub fn pin(&self) {
        if L::REAL {
            self.pins.fetch_add(1, Ordering::Relaxed);
        } else {
            self.pins.store(self.pins() + 1, Ordering::Relaxed);
        }
    }

    /// One fewer does. What was done to the page before is seen by whoever finds it without pins.
    #[inline]
    pub fn unpin(&self) {
        if L::REAL {
            self.pins.fetch_sub(1, Ordering::Release);
        } else {
            self.pins.store(self.pins() - 1, Ordering::Relaxed);
        }
    }

    /// How many point into it.
    #[inline]
    pub fn pins(&self) -> u32 {
        self.pins.load(Ordering::Acquire)
    }

    /// Pins it if nobody else does.
    pub fn claim(&self) -> bool {
        if L::REAL {
            self.pins
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        } else {
            let is_free = self.pins() == 0;
            if is_free {
                self.pin();
            }
            is_free
        }
    }

    /// It was used. Written only where that is news, so that a page of many users stays in all their caches.
    #[inline]
    pub fn refer(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since this was asked last.
    pub fn was_referred(&self) -> bool {
        let was = self.referenced.load(Ordering::Relaxed);
        if was {
            self.referenced.store(false, Ordering::Relaxed);
        }
        was
    }

    /// Whether the page's bytes are there.
    #[inline]
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Ready,
            1 => State::Reading,
            _ => State::Failed,
        }
    }

    /// Says whether they are; what was written of them before is seen by who is told that they are.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// The page was changed by the record that ends at `lsn`. Called with the latch held exclusively.
    #[inline]
    pub fn touch(&self, lsn: Lsn) {
        if self.unwritten.load(Ordering::Relaxed) == CLEAN {
            self.unwritten.store(lsn.0, Ordering::Relaxed);
        }
    }

    /// The page is about to be written as it is now. Called with the latch held, by the only one who writes.
    pub fn begin_write(&self) {
        // In this order, so that at each moment one of both says it: see `oldest_change`.
        self.writing
            .store(self.unwritten.load(Ordering::Relaxed), Ordering::Relaxed);
        self.unwritten.store(CLEAN, Ordering::Release);
    }

    /// It is on disk as it was then.
    pub fn end_write(&self) {
        self.writing.store(CLEAN, Ordering::Release);
    }

    /// Whether it was changed since it was written last.
    pub fn is_changed(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) != CLEAN
    }

    /// Where the first record ends whose change may not be on disk; `None` where all of them are.
    pub fn oldest_change(&self) -> Option<Lsn> {
        let unwritten = self.unwritten.load(Ordering::Acquire);
        let oldest = unwritten.min(self.writing.load(Ordering::Acquire));
        (oldest != CLEAN).then_some(Lsn(oldest))
    }
}
