//! What operations give, and that the connection stays in step whatever they meet.

use super::support::*;

/// A table of ids from 1 to 3.
fn three(connection: &mut Postgres) -> String {
    let table = table(connection, "id bigint PRIMARY KEY, v text");
    connection
        .run(&format!(
            "INSERT INTO {table} SELECT n, 'old' FROM generate_series(1, 3) n"
        ))
        .unwrap();
    table
}

#[test]
fn execute_gives_how_many_rows_it_met() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = three(&mut connection);
        let mut update = connection
            .prepare(&format!("UPDATE {table} SET v = ? WHERE id >= ?"))
            .unwrap();
        for (least, met) in [(1, 3), (3, 1), (4, 0)] {
            // The second time nothing changes, and the rows are met all the same.
            for _ in 0..2 {
                let values = [Value::Text("new"), Value::Int(least)];
                assert_eq!(connection.execute(&mut update, &values), Ok(met));
            }
        }
    }
}

#[test]
fn query_gives_how_many_rows_there_were() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = three(&mut connection);
    let mut select = connection
        .prepare(&format!(
            "SELECT v, id FROM {table} WHERE id > ? ORDER BY id"
        ))
        .unwrap();
    for least in 0..4 {
        let mut ids = Vec::new();
        let rows = connection.query(&mut select, &[Value::Int(least)], |row| {
            assert_eq!(row.text(), Ok(&b"old"[..]));
            ids.push(row.int()?);
            Ok(())
        });
        assert_eq!(ids, (least + 1..=3).collect::<Vec<_>>());
        assert_eq!(rows, Ok(ids.len() as u64));
    }
}

#[test]
fn an_error_of_each_is_given_back_after_the_answer() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut select = connection
            .prepare("SELECT n, repeat('x', 5000) FROM generate_series(1, 500) n")
            .unwrap();
        let mut shown = 0;
        let wrong = Error::new(ErrorKind::MissingKey, "no such row");
        let result = connection.query(&mut select, &[], |row| {
            shown += 1;
            if row.int()? < 10 {
                Ok(())
            } else {
                Err(wrong.clone())
            }
        });
        assert_eq!((result, shown), (Err(wrong), 10));
        assert!(in_step(&mut connection));
    }
}

#[test]
fn an_error_of_each_that_breaks_the_connection_does() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let mut select = connection.prepare("SELECT 1").unwrap();
    let result = connection.query(&mut select, &[], |_| {
        Err(Error::new(ErrorKind::Protocol, "not so"))
    });
    assert_eq!(kind(result), ErrorKind::Protocol);
    assert_eq!(kind(connection.run("SELECT 1")), ErrorKind::ConnectionLost);
    connection.reconnect().unwrap();
    assert!(in_step(&mut connection));
}

#[test]
fn a_panic_of_each_leaves_no_connection_out_of_step_in_use() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let mut select = connection.prepare("SELECT 1").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.query(&mut select, &[], |_| panic!("this panic is part of a test"))
    }));
    assert!(panicked.is_err());
    assert_eq!(kind(connection.run("SELECT 1")), ErrorKind::ConnectionLost);
    connection.reconnect().unwrap();
    assert!(in_step(&mut connection));
}

#[test]
fn what_the_server_refuses_is_said_with_its_words_and_what_was_attempted() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = three(&mut connection);
        let refused = connection.prepare("SELECT a FROM nowhere").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Refused);
        assert_eq!(
            refused.message,
            "relation \"nowhere\" does not exist (SQLSTATE 42P01); attempted: SELECT a FROM nowhere"
        );
        let mut insert = connection
            .prepare(&format!("INSERT INTO {table} (id) VALUES (?)"))
            .unwrap();
        let duplicate = connection
            .execute(&mut insert, &[Value::Int(2)])
            .unwrap_err();
        assert_eq!(duplicate.kind, ErrorKind::DuplicateKey);
        assert!(
            duplicate.message.contains("Key (id)=(2) already exists."),
            "{duplicate}"
        );
        let mut divide = connection.prepare("SELECT 1 / ?::int").unwrap();
        let divided = connection.query(&mut divide, &[Value::Int(0)], |_| Ok(()));
        assert_eq!(kind(divided), ErrorKind::Refused);
        assert_eq!(
            connection.query(&mut divide, &[Value::Int(1)], |_| Ok(())),
            Ok(1)
        );
        assert!(in_step(&mut connection));
    }
}

#[test]
fn what_cannot_be_asked_is_refused_and_nothing_is_sent() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = three(&mut connection);
    let mut delete = connection
        .prepare(&format!("DELETE FROM {table} WHERE id = ?"))
        .unwrap();
    let one = [Value::Int(1)];
    let two = [Value::Int(1), Value::Int(2)];
    let results = [
        kind(connection.execute(&mut delete, &[])),
        kind(connection.execute(&mut delete, &two)),
        kind(connection.query(&mut delete, &two, |_| Ok(()))),
        kind(connection.execute_each(&mut delete, &two, 2)),
        kind(connection.execute_each(&mut delete, &one, 0)),
        kind(connection.query_each(&mut delete, &two, 2, |_, _| Ok(()))),
        kind(connection.insert_rows(&table, &["id", "v"], &one)),
        kind(connection.insert_rows(&table, &[], &one)),
        kind(connection.prepare("SELECT '\0'")),
        kind(connection.run("SELECT '\0'")),
    ];
    assert_eq!(results, [ErrorKind::Refused; 10]);
    assert_eq!(count(&mut connection, &table), 3);
}

#[test]
fn run_carries_out_all_statements_and_tells_the_first_error() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = three(&mut connection);
        connection
            .run(&format!(
                "SELECT * FROM {table}; DELETE FROM {table} WHERE id = 1; ; UPDATE {table} SET v = 'a;b'"
            ))
            .unwrap();
        assert_eq!(
            number(
                &mut connection,
                &format!("SELECT count(*) FROM {table} WHERE v = 'a;b'")
            ),
            2
        );
        let error = connection
            .run(&format!("DELETE FROM {table}; SELECT 1/0; SELECT nothing"))
            .unwrap_err();
        assert!(
            error.message.contains("22012") && error.message.contains("DELETE"),
            "{error}"
        );
        assert_eq!(count(&mut connection, &table), 2);
        connection.run("").unwrap();
    }
}

#[test]
fn a_failed_transaction_is_rolled_back_and_never_taken_for_committed() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = three(&mut connection);
    let mut insert = connection
        .prepare(&format!("INSERT INTO {table} (id) VALUES (?)"))
        .unwrap();
    for end in ["ROLLBACK", "rollback", "COMMIT"] {
        connection.run("BEGIN").unwrap();
        assert_eq!(connection.execute(&mut insert, &[Value::Int(4)]), Ok(1));
        assert_eq!(
            kind(connection.execute(&mut insert, &[Value::Int(1)])),
            ErrorKind::DuplicateKey
        );
        let ignored = connection
            .execute(&mut insert, &[Value::Int(5)])
            .unwrap_err();
        assert!(ignored.message.contains("25P02"), "{ignored}");
        let ended = connection.run(end);
        assert_eq!(ended.is_ok(), end != "COMMIT", "{ended:?}");
        assert_eq!(count(&mut connection, &table), 3);
    }
    connection.run("BEGIN; ROLLBACK").unwrap();
    connection.run("BEGIN").unwrap();
    assert_eq!(connection.execute(&mut insert, &[Value::Int(4)]), Ok(1));
    connection.run("COMMIT").unwrap();
    assert_eq!(count(&mut connection, &table), 4);
}

#[test]
fn inserted_rows_are_all_there_or_none() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = table(&mut connection, "id bigint PRIMARY KEY, v text NOT NULL");
        let text = "v".repeat(100);
        let rows = |from: i64, to: i64| -> Vec<Value<'_>> {
            (from..to)
                .flat_map(|id| [Value::Int(id), Value::Text(&text)])
                .collect()
        };
        connection.insert_rows(&table, &["id", "v"], &[]).unwrap();
        connection
            .insert_rows(&table, &["id", "v"], &rows(0, 20_000))
            .unwrap();
        assert_eq!(count(&mut connection, &table), 20_000);
        // The last of them is there already, the server has taken much when it finds out.
        let mut twice = rows(20_000, 40_000);
        twice.extend([Value::Int(7), Value::Text("again")]);
        let error = connection
            .insert_rows(&table, &["id", "v"], &twice)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::DuplicateKey);
        assert!(
            error.message.contains("line 20001") && error.message.contains("COPY"),
            "{error}"
        );
        // The first of them is wrong, much of what follows is ignored.
        twice.splice(0..2, [Value::Int(50_000), Value::Null]);
        let error = connection
            .insert_rows(&table, &["id", "v"], &twice)
            .unwrap_err();
        assert!(error.message.contains("23502"), "{error}");
        let error = connection
            .insert_rows("nowhere", &["id", "v"], &twice)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert_eq!(count(&mut connection, &table), 20_000);
    }
}

#[test]
fn rows_are_inserted_within_the_open_transaction() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = three(&mut connection);
    connection.run("BEGIN").unwrap();
    connection
        .insert_rows(&table, &["id"], &[Value::Int(9)])
        .unwrap();
    assert_eq!(count(&mut connection, &table), 4);
    connection.run("ROLLBACK").unwrap();
    assert_eq!(count(&mut connection, &table), 3);
}

#[test]
fn notices_settings_and_notifications_do_not_bring_it_out_of_step() {
    let server = shared();
    for mut connection in both_ways(&server) {
        connection
            .run(
                "CREATE OR REPLACE FUNCTION chatter(n bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE NOTICE 'row %', n; PERFORM set_config('application_name', 'row ' || n, false); \
                 PERFORM pg_notify('gossip', 'row ' || n); RETURN n; END $$; LISTEN gossip",
            )
            .unwrap();
        let mut select = connection
            .prepare("SELECT chatter(n) FROM generate_series(1, ?::bigint) n")
            .unwrap();
        for rows in [3, 200, 0, 1] {
            let mut last = 0;
            let found = connection.query(&mut select, &[Value::Int(rows)], |row| {
                last += 1;
                assert_eq!(row.int(), Ok(last));
                Ok(())
            });
            assert_eq!(found, Ok(u64::try_from(rows).unwrap()));
            assert!(in_step(&mut connection));
        }
        connection
            .run("NOTIFY gossip; SET application_name = 'other'; NOTIFY gossip")
            .unwrap();
        assert!(in_step(&mut connection));
    }
}

#[test]
fn what_the_account_or_the_transaction_may_not_is_told_apart() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = three(&mut connection);
    connection
        .run("DROP ROLE IF EXISTS guest; CREATE ROLE guest; SET ROLE guest")
        .unwrap();
    assert_eq!(
        kind(connection.run(&format!("DELETE FROM {table}"))),
        ErrorKind::AccessDenied
    );
    connection.run("RESET ROLE").unwrap();
    connection.run("BEGIN READ ONLY").unwrap();
    assert_eq!(
        kind(connection.run(&format!("DELETE FROM {table}"))),
        ErrorKind::ReadOnly
    );
    connection.run("ROLLBACK").unwrap();
    assert_eq!(count(&mut connection, &table), 3);
}

#[test]
fn statements_of_an_earlier_connection_are_refused_and_prepared_anew() {
    let server = shared();
    let mut connection = enter(&by_tcp(&server));
    let mut old = connection.prepare("SELECT 1").unwrap();
    connection.reconnect().unwrap();
    let mut new = connection.prepare("SELECT 2, 3").unwrap();
    let refused = connection.query(&mut old, &[], |_| Ok(())).unwrap_err();
    assert!(refused.message.contains("26000"), "{refused}");
    assert_eq!(connection.query(&mut new, &[], |_| Ok(())), Ok(1));
}

#[test]
fn the_session_ends_with_its_connection() {
    let server = shared();
    let mut owner = enter(&by_socket(&server));
    for mut connection in both_ways(&server) {
        // An interrupter that lives on does not keep it.
        let _interrupter = connection.interrupter();
        let pid = number(&mut connection, "SELECT pg_backend_pid()");
        drop(connection);
        wait_until(LONG, "the session has ended", || {
            number(
                &mut owner,
                &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"),
            ) == 0
        });
    }
}
