//! Rows, read in place from the server's message.

use std::slice;

use crate::error::{Error, ErrorKind, Result};

use super::message::Reader;

/// A length that stands for NULL.
const NULL: u32 = u32::MAX;

/// How a column comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A whole number of 2, 4 or 8 bytes.
    Integer,
    /// A decimal number, as text: what sums of whole numbers are. A whole one reads as a whole number.
    Numeric,
    /// Anything else, as the text of it.
    Text,
}

impl Column {
    /// By the object identifier of its type, as in the catalogue `pg_type`.
    pub fn of_type(oid: u32) -> Self {
        match oid {
            20 | 21 | 23 => Self::Integer,
            1700 => Self::Numeric,
            _ => Self::Text,
        }
    }

    pub fn is_binary(self) -> bool {
        self == Self::Integer
    }
}

/// A row of an answer.
#[derive(Debug)]
pub struct Row<'r> {
    columns: slice::Iter<'r, Column>,
    fields: &'r [u8],
}

impl<'r> Row<'r> {
    /// Reads a `DataRow`, whose fields come as `columns` say.
    #[inline]
    pub fn read(columns: &'r [Column], body: &'r [u8]) -> Result<Self> {
        let mut body = Reader(body);
        let count = body.u16()?;
        if usize::from(count) != columns.len() {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!(
                    "a row has {count} columns and its statement {}",
                    columns.len()
                ),
            ));
        }
        Ok(Self {
            columns: columns.iter(),
            fields: body.0,
        })
    }

    /// The next column; its bytes are absent where it is NULL.
    #[inline]
    fn next(&mut self) -> Result<(Column, Option<&'r [u8]>)> {
        let column = self
            .columns
            .next()
            .ok_or_else(|| wrong("the row has no more columns"))?;
        let mut fields = Reader(self.fields);
        let field = match fields.u32()? {
            NULL => None,
            length => Some(fields.bytes(length as usize)?),
        };
        self.fields = fields.0;
        Ok((*column, field))
    }
}

impl crate::Row for Row<'_> {
    #[inline]
    fn int(&mut self) -> Result<i64> {
        self.int_or_null()?
            .ok_or_else(|| wrong("a column is NULL that must hold a whole number"))
    }

    #[inline]
    fn int_or_null(&mut self) -> Result<Option<i64>> {
        let (column, field) = self.next()?;
        let Some(field) = field else {
            return Ok(None);
        };
        match column {
            Column::Integer => integer(field).map(Some),
            Column::Numeric => whole(field).map(Some),
            Column::Text => Err(wrong(
                "a column is read as a whole number and is of another type",
            )),
        }
    }

    #[inline]
    fn text(&mut self) -> Result<&[u8]> {
        match self.next()? {
            (Column::Integer, _) => Err(wrong("a column is read as text and is a whole number")),
            (_, Some(field)) => Ok(field),
            (_, None) => Err(wrong("a column is NULL that must hold text")),
        }
    }
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::WrongValue, message)
}

/// A whole number of 2, 4 or 8 bytes.
#[inline]
fn integer(bytes: &[u8]) -> Result<i64> {
    if let Ok(bytes) = bytes.try_into() {
        return Ok(i64::from_be_bytes(bytes));
    }
    if let Ok(bytes) = bytes.try_into() {
        return Ok(i32::from_be_bytes(bytes).into());
    }
    if let Ok(bytes) = bytes.try_into() {
        return Ok(i16::from_be_bytes(bytes).into());
    }
    Err(Error::new(
        ErrorKind::Protocol,
        format!("a whole number came in {} bytes", bytes.len()),
    ))
}

/// The whole number that a decimal one is.
fn whole(decimal: &[u8]) -> Result<i64> {
    let text = String::from_utf8_lossy(decimal);
    let (number, fraction) = text.split_once('.').unwrap_or((&text, ""));
    match number.parse() {
        Ok(number) if fraction.bytes().all(|digit| digit == b'0') => Ok(number),
        _ => Err(wrong(&format!(
            "a column is read as a whole number and is {text}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row as _;
    use proptest::prelude::*;

    fn body(fields: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = u16::try_from(fields.len()).unwrap().to_be_bytes().to_vec();
        for field in fields {
            match field {
                None => body.extend(NULL.to_be_bytes()),
                Some(bytes) => {
                    body.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                    body.extend(*bytes);
                }
            }
        }
        body
    }

    #[test]
    fn decimals_read_as_whole_numbers_where_they_are_whole() {
        for (decimal, number) in [
            ("12", 12),
            ("-3.00", -3),
            ("0", 0),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(whole(decimal.as_bytes()), Ok(number), "{decimal}");
        }
        for decimal in [
            "0.5",
            "NaN",
            "9223372036854775808",
            "Infinity",
            "",
            ".",
            "1.2.3",
        ] {
            let error = whole(decimal.as_bytes()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::WrongValue, "{decimal}");
        }
    }

    #[test]
    fn whole_numbers_of_each_width_keep_their_sign() {
        let columns = [Column::Integer; 3];
        let body = body(&[
            Some(&[0xff, 0xfe]),
            Some(&[0xff; 4]),
            Some(&[0x80, 0, 0, 0, 0, 0, 0, 0]),
        ]);
        let mut row = Row::read(&columns, &body).unwrap();
        assert_eq!(
            (row.int(), row.int(), row.int()),
            (Ok(-2), Ok(-1), Ok(i64::MIN))
        );
    }

    #[test]
    fn the_wrong_way_of_reading_and_nulls_are_wrong_values() {
        let columns = [
            Column::Integer,
            Column::Text,
            Column::Integer,
            Column::Text,
            Column::Integer,
        ];
        let body = body(&[Some(&[0, 1]), Some(b"x"), None, None, None]);
        let mut row = Row::read(&columns, &body).unwrap();
        let kinds = [
            row.text().unwrap_err().kind,
            row.int().unwrap_err().kind,
            row.int().unwrap_err().kind,
            row.text().unwrap_err().kind,
        ];
        assert_eq!(kinds, [ErrorKind::WrongValue; 4]);
        assert_eq!(row.int_or_null(), Ok(None));
        assert_eq!(row.int_or_null().unwrap_err().kind, ErrorKind::WrongValue);
    }

    #[test]
    fn a_row_of_another_width_is_not_the_protocol() {
        let body = body(&[None]);
        assert_eq!(Row::read(&[], &body).unwrap_err().kind, ErrorKind::Protocol);
    }

    proptest! {
        #[test]
        fn arbitrary_rows_never_panic_and_come_to_an_end(
            body in prop::collection::vec(any::<u8>(), 0..200),
            columns in prop::collection::vec(
                prop_oneof![Just(Column::Integer), Just(Column::Numeric), Just(Column::Text)], 0..6),
            as_text in any::<bool>(),
        ) {
            let mut body = body;
            if let Some(count) = body.get_mut(..2) {
                count.copy_from_slice(&u16::try_from(columns.len()).unwrap().to_be_bytes());
            }
            if let Ok(mut row) = Row::read(&columns, &body) {
                let read = (0..10).filter(|_| if as_text { row.text().is_ok() } else { row.int_or_null().is_ok() });
                prop_assert!(read.count() <= columns.len());
            }
        }
    }
}
