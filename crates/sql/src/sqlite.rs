//! `SQLite` within this process, as one more connection.
//!
//! Nothing is connected: a [`Session`] holds the prepared statements of one thread's database. It does
//! not change how the database waits for locks; whoever opened it has set that.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, Rows, Statement, ffi};

use crate::{Connection, Dialect, Error, ErrorKind, Interrupter, Result, Value};

/// As what an error of the library counts.
#[must_use]
pub fn classify(error: &rusqlite::Error) -> Error {
    let kind = match error {
        rusqlite::Error::SqliteFailure(cause, _) => match cause.code {
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => ErrorKind::Busy,
            ErrorCode::ConstraintViolation => ErrorKind::DuplicateKey,
            ErrorCode::SystemIoFailure => ErrorKind::Io,
            ErrorCode::OutOfMemory => ErrorKind::OutOfMemory,
            ErrorCode::DiskFull => ErrorKind::DiskFull,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Corrupt,
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => ErrorKind::CannotOpen,
            ErrorCode::ReadOnly => ErrorKind::ReadOnly,
            _ => ErrorKind::Refused,
        },
        _ => ErrorKind::Refused,
    };
    Error::new(kind, error.to_string())
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        classify(&error)
    }
}

/// One of a connection's own counters since it was opened; 0 where the library does not know it.
fn counter(database: &rusqlite::Connection, which: std::ffi::c_int) -> f64 {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: the handle is valid while `database` is borrowed, no other thread uses it meanwhile,
    // and both numbers outlive the call, which only writes to them.
    #[allow(unsafe_code)]
    let code = unsafe {
        let handle = database.handle();
        ffi::sqlite3_db_status64(handle, which, &raw mut current, &raw mut highest, 0)
    };
    if code == ffi::SQLITE_OK {
        current as f64
    } else {
        0.0
    }
}

/// How many pages a connection has read since it was opened, which were not in its cache.
#[must_use]
pub fn pages_read(database: &rusqlite::Connection) -> f64 {
    counter(database, ffi::SQLITE_DBSTATUS_CACHE_MISS)
}

/// The number of a statement in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(usize);

/// One thread's statements on a database that it borrows.
#[derive(Debug)]
pub struct Session<'c> {
    database: &'c rusqlite::Connection,
    statements: Vec<Statement<'c>>,
    /// Statements of [`Connection::run`] and [`Connection::insert_rows`], by their text.
    kept: Vec<(String, Statement<'c>)>,
    interrupter: Interrupter,
}

impl<'c> Session<'c> {
    /// A session without statements.
    #[must_use]
    pub fn new(database: &'c rusqlite::Connection) -> Self {
        Self {
            database,
            statements: Vec::new(),
            kept: Vec::new(),
            interrupter: Interrupter::default(),
        }
    }

    /// The database below.
    #[must_use]
    pub const fn database(&self) -> &'c rusqlite::Connection {
        self.database
    }

    /// The statement with that text, prepared at its first use.
    fn keep(&mut self, sql: &str) -> Result<&mut Statement<'c>> {
        let known = self.kept.iter().position(|(text, _)| text == sql);
        let place = known.unwrap_or(self.kept.len());
        if known.is_none() {
            let statement = self.database.prepare(sql)?;
            self.kept.push((sql.to_owned(), statement));
        }
        Ok(&mut self.kept[place].1)
    }

    fn insert_all(&mut self, sql: &str, width: usize, values: &[Value<'_>]) -> Result<()> {
        let insert = self.keep(sql)?;
        for row in values.chunks(width) {
            bind(insert, row)?;
            insert.raw_execute()?;
        }
        Ok(())
    }

    /// Leaves no transaction open. The error that led here is the one to report.
    fn roll_back(&mut self) {
        if !self.database.is_autocommit() {
            let _ = self.database.execute_batch("ROLLBACK");
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn bind(statement: &mut Statement<'_>, values: &[Value<'_>]) -> Result<()> {
    let expected = statement.parameter_count();
    if values.len() != expected {
        return Err(Error::new(
            ErrorKind::Refused,
            format!(
                "a statement takes {expected} values and got {}",
                values.len()
            ),
        ));
    }
    for (place, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, value)?;
    }
    Ok(())
}

fn unknown(handle: Handle) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!("statement {} is not prepared in this session", handle.0),
    )
}

/// Shows every row to `each`, also those after its first error, which is given back in the end.
fn read(mut rows: Rows<'_>, mut each: impl FnMut(&mut Row<'_>) -> Result<()>) -> Result<u64> {
    let mut count = 0;
    let mut ended = Ok(());
    while let Some(row) = rows.next()? {
        count += 1;
        if ended.is_ok() {
            ended = each(&mut Row { row, next: 0 });
        }
    }
    ended.map(|()| count)
}

impl Connection for Session<'_> {
    type Statement = Handle;
    type Row<'r> = Row<'r>;
    const DIALECT: Dialect = Dialect::Sqlite;

    fn prepare(&mut self, sql: &str) -> Result<Handle> {
        self.statements.push(self.database.prepare(sql)?);
        Ok(Handle(self.statements.len() - 1))
    }

    fn execute(&mut self, statement: &mut Handle, values: &[Value<'_>]) -> Result<u64> {
        let handle = *statement;
        let statement = self.statements.get_mut(handle.0);
        let statement = statement.ok_or_else(|| unknown(handle))?;
        bind(statement, values)?;
        Ok(statement.raw_execute()? as u64)
    }

    fn query(
        &mut self,
        statement: &mut Handle,
        values: &[Value<'_>],
        each: impl FnMut(&mut Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        let handle = *statement;
        let statement = self.statements.get_mut(handle.0);
        let statement = statement.ok_or_else(|| unknown(handle))?;
        bind(statement, values)?;
        read(statement.raw_query(), each)
    }

    fn insert_rows(&mut self, table: &str, columns: &[&str], values: &[Value<'_>]) -> Result<()> {
        let width = columns.len();
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} values are no rows of {width} columns", values.len()),
            ));
        }
        let sql = format!(
            "INSERT INTO {table}({}) VALUES({})",
            columns.join(","),
            vec!["?"; width].join(",")
        );
        if !self.database.is_autocommit() {
            return self.insert_all(&sql, width, values);
        }
        self.run("BEGIN IMMEDIATE")?;
        let ended = self
            .insert_all(&sql, width, values)
            .and_then(|()| self.run("COMMIT"));
        if ended.is_err() {
            self.roll_back();
        }
        ended
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        // Transactions begin and end again and again: their statements are worth keeping.
        if ["BEGIN", "COMMIT", "ROLLBACK"]
            .iter()
            .any(|word| sql.starts_with(word))
            && !sql.contains(';')
        {
            self.keep(sql)?.raw_execute()?;
        } else {
            self.database.execute_batch(sql)?;
        }
        Ok(())
    }

    /// Ends an open transaction and forgets all statements.
    fn reconnect(&mut self) -> Result<()> {
        self.statements.clear();
        self.kept.clear();
        self.roll_back();
        Ok(())
    }

    fn version(&self) -> &str {
        rusqlite::version()
    }

    /// Has nothing to end: a session waits for locks alone, as the database was told when it was opened.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        [
            ("cache_hits", ffi::SQLITE_DBSTATUS_CACHE_HIT),
            ("cache_misses", ffi::SQLITE_DBSTATUS_CACHE_MISS),
            ("cache_writes", ffi::SQLITE_DBSTATUS_CACHE_WRITE),
            ("cache_spills", ffi::SQLITE_DBSTATUS_CACHE_SPILL),
        ]
        .map(|(name, which)| (name, counter(self.database, which)))
        .into()
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}

/// A row, read column by column.
#[derive(Debug)]
pub struct Row<'r> {
    row: &'r rusqlite::Row<'r>,
    next: usize,
}

impl Row<'_> {
    fn column(&mut self) -> Result<(usize, ValueRef<'_>)> {
        let place = self.next;
        self.next += 1;
        Ok((place, self.row.get_ref(place)?))
    }
}

fn unexpected(place: usize, value: ValueRef<'_>, wanted: &str) -> Error {
    Error::new(
        ErrorKind::WrongValue,
        format!(
            "column {} holds a value of type {}, expected {wanted}",
            place + 1,
            value.data_type()
        ),
    )
}

impl crate::Row for Row<'_> {
    fn int(&mut self) -> Result<i64> {
        match self.column()? {
            (_, ValueRef::Integer(number)) => Ok(number),
            (place, other) => Err(unexpected(place, other, "a whole number")),
        }
    }

    fn int_or_null(&mut self) -> Result<Option<i64>> {
        match self.column()? {
            (_, ValueRef::Integer(number)) => Ok(Some(number)),
            (_, ValueRef::Null) => Ok(None),
            (place, other) => Err(unexpected(place, other, "a whole number or NULL")),
        }
    }

    fn text(&mut self) -> Result<&[u8]> {
        match self.column()? {
            (_, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Ok(bytes),
            (place, other) => Err(unexpected(place, other, "text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row as _;

    fn database() -> rusqlite::Connection {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, number BIGINT)";
        database.execute_batch(table).unwrap();
        database
    }

    const COLUMNS: [&str; 3] = ["id", "name", "number"];

    fn three_rows(session: &mut Session<'_>) {
        let values = [
            [Value::Int(1), Value::Text("one"), Value::Int(-10)],
            [Value::Int(2), Value::Text("zwei"), Value::Null],
            [Value::Int(3), Value::Text(""), Value::Int(i64::MAX)],
        ];
        session
            .insert_rows("t", &COLUMNS, &values.concat())
            .unwrap();
    }

    fn count(session: &mut Session<'_>) -> i64 {
        let mut select = session.prepare("SELECT COUNT(*) FROM t").unwrap();
        let mut count = 0;
        session
            .query(&mut select, &[], |row| {
                count = row.int()?;
                Ok(())
            })
            .unwrap();
        count
    }

    #[test]
    fn values_come_back_as_they_went() {
        let database = database();
        let mut session = Session::new(&database);
        three_rows(&mut session);
        let mut select = session
            .prepare("SELECT name, number FROM t WHERE id = ?")
            .unwrap();
        let mut seen = Vec::new();
        let ids = [Value::Int(3), Value::Int(2), Value::Int(9), Value::Int(1)];
        let rows = session
            .query_each(&mut select, &ids, 1, |set, row| {
                let name = String::from_utf8(row.text()?.to_vec()).unwrap();
                seen.push((set, name, row.int_or_null()?));
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, 3);
        assert_eq!(
            seen,
            [
                (0, String::new(), Some(i64::MAX)),
                (1, "zwei".to_owned(), None),
                (3, "one".to_owned(), Some(-10)),
            ]
        );
    }

    #[test]
    fn a_statement_says_how_many_rows_it_met_also_where_nothing_changed() {
        let database = database();
        let mut session = Session::new(&database);
        three_rows(&mut session);
        let mut update = session
            .prepare("UPDATE t SET name = ? WHERE id < ?")
            .unwrap();
        let values = [Value::Text("one"), Value::Int(3)];
        assert_eq!(session.execute(&mut update, &values), Ok(2));
        assert_eq!(session.execute(&mut update, &values), Ok(2));
        let sets = [values, [Value::Text("x"), Value::Int(2)]].concat();
        assert_eq!(session.execute_each(&mut update, &sets, 2), Ok(3));
    }

    #[test]
    fn a_wrong_type_a_wrong_number_of_values_and_a_double_key_are_told_apart() {
        let database = database();
        let mut session = Session::new(&database);
        three_rows(&mut session);
        let mut select = session.prepare("SELECT name FROM t WHERE id < ?").unwrap();
        let mut shown = 0;
        let error = session
            .query(&mut select, &[Value::Int(3)], |row| {
                shown += 1;
                row.int().map(|_| ())
            })
            .unwrap_err();
        assert_eq!((error.kind, shown), (ErrorKind::WrongValue, 1));
        let error = session.execute(&mut select, &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        let mut insert = session.prepare("INSERT INTO t(id) VALUES(?)").unwrap();
        let error = session.execute(&mut insert, &[Value::Int(1)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateKey);
    }

    #[test]
    fn rows_are_added_all_or_none() {
        let database = database();
        let mut session = Session::new(&database);
        let doubled = [Value::Int(1), Value::Null, Value::Null].repeat(2);
        let error = session.insert_rows("t", &COLUMNS, &doubled).unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateKey);
        assert_eq!(count(&mut session), 0);
        assert!(database.is_autocommit());
        session.run("BEGIN").unwrap();
        three_rows(&mut session);
        session.run("ROLLBACK").unwrap();
        assert_eq!(count(&mut session), 0);
    }

    #[test]
    fn connecting_anew_ends_the_transaction_and_forgets_the_statements() {
        let database = database();
        let mut session = Session::new(&database);
        session.run("BEGIN IMMEDIATE").unwrap();
        three_rows(&mut session);
        let mut select = session.prepare("SELECT id FROM t").unwrap();
        session.reconnect().unwrap();
        let error = session.query(&mut select, &[], |_| Ok(())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert_eq!(count(&mut session), 0);
        session.run("BEGIN IMMEDIATE").unwrap();
    }

    #[test]
    fn a_lock_held_by_another_is_busy() {
        let path = std::env::temp_dir().join(format!("dyno-sql-busy-{}.db", std::process::id()));
        let first = rusqlite::Connection::open(&path).unwrap();
        let second = rusqlite::Connection::open(&path).unwrap();
        second.busy_timeout(std::time::Duration::ZERO).unwrap();
        Session::new(&first).run("BEGIN IMMEDIATE").unwrap();
        let error = Session::new(&second).run("BEGIN IMMEDIATE").unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.kind, ErrorKind::Busy);
    }
}
