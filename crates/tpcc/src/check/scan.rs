//! The conditions verified over scans of the tables, for stores that take no SQL.

use std::collections::{BTreeMap, BTreeSet};

use dyno_sql::{Error, ErrorKind, Result, Value};

use super::{Condition, Each, Source};
use crate::Config;
use crate::population::Table;

/// A store whose tables can be gone through.
pub trait Scan {
    /// Shows each row of a table, its values in the order of the table's columns; rows come in any order.
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<()>;
}

/// What is known of an order.
#[derive(Default)]
struct Order {
    customer: i64,
    waits: bool,
    said_lines: i64,
    lines: i64,
    /// Lines that are not delivered.
    open_lines: i64,
}

/// What is known of a district beside its orders.
#[derive(Default)]
struct District {
    /// Balance of the year and next order; `None` where it has no row.
    row: Option<(i64, i64)>,
    lines: i64,
    paid: Option<i64>,
}

/// What is known of a customer, in cents.
#[derive(Default)]
struct Customer {
    balance: i64,
    ytd_payment: i64,
    paid: i64,
    delivered: i64,
}

/// All that the conditions are about. Keys begin with the warehouse, then the district.
pub struct Books {
    warehouses: BTreeMap<i64, i64>,
    paid: BTreeMap<i64, i64>,
    districts: BTreeMap<(i64, i64), District>,
    orders: BTreeMap<(i64, i64, i64), Order>,
    new_orders: BTreeSet<(i64, i64, i64)>,
    customers: BTreeMap<(i64, i64, i64), Customer>,
    delivered: i64,
}

/// Names of columns, whose places are found once a scan.
fn places<const N: usize>(table: Table, names: [&str; N]) -> Result<[usize; N]> {
    let mut places = [0; N];
    for (place, name) in places.iter_mut().zip(names) {
        let found = table.columns().iter().position(|(known, _)| *known == name);
        *place = found.ok_or_else(|| {
            let message = format!("the table {} has no column {name}", table.name());
            Error::new(ErrorKind::Refused, message)
        })?;
    }
    Ok(places)
}

/// Goes through a table and shows these columns of each row, all of which hold whole numbers or nothing.
fn scan<const N: usize>(
    store: &mut impl Scan,
    table: Table,
    names: [&str; N],
    mut each: impl FnMut([Option<i64>; N]),
) -> Result<()> {
    let places = places(table, names)?;
    store.scan(table, &mut |row| {
        let mut numbers = [None; N];
        for (number, place) in numbers.iter_mut().zip(places) {
            *number = match row.get(place) {
                Some(Value::Int(number)) => Some(*number),
                Some(Value::Null) => None,
                other => {
                    let message = format!("{other:?} in a row of {} is no number", table.name());
                    return Err(Error::new(ErrorKind::WrongValue, message));
                }
            };
        }
        each(numbers);
        Ok(())
    })
}

/// The value of a column that is never empty.
fn known<const N: usize>(numbers: [Option<i64>; N]) -> [i64; N] {
    numbers.map(Option::unwrap_or_default)
}

impl Books {
    pub fn read(store: &mut impl Scan, config: &Config) -> Result<Self> {
        let mut books = Self {
            warehouses: BTreeMap::new(),
            paid: BTreeMap::new(),
            districts: BTreeMap::new(),
            orders: BTreeMap::new(),
            new_orders: BTreeSet::new(),
            customers: BTreeMap::new(),
            delivered: config.delivered(),
        };
        scan(store, Table::Warehouse, ["w_id", "w_ytd"], |row| {
            let [id, ytd] = known(row);
            books.warehouses.insert(id, ytd);
        })?;
        let columns = ["d_w_id", "d_id", "d_ytd", "d_next_o_id"];
        scan(store, Table::District, columns, |row| {
            let [warehouse, id, ytd, next] = known(row);
            books.district(warehouse, id).row = Some((ytd, next));
        })?;
        let columns = ["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment"];
        scan(store, Table::Customer, columns, |row| {
            let [warehouse, district, id, balance, ytd_payment] = known(row);
            let customer = books.customer(warehouse, district, id);
            customer.balance = balance;
            customer.ytd_payment = ytd_payment;
        })?;
        books.read_history(store)?;
        books.read_orders(store)?;
        Ok(books)
    }

    fn read_history(&mut self, store: &mut impl Scan) -> Result<()> {
        let columns = [
            "h_c_w_id", "h_c_d_id", "h_c_id", "h_w_id", "h_d_id", "h_amount",
        ];
        scan(store, Table::History, columns, |row| {
            let [of_warehouse, of_district, of, warehouse, district, amount] = known(row);
            self.customer(of_warehouse, of_district, of).paid += amount;
            *self.paid.entry(warehouse).or_default() += amount;
            *self
                .district(warehouse, district)
                .paid
                .get_or_insert_default() += amount;
        })
    }

    fn read_orders(&mut self, store: &mut impl Scan) -> Result<()> {
        let columns = [
            "o_w_id",
            "o_d_id",
            "o_id",
            "o_c_id",
            "o_ol_cnt",
            "o_carrier_id",
        ];
        scan(store, Table::Orders, columns, |row| {
            let [warehouse, district, id, customer, said_lines, _] = known(row);
            let order = Order {
                customer,
                waits: row[5].is_none(),
                said_lines,
                ..Order::default()
            };
            self.orders.insert((warehouse, district, id), order);
        })?;
        scan(
            store,
            Table::NewOrder,
            ["no_w_id", "no_d_id", "no_o_id"],
            |row| {
                let [warehouse, district, id] = known(row);
                self.new_orders.insert((warehouse, district, id));
            },
        )?;
        let columns = [
            "ol_w_id",
            "ol_d_id",
            "ol_o_id",
            "ol_amount",
            "ol_delivery_d",
        ];
        scan(store, Table::OrderLine, columns, |row| {
            let [warehouse, district, order, amount, _] = known(row);
            self.district(warehouse, district).lines += 1;
            let Some(order) = self.orders.get_mut(&(warehouse, district, order)) else {
                return;
            };
            order.lines += 1;
            if row[4].is_some() {
                let customer = order.customer;
                self.customer(warehouse, district, customer).delivered += amount;
            } else {
                order.open_lines += 1;
            }
        })
    }

    fn district(&mut self, warehouse: i64, id: i64) -> &mut District {
        self.districts.entry((warehouse, id)).or_default()
    }

    fn customer(&mut self, warehouse: i64, district: i64, id: i64) -> &mut Customer {
        self.customers.entry((warehouse, district, id)).or_default()
    }

    /// The districts of a warehouse that have a row, with their balance and next order.
    fn rows_of(&self, warehouse: i64) -> impl Iterator<Item = (i64, &District, i64, i64)> {
        let districts = self
            .districts
            .range((warehouse, i64::MIN)..=(warehouse, i64::MAX));
        districts.filter_map(|((_, id), district)| {
            district.row.map(|(ytd, next)| (*id, district, ytd, next))
        })
    }

    fn orders_of(&self, warehouse: i64) -> impl Iterator<Item = (i64, i64, &Order)> {
        let first = (warehouse, i64::MIN, i64::MIN);
        let orders = self.orders.range(first..=(warehouse, i64::MAX, i64::MAX));
        orders.map(|((_, district, id), order)| (*district, *id, order))
    }

    fn orders_in(
        &self,
        warehouse: i64,
        district: i64,
    ) -> impl DoubleEndedIterator<Item = (i64, &Order)> {
        let orders = (warehouse, district, i64::MIN)..=(warehouse, district, i64::MAX);
        self.orders
            .range(orders)
            .map(|((_, _, id), order)| (*id, order))
    }

    fn new_orders_in(&self, warehouse: i64, district: i64) -> impl DoubleEndedIterator<Item = i64> {
        let orders = (warehouse, district, i64::MIN)..=(warehouse, district, i64::MAX);
        self.new_orders.range(orders).map(|(_, _, id)| *id)
    }
}

/// Shows all rows; gives how many there were.
fn show<const K: usize, const V: usize>(
    rows: impl Iterator<Item = ([i64; K], [Option<i64>; V])>,
    each: Each<'_>,
) -> i64 {
    let mut count = 0;
    for (keys, values) in rows {
        count += 1;
        each(&keys, &values);
    }
    count
}

/// A row to show where two values differ.
fn differing<const K: usize>(
    keys: [i64; K],
    a: i64,
    b: i64,
) -> Option<([i64; K], [Option<i64>; 2])> {
    (a != b).then_some((keys, [Some(a), Some(b)]))
}

fn length(rows: impl Iterator) -> i64 {
    rows.count().cast_signed() as i64
}

impl Source for Books {
    fn warehouses(&mut self, table: &str) -> Result<[Option<i64>; 2]> {
        Ok(if table == "warehouse" {
            let mut ids = self.warehouses.keys().copied();
            [ids.next(), ids.next_back()]
        } else {
            let districts = self
                .districts
                .iter()
                .filter(|(_, district)| district.row.is_some());
            let mut ids = districts.map(|((warehouse, _), _)| *warehouse);
            [ids.next(), ids.next_back()]
        })
    }

    #[allow(clippy::too_many_lines)] // a list
    fn rows(&mut self, condition: &Condition, warehouse: i64, each: Each<'_>) -> Result<i64> {
        Ok(match condition.number {
            1 => {
                let own = self.warehouses.get(&warehouse);
                let sum = self.rows_of(warehouse).map(|(_, _, ytd, _)| ytd).sum();
                show(
                    own.into_iter().map(|ytd| ([], [Some(*ytd), Some(sum)])),
                    each,
                )
            }
            2 => {
                let rows = self.rows_of(warehouse).map(|(id, _, _, next)| {
                    let last = self.orders_in(warehouse, id).next_back().map(|(id, _)| id);
                    let last_new = self.new_orders_in(warehouse, id).next_back();
                    ([id], [Some(next - 1), last, last_new])
                });
                show(rows, each)
            }
            3 => {
                let mut of_districts: BTreeMap<i64, (i64, i64, i64)> = BTreeMap::new();
                let first = (warehouse, i64::MIN, i64::MIN);
                for (_, district, id) in self
                    .new_orders
                    .range(first..=(warehouse, i64::MAX, i64::MAX))
                {
                    let (_, last, count) = of_districts.entry(*district).or_insert((*id, *id, 0));
                    *last = *id;
                    *count += 1;
                }
                let rows = of_districts.into_iter().map(|(id, (first, last, count))| {
                    ([id], [Some(last - first + 1), Some(count)])
                });
                show(rows, each)
            }
            4 => {
                let rows = self.rows_of(warehouse).map(|(id, district, _, _)| {
                    let said = self
                        .orders_in(warehouse, id)
                        .map(|(_, order)| order.said_lines);
                    ([id], [Some(said.sum()), Some(district.lines)])
                });
                show(rows, each)
            }
            5 => {
                let mut rows = self
                    .orders_of(warehouse)
                    .filter_map(|(district, id, order)| {
                        let is_new = self.new_orders.contains(&(warehouse, district, id));
                        differing([district, id], order.waits.into(), is_new.into())
                    });
                show(rows.next().into_iter(), each)
            }
            6 => {
                let mut rows = self
                    .orders_of(warehouse)
                    .filter_map(|(district, id, order)| {
                        differing([district, id], order.said_lines, order.lines)
                    });
                show(rows.next().into_iter(), each)
            }
            7 => {
                let mut rows = self
                    .orders_of(warehouse)
                    .filter_map(|(district, id, order)| {
                        let otherwise = if order.waits {
                            order.lines - order.open_lines
                        } else {
                            order.open_lines
                        };
                        let waits = i64::from(order.waits);
                        differing(
                            [district, id],
                            if otherwise > 0 { 1 - waits } else { waits },
                            waits,
                        )
                    });
                show(rows.next().into_iter(), each)
            }
            8 => {
                let mut rows = self.warehouses.iter().filter_map(|(id, ytd)| {
                    let paid = self.paid.get(id).copied();
                    (*ytd != paid.unwrap_or_default()).then_some(([*id], [Some(*ytd), paid]))
                });
                show(rows.next().into_iter(), each)
            }
            9 => {
                let mut rows = self
                    .districts
                    .iter()
                    .filter_map(|((warehouse, id), district)| {
                        let (ytd, _) = district.row?;
                        let differs = ytd != district.paid.unwrap_or_default();
                        differs.then_some(([*warehouse, *id], [Some(ytd), district.paid]))
                    });
                show(rows.next().into_iter(), each)
            }
            10 => {
                let mut rows =
                    self.customers
                        .iter()
                        .filter_map(|((warehouse, district, id), customer)| {
                            let flow = customer.delivered - customer.paid;
                            differing([*warehouse, *district, *id], customer.balance, flow)
                        });
                show(rows.next().into_iter(), each)
            }
            11 => {
                let rows = self.rows_of(warehouse).map(|(id, ..)| {
                    let orders = length(self.orders_in(warehouse, id));
                    let delivered = orders - length(self.new_orders_in(warehouse, id));
                    ([id], [Some(delivered), Some(self.delivered)])
                });
                show(rows, each)
            }
            _ => {
                let first = (warehouse, i64::MIN, i64::MIN);
                let customers = self
                    .customers
                    .range(first..=(warehouse, i64::MAX, i64::MAX));
                let mut rows = customers.filter_map(|((_, district, id), customer)| {
                    let own = customer.balance + customer.ytd_payment;
                    differing([*district, *id], own, customer.delivered)
                });
                show(rows.next().into_iter(), each)
            }
        })
    }
}
