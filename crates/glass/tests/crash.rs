//! The power fails between any two operations of the disk, over and over, also while the engine recovers: what was
//! committed is there, and nothing that was not. Half of the times the process ends there and the power does not fail, so that
//! who comes next finds what was not synced, and may lose it yet.
//!
//! Sessions run random transactions over several tables and indexes, some of which they roll back, with a pool too small
//! for the pages and a checkpoint every few transactions. What is left on disk at each point, of unsynced writes any part, is where the
//! next one begins. Transactions that had asked to be committed and had no answer may be there or not, but whole.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dyno_glass::assembly::{Assembly, Built};
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::{ByName, IndexHandle, Resolved, TableHandle};
use dyno_glass::engine::{Access, Direction, Engine, Options, Session};
use dyno_glass::keys::{Field, Shape, Typed, Words};
use dyno_glass::latch::{NoLatch, RwLatch};
use dyno_glass::locks::{Granular, NoLocks};
use dyno_glass::log::{self, Policy, Wal};
use dyno_glass::pages::Pool;
use dyno_glass::pages::disk::crash::CrashFolder;
use dyno_glass::transactions::Real;
use dyno_glass::{Error, Result};

/// Small, so that nodes split and records move.
const PAGE: usize = 1024;
const TABLES: usize = 3;
/// Of each table.
const KEYS: u64 = 120;
const GROUPS: u64 = 7;

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

/// As few components as a store has that outlives a crash.
type Bare = Built<
    PAGE,
    false,
    NoLatch,
    Pool<NoLatch, PAGE>,
    Wal<NoLatch>,
    NoLocks,
    Real<NoLatch>,
    Words,
    Resolved,
    NoCalls,
>;

/// Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A record: its key, its group, and some bytes that no other version of it has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    group: u64,
    bytes: Vec<u8>,
}

impl Row {
    fn new(random: &mut Random) -> Self {
        // Most are short, some fill a page by half.
        let length = if random.below(8) == 0 { 400 } else { 40 };
        let mut bytes = random.next().to_le_bytes().to_vec();
        bytes.resize(8 + random.below(length) as usize, random.next() as u8);
        Self {
            group: random.below(GROUPS),
            bytes,
        }
    }

    fn encode(&self, key: u64) -> Vec<u8> {
        let mut record = key.to_be_bytes().to_vec();
        record.extend(self.group.to_be_bytes());
        record.extend(&self.bytes);
        record
    }

    fn decode(record: &[u8]) -> (u64, Self) {
        let number = |at: usize| u64::from_be_bytes(record[at..at + 8].try_into().unwrap());
        let row = Self {
            group: number(8),
            bytes: record[16..].to_vec(),
        };
        (number(0), row)
    }

    /// Its key in the index of groups.
    fn grouped(&self, key: u64) -> [u8; 16] {
        let mut grouped = [0; 16];
        grouped[..8].copy_from_slice(&self.group.to_be_bytes());
        grouped[8..].copy_from_slice(&key.to_be_bytes());
        grouped
    }
}

type Place = (usize, u64);

/// What the store holds, as far as is known.
#[derive(Default)]
struct Model {
    /// With all that was asked to be committed.
    rows: BTreeMap<Place, Row>,
    /// Those without an answer that promises that they last, in the order in which they asked. Others may have gone on from
    /// there, where commits are not synced.
    unanswered: BTreeMap<u64, Unanswered>,
    asked: u64,
}

struct Unanswered {
    /// What was there, and what it put there.
    changes: BTreeMap<Place, (Option<Row>, Option<Row>)>,
    /// What no other session changes, and this one with each transaction.
    mark: Place,
}

impl Model {
    /// A transaction that changed that is about to be committed. Its locks are held.
    fn ask(&mut self, changes: &BTreeMap<Place, Option<Row>>, mark: Place) -> u64 {
        let changes = changes.iter().map(|(place, after)| {
            let before = match after {
                Some(row) => self.rows.insert(*place, row.clone()),
                None => self.rows.remove(place),
            };
            (*place, (before, after.clone()))
        });
        let changes = changes.collect();
        self.asked += 1;
        self.unanswered
            .insert(self.asked, Unanswered { changes, mark });
        self.asked
    }

    /// Looks at what is there after a crash.
    fn agree(&mut self, found: &BTreeMap<Place, Row>) {
        // A session's transaction is there if a later one of its is.
        let mut there = BTreeSet::new();
        for asked in std::mem::take(&mut self.unanswered).into_values().rev() {
            let (_, mark) = &asked.changes[&asked.mark];
            if there.contains(&asked.mark) || found.get(&asked.mark) == mark.as_ref() {
                there.insert(asked.mark);
                continue;
            }
            for (place, (before, _)) in asked.changes {
                match before {
                    Some(row) => self.rows.insert(place, row),
                    None => self.rows.remove(&place),
                };
            }
        }
        let places: BTreeSet<_> = self.rows.keys().chain(found.keys()).collect();
        for place in places {
            assert_eq!(found.get(place), self.rows.get(place), "{place:?}");
        }
    }
}

/// A table and its indexes.
struct Handles {
    table: TableHandle,
    by_key: IndexHandle,
    by_group: IndexHandle,
}

struct Store<A: Assembly> {
    engine: Engine<A>,
    tables: Vec<Handles>,
    folder: CrashFolder,
    /// Whether what is committed is there to stay.
    lasts: bool,
    rollback_interrupted: AtomicBool,
}

impl<A: Assembly> Store<A> {
    fn open(folder: &CrashFolder, policy: Policy) -> Result<Self> {
        let options = Options {
            memory: 24 * PAGE,
            log: log::Options {
                policy,
                buffer: 40 << 10,
                segment: 8 << 10,
            },
            checkpoint: 24 << 10,
            patience: Duration::from_secs(60),
        };
        let engine = Engine::<A>::open(Some(Arc::new(folder.clone())), &options)?;
        let mut tables = Vec::new();
        for number in 0..TABLES {
            let name = |what: &str| format!("{what} {number}");
            // Whatever of these was made before the power failed is there, whole.
            let table = match engine.table_handle(&name("table")) {
                Err(Error::Missing(_)) => engine.create_table(&name("table"))?,
                other => other?,
            };
            let index = |name: &str, fields: &[Field]| match engine.index_handle(name) {
                Err(Error::Missing(_)) => engine.create_index(name, &table, &Shape::new(fields)),
                other => other,
            };
            let by_key = index(&name("by key"), &[Field::Long])?;
            let by_group = index(&name("by group"), &[Field::Long, Field::Long])?;
            tables.push(Handles {
                table,
                by_key,
                by_group,
            });
        }
        Ok(Self {
            engine,
            tables,
            folder: folder.clone(),
            lasts: policy == Policy::Synced,
            rollback_interrupted: AtomicBool::new(false),
        })
    }

    /// All that is in it, after looking whether it is sound.
    fn rows(&self) -> Result<BTreeMap<Place, Row>> {
        self.engine.verify()?;
        let mut rows = BTreeMap::new();
        let mut session = self.engine.session()?;
        session.begin()?;
        for (number, handles) in self.tables.iter().enumerate() {
            let table = session.table(&handles.table)?;
            let [by_key, by_group] =
                [&handles.by_key, &handles.by_group].map(|handle| session.index(handle));
            let (by_key, by_group) = (by_key?, by_group?);
            let mut found = Vec::new();
            let (access, direction) = (Access::Read, Direction::Forwards);
            session.scan(
                by_key,
                &[0; 8],
                &[0xff; 8],
                access,
                direction,
                |key, rid| {
                    found.push((u64::from_be_bytes(key.try_into().unwrap()), rid));
                    ControlFlow::Continue(())
                },
            )?;
            let mut groups = BTreeSet::new();
            session.scan(
                by_group,
                &[0; 16],
                &[0xff; 16],
                access,
                direction,
                |key, rid| {
                    groups.insert((key.to_vec(), rid));
                    ControlFlow::Continue(())
                },
            )?;
            assert_eq!(found.len(), groups.len());
            for (key, rid) in found {
                let pinned = session.pin(table, rid)?;
                let (is, row) = session.read(&pinned, Row::decode)?;
                assert_eq!(is, key);
                assert!(groups.contains(&(row.grouped(key).to_vec(), rid)));
                rows.insert((number, key), row);
            }
        }
        session.commit()?;
        Ok(rows)
    }

    /// Runs so many transactions in a session of that number.
    fn work(&self, number: u64, seed: u64, transactions: u64, model: &Mutex<Model>) -> Result<()> {
        let mut random = Random(seed);
        let mark = (0, KEYS + number);
        let mut session = self.engine.session()?;
        for _ in 0..transactions {
            session.begin()?;
            let mut changes = BTreeMap::new();
            let mut result = Ok(());
            for _ in 0..random.below(8) {
                let place = (random.below(TABLES as u64) as usize, random.below(KEYS));
                result = self.step(&mut session, &mut random, place, &mut changes, model);
                if result.is_err() {
                    break;
                }
            }
            if result.is_ok() && !changes.is_empty() {
                while changes.get(&mark).is_none_or(Option::is_none) && result.is_ok() {
                    result = self.step(&mut session, &mut random, mark, &mut changes, model);
                }
            }
            match result {
                Ok(()) if random.below(5) > 0 => {
                    if changes.is_empty() {
                        session.commit()?;
                        continue;
                    }
                    let asked = model.lock().unwrap().ask(&changes, mark);
                    session.commit()?;
                    if self.lasts {
                        model.lock().unwrap().unanswered.remove(&asked);
                    }
                }
                Ok(()) | Err(Error::Deadlock | Error::LockTimeout) => {
                    let was_dark = self.folder.has_failed();
                    let undone = session.rollback();
                    if undone.is_err() && !was_dark {
                        self.rollback_interrupted.store(true, Ordering::Relaxed);
                    }
                    undone?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What is found is what was committed last. But when the log is broken, who was under way may see what others could
    /// not undo; it cannot commit, either.
    fn agrees<T: PartialEq + Debug>(&self, found: T, expected: T) -> Result<()> {
        if found != expected && self.folder.has_failed() {
            return Err(Error::Refused("the power has failed".into()));
        }
        assert_eq!(found, expected);
        Ok(())
    }

    /// Does something with a record.
    fn step<'e>(
        &'e self,
        session: &mut Session<'e, A>,
        random: &mut Random,
        place: Place,
        changes: &mut BTreeMap<Place, Option<Row>>,
        model: &Mutex<Model>,
    ) -> Result<()> {
        let ((_, key), handles) = (place, &self.tables[place.0]);
        let bytes = key.to_be_bytes();
        let table = session.table(&handles.table)?;
        let by_key = session.index(&handles.by_key)?;
        let by_group = session.index(&handles.by_group)?;
        let found = session.lookup(by_key, &bytes, Access::Change)?;
        let expected = match changes.get(&place) {
            Some(row) => row.clone(),
            None => model.lock().unwrap().rows.get(&place).cloned(),
        };
        let mut new = Row::new(random);
        let Some(rid) = found else {
            self.agrees(None, expected)?;
            let rid = session.create(table, &new.encode(key))?;
            session.insert(by_key, &bytes, rid)?;
            session.insert(by_group, &new.grouped(key), rid)?;
            changes.insert(place, Some(new));
            return Ok(());
        };
        let pinned = session.pin(table, rid)?;
        let (is, old) = session.read(&pinned, Row::decode)?;
        self.agrees((is, Some(&old)), (key, expected.as_ref()))?;
        match random.below(6) {
            0 | 1 => {
                drop(pinned);
                session.remove(by_group, &old.grouped(key), rid)?;
                session.remove(by_key, &bytes, rid)?;
                session.delete(table, rid)?;
                changes.insert(place, None);
                return Ok(());
            }
            2 => {
                new = Row {
                    group: old.group,
                    bytes: old.bytes,
                };
                new.bytes[..8].copy_from_slice(&random.next().to_le_bytes());
                session.update(&pinned, 16, &new.bytes[..8])?;
            }
            3 => {
                new.group = old.group;
                session.replace(table, &pinned, &new.encode(key))?;
            }
            _ => {
                session.remove(by_group, &old.grouped(key), rid)?;
                session.replace(table, &pinned, &new.encode(key))?;
                session.insert(by_group, &new.grouped(key), rid)?;
            }
        }
        changes.insert(place, Some(new));
        Ok(())
    }
}

/// How often the power failed, when.
#[derive(Debug, Default)]
struct Tally {
    opening: u64,
    working: u64,
    after: u64,
    /// Of all these, those where the process ended and the power did not fail.
    killed: u64,
    unanswered: u64,
    /// Points within a checkpoint, as far as the log shows.
    checkpoint: u64,
    /// Within a rollback.
    rollback: u64,
    /// Within what a recovery undid, as the log of the next shows.
    undoing: u64,
    /// Transactions that recovery undid.
    undone: u64,
}

/// What is left: half of the times by the process alone.
fn end(folder: CrashFolder, random: &mut Random, tally: &mut Tally) -> CrashFolder {
    if random.below(2) == 0 {
        tally.killed += 1;
        folder.revive();
        folder
    } else {
        folder.crash(random.next())
    }
}

/// Crashes so many times. `DYNO_CRASH_SEED` is where the random numbers begin.
fn crash<A: Assembly>(points: u64, sessions: u64, policy: Policy) {
    let seed = std::env::var("DYNO_CRASH_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let mut folder = CrashFolder::new();
    let mut model = Mutex::new(Model::default());
    let mut tally = Tally::default();
    let (mut was_opening, mut was_in_rollback) = (false, false);
    for point in 0..points {
        // Not all crashes are those of a store that has had many.
        if point % 200 == 0 {
            folder = CrashFolder::new();
            model = Mutex::new(Model::default());
            (was_opening, was_in_rollback) = (false, false);
        }
        // Half of the times it fails while the store is opened, if that takes so long.
        if random.below(2) == 0 {
            folder.fail_power_at(folder.operations() + random.below(60));
        }
        let store = match Store::<A>::open(&folder, policy) {
            Ok(store) => store,
            Err(error) => {
                assert!(folder.has_failed(), "point {point} of seed {seed}: {error}");
                tally.opening += 1;
                was_opening = true;
                folder = end(folder, &mut random, &mut tally);
                continue;
            }
        };
        folder.fail_power_at(u64::MAX);
        if let Some(recovered) = store.engine.recovered() {
            let is_halfway = recovered.halfway > 0;
            tally.undone += recovered.undone;
            tally.undoing += u64::from(was_opening && is_halfway);
            tally.rollback += u64::from(was_in_rollback || (!was_opening && is_halfway));
            tally.checkpoint += u64::from(recovered.within_checkpoint);
        }
        let found = store
            .rows()
            .unwrap_or_else(|error| panic!("point {point} of seed {seed}: {error}"));
        let mut known = model.lock().unwrap();
        tally.unanswered += known.unanswered.len() as u64;
        known.agree(&found);
        drop(known);

        folder.fail_power_at(folder.operations() + random.below(400));
        std::thread::scope(|scope| {
            let works: Vec<_> = (0..sessions)
                .map(|number| {
                    let (store, model, seed) = (&store, &model, random.next());
                    scope.spawn(move || store.work(number, seed, 40, model))
                })
                .collect();
            for work in works {
                if let Err(error) = work.join().unwrap() {
                    assert!(folder.has_failed(), "point {point} of seed {seed}: {error}");
                }
            }
        });
        *(if folder.has_failed() {
            &mut tally.working
        } else {
            &mut tally.after
        }) += 1;
        was_opening = false;
        was_in_rollback = store.rollback_interrupted.load(Ordering::Relaxed);
        drop(store);
        folder = end(folder, &mut random, &mut tally);
    }
    println!(
        "{points} points of seed {seed}: {tally:?}, {} rows",
        model.lock().unwrap().rows.len()
    );
}

/// As many as are asked for, of so many as a rule.
fn points(usual: u64) -> u64 {
    std::env::var("DYNO_CRASH_POINTS").map_or(usual, |points| points.parse().unwrap())
}

#[test]
fn what_was_committed_outlives_crashes_of_several_sessions() {
    crash::<Full>(points(4_000), 3, Policy::Synced);
}

#[test]
fn what_was_committed_outlives_crashes_without_latches_and_locks() {
    crash::<Bare>(points(2_000), 1, Policy::Synced);
}

/// Those that are missing are the last of their sessions, and nobody has seen what they did.
#[test]
fn what_is_synced_at_times_is_a_beginning_of_what_was_committed() {
    crash::<Full>(points(2_000), 3, Policy::Written(Duration::from_hours(1)));
}

#[test]
#[ignore = "takes a minute"]
fn what_was_committed_outlives_ten_thousand_crashes() {
    crash::<Full>(points(10_000), 3, Policy::Synced);
}
