//! Exponentially falling popularity, over the keys that exist.

use crate::Random;
use crate::zipf::{expm1_over, ln_1p_over};

/// Chooses places 0 to n - 1, place k with probability proportional to e^(-rate k).
///
/// That is what YCSB's `ExponentialGenerator` comes to where draws out of range are repeated; here the
/// law is cut off before the draw, so that one draw is enough however flat the law is.
#[derive(Clone, Debug)]
pub(crate) struct Exponential {
    rate: f64,
    n: u64,
    /// The rate times n, and one less than its exponential: how far the law falls.
    fall: f64,
    depth: f64,
}

/// A steeper law chooses nothing but place 0, in 53 bits; it would only overflow.
const STEEPEST: f64 = 100.0;

impl Exponential {
    /// The law that, were it not cut off, would give `percentile` per cent of the draws to the first
    /// `range` places.
    pub(crate) fn new(percentile: f64, range: f64) -> Self {
        let rate = -(-percentile / 100.0).ln_1p() / range;
        Self {
            // Written such that NaN, of nothing over nothing, becomes a number too.
            rate: if rate < STEEPEST { rate } else { STEEPEST },
            n: 0,
            fall: 0.0,
            depth: 0.0,
        }
    }

    /// Makes the number of places `n`, at least 1; cheap where it is so already.
    #[inline]
    pub(crate) fn resize(&mut self, n: u64) {
        if n != self.n {
            self.n = n;
            self.fall = self.rate * n as f64;
            self.depth = (-self.fall).exp_m1();
        }
    }

    /// A place in `[0, n)`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not below 0
    pub(crate) fn sample(&self, rng: &mut Random) -> u64 {
        // -ln(1 + u (e^-fall - 1)) / fall, the inverse of the law cut off at 1, as a share of n; such
        // that it goes over into u itself where the law is flat.
        let u = rng.next_f64();
        let share = ln_1p_over(u * self.depth) * u * expm1_over(-self.fall);
        ((share * self.n as f64) as u64).min(self.n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentage_of_the_draws_goes_to_the_range() {
        let mut law = Exponential::new(95.0, 1000.0);
        law.resize(1_000_000);
        let mut rng = Random::new(1, 0);
        let within = (0..100_000).filter(|_| law.sample(&mut rng) < 1000).count();
        // Four standard deviations.
        assert!(within.abs_diff(95_000) < 276, "{within}");
    }

    #[test]
    fn a_law_of_hardly_any_fall_is_even() {
        let mut law = Exponential::new(1e-300, 1.0);
        law.resize(10);
        let mut rng = Random::new(1, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[usize::try_from(law.sample(&mut rng)).unwrap()] += 1;
        }
        // Four standard deviations.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 380),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn every_place_lies_within_its_bounds(
            percentile in prop_oneof![Just(5e-324), 1e-9f64..100.0, Just(100.0f64.next_down())],
            range in prop_oneof![Just(5e-324), 1e-9f64..1e12], n in 1u64..1_000_000_000_000, seed: u64,
        ) {
            let mut law = Exponential::new(percentile, range);
            law.resize(n);
            let mut rng = Random::new(seed, 0);
            for _ in 0..100 {
                prop_assert!(law.sample(&mut rng) < n);
            }
        }
    }
}
