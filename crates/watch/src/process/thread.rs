//! The threads of a process, which each tell of their own switches and waits.

use std::io;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::Kernel;
use super::stat::Stat;
use crate::proc_file::{Buffer, ProcFile};
use crate::text::{number, numbers_of, words};

/// What is counted of each thread: voluntary and involuntary switches, ns waited for a CPU, clock ticks waited
/// for block I/O.
pub const COUNTERS: usize = 4;

/// By how much they grew; none where the kernel does not tell.
pub type Grown = [Option<u64>; COUNTERS];

#[derive(Debug)]
struct Thread {
    id: u32,
    schedstat: Option<ProcFile>,
    status: ProcFile,
    stat: Option<ProcFile>,
    children: Option<ProcFile>,
    /// Time slices that it had at the tick before.
    slices: u64,
    counters: Grown,
    seen: bool,
}

#[derive(Debug)]
pub struct Threads {
    pid: u32,
    folder: Dir,
    known: Vec<Thread>,
}

impl Threads {
    pub fn open(pid: u32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/task");
        let folder = Dir::open(
            path.as_str(),
            OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            pid,
            folder,
            known: Vec::new(),
        })
    }

    /// By how much the threads' counters grew since the tick before, a thread that is new counted from its
    /// beginning: what one did after its last tick is lost with it.
    pub fn sample(&mut self, buffer: &mut Buffer) -> Grown {
        let mut sum = [None; COUNTERS];
        for thread in &mut self.known {
            if let Some(grown) = thread.sample(buffer) {
                for (sum, grown) in sum.iter_mut().zip(grown) {
                    *sum = grown.map(|grown| sum.unwrap_or(0) + grown).or(*sum);
                }
            } else {
                // Its id may have a new thread by now, which is met at the next tick.
                thread.seen = false;
            }
        }
        self.known.retain(|thread| thread.seen);
        sum
    }

    /// Opens the files of threads that are new, and closes those of threads that are gone. `count` is how many
    /// there are.
    pub fn meet(&mut self, count: u64, kernel: &Kernel) {
        // As many as are known are those that are known: one that ended could not be read, and is known no more.
        if count == self.known.len() as u64 {
            return;
        }
        for thread in &mut self.known {
            thread.seen = false;
        }
        // Ids come in their order, those of new threads nearly always behind the others.
        let mut guess = 0;
        for entry in self.folder.iter().flatten() {
            let id = number(entry.file_name().to_bytes()).and_then(|id| u32::try_from(id).ok());
            let Some(id) = id else { continue };
            let is_it = |thread: &Thread| thread.id == id;
            let place = if self.known.get(guess).is_some_and(is_it) {
                Some(guess)
            } else {
                self.known.iter().position(is_it)
            };
            if let Some(place) = place {
                self.known[place].seen = true;
                guess = place + 1;
            } else if let Ok(thread) = Thread::open(self.pid, id, kernel) {
                self.known.push(thread);
                guess = self.known.len();
            }
        }
        self.known.retain(|thread| thread.seen);
    }

    /// Adds the ids of the children of all threads.
    pub fn add_children(&self, buffer: &mut Buffer, children: &mut Vec<u32>) {
        for file in self
            .known
            .iter()
            .filter_map(|thread| thread.children.as_ref())
        {
            if let Ok(text) = file.read(buffer) {
                let ids = words(text).filter_map(number);
                children.extend(ids.filter_map(|id| u32::try_from(id).ok()));
            }
        }
    }
}

impl Thread {
    fn open(pid: u32, id: u32, kernel: &Kernel) -> io::Result<Self> {
        let path = format!("/proc/{pid}/task/{id}");
        let folder = Path::new(&path);
        let file = |name| folder.join(name);
        Ok(Self {
            id,
            schedstat: ProcFile::open(file("schedstat")).ok(),
            status: ProcFile::open(file("status"))?,
            stat: kernel
                .tells_io_delay
                .then(|| ProcFile::open(file("stat")).ok())
                .flatten(),
            children: kernel
                .tells_children
                .then(|| ProcFile::open_list(file("children")).ok())
                .flatten(),
            slices: 0,
            counters: [None; COUNTERS],
            seen: true,
        })
    }

    /// By how much its counters grew; `None` once it has ended.
    fn sample(&mut self, buffer: &mut Buffer) -> Option<Grown> {
        let mut now = self.counters;
        let mut ran = true;
        if let Some(file) = &self.schedstat {
            let (waited_ns, slices) = parse_schedstat(file.read(buffer).ok()?)?;
            // One that had no time slice since has switched neither, and its other files need not be read. A
            // kernel that does not count slices tells 0.
            ran = slices != self.slices || slices == 0;
            self.slices = slices;
            now[2] = Some(waited_ns);
        }
        if ran {
            [now[0], now[1]] = parse_switches(self.status.read(buffer).ok()?);
            if let Some(file) = &self.stat {
                now[3] = Stat::parse(file.read(buffer).ok()?).map(|stat| stat.io_delay_ticks);
            }
        }
        let before = std::mem::replace(&mut self.counters, now);
        Some(std::array::from_fn(|place| {
            Some(now[place]?.saturating_sub(before[place].unwrap_or(0)))
        }))
    }
}

/// Time waited on run queues in ns, and time slices (Documentation/scheduler/sched-stats.rst).
fn parse_schedstat(text: &[u8]) -> Option<(u64, u64)> {
    let mut words = words(text).skip(1).map(number);
    Some((words.next()??, words.next()??))
}

/// Voluntary and involuntary switches.
fn parse_switches(status: &[u8]) -> [Option<u64>; 2] {
    numbers_of(
        status,
        &["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_and_switches_are_read_from_their_places() {
        assert_eq!(parse_schedstat(b"111 222 333\n"), Some((222, 333)));
        assert_eq!(parse_schedstat(b"111\n"), None);
        let status = b"Name:\tvoluntary_ctxt_switches: 9\nPid:\t1\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        assert_eq!(parse_switches(status), [Some(5), Some(6)]);
        assert_eq!(parse_switches(b"Name:\tx\n"), [None; 2]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "[0-9 ]{0,50}") {
            for text in [&text[..], line.as_bytes()] {
                let _ = parse_schedstat(text);
                let _ = parse_switches(text);
            }
        }
    }
}
