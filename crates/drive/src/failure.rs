//! What can go wrong once a job is known to be well-formed.

use std::collections::BTreeMap;

/// The kinds of errors by which operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum ErrorKind {
    /// Another client held the lock for longer than the busy timeout.
    Busy,
    /// A row that must exist was not there.
    MissingKey,
    /// A row that must not exist was there.
    DuplicateKey,
    /// A row did not hold what the job's data set has.
    WrongValue,
    /// A read, write or sync of a file failed.
    Io,
    /// No memory.
    OutOfMemory,
    /// No space.
    DiskFull,
    /// The file is damaged, or not a database.
    Corrupt,
    /// The database or a file beside it could not be opened.
    CannotOpen,
    /// The database may not be written.
    ReadOnly,
    /// The backend refused a statement: its schema is not the expected one, or dyno is wrong.
    Refused,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Busy,
        Self::MissingKey,
        Self::DuplicateKey,
        Self::WrongValue,
        Self::Io,
        Self::OutOfMemory,
        Self::DiskFull,
        Self::Corrupt,
        Self::CannotOpen,
        Self::ReadOnly,
        Self::Refused,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::MissingKey => "missing_key",
            Self::DuplicateKey => "duplicate_key",
            Self::WrongValue => "wrong_value",
            Self::Io => "io",
            Self::OutOfMemory => "out_of_memory",
            Self::DiskFull => "disk_full",
            Self::Corrupt => "corrupt",
            Self::CannotOpen => "cannot_open",
            Self::ReadOnly => "read_only",
            Self::Refused => "refused",
        }
    }

    /// Whether it ends the run as failed at its first appearance: the operations after it would meet
    /// the same, or what was asked is no longer what is measured. The others are counted, and whoever
    /// asked judges how many are too many.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        match self {
            Self::Busy
            | Self::MissingKey
            | Self::DuplicateKey
            | Self::WrongValue
            | Self::Io
            | Self::OutOfMemory => false,
            Self::DiskFull | Self::Corrupt | Self::CannotOpen | Self::ReadOnly | Self::Refused => {
                true
            }
        }
    }
}

/// An operation that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationError {
    /// As what it is counted.
    pub kind: ErrorKind,
    /// What the backend said.
    pub message: String,
}

impl OperationError {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

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

    /// An operation's error that ends the run.
    #[must_use]
    pub fn of_operation(operation: &str, error: &OperationError) -> Self {
        Self::new(
            error.kind.name(),
            format!("operation {operation}: {}", error.message),
        )
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
        counts.add(&more);
        assert_eq!(counts.by_name()["missing_key"], 2);
        assert_eq!(counts.total(), 12);
    }
}
