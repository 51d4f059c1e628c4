//! What the rest of the engine knows of pages.

use std::ops::DerefMut;
use std::ptr::NonNull;

use super::{Exclusive, Page, PageKind, Shared, Statistics, disk};
use crate::latch::Latch;
use crate::log::Log;
use crate::{Lsn, PageId, Result};

/// Where pages come from.
pub trait Pages<L: Latch>: Sized + Send + Sync + 'static {
    /// Whether there is a buffer pool, and a file below it.
    const REAL: bool;

    /// A page that stays where it is until this is dropped; others may change it meanwhile.
    type Pin<'a>: Pin<Latch = L>
    where
        Self: 'a;

    /// Those of a store that is opened, or made where there is none yet. Pages that a loss of power tore are whole again.
    fn open(setup: Setup<'_>) -> Result<Self>;

    /// Pins a page. Reads it from the file first where it is not in memory.
    ///
    /// Only ids that were given by these pages are asked for: where a page's number is its address, nothing can tell.
    fn pin(&self, page: PageId) -> Result<Self::Pin<'_>>;

    /// As [`Self::pin`], of a number that users gave, which may be any. [`Error::Missing`](crate::Error::Missing) where no page of
    /// records can have it.
    fn pin_of_record(&self, page: PageId) -> Result<Self::Pin<'_>>;

    /// A new page of that kind, zero but for its header, which only the caller knows. That it is taken is logged by
    /// itself: after a crash before anything refers to it, it is lost until the engine's verification gives it back.
    /// The caller may hold latches of pages, though not of one that is free.
    fn allocate<G: Log<L>>(&self, kind: PageKind, log: &G) -> Result<Self::Pin<'_>>;

    /// Gives a page back that nothing refers to any more. The caller holds no latch of it.
    fn free<G: Log<L>>(&self, page: PageId, log: &G) -> Result<()>;

    /// The page that was named as the one to begin with (the catalogue's), [`PageId::NONE`] before.
    fn root(&self) -> Result<PageId>;

    /// Names the page to begin with, and logs it.
    fn set_root<G: Log<L>>(&self, root: PageId, log: &G) -> Result<()>;

    /// All pages that there are. Nobody allocates or frees meanwhile.
    fn census(&self) -> Result<Census>;

    /// The pages whose changes may not all be in the file. Each with a number that is at most where the first record
    /// ends whose change is not there: redoing begins with the record that *ends* there or, if none does, with the first
    /// that ends after it. Every change logged before this was called is accounted for, so each page's latch is taken
    /// once, shared: the caller holds none.
    fn dirty_pages(&self) -> Vec<(PageId, Lsn)>;

    /// Writes about so many pages that were changed, taken in turn, and says how many. For a cleaner to call: the caller
    /// holds no latch of a page.
    fn flush_some(&self, at_most: usize) -> Result<usize>;

    /// Writes each page that was changed before the call. The caller holds no latch of a page.
    fn flush_all(&self) -> Result<()>;

    /// What was done since they were opened.
    fn statistics(&self) -> Statistics;
}

/// A pinned page. Its latch is had for as long as the pin is borrowed, or together with the pin, as is needed where one
/// goes from page to page.
///
/// # Safety
/// [`Self::bytes`] is memory that stays a page's, and [`Self::latch`] that page's latch alone, while the pin lives.
#[allow(unsafe_code)]
#[expect(
    clippy::inline_always,
    reason = "nothing at all, where latches and pool are absent"
)]
pub unsafe trait Pin: Sized {
    /// What guards the page.
    type Latch: Latch;

    /// Which page it is.
    fn id(&self) -> PageId;

    /// The page's latch.
    fn latch(&self) -> &Self::Latch;

    /// The page's memory, to be looked at while its latch is held.
    fn bytes(&self) -> NonNull<[u8]>;

    /// Somebody who has the page latched exclusively has changed it as the record at `lsn` says.
    fn touched(&self, lsn: Lsn);

    /// Latches it with others who read.
    #[inline(always)]
    fn shared(&self) -> Shared<Self, &Self> {
        Shared::new(self)
    }

    /// Latches it alone.
    #[inline(always)]
    fn exclusive(&self) -> Exclusive<Self, &Self> {
        Exclusive::new(self)
    }

    /// Latches it with others who read, and is held by the latch.
    #[inline(always)]
    fn into_shared(self) -> Shared<Self> {
        Shared::new(self)
    }

    /// Latches it alone, and is held by the latch.
    #[inline(always)]
    fn into_exclusive(self) -> Exclusive<Self> {
        Exclusive::new(self)
    }
}

/// A page that may be changed.
pub trait Writable: DerefMut<Target = Page> {
    /// The page was changed as the log's record at `lsn` says: it has that number now, and must reach the file after
    /// that record. Told after each change, before the latch is given back; [`Lsn::NONE`] where there is no log.
    fn changed(&mut self, lsn: Lsn);
}

/// Waits until the log is on disk up to a number: asked before a page that has it is written (write-ahead). Called with
/// latches of pages held, so whoever writes the log never waits for one.
pub type Ahead = Box<dyn Fn(Lsn) -> Result<()> + Send + Sync>;

/// What pages are opened with.
pub struct Setup<'a> {
    /// Where the files are; `None` will do where there is no buffer pool.
    pub folder: Option<&'a dyn disk::Folder>,
    /// For the pages of the pool, in bytes.
    pub memory: usize,
    /// The log.
    pub ahead: Ahead,
}

/// All pages of a store but the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Each that was ever taken, in the order of their numbers.
    pub all: Vec<PageId>,
    /// Those of them that are free.
    pub free: Vec<PageId>,
}
