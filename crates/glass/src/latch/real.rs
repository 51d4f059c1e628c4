//! Latches of one word that spin a little and then sleep.

use parking_lot::lock_api::RawRwLock as _;

use super::Latch;

/// Shared or exclusive.
pub struct RwLatch(parking_lot::RawRwLock);

impl Default for RwLatch {
    fn default() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }
}

#[allow(unsafe_code)]
impl Latch for RwLatch {
    const REAL: bool = true;

    #[inline]
    fn lock_shared(&self) {
        self.0.lock_shared();
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.0.lock_exclusive();
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_shared() };
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_exclusive() };
    }
}
