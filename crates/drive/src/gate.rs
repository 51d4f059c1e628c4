//! Lets all clients go at once, and tells them when that was.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// A door that opens once.
#[derive(Debug, Default)]
pub struct Gate {
    opened: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Gate {
    /// Waits until it opens; gives the time at which it did.
    pub fn wait(&self) -> Instant {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(time) = *opened {
                return time;
            }
            opened = self
                .changed
                .wait(opened)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens it; the measured part starts at `time`.
    pub fn open(&self, time: Instant) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
        self.changed.notify_all();
    }
}
