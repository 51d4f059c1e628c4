//! The transactions' accesses, as reads and writes of maps.
//!
//! A row that is read for update is kept until it is written, so that it is looked for twice and not three times: once to
//! be read and once to be written, which is what a map asks for.

use std::ops::ControlFlow;

use dyno_sql::{Error, ErrorKind, Result};
use dyno_tpcc::population::Table;
use dyno_tpcc::{
    Buying, CustomerKey, CustomerStatus, DISTRICTS, Due, History, Item, Kind, LastOrder,
    LineStatus, MAX_LINES, NextOrder, Order, OrderLine, Payer, Place, Stock, StockChange, StockKey,
    Store,
};

use super::{Access, Direction, Map, Maps};
#[allow(clippy::wildcard_imports)] // a column each
use crate::engine::places::*;
use crate::error::missing;
use crate::record::{
    TextAt, encode, fixed, int, int_or_null, large, large_or_null, put_fixed, put_int, put_large,
    put_no_int, put_no_large, text, with_last_text,
};

/// A client's use of the tables.
#[derive(Debug)]
pub struct OrderedStore<M> {
    maps: M,
    held: Held,
    /// A transaction was neither carried out nor undone.
    broken: bool,
    /// Used again and again.
    record: Vec<u8>,
    items: Vec<i64>,
    orders: Vec<i64>,
}

/// A row that was read for update, and may be written.
#[derive(Clone, Debug, Default)]
struct Row<K> {
    /// Of which key; `None` where it is nobody's.
    key: Option<K>,
    record: Vec<u8>,
}

impl<K: PartialEq> Row<K> {
    fn of(&self, key: &K) -> Option<&[u8]> {
        (self.key.as_ref() == Some(key)).then_some(&*self.record)
    }

    fn keep(&mut self, key: K, record: &[u8]) {
        self.key = Some(key);
        self.record.clear();
        self.record.extend_from_slice(record);
    }
}

#[derive(Debug, Default)]
struct Held {
    warehouse: Row<[u8; 4]>,
    district: Row<[u8; 8]>,
    customer: Row<[u8; 12]>,
    stocks: [Row<[u8; 8]>; MAX_LINES],
}

impl Held {
    fn clear(&mut self) {
        self.warehouse.key = None;
        self.district.key = None;
        self.customer.key = None;
        self.stocks.iter_mut().for_each(|stock| stock.key = None);
    }
}

/// Text into a buffer that is used again.
#[inline]
fn read(into: &mut String, text: &str) {
    into.clear();
    into.push_str(text);
}

/// The name and address of a warehouse or a district.
fn read_place(into: &mut Place, record: &[u8], texts: &[TextAt; 4], state: usize, zip: usize) {
    let [name, first, second, city] = texts.map(|at| text(record, at));
    read(&mut into.name, name);
    let address = [
        first,
        second,
        city,
        fixed(record, state, STATE),
        fixed(record, zip, ZIP),
    ];
    for (into, text) in into.address.iter_mut().zip(address) {
        read(into, text);
    }
}

/// First, middle and last name.
fn read_names(into: &mut [String; 3], record: &[u8]) {
    let [first, middle, last] = into;
    read(first, text(record, C_FIRST));
    read(middle, fixed(record, C_MIDDLE, 2));
    read(last, text(record, C_LAST));
}

/// A row that must be there.
fn row<'m, M: Maps>(maps: &'m mut M, table: Table, key: &[u8], access: Access) -> Result<&'m [u8]> {
    maps.get(Map::Of(table), key, access)?
        .ok_or_else(|| missing(table.name()))
}

/// A row to be changed, read unless it is held.
fn hold<'h, M: Maps, K: PartialEq + AsRef<[u8]>>(
    maps: &mut M,
    table: Table,
    held: &'h mut Row<K>,
    key: K,
) -> Result<&'h mut Vec<u8>> {
    if held.of(&key).is_none() {
        let record = row(maps, table, key.as_ref(), Access::Change)?;
        held.keep(key, record);
    }
    Ok(&mut held.record)
}

/// Changes a row and writes it.
fn change<M: Maps, K: PartialEq + AsRef<[u8]> + Copy>(
    maps: &mut M,
    table: Table,
    held: &mut Row<K>,
    key: K,
    change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let record = hold(maps, table, held, key)?;
    let written = change(record).and_then(|()| maps.put(Map::Of(table), key.as_ref(), record));
    if written.is_err() {
        held.key = None;
    }
    written
}

fn customer_key(customer: CustomerKey) -> Result<[u8; 12]> {
    key([customer.warehouse, customer.district, customer.number])
}

fn stock_key(stock: StockKey) -> Result<[u8; 8]> {
    key([stock.warehouse, stock.item])
}

impl<M: Maps> OrderedStore<M> {
    /// On maps that are filled, or are going to be.
    pub fn new(maps: M) -> Self {
        Self {
            maps,
            held: Held::default(),
            broken: false,
            record: Vec::new(),
            items: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// The maps below.
    pub const fn maps(&mut self) -> &mut M {
        &mut self.maps
    }

    /// The maps below, to be gone through.
    pub fn into_maps(self) -> M {
        self.maps
    }

    /// Shows the lines of orders, the least first.
    fn each_line(
        &mut self,
        warehouse: i64,
        district: i64,
        orders: [i64; 2],
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let from = key::<4, 16>([warehouse, district, orders[0], LOWEST])?;
        let to = key::<4, 16>([warehouse, district, orders[1], HIGHEST])?;
        self.maps.scan(
            Map::Of(Table::OrderLine),
            (&from, &to),
            Access::Read,
            Direction::Forwards,
            &mut |_, record| {
                each(record);
                ControlFlow::Continue(())
            },
        )
    }

    /// The number at the end of the first key of a range, from whichever end.
    fn first(
        &mut self,
        map: Map,
        range: (&[u8], &[u8]),
        access: Access,
        direction: Direction,
    ) -> Result<Option<i64>> {
        let mut found = None;
        self.maps
            .scan(map, range, access, direction, &mut |key, _| {
                found = Some(last_number(key));
                ControlFlow::Break(())
            })?;
        Ok(found)
    }

    /// Changes a row that is not held.
    fn change_row(
        &mut self,
        table: Table,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        self.record.clear();
        self.record
            .extend_from_slice(row(&mut self.maps, table, key, Access::Change)?);
        change(&mut self.record)?;
        self.maps.put(Map::Of(table), key, &self.record)
    }
}

impl<M: Maps> Store for OrderedStore<M> {
    fn begin(&mut self, _: Kind) -> Result<()> {
        if self.broken {
            let message = "a transaction before this one failed half way and was not undone";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        self.maps.begin()
    }

    fn commit(&mut self) -> Result<()> {
        self.held.clear();
        self.maps.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.held.clear();
        let undone = self.maps.rollback();
        self.broken = undone.is_err();
        undone
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        let key = key::<1, 4>([warehouse])?;
        row(&mut self.maps, Table::Warehouse, &key, Access::Read).map(|row| int(row, W_TAX))
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.warehouse);
        let record = hold(maps, Table::Warehouse, held, key::<1, 4>([warehouse])?)?;
        read_place(into, record, &W_TEXTS, W_STATE, W_ZIP);
        Ok(())
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.warehouse);
        let key = key::<1, 4>([warehouse])?;
        change(maps, Table::Warehouse, held, key, |record| {
            let ytd = large(record, W_YTD) + amount;
            put_large(record, W_YTD, ytd);
            Ok(())
        })
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.district);
        let key = key::<2, 8>([warehouse, district])?;
        let record = hold(maps, Table::District, held, key)?;
        read_place(into, record, &D_TEXTS, D_STATE, D_ZIP);
        Ok(())
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.district);
        let key = key::<2, 8>([warehouse, district])?;
        change(maps, Table::District, held, key, |record| {
            let ytd = large(record, D_YTD) + amount;
            put_large(record, D_YTD, ytd);
            Ok(())
        })
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        let (maps, held) = (&mut self.maps, &mut self.held.district);
        let key = key::<2, 8>([warehouse, district])?;
        let record = hold(maps, Table::District, held, key)?;
        Ok(NextOrder {
            tax: int(record, D_TAX),
            number: int(record, D_NEXT_O_ID),
        })
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        let key = key::<2, 8>([warehouse, district])?;
        row(&mut self.maps, Table::District, &key, Access::Read).map(|row| int(row, D_NEXT_O_ID))
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.district);
        let key = key::<2, 8>([warehouse, district])?;
        change(maps, Table::District, held, key, |record| {
            put_int(record, D_NEXT_O_ID, number)
        })
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let key = customer_key(customer)?;
        let record = row(&mut self.maps, Table::Customer, &key, Access::Read)?;
        into.discount = int(record, C_DISCOUNT);
        read(&mut into.last_name, text(record, C_LAST));
        read(&mut into.credit, fixed(record, C_CREDIT, CREDIT));
        Ok(())
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.customer);
        let record = hold(maps, Table::Customer, held, customer_key(customer)?)?;
        read_names(&mut into.names, record);
        let [first, second, city] = C_TEXTS.map(|at| text(record, at));
        let address = [
            first,
            second,
            city,
            fixed(record, C_STATE, STATE),
            fixed(record, C_ZIP, ZIP),
        ];
        for (into, text) in into.address.iter_mut().zip(address) {
            read(into, text);
        }
        read(&mut into.phone, fixed(record, C_PHONE, PHONE));
        into.since = large(record, C_SINCE);
        read(&mut into.credit, fixed(record, C_CREDIT, CREDIT));
        into.credit_limit = large(record, C_CREDIT_LIM);
        into.discount = int(record, C_DISCOUNT);
        into.balance = large(record, C_BALANCE);
        Ok(())
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.customer);
        let record = hold(maps, Table::Customer, held, customer_key(customer)?)?;
        read(into, text(record, C_DATA));
        Ok(())
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        let (maps, held) = (&mut self.maps, &mut self.held.customer);
        let before = &mut self.record;
        let key = customer_key(customer)?;
        change(maps, Table::Customer, held, key, |record| {
            if let Some(data) = data {
                std::mem::swap(before, record);
                with_last_text(before, C_DATA, data, record)?;
            }
            let balance = large(record, C_BALANCE) - amount;
            put_large(record, C_BALANCE, balance);
            let paid = large(record, C_YTD_PAYMENT) + amount;
            put_large(record, C_YTD_PAYMENT, paid);
            let count = int(record, C_PAYMENT_CNT) + 1;
            put_int(record, C_PAYMENT_CNT, count)
        })
    }

    fn customers_by_last_name(
        &mut self,
        warehouse: i64,
        district: i64,
        last_name: &str,
        into: &mut Vec<i64>,
    ) -> Result<()> {
        into.clear();
        let from = name_key(warehouse, district, last_name, "", LOWEST)?;
        let mut to = name_key(warehouse, district, last_name, "", HIGHEST)?;
        // Above all first names.
        to[24..40].fill(u8::MAX);
        self.maps.scan(
            Map::CustomerName,
            (&from, &to),
            Access::Read,
            Direction::Forwards,
            &mut |key, _| {
                into.push(last_number(key));
                ControlFlow::Continue(())
            },
        )
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        let key = customer_key(customer)?;
        let record = row(&mut self.maps, Table::Customer, &key, Access::Read)?;
        into.balance = large(record, C_BALANCE);
        read_names(&mut into.names, record);
        Ok(())
    }

    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        use dyno_sql::Value::{Int, Text};
        let row = [
            Int(history.customer.warehouse),
            Int(history.customer.district),
            Int(history.customer.number),
            Int(history.warehouse),
            Int(history.district),
            Int(history.date),
            Int(history.amount),
            Text(history.data),
        ];
        encode(Table::History, &row, &mut self.record)?;
        let number = self.maps.next_history().to_be_bytes();
        self.maps
            .insert(Map::Of(Table::History), &number, &self.record)
    }

    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        for (item, into) in items.iter().zip(into) {
            let key = key::<1, 4>([*item])?;
            let record = self.maps.get(Map::Of(Table::Item), &key, Access::Read)?;
            into.found = record.is_some();
            if let Some(record) = record {
                into.price = large(record, I_PRICE);
                read(&mut into.name, text(record, I_NAME));
                read(&mut into.data, text(record, I_DATA));
            }
        }
        Ok(())
    }

    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        let of_district = usize::try_from(district - 1)
            .ok()
            .filter(|_| district <= DISTRICTS);
        let info = S_DIST + DIST * of_district.ok_or_else(|| missing("district"))?;
        let all = stocks.iter().zip(into).zip(&mut self.held.stocks);
        for ((stock, into), held) in all {
            let key = stock_key(*stock)?;
            let record = self.maps.get(Map::Of(Table::Stock), &key, Access::Change)?;
            into.found = record.is_some();
            if let Some(record) = record {
                into.quantity = int(record, S_QUANTITY);
                read(&mut into.district_info, fixed(record, info, DIST));
                read(&mut into.data, text(record, S_DATA));
                held.keep(key, record);
            }
        }
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        for (place, changed) in changes.iter().enumerate() {
            let key = stock_key(changed.key)?;
            let (held, later) = self.held.stocks[place..]
                .split_first_mut()
                .ok_or_else(|| missing("a place for a stock"))?;
            change(&mut self.maps, Table::Stock, held, key, |record| {
                put_int(record, S_QUANTITY, changed.quantity)?;
                let ytd = large(record, S_YTD) + changed.ordered;
                put_large(record, S_YTD, ytd);
                let orders = int(record, S_ORDER_CNT) + 1;
                put_int(record, S_ORDER_CNT, orders)?;
                let remote = int(record, S_REMOTE_CNT) + i64::from(changed.remote);
                put_int(record, S_REMOTE_CNT, remote)
            })?;
            // An item may be ordered twice: what was read of it the second time is no longer so.
            for other in later.iter_mut().filter(|other| other.key == Some(key)) {
                other.key = None;
            }
        }
        Ok(())
    }

    fn insert_order(&mut self, order: &Order) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            number,
        } = order.customer;
        let mut record = [0; ORDERS_LENGTH];
        put_int(&mut record, O_W_ID, warehouse)?;
        put_int(&mut record, O_D_ID, district)?;
        put_int(&mut record, O_ID, order.number)?;
        put_int(&mut record, O_C_ID, number)?;
        put_large(&mut record, O_ENTRY_D, order.entered);
        put_no_int(&mut record, O_CARRIER_ID);
        put_int(&mut record, O_OL_CNT, order.lines)?;
        put_int(&mut record, O_ALL_LOCAL, i64::from(order.all_local))?;
        let own = key::<3, 12>([warehouse, district, order.number])?;
        self.maps.insert(Map::Of(Table::Orders), &own, &record)?;
        let of_customer = key::<4, 16>([warehouse, district, number, order.number])?;
        self.maps.insert(Map::OrdersCustomer, &of_customer, &[])
    }

    fn insert_new_order(&mut self, order: &Order) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            ..
        } = order.customer;
        let mut record = [0; NEW_ORDER_LENGTH];
        put_int(&mut record, NO_W_ID, warehouse)?;
        put_int(&mut record, NO_D_ID, district)?;
        put_int(&mut record, NO_O_ID, order.number)?;
        let key = key::<3, 12>([warehouse, district, order.number])?;
        self.maps.insert(Map::Of(Table::NewOrder), &key, &record)
    }

    fn insert_order_lines(&mut self, order: &Order, lines: &[OrderLine<'_>]) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            ..
        } = order.customer;
        for line in lines {
            let mut record = [0; ORDER_LINE_LENGTH];
            put_int(&mut record, OL_W_ID, warehouse)?;
            put_int(&mut record, OL_D_ID, district)?;
            put_int(&mut record, OL_O_ID, order.number)?;
            put_int(&mut record, OL_NUMBER, line.number)?;
            put_int(&mut record, OL_I_ID, line.item)?;
            put_int(&mut record, OL_SUPPLY_W_ID, line.supply_warehouse)?;
            put_no_large(&mut record, OL_DELIVERY_D);
            put_int(&mut record, OL_QUANTITY, line.quantity)?;
            put_large(&mut record, OL_AMOUNT, line.amount);
            put_fixed(&mut record, OL_DIST_INFO, DIST, line.district_info)?;
            let key = key::<4, 16>([warehouse, district, order.number, line.number])?;
            self.maps.insert(Map::Of(Table::OrderLine), &key, &record)?;
        }
        Ok(())
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        let CustomerKey {
            warehouse,
            district,
            number,
        } = customer;
        let of = |order| key::<4, 16>([warehouse, district, number, order]);
        let range = (&of(LOWEST)?[..], &of(HIGHEST)?[..]);
        let found = self.first(
            Map::OrdersCustomer,
            range,
            Access::Read,
            Direction::Backwards,
        )?;
        let order = found.ok_or_else(|| missing("the customer's last order"))?;
        let key = key::<3, 12>([warehouse, district, order])?;
        let record = row(&mut self.maps, Table::Orders, &key, Access::Read)?;
        Ok(LastOrder {
            number: order,
            entered: large(record, O_ENTRY_D),
            carrier: int_or_null(record, O_CARRIER_ID),
        })
    }

    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()> {
        into.clear();
        self.each_line(warehouse, district, [order; 2], |record| {
            into.push(LineStatus {
                item: int(record, OL_I_ID),
                supply_warehouse: int(record, OL_SUPPLY_W_ID),
                quantity: int(record, OL_QUANTITY),
                amount: large(record, OL_AMOUNT),
                delivered: large_or_null(record, OL_DELIVERY_D),
            });
        })
    }

    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()> {
        into.clear();
        for district in 1..=DISTRICTS {
            let of = |order| key::<3, 12>([warehouse, district, order]);
            let range = (&of(LOWEST)?[..], &of(HIGHEST)?[..]);
            let map = Map::Of(Table::NewOrder);
            let oldest = self.first(map, range, Access::Change, Direction::Forwards)?;
            into.extend(oldest.map(|order| Due {
                district,
                order,
                ..Due::default()
            }));
        }
        Ok(())
    }

    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        for due in due {
            let key = key::<3, 12>([warehouse, due.district, due.order])?;
            if !self.maps.remove(Map::Of(Table::NewOrder), &key)? {
                return Err(missing("the new order"));
            }
        }
        Ok(())
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            let key = key::<3, 12>([warehouse, due.district, due.order])?;
            let record = row(&mut self.maps, Table::Orders, &key, Access::Change)?;
            due.customer = int(record, O_C_ID);
        }
        Ok(())
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        for due in due {
            let key = key::<3, 12>([warehouse, due.district, due.order])?;
            self.change_row(Table::Orders, &key, |record| {
                put_int(record, O_CARRIER_ID, carrier)
            })?;
        }
        Ok(())
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            let mut amount = 0;
            self.each_line(warehouse, due.district, [due.order; 2], |record| {
                amount += large(record, OL_AMOUNT);
            })?;
            due.amount = amount;
        }
        Ok(())
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        let mut numbers = std::mem::take(&mut self.orders);
        let done = due.iter().try_for_each(|due| {
            numbers.clear();
            self.each_line(warehouse, due.district, [due.order; 2], |record| {
                numbers.push(int(record, OL_NUMBER));
            })?;
            if numbers.is_empty() {
                return Err(missing("a line of the order"));
            }
            numbers.iter().try_for_each(|number| {
                let key = key::<4, 16>([warehouse, due.district, due.order, *number])?;
                self.change_row(Table::OrderLine, &key, |record| {
                    put_large(record, OL_DELIVERY_D, date);
                    Ok(())
                })
            })
        });
        self.orders = numbers;
        done
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        for due in due {
            let key = key::<3, 12>([warehouse, due.district, due.customer])?;
            self.change_row(Table::Customer, &key, |record| {
                let balance = large(record, C_BALANCE) + due.amount;
                put_large(record, C_BALANCE, balance);
                let count = int(record, C_DELIVERY_CNT) + 1;
                put_int(record, C_DELIVERY_CNT, count)
            })?;
        }
        Ok(())
    }

    fn low_stocks(
        &mut self,
        warehouse: i64,
        district: i64,
        first: i64,
        end: i64,
        threshold: i64,
    ) -> Result<i64> {
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        self.each_line(warehouse, district, [first, end - 1], |record| {
            items.push(int(record, OL_I_ID));
        })?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for item in &items {
            let key = key::<2, 8>([warehouse, *item])?;
            let record = self.maps.get(Map::Of(Table::Stock), &key, Access::Read)?;
            low += i64::from(record.is_some_and(|record| int(record, S_QUANTITY) < threshold));
        }
        self.items = items;
        Ok(low)
    }
}
