//! The process ends, the store is opened anew, and the power fails meanwhile: what was committed is there. What the process wrote and did
//! not sync was read by then, and must not be built upon before it is on disk.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use dyno_glass::Result;
use dyno_glass::assembly::Built;
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::ByName;
use dyno_glass::engine::{Access, Engine, Options};
use dyno_glass::keys::{Field, Shape, Typed};
use dyno_glass::latch::RwLatch;
use dyno_glass::locks::Granular;
use dyno_glass::log::{self, Policy, Wal};
use dyno_glass::pages::Pool;
use dyno_glass::pages::disk::crash::CrashFolder;
use dyno_glass::transactions::Real;

const PAGE: usize = 1024;

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

fn open(folder: &CrashFolder) -> Result<Engine<Full>> {
    let options = Options {
        // Fewer frames than pages, so that some are written.
        memory: 24 * PAGE,
        log: log::Options {
            policy: Policy::Synced,
            buffer: 40 << 10,
            segment: 8 << 10,
        },
        checkpoint: 32 << 10,
        ..Options::default()
    };
    Engine::open(Some(Arc::new(folder.clone())), &options)
}

/// Commits keys from `from` on, each by itself, as far as it goes; gives the first that was not.
fn commit(engine: &Engine<Full>, from: u64, to: u64) -> u64 {
    let put = |key: u64| {
        let (table, index) = (engine.table_handle("t")?, engine.index_handle("i")?);
        let mut session = engine.session()?;
        session.begin()?;
        let mut record = key.to_be_bytes().to_vec();
        record.resize(400, 7);
        let (table, index) = (session.table(&table)?, session.index(&index)?);
        let rid = session.create(table, &record)?;
        session.insert(index, &key.to_be_bytes(), rid)?;
        session.commit()
    };
    (from..to).find(|key| put(*key).is_err()).unwrap_or(to)
}

/// Whether these keys are all there.
fn has_all(engine: &Engine<Full>, to: u64) -> bool {
    let mut session = engine.session().unwrap();
    session.begin().unwrap();
    let index = session.index(&engine.index_handle("i").unwrap()).unwrap();
    (0..to).all(|key| {
        let found = session.lookup(index, &key.to_be_bytes(), Access::Read);
        found.unwrap().is_some()
    })
}

#[test]
fn what_was_committed_outlives_a_process_that_ended_and_a_power_that_fails_while_it_is_opened() {
    let (mut failed, mut recovered) = (0, 0);
    for seed in 0..400 {
        let folder = CrashFolder::new();
        let engine = open(&folder).unwrap();
        let table = engine.create_table("t").unwrap();
        let shape = Shape::new(&[Field::Long]);
        engine.create_index("i", &table, &shape).unwrap();
        assert_eq!(commit(&engine, 0, 50), 50);
        folder.fail_power_at(folder.operations() + 10 + seed * 13 % 200);
        let committed = commit(&engine, 50, 150);
        drop(engine);
        folder.revive();

        folder.fail_power_at(folder.operations() + 1 + seed * 7 % 37);
        drop(open(&folder));
        failed += u64::from(folder.has_failed());
        let engine = open(&folder.crash(seed)).unwrap();
        recovered += u64::from(engine.recovered().is_some());
        engine.verify().unwrap();
        assert!(
            has_all(&engine, committed),
            "something is lost, seed {seed}"
        );
    }
    assert!(failed > 200 && recovered > 200, "{failed} {recovered}");
}
