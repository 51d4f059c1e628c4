//! The server's messages, read in place. Nothing in here trusts a length.
//!
//! Formats: <https://www.postgresql.org/docs/15/protocol-message-formats.html>

use std::io::{self, Read};
use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};

/// One fits several of the 8 KiB that the server sends at a time.
const ROOM: usize = 64 * 1024;

/// No message of the server is longer: it cannot allocate more at once.
const LONGEST: usize = 1 << 30;

/// A message's type, and where in the buffer its body is.
pub type Found = (u8, Range<usize>);

/// What came and was not yet used up.
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; ROOM],
            start: 0,
            end: 0,
        }
    }

    /// The next message, if it is there as a whole.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Found>> {
        let held = self.held();
        let Some(&[tag, a, b, c, d]) = held.first_chunk() else {
            return Ok(None);
        };
        // The length counts itself.
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=LONGEST).contains(&length) {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the server announced a message of {length} bytes"),
            ));
        }
        if held.len() <= length {
            return Ok(None);
        }
        let body = self.start + 5..self.start + 1 + length;
        self.start = body.end;
        Ok(Some((tag, body)))
    }

    /// Reads as much as there is and fits. What [`Self::take`] gave before is void then.
    #[inline]
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<()> {
        if self.start > 0 {
            // At most one message that has not come wholly.
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            // Not at once what the message announces: it may be no message.
            self.bytes.resize(2 * self.end, 0);
        }
        loop {
            match source.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    #[inline]
    pub fn body(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// What was not taken yet.
    #[inline]
    pub fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

/// Reads a message's body from front to end.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Text up to a zero byte.
    pub fn text(&mut self) -> Result<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0);
        let text = self.bytes(length.ok_or_else(cut_short)?)?;
        self.0 = &self.0[1..];
        Ok(text)
    }
}

fn cut_short() -> Error {
    Error::new(
        ErrorKind::Protocol,
        "a message of the server is shorter than what it must hold",
    )
}

/// A message that has no place where it came.
pub fn unexpected(tag: u8) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!(
            "the server sent a message of type {:?}, which has no place here",
            char::from(tag)
        ),
    )
}

/// The types of a statement's parameters (`ParameterDescription`).
pub fn parameter_types(body: &[u8]) -> Result<Vec<u32>> {
    let mut body = Reader(body);
    (0..body.u16()?).map(|_| body.u32()).collect()
}

/// The types of a statement's columns (`RowDescription`).
pub fn column_types(body: &[u8]) -> Result<Vec<u32>> {
    let mut body = Reader(body);
    let count = body.u16()?;
    let mut types = Vec::new();
    for _ in 0..count {
        let (_name, _table, _number) = (body.text()?, body.u32()?, body.u16()?);
        types.push(body.u32()?);
        let (_size, _modifier, _format) = (body.u16()?, body.u32()?, body.u16()?);
    }
    Ok(types)
}

/// How many rows a statement met (`CommandComplete`): the last word where that is a number.
#[inline]
pub fn rows_met(body: &[u8]) -> u64 {
    let mut rows = 0_u64;
    let mut place = 1_u64;
    for byte in body.iter().rev().skip(1) {
        match byte {
            b'0'..=b'9' => {
                rows = rows.saturating_add(place.saturating_mul(u64::from(byte - b'0')));
                place = place.saturating_mul(10);
            }
            b' ' => return rows,
            _ => break,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described_column(name: &str, oid: u32) -> Vec<u8> {
        let mut column = name.as_bytes().to_vec();
        column.push(0);
        column.extend([0; 6]);
        column.extend(oid.to_be_bytes());
        column.extend([0; 8]);
        column
    }

    #[test]
    fn rows_met_are_the_last_word_of_a_completed_command() {
        for (tag, rows) in [
            ("INSERT 0 12", 12),
            ("UPDATE 0", 0),
            ("SELECT 1005", 1005),
            ("COPY 3", 3),
            ("BEGIN", 0),
            ("CREATE TABLE", 0),
            ("7", 0),
            ("", 0),
        ] {
            assert_eq!(rows_met(format!("{tag}\0").as_bytes()), rows, "{tag}");
        }
        assert_eq!(rows_met(b""), 0);
    }

    #[test]
    fn types_of_columns_and_parameters_are_read() {
        let mut body = 2_u16.to_be_bytes().to_vec();
        body.extend(described_column("one", 20));
        body.extend(described_column("", 1043));
        assert_eq!(column_types(&body).unwrap(), [20, 1043]);
        assert_eq!(
            parameter_types(&[0, 2, 0, 0, 0, 20, 0, 0, 4, 19]).unwrap(),
            [20, 1043]
        );
    }

    #[test]
    fn a_message_longer_than_any_is_refused_before_it_comes() {
        let mut input = Input::new();
        input.fill(&mut &[b'D', 0xff, 0, 0, 0][..]).unwrap();
        assert_eq!(input.take().unwrap_err().kind, ErrorKind::Protocol);
        let mut input = Input::new();
        input.fill(&mut &[b'D', 0, 0, 0, 3][..]).unwrap();
        assert_eq!(input.take().unwrap_err().kind, ErrorKind::Protocol);
    }

    /// Gives what it holds in pieces of given sizes, the last one again and again.
    struct Pieces<'a> {
        left: &'a [u8],
        sizes: Vec<usize>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = if self.sizes.len() > 1 {
                self.sizes.remove(0)
            } else {
                self.sizes[0]
            };
            let mut piece = self.left.take(size as u64);
            let count = piece.read(buffer)?;
            self.left = &self.left[count..];
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_they_are_cut(
            messages in prop::collection::vec(
                (any::<u8>(), 0..100_000_usize, any::<u8>()), 0..8),
            sizes in prop::collection::vec(1..70_000_usize, 1..20),
        ) {
            let mut bytes = Vec::new();
            for (tag, length, filler) in &messages {
                bytes.push(*tag);
                bytes.extend(u32::try_from(length + 4).unwrap().to_be_bytes());
                bytes.resize(bytes.len() + length, *filler);
            }
            let mut source = Pieces { left: &bytes, sizes };
            let mut input = Input::new();
            let mut found = Vec::new();
            loop {
                match input.take().unwrap() {
                    Some((tag, range)) => {
                        let body = input.body(range);
                        let filler = body.first().copied().unwrap_or_default();
                        prop_assert!(body.iter().all(|byte| *byte == filler));
                        found.push((tag, body.len(), filler));
                    }
                    None => if input.fill(&mut source).is_err() { break },
                }
            }
            let sent: Vec<_> = messages
                .into_iter()
                .map(|(tag, length, filler)| (tag, length, if length == 0 { 0 } else { filler }))
                .collect();
            prop_assert_eq!(found, sent);
        }

        #[test]
        fn arbitrary_bytes_neither_panic_nor_loop(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            size in 1..64_usize,
        ) {
            let mut source = Pieces { left: &bytes, sizes: vec![size] };
            let mut input = Input::new();
            let mut steps = 0;
            loop {
                steps += 1;
                prop_assert!(steps < 1000);
                match input.take() {
                    Ok(Some((_, range))) => {
                        let body = input.body(range);
                        let _ = (column_types(body), parameter_types(body), rows_met(body));
                    }
                    Ok(None) => if input.fill(&mut source).is_err() { break },
                    Err(error) => {
                        prop_assert_eq!(error.kind, ErrorKind::Protocol);
                        break;
                    }
                }
            }
        }

        #[test]
        fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (column_types(&body), parameter_types(&body), rows_met(&body));
        }
    }
}
