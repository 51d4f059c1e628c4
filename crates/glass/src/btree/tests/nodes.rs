//! What becomes of nodes.

use super::*;
use crate::keys::Words;
use crate::latch::RwLatch;

type Logged<'e> = Tree<'e, Words, RwLatch, Direct<RwLatch, PAGE>, Recorder>;

struct Fixture {
    pages: Direct<RwLatch, PAGE>,
    log: Recorder,
    shape: Shape,
    root: PageId,
}

impl Fixture {
    fn new(most: Option<usize>) -> Self {
        let (pages, log) = (Direct::new(), Recorder::default());
        let shape = Shape::new(&[Field::Int, Field::Int, Field::Long]);
        let mut chain = Transaction::new(&log);
        let root = Logged::create_of(&pages, &log, &shape, INDEX, most, &mut chain).unwrap();
        Self {
            pages,
            log,
            shape,
            root,
        }
    }

    fn tree(&self) -> Logged<'_> {
        Tree::new(&self.pages, &self.log, &self.shape, INDEX, self.root)
    }

    fn insert(&self, high: i32, low: i32) {
        let key = self.key(high, low);
        let mut chain = Transaction::new(&self.log);
        let rid = Rid::from_bits(1);
        self.tree()
            .insert(&key, rid, &mut Open, &mut chain)
            .unwrap();
    }

    fn remove(&self, high: i32, low: i32) {
        let key = self.key(high, low);
        let mut chain = Transaction::new(&self.log);
        let rid = Rid::from_bits(1);
        self.tree()
            .remove(&key, rid, &mut Open, &mut chain)
            .unwrap();
    }

    fn key(&self, high: i32, low: i32) -> Vec<u8> {
        let values = [Value::Int(high), Value::Int(low), Value::Long(0)];
        let mut key = vec![0; self.shape.length()];
        self.shape.encode(&values, &mut key).unwrap();
        key
    }

    fn counts(&self) -> Counts {
        self.tree().verify(|_| Ok(()), |_, _| Ok(())).unwrap()
    }
}

#[test]
fn ascending_keys_fill_their_leaves() {
    let store = Fixture::new(Some(10));
    (0..900).for_each(|low| store.insert(0, low));
    let counts = store.counts();
    assert_eq!(counts.leaves, 100, "each but the last has 9 of 10 entries");
    assert!(counts.inner < 20, "{counts:?}");
}

#[test]
fn several_ascending_runs_fill_their_leaves() {
    // As orders of districts do: each run in a range of its own.
    let store = Fixture::new(Some(10));
    for low in 0..300 {
        (0..10).for_each(|high| store.insert(high, low));
    }
    let leaves = store.counts().leaves;
    assert!(leaves < 3000 / 8, "{leaves} leaves for 3000 entries");
}

#[test]
fn keys_in_any_order_leave_leaves_as_full_as_halving_does() {
    let store = Fixture::new(Some(10));
    let mut random = 1_u64;
    for _ in 0..2000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        store.insert((random >> 40) as i32, (random >> 20) as i32);
    }
    // Yao, "On random 2-3 trees", Acta Informatica 1978: ln 2 of them is used.
    let used = 2000.0 / (10.0 * store.counts().leaves as f64);
    assert!((0.64..0.76).contains(&used), "{used}");
}

#[test]
fn the_root_never_moves_and_is_a_leaf_again_when_all_is_gone() {
    let store = Fixture::new(Some(4));
    (0..100).for_each(|low| store.insert(0, low));
    assert!(store.counts().height >= 3);
    (0..100).for_each(|low| store.remove(0, low));
    assert_eq!(
        store.counts(),
        Counts {
            leaves: 1,
            ..Counts::default()
        }
    );
    store.insert(0, 1);
    assert_holds(
        &store.tree(),
        &Entries::from([(store.key(0, 1), Rid::from_bits(1))]),
    );
}

#[test]
fn a_queue_keeps_no_more_nodes_than_its_entries_need() {
    // As new orders are delivered: the oldest goes, a new one comes.
    let store = Fixture::new(Some(6));
    (0..60).for_each(|low| store.insert(0, low));
    let before = store.counts();
    for low in 0..2000 {
        store.insert(0, low + 60);
        store.remove(0, low);
    }
    let after = store.counts();
    assert!(after.leaves <= before.leaves + 2, "{before:?} {after:?}");
}

#[test]
fn each_split_and_each_removal_of_a_leaf_is_one_record_of_all_its_pages() {
    let store = Fixture::new(Some(2));
    store.insert(0, 0);
    store.insert(0, 1);
    let before = store.log.count();
    store.insert(0, 2);
    // Two new pages, the root's split, the entry.
    assert_eq!(store.log.pages_changed_since(before), [1, 1, 3, 1]);
    let before = store.log.count();
    store.remove(0, 0);
    // The root and the leaf that takes over; the page of the one that went.
    assert_eq!(store.log.pages_changed_since(before), [2, 1]);
}

#[test]
fn pages_that_were_never_free_are_made_again_byte_by_byte() {
    let store = Fixture::new(Some(5));
    (0..400).for_each(|number| store.insert(number * 73 % 400, 0));
    (0..400).step_by(3).for_each(|number| {
        let mut chain = Transaction::new(&store.log);
        let key = store.key(number, 0);
        let tree = store.tree();
        if tree.leaf(|node| tree.child_of(node, &key)).unwrap().count() > 1 {
            tree.remove(&key, Rid::from_bits(1), &mut Open, &mut chain)
                .unwrap();
        }
    });
    let (redone, census) = (store.log.redone(), store.pages.census().unwrap());
    assert!(census.free.is_empty() && census.all.len() > 100);
    for id in census.all {
        assert_eq!(
            store.tree().shared(id).unwrap().bytes(),
            redone[&id],
            "{id:?}"
        );
    }
}

#[test]
fn a_tree_is_in_order_after_each_record_of_its_log() {
    // Once the last entry of a leaf and the leaf went by two records, and a crash between those of a rollback left the
    // leaf, empty, for ever.
    let store = Fixture::new(Some(3));
    let made = store.log.count();
    (0..60).for_each(|number| store.insert(number * 37 % 60, 0));
    (0..60).for_each(|number| store.remove(number * 23 % 60, 0));
    let mut looked_at = 0;
    store.log.replayed(|records, pages| {
        if records < made {
            return;
        }
        let tree = store.tree();
        for (id, bytes) in pages {
            let mut page = store.pages.pin(*id).unwrap().into_exclusive();
            page.bytes_mut().copy_from_slice(bytes);
        }
        let counts = tree.verify(|_| Ok(()), |_, _| Ok(()));
        assert!(counts.is_ok(), "after {records} records: {counts:?}");
        looked_at += 1;
    });
    assert!(looked_at > 200);
}

#[test]
fn a_leaf_has_room_for_what_a_page_holds() {
    let store = Fixture::new(None);
    let room = (PAGE - HEADER - 24) / 24;
    (0..room as i32).for_each(|low| store.insert(0, low));
    assert_eq!(store.counts().height, 0);
    store.insert(0, -1);
    assert_eq!(store.counts().height, 1);
}

#[test]
fn keys_of_another_length_are_refused() {
    let store = Fixture::new(None);
    let (tree, mut chain) = (store.tree(), Transaction::new(&store.log));
    let (short, rid) = ([0; 15], Rid::from_bits(1));
    assert!(matches!(
        tree.lookup(&short, &mut Open),
        Err(Error::Refused(_))
    ));
    assert!(matches!(
        tree.insert(&short, rid, &mut Open, &mut chain),
        Err(Error::Refused(_))
    ));
    assert!(matches!(
        tree.remove(&short, rid, &mut Open, &mut chain),
        Err(Error::Refused(_))
    ));
    for length in [0, LONGEST as u16 + 1] {
        let shape = Shape::new(&[Field::Text(length)]);
        let made = Logged::create(&store.pages, &store.log, &shape, INDEX, &mut chain);
        assert!(matches!(made, Err(Error::Refused(_))));
    }
}

#[test]
fn verification_finds_each_damage() {
    type Damage = (&'static str, fn(&mut Page));
    let damages: [Damage; 7] = [
        ("do not ascend", |leaf| {
            let first = leaf.entry(0).to_vec();
            leaf.remove(0);
            leaf.insert(1, &first);
        }),
        ("outside of the bounds", |leaf| {
            let mut last = leaf.entry(leaf.count() - 1).to_vec();
            last[..16].fill(255);
            leaf.remove(leaf.count() - 1);
            leaf.insert(leaf.count(), &last);
        }),
        ("no entry", |leaf| {
            (0..leaf.count()).for_each(|_| leaf.remove(0));
        }),
        ("not chained", |leaf| leaf.set_next(leaf.id())),
        ("of another index", |leaf| {
            leaf.bytes_mut()[HEADER + 4] ^= 1;
        }),
        ("not one level below", |leaf| {
            leaf.clear(PageKind::Inner, leaf.id());
            leaf.format(INDEX, 16, 10, 2);
        }),
        ("another page's number", |leaf| {
            leaf.bytes_mut()[8] ^= 1;
        }),
    ];
    for (expected, damage) in damages {
        let store = Fixture::new(Some(10));
        (0..100).for_each(|low| store.insert(0, low));
        let tree = store.tree();
        let id = tree.leaf(|_| 0).unwrap().id();
        damage(&mut tree.exclusive(id).unwrap());
        let found = tree.verify(|_| Ok(()), |_, _| Ok(()));
        let Err(Error::Corrupt(_, found)) = found else {
            panic!("{expected}: {found:?}");
        };
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn records_that_do_not_fit_a_leaf_are_refused() {
    let store = Fixture::new(Some(4));
    store.insert(0, 0);
    let tree = store.tree();
    let mut leaf = tree.exclusive(store.root).unwrap();
    let (page, id) = (leaf.bytes().to_vec(), store.root);
    let entry = [0; 24];
    for change in [
        Change::LeafDelete { page: id, place: 1 },
        Change::LeafInsert {
            page: id,
            place: 2,
            entry: &entry,
        },
        Change::LeafInsert {
            page: id,
            place: 0,
            entry: &entry[1..],
        },
        Change::Write(&[Patch {
            page: id,
            offset: 30,
            bytes: &entry,
        }]),
    ] {
        assert!(
            matches!(redo(&mut leaf, &change), Err(Error::Corrupt(_, _))),
            "{change:?}"
        );
        assert_eq!(leaf.bytes(), page);
    }
}
