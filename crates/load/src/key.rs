//! From a key's number to its text: `user` and 20 digits, so that the order of texts is the order
//! of numbers, and every key has the same size.

use crate::mix64;

/// Bytes of a key's text.
pub const KEY_LENGTH: usize = 24;

/// A key's text, in ASCII.
pub type KeyText = [u8; KEY_LENGTH];

/// Where a newly inserted key falls among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// Anywhere: the number is scattered by a bijection on 64 bits.
    Hashed,
    /// After all that exist.
    Ordered,
}

/// Writes the text of the key with this number; different numbers have different texts.
#[inline]
pub fn write_key(text: &mut KeyText, number: u64, order: InsertOrder) {
    let mut rest = match order {
        InsertOrder::Hashed => mix64(number),
        InsertOrder::Ordered => number,
    };
    text[..4].copy_from_slice(b"user");
    for digit in text[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(number: u64, order: InsertOrder) -> String {
        let mut text = [0; KEY_LENGTH];
        write_key(&mut text, number, order);
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn a_key_reads_as_user_and_twenty_digits() {
        assert_eq!(key(42, InsertOrder::Ordered), "user00000000000000000042");
        assert_eq!(
            key(u64::MAX, InsertOrder::Ordered),
            "user18446744073709551615"
        );
        assert_eq!(key(1, InsertOrder::Hashed), format!("user{:020}", mix64(1)));
    }

    proptest! {
        #[test]
        fn texts_are_ordered_as_their_numbers(a: u64, b: u64) {
            prop_assert_eq!(key(a, InsertOrder::Ordered).cmp(&key(b, InsertOrder::Ordered)), a.cmp(&b));
            prop_assert_eq!(key(a, InsertOrder::Hashed) == key(b, InsertOrder::Hashed), a == b);
        }
    }
}
