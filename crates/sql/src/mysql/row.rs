//! Rows as prepared statements give them: a bitmap of NULLs, then the values, each in the form of its
//! column's type.

use super::bytes::{Reader, malformed};
use crate::error::{Error, ErrorKind, Result};

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of so many bytes.
    Int {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it can be negative.
        signed: bool,
    },
    /// Text or bytes.
    Text,
    /// A decimal number, written out in digits.
    Decimal,
    /// A floating-point number of so many bytes.
    Float(u8),
    /// A date or time, behind its length in one byte.
    Time,
    /// Never a value.
    Null,
}

impl Kind {
    /// The kind of one of the protocol's types.
    #[inline]
    pub const fn of(kind: u8, unsigned: bool) -> Option<Self> {
        let bytes = match kind {
            // VARCHAR, BIT, VECTOR, JSON, ENUM, SET, the four BLOBs, VARSTRING, STRING, GEOMETRY.
            15 | 16 | 242 | 245 | 247..=255 => return Some(Self::Text),
            0 | 246 => return Some(Self::Decimal),
            4 => return Some(Self::Float(4)),
            5 => return Some(Self::Float(8)),
            6 => return Some(Self::Null),
            // TIMESTAMP, DATE, TIME, DATETIME, NEWDATE.
            7 | 10..=12 | 14 => return Some(Self::Time),
            1 => 1,
            // SHORT and YEAR; LONG and INT24.
            2 | 13 => 2,
            3 | 9 => 4,
            8 => 8,
            _ => return None,
        };
        Some(Self::Int {
            bytes,
            signed: !unsigned,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Int { .. } => "a whole number",
            Self::Text => "text",
            Self::Decimal => "a decimal number",
            Self::Float(_) => "a floating-point number",
            Self::Time => "a date or time",
            Self::Null => "NULL",
        }
    }
}

/// A row of an answer, where it was received.
#[derive(Debug)]
pub struct Row<'r> {
    columns: &'r [Kind],
    nulls: &'r [u8],
    values: Reader<'r>,
    /// The number of the column that comes next.
    next: usize,
}

impl<'r> Row<'r> {
    #[inline]
    pub(super) fn parse(columns: &'r [Kind], packet: &'r [u8]) -> Result<Self> {
        let mut values = Reader(packet);
        values.take(1);
        // Its first two bits are not used.
        match values.take((columns.len() + 9) / 8) {
            Some(nulls) => Ok(Self {
                columns,
                nulls,
                values,
                next: 0,
            }),
            None => Err(malformed("a row")),
        }
    }

    /// The next value; nothing where it is NULL. One of the wrong kind is passed over too.
    #[inline]
    fn value(&mut self) -> Result<(Kind, Option<&'r [u8]>)> {
        let Some(&kind) = self.columns.get(self.next) else {
            return Err(self.no_column());
        };
        let bit = self.next + 2;
        self.next += 1;
        if self.nulls[bit / 8] >> (bit % 8) & 1 != 0 {
            return Ok((kind, None));
        }
        let value = match kind {
            Kind::Text | Kind::Decimal => self.values.string(),
            Kind::Int { bytes, .. } | Kind::Float(bytes) => self.values.take(usize::from(bytes)),
            Kind::Time => match self.values.u8() {
                Some(length) => self.values.take(usize::from(length)),
                None => None,
            },
            Kind::Null => self.values.take(0),
        };
        match value {
            Some(value) => Ok((kind, Some(value))),
            None => Err(malformed("a row")),
        }
    }

    #[cold]
    fn no_column(&self) -> Error {
        let message = format!("a row has only {} columns", self.columns.len());
        Error::new(ErrorKind::WrongValue, message)
    }

    #[cold]
    fn unlike(&self, found: &str, expected: &str) -> Error {
        let message = format!("column {} holds {found}, not {expected}", self.next);
        Error::new(ErrorKind::WrongValue, message)
    }
}

impl crate::Row for Row<'_> {
    #[inline]
    fn int(&mut self) -> Result<i64> {
        match self.int_or_null()? {
            Some(value) => Ok(value),
            None => Err(self.unlike("NULL", "a whole number")),
        }
    }

    #[inline]
    fn int_or_null(&mut self) -> Result<Option<i64>> {
        let (kind, value) = self.value()?;
        let Some(value) = value else {
            return Ok(None);
        };
        let int = match kind {
            Kind::Int { signed, .. } => int(value, signed),
            Kind::Decimal => whole(value),
            _ => return Err(self.unlike(kind.name(), "a whole number")),
        };
        match int {
            Some(int) => Ok(Some(int)),
            None => Err(self.unlike(
                "a number with a fraction or beyond 64 bits",
                "a whole number of 64 bits with a sign",
            )),
        }
    }

    #[inline]
    fn text(&mut self) -> Result<&[u8]> {
        match self.value()? {
            (Kind::Text | Kind::Decimal, Some(value)) => Ok(value),
            (_, None) => Err(self.unlike("NULL", "text")),
            (kind, Some(_)) => Err(self.unlike(kind.name(), "text")),
        }
    }
}

/// A whole number of 1, 2, 4 or 8 bytes; nothing where it is too large for the result.
#[inline]
fn int(bytes: &[u8], signed: bool) -> Option<i64> {
    Some(match (bytes, signed) {
        (&[a], true) => i8::from_le_bytes([a]).into(),
        (&[a], false) => a.into(),
        (&[a, b], true) => i16::from_le_bytes([a, b]).into(),
        (&[a, b], false) => u16::from_le_bytes([a, b]).into(),
        (&[a, b, c, d], true) => i32::from_le_bytes([a, b, c, d]).into(),
        (&[a, b, c, d], false) => u32::from_le_bytes([a, b, c, d]).into(),
        (eight, true) => i64::from_le_bytes(eight.try_into().ok()?),
        (eight, false) => u64::from_le_bytes(eight.try_into().ok()?).try_into().ok()?,
    })
}

/// The whole number that digits stand for, as sums of whole numbers come; nothing where a fraction is
/// not zero.
fn whole(digits: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(digits).ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.bytes().any(|digit| digit != b'0') {
        return None;
    }
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Row as _;

    const BYTE: Kind = Kind::Int {
        bytes: 1,
        signed: true,
    };

    fn kind() -> impl Strategy<Value = Kind> {
        (any::<u8>(), any::<bool>())
            .prop_filter_map("no such type", |(kind, unsigned)| Kind::of(kind, unsigned))
    }

    proptest! {
        #[test]
        fn any_row_is_read_or_refused(
            columns in prop::collection::vec(kind(), 1..20),
            packet in prop::collection::vec(any::<u8>(), 0..100),
            accessors in prop::collection::vec(0u8..3, 0..25),
        ) {
            let Ok(mut row) = Row::parse(&columns, &packet) else {
                return Ok(());
            };
            for (number, accessor) in accessors.into_iter().enumerate() {
                let answer = match accessor {
                    0 => row.int().map(|_| ()),
                    1 => row.int_or_null().map(|_| ()),
                    _ => row.text().map(|_| ()),
                };
                if number >= columns.len() {
                    prop_assert_eq!(answer.unwrap_err().kind, ErrorKind::WrongValue);
                }
            }
        }

        #[test]
        fn whole_numbers_of_every_width_are_read(
            a: i8, b: u8, c: i16, d: u16, e: i32, f: u32, g: i64, h: u64,
        ) {
            prop_assert_eq!(int(&a.to_le_bytes(), true), Some(a.into()));
            prop_assert_eq!(int(&b.to_le_bytes(), false), Some(b.into()));
            prop_assert_eq!(int(&c.to_le_bytes(), true), Some(c.into()));
            prop_assert_eq!(int(&d.to_le_bytes(), false), Some(d.into()));
            prop_assert_eq!(int(&e.to_le_bytes(), true), Some(e.into()));
            prop_assert_eq!(int(&f.to_le_bytes(), false), Some(f.into()));
            prop_assert_eq!(int(&g.to_le_bytes(), true), Some(g));
            prop_assert_eq!(int(&h.to_le_bytes(), false), h.try_into().ok());
            prop_assert_eq!(whole(g.to_string().as_bytes()), Some(g));
        }
    }

    #[test]
    fn digits_with_a_fraction_are_a_whole_number_only_where_it_is_zero() {
        assert_eq!(whole(b"-12.000"), Some(-12));
        assert_eq!(whole(b"12.010"), None);
        assert_eq!(whole(b"9223372036854775808"), None);
        assert_eq!(whole(b""), None);
    }

    #[test]
    fn a_value_read_as_what_it_is_not_is_passed_over() {
        let columns = [Kind::Text, BYTE, Kind::Time, BYTE, BYTE];
        // The last one is NULL.
        let packet = [0, 0b0100_0000, 2, b'a', b'b', 7, 1, 99, 8];
        let mut row = Row::parse(&columns, &packet).unwrap();
        let error = row.int().unwrap_err();
        assert_eq!(error.kind, ErrorKind::WrongValue);
        assert_eq!(error.message, "column 1 holds text, not a whole number");
        assert_eq!(row.int(), Ok(7));
        let error = row.text().unwrap_err();
        assert_eq!(error.message, "column 3 holds a date or time, not text");
        assert_eq!(row.int(), Ok(8));
        assert_eq!(row.int_or_null(), Ok(None));
        let error = row.text().unwrap_err();
        assert_eq!(error.message, "a row has only 5 columns");
    }
}
