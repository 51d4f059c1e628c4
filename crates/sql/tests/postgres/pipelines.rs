//! Several sets of values without waiting between them.

use super::support::*;

fn ints(ids: impl IntoIterator<Item = i64>) -> Vec<Value<'static>> {
    ids.into_iter().map(Value::Int).collect()
}

#[test]
fn rows_come_with_the_number_of_their_set() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut select = connection
            .prepare("SELECT n FROM generate_series(?::bigint, ?::bigint) n")
            .unwrap();
        let mut found = Vec::new();
        let rows = connection.query_each(&mut select, &ints([1, 2, 5, 4, 7, 9]), 2, |set, row| {
            found.push((set, row.int()?));
            Ok(())
        });
        assert_eq!(rows, Ok(5));
        assert_eq!(found, [(0, 1), (0, 2), (2, 7), (2, 8), (2, 9)]);
        assert_eq!(
            connection.query_each(&mut select, &[], 2, |_, _| Ok(())),
            Ok(0)
        );
        assert!(in_step(&mut connection));
    }
}

#[test]
fn the_rows_met_are_summed() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = table(&mut connection, "id bigint");
    let mut insert = connection
        .prepare(&format!(
            "INSERT INTO {table} SELECT generate_series(1, ?::bigint)"
        ))
        .unwrap();
    assert_eq!(
        connection.execute_each(&mut insert, &ints([3, 0, 4]), 1),
        Ok(7)
    );
    assert_eq!(count(&mut connection, &table), 7);
}

#[test]
fn requests_beyond_what_sockets_hold_go_through() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = table(&mut connection, "id bigint PRIMARY KEY, v text");
        let mut insert = connection
            .prepare(&format!("INSERT INTO {table} VALUES (?, ?)"))
            .unwrap();
        let [short, long] = [1000, 2_000_000].map(|length| "v".repeat(length));
        let sets: Vec<_> = (0..4000)
            .flat_map(|id| {
                [
                    Value::Int(id),
                    Value::Text(if id % 1500 == 7 { &long } else { &short }),
                ]
            })
            .collect();
        assert_eq!(connection.execute_each(&mut insert, &sets, 2), Ok(4000));
        let bytes = number(
            &mut connection,
            &format!("SELECT sum(length(v))::bigint FROM {table}"),
        );
        assert_eq!(bytes, 3997 * 1000 + 3 * 2_000_000);
    }
}

#[test]
fn answers_beyond_what_sockets_hold_go_through() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut select = connection.prepare("SELECT repeat('r', ?::int)").unwrap();
        let sets = ints((0..3000).map(|set| set * 7));
        let mut bytes = 0;
        let rows = connection.query_each(&mut select, &sets, 1, |set, row| {
            let length = row.text()?.len();
            assert_eq!(length, set * 7);
            bytes += length;
            Ok(())
        });
        assert_eq!((rows, bytes), (Ok(3000), 7 * 2999 * 3000 / 2));
    }
}

#[test]
fn requests_and_answers_beyond_what_sockets_hold_go_through_at_once() {
    let server = shared();
    for mut connection in both_ways(&server) {
        // A small request with a large answer goes ahead of a large request.
        let mut select = connection
            .prepare("SELECT ?::text || repeat('r', ?::int)")
            .unwrap();
        let large = "q".repeat(3_000_000);
        let mut sets = Vec::new();
        for _ in 0..4 {
            sets.extend([Value::Text("s"), Value::Int(3_000_000)]);
            sets.extend([Value::Text(&large), Value::Int(0)]);
        }
        let mut lengths = Vec::new();
        let rows = connection.query_each(&mut select, &sets, 2, |_, row| {
            lengths.push(row.text()?.len());
            Ok(())
        });
        assert_eq!(rows, Ok(8));
        assert_eq!(lengths, [3_000_001, 3_000_000].repeat(4));
        assert!(in_step(&mut connection));
    }
}

#[test]
fn an_error_in_the_middle_leaves_it_in_step() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = table(&mut connection, "id bigint PRIMARY KEY, v text");
        let mut insert = connection
            .prepare(&format!("INSERT INTO {table} VALUES (?, ?)"))
            .unwrap();
        // Within one request, and where it takes many; at the start, in the middle, at the end.
        for (text, wrong) in [("v", 0), ("v", 50), ("v", 99)]
            .map(|(text, wrong)| (text.to_owned(), wrong))
            .into_iter()
            .chain([0, 50, 99].map(|wrong| ("v".repeat(5000), wrong)))
        {
            let mut sets: Vec<_> = (0..100)
                .flat_map(|id| [Value::Int(id), Value::Text(&text)])
                .collect();
            sets[2 * wrong] = Value::Null;
            connection.run("BEGIN").unwrap();
            let error = connection.execute_each(&mut insert, &sets, 2).unwrap_err();
            assert!(error.message.contains("23502"), "{error}");
            assert!(connection.execute(&mut insert, &sets[..2]).is_err());
            connection.run("ROLLBACK").unwrap();
            assert_eq!(count(&mut connection, &table), 0);
            // Without a transaction all of them are one.
            assert!(connection.execute_each(&mut insert, &sets, 2).is_err());
            assert_eq!(count(&mut connection, &table), 0);
        }
    }
}

#[test]
fn an_error_in_the_middle_of_rows_leaves_it_in_step() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let mut select = connection
        .prepare("SELECT 100 / n FROM generate_series(?::int, 20) n")
        .unwrap();
    for sets in [
        vec![1, 2, -2, 3],
        vec![1; 2000].into_iter().chain([-1, 1, 1]).collect(),
    ] {
        let mut last = 0;
        let result = connection.query_each(&mut select, &ints(sets.clone()), 1, |set, _| {
            last = set;
            Ok(())
        });
        assert_eq!(kind(result), ErrorKind::Refused);
        let wrong = sets.iter().position(|start| *start < 0).unwrap();
        assert!(last == wrong || last + 1 == wrong, "{last} of {wrong}");
        assert!(in_step(&mut connection));
    }
}

#[test]
fn an_error_of_each_in_the_middle_leaves_it_in_step() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let mut select = connection
        .prepare("SELECT repeat('r', 1000), ?::text")
        .unwrap();
    for length in [1, 4000] {
        let text = "v".repeat(length);
        let sets = [Value::Text(&text)].repeat(100);
        let wrong = Error::new(ErrorKind::WrongValue, "not that");
        let mut shown = 0;
        let result = connection.query_each(&mut select, &sets, 1, |set, _| {
            shown += 1;
            if set < 30 { Ok(()) } else { Err(wrong.clone()) }
        });
        assert_eq!((result, shown), (Err(wrong), 31));
        assert!(in_step(&mut connection));
    }
}
