//! What clients do: one module a kind of work.

mod load;
mod null;
mod ycsb;

use crate::backend::Backend;
use crate::failure::{Failure, OperationError};

pub use load::YcsbLoad;
pub use null::NullRun;
pub use ycsb::YcsbRun;

/// What all clients of a run share, and how each gets its own work.
pub trait Plan<B: Backend>: Sync {
    /// One client's work.
    type Work<'c>: Work
    where
        Self: 'c,
        B: 'c;

    /// The names of its kinds of operations.
    fn operations(&self) -> Vec<&'static str>;

    /// The work of client number `client`, from 0.
    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c B::Connection,
    ) -> Result<Self::Work<'c>, Failure>;
}

/// One client's operations, one after the other.
pub trait Work {
    /// Makes the next operation ready, outside its time. Gives the place of its kind among the plan's
    /// operations; `None` where nothing is left to do.
    fn prepare(&mut self) -> Option<usize>;

    /// Carries it out. Gives how many operations it stands for; they share its time.
    fn perform(&mut self) -> Result<u64, OperationError>;
}
