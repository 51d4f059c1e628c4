//! The library itself, in each of its products.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dyno_berkeley::{Access, Direction, Kind, Log, Options, Product, Session, Store};

const NAMES: [&str; 2] = ["first", "second"];
const PRODUCTS: [Product; 3] = [
    Product::DataStore,
    Product::Concurrent,
    Product::Transactional,
];

/// A folder of a test's own, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("dyno-berkeley-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn open(&self, options: &Options) -> Store {
        // A child that another test starts has the lock of a store that was closed meanwhile until it is executed.
        let begun = Instant::now();
        loop {
            match Store::open(&self.0, &NAMES, options) {
                Err(error)
                    if error.kind == Kind::Busy && begun.elapsed() < Duration::from_secs(5) =>
                {
                    std::thread::yield_now();
                }
                opened => return opened.unwrap(),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(product: Product) -> Options {
    Options {
        product,
        cache_bytes: 4 << 20,
        page_bytes: 4096,
        checksums: false,
        log: Log::Memory,
        locks: true,
        mutexes: true,
        create: true,
        read_only: false,
    }
}

/// Keys of a range, in the order in which they are shown.
fn keys(session: &mut Session<'_>, range: (&[u8], &[u8]), direction: Direction) -> Vec<String> {
    let mut keys = Vec::new();
    session
        .scan(0, range, Access::Read, direction, |key, value| {
            keys.push(format!("{}={}", String::from_utf8_lossy(key), value.len()));
            ControlFlow::Continue(())
        })
        .unwrap();
    keys
}

#[test]
fn what_was_written_is_read_and_gone_through_either_way_in_each_product() {
    for product in PRODUCTS {
        let folder = Folder::new();
        let store = folder.open(&options(product));
        let mut session = store.session().unwrap();
        session.begin().unwrap();
        // The last is longer than what a session has room for at first, and lies beside the tree.
        for (key, length) in [("b", 1), ("d", 2), ("f", 9_000)] {
            session.insert(0, key.as_bytes(), &vec![7; length]).unwrap();
        }
        session.commit().unwrap();
        session.begin().unwrap();
        assert_eq!(
            session
                .get(0, b"f", Access::Change)
                .unwrap()
                .map(<[u8]>::len),
            Some(9_000),
            "{product:?}"
        );
        assert_eq!(session.get(0, b"c", Access::Read).unwrap(), None);
        assert_eq!(session.get(1, b"b", Access::Read).unwrap(), None);
        let mut gone = |from: &str, to: &str, direction| {
            keys(&mut session, (from.as_bytes(), to.as_bytes()), direction).join(" ")
        };
        assert_eq!(gone("a", "z", Direction::Forwards), "b=1 d=2 f=9000");
        assert_eq!(gone("b", "d", Direction::Forwards), "b=1 d=2");
        assert_eq!(gone("c", "c", Direction::Forwards), "");
        assert_eq!(gone("a", "z", Direction::Backwards), "f=9000 d=2 b=1");
        assert_eq!(gone("c", "e", Direction::Backwards), "d=2");
        assert_eq!(gone("b", "d", Direction::Backwards), "d=2 b=1");
        assert_eq!(gone("g", "h", Direction::Backwards), "");
        session.put(0, b"b", b"new").unwrap();
        assert_eq!(
            session.get(0, b"b", Access::Read).unwrap(),
            Some(&b"new"[..])
        );
        let twice = session.insert(0, b"b", b"again").unwrap_err();
        assert_eq!(twice.kind, Kind::Duplicate, "{twice}");
        assert!(session.remove(0, b"b").unwrap());
        assert!(!session.remove(0, b"b").unwrap());
        session.commit().unwrap();
        drop(session);
        store.close(true).unwrap();
    }
}

#[test]
fn what_a_store_was_opened_with_is_told_by_the_library() {
    for product in PRODUCTS {
        for (checksums, locks, mutexes, log) in [
            (false, true, true, Log::Memory),
            (true, false, false, Log::Written),
            (true, true, false, Log::Synced),
        ] {
            let folder = Folder::new();
            let asked = Options {
                checksums,
                locks,
                mutexes,
                log,
                ..options(product)
            };
            let store = folder.open(&asked);
            let told = *store.effective();
            assert_eq!(told.product, product);
            assert_eq!((told.page_bytes, told.checksums), (4096, checksums));
            assert_eq!(told.mutexes, mutexes);
            assert!((4 << 20..6 << 20).contains(&told.cache_bytes), "{told:?}");
            let (its_log, its_locks) = match product {
                Product::DataStore => (None, false),
                Product::Concurrent => (None, true),
                Product::Transactional => (Some(log), locks),
            };
            assert_eq!((told.log, told.locks), (its_log, its_locks));
            store.close(true).unwrap();
            // Pages are as they were made, whatever is asked for.
            let again = folder.open(&Options {
                page_bytes: 8192,
                checksums: false,
                create: false,
                ..asked
            });
            let told = again.effective();
            assert_eq!((told.page_bytes, told.checksums), (4096, checksums));
        }
    }
}

#[test]
fn transactions_are_undone_and_other_products_refuse_to() {
    for product in PRODUCTS {
        let folder = Folder::new();
        let store = folder.open(&options(product));
        let mut session = store.session().unwrap();
        session.put(0, b"key", b"before").unwrap();
        session.begin().unwrap();
        session.put(0, b"key", b"after").unwrap();
        let undone = session.rollback();
        let found = session.get(0, b"key", Access::Read).unwrap().unwrap();
        if product == Product::Transactional {
            undone.unwrap();
            assert_eq!(found, b"before");
        } else {
            assert_eq!(undone.unwrap_err().kind, Kind::Refused);
            assert_eq!(found, b"after");
        }
    }
}

#[test]
fn of_two_transactions_that_wait_for_each_other_one_is_told_so() {
    let folder = Folder::new();
    let store = folder.open(&options(Product::Transactional));
    // In two trees: what lies on one page is locked together.
    let mut session = store.session().unwrap();
    session.put(0, b"key", b"1").unwrap();
    session.put(1, b"key", b"1").unwrap();
    drop(session);
    let both = Barrier::new(2);
    let ended = std::thread::scope(|scope| {
        let clients = [0, 1].map(|first| {
            let (store, both) = (&store, &both);
            scope.spawn(move || {
                let mut session = store.session().unwrap();
                session.begin().unwrap();
                session.put(first, b"key", b"2").unwrap();
                both.wait();
                let second = session.put(1 - first, b"key", b"2");
                if second.is_ok() {
                    session.commit().unwrap();
                } else {
                    session.rollback().unwrap();
                }
                second.map_err(|error| error.kind)
            })
        });
        clients.map(|client| client.join().unwrap())
    });
    assert!(
        ended == [Ok(()), Err(Kind::Deadlock)] || ended == [Err(Kind::Deadlock), Ok(())],
        "{ended:?}"
    );
}

#[test]
fn what_cannot_keep_two_sessions_apart_has_one_at_a_time() {
    for (product, locks, mutexes, several) in [
        (Product::DataStore, false, false, false),
        (Product::Concurrent, false, true, true),
        (Product::Transactional, false, true, false),
        (Product::Transactional, true, false, false),
        (Product::Transactional, true, true, true),
    ] {
        let folder = Folder::new();
        let store = folder.open(&Options {
            locks,
            mutexes,
            ..options(product)
        });
        let first = store.session().unwrap();
        assert_eq!(store.session().is_ok(), several, "{product:?}");
        drop(first);
        assert!(store.session().is_ok());
    }
}

#[test]
fn a_synced_log_is_synced_at_each_commit_and_one_in_memory_never() {
    for (log, syncs) in [(Log::Synced, 5), (Log::Written, 0), (Log::Memory, 0)] {
        let folder = Folder::new();
        let mut store = folder.open(&Options {
            log,
            ..options(Product::Transactional)
        });
        // The first use of a B-tree reads what opening it has not.
        store.session().unwrap().put(0, b"key", b"value").unwrap();
        store.forget_moved();
        let mut session = store.session().unwrap();
        for number in 0..5 {
            session.begin().unwrap();
            session.put(0, &[number], b"value").unwrap();
            session.commit().unwrap();
        }
        drop(session);
        let moved = store.moved().unwrap();
        assert_eq!(moved.log_syncs, syncs, "{log:?}: {moved:?}");
        assert!(moved.log_records >= 10, "{log:?}: {moved:?}");
        assert_eq!(moved.log_writes == 0, log == Log::Memory, "{moved:?}");
        assert_eq!((moved.pages_read, moved.pages_written), (0, 0));
    }
}

/// Where the process that is killed writes; it is this test's own, begun anew.
const CRASHES_IN: &str = "DYNO_BERKELEY_CRASHES_IN";

#[test]
fn what_was_committed_is_there_after_its_process_was_killed() {
    let asked = Options {
        log: Log::Synced,
        ..options(Product::Transactional)
    };
    if let Some(folder) = std::env::var_os(CRASHES_IN) {
        let store = Store::open(folder.as_ref(), &NAMES, &asked).unwrap();
        let mut session = store.session().unwrap();
        for number in 0_u32.. {
            session.begin().unwrap();
            session.put(0, &number.to_be_bytes(), &[7; 300]).unwrap();
            session.put(1, &number.to_be_bytes(), &[7; 300]).unwrap();
            session.commit().unwrap();
            println!("committed {number}");
        }
    }
    let folder = Folder::new();
    folder.open(&asked).close(true).unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let name = std::thread::current().name().unwrap().to_owned();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(CRASHES_IN, &folder.0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let number = |line: String| line.strip_prefix("committed ")?.parse::<u32>().ok();
        let wanted = last + 200;
        while last < wanted {
            last = last.max(number(told.next().unwrap().unwrap()).unwrap_or(0));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        last = told
            .map_while(Result::ok)
            .filter_map(number)
            .fold(last, u32::max);
        let store = folder.open(&asked);
        let mut session = store.session().unwrap();
        let mut found = [0_u32; 2];
        for (map, found) in found.iter_mut().enumerate() {
            session
                .scan(
                    map,
                    (&[], &[255; 8]),
                    Access::Read,
                    Direction::Forwards,
                    |_, _| {
                        *found += 1;
                        ControlFlow::Continue(())
                    },
                )
                .unwrap();
        }
        assert_eq!(found[0], found[1], "half a transaction");
        assert!(
            found[0] > last,
            "{last} was committed, and there are {found:?}"
        );
    }
}

#[test]
fn a_folder_has_one_store_at_a_time_unless_all_only_read() {
    let folder = Folder::new();
    let asked = options(Product::DataStore);
    let reads = Options {
        create: false,
        read_only: true,
        ..asked
    };
    let store = folder.open(&asked);
    for second in [asked, reads] {
        let error = Store::open(&folder.0, &NAMES, &second).unwrap_err();
        assert_eq!(error.kind, Kind::Busy);
        assert!(
            error.message.ends_with("is in use by another store"),
            "{error}"
        );
    }
    store.close(true).unwrap();
    let _first = folder.open(&reads);
    let _second = folder.open(&reads);
}

#[test]
fn a_log_that_would_not_be_looked_at_is_refused() {
    let folder = Folder::new();
    let durable = Options {
        log: Log::Written,
        ..options(Product::Transactional)
    };
    folder.open(&durable).close(true).unwrap();
    for other in [
        options(Product::DataStore),
        options(Product::Concurrent),
        options(Product::Transactional),
    ] {
        let error = Store::open(&folder.0, &NAMES, &other).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(
            error.message.contains("has a log (log.0000000001)"),
            "{error}"
        );
    }
    folder.open(&durable);
}

#[test]
fn all_pages_are_in_the_cache_once_all_were_read() {
    for product in PRODUCTS {
        let folder = Folder::new();
        let asked = Options {
            page_bytes: 512,
            ..options(product)
        };
        let key = |number: u32| number.wrapping_mul(2_654_435_761).to_be_bytes();
        let store = folder.open(&asked);
        let mut session = store.session().unwrap();
        for number in 0..4_000 {
            session.put(0, &key(number), &[7; 60]).unwrap();
        }
        drop(session);
        store.close(true).unwrap();
        let mut store = folder.open(&asked);
        store.read_all().unwrap();
        store.forget_moved();
        let mut session = store.session().unwrap();
        for number in 0..4_000 {
            assert!(
                session
                    .get(0, &key(number), Access::Read)
                    .unwrap()
                    .is_some()
            );
        }
        drop(session);
        assert_eq!(store.moved().unwrap().pages_read, 0, "{product:?}");
    }
}

#[test]
fn a_cursor_is_closed_where_what_it_is_shown_to_panics() {
    for product in PRODUCTS {
        let folder = Folder::new();
        let store = folder.open(&options(product));
        let mut session = store.session().unwrap();
        session.put(0, b"key", b"value").unwrap();
        session.begin().unwrap();
        let range: (&[u8], &[u8]) = (b"a", b"z");
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            session.scan(0, range, Access::Read, Direction::Forwards, |_, _| {
                std::panic::resume_unwind(Box::new("shown"))
            })
        }));
        assert!(caught.is_err());
        // An open cursor keeps its lock, in the product whose calls lock whole trees, and its transaction from its end.
        session.put(0, b"key", b"other").unwrap();
        session.commit().unwrap();
        drop(session);
        store.close(true).unwrap();
    }
}

#[test]
fn a_transaction_that_has_ended_has_nothing_left_to_be_undone() {
    let folder = Folder::new();
    let store = folder.open(&options(Product::Transactional));
    let mut session = store.session().unwrap();
    session.begin().unwrap();
    assert_eq!(session.begin().unwrap_err().kind, Kind::Refused);
    session.put(0, b"key", b"value").unwrap();
    session.commit().unwrap();
    session.rollback().unwrap();
    assert!(session.get(0, b"key", Access::Read).unwrap().is_some());
}

#[test]
fn three_hundred_transactions_are_under_way_at_a_time() {
    let folder = Folder::new();
    let store = folder.open(&options(Product::Transactional));
    let mut sessions: Vec<_> = (0..300).map(|_| store.session().unwrap()).collect();
    for session in &mut sessions {
        session.begin().unwrap();
        assert_eq!(session.get(0, b"key", Access::Read).unwrap(), None);
    }
    for session in &mut sessions {
        session.commit().unwrap();
    }
}

#[test]
fn a_damaged_page_is_told_where_pages_have_checksums() {
    for product in PRODUCTS {
        let folder = Folder::new();
        let asked = Options {
            checksums: true,
            ..options(product)
        };
        let store = folder.open(&asked);
        let mut session = store.session().unwrap();
        session.put(0, b"key", &[7; 100]).unwrap();
        drop(session);
        store.close(true).unwrap();
        let file = folder.0.join("first.db");
        let mut bytes = std::fs::read(&file).unwrap();
        let place = bytes
            .windows(100)
            .rposition(|window| window == [7; 100])
            .unwrap();
        bytes[place + 50] = 8;
        std::fs::write(&file, bytes).unwrap();
        let store = folder.open(&asked);
        let mut session = store.session().unwrap();
        let error = session.get(0, b"key", Access::Read).unwrap_err();
        assert_eq!(error.kind, Kind::Corrupt, "{product:?}: {error}");
    }
}

#[test]
fn what_is_no_b_tree_and_what_no_memory_holds_is_refused_with_the_librarys_words() {
    let folder = Folder::new();
    let error = |asked| Store::open(&folder.0, &NAMES, &asked).unwrap_err();
    let huge = error(Options {
        cache_bytes: 1 << 50,
        ..options(Product::DataStore)
    });
    assert_eq!(huge.kind, Kind::Refused);
    assert!(
        huge.message.starts_with("setting the size of the cache: "),
        "{huge}"
    );
    std::fs::write(
        folder.0.join("first.db"),
        "no page of any B-tree".repeat(1_000),
    )
    .unwrap();
    let other = error(options(Product::DataStore));
    assert!(other.message.starts_with("opening first.db: "), "{other}");
}

#[test]
fn what_is_not_there_is_refused_with_the_librarys_words() {
    let folder = Folder::new();
    let asked = Options {
        create: false,
        ..options(Product::DataStore)
    };
    let error = Store::open(&folder.0, &NAMES, &asked).unwrap_err();
    assert_eq!(error.kind, Kind::Io);
    assert!(error.message.contains("opening first.db"), "{error}");
    assert!(error.message.contains("No such file"), "{error}");
}

#[test]
fn what_a_log_in_memory_wrote_is_opened_again_with_any_log() {
    let folder = Folder::new();
    for (value, log) in [(0, Log::Memory), (1, Log::Memory), (2, Log::Synced)] {
        let store = folder.open(&Options {
            log,
            ..options(Product::Transactional)
        });
        let mut session = store.session().unwrap();
        session.begin().unwrap();
        for key in 0..=255 {
            session.put(0, &[key], &[value; 100]).unwrap();
        }
        session.commit().unwrap();
        drop(session);
        store.close(true).unwrap();
    }
    let store = folder.open(&Options {
        log: Log::Written,
        ..options(Product::Transactional)
    });
    let mut session = store.session().unwrap();
    let found = session.get(0, &[7], Access::Read).unwrap();
    assert_eq!(found, Some(&[2; 100][..]));
}
