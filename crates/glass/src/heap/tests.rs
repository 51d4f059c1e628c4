//! Pages and heaps against maps.
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::slotted;
use crate::log::{Change, Kind};
use crate::pages::{Page, PageKind};
use crate::{PageId, Rid, TxId};

const PAGE: usize = 512;
const ID: PageId = PageId(7);

fn empty() -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    Page::of_mut(&mut bytes).clear(PageKind::Heap, ID);
    bytes
}

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Delete(usize),
    Restore(usize),
    Reclaim,
    Update(usize, usize, usize),
    Replace(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..90usize).prop_map(Step::Insert),
        2 => any::<usize>().prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::Restore),
        1 => Just(Step::Reclaim),
        2 => (any::<usize>(), any::<usize>(), any::<usize>()).prop_map(|(a, b, c)| Step::Update(a, b, c)),
        3 => (any::<usize>(), 0..120usize).prop_map(|(which, length)| Step::Replace(which, length)),
    ]
}

/// What a page should have: by slot, records and ghosts.
#[derive(Default)]
struct Model {
    records: BTreeMap<u16, Vec<u8>>,
    ghosts: BTreeMap<u16, Vec<u8>>,
}

fn pick(map: &BTreeMap<u16, Vec<u8>>, which: usize) -> Option<u16> {
    map.keys().copied().nth(which % map.len().max(1))
}

fn agree(page: &Page, model: &Model) {
    slotted::verify(page).expect("the page is whole");
    for slot in 0..slotted::slots(page) {
        let found = slotted::get(page, slot).map(|(_, record)| record.to_vec());
        assert_eq!(found.as_ref(), model.records.get(&slot), "slot {slot}");
    }
    let last = model.records.keys().chain(model.ghosts.keys()).max();
    assert!(last.is_none_or(|&last| last < slotted::slots(page)));
}

proptest! {
    #[test]
    fn a_page_has_what_was_put_into_it_and_the_log_makes_it_again(
        steps in prop::collection::vec(step(), 1..200),
        compacted in prop::collection::vec(any::<bool>(), 200),
    ) {
        let mut bytes = empty();
        let page = Page::of_mut(&mut bytes);
        let mut other = empty();
        let again = Page::of_mut(&mut other);
        let mut model = Model::default();
        for (step, compacted) in steps.into_iter().zip(compacted) {
            let fill: Vec<u8> = (0..PAGE).map(|at| (at * 7 + model.records.len()) as u8).collect();
            let change = match step {
                Step::Insert(length) => {
                    let Some(slot) = slotted::candidates(page, length).next() else { continue };
                    prop_assert!(!model.records.contains_key(&slot) && !model.ghosts.contains_key(&slot));
                    model.records.insert(slot, fill[..length].to_vec());
                    Change::HeapInsert { rid: Rid::new(ID, slot), kind: Kind::Record, record: &fill[..length] }
                }
                Step::Delete(which) => {
                    let Some(slot) = pick(&model.records, which) else { continue };
                    let record = model.records.remove(&slot).expect("picked");
                    model.ghosts.insert(slot, record);
                    Change::HeapDelete { rid: Rid::new(ID, slot) }
                }
                Step::Restore(which) => {
                    let Some(slot) = pick(&model.ghosts, which) else { continue };
                    let record = model.ghosts.remove(&slot).expect("picked");
                    model.records.insert(slot, record);
                    Change::HeapRestore { rid: Rid::new(ID, slot) }
                }
                Step::Reclaim => {
                    model.ghosts.clear();
                    Change::HeapReclaim { page: ID }
                }
                Step::Update(which, offset, length) => {
                    let Some(slot) = pick(&model.records, which) else { continue };
                    let record = model.records.get_mut(&slot).expect("picked");
                    let offset = offset % (record.len() + 1);
                    let length = length % (record.len() - offset + 1);
                    record[offset..offset + length].copy_from_slice(&fill[..length]);
                    Change::HeapUpdate { rid: Rid::new(ID, slot), offset: offset as u16, after: &fill[..length] }
                }
                Step::Replace(which, length) => {
                    let Some(slot) = pick(&model.records, which) else { continue };
                    if !slotted::can_hold(page, slot, length) {
                        continue;
                    }
                    // What a slot has held it can hold again.
                    model.records.insert(slot, fill[..length].to_vec());
                    Change::HeapReplace { rid: Rid::new(ID, slot), kind: Kind::Record, after: &fill[..length] }
                }
            };
            slotted::redo(page, &change).expect("it fits");
            agree(page, &model);
            // The same page, but compacted at other moments, as one is that was written before.
            if compacted {
                slotted::compact(again, None);
            }
            slotted::redo(again, &change).expect("what fitted fits again");
            agree(again, &model);
        }
    }

    #[test]
    fn a_record_can_become_a_stub_and_what_it_was_in_a_full_page(lengths in prop::collection::vec(0..60usize, 1..60)) {
        let mut bytes = empty();
        let page = Page::of_mut(&mut bytes);
        for &length in &lengths {
            let Some(slot) = slotted::candidates(page, length).next() else { break };
            slotted::insert(page, slot, Kind::Record, &vec![1; length]).expect("it fits");
        }
        for slot in 0..slotted::slots(page) {
            let before = slotted::get(page, slot).expect("it is there").1.to_vec();
            slotted::replace(page, slot, Kind::Stub, &[9; 8]).expect("a stub always fits");
            slotted::replace(page, slot, Kind::Record, &before).expect("what was there always fits");
            prop_assert_eq!(slotted::get(page, slot), Some((Kind::Record, &before[..])));
        }
        slotted::verify(page).expect("the page is whole");
    }
}

#[test]
fn a_page_takes_the_longest_record_and_no_longer_one() {
    let mut bytes = empty();
    let page = Page::of_mut(&mut bytes);
    let longest = slotted::longest(PAGE);
    assert_eq!(slotted::candidates(page, longest + 1).next(), None);
    assert_eq!(slotted::candidates(page, longest).next(), Some(0));
    slotted::insert(page, 0, Kind::Record, &vec![3; longest]).expect("it fits");
    assert_eq!(slotted::candidates(page, 0).next(), None);
    slotted::verify(page).expect("the page is whole");
}

#[test]
fn a_page_knows_the_newest_that_deleted_something_until_it_is_reclaimed() {
    let mut bytes = empty();
    let page = Page::of_mut(&mut bytes);
    for slot in 0..3 {
        slotted::insert(page, slot, Kind::Record, b"something").expect("it fits");
    }
    slotted::delete(page, 0, TxId(9)).expect("it is there");
    slotted::delete(page, 2, TxId(5)).expect("it is there");
    assert_eq!(slotted::deleter(page), TxId(9));
    assert!(slotted::delete(page, 2, TxId(10)).is_err());
    slotted::reclaim(page);
    assert_eq!(slotted::deleter(page), TxId(0));
    assert_eq!(
        slotted::candidates(page, 9).take(3).collect::<Vec<_>>(),
        [0, 2, 3]
    );
}
