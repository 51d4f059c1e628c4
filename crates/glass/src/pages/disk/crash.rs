//! Files in memory whose power can fail: for tests of what has to survive that.
//!
//! The rules are those of a file system over a disk with a cache of its own. What was written to a file before it was synced
//! is there afterwards. Of what was written since, any part can be: the disk writes sectors of 512 bytes, each of them
//! whole or not at all, in whatever order it likes; a sector that was written several times can have any of these
//! contents. Whether the power fails during a write or a sync makes no difference to that: it is one that has not returned.
#![expect(clippy::cast_possible_truncation, reason = "files of memory")]

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, Folder};

/// Of a sector, in bytes.
const SECTOR: usize = 512;

/// A folder of such files. Clones are the same folder.
#[derive(Clone, Default)]
pub struct CrashFolder(Arc<Mutex<Machine>>);

/// One of its files.
struct CrashDisk {
    machine: Arc<Mutex<Machine>>,
    file: usize,
}

#[derive(Default)]
struct Machine {
    names: BTreeMap<String, usize>,
    files: Vec<File>,
    /// Writes, and beginnings and ends of syncs.
    operations: u64,
    power_fails_at: Option<u64>,
    /// Whether an operation was told so; those after it were never begun.
    is_dark: bool,
    syncs_fail: bool,
}

#[derive(Clone, Default)]
struct File {
    /// What is read.
    live: Vec<u8>,
    /// What is on disk for certain.
    synced: Vec<u8>,
    /// What was written since, in order: what each sector was afterwards.
    unsynced: Vec<Write>,
    /// How many writes there were before the first of them.
    forgotten: usize,
}

/// The sectors that a write touched, as they were afterwards.
#[derive(Clone)]
struct Write {
    /// The first of them.
    sector: usize,
    /// The last may end with the file.
    bytes: Vec<u8>,
}

impl CrashFolder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations there were that change something: each write is one, and each sync two, as what is written while
    /// it is under way is not covered.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Lets the power fail when there have been so many operations, counted from the beginning: none succeeds any more after
    /// these. The next, if it is a write, is interrupted: it may be there as much as any other.
    pub fn fail_power_at(&self, operations: u64) {
        self.0.lock().power_fails_at = Some(operations);
    }

    /// Only the process ended, and the power did not fail: what it wrote is there to be read, and what was not synced is still
    /// lost when the power does fail.
    pub fn revive(&self) {
        let mut machine = self.0.lock();
        machine.power_fails_at = None;
        machine.is_dark = false;
    }

    /// Whether it has.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.lock().has_failed()
    }

    /// From now on each sync ends in an error, and covers nothing.
    pub fn fail_syncs(&self) {
        self.0.lock().syncs_fail = true;
    }

    /// The folder as it is found when the power is there again, if it fails now. The seed chooses one of all the ways that
    /// it can be; this folder stays as it is.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        let machine = self.0.lock();
        let mut random = Random(seed);
        let mut survivors = Machine::default();
        // A file that was taken away has no name, and nobody is left who has it open.
        for (name, file) in &machine.names {
            let found = machine.files[*file].found(&mut random);
            survivors.names.insert(name.clone(), survivors.files.len());
            survivors.files.push(File {
                synced: found.clone(),
                live: found,
                ..File::default()
            });
        }
        Self(Arc::new(Mutex::new(survivors)))
    }

    /// Changes a byte of a file, as a disk does that goes bad. [`ErrorKind::NotFound`] where there is no such byte.
    pub fn damage(&self, name: &str, offset: usize) -> io::Result<()> {
        let mut machine = self.0.lock();
        let file = machine.names.get(name).copied();
        let file = file.and_then(|file| machine.files.get_mut(file));
        let Some(byte) = file.and_then(|file| file.live.get_mut(offset)) else {
            return Err(ErrorKind::NotFound.into());
        };
        *byte ^= 0x55;
        Ok(())
    }
}

impl Folder for CrashFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let mut machine = self.0.lock();
        machine.powered()?;
        let file = if let Some(file) = machine.names.get(name) {
            *file
        } else {
            machine.files.push(File::default());
            let file = machine.files.len() - 1;
            machine.names.insert(name.to_owned(), file);
            file
        };
        Ok(Arc::new(CrashDisk {
            machine: Arc::clone(&self.0),
            file,
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut machine = self.0.lock();
        machine.operate()?;
        match machine.names.remove(name) {
            Some(_) => Ok(()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let machine = self.0.lock();
        machine.powered()?;
        Ok(machine.names.keys().cloned().collect())
    }
}

impl Disk for CrashDisk {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let machine = self.machine.lock();
        machine.powered()?;
        let live = &machine.files[self.file].live;
        let from = live.len().min(offset as usize);
        let length = into.len().min(live.len() - from);
        into[..length].copy_from_slice(&live[from..from + length]);
        into[length..].fill(0);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut machine = self.machine.lock();
        let was_dark = machine.is_dark;
        let powered = machine.operate();
        // Also the one during which the power fails, as much as any that has not been synced.
        if !was_dark {
            machine.files[self.file].write(offset as usize, bytes);
        }
        powered
    }

    fn sync(&self) -> io::Result<()> {
        let covered = {
            let mut machine = self.machine.lock();
            machine.operate()?;
            let file = &machine.files[self.file];
            file.forgotten + file.unsynced.len()
        };
        // Others write meanwhile.
        std::thread::yield_now();
        let mut machine = self.machine.lock();
        machine.operate()?;
        if machine.syncs_fail {
            return Err(io::Error::other("the disk did not sync"));
        }
        machine.files[self.file].sync(covered);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let machine = self.machine.lock();
        machine.powered()?;
        Ok(machine.files[self.file].live.len() as u64)
    }
}

impl Machine {
    fn has_failed(&self) -> bool {
        self.power_fails_at.is_some_and(|at| self.operations >= at)
    }

    fn powered(&self) -> io::Result<()> {
        if self.has_failed() {
            Err(io::Error::other("the power has failed"))
        } else {
            Ok(())
        }
    }

    fn operate(&mut self) -> io::Result<()> {
        let powered = self.powered();
        match powered {
            Ok(()) => self.operations += 1,
            Err(_) => self.is_dark = true,
        }
        powered
    }
}

impl File {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[offset..end].copy_from_slice(bytes);
        let sector = offset / SECTOR;
        let last = end.next_multiple_of(SECTOR).min(self.live.len());
        self.unsynced.push(Write {
            sector,
            bytes: self.live[sector * SECTOR..last].to_vec(),
        });
    }

    fn sync(&mut self, covered: usize) {
        let covered = covered.saturating_sub(self.forgotten);
        for write in self.unsynced.drain(..covered) {
            put(&mut self.synced, write.sector * SECTOR, &write.bytes);
        }
        self.forgotten += covered;
    }

    /// What is found after the power failed.
    fn found(&self, random: &mut Random) -> Vec<u8> {
        let mut found = self.synced.clone();
        match random.choose(&Fate::ALL) {
            Fate::Lost => {}
            Fate::First => {
                let count = random.below(self.unsynced.len() + 1);
                for write in &self.unsynced[..count] {
                    put(&mut found, write.sector * SECTOR, &write.bytes);
                }
            }
            Fate::Some => {
                for write in &self.unsynced {
                    if random.below(2) == 0 {
                        put(&mut found, write.sector * SECTOR, &write.bytes);
                    }
                }
            }
            Fate::Torn => {
                let mut contents = BTreeMap::<usize, Vec<&[u8]>>::new();
                for write in &self.unsynced {
                    for (at, bytes) in write.bytes.chunks(SECTOR).enumerate() {
                        contents.entry(write.sector + at).or_default().push(bytes);
                    }
                }
                for (sector, contents) in contents {
                    if let Some(bytes) = contents.get(random.below(contents.len() + 1)) {
                        put(&mut found, sector * SECTOR, bytes);
                    }
                }
            }
        }
        found
    }
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// What becomes of writes that were not synced: of all ways those that are likely to be the worst.
#[derive(Clone, Copy)]
enum Fate {
    /// None of them is there.
    Lost,
    /// The first so many are there, as most often in life.
    First,
    /// Each is there or not.
    Some,
    /// Each of their sectors is there or not.
    Torn,
}

impl Fate {
    const ALL: [Self; 4] = [Self::Lost, Self::First, Self::Some, Self::Torn];
}

/// Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn choose<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(folder: &CrashFolder, name: &str) -> Vec<u8> {
        let disk = folder.open(name).unwrap();
        let mut bytes = vec![0; disk.length().unwrap() as usize];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_in_any_way() {
        let folder = CrashFolder::new();
        let a = folder.open("a").unwrap();
        let b = folder.open("b").unwrap();
        a.write(0, &[1; 3 * SECTOR]).unwrap();
        a.sync().unwrap();
        a.write(0, &[2; 2 * SECTOR]).unwrap();
        a.write(SECTOR as u64, &[3; SECTOR]).unwrap();
        b.write(0, &[4; 10]).unwrap();
        let mut found = std::collections::BTreeSet::new();
        for seed in 0..400 {
            let after = folder.crash(seed);
            let bytes = contents(&after, "a");
            assert_eq!(bytes.len(), 3 * SECTOR);
            for sector in bytes.chunks(SECTOR) {
                assert!(
                    sector.iter().all(|byte| *byte == sector[0]),
                    "a sector is whole"
                );
            }
            let has_b = match contents(&after, "b")[..] {
                [] => false,
                [4, 4, 4, 4, 4, 4, 4, 4, 4, 4] => true,
                ref other => panic!("{other:?}"),
            };
            found.insert((bytes[0], bytes[SECTOR], bytes[2 * SECTOR], has_b));
        }
        let mut all = std::collections::BTreeSet::new();
        for first in [1, 2] {
            for second in [1, 2, 3] {
                all.extend([(first, second, 1, false), (first, second, 1, true)]);
            }
        }
        assert_eq!(found, all);
        assert_eq!(
            contents(&folder, "a")[..=SECTOR],
            [&[2; SECTOR][..], &[3]].concat()[..]
        );
    }

    #[test]
    fn a_sector_written_in_parts_has_the_first_of_them_where_it_has_the_second() {
        let folder = CrashFolder::new();
        let log = folder.open("log").unwrap();
        for byte in 1..=4 {
            log.write(u64::from(byte) * 4 - 4, &[byte; 4]).unwrap();
        }
        for seed in 0..100 {
            let bytes = contents(&folder.crash(seed), "log");
            let whole: Vec<u8> = (1..=4).flat_map(|byte| [byte; 4]).collect();
            assert_eq!(bytes, whole[..bytes.len()]);
        }
    }

    #[test]
    fn a_sync_covers_its_own_file_alone() {
        let folder = CrashFolder::new();
        let (a, b) = (folder.open("a").unwrap(), folder.open("b").unwrap());
        a.write(0, b"a").unwrap();
        b.write(0, b"b").unwrap();
        b.sync().unwrap();
        let lost = (0..100)
            .map(|seed| folder.crash(seed))
            .filter(|after| contents(after, "a").is_empty());
        assert!(lost.count() > 10);
        assert!((0..100).all(|seed| contents(&folder.crash(seed), "b") == b"b"));
    }

    #[test]
    fn after_the_power_has_failed_nothing_is_begun() {
        let folder = CrashFolder::new();
        let disk = folder.open("a").unwrap();
        disk.write(0, b"1").unwrap();
        disk.sync().unwrap();
        assert_eq!(folder.operations(), 3);
        folder.fail_power_at(4);
        disk.write(0, b"2").unwrap();
        assert!(folder.has_failed());
        assert!(disk.write(1, b"3").is_err(), "it is interrupted");
        assert!(disk.write(2, b"4").is_err());
        assert!(disk.sync().is_err());
        assert!(disk.read(0, &mut [0]).is_err());
        assert!(folder.names().is_err());
        let found: std::collections::BTreeSet<_> = (0..100)
            .map(|seed| contents(&folder.crash(seed), "a"))
            .collect();
        let possible = [&b"1"[..], b"2", b"23"].map(<[u8]>::to_vec);
        assert_eq!(found, possible.into());
    }

    #[test]
    fn what_a_process_wrote_that_ended_is_read_and_lost_until_it_is_synced() {
        let folder = CrashFolder::new();
        let disk = folder.open("a").unwrap();
        folder.fail_power_at(1);
        disk.write(0, b"1").unwrap();
        assert!(disk.sync().is_err());
        folder.revive();
        assert!(!folder.has_failed());
        assert_eq!(contents(&folder, "a"), b"1");
        assert!((0..100).any(|seed| contents(&folder.crash(seed), "a").is_empty()));
        folder.open("a").unwrap().sync().unwrap();
        assert!((0..100).all(|seed| contents(&folder.crash(seed), "a") == b"1"));
    }

    #[test]
    fn a_sync_that_the_power_interrupts_or_that_fails_covers_nothing() {
        let folder = CrashFolder::new();
        let disk = folder.open("a").unwrap();
        disk.write(0, b"1").unwrap();
        let broken = CrashFolder::new();
        let other = broken.open("a").unwrap();
        other.write(0, b"1").unwrap();
        folder.fail_power_at(2);
        broken.fail_syncs();
        assert!(disk.sync().is_err() && other.sync().is_err());
        for machine in [folder, broken] {
            assert!((0..100).any(|seed| contents(&machine.crash(seed), "a").is_empty()));
        }
    }

    #[test]
    fn files_that_were_taken_away_stay_away() {
        let folder = CrashFolder::new();
        let disk = folder.open("b").unwrap();
        folder.open("a").unwrap();
        disk.write(0, b"1").unwrap();
        assert_eq!(folder.names().unwrap(), ["a", "b"]);
        folder.remove("b").unwrap();
        assert!(folder.remove("b").is_err());
        assert_eq!(folder.crash(1).names().unwrap(), ["a"]);
        assert_eq!(contents(&folder, "b"), [], "another of the same name");
        disk.write(1, b"2").unwrap();
        assert_eq!(disk.length().unwrap(), 2, "who had it open goes on");
    }
}
