//! `watch`, compared with what the kernel says to others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Folder, PROGRAM, read_json, schema_folder, wait_at_most};

pub struct Row {
    pub time_ns: u64,
    pub source: String,
    pub subject: String,
    pub metric: String,
    pub value: f64,
}

pub fn read_rows(folder: &Folder) -> Vec<Row> {
    let text = fs::read_to_string(folder.path("samples.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time_ns,source,subject,metric,value"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(',').collect();
            assert_eq!(words.len(), 5, "{line}");
            Row {
                time_ns: words[0].parse().unwrap(),
                source: words[1].to_owned(),
                subject: words[2].to_owned(),
                metric: words[3].to_owned(),
                value: words[4].parse().unwrap(),
            }
        })
        .collect()
}

fn ticks(rows: &[Row]) -> Vec<u64> {
    rows.iter()
        .map(|row| row.time_ns)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The sum over time of a rate, back to what was counted.
fn total(rows: &[Row], subject: &str, metric: &str) -> f64 {
    let ticks = ticks(rows);
    let length_s: BTreeMap<u64, f64> = ticks
        .windows(2)
        .map(|pair| (pair[1], (pair[1] - pair[0]) as f64 / 1e9))
        .collect();
    rows.iter()
        .filter(|row| row.subject == subject && row.metric == metric)
        .map(|row| row.value * length_s[&row.time_ns])
        .sum()
}

/// Starts watching, and waits until the base is taken.
pub fn start(folder: &Folder, job: &Value, more: &[&str]) -> Child {
    let mut child = Command::new(PROGRAM)
        .args(["watch", "--job"])
        .arg(folder.write("watch.json", job))
        .arg("--out")
        .arg(folder.path("samples.csv"))
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "{\"ready\": true}\n");
    child
}

fn tell(child: &mut Child, command: &Value) {
    writeln!(child.stdin.as_mut().unwrap(), "{command}").unwrap();
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

pub fn end(mut child: Child) {
    tell(&mut child, &json!({"stop": true}));
    wait_at_most(&mut child, Duration::from_secs(2));
    assert!(child.wait().unwrap().success());
}

fn job(machine: bool) -> Value {
    json!({"format": 1, "hz": 10, "machine": machine})
}

fn proc_number(path: &str, key: &str) -> f64 {
    let text = fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .find(|line| line.split([' ', ':']).next() == Some(key))
        .unwrap();
    line[key.len() + 1..]
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// Writes and waits for the disk, so that there is something to see.
fn write_to_disk(folder: &Folder, bytes: usize) {
    let mut file = File::create(folder.path("written")).unwrap();
    file.write_all(&vec![7; bytes]).unwrap();
    file.sync_all().unwrap();
}

/// Whether the machine has a disk of its own that has ever been used.
fn has_disk() -> bool {
    fs::read_to_string("/proc/diskstats").is_ok_and(|text| {
        text.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[3] != "0" && fs::metadata(format!("/sys/block/{}", words[2])).is_ok()
        })
    })
}

#[test]
fn the_metrics_that_appear_are_those_of_the_schema() {
    let folder = Folder::new();
    let job = json!({
        "format": 1, "hz": 10,
        "groups": ["cpu", "per_cpu", "memory", "paging", "disk", "network", "pressure", "scheduler"],
        "processes": [{"pid": std::process::id(), "subject": "tests", "tree": true}],
        "cgroups": [{"pid": std::process::id(), "subject": "tests"}],
    });
    let child = start(&folder, &job, &[]);
    write_to_disk(&folder, 1 << 20);
    talk_to_itself();
    std::thread::sleep(Duration::from_millis(400));
    end(child);
    let rows = read_rows(&folder);
    let schema = read_json(&schema_folder().join("metrics.json"));
    let declared: BTreeMap<&str, (&str, &str)> = schema["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|metric| {
            let text = |key: &str| metric[key].as_str().unwrap();
            (text("name"), (text("source"), text("subject")))
        })
        .collect();
    for row in &rows {
        let (source, subject) = declared[row.metric.as_str()];
        assert_eq!(row.source, source, "{}", row.metric);
        let expected = match subject {
            "process" | "cgroup" => "tests",
            "disk" | "interface" | "absent" => row.subject.as_str(),
            "cpu" if row.subject.starts_with("cpu") => row.subject.as_str(),
            "cpu" if row.metric == "stat.ticks" => "machine",
            same => same,
        };
        assert_eq!(row.subject, expected, "{}", row.metric);
    }
    let seen: BTreeSet<&str> = rows.iter().map(|row| row.metric.as_str()).collect();
    // A mean is absent without I/O of its kind, the rest where the kernel does not tell it.
    let lacks = |path: &str| fs::read(path).is_err();
    let is_mean = |name: &str| {
        ["_await", "req_sz", "rqm", "vmeff"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let may_be_absent = |name: &str| match name {
        "psi.irq.full" => lacks("/proc/pressure/irq"),
        "sched.run_delay" | "sched.run_delay_mean" | "percpu.run_delay" => lacks("/proc/schedstat"),
        "proc.iodelay" => {
            fs::read("/proc/sys/kernel/task_delayacct").is_ok_and(|text| text == b"0\n")
        }
        // Of virtual interfaces, and where all is there.
        "net.ifutil" | "watch.absent" => true,
        // The root of version 2 tells little; there is a test of a group that is not the root.
        _ if name.starts_with("cgroup.") => true,
        _ if name.starts_with("psi.") => lacks("/proc/pressure/cpu"),
        _ if name.starts_with("disk.") => is_mean(name) || !has_disk(),
        _ => is_mean(name),
    };
    let missing: Vec<&&str> = declared
        .keys()
        .filter(|name| !seen.contains(**name) && !may_be_absent(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Sends a few packets over the loopback, so that it has carried some.
fn talk_to_itself() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"hello").unwrap();
    std::io::Read::read_exact(&mut server, &mut [0; 5]).unwrap();
}

#[test]
fn sums_over_time_are_what_the_kernel_counted() {
    let folder = Folder::new();
    let counted = || {
        [
            proc_number("/proc/stat", "ctxt"),
            proc_number("/proc/vmstat", "pgfault"),
            proc_number("/proc/vmstat", "pgpgout"),
        ]
    };
    let outer = counted();
    let child = start(&folder, &job(true), &[]);
    let inner = counted();
    for _ in 0..5 {
        write_to_disk(&folder, 4 << 20);
        std::thread::sleep(Duration::from_millis(100));
    }
    let inner_end = counted();
    end(child);
    let outer_end = counted();
    let rows = read_rows(&folder);
    for (place, metric) in ["vm.cs", "vm.pgfault", "vm.bo"].into_iter().enumerate() {
        let sum = total(&rows, "machine", metric);
        let (least, most) = (
            inner_end[place] - inner[place],
            outer_end[place] - outer[place],
        );
        // The kernel gathers some counters from CPUs now and then; and times are those of the ticks'
        // beginnings.
        assert!(
            sum > 0.9 * least - 100.0,
            "{metric}: {sum} is less than {least}"
        );
        assert!(
            sum < 1.1 * most + 100.0,
            "{metric}: {sum} is more than {most}"
        );
    }
    let shares: BTreeMap<u64, f64> = rows
        .iter()
        .filter(|row| row.metric.starts_with("cpu."))
        .fold(BTreeMap::new(), |mut sums, row| {
            *sums.entry(row.time_ns).or_default() += row.value;
            sums
        });
    assert!(!shares.is_empty());
    assert!(
        shares.values().all(|sum| (50.0..=100.001).contains(sum)),
        "{shares:?}"
    );
    let available = rows
        .iter()
        .rfind(|row| row.metric == "mem.available")
        .unwrap()
        .value;
    let known = proc_number("/proc/meminfo", "MemAvailable") * 1024.0;
    assert!(
        (available / known - 1.0).abs() < 0.2,
        "{available} against {known}"
    );
}

/// User and system time of a process in seconds, by its own `stat` file.
fn cpu_time(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let words: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    (words[11].parse::<f64>().unwrap() + words[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
fn a_process_is_seen_from_when_it_is_added_until_it_ends() {
    let folder = Folder::new();
    let mut watcher = start(&folder, &job(false), &[]);
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = busy.id();
    tell(
        &mut watcher,
        &json!({"add": {"pid": pid, "subject": "busy"}}),
    );
    // Until its base is taken.
    std::thread::sleep(Duration::from_millis(150));
    let (begin, cpu_begin) = (Instant::now(), cpu_time(pid));
    std::thread::sleep(Duration::from_millis(800));
    let (length, cpu) = (begin.elapsed().as_secs_f64(), cpu_time(pid) - cpu_begin);
    busy.kill().unwrap();
    busy.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    end(watcher);
    let rows = read_rows(&folder);
    assert!(rows.iter().all(|row| row.source != "machine"));
    let seen = total(&rows, "busy", "proc.usr") + total(&rows, "busy", "proc.sys");
    assert!(
        (seen / 100.0 - cpu).abs() < 0.3 * length,
        "{seen} % s seen, {cpu} s used in {length} s"
    );
    assert!(seen > 0.0, "{seen}");
    let threads = rows
        .iter()
        .find(|row| row.metric == "proc.threads")
        .unwrap();
    assert!((threads.value - 1.0).abs() < 1e-9);
    let of_busy = rows
        .iter()
        .filter(|row| row.subject == "busy")
        .map(|row| row.time_ns)
        .max();
    assert!(
        of_busy < ticks(&rows).last().copied(),
        "its samples stop with it"
    );
}

#[test]
fn a_process_that_writes_is_seen_to_write_and_one_removed_is_seen_no_longer() {
    let folder = Folder::new();
    let mut watcher = start(&folder, &job(false), &[]);
    // Its io file must be open before it begins, so it waits for a line.
    let mut writer = Command::new("sh")
        .args([
            "-c",
            "read go; dd if=/dev/zero of=big bs=1M count=8 conv=fsync; read end",
        ])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    tell(
        &mut watcher,
        &json!({"add": {"pid": writer.id(), "subject": "writer"}}),
    );
    std::thread::sleep(Duration::from_millis(250));
    writeln!(writer.stdin.as_mut().unwrap()).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let io = fs::read_to_string(format!("/proc/{}/io", writer.id())).unwrap();
    tell(&mut watcher, &json!({"remove": {"pid": writer.id()}}));
    std::thread::sleep(Duration::from_millis(300));
    // It lives on, so that only the removal can have ended its samples.
    end(watcher);
    drop(writer.stdin.take());
    writer.wait().unwrap();
    let rows = read_rows(&folder);
    let written = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))
        .unwrap();
    let written: f64 = written.parse().unwrap();
    let seen = total(&rows, "writer", "proc.write");
    assert!(
        (seen - written).abs() <= 0.02 * written + 1.0,
        "{seen} seen, {written} written"
    );
    let last = rows
        .iter()
        .filter(|row| row.subject == "writer")
        .map(|row| row.time_ns)
        .max();
    assert!(last < ticks(&rows).last().copied());
}

#[test]
fn context_switches_of_all_threads_are_counted() {
    let folder = Folder::new();
    let mut job = job(false);
    job["processes"] = json!([{"pid": std::process::id(), "subject": "tests"}]);
    let child = start(&folder, &job, &[]);
    let thread = std::thread::spawn(|| {
        for _ in 0..300 {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    thread.join().unwrap();
    end(child);
    // The tests beside this one switch too, so only the least is known. The thread's last switches
    // are lost with it.
    let seen = total(&read_rows(&folder), "tests", "proc.cswch");
    assert!(seen > 200.0, "{seen}");
}

/// The values of a metric of a subject.
fn values(rows: &[Row], subject: &str, metric: &str) -> Vec<f64> {
    rows.iter()
        .filter(|row| row.subject == subject && row.metric == metric)
        .map(|row| row.value)
        .collect()
}

#[test]
fn a_thread_that_waits_for_a_sync_is_seen_in_it_and_nowhere_else() {
    let folder = Folder::new();
    let file = folder.path("synced");
    fs::write(&file, "x").unwrap();
    let traced = Command::new("strace")
        .args(["-o", "/dev/null", "-e", "trace=fsync"])
        .args(["-e", "inject=fsync:delay_exit=1500000", "sync"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut traced) = traced else {
        eprintln!("skipped: strace is not installed");
        return;
    };
    let mut job = job(false);
    job["processes"] = json!([{"pid": traced.id(), "subject": "sync", "tree": true}]);
    let child = start(&folder, &job, &[]);
    traced.wait().unwrap();
    end(child);
    let rows = read_rows(&folder);
    let syncing = values(&rows, "sync", "proc.syncing");
    let within = syncing
        .iter()
        .filter(|count| (**count - 1.0).abs() < 1e-9)
        .count();
    // One and a half seconds of 15 samples; what came before it is the start of two programs.
    assert!(within >= 8, "{syncing:?}");
    let blocked = values(&rows, "sync", "proc.blocked");
    assert!(
        blocked.iter().filter(|count| **count > 0.0).count() <= 2,
        "{blocked:?}"
    );
}

#[test]
fn the_busiest_thread_is_told_and_not_the_sum_of_all() {
    let folder = Folder::new();
    let script = "i=0; while :; do i=$((i+1)); done";
    let mut busy: Vec<Child> = (0..2)
        .map(|_| Command::new("sh").args(["-c", script]).spawn().unwrap())
        .collect();
    let mut job = job(false);
    let watched = busy
        .iter()
        .map(|child| json!({"pid": child.id(), "subject": "busy"}));
    job["processes"] = watched.collect();
    let child = start(&folder, &job, &[]);
    std::thread::sleep(Duration::from_millis(1200));
    end(child);
    for child in &mut busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let rows = read_rows(&folder);
    // Each sample weighs as long as the time it tells of: in a short one after a late one, a clock tick is a lot.
    let mean = |metric| {
        let found: Vec<&Row> = rows
            .iter()
            .filter(|row| row.subject == "busy" && row.metric == metric)
            .collect();
        let spans = found
            .windows(2)
            .map(|two| (two[1].value, (two[1].time_ns - two[0].time_ns) as f64));
        let (amount, time) = spans.fold((0.0, 0.0), |(amount, time), (value, span)| {
            (amount + value * span, time + span)
        });
        amount / time
    };
    let (one, all) = (mean("proc.cpu_max_thread"), mean("proc.cpu"));
    // Two are on CPUs for as long together as both were told to be, and the busier of them for half of it at least.
    assert!(one > 0.0 && one <= 100.0, "{one}");
    assert!(one >= 0.45 * all, "{one} of {all}");
    assert!(one <= 0.95 * all, "{one} of {all}");
}

#[test]
fn ticks_stay_on_their_grid_and_say_how_late_they_were() {
    let folder = Folder::new();
    let child = start(&folder, &job(false), &[]);
    std::thread::sleep(Duration::from_millis(750));
    // Frozen for the time of several ticks: they are not made up for.
    send(&child, Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(450));
    send(&child, Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(350));
    end(child);
    let rows = read_rows(&folder);
    let ticks = ticks(&rows);
    assert!((9..=14).contains(&ticks.len()), "{}", ticks.len());
    let longest = ticks
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(longest >= 400_000_000, "{longest} ns");
    let lag = rows
        .iter()
        .filter(|row| row.metric == "watch.lag")
        .map(|row| row.value)
        .fold(0.0, f64::max);
    assert!(lag >= 300.0, "{lag} ms");
    let missed: BTreeMap<u64, f64> = rows
        .iter()
        .filter(|row| row.metric == "watch.missed")
        .map(|row| (row.time_ns, row.value))
        .collect();
    assert_eq!(missed.len(), ticks.len(), "each sample tells it");
    // Every tick of the grid has a sample or is told to be missed; the last sample is none of the grid.
    let on_grid = &ticks[..ticks.len() - 1];
    let told: f64 = on_grid[1..].iter().map(|tick| 1.0 + missed[tick]).sum();
    let passed = (on_grid[on_grid.len() - 1] - on_grid[0]) as f64 / 1e8;
    assert!((told - passed).abs() <= 1.0, "{told} told, {passed} passed");
    assert!(missed.values().any(|missed| *missed >= 2.0), "{missed:?}");
    let all_later = ticks.iter().skip(1).filter(|tick| {
        let phase = (*tick - ticks[0]) % 100_000_000;
        !(40_000_000..=95_000_000).contains(&phase)
    });
    // All but the late one, the last one, and a few on a busy machine.
    assert!(all_later.count() + 5 >= ticks.len());
}

#[test]
fn it_ends_well_by_signal_and_by_the_end_of_standard_input_and_loses_nothing_when_killed() {
    for how in ["TERM", "INT", "EOF", "KILL"] {
        let folder = Folder::new();
        let mut child = start(&folder, &job(true), &["--stop-on-stdin-eof"]);
        std::thread::sleep(Duration::from_millis(350));
        match how {
            "TERM" => send(&child, Signal::SIGTERM),
            "INT" => send(&child, Signal::SIGINT),
            "KILL" => send(&child, Signal::SIGKILL),
            _ => drop(child.stdin.take()),
        }
        wait_at_most(&mut child, Duration::from_secs(2));
        assert_eq!(child.wait().unwrap().success(), how != "KILL", "{how}");
        let rows = read_rows(&folder);
        assert!(ticks(&rows).len() >= 3, "{how}");
        let last = rows.last().unwrap().time_ns;
        let of_last = rows.iter().filter(|row| row.time_ns == last).count();
        assert!(of_last > 20, "{how}: the last tick is whole");
    }
}

#[test]
fn a_line_that_is_wrong_is_told_and_watching_goes_on() {
    let folder = Folder::new();
    let mut child = start(&folder, &job(false), &[]);
    writeln!(child.stdin.as_mut().unwrap(), "nonsense").unwrap();
    // No process can have the highest id there is: the kernel keeps to 2^22.
    tell(
        &mut child,
        &json!({"add": {"pid": i32::MAX, "subject": "nobody"}}),
    );
    std::thread::sleep(Duration::from_millis(250));
    tell(&mut child, &json!({"stop": true}));
    wait_at_most(&mut child, Duration::from_secs(2));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("standard input: line: is not JSON"), "{said}");
    assert!(said.contains("process 2147483647 is not watched"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_one_line_and_status_1() {
    let folder = Folder::new();
    let output = Command::new(PROGRAM)
        .args(["watch", "--out", "/dev/full", "--job"])
        .arg(folder.write("watch.json", &job(false)))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("writing /dev/full"), "{said}");
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn a_last_sample_is_taken_when_it_is_told_to_stop() {
    let folder = Folder::new();
    let child = start(&folder, &json!({"format": 1, "hz": 1}), &[]);
    std::thread::sleep(Duration::from_millis(400));
    end(child);
    let rows = read_rows(&folder);
    assert_eq!(ticks(&rows).len(), 2, "the base and the last one");
    assert!(rows.iter().any(|row| row.metric == "cpu.idle"));
}

/// The total in us at the end of the first line, which is that of `some`.
fn pressure_total(resource: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
    text.lines().next()?.rsplit_once("total=")?.1.parse().ok()
}

#[test]
fn pressure_is_that_of_its_own_resource() {
    if pressure_total("cpu").is_none() {
        eprintln!("skipped: this kernel does not tell pressure");
        return;
    }
    let folder = Folder::new();
    let outer = pressure_total("cpu").unwrap();
    let child = start(&folder, &job(true), &[]);
    let inner = pressure_total("cpu").unwrap();
    // More to do than there are CPUs.
    let busy = std::thread::available_parallelism().unwrap().get() + 2;
    let until = Instant::now() + Duration::from_millis(600);
    std::thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| while Instant::now() < until {});
        }
    });
    let inner_end = pressure_total("cpu").unwrap();
    end(child);
    let outer_end = pressure_total("cpu").unwrap();
    // Percent of a second to microseconds.
    let seen = total(&read_rows(&folder), "machine", "psi.cpu.some") * 1e4;
    let (least, most) = (inner_end - inner, outer_end - outer);
    assert!(least > 100_000.0, "{least} us of pressure");
    assert!(
        seen > 0.8 * least && seen < 1.2 * most + 10_000.0,
        "{seen}: {least} to {most}"
    );
}

#[test]
fn only_the_groups_and_devices_that_were_chosen_are_watched() {
    let folder = Folder::new();
    let job = json!({
        "format": 1, "hz": 10, "groups": ["per_cpu", "network", "disk"],
        "interfaces": ["lo", "none0"], "disks": ["none1"],
    });
    let mut child = start(&folder, &job, &[]);
    std::thread::sleep(Duration::from_millis(300));
    tell(&mut child, &json!({"stop": true}));
    wait_at_most(&mut child, Duration::from_secs(2));
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let rows = read_rows(&folder);
    let kinds: BTreeSet<&str> = rows
        .iter()
        .map(|row| row.metric.split('.').next().unwrap())
        .collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["net", "percpu", "stat", "tcp", "watch"]),
        "{said}"
    );
    assert!(
        rows.iter()
            .filter(|row| row.metric.starts_with("net."))
            .all(|row| row.subject == "lo")
    );
    for name in ["interface/none0", "disk/none1"] {
        let marks = rows
            .iter()
            .filter(|row| row.metric == "watch.absent" && row.subject == name);
        assert_eq!(marks.count(), 1, "{name}");
        assert!(said.contains(&format!("{name} is not watched")), "{said}");
    }
}

#[test]
fn what_the_kernel_does_not_tell_and_what_has_ended_is_marked() {
    let folder = Folder::new();
    let mut short = Command::new("sleep").arg("60").spawn().unwrap();
    let mut job = job(true);
    job["processes"] = json!([{"pid": short.id(), "subject": "short"}]);
    let child = start(&folder, &job, &[]);
    short.kill().unwrap();
    short.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    end(child);
    let rows = read_rows(&folder);
    let first = rows[0].time_ns;
    let absent = |subject: &str| {
        rows.iter()
            .find(|row| row.metric == "watch.absent" && row.subject == subject)
            .map(|row| row.time_ns)
    };
    assert!(absent("short").is_some_and(|at| at > first));
    for (file, subject) in [
        ("/proc/schedstat", "scheduler/run_delay"),
        ("/proc/pressure/irq", "pressure/irq"),
        ("/proc/pressure/cpu", "pressure/cpu"),
        ("/proc/meminfo", "memory"),
    ] {
        let expected = fs::read(file).is_err().then_some(first);
        assert_eq!(absent(subject), expected, "{subject}");
    }
}

#[test]
fn a_hundred_samples_a_second_are_taken_or_told_to_be_missed() {
    let folder = Folder::new();
    let mut job = job(true);
    job["hz"] = json!(100);
    let begin = Instant::now();
    let child = start(&folder, &job, &[]);
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let least = started.elapsed().as_secs_f64() * 100.0;
    end(child);
    let most = begin.elapsed().as_secs_f64() * 100.0;
    let rows = read_rows(&folder);
    let missed: f64 = rows
        .iter()
        .filter(|row| row.metric == "watch.missed")
        .map(|row| row.value)
        .sum();
    let told = ticks(&rows).len() as f64 + missed;
    // The base and the last one are none of the hundred.
    assert!(
        told >= least - 1.0 && told <= most + 2.0,
        "{told} of {least} to {most}"
    );
}

/// CPU time in s of a process and of the children that it waited for.
fn cpu_time_with_children(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let words: Vec<f64> = after_name
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0.0))
        .collect();
    words[11..15].iter().sum::<f64>() / 100.0
}

#[test]
fn the_tree_of_a_process_keeps_what_its_children_used_when_they_have_ended() {
    let folder = Folder::new();
    let mut watcher = start(&folder, &job(false), &[]);
    // A child every few milliseconds, and one that works for longer than a tick.
    let script = "read go; i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done; \
        dd if=/dev/zero of=big bs=64k count=64 conv=fsync 2>/dev/null; \
        sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read end";
    let mut tree = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    tell(
        &mut watcher,
        &json!({"add": {"pid": tree.id(), "subject": "tree", "tree": true}}),
    );
    // Until its base is taken.
    std::thread::sleep(Duration::from_millis(300));
    let before = cpu_time_with_children(tree.id());
    writeln!(tree.stdin.as_mut().unwrap()).unwrap();
    let mut line = String::new();
    BufReader::new(tree.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    std::thread::sleep(Duration::from_millis(250));
    let used = cpu_time_with_children(tree.id()) - before;
    drop(tree.stdin.take());
    end(watcher);
    tree.wait().unwrap();
    let rows = read_rows(&folder);
    let seen = total(&rows, "tree", "proc.cpu") / 100.0;
    // Times of user and kernel are rounded to ticks, each on their own.
    assert!(
        (seen - used).abs() <= 0.03 + 0.02 * used,
        "{seen} s seen, {used} s used"
    );
    // What `dd` wrote is told once, though its parent's counter has it a second time.
    let written = total(&rows, "tree", "proc.write") / f64::from(4 << 20);
    assert!((0.98..=1.02).contains(&written), "{written} of what was");
    assert!(
        rows.iter()
            .filter(|row| row.subject == "tree" && row.metric != "watch.absent")
            .all(|row| row.value >= 0.0)
    );
    let most = rows
        .iter()
        .filter(|row| row.metric == "proc.processes")
        .map(|row| row.value)
        .fold(0.0, f64::max);
    assert!(most >= 2.0, "{most}");
}

/// A control group of the test's own, in each hierarchy that lets it; removed in the end.
struct Group(Vec<std::path::PathBuf>);

impl Group {
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let folders = mounts.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let wanted = ["cpu", "cpuacct", "memory", "blkio"];
            let is_wanted = match words[2] {
                "cgroup" => words[3].split(',').any(|option| wanted.contains(&option)),
                kind => kind == "cgroup2",
            };
            let folder = std::path::Path::new(words[1]).join(name);
            (is_wanted && fs::create_dir(&folder).is_ok()).then_some(folder)
        });
        Self(folders.collect())
    }

    fn file(&self, names: &[&str]) -> Option<std::path::PathBuf> {
        let paths = self
            .0
            .iter()
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        paths.into_iter().find(|path| path.exists())
    }

    fn number(&self, names: &[&str], key: &str) -> Option<f64> {
        let text = fs::read_to_string(self.file(names)?).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        line[key.len()..].trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Its processes have been waited for, and the kernel forgets them a moment later.
            let gone = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(5));
                fs::remove_dir(folder).is_ok()
            });
            assert!(gone || std::thread::panicking(), "{}", folder.display());
        }
    }
}

#[test]
fn a_control_group_is_seen_to_use_what_its_processes_use_until_it_is_gone() {
    let group = Group::new(&format!("dyno-tests-{}", std::process::id()));
    if group.file(&["cpuacct.usage", "cpu.stat"]).is_none() {
        eprintln!("skipped: no control groups can be made here");
        return;
    }
    let has_quota = group.0.iter().any(|folder| {
        fs::write(folder.join("cpu.cfs_quota_us"), "5000").is_ok()
            || fs::write(folder.join("cpu.max"), "5000 100000").is_ok()
    });
    let folder = Folder::new();
    let name = format!("/dyno-tests-{}", std::process::id());
    let mut job = job(false);
    job["cgroups"] = json!([{"path": name, "subject": "box"}]);
    let mut child = start(&folder, &job, &[]);
    let script = "read go; dd if=/dev/zero of=big bs=1M count=8 oflag=direct 2>/dev/null; while :; do :; done";
    let mut busy = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    for folder in &group.0 {
        fs::write(folder.join("cgroup.procs"), busy.id().to_string()).unwrap();
    }
    // By a process that is in them, they are the same groups.
    tell(
        &mut child,
        &json!({"add_cgroup": {"pid": busy.id(), "subject": "by-pid"}}),
    );
    std::thread::sleep(Duration::from_millis(200));
    writeln!(busy.stdin.as_mut().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    busy.kill().unwrap();
    busy.wait().unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let used_s = group
        .number(&["cpuacct.usage"], "")
        .map(|ns| ns / 1e9)
        .or_else(|| Some(group.number(&["cpu.stat"], "usage_usec ")? / 1e6))
        .unwrap();
    // How long depends on what else the machine has to do, so that the kernel is asked.
    let held_up = group.number(&["cpu.stat"], "nr_throttled ");
    let held_up_s = group
        .number(&["cpu.stat"], "throttled_time ")
        .map(|ns| ns / 1e9)
        .or_else(|| Some(group.number(&["cpu.stat"], "throttled_usec ")? / 1e6));
    let peak = group.number(&["memory.max_usage_in_bytes", "memory.peak"], "");
    drop(group);
    std::thread::sleep(Duration::from_millis(250));
    end(child);
    let rows = read_rows(&folder);
    for subject in ["box", "by-pid"] {
        let seen = total(&rows, subject, "cgroup.cpu") / 100.0;
        assert!(
            (seen - used_s).abs() <= 0.02 * used_s + 0.02,
            "{subject}: {seen} s seen, {used_s} s used"
        );
    }
    if has_quota {
        let (held_up, held_up_s) = (held_up.unwrap(), held_up_s.unwrap());
        assert!(held_up > 0.0 && held_up_s > 0.0, "{held_up}, {held_up_s} s");
        let seen = total(&rows, "box", "cgroup.nr_throttled");
        // From rates.
        assert!((seen - held_up).abs() < 0.01, "{seen} of {held_up} periods");
        let seen_s = total(&rows, "box", "cgroup.throttled") / 100.0;
        assert!(
            (seen_s - held_up_s).abs() <= 0.02 * held_up_s + 0.02,
            "{seen_s} s seen, {held_up_s} s held up"
        );
    }
    if let Some(peak) = peak {
        let seen = rows
            .iter()
            .filter(|row| row.subject == "box" && row.metric == "cgroup.mem_peak")
            .map(|row| row.value)
            .fold(0.0, f64::max);
        assert!((seen - peak).abs() < 1e-6, "{seen} seen, {peak} told");
    }
    if rows.iter().any(|row| row.metric == "cgroup.wkB_s") {
        let written = total(&rows, "box", "cgroup.wkB_s");
        assert!(
            (8191.0..9000.0).contains(&written),
            "{written} KiB of 8192 written"
        );
    }
    for subject in ["box", "by-pid"] {
        let is_marked = rows
            .iter()
            .any(|row| row.metric == "watch.absent" && row.subject == subject);
        assert!(is_marked, "{subject} is told to be gone");
    }
}
