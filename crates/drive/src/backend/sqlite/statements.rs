//! One client's prepared statements.

use std::sync::{Mutex, PoisonError};

use dyno_load::KEY_LENGTH;
use rusqlite::types::ValueRef;
use rusqlite::{Rows, Statement};

use super::{Connection, classify};
use crate::backend::{Answer, Fields, Session};
use crate::failure::{ErrorKind, OperationError};
use crate::job::{Table, YcsbJob};

/// The statements of a workload, prepared once.
#[derive(Debug)]
pub struct Statements<'c> {
    connection: &'c Connection,
    table: Table,
    turn: &'c Mutex<()>,
    insert: Statement<'c>,
    read: ByFields<'c>,
    update: ByFields<'c>,
    scan: ByFields<'c>,
}

/// One statement for all fields, or one for each field, as the workload asks.
#[derive(Debug)]
struct ByFields<'c>(Vec<Statement<'c>>);

impl<'c> ByFields<'c> {
    /// `field` names one field, given its number and its place in the list; `text` makes the
    /// statement of a list.
    fn prepare(
        connection: &'c Connection,
        field_count: u32,
        all: bool,
        field: fn(u32, u32) -> String,
        text: fn(String) -> String,
    ) -> rusqlite::Result<Self> {
        let lists = if all {
            vec![join(field_count, |number| field(number, number))]
        } else {
            (0..field_count).map(|number| field(number, 0)).collect()
        };
        let prepare = |list| connection.database.prepare(&text(list));
        Ok(Self(
            lists.into_iter().map(prepare).collect::<Result<_, _>>()?,
        ))
    }

    #[inline]
    fn get(&mut self, fields: Fields) -> &mut Statement<'c> {
        match fields {
            Fields::All => &mut self.0[0],
            Fields::One(field) => &mut self.0[field as usize],
        }
    }
}

fn join(count: u32, part: impl Fn(u32) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

impl<'c> Statements<'c> {
    /// Prepares them; the table must be there.
    pub(super) fn prepare(
        connection: &'c Connection,
        ycsb: &YcsbJob,
        turn: &'c Mutex<()>,
    ) -> rusqlite::Result<Self> {
        let table = ycsb.table;
        let count = table.field_count;
        let name = |number, _| format!("field{number}");
        // The key is the first parameter, so the fields' values begin with the second.
        let assign = |number, place| format!("field{number}=?{}", place + 2);
        let marks = join(count + 1, |number| format!("?{}", number + 1));
        Ok(Self {
            connection,
            table,
            turn,
            insert: connection
                .database
                .prepare(&format!("INSERT INTO usertable VALUES({marks})"))?,
            read: ByFields::prepare(connection, count, ycsb.read_all_fields, name, |list| {
                format!("SELECT {list} FROM usertable WHERE key=?1")
            })?,
            update: ByFields::prepare(connection, count, ycsb.write_all_fields, assign, |list| {
                format!("UPDATE usertable SET {list} WHERE key=?1")
            })?,
            scan: ByFields::prepare(connection, count, ycsb.read_all_fields, name, |list| {
                format!("SELECT {list} FROM usertable WHERE key>=?1 ORDER BY key LIMIT ?2")
            })?,
        })
    }

    fn insert_row(&mut self, key: &str, values: &str) -> rusqlite::Result<()> {
        self.insert.raw_bind_parameter(1, key)?;
        bind_fields(&mut self.insert, self.table, values)?;
        self.insert.raw_execute()?;
        Ok(())
    }

    fn load_rows(&mut self, keys: &str, values: &str) -> rusqlite::Result<()> {
        let database = &self.connection.database;
        database.execute_batch("BEGIN IMMEDIATE")?;
        let row_length = self.table.row_length();
        let rows = keys.len() / KEY_LENGTH;
        let inserted = (0..rows).try_for_each(|row| {
            let key = &keys[row * KEY_LENGTH..(row + 1) * KEY_LENGTH];
            self.insert_row(key, &values[row * row_length..(row + 1) * row_length])
        });
        let ended = inserted.and_then(|()| database.execute_batch("COMMIT"));
        if ended.is_err() && !database.is_autocommit() {
            // The first error is the one to report; a transaction left open is undone on closing.
            let _ = database.execute_batch("ROLLBACK");
        }
        ended
    }
}

/// Binds the values of all fields, which stand one behind the other, from the second parameter on.
fn bind_fields(statement: &mut Statement<'_>, table: Table, values: &str) -> rusqlite::Result<()> {
    let length = table.field_length as usize;
    for field in 0..table.field_count as usize {
        let value = &values[field * length..(field + 1) * length];
        statement.raw_bind_parameter(field + 2, value)?;
    }
    Ok(())
}

/// Fetches the next row whole; `false` where there is none. A row whose fields do not have their
/// length is not the data set's.
fn fetch(rows: &mut Rows<'_>, fields: usize, length: usize) -> Result<bool, OperationError> {
    let Some(row) = rows.next().map_err(|error| classify(&error))? else {
        return Ok(false);
    };
    for field in 0..fields {
        match row.get_ref(field).map_err(|error| classify(&error))? {
            ValueRef::Text(text) if text.len() == length => {}
            other => {
                let found = match other {
                    ValueRef::Text(text) => format!("{} bytes", text.len()),
                    other => format!("a value of type {}", other.data_type()),
                };
                return Err(OperationError::new(
                    ErrorKind::WrongValue,
                    format!("a field holds {found}, expected {length} bytes of text"),
                ));
            }
        }
    }
    Ok(true)
}

fn missing(key: &str) -> OperationError {
    OperationError::new(
        ErrorKind::MissingKey,
        format!("there is no row with key {key}"),
    )
}

impl Session for Statements<'_> {
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        let count = count(fields, self.table);
        let statement = self.read.get(fields);
        statement
            .raw_bind_parameter(1, key)
            .map_err(|error| classify(&error))?;
        let mut rows = statement.raw_query();
        if fetch(&mut rows, count, self.table.field_length as usize)? {
            Ok(())
        } else {
            Err(missing(key))
        }
    }

    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        let table = Table {
            field_count: u32::try_from(count(fields, self.table)).unwrap_or(u32::MAX),
            ..self.table
        };
        let mut write = || {
            let statement = self.update.get(fields);
            statement.raw_bind_parameter(1, key)?;
            bind_fields(statement, table, values)?;
            statement.raw_execute()
        };
        match write() {
            Ok(0) => Err(missing(key)),
            Ok(_) => Ok(()),
            Err(error) => Err(classify(&error)),
        }
    }

    fn insert(&mut self, key: &str, values: &str) -> Answer {
        self.insert_row(key, values)
            .map_err(|error| classify(&error))
    }

    fn scan(&mut self, start: &str, rows: u32, fields: Fields) -> Answer {
        let count = count(fields, self.table);
        let length = self.table.field_length as usize;
        let statement = self.scan.get(fields);
        statement
            .raw_bind_parameter(1, start)
            .and_then(|()| statement.raw_bind_parameter(2, rows))
            .map_err(|error| classify(&error))?;
        let mut found = 0;
        let mut cursor = statement.raw_query();
        while fetch(&mut cursor, count, length)? {
            found += 1;
        }
        let scanned = &self.connection.rows_scanned;
        scanned.set(scanned.get() + found);
        // The start is a key that exists, so at least its own row is there.
        if found > 0 {
            Ok(())
        } else {
            Err(missing(start))
        }
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        let turn = self.turn;
        let _mine = turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.load_rows(keys, values)
            .map_err(|error| classify(&error))
    }
}

const fn count(fields: Fields, table: Table) -> usize {
    match fields {
        Fields::All => table.field_count as usize,
        Fields::One(_) => 1,
    }
}
