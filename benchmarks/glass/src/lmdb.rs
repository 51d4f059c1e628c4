//! The tables as ordered maps of LMDB, records as glass has them, for the two transactions of the mix.

use std::path::Path;

use dyno_glass_tpcc::record::{
    self, TextAt, at, fixed, fixed_length, int, large, put_fixed, put_int, put_large, put_no_int,
    put_no_large, text, text_at,
};
use dyno_sql::{Error, ErrorKind, Result, Value};
use dyno_tpcc::population::{self, Table};
use dyno_tpcc::{
    Buying, Config, CustomerKey, CustomerStatus, Due, History, Item, Kind, LastOrder, LineStatus,
    NextOrder, Order, OrderLine, Payer, Place, Scan, Stock, StockChange, StockKey, Store,
};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RwTxn};

type Map = Database<Bytes, Bytes>;

pub struct Lmdb {
    env: &'static Env,
    transaction: Option<RwTxn<'static>>,
    tables: Vec<Map>,
    /// Of orders by customer, whose values are empty.
    orders_of_customers: Map,
    histories: u64,
    record: Vec<u8>,
}

fn told(error: heed::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::MissingKey, format!("{what} does not exist"))
}

/// Numbers with the highest byte first, so that keys sort as they do.
fn key<const N: usize>(numbers: [i64; N]) -> [u8; 16] {
    let mut key = [0; 16];
    for (into, number) in key.chunks_exact_mut(4).zip(numbers) {
        into.copy_from_slice(&u32::try_from(number).unwrap_or_default().to_be_bytes());
    }
    key
}

/// Fills the tables in one transaction each unit.
pub fn load(
    folder: &Path,
    config: &Config,
) -> std::result::Result<Lmdb, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    let mut options = EnvOpenOptions::new();
    options.map_size(16 << 30).max_dbs(16);
    // SAFETY: the file is this process's own; what these flags give up is what a crash would leave.
    let env = unsafe {
        options
            .flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_LOCK)
            .open(folder)?
    };
    let env: &'static Env = Box::leak(Box::new(env));
    let mut transaction = env.write_txn()?;
    let mut tables = Vec::new();
    for table in Table::ALL {
        tables.push(env.create_database(&mut transaction, Some(table.name()))?);
    }
    let orders_of_customers = env.create_database(&mut transaction, Some("orders_customer"))?;
    transaction.commit()?;
    let mut store = Lmdb {
        env,
        transaction: None,
        tables,
        orders_of_customers,
        histories: 0,
        record: Vec::new(),
    };
    for unit in 0..population::units(config) {
        store.begin(Kind::NewOrder)?;
        population::fill(config, unit, |table, row| store.add(table, row))?;
        store.commit()?;
    }
    Ok(store)
}

impl Lmdb {
    fn add(&mut self, table: Table, row: &[Value<'_>]) -> Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record::encode(table, row, &mut record)?;
        let number = |place: usize| match row[place] {
            Value::Int(number) => number,
            _ => 0,
        };
        let mut numbers = [0; 4];
        for place in 0..table.key_columns() {
            numbers[place] = number(place);
        }
        if table == Table::History {
            self.add_history(&record)?;
        } else {
            self.put(table, &key(numbers), &record)?;
        }
        if table == Table::Orders {
            self.put_order_of_customer([number(0), number(1), number(3), number(2)])?;
        }
        self.record = record;
        Ok(())
    }

    fn add_history(&mut self, record: &[u8]) -> Result<()> {
        self.histories += 1;
        let map = self.tables[Table::History as usize];
        let transaction = self
            .transaction
            .as_mut()
            .ok_or_else(|| missing("a transaction"))?;
        map.put_with_flags(
            transaction,
            PutFlags::APPEND,
            &self.histories.to_be_bytes(),
            record,
        )
        .map_err(told)
    }

    fn put_order_of_customer(&mut self, numbers: [i64; 4]) -> Result<()> {
        let map = self.orders_of_customers;
        let transaction = self
            .transaction
            .as_mut()
            .ok_or_else(|| missing("a transaction"))?;
        map.put(transaction, &key(numbers), &[]).map_err(told)
    }

    fn put(&mut self, table: Table, key: &[u8; 16], record: &[u8]) -> Result<()> {
        let map = self.tables[table as usize];
        let transaction = self
            .transaction
            .as_mut()
            .ok_or_else(|| missing("a transaction"))?;
        map.put(transaction, length(table, key), record)
            .map_err(told)
    }

    fn get(&self, table: Table, key: &[u8; 16]) -> Result<Option<&[u8]>> {
        let transaction = self
            .transaction
            .as_ref()
            .ok_or_else(|| missing("a transaction"))?;
        self.tables[table as usize]
            .get(transaction, length(table, key))
            .map_err(told)
    }

    fn row(&self, table: Table, key: &[u8; 16]) -> Result<&[u8]> {
        self.get(table, key)?.ok_or_else(|| missing(table.name()))
    }

    /// Reads a row, changes it and writes it.
    fn change(
        &mut self,
        table: Table,
        key: &[u8; 16],
        change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.extend_from_slice(self.row(table, key)?);
        change(&mut record)?;
        let put = self.put(table, key, &record);
        self.record = record;
        put
    }

    fn place(
        &self,
        table: Table,
        key: &[u8; 16],
        texts: [TextAt; 4],
        state: usize,
        zip: usize,
        into: &mut Place,
    ) -> Result<()> {
        let row = self.row(table, key)?;
        read(&mut into.name, text(row, texts[0]));
        let address = [
            text(row, texts[1]),
            text(row, texts[2]),
            text(row, texts[3]),
            fixed(row, state, 2),
            fixed(row, zip, 9),
        ];
        for (into, text) in into.address.iter_mut().zip(address) {
            read(into, text);
        }
        Ok(())
    }
}

/// All records of a table, as they are while no transaction is under way.
impl Scan for Lmdb {
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<()> {
        let transaction = self.env.read_txn().map_err(told)?;
        for entry in self.tables[table as usize]
            .iter(&transaction)
            .map_err(told)?
        {
            record::decode(table, entry.map_err(told)?.1, each)?;
        }
        Ok(())
    }
}

/// As many bytes of a key as the table's keys have.
fn length(table: Table, key: &[u8; 16]) -> &[u8] {
    &key[..4 * table.key_columns()]
}

fn read(into: &mut String, text: &str) {
    into.clear();
    into.push_str(text);
}

/// Where a column is.
macro_rules! column {
    ($table:ident $name:literal) => {
        const { at(Table::$table, $name) }
    };
}

macro_rules! text_column {
    ($table:ident $name:literal) => {
        const { text_at(Table::$table, $name) }
    };
}

fn of(customer: CustomerKey) -> [u8; 16] {
    key([customer.warehouse, customer.district, customer.number])
}

impl Store for Lmdb {
    crate::not_asked!();

    fn begin(&mut self, _: Kind) -> Result<()> {
        self.transaction = Some(self.env.write_txn().map_err(told)?);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.transaction
            .take()
            .map_or(Ok(()), |transaction| transaction.commit().map_err(told))
    }

    fn rollback(&mut self) -> Result<()> {
        // Dropped, it is undone.
        self.transaction = None;
        Ok(())
    }

    fn warehouse_tax(&mut self, warehouse: i64) -> Result<i64> {
        Ok(int(
            self.row(Table::Warehouse, &key([warehouse]))?,
            column!(Warehouse "w_tax"),
        ))
    }

    fn warehouse(&mut self, warehouse: i64, into: &mut Place) -> Result<()> {
        let texts = [
            text_column!(Warehouse "w_name"),
            text_column!(Warehouse "w_street_1"),
            text_column!(Warehouse "w_street_2"),
            text_column!(Warehouse "w_city"),
        ];
        let (state, zip) = (column!(Warehouse "w_state"), column!(Warehouse "w_zip"));
        self.place(Table::Warehouse, &key([warehouse]), texts, state, zip, into)
    }

    fn add_to_warehouse(&mut self, warehouse: i64, amount: i64) -> Result<()> {
        self.change(Table::Warehouse, &key([warehouse]), |row| {
            let ytd = large(row, column!(Warehouse "w_ytd"));
            put_large(row, column!(Warehouse "w_ytd"), ytd + amount);
            Ok(())
        })
    }

    fn district(&mut self, warehouse: i64, district: i64, into: &mut Place) -> Result<()> {
        let texts = [
            text_column!(District "d_name"),
            text_column!(District "d_street_1"),
            text_column!(District "d_street_2"),
            text_column!(District "d_city"),
        ];
        let (state, zip) = (column!(District "d_state"), column!(District "d_zip"));
        self.place(
            Table::District,
            &key([warehouse, district]),
            texts,
            state,
            zip,
            into,
        )
    }

    fn add_to_district(&mut self, warehouse: i64, district: i64, amount: i64) -> Result<()> {
        self.change(Table::District, &key([warehouse, district]), |row| {
            let ytd = large(row, column!(District "d_ytd"));
            put_large(row, column!(District "d_ytd"), ytd + amount);
            Ok(())
        })
    }

    fn next_order(&mut self, warehouse: i64, district: i64) -> Result<NextOrder> {
        let row = self.row(Table::District, &key([warehouse, district]))?;
        Ok(NextOrder {
            tax: int(row, column!(District "d_tax")),
            number: int(row, column!(District "d_next_o_id")),
        })
    }

    fn set_next_order(&mut self, warehouse: i64, district: i64, number: i64) -> Result<()> {
        let key = key([warehouse, district]);
        self.change(Table::District, &key, |row| {
            put_int(row, column!(District "d_next_o_id"), number)
        })
    }

    fn buying(&mut self, customer: CustomerKey, into: &mut Buying) -> Result<()> {
        let row = self.row(Table::Customer, &of(customer))?;
        into.discount = int(row, column!(Customer "c_discount"));
        read(
            &mut into.last_name,
            text(row, text_column!(Customer "c_last")),
        );
        read(
            &mut into.credit,
            fixed(row, column!(Customer "c_credit"), 2),
        );
        Ok(())
    }

    fn payer(&mut self, customer: CustomerKey, into: &mut Payer) -> Result<()> {
        let row = self.row(Table::Customer, &of(customer))?;
        let names = [
            text(row, text_column!(Customer "c_first")),
            fixed(row, column!(Customer "c_middle"), 2),
            text(row, text_column!(Customer "c_last")),
        ];
        for (into, text) in into.names.iter_mut().zip(names) {
            read(into, text);
        }
        let address = [
            text(row, text_column!(Customer "c_street_1")),
            text(row, text_column!(Customer "c_street_2")),
            text(row, text_column!(Customer "c_city")),
            fixed(row, column!(Customer "c_state"), 2),
            fixed(row, column!(Customer "c_zip"), 9),
        ];
        for (into, text) in into.address.iter_mut().zip(address) {
            read(into, text);
        }
        read(&mut into.phone, fixed(row, column!(Customer "c_phone"), 16));
        into.since = large(row, column!(Customer "c_since"));
        read(
            &mut into.credit,
            fixed(row, column!(Customer "c_credit"), 2),
        );
        into.credit_limit = large(row, column!(Customer "c_credit_lim"));
        into.discount = int(row, column!(Customer "c_discount"));
        into.balance = large(row, column!(Customer "c_balance"));
        Ok(())
    }

    fn customer_data(&mut self, customer: CustomerKey, into: &mut String) -> Result<()> {
        read(
            into,
            text(
                self.row(Table::Customer, &of(customer))?,
                text_column!(Customer "c_data"),
            ),
        );
        Ok(())
    }

    fn pay(&mut self, customer: CustomerKey, amount: i64, data: Option<&str>) -> Result<()> {
        self.change(Table::Customer, &of(customer), |row| {
            let balance = large(row, column!(Customer "c_balance")) - amount;
            put_large(row, column!(Customer "c_balance"), balance);
            let paid = large(row, column!(Customer "c_ytd_payment")) + amount;
            put_large(row, column!(Customer "c_ytd_payment"), paid);
            let count = int(row, column!(Customer "c_payment_cnt")) + 1;
            put_int(row, column!(Customer "c_payment_cnt"), count)?;
            if let Some(data) = data {
                let before = row.clone();
                record::with_last_text(&before, text_column!(Customer "c_data"), data, row)?;
            }
            Ok(())
        })
    }

    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        use Value::{Int, Text};
        let customer = history.customer;
        self.add(
            Table::History,
            &[
                Int(customer.warehouse),
                Int(customer.district),
                Int(customer.number),
                Int(history.warehouse),
                Int(history.district),
                Int(history.date),
                Int(history.amount),
                Text(history.data),
            ],
        )
    }

    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        for (item, into) in items.iter().zip(into) {
            let row = self.get(Table::Item, &key([*item]))?;
            into.found = row.is_some();
            if let Some(row) = row {
                into.price = large(row, column!(Item "i_price"));
                read(&mut into.name, text(row, text_column!(Item "i_name")));
                read(&mut into.data, text(row, text_column!(Item "i_data")));
            }
        }
        Ok(())
    }

    fn stocks(&mut self, district: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        let info =
            column!(Stock "s_dist_01") + 24 * usize::try_from(district - 1).unwrap_or_default();
        for (stock, into) in stocks.iter().zip(into) {
            let row = self.get(Table::Stock, &key([stock.warehouse, stock.item]))?;
            into.found = row.is_some();
            if let Some(row) = row {
                into.quantity = int(row, column!(Stock "s_quantity"));
                read(&mut into.district_info, fixed(row, info, 24));
                read(&mut into.data, text(row, text_column!(Stock "s_data")));
            }
        }
        Ok(())
    }

    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        for change in changes {
            let key = key([change.key.warehouse, change.key.item]);
            self.change(Table::Stock, &key, |row| {
                put_int(row, column!(Stock "s_quantity"), change.quantity)?;
                let ytd = large(row, column!(Stock "s_ytd")) + change.ordered;
                put_large(row, column!(Stock "s_ytd"), ytd);
                let orders = int(row, column!(Stock "s_order_cnt")) + 1;
                put_int(row, column!(Stock "s_order_cnt"), orders)?;
                let remote = int(row, column!(Stock "s_remote_cnt")) + i64::from(change.remote);
                put_int(row, column!(Stock "s_remote_cnt"), remote)
            })?;
        }
        Ok(())
    }

    fn insert_order(&mut self, order: &Order) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            number,
        } = order.customer;
        let mut row = [0; const { fixed_length(Table::Orders) }];
        put_int(&mut row, column!(Orders "o_w_id"), warehouse)?;
        put_int(&mut row, column!(Orders "o_d_id"), district)?;
        put_int(&mut row, column!(Orders "o_id"), order.number)?;
        put_int(&mut row, column!(Orders "o_c_id"), number)?;
        put_large(&mut row, column!(Orders "o_entry_d"), order.entered);
        put_no_int(&mut row, column!(Orders "o_carrier_id"));
        put_int(&mut row, column!(Orders "o_ol_cnt"), order.lines)?;
        put_int(
            &mut row,
            column!(Orders "o_all_local"),
            order.all_local.into(),
        )?;
        self.put(
            Table::Orders,
            &key([warehouse, district, order.number]),
            &row,
        )?;
        self.put_order_of_customer([warehouse, district, number, order.number])
    }

    fn insert_new_order(&mut self, order: &Order) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            ..
        } = order.customer;
        let mut row = [0; const { fixed_length(Table::NewOrder) }];
        put_int(&mut row, column!(NewOrder "no_w_id"), warehouse)?;
        put_int(&mut row, column!(NewOrder "no_d_id"), district)?;
        put_int(&mut row, column!(NewOrder "no_o_id"), order.number)?;
        self.put(
            Table::NewOrder,
            &key([warehouse, district, order.number]),
            &row,
        )
    }

    fn insert_order_lines(&mut self, order: &Order, lines: &[OrderLine<'_>]) -> Result<()> {
        let CustomerKey {
            warehouse,
            district,
            ..
        } = order.customer;
        for line in lines {
            let mut row = [0; const { fixed_length(Table::OrderLine) }];
            put_int(&mut row, column!(OrderLine "ol_w_id"), warehouse)?;
            put_int(&mut row, column!(OrderLine "ol_d_id"), district)?;
            put_int(&mut row, column!(OrderLine "ol_o_id"), order.number)?;
            put_int(&mut row, column!(OrderLine "ol_number"), line.number)?;
            put_int(&mut row, column!(OrderLine "ol_i_id"), line.item)?;
            put_int(
                &mut row,
                column!(OrderLine "ol_supply_w_id"),
                line.supply_warehouse,
            )?;
            put_no_large(&mut row, column!(OrderLine "ol_delivery_d"));
            put_int(&mut row, column!(OrderLine "ol_quantity"), line.quantity)?;
            put_large(&mut row, column!(OrderLine "ol_amount"), line.amount);
            put_fixed(
                &mut row,
                column!(OrderLine "ol_dist_info"),
                24,
                line.district_info,
            )?;
            self.put(
                Table::OrderLine,
                &key([warehouse, district, order.number, line.number]),
                &row,
            )?;
        }
        Ok(())
    }
}
