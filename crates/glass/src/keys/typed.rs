//! Keys compared by their description.

use std::cmp::Ordering;

use super::encoding::{int_of, long_of, text_of};
use super::{Field, Keys, Shape};

/// Takes both keys apart, field by field, until one of them differs.
pub struct Typed;

impl Keys for Typed {
    const REAL: bool = true;

    #[inline]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering {
        let (mut a, mut b) = (a, b);
        for field in shape.fields() {
            let order = match *field {
                Field::Int => int_of(begin(&mut a)).cmp(&int_of(begin(&mut b))),
                Field::Long => long_of(begin(&mut a)).cmp(&long_of(begin(&mut b))),
                Field::Text(length) => {
                    let (one, a_rest) = a.split_at(length.into());
                    let (other, b_rest) = b.split_at(length.into());
                    (a, b) = (a_rest, b_rest);
                    text_of(one).cmp(text_of(other))
                }
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
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
