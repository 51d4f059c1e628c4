//! The laws by which keys are chosen, each among the keys that exist at the moment of the choice.

use crate::exponential::Exponential;
use crate::stream::Workload;
use crate::ycsb::YcsbZipf;
use crate::{KeySpace, Operation, Permutation, Random, Zipf};

/// By which law the keys of reads, updates and scans are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chooser {
    /// Popularity by Zipf's law with this exponent (above 0), the popular keys scattered over the key
    /// space by a bijection.
    Zipfian(f64),
    /// Popularity by Zipf's law with this exponent (above 0), in the order of the keys' numbers.
    ClusteredZipfian(f64),
    /// What YCSB 0.17.0 calls Zipfian, draw for draw, with its faults: its exponent is 0.99, and its
    /// law is that of 10^10 ranks hashed onto the keys.
    YcsbZipfian,
    /// Each key as likely as any other.
    Uniform,
    /// Popularity by Zipf's law with this exponent (above 0), the newest key first.
    Latest(f64),
    /// Two sets, each chosen from evenly. Where the one is empty, all operations go to the other;
    /// there YCSB divides by zero.
    Hotspot {
        /// The share of the existing keys that is hot, from the first key on; rounded down.
        keys: f64,
        /// The share of the operations that goes to hot keys.
        operations: f64,
    },
    /// The k-th newest key, from 0, with probability proportional to e^(-rate k). The rate is such
    /// that over endlessly many keys `percentile` per cent of the operations would go to the newest
    /// `keys` x records. Since no more keys exist than do, somewhat more goes to them: 98 % where
    /// YCSB's defaults say 95 %, in YCSB too.
    Exponential {
        /// Above 0 and below 100.
        percentile: f64,
        /// The share of the loaded data set, above 0.
        keys: f64,
    },
    /// One key after the other over all clients of a driver, and from the first again.
    Sequential,
}

impl Default for Chooser {
    /// YCSB's own default, but exact.
    fn default() -> Self {
        Self::Zipfian(0.99)
    }
}

impl Chooser {
    /// Its name in jobs and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zipfian(_) => "zipfian",
            Self::ClusteredZipfian(_) => "clustered-zipfian",
            Self::YcsbZipfian => "ycsb-zipfian",
            Self::Uniform => "uniform",
            Self::Latest(_) => "latest",
            Self::Hotspot { .. } => "hotspot",
            Self::Exponential { .. } => "exponential",
            Self::Sequential => "sequential",
        }
    }
}

/// A law made ready for one client.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    Zipfian(Zipf, Permutation),
    ClusteredZipfian(Zipf),
    YcsbZipfian(YcsbZipf),
    Uniform,
    Latest(Zipf),
    Hotspot { keys: f64, operations: f64 },
    Exponential(Exponential),
    Sequential,
}

impl Keys {
    pub(crate) fn new(workload: &Workload) -> Self {
        let records = workload.records;
        match workload.chooser {
            // The order depends on the seed alone: all clients share their favourites.
            Chooser::Zipfian(theta) => Self::Zipfian(
                Zipf::new(records, theta),
                Permutation::new(scattered_capacity(workload), workload.seed),
            ),
            Chooser::ClusteredZipfian(theta) => Self::ClusteredZipfian(Zipf::new(records, theta)),
            Chooser::YcsbZipfian => Self::YcsbZipfian(YcsbZipf::new(
                records,
                workload.operations.unwrap_or(0),
                workload.mix.share(Operation::Insert),
            )),
            Chooser::Uniform => Self::Uniform,
            Chooser::Latest(theta) => Self::Latest(Zipf::new(records, theta)),
            Chooser::Hotspot { keys, operations } => Self::Hotspot { keys, operations },
            Chooser::Exponential { percentile, keys } => {
                Self::Exponential(Exponential::new(percentile, keys * records as f64))
            }
            Chooser::Sequential => Self::Sequential,
        }
    }

    /// The number of a key that exists in `space`, which holds at least one.
    #[inline]
    pub(crate) fn choose(&mut self, space: &KeySpace, rng: &mut Random) -> u64 {
        let limit = space.limit();
        let place = match self {
            Self::Zipfian(zipf, permutation) => {
                zipf.resize(limit);
                permutation.apply(zipf.sample(rng) - 1, limit)
            }
            Self::ClusteredZipfian(zipf) => {
                zipf.resize(limit);
                zipf.sample(rng) - 1
            }
            Self::YcsbZipfian(zipf) => zipf.sample(limit, rng),
            Self::Uniform => rng.below(limit),
            Self::Latest(zipf) => {
                zipf.resize(limit);
                limit - zipf.sample(rng)
            }
            Self::Hotspot { keys, operations } => hotspot(*keys, *operations, limit, rng),
            Self::Exponential(law) => {
                law.resize(limit);
                limit - 1 - law.sample(rng)
            }
            Self::Sequential => space.step(),
        };
        space.number(place)
    }
}

/// Room for as many keys as are expected to appear, doubled, and for as many again as there are where
/// that is not known or more; beyond it popularity is dealt out anew. All room that stays empty costs
/// time: half the values walk once more where it is as large as the data set.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not below 0, and saturating
fn scattered_capacity(workload: &Workload) -> u64 {
    let inserts = workload.mix.share(Operation::Insert);
    let room = match workload.operations {
        _ if inserts <= 0.0 => 0,
        None => workload.records,
        Some(operations) => ((operations as f64 * inserts * 2.0) as u64).min(workload.records),
    };
    workload.records.saturating_add(room)
}

#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not below 0, and bounded
fn hotspot(keys: f64, operations: f64, limit: u64, rng: &mut Random) -> u64 {
    let hot = ((limit as f64 * keys) as u64).min(limit);
    let cold = limit - hot;
    if cold == 0 || (hot > 0 && rng.next_f64() < operations) {
        rng.below(hot)
    } else {
        hot + rng.below(cold)
    }
}
