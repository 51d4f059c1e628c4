//! Connections to SQL stores: one interface over each of their protocols.
//!
//! A [`Connection`] belongs to one client and blocks, with limits on how long. What is written against
//! it is compiled for each protocol: nothing is decided while operations run.

mod error;
mod mysql;
mod postgres;
pub mod sqlite;
mod stream;

pub use error::{Error, ErrorKind, Result};
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use stream::{Address, Interrupter, Limits, Stream};

/// Where a server is and as whom to enter.
#[derive(Clone, Debug)]
pub struct Server {
    /// A host and port, or a socket file.
    pub address: Address,
    /// The account.
    pub user: String,
    /// Its password; `None` where it needs none.
    pub password: Option<String>,
    /// The database that holds the tables.
    pub database: String,
    /// How long to wait.
    pub limits: Limits,
}

/// A value given to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// Text in UTF-8.
    Text(&'a str),
}

/// What differs between stores in the statements they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `SQLite`.
    Sqlite,
    /// `MariaDB` and `MySQL`.
    Mysql,
    /// `PostgreSQL`.
    Postgresql,
}

/// One client's connection to a store.
///
/// After an error of a kind that [`ErrorKind::breaks_connection`], the connection is of no use until
/// [`Connection::reconnect`] succeeded; all its statements are gone then and must be prepared anew.
///
/// A connection to a server may move between threads; a session of `SQLite` cannot, since it borrows a
/// database that one thread at a time may use. What moves connections asks for `Send` besides.
pub trait Connection {
    /// A prepared statement of this connection.
    type Statement: Send;

    /// A row of an answer.
    // Without `where Self: 'r`: together with the closures below, which take rows of any lifetime, it
    // would shut out every connection that borrows something.
    type Row<'r>: Row;

    /// What its statements must be written in.
    const DIALECT: Dialect;

    /// Prepares a statement. Its parameters are written as `?` in every dialect, so that a `?` must not
    /// stand in it otherwise.
    fn prepare(&mut self, sql: &str) -> Result<Self::Statement>;

    /// Carries out a statement that gives no rows; gives how many rows it met, whether or not their
    /// values changed.
    fn execute(&mut self, statement: &mut Self::Statement, values: &[Value<'_>]) -> Result<u64>;

    /// Carries out a statement that gives rows, and shows each to `each`; gives how many there were.
    /// An error of `each` is given back once the answer was read to its end.
    fn query(
        &mut self,
        statement: &mut Self::Statement,
        values: &[Value<'_>],
        each: impl FnMut(&mut Self::Row<'_>) -> Result<()>,
    ) -> Result<u64>;

    /// As [`Self::execute`] for several sets of values, which stand one behind the other; gives the sum.
    /// Protocols that can send all of them before they read the first answer do so. After an error it is
    /// open which of the later ones were carried out: use it within a transaction.
    fn execute_each(
        &mut self,
        statement: &mut Self::Statement,
        sets: &[Value<'_>],
        width: usize,
    ) -> Result<u64> {
        let mut met = 0;
        for values in sets.chunks(width) {
            met += self.execute(statement, values)?;
        }
        Ok(met)
    }

    /// As [`Self::query`] for several sets of values; `each` is told the number of the set, from 0. Gives
    /// how many rows there were in all.
    fn query_each(
        &mut self,
        statement: &mut Self::Statement,
        sets: &[Value<'_>],
        width: usize,
        mut each: impl FnMut(usize, &mut Self::Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut rows = 0;
        for (number, values) in sets.chunks(width).enumerate() {
            rows += self.query(statement, values, |row| each(number, row))?;
        }
        Ok(rows)
    }

    /// Adds many rows in the fastest way that the store has; `values` are those of all rows, one behind
    /// the other, in the order of `columns`. All rows or none are added where no transaction is open.
    fn insert_rows(&mut self, table: &str, columns: &[&str], values: &[Value<'_>]) -> Result<()>;

    /// Carries out statements without parameters and without rows, separated by `;`: tables are made and
    /// transactions begun and ended by it.
    fn run(&mut self, sql: &str) -> Result<()>;

    /// Connects anew, once, within the limits.
    fn reconnect(&mut self) -> Result<()>;

    /// The store's version as it says it itself, such as `10.11.14-MariaDB`.
    fn version(&self) -> &str;

    /// The store's own counters of this connection, which only ever grow.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Ends whatever the connection waits for, from another thread.
    fn interrupter(&self) -> Interrupter;
}

/// A row of an answer, read column by column from the first on.
pub trait Row {
    /// The next column, a whole number. NULL is an error.
    fn int(&mut self) -> Result<i64>;

    /// The next column, a whole number or NULL.
    fn int_or_null(&mut self) -> Result<Option<i64>>;

    /// The next column, text in its bytes. NULL is an error.
    fn text(&mut self) -> Result<&[u8]>;
}

/// A connection that is lent is one.
impl<C: Connection> Connection for &mut C {
    type Statement = C::Statement;
    type Row<'r> = C::Row<'r>;

    const DIALECT: Dialect = C::DIALECT;

    fn prepare(&mut self, sql: &str) -> Result<Self::Statement> {
        (**self).prepare(sql)
    }

    #[inline]
    fn execute(&mut self, statement: &mut Self::Statement, values: &[Value<'_>]) -> Result<u64> {
        (**self).execute(statement, values)
    }

    #[inline]
    fn query(
        &mut self,
        statement: &mut Self::Statement,
        values: &[Value<'_>],
        each: impl FnMut(&mut Self::Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        (**self).query(statement, values, each)
    }

    fn execute_each(
        &mut self,
        statement: &mut Self::Statement,
        sets: &[Value<'_>],
        width: usize,
    ) -> Result<u64> {
        (**self).execute_each(statement, sets, width)
    }

    fn query_each(
        &mut self,
        statement: &mut Self::Statement,
        sets: &[Value<'_>],
        width: usize,
        each: impl FnMut(usize, &mut Self::Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        (**self).query_each(statement, sets, width, each)
    }

    fn insert_rows(&mut self, table: &str, columns: &[&str], values: &[Value<'_>]) -> Result<()> {
        (**self).insert_rows(table, columns, values)
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        (**self).run(sql)
    }

    fn reconnect(&mut self) -> Result<()> {
        (**self).reconnect()
    }

    fn version(&self) -> &str {
        (**self).version()
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        (**self).counters()
    }

    fn interrupter(&self) -> Interrupter {
        (**self).interrupter()
    }
}
