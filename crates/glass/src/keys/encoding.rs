//! From values to the bytes of a key, and back.

use super::{Field, Shape};
use crate::{Error, Result};

/// What a field of a key holds. Values of one field are ordered as the derived order has it: numbers as numbers, texts byte by
/// byte with the shorter first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value<'a> {
    /// Of [`Field::Int`].
    Int(i32),
    /// Of [`Field::Long`].
    Long(i64),
    /// Of [`Field::Text`], without what fills it up.
    Text(&'a [u8]),
}

/// A [`Field::Int`] of a key.
#[inline]
#[must_use]
pub const fn int(value: i32) -> [u8; 4] {
    (value.cast_unsigned() ^ 1 << 31).to_be_bytes()
}

/// A [`Field::Long`] of a key.
#[inline]
#[must_use]
pub const fn long(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

/// Writes a text as a [`Field::Text`] whose bytes are all of `into`. [`Error::Refused`] where it is longer, or has a
/// byte that is zero and could not be told from what fills it up.
pub fn text(value: &[u8], into: &mut [u8]) -> Result<()> {
    if value.len() > into.len() || value.contains(&0) {
        return Err(Error::Refused(format!(
            "a text of {} bytes is no key of at most {} bytes other than zero",
            value.len(),
            into.len()
        )));
    }
    let (begin, rest) = into.split_at_mut(value.len());
    begin.copy_from_slice(value);
    rest.fill(0);
    Ok(())
}

pub(super) const fn int_of(bytes: [u8; 4]) -> i32 {
    (u32::from_be_bytes(bytes) ^ 1 << 31).cast_signed()
}

pub(super) const fn long_of(bytes: [u8; 8]) -> i64 {
    (u64::from_be_bytes(bytes) ^ 1 << 63).cast_signed()
}

pub(super) fn text_of(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().position(|byte| *byte == 0);
    &bytes[..length.unwrap_or(bytes.len())]
}

impl Shape {
    /// Writes a key. [`Error::Refused`] where the values or the length of `into` are not the shape's, or [`text`] refuses.
    pub fn encode(&self, values: &[Value<'_>], into: &mut [u8]) -> Result<()> {
        if values.len() != self.fields().len() || into.len() != self.length() {
            return Err(Error::Refused(format!(
                "{} values in {} bytes are no key of {} fields in {} bytes",
                values.len(),
                into.len(),
                self.fields().len(),
                self.length()
            )));
        }
        let mut rest = into;
        for (field, value) in self.fields().iter().zip(values) {
            let (bytes, others) = rest.split_at_mut(field.length());
            match (field, value) {
                (Field::Int, Value::Int(value)) => bytes.copy_from_slice(&int(*value)),
                (Field::Long, Value::Long(value)) => bytes.copy_from_slice(&long(*value)),
                (Field::Text(_), Value::Text(value)) => text(value, bytes)?,
                _ => return Err(Error::Refused(format!("{value:?} is no {field:?}"))),
            }
            rest = others;
        }
        Ok(())
    }

    /// The values of a key that is as long as the shape's keys are.
    pub fn decode<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = Value<'k>> {
        let mut rest = key;
        self.fields().iter().map(move |field| {
            let (bytes, others) = rest.split_at(field.length());
            rest = others;
            field.value(bytes)
        })
    }
}

impl Field {
    /// The value in a field's bytes.
    #[inline]
    pub(super) fn value(self, bytes: &[u8]) -> Value<'_> {
        match self {
            Self::Int => {
                let mut word = [0; 4];
                word.copy_from_slice(bytes);
                Value::Int(int_of(word))
            }
            Self::Long => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                Value::Long(long_of(word))
            }
            Self::Text(_) => Value::Text(text_of(bytes)),
        }
    }
}
