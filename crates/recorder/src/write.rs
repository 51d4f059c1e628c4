//! What programs do to a file system that is about to lose power: several threads that create, append,
//! overwrite, truncate, replace by renaming, remove, and ask for durability in each of the ways there are,
//! and beside them files that nobody ever syncs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_load::{Random, mix64};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::libc::O_DSYNC;
use nix::sys::statvfs::statvfs;
use nix::unistd::syncfs;
use serde::Serialize;

use crate::disk::read_point;
use crate::history::{Did, Keeper, Operation, Run};
use crate::sector::{Identity, SECTOR, fill};

/// What to do.
pub struct Job {
    /// The root of the file system.
    pub folder: PathBuf,
    /// The file in which the recorder keeps the point of its log.
    pub point: PathBuf,
    /// The file to write the history to.
    pub history: PathBuf,
    /// How many write at once.
    pub threads: u64,
    /// For how long.
    pub limit: Limit,
    /// All that is left to chance is a function of it, but for how the threads' operations interleave.
    pub seed: u64,
    /// How many files each thread has at the most.
    pub files: u64,
    /// How large a file becomes, in blocks.
    pub largest: u64,
    /// Of 100 steps, how many are with files that are never synced.
    pub loose: u64,
    /// How much of the free room is filled and given back beforehand, in percent.
    pub prefill: u64,
}

/// What ends it.
#[derive(Clone, Copy)]
pub enum Limit {
    /// Time.
    Time(Duration),
    /// Steps of all threads together.
    Steps(u64),
}

/// What was done.
#[derive(Debug, Default, Serialize)]
pub struct Done {
    /// The point of the log when the threads began.
    pub began_point: u64,
    /// The point when they had ended.
    pub ended_point: u64,
    /// From the one to the other.
    pub elapsed_ns: u64,
    /// Operations by their names.
    pub operations: BTreeMap<String, u64>,
    /// How long all that asked for durability took, together.
    pub sync_ns: u64,
    /// Those, `fsync` of folders and writes with `O_DSYNC` among them.
    pub syncs: u64,
    /// Bytes that were written by the threads.
    pub bytes_written: u64,
    /// Bytes of old data that were written and removed beforehand.
    pub prefilled: u64,
    /// Whether it was told to end before its limit.
    pub halted: bool,
}

const BLOCK: u64 = 8;
/// Of a file's number: it is of the old data that were there and removed before the threads began.
pub const OLD: u64 = 1 << 63;
const FOLDERS: u64 = 4;
const OLD_FILE: u64 = 8 << 20;
const OLD_CHUNK: u64 = 1 << 20;

/// Fills, gives back, writes. An error names the file.
pub fn write(job: &Job, halt: &AtomicBool) -> io::Result<Done> {
    let run = mix64(job.seed);
    let prefilled = prefill(job, run)?;
    for folder in 0..FOLDERS {
        let path = job.folder.join(format!("d{folder}"));
        fs::create_dir(&path).map_err(at(&path))?;
    }
    let root = File::open(&job.folder).map_err(at(&job.folder))?;
    syncfs(&root)?;
    let keeper = Keeper::create(&job.history, Run { run }).map_err(at(&job.history))?;
    let point = File::open(&job.point).map_err(at(&job.point))?;
    let shared = Shared {
        job,
        run,
        point,
        keeper: Mutex::new(keeper),
        halt,
        failed: AtomicBool::new(false),
        steps: AtomicU64::new(0),
        began: Instant::now(),
    };
    let mut done = Done {
        began_point: shared.point()?,
        prefilled,
        ..Done::default()
    };
    let parts: Vec<io::Result<Done>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..job.threads)
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || {
                    let mut writer = Writer::new(shared, number);
                    let ended = writer.work();
                    if ended.is_err() {
                        shared.failed.store(true, Ordering::Relaxed);
                    }
                    ended.map(|()| writer.done)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a writer ended early")))
            })
            .collect()
    });
    done.elapsed_ns = nanoseconds(shared.began.elapsed());
    done.ended_point = shared.point()?;
    done.halted = halt.load(Ordering::Relaxed);
    for part in parts {
        let part = part?;
        for (name, count) in part.operations {
            *done.operations.entry(name).or_default() += count;
        }
        done.sync_ns += part.sync_ns;
        done.syncs += part.syncs;
        done.bytes_written += part.bytes_written;
    }
    let keeper = shared.keeper.into_inner();
    keeper.unwrap_or_else(PoisonError::into_inner).close()?;
    Ok(done)
}

/// Has the free room hold data of files that are gone, so that whoever is given a block without having
/// written it shows them.
fn prefill(job: &Job, run: u64) -> io::Result<u64> {
    let room = statvfs(&job.folder)?;
    let bytes = room.blocks_available() * room.fragment_size() / 100 * job.prefill;
    let folder = job.folder.join("old");
    if bytes == 0 {
        return Ok(0);
    }
    fs::create_dir(&folder).map_err(at(&folder))?;
    let mut filled = 0;
    for number in 0..bytes / OLD_FILE {
        let path = folder.join(number.to_string());
        let file = File::create(&path).map_err(at(&path))?;
        for chunk in 0..OLD_FILE / OLD_CHUNK {
            let first = chunk * OLD_CHUNK / SECTOR as u64;
            let data = sectors(run, OLD | number, first, OLD_CHUNK / SECTOR as u64, 1);
            file.write_all_at(&data, chunk * OLD_CHUNK)
                .map_err(at(&path))?;
        }
        filled += OLD_FILE;
    }
    let root = File::open(&job.folder).map_err(at(&job.folder))?;
    syncfs(&root)?;
    fs::remove_dir_all(&folder).map_err(at(&folder))?;
    syncfs(&root)?;
    Ok(filled)
}

fn sectors(run: u64, file: u64, first: u64, count: u64, generation: u64) -> Vec<u8> {
    let mut data = vec![0; usize::try_from(count).unwrap_or(0) * SECTOR];
    for (number, sector) in (first..).zip(data.chunks_mut(SECTOR)) {
        let identity = Identity {
            run,
            file,
            number,
            generation,
        };
        fill(sector, &identity);
    }
    data
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

struct Shared<'a> {
    job: &'a Job,
    run: u64,
    point: File,
    keeper: Mutex<Keeper>,
    halt: &'a AtomicBool,
    failed: AtomicBool,
    steps: AtomicU64,
    began: Instant,
}

impl Shared<'_> {
    fn point(&self) -> io::Result<u64> {
        read_point(&self.point)
    }

    fn ends(&self) -> bool {
        let over = match self.job.limit {
            Limit::Time(time) => self.began.elapsed() >= time,
            Limit::Steps(steps) => self.steps.fetch_add(1, Ordering::Relaxed) >= steps,
        };
        over || self.halt.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// A file that is there now.
struct Live {
    number: u64,
    handle: File,
    sectors: u64,
    generation: u64,
}

/// A place for a file, under a name of its own.
struct Slot {
    name: String,
    folder: String,
    live: Option<Live>,
}

struct Writer<'a> {
    shared: &'a Shared<'a>,
    thread: u64,
    chance: Random,
    made: u64,
    done: Done,
}

impl<'a> Writer<'a> {
    fn new(shared: &'a Shared<'a>, thread: u64) -> Self {
        Self {
            shared,
            thread,
            chance: Random::new(shared.job.seed, thread + 1),
            made: 0,
            done: Done::default(),
        }
    }

    fn work(&mut self) -> io::Result<()> {
        let job = self.shared.job;
        let slot = |thread: u64, number: u64| {
            let folder = format!("d{}", number % FOLDERS);
            Slot {
                name: format!("{folder}/t{thread}-{number}"),
                folder,
                live: None,
            }
        };
        let mut slots: Vec<_> = (0..job.files)
            .map(|number| slot(self.thread, number))
            .collect();
        // A share of the places is for files that are never synced, as large as their share of the steps.
        let loose = job.files * job.loose / 100;
        while !self.shared.ends() {
            let is_loose = loose > 0 && (loose == job.files || self.happens(job.loose));
            let number = if is_loose {
                self.chance.below(loose)
            } else {
                loose + self.chance.below(job.files - loose)
            };
            let slot = &mut slots[usize::try_from(number).unwrap_or(0)];
            if is_loose {
                self.step_loosely(slot)?;
            } else {
                self.step(slot)?;
            }
        }
        Ok(())
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.chance.below(100) < percent
    }

    /// With a file whose owner cares.
    fn step(&mut self, slot: &mut Slot) -> io::Result<()> {
        let Some(live) = &mut slot.live else {
            let mut live = self.create(&slot.name)?;
            self.extend(&mut live)?;
            self.mostly_sync(&live)?;
            slot.live = Some(live);
            return self.perhaps_sync_folder(&slot.folder, 60);
        };
        match self.chance.below(100) {
            0..30 => {
                self.extend(live)?;
                self.mostly_sync(live)
            }
            30..55 => {
                self.overwrite(live)?;
                self.mostly_sync(live)
            }
            55..70 => {
                let (first, sectors) = self.somewhere(live);
                self.write(live, first, sectors, Some(&slot.name))
            }
            70..77 => {
                self.shorten(live)?;
                self.mostly_sync(live)
            }
            77..92 => {
                let draft = format!("{}.new", slot.name);
                let mut new = self.create(&draft)?;
                self.extend(&mut new)?;
                if self.happens(70) {
                    self.sync(&new)?;
                }
                self.rename(&new, &draft, &slot.name)?;
                slot.live = Some(new);
                self.perhaps_sync_folder(&slot.folder, 50)
            }
            _ => {
                self.remove(slot)?;
                self.perhaps_sync_folder(&slot.folder, 50)
            }
        }
    }

    /// With a file that is never synced.
    fn step_loosely(&mut self, slot: &mut Slot) -> io::Result<()> {
        let Some(live) = &mut slot.live else {
            let mut live = self.create(&slot.name)?;
            self.extend(&mut live)?;
            slot.live = Some(live);
            return Ok(());
        };
        match self.chance.below(100) {
            0..55 => self.extend(live)?,
            55..65 => self.overwrite(live)?,
            65..70 => self.shorten(live)?,
            _ => return self.remove(slot),
        }
        if self.happens(30) {
            // Its pages are not needed soon: the kernel begins to write them, and promises nothing.
            posix_fadvise(&live.handle, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        }
        Ok(())
    }

    fn extend(&mut self, live: &mut Live) -> io::Result<()> {
        let room = self.shared.job.largest.saturating_sub(live.sectors / BLOCK);
        if room == 0 {
            return self.overwrite(live);
        }
        let blocks = 1 + self.chance.below(room.min(16));
        self.write(live, live.sectors, blocks * BLOCK, None)
    }

    fn overwrite(&mut self, live: &mut Live) -> io::Result<()> {
        let blocks = live.sectors / BLOCK;
        if blocks == 0 {
            return self.extend(live);
        }
        let first = self.chance.below(blocks);
        let count = 1 + self.chance.below((blocks - first).min(8));
        self.write(live, first * BLOCK, count * BLOCK, None)
    }

    /// Where a synced write goes: a block of the file, or the one behind it.
    fn somewhere(&mut self, live: &Live) -> (u64, u64) {
        let blocks = live.sectors / BLOCK;
        let choices = (blocks + 1).min(self.shared.job.largest);
        (self.chance.below(choices) * BLOCK, BLOCK)
    }

    fn write(
        &mut self,
        live: &mut Live,
        first: u64,
        sectors: u64,
        synced_as: Option<&str>,
    ) -> io::Result<()> {
        live.generation += 1;
        let data = self::sectors(
            self.shared.run,
            live.number,
            first,
            sectors,
            live.generation,
        );
        let synced = match synced_as {
            Some(name) => Some(
                File::options()
                    .write(true)
                    .custom_flags(O_DSYNC)
                    .open(self.shared.job.folder.join(name))?,
            ),
            None => None,
        };
        let did = Did::Write {
            file: live.number,
            first,
            sectors,
            generation: live.generation,
            synced: synced.is_some(),
        };
        let handle = synced.as_ref().unwrap_or(&live.handle);
        self.keep(
            || handle.write_all_at(&data, first * SECTOR as u64),
            |()| did,
        )?;
        live.sectors = live.sectors.max(first + sectors);
        self.done.bytes_written += data.len() as u64;
        Ok(())
    }

    fn create(&mut self, name: &str) -> io::Result<Live> {
        self.made += 1;
        let number = self.thread << 32 | self.made;
        let path = self.shared.job.folder.join(name);
        let (handle, _) = self.keep(
            || {
                let made = File::options()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(&path)?;
                let inode = made.metadata()?.ino();
                Ok((made, inode))
            },
            |(_, inode)| Did::Create {
                file: number,
                name: name.to_owned(),
                inode: *inode,
            },
        )?;
        Ok(Live {
            number,
            handle,
            sectors: 0,
            generation: 0,
        })
    }

    fn shorten(&mut self, live: &mut Live) -> io::Result<()> {
        let sectors = self.chance.below(live.sectors / BLOCK + 1) * BLOCK;
        let did = Did::Truncate {
            file: live.number,
            sectors,
        };
        self.keep(|| live.handle.set_len(sectors * SECTOR as u64), |()| did)?;
        live.sectors = sectors;
        Ok(())
    }

    fn mostly_sync(&mut self, live: &Live) -> io::Result<()> {
        if self.happens(80) {
            self.sync(live)?;
        }
        Ok(())
    }

    fn sync(&mut self, live: &Live) -> io::Result<()> {
        let data_alone = self.happens(50);
        self.keep(
            || {
                if data_alone {
                    live.handle.sync_data()
                } else {
                    live.handle.sync_all()
                }
            },
            |()| Did::Sync { file: live.number },
        )
    }

    fn perhaps_sync_folder(&mut self, folder: &str, percent: u64) -> io::Result<()> {
        if !self.happens(percent) {
            return Ok(());
        }
        let path = self.shared.job.folder.join(folder);
        let did = Did::SyncFolder {
            folder: folder.to_owned(),
        };
        self.keep(|| File::open(&path)?.sync_all(), |()| did)
    }

    fn rename(&mut self, live: &Live, from: &str, to: &str) -> io::Result<()> {
        let folder = &self.shared.job.folder;
        let did = Did::Rename {
            file: live.number,
            from: from.to_owned(),
            to: to.to_owned(),
        };
        self.keep(|| fs::rename(folder.join(from), folder.join(to)), |()| did)
    }

    fn remove(&mut self, slot: &mut Slot) -> io::Result<()> {
        let Some(live) = slot.live.take() else {
            return Ok(());
        };
        let path = self.shared.job.folder.join(&slot.name);
        let did = Did::Unlink {
            file: live.number,
            name: slot.name.clone(),
        };
        self.keep(|| fs::remove_file(&path), |()| did)
    }

    /// Does it, and keeps in the history what `did` makes of that, with the points before and after.
    fn keep<T>(
        &mut self,
        act: impl FnOnce() -> io::Result<T>,
        did: impl FnOnce(&T) -> Did,
    ) -> io::Result<T> {
        let began = self.shared.point()?;
        let start = Instant::now();
        let made = act()?;
        let took = start.elapsed();
        let ended = self.shared.point()?;
        let did = did(&made);
        let (name, is_sync) = match &did {
            Did::Create { .. } => ("create", false),
            Did::Write { synced: false, .. } => ("write", false),
            Did::Write { synced: true, .. } => ("write_synced", true),
            Did::Truncate { .. } => ("truncate", false),
            Did::Sync { .. } => ("sync", true),
            Did::Rename { .. } => ("rename", false),
            Did::Unlink { .. } => ("unlink", false),
            Did::SyncFolder { .. } => ("sync_folder", true),
        };
        *self.done.operations.entry(name.to_owned()).or_default() += 1;
        if is_sync {
            self.done.syncs += 1;
            self.done.sync_ns += nanoseconds(took);
        }
        let operation = Operation {
            thread: self.thread,
            began,
            ended,
            did,
        };
        let mut keeper = self
            .shared
            .keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        keeper.add(&operation)?;
        Ok(made)
    }
}
