//! Fills the tables, by as many clients as there are.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_glass::Rid;
use dyno_glass::assembly::Assembly;
use dyno_sql::{Result, Value};
use dyno_tpcc::population::{self, Table};
use dyno_tpcc::{Config, Kind, Store as _};

use super::places::name_key;
use super::store::EngineStore;
use super::{Database, Index};
use crate::error::told;
use crate::record::{self, narrow};

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
    pub fn load_next<A: Assembly>(&self, store: &mut EngineStore<'_, A>) -> Result<Option<u64>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= population::units(&self.config) {
            return Ok(None);
        }
        let mut rows = 0;
        let mut record = Vec::new();
        // No transaction of TPC-C: which one is named makes no difference to the engine.
        store.begin(Kind::NewOrder)?;
        let loaded = population::fill(&self.config, number, |table, row| {
            store.add(table, row, &mut record)?;
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

    /// Loads everything by one client.
    pub fn load_all<A: Assembly>(database: &Database<A>, config: &Config) -> Result<u64> {
        let loader = Self::new(config);
        let mut store = database.store()?;
        let mut rows = 0;
        while let Some(more) = loader.load_next(&mut store)? {
            rows += more;
        }
        Ok(rows)
    }
}

impl<A: Assembly> EngineStore<'_, A> {
    /// Adds a row to its table and all its indexes.
    fn add(&mut self, table: Table, row: &[Value<'_>], record: &mut Vec<u8>) -> Result<()> {
        record::encode(table, row, record)?;
        let rid = self.create(table, record)?;
        let own = match table {
            Table::Item => Some(Index::Item),
            Table::Warehouse => Some(Index::Warehouse),
            Table::Stock => Some(Index::Stock),
            Table::District => Some(Index::District),
            Table::Customer => Some(Index::Customer),
            Table::History => None,
            Table::Orders => Some(Index::Orders),
            Table::NewOrder => Some(Index::NewOrder),
            Table::OrderLine => Some(Index::OrderLine),
        };
        if let Some(index) = own {
            self.add_key(index, &row[..table.key_columns()], rid)?;
        }
        match table {
            Table::Customer => {
                let numbers = numbers(&row[..3])?;
                let texts = [row[3], row[5]].map(|value| match value {
                    Value::Text(text) => text,
                    _ => "",
                });
                let [warehouse, district, number] = [numbers[0], numbers[1], numbers[2]];
                let key = name_key(warehouse, district, texts[1], texts[0], number)?;
                self.insert(Index::CustomerName, &key, rid)
            }
            Table::Orders => self.add_key(
                Index::OrdersCustomer,
                &[row[0], row[1], row[3], row[2]],
                rid,
            ),
            _ => Ok(()),
        }
    }

    /// Puts a key of numbers into an index.
    fn add_key(&mut self, index: Index, values: &[Value<'_>], rid: Rid) -> Result<()> {
        let mut key = Vec::with_capacity(16);
        for number in numbers(values)? {
            key.extend_from_slice(&dyno_glass::keys::int(narrow(number)?));
        }
        self.insert(index, &key, rid)
    }
}

/// Values that all are numbers.
fn numbers(values: &[Value<'_>]) -> Result<Vec<i64>> {
    let number = |value: &Value<'_>| match value {
        Value::Int(number) => Ok(*number),
        other => Err(told(dyno_glass::Error::Refused(format!(
            "{other:?} is no number of a key"
        )))),
    };
    values.iter().map(number).collect()
}
