//! Several threads at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::keys::Words;
use crate::latch::RwLatch;

type Shared<'e> = Tree<'e, Words, RwLatch, Direct<RwLatch, PAGE>, Recorder>;

const WRITERS: i32 = 4;
const KEYS: i32 = 120;

/// A writer's keys, and those that stay, are spread among all others.
const fn number(owner: i32, key: i32) -> i32 {
    key * (WRITERS + 1) + owner
}

/// Puts keys in and takes them out, of which nobody else does, and finds them as it left them.
fn write(tree: &Shared<'_>, owner: i32, rounds: u64) -> Entries {
    let mut entries = Entries::new();
    let mut chain = Transaction::new(tree.log);
    let mut random = owner as u64 + 1;
    for round in 0..rounds {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Runs of insertions and of removals, so that whole regions fill and go.
        let filling = (round / 200 + owner as u64).is_multiple_of(2);
        let key = key(tree.shape, number(owner, (random >> 33) as i32 % KEYS));
        let found = tree.lookup(&key, &mut Open).unwrap();
        assert_eq!(found, entries.get(&key).copied());
        let mut gates = Gates::new(random);
        match found {
            Some(rid) if !filling => {
                tree.remove(&key, rid, &mut gates, &mut chain).unwrap();
                entries.remove(&key);
            }
            None if filling => {
                let rid = Rid::from_bits(random);
                tree.insert(&key, rid, &mut gates, &mut chain).unwrap();
                entries.insert(key, rid);
            }
            _ => {}
        }
    }
    entries
}

/// Sees keys in their order, and all that stay.
fn scan(tree: &Shared<'_>, staying: &Entries, backwards: bool, round: u64) {
    let (from, to) = (key(tree.shape, i32::MIN), key(tree.shape, i32::MAX));
    let mut gates = Gates::new(round);
    let mut found = Vec::new();
    let visit = |key: &[u8], rid| {
        found.push((key.to_vec(), rid));
        ControlFlow::Continue(())
    };
    if backwards {
        tree.scan_backwards(&from, &to, &mut gates, visit).unwrap();
        found.reverse();
    } else {
        tree.scan_forwards(&from, &to, &mut gates, visit).unwrap();
    }
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    found.retain(|(key, _)| staying.contains_key(key));
    assert!(found.iter().map(|(key, rid)| (key, rid)).eq(staying));
}

#[test]
fn writers_and_readers_at_once_leave_a_tree_in_order_and_miss_nothing() {
    let (pages, log) = (Direct::new(), Recorder::default());
    let shape = Shape::new(&[Field::Long, Field::Int]);
    let mut chain = Transaction::new(&log);
    let root = Shared::create_of(&pages, &log, &shape, INDEX, Some(4), &mut chain).unwrap();
    let tree = Shared::new(&pages, &log, &shape, INDEX, root);
    let mut staying = Entries::new();
    for each in (0..KEYS).step_by(10) {
        let (key, rid) = (
            key(&shape, number(WRITERS, each)),
            Rid::from_bits(each as u64),
        );
        tree.insert(&key, rid, &mut Open, &mut chain).unwrap();
        staying.insert(key, rid);
    }

    let done = AtomicBool::new(false);
    let entries = thread::scope(|scope| {
        let (done, staying, tree) = (&done, &staying, &tree);
        let readers: Vec<_> = [false, true]
            .map(|backwards| {
                scope.spawn(move || {
                    let mut round = 0;
                    while !done.load(Ordering::Acquire) {
                        scan(tree, staying, backwards, round);
                        round += 1;
                    }
                    assert!(round > 0);
                })
            })
            .into();
        let writers: Vec<_> = (0..WRITERS)
            .map(|owner| scope.spawn(move || write(tree, owner, 4000)))
            .collect();
        let mut entries = staying.clone();
        let mut failed = false;
        for writer in writers {
            match writer.join() {
                Ok(written) => entries.extend(written),
                Err(_) => failed = true,
            }
        }
        done.store(true, Ordering::Release);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        assert!(!failed);
        entries
    });
    assert_holds(&tree, &entries);
    assert_redone(&tree);
}
