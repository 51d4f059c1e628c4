//! The loop: a tick on each multiple of the period, whatever the one before took.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::cgroup::{Hierarchies, Readings, WatchedCgroup};
use crate::job::{Cgroup, Command, Process, WatchJob};
use crate::machine::Machine;
use crate::proc_file::Buffer;
use crate::process::{Kernel, METRICS, Usage, Watched, add_usage};
use crate::sample::{HEADER, Samples};

/// Why watching ended early.
#[derive(Debug)]
pub struct WatchError {
    /// What was attempted.
    action: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl std::fmt::Display for WatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.action, self.path.display(), self.error)
    }
}

impl std::error::Error for WatchError {}

/// Watches until told to stop, and writes samples to `out`. Calls `ready` once the base is taken from
/// which the first rates are reckoned. A process that is not there is told of by `warn`, and left out.
pub fn watch(
    job: &WatchJob,
    out: &Path,
    commands: &Receiver<Command>,
    ready: impl FnOnce(),
    warn: impl Fn(&str),
) -> Result<(), WatchError> {
    let writing = |error| WatchError {
        action: "writing",
        path: out.to_owned(),
        error,
    };
    let mut file = File::create(out).map_err(writing)?;
    file.write_all(HEADER.as_bytes()).map_err(writing)?;
    let mut watcher = Watcher::open(job, &warn);
    let period = Duration::from_secs_f64(1.0 / job.hz);
    let base = Instant::now();
    file.write_all(watcher.tick(base, Lateness::default()))
        .map_err(writing)?;
    for device in watcher.missing_devices() {
        warn(&format!("{device} is not watched: there is no such device"));
    }
    ready();
    // The last tick whose time has come, and the one that is waited for.
    let (mut passed, mut next) = (0, 1);
    loop {
        let due = base + period * next;
        let told = commands.recv_timeout(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let lateness = Lateness::reckon(now - base, period, passed, next);
        match told {
            Ok(Command::Add(process)) => watcher.add(process, &warn),
            Ok(Command::Remove(pid)) => watcher.remove(pid),
            Ok(Command::AddCgroup(group)) => watcher.add_cgroup(&group, &warn),
            Ok(Command::RemoveCgroup(subject)) => watcher.remove_cgroup(&subject),
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => {
                let last = watcher.tick(now, lateness);
                return file.write_all(last).map_err(writing);
            }
            Err(RecvTimeoutError::Timeout) => {
                let lines = watcher.tick(now, lateness);
                // One write a tick: nothing of it is lost, whatever ends this process.
                file.write_all(lines).map_err(writing)?;
                passed = ticks_passed(now - base, period).max(next);
                // Those missed are not made up for. This one may itself have taken longer than a period.
                next = ticks_passed(base.elapsed(), period).max(passed) + 1;
            }
        }
    }
}

/// How many ticks' times have come.
fn ticks_passed(elapsed: Duration, period: Duration) -> u32 {
    u32::try_from(elapsed.as_nanos() / period.as_nanos()).unwrap_or(u32::MAX - 1)
}

/// What is wrong with a sample's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lateness {
    /// How late it is after its due time.
    lag: Duration,
    /// Ticks since the sample before that have none.
    missed: u32,
}

impl Lateness {
    /// Of a sample taken `elapsed` after the base, that is due as tick `next`, where the sample before was taken
    /// when tick `passed` was the last whose time had come.
    fn reckon(elapsed: Duration, period: Duration, passed: u32, next: u32) -> Self {
        let now = ticks_passed(elapsed, period);
        Self {
            lag: elapsed.saturating_sub(period * next),
            missed: now.max(next) - passed - 1,
        }
    }
}

struct Watcher {
    machine: Machine,
    processes: Vec<Watched>,
    cgroups: Vec<Group>,
    readings: Readings,
    hierarchies: Hierarchies,
    kernel: Kernel,
    /// CPU time of this program at the tick before.
    cpu_before: Option<Duration>,
    /// What the clocks said at the tick before.
    clocks_before: Option<(u64, Instant)>,
    buffer: Buffer,
    samples: Samples,
    /// The sums of a tick, by the place of the first process of the subject.
    usages: Vec<(usize, Usage)>,
    /// What was found not to be there, or to be there no longer, since the tick before.
    absent: Vec<String>,
}

/// A control group, and when it was last looked at.
struct Group {
    watched: WatchedCgroup,
    before: Option<Instant>,
}

impl Watcher {
    fn open(job: &WatchJob, warn: &impl Fn(&str)) -> Self {
        let (machine, absent) = Machine::open(job);
        let mut watcher = Self {
            machine,
            processes: Vec::new(),
            cgroups: Vec::new(),
            readings: Readings::default(),
            hierarchies: Hierarchies::find(),
            kernel: Kernel::ask(),
            cpu_before: None,
            clocks_before: None,
            buffer: Buffer::default(),
            samples: Samples::default(),
            usages: Vec::new(),
            absent,
        };
        watcher.absent.extend(watcher.kernel.absent());
        for process in &job.processes {
            watcher.add(process.clone(), warn);
        }
        for group in &job.cgroups {
            watcher.add_cgroup(group, warn);
        }
        watcher
    }

    /// Its base is taken at the next tick.
    fn add(&mut self, process: Process, warn: &impl Fn(&str)) {
        self.remove(process.pid);
        let (pid, subject) = (process.pid, process.subject.clone());
        match Watched::open(process) {
            Ok(watched) => self.processes.push(watched),
            Err(error) => {
                warn(&format!("process {pid} is not watched: {error}"));
                self.absent.push(subject);
            }
        }
    }

    fn remove(&mut self, pid: u32) {
        self.processes.retain(|watched| watched.process.pid != pid);
    }

    /// Its base is taken at the next tick.
    fn add_cgroup(&mut self, group: &Cgroup, warn: &impl Fn(&str)) {
        self.remove_cgroup(&group.subject);
        match WatchedCgroup::open(group, &self.hierarchies, self.kernel.ticks_per_s) {
            Ok((watched, absent)) => {
                self.absent.extend(absent);
                self.cgroups.push(Group {
                    watched,
                    before: None,
                });
            }
            Err(error) => {
                let subject = &group.subject;
                warn(&format!("control group {subject} is not watched: {error}"));
                self.absent.push(subject.clone());
            }
        }
    }

    fn remove_cgroup(&mut self, subject: &str) {
        self.cgroups
            .retain(|group| group.watched.subject != subject);
    }

    /// Devices that the job names and that were not there at the first tick; to be told at the next.
    fn missing_devices(&mut self) -> Vec<String> {
        let missing = self.machine.missing_devices();
        self.absent.extend_from_slice(&missing);
        missing
    }

    /// Takes a sample of everything; gives its lines.
    fn tick(&mut self, now: Instant, lateness: Lateness) -> &[u8] {
        let time_ns = time_of_day_ns();
        self.samples.begin(time_ns);
        self.machine
            .sample(now, &mut self.buffer, &mut self.samples);
        self.sample_processes(now);
        self.sample_cgroups(now);
        self.sample_self(time_ns, now, lateness);
        self.samples.text()
    }

    /// What is to be known of the samples themselves.
    fn sample_self(&mut self, time_ns: u64, now: Instant, lateness: Lateness) {
        let mut of_watch = self.samples.of("watch", "watch");
        let mut add = |metric, value| of_watch.add(metric, value);
        add("watch.lag", Some(lateness.lag.as_secs_f64() * 1000.0));
        add("watch.missed", Some(f64::from(lateness.missed)));
        // The clock was set, or the machine slept: time that no sample is about.
        let step = self.clocks_before.map(|(before_ns, before)| {
            let by_clock = time_ns as f64 - before_ns as f64;
            by_clock / 1e6 - (now - before).as_secs_f64() * 1e3
        });
        add("watch.step", step);
        let cpu = own_cpu_time();
        let used = self.cpu_before.and_then(|before| cpu?.checked_sub(before));
        add("watch.cpu", used.map(|used| used.as_secs_f64() * 1000.0));
        for what in self.absent.drain(..) {
            self.samples
                .of("watch", &what)
                .add("watch.absent", Some(1.0));
        }
        self.clocks_before = Some((time_ns, now));
        self.cpu_before = cpu;
    }

    fn sample_processes(&mut self, now: Instant) {
        let Self {
            processes,
            kernel,
            buffer,
            samples,
            usages,
            absent,
            ..
        } = self;
        usages.clear();
        let mut place = 0;
        while place < processes.len() {
            let Some(usage) = processes[place].sample(now, kernel, buffer) else {
                absent.push(processes.remove(place).process.subject);
                continue;
            };
            let subject = &processes[place].process.subject;
            let is_it =
                |(first, _): &&mut (usize, Usage)| processes[*first].process.subject == *subject;
            match usages.iter_mut().find(is_it) {
                Some((_, sum)) => add_usage(sum, &usage),
                None => usages.push((place, usage)),
            }
            place += 1;
        }
        for (first, usage) in usages {
            let subject = &processes[*first].process.subject;
            let mut of_process = samples.of("process", subject);
            for (metric, value) in METRICS.into_iter().zip(*usage) {
                of_process.add(metric, value);
            }
        }
    }

    fn sample_cgroups(&mut self, now: Instant) {
        let Self {
            cgroups,
            readings,
            buffer,
            samples,
            absent,
            ..
        } = self;
        readings.begin();
        cgroups.retain_mut(|group| {
            let before = group.before.replace(now);
            let seconds = before.map_or(0.0, |before| (now - before).as_secs_f64());
            let is_there = group.watched.sample(seconds, readings, buffer, samples);
            if !is_there {
                absent.push(group.watched.subject.clone());
            }
            is_there
        });
    }
}

fn own_cpu_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .ok()
        .map(Duration::from)
}

fn time_of_day_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    fn reckon(ms: u64, passed: u32, next: u32) -> (u64, u32) {
        let lateness = Lateness::reckon(Duration::from_millis(ms), PERIOD, passed, next);
        (
            u64::try_from(lateness.lag.as_millis()).unwrap(),
            lateness.missed,
        )
    }

    #[test]
    fn a_late_sample_says_by_how_much_and_how_many_were_missed() {
        assert_eq!(reckon(100, 0, 1), (0, 0));
        assert_eq!(reckon(199, 0, 1), (99, 0));
        // Frozen over ticks 2, 3 and 4.
        assert_eq!(reckon(455, 0, 1), (355, 3));
        // Tick 1 took until 3 had passed, so 4 is waited for: 2 and 3 have no sample.
        assert_eq!(reckon(400, 1, 4), (0, 2));
        // A hair early, and told to stop between two ticks.
        assert_eq!(reckon(99, 0, 1), (0, 0));
        assert_eq!(reckon(350, 3, 4), (0, 0));
    }

    #[test]
    fn the_last_tick_that_can_be_counted_is_no_panic() {
        assert_eq!(ticks_passed(Duration::MAX, PERIOD), u32::MAX - 1);
    }
}
