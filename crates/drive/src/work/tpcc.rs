//! TPC-C as work of the driver; what it asks is in its own crate.

use std::cell::RefCell;
use std::time::Duration;

use dyno_sql::Connection;
use dyno_tpcc::{Config, Extent, Kind, Loader, Mix, SqlStore, Store, Terminal};

use super::{Check, Findings, Inspection, Plan, Work};
use crate::backend::{SqlBackend, Status};
use crate::counting::{Counting, Next};
use crate::failure::Failure;
use crate::job::{Job, TpccJob};
use dyno_sql::Error as OperationError;

/// The kinds that a mix asks for.
pub(super) fn kinds(mix: Mix) -> &'static [Kind] {
    match mix {
        Mix::Standard => &Kind::ALL,
        Mix::LookingGlass => &[Kind::NewOrder, Kind::Payment],
    }
}

/// Its name, and those of what is counted of it: how many, instructions, cycles.
const fn counted(kind: Kind) -> (&'static str, [&'static str; 3]) {
    macro_rules! names {
        ($name:literal) => {
            (
                $name,
                [
                    concat!("counted.", $name),
                    concat!("instructions.", $name),
                    concat!("cycles.", $name),
                ],
            )
        };
    }
    match kind {
        Kind::NewOrder => names!("new_order"),
        Kind::Payment => names!("payment"),
        Kind::OrderStatus => names!("order_status"),
        Kind::Delivery => names!("delivery"),
        Kind::StockLevel => names!("stock_level"),
    }
}

/// Loading all tables.
#[derive(Debug)]
pub struct TpccLoad {
    loader: Loader,
}

impl TpccLoad {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(job: &TpccJob) -> Self {
        Self {
            loader: Loader::new(&job.config),
        }
    }
}

impl<B: SqlBackend> Plan<B> for TpccLoad {
    type Work<'c>
        = Loading<'c, B::Session<'c>>
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        vec!["insert"]
    }

    fn set_up(&self, backend: &B, connection: &mut B::Connection) -> Result<(), Failure> {
        dyno_tpcc::create_tables(&mut backend.session(connection))
            .map_err(|error| Failure::while_attempting("creating TPC-C's tables", &error))
    }

    fn work<'c>(
        &'c self,
        _: u32,
        backend: &'c B,
        connection: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        Ok(Loading {
            loader: &self.loader,
            connection: backend.session(connection),
            done: false,
        })
    }

    fn complete(&self, backend: &B, connection: &mut B::Connection) -> Result<(), Failure> {
        dyno_tpcc::create_indexes(&mut backend.session(connection))
            .map_err(|error| Failure::while_attempting("creating TPC-C's indexes", &error))
    }
}

/// One client's part of loading.
#[derive(Debug)]
pub struct Loading<'c, C> {
    loader: &'c Loader,
    connection: C,
    done: bool,
}

impl<C: Connection> Work for Loading<'_, C> {
    fn prepare(&mut self) -> Option<usize> {
        (!self.done).then_some(0)
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        let rows = self.loader.load_next(&mut self.connection)?;
        self.done = rows.is_none();
        Ok(u32::try_from(rows.unwrap_or(0)).unwrap_or(u32::MAX))
    }
}

/// The transactions of a mix.
#[derive(Debug)]
pub struct TpccRun<'j> {
    job: &'j Job,
    tpcc: &'j TpccJob,
}

impl<'j> TpccRun<'j> {
    /// On the tables as the load phase leaves them.
    #[must_use]
    pub const fn new(job: &'j Job, tpcc: &'j TpccJob) -> Self {
        Self { job, tpcc }
    }
}

impl<B: SqlBackend> Plan<B> for TpccRun<'_> {
    type Work<'c>
        = Typist<SqlStore<B::Session<'c>>>
    where
        Self: 'c,
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        kinds(self.tpcc.config.mix)
            .iter()
            .map(|kind| kind.name())
            .collect()
    }

    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        let store = SqlStore::prepare(backend.session(connection)).map_err(|error| {
            let attempted = "preparing TPC-C's statements (phase load makes its tables)";
            Failure::while_attempting(attempted, &error)
        })?;
        Typist::new(self.tpcc, self.terminal(client), store)
            .map_err(|error| Failure::while_attempting("getting ready to count", &error))
    }
}

impl TpccRun<'_> {
    /// The number of a client's terminal: no two have the same, over all drivers.
    pub(super) fn terminal(&self, client: u32) -> u64 {
        let driver = self.job.driver;
        u64::from(client) * driver.of + driver.number
    }

    /// What is asked.
    pub(super) const fn asked(&self) -> &TpccJob {
        self.tpcc
    }
}

/// A store that may have to be connected to anew.
pub trait Connected: Store {
    /// Connects anew.
    fn reconnect(&mut self) -> Result<(), OperationError> {
        Ok(())
    }
}

impl<C: Connection> Connected for SqlStore<C> {
    fn reconnect(&mut self) -> Result<(), OperationError> {
        Self::reconnect(self)
    }
}

/// Somebody at a terminal.
pub struct Typist<S> {
    terminal: Terminal<S>,
    kinds: &'static [Kind],
    keys: bool,
    thinks: bool,
    /// What is left to think of the last answer.
    thinking: Duration,
    drawn: bool,
    counting: Option<Counting>,
}

impl<S: Store> Typist<S> {
    /// At the terminal of that number, of that store.
    pub fn new(job: &TpccJob, number: u64, store: S) -> Result<Self, OperationError> {
        let config: &Config = &job.config;
        let kinds = kinds(config.mix);
        let counting = job
            .count
            .map(|count| Counting::new(count, kinds.iter().map(|kind| counted(*kind))))
            .transpose()?;
        Ok(Self {
            terminal: Terminal::new(config, number, store),
            kinds,
            keys: job.keying_time,
            thinks: job.think_time,
            thinking: Duration::ZERO,
            drawn: false,
            counting,
        })
    }
}

impl<S: Connected> Work for Typist<S> {
    fn prepare(&mut self) -> Option<usize> {
        if self.thinks && self.drawn {
            self.thinking = self.terminal.think_time();
        }
        self.drawn = true;
        let kind = match self.counting.as_mut().map_or(Next::Any, Counting::next) {
            Next::Any => self.terminal.prepare(),
            Next::Kind(index) => {
                let kind = *self.kinds.get(index)?;
                self.terminal.prepare_kind(kind);
                kind
            }
            Next::Nothing => return None,
        };
        self.kinds.iter().position(|known| *known == kind)
    }

    fn pause(&mut self) -> Duration {
        let keying = if self.keys {
            self.terminal.keying_time()
        } else {
            Duration::ZERO
        };
        self.thinking + keying
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        let Some(counting) = &mut self.counting else {
            return self.terminal.perform().map(|_| 1);
        };
        let counting = RefCell::new(counting);
        self.terminal
            .perform_between(
                || counting.borrow().begin(),
                |begun| counting.borrow_mut().end(begun),
            )
            .map(|_| 1)
    }

    fn reconnect(&mut self) -> Result<(), OperationError> {
        self.terminal.store().reconnect()
    }

    fn counters(&self) -> Status {
        let tally = self.terminal.tally();
        let mut counters = self
            .counting
            .as_ref()
            .map_or_else(Status::new, Counting::counters);
        counters.extend([
            ("tpcc_rollbacks", tally.rolled_back as f64),
            ("tpcc_skipped_districts", tally.skipped_districts as f64),
        ]);
        counters
    }
}

/// The specification's consistency conditions.
#[derive(Debug)]
pub struct TpccCheck<'j> {
    tpcc: &'j TpccJob,
}

impl<'j> TpccCheck<'j> {
    /// Of the tables of this job.
    #[must_use]
    pub const fn new(tpcc: &'j TpccJob) -> Self {
        Self { tpcc }
    }
}

impl<B: SqlBackend> Inspection<B> for TpccCheck<'_> {
    fn inspect(&self, backend: &B, connection: &mut B::Connection) -> Result<Findings, Failure> {
        let mut session = backend.session(connection);
        let checks = dyno_tpcc::check(&mut session, &self.tpcc.config, Extent::Demanded)
            .map_err(|error| Failure::while_attempting("verifying TPC-C's conditions", &error))?;
        Ok(findings(checks))
    }
}

impl TpccCheck<'_> {
    /// What is to be there.
    pub(super) const fn asked(&self) -> &TpccJob {
        self.tpcc
    }
}

/// What was found of conditions.
pub(super) fn findings(checks: Vec<dyno_tpcc::Check>) -> Findings {
    let check = |check: dyno_tpcc::Check| Check {
        name: check.name,
        holds: check.holds,
        detail: check.detail,
    };
    Findings {
        checks: checks.into_iter().map(check).collect(),
        ledger: None,
        reads: None,
    }
}
