//! Fills the maps, by as many clients as there are.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_sql::{Error, ErrorKind, Result, Value};
use dyno_tpcc::population::{self, Table};
use dyno_tpcc::{Config, Kind, Store as _};

use super::{Map, Maps, OrderedStore};
use crate::engine::places::{key, name_key};
use crate::record::encode;

/// Rows of a transaction: enough to make its end cheap, and few enough for its locks and its log to be small.
const BATCH_ROWS: u64 = 1_000;

/// What the clients that load share.
#[derive(Debug)]
pub struct Loader {
    config: Config,
    next: AtomicU64,
}

impl Loader {
    /// Everything is still to do.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            next: AtomicU64::new(0),
        }
    }

    /// Loads the next unit that no client has taken. Gives how many rows it has, or `None` where all units are taken.
    pub fn load_next<M: Maps>(&self, store: &mut OrderedStore<M>) -> Result<Option<u64>> {
        let unit = self.next.fetch_add(1, Ordering::Relaxed);
        if unit >= population::units(&self.config) {
            return Ok(None);
        }
        let mut rows = 0;
        let mut record = Vec::new();
        // No transaction of TPC-C: which one is named makes no difference here.
        store.begin(Kind::NewOrder)?;
        let loaded = population::fill(&self.config, unit, |table, row| {
            add(store.maps(), table, row, &mut record)?;
            rows += 1;
            if rows % BATCH_ROWS == 0 {
                store.commit()?;
                store.begin(Kind::NewOrder)?;
            }
            Ok(())
        });
        match loaded.and_then(|()| store.commit()) {
            Ok(()) => Ok(Some(rows)),
            Err(error) => {
                // The first error is the one to report.
                let _ = store.rollback();
                Err(error)
            }
        }
    }
}

/// Adds a row to its table, and to what is searched.
fn add(maps: &mut impl Maps, table: Table, row: &[Value<'_>], record: &mut Vec<u8>) -> Result<()> {
    encode(table, row, record)?;
    let map = Map::Of(table);
    let mut numbers = [0; 4];
    for (into, value) in numbers.iter_mut().zip(&row[..table.key_columns()]) {
        *into = number(*value)?;
    }
    let [first, second, third, fourth] = numbers;
    match table.key_columns() {
        0 => {
            let number = maps.next_history().to_be_bytes();
            maps.insert(map, &number, record)?;
        }
        1 => maps.insert(map, &key::<1, 4>([first])?, record)?,
        2 => maps.insert(map, &key::<2, 8>([first, second])?, record)?,
        3 => maps.insert(map, &key::<3, 12>([first, second, third])?, record)?,
        _ => maps.insert(map, &key::<4, 16>([first, second, third, fourth])?, record)?,
    }
    match table {
        Table::Customer => {
            let [first_name, last_name] = [text(row[3])?, text(row[5])?];
            let key = name_key(first, second, last_name, first_name, third)?;
            maps.insert(Map::CustomerName, &key, &[])
        }
        Table::Orders => {
            let key = key::<4, 16>([first, second, number(row[3])?, third])?;
            maps.insert(Map::OrdersCustomer, &key, &[])
        }
        _ => Ok(()),
    }
}

fn number(value: Value<'_>) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(number),
        other => Err(wrong(other)),
    }
}

fn text(value: Value<'_>) -> Result<&str> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(wrong(other)),
    }
}

fn wrong(value: Value<'_>) -> Error {
    Error::new(
        ErrorKind::WrongValue,
        format!("{value:?} does not fit its key"),
    )
}
