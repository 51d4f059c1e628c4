//! The file's first page, and the chain of free ones.
//!
//! After its header the first page has: magic (8 bytes), version (4), bytes of a page (4), number of the page after the
//! last (8), the first free page (8), the page that users begin with (8); all little endian. A free page has the
//! number of the next free one (8) after its header, and zeros, so that a page that is taken from the chain needs to be
//! logged by its header alone. Pages after the last were never written: they are zero in the file.
#![expect(
    clippy::cast_possible_truncation,
    reason = "pages have less than 64 KiB"
)]

use crate::log::Patch;
use crate::pages::layout::{HEADER, KIND, Page, PageKind, identity};
use crate::{Error, PageId, Result};

/// The first page.
pub(super) const META: PageId = PageId(0);

const MAGIC: [u8; 8] = *b"dynoglas";
const VERSION: u32 = 1;

const VERSION_AT: usize = HEADER + 8;
const SIZE_AT: usize = HEADER + 12;
const NEXT_AT: usize = HEADER + 16;
const FREE_AT: usize = HEADER + 24;
const ROOT_AT: usize = HEADER + 32;

/// Where a free page says which is the next.
const LINK_AT: usize = HEADER;

/// In the first page, as far as it is needed to know what the rest is.
pub(super) const START: usize = HEADER + 40;

/// Makes the first page of a store without others.
pub(super) fn format(page: &mut Page) {
    let size = page.bytes().len() as u32;
    page.clear(PageKind::Meta, META);
    page.write(HEADER as u16, &MAGIC);
    page.write(VERSION_AT as u16, &VERSION.to_le_bytes());
    page.write(SIZE_AT as u16, &size.to_le_bytes());
    page.write(NEXT_AT as u16, &1_u64.to_le_bytes());
}

/// Whether a store of such pages begins with these bytes.
pub(super) fn check(start: &[u8; START], size: usize) -> Result<()> {
    let u32_at =
        |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
    if start[HEADER..VERSION_AT] != MAGIC {
        return Err(Error::Corrupt(
            None,
            "the file is not one of glass".to_owned(),
        ));
    }
    if u32_at(VERSION_AT) != VERSION {
        let found = u32_at(VERSION_AT);
        return Err(Error::Refused(format!(
            "the file's format is {found}, and {VERSION} is what can be read"
        )));
    }
    if u32_at(SIZE_AT) as usize != size {
        let found = u32_at(SIZE_AT);
        return Err(Error::Refused(format!(
            "the file's pages have {found} bytes, not {size}"
        )));
    }
    Ok(())
}

/// What the first page says.
pub(super) struct Meta<'a>(pub &'a Page);

impl Meta<'_> {
    /// The page after the last.
    pub fn next(&self) -> PageId {
        PageId(self.0.u64_at(NEXT_AT))
    }

    /// The first free one, or none.
    pub fn first_free(&self) -> PageId {
        PageId(self.0.u64_at(FREE_AT))
    }

    /// The one to begin with, or none.
    pub fn root(&self) -> PageId {
        PageId(self.0.u64_at(ROOT_AT))
    }
}

/// The free page after that one, or none. An error where it is not free: the chain is damaged.
pub(super) fn next_free(page: &Page, id: PageId) -> Result<PageId> {
    if page.kind() == PageKind::Free && page.id() == id {
        Ok(PageId(page.u64_at(LINK_AT)))
    } else {
        Err(Error::Corrupt(
            Some(id),
            "is among the free pages and is used".to_owned(),
        ))
    }
}

/// The page after the last is that one.
pub(super) fn set_next(next: &[u8; 8]) -> Patch<'_> {
    patch(META, NEXT_AT, next)
}

/// The first free page is that one.
pub(super) fn set_first_free(first: &[u8; 8]) -> Patch<'_> {
    patch(META, FREE_AT, first)
}

/// The page to begin with is that one.
pub(super) fn set_root(root: &[u8; 8]) -> Patch<'_> {
    patch(META, ROOT_AT, root)
}

/// The page is of that kind, as [`kind_of`] says.
pub(super) fn set_kind(page: PageId, kind: &[u8]) -> Patch<'_> {
    patch(page, KIND, kind)
}

/// The free page after that one is another.
pub(super) fn set_link(page: PageId, next: &[u8; 8]) -> Patch<'_> {
    patch(page, LINK_AT, next)
}

/// There are zeros after what says which free page is the next; of these as many as there is room for.
pub(super) fn set_rest<const PAGE: usize>(page: PageId, zeros: &[u8; PAGE]) -> Patch<'_> {
    patch(page, LINK_AT + 8, &zeros[LINK_AT + 8..])
}

/// What [`set_kind`] writes.
pub(super) fn kind_of(kind: PageKind, page: PageId) -> [u8; 12] {
    identity(kind, page)
}

fn patch(page: PageId, offset: usize, bytes: &[u8]) -> Patch<'_> {
    Patch {
        page,
        offset: offset as u16,
        bytes,
    }
}
