//! Requests and their answers, read to the end whatever they hold, so that the two stay in step.

use super::bytes::{Reader, malformed};
use super::codes;
use super::packets::{Columns, Done, Prepared, ServerError, column, status};
use super::row::{Kind, Row};
use super::statement::{Abandoned, Statement};
use super::wire::{FULL, Wire};
use crate::Value;
use crate::error::{Error, ErrorKind, Result};

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// Several requests go out together up to this size. So much fits into the buffers of a connection even
/// if the server does not read at all, because it waits for its answers to be taken: sending always comes
/// to an end, and reading begins.
const TOGETHER: usize = 16 * 1024;

/// A connection that one is logged in on.
pub struct Exchange {
    pub wire: Wire,
    pub mariadb: bool,
    pub caches_metadata: bool,
    /// The server's state as of its last answer.
    pub status: u16,
    /// Statements to tell the server that they are of no more use.
    pub abandoned: Abandoned,
    /// Why the connection is of no more use.
    pub broken: Option<String>,
}

/// What went wrong.
pub enum Failure {
    /// In the exchange with the server.
    Exchange(Error),
    /// In what the caller did with a row.
    Each(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Exchange(error)
    }
}

/// What an answer begins with.
enum Head {
    Done(Done),
    Rows(Columns),
}

/// What stands in an answer with rows.
enum Next<'p> {
    Row(&'p [u8]),
    End(Done),
}

impl Exchange {
    pub fn new(wire: Wire, mariadb: bool, caches_metadata: bool) -> Self {
        Self {
            wire,
            mariadb,
            caches_metadata,
            status: status::AUTOCOMMIT,
            abandoned: Abandoned::default(),
            broken: None,
        }
    }

    /// Whether the connection is of use.
    #[inline]
    pub fn ready(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::ConnectionLost,
                format!("there is no connection any longer; before: {why}"),
            )),
        }
    }

    /// The error as it is given to the caller, once it is known whether the connection is still of use.
    #[cold]
    pub fn judge(&mut self, failure: Failure, what: &str) -> Error {
        /// Enough to know a statement by.
        const SHOWN: usize = 200;
        let mut error = match failure {
            Failure::Exchange(error) => error,
            // The caller's own words.
            Failure::Each(error) => {
                self.notice(&error);
                return error;
            }
        };
        let mut shown: String = what.chars().take(SHOWN).collect();
        if shown.len() < what.len() {
            shown += " ...";
        }
        error.message = format!("{}; it was at: {shown}", error.message);
        self.notice(&error);
        error
    }

    /// Takes note of an error that leaves the connection of no use.
    pub fn notice(&mut self, error: &Error) {
        if (error.kind.breaks_connection() || self.wire.out_of_order) && self.broken.is_none() {
            self.broken = Some(error.message.clone());
        }
    }

    /// Has statements prepared; tells the server of those that it need not keep any longer.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.wire.clear();
        let abandoned: Vec<u32> = match self.abandoned.lock() {
            Ok(mut abandoned) => abandoned.drain(..).collect(),
            Err(_) => Vec::new(),
        };
        for id in abandoned {
            // This has no answer.
            let out = self.wire.another_request(CLOSE);
            out.extend_from_slice(&id.to_le_bytes());
            self.wire.end()?;
        }
        let out = self.wire.another_request(PREPARE);
        out.extend_from_slice(sql.as_bytes());
        self.wire.end()?;
        self.wire.send()?;
        let prepared = match self.wire.packet()? {
            packet @ [0, ..] => Prepared::parse(packet)?,
            packet => {
                let packet = packet.to_vec();
                return Err(self.failure(&packet));
            }
        };
        for _ in 0..prepared.parameters {
            self.wire.packet()?;
        }
        let mut columns = Vec::with_capacity(usize::from(prepared.columns));
        self.columns(usize::from(prepared.columns), &mut columns)?;
        Ok(Statement::new(
            prepared.id,
            sql,
            prepared.parameters,
            columns,
            &self.abandoned,
        ))
    }

    fn columns(&mut self, count: usize, columns: &mut Vec<Kind>) -> Result<()> {
        columns.clear();
        for _ in 0..count {
            columns.push(column(self.wire.packet()?)?);
        }
        Ok(())
    }

    /// Carries out statements without parameters; `see` is shown the rows of the first answer.
    pub fn run(&mut self, sql: &str, mut see: impl FnMut(&[u8])) -> Result<()> {
        self.wire.request(QUERY).extend_from_slice(sql.as_bytes());
        self.wire.end()?;
        self.wire.send()?;
        loop {
            let done = match self.head()? {
                Head::Done(done) => done,
                Head::Rows(columns) => {
                    if columns.described {
                        for _ in 0..columns.count {
                            self.wire.packet()?;
                        }
                    }
                    self.rows(false, &mut see)?
                }
            };
            if done.status & status::MORE_RESULTS == 0 {
                return Ok(());
            }
        }
    }

    /// Sends the first of `sets` and those after it that may go with it; gives how many.
    fn ask<'s, 'v: 's>(
        &mut self,
        statement: &mut Statement,
        sets: &mut (impl Iterator<Item = &'s [Value<'v>]> + Clone),
    ) -> Result<usize> {
        let mut sent = 0;
        loop {
            let mut ahead = sets.clone();
            let Some(values) = ahead.next() else {
                break;
            };
            if sent > 0 && self.wire.waiting() + Statement::size(values) > TOGETHER {
                break;
            }
            statement.check(&self.abandoned, values.len())?;
            let out = if sent == 0 {
                self.wire.request(EXECUTE)
            } else {
                self.wire.another_request(EXECUTE)
            };
            statement.put(out, values);
            self.wire.end()?;
            sent += 1;
            *sets = ahead;
        }
        if sent > 0 {
            self.wire.send()?;
        }
        Ok(sent)
    }

    /// Carries out a statement for each of the sets, of which the answers are read by `read`, which is
    /// told the set's number. Answers to requests that are on their way are read also after an error; the
    /// first one is given, and nothing more sent.
    fn each_set(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
        mut read: impl FnMut(&mut Self, &mut Statement, usize) -> Result<u64, Failure>,
    ) -> Result<u64, Failure> {
        statement.check(&self.abandoned, width)?;
        if width == 0 {
            // No values say how often.
            return Ok(0);
        }
        let mut sets = sets.chunks(width);
        let mut total = 0;
        let mut number = 0;
        loop {
            let sent = self.ask(statement, &mut sets)?;
            if sent == 0 {
                return Ok(total);
            }
            let mut failed = None;
            for answer in 0..sent {
                if answer > 0 {
                    self.wire.next_answer();
                }
                if failed.is_some() {
                    match self.met(statement) {
                        Err(error) if self.is_over(&error) => break,
                        _ => {}
                    }
                } else {
                    match read(self, statement, number) {
                        Ok(count) => total += count,
                        Err(Failure::Exchange(error)) if self.is_over(&error) => {
                            return Err(error.into());
                        }
                        Err(failure) => failed = Some(failure),
                    }
                }
                number += 1;
            }
            if let Some(failure) = failed {
                return Err(failure);
            }
        }
    }

    /// Whether nothing more can be read after an error.
    fn is_over(&mut self, error: &Error) -> bool {
        self.notice(error);
        self.broken.is_some()
    }

    #[inline]
    fn ask_one(&mut self, statement: &mut Statement, values: &[Value<'_>]) -> Result<()> {
        statement.check(&self.abandoned, values.len())?;
        statement.put(self.wire.request(EXECUTE), values);
        self.wire.end()?;
        self.wire.send()
    }

    /// As [`crate::Connection::execute`].
    #[inline]
    pub fn execute(&mut self, statement: &mut Statement, values: &[Value<'_>]) -> Result<u64> {
        self.ask_one(statement, values)?;
        self.met(statement)
    }

    /// As [`crate::Connection::execute_each`].
    pub fn execute_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
    ) -> Result<u64, Failure> {
        self.each_set(statement, sets, width, |exchange, statement, _| {
            Ok(exchange.met(statement)?)
        })
    }

    /// As [`crate::Connection::query`].
    #[inline]
    pub fn query(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
        each: impl FnMut(&mut Row<'_>) -> Result<()>,
    ) -> Result<u64, Failure> {
        self.ask_one(statement, values)?;
        self.seen(statement, each)
    }

    /// As [`crate::Connection::query_each`].
    pub fn query_each(
        &mut self,
        statement: &mut Statement,
        sets: &[Value<'_>],
        width: usize,
        mut each: impl FnMut(usize, &mut Row<'_>) -> Result<()>,
    ) -> Result<u64, Failure> {
        self.each_set(statement, sets, width, |exchange, statement, number| {
            exchange.seen(statement, |row| each(number, row))
        })
    }

    /// Reads an answer that has no rows; gives how many rows were met.
    #[inline]
    fn met(&mut self, statement: &mut Statement) -> Result<u64> {
        let mut met = 0;
        let mut rows = false;
        loop {
            let done = match self.head()? {
                Head::Done(done) => {
                    met += done.met;
                    done
                }
                Head::Rows(columns) => {
                    rows = true;
                    if columns.described {
                        self.columns(columns.count, &mut statement.columns)?;
                    }
                    self.rows(true, |_| ())?
                }
            };
            if done.status & status::MORE_RESULTS == 0 {
                break;
            }
        }
        if rows {
            return Err(Error::new(
                ErrorKind::Refused,
                "the statement gives rows, and nobody looks at them",
            ));
        }
        Ok(met)
    }

    /// Reads an answer and shows its rows to `each`, until it fails; gives how many rows there were.
    #[inline]
    fn seen(
        &mut self,
        statement: &mut Statement,
        mut each: impl FnMut(&mut Row<'_>) -> Result<()>,
    ) -> Result<u64, Failure> {
        let mut seen = 0;
        let mut failed = None;
        loop {
            let done = match self.head()? {
                Head::Done(done) => done,
                Head::Rows(columns) => {
                    if columns.described {
                        self.columns(columns.count, &mut statement.columns)?;
                    } else if columns.count != statement.columns.len() {
                        return Err(malformed("the number of columns").into());
                    }
                    let columns = &statement.columns;
                    self.rows(true, |packet| {
                        seen += 1;
                        if failed.is_none() {
                            failed = Row::parse(columns, packet)
                                .and_then(|mut row| each(&mut row))
                                .err();
                        }
                    })?
                }
            };
            if done.status & status::MORE_RESULTS == 0 {
                break;
            }
        }
        match failed {
            None => Ok(seen),
            Some(error) => Err(Failure::Each(error)),
        }
    }

    #[inline]
    fn head(&mut self) -> Result<Head> {
        let cached = self.caches_metadata;
        let done = match self.wire.packet()? {
            packet @ [0, ..] => Done::parse(packet)?,
            packet @ [1..=0xFA | 0xFC..=0xFE, ..] => {
                return Columns::parse(packet, cached).map(Head::Rows);
            }
            packet => {
                let packet = packet.to_vec();
                return Err(self.failure(&packet));
            }
        };
        self.status = done.status;
        Ok(Head::Done(done))
    }

    /// Reads the rows of an answer, of the form that prepared statements give or of the other one.
    #[inline]
    fn rows(&mut self, prepared: bool, mut see: impl FnMut(&[u8])) -> Result<Done> {
        loop {
            match self.row(prepared)? {
                Next::Row(packet) => see(packet),
                Next::End(done) => {
                    self.status = done.status;
                    return Ok(done);
                }
            }
        }
    }

    #[inline]
    fn row(&mut self, prepared: bool) -> Result<Next<'_>> {
        let mariadb = self.mariadb;
        let packet = self.wire.packet()?;
        match packet {
            // A value of 16 MB at the beginning of a row in text would begin so too.
            [0xFE, ..] if packet.len() < FULL => Done::parse(packet).map(Next::End),
            [0xFF, ..] => Err(codes::describe(&ServerError::parse(packet)?, mariadb)),
            [0, ..] => Ok(Next::Row(packet)),
            [_, ..] if !prepared => Ok(Next::Row(packet)),
            _ => Err(malformed("a row")),
        }
    }

    /// What a packet says in place of the answer that was expected.
    #[cold]
    fn failure(&mut self, packet: &[u8]) -> Error {
        if packet.first() != Some(&0xFF) {
            return malformed("an answer");
        }
        match ServerError::parse(packet) {
            Ok(said) => {
                let error = codes::describe(&said, self.mariadb);
                if codes::closes(&said) {
                    self.broken = Some(error.message.clone());
                }
                error
            }
            Err(error) => error,
        }
    }

    /// The longest request that the server takes.
    pub fn ask_limit(&mut self) -> Result<usize> {
        let mut limit = None;
        self.run("SELECT @@max_allowed_packet", |row| {
            let text = Reader(row).string().map(String::from_utf8_lossy);
            limit = text.and_then(|text| text.parse().ok());
        })?;
        limit.ok_or_else(|| malformed("max_allowed_packet"))
    }

    /// Says good-bye, if anybody listens, and closes the connection.
    pub fn close(&mut self) {
        if self.broken.is_none() {
            self.wire.request(QUIT);
            // Whoever does not listen any longer needs no good-bye.
            let _ = self.wire.end().and_then(|()| self.wire.send());
        }
        self.wire.stream.shutdown();
        self.broken = Some("it was closed".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{Row as _, Stream};

    const LONG: Duration = Duration::from_secs(20);

    /// An exchange with someone who says this in pieces of such lengths, whatever is asked, and goes.
    fn told(said: Vec<u8>, pieces: Vec<usize>, caches_metadata: bool) -> Exchange {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut rest = &said[..];
            let mut pieces = pieces.into_iter().cycle();
            while !rest.is_empty() {
                let length = pieces.next().unwrap_or(rest.len()).clamp(1, rest.len());
                let (piece, after) = rest.split_at(length);
                if theirs.write_all(piece).is_err() {
                    return;
                }
                rest = after;
            }
            let _ = theirs.shutdown(std::net::Shutdown::Write);
            // Whoever asks is listened to until it goes.
            let _ = theirs.read_to_end(&mut Vec::new());
        });
        let mut stream = Stream::from(ours);
        stream.limit(LONG, LONG).unwrap();
        Exchange::new(Wire::new(stream), true, caches_metadata)
    }

    fn packet(said: &mut Vec<u8>, number: u8, content: &[u8]) {
        let [low, middle, high, ..] = content.len().to_le_bytes();
        said.extend([low, middle, high, number]);
        said.extend(content);
    }

    /// The description of a column, of which only the end is looked at.
    const TEXT_COLUMN: &[u8] = b"\x03def\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";

    const END: &[u8] = b"\xfe\0\0\x02\0\0\0";

    fn answer(texts: &[Vec<u8>], described: bool) -> Vec<u8> {
        let mut said = Vec::new();
        let mut number = 1..=u8::MAX;
        let mut number = || number.next().unwrap();
        packet(&mut said, number(), &[1, u8::from(described)]);
        if described {
            packet(&mut said, number(), TEXT_COLUMN);
        }
        for text in texts {
            let mut row = vec![0, 0];
            super::super::bytes::put_string(&mut row, text);
            packet(&mut said, number(), &row);
        }
        packet(&mut said, number(), END);
        said
    }

    fn statement(exchange: &Exchange, columns: &[Kind]) -> Statement {
        Statement::new(1, "SELECT", 0, columns.to_vec(), &exchange.abandoned)
    }

    /// What came instead, or the kind of error.
    fn texts(
        exchange: &mut Exchange,
        statement: &mut Statement,
    ) -> Result<Vec<Vec<u8>>, ErrorKind> {
        let mut seen = Vec::new();
        let answer = exchange.query(statement, &[], |row| {
            seen.push(row.text()?.to_vec());
            Ok(())
        });
        match answer {
            Ok(_) => Ok(seen),
            Err(Failure::Exchange(error) | Failure::Each(error)) => Err(error.kind),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_are_the_same_however_their_bytes_come(
            rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..100),
            pieces in prop::collection::vec(1usize..9000, 1..8),
            described: bool,
        ) {
            let mut said = answer(&rows, described);
            said.extend(answer(&rows, false));
            let mut exchange = told(said, pieces, true);
            let mut statement = statement(&exchange, &[Kind::Text]);
            prop_assert_eq!(texts(&mut exchange, &mut statement), Ok(rows.clone()));
            prop_assert_eq!(texts(&mut exchange, &mut statement), Ok(rows));
            prop_assert_eq!(texts(&mut exchange, &mut statement), Err(ErrorKind::ConnectionLost));
        }

        #[test]
        fn whatever_is_said_every_call_comes_to_an_end(
            mut said in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..200),
                Just(answer(&[b"abc".to_vec(), vec![b'x'; 300]], true)),
            ],
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            pieces in prop::collection::vec(1usize..50, 1..4),
            call in 0u8..6,
            cached: bool,
        ) {
            for (at, byte) in changes {
                if !said.is_empty() {
                    let at = at.index(said.len());
                    said[at] = byte;
                }
            }
            let mut exchange = told(said, pieces, cached);
            let mut one = statement(&exchange, &[Kind::Text]);
            let sets = [Value::Int(1), Value::Int(2)];
            match call {
                0 => { let _ = texts(&mut exchange, &mut one); }
                1 => { let _ = exchange.execute(&mut one, &[]); }
                2 => { let _ = exchange.prepare("SELECT ?"); }
                3 => { let _ = exchange.run("SELECT 1", |_| ()); }
                4 => { let _ = exchange.ask_limit(); }
                _ => {
                    let mut two = Statement::new(2, "?", 1, Vec::new(), &exchange.abandoned);
                    let _ = exchange.execute_each(&mut two, &sets, 1);
                }
            }
        }
    }
}
