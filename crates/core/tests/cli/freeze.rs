//! The freeze test: a server that stands still for two seconds within a run of ten at 2000 requests per
//! second. An open loop sees it in its quantiles as they follow by arithmetic; a closed loop is blind to it.
//!
//! The server is a stub that answers `PostgreSQL`'s protocol at once, but for the stall, so that the truth is
//! known.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Folder, drive, json_lines, with};

const RATE: f64 = 2000.0;
const RUN_S: f64 = 10.0;
const STALL_S: f64 = 2.0;

/// A server that answers whatever it is asked with one row, until there is trouble.
struct Stub {
    port: u16,
}

/// What becomes of a stub.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    /// It stands still for a while.
    Stall,
    /// It closes all connections, and each new one.
    Death,
}

impl Stub {
    /// It stands still `after` the first request of the measured kind.
    fn start(after: Duration) -> Self {
        Self::with_trouble(Trouble::Stall, after)
    }

    fn with_trouble(trouble: Trouble, after: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let begun = std::sync::Arc::new(std::sync::OnceLock::new());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let begun = begun.clone();
                thread::spawn(move || serve(stream.unwrap(), &begun, trouble, after));
            }
        });
        Self { port }
    }
}

/// A message of the protocol: its type and what it holds.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn read_exactly(stream: &mut TcpStream, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).ok().map(|()| bytes)
}

fn read_length(stream: &mut TcpStream) -> Option<usize> {
    let bytes = read_exactly(stream, 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize - 4)
}

/// A row description of text columns.
fn columns(names: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(names.len()).unwrap().to_be_bytes().to_vec();
    for name in names {
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        body.extend_from_slice(&25u32.to_be_bytes());
        body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    }
    message(b'T', &body)
}

fn row(values: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        body.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    message(b'D', &body)
}

/// What a statement gives: its columns' names and its rows.
fn answer(sql: &str) -> (Vec<&'static str>, Vec<Vec<&'static str>>) {
    if sql.contains("transaction_isolation") {
        (
            vec!["name", "setting"],
            vec![vec!["transaction_isolation", "read committed"]],
        )
    } else if sql.contains("information_schema") {
        (vec!["column_name"], vec![vec!["ycsb_key"], vec!["field0"]])
    } else if sql.starts_with("SELECT field0") {
        (vec!["field0"], vec![vec!["12345678"]])
    } else {
        (vec![], vec![])
    }
}

fn parameters(sql: &str) -> u16 {
    u16::try_from(sql.matches('$').count()).unwrap()
}

fn serve(
    mut stream: TcpStream,
    begun: &std::sync::OnceLock<Instant>,
    trouble: Trouble,
    after: Duration,
) -> Option<()> {
    stream.set_nodelay(true).unwrap();
    let is_dead =
        || trouble == Trouble::Death && begun.get().is_some_and(|begun| begun.elapsed() >= after);
    if is_dead() {
        return None;
    }
    let length = read_length(&mut stream)?;
    read_exactly(&mut stream, length)?;
    let mut hello = message(b'R', &[0, 0, 0, 0]);
    hello.extend(message(b'S', b"server_version\x0015.0\0"));
    hello.extend(message(b'K', &[0; 8]));
    hello.extend(message(b'Z', b"I"));
    stream.write_all(&hello).ok()?;
    // Statements by name, and the one that is bound.
    let mut statements = std::collections::BTreeMap::new();
    let (mut bound, mut named) = (String::new(), String::new());
    let mut out = Vec::new();
    loop {
        let kind = read_exactly(&mut stream, 1)?[0];
        let length = read_length(&mut stream)?;
        let body = read_exactly(&mut stream, length)?;
        let text = |from: usize| -> String {
            let end = body[from..].iter().position(|&byte| byte == 0).unwrap();
            String::from_utf8(body[from..from + end].to_vec()).unwrap()
        };
        match kind {
            b'P' => {
                let name = text(0);
                named = text(name.len() + 1);
                statements.insert(name, named.clone());
                out.extend(message(b'1', &[]));
            }
            b'D' => {
                let count = parameters(&named);
                let mut types = count.to_be_bytes().to_vec();
                (0..count).for_each(|_| types.extend_from_slice(&25u32.to_be_bytes()));
                out.extend(message(b't', &types));
                match answer(&named).0 {
                    names if names.is_empty() => out.extend(message(b'n', &[])),
                    names => out.extend(columns(&names)),
                }
            }
            b'B' => {
                let portal = text(0);
                bound.clone_from(&statements[&text(portal.len() + 1)]);
                out.extend(message(b'2', &[]));
            }
            b'E' => {
                let (_, rows) = answer(&bound);
                if bound.starts_with("SELECT field0") {
                    let begun = *begun.get_or_init(Instant::now);
                    if is_dead() {
                        return None;
                    }
                    if trouble == Trouble::Stall {
                        stand_still(begun, after);
                    }
                }
                rows.iter().for_each(|values| out.extend(row(values)));
                out.extend(message(b'C', format!("SELECT {}\0", rows.len()).as_bytes()));
            }
            b'S' => {
                out.extend(message(b'Z', b"I"));
                stream.write_all(&out).ok()?;
                out.clear();
            }
            b'H' => {
                stream.write_all(&out).ok()?;
                out.clear();
            }
            b'X' => return None,
            other => panic!("the stub does not know the message {}", char::from(other)),
        }
    }
}

/// Whoever comes within the stall waits for its end.
fn stand_still(begun: Instant, after: Duration) {
    let (from, until) = (
        begun + after,
        begun + after + Duration::from_secs_f64(STALL_S),
    );
    let now = Instant::now();
    if now >= from && now < until {
        thread::sleep(until - now);
    }
}

fn job(stub: &Stub) -> Value {
    json!({
        "format": 1, "phase": "run",
        "backend": {"kind": "postgresql", "host": "127.0.0.1", "port": stub.port, "user": "x", "database": "x"},
        "workload": {
            "kind": "ycsb", "records": 1000, "proportions": {"read": 1.0},
            "field_count": 1, "field_length_bytes": 8,
        },
        "clients": 4, "duration_s": RUN_S, "seed": 1,
    })
}

/// Requests due within the stall wait from 2 s down to nothing; all others are answered at once. The
/// quantile q of all is therefore this far from the stall's end.
fn truth_ms(quantile: f64) -> f64 {
    let waiting = STALL_S / RUN_S;
    ((quantile - (1.0 - waiting)) / waiting * STALL_S * 1000.0).max(0.0)
}

fn ms(result: &Value, quantile: &str) -> f64 {
    result["total"]["latency_us"][quantile].as_f64().unwrap() / 1000.0
}

/// Others share the machine: one attempt of three in which nothing disturbed must do. Those of one test are
/// not to disturb those of another.
#[track_caller]
fn in_one_of_three(mut attempt: impl FnMut() -> Result<(), String>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut complaints = Vec::new();
    while let Err(complaint) = attempt() {
        complaints.push(complaint);
        assert!(complaints.len() < 3, "{complaints:?}");
    }
}

/// Quantiles in the tail are within 2 % of the truth.
fn agree(result: &Value, truth_ms: impl Fn(f64) -> f64) -> Result<(), String> {
    for (name, quantile) in [("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
        let (seen, truth) = (ms(result, name), truth_ms(quantile));
        if (seen / truth - 1.0).abs() >= 0.02 {
            return Err(format!("{name}: {seen} ms instead of {truth} ms"));
        }
    }
    Ok(())
}

fn open() -> Value {
    json!({"loop": {"kind": "open", "rate_per_s": RATE}})
}

#[test]
fn an_open_loop_tells_the_truth_about_a_server_that_stood_still_and_a_closed_one_does_not() {
    in_one_of_three(|| {
        let folder = Folder::new();
        let stub = Stub::start(Duration::from_secs(4));
        let result = drive(&folder, &with(job(&stub), open())).ok();
        assert_eq!(result["open"]["unsent"], json!(0));
        agree(&result, truth_ms)?;
        // From the actual start the stall is not to be seen where only a few requests met it.
        let service_ms = result["total"]["service_us"]["p99"].as_f64().unwrap() / 1000.0;
        // Four fifths of the requests do not know of the stall: their median is that of a run without one.
        let untroubled = Stub::start(Duration::from_secs(3600));
        let short = with(with(job(&untroubled), open()), json!({"duration_s": 4.0}));
        let undisturbed = drive(&folder, &short).ok();
        let (median, without) = (ms(&result, "p50"), ms(&undisturbed, "p50"));
        if (median - without).abs() < 0.3 && service_ms < 100.0 {
            Ok(())
        } else {
            Err(format!("{median} and {without} ms; {service_ms} ms"))
        }
    });
}

#[test]
fn a_closed_loop_is_blind_to_a_server_that_stood_still() {
    in_one_of_three(|| {
        let folder = Folder::new();
        let stub = Stub::start(Duration::from_secs(1));
        let blind = drive(&folder, &with(job(&stub), json!({"duration_s": 5.0}))).ok();
        assert_eq!(blind["loop"], json!("closed"));
        assert!(ms(&blind, "max") > 1900.0);
        if ms(&blind, "p99") < 100.0 {
            Ok(())
        } else {
            Err(format!("p99: {} ms", ms(&blind, "p99")))
        }
    });
}

/// A stall over the end of the run once left its requests out of all quantiles: whatever was due while the
/// server stood still was never sent, and the run went well.
#[test]
fn a_stall_over_the_end_of_a_run_is_in_its_quantiles_and_in_its_rate() {
    in_one_of_three(|| {
        let folder = Folder::new();
        let stub = Stub::start(Duration::from_secs_f64(RUN_S - STALL_S / 2.0));
        // A tenth is sent only when the part is over: that the rate was not reached is another matter.
        let lenient = with(open(), json!({"loop": {"min_share_sent": 0.8}}));
        let result = drive(&folder, &with(job(&stub), lenient)).ok();
        assert_eq!(result["open"]["due"], json!(20_000));
        assert_eq!(result["open"]["unsent"], json!(0));
        let late = result["open"]["sent_late"].as_u64().unwrap();
        if !(1950..=2000).contains(&late) {
            return Err(format!("{late} sent late"));
        }
        assert_eq!(result["total"]["count"], json!(20_000));
        // What was due in the stall's first half, a tenth of all, waits from 2 s down to 1 s.
        let waiting = STALL_S / 2.0 / RUN_S;
        agree(&result, |quantile| {
            (1.0 + (quantile - (1.0 - waiting)) / waiting) * STALL_S / 2.0 * 1000.0
        })?;
        let rate = result["total"]["throughput_per_s"].as_f64().unwrap();
        let truth = RATE * (1.0 - waiting);
        if (rate / truth - 1.0).abs() < 0.02 {
            Ok(())
        } else {
            Err(format!("{rate} per second instead of {truth}"))
        }
    });
}

#[test]
fn what_is_not_sent_by_the_end_of_the_drain_is_unsent() {
    in_one_of_three(|| {
        for drain_s in [0.0, 0.5] {
            let folder = Folder::new();
            let stub = Stub::start(Duration::from_secs(1));
            let short = json!({
                "duration_s": 2.0, "loop": {"drain_s": drain_s, "min_share_sent": 0.25},
            });
            let result = drive(&folder, &with(with(job(&stub), open()), short)).ok();
            let open = &result["open"];
            let sent = open["due"].as_u64().unwrap() - open["unsent"].as_u64().unwrap();
            assert_eq!(result["total"]["count"], json!(sent));
            // The four clients wait for an answer from 1 s until 3 s.
            if !(1800..2020).contains(&sent) {
                return Err(format!("{sent} sent"));
            }
        }
        Ok(())
    });
}

/// Failed requests once took as long as their last attempt alone, a fraction of a millisecond, and an outage
/// was to be seen in no time at all.
#[test]
fn what_fails_in_an_open_loop_shows_the_outage_whatever_the_number_of_clients() {
    for clients in [4, 100] {
        let folder = Folder::new();
        let stub = Stub::with_trouble(Trouble::Death, Duration::from_millis(500));
        let job = with(
            with(job(&stub), open()),
            json!({
                "clients": clients, "duration_s": 2.0,
                "loop": {"rate_per_s": 500, "min_share_sent": 0.0, "drain_s": 3},
                "reconnect": {"first_ms": 500, "most_ms": 500},
            }),
        );
        let ran = drive(&folder, &job);
        let result = ran.result();
        let failed_ms =
            |quantile: &str| result["total"]["failed_us"][quantile].as_f64().unwrap() / 1000.0;
        // An attempt takes no time, but the one before it was half a second earlier at the least.
        assert!(failed_ms("p50") > 300.0, "{clients}: {}", failed_ms("p50"));
        assert!(failed_ms("max") > 1500.0, "{clients}: {}", failed_ms("max"));
        let lines = std::fs::read_to_string(folder.path("out/errors.jsonl")).unwrap();
        let most_us = json_lines(&lines)
            .iter()
            .map(|line| line["took_us"].as_f64().unwrap())
            .fold(0.0, f64::max);
        assert!((most_us / 1000.0 / failed_ms("max") - 1.0).abs() < 1e-3);
    }
}

/// No server is needed to see whether a driver tells of a stall: `dyno selfcheck` has this one.
#[test]
fn a_stall_planted_in_the_null_backend_is_in_the_open_loop_and_not_in_the_closed_one() {
    const RUN_S: f64 = 4.0;
    in_one_of_three(|| {
        let folder = Folder::new();
        let job = json!({
            "format": 1, "phase": "run",
            "backend": {"kind": "null", "stall": {"at_s": 1.5, "for_s": 1}},
            "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 1.0}},
            "clients": 4, "duration_s": RUN_S, "warmup_s": 0.2, "seed": 1,
        });
        let result = drive(&folder, &with(job.clone(), open())).ok();
        assert_eq!(
            result["backend"]["effective"]["stall"],
            json!({"at_s": 1.5, "for_s": 1.0})
        );
        assert_eq!(result["total"]["count"], json!(8000));
        // Requests due within the stall wait from 1 s down to nothing: a quarter of all.
        agree(&result, |quantile| {
            (quantile - (1.0 - 1.0 / RUN_S)) * RUN_S * 1000.0
        })?;
        let blind = drive(&folder, &job).ok();
        assert!(ms(&blind, "max") > 990.0);
        if ms(&blind, "p999") < 10.0 {
            Ok(())
        } else {
            Err(format!("p999: {} ms", ms(&blind, "p999")))
        }
    });
}

#[test]
fn a_run_that_is_told_to_end_within_a_planted_stall_ends() {
    let folder = Folder::new();
    let job = json!({
        "format": 1, "phase": "run",
        "backend": {"kind": "null", "stall": {"at_s": 0, "for_s": 3600}},
        "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 1.0}},
        "clients": 2, "duration_s": 3600, "seed": 1,
    });
    let path = folder.write("job.json", &job);
    let begun = Instant::now();
    let status = std::process::Command::new(crate::support::PROGRAM)
        .args(["drive", "--stop-on-stdin-eof", "--job"])
        .arg(&path)
        .arg("--out")
        .arg(folder.path("out"))
        .stdin(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    assert!(begun.elapsed() < Duration::from_secs(60));
}
