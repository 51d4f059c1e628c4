//! Packing, feeding and loading as a whole, without a server: into files, into nothing, and into what answers as one.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_ingest::{Format, IngestResult, Job, Manifest, Options, feed, ingest, pack};
use serde_json::{Value, json};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "dyno-ingest-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Rows of two tables of so many hosts, a tick every 10 s.
fn rows(ticks: u64, hosts: u64) -> String {
    let mut text = String::new();
    for tick in 0..ticks {
        let time = 1_451_606_400_000_000_000 + tick * 10_000_000_000;
        for host in 0..hosts {
            let user = tick % 100;
            writeln!(
                text,
                "cpu,hostname=host_{host},region=eu usage_user={user}i,usage_system=2i {time}"
            )
            .unwrap();
            writeln!(text, "mem,hostname=host_{host},region=eu free=1.5 {time}").unwrap();
        }
    }
    text
}

fn packed(folder: &Folder, text: &str) -> Manifest {
    let file = folder.at("text");
    fs::write(&file, text).unwrap();
    let command = ["cat".to_owned(), file.to_str().unwrap().to_owned()];
    pack(
        &folder.at("data"),
        Format::Ilp,
        &json!({"scale": 3}),
        &command,
        0,
        &AtomicBool::new(false),
    )
    .unwrap()
}

fn load(folder: &Folder, changes: Value) -> IngestResult {
    load_until(folder, changes, Arc::default())
}

fn load_until(folder: &Folder, changes: Value, halt: Arc<AtomicBool>) -> IngestResult {
    let mut job = json!({"format": 1, "data": folder.at("data"), "backend": {"kind": "null"}, "seed": 7, "interval_ms": 50});
    for (key, value) in changes.as_object().unwrap() {
        job[key] = value.clone();
    }
    let job = Job::from_json(&job.to_string()).unwrap();
    let options = Options {
        out: &folder.at("out"),
        progress: false,
        halt,
        versions: BTreeMap::new(),
    };
    ingest(&job, &options).unwrap()
}

fn result(folder: &Folder) -> Value {
    serde_json::from_slice(&fs::read(folder.at("out/result.json")).unwrap()).unwrap()
}

fn text_of(folder: &Path, table: &str) -> Vec<Vec<String>> {
    (0..)
        .map_while(|worker| fs::read_to_string(folder.join(format!("{table}-{worker}.csv"))).ok())
        .map(|text| text.lines().skip(1).map(str::to_owned).collect())
        .collect()
}

#[test]
fn what_is_packed_is_counted_kept_once_and_fed_as_it_was() {
    let folder = Folder::new();
    let text = rows(50, 3);
    let manifest = packed(&folder, &text);
    assert_eq!(
        (manifest.rows, manifest.metrics, manifest.bytes),
        (300, 450, text.len() as u64)
    );
    assert_eq!(manifest.tables["cpu"].rows, 150);
    let made = fs::metadata(folder.at("data/data.zst"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(packed(&folder, &text), manifest);
    assert_eq!(
        fs::metadata(folder.at("data/data.zst"))
            .unwrap()
            .modified()
            .unwrap(),
        made,
        "it was made again"
    );
    let into = folder.at("fed");
    let command = ["sh", "-c", &format!("cat >{}; exit 3", into.display())].map(str::to_owned);
    let fed = feed(&folder.at("data"), &command, &AtomicBool::new(false)).unwrap();
    assert_eq!(
        (fed.status, fed.whole, fed.bytes),
        (Some(3), true, text.len() as u64)
    );
    assert_eq!(fs::read_to_string(into).unwrap(), text);
}

#[test]
fn a_generator_that_fails_or_makes_no_rows_leaves_nothing() {
    let folder = Folder::new();
    for (script, wrong) in [
        (
            "echo 'cpu,hostname=a x=1i 5'; exit 4",
            "ended with exit status: 4",
        ),
        ("true", "made no rows"),
        ("printf 'cpu,hostname=a x=1i 5'", "end within a line"),
        (
            "echo 'cpu,hostname=a x=1i'",
            "line 1 of the data has no time",
        ),
    ] {
        let command = ["sh", "-c", script].map(str::to_owned);
        let error = pack(
            &folder.at("data"),
            Format::Ilp,
            &Value::Null,
            &command,
            0,
            &AtomicBool::new(false),
        )
        .unwrap_err();
        assert!(error.contains(wrong), "{error}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "{script}");
    }
    let command = ["sh", "-c", "while echo 'cpu,hostname=a x=1i 5'; do :; done"].map(str::to_owned);
    let error = pack(
        &folder.at("data"),
        Format::Ilp,
        &Value::Null,
        &command,
        u64::MAX,
        &AtomicBool::new(false),
    )
    .unwrap_err();
    assert!(error.contains("are to stay free"), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn packed_data_that_were_cut_are_refused() {
    let folder = Folder::new();
    packed(&folder, &rows(10, 2));
    let data = folder.at("data/data.zst");
    let text = fs::read(&data).unwrap();
    fs::write(&data, &text[..text.len() - 1]).unwrap();
    let result = load(&folder, json!({}));
    let error = result.error.unwrap();
    assert!(error.message.contains("were packed"), "{error}");
}

#[test]
fn each_worker_has_all_rows_of_its_hosts_in_their_order() {
    let folder = Folder::new();
    packed(&folder, &rows(200, 5));
    let csv = folder.at("csv");
    let result = load(
        &folder,
        json!({"backend": {"kind": "csv", "folder": csv}, "workers": 2, "batch_rows": 64}),
    );
    assert!(result.error.is_none(), "{:?}", result.error);
    let workers = text_of(&csv, "cpu");
    let host = |line: &String| line.split(',').nth(1).unwrap().to_owned();
    let hosts: Vec<std::collections::BTreeSet<String>> = workers
        .iter()
        .map(|lines| lines.iter().map(host).collect())
        .collect();
    assert_eq!(
        hosts
            .iter()
            .map(std::collections::BTreeSet::len)
            .collect::<Vec<_>>(),
        [3, 2]
    );
    assert!(hosts[0].is_disjoint(&hosts[1]));
    for lines in &workers {
        // Times are text of one length, so that their order is that of the rows.
        assert!(lines.is_sorted_by_key(|line| line[..26].to_owned()));
    }
    assert_eq!(workers.iter().map(Vec::len).sum::<usize>(), 1000);
}

#[test]
fn counts_by_table_and_interval_add_up_to_what_was_sent() {
    let folder = Folder::new();
    packed(&folder, &rows(500, 4));
    let changes = json!({"workers": 3, "batch_rows": 100, "duplicates": 0.25, "delayed": {"share": 0.2, "by_s": 60}});
    assert!(load(&folder, changes).error.is_none());
    let found = result(&folder);
    let told = &found["ingest"];
    let again = told["duplicated"].as_u64().unwrap();
    assert!((800..1200).contains(&again), "{again}");
    assert!((600..1000).contains(&told["delayed"].as_u64().unwrap()));
    let sent = 4000 + again;
    assert_eq!(
        (told["sent"].as_u64(), told["acknowledged"].as_u64()),
        (Some(sent), Some(sent))
    );
    let by_table: u64 = ["cpu", "mem"]
        .iter()
        .map(|table| told["tables"][table]["sent"].as_u64().unwrap())
        .sum();
    assert_eq!(by_table, sent);
    let log = fs::read_to_string(folder.at("out/rows.csv")).unwrap();
    let by_interval: u64 = log
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(by_interval, sent);
    assert_eq!(
        found["total"]["count"],
        found["operations"]["batch"]["count"]
    );
    assert_eq!(found["outcome"], "ok");
}

#[test]
fn at_a_rate_rows_come_as_they_are_due_and_latency_is_from_then() {
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    load(&folder, json!({"rate_per_s": 2000, "batch_rows": 50}));
    let found = result(&folder);
    // 1,000 rows at 2,000 a second.
    let elapsed = found["elapsed_s"].as_f64().unwrap();
    assert!((0.49..3.0).contains(&elapsed), "{elapsed}");
    assert_eq!(found["loop"], "open");
    assert_eq!(found["open"]["share_sent"], 1.0);
    let latency = found["total"]["latency_us"]["max"].as_f64().unwrap();
    let service = found["total"]["service_us"]["max"].as_f64().unwrap();
    assert!(latency >= service);
    load(
        &folder,
        json!({"rate_per_s": 100, "batch_rows": 50, "duration_s": 0.3}),
    );
    let found = result(&folder);
    assert_eq!(
        (found["ended_by"].as_str(), found["outcome"].as_str()),
        (Some("duration"), Some("ok"))
    );
    assert!(found["ingest"]["sent"].as_u64().unwrap() < 100);
}

/// Answers as `QuestDB` does by HTTP, so many times, and then closes the connection before it answers.
fn answering(times: usize, status: &'static str) -> (u16, JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let mut lines = 0;
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        for _ in 0..times {
            let Some(body) = request(&mut stream) else {
                return lines;
            };
            lines += memchr::memchr_iter(b'\n', &body).count() as u64;
            write!(
                stream.get_mut(),
                "HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nno\n"
            )
            .unwrap();
        }
        let _ = request(&mut stream);
        lines
    });
    (port, server)
}

#[test]
fn what_becomes_due_after_it_was_told_to_end_was_not_to_be_sent() {
    // A batch that was in hand for long made more of them due, and the rate one that was not reached.
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let halt = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&halt);
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        request(&mut stream).unwrap();
        told.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1500));
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nno\n";
        stream.get_mut().write_all(answer).unwrap();
    });
    let asked = json!({"backend": questdb(port), "rate_per_s": 2000, "batch_rows": 50});
    load_until(&folder, asked, halt);
    server.join().unwrap();
    let found = result(&folder);
    assert_eq!(
        (found["ended_by"].as_str(), found["ingest"]["sent"].as_u64()),
        (Some("signal"), Some(50))
    );
    let of = |key: &str| found["ingest"][key].as_f64().unwrap();
    let (came, elapsed) = (of("came_s"), found["elapsed_s"].as_f64().unwrap());
    assert!(
        came < elapsed - 0.5,
        "{came} of {elapsed}: what was in hand took a second and a half"
    );
    // Those that were due by then, forty a second, but for the one that was sent.
    let unsent = found["open"]["unsent"].as_u64().unwrap() as f64;
    assert!(unsent <= came * 40.0, "{unsent} in {came} s");
    assert!((of("rows_per_s") - 50.0 / came).abs() < 1.0);
}

fn request(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).ok()?;
            return Some(body);
        }
    }
}

fn questdb(port: u16) -> Value {
    json!({"kind": "questdb", "transport": "ilp-http", "addresses": [{"host": "127.0.0.1", "port": port}]})
}

#[test]
fn a_batch_without_an_answer_is_in_doubt_and_those_before_it_were_acknowledged() {
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    let (port, server) = answering(3, "200 OK");
    let result = load(
        &folder,
        json!({"backend": questdb(port), "batch_rows": 100}),
    );
    assert_eq!(server.join().unwrap(), 300);
    assert_eq!(
        (
            result.ingest.acknowledged,
            result.ingest.in_doubt,
            result.ingest.sent
        ),
        (300, 100, 400)
    );
    assert_eq!(result.error.unwrap().kind, "connection_lost");
    // Which they are: 5 hosts with a row in each of two tables are 10 rows a tick.
    let doubtful: Vec<(String, String, i64)> = in_doubt(&folder);
    let ticks: Vec<i64> = doubtful
        .iter()
        .map(|row| (row.2 - 1_451_606_400_000_000_000) / 10_000_000_000)
        .collect();
    assert_eq!(doubtful.len(), 100);
    assert!(
        ticks.iter().all(|tick| (30..40).contains(tick)),
        "{ticks:?}"
    );
    assert_eq!(doubtful[0].0, "cpu");
    assert!(
        doubtful
            .iter()
            .any(|row| row.0 == "mem" && row.1 == "host_4")
    );
}

fn in_doubt(folder: &Folder) -> Vec<(String, String, i64)> {
    fs::read_to_string(folder.at("out/in-doubt.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_row_that_comes_twice_is_in_doubt_once_and_its_times_are_never_of_two_batches() {
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    let (port, server) = answering(3, "200 OK");
    let result = load(
        &folder,
        json!({"backend": questdb(port), "batch_rows": 100, "duplicates": 0.5}),
    );
    let taken = server.join().unwrap();
    assert!((300..=303).contains(&taken), "{taken}");
    assert!((100..=101).contains(&result.ingest.in_doubt));
    let told = self::result(&folder);
    let different: u64 = ["cpu", "mem"]
        .iter()
        .map(|table| {
            told["ingest"]["tables"][table]["different"]
                .as_u64()
                .unwrap()
        })
        .sum();
    let doubtful = in_doubt(&folder);
    // Of two rows one comes twice: of three lines two are different.
    assert!((55..80).contains(&doubtful.len()), "{}", doubtful.len());
    let mut once = doubtful.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), doubtful.len());
    // Rows come in order: those that were sent are the first of all.
    let of_tables = |row: &(String, String, i64)| {
        let tick = (row.2 - 1_451_606_400_000_000_000) / 10_000_000_000;
        let host: i64 = row.1[5..].parse().unwrap();
        (tick * 5 + host) * 2 + i64::from(row.0 == "mem")
    };
    let newest = doubtful.iter().map(of_tables).max().unwrap();
    assert_eq!(different, u64::try_from(newest).unwrap() + 1);
}

#[test]
fn a_refused_batch_ends_the_load_with_what_the_server_says() {
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    let (port, server) = answering(1, "400 Bad request");
    let result = load(
        &folder,
        json!({"backend": questdb(port), "batch_rows": 100, "retry_s": 10}),
    );
    server.join().unwrap();
    let error = result.error.unwrap();
    assert_eq!(
        error.to_string(),
        "refused: operation batch: writing rows: status 400: no"
    );
    assert_eq!(result.ingest.acknowledged, 0);
}

#[test]
fn a_batch_that_may_be_tried_again_goes_to_the_next_address_and_is_counted_as_sent_again() {
    let folder = Folder::new();
    packed(&folder, &rows(100, 5));
    let ((first, one), (second, two)) = (answering(2, "200 OK"), answering(100, "200 OK"));
    let mut backend = questdb(first);
    backend["addresses"]
        .as_array_mut()
        .unwrap()
        .push(json!({"host": "127.0.0.1", "port": second}));
    let result = load(
        &folder,
        json!({"backend": backend, "batch_rows": 100, "retry_s": 20}),
    );
    assert!(result.error.is_none(), "{:?}", result.error);
    assert_eq!(one.join().unwrap() + two.join().unwrap(), 1000);
    assert_eq!(
        (
            result.ingest.acknowledged,
            result.ingest.in_doubt,
            result.ingest.resent
        ),
        (1000, 0, 100)
    );
}

#[test]
fn nobody_who_listens_is_told_in_one_line() {
    let folder = Folder::new();
    packed(&folder, &rows(2, 1));
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let result = load(&folder, json!({"backend": questdb(free)}));
    let error = result.error.unwrap().to_string();
    assert!(
        error.starts_with("connect: connecting worker 0: connecting to 127.0.0.1:"),
        "{error}"
    );
    assert!(
        in_doubt(&folder).is_empty(),
        "whoever audits the rows looks for the file"
    );
}
