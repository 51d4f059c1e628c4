//! A value behind a latch.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use super::Latch;

/// A value that is reached through its latch alone. Where the latch is absent, the engine's rule that one session is
/// open at a time is what makes it sound, and no guard of a value may be asked for while another of it lives.
#[derive(Default)]
pub struct Guarded<L, T> {
    latch: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, or by several that only read it: by the latch, or, where that is
// absent, because there is one session.
#[allow(unsafe_code)]
unsafe impl<L: Latch, T: Send> Send for Guarded<L, T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<L: Latch, T: Send + Sync> Sync for Guarded<L, T> {}

impl<L: Latch, T> Guarded<L, T> {
    /// Behind a latch of its own.
    pub fn new(value: T) -> Self {
        Self {
            latch: L::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// To read, with others.
    #[inline]
    pub fn shared(&self) -> Shared<'_, L, T> {
        self.latch.lock_shared();
        Shared(self)
    }

    /// To change, alone.
    #[inline]
    pub fn exclusive(&self) -> Exclusive<'_, L, T> {
        self.latch.lock_exclusive();
        Exclusive(self)
    }
}

/// Held to read.
pub struct Shared<'a, L: Latch, T>(&'a Guarded<L, T>);

#[allow(unsafe_code)]
impl<L: Latch, T> Deref for Shared<'_, L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held shared, so nobody changes it.
        unsafe { &*self.0.value.get() }
    }
}

#[allow(unsafe_code)]
impl<L: Latch, T> Drop for Shared<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken when this was made.
        unsafe { self.0.latch.unlock_shared() };
    }
}

/// Held to change.
pub struct Exclusive<'a, L: Latch, T>(&'a Guarded<L, T>);

#[allow(unsafe_code)]
impl<L: Latch, T> Deref for Exclusive<'_, L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the latch is held exclusively.
        unsafe { &*self.0.value.get() }
    }
}

#[allow(unsafe_code)]
impl<L: Latch, T> DerefMut for Exclusive<'_, L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the latch is held exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

#[allow(unsafe_code)]
impl<L: Latch, T> Drop for Exclusive<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken when this was made.
        unsafe { self.0.latch.unlock_exclusive() };
    }
}
