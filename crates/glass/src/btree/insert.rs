//! Entries are put in, and nodes are split.

use super::draft::Draft;
use super::gate::{At, Closed, Gate, Step, pass};
use super::node::{Entry, Node, number};
use super::{Held, Tree};
use crate::keys::Keys;
use crate::latch::Latch;
use crate::locks::Lockable;
use crate::log::{Change, Log, Undo};
use crate::pages::{Page, Pages, Pin, Writable};
use crate::{Chain, Error, Result, Rid};

impl<'e, K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'e, K, L, P, G> {
    /// Puts an entry in. [`Error::Duplicate`] where the index has that key. Asks for the gate of the next entry; where the key is
    /// there, of that entry.
    pub fn insert<H: Gate>(
        &self,
        key: &[u8],
        rid: Rid,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<()> {
        self.check(key)?;
        let entry = Entry::new(key, rid.bits());
        let mut step = self.insert_into_leaf(key, &entry, gate, chain)?;
        loop {
            step = match step {
                Step::Done => return Ok(()),
                Step::Structure => self.insert_and_split(key, &entry, gate, chain)?,
                Step::Wait(closed) => {
                    closed.wait(gate)?;
                    self.insert_into_leaf(key, &entry, gate, chain)?
                }
                Step::Again => self.insert_into_leaf(key, &entry, gate, chain)?,
            };
        }
    }

    #[inline]
    fn insert_into_leaf<H: Gate>(
        &self,
        key: &[u8],
        entry: &Entry,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let mut leaf = self.leaf_to_change(key)?;
        if leaf.is_full() {
            return Ok(Step::Structure);
        }
        match self.place_for(&leaf, key, gate)? {
            Ok(place) => self.insert_at(&mut leaf, place, entry, chain),
            Err(closed) => Ok(Step::Wait(closed)),
        }
    }

    /// Where a new key goes, if nothing is in its way.
    #[inline]
    fn place_for<H: Gate>(
        &self,
        leaf: &Page,
        key: &[u8],
        gate: &mut H,
    ) -> Result<std::result::Result<usize, Closed>> {
        match self.find(leaf, key) {
            // Once the gate is passed, whoever put it there has ended well.
            Ok(place) => match pass(gate, Lockable::Record(leaf.rid(place)), At::Entry) {
                None => Err(Error::Duplicate),
                Some(closed) => Ok(Err(closed)),
            },
            Err(place) => Ok(match self.pass_next(leaf, place, gate)? {
                None => Ok(place),
                Some(closed) => Err(closed),
            }),
        }
    }

    #[inline]
    fn insert_at(
        &self,
        leaf: &mut Held<'e, L, P>,
        place: usize,
        entry: &Entry,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let entry = entry.bytes();
        let lsn = chain.change(
            Change::LeafInsert {
                page: leaf.id(),
                place: number(place),
                entry,
            },
            Undo::IndexDelete {
                index: self.index,
                entry,
            },
        )?;
        leaf.insert(place, entry);
        leaf.changed(lsn);
        Ok(Step::Done)
    }

    /// Goes down with exclusive latches, holding on to full nodes and the one above them, and splits those from above to below:
    /// whatever was split when something goes wrong, the tree is whole.
    #[cold]
    fn insert_and_split<H: Gate>(
        &self,
        key: &[u8],
        entry: &Entry,
        gate: &mut H,
        chain: &mut impl Chain,
    ) -> Result<Step> {
        let mut held = Vec::with_capacity(8);
        let mut node = self.exclusive(self.root)?;
        while node.level() > 0 {
            let below = self.exclusive(node.child(self.child_of(&node, key)))?;
            held.push(node);
            if !below.is_full() {
                held.clear();
            }
            node = below;
        }
        if let Err(closed) = self.place_for(&node, key, gate)? {
            return Ok(Step::Wait(closed));
        }
        held.push(node);

        let mut held = held.into_iter();
        let Some(mut node) = held.next() else {
            return Ok(Step::Again);
        };
        if node.is_full() {
            // Every other node that is held has one with room above it.
            node = self.split_root(node, key, chain)?;
        }
        for below in held {
            node = self.split(node, below, key, chain)?;
        }
        match self.find(&node, key) {
            Ok(_) => Err(Error::Duplicate),
            Err(place) => self.insert_at(&mut node, place, entry, chain),
        }
    }

    /// Where the entry that a split is for will be.
    fn place_in(&self, node: &Page, key: &[u8]) -> usize {
        if node.level() == 0 {
            self.find(node, key).unwrap_or_else(|place| place)
        } else {
            self.child_of(node, key) + 1
        }
    }

    fn fresh(&self, like: &Page) -> Result<Draft<Held<'e, L, P>>> {
        let page = self.pages.allocate(like.kind(), self.log)?;
        Ok(Self::draft(page.into_exclusive()))
    }

    /// Splits a full node below one with room, and gives the half where the key belongs.
    fn split(
        &self,
        above: Held<'e, L, P>,
        node: Held<'e, L, P>,
        key: &[u8],
        chain: &mut impl Chain,
    ) -> Result<Held<'e, L, P>> {
        let cut = node.cut(self.place_in(&node, key));
        let place = self.child_of(&above, key) + 1;
        let mut right = self.fresh(&node)?;
        let (mut above, mut left) = (Self::draft(above), Self::draft(node));
        let page = right.page();
        left.page().move_to(cut, page);
        if page.level() == 0 {
            left.page().set_next(page.id());
        }
        let entry = Entry::new(page.key(0), page.id().0);
        above.page().insert(place, entry.bytes());
        let mut drafts = [above, left, right];
        Self::publish(&mut drafts, |change| chain.structure(change))?;
        let [_, left, right] = drafts;
        Ok(self.half(left, right, key))
    }

    /// Splits the root, which stays where it is, above its two halves, and gives the half where the key belongs.
    fn split_root(
        &self,
        root: Held<'e, L, P>,
        key: &[u8],
        chain: &mut impl Chain,
    ) -> Result<Held<'e, L, P>> {
        let cut = root.cut(self.place_in(&root, key));
        let (mut left, mut right) = (self.fresh(&root)?, self.fresh(&root)?);
        left.page().copy_from(&root);
        left.page().move_to(cut, right.page());
        let mut root = Self::draft(root);
        if right.page().level() == 0 {
            left.page().set_next(right.page().id());
        }
        root.page().adopt([left.page(), right.page()]);
        let mut drafts = [root, left, right];
        Self::publish(&mut drafts, |change| chain.structure(change))?;
        let [_, left, right] = drafts;
        Ok(self.half(left, right, key))
    }

    fn half(
        &self,
        left: Draft<Held<'e, L, P>>,
        right: Draft<Held<'e, L, P>>,
        key: &[u8],
    ) -> Held<'e, L, P> {
        let (left, right) = (left.into_page(), right.into_page());
        if K::compare(self.shape, right.key(0), key).is_le() {
            right
        } else {
            left
        }
    }
}
