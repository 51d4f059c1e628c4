//! A store: an environment of the library with its B-trees, and sessions that use them. All that is unsafe is here.
//!
//! Invariants. The library stays loaded until the process ends. A handle is used only between the call that made it and the
//! one that closes it: B-trees are closed before their environment, and a [`Store`] cannot be closed while a session
//! borrows it. Handles that are not free-threaded are used by one session at a time, which the store sees to, and by nobody
//! else meanwhile. No other store is open in the same folder, here or in another process.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::{File, TryLockError};
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use libloading::Library;

use crate::layout::number as n;
use crate::layout::{COUNTER_BYTES, DBT_BYTES, db, dbc, dbt, env, log_stat, mpool_stat, txn};
use crate::{Effective, Error, Kind, Log, Options, Product, Result};

/// The file of the library.
pub const LIBRARY: &str = "libdb-5.3.so";
/// Debian's package that has it.
pub const PACKAGE: &str = "libdb5.3";
/// The version whose layout is known.
pub const VERSION: (c_int, c_int, c_int) = (5, 3, 28);

/// A B-tree, by its place among the names that a store was opened with.
pub type Map = usize;

/// What a key is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read.
    Read,
    /// To be changed in the same transaction: it is locked as if it was written.
    Change,
}

/// Which way a range is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key on.
    Forwards,
    /// From the greatest key on.
    Backwards,
}

/// What a store has moved since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Pages that were read into the cache.
    pub pages_read: u64,
    /// Pages that were written from it.
    pub pages_written: u64,
    /// Records that the log was given; one in memory alone has them too.
    pub log_records: u64,
    /// Times that the log was written.
    pub log_writes: u64,
    /// Times that the log was synced.
    pub log_syncs: u64,
}

type Handle = *mut c_void;
type ErrorCallback = unsafe extern "C" fn(*const c_void, *const c_char, *const c_char);

/// The functions that the library exports; all others are in its structures.
struct Api {
    env_create: unsafe extern "C" fn(*mut Handle, u32) -> c_int,
    db_create: unsafe extern "C" fn(*mut Handle, Handle, u32) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: String,
    _library: Library,
}

/// A key or a value, as the library has it.
#[repr(C)]
struct Dbt {
    data: *mut c_void,
    size: u32,
    /// How many bytes there are at `data`, for an answer.
    ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

const _: () = {
    assert!(offset_of!(Dbt, data) == dbt::DATA && offset_of!(Dbt, size) == dbt::SIZE);
    assert!(offset_of!(Dbt, ulen) == dbt::ULEN && offset_of!(Dbt, dlen) == dbt::DLEN);
    assert!(offset_of!(Dbt, doff) == dbt::DOFF && offset_of!(Dbt, app_data) == dbt::APP_DATA);
    assert!(offset_of!(Dbt, flags) == dbt::FLAGS && size_of::<Dbt>() == DBT_BYTES);
    assert!(size_of::<u64>() == COUNTER_BYTES);
};

impl Dbt {
    /// Of bytes that are given; the library only reads them.
    fn given(bytes: &[u8]) -> Result<Self> {
        let size = u32::try_from(bytes.len())
            .map_err(|_| Error::new(Kind::Refused, "more than 4 GB in a key or a value"))?;
        Ok(Self {
            data: bytes.as_ptr().cast_mut().cast(),
            size,
            ulen: size,
            ..Self::none()
        })
    }

    /// To be filled: `size` of the bytes are what is asked for, and all of them may be overwritten.
    fn room(bytes: &mut [u8], size: usize) -> Self {
        Self {
            data: bytes.as_mut_ptr().cast(),
            size: u32::try_from(size).unwrap_or(u32::MAX),
            ulen: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            flags: n::DB_DBT_USERMEM.cast_unsigned(),
            ..Self::none()
        }
    }

    const fn none() -> Self {
        Self {
            data: null_mut(),
            size: 0,
            ulen: 0,
            dlen: 0,
            doff: 0,
            app_data: null_mut(),
            flags: 0,
        }
    }
}

/// Calls the function that a member of a structure points to, with the structure first. Gives the library's answer.
macro_rules! call {
    ($object:expr, $place:expr $(, $argument:expr => $type:ty)* $(,)?) => {{
        type Function = unsafe extern "C" fn(Handle $(, $type)*) -> c_int;
        let object: Handle = $object;
        let function = object.byte_add($place).cast::<Function>().read();
        function(object $(, $argument)*)
    }};
}

const fn flag(number: i32) -> u32 {
    number.cast_unsigned()
}

thread_local! {
    /// What the library said last in this thread: an error's number alone tells little.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps what the library says of errors, instead of having it printed.
unsafe extern "C" fn listen(_: *const c_void, _: *const c_char, message: *const c_char) {
    if !message.is_null() {
        // SAFETY: the library gives a text that ends in 0 and lives until this returns.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
        // A thread that is ending has nowhere to keep it, and nothing may unwind into the library.
        let _ = SAID.try_with(|said| {
            if let Ok(mut said) = said.try_borrow_mut() {
                said.clear();
                said.push_str(&message);
            }
        });
    }
}

/// The library, loaded once. Fails in one line where it is not there.
fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api> {
    if cfg!(not(target_pointer_width = "64")) {
        let message = "Berkeley DB is known to dyno on machines of 64 bits alone";
        return Err(Error::new(Kind::Absent, message));
    }
    let absent = |error: libloading::Error| {
        // The loader's own words are the error's cause.
        let cause = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        let message = format!("Berkeley DB is not there (apt-get install {PACKAGE}): {cause}");
        Error::new(Kind::Absent, message)
    };
    // SAFETY: loading it runs nothing but what the C library needs, and the functions are of the types that its header has
    // had in all of 5.3.
    unsafe {
        let library = Library::new(LIBRARY).map_err(absent)?;
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char =
            *library.get(c"db_version").map_err(absent)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        version(&raw mut major, &raw mut minor, &raw mut patch);
        if (major, minor, patch) != VERSION {
            let (known, found) = (VERSION, (major, minor, patch));
            let message = format!(
                "{LIBRARY} is version {}.{}.{}, and dyno knows how {}.{}.{} is laid out",
                found.0, found.1, found.2, known.0, known.1, known.2
            );
            return Err(Error::new(Kind::Absent, message));
        }
        Ok(Api {
            env_create: *library.get(c"db_env_create").map_err(absent)?,
            db_create: *library.get(c"db_create").map_err(absent)?,
            strerror: *library.get(c"db_strerror").map_err(absent)?,
            version: format!("{major}.{minor}.{patch}"),
            _library: library,
        })
    }
}

/// The library's version. Fails where it is not there.
pub fn version() -> Result<&'static str> {
    Ok(&api()?.version)
}

impl Api {
    /// What an answer means: an error, unless it is 0.
    fn check(&self, code: c_int, attempted: &str) -> Result<()> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.error(code, attempted))
        }
    }

    #[cold]
    fn error(&self, code: c_int, attempted: &str) -> Error {
        let kind = match code {
            n::DB_LOCK_DEADLOCK => Kind::Deadlock,
            n::DB_LOCK_NOTGRANTED => Kind::Busy,
            n::DB_KEYEXIST => Kind::Duplicate,
            n::DB_RUNRECOVERY | n::DB_PAGE_NOTFOUND => Kind::Corrupt,
            n::DB_LOG_BUFFER_FULL | libc::ENOMEM => Kind::OutOfMemory,
            libc::ENOSPC | libc::EDQUOT => Kind::DiskFull,
            libc::EIO | libc::ENOENT | libc::EACCES | libc::EROFS | libc::EMFILE => Kind::Io,
            _ => Kind::Refused,
        };
        // SAFETY: the text ends in 0, and is copied before anybody can ask for another.
        let meaning = unsafe { CStr::from_ptr((self.strerror)(code)) }.to_string_lossy();
        let said = SAID.take();
        let said = if said.is_empty() {
            said
        } else {
            format!(" ({said})")
        };
        Error::new(kind, format!("{attempted}: {meaning}{said}"))
    }
}

/// An open environment with its B-trees.
pub struct Store {
    api: &'static Api,
    env: Handle,
    maps: Vec<Handle>,
    files: Vec<CString>,
    options: Options,
    effective: Effective,
    sessions: AtomicUsize,
    /// When the first session began.
    before: OnceLock<Moved>,
    /// Its folder, locked against other stores until this one is gone.
    _folder: File,
}

// SAFETY: no handle belongs to a thread. With a shared reference nothing but sessions reaches a handle, of which there is one
// at a time unless the handles are free-threaded.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Tables of locks: more than any transaction here has.
const MOST_LOCKS: u32 = 200_000;
/// How long a lock is waited for, in microseconds.
const LOCK_TIMEOUT_US: u32 = 10_000_000;
/// Of a log in memory. It has to hold all that transactions under way have written.
const MEMORY_LOG_BYTES: u32 = 64 << 20;
/// Of each file of a log.
const LOG_FILE_BYTES: u32 = 64 << 20;

impl Store {
    /// Opens the B-trees of these names in a folder that is there. What its log has and they have not is done again first,
    /// as after a crash.
    ///
    /// Fails where the folder is in use, and where it has a log that would not be looked at: what was committed may be
    /// there alone.
    pub fn open(folder: &Path, names: &[&str], options: &Options) -> Result<Self> {
        let api = api()?;
        let locked = lock(folder, options.read_only)?;
        if !options.keeps_log() {
            refuse_log(folder)?;
        }
        let mut env = null_mut();
        // SAFETY: it writes one pointer.
        let made = unsafe { (api.env_create)(&raw mut env, 0) };
        api.check(made, "making an environment")?;
        let mut store = Self {
            api,
            env,
            maps: Vec::new(),
            files: Vec::new(),
            options: *options,
            effective: Effective {
                product: options.product,
                cache_bytes: 0,
                page_bytes: 0,
                checksums: false,
                log: None,
                locks: false,
                mutexes: false,
            },
            sessions: AtomicUsize::new(0),
            before: OnceLock::new(),
            _folder: locked,
        };
        store.open_env(folder)?;
        for name in names {
            store.open_map(name)?;
        }
        store.effective = store.read_back()?;
        Ok(store)
    }

    fn open_env(&self, folder: &Path) -> Result<()> {
        let options = &self.options;
        let set = |code, what: &str| self.api.check(code, &format!("setting {what}"));
        let (gigabytes, bytes) = (
            u32::try_from(options.cache_bytes >> 30).unwrap_or(u32::MAX),
            (options.cache_bytes & ((1 << 30) - 1)) as u32,
        );
        let locks = options.product == Product::Concurrent
            || options.product == Product::Transactional && options.locks;
        // SAFETY: the environment was made and is not open yet, and each function is of the type that the header has.
        unsafe {
            let callback: ErrorCallback = listen;
            let hear = self.env.byte_add(env::SET_ERRCALL);
            let hear = hear.cast::<unsafe extern "C" fn(Handle, ErrorCallback)>();
            hear.read()(self.env, callback);
            let code =
                call!(self.env, env::SET_CACHESIZE, gigabytes => u32, bytes => u32, 1 => c_int);
            set(code, "the size of the cache")?;
            if locks {
                for place in [
                    env::SET_LK_MAX_LOCKS,
                    env::SET_LK_MAX_OBJECTS,
                    env::SET_LK_MAX_LOCKERS,
                ] {
                    set(
                        call!(self.env, place, MOST_LOCKS => u32),
                        "the size of the table of locks",
                    )?;
                }
            }
            if options.product == Product::Transactional {
                if options.locks {
                    let code = call!(self.env, env::SET_LK_DETECT, flag(n::DB_LOCK_DEFAULT) => u32);
                    set(code, "who ends a deadlock")?;
                    let code = call!(self.env, env::SET_TIMEOUT, LOCK_TIMEOUT_US => u32,
                        flag(n::DB_SET_LOCK_TIMEOUT) => u32);
                    set(code, "how long locks are waited for")?;
                    let code = call!(self.env, env::SET_FLAGS, flag(n::DB_TIME_NOTGRANTED) => u32,
                        1 => c_int);
                    set(code, "how waiting in vain is told")?;
                }
                let (largest, policy) = match options.log {
                    Log::Memory => (MEMORY_LOG_BYTES / 4, None),
                    Log::Written => (LOG_FILE_BYTES, Some(n::DB_TXN_WRITE_NOSYNC)),
                    Log::Synced => (LOG_FILE_BYTES, None),
                };
                if options.log == Log::Memory {
                    let code = call!(self.env, env::LOG_SET_CONFIG, flag(n::DB_LOG_IN_MEMORY) => u32,
                        1 => c_int);
                    set(code, "a log in memory")?;
                    set(
                        call!(self.env, env::SET_LG_BSIZE, MEMORY_LOG_BYTES => u32),
                        "the log's buffer",
                    )?;
                }
                set(
                    call!(self.env, env::SET_LG_MAX, largest => u32),
                    "the log's files",
                )?;
                if let Some(policy) = policy {
                    let code = call!(self.env, env::SET_FLAGS, flag(policy) => u32, 1 => c_int);
                    set(code, "when the log is synced")?;
                }
            }
        }
        let path = text(folder.as_os_str().as_bytes())?;
        let flags = self.env_flags();
        // SAFETY: as above; the text lives until the call returns.
        let code = unsafe {
            call!(self.env, env::OPEN, path.as_ptr() => *const c_char, flags => u32, 0 => c_int)
        };
        let attempted = format!("opening an environment in {}", folder.display());
        self.api.check(code, &attempted)
    }

    fn env_flags(&self) -> u32 {
        let options = &self.options;
        // In this process's own memory: the folder's lock keeps others out.
        let mut flags = flag(n::DB_CREATE | n::DB_PRIVATE | n::DB_INIT_MPOOL);
        match options.product {
            Product::DataStore => {}
            Product::Concurrent => flags |= flag(n::DB_INIT_CDB),
            Product::Transactional => {
                flags |= flag(n::DB_INIT_TXN | n::DB_INIT_LOG);
                if options.locks {
                    flags |= flag(n::DB_INIT_LOCK);
                }
                if options.keeps_log() {
                    flags |= flag(n::DB_RECOVER);
                }
            }
        }
        if options.mutexes {
            flags |= flag(n::DB_THREAD);
        }
        flags
    }

    fn open_map(&mut self, name: &str) -> Result<()> {
        let options = &self.options;
        let mut map = null_mut();
        // SAFETY: it writes one pointer; the environment is open.
        let made = unsafe { (self.api.db_create)(&raw mut map, self.env, 0) };
        self.api.check(made, "making a B-tree's handle")?;
        // Closed with the store from here on, however this ends.
        self.maps.push(map);
        let file = text(format!("{name}.db").as_bytes())?;
        let mut flags = 0;
        if options.create {
            flags |= flag(n::DB_CREATE);
            // SAFETY: the handle was made and is not open yet.
            unsafe {
                let code = call!(map, db::SET_PAGESIZE, options.page_bytes => u32);
                self.api.check(code, "setting the size of pages")?;
                if options.checksums {
                    let code = call!(map, db::SET_FLAGS, flag(n::DB_CHKSUM) => u32);
                    self.api.check(code, "setting checksums")?;
                }
            }
        }
        if options.read_only {
            flags |= flag(n::DB_RDONLY);
        } else if options.product == Product::Transactional {
            flags |= flag(n::DB_AUTO_COMMIT);
        }
        if options.mutexes {
            flags |= flag(n::DB_THREAD);
        }
        // SAFETY: as above; the text lives until the call returns.
        let code = unsafe {
            call!(map, db::OPEN, null_mut() => Handle, file.as_ptr() => *const c_char,
                null() => *const c_char, n::DB_BTREE => c_int, flags => u32, 0 => c_int)
        };
        self.files.push(file);
        self.api.check(code, &format!("opening {name}.db"))
    }

    fn read_back(&self) -> Result<Effective> {
        let (mut opened, mut flags, mut in_memory) = (0_u32, 0_u32, 0);
        let (mut gigabytes, mut bytes, mut caches) = (0_u32, 0_u32, 0);
        let (mut page_bytes, mut map_flags) = (0_u32, 0_u32);
        // SAFETY: the handles are open, no session is, and each call writes the numbers that it is given.
        unsafe {
            let code = call!(self.env, env::GET_OPEN_FLAGS, &raw mut opened => *mut u32);
            self.api.check(code, "asking what was opened")?;
            let code = call!(self.env, env::GET_FLAGS, &raw mut flags => *mut u32);
            self.api.check(code, "asking what was set")?;
            let code = call!(self.env, env::GET_CACHESIZE, &raw mut gigabytes => *mut u32,
                &raw mut bytes => *mut u32, &raw mut caches => *mut c_int);
            self.api.check(code, "asking for the cache's size")?;
            if opened & flag(n::DB_INIT_LOG) != 0 {
                let code = call!(self.env, env::LOG_GET_CONFIG, flag(n::DB_LOG_IN_MEMORY) => u32,
                    &raw mut in_memory => *mut c_int);
                self.api.check(code, "asking where the log is")?;
            }
            if let Some(map) = self.maps.first() {
                let code = call!(*map, db::GET_PAGESIZE, &raw mut page_bytes => *mut u32);
                self.api.check(code, "asking for the size of pages")?;
                let code = call!(*map, db::GET_FLAGS, &raw mut map_flags => *mut u32);
                self.api.check(code, "asking for checksums")?;
            }
        }
        let has = |number| opened & flag(number) != 0;
        let log = if in_memory != 0 {
            Log::Memory
        } else if flags & flag(n::DB_TXN_WRITE_NOSYNC) != 0 {
            Log::Written
        } else {
            Log::Synced
        };
        Ok(Effective {
            product: if has(n::DB_INIT_TXN) {
                Product::Transactional
            } else if has(n::DB_INIT_CDB) {
                Product::Concurrent
            } else {
                Product::DataStore
            },
            cache_bytes: u64::from(gigabytes) << 30 | u64::from(bytes),
            page_bytes,
            checksums: map_flags & flag(n::DB_CHKSUM) != 0,
            log: has(n::DB_INIT_TXN).then_some(log),
            locks: has(n::DB_INIT_LOCK) || has(n::DB_INIT_CDB),
            mutexes: has(n::DB_THREAD),
        })
    }

    /// How it is set, as the library said when it was open.
    #[must_use]
    pub const fn effective(&self) -> &Effective {
        &self.effective
    }

    /// A session. Refused where there is one already, and nothing would keep two apart.
    pub fn session(&self) -> Result<Session<'_>> {
        let before = self.sessions.fetch_add(1, Ordering::Acquire);
        if before > 0 && !self.options.takes_several() {
            self.sessions.fetch_sub(1, Ordering::Release);
            let message = "a second session on a store that has no mutexes, or no locks";
            return Err(Error::new(Kind::Refused, message));
        }
        let session = Session {
            store: self,
            txn: null_mut(),
            key: vec![0; 256],
            value: vec![0; 4096],
        };
        if before == 0 {
            // Another session may ask at the same time, of a store that can bear it.
            let moved = self.count()?;
            let _ = self.before.set(moved);
        }
        Ok(session)
    }

    /// Reads every page into the cache, those between a tree's root and its leaves too.
    pub fn read_all(&mut self) -> Result<()> {
        for map in &self.maps {
            let mut found: Handle = null_mut();
            // SAFETY: the handle is open, and no session is. The library counts what it finds on each page, in a structure
            // that it allocates by malloc and leaves to the caller.
            let code = unsafe {
                let code = call!(*map, db::STAT, null_mut() => Handle, &raw mut found => *mut Handle,
                    0 => u32);
                libc::free(found);
                code
            };
            self.api.check(code, "reading all pages")?;
        }
        Ok(())
    }

    /// What was moved since the first session began.
    pub fn moved(&mut self) -> Result<Moved> {
        let before = self.before.get().copied().unwrap_or_default();
        let now = self.count()?;
        Ok(Moved {
            pages_read: now.pages_read - before.pages_read,
            pages_written: now.pages_written - before.pages_written,
            log_records: now.log_records - before.log_records,
            log_writes: now.log_writes - before.log_writes,
            log_syncs: now.log_syncs - before.log_syncs,
        })
    }

    /// Begins to count anew what is moved. What the caller did until now is not of the sessions that follow.
    pub fn forget_moved(&mut self) {
        self.before = OnceLock::new();
    }

    /// Called by whoever has the store, or its only session.
    fn count(&self) -> Result<Moved> {
        let mut moved = Moved::default();
        let mut found: Handle = null_mut();
        // SAFETY: the environment is open. The library allocates the structure by malloc and leaves it to the caller, and
        // the counters are of 64 bits at these places.
        unsafe {
            let code = call!(self.env, env::MEMP_STAT, &raw mut found => *mut Handle,
                null_mut() => *mut Handle, 0 => u32);
            self.api.check(code, "asking for the cache's counters")?;
            let read = |found: Handle, place| found.byte_add(place).cast::<u64>().read();
            moved.pages_read = read(found, mpool_stat::PAGE_IN);
            moved.pages_written = read(found, mpool_stat::PAGE_OUT);
            libc::free(found);
            if self.options.product == Product::Transactional {
                found = null_mut();
                let code = call!(self.env, env::LOG_STAT, &raw mut found => *mut Handle, 0 => u32);
                self.api.check(code, "asking for the log's counters")?;
                moved.log_records = read(found, log_stat::RECORDS);
                moved.log_writes = read(found, log_stat::WRITES);
                if self.effective.log != Some(Log::Memory) {
                    // Of a log without files it counts those that it would have had to do.
                    moved.log_syncs = read(found, log_stat::SYNCS);
                }
                libc::free(found);
            }
        }
        Ok(moved)
    }

    /// Closes it. `whole` writes everything to its place first; else what is in no log is lost.
    pub fn close(mut self, whole: bool) -> Result<()> {
        self.end(whole)
    }

    fn end(&mut self, whole: bool) -> Result<()> {
        let mut ended = Ok(());
        let env = std::mem::replace(&mut self.env, null_mut());
        if env.is_null() {
            return Ok(());
        }
        // SAFETY: nobody borrows the store, the handles are used no more, and B-trees go before their environment.
        unsafe {
            if whole && self.effective.log.is_some() {
                let code = call!(env, env::TXN_CHECKPOINT, 0 => u32, 0 => u32,
                    flag(n::DB_FORCE) => u32);
                ended = self.api.check(code, "writing a checkpoint");
            }
            let flags = if whole { 0 } else { flag(n::DB_NOSYNC) };
            for map in self.maps.drain(..) {
                let code = call!(map, db::CLOSE, flags => u32);
                ended = ended.and(self.api.check(code, "closing a B-tree"));
            }
            if whole && self.effective.log == Some(Log::Memory) {
                // Pages bear places in a log that is gone with this process: another log would take them for damaged.
                for file in &self.files {
                    let code = call!(env, env::LSN_RESET, file.as_ptr() => *const c_char, 0 => u32);
                    let attempted = "forgetting places in the log";
                    ended = ended.and(self.api.check(code, attempted));
                }
            }
            let code = call!(env, env::CLOSE, 0 => u32);
            ended.and(self.api.check(code, "closing the environment"))
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Whoever wants to know how that went closes it.
        let _ = self.end(false);
    }
}

/// One client's use of a store.
pub struct Session<'s> {
    store: &'s Store,
    /// Of the transaction under way; null where there is none, or the product has none.
    txn: Handle,
    key: Vec<u8>,
    value: Vec<u8>,
}

// SAFETY: a transaction's handle belongs to no thread, but must be used by one at a time, as what is borrowed mutably is.
unsafe impl Send for Session<'_> {}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            let _ = self.rollback();
        }
        self.store.sessions.fetch_sub(1, Ordering::Release);
    }
}

impl Session<'_> {
    /// Begins a transaction, where the product has any.
    pub fn begin(&mut self) -> Result<()> {
        if self.store.options.product != Product::Transactional {
            return Ok(());
        }
        if !self.txn.is_null() {
            let message = "a transaction within a transaction";
            return Err(Error::new(Kind::Refused, message));
        }
        // SAFETY: the environment is open and this session may use it; the call writes one pointer.
        let code = unsafe {
            call!(self.store.env, env::TXN_BEGIN, null_mut() => Handle,
                &raw mut self.txn => *mut Handle, 0 => u32)
        };
        self.store.api.check(code, "beginning a transaction")
    }

    /// Makes the transaction's changes last, as far as the log does.
    pub fn commit(&mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.txn, null_mut());
        if txn.is_null() {
            return Ok(());
        }
        // SAFETY: the handle is of the transaction under way, and gone after the call, whatever it answers.
        let code = unsafe { call!(txn, txn::COMMIT, 0 => u32) };
        self.store.api.check(code, "committing")
    }

    /// Undoes the transaction's changes, unless it has ended: the library undoes one that it cannot commit. Refused by
    /// products without transactions.
    pub fn rollback(&mut self) -> Result<()> {
        if self.store.options.product != Product::Transactional {
            let message = "nothing can be undone without a transaction";
            return Err(Error::new(Kind::Refused, message));
        }
        let txn = std::mem::replace(&mut self.txn, null_mut());
        if txn.is_null() {
            return Ok(());
        }
        // SAFETY: as in `commit`.
        let code = unsafe { call!(txn, txn::ABORT) };
        self.store.api.check(code, "rolling back")
    }

    fn reading(&self, access: Access) -> u32 {
        // Only transactions hold a lock until it is of use.
        if access == Access::Change && !self.txn.is_null() && self.store.effective.locks {
            flag(n::DB_RMW)
        } else {
            0
        }
    }

    /// The value of a key; `None` where there is none.
    #[inline]
    pub fn get(&mut self, map: Map, key: &[u8], access: Access) -> Result<Option<&[u8]>> {
        let flags = self.reading(access);
        let mut given = Dbt::given(key)?;
        loop {
            let mut value = Dbt::room(&mut self.value, 0);
            // SAFETY: the handles are open and this session may use them. The key is only read, and the library writes no
            // more of the value than there is room for.
            let code = unsafe {
                call!(self.store.maps[map], db::GET, self.txn => Handle,
                    &raw mut given => *mut Dbt, &raw mut value => *mut Dbt, flags => u32)
            };
            match code {
                0 => return Ok(Some(&self.value[..value.size as usize])),
                n::DB_NOTFOUND => return Ok(None),
                n::DB_BUFFER_SMALL => self.value.resize(value.size as usize, 0),
                code => return Err(self.store.api.error(code, "reading")),
            }
        }
    }

    /// Writes the value of a key, whether or not there was one.
    #[inline]
    pub fn put(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(map, key, value, 0)
    }

    /// Adds a key that must not be there.
    #[inline]
    pub fn insert(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(map, key, value, flag(n::DB_NOOVERWRITE))
    }

    #[inline]
    fn write(&mut self, map: Map, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let (mut key, mut value) = (Dbt::given(key)?, Dbt::given(value)?);
        // SAFETY: as in `get`; both are only read.
        let code = unsafe {
            call!(self.store.maps[map], db::PUT, self.txn => Handle, &raw mut key => *mut Dbt,
                &raw mut value => *mut Dbt, flags => u32)
        };
        self.store.api.check(code, "writing")
    }

    /// Removes a key. Gives whether it was there.
    pub fn remove(&mut self, map: Map, key: &[u8]) -> Result<bool> {
        let mut key = Dbt::given(key)?;
        // SAFETY: as in `get`; the key is only read.
        let code = unsafe {
            call!(self.store.maps[map], db::DEL, self.txn => Handle, &raw mut key => *mut Dbt,
                0 => u32)
        };
        match code {
            n::DB_NOTFOUND => Ok(false),
            code => self.store.api.check(code, "removing").map(|()| true),
        }
    }

    /// Shows keys and values of a range, both ends included, until told to stop.
    pub fn scan(
        &mut self,
        map: Map,
        (from, to): (&[u8], &[u8]),
        access: Access,
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut cursor = Cursor(null_mut());
        // SAFETY: the handles are open and this session may use them; the call writes one pointer.
        let code = unsafe {
            call!(self.store.maps[map], db::CURSOR, self.txn => Handle,
                &raw mut cursor.0 => *mut Handle, 0 => u32)
        };
        self.store.api.check(code, "opening a cursor")?;
        let gone = self.go_through(&cursor, (from, to), access, direction, &mut each);
        gone.and(self.store.api.check(cursor.close(), "closing a cursor"))
    }

    fn go_through(
        &mut self,
        cursor: &Cursor,
        (from, to): (&[u8], &[u8]),
        access: Access,
        direction: Direction,
        each: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let flags = self.reading(access);
        let (start, next) = match direction {
            Direction::Forwards => (from, n::DB_NEXT),
            Direction::Backwards => (to, n::DB_PREV),
        };
        let mut found = self.step(cursor, flag(n::DB_SET_RANGE) | flags, Some(start))?;
        if direction == Direction::Backwards {
            // The least key that is not below the end; beyond it, and beyond all, lies what is wanted before it.
            found = match found {
                Some((key, _)) if &self.key[..key] > to => {
                    self.step(cursor, flag(n::DB_PREV) | flags, None)?
                }
                Some(found) => Some(found),
                None => self.step(cursor, flag(n::DB_LAST) | flags, None)?,
            };
        }
        while let Some((key, value)) = found {
            let (key, value) = (&self.key[..key], &self.value[..value]);
            if key < from || key > to || each(key, value).is_break() {
                break;
            }
            found = self.step(cursor, flag(next) | flags, None)?;
        }
        Ok(())
    }

    /// Moves a cursor, and reads where it is then: how long key and value are; `None` where there is nothing.
    fn step(
        &mut self,
        cursor: &Cursor,
        flags: u32,
        start: Option<&[u8]>,
    ) -> Result<Option<(usize, usize)>> {
        loop {
            let length = start.map_or(0, <[u8]>::len);
            if let Some(start) = start {
                self.key.resize(self.key.len().max(length), 0);
                self.key[..length].copy_from_slice(start);
            }
            let mut key = Dbt::room(&mut self.key, length);
            let mut value = Dbt::room(&mut self.value, 0);
            // SAFETY: the cursor is open and this session's own; the library writes no more than there is room for. One
            // that found too little room has not moved.
            let code = unsafe {
                call!(cursor.0, dbc::GET, &raw mut key => *mut Dbt, &raw mut value => *mut Dbt,
                    flags => u32)
            };
            match code {
                0 => return Ok(Some((key.size as usize, value.size as usize))),
                n::DB_NOTFOUND => return Ok(None),
                n::DB_BUFFER_SMALL => {
                    self.key.resize(self.key.len().max(key.size as usize), 0);
                    self.value
                        .resize(self.value.len().max(value.size as usize), 0);
                }
                code => return Err(self.store.api.error(code, "going through a range")),
            }
        }
    }
}

/// An open cursor; null before and after. Closed before its transaction ends, also where what it is shown to panics.
struct Cursor(Handle);

impl Cursor {
    /// Gives the library's answer.
    fn close(&mut self) -> c_int {
        let cursor = std::mem::replace(&mut self.0, null_mut());
        if cursor.is_null() {
            return 0;
        }
        // SAFETY: it is open, its store and its transaction are, and it is used no more.
        unsafe { call!(cursor, dbc::CLOSE) }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.close();
    }
}

/// Keeps others out of a folder, for as long as what is given lives. Those that read let each other in.
fn lock(folder: &Path, read_only: bool) -> Result<File> {
    let failing = |error: std::io::Error| {
        let message = format!("opening {}: {error}", folder.display());
        Error::new(Kind::Io, message)
    };
    let file = File::open(folder).map_err(failing)?;
    let locked = if read_only {
        file.try_lock_shared()
    } else {
        file.try_lock()
    };
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{} is in use by another store", folder.display());
            Err(Error::new(Kind::Busy, message))
        }
        Err(TryLockError::Error(error)) => Err(failing(error)),
    }
}

/// Fails where there is a log.
fn refuse_log(folder: &Path) -> Result<()> {
    let failing = |error: std::io::Error| {
        let message = format!("looking for a log in {}: {error}", folder.display());
        Error::new(Kind::Io, message)
    };
    for entry in std::fs::read_dir(folder).map_err(failing)? {
        let name = entry.map_err(failing)?.file_name();
        if name.as_bytes().starts_with(b"log.") {
            let message = format!(
                "{} has a log ({}), and may have what was committed there alone: it is opened as product \
                 transactional with a log that is written or synced",
                folder.display(),
                name.to_string_lossy()
            );
            return Err(Error::new(Kind::Refused, message));
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| Error::new(Kind::Refused, "a file name with a 0 in it"))
}
