//! Single processes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::job::Process;
use crate::proc_file::{Buffer, ProcFile, number_of};
use crate::sample::{growth, per};

/// The metrics, in the order of [`Usage`].
pub const METRICS: [&str; 10] = [
    "proc.usr",
    "proc.sys",
    "proc.rss",
    "proc.threads",
    "proc.minflt",
    "proc.majflt",
    "proc.cswch",
    "proc.nvcswch",
    "proc.read",
    "proc.write",
];

/// A process's values at one tick, in the order of [`METRICS`]; rates are there from its second tick
/// on.
pub type Usage = [Option<f64>; METRICS.len()];

/// Adds what another process of the same subject used.
pub fn add_usage(sum: &mut Usage, other: &Usage) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = match (*sum, *other) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// What the kernel's numbers mean on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Clock ticks per second in `/proc/PID/stat`.
    pub ticks_per_s: f64,
    /// Bytes of a page.
    pub page_bytes: f64,
}

/// A process that is watched.
#[derive(Debug)]
pub struct Watched {
    /// Which one, and under which name.
    pub process: Process,
    stat: ProcFile,
    /// Absent where this user may not read it.
    io: Option<ProcFile>,
    threads_folder: PathBuf,
    threads: HashMap<u32, Thread>,
    before: Option<(Instant, Counters)>,
}

#[derive(Debug)]
struct Thread {
    status: ProcFile,
    switches: Switches,
    seen: bool,
}

/// Context switches, voluntary and not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    stat: Stat,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
}

/// `/proc/PID/stat`, as far as it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    ended: bool,
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name may hold anything, closing brackets included; what follows the last does not.
        let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = words.next()?;
        let mut numbers = [0; 21];
        for number in &mut numbers {
            // Some fields are signed; those that are used never are negative.
            *number = words.next()?.parse().unwrap_or(0);
        }
        // `numbers[0]` is field 4 of proc_pid_stat(5).
        Some(Self {
            ended: matches!(state, "Z" | "X" | "x"),
            minor_faults: numbers[6],
            major_faults: numbers[8],
            user_ticks: numbers[10],
            system_ticks: numbers[11],
            threads: numbers[16],
            resident_pages: numbers[20],
        })
    }
}

impl Watched {
    /// Opens the files of a process that is there.
    pub fn open(process: Process) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        Ok(Self {
            stat: ProcFile::open(folder.join("stat"))?,
            io: ProcFile::open(folder.join("io")).ok(),
            threads_folder: folder.join("task"),
            threads: HashMap::new(),
            before: None,
            process,
        })
    }

    /// Its values; `None` once it has ended.
    pub fn sample(&mut self, now: Instant, units: Units, buffer: &mut Buffer) -> Option<Usage> {
        let stat = Stat::parse(self.stat.read(buffer).ok()?)?;
        if stat.ended {
            return None;
        }
        let mut counters = Counters {
            stat,
            ..Counters::default()
        };
        if let Some(Ok(text)) = self.io.as_ref().map(|file| file.read(buffer)) {
            counters.read_bytes = number_of(text, "read_bytes");
            counters.write_bytes = number_of(text, "write_bytes");
        }
        let switches = self.count_switches(buffer);
        let mut usage: Usage = [None; METRICS.len()];
        usage[2] = Some(stat.resident_pages as f64 * units.page_bytes);
        usage[3] = Some(stat.threads as f64);
        if let Some((then, before)) = self.before {
            let seconds = (now - then).as_secs_f64();
            let rate = |before, after| per(growth(before, after), seconds);
            let share =
                |before, after| rate(before, after).map(|ticks| 100.0 * ticks / units.ticks_per_s);
            let bytes = |before: Option<u64>, after: Option<u64>| {
                before
                    .zip(after)
                    .and_then(|(before, after)| rate(before, after))
            };
            let old = before.stat;
            usage[0] = share(old.user_ticks, stat.user_ticks);
            usage[1] = share(old.system_ticks, stat.system_ticks);
            usage[4] = rate(old.minor_faults, stat.minor_faults);
            usage[5] = rate(old.major_faults, stat.major_faults);
            usage[6] = per(Some(switches.voluntary as f64), seconds);
            usage[7] = per(Some(switches.involuntary as f64), seconds);
            usage[8] = bytes(before.read_bytes, counters.read_bytes);
            usage[9] = bytes(before.write_bytes, counters.write_bytes);
        }
        self.before = Some((now, counters));
        Some(usage)
    }

    /// Context switches of all threads since the tick before. A thread that began since counts from
    /// its beginning; what one did after its last tick is lost with it.
    fn count_switches(&mut self, buffer: &mut Buffer) -> Switches {
        let mut sum = Switches::default();
        for thread in self.threads.values_mut() {
            thread.seen = false;
        }
        let Ok(entries) = fs::read_dir(&self.threads_folder) else {
            return sum;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let thread = match self.threads.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let Ok(status) = ProcFile::open(entry.path().join("status")) else {
                        continue;
                    };
                    let switches = Switches::default();
                    place.insert(Thread {
                        status,
                        switches,
                        seen: false,
                    })
                }
            };
            // A file that was kept belongs to its thread even if the id has a new one by now: it
            // cannot be read, is dropped below, and the new thread is met at the next tick.
            let Ok(text) = thread.status.read(buffer) else {
                continue;
            };
            let now = Switches::parse(text);
            thread.seen = true;
            sum.voluntary += now.voluntary.saturating_sub(thread.switches.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(thread.switches.involuntary);
            thread.switches = now;
        }
        self.threads.retain(|_, thread| thread.seen);
        sum
    }
}

impl Switches {
    fn parse(status: &str) -> Self {
        Self {
            voluntary: number_of(status, "voluntary_ctxt_switches").unwrap_or(0),
            involuntary: number_of(status, "nonvoluntary_ctxt_switches").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let text =
            "7 (a) b (c)) S 1 7 7 0 -1 4194560 11 0 22 0 33 44 0 0 20 0 5 0 99 1000 66 18446\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                ended: false,
                minor_faults: 11,
                major_faults: 22,
                user_ticks: 33,
                system_ticks: 44,
                threads: 5,
                resident_pages: 66,
            })
        );
        assert!(Stat::parse(&text.replace(") S ", ") Z ")).unwrap().ended);
        assert_eq!(Stat::parse("7 (a) S 1 2"), None);
    }

    #[test]
    fn processes_of_one_subject_are_summed_and_what_is_unknown_stays_so() {
        let mut sum: Usage = [None; METRICS.len()];
        let mut one: Usage = [None; METRICS.len()];
        one[2] = Some(5.0);
        add_usage(&mut sum, &one);
        add_usage(&mut sum, &one);
        assert_eq!((sum[2], sum[0]), (Some(10.0), None));
    }

    #[test]
    fn a_process_that_ended_gives_nothing_even_before_it_is_waited_for() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process {
            pid: child.id(),
            subject: "child".to_owned(),
        };
        let mut watched = Watched::open(process).unwrap();
        let units = Units {
            ticks_per_s: 100.0,
            page_bytes: 4096.0,
        };
        let mut buffer = Buffer::default();
        assert!(watched.sample(Instant::now(), units, &mut buffer).is_some());
        child.kill().unwrap();
        // A zombie shows within moments of the signal.
        let gone = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            watched.sample(Instant::now(), units, &mut buffer).is_none()
        });
        child.wait().unwrap();
        assert!(gone);
    }
}
