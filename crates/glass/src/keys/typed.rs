//! Keys compared by their description.

use std::cmp::Ordering;

use super::{Keys, Shape};

/// Takes both keys apart, field by field, until one of them differs.
pub struct Typed;

impl Keys for Typed {
    const REAL: bool = true;

    #[inline]
    fn compare(shape: &Shape, a: &[u8], b: &[u8]) -> Ordering {
        let mut at = 0;
        for field in shape.fields() {
            let end = at + field.length();
            let order = field.value(&a[at..end]).cmp(&field.value(&b[at..end]));
            if order.is_ne() {
                return order;
            }
            at = end;
        }
        Ordering::Equal
    }
}
