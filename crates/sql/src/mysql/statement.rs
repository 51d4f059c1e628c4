//! Prepared statements, and the request that carries one out.

use std::sync::{Arc, Mutex, PoisonError};

use super::bytes::put_string;
use super::row::Kind;
use crate::Value;
use crate::error::{Error, ErrorKind, Result};

/// The types of parameters: nothing, a whole number of 64 bits, text.
const NULL: u8 = 6;
const INT: u8 = 8;
const TEXT: u8 = 253;

/// Statements of one log-in that nobody holds any longer and the server still does.
pub type Abandoned = Arc<Mutex<Vec<u32>>>;

/// A prepared statement of one connection.
#[derive(Debug)]
pub struct Statement {
    id: u32,
    /// For messages.
    pub(super) sql: Box<str>,
    /// Of each column, as the server described it last.
    pub(super) columns: Vec<Kind>,
    /// The types of the parameters as the server was told last.
    types: Vec<u8>,
    /// Whether it was told.
    bound: bool,
    /// Of the log-in that it was prepared in.
    abandoned: Abandoned,
}

impl Statement {
    pub fn new(
        id: u32,
        sql: &str,
        parameters: u16,
        columns: Vec<Kind>,
        abandoned: &Abandoned,
    ) -> Self {
        Self {
            id,
            sql: sql.into(),
            columns,
            types: vec![NULL; usize::from(parameters)],
            bound: false,
            abandoned: Arc::clone(abandoned),
        }
    }

    /// Whether it was prepared in that log-in and takes so many values.
    #[inline]
    pub fn check(&self, current: &Abandoned, values: usize) -> Result<()> {
        if !Arc::ptr_eq(&self.abandoned, current) {
            return Err(refused(
                "the statement went with an earlier connection; prepare it anew",
            ));
        }
        if self.types.len() != values {
            return Err(refused(&format!(
                "the statement has {} parameters, and {values} values were given",
                self.types.len()
            )));
        }
        Ok(())
    }

    /// The server may not have taken the types that it was told.
    pub fn forget_types(&mut self) {
        self.bound = false;
    }

    /// The request's content behind the command. Types are told again only where they changed; a NULL has
    /// the type of the value before it.
    #[inline]
    pub fn put(&mut self, out: &mut Vec<u8>, values: &[Value<'_>]) {
        out.extend_from_slice(&self.id.to_le_bytes());
        // No cursor; carried out once.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if values.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        for (index, (value, told)) in values.iter().zip(&mut self.types).enumerate() {
            let kind = match value {
                Value::Null => {
                    out[nulls + index / 8] |= 1 << (index % 8);
                    continue;
                }
                Value::Int(_) => INT,
                Value::Text(_) => TEXT,
            };
            if *told != kind {
                *told = kind;
                self.bound = false;
            }
        }
        out.push(u8::from(!self.bound));
        if !self.bound {
            for &kind in &self.types {
                // The second byte would say that it is never negative.
                out.extend_from_slice(&[kind, 0]);
            }
            self.bound = true;
        }
        for value in values {
            match value {
                Value::Null => {}
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) => put_string(out, text.as_bytes()),
            }
        }
    }

    /// At most so many bytes does [`Self::put`] write.
    pub fn size(values: &[Value<'_>]) -> usize {
        // A bit for NULL, two bytes of type, and the value behind its length.
        values
            .iter()
            .map(|value| 12 + value_size(value))
            .sum::<usize>()
            + 16
    }
}

/// The length of a value without its type.
fn value_size(value: &Value<'_>) -> usize {
    match value {
        Value::Null => 0,
        Value::Int(_) => 8,
        Value::Text(text) => text.len(),
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        self.abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.id);
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Refused, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn statement(parameters: u16) -> Statement {
        Statement::new(7, "SELECT ?", parameters, Vec::new(), &Abandoned::default())
    }

    fn put(statement: &mut Statement, values: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        statement.put(&mut out, values);
        out
    }

    #[test]
    fn types_are_told_once_and_again_where_they_change() {
        let mut statement = statement(2);
        let head = [7, 0, 0, 0, 0, 1, 0, 0, 0];
        let first = put(&mut statement, &[Value::Text("ab"), Value::Null]);
        assert_eq!(first[..9], head);
        assert_eq!(first[9..], [0b10, 1, TEXT, 0, NULL, 0, 2, b'a', b'b']);
        let same = put(&mut statement, &[Value::Text("c"), Value::Null]);
        assert_eq!(same[9..], [0b10, 0, 1, b'c']);
        let null = put(&mut statement, &[Value::Null, Value::Null]);
        assert_eq!(null[9..], [0b11, 0]);
        let other = put(&mut statement, &[Value::Null, Value::Int(-2)]);
        let minus_two = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(other[9..15], [0b01, 1, TEXT, 0, INT, 0]);
        assert_eq!(other[15..], minus_two);
        statement.forget_types();
        let again = put(&mut statement, &[Value::Text(""), Value::Int(-2)]);
        assert_eq!(again[9..16], [0, 1, TEXT, 0, INT, 0, 0]);
    }

    #[test]
    fn a_statement_without_parameters_has_no_bitmap() {
        assert_eq!(put(&mut statement(0), &[]), [7, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn a_statement_of_an_earlier_log_in_is_refused_and_one_of_another_width() {
        let current = Abandoned::default();
        let statement = Statement::new(7, "SELECT ?", 1, Vec::new(), &current);
        assert_eq!(statement.check(&current, 1), Ok(()));
        let error = statement.check(&current, 2).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        let error = statement.check(&Abandoned::default(), 1).unwrap_err();
        assert!(error.message.contains("prepare it anew"));
        drop(statement);
        assert_eq!(*current.lock().unwrap(), [7]);
    }

    fn value() -> impl Strategy<Value = Option<Result<i64, String>>> {
        prop_oneof![
            Just(None),
            any::<i64>().prop_map(|int| Some(Ok(int))),
            ".{0,300}".prop_map(|text| Some(Err(text))),
        ]
    }

    proptest! {
        #[test]
        fn a_request_is_no_longer_than_was_reckoned(values in prop::collection::vec(value(), 1..30)) {
            let values: Vec<Value<'_>> = values
                .iter()
                .map(|value| match value {
                    None => Value::Null,
                    Some(Ok(int)) => Value::Int(*int),
                    Some(Err(text)) => Value::Text(text),
                })
                .collect();
            let mut statement = statement(u16::try_from(values.len()).unwrap());
            prop_assert!(put(&mut statement, &values).len() <= Statement::size(&values));
        }
    }
}
