//! A struct for the rows of each table. What a transaction needs of a row stands together at its beginning.

use dyno_sql::{Result, Value};

use crate::columns::{Column, Fixed, Optional, Text};

/// A row as a table has it.
pub trait Row: Default {
    /// From its values, in the order of the table's columns.
    fn take(values: &[Value<'_>]) -> Result<Self>;

    /// Shows them in that order.
    fn show(&self, each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()>;
}

/// Says which columns the fields of a struct are, in the order of the table's.
macro_rules! columns {
    ($row:ident: $($($field:ident).+ $([$index:literal])?),* $(,)?) => {
        impl Row for $row {
            fn take(values: &[Value<'_>]) -> Result<Self> {
                let mut row = Self::default();
                let mut values = values.iter().copied();
                $(row.$($field).+ $([$index])? = Column::take(values.next().unwrap_or(Value::Null))?;)*
                Ok(row)
            }

            fn show(&self, each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>) -> Result<()> {
                each(&[$(self.$($field).+ $([$index])?.show()),*])
            }
        }
    };
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Item {
    pub price: i64,
    pub id: i32,
    pub image: i32,
    pub name: Text<24>,
    pub data: Text<50>,
}

columns!(Item: id, image, name, price, data);

/// Two streets, the city, the state and the zip code.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Address {
    pub streets: [Text<20>; 2],
    pub city: Text<20>,
    pub state: Fixed<2>,
    pub zip: Fixed<9>,
}

impl Address {
    pub fn read(&self, into: &mut [String; 5]) {
        let [first, second, city, state, zip] = into;
        read(first, self.streets[0].as_str());
        read(second, self.streets[1].as_str());
        read(city, self.city.as_str());
        read(state, self.state.as_str());
        read(zip, self.zip.as_str());
    }
}

/// Text into a buffer that is used again.
#[inline]
pub fn read(into: &mut String, text: &str) {
    into.clear();
    into.push_str(text);
}

#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Warehouse {
    pub ytd: i64,
    pub tax: i32,
    pub id: i32,
    pub name: Text<10>,
    pub address: Address,
}

columns!(
    Warehouse: id, name, address.streets[0], address.streets[1], address.city, address.state, address.zip, tax, ytd
);

/// Two lines of the cache for all but the ten texts of which an order reads one.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Stock {
    pub ytd: i64,
    pub quantity: i32,
    pub orders: i32,
    pub remote_orders: i32,
    pub warehouse: i32,
    pub item: i32,
    pub data: Text<50>,
    pub districts: [Fixed<24>; 10],
}

columns!(
    Stock: warehouse, item, quantity, districts[0], districts[1], districts[2], districts[3], districts[4],
    districts[5], districts[6], districts[7], districts[8], districts[9], ytd, orders, remote_orders, data
);

#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct District {
    pub ytd: i64,
    pub tax: i32,
    pub next_order: i32,
    pub warehouse: i32,
    pub id: i32,
    pub name: Text<10>,
    pub address: Address,
}

columns!(
    District: warehouse, id, name, address.streets[0], address.streets[1], address.city, address.state, address.zip,
    tax, ytd, next_order
);

#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Customer {
    pub balance: i64,
    pub ytd_payment: i64,
    pub payments: i32,
    pub deliveries: i32,
    pub discount: i32,
    pub credit: Fixed<2>,
    pub last: Text<16>,
    pub first: Text<16>,
    pub middle: Fixed<2>,
    pub address: Address,
    pub phone: Fixed<16>,
    pub since: i64,
    pub credit_limit: i64,
    pub warehouse: i32,
    pub district: i32,
    pub id: i32,
    pub data: Text<500>,
}

columns!(
    Customer: warehouse, district, id, first, middle, last, address.streets[0], address.streets[1], address.city,
    address.state, address.zip, phone, since, credit, credit_limit, discount, balance, ytd_payment, payments,
    deliveries, data
);

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct History {
    pub date: i64,
    pub amount: i64,
    pub customer_warehouse: i32,
    pub customer_district: i32,
    pub customer: i32,
    pub warehouse: i32,
    pub district: i32,
    pub data: Text<24>,
}

columns!(History: customer_warehouse, customer_district, customer, warehouse, district, date, amount, data);

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Order {
    pub entered: i64,
    pub carrier: Optional,
    pub warehouse: i32,
    pub district: i32,
    pub id: i32,
    pub customer: i32,
    pub lines: i32,
    pub all_local: i32,
}

columns!(Order: warehouse, district, id, customer, entered, carrier, lines, all_local);

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct NewOrder {
    pub warehouse: i32,
    pub district: i32,
    pub order: i32,
}

columns!(NewOrder: warehouse, district, order);

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct OrderLine {
    pub delivered: Optional,
    pub amount: i64,
    pub warehouse: i32,
    pub district: i32,
    pub order: i32,
    pub number: i32,
    pub item: i32,
    pub supply_warehouse: i32,
    pub quantity: i32,
    pub district_info: Fixed<24>,
}

columns!(
    OrderLine: warehouse, district, order, number, item, supply_warehouse, delivered, quantity, amount, district_info
);
