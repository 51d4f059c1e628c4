//! The transactions' accesses, as calls of the engine.
//!
//! They are the publication's: each row is looked up and pinned once, and a row that is read for update stays pinned until it
//! is changed. What is changed of a row is one call, since the columns that change together stand together.

use std::ops::ControlFlow;

use dyno_glass::Rid;
use dyno_glass::assembly::Assembly;
use dyno_glass::engine::{Access, Direction, Pinned, Session};
use dyno_sql::{Error, ErrorKind, Result};
use dyno_tpcc::population::Table;
use dyno_tpcc::{
    Buying, CustomerKey, CustomerStatus, DISTRICTS, Due, History, Item, Kind, LastOrder,
    LineStatus, MAX_LINES, NextOrder, Order, OrderLine, Payer, Place, Stock, StockChange, StockKey,
    Store,
};

#[allow(clippy::wildcard_imports)] // a column each
use super::places::*;
use super::{Database, Handles, Index};
use crate::error::{missing, told};
use crate::record::{
    TextAt, fixed, int, int_or_null, large, large_or_null, put_fixed, put_int, put_large,
    put_no_int, put_no_large, text, with_last_text,
};

/// A client's session with the tables.
pub struct EngineStore<'e, A: Assembly> {
    // Pins before the session: what is pinned is given back first.
    held: Held<'e, A>,
    session: Session<'e, A>,
    handles: &'e Handles,
    /// A transaction was neither carried out nor undone.
    broken: bool,
    /// Used again and again.
    record: Vec<u8>,
    rids: Vec<Rid>,
    items: Vec<i64>,
}

/// Rows that were read for update and are going to be changed.
struct Held<'e, A: Assembly> {
    warehouse: Option<(i64, Pinned<'e, A>)>,
    district: Option<((i64, i64), Pinned<'e, A>)>,
    customer: Option<(CustomerKey, Pinned<'e, A>)>,
    stocks: [Option<(StockKey, Pinned<'e, A>)>; MAX_LINES],
}

impl<A: Assembly> Default for Held<'_, A> {
    fn default() -> Self {
        Self {
            warehouse: None,
            district: None,
            customer: None,
            stocks: [const { None }; MAX_LINES],
        }
    }
}

impl<A: Assembly> Held<'_, A> {
    fn clear(&mut self) {
        self.warehouse = None;
        self.district = None;
        self.customer = None;
        self.stocks.iter_mut().for_each(|stock| *stock = None);
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

impl<'e, A: Assembly> EngineStore<'e, A> {
    pub(super) fn new(database: &'e Database<A>) -> Result<Self> {
        Ok(Self {
            held: Held::default(),
            session: database.engine.session().map_err(told)?,
            handles: &database.handles,
            broken: false,
            record: Vec::new(),
            rids: Vec::new(),
            items: Vec::new(),
        })
    }

    /// Who is told of the engine's calls.
    pub fn calls(&mut self) -> &mut A::Calls {
        self.session.calls()
    }

    #[inline]
    pub(super) fn create(&mut self, table: Table, record: &[u8]) -> Result<Rid> {
        let table = self
            .session
            .table(self.handles.table(table))
            .map_err(told)?;
        self.session.create(table, record).map_err(told)
    }

    #[inline]
    pub(super) fn insert(&mut self, index: Index, key: &[u8], rid: Rid) -> Result<()> {
        let index = self
            .session
            .index(self.handles.index(index))
            .map_err(told)?;
        self.session.insert(index, key, rid).map_err(told)
    }

    #[inline]
    fn lookup(&mut self, index: Index, key: &[u8], access: Access) -> Result<Option<Rid>> {
        let index = self
            .session
            .index(self.handles.index(index))
            .map_err(told)?;
        self.session.lookup(index, key, access).map_err(told)
    }

    #[inline]
    fn pin(&mut self, table: Table, rid: Rid) -> Result<Pinned<'e, A>> {
        let table = self
            .session
            .table(self.handles.table(table))
            .map_err(told)?;
        self.session.pin(table, rid).map_err(told)
    }

    /// Looks a row up and pins it.
    #[inline]
    fn find(&mut self, index: Index, key: &[u8], access: Access) -> Result<Pinned<'e, A>> {
        let rid = self.lookup(index, key, access)?;
        let rid = rid.ok_or_else(|| missing(index.table().name()))?;
        self.pin(index.table(), rid)
    }

    #[inline]
    fn update(&mut self, pinned: &Pinned<'e, A>, at: usize, bytes: &[u8]) -> Result<()> {
        self.session.update(pinned, at, bytes).map_err(told)
    }

    /// Pins a warehouse that is going to be changed, unless it is.
    fn hold_warehouse(&mut self, warehouse: i64) -> Result<()> {
        if !matches!(&self.held.warehouse, Some((held, _)) if *held == warehouse) {
            let pinned = self.find(Index::Warehouse, &key::<1, 4>([warehouse])?, Access::Change)?;
            self.held.warehouse = Some((warehouse, pinned));
        }
        Ok(())
    }

    fn hold_district(&mut self, warehouse: i64, district: i64) -> Result<()> {
        let wanted = (warehouse, district);
        if !matches!(&self.held.district, Some((held, _)) if *held == wanted) {
            let pinned = self.find(
                Index::District,
                &key::<2, 8>([warehouse, district])?,
                Access::Change,
            )?;
            self.held.district = Some((wanted, pinned));
        }
        Ok(())
    }

    fn hold_customer(&mut self, customer: CustomerKey) -> Result<()> {
        if !matches!(&self.held.customer, Some((held, _)) if *held == customer) {
            let pinned = self.find(Index::Customer, &customer_key(customer)?, Access::Change)?;
            self.held.customer = Some((customer, pinned));
        }
        Ok(())
    }

    /// A row that is held is changed: gives it out, to be held no longer.
    fn warehouse_to_change(&mut self, warehouse: i64) -> Result<Pinned<'e, A>> {
        self.hold_warehouse(warehouse)?;
        let held = self.held.warehouse.take();
        held.map(|(_, pinned)| pinned)
            .ok_or_else(|| missing("warehouse"))
    }

    fn district_to_change(&mut self, warehouse: i64, district: i64) -> Result<Pinned<'e, A>> {
        self.hold_district(warehouse, district)?;
        let held = self.held.district.take();
        held.map(|(_, pinned)| pinned)
            .ok_or_else(|| missing("district"))
    }

    fn customer_to_change(&mut self, customer: CustomerKey) -> Result<Pinned<'e, A>> {
        self.hold_customer(customer)?;
        let held = self.held.customer.take();
        held.map(|(_, pinned)| pinned)
            .ok_or_else(|| missing("customer"))
    }

    /// Shows a row that is held; `None` where it is not.
    fn held<R>(
        session: &Session<'e, A>,
        pinned: Option<&Pinned<'e, A>>,
        what: &str,
        with: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let pinned = pinned.ok_or_else(|| missing(what))?;
        session.read(pinned, with).map_err(told)
    }

    /// Goes through the rows of an index from a key to another, the least first, into [`Self::rids`].
    fn collect(&mut self, index: Index, from: &[u8], to: &[u8], access: Access) -> Result<()> {
        let index = self
            .session
            .index(self.handles.index(index))
            .map_err(told)?;
        let rids = &mut self.rids;
        rids.clear();
        self.session
            .scan(index, from, to, access, Direction::Forwards, |_, rid| {
                rids.push(rid);
                ControlFlow::Continue(())
            })
            .map_err(told)
    }

    /// The first entry of a range, from whichever end.
    fn first(
        &mut self,
        index: Index,
        range: (&[u8], &[u8]),
        access: Access,
        direction: Direction,
    ) -> Result<Option<(i64, Rid)>> {
        let index = self
            .session
            .index(self.handles.index(index))
            .map_err(told)?;
        let mut found = None;
        self.session
            .scan(index, range.0, range.1, access, direction, |key, rid| {
                found = Some((last_number(key), rid));
                ControlFlow::Break(())
            })
            .map_err(told)?;
        Ok(found)
    }

    /// The lines of an order, into [`Self::rids`].
    fn collect_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        orders: [i64; 2],
        access: Access,
    ) -> Result<()> {
        let from = key::<4, 16>([warehouse, district, orders[0], LOWEST])?;
        let to = key::<4, 16>([warehouse, district, orders[1], HIGHEST])?;
        self.collect(Index::OrderLine, &from, &to, access)
    }

    /// Pins each row that was collected and does something with it.
    fn each_line(
        &mut self,
        mut with: impl FnMut(&mut Self, Pinned<'e, A>) -> Result<()>,
    ) -> Result<()> {
        let rids = std::mem::take(&mut self.rids);
        let done = rids.iter().try_for_each(|rid| {
            let pinned = self.pin(Table::OrderLine, *rid)?;
            with(self, pinned)
        });
        self.rids = rids;
        done
    }

    fn order(&mut self, warehouse: i64, due: &Due) -> Result<Pinned<'e, A>> {
        self.find(
            Index::Orders,
            &key::<3, 12>([warehouse, due.district, due.order])?,
            Access::Change,
        )
    }
}

fn customer_key(customer: CustomerKey) -> Result<[u8; 12]> {
    key([customer.warehouse, customer.district, customer.number])
}

impl<A: Assembly> Store for EngineStore<'_, A> {
    fn begin(&mut self, _: Kind) -> Result<()> {
        if self.broken {
            let message = "a transaction before this one failed half way and was not undone";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        self.session.begin().map_err(told)
    }

    fn commit(&mut self) -> Result<()> {
        self.held.clear();
        self.session.commit().map_err(told)
    }

    fn rollback(&mut self) -> Result<()> {
        self.held.clear();
        self.session.rollback().map_err(|error| {
            self.broken = true;
            told(error)
        })
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        let pinned = self.find(Index::Warehouse, &key::<1, 4>([warehouse])?, Access::Read)?;
        self.session
            .read(&pinned, |record| int(record, W_TAX))
            .map_err(told)
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        self.hold_warehouse(warehouse)?;
        let held = self.held.warehouse.as_ref().map(|(_, pinned)| pinned);
        Self::held(&self.session, held, "warehouse", |record| {
            read_place(into, record, &W_TEXTS, W_STATE, W_ZIP);
        })
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        let pinned = self.warehouse_to_change(warehouse)?;
        let ytd = self
            .session
            .read(&pinned, |record| large(record, W_YTD))
            .map_err(told)?
            + amount;
        self.update(&pinned, W_YTD, &ytd.to_le_bytes())
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        self.hold_district(warehouse, district)?;
        let held = self.held.district.as_ref().map(|(_, pinned)| pinned);
        Self::held(&self.session, held, "district", |record| {
            read_place(into, record, &D_TEXTS, D_STATE, D_ZIP);
        })
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        let pinned = self.district_to_change(warehouse, district)?;
        let ytd = self
            .session
            .read(&pinned, |record| large(record, D_YTD))
            .map_err(told)?
            + amount;
        self.update(&pinned, D_YTD, &ytd.to_le_bytes())
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        self.hold_district(warehouse, district)?;
        let held = self.held.district.as_ref().map(|(_, pinned)| pinned);
        Self::held(&self.session, held, "district", |record| NextOrder {
            tax: int(record, D_TAX),
            number: int(record, D_NEXT_O_ID),
        })
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        let pinned = self.find(
            Index::District,
            &key::<2, 8>([warehouse, district])?,
            Access::Read,
        )?;
        self.session
            .read(&pinned, |record| int(record, D_NEXT_O_ID))
            .map_err(told)
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let pinned = self.district_to_change(warehouse, district)?;
        let mut bytes = [0; 4];
        put_int(&mut bytes, 0, number)?;
        self.update(&pinned, D_NEXT_O_ID, &bytes)
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let pinned = self.find(Index::Customer, &customer_key(customer)?, Access::Read)?;
        let read_all = |record: &[u8]| {
            into.discount = int(record, C_DISCOUNT);
            read(&mut into.last_name, text(record, C_LAST));
            read(&mut into.credit, fixed(record, C_CREDIT, CREDIT));
        };
        self.session.read(&pinned, read_all).map_err(told)
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        self.hold_customer(customer)?;
        let held = self.held.customer.as_ref().map(|(_, pinned)| pinned);
        Self::held(&self.session, held, "customer", |record| {
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
        })
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        self.hold_customer(customer)?;
        let held = self.held.customer.as_ref().map(|(_, pinned)| pinned);
        Self::held(&self.session, held, "customer", |record| {
            read(into, text(record, C_DATA));
        })
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        /// From the balance to the count of payments.
        const CHANGED: usize = C_PAYMENT_CNT + 4 - C_BALANCE;
        let pinned = self.customer_to_change(customer)?;
        let paid = |record: &[u8]| -> Result<_> {
            let mut changed = [0; CHANGED];
            put_large(&mut changed, 0, large(record, C_BALANCE) - amount);
            put_large(
                &mut changed,
                C_YTD_PAYMENT - C_BALANCE,
                large(record, C_YTD_PAYMENT) + amount,
            );
            put_int(
                &mut changed,
                C_PAYMENT_CNT - C_BALANCE,
                int(record, C_PAYMENT_CNT) + 1,
            )?;
            Ok(changed)
        };
        let Some(data) = data else {
            let changed = self.session.read(&pinned, paid).map_err(told)??;
            return self.update(&pinned, C_BALANCE, &changed);
        };
        let mut record = std::mem::take(&mut self.record);
        let made = self.session.read(&pinned, |before| {
            with_last_text(before, C_DATA, data, &mut record)?;
            record[C_BALANCE..C_BALANCE + CHANGED].copy_from_slice(&paid(before)?);
            Ok(())
        });
        let replaced = made.map_err(told).flatten().and_then(|()| {
            let table = self
                .session
                .table(self.handles.table(Table::Customer))
                .map_err(told)?;
            self.session.replace(table, &pinned, &record).map_err(told)
        });
        self.record = record;
        replaced
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
        let index = self
            .session
            .index(self.handles.index(Index::CustomerName))
            .map_err(told)?;
        self.session
            .scan(
                index,
                &from,
                &to,
                Access::Read,
                Direction::Forwards,
                |key, _| {
                    into.push(last_number(key));
                    ControlFlow::Continue(())
                },
            )
            .map_err(told)
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        let pinned = self.find(Index::Customer, &customer_key(customer)?, Access::Read)?;
        let read_all = |record: &[u8]| {
            into.balance = large(record, C_BALANCE);
            read_names(&mut into.names, record);
        };
        self.session.read(&pinned, read_all).map_err(told)
    }

    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        use dyno_sql::Value::{Int, Text};
        let mut record = std::mem::take(&mut self.record);
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
        let made = crate::record::encode(Table::History, &row, &mut record);
        let created = made.and_then(|()| self.create(Table::History, &record));
        self.record = record;
        created.map(drop)
    }

    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        for (item, into) in items.iter().zip(into) {
            let rid = self.lookup(Index::Item, &key::<1, 4>([*item])?, Access::Read)?;
            into.found = rid.is_some();
            if let Some(rid) = rid {
                let read_all = |record: &[u8]| {
                    into.price = large(record, I_PRICE);
                    read(&mut into.name, text(record, I_NAME));
                    read(&mut into.data, text(record, I_DATA));
                };
                let pinned = self.pin(Table::Item, rid)?;
                self.session.read(&pinned, read_all).map_err(told)?;
            }
        }
        Ok(())
    }

    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        let of_district = usize::try_from(district - 1)
            .ok()
            .filter(|_| district <= DISTRICTS);
        let info = S_DIST + DIST * of_district.ok_or_else(|| missing("district"))?;
        for (place, (stock, into)) in stocks.iter().zip(into).enumerate() {
            let rid = self.lookup(
                Index::Stock,
                &key::<2, 8>([stock.warehouse, stock.item])?,
                Access::Change,
            )?;
            into.found = rid.is_some();
            if let Some(rid) = rid {
                let pinned = self.pin(Table::Stock, rid)?;
                let read_all = |record: &[u8]| {
                    into.quantity = int(record, S_QUANTITY);
                    read(&mut into.district_info, fixed(record, info, DIST));
                    read(&mut into.data, text(record, S_DATA));
                };
                self.session.read(&pinned, read_all).map_err(told)?;
                if let Some(held) = self.held.stocks.get_mut(place) {
                    *held = Some((*stock, pinned));
                }
            }
        }
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        /// From the quantity to the count of remote orders.
        const CHANGED: usize = S_REMOTE_CNT + 4 - S_QUANTITY;
        for (place, change) in changes.iter().enumerate() {
            let wanted = change.key;
            let held = self.held.stocks.get_mut(place).and_then(Option::take);
            let pinned = match held {
                Some((held, pinned)) if held == wanted => pinned,
                _ => self.find(
                    Index::Stock,
                    &key::<2, 8>([wanted.warehouse, wanted.item])?,
                    Access::Change,
                )?,
            };
            let changed = self.session.read(&pinned, |record| -> Result<_> {
                let mut changed = [0; CHANGED];
                let remote = int(record, S_REMOTE_CNT) + i64::from(change.remote);
                put_int(&mut changed, 0, change.quantity)?;
                put_large(
                    &mut changed,
                    S_YTD - S_QUANTITY,
                    large(record, S_YTD) + change.ordered,
                );
                put_int(
                    &mut changed,
                    S_ORDER_CNT - S_QUANTITY,
                    int(record, S_ORDER_CNT) + 1,
                )?;
                put_int(&mut changed, S_REMOTE_CNT - S_QUANTITY, remote)?;
                Ok(changed)
            });
            self.update(&pinned, S_QUANTITY, &changed.map_err(told)??)?;
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
        let rid = self.create(Table::Orders, &record)?;
        self.insert(
            Index::Orders,
            &key::<3, 12>([warehouse, district, order.number])?,
            rid,
        )?;
        let of_customer = key::<4, 16>([warehouse, district, number, order.number])?;
        self.insert(Index::OrdersCustomer, &of_customer, rid)
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
        let rid = self.create(Table::NewOrder, &record)?;
        self.insert(
            Index::NewOrder,
            &key::<3, 12>([warehouse, district, order.number])?,
            rid,
        )
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
            let rid = self.create(Table::OrderLine, &record)?;
            let of_line = key::<4, 16>([warehouse, district, order.number, line.number])?;
            self.insert(Index::OrderLine, &of_line, rid)?;
        }
        Ok(())
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        let of = |order| {
            key::<4, 16>([
                customer.warehouse,
                customer.district,
                customer.number,
                order,
            ])
        };
        let range = (&of(LOWEST)?[..], &of(HIGHEST)?[..]);
        let found = self.first(
            Index::OrdersCustomer,
            range,
            Access::Read,
            Direction::Backwards,
        )?;
        let (_, rid) = found.ok_or_else(|| missing("the customer's last order"))?;
        let pinned = self.pin(Table::Orders, rid)?;
        let read_all = |record: &[u8]| LastOrder {
            number: int(record, O_ID),
            entered: large(record, O_ENTRY_D),
            carrier: int_or_null(record, O_CARRIER_ID),
        };
        self.session.read(&pinned, read_all).map_err(told)
    }

    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()> {
        into.clear();
        self.collect_lines(warehouse, district, [order; 2], Access::Read)?;
        self.each_line(|store, pinned| {
            let read_all = |record: &[u8]| LineStatus {
                item: int(record, OL_I_ID),
                supply_warehouse: int(record, OL_SUPPLY_W_ID),
                quantity: int(record, OL_QUANTITY),
                amount: large(record, OL_AMOUNT),
                delivered: large_or_null(record, OL_DELIVERY_D),
            };
            into.push(store.session.read(&pinned, read_all).map_err(told)?);
            Ok(())
        })
    }

    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()> {
        into.clear();
        for district in 1..=DISTRICTS {
            let of = |order| key::<3, 12>([warehouse, district, order]);
            let range = (&of(LOWEST)?[..], &of(HIGHEST)?[..]);
            let oldest = self.first(Index::NewOrder, range, Access::Change, Direction::Forwards)?;
            into.extend(oldest.map(|(order, _)| Due {
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
            let rid = self.lookup(Index::NewOrder, &key, Access::Change)?;
            let rid = rid.ok_or_else(|| missing("the new order"))?;
            let index = self
                .session
                .index(self.handles.index(Index::NewOrder))
                .map_err(told)?;
            self.session.remove(index, &key, rid).map_err(told)?;
            let table = self
                .session
                .table(self.handles.table(Table::NewOrder))
                .map_err(told)?;
            self.session.delete(table, rid).map_err(told)?;
        }
        Ok(())
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            let pinned = self.order(warehouse, due)?;
            due.customer = self
                .session
                .read(&pinned, |record| int(record, O_C_ID))
                .map_err(told)?;
        }
        Ok(())
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        let mut bytes = [0; 4];
        put_int(&mut bytes, 0, carrier)?;
        for due in due {
            let pinned = self.order(warehouse, due)?;
            self.update(&pinned, O_CARRIER_ID, &bytes)?;
        }
        Ok(())
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        for due in due {
            self.collect_lines(warehouse, due.district, [due.order; 2], Access::Change)?;
            due.amount = 0;
            self.each_line(|store, pinned| {
                let amount = (store.session).read(&pinned, |record| large(record, OL_AMOUNT));
                due.amount += amount.map_err(told)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        for due in due {
            self.collect_lines(warehouse, due.district, [due.order; 2], Access::Change)?;
            if self.rids.is_empty() {
                return Err(missing("a line of the order"));
            }
            self.each_line(|store, pinned| {
                store.update(&pinned, OL_DELIVERY_D, &date.to_le_bytes())
            })?;
        }
        Ok(())
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        /// From the balance to the count of deliveries.
        const CHANGED: usize = C_DELIVERY_CNT + 4 - C_BALANCE;
        for due in due {
            let key = key::<3, 12>([warehouse, due.district, due.customer])?;
            let pinned = self.find(Index::Customer, &key, Access::Change)?;
            let changed = self.session.read(&pinned, |record| -> Result<_> {
                let mut changed = [0; CHANGED];
                changed.copy_from_slice(&record[C_BALANCE..C_BALANCE + CHANGED]);
                put_large(&mut changed, 0, large(record, C_BALANCE) + due.amount);
                put_int(
                    &mut changed,
                    C_DELIVERY_CNT - C_BALANCE,
                    int(record, C_DELIVERY_CNT) + 1,
                )?;
                Ok(changed)
            });
            self.update(&pinned, C_BALANCE, &changed.map_err(told)??)?;
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
        self.collect_lines(warehouse, district, [first, end - 1], Access::Read)?;
        self.each_line(|store, pinned| {
            let item = (store.session).read(&pinned, |record| int(record, OL_I_ID));
            items.push(item.map_err(told)?);
            Ok(())
        })?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for item in &items {
            if let Some(rid) = self.lookup(
                Index::Stock,
                &key::<2, 8>([warehouse, *item])?,
                Access::Read,
            )? {
                let pinned = self.pin(Table::Stock, rid)?;
                let quantity = (self.session).read(&pinned, |record| int(record, S_QUANTITY));
                low += i64::from(quantity.map_err(told)? < threshold);
            }
        }
        self.items = items;
        Ok(low)
    }
}

/// First, middle and last name.
fn read_names(into: &mut [String; 3], record: &[u8]) {
    let [first, middle, last] = into;
    read(first, text(record, C_FIRST));
    read(middle, fixed(record, C_MIDDLE, 2));
    read(last, text(record, C_LAST));
}
