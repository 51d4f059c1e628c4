//! No log: nothing lasts, and nothing is written down.
#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use std::sync::Arc;

use super::{Log, LogFiles, Options, Record, Recovery, Statistics};
use crate::latch::Latch;
use crate::pages::disk::Folder;
use crate::{Lsn, PageId, Result, TxId};

/// Writes nothing down, and takes no memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl<L: Latch> Log<L> for NoLog {
    const REAL: bool = false;

    #[inline(always)]
    fn append(&self, _: TxId, _: Lsn, _: &Record<'_>) -> Result<Lsn> {
        Ok(Lsn::NONE)
    }

    #[inline(always)]
    fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn end(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
}

impl<L: Latch> LogFiles<L> for NoLog {
    fn open(_: Option<Arc<dyn Folder>>, _: &Options) -> Result<(Self, Option<Recovery>)> {
        Ok((Self, None))
    }

    #[inline(always)]
    fn checkpoint(&self, _: impl FnOnce() -> Result<Vec<(PageId, Lsn)>>) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn close(&self) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn grown(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
