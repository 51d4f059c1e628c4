//! Scatters the popular ranks over a key space: a keyed bijection on `[0, n)` for any n.
//!
//! A Feistel network permutes the next power of two above n; values outside `[0, n)` are sent
//! through it again until they fall inside (cycle walking: Black and Rogaway 2002, "Ciphers with
//! arbitrary finite domains"). Hashing instead, as YCSB does, lets keys collide: some keys get two
//! ranks and others none.

use crate::mix64;

const ROUNDS: usize = 4;

/// A bijection on `[0, n)`, chosen by a seed, where n may grow.
///
/// When n grows by one within the capacity, one rank moves to the new key and the new rank takes its
/// old place: all others stay where they are. Beyond the capacity the whole order is drawn anew.
#[derive(Clone, Debug)]
pub struct Permutation {
    keys: [u64; ROUNDS],
    /// Width of the Feistel domain in bits, in `[2, 64]`; its halves differ by at most one bit.
    bits: u32,
}

impl Permutation {
    /// A bijection for up to `capacity` values.
    #[must_use]
    pub fn new(capacity: u64, seed: u64) -> Self {
        let mut keys = [0; ROUNDS];
        let mut state = seed;
        for key in &mut keys {
            state = mix64(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            *key = state;
        }
        Self {
            keys,
            bits: width(capacity),
        }
    }

    /// Where `index` goes; both lie in `[0, n)`, and `index` is below `n`.
    #[inline]
    #[must_use]
    pub fn apply(&self, index: u64, n: u64) -> u64 {
        let bits = self.bits.max(width(n));
        let mut value = index;
        loop {
            value = self.feistel(value, bits);
            if value < n {
                return value;
            }
        }
    }

    #[inline]
    fn feistel(&self, value: u64, bits: u32) -> u64 {
        // An unbalanced network swaps halves of different widths, so that every width works.
        let (mut left_bits, mut right_bits) = (bits / 2, bits - bits / 2);
        let (mut left, mut right) = (value >> right_bits, value & ones(right_bits));
        for key in self.keys {
            let mixed = (left ^ mix64(right ^ key)) & ones(left_bits);
            (left, right) = (right, mixed);
            (left_bits, right_bits) = (right_bits, left_bits);
        }
        (left << right_bits) | right
    }
}

/// Bits needed for the values `[0, n)`, at least 2 so that both halves hold one.
const fn width(n: u64) -> u32 {
    let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
    if bits < 2 { 2 } else { bits }
}

const fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image(permutation: &Permutation, n: u64) -> Vec<u64> {
        (0..n).map(|index| permutation.apply(index, n)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_is_a_bijection_whatever_the_size_and_capacity(
            n in 1u64..5000, capacity in 1u64..10_000, seed: u64,
        ) {
            let mut seen = image(&Permutation::new(capacity, seed), n);
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn large_spaces_keep_their_bounds_and_their_images_apart(
            n in 1u64 << 39..1_000_000_000_000, seed: u64, start: u64,
        ) {
            let permutation = Permutation::new(n, seed);
            let start = start % (n - 1000);
            let mut images: Vec<u64> = (start..start + 1000).map(|i| permutation.apply(i, n)).collect();
            prop_assert!(images.iter().all(|&image| image < n));
            images.sort_unstable();
            images.dedup();
            prop_assert_eq!(images.len(), 1000);
        }

        #[test]
        fn one_more_key_moves_at_most_one_rank(n in 1u64..2000, seed: u64) {
            let permutation = Permutation::new(4000, seed);
            let before = image(&permutation, n);
            let after = image(&permutation, n + 1);
            let moved = before.iter().zip(&after).filter(|(old, new)| old != new).count();
            prop_assert!(moved <= 1, "{} ranks moved", moved);
        }
    }

    #[test]
    fn seeds_give_different_orders_and_neighbours_are_torn_apart() {
        let order = image(&Permutation::new(1000, 1), 1000);
        assert_ne!(order, image(&Permutation::new(1000, 2), 1000));
        let still_neighbours = order
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) == 1)
            .count();
        // 2 expected of a random order.
        assert!(still_neighbours < 12, "{still_neighbours}");
    }
}
