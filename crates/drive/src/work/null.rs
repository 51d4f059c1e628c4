//! Operations that do nothing but draw the number of a key: what is measured is the loop around them.

use std::hint::black_box;

use dyno_load::{Driver, Random};

use super::{Plan, Work};
use crate::backend::Backend;
use crate::failure::Failure;
use crate::job::{Job, Phase};
use dyno_sql::Error as OperationError;

/// Numbers are drawn evenly from so many.
const KEYS: u64 = 1 << 32;

/// Nothing, again and again; or, where there is nothing to load, not even that.
#[derive(Clone, Copy, Debug)]
pub struct NullRun {
    /// Whether there is anything to do.
    idle: bool,
    seed: u64,
    driver: Driver,
}

impl NullRun {
    /// Of this job.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        Self {
            idle: job.phase != Phase::Run,
            seed: job.seed,
            driver: job.driver,
        }
    }
}

impl<B: Backend> Plan<B> for NullRun {
    type Work<'c>
        = NullClient
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        vec!["null"]
    }

    fn work<'c>(
        &'c self,
        client: u32,
        _: &'c B,
        _: &'c mut B::Connection,
    ) -> Result<NullClient, Failure> {
        let number = u64::from(client) * self.driver.of + self.driver.number;
        Ok(NullClient {
            idle: self.idle,
            rng: Random::new(self.seed, number),
        })
    }
}

/// One client that does nothing.
#[derive(Debug)]
pub struct NullClient {
    idle: bool,
    rng: Random,
}

impl Work for NullClient {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        // The compiler is not to leave it out.
        black_box(self.rng.below(KEYS));
        (!self.idle).then_some(0)
    }

    #[inline]
    fn perform(&mut self) -> Result<u32, OperationError> {
        Ok(1)
    }
}
