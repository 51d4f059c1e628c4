//! Records are called by numbers that anybody can make up. In plain memory these are addresses, and none is followed that is not known.
#![expect(clippy::unwrap_used, reason = "a test")]

use dyno_glass::assembly::{Assembly, Built};
use dyno_glass::calls::NoCalls;
use dyno_glass::catalogue::Resolved;
use dyno_glass::engine::{Engine, Options};
use dyno_glass::keys::Words;
use dyno_glass::latch::{NoLatch, RwLatch};
use dyno_glass::locks::{Granular, NoLocks};
use dyno_glass::log::NoLog;
use dyno_glass::pages::Direct;
use dyno_glass::transactions::{NoTransactions, Real};
use dyno_glass::{Error, Rid};

const PAGE: usize = 32 << 10;

type None = Built<
    PAGE,
    false,
    NoLatch,
    Direct<NoLatch, PAGE>,
    NoLog,
    NoLocks,
    NoTransactions,
    Words,
    Resolved,
    NoCalls,
>;

type Latched = Built<
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

fn forge<A: Assembly>() {
    let engine = Engine::<A>::open(Option::None, &Options::default()).unwrap();
    let handle = engine.create_table("t").unwrap();
    let mut session = engine.session().unwrap();
    session.begin().unwrap();
    let table = session.table(&handle).unwrap();
    let rid = session.create(table, b"record").unwrap();

    // Of nowhere, beside a page, of no page, of the highest address; and the pages next to it, one of which is the catalogue's.
    let page = rid.bits() >> 16;
    let mut refused = 0;
    for forged in [0x1000_0000_0040, page + 64, page - 64, 0, (1 << 48) - 64] {
        let rid = Rid::from_bits(forged << 16);
        assert!(matches!(session.pin(table, rid), Err(Error::Missing(_))));
        assert!(matches!(session.delete(table, rid), Err(Error::Missing(_))));
        refused += 1;
    }
    assert_eq!(refused, 5);
    // A slot that is none of its page's.
    let beyond = session.pin(table, Rid::from_bits(rid.bits() + 9)).unwrap();
    assert!(session.read(&beyond, <[u8]>::len).is_err());
    drop(beyond);
    let pinned = session.pin(table, rid).unwrap();
    assert_eq!(session.read(&pinned, <[u8]>::len).unwrap(), 6);
}

#[test]
fn a_record_of_nowhere_is_missing() {
    forge::<None>();
    forge::<Latched>();
}

#[test]
fn a_record_of_an_engine_that_is_gone_is_missing() {
    let open = || Engine::<None>::open(Option::None, &Options::default()).unwrap();
    let [gone, engine] = [open(), open()];
    let mut rids = Vec::new();
    for engine in [&gone, &engine] {
        let handle = engine.create_table("t").unwrap();
        let mut session = engine.session().unwrap();
        session.begin().unwrap();
        let table = session.table(&handle).unwrap();
        rids.push(session.create(table, b"record").unwrap());
        session.commit().unwrap();
    }
    drop(gone);
    let handle = engine.table_handle("t").unwrap();
    let mut session = engine.session().unwrap();
    let table = session.table(&handle).unwrap();
    assert!(session.pin(table, rids[0]).is_err());
    assert!(session.pin(table, rids[1]).is_ok());
}
