//! What transactions do at the same time comes out as if they had been done one after the other.
//!
//! Several sessions look up, scan, insert, change and delete records with few keys, so that they are in each other's way most of
//! the time, in a table with two indexes; some roll back, and all do that are told of a deadlock. Each notes what it did
//! and what it saw. With strict two-phase locks the order of commits is an order in which they could have been done one by
//! one: a number is taken when a transaction has all its locks and before it gives any back, so what two of them are at
//! odds about, the one with the lower number did first. One thread does that, with a map instead of an engine, and whatever was seen
//! (what was found and what was not, also by those that went on afterwards) must be what the map has.
//!
//! `DYNO_GLASS_OPERATIONS` says how many operations are done by each test (by default, as many as take some seconds).

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use std::collections::BTreeMap;
use std::env;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dyno_glass::assembly::{Assembly, Built};
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::{ByName, IndexHandle, Resolved, TableHandle};
use dyno_glass::engine::{Access, Direction, Engine, Options, Session};
use dyno_glass::keys::{Field, Shape, Typed, Value, Words};
use dyno_glass::latch::RwLatch;
use dyno_glass::locks::Granular;
use dyno_glass::log::{self, NoLog, Policy, Wal};
use dyno_glass::pages::disk::crash::CrashFolder;
use dyno_glass::pages::{Direct, Pool};
use dyno_glass::transactions::Real;
use dyno_glass::{Error, Result, Rid};

/// Of a page, in bytes, also of those in plain memory: there are to be many.
const PAGE: usize = 8 * 1024;

/// With all components.
type Full = Built<
    PAGE,
    false,
    RwLatch,
    Pool<RwLatch, PAGE>,
    Wal<RwLatch>,
    Granular<RwLatch>,
    Real<RwLatch>,
    Typed,
    ByName,
    NoCalls,
>;

/// With those alone that several sessions cannot be without.
type Least = Built<
    PAGE,
    false,
    RwLatch,
    Direct<RwLatch, PAGE>,
    NoLog,
    Granular<RwLatch>,
    Real<RwLatch>,
    Words,
    Resolved,
    NoCalls,
>;

/// Sessions, each in a thread.
const SESSIONS: u64 = 6;

/// Keys are below: several leaves of an index, so that nodes are split, and removed when a range is deleted.
const KEYS: u32 = 400;

/// One of so many keys is asked for as often as all others together.
const HOT: u32 = 20;

/// Colours are below.
const COLOURS: u32 = 5;

/// Of a key in an index, in bytes: long ones, for there to be several leaves.
const KEY_LENGTH: u16 = 120;

/// A record: what it says, apart from its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thing {
    /// The second index has it before the key.
    colour: u32,
    /// No two changes write the same.
    stamp: u64,
    /// Of the record, in bytes; all from [`Thing::HEAD`] on are alike.
    length: usize,
}

impl Thing {
    const HEAD: usize = 16;

    /// The record.
    fn bytes(self, key: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length);
        bytes.extend(key.to_le_bytes());
        bytes.extend(self.colour.to_le_bytes());
        bytes.extend(self.stamp.to_le_bytes());
        bytes.resize(self.length, key.to_le_bytes()[0]);
        bytes
    }

    /// The key and the rest, of a record.
    fn of(bytes: &[u8]) -> (u32, Self) {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (key, colour) = (word(0), word(4));
        let stamp = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        assert!(
            bytes[Self::HEAD..]
                .iter()
                .all(|byte| *byte == key.to_le_bytes()[0]),
            "a record of two"
        );
        (
            key,
            Self {
                colour,
                stamp,
                length: bytes.len(),
            },
        )
    }
}

/// Which things of a table.
#[derive(Clone, Copy, Debug)]
enum Range {
    /// With these keys, both included.
    Keys(u32, u32),
    /// Of that colour.
    Colour(u32),
}

/// What a transaction did, and what it saw.
#[derive(Clone, Debug)]
enum Did {
    LookedUp {
        key: u32,
        saw: Option<Thing>,
    },
    Scanned {
        range: Range,
        backwards: bool,
        most: usize,
        saw: Vec<(u32, Thing)>,
    },
    Inserted {
        key: u32,
        thing: Thing,
        was_there: bool,
    },
    Changed {
        key: u32,
        to: Thing,
    },
    Deleted {
        key: u32,
    },
}

/// The table, as a map; changed by one transaction after the other.
#[derive(Default)]
struct Model(BTreeMap<u32, Thing>);

impl Model {
    fn range(&self, range: Range) -> Vec<(u32, Thing)> {
        let all = self.0.iter().map(|(key, thing)| (*key, *thing));
        match range {
            Range::Keys(from, to) => all.filter(|(key, _)| (from..=to).contains(key)).collect(),
            Range::Colour(colour) => all.filter(|(_, thing)| thing.colour == colour).collect(),
        }
    }

    /// Does the same, and says what should have been seen if that is something else.
    fn redo(&mut self, did: &Did) -> std::result::Result<(), String> {
        let right = match did {
            Did::LookedUp { key, saw } => *saw == self.0.get(key).copied(),
            Did::Scanned {
                range,
                backwards,
                most,
                saw,
            } => {
                let mut all = self.range(*range);
                if *backwards {
                    all.reverse();
                }
                all.truncate(*most);
                *saw == all
            }
            Did::Inserted {
                key,
                thing,
                was_there,
            } => {
                let there = self.0.contains_key(key);
                self.0.entry(*key).or_insert(*thing);
                *was_there == there
            }
            Did::Changed { key, to } => self.0.insert(*key, *to).is_some(),
            Did::Deleted { key } => self.0.remove(key).is_some(),
        };
        if right {
            return Ok(());
        }
        Err(match did {
            Did::Scanned { range, .. } => {
                format!("{did:?}, but there was {:?}", self.range(*range))
            }
            Did::LookedUp { key, .. }
            | Did::Inserted { key, .. }
            | Did::Changed { key, .. }
            | Did::Deleted { key } => format!("{did:?}, but there was {:?}", self.0.get(key)),
        })
    }
}

/// A transaction that has ended well.
struct Committed {
    number: u64,
    did: Vec<Did>,
}

/// Does again what comes in, in its order. Gives what is there at the end and how much was done, or the first that is wrong.
fn check(committed: &Receiver<Committed>) -> std::result::Result<(Model, u64), String> {
    let mut model = Model::default();
    let mut operations = 0;
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for transaction in committed {
        waiting.insert(transaction.number, transaction.did);
        while let Some(did) = waiting.remove(&next) {
            for (at, one) in did.iter().enumerate() {
                model
                    .redo(one)
                    .map_err(|wrong| format!("transaction {next}, {at}: {wrong}\nof {did:#?}"))?;
            }
            operations += did.len() as u64;
            next += 1;
        }
    }
    if waiting.is_empty() {
        Ok((model, operations))
    } else {
        Err(format!("number {next} is missing"))
    }
}

/// As a text, ordered as it is.
fn text(key: u32) -> Vec<u8> {
    format!("{key:0>width$}", width = usize::from(KEY_LENGTH)).into_bytes()
}

/// What all sessions use.
struct Shared {
    table: TableHandle,
    by_key: IndexHandle,
    by_colour: IndexHandle,
    shapes: [Shape; 2],
    /// The next number.
    commits: AtomicU64,
    /// Operations that are still to be done.
    left: AtomicU64,
    /// The next stamp.
    stamps: AtomicU64,
    deadlocks: AtomicU64,
    rollbacks: AtomicU64,
    /// Something is wrong: nobody needs to go on.
    failed: AtomicBool,
}

impl Shared {
    fn key(&self, key: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.shapes[0].length()];
        self.shapes[0]
            .encode(&[Value::Text(&text(key))], &mut bytes)
            .unwrap();
        bytes
    }

    fn coloured_key(&self, colour: u32, key: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.shapes[1].length()];
        let values = [Value::Int(colour.cast_signed()), Value::Text(&text(key))];
        self.shapes[1].encode(&values, &mut bytes).unwrap();
        bytes
    }

    fn thing(&self, numbers: &mut Numbers) -> Thing {
        // Now and then one that no page has room for beside others, so that records move.
        let most = if numbers.below(20) == 0 { 3000 } else { 200 };
        let length = Thing::HEAD + numbers.below(most) as usize;
        Thing {
            colour: numbers.below(COLOURS),
            stamp: self.stamps.fetch_add(1, Ordering::Relaxed),
            length,
        }
    }
}

/// A sequence of numbers that depends on its seed alone (Steele, Lea, Flood 2014: `SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((z ^ z >> 31) % u64::from(end)).unwrap()
    }
}

/// A session, and what its transaction did so far.
struct User<'s, 'e, A: Assembly> {
    shared: &'s Shared,
    session: Session<'e, A>,
    numbers: Numbers,
    did: Vec<Did>,
}

impl<A: Assembly> User<'_, '_, A> {
    /// Does transactions until enough operations are done.
    fn run(&mut self, committed: &Sender<Committed>) {
        while !self.shared.failed.load(Ordering::Relaxed) {
            let size = 1 + u64::from(self.numbers.below(8));
            let left = |left: u64| left.checked_sub(size);
            if self
                .shared
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_err()
            {
                return;
            }
            // Until it does, as whoever has lost against others would try again.
            while !self.transaction(size, committed) {}
        }
    }

    /// Whether it came to an end of its own.
    fn transaction(&mut self, size: u64, committed: &Sender<Committed>) -> bool {
        self.did.clear();
        self.session.begin().unwrap();
        match (0..size).try_for_each(|_| self.operation()) {
            Ok(()) if self.numbers.below(8) == 0 => {
                self.session.rollback().unwrap();
                self.shared.rollbacks.fetch_add(1, Ordering::Relaxed);
                true
            }
            Ok(()) => {
                let number = self.shared.commits.fetch_add(1, Ordering::SeqCst);
                self.session.commit().unwrap();
                let did = std::mem::take(&mut self.did);
                // Nobody hears it any more where something is wrong already.
                let _ = committed.send(Committed { number, did });
                true
            }
            Err(Error::Deadlock) => {
                self.session.rollback().unwrap();
                self.shared.deadlocks.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(error) => panic!("{error} after {:#?}", self.did),
        }
    }

    /// Something.
    fn operation(&mut self) -> Result<()> {
        if self.numbers.below(4) == 0 {
            // So that others come in between.
            thread::yield_now();
        }
        let key = match self.numbers.below(2) {
            0 => self.numbers.below(KEYS),
            _ => self.numbers.below(KEYS / HOT) * HOT,
        };
        match self.numbers.below(32) {
            0..8 => {
                self.look_up(key, Access::Read)?;
            }
            8..13 => self.change(key)?,
            13..19 => self.insert(key)?,
            19..23 => self.delete(key)?,
            23..26 => {
                let to = key + self.numbers.below(12);
                self.scan(Range::Keys(key, to), Access::Read)?;
            }
            26..29 => {
                let colour = self.numbers.below(COLOURS);
                self.scan(Range::Colour(colour), Access::Read)?;
            }
            29 => {
                let to = key + self.numbers.below(6);
                for (key, thing, rid) in self.scan(Range::Keys(key, to), Access::Change)? {
                    self.change_to_another(key, thing, rid)?;
                }
            }
            30 => {
                // Leaves become empty.
                let to = key + self.numbers.below(60);
                for (key, thing, rid) in self.scan(Range::Keys(key, to), Access::Change)? {
                    self.delete_found(key, thing, rid)?;
                }
            }
            _ => {
                // And are filled.
                for key in key..KEYS.min(key + self.numbers.below(30)) {
                    self.insert(key)?;
                }
            }
        }
        Ok(())
    }

    /// What is there, seen through the index.
    fn look_up(&mut self, key: u32, access: Access) -> Result<Option<(Thing, Rid)>> {
        let index = self.session.index(&self.shared.by_key)?;
        let found = match self.session.lookup(index, &self.shared.key(key), access)? {
            None => None,
            Some(rid) => {
                let (has, thing) = self.read(rid)?;
                assert_eq!(has, key, "the index leads elsewhere");
                Some((thing, rid))
            }
        };
        self.did.push(Did::LookedUp {
            key,
            saw: found.map(|(thing, _)| thing),
        });
        Ok(found)
    }

    fn read(&mut self, rid: Rid) -> Result<(u32, Thing)> {
        let table = self.session.table(&self.shared.table)?;
        let pinned = self.session.pin(table, rid)?;
        self.session.read(&pinned, Thing::of)
    }

    /// Either way, sometimes not to its end.
    fn scan(&mut self, range: Range, access: Access) -> Result<Vec<(u32, Thing, Rid)>> {
        let backwards = self.numbers.below(2) == 0;
        let most = match self.numbers.below(4) {
            0 => 1 + self.numbers.below(4) as usize,
            _ => usize::MAX,
        };
        self.scan_at_most(most, range, access, backwards)
    }

    fn scan_at_most(
        &mut self,
        most: usize,
        range: Range,
        access: Access,
        backwards: bool,
    ) -> Result<Vec<(u32, Thing, Rid)>> {
        let direction = if backwards {
            Direction::Backwards
        } else {
            Direction::Forwards
        };
        let (index, from, to) = match range {
            Range::Keys(from, to) => (
                &self.shared.by_key,
                self.shared.key(from),
                self.shared.key(to),
            ),
            Range::Colour(colour) => (
                &self.shared.by_colour,
                self.shared.coloured_key(colour, 0),
                self.shared.coloured_key(colour, KEYS),
            ),
        };
        let index = self.session.index(index)?;
        let mut rids = Vec::new();
        self.session
            .scan(index, &from, &to, access, direction, |_, rid| {
                rids.push(rid);
                if rids.len() == most {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        let mut found = Vec::new();
        for rid in rids {
            let (key, thing) = self.read(rid)?;
            found.push((key, thing, rid));
        }
        let saw = found.iter().map(|(key, thing, _)| (*key, *thing)).collect();
        self.did.push(Did::Scanned {
            range,
            backwards,
            most,
            saw,
        });
        Ok(found)
    }

    fn insert(&mut self, key: u32) -> Result<()> {
        let thing = self.shared.thing(&mut self.numbers);
        let table = self.session.table(&self.shared.table)?;
        let rid = self.session.create(table, &thing.bytes(key))?;
        let by_key = self.session.index(&self.shared.by_key)?;
        let was_there = match self.session.insert(by_key, &self.shared.key(key), rid) {
            Ok(()) => {
                let by_colour = self.session.index(&self.shared.by_colour)?;
                self.session.insert(
                    by_colour,
                    &self.shared.coloured_key(thing.colour, key),
                    rid,
                )?;
                false
            }
            Err(Error::Duplicate) => {
                self.session.delete(table, rid)?;
                true
            }
            Err(error) => return Err(error),
        };
        self.did.push(Did::Inserted {
            key,
            thing,
            was_there,
        });
        Ok(())
    }

    fn change(&mut self, key: u32) -> Result<()> {
        match self.look_up(key, Access::Change)? {
            Some((thing, rid)) => self.change_to_another(key, thing, rid),
            None => Ok(()),
        }
    }

    /// In its place, or all of it, its colour with it or not.
    fn change_to_another(&mut self, key: u32, from: Thing, rid: Rid) -> Result<()> {
        let mut to = self.shared.thing(&mut self.numbers);
        let table = self.session.table(&self.shared.table)?;
        let pinned = self.session.pin(table, rid)?;
        if self.numbers.below(2) == 0 {
            (to.colour, to.length) = (from.colour, from.length);
            self.session.update(&pinned, 8, &to.stamp.to_le_bytes())?;
        } else {
            self.session.replace(table, &pinned, &to.bytes(key))?;
        }
        drop(pinned);
        if to.colour != from.colour {
            let index = self.session.index(&self.shared.by_colour)?;
            self.session
                .remove(index, &self.shared.coloured_key(from.colour, key), rid)?;
            self.session
                .insert(index, &self.shared.coloured_key(to.colour, key), rid)?;
        }
        self.did.push(Did::Changed { key, to });
        Ok(())
    }

    fn delete(&mut self, key: u32) -> Result<()> {
        match self.look_up(key, Access::Change)? {
            Some((thing, rid)) => self.delete_found(key, thing, rid),
            None => Ok(()),
        }
    }

    fn delete_found(&mut self, key: u32, thing: Thing, rid: Rid) -> Result<()> {
        let by_colour = self.session.index(&self.shared.by_colour)?;
        self.session
            .remove(by_colour, &self.shared.coloured_key(thing.colour, key), rid)?;
        let by_key = self.session.index(&self.shared.by_key)?;
        self.session.remove(by_key, &self.shared.key(key), rid)?;
        let table = self.session.table(&self.shared.table)?;
        self.session.delete(table, rid)?;
        self.did.push(Did::Deleted { key });
        Ok(())
    }
}

/// Sets the flag if it is dropped while its thread panics, so that the others do not go on for long.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Does so many operations, with an assembly that is called so.
fn check_assembly<A: Assembly<Calls = NoCalls>>(name: &str, operations: u64) {
    // Little memory, so that pages come and go, and checkpoints all the time.
    let options = Options {
        memory: 32 * PAGE,
        log: log::Options {
            policy: Policy::Written(Duration::from_millis(5)),
            ..log::Options::default()
        },
        checkpoint: 1 << 20,
        ..Options::default()
    };
    let engine = Engine::<A>::open(Some(Arc::new(CrashFolder::new())), &options).unwrap();
    let table = engine.create_table("things").unwrap();
    let key = Field::Text(KEY_LENGTH);
    let shapes = [Shape::new(&[key]), Shape::new(&[Field::Int, key])];
    let by_key = engine.create_index("by key", &table, &shapes[0]).unwrap();
    let by_colour = engine
        .create_index("by colour", &table, &shapes[1])
        .unwrap();
    let shared = &Shared {
        table,
        by_key,
        by_colour,
        shapes,
        commits: AtomicU64::new(0),
        left: AtomicU64::new(operations),
        stamps: AtomicU64::new(1),
        deadlocks: AtomicU64::new(0),
        rollbacks: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let user = |seed| User {
        shared,
        session: engine.session().unwrap(),
        numbers: Numbers(seed),
        did: Vec::new(),
    };
    let (mut model, done) = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for seed in 0..SESSIONS {
            let sender = sender.clone();
            scope.spawn(move || {
                let _alarm = Alarm(&shared.failed);
                user(seed).run(&sender);
            });
        }
        drop(sender);
        let checked = check(&receiver);
        shared.failed.fetch_or(checked.is_err(), Ordering::Relaxed);
        checked
    })
    .unwrap_or_else(|wrong| panic!("{name}: {wrong}"));

    // What is there at the end is what the map has, and the engine finds nothing wrong with itself.
    let mut last = user(SESSIONS);
    last.session.begin().unwrap();
    for range in (0..COLOURS)
        .map(Range::Colour)
        .chain([Range::Keys(0, KEYS)])
    {
        last.scan_at_most(usize::MAX, range, Access::Read, false)
            .unwrap();
    }
    last.did.iter().try_for_each(|did| model.redo(did)).unwrap();
    last.session.commit().unwrap();
    drop(last);
    engine.verify().unwrap();

    let counts = [&shared.commits, &shared.deadlocks, &shared.rollbacks];
    let counts = counts.map(|count| count.load(Ordering::Relaxed));
    let [commits, deadlocks, rollbacks] = counts;
    println!(
        "{name}: {done} operations in {commits} commits; {deadlocks} deadlocks, {rollbacks} rolled back"
    );
    assert!(!counts.contains(&0), "nobody was in anybody's way");
}

/// As many as take some seconds, unless somebody says how many.
fn operations() -> u64 {
    env::var("DYNO_GLASS_OPERATIONS").map_or(200_000, |text| text.parse().unwrap())
}

#[test]
fn with_all_components_transactions_are_as_if_alone() {
    check_assembly::<Full>("full", operations());
}

#[test]
fn in_plain_memory_without_a_log_transactions_are_as_if_alone() {
    check_assembly::<Least>("locks+latches+transactions", operations());
}
