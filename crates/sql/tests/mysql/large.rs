//! Values of 16 MB and more, which take several packets.

use dyno_servers::Mariadb;
use dyno_sql::{Address, Connection, ErrorKind, Mysql, Row, Value};

use crate::support::{int, root, tcp, unix, with_database};

#[test]
fn long_values_go_there_and_back_in_several_packets() {
    let mariadb = Mariadb::start_with(&["--max-allowed-packet=64M"]);
    // No two neighbouring pages are alike.
    let text: String = (0..40 << 20)
        .map(|at: u32| char::from(b'a' + u8::try_from((at >> 12) % 26).unwrap()))
        .collect();
    // Before the value stand 16 bytes in the request, 18 in the first one, and 6 in the row: with these
    // lengths a packet is filled to its last byte and an empty one follows, or it lacks one or has one more.
    let full = (1 << 24) - 1;
    let edges = [19, 18, 17, 16, 15, 7, 6, 5].map(|before| full - before);
    let several = [2 * full - 6, 40 << 20];
    let echo = |address: Address, lengths: &[usize]| {
        let mut mysql = Mysql::connect(&root(address, "")).unwrap();
        let mut echo = mysql.prepare("SELECT ?").unwrap();
        for &length in lengths {
            let value = Value::Text(&text[..length]);
            let rows = mysql.query(&mut echo, &[value], |row| {
                // Not by assert_eq, which would print them.
                assert!(row.text()? == &text.as_bytes()[..length], "{length}");
                Ok(())
            });
            assert_eq!(rows, Ok(1), "{length}");
        }
        assert_eq!(int(&mut mysql, "SELECT 1"), 1);
    };
    for &edge in &edges {
        echo(unix(mariadb.socket()), &[edge, edge]);
    }
    echo(unix(mariadb.socket()), &several);
    echo(tcp(mariadb.port()), &several);
}

#[test]
fn a_value_larger_than_the_server_takes_is_refused_before_it_is_sent() {
    let mariadb = Mariadb::shared();
    let mut mysql = Mysql::connect(&with_database(unix(mariadb.socket()))).unwrap();
    mysql.run("CREATE TABLE t(v LONGTEXT)").unwrap();
    let limit = int(&mut mysql, "SELECT @@max_allowed_packet");
    let text = "x".repeat(usize::try_from(limit).unwrap());
    let mut insert = mysql.prepare("INSERT INTO t VALUES(?)").unwrap();
    let error = mysql
        .execute(&mut insert, &[Value::Text(&text)])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    let expected = format!("max_allowed_packet is {limit}; raise it");
    assert!(error.message.contains(&expected), "{error}");
    // The connection is as it was, also for the largest that goes.
    let most = &text[..text.len() - 100];
    assert_eq!(mysql.execute(&mut insert, &[Value::Text(most)]), Ok(1));
    assert_eq!(int(&mut mysql, "SELECT COUNT(*) FROM t"), 1);
}
