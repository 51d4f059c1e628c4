//! Brings the data set into SQL tables, by as many clients as there are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use dyno_sql::{Connection, Dialect, Result, Value};

use crate::Config;
use crate::population::{self, Table};
pub use crate::sql::{create_indexes, create_tables};

/// What the clients that load share.
///
/// One client calls [`create_tables`] first and [`create_indexes`] last; between them all clients call
/// [`Loader::load_next`] until there is no more.
#[derive(Debug)]
pub struct Loader {
    config: Config,
    next: AtomicU64,
    /// `SQLite` lets one connection write at a time and has the others poll.
    turn: Mutex<()>,
}

impl Loader {
    /// Everything is still to do.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            next: AtomicU64::new(0),
            turn: Mutex::new(()),
        }
    }

    /// How many units there are.
    #[must_use]
    pub fn units(&self) -> u64 {
        population::units(&self.config)
    }

    /// Loads the next unit that no client has taken, in one transaction. Gives how many rows it has, or
    /// `None` where all units are taken.
    pub fn load_next<C: Connection>(&self, connection: &mut C) -> Result<Option<u64>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.units() {
            return Ok(None);
        }
        let _turn = (C::DIALECT == Dialect::Sqlite)
            .then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        connection.run(match C::DIALECT {
            Dialect::Sqlite => "BEGIN IMMEDIATE",
            Dialect::Mysql | Dialect::Postgresql => "START TRANSACTION",
        })?;
        let ended = self.load(connection, number).and_then(|rows| {
            connection.run("COMMIT")?;
            Ok(rows)
        });
        if let Err(error) = &ended
            && !error.kind.breaks_connection()
        {
            // The first error is the one to report.
            let _ = connection.run("ROLLBACK");
        }
        ended.map(Some)
    }

    fn load<C: Connection>(&self, connection: &mut C, number: u64) -> Result<u64> {
        let mut batches = Table::ALL.map(Batch::new);
        let mut rows = 0;
        population::fill(&self.config, number, |table, row| {
            rows += 1;
            let batch = &mut batches[table as usize];
            batch.add(row);
            if batch.is_full() {
                batch.flush(connection)?;
            }
            Ok(())
        })?;
        batches
            .iter_mut()
            .try_for_each(|batch| batch.flush(connection))?;
        Ok(rows)
    }
}

/// Values of this size go at once: well below what any store takes in one statement.
const BATCH_BYTES: usize = 256 * 1024;
/// And as many rows at most.
const BATCH_ROWS: usize = 1_000;

/// Rows of one table that wait to be added.
struct Batch {
    table: Table,
    names: Vec<&'static str>,
    cells: Vec<Cell>,
    text: String,
}

/// A value whose text lies in its batch.
#[derive(Clone, Copy)]
enum Cell {
    Null,
    Int(i64),
    Text(usize, usize),
}

impl Batch {
    fn new(table: Table) -> Self {
        Self {
            table,
            names: table.columns().iter().map(|(name, _)| *name).collect(),
            cells: Vec::new(),
            text: String::new(),
        }
    }

    fn add(&mut self, row: &[Value<'_>]) {
        for value in row {
            self.cells.push(match *value {
                Value::Null => Cell::Null,
                Value::Int(number) => Cell::Int(number),
                Value::Text(text) => {
                    let start = self.text.len();
                    self.text.push_str(text);
                    Cell::Text(start, self.text.len())
                }
            });
        }
    }

    const fn is_full(&self) -> bool {
        self.cells.len() >= BATCH_ROWS * self.names.len() || self.text.len() >= BATCH_BYTES
    }

    fn flush<C: Connection>(&mut self, connection: &mut C) -> Result<()> {
        if self.cells.is_empty() {
            return Ok(());
        }
        let values: Vec<Value<'_>> = self
            .cells
            .iter()
            .map(|cell| match *cell {
                Cell::Null => Value::Null,
                Cell::Int(number) => Value::Int(number),
                Cell::Text(start, end) => Value::Text(&self.text[start..end]),
            })
            .collect();
        connection.insert_rows(self.table.name(), &self.names, &values)?;
        self.cells.clear();
        self.text.clear();
        Ok(())
    }
}
