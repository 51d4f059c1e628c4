//! The loop: a tick on each multiple of the period, whatever the one before took.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

use crate::job::{Command, Process, WatchJob};
use crate::machine::Machine;
use crate::proc_file::Buffer;
use crate::process::{METRICS, Units, Usage, Watched, add_usage};
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
    let mut watcher = Watcher::open(job, &warn)?;
    let period = Duration::from_secs_f64(1.0 / job.hz);
    let base = Instant::now();
    file.write_all(watcher.tick(base, Duration::ZERO).as_bytes())
        .map_err(writing)?;
    ready();
    let mut tick = 1;
    loop {
        let due = base + period * tick;
        match commands.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Command::Add(process)) => watcher.add(process, &warn),
            Ok(Command::Remove(pid)) => watcher.remove(pid),
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => {
                let last = watcher.tick(Instant::now(), Duration::ZERO);
                return file.write_all(last.as_bytes()).map_err(writing);
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                let lines = watcher.tick(now, now.saturating_duration_since(due));
                // One write a tick: nothing of it is lost, whatever ends this process.
                file.write_all(lines.as_bytes()).map_err(writing)?;
                tick = next_tick(base.elapsed(), period, tick);
            }
        }
    }
}

/// The number of the first tick still to come; those missed are not made up for.
fn next_tick(elapsed: Duration, period: Duration, tick: u32) -> u32 {
    let passed = u32::try_from(elapsed.as_nanos() / period.as_nanos()).unwrap_or(u32::MAX - 1);
    (passed + 1).max(tick + 1)
}

struct Watcher {
    machine: Option<Machine>,
    processes: Vec<Watched>,
    units: Units,
    /// CPU time of this program at the tick before.
    cpu_before: Option<Duration>,
    buffer: Buffer,
    samples: Samples,
    /// The sums of a tick, by subject.
    usages: Vec<(String, Usage)>,
}

impl Watcher {
    fn open(job: &WatchJob, warn: &impl Fn(&str)) -> Result<Self, WatchError> {
        let machine = if job.machine {
            Some(Machine::open().map_err(|error| WatchError {
                action: "opening",
                path: "/proc/stat".into(),
                error,
            })?)
        } else {
            None
        };
        let mut watcher = Self {
            machine,
            processes: Vec::new(),
            units: Units {
                ticks_per_s: system_value(SysconfVar::CLK_TCK, 100.0),
                page_bytes: system_value(SysconfVar::PAGE_SIZE, 4096.0),
            },
            cpu_before: None,
            buffer: Buffer::default(),
            samples: Samples::default(),
            usages: Vec::new(),
        };
        for process in &job.processes {
            watcher.add(process.clone(), warn);
        }
        Ok(watcher)
    }

    /// Its base is taken at the next tick.
    fn add(&mut self, process: Process, warn: &impl Fn(&str)) {
        self.remove(process.pid);
        let pid = process.pid;
        match Watched::open(process) {
            Ok(watched) => self.processes.push(watched),
            Err(error) => warn(&format!("process {pid} is not watched: {error}")),
        }
    }

    fn remove(&mut self, pid: u32) {
        self.processes.retain(|watched| watched.process.pid != pid);
    }

    /// Takes a sample of everything, `lag` after it was due; gives its lines.
    fn tick(&mut self, now: Instant, lag: Duration) -> &str {
        self.samples.begin(time_of_day_ns());
        if let Some(machine) = &mut self.machine {
            machine.sample(now, &mut self.buffer, &mut self.samples);
        }
        self.sample_processes(now);
        let lag_ms = lag.as_secs_f64() * 1000.0;
        self.samples
            .add("watch", "watch", "watch.lag", Some(lag_ms));
        let cpu = own_cpu_time();
        let used = self.cpu_before.and_then(|before| cpu?.checked_sub(before));
        let used_ms = used.map(|used| used.as_secs_f64() * 1000.0);
        self.samples.add("watch", "watch", "watch.cpu", used_ms);
        self.cpu_before = cpu;
        self.samples.text()
    }

    fn sample_processes(&mut self, now: Instant) {
        let Self {
            processes,
            units,
            buffer,
            samples,
            usages,
            ..
        } = self;
        usages.clear();
        processes.retain_mut(|watched| {
            let Some(usage) = watched.sample(now, *units, buffer) else {
                return false;
            };
            let subject = &watched.process.subject;
            match usages.iter_mut().find(|(known, _)| known == subject) {
                Some((_, sum)) => add_usage(sum, &usage),
                None => usages.push((subject.clone(), usage)),
            }
            true
        });
        for (subject, usage) in usages {
            for (metric, value) in METRICS.into_iter().zip(*usage) {
                samples.add("process", subject, metric, value);
            }
        }
    }
}

fn system_value(name: SysconfVar, usual: f64) -> f64 {
    match sysconf(name) {
        Ok(Some(value)) => value as f64,
        _ => usual,
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

    #[test]
    fn ticks_stay_on_the_grid_and_missed_ones_are_not_made_up() {
        let period = Duration::from_millis(100);
        let next = |ms, tick| next_tick(Duration::from_millis(ms), period, tick);
        assert_eq!(next(103, 1), 2);
        assert_eq!(next(199, 1), 2);
        assert_eq!(next(455, 1), 5);
        // A tick taken a hair early does not come again.
        assert_eq!(next(99, 1), 2);
    }
}
