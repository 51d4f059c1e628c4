//! Memory for pages.
//!
//! Pages of 8 or 32 KiB that follow each other without a gap have their headers, and what else is at the same offset in
//! each, in the same few sets of the processor's caches, of which eight or so lines are kept. So there is a line between
//! any two.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::{Error, Result};

/// Of a line of the processor's caches, in bytes. Pages begin with one.
pub(super) const LINE: usize = 64;

/// Room for pages of one size, zero at first. Who may read or change which of them is its owner's to know.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// From where a page begins to where the next does, in bytes.
    stride: usize,
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
        let stride = page.next_multiple_of(LINE) + LINE;
        let bytes = pages.checked_mul(stride).filter(|bytes| *bytes > 0);
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, LINE).ok());
        // SAFETY: the layout's size is not zero.
        let start = layout.and_then(|layout| NonNull::new(unsafe { alloc_zeroed(layout) }));
        match (start, layout) {
            (Some(start), Some(layout)) => Ok(Self {
                start,
                layout,
                stride,
            }),
            _ => Err(Error::OutOfMemory("the frames of the buffer pool")),
        }
    }

    /// Where each page begins.
    #[allow(unsafe_code)]
    pub fn pages(&self) -> impl Iterator<Item = NonNull<u8>> {
        let offsets = (0..self.layout.size()).step_by(self.stride);
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
