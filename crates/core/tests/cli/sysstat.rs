//! `watch` beside mpstat, vmstat, iostat, pidstat and sar, over one load.
//!
//! Each tool tells of one interval. When it began and ended is known only within bounds: between the start of its
//! process and its end less the interval. So its figure must be one that `watch` gives for some such interval, within
//! 2 % or one count.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::Folder;
use crate::watch::{Row, end, read_rows, start};

const SECONDS: f64 = 8.0;
const HZ: f64 = 50.0;
const ATTEMPTS: usize = 3;

/// What a tool said, and between when.
struct Told {
    from_s: f64,
    to_s: f64,
    output: String,
}

fn now_s() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs_f64()
}

fn run(command: &[String]) -> Told {
    let from_s = now_s();
    let output = Command::new(&command[0])
        .args(&command[1..])
        .env("LC_ALL", "C")
        .env("S_TIME_FORMAT", "ISO")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error} (tests/install-servers)", command[0]));
    let to_s = now_s();
    assert!(output.status.success(), "{command:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    Told {
        from_s,
        to_s,
        output,
    }
}

/// The samples of `watch`, by subject and metric.
struct Seen {
    values: HashMap<(String, String), BTreeMap<u64, f64>>,
    times_ns: Vec<u64>,
}

impl Seen {
    fn new(rows: Vec<Row>) -> Self {
        let mut values: HashMap<(String, String), BTreeMap<u64, f64>> = HashMap::new();
        let mut times_ns: Vec<u64> = rows.iter().map(|row| row.time_ns).collect();
        times_ns.sort_unstable();
        times_ns.dedup();
        for row in rows {
            values
                .entry((row.subject, row.metric))
                .or_default()
                .insert(row.time_ns, row.value);
        }
        Self { values, times_ns }
    }

    /// The sum over time of a rate, times what `weight` gives at each sample; where it is absent it counts as none.
    fn area(
        &self,
        subject: &str,
        metric: &str,
        weight: Option<&str>,
        from_s: f64,
        to_s: f64,
    ) -> f64 {
        let of = |metric: &str| self.values.get(&(subject.to_owned(), metric.to_owned()));
        let Some(values) = of(metric) else { return 0.0 };
        let weights = weight.map(of);
        let pairs = self.times_ns.windows(2).filter_map(|pair| {
            let overlap = (pair[1] as f64 / 1e9).min(to_s) - (pair[0] as f64 / 1e9).max(from_s);
            let weight = match weights {
                Some(weights) => *weights?.get(&pair[1])?,
                None => 1.0,
            };
            (overlap > 0.0).then(|| values.get(&pair[1]).map(|value| value * weight * overlap))?
        });
        pairs.sum()
    }

    /// Least and most of a gauge while a tool ran: it looks at an instant that it does not tell.
    fn gauge(&self, subject: &str, metric: &str, told: &Told) -> Option<(f64, f64)> {
        let (from_s, to_s) = (told.from_s - 1.0, told.to_s + 1.0);
        let values = self.values.get(&(subject.to_owned(), metric.to_owned()))?;
        let near = values
            .iter()
            .filter(|(time_ns, _)| (from_s..to_s).contains(&(**time_ns as f64 / 1e9)))
            .map(|(_, value)| *value);
        near.fold(None, |bounds, value| {
            let (least, most) = bounds.unwrap_or((value, value));
            Some((value.min(least), value.max(most)))
        })
    }
}

/// Least and most of a figure over the intervals that a tool's may be.
fn bounds(told: &Told, figure: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    const STEPS: u32 = 8;
    // What happened between two samples is not known to be at its beginning or its end.
    let slack = told.to_s - told.from_s - SECONDS + 2.0 / HZ;
    let step = |number: u32| f64::from(number) / f64::from(STEPS) * slack - 1.0 / HZ;
    let figures = (0..=STEPS).flat_map(|from| (0..=STEPS).map(move |to| (from, to)));
    let figures = figures
        .map(|(from, to)| figure(told.from_s + step(from), told.from_s + SECONDS + step(to)));
    figures
        .filter(|figure| figure.is_finite())
        .fold(None, |bounds, figure| {
            let (least, most) = bounds.unwrap_or((figure, figure));
            Some((figure.min(least), figure.max(most)))
        })
}

/// What is compared, and what differs.
struct Verdict<'s> {
    seen: &'s Seen,
    compared: usize,
    above_0: usize,
    wrong: Vec<String>,
}

impl Verdict<'_> {
    fn hold(&mut self, what: &str, theirs: f64, ours: Option<(f64, f64)>, count: f64) {
        self.compared += 1;
        self.above_0 += usize::from(theirs > 0.0);
        let leeway = (0.02 * theirs.abs()).max(count);
        // Where nothing was done `watch` gives no mean, and the tools give 0.
        let (least, most) = ours.unwrap_or((0.0, 0.0));
        if theirs < least - leeway || theirs > most + leeway {
            self.wrong
                .push(format!("{what}: {theirs}, watch has {least} to {most}"));
        }
    }

    /// A mean of a rate.
    fn rate(
        &mut self,
        told: &Told,
        subject: &str,
        metric: &str,
        unit: f64,
        theirs: f64,
        count: f64,
    ) {
        let ours = bounds(told, |from, to| {
            self.seen.area(subject, metric, None, from, to) / (to - from) / unit
        });
        self.hold(&format!("{subject} {metric}"), theirs, ours, count);
    }

    /// A mean over the requests that a rate counts.
    fn mean(&mut self, told: &Told, subject: &str, metric: &str, of: &str, theirs: f64) {
        let ours = bounds(told, |from, to| {
            self.seen.area(subject, metric, Some(of), from, to)
                / self.seen.area(subject, of, None, from, to)
        });
        self.hold(&format!("{subject} {metric}"), theirs, ours, 0.02);
    }

    fn gauge(
        &mut self,
        told: &Told,
        subject: &str,
        metric: &str,
        unit: f64,
        theirs: f64,
        count: f64,
    ) {
        let ours = self.seen.gauge(subject, metric, told);
        let ours = ours.map(|(least, most)| (least / unit, most / unit));
        self.hold(&format!("{subject} {metric}"), theirs, ours, count);
    }
}

/// The lines of averages of pidstat and sar: (first word of the line or its process, column) to value.
fn averages(output: &str) -> HashMap<(String, String), f64> {
    let mut found = HashMap::new();
    let mut columns: Vec<&str> = Vec::new();
    let lines = output
        .lines()
        .filter_map(|line| line.strip_prefix("Average:"));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_header = words.iter().all(|word| word.parse::<f64>().is_err());
        if is_header {
            columns = words;
            continue;
        }
        let key = columns
            .iter()
            .position(|column| ["PID", "IFACE"].contains(column));
        let key = key.map_or("", |place| words[place]).to_owned();
        for (column, word) in columns.iter().zip(&words) {
            if let Ok(value) = word.parse() {
                found.insert((key.clone(), (*column).to_owned()), value);
            }
        }
    }
    found
}

fn statistics(told: &Told) -> Value {
    let json: Value = serde_json::from_str(&told.output).unwrap();
    json["sysstat"]["hosts"][0]["statistics"][0].clone()
}

fn hold_mpstat(verdict: &mut Verdict<'_>, seen: &Seen, told: &Told) {
    for cpu in statistics(told)["cpu-load"].as_array().unwrap() {
        let name = cpu["cpu"].as_str().unwrap();
        let (subject, prefix) = match name {
            "all" => ("machine".to_owned(), "cpu"),
            _ => (format!("cpu{name}"), "percpu"),
        };
        for (column, value) in cpu
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "cpu")
        {
            let metric = format!("{prefix}.{column}");
            let ours = bounds(told, |from, to| {
                seen.area(&subject, &metric, Some("stat.ticks"), from, to)
                    / seen.area(&subject, "stat.ticks", None, from, to)
            });
            // One tick of so many.
            let count = 100.0 / (SECONDS * 100.0) + 0.01;
            verdict.hold(
                &format!("{subject} {metric}"),
                value.as_f64().unwrap(),
                ours,
                count,
            );
        }
    }
}

fn hold_iostat(verdict: &mut Verdict<'_>, seen: &Seen, told: &Told) {
    for disk in statistics(told)["disk"].as_array().unwrap() {
        let name = disk["disk_device"].as_str().unwrap();
        let number = |column: &str| disk[column].as_f64().unwrap();
        let count = 1.0 / SECONDS + 0.01;
        for kind in ["r", "w", "d"] {
            let requests = format!("disk.{kind}_s");
            verdict.rate(
                told,
                name,
                &requests,
                1.0,
                number(&format!("{kind}/s")),
                count,
            );
            let metric = format!("disk.{kind}kB_s");
            verdict.rate(
                told,
                name,
                &metric,
                1.0,
                number(&format!("{kind}kB/s")),
                4.0 * count,
            );
            let merged = format!("disk.{kind}rqm_s");
            verdict.rate(
                told,
                name,
                &merged,
                1.0,
                number(&format!("{kind}rqm/s")),
                count,
            );
            let theirs = number(&format!("{kind}_await"));
            verdict.mean(told, name, &format!("disk.{kind}_await"), &requests, theirs);
            let theirs = number(&format!("{kind}areq-sz"));
            verdict.mean(
                told,
                name,
                &format!("disk.{kind}areq_sz"),
                &requests,
                theirs,
            );
            let ours = bounds(told, |from, to| {
                let [merged, done] =
                    [&merged, &requests].map(|metric| seen.area(name, metric, None, from, to));
                100.0 * merged / (merged + done)
            });
            verdict.hold(
                &format!("{name} {kind}rqm"),
                number(&format!("{kind}rqm")),
                ours,
                0.2,
            );
        }
        verdict.rate(told, name, "disk.f_s", 1.0, number("f/s"), count);
        verdict.mean(told, name, "disk.f_await", "disk.f_s", number("f_await"));
        verdict.rate(told, name, "disk.aqu_sz", 1.0, number("aqu-sz"), 0.02);
        verdict.rate(told, name, "disk.util", 1.0, number("util"), 0.15);
    }
}

fn hold_vmstat(verdict: &mut Verdict<'_>, told: &Told) {
    let lines: Vec<&str> = told.output.lines().collect();
    let columns = lines[1].split_whitespace();
    let values = lines[3]
        .split_whitespace()
        .map(|word| word.parse::<f64>().unwrap());
    let values: HashMap<&str, f64> = columns.zip(values).collect();
    for (column, metric) in [
        ("si", "vm.si"),
        ("so", "vm.so"),
        ("bi", "vm.bi"),
        ("bo", "vm.bo"),
        ("in", "vm.in"),
        ("cs", "vm.cs"),
        ("id", "cpu.idle"),
        ("wa", "cpu.iowait"),
        ("st", "cpu.steal"),
    ] {
        // It tells whole numbers.
        verdict.rate(told, "machine", metric, 1.0, values[column], 1.0);
    }
    verdict.gauge(told, "machine", "vm.r", 1.0, values["r"], 1.0);
    verdict.gauge(told, "machine", "vm.b", 1.0, values["b"], 1.0);
    verdict.gauge(told, "machine", "mem.swpd", 1024.0, values["swpd"], 1.0);
    verdict.gauge(told, "machine", "mem.free", 1024.0, values["free"], 1.0);
    verdict.gauge(told, "machine", "mem.buffers", 1024.0, values["buff"], 1.0);
}

fn hold_pidstat(verdict: &mut Verdict<'_>, told: &Told, processes: &[(u32, &str)]) {
    let averages = averages(&told.output);
    for (pid, subject) in processes {
        let theirs = |column: &str| averages[&(pid.to_string(), column.to_owned())];
        for (column, metric, unit) in [
            ("%usr", "proc.usr", 1.0),
            ("%system", "proc.sys", 1.0),
            ("%guest", "proc.guest", 1.0),
            ("%wait", "proc.wait", 1.0),
            ("%CPU", "proc.cpu", 1.0),
            ("minflt/s", "proc.minflt", 1.0),
            ("majflt/s", "proc.majflt", 1.0),
            ("kB_rd/s", "proc.read", 1024.0),
            ("kB_wr/s", "proc.write", 1024.0),
            ("kB_ccwr/s", "proc.ccwr", 1024.0),
            ("cswch/s", "proc.cswch", 1.0),
            ("nvcswch/s", "proc.nvcswch", 1.0),
        ] {
            let count = 1.0 / SECONDS + 0.01;
            verdict.rate(told, subject, metric, unit, theirs(column), count);
        }
        for (column, metric, unit, count) in [
            ("VSZ", "proc.vsz", 1024.0, 4.0),
            ("RSS", "proc.rss", 1024.0, 4.0),
            ("%MEM", "proc.mem", 1.0, 0.01),
            ("threads", "proc.threads", 1.0, 0.0),
            ("fd-nr", "proc.fds", 1.0, 0.0),
        ] {
            verdict.gauge(told, subject, metric, unit, theirs(column), count);
        }
    }
}

fn hold_sar(verdict: &mut Verdict<'_>, told: &Told) {
    let averages = averages(&told.output);
    let theirs = |row: &str, column: &str| averages[&(row.to_owned(), column.to_owned())];
    for (column, metric) in [
        ("kbmemfree", "mem.free"),
        ("kbavail", "mem.available"),
        ("kbmemused", "mem.used"),
        ("kbbuffers", "mem.buffers"),
        ("kbcached", "mem.cached"),
        ("kbcommit", "mem.commit"),
        ("kbactive", "mem.active"),
        ("kbinact", "mem.inact"),
        ("kbdirty", "mem.dirty"),
    ] {
        verdict.gauge(told, "machine", metric, 1024.0, theirs("", column), 1.0);
    }
    verdict.gauge(
        told,
        "machine",
        "mem.used_share",
        1.0,
        theirs("", "%memused"),
        0.01,
    );
    verdict.gauge(
        told,
        "machine",
        "mem.commit_share",
        1.0,
        theirs("", "%commit"),
        0.01,
    );
    let count = 1.0 / SECONDS + 0.01;
    for (column, metric) in [
        ("pgpgin/s", "vm.bi"),
        ("pgpgout/s", "vm.bo"),
        ("fault/s", "vm.pgfault"),
        ("majflt/s", "vm.pgmajfault"),
        ("pgfree/s", "vm.pgfree"),
        ("pgscank/s", "vm.pgscank"),
        ("pgscand/s", "vm.pgscand"),
        ("active/s", "tcp.active_s"),
        ("passive/s", "tcp.passive_s"),
        ("iseg/s", "tcp.iseg_s"),
        ("oseg/s", "tcp.oseg_s"),
        ("atmptf/s", "tcp.atmptf_s"),
        ("estres/s", "tcp.estres_s"),
        ("retrans/s", "tcp.retrans_s"),
        ("isegerr/s", "tcp.isegerr_s"),
        ("orsts/s", "tcp.orsts_s"),
    ] {
        verdict.rate(told, "machine", metric, 1.0, theirs("", column), count);
    }
    for column in [
        "rxpck/s", "txpck/s", "rxkB/s", "txkB/s", "rxcmp/s", "txcmp/s", "rxmcst/s", "rxerr/s",
        "txerr/s", "coll/s", "rxdrop/s", "txdrop/s", "txcarr/s", "rxfram/s", "rxfifo/s",
        "txfifo/s",
    ] {
        let metric = format!("net.{}", column.replace('/', "_"));
        verdict.rate(told, "lo", &metric, 1.0, theirs("lo", column), count);
    }
}

/// Sends a word to and fro over the loopback until told to end.
fn talk(stop: &AtomicBool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    while !stop.load(Ordering::Relaxed) {
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..50 {
            client.write_all(&[7; 500]).unwrap();
            server.read_exact(&mut [0; 500]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn means_are_those_of_mpstat_vmstat_iostat_pidstat_and_sar() {
    // What somebody else's work moves between two samples is not seen: the next attempt has other instants.
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        wrong = side_by_side();
        if wrong.is_empty() {
            return;
        }
    }
    panic!("{}", wrong.join("\n"));
}

/// What does not agree over one load.
fn side_by_side() -> Vec<String> {
    let folder = Folder::new();
    let shell = |script: &str| {
        Command::new("sh")
            .args(["-c", script])
            .current_dir(folder.path("."))
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut writer = shell(
        "while :; do dd if=/dev/zero of=big bs=64k count=16 conv=fsync; dd if=big of=/dev/null bs=4k iflag=direct; done",
    );
    let mut busy = shell("while :; do :; done");
    let processes = [(writer.id(), "writer"), (busy.id(), "busy")];
    let job = json!({
        "format": 1, "hz": HZ,
        "groups": ["cpu", "per_cpu", "memory", "paging", "disk", "network", "scheduler"],
        "processes": processes.map(|(pid, subject)| json!({"pid": pid, "subject": subject})),
    });
    let watcher = start(&folder, &job, &[]);
    let stop = AtomicBool::new(false);
    let pids = format!("{},{}", writer.id(), busy.id());
    let commands = [
        "mpstat -P ALL -o JSON 8 1".to_owned(),
        "iostat -x -y -o JSON 8 1".to_owned(),
        "vmstat 8 2".to_owned(),
        format!("pidstat -u -r -d -w -v -p {pids} 8 1"),
        "sar -r -B -n DEV,EDEV,TCP,ETCP 8 1".to_owned(),
    ];
    let told: Vec<Told> = thread::scope(|scope| {
        scope.spawn(|| talk(&stop));
        // The bounds of intervals begin before the tools do.
        thread::sleep(Duration::from_millis(1100));
        let tools = commands.map(|command| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            scope.spawn(move || run(&words))
        });
        let told = tools.map(|tool| tool.join().unwrap()).into_iter().collect();
        thread::sleep(Duration::from_millis(1100));
        stop.store(true, Ordering::Relaxed);
        told
    });
    end(watcher);
    for child in [&mut writer, &mut busy] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let seen = Seen::new(read_rows(&folder));
    let mut verdict = Verdict {
        seen: &seen,
        compared: 0,
        above_0: 0,
        wrong: Vec::new(),
    };
    hold_mpstat(&mut verdict, &seen, &told[0]);
    hold_iostat(&mut verdict, &seen, &told[1]);
    hold_vmstat(&mut verdict, &told[2]);
    hold_pidstat(&mut verdict, &told[3], &processes);
    hold_sar(&mut verdict, &told[4]);
    assert!(
        verdict.compared >= 120 && verdict.above_0 >= 60,
        "{} compared, {} of them above 0",
        verdict.compared,
        verdict.above_0
    );
    println!("{} compared, {} above 0", verdict.compared, verdict.above_0);
    verdict.wrong
}
