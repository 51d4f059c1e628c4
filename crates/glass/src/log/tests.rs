#![expect(clippy::cast_possible_truncation, reason = "files of memory")]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::record::Entry;
use super::*;
use crate::latch::Latch;
use crate::latch::{NoLatch, RwLatch};
use crate::pages::disk::Disk;
use crate::pages::disk::Folder;
use crate::pages::disk::crash::CrashFolder;
use crate::pages::{HEADER, PageKind, Pages, Pin, Pool, Setup, Writable};
use crate::{Error, Lsn, PageId, Result, Rid, TxId};

/// Files in memory: what was written, and what of it was synced.
#[derive(Default)]
struct Shelf {
    files: Mutex<BTreeMap<String, Image>>,
    syncs: AtomicU64,
    fails: AtomicBool,
    /// Called by each sync while it is under way.
    at_sync: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

#[derive(Clone, Default)]
struct Image {
    live: Vec<u8>,
    synced: Vec<u8>,
}

struct Handle {
    shelf: Arc<Shelf>,
    name: String,
}

/// [`Folder`] is of the shelf that is shared.
struct Room(Arc<Shelf>);

impl Shelf {
    fn folder(self: &Arc<Self>) -> Arc<dyn Folder> {
        Arc::new(Room(Arc::clone(self)))
    }

    /// What a loss of power leaves that takes all that was not synced.
    fn synced(&self) -> Arc<Self> {
        self.left(|image| image.synced.clone())
    }

    /// What a loss of power leaves that takes nothing.
    fn live(&self) -> Arc<Self> {
        self.left(|image| image.live.clone())
    }

    fn left(&self, what: impl Fn(&Image) -> Vec<u8>) -> Arc<Self> {
        let files = self.files.lock();
        let files = files.iter().map(|(name, image)| {
            let left = what(image);
            (
                name.clone(),
                Image {
                    synced: left.clone(),
                    live: left,
                },
            )
        });
        Arc::new(Self {
            files: Mutex::new(files.collect()),
            ..Self::default()
        })
    }

    fn change(&self, name: &str, with: impl FnOnce(&mut Vec<u8>)) {
        with(&mut self.files.lock().get_mut(name).unwrap().live);
    }

    fn segments(&self) -> Vec<u64> {
        let files = self.files.lock();
        let numbers = files.keys().filter_map(|name| name.strip_prefix("log-"));
        numbers.map(|number| number.parse().unwrap()).collect()
    }

    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::SeqCst)
    }
}

impl Folder for Room {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        self.0.files.lock().entry(name.into()).or_default();
        Ok(Arc::new(Handle {
            shelf: Arc::clone(&self.0),
            name: name.into(),
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.files.lock().remove(name).unwrap();
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.files.lock().keys().cloned().collect())
    }
}

impl Disk for Handle {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        let files = self.shelf.files.lock();
        let live = &files[&self.name].live;
        let from = (offset as usize).min(live.len());
        let there = &live[from..(from + into.len()).min(live.len())];
        into[..there.len()].copy_from_slice(there);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.shelf.files.lock();
        let live = &mut files.get_mut(&self.name).unwrap().live;
        let end = offset as usize + bytes.len();
        if live.len() < end {
            live.resize(end, 0);
        }
        live[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.shelf.syncs.fetch_add(1, Ordering::SeqCst);
        if self.shelf.fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        let at_call = self.shelf.files.lock()[&self.name].live.clone();
        if let Some(at_sync) = &*self.shelf.at_sync.lock() {
            at_sync();
        }
        self.shelf.files.lock().get_mut(&self.name).unwrap().synced = at_call;
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.shelf.files.lock()[&self.name].live.len() as u64)
    }
}

type Real = Wal<RwLatch>;

fn options(policy: Policy) -> Options {
    Options {
        policy,
        buffer: 2048,
        segment: 4096,
    }
}

/// A log of a store that has just been made.
fn made(shelf: &Arc<Shelf>, policy: Policy) -> Real {
    let (log, recovery) = Real::open(shelf.folder(), &options(policy)).unwrap();
    assert!(recovery.is_none(), "there is no store yet");
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    log
}

fn reopened(shelf: &Arc<Shelf>) -> (Real, Recovery) {
    let (log, recovery) = Real::open(shelf.folder(), &options(Policy::Synced)).unwrap();
    (log, recovery.unwrap())
}

/// Some change of a page of `tx`, and how it is undone.
fn change(page: u64, bytes: &[u8]) -> Record<'_> {
    let rid = Rid::new(PageId(page), 1);
    Record::Change(
        Change::HeapUpdate {
            rid,
            offset: 0,
            after: bytes,
        },
        Undo::HeapUpdate {
            rid,
            offset: 0,
            before: bytes,
        },
    )
}

/// The transactions whose commits are in a log, from its very beginning to its end.
fn committed(shelf: &Arc<Shelf>) -> Vec<TxId> {
    let segments = segments::Segments::new(shelf.folder(), 4096).unwrap();
    let mut reader = recovery::Reader::new(segments);
    let mut committed = Vec::new();
    let mut at = Lsn(0);
    while let Some(end) = reader
        .record_from(at, |end, head, entry| {
            if entry == Entry::Commit {
                committed.push(head.tx);
            }
            Ok(Some(end))
        })
        .unwrap()
    {
        at = end;
    }
    committed
}

#[test]
fn a_commit_that_returned_is_on_disk() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let returned = Mutex::new(BTreeSet::new());
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (log, returned, done) = (&log, &returned, &done);
            scope.spawn(move || {
                for number in 0..40 {
                    let tx = TxId(thread + number * 6 + 1);
                    let mut last = Lsn::NONE;
                    for _ in 0..=number % 3 {
                        last = log.append(tx, last, &change(tx.0, &[7; 300])).unwrap();
                    }
                    log.commit(tx, last).unwrap();
                    returned.lock().insert(tx);
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let mut looks = 0;
        while done.load(Ordering::SeqCst) < 6 || looks == 0 {
            let promised = returned.lock().clone();
            let there: BTreeSet<_> = committed(&shelf.synced()).into_iter().collect();
            assert!(promised.is_subset(&there));
            looks += 1;
        }
    });
    assert_eq!(committed(&shelf.synced()).len(), 240);
    assert_eq!(reopened(&shelf.synced()).1.losers().len(), 0);
}

#[test]
fn those_who_come_while_one_is_synced_are_synced_together() {
    const THREADS: u64 = 16;
    let shelf = Arc::new(Shelf::default());
    let log = Arc::new(made(&shelf, Policy::Synced));
    let before = log.statistics();
    let one = {
        let last = log.append(TxId(100), Lsn::NONE, &change(1, b"x")).unwrap();
        log.commit(TxId(100), last).unwrap();
        log.statistics().appended - before.appended
    };
    let all = log.statistics().appended + one * THREADS;
    // The first sync goes on until all have appended theirs.
    let seen = Arc::clone(&log);
    *shelf.at_sync.lock() = Some(Box::new(move || {
        while seen.statistics().appended < all {
            std::thread::yield_now();
        }
    }));
    let before = log.statistics().syncs;
    std::thread::scope(|scope| {
        for tx in 1..=THREADS {
            let log = &log;
            scope.spawn(move || {
                let last = log.append(TxId(tx), Lsn::NONE, &change(1, b"x")).unwrap();
                log.commit(TxId(tx), last).unwrap();
            });
        }
    });
    assert!(log.statistics().syncs - before <= 2);
    assert_eq!(committed(&shelf.synced()).len() as u64, THREADS + 1);
}

#[test]
fn the_log_ends_at_a_torn_record() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let whole = log
        .append(TxId(1), Lsn::NONE, &change(1, b"whole"))
        .unwrap();
    let torn = log.append(TxId(2), Lsn::NONE, &change(2, b"torn")).unwrap();
    log.flush(torn).unwrap();
    for cut in whole.0..torn.0 {
        let left = shelf.synced();
        left.change("log-0000000000", |file| file[cut as usize] ^= 0x55);
        let (_, recovery) = reopened(&left);
        assert_eq!(recovery.end(), whole);
        assert_eq!(recovery.highest(), TxId(1));
    }
    assert_eq!(reopened(&shelf.synced()).1.end(), torn);
}

/// What is written after recovery may end just where an old record begins, which was written after the torn one.
#[test]
fn records_left_behind_an_end_are_none() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let start = log.end_of_log();
    let last = log.append(TxId(5), Lsn::NONE, &change(1, b"torn")).unwrap();
    log.commit(TxId(5), last).unwrap();
    let left = shelf.live();
    left.change("log-0000000000", |file| file[start.0 as usize + 20] ^= 1);
    let (log, recovery) = reopened(&left);
    assert_eq!(recovery.end(), start);
    // The same again, but not committed.
    let again = log.append(TxId(5), Lsn::NONE, &change(1, b"torn")).unwrap();
    assert_eq!(again, last);
    log.flush(again).unwrap();
    let (log, recovery) = reopened(&left.synced());
    assert_eq!(recovery.end(), last);
    assert_eq!(recovery.losers().len(), 1);
    drop(log);
}

#[test]
fn a_log_that_ends_within_its_checkpoint_is_damaged() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let end = log.end_of_log();
    let left = shelf.synced();
    left.change("log-0000000000", |file| file.truncate(end.0 as usize - 4));
    let opened = Real::open(left.folder(), &options(Policy::Synced));
    assert!(matches!(opened.err(), Some(Error::Corrupt(None, _))));
}

#[test]
fn the_master_record_is_whole_when_one_copy_is() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let last = log.append(TxId(1), Lsn::NONE, &change(1, b"x")).unwrap();
    log.commit(TxId(1), last).unwrap();
    let old = log.end_of_log();
    log.checkpoint(|| Ok(vec![(PageId(1), last)])).unwrap();
    let mut begins = BTreeSet::new();
    for copy in [0, 4096] {
        let left = shelf.synced();
        left.change("master", |file| file[copy + 20] ^= 1);
        let (_, recovery) = reopened(&left);
        assert!(recovery.end() > old);
        begins.insert(recovery.redo_from());
    }
    // From the last checkpoint the page is dirty, from the one before it is not yet, but its change is still to be read.
    assert_eq!(begins.len(), 1);
    let left = shelf.synced();
    for copy in [0, 4096] {
        left.change("master", |file| file[copy + 20] ^= 1);
    }
    let opened = Real::open(left.folder(), &options(Policy::Synced));
    assert!(matches!(opened.err(), Some(Error::Corrupt(None, _))));
}

#[test]
fn a_store_that_was_not_finished_is_none() {
    let shelf = Arc::new(Shelf::default());
    let (log, recovery) = Real::open(shelf.folder(), &options(Policy::Synced)).unwrap();
    assert!(recovery.is_none());
    let last = log.append(TxId(1), Lsn::NONE, &change(1, b"x")).unwrap();
    log.commit(TxId(1), last).unwrap();
    drop(log);
    let (log, recovery) = Real::open(shelf.folder(), &options(Policy::Synced)).unwrap();
    assert!(recovery.is_none());
    assert_eq!(log.end_of_log(), Lsn(0));
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    let end = log.end_of_log();
    assert_eq!(reopened(&shelf.synced()).1.end(), end);
}

#[test]
fn a_log_that_could_not_be_synced_is_broken_from_then_on() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let last = log.append(TxId(1), Lsn::NONE, &change(1, b"x")).unwrap();
    log.commit(TxId(1), last).unwrap();
    let safe = log.synced();
    let two = log.append(TxId(2), Lsn::NONE, &change(1, b"y")).unwrap();
    let three = log.append(TxId(3), Lsn::NONE, &change(1, b"y")).unwrap();
    shelf.fails.store(true, Ordering::SeqCst);
    assert!(matches!(
        log.commit(TxId(2), two),
        Err(Error::Io("the log", _))
    ));
    // The next sync would go well, and would prove nothing.
    shelf.fails.store(false, Ordering::SeqCst);
    let syncs = shelf.syncs();
    let broken = |result: Result<()>| {
        let message = result.unwrap_err().to_string();
        assert!(
            message.contains("broken") && message.contains("the disk is gone"),
            "{message}"
        );
    };
    broken(log.commit(TxId(3), three));
    broken(log.commit(TxId(4), Lsn::NONE));
    broken(log.append(TxId(3), three, &change(1, b"z")).map(drop));
    broken(log.end(TxId(3), three));
    broken(log.flush(three));
    broken(log.checkpoint(|| Ok(Vec::new())));
    assert_eq!(shelf.syncs(), syncs);
    log.flush(safe).unwrap();
    assert_eq!(committed(&shelf.synced()), [TxId(1)]);
}

#[test]
fn records_of_many_buffers_and_files_are_read_again() {
    fn fill<L: Latch>(log: &Wal<L>) {
        let mut last = Lsn::NONE;
        for number in 0..200_u8 {
            let bytes = vec![number; usize::from(number) * 9];
            last = log.append(TxId(1), last, &change(3, &bytes)).unwrap();
        }
        log.commit(TxId(1), last).unwrap();
    }
    let shelf = Arc::new(Shelf::default());
    let options = Options {
        buffer: 4000,
        ..options(Policy::Synced)
    };
    let (log, _) = Wal::<NoLatch>::open(shelf.folder(), &options).unwrap();
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    fill(&log);
    assert!(shelf.segments().len() > 40);
    assert_eq!(log.statistics().written, log.end_of_log().0);
    assert_eq!(reopened(&shelf.synced()).1.end(), log.end_of_log());
    let long = vec![0; 4000];
    let refused = log.append(TxId(2), Lsn::NONE, &change(3, &long));
    assert!(matches!(refused, Err(Error::Refused(_))));
    fill(&Wal::<NoLatch>::in_memory(&options));
}

#[test]
fn a_log_in_memory_is_never_written() {
    let shelf = Arc::new(Shelf::default());
    let (log, recovery) =
        <Real as LogFiles<RwLatch>>::open(Some(shelf.folder()), &options(Policy::Memory)).unwrap();
    assert!(recovery.is_none());
    for tx in 1..1000 {
        let last = log
            .append(TxId(tx), Lsn::NONE, &change(1, &[1; 100]))
            .unwrap();
        log.flush(last).unwrap();
        log.commit(TxId(tx), last).unwrap();
    }
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    let statistics = log.statistics();
    assert!(statistics.appended > 100_000);
    assert_eq!((statistics.written, statistics.syncs), (0, 0));
    assert_eq!(shelf.files.lock().len(), 0);
}

#[test]
fn a_written_log_is_with_the_system_at_each_commit_and_synced_at_times() {
    for (interval, is_synced) in [(Duration::ZERO, true), (Duration::from_hours(1), false)] {
        let shelf = Arc::new(Shelf::default());
        let log = made(&shelf, Policy::Written(interval));
        for tx in 1..=20 {
            let last = log.append(TxId(tx), Lsn::NONE, &change(1, b"x")).unwrap();
            log.commit(TxId(tx), last).unwrap();
            assert_eq!(committed(&shelf.live()).len() as u64, tx);
            let there = if is_synced { tx } else { 0 };
            assert_eq!(committed(&shelf.synced()).len() as u64, there);
        }
        let end = log.end_of_log();
        log.flush(end).unwrap();
        assert_eq!(committed(&shelf.synced()).len(), 20);
    }
}

#[test]
fn a_page_ahead_of_the_log_is_told() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let end = log.end_of_log();
    assert!(matches!(
        log.flush(Lsn(end.0 + 1)),
        Err(Error::Corrupt(None, _))
    ));
}

#[test]
fn checkpoints_keep_what_is_needed_and_remove_the_rest() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let mut next = 1;
    let mut fill = || {
        let mut end = Lsn::NONE;
        for _ in 0..40 {
            next += 1;
            end = log
                .append(TxId(next), Lsn::NONE, &change(9, &[3; 400]))
                .unwrap();
            log.commit(TxId(next), end).unwrap();
        }
        end
    };
    let file = |lsn: Lsn| lsn.0 / 4096;
    fill();
    let open = log
        .append(TxId(1000), Lsn::NONE, &change(4, b"open"))
        .unwrap();
    let unwritten = fill();
    fill();
    log.checkpoint(|| Ok(vec![(PageId(9), unwritten)])).unwrap();
    assert_eq!(shelf.segments()[0], file(open));
    let (_, recovery) = reopened(&shelf.synced());
    assert_eq!(recovery.losers().len(), 1);
    assert_eq!(
        (recovery.losers()[0].tx, recovery.losers()[0].last),
        (TxId(1000), open)
    );
    assert!(recovery.redo_from() < unwritten && recovery.redo_from().0 > unwritten.0 - 900);

    log.commit(TxId(1000), open).unwrap();
    log.checkpoint(|| Ok(vec![(PageId(9), unwritten)])).unwrap();
    assert_eq!(shelf.segments()[0], file(unwritten));
    let before = log.end_of_log();
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    assert_eq!(shelf.segments()[0], file(before));
    assert!(log.grown() < 200);
    let (_, recovery) = reopened(&shelf.synced());
    assert_eq!(recovery.losers().len(), 0);
    assert_eq!(
        recovery.highest(),
        TxId(1000),
        "though no record of it is left"
    );
    assert_eq!(recovery.redo_from(), recovery.end());
}

#[test]
fn what_is_under_way_while_a_checkpoint_is_taken_is_not_missed() {
    let shelf = Arc::new(Shelf::default());
    let log = made(&shelf, Policy::Synced);
    let ends = log.append(TxId(1), Lsn::NONE, &change(1, b"x")).unwrap();
    let stays = log.append(TxId(2), Lsn::NONE, &change(2, b"x")).unwrap();
    let went = log.append(TxId(3), Lsn::NONE, &change(3, b"x")).unwrap();
    log.commit(TxId(3), went).unwrap();
    let new = Cell::new(Lsn::NONE);
    log.checkpoint(|| {
        // Between the checkpoint's beginning and its lists.
        log.commit(TxId(1), ends).unwrap();
        new.set(log.append(TxId(4), Lsn::NONE, &change(2, b"x")).unwrap());
        // The page's first change is older than that.
        Ok(vec![(PageId(2), stays)])
    })
    .unwrap();
    let (log, recovery) = reopened(&shelf.synced());
    let mut losers: Vec<_> = recovery
        .losers()
        .iter()
        .map(|loser| (loser.tx, loser.last))
        .collect();
    losers.sort();
    assert_eq!(losers, [(TxId(2), stays), (TxId(4), new.get())]);
    assert!(recovery.redo_from() < stays);
    // They are still under way for a checkpoint before they are undone.
    log.checkpoint(|| Ok(Vec::new())).unwrap();
    let (_, recovery) = reopened(&shelf.live());
    assert_eq!(recovery.losers().len(), 2);
}

/// Undoes by writing the compensation alone, and dies after some of them.
struct Scribe<'a> {
    log: &'a Real,
    left: Cell<usize>,
    undone: RefCell<Vec<(TxId, u64)>>,
}

impl Undoer for Scribe<'_> {
    fn undo(&self, tx: TxId, last: Lsn, next: Lsn, undo: Undo<'_>) -> Result<Lsn> {
        if self.left.get() == 0 {
            return Err(Error::Refused("power was lost".into()));
        }
        self.left.set(self.left.get() - 1);
        let Undo::HeapUpdate { rid, .. } = undo else {
            panic!("{undo:?}");
        };
        self.undone.borrow_mut().push((tx, rid.page().0));
        let change = Change::HeapDelete { rid };
        self.log
            .append(tx, last, &Record::Compensation(change, next))
    }
}

/// A transaction under way: its last record, and its changes, each with its page and where the record before it ends.
struct Open {
    tx: TxId,
    last: Lsn,
    changes: Vec<(u64, Lsn)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Change,
    Structure,
    Commit,
    /// So many of its changes are undone, or all and it ends.
    Undo(usize),
    Checkpoint,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let step = prop_oneof![
        8 => Just(Step::Change),
        1 => Just(Step::Structure),
        1 => Just(Step::Commit),
        1 => (0..6usize).prop_map(Step::Undo),
        1 => Just(Step::Checkpoint),
    ];
    (0..5u64, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each change of a transaction that had not ended is undone once, newest first, however often the undoing is broken off.
    #[test]
    fn each_change_is_undone_once(steps in prop::collection::vec(step(), 0..80), dies in prop::collection::vec(0..6usize, 0..4)) {
        let shelf = Arc::new(Shelf::default());
        let log = made(&shelf, Policy::Synced);
        let mut open: BTreeMap<u64, Open> = BTreeMap::new();
        let mut next_tx = 0;
        for (at, (session, step)) in steps.into_iter().enumerate() {
            let page = at as u64 + 1;
            let state = open.entry(session).or_insert_with(|| {
                next_tx += 1;
                Open { tx: TxId(next_tx), last: Lsn::NONE, changes: Vec::new() }
            });
            match step {
                Step::Change => {
                    let previous = state.last;
                    state.last = log.append(state.tx, previous, &change(page, b"x")).unwrap();
                    state.changes.push((page, previous));
                }
                Step::Structure => {
                    let record = Record::Structure(Change::HeapReclaim { page: PageId(page) });
                    state.last = log.append(state.tx, state.last, &record).unwrap();
                }
                Step::Commit => {
                    log.commit(state.tx, state.last).unwrap();
                    open.remove(&session);
                }
                Step::Undo(count) => {
                    for _ in 0..count {
                        if let Some((page, next)) = state.changes.pop() {
                            let change = Change::HeapDelete { rid: Rid::new(PageId(page), 1) };
                            let record = Record::Compensation(change, next);
                            state.last = log.append(state.tx, state.last, &record).unwrap();
                        }
                    }
                    if count == 5 && state.changes.is_empty() {
                        log.end(state.tx, state.last).unwrap();
                        open.remove(&session);
                    }
                }
                Step::Checkpoint => log.checkpoint(|| Ok(Vec::new())).unwrap(),
            }
        }
        let end = log.end_of_log();
        log.flush(end).unwrap();
        let mut expected: Vec<_> = open
            .values()
            .flat_map(|open| open.changes.iter().map(|(page, _)| (open.tx, *page)))
            .collect();
        expected.sort_by_key(|(_, page)| std::cmp::Reverse(*page));

        let mut left = shelf.synced();
        let mut undone = Vec::new();
        for dies_after in dies.into_iter().chain([usize::MAX]) {
            let (log, recovery) = reopened(&left);
            let scribe = Scribe { log: &log, left: Cell::new(dies_after), undone: RefCell::default() };
            let result = recovery.undo(&log, &scribe);
            undone.extend(scribe.undone.into_inner());
            prop_assert!(result.is_ok() || dies_after < usize::MAX);
            let end = log.end_of_log();
            log.flush(end).unwrap();
            left = left.synced();
        }
        prop_assert_eq!(undone, expected);
        prop_assert!(reopened(&left).1.losers().is_empty());
    }
}

type SmallPool = Pool<RwLatch, 512>;

/// Pages over a log whose power may fail, and what was done to them.
struct Store {
    log: Arc<Real>,
    pages: SmallPool,
}

impl Store {
    fn open(folder: &CrashFolder) -> Result<(Self, Option<Recovery>)> {
        let (log, recovery) = Real::open(Arc::new(folder.clone()), &options(Policy::Synced))?;
        let log = Arc::new(log);
        let ahead = Arc::clone(&log);
        let pages = SmallPool::open(Setup {
            folder: Some(folder),
            memory: 16 * 512,
            ahead: Box::new(move |lsn| Log::<RwLatch>::flush(&*ahead, lsn)),
        })?;
        Ok((Self { log, pages }, recovery))
    }

    fn checkpoint(&self) -> Result<()> {
        self.log.checkpoint(|| Ok(self.pages.dirty_pages()))
    }
}

/// Bytes that were written into a page, and where the record ends that says so.
struct Written {
    lsn: Lsn,
    page: PageId,
    offset: u16,
    bytes: [u8; 5],
}

#[derive(Clone, Debug)]
enum Deed {
    /// Writes such bytes into each of these pages, with one record.
    Write(BTreeSet<usize>, u16, u8),
    Flush,
    Clean(usize),
    Checkpoint,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => (prop::collection::btree_set(0..30usize, 1..4), 0..480u16, any::<u8>())
            .prop_map(|(pages, offset, byte)| Deed::Write(pages, offset, byte)),
        1 => Just(Deed::Flush),
        1 => (1..8usize).prop_map(Deed::Clean),
        1 => Just(Deed::Checkpoint),
    ]
}

/// Does these things until the power fails.
fn busy(store: &Store, deeds: Vec<Deed>, pages: &[PageId], done: &mut Vec<Written>) -> Result<()> {
    for deed in deeds {
        match deed {
            Deed::Write(which, offset, byte) => {
                let offset = offset + HEADER as u16;
                let bytes = [byte; 5];
                let pins: Vec<_> = (which.iter())
                    .map(|page| store.pages.pin(pages[*page]))
                    .collect::<Result<_>>()?;
                let mut latched: Vec<_> = pins.iter().map(Pin::exclusive).collect();
                let patches: Vec<_> = (pins.iter())
                    .map(|pin| Patch {
                        page: pin.id(),
                        offset,
                        bytes: &bytes,
                    })
                    .collect();
                let record = Record::Structure(Change::Write(&patches));
                let lsn = store.log.append(TxId(0), Lsn::NONE, &record)?;
                for (page, pin) in latched.iter_mut().zip(&pins) {
                    page.write(offset, &bytes);
                    page.changed(lsn);
                    done.push(Written {
                        lsn,
                        page: pin.id(),
                        offset,
                        bytes,
                    });
                }
            }
            Deed::Flush => store.log.flush(store.log.end_of_log())?,
            Deed::Clean(count) => {
                store.pages.flush_some(count)?;
            }
            Deed::Checkpoint => store.checkpoint()?,
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// After any crash, also while recovering, pages are as the log says that is left, which is at least what was synced.
    #[test]
    fn redo_repeats_history(
        deeds in prop::collection::vec(deed(), 20..120),
        fails_after in 0..150u64,
        fails_again_after in prop::collection::vec(0..40u64, 0..3),
        seed in any::<u64>(),
    ) {
        let folder = CrashFolder::new();
        let (store, _) = Store::open(&folder).unwrap();
        let pages: Vec<_> = (0..30)
            .map(|_| store.pages.allocate(PageKind::Heap, &*store.log).unwrap().id())
            .collect();
        store.pages.flush_all().unwrap();
        store.checkpoint().unwrap();
        let mut done = Vec::new();
        folder.fail_power_at(folder.operations() + fails_after);
        let _ = busy(&store, deeds, &pages, &mut done);
        let mut synced = store.log.synced();
        drop(store);

        let mut left = folder.crash(seed);
        for (at, fails_after) in fails_again_after.into_iter().enumerate() {
            left.fail_power_at(fails_after);
            if let Ok((store, Some(mut recovery))) = Store::open(&left) {
                prop_assert!(recovery.end() >= synced);
                // What was lost is lost, though the log will be as long again.
                done.retain(|written| written.lsn <= recovery.end());
                if recovery.redo(&store.pages).is_ok() {
                    let _ = store.checkpoint();
                }
                synced = synced.max(store.log.synced());
            }
            left = left.crash(seed ^ at as u64);
        }
        let (store, recovery) = Store::open(&left).unwrap();
        let mut recovery = recovery.unwrap();
        recovery.redo(&store.pages).unwrap();
        prop_assert!(recovery.end() >= synced);
        for page in pages {
            let mut expected = [0; 512];
            let mut lsn = None;
            for written in done.iter().filter(|written| written.page == page && written.lsn <= recovery.end()) {
                let at = usize::from(written.offset);
                expected[at..at + 5].copy_from_slice(&written.bytes);
                lsn = Some(written.lsn);
            }
            let pin = store.pages.pin(page).unwrap();
            let found = pin.shared();
            prop_assert_eq!(&found.bytes()[HEADER..], &expected[HEADER..]);
            prop_assert!(lsn.is_none_or(|lsn| found.lsn() == lsn));
        }
    }
}
