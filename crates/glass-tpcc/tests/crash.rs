//! The power fails between any two operations of the disk under TPC-C, of several clients, also while the engine recovers:
//! each New-Order and each Payment that was committed is there, none that was not, and the consistency conditions hold.
//! Half of the times the process ends there and the power does not fail.
//!
//! What is left on disk at each point is where the next one begins. Each transaction has a time of its own, which its order
//! or its payment keeps. One more client changes rows at random and rolls back, always, and takes checkpoints now and then.
//!
//! Two hundred points are part of the suite. Ten thousand are run by name:
//!
//! ```sh
//! cargo test --release -p dyno-glass-tpcc --test crash -- --ignored --nocapture
//! ```
//!
//! `DYNO_CRASH_POINTS` says how many there are otherwise, and `DYNO_CRASH_SEED` where the random numbers begin; what threads do at
//! the same time does not depend on it. With `--nocapture` it is told how many points fell where.
#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests, which clippy does not take for tests

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dyno_glass::Error;
use dyno_glass::assembly::Built;
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::ByName;
use dyno_glass::engine::{Access, Engine, Options};
use dyno_glass::keys::{self, Typed};
use dyno_glass::latch::RwLatch;
use dyno_glass::locks::Granular;
use dyno_glass::log::{self, Policy, Wal};
use dyno_glass::pages::Pool;
use dyno_glass::pages::disk::crash::CrashFolder;
use dyno_glass::transactions::Real;
use dyno_glass_tpcc::engine::{Database, Loader};
use dyno_sql::{ErrorKind, Result, Value};
use dyno_tpcc::population::{LOADED, Table};
use dyno_tpcc::{Config, Extent, Inputs, Kind, Outcome, Rows, Scan, check_scans, perform};

const PAGE: usize = 2048;
/// Fewer frames than the pages that there are.
const MEMORY: usize = 128 * PAGE;
const CLIENTS: u64 = 3;
const ITEMS: u64 = 100;
/// Where records of stock have the quantity, after their two keys: it is 100 at most, or 91 above what is ordered, and never this.
const QUANTITY: usize = 8;
const NEVER: i32 = 10_000;
/// Of each district.
const CUSTOMERS: u64 = 30;
/// In bytes, as no customer's record is.
const TOO_LONG: usize = 1000;

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

fn open(folder: &CrashFolder) -> dyno_glass::Result<Engine<Full>> {
    let options = Options {
        memory: MEMORY,
        log: log::Options {
            policy: Policy::Synced,
            buffer: 48 << 10,
            segment: 32 << 10,
        },
        checkpoint: 96 << 10,
        patience: Duration::from_secs(60),
    };
    Engine::open(Some(Arc::new(folder.clone())), &options)
}

/// One client's transactions, until there were so many or the power fails.
fn work(
    database: &Database<Full>,
    config: &Config,
    client: u64,
    known: &Mutex<Known>,
) -> Result<()> {
    static NOW: AtomicI64 = AtomicI64::new(LOADED + 1);
    let mut store = database.store()?;
    let (mut inputs, mut rows) = (Inputs::new(config, client), Rows::default());
    for _ in 0..100 {
        let input = inputs.draw();
        let now = NOW.fetch_add(1, Ordering::Relaxed);
        let is_kept = matches!(input.kind(), Kind::NewOrder | Kind::Payment);
        if is_kept {
            known.lock().unwrap().unanswered.insert(now);
        }
        let outcome = perform(&mut store, &input, now, &mut rows);
        let is_undone = match &outcome {
            Ok(Outcome::NewOrder { total, .. }) => total.is_none(),
            Ok(_) => false,
            Err(error) if error.kind == ErrorKind::Conflict => true,
            Err(_) => return outcome.map(drop),
        };
        if is_kept {
            let mut known = known.lock().unwrap();
            known.unanswered.remove(&now);
            if !is_undone {
                known.committed.insert(now);
            }
        }
    }
    Ok(())
}

/// What the power interrupted.
#[derive(Default)]
struct Interrupted {
    checkpoint: AtomicBool,
    rollback: AtomicBool,
}

/// Changes rows of stock and customers at random, some so that they move, makes payments of no time, and rolls back; until it has so often or the
/// power fails.
fn waver(
    database: &Database<Full>,
    folder: &CrashFolder,
    seed: u64,
    interrupted: &Interrupted,
) -> dyno_glass::Result<()> {
    // Whether what has failed was begun before the power failed.
    let watched = |what: &AtomicBool, work: &mut dyn FnMut() -> dyno_glass::Result<()>| {
        let was_dark = folder.has_failed();
        let done = work();
        what.fetch_or(done.is_err() && !was_dark, Ordering::Relaxed);
        done
    };
    let engine = database.engine();
    let mut random = splitmix(seed);
    let [stock, customer, history] =
        ["stock", "customer", "history"].map(|name| engine.table_handle(name).unwrap());
    let [by_item, by_customer] =
        ["stock_key", "customer_key"].map(|name| engine.index_handle(name).unwrap());
    let mut session = engine.session()?;
    for _ in 0..30 {
        session.begin()?;
        let mut step = || {
            let mut any = |below: u64| i32::try_from(1 + random() % below).unwrap();
            match any(4) {
                1 => {
                    let table = session.table(&history)?;
                    session.create(table, &[0xee; 60]).map(drop)
                }
                2 => {
                    let table = session.table(&stock)?;
                    let index = session.index(&by_item)?;
                    let key = [1, any(ITEMS)].map(keys::int).concat();
                    let rid = session.lookup(index, &key, Access::Change)?.unwrap();
                    let pinned = session.pin(table, rid)?;
                    session.update(&pinned, QUANTITY, &NEVER.to_le_bytes())
                }
                _ => {
                    // As it is, but so long that it may have to move: others may see it when the power has failed and it
                    // cannot be undone.
                    let table = session.table(&customer)?;
                    let index = session.index(&by_customer)?;
                    let key = [1, any(10), any(CUSTOMERS)].map(keys::int).concat();
                    let rid = session.lookup(index, &key, Access::Change)?.unwrap();
                    let pinned = session.pin(table, rid)?;
                    let mut record = session.read(&pinned, <[u8]>::to_vec)?;
                    record.resize(TOO_LONG, 0xee);
                    session.replace(table, &pinned, &record)
                }
            }
        };
        match (0..30).try_for_each(|_| step()) {
            Ok(()) | Err(Error::Deadlock) => {
                watched(&interrupted.rollback, &mut || session.rollback())?;
            }
            Err(error) => return Err(error),
        }
        if random().is_multiple_of(4) {
            watched(&interrupted.checkpoint, &mut || engine.checkpoint())?;
        }
    }
    Ok(())
}

/// How many points there were of each kind; one may be of several.
#[derive(Debug, Default)]
struct Tally {
    /// The power failed while the engine was opened: while it recovered, most of the time.
    opening: u64,
    /// While clients were at work, or just after.
    working: u64,
    /// Of all these, the process ended and the power did not fail.
    killed: u64,
    /// A checkpoint was under way.
    checkpoint: u64,
    /// A rollback was, of the client that wavers or such as the log shows.
    rollback: u64,
    /// While something was undone by a recovery, as the log of the next one shows.
    undoing: u64,
    /// Transactions that recovery undid.
    undone: u64,
    /// Orders and payments.
    committed: usize,
}

/// By their times.
#[derive(Default)]
struct Known {
    committed: BTreeSet<i64>,
    /// May be there or not.
    unanswered: BTreeSet<i64>,
}

/// The times of the orders and the payments that are there, but for those that were loaded. Nothing else is there.
fn found(mut database: &Database<Full>) -> BTreeSet<i64> {
    let mut times = BTreeSet::new();
    for (table, column) in [(Table::Orders, "o_entry_d"), (Table::History, "h_date")] {
        let columns = table.columns();
        let at = columns
            .iter()
            .position(|(name, _)| *name == column)
            .unwrap();
        let each = &mut |row: &[Value<'_>]| {
            if let Value::Int(time) = row[at]
                && time > LOADED
            {
                assert!(times.insert(time), "{time} is there twice");
            }
            Ok(())
        };
        database.scan(table, each).unwrap();
    }
    let columns = Table::Stock.columns();
    let at = (columns.iter())
        .position(|(name, _)| *name == "s_quantity")
        .unwrap();
    let each = &mut |row: &[Value<'_>]| {
        assert!(
            matches!(row[at], Value::Int(quantity) if quantity < 1000),
            "what wavered was not undone: {row:?}"
        );
        Ok(())
    };
    database.scan(Table::Stock, each).unwrap();
    let customers = database.engine().table_handle("customer").unwrap();
    let each = |_, record: &[u8]| {
        assert!(record.len() < TOO_LONG, "what wavered was not undone");
        Ok(())
    };
    database.engine().each(&customers, each).unwrap();
    times
}

fn crash(points: u64) {
    let seed = std::env::var("DYNO_CRASH_SEED").map_or(1, |seed| seed.parse().unwrap());
    let config = Config {
        items: u32::try_from(ITEMS).unwrap(),
        customers_per_district: u32::try_from(CUSTOMERS).unwrap(),
        rollbacks: 0.1,
        ..Config::new(1, 7)
    };
    let loaded = CrashFolder::new();
    let database = Database::create(open(&loaded).unwrap()).unwrap();
    Loader::load_all(&database, &config).unwrap();
    database.into_engine().close().unwrap();

    let mut random = splitmix(seed);
    let (mut folder, mut known) = (loaded.crash(0), Mutex::new(Known::default()));
    let mut tally = Tally::default();
    let (mut was_opening, mut was_in_checkpoint, mut was_in_rollback) = (false, false, false);
    for point in 0..points {
        // Before what there is to be scanned grows too long.
        if point % 100 == 0 {
            (folder, known) = (loaded.crash(0), Mutex::new(Known::default()));
            (was_opening, was_in_checkpoint, was_in_rollback) = (false, false, false);
        }
        if random().is_multiple_of(2) {
            folder.fail_power_at(folder.operations() + random() % 60);
        }
        let engine = match open(&folder) {
            Ok(engine) => engine,
            Err(error) => {
                assert!(folder.has_failed(), "point {point} of seed {seed}: {error}");
                tally.opening += 1;
                was_opening = true;
                folder = end(folder, &mut random, &mut tally);
                continue;
            }
        };
        folder.fail_power_at(u64::MAX);
        // What recovery found tells of the point before.
        let recovered = engine.recovered().unwrap();
        tally.undone += recovered.undone;
        let is_halfway = recovered.halfway > 0;
        tally.undoing += u64::from(was_opening && is_halfway);
        tally.rollback += u64::from(was_in_rollback || (!was_opening && is_halfway));
        tally.checkpoint += u64::from(was_in_checkpoint || recovered.within_checkpoint);
        engine
            .verify()
            .unwrap_or_else(|error| panic!("point {point} of seed {seed}: {error}"));
        let database = Database::find(engine).unwrap();
        let checks = check_scans(&mut &database, &config, Extent::All).unwrap();
        assert!(
            checks.iter().all(|check| check.holds),
            "point {point} of seed {seed}: {checks:#?}"
        );
        let found = found(&database);
        let before = known.get_mut().unwrap();
        assert!(
            before.committed.is_subset(&found),
            "point {point} of seed {seed}: something was lost"
        );
        before.committed.append(&mut before.unanswered);
        assert!(
            found.is_subset(&before.committed),
            "point {point} of seed {seed}: something was not undone"
        );
        before.committed = found;

        let (interrupted, orders) = (Interrupted::default(), before.committed.len());
        folder.fail_power_at(folder.operations() + random() % 500);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (database, config, known) = (&database, &config, &known);
                    let client = point * CLIENTS + client;
                    scope.spawn(move || work(database, config, client, known))
                })
                .collect();
            if let Err(error) = waver(&database, &folder, random(), &interrupted) {
                assert!(folder.has_failed(), "point {point} of seed {seed}: {error}");
            }
            for client in clients {
                if let Err(error) = client.join().unwrap() {
                    assert!(folder.has_failed(), "point {point} of seed {seed}: {error}");
                }
            }
        });
        tally.working += 1;
        tally.committed += known.get_mut().unwrap().committed.len() - orders;
        was_opening = false;
        was_in_checkpoint = interrupted.checkpoint.into_inner();
        was_in_rollback = interrupted.rollback.into_inner();
        drop(database);
        folder = end(folder, &mut random, &mut tally);
    }
    println!("{points} points of seed {seed}: {tally:?}");
    let all = [
        tally.opening,
        tally.killed,
        tally.checkpoint,
        tally.undone,
        tally.rollback,
    ];
    // Of few points none may fall into a rollback, which writes pages only to have their frames.
    let sure = if points < 1000 { &all[..4] } else { &all };
    assert!(!sure.contains(&0), "points are of few kinds");
}

/// What is left: half of the times by the process alone.
fn end(folder: CrashFolder, random: &mut impl FnMut() -> u64, tally: &mut Tally) -> CrashFolder {
    if random().is_multiple_of(2) {
        tally.killed += 1;
        folder.revive();
        folder
    } else {
        folder.crash(random())
    }
}

/// Steele, Lea and Flood's `SplitMix64`.
fn splitmix(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn tpcc_outlives_crashes() {
    crash(std::env::var("DYNO_CRASH_POINTS").map_or(200, |points| points.parse().unwrap()));
}

#[test]
#[ignore = "takes minutes"]
fn tpcc_outlives_ten_thousand_crashes() {
    crash(10_000);
}
