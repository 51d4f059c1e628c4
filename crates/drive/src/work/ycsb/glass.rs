//! The table on glass: records are the fields of a row, one behind the other; an index of keys finds them.

use std::ops::ControlFlow;

use dyno_glass::assembly::Assembly;
use dyno_glass::catalogue::{IndexHandle, TableHandle};
use dyno_glass::engine::{Access, Direction, Engine, Pinned, Session};
use dyno_glass::keys::{Field, Shape as KeyShape};
use dyno_glass::{Error, Rid};
use dyno_glass_tpcc::told;
use dyno_load::{KEY_LENGTH, KeyText, is_certified};

use super::{Answer, DATA_SET, Fields, Rows, Shape};
use crate::backend::Status;
use crate::failure::ErrorKind;
use dyno_sql::Error as OperationError;

const TABLE: &str = "usertable";
const INDEX: &str = "usertable_key";

/// An engine that has the table.
pub struct UserTable<A: Assembly> {
    engine: Engine<A>,
    table: TableHandle,
    index: IndexHandle,
}

impl<A: Assembly> UserTable<A> {
    /// Makes the table, in an engine that has none.
    pub fn create(engine: Engine<A>) -> Result<Self, OperationError> {
        let length = u16::try_from(KEY_LENGTH).unwrap_or(u16::MAX);
        let table = engine.create_table(TABLE).map_err(told)?;
        let shape = KeyShape::new(&[Field::Text(length)]);
        let index = engine.create_index(INDEX, &table, &shape).map_err(told)?;
        Ok(Self {
            engine,
            table,
            index,
        })
    }

    /// Finds it.
    pub fn find(engine: Engine<A>) -> Result<Self, OperationError> {
        let table = engine.table_handle(TABLE).map_err(told)?;
        let index = engine.index_handle(INDEX).map_err(told)?;
        Ok(Self {
            engine,
            table,
            index,
        })
    }

    /// The engine below.
    pub const fn engine(&self) -> &Engine<A> {
        &self.engine
    }

    /// Gives the engine back, to be closed.
    pub fn into_engine(self) -> Engine<A> {
        self.engine
    }
}

/// A client's session with the table.
pub struct UserRows<'e, A: Assembly> {
    session: Session<'e, A>,
    users: &'e UserTable<A>,
    shape: Shape,
    /// What was collected: keys and their rows.
    found: Vec<(KeyText, Rid)>,
    rows_scanned: u64,
}

impl<'e, A: Assembly> UserRows<'e, A> {
    /// A client's session.
    pub fn new(users: &'e UserTable<A>, shape: &Shape) -> Result<Self, OperationError> {
        Ok(Self {
            session: users.engine.session().map_err(told)?,
            users,
            shape: shape.clone(),
            found: Vec::new(),
            rows_scanned: 0,
        })
    }

    /// Finds that the row of the lowest key is of the job's length.
    pub fn check_first(&mut self) -> Answer {
        let most = [u8::MAX; KEY_LENGTH];
        self.whole(|rows| {
            rows.collect(&[0; KEY_LENGTH], &most, 1)?;
            let Some((_, rid)) = rows.found.first().copied() else {
                let message = "there are no rows; run a job of phase load on this store first";
                return Err(OperationError::new(ErrorKind::Refused, message));
            };
            let pinned = rows.pin(rid)?;
            let length = rows.session.read(&pinned, <[u8]>::len).map_err(told)?;
            if length == rows.shape.job.table.row_length() {
                return Ok(());
            }
            Err(OperationError::new(
                ErrorKind::Refused,
                format!(
                    "rows have {length} bytes and the job's {}; load them with this field_count and field_length_bytes",
                    rows.shape.job.table.row_length()
                ),
            ))
        })
    }

    /// A transaction of its own.
    fn whole(&mut self, work: impl FnOnce(&mut Self) -> Answer) -> Answer {
        self.session.begin().map_err(told)?;
        match work(self) {
            Ok(()) => self.session.commit().map_err(told),
            Err(error) => {
                // The first error is the one to report. Without transactions there is nothing to undo: what may fail comes
                // before the first change.
                let _ = self.session.rollback();
                Err(error)
            }
        }
    }

    fn lookup(&mut self, key: &str, access: Access) -> Result<Pinned<'e, A>, OperationError> {
        let index = self.session.index(&self.users.index).map_err(told)?;
        let rid = self
            .session
            .lookup(index, key.as_bytes(), access)
            .map_err(told)?;
        let missing = || {
            OperationError::new(
                ErrorKind::MissingKey,
                format!("there is no row with key {key}"),
            )
        };
        self.pin(rid.ok_or_else(missing)?)
    }

    fn pin(&mut self, rid: Rid) -> Result<Pinned<'e, A>, OperationError> {
        let table = self.session.table(&self.users.table).map_err(told)?;
        self.session.pin(table, rid).map_err(told)
    }

    /// The first rows of a range.
    fn collect(&mut self, from: &[u8], to: &[u8], most: usize) -> Answer {
        let index = self.session.index(&self.users.index).map_err(told)?;
        let found = &mut self.found;
        found.clear();
        let visit = |key: &[u8], rid| {
            // All keys of the index are of this length.
            found.extend(key.try_into().ok().map(|key| (key, rid)));
            if found.len() < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        self.session
            .scan(index, from, to, Access::Read, Direction::Forwards, visit)
            .map_err(told)
    }

    fn add(&mut self, key: &[u8], values: &[u8]) -> Answer {
        let (table, index) = self.places()?;
        if !Engine::<A>::HAS_TRANSACTIONS
            && self
                .session
                .lookup(index, key, Access::Change)
                .map_err(told)?
                .is_some()
        {
            // Nothing could be undone.
            return Err(told(Error::Duplicate));
        }
        let rid = self.session.create(table, values).map_err(told)?;
        self.session.insert(index, key, rid).map_err(told)
    }

    #[allow(clippy::type_complexity)]
    fn places(
        &mut self,
    ) -> Result<
        (
            &'e dyno_glass::catalogue::Table<A::Latch>,
            &'e dyno_glass::catalogue::Index,
        ),
        OperationError,
    > {
        let table = self.session.table(&self.users.table).map_err(told)?;
        let index = self.session.index(&self.users.index).map_err(told)?;
        Ok((table, index))
    }

    /// Bytes of the fields, from where on.
    fn part(&self, fields: Fields) -> (usize, usize) {
        let length = self.shape.job.table.field_length as usize;
        match fields {
            Fields::All => (0, self.shape.job.table.row_length()),
            Fields::One(field) => (field as usize * length, length),
        }
    }

    /// Looks at the fields of a row, and finds them as they must be.
    fn look(&self, key: &[u8], pinned: &Pinned<'e, A>, fields: Fields) -> Answer {
        let (start, length) = self.part(fields);
        let job = &self.shape.job;
        let wrong = |message: String| Err(OperationError::new(ErrorKind::WrongValue, message));
        let look = |row: &[u8]| {
            if row.len() != job.table.row_length() {
                return wrong(format!(
                    "a row has {} bytes, expected {}",
                    row.len(),
                    job.table.row_length()
                ));
            }
            let field_length = job.table.field_length as usize;
            let first = u32::try_from(start / field_length).unwrap_or(u32::MAX);
            for (field, value) in
                (first..).zip(row[start..start + length].chunks_exact(field_length))
            {
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
        };
        self.session.read(pinned, look).map_err(told)?
    }
}

impl<A: Assembly> Rows for UserRows<'_, A> {
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        self.whole(|rows| {
            let pinned = rows.lookup(key, Access::Read)?;
            rows.look(key.as_bytes(), &pinned, fields)
        })
    }

    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        self.whole(|rows| {
            let pinned = rows.lookup(key, Access::Change)?;
            let (start, _) = rows.part(fields);
            rows.session
                .update(&pinned, start, values.as_bytes())
                .map_err(told)
        })
    }

    fn insert(&mut self, key: &str, values: &str) -> Answer {
        self.whole(|rows| rows.add(key.as_bytes(), values.as_bytes()))
    }

    fn scan(&mut self, start: &str, most: u32, fields: Fields) -> Answer {
        self.whole(|rows| {
            rows.collect(start.as_bytes(), &[u8::MAX; KEY_LENGTH], most as usize)?;
            let found = std::mem::take(&mut rows.found);
            rows.rows_scanned += found.len() as u64;
            let looked = found.iter().try_for_each(|(key, rid)| {
                let pinned = rows.pin(*rid)?;
                rows.look(key, &pinned, fields)
            });
            rows.found = found;
            looked
        })
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        let length = self.shape.job.table.row_length();
        self.whole(|rows| {
            let mut both = keys
                .as_bytes()
                .chunks(KEY_LENGTH)
                .zip(values.as_bytes().chunks(length));
            both.try_for_each(|(key, values)| rows.add(key, values))
        })
    }

    fn counters(&self) -> Status {
        Status::from([("rows_scanned", self.rows_scanned as f64)])
    }
}
