//! What the library guards and counts for several threads: set once a process, before it is used.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use rusqlite::{Connection, Error, OpenFlags, Result, ffi};

use crate::job::{SqliteConfig, ThreadingMode};

fn check(code: c_int, attempted: &str) -> Result<()> {
    if code == ffi::SQLITE_OK {
        return Ok(());
    }
    Err(Error::SqliteFailure(
        ffi::Error::new(code),
        Some(format!("{attempted}: the library refuses")),
    ))
}

/// Sets what belongs to the whole library. It refuses once it was used.
pub(super) fn configure(asked: &SqliteConfig) -> Result<()> {
    // SAFETY: options of the library that take nothing or one number, given as such. It guards them by no mutex; whoever
    // opens the store is the first and only one to use the library by then, or it refuses.
    unsafe {
        if asked.threading_mode == Some(ThreadingMode::SingleThread) {
            let code = ffi::sqlite3_config(ffi::SQLITE_CONFIG_SINGLETHREAD);
            check(code, "SQLITE_CONFIG_SINGLETHREAD")?;
        }
        if let Some(on) = asked.memory_statistics {
            let code = ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, c_int::from(on));
            check(code, "SQLITE_CONFIG_MEMSTATUS")?;
        }
    }
    Ok(())
}

/// Opens a database. Without mutexes past the door of the library's binding, which lets nobody in then, since it cannot
/// know that there is one thread.
pub(super) fn open(path: &Path, flags: OpenFlags, asked: &SqliteConfig) -> Result<Connection> {
    if asked.threading_mode != Some(ThreadingMode::SingleThread) {
        return Connection::open_with_flags(path, flags);
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut handle = null_mut();
    // SAFETY: the name ends in 0 and lives until the call returns. The job has one client, so that one thread at a time uses
    // the library: who opens the store hands it to the client, and takes it back when that has ended.
    unsafe {
        let code = ffi::sqlite3_open_v2(name.as_ptr(), &raw mut handle, flags.bits(), null());
        if code != ffi::SQLITE_OK {
            ffi::sqlite3_close(handle);
            check(code, "opening without mutexes")?;
        }
        // As the binding has it, by which its errors are told apart.
        ffi::sqlite3_extended_result_codes(handle, 1);
        Connection::from_handle_owned(handle)
    }
}

/// What the library guards for this connection, as it shows itself.
pub(super) fn mode(database: &Connection) -> ThreadingMode {
    // SAFETY: the handle is valid while `database` is borrowed; the mutexes are given back at once.
    unsafe {
        // Real mutexes are things of their own; those that guard nothing are all the same one.
        let [first, second] = [(); 2].map(|()| ffi::sqlite3_mutex_alloc(ffi::SQLITE_MUTEX_FAST));
        let alike = first == second;
        ffi::sqlite3_mutex_free(first);
        ffi::sqlite3_mutex_free(second);
        if alike {
            ThreadingMode::SingleThread
        } else if ffi::sqlite3_db_mutex(database.handle()).is_null() {
            ThreadingMode::MultiThread
        } else {
            ThreadingMode::Serialized
        }
    }
}

/// Whether the library counts its memory: it has some while a database is open.
pub(super) fn counts_memory() -> bool {
    // SAFETY: it takes nothing and reads a counter.
    unsafe { ffi::sqlite3_memory_used() > 0 }
}
