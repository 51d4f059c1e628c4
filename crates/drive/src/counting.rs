//! Counting what transactions take: each kind by itself, in the thread that carries them out, without what the driver
//! does between them.
//!
//! Under valgrind callgrind counts, from the first counted transaction on: what was loaded before is not slowed down.
//! It writes a file for each kind. Elsewhere the machine's own counters are read before and after each transaction.

use std::ffi::{CStr, CString};

use dyno_count::hardware::{Event, Group};
use dyno_count::valgrind;
use dyno_sql::{Error as OperationError, ErrorKind};

use crate::backend::Status;
use crate::job::CountJob;

/// What counts.
#[derive(Debug)]
enum By {
    Callgrind,
    Hardware(Group<2>),
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
            By::Hardware(group)
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
            By::Hardware(group) => group
                .read()
                .map(|counts| Begun(Some(counts)))
                .map_err(unread),
        }
    }

    /// It has ended.
    #[inline]
    pub fn end(&mut self, begun: Begun) -> Result<(), OperationError> {
        let Some(before) = begun.0 else {
            self.settled += 1;
            return Ok(());
        };
        let spent = match &self.by {
            By::Callgrind => {
                valgrind::toggle();
                [0; 2]
            }
            By::Hardware(group) => group.between(&before, &group.read().map_err(unread)?),
        };
        if let Some(kind) = self.kinds.get_mut(self.at) {
            kind.done += 1;
            for (sum, spent) in kind.sums.iter_mut().zip(spent) {
                *sum += spent;
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
        }
        status
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
        let mut counting = Counting::with(By::Hardware(group), job(2, 1), KINDS);
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
}
