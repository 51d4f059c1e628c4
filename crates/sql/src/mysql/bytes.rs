//! The protocol's numbers and strings, read from a packet and written into one.
//!
//! Reading gives `None` where the packet ends early, so that what comes over a connection can be
//! anything without harm.

use crate::error::{Error, ErrorKind};

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p>(pub &'p [u8]);

impl<'p> Reader<'p> {
    /// The next bytes, so many.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'p [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Two bytes, the lowest first, as in all numbers of the protocol.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number that says its own length: itself up to 250, or 0xFC, 0xFD or 0xFE before two, three or
    /// eight bytes. 0xFB stands for NULL and 0xFF for an error elsewhere, and for no number here.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ ..=0xFA => Some(u64::from(small)),
            0xFC => self.u16().map(u64::from),
            0xFD => {
                let [low, middle, high] = self.array()?;
                Some(u64::from(u32::from_le_bytes([low, middle, high, 0])))
            }
            0xFE => self.array().map(u64::from_le_bytes),
            _ => None,
        }
    }

    /// Bytes behind their length.
    #[inline]
    pub fn string(&mut self) -> Option<&'p [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// Bytes up to a zero, which is passed over.
    pub fn until_zero(&mut self) -> Option<&'p [u8]> {
        let length = self.0.iter().position(|&byte| byte == 0)?;
        let taken = self.take(length);
        self.u8();
        taken
    }
}

/// Writes a number so that it says its own length.
#[inline]
pub fn put_number(out: &mut Vec<u8>, number: usize) {
    let bytes = (number as u64).to_le_bytes();
    match number {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Writes bytes behind their length.
#[inline]
pub fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_number(out, string.len());
    out.extend_from_slice(string);
}

/// A packet that is not what the protocol says.
#[cold]
pub fn malformed(what: &str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("{what} is not as the MySQL protocol has it; is this a MySQL or MariaDB server?"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            number in prop_oneof![0usize..600, 0usize..0x2_0000, 0usize..0x200_0000, any::<usize>()],
            string in prop::collection::vec(any::<u8>(), 0..700),
        ) {
            let mut packet = Vec::new();
            put_number(&mut packet, number);
            put_string(&mut packet, &string);
            let mut reader = Reader(&packet);
            prop_assert_eq!(reader.number(), Some(number as u64));
            prop_assert_eq!(reader.string(), Some(&string[..]));
            prop_assert!(reader.0.is_empty());
        }

        #[test]
        fn arbitrary_bytes_are_read_without_going_past_their_end(
            packet in prop::collection::vec(any::<u8>(), 0..40),
            steps in prop::collection::vec(0u8..7, 0..20),
        ) {
            let mut reader = Reader(&packet);
            for step in steps {
                let before = reader.0.len();
                match step {
                    0 => { reader.u8(); }
                    1 => { reader.u16(); }
                    2 => { reader.u32(); }
                    3 => { reader.number(); }
                    4 => { reader.string(); }
                    5 => { reader.until_zero(); }
                    _ => { reader.take(3); }
                }
                prop_assert!(reader.0.len() <= before);
                prop_assert!(packet.ends_with(reader.0));
            }
        }
    }

    #[test]
    fn a_length_beyond_the_packet_is_no_string() {
        assert_eq!(Reader(&[3, b'a', b'b']).string(), None);
        let mut endless = vec![0xFE];
        endless.extend([0xFF; 8]);
        assert_eq!(Reader(&endless).string(), None);
    }
}
