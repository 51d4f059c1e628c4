//! TPC-C on the engine.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{assert_same_as_sqlite, assert_same_rows, small};
use dyno_glass::assembly::{Assembly, Built};
use dyno_glass::calls::{Call, Counted};
use dyno_glass::catalogue::{ByName, Resolved};
use dyno_glass::engine::{Engine, Options};
use dyno_glass::keys::{Typed, Words};
use dyno_glass::latch::{NoLatch, RwLatch};
use dyno_glass::locks::{Granular, NoLocks};
use dyno_glass::log::{self, NoLog, Wal};
use dyno_glass::pages::disk::{Files, Folder};
use dyno_glass::pages::{Direct, Pool};
use dyno_glass::transactions::{NoTransactions, Real};
use dyno_glass_tpcc::engine::{Database, Loader};
use dyno_sql::ErrorKind;
use dyno_tpcc::{Config, Extent, Kind, Mix, Terminal, check_scans};

/// A folder of its own, removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dyno-glass-tpcc-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An engine in that folder, as far as it needs any, with a log of that policy.
fn open<A: Assembly>(folder: &Temporary, policy: log::Policy) -> Engine<A> {
    let folder: Arc<dyn Folder> = Arc::new(Files::new(&folder.0).unwrap());
    let options = Options {
        memory: 64 << 20,
        log: log::Options {
            policy,
            ..log::Options::default()
        },
        ..Options::default()
    };
    Engine::open(Some(folder), &options).unwrap()
}

/// Loaded, with a log in memory.
fn loaded<A: Assembly>(folder: &Temporary, config: &Config) -> Database<A> {
    let database = Database::create(open::<A>(folder, log::Policy::Memory)).unwrap();
    Loader::load_all(&database, config).unwrap();
    database
}

// Not by `assembly::with`, which makes all there are, and takes the compiler as long.

type Pooled<L, G, X, K> = Built<8192, false, L, Pool<L, 8192>, G, X, Real<L>, K, ByName, Counted>;
type Plain<T, C> =
    Built<32768, false, NoLatch, Direct<NoLatch, 32768>, NoLog, NoLocks, T, Words, C, Counted>;
type Full = Pooled<RwLatch, Wal<RwLatch>, Granular<RwLatch>, Typed>;
type WithoutLog = Pooled<RwLatch, NoLog, Granular<RwLatch>, Words>;
type WithoutLatches = Pooled<NoLatch, NoLog, NoLocks, Words>;
type WithoutBuffer = Plain<Real<NoLatch>, ByName>;
type None = Plain<NoTransactions, Resolved>;

/// The full mix, with rollbacks where the assembly has any, against `SQLite`.
fn is_the_same_as_sqlite<A: Assembly>(rollbacks: f64) {
    let (folder, config) = (
        Temporary::new(),
        Config {
            rollbacks,
            ..small()
        },
    );
    let database = loaded::<A>(&folder, &config);
    let mut store = database.store().unwrap();
    let mut sqlite = assert_same_as_sqlite(&config, 1_000, &mut store);
    drop(store);
    assert_same_rows(&config, &mut &database, &mut sqlite);
    database.engine().verify().unwrap();
}

#[test]
fn all_five_transactions_come_to_the_same_as_on_sqlite_whatever_is_removed() {
    is_the_same_as_sqlite::<Full>(0.05);
    is_the_same_as_sqlite::<WithoutLog>(0.05);
    is_the_same_as_sqlite::<WithoutLatches>(0.05);
    is_the_same_as_sqlite::<WithoutBuffer>(0.05);
    is_the_same_as_sqlite::<None>(0.0);
}

/// Calls of a hundred transactions of the mix of the publication, without the catalogue's.
fn calls(kind: Kind) -> Vec<(Call, u64)> {
    let (folder, config) = (
        Temporary::new(),
        Config {
            mix: Mix::LookingGlass,
            ..small()
        },
    );
    let database = loaded::<Full>(&folder, &config);
    let mut terminal = Terminal::new(&config, 0, database.store().unwrap());
    // Customers with bad credit have their record replaced: one call as well.
    for _ in 0..100 {
        terminal.prepare_kind(kind);
        terminal.perform().unwrap();
    }
    let counted = *terminal.store().calls();
    let counts = Call::ALL.map(|call| (call, counted.of(call)));
    let met = counts
        .into_iter()
        .filter(|(call, count)| *count > 0 && *call != Call::Catalogue);
    met.collect()
}

/// Harizopoulos et al. 2008, table of calls.
#[test]
fn the_engine_is_called_as_often_as_was_published() {
    assert_eq!(
        calls(Kind::NewOrder),
        [
            (Call::Begin, 100),
            (Call::Lookup, 2_300),
            (Call::Pin, 2_300),
            (Call::Create, 1_200),
            (Call::Update, 1_100),
            (Call::Insert, 1_300),
            (Call::Commit, 100),
        ]
    );
    assert_eq!(
        calls(Kind::Payment),
        [
            (Call::Begin, 100),
            (Call::Lookup, 300),
            (Call::Pin, 300),
            (Call::Create, 100),
            (Call::Update, 300),
            (Call::Commit, 100),
        ]
    );
}

#[test]
fn transactions_of_several_clients_keep_the_tables_consistent() {
    // All on one warehouse, where they meet all the time.
    let (folder, config) = (
        Temporary::new(),
        Config {
            warehouses: 1,
            ..small()
        },
    );
    let database = loaded::<Full>(&folder, &config);
    let work = |client| {
        let mut terminal = Terminal::new(&config, client, database.store().unwrap());
        let mut done = 0;
        for _ in 0..300 {
            terminal.prepare();
            match terminal.perform() {
                Ok(_) => done += 1,
                Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error}"),
            }
        }
        done
    };
    let done: u32 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| scope.spawn(move || work(client)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    assert!(done > 1_000, "{done} of 1,200 went through");
    let checks = check_scans(&mut &database, &config, Extent::All).unwrap();
    assert!(checks.iter().all(|check| check.holds), "{checks:#?}");
    database.engine().verify().unwrap();
}

#[test]
fn without_transactions_an_order_that_is_to_be_rolled_back_is_refused_and_all_after_it() {
    let (folder, config) = (
        Temporary::new(),
        Config {
            rollbacks: 1.0,
            ..small()
        },
    );
    let database = loaded::<None>(&folder, &config);
    let mut terminal = Terminal::new(&config, 0, database.store().unwrap());
    for kind in [Kind::NewOrder, Kind::Payment] {
        terminal.prepare_kind(kind);
        let error = terminal.perform().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused, "{error}");
    }
}

#[test]
fn what_was_committed_is_there_when_the_engine_is_opened_again() {
    let (folder, config) = (
        Temporary::new(),
        Config {
            rollbacks: 0.05,
            ..small()
        },
    );
    let database = Database::create(open::<Full>(&folder, log::Policy::Synced)).unwrap();
    Loader::load_all(&database, &config).unwrap();
    database.into_engine().close().unwrap();
    let database = Database::find(open::<Full>(&folder, log::Policy::Synced)).unwrap();
    let mut store = database.store().unwrap();
    let mut sqlite = assert_same_as_sqlite(&config, 200, &mut store);
    drop(store);
    // Dropped as a crash would leave it.
    drop(database);
    let database = Database::find(open::<Full>(&folder, log::Policy::Synced)).unwrap();
    assert_same_rows(&config, &mut &database, &mut sqlite);
    database.engine().verify().unwrap();
}
