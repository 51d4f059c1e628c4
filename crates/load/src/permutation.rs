//! Scatters the popular ranks over a key space: a keyed bijection on `[0, n)` for any n.
//!
//! A Feistel network on a grid of rows and columns just large enough for n; values outside `[0, n)`
//! are sent through it again until they fall inside (cycle walking: Black and Rogaway 2002, "Ciphers
//! with arbitrary finite domains"). Hashing instead, as YCSB does, lets keys collide: some keys get
//! two ranks and others none.

use crate::mix64;

/// A bijection on `[0, n)`, chosen by a seed, where n may grow.
///
/// When n grows by one within the capacity, one rank moves to the new key and the new rank takes its
/// old place: all others stay where they are. Beyond the capacity the whole order is drawn anew, for
/// the next power of two.
#[derive(Clone, Debug)]
pub struct Permutation {
    keys: [u64; ROUNDS],
    capacity: u64,
    grid: Grid,
}

/// With three a Feistel network of random functions is a random permutation to whoever asks for
/// images only (Luby and Rackoff 1988); the fourth makes up for functions that are merely good.
const ROUNDS: usize = 4;

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
            capacity,
            grid: Grid::new(capacity),
        }
    }

    /// Where `index` goes; both lie in `[0, n)`, and `index` is below `n`.
    #[inline]
    #[must_use]
    pub fn apply(&self, index: u64, n: u64) -> u64 {
        let grid = if n <= self.capacity {
            self.grid
        } else {
            Grid::new(n.checked_next_power_of_two().unwrap_or(u64::MAX))
        };
        let mut value = index;
        loop {
            value = grid.permute(value, &self.keys);
            if value < n {
                return value;
            }
        }
    }
}

/// About as many rows as columns, so that either can be mixed into the other. Columns are a power of
/// two, rows are not: the grid exceeds the size asked for by less than a row, and few values walk.
#[derive(Clone, Copy, Debug)]
struct Grid {
    rows: u64,
    column_bits: u32,
}

impl Grid {
    const fn new(size: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        let column_bits = bits / 2;
        let rows = size.div_ceil(1 << column_bits);
        Self {
            rows: if rows == 0 { 1 } else { rows },
            column_bits,
        }
    }

    /// A bijection on the grid: each step moves a value within its column or its row, by a distance
    /// that depends on that column or row alone.
    #[inline]
    const fn permute(self, value: u64, keys: &[u64; ROUNDS]) -> u64 {
        let columns = (1 << self.column_bits) - 1;
        let (mut row, mut column) = (value >> self.column_bits, value & columns);
        row = self.move_row(row, scatter(column ^ keys[0]));
        column ^= (scatter(row ^ keys[1]) >> 32) & columns;
        row = self.move_row(row, scatter(column ^ keys[2]));
        column ^= (scatter(row ^ keys[3]) >> 32) & columns;
        (row << self.column_bits) | column
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the upper half of a product of 128 bits
    const fn move_row(self, row: u64, random: u64) -> u64 {
        let moved = row + ((random as u128 * self.rows as u128) >> 64) as u64;
        if moved < self.rows {
            moved
        } else {
            moved - self.rows
        }
    }
}

/// A bijection on 64 bits, half of `mix64` at half its price: only its upper half is good.
#[inline]
const fn scatter(number: u64) -> u64 {
    let product = number.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (product ^ (product >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
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
