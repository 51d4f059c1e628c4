//! Statements and what they give.

use dyno_sql::{Connection, Error, ErrorKind, Mysql, Row, Value};

use crate::support::{Database, int, ints, text};

const TEXT: Value<'_> = Value::Text("a");

#[test]
fn an_update_counts_the_rows_it_met_whether_or_not_they_changed() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql
        .run("CREATE TABLE t(k INT PRIMARY KEY, v TEXT)")
        .unwrap();
    let mut insert = mysql.prepare("INSERT INTO t VALUES(?, ?)").unwrap();
    for key in 0..3 {
        let values = [Value::Int(key), TEXT];
        assert_eq!(mysql.execute(&mut insert, &values), Ok(1));
    }
    let mut update = mysql.prepare("UPDATE t SET v = ? WHERE k < ?").unwrap();
    assert_eq!(mysql.execute(&mut update, &[TEXT, Value::Int(2)]), Ok(2));
    assert_eq!(mysql.execute(&mut update, &[TEXT, Value::Int(0)]), Ok(0));
    let mut delete = mysql.prepare("DELETE FROM t").unwrap();
    assert_eq!(mysql.execute(&mut delete, &[]), Ok(3));
}

#[test]
fn a_key_that_is_there_already_is_a_duplicate() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql
        .run("CREATE TABLE t(k VARCHAR(9) PRIMARY KEY); INSERT INTO t VALUES('a')")
        .unwrap();
    let mut insert = mysql.prepare("INSERT INTO t VALUES(?)").unwrap();
    let error = mysql.execute(&mut insert, &[TEXT]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateKey);
    assert_eq!(
        error.message,
        "the server says: Duplicate entry 'a' for key 'PRIMARY' (1062, SQLSTATE 23000); \
         it was at: INSERT INTO t VALUES(?)"
    );
    assert_eq!(mysql.execute(&mut insert, &[Value::Text("b")]), Ok(1));
}

#[test]
fn what_the_server_does_not_know_is_refused_and_the_connection_stays() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    let cases = [
        ("SELECT * FROM nothing", "(1146"),
        ("SELEC 1", "(1064"),
        ("SELECT nothing FROM mysql.user", "(1054"),
    ];
    for (sql, code) in cases {
        for error in [
            mysql.prepare(sql).map(|_| ()).unwrap_err(),
            mysql.run(sql).unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Refused);
            assert!(error.message.contains(code), "{error}");
            assert!(error.message.ends_with(sql), "{error}");
        }
    }
    let mut statement = mysql.prepare("SELECT ?").unwrap();
    let error = mysql.execute(&mut statement, &[]).unwrap_err();
    assert!(error.message.contains("has 1 parameters, and 0"), "{error}");
    let error = mysql.execute(&mut statement, &[TEXT]).unwrap_err();
    assert!(error.message.contains("gives rows"), "{error}");
    assert_eq!(int(mysql, "SELECT 5"), 5);
}

#[test]
fn what_the_account_or_the_server_may_not_do_is_told_apart() {
    let mut database = Database::new();
    let root = &mut database.mysql;
    root.run(
        "CREATE TABLE t(k INT);
         CREATE TABLE m(k INT, v CHAR(200)) ENGINE=MEMORY MAX_ROWS=1;
         CREATE USER bob@localhost",
    )
    .unwrap();
    let mut bob = database.server.clone();
    bob.user = "bob".into();
    let error = Mysql::connect(&bob).unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied, "{error}");
    assert!(error.message.contains("(1044"), "{error}");
    bob.database = String::new();
    let mut bob = Mysql::connect(&bob).unwrap();
    let sql = format!("SELECT k FROM {}.t", database.server.database);
    let error = bob.prepare(&sql).map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("(1142"), "{error}");
    let error = bob.run("SET GLOBAL max_connections = 7").unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("(1227"), "{error}");
    root.run("DROP USER bob@localhost").unwrap();

    root.run("START TRANSACTION READ ONLY").unwrap();
    let error = root.run("INSERT INTO t VALUES(1)").unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error}");
    root.run("ROLLBACK; SET max_heap_table_size = 16384; ALTER TABLE m ENGINE=MEMORY")
        .unwrap();
    let mut fill = root.prepare("INSERT INTO m VALUES(?, '')").unwrap();
    let error = (0..10_000)
        .find_map(|k| root.execute(&mut fill, &[Value::Int(k)]).err())
        .unwrap();
    assert_eq!(error.kind, ErrorKind::DiskFull);
    assert!(error.message.contains("(1114"), "{error}");
}

#[test]
fn values_go_there_and_back() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql
        .run("CREATE TABLE t(a BIGINT, b LONGTEXT CHARACTER SET utf8mb4)")
        .unwrap();
    let long = "x".repeat(70_000);
    let texts = ["", "a", "größer 🐬", &long[..250], &long[..251], &long];
    let mut rows = Vec::new();
    for (at, text) in texts.into_iter().enumerate() {
        let number = [0, -1, i64::MIN, i64::MAX, 127, -129][at];
        rows.push([Value::Int(number), Value::Text(text)]);
    }
    rows.push([Value::Null, Value::Text("")]);
    rows.push([Value::Int(1), Value::Null]);
    rows.push([Value::Null, Value::Null]);
    let mut insert = mysql.prepare("INSERT INTO t VALUES(?, ?)").unwrap();
    let mut select = mysql
        .prepare("SELECT a, b IS NULL, COALESCE(b, 'none'), a FROM t")
        .unwrap();
    for row in rows {
        mysql.run("DELETE FROM t").unwrap();
        mysql.execute(&mut insert, &row).unwrap();
        let seen = mysql.query(&mut select, &[], |found| {
            let a = found.int_or_null()?;
            assert_eq!(a.map_or(Value::Null, Value::Int), row[0]);
            let null = found.int()? == 1;
            let b = found.text()?;
            match row[1] {
                Value::Text(text) => assert_eq!(b, text.as_bytes()),
                _ => assert!(null && b == b"none"),
            }
            assert_eq!(found.int_or_null()?, a);
            Ok(())
        });
        assert_eq!(seen, Ok(1));
    }
}

/// Every type of column, what to put there, and what it is read as; `Err` says as what it is not.
const TYPES: [(&str, &str, Result<i64, &str>); 34] = [
    ("TINYINT", "-128", Ok(-128)),
    ("TINYINT UNSIGNED", "255", Ok(255)),
    ("SMALLINT", "-32768", Ok(-32768)),
    ("SMALLINT UNSIGNED", "65535", Ok(65535)),
    ("MEDIUMINT", "-8388608", Ok(-8_388_608)),
    ("MEDIUMINT UNSIGNED", "16777215", Ok(16_777_215)),
    ("INT", "-2147483648", Ok(-2_147_483_648)),
    ("INT UNSIGNED", "4294967295", Ok(4_294_967_295)),
    ("BIGINT", "-9223372036854775808", Ok(i64::MIN)),
    ("BIGINT UNSIGNED", "9223372036854775807", Ok(i64::MAX)),
    (
        "BIGINT UNSIGNED",
        "9223372036854775808",
        Err("beyond 64 bits"),
    ),
    ("YEAR", "2024", Ok(2024)),
    ("DECIMAL(20)", "-12345678901234", Ok(-12_345_678_901_234)),
    ("DECIMAL(20,2)", "17.00", Ok(17)),
    ("DECIMAL(20,2)", "17.01", Err("with a fraction")),
    ("FLOAT", "1", Err("a floating-point number")),
    ("DOUBLE", "1", Err("a floating-point number")),
    ("DATE", "'2024-01-02'", Err("a date or time")),
    (
        "DATETIME(6)",
        "'2024-01-02 03:04:05.678901'",
        Err("a date or time"),
    ),
    ("TIMESTAMP", "'2024-01-02 03:04:05'", Err("a date or time")),
    ("TIME", "'-838:59:59'", Err("a date or time")),
    ("TIME", "'00:00:00'", Err("a date or time")),
    ("CHAR(3)", "'abc'", Err("text")),
    ("VARCHAR(300)", "'abc'", Err("text")),
    ("TINYTEXT", "'abc'", Err("text")),
    ("TEXT", "'abc'", Err("text")),
    ("MEDIUMTEXT", "'abc'", Err("text")),
    ("LONGTEXT", "'abc'", Err("text")),
    ("VARBINARY(3)", "'abc'", Err("text")),
    ("LONGBLOB", "'abc'", Err("text")),
    ("ENUM('abc')", "'abc'", Err("text")),
    ("SET('abc')", "'abc'", Err("text")),
    ("JSON", "'true'", Err("text")),
    ("BIT(24)", "0x616263", Err("text")),
];

#[test]
fn columns_of_every_type_are_read_as_what_they_are() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    let columns: Vec<String> = (0..TYPES.len())
        .map(|at| format!("c{at} {}", TYPES[at].0))
        .collect();
    let values: Vec<&str> = TYPES.iter().map(|(_, value, _)| *value).collect();
    mysql
        .run(&format!(
            "CREATE TABLE t({}); INSERT INTO t VALUES({})",
            columns.join(","),
            values.join(",")
        ))
        .unwrap();
    let mut select = mysql.prepare("SELECT * FROM t").unwrap();
    let wrong = |error: Error, what: &str| {
        assert_eq!(error.kind, ErrorKind::WrongValue);
        assert!(error.message.contains(what), "{error}");
    };
    // As whole numbers, all of them: one that is none is passed over.
    let seen = mysql.query(&mut select, &[], |row| {
        for (of, _, expected) in TYPES {
            match (row.int(), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{of}"),
                (Err(error), Err(what)) => wrong(error, what),
                (found, _) => panic!("{of}: {found:?}"),
            }
        }
        wrong(row.int().unwrap_err(), "only 34 columns");
        Ok(())
    });
    assert_eq!(seen, Ok(1));
    // As text, all of them.
    let seen = mysql.query(&mut select, &[], |row| {
        for (of, value, _) in TYPES {
            let found = row.text().map(<[u8]>::to_vec);
            if of.starts_with("DECIMAL") {
                assert_eq!(found.unwrap(), value.as_bytes());
            } else if value.contains("abc") || value == "0x616263" {
                assert_eq!(found.unwrap(), b"abc", "{of}");
            } else if of == "JSON" {
                assert_eq!(found.unwrap(), b"true");
            } else {
                wrong(found.unwrap_err(), "not text");
            }
        }
        Ok(())
    });
    assert_eq!(seen, Ok(1));
}

#[test]
fn null_is_no_number_and_no_text() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    let mut select = mysql.prepare("SELECT NULL, NULL, 4, NULL").unwrap();
    let seen = mysql.query(&mut select, &[], |row| {
        assert_eq!(row.int().unwrap_err().kind, ErrorKind::WrongValue);
        assert_eq!(row.text().unwrap_err().kind, ErrorKind::WrongValue);
        assert_eq!(row.int(), Ok(4));
        assert_eq!(row.int_or_null(), Ok(None));
        Ok(())
    });
    assert_eq!(seen, Ok(1));
}

#[test]
fn a_thousand_rows_are_read_and_an_error_within_leaves_the_connection_in_step() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql.run("CREATE TABLE t(k INT, v TEXT)").unwrap();
    let texts: Vec<String> = (0..1000).map(|k| format!("{k}").repeat(k % 600)).collect();
    let values: Vec<Value<'_>> = (0..1000)
        .flat_map(|k| {
            [
                Value::Int(k),
                Value::Text(&texts[usize::try_from(k).unwrap()]),
            ]
        })
        .collect();
    mysql.insert_rows("t", &["k", "v"], &values).unwrap();
    let mut select = mysql
        .prepare("SELECT k, v FROM t WHERE k >= ? ORDER BY k")
        .unwrap();
    let mut next = 0;
    let seen = mysql.query(&mut select, &[Value::Int(0)], |row| {
        assert_eq!(row.int()?, next);
        assert_eq!(
            row.text()?,
            texts[usize::try_from(next).unwrap()].as_bytes()
        );
        next += 1;
        Ok(())
    });
    assert_eq!(seen, Ok(1000));
    let mut looked = 0;
    let error = mysql.query(&mut select, &[Value::Int(0)], |_| {
        looked += 1;
        match looked {
            300 => Err(Error::new(ErrorKind::WrongValue, "enough")),
            _ => Ok(()),
        }
    });
    assert_eq!(error, Err(Error::new(ErrorKind::WrongValue, "enough")));
    assert_eq!(looked, 300);
    assert_eq!(
        mysql.query(&mut select, &[Value::Int(990)], |_| Ok(())),
        Ok(10)
    );
}

#[test]
fn a_table_that_was_altered_is_read_as_it_is_now() {
    let database = Database::new();
    altered(database.another(), database.another());
}

/// Also for `MySQL`, which describes the columns each time.
pub fn altered(mut mysql: Mysql, mut other: Mysql) {
    mysql
        .run("CREATE TABLE t(k INT PRIMARY KEY, v TINYINT); INSERT INTO t VALUES(1, 2)")
        .unwrap();
    let mut all = mysql.prepare("SELECT * FROM t WHERE k = ?").unwrap();
    let key = [Value::Int(1)];
    for _ in 0..3 {
        let seen = mysql.query(&mut all, &key, |row| {
            assert_eq!((row.int()?, row.int()?), (1, 2));
            Ok(())
        });
        assert_eq!(seen, Ok(1));
    }
    other
        .run("ALTER TABLE t MODIFY v BIGINT, ADD w TEXT; UPDATE t SET w = 'wide', v = 1000000")
        .unwrap();
    for _ in 0..3 {
        let seen = mysql.query(&mut all, &key, |row| {
            assert_eq!((row.int()?, row.int()?), (1, 1_000_000));
            assert_eq!(row.text()?, b"wide");
            assert!(row.int().is_err());
            Ok(())
        });
        assert_eq!(seen, Ok(1));
    }
    other
        .run("ALTER TABLE t DROP v, MODIFY w VARCHAR(9)")
        .unwrap();
    let seen = mysql.query(&mut all, &key, |row| {
        assert_eq!(row.int()?, 1);
        assert_eq!(row.text()?, b"wide");
        Ok(())
    });
    assert_eq!(seen, Ok(1));
    other.run("DROP TABLE t").unwrap();
    let error = mysql.query(&mut all, &key, |_| Ok(())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert_eq!(int(&mut mysql, "SELECT 1"), 1);
}

#[test]
fn many_operations_go_out_together_and_come_back_in_order() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    pipelined(mysql);
}

/// Also for `MySQL`.
pub fn pipelined(mysql: &mut Mysql) {
    mysql
        .run("CREATE TABLE t(k INT PRIMARY KEY, v LONGTEXT)")
        .unwrap();
    // Values far larger than what goes out together stand among small ones.
    let large = "y".repeat(300_000);
    let text = |k: i64| match k {
        k if k % 97 == 5 => large.as_str(),
        k => &large[..usize::try_from(k % 50).unwrap()],
    };
    let sets: Vec<Value<'_>> = (0..1000)
        .flat_map(|k| [Value::Int(k), Value::Text(text(k))])
        .collect();
    let mut insert = mysql.prepare("INSERT INTO t VALUES(?, ?)").unwrap();
    assert_eq!(mysql.execute_each(&mut insert, &sets, 2), Ok(1000));
    assert_eq!(mysql.execute_each(&mut insert, &[], 2), Ok(0));

    // Answers of some 3 MB to requests that go out at once: nobody waits for the other for ever.
    let mut select = mysql
        .prepare("SELECT k, v FROM t WHERE k IN (?, 5) ORDER BY k DESC")
        .unwrap();
    let keys: Vec<Value<'_>> = (10..400).map(Value::Int).collect();
    let mut next = 0;
    let rows = mysql.query_each(&mut select, &keys, 1, |number, row| {
        let key = i64::try_from(number).unwrap() + 10;
        let expected = if next % 2 == 0 { key } else { 5 };
        assert_eq!(row.int()?, expected);
        assert_eq!(row.text()?, text(expected).as_bytes());
        next += 1;
        Ok(())
    });
    assert_eq!(rows, Ok(780));

    // A row that is there already, in the middle: the first error is given, and the connection is in step.
    let again: Vec<Value<'_>> = [1001, 7, 1002, 8, 1003]
        .into_iter()
        .flat_map(|k| [Value::Int(k), Value::Text("")])
        .collect();
    let error = mysql.execute_each(&mut insert, &again, 2).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateKey);
    assert!(error.message.contains("'7'"), "{error}");
    let mut told = Vec::new();
    let enough = Error::new(ErrorKind::WrongValue, "enough");
    let failed = mysql.query_each(&mut select, &keys, 1, |number, _| {
        told.push(number);
        match told.len() {
            5 => Err(enough.clone()),
            _ => Ok(()),
        }
    });
    assert_eq!(failed, Err(enough));
    assert_eq!(told, [0, 0, 1, 1, 2]);
    assert_eq!(int(mysql, "SELECT COUNT(*) FROM t WHERE k <= 1000"), 1000);
    let error = mysql
        .query_each(&mut select, &keys, 2, |_, _| Ok(()))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
}

#[test]
fn statements_separated_by_semicolons_are_run_to_the_first_error() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql
        .run("CREATE TABLE t(k INT); SELECT * FROM t; INSERT INTO t VALUES(1),(2); SELECT *, '', NULL FROM t; SELECT 1;")
        .unwrap();
    let error = mysql
        .run("INSERT INTO t VALUES(3); SELECT * FROM nothing; INSERT INTO t VALUES(4)")
        .unwrap_err();
    assert!(error.message.contains("(1146"), "{error}");
    assert_eq!(
        ints(mysql, "SELECT k FROM t ORDER BY k", &[]),
        Ok(vec![1, 2, 3])
    );
}

#[test]
fn answers_of_procedures_are_read_to_their_end() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    mysql
        .run("CREATE PROCEDURE p(n INT) BEGIN SELECT n; SELECT n + 1, 'a'; SELECT n + 2 FROM DUAL WHERE n > 5; END")
        .unwrap();
    for _ in 0..2 {
        assert_eq!(
            ints(mysql, "CALL p(?)", &[Value::Int(7)]),
            Ok(vec![7, 8, 9])
        );
        assert_eq!(ints(mysql, "CALL p(?)", &[Value::Int(1)]), Ok(vec![1, 2]));
    }
    assert_eq!(int(mysql, "SELECT 3"), 3);
}

#[test]
fn statements_that_nobody_holds_are_closed() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    let status = "SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM information_schema.SESSION_STATUS \
                  WHERE VARIABLE_NAME = 'COM_STMT_CLOSE'";
    let before = int(mysql, status);
    for _ in 0..20 {
        mysql.prepare("SELECT 1").unwrap();
    }
    let closed = int(mysql, status) - before;
    assert!((20..=21).contains(&closed), "{closed}");
}

#[test]
fn two_that_wait_for_each_other_are_a_conflict_and_one_that_waits_too_long_is_busy() {
    let database = Database::new();
    let mut first = database.another();
    let mut second = database.another();
    first
        .run(
            "CREATE TABLE t(k INT PRIMARY KEY, v INT); INSERT INTO t VALUES(1, 0), (2, 0);
             BEGIN; UPDATE t SET v = 1 WHERE k = 1",
        )
        .unwrap();
    second
        .run("BEGIN; UPDATE t SET v = 2 WHERE k = 2; SET innodb_lock_wait_timeout = 1")
        .unwrap();
    let mut update = second.prepare("UPDATE t SET v = 2 WHERE k = ?").unwrap();
    let error = second.execute(&mut update, &[Value::Int(1)]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
    assert!(error.message.contains("(1205"), "{error}");

    let waiter = std::thread::spawn(move || {
        let waited = first.run("UPDATE t SET v = 1 WHERE k = 2");
        (first, waited)
    });
    // The server finds a deadlock and rolls one of the two back, whichever comes first.
    second.run("SET innodb_lock_wait_timeout = 30").unwrap();
    let found = second.execute(&mut update, &[Value::Int(1)]);
    if found.is_ok() {
        second.run("COMMIT").unwrap();
    }
    let (_, waited) = waiter.join().unwrap();
    let error = found.err().or(waited.err()).unwrap();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("(1213"), "{error}");
}

#[test]
fn a_row_that_changed_since_the_snapshot_is_a_conflict() {
    let database = Database::new();
    let mut first = database.another();
    let mut second = database.another();
    first
        .run(
            "CREATE TABLE t(k INT PRIMARY KEY, v INT); INSERT INTO t VALUES(1, 0);
             SET innodb_snapshot_isolation = ON;
             START TRANSACTION WITH CONSISTENT SNAPSHOT",
        )
        .unwrap();
    second.run("UPDATE t SET v = 5").unwrap();
    let error = first.run("UPDATE t SET v = 6").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("(1020"), "{error}");
}

#[test]
fn text_is_kept_by_its_bytes() {
    let mut database = Database::new();
    let mysql = &mut database.mysql;
    assert_eq!(text(mysql, "SELECT 'it''s'"), "it's");
}
