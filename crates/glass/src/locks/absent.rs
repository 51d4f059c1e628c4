//! No locks: the engine lets one session in at a time.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use std::time::Duration;

use super::{Lockable, Locks, Mode, Statistics, Until};
use crate::latch::Latch;
use crate::{Result, TxId};

/// Keeps nobody apart, and takes no memory.
#[derive(Debug, Default)]
pub struct NoLocks;

impl<L: Latch> Locks<L> for NoLocks {
    const REAL: bool = false;

    type Held = ();

    #[inline(always)]
    fn new(_: Duration) -> Self {
        Self
    }

    #[inline(always)]
    fn lock(&self, _: TxId, (): &mut (), _: Lockable, _: Mode, _: Until) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn try_lock(&self, _: TxId, (): &mut (), _: Lockable, _: Mode, _: Until) -> bool {
        true
    }

    #[inline(always)]
    fn release(&self, _: TxId, (): &mut ()) {}

    #[inline(always)]
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
