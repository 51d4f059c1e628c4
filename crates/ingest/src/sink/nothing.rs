//! No store: what the loader costs by itself.

use dyno_sql::{Interrupter, Result};

use super::Sink;
use crate::batch::{Batch, Counts};

/// Takes everything.
#[derive(Default)]
pub struct Nothing(Interrupter);

impl Sink for Nothing {
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()> {
        *done = batch.counts.clone();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        Ok(())
    }

    fn interrupter(&self) -> Interrupter {
        self.0.clone()
    }
}
