//! The threads of a process, which each tell of their own switches and waits, and of where they are.

use std::io;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::libc::{SYS_fdatasync, SYS_fsync, SYS_msync, SYS_sync_file_range, SYS_syncfs};
use nix::sys::stat::Mode;

use super::Kernel;
use super::stat::Stat;
use crate::proc_file::{Buffer, ProcFile};
use crate::text::{lines, number, numbers_of, words};

/// What is counted of each thread: voluntary and involuntary switches, ns waited for a CPU, clock ticks waited
/// for block I/O.
pub const COUNTERS: usize = 4;

/// By how much they grew; none where the kernel does not tell.
pub type Grown = [Option<u64>; COUNTERS];

/// System calls that return once what was written is on the device.
const SYNCS: [i64; 5] = [
    SYS_fsync,
    SYS_fdatasync,
    SYS_msync,
    SYS_sync_file_range,
    SYS_syncfs,
];

/// What the threads of a process tell together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// By how much their counters grew, summed up.
    pub grown: Grown,
    /// ns that the busiest of them ran since the tick before; none where the kernel does not tell.
    pub busiest_ns: Option<u64>,
    /// Those in uninterruptible sleep, which is mostly a wait for a device, but for those within a sync.
    pub blocked: u64,
    /// Those within a system call that syncs; none where the kernel does not show it.
    pub syncing: Option<u64>,
}

impl Told {
    fn add(&mut self, thread: &Thread, grown: Grown, ran_ns: Option<u64>) {
        for (sum, grown) in self.grown.iter_mut().zip(grown) {
            *sum = grown.map(|grown| sum.unwrap_or(0) + grown).or(*sum);
        }
        self.busiest_ns = self.busiest_ns.max(ran_ns);
        self.blocked += u64::from(thread.is == Is::Blocked);
        if thread.syscall.is_some() {
            let syncing = u64::from(thread.is == Is::Syncing);
            self.syncing = Some(self.syncing.unwrap_or(0) + syncing);
        }
    }
}

/// Where a thread is at the time of the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// On a CPU or waiting for one: it may be anywhere by the next tick, without another time slice.
    Running,
    Blocked,
    Syncing,
    Elsewhere,
}

#[derive(Debug)]
struct Thread {
    id: u32,
    schedstat: Option<ProcFile>,
    status: ProcFile,
    /// For whoever may trace it.
    syscall: Option<ProcFile>,
    stat: Option<ProcFile>,
    children: Option<ProcFile>,
    /// Time slices that it had at the tick before.
    slices: u64,
    /// ns that it had run by then.
    ran_ns: Option<u64>,
    is: Is,
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
    pub fn sample(&mut self, buffer: &mut Buffer) -> Told {
        let mut told = Told::default();
        for thread in &mut self.known {
            if let Some((grown, ran_ns)) = thread.sample(buffer) {
                told.add(thread, grown, ran_ns);
            } else {
                // Its id may have a new thread by now, which is met at the next tick.
                thread.seen = false;
            }
        }
        self.known.retain(|thread| thread.seen);
        told
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
            syscall: ProcFile::open(file("syscall")).ok(),
            stat: kernel
                .tells_io_delay
                .then(|| ProcFile::open(file("stat")).ok())
                .flatten(),
            children: kernel
                .tells_children
                .then(|| ProcFile::open_list(file("children")).ok())
                .flatten(),
            slices: 0,
            ran_ns: None,
            is: Is::Running,
            counters: [None; COUNTERS],
            seen: true,
        })
    }

    /// By how much its counters grew, and how many ns it ran; `None` once it has ended.
    fn sample(&mut self, buffer: &mut Buffer) -> Option<(Grown, Option<u64>)> {
        let mut now = self.counters;
        let mut ran = true;
        let mut grown_ns = None;
        if let Some(file) = &self.schedstat {
            let (ran_ns, waited_ns, slices) = parse_schedstat(file.read(buffer).ok()?)?;
            // One that had no time slice since, and did not run at the tick before, has switched neither and is
            // where it was: its other files need not be read. A kernel that does not count slices tells 0.
            ran = slices != self.slices || slices == 0 || self.is == Is::Running;
            self.slices = slices;
            grown_ns = Some(ran_ns.saturating_sub(self.ran_ns.unwrap_or(0)));
            self.ran_ns = Some(ran_ns);
            now[2] = Some(waited_ns);
        }
        if ran {
            let status = self.status.read(buffer).ok()?;
            [now[0], now[1]] = parse_switches(status);
            let state = parse_state(status);
            self.is = self.whereabouts(state, buffer);
            if let Some(file) = &self.stat {
                now[3] = Stat::parse(file.read(buffer).ok()?).map(|stat| stat.io_delay_ticks);
            }
        }
        let before = std::mem::replace(&mut self.counters, now);
        let grown = std::array::from_fn(|place| {
            Some(now[place]?.saturating_sub(before[place].unwrap_or(0)))
        });
        Some((grown, grown_ns))
    }

    fn whereabouts(&mut self, state: Option<u8>, buffer: &mut Buffer) -> Is {
        if state == Some(b'R') {
            return Is::Running;
        }
        let call = match self.syscall.as_ref().map(|file| file.read(buffer)) {
            Some(Ok(text)) => parse_syscall(text),
            // Of one that ended meanwhile, or whose owner changed: what it is in is not known any more.
            Some(Err(_)) => {
                self.syscall = None;
                None
            }
            None => None,
        };
        match (call, state) {
            (Some(call), _) if SYNCS.contains(&call) => Is::Syncing,
            (_, Some(b'D')) => Is::Blocked,
            _ => Is::Elsewhere,
        }
    }
}

/// ns that it ran, ns that it waited on run queues, and time slices (Documentation/scheduler/sched-stats.rst).
fn parse_schedstat(text: &[u8]) -> Option<(u64, u64, u64)> {
    let mut words = words(text).map(number);
    Some((words.next()??, words.next()??, words.next()??))
}

/// The letter of its state (`proc_pid_status(5)`).
fn parse_state(status: &[u8]) -> Option<u8> {
    let line = lines(status).find(|line| line.starts_with(b"State:"))?;
    words(line).nth(1)?.first().copied()
}

/// The number of the system call that it is in; none where it runs or is in none (`proc_pid_syscall(5)`).
fn parse_syscall(text: &[u8]) -> Option<i64> {
    i64::try_from(number(words(text).next()?)?).ok()
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
        assert_eq!(parse_schedstat(b"111 222 333\n"), Some((111, 222, 333)));
        assert_eq!(parse_schedstat(b"111 222\n"), None);
        let status = b"Name:\tvoluntary_ctxt_switches: 9\nPid:\t1\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        assert_eq!(parse_switches(status), [Some(5), Some(6)]);
        assert_eq!(parse_switches(b"Name:\tx\n"), [None; 2]);
    }

    #[test]
    fn the_state_and_the_system_call_are_read_from_their_places() {
        assert_eq!(
            parse_state(b"Name:\tState: D\nState:\tS (sleeping)\n"),
            Some(b'S')
        );
        assert_eq!(parse_state(b"Name:\tx\nState:\n"), None);
        assert_eq!(parse_syscall(b"75 0x7 0x0 0x0\n"), Some(75));
        assert_eq!(parse_syscall(b"running\n"), None);
        assert_eq!(parse_syscall(b"-1 0x7ffd 0x7f11\n"), None);
    }

    /// A thread of the test itself that waits in `call` until it is told to end.
    fn while_waiting<T>(wait: impl FnOnce() + Send + 'static, look: impl FnOnce(u32) -> T) -> T {
        let (sender, id) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            sender.send(nix::unistd::gettid()).unwrap();
            wait();
        });
        let id = u32::try_from(id.recv().unwrap().as_raw()).unwrap();
        let found = look(id);
        waiting.join().unwrap();
        found
    }

    #[test]
    fn a_thread_that_sleeps_is_in_no_sync_and_one_that_runs_is_the_busiest() {
        let kernel = Kernel::ask();
        let mut buffer = Buffer::default();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let told = while_waiting(
            move || {
                let _ = wait.recv();
            },
            |id| {
                let mut threads = Threads::open(std::process::id()).unwrap();
                threads.known = vec![Thread::open(std::process::id(), id, &kernel).unwrap()];
                // It is asleep within moments.
                let asleep = (0..500).any(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    threads.sample(&mut buffer);
                    threads.known[0].is == Is::Elsewhere
                });
                assert!(asleep);
                let told = threads.sample(&mut buffer);
                end.send(()).unwrap();
                told
            },
        );
        assert_eq!((told.blocked, told.syncing), (0, Some(0)));
        assert_eq!(told.busiest_ns, Some(0));

        let me = u32::try_from(nix::unistd::gettid().as_raw()).unwrap();
        let mut threads = Threads::open(std::process::id()).unwrap();
        threads.known = vec![Thread::open(std::process::id(), me, &kernel).unwrap()];
        threads.sample(&mut buffer);
        let begin = std::time::Instant::now();
        while begin.elapsed() < std::time::Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let told = threads.sample(&mut buffer);
        assert!(told.busiest_ns > Some(0), "{told:?}");
        assert_eq!(threads.known[0].is, Is::Running);
    }

    #[test]
    fn the_sum_has_the_busiest_thread_alone_and_counts_those_that_sync() {
        let kernel = Kernel::ask();
        let me = std::process::id();
        let mut told = Told::default();
        for (is, ran_ns) in [(Is::Syncing, 5), (Is::Blocked, 9), (Is::Running, 7)] {
            let thread = Thread {
                is,
                ..Thread::open(me, me, &kernel).unwrap()
            };
            told.add(&thread, [Some(1), None, Some(2), None], Some(ran_ns));
        }
        assert_eq!(told.grown, [Some(3), None, Some(6), None]);
        assert_eq!(told.busiest_ns, Some(9));
        assert_eq!((told.blocked, told.syncing), (1, Some(1)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "[0-9 ]{0,50}") {
            for text in [&text[..], line.as_bytes()] {
                let _ = parse_schedstat(text);
                let _ = parse_switches(text);
                let _ = parse_state(text);
                let _ = parse_syscall(text);
            }
        }
    }
}
