//! TPC-C on Berkeley DB.

use dyno_glass_tpcc::ordered::{Loader, OrderedStore, Rows};
use dyno_tpcc::{Extent, check_scans};

use super::tpcc::{TpccCheck, TpccRun, Typist, findings, kinds};
use super::{Findings, Inspection, Plan, Work};
use crate::backend::{Berkeley, Client};
use crate::failure::Failure;
use crate::job::TpccJob;
use dyno_sql::Error as OperationError;

/// Loading all tables.
#[derive(Debug)]
pub struct BerkeleyLoad {
    loader: Loader,
}

impl BerkeleyLoad {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(job: &TpccJob) -> Self {
        Self {
            loader: Loader::new(&job.config),
        }
    }
}

/// One client's part of loading.
#[derive(Debug)]
pub struct Loading<'c> {
    loader: &'c Loader,
    store: OrderedStore<Client<'c>>,
    done: bool,
}

impl Work for Loading<'_> {
    fn prepare(&mut self) -> Option<usize> {
        (!self.done).then_some(0)
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        let rows = self.loader.load_next(&mut self.store)?;
        self.done = rows.is_none();
        Ok(u32::try_from(rows.unwrap_or(0)).unwrap_or(u32::MAX))
    }
}

impl Plan<Berkeley> for BerkeleyLoad {
    type Work<'c> = Loading<'c>;

    fn operations(&self) -> Vec<&'static str> {
        vec!["insert"]
    }

    fn work<'c>(
        &'c self,
        _: u32,
        backend: &'c Berkeley,
        (): &'c mut (),
    ) -> Result<Self::Work<'c>, Failure> {
        Ok(Loading {
            loader: &self.loader,
            store: backend.client()?,
            done: false,
        })
    }
}

impl Plan<Berkeley> for TpccRun<'_> {
    type Work<'c>
        = Typist<OrderedStore<Client<'c>>>
    where
        Self: 'c;

    fn operations(&self) -> Vec<&'static str> {
        kinds(self.asked().config.mix)
            .iter()
            .map(|kind| kind.name())
            .collect()
    }

    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c Berkeley,
        (): &'c mut (),
    ) -> Result<Self::Work<'c>, Failure> {
        Typist::new(self.asked(), self.terminal(client), backend.client()?)
            .map_err(|error| Failure::while_attempting("getting ready to count", &error))
    }
}

impl Inspection<Berkeley> for TpccCheck<'_> {
    fn inspect(&self, backend: &Berkeley, (): &mut ()) -> Result<Findings, Failure> {
        let mut rows = Rows(backend.client()?.into_maps());
        check_scans(&mut rows, &self.asked().config, Extent::Demanded)
            .map(findings)
            .map_err(|error| Failure::while_attempting("verifying TPC-C's conditions", &error))
    }
}
