//! Puts together what clients recorded, interval by interval, in order.

use std::collections::BTreeMap;

use crate::record::Recording;

/// The intervals of one part of a run.
#[derive(Debug)]
pub struct Timeline {
    /// All intervals given out so far.
    pub total: Recording,
    pending: BTreeMap<u64, Recording>,
    /// For each client: nothing more will come from it for intervals below this.
    complete_below: Vec<u64>,
    next: u64,
}

impl Timeline {
    /// Of that many clients and kinds of operations.
    #[must_use]
    pub fn new(clients: usize, kinds: usize) -> Self {
        Self {
            total: Recording::new(kinds),
            pending: BTreeMap::new(),
            complete_below: vec![0; clients],
            next: 0,
        }
    }

    /// Takes what a client recorded in the interval `index`.
    pub fn add(&mut self, client: u32, index: u64, complete_below: u64, recording: Recording) {
        match self.pending.get_mut(&index) {
            Some(pending) => pending.add(&recording),
            None => {
                self.pending.insert(index, recording);
            }
        }
        self.complete_below[client as usize] = complete_below;
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
            .unwrap_or_else(|| Recording::new(self.total.series.len()));
        self.total.add(&recording);
        Some((index, recording))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> Recording {
        let mut recording = Recording::new(1);
        if count > 0 {
            recording.success(0, 1000, count);
        }
        recording
    }

    fn drain(timeline: &mut Timeline) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| timeline.next_complete())
            .map(|(index, recording)| (index, recording.series[0].latency.len()))
            .collect()
    }

    #[test]
    fn an_interval_is_given_out_once_every_client_has_left_it() {
        let mut timeline = Timeline::new(2, 1);
        timeline.add(0, 0, 1, of(5));
        assert_eq!(drain(&mut timeline), []);
        timeline.add(0, 1, 2, of(6));
        timeline.add(1, 0, 1, of(7));
        assert_eq!(drain(&mut timeline), [(0, 12)]);
        timeline.end_client(1);
        assert_eq!(drain(&mut timeline), [(1, 6)]);
        assert_eq!(timeline.total.series[0].latency.len(), 18);
    }

    #[test]
    fn intervals_in_which_nothing_ended_are_given_out_as_empty() {
        let mut timeline = Timeline::new(1, 1);
        timeline.add(0, 0, 3, of(1));
        timeline.add(0, 3, u64::MAX, of(2));
        assert_eq!(drain(&mut timeline), [(0, 1), (1, 0), (2, 0), (3, 2)]);
    }
}
