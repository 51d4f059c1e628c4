//! Disks that fail, and stores that are opened by others than those that made them.

use std::io;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::pages::disk::Disk;
use crate::pages::{AREA_FILE, DATA_FILE};

type Full = Small<Rw, Wal<Rw>, Granular<Rw>, Real<Rw>, Typed, ByName>;
type WithoutLog = Small<Rw, NoLog, Granular<Rw>, Real<Rw>, Typed, ByName>;

/// A folder of which some files cannot be written for a while.
#[derive(Clone)]
struct Moody {
    folder: CrashFolder,
    files: &'static [&'static str],
    fails: Arc<AtomicBool>,
}

struct MoodyDisk {
    disk: Arc<dyn Disk>,
    fails: Option<Arc<AtomicBool>>,
}

impl Folder for Moody {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let fails = self.files.contains(&name).then(|| Arc::clone(&self.fails));
        let disk = self.folder.open(name)?;
        Ok(Arc::new(MoodyDisk { disk, fails }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }
}

impl Disk for MoodyDisk {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.fails {
            Some(fails) if fails.load(Ordering::Relaxed) => Err(io::Error::other("not now")),
            _ => self.disk.write(offset, bytes),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }
}

/// An engine of a full assembly with one record, whose next commit takes a checkpoint for which these files cannot be written.
fn about_to_fail(files: &'static [&'static str]) -> (Moody, Engine<Full>, Goods) {
    let moody = Moody {
        folder: CrashFolder::new(),
        files,
        fails: Arc::default(),
    };
    let mut options = options();
    options.checkpoint = 8 << 10;
    let engine: Engine<Full> =
        Engine::open(Some(Arc::new(moody.clone())), &options).expect("it opens");
    let goods = Goods::make(&engine);
    add(&engine, &goods, 1);
    engine.checkpoint().expect("no fault yet");
    moody.fails.store(true, Ordering::Relaxed);
    (moody, engine, goods)
}

/// Adds a record that is as long as the log may grow between checkpoints, nearly, and commits.
fn add(engine: &Engine<Full>, goods: &Goods, number: i32) {
    let mut session = engine.session().expect("open to all");
    session.begin().expect("nothing to tell");
    let record = vec![number as u8; 7000];
    for number in [number, -number] {
        goods.add(&mut session, number, &record).expect("no fault");
    }
    session.commit().expect("it lasts");
}

fn numbers<A: Assembly>(engine: &Engine<A>, goods: &Goods) -> Vec<i32> {
    let mut session = engine.session().expect("open to all");
    session.begin().expect("nothing to tell");
    goods
        .numbers(&mut session, 1, i32::MAX, Direction::Forwards, usize::MAX)
        .expect("no fault")
}

fn assert_there(folder: &CrashFolder, expected: &[i32]) {
    for seed in 0..8 {
        let engine = open::<Full>(&folder.crash(seed));
        engine.verify().expect("whole");
        assert_eq!(numbers(&engine, &Goods::find(&engine)), expected);
    }
}

#[test]
fn a_commit_that_lasts_is_one_when_its_checkpoint_fails_which_is_told_once_and_tried_again() {
    let (moody, engine, goods) = about_to_fail(&["master"]);
    add(&engine, &goods, 2);
    assert_there(&moody.folder, &[1, 2]);
    let mut session = engine.session().expect("open to all");
    assert!(matches!(session.begin(), Err(Error::Io(_, _))));
    session.begin().expect("it has been told");
    session.rollback().expect("no fault");
    add(&engine, &goods, 3);
    assert!(
        matches!(session.begin(), Err(Error::Io(_, _))),
        "it was tried again"
    );

    moody.fails.store(false, Ordering::Relaxed);
    assert!(engine.log.grown() > 8 << 10);
    add(&engine, &goods, 4);
    assert!(engine.log.grown() < 8 << 10, "it was taken");
    session.begin().expect("nothing to tell");
    session.commit().expect("no fault");
    drop(session);
    assert_there(&moody.folder, &[1, 2, 3, 4]);
    engine.close().expect("no fault");
}

#[test]
fn commits_last_where_pages_cannot_be_written_and_closing_tells() {
    for file in [&[DATA_FILE], &[AREA_FILE]] {
        let (moody, engine, goods) = about_to_fail(file);
        for number in 2..6 {
            add(&engine, &goods, number);
            let told = engine.session().expect("open to all").begin();
            assert!(
                matches!(told, Err(Error::Io(_, _) | Error::Refused(_))),
                "{told:?}"
            );
        }
        assert_there(&moody.folder, &[1, 2, 3, 4, 5]);
        assert!(engine.close().is_err());
        assert_there(&moody.folder, &[1, 2, 3, 4, 5]);
    }
}

#[test]
fn without_a_log_a_store_is_taken_over_if_it_was_closed_and_refused_if_it_has_to_be_recovered() {
    let folder = CrashFolder::new();
    let engine = open::<Full>(&folder);
    let goods = Goods::make(&engine);
    add(&engine, &goods, 1);
    let in_memory = {
        let mut options = options();
        options.log.policy = log::Policy::Memory;
        options
    };
    for seed in 0..8 {
        let crashed = Arc::new(folder.crash(seed));
        let refused = Engine::<WithoutLog>::open(Some(crashed.clone()), &options()).err();
        assert!(matches!(refused, Some(Error::Refused(_))), "{refused:?}");
        let refused = Engine::<Full>::open(Some(crashed.clone()), &in_memory).err();
        assert!(matches!(refused, Some(Error::Refused(_))), "{refused:?}");
        // Which changed nothing: who has the log goes on.
        let engine = open::<Full>(&crashed);
        assert_eq!(numbers(&engine, &Goods::find(&engine)), [1]);
    }
    engine.close().expect("no fault");

    let engine = open::<WithoutLog>(&folder);
    let goods = Goods::find(&engine);
    assert_eq!(numbers(&engine, &goods), [1]);
    let mut session = engine.session().expect("open to all");
    session.begin().expect("nothing to tell");
    goods.add(&mut session, 2, b"two").expect("no fault");
    assert!(goods.take(&mut session, 1).expect("no fault"));
    session.commit().expect("no fault");
    drop(session);
    // A log that knew nothing of this would undo it.
    let refused = Engine::<Full>::open(Some(Arc::new(folder.crash(0))), &options()).err();
    assert!(
        matches!(refused, Some(Error::Refused(_) | Error::Corrupt(_, _))),
        "{refused:?}"
    );
    engine.close().expect("no fault");
    let refused = Engine::<Full>::open(Some(Arc::new(folder.clone())), &options()).err();
    assert!(matches!(refused, Some(Error::Refused(_))), "{refused:?}");

    let engine: Engine<Full> =
        Engine::open(Some(Arc::new(folder.clone())), &in_memory).expect("it was closed");
    engine.verify().expect("whole");
    assert_eq!(numbers(&engine, &Goods::find(&engine)), [2]);
    engine.close().expect("no fault");
    let engine = open::<WithoutLog>(&folder);
    assert_eq!(numbers(&engine, &Goods::find(&engine)), [2]);
}

#[test]
fn a_log_that_is_taken_away_is_no_damage_when_that_is_cut_off() {
    let closed = || {
        let folder = CrashFolder::new();
        let mut small = options();
        small.log.segment = 4096;
        let engine: Engine<Full> =
            Engine::open(Some(Arc::new(folder.clone())), &small).expect("no fault");
        let goods = Goods::make(&engine);
        add(&engine, &goods, 1);
        engine.close().expect("no fault");
        folder
    };
    let (mut had, mut refused) = (0, 0);
    for operations in 0.. {
        let folder = closed();
        folder.fail_power_at(folder.operations() + operations);
        let taken = Engine::<WithoutLog>::open(Some(Arc::new(folder.clone())), &options());
        if taken.is_ok() && !folder.has_failed() {
            break;
        }
        drop(taken);
        for seed in 0..4 {
            let with_log = Engine::<Full>::open(Some(Arc::new(folder.crash(seed))), &options());
            match with_log {
                Ok(engine) => {
                    had += 1;
                    assert_eq!(numbers(&engine, &Goods::find(&engine)), [1]);
                }
                Err(Error::Refused(_)) => refused += 1,
                Err(error) => panic!("after {operations}: {error}"),
            }
            let engine = open::<WithoutLog>(&folder.crash(seed));
            assert_eq!(numbers(&engine, &Goods::find(&engine)), [1]);
        }
    }
    assert!(had > 4 && refused > 4, "{had} {refused}");
}
