//! A server for all tests, and short words for what they do with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use dyno_servers::{Postgres as Running, Shared, wait_until};

/// Longer than anything takes that comes about at all.
pub const LONG: std::time::Duration = std::time::Duration::from_secs(60);
pub use dyno_sql::{
    Address, Connection, Error, ErrorKind, Limits, Postgres, Result, Row, Server, Value,
};

static SHARED: Shared<Running> = Shared::new();

/// The way in of accounts other than the superuser, by name.
const ACCESS: [&str; 6] = [
    "host all by_scram samehost scram-sha-256",
    "local all by_scram scram-sha-256",
    "host all by_md5 samehost md5",
    "host all by_password samehost password",
    "hostssl all by_tls samehost trust",
    "local all plain trust",
];

/// A server that nobody hurts.
pub fn shared() -> Arc<Running> {
    SHARED.get(|| Running::start(&["deadlock_timeout=20ms"], &ACCESS))
}

pub const LIMITS: Limits = Limits {
    connect: Duration::from_secs(20),
    read: Duration::from_secs(20),
    write: Duration::from_secs(20),
};

pub fn at(address: Address) -> Server {
    Server {
        address,
        user: "dyno".to_owned(),
        password: None,
        database: "postgres".to_owned(),
        limits: LIMITS,
    }
}

pub fn by_socket(server: &Running) -> Server {
    at(Address::Unix(server.socket()))
}

pub fn by_tcp(server: &Running) -> Server {
    at(Address::Tcp("127.0.0.1".to_owned(), server.port()))
}

pub fn enter(server: &Server) -> Postgres {
    Postgres::connect(server).unwrap()
}

/// Why a log-in fails.
pub fn refusal(server: &Server) -> Error {
    match Postgres::connect(server) {
        Ok(_) => panic!("it lets {} in", server.user),
        Err(error) => error,
    }
}

/// A connection of each sort.
pub fn both_ways(server: &Running) -> [Postgres; 2] {
    [enter(&by_socket(server)), enter(&by_tcp(server))]
}

/// A name that no other table has.
pub fn table(connection: &mut Postgres, columns: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    connection
        .run(&format!(
            "DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({columns})"
        ))
        .unwrap();
    name
}

/// The one whole number that a statement gives.
pub fn number(connection: &mut Postgres, sql: &str) -> i64 {
    let mut statement = connection.prepare(sql).unwrap();
    let mut number = None;
    let rows = connection.query(&mut statement, &[], |row| {
        number = Some(row.int()?);
        Ok(())
    });
    assert_eq!(rows, Ok(1));
    number.unwrap()
}

pub fn count(connection: &mut Postgres, table: &str) -> i64 {
    number(connection, &format!("SELECT count(*) FROM {table}"))
}

/// Whether operations still give what they must: the connection is in step.
pub fn in_step(connection: &mut Postgres) -> bool {
    number(connection, "SELECT 42") == 42
}

pub fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind
}
