//! TPC-C's New-Order and Payment, half and half, on several stores in memory, one thread, in rounds in turn.
//!
//!     glass-beside-others FOLDER ROUNDS TRANSACTIONS WAREHOUSES ITEMS CUSTOMERS STORE...
//!
//! FOLDER is for what needs files, and is best in memory. ITEMS and CUSTOMERS (of a district) are TPC-C's at 100000 and 3000.
//! Lines of words: `setting STORE TEXT` of what a store says of itself; `round NUMBER STORE CPU TIME`, both in s, for each
//! round and store; `checked STORE CONDITIONS` at the end, of how many of the specification's conditions hold in what is
//! there then; one that does not is an error. All stores are asked the same, by the same code above their accesses to tables;
//! drawing what is asked is not timed.

mod lmdb;
mod nothing;
mod sqlite;

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
use dyno_glass_tpcc::engine::{Database, EngineStore, Loader};
use dyno_glass_tpcc::kernel::{Kernel, KernelStore};
use dyno_tpcc::{
    Check, Config, Extent, Input, Inputs, Mix, Rows, SqlStore, Store, check, check_scans, perform,
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

/// What is measured, behind one call.
trait Subject {
    fn carry_out(&mut self, input: &Input, now: i64, rows: &mut Rows) -> dyno_sql::Result<()>;

    /// Looks at all that is there in the end.
    fn checked(self: Box<Self>, config: &Config) -> dyno_sql::Result<Vec<Check>>;
}

/// A store, and what looks at what it has in the end.
struct Checked<S, F>(S, F);

impl<S: Store, F: FnOnce(S, &Config) -> dyno_sql::Result<Vec<Check>>> Subject for Checked<S, F> {
    fn carry_out(&mut self, input: &Input, now: i64, rows: &mut Rows) -> dyno_sql::Result<()> {
        perform(&mut self.0, input, now, rows).map(drop)
    }

    fn checked(self: Box<Self>, config: &Config) -> dyno_sql::Result<Vec<Check>> {
        self.1(self.0, config)
    }
}

/// A subject, and what it is asked.
struct Contender {
    name: String,
    subject: Box<dyn Subject>,
    inputs: Vec<Inputs>,
    rows: Rows,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [
        folder,
        rounds,
        transactions,
        warehouses,
        items,
        customers,
        names @ ..,
    ] = arguments.as_slice()
    else {
        return Err(
            "expected FOLDER ROUNDS TRANSACTIONS WAREHOUSES ITEMS CUSTOMERS STORE...".into(),
        );
    };
    let (rounds, transactions): (usize, usize) = (rounds.parse()?, transactions.parse()?);
    let config = Config {
        mix: Mix::LookingGlass,
        items: items.parse()?,
        customers_per_district: customers.parse()?,
        ..Config::new(warehouses.parse()?, 1)
    };
    let folder = PathBuf::from(folder);
    sqlite::configure()?;
    let mut contenders = Vec::new();
    for name in names {
        contenders.push(Contender {
            name: name.clone(),
            subject: open(name, &folder.join(name), &config)?,
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
                let (cpu, took) = (cpu.as_secs_f64(), took.as_secs_f64());
                println!("round {round} {} {cpu} {took}", contender.name);
            }
        }
    }
    for contender in contenders {
        let checks = contender.subject.checked(&config)?;
        if let Some(broken) = checks.iter().find(|check| !check.holds) {
            let Check { name, detail, .. } = broken;
            return Err(format!("{}: {name} does not hold: {detail}", contender.name).into());
        }
        println!("checked {} {}", contender.name, checks.len());
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
                (self.subject)
                    .carry_out(input, 1, &mut self.rows)
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

fn open(name: &str, folder: &Path, config: &Config) -> Result<Box<dyn Subject>> {
    // Stores borrow from what they are opened in, and stay until the process ends.
    Ok(match name {
        "null" => Box::new(Checked(Nothing, |_, _: &Config| Ok(Vec::new()))),
        "kernel" => {
            let store = KernelStore::new(Box::new(Kernel::load(config)?));
            Box::new(Checked(
                store,
                |store: KernelStore<Box<Kernel>>, config: &Config| {
                    check_scans(&mut *store.into_kernel(), config, Extent::All)
                },
            ))
        }
        "glass" => glass::<Full>(Some(folder), config)?,
        "bare" => glass::<Bare>(None, config)?,
        "sqlite" => sqlite(name, "memory", config)?,
        "sqlite-no-journal" => sqlite(name, "off", config)?,
        "lmdb" => Box::new(Checked(
            lmdb::load(folder, config)?,
            |mut store: lmdb::Lmdb, config: &Config| check_scans(&mut store, config, Extent::All),
        )),
        _ => {
            return Err(format!(
                "no store {name}: there are null, kernel, bare, glass, lmdb, sqlite, sqlite-no-journal"
            )
            .into());
        }
    })
}

/// All of it in the pool, with a log that is not written.
fn glass<A: Assembly>(folder: Option<&Path>, config: &Config) -> Result<Box<dyn Subject>> {
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
    Loader::load_all(&database, config)?;
    let mut database: &Database<A> = Box::leak(Box::new(database));
    Ok(Box::new(Checked(
        database.store()?,
        move |store: EngineStore<'static, A>, config: &Config| {
            // Its session ends: there may be one at a time.
            drop(store);
            check_scans(&mut database, config, Extent::All)
        },
    )))
}

fn sqlite(name: &str, journal: &str, config: &Config) -> Result<Box<dyn Subject>> {
    let (session, settings) = sqlite::load(journal, config)?;
    println!("setting {name} {settings}");
    let store = SqlStore::prepare(session)?;
    Ok(Box::new(Checked(
        store,
        |store: SqlStore<_>, config: &Config| {
            check(&mut store.into_connection(), config, Extent::All)
        },
    )))
}
