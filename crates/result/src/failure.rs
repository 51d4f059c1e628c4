//! What can go wrong once a job is known to be well-formed.

use std::collections::BTreeMap;

pub use crate::error::{ErrorKind, OperationFailed};

/// Why a run failed, as its result says it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// A word to group failures by.
    pub kind: String,
    /// What was attempted, on what, what came of it, and what the reader can do.
    pub message: String,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
        }
    }

    /// What went wrong while something was `attempted`.
    #[must_use]
    pub fn while_attempting(attempted: &str, error: &impl OperationFailed) -> Self {
        Self::new(
            error.kind().name(),
            format!("{attempted}: {}", error.message()),
        )
    }

    /// An operation's error that ends the run.
    #[must_use]
    pub fn of_operation(operation: &str, error: &impl OperationFailed) -> Self {
        Self::new(
            error.kind().name(),
            format!("operation {operation}: {}", error.message()),
        )
    }

    /// Whether `other` says why this came about: a server that ends tells it to one client, and the
    /// connections of all break.
    #[must_use]
    pub fn follows_from(&self, other: &Self) -> bool {
        let is = |failure: &Self, what: fn(ErrorKind) -> bool| {
            ErrorKind::ALL
                .into_iter()
                .any(|kind| kind.name() == failure.kind && what(kind))
        };
        is(self, ErrorKind::breaks_connection) && is(other, ErrorKind::is_fatal)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Failure {}

/// Errors counted by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorKind::ALL.len()]);

impl ErrorCounts {
    /// Counts one more.
    pub fn count(&mut self, kind: ErrorKind) {
        self.0[kind as usize] += 1;
    }

    /// Counts so many more.
    pub fn count_many(&mut self, kind: ErrorKind, count: u64) {
        self.0[kind as usize] += count;
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The kind that appeared most often.
    #[must_use]
    pub fn commonest(&self) -> Option<ErrorKind> {
        let of = |kind: ErrorKind| self.0[kind as usize];
        ErrorKind::ALL
            .into_iter()
            .filter(|&kind| of(kind) > 0)
            .max_by_key(|&kind| of(kind))
    }

    /// By name, those that appeared.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        ErrorKind::ALL
            .into_iter()
            .map(|kind| (kind.name(), self.0[kind as usize]))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_kinds_apart_and_name_only_those_that_appeared() {
        let mut counts = ErrorCounts::default();
        ErrorKind::ALL
            .into_iter()
            .for_each(|kind| counts.count(kind));
        assert_eq!(counts.by_name().len(), ErrorKind::ALL.len());
        let mut more = ErrorCounts::default();
        more.count(ErrorKind::MissingKey);
        assert_eq!(more.by_name(), BTreeMap::from([("missing_key", 1)]));
        assert_eq!(ErrorCounts::default().commonest(), None);
        counts.add(&more);
        assert_eq!(counts.commonest(), Some(ErrorKind::MissingKey));
        assert_eq!(counts.by_name()["missing_key"], 2);
        assert_eq!(counts.total(), ErrorKind::ALL.len() as u64 + 1);
    }

    #[test]
    fn a_broken_connection_follows_from_what_ended_the_server_and_from_nothing_else() {
        let of = |kind: &str| Failure::new(kind, "");
        assert!(of("connection_lost").follows_from(&of("disk_full")));
        assert!(of("unavailable").follows_from(&of("corrupt")));
        assert!(!of("connection_lost").follows_from(&of("timeout")));
        assert!(!of("disk_full").follows_from(&of("connection_lost")));
        assert!(!of("disk_full").follows_from(&of("corrupt")));
        assert!(!of("late_start").follows_from(&of("disk_full")));
    }
}
