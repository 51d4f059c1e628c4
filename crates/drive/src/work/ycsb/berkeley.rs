//! The table on Berkeley DB: a B-tree from keys to the fields of a row, one behind the other.

use std::ops::ControlFlow;

use dyno_berkeley::{Access, Direction, Session};
use dyno_load::{KEY_LENGTH, is_certified};

use super::{Answer, DATA_SET, Fields, Rows, Shape, YcsbBackend};
use crate::backend::{Berkeley, Status, berkeley_told as told};
use crate::failure::{ErrorKind, Failure};
use crate::job::YcsbJob;
use dyno_sql::Error as OperationError;

/// Above all keys.
const HIGHEST: [u8; KEY_LENGTH] = [u8::MAX; KEY_LENGTH];

/// A client's session with the table.
#[derive(Debug)]
pub struct UserRows<'c> {
    session: Session<'c>,
    shape: Shape,
    row: Vec<u8>,
    rows_scanned: u64,
}

fn wrong(message: String) -> Answer {
    Err(OperationError::new(ErrorKind::WrongValue, message))
}

/// Bytes of the fields, from where on.
fn part(job: &YcsbJob, fields: Fields) -> (usize, usize) {
    let length = job.table.field_length as usize;
    match fields {
        Fields::All => (0, job.table.row_length()),
        Fields::One(field) => (field as usize * length, length),
    }
}

/// Looks at the fields of a row, and finds them as they must be.
fn look(job: &YcsbJob, key: &[u8], row: &[u8], fields: Fields) -> Answer {
    if row.len() != job.table.row_length() {
        let (is, expected) = (row.len(), job.table.row_length());
        return wrong(format!("a row has {is} bytes, expected {expected}"));
    }
    let (start, length) = part(job, fields);
    let field_length = job.table.field_length as usize;
    let first = u32::try_from(start / field_length).unwrap_or(u32::MAX);
    let values = row[start..start + length].chunks_exact(field_length);
    for (field, value) in (first..).zip(values) {
        // What is read is looked at, so that the compiler cannot leave it out.
        std::hint::black_box(value);
        if job.data_integrity && !is_certified(value, DATA_SET, key, field) {
            let key = String::from_utf8_lossy(key);
            return wrong(format!(
                "field{field} of {key} holds what was never written there"
            ));
        }
    }
    Ok(())
}

fn missing(key: &str) -> OperationError {
    let message = format!("there is no row with key {key}");
    OperationError::new(ErrorKind::MissingKey, message)
}

impl UserRows<'_> {
    /// A transaction of its own, where the product has any.
    fn whole(&mut self, work: impl FnOnce(&mut Self) -> Answer) -> Answer {
        self.session.begin().map_err(told)?;
        match work(self) {
            Ok(()) => self.session.commit().map_err(told),
            Err(error) => {
                // The first error is the one to report. Without transactions one write is all that there is, and comes last.
                let _ = self.session.rollback();
                Err(error)
            }
        }
    }
}

impl Rows for UserRows<'_> {
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        self.whole(|rows| {
            let row = rows.session.get(0, key.as_bytes(), Access::Read);
            let row = row.map_err(told)?.ok_or_else(|| missing(key))?;
            look(rows.shape.job(), key.as_bytes(), row, fields)
        })
    }

    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        self.whole(|rows| {
            let row = rows.session.get(0, key.as_bytes(), Access::Change);
            let row = row.map_err(told)?.ok_or_else(|| missing(key))?;
            rows.row.clear();
            rows.row.extend_from_slice(row);
            let (start, length) = part(rows.shape.job(), fields);
            let Some(into) = rows.row.get_mut(start..start + length) else {
                return wrong("a row is shorter than its fields".to_owned());
            };
            into.copy_from_slice(values.as_bytes());
            rows.session.put(0, key.as_bytes(), &rows.row).map_err(told)
        })
    }

    fn insert(&mut self, key: &str, values: &str) -> Answer {
        self.whole(|rows| {
            let added = rows.session.insert(0, key.as_bytes(), values.as_bytes());
            added.map_err(told)
        })
    }

    fn scan(&mut self, start: &str, most: u32, fields: Fields) -> Answer {
        self.whole(|rows| {
            let (mut found, mut looked) = (0, Ok(()));
            let job = rows.shape.job();
            let visit = |key: &[u8], row: &[u8]| {
                found += 1;
                looked = look(job, key, row, fields);
                if looked.is_ok() && found < most {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            };
            let range: (&[u8], &[u8]) = (start.as_bytes(), &HIGHEST);
            let (access, direction) = (Access::Read, Direction::Forwards);
            let gone = rows.session.scan(0, range, access, direction, visit);
            gone.map_err(told)?;
            rows.rows_scanned += u64::from(found);
            looked
        })
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        self.whole(|rows| {
            let length = rows.shape.job().table.row_length();
            let both = keys.as_bytes().chunks(KEY_LENGTH);
            let mut both = both.zip(values.as_bytes().chunks(length));
            both.try_for_each(|(key, values)| rows.session.insert(0, key, values).map_err(told))
        })
    }

    fn counters(&self) -> Status {
        Status::from([("rows_scanned", self.rows_scanned as f64)])
    }
}

impl YcsbBackend for Berkeley {
    type Rows<'c> = UserRows<'c>;

    // Loaded without transactions.
    const ONE_LOADER: bool = true;

    fn create_table(&self, (): &mut (), _: &Shape) -> Result<(), Failure> {
        // It was made when the store was opened for loading.
        Ok(())
    }

    fn check_table(&self, connection: &mut (), shape: &Shape) -> Result<(), Failure> {
        let mut rows = self.rows(connection, shape)?;
        let wanted = shape.job().table.row_length();
        let mut length = None;
        let range: (&[u8], &[u8]) = (&[], &HIGHEST);
        let (access, direction) = (Access::Read, Direction::Forwards);
        rows.session
            .scan(0, range, access, direction, |_, row| {
                length = Some(row.len());
                ControlFlow::Break(())
            })
            .map_err(|error| Failure::while_attempting("looking at the usertable", &told(error)))?;
        match length {
            Some(length) if length == wanted => Ok(()),
            Some(length) => Err(Failure::new(
                "refused",
                format!(
                    "rows have {length} bytes and the job's {wanted}; load them with this field_count and \
                     field_length_bytes"
                ),
            )),
            None => Err(Failure::new(
                "refused",
                "there are no rows; run a job of phase load on this store first",
            )),
        }
    }

    fn rows<'c>(&'c self, (): &'c mut (), shape: &Shape) -> Result<UserRows<'c>, Failure> {
        Ok(UserRows {
            session: self.session()?,
            shape: shape.clone(),
            row: Vec::new(),
            rows_scanned: 0,
        })
    }
}
