//! Pages without a buffer pool: plain memory, and a page's number is its address.
//!
//! A page is never looked up, pinned, read, written or evicted. Where there are latches, a page's lies right behind its
//! bytes. Pages begin with a line of the processor's caches, wherever in their sets (`memory` says why). A free page keeps
//! its memory and is used again; all memory is given back at the end.
//!
//! Invariants: `all` has each page that was ever made, `numbers` those of records, `free` those of them that are free, each once. A page's memory
//! and latch stay where they are until the whole is dropped, which nobody can do who has a pin.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits, and what is within a page's header 16"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::num::NonZero;
use std::ptr::NonNull;

use super::layout::{HEADER, KIND, PageKind, identity};
use super::memory::LINE;
use super::numbers::Numbers;
use super::{Census, Pages, Pin, Setup, Statistics, Writable};
use crate::latch::{Guarded, Latch};
use crate::log::{Change, Log, Patch, Record};
use crate::{Error, Lsn, PageId, Result, TxId};

/// Plain memory; pages have `PAGE` bytes. An engine makes it. A page's number is taken for its address as it is, so that
/// within the crate none but ids that these pages gave may be asked for; those that come from outside are looked at.
pub struct Direct<L: Latch, const PAGE: usize> {
    state: Guarded<L, State>,
    numbers: Guarded<L, Numbers<PAGE>>,
}

const NO_RECORDS: Error = Error::Missing("a page of records with that number");

#[derive(Default)]
struct State {
    all: Vec<PageId>,
    free: Vec<PageId>,
    root: PageId,
}

impl<L: Latch, const PAGE: usize> Direct<L, PAGE> {
    /// Of a page's memory: its bytes, then its latch.
    const LAYOUT: Layout = {
        assert!(PAGE > HEADER && PAGE.is_multiple_of(LINE) && align_of::<L>() <= LINE);
        match Layout::from_size_align(PAGE + size_of::<L>(), LINE) {
            Ok(layout) => layout,
            Err(_) => panic!("pages are too large"),
        }
    };

    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            state: Guarded::new(State::default()),
            numbers: Guarded::new(Numbers::new()),
        }
    }

    #[allow(unsafe_code)]
    fn make() -> Result<PageId> {
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(Self::LAYOUT) };
        if start.is_null() {
            return Err(Error::OutOfMemory("a page"));
        }
        // SAFETY: the layout has room for a latch behind the page, aligned as the page's length is.
        unsafe { start.add(PAGE).cast::<L>().write(L::default()) };
        Ok(PageId(start.expose_provenance() as u64))
    }

    #[inline(always)]
    fn at(page: PageId) -> Result<DirectPin<'static, L, PAGE>> {
        debug_assert!(
            page.0.is_multiple_of(LINE as u64),
            "{page:?} is no address of a page"
        );
        match NonZero::new(page.0 as usize) {
            Some(address) => Ok(DirectPin {
                start: NonNull::with_exposed_provenance(address),
                pages: PhantomData,
            }),
            None => Err(Error::Missing("the page of number 0")),
        }
    }

    // What a pool logs when a page is taken or given back, without the meta page and what is zero in memory anyway.
    fn log<G: Log<L>>(page: PageId, kind: PageKind, log: &G) -> Result<Lsn> {
        if !G::REAL {
            return Ok(Lsn::NONE);
        }
        let patch = Patch {
            page,
            offset: KIND as u16,
            bytes: &identity(kind, page),
        };
        log.append(
            TxId(0),
            Lsn::NONE,
            &Record::Structure(Change::Write(&[patch])),
        )
    }
}

impl<L: Latch, const PAGE: usize> Drop for Direct<L, PAGE> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        for page in &self.state.exclusive().all {
            let start = std::ptr::with_exposed_provenance_mut::<u8>(page.0 as usize);
            // SAFETY: made so by `make`; no pin is left, for it would borrow these pages.
            unsafe {
                start.add(PAGE).cast::<L>().drop_in_place();
                dealloc(start, Self::LAYOUT);
            }
        }
    }
}

impl<L: Latch, const PAGE: usize> Pages<L> for Direct<L, PAGE> {
    const REAL: bool = false;

    type Pin<'a> = DirectPin<'a, L, PAGE>;

    fn open(_: Setup<'_>) -> Result<Self> {
        Ok(Self::new())
    }

    #[inline(always)]
    fn pin(&self, page: PageId) -> Result<DirectPin<'_, L, PAGE>> {
        Self::at(page)
    }

    #[inline(always)]
    fn pin_of_record(&self, page: PageId) -> Result<DirectPin<'_, L, PAGE>> {
        // Not any page: a node's children are addresses too, which nobody outside may write.
        if self.numbers.shared().is_of_records(page) {
            Self::at(page)
        } else {
            Err(NO_RECORDS)
        }
    }

    fn allocate<G: Log<L>>(&self, kind: PageKind, log: &G) -> Result<DirectPin<'_, L, PAGE>> {
        let mut state = self.state.exclusive();
        if state.free.is_empty() {
            let page = Self::make()?;
            state.all.push(page);
            state.free.push(page);
        }
        let page = state.free[state.free.len() - 1];
        // It is taken when the log has taken that it is.
        let lsn = Self::log(page, kind, log)?;
        state.free.pop();
        let is_of_records = kind == PageKind::Heap;
        self.numbers.exclusive().set(page, is_of_records);
        drop(state);
        let pin = Self::at(page)?;
        let mut latched = pin.exclusive();
        latched.clear(kind, page);
        latched.changed(lsn);
        drop(latched);
        Ok(pin)
    }

    fn free<G: Log<L>>(&self, page: PageId, log: &G) -> Result<()> {
        let lsn = Self::log(page, PageKind::Free, log)?;
        let pin = Self::at(page)?;
        let mut latched = pin.exclusive();
        latched.clear(PageKind::Free, page);
        latched.changed(lsn);
        drop(latched);
        self.numbers.exclusive().set(page, false);
        self.state.exclusive().free.push(page);
        Ok(())
    }

    fn root(&self) -> Result<PageId> {
        Ok(self.state.shared().root)
    }

    fn set_root<G: Log<L>>(&self, root: PageId, _: &G) -> Result<()> {
        self.state.exclusive().root = root;
        Ok(())
    }

    fn census(&self) -> Result<Census> {
        let state = self.state.shared();
        let mut all = state.all.clone();
        all.sort_unstable();
        Ok(Census {
            all,
            free: state.free.clone(),
        })
    }

    fn dirty_pages(&self) -> Vec<(PageId, Lsn)> {
        Vec::new()
    }

    fn flush_some(&self, _: usize) -> Result<usize> {
        Ok(0)
    }

    fn flush_all(&self) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

/// A pointer to a page.
pub struct DirectPin<'a, L, const PAGE: usize> {
    start: NonNull<u8>,
    pages: PhantomData<&'a L>,
}

// SAFETY: a pointer to what threads share, by the page's latch.
#[allow(unsafe_code)]
unsafe impl<L: Latch, const PAGE: usize> Send for DirectPin<'_, L, PAGE> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<L: Latch, const PAGE: usize> Sync for DirectPin<'_, L, PAGE> {}

// SAFETY: the page's memory lives as long as the pages do, which the pin borrows; its latch is its own.
#[allow(unsafe_code)]
unsafe impl<L: Latch, const PAGE: usize> Pin for DirectPin<'_, L, PAGE> {
    type Latch = L;

    #[inline(always)]
    fn id(&self) -> PageId {
        PageId(self.start.addr().get() as u64)
    }

    #[inline(always)]
    fn latch(&self) -> &L {
        // SAFETY: the page's latch lies behind its bytes as long as the pages live.
        unsafe { self.start.add(PAGE).cast::<L>().as_ref() }
    }

    #[inline(always)]
    fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, PAGE)
    }

    #[inline(always)]
    fn touched(&self, _: Lsn) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::latch::{NoLatch, RwLatch};
    use crate::pages::Page;

    const PAGE: usize = 32 << 10;

    /// A log that counts, or that does not take anything.
    #[derive(Default)]
    struct Counting {
        records: Mutex<u64>,
        is_broken: bool,
    }

    impl<L: Latch> Log<L> for Counting {
        const REAL: bool = true;

        fn append(&self, _: TxId, _: Lsn, _: &Record<'_>) -> Result<Lsn> {
            if self.is_broken {
                return Err(Error::Absent("disk"));
            }
            let mut records = self.records.lock().unwrap();
            *records += 1;
            Ok(Lsn(*records))
        }

        fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
            Ok(())
        }

        fn end(&self, _: TxId, _: Lsn) -> Result<()> {
            Ok(())
        }

        fn flush(&self, _: Lsn) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_page_is_where_its_number_says_and_is_used_again_when_it_was_free() {
        let log = Counting::default();
        let pages = Direct::<NoLatch, PAGE>::new();
        let first = pages.allocate(PageKind::Heap, &log).unwrap().id();
        let second = pages.allocate(PageKind::Leaf, &log).unwrap().id();
        assert_ne!(first, second);
        let pin = pages.pin(first).unwrap();
        let mut latched = pin.into_exclusive();
        assert_eq!(
            (latched.id(), latched.kind(), latched.lsn()),
            (first, PageKind::Heap, Lsn(1))
        );
        assert_eq!(latched.bytes().len(), PAGE);
        assert_eq!(latched.bytes().as_ptr().addr() as u64, first.0);
        latched.bytes_mut()[HEADER..].fill(7);
        latched.changed(Lsn(9));
        let pin = latched.unlatch();
        assert_eq!(pin.shared().lsn(), Lsn(9));
        assert_eq!(pages.pin(first).unwrap().shared().bytes()[PAGE - 1], 7);

        pages.free(first, &log).unwrap();
        let mut all = vec![first, second];
        all.sort_unstable();
        let census = Census {
            all,
            free: vec![first],
        };
        assert_eq!(pages.census().unwrap(), census);
        let again = pages.allocate(PageKind::Inner, &log).unwrap();
        assert_eq!(again.id(), first);
        assert!(
            again.shared().bytes()[HEADER..]
                .iter()
                .all(|byte| *byte == 0)
        );
        assert_eq!(again.shared().kind(), PageKind::Inner);
        assert_eq!(pages.census().unwrap().free, []);

        assert!(matches!(pages.pin(PageId::NONE), Err(Error::Missing(_))));
        assert_eq!(pages.root().unwrap(), PageId::NONE);
        pages.set_root(second, &log).unwrap();
        assert_eq!(pages.root().unwrap(), second);
    }

    #[test]
    fn a_page_is_taken_when_the_log_knows_it() {
        let pages = Direct::<NoLatch, PAGE>::new();
        let broken = Counting {
            is_broken: true,
            ..Counting::default()
        };
        assert!(pages.allocate(PageKind::Heap, &broken).is_err());
        let census = pages.census().unwrap();
        assert_eq!(census.all, census.free);
        let taken = pages
            .allocate(PageKind::Heap, &Counting::default())
            .unwrap()
            .id();
        assert_eq!(pages.census().unwrap().all, [taken]);
        assert!(pages.free(taken, &broken).is_err());
        assert_eq!(pages.census().unwrap().free, []);
    }

    #[test]
    fn a_number_from_outside_is_that_of_a_page_of_records_or_of_nothing() {
        let log = Counting::default();
        let pages = Direct::<RwLatch, PAGE>::new();
        let records = pages.allocate(PageKind::Heap, &log).unwrap().id();
        let node = pages.allocate(PageKind::Inner, &log).unwrap().id();
        assert_eq!(pages.pin_of_record(records).unwrap().id(), records);
        let of_nothing = PageId(records.0 + LINE as u64);
        for other in [node, of_nothing, PageId(LINE as u64), PageId::NONE] {
            assert!(matches!(pages.pin_of_record(other), Err(Error::Missing(_))));
        }
        pages.free(records, &log).unwrap();
        assert!(pages.pin_of_record(records).is_err());
    }

    #[test]
    fn without_latches_a_pin_is_a_pointer_and_a_page_its_bytes() {
        assert_eq!(
            size_of::<DirectPin<'_, NoLatch, PAGE>>(),
            size_of::<usize>()
        );
        assert_eq!(
            size_of::<DirectPin<'_, RwLatch, PAGE>>(),
            size_of::<usize>()
        );
        assert_eq!(Direct::<NoLatch, PAGE>::LAYOUT.size(), PAGE);
        assert_eq!(
            Direct::<RwLatch, PAGE>::LAYOUT.size(),
            PAGE + size_of::<RwLatch>()
        );
    }

    #[test]
    fn threads_have_pages_of_their_own_and_latch_those_they_share() {
        let log = Counting::default();
        let pages = Direct::<RwLatch, PAGE>::new();
        let shared = pages.allocate(PageKind::Heap, &log).unwrap();
        let word = |page: &Page| page.u64_at(PAGE - 8);
        let taken = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..500_u64 {
                        let own = pages.allocate(PageKind::Leaf, &log).unwrap();
                        assert!(
                            taken.lock().unwrap().insert(own.id()),
                            "somebody else has it"
                        );
                        let mut latched = shared.exclusive();
                        let next = word(&latched) + 1;
                        latched.write((PAGE - 8) as u16, &next.to_le_bytes());
                        drop(latched);
                        assert!(word(&shared.shared()) > round);
                        assert!(taken.lock().unwrap().remove(&own.id()));
                        pages.free(own.id(), &log).unwrap();
                    }
                });
            }
        });
        assert_eq!(word(&shared.shared()), 2000);
        assert!(pages.census().unwrap().all.len() <= 5);
        assert_eq!(*log.records.lock().unwrap(), 4001);
    }
}
