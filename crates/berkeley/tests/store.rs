//! The library itself, in each of its products.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        Store::open(&self.0, &NAMES, options).unwrap()
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
        recover: false,
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

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let folder = Folder::new();
    let asked = Options {
        log: Log::Synced,
        ..options(Product::Transactional)
    };
    folder.open(&asked).close(true).unwrap();
    let store = folder.open(&asked);
    let mut session = store.session().unwrap();
    session.begin().unwrap();
    session.put(0, b"key", b"value").unwrap();
    session.commit().unwrap();
    // Nothing is written to its place, as if the process had ended here.
    std::mem::forget(session);
    std::mem::forget(store);
    let store = folder.open(&Options {
        recover: true,
        ..asked
    });
    let mut session = store.session().unwrap();
    assert_eq!(
        session.get(0, b"key", Access::Read).unwrap(),
        Some(&b"value"[..])
    );
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
        create: false,
        read_only: true,
        ..options(Product::DataStore)
    });
    let mut session = store.session().unwrap();
    let found = session.get(0, &[7], Access::Read).unwrap();
    assert_eq!(found, Some(&[2; 100][..]));
}
