//! Random numbers: xoshiro256++ (Blackman and Vigna 2021), seeded by `SplitMix64`.
//!
//! Written here rather than taken from a crate because the sequence is part of the meaning of a
//! job's seed: it must not change with a dependency.

/// The finaliser of `SplitMix64`: a bijection on 64-bit numbers that scatters neighbours.
#[must_use]
pub const fn mix64(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `SplitMix64`'s increment: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of its own for each client, and for each row of a data set.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator number `stream` of `seed`: different streams are independent of each other.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        // Both go through the mixer, so neighbouring seeds and streams start far apart; four
        // outputs of a bijection on distinct inputs cannot all be zero.
        let mut state = [0; 4];
        let mut counter = mix64(seed.wrapping_add(GOLDEN)) ^ mix64(stream.wrapping_mul(GOLDEN));
        let mut i = 0;
        while i < 4 {
            counter = counter.wrapping_add(GOLDEN);
            state[i] = mix64(counter);
            i += 1;
        }
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub const fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number in `[0, bound)`, each as likely as any other; `bound` is at least 1.
    ///
    /// Lemire 2019, "Fast random integer generation in an interval".
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the halves of a product of 128 bits
    pub const fn below(&mut self, bound: u64) -> u64 {
        let mut product = self.next_u64() as u128 * bound as u128;
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = self.next_u64() as u128 * bound as u128;
            }
        }
        (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first outputs from the state 1, 2, 3, 4.
    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        let mut rng = Random {
            state: [1, 2, 3, 4],
        };
        let first: Vec<u64> = (0..6).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205,
                9_973_669_472_204_895_162,
            ]
        );
    }

    #[test]
    fn bounded_numbers_are_evenly_spread() {
        let mut rng = Random::new(1, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[usize::try_from(rng.below(7)).unwrap()] += 1;
        }
        let chi2: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        // The upper 0.1 % point of chi-squared with 6 degrees of freedom.
        assert!(chi2 < 22.458, "{chi2} {counts:?}");
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| Random::new(seed, stream).next_u64();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 2), first(2, 1));
    }
}
