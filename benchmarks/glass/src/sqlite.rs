//! `SQLite` in memory, at its best for one thread: statements are prepared once, by the driver's own code; no mutexes, no counting
//! of memory, no waiting for others, nothing synced. Pages have its default size.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use dyno_sql::sqlite::Session;
use dyno_tpcc::{Config, Loader, create_indexes, create_tables};
use rusqlite::{Connection, ffi};

use crate::Result;

fn check(code: c_int, attempted: &str) -> Result<()> {
    if code == ffi::SQLITE_OK {
        return Ok(());
    }
    Err(format!("{attempted}: status {code}").into())
}

/// Turns off what the library does for several threads, and counts. It refuses once it was used.
pub fn configure() -> Result<()> {
    // SAFETY: options that take nothing and one number, given as such; this process has one thread.
    unsafe {
        check(
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_SINGLETHREAD),
            "SQLITE_CONFIG_SINGLETHREAD",
        )?;
        check(
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0),
            "SQLITE_CONFIG_MEMSTATUS",
        )
    }
}

/// A database in memory, past the door of the library's binding, which lets nobody in without mutexes.
fn open() -> Result<Connection> {
    let mut handle = null_mut();
    let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
    // SAFETY: the name ends in 0 and lives for ever; this process has one thread.
    unsafe {
        let code = ffi::sqlite3_open_v2(c":memory:".as_ptr(), &raw mut handle, flags, null());
        if code != ffi::SQLITE_OK {
            ffi::sqlite3_close(handle);
            check(code, "opening of SQLite in memory")?;
        }
        // As the binding has it, by which its errors are told apart.
        ffi::sqlite3_extended_result_codes(handle, 1);
        Ok(Connection::from_handle_owned(handle)?)
    }
}

/// With all tables, and that journal: `memory` to be able to roll back, `off` to have none. Says how the library has it.
pub fn load(journal: &str, config: &Config) -> Result<(Session<'static>, String)> {
    let database: &Connection = Box::leak(Box::new(open()?));
    database.execute_batch(&format!(
        "PRAGMA locking_mode = exclusive; PRAGMA journal_mode = {journal}; PRAGMA synchronous = off"
    ))?;
    let mut session = Session::new(database);
    create_tables(&mut session)?;
    let loader = Loader::new(config);
    while loader.load_next(&mut session)?.is_some() {}
    create_indexes(&mut session)?;
    let settings = settings(database)?;
    Ok((session, settings))
}

/// What the library says of itself and of this database.
fn settings(database: &Connection) -> Result<String> {
    let mut text = format!("version={}", rusqlite::version());
    for name in [
        "journal_mode",
        "synchronous",
        "locking_mode",
        "page_size",
        "auto_vacuum",
    ] {
        let value = database.query_row(&format!("PRAGMA {name}"), [], |row| {
            row.get::<_, rusqlite::types::Value>(0)
        })?;
        match value {
            rusqlite::types::Value::Text(value) => text.push_str(&format!(" {name}={value}")),
            rusqlite::types::Value::Integer(value) => text.push_str(&format!(" {name}={value}")),
            other => return Err(format!("PRAGMA {name} says {other:?}").into()),
        }
    }
    // SAFETY: the first takes nothing and reads a counter; the handle is valid while the database is borrowed.
    let (memory, mutex) = unsafe {
        (
            ffi::sqlite3_memory_used(),
            ffi::sqlite3_db_mutex(database.handle()),
        )
    };
    let mutexes = if mutex.is_null() { "none" } else { "some" };
    text.push_str(&format!(" memory_counted={memory} mutexes={mutexes}"));
    Ok(text)
}
