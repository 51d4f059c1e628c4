//! The transactions' accesses.

use std::hint::black_box;

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

/// The rows that a transaction has read and goes on to change are remembered within it and no longer, so that each
/// transaction looks for all that it uses.
impl Store for &mut Kernel {
    fn begin(&mut self, _: Kind) -> Result<()> {
        if self.unfinished {
            let message =
                "a transaction before this one failed half way, and the kernel undoes nothing";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        self.unfinished = true;
        self.held.warehouse.0 = 0;
        self.held.district.0 = 0;
        self.held.customer.0 = CustomerKey::default();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.unfinished = false;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        let message = "the kernel cannot roll back: ask for a mix without rollbacks";
        Err(Error::new(ErrorKind::Refused, message))
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        let place = self.find_warehouse(warehouse)?;
        Ok(self.warehouses.row(place).tax.into())
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        let place = self.find_warehouse(warehouse)?;
        let row = self.warehouses.row(place);
        read(&mut into.name, row.name.as_str());
        row.address.read(&mut into.address);
        Ok(())
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        let place = self.find_warehouse(warehouse)?;
        self.warehouses.row_mut(place).ytd += amount;
        Ok(())
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        let place = self.find_district(warehouse, district)?;
        let row: &District = self.districts.row(place);
        read(&mut into.name, row.name.as_str());
        row.address.read(&mut into.address);
        Ok(())
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        let place = self.find_district(warehouse, district)?;
        self.districts.row_mut(place).ytd += amount;
        Ok(())
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        let place = self.find_district(warehouse, district)?;
        let row = self.districts.row(place);
        Ok(NextOrder {
            tax: row.tax.into(),
            number: row.next_order.into(),
        })
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        self.next_order(warehouse, district).map(|next| next.number)
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let place = self.find_district(warehouse, district)?;
        self.districts.row_mut(place).next_order = narrow(number)?;
        Ok(())
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let place = self.find_customer(customer)?;
        let row = self.customers.row(place);
        into.discount = row.discount.into();
        read(&mut into.last_name, row.last.as_str());
        read(&mut into.credit, row.credit.as_str());
        Ok(())
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        let place = self.find_customer(customer)?;
        let row = self.customers.row(place);
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
        let place = self.find_customer(customer)?;
        read(into, self.customers.row(place).data.as_str());
        Ok(())
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        let place = self.find_customer(customer)?;
        let row = self.customers.row_mut(place);
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
        into.clear();
        if let Some(group) = self.names.get(key_of_name(warehouse, district, last_name)) {
            let rows = self.namesakes[group as usize]
                .iter()
                .map(|place| self.customers.row(*place));
            // Other names may have the same hash.
            into.extend(
                rows.filter(|row| row.last.as_str() == last_name)
                    .map(|row| i64::from(row.id)),
            );
        }
        Ok(())
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        let place = self.find_customer(customer)?;
        let row = self.customers.row(place);
        into.balance = row.balance;
        let [first, middle, last] = &mut into.names;
        read(first, row.first.as_str());
        read(middle, row.middle.as_str());
        read(last, row.last.as_str());
        Ok(())
    }

    fn insert_history(&mut self, history: &dyno_tpcc::History<'_>) -> Result<()> {
        let mut row = History {
            date: history.date,
            amount: history.amount,
            customer_warehouse: narrow(history.customer.warehouse)?,
            customer_district: narrow(history.customer.district)?,
            customer: narrow(history.customer.number)?,
            warehouse: narrow(history.warehouse)?,
            district: narrow(history.district)?,
            data: Text::default(),
        };
        row.data.set(history.data)?;
        self.histories.push(row);
        Ok(())
    }

    fn items(&mut self, items: &[i64], into: &mut [dyno_tpcc::Item]) -> Result<()> {
        let mut keys = [0; MAX_LINES];
        for (key_of, item) in keys.iter_mut().zip(items) {
            *key_of = key(0, 0, *item, 0);
        }
        let mut places = [None; MAX_LINES];
        self.items
            .places
            .get_each(&keys[..items.len()], &mut places);
        let table = &self.items;
        let found = || {
            places[..items.len()]
                .iter()
                .flatten()
                .map(|place| table.row(*place))
        };
        touch(found().map(|row| row.id ^ i32::from(row.data.as_bytes()[0])));
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
        let of_district = usize::try_from(district - 1)
            .ok()
            .filter(|at| *at < DISTRICTS.unsigned_abs() as usize);
        let at = of_district.ok_or_else(|| missing("the district"))?;
        let mut keys = [0; MAX_LINES];
        for (key_of, stock) in keys.iter_mut().zip(stocks) {
            *key_of = key(stock.warehouse, 0, stock.item, 0);
        }
        let mut places = [None; MAX_LINES];
        self.stocks
            .places
            .get_each(&keys[..stocks.len()], &mut places);
        let table = &self.stocks;
        let found = || {
            places[..stocks.len()]
                .iter()
                .flatten()
                .map(|place| table.row(*place))
        };
        touch(found().map(|row| {
            let (data, info) = (row.data.as_bytes(), row.districts[at].as_bytes());
            row.quantity ^ i32::from(data[data.len() - 1] ^ info[0] ^ info[23])
        }));
        for (number, into) in into.iter_mut().enumerate().take(stocks.len()) {
            let place = places[number];
            into.found = place.is_some();
            if let Some(place) = place {
                let row = table.row(place);
                into.quantity = row.quantity.into();
                read(&mut into.district_info, row.districts[at].as_str());
                read(&mut into.data, row.data.as_str());
                self.held.stocks[number] = (stocks[number], place);
            }
        }
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        for (number, change) in changes.iter().enumerate() {
            let place = match self.held.stocks.get(number) {
                Some((key, place)) if *key == change.key => *place,
                _ => {
                    let place =
                        self.stocks
                            .places
                            .get(key(change.key.warehouse, 0, change.key.item, 0));
                    place.ok_or_else(|| missing("the stock"))?
                }
            };
            let row = self.stocks.row_mut(place);
            row.quantity = narrow(change.quantity)?;
            row.ytd += change.ordered;
            row.orders += 1;
            row.remote_orders += i32::from(change.remote);
        }
        Ok(())
    }

    fn insert_order(&mut self, order: &dyno_tpcc::Order) -> Result<()> {
        if order.number > LAST_ORDER {
            return Err(Error::new(
                ErrorKind::Refused,
                "a district of the kernel has no more than 2^28 orders",
            ));
        }
        Kernel::insert_order(
            self,
            Order {
                entered: order.entered,
                carrier: Optional::default(),
                warehouse: narrow(order.customer.warehouse)?,
                district: narrow(order.customer.district)?,
                id: narrow(order.number)?,
                customer: narrow(order.customer.number)?,
                lines: narrow(order.lines)?,
                all_local: i32::from(order.all_local),
            },
        )
    }

    fn insert_new_order(&mut self, order: &dyno_tpcc::Order) -> Result<()> {
        let customer = order.customer;
        Kernel::insert_new_order(
            self,
            key(customer.warehouse, customer.district, order.number, 0),
        )
    }

    fn insert_order_lines(
        &mut self,
        order: &dyno_tpcc::Order,
        lines: &[dyno_tpcc::OrderLine<'_>],
    ) -> Result<()> {
        let (warehouse, district) = (
            narrow(order.customer.warehouse)?,
            narrow(order.customer.district)?,
        );
        let id = narrow(order.number)?;
        for line in lines {
            let mut row = OrderLine {
                delivered: Optional::default(),
                amount: line.amount,
                warehouse,
                district,
                order: id,
                number: narrow(line.number)?,
                item: narrow(line.item)?,
                supply_warehouse: narrow(line.supply_warehouse)?,
                quantity: narrow(line.quantity)?,
                district_info: Fixed::default(),
            };
            row.district_info.set(line.district_info)?;
            self.insert_order_line(row)?;
        }
        Ok(())
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        let orders = key_of_customer(customer, 0)..=key_of_customer(customer, LAST_ORDER);
        let last = self.orders_of_customers.last(orders);
        let (_, place) = last.ok_or_else(|| missing("the customer's last order"))?;
        let row = self.orders.row(place);
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
        into.clear();
        into.extend(self.lines_of(warehouse, district, order).map(|place| {
            let row: &rows::OrderLine = self.order_lines.row(place);
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
        into.clear();
        for district in 1..=DISTRICTS {
            let orders =
                key(warehouse, district, 0, 0)..=key(warehouse, district, u32::MAX.into(), 0);
            let oldest = self.new_orders.range(orders).next();
            into.extend(oldest.map(|(key, _)| Due {
                district,
                order: (key >> 8 & u64::from(u32::MAX)).cast_signed(),
                ..Due::default()
            }));
        }
        Ok(())
    }

    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        for due in due {
            let removed = self
                .new_orders
                .remove(key(warehouse, due.district, due.order, 0));
            removed.ok_or_else(|| missing("the new order"))?;
        }
        Ok(())
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            due.customer = self
                .orders
                .row(self.find_order(warehouse, due)?)
                .customer
                .into();
        }
        Ok(())
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        for due in due {
            let place = self.find_order(warehouse, due)?;
            self.orders.row_mut(place).carrier = Optional::some(carrier);
        }
        Ok(())
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            let lines = self.lines_of(warehouse, due.district, due.order);
            due.amount = lines.map(|place| self.order_lines.row(place).amount).sum();
        }
        Ok(())
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        for due in due {
            let lines = key(warehouse, due.district, due.order, 0)
                ..=key(warehouse, due.district, due.order, 0xff);
            let mut met = false;
            for (_, place) in self.order_lines.places.range(lines) {
                self.order_lines.rows[place as usize].delivered = Optional::some(date);
                met = true;
            }
            if !met {
                return Err(missing("a line of the order"));
            }
        }
        Ok(())
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        for due in due {
            let place = self.find_customer(CustomerKey {
                warehouse,
                district: due.district,
                number: due.customer,
            })?;
            let row = self.customers.row_mut(place);
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
        let mut items = std::mem::take(&mut self.held.items);
        items.clear();
        let lines =
            key(warehouse, district, first.max(0), 0)..=key(warehouse, district, end - 1, 0xff);
        items.extend(
            self.order_lines
                .places
                .range(lines)
                .map(|(_, place)| self.order_lines.row(place).item),
        );
        items.sort_unstable();
        items.dedup();
        let low = items.iter().filter(|item| {
            let place = self
                .stocks
                .places
                .get(key(warehouse, 0, i64::from(**item), 0));
            place.is_some_and(|place| i64::from(self.stocks.row(place).quantity) < threshold)
        });
        let count = low.count();
        self.held.items = items;
        Ok(count.cast_signed() as i64)
    }
}
