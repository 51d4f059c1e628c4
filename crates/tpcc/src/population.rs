//! The rows with which the tables are filled (4.3.3), unit by unit.
//!
//! A unit is a part of the data set that depends on nothing but the seed, so that whoever makes it, and
//! when, the data are the same.

use std::ops::RangeInclusive;

use dyno_load::Random;
use dyno_sql::{Result, Value};

use crate::random::{
    Constants, LAST_NAMES, LastName, between, chance, permutation, push_a_string, push_data,
    push_digits, push_letters, push_zip, stream,
};
use crate::{Config, DISTRICTS};

/// The tables, as the specification's 1.3 has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// The catalogue.
    Item,
    /// Warehouses.
    Warehouse,
    /// What warehouses have of each item.
    Stock,
    /// Their districts.
    District,
    /// The districts' customers.
    Customer,
    /// Payments.
    History,
    /// The customers' orders.
    Orders,
    /// The orders that wait for delivery.
    NewOrder,
    /// The lines of orders.
    OrderLine,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A number of at most nine digits.
    Number,
    /// As that, or nothing.
    NumberOrNull,
    /// A larger number: money in cents, a time in microseconds since the epoch.
    Large,
    /// As that, or nothing.
    LargeOrNull,
    /// Text of exactly so many characters.
    Fixed(u16),
    /// Text of at most so many characters.
    Text(u16),
}

use Holds::{Fixed, Large, LargeOrNull, Number, NumberOrNull, Text};

/// A column's name and what it holds.
pub type Column = (&'static str, Holds);

const ITEM: [Column; 5] = [
    ("i_id", Number),
    ("i_im_id", Number),
    ("i_name", Text(24)),
    ("i_price", Large),
    ("i_data", Text(50)),
];

const WAREHOUSE: [Column; 9] = [
    ("w_id", Number),
    ("w_name", Text(10)),
    ("w_street_1", Text(20)),
    ("w_street_2", Text(20)),
    ("w_city", Text(20)),
    ("w_state", Fixed(2)),
    ("w_zip", Fixed(9)),
    ("w_tax", Number),
    ("w_ytd", Large),
];

const STOCK: [Column; 17] = [
    ("s_w_id", Number),
    ("s_i_id", Number),
    ("s_quantity", Number),
    ("s_dist_01", Fixed(24)),
    ("s_dist_02", Fixed(24)),
    ("s_dist_03", Fixed(24)),
    ("s_dist_04", Fixed(24)),
    ("s_dist_05", Fixed(24)),
    ("s_dist_06", Fixed(24)),
    ("s_dist_07", Fixed(24)),
    ("s_dist_08", Fixed(24)),
    ("s_dist_09", Fixed(24)),
    ("s_dist_10", Fixed(24)),
    ("s_ytd", Large),
    ("s_order_cnt", Number),
    ("s_remote_cnt", Number),
    ("s_data", Text(50)),
];

const DISTRICT: [Column; 11] = [
    ("d_w_id", Number),
    ("d_id", Number),
    ("d_name", Text(10)),
    ("d_street_1", Text(20)),
    ("d_street_2", Text(20)),
    ("d_city", Text(20)),
    ("d_state", Fixed(2)),
    ("d_zip", Fixed(9)),
    ("d_tax", Number),
    ("d_ytd", Large),
    ("d_next_o_id", Number),
];

const CUSTOMER: [Column; 21] = [
    ("c_w_id", Number),
    ("c_d_id", Number),
    ("c_id", Number),
    ("c_first", Text(16)),
    ("c_middle", Fixed(2)),
    ("c_last", Text(16)),
    ("c_street_1", Text(20)),
    ("c_street_2", Text(20)),
    ("c_city", Text(20)),
    ("c_state", Fixed(2)),
    ("c_zip", Fixed(9)),
    ("c_phone", Fixed(16)),
    ("c_since", Large),
    ("c_credit", Fixed(2)),
    ("c_credit_lim", Large),
    ("c_discount", Number),
    ("c_balance", Large),
    ("c_ytd_payment", Large),
    ("c_payment_cnt", Number),
    ("c_delivery_cnt", Number),
    ("c_data", Text(500)),
];

const HISTORY: [Column; 8] = [
    ("h_c_w_id", Number),
    ("h_c_d_id", Number),
    ("h_c_id", Number),
    ("h_w_id", Number),
    ("h_d_id", Number),
    ("h_date", Large),
    ("h_amount", Large),
    ("h_data", Text(24)),
];

const ORDERS: [Column; 8] = [
    ("o_w_id", Number),
    ("o_d_id", Number),
    ("o_id", Number),
    ("o_c_id", Number),
    ("o_entry_d", Large),
    ("o_carrier_id", NumberOrNull),
    ("o_ol_cnt", Number),
    ("o_all_local", Number),
];

const NEW_ORDER: [Column; 3] = [
    ("no_w_id", Number),
    ("no_d_id", Number),
    ("no_o_id", Number),
];

const ORDER_LINE: [Column; 10] = [
    ("ol_w_id", Number),
    ("ol_d_id", Number),
    ("ol_o_id", Number),
    ("ol_number", Number),
    ("ol_i_id", Number),
    ("ol_supply_w_id", Number),
    ("ol_delivery_d", LargeOrNull),
    ("ol_quantity", Number),
    ("ol_amount", Large),
    ("ol_dist_info", Fixed(24)),
];

impl Table {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::Stock,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
    ];

    /// Its name; that of orders is plural, since ORDER is a word of SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Warehouse => "warehouse",
            Self::Stock => "stock",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
        }
    }

    /// Its columns, in the order of a row's values.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Item => &ITEM,
            Self::Warehouse => &WAREHOUSE,
            Self::Stock => &STOCK,
            Self::District => &DISTRICT,
            Self::Customer => &CUSTOMER,
            Self::History => &HISTORY,
            Self::Orders => &ORDERS,
            Self::NewOrder => &NEW_ORDER,
            Self::OrderLine => &ORDER_LINE,
        }
    }

    /// How many of its first columns are its primary key (1.3.1); none of the history's.
    #[must_use]
    pub const fn key_columns(self) -> usize {
        match self {
            Self::History => 0,
            Self::Item | Self::Warehouse => 1,
            Self::Stock | Self::District => 2,
            Self::Customer | Self::Orders | Self::NewOrder => 3,
            Self::OrderLine => 4,
        }
    }
}

/// The date of everything that is loaded: that of revision 5.11, 11 February 2010, 00:00 UTC.
pub const LOADED: i64 = 1_265_846_400_000_000;

/// What a customer has paid when the data are loaded, in cents (4.3.3.1: `H_AMOUNT`, `C_YTD_PAYMENT`).
/// Of 3,000 customers that is the district's 30,000.00, of ten districts the warehouse's 300,000.00.
const PAID: i64 = 1_000;

/// Rows of the catalogue and of a stock that are one unit.
const CHUNK: u32 = 10_000;

/// A part of the data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// These items.
    Items(RangeInclusive<i64>),
    /// This warehouse and its districts.
    Warehouse(i64),
    /// What this warehouse has of these items.
    Stock(i64, RangeInclusive<i64>),
    /// The customers, the history and the orders of this warehouse's district.
    District(i64, i64),
}

/// How many units a data set has.
#[must_use]
pub fn units(config: &Config) -> u64 {
    let chunks = chunks(config);
    (chunks + i64::from(config.warehouses) * (1 + chunks + DISTRICTS)).unsigned_abs()
}

/// Chunks of the catalogue, and of each stock.
fn chunks(config: &Config) -> i64 {
    i64::from(config.items.div_ceil(CHUNK))
}

/// The unit of that number, from 0; `None` after the last.
#[must_use]
pub fn unit(config: &Config, number: u64) -> Option<Unit> {
    if number >= units(config) {
        return None;
    }
    let chunks = chunks(config);
    let items = |chunk: i64| {
        let size = i64::from(CHUNK);
        chunk * size + 1..=((chunk + 1) * size).min(i64::from(config.items))
    };
    let number = number.cast_signed();
    if number < chunks {
        return Some(Unit::Items(items(number)));
    }
    let a_warehouse = 1 + chunks + DISTRICTS;
    let warehouse = (number - chunks) / a_warehouse + 1;
    Some(match (number - chunks) % a_warehouse {
        0 => Unit::Warehouse(warehouse),
        part if part <= chunks => Unit::Stock(warehouse, items(part - 1)),
        part => Unit::District(warehouse, part - chunks),
    })
}

const LOAD: u64 = 0x6c6f_6164;

/// Makes the rows of the unit of that number and shows each to `each`, its values in the order of the
/// table's columns.
pub fn fill(
    config: &Config,
    number: u64,
    mut each: impl FnMut(Table, &[Value<'_>]) -> Result<()>,
) -> Result<()> {
    let mut filler = Filler {
        config,
        constants: Constants::new(config),
        rng: stream(config.seed, LOAD, number),
        values: Vec::new(),
        text: String::new(),
        each: &mut each,
    };
    match unit(config, number) {
        Some(Unit::Items(items)) => filler.items(items),
        Some(Unit::Warehouse(warehouse)) => filler.warehouse(warehouse),
        Some(Unit::Stock(warehouse, items)) => filler.stock(warehouse, items),
        Some(Unit::District(warehouse, district)) => filler.district(warehouse, district),
        None => Ok(()),
    }
}

/// A value of the row that is made.
#[derive(Clone, Copy)]
enum Made {
    Null,
    Int(i64),
    /// Text up to this place of the row's texts, from where the one before it ends.
    Text(usize),
}

/// Makes rows value by value, in the order of the columns.
struct Filler<'c, E> {
    config: &'c Config,
    constants: Constants,
    rng: Random,
    values: Vec<Made>,
    /// The texts of the row, one behind the other.
    text: String,
    each: &'c mut E,
}

use Value::{Int, Null};

impl<E: FnMut(Table, &[Value<'_>]) -> Result<()>> Filler<'_, E> {
    fn ints<const N: usize>(&mut self, numbers: [i64; N]) {
        self.values.extend(numbers.map(Made::Int));
    }

    /// The number, where it is known.
    fn int_if(&mut self, known: bool, number: i64) {
        self.values
            .push(if known { Made::Int(number) } else { Made::Null });
    }

    /// A random number.
    fn between(&mut self, low: i64, high: i64) {
        let number = between(&mut self.rng, low, high);
        self.ints([number]);
    }

    /// Text that `push` appends.
    fn text(&mut self, push: impl FnOnce(&mut String, &mut Random)) {
        push(&mut self.text, &mut self.rng);
        self.values.push(Made::Text(self.text.len()));
    }

    fn a_string(&mut self, shortest: i64, longest: i64) {
        self.text(|text, rng| push_a_string(text, rng, shortest, longest));
    }

    fn letters(&mut self, length: i64) {
        self.text(|text, rng| push_letters(text, rng, length));
    }

    /// Two streets, the city, the state and the zip code.
    fn address(&mut self) {
        for _ in 0..3 {
            self.a_string(10, 20);
        }
        self.letters(2);
        self.text(push_zip);
    }

    /// The name, the address and the tax of a warehouse or a district.
    fn place(&mut self) {
        self.a_string(6, 10);
        self.address();
        self.between(0, 2_000);
    }

    /// Shows the row, which is complete, and begins the next.
    fn show(&mut self, table: Table) -> Result<()> {
        // As wide as the widest table.
        let mut row = [Null; CUSTOMER.len()];
        let mut start = 0;
        for (value, made) in row.iter_mut().zip(&self.values) {
            *value = match *made {
                Made::Null => Null,
                Made::Int(number) => Int(number),
                Made::Text(end) => {
                    let text = &self.text[start..end];
                    start = end;
                    Value::Text(text)
                }
            };
        }
        let shown = (self.each)(table, &row[..self.values.len()]);
        self.values.clear();
        self.text.clear();
        shown
    }

    fn items(&mut self, items: RangeInclusive<i64>) -> Result<()> {
        for item in items {
            self.ints([item]);
            self.between(1, 10_000);
            self.a_string(14, 24);
            self.between(100, 10_000);
            self.text(push_data);
            self.show(Table::Item)?;
        }
        Ok(())
    }

    fn warehouse(&mut self, warehouse: i64) -> Result<()> {
        let district_ytd = self.config.customers() * PAID;
        let next_order = self.config.customers() + 1;
        self.ints([warehouse]);
        self.place();
        self.ints([district_ytd * DISTRICTS]);
        self.show(Table::Warehouse)?;
        for district in 1..=DISTRICTS {
            self.ints([warehouse, district]);
            self.place();
            self.ints([district_ytd, next_order]);
            self.show(Table::District)?;
        }
        Ok(())
    }

    fn stock(&mut self, warehouse: i64, items: RangeInclusive<i64>) -> Result<()> {
        for item in items {
            self.ints([warehouse, item]);
            self.between(10, 100);
            for _ in 0..DISTRICTS {
                self.letters(24);
            }
            // S_YTD, S_ORDER_CNT and S_REMOTE_CNT.
            self.ints([0, 0, 0]);
            self.text(push_data);
            self.show(Table::Stock)?;
        }
        Ok(())
    }

    fn district(&mut self, warehouse: i64, district: i64) -> Result<()> {
        for customer in 1..=self.config.customers() {
            self.customer(warehouse, district, customer)?;
            self.history(warehouse, district, customer)?;
        }
        let customers = permutation(&mut self.rng, self.config.customers());
        for (order, customer) in (1..).zip(customers) {
            self.order(warehouse, district, order, customer)?;
        }
        Ok(())
    }

    fn customer(&mut self, warehouse: i64, district: i64, customer: i64) -> Result<()> {
        // Each name is there once, further ones come as they are asked for (4.3.3.1).
        let name = if customer <= i64::from(LAST_NAMES) {
            customer - 1
        } else {
            self.constants.last_name_load.sample(&mut self.rng)
        };
        self.ints([warehouse, district, customer]);
        self.a_string(8, 16);
        self.text(|text, _| text.push_str("OE"));
        self.text(|text, _| text.push_str(LastName::new(name).as_str()));
        self.address();
        self.text(|text, rng| push_digits(text, rng, 16));
        self.ints([LOADED]);
        self.text(|text, rng| text.push_str(if chance(rng, 10) { "BC" } else { "GC" }));
        self.ints([5_000_000]);
        self.between(0, 5_000);
        // The balance, the payments and how many, and no delivery.
        self.ints([-PAID, PAID, 1, 0]);
        self.a_string(300, 500);
        self.show(Table::Customer)
    }

    fn history(&mut self, warehouse: i64, district: i64, customer: i64) -> Result<()> {
        self.ints([warehouse, district, customer, warehouse, district]);
        self.ints([LOADED, PAID]);
        self.a_string(12, 24);
        self.show(Table::History)
    }

    fn order(&mut self, warehouse: i64, district: i64, order: i64, customer: i64) -> Result<()> {
        let delivered = order <= self.config.delivered();
        let carrier = between(&mut self.rng, 1, 10);
        let lines = between(&mut self.rng, 5, 15);
        self.ints([warehouse, district, order, customer, LOADED]);
        self.int_if(delivered, carrier);
        self.ints([lines, 1]);
        self.show(Table::Orders)?;
        if !delivered {
            self.ints([warehouse, district, order]);
            self.show(Table::NewOrder)?;
        }
        for line in 1..=lines {
            let item = between(&mut self.rng, 1, i64::from(self.config.items));
            let amount = between(&mut self.rng, 1, 999_999);
            self.ints([warehouse, district, order, line, item, warehouse]);
            self.int_if(delivered, LOADED);
            self.ints([5, if delivered { 0 } else { amount }]);
            self.letters(24);
            self.show(Table::OrderLine)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn small(seed: u64) -> Config {
        Config {
            items: 10_500,
            customers_per_district: 40,
            ..Config::new(2, seed)
        }
    }

    fn count(config: &Config, number: u64) -> HashMap<Table, i64> {
        let mut counts = HashMap::new();
        fill(config, number, |table, row| {
            assert_eq!(row.len(), table.columns().len(), "{table:?}");
            for ((name, holds), value) in table.columns().iter().zip(row) {
                let fits = match (holds, value) {
                    (Number | NumberOrNull, Int(number)) => number.abs() < 1_000_000_000,
                    (Large | LargeOrNull, Int(_)) | (NumberOrNull | LargeOrNull, Null) => true,
                    (Fixed(length), Value::Text(text)) => text.len() == usize::from(*length),
                    (Text(length), Value::Text(text)) => text.len() <= usize::from(*length),
                    _ => false,
                };
                assert!(fits, "{name}: {value:?}");
            }
            *counts.entry(table).or_insert(0) += 1;
            Ok(())
        })
        .unwrap();
        counts
    }

    #[test]
    fn units_cover_the_data_set_once_and_every_value_fits_its_column() {
        let config = small(1);
        assert_eq!(units(&config), 2 + 2 * 13);
        assert_eq!(unit(&config, 1), Some(Unit::Items(10_001..=10_500)));
        assert_eq!(unit(&config, 4), Some(Unit::Stock(1, 10_001..=10_500)));
        assert_eq!(unit(&config, 27), Some(Unit::District(2, 10)));
        assert_eq!(unit(&config, 28), None);
        let mut all = HashMap::new();
        for number in 0..units(&config) {
            for (table, rows) in count(&config, number) {
                *all.entry(table).or_insert(0) += rows;
            }
        }
        let lines = all.remove(&Table::OrderLine).unwrap();
        // 800 orders of 5 to 15 lines: 8,000 expected, with a standard deviation of 89.
        assert!((7_600..8_400).contains(&lines), "{lines}");
        let expected = [
            (Table::Item, 10_500),
            (Table::Warehouse, 2),
            (Table::Stock, 21_000),
            (Table::District, 20),
            (Table::Customer, 800),
            (Table::History, 800),
            (Table::Orders, 800),
            (Table::NewOrder, 240),
        ];
        assert_eq!(all, HashMap::from(expected));
    }

    #[test]
    fn a_unit_is_the_same_whenever_it_is_made_and_other_seeds_make_others() {
        let rows = |seed, number| {
            let mut rows = Vec::new();
            fill(&small(seed), number, |table, row| {
                rows.push(format!("{table:?} {row:?}"));
                Ok(())
            })
            .unwrap();
            rows
        };
        assert_eq!(rows(1, 20), rows(1, 20));
        assert_ne!(rows(1, 20), rows(2, 20));
        assert_ne!(rows(1, 20)[1], rows(1, 21)[1]);
    }
}
