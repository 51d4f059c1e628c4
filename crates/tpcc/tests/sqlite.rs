//! TPC-C on `SQLite`.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{Stand, assert_consistent, checks, dump_all, load, small};
use dyno_sql::sqlite::Session;
use dyno_tpcc::{Extent, Kind};

/// A database file of its own, removed in the end.
struct File(PathBuf);

impl File {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dyno-tpcc-{}-{number}.db", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            let _ = std::fs::remove_file(name);
        }
    }
}

impl Stand for File {
    type Connection = Session<'static>;

    fn connect(&self) -> Session<'static> {
        let database = rusqlite::Connection::open(&self.0).unwrap();
        database
            .execute_batch(
                "PRAGMA busy_timeout = 20000; PRAGMA journal_mode = wal; PRAGMA synchronous = off",
            )
            .unwrap();
        database.busy_timeout(Duration::from_secs(20)).unwrap();
        // A session borrows its database, and a test keeps both until it ends.
        Session::new(Box::leak(Box::new(database)))
    }
}

suite!(File::new());

#[test]
fn the_data_are_the_same_whatever_the_number_of_clients() {
    let config = small();
    let dumps = [1, 4].map(|clients| {
        let file = File::new();
        load(&file, &config, clients);
        dump_all(&mut file.connect())
    });
    assert!(dumps[0] == dumps[1]);
}

#[test]
fn condition_eleven_holds_until_the_first_delivery() {
    let (file, config) = (File::new(), small());
    load(&file, &config, 1);
    assert_consistent(&mut file.connect(), &config, Extent::Loaded);
    let mut terminal = common::terminal(&file, &config, 0);
    terminal.prepare_kind(Kind::Delivery);
    terminal.perform().unwrap();
    let checks = checks(&mut file.connect(), &config, Extent::Loaded);
    assert_eq!(common::violated(&checks), [11]);
}

#[test]
fn no_statement_of_a_transaction_reads_a_whole_table() {
    let (file, config) = (File::new(), small());
    load(&file, &config, 1);
    let connection = file.connect();
    let mut store = dyno_tpcc::SqlStore::prepare(connection).unwrap();
    let database = store.connection().database();
    let mut steps = Vec::new();
    for sql in dyno_tpcc::sql_texts(dyno_sql::Dialect::Sqlite) {
        let mut explain = database
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let mut plan = explain.raw_query();
        while let Some(row) = plan.next().unwrap() {
            let step: String = row.get(3).unwrap();
            assert!(!step.starts_with("SCAN"), "{sql}: {step}");
            assert!(!step.contains("TEMP B-TREE FOR ORDER"), "{sql}: {step}");
            steps.push(step);
        }
    }
    assert!(steps.len() > 30, "{steps:?}");
    for index in [
        "customer_name (c_w_id=? AND c_d_id=? AND c_last=?)",
        "orders_customer (o_w_id=? AND o_d_id=? AND o_c_id=?)",
        "PRIMARY KEY (ol_w_id=? AND ol_d_id=? AND ol_o_id>? AND ol_o_id<?)",
    ] {
        let uses = steps.iter().any(|step| step.ends_with(index));
        assert!(uses, "{index}: {steps:#?}");
    }
}
