//! Work on glass: TPC-C without SQL, and what YCSB asks for.

use dyno_glass_tpcc::engine::Loader;

use super::tpcc::{TpccCheck, TpccRun, findings, kinds};
use super::ycsb::{Answer, Fields, Rows, Shape, YcsbBackend, YcsbLoad};
use super::{Findings, Inspection, Plan, Work};
use crate::backend::{Glass, Status};
use crate::failure::Failure;
use crate::job::TpccJob;

/// Loading all tables.
#[derive(Debug)]
pub struct GlassLoad {
    loader: Loader,
}

impl GlassLoad {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(job: &TpccJob) -> Self {
        Self {
            loader: Loader::new(&job.config),
        }
    }
}

impl Plan<Glass> for GlassLoad {
    type Work<'c> = Box<dyn Work + 'c>;

    fn operations(&self) -> Vec<&'static str> {
        vec!["insert"]
    }

    fn work<'c>(
        &'c self,
        _: u32,
        backend: &'c Glass,
        (): &'c mut (),
    ) -> Result<Self::Work<'c>, Failure> {
        backend.loading(&self.loader)
    }
}

impl Plan<Glass> for TpccRun<'_> {
    type Work<'c>
        = Box<dyn Work + 'c>
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
        backend: &'c Glass,
        (): &'c mut (),
    ) -> Result<Self::Work<'c>, Failure> {
        backend.typist(self.asked(), self.terminal(client))
    }

    fn look(&self, backend: &Glass, (): &mut ()) -> Result<Findings, Failure> {
        if backend.is_volatile() {
            backend.check(&self.asked().config).map(findings)
        } else {
            Ok(Findings::default())
        }
    }
}

impl Inspection<Glass> for TpccCheck<'_> {
    fn inspect(&self, backend: &Glass, (): &mut ()) -> Result<Findings, Failure> {
        backend.check(&self.asked().config).map(findings)
    }
}

impl YcsbBackend for Glass {
    type Rows<'c> = Box<dyn Rows + 'c>;

    const ONE_LOADER: bool = false;

    fn create_table(&self, (): &mut (), _: &Shape) -> Result<(), Failure> {
        // It was made when the engine was opened for loading.
        Ok(())
    }

    fn check_table(&self, connection: &mut (), shape: &Shape) -> Result<(), Failure> {
        if self.is_volatile() {
            // Nobody loads it before.
            let plan = YcsbLoad::new(shape.job(), self.seed());
            let mut loading = Plan::<Self>::work(&plan, 0, self, connection)?;
            while !self.is_halted() && loading.prepare().is_some() {
                let loaded = loading.perform();
                loaded
                    .map_err(|error| Failure::while_attempting("loading the usertable", &error))?;
            }
            return Ok(());
        }
        self.check_rows(shape)
    }

    fn rows<'c>(&'c self, (): &'c mut (), shape: &Shape) -> Result<Self::Rows<'c>, Failure> {
        self.user_rows(shape)
    }
}

/// Rows of a store that is known only when it runs.
impl<R: Rows + ?Sized> Rows for Box<R> {
    #[inline]
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        (**self).read(key, fields)
    }

    #[inline]
    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        (**self).update(key, fields, values)
    }

    #[inline]
    fn insert(&mut self, key: &str, values: &str) -> Answer {
        (**self).insert(key, values)
    }

    #[inline]
    fn scan(&mut self, start: &str, rows: u32, fields: Fields) -> Answer {
        (**self).scan(start, rows, fields)
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        (**self).load(keys, values)
    }

    fn reconnect(&mut self) -> Answer {
        (**self).reconnect()
    }

    fn counters(&self) -> Status {
        (**self).counters()
    }
}
