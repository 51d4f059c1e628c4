//! Berkeley DB within this process, a session a client; a B-tree in a file of its own each.
//!
//! Files are alike in all products: they are filled without transactions, and whatever has changed them leaves nothing in
//! them that is of its log alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dyno_berkeley::{Kind, Options, Product, Session, Store};
use dyno_glass_tpcc::ordered::{Access, Direction, Map, Maps, OrderedStore, Visit, first_history};
use serde_json::{Map as Members, Value, json};

use super::{Backend, BackendReport, Status};
use crate::failure::{ErrorKind, Failure};
use crate::job::{BackendJob, BerkeleyJob, Job, Phase, WorkloadJob};
use crate::work::Connected;
use dyno_sql::Error as OperationError;

/// The B-tree of YCSB's table.
const USERS: [&str; 1] = ["usertable"];

/// Of B-trees that are made, where a job does not say. Holds several of the largest rows of TPC-C.
const PAGE_BYTES: u32 = 8192;

/// A store, opened.
#[derive(Debug)]
pub struct Berkeley {
    store: Store,
    job: BerkeleyJob,
    /// Of the history's next row.
    history: AtomicU64,
}

/// As whatever asks the store tells it.
pub fn told(error: dyno_berkeley::Error) -> OperationError {
    let kind = match error.kind {
        Kind::Absent => ErrorKind::CannotOpen,
        Kind::Refused => ErrorKind::Refused,
        Kind::Deadlock => ErrorKind::Conflict,
        Kind::Busy => ErrorKind::Busy,
        Kind::Duplicate => ErrorKind::DuplicateKey,
        Kind::Io => ErrorKind::Io,
        Kind::OutOfMemory => ErrorKind::OutOfMemory,
        Kind::DiskFull => ErrorKind::DiskFull,
        Kind::Corrupt => ErrorKind::Corrupt,
    };
    OperationError::new(kind, error.message)
}

impl Berkeley {
    /// A client's session.
    pub fn session(&self) -> Result<Session<'_>, Failure> {
        self.store
            .session()
            .map_err(|error| Failure::while_attempting("opening a session", &told(error)))
    }

    /// A client's TPC-C tables.
    pub fn client(&self) -> Result<OrderedStore<Client<'_>>, Failure> {
        Ok(OrderedStore::new(Client {
            session: self.session()?,
            history: &self.history,
        }))
    }

    /// The first setting that was asked for and is not so.
    fn check_effective(&self, phase: Phase) -> Result<(), Failure> {
        let (asked, is) = (&self.job, self.store.effective());
        let mut different = None;
        let mut compare = |key: &'static str, asked: String, is: String, remedy: &'static str| {
            if asked != is && different.is_none() {
                different = Some((key, asked, is, remedy));
            }
        };
        let made = "it is fixed when the files are made, load the data with this setting";
        if let Some(bytes) = asked.page_size_bytes {
            let is = is.page_bytes.to_string();
            compare("page_size_bytes", bytes.to_string(), is, made);
        }
        if let Some(checksums) = asked.checksums {
            let is = is.checksums.to_string();
            compare("checksums", checksums.to_string(), is, made);
        }
        let remedy = "the library did not take it";
        let least = asked.cache_bytes.min(is.cache_bytes);
        let bytes = asked.cache_bytes.to_string();
        compare("cache_bytes", bytes, least.to_string(), remedy);
        if phase == Phase::Run {
            let name = BerkeleyJob::product_name;
            let (product, found) = (name(asked.product), name(is.product));
            compare("product", product.to_owned(), found.to_owned(), remedy);
            let mutexes = asked.mutexes.to_string();
            compare("mutexes", mutexes, is.mutexes.to_string(), remedy);
            if asked.product == Product::Transactional {
                let log = Some(asked.log);
                compare("log", format!("{log:?}"), format!("{:?}", is.log), remedy);
                let locks = asked.locks.to_string();
                compare("locks", locks, is.locks.to_string(), remedy);
            }
        }
        match different {
            None => Ok(()),
            Some((key, asked, is, remedy)) => Err(Failure::new(
                "setting_not_effective",
                format!("backend.{key} was set to {asked} but is {is}: {remedy}"),
            )),
        }
    }
}

/// How a phase opens the store.
fn options(job: &BerkeleyJob, phase: Phase, clients: u32) -> Options {
    let options = Options {
        product: job.product,
        cache_bytes: job.cache_bytes,
        page_bytes: job.page_size_bytes.unwrap_or(PAGE_BYTES),
        checksums: job.checksums.unwrap_or(false),
        log: job.log,
        locks: job.locks,
        mutexes: job.mutexes,
        create: false,
        read_only: false,
    };
    match phase {
        Phase::Run => options,
        // A lock for each call keeps several apart that only add rows.
        Phase::Load => Options {
            product: if clients > 1 {
                Product::Concurrent
            } else {
                Product::DataStore
            },
            mutexes: clients > 1,
            create: true,
            ..options
        },
        // The log of a run that was cut short has what is not in its place.
        Phase::Check if options.keeps_log() => options,
        Phase::Check => Options {
            product: Product::DataStore,
            read_only: true,
            mutexes: false,
            ..options
        },
    }
}

impl Backend for Berkeley {
    type Connection = ();

    fn open(job: &Job, clients: u32, _: &Arc<AtomicBool>) -> Result<(Self, Vec<()>), Failure> {
        let BackendJob::Berkeley(berkeley) = &job.backend else {
            return Err(Failure::new(
                "internal",
                "this backend opens berkeleydb jobs only",
            ));
        };
        if job.phase == Phase::Load {
            std::fs::create_dir_all(&berkeley.folder).map_err(|error| {
                let folder = berkeley.folder.display();
                Failure::new("cannot_open", format!("making {folder}: {error}"))
            })?;
        }
        let tables = Map::ALL.map(Map::name);
        let trees: &[&str] = match job.workload {
            WorkloadJob::Tpcc(_) => &tables,
            WorkloadJob::Ycsb(_) => &USERS,
            // Nothing is asked of it.
            _ => &[],
        };
        let options = options(berkeley, job.phase, clients);
        let failing = |error| {
            let attempted = format!("opening Berkeley DB in {}", berkeley.folder.display());
            Failure::while_attempting(&attempted, &error)
        };
        let store =
            Store::open(&berkeley.folder, trees, &options).map_err(|error| failing(told(error)))?;
        let mut backend = Self {
            store,
            job: berkeley.clone(),
            history: AtomicU64::new(1),
        };
        if !trees.is_empty() {
            backend.check_effective(job.phase)?;
        }
        if job.phase == Phase::Run {
            if matches!(job.workload, WorkloadJob::Tpcc(_)) {
                let mut client = backend.client()?;
                let first = first_history(client.maps()).map_err(failing)?;
                drop(client);
                backend.history = AtomicU64::new(first);
            }
            if berkeley.preload {
                backend
                    .store
                    .read_all()
                    .map_err(|error| failing(told(error)))?;
            }
            backend.store.forget_moved();
        }
        Ok((backend, vec![(); clients as usize]))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: "berkeleydb",
            // Which one there is, if there is one: opening says why there is none.
            version: dyno_berkeley::version().unwrap_or("none").to_owned(),
            effective: Members::new(),
            status: Status::new(),
        }
    }

    fn effective(&self) -> Members<String, Value> {
        let is = self.store.effective();
        let mut effective = Members::new();
        let mut say = |key: &str, value| effective.insert(key.to_owned(), value);
        say("product", json!(BerkeleyJob::product_name(is.product)));
        say("cache_bytes", json!(is.cache_bytes));
        say("page_size_bytes", json!(is.page_bytes));
        say("checksums", json!(is.checksums));
        if let Some(log) = is.log {
            say("log", json!(BerkeleyJob::log_name(log)));
        }
        say("locks", json!(is.locks));
        say("mutexes", json!(is.mutexes));
        say("preload", json!(self.job.preload));
        effective
    }

    fn close(mut self, _: Vec<()>, cut: bool) -> Result<Status, Failure> {
        let failing = |error: dyno_berkeley::Error| {
            Failure::while_attempting("closing Berkeley DB", &told(error))
        };
        let moved = self.store.moved().map_err(failing)?;
        let page = f64::from(self.store.effective().page_bytes);
        let status = Status::from([
            ("pages_read_bytes", moved.pages_read as f64 * page),
            ("pages_written_bytes", moved.pages_written as f64 * page),
            ("log_records", moved.log_records as f64),
            ("log_writes", moved.log_writes as f64),
            ("log_syncs", moved.log_syncs as f64),
        ]);
        self.store.close(!cut).map_err(failing)?;
        Ok(status)
    }

    fn discard(self, connections: Vec<()>) -> Result<Status, Failure> {
        self.close(connections, true)
    }
}

/// A client's tables.
#[derive(Debug)]
pub struct Client<'s> {
    session: Session<'s>,
    history: &'s AtomicU64,
}

impl Connected for OrderedStore<Client<'_>> {}

const fn access(access: Access) -> dyno_berkeley::Access {
    match access {
        Access::Read => dyno_berkeley::Access::Read,
        Access::Change => dyno_berkeley::Access::Change,
    }
}

impl Maps for Client<'_> {
    fn begin(&mut self) -> Result<(), OperationError> {
        self.session.begin().map_err(told)
    }

    fn commit(&mut self) -> Result<(), OperationError> {
        self.session.commit().map_err(told)
    }

    fn rollback(&mut self) -> Result<(), OperationError> {
        self.session.rollback().map_err(told)
    }

    #[inline]
    fn get(
        &mut self,
        map: Map,
        key: &[u8],
        wanted: Access,
    ) -> Result<Option<&[u8]>, OperationError> {
        self.session
            .get(map.number(), key, access(wanted))
            .map_err(told)
    }

    #[inline]
    fn put(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<(), OperationError> {
        self.session.put(map.number(), key, value).map_err(told)
    }

    #[inline]
    fn insert(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<(), OperationError> {
        self.session.insert(map.number(), key, value).map_err(told)
    }

    fn remove(&mut self, map: Map, key: &[u8]) -> Result<bool, OperationError> {
        self.session.remove(map.number(), key).map_err(told)
    }

    fn scan(
        &mut self,
        map: Map,
        range: (&[u8], &[u8]),
        wanted: Access,
        direction: Direction,
        each: Visit<'_>,
    ) -> Result<(), OperationError> {
        let direction = match direction {
            Direction::Forwards => dyno_berkeley::Direction::Forwards,
            Direction::Backwards => dyno_berkeley::Direction::Backwards,
        };
        self.session
            .scan(map.number(), range, access(wanted), direction, each)
            .map_err(told)
    }

    fn next_history(&mut self) -> u64 {
        self.history.fetch_add(1, Ordering::Relaxed)
    }
}
