//! One process: a watched one, or one of its tree.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use super::Kernel;
use super::stat::Stat;
use super::thread::Threads;
use crate::proc_file::{Buffer, ProcFile};
use crate::text::numbers_of;

/// What is counted of each process: ticks of user, system and guest time, minor and major faults, bytes read,
/// written, and written but cancelled.
pub const COUNTERS: usize = 8;

/// None where it is not told: `/proc/PID/io` is for its owner's eyes.
pub type Counters = [Option<u64>; COUNTERS];

#[derive(Debug)]
pub struct Member {
    pub pid: u32,
    pub stat: Stat,
    pub threads: Threads,
    stat_file: ProcFile,
    io: Option<ProcFile>,
    fds: Option<Fds>,
    /// At the tick before; of one that began since, nothing.
    before: Option<Counters>,
    now: Counters,
    /// What children that ended had counted until they were last seen: it has been told, and comes again in the
    /// counters of this one, which waited for them.
    owed: [u64; COUNTERS],
}

#[derive(Debug)]
struct Fds {
    folder: File,
    path: PathBuf,
}

impl Member {
    pub fn open(pid: u32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let path = folder.join("fd");
        Ok(Self {
            pid,
            stat: Stat::default(),
            threads: Threads::open(pid)?,
            stat_file: ProcFile::open(folder.join("stat"))?,
            io: ProcFile::open(folder.join("io")).ok(),
            fds: File::open(&path).ok().map(|folder| Fds { folder, path }),
            before: None,
            now: [None; COUNTERS],
            owed: [0; COUNTERS],
        })
    }

    /// Reads its counters; false once it is no more. With `children`, what those have used that ended and were
    /// waited for counts as its own, in CPU time and faults as it does in I/O anyway.
    pub fn read(&mut self, children: bool, kernel: &Kernel, buffer: &mut Buffer) -> bool {
        let Some(stat) = self.stat_file.read(buffer).ok().and_then(Stat::parse) else {
            return false;
        };
        let own = |own: u64, of_children: u64| Some(own + if children { of_children } else { 0 });
        let theirs = stat.of_children;
        let io = match self.io.as_ref().map(|file| file.read(buffer)) {
            Some(Ok(text)) => parse_io(text),
            _ => [None; 3],
        };
        let known = self.now;
        self.now = [
            own(stat.user_ticks, theirs.user_ticks),
            own(stat.system_ticks, theirs.system_ticks),
            own(stat.guest_ticks, theirs.guest_ticks),
            own(stat.minor_faults, theirs.minor_faults),
            own(stat.major_faults, theirs.major_faults),
            io[0].or(known[5]),
            io[1].or(known[6]),
            io[2].or(known[7]),
        ];
        self.stat = stat;
        self.threads.meet(stat.threads, kernel);
        true
    }

    /// By how much the counters grew since the tick before; of one that is new, since its beginning if it
    /// `is_born` under our eyes, else not at all.
    pub fn grown(&mut self, is_born: bool) -> Counters {
        let first = if is_born {
            self.now.map(|counter| counter.map(|_| 0))
        } else {
            self.now
        };
        let before = self.before.replace(self.now).unwrap_or(first);
        std::array::from_fn(|place| {
            let grown = self.now[place]?.saturating_sub(before[place]?);
            let owed = &mut self.owed[place];
            let paid = grown.min(*owed);
            *owed -= paid;
            Some(grown - paid)
        })
    }

    /// Whether it was there at the tick before.
    pub fn is_known(&self) -> bool {
        self.before.is_some()
    }

    /// Takes note of a child that ended.
    pub fn owes(&mut self, child: &Self) {
        for (owed, told) in self.owed.iter_mut().zip(child.now) {
            *owed += told.unwrap_or(0);
        }
    }

    /// Open files.
    pub fn count_fds(&self, kernel: &Kernel) -> Option<u64> {
        let fds = self.fds.as_ref()?;
        if kernel.counts_fds {
            fds.folder.metadata().ok().map(|folder| folder.len())
        } else {
            Some(fs::read_dir(&fds.path).ok()?.count() as u64)
        }
    }
}

/// Bytes read, written, and written but cancelled.
fn parse_io(text: &[u8]) -> [Option<u64>; 3] {
    numbers_of(
        text,
        &["read_bytes", "write_bytes", "cancelled_write_bytes"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_io_are_those_of_storage() {
        let text = b"rchar: 7278\nwchar: 302\nsyscr: 12\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 512\n";
        assert_eq!(parse_io(text), [Some(4096), Some(8192), Some(512)]);
        assert_eq!(parse_io(b"rchar: 1\n"), [None; 3]);
    }

    fn at(member: &mut Member, count: u64) {
        member.now = [Some(count); COUNTERS];
    }

    #[test]
    fn what_ended_children_had_told_already_is_not_told_again() {
        let mut parent = Member::open(std::process::id()).unwrap();
        let mut child = Member::open(std::process::id()).unwrap();
        at(&mut parent, 100);
        assert_eq!(parent.grown(false)[0], Some(0), "its base");
        at(&mut child, 30);
        assert_eq!(child.grown(true)[0], Some(30), "born since");
        at(&mut child, 50);
        assert_eq!(child.grown(true)[0], Some(20));
        // It ends with 55, before its parent has waited for it: 3 of the parent's own.
        parent.owes(&child);
        at(&mut parent, 103);
        let early = parent.grown(false)[0].unwrap();
        // Now the parent has.
        at(&mut parent, 100 + 3 + 55);
        let late = parent.grown(false)[0].unwrap();
        assert_eq!(early + late, 3 + 5, "its own, and the child's last");
        at(&mut parent, 100 + 3 + 55 + 7);
        assert_eq!(parent.grown(false)[0], Some(7), "nothing is owed any more");
    }
}
