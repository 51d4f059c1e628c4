//! Counters of the kernel's `perf_event`, of the calling thread in user mode.

#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// By the machine: instructions that were retired.
    Instructions,
    /// By the machine: cycles of the core, at whatever frequency it has.
    Cycles,
    /// By the kernel, so that there is something to count everywhere: pages that had to be brought in.
    PageFaults,
}

impl Event {
    /// Its type and its number, as the kernel knows them.
    const fn numbers(self) -> (u32, u64) {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::PageFaults => (SOFTWARE, 2),
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::PageFaults => "page faults",
        }
    }
}

/// Why there is nothing to count by.
#[derive(Debug)]
pub struct Unavailable {
    event: Event,
    error: io::Error,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, error } = self;
        write!(
            f,
            "this machine does not let {} be counted (perf_event_open: {error})",
            event.name()
        )
    }
}

impl std::error::Error for Unavailable {}

/// How often a reading's own cost is looked at.
const EMPTY_PAIRS: usize = 1001;

/// Counters that are read together.
#[derive(Debug)]
pub struct Group<const N: usize> {
    leader: File,
    /// They count as long as they are open.
    _others: Vec<OwnedFd>,
    /// Of a pair of readings with nothing between them.
    own: [u64; N],
}

impl<const N: usize> Group<N> {
    /// Counts these from now on, for the calling thread, in user mode.
    pub fn open(events: [Event; N]) -> Result<Self, Unavailable> {
        let mut fds: Vec<OwnedFd> = Vec::with_capacity(N);
        for event in events {
            let leader = fds.first().map_or(-1, AsRawFd::as_raw_fd);
            fds.push(open(event, leader).map_err(|error| Unavailable { event, error })?);
        }
        let unavailable = |error| Unavailable {
            event: events[0],
            error,
        };
        if fds.is_empty() {
            return Err(Unavailable {
                event: Event::Instructions,
                error: io::Error::other("there is nothing to count"),
            });
        }
        let mut group = Self {
            leader: File::from(fds.remove(0)),
            _others: fds,
            own: [0; N],
        };
        group.own = group.cost_of_reading().map_err(unavailable)?;
        Ok(group)
    }

    /// The counts so far. An error where the machine had too few counters and gave them to others meanwhile: what is left out is
    /// then not known.
    #[inline]
    pub fn read(&self) -> io::Result<[u64; N]> {
        let mut bytes = [0_u8; 8 * 8];
        let length = 8 * (BEFORE + N);
        let Some(part) = bytes.get_mut(..length) else {
            return Err(io::Error::other("too many counters in a group"));
        };
        (&self.leader).read_exact(part)?;
        decode(part)
    }

    /// What was done from one reading to the next, without what reading took itself.
    #[must_use]
    pub fn between(&self, before: &[u64; N], after: &[u64; N]) -> [u64; N] {
        std::array::from_fn(|at| {
            after[at]
                .saturating_sub(before[at])
                .saturating_sub(self.own[at])
        })
    }

    /// The median over pairs: some are interrupted.
    fn cost_of_reading(&self) -> io::Result<[u64; N]> {
        let mut costs: [Vec<u64>; N] = std::array::from_fn(|_| Vec::with_capacity(EMPTY_PAIRS));
        for _ in 0..EMPTY_PAIRS {
            let (before, after) = (self.read()?, self.read()?);
            for (at, costs) in costs.iter_mut().enumerate() {
                costs.push(after[at].saturating_sub(before[at]));
            }
        }
        Ok(costs.map(|mut costs| {
            costs.sort_unstable();
            costs[EMPTY_PAIRS / 2]
        }))
    }
}

/// So many words come before the counts: how many these are, for how long they should have counted and for how long they did, in ns.
const BEFORE: usize = 3;

#[inline]
fn decode<const N: usize>(bytes: &[u8]) -> io::Result<[u64; N]> {
    let word = |at: usize| {
        let word = bytes.get(8 * at..8 * (at + 1));
        u64::from_ne_bytes(
            word.and_then(|word| word.try_into().ok())
                .unwrap_or_default(),
        )
    };
    let (enabled, running) = (word(1), word(2));
    if running < enabled {
        let message = format!(
            "the machine's counters were shared with others: these counted for {running} of {enabled} ns"
        );
        return Err(io::Error::other(message));
    }
    Ok(std::array::from_fn(|at| word(BEFORE + at)))
}

/// As the first version of the kernel's interface has it (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const FORMAT_TIME_ENABLED: u64 = 1 << 0;
const FORMAT_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_GROUP: u64 = 1 << 3;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

fn open(event: Event, leader: i32) -> io::Result<OwnedFd> {
    let (kind, config) = event.numbers();
    let attributes = Attributes {
        kind,
        config,
        size: 64,
        read_format: FORMAT_GROUP | FORMAT_TIME_ENABLED | FORMAT_TIME_RUNNING,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    let (this_thread, any_cpu) = (0, -1);
    // SAFETY: the kernel reads the attributes, of the size that they tell, and makes a descriptor that is nobody else's.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            leader,
            CLOSE_ON_EXEC,
        );
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// Touches so many pages that were never touched before.
    fn touch(pages: usize) {
        let mut memory = vec![0_u8; (pages + 1) * PAGE];
        for byte in memory.iter_mut().step_by(PAGE) {
            // SAFETY: the byte is the vector's.
            unsafe { std::ptr::write_volatile(byte, 1) };
        }
    }

    #[test]
    fn what_is_done_between_two_readings_is_counted_and_reading_itself_is_not() {
        let group = Group::open([Event::PageFaults]).unwrap();
        let before = group.read().unwrap();
        let between = group.read().unwrap();
        touch(1000); // more than the allocator keeps: mapped anew
        let after = group.read().unwrap();
        assert_eq!(group.between(&before, &between), [0]);
        let [faults] = group.between(&between, &after);
        assert!(faults > 0 && faults <= 1010, "{faults}");
    }

    #[test]
    fn counters_of_a_group_are_read_together() {
        let group = Group::open([Event::PageFaults, Event::PageFaults]).unwrap();
        touch(1000);
        let [first, second] = group.read().unwrap();
        assert!(first > 0 && first == second, "{first} {second}");
    }

    #[test]
    fn counts_of_a_group_that_did_not_count_all_the_time_are_refused() {
        let read = |enabled: u64, running: u64| {
            let words = [2, enabled, running, 70, 80].map(u64::to_ne_bytes);
            decode::<2>(&words.concat())
        };
        assert_eq!(read(1000, 1000).unwrap(), [70, 80]);
        assert_eq!(read(0, 0).unwrap(), [70, 80]);
        let said = read(1000, 400).unwrap_err().to_string();
        assert!(said.ends_with("counted for 400 of 1000 ns"), "{said}");
    }

    #[test]
    fn another_threads_work_is_not_counted() {
        let group = Group::open([Event::PageFaults]).unwrap();
        let before = group.read().unwrap();
        std::thread::scope(|scope| scope.spawn(|| touch(1000)).join().unwrap());
        let [faults] = group.between(&before, &group.read().unwrap());
        assert!(faults < 100, "{faults}");
    }

    #[test]
    fn where_the_machine_has_no_counters_it_says_so_in_a_sentence() {
        match Group::open([Event::Instructions, Event::Cycles]) {
            Ok(group) => {
                let before = group.read().unwrap();
                touch(10);
                let [instructions, cycles] = group.between(&before, &group.read().unwrap());
                assert!(instructions > 10 && cycles > 10);
            }
            Err(why) => {
                let said = why.to_string();
                let begins = "this machine does not let instructions be counted (perf_event_open: ";
                assert!(said.starts_with(begins), "{said}");
            }
        }
    }
}
