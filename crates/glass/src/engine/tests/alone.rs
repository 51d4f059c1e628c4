//! One session.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::calls::NoCalls;

#[derive(Clone, Debug)]
enum Step {
    Add(i32, u8, usize),
    Take(i32),
    Paint(i32, usize, usize),
    Replace(i32, u8, usize),
    Look(i32),
    Scan(i32, i32, bool, usize),
}

#[derive(Clone, Debug)]
struct Transaction {
    steps: Vec<Step>,
    commits: bool,
}

const NUMBERS: std::ops::Range<i32> = -30..30;

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..100usize, 2 => 0..3000usize, 1 => 7000..8000usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (NUMBERS, any::<u8>(), length()).prop_map(|(number, fill, length)| Step::Add(number, fill, length)),
        3 => NUMBERS.prop_map(Step::Take),
        2 => (NUMBERS, any::<usize>(), any::<usize>()).prop_map(|(number, a, b)| Step::Paint(number, a, b)),
        4 => (NUMBERS, any::<u8>(), length()).prop_map(|(number, fill, length)| Step::Replace(number, fill, length)),
        1 => NUMBERS.prop_map(Step::Look),
        2 => (NUMBERS, NUMBERS, any::<bool>(), 1..100usize)
            .prop_map(|(from, to, forwards, most)| Step::Scan(from, to, forwards, most)),
    ]
}

fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let steps = prop::collection::vec(step(), 1..12);
    let transaction = (steps, prop::bool::weighted(0.6))
        .prop_map(|(steps, commits)| Transaction { steps, commits });
    prop::collection::vec(transaction, 1..25)
}

type Model = BTreeMap<i32, Vec<u8>>;

fn carry_out<A: Assembly>(
    goods: &Goods,
    session: &mut Session<'_, A>,
    model: &mut Model,
    step: &Step,
) -> std::result::Result<(), TestCaseError> {
    match *step {
        Step::Add(number, fill, length) => {
            let record = vec![fill; length];
            match goods.add(session, number, &record) {
                Ok(()) => prop_assert!(model.insert(number, record).is_none()),
                Err(Error::Duplicate) => prop_assert!(model.contains_key(&number)),
                Err(error) => panic!("{error}"),
            }
        }
        Step::Take(number) => {
            let taken = goods.take(session, number).expect("no fault");
            prop_assert_eq!(taken, model.remove(&number).is_some());
        }
        Step::Paint(number, offset, length) => {
            let mut nobody = Vec::new();
            let record = model.get_mut(&number).unwrap_or(&mut nobody);
            if record.len() > 1 {
                let offset = 1 + offset % (record.len() - 1);
                let length = length % (record.len() - offset + 1);
                let bytes = vec![offset as u8; length];
                record[offset..offset + length].copy_from_slice(&bytes);
                prop_assert!(
                    goods
                        .paint(session, number, offset, &bytes)
                        .expect("no fault")
                );
            }
        }
        Step::Replace(number, fill, length) => {
            let record = vec![fill; length];
            let replaced = goods.replace(session, number, &record).expect("no fault");
            prop_assert_eq!(replaced, model.contains_key(&number));
            if replaced {
                model.insert(number, record);
            }
        }
        Step::Look(number) => {
            let found = goods
                .find_record(session, number, Access::Read)
                .expect("no fault");
            prop_assert_eq!(found.map(|found| found.1), model.get(&number).cloned());
        }
        Step::Scan(from, to, forwards, most) => {
            let direction = if forwards {
                Direction::Forwards
            } else {
                Direction::Backwards
            };
            let found = goods
                .numbers(session, from, to, direction, most)
                .expect("no fault");
            let range: Vec<_> = model
                .keys()
                .copied()
                .filter(|number| (from..=to).contains(number))
                .collect();
            let expected: Vec<_> = if forwards {
                range.into_iter().take(most).collect()
            } else {
                range.into_iter().rev().take(most).collect()
            };
            prop_assert_eq!(found, expected);
        }
    }
    Ok(())
}

fn agree<A: Assembly>(engine: &Engine<A>, goods: &Goods, model: &Model) {
    let mut session = engine.session().expect("nobody else");
    session.begin().expect("none is under way");
    let all = goods.numbers(
        &mut session,
        i32::MIN,
        i32::MAX,
        Direction::Forwards,
        usize::MAX,
    );
    assert_eq!(
        all.expect("no fault"),
        model.keys().copied().collect::<Vec<_>>()
    );
    for (&number, record) in model {
        let found = goods
            .find_record(&mut session, number, Access::Read)
            .expect("no fault");
        assert_eq!(found.map(|found| found.1).as_ref(), Some(record));
    }
    session.commit().expect("nothing to keep");
    drop(session);
    let verified = engine.verify().expect("whole");
    assert_eq!(verified.records, model.len() as u64);
    assert_eq!(verified.entries, 2 * verified.records);
    assert_eq!(verified.lost, 0);
}

/// Random transactions on an assembly, and the same on a map.
fn on_both<A: Assembly>(transactions: &[Transaction]) -> std::result::Result<(), TestCaseError> {
    let folder = CrashFolder::new();
    let engine = open::<A>(&folder);
    let goods = Goods::make(&engine);
    let mut model = Model::new();
    let mut session = engine.session().expect("nobody else");
    for transaction in transactions {
        let mut within = model.clone();
        session.begin().expect("none is under way");
        for step in &transaction.steps {
            carry_out(&goods, &mut session, &mut within, step)?;
        }
        if transaction.commits || !A::Transactions::REAL {
            session.commit().expect("no fault");
            model = within;
        } else {
            session.rollback().expect("no fault");
        }
    }
    drop(session);
    agree(&engine, &goods, &model);
    engine.close().expect("no fault");
    if A::Pages::REAL {
        let engine = open::<A>(&folder.crash(1));
        agree(&engine, &Goods::find(&engine), &model);
    }
    Ok(())
}

fn against_a_map<A: Assembly>(name: &str) {
    let config = Config {
        cases: 16,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&transactions(), |transactions| on_both::<A>(&transactions))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn each_assembly_agrees_with_a_map_whatever_is_done_and_undone() {
    in_each!(against_a_map);
}

/// Something that is done within a transaction.
type Change<'f, A> = &'f dyn Fn(&mut Session<'_, A>);

fn rolling_back<A: Assembly<Calls = Counted>>(name: &str) {
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    let mut session = engine.session().expect("nobody else");
    if !A::Transactions::REAL {
        session.begin().expect("none is under way");
        assert!(matches!(session.rollback(), Err(Error::Absent(_))));
        return;
    }
    let model: Model = (0..60)
        .map(|number| (number, vec![number as u8; 300]))
        .collect();
    session.begin().expect("none is under way");
    for (&number, record) in &model {
        goods.add(&mut session, number, record).expect("no fault");
    }
    session.commit().expect("no fault");
    let changes: [(&str, Change<'_, A>); 7] = [
        ("adding", &|session| {
            goods.add(session, 77, &[7; 500]).expect("no fault")
        }),
        ("taking", &|session| {
            assert!(goods.take(session, 5).expect("no fault"))
        }),
        ("painting", &|session| {
            assert!(goods.paint(session, 6, 10, &[1; 50]).expect("no fault"))
        }),
        ("shortening", &|session| {
            assert!(goods.replace(session, 7, &[7; 3]).expect("no fault"))
        }),
        ("lengthening", &|session| {
            assert!(goods.replace(session, 8, &[8; 350]).expect("no fault"))
        }),
        ("moving", &|session| {
            assert!(goods.replace(session, 9, &[9; 7900]).expect("no fault"))
        }),
        ("moving twice, painting and taking", &|session| {
            assert!(goods.replace(session, 10, &[3; 5000]).expect("no fault"));
            assert!(goods.replace(session, 10, &[4; 7900]).expect("no fault"));
            assert!(goods.paint(session, 10, 7000, &[5; 100]).expect("no fault"));
            assert!(goods.replace(session, 10, &[6; 200]).expect("no fault"));
            assert!(goods.take(session, 10).expect("no fault"));
        }),
    ];
    for (what, change) in changes {
        session.begin().expect("none is under way");
        change(&mut session);
        session
            .rollback()
            .unwrap_or_else(|error| panic!("{name}: {what}: {error}"));
        drop(session);
        agree(&engine, &goods, &model);
        session = engine.session().expect("nobody else");
    }
    session.begin().expect("none is under way");
    for (_, change) in changes {
        change(&mut session);
    }
    // As if it were forgotten.
    drop(session);
    agree(&engine, &goods, &model);
}

#[test]
fn every_kind_of_change_is_undone() {
    in_each!(rolling_back);
}

fn refusing<A: Assembly<Calls = Counted>>(_: &str) {
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    assert!(matches!(
        engine.create_table("goods"),
        Err(Error::Refused(_))
    ));
    let shape = Shape::new(&[Field::Int]);
    assert!(matches!(
        engine.create_index("goods by kind", &goods.table, &shape),
        Err(Error::Refused(_))
    ));
    assert!(matches!(
        engine.table_handle("evils"),
        Err(Error::Missing(_))
    ));
    let mut session = engine.session().expect("nobody else");
    let table = session.table(&goods.table).expect("it is there");
    assert!(matches!(session.commit(), Err(Error::Refused(_))));
    assert!(matches!(session.rollback(), Err(Error::Refused(_))));
    assert!(matches!(
        session.create(table, b"x"),
        Err(Error::Refused(_))
    ));
    session.begin().expect("none is under way");
    assert!(matches!(session.begin(), Err(Error::Refused(_))));
    assert!(matches!(
        session.create(table, &vec![0; A::PAGE]),
        Err(Error::Refused(_))
    ));
    goods.add(&mut session, 1, b"one").expect("no fault");
    let index = session.index(&goods.by_number).expect("it is there");
    let rid = session
        .lookup(index, &number_key(1), Access::Change)
        .expect("no fault")
        .expect("it is there");
    assert!(matches!(
        session.lookup(index, b"of another length", Access::Read),
        Err(Error::Refused(_))
    ));
    assert!(matches!(
        session.insert(index, &number_key(1), rid),
        Err(Error::Duplicate)
    ));
    assert!(matches!(
        session.remove(index, &number_key(2), rid),
        Err(Error::Missing(_))
    ));
    let pinned = session.pin(table, rid).expect("it is there");
    assert!(matches!(
        session.update(&pinned, 2, b"xx"),
        Err(Error::Refused(_))
    ));
    assert_eq!(
        session.read(&pinned, <[u8]>::to_vec).expect("it is there"),
        b"one"
    );
    session.commit().expect("no fault");
    if !(A::Latch::REAL && A::Locks::REAL) {
        assert!(matches!(engine.session(), Err(Error::Refused(_))));
        assert!(matches!(engine.verify(), Err(Error::Refused(_))));
        assert!(matches!(engine.checkpoint(), Err(Error::Refused(_))));
        assert!(matches!(engine.locks(), Err(Error::Refused(_))));
    }
    drop(session);
    // What is pinned still keeps others away, who could change it under its reader.
    assert_eq!(engine.session().is_err(), !A::Latch::REAL);
    drop(pinned);
    assert!(engine.session().is_ok());
    let mut seen = 0;
    let each = engine.each(&goods.table, |_, record| {
        assert_eq!(record, b"one");
        assert_eq!(
            engine.session().is_err(),
            !(A::Latch::REAL && A::Locks::REAL)
        );
        seen += 1;
        Ok(())
    });
    each.expect("it is there");
    assert_eq!(seen, 1);
    assert!(matches!(
        engine.create_index("late", &goods.table, &shape),
        Err(Error::Refused(_))
    ));
    engine.verify().expect("whole");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_comes_of_it() {
    in_each!(refusing);
}

fn counting<A: Assembly<Calls = Counted>>(name: &str) {
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    let mut session = engine.session().expect("nobody else");
    session.begin().expect("none is under way");
    goods.add(&mut session, 1, b"one").expect("no fault");
    assert!(goods.paint(&mut session, 1, 1, b"x").expect("no fault"));
    assert!(goods.take(&mut session, 1).expect("no fault"));
    session.commit().expect("no fault");
    let calls = *session.calls();
    let expected = [
        (Call::Begin, 1),
        (Call::Catalogue, if A::Catalogue::REAL { 11 } else { 0 }),
        (Call::Lookup, 2),
        (Call::Pin, 3),
        (Call::Create, 1),
        (Call::Update, 1),
        (Call::Delete, 1),
        (Call::Insert, 2),
        (Call::Remove, 2),
        (Call::Scan, 0),
        (Call::Commit, 1),
        (Call::Rollback, 0),
    ];
    for (call, times) in expected {
        assert_eq!(calls.of(call), times, "{name}: {}", call.name());
    }
}

#[test]
fn calls_are_counted_and_those_of_an_absent_catalogue_are_none() {
    in_each!(counting);
}

fn recycling<A: Assembly<Calls = Counted>>(name: &str) {
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    let mut used = 0;
    for round in 0..60 {
        let mut session = engine.session().expect("nobody else");
        session.begin().expect("none is under way");
        for number in 0..100 {
            goods
                .add(&mut session, number, &[1; 400])
                .expect("no fault");
        }
        session.commit().expect("no fault");
        session.begin().expect("none is under way");
        for number in 0..100 {
            assert!(goods.take(&mut session, number).expect("no fault"));
        }
        session.commit().expect("no fault");
        drop(session);
        if round == 5 {
            used = engine.verify().expect("whole").used;
        }
    }
    let verified = engine.verify().expect("whole");
    assert!(
        verified.used <= used,
        "{name}: {used} pages became {verified:?}"
    );
}

#[test]
fn what_is_deleted_makes_room_for_what_is_created() {
    in_each!(recycling);
}

fn reopening<A: Assembly<Calls = Counted>>(name: &str) {
    if !A::Pages::REAL {
        return;
    }
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    let mut session = engine.session().expect("nobody else");
    session.begin().expect("none is under way");
    for number in 0..200 {
        goods
            .add(&mut session, number, &[1; 400])
            .expect("no fault");
    }
    session.commit().expect("no fault");
    drop(session);
    let before = engine.verify().expect("whole");
    engine.close().expect("no fault");
    for round in 0..40 {
        let engine = open::<A>(folder);
        let goods = Goods::find(&engine);
        let mut session = engine.session().expect("nobody else");
        // As many as there were, also of those that have never been deleted; what is deleted last leaves ghosts behind.
        for number in round * 20..round * 20 + 20 {
            session.begin().expect("none is under way");
            goods
                .add(&mut session, number + 200, &[1; 400])
                .expect("no fault");
            assert!(goods.take(&mut session, number).expect("no fault"));
            session.commit().expect("no fault");
        }
        drop(session);
        engine.verify().expect("whole");
        engine.close().expect("no fault");
    }
    // Also where nothing is done.
    for _ in 0..2 {
        open::<A>(folder).close().expect("no fault");
    }
    let after = open::<A>(folder).verify().expect("whole");
    assert_eq!(after.records, before.records);
    assert!(
        after.used <= before.used + 4,
        "{name}: {before:?} became {after:?}"
    );
}

#[test]
fn a_store_that_is_opened_often_does_not_grow() {
    in_each!(reopening);
}

fn not_closing<A: Assembly<Calls = Counted>>(_: &str) {
    let folder = &CrashFolder::new();
    let engine = open::<A>(folder);
    let goods = Goods::make(&engine);
    let mut model = Model::new();
    let mut session = engine.session().expect("nobody else");
    for number in 0..200 {
        session.begin().expect("none is under way");
        let record = vec![number as u8; 200 + number as usize];
        goods.add(&mut session, number, &record).expect("no fault");
        if number > 10 {
            goods.take(&mut session, number - 10).expect("no fault");
            goods
                .replace(&mut session, number - 5, &[9; 2000])
                .expect("no fault");
        }
        if number % 3 == 0 && A::Transactions::REAL {
            session.rollback().expect("no fault");
            continue;
        }
        session.commit().expect("no fault");
        model.insert(number, record);
        if number > 10 {
            model.remove(&(number - 10));
            model
                .entry(number - 5)
                .and_modify(|record| *record = vec![9; 2000]);
        }
    }
    // One is under way when the power fails.
    session.begin().expect("none is under way");
    goods.add(&mut session, 1000, &[1; 300]).expect("no fault");
    goods
        .replace(&mut session, 199, &[1; 5000])
        .expect("no fault");
    let options = options();
    for seed in 0..8 {
        let folder = folder.crash(seed);
        let reopened = Engine::<A>::open(Some(Arc::new(folder.clone())), &options);
        if A::Log::REAL && A::Pages::REAL {
            let reopened = reopened.expect("it recovers");
            let goods = Goods::find(&reopened);
            agree(&reopened, &goods, &model);
            // What comes afterwards finds room and numbers of its own.
            let mut session = reopened.session().expect("nobody else");
            session.begin().expect("none is under way");
            goods.add(&mut session, 2000, &[1; 100]).expect("no fault");
            session.commit().expect("no fault");
        } else if A::Log::REAL || A::Pages::REAL {
            assert!(matches!(reopened, Err(Error::Refused(_))));
        } else {
            let reopened = reopened.expect("nothing is left");
            assert!(matches!(
                reopened.table_handle("goods"),
                Err(Error::Missing(_))
            ));
        }
    }
}

#[test]
fn a_store_that_was_not_closed_recovers_or_says_that_it_cannot() {
    in_each!(not_closing);
}

#[test]
fn branches_of_a_deep_index_go_with_the_least_buffer_of_the_log() {
    const SMALL: usize = 1024;
    type Deep = Built<
        SMALL,
        false,
        No,
        Pool<No, SMALL>,
        Wal<No>,
        NoLocks,
        Real<No>,
        Words,
        Resolved,
        NoCalls,
    >;
    let mut options = options();
    options.log.buffer = Engine::<Deep>::LEAST_BUFFER - 1;
    let folder: Arc<dyn Folder> = Arc::new(CrashFolder::new());
    let refused = Engine::<Deep>::open(Some(Arc::clone(&folder)), &options).err();
    assert!(matches!(refused, Some(Error::Refused(_))), "{refused:?}");
    options.log.buffer += 1;
    let engine = Engine::<Deep>::open(Some(folder), &options).expect("it is enough");
    let table = engine.create_table("t").expect("new");
    // The longest keys: seven entries a node.
    let shape = Shape::new(&[Field::Long; 16]);
    let index = engine.create_index("i", &table, &shape).expect("new");
    let mut session = engine.session().expect("the only one");
    let (table, index) = (
        session.table(&table).expect("there"),
        session.index(&index).expect("there"),
    );
    let key = |number: u64| [number.to_be_bytes(); 16].concat();
    session.begin().expect("nothing to tell");
    let rids: Vec<_> = (0..20_000)
        .map(|number| {
            let rid = session.create(table, b"record").expect("room");
            session.insert(index, &key(number), rid).expect("new");
            rid
        })
        .collect();
    // From the left, so that a branch is left alone below each node in turn, the root at last.
    let mut longest = 0;
    for (number, rid) in (0..).zip(rids) {
        let before = engine.log().appended;
        session.remove(index, &key(number), rid).expect("it goes");
        longest = longest.max(engine.log().appended - before);
        session.delete(table, rid).expect("it goes");
    }
    // With little besides that record.
    assert!(longest > 5 * SMALL as u64, "{longest}");
    session.commit().expect("no fault");
    drop(session);
    engine.verify().expect("whole");
}
