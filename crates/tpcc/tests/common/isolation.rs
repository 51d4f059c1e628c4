//! Transactions that meet, after the isolation tests of the specification's 3.4.2.

use std::time::Duration;

use dyno_tpcc::{
    Buyer, CustomerKey, Delivery, Extent, Input, Kind, Line, NewOrder, Order, OrderLine,
    OrderStatus, Outcome, Payment, Rows, SqlStore, Store, perform,
};

use super::{Stand, assert_consistent, int, load, small};

const CUSTOMER: CustomerKey = CustomerKey {
    warehouse: 1,
    district: 3,
    number: 7,
};

fn store<S: Stand>(stand: &S) -> SqlStore<S::Connection> {
    SqlStore::prepare(stand.connect()).unwrap()
}

/// The last order of the customer: its number and how many lines it has.
fn last_order<S: Store>(store: &mut S) -> (i64, usize) {
    let input = Input::OrderStatus(OrderStatus {
        warehouse: 1,
        district: 3,
        customer: Buyer::Number(7),
    });
    match perform(store, &input, 0, &mut Rows::default()) {
        Ok(Outcome::OrderStatus { number, lines, .. }) => (number, lines),
        other => panic!("{other:?}"),
    }
}

/// A New-Order of the customer up to the moment before it commits.
fn begin_order<S: Store>(store: &mut S) -> i64 {
    store.begin(Kind::NewOrder).unwrap();
    let number = store.next_order(1, 3).unwrap().number;
    store.set_next_order(1, 3, number + 1).unwrap();
    let order = Order {
        customer: CUSTOMER,
        number,
        entered: 0,
        lines: 1,
        all_local: true,
    };
    let line = OrderLine {
        number: 1,
        item: 5,
        supply_warehouse: 1,
        quantity: 1,
        amount: 1,
        district_info: "abcdefghijklmnopqrstuvwx",
    };
    store.insert_order(&order).unwrap();
    store.insert_new_order(&order).unwrap();
    store.insert_order_lines(&order, &[line]).unwrap();
    number
}

/// Ends a transaction once another one has had the time to run into it. What comes out is right however
/// long that takes; only a store that does not isolate needs the time to be found out.
fn end<S: Store>(store: &mut S, commits: bool) {
    std::thread::sleep(Duration::from_millis(100));
    if commits {
        store.commit().unwrap();
    } else {
        store.rollback().unwrap();
    }
}

/// Isolation tests 1 and 2: no store here lets a reader wait for a writer.
pub fn an_order_status_sees_nothing_of_an_order_that_is_not_committed<S: Stand>(stand: &S) {
    load(stand, &small(), 1);
    let (mut writer, mut reader) = (store(stand), store(stand));
    let before = last_order(&mut reader);
    assert_eq!(begin_order(&mut writer), 31);
    assert_eq!(last_order(&mut reader), before);
    writer.rollback().unwrap();
    assert_eq!(last_order(&mut reader), before);
    assert_eq!(begin_order(&mut writer), 31);
    assert_eq!(last_order(&mut reader), before);
    writer.commit().unwrap();
    assert_eq!(last_order(&mut reader), (31, 1));
}

/// Isolation test 9.
pub fn an_order_status_sees_the_same_order_twice<S: Stand>(stand: &S) {
    load(stand, &small(), 1);
    let (mut writer, mut reader) = (store(stand), store(stand));
    reader.begin(Kind::OrderStatus).unwrap();
    let before = reader.last_order(CUSTOMER).unwrap();
    begin_order(&mut writer);
    writer.commit().unwrap();
    assert_eq!(reader.last_order(CUSTOMER).unwrap(), before);
    reader.commit().unwrap();
    assert_eq!(last_order(&mut reader), (31, 1));
}

/// Isolation tests 3 and 4.
pub fn orders_of_a_district_wait_for_each_other<S: Stand>(stand: &S) {
    let config = small();
    load(stand, &config, 1);
    let mut first = store(stand);
    for (commits, expected) in [(true, 32), (false, 33)] {
        let number = begin_order(&mut first);
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let line = Line {
                    item: 5,
                    supply_warehouse: 1,
                    quantity: 1,
                };
                let input = Input::NewOrder(NewOrder::new(1, 3, 7, &[line]));
                perform(&mut store(stand), &input, 0, &mut Rows::default()).unwrap()
            });
            end(&mut first, commits);
            second.join().unwrap()
        });
        let Outcome::NewOrder { number: other, .. } = second else {
            panic!("{second:?}");
        };
        assert_eq!(other, number + i64::from(commits));
        assert_eq!(other, expected);
    }
    let mut look = stand.connect();
    let next = "SELECT d_next_o_id FROM district WHERE d_w_id = 1 AND d_id = 3";
    assert_eq!(int(&mut look, next), 34);
    // The order of this test takes no stock, which no condition looks at.
    assert_consistent(&mut look, &config, Extent::All);
}

/// Isolation tests 5 and 6.
pub fn a_payment_and_a_delivery_for_one_customer_both_count<S: Stand>(stand: &S) {
    let config = small();
    load(stand, &config, 1);
    let mut look = stand.connect();
    let (mut first, mut rows) = (store(stand), Rows::default());
    for commits in [false, true] {
        let oldest = "SELECT o_c_id FROM orders WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 22";
        let customer = int(&mut look, oldest);
        let balance = |look: &mut S::Connection| {
            int(
                look,
                &format!(
                    "SELECT c_balance FROM customer WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = {customer}"
                ),
            )
        };
        let before = balance(&mut look);
        let amount = begin_delivery(&mut first);
        std::thread::scope(|scope| {
            let payment = scope.spawn(|| {
                let input = Input::Payment(Payment {
                    warehouse: 2,
                    district: 1,
                    customer_warehouse: 1,
                    customer_district: 3,
                    customer: Buyer::Number(customer),
                    amount: 500,
                });
                perform(&mut store(stand), &input, 0, &mut Rows::default()).unwrap()
            });
            end(&mut first, commits);
            payment.join().unwrap();
        });
        let credited = if commits { amount } else { 0 };
        assert!(amount > 0);
        assert_eq!(balance(&mut look), before + credited - 500);
        assert_consistent(&mut look, &config, Extent::All);
    }
    // The next delivery takes the next order.
    let input = Input::Delivery(Delivery {
        warehouse: 1,
        carrier: 1,
    });
    perform(&mut first, &input, 0, &mut rows).unwrap();
    assert!(rows.delivered().iter().all(|due| due.order == 23));
}

/// A Delivery of the first warehouse up to the moment before it ends; gives what the order of district 3
/// comes to.
fn begin_delivery<S: Store>(store: &mut S) -> i64 {
    let mut due = Vec::new();
    store.begin(Kind::Delivery).unwrap();
    store.oldest_new_orders(1, &mut due).unwrap();
    store.delete_new_orders(1, &due).unwrap();
    store.customers_of_orders(1, &mut due).unwrap();
    store.set_carrier(1, &due, 1).unwrap();
    store.amounts_of_orders(1, &mut due).unwrap();
    store.set_delivered(1, &due, 0).unwrap();
    store.credit(1, &due).unwrap();
    due[2].amount
}
