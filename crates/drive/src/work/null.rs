//! Operations that do nothing: what is measured is the loop around them.

use super::{Plan, Work};
use crate::backend::Backend;
use crate::failure::{Failure, OperationError};

/// Nothing, again and again; or, where there is nothing to load, not even that.
#[derive(Clone, Copy, Debug)]
pub struct NullRun {
    /// Whether there is anything to do.
    pub idle: bool,
}

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
        _: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        Ok(*self)
    }
}

impl Work for NullRun {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        (!self.idle).then_some(0)
    }

    #[inline]
    fn perform(&mut self) -> Result<u32, OperationError> {
        Ok(1)
    }
}
