//! TPC-C on the kernel: rows in vectors, and a tree of [`dyno_glass::kernel`] for each key.
//!
//! One client at a time. A transaction that fails half way cannot be undone, so that nothing can be asked after it.

mod rows;
mod store;

use dyno_glass::kernel::Tree;
use dyno_sql::{Error, ErrorKind, Result, Value};
use dyno_tpcc::population::{self, Table};
use dyno_tpcc::{Config, CustomerKey, MAX_LINES, Scan, StockKey};

pub use store::KernelStore;

use rows::{Customer, District, History, Item, NewOrder, Order, OrderLine, Row, Stock, Warehouse};

/// Rows and where they are by their key.
#[derive(Debug)]
struct Keyed<R> {
    rows: Vec<R>,
    places: Tree,
}

impl<R> Default for Keyed<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            places: Tree::default(),
        }
    }
}

impl<R: Row> Keyed<R> {
    fn insert(&mut self, key: u64, row: R) -> Result<u32> {
        let place = add(&mut self.rows, row)?;
        if self.places.insert(key, place) {
            return Ok(place);
        }
        Err(Error::new(
            ErrorKind::DuplicateKey,
            "a row of that key exists",
        ))
    }

    /// The row at a place that the tree gave.
    #[inline]
    fn row(&self, place: u32) -> &R {
        &self.rows[place as usize]
    }

    #[inline]
    fn row_mut(&mut self, place: u32) -> &mut R {
        &mut self.rows[place as usize]
    }
}

fn add<R>(rows: &mut Vec<R>, row: R) -> Result<u32> {
    let place = u32::try_from(rows.len());
    rows.push(row);
    place.map_err(|_| Error::new(ErrorKind::OutOfMemory, "a table has no more than 2^32 rows"))
}

/// The nine tables.
#[derive(Debug, Default)]
pub struct Kernel {
    items: Keyed<Item>,
    warehouses: Keyed<Warehouse>,
    stocks: Keyed<Stock>,
    districts: Keyed<District>,
    customers: Keyed<Customer>,
    histories: Vec<History>,
    orders: Keyed<Order>,
    /// Their keys are all there is to them.
    new_orders: Tree,
    order_lines: Keyed<OrderLine>,
    /// Customers of one district whose last names have one hash: a place in `namesakes`.
    names: Tree,
    /// Places of customers, in the order of first names and numbers.
    namesakes: Vec<Vec<u32>>,
    /// Orders by their customers.
    orders_of_customers: Tree,
    /// Rows that the transaction has read and is going to change.
    held: Held,
    /// Whether a transaction is under way, or failed.
    unfinished: bool,
}

/// Where rows are that were read for update, so that they are not looked for again.
#[derive(Debug)]
struct Held {
    warehouse: (i64, u32),
    district: (u64, u32),
    customer: (CustomerKey, u32),
    stocks: [(StockKey, u32); MAX_LINES],
    /// Used again and again.
    items: Vec<i32>,
}

impl Default for Held {
    fn default() -> Self {
        // No key has numbers of 0.
        Self {
            warehouse: (0, 0),
            district: (0, 0),
            customer: (CustomerKey::default(), 0),
            stocks: [(StockKey::default(), 0); MAX_LINES],
            items: Vec::new(),
        }
    }
}

/// A key of up to four numbers: a warehouse, one of its districts, and a number there (an item, a customer, an order), of
/// which a line may be meant.
#[inline]
const fn key(warehouse: i64, district: i64, number: i64, line: i64) -> u64 {
    (warehouse << 44 | district << 40 | number << 8 | line).cast_unsigned()
}

/// The key of an order among those of its customer.
#[inline]
const fn key_of_customer(customer: CustomerKey, order: i64) -> u64 {
    let CustomerKey {
        warehouse,
        district,
        number,
    } = customer;
    (warehouse << 44 | district << 40 | number << 28 | order).cast_unsigned()
}

/// What [`key_of_customer`] has room for.
const LAST_ORDER: i64 = (1 << 28) - 1;

/// The key of customers of a last name, and of others whose names have the same hash (FNV-1a, folded to 40 bits).
fn key_of_name(warehouse: i64, district: i64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    key(warehouse, district, 0, 0) | (hash ^ hash >> 40) & ((1 << 40) - 1)
}

impl Kernel {
    /// The tables as [`population`] fills them.
    pub fn load(config: &Config) -> Result<Self> {
        Self::load_until(config, || false)
    }

    /// As [`Self::load`], but ends when it is to end, with what there is then.
    pub fn load_until(config: &Config, ends: impl Fn() -> bool) -> Result<Self> {
        let mut kernel = Self::default();
        for unit in 0..population::units(config) {
            if ends() {
                break;
            }
            population::fill(config, unit, |table, row| kernel.insert(table, row))?;
        }
        Ok(kernel)
    }

    /// Adds a row.
    fn insert(&mut self, table: Table, values: &[Value<'_>]) -> Result<()> {
        match table {
            Table::Item => {
                let row = Item::take(values)?;
                self.items.insert(key(0, 0, row.id.into(), 0), row)?;
            }
            Table::Warehouse => {
                let row = Warehouse::take(values)?;
                self.warehouses.insert(key(row.id.into(), 0, 0, 0), row)?;
            }
            Table::Stock => {
                let row = Stock::take(values)?;
                let key = key(row.warehouse.into(), 0, row.item.into(), 0);
                self.stocks.insert(key, row)?;
            }
            Table::District => {
                let row = District::take(values)?;
                let key = key(row.warehouse.into(), row.id.into(), 0, 0);
                self.districts.insert(key, row)?;
            }
            Table::Customer => self.insert_customer(Customer::take(values)?)?,
            Table::History => {
                add(&mut self.histories, History::take(values)?)?;
            }
            Table::Orders => self.insert_order(Order::take(values)?)?,
            Table::NewOrder => {
                let row = NewOrder::take(values)?;
                let key = key(
                    row.warehouse.into(),
                    row.district.into(),
                    row.order.into(),
                    0,
                );
                self.insert_new_order(key)?;
            }
            Table::OrderLine => self.insert_order_line(OrderLine::take(values)?)?,
        }
        Ok(())
    }

    fn insert_customer(&mut self, row: Customer) -> Result<()> {
        let (warehouse, district) = (row.warehouse.into(), row.district.into());
        let name = key_of_name(warehouse, district, row.last.as_str());
        let key = key(warehouse, district, row.id.into(), 0);
        let place = self.customers.insert(key, row)?;
        let group = if let Some(group) = self.names.get(name) {
            group
        } else {
            let group = add(&mut self.namesakes, Vec::new())?;
            self.names.insert(name, group);
            group
        };
        let customers = &self.customers;
        let order = |place: u32| {
            let row = customers.row(place);
            (row.first.as_str(), row.id)
        };
        let group = &mut self.namesakes[group as usize];
        let at = group.partition_point(|other| order(*other) < order(place));
        group.insert(at, place);
        Ok(())
    }

    fn insert_order(&mut self, row: Order) -> Result<()> {
        let number = i64::from(row.id);
        let customer = CustomerKey {
            warehouse: row.warehouse.into(),
            district: row.district.into(),
            number: row.customer.into(),
        };
        let place = self
            .orders
            .insert(key(customer.warehouse, customer.district, number, 0), row)?;
        self.orders_of_customers
            .insert(key_of_customer(customer, number), place);
        Ok(())
    }

    fn insert_new_order(&mut self, key: u64) -> Result<()> {
        if self.new_orders.insert(key, 0) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::DuplicateKey,
            "the order waits for delivery already",
        ))
    }

    fn insert_order_line(&mut self, row: OrderLine) -> Result<()> {
        let key = key(
            row.warehouse.into(),
            row.district.into(),
            row.order.into(),
            row.number.into(),
        );
        self.order_lines.insert(key, row).map(drop)
    }
}

impl Scan for Kernel {
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<()> {
        fn all<R: Row>(rows: &[R], each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
            rows.iter().try_for_each(|row| row.show(each))
        }
        match table {
            Table::Item => all(&self.items.rows, each),
            Table::Warehouse => all(&self.warehouses.rows, each),
            Table::Stock => all(&self.stocks.rows, each),
            Table::District => all(&self.districts.rows, each),
            Table::Customer => all(&self.customers.rows, each),
            Table::History => all(&self.histories, each),
            Table::Orders => all(&self.orders.rows, each),
            Table::NewOrder => {
                let part = |key: u64, shift: u32, bits: u32| {
                    Value::Int((key >> shift & ((1 << bits) - 1)).cast_signed())
                };
                let mut keys = self.new_orders.range(0..=Tree::HIGHEST);
                keys.try_for_each(|(key, _)| {
                    each(&[part(key, 44, 20), part(key, 40, 4), part(key, 8, 32)])
                })
            }
            Table::OrderLine => all(&self.order_lines.rows, each),
        }
    }
}
