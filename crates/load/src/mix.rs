//! The operations of YCSB's core workloads and their proportions.

use crate::Random;

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One row by its key.
    Read,
    /// New values for one row.
    Update,
    /// A row with a key that was never there.
    Insert,
    /// Rows in the order of their keys, from one key on.
    Scan,
    /// A read and then an update of the same row, timed as one.
    ReadModifyWrite,
}

impl Operation {
    /// All of them, in the order in which reports show them.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::ReadModifyWrite,
    ];

    /// Its name in jobs, results and histograms.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read_modify_write",
        }
    }
}

/// Chooses operations in given proportions.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Those with a share above 0, each with the upper end of its part of `[0, 1)`.
    parts: Vec<(f64, Operation)>,
    shares: [f64; 5],
}

impl Mix {
    /// `shares` are in the order of [`Operation::ALL`] and sum to about 1; `None` where all are 0.
    #[must_use]
    pub fn new(shares: [f64; 5]) -> Option<Self> {
        let mut end = 0.0;
        let mut parts = Vec::new();
        for (operation, share) in Operation::ALL.into_iter().zip(shares) {
            if share > 0.0 {
                end += share;
                parts.push((end, operation));
            }
        }
        // What rounding leaves of the last part belongs to it.
        parts.last_mut()?.0 = f64::INFINITY;
        Some(Self { parts, shares })
    }

    /// The operations asked for, in the order of [`Operation::ALL`].
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        self.parts.iter().map(|part| part.1)
    }

    /// Whether new keys may appear.
    #[must_use]
    pub fn inserts(&self) -> bool {
        self.operations()
            .any(|operation| operation == Operation::Insert)
    }

    /// The share of this operation, as it was asked for.
    #[must_use]
    pub fn share(&self, operation: Operation) -> f64 {
        let asked = Operation::ALL.into_iter().zip(self.shares);
        asked
            .filter(|part| part.0 == operation)
            .map(|part| part.1)
            .sum()
    }

    /// The index of the next operation among [`Self::operations`], and the operation.
    #[inline]
    pub fn sample(&self, rng: &mut Random) -> (usize, Operation) {
        let draw = rng.next_f64();
        let mut index = 0;
        while draw >= self.parts[index].0 {
            index += 1;
        }
        (index, self.parts[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_in_their_proportions() {
        let shares = [0.5, 0.2, 0.05, 0.0, 0.25];
        let mix = Mix::new(shares).unwrap();
        for (operation, share) in Operation::ALL.into_iter().zip(shares) {
            assert_eq!(mix.share(operation).to_bits(), share.to_bits());
        }
        let mut rng = Random::new(3, 0);
        let mut counts = [0.0; 5];
        for _ in 0..100_000 {
            let (index, operation) = mix.sample(&mut rng);
            assert_eq!(mix.operations().nth(index), Some(operation));
            counts[Operation::ALL.iter().position(|&o| o == operation).unwrap()] += 1.0;
        }
        for (count, share) in counts.iter().zip(shares) {
            let deviation = (100_000.0 * share * (1.0 - share)).sqrt();
            assert!(
                (count - 100_000.0 * share).abs() <= 4.0 * deviation,
                "{counts:?}"
            );
        }
    }

    #[test]
    fn a_mix_of_nothing_is_none() {
        assert!(Mix::new([0.0; 5]).is_none());
    }
}
