//! Block devices, as iostat -x tells of them.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{lines, name_of, number, words};

/// Sectors of `/proc/diskstats` are of 512 bytes, whatever the disk's own are.
const SECTORS_PER_KIB: f64 = 2.0;

/// The fields of a line behind the name (Documentation/admin-guide/iostats.rst): discards are there since
/// Linux 4.18, flushes since 5.5.
const FIELDS: usize = 17;
const IN_FLIGHT: usize = 8;
const BUSY_MS: usize = 9;
const QUEUE_MS: usize = 10;

/// Reads, writes or discards: the first of their four fields (completed, merged, sectors, ms), and the metrics.
struct Kind {
    first: usize,
    per_s: &'static str,
    kib_s: &'static str,
    merged_s: &'static str,
    merged: &'static str,
    wait: &'static str,
    size: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        first: 0,
        per_s: "disk.r_s",
        kib_s: "disk.rkB_s",
        merged_s: "disk.rrqm_s",
        merged: "disk.rrqm",
        wait: "disk.r_await",
        size: "disk.rareq_sz",
    },
    Kind {
        first: 4,
        per_s: "disk.w_s",
        kib_s: "disk.wkB_s",
        merged_s: "disk.wrqm_s",
        merged: "disk.wrqm",
        wait: "disk.w_await",
        size: "disk.wareq_sz",
    },
    Kind {
        first: 11,
        per_s: "disk.d_s",
        kib_s: "disk.dkB_s",
        merged_s: "disk.drqm_s",
        merged: "disk.drqm",
        wait: "disk.d_await",
        size: "disk.dareq_sz",
    },
];
const FLUSHES: usize = 15;
const FLUSH_MS: usize = 16;

/// The name and the counters of a line.
fn parse(line: &[u8]) -> Option<(&[u8], [Option<u64>; FIELDS])> {
    let mut words = words(line).skip(2);
    let name = words.next()?;
    let mut counters = [None; FIELDS];
    let mut found = 0;
    for (counter, word) in counters.iter_mut().zip(words) {
        *counter = Some(number(word)?);
        found += 1;
    }
    (found > QUEUE_MS).then_some((name, counters))
}

/// Without any I/O since boot.
fn is_idle(counters: &[Option<u64>; FIELDS]) -> bool {
    let completed = [0, 4, 11, FLUSHES];
    completed
        .iter()
        .all(|place| counters[*place].unwrap_or(0) == 0)
}

/// Calls `add` with each metric of a disk whose counters grew so within `seconds`.
fn rates(
    grown: &[Option<f64>; FIELDS],
    seconds: f64,
    mut add: impl FnMut(&'static str, Option<f64>),
) {
    for kind in &KINDS {
        let [done, merged, sectors, ms] = [0, 1, 2, 3].map(|place| grown[kind.first + place]);
        let kib = sectors.map(|sectors| sectors / SECTORS_PER_KIB);
        add(kind.per_s, per(done, seconds));
        add(kind.kib_s, per(kib, seconds));
        add(kind.merged_s, per(merged, seconds));
        let asked = done.zip(merged).map_or(0.0, |(done, merged)| done + merged);
        add(kind.merged, per(merged.map(|merged| 100.0 * merged), asked));
        add(kind.wait, per(ms, done.unwrap_or(0.0)));
        add(kind.size, per(kib, done.unwrap_or(0.0)));
    }
    let flushes = grown[FLUSHES];
    add("disk.f_s", per(flushes, seconds));
    add("disk.f_await", per(grown[FLUSH_MS], flushes.unwrap_or(0.0)));
    let ms = seconds * 1000.0;
    add("disk.aqu_sz", per(grown[QUEUE_MS], ms));
    add(
        "disk.util",
        per(grown[BUSY_MS].map(|busy| 100.0 * busy), ms),
    );
}

/// A block device that was seen.
#[derive(Debug)]
struct Disk {
    name: Vec<u8>,
    subject: String,
    /// Partitions are left out unless they are named: their I/O is that of their disk.
    watched: bool,
    /// Nothing is behind it, as far as is known: a loop device without a file, a drive without a medium. It is left
    /// out as one that was never used.
    empty: bool,
    then: Option<Instant>,
    counters: Growth<FIELDS>,
}

/// Whether a device has a folder of its own in `blocks`, which partitions do not.
fn is_whole_disk(blocks: &Path, name: &str) -> bool {
    // The kernel writes a slash in a device's name as an exclamation mark there.
    !blocks.exists() || blocks.join(name.replace('/', "!")).exists()
}

/// Whether a whole disk has no room at all.
fn is_empty(blocks: &Path, name: &str) -> bool {
    let size = fs::read(blocks.join(name.replace('/', "!")).join("size"));
    size.is_ok_and(|size| number(size.trim_ascii()) == Some(0))
}

#[derive(Debug)]
pub struct Disks {
    file: ProcFile,
    /// Those asked for; else all whole disks that were ever used and are not empty.
    named: Option<Vec<String>>,
    seen: Vec<Disk>,
}

impl Disks {
    pub fn new(file: ProcFile, named: Option<Vec<String>>) -> Self {
        Self {
            file,
            named,
            seen: Vec::new(),
        }
    }

    /// Those named that were not seen.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let seen = |name: &str| self.seen.iter().any(|disk| disk.subject == name);
        let named = self.named.iter().flatten().map(String::as_str);
        named.filter(move |name| !seen(name))
    }

    pub fn sample(&mut self, now: Instant, buffer: &mut Buffer, samples: &mut Samples) {
        let Self { file, named, seen } = self;
        let Ok(text) = file.read(buffer) else {
            return;
        };
        let all = lines(text).filter_map(parse);
        for (guess, (name, counters)) in all.enumerate() {
            let disk = known(seen, guess, name, named.as_deref());
            if !disk.watched {
                continue;
            }
            let grown = disk.counters.next(without_gauge(counters));
            let then = disk.then.replace(now);
            // What is put behind one is read from at once.
            disk.empty &= grown.iter().flatten().all(|count| *count == 0.0);
            if named.is_none() && (disk.empty || is_idle(&counters)) {
                continue;
            }
            let seconds = then.map_or(0.0, |then| (now - then).as_secs_f64());
            let mut of_disk = samples.of("machine", &disk.subject);
            rates(&grown, seconds, |metric, value| of_disk.add(metric, value));
        }
    }
}

/// The requests in flight are no counter.
fn without_gauge(mut counters: [Option<u64>; FIELDS]) -> [Option<u64>; FIELDS] {
    counters[IN_FLIGHT] = None;
    counters
}

/// The disk of that name, which nearly always stands where its line does.
fn known<'d>(
    seen: &'d mut Vec<Disk>,
    guess: usize,
    name: &[u8],
    named: Option<&[String]>,
) -> &'d mut Disk {
    let is_it = |disk: &Disk| disk.name == name;
    let place = if seen.get(guess).is_some_and(is_it) {
        guess
    } else {
        seen.iter().position(is_it).unwrap_or_else(|| {
            let subject = name_of(name);
            let blocks = Path::new("/sys/block");
            let watched = match named {
                Some(named) => named.contains(&subject),
                None => is_whole_disk(blocks, &subject),
            };
            seen.push(Disk {
                name: name.to_owned(),
                empty: is_empty(blocks, &subject),
                subject,
                watched,
                then: None,
                counters: Growth::default(),
            });
            seen.len() - 1
        })
    };
    &mut seen[place]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const BEFORE: &str = "254 0 vda 100 0 2000 50 10 0 80 20 0 60 70 0 0 0 0 5 1";
    const AFTER: &str = "254 0 vda 110 30 2200 90 30 20 160 120 3 1060 1070 4 12 64 2 9 7";

    fn reckon(before: &str, after: &str, seconds: f64) -> HashMap<&'static str, f64> {
        let mut growth = Growth::default();
        growth.next(without_gauge(parse(before.as_bytes()).unwrap().1));
        let grown = growth.next(without_gauge(parse(after.as_bytes()).unwrap().1));
        let mut found = HashMap::new();
        rates(&grown, seconds, |metric, value| {
            if let Some(value) = value {
                found.insert(metric, value);
            }
        });
        found
    }

    #[test]
    fn disk_rates_follow_iostat() {
        let found = reckon(BEFORE, AFTER, 2.0);
        for (metric, expected) in [
            ("disk.r_s", 5.0),
            ("disk.rkB_s", 50.0),
            ("disk.rrqm_s", 15.0),
            ("disk.rrqm", 75.0),
            ("disk.r_await", 4.0),
            ("disk.rareq_sz", 10.0),
            ("disk.w_s", 10.0),
            ("disk.wkB_s", 20.0),
            ("disk.wrqm_s", 10.0),
            ("disk.wrqm", 50.0),
            ("disk.w_await", 5.0),
            ("disk.wareq_sz", 2.0),
            ("disk.d_s", 2.0),
            ("disk.dkB_s", 16.0),
            ("disk.drqm_s", 6.0),
            ("disk.drqm", 75.0),
            ("disk.d_await", 0.5),
            ("disk.dareq_sz", 8.0),
            ("disk.f_s", 2.0),
            ("disk.f_await", 1.5),
            ("disk.aqu_sz", 0.5),
            ("disk.util", 50.0),
        ] {
            assert!(
                (found[metric] - expected).abs() < 1e-9,
                "{metric}: {found:?}"
            );
        }
        assert_eq!(found.len(), 22);
    }

    #[test]
    fn without_requests_there_is_no_mean_and_without_time_no_rate() {
        let idle = reckon(AFTER, AFTER, 2.0);
        assert!(!idle.contains_key("disk.r_await") && !idle.contains_key("disk.rrqm"));
        assert_eq!(idle["disk.r_s"].to_bits(), 0.0_f64.to_bits());
        assert!(!reckon(BEFORE, AFTER, 0.0).contains_key("disk.r_s"));
        assert!(!reckon(AFTER, BEFORE, 2.0).contains_key("disk.r_s"));
    }

    #[test]
    fn an_old_kernel_without_discards_and_flushes_still_has_the_rest() {
        let found = reckon(
            "8 0 sda 1 0 8 1 2 0 16 1 0 1 1",
            "8 0 sda 3 0 8 1 2 0 16 1 0 1 1",
            1.0,
        );
        assert!((found["disk.r_s"] - 2.0).abs() < 1e-9);
        assert!(!found.contains_key("disk.f_s") && !found.contains_key("disk.d_s"));
        // Linux before 2.6.25 told four numbers of a partition.
        assert!(parse(b"8 1 sda1 1 2 3 4").is_none());
    }

    #[test]
    fn partitions_are_no_disks_of_their_own_unless_named() {
        let blocks = std::env::temp_dir().join(format!("dyno-blocks-{}", std::process::id()));
        std::fs::create_dir_all(blocks.join("sda")).unwrap();
        std::fs::create_dir_all(blocks.join("cciss!c0d0")).unwrap();
        let whole = ["sda", "sda1", "cciss/c0d0"].map(|name| is_whole_disk(&blocks, name));
        std::fs::remove_dir_all(&blocks).unwrap();
        assert_eq!(whole, [true, false, true]);
        // Without such folders all that is known is shown.
        assert!(is_whole_disk(&blocks, "sda1"));
        let named = ["sda1".to_owned()];
        let mut seen = Vec::new();
        assert!(!known(&mut seen, 0, b"sda", Some(&named)).watched);
        assert!(known(&mut seen, 1, b"sda1", Some(&named)).watched);
        assert!(!known(&mut seen, 5, b"sda", Some(&named)).watched);
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn what_has_nothing_behind_it_is_left_out_until_it_is_used() {
        let folder = std::env::temp_dir().join(format!("dyno-empty-{}", std::process::id()));
        for (name, size) in [("loop0", "0\n"), ("loop1", "8\n"), ("cciss!c0d0", "0\n")] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("size"), size).unwrap();
        }
        let empty = ["loop0", "loop1", "cciss/c0d0", "sda"].map(|name| is_empty(&folder, name));
        assert_eq!(empty, [true, false, true, false]);

        let path = folder.join("diskstats");
        let write = |reads| fs::write(&path, format!("7 0 loop0 {reads} 0 8 1 2 0 16 1 0 1 1"));
        write(5).unwrap();
        let mut disks = Disks::new(ProcFile::open(&path).unwrap(), None);
        known(&mut disks.seen, 0, b"loop0", Some(&["loop0".to_owned()])).empty = true;
        let (mut buffer, mut samples) = (Buffer::default(), Samples::default());
        let begin = Instant::now();
        let mut told = [5, 5, 9, 9].into_iter().zip(1..).map(|(reads, second)| {
            write(reads).unwrap();
            samples.begin(0);
            let now = begin + std::time::Duration::from_secs(second);
            disks.sample(now, &mut buffer, &mut samples);
            let text = samples.string();
            let line = text.lines().find(|line| line.contains("disk.r_s"));
            line.map(str::to_owned)
        });
        assert_eq!([told.next(), told.next()], [Some(None), Some(None)]);
        let used = told.next().unwrap();
        assert_eq!(used.as_deref(), Some("0,machine,loop0,disk.r_s,4"));
        let rests = told.next().unwrap();
        assert_eq!(rests.as_deref(), Some("0,machine,loop0,disk.r_s,0"));
        fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "( [0-9a-z]{0,22}){0,22}") {
            let _ = parse(&text);
            let _ = parse(line.as_bytes());
        }

        #[test]
        fn what_was_counted_is_told(completed in 0_u64..1_000_000, merged in 0_u64..1_000_000, ms in 0_u64..1_000_000) {
            let after = format!("1 2 x {completed} {merged} 8 {ms} 0 0 0 0 0 0 0");
            let found = reckon("1 2 x 0 0 0 0 0 0 0 0 0 0 0", &after, 2.0);
            prop_assert!((found["disk.r_s"] * 2.0 - completed as f64).abs() < 1e-6);
            prop_assert_eq!(found.contains_key("disk.r_await"), completed > 0);
            if let Some(share) = found.get("disk.rrqm") {
                prop_assert!((0.0..=100.0).contains(share));
            }
        }
    }
}
