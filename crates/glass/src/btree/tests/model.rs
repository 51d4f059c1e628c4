//! Against a map.

use std::ops::{Bound, ControlFlow};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::keys::{Typed, Words};
use crate::latch::{NoLatch, RwLatch};

#[derive(Clone, Debug)]
enum Step {
    Insert(i32),
    Remove(i32),
    Lookup(i32),
    Forwards(i32, i32, usize),
    Backwards(i32, i32, usize),
    /// So many keys in a row, in ascending order.
    Run(i32, i32),
    /// All keys of a range.
    Clear(i32, i32),
    Commit,
    Rollback,
}

fn step() -> impl Strategy<Value = Step> {
    let key = -100..100;
    prop_oneof![
        6 => key.clone().prop_map(Step::Insert),
        4 => key.clone().prop_map(Step::Remove),
        2 => key.clone().prop_map(Step::Lookup),
        1 => (key.clone(), key.clone(), 0..300_usize).prop_map(|(a, b, n)| Step::Forwards(a, b, n)),
        1 => (key.clone(), key.clone(), 0..300_usize).prop_map(|(a, b, n)| Step::Backwards(a, b, n)),
        1 => (key.clone(), 1..60).prop_map(|(a, n)| Step::Run(a, n)),
        1 => (key.clone(), 1..120).prop_map(|(a, n)| Step::Clear(a, n)),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
    ]
}

struct Bench<'e, K, L: Latch, G> {
    tree: Tree<'e, K, L, Direct<L, PAGE>, G>,
    transaction: Transaction<'e, G>,
    entries: Entries,
    committed: Entries,
    made: u64,
}

impl<K: Keys, L: Latch, G: Log<L> + Log<NoLatchOrNot>> Bench<'_, K, L, G> {
    fn key(&self, number: i32) -> Vec<u8> {
        key(self.tree.shape, number)
    }

    /// What is locked for the gap behind a key.
    fn behind(&self, key: &[u8]) -> (Lockable, At) {
        let next = self
            .entries
            .range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded))
            .next();
        let what = next.map_or(Lockable::End(INDEX), |(_, rid)| Lockable::Record(*rid));
        (what, At::Next)
    }

    fn insert(&mut self, number: i32) {
        self.made += 1;
        let (key, rid) = (
            self.key(number),
            Rid::from_bits(self.made << 20 | self.made),
        );
        let mut gates = Gates::new(self.made);
        let expected = self.entries.get(&key).copied();
        let done = self
            .tree
            .insert(&key, rid, &mut gates, &mut self.transaction);
        if let Some(rid) = expected {
            assert!(matches!(done, Err(Error::Duplicate)), "{done:?}");
            assert_eq!(gates.passed, [(Lockable::Record(rid), At::Entry)]);
        } else {
            done.unwrap();
            assert_eq!(gates.passed, [self.behind(&key)]);
            self.entries.insert(key, rid);
        }
    }

    fn remove(&mut self, number: i32) {
        self.made += 1;
        let key = self.key(number);
        let mut gates = Gates::new(self.made);
        let other = Rid::from_bits(u64::MAX);
        let missing = self
            .tree
            .remove(&key, other, &mut gates, &mut self.transaction);
        assert!(matches!(missing, Err(Error::Missing(_))), "{missing:?}");
        let Some(rid) = self.entries.get(&key).copied() else {
            return;
        };
        self.tree
            .remove(&key, rid, &mut gates, &mut self.transaction)
            .unwrap();
        assert_eq!(gates.passed, [self.behind(&key)]);
        self.entries.remove(&key);
    }

    fn lookup(&mut self, number: i32) {
        self.made += 1;
        let key = self.key(number);
        let mut gates = Gates::new(self.made);
        let found = self.tree.lookup(&key, &mut gates).unwrap();
        assert_eq!(found, self.entries.get(&key).copied());
        assert_eq!(found, self.tree.lookup(&key, &mut Open).unwrap());
        let expected = match found {
            Some(rid) => (Lockable::Record(rid), At::Entry),
            None => self.behind(&key),
        };
        assert_eq!(gates.passed, [expected]);
    }

    fn scan(&mut self, a: i32, b: i32, at_most: usize, backwards: bool) {
        self.made += 1;
        let (from, to) = (self.key(a.min(b)), self.key(a.max(b)));
        let mut expected: Vec<_> = self.entries.range(from.clone()..=to.clone()).collect();
        if backwards {
            expected.reverse();
        }
        let all = expected.len() <= at_most;
        expected.truncate(at_most.max(1));
        let mut gates: Vec<_> = expected
            .iter()
            .map(|(_, rid)| (Lockable::Record(**rid), At::Entry))
            .collect();
        if backwards {
            gates.insert(0, self.behind(&to));
        } else if all && (at_most > expected.len() || expected.is_empty()) {
            gates.push(self.behind(&to));
        }
        let mut asked = Gates::new(self.made);
        let mut with_gates = Vec::new();
        let mut without = Vec::new();
        for (open, found) in [(false, &mut with_gates), (true, &mut without)] {
            let visit = |key: &[u8], rid| {
                found.push((key.to_vec(), rid));
                if found.len() >= at_most {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            match (open, backwards) {
                (false, false) => self.tree.scan_forwards(&from, &to, &mut asked, visit),
                (false, true) => self.tree.scan_backwards(&from, &to, &mut asked, visit),
                (true, false) => self.tree.scan_forwards(&from, &to, &mut Open, visit),
                (true, true) => self.tree.scan_backwards(&from, &to, &mut Open, visit),
            }
            .unwrap();
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(key, rid)| (key.clone(), *rid))
            .collect();
        assert_eq!(with_gates, expected);
        assert_eq!(without, expected);
        assert_eq!(asked.passed, gates);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert(key) => self.insert(key),
            Step::Remove(key) => self.remove(key),
            Step::Lookup(key) => self.lookup(key),
            Step::Forwards(a, b, at_most) => self.scan(a, b, at_most, false),
            Step::Backwards(a, b, at_most) => self.scan(a, b, at_most, true),
            Step::Run(first, count) => (first..first + count).for_each(|key| self.insert(key)),
            Step::Clear(first, count) => (first..first + count).for_each(|key| self.remove(key)),
            Step::Commit => {
                self.transaction.undo.clear();
                self.committed = self.entries.clone();
            }
            Step::Rollback => {
                roll_back(&self.tree, &mut self.transaction);
                self.entries = self.committed.clone();
            }
        }
    }
}

fn agrees<K: Keys, L: Latch, G: Log<L> + Log<NoLatchOrNot>>(
    log: &G,
    shape: &Shape,
    most: usize,
    steps: &[Step],
    at_last: impl Fn(&Tree<'_, K, L, Direct<L, PAGE>, G>),
) {
    let pages = Direct::<L, PAGE>::new();
    let mut transaction = Transaction::new(log);
    let root =
        Tree::<K, L, _, G>::create_of(&pages, log, shape, INDEX, Some(most), &mut transaction)
            .unwrap();
    let mut bench = Bench {
        tree: Tree::<K, L, _, G>::new(&pages, log, shape, INDEX, root),
        transaction,
        entries: Entries::new(),
        committed: Entries::new(),
        made: 0,
    };
    for step in steps {
        bench.step(step);
        assert_holds(&bench.tree, &bench.entries);
    }
    at_last(&bench.tree);
    // What is left goes in the order of its records, which is none of the keys'.
    let mut left: Vec<_> = bench.entries.into_iter().collect();
    left.sort_by_key(|(_, rid)| *rid);
    for (key, rid) in left {
        bench
            .tree
            .remove(&key, rid, &mut Open, &mut bench.transaction)
            .unwrap();
    }
    let counts = assert_holds(&bench.tree, &Entries::new());
    assert_eq!((counts.leaves, counts.inner, counts.height), (1, 0, 0));
    at_last(&bench.tree);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_logged_tree_agrees_with_a_map_and_can_be_made_again_from_the_log(
        shape in 0..shapes().len(), most in 2..7_usize, steps in vec(step(), 1..150)
    ) {
        let shape = &shapes()[shape];
        agrees::<Typed, RwLatch, _>(&Recorder::default(), shape, most, &steps, assert_redone);
    }

    #[test]
    fn a_tree_without_log_and_latches_agrees_with_a_map(
        shape in 0..shapes().len(), most in 2..7_usize, steps in vec(step(), 1..150)
    ) {
        agrees::<Words, NoLatch, _>(&Nothing, &shapes()[shape], most, &steps, |_| {});
    }
}
