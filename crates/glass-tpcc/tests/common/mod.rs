//! A store is held against `SQLite`: the same transactions must come to the same there.

// Test binaries are separate programs, and none uses everything.
#![allow(dead_code, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use dyno_sql::sqlite::Session;
use dyno_sql::{Connection, Row, Value};
use dyno_tpcc::population::{Holds, Table};
use dyno_tpcc::{
    Config, Extent, Inputs, Loader, Rows, Scan, SqlStore, Store, check_scans, create_indexes,
    create_tables, perform,
};

/// As small as it gets, with more than one warehouse.
pub fn small() -> Config {
    Config {
        items: 200,
        customers_per_district: 30,
        ..Config::new(2, 7)
    }
}

/// `SQLite` in memory, filled.
pub fn sqlite(config: &Config) -> Session<'static> {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    // A session borrows its database, and a test keeps both until it ends.
    let mut session = Session::new(Box::leak(Box::new(database)));
    create_tables(&mut session).unwrap();
    let loader = Loader::new(config);
    while loader.load_next(&mut session).unwrap().is_some() {}
    create_indexes(&mut session).unwrap();
    session
}

/// All rows of a table as text, in order.
pub fn rows(store: &mut impl Scan, table: Table) -> Vec<String> {
    let mut rows = Vec::new();
    store
        .scan(table, &mut |row| {
            rows.push(format!("{row:?}"));
            Ok(())
        })
        .unwrap();
    rows.sort_unstable();
    rows
}

/// The same of `SQLite`.
fn rows_of_sqlite(session: &mut Session<'_>, table: Table) -> Vec<String> {
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| *name).collect();
    let sql = format!("SELECT {} FROM {}", names.join(", "), table.name());
    let mut statement = session.prepare(&sql).unwrap();
    let mut rows = Vec::new();
    session
        .query(&mut statement, &[], |row| {
            let values: Vec<String> = table
                .columns()
                .iter()
                .map(|(_, holds)| match holds {
                    Holds::Fixed(_) | Holds::Text(_) => {
                        format!(
                            "{:?}",
                            Value::Text(std::str::from_utf8(row.text().unwrap()).unwrap())
                        )
                    }
                    _ => format!(
                        "{:?}",
                        row.int_or_null().unwrap().map_or(Value::Null, Value::Int)
                    ),
                })
                .collect();
            rows.push(format!("[{}]", values.join(", ")));
            Ok(())
        })
        .unwrap();
    rows.sort_unstable();
    rows
}

/// Has a store and `SQLite` carry out the same transactions, of two clients in turn. Each comes to the same, and all rows
/// are the same in the end. `scan` is the store again, with all its tables.
pub fn assert_same_as_sqlite<S: Store>(
    config: &Config,
    transactions: u32,
    store: &mut S,
) -> Session<'static> {
    let session = sqlite(config);
    let mut sqlite = SqlStore::prepare(session).unwrap();
    let mut inputs = [0, 1].map(|client| Inputs::new(config, client));
    let (mut own, mut theirs) = (Rows::default(), Rows::default());
    let mut rolled_back = 0;
    for number in 0..transactions {
        let input = inputs[number as usize % 2].draw();
        let now = i64::from(number);
        let expected = perform(&mut sqlite, &input, now, &mut theirs).unwrap();
        let outcome = perform(store, &input, now, &mut own)
            .unwrap_or_else(|error| panic!("{input:?}: {error}"));
        assert_eq!(outcome, expected, "{input:?}");
        rolled_back += u32::from(matches!(
            outcome,
            dyno_tpcc::Outcome::NewOrder { total: None, .. }
        ));
        assert_eq!(own.payer(), theirs.payer());
        assert_eq!(own.brands(), theirs.brands());
        assert_eq!(own.delivered(), theirs.delivered());
        let [mut own, mut theirs] = [own.lines(), theirs.lines()].map(<[_]>::to_vec);
        own.sort_unstable_by_key(|line| (line.item, line.amount));
        theirs.sort_unstable_by_key(|line| (line.item, line.amount));
        assert_eq!(own, theirs);
    }
    assert_eq!(rolled_back > 0, config.rolls_back());
    sqlite.into_connection()
}

/// Every table has the same rows, and the conditions hold.
pub fn assert_same_rows(config: &Config, store: &mut impl Scan, sqlite: &mut Session<'_>) {
    for table in Table::ALL {
        assert_eq!(
            rows(store, table),
            rows_of_sqlite(sqlite, table),
            "{table:?}"
        );
    }
    let checks = check_scans(store, config, Extent::All).unwrap();
    assert_eq!(checks.len(), 11);
    assert!(checks.iter().all(|check| check.holds), "{checks:#?}");
}
