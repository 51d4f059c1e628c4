//! TPC-C on ordered maps: each table is one from its primary key to its record, and there are two more that are searched.
//!
//! It is for stores that know keys and values and nothing else. Records and keys are those of the engine, so that what
//! differs between stores is the store.

mod load;
mod store;

use std::ops::ControlFlow;

use dyno_sql::{Result, Value};
use dyno_tpcc::Scan;
use dyno_tpcc::population::Table;

use crate::record;

pub use load::Loader;
pub use store::OrderedStore;

/// What a value is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read.
    Read,
    /// To be changed in the same transaction.
    Change,
}

/// Which way a range is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key on.
    Forwards,
    /// From the greatest key on.
    Backwards,
}

/// The maps; all but the last two are of the tables, in the order of [`Table::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Rows of a table by primary key. The history has none: its key is a number that nobody else has.
    Of(Table),
    /// Customers by last name, then first name and number. Values are empty.
    CustomerName,
    /// Orders by customer and number. Values are empty.
    OrdersCustomer,
}

impl Map {
    /// All of them, each at its number.
    pub const ALL: [Self; 11] = [
        Self::Of(Table::Item),
        Self::Of(Table::Warehouse),
        Self::Of(Table::Stock),
        Self::Of(Table::District),
        Self::Of(Table::Customer),
        Self::Of(Table::History),
        Self::Of(Table::Orders),
        Self::Of(Table::NewOrder),
        Self::Of(Table::OrderLine),
        Self::CustomerName,
        Self::OrdersCustomer,
    ];

    /// Its place in [`Self::ALL`].
    #[inline]
    #[must_use]
    pub const fn number(self) -> usize {
        match self {
            Self::Of(table) => table as usize,
            Self::CustomerName => 9,
            Self::OrdersCustomer => 10,
        }
    }

    /// Its name, such as a file may have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Of(table) => table.name(),
            Self::CustomerName => "customer_name",
            Self::OrdersCustomer => "orders_customer",
        }
    }
}

/// Is shown keys and values, and says when it has seen enough.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A client's use of ordered maps, keys compared byte by byte. Where the store has transactions, calls between `begin` and
/// `commit` are one.
pub trait Maps {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<()>;

    /// Makes its changes last.
    fn commit(&mut self) -> Result<()>;

    /// Undoes its changes; an error where nothing can be undone.
    fn rollback(&mut self) -> Result<()>;

    /// The value of a key, until the next call; `None` where there is none.
    fn get(&mut self, map: Map, key: &[u8], access: Access) -> Result<Option<&[u8]>>;

    /// Writes the value of a key that is there.
    fn put(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a key; an error where it is there.
    fn insert(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key. Gives whether it was there.
    fn remove(&mut self, map: Map, key: &[u8]) -> Result<bool>;

    /// Shows keys and values of a range, both ends included, until told to stop.
    fn scan(
        &mut self,
        map: Map,
        range: (&[u8], &[u8]),
        access: Access,
        direction: Direction,
        each: Visit<'_>,
    ) -> Result<()>;

    /// A number that is the key of no row of the history and is given to nobody else.
    fn next_history(&mut self) -> u64;
}

/// The number that the history's next row may have: beyond all that are there. For whoever opens a store.
pub fn first_history(maps: &mut impl Maps) -> Result<u64> {
    let mut last = 0;
    let range: (&[u8], &[u8]) = (&[0; 8], &[u8::MAX; 8]);
    maps.scan(
        Map::Of(Table::History),
        range,
        Access::Read,
        Direction::Backwards,
        &mut |key, _| {
            last = key
                .first_chunk()
                .map_or(0, |bytes| u64::from_be_bytes(*bytes));
            ControlFlow::Break(())
        },
    )?;
    Ok(last + 1)
}

/// All rows of a table, as they are while no transaction is under way.
#[derive(Debug)]
pub struct Rows<M>(pub M);

impl<M: Maps> Scan for Rows<M> {
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<()> {
        // No key is as long as that.
        let range: (&[u8], &[u8]) = (&[], &[u8::MAX; 32]);
        let mut shown = Ok(());
        self.0.scan(
            Map::Of(table),
            range,
            Access::Read,
            Direction::Forwards,
            &mut |_, bytes| {
                shown = record::decode(table, bytes, each);
                if shown.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            },
        )?;
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_at_their_numbers_and_have_names_of_their_own() {
        let mut names = std::collections::BTreeSet::new();
        for (number, map) in Map::ALL.into_iter().enumerate() {
            assert_eq!(map.number(), number);
            assert!(names.insert(map.name()));
        }
    }
}
