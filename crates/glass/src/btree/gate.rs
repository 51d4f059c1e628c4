//! What keeps a transaction from a place of an index: others' locks.

#![expect(clippy::inline_always, reason = "what is absent costs nothing")]

use crate::Result;
use crate::locks::Lockable;

/// Which place of an index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// What was found: it is going to be read, or is in the way of an insertion.
    Entry,
    /// What is next to the gap that was found, into which something is put or which something leaves; or to what was removed.
    Next,
}

/// Says whether a transaction may go on at a place of an index. Whoever makes one knows what the place is gone to for, and so the
/// mode and the length of the locks.
pub trait Gate {
    /// Whether it is ever closed.
    const REAL: bool;

    /// Passes if nobody has to be waited for. Called with latches held.
    fn try_pass(&mut self, what: Lockable, at: At) -> bool;

    /// Waits until it could be passed; asked for again afterwards, where it is still the place. Called without latches.
    fn wait(&mut self, what: Lockable, at: At) -> Result<()>;
}

/// A gate that is always open: where there are no locks, and to undo.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    const REAL: bool = false;

    #[inline(always)]
    fn try_pass(&mut self, _: Lockable, _: At) -> bool {
        true
    }

    #[inline(always)]
    fn wait(&mut self, _: Lockable, _: At) -> Result<()> {
        Ok(())
    }
}

/// A gate that was closed, to be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    what: Lockable,
    at: At,
}

impl Closed {
    pub(super) fn wait(self, gate: &mut impl Gate) -> Result<()> {
        gate.wait(self.what, self.at)
    }
}

/// Passes, or says what is to be waited for.
#[inline]
pub(super) fn pass<H: Gate>(gate: &mut H, what: Lockable, at: At) -> Option<Closed> {
    if !H::REAL || gate.try_pass(what, at) {
        None
    } else {
        Some(Closed { what, at })
    }
}

/// How an attempt to change an index ended, with all latches given back.
pub(super) enum Step {
    /// It is done.
    Done,
    /// Nothing was done: it would split or remove a node.
    Structure,
    /// Nothing was done: a gate has to be waited for.
    Wait(Closed),
    /// Nothing was done: the tree is no longer what it was.
    Again,
}
