//! Transactions that leave something out, to see that the conditions see it.

use dyno_sql::{Connection as _, Result};
use dyno_tpcc::population::Table;
use dyno_tpcc::{
    Buying, CustomerKey, CustomerStatus, Due, Extent, History, Item, Kind, LastOrder, LineStatus,
    NextOrder, Order, OrderLine, Outcome, Payer, Place, SqlStore, Stock, StockChange, StockKey,
    Store, Terminal,
};

use super::{Stand, checks, fill, load, small, violated};

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    WarehouseNotPaid,
    DistrictNotPaid,
    NumberSkipped,
    NextOrderDeleted,
    LineForgotten,
    CarrierForgotten,
    DateForgotten,
    HistoryForgotten,
    CustomerNotCharged,
    CustomerNotCredited,
}

/// Each fault, the transaction in which it shows, and the conditions that then do not hold.
const FAULTS: [(Fault, Kind, &[u32]); 10] = [
    (Fault::WarehouseNotPaid, Kind::Payment, &[1, 8]),
    (Fault::DistrictNotPaid, Kind::Payment, &[1, 9]),
    (Fault::NumberSkipped, Kind::NewOrder, &[2]),
    (Fault::NextOrderDeleted, Kind::Delivery, &[3, 5]),
    (Fault::LineForgotten, Kind::NewOrder, &[4, 6]),
    (Fault::CarrierForgotten, Kind::Delivery, &[5, 7]),
    (Fault::DateForgotten, Kind::Delivery, &[7, 10, 12]),
    (Fault::HistoryForgotten, Kind::Payment, &[8, 9, 10]),
    (Fault::CustomerNotCharged, Kind::Payment, &[10]),
    (Fault::CustomerNotCredited, Kind::Delivery, &[10, 12]),
];

/// A store that does all as it is told, except for one fault.
struct Broken<S> {
    store: S,
    fault: Fault,
}

impl<S> Broken<S> {
    fn does(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

pub fn each_condition_sees_the_update_that_was_left_out<T: Stand>(stand: &T) {
    let config = small();
    let mut connection = stand.connect();
    load(stand, &config, 1);
    for (client, (fault, kind, expected)) in (0..).zip(FAULTS) {
        let store = SqlStore::prepare(stand.connect()).unwrap();
        let mut terminal = Terminal::new(&config, client, Broken { store, fault });
        loop {
            terminal.prepare_kind(kind);
            // A New-Order that is rolled back shows nothing.
            if !matches!(
                terminal.perform().unwrap(),
                Outcome::NewOrder { total: None, .. }
            ) {
                break;
            }
        }
        drop(terminal);
        let checks = checks(&mut connection, &config, Extent::All);
        assert_eq!(violated(&checks), expected, "{fault:?} {checks:#?}");
        let first = checks.iter().find(|check| !check.holds).unwrap();
        let home = format!("differs in warehouse {}", client % 2 + 1);
        assert!(first.detail.contains(&home), "{}", first.detail);
        for table in Table::ALL {
            let empty = format!("DELETE FROM {}", table.name());
            connection.run(&empty).unwrap();
        }
        fill(stand, &config, 1);
    }
}

impl<S: Store> Store for Broken<S> {
    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        if self.does(Fault::WarehouseNotPaid) {
            return Ok(());
        }
        self.store.add_to_warehouse(warehouse, amount)
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        if self.does(Fault::DistrictNotPaid) {
            return Ok(());
        }
        self.store.add_to_district(warehouse, district, amount)
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let number = number + i64::from(self.does(Fault::NumberSkipped));
        self.store.set_next_order(warehouse, district, number)
    }

    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let mut due = due.to_vec();
        if self.does(Fault::NextOrderDeleted) {
            due[0].order += 1;
        }
        self.store.delete_new_orders(warehouse, &due)
    }

    fn insert_order_lines(&mut self, order: &Order, lines: &[OrderLine<'_>]) -> Result<()> {
        let count = lines.len() - usize::from(self.does(Fault::LineForgotten));
        self.store.insert_order_lines(order, &lines[..count])
    }

    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()> {
        let from = usize::from(self.does(Fault::CarrierForgotten));
        self.store.set_carrier(warehouse, &due[from..], carrier)
    }

    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()> {
        let from = usize::from(self.does(Fault::DateForgotten));
        self.store.set_delivered(warehouse, &due[from..], date)
    }

    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        if self.does(Fault::HistoryForgotten) {
            return Ok(());
        }
        self.store.insert_history(history)
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        if self.does(Fault::CustomerNotCharged) {
            return Ok(());
        }
        self.store.pay(customer, amount, data)
    }

    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()> {
        let from = usize::from(self.does(Fault::CustomerNotCredited));
        self.store.credit(warehouse, &due[from..])
    }

    // As they are.

    fn begin(&mut self, kind: Kind) -> Result<()> {
        self.store.begin(kind)
    }

    fn commit(&mut self) -> Result<()> {
        self.store.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.store.rollback()
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        self.store.warehouse_tax(warehouse)
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        self.store.warehouse(warehouse, into)
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        self.store.district(warehouse, district, into)
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        self.store.next_order(warehouse, district)
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        self.store.next_order_number(warehouse, district)
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        self.store.buying(customer, into)
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        self.store.payer(customer, into)
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        self.store.customer_data(customer, into)
    }

    fn customers_by_last_name(
        &mut self,
        warehouse: i64,
        district: i64,
        last_name: &str,
        into: &mut Vec<i64>,
    ) -> Result<()> {
        self.store
            .customers_by_last_name(warehouse, district, last_name, into)
    }

    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()> {
        self.store.customer_status(customer, into)
    }

    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        self.store.items(items, into)
    }

    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        self.store.stocks(district, stocks, into)
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        self.store.update_stocks(changes)
    }

    fn insert_order(&mut self, order: &Order) -> Result<()> {
        self.store.insert_order(order)
    }

    fn insert_new_order(&mut self, order: &Order) -> Result<()> {
        self.store.insert_new_order(order)
    }

    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder> {
        self.store.last_order(customer)
    }

    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()> {
        self.store.order_lines(warehouse, district, order, into)
    }

    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()> {
        self.store.oldest_new_orders(warehouse, into)
    }

    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        self.store.customers_of_orders(warehouse, due)
    }

    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()> {
        self.store.amounts_of_orders(warehouse, due)
    }

    fn low_stocks(
        &mut self,
        warehouse: i64,
        district: i64,
        first: i64,
        end: i64,
        threshold: i64,
    ) -> Result<i64> {
        self.store
            .low_stocks(warehouse, district, first, end, threshold)
    }
}
