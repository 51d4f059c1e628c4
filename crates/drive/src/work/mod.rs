//! What clients do: one module a kind of work.

mod berkeley;
mod glass;
mod ledger;
mod null;
mod readers;
mod tpcc;
mod ycsb;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;

use crate::backend::{Backend, Status};
use crate::failure::Failure;
use dyno_sql::{Error as OperationError, Interrupter};

pub use berkeley::BerkeleyLoad;
pub use glass::GlassLoad;
pub use ledger::{LedgerCheck, LedgerCreate, LedgerRun};
pub use null::NullRun;
pub use readers::ReadCount;
pub use tpcc::{Connected, TpccCheck, TpccLoad, TpccRun, Typist};
pub use ycsb::{Rows, Shape, UserRows, UserTable, YcsbBackend, YcsbLoad, YcsbRun};

/// What all clients of a run share, and how each gets its own work.
pub trait Plan<B: Backend>: Sync {
    /// One client's work.
    type Work<'c>: Work
    where
        Self: 'c,
        B: 'c;

    /// The names of its kinds of operations.
    fn operations(&self) -> Vec<&'static str>;

    /// Makes the store ready, or finds that it is: once, before the clients start.
    fn set_up(&self, _: &B, _: &mut B::Connection) -> Result<(), Failure> {
        Ok(())
    }

    /// The work of client number `client`, from 0.
    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure>;

    /// What goes on beside the clients, each in a thread of its own, from before they begin until they are `over`.
    fn companions<'s>(
        &'s self,
        _: &'s B,
        _over: &'s AtomicBool,
    ) -> Result<Vec<Companion<'s>>, Failure> {
        Ok(Vec::new())
    }

    /// Completes the store once all clients have done all of their work.
    fn complete(&self, _: &B, _: &mut B::Connection) -> Result<(), Failure> {
        Ok(())
    }

    /// Looks at what is stored then, where nobody could look at it later.
    fn look(&self, _: &B, _: &mut B::Connection) -> Result<Findings, Failure> {
        Ok(Findings::default())
    }
}

/// What a thread beside the clients does.
pub struct Companion<'s> {
    /// Until it is over.
    pub body: Box<dyn FnOnce() -> Result<(), Failure> + Send + 's>,
    /// Ends what it waits for.
    pub interrupter: Interrupter,
}

/// One client's operations, one after the other.
pub trait Work {
    /// Makes the next operation ready, outside its time. Gives the place of its kind among the plan's
    /// operations; `None` where nothing is left to do.
    fn prepare(&mut self) -> Option<usize>;

    /// How long a person would wait before the operation that was made ready.
    #[inline]
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Carries it out. Gives how many operations it stands for; they share its time.
    fn perform(&mut self) -> Result<u32, OperationError>;

    /// Makes its connection anew, once, and gets ready to go on.
    fn reconnect(&mut self) -> Result<(), OperationError> {
        Ok(())
    }

    /// Counters that only ever grow.
    fn counters(&self) -> Status {
        Status::new()
    }
}

/// Work whose store is known only when it runs.
impl<W: Work + ?Sized> Work for Box<W> {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        (**self).prepare()
    }

    #[inline]
    fn pause(&mut self) -> Duration {
        (**self).pause()
    }

    #[inline]
    fn perform(&mut self) -> Result<u32, OperationError> {
        (**self).perform()
    }

    fn reconnect(&mut self) -> Result<(), OperationError> {
        (**self).reconnect()
    }

    fn counters(&self) -> Status {
        (**self).counters()
    }
}

/// What a look at the stored data gave.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What was verified.
    pub checks: Vec<Check>,
    /// What became of numbered rows.
    pub ledger: Option<LedgerCount>,
    /// What readers found of them elsewhere while they were written.
    pub reads: Option<ReadCount>,
}

impl Findings {
    /// Why the stored data are not right, if they are not.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        if let Some(check) = self.checks.iter().find(|check| !check.holds) {
            let message = format!("{} does not hold: {}", check.name, check.detail);
            return Some(Failure::new("inconsistent", message));
        }
        let ledger = self.ledger.as_ref()?;
        let wrong = [
            ("lost", ledger.lost),
            ("duplicated", ledger.duplicated),
            ("altered", ledger.altered),
        ];
        let (kind, _) = wrong.into_iter().find(|(_, count)| *count > 0)?;
        let message = format!(
            "of {} acknowledged rows {} are lost; {} rows are duplicated and {} altered; the first {kind}: {}",
            ledger.acknowledged,
            ledger.lost,
            ledger.duplicated,
            ledger.altered,
            ledger
                .examples
                .get(kind)
                .map_or_else(String::new, |rows| rows.join(", "))
        );
        Some(Failure::new("rows_lost", message))
    }
}

/// Something that must hold of the stored data.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it does.
    pub holds: bool,
    /// What was compared, and the first that differed.
    pub detail: String,
}

/// Numbered rows, acknowledged and found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LedgerCount {
    /// Rows whose write was acknowledged.
    pub acknowledged: u64,
    /// This run's rows in the store.
    pub present: u64,
    /// Acknowledged, absent.
    pub lost: u64,
    /// Present, never acknowledged.
    pub phantom: u64,
    /// Of no client of this run.
    pub foreign: u64,
    /// Present more often than once: each extra row.
    pub duplicated: u64,
    /// Present with another payload than was written.
    pub altered: u64,
    /// Some of each.
    pub examples: std::collections::BTreeMap<&'static str, Vec<String>>,
}

/// A look at the stored data, on one connection.
pub trait Inspection<B: Backend> {
    /// Takes it.
    fn inspect(&self, backend: &B, connection: &mut B::Connection) -> Result<Findings, Failure>;
}
