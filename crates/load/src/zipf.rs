//! Exact Zipfian ranks in constant time, for any exponent above 0.
//!
//! Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", ACM TOMACS 6(3), 1996, pp. 169-184. Unlike the method of
//! Gray et al. 1994 that YCSB uses it needs no sum over all ranks, holds for exponents of 1 and
//! more, and follows a growing key space at the cost of one integral.

use crate::Random;

/// Closer to 1 than this, an exponent would lose its digits in a difference from 1.
const NEAR_ONE: f64 = 1e-4;

/// Chooses ranks 1 to n, rank k with probability proportional to k^-theta.
#[derive(Clone, Debug)]
pub struct Zipf {
    theta: f64,
    /// 1 - theta, and one over it.
    power: f64,
    root: f64,
    n: u64,
    /// H at 3/2, less the whole weight of rank 1: the upper end of the inverted range.
    h_first: f64,
    /// H at n + 1/2: its lower end.
    h_last: f64,
    /// Within this distance below its rank a candidate is accepted without computing a power.
    squeeze: f64,
}

impl Zipf {
    /// Ranks 1 to `n` (at least 1) with exponent `theta` (above 0).
    #[must_use]
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self {
            theta,
            power: 1.0 - theta,
            root: 1.0 / (1.0 - theta),
            n: 0,
            h_first: 0.0,
            h_last: 0.0,
            squeeze: 0.0,
        };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf.resize(n.max(1));
        zipf
    }

    /// Makes the number of ranks `n`; cheap where it is so already.
    #[inline]
    pub fn resize(&mut self, n: u64) {
        if n != self.n {
            self.n = n;
            self.h_last = self.integral(n as f64 + 0.5);
        }
    }

    /// A rank in `[1, n]`.
    #[inline]
    pub fn sample(&self, rng: &mut Random) -> u64 {
        loop {
            let u = self.h_last + rng.next_f64() * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let rank = round_into(x, self.n);
            let k = rank as f64;
            if k - x <= self.squeeze || self.accepts(k, u) {
                return rank;
            }
        }
    }

    /// Whether `u` lies within the weight of rank k, which takes up the right of its part of the area.
    /// About one candidate in 70 gets here at an exponent of 0.99.
    #[cold]
    fn accepts(&self, k: f64, u: f64) -> bool {
        u >= self.integral(k + 0.5) - self.weight(k)
    }

    /// h(x) = x^-theta.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// H(x), the integral of h from 1 to x: (x^(1-theta) - 1) / (1 - theta), or ln x for theta 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = x.ln();
        expm1_over(self.power * log_x) * log_x
    }

    /// The x for which H(x) is `area`.
    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        // Below -1 lies no area; rounding may still lead there.
        let t = (area * self.power).max(-1.0);
        if self.power.abs() > NEAR_ONE {
            (t.ln_1p() * self.root).exp()
        } else {
            (ln_1p_over(t) * area).exp()
        }
    }
}

/// The rank nearest to x. Rounding may leave `[1, n]` by a hair at either end.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn round_into(x: f64, n: u64) -> u64 {
    // A float-to-integer cast saturates, infinity and all. To a signed number it is cheaper, and
    // from 2^53 on floats have no neighbours any more.
    ((x + 0.5) as i64 as u64).clamp(1, n)
}

/// (e^x - 1) / x, continued through 0, where the quotient itself would be 0/0.
pub(crate) fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x, continued through 0.
pub(crate) fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The upper `z` point of chi-squared with `freedom` degrees, after E. B. Wilson and
    /// M. M. Hilferty 1931; within 0.1 % of the tables from 30 degrees on.
    fn chi2_critical(freedom: f64, z: f64) -> f64 {
        let spread = 2.0 / (9.0 * freedom);
        freedom * (1.0 - spread + z * spread.sqrt()).powi(3)
    }

    /// Chi-squared of 10^6 ranks against theory, with ranks pooled until each class expects 20.
    /// Gives the statistic and its critical value at 0.01 %.
    fn chi2_of_ranks(n: u64, theta: f64, mut draw: impl FnMut() -> u64) -> (f64, f64) {
        const DRAWS: u32 = 1_000_000;
        let mut counts = vec![0u32; usize::try_from(n).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(draw() - 1).unwrap()] += 1;
        }
        let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
        let whole: f64 = weights.iter().sum();
        let (mut statistic, mut classes) = (0.0, 0.0);
        let (mut expected, mut seen) = (0.0, 0.0);
        for (weight, count) in weights.iter().zip(&counts) {
            expected += weight / whole * f64::from(DRAWS);
            seen += f64::from(*count);
            if expected >= 20.0 {
                statistic += (seen - expected).powi(2) / expected;
                classes += 1.0;
                (expected, seen) = (0.0, 0.0);
            }
        }
        (statistic, chi2_critical(classes - 1.0, 3.719))
    }

    #[test]
    fn the_critical_value_is_that_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4: 100 degrees, 0.1 %: 149.449.
        assert!((chi2_critical(100.0, 3.0902) - 149.449).abs() < 0.15);
    }

    #[test]
    fn ranks_follow_the_law_for_exponents_below_at_and_above_one() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            for n in [100, 10_000] {
                let zipf = Zipf::new(n, theta);
                let mut rng = Random::new(42, n);
                let (statistic, critical) = chi2_of_ranks(n, theta, || zipf.sample(&mut rng));
                assert!(
                    statistic < critical,
                    "theta {theta}, n {n}: {statistic} >= {critical}"
                );
            }
        }
    }

    #[test]
    fn the_test_of_the_law_sees_an_exponent_off_by_a_hundredth() {
        let zipf = Zipf::new(10_000, 0.98);
        let mut rng = Random::new(42, 0);
        let (statistic, critical) = chi2_of_ranks(10_000, 0.99, || zipf.sample(&mut rng));
        assert!(statistic > critical, "{statistic} < {critical}");
    }

    #[test]
    fn a_resized_law_is_that_of_its_new_size() {
        let mut zipf = Zipf::new(5, 0.99);
        zipf.resize(1000);
        let mut rng = Random::new(7, 0);
        let (statistic, critical) = chi2_of_ranks(1000, 0.99, || zipf.sample(&mut rng));
        assert!(statistic < critical, "{statistic} >= {critical}");
    }

    proptest! {
        #[test]
        fn every_rank_lies_within_its_bounds(
            n in prop_oneof![1u64..50, 1u64..1_000_000_000_000], theta in 1e-9f64..10.0, seed: u64,
        ) {
            let zipf = Zipf::new(n, theta);
            let mut rng = Random::new(seed, 0);
            for _ in 0..200 {
                let rank = zipf.sample(&mut rng);
                prop_assert!((1..=n).contains(&rank));
            }
        }
    }
}
