//! What is recorded of operations, by client and interval, and summed up.

use hdrhistogram::Histogram;

use crate::failure::{ErrorCounts, ErrorKind};

/// Latencies are kept to 3 significant digits, from 1 ns to 1 h.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// Operations of one kind.
#[derive(Clone, Debug)]
pub struct Series {
    /// Latencies in nanoseconds of those that succeeded.
    pub latency: Histogram<u64>,
    /// Those of them that ended after the part's time was over. Clients that wait for one another's locks
    /// overrun it while the others have stopped, so these are in no rate; their latencies count.
    pub late: u64,
    /// Those that did not.
    pub errors: ErrorCounts,
}

impl Series {
    #[allow(clippy::expect_used)]
    fn new() -> Self {
        Self {
            latency: Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
                .expect("the constant bounds are legal"),
            late: 0,
            errors: ErrorCounts::default(),
        }
    }

    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Self) {
        // Histograms of the same bounds always add up.
        let added = self.latency.add(&other.latency);
        debug_assert!(added.is_ok());
        self.late += other.late;
        self.errors.add(&other.errors);
    }
}

/// All kinds of operations of a workload, each at its index.
#[derive(Clone, Debug)]
pub struct Recording {
    /// In the order of the workload's operations.
    pub series: Vec<Series>,
}

impl Recording {
    /// Nothing yet, of so many kinds of operations.
    #[must_use]
    pub fn new(kinds: usize) -> Self {
        Self {
            series: (0..kinds).map(|_| Series::new()).collect(),
        }
    }

    /// `count` operations succeeded, each within `latency_ns`.
    #[inline]
    pub fn success(&mut self, index: usize, latency_ns: u64, count: u64) {
        self.series[index]
            .latency
            .saturating_record_n(latency_ns, count);
    }

    /// `count` of the operations that succeeded ended too late.
    pub fn late(&mut self, index: usize, count: u64) {
        self.series[index].late += count;
    }

    /// An operation failed.
    pub fn error(&mut self, index: usize, kind: ErrorKind) {
        self.series[index].errors.count(kind);
    }

    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.series.iter_mut().zip(&other.series) {
            mine.add(theirs);
        }
    }

    /// All kinds of operations as one.
    #[must_use]
    pub fn total(&self) -> Series {
        let mut total = Series::new();
        for series in &self.series {
            total.add(series);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_beyond_an_hour_count_as_an_hour_and_none_is_lost() {
        let mut recording = Recording::new(1);
        recording.success(0, u64::MAX, 1);
        recording.success(0, 0, 2);
        let latency = &recording.series[0].latency;
        assert_eq!(latency.len(), 3);
        let most = latency.max() as f64 / HIGHEST_NS as f64;
        assert!((0.999..1.001).contains(&most), "{most}");
    }

    #[test]
    fn sums_keep_every_operation_and_error() {
        let (mut a, mut b) = (Recording::new(2), Recording::new(2));
        a.success(0, 100, 1);
        b.success(0, 1_000_000, 1);
        b.success(1, 5, 3);
        b.error(1, ErrorKind::Busy);
        a.add(&b);
        assert_eq!(a.series[0].latency.len(), 2);
        let total = a.total();
        assert_eq!(total.latency.len(), 5);
        assert_eq!(total.errors.total(), 1);
    }
}
