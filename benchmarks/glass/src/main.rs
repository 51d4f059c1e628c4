//! TPC-C's New-Order and Payment, half and half, on several stores in memory, one thread, in rounds in turn.
//!
//!     glass-beside-others FOLDER ROUNDS TRANSACTIONS WAREHOUSES STORE...
//!
//! FOLDER is for what needs files, and is best in memory. A line for each round and store: round, store, CPU time in s, time
//! in s. All stores are asked the same, by the same code above their accesses to tables; drawing what is asked is not timed.

mod lmdb;
mod nothing;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_glass::assembly::{Assembly, Built};
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::{ByName, Resolved};
use dyno_glass::engine::{Engine, Options};
use dyno_glass::keys::{Typed, Words};
use dyno_glass::latch::{NoLatch, RwLatch};
use dyno_glass::locks::{Granular, NoLocks};
use dyno_glass::log::{self, NoLog, Wal};
use dyno_glass::pages::disk::{Files, Folder};
use dyno_glass::pages::{Direct, Pool};
use dyno_glass::transactions::{NoTransactions, Real};
use dyno_glass_tpcc::engine::{Database, Loader as GlassLoader};
use dyno_glass_tpcc::kernel::{Kernel, KernelStore};
use dyno_sql::sqlite::Session;
use dyno_tpcc::{
    Config, Input, Inputs, Loader, Mix, Rows, SqlStore, Store, create_indexes, create_tables,
    perform,
};
use nix::time::{ClockId, clock_gettime};
use nothing::Nothing;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Everything there is.
type Full = Built<
    8192,
    false,
    RwLatch,
    Pool<RwLatch, 8192>,
    Wal<RwLatch>,
    Granular<RwLatch>,
    Real<RwLatch>,
    Typed,
    ByName,
    NoCalls,
>;
/// Nothing that can be removed.
type Bare = Built<
    32768,
    false,
    NoLatch,
    Direct<NoLatch, 32768>,
    NoLog,
    NoLocks,
    NoTransactions,
    Words,
    Resolved,
    NoCalls,
>;

/// A store that carries out transactions.
struct Contender {
    name: String,
    store: Box<dyn FnMut(&Input, i64, &mut Rows) -> dyno_sql::Result<()>>,
    inputs: Vec<Inputs>,
    rows: Rows,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rounds, transactions, warehouses, names @ ..] = arguments.as_slice() else {
        return Err("expected FOLDER ROUNDS TRANSACTIONS WAREHOUSES STORE...".into());
    };
    let (rounds, transactions): (usize, usize) = (rounds.parse()?, transactions.parse()?);
    let config = Config {
        mix: Mix::LookingGlass,
        ..Config::new(warehouses.parse()?, 1)
    };
    let folder = PathBuf::from(folder);
    let mut contenders = Vec::new();
    for name in names {
        contenders.push(Contender {
            name: name.clone(),
            store: open(name, &folder.join(name), &config)?,
            inputs: (0..config.warehouses)
                .map(|client| Inputs::new(&config, client.into()))
                .collect(),
            rows: Rows::default(),
        });
    }
    // One round for caches and pools to fill, which is not told.
    for round in 0..=rounds {
        for place in 0..contenders.len() {
            // The order turns, so that drift of the machine meets all alike.
            let place = (place + round) % contenders.len();
            let contender = &mut contenders[place];
            let (cpu, took) = contender.work(transactions)?;
            if round > 0 {
                println!(
                    "{round} {} {} {}",
                    contender.name,
                    cpu.as_secs_f64(),
                    took.as_secs_f64()
                );
            }
        }
    }
    Ok(())
}

impl Contender {
    fn work(&mut self, transactions: usize) -> Result<(Duration, Duration)> {
        // Drawn so many at a time that they stay within a cache.
        const TOGETHER: usize = 200;
        let mut drawn = Vec::with_capacity(TOGETHER);
        let (mut cpu, mut took, mut done) = (Duration::ZERO, Duration::ZERO, 0);
        while done < transactions {
            drawn.clear();
            for place in 0..TOGETHER.min(transactions - done) {
                let terminals = self.inputs.len();
                drawn.push(self.inputs[(done + place) % terminals].draw());
            }
            let (begun, cpu_before) = (Instant::now(), cpu_so_far()?);
            for input in &drawn {
                (self.store)(input, 1, &mut self.rows)
                    .map_err(|error| format!("{}: {error}", self.name))?;
            }
            cpu += cpu_so_far()?.saturating_sub(cpu_before);
            took += begun.elapsed();
            done += drawn.len();
        }
        Ok((cpu, took))
    }
}

fn cpu_so_far() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// What carries out a transaction, behind one call.
fn carried<S: Store + 'static>(
    mut store: S,
) -> Box<dyn FnMut(&Input, i64, &mut Rows) -> dyno_sql::Result<()>> {
    Box::new(move |input, now, rows| perform(&mut store, input, now, rows).map(drop))
}

fn open(
    name: &str,
    folder: &Path,
    config: &Config,
) -> Result<Box<dyn FnMut(&Input, i64, &mut Rows) -> dyno_sql::Result<()>>> {
    // Stores borrow from what they are opened in, and stay until the process ends.
    Ok(match name {
        "null" => carried(Nothing),
        "kernel" => carried(KernelStore::new(Box::new(Kernel::load(config)?))),
        "glass" => carried(glass::<Full>(Some(folder), config)?.store()?),
        "bare" => carried(glass::<Bare>(None, config)?.store()?),
        "sqlite" => carried(SqlStore::prepare(sqlite(config)?)?),
        "lmdb" => carried(lmdb::load(folder, config)?),
        _ => {
            return Err(format!(
                "no store {name}: there are null, kernel, bare, glass, sqlite, lmdb"
            )
            .into());
        }
    })
}

/// All of it in the pool, with a log that is not written.
fn glass<A: Assembly>(folder: Option<&Path>, config: &Config) -> Result<&'static Database<A>> {
    let folder = match folder {
        Some(folder) => Some(Arc::new(Files::new(folder)?) as Arc<dyn Folder>),
        None => None,
    };
    let options = Options {
        memory: 2 << 30,
        log: log::Options {
            policy: log::Policy::Memory,
            ..log::Options::default()
        },
        ..Options::default()
    };
    let database = Database::create(Engine::<A>::open(folder, &options)?)?;
    GlassLoader::load_all(&database, config)?;
    Ok(Box::leak(Box::new(database)))
}

/// In memory, with a journal there so that it can roll back, and nobody else.
fn sqlite(config: &Config) -> Result<Session<'static>> {
    let database = rusqlite::Connection::open_in_memory()?;
    database.execute_batch(
        "PRAGMA locking_mode = exclusive; PRAGMA journal_mode = memory; PRAGMA synchronous = off",
    )?;
    let mut session = Session::new(Box::leak(Box::new(database)));
    create_tables(&mut session)?;
    let loader = Loader::new(config);
    while loader.load_next(&mut session)?.is_some() {}
    create_indexes(&mut session)?;
    Ok(session)
}
