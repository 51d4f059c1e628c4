//! A tree of whole numbers with all entries in its leaves (a B+-tree: Comer 1979).
//!
//! Invariants: the keys of a node ascend strictly. All leaves are on one level. An inner node's key is not above any key
//! below it, and above all keys left of it. No node but the root is empty, and an inner root has two children at least.
//! Nodes that became empty are used again; others are never merged (free-at-empty, Johnson and Shasha 1993).
//!
//! The way to the leaf of the last insertion is kept, with the bounds of the keys that belong there: it is the one that would be
//! found anew for any of them. A split and a removal forget it.

use std::ops::RangeInclusive;

/// Entries of a node: with their count they fill four lines of the cache.
const ENTRIES: usize = 21;

/// Levels, at most: nodes are half full when they split, so that these hold 10^12 entries.
const LEVELS: usize = 12;

/// What stands in a node behind its last key.
const BEHIND: u64 = i64::MAX.cast_unsigned();

/// An inner node's values are its children, a leaf's those that were given.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Node {
    keys: [u64; ENTRIES],
    values: [u32; ENTRIES],
    count: u16,
}

impl Node {
    const EMPTY: Self = Self {
        keys: [BEHIND; ENTRIES],
        values: [0; ENTRIES],
        count: 0,
    };

    #[inline]
    fn keys(&self) -> &[u64] {
        &self.keys[..usize::from(self.count).min(ENTRIES)]
    }

    /// How many keys are below that one. All of the node is looked at, so that nothing is guessed and all of its lines come
    /// at the same time. Differences of keys are within 63 bits and a sign, which is what is counted: by every machine with
    /// several at once, which not every one can compare.
    #[inline]
    fn below(&self, key: u64) -> usize {
        let below: u64 = self
            .keys
            .iter()
            .map(|other| other.wrapping_sub(key) >> 63)
            .sum();
        // What stands behind the last key counts where everything is below.
        half_word(usize::try_from(below).unwrap_or(ENTRIES))
            .min(self.count)
            .into()
    }

    /// Where a child is that has the key if any has.
    #[inline]
    fn child(&self, key: u64) -> usize {
        self.below(key + 1).saturating_sub(1)
    }

    fn insert(&mut self, place: usize, key: u64, value: u32) {
        let count = usize::from(self.count);
        if place < count {
            self.keys.copy_within(place..count, place + 1);
            self.values.copy_within(place..count, place + 1);
        }
        self.keys[place] = key;
        self.values[place] = value;
        self.count += 1;
    }

    fn remove(&mut self, place: usize) {
        let count = usize::from(self.count);
        self.keys.copy_within(place + 1..count, place);
        self.values.copy_within(place + 1..count, place);
        self.keys[count - 1] = BEHIND;
        self.count -= 1;
    }

    /// Leaves the first entries here and gives the others.
    fn split(&mut self, at: usize) -> Self {
        let count = usize::from(self.count);
        let mut right = Self::EMPTY;
        right.keys[..count - at].copy_from_slice(&self.keys[at..count]);
        right.values[..count - at].copy_from_slice(&self.values[at..count]);
        right.count = self.count - half_word(at);
        self.keys[at..].fill(BEHIND);
        self.count = half_word(at);
        right
    }
}

/// A node's place or count.
#[allow(clippy::cast_possible_truncation)] // at most [`ENTRIES`]
const fn half_word(place: usize) -> u16 {
    place as u16
}

/// The way to an entry, from the root on: each node, and the place in it.
type Path = [(u32, u16); LEVELS];

/// The way to the leaf of the last insertion: keys often come one after the other.
#[derive(Clone, Debug)]
struct Way {
    /// Without the leaf.
    path: Path,
    leaf: u32,
    /// All keys from here on ...
    from: u64,
    /// ... and below this belong there; 0 where nothing is known.
    to: u64,
}

/// A tree. Keys are unique, and [`Tree::HIGHEST`] at most.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Nodes to be used again.
    free: Vec<u32>,
    root: u32,
    /// Levels above the leaves.
    height: usize,
    entries: usize,
    way: Way,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node::EMPTY],
            free: Vec::new(),
            root: 0,
            height: 0,
            entries: 0,
            way: Way {
                path: [(0, 0); LEVELS],
                leaf: 0,
                from: 0,
                to: 0,
            },
        }
    }
}

impl Tree {
    /// No key is above it.
    pub const HIGHEST: u64 = BEHIND - 1;

    /// How many entries it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    #[inline]
    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// The value of a key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u64) -> Option<u32> {
        let mut node = self.node(self.root);
        for _ in 0..self.height {
            node = self.node(node.values[node.child(key)]);
        }
        find(node, key)
    }

    /// The values of several keys. All go down a level before any goes down the next, so that the memory that they wait for
    /// comes at the same time. There are `N` keys at most.
    #[inline]
    pub fn get_each<const N: usize>(&self, keys: &[u64], found: &mut [Option<u32>; N]) {
        let mut nodes = [self.root; N];
        for _ in 0..self.height {
            for (node, key) in nodes.iter_mut().zip(keys) {
                let inner = self.node(*node);
                *node = inner.values[inner.child(*key)];
            }
        }
        for ((found, node), key) in found.iter_mut().zip(nodes).zip(keys) {
            *found = find(self.node(node), *key);
        }
    }

    /// Finds the way to the leaf that a key belongs to, and makes it the lowest on its way where it is.
    fn find_way(&mut self, key: u64) {
        let mut node = self.root;
        (self.way.from, self.way.to) = (0, u64::MAX);
        for level in 0..self.height {
            let inner = &mut self.nodes[node as usize];
            let place = inner.child(key);
            if place == 0 && key < inner.keys[0] {
                inner.keys[0] = key;
            }
            self.way.from = inner.keys[place];
            if let Some(next) = inner.keys().get(place + 1) {
                self.way.to = *next;
            }
            self.way.path[level] = (node, half_word(place));
            node = inner.values[place];
        }
        self.way.leaf = node;
    }

    /// Adds an entry. False, and nothing done, where there is one of that key.
    pub fn insert(&mut self, key: u64, value: u32) -> bool {
        if key < self.way.from || key >= self.way.to {
            self.find_way(key);
        }
        let leaf = self.node(self.way.leaf);
        let place = leaf.below(key);
        if leaf.keys().get(place) == Some(&key) {
            return false;
        }
        self.entries += 1;
        let Some(mut split) = self.put(self.way.leaf, place, key, value) else {
            return true;
        };
        self.way.to = 0;
        for level in (0..self.height).rev() {
            let (parent, place) = self.way.path[level];
            let (lowest, right) = split;
            match self.put(parent, usize::from(place) + 1, lowest, right) {
                Some(next) => split = next,
                None => return true,
            }
        }
        self.grow(split);
        true
    }

    /// Puts an entry into a node. Where it is full it is split: gives the new node on its right, with its lowest key.
    fn put(&mut self, id: u32, place: usize, key: u64, value: u32) -> Option<(u64, u32)> {
        let node = self.node_mut(id);
        if usize::from(node.count) < ENTRIES {
            node.insert(place, key, value);
            return None;
        }
        // Keys that ascend leave full nodes behind them.
        let at = if place == ENTRIES {
            ENTRIES
        } else {
            ENTRIES / 2
        };
        let mut right = node.split(at);
        if place < at {
            node.insert(place, key, value);
        } else {
            right.insert(place - at, key, value);
        }
        let lowest = right.keys[0];
        Some((lowest, self.add(right)))
    }

    fn add(&mut self, node: Node) -> u32 {
        if let Some(id) = self.free.pop() {
            *self.node_mut(id) = node;
            return id;
        }
        self.nodes.push(node);
        // The values of as many entries as that many nodes have are of 32 bits too.
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    /// A new root over the old one and what was split from it.
    fn grow(&mut self, (lowest, right): (u64, u32)) {
        let left = self.root;
        let mut root = Node::EMPTY;
        root.insert(0, self.node(left).keys[0], left);
        root.insert(1, lowest, right);
        self.root = self.add(root);
        self.height += 1;
    }

    /// Takes an entry out, and gives its value.
    pub fn remove(&mut self, key: u64) -> Option<u32> {
        self.way.to = 0;
        let mut path: Path = [(0, 0); LEVELS];
        let mut node = self.root;
        for step in path.iter_mut().take(self.height) {
            let inner = self.node(node);
            let place = inner.child(key);
            *step = (node, half_word(place));
            node = inner.values[place];
        }
        let leaf = self.node_mut(node);
        let place = leaf.below(key);
        if leaf.keys().get(place) != Some(&key) {
            return None;
        }
        let value = leaf.values[place];
        leaf.remove(place);
        let mut empty = leaf.count == 0;
        self.entries -= 1;
        for level in (0..self.height).rev() {
            if !empty {
                break;
            }
            self.free.push(node);
            let (parent, place) = path[level];
            let inner = self.node_mut(parent);
            inner.remove(usize::from(place));
            empty = inner.count == 0;
            node = parent;
        }
        self.shrink(empty);
        Some(value)
    }

    /// An inner root of one child gives way to it, and one of none is a leaf again.
    fn shrink(&mut self, empty: bool) {
        if empty {
            self.height = 0;
        }
        while self.height > 0 && self.node(self.root).count == 1 {
            self.free.push(self.root);
            self.root = self.node(self.root).values[0];
            self.height -= 1;
        }
    }

    /// At the first entry of that key or a higher one.
    #[must_use]
    pub fn from(&self, key: u64) -> Cursor<'_> {
        let mut cursor = self.leaf_of(key);
        let (leaf, place) = &mut cursor.path[self.height];
        *place = half_word(self.node(*leaf).below(key));
        cursor
    }

    /// The last entry of the range.
    #[must_use]
    pub fn last(&self, range: RangeInclusive<u64>) -> Option<(u64, u32)> {
        let mut cursor = self.leaf_of(*range.end());
        let (leaf, place) = &mut cursor.path[self.height];
        *place = half_word(self.node(*leaf).below(range.end() + 1));
        cursor.previous().filter(|(key, _)| range.contains(key))
    }

    /// The entries of the range, in the order of their keys.
    pub fn range(&self, range: RangeInclusive<u64>) -> impl Iterator<Item = (u64, u32)> {
        self.from(*range.start())
            .take_while(move |(key, _)| key <= range.end())
    }

    /// At the beginning of the leaf that has the key if any has.
    fn leaf_of(&self, key: u64) -> Cursor<'_> {
        let mut path: Path = [(0, 0); LEVELS];
        let mut node = self.root;
        for step in path.iter_mut().take(self.height) {
            let inner = self.node(node);
            let place = inner.child(key);
            *step = (node, half_word(place));
            node = inner.values[place];
        }
        path[self.height] = (node, 0);
        Cursor { tree: self, path }
    }
}

#[inline]
fn find(leaf: &Node, key: u64) -> Option<u32> {
    let place = leaf.below(key);
    (leaf.keys().get(place) == Some(&key)).then(|| leaf.values[place])
}

/// A place between two entries of a tree.
#[derive(Clone, Debug)]
pub struct Cursor<'t> {
    tree: &'t Tree,
    path: Path,
}

impl Iterator for Cursor<'_> {
    type Item = (u64, u32);

    fn next(&mut self) -> Option<(u64, u32)> {
        let height = self.tree.height;
        let (leaf, place) = self.path[height];
        let node = self.tree.node(leaf);
        if place < node.count {
            self.path[height].1 += 1;
            return Some((
                node.keys[usize::from(place)],
                node.values[usize::from(place)],
            ));
        }
        // To the first leaf right of this one.
        let right = |(node, place): (u32, u16)| place + 1 < self.tree.node(node).count;
        let turn = (0..height).rev().find(|level| right(self.path[*level]))?;
        self.path[turn].1 += 1;
        self.descend(turn, |_| 0);
        self.next()
    }
}

impl Cursor<'_> {
    /// The entry before this place; the place is before it then.
    pub fn previous(&mut self) -> Option<(u64, u32)> {
        let height = self.tree.height;
        let (leaf, place) = self.path[height];
        if place > 0 {
            let node = self.tree.node(leaf);
            self.path[height].1 -= 1;
            let place = usize::from(place - 1);
            return Some((node.keys[place], node.values[place]));
        }
        let turn = (0..height).rev().find(|level| self.path[*level].1 > 0)?;
        self.path[turn].1 -= 1;
        self.descend(turn, |node| node.count - 1);
        // Behind the leaf's last entry.
        self.path[height].1 += 1;
        self.previous()
    }

    /// From the child where `turn` points to down to a leaf.
    fn descend(&mut self, turn: usize, place: impl Fn(&Node) -> u16) {
        for level in turn..self.tree.height {
            let (parent, at) = self.path[level];
            let child = self.tree.node(parent).values[usize::from(at)];
            self.path[level + 1] = (child, place(self.tree.node(child)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_node_fills_four_lines_of_the_cache() {
        assert_eq!((size_of::<Node>(), align_of::<Node>()), (256, 64));
    }

    impl Tree {
        /// Holds the module's invariants against all nodes; gives how many entries there are.
        fn verify(&self) -> usize {
            let mut nodes = 0;
            let entries = self.verify_below(self.root, self.height, 0, None, &mut nodes);
            assert_eq!(nodes + self.free.len(), self.nodes.len(), "a node is lost");
            if self.height > 0 {
                assert!(self.node(self.root).count > 1);
            }
            entries
        }

        /// Keys below are in `[lowest, end)`; the leftmost node of a level may have lower ones.
        fn verify_below(
            &self,
            id: u32,
            height: usize,
            lowest: u64,
            end: Option<u64>,
            nodes: &mut usize,
        ) -> usize {
            *nodes += 1;
            let node = self.node(id);
            assert!(node.count > 0 || id == self.root, "an empty node");
            assert!(node.keys().is_sorted_by(|a, b| a < b));
            assert!(
                node.keys()
                    .iter()
                    .all(|key| *key >= lowest && end.is_none_or(|end| *key < end))
            );
            if height == 0 {
                return node.keys().len();
            }
            let ends = node.keys()[1..].iter().map(|key| Some(*key)).chain([end]);
            node.keys()
                .iter()
                .zip(ends)
                .zip(node.values)
                .map(|((lowest, end), child)| {
                    self.verify_below(child, height - 1, *lowest, end, nodes)
                })
                .sum()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Remove(u64),
        /// So many keys from there on.
        Run(u64, u64),
        RemoveRun(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0u64..2_000;
        prop_oneof![
            4 => key.clone().prop_map(Step::Insert),
            4 => key.clone().prop_map(Step::Remove),
            1 => (key.clone(), 1u64..300).prop_map(|(key, count)| Step::Run(key, count)),
            1 => (key, 1u64..300).prop_map(|(key, count)| Step::RemoveRun(key, count)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_answers_as_an_ordered_map_does(steps in prop::collection::vec(step(), 1..300), from in 0u64..2_000) {
            let (mut tree, mut map) = (Tree::default(), BTreeMap::new());
            let mut next = 0;
            for step in steps {
                let (keys, inserts) = match step {
                    Step::Insert(key) => (key..key + 1, true),
                    Step::Remove(key) => (key..key + 1, false),
                    Step::Run(key, count) => (key..key + count, true),
                    Step::RemoveRun(key, count) => (key..key + count, false),
                };
                for key in keys {
                    if inserts {
                        next += 1;
                        let fresh = !map.contains_key(&key);
                        prop_assert_eq!(tree.insert(key, next), fresh);
                        map.entry(key).or_insert(next);
                    } else {
                        prop_assert_eq!(tree.remove(key), map.remove(&key));
                    }
                }
                prop_assert_eq!(tree.verify(), map.len());
            }
            prop_assert_eq!((tree.len(), tree.is_empty()), (map.len(), map.is_empty()));
            let to = from + 500;
            let expected: Vec<_> = map.range(from..=to).map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(&tree.range(from..=to).collect::<Vec<_>>(), &expected);
            prop_assert_eq!(tree.last(from..=to), expected.last().copied());
            let mut backwards = Vec::new();
            let mut cursor = tree.from(Tree::HIGHEST);
            while let Some(entry) = cursor.previous() {
                backwards.push(entry);
            }
            backwards.reverse();
            prop_assert_eq!(backwards, tree.range(0..=Tree::HIGHEST).collect::<Vec<_>>());
            let keys = [from, from + 1, to, 0, 1];
            let mut found = [None; 5];
            tree.get_each(&keys, &mut found);
            prop_assert_eq!(found, keys.map(|key| tree.get(key)));
            prop_assert_eq!(found, keys.map(|key| map.get(&key).copied()));
        }
    }

    #[test]
    fn keys_that_ascend_leave_full_nodes() {
        let mut tree = Tree::default();
        for key in 0..21_000 {
            assert!(tree.insert(key, 0));
        }
        assert!(
            tree.nodes.len() <= 1_000 + 50 + 5,
            "{} nodes",
            tree.nodes.len()
        );
    }
}
