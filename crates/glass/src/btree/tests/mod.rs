//! Trees of few entries a node, so that nodes split and go all the time.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]

mod model;
mod nodes;
mod threads;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use super::verify::Counts;
use super::*;
use crate::keys::{Field, Value};
use crate::log::{Change, Patch, Record, Undo};
use crate::pages::{Direct, HEADER, Page};
use crate::{Lsn, TxId};

pub(super) const PAGE: usize = 4096;
pub(super) const INDEX: IndexId = IndexId(7);

pub(super) type Entries = BTreeMap<Vec<u8>, Rid>;

/// A change that owns its bytes.
#[derive(Clone, Debug)]
pub(super) enum Done {
    Write(Vec<(PageId, u16, Vec<u8>)>),
    Insert(PageId, u16, Vec<u8>),
    Delete(PageId, u16),
}

impl Done {
    fn of(change: &Change<'_>) -> Self {
        match change {
            Change::Write(patches) => Self::Write(
                patches
                    .iter()
                    .map(|patch| (patch.page, patch.offset, patch.bytes.to_vec()))
                    .collect(),
            ),
            Change::LeafInsert { page, place, entry } => {
                Self::Insert(*page, *place, entry.to_vec())
            }
            Change::LeafDelete { page, place } => Self::Delete(*page, *place),
            other => panic!("no change of an index: {other:?}"),
        }
    }
}

/// A log that keeps its records in memory; a record's number is how many there are up to it.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Vec<Done>>);

impl Recorder {
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Of the records from that one on: how many pages each changes.
    pub(super) fn pages_changed_since(&self, first: usize) -> Vec<usize> {
        self.0.lock().unwrap()[first..]
            .iter()
            .map(|done| match done {
                Done::Write(patches) => {
                    let mut pages: Vec<_> = patches.iter().map(|patch| patch.0).collect();
                    pages.dedup();
                    pages.len()
                }
                _ => 1,
            })
            .collect()
    }

    /// Pages as the records make them out of nothing.
    pub(super) fn redone(&self) -> HashMap<PageId, Vec<u8>> {
        self.replayed(|_, _| {})
    }

    /// The same, and shows how they are after each so many records.
    pub(super) fn replayed(
        &self,
        mut after: impl FnMut(usize, &HashMap<PageId, Vec<u8>>),
    ) -> HashMap<PageId, Vec<u8>> {
        let mut pages: HashMap<PageId, Vec<u8>> = HashMap::new();
        for (number, done) in self.0.lock().unwrap().iter().enumerate() {
            let lsn = Lsn(number as u64 + 1);
            let mut page = |id: PageId, change: &dyn Fn(&mut Page)| {
                let bytes = pages.entry(id).or_insert_with(|| vec![0; PAGE]);
                let page = Page::of_mut(bytes);
                change(page);
                page.set_lsn(lsn);
            };
            match done {
                Done::Write(patches) => {
                    for (id, offset, bytes) in patches {
                        page(*id, &|page| page.write(*offset, bytes));
                    }
                }
                Done::Insert(id, place, entry) => {
                    let change = Change::LeafInsert {
                        page: *id,
                        place: *place,
                        entry,
                    };
                    page(*id, &|page| redo(page, &change).unwrap());
                }
                Done::Delete(id, place) => {
                    let change = Change::LeafDelete {
                        page: *id,
                        place: *place,
                    };
                    page(*id, &|page| redo(page, &change).unwrap());
                }
            }
            after(number + 1, &pages);
        }
        pages
    }
}

impl<L: Latch> Log<L> for Recorder {
    const REAL: bool = true;

    fn append(&self, _: TxId, _: Lsn, record: &Record<'_>) -> Result<Lsn> {
        let (Record::Change(change, _)
        | Record::Compensation(change, _)
        | Record::Structure(change)) = record;
        let mut records = self.0.lock().unwrap();
        records.push(Done::of(change));
        Ok(Lsn(records.len() as u64))
    }

    fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn end(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
}

/// A log that is not there.
pub(super) struct Nothing;

impl<L: Latch> Log<L> for Nothing {
    const REAL: bool = false;

    fn append(&self, _: TxId, _: Lsn, record: &Record<'_>) -> Result<Lsn> {
        panic!("nothing asks for {record:?} to be written down where there is no log")
    }

    fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn end(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
}

/// How a change is undone.
#[derive(Clone, Debug)]
pub(super) enum Back {
    Delete(Vec<u8>),
    Insert(Vec<u8>),
}

/// A transaction that remembers how it is undone.
pub(super) struct Transaction<'l, G> {
    pub(super) log: &'l G,
    pub(super) undo: Vec<Back>,
}

impl<'l, G> Transaction<'l, G> {
    pub(super) fn new(log: &'l G) -> Self {
        Self {
            log,
            undo: Vec::new(),
        }
    }
}

impl<G: Log<NoLatchOrNot>> Chain for Transaction<'_, G> {
    fn id(&self) -> TxId {
        TxId(1)
    }

    fn change(&mut self, change: Change<'_>, undo: Undo<'_>) -> Result<Lsn> {
        self.undo.push(match undo {
            Undo::IndexDelete {
                index: INDEX,
                entry,
            } => Back::Delete(entry.to_vec()),
            Undo::IndexInsert {
                index: INDEX,
                entry,
            } => Back::Insert(entry.to_vec()),
            other => panic!("no change of the index is undone by {other:?}"),
        });
        if G::REAL {
            self.log
                .append(self.id(), Lsn::NONE, &Record::Change(change, undo))
        } else {
            Ok(Lsn::NONE)
        }
    }

    fn structure(&mut self, change: Change<'_>) -> Result<Lsn> {
        if !G::REAL {
            return Ok(Lsn::NONE);
        }
        self.log
            .append(self.id(), Lsn::NONE, &Record::Structure(change))
    }
}

/// Any: the logs here are logs for all.
type NoLatchOrNot = crate::latch::NoLatch;

/// A gate that is closed now and then, and keeps what was passed.
#[derive(Default)]
pub(super) struct Gates {
    pub(super) passed: Vec<(Lockable, At)>,
    closed: Option<(Lockable, At)>,
    random: u64,
}

impl Gates {
    /// Closed every fourth time or so.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: seed,
            ..Self::default()
        }
    }
}

impl Gate for Gates {
    const REAL: bool = true;

    fn try_pass(&mut self, what: Lockable, at: At) -> bool {
        assert_eq!(self.closed, None, "a gate that was closed is waited for");
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if self.random >> 62 == 0 {
            self.closed = Some((what, at));
            return false;
        }
        self.passed.push((what, at));
        true
    }

    fn wait(&mut self, what: Lockable, at: At) -> Result<()> {
        assert_eq!(self.closed.take(), Some((what, at)));
        Ok(())
    }
}

/// What an entry is made of.
pub(super) fn split(entry: &[u8]) -> (&[u8], Rid) {
    let (key, rid) = entry.split_at(entry.len() - 8);
    (
        key,
        Rid::from_bits(u64::from_le_bytes(rid.try_into().unwrap())),
    )
}

/// Undoes all that a transaction did, newest first.
pub(super) fn roll_back<K: Keys, L: Latch, G: Log<L> + Log<NoLatchOrNot>>(
    tree: &Tree<'_, K, L, Direct<L, PAGE>, G>,
    transaction: &mut Transaction<'_, G>,
) {
    for back in std::mem::take(&mut transaction.undo).into_iter().rev() {
        let mut chain = Transaction::new(transaction.log);
        match back {
            Back::Delete(entry) => {
                let (key, rid) = split(&entry);
                tree.remove(key, rid, &mut Open, &mut chain).unwrap();
            }
            Back::Insert(entry) => {
                let (key, rid) = split(&entry);
                tree.insert(key, rid, &mut Open, &mut chain).unwrap();
            }
        }
    }
}

/// The tree is in order, has these entries and no others, and all pages that are not free are its own.
pub(super) fn assert_holds<K: Keys, L: Latch, G: Log<L>>(
    tree: &Tree<'_, K, L, Direct<L, PAGE>, G>,
    entries: &Entries,
) -> Counts {
    let (mut pages, mut found) = (Vec::new(), Entries::new());
    let counts = tree
        .verify(
            |page| {
                pages.push(page);
                Ok(())
            },
            |key, rid| {
                found.insert(key.to_vec(), rid);
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(&found, entries);
    assert_eq!(counts.entries, entries.len() as u64);
    assert_eq!(counts.leaves + counts.inner, pages.len() as u64);
    let census = tree.pages.census().unwrap();
    pages.extend(census.free);
    pages.sort_unstable();
    assert_eq!(
        pages, census.all,
        "each page is the tree's or free, and is so once"
    );
    counts
}

/// The pages of a tree are what the log makes of nothing, up to their last entries.
pub(super) fn assert_redone<K: Keys, L: Latch>(tree: &Tree<'_, K, L, Direct<L, PAGE>, Recorder>) {
    let mut redone = tree.log.redone();
    let mut pages = Vec::new();
    tree.verify(
        |page| {
            pages.push(page);
            Ok(())
        },
        |_, _| Ok(()),
    )
    .unwrap();
    for id in pages {
        let node = tree.shared(id).unwrap();
        let bytes = redone.remove(&id).expect("the page is in the log");
        assert_eq!(node.bytes()[4..node.end()], bytes[4..node.end()], "{id:?}");
    }
}

/// The keys that are tried: of one field and several, of each length that is compared in its own way, and of any.
pub(super) fn shapes() -> Vec<Shape> {
    vec![
        Shape::new(&[Field::Int]),
        Shape::new(&[Field::Long]),
        Shape::new(&[Field::Int, Field::Long]),
        Shape::new(&[Field::Long, Field::Int, Field::Int]),
        Shape::new(&[Field::Int, Field::Text(5)]),
    ]
}

/// The key of a number: those of larger ones are larger.
pub(super) fn key(shape: &Shape, number: i32) -> Vec<u8> {
    let text = format!("{:04}", number.rem_euclid(16));
    let last = shape.fields().len() - 1;
    let values: Vec<_> = shape
        .fields()
        .iter()
        .enumerate()
        .map(|(place, field)| {
            let (high, low) = (number.div_euclid(16), number.rem_euclid(16));
            let value = if last == 0 {
                number
            } else if place == 0 {
                high
            } else if place == last {
                low
            } else {
                0
            };
            match field {
                Field::Int => Value::Int(value),
                Field::Long => Value::Long(i64::from(value)),
                Field::Text(_) => Value::Text(text.as_bytes()),
            }
        })
        .collect();
    let mut bytes = vec![0; shape.length()];
    shape.encode(&values, &mut bytes).unwrap();
    bytes
}
