//! Locks: what keeps transactions apart until they end.
//!
//! Two-phase and of several granularities (Gray et al. 1976): a table is locked for what is meant to be done in it
//! before a record of it is locked. Records are locked by where they are, for index and heap at once (data-only
//! locking, ARIES/IM: Mohan and Levine 1992); who reads a range, or finds nothing, locks the record of the next key too,
//! and who inserts or deletes asks for that one, so that nothing appears in between (serialisable).

use std::time::Duration;

use crate::{IndexId, Rid, TableId};

mod absent;
mod contract;
mod granular;
mod partition;

pub use absent::NoLocks;
pub(crate) use contract::Locks;
pub use granular::Granular;

/// How long a transaction waits for a lock where nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Locks asked for and had, whether the transaction had them already or gave them back at once.
    pub had: u64,
    /// Of those asked for, those that had to be waited for.
    pub waits: u64,
    /// Of these, those that gave way since they would have waited for ever.
    pub deadlocks: u64,
    /// Of these, those whose patience came to an end.
    pub timeouts: u64,
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lockable {
    /// A table.
    Table(TableId),
    /// A record, and the gap before it in each index that has it.
    Record(Rid),
    /// The gap after the last key of an index.
    End(IndexId),
}

/// For what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// Records below are going to be locked shared.
    IntentShared,
    /// Records below are going to be locked exclusively.
    IntentExclusive,
    /// All is read.
    Shared,
    /// All is read and some of it changed.
    SharedIntentExclusive,
    /// It is changed.
    Exclusive,
}

impl Mode {
    /// All of them, the weaker before the stronger.
    pub const ALL: [Self; 5] = [
        Self::IntentShared,
        Self::IntentExclusive,
        Self::Shared,
        Self::SharedIntentExclusive,
        Self::Exclusive,
    ];

    /// The weakest that allows what either allows (Gray et al. 1976, the least upper bound): what a transaction holds
    /// that has asked for both.
    #[must_use]
    pub const fn supremum(self, other: Self) -> Self {
        match (self, other) {
            (Self::IntentExclusive, Self::Shared) | (Self::Shared, Self::IntentExclusive) => {
                Self::SharedIntentExclusive
            }
            // All others are one above the other.
            _ if self as u8 >= other as u8 => self,
            _ => other,
        }
    }

    /// Whether two transactions may hold these at once.
    #[must_use]
    pub const fn compatible(self, other: Self) -> bool {
        self.conflicts() & other.bit() == 0
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The bits of those that another transaction must not hold meanwhile.
    const fn conflicts(self) -> u8 {
        let [is, ix, s, six, x] = [1, 2, 4, 8, 16];
        match self {
            Self::IntentShared => x,
            Self::IntentExclusive => s | six | x,
            Self::Shared => ix | six | x,
            Self::SharedIntentExclusive => ix | s | six | x,
            Self::Exclusive => is | ix | s | six | x,
        }
    }
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As soon as it is had, it is given back: that it could be had is what was asked.
    Had,
    /// The end of the transaction.
    End,
}

#[cfg(test)]
mod tests {
    use Mode::{
        Exclusive as X, IntentExclusive as IX, IntentShared as IS, Shared as S,
        SharedIntentExclusive as SIX,
    };

    use super::*;

    /// Gray, Lorie, Putzolu, Traiger: "Granularity of Locks and Degrees of Consistency in a Shared Data Base" (1976),
    /// table 1.
    #[test]
    fn modes_are_compatible_as_in_grays_table() {
        let table = [
            (
                IS,
                [(IS, true), (IX, true), (S, true), (SIX, true), (X, false)],
            ),
            (
                IX,
                [(IS, true), (IX, true), (S, false), (SIX, false), (X, false)],
            ),
            (
                S,
                [(IS, true), (IX, false), (S, true), (SIX, false), (X, false)],
            ),
            (
                SIX,
                [
                    (IS, true),
                    (IX, false),
                    (S, false),
                    (SIX, false),
                    (X, false),
                ],
            ),
            (
                X,
                [
                    (IS, false),
                    (IX, false),
                    (S, false),
                    (SIX, false),
                    (X, false),
                ],
            ),
        ];
        for (one, row) in table {
            for (other, compatible) in row {
                assert_eq!(one.compatible(other), compatible, "{one:?} and {other:?}");
            }
        }
    }

    /// The same paper's lattice: what is above keeps out all that what is below does.
    #[test]
    fn the_supremum_is_the_weakest_that_keeps_out_what_either_does() {
        let keeps_out = |mode: Mode| Mode::ALL.map(|other| !mode.compatible(other));
        let covers = |above: Mode, below: Mode| {
            keeps_out(below)
                .iter()
                .zip(keeps_out(above))
                .all(|(&below, above)| above || !below)
        };
        for one in Mode::ALL {
            for other in Mode::ALL {
                let both = one.supremum(other);
                assert!(
                    covers(both, one) && covers(both, other),
                    "{one:?} and {other:?}"
                );
                for candidate in Mode::ALL {
                    if covers(candidate, one) && covers(candidate, other) {
                        assert!(
                            covers(candidate, both),
                            "{candidate:?} is weaker than {both:?}"
                        );
                    }
                }
            }
        }
    }
}
