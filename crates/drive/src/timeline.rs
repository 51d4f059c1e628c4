//! Puts together what clients recorded, interval by interval, in order.

use std::collections::BTreeMap;

use crate::record::{Recording, Sample};

/// The intervals of one part of a run.
#[derive(Debug)]
pub struct Timeline {
    /// All intervals given out so far.
    pub total: Recording,
    empty: Recording,
    interval_ns: u64,
    /// How long the part lasts.
    window_ns: u64,
    pending: BTreeMap<u64, Recording>,
    /// For each client: nothing more will come from it for intervals below this.
    complete_below: Vec<u64>,
    next: u64,
}

impl Timeline {
    /// Of that many clients; `empty` is a recording of nothing.
    #[must_use]
    pub fn new(clients: usize, empty: Recording, interval_ns: u64, window_ns: u64) -> Self {
        Self {
            total: empty.clone(),
            empty,
            interval_ns,
            window_ns,
            pending: BTreeMap::new(),
            complete_below: vec![0; clients],
            next: 0,
        }
    }

    /// Begins anew, with a part that lasts `window_ns`.
    pub fn restart(&mut self, window_ns: u64) {
        let clients = self.complete_below.len();
        *self = Self::new(clients, self.empty.clone(), self.interval_ns, window_ns);
    }

    /// Takes what a client did, in the order in which it did it; the next that it does ends at `now_ns` or
    /// later.
    pub fn add(&mut self, client: u32, samples: &[Sample], now_ns: u64) {
        let mut rest = samples;
        while let Some(first) = rest.first() {
            let index = first.end_ns / self.interval_ns;
            let end_ns = (index + 1) * self.interval_ns;
            let within = rest.partition_point(|sample| sample.end_ns < end_ns);
            let recording = self
                .pending
                .entry(index)
                .or_insert_with(|| self.empty.clone());
            for sample in &rest[..within] {
                recording.note(sample, self.window_ns);
            }
            rest = &rest[within..];
        }
        self.complete_below[client as usize] = now_ns / self.interval_ns;
    }

    /// Nothing more will come from this client.
    pub fn end_client(&mut self, client: u32) {
        self.complete_below[client as usize] = u64::MAX;
    }

    /// Whether all clients have ended and nothing more will be given out.
    pub fn is_drained(&self) -> bool {
        self.pending.is_empty() && self.complete_below.iter().all(|&below| below == u64::MAX)
    }

    /// Gives the next interval that is complete: its number, and what was recorded, if anything.
    pub fn next_complete(&mut self) -> Option<(u64, Recording)> {
        let complete_below = self
            .complete_below
            .iter()
            .copied()
            .min()
            .unwrap_or(u64::MAX);
        // After the last interval in which anything was recorded there is none.
        let (last, _) = self.pending.last_key_value()?;
        if self.next >= complete_below || self.next > *last {
            return None;
        }
        let index = self.next;
        self.next += 1;
        let recording = self
            .pending
            .remove(&index)
            .unwrap_or_else(|| self.empty.clone());
        self.total.add(&recording);
        Some((index, recording))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32, end_ns: u64) -> Vec<Sample> {
        let sample = Sample {
            end_ns,
            service_ns: 1000,
            lag_ns: 0,
            count: 1,
            index: 0,
            error: None,
            reconnected: false,
        };
        vec![sample; count as usize]
    }

    fn timeline(clients: usize) -> Timeline {
        Timeline::new(clients, Recording::new(1, false), 100, u64::MAX)
    }

    fn drain(timeline: &mut Timeline) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| timeline.next_complete())
            .map(|(index, recording)| (index, recording.series[0].latency.len()))
            .collect()
    }

    #[test]
    fn an_interval_is_given_out_once_every_client_has_left_it() {
        let mut timeline = timeline(2);
        timeline.add(0, &of(5, 99), 100);
        assert_eq!(drain(&mut timeline), []);
        timeline.add(0, &of(6, 100), 200);
        timeline.add(1, &of(7, 50), 100);
        assert_eq!(drain(&mut timeline), [(0, 12)]);
        timeline.end_client(1);
        assert_eq!(drain(&mut timeline), [(1, 6)]);
        assert_eq!(timeline.total.series[0].latency.len(), 18);
    }

    #[test]
    fn intervals_in_which_nothing_ended_are_given_out_as_empty() {
        let mut timeline = timeline(1);
        let both = [of(1, 0), of(2, 399)].concat();
        timeline.add(0, &both, 399);
        timeline.end_client(0);
        assert_eq!(drain(&mut timeline), [(0, 1), (1, 0), (2, 0), (3, 2)]);
        assert!(timeline.is_drained());
    }

    #[test]
    fn a_client_that_is_still_within_an_interval_holds_it() {
        let mut timeline = timeline(1);
        timeline.add(0, &of(3, 150), 150);
        assert_eq!(drain(&mut timeline), [(0, 0)]);
        timeline.add(0, &of(1, 199), 200);
        assert_eq!(drain(&mut timeline), [(1, 4)]);
    }
}
