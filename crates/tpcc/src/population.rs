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
        text: Words::default(),
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

/// The texts of a row, one behind the other.
#[derive(Default)]
struct Words {
    text: String,
    ends: Vec<usize>,
}

impl Words {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// One more text, which `fill` appends.
    fn add(&mut self, fill: impl FnOnce(&mut String)) {
        fill(&mut self.text);
        self.ends.push(self.text.len());
    }

    fn get(&self, place: usize) -> Value<'_> {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        Value::Text(&self.text[start..self.ends[place]])
    }

    /// Two streets, the city, the state and the zip code.
    fn add_address(&mut self, rng: &mut Random) {
        for _ in 0..3 {
            self.add(|text| push_a_string(text, rng, 10, 20));
        }
        self.add(|text| push_letters(text, rng, 2));
        self.add(|text| push_zip(text, rng));
    }
}

struct Filler<'c, E> {
    config: &'c Config,
    constants: Constants,
    rng: Random,
    text: Words,
    each: &'c mut E,
}

use Value::{Int, Null};

impl<E: FnMut(Table, &[Value<'_>]) -> Result<()>> Filler<'_, E> {
    fn items(&mut self, items: RangeInclusive<i64>) -> Result<()> {
        for item in items {
            let (text, rng) = (&mut self.text, &mut self.rng);
            text.clear();
            let image = between(rng, 1, 10_000);
            text.add(|text| push_a_string(text, rng, 14, 24));
            let price = between(rng, 100, 10_000);
            text.add(|text| push_data(text, rng));
            let row = [Int(item), Int(image), text.get(0), Int(price), text.get(1)];
            (self.each)(Table::Item, &row)?;
        }
        Ok(())
    }

    fn warehouse(&mut self, warehouse: i64) -> Result<()> {
        let district_ytd = self.config.customers() * PAID;
        let next_order = self.config.customers() + 1;
        self.place();
        let tax = between(&mut self.rng, 0, 2_000);
        let word = |place| self.text.get(place);
        let row = [
            Int(warehouse),
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            Int(tax),
            Int(district_ytd * DISTRICTS),
        ];
        (self.each)(Table::Warehouse, &row)?;
        for district in 1..=DISTRICTS {
            self.place();
            let tax = between(&mut self.rng, 0, 2_000);
            let word = |place| self.text.get(place);
            let row = [
                Int(warehouse),
                Int(district),
                word(0),
                word(1),
                word(2),
                word(3),
                word(4),
                word(5),
                Int(tax),
                Int(district_ytd),
                Int(next_order),
            ];
            (self.each)(Table::District, &row)?;
        }
        Ok(())
    }

    /// The name and the address of a warehouse or a district.
    fn place(&mut self) {
        let (text, rng) = (&mut self.text, &mut self.rng);
        text.clear();
        text.add(|text| push_a_string(text, rng, 6, 10));
        text.add_address(rng);
    }

    fn stock(&mut self, warehouse: i64, items: RangeInclusive<i64>) -> Result<()> {
        for item in items {
            let (text, rng) = (&mut self.text, &mut self.rng);
            text.clear();
            let quantity = between(rng, 10, 100);
            for _ in 0..DISTRICTS {
                text.add(|text| push_letters(text, rng, 24));
            }
            text.add(|text| push_data(text, rng));
            let mut row = [Int(0); STOCK.len()];
            row[..3].copy_from_slice(&[Int(warehouse), Int(item), Int(quantity)]);
            for (place, value) in row[3..13].iter_mut().enumerate() {
                *value = text.get(place);
            }
            // S_YTD, S_ORDER_CNT and S_REMOTE_CNT, between them, begin with 0.
            row[16] = text.get(10);
            (self.each)(Table::Stock, &row)?;
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
        let (text, rng) = (&mut self.text, &mut self.rng);
        // Each name is there once, further ones come as they are asked for (4.3.3.1).
        let name = if customer <= i64::from(LAST_NAMES) {
            customer - 1
        } else {
            self.constants.last_name_load.sample(rng)
        };
        let name = LastName::new(name);
        text.clear();
        text.add(|text| push_a_string(text, rng, 8, 16));
        text.add_address(rng);
        text.add(|text| push_digits(text, rng, 16));
        let credit = if chance(rng, 10) { "BC" } else { "GC" };
        let discount = between(rng, 0, 5_000);
        text.add(|text| push_a_string(text, rng, 300, 500));
        let row = [
            Int(warehouse),
            Int(district),
            Int(customer),
            text.get(0),
            Value::Text("OE"),
            Value::Text(name.as_str()),
            text.get(1),
            text.get(2),
            text.get(3),
            text.get(4),
            text.get(5),
            text.get(6),
            Int(LOADED),
            Value::Text(credit),
            Int(5_000_000),
            Int(discount),
            Int(-PAID),
            Int(PAID),
            Int(1),
            Int(0),
            text.get(7),
        ];
        (self.each)(Table::Customer, &row)
    }

    fn history(&mut self, warehouse: i64, district: i64, customer: i64) -> Result<()> {
        let (text, rng) = (&mut self.text, &mut self.rng);
        text.clear();
        text.add(|text| push_a_string(text, rng, 12, 24));
        let row = [
            Int(warehouse),
            Int(district),
            Int(customer),
            Int(warehouse),
            Int(district),
            Int(LOADED),
            Int(PAID),
            text.get(0),
        ];
        (self.each)(Table::History, &row)
    }

    fn order(&mut self, warehouse: i64, district: i64, order: i64, customer: i64) -> Result<()> {
        let delivered = order <= self.config.delivered();
        let carrier = between(&mut self.rng, 1, 10);
        let lines = between(&mut self.rng, 5, 15);
        let row = [
            Int(warehouse),
            Int(district),
            Int(order),
            Int(customer),
            Int(LOADED),
            if delivered { Int(carrier) } else { Null },
            Int(lines),
            Int(1),
        ];
        (self.each)(Table::Orders, &row)?;
        if !delivered {
            let row = [Int(warehouse), Int(district), Int(order)];
            (self.each)(Table::NewOrder, &row)?;
        }
        for line in 1..=lines {
            let (text, rng) = (&mut self.text, &mut self.rng);
            text.clear();
            let item = between(rng, 1, i64::from(self.config.items));
            let amount = between(rng, 1, 999_999);
            text.add(|text| push_letters(text, rng, 24));
            let row = [
                Int(warehouse),
                Int(district),
                Int(order),
                Int(line),
                Int(item),
                Int(warehouse),
                if delivered { Int(LOADED) } else { Null },
                Int(5),
                Int(if delivered { 0 } else { amount }),
                text.get(0),
            ];
            (self.each)(Table::OrderLine, &row)?;
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
