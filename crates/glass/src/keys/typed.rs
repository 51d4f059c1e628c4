//! Keys compared by their description.

use std::cmp::Ordering;

use super::encoding::{int_of, long_of};
use super::{Field, Keys, Shape};

/// Takes both keys apart, field by field, until one of them differs.
pub struct Typed;

impl Keys for Typed {
    const REAL: bool = true;

    #[inline]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering {
        by_field(shape.fields(), a, b)
    }
}

#[inline]
fn by_field(mut fields: &[Field], mut a: &[u8], mut b: &[u8]) -> Ordering {
    while let Some((field, rest)) = fields.split_first() {
        // Most fields are alike, so that is asked first; only those that differ are read as what they are.
        match *field {
            Field::Int => {
                let (one, other) = (begin(&mut a), begin(&mut b));
                if one != other {
                    return int_of(one).cmp(&int_of(other));
                }
            }
            Field::Long => {
                let (one, other) = (begin(&mut a), begin(&mut b));
                if one != other {
                    return long_of(one).cmp(&long_of(other));
                }
            }
            Field::Text(length) => return text_first(length.into(), rest, a, b),
        }
        fields = rest;
    }
    Ordering::Equal
}

/// Keys that begin with a text. Apart, so that keys of numbers do not pay for what texts need.
#[inline(never)]
fn text_first(length: usize, rest: &[Field], a: &[u8], b: &[u8]) -> Ordering {
    let ((one, a), (other, b)) = (a.split_at(length), b.split_at(length));
    // What fills them up is below every byte of a text, so a text that is the other's beginning is the lesser.
    one.cmp(other).then_with(|| by_field(rest, a, b))
}

/// The bytes that a key begins with, which is left with the others.
#[inline]
fn begin<const BYTES: usize>(key: &mut &[u8]) -> [u8; BYTES] {
    let (field, rest) = key.split_at(BYTES);
    *key = rest;
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(field);
    bytes
}
