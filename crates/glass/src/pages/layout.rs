//! What each page begins with.

use crate::{Lsn, PageId};

/// The bytes of a page's header: checksum (4), kind (1), unused (3), page number (8), log sequence number (8).
pub const HEADER: usize = 24;

const KIND: usize = 4;
const ID: usize = 8;
const LSN: usize = 16;

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Nothing.
    Free = 0,
    /// The file's first page.
    Meta = 1,
    /// Records.
    Heap = 2,
    /// The entries of an index.
    Leaf = 3,
    /// The inner nodes of an index.
    Inner = 4,
}

/// A page's bytes, as many as the assembly's pages have.
#[repr(transparent)]
pub struct Page([u8]);

impl Page {
    /// Bytes as a page. There are [`HEADER`] of them at least.
    #[allow(unsafe_code)]
    #[must_use]
    pub fn of(bytes: &[u8]) -> &Self {
        debug_assert!(bytes.len() >= HEADER);
        // SAFETY: the same bytes under another name; `repr(transparent)`.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }

    /// As [`Self::of`], to be changed.
    #[allow(unsafe_code)]
    pub fn of_mut(bytes: &mut [u8]) -> &mut Self {
        debug_assert!(bytes.len() >= HEADER);
        // SAFETY: as above.
        unsafe { &mut *(std::ptr::from_mut(bytes) as *mut Self) }
    }

    /// All of it.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// All of it, to be changed.
    #[inline]
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// What it is used for; `Free` where that says nothing that is known.
    #[must_use]
    pub const fn kind(&self) -> PageKind {
        match self.0[KIND] {
            1 => PageKind::Meta,
            2 => PageKind::Heap,
            3 => PageKind::Leaf,
            4 => PageKind::Inner,
            _ => PageKind::Free,
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> PageId {
        PageId(self.u64_at(ID))
    }

    /// Up to where of the log its changes are in it.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.u64_at(LSN))
    }

    /// Says up to where.
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.0[LSN..LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
    }

    /// Makes it an empty page of that kind and number.
    pub fn clear(&mut self, kind: PageKind, id: PageId) {
        self.0.fill(0);
        self.0[KIND] = kind as u8;
        self.0[ID..ID + 8].copy_from_slice(&id.0.to_le_bytes());
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }
}
