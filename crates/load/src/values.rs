//! Field values: printable, cheap to make, and worth about 6 bits a byte to any compressor.

use crate::Random;

/// Fills `bytes` with random characters from the 64 that follow the space in ASCII.
#[inline]
pub fn fill_printable(bytes: &mut [u8], rng: &mut Random) {
    // Eight bytes a draw: keep 6 bits of each, and move them up to the printable range.
    let draw = |rng: &mut Random| {
        ((rng.next_u64() & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020).to_le_bytes()
    };
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = draw(rng);
    }
    let last = draw(rng);
    let length = rest.len();
    rest.copy_from_slice(&last[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
