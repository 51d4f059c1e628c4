//! The five transactions (2.4 to 2.8), written once over the table accesses of any store.
//!
//! The order of accesses is free (2.3.1). Rows for update come first and in one order everywhere, so that
//! transactions wait for each other rather than fail: in a store that reads a snapshot, also before the
//! first plain read, which takes it.

use std::fmt::Write as _;

use dyno_sql::{Error, ErrorKind, Result};

use crate::MAX_LINES;
use crate::input::{Buyer, Delivery, Input, NewOrder, OrderStatus, Payment, StockLevel};
use crate::random::ORIGINAL;
use crate::store::{
    Buying, CustomerKey, CustomerStatus, Due, History, Item, LineStatus, Order, OrderLine, Payer,
    Place, Stock, StockChange, StockKey, Store,
};

/// What a transaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// New-Order.
    NewOrder {
        /// The number that the order has, or had until it was rolled back.
        number: i64,
        /// What it costs, in cents; `None` where it was rolled back for its unused item.
        total: Option<i64>,
    },
    /// Payment.
    Payment {
        /// The customer's number.
        customer: i64,
        /// What the customer is left with, in cents.
        balance: i64,
    },
    /// Order-Status.
    OrderStatus {
        /// The customer's number.
        customer: i64,
        /// The number of the last order.
        number: i64,
        /// How many lines it has.
        lines: usize,
    },
    /// Delivery.
    Delivery {
        /// To how many districts.
        delivered: usize,
    },
    /// Stock-Level.
    StockLevel {
        /// How many items run out.
        low: i64,
    },
}

/// What transactions read, kept to be used again; afterwards it has what a terminal would show.
#[derive(Debug, Default)]
pub struct Rows {
    warehouse: Place,
    district: Place,
    buying: Buying,
    payer: Payer,
    status: CustomerStatus,
    customers: Vec<i64>,
    items: [Item; MAX_LINES],
    stocks: [Stock; MAX_LINES],
    /// Whether each line's goods are of a brand rather than generic.
    brands: [bool; MAX_LINES],
    lines: Vec<LineStatus>,
    due: Vec<Due>,
    data: String,
    text: String,
}

impl Rows {
    /// The customer of the last Payment, as before it.
    #[must_use]
    pub const fn payer(&self) -> &Payer {
        &self.payer
    }

    /// The lines of the last Order-Status.
    #[must_use]
    pub fn lines(&self) -> &[LineStatus] {
        &self.lines
    }

    /// The orders of the last Delivery.
    #[must_use]
    pub fn delivered(&self) -> &[Due] {
        &self.due
    }

    /// Which lines of the last New-Order are of a brand.
    #[must_use]
    pub const fn brands(&self) -> &[bool; MAX_LINES] {
        &self.brands
    }
}

/// Carries out a transaction at a time given in microseconds since the epoch. After an error nothing is
/// left of it, and the store is ready for the next one unless the error's kind breaks its connection.
pub fn perform<S: Store>(
    store: &mut S,
    input: &Input,
    now: i64,
    rows: &mut Rows,
) -> Result<Outcome> {
    store.begin(input.kind())?;
    let ended = carry_out(store, input, now, rows).and_then(|outcome| {
        if matches!(outcome, Outcome::NewOrder { total: None, .. }) {
            store.rollback()?;
        } else {
            store.commit()?;
        }
        Ok(outcome)
    });
    if let Err(error) = &ended
        && !error.kind.breaks_connection()
    {
        // The first error is the one to report. Many stores have rolled back by themselves and say so.
        let _ = store.rollback();
    }
    ended
}

fn carry_out<S: Store>(store: &mut S, input: &Input, now: i64, rows: &mut Rows) -> Result<Outcome> {
    match input {
        Input::NewOrder(input) => new_order(store, input, now, rows),
        Input::Payment(input) => payment(store, input, now, rows),
        Input::OrderStatus(input) => order_status(store, input, rows),
        Input::Delivery(input) => delivery(store, input, now, rows),
        Input::StockLevel(input) => stock_level(store, input),
    }
}

/// The profile of 2.4.2.2.
fn new_order<S: Store>(
    store: &mut S,
    input: &NewOrder,
    now: i64,
    rows: &mut Rows,
) -> Result<Outcome> {
    let (warehouse, district) = (input.warehouse, input.district);
    let lines = input.lines();
    let next = store.next_order(warehouse, district)?;
    store.set_next_order(warehouse, district, next.number + 1)?;

    let mut items = [0; MAX_LINES];
    let mut keys = [StockKey::default(); MAX_LINES];
    for (place, line) in lines.iter().enumerate() {
        items[place] = line.item;
        keys[place] = StockKey {
            warehouse: line.supply_warehouse,
            item: line.item,
        };
    }
    let count = lines.len();
    store.stocks(district, &keys[..count], &mut rows.stocks[..count])?;
    store.items(&items[..count], &mut rows.items[..count])?;
    let unused = unused_last(&rows.items[..count])?;
    let valid = count - usize::from(unused);
    if let Some(place) = rows.stocks[..valid].iter().position(|stock| !stock.found) {
        return Err(missing(&format!("stock {:?}", keys[place])));
    }

    let customer = CustomerKey {
        warehouse,
        district,
        number: input.customer,
    };
    let warehouse_tax = store.warehouse_tax(warehouse)?;
    store.buying(customer, &mut rows.buying)?;
    let order = Order {
        customer,
        number: next.number,
        entered: now,
        lines: count.cast_signed() as i64,
        all_local: input.is_local(),
    };
    store.insert_order(&order)?;
    store.insert_new_order(&order)?;

    let mut changes = [StockChange::default(); MAX_LINES];
    let mut order_lines = [OrderLine::default(); MAX_LINES];
    let mut sum = 0;
    for (place, line) in lines[..valid].iter().enumerate() {
        let (item, stock) = (&rows.items[place], &rows.stocks[place]);
        // An item may be ordered twice: the second line finds what the first one left.
        let earlier = changes[..place].iter().rev();
        let left = earlier
            .into_iter()
            .find(|change| change.key == keys[place])
            .map_or(stock.quantity, |change| change.quantity);
        changes[place] = StockChange {
            key: keys[place],
            quantity: restocked(left, line.quantity),
            ordered: line.quantity,
            remote: line.supply_warehouse != warehouse,
        };
        order_lines[place] = OrderLine {
            number: place.cast_signed() as i64 + 1,
            item: line.item,
            supply_warehouse: line.supply_warehouse,
            quantity: line.quantity,
            amount: line.quantity * item.price,
            district_info: &stock.district_info,
        };
        sum += order_lines[place].amount;
        rows.brands[place] = item.data.contains(ORIGINAL) && stock.data.contains(ORIGINAL);
    }
    store.update_stocks(&changes[..valid])?;
    store.insert_order_lines(&order, &order_lines[..valid])?;
    Ok(Outcome::NewOrder {
        number: next.number,
        total: (!unused).then(|| total(sum, rows.buying.discount, warehouse_tax + next.tax)),
    })
}

/// Whether the last item is an unused one; any other that is not found is an error (2.3.6).
fn unused_last(items: &[Item]) -> Result<bool> {
    match items.iter().position(|item| !item.found) {
        None => Ok(false),
        Some(place) if place + 1 == items.len() => Ok(true),
        Some(place) => Err(missing(&format!("the item of line {}", place + 1))),
    }
}

/// What is left of a stock after an order: at least 10, since it is filled up by 91 in time (2.4.2.2).
const fn restocked(left: i64, ordered: i64) -> i64 {
    if left - ordered >= 10 {
        left - ordered
    } else {
        left - ordered + 91
    }
}

/// The amount of an order in cents, rounded half up; rates are in ten-thousandths. Sums are below
/// 15 x 10 x 100.00, so that the product keeps within 64 bits.
const fn total(sum: i64, discount: i64, tax: i64) -> i64 {
    const ONE: i64 = 10_000;
    (sum * (ONE - discount) * (ONE + tax) + ONE * ONE / 2) / (ONE * ONE)
}

/// The profile of 2.5.2.2.
fn payment<S: Store>(store: &mut S, input: &Payment, now: i64, rows: &mut Rows) -> Result<Outcome> {
    let (warehouse, district, amount) = (input.warehouse, input.district, input.amount);
    store.warehouse(warehouse, &mut rows.warehouse)?;
    store.add_to_warehouse(warehouse, amount)?;
    store.district(warehouse, district, &mut rows.district)?;
    store.add_to_district(warehouse, district, amount)?;

    let customer = find_customer(
        store,
        input.customer_warehouse,
        input.customer_district,
        input.customer,
        &mut rows.customers,
    )?;
    store.payer(customer, &mut rows.payer)?;
    if rows.payer.credit == "BC" {
        store.customer_data(customer, &mut rows.data)?;
        note_payment(&mut rows.text, customer, input, &rows.data);
        store.pay(customer, amount, Some(&rows.text))?;
    } else {
        store.pay(customer, amount, None)?;
    }

    rows.text.clear();
    rows.text.push_str(&rows.warehouse.name);
    rows.text.push_str("    ");
    rows.text.push_str(&rows.district.name);
    store.insert_history(&History {
        customer,
        warehouse,
        district,
        date: now,
        amount,
        data: &rows.text,
    })?;
    Ok(Outcome::Payment {
        customer: customer.number,
        balance: rows.payer.balance - amount,
    })
}

/// A customer with that name: of n in the order of first names, the one in place n / 2, rounded up
/// (2.5.2.2, 2.6.2.2).
fn find_customer<S: Store>(
    store: &mut S,
    warehouse: i64,
    district: i64,
    buyer: Buyer,
    customers: &mut Vec<i64>,
) -> Result<CustomerKey> {
    let number = match buyer {
        Buyer::Number(number) => number,
        Buyer::Name(name) => {
            store.customers_by_last_name(warehouse, district, name.as_str(), customers)?;
            match customers.len().div_ceil(2).checked_sub(1) {
                Some(middle) => customers[middle],
                None => return Err(missing(&format!("a customer named {}", name.as_str()))),
            }
        }
    };
    Ok(CustomerKey {
        warehouse,
        district,
        number,
    })
}

/// The most characters of a customer's miscellaneous information.
const MAX_DATA: usize = 500;

/// The history of a customer with bad credit: this payment, and before it what there was, as far as it
/// finds room (2.5.2.2).
fn note_payment(text: &mut String, customer: CustomerKey, input: &Payment, data: &str) {
    text.clear();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{} {} {} {} {} {}.{:02}|",
        customer.number,
        customer.district,
        customer.warehouse,
        input.district,
        input.warehouse,
        input.amount / 100,
        input.amount % 100
    );
    let room = MAX_DATA - text.len();
    // Data are ASCII; others are kept whole where they cannot be cut there.
    text.push_str(data.get(..room).unwrap_or(data));
}

/// The profile of 2.6.2.2.
fn order_status<S: Store>(store: &mut S, input: &OrderStatus, rows: &mut Rows) -> Result<Outcome> {
    let (warehouse, district) = (input.warehouse, input.district);
    let customer = find_customer(
        store,
        warehouse,
        district,
        input.customer,
        &mut rows.customers,
    )?;
    store.customer_status(customer, &mut rows.status)?;
    let order = store.last_order(customer)?;
    store.order_lines(warehouse, district, order.number, &mut rows.lines)?;
    Ok(Outcome::OrderStatus {
        customer: customer.number,
        number: order.number,
        lines: rows.lines.len(),
    })
}

/// The profile of 2.7.4.2, all districts at once in each step.
fn delivery<S: Store>(
    store: &mut S,
    input: &Delivery,
    now: i64,
    rows: &mut Rows,
) -> Result<Outcome> {
    let (warehouse, due) = (input.warehouse, &mut rows.due);
    store.oldest_new_orders(warehouse, due)?;
    store.delete_new_orders(warehouse, due)?;
    store.customers_of_orders(warehouse, due)?;
    store.set_carrier(warehouse, due, input.carrier)?;
    store.amounts_of_orders(warehouse, due)?;
    store.set_delivered(warehouse, due, now)?;
    store.credit(warehouse, due)?;
    Ok(Outcome::Delivery {
        delivered: due.len(),
    })
}

/// The profile of 2.8.2.2.
fn stock_level<S: Store>(store: &mut S, input: &StockLevel) -> Result<Outcome> {
    let (warehouse, district) = (input.warehouse, input.district);
    let next = store.next_order_number(warehouse, district)?;
    let low = store.low_stocks(warehouse, district, next - 20, next, input.threshold)?;
    Ok(Outcome::StockLevel { low })
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::MissingKey, format!("{what} does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_before_it_falls_below_ten() {
        assert_eq!(restocked(20, 10), 10);
        assert_eq!(restocked(19, 10), 100);
        assert_eq!(restocked(10, 1), 100);
        assert_eq!(restocked(100, 1), 99);
    }

    #[test]
    fn totals_are_exact_and_rounded_half_up() {
        // 100.00 with 10 % off and 5 % + 2.5 % tax: 100.00 x 0.9 x 1.075 = 96.75.
        assert_eq!(total(10_000, 1_000, 750), 9_675);
        // 0.01 x 0.5 = 0.005, rounded up.
        assert_eq!(total(1, 5_000, 0), 1);
        assert_eq!(total(1, 5_001, 0), 0);
        // The largest order: no discount, twice 20 % tax.
        assert_eq!(total(15 * 10 * 10_000, 0, 4_000), 2_100_000);
    }

    #[test]
    fn a_bad_customers_data_begin_with_the_payment_and_never_grow_too_long() {
        let customer = CustomerKey {
            warehouse: 3,
            district: 2,
            number: 1,
        };
        let input = Payment {
            warehouse: 5,
            district: 4,
            customer_warehouse: 3,
            customer_district: 2,
            customer: Buyer::Number(1),
            amount: 123_405,
        };
        let mut text = String::new();
        note_payment(&mut text, customer, &input, "before");
        assert_eq!(text, "1 2 3 4 5 1234.05|before");
        note_payment(&mut text, customer, &input, &"x".repeat(500));
        assert!(text.len() == 500 && text.starts_with("1 2 3 4 5 1234.05|xxx"));
    }

    #[test]
    fn only_the_last_item_may_be_unused() {
        let found = |found| Item {
            found,
            ..Item::default()
        };
        assert_eq!(unused_last(&[true, true].map(found)), Ok(false));
        assert_eq!(unused_last(&[true, false].map(found)), Ok(true));
        let error = unused_last(&[false, true].map(found)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingKey);
        assert!(unused_last(&[false, false].map(found)).is_err());
    }
}
