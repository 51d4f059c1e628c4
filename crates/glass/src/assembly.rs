//! Which form of each component makes an engine: the one place where it is chosen.

use crate::calls::Calls;
use crate::catalogue::Catalogue;
use crate::keys::Keys;
use crate::latch::Latch;
use crate::locks::Locks;
use crate::log::Log;
use crate::pages::Pages;
use crate::transactions::Transactions;

/// An engine's components.
pub trait Assembly: Sized + Send + Sync + 'static {
    /// Of a page, in bytes.
    const PAGE: usize;

    /// Whether the boundaries of components are kept as calls, for profiles to see.
    const OUT_OF_LINE: bool;

    /// How keys are compared.
    type Keys: Keys;

    /// What guards what threads share.
    type Latch: Latch;

    /// Where pages are.
    type Pages: Pages<Self::Latch>;

    /// Where changes are written down.
    type Log: Log<Self::Latch>;

    /// What keeps transactions apart.
    type Locks: Locks<Self::Latch>;

    /// What a transaction is.
    type Transactions: Transactions;

    /// Who knows tables and indexes.
    type Catalogue: Catalogue;

    /// Who is told of calls.
    type Calls: Calls;
}
