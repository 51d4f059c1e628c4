//! TPC-C, after the TPC Benchmark C Standard Specification, revision 5.11 (February 2010).
//!
//! Numbers such as 2.4.1.4 in comments are clauses of that document. The five transactions are written
//! once, over the table accesses of a [`Store`]; [`SqlStore`] is one for every SQL connection. Data come
//! from [`population`], which knows no store either, and [`Loader`] brings them into SQL tables.
//!
//! Results are no TPC-C results, which only an audited run gives. What is otherwise than the
//! specification asks for, besides the scale that the configuration chooses:
//!
//! - Money is in whole cents and rates in ten-thousandths, in integer columns, so that sums are exact in
//!   every store (`SQLite` has no decimals) and the consistency conditions hold to the cent. Times are
//!   microseconds since the epoch in integer columns, for the same reason (against 1.4.14).
//! - Delivery is carried out at once by the terminal and not queued (2.7.2); its ten districts are one
//!   database transaction, as 2.7.4.1 allows. Skipped districts are counted.
//! - Terminals have no screens (2.2); what a screen would show is read from the store all the same.
//! - The share of New-Orders that are rolled back (2.4.1.4) can be chosen, for stores that cannot roll back.
//! - A terminal whose transaction the store rolled back goes on with another one.
//! - Home warehouses are dealt out over the clients in turn. With more than ten clients a warehouse,
//!   several share the district of their Stock-Level transactions (against 2.8.1.1).
//! - All rows that are loaded bear one fixed date, so that equal seeds give equal data.

mod check;
mod input;
mod load;
mod pace;
pub mod population;
mod random;
mod sql;
mod store;
mod terminal;
mod transactions;

pub use check::{Check, Extent, Scan, check, check_scans};
pub use input::{Buyer, Delivery, Input, Inputs, Line, NewOrder, OrderStatus, Payment, StockLevel};
pub use load::{Loader, create_indexes, create_tables};
pub use pace::{keying_time, think_time};
pub use random::{Constants, LastName, NuRand};
pub use sql::{SqlStore, sql_texts};
pub use store::{
    Buying, CustomerKey, CustomerStatus, Due, History, Item, LastOrder, LineStatus, NextOrder,
    Order, OrderLine, Payer, Place, Stock, StockChange, StockKey, Store,
};
pub use terminal::{Tally, Terminal};
pub use transactions::{Outcome, Rows, perform};

/// Districts of a warehouse (1.2.1).
pub const DISTRICTS: i64 = 10;
/// The most lines that an order has (2.4.1.3).
pub const MAX_LINES: usize = 15;
/// Items of the whole catalogue (1.2.1).
pub const ITEMS: u32 = 100_000;
/// Customers of a district (1.2.1), and orders in it when it is loaded (4.3.3.1).
pub const CUSTOMERS: u32 = 3_000;

/// Which transactions are asked, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// The specification's five.
    #[default]
    Standard,
    /// New-Order and Payment alone, each half: ten items of the home warehouse and no rollback, customers
    /// of the home district by their numbers; after Harizopoulos et al. 2008, "OLTP through the looking
    /// glass, and what we found there".
    LookingGlass,
}

/// The share of New-Orders that the specification has rolled back (2.4.1.4).
pub const ROLLBACKS: f64 = 0.01;

/// How large the company is, and what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At least 1.
    pub warehouses: u32,
    /// In `[100, 100_000]`; fewer than [`ITEMS`] is not TPC-C.
    pub items: u32,
    /// In `[30, 3_000]`, and as many orders; fewer than [`CUSTOMERS`] is not TPC-C.
    pub customers_per_district: u32,
    /// What is asked.
    pub mix: Mix,
    /// Which share of the standard mix's New-Orders has an unused item and is rolled back, in `[0, 1]`; another than
    /// [`ROLLBACKS`] is not TPC-C.
    pub rollbacks: f64,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Config {
    /// As many warehouses of full size.
    #[must_use]
    pub const fn new(warehouses: u32, seed: u64) -> Self {
        Self {
            warehouses,
            items: ITEMS,
            customers_per_district: CUSTOMERS,
            mix: Mix::Standard,
            rollbacks: ROLLBACKS,
            seed,
        }
    }

    /// Whether the store must be able to roll back.
    #[must_use]
    pub fn rolls_back(&self) -> bool {
        self.mix == Mix::Standard && self.rollbacks > 0.0
    }

    /// Customers of a district, and its orders when it is loaded.
    pub(crate) const fn customers(&self) -> i64 {
        self.customers_per_district as i64
    }

    /// Orders of a district that are delivered when it is loaded: 2,100 of 3,000 (4.3.3.1).
    pub(crate) const fn delivered(&self) -> i64 {
        self.customers() * 7 / 10
    }
}

/// The kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A customer orders items (2.4).
    NewOrder,
    /// A customer pays (2.5).
    Payment,
    /// A customer asks for the last order (2.6).
    OrderStatus,
    /// The oldest order of each district is delivered (2.7).
    Delivery,
    /// How many of the items sold last run out (2.8).
    StockLevel,
}

impl Kind {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// Its name in results and histograms.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn reads_only(self) -> bool {
        matches!(self, Self::OrderStatus | Self::StockLevel)
    }
}

impl Mix {
    /// Each kind that is asked with its weight, which sum to 100 (5.2.4.1).
    #[must_use]
    pub const fn weights(self) -> &'static [(Kind, u64)] {
        match self {
            Self::Standard => &[
                (Kind::NewOrder, 45),
                (Kind::Payment, 43),
                (Kind::OrderStatus, 4),
                (Kind::Delivery, 4),
                (Kind::StockLevel, 4),
            ],
            Self::LookingGlass => &[(Kind::NewOrder, 50), (Kind::Payment, 50)],
        }
    }
}
