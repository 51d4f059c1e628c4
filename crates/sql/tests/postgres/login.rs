//! Entering a server, and being refused.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::support::*;

/// An account with a password, which is the account's own name and a letter beyond ASCII.
fn account(server: &Running, user: &str, encryption: &str) -> Server {
    let mut owner = enter(&by_socket(server));
    let password = format!("{user} ö'");
    owner
        .run(&format!(
            "SET password_encryption = '{encryption}'; DROP ROLE IF EXISTS {user}; \
             CREATE ROLE {user} LOGIN PASSWORD '{}'",
            password.replace('\'', "''")
        ))
        .unwrap();
    Server {
        user: user.to_owned(),
        password: Some(password),
        ..by_tcp(server)
    }
}

fn enters_only_with_its_password(server: &Server) {
    assert!(in_step(&mut enter(server)));
    let wrong = Server {
        password: Some("guessed".to_owned()),
        ..server.clone()
    };
    let error = refusal(&wrong);
    assert_eq!(error.kind, ErrorKind::AccessDenied, "{error}");
    assert!(
        error.message.contains("28P01") && error.message.contains(&server.user),
        "{error}"
    );
    let none = Server {
        password: None,
        ..server.clone()
    };
    let error = refusal(&none);
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("asks for a password"), "{error}");
}

#[test]
fn an_account_without_password_enters_over_the_socket_and_tcp() {
    let server = shared();
    for mut connection in both_ways(&server) {
        assert!(in_step(&mut connection));
        let major: u32 = connection
            .version()
            .split(['.', ' '])
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert!(major >= 13, "{}", connection.version());
    }
}

#[test]
fn scram_lets_in_who_knows_the_password() {
    let server = shared();
    let by_tcp = account(&server, "by_scram", "scram-sha-256");
    enters_only_with_its_password(&by_tcp);
    enters_only_with_its_password(&Server {
        address: by_socket(&server).address,
        ..by_tcp
    });
}

#[test]
fn md5_lets_in_who_knows_the_password() {
    enters_only_with_its_password(&account(&shared(), "by_md5", "md5"));
}

#[test]
fn a_password_in_clear_lets_in_who_knows_it() {
    enters_only_with_its_password(&account(&shared(), "by_password", "scram-sha-256"));
}

#[test]
fn an_unknown_account_is_denied() {
    let server = shared();
    for server in [by_socket(&server), by_tcp(&server)] {
        let error = refusal(&Server {
            user: "nobody".to_owned(),
            ..server
        });
        assert_eq!(error.kind, ErrorKind::AccessDenied);
        assert!(
            error.message.contains("\"nobody\" does not exist"),
            "{error}"
        );
        assert!(!error.message.contains("TLS"), "{error}");
    }
}

#[test]
fn a_missing_database_is_refused_by_name() {
    let server = shared();
    let error = refusal(&Server {
        database: "nowhere".to_owned(),
        ..by_tcp(&server)
    });
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(
        error
            .message
            .contains("\"nowhere\" does not exist (SQLSTATE 3D000)"),
        "{error}"
    );
    assert!(
        error
            .message
            .contains(&format!("127.0.0.1:{}", server.port())),
        "{error}"
    );
}

#[test]
fn a_server_that_insists_on_tls_is_told_that_there_is_none() {
    let error = refusal(&account(&shared(), "by_tls", "scram-sha-256"));
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("dyno speaks none"), "{error}");
}

#[test]
fn a_server_without_a_free_place_is_unavailable() {
    let server = shared();
    let mut owner = enter(&by_socket(&server));
    owner
        .run("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN CONNECTION LIMIT 1")
        .unwrap();
    let one = Server {
        user: "plain".to_owned(),
        ..by_socket(&server)
    };
    let mut first = enter(&one);
    assert_eq!(refusal(&one).kind, ErrorKind::Unavailable);
    assert!(in_step(&mut first));
}

#[test]
fn nobody_listening_is_no_connection() {
    let port = dyno_servers::free_port();
    let error = refusal(&at(Address::Tcp("127.0.0.1".to_owned(), port)));
    assert_eq!(error.kind, ErrorKind::Connect);
    let error = refusal(&at(Address::Unix("/nowhere/.s.PGSQL.5432".into())));
    assert_eq!(error.kind, ErrorKind::Connect);
}

#[test]
fn a_server_that_never_answers_is_no_connection() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = Address::Tcp("127.0.0.1".to_owned(), silent.local_addr().unwrap().port());
    let mut server = at(address);
    server.limits.connect = Duration::from_millis(100);
    let since = Instant::now();
    let error = refusal(&server);
    assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    assert!(since.elapsed() < LIMITS.connect);
}

/// A peer that says a byte now and then was once waited for as long as it liked: each byte renewed the limit.
#[test]
fn a_peer_that_trickles_is_no_connection_by_the_end_of_the_limit() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A notice of 4096 bytes.
        stream.write_all(b"N\0\0\x10\0").unwrap();
        while stream.write_all(b"8").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut server = at(Address::Tcp("127.0.0.1".to_owned(), port));
    server.limits.connect = Duration::from_millis(500);
    let since = Instant::now();
    let error = refusal(&server);
    assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    let took = since.elapsed();
    assert!((0.45..5.0).contains(&took.as_secs_f64()), "{took:?}");
}
