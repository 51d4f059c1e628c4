//! Readers of a ledger: whether a row that was acknowledged is there at once, on another way in.
//!
//! A reader waits for the next acknowledgement, and then asks elsewhere for that very row. One that is not there is
//! a stale read; it is asked for again until it is there, so that it is known how long that took. Meanwhile the reader
//! looks for other rows at its rate: were it to wait, what is read the latest would be looked for the least.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_sql::{Connection, Error as OperationError, Value};
use serde::Serialize;

use super::Companion;
use super::ledger::run_seed;
use crate::backend::SqlBackend;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::job::{Job, ReadersJob};

/// The row that was acknowledged last.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    driver: u32,
    client: u32,
    number: u64,
    /// In ns since the epoch.
    at_ns: u64,
    /// Its place among all that were.
    place: u64,
}

/// Where writers say what was acknowledged.
#[derive(Debug, Default)]
pub struct Board {
    latest: Mutex<Option<Fresh>>,
    news: Condvar,
}

impl Board {
    /// This row was acknowledged just now.
    pub fn post(&self, driver: u32, client: u32, number: u64) {
        let at_ns = now_ns();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(Fresh {
            driver,
            client,
            number,
            at_ns,
            place: latest.map_or(0, |fresh| fresh.place + 1),
        });
        drop(latest);
        self.news.notify_all();
    }

    /// The place of the row that was acknowledged last.
    fn place(&self) -> Option<u64> {
        self.latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .map(|fresh| fresh.place)
    }

    /// A row that was acknowledged after the one of that place, as soon as there is one; `None` where none is in time.
    fn newer(&self, place: Option<u64>, wait: Duration) -> Option<Fresh> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |latest: &mut Option<Fresh>| latest.map(|fresh| fresh.place) == place;
        let (latest, waited) = self
            .news
            .wait_timeout_while(latest, wait, is_old)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { None } else { *latest }
    }
}

/// How soon whoever waits sees that it is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Between two looks for a row that was not there.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Between two attempts to connect anew.
const COME_BACK: Duration = Duration::from_millis(10);

/// What readers found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadCount {
    /// Rows that were looked for, and an answer came.
    pub reads: u64,
    /// Those that were not there at first.
    pub stale: u64,
    /// Those of them that were not there as long as they were looked for.
    pub unseen: u64,
    /// Rows of which no answer came.
    pub failed: u64,
    /// The longest that a row took from its acknowledgement until it was there, of those that were stale.
    pub longest_ns: u64,
}

/// How one look for a row went.
struct Look {
    fresh: Fresh,
    sent_ns: u64,
    ended_ns: u64,
    /// What went wrong, or whether the row was there.
    answer: Result<bool, OperationError>,
    /// When it was there; `None` where it never was.
    seen_ns: Option<u64>,
}

/// A row that was not there, and is looked for until then.
struct Late {
    look: Look,
    until: Instant,
}

/// All readers of a run.
#[derive(Debug)]
pub struct Readers<'j> {
    job: &'j ReadersJob,
    seed: u64,
    driver: u64,
    board: Board,
    count: Mutex<ReadCount>,
}

impl<'j> Readers<'j> {
    pub fn new(readers: &'j ReadersJob, job: &Job) -> Self {
        Self {
            job: readers,
            seed: job.seed,
            driver: job.driver.number,
            board: Board::default(),
            count: Mutex::default(),
        }
    }

    /// Where they are told.
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// What they found so far.
    pub fn count(&self) -> ReadCount {
        self.count
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One for each, connected; what they find goes to `folder` too.
    pub fn companions<'s, B: SqlBackend + 's>(
        &'s self,
        backend: &'s B,
        folder: &Path,
        over: &'s AtomicBool,
    ) -> Result<Vec<Companion<'s>>, Failure> {
        (0..self.job.clients)
            .map(|number| {
                let mut connection = B::connect(&self.job.server)?;
                let interrupter = backend.session(&mut connection).interrupter();
                let mut record = Record::create(folder, self.driver, number)?;
                Ok(Companion {
                    interrupter,
                    body: Box::new(move || {
                        self.read(backend.session(&mut connection), &mut record, over)?;
                        record.finish()
                    }),
                })
            })
            .collect()
    }

    fn read<C: Connection>(
        &self,
        mut session: C,
        record: &mut Record,
        over: &AtomicBool,
    ) -> Result<(), Failure> {
        let period =
            Duration::from_secs_f64(f64::from(self.job.clients) / self.job.rate_per_s.max(1e-6));
        let mut select = None;
        let mut late = VecDeque::new();
        let mut due = Instant::now();
        let mut awaited = None;
        while !over.load(Ordering::Relaxed) {
            let patience = if late.is_empty() {
                LOOK_EVERY
            } else {
                LOOK_AGAIN
            };
            let wait = due.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                let place = *awaited.get_or_insert_with(|| self.board.place());
                if let Some(fresh) = self.board.newer(place, patience) {
                    awaited = None;
                    due = (due + period).max(Instant::now());
                    let look = self.look(&mut session, &mut select, fresh);
                    // What the end of the run cut off is neither.
                    if look.answer.is_err() && over.load(Ordering::Relaxed) {
                        break;
                    }
                    if matches!(look.answer, Ok(false)) {
                        let until = Instant::now() + self.job.give_up;
                        late.push_back(Late { look, until });
                    } else {
                        self.keep(&look, record)?;
                    }
                }
            } else {
                thread::sleep(wait.min(patience));
            }
            if let Some(next) = late.pop_front() {
                match self.look_again(&mut session, &mut select, next) {
                    (look, None) => self.keep(&look, record)?,
                    (look, Some(until)) => late.push_back(Late { look, until }),
                }
            }
        }
        for Late { look, .. } in &late {
            self.keep(look, record)?;
        }
        Ok(())
    }

    fn keep(&self, look: &Look, record: &mut Record) -> Result<(), Failure> {
        self.add(look);
        record.note(look)
    }

    fn look<C: Connection>(
        &self,
        session: &mut C,
        select: &mut Option<C::Statement>,
        fresh: Fresh,
    ) -> Look {
        let sent_ns = now_ns();
        let answer = self.is_there(session, select, fresh);
        let ended_ns = now_ns();
        if let Err(error) = &answer {
            *select = None;
            if error.kind.breaks_connection() {
                // Whether it stands again is found out by the next look.
                thread::sleep(COME_BACK);
                let _ = session.reconnect();
            }
        }
        Look {
            fresh,
            sent_ns,
            ended_ns,
            seen_ns: matches!(answer, Ok(true)).then_some(ended_ns),
            answer,
        }
    }

    /// One more look, and until when there are to be others.
    fn look_again<C: Connection>(
        &self,
        session: &mut C,
        select: &mut Option<C::Statement>,
        late: Late,
    ) -> (Look, Option<Instant>) {
        let Late { mut look, until } = late;
        match self.is_there(session, select, look.fresh) {
            Ok(true) => {
                look.seen_ns = Some(now_ns());
                return (look, None);
            }
            Ok(false) => {}
            Err(_) => {
                *select = None;
                let _ = session.reconnect();
            }
        }
        (look, Some(until).filter(|until| Instant::now() < *until))
    }

    fn is_there<C: Connection>(
        &self,
        session: &mut C,
        select: &mut Option<C::Statement>,
        fresh: Fresh,
    ) -> Result<bool, OperationError> {
        let statement = match select {
            Some(statement) => statement,
            None => select.insert(session.prepare(
                "SELECT number FROM ledger WHERE run_seed = ? AND driver = ? AND client = ? AND number = ?",
            )?),
        };
        let values = [
            Value::Int(run_seed(self.seed)),
            Value::Int(i64::from(fresh.driver)),
            Value::Int(i64::from(fresh.client)),
            Value::Int(fresh.number.cast_signed()),
        ];
        Ok(session.query(statement, &values, |_| Ok(()))? > 0)
    }

    fn add(&self, look: &Look) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        match look.answer {
            Ok(there) => {
                count.reads += 1;
                count.stale += u64::from(!there);
                count.unseen += u64::from(look.seen_ns.is_none());
                if let Some(seen_ns) = look.seen_ns
                    && !there
                {
                    let took_ns = seen_ns.saturating_sub(look.fresh.at_ns);
                    count.longest_ns = count.longest_ns.max(took_ns);
                }
            }
            Err(_) => count.failed += 1,
        }
    }
}

/// What a reader found, row by row, with times in ns since the epoch.
#[derive(Debug)]
struct Record {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Record {
    fn create(folder: &Path, driver: u64, reader: u32) -> Result<Self, Failure> {
        let path = folder.join(format!("reads-{driver}-{reader}.csv"));
        let mut file = File::create(&path)
            .map(BufWriter::new)
            .map_err(|error| failed(&path, &error))?;
        writeln!(file, "acknowledged_ns,sent_ns,ended_ns,outcome,seen_ns")
            .map_err(|error| failed(&path, &error))?;
        Ok(Self { file, path })
    }

    fn note(&mut self, look: &Look) -> Result<(), Failure> {
        let outcome = match &look.answer {
            Ok(true) => "seen",
            Ok(false) => "stale",
            Err(error) => error.kind.name(),
        };
        let seen = look
            .seen_ns
            .map_or_else(String::new, |seen_ns| seen_ns.to_string());
        let (at_ns, sent_ns, ended_ns) = (look.fresh.at_ns, look.sent_ns, look.ended_ns);
        writeln!(self.file, "{at_ns},{sent_ns},{ended_ns},{outcome},{seen}")
            .map_err(|error| failed(&self.path, &error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.file
            .flush()
            .map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new("io", format!("writing {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::failure::ErrorKind;
    use crate::job::BackendJob;
    use crate::job::backend::NullJob;

    #[test]
    fn whoever_waits_is_given_what_is_acknowledged_after_it_began_to_wait_and_nothing_older() {
        let board = Arc::new(Board::default());
        board.post(0, 1, 7);
        let posts = Arc::clone(&board);
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            posts.post(0, 2, 8);
        });
        let fresh = board.newer(board.place(), Duration::from_secs(60)).unwrap();
        assert_eq!((fresh.client, fresh.number, fresh.place), (2, 8, 1));
        writer.join().unwrap();
    }

    #[test]
    fn whoever_waits_for_what_does_not_come_is_let_go() {
        let board = Board::default();
        assert!(board.newer(None, Duration::ZERO).is_none());
        board.post(0, 1, 7);
        assert!(
            board
                .newer(board.place(), Duration::from_millis(1))
                .is_none()
        );
        assert!(board.newer(None, Duration::ZERO).is_some());
    }

    #[test]
    fn a_row_that_came_late_is_stale_and_one_that_never_came_is_unseen_too() {
        let readers = ReadersJob {
            clients: 1,
            rate_per_s: 1.0,
            give_up: Duration::ZERO,
            server: BackendJob::Null(NullJob::default()),
        };
        let readers = Readers {
            job: &readers,
            seed: 1,
            driver: 0,
            board: Board::default(),
            count: Mutex::default(),
        };
        let fresh = Fresh {
            driver: 0,
            client: 0,
            number: 0,
            at_ns: 100,
            place: 0,
        };
        for (answer, seen_ns) in [
            (Ok(true), Some(130)),
            (Ok(false), Some(400)),
            (Ok(false), None),
            (Err(OperationError::new(ErrorKind::Timeout, "")), None),
        ] {
            readers.add(&Look {
                fresh,
                sent_ns: 110,
                ended_ns: 130,
                answer,
                seen_ns,
            });
        }
        let expected = ReadCount {
            reads: 3,
            stale: 2,
            unseen: 1,
            failed: 1,
            longest_ns: 300,
        };
        assert_eq!(readers.count(), expected);
    }
}
