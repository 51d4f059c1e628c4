//! Events at a rate: each has the time at which it is due, and whoever takes one waits until then.
//!
//! Nothing runs while nobody asks. The mean is exact, since the time of each event follows from the one before
//! it and not from when somebody woke up. What nobody took is kept for five seconds' worth, as filebench keeps it.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_load::Random;
use parking_lot::Mutex;

use crate::number::Number;

/// Times are counted in parts of a nanosecond, so that a period is exact to a millionth even at a million a second.
const PARTS: u64 = 1024;
/// Events that nobody took are kept for so long.
const KEPT_NS: u64 = 5_000_000_000;
/// A rate that varies is read anew after so many events.
const PER_READING: u64 = 10;

/// Where events come from.
#[derive(Debug)]
pub struct Source {
    /// When the next is due, in parts of a nanosecond since the start.
    next: AtomicU64,
    rate: Rate,
}

#[derive(Debug)]
enum Rate {
    /// The time between two events, in parts of a nanosecond.
    Constant(f64),
    Varying(Mutex<Varying>),
}

#[derive(Debug)]
struct Varying {
    number: Number,
    random: Random,
    period: f64,
    left: u64,
}

impl Source {
    /// None where the rate is 0: then there is no limit.
    pub fn new(rate: Number, mut random: Random) -> Option<Self> {
        let first = rate.sample(&mut random);
        let rate = match rate {
            Number::Fixed(_) if first <= 0.0 => return None,
            Number::Fixed(_) => Rate::Constant(period(first)),
            Number::Random(_) => Rate::Varying(Mutex::new(Varying {
                number: rate,
                random,
                period: period(first),
                left: PER_READING,
            })),
        };
        Some(Self {
            next: AtomicU64::new(0),
            rate,
        })
    }

    /// Takes `events`, of which it gives the time at which the last is due, in ns since the start.
    pub fn take(&self, events: f64, now_ns: u64) -> u64 {
        match &self.rate {
            Rate::Constant(period) => self.reserve(events * period, now_ns),
            Rate::Varying(varying) => {
                let mut varying = varying.lock();
                let mut left = events;
                let mut length = 0.0;
                while left > 0.0 {
                    if varying.left == 0 {
                        let Varying { number, random, .. } = &mut *varying;
                        let rate = number.sample(random);
                        varying.period = period(rate);
                        varying.left = PER_READING;
                    }
                    let now = left.min(1.0);
                    length += now * varying.period;
                    left -= now;
                    varying.left -= 1;
                }
                self.reserve(length, now_ns)
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // far below 2^64
    fn reserve(&self, length: f64, now_ns: u64) -> u64 {
        let length = length as u64;
        let oldest = now_ns.saturating_sub(KEPT_NS) * PARTS;
        let mut due = 0;
        let reserved = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                due = next.max(oldest).saturating_add(length);
                Some(due)
            });
        debug_assert!(reserved.is_ok());
        due / PARTS
    }
}

/// The time between two events, in parts of a nanosecond.
fn period(rate: f64) -> f64 {
    if rate > 0.0 {
        1e9 * PARTS as f64 / rate
    } else {
        1e18
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(rate: u64) -> Source {
        Source::new(Number::Fixed(rate as f64), Random::new(1, 0)).unwrap()
    }

    #[test]
    fn as_many_events_are_due_within_a_time_as_the_rate_says() {
        for rate in [1, 7, 96, 1000, 1_000_003] {
            let source = source(rate);
            let mut count = 0;
            while source.take(1.0, 0) <= 2_000_000_000 {
                count += 1;
            }
            assert!(
                (2 * rate - 1..=2 * rate + 1).contains(&count),
                "{rate}: {count}"
            );
        }
    }

    #[test]
    fn what_nobody_took_is_kept_for_five_seconds_and_no_longer() {
        let source = source(100);
        let now_ns = 60_000_000_000;
        let at_once = (0..1000)
            .filter(|_| source.take(1.0, now_ns) <= now_ns)
            .count();
        assert_eq!(at_once, 500);
    }

    #[test]
    fn parts_of_events_add_up() {
        let source = source(1);
        (0..9).for_each(|_| {
            source.take(0.25, 0);
        });
        assert_eq!(source.take(0.75, 0), 3_000_000_000);
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert!(Source::new(Number::Fixed(0.0), Random::new(1, 0)).is_none());
    }
}
