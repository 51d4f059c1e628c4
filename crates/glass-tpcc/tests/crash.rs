//! The power fails between any two operations of the disk under TPC-C, of several clients, also while the engine recovers:
//! each New-Order and each Payment that was committed is there, none that was not, and the consistency conditions hold.
//!
//! What is left on disk at each point is where the next one begins. Each transaction has a time of its own, which its order
//! or its payment keeps.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dyno_glass::assembly::Built;
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::ByName;
use dyno_glass::engine::{Engine, Options};
use dyno_glass::keys::Typed;
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
            buffer: 32 << 10,
            segment: 32 << 10,
        },
        checkpoint: 256 << 10,
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

/// By their times.
#[derive(Default)]
struct Known {
    committed: BTreeSet<i64>,
    /// May be there or not.
    unanswered: BTreeSet<i64>,
}

/// The times of the orders and the payments that are there, but for those that were loaded.
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
    times
}

fn crash(points: u64) {
    let points =
        std::env::var("DYNO_CRASH_POINTS").map_or(points, |points| points.parse().unwrap());
    let config = Config {
        items: 100,
        customers_per_district: 30,
        rollbacks: 0.1,
        ..Config::new(1, 7)
    };
    let loaded = CrashFolder::new();
    let database = Database::create(open(&loaded).unwrap()).unwrap();
    Loader::load_all(&database, &config).unwrap();
    database.into_engine().close().unwrap();

    let mut random = splitmix(1);
    let (mut folder, mut known) = (loaded.crash(0), Mutex::new(Known::default()));
    let (mut committed, mut opening, mut working) = (0, 0, 0);
    for point in 0..points {
        // Before what there is to be scanned grows too long.
        if point % 100 == 0 {
            committed += known.get_mut().unwrap().committed.len();
            (folder, known) = (loaded.crash(0), Mutex::new(Known::default()));
        }
        if random() % 2 == 0 {
            folder.fail_power_at(random() % 60);
        }
        let engine = match open(&folder) {
            Ok(engine) => engine,
            Err(error) => {
                assert!(folder.has_failed(), "point {point}: {error}");
                opening += 1;
                folder = folder.crash(random());
                continue;
            }
        };
        folder.fail_power_at(u64::MAX);
        engine
            .verify()
            .unwrap_or_else(|error| panic!("point {point}: {error}"));
        let database = Database::find(engine).unwrap();
        let checks = check_scans(&mut &database, &config, Extent::All).unwrap();
        assert!(
            checks.iter().all(|check| check.holds),
            "point {point}: {checks:#?}"
        );
        let found = found(&database);
        let before = known.get_mut().unwrap();
        assert!(
            before.committed.is_subset(&found),
            "point {point}: something was lost"
        );
        before.committed.append(&mut before.unanswered);
        assert!(
            found.is_subset(&before.committed),
            "point {point}: something was not undone"
        );
        before.committed = found;

        folder.fail_power_at(folder.operations() + random() % 500);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (database, config, known) = (&database, &config, &known);
                    let client = point * CLIENTS + client;
                    scope.spawn(move || work(database, config, client, known))
                })
                .collect();
            for client in clients {
                if let Err(error) = client.join().unwrap() {
                    assert!(folder.has_failed(), "point {point}: {error}");
                }
            }
        });
        working += 1;
        drop(database);
        folder = folder.crash(random());
    }
    println!("{committed} committed, {opening} crashes while opening, {working} while working");
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
    crash(200);
}

#[test]
#[ignore = "takes minutes"]
fn tpcc_outlives_ten_thousand_crashes() {
    crash(10_000);
}
