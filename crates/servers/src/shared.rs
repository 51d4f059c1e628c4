//! Servers that several tests use.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One for all tests that run at the same time and leave it as it is; it ends with the last of them.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// None is started yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// The one that runs, or a new one.
    pub fn get(&self, start: impl FnOnce() -> T) -> Arc<T> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.upgrade().unwrap_or_else(|| {
            let started = Arc::new(start());
            *place = Arc::downgrade(&started);
            started
        })
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}
