//! The pool against what it says of itself, on disks that fail.
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::latch::{NoLatch, RwLatch};
use crate::pages::HEADER;
use crate::pages::disk::crash::CrashFolder;
use crate::pages::disk::{Files, Folder};

const PAGE: usize = 1024;
const FRAMES: usize = LEAST_FRAMES;

type Many = Pool<RwLatch, PAGE>;
type One = Pool<NoLatch, PAGE>;

fn open<L: Latch>(folder: &dyn Folder, frames: usize) -> Result<Pool<L, PAGE>> {
    Pool::open(Setup {
        folder: Some(folder),
        memory: frames * PAGE,
        ahead: Box::new(|_| Ok(())),
    })
}

/// A latch before which others often come to run: what must hold between two latches is tried there.
#[derive(Default)]
struct Restless(RwLatch);

#[allow(unsafe_code)]
impl Latch for Restless {
    const REAL: bool = true;

    fn lock_shared(&self) {
        thread::yield_now();
        self.0.lock_shared();
    }

    fn lock_exclusive(&self) {
        thread::yield_now();
        self.0.lock_exclusive();
    }

    fn try_lock_exclusive(&self) -> bool {
        thread::yield_now();
        self.0.try_lock_exclusive()
    }

    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_shared() };
    }

    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_exclusive() };
    }
}

/// No log.
struct Silent;

impl<L: Latch> Log<L> for Silent {
    const REAL: bool = false;

    fn append(&self, _: TxId, _: Lsn, _: &Record<'_>) -> Result<Lsn> {
        unreachable!("nobody logs where there is no log")
    }

    fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn end(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
}

/// A log in memory, whose records are patches alone.
#[derive(Default)]
struct Patches(Mutex<Vec<Vec<Owned>>>);

/// A patch.
type Owned = (PageId, u16, Vec<u8>);

impl<L: Latch> Log<L> for Patches {
    const REAL: bool = true;

    fn append(&self, tx: TxId, previous: Lsn, record: &Record<'_>) -> Result<Lsn> {
        assert_eq!((tx, previous), (TxId(0), Lsn::NONE));
        let Record::Structure(Change::Write(patches)) = record else {
            panic!("{record:?}");
        };
        let mut records = self.0.lock().unwrap();
        let owned = |patch: &Patch<'_>| (patch.page, patch.offset, patch.bytes.to_vec());
        records.push(patches.iter().map(owned).collect());
        Ok(Lsn(records.len() as u64))
    }

    fn commit(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn end(&self, _: TxId, _: Lsn) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
}

impl Patches {
    fn redo<L: Latch>(&self, pool: &Pool<L, PAGE>) {
        for (at, record) in self.0.lock().unwrap().iter().enumerate() {
            let lsn = Lsn(at as u64 + 1);
            // All patches of a record are to pages as they were before it.
            let mut behind: Vec<_> = record.iter().map(|patch| patch.0).collect();
            behind.retain(|page| pool.pin(*page).unwrap().shared().lsn() < lsn);
            for (page, offset, bytes) in record {
                if behind.contains(page) {
                    let pin = pool.pin(*page).unwrap();
                    let mut latched = pin.exclusive();
                    latched.write(*offset, bytes);
                    latched.changed(lsn);
                }
            }
        }
    }
}

/// Fills a page with a number, all of which is different from that of any other version of any page.
fn stamp(page: &mut Page, version: u64) {
    let id = page.id().0;
    for (at, word) in page.bytes_mut()[HEADER..]
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .enumerate()
    {
        *word = (version << 32 | id << 16 | at as u64).to_le_bytes();
    }
}

/// Which version it was filled with. Panics where it was not filled with one.
fn version(page: &Page) -> u64 {
    let version = page.u64_at(HEADER) >> 32;
    for (at, word) in page.bytes()[HEADER..].as_chunks::<8>().0.iter().enumerate() {
        let expected = version << 32 | page.id().0 << 16 | at as u64;
        assert_eq!(
            u64::from_le_bytes(*word),
            expected,
            "word {at} of {:?}",
            page.id()
        );
    }
    version
}

/// Fills a page so that it can be redone.
fn fill(pool: &One, page: PageId, log: &Patches) -> Result<()> {
    let pin = pool.pin(page)?;
    let mut latched = pin.exclusive();
    stamp(&mut latched, 1);
    let patch = Patch {
        page,
        offset: HEADER as u16,
        bytes: &latched.bytes()[HEADER..],
    };
    let lsn = One::log(log, &[patch])?;
    latched.changed(lsn);
    Ok(())
}

/// So many pages, of version 0.
fn allocate<L: Latch>(pool: &Pool<L, PAGE>, pages: usize) -> Vec<PageId> {
    let stamped = |_| {
        let pin = pool.allocate(PageKind::Heap, &Silent).unwrap();
        let mut latched = pin.exclusive();
        stamp(&mut latched, 0);
        latched.changed(Lsn::NONE);
        pin.id()
    };
    (0..pages).map(stamped).collect()
}

fn set<L: Latch>(pool: &Pool<L, PAGE>, page: PageId, version: u64, lsn: Lsn) -> Result<()> {
    let pin = pool.pin(page)?;
    let mut latched = pin.exclusive();
    stamp(&mut latched, version);
    latched.changed(lsn);
    Ok(())
}

fn get<L: Latch>(pool: &Pool<L, PAGE>, page: PageId) -> u64 {
    version(&pool.pin(page).unwrap().shared())
}

fn file(folder: &CrashFolder, name: &str) -> Arc<dyn Disk> {
    folder.open(name).unwrap()
}

#[test]
fn pages_are_as_threads_left_them_while_others_evict_and_write_them() {
    const PAGES: usize = 40;
    let folder = CrashFolder::new();
    let pool: Pool<Restless, PAGE> = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, PAGES);
    let changes: Vec<_> = pages.iter().map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u64)
            .map(|worker| {
                let (pool, pages, changes) = (&pool, &pages, &changes);
                scope.spawn(move || {
                    let mut random = worker + 1;
                    for _ in 0..2_000 {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let at = (random >> 33) as usize % PAGES;
                        let pin = pool.pin(pages[at]).unwrap();
                        assert_eq!(pin.id(), pages[at]);
                        if random >> 63 == 0 {
                            version(&pin.shared());
                        } else {
                            let mut latched = pin.into_exclusive();
                            let next = version(&latched) + 1;
                            stamp(&mut latched, next);
                            latched.changed(Lsn::NONE);
                            changes[at].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                pool.flush_some(5).unwrap();
                pool.dirty_pages();
                pool.flush_all().unwrap();
                thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let expected = |at: usize| changes[at].load(Ordering::Relaxed);
    for (at, page) in pages.iter().enumerate() {
        assert_eq!(get(&pool, *page), expected(at));
    }
    assert!(pool.statistics().evicted > 1000, "{:?}", pool.statistics());
    assert!(
        pool.frames.iter().all(|frame| frame.pins() == 0),
        "all pins were given back"
    );

    pool.flush_all().unwrap();
    assert_eq!(pool.dirty_pages(), []);
    drop(pool);
    let again: Many = open(&folder, FRAMES).unwrap();
    for (at, page) in pages.iter().enumerate() {
        assert_eq!(get(&again, *page), expected(at));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate,
    Free(usize),
    Change(usize),
    Look(usize),
    FlushSome(usize),
    FlushAll,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Allocate),
        2 => any::<usize>().prop_map(Step::Free),
        6 => any::<usize>().prop_map(Step::Change),
        6 => any::<usize>().prop_map(Step::Look),
        1 => (1..100_usize).prop_map(Step::FlushSome),
        1 => Just(Step::FlushAll),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #[test]
    fn a_session_finds_every_page_as_it_left_it(steps in proptest::collection::vec(step(), 1..400)) {
        let folder = CrashFolder::new();
        let log = Patches::default();
        let mut pool: One = open(&folder, FRAMES).unwrap();
        let mut model: Vec<(PageId, u64)> = Vec::new();
        let mut free: Vec<PageId> = Vec::new();
        let mut version_now = 0;
        for step in steps {
            version_now += 1;
            match step {
                Step::Allocate => {
                    let page = pool.allocate(PageKind::Leaf, &log).unwrap().id();
                    let next = PageId(model.len() as u64 + 1);
                    prop_assert_eq!(page, free.pop().unwrap_or(next));
                    {
                        let pin = pool.pin(page).unwrap();
                        let latched = pin.shared();
                        prop_assert_eq!((latched.id(), latched.kind()), (page, PageKind::Leaf));
                        prop_assert!(latched.bytes()[HEADER..].iter().all(|byte| *byte == 0));
                    }
                    set(&pool, page, version_now, Lsn::NONE).unwrap();
                    model.push((page, version_now));
                }
                Step::Free(at) if !model.is_empty() => {
                    let (page, _) = model.swap_remove(at % model.len());
                    pool.free(page, &log).unwrap();
                    free.push(page);
                }
                Step::Change(at) if !model.is_empty() => {
                    let at = at % model.len();
                    set(&pool, model[at].0, version_now, Lsn::NONE).unwrap();
                    model[at].1 = version_now;
                }
                Step::Look(at) if !model.is_empty() => {
                    let (page, version) = model[at % model.len()];
                    prop_assert_eq!(get(&pool, page), version);
                }
                Step::FlushSome(at_most) => {
                    let before = pool.dirty_pages().len();
                    let written = pool.flush_some(at_most).unwrap();
                    prop_assert_eq!(written, at_most.min(before));
                    prop_assert_eq!(pool.dirty_pages().len(), before - written);
                }
                Step::FlushAll => pool.flush_all().unwrap(),
                Step::Reopen => {
                    pool.flush_all().unwrap();
                    pool = open(&folder, FRAMES).unwrap();
                }
                Step::Free(_) | Step::Change(_) | Step::Look(_) => {}
            }
            let mut all: Vec<_> = model.iter().map(|(page, _)| *page).chain(free.iter().copied()).collect();
            all.sort_unstable();
            let census = pool.census().unwrap();
            prop_assert_eq!(census.all, all);
            prop_assert_eq!(census.free, free.iter().rev().copied().collect::<Vec<_>>());
        }
        for (page, version) in model {
            prop_assert_eq!(get(&pool, page), version);
        }
    }

    /// What is logged of taking and giving back pages, done again over what a crash left, makes the same pages.
    #[test]
    fn allocation_is_redone_to_the_byte(
        steps in proptest::collection::vec(step(), 1..100), seed in any::<u64>(), operations in 0..200_u64,
    ) {
        let folder = CrashFolder::new();
        let log = Patches::default();
        let pool: One = open(&folder, FRAMES).unwrap();
        let whole = CrashFolder::new();
        let model: One = open(&whole, 1000).unwrap();
        folder.fail_power_at(folder.operations() + operations);
        let mut taken = Vec::new();
        for step in steps {
            let done = match step {
                Step::Allocate => pool.allocate(PageKind::Inner, &log).map(|pin| taken.push(pin.id())),
                Step::Free(at) if !taken.is_empty() => pool.free(taken.swap_remove(at % taken.len()), &log),
                Step::Change(at) => pool.set_root(PageId(at as u64), &log),
                Step::FlushSome(at_most) => pool.flush_some(at_most).map(|_| ()),
                Step::Look(at) if !taken.is_empty() => fill(&pool, taken[at % taken.len()], &log),
                _ => Ok(()),
            };
            if done.is_err() {
                break;
            }
        }
        log.redo(&model);
        let after: One = open(&folder.crash(seed), 1000).unwrap();
        log.redo(&after);
        let census = model.census().unwrap();
        prop_assert_eq!(&after.census().unwrap(), &census);
        for page in census.all.into_iter().chain([META]) {
            let bytes = |pool: &One| pool.pin(page).unwrap().shared().bytes()[4..].to_vec();
            prop_assert_eq!(bytes(&after), bytes(&model));
        }
    }
}

#[test]
fn a_pinned_page_stays_and_without_others_to_evict_there_is_no_memory() {
    let folder = CrashFolder::new();
    let pool: Many = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 4 * FRAMES);
    let kept = pool.pin(pages[0]).unwrap();
    let memory = kept.bytes();
    for round in 1..4 {
        for page in &pages[1..] {
            set(&pool, *page, round, Lsn::NONE).unwrap();
        }
        assert_eq!(version(&kept.shared()), 0);
        let read = pool.statistics().read;
        assert_eq!(
            pool.pin(pages[0]).unwrap().bytes(),
            memory,
            "it is where it was"
        );
        assert_eq!(pool.statistics().read, read);
    }

    let pins: Vec<_> = pages[1..FRAMES]
        .iter()
        .map(|page| pool.pin(*page).unwrap())
        .collect();
    let refused = pool.pin(pages[FRAMES]);
    assert!(matches!(refused, Err(Error::OutOfMemory(_))));
    drop(pins);
    assert_eq!(get(&pool, pages[FRAMES]), 3);
}

#[test]
fn what_was_used_since_the_clock_came_by_outlives_what_was_not() {
    let folder = CrashFolder::new();
    let pool: One = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 10 * FRAMES);
    pool.flush_all().unwrap();
    let read = pool.statistics().read;
    for page in &pages {
        get(&pool, *page);
        get(&pool, pages[0]);
    }
    let once = pool.statistics().read - read;
    assert!(
        once <= pages.len() as u64 + 1,
        "the page that is used all the time was read {once} times"
    );
}

/// Looks at every write to the pages' places.
struct Watched {
    folder: CrashFolder,
    flushed: Arc<AtomicU64>,
}

struct WatchedData(Arc<dyn Disk>, Arc<AtomicU64>);

impl Folder for Watched {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let disk = self.folder.open(name)?;
        Ok(match name {
            DATA_FILE => Arc::new(WatchedData(disk, Arc::clone(&self.flushed))),
            _ => disk,
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }
}

impl Disk for WatchedData {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for page in bytes.chunks(PAGE) {
            let lsn = Page::of(page).lsn().0;
            assert!(
                lsn <= self.1.load(Ordering::Relaxed),
                "the log is behind {lsn}"
            );
        }
        self.0.write(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}

#[test]
fn the_log_is_written_ahead_of_every_page() {
    let flushed = Arc::new(AtomicU64::new(0));
    let folder = Watched {
        folder: CrashFolder::new(),
        flushed: Arc::clone(&flushed),
    };
    let pool: Many = Pool::open(Setup {
        folder: Some(&folder),
        memory: FRAMES * PAGE,
        ahead: Box::new(move |lsn| {
            assert!(lsn > Lsn::NONE);
            flushed.fetch_max(lsn.0, Ordering::Relaxed);
            Ok(())
        }),
    })
    .unwrap();
    let pages = allocate(&pool, 5 * FRAMES);
    for lsn in 1..1000 {
        set(&pool, pages[lsn as usize * 7 % pages.len()], lsn, Lsn(lsn)).unwrap();
    }
    pool.flush_all().unwrap();
    assert!(pool.statistics().written > 500);
}

#[test]
fn a_page_is_not_written_when_the_log_cannot_be() {
    let folder = CrashFolder::new();
    let pool: Many = Pool::open(Setup {
        folder: Some(&folder),
        memory: FRAMES * PAGE,
        ahead: Box::new(|_| Err(Error::Absent("disk"))),
    })
    .unwrap();
    let page = allocate(&pool, 1)[0];
    pool.flush_all().unwrap();
    set(&pool, page, 1, Lsn(1)).unwrap();
    assert!(matches!(pool.flush_all(), Err(Error::Absent(_))));
    assert_eq!(pool.dirty_pages(), [(page, Lsn(1))]);
    let after: Many = open(&folder.crash(0), FRAMES).unwrap();
    assert_eq!(get(&after, page), 0);
}

#[test]
fn a_changed_page_is_accounted_for_by_its_first_change_until_it_is_synced() {
    type Seen = Vec<(PageId, Lsn)>;
    let this: Arc<OnceLock<Many>> = Arc::default();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (pool_then, seen_then) = (Arc::clone(&this), Arc::clone(&seen));
    let opened = Pool::open(Setup {
        folder: Some(&CrashFolder::new()),
        memory: FRAMES * PAGE,
        ahead: Box::new(move |_| {
            // In the midst of a batch: nothing of it is on disk.
            let pool: &Many = pool_then.get().unwrap();
            seen_then.lock().unwrap().push(pool.dirty_pages());
            Ok(())
        }),
    });
    let pool = this.get_or_init(|| opened.unwrap());
    let pages = allocate(pool, 3);
    pool.flush_all().unwrap();
    assert_eq!(pool.dirty_pages(), []);

    set(pool, pages[0], 1, Lsn(100)).unwrap();
    set(pool, pages[1], 1, Lsn(200)).unwrap();
    set(pool, pages[0], 2, Lsn(300)).unwrap();
    let mut dirty = pool.dirty_pages();
    dirty.sort_unstable();
    let expected = [(pages[0], Lsn(100)), (pages[1], Lsn(200))];
    assert_eq!(dirty, expected);
    pool.flush_all().unwrap();
    assert_eq!(pool.dirty_pages(), []);
    let mut midst = seen.lock().unwrap().pop().unwrap();
    midst.sort_unstable();
    assert_eq!(midst, expected);

    set(pool, pages[0], 3, Lsn(400)).unwrap();
    assert_eq!(pool.dirty_pages(), [(pages[0], Lsn(400))]);
}

#[test]
fn accounting_for_changes_waits_for_one_that_is_logged_and_not_yet_made() {
    let pool: Many = open(&CrashFolder::new(), FRAMES).unwrap();
    let page = allocate(&pool, 1)[0];
    pool.flush_all().unwrap();
    let pin = pool.pin(page).unwrap();
    let mut latched = pin.exclusive();
    thread::scope(|scope| {
        let dirty = scope.spawn(|| pool.dirty_pages());
        // Long enough for the other to come to the latch; where it does not, less is seen by this test, and nothing wrong.
        for _ in 0..100 {
            thread::yield_now();
        }
        latched.changed(Lsn(7));
        drop(latched);
        assert_eq!(dirty.join().unwrap(), [(page, Lsn(7))]);
    });
}

#[test]
fn what_a_session_is_about_to_change_is_not_written_for_want_of_a_frame() {
    let folder = CrashFolder::new();
    let pool: One = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 5 * FRAMES);
    let pin = pool.pin(pages[0]).unwrap();
    let mut latched = pin.exclusive();
    latched.changed(Lsn::NONE);
    stamp(&mut latched, 1000);
    for page in &pages[1..] {
        set(&pool, *page, 1, Lsn::NONE).unwrap();
    }
    let mut bytes = vec![0; PAGE];
    file(&folder, DATA_FILE)
        .read(pages[0].0 * PAGE as u64, &mut bytes)
        .unwrap();
    assert_eq!(version(Page::of(&bytes)), 0);
}

#[test]
fn flushing_waits_for_a_page_that_is_latched() {
    let pool: Many = open(&CrashFolder::new(), FRAMES).unwrap();
    let pages = allocate(&pool, 2);
    let pin = pool.pin(pages[0]).unwrap();
    let mut latched = pin.exclusive();
    assert_eq!(
        pool.flush_some(10).unwrap(),
        2,
        "the first page and the other one"
    );
    thread::scope(|scope| {
        let flushed = scope.spawn(|| pool.flush_all());
        for _ in 0..100 {
            thread::yield_now();
        }
        stamp(&mut latched, 5);
        latched.changed(Lsn::NONE);
        drop(latched);
        flushed.join().unwrap().unwrap();
    });
    assert_eq!(pool.dirty_pages(), []);
}

/// The figures of the counters are those of what was done.
#[test]
fn statistics_count_pages() {
    let folder = CrashFolder::new();
    let pool: One = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, FRAMES - 1);
    pool.flush_all().unwrap();
    drop(pool);
    let pool: One = open(&folder, FRAMES).unwrap();
    let first = Statistics {
        misses: 1,
        read: 1,
        ..Statistics::default()
    };
    assert_eq!(
        pool.statistics(),
        first,
        "the first page is read when it is opened"
    );
    for page in pages.iter().chain(&pages) {
        get(&pool, *page);
    }
    set(&pool, pages[3], 1, Lsn::NONE).unwrap();
    pool.flush_all().unwrap();
    let count = pages.len() as u64;
    let now = Statistics {
        hits: count + 1,
        misses: count + 1,
        read: count + 1,
        written: 1,
        evicted: 0,
    };
    assert_eq!(pool.statistics(), now);
    // One more than there are frames.
    allocate(&pool, 1);
    assert_eq!(pool.statistics().evicted, 1);
}

/// A page whose last sector is not there, in its place and, where that is asked for, in the double-write area.
fn tear(folder: &CrashFolder, page: PageId, name: &str, at: usize) {
    let disk = file(folder, name);
    let mut bytes = vec![0; PAGE];
    disk.read((at * PAGE) as u64, &mut bytes).unwrap();
    assert_eq!(Page::of(&bytes).id(), page);
    disk.write((at * PAGE + PAGE - 512) as u64, &[0; 512])
        .unwrap();
}

#[test]
fn a_torn_page_is_repaired_by_its_copy_and_found_where_there_is_none() {
    let folder = CrashFolder::new();
    let pool: Many = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 3);
    pool.flush_all().unwrap();
    set(&pool, pages[1], 9, Lsn::NONE).unwrap();
    pool.flush_all().unwrap();
    drop(pool);

    tear(&folder, pages[1], DATA_FILE, 2);
    let pool: Many = open(&folder, FRAMES).unwrap();
    assert_eq!(get(&pool, pages[1]), 9);
    drop(pool);

    tear(&folder, pages[1], AREA_FILE, 1);
    let pool: Many = open(&folder, FRAMES).unwrap();
    assert_eq!(
        get(&pool, pages[1]),
        9,
        "the place is whole, and the copy is of no interest"
    );
    drop(pool);

    tear(&folder, pages[1], DATA_FILE, 2);
    let pool: Many = open(&folder, FRAMES).unwrap();
    let found = pool.pin(pages[1]);
    assert!(matches!(found, Err(Error::Corrupt(Some(page), _)) if page == pages[1]));
    assert_eq!(get(&pool, pages[0]), 0, "others are as they were");
}

#[test]
fn each_byte_of_a_page_is_checked() {
    let folder = CrashFolder::new();
    let pool: One = open(&folder, FRAMES).unwrap();
    let page = allocate(&pool, 1)[0];
    pool.flush_all().unwrap();
    // Another batch, so that there is no copy.
    pool.set_root(page, &Patches::default()).unwrap();
    pool.flush_all().unwrap();
    drop(pool);
    for offset in 0..PAGE {
        folder.damage(DATA_FILE, PAGE + offset).unwrap();
        let pool: One = open(&folder, FRAMES).unwrap();
        assert!(
            matches!(pool.pin(page), Err(Error::Corrupt(..))),
            "byte {offset}"
        );
        folder.damage(DATA_FILE, PAGE + offset).unwrap();
    }
    let pool: One = open(&folder, FRAMES).unwrap();
    assert_eq!(get(&pool, page), 0);
}

#[test]
fn a_page_that_is_in_the_wrong_place_is_found() {
    let folder = CrashFolder::new();
    let pool: One = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 2);
    pool.flush_all().unwrap();
    drop(pool);
    let disk = file(&folder, DATA_FILE);
    let mut bytes = vec![0; PAGE];
    disk.read(PAGE as u64, &mut bytes).unwrap();
    disk.write(2 * PAGE as u64, &bytes).unwrap();
    file(&folder, AREA_FILE).write(0, &[0; PAGE]).unwrap();
    let pool: One = open(&folder, FRAMES).unwrap();
    assert_eq!(get(&pool, pages[0]), 0);
    assert!(matches!(pool.pin(pages[1]), Err(Error::Corrupt(..))));
}

/// All who wait for a page that cannot be read are told so, and the frame is used again.
#[test]
fn an_unreadable_page_is_told_to_all_who_want_it() {
    let folder = CrashFolder::new();
    let pool: Many = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 2 * FRAMES);
    pool.flush_all().unwrap();
    // Another batch, so that there is no copy.
    set(&pool, pages[1], 1, Lsn::NONE).unwrap();
    pool.flush_all().unwrap();
    drop(pool);
    folder.damage(DATA_FILE, PAGE + 100).unwrap();
    let pool: Pool<Restless, PAGE> = open(&folder, FRAMES).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert!(matches!(pool.pin(pages[0]), Err(Error::Corrupt(..))));
                    assert_eq!(get(&pool, pages[2]), 0);
                }
            });
        }
    });
    let pins: Vec<_> = pages[1..=FRAMES]
        .iter()
        .map(|page| pool.pin(*page).unwrap())
        .collect();
    assert_eq!(pins.len(), FRAMES, "no frame was lost");
}

#[test]
fn after_a_sync_that_failed_nothing_is_written_any_more() {
    let folder = CrashFolder::new();
    let pool: Many = open(&folder, FRAMES).unwrap();
    let page = allocate(&pool, 1)[0];
    pool.flush_all().unwrap();
    set(&pool, page, 1, Lsn(5)).unwrap();
    folder.fail_syncs();
    assert!(matches!(pool.flush_all(), Err(Error::Io(..))));
    let operations = folder.operations();
    assert!(matches!(pool.flush_all(), Err(Error::Refused(_))));
    set(&pool, page, 2, Lsn(6)).unwrap();
    assert!(matches!(pool.flush_some(1), Err(Error::Refused(_))));
    assert_eq!(folder.operations(), operations);
    assert_eq!(
        pool.dirty_pages(),
        [(page, Lsn(5))],
        "the log has to keep what it takes to redo all of it"
    );
}

#[test]
fn a_file_of_other_pages_or_of_none_is_refused() {
    let folder = CrashFolder::new();
    drop(open::<NoLatch>(&folder, FRAMES).unwrap());
    let ahead = || -> Ahead { Box::new(|_| Ok(())) };
    let larger = Pool::<NoLatch, 2048>::open(Setup {
        folder: Some(&folder),
        memory: 1 << 20,
        ahead: ahead(),
    });
    let Err(Error::Refused(message)) = larger else {
        panic!("opened");
    };
    assert_eq!(message, "the file's pages have 1024 bytes, not 2048");

    let other = CrashFolder::new();
    file(&other, DATA_FILE)
        .write(0, b"SQLite format 3\0")
        .unwrap();
    assert!(matches!(
        open::<NoLatch>(&other, FRAMES),
        Err(Error::Corrupt(None, _))
    ));

    assert!(matches!(
        open::<NoLatch>(&folder, 1),
        Err(Error::Refused(_))
    ));
    let nowhere = Pool::<NoLatch, PAGE>::open(Setup {
        folder: None,
        memory: 1 << 20,
        ahead: ahead(),
    });
    assert!(matches!(nowhere, Err(Error::Refused(_))));
}

/// Changes pages until the power fails, and says what each page was when it was flushed last and what it is now.
fn until_the_power_fails(folder: &CrashFolder, seed: u64, pages: usize) -> Vec<(PageId, u64, u64)> {
    let known: RwLock<Vec<(PageId, u64, u64)>> = RwLock::default();
    let mut random = seed;
    let mut next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize
    };
    let mut work = || -> Result<()> {
        let pool: One = open(folder, FRAMES)?;
        for _ in 0..pages {
            let page = pool.allocate(PageKind::Heap, &Silent)?.id();
            known.write().unwrap().push((page, 0, 0));
            set(&pool, page, 0, Lsn::NONE)?;
        }
        pool.flush_all()?;
        for version in 1.. {
            let at = next() % pages;
            let page = known.read().unwrap()[at].0;
            set(&pool, page, version, Lsn::NONE)?;
            known.write().unwrap()[at].2 = version;
            if next() % 20 == 0 {
                pool.flush_all()?;
                known
                    .write()
                    .unwrap()
                    .iter_mut()
                    .for_each(|page| page.1 = page.2);
            }
        }
        Ok(())
    };
    assert!(work().is_err());
    known.into_inner().unwrap()
}

#[test]
fn whenever_the_power_fails_each_page_is_whole_and_as_new_as_it_was_flushed() {
    for point in 0..600 {
        let folder = CrashFolder::new();
        folder.fail_power_at(point);
        let known = until_the_power_fails(&folder, point, 40);
        for seed in 0..4 {
            let found = folder.crash(seed);
            let pool: One = open(&found, FRAMES).unwrap();
            for (page, flushed, last) in &known {
                let pin = pool.pin(*page).unwrap();
                let latched = pin.shared();
                if !latched.is_blank() || *flushed > 0 {
                    let version = version(&latched);
                    assert!(
                        (*flushed..=*last).contains(&version),
                        "{point} {seed} {page:?} {version}"
                    );
                }
            }
        }
    }
}

#[test]
fn files_of_the_system_do_as_well() {
    let path = std::env::temp_dir().join(format!("dyno-glass-pool-{}", std::process::id()));
    let folder = Files::new(&path).unwrap();
    let pool: Many = open(&folder, FRAMES).unwrap();
    let pages = allocate(&pool, 3 * FRAMES);
    for page in &pages {
        set(&pool, *page, page.0 * 3, Lsn::NONE).unwrap();
    }
    pool.set_root(pages[4], &Patches::default()).unwrap();
    pool.flush_all().unwrap();
    drop(pool);
    let pool: Many = open(&folder, FRAMES).unwrap();
    for page in &pages {
        assert_eq!(get(&pool, *page), page.0 * 3);
    }
    assert_eq!(pool.root().unwrap(), pages[4]);
    drop((pool, folder));
    std::fs::remove_dir_all(path).unwrap();
}
