//! Prepared statements, and the requests that carry them out.
//!
//! All of a request but its values is written once, when the statement is prepared.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

use crate::Value;
use crate::error::{Error, ErrorKind, Result};

use super::row::Column;

/// Carries out what was bound and gives all of its rows (`Execute`).
const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// The server takes no longer message: it cannot allocate more at once.
pub const LONGEST: u32 = (1 << 30) - 1;

/// The most bytes that a number takes, with its length.
const NUMBER: usize = 24;

/// How a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A whole number of 2 bytes.
    Int2,
    /// A whole number of 4 bytes.
    Int4,
    /// A whole number of 8 bytes.
    Int8,
    /// Anything else, as the text of it.
    Text,
}

impl Parameter {
    /// By the object identifier of its type, as in the catalogue `pg_type`.
    pub fn of_type(oid: u32) -> Self {
        match oid {
            20 => Self::Int8,
            21 => Self::Int2,
            23 => Self::Int4,
            _ => Self::Text,
        }
    }
}

/// A prepared statement of one connection.
#[derive(Debug)]
pub struct Statement {
    sql: String,
    parameters: Box<[Parameter]>,
    columns: Box<[Column]>,
    /// `Bind` up to the values.
    head: Box<[u8]>,
    /// Where in it the parameters' formats are, if they are there: 2 bytes each.
    formats: usize,
    /// `Bind` after the values, and `Execute`.
    tail: Box<[u8]>,
}

impl Statement {
    pub fn new(sql: &str, name: &str, parameters: Vec<Parameter>, columns: Vec<Column>) -> Self {
        // The length is written when it is known.
        let mut head = vec![b'B', 0, 0, 0, 0, 0];
        head.extend(name.bytes());
        head.push(0);
        let formats = head.len() + 2;
        let is_binary = |parameter: &Parameter| *parameter != Parameter::Text;
        put_formats(&mut head, parameters.iter().map(is_binary));
        head.put_u16(count(parameters.len()));
        let mut tail = Vec::new();
        put_formats(&mut tail, columns.iter().map(|column| column.is_binary()));
        tail.extend(EXECUTE);
        Self {
            sql: sql.to_owned(),
            parameters: parameters.into(),
            columns: columns.into(),
            head: head.into(),
            formats,
            tail: tail.into(),
        }
    }

    pub fn sql(&self) -> &str {
        &self.sql
    }

    #[inline]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Checks that sets of `width` values, of which there are `count` in all, suit the parameters.
    #[inline]
    pub fn check(&self, count: usize, width: usize) -> Result<()> {
        if width == self.parameters.len()
            && (count == width || width > 0 && count.is_multiple_of(width))
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Refused,
            format!(
                "the statement has {} parameters and was given {count} values in sets of {width}: {}",
                self.parameters.len(),
                self.sql
            ),
        ))
    }

    /// The most bytes that a request with these values takes.
    #[inline]
    pub fn room(&self, values: &[Value<'_>]) -> usize {
        let of = |value: &Value<'_>| match value {
            Value::Text(text) => 4 + text.len(),
            Value::Int(_) | Value::Null => NUMBER,
        };
        self.head.len() + values.iter().map(of).sum::<usize>() + self.tail.len()
    }

    /// Writes a request, as many values as there are parameters; what it stands for is done at the next
    /// `Sync`. Nothing was written where there was an error.
    #[inline]
    pub fn request(&self, values: &[Value<'_>], output: &mut BytesMut) -> Result<()> {
        let start = output.len();
        output.extend_from_slice(&self.head);
        for (number, (value, parameter)) in values.iter().zip(&self.parameters).enumerate() {
            match *value {
                Value::Null => output.put_i32(-1),
                Value::Int(value) => {
                    if !put_int(output, *parameter, value) {
                        self.as_text(&mut output[start..], number);
                        put_digits(output, value);
                    }
                }
                Value::Text(text) => {
                    if *parameter != Parameter::Text {
                        self.as_text(&mut output[start..], number);
                    }
                    // What does not fit into the length is refused below.
                    #[expect(clippy::cast_possible_truncation)]
                    output.put_u32(text.len() as u32);
                    output.extend_from_slice(text.as_bytes());
                }
            }
        }
        output.extend_from_slice(&self.tail);
        // All but the type's byte, and but the message that follows.
        let length = output.len() - start - 1 - EXECUTE.len();
        match u32::try_from(length) {
            Ok(length) if length <= LONGEST => {
                output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            _ => {
                output.truncate(start);
                Err(Error::new(
                    ErrorKind::Refused,
                    format!("{length} bytes of values are more than the server takes at once"),
                ))
            }
        }
    }

    /// Says of a parameter that is not text that it comes as text this time: the server then judges
    /// whether it can be read as what it must be, and says so in its own words.
    #[cold]
    fn as_text(&self, request: &mut [u8], number: usize) {
        let format = self.formats + 2 * number;
        request[format..format + 2].copy_from_slice(&[0, 0]);
    }
}

/// Writes a number in the parameter's form; false where the form does not hold it.
#[inline]
fn put_int(output: &mut BytesMut, parameter: Parameter, value: i64) -> bool {
    match parameter {
        Parameter::Int8 => {
            output.put_u32(8);
            output.put_i64(value);
        }
        Parameter::Int4 => {
            let Ok(value) = i32::try_from(value) else {
                return false;
            };
            output.put_u32(4);
            output.put_i32(value);
        }
        Parameter::Int2 => {
            let Ok(value) = i16::try_from(value) else {
                return false;
            };
            output.put_u32(2);
            output.put_i16(value);
        }
        Parameter::Text => put_digits(output, value),
    }
    true
}

fn put_digits(output: &mut BytesMut, value: i64) {
    let start = output.len();
    output.put_u32(0);
    // Memory is all that it could lack, and that would end the program.
    let _ = write!(output, "{value}");
    #[expect(clippy::cast_possible_truncation, reason = "at most 20 digits")]
    let length = (output.len() - start - 4) as u32;
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes whether each of some values is binary; none at all where all are text, the protocol's default.
fn put_formats(output: &mut Vec<u8>, binary: impl ExactSizeIterator<Item = bool> + Clone) {
    if !binary.clone().any(|binary| binary) {
        return output.put_u16(0);
    }
    output.put_u16(count(binary.len()));
    for binary in binary {
        output.put_u16(binary.into());
    }
}

/// The server says itself how many parameters and columns there are, in 16 bits.
fn count(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// The statement as the server takes it, with `$1` and so on in place of `?`.
pub fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len() + 8);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            // Memory is all that it could lack, and that would end the program.
            let _ = write!(numbered, "${number}");
        }
        numbered.push_str(part);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
        assert_eq!(
            numbered("UPDATE t SET a = ?, b = ? WHERE c = ?"),
            "UPDATE t SET a = $1, b = $2 WHERE c = $3"
        );
    }

    /// What the crate of the field writes for the same.
    fn reference(formats: &[i16], values: &[Option<Vec<u8>>], results: &[i16]) -> BytesMut {
        let mut output = BytesMut::new();
        postgres_protocol::message::frontend::bind(
            "",
            "s7",
            formats.iter().copied(),
            values,
            |value, output| match value {
                None => Ok(postgres_protocol::IsNull::Yes),
                Some(bytes) => {
                    output.extend_from_slice(bytes);
                    Ok(postgres_protocol::IsNull::No)
                }
            },
            results.iter().copied(),
            &mut output,
        )
        .unwrap_or_else(|_| panic!("the reference could not be written"));
        postgres_protocol::message::frontend::execute("", 0, &mut output).unwrap();
        output
    }

    fn written(statement: &Statement, values: &[Value<'_>]) -> BytesMut {
        // Something before it must not matter.
        let mut output = BytesMut::from("before");
        statement.request(values, &mut output).unwrap();
        output.split_off(6)
    }

    #[test]
    fn a_number_that_its_parameter_does_not_hold_goes_as_text() {
        let statement = Statement::new("", "s7", vec![Parameter::Int2, Parameter::Int4], vec![]);
        let values = [Value::Int(-32769), Value::Int(1 << 31)];
        let texts = [Some(b"-32769".to_vec()), Some(b"2147483648".to_vec())];
        assert_eq!(
            written(&statement, &values),
            reference(&[0, 0], &texts, &[])
        );
    }

    #[test]
    fn sets_of_another_width_are_refused() {
        let two = Statement::new("", "s", vec![Parameter::Text; 2], vec![]);
        assert!(two.check(2, 2).is_ok() && two.check(6, 2).is_ok() && two.check(0, 2).is_ok());
        for (count, width) in [(3, 2), (3, 3), (0, 0), (2, 1)] {
            assert_eq!(
                two.check(count, width).unwrap_err().kind,
                ErrorKind::Refused
            );
        }
        let none = Statement::new("", "s", vec![], vec![]);
        assert!(none.check(0, 0).is_ok() && none.check(1, 1).is_err());
    }

    fn parameter() -> impl Strategy<Value = Parameter> {
        prop_oneof![
            Just(Parameter::Int2),
            Just(Parameter::Int4),
            Just(Parameter::Int8),
            Just(Parameter::Text)
        ]
    }

    #[derive(Clone, Debug)]
    enum Given {
        Null,
        Int(i64),
        Text(String),
    }

    fn given() -> impl Strategy<Value = Given> {
        prop_oneof![
            Just(Given::Null),
            any::<i16>().prop_map(|value| Given::Int(value.into())),
            any::<i64>().prop_map(Given::Int),
            "\\PC{0,40}".prop_map(Given::Text),
        ]
    }

    proptest! {
        #[test]
        fn requests_are_what_the_crate_of_the_field_writes(
            pairs in prop::collection::vec((parameter(), given()), 0..12),
            columns in prop::collection::vec(prop_oneof![Just(Column::Integer), Just(Column::Text)], 0..12),
        ) {
            let (parameters, given): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let mut formats = Vec::new();
            let mut bytes = Vec::new();
            for (parameter, value) in parameters.iter().zip(&given) {
                let (format, value) = match (parameter, value) {
                    (Parameter::Text, Given::Null) => (0, None),
                    (_, Given::Null) => (1, None),
                    (Parameter::Int2, Given::Int(value)) if i16::try_from(*value).is_ok() =>
                        (1, Some(i16::try_from(*value).unwrap().to_be_bytes().to_vec())),
                    (Parameter::Int4, Given::Int(value)) if i32::try_from(*value).is_ok() =>
                        (1, Some(i32::try_from(*value).unwrap().to_be_bytes().to_vec())),
                    (Parameter::Int8, Given::Int(value)) => (1, Some(value.to_be_bytes().to_vec())),
                    (_, Given::Int(value)) => (0, Some(value.to_string().into_bytes())),
                    (_, Given::Text(text)) => (0, Some(text.clone().into_bytes())),
                };
                formats.push(format);
                bytes.push(value);
            }
            if parameters.iter().all(|parameter| *parameter == Parameter::Text) {
                formats.clear();
            }
            let mut results: Vec<i16> = columns.iter().map(|column| column.is_binary().into()).collect();
            if results.iter().all(|format| *format == 0) {
                results.clear();
            }
            let values: Vec<Value<'_>> = given
                .iter()
                .map(|value| match value {
                    Given::Null => Value::Null,
                    Given::Int(value) => Value::Int(*value),
                    Given::Text(text) => Value::Text(text),
                })
                .collect();
            let statement = Statement::new("", "s7", parameters, columns);
            let output = written(&statement, &values);
            prop_assert!(output.len() <= statement.room(&values));
            prop_assert_eq!(output, reference(&formats, &bytes, &results));
        }
    }
}
