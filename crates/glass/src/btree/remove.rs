//! Entries are taken out, and nodes that have none any more.

use super::gate::{Gate, Step};
use super::node::{Entry, Node, number};
use super::{Held, Tree};
use crate::keys::Keys;
use crate::latch::Latch;
use crate::log::{Change, Log, Undo};
use crate::pages::{Page, Pages, Writable};
use crate::{Chain, Error, Lsn, PageId, Result, Rid};

impl<'e, K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'e, K, L, P, G> {
    /// Takes an entry out. [`Error::Missing`] where the index does not have it, or has the key for another record. Asks for the gate
    /// of the entry that was next to it.
    pub fn remove<H: Gate>(
        &self,
        key: &[u8],
        rid: Rid,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<()> {
        self.check(key)?;
        let mut step = self.remove_from_leaf(key, rid, gate, chain)?;
        loop {
            step = match step {
                Step::Done => return Ok(()),
                Step::Structure => self.remove_with_leaf(key, rid, gate, chain)?,
                Step::Wait(closed) => {
                    closed.wait(gate)?;
                    self.remove_from_leaf(key, rid, gate, chain)?
                }
                Step::Again => self.remove_from_leaf(key, rid, gate, chain)?,
            };
        }
    }

    #[inline]
    fn remove_from_leaf<H: Gate>(
        &self,
        key: &[u8],
        rid: Rid,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let mut leaf = self.leaf_to_change(key)?;
        let place = self.place_of(&leaf, key, rid)?;
        if leaf.count() == 1 && leaf.id() != self.root {
            return Ok(Step::Structure);
        }
        match self.pass_next(&leaf, place + 1, gate)? {
            None => self.remove_at(&mut leaf, place, chain),
            Some(closed) => Ok(Step::Wait(closed)),
        }
    }

    #[inline]
    fn place_of(&self, leaf: &Page, key: &[u8], rid: Rid) -> Result<usize> {
        match self.find(leaf, key) {
            Ok(place) if leaf.rid(place) == rid => Ok(place),
            _ => Err(Error::Missing("the entry to be taken out of an index")),
        }
    }

    #[inline]
    fn remove_at(
        &self,
        leaf: &mut Held<'e, L, P>,
        place: usize,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let lsn = chain.change(
            Change::LeafDelete {
                page: leaf.id(),
                place: number(place),
            },
            Undo::IndexInsert {
                index: self.index,
                entry: leaf.entry(place),
            },
        )?;
        leaf.remove(place);
        leaf.changed(lsn);
        Ok(Step::Done)
    }

    /// Takes out the last entry of a leaf, and with it the leaf and all nodes above that lead to nothing else: the branch.
    ///
    /// The lowest node that leads to something else, the fork, loses the branch, if there is a neighbour to its left: the leaf that ends
    /// there is chained past the branch's. If there is none, the branch stays where it is, since the leaf further left that leads
    /// to it could only be had from above the fork, and takes over, level by level, what its right neighbour is; that one goes.
    /// Where nothing leads to anything else, the index is empty and its root a leaf again.
    #[cold]
    fn remove_with_leaf<H: Gate>(
        &self,
        key: &[u8],
        rid: Rid,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let mut held = Vec::with_capacity(8);
        let mut node = self.exclusive(self.root)?;
        if node.level() == 0 {
            return Ok(Step::Again);
        }
        while node.level() > 1 {
            let below = self.exclusive(node.child(self.child_of(&node, key)))?;
            held.push(node);
            if below.count() > 1 {
                held.clear();
            }
            node = below;
        }
        let leaf = node.child(self.child_of(&node, key));
        held.push(node);

        // The fork, or the root, is the first; the rest of the branch but its leaf follows.
        let mut branch = held;
        let fork = branch.remove(0);
        let at = self.child_of(&fork, key);
        // Leaves are latched from left to right, so the left one before the branch's.
        let left = match at {
            0 => None,
            at => Some(self.outermost(fork.child(at - 1), |node| node.count() - 1)?),
        };
        let mut leaf = self.exclusive(leaf)?;
        let place = self.place_of(&leaf, key, rid)?;
        if let Some(closed) = self.pass_next(&leaf, place + 1, gate)? {
            return Ok(Step::Wait(closed));
        }
        if leaf.count() > 1 {
            // Others came in between, and nothing needs to be done above.
            return self.remove_at(&mut leaf, place, chain);
        }
        let right = if at == 0 && fork.count() > 1 {
            self.spine(fork.child(1))?
        } else {
            Vec::new()
        };
        branch.push(leaf);
        let entry = Entry::new(key, rid.bits());
        let undo = Undo::IndexInsert {
            index: self.index,
            entry: entry.bytes(),
        };
        let write = |change: Change<'_>| chain.change(change, undo);
        let gone = if let Some(left) = left {
            Self::chain_past(fork, at, left, branch, write)?
        } else if !right.is_empty() {
            Self::take_over(fork, branch, right, write)?
        } else {
            Self::become_empty(fork, branch, write)?
        };
        for page in gone {
            self.pages.free(page, self.log)?;
        }
        Ok(Step::Done)
    }

    /// The leaf at the end of a branch, latched alone.
    fn outermost(&self, top: PageId, way: impl Fn(&Page) -> usize) -> Result<Held<'e, L, P>> {
        let mut node = self.exclusive(top)?;
        while node.level() > 0 {
            node = self.exclusive(node.child(way(&node)))?;
        }
        Ok(node)
    }

    /// The first nodes of each level below a node and itself, all latched.
    fn spine(&self, top: PageId) -> Result<Vec<Held<'e, L, P>>> {
        let mut nodes = vec![self.exclusive(top)?];
        while let Some(node) = nodes.last().filter(|node| node.level() > 0) {
            nodes.push(self.exclusive(node.child(0))?);
        }
        Ok(nodes)
    }

    fn chain_past(
        fork: Held<'e, L, P>,
        at: usize,
        left: Held<'e, L, P>,
        branch: Vec<Held<'e, L, P>>,
        write: impl FnOnce(Change<'_>) -> Result<Lsn>,
    ) -> Result<Vec<PageId>> {
        let next = branch.last().map_or(PageId::NONE, |leaf| leaf.next());
        let (mut fork, mut left) = (Self::draft(fork), Self::draft(left));
        fork.page().remove(at);
        left.page().set_next(next);
        Self::publish(&mut [fork, left], write)?;
        Ok(ids(&branch))
    }

    fn take_over(
        fork: Held<'e, L, P>,
        branch: Vec<Held<'e, L, P>>,
        right: Vec<Held<'e, L, P>>,
        write: impl FnOnce(Change<'_>) -> Result<Lsn>,
    ) -> Result<Vec<PageId>> {
        let mut fork = Self::draft(fork);
        fork.page().remove(1);
        let mut drafts = vec![fork];
        for (ours, theirs) in branch.into_iter().zip(&right) {
            let first = (ours.level() > 0).then(|| ours.child(0));
            let mut draft = Self::draft(ours);
            draft.page().copy_from(theirs);
            if let Some(first) = first {
                draft.page().set_child(0, first);
            }
            drafts.push(draft);
        }
        Self::publish(&mut drafts, write)?;
        Ok(ids(&right))
    }

    fn become_empty(
        root: Held<'e, L, P>,
        branch: Vec<Held<'e, L, P>>,
        write: impl FnOnce(Change<'_>) -> Result<Lsn>,
    ) -> Result<Vec<PageId>> {
        let mut root = Self::draft(root);
        root.page().empty();
        Self::publish(&mut [root], write)?;
        Ok(ids(&branch))
    }
}

fn ids<N: std::ops::Deref<Target = Page>>(nodes: &[N]) -> Vec<PageId> {
    nodes.iter().map(|node| node.id()).collect()
}
