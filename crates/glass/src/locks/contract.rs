//! What the rest of the engine knows of locks.

use std::time::Duration;

use super::{Lockable, Mode, Statistics, Until};
use crate::latch::Latch;
use crate::{Result, TxId};

/// Who may do what at the same time.
pub trait Locks<L: Latch>: Sized + Send + Sync + 'static {
    /// Whether anybody is kept apart.
    const REAL: bool;

    /// What a transaction holds.
    type Held: Default + Send;

    /// With no locks yet; nobody waits for one longer than `patience`, [`PATIENCE`] as a rule.
    fn new(patience: Duration) -> Self;

    /// Waits for a lock. [`crate::Error::Deadlock`] where others wait for this transaction, directly or not, and
    /// [`crate::Error::LockTimeout`] where it takes longer than it may. No latch of a page is held by the caller.
    fn lock(
        &self,
        tx: TxId,
        held: &mut Self::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> Result<()>;

    /// Takes the lock if nobody has to be waited for: asked under a page's latch, which must be given back before waiting.
    fn try_lock(
        &self,
        tx: TxId,
        held: &mut Self::Held,
        what: Lockable,
        mode: Mode,
        until: Until,
    ) -> bool;

    /// Gives back all that a transaction holds.
    fn release(&self, tx: TxId, held: &mut Self::Held);

    /// What has happened so far.
    fn statistics(&self) -> Statistics;
}
