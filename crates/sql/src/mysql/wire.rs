//! Packets over a stream: each has a header of its length and its number within the exchange, and one
//! of 16 MB or more goes in several.
//!
//! Requests are built in one buffer and answers parsed in another, both kept from one operation to the
//! next. A request is one send; one receive takes as much as there is.

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::ops::Range;

use super::bytes::malformed;
use crate::error::{Error, ErrorKind, Result};
use crate::stream::Stream;

const HEADER: usize = 4;

/// A packet of this length is followed by another that belongs to it.
pub const FULL: usize = 0xFF_FFFF;

/// Holds the answer to most operations.
const BUFFER: usize = 64 * 1024;

/// Buffers that grew beyond this for one large value are given back.
const KEEP: usize = 8 * 1024 * 1024;

/// One connection's packets.
pub struct Wire {
    pub stream: Stream,
    /// What came and was not looked at yet is `input[start..end]`.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Requests that have not been sent yet.
    output: Vec<u8>,
    /// Where the request that is being built begins.
    begun: usize,
    /// The number that the next packet must have, from either side.
    number: u8,
    /// A packet came out of order.
    pub out_of_order: bool,
    /// A request must be shorter than this: the server's `max_allowed_packet`.
    pub limit: usize,
}

impl Wire {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: vec![0; BUFFER],
            start: 0,
            end: 0,
            output: Vec::with_capacity(4096),
            begun: 0,
            number: 0,
            out_of_order: false,
            // Asked for once one is logged in; until then nothing large is sent.
            limit: FULL,
        }
    }

    /// Begins a request.
    #[inline]
    pub fn request(&mut self, command: u8) -> &mut Vec<u8> {
        self.clear();
        self.another_request(command)
    }

    /// Forgets requests that were not sent.
    #[inline]
    pub fn clear(&mut self) {
        self.output.clear();
        if self.output.capacity() > KEEP {
            self.output.shrink_to(BUFFER);
        }
        if self.start == self.end && self.input.len() > KEEP {
            self.input.truncate(BUFFER);
            self.input.shrink_to_fit();
        }
    }

    /// Begins a request that goes out together with those before it.
    #[inline]
    pub fn another_request(&mut self, command: u8) -> &mut Vec<u8> {
        self.number = 0;
        let out = self.reply();
        out.push(command);
        out
    }

    /// Begins a packet within the exchange that is under way.
    pub fn reply(&mut self) -> &mut Vec<u8> {
        self.begun = self.output.len();
        self.output.extend_from_slice(&[0; HEADER]);
        &mut self.output
    }

    /// How many bytes of requests wait.
    pub fn waiting(&self) -> usize {
        self.output.len()
    }

    /// Ends the packet that was begun.
    #[inline]
    pub fn end(&mut self) -> Result<()> {
        let length = self.output.len() - self.begun - HEADER;
        if length >= self.limit {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "a request of {length} bytes is more than the server takes: its max_allowed_packet \
                     is {}; raise it or use smaller values",
                    self.limit
                ),
            ));
        }
        if length < FULL {
            self.put_header(self.begun, length);
        } else {
            self.split();
        }
        Ok(())
    }

    #[inline]
    fn put_header(&mut self, at: usize, length: usize) {
        let [low, middle, high, ..] = length.to_le_bytes();
        self.output[at..at + HEADER].copy_from_slice(&[low, middle, high, self.number]);
        self.number = self.number.wrapping_add(1);
    }

    /// Cuts the packet that was begun into full ones and a last one, which may be empty.
    #[cold]
    fn split(&mut self) {
        let whole = self.output.split_off(self.begun + HEADER);
        self.output.truncate(self.begun);
        // What is left over has less than a full packet, also nothing.
        for part in whole.chunks_exact(FULL) {
            self.put_part(part);
        }
        self.put_part(whole.chunks_exact(FULL).remainder());
    }

    fn put_part(&mut self, part: &[u8]) {
        let at = self.output.len();
        self.output.extend_from_slice(&[0; HEADER]);
        self.put_header(at, part.len());
        self.output.extend_from_slice(part);
    }

    /// Sends what waits.
    pub fn send(&mut self) -> Result<()> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        Ok(sent?)
    }

    /// Says that the next packet begins the answer to another request of those that went out together.
    /// Each of them fitted into one packet.
    pub fn next_answer(&mut self) {
        self.number = 1;
    }

    /// The next packet's content, in the buffer where it was received.
    #[inline]
    pub fn packet(&mut self) -> Result<&[u8]> {
        let range = self.receive()?;
        Ok(&self.input[range])
    }

    #[inline]
    fn receive(&mut self) -> Result<Range<usize>> {
        self.need(HEADER)?;
        let length = self.header(self.start);
        let mut total = HEADER + length;
        self.need(total)?;
        if length == FULL {
            total = self.join(total)?;
        }
        let packet = self.start + HEADER..self.start + total;
        self.start += total;
        if self.out_of_order && self.input[packet.clone()].first() != Some(&0xFF) {
            return Err(malformed("the order of packets"));
        }
        Ok(packet)
    }

    /// Brings the parts of a long packet together, of which the first, with its header, is `total` long;
    /// gives how long it became.
    #[cold]
    fn join(&mut self, mut total: usize) -> Result<usize> {
        loop {
            self.need(total + HEADER)?;
            let length = self.header(self.start + total);
            self.need(total + HEADER + length)?;
            let gap = self.start + total;
            self.input.copy_within(gap + HEADER..self.end, gap);
            self.end -= HEADER;
            total += length;
            if length < FULL {
                return Ok(total);
            }
        }
    }

    /// The length in a header. A server that closes a connection may say why in an error packet out of
    /// order, so that this is an error only once it is known not to be one.
    #[inline]
    fn header(&mut self, at: usize) -> usize {
        let &[low, middle, high, number] = &self.input[at..at + HEADER] else {
            return 0;
        };
        if number != self.number {
            self.out_of_order = true;
        }
        self.number = number.wrapping_add(1);
        usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
    }

    /// Sees to it that so many bytes are there.
    #[inline]
    fn need(&mut self, count: usize) -> Result<()> {
        if self.end - self.start >= count {
            return Ok(());
        }
        self.fill(count)
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        if self.start + count > self.input.len() || self.start == self.end {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if count > self.input.len() {
                self.input.resize(count.next_power_of_two(), 0);
            }
        }
        while self.end - self.start < count {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::ConnectionLost,
                        "the server closed the connection",
                    ));
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == IoErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
