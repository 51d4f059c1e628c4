//! Operations that do nothing: what is measured is the loop around them.

use super::{Plan, Work};
use crate::backend::Backend;
use crate::failure::{Failure, OperationError};

/// Nothing, again and again.
#[derive(Debug)]
pub struct NullRun;

impl<B: Backend> Plan<B> for NullRun {
    type Work<'c>
        = NullRun
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        vec!["null"]
    }

    fn work<'c>(
        &'c self,
        _: u32,
        _: &'c B,
        _: &'c B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        Ok(NullRun)
    }
}

impl Work for NullRun {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        Some(0)
    }

    #[inline]
    fn perform(&mut self) -> Result<u64, OperationError> {
        Ok(1)
    }
}
