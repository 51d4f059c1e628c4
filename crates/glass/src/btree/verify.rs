//! The invariants of an index, looked at.

use super::Tree;
use super::node::Node;
use crate::keys::Keys;
use crate::latch::Latch;
use crate::log::Log;
use crate::pages::{Page, PageKind, Pages, Pin};
use crate::{Error, PageId, Result, Rid};

/// What an index is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of leaves.
    pub entries: u64,
    /// Leaves; all entries are in these.
    pub leaves: u64,
    /// Nodes above them.
    pub inner: u64,
    /// Levels above the leaves.
    pub height: u16,
}

impl<K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'_, K, L, P, G> {
    /// Goes through all nodes and looks at each invariant: [`Error::Corrupt`] names the page where one does not hold. Shows each page and
    /// each entry, in their order. Nobody changes the index meanwhile.
    pub fn verify(
        &self,
        page: impl FnMut(PageId) -> Result<()>,
        entry: impl FnMut(&[u8], Rid) -> Result<()>,
    ) -> Result<Counts> {
        let mut walk = Walk {
            tree: *self,
            counts: Counts::default(),
            next: None,
            page,
            entry,
        };
        walk.node(self.root, None, None, None)?;
        match walk.next {
            Some(next) if next != PageId::NONE => {
                Err(corrupt(next, "it is chained behind the last leaf"))
            }
            _ => Ok(walk.counts),
        }
    }
}

struct Walk<'e, K, L, P, G, F, E> {
    tree: Tree<'e, K, L, P, G>,
    counts: Counts,
    // Which leaf has to be the next, as the one before says.
    next: Option<PageId>,
    page: F,
    entry: E,
}

impl<K, L, P, G, F, E> Walk<'_, K, L, P, G, F, E>
where
    K: Keys,
    L: Latch,
    P: Pages<L>,
    G: Log<L>,
    F: FnMut(PageId) -> Result<()>,
    E: FnMut(&[u8], Rid) -> Result<()>,
{
    /// A node and all below, whose keys are to be `low` or above and below `high`. The levels fall, so it ends.
    fn node(
        &mut self,
        id: PageId,
        level: Option<u16>,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<()> {
        (self.page)(id)?;
        let pin = self.tree.pages.pin(id)?;
        let node = pin.shared();
        self.head(&node, id, level)?;
        self.keys(&node, low, high)?;
        if node.level() == 0 {
            return self.leaf(&node);
        }
        self.counts.inner += 1;
        for place in 0..node.count() {
            let low = if place == 0 {
                low
            } else {
                Some(node.key(place))
            };
            let last = place + 1 == node.count();
            let high = if last {
                high
            } else {
                Some(node.key(place + 1))
            };
            self.node(node.child(place), Some(node.level() - 1), low, high)?;
        }
        Ok(())
    }

    fn head(&mut self, node: &Page, id: PageId, level: Option<u16>) -> Result<()> {
        let kind = if node.level() == 0 {
            PageKind::Leaf
        } else {
            PageKind::Inner
        };
        let wrong = if node.id() != id {
            "it has another page's number"
        } else if node.kind() != kind {
            "its kind is not that of its level"
        } else if node.index() != self.tree.index {
            "it is a node of another index"
        } else if node.key_length() != self.tree.shape.length() {
            "its keys are of another length"
        } else if level.is_some_and(|level| level != node.level()) {
            "it is not one level below its parent"
        } else if node.most() > node.room_for(node.key_length()) || node.count() > node.most() {
            "it has more entries than there is room for"
        } else if node.count() == 0 && (level.is_some() || node.level() > 0) {
            "it has no entry"
        } else {
            if level.is_none() {
                self.counts.height = node.level();
            }
            return Ok(());
        };
        Err(corrupt(id, wrong))
    }

    fn keys(&self, node: &Page, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<()> {
        // The first key of an inner node means nothing.
        let first = usize::from(node.level() > 0);
        let compare = |a: &[u8], b: &[u8]| K::compare(self.tree.shape, a, b);
        for place in first..node.count() {
            let key = node.key(place);
            if place > first && compare(node.key(place - 1), key).is_ge() {
                return Err(corrupt(node.id(), "its keys do not ascend"));
            }
            if low.is_some_and(|low| compare(key, low).is_lt())
                || high.is_some_and(|high| compare(key, high).is_ge())
            {
                return Err(corrupt(
                    node.id(),
                    "a key is outside of the bounds from above",
                ));
            }
        }
        Ok(())
    }

    fn leaf(&mut self, node: &Page) -> Result<()> {
        if self.next.is_some_and(|next| next != node.id()) {
            return Err(corrupt(
                node.id(),
                "it is not chained behind the leaf before",
            ));
        }
        self.next = Some(node.next());
        self.counts.leaves += 1;
        self.counts.entries += node.count() as u64;
        for place in 0..node.count() {
            (self.entry)(node.key(place), node.rid(place))?;
        }
        Ok(())
    }
}

fn corrupt(page: PageId, what: &str) -> Error {
    Error::Corrupt(Some(page), format!("index node: {what}"))
}
