//! The stream with its two buffers: requests are gathered and sent at once, answers read as they come.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use bytes::BytesMut;

use crate::error::{Error, ErrorKind, Result};
use crate::stream::Stream;

use super::message::{Found, Input};
use super::refusal::Refusal;

/// What a request is gathered in at first.
const ROOM: usize = 16 * 1024;

/// A stream to the server.
pub struct Wire {
    pub stream: Stream,
    pub input: Input,
    /// What is to be sent next.
    pub output: BytesMut,
    /// Whether the session is within a failed transaction, as the server said last.
    pub failed: bool,
}

impl Wire {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: Input::new(),
            output: BytesMut::with_capacity(ROOM),
            failed: false,
        }
    }

    /// Sets the limits on reads and writes.
    pub fn limit(&mut self, read: Duration, write: Duration) -> Result<()> {
        Ok(self.stream.limit(read, write)?)
    }

    /// Sends what was gathered.
    #[inline]
    pub fn send(&mut self) -> Result<()> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(|error| self.last_words(error.into()))
    }

    /// Why a server that takes no more ended the session: it says so before it closes its end.
    #[cold]
    fn last_words(&mut self, error: Error) -> Error {
        if error.kind == ErrorKind::ConnectionLost {
            while let Ok((tag, body)) = self.receive() {
                if tag == b'E'
                    && let Ok(refusal) = Refusal::read(self.body(body))
                    && refusal.ends_session
                {
                    return refusal.error;
                }
            }
        }
        error
    }

    /// The next message of whatever type.
    #[inline]
    pub fn receive_any(&mut self) -> Result<Found> {
        loop {
            if let Some(found) = self.input.take()? {
                return Ok(found);
            }
            self.input.fill(&mut self.stream)?;
        }
    }

    /// The next message of an answer. Notices, changed settings and notifications may come at any time
    /// and belong to none.
    #[inline]
    pub fn receive(&mut self) -> Result<Found> {
        loop {
            match self.receive_any()? {
                (b'N' | b'S' | b'A', _) => {}
                found => return Ok(found),
            }
        }
    }

    #[inline]
    pub fn body(&self, range: Range<usize>) -> &[u8] {
        self.input.body(range)
    }

    /// The error that the server reported; it is the operation's end where it is the session's, too.
    #[cold]
    pub fn refusal(&self, range: Range<usize>) -> Result<Error> {
        let refusal = Refusal::read(self.body(range))?;
        if refusal.ends_session {
            return Err(refusal.error);
        }
        Ok(refusal.error)
    }

    /// Takes note of `ReadyForQuery`, the end of an answer.
    #[inline]
    pub fn ready(&mut self, range: Range<usize>) {
        self.failed = self.body(range) == b"E";
    }

    /// Reads an answer to its end, and shows each message but errors to `each`; gives the first error
    /// that the server reported.
    pub fn answer(&mut self, mut each: impl FnMut(u8, &[u8]) -> Result<()>) -> Result<()> {
        let mut refused = Ok(());
        loop {
            let (tag, range) = self.receive()?;
            match tag {
                b'E' => {
                    let error = self.refusal(range)?;
                    refused = refused.and(Err(error));
                }
                b'Z' => {
                    self.ready(range);
                    return refused;
                }
                _ => each(tag, self.body(range))?,
            }
        }
    }
}
