//! Who may enter, how, and what is said to whom may not.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use dyno_servers::Mariadb;
use dyno_sql::{Address, Connection, Error, ErrorKind, Mysql, Server};

use crate::support::{int, root, tcp, text, unix};

fn refused(server: &Server) -> Error {
    Mysql::connect(server).unwrap_err()
}

fn as_user(address: &Address, user: &str, password: Option<&str>) -> Server {
    Server {
        user: user.into(),
        password: password.map(str::to_owned),
        ..root(address.clone(), "")
    }
}

#[test]
fn an_account_with_a_password_enters_over_tcp_and_by_the_socket_file() {
    let mariadb = Mariadb::shared();
    let mut root = Mysql::connect(&root(unix(mariadb.socket()), "mysql")).unwrap();
    root.run("CREATE USER ann@'%' IDENTIFIED BY 'sesame'")
        .unwrap();
    for address in [tcp(mariadb.port()), unix(mariadb.socket())] {
        let mut mysql = Mysql::connect(&as_user(&address, "ann", Some("sesame"))).unwrap();
        assert!(text(&mut mysql, "SELECT CURRENT_USER()").starts_with("ann@"));
        let version = mysql.version();
        assert!(version.contains("-MariaDB"), "{version}");
        assert!(!version.starts_with("5.5.5-"), "{version}");

        for wrong in [Some("simsim"), Some(""), None] {
            let error = refused(&as_user(&address, "ann", wrong));
            assert_eq!(error.kind, ErrorKind::AccessDenied);
            assert!(error.message.contains("(1045, SQLSTATE 28000)"), "{error}");
            assert!(error.message.contains("as ann"), "{error}");
        }
    }
    root.run("DROP USER ann@'%'").unwrap();
}

#[test]
fn an_account_without_a_password_enters() {
    let mariadb = Mariadb::shared();
    for address in [tcp(mariadb.port()), unix(mariadb.socket())] {
        let mut mysql = Mysql::connect(&root(address, "mysql")).unwrap();
        assert_eq!(text(&mut mysql, "SELECT DATABASE()"), "mysql");
    }
}

#[test]
fn text_of_the_connection_is_utf8_with_all_characters() {
    let mariadb = Mariadb::shared();
    let mut mysql = Mysql::connect(&root(unix(mariadb.socket()), "")).unwrap();
    assert_eq!(text(&mut mysql, "SELECT @@character_set_client"), "utf8mb4");
    assert_eq!(text(&mut mysql, "SELECT 'größer als 🐬'"), "größer als 🐬");
    assert_eq!(int(&mut mysql, "SELECT CHAR_LENGTH('🐬')"), 1);
}

#[test]
fn a_missing_database_is_named() {
    let mariadb = Mariadb::shared();
    let error = refused(&root(unix(mariadb.socket()), "nowhere"));
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(
        error.message.contains("Unknown database 'nowhere' (1049"),
        "{error}"
    );
}

#[test]
fn an_account_that_logs_in_by_something_else_is_told_by_what() {
    let mariadb = Mariadb::start();
    let address = unix(mariadb.socket());
    let mut root = Mysql::connect(&root(address.clone(), "")).unwrap();
    root.run(
        "INSTALL SONAME 'auth_ed25519';
         CREATE USER eve IDENTIFIED VIA ed25519 USING PASSWORD('x');
         CREATE USER sam IDENTIFIED VIA unix_socket;
         CREATE USER ted IDENTIFIED VIA pam",
    )
    .unwrap_or_else(|error| assert!(error.message.contains("'pam' is not loaded"), "{error}"));
    let error = refused(&as_user(&address, "eve", Some("x")));
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("ed25519"), "{error}");
    // The server asks whose process it is, and knows that this is another.
    let error = refused(&as_user(&address, "sam", None));
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("'sam'@"), "{error}");
}

#[test]
fn nobody_at_the_address_is_no_connection() {
    let folder = dyno_servers::Folder::new("nobody");
    let nobody = [
        unix(folder.path().join("socket")),
        tcp(dyno_servers::free_port()),
    ];
    for address in nobody {
        let error = refused(&root(address, ""));
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    }
}

#[test]
fn a_server_with_all_connections_taken_is_unavailable_and_not_for_ever() {
    let mariadb = Mariadb::start_with(&["--max-connections=10"]);
    let address = unix(mariadb.socket());
    let mut root = Mysql::connect(&root(address.clone(), "")).unwrap();
    root.run("CREATE USER ann").unwrap();
    let ann = as_user(&address, "ann", None);
    let mut taken = Vec::new();
    let error = loop {
        match Mysql::connect(&ann) {
            Ok(mysql) => taken.push(mysql),
            Err(error) => break error,
        }
        assert!(taken.len() <= 10);
    };
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("(1040"), "{error}");
    // Connections that are dropped are closed, also where somebody could still interrupt them.
    let interrupters: Vec<_> = taken.iter().map(Connection::interrupter).collect();
    taken.clear();
    dyno_servers::wait_until(crate::support::LIMITS.read, "a free connection", || {
        Mysql::connect(&ann).is_ok()
    });
    drop(interrupters);
}

/// A peer that says a byte now and then was once waited for as long as it liked: each byte renewed the limit.
#[test]
fn a_peer_that_trickles_is_no_connection_by_the_end_of_the_limit() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A greeting of 4096 bytes.
        stream.write_all(&[0, 16, 0, 0, 10]).unwrap();
        while stream.write_all(b"8").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut server = root(tcp(port), "");
    server.limits.connect = Duration::from_millis(500);
    let since = Instant::now();
    let error = refused(&server);
    assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    let took = since.elapsed();
    assert!((0.45..5.0).contains(&took.as_secs_f64()), "{took:?}");
}
