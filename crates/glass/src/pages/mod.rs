//! Pages: pieces of memory of one size, pinned while somebody points into them and latched while somebody reads or
//! changes them.
//!
//! The real form is a buffer pool over a file: a page is found by its number in a directory, pinned in its frame, and
//! evicted by a clock when others need the frame. The absent form is plain memory: a page's number *is* its address,
//! nothing is looked up, pinned or written.

use std::ops::{Deref, DerefMut};

use crate::latch::Latch;
use crate::log::Log;
use crate::{Lsn, PageId, Result};

mod layout;

pub use layout::{HEADER, Page, PageKind};

/// Where pages come from.
pub trait Pages<L: Latch>: Sized + Send + Sync + 'static {
    /// Whether there is a buffer pool, and a file below it.
    const REAL: bool;

    /// A page that stays where it is until this is dropped; others may change it meanwhile.
    type Pin<'a>: Pin
    where
        Self: 'a;

    /// Pins a page. Reads it from the file first where it is not in memory.
    fn pin(&self, page: PageId) -> Result<Self::Pin<'_>>;

    /// A new page of that kind, zero but for its header, which only the caller knows. That it is taken is logged by
    /// itself: after a crash before anything refers to it, it is lost until the engine's verification gives it back.
    fn allocate<G: Log<L>>(&self, kind: PageKind, log: &G) -> Result<Self::Pin<'_>>;

    /// Gives a page back that nothing refers to any more.
    fn free<G: Log<L>>(&self, page: PageId, log: &G) -> Result<()>;
}

/// A pinned page.
pub trait Pin {
    /// The page, latched to be read.
    type Shared<'p>: Deref<Target = Page>
    where
        Self: 'p;

    /// The page, latched to be changed.
    type Exclusive<'p>: Writable
    where
        Self: 'p;

    /// Which page it is.
    fn id(&self) -> PageId;

    /// Latches it with others who read.
    fn shared(&self) -> Self::Shared<'_>;

    /// Latches it alone.
    fn exclusive(&self) -> Self::Exclusive<'_>;
}

/// A page that may be changed.
pub trait Writable: DerefMut<Target = Page> {
    /// The page was changed as the log's record at `lsn` says: it has that number now, and must reach the file after
    /// that record. Told after each change, before the latch is given back; [`Lsn::NONE`] where there is no log.
    fn changed(&mut self, lsn: Lsn);
}
