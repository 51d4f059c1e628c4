//! Indexes: B+trees, which find records by their keys.
//!
//! Nodes are pages of entries of one length, sorted (`node`); all levels but the lowest say where to go on, and the
//! leaves, chained from left to right, have keys and records. Keys are unique.
//!
//! **Latches.** Whoever goes down holds a node until the one below is latched, and goes on from a leaf to the next one in the same
//! way, so that nobody comes to a page that is no longer what led there. They are taken from the root down and, among leaves,
//! from left to right; never otherwise, so that nobody waits in a circle. Changes go down with shared latches first and latch the
//! leaf alone exclusively; one that would split or remove nodes begins again at the root with exclusive latches, and gives back
//! those above a node that the change cannot pass (Bayer and Schkolnick, "Concurrency of operations on B-trees", Acta
//! Informatica 1977).
//!
//! **Nodes** are removed when they are empty and not before (Johnson and Shasha, "B-trees with inserts and deletes: why
//! free-at-empty is better than merge-at-half", 1993). The root never moves: when it is split, its entries move to two new nodes.
//!
//! **Locks** are asked for through a [`Gate`] while the leaf is latched, for an entry or the one next to a gap (ARIES/IM, Mohan and
//! Levine 1992). A gate that is closed is waited for with no latch held, and then all is searched anew.
//!
//! **Log.** An entry is written down with what undoes it, which is logical: by then it may be in another leaf. A split is one
//! record that nothing undoes. So is, in effect, the removal of nodes: it is one record with that of the last entry below them
//! (`draft`), undone by putting that entry in again. Were these two records, a crash between them could leave an empty leaf.
//! A page is changed after its record is in the log, so that nothing has happened where the log refuses.
//!
//! Invariants, looked at by [`Tree::verify`]: keys ascend within each node and lie between the bounds that the nodes above give;
//! children are one level below their parent; no node is empty but a root that is a leaf; leaves are chained in their order. They hold
//! after each record of the log, so that recovery finds them too.

use std::cmp::Ordering;
use std::marker::PhantomData;

use crate::keys::{Keys, LONGEST, Shape};
use crate::latch::Latch;
use crate::locks::Lockable;
use crate::log::Log;
use crate::pages::{Exclusive, Page, PageKind, Pages, Pin, Shared};
use crate::{Chain, Error, IndexId, PageId, Result, Rid};

mod draft;
mod gate;
mod insert;
mod node;
mod redo;
mod remove;
mod scan;
#[cfg(test)]
mod tests;
mod verify;

pub use gate::{At, Gate, Open};
pub use redo::redo;

use gate::{Closed, pass};
pub(crate) use node::most_levels;

use node::Node;

/// A node latched to be read.
type Seen<'e, L, P> = Shared<<P as Pages<L>>::Pin<'e>>;

/// A node latched to be changed.
type Held<'e, L, P> = Exclusive<<P as Pages<L>>::Pin<'e>>;

/// An index at hand. It holds nothing: made for a call, forgotten after it.
pub struct Tree<'e, K, L, P, G> {
    pages: &'e P,
    log: &'e G,
    shape: &'e Shape,
    index: IndexId,
    root: PageId,
    forms: PhantomData<(K, L)>,
}

impl<K, L, P, G> Clone for Tree<'_, K, L, P, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, L, P, G> Copy for Tree<'_, K, L, P, G> {}

impl<'e, K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'e, K, L, P, G> {
    /// The index with that root.
    #[inline]
    #[must_use]
    pub const fn new(
        pages: &'e P,
        log: &'e G,
        shape: &'e Shape,
        index: IndexId,
        root: PageId,
    ) -> Self {
        Self {
            pages,
            log,
            shape,
            index,
            root,
            forms: PhantomData,
        }
    }

    /// Makes an index with no entries, and gives its root. [`Error::Refused`] where the shape's keys have no byte or more than
    /// [`LONGEST`].
    pub fn create(
        pages: &'e P,
        log: &'e G,
        shape: &'e Shape,
        index: IndexId,
        chain: &mut impl Chain,
    ) -> Result<PageId> {
        Self::create_of(pages, log, shape, index, None, chain)
    }

    // Nodes of few entries make deep trees of few of them, for tests.
    fn create_of(
        pages: &'e P,
        log: &'e G,
        shape: &'e Shape,
        index: IndexId,
        most: Option<usize>,
        chain: &mut impl Chain,
    ) -> Result<PageId> {
        if shape.length() == 0 || shape.length() > LONGEST {
            return Err(Error::Refused(format!(
                "keys have 1 to {LONGEST} bytes, not {}",
                shape.length()
            )));
        }
        let pin = pages.allocate(PageKind::Leaf, log)?;
        let root = pin.id();
        let mut draft = Self::draft(pin.into_exclusive());
        let page = draft.page();
        let most = most.unwrap_or_else(|| page.room_for(shape.length()));
        page.format(index, shape.length(), most, 0);
        Self::publish(&mut [draft], |change| chain.structure(change))?;
        Ok(root)
    }

    /// The record with that key.
    pub fn lookup<H: Gate>(&self, key: &[u8], gate: &mut H) -> Result<Option<Rid>> {
        self.check(key)?;
        loop {
            let closed = {
                let leaf = self.leaf(|node| self.child_of(node, key))?;
                match self.find(&leaf, key) {
                    Ok(place) => {
                        let rid = leaf.rid(place);
                        match pass(gate, Lockable::Record(rid), At::Entry) {
                            None => return Ok(Some(rid)),
                            Some(closed) => closed,
                        }
                    }
                    Err(place) => match self.pass_next(&leaf, place, gate)? {
                        None => return Ok(None),
                        Some(closed) => closed,
                    },
                }
            };
            closed.wait(gate)?;
        }
    }

    #[inline]
    fn check(&self, key: &[u8]) -> Result<()> {
        if key.len() == self.shape.length() {
            Ok(())
        } else {
            Err(Error::Refused(format!(
                "a key of {} bytes is none of an index whose keys have {}",
                key.len(),
                self.shape.length()
            )))
        }
    }

    #[inline]
    fn shared(&self, page: PageId) -> Result<Seen<'e, L, P>> {
        let node = self.pages.pin(page)?.into_shared();
        debug_assert!(
            node.is_node_of(self.index),
            "{page:?} is no node of {:?}",
            self.index
        );
        Ok(node)
    }

    #[inline]
    fn exclusive(&self, page: PageId) -> Result<Held<'e, L, P>> {
        let node = self.pages.pin(page)?.into_exclusive();
        debug_assert!(
            node.is_node_of(self.index),
            "{page:?} is no node of {:?}",
            self.index
        );
        Ok(node)
    }

    /// Goes down to a leaf, by the child that `way` takes at each node.
    #[inline]
    fn leaf(&self, mut way: impl FnMut(&Page) -> usize) -> Result<Seen<'e, L, P>> {
        let mut node = self.shared(self.root)?;
        while node.level() > 0 {
            // The node above is given back when the one below is had.
            node = self.shared(node.child(way(&node)))?;
        }
        Ok(node)
    }

    /// Goes down to the leaf where a key belongs, and latches that one exclusively.
    #[inline]
    fn leaf_to_change(&self, key: &[u8]) -> Result<Held<'e, L, P>> {
        loop {
            let mut node = self.shared(self.root)?;
            if node.level() == 0 {
                drop(node);
                let leaf = self.exclusive(self.root)?;
                if leaf.level() == 0 {
                    return Ok(leaf);
                }
                // It was split in between.
                continue;
            }
            while node.level() > 1 {
                node = self.shared(node.child(self.child_of(&node, key)))?;
            }
            return self.exclusive(node.child(self.child_of(&node, key)));
        }
    }

    /// The child below which a key belongs: the last whose key is not above it, or the first.
    #[inline]
    fn child_of(&self, node: &Page, key: &[u8]) -> usize {
        self.last(node, key, Ordering::is_le)
    }

    /// Where a key is in a leaf, or before which entry it would be.
    #[inline]
    fn find(&self, leaf: &Page, key: &[u8]) -> std::result::Result<usize, usize> {
        if leaf.count() == 0 {
            return Err(0);
        }
        let place = self.last(leaf, key, Ordering::is_le);
        match K::compare(self.shape, leaf.key(place), key) {
            Ordering::Less => Err(place + 1),
            Ordering::Equal => Ok(place),
            Ordering::Greater => Err(place),
        }
    }

    /// The last entry whose key is so related to this one as all those before it are; the first where none is. Never looks
    /// at the first entry, whose key means nothing in an inner node.
    #[inline]
    fn last(&self, node: &Page, key: &[u8], so: impl Fn(Ordering) -> bool) -> usize {
        let length = self.shape.length();
        let (entries, stride) = node.entries(length);
        let (mut first, mut left) = (0, node.count());
        while left > 1 {
            let half = left / 2;
            let at = (first + half) * stride;
            if so(K::compare(self.shape, &entries[at..at + length], key)) {
                first += half;
            }
            left -= half;
        }
        first
    }

    /// Passes the gate of the entry next to the gap before `place`, which may be the first of the next leaf. That leaf stays
    /// latched while the gate is asked: nothing comes in between.
    #[inline]
    fn pass_next<H: Gate>(
        &self,
        leaf: &Page,
        place: usize,
        gate: &mut H,
    ) -> Result<Option<Closed>> {
        if !H::REAL {
            return Ok(None);
        }
        if place < leaf.count() {
            return Ok(pass(gate, Lockable::Record(leaf.rid(place)), At::Next));
        }
        if leaf.next() == PageId::NONE {
            return Ok(pass(gate, Lockable::End(self.index), At::Next));
        }
        let next = self.shared(leaf.next())?;
        if next.count() == 0 {
            return Err(empty(&next));
        }
        Ok(pass(gate, Lockable::Record(next.rid(0)), At::Next))
    }
}

/// No leaf is empty that is not alone.
fn empty(leaf: &Page) -> Error {
    Error::Corrupt(Some(leaf.id()), "a leaf of several has no entry".into())
}
