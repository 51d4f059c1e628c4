//! Engines against maps: each component there and absent, one session and several.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::semicolon_if_nothing_returned,
    reason = "small numbers, and steps that are nothing but asserted"
)]

use std::ops::ControlFlow;
use std::sync::Arc;

use super::*;
use crate::assembly::Built;
use crate::calls::{Call, Counted};
use crate::catalogue::Catalogue as _;
use crate::catalogue::{ByName, Resolved};
use crate::keys::{Field, Typed, Words};
use crate::latch::{NoLatch, RwLatch};
use crate::locks::{Granular, NoLocks};
use crate::log::{NoLog, Wal};
use crate::pages::disk::crash::CrashFolder;
use crate::pages::{Direct, Pool};
use crate::transactions::{NoTransactions, Real};

mod alone;
mod faults;
mod together;

/// Little enough that pages are evicted.
const MEMORY: usize = 64 * 8192;

fn options() -> Options {
    Options {
        memory: MEMORY,
        log: log::Options {
            policy: log::Policy::Synced,
            buffer: 1 << 20,
            segment: 1 << 20,
        },
        checkpoint: 1 << 20,
        patience: Duration::from_secs(60),
    }
}

fn open<A: Assembly>(folder: &CrashFolder) -> Engine<A> {
    let folder: Arc<dyn Folder> = Arc::new(folder.clone());
    let mut options = options();
    if A::PAGE > 8192 {
        options.memory *= 4;
    }
    Engine::open(Some(folder), &options).expect("it opens")
}

/// An assembly of small pages, and one of plain memory.
type Small<L, G, X, T, K, C> = Built<8192, false, L, Pool<L, 8192>, G, X, T, K, C, Counted>;
type Plain<L, G, X, T, K, C> = Built<32768, false, L, Direct<L, 32768>, G, X, T, K, C, Counted>;

type Rw = RwLatch;
type No = NoLatch;

/// Runs a test on all, none, and all but one, as types: what a component does must not hang on any other.
/// [`crate::assembly::with`] would compile each test for all 80.
macro_rules! in_each {
    ($run:ident) => {
        $run::<Small<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Typed, ByName>>("full");
        $run::<Small<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Words, ByName>>("without keys");
        $run::<Small<Rw, NoLog, Granular<Rw>, Real<Rw>, Typed, ByName>>("without log");
        $run::<Small<Rw, Wal<Rw>, NoLocks, Real<Rw>, Typed, ByName>>("without locks");
        $run::<Small<No, Wal<No>, Granular<No>, Real<No>, Typed, ByName>>("without latches");
        $run::<Plain<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Typed, ByName>>("without buffer");
        $run::<Small<Rw, NoLog, NoLocks, NoTransactions, Typed, ByName>>("without transactions");
        $run::<Small<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Typed, Resolved>>("without catalogue");
        $run::<Plain<No, NoLog, NoLocks, NoTransactions, Words, Resolved>>("none");
    };
}

use in_each;

/// A table of goods: records with a number, a kind and anything behind, found by number, and by kind and number.
struct Goods {
    table: TableHandle,
    by_number: IndexHandle,
    by_kind: IndexHandle,
}

fn number_key(number: i32) -> [u8; 4] {
    (number as u32 ^ 1 << 31).to_be_bytes()
}

fn kind_key(kind: i32, number: i32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&number_key(kind));
    key[4..].copy_from_slice(&number_key(number));
    key
}

/// The kind is the first byte, so that it can change.
fn kind_of(record: &[u8]) -> i32 {
    record.first().map_or(-1, |&byte| i32::from(byte) - 100)
}

impl Goods {
    fn make<A: Assembly>(engine: &Engine<A>) -> Self {
        let table = engine.create_table("goods").expect("it is new");
        let by_number = Shape::new(&[Field::Int]);
        let by_kind = Shape::new(&[Field::Int, Field::Int]);
        engine
            .create_index("goods by number", &table, &by_number)
            .expect("it is new");
        engine
            .create_index("goods by kind", &table, &by_kind)
            .expect("it is new");
        Self::find(engine)
    }

    fn find<A: Assembly>(engine: &Engine<A>) -> Self {
        Self {
            table: engine.table_handle("goods").expect("it is there"),
            by_number: engine.index_handle("goods by number").expect("it is there"),
            by_kind: engine.index_handle("goods by kind").expect("it is there"),
        }
    }

    fn add<A: Assembly>(
        &self,
        session: &mut Session<'_, A>,
        number: i32,
        record: &[u8],
    ) -> Result<()> {
        let table = session.table(&self.table)?;
        let (by_number, by_kind) = (
            session.index(&self.by_number)?,
            session.index(&self.by_kind)?,
        );
        let rid = session.create(table, record)?;
        match session.insert(by_number, &number_key(number), rid) {
            Err(Error::Duplicate) => {
                session.delete(table, rid)?;
                return Err(Error::Duplicate);
            }
            other => other?,
        }
        session.insert(by_kind, &kind_key(kind_of(record), number), rid)
    }

    fn find_record<A: Assembly>(
        &self,
        session: &mut Session<'_, A>,
        number: i32,
        access: Access,
    ) -> Result<Option<(Rid, Vec<u8>)>> {
        let table = session.table(&self.table)?;
        let index = session.index(&self.by_number)?;
        let Some(rid) = session.lookup(index, &number_key(number), access)? else {
            return Ok(None);
        };
        let pinned = session.pin(table, rid)?;
        let record = session.read(&pinned, <[u8]>::to_vec)?;
        Ok(Some((rid, record)))
    }

    fn take<A: Assembly>(&self, session: &mut Session<'_, A>, number: i32) -> Result<bool> {
        let Some((rid, record)) = self.find_record(session, number, Access::Change)? else {
            return Ok(false);
        };
        let table = session.table(&self.table)?;
        let (by_number, by_kind) = (
            session.index(&self.by_number)?,
            session.index(&self.by_kind)?,
        );
        session.remove(by_kind, &kind_key(kind_of(&record), number), rid)?;
        session.remove(by_number, &number_key(number), rid)?;
        session.delete(table, rid)?;
        Ok(true)
    }

    /// Changes bytes of a record behind the first.
    fn paint<A: Assembly>(
        &self,
        session: &mut Session<'_, A>,
        number: i32,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool> {
        let Some((rid, _)) = self.find_record(session, number, Access::Change)? else {
            return Ok(false);
        };
        let table = session.table(&self.table)?;
        let pinned = session.pin(table, rid)?;
        session.update(&pinned, offset, bytes)?;
        Ok(true)
    }

    /// Makes it another altogether.
    fn replace<A: Assembly>(
        &self,
        session: &mut Session<'_, A>,
        number: i32,
        record: &[u8],
    ) -> Result<bool> {
        let Some((rid, before)) = self.find_record(session, number, Access::Change)? else {
            return Ok(false);
        };
        let table = session.table(&self.table)?;
        let pinned = session.pin(table, rid)?;
        session.replace(table, &pinned, record)?;
        let (was, is) = (kind_of(&before), kind_of(record));
        if was != is {
            let by_kind = session.index(&self.by_kind)?;
            session.remove(by_kind, &kind_key(was, number), rid)?;
            session.insert(by_kind, &kind_key(is, number), rid)?;
        }
        Ok(true)
    }

    /// Numbers from one to another, both included.
    fn numbers<A: Assembly>(
        &self,
        session: &mut Session<'_, A>,
        from: i32,
        to: i32,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<i32>> {
        let index = session.index(&self.by_number)?;
        let mut numbers = Vec::new();
        session.scan(
            index,
            &number_key(from),
            &number_key(to),
            Access::Read,
            direction,
            |key, _| {
                let bits = u32::from_be_bytes(key.try_into().expect("of 4 bytes")) ^ 1 << 31;
                numbers.push(bits as i32);
                if numbers.len() == most {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        )?;
        Ok(numbers)
    }
}
