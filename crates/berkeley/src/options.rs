//! What a store is opened with.

/// Which of the library's products a store is, by the parts of the library that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Product {
    /// B-trees over a page cache.
    DataStore,
    /// As that, and a lock for each B-tree that many may read or one write. A call is whole, several are not.
    Concurrent,
    /// Transactions: a log and, unless they are left out, locks on pages.
    #[default]
    Transactional,
}

/// Where the log of transactions goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// Nowhere: into memory that is used again and again.
    Memory,
    /// Written when a transaction commits, and synced by the kernel when it likes.
    Written,
    /// Synced before a commit returns.
    #[default]
    Synced,
}

/// What a store is opened with. What its product has no use for is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each a switch of the library
pub struct Options {
    /// Which parts of the library it has.
    pub product: Product,
    /// Of the page cache, at least; the library adds a quarter to less than 500 MB.
    pub cache_bytes: u64,
    /// Of B-trees that are made, a power of two from 512 to 65,536; others have what they were made with.
    pub page_bytes: u32,
    /// Of B-trees that are made: whether each page has a checksum, which is looked at whenever it is read.
    pub checksums: bool,
    /// Of transactions.
    pub log: Log,
    /// Whether transactions lock what they read and write. Without locks there is one session at a time.
    pub locks: bool,
    /// Whether the store's structures are guarded, so that several sessions can use them. Without there is one.
    pub mutexes: bool,
    /// Whether files that are not there are made.
    pub create: bool,
    /// Whether nothing is to be written.
    pub read_only: bool,
}

impl Options {
    /// Whether there is a log that outlasts the process.
    #[must_use]
    pub const fn keeps_log(&self) -> bool {
        matches!(self.product, Product::Transactional) && !matches!(self.log, Log::Memory)
    }

    /// Whether several sessions can be open at a time.
    #[must_use]
    pub const fn takes_several(&self) -> bool {
        self.mutexes && (self.locks || !matches!(self.product, Product::Transactional))
    }
}

/// How a store is set, as the library says once it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// By the parts that were initialised.
    pub product: Product,
    /// Of the page cache.
    pub cache_bytes: u64,
    /// Of the first B-tree.
    pub page_bytes: u32,
    /// Of the first B-tree.
    pub checksums: bool,
    /// Of transactions; `None` where there are none.
    pub log: Option<Log>,
    /// Whether there is a table of locks.
    pub locks: bool,
    /// Whether handles are free-threaded, which is what mutexes are made for.
    pub mutexes: bool,
}
