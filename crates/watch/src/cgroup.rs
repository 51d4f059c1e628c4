//! Control groups, of version 1, of version 2, and where a machine has both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::job::Cgroup;
use crate::proc_file::{Buffer, FileId, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{lines, number, numbers_of, words};

/// What is counted: ns used in all, as user and in the kernel; periods, periods throttled, ns throttled; bytes
/// read and written, requests read and written, bytes that had been evicted and were read back.
const COUNTERS: usize = 11;
const REFAULTED: usize = 10;
type Counters = [Option<u64>; COUNTERS];

/// Metric, place of its counter, and what a count of it is in the metric's unit: percent of one CPU, 1 or KiB.
const RATES: [(&str, usize, f64); COUNTERS] = [
    ("cgroup.cpu", 0, 1e-7),
    ("cgroup.usr", 1, 1e-7),
    ("cgroup.sys", 2, 1e-7),
    ("cgroup.nr_periods", 3, 1.0),
    ("cgroup.nr_throttled", 4, 1.0),
    ("cgroup.throttled", 5, 1e-7),
    ("cgroup.rkB_s", 6, 1.0 / 1024.0),
    ("cgroup.wkB_s", 7, 1.0 / 1024.0),
    ("cgroup.r_s", 8, 1.0),
    ("cgroup.w_s", 9, 1.0),
    ("cgroup.refkB_s", REFAULTED, 1.0 / 1024.0),
];

/// Usage, its peak, page cache, anonymous memory: bytes.
const GAUGES: [&str; 4] = [
    "cgroup.mem",
    "cgroup.mem_peak",
    "cgroup.cache",
    "cgroup.rss",
];

/// Where the hierarchies are mounted, and of which controllers.
#[derive(Debug, Default)]
pub struct Hierarchies(Vec<Hierarchy>);

#[derive(Debug, PartialEq)]
struct Hierarchy {
    mount: PathBuf,
    /// None of version 2.
    controllers: Option<Vec<String>>,
}

impl Hierarchies {
    /// Those of this machine.
    pub fn find() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
    }

    fn parse(mounts: &str) -> Self {
        let hierarchies = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (mount, kind, options) = (words.nth(1)?, words.next()?, words.next()?);
            let controllers = match kind {
                "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
                "cgroup2" => None,
                _ => return None,
            };
            Some(Hierarchy {
                mount: mount.into(),
                controllers,
            })
        });
        Self(hierarchies.collect())
    }

    /// Where the hierarchy of a controller of version 1 is.
    fn mount_of(&self, controller: &str) -> Option<&Path> {
        let has = |hierarchy: &&Hierarchy| {
            let controllers = hierarchy.controllers.as_ref();
            controllers.is_some_and(|all| all.iter().any(|known| known == controller))
        };
        Some(&self.0.iter().find(has)?.mount)
    }

    /// The folder of a group in the hierarchy of a controller: of version 1 where it is mounted and has the
    /// group, else of version 2.
    fn folders(&self, group: &Cgroup, controller: &str) -> (Option<PathBuf>, Option<PathBuf>) {
        let of_process = group
            .pid
            .map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default());
        let folder = |hierarchy: &Hierarchy| {
            let path = match (&group.path, &of_process) {
                (Some(path), _) => path.as_str(),
                (None, Some(text)) => {
                    path_in(text, hierarchy.controllers.is_some().then_some(controller))?
                }
                (None, None) => return None,
            };
            let folder = hierarchy.mount.join(path.trim_start_matches('/'));
            folder.is_dir().then_some(folder)
        };
        let of_version_1 = self
            .0
            .iter()
            .find(|hierarchy| Some(hierarchy.mount.as_path()) == self.mount_of(controller));
        let mut others = self.0.iter();
        let of_version_2 = others.find(|hierarchy| hierarchy.controllers.is_none());
        (of_version_1.and_then(folder), of_version_2.and_then(folder))
    }
}

/// The path of a process's group by `/proc/PID/cgroup`: in the hierarchy of a controller of version 1, or in that
/// of version 2.
fn path_in<'t>(text: &'t str, controller: Option<&str>) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match controller {
            Some(controller) => controllers.split(',').any(|known| known == controller),
            None => id == "0" && controllers.is_empty(),
        };
        is_it.then_some(path)
    })
}

/// What one controller tells of a group.
#[derive(Debug)]
enum Part {
    /// `cpu.stat`: throttling, and in version 2 the CPU time.
    Cpu(ProcFile),
    /// CPU time by version 1.
    Usage {
        usage: ProcFile,
        stat: Option<ProcFile>,
        ns_per_tick: u64,
    },
    Io(Io),
    Memory(Memory),
}

#[derive(Debug)]
struct Memory {
    usage: ProcFile,
    peak: Option<ProcFile>,
    stat: Option<ProcFile>,
    /// Keys of page cache, anonymous memory, and of pages of either that came back, children's included.
    keys: [&'static str; 4],
    page_bytes: u64,
}

#[derive(Debug)]
enum Io {
    V1 { bytes: ProcFile, requests: ProcFile },
    V2(ProcFile),
}

/// What was read of a group at a tick.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    counters: Counters,
    gauges: [Option<u64>; GAUGES.len()],
    is_there: bool,
}

impl Told {
    /// Takes over what another part told.
    fn add(&mut self, other: &Self) {
        for (known, told) in self.counters.iter_mut().zip(other.counters) {
            *known = told.or(*known);
        }
        for (known, told) in self.gauges.iter_mut().zip(other.gauges) {
            *known = told.or(*known);
        }
        self.is_there |= other.is_there;
    }
}

/// What was read at this tick, by file. Subjects are often in one group by some controllers, or by all: it is
/// read once for them.
#[derive(Debug, Default)]
pub struct Readings(Vec<(FileId, Told)>);

impl Readings {
    /// Begins a tick.
    pub fn begin(&mut self) {
        self.0.clear();
    }

    fn of(&mut self, file: FileId, read: impl FnOnce() -> Told) -> Told {
        if let Some((_, told)) = self.0.iter().find(|(known, _)| *known == file) {
            return *told;
        }
        let told = read();
        self.0.push((file, told));
        told
    }
}

/// A control group that is watched.
#[derive(Debug)]
pub struct WatchedCgroup {
    /// The name of its samples.
    pub subject: String,
    /// By the first file of each; what a later one tells is told by no other.
    parts: Vec<(FileId, Part)>,
    counters: Growth<COUNTERS>,
}

fn open(folder: Option<&Path>, name: &str) -> Option<ProcFile> {
    // Some files are there and cannot be read, where a controller is off.
    ProcFile::open(folder?.join(name))
        .ok()
        .filter(|file| file.read(&mut Buffer::default()).is_ok())
}

impl WatchedCgroup {
    /// Opens the files of a group that is there; also gives what it does not tell, as subjects of
    /// `watch.absent`.
    pub fn open(
        group: &Cgroup,
        hierarchies: &Hierarchies,
        ticks_per_s: u64,
    ) -> io::Result<(Self, Vec<String>)> {
        let (v1, v2) = hierarchies.folders(group, "cpu");
        let of_version_1 = open(v1.as_deref(), "cpu.stat");
        let usage = open_usage(hierarchies, group, ticks_per_s);
        let is_version_2 = of_version_1.is_none();
        let cpu = of_version_1.or_else(|| open(v2.as_deref(), "cpu.stat"));
        let memory = open_memory(hierarchies, group);
        let io = open_io(hierarchies, group);
        let there = [
            ("cpu", usage.is_some() || (is_version_2 && cpu.is_some())),
            ("throttled", cpu.is_some()),
            ("memory", memory.is_some()),
            ("blkio", io.is_some()),
        ];
        if there.iter().all(|(_, is_there)| !is_there) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "no hierarchy of control groups has it",
            ));
        }
        let absent = there.iter().filter(|(_, is_there)| !is_there);
        let absent = absent.map(|(part, _)| format!("{}/{part}", group.subject));
        let absent = absent.collect();
        let parts = [
            cpu.map(Part::Cpu),
            usage,
            io.map(Part::Io),
            memory.map(Part::Memory),
        ];
        let parts = parts.into_iter().flatten();
        let watched = Self {
            subject: group.subject.clone(),
            parts: parts
                .map(|part| Ok((part.file().id()?, part)))
                .collect::<io::Result<_>>()?,
            counters: Growth::default(),
        };
        Ok((watched, absent))
    }

    /// Adds its samples; false once it is gone.
    pub fn sample(
        &mut self,
        seconds: f64,
        readings: &mut Readings,
        buffer: &mut Buffer,
        samples: &mut Samples,
    ) -> bool {
        let mut told = Told::default();
        for (file, part) in &self.parts {
            told.add(&readings.of(*file, || part.read(buffer)));
        }
        let mut of_group = samples.of("cgroup", &self.subject);
        for (metric, bytes) in GAUGES.into_iter().zip(told.gauges) {
            let value = bytes.map(|bytes| bytes as f64);
            of_group.add(metric, value);
        }
        let grown = self.counters.next(told.counters);
        for (metric, place, unit) in RATES {
            let rate = per(grown[place].map(|count| count * unit), seconds);
            of_group.add(metric, rate);
        }
        told.is_there
    }
}

impl Part {
    /// The first of its files, which is no other part's.
    fn file(&self) -> &ProcFile {
        match self {
            Self::Cpu(file) | Self::Io(Io::V2(file)) => file,
            Self::Usage { usage, .. } => usage,
            Self::Io(Io::V1 { bytes, .. }) => bytes,
            Self::Memory(memory) => &memory.usage,
        }
    }

    fn read(&self, buffer: &mut Buffer) -> Told {
        let mut told = Told::default();
        match self {
            Self::Cpu(file) => {
                if let Ok(text) = file.read(buffer) {
                    told.counters[3..6].copy_from_slice(&throttled(text));
                    // Of version 2 alone.
                    let keys = ["usage_usec", "user_usec", "system_usec"];
                    let used =
                        numbers_of(text, &keys).map(|us| us.map(|us| us.saturating_mul(1000)));
                    told.counters[..3].copy_from_slice(&used);
                    told.is_there = true;
                }
            }
            Self::Usage {
                usage,
                stat,
                ns_per_tick,
            } => {
                if let Ok(text) = usage.read(buffer) {
                    told.counters[0] = number(text.trim_ascii());
                    told.is_there = true;
                }
                if let Some(Ok(text)) = stat.as_ref().map(|file| file.read(buffer)) {
                    let ticks = numbers_of(text, &["user", "system"]);
                    let ns =
                        ticks.map(|ticks| ticks.map(|ticks| ticks.saturating_mul(*ns_per_tick)));
                    told.counters[1..3].copy_from_slice(&ns);
                }
            }
            Self::Io(io) => told.is_there = io.read(&mut told.counters, buffer),
            Self::Memory(memory) => {
                (told.gauges, told.counters[REFAULTED]) = memory.read(buffer);
                told.is_there = told.gauges[0].is_some();
            }
        }
        told
    }
}

/// Periods, periods throttled and ns throttled, which version 2 tells in us.
fn throttled(text: &[u8]) -> [Option<u64>; 3] {
    let keys = [
        "nr_periods",
        "nr_throttled",
        "throttled_time",
        "throttled_usec",
    ];
    let [periods, throttled, ns, us] = numbers_of(text, &keys);
    [
        periods,
        throttled,
        ns.or(us.map(|us| us.saturating_mul(1000))),
    ]
}

fn open_usage(hierarchies: &Hierarchies, group: &Cgroup, ticks_per_s: u64) -> Option<Part> {
    let (v1, _) = hierarchies.folders(group, "cpuacct");
    Some(Part::Usage {
        usage: open(v1.as_deref(), "cpuacct.usage")?,
        stat: open(v1.as_deref(), "cpuacct.stat"),
        ns_per_tick: 1_000_000_000 / ticks_per_s.max(1),
    })
}

fn open_memory(hierarchies: &Hierarchies, group: &Cgroup) -> Option<Memory> {
    let (v1, v2) = hierarchies.folders(group, "memory");
    if let Some(usage) = open(v1.as_deref(), "memory.usage_in_bytes") {
        return Some(Memory {
            usage,
            peak: open(v1.as_deref(), "memory.max_usage_in_bytes"),
            stat: open(v1.as_deref(), "memory.stat"),
            keys: [
                "total_cache",
                "total_rss",
                "total_workingset_refault_anon",
                "total_workingset_refault_file",
            ],
            page_bytes: crate::process::page_bytes(),
        });
    }
    Some(Memory {
        usage: open(v2.as_deref(), "memory.current")?,
        peak: open(v2.as_deref(), "memory.peak"),
        stat: open(v2.as_deref(), "memory.stat"),
        keys: [
            "file",
            "anon",
            "workingset_refault_anon",
            "workingset_refault_file",
        ],
        page_bytes: crate::process::page_bytes(),
    })
}

impl Memory {
    /// The gauges, and the bytes that were read back so far.
    fn read(&self, buffer: &mut Buffer) -> ([Option<u64>; GAUGES.len()], Option<u64>) {
        let mut bytes = [None; GAUGES.len()];
        let mut refaulted = None;
        for (place, file) in [(0, Some(&self.usage)), (1, self.peak.as_ref())] {
            if let Some(Ok(text)) = file.map(|file| file.read(buffer)) {
                bytes[place] = number(text.trim_ascii());
            }
        }
        if let Some(Ok(text)) = self.stat.as_ref().map(|file| file.read(buffer)) {
            let of_file;
            let of_memory;
            [bytes[2], bytes[3], of_memory, of_file] = numbers_of(text, &self.keys);
            // Since Linux 5.9; before, all were of files and not told apart.
            refaulted = of_file
                .map(|pages| (pages + of_memory.unwrap_or(0)).saturating_mul(self.page_bytes));
        }
        (bytes, refaulted)
    }
}

fn open_io(hierarchies: &Hierarchies, group: &Cgroup) -> Option<Io> {
    let (v1, v2) = hierarchies.folders(group, "blkio");
    // Those of children are told apart since Linux 4.20; before, these were all there was.
    for end in ["_recursive", ""] {
        let file = |name| open(v1.as_deref(), &format!("blkio.throttle.{name}{end}"));
        if let (Some(bytes), Some(requests)) = (file("io_service_bytes"), file("io_serviced")) {
            let is_counted = counts(&requests)
                || hierarchies
                    .mount_of("blkio")
                    .and_then(|mount| open(Some(mount), "blkio.throttle.io_serviced"))
                    .is_some_and(|file| counts(&file));
            return is_counted.then_some(Io::V1 { bytes, requests });
        }
    }
    open(v2.as_deref(), "io.stat").map(Io::V2)
}

/// Whether a file of `blkio.throttle` tells of any device. Since Linux 6.10 the requests of a device are counted
/// only once a limit was set on it, by whatever group: no lines then do not mean that nothing was done.
fn counts(file: &ProcFile) -> bool {
    let mut buffer = Buffer::default();
    let text = file.read(&mut buffer).unwrap_or_default();
    lines(text).any(|line| line.first().is_some_and(u8::is_ascii_digit))
}

impl Io {
    /// Fills in bytes and requests; false where they cannot be read.
    fn read(&self, counters: &mut Counters, buffer: &mut Buffer) -> bool {
        match self {
            Self::V1 { bytes, requests } => {
                let mut whole = true;
                for (place, file) in [(6, bytes), (8, requests)] {
                    match file.read(buffer) {
                        Ok(text) => {
                            let both = parse_blkio(text).map(Some);
                            counters[place..place + 2].copy_from_slice(&both);
                        }
                        Err(_) => whole = false,
                    }
                }
                whole
            }
            Self::V2(file) => file
                .read(buffer)
                .map(|text| counters[6..10].copy_from_slice(&parse_io_stat(text).map(Some)))
                .is_ok(),
        }
    }
}

/// Read and written, summed over the devices of a file such as `blkio.throttle.io_serviced`. A group that did
/// nothing has no lines.
fn parse_blkio(text: &[u8]) -> [u64; 2] {
    let mut sums = [0_u64; 2];
    for line in lines(text) {
        let mut words = words(line).skip(1);
        let place = match words.next() {
            Some(b"Read") => 0,
            Some(b"Write") => 1,
            _ => continue,
        };
        let count = words.next().and_then(number).unwrap_or(0);
        sums[place] = sums[place].saturating_add(count);
    }
    sums
}

/// Bytes read and written, requests read and written, summed over the devices of `io.stat`.
fn parse_io_stat(text: &[u8]) -> [u64; 4] {
    let mut sums = [0_u64; 4];
    for word in words(text) {
        let mut parts = word.splitn(2, |byte| *byte == b'=');
        let place = match parts.next() {
            Some(b"rbytes") => 0,
            Some(b"wbytes") => 1,
            Some(b"rios") => 2,
            Some(b"wios") => 3,
            _ => continue,
        };
        let count = parts.next().and_then(number).unwrap_or(0);
        sums[place] = sums[place].saturating_add(count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A folder that stands in for a hierarchy, removed in the end.
    struct Mounted(PathBuf);

    impl Mounted {
        fn new(name: &str) -> Self {
            let folder = format!("dyno-cgroup-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            fs::create_dir_all(folder.join("a/b")).unwrap();
            Self(folder)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.join("a/b").join(name), text).unwrap();
        }

        fn hierarchy(&self, controllers: Option<&str>) -> Hierarchies {
            let controllers = controllers.map(|all| all.split(',').map(str::to_owned).collect());
            Hierarchies(vec![Hierarchy {
                mount: self.0.clone(),
                controllers,
            }])
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn group() -> Cgroup {
        Cgroup {
            subject: "box".to_owned(),
            path: Some("/a/b".to_owned()),
            pid: None,
        }
    }

    /// The lines of a second sample, without their time and names.
    fn second(watched: &mut WatchedCgroup, change: impl FnOnce()) -> Vec<String> {
        let (mut buffer, mut samples) = (Buffer::default(), Samples::default());
        let mut readings = Readings::default();
        assert!(watched.sample(0.0, &mut readings, &mut buffer, &mut samples));
        change();
        samples.begin(1);
        readings.begin();
        assert!(watched.sample(2.0, &mut readings, &mut buffer, &mut samples));
        let text = samples.string();
        text.lines()
            .map(|line| {
                line.strip_prefix("1,cgroup,box,cgroup.")
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn a_group_of_version_1_is_read_from_its_controllers() {
        let mounted = Mounted::new("1");
        let write = |times: u64| {
            mounted.write("cpuacct.usage", &format!("{}\n", times * 1_000_000_000));
            mounted.write(
                "cpuacct.stat",
                &format!("user {}\nsystem {}\n", times * 60, times * 30),
            );
            mounted.write(
                "cpu.stat",
                &format!(
                    "nr_periods {}\nnr_throttled {}\nthrottled_time {}\n",
                    times * 20,
                    times * 10,
                    times * 500_000_000
                ),
            );
            mounted.write("memory.usage_in_bytes", "3000\n");
            mounted.write("memory.max_usage_in_bytes", "4000\n");
            mounted.write(
                "memory.stat",
                &format!(
                    "cache 1\nrss 2\ntotal_cache 1000\ntotal_rss 2000\ntotal_workingset_refault_anon 1\ntotal_workingset_refault_file {}\n",
                    times * 4
                ),
            );
            mounted.write(
                "blkio.throttle.io_service_bytes",
                &format!(
                    "254:0 Read {}\n254:0 Write 4096\n7:0 Read 0\nTotal 9\n",
                    times * 2048
                ),
            );
            mounted.write(
                "blkio.throttle.io_serviced",
                &format!("254:0 Read {}\n254:0 Write 4\n", times * 8),
            );
        };
        write(1);
        let hierarchies = mounted.hierarchy(Some("rw,cpu,cpuacct,memory,blkio"));
        let (mut watched, absent) = WatchedCgroup::open(&group(), &hierarchies, 100).unwrap();
        assert_eq!(absent, Vec::<String>::new());
        assert_eq!(
            second(&mut watched, || write(2)),
            [
                "mem,3000",
                "mem_peak,4000",
                "cache,1000",
                "rss,2000",
                "cpu,50",
                "usr,30",
                "sys,15",
                "nr_periods,10",
                "nr_throttled,5",
                "throttled,25",
                "rkB_s,1",
                "wkB_s,0",
                "r_s,4",
                "w_s,0",
                &format!("refkB_s,{}", 2 * crate::process::page_bytes() / 1024),
            ]
        );
    }

    #[test]
    fn a_group_of_version_2_is_read_from_its_files_and_what_it_lacks_is_told() {
        let mounted = Mounted::new("2");
        let write = |times: u64| {
            mounted.write("cpu.stat", &format!("usage_usec {}\nuser_usec {}\nsystem_usec {}\nnr_periods 0\nnr_throttled 0\nthrottled_usec {}\n", times * 1_000_000, times * 600_000, times * 400_000, times * 500_000));
            mounted.write(
                "io.stat",
                &format!(
                    "254:0 rbytes={} wbytes=0 rios={} wios=0 dbytes=0 dios=0\n",
                    times * 2048,
                    times * 8
                ),
            );
        };
        write(1);
        let (mut watched, absent) =
            WatchedCgroup::open(&group(), &mounted.hierarchy(None), 100).unwrap();
        assert_eq!(absent, ["box/memory"]);
        assert_eq!(
            second(&mut watched, || write(2)),
            [
                "cpu,50",
                "usr,30",
                "sys,20",
                "nr_periods,0",
                "nr_throttled,0",
                "throttled,25",
                "rkB_s,1",
                "wkB_s,0",
                "r_s,4",
                "w_s,0",
            ]
        );
        // A kernel with the memory controller on, and without memory.peak (before Linux 5.19).
        mounted.write("memory.current", "3000\n");
        mounted.write("memory.stat", "anon 2000\nfile 1000\n");
        let (mut watched, absent) =
            WatchedCgroup::open(&group(), &mounted.hierarchy(None), 100).unwrap();
        assert_eq!(absent, Vec::<String>::new());
        assert_eq!(
            second(&mut watched, || ())[..3],
            ["mem,3000", "cache,1000", "rss,2000"]
        );
    }

    #[test]
    fn a_group_of_two_subjects_is_read_once_a_tick_and_told_of_both() {
        let mounted = Mounted::new("shared");
        fs::create_dir_all(mounted.0.join("a/c")).unwrap();
        for (name, us) in [("b", 1), ("c", 7)] {
            let text = format!("usage_usec {us}\nuser_usec 0\nsystem_usec 0\n");
            fs::write(mounted.0.join("a").join(name).join("cpu.stat"), text).unwrap();
        }
        let open = |subject: &str, path: &str| {
            let group = Cgroup {
                subject: subject.to_owned(),
                path: Some(path.to_owned()),
                pid: None,
            };
            let opened = WatchedCgroup::open(&group, &mounted.hierarchy(None), 100);
            opened.unwrap().0
        };
        let mut all = [
            open("first", "/a/b"),
            open("second", "/a/b"),
            open("other", "/a/c"),
        ];
        let (mut buffer, mut samples) = (Buffer::default(), Samples::default());
        let mut readings = Readings::default();
        for seconds in [0.0, 2.0] {
            readings.begin();
            samples.begin(1);
            for watched in &mut all {
                assert!(watched.sample(seconds, &mut readings, &mut buffer, &mut samples));
            }
            assert_eq!(readings.0.len(), 2, "files that were read");
            mounted.write(
                "cpu.stat",
                "usage_usec 1000001\nuser_usec 0\nsystem_usec 0\n",
            );
        }
        let text = samples.string();
        let used: Vec<_> = text
            .lines()
            .filter(|line| line.contains("cgroup.cpu,"))
            .collect();
        assert_eq!(
            used,
            [
                "1,cgroup,first,cgroup.cpu,50",
                "1,cgroup,second,cgroup.cpu,50",
                "1,cgroup,other,cgroup.cpu,0"
            ]
        );
    }

    #[test]
    fn requests_that_the_kernel_does_not_count_are_not_told_to_be_none() {
        let mounted = Mounted::new("uncounted");
        mounted.write("cpuacct.usage", "1\n");
        for end in ["", "_recursive"] {
            mounted.write(
                &format!("blkio.throttle.io_service_bytes{end}"),
                "Total 0\n",
            );
            mounted.write(&format!("blkio.throttle.io_serviced{end}"), "Total 0\n");
        }
        let hierarchies = mounted.hierarchy(Some("cpuacct,blkio"));
        let (_, absent) = WatchedCgroup::open(&group(), &hierarchies, 100).unwrap();
        assert!(absent.contains(&"box/blkio".to_owned()), "{absent:?}");
        // Others' are counted, so this one has done nothing.
        fs::write(
            mounted.0.join("blkio.throttle.io_serviced"),
            "254:0 Read 1\nTotal 1\n",
        )
        .unwrap();
        let (_, absent) = WatchedCgroup::open(&group(), &hierarchies, 100).unwrap();
        assert!(!absent.contains(&"box/blkio".to_owned()), "{absent:?}");
    }

    #[test]
    fn a_group_that_is_nowhere_is_an_error() {
        let mounted = Mounted::new("none");
        let elsewhere = Cgroup {
            path: Some("/c".to_owned()),
            ..group()
        };
        for controllers in [None, Some("cpu,memory")] {
            let hierarchies = mounted.hierarchy(controllers);
            let error = WatchedCgroup::open(&elsewhere, &hierarchies, 100).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn hierarchies_and_the_groups_of_a_process_are_found_on_a_machine_that_has_both_versions() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\nbroken\n";
        let found = Hierarchies::parse(mounts).0;
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].mount, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert!(
            found[0]
                .controllers
                .as_ref()
                .unwrap()
                .contains(&"cpuacct".to_owned())
        );
        assert_eq!(found[1].controllers, None);
        let of_process = "9:name=systemd:/\n4:memory:/pods/a:b\n2:cpu,cpuacct:/\n0::/init.scope\n";
        assert_eq!(path_in(of_process, Some("memory")), Some("/pods/a:b"));
        assert_eq!(path_in(of_process, Some("cpuacct")), Some("/"));
        assert_eq!(path_in(of_process, Some("blkio")), None);
        assert_eq!(path_in(of_process, None), Some("/init.scope"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "((254:0 )?(Read|rbytes=|wios=)[0-9 ]{0,25}\n?){0,5}", lines in "([0-9:a-z /,]{0,20}\n){0,4}") {
            for text in [&text[..], line.as_bytes()] {
                let _ = parse_blkio(text);
                let _ = parse_io_stat(text);
                let _ = throttled(text);
            }
            let _ = path_in(&lines, Some("cpu"));
            let _ = Hierarchies::parse(&lines);
        }
    }
}
