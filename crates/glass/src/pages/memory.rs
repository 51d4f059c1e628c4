//! Memory for pages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::{Error, Result};

/// Of pages' addresses, in bytes: a page of the machine's memory.
pub(super) const ALIGNMENT: usize = 4096;

/// Room for pages of one size, zero at first. Who may read or change which of them is its owner's to know.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    page: usize,
}

// SAFETY: it is plain memory, given out as pointers.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Memory {}

impl Memory {
    /// For so many pages of that size, in bytes.
    #[allow(unsafe_code)]
    pub fn new(pages: usize, page: usize) -> Result<Self> {
        let bytes = pages.checked_mul(page).filter(|bytes| *bytes > 0);
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, ALIGNMENT).ok());
        // SAFETY: the layout's size is not zero.
        let start = layout.and_then(|layout| NonNull::new(unsafe { alloc_zeroed(layout) }));
        match (start, layout) {
            (Some(start), Some(layout)) => Ok(Self {
                start,
                layout,
                page,
            }),
            _ => Err(Error::OutOfMemory("the frames of the buffer pool")),
        }
    }

    /// Where each page begins.
    #[allow(unsafe_code)]
    pub fn pages(&self) -> impl Iterator<Item = NonNull<u8>> {
        let offsets = (0..self.layout.size()).step_by(self.page);
        // SAFETY: within the allocation.
        offsets.map(|offset| unsafe { self.start.add(offset) })
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: allocated so by `new`.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
