//! What workers did, as they do it.

use std::sync::{Mutex, PoisonError};

use dyno_result::output::FailedOperation;
use dyno_result::record::{Recording, Sample};

use crate::batch::Counts;

/// Rows, by table.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Given to the store at least once.
    pub sent: Counts,
    /// Of which the store said that it has them.
    pub acknowledged: Counts,
    /// Of which nobody knows whether it has them: an error came in place of an answer.
    pub in_doubt: Counts,
    /// Given to it once more after an error: they may be there twice.
    pub resent: Counts,
    /// As sent, but each once, however often it was to come.
    pub different: Counts,
}

impl Rows {
    /// Adds those of `other`.
    pub fn add(&mut self, other: &Self) {
        self.sent.add_all(&other.sent);
        self.acknowledged.add_all(&other.acknowledged);
        self.in_doubt.add_all(&other.in_doubt);
        self.resent.add_all(&other.resent);
        self.different.add_all(&other.different);
    }
}

/// Of one interval and worker.
#[derive(Debug)]
pub struct Did {
    /// Batches.
    pub recording: Recording,
    /// Their rows.
    pub rows: Rows,
    /// Bytes of lines.
    pub bytes: u64,
    /// Batches that failed.
    pub failed: Vec<FailedOperation>,
}

impl Did {
    /// Nothing.
    #[must_use]
    pub fn nothing(open: bool) -> Self {
        Self {
            recording: Recording::new(1, open),
            rows: Rows::default(),
            bytes: 0,
            failed: Vec::new(),
        }
    }

    /// Notes what became of a batch.
    pub fn note(&mut self, sample: &Sample) {
        self.recording.note(sample, u64::MAX);
    }

    /// Adds what `other` did; its failed batches are written down elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.recording.add(&other.recording);
        self.rows.add(&other.rows);
        self.bytes += other.bytes;
    }
}

/// Where a worker notes what it did, and the collector finds it.
#[derive(Debug)]
pub struct Slate(Mutex<Did>, bool);

impl Slate {
    /// An empty one.
    #[must_use]
    pub fn new(open: bool) -> Self {
        Self(Mutex::new(Did::nothing(open)), open)
    }

    /// Notes something.
    pub fn note(&self, noting: impl FnOnce(&mut Did)) {
        noting(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What was noted since it was taken last.
    pub fn take(&self) -> Did {
        let mut did = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut did, Did::nothing(self.1))
    }
}
