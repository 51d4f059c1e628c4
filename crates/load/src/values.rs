//! Field values: printable, cheap to make, and worth about 6 bits a byte to any compressor.
//!
//! A certified value says by itself where it belongs. Its first eight characters, the nonce, are drawn
//! anew for each write; all others follow from the nonce, the length, the seed, the key and the field.
//! A change to these others alone is always seen. Anything else that was changed, cut or mixed up passes
//! for certified by a chance of one in 2^48 at the shortest length, and of one in 2^64 from 19 bytes on.

use crate::{Random, mix64};

/// A certified value has at least so many bytes.
pub const CERTIFIED_LENGTH: usize = NONCE_LENGTH + 8;

const NONCE_LENGTH: usize = 8;

/// An odd number far from any pattern: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fills `bytes` with random characters from the 64 that follow the space in ASCII.
#[inline]
pub fn fill_printable(bytes: &mut [u8], rng: &mut Random) {
    fill(bytes, || rng.next_u64());
}

/// Fills `value`, of at least [`CERTIFIED_LENGTH`] bytes, with characters from the 64 that follow the
/// space in ASCII, such that [`is_certified`] knows it again. A shorter one is filled too, but proves
/// nothing.
pub fn certify(value: &mut [u8], seed: u64, key: &[u8], field: u32, rng: &mut Random) {
    let length = value.len();
    let (nonce, rest) = value.split_at_mut(length.min(NONCE_LENGTH));
    fill_printable(nonce, rng);
    let mut sequence = Sequence::new(length, seed, key, field, nonce);
    fill(rest, || sequence.next());
}

/// Whether [`certify`] made this value, for this seed, key and field.
#[must_use]
pub fn is_certified(value: &[u8], seed: u64, key: &[u8], field: u32) -> bool {
    if value.len() < CERTIFIED_LENGTH {
        return false;
    }
    let (nonce, rest) = value.split_at(NONCE_LENGTH);
    let mut sequence = Sequence::new(value.len(), seed, key, field, nonce);
    let (chunks, last) = rest.as_chunks::<8>();
    chunks
        .iter()
        .all(|chunk| *chunk == printable(sequence.next()))
        && last == &printable(sequence.next())[..last.len()]
}

/// The numbers that make up a certified value after its nonce: `SplitMix64` from a state into which
/// all went that the value vouches for.
struct Sequence(u64);

impl Sequence {
    fn new(length: usize, seed: u64, key: &[u8], field: u32, nonce: &[u8]) -> Self {
        // Each step is a bijection of the state and of what is taken up: none can undo another.
        let mut state = mix64(seed.wrapping_add(GOLDEN));
        let mut take_up = |word: u64| state = mix64(state.wrapping_add(GOLDEN) ^ word);
        take_up(length as u64);
        take_up((u64::from(field) << 32) ^ key.len() as u64);
        take_up_all(key, &mut take_up);
        take_up_all(nonce, &mut take_up);
        Self(state)
    }

    #[inline]
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }
}

#[inline]
fn take_up_all(bytes: &[u8], take_up: &mut impl FnMut(u64)) {
    let (words, rest) = bytes.as_chunks::<8>();
    words
        .iter()
        .for_each(|word| take_up(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        take_up(u64::from_le_bytes(word));
    }
}

#[inline]
fn fill(bytes: &mut [u8], mut next: impl FnMut() -> u64) {
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = printable(next());
    }
    let last = printable(next());
    let length = rest.len();
    rest.copy_from_slice(&last[..length]);
}

/// Eight characters of a number: 6 bits of each byte are kept, and moved up to the printable range.
#[inline]
const fn printable(number: u64) -> [u8; 8] {
    ((number & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InsertOrder, KEY_LENGTH, KeyText, write_key};
    use proptest::prelude::*;

    #[test]
    fn values_are_printable_and_use_their_whole_alphabet() {
        let mut rng = Random::new(1, 0);
        for length in [1, 7, 8, 9, 100, 10_000] {
            let mut value = vec![0; length];
            fill_printable(&mut value, &mut rng);
            assert!(value.iter().all(|byte| (b' '..=b'_').contains(byte)));
            if length == 10_000 {
                let mut counts = [0u32; 256];
                for &byte in &value {
                    counts[usize::from(byte)] += 1;
                }
                assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 64);
                // 156 expected, with a standard deviation of 12.4.
                assert!(counts.iter().all(|&count| count < 230), "{counts:?}");
            }
        }
    }

    fn key(number: u64) -> KeyText {
        let mut text = [0; KEY_LENGTH];
        write_key(&mut text, number, InsertOrder::Ordered);
        text
    }

    fn certified(length: usize, seed: u64, number: u64, field: u32) -> Vec<u8> {
        let mut value = vec![0; length];
        certify(
            &mut value,
            seed,
            &key(number),
            field,
            &mut Random::new(seed, number),
        );
        value
    }

    #[test]
    fn certified_values_are_printable_and_use_their_whole_alphabet() {
        let value = certified(10_000, 1, 2, 3);
        let mut counts = [0u32; 256];
        value
            .iter()
            .for_each(|&byte| counts[usize::from(byte)] += 1);
        for (byte, &count) in counts.iter().enumerate() {
            // 156 expected, with a standard deviation of 12.4.
            let expected = if (0x20..=0x5f).contains(&byte) {
                100..220
            } else {
                0..1
            };
            assert!(expected.contains(&count), "{byte}: {count}");
        }
    }

    #[test]
    fn each_write_makes_another_value() {
        let mut rng = Random::new(1, 0);
        let mut values = [[0; 100]; 2];
        for value in &mut values {
            certify(value, 1, &key(2), 3, &mut rng);
            assert!(is_certified(value, 1, &key(2), 3));
        }
        assert!(
            values[0]
                .iter()
                .zip(&values[1])
                .filter(|(a, b)| a == b)
                .count()
                < 20
        );
    }

    #[test]
    fn what_is_too_short_to_prove_anything_is_not_certified() {
        for length in 0..CERTIFIED_LENGTH {
            assert!(
                !is_certified(&certified(length, 1, 2, 3), 1, &key(2), 3),
                "{length}"
            );
        }
    }

    /// A change of a single byte in every way there is, at the shortest length.
    #[test]
    fn every_change_of_a_single_byte_is_seen() {
        let mut value = certified(CERTIFIED_LENGTH, 1, 2, 3);
        for place in 0..value.len() {
            let right = value[place];
            for wrong in (0..=255).filter(|&wrong| wrong != right) {
                value[place] = wrong;
                assert!(!is_certified(&value, 1, &key(2), 3), "{place}: {wrong}");
            }
            value[place] = right;
        }
        assert!(is_certified(&value, 1, &key(2), 3));
    }

    proptest! {
        #[test]
        fn a_value_passes_for_its_own_row_field_and_seed_and_for_no_other(
            length in CERTIFIED_LENGTH..200, seed: u64, number: u64, field: u32,
            other_seed: u64, other_number: u64, other_field: u32,
        ) {
            let value = certified(length, seed, number, field);
            prop_assert!(is_certified(&value, seed, &key(number), field));
            for wrong in [other_seed, seed.wrapping_add(1)] {
                prop_assert!(wrong == seed || !is_certified(&value, wrong, &key(number), field));
            }
            for wrong in [other_number, number ^ 1, number.wrapping_add(10)] {
                prop_assert!(wrong == number || !is_certified(&value, seed, &key(wrong), field));
            }
            for wrong in [other_field, field ^ 1] {
                prop_assert!(wrong == field || !is_certified(&value, seed, &key(number), wrong));
            }
            prop_assert!(!is_certified(&value, seed, &key(number)[..KEY_LENGTH - 1], field));
        }

        #[test]
        fn a_flipped_bit_is_seen(
            length in CERTIFIED_LENGTH..200, seed: u64, number: u64, place: prop::sample::Index, bit in 0..8,
        ) {
            let mut value = certified(length, seed, number, 0);
            value[place.index(length)] ^= 1u8 << bit;
            prop_assert!(!is_certified(&value, seed, &key(number), 0));
        }

        #[test]
        fn a_value_that_was_cut_lengthened_or_put_together_of_two_is_seen(
            length in CERTIFIED_LENGTH..200, other in 0usize..300, seed: u64, number: u64, mix: prop::sample::Index,
        ) {
            let mut value = certified(length, seed, number, 0);
            let whole = value.clone();
            let later = {
                let mut value = vec![0; length];
                certify(&mut value, seed, &key(number), 0, &mut Random::new(seed, number ^ 1));
                value
            };
            value.resize(other, b' ');
            prop_assert!(other == length || !is_certified(&value, seed, &key(number), 0));
            let cut = 1 + mix.index(length - 1);
            let torn = [&whole[..cut], &later[cut..]].concat();
            prop_assert!(torn == whole || torn == later || !is_certified(&torn, seed, &key(number), 0));
        }
    }
}
