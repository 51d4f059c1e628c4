//! `SQLite` within this process, a connection a client.
//!
//! A lock held by another connection is waited for as `SQLite`'s own busy timeout does, with the same
//! pauses, but no longer once the run is to stop.

mod settings;
mod threads;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_sql::sqlite::{Session, classify, pages_read};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{OpenFlags, ffi};
use serde_json::{Map, Value};

use super::{Backend, BackendReport, SqlBackend, Status};
use crate::failure::{ErrorKind, Failure};
use crate::job::{BackendJob, Job, JournalMode, Phase, SqliteConfig, ThreadingMode};
use dyno_sql::Error as OperationError;

/// The version of the library that is built in.
#[must_use]
pub fn version() -> &'static str {
    rusqlite::version()
}

/// An opened database: what its connections share.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    phase: Phase,
    effective: SqliteConfig,
    /// Whether the file was not there before.
    created: bool,
    /// Pages that opening and preloading read.
    read_before: f64,
}

impl Backend for Sqlite {
    type Connection = rusqlite::Connection;

    fn open(
        job: &Job,
        clients: u32,
        halt: &Arc<AtomicBool>,
    ) -> Result<(Self, Vec<rusqlite::Connection>), Failure> {
        let BackendJob::Sqlite(backend) = &job.backend else {
            return Err(Failure::new(
                "internal",
                "this backend opens sqlite jobs only",
            ));
        };
        let path = absolute(Path::new(&backend.path))?;
        let created = !path.exists();
        let asked = &SqliteConfig {
            // Other phases are of the file.
            in_memory: backend.config.in_memory.filter(|_| job.phase == Phase::Run),
            preload: backend.config.preload.filter(|_| job.phase == Phase::Run),
            ..backend.config.clone()
        };
        threads::configure(asked).map_err(|error| at(&path, classify(&error)))?;
        // The journal mode can be changed only while no other connection is open.
        let (first, effective) = connect(&path, job.phase, asked, halt)?;
        let mut connections = vec![first];
        for _ in 1..clients {
            let (next, also) = connect(&path, job.phase, asked, halt)?;
            settings::check_same(&effective, &also)?;
            connections.push(next);
        }
        let backend = Self {
            path,
            phase: job.phase,
            effective,
            created,
            read_before: connections.iter().map(pages_read).sum(),
        };
        Ok((backend, connections))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: "sqlite",
            version: version().to_owned(),
            effective: Map::new(),
            status: Status::new(),
        }
    }

    fn effective(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.effective) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }

    fn close(
        self,
        mut connections: Vec<rusqlite::Connection>,
        cut: bool,
    ) -> Result<Status, Failure> {
        let fail = |error: &rusqlite::Error| at(&self.path, classify(error));
        let mut status = Status::new();
        let read = connections.iter().map(pages_read).sum::<f64>() - self.read_before;
        let page_bytes = self.effective.page_size_bytes.unwrap_or(0) as f64;
        status.insert("pages_read_bytes", read * page_bytes);
        let Some(database) = connections.pop() else {
            return Ok(status);
        };
        for connection in connections {
            // Only the last to close may write the log back, below.
            connection.close().map_err(|(_, error)| fail(&error))?;
        }
        if !cut && self.phase == Phase::Load {
            self.fold_journal(&database).map_err(|error| fail(&error))?;
        }
        for (name, pragma) in [
            ("page_count", "page_count"),
            ("free_pages", "freelist_count"),
        ] {
            let value: i64 = database
                .pragma_query_value(None, pragma, |row| row.get(0))
                .map_err(|error| fail(&error))?;
            status.insert(name, value as f64);
        }
        status.insert("wal_bytes", file_size(&self.beside("-wal")));
        if !cut && self.effective.in_memory == Some(true) {
            self.write_back(&database).map_err(|error| fail(&error))?;
        }
        if cut {
            // Writing a long log back could take longer than whoever stopped the run waits for.
            database
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
                .map_err(|error| fail(&error))?;
        }
        database.close().map_err(|(_, error)| fail(&error))?;
        if !cut && self.phase == Phase::Load {
            self.make_durable().map_err(|error| {
                Failure::new("io", format!("syncing {}: {error}", self.path.display()))
            })?;
        }
        status.insert("database_bytes", file_size(&self.path));
        Ok(status)
    }

    fn discard(self, connections: Vec<rusqlite::Connection>) -> Result<Status, Failure> {
        let files = ["", "-wal", "-shm", "-journal"].map(|suffix| self.beside(suffix));
        let created = self.created;
        let status = self.close(connections, true)?;
        if created {
            for file in files {
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        let message = format!("removing {}: {error}", file.display());
                        return Err(Failure::new("io", message));
                    }
                    _ => {}
                }
            }
        }
        Ok(status)
    }
}

impl SqlBackend for Sqlite {
    type Session<'c> = Session<'c>;

    const ONE_WRITER: bool = true;

    fn session<'c>(&'c self, connection: &'c mut rusqlite::Connection) -> Session<'c> {
        Session::new(connection)
    }
}

impl Sqlite {
    /// Brings everything into the database file: a data set is this one file.
    fn fold_journal(&self, database: &rusqlite::Connection) -> rusqlite::Result<()> {
        if self.effective.journal_mode == Some(JournalMode::Wal) {
            let busy: i64 =
                database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if busy != 0 {
                return Err(rusqlite::Error::SqliteFailure(
                    ffi::Error::new(ffi::SQLITE_BUSY),
                    Some("the log could not be written back: the file is in use elsewhere".into()),
                ));
            }
        } else {
            // Empty journals of other modes go with the change to this one, which the file does not
            // remember.
            database.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
        }
        Ok(())
    }

    /// Puts what was done in memory into the file, for whoever looks at it next.
    fn write_back(&self, memory: &rusqlite::Connection) -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut file = threads::open(&self.path, flags, &self.effective)?;
        copy(memory, &mut file)
    }

    fn make_durable(&self) -> std::io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// The name of a file that the database keeps beside its own.
    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }
}

/// An absolute path cannot be taken for a URI, which would begin with `file:`.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        Failure::new(
            "cannot_open",
            format!("finding {}: {error}", path.display()),
        )
    })
}

fn file_size(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64)
}

fn connect(
    path: &Path,
    phase: Phase,
    asked: &SqliteConfig,
    halt: &Arc<AtomicBool>,
) -> Result<(rusqlite::Connection, SqliteConfig), Failure> {
    let guard = if asked.threading_mode == Some(ThreadingMode::Serialized) {
        OpenFlags::SQLITE_OPEN_FULL_MUTEX
    } else {
        OpenFlags::SQLITE_OPEN_NO_MUTEX
    };
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | guard;
    if phase == Phase::Load {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut database =
        threads::open(path, flags, asked).map_err(|error| at(path, classify(&error)))?;
    if database.is_readonly("main").unwrap_or(false) {
        return Err(at(
            path,
            OperationError::new(
                ErrorKind::ReadOnly,
                "the file opens for reading only; the driver needs to write it",
            ),
        ));
    }
    if asked.in_memory == Some(true) {
        database =
            into_memory(&database, flags, asked).map_err(|error| at(path, classify(&error)))?;
    }
    let effective =
        set_up(&mut database, phase, asked, halt).map_err(|error| at(path, classify(&error)))?;
    settings::check_effective(asked, &effective)?;
    Ok((database, effective))
}

/// A copy of a database in memory.
fn into_memory(
    file: &rusqlite::Connection,
    flags: OpenFlags,
    asked: &SqliteConfig,
) -> rusqlite::Result<rusqlite::Connection> {
    let mut memory = threads::open(Path::new(":memory:"), flags, asked)?;
    // A copy has the pages of what it is made of, and one in memory cannot change those that it has.
    let bytes: i64 = file.pragma_query_value(None, "page_size", |row| row.get(0))?;
    memory.pragma_update(None, "page_size", bytes)?;
    // Nor has it a log beside it, of which the file's first page tells.
    file.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    copy(file, &mut memory)?;
    Ok(memory)
}

fn copy(from: &rusqlite::Connection, to: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    match backup.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            Some("the database could not be copied: it is in use elsewhere".into()),
        )),
    }
}

/// `SQLite`'s own pauses between two attempts at a lock, in ms; the last one repeats.
const PAUSES_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// Applies what is asked, and gives all settings as read back.
fn set_up(
    database: &mut rusqlite::Connection,
    phase: Phase,
    asked: &SqliteConfig,
    halt: &Arc<AtomicBool>,
) -> rusqlite::Result<SqliteConfig> {
    let busy_timeout_ms = settings::apply_busy_timeout(database, asked)?;
    wait_for_locks(database, Duration::from_millis(busy_timeout_ms), halt)?;
    settings::apply(database, phase, asked)?;
    let preloads = asked.preload == Some(true);
    if preloads {
        settings::preload(database)?;
    }
    settings::read_back(database, busy_timeout_ms, preloads)
}

/// Puts a waiter in place of the library's own, which nothing can end early.
fn wait_for_locks(
    database: &mut rusqlite::Connection,
    limit: Duration,
    halt: &Arc<AtomicBool>,
) -> rusqlite::Result<()> {
    let halt = Arc::clone(halt);
    let mut waiting_since = Instant::now();
    database.busy_handler(Some(move |attempt: i32| {
        if attempt == 0 {
            waiting_since = Instant::now();
        }
        let left = limit.saturating_sub(waiting_since.elapsed());
        if left.is_zero() || halt.load(Ordering::Relaxed) {
            return false;
        }
        let pause = usize::try_from(attempt)
            .ok()
            .and_then(|attempt| PAUSES_MS.get(attempt))
            .unwrap_or(&PAUSES_MS[PAUSES_MS.len() - 1]);
        std::thread::sleep(Duration::from_millis(*pause).min(left));
        true
    }))
}

fn at(path: &Path, error: OperationError) -> Failure {
    Failure::new(
        error.kind.name(),
        format!("database {}: {}", path.display(), error.message),
    )
}
