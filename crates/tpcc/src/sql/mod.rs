//! The table accesses in SQL, over any connection.
//!
//! What isolation (3.4) costs differs between the stores, and so does what is asked of them:
//!
//! - `SQLite` has one writer at a time: a transaction that writes takes the lock when it begins, one that
//!   reads sees a snapshot or keeps writers out. All are serializable.
//! - `MariaDB` and `MySQL` run at REPEATABLE READ, set for the session: plain reads see a snapshot, reads for
//!   update lock rows and the gaps between them.
//! - `PostgreSQL` runs Order-Status at REPEATABLE READ, which reads a snapshot and cannot fail. The
//!   transactions that write run at READ COMMITTED and lock all rows that other transactions of TPC-C
//!   change before they read them, so that they come out as if one after the other; at REPEATABLE READ
//!   each that waited for a row would fail instead, which with few warehouses is most of them. What they
//!   read without a lock (tax rates, discounts, names, items) no transaction of TPC-C changes: a program
//!   that did so during a run could be seen by a New-Order half way (isolation test 7, 3.4.2.7).
//!
//! Stock-Level needs committed data only (2.8.2.3).

mod schema;
mod statements;

use dyno_sql::{Connection, Dialect, Error, ErrorKind, Result, Row, Value};

pub use schema::{create_indexes, create_tables};
use statements::Statements;
pub use statements::sql_texts;

use crate::store::{
    Buying, CustomerKey, CustomerStatus, Due, History, Item, LastOrder, LineStatus, NextOrder,
    Order, OrderLine, Payer, Place, Stock, StockChange, StockKey, Store,
};
use crate::{DISTRICTS, Kind, MAX_LINES};

use Value::{Int, Null, Text};

/// The tables in a SQL store.
pub struct SqlStore<C: Connection> {
    connection: C,
    statements: Statements<C::Statement>,
}

impl<C: Connection> SqlStore<C> {
    /// Prepares all statements on a connection; the tables must be there.
    pub fn prepare(mut connection: C) -> Result<Self> {
        let statements = prepare(&mut connection)?;
        Ok(Self {
            connection,
            statements,
        })
    }

    /// Connects anew, and prepares all statements.
    pub fn reconnect(&mut self) -> Result<()> {
        self.connection.reconnect()?;
        self.statements = prepare(&mut self.connection)?;
        Ok(())
    }

    /// The connection below.
    pub const fn connection(&mut self) -> &mut C {
        &mut self.connection
    }

    /// Gives the connection back.
    pub fn into_connection(self) -> C {
        self.connection
    }
}

fn prepare<C: Connection>(connection: &mut C) -> Result<Statements<C::Statement>> {
    if C::DIALECT == Dialect::Mysql {
        connection.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    }
    Statements::prepare(connection)
}

/// How a transaction of that kind begins.
const fn begin(dialect: Dialect, kind: Kind) -> &'static str {
    match (dialect, kind) {
        // Taken later, the lock could be refused half way, with all work so far in vain.
        (Dialect::Sqlite, kind) if !kind.reads_only() => "BEGIN IMMEDIATE",
        (Dialect::Sqlite, _) => "BEGIN",
        (Dialect::Mysql, kind) if !kind.reads_only() => "START TRANSACTION",
        (Dialect::Mysql, _) => "START TRANSACTION READ ONLY",
        (Dialect::Postgresql, Kind::OrderStatus) => {
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        }
        (Dialect::Postgresql, Kind::StockLevel) => {
            "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"
        }
        (Dialect::Postgresql, _) => "BEGIN ISOLATION LEVEL READ COMMITTED",
    }
}

/// The most values of one call: all columns of an order's lines.
const MAX_VALUES: usize = MAX_LINES * 9;

/// The values of several rows, one behind the other, without a place on the heap.
struct Values<'a> {
    values: [Value<'a>; MAX_VALUES],
    used: usize,
}

impl<'a> Values<'a> {
    fn of<const WIDTH: usize>(rows: impl Iterator<Item = [Value<'a>; WIDTH]>) -> Self {
        let mut all = Self {
            values: [Null; MAX_VALUES],
            used: 0,
        };
        for row in rows {
            all.values[all.used..all.used + WIDTH].copy_from_slice(&row);
            all.used += WIDTH;
        }
        all
    }

    fn get(&self) -> &[Value<'a>] {
        &self.values[..self.used]
    }
}

/// Text into a buffer that is used again.
fn read_text(row: &mut impl Row, into: &mut String) -> Result<()> {
    let text = std::str::from_utf8(row.text()?).map_err(|error| {
        Error::new(
            ErrorKind::WrongValue,
            format!("text that is no UTF-8: {error}"),
        )
    })?;
    into.clear();
    into.push_str(text);
    Ok(())
}

fn read_texts(row: &mut impl Row, into: &mut [String]) -> Result<()> {
    into.iter_mut().try_for_each(|text| read_text(row, text))
}

fn read_place(row: &mut impl Row, into: &mut Place) -> Result<()> {
    read_text(row, &mut into.name)?;
    read_texts(row, &mut into.address)
}

/// An error unless so many rows were met as there had to be.
fn expect(met: u64, wanted: usize, what: &str) -> Result<()> {
    if met == wanted as u64 {
        return Ok(());
    }
    let kind = if met < wanted as u64 {
        ErrorKind::MissingKey
    } else {
        ErrorKind::WrongValue
    };
    let message = format!("{what}: {met} rows met, expected {wanted}");
    Err(Error::new(kind, message))
}

fn key(customer: CustomerKey) -> [Value<'static>; 3] {
    [
        Int(customer.warehouse),
        Int(customer.district),
        Int(customer.number),
    ]
}

fn keys(warehouse: i64, due: &[Due]) -> Values<'static> {
    let key = |due: &Due| [Int(warehouse), Int(due.district), Int(due.order)];
    Values::of(due.iter().map(key))
}

impl<C: Connection> Store for SqlStore<C> {
    fn begin(&mut self, kind: Kind) -> Result<()> {
        self.connection.run(begin(C::DIALECT, kind))
    }

    fn commit(&mut self) -> Result<()> {
        self.connection.run("COMMIT")
    }

    fn rollback(&mut self) -> Result<()> {
        self.connection.run("ROLLBACK")
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        let mut tax = 0;
        let statement = &mut self.statements.warehouse_tax;
        let rows = self.connection.query(statement, &[Int(warehouse)], |row| {
            tax = row.int()?;
            Ok(())
        })?;
        expect(rows, 1, "the warehouse").map(|()| tax)
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        let statement = &mut self.statements.warehouse;
        let rows = self
            .connection
            .query(statement, &[Int(warehouse)], |row| read_place(row, into))?;
        expect(rows, 1, "the warehouse")
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        let statement = &mut self.statements.add_to_warehouse;
        let values = [Int(amount), Int(warehouse)];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the warehouse")
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        let statement = &mut self.statements.district;
        let values = [Int(warehouse), Int(district)];
        let rows = self
            .connection
            .query(statement, &values, |row| read_place(row, into))?;
        expect(rows, 1, "the district")
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        let statement = &mut self.statements.add_to_district;
        let values = [Int(amount), Int(warehouse), Int(district)];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the district")
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        let mut next = NextOrder::default();
        let statement = &mut self.statements.next_order;
        let values = [Int(warehouse), Int(district)];
        let rows = self.connection.query(statement, &values, |row| {
            next.tax = row.int()?;
            next.number = row.int()?;
            Ok(())
        })?;
        expect(rows, 1, "the district").map(|()| next)
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        let mut number = 0;
        let statement = &mut self.statements.next_order_number;
        let values = [Int(warehouse), Int(district)];
        let rows = self.connection.query(statement, &values, |row| {
            number = row.int()?;
            Ok(())
        })?;
        expect(rows, 1, "the district").map(|()| number)
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let statement = &mut self.statements.set_next_order;
        let values = [Int(number), Int(warehouse), Int(district)];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the district")
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let statement = &mut self.statements.buying;
        let rows = self.connection.query(statement, &key(customer), |row| {
            into.discount = row.int()?;
            read_text(row, &mut into.last_name)?;
            read_text(row, &mut into.credit)
        })?;
        expect(rows, 1, "the customer")
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        let statement = &mut self.statements.payer;
        let rows = self.connection.query(statement, &key(customer), |row| {
            read_texts(row, &mut into.names)?;
            read_texts(row, &mut into.address)?;
            read_text(row, &mut into.phone)?;
            into.since = row.int()?;
            read_text(row, &mut into.credit)?;
            into.credit_limit = row.int()?;
            into.discount = row.int()?;
            into.balance = row.int()?;
            Ok(())
        })?;
        expect(rows, 1, "the customer")
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        let statement = &mut self.statements.customer_data;
        let rows = self
            .connection
            .query(statement, &key(customer), |row| read_text(row, into))?;
        expect(rows, 1, "the customer")
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        let [warehouse, district, number] = key(customer);
        let rows = if let Some(data) = data {
            let statement = &mut self.statements.pay_and_note;
            let values = [
                Int(amount),
                Int(amount),
                Text(data),
                warehouse,
                district,
                number,
            ];
            self.connection.execute(statement, &values)?
        } else {
            let statement = &mut self.statements.pay;
            let values = [Int(amount), Int(amount), warehouse, district, number];
            self.connection.execute(statement, &values)?
        };
        expect(rows, 1, "the customer")
    }

    fn customers_by_last_name(
        &mut self,
        warehouse: i64,
        district: i64,
        last_name: &str,
        into: &mut Vec<i64>,
    ) -> Result<()> {
        into.clear();
        let statement = &mut self.statements.customers_by_last_name;
        let values = [Int(warehouse), Int(district), Text(last_name)];
        self.connection.query(statement, &values, |row| {
            into.push(row.int()?);
            Ok(())
        })?;
        Ok(())
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        let statement = &mut self.statements.customer_status;
        let rows = self.connection.query(statement, &key(customer), |row| {
            into.balance = row.int()?;
            read_texts(row, &mut into.names)
        })?;
        expect(rows, 1, "the customer")
    }

    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        let [warehouse, district, number] = key(history.customer);
        let statement = &mut self.statements.insert_history;
        let values = [
            warehouse,
            district,
            number,
            Int(history.warehouse),
            Int(history.district),
            Int(history.date),
            Int(history.amount),
            Text(history.data),
        ];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the history")
    }

    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        into.iter_mut().for_each(|item| item.found = false);
        let statement = &mut self.statements.item;
        let values = Values::of(items.iter().map(|item| [Int(*item)]));
        self.connection
            .query_each(statement, values.get(), 1, |place, row| {
                let item = &mut into[place];
                item.found = true;
                item.price = row.int()?;
                read_text(row, &mut item.name)?;
                read_text(row, &mut item.data)
            })?;
        Ok(())
    }

    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        into.iter_mut().for_each(|stock| stock.found = false);
        let place = usize::try_from(district - 1).unwrap_or(usize::MAX);
        let statement = self.statements.stock.get_mut(place);
        let statement = statement.ok_or_else(|| {
            Error::new(
                ErrorKind::MissingKey,
                format!("district {district} does not exist"),
            )
        })?;
        let row = |stock: &StockKey| [Int(stock.warehouse), Int(stock.item)];
        let values = Values::of(stocks.iter().map(row));
        self.connection
            .query_each(statement, values.get(), 2, |place, row| {
                let stock = &mut into[place];
                stock.found = true;
                stock.quantity = row.int()?;
                read_text(row, &mut stock.district_info)?;
                read_text(row, &mut stock.data)
            })?;
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        let values = Values::of(changes.iter().map(|change| {
            [
                Int(change.quantity),
                Int(change.ordered),
                Int(i64::from(change.remote)),
                Int(change.key.warehouse),
                Int(change.key.item),
            ]
        }));
        let statement = &mut self.statements.update_stock;
        let rows = self.connection.execute_each(statement, values.get(), 5)?;
        expect(rows, changes.len(), "stocks")
    }

    fn insert_order(&mut self, order: &Order) -> Result<()> {
        let statement = &mut self.statements.insert_order;
        let values = [
            Int(order.customer.warehouse),
            Int(order.customer.district),
            Int(order.number),
            Int(order.customer.number),
            Int(order.entered),
            Int(order.lines),
            Int(i64::from(order.all_local)),
        ];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the order")
    }

    fn insert_new_order(&mut self, order: &Order) -> Result<()> {
        let statement = &mut self.statements.insert_new_order;
        let values = [
            Int(order.customer.warehouse),
            Int(order.customer.district),
            Int(order.number),
        ];
        let rows = self.connection.execute(statement, &values)?;
        expect(rows, 1, "the new order")
    }

    fn insert_order_lines(&mut self, order: &Order, lines: &[OrderLine<'_>]) -> Result<()> {
        let values = Values::of(lines.iter().map(|line| {
            [
                Int(order.customer.warehouse),
                Int(order.customer.district),
                Int(order.number),
                Int(line.number),
                Int(line.item),
                Int(line.supply_warehouse),
                Int(line.quantity),
                Int(line.amount),
                Text(line.district_info),
            ]
        }));
        let statement = &mut self.statements.insert_order_line;
        let rows = self.connection.execute_each(statement, values.get(), 9)?;
        expect(rows, lines.len(), "the order's lines")
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        let mut last = LastOrder::default();
        let statement = &mut self.statements.last_order;
        let rows = self.connection.query(statement, &key(customer), |row| {
            last.number = row.int()?;
            last.entered = row.int()?;
            last.carrier = row.int_or_null()?;
            Ok(())
        })?;
        expect(rows, 1, "the customer's last order").map(|()| last)
    }

    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()> {
        into.clear();
        let statement = &mut self.statements.order_lines;
        let values = [Int(warehouse), Int(district), Int(order)];
        self.connection.query(statement, &values, |row| {
            into.push(LineStatus {
                item: row.int()?,
                supply_warehouse: row.int()?,
                quantity: row.int()?,
                amount: row.int()?,
                delivered: row.int_or_null()?,
            });
            Ok(())
        })?;
        Ok(())
    }

    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()> {
        into.clear();
        let statement = &mut self.statements.oldest_new_order;
        if C::DIALECT == Dialect::Postgresql {
            // One statement sees one moment. Ten would see one each: an order of a district that was found
            // empty could then be older than one that was found.
            self.connection.query(statement, &[Int(warehouse)], |row| {
                into.push(Due {
                    district: row.int()?,
                    order: row.int()?,
                    ..Due::default()
                });
                Ok(())
            })?;
            return Ok(());
        }
        let row = |district| [Int(warehouse), Int(district)];
        let values = Values::of((1..=DISTRICTS).map(row));
        self.connection
            .query_each(statement, values.get(), 2, |place, row| {
                into.push(Due {
                    district: place.cast_signed() as i64 + 1,
                    order: row.int()?,
                    ..Due::default()
                });
                Ok(())
            })?;
        Ok(())
    }

    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let statement = &mut self.statements.delete_new_order;
        let values = keys(warehouse, due);
        let rows = self.connection.execute_each(statement, values.get(), 3)?;
        expect(rows, due.len(), "new orders")
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        let statement = &mut self.statements.customer_of_order;
        let values = keys(warehouse, due);
        let rows = self
            .connection
            .query_each(statement, values.get(), 3, |place, row| {
                due[place].customer = row.int()?;
                Ok(())
            })?;
        expect(rows, due.len(), "orders")
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        let statement = &mut self.statements.set_carrier;
        let values = Values::of(due.iter().map(|due| {
            [
                Int(carrier),
                Int(warehouse),
                Int(due.district),
                Int(due.order),
            ]
        }));
        let rows = self.connection.execute_each(statement, values.get(), 4)?;
        expect(rows, due.len(), "orders")
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        let statement = &mut self.statements.amount_of_order;
        let values = keys(warehouse, due);
        let rows = self
            .connection
            .query_each(statement, values.get(), 3, |place, row| {
                due[place].amount = row.int()?;
                Ok(())
            })?;
        expect(rows, due.len(), "sums of orders")
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        let statement = &mut self.statements.set_delivered;
        let values = Values::of(
            due.iter()
                .map(|due| [Int(date), Int(warehouse), Int(due.district), Int(due.order)]),
        );
        let rows = self.connection.execute_each(statement, values.get(), 4)?;
        // Each order has lines; how many, condition 6 verifies afterwards.
        if rows < due.len() as u64 {
            return expect(rows, due.len(), "the orders' lines");
        }
        Ok(())
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let statement = &mut self.statements.credit;
        let values = Values::of(due.iter().map(|due| {
            [
                Int(due.amount),
                Int(warehouse),
                Int(due.district),
                Int(due.customer),
            ]
        }));
        let rows = self.connection.execute_each(statement, values.get(), 4)?;
        expect(rows, due.len(), "customers")
    }

    fn low_stocks(
        &mut self,
        warehouse: i64,
        district: i64,
        first: i64,
        end: i64,
        threshold: i64,
    ) -> Result<i64> {
        let mut count = 0;
        let statement = &mut self.statements.low_stocks;
        let values = [
            Int(warehouse),
            Int(district),
            Int(first),
            Int(end),
            Int(warehouse),
            Int(threshold),
        ];
        let rows = self.connection.query(statement, &values, |row| {
            count = row.int()?;
            Ok(())
        })?;
        expect(rows, 1, "the count").map(|()| count)
    }
}
