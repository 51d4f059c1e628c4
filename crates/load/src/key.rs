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
    let number = match order {
        InsertOrder::Hashed => mix64(number),
        InsertOrder::Ordered => number,
    };
    text[..4].copy_from_slice(b"user");
    // Twenty digits in three parts that need nothing of each other.
    let (high, low) = (
        number / 10_000_000_000_000_000,
        number % 10_000_000_000_000_000,
    );
    text[4..8].copy_from_slice(&eight_digits(high)[4..]);
    text[8..16].copy_from_slice(&eight_digits(low / 100_000_000));
    text[16..].copy_from_slice(&eight_digits(low % 100_000_000));
}

/// The decimal digits of a number below 10^8, four and four, two and two. Pairs are looked up: taking them
/// apart by arithmetic is a chain of multiplications, of which each waits for the one before.
#[inline]
#[allow(clippy::cast_possible_truncation)] // below 100
fn eight_digits(number: u64) -> [u8; 8] {
    let mut text = [0; 8];
    let (high, low) = (number / 10_000, number % 10_000);
    for (place, four) in [(0, high), (4, low)] {
        text[place..place + 2].copy_from_slice(&PAIRS[(four / 100) as usize]);
        text[place + 2..place + 4].copy_from_slice(&PAIRS[(four % 100) as usize]);
    }
    text
}

/// The two digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        number += 1;
    }
    pairs
};

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

    #[test]
    fn every_number_of_eight_digits_is_written_as_the_library_does() {
        // Each of its four-digit halves takes all its values, and more of the whole.
        for number in (0..100_000_000)
            .step_by(997)
            .chain(0..10_000)
            .chain((0..10_000).map(|high| high * 10_000))
        {
            assert_eq!(eight_digits(number), *format!("{number:08}").as_bytes());
        }
    }

    proptest! {
        #[test]
        fn a_key_has_the_digits_of_its_number(number: u64) {
            prop_assert_eq!(key(number, InsertOrder::Ordered), format!("user{number:020}"));
        }

        #[test]
        fn texts_are_ordered_as_their_numbers(a: u64, b: u64) {
            prop_assert_eq!(key(a, InsertOrder::Ordered).cmp(&key(b, InsertOrder::Ordered)), a.cmp(&b));
            prop_assert_eq!(key(a, InsertOrder::Hashed) == key(b, InsertOrder::Hashed), a == b);
        }
    }
}
