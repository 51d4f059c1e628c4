//! In which order rows are sent: as they were made, or some of them later; some of them twice.
//!
//! A row that is delayed comes behind every row that is older than it by less than the delay, by the rows' own times: as
//! from a device that was out of reach for that long. A row that is sent twice comes again right behind itself: as from a
//! sender who did not hear that it had arrived.

use std::collections::VecDeque;

use dyno_load::Random;
use serde::Serialize;

use crate::line::time_of;

/// Streams of the seed: who is delayed does not depend on who comes twice.
const DELAYED: u64 = 1 << 42;
const TWICE: u64 = (1 << 42) + 1;

/// Rows that are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delayed {
    /// Of all rows, above 0 and at most 1.
    pub share: f64,
    /// For how long, by the rows' own times, in ns.
    pub by_ns: i64,
}

/// The order that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Order {
    /// Rows that come later than they were made; none where all come in their order.
    pub delayed: Option<Delayed>,
    /// Of all rows, those that come twice.
    pub duplicates: f64,
}

/// Puts rows into the order that is asked for.
#[derive(Debug)]
pub struct Shuffled {
    order: Order,
    delays: Random,
    twice: Random,
    /// Lines that wait, with the time at which each comes. They come in the order in which they went: all wait equally long.
    waiting: VecDeque<(i64, Vec<u8>)>,
    /// How many were delayed.
    pub delayed: u64,
    /// How many were sent a second time.
    pub duplicated: u64,
}

impl Shuffled {
    /// Nothing yet.
    #[must_use]
    pub fn new(order: Order, seed: u64) -> Self {
        Self {
            order,
            delays: Random::new(seed, DELAYED),
            twice: Random::new(seed, TWICE),
            waiting: VecDeque::new(),
            delayed: 0,
            duplicated: 0,
        }
    }

    /// Takes the next line as it was made, without its end, and gives `each` those that are to be sent now, with how many
    /// times each is.
    pub fn put<E>(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(delayed) = self.order.delayed
            && let Some(time) = time_of(line)
        {
            while self.waiting.front().is_some_and(|(due, _)| *due <= time)
                && let Some((_, late)) = self.waiting.pop_front()
            {
                self.send(&late, each)?;
            }
            if self.delays.next_f64() < delayed.share {
                self.delayed += 1;
                let due = time.saturating_add(delayed.by_ns);
                self.waiting.push_back((due, line.to_vec()));
                return Ok(());
            }
        }
        self.send(line, each)
    }

    /// Gives those that still wait: nothing comes after them.
    pub fn finish<E>(
        &mut self,
        each: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((_, late)) = self.waiting.pop_front() {
            self.send(&late, each)?;
        }
        Ok(())
    }

    fn send<E>(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let again = self.order.duplicates > 0.0 && self.twice.next_f64() < self.order.duplicates;
        self.duplicated += u64::from(again);
        each(line, 1 + u64::from(again))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// `hosts` rows a tick, ticks of 10 s.
    fn lines(ticks: i64, hosts: i64) -> Vec<Vec<u8>> {
        (0..ticks)
            .flat_map(|tick| {
                (0..hosts).map(move |host| {
                    format!("cpu,hostname=h{host} x=1i {}", tick * 10_000_000_000).into_bytes()
                })
            })
            .collect()
    }

    fn sent(order: Order, seed: u64, lines: &[Vec<u8>]) -> (Vec<Vec<u8>>, Shuffled) {
        let mut shuffled = Shuffled::new(order, seed);
        let mut sent = Vec::new();
        let mut each = |line: &[u8], times| {
            sent.extend((0..times).map(|_| line.to_vec()));
            Ok::<(), Infallible>(())
        };
        for line in lines {
            shuffled.put(line, &mut each).unwrap();
        }
        shuffled.finish(&mut each).unwrap();
        (sent, shuffled)
    }

    fn delayed(share: f64, seconds: i64) -> Order {
        Order {
            delayed: Some(Delayed {
                share,
                by_ns: seconds * 1_000_000_000,
            }),
            duplicates: 0.0,
        }
    }

    #[test]
    fn in_order_rows_come_as_they_are() {
        let rows = lines(20, 3);
        assert_eq!(sent(Order::default(), 1, &rows).0, rows);
    }

    #[test]
    fn the_share_that_is_asked_for_is_delayed_and_no_row_is_lost() {
        let rows = lines(5000, 4);
        let (out, shuffled) = sent(delayed(0.1, 60), 7, &rows);
        // Four standard errors of a share of 20,000.
        let share = shuffled.delayed as f64 / rows.len() as f64;
        assert!((share - 0.1).abs() < 0.0085, "{share}");
        let (mut a, mut b) = (rows.clone(), out.clone());
        a.sort();
        b.sort();
        assert_eq!(a, b);
        // Those that come behind a newer one are those that were delayed: only the last may wait for nobody.
        let mut newest = i64::MIN;
        let behind = out
            .iter()
            .filter(|line| {
                let time = time_of(line).unwrap();
                newest = newest.max(time);
                time < newest
            })
            .count() as u64;
        assert!(
            shuffled.delayed - behind <= 6 * 4,
            "{behind} {}",
            shuffled.delayed
        );
    }

    #[test]
    fn a_delayed_row_is_as_late_as_was_asked() {
        let rows = lines(200, 1);
        let (out, _) = sent(delayed(0.2, 60), 3, &rows);
        let mut newest = i64::MIN;
        let mut late = Vec::new();
        for line in &out {
            let time = time_of(line).unwrap();
            newest = newest.max(time);
            late.push((newest - time) / 1_000_000_000);
        }
        late.retain(|&seconds| seconds > 0);
        assert!(late.len() > 20);
        // It comes once a row 60 s newer is there to be sent: the newest that was sent is the one before that, or an
        // earlier one where those were delayed too.
        assert!(late.iter().all(|&seconds| seconds <= 50), "{late:?}");
        let most = late.iter().filter(|&&seconds| seconds == 50).count();
        assert!(most * 2 > late.len(), "{late:?}");
    }

    #[test]
    fn the_same_seed_delays_the_same_rows_and_another_seed_others() {
        let rows = lines(300, 2);
        let order = delayed(0.3, 100);
        assert_eq!(sent(order, 5, &rows).0, sent(order, 5, &rows).0);
        assert_ne!(sent(order, 5, &rows).0, sent(order, 6, &rows).0);
    }

    proptest! {
        #[test]
        fn each_row_comes_once_or_twice_and_the_counts_say_how_many(
            ticks in 1..60i64, hosts in 1..5i64, share in 0.0..1.0f64, twice in 0.0..1.0f64, seconds in 1..500i64, seed in any::<u64>(),
        ) {
            let rows = lines(ticks, hosts);
            let order = Order { delayed: Some(Delayed { share, by_ns: seconds * 1_000_000_000 }), duplicates: twice };
            let (out, shuffled) = sent(order, seed, &rows);
            prop_assert_eq!(out.len() as u64, rows.len() as u64 + shuffled.duplicated);
            let mut distinct = out.clone();
            distinct.sort();
            distinct.dedup();
            let mut all = rows.clone();
            all.sort();
            prop_assert_eq!(distinct, all);
            // A second one stands right behind the first.
            let again = out.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
            prop_assert_eq!(again, shuffled.duplicated);
        }
    }
}
