//! Counting what transactions take: each kind by itself, in the thread that carries them out, without what the driver
//! does between them.
//!
//! Under valgrind callgrind counts, from the first counted transaction on: what was loaded before is not slowed down.
//! It writes a file for each kind. Elsewhere the machine's own counters are read before and after each transaction, and
//! before and after each call of the engine in builds of it that keep these apart.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::rc::Rc;

use dyno_count::hardware::{Event, Group};
use dyno_count::valgrind;
use dyno_glass::calls::{self, Call, Meter};
use dyno_sql::{Error as OperationError, ErrorKind};

use crate::backend::Status;
use crate::job::CountJob;

/// What counts.
#[derive(Debug)]
enum By {
    Callgrind,
    Hardware(Rc<ByCall>),
}

/// How many, instructions and cycles.
type Spent = [u64; 3];

/// The machine's counters, and what they counted in each call of the engine that this thread made since this was looked at.
#[derive(Debug)]
struct ByCall {
    group: Group<2>,
    before: Cell<[u64; 2]>,
    spent: RefCell<[Spent; Call::ALL.len()]>,
    /// What a call of nothing takes beside what is counted in it, which is in the transaction's counts all the same.
    beside: Cell<[u64; 2]>,
    /// Counters that could not be read.
    failed: RefCell<Option<std::io::Error>>,
}

/// How often what a call of nothing takes is looked at.
const EMPTY_CALLS: usize = 1001;

impl ByCall {
    fn new(group: Group<2>) -> std::io::Result<Self> {
        let by = Self {
            group,
            before: Cell::default(),
            spent: RefCell::default(),
            beside: Cell::default(),
            failed: RefCell::default(),
        };
        let mut costs: [Vec<u64>; 2] = Default::default();
        for _ in 0..EMPTY_CALLS {
            let before = by.group.read()?;
            by.enter(Call::Begin);
            by.leave(Call::Begin);
            let after = by.group.between(&before, &by.group.read()?);
            let [[_, inside @ ..], ..] = by.taken()?;
            for (at, costs) in costs.iter_mut().enumerate() {
                costs.push(after[at].saturating_sub(inside[at]));
            }
        }
        by.beside.set(costs.map(|mut costs| {
            costs.sort_unstable();
            costs[EMPTY_CALLS / 2]
        }));
        Ok(by)
    }

    /// What was counted since this was asked last.
    fn taken(&self) -> std::io::Result<[Spent; Call::ALL.len()]> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(self.spent.take()),
        }
    }
}

impl Meter for ByCall {
    fn enter(&self, _: Call) {
        match self.group.read() {
            Ok(counts) => self.before.set(counts),
            Err(error) => *self.failed.borrow_mut() = Some(error),
        }
    }

    fn leave(&self, call: Call) {
        match self.group.read() {
            Ok(after) => {
                let [instructions, cycles] = self.group.between(&self.before.get(), &after);
                let spent = &mut self.spent.borrow_mut()[call as usize];
                for (sum, one) in spent.iter_mut().zip([1, instructions, cycles]) {
                    *sum += one;
                }
            }
            Err(error) => *self.failed.borrow_mut() = Some(error),
        }
    }
}

/// A kind of transaction, and what was counted of it.
#[derive(Debug)]
struct Counted {
    /// Its name, for callgrind.
    word: CString,
    /// Of its transactions, its instructions and its cycles in [`Counting::counters`].
    names: [&'static str; 3],
    done: u64,
    /// Instructions and cycles.
    sums: [u64; 2],
    /// Those of each call, in builds that keep calls apart.
    calls: [Spent; Call::ALL.len()],
}

/// A client's way through what is to be counted.
#[derive(Debug)]
pub struct Counting {
    by: By,
    job: CountJob,
    kinds: Vec<Counted>,
    /// Of the mix, carried out before the counted ones.
    settled: u64,
    /// The place of the kind that is counted now.
    at: usize,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Whatever the mix has, uncounted.
    Any,
    /// A transaction of the kind at that place.
    Kind(usize),
    /// Nothing is left.
    Nothing,
}

impl Counting {
    /// Of transactions of these kinds, each by its name and the names of its counters: how many there were, instructions,
    /// cycles. Fails where there is nothing to count by.
    pub fn new(
        job: CountJob,
        kinds: impl IntoIterator<Item = (&'static str, [&'static str; 3])>,
    ) -> Result<Self, OperationError> {
        let by = if valgrind::is_there() {
            By::Callgrind
        } else {
            let group = Group::open([Event::Instructions, Event::Cycles]).map_err(|why| {
                let message = format!("{why}, and the driver does not run under valgrind");
                OperationError::new(ErrorKind::Refused, message)
            })?;
            By::counters(group)?
        };
        Ok(Self::with(by, job, kinds))
    }

    fn with(
        by: By,
        job: CountJob,
        kinds: impl IntoIterator<Item = (&'static str, [&'static str; 3])>,
    ) -> Self {
        let kinds = kinds.into_iter().map(|(name, names)| Counted {
            word: CString::new(name).unwrap_or_default(),
            names,
            done: 0,
            sums: [0; 2],
            calls: Default::default(),
        });
        Self {
            by,
            job,
            kinds: kinds.collect(),
            settled: 0,
            at: 0,
        }
    }

    /// What comes next. Each call is to be followed by that transaction, through [`Self::begin`] and [`Self::end`].
    pub fn next(&mut self) -> Next {
        if self.settled < self.job.settling {
            return Next::Any;
        }
        if self.settled == self.job.settling {
            self.settled += 1;
            if matches!(self.by, By::Callgrind) {
                valgrind::start_instrumentation();
                valgrind::forget();
            }
        }
        while let Some(kind) = self.kinds.get(self.at) {
            if kind.done < self.job.transactions {
                return Next::Kind(self.at);
            }
            self.finish(&kind.word);
            self.at += 1;
        }
        Next::Nothing
    }

    fn finish(&self, word: &CStr) {
        if matches!(self.by, By::Callgrind) {
            valgrind::dump(word);
            if self.at + 1 == self.kinds.len() {
                valgrind::stop_instrumentation();
            }
        }
    }

    /// The transaction that is next begins now.
    #[inline]
    pub fn begin(&self) -> Result<Begun, OperationError> {
        if self.settled <= self.job.settling {
            return Ok(Begun(None));
        }
        match &self.by {
            By::Callgrind => {
                valgrind::toggle();
                Ok(Begun(Some([0; 2])))
            }
            By::Hardware(by) => {
                // Those that settled the store are not looked at.
                by.taken().map_err(unread)?;
                let counts = by.group.read().map_err(unread)?;
                Ok(Begun(Some(counts)))
            }
        }
    }

    /// It has ended.
    #[inline]
    pub fn end(&mut self, begun: Begun) -> Result<(), OperationError> {
        let Some(before) = begun.0 else {
            self.settled += 1;
            return Ok(());
        };
        let (spent, calls) = match &self.by {
            By::Callgrind => {
                valgrind::toggle();
                Default::default()
            }
            By::Hardware(by) => {
                let spent = by.group.between(&before, &by.group.read().map_err(unread)?);
                let calls = by.taken().map_err(unread)?;
                let times: u64 = calls.iter().map(|[times, ..]| times).sum();
                let beside = by.beside.get().map(|cost| cost * times);
                (
                    std::array::from_fn(|at| spent[at].saturating_sub(beside[at])),
                    calls,
                )
            }
        };
        if let Some(kind) = self.kinds.get_mut(self.at) {
            kind.done += 1;
            let one: [u64; 2] = spent;
            add(&mut kind.sums, &one);
            for (sums, one) in kind.calls.iter_mut().zip(&calls) {
                add(sums, one);
            }
        }
        Ok(())
    }

    /// How many of each kind were counted, and by the machine's counters what they took in all.
    pub fn counters(&self) -> Status {
        let mut status = Status::new();
        for kind in &self.kinds {
            let [done, instructions, cycles] = kind.names;
            status.insert(done, kind.done as f64);
            if matches!(self.by, By::Hardware(_)) {
                status.insert(instructions, kind.sums[0] as f64);
                status.insert(cycles, kind.sums[1] as f64);
            }
            for call in Call::ALL {
                let [times, its_instructions, its_cycles] = kind.calls[call as usize];
                if times == 0 {
                    continue;
                }
                // There are as many names as kinds and calls, once in a process that ends with them.
                let mut say = |what: &str, value: u64| {
                    status.insert(format!("{what}.{}", call.name()).leak(), value as f64);
                };
                say(&format!("calls.{}", kind.word.to_string_lossy()), times);
                say(instructions, its_instructions);
                say(cycles, its_cycles);
            }
        }
        status
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        if matches!(self.by, By::Hardware(_)) {
            calls::meter(None);
        }
    }
}

impl By {
    /// From now on the calls that this thread makes of the engine are told to them.
    fn counters(group: Group<2>) -> Result<Self, OperationError> {
        let by = Rc::new(ByCall::new(group).map_err(unread)?);
        calls::meter(Some(Rc::clone(&by) as Rc<dyn Meter>));
        Ok(Self::Hardware(by))
    }
}

fn add<const N: usize>(sums: &mut [u64; N], one: &[u64; N]) {
    for (sum, one) in sums.iter_mut().zip(one) {
        *sum += one;
    }
}

/// That a transaction has begun, and what the counters were then if it is counted.
#[derive(Debug)]
#[must_use]
pub struct Begun(Option<[u64; 2]>);

fn unread(error: std::io::Error) -> OperationError {
    OperationError::new(
        ErrorKind::Io,
        format!("reading the machine's counters: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use dyno_glass::assembly::{self, Assembly, Spec};
    use dyno_glass::calls::NoCalls;
    use dyno_glass::engine::{Engine, Options};

    use super::*;

    const KINDS: [(&str, [&str; 3]); 2] = [
        ("first", ["first", "first_instructions", "first_cycles"]),
        ("second", ["second", "second_instructions", "second_cycles"]),
    ];

    fn job(transactions: u64, settling: u64) -> CountJob {
        CountJob {
            transactions,
            settling,
        }
    }

    #[test]
    fn each_kind_is_asked_for_as_often_as_the_job_says_after_what_settles_the_store() {
        let mut counting = Counting::with(By::Callgrind, job(3, 2), KINDS);
        let mut asked = Vec::new();
        loop {
            let next = counting.next();
            asked.push(next);
            if next == Next::Nothing {
                break;
            }
            let begun = counting.begin().unwrap();
            counting.end(begun).unwrap();
        }
        let [first, second] = [Next::Kind(0), Next::Kind(1)];
        let expected = [
            Next::Any,
            Next::Any,
            first,
            first,
            first,
            second,
            second,
            second,
            Next::Nothing,
        ];
        assert_eq!(asked, expected);
        assert_eq!(
            counting.counters(),
            Status::from([("first", 3.0), ("second", 3.0)])
        );
    }

    #[test]
    fn counts_of_transactions_are_summed_without_those_that_settle() {
        let group = Group::open([Event::PageFaults; 2]).unwrap();
        let mut counting = Counting::with(By::counters(group).unwrap(), job(2, 1), KINDS);
        for _ in 0..5 {
            let next = counting.next();
            let begun = counting.begin().unwrap();
            if next != Next::Kind(1) {
                std::hint::black_box(vec![1_u8; 1 << 26]);
            }
            counting.end(begun).unwrap();
        }
        assert_eq!(counting.next(), Next::Nothing);
        let counted = counting.counters();
        assert!(counted["first_instructions"] >= 64.0, "{counted:?}"); // if pages have 2 MiB
        assert!(counted["second_instructions"] < 20.0, "{counted:?}");
        assert_eq!((counted["first"], counted["second"]), (2.0, 2.0));
    }

    #[test]
    fn what_calls_of_the_engine_take_is_known_by_call_and_their_readings_are_nobodys() {
        let group = Group::open([Event::PageFaults; 2]).unwrap();
        let mut counting = Counting::with(By::counters(group).unwrap(), job(2, 1), KINDS);
        let touch = || {
            std::hint::black_box(vec![1_u8; 1 << 26]);
        };
        for _ in 0..3 {
            counting.next();
            let begun = counting.begin().unwrap();
            let By::Hardware(by) = &counting.by else {
                panic!("by counters")
            };
            for call in [Call::Lookup, Call::Lookup, Call::Insert] {
                by.enter(call);
                if call == Call::Insert {
                    touch();
                }
                by.leave(call);
            }
            counting.end(begun).unwrap();
        }
        let counted = counting.counters();
        let times = ["calls.first.lookup", "calls.first.insert"].map(|name| counted[name]);
        assert_eq!((times, counted["first_cycles.lookup"]), ([4.0, 2.0], 0.0));
        let (insert, whole) = (
            counted["first_instructions.insert"],
            counted["first_instructions"],
        );
        assert!(insert >= 64.0 && whole >= insert, "{counted:?}");
        assert!(whole - insert < 20.0, "{counted:?}");
        assert!(!counted.contains_key("calls.second.insert"));
        assert!(!counted.contains_key("calls.first.commit"));
    }

    #[test]
    fn only_builds_that_keep_calls_apart_tell_of_them_and_only_while_something_counts() {
        let counted = |assembly: &str| {
            let group = Group::open([Event::PageFaults; 2]).unwrap();
            let By::Hardware(by) = By::counters(group).unwrap() else {
                panic!("by counters")
            };
            let work = || {
                struct Work;
                impl assembly::Visitor for Work {
                    type Calls = NoCalls;
                    type Output = ();
                    fn visit<A: Assembly<Calls = NoCalls>>(self, _: Spec) {
                        let engine = Engine::<A>::open(None, &Options::default()).unwrap();
                        let mut session = engine.session().unwrap();
                        session.begin().unwrap();
                        session.commit().unwrap();
                    }
                }
                assembly::with(assembly.parse().unwrap(), Work).unwrap();
            };
            work();
            let told = by.taken().unwrap();
            calls::meter(None);
            work();
            assert_eq!(by.taken().unwrap(), <[Spent; Call::ALL.len()]>::default());
            [Call::Begin, Call::Commit].map(|call| told[call as usize][0])
        };
        assert_eq!(counted("none+outlined"), [1, 1]);
        assert_eq!(counted("none"), [0, 0]);
    }
}
