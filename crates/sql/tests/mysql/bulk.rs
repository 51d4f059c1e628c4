//! Many rows at once.

use dyno_servers::Mariadb;
use dyno_sql::{Connection, ErrorKind, Mysql, Value};

use crate::support::{Database, int, unix, with_database};

/// Rows `from..to` of a key and ten fields.
fn rows(from: i64, to: i64, text: &str) -> Vec<Value<'_>> {
    (from..to)
        .flat_map(|key| std::iter::once(Value::Int(key)).chain([Value::Text(text); 10]))
        .collect()
}

const COLUMNS: [&str; 11] = [
    "key", "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9",
];

/// `key` is a word of SQL, and one name has a quote in it.
const TABLE: &str = "CREATE TABLE `use``r`(`key` INT PRIMARY KEY, f0 TEXT, f1 TEXT, f2 TEXT, f3 TEXT, \
                     f4 TEXT, f5 TEXT, f6 TEXT, f7 TEXT, f8 TEXT, f9 TEXT)";

fn count(mysql: &mut Mysql) -> i64 {
    int(mysql, "SELECT COUNT(*) FROM `use``r` WHERE f9 IS NOT NULL")
}

#[test]
fn any_number_of_rows_is_added() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql.run(TABLE).unwrap();
    let mut key = 0;
    for number in [0, 1, 255, 256, 257, 1000, 1000] {
        let values = rows(key, key + number, "abc");
        mysql.insert_rows("use`r", &COLUMNS, &values).unwrap();
        key += number;
        assert_eq!(count(mysql), key);
    }
    assert_eq!(
        int(mysql, "SELECT SUM(`key`) FROM `use``r`"),
        key * (key - 1) / 2
    );
}

#[test]
fn all_rows_are_added_or_none() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql.run(TABLE).unwrap();
    mysql
        .insert_rows("use`r", &COLUMNS, &rows(900, 901, ""))
        .unwrap();
    for last in [950, 901] {
        let error = mysql
            .insert_rows("use`r", &COLUMNS, &rows(last - 800, last, ""))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateKey, "{error}");
        assert_eq!(count(mysql), 1);
    }
    // No transaction is left open by it.
    mysql
        .insert_rows("use`r", &COLUMNS, &rows(0, 800, ""))
        .unwrap();
    mysql.run("ROLLBACK").unwrap();
    assert_eq!(count(mysql), 801);
}

#[test]
fn within_a_transaction_it_is_the_callers_to_end() {
    let database = Database::new();
    let mut mysql = database.another();
    let mut other = database.another();
    mysql.run(TABLE).unwrap();
    for begin in ["BEGIN", "SET autocommit = 0"] {
        mysql.run(begin).unwrap();
        mysql
            .insert_rows("use`r", &COLUMNS, &rows(0, 600, ""))
            .unwrap();
        assert_eq!(count(&mut other), 0);
        mysql.run("ROLLBACK").unwrap();
        assert_eq!(count(&mut mysql), 0);
        mysql.run("ROLLBACK").unwrap();
    }
}

#[test]
fn rows_that_are_none_are_refused() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql.run(TABLE).unwrap();
    for (columns, values) in [(&COLUMNS[..2], 3), (&COLUMNS[..0], 1)] {
        let values = vec![Value::Int(1); values];
        let error = mysql.insert_rows("use`r", columns, &values).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
    }
    let error = mysql
        .insert_rows("nothing", &COLUMNS, &rows(0, 2, ""))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("(1146"), "{error}");
    assert!(error.message.ends_with("adding rows to nothing"), "{error}");
}

#[test]
fn wide_rows_go_in_fewer_at_a_time() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    let names: Vec<String> = (0..400).map(|at| format!("c{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns: Vec<String> = names.iter().map(|name| format!("{name} INT")).collect();
    mysql
        .run(&format!("CREATE TABLE t({})", columns.join(",")))
        .unwrap();
    // Together more parameters than a statement can have.
    let values: Vec<Value<'_>> = (0..400 * 200).map(Value::Int).collect();
    mysql.insert_rows("t", &names, &values).unwrap();
    assert_eq!(int(mysql, "SELECT COUNT(*) FROM t"), 200);
    assert_eq!(int(mysql, "SELECT MAX(c399) FROM t"), 400 * 200 - 1);
}

#[test]
fn no_insert_is_larger_than_the_server_takes() {
    let mariadb = Mariadb::start_with(&["--max-allowed-packet=1M"]);
    let mut mysql = Mysql::connect(&with_database(unix(mariadb.socket()))).unwrap();
    mysql.run(TABLE).unwrap();
    let text = "x".repeat(10_000);
    mysql
        .insert_rows("use`r", &COLUMNS, &rows(0, 100, &text))
        .unwrap();
    assert_eq!(count(&mut mysql), 100);
    let text = "x".repeat(110_000);
    let error = mysql
        .insert_rows("use`r", &COLUMNS, &rows(100, 101, &text))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(
        error.message.contains("max_allowed_packet is 1048576"),
        "{error}"
    );
    assert_eq!(count(&mut mysql), 100);
}
