//! The table in any SQL store, and one client's prepared statements on it.

use dyno_load::{KEY_LENGTH, KeyText, is_certified};
use dyno_sql::{Connection, Dialect, Row, Value};
use smallvec::SmallVec;

use super::{Answer, DATA_SET, Fields, Rows, Shape, YcsbBackend};
use crate::backend::{SqlBackend, Status};
use crate::failure::{ErrorKind, Failure};
use crate::job::YcsbJob;
use dyno_sql::Error as OperationError;

impl<B: SqlBackend> YcsbBackend for B {
    type Rows<'c>
        = Statements<B::Session<'c>>
    where
        B: 'c;

    const ONE_LOADER: bool = B::ONE_WRITER;

    fn create_table(&self, connection: &mut B::Connection, shape: &Shape) -> Result<(), Failure> {
        let fail =
            |error: OperationError| Failure::while_attempting("creating the usertable", &error);
        let mut session = self.session(connection);
        if !columns(&mut session).map_err(fail)?.is_empty() {
            return Err(Failure::new(
                ErrorKind::Refused.name(),
                "there is a usertable already; the load phase wants an empty store, remove it",
            ));
        }
        session
            .run(&table::<B::Session<'_>>(&shape.job))
            .map_err(fail)
    }

    fn check_table(&self, connection: &mut B::Connection, shape: &Shape) -> Result<(), Failure> {
        let found = columns(&mut self.session(connection))
            .map_err(|error| Failure::while_attempting("looking at the usertable", &error))?;
        let expected = names(shape.job.table.field_count);
        if found == expected {
            return Ok(());
        }
        let message = if found.is_empty() {
            "there is no usertable; run a job of phase load on this store first".to_owned()
        } else if found.len() != expected.len() {
            format!(
                "the usertable has {} fields and the job's field_count is {}; load it with this \
                 field_count",
                found.len() - 1,
                expected.len() - 1
            )
        } else {
            format!(
                "the usertable has the columns {}; it is not one that dyno loaded",
                found.join(", ")
            )
        };
        Err(Failure::new(ErrorKind::Refused.name(), message))
    }

    fn rows<'c>(
        &'c self,
        connection: &'c mut B::Connection,
        shape: &Shape,
    ) -> Result<Self::Rows<'c>, Failure> {
        Statements::prepare(self.session(connection), shape)
            .map_err(|error| Failure::while_attempting("preparing statements", &error))
    }
}

/// The columns of the table in their order; none where there is no table.
fn columns<C: Connection>(connection: &mut C) -> Result<Vec<String>, OperationError> {
    let mut statement = connection.prepare(match C::DIALECT {
        Dialect::Sqlite => "SELECT name FROM pragma_table_info('usertable') ORDER BY cid",
        Dialect::Mysql => {
            "SELECT column_name FROM information_schema.columns \
             WHERE table_schema = database() AND table_name = 'usertable' ORDER BY ordinal_position"
        }
        Dialect::Postgresql => {
            "SELECT column_name::text FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = 'usertable' ORDER BY ordinal_position"
        }
    })?;
    let mut names = Vec::new();
    connection.query(&mut statement, &[], |row| {
        names.push(String::from_utf8_lossy(row.text()?).into_owned());
        Ok(())
    })?;
    Ok(names)
}

fn names(field_count: u32) -> Vec<String> {
    std::iter::once("ycsb_key".to_owned())
        .chain((0..field_count).map(|field| format!("field{field}")))
        .collect()
}

/// What makes the table.
fn table<C: Connection>(job: &YcsbJob) -> String {
    let (key, field, options) = match C::DIALECT {
        Dialect::Sqlite => ("TEXT", "TEXT", ""),
        // A TEXT holds 65,535 bytes.
        Dialect::Mysql if job.table.field_length > 0xffff => (
            "VARCHAR(64)",
            "LONGTEXT",
            " ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
        ),
        Dialect::Mysql => (
            "VARCHAR(64)",
            "TEXT",
            " ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
        ),
        Dialect::Postgresql => ("VARCHAR(64) COLLATE \"C\"", "TEXT", ""),
    };
    let fields: String = (0..job.table.field_count)
        .map(|number| format!(", field{number} {field} NOT NULL"))
        .collect();
    format!("CREATE TABLE usertable(ycsb_key {key} NOT NULL PRIMARY KEY{fields}){options}")
}

/// A connection with the statements of a workload prepared on it.
#[derive(Debug)]
pub struct Statements<C: Connection> {
    connection: C,
    shape: Shape,
    prepared: Prepared<C::Statement>,
    columns: Vec<String>,
    rows_scanned: u64,
}

#[derive(Debug)]
struct Prepared<S> {
    insert: S,
    read: ByFields<S>,
    update: ByFields<S>,
    scan: ByFields<S>,
}

/// One statement for all fields, or one for each field, as the workload asks.
#[derive(Debug)]
struct ByFields<S>(Vec<S>);

impl<S> ByFields<S> {
    /// `text` makes the statement of a list of fields, of which each is written as `field` says.
    fn prepare<C: Connection<Statement = S>>(
        connection: &mut C,
        field_count: u32,
        all: bool,
        field: fn(u32) -> String,
        text: fn(String) -> String,
    ) -> Result<Self, OperationError> {
        let lists = if all {
            vec![join(field_count, field)]
        } else {
            (0..field_count).map(field).collect()
        };
        lists
            .into_iter()
            .map(|list| connection.prepare(&text(list)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    #[inline]
    fn get(&mut self, fields: Fields) -> &mut S {
        match fields {
            Fields::All => &mut self.0[0],
            Fields::One(field) => &mut self.0[field as usize],
        }
    }
}

fn join(count: u32, part: impl Fn(u32) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

impl<S> Prepared<S> {
    fn new<C: Connection<Statement = S>>(
        connection: &mut C,
        job: &YcsbJob,
    ) -> Result<Self, OperationError> {
        let count = job.table.field_count;
        let marks = join(count + 1, |_| "?".to_owned());
        let name = |number| format!("field{number}");
        let assign = |number| format!("field{number}=?");
        let insert = connection.prepare(&format!("INSERT INTO usertable VALUES({marks})"))?;
        Ok(Self {
            insert,
            read: ByFields::prepare(connection, count, job.read_all_fields, name, |list| {
                format!("SELECT {list} FROM usertable WHERE ycsb_key=?")
            })?,
            update: ByFields::prepare(connection, count, job.write_all_fields, assign, |list| {
                format!("UPDATE usertable SET {list} WHERE ycsb_key=?")
            })?,
            scan: ByFields::prepare(connection, count, job.read_all_fields, name, |list| {
                format!(
                    "SELECT ycsb_key,{list} FROM usertable WHERE ycsb_key>=? \
                     ORDER BY ycsb_key LIMIT ?"
                )
            })?,
        })
    }
}

/// The values of a row, on the stack where it has no more fields than YCSB's own.
type Values<'v> = SmallVec<[Value<'v>; 12]>;

fn split(values: &str, length: usize) -> impl Iterator<Item = Value<'_>> {
    // Values are ASCII, so that any byte begins a character.
    (0..values.len() / length)
        .map(move |field| Value::Text(&values[field * length..(field + 1) * length]))
}

impl<C: Connection> Statements<C> {
    /// Prepares them; the table must be there.
    fn prepare(mut connection: C, shape: &Shape) -> Result<Self, OperationError> {
        Ok(Self {
            prepared: Prepared::new(&mut connection, &shape.job)?,
            connection,
            columns: names(shape.job.table.field_count),
            shape: shape.clone(),
            rows_scanned: 0,
        })
    }

    fn field_length(&self) -> usize {
        self.shape.job.table.field_length as usize
    }
}

/// What every field that is read must be.
#[derive(Clone, Copy)]
struct Expected<'s> {
    shape: &'s Shape,
    fields: Fields,
}

impl Expected<'_> {
    /// Reads the rest of a row, and finds it as it must be. A row whose fields do not have their length is
    /// not the data set's.
    #[inline]
    fn check(self, key: &str, row: &mut impl Row) -> Answer {
        let table = self.shape.job.table;
        let first = match self.fields {
            Fields::All => 0,
            Fields::One(field) => field,
        };
        for field in first..first + self.fields.of(table.field_count) {
            let value = row.text()?;
            if value.len() != table.field_length as usize {
                return Err(wrong_length(key, field, value.len(), table.field_length));
            }
            if self.shape.job.data_integrity
                && !is_certified(value, DATA_SET, key.as_bytes(), field)
            {
                return Err(OperationError::new(
                    ErrorKind::WrongValue,
                    format!("field{field} of {key} holds what was never written there"),
                ));
            }
        }
        Ok(())
    }
}

#[cold]
fn wrong_length(key: &str, field: u32, found: usize, expected: u32) -> OperationError {
    OperationError::new(
        ErrorKind::WrongValue,
        format!("field{field} of {key} holds {found} bytes, expected {expected} bytes of text"),
    )
}

#[cold]
fn missing(key: &str) -> OperationError {
    OperationError::new(
        ErrorKind::MissingKey,
        format!("there is no row with key {key}"),
    )
}

/// A key is of one row, no more and no less.
#[inline]
fn one(rows: u64, key: &str) -> Answer {
    match rows {
        1 => Ok(()),
        0 => Err(missing(key)),
        _ => Err(several(rows, key)),
    }
}

#[cold]
fn several(rows: u64, key: &str) -> OperationError {
    OperationError::new(
        ErrorKind::WrongValue,
        format!("there are {rows} rows with key {key}, expected one"),
    )
}

#[cold]
fn out_of_order(found: &[u8], before: &[u8]) -> OperationError {
    let text = |key| String::from_utf8_lossy(key).into_owned();
    OperationError::new(
        ErrorKind::WrongValue,
        format!(
            "a scan shows the key {} where only those behind {} belong",
            text(found),
            text(before)
        ),
    )
}

#[cold]
fn too_many(found: u64, asked: u32) -> OperationError {
    OperationError::new(
        ErrorKind::WrongValue,
        format!("a scan of {asked} rows gave {found}"),
    )
}

impl<C: Connection> Rows for Statements<C> {
    #[inline]
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        let expected = Expected {
            shape: &self.shape,
            fields,
        };
        let statement = self.prepared.read.get(fields);
        let rows = self
            .connection
            .query(statement, &[Value::Text(key)], |row| {
                expected.check(key, row)
            })?;
        one(rows, key)
    }

    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        let mut given: Values<'_> = split(values, self.field_length()).collect();
        given.push(Value::Text(key));
        let statement = self.prepared.update.get(fields);
        one(self.connection.execute(statement, &given)?, key)
    }

    fn insert(&mut self, key: &str, values: &str) -> Answer {
        let mut given: Values<'_> = SmallVec::new();
        given.push(Value::Text(key));
        given.extend(split(values, self.field_length()));
        self.connection
            .execute(&mut self.prepared.insert, &given)
            .map(|_| ())
    }

    fn scan(&mut self, start: &str, rows: u32, fields: Fields) -> Answer {
        let expected = Expected {
            shape: &self.shape,
            fields,
        };
        let statement = self.prepared.scan.get(fields);
        let given = [Value::Text(start), Value::Int(i64::from(rows))];
        let mut key: KeyText = [0; KEY_LENGTH];
        let mut first = true;
        let found = self.connection.query(statement, &given, |row| {
            let text = row.text()?;
            if text.len() != KEY_LENGTH {
                return Err(wrong_key(text));
            }
            let in_order = if first {
                text >= start.as_bytes()
            } else {
                text > &key[..]
            };
            if !in_order {
                return Err(out_of_order(
                    text,
                    if first { start.as_bytes() } else { &key },
                ));
            }
            first = false;
            key.copy_from_slice(text);
            let key = std::str::from_utf8(&key).map_err(|_| wrong_key(&key))?;
            expected.check(key, row)
        })?;
        self.rows_scanned += found;
        if found > u64::from(rows) {
            return Err(too_many(found, rows));
        }
        // The start is a key that exists, so at least its own row is there.
        if found == 0 {
            return Err(missing(start));
        }
        Ok(())
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        let (length, row_length) = (self.field_length(), self.shape.job.table.row_length());
        let rows = keys.len() / KEY_LENGTH;
        let mut given = Vec::with_capacity(rows * self.columns.len());
        for row in 0..rows {
            given.push(Value::Text(&keys[row * KEY_LENGTH..(row + 1) * KEY_LENGTH]));
            given.extend(split(
                &values[row * row_length..(row + 1) * row_length],
                length,
            ));
        }
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        self.connection.insert_rows("usertable", &columns, &given)
    }

    fn reconnect(&mut self) -> Answer {
        self.connection.reconnect()?;
        self.prepared = Prepared::new(&mut self.connection, &self.shape.job)?;
        Ok(())
    }

    fn counters(&self) -> Status {
        let mut counters = Status::from_iter(self.connection.counters());
        counters.insert("rows_scanned", self.rows_scanned as f64);
        counters
    }
}

#[cold]
fn wrong_key(found: &[u8]) -> OperationError {
    OperationError::new(
        ErrorKind::WrongValue,
        format!(
            "a row has the key {:?}, which dyno never inserted",
            String::from_utf8_lossy(found)
        ),
    )
}
