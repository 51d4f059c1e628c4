//! What stands in the server's packets.

use super::bytes::{Reader, malformed};
use super::row::Kind;
use crate::error::Result;

/// What client and server can do. The lower half is `MySQL`'s, the upper `MariaDB`'s extension.
pub mod capability {
    /// Set by `MySQL`; a server without it is `MariaDB` and has the extension.
    pub const MYSQL: u64 = 1;
    /// An update counts the rows it met, not only those it changed.
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const CONNECT_WITH_DATABASE: u64 = 1 << 3;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const STATEMENTS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const LONG_AUTH_DATA: u64 = 1 << 21;
    /// No packet of its own between the columns and the rows of an answer.
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// Columns are described only where they are not what the client was told before.
    pub const CACHE_METADATA: u64 = 1 << 36;
}

/// What the server says of its state with each answer.
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
}

/// The first packet of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Greeting {
    /// As the server says it itself.
    pub version: String,
    pub capabilities: u64,
    /// Random bytes, for the log-in.
    pub nonce: Vec<u8>,
    /// How the server would have one log in.
    pub plugin: String,
}

impl Greeting {
    pub fn parse(packet: &[u8]) -> Result<Self> {
        Self::read(packet).ok_or_else(|| malformed("the greeting"))
    }

    fn read(packet: &[u8]) -> Option<Self> {
        let mut packet = Reader(packet);
        if packet.u8()? != 10 {
            return None;
        }
        let version = String::from_utf8_lossy(packet.until_zero()?).into_owned();
        packet.u32()?; // the connection's number
        let mut nonce = packet.take(8)?.to_vec();
        packet.u8()?;
        let lowest = packet.u16()?;
        packet.u8()?; // the default collation
        packet.u16()?; // the state
        let middle = packet.u16()?;
        let nonce_length = usize::from(packet.u8()?);
        packet.take(6)?;
        let extension = packet.u32()?;
        let mut capabilities = u64::from(lowest) | u64::from(middle) << 16;
        if capabilities & capability::MYSQL == 0 {
            capabilities |= u64::from(extension) << 32;
        }
        let rest = packet.take(nonce_length.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        let plugin = if capabilities & capability::PLUGIN_AUTH == 0 {
            &b"mysql_native_password"[..]
        } else {
            // Some old servers leave out the zero at the end.
            packet.until_zero().unwrap_or(packet.0)
        };
        Some(Self {
            version,
            capabilities,
            nonce,
            plugin: String::from_utf8_lossy(plugin).into_owned(),
        })
    }
}

/// The end of a statement's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// How many rows it met.
    pub met: u64,
    pub status: u16,
}

impl Done {
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self> {
        Self::read(packet).ok_or_else(|| malformed("an OK packet"))
    }

    fn read(packet: &[u8]) -> Option<Self> {
        let mut packet = Reader(packet);
        packet.u8()?;
        let met = packet.number()?;
        packet.number()?; // the last number that was given to a row
        let status = packet.u16()?;
        Some(Self { met, status })
    }
}

/// What the server refused something with.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerError {
    pub code: u16,
    /// Five characters of the SQL standard; empty where there are none.
    pub state: String,
    pub message: String,
}

impl ServerError {
    pub fn parse(packet: &[u8]) -> Result<Self> {
        Self::read(packet).ok_or_else(|| malformed("an error packet"))
    }

    fn read(packet: &[u8]) -> Option<Self> {
        let mut packet = Reader(packet);
        packet.u8()?;
        let code = packet.u16()?;
        let mut state = &[][..];
        // Errors before the log-in have no state.
        if packet.0.first() == Some(&b'#') {
            packet.u8()?;
            state = packet.take(5)?;
        }
        Some(Self {
            code,
            state: String::from_utf8_lossy(state).into_owned(),
            message: String::from_utf8_lossy(packet.0).into_owned(),
        })
    }
}

/// The answer to a statement that was given to be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub id: u32,
    pub columns: u16,
    pub parameters: u16,
}

impl Prepared {
    pub fn parse(packet: &[u8]) -> Result<Self> {
        Self::read(packet).ok_or_else(|| malformed("the answer to a statement to prepare"))
    }

    fn read(packet: &[u8]) -> Option<Self> {
        let mut packet = Reader(packet);
        packet.u8()?;
        Some(Self {
            id: packet.u32()?,
            columns: packet.u16()?,
            parameters: packet.u16()?,
        })
    }
}

/// The head of an answer with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pub count: usize,
    /// Whether they are described, or are those that the client was told before.
    pub described: bool,
}

impl Columns {
    #[inline]
    pub fn parse(packet: &[u8], cached: bool) -> Result<Self> {
        Self::read(packet, cached).ok_or_else(|| malformed("the number of columns"))
    }

    fn read(packet: &[u8], cached: bool) -> Option<Self> {
        let mut packet = Reader(packet);
        let count = usize::try_from(packet.number()?).ok()?;
        let described = !cached || packet.u8()? != 0;
        // The protocol has no place for more: statements say how many in two bytes.
        (1..=0xFFFF)
            .contains(&count)
            .then_some(Self { count, described })
    }
}

/// How a column's values are written. Of its description only that is looked at, and it stands in the
/// last 13 bytes: their length (12), character set (2), width (4), type (1), flags (2), decimals (1), and
/// two that are not used.
#[inline]
pub fn column(packet: &[u8]) -> Result<Kind> {
    let read = || {
        let (_, &[length, _, _, _, _, _, _, kind, flags, _, _, _, _]) =
            packet.split_last_chunk::<13>()?;
        if length != 12 {
            return None;
        }
        Kind::of(kind, flags & UNSIGNED != 0)
    };
    read().ok_or_else(|| malformed("the description of a column"))
}

const UNSIGNED: u8 = 0x20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The greeting of a `MariaDB` 10.11, put together by hand from the protocol's description.
    fn greeting() -> Vec<u8> {
        let mut packet = vec![10];
        packet.extend(b"5.5.5-10.11.14-MariaDB\0");
        packet.extend(7u32.to_le_bytes());
        packet.extend(b"abcdefgh\0");
        packet.extend([0xFE, 0xF7, 45, 2, 0, 0xFF, 0x81, 21]);
        packet.extend([0; 6]);
        packet.extend(0x1Du32.to_le_bytes());
        packet.extend(b"ijklmnopqrst\0");
        packet.extend(b"mysql_native_password\0");
        packet
    }

    #[test]
    fn a_greeting_is_read_with_the_extension_of_mariadb() {
        let greeting = Greeting::parse(&greeting()).unwrap();
        assert_eq!(greeting.version, "5.5.5-10.11.14-MariaDB");
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, "mysql_native_password");
        assert_eq!(greeting.capabilities, 0x1D_81FF_F7FE);
        assert_ne!(greeting.capabilities & capability::CACHE_METADATA, 0);
    }

    #[test]
    fn a_server_that_is_mysql_has_no_extension() {
        let mut packet = greeting();
        let low = packet.iter().position(|&byte| byte == 0xFE).unwrap();
        packet[low] |= 1;
        let greeting = Greeting::parse(&packet).unwrap();
        assert_eq!(greeting.capabilities, 0x81FF_F7FF);
    }

    #[test]
    fn an_error_is_read_with_and_without_a_state() {
        let with = ServerError::parse(b"\xFF\x26\x04#23000Duplicate entry").unwrap();
        assert_eq!((with.code, &*with.state), (1062, "23000"));
        assert_eq!(with.message, "Duplicate entry");
        let without = ServerError::parse(b"\xFF\x10\x04Too many connections").unwrap();
        assert_eq!((without.code, &*without.state), (1040, ""));
        assert_eq!(without.message, "Too many connections");
    }

    fn nearly(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
        let length = whole.len();
        let cut = (0..=length).prop_map({
            let whole = whole.clone();
            move |at| whole[..at].to_vec()
        });
        let changed =
            prop::collection::vec((0..length, any::<u8>()), 1..6).prop_map(move |changes| {
                let mut packet = whole.clone();
                for (at, byte) in changes {
                    packet[at] = byte;
                }
                packet
            });
        prop_oneof![cut, changed, prop::collection::vec(any::<u8>(), 0..120)]
    }

    proptest! {
        #[test]
        fn any_packet_is_parsed_or_refused(packet in nearly(greeting()), cached: bool) {
            let _ = Greeting::parse(&packet);
            let _ = Done::parse(&packet);
            let _ = ServerError::parse(&packet);
            let _ = Prepared::parse(&packet);
            let _ = column(&packet);
            if let Ok(columns) = Columns::parse(&packet, cached) {
                prop_assert!((1..=0xFFFF).contains(&columns.count));
            }
        }
    }
}
