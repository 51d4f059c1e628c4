//! dyno's own engine, in the assembly that a job names, or the kernel; within this process, a session a client.
//!
//! What is asked of it is compiled for each assembly; the driver around it is not, and calls it once an operation. Without
//! a buffer pool nothing is left when the process ends, so that the run phase loads what it needs when it opens the engine,
//! before its clients begin, and looks at what is stored when they have ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use dyno_glass::assembly::{self, Assembly, Spec, Visitor};
use dyno_glass::calls::NoCalls;
use dyno_glass::engine::{Engine, Options};
use dyno_glass::log;
use dyno_glass::pages::disk::{Files, Folder};
use dyno_glass_tpcc::engine::{Database, EngineStore, Loader};
use dyno_glass_tpcc::kernel::{Kernel, KernelStore};
use dyno_glass_tpcc::told;
use dyno_tpcc::{Check, Config, Extent, check_scans};
use serde_json::{Map, Value, json};

use super::{Backend, BackendReport, Status};
use crate::failure::{ErrorKind, Failure};
use crate::job::{BackendJob, GlassJob, Job, Parts, Phase, TpccJob, WorkloadJob};
use crate::work::{Connected, Rows, Shape, Typist, UserRows, UserTable, Work};
use dyno_sql::Error as OperationError;

/// Which assemblies are built in: `all`, or those of the `path` from all components to none.
#[must_use]
pub const fn assemblies() -> &'static str {
    if assembly::HAS_ALL { "all" } else { "path" }
}

/// An engine, opened.
pub struct Glass {
    opened: Box<dyn Opened>,
    job: GlassJob,
    page_bytes: usize,
    seed: u64,
    halt: Arc<AtomicBool>,
    /// When the measured part began.
    before: OnceLock<Moved>,
}

/// What an engine has moved since it was opened.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    pages_read: u64,
    pages_written: u64,
    log_bytes: u64,
    log_written_bytes: u64,
    log_syncs: u64,
}

/// An engine whose assembly is known only when it runs.
trait Opened: Send + Sync {
    /// A client that loads TPC-C's tables.
    fn loading<'c>(&'c self, loader: &'c Loader) -> Result<Box<dyn Work + 'c>, OperationError>;

    /// A client at a terminal.
    fn typist<'c>(
        &'c self,
        job: &TpccJob,
        number: u64,
    ) -> Result<Box<dyn Work + 'c>, OperationError>;

    /// A client of YCSB's table.
    fn user_rows<'c>(&'c self, shape: &Shape) -> Result<Box<dyn Rows + 'c>, OperationError>;

    /// Finds that YCSB's table has rows of the job's length.
    fn check_rows(&self, shape: &Shape) -> Result<(), OperationError>;

    /// TPC-C's conditions.
    fn check(&self, config: &Config) -> Result<Vec<Check>, OperationError>;

    /// So far.
    fn moved(&self) -> Moved;

    /// Writes everything to its place.
    fn close(self: Box<Self>) -> Result<(), OperationError>;
}

impl Glass {
    /// Whether all is gone when the process ends.
    pub const fn is_volatile(&self) -> bool {
        self.job.parts.is_volatile()
    }

    /// Of the job: what is loaded follows from it.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the run is to end.
    pub fn is_halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// A client that loads TPC-C's tables.
    pub fn loading<'c>(&'c self, loader: &'c Loader) -> Result<Box<dyn Work + 'c>, Failure> {
        self.opened
            .loading(loader)
            .map_err(failing("opening a session"))
    }

    /// A client at a terminal.
    pub fn typist<'c>(&'c self, job: &TpccJob, number: u64) -> Result<Box<dyn Work + 'c>, Failure> {
        self.opened
            .typist(job, number)
            .map_err(failing("opening a session"))
    }

    /// A client of YCSB's table.
    pub fn user_rows<'c>(&'c self, shape: &Shape) -> Result<Box<dyn Rows + 'c>, Failure> {
        self.opened
            .user_rows(shape)
            .map_err(failing("opening a session"))
    }

    /// Finds that YCSB's table has rows of the job's length.
    pub fn check_rows(&self, shape: &Shape) -> Result<(), Failure> {
        self.opened
            .check_rows(shape)
            .map_err(failing("looking at the usertable"))
    }

    /// TPC-C's conditions 1 to 4.
    pub fn check(&self, config: &Config) -> Result<Vec<Check>, Failure> {
        self.opened
            .check(config)
            .map_err(failing("verifying TPC-C's conditions"))
    }
}

fn failing(attempted: &str) -> impl Fn(OperationError) -> Failure {
    move |error| Failure::while_attempting(attempted, &error)
}

impl Backend for Glass {
    type Connection = ();

    fn open(job: &Job, clients: u32, halt: &Arc<AtomicBool>) -> Result<(Self, Vec<()>), Failure> {
        let BackendJob::Glass(glass) = &job.backend else {
            return Err(Failure::new(
                "internal",
                "this backend opens glass jobs only",
            ));
        };
        let opening = Opening {
            glass,
            phase: job.phase,
            workload: &job.workload,
            halt,
        };
        let opened = match glass.parts {
            Parts::Kernel => opening.kernel(),
            Parts::Assembly(spec) => assembly::with(spec, &opening).map_err(told).flatten(),
        };
        let place = glass
            .folder
            .as_ref()
            .map_or_else(String::new, |folder| format!(" in {}", folder.display()));
        let attempted = format!("opening the engine{place}");
        let backend = Self {
            opened: opened.map_err(failing(&attempted))?,
            job: glass.clone(),
            page_bytes: match glass.parts {
                Parts::Assembly(spec) => spec.page_size(),
                Parts::Kernel => 0,
            },
            seed: job.seed,
            halt: Arc::clone(halt),
            before: OnceLock::new(),
        };
        Ok((backend, vec![(); clients as usize]))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: "glass",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            effective: Map::new(),
            status: Status::new(),
        }
    }

    fn effective(&self) -> Map<String, Value> {
        let mut effective = Map::new();
        let mut say = |key: &str, value| effective.insert(key.to_owned(), value);
        say("assembly", json!(self.job.parts.name()));
        say("pages_in_files", json!(!self.is_volatile()));
        if let Parts::Assembly(spec) = self.job.parts {
            say("page_size_bytes", json!(self.page_bytes));
            if spec.buffer {
                say("pool_bytes", json!(self.job.pool_bytes));
                say("preload", json!(self.job.preload));
            }
            if spec.log {
                let (policy, interval) = match self.job.log {
                    log::Policy::Memory => ("memory", None),
                    log::Policy::Written(interval) => ("written", Some(interval)),
                    log::Policy::Synced => ("synced", None),
                };
                say("log", json!(policy));
                if let Some(interval) = interval {
                    say(
                        "log_interval_ms",
                        json!(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)),
                    );
                }
            }
        }
        effective
    }

    fn begin(&self, _: Instant) {
        // There is one measured part.
        let _ = self.before.set(self.opened.moved());
    }

    fn close(self, _: Vec<()>, cut: bool) -> Result<Status, Failure> {
        let (before, after) = (
            self.before.get().copied().unwrap_or_default(),
            self.opened.moved(),
        );
        let page = self.page_bytes as f64;
        let status = Status::from([
            (
                "pages_read_bytes",
                (after.pages_read - before.pages_read) as f64 * page,
            ),
            (
                "pages_written_bytes",
                (after.pages_written - before.pages_written) as f64 * page,
            ),
            ("log_bytes", (after.log_bytes - before.log_bytes) as f64),
            (
                "log_written_bytes",
                (after.log_written_bytes - before.log_written_bytes) as f64,
            ),
            ("log_syncs", (after.log_syncs - before.log_syncs) as f64),
        ]);
        if cut
            && matches!(self.job.parts, Parts::Assembly(spec) if spec.log)
            && self.job.log != log::Policy::Memory
        {
            // What was cut short is left as it is: the log has what is missing from the pages.
            return Ok(status);
        }
        self.opened.close().map_err(failing("closing the engine"))?;
        Ok(status)
    }

    fn discard(self, connections: Vec<()>) -> Result<Status, Failure> {
        self.close(connections, true)
    }
}

/// What an engine is opened for.
struct Opening<'j> {
    glass: &'j GlassJob,
    phase: Phase,
    workload: &'j WorkloadJob,
    halt: &'j AtomicBool,
}

impl Opening<'_> {
    fn kernel(&self) -> Result<Box<dyn Opened>, OperationError> {
        match self.workload {
            WorkloadJob::Tpcc(tpcc) => {
                let kernel =
                    Kernel::load_until(&tpcc.config, || self.halt.load(Ordering::Relaxed))?;
                Ok(Box::new(Alone(Mutex::new(kernel))))
            }
            _ => Ok(Box::new(Alone(Mutex::default()))),
        }
    }

    /// Whether the tables are to be made.
    fn makes(&self) -> bool {
        self.phase == Phase::Load || self.glass.parts.is_volatile()
    }
}

impl Visitor for &Opening<'_> {
    type Calls = NoCalls;
    type Output = Result<Box<dyn Opened>, OperationError>;

    fn visit<A: Assembly<Calls = NoCalls>>(self, _: Spec) -> Self::Output {
        let folder = match &self.glass.folder {
            Some(path) => {
                let files = Files::new(path)
                    .map_err(|error| told(dyno_glass::Error::Io("its folder", error)))?;
                Some(Arc::new(files) as Arc<dyn Folder>)
            }
            None => None,
        };
        let options = Options {
            memory: self.glass.pool_bytes,
            log: log::Options {
                policy: self.glass.log,
                ..log::Options::default()
            },
            ..Options::default()
        };
        let engine = Engine::<A>::open(folder, &options).map_err(told)?;
        if self.glass.preload && self.phase == Phase::Run && Engine::<A>::HAS_POOL {
            // Whoever looks at every invariant has looked at every page.
            engine.verify().map_err(told)?;
        }
        Ok(match self.workload {
            WorkloadJob::Tpcc(_) if !self.makes() => Box::new(Books(Database::find(engine)?)),
            WorkloadJob::Tpcc(tpcc) => {
                let books = Database::create(engine)?;
                if self.phase != Phase::Load {
                    let loader = Loader::new(&tpcc.config);
                    let mut store = books.store()?;
                    while !self.halt.load(Ordering::Relaxed)
                        && loader.load_next(&mut store)?.is_some()
                    {}
                }
                Box::new(Books(books))
            }
            _ if self.makes() => Box::new(Users(UserTable::create(engine)?)),
            _ => Box::new(Users(UserTable::find(engine)?)),
        })
    }
}

/// An answer to what the door does not let in.
fn other_workload<T>() -> Result<T, OperationError> {
    Err(OperationError::new(
        ErrorKind::Refused,
        "the engine was opened for another workload",
    ))
}

fn moved<A: Assembly>(engine: &Engine<A>) -> Moved {
    let (pages, log) = (engine.pages(), engine.log());
    Moved {
        pages_read: pages.read,
        pages_written: pages.written,
        log_bytes: log.appended,
        log_written_bytes: log.written,
        log_syncs: log.syncs,
    }
}

/// An engine with TPC-C's tables.
struct Books<A: Assembly>(Database<A>);

impl<A: Assembly> Connected for EngineStore<'_, A> {}

impl<A: Assembly> Opened for Books<A> {
    fn loading<'c>(&'c self, loader: &'c Loader) -> Result<Box<dyn Work + 'c>, OperationError> {
        let store = self.0.store()?;
        Ok(Box::new(Loading {
            loader,
            store,
            done: false,
        }))
    }

    fn typist<'c>(
        &'c self,
        job: &TpccJob,
        number: u64,
    ) -> Result<Box<dyn Work + 'c>, OperationError> {
        Ok(Box::new(Typist::new(job, number, self.0.store()?)?))
    }

    fn user_rows<'c>(&'c self, _: &Shape) -> Result<Box<dyn Rows + 'c>, OperationError> {
        other_workload()
    }

    fn check_rows(&self, _: &Shape) -> Result<(), OperationError> {
        other_workload()
    }

    fn check(&self, config: &Config) -> Result<Vec<Check>, OperationError> {
        check_scans(&mut &self.0, config, Extent::Demanded)
    }

    fn moved(&self) -> Moved {
        moved(self.0.engine())
    }

    fn close(self: Box<Self>) -> Result<(), OperationError> {
        self.0.into_engine().close().map_err(told)
    }
}

/// One client's part of loading.
struct Loading<'c, A: Assembly> {
    loader: &'c Loader,
    store: EngineStore<'c, A>,
    done: bool,
}

impl<A: Assembly> Work for Loading<'_, A> {
    fn prepare(&mut self) -> Option<usize> {
        (!self.done).then_some(0)
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        let rows = self.loader.load_next(&mut self.store)?;
        self.done = rows.is_none();
        Ok(u32::try_from(rows.unwrap_or(0)).unwrap_or(u32::MAX))
    }
}

/// An engine with YCSB's table.
struct Users<A: Assembly>(UserTable<A>);

impl<A: Assembly> Opened for Users<A> {
    fn loading<'c>(&'c self, _: &'c Loader) -> Result<Box<dyn Work + 'c>, OperationError> {
        other_workload()
    }

    fn typist<'c>(&'c self, _: &TpccJob, _: u64) -> Result<Box<dyn Work + 'c>, OperationError> {
        other_workload()
    }

    fn user_rows<'c>(&'c self, shape: &Shape) -> Result<Box<dyn Rows + 'c>, OperationError> {
        Ok(Box::new(UserRows::new(&self.0, shape)?))
    }

    fn check_rows(&self, shape: &Shape) -> Result<(), OperationError> {
        UserRows::new(&self.0, shape)?.check_first()
    }

    fn check(&self, _: &Config) -> Result<Vec<Check>, OperationError> {
        other_workload()
    }

    fn moved(&self) -> Moved {
        moved(self.0.engine())
    }

    fn close(self: Box<Self>) -> Result<(), OperationError> {
        self.0.into_engine().close().map_err(told)
    }
}

/// The kernel, whose client has it alone.
struct Alone(Mutex<Kernel>);

impl<K: std::ops::DerefMut<Target = Kernel>> Connected for KernelStore<K> {}

impl Opened for Alone {
    fn loading<'c>(&'c self, _: &'c Loader) -> Result<Box<dyn Work + 'c>, OperationError> {
        other_workload()
    }

    fn typist<'c>(
        &'c self,
        job: &TpccJob,
        number: u64,
    ) -> Result<Box<dyn Work + 'c>, OperationError> {
        let kernel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(Typist::new(
            job,
            number,
            KernelStore::new(kernel),
        )?))
    }

    fn user_rows<'c>(&'c self, _: &Shape) -> Result<Box<dyn Rows + 'c>, OperationError> {
        other_workload()
    }

    fn check_rows(&self, _: &Shape) -> Result<(), OperationError> {
        other_workload()
    }

    fn check(&self, config: &Config) -> Result<Vec<Check>, OperationError> {
        let mut kernel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        check_scans(&mut *kernel, config, Extent::Demanded)
    }

    fn moved(&self) -> Moved {
        Moved::default()
    }

    fn close(self: Box<Self>) -> Result<(), OperationError> {
        Ok(())
    }
}
