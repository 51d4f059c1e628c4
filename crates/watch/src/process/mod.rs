//! Single processes, and trees of them.

mod member;
mod stat;
mod thread;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

use crate::job::Process;
use crate::proc_file::{Buffer, ProcFile};
use crate::sample::per;
use crate::text::{number, numbers_of};
use member::Member;
use stat::Stat;

/// The metrics, in the order of [`Usage`].
pub const METRICS: [&str; 22] = [
    "proc.usr",
    "proc.sys",
    "proc.guest",
    "proc.cpu",
    "proc.wait",
    "proc.iodelay",
    "proc.rss",
    "proc.vsz",
    "proc.mem",
    "proc.threads",
    "proc.fds",
    "proc.processes",
    "proc.minflt",
    "proc.majflt",
    "proc.cswch",
    "proc.nvcswch",
    "proc.read",
    "proc.write",
    "proc.ccwr",
    "proc.cpu_max_thread",
    "proc.blocked",
    "proc.syncing",
];
/// The place of the one that is the most of several processes, not their sum.
const MOST: usize = 19;

/// A process's values at one tick, in the order of [`METRICS`]; rates are there from its second tick
/// on.
pub type Usage = [Option<f64>; METRICS.len()];

/// Adds what another process of the same subject used.
pub fn add_usage(sum: &mut Usage, other: &Usage) {
    for (place, (sum, other)) in sum.iter_mut().zip(other).enumerate() {
        *sum = match (*sum, *other) {
            (Some(a), Some(b)) if place == MOST => Some(a.max(b)),
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// What the kernel tells of processes on this machine, and what its numbers mean.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Clock ticks per second in `/proc/PID/stat`.
    pub ticks_per_s: u64,
    page_bytes: f64,
    memory_bytes: Option<f64>,
    /// Delay accounting is off unless it was asked for (`kernel.task_delayacct`); before Linux 5.14 it was on.
    tells_io_delay: bool,
    /// Since Linux 6.2 the size of `/proc/PID/fd` is the number of open files.
    counts_fds: bool,
    /// With `CONFIG_PROC_CHILDREN`.
    tells_children: bool,
}

/// Bytes of a page.
pub fn page_bytes() -> u64 {
    system_value(SysconfVar::PAGE_SIZE, 4096)
}

fn system_value(name: SysconfVar, usual: u64) -> u64 {
    let value = sysconf(name).ok().flatten();
    value.map_or(usual, i64::unsigned_abs)
}

impl Kernel {
    pub fn ask() -> Self {
        let memory = fs::read("/proc/meminfo").unwrap_or_default();
        let [total] = numbers_of(&memory, &["MemTotal"]);
        let delays = fs::read("/proc/sys/kernel/task_delayacct");
        Self {
            ticks_per_s: system_value(SysconfVar::CLK_TCK, 100),
            page_bytes: page_bytes() as f64,
            memory_bytes: total.map(|kib| kib as f64 * 1024.0),
            tells_io_delay: delays.map_or(true, |text| text.starts_with(b"1")),
            // This program has at least its standard streams.
            counts_fds: fs::metadata("/proc/self/fd").is_ok_and(|folder| folder.len() > 0),
            tells_children: fs::read("/proc/thread-self/children").is_ok(),
        }
    }

    /// What it does not tell, as subjects of `watch.absent`.
    pub fn absent(&self) -> impl Iterator<Item = String> {
        let lacks_delay = !self.tells_io_delay;
        let lacks_waits = fs::read("/proc/self/schedstat").is_err();
        [
            (lacks_delay, "process/iodelay"),
            (lacks_waits, "process/wait"),
        ]
        .into_iter()
        .filter(|(lacks, _)| *lacks)
        .map(|(_, what)| what.to_owned())
    }
}

/// A process that is watched, with its tree where the job says so.
#[derive(Debug)]
pub struct Watched {
    /// Which one, and under which name.
    pub process: Process,
    /// Parents before their children, so that nobody is read after whoever waits for them.
    members: Vec<Member>,
    known: HashSet<u32>,
    children: Vec<u32>,
    /// When the base was taken, in ticks after boot.
    base_ticks: Option<u64>,
    before: Option<Instant>,
}

impl Watched {
    /// Opens the files of a process that is there.
    pub fn open(process: Process) -> io::Result<Self> {
        Ok(Self {
            members: vec![Member::open(process.pid)?],
            known: HashSet::from([process.pid]),
            children: Vec::new(),
            base_ticks: None,
            before: None,
            process,
        })
    }

    /// Its values; `None` once it has ended, and its tree with it.
    pub fn sample(&mut self, now: Instant, kernel: &Kernel, buffer: &mut Buffer) -> Option<Usage> {
        let base_ticks = *self
            .base_ticks
            .get_or_insert_with(|| ticks_since_boot(kernel));
        self.read_members(kernel, buffer);
        if self.members.iter().all(|member| member.stat.ended) {
            return None;
        }
        // Whoever is met at the first tick was there before.
        let first = self.before.is_none();
        let mut grown = [None; member::COUNTERS];
        let mut of_threads = [None; thread::COUNTERS];
        let mut busiest_ns = None;
        let mut gauges = Gauges::default();
        for member in &mut self.members {
            let is_known = member.is_known();
            let is_born = !first && member.stat.started >= base_ticks;
            add(&mut grown, member.grown(is_born));
            let told = member.threads.sample(buffer);
            // What the threads of one that was met late had counted before is not ours.
            if is_known || is_born {
                add(&mut of_threads, told.grown);
                busiest_ns = busiest_ns.max(told.busiest_ns);
            }
            gauges.add(member, &told, kernel);
        }
        let before = self.before.replace(now);
        let seconds = before.map_or(0.0, |before| (now - before).as_secs_f64());
        let of_threads = (of_threads, busiest_ns);
        Some(usage(grown, of_threads, &gauges, seconds, kernel))
    }

    /// Reads the counters of all members, takes in those that are new, and lets those go that are no more.
    fn read_members(&mut self, kernel: &Kernel, buffer: &mut Buffer) {
        let mut place = 0;
        while place < self.members.len() {
            if self.members[place].read(self.process.tree, kernel, buffer) {
                if self.process.tree && kernel.tells_children {
                    self.members[place]
                        .threads
                        .add_children(buffer, &mut self.children);
                    self.take_in();
                }
                place += 1;
            } else {
                self.let_go(place);
            }
        }
        if self.process.tree && !kernel.tells_children {
            self.search_children(kernel, buffer);
        }
    }

    /// Opens those of `children` that are not known yet.
    fn take_in(&mut self) {
        for pid in self.children.drain(..) {
            if self.known.insert(pid) {
                match Member::open(pid) {
                    Ok(member) => self.members.push(member),
                    // It has ended meanwhile.
                    Err(_) => drop(self.known.remove(&pid)),
                }
            }
        }
    }

    fn let_go(&mut self, place: usize) {
        let gone = self.members.remove(place);
        self.known.remove(&gone.pid);
        let parent = self
            .members
            .iter_mut()
            .find(|member| member.pid == gone.stat.parent);
        if let Some(parent) = parent {
            parent.owes(&gone);
        }
    }

    /// For kernels that do not list children: looks through all processes for them, and reads those found.
    fn search_children(&mut self, kernel: &Kernel, buffer: &mut Buffer) {
        let Ok(folder) = fs::read_dir("/proc") else {
            return;
        };
        let mut parents: Vec<(u32, u32)> = folder
            .flatten()
            .filter_map(|entry| {
                let pid = number(entry.file_name().as_encoded_bytes())?;
                let file = ProcFile::open(entry.path().join("stat")).ok()?;
                let stat = Stat::parse(file.read(buffer).ok()?)?;
                Some((u32::try_from(pid).ok()?, stat.parent))
            })
            .collect();
        loop {
            let is_child = |(pid, parent): &(u32, u32)| {
                self.known.contains(parent) && !self.known.contains(pid)
            };
            self.children.extend(
                parents
                    .extract_if(.., |pair| is_child(pair))
                    .map(|(pid, _)| pid),
            );
            if self.children.is_empty() {
                return;
            }
            let met = self.members.len();
            self.take_in();
            for place in (met..self.members.len()).rev() {
                if !self.members[place].read(true, kernel, buffer) {
                    self.let_go(place);
                }
            }
        }
    }
}

/// As many as there have been: what began within the tick of the base may have begun after it.
fn ticks_since_boot(kernel: &Kernel) -> u64 {
    let since = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
    let ticks =
        since.map(|since| since.as_nanos() * u128::from(kernel.ticks_per_s) / 1_000_000_000);
    // Where this is not told, all that are met late were there before.
    ticks.map_or(u64::MAX, |ticks| u64::try_from(ticks).unwrap_or(u64::MAX))
}

fn add<const N: usize>(sum: &mut [Option<u64>; N], other: [Option<u64>; N]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = other.map(|other| sum.unwrap_or(0) + other).or(*sum);
    }
}

/// What is there at the time of the tick, summed up.
#[derive(Debug, Default)]
struct Gauges {
    resident_pages: u64,
    virtual_bytes: u64,
    threads: u64,
    fds: Option<u64>,
    processes: u64,
    blocked: u64,
    syncing: Option<u64>,
}

impl Gauges {
    fn add(&mut self, member: &Member, told: &thread::Told, kernel: &Kernel) {
        if member.stat.ended {
            return;
        }
        self.resident_pages += member.stat.resident_pages;
        self.virtual_bytes += member.stat.virtual_bytes;
        self.threads += member.stat.threads;
        self.processes += 1;
        self.blocked += told.blocked;
        if let Some(syncing) = told.syncing {
            self.syncing = Some(self.syncing.unwrap_or(0) + syncing);
        }
        if let Some(fds) = member.count_fds(kernel) {
            self.fds = Some(self.fds.unwrap_or(0) + fds);
        }
    }
}

fn usage(
    grown: member::Counters,
    (of_threads, busiest_ns): (thread::Grown, Option<u64>),
    gauges: &Gauges,
    seconds: f64,
    kernel: &Kernel,
) -> Usage {
    let rate = |count: Option<u64>| per(count.map(|count| count as f64), seconds);
    let share = |ticks| rate(ticks).map(|ticks| 100.0 * ticks / kernel.ticks_per_s as f64);
    let [user, system, guest, minflt, majflt, read, write, cancelled] = grown;
    let [cswch, nvcswch, wait_ns, io_delay] = of_threads;
    let without_guest = |user: u64| user.saturating_sub(guest.unwrap_or(0));
    let resident_bytes = gauges.resident_pages as f64 * kernel.page_bytes;
    let memory = kernel.memory_bytes.unwrap_or(0.0);
    [
        share(user.map(without_guest)),
        share(system),
        share(guest),
        share(user.zip(system).map(|(user, system)| user + system)),
        rate(wait_ns).map(|ns| ns / 1e7),
        share(io_delay),
        Some(resident_bytes),
        Some(gauges.virtual_bytes as f64),
        per(Some(100.0 * resident_bytes), memory),
        Some(gauges.threads as f64),
        gauges.fds.map(|fds| fds as f64),
        Some(gauges.processes as f64),
        rate(minflt),
        rate(majflt),
        rate(cswch),
        rate(nvcswch),
        rate(read),
        rate(write),
        rate(cancelled),
        // One that was met late, since another ended at the same time, may tell of two ticks.
        rate(busiest_ns).map(|ns| (ns / 1e7).min(100.0)),
        Some(gauges.blocked as f64),
        gauges.syncing.map(|syncing| syncing as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn place(metric: &str) -> usize {
        METRICS.iter().position(|known| *known == metric).unwrap()
    }

    fn watched(child: &Child, tree: bool) -> Watched {
        let process = Process {
            pid: child.id(),
            subject: "child".to_owned(),
            tree,
        };
        Watched::open(process).unwrap()
    }

    #[test]
    fn processes_of_one_subject_are_summed_and_what_is_unknown_stays_so() {
        let mut sum: Usage = [None; METRICS.len()];
        let mut one: Usage = [None; METRICS.len()];
        one[2] = Some(5.0);
        add_usage(&mut sum, &one);
        add_usage(&mut sum, &one);
        assert_eq!((sum[2], sum[0]), (Some(10.0), None));
        for busiest in [30.0, 70.0, 20.0] {
            one[place("proc.cpu_max_thread")] = Some(busiest);
            add_usage(&mut sum, &one);
        }
        assert_eq!(sum[place("proc.cpu_max_thread")], Some(70.0));
    }

    #[test]
    fn guest_time_is_told_apart_from_user_time_and_is_within_all_of_it() {
        let kernel = Kernel {
            ticks_per_s: 100,
            ..Kernel::ask()
        };
        let mut grown = [Some(0); member::COUNTERS];
        [grown[0], grown[1], grown[2]] = [Some(100), Some(20), Some(70)];
        let of_threads = ([None; 4], Some(500_000_000));
        let usage = usage(grown, of_threads, &Gauges::default(), 2.0, &kernel);
        let told =
            ["proc.usr", "proc.sys", "proc.guest", "proc.cpu"].map(|name| usage[place(name)]);
        assert_eq!(told, [15.0, 10.0, 35.0, 60.0].map(Some));
        assert_eq!(usage[place("proc.wait")], None);
        assert_eq!(usage[place("proc.cpu_max_thread")], Some(25.0));
    }

    #[test]
    fn a_process_that_ended_gives_nothing_even_before_it_is_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut watched = watched(&child, false);
        let kernel = Kernel::ask();
        let mut buffer = Buffer::default();
        assert!(
            watched
                .sample(Instant::now(), &kernel, &mut buffer)
                .is_some()
        );
        child.kill().unwrap();
        // A zombie shows within moments of the signal.
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            watched
                .sample(Instant::now(), &kernel, &mut buffer)
                .is_none()
        });
        child.wait().unwrap();
        assert!(gone);
    }

    /// Ticks, faults and children of a shell that runs short-lived busy children, summed over its time; and what
    /// the kernel says of it in the end.
    fn sums_over_children(kernel: &Kernel) -> (f64, f64) {
        // The last child is waited for before the shell waits for its end.
        let script = "read go; for i in 1 2 3 4 5 6; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done; echo done; read end";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut watched = watched(&child, true);
        let mut buffer = Buffer::default();
        let begin = Instant::now();
        let mut before = begin;
        watched.sample(begin, kernel, &mut buffer);
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut word = [0; 4];
            let _ = std::io::Read::read_exact(&mut output, &mut word);
            let _ = sender.send(());
        });
        let mut cpu_s = 0.0;
        let mut is_done = false;
        while !is_done {
            is_done = done.recv_timeout(Duration::from_millis(7)).is_ok();
            assert!(begin.elapsed() < Duration::from_secs(60));
            let now = Instant::now();
            let usage = watched.sample(now, kernel, &mut buffer).unwrap();
            let used = usage[place("proc.cpu")].unwrap();
            assert!(used >= 0.0);
            cpu_s += used / 100.0 * (now - before).as_secs_f64();
            before = now;
        }
        let text = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
        let stat = Stat::parse(&text).unwrap();
        let theirs = stat.of_children;
        let ticks = stat.user_ticks + stat.system_ticks + theirs.user_ticks + theirs.system_ticks;
        drop(child.stdin.take());
        child.wait().unwrap();
        (cpu_s, ticks as f64 / kernel.ticks_per_s as f64)
    }

    #[test]
    fn children_that_come_and_go_count_once_however_they_are_found() {
        let asked = Kernel::ask();
        for tells_children in [asked.tells_children, false] {
            let kernel = Kernel {
                tells_children,
                ..asked
            };
            let (seen, counted) = sums_over_children(&kernel);
            assert!(counted >= 0.1, "{counted} s of work are too little");
            // Each child's ticks are rounded down on their own.
            assert!(
                (seen - counted).abs() <= 0.05 + 0.02 * counted,
                "{seen} s seen, {counted} s counted"
            );
        }
    }

    #[test]
    fn a_tree_lives_on_while_one_of_it_does() {
        let kernel = Kernel::ask();
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60 & wait"])
            .spawn()
            .unwrap();
        let mut watched = watched(&child, true);
        let mut buffer = Buffer::default();
        let mut look = |watched: &mut Watched| {
            let usage = watched.sample(Instant::now(), &kernel, &mut buffer);
            usage.map(|usage| usage[place("proc.processes")].unwrap().to_string())
        };
        let mut until = |watched: &mut Watched, wanted: Option<&str>| {
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                look(watched).as_deref() == wanted
            })
        };
        assert!(until(&mut watched, Some("3")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(until(&mut watched, Some("2")), "its children are there");
        for member in &watched.members {
            let pid = i32::try_from(member.pid).unwrap();
            Command::new("kill").arg(pid.to_string()).status().unwrap();
        }
        assert!(until(&mut watched, None));
    }
}
