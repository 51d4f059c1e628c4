//! What TPC-C must do on every SQL store: the same tests for each, by [`suite!`].

// Test binaries are separate programs, and none uses everything.
#![allow(dead_code, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod broken;
pub mod database;
pub mod effects;
pub mod isolation;

use std::fmt::Write as _;

use dyno_sql::{Connection, ErrorKind, Row, Value};
use dyno_tpcc::population::{Holds, Table};
use dyno_tpcc::{
    Check, Config, Extent, Kind, Loader, Mix, Outcome, Scan, SqlStore, Store, Terminal, check,
    check_scans, create_indexes, create_tables,
};

/// An empty database on a store under test.
pub trait Stand: Sync {
    type Connection: Connection;

    /// One more client's connection; it stays in the thread that asks for it.
    fn connect(&self) -> Self::Connection;
}

/// The tests of one store; `$stand` gives a new empty database.
#[macro_export]
macro_rules! suite {
    ($stand:expr) => {
        $crate::suite! { $stand,
            common: loading_gives_all_rows_and_a_consistent_store,
            common: transactions_of_one_client_keep_the_store_consistent,
            common: transactions_of_several_clients_keep_the_store_consistent,
            common: the_looking_glass_mix_succeeds_and_keeps_the_store_consistent,
            common: deliveries_at_the_same_time_never_deliver_an_order_twice,
            common: a_store_works_on_after_its_connection_was_made_anew,
            broken: each_condition_sees_the_update_that_was_left_out,
            effects: a_new_order_takes_its_goods_and_costs_its_price,
            effects: an_unused_item_rolls_everything_back,
            effects: a_missing_item_that_is_not_the_last_is_an_error_and_leaves_nothing,
            effects: a_payment_is_noted_everywhere,
            effects: a_payment_by_name_is_that_of_the_customer_in_the_middle,
            effects: a_delivery_takes_the_oldest_order_of_each_district,
            effects: a_delivery_skips_empty_districts,
            effects: the_order_status_is_that_of_the_last_order,
            effects: the_stock_level_counts_different_items_of_the_last_twenty_orders,
            isolation: an_order_status_sees_nothing_of_an_order_that_is_not_committed,
            isolation: an_order_status_sees_the_same_order_twice,
            isolation: orders_of_a_district_wait_for_each_other,
            isolation: a_payment_and_a_delivery_for_one_customer_both_count,
        }
    };
    ($stand:expr, $($module:ident: $name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $crate::suite!(@call $module $name)(&$stand);
            }
        )*
    };
    (@call common $name:ident) => { $crate::common::$name };
    (@call $module:ident $name:ident) => { $crate::common::$module::$name };
}

/// As small as it gets, with more than one warehouse and several clients a warehouse.
pub fn small() -> Config {
    Config {
        items: 200,
        customers_per_district: 30,
        ..Config::new(2, 7)
    }
}

/// Creates the tables and fills them; gives how many rows they have.
pub fn load<S: Stand>(stand: &S, config: &Config, clients: usize) -> u64 {
    create_tables(&mut stand.connect()).unwrap();
    let rows = fill(stand, config, clients);
    create_indexes(&mut stand.connect()).unwrap();
    rows
}

/// Fills tables that are empty.
pub fn fill<S: Stand>(stand: &S, config: &Config, clients: usize) -> u64 {
    let loader = Loader::new(config);
    let client = || {
        let mut connection = stand.connect();
        let mut rows = 0;
        while let Some(more) = loader.load_next(&mut connection).unwrap() {
            rows += more;
        }
        rows
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    })
}

/// The first column of each row of an answer.
pub fn ints<C: Connection>(connection: &mut C, sql: &str, values: &[Value<'_>]) -> Vec<i64> {
    let mut statement = connection.prepare(sql).unwrap();
    let mut numbers = Vec::new();
    connection
        .query(&mut statement, values, |row| {
            numbers.push(row.int()?);
            Ok(())
        })
        .unwrap();
    numbers
}

pub fn int<C: Connection>(connection: &mut C, sql: &str) -> i64 {
    let numbers = ints(connection, sql, &[]);
    assert_eq!(numbers.len(), 1, "{sql}");
    numbers[0]
}

pub fn count<C: Connection>(connection: &mut C, table: Table) -> i64 {
    int(
        connection,
        &format!("SELECT COUNT(*) FROM {}", table.name()),
    )
}

/// All rows of a table as text, in order.
pub fn dump<C: Connection>(connection: &mut C, table: Table) -> Vec<String> {
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| *name).collect();
    let sql = format!("SELECT {} FROM {}", names.join(", "), table.name());
    let mut statement = connection.prepare(&sql).unwrap();
    let mut rows = Vec::new();
    connection
        .query(&mut statement, &[], |row| {
            let mut text = String::new();
            for (_, holds) in table.columns() {
                match holds {
                    Holds::Fixed(_) | Holds::Text(_) => {
                        text.push_str(std::str::from_utf8(row.text()?).unwrap());
                    }
                    _ => write!(text, "{:?}", row.int_or_null()?).unwrap(),
                }
                text.push('\t');
            }
            rows.push(text);
            Ok(())
        })
        .unwrap();
    rows.sort_unstable();
    rows
}

pub fn dump_all<C: Connection>(connection: &mut C) -> Vec<Vec<String>> {
    Table::ALL
        .into_iter()
        .map(|table| dump(connection, table))
        .collect()
}

/// The numbers of the conditions that do not hold.
pub fn violated(checks: &[Check]) -> Vec<u32> {
    checks
        .iter()
        .filter(|check| !check.holds)
        .map(|check| {
            check
                .name
                .strip_prefix("condition ")
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

/// A SQL store whose tables are gone through as if it took no SQL.
struct Tables<'c, C>(&'c mut C);

impl<C: Connection> Scan for Tables<'_, C> {
    fn scan(
        &mut self,
        table: Table,
        each: &mut dyn FnMut(&[Value<'_>]) -> dyno_sql::Result<()>,
    ) -> dyno_sql::Result<()> {
        let names: Vec<&str> = table.columns().iter().map(|(name, _)| *name).collect();
        let sql = format!("SELECT {} FROM {}", names.join(", "), table.name());
        let mut statement = self.0.prepare(&sql)?;
        self.0.query(&mut statement, &[], |row| {
            let mut texts = Vec::new();
            let mut numbers = Vec::new();
            for (_, holds) in table.columns() {
                if matches!(holds, Holds::Fixed(_) | Holds::Text(_)) {
                    texts.push(String::from_utf8(row.text()?.to_vec()).unwrap());
                } else {
                    numbers.push(row.int_or_null()?);
                }
            }
            let (mut texts, mut numbers) = (texts.iter(), numbers.iter());
            let values: Vec<Value<'_>> = table
                .columns()
                .iter()
                .map(|(_, holds)| match holds {
                    Holds::Fixed(_) | Holds::Text(_) => Value::Text(texts.next().unwrap()),
                    _ => numbers.next().unwrap().map_or(Value::Null, Value::Int),
                })
                .collect();
            each(&values)
        })?;
        Ok(())
    }
}

/// The conditions, verified by queries; scans come to the same, word for word.
pub fn checks<C: Connection>(connection: &mut C, config: &Config, extent: Extent) -> Vec<Check> {
    let checks = check(connection, config, extent).unwrap();
    let scanned = check_scans(&mut Tables(connection), config, extent).unwrap();
    assert_eq!(scanned, checks);
    checks
}

pub fn assert_consistent<C: Connection>(connection: &mut C, config: &Config, extent: Extent) {
    let checks = checks(connection, config, extent);
    let expected = match extent {
        Extent::Demanded => 4,
        Extent::All => 11,
        Extent::Loaded => 12,
    };
    assert_eq!(checks.len(), expected);
    assert_eq!(violated(&checks), [0; 0], "{checks:#?}");
}

pub fn terminal<S: Stand>(
    stand: &S,
    config: &Config,
    client: u64,
) -> Terminal<impl Store + use<S>> {
    Terminal::new(config, client, SqlStore::prepare(stand.connect()).unwrap())
}

pub fn loading_gives_all_rows_and_a_consistent_store<S: Stand>(stand: &S) {
    let config = small();
    let rows = load(stand, &config, 3);
    let mut connection = stand.connect();
    let counts = Table::ALL.map(|table| count(&mut connection, table));
    assert_eq!(counts[..8], [200, 2, 400, 20, 600, 600, 600, 180]);
    assert_eq!(rows, counts.iter().sum::<i64>().unsigned_abs());
    assert_consistent(&mut connection, &config, Extent::Loaded);
    // The store has exactly what the generators make.
    let mut made: Vec<String> = Vec::new();
    for unit in 0..dyno_tpcc::population::units(&config) {
        dyno_tpcc::population::fill(&config, unit, |table, row| {
            if table == Table::Customer {
                made.push(row.iter().fold(String::new(), |text, value| {
                    text + &match value {
                        Value::Null => "None".to_owned(),
                        Value::Int(number) => format!("Some({number})"),
                        Value::Text(text) => (*text).to_owned(),
                    } + "\t"
                }));
            }
            Ok(())
        })
        .unwrap();
    }
    made.sort_unstable();
    assert_eq!(dump(&mut connection, Table::Customer), made);
    let orders = "SELECT COUNT(*) FROM orders WHERE o_id <= 21 AND o_carrier_id BETWEEN 1 AND 10";
    assert_eq!(int(&mut connection, orders), 420);
    assert_eq!(
        int(
            &mut connection,
            "SELECT w_ytd FROM warehouse WHERE w_id = 2"
        ),
        300_000
    );
    assert_eq!(
        int(&mut connection, "SELECT MIN(d_next_o_id) FROM district"),
        31
    );
}

/// How the transactions of one client ended.
#[derive(Default)]
struct Ended {
    orders: i64,
    payments: i64,
    deliveries: i64,
    rolled_back: u64,
    failed: u64,
}

/// Carries out so many transactions; those that fail must do so because of others.
fn work<S: Stand>(stand: &S, config: &Config, client: u64, transactions: u32) -> Ended {
    let mut terminal = terminal(stand, config, client);
    let mut ended = Ended::default();
    for _ in 0..transactions {
        let kind = terminal.prepare();
        match terminal.perform() {
            Ok(Outcome::NewOrder { total: Some(_), .. }) => ended.orders += 1,
            Ok(Outcome::Payment { .. }) => ended.payments += 1,
            Ok(Outcome::Delivery { delivered }) => {
                ended.deliveries += i64::try_from(delivered).unwrap();
            }
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Conflict, "{kind:?}: {error}");
                ended.failed += 1;
            }
        }
    }
    ended.rolled_back = terminal.tally().rolled_back;
    ended
}

/// Lets so many clients work at once, and looks at what is in the store then.
fn work_and_check<S: Stand>(stand: &S, config: &Config, clients: u64, transactions: u32) -> u64 {
    load(stand, config, 1);
    let mut connection = stand.connect();
    let before = Table::ALL.map(|table| count(&mut connection, table));
    let all: Vec<Ended> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || work(stand, config, client, transactions)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let sum = |of: fn(&Ended) -> i64| all.iter().map(of).sum::<i64>();
    let (orders, payments) = (sum(|ended| ended.orders), sum(|ended| ended.payments));
    assert!(orders > 0 && payments > 0);
    assert_consistent(&mut connection, config, Extent::All);
    let after = Table::ALL.map(|table| count(&mut connection, table));
    let grown = |table: Table| after[table as usize] - before[table as usize];
    assert_eq!(grown(Table::Orders), orders);
    assert_eq!(grown(Table::History), payments);
    assert_eq!(
        grown(Table::NewOrder),
        orders - sum(|ended| ended.deliveries)
    );
    let taken = ints(&mut connection, "SELECT s_order_cnt FROM stock", &[]);
    assert_eq!(grown(Table::OrderLine), taken.iter().sum::<i64>());
    if config.mix == Mix::Standard {
        assert!(sum(|ended| ended.deliveries) > 0);
    } else {
        assert_eq!(all.iter().map(|ended| ended.rolled_back).sum::<u64>(), 0);
        assert_eq!(grown(Table::OrderLine), 10 * orders);
    }
    all.iter().map(|ended| ended.failed).sum()
}

pub fn transactions_of_one_client_keep_the_store_consistent<S: Stand>(stand: &S) {
    let failed = work_and_check(stand, &small(), 1, 1_000);
    assert_eq!(
        failed, 0,
        "a client alone has nobody to be in conflict with"
    );
}

pub fn transactions_of_several_clients_keep_the_store_consistent<S: Stand>(stand: &S) {
    // All on one warehouse, where they meet all the time.
    let config = Config {
        warehouses: 1,
        ..small()
    };
    let failed = work_and_check(stand, &config, 4, 300);
    // Deadlocks are rare, since rows are locked in one order.
    assert!(failed < 60, "{failed} of 1,200 transactions were given up");
}

pub fn the_looking_glass_mix_succeeds_and_keeps_the_store_consistent<S: Stand>(stand: &S) {
    let config = Config {
        mix: Mix::LookingGlass,
        ..small()
    };
    assert!(work_and_check(stand, &config, 4, 100) < 20);
}

pub fn deliveries_at_the_same_time_never_deliver_an_order_twice<S: Stand>(stand: &S) {
    let config = Config {
        warehouses: 1,
        ..small()
    };
    load(stand, &config, 1);
    let deliver = |client| {
        let mut terminal = terminal(stand, &config, client);
        let mut delivered = 0;
        for _ in 0..10 {
            terminal.prepare_kind(Kind::Delivery);
            match terminal.perform() {
                Ok(Outcome::Delivery { delivered: now }) => delivered += now,
                Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error}"),
                other => panic!("{other:?}"),
            }
        }
        delivered
    };
    let delivered: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| scope.spawn(move || deliver(client)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    let mut connection = stand.connect();
    let waiting = usize::try_from(count(&mut connection, Table::NewOrder)).unwrap();
    assert_eq!(delivered + waiting, 90);
    assert!(delivered > 0);
    assert_consistent(&mut connection, &config, Extent::All);
}

pub fn a_store_works_on_after_its_connection_was_made_anew<S: Stand>(stand: &S) {
    let config = small();
    load(stand, &config, 1);
    let mut terminal = Terminal::new(&config, 0, SqlStore::prepare(stand.connect()).unwrap());
    terminal.store().begin(Kind::Payment).unwrap();
    terminal.store().add_to_warehouse(1, 100).unwrap();
    terminal.store().reconnect().unwrap();
    for kind in Kind::ALL {
        terminal.prepare_kind(kind);
        terminal.perform().unwrap();
    }
    assert_consistent(&mut stand.connect(), &config, Extent::All);
}
