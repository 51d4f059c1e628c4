//! Ways into stores, each protocol by itself.

mod cratedb;
mod csv;
mod http;
mod nothing;
mod postgres;
mod questdb_http;
mod questdb_tcp;
mod row;

use std::sync::Arc;

use dyno_sql::{Address, Interrupter, Result};

use crate::batch::{Batch, Counts};
use crate::job::{Backend, Places};
use crate::manifest::Table;

/// A worker's way into a store.
pub trait Sink: Send {
    /// Sends the rows of a batch that are not yet among `done`, and waits for what acknowledges them, if anything does;
    /// adds those that were acknowledged to `done`, also where others then fail.
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()>;

    /// Which rows of a table were not acknowledged when the last batch failed, by their places among the rows of that
    /// table; none where they are all those behind the first ones that were.
    fn left(&self, _table: usize) -> Option<&[usize]> {
        None
    }

    /// Says that nothing more comes, and waits until all that was sent was taken.
    fn finish(&mut self) -> Result<()>;

    /// Connects anew, to the next of several addresses.
    fn reconnect(&mut self) -> Result<()>;

    /// Ends whatever it waits for.
    fn interrupter(&self) -> Interrupter;

    /// The store's version as it says it itself; empty where it says none.
    fn version(&self) -> String {
        String::new()
    }
}

/// A table of the data: its name, and what its rows have.
pub type Known = (String, Table);

/// Connects a worker.
pub fn connect(backend: &Backend, tables: &Arc<[Known]>, worker: usize) -> Result<Box<dyn Sink>> {
    Ok(match backend {
        Backend::QuestdbTcp(places) => Box::new(questdb_tcp::QuestdbTcp::connect(places, worker)?),
        Backend::QuestdbHttp(places) => {
            Box::new(questdb_http::QuestdbHttp::connect(places, worker)?)
        }
        Backend::Cratedb(places, columns) => {
            Box::new(cratedb::Cratedb::connect(places, columns, tables, worker)?)
        }
        Backend::Postgresql(server, columns) => {
            Box::new(postgres::Copy::connect(server, columns, tables)?)
        }
        Backend::Csv(folder, columns) => {
            Box::new(csv::Csv::create(folder, columns, tables, worker)?)
        }
        Backend::Null => Box::new(nothing::Nothing::default()),
    })
}

/// Addresses that are taken in turn.
struct Turns {
    places: Places,
    next: usize,
}

impl Turns {
    fn new(places: &Places, worker: usize) -> Self {
        Self {
            places: places.clone(),
            next: worker,
        }
    }

    fn take(&mut self) -> Address {
        let address = &self.places.addresses[self.next % self.places.addresses.len()];
        self.next += 1;
        address.clone()
    }
}

/// A name as it stands in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table's name as it stands in a statement.
fn quoted_table(schema: Option<&str>, name: &str) -> String {
    schema.map_or_else(
        || quoted(name),
        |schema| format!("{}.{}", quoted(schema), quoted(name)),
    )
}
