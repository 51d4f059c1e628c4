//! Several sessions, which wait for each other where they must.

use std::sync::mpsc;
use std::thread;

use super::*;

/// The assemblies in which several sessions can be open: all, and what is left when what can be is removed.
fn with_several(test: impl TestOfSeveral + Copy) {
    several::<Small<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Typed, ByName>>(test);
    several::<Plain<Rw, NoLog, Granular<Rw>, Real<Rw>, Words, Resolved>>(test);
}

trait TestOfSeveral {
    fn run<A: Assembly>(&self, engine: &Engine<A>, goods: &Goods);
}

fn several<A: Assembly>(test: impl TestOfSeveral) {
    let engine = open::<A>(&CrashFolder::new());
    let goods = Goods::make(&engine);
    let mut session = engine.session().expect("open to all");
    session.begin().expect("none is under way");
    for number in (0..100).step_by(10) {
        goods
            .add(&mut session, number, &[0; 100])
            .expect("no fault");
    }
    session.commit().expect("no fault");
    drop(session);
    test.run(&engine, &goods);
    engine.verify().expect("whole");
}

/// Until so many have had to wait, since the engine was opened.
fn until_waiting<A: Assembly>(engine: &Engine<A>, waits: u64) {
    while engine.locks().expect("others may be open").waits < waits {
        thread::yield_now();
    }
}

/// What the second session does has to wait until the first has ended.
fn waits_for<A: Assembly, R: Send>(
    engine: &Engine<A>,
    first: impl FnOnce(&mut Session<'_, A>),
    second: impl FnOnce(&mut Session<'_, A>) -> Result<R> + Send,
) -> R {
    let waits = engine.locks().expect("others may be open").waits;
    let (ends, ended) = mpsc::channel();
    let mut one = engine.session().expect("open to all");
    one.begin().expect("none is under way");
    first(&mut one);
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            let mut other = engine.session().expect("open to all");
            other.begin().expect("none is under way");
            let result = second(&mut other).expect("no fault");
            ended.recv().expect("the first has ended");
            other.commit().expect("no fault");
            result
        });
        until_waiting(engine, waits + 1);
        // Said before it ends, so that it is there when the other goes on.
        ends.send(()).expect("it is there");
        one.commit().expect("no fault");
        other.join().expect("no panic")
    })
}

#[derive(Clone, Copy)]
struct Waiting;

impl TestOfSeveral for Waiting {
    fn run<A: Assembly>(&self, engine: &Engine<A>, goods: &Goods) {
        let found = waits_for(
            engine,
            |one| assert!(goods.paint(one, 10, 1, b"first").expect("no fault")),
            |other| goods.find_record(other, 10, Access::Change),
        );
        assert_eq!(&found.expect("it is there").1[1..6], b"first");

        let found = waits_for(
            engine,
            |one| goods.add(one, 15, &[1; 10]).expect("no fault"),
            |other| goods.find_record(other, 15, Access::Read),
        );
        assert_eq!(found.expect("it is there").1, [1; 10]);

        let found = waits_for(
            engine,
            |one| assert!(goods.take(one, 15).expect("no fault")),
            |other| goods.find_record(other, 15, Access::Read),
        );
        assert!(found.is_none());

        // What was found not to be there is not there until the end.
        waits_for(
            engine,
            |one| {
                assert!(
                    goods
                        .find_record(one, 25, Access::Read)
                        .expect("no fault")
                        .is_none()
                )
            },
            |other| goods.add(other, 25, &[1; 10]),
        );
        waits_for(
            engine,
            |one| {
                assert!(
                    goods
                        .find_record(one, 1000, Access::Read)
                        .expect("no fault")
                        .is_none()
                )
            },
            |other| goods.add(other, 1001, &[1; 10]),
        );
        for direction in [Direction::Forwards, Direction::Backwards] {
            let number = if direction == Direction::Forwards {
                35
            } else {
                36
            };
            waits_for(
                engine,
                |one| {
                    assert!(
                        goods
                            .numbers(one, 31, 49, direction, 100)
                            .expect("no fault")
                            .contains(&40)
                    )
                },
                |other| goods.add(other, number, &[1; 10]),
            );
        }

        // Who finds a key that is being put in, or taken out, waits to know whether it is there.
        let result = waits_for(
            engine,
            |one| goods.add(one, 55, &[1; 10]).expect("no fault"),
            |other| Ok(goods.add(other, 55, &[2; 10])),
        );
        assert!(matches!(result, Err(Error::Duplicate)));
        waits_for(
            engine,
            |one| assert!(goods.take(one, 55).expect("no fault")),
            |other| goods.add(other, 55, &[2; 10]),
        );
    }
}

#[test]
fn sessions_wait_for_each_other_and_go_on() {
    with_several(Waiting);
}

#[derive(Clone, Copy)]
struct GivingWay;

impl TestOfSeveral for GivingWay {
    fn run<A: Assembly>(&self, engine: &Engine<A>, goods: &Goods) {
        let mut other = engine.session().expect("open to all");
        other.begin().expect("none is under way");
        assert!(goods.paint(&mut other, 20, 1, b"other").expect("no fault"));
        let waits = engine.locks().expect("others may be open").waits;
        thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let mut one = engine.session().expect("open to all");
                one.begin().expect("none is under way");
                assert!(goods.paint(&mut one, 10, 1, b"one").expect("no fault"));
                assert!(goods.paint(&mut one, 20, 1, b"one").expect("it goes on"));
                one.commit().expect("no fault");
            });
            until_waiting(engine, waits + 1);
            assert!(matches!(
                goods.paint(&mut other, 10, 1, b"other"),
                Err(Error::Deadlock)
            ));
            other.rollback().expect("no fault");
            waiting.join().expect("no panic");
        });
        other.begin().expect("none is under way");
        for number in [10, 20] {
            let found = goods
                .find_record(&mut other, number, Access::Read)
                .expect("no fault");
            assert_eq!(&found.expect("it is there").1[1..4], b"one");
        }
    }
}

#[test]
fn of_two_that_wait_for_each_other_one_gives_way_and_is_undone() {
    with_several(GivingWay);
}

#[derive(Clone, Copy)]
struct AddingUp;

const ROUNDS: u64 = 200;
const SESSIONS: u64 = 4;

impl TestOfSeveral for AddingUp {
    fn run<A: Assembly>(&self, engine: &Engine<A>, goods: &Goods) {
        thread::scope(|scope| {
            for own in 0..SESSIONS {
                scope.spawn(move || {
                    let mut session = engine.session().expect("open to all");
                    for round in 0..ROUNDS {
                        while let Err(error) = add_up(goods, &mut session, own, round) {
                            assert!(matches!(error, Error::Deadlock), "{error}");
                            session.rollback().expect("no fault");
                        }
                    }
                });
            }
        });
        let mut session = engine.session().expect("open to all");
        session.begin().expect("none is under way");
        for number in [10, 20] {
            let found = goods
                .find_record(&mut session, number, Access::Read)
                .expect("no fault");
            let sum = u64::from_le_bytes(
                found.expect("it is there").1[1..9]
                    .try_into()
                    .expect("of 8"),
            );
            assert_eq!(sum, ROUNDS * SESSIONS);
        }
        let added = goods.numbers(
            &mut session,
            1000,
            i32::MAX,
            Direction::Forwards,
            usize::MAX,
        );
        assert_eq!(added.expect("no fault").len() as u64, ROUNDS * SESSIONS / 2);
    }
}

/// Adds one to two sums, in an order that differs among sessions, and adds or takes a record of its own.
fn add_up<A: Assembly>(
    goods: &Goods,
    session: &mut Session<'_, A>,
    own: u64,
    round: u64,
) -> Result<()> {
    session.begin()?;
    let order = if (own + round).is_multiple_of(2) {
        [10, 20]
    } else {
        [20, 10]
    };
    for number in order {
        let (_, record) = goods
            .find_record(session, number, Access::Change)?
            .expect("it is there");
        let sum = u64::from_le_bytes(record[1..9].try_into().expect("of 8")) + 1;
        goods.paint(session, number, 1, &sum.to_le_bytes())?;
    }
    let number = (1000 + own * ROUNDS + round) as i32;
    goods.add(session, number, &vec![own as u8; 100 + round as usize])?;
    if round % 2 == 1 {
        assert!(goods.take(session, number - 1)?);
    }
    session.commit()
}

#[test]
fn what_several_sessions_add_is_added() {
    with_several(AddingUp);
}
