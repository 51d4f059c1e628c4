//! TPC-C on the engine, in any of its assemblies: its tables and indexes, and how they are filled.

mod load;
pub(crate) mod places;
mod store;

use dyno_glass::assembly::Assembly;
use dyno_glass::catalogue::{IndexHandle, TableHandle};
use dyno_glass::engine::Engine;
use dyno_glass::keys::{Field, Shape};
use dyno_sql::{Result, Value};
use dyno_tpcc::Scan;
use dyno_tpcc::population::Table;

use crate::error::told;
use crate::record;

pub use load::Loader;
pub use store::EngineStore;

/// The indexes; all but the last two are of the primary keys of the specification's 1.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    Orders,
    NewOrder,
    OrderLine,
    /// Customers by last name, then first name and number.
    CustomerName,
    /// Orders by customer and number.
    OrdersCustomer,
}

/// The longest texts of names (1.3.1).
const NAME: u16 = 16;

impl Index {
    const ALL: [Self; 10] = [
        Self::Item,
        Self::Warehouse,
        Self::Stock,
        Self::District,
        Self::Customer,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
        Self::CustomerName,
        Self::OrdersCustomer,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Item => "item_key",
            Self::Warehouse => "warehouse_key",
            Self::Stock => "stock_key",
            Self::District => "district_key",
            Self::Customer => "customer_key",
            Self::Orders => "orders_key",
            Self::NewOrder => "new_order_key",
            Self::OrderLine => "order_line_key",
            Self::CustomerName => "customer_name",
            Self::OrdersCustomer => "orders_customer",
        }
    }

    const fn table(self) -> Table {
        match self {
            Self::Item => Table::Item,
            Self::Warehouse => Table::Warehouse,
            Self::Stock => Table::Stock,
            Self::District => Table::District,
            Self::Customer | Self::CustomerName => Table::Customer,
            Self::Orders | Self::OrdersCustomer => Table::Orders,
            Self::NewOrder => Table::NewOrder,
            Self::OrderLine => Table::OrderLine,
        }
    }

    fn shape(self) -> Shape {
        const NUMBERS: [Field; 4] = [Field::Int; 4];
        match self {
            Self::CustomerName => Shape::new(&[
                Field::Int,
                Field::Int,
                Field::Text(NAME),
                Field::Text(NAME),
                Field::Int,
            ]),
            Self::OrdersCustomer => Shape::new(&NUMBERS),
            key => Shape::new(&NUMBERS[..key.table().key_columns()]),
        }
    }
}

/// What tables and indexes are called, in the order of their enumerations.
struct Handles {
    tables: Vec<TableHandle>,
    indexes: Vec<IndexHandle>,
}

impl Handles {
    const fn table(&self, table: Table) -> &TableHandle {
        &self.tables.as_slice()[table as usize]
    }

    const fn index(&self, index: Index) -> &IndexHandle {
        &self.indexes.as_slice()[index as usize]
    }
}

/// An engine that has the tables.
pub struct Database<A: Assembly> {
    engine: Engine<A>,
    handles: Handles,
}

impl<A: Assembly> Database<A> {
    /// Makes the tables and indexes in an engine that has none of them.
    pub fn create(engine: Engine<A>) -> Result<Self> {
        let tables = Table::ALL
            .into_iter()
            .map(|table| engine.create_table(table.name()));
        let tables: Vec<TableHandle> = tables.collect::<dyno_glass::Result<_>>().map_err(told)?;
        let indexes = Index::ALL.into_iter().map(|index| {
            let table = &tables[index.table() as usize];
            engine.create_index(index.name(), table, &index.shape())
        });
        let indexes = indexes.collect::<dyno_glass::Result<_>>().map_err(told)?;
        Ok(Self {
            engine,
            handles: Handles { tables, indexes },
        })
    }

    /// Finds the tables and indexes in an engine that has them.
    pub fn find(engine: Engine<A>) -> Result<Self> {
        let tables = Table::ALL
            .into_iter()
            .map(|table| engine.table_handle(table.name()));
        let tables = tables.collect::<dyno_glass::Result<_>>().map_err(told)?;
        let indexes = Index::ALL
            .into_iter()
            .map(|index| engine.index_handle(index.name()));
        let indexes = indexes.collect::<dyno_glass::Result<_>>().map_err(told)?;
        Ok(Self {
            engine,
            handles: Handles { tables, indexes },
        })
    }

    /// A client's session. One at a time where the assembly has no latches or no locks.
    pub fn store(&self) -> Result<EngineStore<'_, A>> {
        EngineStore::new(self)
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

/// All records of a table, as they are while no transaction is under way.
impl<A: Assembly> Scan for &Database<A> {
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<()> {
        // What the caller says goes past the engine, which knows its own errors alone.
        let mut wrong = None;
        let all = self.engine.each(self.handles.table(table), |_, bytes| {
            if wrong.is_none() {
                wrong = record::decode(table, bytes, each).err();
            }
            Ok(())
        });
        wrong.map_or_else(|| all.map_err(told), Err)
    }
}
