//! When requests are due: the arrivals of an open loop, one for each request, over all clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use dyno_load::{Driver, Random};

use crate::client::{Cause, Until};
use crate::job::Arrivals;

/// The arrivals of one part of a run. Clients take them in turn; whoever takes one carries it out.
#[derive(Debug)]
pub struct Schedule {
    law: Law,
    taken: AtomicU64,
    /// Those of them that were taken when the part's time was over.
    late: AtomicU64,
}

#[derive(Debug)]
enum Law {
    Constant(Constant),
    Poisson(Mutex<Poisson>),
}

/// Equal distances, from an offset on.
#[derive(Debug)]
struct Constant {
    offset_ns: f64,
    period_ns: f64,
}

/// Exponential times between arrivals, by inversion.
#[derive(Clone, Debug)]
struct Poisson {
    mean_ns: f64,
    now_ns: f64,
    rng: Random,
}

/// Arrivals that were due and not taken are drawn to be counted, up to so many.
const MOST_DRAWN: u64 = 1 << 24;

/// Streams of random numbers below this are the clients'.
const STREAM: u64 = 1 << 40;

impl Schedule {
    /// `part` tells the warm-up from what comes after it. Drivers that share a constant rate take equal
    /// distances among themselves.
    #[must_use]
    pub fn new(rate_per_s: f64, arrivals: Arrivals, driver: Driver, seed: u64, part: u64) -> Self {
        let period_ns = 1e9 / rate_per_s;
        Self {
            law: match arrivals {
                Arrivals::Constant => Law::Constant(Constant {
                    offset_ns: period_ns * driver.number as f64 / driver.of as f64,
                    period_ns,
                }),
                Arrivals::Poisson => {
                    let stream = STREAM + part * 1000 + driver.number;
                    Law::Poisson(Mutex::new(Poisson {
                        mean_ns: period_ns,
                        now_ns: 0.0,
                        rng: Random::new(seed, stream),
                    }))
                }
            },
            taken: AtomicU64::new(0),
            late: AtomicU64::new(0),
        }
    }

    /// Takes the next arrival, as ns since the part began, unless the part has been over for `drain_ns` by
    /// `now_ns`, or has no more: then says why.
    #[inline]
    pub fn take(&self, until: Until, drain_ns: u64, now_ns: u64) -> Result<u64, Cause> {
        // Of what is due within the part nothing is left out because a store stood still over its end.
        let taken = self.take_until(until, now_ns.saturating_sub(drain_ns));
        if taken.is_ok() && now_ns >= until.window_ns() {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    #[inline]
    fn take_until(&self, until: Until, now_ns: u64) -> Result<u64, Cause> {
        match &self.law {
            Law::Constant(constant) => {
                let number = self.taken.fetch_add(1, Ordering::Relaxed);
                let due_ns = constant.due_ns(number);
                match until.reached(number, due_ns.max(now_ns)) {
                    None => Ok(due_ns),
                    Some(cause) => {
                        // Nobody carries it out.
                        self.taken.fetch_sub(1, Ordering::Relaxed);
                        Err(cause)
                    }
                }
            }
            Law::Poisson(poisson) => {
                let mut poisson = poisson.lock().unwrap_or_else(PoisonError::into_inner);
                let number = self.taken.load(Ordering::Relaxed);
                if let Some(cause) = until.reached(number, now_ns) {
                    return Err(cause);
                }
                let due_ns = poisson.next();
                match until.reached(number, due_ns) {
                    None => {
                        self.taken.store(number + 1, Ordering::Relaxed);
                        Ok(due_ns)
                    }
                    Some(cause) => Err(cause),
                }
            }
        }
    }

    /// How many were taken after the part's time was over.
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// How many were taken, and how many more were due within the part. For when all clients have ended.
    pub fn taken_and_left(&self, until: Until) -> (u64, u64) {
        let taken = self.taken.load(Ordering::Relaxed);
        let due = match &self.law {
            Law::Constant(constant) => constant.due(until),
            Law::Poisson(poisson) => {
                let poisson = poisson.lock().unwrap_or_else(PoisonError::into_inner);
                taken + poisson.clone().left(until, taken)
            }
        };
        (taken, due.saturating_sub(taken))
    }
}

impl Constant {
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn due_ns(&self, number: u64) -> u64 {
        (self.offset_ns + number as f64 * self.period_ns) as u64
    }

    /// How many are due within the part.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn due(&self, until: Until) -> u64 {
        let (most, end_ns) = until.bounds();
        let mut due = ((end_ns as f64 - self.offset_ns) / self.period_ns).max(0.0) as u64;
        // What rounding has put on the other side of the end.
        while due > 0 && self.due_ns(due - 1) >= end_ns {
            due -= 1;
        }
        while self.due_ns(due) < end_ns {
            due += 1;
        }
        due.min(most)
    }
}

impl Poisson {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next(&mut self) -> u64 {
        // u lies in [0, 1), so that the logarithm's argument is above 0.
        self.now_ns -= self.mean_ns * (-self.rng.next_f64()).ln_1p();
        self.now_ns as u64
    }

    /// How many more are due within the part after `taken`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn left(mut self, until: Until, taken: u64) -> u64 {
        let (_, end_ns) = until.bounds();
        for left in 0..MOST_DRAWN {
            if until.reached(taken + left, self.next()).is_some() {
                return left;
            }
        }
        // A rate out of all reach: what is expected is near enough.
        MOST_DRAWN + ((end_ns as f64 - self.now_ns) / self.mean_ns).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn taken(schedule: &Schedule, until: Until) -> Vec<u64> {
        std::iter::from_fn(|| schedule.take(until, 0, 0).ok()).collect()
    }

    #[test]
    fn constant_arrivals_lie_at_equal_distances_and_end_with_the_part() {
        let schedule = Schedule::new(4.0, Arrivals::Constant, Driver::ALONE, 1, 0);
        let until = Until::Either(u64::MAX, SECOND_NS);
        assert_eq!(schedule.taken_and_left(until), (0, 4));
        assert_eq!(
            taken(&schedule, until),
            [0, 250_000_000, 500_000_000, 750_000_000]
        );
        assert_eq!(schedule.take(until, 0, 0), Err(Cause::Duration));
        assert_eq!(schedule.taken_and_left(until), (4, 0));
    }

    #[test]
    fn drivers_that_share_a_rate_take_turns() {
        let of = |number| {
            let schedule = Schedule::new(2.0, Arrivals::Constant, Driver { number, of: 2 }, 1, 0);
            taken(&schedule, Until::Either(u64::MAX, SECOND_NS))
        };
        assert_eq!(
            (of(0), of(1)),
            (vec![0, 500_000_000], vec![250_000_000, 750_000_000])
        );
    }

    #[test]
    fn what_is_due_when_the_time_is_over_is_left_and_counted() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let until = Until::Either(u64::MAX, SECOND_NS);
            let all =
                taken(&Schedule::new(1000.0, arrivals, Driver::ALONE, 1, 0), until).len() as u64;
            let schedule = Schedule::new(1000.0, arrivals, Driver::ALONE, 1, 0);
            for _ in 0..10 {
                schedule.take(until, 0, 0).unwrap();
            }
            assert_eq!(schedule.take(until, 0, SECOND_NS), Err(Cause::Duration));
            assert_eq!(schedule.taken_and_left(until), (10, all - 10));
        }
    }

    #[test]
    fn what_was_due_in_time_is_taken_for_a_while_longer_and_nothing_else_is() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let until = Until::Either(u64::MAX, SECOND_NS);
            let in_time = taken(&Schedule::new(1000.0, arrivals, Driver::ALONE, 1, 0), until);
            let schedule = Schedule::new(1000.0, arrivals, Driver::ALONE, 1, 0);
            let late: Vec<u64> =
                std::iter::from_fn(|| schedule.take(until, SECOND_NS, 2 * SECOND_NS - 1).ok())
                    .collect();
            assert_eq!(late, in_time);
            assert_eq!(schedule.taken_and_left(until), (in_time.len() as u64, 0));
            let schedule = Schedule::new(1000.0, arrivals, Driver::ALONE, 1, 0);
            assert_eq!(
                schedule.take(until, SECOND_NS, 2 * SECOND_NS),
                Err(Cause::Duration)
            );
        }
    }

    #[test]
    fn a_number_of_operations_ends_the_arrivals_too() {
        let schedule = Schedule::new(1e6, Arrivals::Poisson, Driver::ALONE, 1, 0);
        let until = Until::Either(5, u64::MAX);
        assert_eq!(taken(&schedule, until).len(), 5);
        assert_eq!(schedule.take(until, 0, 0), Err(Cause::Operations));
        assert_eq!(schedule.taken_and_left(until), (5, 0));
    }

    #[test]
    fn a_rate_out_of_reach_is_counted_without_drawing_all_of_it() {
        let until = Until::Either(u64::MAX, 10 * SECOND_NS);
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let schedule = Schedule::new(1e9, arrivals, Driver::ALONE, 1, 0);
            let (_, left) = schedule.taken_and_left(until);
            assert!((left as f64 / 1e10 - 1.0).abs() < 1e-3, "{left}");
        }
    }

    /// Times between Poisson arrivals: mean and standard deviation are the same, and a share of 1 - 1/e is
    /// below the mean.
    #[test]
    fn poisson_arrivals_have_exponential_distances() {
        let schedule = Schedule::new(1e6, Arrivals::Poisson, Driver::ALONE, 42, 0);
        let times = taken(&schedule, Until::Either(200_000, u64::MAX));
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let sd = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count).sqrt();
        let below = gaps.iter().filter(|&&gap| gap < 1000.0).count() as f64 / count;
        // Four standard errors each.
        assert!((mean / 1000.0 - 1.0).abs() < 0.009, "{mean}");
        assert!((sd / 1000.0 - 1.0).abs() < 0.013, "{sd}");
        assert!((below - 0.632).abs() < 0.0044, "{below}");
    }

    #[test]
    fn the_warm_up_has_other_arrivals_than_what_comes_after_it() {
        let first = |part| {
            Schedule::new(10.0, Arrivals::Poisson, Driver::ALONE, 1, part).take(
                Until::Either(9, u64::MAX),
                0,
                0,
            )
        };
        assert_ne!(first(0), first(1));
    }
}
