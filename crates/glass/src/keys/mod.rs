//! Keys: what indexes are sorted by.
//!
//! A key is stored so that its bytes sort as it does: whole numbers with their sign turned and the most significant byte
//! first, texts filled up with zeros to their greatest length. All keys of an index are of one length. The real form
//! takes the key apart by its description and compares field by field, as an engine of many types does; the absent
//! form, specialised, compares words.
//!
//! Invariant: both forms order all keys of a shape alike, and as their values are ordered. So an index written by one is
//! an index for the other. What fills a prefix up to the least or the greatest key that begins with it, zeros or bytes
//! of 255, is ordered alike by both too.

use std::cmp::Ordering;

mod encoding;
#[cfg(test)]
mod tests;
mod typed;
mod words;

pub use encoding::{Value, int, long, text};
pub use typed::Typed;
pub use words::Words;

/// The greatest length of a key, in bytes.
pub const LONGEST: usize = 128;

/// How keys are compared.
pub trait Keys: Send + Sync + 'static {
    /// Whether by their description.
    const REAL: bool;

    /// Of two keys of that shape, each as long as its keys are.
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering;
}

/// A field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Of 4 bytes, with a sign.
    Int,
    /// Of 8 bytes, with a sign.
    Long,
    /// Of at most so many bytes, none of them zero.
    Text(u16),
}

/// The fields of an index's keys, most significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    fields: Box<[Field]>,
    length: usize,
}

impl Shape {
    /// Of these fields.
    #[must_use]
    pub fn new(fields: &[Field]) -> Self {
        Self {
            fields: fields.into(),
            length: fields.iter().map(Field::length).sum(),
        }
    }

    /// Most significant first.
    #[must_use]
    pub const fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Of each key, in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }
}

impl Field {
    /// In bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::Int => 4,
            Self::Long => 8,
            Self::Text(length) => *length as usize,
        }
    }
}
