//! The lock table against a model of it that is as plain as can be: many transactions in one thread, which stand in
//! queues and do not sleep. The model knows no graph: a deadlock is when somebody still waits after all others that can
//! go on have ended.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::latch::NoLatch;
use crate::{IndexId, PageId, Rid, TableId};

const THINGS: [Lockable; 4] = [
    Lockable::Table(TableId(1)),
    Lockable::Record(Rid::new(PageId(7), 3)),
    Lockable::Record(Rid::new(PageId(7), 4)),
    Lockable::End(IndexId(1)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Had,
    Waits,
    Deadlock,
}

#[derive(Clone, Debug, Default)]
struct Model {
    held: BTreeMap<(usize, TxId), Mode>,
    /// What each asked for who waits, those before who came first.
    queue: Vec<(TxId, usize, Mode, Until)>,
}

impl Model {
    /// What it would hold, if others let it.
    fn wanted(&self, tx: TxId, thing: usize, mode: Mode) -> Mode {
        self.held
            .get(&(thing, tx))
            .map_or(mode, |held| held.supremum(mode))
    }

    fn fits(&self, tx: TxId, thing: usize, mode: Mode) -> bool {
        let wanted = self.wanted(tx, thing, mode);
        self.held
            .iter()
            .filter(|((held, holder), _)| *held == thing && *holder != tx)
            .all(|(_, other)| wanted.compatible(*other))
    }

    fn holds(&self, tx: TxId, thing: usize) -> bool {
        self.held.contains_key(&(thing, tx))
    }

    fn grant(&mut self, tx: TxId, thing: usize, mode: Mode, until: Until) {
        if until == Until::End {
            let wanted = self.wanted(tx, thing, mode);
            self.held.insert((thing, tx), wanted);
        }
    }

    fn ask(&mut self, tx: TxId, thing: usize, mode: Mode, until: Until) -> Outcome {
        let nothing_new = self.held.get(&(thing, tx)) == Some(&self.wanted(tx, thing, mode));
        let first = self.holds(tx, thing) || self.queue.iter().all(|waiter| waiter.1 != thing);
        if nothing_new || first && self.fits(tx, thing, mode) {
            self.grant(tx, thing, mode, until);
            return Outcome::Had;
        }
        self.queue.push((tx, thing, mode, until));
        if self.clone().waits_for_ever(tx) {
            self.queue.pop();
            return Outcome::Deadlock;
        }
        Outcome::Waits
    }

    fn end(&mut self, tx: TxId) {
        self.held.retain(|(_, holder), _| *holder != tx);
        self.go_on();
    }

    /// Grants one after the other, beginning anew after each, until nothing changes.
    fn go_on(&mut self) {
        let may = |model: &Self, &(tx, thing, mode, _): &(TxId, usize, Mode, Until), at: usize| {
            let queue = model.queue.iter().enumerate();
            let mut before = queue.filter(|(other, waiter)| {
                *other != at && waiter.1 == thing && (*other < at || model.holds(waiter.0, thing))
            });
            model.fits(tx, thing, mode) && (model.holds(tx, thing) || before.next().is_none())
        };
        while let Some(at) = (0..self.queue.len()).find(|&at| may(self, &self.queue[at], at)) {
            let (tx, thing, mode, until) = self.queue.remove(at);
            self.grant(tx, thing, mode, until);
        }
    }

    fn waits(&self, tx: TxId) -> bool {
        self.queue.iter().any(|waiter| waiter.0 == tx)
    }

    fn waits_for_ever(mut self, tx: TxId) -> bool {
        while self.waits(tx) {
            let Some((_, ends)) = self
                .held
                .keys()
                .copied()
                .find(|&(_, holder)| !self.waits(holder))
            else {
                return true;
            };
            self.end(ends);
        }
        false
    }
}

/// The lock table and who uses it, by number; each begins a new transaction when one has ended.
struct Table {
    locks: Granular<NoLatch>,
    users: Vec<User>,
    begun: u64,
}

#[derive(Default)]
struct User {
    tx: TxId,
    held: Held,
    waits: Option<(usize, bool)>,
}

impl Table {
    fn new(users: usize) -> Self {
        let mut table = Self {
            locks: Granular::default(),
            users: (0..users).map(|_| User::default()).collect(),
            begun: 0,
        };
        (0..users).for_each(|user| table.begin(user));
        table
    }

    fn begin(&mut self, user: usize) {
        self.begun += 1;
        self.users[user].tx = TxId(self.begun);
    }

    fn ask(&mut self, user: usize, thing: usize, mode: Mode, until: Until) -> Outcome {
        let User { tx, held, waits } = &mut self.users[user];
        let what = THINGS[thing];
        if self.locks.try_lock(*tx, held, what, mode, until) {
            return Outcome::Had;
        }
        match self
            .locks
            .begin_to_wait(*tx, held, Place::of(what), mode, until)
        {
            Ok(Begun::Waits { new }) => {
                *waits = Some((thing, new));
                Outcome::Waits
            }
            Err(Error::Deadlock) => Outcome::Deadlock,
            other => panic!("{other:?} after it was refused"),
        }
    }

    fn end(&mut self, user: usize) {
        let User { tx, held, .. } = &mut self.users[user];
        self.locks.release(*tx, held);
        self.begin(user);
    }

    /// What those have who were granted what they waited for.
    fn settle(&mut self) {
        for User { tx, held, waits } in &mut self.users {
            if let Some((thing, new)) = *waits {
                let what = THINGS[thing];
                if self.locks.partition(Place::of(what)).waiting(*tx).is_none() {
                    *waits = None;
                    held.locks.extend(new.then_some(Place::of(what)));
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(usize, usize, Mode, Until),
    End(usize),
}

fn step(users: usize) -> impl Strategy<Value = Step> {
    let until = prop_oneof![4 => Just(Until::End), 1 => Just(Until::Had)];
    let ask = (
        0..users,
        0..THINGS.len(),
        prop::sample::select(&Mode::ALL[..]),
        until,
    )
        .prop_map(|(user, thing, mode, until)| Step::Ask(user, thing, mode, until));
    prop_oneof![5 => ask, 1 => (0..users).prop_map(Step::End)]
}

const USERS: usize = 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_grants_and_refuses_what_the_model_does_and_finds_the_same_deadlocks(steps in vec(step(USERS), 1..120)) {
        let mut table = Table::new(USERS);
        let mut model = Model::default();
        let mut deadlocks = 0;
        // At the end all end, those that wait when they do so no longer.
        let end = (0..USERS * USERS).map(|step| Step::End(step % USERS));
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Ask(user, thing, mode, until) if table.users[user].waits.is_none() => {
                    let expected = model.ask(table.users[user].tx, thing, mode, until);
                    prop_assert_eq!(table.ask(user, thing, mode, until), expected);
                    deadlocks += u64::from(expected == Outcome::Deadlock);
                }
                Step::End(user) if table.users[user].waits.is_none() => {
                    model.end(table.users[user].tx);
                    table.end(user);
                }
                _ => {}
            }
            table.settle();
            for user in &table.users {
                prop_assert_eq!(user.waits.is_some(), model.waits(user.tx));
            }
            for (thing, what) in THINGS.into_iter().enumerate() {
                let mut held = table.locks.partition(Place::of(what)).held(what);
                held.sort_by_key(|(tx, _)| *tx);
                let expected: Vec<_> = model.held.iter().filter(|((held, _), _)| *held == thing).map(|((_, tx), mode)| (*tx, *mode)).collect();
                prop_assert_eq!(held, expected);
            }
        }
        prop_assert!(table.users.iter().all(|user| user.waits.is_none() && user.held.count() == 0));
        prop_assert_eq!(table.locks.all().iter().map(|partition| partition.size().0).sum::<usize>(), 0);
        prop_assert_eq!(table.locks.statistics().deadlocks, deadlocks);
    }
}
