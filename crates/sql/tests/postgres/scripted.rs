//! A server that says what it is told to, to see what becomes of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proptest::prelude::*;

use super::support::*;

fn message(tag: char, body: &[u8]) -> Vec<u8> {
    let mut message = vec![u8::try_from(tag).unwrap()];
    message.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend(body);
    message
}

fn welcome() -> Vec<u8> {
    [
        message('R', &[0, 0, 0, 0]),
        message('S', b"server_version\x0015.0\0"),
        message('K', &[0; 8]),
        message('Z', b"I"),
    ]
    .concat()
}

/// The answer to preparing a statement without parameters that gives a text and a whole number.
fn prepared() -> Vec<u8> {
    let mut columns = vec![0, 2];
    for oid in [25_u32, 20] {
        columns.extend(b"name\0\0\0\0\0\0\0");
        columns.extend(oid.to_be_bytes());
        columns.extend([0; 8]);
    }
    [
        message('1', &[]),
        message('t', &[0, 0]),
        message('T', &columns),
        message('Z', b"I"),
    ]
    .concat()
}

fn row(text: &str, number: i64) -> Vec<u8> {
    let mut body = vec![0, 2];
    body.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    body.extend(text.bytes());
    body.extend(8_u32.to_be_bytes());
    body.extend(number.to_be_bytes());
    message('D', &body)
}

/// What belongs to no answer and may come at any time.
fn aside() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        Just(message('N', b"SNOTICE\0VNOTICE\0C00000\0Mby the way\0\0")),
        Just(message('S', b"application_name\0other\0")),
        Just(message('A', b"\0\0\0\x07channel\0payload\0")),
    ]
}

/// Answers the first request with the first script, and so on; each in pieces of that size. Then it hears
/// out what the client still says, so that nothing it sent is lost.
fn serve(scripts: Vec<Vec<u8>>, piece: usize) -> (Server, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut server = at(Address::Tcp(
        "127.0.0.1".to_owned(),
        listener.local_addr().unwrap().port(),
    ));
    server.limits.read = Duration::from_secs(5);
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = [0; 4096];
        for script in scripts {
            if !stream.read(&mut request).is_ok_and(|count| count > 0) {
                return;
            }
            for piece in script.chunks(piece) {
                if stream.write_all(piece).is_err() {
                    return;
                }
            }
        }
        hear_out(stream);
    });
    (server, thread)
}

fn hear_out(mut stream: TcpStream) {
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut request = [0; 4096];
    while stream.read(&mut request).is_ok_and(|count| count > 0) {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_are_the_same_whatever_comes_between_and_however_it_is_cut(
        rows in prop::collection::vec(("[a-z]{0,300}", any::<i64>()), 0..6),
        asides in prop::collection::vec(aside(), 10),
        piece in 1..200_usize,
    ) {
        let mut asides = asides.into_iter();
        let mut answer = Vec::new();
        let mut say = |message: Vec<u8>| {
            answer.extend(asides.next().unwrap());
            answer.extend(message);
        };
        say(message('2', &[]));
        for (text, number) in &rows {
            say(row(text, *number));
        }
        say(message('C', b"SELECT\0"));
        say(message('Z', b"I"));
        let again = [message('2', &[]), row("again", 1), message('C', b"SELECT 1\0"), message('Z', b"I")].concat();
        let (server, thread) = serve(vec![welcome(), prepared(), answer, again], piece);
        let mut connection = enter(&server);
        prop_assert_eq!(connection.version(), "15.0");
        let mut statement = connection.prepare("SELECT").unwrap();
        let mut found = Vec::new();
        let count = connection.query(&mut statement, &[], |row| {
            let text = String::from_utf8(row.text()?.to_vec()).unwrap();
            found.push((text, row.int()?));
            Ok(())
        });
        prop_assert_eq!(count, Ok(rows.len() as u64));
        prop_assert_eq!(found, rows);
        prop_assert_eq!(connection.query(&mut statement, &[], |row| {
            assert_eq!(row.text(), Ok(&b"again"[..]));
            Ok(())
        }), Ok(1));
        drop(connection);
        thread.join().unwrap();
    }

    #[test]
    fn nonsense_ends_in_an_error_wherever_it_comes(
        nonsense in nonsense(),
        before in 0..4_usize,
        piece in 1..200_usize,
    ) {
        let mut scripts = vec![welcome(), prepared(), Vec::new()];
        scripts.truncate(before.min(2));
        scripts.push(nonsense);
        let (server, thread) = serve(scripts, piece);
        match Postgres::connect(&server) {
            Err(error) => prop_assert_eq!(before, 0, "{}", error),
            Ok(mut connection) => {
                if let Ok(mut statement) = connection.prepare("SELECT") {
                    let rows = connection.query(&mut statement, &[], |row| row.text().map(drop));
                    if rows.is_ok_and(|rows| rows == 0) {
                        prop_assert!(connection.run("SELECT").is_err());
                    }
                }
            }
        }
        thread.join().unwrap();
    }
}

/// Messages with arbitrary bodies, or no messages at all.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop::sample::select("RSKZENDTt12nCIGHWvA".chars().collect::<Vec<_>>());
    let body = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec((tag, body), 0..6).prop_map(|messages| messages
            .iter()
            .flat_map(|(tag, body)| message(*tag, body))
            .collect()),
    ]
}

#[test]
fn a_server_that_cannot_start_a_session_says_so_in_the_older_protocol() {
    let words = "Ecould not fork new process for connection: Cannot allocate memory\n\0";
    let (server, thread) = serve(vec![words.as_bytes().to_vec()], 1000);
    let error = refusal(&server);
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(
        error
            .message
            .ends_with("connection: Cannot allocate memory"),
        "{error}"
    );
    thread.join().unwrap();
}

#[test]
fn a_message_without_place_breaks_the_connection() {
    let answer = [
        message('2', &[]),
        message('G', &[0, 0, 0]),
        message('Z', b"I"),
    ]
    .concat();
    let (server, thread) = serve(vec![welcome(), prepared(), answer], 1000);
    let mut connection = enter(&server);
    let mut statement = connection.prepare("SELECT").unwrap();
    let result = connection.query(&mut statement, &[], |_| Ok(()));
    assert_eq!(kind(result), ErrorKind::Protocol);
    assert_eq!(kind(connection.run("SELECT")), ErrorKind::ConnectionLost);
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn a_torn_row_breaks_the_connection() {
    let torn = message('D', &[0, 2, 0, 0, 0, 9, b'x']);
    let answer = [
        message('2', &[]),
        torn,
        message('C', b"SELECT 1\0"),
        message('Z', b"I"),
    ]
    .concat();
    let (server, thread) = serve(vec![welcome(), prepared(), answer], 1000);
    let mut connection = enter(&server);
    let mut statement = connection.prepare("SELECT").unwrap();
    let result = connection.query(&mut statement, &[], |row| row.text().map(drop));
    assert_eq!(kind(result), ErrorKind::Protocol);
    assert_eq!(kind(connection.run("SELECT")), ErrorKind::ConnectionLost);
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn an_interrupted_log_in_is_told_from_a_server_that_does_not_answer() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let server = at(Address::Tcp(
        "127.0.0.1".to_owned(),
        listener.local_addr().unwrap().port(),
    ));
    let first = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(&welcome()).unwrap();
        listener
    });
    let mut connection = enter(&server);
    let listener = first.join().unwrap();
    let interrupter = connection.interrupter();
    let again = thread::spawn(move || connection.reconnect());
    // It has begun to log in, and gets no answer.
    let (mut stream, _) = listener.accept().unwrap();
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    interrupter.interrupt();
    assert_eq!(kind(again.join().unwrap()), ErrorKind::ConnectionLost);
}
