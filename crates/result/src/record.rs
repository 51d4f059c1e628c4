//! What is recorded of operations, by client and interval, and summed up.
//!
//! A client notes what it did in a short list of its own and folds that list into the histograms that
//! all clients share, so that hundreds of clients need no histograms each, and the histograms stay out
//! of the way of the loop that is measured.

use hdrhistogram::Histogram;

use crate::failure::{ErrorCounts, ErrorKind};

/// Latencies are kept to 3 significant digits, from 1 ns to 1 h.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// A histogram of times in ns. It grows with the longest of them.
#[allow(clippy::expect_used, clippy::missing_panics_doc)] // a legal constant
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("the constant precision is legal")
}

/// Adds the values of `from`; histograms of the same precision always add up.
pub fn add(into: &mut Histogram<u64>, from: &Histogram<u64>) {
    let added = into.add(from);
    debug_assert!(added.is_ok());
}

#[inline]
fn note(histogram: &mut Histogram<u64>, ns: u64, count: u64) {
    let noted = histogram.record_n(ns.min(HIGHEST_NS), count);
    debug_assert!(noted.is_ok());
}

/// What became of an operation. Times in ns.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its end, since the part began.
    pub end_ns: u64,
    /// From the actual start to the end.
    pub service_ns: u64,
    /// From the intended to the actual start; 0 in a closed loop.
    pub lag_ns: u64,
    /// How many operations it stands for; they share its time.
    pub count: u32,
    /// The place of its kind among the workload's operations.
    pub index: u16,
    /// Why it failed.
    pub error: Option<ErrorKind>,
    /// Whether its connection had been lost and was made anew for it.
    pub reconnected: bool,
}

/// Operations of one kind.
#[derive(Clone, Debug)]
pub struct Series {
    /// Latencies in ns of those that succeeded: from the intended start.
    pub latency: Histogram<u64>,
    /// Their times from the actual start; only in an open loop, where the two differ.
    pub service: Option<Histogram<u64>>,
    /// Those of them that ended after the part's time was over. Clients that wait for one another's locks
    /// overrun it while the others have stopped, so these are in no rate; their latencies count.
    pub late: u64,
    /// Those that did not, by kind.
    pub errors: ErrorCounts,
    /// How long these took, from the intended start: what waited for a connection to be made anew waited.
    pub failed: Histogram<u64>,
    /// Connections that were made anew for one of them.
    pub reconnects: u64,
}

impl Series {
    /// Nothing yet.
    #[must_use]
    pub fn new(open: bool) -> Self {
        Self {
            latency: histogram(),
            service: open.then(histogram),
            late: 0,
            errors: ErrorCounts::default(),
            failed: histogram(),
            reconnects: 0,
        }
    }

    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        if let (Some(mine), Some(theirs)) = (&mut self.service, &other.service) {
            add(mine, theirs);
        }
        self.late += other.late;
        self.errors.add(&other.errors);
        add(&mut self.failed, &other.failed);
        self.reconnects += other.reconnects;
    }

    #[inline]
    fn note(&mut self, sample: &Sample, window_ns: u64) {
        let count = u64::from(sample.count);
        self.reconnects += u64::from(sample.reconnected);
        if let Some(kind) = sample.error {
            self.errors.count(kind);
            note(&mut self.failed, sample.service_ns + sample.lag_ns, 1);
            return;
        }
        let share_ns = if count == 1 {
            sample.service_ns
        } else {
            sample.service_ns / count.max(1)
        };
        note(&mut self.latency, share_ns + sample.lag_ns, count);
        if let Some(service) = &mut self.service {
            note(service, share_ns, count);
        }
        if sample.end_ns > window_ns {
            self.late += count;
        }
    }
}

/// All kinds of operations of a workload, each at its index.
#[derive(Clone, Debug)]
pub struct Recording {
    /// In the order of the workload's operations.
    pub series: Vec<Series>,
    /// From the intended to the actual start, of all operations; only in an open loop.
    pub lag: Option<Histogram<u64>>,
}

impl Recording {
    /// Nothing yet, of so many kinds of operations.
    #[must_use]
    pub fn new(kinds: usize, open: bool) -> Self {
        Self {
            series: (0..kinds).map(|_| Series::new(open)).collect(),
            lag: open.then(histogram),
        }
    }

    /// Nothing yet, of the same kinds of operations.
    #[must_use]
    pub fn empty(&self) -> Self {
        Self::new(self.series.len(), self.lag.is_some())
    }

    /// Notes what became of an operation, in a part that lasts `window_ns`.
    #[inline]
    pub fn note(&mut self, sample: &Sample, window_ns: u64) {
        self.series[usize::from(sample.index)].note(sample, window_ns);
        if let Some(lag) = &mut self.lag {
            note(lag, sample.lag_ns, 1);
        }
    }

    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.series.iter_mut().zip(&other.series) {
            mine.add(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.lag, &other.lag) {
            add(mine, theirs);
        }
    }

    /// All kinds of operations as one.
    #[must_use]
    pub fn total(&self) -> Series {
        let mut total = Series::new(self.lag.is_some());
        for series in &self.series {
            total.add(series);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Sample = Sample {
        end_ns: 100,
        service_ns: 100,
        lag_ns: 0,
        count: 1,
        index: 0,
        error: None,
        reconnected: false,
    };

    #[test]
    fn latencies_beyond_an_hour_count_as_an_hour_and_none_is_lost() {
        let mut recording = Recording::new(1, false);
        let long = Sample {
            service_ns: u64::MAX,
            ..OK
        };
        let none = Sample {
            service_ns: 0,
            count: 2,
            ..OK
        };
        recording.note(&long, u64::MAX);
        recording.note(&none, u64::MAX);
        let latency = &recording.series[0].latency;
        assert_eq!(latency.len(), 3);
        let most = latency.max() as f64 / HIGHEST_NS as f64;
        assert!((0.999..1.001).contains(&most), "{most}");
    }

    #[test]
    fn sums_keep_every_operation_and_error() {
        let (mut a, mut b) = (Recording::new(2, true), Recording::new(2, true));
        a.note(&OK, u64::MAX);
        let batch = Sample {
            index: 1,
            count: 3,
            ..OK
        };
        b.note(&batch, 99);
        let busy = Sample {
            index: 1,
            error: Some(ErrorKind::Busy),
            reconnected: true,
            ..OK
        };
        b.note(&busy, u64::MAX);
        a.add(&b);
        assert_eq!(a.series[0].latency.len(), 1);
        let total = a.total();
        assert_eq!(total.latency.len(), 4);
        assert_eq!((total.errors.total(), total.failed.len()), (1, 1));
        assert_eq!((total.late, total.reconnects), (3, 1));
        assert_eq!(a.lag.map(|lag| lag.len()), Some(3));
    }

    #[test]
    fn latency_is_from_the_intended_start_and_service_from_the_actual_one() {
        let mut recording = Recording::new(1, true);
        let lagging = Sample {
            lag_ns: 1_000_000,
            ..OK
        };
        recording.note(&lagging, u64::MAX);
        let failed = Sample {
            lag_ns: 2_000_000,
            error: Some(ErrorKind::Connect),
            ..OK
        };
        recording.note(&failed, u64::MAX);
        let series = &recording.series[0];
        let near = |histogram: &Histogram<u64>, expected: f64| {
            (histogram.max() as f64 / expected - 1.0).abs() < 1e-3
        };
        assert!(near(&series.latency, 1_000_100.0));
        assert!(near(series.service.as_ref().unwrap(), 100.0));
        assert!(near(&series.failed, 2_000_100.0));
        assert!(near(recording.lag.as_ref().unwrap(), 2_000_000.0));
    }

    /// The bar that results are held to: any quantile within 0.1 % of the exact one.
    #[test]
    fn quantiles_of_ten_million_values_are_within_a_thousandth_of_the_exact_ones() {
        let mut rng = dyno_load::Random::new(7, 0);
        let mut histogram = histogram();
        let (least, most) = (1_000_f64.ln(), (HIGHEST_NS as f64).ln());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut values: Vec<u64> = (0..10_000_000)
            .map(|_| (least + rng.next_f64() * (most - least)).exp() as u64)
            .collect();
        values
            .iter()
            .for_each(|&value| note(&mut histogram, value, 1));
        values.sort_unstable();
        for quantile in [
            0.0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0,
        ] {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let shown = histogram.value_at_quantile(quantile) as f64;
            assert!(
                (shown / exact - 1.0).abs() <= 1e-3,
                "{quantile}: {shown} instead of {exact}"
            );
        }
    }
}
