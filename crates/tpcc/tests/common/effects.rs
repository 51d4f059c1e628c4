//! What each transaction leaves in the store, and what it reads from there.

use dyno_sql::{Connection, ErrorKind, Value};
use dyno_tpcc::population::Table;
use dyno_tpcc::{
    Buyer, Config, Delivery, Extent, Input, LastName, Line, NewOrder, OrderStatus, Outcome,
    Payment, Rows, SqlStore, StockLevel, Store, perform,
};

use super::{Stand, assert_consistent, count, dump_all, int, ints, load, small};

const NOW: i64 = 1_700_000_000_000_000;

/// A loaded store, a connection to look at it, and buffers.
fn begin<S: Stand>(stand: &S) -> (Config, SqlStore<S::Connection>, S::Connection, Rows) {
    let config = small();
    load(stand, &config, 1);
    let store = SqlStore::prepare(stand.connect()).unwrap();
    (config, store, stand.connect(), Rows::default())
}

const fn line(item: i64, supply_warehouse: i64, quantity: i64) -> Line {
    Line {
        item,
        supply_warehouse,
        quantity,
    }
}

fn order<S: Store>(store: &mut S, rows: &mut Rows, lines: &[Line]) -> Outcome {
    let input = Input::NewOrder(NewOrder::new(1, 3, 7, lines));
    perform(store, &input, NOW, rows).unwrap()
}

pub fn a_new_order_takes_its_goods_and_costs_its_price<S: Stand>(stand: &S) {
    let (config, mut store, mut look, mut rows) = begin(stand);
    let mut look_int = |sql: &str| int(&mut look, sql);
    let stock = |look: &mut dyn FnMut(&str) -> i64, column: &str, warehouse, item| {
        look(&format!(
            "SELECT {column} FROM stock WHERE s_w_id = {warehouse} AND s_i_id = {item}"
        ))
    };
    let before = [(1, 5), (1, 9), (2, 11)]
        .map(|(warehouse, item)| stock(&mut look_int, "s_quantity", warehouse, item));
    // One item twice, and one from elsewhere.
    let lines = [
        line(5, 1, 10),
        line(5, 1, 9),
        line(9, 1, 1),
        line(11, 2, 4),
        line(8, 1, 2),
    ];
    let outcome = order(&mut store, &mut rows, &lines);

    let left = |quantity: i64, ordered: i64| {
        if quantity >= ordered + 10 {
            quantity - ordered
        } else {
            quantity - ordered + 91
        }
    };
    let after = [(1, 5), (1, 9), (2, 11)]
        .map(|(warehouse, item)| stock(&mut look_int, "s_quantity", warehouse, item));
    assert_eq!(
        after,
        [
            left(left(before[0], 10), 9),
            left(before[1], 1),
            left(before[2], 4)
        ]
    );
    let counts = |look: &mut dyn FnMut(&str) -> i64, warehouse, item| {
        ["s_ytd", "s_order_cnt", "s_remote_cnt"].map(|column| stock(look, column, warehouse, item))
    };
    assert_eq!(counts(&mut look_int, 1, 5), [19, 2, 0]);
    assert_eq!(counts(&mut look_int, 2, 11), [4, 1, 1]);
    assert_eq!(counts(&mut look_int, 1, 11), [0, 0, 0]);

    let mut sum = 0;
    for wanted in lines {
        sum += wanted.quantity
            * look_int(&format!(
                "SELECT i_price FROM item WHERE i_id = {}",
                wanted.item
            ));
    }
    let discount =
        look_int("SELECT c_discount FROM customer WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 7");
    let tax = look_int("SELECT w_tax FROM warehouse WHERE w_id = 1")
        + look_int("SELECT d_tax FROM district WHERE d_w_id = 1 AND d_id = 3");
    let exact = sum as f64 * (1.0 - discount as f64 / 1e4) * (1.0 + tax as f64 / 1e4);
    let Outcome::NewOrder {
        number: 31,
        total: Some(total),
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert!(
        (total as f64 - exact).abs() <= 0.5 + 1e-6,
        "{total} {exact}"
    );

    let of_order = "WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 31 ORDER BY ol_number";
    let mut column = |name: &str| {
        ints(
            &mut look,
            &format!("SELECT {name} FROM order_line {of_order}"),
            &[],
        )
    };
    assert_eq!(column("ol_number"), [1, 2, 3, 4, 5]);
    assert_eq!(column("ol_i_id"), [5, 5, 9, 11, 8]);
    assert_eq!(column("ol_supply_w_id"), [1, 1, 1, 2, 1]);
    assert_eq!(column("ol_quantity"), [10, 9, 1, 4, 2]);
    assert_eq!(column("ol_amount").iter().sum::<i64>(), sum);
    let taken_over = "SELECT COUNT(*) FROM order_line JOIN stock ON s_w_id = ol_supply_w_id \
                      AND s_i_id = ol_i_id WHERE ol_o_id = 31 AND ol_dist_info = s_dist_03 \
                      AND ol_delivery_d IS NULL";
    assert_eq!(int(&mut look, taken_over), 5);
    let entered = format!(
        "SELECT o_ol_cnt * 10 + o_all_local FROM orders WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 31 \
         AND o_c_id = 7 AND o_entry_d = {NOW} AND o_carrier_id IS NULL"
    );
    assert_eq!(int(&mut look, &entered), 50);
    assert_consistent(&mut look, &config, Extent::All);
}

pub fn an_unused_item_rolls_everything_back<S: Stand>(stand: &S) {
    let (_, mut store, mut look, mut rows) = begin(stand);
    let before = dump_all(&mut look);
    let outcome = order(
        &mut store,
        &mut rows,
        &[line(5, 1, 10), line(9, 2, 1), line(201, 1, 4)],
    );
    assert_eq!(
        outcome,
        Outcome::NewOrder {
            number: 31,
            total: None
        }
    );
    assert_eq!(dump_all(&mut look), before);
    // The number is free again.
    let outcome = order(&mut store, &mut rows, &[line(5, 1, 10)]);
    assert!(matches!(
        outcome,
        Outcome::NewOrder {
            number: 31,
            total: Some(_)
        }
    ));
}

pub fn a_missing_item_that_is_not_the_last_is_an_error_and_leaves_nothing<S: Stand>(stand: &S) {
    let (_, mut store, mut look, mut rows) = begin(stand);
    let before = dump_all(&mut look);
    let lines = [line(201, 1, 4), line(5, 1, 10)];
    for lines in [&lines[..], &[line(5, 3, 10)]] {
        let input = Input::NewOrder(NewOrder::new(1, 3, 7, lines));
        let error = perform(&mut store, &input, NOW, &mut rows).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingKey);
    }
    let input = Input::NewOrder(NewOrder::new(1, 3, 31, &[line(5, 1, 10)]));
    let error = perform(&mut store, &input, NOW, &mut rows).unwrap_err();
    assert_eq!(error.kind, ErrorKind::MissingKey);
    assert_eq!(dump_all(&mut look), before);
    order(&mut store, &mut rows, &[line(5, 1, 10)]);
}

const fn payment(customer: Buyer, amount: i64) -> Input {
    Input::Payment(Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 2,
        customer_district: 5,
        customer,
        amount,
    })
}

pub fn a_payment_is_noted_everywhere<S: Stand>(stand: &S) {
    let (config, mut store, mut look, mut rows) = begin(stand);
    let with_credit = |credit| {
        format!(
            "SELECT c_id FROM customer WHERE c_w_id = 2 AND c_d_id = 5 AND c_credit = '{credit}' \
             ORDER BY c_id"
        )
    };
    // Whatever the seed, both kinds of customers are wanted.
    look.run("UPDATE customer SET c_credit = 'BC' WHERE c_w_id = 2 AND c_d_id = 5 AND c_id = 3")
        .unwrap();
    let good = ints(&mut look, &with_credit("GC"), &[])[0];
    for (customer, credit) in [(good, "GC"), (3, "BC")] {
        let outcome = perform(
            &mut store,
            &payment(Buyer::Number(customer), 12_345),
            NOW,
            &mut rows,
        );
        assert_eq!(
            outcome,
            Ok(Outcome::Payment {
                customer,
                balance: -13_345
            })
        );
        assert_eq!(rows.payer().credit, credit);
        let paid = format!(
            "SELECT COUNT(*) FROM customer WHERE c_w_id = 2 AND c_d_id = 5 AND c_id = {customer} \
             AND c_balance = -13345 AND c_ytd_payment = 13345 AND c_payment_cnt = 2"
        );
        assert_eq!(int(&mut look, &paid), 1);
        let note = format!("{customer} 5 2 2 1 123.45|");
        let noted = format!(
            "SELECT COUNT(*) FROM customer WHERE c_w_id = 2 AND c_d_id = 5 AND c_id = {customer} \
             AND c_data LIKE '{note}%' AND LENGTH(c_data) > 300 AND LENGTH(c_data) <= 500"
        );
        assert_eq!(int(&mut look, &noted), i64::from(credit == "BC"));
        let history = format!(
            "SELECT COUNT(*) FROM history JOIN warehouse ON w_id = h_w_id JOIN district \
             ON d_w_id = h_w_id AND d_id = h_d_id WHERE h_c_w_id = 2 AND h_c_d_id = 5 \
             AND h_c_id = {customer} AND h_w_id = 1 AND h_d_id = 2 AND h_amount = 12345 \
             AND h_date = {NOW} AND h_data LIKE '%    %' \
             AND LENGTH(h_data) = LENGTH(w_name) + LENGTH(d_name) + 4"
        );
        assert_eq!(int(&mut look, &history), 1);
    }
    let ytd = [
        "SELECT w_ytd FROM warehouse WHERE w_id = 1",
        "SELECT d_ytd FROM district WHERE d_w_id = 1 AND d_id = 2",
        "SELECT w_ytd FROM warehouse WHERE w_id = 2",
    ];
    assert_eq!(
        ytd.map(|sql| int(&mut look, sql)),
        [324_690, 54_690, 300_000]
    );
    assert_consistent(&mut look, &config, Extent::All);
}

pub fn a_payment_by_name_is_that_of_the_customer_in_the_middle<S: Stand>(stand: &S) {
    let (_, mut store, mut look, mut rows) = begin(stand);
    let name = LastName::new(4);
    let rename = |look: &mut S::Connection, customer, first: &str| {
        look.run(&format!(
            "UPDATE customer SET c_last = '{}', c_first = '{first}' \
             WHERE c_w_id = 2 AND c_d_id = 5 AND c_id = {customer}",
            name.as_str()
        ))
        .unwrap();
    };
    let mut pays = || match perform(&mut store, &payment(Buyer::Name(name), 100), NOW, &mut rows) {
        Ok(Outcome::Payment { customer, .. }) => customer,
        other => panic!("{other:?}"),
    };
    // Customer 5 has name number 4, and nobody else: of n, the one in place n / 2, rounded up.
    rename(&mut look, 5, "m");
    assert_eq!(pays(), 5);
    rename(&mut look, 9, "a");
    assert_eq!(pays(), 9);
    rename(&mut look, 8, "z");
    assert_eq!(pays(), 5);
    // Capitals come before small letters.
    rename(&mut look, 7, "Z");
    assert_eq!(pays(), 9);
    let nobody = payment(Buyer::Name(LastName::new(500)), 100);
    let error = perform(&mut store, &nobody, NOW, &mut rows).unwrap_err();
    assert_eq!(error.kind, ErrorKind::MissingKey);
    assert_eq!(
        int(&mut look, "SELECT w_ytd FROM warehouse WHERE w_id = 1"),
        300_400
    );
}

const DELIVER: Input = Input::Delivery(Delivery {
    warehouse: 2,
    carrier: 6,
});

pub fn a_delivery_takes_the_oldest_order_of_each_district<S: Stand>(stand: &S) {
    let (config, mut store, mut look, mut rows) = begin(stand);
    let outcome = perform(&mut store, &DELIVER, NOW, &mut rows).unwrap();
    assert_eq!(outcome, Outcome::Delivery { delivered: 10 });
    assert!(
        rows.delivered()
            .iter()
            .zip(1..)
            .all(|(due, district)| due.district == district)
    );
    assert!(
        rows.delivered()
            .iter()
            .all(|due| due.order == 22 && due.amount > 0)
    );
    let waiting =
        "SELECT no_o_id FROM new_order WHERE no_w_id = 2 AND no_d_id = 4 ORDER BY no_o_id";
    assert_eq!(ints(&mut look, waiting, &[]), (23..=30).collect::<Vec<_>>());
    assert_eq!(count(&mut look, Table::NewOrder), 170);
    let carried = "SELECT COUNT(*) FROM orders WHERE o_w_id = 2 AND o_id = 22 AND o_carrier_id = 6";
    assert_eq!(int(&mut look, carried), 10);
    let dated = format!("SELECT COUNT(*) FROM order_line WHERE ol_delivery_d = {NOW}");
    let of_orders = "SELECT o_ol_cnt FROM orders WHERE o_w_id = 2 AND o_id = 22";
    assert_eq!(
        int(&mut look, &dated),
        ints(&mut look, of_orders, &[]).iter().sum::<i64>()
    );
    assert_eq!(
        int(
            &mut look,
            "SELECT COUNT(*) FROM customer WHERE c_delivery_cnt = 1"
        ),
        10
    );
    assert_consistent(&mut look, &config, Extent::All);
}

pub fn a_delivery_skips_empty_districts<S: Stand>(stand: &S) {
    let (config, mut store, mut look, mut rows) = begin(stand);
    for _ in 0..8 {
        perform(&mut store, &DELIVER, NOW, &mut rows).unwrap();
    }
    // One order waits in each district; district 1 gets a second one.
    let input = Input::NewOrder(NewOrder::new(2, 1, 7, &[line(5, 2, 1)]));
    perform(&mut store, &input, NOW, &mut rows).unwrap();
    let mut deliver = || perform(&mut store, &DELIVER, NOW, &mut rows);
    assert_eq!(deliver(), Ok(Outcome::Delivery { delivered: 10 }));
    assert_eq!(deliver(), Ok(Outcome::Delivery { delivered: 1 }));
    assert_eq!(deliver(), Ok(Outcome::Delivery { delivered: 0 }));
    assert_consistent(&mut look, &config, Extent::All);
}

pub fn the_order_status_is_that_of_the_last_order<S: Stand>(stand: &S) {
    let (_, mut store, mut look, mut rows) = begin(stand);
    order(&mut store, &mut rows, &[line(5, 1, 10), line(6, 2, 3)]);
    let ask = |customer| {
        Input::OrderStatus(OrderStatus {
            warehouse: 1,
            district: 3,
            customer,
        })
    };
    let outcome = perform(&mut store, &ask(Buyer::Number(7)), NOW, &mut rows).unwrap();
    assert_eq!(
        outcome,
        Outcome::OrderStatus {
            customer: 7,
            number: 31,
            lines: 2
        }
    );
    let mut goods: Vec<_> = rows
        .lines()
        .iter()
        .map(|line| {
            (
                line.item,
                line.supply_warehouse,
                line.quantity,
                line.delivered,
            )
        })
        .collect();
    goods.sort_unstable();
    assert_eq!(goods, [(5, 1, 10, None), (6, 2, 3, None)]);
    // Somebody whose only order was delivered before: customer 1 has name number 0.
    let mut theirs = |column: &str| {
        ints(
            &mut look,
            &format!("SELECT {column} FROM orders WHERE o_w_id = 1 AND o_d_id = 3 AND o_c_id = ?"),
            &[Value::Int(1)],
        )[0]
    };
    let (number, lines) = (theirs("o_id"), theirs("o_ol_cnt"));
    let named = ask(Buyer::Name(LastName::new(0)));
    let outcome = perform(&mut store, &named, NOW, &mut rows).unwrap();
    let lines = usize::try_from(lines).unwrap();
    assert_eq!(
        outcome,
        Outcome::OrderStatus {
            customer: 1,
            number,
            lines
        }
    );
    assert!(
        rows.lines()
            .iter()
            .all(|line| line.delivered.is_some() == (number <= 21))
    );
}

pub fn the_stock_level_counts_different_items_of_the_last_twenty_orders<S: Stand>(stand: &S) {
    let (_, mut store, mut look, mut rows) = begin(stand);
    look.run("UPDATE stock SET s_quantity = 50").unwrap();
    look.run("UPDATE order_line SET ol_i_id = 1").unwrap();
    let mut low = |threshold| {
        let input = Input::StockLevel(StockLevel {
            warehouse: 1,
            district: 3,
            threshold,
        });
        match perform(&mut store, &input, NOW, &mut rows) {
            Ok(Outcome::StockLevel { low }) => low,
            other => panic!("{other:?}"),
        }
    };
    // The last twenty are 11 to 30; each has at least five lines.
    let place = |look: &mut S::Connection, district, order, number, item| {
        look.run(&format!(
            "UPDATE order_line SET ol_i_id = {item} WHERE ol_w_id = 1 AND ol_d_id = {district} \
             AND ol_o_id = {order} AND ol_number = {number}"
        ))
        .unwrap();
    };
    for (district, order, number, item) in [
        (3, 10, 1, 10),
        (3, 11, 1, 11),
        (3, 30, 2, 12),
        (3, 30, 3, 12),
        (3, 29, 3, 12),
        (4, 30, 1, 13),
        (3, 20, 4, 14),
    ] {
        place(&mut look, district, order, number, item);
    }
    look.run("UPDATE stock SET s_quantity = 14 WHERE s_w_id = 1 AND s_i_id IN (10, 11, 12, 13)")
        .unwrap();
    look.run("UPDATE stock SET s_quantity = 14 WHERE s_w_id = 2 AND s_i_id = 14")
        .unwrap();
    assert_eq!(low(15), 2);
    assert_eq!(low(14), 0);
}
