//! The pragmas: set, read back, and compared with what was asked.

use rusqlite::{Connection, OptionalExtension as _, Result};

use super::threads;
use crate::failure::Failure;
use crate::job::{JournalMode, LockingMode, Phase, SqliteConfig, Synchronous};

/// Where a job does not say how long to wait for a lock.
const BUSY_TIMEOUT_MS: u64 = 10_000;

const JOURNAL_MODES: [(&str, JournalMode); 6] = [
    ("delete", JournalMode::Delete),
    ("truncate", JournalMode::Truncate),
    ("persist", JournalMode::Persist),
    ("memory", JournalMode::Memory),
    ("wal", JournalMode::Wal),
    ("off", JournalMode::Off),
];

/// In the order of their numbers.
const SYNCHRONOUS: [(&str, Synchronous); 4] = [
    ("off", Synchronous::Off),
    ("normal", Synchronous::Normal),
    ("full", Synchronous::Full),
    ("extra", Synchronous::Extra),
];

const LOCKING_MODES: [(&str, LockingMode); 2] = [
    ("normal", LockingMode::Normal),
    ("exclusive", LockingMode::Exclusive),
];

/// Sets for how long to wait for a lock, and reads it back, in ms. Comes before the rest, which may
/// have to wait.
pub(super) fn apply_busy_timeout(database: &Connection, asked: &SqliteConfig) -> Result<u64> {
    let timeout_ms = asked.busy_timeout_ms.unwrap_or(BUSY_TIMEOUT_MS);
    set(database, "busy_timeout", &timeout_ms.to_string())?;
    let effective: i64 = database.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    Ok(effective.unsigned_abs())
}

/// Sets the rest of what the job asks for.
pub(super) fn apply(database: &Connection, phase: Phase, asked: &SqliteConfig) -> Result<()> {
    // The locking mode before the first look into the file; the page size before the journal mode,
    // which may write the first page.
    if let Some(mode) = asked.locking_mode {
        set(database, "locking_mode", name_of(&LOCKING_MODES, mode))?;
    }
    if let (Phase::Load, Some(bytes)) = (phase, asked.page_size_bytes) {
        set(database, "page_size", &bytes.to_string())?;
    }
    if let Some(mode) = asked.journal_mode {
        set(database, "journal_mode", name_of(&JOURNAL_MODES, mode))?;
    }
    if let Some(mode) = asked.synchronous {
        set(database, "synchronous", name_of(&SYNCHRONOUS, mode))?;
    }
    if let Some(bytes) = asked.cache_size_bytes {
        // A negative number means KiB, a positive one pages.
        set(database, "cache_size", &format!("-{}", bytes / 1024))?;
    }
    if let Some(bytes) = asked.mmap_size_bytes {
        set(database, "mmap_size", &bytes.to_string())?;
    }
    if let Some(on) = asked.secure_delete {
        set(database, "secure_delete", if on { "1" } else { "0" })?;
    }
    Ok(())
}

/// Some pragmas answer with a row and some do not: either is fine here, they are read back later.
fn set(database: &Connection, pragma: &str, value: &str) -> Result<()> {
    let mut statement = database.prepare(&format!("PRAGMA {pragma} = {value}"))?;
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

/// Reads every page into the cache: it looks at all pages of all trees, and at what it finds there.
pub(super) fn preload(database: &Connection) -> Result<()> {
    let found: String = database.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let damaged = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(damaged, Some(found)))
}

/// All settings as they are now. The busy timeout was read back when it was set: it shows as 0 once
/// the driver's own waiter is in place. What preloading came to is seen in the pages that are read later.
pub(super) fn read_back(
    database: &Connection,
    busy_timeout_ms: u64,
    preloaded: bool,
) -> Result<SqliteConfig> {
    let number = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let word = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, String>(0));
    let page_size = number("page_size")?;
    let cache_size = number("cache_size")?;
    let synchronous = number("synchronous")?;
    Ok(SqliteConfig {
        journal_mode: value_of(&JOURNAL_MODES, &word("journal_mode")?),
        synchronous: usize::try_from(synchronous)
            .ok()
            .and_then(|number| SYNCHRONOUS.get(number))
            .map(|(_, mode)| *mode),
        cache_size_bytes: Some(if cache_size < 0 {
            cache_size.unsigned_abs() * 1024
        } else {
            cache_size.unsigned_abs() * page_size.unsigned_abs()
        }),
        // A database in memory has none to tell.
        mmap_size_bytes: number("mmap_size").optional()?.map(i64::unsigned_abs),
        locking_mode: value_of(&LOCKING_MODES, &word("locking_mode")?),
        page_size_bytes: Some(page_size.unsigned_abs()),
        busy_timeout_ms: Some(busy_timeout_ms),
        threading_mode: Some(threads::mode(database)),
        memory_statistics: Some(threads::counts_memory()),
        // No file has no name.
        in_memory: Some(database.path().is_none_or(str::is_empty)),
        secure_delete: Some(number("secure_delete")? == 1),
        preload: Some(preloaded),
    })
}

/// Refuses to go on where a setting was accepted and then ignored.
pub(super) fn check_effective(
    asked: &SqliteConfig,
    effective: &SqliteConfig,
) -> Result<(), Failure> {
    match difference(asked, effective) {
        None => Ok(()),
        Some((key, asked, effective)) => Err(Failure::new(
            "setting_not_effective",
            format!(
                "backend.config.{key} was set to {asked} but is {effective}: \
                 {}",
                remedy(&key)
            ),
        )),
    }
}

/// Refuses connections that differ from the first.
pub(super) fn check_same(first: &SqliteConfig, other: &SqliteConfig) -> Result<(), Failure> {
    match difference(first, other) {
        None => Ok(()),
        Some((key, first, other)) => Err(Failure::new(
            "setting_not_effective",
            format!("backend.config.{key} is {first} in one connection and {other} in another"),
        )),
    }
}

fn remedy(key: &str) -> &'static str {
    match key {
        "page_size_bytes" => {
            "it is fixed when the file is created, load the data with this setting"
        }
        "threading_mode" | "memory_statistics" => {
            "it is set once a process, before the library is used"
        }
        "mmap_size_bytes" => "ask for no more than the library's limit",
        "journal_mode" => "make sure that nothing else has the file open",
        _ => "the library did not take it, ask for another value",
    }
}

/// The first setting that was asked for and is not so: its key, what was asked, what is.
fn difference(
    asked: &SqliteConfig,
    effective: &SqliteConfig,
) -> Option<(String, serde_json::Value, serde_json::Value)> {
    let members = |config| match serde_json::to_value(config) {
        Ok(serde_json::Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let effective = members(effective);
    members(asked)
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .find_map(|(key, value)| {
            let is = effective.get(&key).cloned().unwrap_or_default();
            (is != value).then_some((key, value, is))
        })
}

fn name_of<T: PartialEq + Copy>(names: &'static [(&'static str, T)], value: T) -> &'static str {
    names
        .iter()
        .find(|(_, known)| *known == value)
        .map_or("", |(name, _)| name)
}

fn value_of<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_not_as_asked_is_named_with_both_values() {
        let asked = SqliteConfig {
            mmap_size_bytes: Some(8),
            ..SqliteConfig::default()
        };
        let effective = SqliteConfig {
            mmap_size_bytes: Some(4),
            page_size_bytes: Some(4096),
            ..SqliteConfig::default()
        };
        let failure = check_effective(&asked, &effective).unwrap_err();
        assert_eq!(failure.kind, "setting_not_effective");
        assert!(
            failure
                .message
                .contains("mmap_size_bytes was set to 8 but is 4")
        );
        // What was not asked for may be anything.
        assert_eq!(
            check_effective(&SqliteConfig::default(), &effective),
            Ok(())
        );
    }

    #[test]
    fn every_setting_of_a_fresh_database_is_read_back() {
        // A file, since a database in memory has no mmap_size.
        let path = std::env::temp_dir().join(format!("dyno-settings-{}.db", std::process::id()));
        let database = Connection::open(&path).unwrap();
        let settings = serde_json::to_value(read_back(&database, 7, false).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        for (key, value) in settings.as_object().unwrap() {
            assert!(!value.is_null(), "{key}");
        }
    }
}
