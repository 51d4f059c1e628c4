//! What the transactions need of a store: accesses to tables, whatever the store is.
//!
//! Accesses to several rows of one table are one call, so that a store behind a network can make one
//! round trip of them. Rows are read into buffers of the caller, which are used again and again.

use dyno_sql::Result;

use crate::Kind;

/// A store that holds the nine tables.
///
/// All calls but [`Store::begin`] come within a transaction. A row that must exist and does not is an
/// error of kind `missing_key` (2.3.6). After any error the caller rolls back, unless the error's kind
/// breaks the connection.
///
/// Transactions other than Stock-Level must not see each other half done (3.4): what is read *for update*
/// is locked, or checked when the transaction commits; a store that gives up a transaction because of
/// others says `conflict`.
pub trait Store {
    /// Begins a transaction.
    fn begin(&mut self, kind: Kind) -> Result<()>;

    /// Makes the transaction's changes last.
    fn commit(&mut self) -> Result<()>;

    /// Undoes the transaction's changes.
    fn rollback(&mut self) -> Result<()>;

    /// Reads a warehouse's tax rate.
    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64>;

    /// Reads a warehouse's name and address, for update.
    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()>;

    /// Adds to a warehouse's balance of the year.
    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()>;

    /// Reads a district's name and address, for update.
    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()>;

    /// Adds to a district's balance of the year.
    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()>;

    /// Reads a district's tax rate and its next order number, for update.
    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder>;

    /// Reads a district's next order number, not for update.
    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64>;

    /// Writes a district's next order number.
    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()>;

    /// Reads what New-Order wants to know of a customer.
    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()>;

    /// Reads what Payment wants to know of a customer, for update.
    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()>;

    /// Reads a customer's miscellaneous information, for update.
    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()>;

    /// Takes a payment: from the balance, to the payments of the year, one more payment; and writes the
    /// miscellaneous information where there is any.
    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()>;

    /// Reads the numbers of a district's customers with that last name, in the order of first names.
    fn customers_by_last_name(
        &mut self,
        warehouse: i64,
        district: i64,
        last_name: &str,
        into: &mut Vec<i64>,
    ) -> Result<()>;

    /// Reads what Order-Status wants to know of a customer.
    fn customer_status(&mut self, customer: CustomerKey, into: &mut CustomerStatus) -> Result<()>;

    /// Adds a row to the history.
    fn insert_history(&mut self, history: &History<'_>) -> Result<()>;

    /// Reads items, each into its place; says of those that do not exist that they were not found.
    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()>;

    /// Reads stocks for an order of that district, for update, each into its place; says of those that do
    /// not exist that they were not found.
    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()>;

    /// Changes stocks, one after the other.
    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()>;

    /// Adds an order without a carrier.
    fn insert_order(&mut self, order: &Order) -> Result<()>;

    /// Adds an order to those that wait for delivery.
    fn insert_new_order(&mut self, order: &Order) -> Result<()>;

    /// Adds an order's lines, which are not delivered.
    fn insert_order_lines(&mut self, order: &Order, lines: &[OrderLine<'_>]) -> Result<()>;

    /// Reads the customer's order with the highest number.
    fn last_order(&mut self, customer: CustomerKey) -> Result<LastOrder>;

    /// Reads an order's lines.
    fn order_lines(
        &mut self,
        warehouse: i64,
        district: i64,
        order: i64,
        into: &mut Vec<LineStatus>,
    ) -> Result<()>;

    /// Finds, for update, the oldest order that waits for delivery in each of the warehouse's districts,
    /// leaving out districts where none waits. Gives their districts and numbers, in the order of
    /// districts.
    fn oldest_new_orders(&mut self, warehouse: i64, into: &mut Vec<Due>) -> Result<()>;

    /// Removes orders from those that wait for delivery.
    fn delete_new_orders(&mut self, warehouse: i64, due: &[Due]) -> Result<()>;

    /// Reads whose the orders are, for update.
    fn customers_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()>;

    /// Writes who carries the orders.
    fn set_carrier(&mut self, warehouse: i64, due: &[Due], carrier: i64) -> Result<()>;

    /// Reads what the lines of each order sum to, for update.
    fn amounts_of_orders(&mut self, warehouse: i64, due: &mut [Due]) -> Result<()>;

    /// Writes when the lines of the orders were delivered, in microseconds since the epoch.
    fn set_delivered(&mut self, warehouse: i64, due: &[Due], date: i64) -> Result<()>;

    /// Adds each order's amount to its customer's balance, and one delivery.
    fn credit(&mut self, warehouse: i64, due: &[Due]) -> Result<()>;

    /// Counts the different items in the orders `[first, end)` of a district whose stock in its warehouse
    /// is below `threshold`.
    fn low_stocks(
        &mut self,
        warehouse: i64,
        district: i64,
        first: i64,
        end: i64,
        threshold: i64,
    ) -> Result<i64>;
}

/// Which customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CustomerKey {
    /// The number of the warehouse, from 1.
    pub warehouse: i64,
    /// The number of the district in its warehouse, from 1.
    pub district: i64,
    /// The number of the customer in its district, from 1.
    pub number: i64,
}

/// Name and address of a warehouse or a district.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Two streets, the city, the state and the zip code.
    pub address: [String; 5],
}

/// What the next order of a district needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextOrder {
    /// In ten-thousandths.
    pub tax: i64,
    /// Of the next order.
    pub number: i64,
}

/// A customer that orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buying {
    /// In ten-thousandths.
    pub discount: i64,
    /// The last name.
    pub last_name: String,
    /// `GC` for good or `BC` for bad.
    pub credit: String,
}

/// A customer that pays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payer {
    /// First, middle and last name.
    pub names: [String; 3],
    /// Two streets, the city, the state and the zip code.
    pub address: [String; 5],
    /// The telephone number.
    pub phone: String,
    /// Since when, in microseconds since the epoch.
    pub since: i64,
    /// `GC` for good or `BC` for bad.
    pub credit: String,
    /// In cents.
    pub credit_limit: i64,
    /// In ten-thousandths.
    pub discount: i64,
    /// In cents, before the payment.
    pub balance: i64,
}

/// A customer that asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomerStatus {
    /// In cents.
    pub balance: i64,
    /// First, middle and last name.
    pub names: [String; 3],
}

/// A payment, as the history keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History<'a> {
    /// Who paid.
    pub customer: CustomerKey,
    /// Where.
    pub warehouse: i64,
    /// In which of its districts.
    pub district: i64,
    /// In microseconds since the epoch.
    pub date: i64,
    /// In cents.
    pub amount: i64,
    /// The names of warehouse and district.
    pub data: &'a str,
}

/// An item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Whether it exists; the rest means nothing otherwise.
    pub found: bool,
    /// In cents.
    pub price: i64,
    /// Its name.
    pub name: String,
    /// Brand information.
    pub data: String,
}

/// Which stock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StockKey {
    /// Whose it is.
    pub warehouse: i64,
    /// Of what.
    pub item: i64,
}

/// A stock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// Whether it exists; the rest means nothing otherwise.
    pub found: bool,
    /// How much is left.
    pub quantity: i64,
    /// Information for the district that orders.
    pub district_info: String,
    /// Make information.
    pub data: String,
}

/// A change of a stock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StockChange {
    /// Of which.
    pub key: StockKey,
    /// What is left afterwards.
    pub quantity: i64,
    /// How much more was sold in the year, in one more order.
    pub ordered: i64,
    /// Whether another warehouse's customer ordered it.
    pub remote: bool,
}

/// An order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Who ordered.
    pub customer: CustomerKey,
    /// Its number in the district of the customer.
    pub number: i64,
    /// When it was entered, in microseconds since the epoch.
    pub entered: i64,
    /// How many lines it has.
    pub lines: i64,
    /// Whether all of it comes from its own warehouse.
    pub all_local: bool,
}

/// A line of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderLine<'a> {
    /// From 1.
    pub number: i64,
    /// What.
    pub item: i64,
    /// From where.
    pub supply_warehouse: i64,
    /// How much.
    pub quantity: i64,
    /// In cents.
    pub amount: i64,
    /// What the stock says for the district.
    pub district_info: &'a str,
}

/// A customer's last order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastOrder {
    /// Its number.
    pub number: i64,
    /// When it was entered, in microseconds since the epoch.
    pub entered: i64,
    /// Who carried it, if it was delivered.
    pub carrier: Option<i64>,
}

/// A line of an order, to somebody who asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineStatus {
    /// What.
    pub item: i64,
    /// From where.
    pub supply_warehouse: i64,
    /// How much.
    pub quantity: i64,
    /// In cents.
    pub amount: i64,
    /// When it was delivered, if it was, in microseconds since the epoch.
    pub delivered: Option<i64>,
}

/// An order to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Its district.
    pub district: i64,
    /// Its number.
    pub order: i64,
    /// Whose it is.
    pub customer: i64,
    /// What its lines sum to, in cents.
    pub amount: i64,
}
