//! `PostgreSQL`, over its own protocol in version 3.0, which servers speak from 7.4 on
//! (<https://www.postgresql.org/docs/15/protocol.html>).
//!
//! An operation is one request, sent at once, and one answer, read in place from the buffer it came
//! into: nothing is allocated or copied for a row. Statements are prepared by name and carried out by
//! `Bind`, `Execute` and `Sync`; they stay with the server until the connection ends. Whole numbers of 2, 4
//! and 8 bytes go and come in binary, all else as text.
//!
//! There is no TLS: what is measured is the store, and a server that insists on it is refused with a hint.
//!
//! Several sets of values ([`Connection::execute_each`], [`Connection::query_each`]) go without waiting
//! for the answers between them, and without a `Sync` between them: after an error the server ignores the
//! rest, which leaves those after it undone, and those before it as the transaction is: done if it
//! is committed (and it cannot be, after an error). Where no transaction is open all of them are one.
//!
//! After an error within a transaction the server refuses all but `ROLLBACK`. It takes `COMMIT` for a
//! `ROLLBACK` then, without an error; [`Connection::run`] makes that one.

mod copy;
mod exchange;
mod login;
mod message;
mod refusal;
mod row;
mod statement;
mod wire;

use std::io;
use std::iter;

use postgres_protocol::message::frontend;

use crate::error::{Error, ErrorKind, Result};
use crate::stream::Interrupter;
use crate::{Connection, Dialect, Server, Value};

use exchange::exchange;
use login::{Entered, enter};
use message::unexpected;
use refusal::attempting;
use row::{Column, Row};
use statement::{LONGEST, Parameter, Statement, numbered};
use wire::Wire;

/// The least that is sent at a time where much is.
const CHUNK: usize = 64 * 1024;

/// A connection to a `PostgreSQL` server.
pub struct Postgres {
    server: Server,
    interrupter: Interrupter,
    wire: Wire,
    version: String,
    /// How many statements were prepared, on all connections one after the other: their names. A name
    /// never stands for another statement, so one of an earlier connection is refused.
    prepared: u64,
    /// Whether all answers were read to their end. Not so while an operation is under way: neither an
    /// error that breaks the connection nor a panic leaves it so.
    in_step: bool,
}

impl Postgres {
    /// Connects and logs in, within the limit on connecting.
    pub fn connect(server: &Server) -> Result<Self> {
        let interrupter = Interrupter::default();
        let Entered { wire, version } = enter(server, &interrupter)?;
        Ok(Self {
            server: server.clone(),
            interrupter,
            wire,
            version,
            prepared: 0,
            in_step: true,
        })
    }

    /// Carries out an operation on a connection that is in step, and keeps whether it still is.
    #[inline]
    fn carry_out<T>(&mut self, operation: impl FnOnce(&mut Wire) -> Result<T>) -> Result<T> {
        if !self.in_step {
            return Err(Error::new(
                ErrorKind::ConnectionLost,
                "the connection is of no use since it broke; it must be made anew",
            ));
        }
        self.in_step = false;
        self.wire.output.clear();
        let result = operation(&mut self.wire);
        self.in_step = result
            .as_ref()
            .err()
            .is_none_or(|error| !error.kind.breaks_connection());
        result
    }
}

impl Connection for Postgres {
    type Statement = Statement;
    type Row<'r> = Row<'r>;

    const DIALECT: Dialect = Dialect::Postgresql;

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepared += 1;
        let name = format!("s{}", self.prepared);
        self.carry_out(|wire| prepare(wire, &name, sql).map_err(|error| attempting(error, sql)))
    }

    #[inline]
    fn execute(&mut self, statement: &mut Statement, values: &[Value<'_>]) -> Result<u64> {
        statement.check(values.len(), values.len())?;
        self.carry_out(|wire| {
            exchange(wire, statement, iter::once(values), |_, _| Ok(())).map(|counts| counts.met)
        })
    }

    #[inline]
    fn query(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
        mut each: impl FnMut(&mut Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        statement.check(values.len(), values.len())?;
        self.carry_out(|wire| {
            exchange(wire, statement, iter::once(values), |_, row| each(row))
                .map(|counts| counts.rows)
        })
    }

    fn execute_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
    ) -> Result<u64> {
        statement.check(sets.len(), width)?;
        self.carry_out(|wire| {
            exchange(wire, statement, sets.chunks_exact(width), |_, _| Ok(()))
                .map(|counts| counts.met)
        })
    }

    fn query_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
        each: impl FnMut(usize, &mut Row<'_>) -> Result<()>,
    ) -> Result<u64> {
        statement.check(sets.len(), width)?;
        self.carry_out(|wire| {
            exchange(wire, statement, sets.chunks_exact(width), each).map(|counts| counts.rows)
        })
    }

    /// By `COPY`. `table` and `columns` are names as they would stand in a statement.
    fn insert_rows(&mut self, table: &str, columns: &[&str], values: &[Value<'_>]) -> Result<()> {
        let sql = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        if columns.is_empty() || !values.len().is_multiple_of(columns.len()) {
            let message = format!("{} values do not make rows; attempted: {sql}", values.len());
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let rows = values.chunks_exact(columns.len());
        self.carry_out(|wire| copy_in(wire, &sql, rows).map_err(|error| attempting(error, &sql)))
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.carry_out(|wire| run(wire, sql).map_err(|error| attempting(error, sql)))
    }

    fn reconnect(&mut self) -> Result<()> {
        self.in_step = false;
        let Entered { wire, version } = enter(&self.server, &self.interrupter)?;
        self.wire = wire;
        self.version = version;
        self.in_step = true;
        Ok(())
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}

impl Drop for Postgres {
    /// Says good-bye, and ends the stream: an interrupter that lives on would else keep it open.
    fn drop(&mut self) {
        if self.in_step {
            self.wire.output.clear();
            frontend::terminate(&mut self.wire.output);
            // The server may be gone already.
            let _ = self.wire.send();
        }
        self.interrupter.interrupt();
    }
}

fn prepare(wire: &mut Wire, name: &str, sql: &str) -> Result<Statement> {
    built(frontend::parse(name, &numbered(sql), [], &mut wire.output))?;
    built(frontend::describe(b'S', name, &mut wire.output))?;
    frontend::sync(&mut wire.output);
    wire.send()?;
    let (mut parameters, mut columns) = (Vec::new(), Vec::new());
    wire.answer(|tag, body| {
        match tag {
            b't' => parameters = message::parameter_types(body)?,
            b'T' => columns = message::column_types(body)?,
            // It is parsed; it gives no rows.
            b'1' | b'n' => {}
            _ => return Err(unexpected(tag)),
        }
        Ok(())
    })?;
    let parameters = parameters.into_iter().map(Parameter::of_type).collect();
    let columns = columns.into_iter().map(Column::of_type).collect();
    Ok(Statement::new(sql, name, parameters, columns))
}

fn run(wire: &mut Wire, sql: &str) -> Result<()> {
    built(frontend::query(sql, &mut wire.output))?;
    let failed = wire.failed;
    let mut rolled_back = false;
    wire.send()?;
    wire.answer(|tag, body| {
        match tag {
            b'C' => rolled_back |= body == b"ROLLBACK\0",
            // Rows, which nobody asked for; an empty statement.
            b'T' | b'D' | b'I' => {}
            _ => return Err(unexpected(tag)),
        }
        Ok(())
    })?;
    if failed && rolled_back && !asks_to_roll_back(sql) {
        return Err(Error::new(
            ErrorKind::Refused,
            "the transaction was rolled back and not committed, because of an error within it",
        ));
    }
    Ok(())
}

fn asks_to_roll_back(sql: &str) -> bool {
    let sql = sql.to_ascii_uppercase();
    sql.contains("ROLLBACK") || sql.contains("ABORT")
}

/// Sends the rows without waiting for leave: a server that has refused the statement ignores them.
fn copy_in<'v>(
    wire: &mut Wire,
    sql: &str,
    mut rows: impl ExactSizeIterator<Item = &'v [Value<'v>]>,
) -> Result<()> {
    built(frontend::query(sql, &mut wire.output))?;
    let mut too_long = false;
    while rows.len() > 0 && !too_long {
        let start = wire.output.len();
        wire.output.extend_from_slice(&[b'd', 0, 0, 0, 0]);
        while wire.output.len() - start < CHUNK
            && let Some(row) = rows.next()
        {
            copy::put_row(&mut wire.output, row);
        }
        match u32::try_from(wire.output.len() - start - 1) {
            Ok(length) if length <= LONGEST => {
                wire.output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
            }
            _ => {
                wire.output.truncate(start);
                too_long = true;
            }
        }
        if wire.output.len() >= CHUNK {
            wire.send()?;
        }
    }
    if too_long {
        built(frontend::copy_fail("a row is too long", &mut wire.output))?;
    } else {
        frontend::copy_done(&mut wire.output);
    }
    wire.send()?;
    let answer = wire.answer(|tag, _| match tag {
        // It takes rows; it took them.
        b'G' | b'C' => Ok(()),
        _ => Err(unexpected(tag)),
    });
    match answer {
        Err(error) if too_long && !error.kind.breaks_connection() => Err(Error::new(
            ErrorKind::Refused,
            "a row is longer than what the server takes at once",
        )),
        answer => answer,
    }
}

/// What cannot be written as a message was never sent: the connection is in step.
fn built(result: io::Result<()>) -> Result<()> {
    result.map_err(|error| {
        Error::new(
            ErrorKind::Refused,
            format!("dyno cannot ask for this: {error}"),
        )
    })
}
