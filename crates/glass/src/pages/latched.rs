//! Latched pages, of whatever form: they hold a pin, or borrow one, and give their latch back when they are dropped.
#![expect(
    clippy::inline_always,
    reason = "a pointer, where latches and pool are absent"
)]

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::{Page, Pin, Writable};
use crate::Lsn;
use crate::latch::Latch;

/// A page latched to be read, with others who do. `H` is the pin, or borrows it.
pub struct Shared<P: Pin, H: Borrow<P> = P> {
    pin: H,
    of: PhantomData<P>,
}

impl<P: Pin, H: Borrow<P>> Shared<P, H> {
    #[inline(always)]
    pub(super) fn new(pin: H) -> Self {
        pin.borrow().latch().lock_shared();
        Self {
            pin,
            of: PhantomData,
        }
    }

    /// The pin.
    #[inline(always)]
    pub fn pin(&self) -> &P {
        self.pin.borrow()
    }

    /// Gives the latch back and keeps the pin.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub fn unlatch(self) -> H {
        let this = ManuallyDrop::new(self);
        // SAFETY: taken by `new`; what is left of `this` is not touched again, so that the pin is not dropped twice.
        unsafe {
            this.pin.borrow().latch().unlock_shared();
            std::ptr::read(&raw const this.pin)
        }
    }
}

#[allow(unsafe_code)]
impl<P: Pin, H: Borrow<P>> Deref for Shared<P, H> {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        // SAFETY: pinned, and latched shared, so nobody changes it; where there is no latch, one session is open, which
        // changes nothing while it reads.
        Page::of(unsafe { self.pin.borrow().bytes().as_ref() })
    }
}

#[allow(unsafe_code)]
impl<P: Pin, H: Borrow<P>> Drop for Shared<P, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken by `new`.
        unsafe { self.pin.borrow().latch().unlock_shared() };
    }
}

/// A page latched to be changed, alone. `H` is the pin, or borrows it.
pub struct Exclusive<P: Pin, H: Borrow<P> = P> {
    pin: H,
    of: PhantomData<P>,
}

impl<P: Pin, H: Borrow<P>> Exclusive<P, H> {
    #[inline(always)]
    pub(super) fn new(pin: H) -> Self {
        pin.borrow().latch().lock_exclusive();
        Self {
            pin,
            of: PhantomData,
        }
    }

    /// The pin.
    #[inline(always)]
    pub fn pin(&self) -> &P {
        self.pin.borrow()
    }

    /// Gives the latch back and keeps the pin.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub fn unlatch(self) -> H {
        let this = ManuallyDrop::new(self);
        // SAFETY: taken by `new`; what is left of `this` is not touched again, so that the pin is not dropped twice.
        unsafe {
            this.pin.borrow().latch().unlock_exclusive();
            std::ptr::read(&raw const this.pin)
        }
    }
}

#[allow(unsafe_code)]
impl<P: Pin, H: Borrow<P>> Deref for Exclusive<P, H> {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        // SAFETY: pinned, and latched exclusively or of the only session, which has it latched once.
        Page::of(unsafe { self.pin.borrow().bytes().as_ref() })
    }
}

#[allow(unsafe_code)]
impl<P: Pin, H: Borrow<P>> DerefMut for Exclusive<P, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Page {
        // SAFETY: as above.
        Page::of_mut(unsafe { self.pin.borrow().bytes().as_mut() })
    }
}

impl<P: Pin, H: Borrow<P>> Writable for Exclusive<P, H> {
    #[inline(always)]
    fn changed(&mut self, lsn: Lsn) {
        if lsn != Lsn::NONE {
            self.set_lsn(lsn);
        }
        self.pin.borrow().touched(lsn);
    }
}

#[allow(unsafe_code)]
impl<P: Pin, H: Borrow<P>> Drop for Exclusive<P, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken by `new`.
        unsafe { self.pin.borrow().latch().unlock_exclusive() };
    }
}
