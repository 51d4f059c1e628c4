//! Locks, limits, and servers that go away.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill as signal};
use nix::unistd::Pid;

use super::support::*;

/// Two connections and a table with two rows.
fn two(server: &Running) -> (Postgres, Postgres, String) {
    let [mut one, other] = both_ways(server);
    let table = table(&mut one, "id int PRIMARY KEY, v int");
    one.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0)"))
        .unwrap();
    (one, other, table)
}

fn set(table: &str, id: u32) -> String {
    format!("UPDATE {table} SET v = v + 1 WHERE id = {id}")
}

#[test]
fn a_deadlock_is_a_conflict_for_one_of_the_two() {
    let server = shared();
    let (mut one, mut other, table) = two(&server);
    one.run(&format!("BEGIN; {}", set(&table, 1))).unwrap();
    other.run(&format!("BEGIN; {}", set(&table, 2))).unwrap();
    // Who is rolled back lets the other go on at once.
    let go = |connection: &mut Postgres, id| {
        let mut update = connection.prepare(&set(&table, id)).unwrap();
        let result = connection.execute(&mut update, &[]);
        connection.run("ROLLBACK").unwrap();
        result
    };
    let mut results = thread::scope(|scope| {
        let one = scope.spawn(|| go(&mut one, 2));
        let other = scope.spawn(|| go(&mut other, 1));
        [one.join().unwrap(), other.join().unwrap()]
    });
    results.sort_by_key(Result::is_err);
    assert_eq!(results[0], Ok(1));
    let error = results[1].as_ref().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(
        error.message.contains("40P01") && error.message.contains("UPDATE"),
        "{error}"
    );
}

#[test]
fn a_failed_serialization_is_a_conflict() {
    let server = shared();
    let (mut one, mut other, table) = two(&server);
    one.run("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    count(&mut one, &table);
    other.run(&set(&table, 1)).unwrap();
    assert_eq!(kind(one.run(&set(&table, 1))), ErrorKind::Conflict);
    one.run("ROLLBACK").unwrap();
    one.run(&set(&table, 1)).unwrap();
}

#[test]
fn a_lock_or_statement_that_takes_too_long_is_busy() {
    let server = shared();
    let (mut one, mut other, table) = two(&server);
    one.run(&format!("BEGIN; {}", set(&table, 1))).unwrap();
    let mut update = other.prepare(&set(&table, 1)).unwrap();
    for limit in ["lock_timeout", "statement_timeout"] {
        other.run(&format!("SET {limit} = 20")).unwrap();
        assert_eq!(
            kind(other.execute(&mut update, &[])),
            ErrorKind::Busy,
            "{limit}"
        );
        other.run(&format!("RESET {limit}")).unwrap();
    }
    one.run("ROLLBACK").unwrap();
    assert_eq!(other.execute(&mut update, &[]), Ok(1));
}

/// Runs `meanwhile` once the connection waits in the server, and gives what comes of the wait.
fn while_it_waits(
    server: &Running,
    connection: &mut Postgres,
    meanwhile: impl FnOnce(i64),
) -> Result<u64> {
    let mut owner = enter(&by_socket(server));
    let pid = number(connection, "SELECT pg_backend_pid()");
    let mut sleep = connection.prepare("SELECT pg_sleep(60)").unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| connection.query(&mut sleep, &[], |_| Ok(())));
        let asleep = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'"
        );
        wait_until(LONG, "the connection waits", || {
            number(&mut owner, &asleep) == 1
        });
        meanwhile(pid);
        waits.join().unwrap()
    })
}

/// That it is of no use, says so at once, and is again once it is made anew.
fn is_lost_until_made_anew(connection: &mut Postgres, found: ErrorKind) {
    assert!(found.breaks_connection(), "{found:?}");
    let mut statement = None;
    let since = Instant::now();
    assert_eq!(kind(connection.run("SELECT 1")), ErrorKind::ConnectionLost);
    match connection.prepare("SELECT 1") {
        Ok(prepared) => statement = Some(prepared),
        Err(error) => assert_eq!(error.kind, ErrorKind::ConnectionLost),
    }
    assert!(statement.is_none());
    assert!(since.elapsed() < Duration::from_secs(5));
    connection.reconnect().unwrap();
    assert!(in_step(connection));
}

#[test]
fn a_server_that_crashes_loses_its_connections_until_it_is_back() {
    let mut server = Running::start(&[], &[]);
    let mut waiting = enter(&by_tcp(&server));
    let mut idle = enter(&by_socket(&server));
    let mut select = idle.prepare("SELECT 1").unwrap();
    let table = table(&mut idle, "id int");
    let pid = Pid::from_raw(i32::try_from(server.process().id()).unwrap());
    let result = while_it_waits(&server, &mut waiting, |_| {
        signal(pid, Signal::SIGKILL).unwrap();
    });
    let found = kind(result);
    assert!(
        matches!(found, ErrorKind::ConnectionLost | ErrorKind::Unavailable),
        "{found:?}"
    );
    server.kill();
    wait_until(LONG, "the idle one is lost, too", || {
        match idle.query(&mut select, &[], |_| Ok(())) {
            Ok(_) => false,
            Err(error) => {
                assert!(
                    matches!(
                        error.kind,
                        ErrorKind::ConnectionLost | ErrorKind::Unavailable
                    ),
                    "{error}"
                );
                true
            }
        }
    });
    assert_eq!(kind(idle.reconnect()), ErrorKind::Connect);
    assert_eq!(kind(idle.run("SELECT 1")), ErrorKind::ConnectionLost);
    server.start_again();
    is_lost_until_made_anew(&mut waiting, found);
    idle.reconnect().unwrap();
    let mut insert = idle
        .prepare(&format!("INSERT INTO {table} VALUES (?)"))
        .unwrap();
    assert_eq!(idle.execute(&mut insert, &[Value::Int(1)]), Ok(1));
}

#[test]
fn a_session_that_is_stopped_is_a_timeout() {
    let server = shared();
    for address in [by_socket(&server), by_tcp(&server)] {
        let mut server = address;
        server.limits.read = Duration::from_millis(100);
        let mut connection = enter(&server);
        let pid = number(&mut connection, "SELECT pg_backend_pid()");
        let pid = Pid::from_raw(i32::try_from(pid).unwrap());
        signal(pid, Signal::SIGSTOP).unwrap();
        let error = connection.run("SELECT 1").unwrap_err();
        signal(pid, Signal::SIGCONT).unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.contains("SELECT 1"), "{error}");
        is_lost_until_made_anew(&mut connection, error.kind);
    }
}

#[test]
fn a_session_that_takes_nothing_is_a_timeout() {
    let server = shared();
    let mut address = by_socket(&server);
    address.limits.write = Duration::from_millis(100);
    let mut connection = enter(&address);
    let mut select = connection.prepare("SELECT length(?)").unwrap();
    let pid = number(&mut connection, "SELECT pg_backend_pid()");
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    signal(pid, Signal::SIGSTOP).unwrap();
    let large = "x".repeat(10_000_000);
    let result = connection.query(&mut select, &[Value::Text(&large)], |_| Ok(()));
    signal(pid, Signal::SIGCONT).unwrap();
    assert_eq!(kind(result), ErrorKind::Timeout);
}

#[test]
fn an_interrupter_ends_a_wait_and_no_connection_is_made_after_it() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let interrupter = connection.interrupter();
        let result = while_it_waits(&server, &mut connection, |_| interrupter.interrupt());
        assert_eq!(kind(result), ErrorKind::ConnectionLost);
        assert_eq!(kind(connection.run("SELECT 1")), ErrorKind::ConnectionLost);
        assert_eq!(kind(connection.reconnect()), ErrorKind::ConnectionLost);
    }
}

#[test]
fn a_session_that_is_ended_while_it_waits_is_unavailable() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut owner = enter(&by_socket(&server));
        let result = while_it_waits(&server, &mut connection, |pid| {
            owner
                .run(&format!("SELECT pg_terminate_backend({pid})"))
                .unwrap();
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.contains("57P01"), "{error}");
        is_lost_until_made_anew(&mut connection, error.kind);
    }
}

#[test]
fn a_session_that_was_ended_while_idle_is_unavailable() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut owner = enter(&by_socket(&server));
        let pid = number(&mut connection, "SELECT pg_backend_pid()");
        owner
            .run(&format!("SELECT pg_terminate_backend({pid})"))
            .unwrap();
        wait_until(LONG, "the session has ended", || {
            number(
                &mut owner,
                &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"),
            ) == 0
        });
        // Its last words came before the request went out.
        let error = connection.run("SELECT 1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        is_lost_until_made_anew(&mut connection, error.kind);
    }
}
