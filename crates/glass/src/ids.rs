//! What things are called by.

/// A page: its number in the file, or its address where there is no buffer pool. 48 bits; 0 is no page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl PageId {
    /// No page.
    pub const NONE: Self = Self(0);
}

/// A record: its page and its slot there. It never changes while the record lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rid(u64);

impl Rid {
    /// The record in `slot` of `page`.
    #[must_use]
    pub const fn new(page: PageId, slot: u16) -> Self {
        Self(page.0 << 16 | slot as u64)
    }

    /// As [`Self::bits`] gave it. Of other bits nothing is to be had but an error, or some other record.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As one number, for indexes to hold.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Its page.
    #[must_use]
    pub const fn page(self) -> PageId {
        PageId(self.0 >> 16)
    }

    /// Its slot.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "its lowest bits")]
    pub const fn slot(self) -> u16 {
        self.0 as u16
    }
}

/// A place in the log, in bytes from its very beginning; those after it are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before everything.
    pub const NONE: Self = Self(0);
}

/// A transaction; those that began later have larger ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxId(pub u64);

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u16);

/// An index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub u16);
