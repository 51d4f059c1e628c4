//! Connections of tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dyno_servers::Mariadb;
use dyno_sql::{Address, Connection, Limits, Mysql, Result, Row, Server, Value};

/// Long enough for a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(30);

pub const LIMITS: Limits = Limits {
    connect: LONG,
    read: LONG,
    write: LONG,
};

/// As `root`, who has no password.
pub fn root(address: Address, database: &str) -> Server {
    Server {
        address,
        user: "root".into(),
        password: None,
        database: database.into(),
        limits: LIMITS,
    }
}

pub fn tcp(port: u16) -> Address {
    Address::Tcp("127.0.0.1".into(), port)
}

pub fn unix(path: impl Into<std::path::PathBuf>) -> Address {
    Address::Unix(path.into())
}

/// A new database of a server that is shared, and a connection to it.
pub struct Database {
    pub server: Server,
    pub mysql: Mysql,
    /// It runs while the test does.
    _mariadb: Arc<Mariadb>,
}

impl Database {
    pub fn new() -> Self {
        let mariadb = Mariadb::shared();
        let server = with_database(unix(mariadb.socket()));
        let mysql = Mysql::connect(&server).unwrap();
        Self {
            server,
            mysql,
            _mariadb: mariadb,
        }
    }

    /// Another connection to it.
    pub fn another(&self) -> Mysql {
        Mysql::connect(&self.server).unwrap()
    }
}

/// A new database of a server, as whom to enter it.
pub fn with_database(address: Address) -> Server {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut mysql = Mysql::connect(&root(address.clone(), "")).unwrap();
    mysql.run(&format!("CREATE DATABASE {name}")).unwrap();
    root(address, &name)
}

/// The whole numbers of all rows' first columns.
pub fn ints(mysql: &mut Mysql, sql: &str, values: &[Value<'_>]) -> Result<Vec<i64>> {
    let mut statement = mysql.prepare(sql)?;
    let mut found = Vec::new();
    mysql.query(&mut statement, values, |row| {
        found.push(row.int()?);
        Ok(())
    })?;
    Ok(found)
}

/// The one whole number that a query gives.
pub fn int(mysql: &mut Mysql, sql: &str) -> i64 {
    let found = ints(mysql, sql, &[]).unwrap();
    assert_eq!(found.len(), 1, "{sql}");
    found[0]
}

/// The text of the first column of the first row.
pub fn text(mysql: &mut Mysql, sql: &str) -> String {
    let mut statement = mysql.prepare(sql).unwrap();
    let mut found = None;
    mysql
        .query(&mut statement, &[], |row| {
            let text = String::from_utf8(row.text()?.to_vec()).unwrap();
            found.get_or_insert(text);
            Ok(())
        })
        .unwrap();
    found.unwrap()
}
