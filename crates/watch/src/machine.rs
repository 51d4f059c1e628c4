//! The machine as a whole: CPUs, memory, paging, pressure and disks.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use crate::proc_file::{Buffer, ProcFile, number_of};
use crate::sample::{Samples, growth, per};

/// The files, and what they said at the tick before.
#[derive(Debug)]
pub struct Machine {
    stat: ProcFile,
    // What a kernel may lack is left out of the samples.
    vmstat: Option<ProcFile>,
    meminfo: Option<ProcFile>,
    diskstats: Option<ProcFile>,
    pressure: Vec<(Pressure, ProcFile)>,
    before: Option<(Instant, Counters)>,
    disks: HashMap<String, Disk>,
}

/// A line of a file in `/proc/pressure`.
#[derive(Clone, Copy, Debug)]
struct Pressure {
    resource: &'static str,
    line: &'static str,
    metric: &'static str,
}

const PRESSURES: [Pressure; 5] = [
    Pressure {
        resource: "cpu",
        line: "some",
        metric: "psi.cpu.some",
    },
    Pressure {
        resource: "memory",
        line: "some",
        metric: "psi.memory.some",
    },
    Pressure {
        resource: "memory",
        line: "full",
        metric: "psi.memory.full",
    },
    Pressure {
        resource: "io",
        line: "some",
        metric: "psi.io.some",
    },
    Pressure {
        resource: "io",
        line: "full",
        metric: "psi.io.full",
    },
];

/// Metric and key in `/proc/vmstat`.
const VMSTAT: [(&str, &str); 4] = [
    ("vm.bi", "pgpgin"),
    ("vm.bo", "pgpgout"),
    ("vm.pgfault", "pgfault"),
    ("vm.pgmajfault", "pgmajfault"),
];

/// Metric and key in `/proc/meminfo`, where KiB stand.
const MEMINFO: [(&str, &str); 5] = [
    ("mem.free", "MemFree"),
    ("mem.available", "MemAvailable"),
    ("mem.cached", "Cached"),
    ("mem.dirty", "Dirty"),
    ("mem.writeback", "Writeback"),
];

/// Counters that only grow, as read at one tick.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counters {
    cpu: CpuTimes,
    context_switches: Option<u64>,
    interrupts: Option<u64>,
    vmstat: [Option<u64>; VMSTAT.len()],
    pressure_us: [Option<u64>; PRESSURES.len()],
}

/// The `cpu` line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, guest and
/// `guest_nice`. The kernel counts guest within user, and `guest_nice` within nice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTimes([u64; 10]);

/// Metric and its place in [`CpuTimes`].
const CPU: [(&str, usize); 8] = [
    ("cpu.usr", 0),
    ("cpu.nice", 1),
    ("cpu.sys", 2),
    ("cpu.idle", 3),
    ("cpu.iowait", 4),
    ("cpu.irq", 5),
    ("cpu.soft", 6),
    ("cpu.steal", 7),
];
const GUEST: usize = 8;

impl CpuTimes {
    fn parse(stat: &str) -> Self {
        let mut times = [0; 10];
        if let Some(line) = stat
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("cpu "))
        {
            for (time, word) in times.iter_mut().zip(line.split_ascii_whitespace()) {
                *time = word.parse().unwrap_or(0);
            }
        }
        Self(times)
    }

    /// Shares of all time since `before`, in percent, in the order of [`CPU`]. A share whose counter
    /// went backwards (idle and iowait can) is left out, and counts as nothing in the whole.
    fn shares(self, before: Self) -> [Option<f64>; CPU.len()] {
        let grown: [Option<f64>; 10] =
            std::array::from_fn(|place| growth(before.0[place], self.0[place]));
        let whole: f64 = grown[..GUEST].iter().flatten().sum();
        std::array::from_fn(|place| {
            let own = match place {
                0 | 1 => {
                    grown[place].map(|time| (time - grown[GUEST + place].unwrap_or(0.0)).max(0.0))
                }
                _ => grown[place],
            };
            per(own.map(|time| 100.0 * time), whole)
        })
    }
}

/// One line of `/proc/diskstats`, as far as it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskCounters {
    reads: u64,
    sectors_read: u64,
    read_ms: u64,
    writes: u64,
    sectors_written: u64,
    write_ms: u64,
    busy_ms: u64,
    queue_ms: u64,
    /// Since Linux 5.5.
    flushes: Option<u64>,
}

/// Sectors of `/proc/diskstats` are of 512 bytes, whatever the disk's own are.
const SECTORS_PER_KIB: f64 = 2.0;

impl DiskCounters {
    /// The name and the counters of a line.
    fn parse(line: &str) -> Option<(&str, Self)> {
        let mut words = line.split_ascii_whitespace().skip(2);
        let name = words.next()?;
        let mut numbers = [0; 17];
        let mut found = 0;
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = word.parse().ok()?;
            found += 1;
        }
        (found >= 11).then(|| {
            let counters = Self {
                reads: numbers[0],
                sectors_read: numbers[2],
                read_ms: numbers[3],
                writes: numbers[4],
                sectors_written: numbers[6],
                write_ms: numbers[7],
                busy_ms: numbers[9],
                queue_ms: numbers[10],
                flushes: (found >= 16).then_some(numbers[15]),
            };
            (name, counters)
        })
    }

    /// Without any I/O since boot.
    fn is_idle(self) -> bool {
        self.reads == 0 && self.writes == 0 && self.flushes.unwrap_or(0) == 0
    }

    /// Metrics over `seconds` since `before`.
    fn rates(self, before: Self, seconds: f64) -> [(&'static str, Option<f64>); 9] {
        let reads = growth(before.reads, self.reads);
        let writes = growth(before.writes, self.writes);
        let flushes = before.flushes.zip(self.flushes);
        let kib = |before, after| growth(before, after).map(|sectors| sectors / SECTORS_PER_KIB);
        let ms = seconds * 1000.0;
        [
            ("disk.r_s", per(reads, seconds)),
            ("disk.w_s", per(writes, seconds)),
            (
                "disk.f_s",
                per(
                    flushes.and_then(|(before, after)| growth(before, after)),
                    seconds,
                ),
            ),
            (
                "disk.rkB_s",
                per(kib(before.sectors_read, self.sectors_read), seconds),
            ),
            (
                "disk.wkB_s",
                per(kib(before.sectors_written, self.sectors_written), seconds),
            ),
            (
                "disk.r_await",
                per(growth(before.read_ms, self.read_ms), reads.unwrap_or(0.0)),
            ),
            (
                "disk.w_await",
                per(
                    growth(before.write_ms, self.write_ms),
                    writes.unwrap_or(0.0),
                ),
            ),
            (
                "disk.aqu_sz",
                per(growth(before.queue_ms, self.queue_ms), ms),
            ),
            (
                "disk.util",
                per(
                    growth(before.busy_ms, self.busy_ms).map(|busy| 100.0 * busy),
                    ms,
                ),
            ),
        ]
    }
}

/// A block device that was seen.
#[derive(Debug)]
struct Disk {
    /// Partitions are left out: their I/O is that of their disk.
    whole: bool,
    before: Option<(Instant, DiskCounters)>,
}

/// Whether a device has a folder of its own in `blocks`, which partitions do not.
fn is_whole_disk(blocks: &Path, name: &str) -> bool {
    // The kernel writes a slash in a device's name as an exclamation mark there.
    !blocks.exists() || blocks.join(name.replace('/', "!")).exists()
}

impl Machine {
    /// Opens the files.
    pub fn open() -> std::io::Result<Self> {
        let pressure = PRESSURES.into_iter().filter_map(|pressure| {
            let file = ProcFile::open(format!("/proc/pressure/{}", pressure.resource)).ok()?;
            Some((pressure, file))
        });
        Ok(Self {
            stat: ProcFile::open("/proc/stat")?,
            vmstat: ProcFile::open("/proc/vmstat").ok(),
            meminfo: ProcFile::open("/proc/meminfo").ok(),
            diskstats: ProcFile::open("/proc/diskstats").ok(),
            pressure: pressure.collect(),
            before: None,
            disks: HashMap::new(),
        })
    }

    /// Adds the machine's samples: gauges always, rates from the second time on.
    pub fn sample(&mut self, now: Instant, buffer: &mut Buffer, samples: &mut Samples) {
        let counters = self.read(buffer, samples);
        if let Some((then, before)) = &self.before {
            counters.write_rates(before, (now - *then).as_secs_f64(), samples);
        }
        self.before = Some((now, counters));
        self.sample_disks(now, buffer, samples);
    }

    /// Reads the counters, and writes the gauges that stand beside them.
    fn read(&self, buffer: &mut Buffer, samples: &mut Samples) -> Counters {
        let mut counters = Counters::default();
        if let Ok(text) = self.stat.read(buffer) {
            counters.cpu = CpuTimes::parse(text);
            counters.context_switches = number_of(text, "ctxt");
            counters.interrupts = number_of(text, "intr");
            for (metric, key) in [("vm.r", "procs_running"), ("vm.b", "procs_blocked")] {
                let value = number_of(text, key).map(|number| number as f64);
                add(samples, metric, value);
            }
        }
        if let Some(Ok(text)) = self.vmstat.as_ref().map(|file| file.read(buffer)) {
            counters.vmstat = VMSTAT.map(|(_, key)| number_of(text, key));
        }
        if let Some(Ok(text)) = self.meminfo.as_ref().map(|file| file.read(buffer)) {
            for (metric, key) in MEMINFO {
                let bytes = number_of(text, key).map(|kib| kib as f64 * 1024.0);
                add(samples, metric, bytes);
            }
        }
        for (total_us, wanted) in counters.pressure_us.iter_mut().zip(PRESSURES) {
            let file = self
                .pressure
                .iter()
                .find(|(pressure, _)| pressure.metric == wanted.metric);
            if let Some(Ok(text)) = file.map(|(_, file)| file.read(buffer)) {
                *total_us = pressure_total(text, wanted.line);
            }
        }
        counters
    }

    fn sample_disks(&mut self, now: Instant, buffer: &mut Buffer, samples: &mut Samples) {
        let Some(Ok(text)) = self.diskstats.as_ref().map(|file| file.read(buffer)) else {
            return;
        };
        for (name, counters) in text.lines().filter_map(DiskCounters::parse) {
            if !self.disks.contains_key(name) {
                let disk = Disk {
                    whole: is_whole_disk(Path::new("/sys/block"), name),
                    before: None,
                };
                self.disks.insert(name.to_owned(), disk);
            }
            let Some(disk) = self.disks.get_mut(name).filter(|disk| disk.whole) else {
                continue;
            };
            if let Some((then, before)) = disk.before
                && !counters.is_idle()
            {
                let seconds = (now - then).as_secs_f64();
                for (metric, value) in counters.rates(before, seconds) {
                    samples.add("machine", name, metric, value);
                }
            }
            disk.before = Some((now, counters));
        }
    }
}

impl Counters {
    fn write_rates(&self, before: &Self, seconds: f64, samples: &mut Samples) {
        for ((metric, _), share) in CPU.into_iter().zip(self.cpu.shares(before.cpu)) {
            add(samples, metric, share);
        }
        let rate = |before: Option<u64>, after: Option<u64>| {
            let grown = before
                .zip(after)
                .and_then(|(before, after)| growth(before, after));
            per(grown, seconds)
        };
        add(
            samples,
            "vm.cs",
            rate(before.context_switches, self.context_switches),
        );
        add(samples, "vm.in", rate(before.interrupts, self.interrupts));
        for (place, (metric, _)) in VMSTAT.into_iter().enumerate() {
            add(
                samples,
                metric,
                rate(before.vmstat[place], self.vmstat[place]),
            );
        }
        for (place, pressure) in PRESSURES.into_iter().enumerate() {
            // Microseconds per second, as a share.
            let rate = rate(before.pressure_us[place], self.pressure_us[place]);
            add(samples, pressure.metric, rate.map(|us| us / 1e6 * 100.0));
        }
    }
}

fn add(samples: &mut Samples, metric: &str, value: Option<f64>) {
    samples.add("machine", "machine", metric, value);
}

/// The total in microseconds at the end of a line such as `some avg10=0.00 ... total=42`.
fn pressure_total(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_shares_leave_guests_out_of_user_time_and_sum_to_the_whole() {
        let before = CpuTimes::parse("cpu  0 0 0 0 0 0 0 0 0 0\n");
        let after = CpuTimes::parse("cpu  40 10 20 100 10 5 5 10 20 5\ncpu0 1 1\n");
        let shares = after.shares(before);
        assert_eq!(
            shares,
            [10.0, 2.5, 10.0, 50.0, 5.0, 2.5, 2.5, 5.0].map(Some),
            "user 40 of which guest 20, nice 10 of which guest 5, of 200"
        );
    }

    #[test]
    fn a_cpu_counter_that_went_backwards_is_left_out_alone() {
        let before = CpuTimes::parse("cpu  0 0 0 0 50 0 0 0 0 0\n");
        let after = CpuTimes::parse("cpu  25 0 0 75 49 0 0 0 0 0\n");
        let shares = after.shares(before);
        assert_eq!(shares[4], None);
        assert_eq!((shares[0], shares[3]), (Some(25.0), Some(75.0)));
        assert_eq!(after.shares(after), [None; 8]);
    }

    const BEFORE: &str = "254 0 vda 100 0 2000 50 10 0 80 20 0 60 70 0 0 0 0 5 1";
    const AFTER: &str = "254 0 vda 110 0 2200 90 30 0 160 120 0 1060 1070 0 0 0 0 9 1";

    #[test]
    fn disk_rates_follow_iostat() {
        let (name, before) = DiskCounters::parse(BEFORE).unwrap();
        let (_, after) = DiskCounters::parse(AFTER).unwrap();
        assert_eq!(name, "vda");
        let rates = after.rates(before, 2.0).map(|(_, value)| value.unwrap());
        // r/s, w/s, f/s, rkB/s, wkB/s, r_await, w_await, aqu-sz, %util
        let expected = [5.0, 10.0, 2.0, 50.0, 20.0, 4.0, 5.0, 0.5, 50.0];
        for (rate, expected) in rates.into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rates:?}");
        }
        // Nothing completed: no mean time; no time passed: no rate.
        assert_eq!(after.rates(after, 2.0)[5].1, None);
        assert_eq!(after.rates(before, 0.0)[0].1, None);
        assert_eq!(before.rates(after, 2.0)[0].1, None);
    }

    #[test]
    fn an_old_kernel_without_flushes_still_has_the_rest() {
        let (_, disk) = DiskCounters::parse("8 0 sda 1 0 8 1 2 0 16 1 0 1 1").unwrap();
        assert_eq!((disk.reads, disk.writes, disk.flushes), (1, 2, None));
        assert!(DiskCounters::parse("8 0 sda 1 0").is_none());
    }

    #[test]
    fn partitions_are_no_disks_of_their_own() {
        let blocks = std::env::temp_dir().join(format!("dyno-blocks-{}", std::process::id()));
        std::fs::create_dir_all(blocks.join("sda")).unwrap();
        std::fs::create_dir_all(blocks.join("cciss!c0d0")).unwrap();
        let whole = ["sda", "sda1", "cciss/c0d0"].map(|name| is_whole_disk(&blocks, name));
        std::fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(whole, [true, false, true]);
        // Without such folders all that is known is shown.
        assert!(is_whole_disk(&blocks, "sda1"));
    }

    #[test]
    fn pressure_is_read_from_its_own_line() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\nfull avg10=1.00 total=7\n";
        assert_eq!(pressure_total(text, "some"), Some(42));
        assert_eq!(pressure_total(text, "full"), Some(7));
        assert_eq!(pressure_total("", "some"), None);
    }
}
