//! No latch: the engine lets one session in at a time.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use super::Latch;

/// Keeps nobody out, and takes no memory.
#[derive(Debug, Default)]
pub struct NoLatch;

#[allow(unsafe_code)]
impl Latch for NoLatch {
    const REAL: bool = false;

    #[inline(always)]
    fn lock_shared(&self) {}

    #[inline(always)]
    fn lock_exclusive(&self) {}

    #[inline(always)]
    fn try_lock_exclusive(&self) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self) {}

    #[inline(always)]
    unsafe fn unlock_exclusive(&self) {}
}
