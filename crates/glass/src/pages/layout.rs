//! What each page begins with. The checksum is that of all bytes after it, and is right in the file alone.

use crate::{Lsn, PageId};

/// The bytes of a page's header: checksum (4), kind (1), unused (3), page number (8), log sequence number (8).
pub const HEADER: usize = 24;

/// Where what [`identity`] gives is.
pub(super) const KIND: usize = 4;
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
        self.0[KIND..LSN].copy_from_slice(&identity(kind, id));
    }

    /// Writes bytes into it, as a patch of the log says.
    pub fn write(&mut self, offset: u16, bytes: &[u8]) {
        let offset = usize::from(offset);
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Whether that page was read whole, or was never written.
    pub(super) fn is_of(&self, id: PageId) -> bool {
        self.is_blank() || self.is_sealed() && self.id() == id
    }

    /// Whether it was never written: all of it is zero.
    pub(super) fn is_blank(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }

    /// Makes the checksum right.
    pub(super) fn seal(&mut self) {
        let sum = self.checksum();
        self.0[..KIND].copy_from_slice(&sum.to_le_bytes());
    }

    /// Whether it is what was written.
    pub(super) fn is_sealed(&self) -> bool {
        self.0[..KIND] == self.checksum().to_le_bytes()
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.0[KIND..])
    }

    #[inline]
    pub(super) fn u64_at(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }
}

/// The bytes of a header that say what the page is.
pub(super) fn identity(kind: PageKind, id: PageId) -> [u8; LSN - KIND] {
    let mut bytes = [0; LSN - KIND];
    bytes[0] = kind as u8;
    bytes[ID - KIND..].copy_from_slice(&id.0.to_le_bytes());
    bytes
}
