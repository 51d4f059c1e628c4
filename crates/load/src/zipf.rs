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

// That ranks follow the law is shown in `tests/laws.rs`, where all laws are.
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
