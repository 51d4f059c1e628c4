//! Carrying out a statement, for one set of values or for many without waiting between them.
//!
//! Many go out as one request where they are small. Where they are not, the answers to those sent are
//! read before more are: both sides could else wait for ever for the other to read, as neither can take
//! more than its socket buffers hold. The requests on the way never fill a socket's buffers, or are a
//! single one, which the server reads wholly before it answers.

use crate::Value;
use crate::error::{Error, ErrorKind, Result};

use super::message::{rows_met, unexpected};
use super::refusal::attempting;
use super::row::Row;
use super::statement::Statement;
use super::wire::Wire;

/// The most bytes of several requests on the way: what Linux lets a socket hold at the least, where its
/// settings are as it comes (`net.ipv4.tcp_wmem`).
const WINDOW: usize = 16 * 1024;

/// Ends a request; the server then says that it is ready (`Sync`).
const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Has the server send what it has to say so far (`Flush`).
const FLUSH: [u8; 5] = [b'H', 0, 0, 0, 4];

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The rows that the statements met.
    pub met: u64,
    /// The rows that came.
    pub rows: u64,
}

/// Carries out a statement for each set of values. `each` is shown the rows, with the number of their set.
#[inline]
pub fn exchange<'v>(
    wire: &mut Wire,
    statement: &Statement,
    sets: impl Iterator<Item = &'v [Value<'v>]>,
    each: impl FnMut(usize, &mut Row<'_>) -> Result<()>,
) -> Result<Counts> {
    let mut exchange = Exchange {
        wire,
        statement,
        each,
        asked: 0,
        answered: 0,
        counts: Counts { met: 0, rows: 0 },
        error: None,
        refused: false,
        progress: Progress::Asking,
    };
    exchange
        .carry_out(sets)
        .map_err(|error| attempting(error, statement.sql()))?;
    exchange.error.map_or(Ok(exchange.counts), Err)
}

#[derive(PartialEq, Eq)]
enum Progress {
    Asking,
    Synced,
    Ready,
}

struct Exchange<'e, E> {
    wire: &'e mut Wire,
    statement: &'e Statement,
    each: E,
    /// How many sets of values were sent, or gathered to be sent.
    asked: usize,
    /// How many of them were carried out.
    answered: usize,
    counts: Counts,
    /// The first error after which the answer is still read, to its end.
    error: Option<Error>,
    /// Whether the server ignores all up to the next `Sync`.
    refused: bool,
    progress: Progress,
}

impl<E: FnMut(usize, &mut Row<'_>) -> Result<()>> Exchange<'_, E> {
    #[inline]
    fn carry_out<'v>(&mut self, sets: impl Iterator<Item = &'v [Value<'v>]>) -> Result<()> {
        for values in sets {
            if self.asked > self.answered
                && self.wire.output.len() + self.statement.room(values) > WINDOW
            {
                self.catch_up()?;
                if self.error.is_some() {
                    break;
                }
            }
            if let Err(error) = self.statement.request(values, &mut self.wire.output) {
                self.error = Some(error);
                break;
            }
            self.asked += 1;
        }
        self.wire.output.extend_from_slice(&SYNC);
        self.progress = Progress::Synced;
        self.wire.send()?;
        while self.progress != Progress::Ready {
            self.take()?;
        }
        if self.answered < self.asked && self.error.is_none() {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!(
                    "the server answered {} of {} requests",
                    self.answered, self.asked
                ),
            ));
        }
        Ok(())
    }

    /// Reads the answers to all that was asked so far.
    fn catch_up(&mut self) -> Result<()> {
        self.wire.output.extend_from_slice(&FLUSH);
        self.wire.send()?;
        while self.answered < self.asked && !self.refused {
            self.take()?;
        }
        Ok(())
    }

    /// Takes in a message.
    #[inline]
    fn take(&mut self) -> Result<()> {
        let (tag, range) = self.wire.receive()?;
        match tag {
            b'D' => {
                self.counts.rows += 1;
                if self.error.is_none() {
                    self.error = Row::read(self.statement.columns(), self.wire.body(range))
                        .and_then(|mut row| (self.each)(self.answered, &mut row))
                        .err();
                }
            }
            b'C' => {
                self.counts.met += rows_met(self.wire.body(range));
                self.answered += 1;
            }
            // The values are taken over.
            b'2' => {}
            // The statement is empty.
            b'I' => self.answered += 1,
            b'E' => {
                self.refused = true;
                let error = self.wire.refusal(range)?;
                self.error
                    .get_or_insert_with(|| attempting(error, self.statement.sql()));
            }
            b'Z' if self.progress == Progress::Synced => {
                self.wire.ready(range);
                self.progress = Progress::Ready;
            }
            _ => return Err(unexpected(tag)),
        }
        Ok(())
    }
}
