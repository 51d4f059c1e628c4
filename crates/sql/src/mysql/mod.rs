//! `MariaDB` and `MySQL`, by their own protocol.
//!
//! Statements are prepared and their values go in binary. An operation is one send and, where the answer
//! is there at once and fits into 64 KiB, one receive; its rows are read where they were received, and
//! nothing is allocated. Several operations of [`Connection::execute_each`] and
//! [`Connection::query_each`] go out together, up to 16 KiB, and their answers are read one after the
//! other: both servers take requests in their order.
//!
//! `MariaDB` (from 10.6) leaves out the description of columns in answers to prepared statements while it
//! is what the client was told before, and sends it once it changed. `MySQL` can leave it out only
//! altogether, and then a table that was altered would be misread; its descriptions are read.
//!
//! What this costs beside the `mysql` crate and the C library is measured by
//! `benchmarks/client_libraries`.
//!
//! There is no TLS: what is measured runs on one's own machines. An account or a server that demands it
//! is refused by the server, and the error says so.

mod bulk;
mod bytes;
mod codes;
mod exchange;
mod login;
mod packets;
mod row;
mod statement;
mod wire;

use std::fmt;

use bulk::Inserts;
use exchange::{Exchange, Failure};
use login::Welcome;
pub use row::Row;
pub use statement::Statement;
use wire::Wire;

use crate::error::{Error, ErrorKind, Result};
use crate::{Connection, Dialect, Interrupter, Server, Stream, Value};

/// One client's connection to a `MariaDB` or `MySQL` server.
pub struct Mysql {
    server: Server,
    version: String,
    exchange: Exchange,
    inserts: Inserts,
    interrupter: Interrupter,
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql")
            .field("address", &self.server.address)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Mysql {
    /// Connects and logs in, within the limit on a connection.
    pub fn connect(server: &Server) -> Result<Self> {
        let interrupter = Interrupter::default();
        let (exchange, version) = connect(server, &interrupter)?;
        Ok(Self {
            server: server.clone(),
            version,
            exchange,
            inserts: Inserts::default(),
            interrupter,
        })
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        self.exchange.close();
    }
}

fn connect(server: &Server, interrupter: &Interrupter) -> Result<(Exchange, String)> {
    let stream = Stream::connect(&server.address, server.limits)?;
    interrupter.watch(&stream)?;
    enter(stream, server).map_err(|error| {
        let lost = matches!(error.kind, ErrorKind::Timeout | ErrorKind::ConnectionLost);
        if lost && interrupter.is_interrupted() {
            return error;
        }
        // Nothing was under way yet that could have been done or not.
        let kind = if lost { ErrorKind::Connect } else { error.kind };
        let message = format!(
            "logging in to {} as {}: {}",
            server.address, server.user, error.message
        );
        Error::new(kind, message)
    })
}

/// Logs in, and learns what the server allows.
fn enter(stream: Stream, server: &Server) -> Result<(Exchange, String)> {
    let mut wire = Wire::new(stream);
    let Welcome {
        version,
        mariadb,
        caches_metadata,
    } = login::log_in(&mut wire, server)?;
    let mut exchange = Exchange::new(wire, mariadb, caches_metadata);
    exchange.wire.limit = exchange.ask_limit()?;
    exchange
        .wire
        .stream
        .limit(server.limits.read, server.limits.write)?;
    Ok((exchange, version))
}

impl Connection for Mysql {
    type Statement = Statement;
    type Row<'r> = Row<'r>;

    const DIALECT: Dialect = Dialect::Mysql;

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.exchange.ready()?;
        let prepared = self.exchange.prepare(sql);
        prepared.map_err(|error| self.exchange.judge(Failure::Exchange(error), sql))
    }

    #[inline]
    fn execute(&mut self, statement: &mut Statement, values: &[Value<'_>]) -> Result<u64> {
        self.exchange.ready()?;
        match self.exchange.execute(statement, values) {
            Ok(met) => Ok(met),
            Err(error) => Err(self.failed(statement, error)),
        }
    }

    #[inline]
    fn query(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
        each: impl FnMut(&mut Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.exchange.ready()?;
        match self.exchange.query(statement, values, each) {
            Ok(rows) => Ok(rows),
            Err(failure) => Err(self.failed(statement, failure)),
        }
    }

    fn execute_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
    ) -> Result<u64> {
        self.exchange.ready()?;
        self.exchange
            .execute_each(statement, sets, width)
            .map_err(|failure| self.failed(statement, failure))
    }

    fn query_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
        each: impl FnMut(usize, &mut Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.exchange.ready()?;
        self.exchange
            .query_each(statement, sets, width, each)
            .map_err(|failure| self.failed(statement, failure))
    }

    fn insert_rows(&mut self, table: &str, columns: &[&str], values: &[Value<'_>]) -> Result<()> {
        self.exchange.ready()?;
        self.inserts
            .insert(&mut self.exchange, table, columns, values)
            .map_err(|error| {
                let what = format!("adding rows to {table}");
                self.exchange.judge(Failure::Exchange(error), &what)
            })
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.exchange.ready()?;
        let done = self.exchange.run(sql, |_| ());
        done.map_err(|error| self.exchange.judge(Failure::Exchange(error), sql))
    }

    fn reconnect(&mut self) -> Result<()> {
        self.exchange.close();
        self.inserts.clear();
        (self.exchange, self.version) = connect(&self.server, &self.interrupter)?;
        Ok(())
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}

impl Mysql {
    #[cold]
    fn failed(&mut self, statement: &mut Statement, failure: impl Into<Failure>) -> Error {
        statement.forget_types();
        self.exchange.judge(failure.into(), &statement.sql)
    }
}
