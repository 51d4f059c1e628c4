//! The transactions' accesses.

use std::hint::black_box;
use std::ops::DerefMut;

use dyno_sql::{Error, ErrorKind, Result};
use dyno_tpcc::{
    Buying, CustomerKey, CustomerStatus, DISTRICTS, Due, Kind, LastOrder, LineStatus, MAX_LINES,
    NextOrder, Payer, Place, StockChange, StockKey, Store,
};

use super::rows::{self, District, History, Order, OrderLine, read};
use super::{Kernel, LAST_ORDER, key, key_of_customer, key_of_name};
use crate::columns::{Fixed, Optional, Text};
use crate::error::missing;
use crate::record::narrow;

/// Has the lines of the cache come that are about to be read, all at the same time: each is read before any of them is
/// waited for.
#[inline]
fn touch(bytes: impl Iterator<Item = i32>) {
    black_box(bytes.fold(0, |all, byte| all ^ byte));
}

#[inline]
fn first(text: &str) -> u8 {
    text.as_bytes().first().copied().unwrap_or_default()
}

#[inline]
fn last(text: &str) -> u8 {
    text.as_bytes().last().copied().unwrap_or_default()
}

impl Kernel {
    #[inline]
    fn find_warehouse(&mut self, warehouse: i64) -> Result<u32> {
        if self.held.warehouse.0 != warehouse {
            let place = self.warehouses.places.get(key(warehouse, 0, 0, 0));
            self.held.warehouse = (warehouse, place.ok_or_else(|| missing("the warehouse"))?);
        }
        Ok(self.held.warehouse.1)
    }

    #[inline]
    fn find_district(&mut self, warehouse: i64, district: i64) -> Result<u32> {
        let key = key(warehouse, district, 0, 0);
        if self.held.district.0 != key {
            let place = self.districts.places.get(key);
            self.held.district = (key, place.ok_or_else(|| missing("the district"))?);
        }
        Ok(self.held.district.1)
    }

    #[inline]
    fn find_customer(&mut self, customer: CustomerKey) -> Result<u32> {
        if self.held.customer.0 != customer {
            let key = key(customer.warehouse, customer.district, customer.number, 0);
            let place = self.customers.places.get(key);
            self.held.customer = (customer, place.ok_or_else(|| missing("the customer"))?);
        }
        Ok(self.held.customer.1)
    }

    fn find_order(&self, warehouse: i64, due: &Due) -> Result<u32> {
        let place = self
            .orders
            .places
            .get(key(warehouse, due.district, due.order, 0));
        place.ok_or_else(|| missing("the order"))
    }

    /// Where the lines of an order are.
    fn lines_of(&self, warehouse: i64, district: i64, order: i64) -> impl Iterator<Item = u32> {
        let lines = key(warehouse, district, order, 0)..=key(warehouse, district, order, 0xff);
        self.order_lines.places.range(lines).map(|(_, place)| place)
    }
}

/// A client of the kernel, by any way of holding it alone.
#[derive(Debug)]
pub struct KernelStore<K>(K);

impl<K: DerefMut<Target = Kernel>> KernelStore<K> {
    /// The only client there is.
    pub const fn new(kernel: K) -> Self {
        Self(kernel)
    }

    /// Gives the kernel back.
    pub fn into_kernel(self) -> K {
        self.0
    }
}

/// The rows that a transaction has read and goes on to change are remembered within it and no longer, so that each
/// transaction looks for all that it uses.
impl<K: DerefMut<Target = Kernel>> Store for KernelStore<K> {
    fn begin(&mut self, _: Kind) -> Result<()> {
        let kernel = &mut *self.0;
        if kernel.unfinished {
            let message =
                "a transaction before this one failed half way, and the kernel undoes nothing";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        kernel.unfinished = true;
        kernel.held.warehouse.0 = 0;
        kernel.held.district.0 = 0;
        kernel.held.customer.0 = CustomerKey::default();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let kernel = &mut *self.0;
        kernel.unfinished = false;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        let message = "the kernel cannot roll back: ask for a mix without rollbacks";
        Err(Error::new(ErrorKind::Refused, message))
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        let kernel = &mut *self.0;
        let place = kernel.find_warehouse(warehouse)?;
        Ok(kernel.warehouses.row(place).tax.into())
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_warehouse(warehouse)?;
        let row = kernel.warehouses.row(place);
        read(&mut into.name, row.name.as_str());
        row.address.read(&mut into.address);
        Ok(())
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_warehouse(warehouse)?;
        kernel.warehouses.row_mut(place).ytd += amount;
        Ok(())
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_district(warehouse, district)?;
        let row: &District = kernel.districts.row(place);
        read(&mut into.name, row.name.as_str());
        row.address.read(&mut into.address);
        Ok(())
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_district(warehouse, district)?;
        kernel.districts.row_mut(place).ytd += amount;
        Ok(())
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        let kernel = &mut *self.0;
        let place = kernel.find_district(warehouse, district)?;
        let row = kernel.districts.row(place);
        Ok(NextOrder {
            tax: row.tax.into(),
            number: row.next_order.into(),
        })
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        Store::next_order(self, warehouse, district).map(|next| next.number)
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_district(warehouse, district)?;
        kernel.districts.row_mut(place).next_order = narrow(number)?;
        Ok(())
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_customer(customer)?;
        let row = kernel.customers.row(place);
        into.discount = row.discount.into();
        read(&mut into.last_name, row.last.as_str());
        read(&mut into.credit, row.credit.as_str());
        Ok(())
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_customer(customer)?;
        let row = kernel.customers.row(place);
        let [first, middle, last] = &mut into.names;
        read(first, row.first.as_str());
        read(middle, row.middle.as_str());
        read(last, row.last.as_str());
        row.address.read(&mut into.address);
        read(&mut into.phone, row.phone.as_str());
        into.since = row.since;
        read(&mut into.credit, row.credit.as_str());
        into.credit_limit = row.credit_limit;
        into.discount = row.discount.into();
        into.balance = row.balance;
        Ok(())
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_customer(customer)?;
        read(into, kernel.customers.row(place).data.as_str());
        Ok(())
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_customer(customer)?;
        let row = kernel.customers.row_mut(place);
        row.balance -= amount;
        row.ytd_payment += amount;
        row.payments += 1;
        data.map_or(Ok(()), |data| row.data.set(data))
    }

    fn customers_by_last_name(
        &mut self,
        warehouse: i64,
        district: i64,
        last_name: &str,
        into: &mut Vec<i64>,
    ) -> Result<()> {
        let kernel = &mut *self.0;
        into.clear();
        if let Some(group) = kernel
            .names
            .get(key_of_name(warehouse, district, last_name))
        {
            let rows = kernel.namesakes[group as usize]
                .iter()
                .map(|place| kernel.customers.row(*place));
            // Other names may have the same hash.
            into.extend(
                rows.filter(|row| row.last.as_str() == last_name)
                    .map(|row| i64::from(row.id)),
            );
        }
        Ok(())
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        let kernel = &mut *self.0;
        let place = kernel.find_customer(customer)?;
        let row = kernel.customers.row(place);
        into.balance = row.balance;
        let [first, middle, last] = &mut into.names;
        read(first, row.first.as_str());
        read(middle, row.middle.as_str());
        read(last, row.last.as_str());
        Ok(())
    }

    fn insert_history(&mut self, history: &dyno_tpcc::History<'_>) -> Result<()> {
        let kernel = &mut *self.0;
        kernel.histories.push(History {
            date: history.date,
            amount: history.amount,
            customer_warehouse: narrow(history.customer.warehouse)?,
            customer_district: narrow(history.customer.district)?,
            customer: narrow(history.customer.number)?,
            warehouse: narrow(history.warehouse)?,
            district: narrow(history.district)?,
            data: Text::of(history.data)?,
        });
        Ok(())
    }

    fn items(&mut self, items: &[i64], into: &mut [dyno_tpcc::Item]) -> Result<()> {
        let kernel = &mut *self.0;
        let mut keys = [0; MAX_LINES];
        for (key_of, item) in keys.iter_mut().zip(items) {
            *key_of = key(0, 0, *item, 0);
        }
        let mut places = [None; MAX_LINES];
        kernel
            .items
            .places
            .get_each(&keys[..items.len()], &mut places);
        let table = &kernel.items;
        let found = || {
            places[..items.len()]
                .iter()
                .flatten()
                .map(|place| table.row(*place))
        };
        touch(found().map(|row| row.id ^ i32::from(first(row.data.as_str()))));
        for (place, into) in places.iter().zip(into) {
            into.found = place.is_some();
            if let Some(place) = place {
                let row = table.row(*place);
                into.price = row.price;
                read(&mut into.name, row.name.as_str());
                read(&mut into.data, row.data.as_str());
            }
        }
        Ok(())
    }

    fn stocks(
        &mut self,
        district: i64,
        stocks: &[StockKey],
        into: &mut [dyno_tpcc::Stock],
    ) -> Result<()> {
        let kernel = &mut *self.0;
        let of_district = usize::try_from(district - 1)
            .ok()
            .filter(|_| district <= DISTRICTS);
        let at = of_district.ok_or_else(|| missing("the district"))?;
        let mut keys = [0; MAX_LINES];
        for (key_of, stock) in keys.iter_mut().zip(stocks) {
            *key_of = key(stock.warehouse, 0, stock.item, 0);
        }
        let mut places = [None; MAX_LINES];
        kernel
            .stocks
            .places
            .get_each(&keys[..stocks.len()], &mut places);
        let table = &kernel.stocks;
        let found = || {
            places[..stocks.len()]
                .iter()
                .flatten()
                .map(|place| table.row(*place))
        };
        touch(found().map(|row| {
            // The second line, and those of what is read for the district.
            let (lines, info) = (row.districts[0].as_str(), row.districts[at].as_str());
            row.quantity ^ i32::from(first(lines) ^ first(info) ^ last(info))
        }));
        for (number, into) in into.iter_mut().enumerate().take(stocks.len()) {
            let place = places[number];
            into.found = place.is_some();
            if let Some(place) = place {
                let row = table.row(place);
                into.quantity = row.quantity.into();
                read(&mut into.district_info, row.districts[at].as_str());
                read(&mut into.data, row.data.as_str());
                kernel.held.stocks[number] = (stocks[number], place);
            }
        }
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        let kernel = &mut *self.0;
        for (number, change) in changes.iter().enumerate() {
            let place = match kernel.held.stocks.get(number) {
                Some((key, place)) if *key == change.key => *place,
                _ => {
                    let place =
                        kernel
                            .stocks
                            .places
                            .get(key(change.key.warehouse, 0, change.key.item, 0));
                    place.ok_or_else(|| missing("the stock"))?
                }
            };
            let row = kernel.stocks.row_mut(place);
            row.quantity = narrow(change.quantity)?;
            row.ytd += change.ordered;
            row.orders += 1;
            row.remote_orders += i32::from(change.remote);
        }
        Ok(())
    }

    fn insert_order(&mut self, order: &dyno_tpcc::Order) -> Result<()> {
        let kernel = &mut *self.0;
        if order.number > LAST_ORDER {
            return Err(Error::new(
                ErrorKind::Refused,
                "a district of the kernel has no more than 2^28 orders",
            ));
        }
        kernel.insert_order(Order {
            entered: order.entered,
            carrier: Optional::default(),
            warehouse: narrow(order.customer.warehouse)?,
            district: narrow(order.customer.district)?,
            id: narrow(order.number)?,
            customer: narrow(order.customer.number)?,
            lines: narrow(order.lines)?,
            all_local: i32::from(order.all_local),
        })
    }

    fn insert_new_order(&mut self, order: &dyno_tpcc::Order) -> Result<()> {
        let kernel = &mut *self.0;
        let customer = order.customer;
        kernel.insert_new_order(key(customer.warehouse, customer.district, order.number, 0))
    }

    fn insert_order_lines(
        &mut self,
        order: &dyno_tpcc::Order,
        lines: &[dyno_tpcc::OrderLine<'_>],
    ) -> Result<()> {
        let kernel = &mut *self.0;
        let (warehouse, district) = (
            narrow(order.customer.warehouse)?,
            narrow(order.customer.district)?,
        );
        let id = narrow(order.number)?;
        for line in lines {
            kernel.insert_order_line(OrderLine {
                delivered: Optional::default(),
                amount: line.amount,
                warehouse,
                district,
                order: id,
                number: narrow(line.number)?,
                item: narrow(line.item)?,
                supply_warehouse: narrow(line.supply_warehouse)?,
                quantity: narrow(line.quantity)?,
                district_info: Fixed::of(line.district_info)?,
            })?;
        }
        Ok(())
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        let kernel = &mut *self.0;
        let orders = key_of_customer(customer, 0)..=key_of_customer(customer, LAST_ORDER);
        let last = kernel.orders_of_customers.last(orders);
        let (_, place) = last.ok_or_else(|| missing("the customer's last order"))?;
        let row = kernel.orders.row(place);
        Ok(LastOrder {
            number: row.id.into(),
            entered: row.entered,
            carrier: row.carrier.get(),
        })
    }

    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()> {
        let kernel = &mut *self.0;
        into.clear();
        into.extend(kernel.lines_of(warehouse, district, order).map(|place| {
            let row: &rows::OrderLine = kernel.order_lines.row(place);
            LineStatus {
                item: row.item.into(),
                supply_warehouse: row.supply_warehouse.into(),
                quantity: row.quantity.into(),
                amount: row.amount,
                delivered: row.delivered.get(),
            }
        }));
        Ok(())
    }

    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()> {
        let kernel = &mut *self.0;
        into.clear();
        for district in 1..=DISTRICTS {
            let orders =
                key(warehouse, district, 0, 0)..=key(warehouse, district, u32::MAX.into(), 0);
            let oldest = kernel.new_orders.range(orders).next();
            into.extend(oldest.map(|(key, _)| Due {
                district,
                order: (key >> 8 & u64::from(u32::MAX)).cast_signed(),
                ..Due::default()
            }));
        }
        Ok(())
    }

    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            let removed = kernel
                .new_orders
                .remove(key(warehouse, due.district, due.order, 0));
            removed.ok_or_else(|| missing("the new order"))?;
        }
        Ok(())
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            due.customer = kernel
                .orders
                .row(kernel.find_order(warehouse, due)?)
                .customer
                .into();
        }
        Ok(())
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            let place = kernel.find_order(warehouse, due)?;
            kernel.orders.row_mut(place).carrier = Optional::some(carrier);
        }
        Ok(())
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            let lines = kernel.lines_of(warehouse, due.district, due.order);
            due.amount = lines
                .map(|place| kernel.order_lines.row(place).amount)
                .sum();
        }
        Ok(())
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            let lines = key(warehouse, due.district, due.order, 0)
                ..=key(warehouse, due.district, due.order, 0xff);
            let mut met = false;
            for (_, place) in kernel.order_lines.places.range(lines) {
                kernel.order_lines.rows[place as usize].delivered = Optional::some(date);
                met = true;
            }
            if !met {
                return Err(missing("a line of the order"));
            }
        }
        Ok(())
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let kernel = &mut *self.0;
        for due in due {
            let place = kernel.find_customer(CustomerKey {
                warehouse,
                district: due.district,
                number: due.customer,
            })?;
            let row = kernel.customers.row_mut(place);
            row.balance += due.amount;
            row.deliveries += 1;
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
        let kernel = &mut *self.0;
        let mut items = std::mem::take(&mut kernel.held.items);
        items.clear();
        let lines =
            key(warehouse, district, first.max(0), 0)..=key(warehouse, district, end - 1, 0xff);
        items.extend(
            kernel
                .order_lines
                .places
                .range(lines)
                .map(|(_, place)| kernel.order_lines.row(place).item),
        );
        items.sort_unstable();
        items.dedup();
        let low = items.iter().filter(|item| {
            let place = kernel
                .stocks
                .places
                .get(key(warehouse, 0, i64::from(**item), 0));
            place.is_some_and(|place| i64::from(kernel.stocks.row(place).quantity) < threshold)
        });
        let count = low.count();
        kernel.held.items = items;
        Ok(count.cast_signed() as i64)
    }
}
