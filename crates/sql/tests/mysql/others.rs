//! `MySQL` itself: how it has one log in, and what it does otherwise than `MariaDB`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use dyno_servers::{Folder, Mysql as MysqlServer};
use dyno_sql::{Address, Connection, ErrorKind, Mysql, Row, Server, Value};

use crate::statements::{altered, pipelined};
use crate::support::{int, root, tcp, text, unix, with_database};

/// What a server said to a client, by someone in between.
type Heard = Arc<Mutex<Vec<u8>>>;

fn copy(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static, heard: Heard) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            heard.lock().unwrap().extend(&buffer[..read]);
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
    });
}

/// Stands between one client and a server, on a connection of the same kind.
fn listen_in(address: &Address, folder: &Folder) -> (Address, Heard) {
    let heard = Heard::default();
    let (told, own) = (Heard::clone(&heard), Heard::default());
    let between = match address.clone() {
        Address::Tcp(_, port) => {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let between = listener.local_addr().unwrap().port();
            thread::spawn(move || {
                let (client, _) = listener.accept().unwrap();
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                copy(
                    client.try_clone().unwrap(),
                    server.try_clone().unwrap(),
                    own,
                );
                copy(server, client, told);
            });
            tcp(between)
        }
        Address::Unix(path) => {
            let between = folder.path().join("between");
            let _ = std::fs::remove_file(&between);
            let listener = UnixListener::bind(&between).unwrap();
            thread::spawn(move || {
                let (client, _) = listener.accept().unwrap();
                let server = UnixStream::connect(path).unwrap();
                copy(
                    client.try_clone().unwrap(),
                    server.try_clone().unwrap(),
                    own,
                );
                copy(server, client, told);
            });
            unix(between)
        }
    };
    (between, heard)
}

/// How the server had somebody log in.
#[derive(Debug, PartialEq)]
enum Way {
    /// It knew the password's hash already.
    Fast,
    /// It asked for the password.
    Full,
    /// It asked for it and was asked for its public key.
    FullByKey,
}

fn way(server: &Server) -> Result<Way, dyno_sql::Error> {
    let folder = Folder::new("between");
    let (between, heard) = listen_in(&server.address, &folder);
    let server = Server {
        address: between,
        ..server.clone()
    };
    let mut mysql = Mysql::connect(&server)?;
    assert!(text(&mut mysql, "SELECT CURRENT_USER()").starts_with(&server.user));
    let heard = heard.lock().unwrap();
    let has = |part: &[u8]| heard.windows(part.len()).any(|window| window == part);
    // A packet of two bytes: there is more to do, and what.
    Ok(
        match (has(b"\x02\0\0\x02\x01\x03"), has(b"\x02\0\0\x02\x01\x04")) {
            (true, false) => Way::Fast,
            (false, true) if has(b"BEGIN PUBLIC KEY") => Way::FullByKey,
            (false, true) => Way::Full,
            both => panic!("{both:?}"),
        },
    )
}

#[test]
fn caching_sha2_password_is_asked_for_once_and_known_from_then_on() {
    let mysqld = MysqlServer::shared();
    let socket = unix(mysqld.socket());
    let mut admin = Mysql::connect(&root(socket.clone(), "")).unwrap();
    for (user, password) in [("ann", "sesame"), ("ben", &*"long ".repeat(30))] {
        admin
            .run(&format!("CREATE USER {user} IDENTIFIED BY '{password}'"))
            .unwrap();
        for (address, full) in [
            (socket.clone(), Way::Full),
            (tcp(mysqld.port()), Way::FullByKey),
        ] {
            // The server forgets what it knew.
            admin.run("FLUSH PRIVILEGES").unwrap();
            let mut server = root(address, "");
            server.user = user.into();
            server.password = Some("wrong".into());
            let error = way(&server).unwrap_err();
            assert_eq!(error.kind, ErrorKind::AccessDenied, "{error}");
            assert!(error.message.contains("(1045"), "{error}");
            server.password = None;
            let error = way(&server).unwrap_err();
            assert_eq!(error.kind, ErrorKind::AccessDenied, "{error}");
            server.password = Some(password.into());
            assert_eq!(way(&server), Ok(full));
            assert_eq!(way(&server), Ok(Way::Fast));
            assert_eq!(way(&server), Ok(Way::Fast));
            server.password = Some("wrong".into());
            let error = way(&server).unwrap_err();
            assert_eq!(error.kind, ErrorKind::AccessDenied, "{error}");
        }
    }
}

#[test]
fn mysql_is_told_from_mariadb() {
    let mysqld = MysqlServer::shared();
    let mut mysql = Mysql::connect(&root(unix(mysqld.socket()), "")).unwrap();
    let version = mysql.version().to_owned();
    assert_eq!(version, text(&mut mysql, "SELECT VERSION()"));
    assert!(!version.contains("MariaDB"));
    // A code of MySQL's own.
    let error = mysql
        .run("SELECT /*+ MAX_EXECUTION_TIME(20) */ SLEEP(0.1) + COUNT(*) FROM mysql.user a, mysql.user b, mysql.user c")
        .and_then(|()| mysql.run("SET max_execution_time = 20; SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b"))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(error.message.contains("(3024"), "{error}");
}

#[test]
fn mysql_reads_and_writes_rows() {
    let mysqld = MysqlServer::shared();
    for address in [unix(mysqld.socket()), tcp(mysqld.port())] {
        let server = match address {
            Address::Unix(_) => with_database(address),
            // Over TCP root may not enter.
            Address::Tcp(..) => {
                let server = with_database(unix(mysqld.socket()));
                let mut admin = Mysql::connect(&server).unwrap();
                admin
                    .run(&format!(
                        "CREATE USER tcp; GRANT ALL ON {}.* TO tcp",
                        server.database
                    ))
                    .unwrap();
                Server {
                    user: "tcp".into(),
                    address,
                    ..server
                }
            }
        };
        let mut mysql = Mysql::connect(&server).unwrap();
        mysql
            .run("CREATE TABLE t(k INT UNSIGNED PRIMARY KEY, v TEXT); SELECT * FROM t")
            .unwrap();
        let values: Vec<Value<'_>> = (0..700)
            .flat_map(|k| [Value::Int(k), Value::Text("abc")])
            .collect();
        mysql.insert_rows("t", &["k", "v"], &values).unwrap();
        let mut update = mysql.prepare("UPDATE t SET v = ? WHERE k < ?").unwrap();
        let abc = [Value::Text("abc"), Value::Int(3)];
        assert_eq!(mysql.execute(&mut update, &abc), Ok(3));
        let null = [Value::Null, Value::Int(1)];
        assert_eq!(mysql.execute(&mut update, &null), Ok(1));
        let mut select = mysql
            .prepare("SELECT k, v IS NULL, COALESCE(v, '') FROM t WHERE k <= ? ORDER BY k")
            .unwrap();
        let mut next = 0;
        let rows = mysql.query(&mut select, &[Value::Int(600)], |row| {
            assert_eq!(row.int()?, next);
            assert_eq!(row.int()?, i64::from(next == 0));
            assert_eq!(row.text()?, if next == 0 { &b""[..] } else { b"abc" });
            next += 1;
            Ok(())
        });
        assert_eq!(rows, Ok(601));
        let error = mysql
            .insert_rows("t", &["k", "v"], &values[1000..])
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateKey);
        assert_eq!(int(&mut mysql, "SELECT SUM(k) FROM t"), 700 * 699 / 2);
        mysql.run("DROP TABLE t").unwrap();
        pipelined(&mut mysql);
        mysql.run("DROP TABLE t").unwrap();
        altered(mysql, Mysql::connect(&server).unwrap());
    }
}

#[test]
fn a_server_that_demands_tls_is_told_to_do_without() {
    let mysqld = MysqlServer::start_with(&["--require-secure-transport=ON"]);
    let mut admin = Mysql::connect(&root(unix(mysqld.socket()), "")).unwrap();
    admin.run("CREATE USER ann IDENTIFIED BY 'sesame'").unwrap();
    let mut ann = root(tcp(mysqld.port()), "");
    ann.user = "ann".into();
    ann.password = Some("sesame".into());
    let error = Mysql::connect(&ann).unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("(3159"), "{error}");
    assert!(error.message.contains("no TLS"), "{error}");
}
