//! Point reads of a YCSB row by one client library, to see from outside what CPU time they take.
//!
//!     client-libraries load mysql|postgresql ADDRESS RECORDS
//!     client-libraries dyno-mysql|mysql|dyno-postgresql|postgres ADDRESS RECORDS THREADS OPERATIONS
//!
//! Those whose names begin with dyno are its own clients. ADDRESS is a port on 127.0.0.1 or a socket file; `root` enters without a password. Each operation
//! reads one row of eleven columns by its key, by a prepared statement, and looks at each value.

use std::error::Error;
use std::thread;
use std::time::Duration;

use dyno_sql::{Address, Connection, Limits, Mysql, Postgres, Row, Server, Value};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use postgres::NoTls;

const FIELDS: usize = 10;
const FIELD_LENGTH: usize = 100;
const KEY_LENGTH: usize = 14;
const QUERY: &str = "SELECT * FROM usertable WHERE ycsb_key = ?";
const DATABASE: &str = "ycsb";

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["load", "mysql", address, records] => {
            load(&mut Mysql::connect(&server(address))?, records.parse()?)
        }
        ["load", "postgresql", address, records] => {
            load(&mut Postgres::connect(&server(address))?, records.parse()?)
        }
        [library, address, records, threads, operations] => {
            let each: fn(&str, Keys, u64) -> Answer<()> = match library {
                "dyno-mysql" => |address: &str, keys, operations| {
                    by_dyno(Mysql::connect(&server(address))?, keys, operations)
                },
                "dyno-postgresql" => |address: &str, keys, operations| {
                    by_dyno(Postgres::connect(&server(address))?, keys, operations)
                },
                "mysql" => by_mysql,
                "postgres" => by_postgres,
                _ => return Err("see the head of src/main.rs for the libraries".into()),
            };
            let (records, threads): (u64, u64) = (records.parse()?, threads.parse()?);
            let operations = operations.parse::<u64>()? / threads;
            thread::scope(|scope| {
                let clients: Vec<_> = (0..threads)
                    .map(|seed| {
                        scope.spawn(move || each(address, Keys::new(seed, records), operations))
                    })
                    .collect();
                for client in clients {
                    client.join().map_err(|_| "a client panicked")??;
                }
                Ok(())
            })
        }
        _ => Err("see the head of src/main.rs for the arguments".into()),
    }
}

/// Keys drawn uniformly, by Marsaglia's xorshift.
struct Keys {
    state: u64,
    records: u64,
    text: String,
}

impl Keys {
    fn new(seed: u64, records: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            records,
            text: String::new(),
        }
    }

    fn next(&mut self) -> &str {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let number = self.state % self.records;
        self.text.clear();
        write_key(&mut self.text, number);
        &self.text
    }
}

fn write_key(text: &mut String, number: u64) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    let _ = write!(text, "user{number:010}");
}

fn by_dyno(mut connection: impl Connection, mut keys: Keys, operations: u64) -> Answer<()> {
    let mut statement = connection.prepare(QUERY)?;
    for _ in 0..operations {
        let mut length = 0;
        let rows = connection.query(&mut statement, &[Value::Text(keys.next())], |row| {
            for _ in 0..=FIELDS {
                length += row.text()?.len();
            }
            Ok(())
        })?;
        check(rows, length)?;
    }
    Ok(())
}

fn by_mysql(address: &str, mut keys: Keys, operations: u64) -> Answer<()> {
    let options = OptsBuilder::new()
        .user(Some("root"))
        .db_name(Some(DATABASE))
        .prefer_socket(false);
    let options = match address.parse() {
        Ok(port) => options.ip_or_hostname(Some("127.0.0.1")).tcp_port(port),
        Err(_) => options.socket(Some(address)),
    };
    let mut connection = Conn::new(options)?;
    let statement = connection.prep(QUERY)?;
    for _ in 0..operations {
        let mut length = 0;
        let mut rows = 0;
        for row in connection.exec_iter(&statement, (keys.next(),))? {
            let row = row?;
            for column in 0..=FIELDS {
                if let Some(mysql::Value::Bytes(value)) = row.as_ref(column) {
                    length += value.len();
                }
            }
            rows += 1;
        }
        check(rows, length)?;
    }
    Ok(())
}

fn by_postgres(address: &str, mut keys: Keys, operations: u64) -> Answer<()> {
    let mut options = postgres::Config::new();
    options.user("root").dbname(DATABASE);
    match (address.parse(), address.rsplit_once("/.s.PGSQL.")) {
        (Ok(port), _) => options.host("127.0.0.1").port(port),
        (_, Some((folder, port))) => options.host_path(folder).port(port.parse()?),
        _ => return Err(format!("{address} is no port and no socket of PostgreSQL").into()),
    };
    let mut client = options.connect(NoTls)?;
    let statement = client.prepare(&QUERY.replace('?', "$1"))?;
    for _ in 0..operations {
        let mut length = 0;
        let rows = client.query(&statement, &[&keys.next()])?;
        for row in &rows {
            for column in 0..=FIELDS {
                length += row.try_get::<_, &str>(column)?.len();
            }
        }
        check(rows.len() as u64, length)?;
    }
    Ok(())
}

fn check(rows: u64, length: usize) -> Answer<()> {
    if (rows, length) == (1, KEY_LENGTH + FIELDS * FIELD_LENGTH) {
        Ok(())
    } else {
        Err(format!("{rows} rows of {length} bytes").into())
    }
}

fn server(address: &str) -> Server {
    let limit = Duration::from_secs(60);
    Server {
        address: match address.parse() {
            Ok(port) => Address::Tcp("127.0.0.1".to_owned(), port),
            Err(_) => Address::Unix(address.into()),
        },
        user: "root".to_owned(),
        password: None,
        database: DATABASE.to_owned(),
        limits: Limits {
            connect: limit,
            read: limit,
            write: limit,
        },
    }
}

fn load(connection: &mut impl Connection, records: u64) -> Answer<()> {
    let names: Vec<String> = (0..FIELDS).map(|field| format!("field{field}")).collect();
    let columns: Vec<String> = names.iter().map(|name| format!(", {name} TEXT")).collect();
    connection.run(&format!(
        "CREATE TABLE usertable(ycsb_key VARCHAR(64) PRIMARY KEY{})",
        columns.concat()
    ))?;
    let mut columns = vec!["ycsb_key"];
    columns.extend(names.iter().map(String::as_str));
    let field = "x".repeat(FIELD_LENGTH);
    let mut keys = Vec::new();
    for number in 0..records {
        let mut key = String::new();
        write_key(&mut key, number);
        keys.push(key);
    }
    for keys in keys.chunks(1000) {
        let values: Vec<Value<'_>> = keys
            .iter()
            .flat_map(|key| std::iter::once(Value::Text(key)).chain([Value::Text(&field); FIELDS]))
            .collect();
        connection.insert_rows("usertable", &columns, &values)?;
    }
    Ok(())
}
