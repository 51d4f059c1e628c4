//! What the rest of the engine knows of latches.

/// A latch that several may hold shared or one exclusively.
#[allow(unsafe_code)]
pub trait Latch: Default + Send + Sync + 'static {
    /// Whether it keeps anybody out.
    const REAL: bool;

    /// Waits for it, shared.
    fn lock_shared(&self);

    /// Waits for it, exclusively.
    fn lock_exclusive(&self);

    /// Takes it exclusively if nobody has it.
    fn try_lock_exclusive(&self) -> bool;

    /// Gives back what [`Self::lock_shared`] took.
    ///
    /// # Safety
    /// The caller holds it so.
    unsafe fn unlock_shared(&self);

    /// Gives back what [`Self::lock_exclusive`] took.
    ///
    /// # Safety
    /// The caller holds it so.
    unsafe fn unlock_exclusive(&self);
}
