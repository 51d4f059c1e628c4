//! Values on their way to the server and back.

use super::support::*;

/// What a column must read as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read {
    Int(Option<i64>),
    Text(String),
    Wrong,
}

const INT: fn(&mut dyn Columns) -> Read = |row| row.as_int();
const TEXT: fn(&mut dyn Columns) -> Read = |row| row.as_text();

trait Columns {
    fn as_int(&mut self) -> Read;
    fn as_text(&mut self) -> Read;
}

impl<R: Row> Columns for R {
    fn as_int(&mut self) -> Read {
        match self.int_or_null() {
            Ok(value) => Read::Int(value),
            Err(error) => wrong(error),
        }
    }

    fn as_text(&mut self) -> Read {
        match self.text() {
            Ok(text) => Read::Text(String::from_utf8(text.to_vec()).unwrap()),
            Err(error) => wrong(error),
        }
    }
}

fn wrong(error: Error) -> Read {
    assert_eq!(error.kind, ErrorKind::WrongValue, "{error}");
    Read::Wrong
}

/// Writes a value into a column of that type and reads it back.
fn there_and_back(
    connection: &mut Postgres,
    sql_type: &str,
    value: Value<'_>,
    read: fn(&mut dyn Columns) -> Read,
) -> Read {
    let table = table(connection, &format!("v {sql_type}"));
    let mut insert = connection
        .prepare(&format!("INSERT INTO {table} VALUES (?)"))
        .unwrap();
    assert_eq!(connection.execute(&mut insert, &[value]), Ok(1));
    let mut select = connection
        .prepare(&format!("SELECT v FROM {table}"))
        .unwrap();
    let mut found = Vec::new();
    let rows = connection.query(&mut select, &[], |row| {
        found.push(read(row));
        Ok(())
    });
    connection.run(&format!("DROP TABLE {table}")).unwrap();
    assert_eq!((rows, found.len()), (Ok(1), 1));
    found.remove(0)
}

#[test]
fn whole_numbers_come_back_from_columns_of_each_width() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    for (sql_type, numbers) in [
        ("smallint", vec![0, -1, i16::MIN.into(), i16::MAX.into()]),
        ("int", vec![7, -7, i32::MIN.into(), i32::MAX.into()]),
        ("bigint", vec![0, -3_000_000_000, i64::MIN, i64::MAX]),
        ("numeric(20, 2)", vec![0, -12, 123_456_789_012_345_678]),
    ] {
        for number in numbers {
            let found = there_and_back(&mut connection, sql_type, Value::Int(number), INT);
            assert_eq!(found, Read::Int(Some(number)), "{sql_type}");
        }
    }
}

#[test]
fn texts_come_back_from_columns_of_each_type() {
    let server = shared();
    let mut connection = enter(&by_tcp(&server));
    for (sql_type, text, back) in [
        ("text", "", ""),
        ("text", "tab\tback\\slash\nline", "tab\tback\\slash\nline"),
        ("varchar(20)", "grüße, 世界", "grüße, 世界"),
        ("char(5)", "abc", "abc  "),
        ("numeric(8, 2)", "-12.5", "-12.50"),
        ("timestamp", "2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("boolean", "true", "t"),
    ] {
        let found = there_and_back(&mut connection, sql_type, Value::Text(text), TEXT);
        assert_eq!(found, Read::Text(back.to_owned()), "{sql_type}");
    }
}

#[test]
fn values_go_as_what_the_parameter_is() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    for (sql_type, value, read, found) in [
        ("text", Value::Int(-5), TEXT, Read::Text("-5".to_owned())),
        (
            "char(4)",
            Value::Int(12),
            TEXT,
            Read::Text("12  ".to_owned()),
        ),
        (
            "double precision",
            Value::Int(1 << 40),
            TEXT,
            Read::Text("1099511627776".to_owned()),
        ),
        (
            "bigint",
            Value::Text("-9000000000"),
            INT,
            Read::Int(Some(-9_000_000_000)),
        ),
        ("smallint", Value::Text("12"), INT, Read::Int(Some(12))),
        (
            "numeric",
            Value::Text("1.50"),
            TEXT,
            Read::Text("1.50".to_owned()),
        ),
    ] {
        assert_eq!(
            there_and_back(&mut connection, sql_type, value, read),
            found,
            "{sql_type}"
        );
    }
}

#[test]
fn nulls_are_read_only_where_they_may_be() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    for sql_type in ["smallint", "int", "bigint", "numeric"] {
        let found = there_and_back(&mut connection, sql_type, Value::Null, INT);
        assert_eq!(found, Read::Int(None), "{sql_type}");
    }
    for sql_type in ["text", "varchar(3)", "numeric"] {
        let found = there_and_back(&mut connection, sql_type, Value::Null, TEXT);
        assert_eq!(found, Read::Wrong, "{sql_type}");
    }
    let mut select = connection.prepare("SELECT NULL::int").unwrap();
    let read = connection.query(&mut select, &[], |row| row.int().map(drop));
    assert_eq!(kind(read), ErrorKind::WrongValue);
    assert!(in_step(&mut connection));
}

#[test]
fn the_wrong_way_of_reading_is_a_wrong_value() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    for (sql_type, value, read) in [
        ("int", Value::Int(1), TEXT),
        ("bigint", Value::Int(1), TEXT),
        ("text", Value::Text("1"), INT),
        ("numeric", Value::Text("1.5"), INT),
    ] {
        assert_eq!(
            there_and_back(&mut connection, sql_type, value, read),
            Read::Wrong,
            "{sql_type}"
        );
    }
    let mut select = connection.prepare("SELECT 1").unwrap();
    let read = connection.query(&mut select, &[], |row| row.int().and(row.int()).map(drop));
    assert_eq!(kind(read), ErrorKind::WrongValue);
    assert!(in_step(&mut connection));
}

#[test]
fn a_number_beyond_its_column_is_refused_in_the_servers_words() {
    let server = shared();
    let mut connection = enter(&by_socket(&server));
    let table = table(&mut connection, "v int");
    let mut insert = connection
        .prepare(&format!("INSERT INTO {table} VALUES (?)"))
        .unwrap();
    let error = connection
        .execute(&mut insert, &[Value::Int(1 << 31)])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(
        error.message.contains("2147483648") && error.message.contains("22003"),
        "{error}"
    );
    assert!(error.message.contains("INSERT INTO"), "{error}");
    assert!(in_step(&mut connection));
}

#[test]
fn values_of_megabytes_come_back_whole() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let text = "abcdefghijklmnopqrstuvwxyz_".repeat(200_000);
        let found = there_and_back(&mut connection, "text", Value::Text(&text), TEXT);
        assert!(found == Read::Text(text), "another text came back");
        assert!(in_step(&mut connection));
    }
}

#[test]
fn a_thousand_rows_come_in_order_and_whole() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let mut select = connection
            .prepare("SELECT n, repeat(chr(65 + (n % 26)::int), (n * 3)::int), NULLIF(n % 2, 0) FROM generate_series(1, ?::bigint) AS n")
            .unwrap();
        let mut expected = 0;
        let rows = connection.query(&mut select, &[Value::Int(1000)], |row| {
            expected += 1;
            assert_eq!(row.int(), Ok(expected));
            let letter = b'A' + u8::try_from(expected % 26).unwrap();
            let text = row.text()?;
            assert_eq!(text.len(), usize::try_from(expected * 3).unwrap());
            assert!(text.iter().all(|byte| *byte == letter));
            assert_eq!(row.int_or_null(), Ok((expected % 2 == 1).then_some(1)));
            Ok(())
        });
        assert_eq!((rows, expected), (Ok(1000), 1000));
        assert!(in_step(&mut connection));
    }
}

#[test]
fn inserted_rows_hold_what_was_given() {
    let server = shared();
    for mut connection in both_ways(&server) {
        let table = table(
            &mut connection,
            "id bigint PRIMARY KEY, a text, b varchar(40), n int",
        );
        let texts = [
            "tab\there",
            "back\\slash \\N \\.",
            "line\nline\r\n",
            "",
            "plain",
            "\\",
            "ü\t世",
        ];
        let mut values = Vec::new();
        for (id, text) in (0_i64..).zip(texts) {
            values.extend([
                Value::Int(id),
                Value::Text(text),
                Value::Null,
                Value::Int(-id),
            ]);
        }
        values.extend([Value::Int(7), Value::Null, Value::Text("\\N"), Value::Null]);
        connection
            .insert_rows(&table, &["id", "a", "b", "n"], &values)
            .unwrap();
        let mut select = connection
            .prepare(&format!(
                "SELECT id, coalesce(a, 'null'), coalesce(b, 'null'), n FROM {table} ORDER BY id"
            ))
            .unwrap();
        let mut found = Vec::new();
        connection
            .query(&mut select, &[], |row| {
                let id = row.int()?;
                let [a, b] =
                    [(); 2].map(|()| String::from_utf8(row.text().unwrap().to_vec()).unwrap());
                found.push((id, a, b, row.int_or_null()?));
                Ok(())
            })
            .unwrap();
        let mut expected: Vec<_> = (0_i64..)
            .zip(texts)
            .map(|(id, text)| (id, text.to_owned(), "null".to_owned(), Some(-id)))
            .collect();
        expected.push((7, "null".to_owned(), "\\N".to_owned(), None));
        assert_eq!(found, expected);
    }
}
