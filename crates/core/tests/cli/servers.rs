//! `drive` on real servers: all workloads, all that can be wrong with a server, and what becomes of a run
//! whose server dies.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use dyno_servers::{Mariadb, Postgres, may_mount};
use dyno_sql::{Address, Connection, Limits, Mysql, Postgres as PgConnection, Server};
use serde_json::{Value, json};

use crate::support::{Folder, Ran, count_and_errors, drive, drive_command, with};

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    read: Duration::from_secs(30),
    write: Duration::from_secs(30),
};

/// A job's backend: an empty database of its own on that server.
fn on_mariadb(server: &Mariadb) -> Value {
    let address = Address::Tcp("127.0.0.1".to_owned(), server.port());
    let name = run_as_root(address, &format!("dyno_{}", unique()));
    json!({"kind": "mysql", "socket": server.socket(), "user": "root", "database": name})
}

fn run_as_root(address: Address, name: &str) -> String {
    let root = Server {
        address,
        user: "root".to_owned(),
        password: None,
        database: "mysql".to_owned(),
        limits: LIMITS,
    };
    let mut connection = Mysql::connect(&root).unwrap();
    connection.run(&format!("CREATE DATABASE {name}")).unwrap();
    name.to_owned()
}

fn on_postgresql(server: &Postgres) -> Value {
    let name = format!("dyno_{}", unique());
    let admin = Server {
        address: Address::Unix(server.socket()),
        user: "dyno".to_owned(),
        password: None,
        database: "postgres".to_owned(),
        limits: LIMITS,
    };
    let mut connection = PgConnection::connect(&admin).unwrap();
    connection.run(&format!("CREATE DATABASE {name}")).unwrap();
    json!({"kind": "postgresql", "host": "127.0.0.1", "port": server.port(), "user": "dyno", "database": name})
}

fn unique() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A run of some YCSB on a backend.
fn job(backend: &Value) -> Value {
    json!({
        "format": 1,
        "phase": "run",
        "backend": backend,
        "workload": {
            "kind": "ycsb", "records": 500, "proportions": {"read": 1.0},
            "field_count": 4, "field_length_bytes": 20, "max_scan_length": 20,
        },
        "clients": 3,
        "operations": 600,
        "seed": 42,
        "interval_ms": 50,
    })
}

fn load(folder: &Folder, job: &Value) {
    let load = json!({
        "phase": "load", "operations": null, "duration_s": null, "loop": null, "max_share_failed": null,
    });
    drive(folder, &with(job.clone(), load)).ok();
}

/// Each on a store of its own: read, update, insert, scan and read-modify-write, with every value checked.
fn all_operations_succeed(backend: &Value) {
    let folder = Folder::new();
    let mix =
        json!({"read": 0.3, "update": 0.2, "insert": 0.2, "scan": 0.1, "read_modify_write": 0.2});
    for fields in [true, false] {
        let job = with(
            job(backend),
            json!({"workload": {
                "proportions": mix, "data_integrity": true, "read_all_fields": fields,
                "write_all_fields": fields, "key_chooser": if fields { "latest" } else { "hotspot" },
            }}),
        );
        if fields {
            load(&folder, &job);
        } else {
            // What the first run inserted is there already.
            execute(backend, "DROP TABLE usertable");
            load(&folder, &job);
        }
        let result = drive(&folder, &job).ok();
        assert_eq!(count_and_errors(&result["total"]), (600, 0));
        assert!(result["backend"]["status"]["rows_scanned"].as_f64() > Some(0.0));
        let isolation = result["backend"]["effective"]["isolation"].as_str();
        assert!(
            isolation.is_some_and(|name| name.ends_with("read") || name.ends_with("committed")),
            "{isolation:?}"
        );
    }
}

fn execute(backend: &Value, sql: &str) {
    let text = |key: &str| backend[key].as_str().unwrap().to_owned();
    let address = match backend["socket"].as_str() {
        Some(socket) => Address::Unix(socket.into()),
        None => Address::Tcp(
            text("host"),
            u16::try_from(backend["port"].as_u64().unwrap()).unwrap(),
        ),
    };
    let server = Server {
        address,
        user: text("user"),
        password: None,
        database: text("database"),
        limits: LIMITS,
    };
    if backend["kind"] == "mysql" {
        Mysql::connect(&server).unwrap().run(sql).unwrap();
    } else {
        PgConnection::connect(&server).unwrap().run(sql).unwrap();
    }
}

#[test]
fn every_operation_of_ycsb_succeeds_on_mariadb_with_every_value_checked() {
    all_operations_succeed(&on_mariadb(&Mariadb::shared()));
}

#[test]
fn every_operation_of_ycsb_succeeds_on_postgresql_with_every_value_checked() {
    all_operations_succeed(&on_postgresql(&Postgres::shared()));
}

#[test]
fn a_value_that_was_never_written_is_found_by_the_check_of_values_alone() {
    let server = Mariadb::shared();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    let job = with(job(&backend), json!({"workload": {"data_integrity": true}}));
    load(&folder, &job);
    // Two fields of each row change places: all of them have their length.
    execute(
        &backend,
        "UPDATE usertable SET field0 = (@a := field0), field0 = field1, field1 = @a",
    );
    let result = drive(&folder, &job).result();
    let (count, errors) = count_and_errors(&result["total"]);
    assert_eq!((count, errors), (0, 600));
    assert_eq!(result["total"]["errors"]["wrong_value"], json!(600));
}

fn tpcc(backend: &Value) -> Value {
    json!({
        "format": 1, "phase": "run", "backend": backend,
        "workload": {"kind": "tpcc", "warehouses": 2, "items": 200, "customers_per_district": 30},
        "clients": 8, "duration_s": 2.0, "seed": 7, "interval_ms": 100,
    })
}

fn tpcc_stays_consistent(backend: &Value) {
    let folder = Folder::new();
    let job = tpcc(backend);
    let load = json!({"phase": "load", "duration_s": null});
    drive(&folder, &with(job.clone(), load)).ok();
    let result = drive(&folder, &job).ok();
    assert!(result["operations"]["new_order"]["count"].as_u64() > Some(0));
    let check = with(
        job,
        json!({"phase": "check", "duration_s": null, "clients": 1}),
    );
    let checked = drive(&folder, &check).ok();
    let checks = checked["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 4);
    assert!(checks.iter().all(|check| check["holds"] == json!(true)));
    // Of the second warehouse nothing would be known.
    let fewer = with(check.clone(), json!({"workload": {"warehouses": 1}}));
    let refused = drive(&folder, &fewer).failure();
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("give as many warehouses as were loaded"),
        "{said}"
    );
    // A sale that the district forgot.
    let sql = "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 3";
    if backend["kind"] == "sqlite" {
        let path = backend["path"].as_str().unwrap();
        rusqlite::Connection::open(path)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    } else {
        execute(backend, sql);
    }
    let broken = drive(&folder, &check).failure();
    assert_eq!(broken["error"]["kind"], json!("inconsistent"));
}

#[test]
fn tpcc_keeps_mariadb_consistent_and_a_broken_store_is_found() {
    tpcc_stays_consistent(&on_mariadb(&Mariadb::shared()));
}

#[test]
fn tpcc_keeps_postgresql_consistent_and_a_broken_store_is_found() {
    tpcc_stays_consistent(&on_postgresql(&Postgres::shared()));
}

#[test]
fn tpcc_keeps_sqlite_consistent_and_a_broken_store_is_found() {
    let folder = Folder::new();
    let config = json!({"journal_mode": "wal", "synchronous": "off"});
    let backend = json!({"kind": "sqlite", "path": folder.text("tpcc.db"), "config": config});
    tpcc_stays_consistent(&backend);
}

#[test]
fn what_is_wrong_with_a_server_is_said_in_one_line() {
    let server = Mariadb::shared();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    let cases = [
        (
            json!({"socket": "/nowhere/at/all"}),
            "connect",
            "does the server run?",
        ),
        (
            json!({"user": "nobody", "password": "wrong"}),
            "access_denied",
            "Access denied",
        ),
        (json!({"database": "missing"}), "refused", "missing"),
        (
            json!({}),
            "refused",
            "there is no usertable; run a job of phase load",
        ),
    ];
    for (change, kind, message) in cases {
        let job = with(job(&backend), json!({"backend": change}));
        let result = drive(&folder, &job).failure();
        assert_eq!(result["error"]["kind"], json!(kind), "{}", result["error"]);
        let said = result["error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{said}");
    }
}

/// Starts a job and does something meanwhile.
fn drive_meanwhile(folder: &Folder, job: &Value, meanwhile: impl FnOnce()) -> Ran {
    let mut command = drive_command(folder, job);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    meanwhile();
    Ran::new(child.wait_with_output().unwrap(), folder.path("out"))
}

#[test]
fn a_server_that_is_killed_leaves_a_gap_in_an_open_loop_and_the_run_goes_on() {
    let mut server = Mariadb::start();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    let open = json!({
        "operations": null, "duration_s": 4.0, "interval_ms": 100, "max_share_failed": 0.5,
        "loop": {"kind": "open", "rate_per_s": 200, "min_share_sent": 0.5},
    });
    let job = with(job(&backend), open);
    load(&folder, &job);
    let ran = drive_meanwhile(&folder, &job, || {
        thread::sleep(Duration::from_millis(1200));
        server.kill();
        thread::sleep(Duration::from_millis(600));
        server.start_again();
    });
    let result = ran.ok();
    let (count, errors) = count_and_errors(&result["total"]);
    let open = &result["open"];
    let sent = open["due"].as_u64().unwrap() - open["unsent"].as_u64().unwrap();
    assert_eq!(count + errors, sent);
    assert_eq!(open["due"], json!(800));
    assert!(
        errors >= 1 && result["reconnects"].as_u64() >= Some(1),
        "{result:#}"
    );
    // Intervals in which nothing succeeded, and afterwards some in which all did.
    let counts: Vec<u64> = ran
        .intervals()
        .iter()
        .map(|line| line["count"].as_u64().unwrap())
        .collect();
    let gap = counts.iter().position(|&count| count == 0);
    assert!(
        gap.is_some_and(|gap| counts[gap..].iter().any(|&count| count > 0)),
        "{counts:?}"
    );
    let lines = fs::read_to_string(folder.path("out/errors.jsonl")).unwrap();
    assert_eq!(lines.lines().count() as u64, errors);
    // Latency is from the intended start, so that the gap is in it.
    let most_ms = result["total"]["latency_us"]["max"].as_f64().unwrap() / 1000.0;
    assert!(most_ms > 500.0, "{most_ms}");
}

#[test]
fn a_rate_that_cannot_be_reached_fails_the_run() {
    let folder = Folder::new();
    let job = with(
        job(&json!({"kind": "null"})),
        json!({"operations": null, "duration_s": 0.2, "loop": {"kind": "open", "rate_per_s": 1e9, "drain_s": 0}}),
    );
    let ran = drive(&folder, &job);
    let result = ran.result();
    assert_eq!(
        (ran.status, &result["outcome"]),
        (Some(1), &json!("failed"))
    );
    assert_eq!(result["error"]["kind"], json!("rate_not_reached"));
    let share = result["open"]["share_sent"].as_f64().unwrap();
    assert!(share < 0.2, "{share}");
}

#[test]
fn no_acknowledged_row_is_lost_by_a_kill_and_the_audit_finds_those_that_are() {
    let mut server = Mariadb::start();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    let run = json!({
        "format": 1, "phase": "run", "backend": backend, "workload": {"kind": "ledger"},
        "clients": 4, "duration_s": 3.0, "seed": 9, "interval_ms": 100,
    });
    load(&folder, &run);
    let unwary = with(run.clone(), json!({"max_share_failed": 0.5}));
    let ran = drive_meanwhile(&folder, &unwary, || {
        thread::sleep(Duration::from_secs(1));
        server.kill();
        server.start_again();
    });
    let result = ran.ok();
    let (written, failed) = count_and_errors(&result["total"]);
    assert!(failed >= 1, "the kill fell on nobody");
    let acknowledged = json!({"acknowledged": [folder.text("out")]});
    let check = with(
        run,
        json!({"phase": "check", "duration_s": null, "clients": 1, "workload": acknowledged}),
    );
    let check_in = |name: &str| {
        let mut command = std::process::Command::new(crate::support::PROGRAM);
        command
            .arg("drive")
            .arg("--job")
            .arg(folder.write("check.json", &check));
        command.arg("--out").arg(folder.path(name));
        Ran::new(command.output().unwrap(), folder.path(name))
    };
    let ledger = check_in("audit-1").ok()["ledger"].clone();
    assert_eq!(ledger["acknowledged"], json!(written));
    assert_eq!(
        (&ledger["lost"], &ledger["duplicated"]),
        (&json!(0), &json!(0))
    );
    assert!(ledger["phantom"].as_u64().unwrap() <= failed);
    execute(
        &backend,
        "DELETE FROM ledger WHERE client = 1 AND number IN (0, 5)",
    );
    execute(
        &backend,
        "INSERT INTO ledger(run_seed, driver, client, number, payload) \
         SELECT run_seed, driver, client, number, payload FROM ledger WHERE client = 2 AND number = 3",
    );
    execute(
        &backend,
        "UPDATE ledger SET payload = 'x' WHERE client = 3 AND number = 4",
    );
    let wrong = check_in("audit-2").failure();
    assert_eq!(wrong["error"]["kind"], json!("rows_lost"));
    let ledger = &wrong["ledger"];
    let figures = [&ledger["lost"], &ledger["duplicated"], &ledger["altered"]];
    assert_eq!(figures, [&json!(2), &json!(1), &json!(1)]);
    assert_eq!(ledger["examples"]["lost"], json!(["0/1/0", "0/1/5"]));
}

/// A ledger's run in an open loop through a fault, with readers on another way in.
fn through_a_fault(backend: &Value, elsewhere: &Value) -> Value {
    json!({
        "format": 1, "phase": "run", "backend": backend, "workload": {"kind": "ledger", "indexed": true},
        "clients": 4, "duration_s": 3.0, "seed": 9, "interval_ms": 100, "faults": true, "max_share_failed": 1.0,
        "loop": {"kind": "open", "rate_per_s": 200, "min_share_sent": 0.0},
        "reconnect": {"first_ms": 1, "most_ms": 20},
        "readers": {"clients": 2, "rate_per_s": 50, "give_up_s": 0.05, "server": elsewhere},
    })
}

/// An empty ledger whose rows can be found, in that backend.
fn load_ledger(folder: &Folder, backend: &Value) {
    let load = json!({
        "format": 1, "phase": "load", "backend": backend, "workload": {"kind": "ledger", "indexed": true},
        "clients": 1, "seed": 9,
    });
    drive(folder, &load).ok();
}

/// The rows of the files of that name, without their headings.
fn rows(folder: &Folder, prefix: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(folder.path("out")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(prefix) {
            let text = fs::read_to_string(&path).unwrap();
            rows.extend(
                text.lines()
                    .skip(1)
                    .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>()),
            );
        }
    }
    rows
}

#[test]
fn every_attempt_around_a_kill_is_written_down_and_what_was_acknowledged_is_looked_for() {
    const OUT: Duration = Duration::from_millis(700);
    let mut server = Mariadb::start();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    load_ledger(&folder, &backend);
    let job = through_a_fault(&backend, &backend);
    let ran = drive_meanwhile(&folder, &job, || {
        thread::sleep(Duration::from_secs(1));
        server.kill();
        thread::sleep(OUT);
        server.start_again();
    });
    let result = ran.ok();
    let (written, failed) = count_and_errors(&result["total"]);
    assert!(failed >= 4, "each client met the kill: {failed}");
    let attempts = rows(&folder, "attempts-");
    assert_eq!(attempts.len() as u64, written + failed);
    let number = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
    let (mut due, mut successes) = (Vec::new(), Vec::new());
    for row in &attempts {
        assert!(
            number(row, 0) <= number(row, 1) && number(row, 1) <= number(row, 2),
            "{row:?}"
        );
        assert_eq!(row[3], "write");
        due.push(number(row, 0));
        if row[4] == "ok" {
            successes.push(number(row, 2));
        }
    }
    due.sort_unstable();
    let from = result["measured_from_ns"].as_u64().unwrap();
    assert!(
        due[0].abs_diff(from) < 1_000_000,
        "the first is due as the measured part begins"
    );
    for pair in due.windows(2) {
        // 200 a second, but for the clock's rounding: each client reads the time of day once.
        assert!(
            (pair[1] - pair[0]).abs_diff(5_000_000) < 500_000,
            "{pair:?}"
        );
    }
    assert_eq!(successes.len() as u64, written);
    successes.sort_unstable();
    let gap = successes
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap();
    assert!(u128::from(gap) >= OUT.as_nanos(), "{gap}");
    let reads = &result["reads"];
    let answered = reads["reads"].as_u64().unwrap();
    assert!(answered > 20, "{reads}");
    assert_eq!(reads["stale"], json!(0), "it is the same server: {reads}");
    let looked_for = rows(&folder, "reads-");
    let seen = looked_for.iter().filter(|row| row[3] == "seen").count();
    assert_eq!(seen as u64, answered);
    for row in looked_for.iter().filter(|row| row[3] == "seen") {
        assert!(
            number(row, 0) <= number(row, 1) && number(row, 4) == number(row, 2),
            "{row:?}"
        );
    }
}

#[test]
fn a_row_that_is_not_to_be_had_elsewhere_is_a_stale_read_and_one_that_never_comes_is_unseen() {
    let server = Mariadb::shared();
    let (backend, elsewhere) = (on_mariadb(&server), on_mariadb(&server));
    let folder = Folder::new();
    load_ledger(&folder, &backend);
    load_ledger(&folder, &elsewhere);
    let job = with(
        through_a_fault(&backend, &elsewhere),
        json!({"duration_s": 0.6}),
    );
    let reads = drive(&folder, &job).ok()["reads"].clone();
    assert!(reads["reads"].as_u64().unwrap() >= 4, "{reads}");
    assert_eq!(reads["stale"], reads["reads"]);
    assert_eq!(reads["unseen"], reads["reads"]);
    let missed = rows(&folder, "reads-");
    assert!(
        missed
            .iter()
            .all(|row| row[3] == "stale" && row[4].is_empty()),
        "{missed:?}"
    );
}

#[test]
fn a_reader_goes_on_with_new_rows_while_it_looks_for_late_ones() {
    let server = Mariadb::shared();
    let (backend, elsewhere) = (on_mariadb(&server), on_mariadb(&server));
    let folder = Folder::new();
    load_ledger(&folder, &backend);
    load_ledger(&folder, &elsewhere);
    let job = with(
        through_a_fault(&backend, &elsewhere),
        json!({"duration_s": 1.5, "readers": {"give_up_s": 60.0}}),
    );
    let reads = drive(&folder, &job).ok()["reads"].clone();
    // 75 are due. A reader that waited for each until it is there, or is given up, made one.
    assert!(reads["reads"].as_u64().unwrap() > 10, "{reads}");
    assert_eq!(reads["unseen"], reads["reads"]);
    let sent = rows(&folder, "reads-").len() as u64;
    assert_eq!(sent, reads["reads"].as_u64().unwrap());
}

#[test]
fn readers_that_cannot_connect_fail_the_run_before_it_begins() {
    let server = Mariadb::shared();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    load_ledger(&folder, &backend);
    let elsewhere = with(backend.clone(), json!({"database": "missing"}));
    let result = drive(&folder, &through_a_fault(&backend, &elsewhere)).failure();
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("missing"),
        "{}",
        result["error"]
    );
    assert_eq!(result["total"]["count"], json!(0));
}

#[test]
fn drivers_that_start_together_make_one_result() {
    let server = Mariadb::shared();
    let backend = on_mariadb(&server);
    let folder = Folder::new();
    let start = std::time::SystemTime::now() + Duration::from_millis(1500);
    let start_ns = start
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let inserts = json!({"read": 0.5, "insert": 0.5});
    let base = with(
        job(&backend),
        json!({"operations": null, "duration_s": 1.0, "warmup_s": 0.3, "workload": {"proportions": inserts}}),
    );
    let unwarmed = with(base.clone(), json!({"warmup_s": null}));
    load(&folder, &unwarmed);
    let children: Vec<_> = (0..2)
        .map(|number| {
            let job = with(
                base.clone(),
                json!({
                    "driver": {"number": number, "of": 2},
                    "start_at_ns": u64::try_from(start_ns).unwrap(),
                    // How busy the machine is besides is no matter of this test.
                    "loop": {"kind": "open", "rate_per_s": 150, "arrivals": "poisson", "min_share_sent": 0.0},
                }),
            );
            let path = folder.write(&format!("job-{number}.json"), &job);
            std::process::Command::new(crate::support::PROGRAM)
                .args(["drive", "--job"])
                .arg(path)
                .arg("--out")
                .arg(folder.path(&format!("run-{number}")))
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let output = std::process::Command::new(crate::support::PROGRAM)
        .args(["merge", "--out"])
        .arg(folder.path("merged"))
        .args([folder.path("run-0"), folder.path("run-1")])
        .output()
        .unwrap();
    let merged = Ran::new(output, folder.path("merged"));
    let result = merged.ok();
    let parts: Vec<Value> = (0..2)
        .map(|number| {
            let path = folder.path(&format!("run-{number}/result.json"));
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
        })
        .collect();
    let sum = |of: &dyn Fn(&Value) -> u64| parts.iter().map(of).sum::<u64>();
    let total = |part: &Value| part["total"]["count"].as_u64().unwrap();
    assert_eq!(total(&result), sum(&total));
    assert_eq!(
        total(&result),
        sum(&|part| part["open"]["due"].as_u64().unwrap()
            - part["open"]["unsent"].as_u64().unwrap())
    );
    assert_eq!(result["open"]["rate_per_s"], json!(300.0));
    assert_eq!(
        (&result["drivers"], &result["clients"]),
        (&json!(2), &json!(6))
    );
    let counted: u64 = merged
        .intervals()
        .iter()
        .filter(|line| line["warmup"] == json!(false))
        .map(|line| line["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, total(&result));
    let starts: BTreeSet<u64> = merged
        .intervals()
        .iter()
        .map(|line| line["start_ns"].as_u64().unwrap())
        .collect();
    assert!(starts.len() >= 20, "{}", starts.len());
    let longest = |part: &Value| part["total"]["latency_us"]["max"].as_f64().unwrap();
    let most = parts.iter().map(longest).fold(0.0, f64::max);
    assert!((longest(&result) - most).abs() <= most * 1e-3);
    // No two drivers insert the same row.
    assert_eq!(result["total"]["errors"], json!({}));
}

/// A disk that fills up while rows are added by that phase ends it; what was done before is kept.
fn a_full_disk_ends(phase: &str, backend: &Value, said: &[&str]) {
    let folder = Folder::new();
    let rows = json!({"field_count": 10, "field_length_bytes": 100});
    let inserts = json!({"read": 0.5, "insert": 0.5});
    let run = with(job(backend), json!({"workload": rows}));
    let job = if phase == "load" {
        let many = json!({"records": 1_000_000});
        json!({"phase": "load", "operations": null, "workload": many})
    } else {
        load(&folder, &run);
        json!({"operations": 1_000_000, "workload": {"proportions": inserts}})
    };
    let result = drive(&folder, &with(run, job)).failure();
    let error = &result["error"];
    assert_eq!(error["kind"], json!("disk_full"), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(said.iter().all(|said| message.contains(said)), "{message}");
    let total = &result["total"];
    assert!(total["errors"]["disk_full"].as_u64() >= Some(1), "{total}");
    assert!(total["count"].as_u64() > Some(500), "{total}");
}

#[test]
fn a_disk_that_fills_up_under_mariadb_ends_loading_and_runs_as_failed() {
    if !may_mount() {
        return;
    }
    for phase in ["load", "run"] {
        // Its temporary tables take 12 MiB at the start.
        let server = Mariadb::start_on_disk(32);
        let said = ["The table 'usertable' is full (1114, SQLSTATE HY000)"];
        a_full_disk_ends(phase, &on_mariadb(&server), &said);
    }
}

#[test]
fn a_disk_that_fills_up_under_tables_of_postgresql_ends_loading_and_runs_as_failed() {
    if !may_mount() {
        return;
    }
    for phase in ["load", "run"] {
        // Seven or eight of it are a database of one's own.
        let server = Postgres::start_on_disk(&[], "base", 20);
        let said = [
            "could not extend file",
            "No space left on device (SQLSTATE 53100)",
        ];
        a_full_disk_ends(phase, &on_postgresql(&server), &said);
    }
}

#[test]
fn a_disk_that_fills_up_under_the_log_of_postgresql_ends_loading_and_runs_as_failed() {
    if !may_mount() {
        return;
    }
    for phase in ["load", "run"] {
        // It ends all its processes then. Those that write for others would do so without a word to them.
        let alone = ["wal_writer_delay=10s", "bgwriter_lru_maxpages=0"];
        let server = Postgres::start_on_disk(&alone, "pg_wal", 16);
        let said = ["pg_wal", "No space left on device (SQLSTATE 53100)"];
        a_full_disk_ends(phase, &on_postgresql(&server), &said);
    }
}
