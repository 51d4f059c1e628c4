//! Servers that go away, stand still, or talk nonsense.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::{Duration, Instant};

use dyno_servers::{Folder, Mariadb};
use dyno_sql::{Connection, ErrorKind, Mysql, Server, Value};

use crate::support::{Database, LIMITS, int, root, tcp, unix};

/// Does something while a connection waits in its own thread for a long statement; gives what that said,
/// and the connection.
fn meanwhile(mut mysql: Mysql, act: impl FnOnce()) -> (dyno_sql::Result<()>, Mysql) {
    let waiter = thread::spawn(move || {
        let waited = mysql.run("SELECT SLEEP(60)");
        (waited, mysql)
    });
    act();
    waiter.join().unwrap()
}

/// Waits until somebody sleeps in the server; gives the number of that connection.
fn sleeper(watcher: &mut Mysql) -> i64 {
    let mut find = watcher
        .prepare("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'")
        .unwrap();
    let mut found = None;
    dyno_servers::wait_until(LIMITS.read, "somebody who sleeps", || {
        use dyno_sql::Row;
        watcher
            .query(&mut find, &[], |row| {
                found = Some(row.int()?);
                Ok(())
            })
            .unwrap();
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_server_that_is_killed_is_a_lost_connection_until_it_is_there_again() {
    let mut mariadb = Mariadb::start();
    let server = root(unix(mariadb.socket()), "mysql");
    let mut mysql = Mysql::connect(&server).unwrap();
    mysql
        .run("CREATE DATABASE kept; CREATE TABLE kept.t(k INT)")
        .unwrap();
    let mut statement = mysql.prepare("INSERT INTO kept.t VALUES(?)").unwrap();
    let values = [Value::Int(1)];
    assert_eq!(mysql.execute(&mut statement, &values), Ok(1));
    let mut watcher = Mysql::connect(&server).unwrap();
    let (waited, mut mysql) = meanwhile(mysql, || {
        sleeper(&mut watcher);
        mariadb.kill();
    });
    let error = waited.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConnectionLost);
    assert!(error.message.ends_with("SELECT SLEEP(60)"), "{error}");

    // Whatever is asked is an error, at once and without harm.
    for error in [
        mysql.execute(&mut statement, &values).unwrap_err(),
        mysql
            .query(&mut statement, &values, |_| Ok(()))
            .unwrap_err(),
        mysql.run("SELECT 1").unwrap_err(),
        mysql.prepare("SELECT 1").map(|_| ()).unwrap_err(),
        mysql.insert_rows("t", &["k"], &values).unwrap_err(),
        mysql.execute_each(&mut statement, &values, 1).unwrap_err(),
        mysql
            .query_each(&mut statement, &values, 1, |_, _| Ok(()))
            .unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::ConnectionLost);
        assert!(error.message.contains("there is no connection"), "{error}");
    }
    let error = mysql.reconnect().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    assert_eq!(
        mysql.run("SELECT 1").unwrap_err().kind,
        ErrorKind::ConnectionLost
    );

    mariadb.start_again();
    mysql.reconnect().unwrap();
    let error = mysql.execute(&mut statement, &values).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("prepare it anew"), "{error}");
    let mut anew = mysql.prepare("INSERT INTO kept.t VALUES(?)").unwrap();
    drop(statement);
    assert_eq!(mysql.execute(&mut anew, &values), Ok(1));
    // Had the earlier one been closed here, it would have been this one by its number.
    mysql.prepare("SELECT 1").unwrap();
    assert_eq!(mysql.execute(&mut anew, &values), Ok(1));
    assert!(int(&mut mysql, "SELECT COUNT(*) FROM kept.t") >= 2);
}

#[test]
fn a_server_that_shuts_down_leaves_no_doubt() {
    let mut mariadb = Mariadb::start();
    let mysql = Mysql::connect(&root(tcp(mariadb.port()), "")).unwrap();
    let mut watcher = Mysql::connect(&root(unix(mariadb.socket()), "")).unwrap();
    let (waited, mut mysql) = meanwhile(mysql, || {
        sleeper(&mut watcher);
        mariadb.stop();
    });
    let error = waited.unwrap_err();
    assert!(
        matches!(
            error.kind,
            ErrorKind::ConnectionLost | ErrorKind::Unavailable
        ),
        "{error}"
    );
    assert_eq!(
        mysql.run("SELECT 1").unwrap_err().kind,
        ErrorKind::ConnectionLost
    );
}

#[test]
fn a_connection_that_is_killed_is_lost() {
    let database = Database::new();
    let mut watcher = database.another();
    let (waited, mut mysql) = meanwhile(database.another(), || {
        let id = sleeper(&mut watcher);
        watcher.run(&format!("KILL {id}")).unwrap();
    });
    let error = waited.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConnectionLost, "{error}");
    mysql.reconnect().unwrap();
    assert_eq!(int(&mut mysql, "SELECT 1"), 1);
}

#[test]
fn a_server_that_stands_still_is_a_timeout_and_no_answer_comes_late() {
    let mariadb = Mariadb::start();
    for address in [unix(mariadb.socket()), tcp(mariadb.port())] {
        let mut server = root(address, "");
        server.limits.read = Duration::from_millis(200);
        server.limits.connect = Duration::from_millis(500);
        let mut mysql = Mysql::connect(&server).unwrap();
        let mut statement = mysql.prepare("SELECT ?").unwrap();
        mariadb.process().pause();
        let error = mysql
            .query(&mut statement, &[Value::Int(1)], |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.contains("SELECT ?"), "{error}");
        // The kernel takes the connection; nobody greets.
        let error = mysql.reconnect().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
        mariadb.process().resume();
        // The answer to what timed out is not taken for that to what is asked now.
        let error = mysql
            .query(&mut statement, &[Value::Int(2)], |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::ConnectionLost);
        dyno_servers::wait_until(LIMITS.read, "a connection", || mysql.reconnect().is_ok());
        assert_eq!(int(&mut mysql, "SELECT 2"), 2);
    }
}

#[test]
fn whoever_waits_is_interrupted_from_another_thread_and_stays_so() {
    let database = Database::new();
    let mysql = database.another();
    let interrupter = mysql.interrupter();
    let mut watcher = database.another();
    let (waited, mut mysql) = meanwhile(mysql, || {
        sleeper(&mut watcher);
        interrupter.interrupt();
    });
    assert_eq!(waited.unwrap_err().kind, ErrorKind::ConnectionLost);
    assert_eq!(
        mysql.reconnect().unwrap_err().kind,
        ErrorKind::ConnectionLost
    );
}

#[test]
fn an_interrupter_follows_to_the_next_connection() {
    let database = Database::new();
    let mut mysql = database.another();
    let interrupter = mysql.interrupter();
    mysql.reconnect().unwrap();
    let mut watcher = database.another();
    let (waited, _) = meanwhile(mysql, || {
        sleeper(&mut watcher);
        interrupter.interrupt();
    });
    assert_eq!(waited.unwrap_err().kind, ErrorKind::ConnectionLost);
}

/// A server that greets as `MariaDB` does, lets anybody in, and gives these packets to the first request
/// after the one for `max_allowed_packet`; then it waits for the client to go.
fn impostor(folder: &Folder, greeting: Vec<u8>, answer: Vec<u8>) -> Server {
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let steps: [&[u8]; 4] = [
            &greeting,
            &packet(2, b"\0\0\0\x02\0\0\0"),
            &[
                packet(1, b"\x01"),
                packet(
                    2,
                    b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x15\0\0\0\x08\xa0\0\0\0\0",
                ),
                packet(3, b"\x0816777216"),
                packet(4, b"\xfe\0\0\x02\0\0\0"),
            ]
            .concat(),
            &answer,
        ];
        for step in steps {
            // A client that does not like what it gets may go at any time.
            if stream.write_all(step).is_err() || stream.read(&mut request).unwrap_or(0) == 0 {
                return;
            }
        }
    });
    root(unix(path), "")
}

fn packet(number: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![u8::try_from(content.len()).unwrap(), 0, 0, number];
    packet.extend(content);
    packet
}

const GREETING: &[u8] = b"\x0a11.8.2-MariaDB\0\x01\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";

#[test]
fn nonsense_in_an_answer_is_an_error_and_the_end_of_the_connection() {
    let cases: [(&str, Vec<u8>); 6] = [
        ("an answer of nothing", packet(1, b"")),
        ("a torn OK", packet(1, b"\0\0")),
        (
            "a number of columns that cannot be",
            packet(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
        ),
        ("a file that is asked for", packet(1, b"\xfb/etc/passwd")),
        ("packets out of order", packet(3, b"\0\0\0\x02\0\0\0")),
        ("a torn error", packet(1, b"\xff\x01")),
    ];
    for (what, answer) in cases {
        let folder = Folder::new("impostor");
        let mut mysql = Mysql::connect(&impostor(&folder, packet(0, GREETING), answer)).unwrap();
        assert_eq!(mysql.version(), "11.8.2-MariaDB");
        let error = mysql.run("SELECT 1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{what}: {error}");
        let error = mysql.run("SELECT 1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::ConnectionLost, "{what}: {error}");
    }
}

#[test]
fn an_answer_that_ends_early_is_a_lost_connection_or_a_timeout() {
    let folder = Folder::new("impostor");
    let mut server = impostor(&folder, packet(0, GREETING), b"\x07\0\0\x01\0\0".to_vec());
    server.limits.read = Duration::from_millis(100);
    let mut mysql = Mysql::connect(&server).unwrap();
    assert_eq!(mysql.run("SELECT 1").unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(
        mysql.run("SELECT 1").unwrap_err().kind,
        ErrorKind::ConnectionLost
    );
}

#[test]
fn what_the_server_says_before_it_closes_is_told() {
    let folder = Folder::new("impostor");
    // Out of order, as it was not asked.
    let answer = packet(0, b"\xff\xbf\x0f#HY000The client was disconnected");
    let mut mysql = Mysql::connect(&impostor(&folder, packet(0, GREETING), answer)).unwrap();
    let error = mysql.run("SELECT 1").unwrap_err();
    assert!(
        error.message.contains("The client was disconnected (4031"),
        "{error}"
    );
    assert_eq!(
        mysql.run("SELECT 1").unwrap_err().kind,
        ErrorKind::ConnectionLost
    );
}

#[test]
fn another_protocol_is_told_at_once() {
    for greeting in [
        &b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"[..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x05\0\0\0\x0a11.8",
    ] {
        let folder = Folder::new("impostor");
        let mut server = impostor(&folder, greeting.to_vec(), Vec::new());
        server.limits.connect = Duration::from_millis(300);
        let error = Mysql::connect(&server).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::Protocol | ErrorKind::Connect),
            "{error}"
        );
    }
}

#[test]
fn the_limit_on_a_connection_is_on_all_of_the_log_in() {
    let folder = Folder::new("impostor");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&packet(0, GREETING)).unwrap();
        // Somebody who is at home and says no more.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut server = root(unix(path), "");
    server.limits.connect = Duration::from_millis(200);
    let begin = Instant::now();
    let error = Mysql::connect(&server).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    // Neither of the others holds.
    assert!(begin.elapsed() < LIMITS.read);
}

#[test]
fn a_refusal_in_place_of_a_greeting_is_told() {
    let folder = Folder::new("impostor");
    // Before the log-in an error has no state.
    let refusal = packet(0, b"\xff\x10\x04Too many connections");
    let error = Mysql::connect(&impostor(&folder, refusal, Vec::new())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(
        error.message.contains("Too many connections (1040)"),
        "{error}"
    );
}

#[test]
fn whoever_waits_for_the_log_in_is_interrupted() {
    let mariadb = Mariadb::start();
    let path = mariadb.socket();
    let mut mysql = Mysql::connect(&root(unix(path.clone()), "")).unwrap();
    let interrupter = mysql.interrupter();
    // The server's place is taken by somebody who greets and is silent then.
    std::fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    let silent = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&packet(0, GREETING)).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        interrupter.interrupt();
    });
    let error = mysql.reconnect().unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConnectionLost, "{error}");
    silent.join().unwrap();
}

#[test]
fn a_server_that_is_too_old_is_refused() {
    let folder = Folder::new("impostor");
    let greeting = b"\x0a5.1.73\0\x01\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\x0f\x80\x15\
        \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0\0\0";
    let error = Mysql::connect(&impostor(&folder, packet(0, greeting), Vec::new())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(error.message.contains("(5.1.73) is older"), "{error}");
}
